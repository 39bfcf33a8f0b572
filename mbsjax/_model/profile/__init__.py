"""Profiles: elements (points, lines, arcs, curves), chains of them, shapes made of these, and closest pairs."""
