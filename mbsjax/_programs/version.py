"""Which version this is: what results are marked with."""

VERSION = "0.1.0"
