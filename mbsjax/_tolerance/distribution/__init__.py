"""Distributions of dimensions: symmetric and skewed."""
