"""Drivers, and the equations of a driven mechanism."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .._events.places import Places
from .._model.mechanism import Mechanism
from .._numerics.groups import lanewise, pick
from .._numerics.linalg import least_squares
from .._programs.custom_types import Number
from .._programs.names import unknown
from .._programs.precision import as_float, number
from .._programs.reprs import by_fields
from .._programs.trees import as_function, frozen
from . import equations
from .mode import Mode
from .system import Rotations, System, Targets, system


class Uniform(eqx.Module):
    """The motion `start + speed t`; `speed` and `start` are leaves."""

    speed: Float[Array, ""]
    start: Float[Array, ""]

    def __call__(self, t: Float[Array, ""]) -> Float[Array, ""]:
        return self.start + self.speed * t

    __repr__ = by_fields


def constant_speed(speed: Number, start: Number = 0.0) -> Uniform:
    """A driver that begins at `start` and moves with `speed`. Any function of time, made of JAX
    operations, is a driver too.

    !!! Example

        >>> constant_speed(2.0, start=1.0)(jnp.array(0.5)).item()
        2.0
    """
    return Uniform(number(speed, "the speed of a driver"), number(start, "the start of a driver"))


class Kept(eqx.Module):
    """Unknowns that the equations leave free: they stay where an estimate has them."""

    estimate: Float[Array, " nq"]
    which: Bool[Array, " nu"]


class Problem(eqx.Module):
    """Loops and gauges of a mechanism, some coordinates and gauges prescribed in time.

    Prescribed coordinates are not unknowns: they are put in their places. Rows and unknowns are
    scaled, lengths by the size of the mechanism, so that units do not matter. Lanes may stand behind, as
    in `System`.
    """

    system: System
    functions: tuple[Callable, ...]  # of the driven coordinates,
    columns: tuple[int, ...] = eqx.field(static=True)  # which are these freedoms,
    slots: tuple[int, ...] = eqx.field(static=True)  # stored here
    gauge_functions: tuple[Callable, ...]
    gauges: tuple[int, ...] = eqx.field(static=True)
    mode: Mode | None = None  # of the contacts
    kept: Kept | None = None

    def with_mode(self, mode: Mode | None) -> "Problem":
        """The same with the contacts in another mode."""
        return dataclasses.replace(self, mode=mode)

    def keeping(self, kept: Kept) -> "Problem":
        """The same with equations for what would be free."""
        return dataclasses.replace(self, kept=kept)

    def on_closest_pairs(self, q: Float[Array, "nq *lanes"]) -> "Problem":
        """The same with every contact on the elements that are closest where the coordinates are q."""
        if self.mode is None:
            return self
        found = self.system.closest_pairs(self.system.planes(self.system.poses(q)))
        return self.with_mode(self.mode._replace(places=Places(found.e1, found.e2, found.s1, found.s2)))

    @property
    def row_sizes(self) -> Float[Array, "m *lanes"]:
        sizes = self.system.row_sizes(self.gauges, self.mode)
        if self.kept is None:
            return sizes
        return jnp.concatenate([sizes, frozen(pick(self.system.column_sizes(), self.unknown))])

    @property
    def unknown(self) -> np.ndarray:
        return np.setdiff1d(np.arange(len(self.system.layout.lengths)), self.columns)

    @property
    def singletons(self) -> tuple[tuple[int, int], ...]:
        """Rows and unknowns that can be left for last: the angle of a revolute chord is an unknown of one row only,
        its loop's rotation about it, whatever the other unknowns do."""
        plan = self.system.layout
        about = plan.group.n_rotations - 1
        columns = [int(plan.columns[chord][0]) for chord in plan.hinges]
        rows = [plan.topology.chords.index(chord) * plan.group.rows + about for chord in plan.hinges]
        unknown = self.unknown.tolist()
        return tuple((row, unknown.index(c)) for row, c in zip(rows, columns, strict=True) if c in unknown)

    def prescribed(self, t: Float[Array, "*lanes"]) -> Float[Array, "nd *lanes"]:
        """Where the drivers want their coordinates."""
        return _values(self.functions, t)

    def speeds(self, t: Float[Array, "*lanes"]) -> Float[Array, "nd *lanes"]:
        """How fast the drivers move their coordinates."""
        return jax.jvp(self.prescribed, (t,), (jnp.ones_like(t),))[1]

    def targets(self, t: Float[Array, "*lanes"]) -> Targets:
        """What the gauges are to read."""
        return tuple(zip(self.gauges, _values(self.gauge_functions, t), strict=True))

    def place(self, q: Float[Array, "nq *lanes"], t: Float[Array, "*lanes"]) -> Float[Array, "nq *lanes"]:
        """q with the driven coordinates where they have to be."""
        if not self.slots:
            return q
        source = np.arange(q.shape[0])
        source[list(self.slots)] = q.shape[0] + np.arange(len(self.slots))
        return pick(jnp.concatenate([q, self.prescribed(t)]), source)

    def spread(
        self, y: Float[Array, "nu *lanes"], driven: Float[Array, "nd *lanes"] | None = None
    ) -> Float[Array, "nv *lanes"]:
        """Freedoms from scaled unknowns and from what the drivers do."""
        y = y * pick(self.system.column_sizes(), self.unknown)
        if not self.columns:
            return y
        driven = jnp.zeros((len(self.columns), *y.shape[1:])) if driven is None else driven
        return pick(jnp.concatenate([y, driven]), np.argsort([*self.unknown, *self.columns]))

    def move(self, q: Float[Array, "nq *lanes"], y: Float[Array, "nu *lanes"]) -> Float[Array, "nq *lanes"]:
        """q after a scaled step in the unknowns."""
        return self.system.retract(q, self.spread(y))

    def residual(
        self, q: Float[Array, "nq *lanes"], t: Float[Array, "*lanes"], afar: bool = False
    ) -> Float[Array, "m *lanes"]:
        """What the loops, gauges and contacts lack, scaled."""
        q = self.place(q, t)
        r = equations.residual(self.system, q, self.targets(t), self.mode, afar)
        return (r if self.kept is None else jnp.concatenate([r, self._beside(q)[0]])) / self.row_sizes

    def _beside(self, q: Float[Array, " nq"]) -> tuple[Float[Array, " nu"], Float[Array, "nu nv"]]:
        """How far from the estimate those unknowns are that are kept there, and how that changes with the freedoms."""
        assert self.kept is not None
        off, slopes = (pick(x, self.unknown) for x in self.system.beside(q, self.kept.estimate))
        return jnp.where(self.kept.which, off, 0.0), jnp.where(self.kept.which[:, None], slopes, 0.0)

    def linearize(
        self,
        q: Float[Array, "nq *lanes"],
        t: Float[Array, "*lanes"],
        rotations: Rotations | None = None,
        afar: bool = False,
    ) -> tuple[Float[Array, "m *lanes"], Float[Array, "m nu *lanes"], Float[Array, "m *lanes"]]:
        """The residual, its derivative in the unknowns, and its derivative in time. Where `rotations` are given,
        q is one that was put in place."""
        q = self.place(q, t) if rotations is None else q
        r, J = equations.linearize(self.system, q, self.targets(t), self.mode, rotations, afar)
        in_time = jnp.zeros_like(r)
        if self.columns:
            in_time = jnp.sum(pick(J, np.array(self.columns), 1) * self.speeds(t)[None], 1)
        if self.gauges:
            end = r.shape[0] - (0 if self.mode is None else self.mode.owner.shape[0])
            at = end - len(self.gauges)
            in_time = jnp.concatenate([in_time[:at], in_time[at:end] + self.drift(t), in_time[end:]])
        if self.mode is not None:
            n = r.shape[0] - self.mode.owner.shape[0]
            away = jnp.where(self.mode.owner >= 0, 0.0, self.mode.drift)
            in_time = jnp.concatenate([in_time[:n] * self.mode.clock, in_time[n:] * self.mode.clock - away])
        if self.kept is not None:
            off, slopes = self._beside(q)
            r, in_time = jnp.concatenate([r, off]), jnp.concatenate([in_time, jnp.zeros_like(off)])
            J = jnp.concatenate([J, slopes])
        rows, columns = self.row_sizes, self.system.column_sizes()
        J = pick(J * columns[None] / rows[:, None], self.unknown, 1)
        return r / rows, J, in_time / rows

    def second_rate(self, q: Array, v: Array, a: Array, t: Float[Array, ""]) -> Float[Array, " m"]:
        """The second rate in time of `residual`, where the freedoms move with v and a."""
        rows = equations.second_rate(self.system, q, v, a, lambda s: self.targets(t + s), self.mode)
        return rows / self.row_sizes

    def drift(self, t: Float[Array, "*lanes"]) -> Float[Array, "ng *lanes"]:
        """The rates of the gauges' residuals at rest: the targets move, and the poses do not matter."""

        def at_rest(t: Array) -> Array:
            origin = self.system.layout.group.origin(t)
            bodies = self.system.layout.gauge_bodies
            value = lanewise(lambda gauge, *args: gauge.residual(*args), t.ndim)
            return jnp.stack([value(self.system.gauges[i], x, *[origin] * len(bodies[i])) for i, x in self.targets(t)])

        return jax.jvp(at_rest, (t,), (jnp.ones_like(t),))[1]


