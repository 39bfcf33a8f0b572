"""What a tolerance report's page computes with: derivatives, distributions, limits, and the lines of the mechanism."""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._pictures.table import Table
from .distribution.base import WEIGHTS, AbstractDistribution
from .report_drawing import Drawing, dimension_lines, skeleton, ties
from .study import Study
from .summary import Found, Summary, group_names
from .worst_case import WorstCase


_MOST = 60_000  # curvatures in a page
_BINS = 60  # bars of a histogram
_WORDS = {"Beta": ("a", "b"), "Weibull": ("k",), "Truncated": ("at",), "Triangular": ("mode",)}
_ZONES = {"Position": ("kind", "mmc", "feature"), "ProfileZone": ("kind", "correlation", "closed"), "Ball": ("kind",)}
_TYPES = {"ProfileZone": "profile_zone"}  # as model files have them, where that is not the name in small letters


def exact(x: Any) -> str:
    """Numbers for the page, to the last bit: their bytes in base64, last axis fastest."""
    return base64.b64encode(np.ascontiguousarray(x, "<f8").tobytes()).decode()


def plain(x: Any) -> float | None:
    """One number for the page: None where it is not finite."""
    return float(x) if np.isfinite(x) else None


def embedded(content: Any) -> str:
    """JSON that may stand in a script: nothing in it can end that, or begin another."""
    data = json.dumps(content, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        data = data.replace(character, f"\\u{ord(character):04x}")
    return data


class Contents(NamedTuple):
    """What a page is made of."""

    title: str
    found: Found
    worst: WorstCase | None
    tables: Sequence[Table]
    summary: Sequence[Summary]
    pictures: Sequence[tuple[str, str, Callable]]
    drawing: Drawing | None
    seed: int
    target: float
    units: Mapping[str, str]


def is_along(c: Contents, x: Summary) -> bool:
    """Whether a measure is a row along a stroke."""
    return not isinstance(c.found.study.slices[x.measure], int)


def first_value(c: Contents, name: str) -> int:
    """Where the values of a measure begin."""
    at = c.found.study.slices[name]
    return at if isinstance(at, int) else at.start


def contents(c: Contents) -> dict[str, Any]:
    """All that the page computes with."""
    found = c.found
    study, first, second = found.study, found.first, found.second
    std = np.asarray(study.std)
    d, m = len(std), len(study.columns)
    single = [at for at in study.slices.values() if isinstance(at, int)]
    curved = [] if second is None else list(range(m)) if m * d * d <= _MOST else single
    if any(x.together is not None and x.parameters[:1] != ("normal",) for x in study.distributions):
        curved = []  # the numbers of a round zone depend on each other: more than the page knows
    return {
        "groups": _groups(study, c.units),
        "dimensions": list(study.names),
        "nominal": exact(study.nominal),
        "measures": [_measure(found, line, c.units) for line in c.summary],
        "places": {name: exact(x) for name, x in study.along.items()},
        "values": exact(first.values),
        "nominal_values": exact(study.at_nominal.values),
        "slopes": exact(first.slopes),
        "lower": exact(study.lower),
        "upper": exact(study.upper),
        "correlation": exact(first.covariance / (std[:, None] * std)),
        "curved": curved,
        "curvatures": None if second is None else exact(second.curvatures[curved]),
        "check": _check(found, curved),
        "target": c.target,
        "drawing": None if c.drawing is None else _drawing(c.drawing, study),
    }


def _check(found: Found, curved: list[int]) -> dict[str, Any]:
    """What the page must find before anything is changed."""
    first, second = found.first, found.second
    told = {"middle": first.middle, "worst": first.worst_case, "rss": first.rss, "std": first.std}
    told["good"] = found.able["first order"].good
    if second is not None:
        mean, std, skewness, kurtosis = (x[curved] for x in second.moments)
        told |= {"mean2": mean, "std2": std, "skewness2": skewness, "kurtosis2": kurtosis}
        told["good2"] = found.able["second order"].good[curved]
    return {name: exact(x) for name, x in told.items()}


def _groups(study: Study, units: Mapping[str, str]) -> list[dict[str, Any]]:
    """The dimensions as tolerances were given, each with its distribution."""
    scores = np.asarray(study.mixing) @ np.asarray(study.mixing).T
    alone = np.abs(scores - np.eye(len(scores))).max(1) == 0
    found, start = [], 0
    for name, d, count in zip(group_names(study), study.distributions, study.counts):
        found.append({"name": name, "unit": units.get(name, ""), "start": start, "count": count, **_distribution(d)})
        found[-1]["alone"] = (alone[start : start + count] & (d.together is None)).tolist()
        found[-1]["saved"] = not name.endswith(".play")  # where a pin lies is no tolerance of a model file
        start += count
    return found


def _distribution(d: AbstractDistribution) -> dict[str, Any]:
    """A distribution: a deviation is location + scale * unit variate, and its location is that of the limits, less
    `center` times the scale, plus the shift."""
    low, high = d.ends
    center = low if d.one_sided else (low + high) / 2
    lower, upper, scale = (float(x) for x in (d.spread.lower, d.spread.upper, d.spread.scale))
    anchor, kind = float(d.anchor), type(d).__name__
    location = float(np.mean(d.spread.location))
    words = dict(zip(_WORDS.get(kind, ()), d.parameters)) | {x: getattr(d, x) for x in _ZONES.get(kind, ())}
    return {
        "kind": _TYPES.get(kind, kind.lower()), "round": d.together is not None,
        "more": {name: x for name, x in words.items() if x is not None}, "one_sided": d.one_sided, "lower": lower,
        "upper": upper,
        "shift": _rounded(location - (anchor - scale * center), upper - lower), "scale": scale, "center": center,
        "ends": high - low, "mean": float(d.shape.mean), "std": float(d.shape.std), "products": exact(_products(d)),
    }  # fmt: skip


def _rounded(x: float, size: float) -> float:
    """Zero, where only rounding is left of it."""
    return 0.0 if abs(x) < 1e-12 * size else x


def _products(d: AbstractDistribution) -> np.ndarray:
    """Of a standardized variate x, with u = x - E x and w = x^2 - E x^2: the means of x and x^2, and of all products
    u^j w^k with j + k = 2, 3, 4. The cumulants of g x + c x^2 follow from them. None of it for round zones."""
    if d.together is not None:
        return np.zeros(14)
    x = (d.tabulated() - d.shape.mean) / d.shape.std
    first, second = WEIGHTS @ x, WEIGHTS @ x**2
    u, w = x - first, x**2 - second
    return np.array([first, second] + [WEIGHTS @ (u**j * w ** (n - j)) for n in (2, 3, 4) for j in range(n + 1)])


def _measure(found: Found, line: Summary, units: Mapping[str, str]) -> dict[str, Any]:
    study, at = found.study, found.study.slices[line.measure]
    start, stop = (at, at + 1) if isinstance(at, int) else (at.start, at.stop)
    lower, upper = (np.asarray(x)[start:stop] for x in (study.lower, study.upper))
    belief = line.belief
    told: dict[str, Any] = {
        "name": line.measure, "unit": units.get(line.measure, ""), "start": start, "count": stop - start,
        "along": not isinstance(at, int), "even": bool(np.all(lower == lower[0]) and np.all(upper == upper[0])),
        "method": belief.method, "believed": plain(belief.good), "error": plain(belief.error), "cpk": plain(line.cpk),
        "cpk_of": line.cpk_of, "histogram": None,
    }  # fmt: skip
    if found.sample is not None and isinstance(at, int):
        x = found.sample.values[:, at]
        x = x[np.isfinite(x)]
        if len(x) and np.ptp(x) > 0:
            counts, edges = np.histogram(x, _BINS)
            told["histogram"] = {"low": float(edges[0]), "high": float(edges[-1]), "counts": counts.tolist()}
    return told


def _drawing(drawing: Drawing, study: Study) -> dict[str, Any]:
    mech, moving, slopes = drawing.mech, drawing.moving, drawing.slopes
    bodies = []
    for name in mech.links:
        lines, stems = skeleton(mech, name, moving.local)
        bodies.append(
            {
                "name": name,
                "places": exact(moving.local.places[name]),
                "place_slopes": exact(slopes.local.places[name]),
                "axes": exact(moving.local.axes[name]),
                "joints": [
                    [joint.name, _kind(joint), side]
                    for joint in mech.joints
                    for side, body in enumerate((joint.body_a, joint.body_b))
                    if body == name
                ],
                "lines": lines,
                "stems": stems,
                "outlines": [exact(x) for x in moving.local.outlines[name]],
                "outline_slopes": [_sparse(x) for x in slopes.local.outlines[name]],
                "closed": [profile.closed for profile in mech.body(name).profiles.values()],
            }
        )
    named = {}
    for i, dimension in enumerate(study.names):
        named[dimension] = [
            {"body": mech.links.index(body), "ends": [start.tolist(), end.tolist()]}
            for body, start, end in dimension_lines(drawing, i)
        ]
    tied = [kind for kind, _ in ties(mech)]
    ends = [[mech.links.index(body) for body in g.bodies] for _, g in ties(mech)]
    return {
        "planar": mech.planar, "t": exact(moving.t), "rows": len(moving.t), "bodies": bodies,
        "poses": exact(moving.poses), "pose_slopes": exact(slopes.poses), "ties": list(zip(tied, ends)),
        "named": named,
    }  # fmt: skip


def _sparse(slopes: np.ndarray) -> dict[str, str]:
    """Slopes of an outline's points, of the dimensions that it depends on, by their numbers."""
    return {str(i): exact(slopes[..., i]) for i in range(slopes.shape[-1]) if np.any(slopes[..., i])}


def _kind(joint: Any) -> str:
    return joint.pair.kind
