"""Drawings: profiles from DXF, SVG and STEP files, and mechanisms to DXF."""