def _values(functions: tuple[Callable, ...], t: Float[Array, "*lanes"]) -> Float[Array, "n *lanes"]:
    if not functions:
        return jnp.zeros((0, *t.shape))
    call = lanewise(lambda f, t: jnp.asarray(f(t), jnp.result_type(float)).reshape(()), t.ndim)
    return jnp.stack([call(f, t) for f in functions])


def problem(mech: Mechanism, drive: Mapping[str, Any], positions: Mapping[str, Any] | None = None) -> Problem:
    """The equations of `mech` with the coordinates and gauges in `drive` and `positions` prescribed, the gauges that
    have a value held."""
    gauge_names = [g.name for g in mech.gauges]
    functions, columns, slots = [], [], []
    held: dict[int, Callable] = {i: Hold(g.value) for i, g in enumerate(mech.gauges) if g.value is not None}
    prescribed = [("driver", *x) for x in drive.items()] + [("position", *x) for x in (positions or {}).items()]
    for what, name, f in prescribed:
        f = _driver(name, f) if callable(f) else Hold(_position(f, f"the {what} of {name!r}"))
        if name in gauge_names:
            held[gauge_names.index(name)] = f
        elif name.partition(".")[0] in [j.name for j in mech.joints]:
            if len(mech.freedoms(name)) != 1:
                several = [c for c in mech.coordinates if c.startswith(f"{name}.")]
                raise ValueError(
                    f"a {what} of joint {name!r} must name one coordinate: {', '.join(several) or 'it has none'}"
                )
            functions.append(f)
            columns += mech.freedoms(name)
            slots += mech.stored(name)
            if columns[-1] in columns[:-1]:
                raise ValueError(f"{mech.coordinates[columns[-1]]!r} is prescribed twice, the second time as {name!r}")
        else:
            raise ValueError(
                f"a {what} names {unknown('coordinate or gauge', name, [*mech.coordinates, *gauge_names])}"
            )
    gauges = tuple(sorted(held))
    return Problem(system(mech), tuple(functions), tuple(columns), tuple(slots), tuple(held[i] for i in gauges), gauges)


