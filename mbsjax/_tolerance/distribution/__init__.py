"""Distributions of dimensions."""
