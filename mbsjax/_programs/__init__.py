"""How numbers and functions enter, and how programs made of them are compiled once and found again."""