def _position(given: Any, what: str) -> Float[Array, ""]:
    """One number, alone or in a row."""
    x = as_float(given, what)
    if x.size != 1:
        raise ValueError(f"{what} must be one number, or a function of time, got {given!r}")
    return x.reshape(())


def _driver(name: str, f: Callable) -> Any:
    """A function of time as a driver: one number, made of JAX operations."""
    t = jnp.zeros(())
    try:
        f = as_function(f, t)
        found = _number.eval_shape(f, t).shape
    except (jax.errors.JAXTypeError, TypeError, ValueError) as error:
        raise ValueError(
            f"the driver of {name!r} cannot be evaluated: it must give one number, and be made of JAX operations "
            f"(jnp.sin and jnp.where, not math.sin and if): {type(error).__name__}: {str(error).splitlines()[0]}"
        ) from error
    if found not in ((), (1,)):
        raise ValueError(f"the driver of {name!r} must give one number, got shape {found}")
    return f


@jax.jit
def _number(f: Callable, t: Array) -> Array:
    return jnp.asarray(f(t), float)


class Hold(eqx.Module):
    """A driver that does not move."""

    value: Float[Array, ""]

    def __call__(self, t: Float[Array, ""]) -> Float[Array, ""]:
        return self.value

    __repr__ = by_fields


@eqx.filter_custom_jvp
def root(problem: Problem, q: Float[Array, " nq"], t: Float[Array, ""]) -> Float[Array, " nq"]:
    """A position that was found, with the derivatives of the exact root.

    They come from the implicit function theorem, J dq = -dr, to any order and in both modes; how `q` was
    found does not enter them (Haug 3.7.12).
    """
    return q


