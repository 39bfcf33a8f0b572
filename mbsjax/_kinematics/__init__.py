"""Positions: the mechanism laid out for computing, assembly, mobility, driven motion."""
