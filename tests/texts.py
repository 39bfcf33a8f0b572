"""Texts with numbers, compared: what a page or a notebook says was printed, and what is printed."""

import re

import numpy as np


_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.(?P<decimals>\d*))?(?:e(?P<power>[+-]?\d+))?|nan|inf)(?P<percent>%?)")


def same(told: str, printed: str, noise: float = 0.0) -> bool:
    """Whether two texts are the same, numbers to the digits that are told, or to what rounding leaves, which is
    `noise`, absolute and relative."""
    a, b = (re.split(r"(?:[\s,;:\[\](){}]|\+-)+", text.strip(" \n[](){}")) for text in (told, printed))
    return len(a) == len(b) and all(_same_word(x, y, noise) for x, y in zip(a, b))


def _same_word(told: str, printed: str, noise: float) -> bool:
    x, y = _NUMBER.fullmatch(told), _NUMBER.fullmatch(printed)
    if x is None or y is None:
        return told == printed
    exact = x["decimals"] is None and x["power"] is None  # a whole number
    unit = 0.0 if exact else 10.0 ** (int(x["power"] or 0) - len(x["decimals"] or ""))
    u, v = (float(word.rstrip("%")) for word in (told, printed))
    close = np.isclose(u, v, rtol=noise, atol=max(1.01 * unit, noise), equal_nan=True)
    return x["percent"] == y["percent"] and bool(close)
