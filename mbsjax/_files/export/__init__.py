"""Mechanisms for other programs: MuJoCo, URDF."""
