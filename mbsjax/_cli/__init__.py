"""The command `mbsjax`, one command a file."""
