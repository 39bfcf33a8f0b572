"""Which version this is: the one place, for the package, the command and what results are marked with."""

VERSION = "0.2.0"
