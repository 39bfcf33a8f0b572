"""ACDMC's `.DYN` files (thesis 4.2, appendix D)."""
