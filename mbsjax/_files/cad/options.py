"""What all readers of drawings share: the file as text, and the unit of its lengths."""

import os
import pathlib
from typing import Any


LARGEST = 1 << 24  # bytes of a drawing
UNITS = {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6, "km": 1e3, "in": 0.0254, "ft": 0.3048}  # in meters


def checked(path: Any) -> str:
    """The name of a file that may be read."""
    name = os.fspath(path)
    if os.path.getsize(name) > LARGEST:
        raise ValueError(f"{name}: a drawing must not be larger than {LARGEST} bytes")
    return name


def text(path: Any) -> tuple[str, str]:
    """The name and the text of a file."""
    name = checked(path)
    return name, pathlib.Path(name).read_bytes().decode("utf-8", errors="replace")


def factor(unit: str | None, meters: float | None, name: str) -> float:
    """By how much to multiply lengths of a file, of which one is so many meters, to have them in `unit`."""
    if unit is None:
        return 1.0
    if unit not in UNITS:
        raise ValueError(f"an unknown unit {unit!r}; there are {', '.join(UNITS)}")
    if meters is None:
        raise ValueError(f"{name}: the drawing does not say what the unit of its lengths is: leave out `unit`")
    ratio = meters / UNITS[unit]
    return round(ratio, 15) if ratio >= 1 else ratio
