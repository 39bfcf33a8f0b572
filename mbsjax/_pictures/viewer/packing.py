"""Numbers as the page takes them: rounded, or their bytes as text."""

import base64
from typing import Any

import numpy as np


def rounded(x: Any) -> list:
    """A few numbers, rounded to nine digits."""
    x = np.asarray(x, float)
    return [rounded(row) for row in x] if x.ndim > 1 else [float(f"{v:.9g}") for v in x]


def packed(x: Any, kind: Any = np.float32) -> Any:
    """A row of numbers for the page: one number if they are all the same; else their bytes, in base64. With uint16
    they are parts of the way from the least to the largest, the last code standing for what is not finite."""
    x = np.asarray(x, float)
    there = np.isfinite(x)
    x = np.where(there, x, np.nan)
    if len(x) and there.all() and np.ptp(x) <= 1e-12 * np.abs(x).max():
        return [len(x), float(f"{x[0]:.9g}")]
    name = np.dtype(kind).name
    if kind is not np.uint16:
        return {"kind": name, "bytes": _text(np.asarray(x, kind))}
    low, high = (np.nanmin(x), np.nanmax(x)) if there.any() else (0.0, 1.0)
    parts = np.where(there, np.round((x - low) / max(high - low, 1e-300) * 65534), 65535)
    return {"kind": name, "bytes": _text(parts.astype(kind)), "low": float(low), "high": float(high)}


def _text(x: np.ndarray) -> str:
    return base64.b64encode(x.astype(x.dtype.newbyteorder("<")).tobytes()).decode()
