"""Joints, one kind a file: a pair, which says how two bodies move along each other, and its maker."""
