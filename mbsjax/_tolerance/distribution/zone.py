"""Zones of drawings: the position of a hole or pin, the profile of a rim."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..._programs.custom_types import Number, Numbers
from ..._programs.precision import as_float, known, numpy_of, plain_number
from ..._programs.reprs import brief, has_numbers
from .base import AbstractDistribution, Spread, place, positive
from .symmetric import Normal, Truncated, Uniform


KINDS = ("normal", "truncated", "uniform", "rim")
_CUT = 3.0  # where a truncated normal zone ends, in standard deviations of the whole
_FAR = 12.0  # no score lies farther out


class Position(AbstractDistribution):
    """The position of a hole or pin, a dimension of two coordinates: it lies in a circle of the diameter `tol` about
    its nominal place, as the position tolerance of a drawing says.

    **Arguments:**

    - `tol`: the diameter of the zone.
    - `kind`: `"normal"`: each coordinate is normal, and by default the radius of the zone is three standard deviations
        (so that exp(-9/2), 1.1 % of all parts, lie beyond the circle). `"truncated"`: the same, with those sorted out.
        `"uniform"`: all places in the circle are equally likely. `"rim"`: it lies on the circle itself.
    - `sigma`: the standard deviation of each coordinate, instead of what the diameter makes it.
    - `cpk`: as for all distributions.
    - `shift`: how far the mean place is off, two coordinates.
    - `mmc`: the dimension that is the diameter of this hole or pin: the zone holds at maximum material, and its
        diameter grows by how far the size is away from that. All of the distribution grows with it.
    - `feature`: `"hole"`, whose maximum material is its smallest size, or `"pin"`, whose is the largest.

    Samples have the zone that belongs to their own size. To first and second order, a zone that grows counts by its
    standard deviation over all sizes, and by its largest diameter as a limit.

    !!! Example

        >>> import jax.numpy as jnp, mbsjax as mbs
        >>> mbs.Position(0.1, kind="uniform")
        Position(0.1, uniform, sigma 0.025)
        >>> plate = mbs.Study(lambda p: p["hole"], {"hole": jnp.array([30.0, 40.0])}, {"hole": mbs.Position(0.1)},
        ...                   {"distance": lambda hole: (hole[0] ** 2 + hole[1] ** 2) ** 0.5})
        >>> mbs.first_order(plate).worst_case.round(9).tolist()  # its radius, not that of a square
        [0.05]
    """

    spread: Spread
    kind: str = eqx.field(static=True)
    size: str | None = eqx.field(static=True)
    feature: str = eqx.field(static=True)

    def __init__(
        self,
        tol: Number | None = None,
        *,
        kind: str = "normal",
        sigma: Number | None = None,
        cpk: Number | None = None,
        shift: Numbers = (0.0, 0.0),
        mmc: str | None = None,
        feature: str = "hole",
    ):
        if kind not in KINDS:
            raise ValueError(f"there is no Position of the kind {kind!r}; there are {', '.join(KINDS)}")
        if feature not in ("hole", "pin"):
            raise ValueError(f"the feature of a Position is a 'hole' or a 'pin', not {feature!r}")
        self.kind, self.size, self.feature = kind, mmc, feature
        off = known(as_float(shift, "the shift of a Position"))
        if off.shape != (2,):
            raise ValueError(f"the shift of a Position must be two numbers, got shape {off.shape}")
        square = off[0] ** 2 + off[1] ** 2
        away = numpy_of(off).where(square > 0, numpy_of(off).where(square > 0, square, 1.0) ** 0.5, 0.0)
        diameter = None if tol is None else positive(tol, "the diameter of a Position")
        if diameter is not None and diameter.shape != ():
            raise ValueError(f"the diameter of a Position must be one number, got shape {diameter.shape}")
        spread = place(self, None if diameter is None else diameter / 2, sigma, cpk, away)
        self.spread = spread._replace(location=jnp.asarray(off, float))

    @property
    def ends(self) -> tuple[float, float]:
        return (-3.0, 3.0) if self.kind == "normal" else (-1.0, 1.0)

    @property
    def parameters(self) -> tuple[float | str, ...]:
        return (self.kind,) if self.size is None else (self.kind, self.size, self.feature)

    @property
    def zone(self) -> bool:
        return True

    @property
    def together(self) -> int:
        return 2

    @property
    def mmc(self) -> str | None:
        return self.size

    def unit(self, z: Array) -> Array:
        """A point of the unit circle (of standard deviation 1, if it is normal) from two scores, along the same
        direction: the chance of a score farther out is that of a point farther out."""
        s = jnp.sum(z * z, -1, keepdims=True) / 2
        if self.kind == "normal":
            return z
        if self.kind == "rim":
            return z / jnp.sqrt(jnp.where(s > 0, 2 * s, 1.0))  # no direction at 0: there it is the center
        inside = _share(s)  # over s, of all that lie farther in
        if self.kind == "uniform":
            return z * jnp.sqrt(inside / 2)
        kept = -np.expm1(-(_CUT**2) / 2)
        return z * jnp.sqrt(kept * inside * _minus_log1p(kept * inside * s)) / _CUT

    def growth(self, above_lower: Array, below_upper: Array) -> Any:
        """By how much the zone grows: the bonus is how far the size is from its limit of maximum material. A size
        beyond its limits has no more of it than one at the limit."""
        departure = above_lower if self.feature == "hole" else below_upper
        return 1 + jnp.clip(departure, 0.0, above_lower + below_upper) / (2 * self.spread.upper)

    def farthest(self, slopes: Any) -> Any:
        """On the circle, along the slopes."""
        square = (slopes**2).sum(-1, keepdims=True)
        return slopes / numpy_of(slopes).where(square > 0, square, 1.0) ** 0.5

    def extent(self, x: Any) -> Any:
        numpy = numpy_of(x)
        return numpy.broadcast_to((x**2).sum(-1, keepdims=True) ** 0.5, x.shape)

    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """On circles: exact for polynomials up to degree 15 in the direction."""
        x, w = np.polynomial.legendre.leggauss(96)
        x, w = (x + 1) / 2, w / 2
        if self.kind == "rim":
            radius, weight = np.ones(1), np.ones(1)
        elif self.kind == "uniform":
            radius, weight = x, w * x
        else:
            end = _CUT if self.kind == "truncated" else _FAR
            radius, weight = x * (end if self.kind == "normal" else 1.0), w * x * np.exp(-((x * end) ** 2) / 2)
        angle = 2 * np.pi * np.arange(16) / 16
        points = radius[:, None, None] * np.stack([np.cos(angle), np.sin(angle)], -1)
        return points.reshape(-1, 2), np.repeat(weight, 16) / weight.sum() / 16

    def __repr__(self) -> str:
        if not has_numbers(self.spread) or np.ndim(self.spread.scale):
            return brief(self, lower=self.spread.lower, upper=self.spread.upper, kind=self.kind)
        off = "" if not np.any(self.spread.location) else f", mean {self.spread.location.tolist()}"
        more = "" if self.size is None else f", at maximum material of the {self.feature} {self.size!r}"
        return f"Position({2 * float(self.spread.upper):.6g}, {self.kind}{off}, sigma {float(self.std):.6g}{more})"


class ProfileZone(AbstractDistribution):
    """How far a profile lies off its nominal curve, along the normal, at places one after the other: a dimension of n
    numbers, nominally zero, such as the heights that [`mbsjax.deviated`][] goes through.

    **Arguments:**

    - `tol`: the width of the zone as a drawing gives it, half of it on either side; or a pair (lower, upper).
    - `kind`: `"normal"`, `"truncated"` or `"uniform"`, of the deviation at each place.
    - `correlation`: over how many places the deviation stays about the same: so many places apart, the scores have the
        correlation exp(-1/2). 0: every place has an error of its own.
    - `closed`: whether the last place is beside the first.
    - `sigma`, `cpk`, `shift`: as for all distributions; a shift moves the whole profile outwards.

    !!! Example

        >>> import mbsjax as mbs
        >>> mbs.ProfileZone(0.05, correlation=2)
        ProfileZone(+-0.025, mean 0, sigma 0.00833333, normal, 2)
    """

    place: AbstractDistribution
    kind: str = eqx.field(static=True)
    correlation: float = eqx.field(static=True)
    closed: bool = eqx.field(static=True)

    def __init__(
        self,
        tol: Numbers | None = None,
        *,
        kind: str = "normal",
        correlation: Number = 0.0,
        closed: bool = True,
        sigma: Number | None = None,
        cpk: Number | None = None,
        shift: Number = 0.0,
    ):
        kinds = {"normal": Normal, "truncated": Truncated, "uniform": Uniform}
        if kind not in kinds:
            raise ValueError(f"there is no ProfileZone of the kind {kind!r}; there are {', '.join(kinds)}")
        self.kind, self.closed = kind, bool(closed)
        self.correlation = plain_number(correlation, "the correlation of a ProfileZone, in places,", least=0.0)
        width: Any = None if tol is None else known(as_float(tol, "the tolerance of a ProfileZone"))
        half = width / 2 if tol is not None and width.shape == () else width
        self.place = kinds[kind](half, sigma=sigma, cpk=cpk, shift=shift)

    @property
    def spread(self) -> Spread:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.place.spread

    @property
    def ends(self) -> tuple[float, float]:
        return self.place.ends

    @property
    def parameters(self) -> tuple[float | str, ...]:
        return (self.kind, self.correlation) if self.closed else (self.kind, self.correlation, "open")

    @property
    def zone(self) -> bool:
        return True

    def unit(self, z: Array) -> Array:
        return self.place.unit(z)

    def score_correlation(self, n: int) -> np.ndarray:
        """That of a smooth random curve; of a closed one, by its distances across a circle."""
        apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
        if self.correlation == 0:
            return np.eye(n)
        if self.closed:
            apart = n / np.pi * np.sin(np.pi * apart / n)
        return np.exp(-((apart / self.correlation) ** 2) / 2)


def _share(s: Array) -> Array:
    """(1 - exp(-s)) / s, exact at 0 with its derivatives."""
    small = s < 0.01
    safe = jnp.where(small, 1.0, s)
    t = jnp.where(small, s, 0.0)
    series = 1 - t / 2 * (1 - t / 3 * (1 - t / 4 * (1 - t / 5 * (1 - t / 6 * (1 - t / 7)))))
    return jnp.where(small, series, -jnp.expm1(-safe) / safe)


def _minus_log1p(y: Array) -> Array:
    """-log(1 - y) / y, exact at 0 with its derivatives."""
    small = y < 0.01
    safe = jnp.where(small, 0.5, y)
    t = jnp.where(small, y, 0.0)
    series = 1 + t * (1 / 2 + t * (1 / 3 + t * (1 / 4 + t * (1 / 5 + t * (1 / 6 + t * (1 / 7 + t / 8))))))
    return jnp.where(small, series, -jnp.log1p(-safe) / safe)