@root.def_jvp
def _root_jvp(primals, tangents):
    problem, q, t = primals
    problem_dot, _, t_dot = tangents
    q = root(problem, q, t)
    r_dot, driven_dot = (
        _slope(f, (problem, t), (problem_dot, t_dot)) for f in (lambda p, s: p.residual(q, s), Problem.prescribed)
    )
    _, J, _ = problem.linearize(q, t)
    y_dot = -least_squares(J, refine=1)(r_dot[:, None])[:, 0]
    d_dot = problem.spread(y_dot, driven_dot)
    return q, jax.jvp(lambda d: problem.system.retract(q, d), (jnp.zeros_like(d_dot),), (d_dot,))[1]


def _slope(f: Callable, primals: tuple, tangents: tuple) -> Array:
    """The derivative of f along the tangents, zero also where f depends on nothing that has one."""
    value, slope = eqx.filter_jvp(f, primals, tangents)
    return jnp.zeros_like(value) if slope is None else slope


@eqx.filter_custom_jvp
def lock_up(problem: Problem, q: Array, t: Array) -> tuple[Array, Array]:
    """Where and when a mechanism locks, with derivatives to first order.

    Where J is singular, J phi = 0 and beta J = 0, the residual can vanish only if beta r does: beta dr = -beta r_t dt
    (the theorem of the alternative, Haug 3.7). That it stays singular, d(beta J phi) = 0, tells how far it moves along
    phi. q, the last position found, is some 1e-5 short of the singular one: Newton's method leads there.
    """
    return q, t


@lock_up.def_jvp
def _lock_up_jvp(primals, tangents):
    problem, q, t = primals
    locked, still = jnp.isfinite(t), frozen(problem)
    now, step = jnp.where(locked, t, 0.0), float(jnp.finfo(q.dtype).eps) ** 0.5

    def here_and_on(q: Array, phi: Array) -> Array:
        return jnp.stack([q, still.move(q, step * phi)])

    def rise(pair: Array) -> Array:
        """How something changes along phi."""
        return (pair[1] - pair[0]) / step

    def unit(x: Array) -> Array:
        return jnp.where(locked, x / jnp.linalg.norm(x), 0.0)

    def newton(state: tuple[Array, Array, Array], first: Array):
        """Null vectors, of a matrix that is not singular with them, and the position where J is."""
        q, phi, beta = state
        _, J, in_time = jax.vmap(still.linearize, (0, None))(here_and_on(q, phi), now)
        bordered, bend = J[0] + beta[:, None] * phi, rise(J)
        ahead = beta @ J[0] @ phi / jnp.where(locked & ~first, beta @ bend @ phi, 1.0)
        # velocities grow along the null vector
        null = unit(least_squares(bordered, refine=1)(jnp.where(first, -in_time[0], beta)[:, None])[:, 0])
        other = unit(bordered @ jnp.linalg.solve(bordered.T @ bordered, null))
        return (still.move(q, -ahead * phi), null, other), (q, phi, beta, bordered, bend, in_time)

    nothing = jnp.zeros(len(problem.unknown)), jnp.zeros(problem.row_sizes.shape[0])
    _, steps = jax.lax.scan(newton, (q, *nothing), jnp.arange(4) == 0)
    there, phi, beta, bordered, bend, in_time = frozen([x[-1] for x in steps])
    both = here_and_on(there, phi)
    dr = _slope(lambda p: jax.vmap(p.residual, (0, None))(both, now), (problem,), (tangents[0],))
    dt = -jnp.dot(beta, dr[0]) / jnp.where(locked, jnp.dot(beta, in_time[0]), 1.0)
    y = -least_squares(bordered, refine=1)((dr[0] + in_time[0] * dt)[:, None])[:, 0]
    unbalanced = jnp.dot(beta, rise(dr) + bend @ y + rise(in_time) * dt)
    y = y - unbalanced / jnp.where(locked, beta @ bend @ phi, 1.0) * phi
    driven = _slope(lambda p: p.prescribed(now), (problem,), (tangents[0],)) + still.speeds(now) * dt
    d = still.spread(y, driven)
    dq = jax.jvp(lambda d: still.system.retract(q, d), (jnp.zeros_like(d),), (d,))[1]
    return (q, t), (jnp.where(locked, dq, 0.0), jnp.where(locked, dt, 0.0))
