"""Forces between bodies, one kind a file, and the laws of compliant contacts."""
