"""Pages of the viewer as tests see them: their content, and what a browser makes of it."""

import base64
import json
import re

import numpy as np

import mbsjax as mbs


def content(viewer: mbs.Viewer) -> dict:
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', viewer.html, re.S)
    return json.loads(found)


def numbers(x) -> np.ndarray:
    if isinstance(x, list):
        return np.full(x[0], x[1])
    found = np.frombuffer(base64.b64decode(x["bytes"]), np.dtype(x["kind"]).newbyteorder("<"))
    return x["low"] + (x["high"] - x["low"]) * found / 65534 if x["kind"] == "uint16" else found


def poses(data: dict, body: str) -> np.ndarray:
    return np.stack([numbers(x) for x in next(b for b in data["bodies"] if b["name"] == body)["pose"]], 1)


def planar(X: np.ndarray, p) -> np.ndarray:
    """Points of a body whose poses are x, y, angle."""
    (x, y, a), (u, v) = X.T, p
    return np.stack([x + np.cos(a) * u - np.sin(a) * v, y + np.sin(a) * u + np.cos(a) * v], 1)


def panel(data: dict, label: str) -> dict:
    return next(p for p in data["panels"] if p["label"] == label)


def both_sides(data: dict, label: str) -> tuple[np.ndarray, np.ndarray]:
    """A curve of the page just before and just after each event."""
    line = panel(data, label)["lines"][0]
    after = numbers(line["y"])[[e["frame"] for e in data["events"]]]
    return after if line["before"] is None else numbers(line["before"]), after


def until(page, condition: str, seconds: float = 20.0) -> None:
    """Waits for a condition; the page's own policy does not let it be evaluated within."""
    for _ in range(int(seconds / 0.02)):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"not within {seconds} s: {condition}")


def state(page) -> dict:
    return page.evaluate("mbsjax.state()")
