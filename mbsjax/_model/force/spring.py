"""Springs, dampers and actuators: forces along a coordinate or a gauge."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._programs.custom_types import Law, Number
from ..._programs.precision import number
from ..._programs.trees import as_function
from ..gauge import AbstractGauge
from ..joint.joint import check_name
from ..points import Find
from .base import AbstractForce, Moment


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


class Spring(AbstractForce):
    """A spring, with a damper beside it, along a coordinate or a gauge: of the length l it makes the tension
    `stiffness (l - free_length) + preload + damping l'`.

    **Arguments:**

    - `on`: what it acts along: a coordinate by name (`"guide"`, the angle of a revolute for a torsion spring), a
        gauge by name, or a gauge of its own: `Distance("s", "ground", "bob", (0.0, 1.0))` for a spring between points,
        which may have names.
    - `stiffness`: a number, or a function of the extension that gives the tension.
    - `free_length`: where it is relaxed (an angle for a torsion spring).
    - `damping`: a number, or a function of the rate that gives the tension.
    - `preload`: a tension that is there in any position.
    - `acts`: `"both"` ways; in `"tension"` only, like a rope; in `"compression"` only, like a buffer. Where it begins
        to act is an event.

    !!! Example

        >>> Spring("guide", stiffness=1.5, free_length=70.0).name
        'spring on guide'
    """

    name: str = eqx.field(static=True)
    along: str | None = eqx.field(static=True)
    gauge: AbstractGauge | None
    stiffness: Float[Array, ""] | Callable
    free_length: Float[Array, ""]
    damping: Float[Array, ""] | Callable
    preload: Float[Array, ""]
    acts: str = eqx.field(static=True)

    def __init__(
        self,
        on: str | AbstractGauge,
        *,
        stiffness: Law = 0.0,
        free_length: Number = 0.0,
        damping: Law = 0.0,
        preload: Number = 0.0,
        acts: str = "both",
        name: str | None = None,
    ):
        self.along, self.gauge, self.name = _on(on, "spring", name)
        self.stiffness = _law(stiffness, f"the stiffness of {self.name!r}")
        self.free_length = number(free_length, f"the free length of {self.name!r}")
        self.damping = _law(damping, f"the damping of {self.name!r}")
        self.preload = number(preload, f"the preload of {self.name!r}")
        if acts not in ("both", "tension", "compression"):
            raise ValueError(f"`acts` of {self.name!r} must be 'both', 'tension' or 'compression', got {acts!r}")
        self.acts = acts

    @property
    def on(self) -> str | AbstractGauge:
        """What it acts along."""
        return self.along if self.gauge is None else self.gauge  # pyright: ignore

    def located(self, find: Find) -> "Spring":
        return _located(self, find)

    @property
    def needs(self) -> tuple[Any, ...]:
        return (self.on,)

    @property
    def bodies(self) -> tuple[str, ...]:
        return ()

    @property
    def n_switches(self) -> int:
        return int(self.acts != "both")

    def switches(self, at: Moment) -> Float[Array, " n"]:
        return (at.along(self.on)[0] - self.free_length)[None][: self.n_switches]

    def _works(self, sides: Array) -> Array | float:
        if self.acts == "both":
            return 1.0
        return jnp.where((sides[0] > 0) == (self.acts == "tension"), 1.0, 0.0)

    def act(self, at: Moment, sides: Float[Array, " n"]) -> Float[Array, " nv"]:
        push, row = self.push(at, sides)
        return push * row

    def push(self, at: Moment, sides: Float[Array, " n"]) -> tuple[Float[Array, ""], Float[Array, " nv"]]:
        """What it pushes with, the negative of its tension, and how its length changes with the freedoms."""
        length, row = at.along(self.on)
        tension = _value(self.stiffness, length - self.free_length) + self.preload
        tension = tension + _value(self.damping, jnp.sum(row * at.v))
        return -tension * self._works(sides), row

    def strength(self, at: Moment, sides: Float[Array, " n"]) -> Float[Array, ""]:
        """Its tension."""
        return -self.push(at, sides)[0]

    def potential(self, at: Moment, sides: Float[Array, " n"]) -> Float[Array, ""]:
        x = at.along(self.on)[0] - self.free_length
        if callable(self.stiffness):
            stored = x * jnp.sum(_WEIGHTS / 2 * jax.vmap(self.stiffness)(x * (_NODES + 1) / 2))
        else:
            stored = self.stiffness * x**2 / 2
        return (stored + self.preload * x) * self._works(sides)


class Actuator(AbstractForce):
    """A force along a coordinate or a gauge, as a function of (length, rate, time); positive where it lengthens the
    gauge or turns the joint forward.

    **Arguments:**

    - `on`: as for a [`mbsjax.Spring`][].
    - `function`: a number, or the force as a function of (length, rate, time).
    - `switches`: functions of (length, rate, time). Where there are some, `function` gets a fourth argument, for
        each of them whether it is positive. It must not look at their values itself: between events, where one of
        them passes zero, it has to be smooth.

    !!! Example

        A gas that presses on a piston while it moves forward.

        >>> gas = Actuator("piston", lambda x, v, t, on: -100.0 * on[0], switches=[lambda x, v, t: v])
        >>> gas.n_switches
        1
    """

    name: str = eqx.field(static=True)
    along: str | None = eqx.field(static=True)
    gauge: AbstractGauge | None
    function: Callable | Float[Array, ""]
    guards: tuple[Callable, ...]

    def __init__(
        self, on: str | AbstractGauge, function: Law, *, switches: Sequence[Callable] = (), name: str | None = None
    ):
        self.along, self.gauge, self.name = _on(on, "actuator", name)
        zeros = [jnp.zeros(())] * 3
        self.guards = tuple(as_function(f, *zeros) for f in switches)
        if callable(function):
            more = [jnp.zeros(len(self.guards), bool)] if self.guards else []
            self.function = as_function(function, *zeros, *more)
        else:
            self.function = number(function, f"the force of {self.name!r}")

    @property
    def on(self) -> str | AbstractGauge:
        """What it acts along."""
        return self.along if self.gauge is None else self.gauge  # pyright: ignore

    def located(self, find: Find) -> "Actuator":
        return _located(self, find)

    @property
    def needs(self) -> tuple[Any, ...]:
        return (self.on,)

    @property
    def bodies(self) -> tuple[str, ...]:
        return ()

    @property
    def n_switches(self) -> int:
        return len(self.guards)

    def switches(self, at: Moment) -> Float[Array, " n"]:
        length, row = at.along(self.on)
        values = [jnp.asarray(f(length, jnp.sum(row * at.v), at.t), float).reshape(()) for f in self.guards]
        return jnp.stack(values) if values else jnp.zeros(0)

    def act(self, at: Moment, sides: Float[Array, " n"]) -> Float[Array, " nv"]:
        push, row = self.push(at, sides)
        return push * row

    def push(self, at: Moment, sides: Float[Array, " n"]) -> tuple[Float[Array, ""], Float[Array, " nv"]]:
        """What it pushes with, and how what it is along changes with the freedoms."""
        length, row = at.along(self.on)
        if not callable(self.function):
            return self.function, row
        rest = (sides > 0,) if self.guards else ()
        return jnp.asarray(self.function(length, jnp.sum(row * at.v), at.t, *rest), float).reshape(()), row

    def strength(self, at: Moment, sides: Float[Array, " n"]) -> Float[Array, ""]:
        """What it pushes with."""
        return self.push(at, sides)[0]

    def potential(self, at: Moment, sides: Float[Array, " n"]) -> Float[Array, ""]:
        return jnp.zeros(())


def _on(on: Any, kind: str, name: Any) -> tuple[str | None, AbstractGauge | None, str]:
    """What a force acts along, by name or as a gauge of its own; and its own name, by default after that."""
    if not isinstance(on, str | AbstractGauge):
        raise ValueError(f"a {kind} acts along a coordinate or gauge by name, or a gauge of its own, got {on!r}")
    along, gauge = (on, None) if isinstance(on, str) else (None, on)
    name = f"{kind} on {on if isinstance(on, str) else on.name}" if name is None else name
    check_name(name, f"a {kind}", dots=True)
    return along, gauge, name


def _located(force: Any, find: Find) -> Any:
    if force.gauge is None:
        return force
    return eqx.tree_at(lambda f: f.gauge, force, force.gauge.located(find))


def _law(given: Any, what: str) -> Any:
    return as_function(given, jnp.zeros(())) if callable(given) else number(given, what)


def _value(law: Any, x: Array) -> Any:
    return law(x) if callable(law) else law * x
