"""How a dimension is spread about its nominal value."""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._programs.modules import AbstractModule
from ..._programs.precision import as_float, known, number, numpy_of, value
from ..._programs.reprs import brief, has_numbers


class Spread(NamedTuple):
    """Where a distribution lies: all are deviations from the nominal value.

    - `lower`, `upper`: the limits of the tolerance.
    - `location`, `scale`: a deviation is location + scale * unit variate.
    """

    lower: Any
    upper: Any
    location: Any
    scale: Any


class Shape(NamedTuple):
    """Mean, standard deviation, skewness and kurtosis (3 for a normal distribution)."""

    mean: Any
    std: Any
    skewness: Any
    kurtosis: Any


class AbstractDistribution(AbstractModule):
    """How a dimension varies from part to part: a deviation from its nominal value, as a function of a standard normal
    score. So dimensions of any kind are drawn, correlated and searched through normal scores.

    All kinds are given in the same way:

    - `tol`: limits of the deviation, a number for +-tol, or a pair (lower, upper).
    - `sigma`: the standard deviation. Alone, it makes the limits.
    - `cpk`: how well the process keeps the limits; 1 by default: they lie three standard deviations from the mean of a
        normal distribution, and at the ends of one that has ends.
    - `shift`: how far the mean lies from where it should be.
    """

    spread: eqx.AbstractVar[Spread]

    @property
    @abc.abstractmethod
    def ends(self) -> tuple[float, float]:
        """The unit variate at the limits of the tolerance, for a cpk of 1."""

    @abc.abstractmethod
    def unit(self, z: Array) -> Array:
        """The unit variate at a standard normal score."""

    @property
    def one_sided(self) -> bool:
        """Whether its lower limit is a place that it cannot go below, such as a length of zero."""
        return False

    @property
    def anchor(self) -> Float[Array, ""]:
        """What stays where it is when the tolerance grows: the middle of the limits, or the lower one."""
        return self.spread.lower if self.one_sided else (self.spread.lower + self.spread.upper) / 2

    @property
    def parameters(self) -> tuple[float | str, ...]:
        """What makes its shape, beside place and size."""
        return ()

    @property
    def zone(self) -> bool:
        """Whether all numbers of a dimension are one zone of a drawing, and so one contributor."""
        return False

    @property
    def together(self) -> int | None:
        """How many numbers are spread together, if it is a zone for several; None if each is spread by itself."""
        return None

    @property
    def mmc(self) -> str | None:
        """The dimension whose departure from maximum material makes a zone grow."""
        return None

    def growth(self, above_lower: Array, below_upper: Array) -> Any:
        """By how much the zone grows where the size named by `mmc` lies so far from its limits."""
        return 1.0

    def score_correlation(self, n: int) -> np.ndarray:
        """How the scores of the n numbers of a dimension are correlated."""
        return np.eye(n)

    def farthest(self, slopes: Any) -> Any:
        """Where within the limits, each from -1 to 1, a value with these slopes is largest: a corner, for numbers that
        are spread each by itself."""
        return numpy_of(slopes).sign(slopes)

    def extent(self, x: Any) -> Any:
        """How far out numbers lie, of which -1 and 1 are the limits: 1 at the rim of what is allowed."""
        return numpy_of(x).abs(x)

    def inside(self, x: Array) -> Array:
        """Numbers from -1 to 1 as they are; what lies beyond the rim of a round zone is put on it."""
        if self.together is None:
            return x
        square = jnp.sum(x**2, -1, keepdims=True)
        beyond = square > 1
        return jnp.where(beyond, x / jnp.sqrt(jnp.where(beyond, square, 1.0)), x)

    def at(self, z: Any) -> Array:
        """The deviation at a standard normal score: the median at 0, 99.865 % of all parts below that at 3.

        !!! Example

            >>> import mbsjax as mbs
            >>> float(mbs.Uniform((-0.2, 0.0)).at(0.0))
            -0.1
        """
        return self.spread.location + self.spread.scale * self.unit(jnp.asarray(z, self.spread.scale.dtype))

    def tabulated(self) -> np.ndarray:
        """The unit variate at `SCORES`."""
        with jax.ensure_compile_time_eval():
            return np.asarray(self.unit(jnp.asarray(SCORES)))

    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Points of the unit variate and their weights, which its moments are sums of: a column for each number that is
        spread together."""
        return self.tabulated()[:, None], WEIGHTS

    @property
    def shape(self) -> Shape:
        """Moments of the unit variate."""
        return _shape(self)

    @property
    def mean(self) -> Float[Array, "..."]:
        """The mean deviation from the nominal value."""
        return self.spread.location + self.spread.scale * self.shape.mean

    @property
    def std(self) -> Float[Array, ""]:
        return self.spread.scale * self.shape.std

    def __repr__(self) -> str:
        if not has_numbers(self.spread):
            return f"{type(self).__name__}(traced)"
        if self.spread.lower.ndim:
            return brief(self, lower=self.spread.lower, upper=self.spread.upper)
        lower, upper = float(self.spread.lower), float(self.spread.upper)
        limits = f"+-{upper:.6g}" if lower == -upper else f"{lower:+.6g} to {upper:+.6g}"
        more = "".join(f", {x:.6g}" if isinstance(x, float) else f", {x}" for x in self.parameters)
        return f"{type(self).__name__}({limits}, mean {float(self.mean):.6g}, sigma {float(self.std):.6g}{more})"


SCORES = np.linspace(-8.5, 8.5, 3401)
WEIGHTS = np.exp(-(SCORES**2) / 2) / np.exp(-(SCORES**2) / 2).sum()  # the trapezoidal rule is exact for what decays so


_shapes: dict[Any, Shape] = {}


def _shape(distribution: AbstractDistribution) -> Shape:
    key = type(distribution), distribution.parameters
    if key not in _shapes:
        nodes, weights = distribution.nodes()
        x = nodes[:, 0]  # all numbers of a zone are spread alike
        mean = round(float(weights @ x), 10) + 0.0  # zero, where it should be
        variance, third, fourth = (float(weights @ (x - mean) ** k) for k in (2, 3, 4))
        _shapes[key] = Shape(mean, variance**0.5, third / variance**1.5, fourth / variance**2)
    return _shapes[key]


def place(distribution: AbstractDistribution, tol: Any, sigma: Any, cpk: Any, shift: Any) -> Spread:
    """Location and scale from what was given."""
    one_sided, kind = distribution.one_sided, type(distribution).__name__
    low, high = distribution.ends
    shift = known(number(shift, f"the shift of a {kind}"))
    if tol is None and sigma is None:
        raise ValueError(f"a {kind} needs a tolerance `tol`, or `sigma`")
    if sigma is not None:
        if cpk is not None:
            raise ValueError(f"a {kind} takes either `sigma` or `cpk`, not both")
        scale = positive(sigma, f"the sigma of a {kind}") / distribution.shape.std
    if tol is None:
        middle = 0.0 if one_sided else scale * (low + high) / 2
        lower, upper = scale * low - middle, scale * high - middle
    else:
        lower, upper = limits(tol, f"the tolerance of a {kind}", one_sided)
    half = (upper - lower) / 2
    if sigma is not None and tol is not None:
        _check_within(distribution, value(scale * (high - low) / 2), value(half), sigma)
    if sigma is None:
        better = positive(1.0 if cpk is None else cpk, f"the cpk of a {kind}")
        room = half - shift / 2 if one_sided else half - abs(shift)
        if value(room) <= 0:
            raise ValueError(
                f"the shift {float(value(shift)):.6g} of a {kind} leaves its tolerance +-{float(value(half)):.6g}"
            )
        scale = 2 * room / (high - low) / better
    location = lower - scale * low if one_sided else (lower + upper) / 2 - scale * (low + high) / 2
    return Spread(*(jnp.asarray(x, float) for x in (lower, upper, location + shift, scale)))


def _check_within(distribution: AbstractDistribution, reach: np.ndarray, half: np.ndarray, sigma: Any) -> None:
    """Raises where a distribution that has ends would leave its limits."""
    if not reach > half * (1 + 1e-9):
        return
    nodes, (low, high) = distribution.nodes()[0], distribution.ends
    if nodes.min() >= low - 1e-9 and nodes.max() <= high + 1e-9:
        kind = type(distribution).__name__
        raise ValueError(
            f"a {kind} of sigma {value(sigma):.6g} reaches {reach:.6g} from its middle, beyond its limits, which are "
            f"{half:.6g} away: leave out `tol`, or say by `cpk` how well these are kept"
        )


def limits(tol: Any, what: str, one_sided: bool = False) -> tuple[Any, Any]:
    """The limits that a number or a pair stands for."""
    given = known(as_float(tol, what))
    if given.shape == ():
        given = numpy_of(given).stack([0 * given if one_sided else -given, given])
        if value(given[1]) <= 0:
            raise ValueError(f"{what} must be positive, got {float(value(given[1])):.6g}")
    if given.shape != (2,):
        raise ValueError(f"{what} must be a number or a pair (lower, upper), got shape {given.shape}")
    low, high = value(given[0]), value(given[1])
    if low >= high:
        raise ValueError(f"{what} has limits in the wrong order: {low:.6g}, {high:.6g}")
    return given[0], given[1]


def positive(x: Any, what: str) -> Any:
    x = known(as_float(x, what))
    if np.any(value(x) <= 0):
        raise ValueError(f"{what} must be positive, got {value(x).tolist()!r}")
    return x
