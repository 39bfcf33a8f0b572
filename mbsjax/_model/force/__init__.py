"""Forces between bodies, one kind a file."""
