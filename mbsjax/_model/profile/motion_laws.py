"""Motion laws of cam followers, and the program of a follower over one turn of its cam."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..._programs.custom_types import Numbers
from ..._programs.modules import AbstractModule
from ..._programs.precision import AGREEING, ROUNDING, as_float, look, number, positive
from ..._programs.reprs import by_fields
from ..._programs.trees import Function, as_function, once


def harmonic(x: Numbers) -> Float[Array, "*n"]:
    """A cosine: the least velocity of the six, and acceleration from the first instant.

    !!! Example

        >>> harmonic(1.0).item()
        1.0
    """
    return (1 - jnp.cos(jnp.pi * jnp.asarray(x, float))) / 2


def cycloidal(x: Numbers) -> Float[Array, "*n"]:
    """A sine of acceleration: free of jumps in acceleration.

    !!! Example

        >>> round(cycloidal(0.25).item(), 9) == round(1 / 4 - 1 / (2 * jnp.pi), 9)
        True
    """
    x = jnp.asarray(x, float)
    return x - jnp.sin(2 * jnp.pi * x) / (2 * jnp.pi)


def poly345(x: Numbers) -> Float[Array, "*n"]:
    """The polynomial of degree 5 that starts and ends without acceleration.

    !!! Example

        >>> poly345(0.5).item()
        0.5
    """
    x = jnp.asarray(x, float)
    return x**3 * (10 + x * (-15 + x * 6))


def poly4567(x: Numbers) -> Float[Array, "*n"]:
    """The polynomial of degree 7 that starts and ends without acceleration or jerk.

    !!! Example

        >>> poly4567(0.5).item()
        0.5
    """
    x = jnp.asarray(x, float)
    return x**4 * (35 + x * (-84 + x * (70 + x * -20)))


def mod_trapezoid(x: Numbers) -> Float[Array, "*n"]:
    """The modified trapezoid: the least peak acceleration of the six.

    !!! Example

        >>> round(mod_trapezoid(0.5).item(), 12)
        0.5
    """
    return _rounded_trapezoid(x, 0.25, 0.25)


def mod_sine(x: Numbers) -> Float[Array, "*n"]:
    """The modified sine: low velocity, and a soft change from acceleration to deceleration.

    !!! Example

        >>> round(mod_sine(0.5).item(), 12)
        0.5
    """
    return _rounded_trapezoid(x, 0.25, 0.75)


def dwell(x: Numbers) -> Float[Array, "*n"]:
    """No motion.

    !!! Example

        >>> dwell(0.7).item()
        0.0
    """
    return jnp.zeros_like(jnp.asarray(x, float))


def _rounded_trapezoid(x: Numbers, b: float, d: float) -> Float[Array, "*n"]:
    """Acceleration rises by a quarter of a sine over b/2, stays, falls by half a cosine over d, and so on in mirror
    image (the SCCA family of Norton's handbook)."""
    x = jnp.asarray(x, float)
    pi = np.pi
    peak = 4 * pi**2 / ((pi**2 - 8) * (b**2 - d**2) - 2 * pi * (pi - 2) * b + pi**2)
    u = jnp.where(x <= 0.5, x, 1 - x)
    rising = b / pi * u - (b / pi) ** 2 * jnp.sin(pi * u / b)
    at_rise = b**2 * (1 / 8 - 1 / pi**2)
    constant = u**2 / 2 + b * (1 / pi - 1 / 2) * u + at_rise
    turned = (d / pi) ** 2 * (1 - jnp.cos(pi / d * (u - (1 - d) / 2)))
    falling = (b / pi + (1 - b - d) / 2) * u + turned + at_rise - (1 - d) ** 2 / 8
    y = peak * jnp.where(u <= b / 2, rising, jnp.where(u <= (1 - d) / 2, constant, falling))
    return jnp.where(x <= 0.5, y, 1 - y)


LAWS: dict[str, Callable] = {
    law.__name__: law for law in (harmonic, cycloidal, poly345, poly4567, mod_trapezoid, mod_sine)
}


class Law(AbstractModule):
    """A motion law that is a function, not a module."""

    function: Function

    def __init__(self, function: Callable):
        self.function = as_function(function)

    def __call__(self, x: Numbers) -> Float[Array, "*n"]:
        return jnp.asarray(self.function(x), float)

    __repr__ = by_fields


_DWELL = Law(dwell)


def as_law(given: Any) -> Any:
    """A motion law by its name, a module of a user as it is now, any other function as a `Law`."""
    if isinstance(given, str):
        if given not in LAWS:
            raise ValueError(f"there is no motion law {given!r}; there are {', '.join(LAWS)}")
        given = LAWS[given]
    if not callable(given):
        raise ValueError(f"a motion law must be a function or the name of one, got {given!r}")
    return as_function(given) if isinstance(given, eqx.Module) else Law(given)


class Segment(AbstractModule):
    """A part of a [`mbsjax.Program`][]. Made by [`mbsjax.Rise`][], [`mbsjax.Fall`][] and [`mbsjax.Dwell`][].

    !!! Example

        >>> Segment(cycloidal, 1.0, 5.0).height.item()
        5.0
    """

    law: Callable
    angle: Float[Array, ""]
    height: Float[Array, ""]

    def __init__(self, law: Any, angle: Any, height: Any):
        self.law = as_law(law)
        self.angle = positive(angle, "the cam angle of a segment")
        self.height = number(height, "the height of a segment")

    @property
    def dwells(self) -> bool:
        return isinstance(self.law, Law) and self.law.function.rest == _DWELL.function.rest

    __repr__ = by_fields


def Rise(law: Any, angle: Any, height: Any) -> Segment:
    """The follower rises.

    **Arguments:**

    - `law`: one of `"harmonic"`, `"cycloidal"`, `"poly345"`, `"poly4567"`, `"mod_trapezoid"`, `"mod_sine"`, or any
        function of JAX operations from 0 to 1 over [0, 1]. As an `equinox.Module` its numbers are leaves.
    - `angle`: by which the cam turns meanwhile, in radians.
    - `height`: the change of the lift; an angle for oscillating followers.

    !!! Example

        >>> Rise("poly345", 1.5, 20.0).height.item()
        20.0
    """
    return Segment(law, angle, height)


def Fall(law: Any, angle: Any, height: Any) -> Segment:
    """The follower falls by `height`. Arguments as for [`mbsjax.Rise`][].

    !!! Example

        >>> Fall("poly345", 1.5, 20.0).height.item()
        -20.0
    """
    return Segment(law, angle, -number(height, "the height of a segment"))


def Dwell(angle: Any) -> Segment:
    """The follower rests while the cam turns by `angle`.

    !!! Example

        >>> Dwell(1.5).height.item()
        0.0
    """
    return Segment(dwell, angle, 0.0)


class SVAJ(NamedTuple):
    """Lift, velocity, acceleration and jerk."""

    lift: Float[Array, "*n"]
    velocity: Float[Array, "*n"]
    acceleration: Float[Array, "*n"]
    jerk: Float[Array, "*n"]

    __repr__ = by_fields


class Program(AbstractModule):
    """What the follower does during one turn of the cam, from cam angle 0 and lift 0 on.

    **Arguments:**

    - `segments`: made by [`mbsjax.Rise`][], [`mbsjax.Fall`][] and [`mbsjax.Dwell`][]; their angles make a full turn,
        and the lift returns to its start.

    !!! Example

        >>> quarter = jnp.pi / 2
        >>> lift = Program([Rise("cycloidal", quarter, 20.0), Dwell(quarter), Fall("harmonic", 2 * quarter, 20.0)])
        >>> lift(jnp.array([quarter / 2, quarter, 3 * quarter])).round(9).tolist()
        [10.0, 20.0, 10.0]
    """

    segments: tuple[Segment, ...]

    def __init__(self, segments: Iterable[Any]):
        self.segments = tuple(segments)
        if not self.segments:
            raise ValueError("a program needs at least one segment")
        for k, segment in enumerate(self.segments):
            if not isinstance(segment, Segment):
                raise ValueError(f"segment {k} of a program must be a Rise, a Fall or a Dwell, got {segment!r}")
        look(Program._check, self)

    def _check(self) -> None:
        for k, segment in enumerate(self.segments):
            if not segment.dwells:
                ends = [float(segment.law(x)) for x in (0.0, 1.0)]
                if not np.allclose(ends, (0.0, 1.0), atol=ROUNDING()):
                    raise ValueError(f"the law of segment {k} of a program must go from 0 to 1, got {ends}")
        missing = 2 * np.pi - sum(float(s.angle) for s in self.segments)
        if abs(missing) > AGREEING():
            raise ValueError(
                f"the segments of a program {'fall short of' if missing > 0 else 'exceed'} a full turn by "
                f"{abs(missing):.6g} rad ({abs(np.rad2deg(missing)):.6g} deg)"
            )
        heights = [float(s.height) for s in self.segments]
        if abs(sum(heights)) > AGREEING() * max(map(abs, heights)):
            raise ValueError(f"the lift of a program does not return to its start: it ends {sum(heights):+.6g} away")

    @property
    def starts(self) -> Float[Array, " n"]:
        """The cam angles at which the segments begin."""
        return _sums([s.angle for s in self.segments])

    @property
    def levels(self) -> Float[Array, " n"]:
        """The lifts at which the segments begin."""
        return _sums([s.height for s in self.segments])

    def on(self, k: Int[Array, "*n"], theta: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """The lift by the law of segment `k`, which goes on beyond its ends."""
        angles, heights = (jnp.stack([getattr(s, name) for s in self.segments]) for name in ("angle", "height"))
        plain = lambda law: isinstance(law, Law) and not law.function.arrays
        keys = [s.law.function.rest if plain(s.law) else i for i, s in enumerate(self.segments)]
        laws = {key: s.law for key, s in zip(keys, self.segments)}  # functions without numbers only once
        which = jnp.asarray([list(laws).index(key) for key in keys])[k]
        x = (theta - self.starts[k]) / angles[k]
        y = jnp.zeros_like(x)
        for i, law in enumerate(laws.values()):
            y = jnp.where(which == i, law(x), y)
        return self.levels[k] + heights[k] * y

    def __call__(self, theta: Numbers) -> Float[Array, "*n"]:
        """The lift at cam angles in radians; where segments meet, the later one holds."""
        return _lift(self, as_float(theta, "a cam angle"))

    def svaj(self, theta: Numbers, speed: Numbers = 1.0) -> SVAJ:
        """Lift, velocity, acceleration and jerk: per radian, or at a speed of the cam in radians per unit of time.

        !!! Example

            >>> up_and_down = Program([Rise("harmonic", jnp.pi, 2.0), Fall("harmonic", jnp.pi, 2.0)])
            >>> [round(x.item(), 9) for x in up_and_down.svaj(1.5 * jnp.pi, speed=10.0)[:2]]
            [1.0, -10.0]
        """
        theta, speed = as_float(theta, "a cam angle"), as_float(speed, "the speed of a cam")
        return SVAJ(*(d * speed**k for k, d in enumerate(_derivatives(self, theta))))

    __repr__ = by_fields


def _sums(values: list[Array]) -> Array:
    return jnp.concatenate([jnp.zeros(1), jnp.cumsum(jnp.stack(values))[:-1]])


@once
def _lift(program: Program, theta: Float[Array, "*n"]) -> Float[Array, "*n"]:
    theta = theta - 2 * jnp.pi * jax.lax.stop_gradient(jnp.floor(theta / (2 * jnp.pi)))
    k = jnp.sum(theta[..., None] >= program.starts, -1) - 1
    return program.on(k, theta)


@once
def _derivatives(program: Program, theta: Float[Array, "*n"]) -> list[Float[Array, "*n"]]:
    f: Callable = lambda x: _lift(program, x)
    found = [f(theta)]
    for _ in range(3):
        f = slope(f)
        found.append(f(theta))
    return found


def slope(f: Callable) -> Callable:
    """The derivative of a function of one number (or, elementwise, of many)."""
    return lambda x: jax.jvp(f, (x,), (jnp.ones_like(x),))[1]


class Peak(NamedTuple):
    """An extreme value, and where it occurs."""

    at: Float[Array, "*n"]
    value: Float[Array, "*n"]

    __repr__ = by_fields


def peak(f: Callable, start: Float[Array, ""] | float, end: Float[Array, ""] | float) -> Peak:
    """The largest value, between two numbers, of each of the functions of which `f` gives the list. Derivatives of
    the value are right, those of the place are not."""
    n = 129
    across = lambda part: start + (end - start) * part
    values = jax.vmap(lambda part: jnp.stack(f(across(part))))

    def zoom(interval: tuple[Array, Array, Array], __: None) -> tuple[tuple[Array, Array, Array], None]:
        low, high, _ = interval
        x = jnp.linspace(low, high, n, axis=1)
        m = len(low)
        found = values(x.reshape(-1)).reshape(m, n, m)  # each function on the grids of all: it is compiled only once
        best = jnp.argmax(found[jnp.arange(m), :, jnp.arange(m)], 1)
        pick = lambda k: x[jnp.arange(m), jnp.clip(k, 0, n - 1)]
        return (pick(best - 1), pick(best + 1), pick(best)), None

    m = len(jax.eval_shape(f, jnp.asarray(start, float)))
    (_, _, part), _ = jax.lax.scan(zoom, (jnp.zeros(m), jnp.ones(m), jnp.zeros(m)), None, length=6)
    part = jax.lax.stop_gradient(part)
    return Peak(across(part), jnp.diagonal(values(part)))


class PeakFactors(NamedTuple):
    """The greatest velocity, acceleration and jerk of a law, for a rise of 1 over a unit of angle."""

    velocity: Float[Array, ""]
    acceleration: Float[Array, ""]
    jerk: Float[Array, ""]

    __repr__ = by_fields


def peak_factors(law: Any) -> PeakFactors:
    """Cv, Ca and Cj of a motion law: a rise h over the angle beta has the peak velocity Cv h / beta, acceleration
    Ca h / beta^2 and jerk Cj h / beta^3, per radian.

    !!! Example

        >>> [round(x.item(), 6) for x in peak_factors("cycloidal")]
        [2.0, 6.283185, 39.478418]
    """
    return _peak_factors(as_law(law))


@once
def _peak_factors(law: Callable) -> PeakFactors:
    v = slope(law)
    a = slope(v)
    j = slope(a)
    return PeakFactors(*peak(lambda x: [jnp.abs(f(x)) for f in (v, a, j)], 0.0, 1.0).value)
