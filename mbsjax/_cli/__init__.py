"""The command `mbsjax`."""
