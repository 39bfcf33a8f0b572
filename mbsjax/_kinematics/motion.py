"""Driven motion: positions, velocities and accelerations on a time grid."""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .._events.closure import if_all_closed, is_closed
from .._events.kinds import EVENTS
from .._events.log import Events
from .._events.results import RESULTS, result_of
from .._model.mechanism import Mechanism
from .._model.profile.closest_pair import ClosestPair
from .._numerics.groups import SE2
from .._numerics.linalg import determinant, least_squares
from .._numerics.rates import derivatives_at_zero
from .._programs.batch import lane_by_lane, single
from .._programs.called import beforehand
from .._programs.custom_types import ByName, Laws, Numbers
from .._programs.precision import is_concrete, known, value, visible, whole
from .._programs.reprs import brief, has_numbers, head
from .._programs.trees import frozen, once
from .assembly import check_closed
from .continuation import follow
from .drive import Problem, lock_up, problem as make_problem, root
from .loop_closure import Estimate, close_loops, guess, with_closed_contacts
from .mobility import check_drivers, counted_freedoms, spare_freedoms
from .mode import Mode
from .modes import start_mode
from .replay import event_times
from .run import AbstractRun, output_times
from .start import check_start, closest_pairs_and_poses, overlapping
from .track import ContactReader, ContactTrack, check_kind


class Motion(AbstractRun[ContactTrack]):
    """A driven motion. Arrays have one row for each output time; rows after `stopped_at` are NaN.

    - `ts`: the output times.
    - `q`, `v`, `a`: stored coordinates of all joints, velocities and accelerations of all degrees of freedom.
    - `residual`: the largest residual of a loop or gauge at each time, in the mechanism's units.
    - `crossed_at`: for each output time, when on the way to it the motion passed a singular position from which
        it could have gone on along another branch; infinite if it did not. See [`mbsjax.Motion.bifurcations`][].
    - `branch`: which way the mechanism is assembled at the first time: the sign of the determinant of its equations,
        which changes only through a singular position; 0 where these are redundant.
    - `stopped_at`: when the mechanism locked; infinite if it did not.
    - `result`: a member of [`mbsjax.RESULTS`][].
    - `events`: how the contacts changed, an [`mbsjax.Events`][]; None without contacts.
    - `estimate`: where its assembly began; `print(motion)` tells which given estimates were not followed.
    - `problem`: its equations, drivers included.

    `motion["O"]` is a [`mbsjax.Track`][] with the `q`, `v`, `a` of a joint, of one coordinate
    (`"sleeve.travel"`), or of a gauge; of a contact it is a [`mbsjax.ContactTrack`][]. `motion.coordinate("O")`,
    `motion.gauge(...)` and `motion.contact(...)` read one of a kind, which an editor then knows.
    """

    mech: Mechanism
    ts: Float[Array, " times"]
    q: Float[Array, "times nq"]
    v: Float[Array, "times nv"]
    a: Float[Array, "times nv"]
    residual: Float[Array, " times"]
    crossed_at: Float[Array, " times"]
    branch: Int[Array, ""]
    stopped_at: Float[Array, ""]
    result: RESULTS
    mode: Mode | None
    events: Events | None
    estimate: Estimate
    problem: Problem

    @lane_by_lane
    def contact(self, name: str) -> ContactTrack:
        """What there is to read of a contact.

        !!! Example

            Two discs of radius 1, the second of which goes up from (0, 3): the gap is 1, then 2.

            >>> import mbsjax as mbs
            >>> disc = mbs.disc(1.0)
            >>> discs = mbs.Mechanism(
            ...     [mbs.Body("ground", profiles={"peg": disc}), mbs.Body("bob", profiles={"rim": disc})],
            ...     [mbs.Prismatic("y", "ground", "bob", (0.0, 3.0), axis=(0.0, 1.0)),
            ...      mbs.Contact("C", "ground.peg", "bob.rim")])
            >>> motion = mbs.kinematics(discs, {"y": mbs.constant_speed(1.0)}, jnp.array([0.0, 1.0]))
            >>> motion.contact("C").gap.round(9).tolist(), motion.contact("C").active.tolist()
            ([1.0, 2.0], [False, False])
        """
        check_kind(self.mech, name, "contact")
        assert self.mode is not None
        return _contact_tracks(ContactReader(self.mech, name), self.q, self.v, self.a, self.mode)

    def sources(self) -> list[str]:
        return [contact.name for contact in self.mech.contacts]

    def more(self) -> dict[str, Any]:
        return {"residual": self.residual}

    def __repr__(self) -> str:
        return head(str(self))

    def __str__(self) -> str:
        if not hasattr(self.q, "shape"):
            return brief(self, q=self.q)
        many = f"Batch of shape {self.batch}: m" if self.batch else "M"
        n, names = self.q.shape[-2], ", ".join(self.mech.coordinates)
        lines = [f"{many}otion at {n} times of the coordinates {names}"]
        if has_numbers(self.q, self.ts) and not self.batch:
            lines[0] += f", t = {float(self.ts[0]):.6g} to {float(self.ts[-1]):.6g}"
            lines.append(f"  largest residual {float(np.nan_to_num(self.residual).max(initial=0.0)):.1e}")
            lines += [f"  {told}" for told in self.estimate.overruled(self.mech, self.q[0])]
            lines += [f"  passed a bifurcation at t = {t:.9g}" for t in self.bifurcations()]
            if self.events is not None:
                lines += [f"  {event}" for event in self.events.list(self.mech)]
            if bool(self.result != RESULTS.successful):
                lines.append(f"  at t = {float(self.stopped_at):.9g}: {RESULTS[self.result]}")
        return "\n".join(lines)

    def bifurcations(self) -> list[float]:
        """When the motion passed a position from which it could have gone on along another branch, to about 1e-8 of
        the time covered."""
        single(self, "bifurcations can be listed")
        return [float(t) for t in self.crossed_at if np.isfinite(t)]

    @property
    def holding(self) -> str:
        """The contacts that are active where the motion stopped, by name, and the one that jammed it."""
        if self.mode is None or (seen := visible(self.events)) is None:
            return ""
        single(self, "what holds it can be told")
        (events,) = seen
        n = int(events.count)
        names = [c.name for c, on in zip(self.mech.contacts, np.asarray(events.active_last)) if on]
        if n and EVENTS[int(events.kind[n - 1])] == "jammed":
            names.append(self.mech.contacts[int(events.contact[n - 1])].name)
        return ", ".join(map(repr, dict.fromkeys(names)))


def kinematics(
    mech: Mechanism,
    drive: Laws,
    ts: Numbers,
    *,
    estimate: ByName | Array | None = None,
    max_steps: int = 1000,
    max_events: int = 64,
    throw: bool = True,
) -> Motion:
    """Follows a mechanism whose degrees of freedom are all driven.

    The position at the first time is assembled from the estimate; from there the branch is kept: every
    step is predicted from the motion so far, corrected by Newton, and halved where Newton does not contract.

    Contacts change on the way (thesis 2.5): those that close become active, active ones go on from element to element,
    and open as their `hold` says. Every change is located, and listed in `motion.events`.

    **Arguments:**

    - `mech`: the mechanism.
    - `drive`: for each driven coordinate or gauge, by name, a function of time (or a number, to hold
        it). There must be as many as the mechanism has degrees of freedom. With contacts there may be fewer: what
        is neither driven nor held by an active contact rests.
    - `ts`: the output times, increasing.
    - `estimate`: as in [`mbsjax.assemble`][], for the first time.
    - `max_steps`: how many steps to allow between two output times.
    - `max_events`: how many changes of contacts to allow.
    - `throw`: whether to raise when the mechanism cannot be assembled or locks. Under `jit` or `vmap`,
        or with `throw=False`, look at `.result`.

    **Returns:** an [`mbsjax.Motion`][]. Derivatives with respect to any number of the mechanism or of
    the drivers come from the implicit function theorem, in forward and in reverse mode.

    !!! Example

        >>> import mbsjax as mbs
        >>> slider_crank = mbs.Mechanism(
        ...     [mbs.Body("crank"), mbs.Body("rod"), mbs.Body("slider")],
        ...     [mbs.Revolute("A", "ground", "crank"), mbs.Revolute("B", "crank", "rod", (3.0, 0.0)),
        ...      mbs.Revolute("C", "rod", "slider", (5.0, 0.0)), mbs.Prismatic("P", "ground", "slider")])
        >>> motion = mbs.kinematics(slider_crank, {"A": mbs.constant_speed(1.0)}, jnp.array([0.0, jnp.pi / 2]),
        ...                         estimate={"P": 8.0})
        >>> motion["P"].q.round(9).tolist()
        [8.0, 4.0]
    """
    max_steps, max_events = whole(max_steps, "`max_steps`", 1), whole(max_events, "`max_events`", 0)
    problem = make_problem(mech, drive)
    ts = _increasing(ts)
    assembling = with_closed_contacts(mech, problem)
    begin = guess(mech, problem, estimate)
    events = max_events if mech.contacts else 0
    t0 = jnp.asarray(known(ts)[0])
    _prepare(mech, problem, assembling, begin, ts, max_steps, events)
    q0, _, closed, *_ = close_loops(assembling, begin, 200, t0)
    begins = _start(problem, q0, t0, spare_freedoms(problem, q0, t0), _active(mech)) if mech.contacts else None
    if throw:
        _check_beginning(mech, problem, assembling, begin, q0, closed, t0, begins)
    if begins is not None:
        closed, problem = closed & begins.fits, problem.with_mode(begins.mode)
    found = _run(problem, q0, closed, ts, max_steps, events)
    motion = Motion(mech, ts, *found, estimate=begin, problem=problem.with_mode(None))
    if begins is not None:
        clear = ~overlapping(begins.near[0], frozen(problem.system.size), begins.mode.active)
        motion = dataclasses.replace(motion, result=RESULTS.where(clear, motion.result, RESULTS.overlapping))
    return _checked(motion) if throw else motion


def _increasing(ts: Any) -> Array:
    ts = output_times(ts)
    if np.any(np.diff(value(ts)) <= 0):
        raise ValueError("the output times must increase")
    return ts


def _check_beginning(
    mech: Mechanism,
    problem: Problem,
    assembling: Problem,
    begin: Estimate,
    q: Array,
    closed: Array,
    t: Array,
    begins: "_Start | None",
) -> None:
    """Raises where drivers do not fit, loops stay open, bodies overlap or contacts cannot be active at the first time,
    if anybody can look."""
    if (seen := visible(mech, problem, q, closed, t, begins)) is None:
        return
    mech_, problem, q_, closed_, t_, begins = seen
    check_drivers(mech_, problem, q_, bool(closed_), t_)
    check_closed(mech, assembling, begin, q, closed, t)
    if begins is not None:
        check_start(mech_, *begins.near)
        if not begins.fits:
            names = [c.name for c in mech.contacts if c.active]
            raise ValueError(f"contacts {names} cannot all be active: together with the drivers they hold too much")


def _active(mech: Mechanism) -> tuple[int, ...]:
    return tuple(k for k, contact in enumerate(mech.contacts) if contact.active)


def _prepare(
    mech: Mechanism, problem: Problem, assembling: Problem, begin: Estimate, ts: Array, max_steps: int, events: int
) -> None:
    """The program of the motion is made from now on, beside what is done until it is called."""
    q, t = jax.ShapeDtypeStruct(begin.q.shape, begin.q.dtype), jax.ShapeDtypeStruct((), ts.dtype)
    if not is_concrete(problem, begin.q, ts) or close_loops.is_known(assembling, begin, 200, t):
        return
    n, c, at_start = counted_freedoms(problem), len(mech.contacts), problem
    if c:
        at_start = problem.with_mode(Mode.shapes(n, c, q.dtype))
    motion = at_start, q, jax.ShapeDtypeStruct((), jnp.dtype(bool)), ts, max_steps, events
    beforehand(lambda: _run.shapes(*motion), (lambda: _start.shapes(problem, q, t, n, _active(mech))) if c else None)


def _checked(motion: Motion) -> Motion:
    """Raises where the motion did not reach its end: at once, or, where nobody can look, once its numbers are known."""
    if (seen := visible(motion.result, motion.stopped_at, motion.ts)) is None:
        q = motion.result.error_if(motion.q, motion.result != RESULTS.successful)
        return eqx.tree_at(lambda m: m.q, motion, q)
    result, stopped_at, ts = seen
    if bool(result == RESULTS.locked) and stopped_at - ts[0] <= 1e-6 * (ts[-1] - ts[0]):
        raise RuntimeError(
            f"At t = {float(ts[0]):.9g}, where it begins, the mechanism stands in a dead center: its drivers cannot "
            "move it on from there. Begin a little beside it, or drive another coordinate"
        )
    if bool(result != RESULTS.successful):
        holding = f" It is held by {motion.holding}." if motion.holding else ""
        raise RuntimeError(f"At t = {float(stopped_at):.9g}: {RESULTS[result]}{holding}")
    return motion


class _Run(NamedTuple):
    q: Array
    v: Array
    a: Array
    residual: Array
    crossed_at: Array
    branch: Array
    stopped_at: Array
    result: RESULTS
    mode: Mode | None
    events: Events | None


@once
def _run(problem: Problem, q0: Array, closed: Array, ts: Array, max_steps: int, max_events: int) -> _Run:
    """Phase one finds the positions and is never differentiated; phase two, all times at once, takes the
    rates and carries the derivatives."""
    problem_, q0_, ts_ = frozen((problem, q0, ts))
    found = follow(problem_, q0_, ts_, closed, max_steps, max_events)
    _, stopped_at = lock_up(problem.with_mode(found.mode_last), found.last, found.stopped_at)
    result = RESULTS.where(closed, result_of(found.why), RESULTS.not_assembled)

    def complete(
        q: Array, t: Array, mode: Mode | None, there: Array, output: Array, lost: Array | None = None
    ) -> tuple[list[Array], Array]:
        problem_ = problem.with_mode(mode)
        t, q = jnp.where(there, t, ts[0]), jnp.where(there, q, q0_)  # harmless where there is nothing
        q = root(problem_, q, t) if lost is None else jnp.where(lost, q, root(problem_, q, t))
        v, a, r = rates(problem_, q, t)
        residual = jnp.max(jnp.abs(r * problem_.row_sizes), initial=0.0)
        closed = is_closed(r) | ~(there & output)
        return [jnp.where(there & closed, x, jnp.nan) for x in (q, v, a, residual)], closed

    if found.events is None:
        (q, v, a, residual), closed = jax.vmap(complete)(found.q, ts, None, found.alive, found.alive)
        result, stopped_at = if_all_closed(result, stopped_at, ts, closed)
        return _Run(q, v, a, residual, found.crossed_at, _branch(problem_, q0_, ts_[0]), stopped_at, result, None, None)

    rows, start = found.events, problem.mode
    assert start is not None and found.mode is not None and found.mode_last is not None
    happened = jnp.isfinite(rows.t)
    times, held_before, held, locked = event_times(problem, q0, ts[-1] - ts[0], events=rows)
    mode = found.mode._replace(held=held[found.count])
    # where there is nothing, the mode of the start
    mode = jax.tree_util.tree_map(lambda x, y: jnp.where(_tall(found.alive, x), x, y), mode, start)
    before, after = rows.before._replace(held=held_before), rows.after._replace(held=held[1:])
    every = jax.tree_util.tree_map(lambda *x: jnp.concatenate(x), mode, before, after)
    there = jnp.concatenate([found.alive, happened, happened])
    q = jnp.concatenate([found.q, locked, rows.q])
    n, m = len(ts), len(times)
    output = jnp.arange(n + 2 * m) < n  # and not where an event changes which contacts hold
    lost = jnp.concatenate([found.alive & False, happened & (rows.guard < 0), happened & False])
    every = q, jnp.concatenate([ts, times, times]), every, there, output, lost
    (q, v, a, residual), closed = jax.vmap(complete)(*every)
    result, stopped_at = if_all_closed(result, stopped_at, ts, closed[:n])
    events = Events(
        t=jnp.where(happened, times, jnp.inf),
        count=jnp.sum(happened),
        kind=rows.kind,
        contact=rows.contact,
        gave_way=rows.gave_way,
        before=_elements(rows.before, rows.contact),
        after=_elements(rows.after, rows.contact),
        q=q[n : n + m],
        v_before=v[n : n + m],
        v_after=v[n + m :],
        a_before=a[n : n + m],
        a_after=a[n + m :],
        active_last=found.mode_last.active,
    )
    branch = _branch(problem_, q0_, ts_[0])
    return _Run(q[:n], v[:n], a[:n], residual[:n], found.crossed_at, branch, stopped_at, result, mode, events)


def _branch(problem: Problem, q: Array, t: Array) -> Array:
    _, J, _ = problem.linearize(q, t)
    if J.shape[0] != J.shape[1] or J.shape[0] == 0:
        return jnp.zeros((), int)
    return jnp.sign(determinant(J)).astype(int)


def _tall(condition: Array, like: Array) -> Array:
    return condition.reshape(-1, *(1,) * (like.ndim - 1))


def _elements(mode: Mode, contact: Array) -> Array:
    pair = jnp.stack([mode.places.e1, mode.places.e2], -1)
    return jnp.take_along_axis(pair, contact[:, None, None], 1)[:, 0]


def rates(problem: Problem, q: Array, t: Array) -> tuple[Array, Array, Array]:
    """Velocities and accelerations of all freedoms, and the residual (Haug 3.6)."""
    r, J, in_time = problem.linearize(q, t)
    _, driven_v, driven_a = derivatives_at_zero(lambda s: problem.prescribed(t + s))
    solve = least_squares(J, refine=1)
    v = problem.spread(-solve(in_time[:, None])[:, 0], driven_v)
    a = problem.spread(jnp.zeros(len(problem.unknown)), driven_a)
    curve = problem.second_rate(q, v, a, t)
    return v, problem.spread(-solve(curve[:, None])[:, 0], driven_a), r


class _Start(NamedTuple):
    mode: Mode
    fits: Array  # whether the active contacts can be active together
    near: tuple[ClosestPair, SE2]  # what is around the contacts


@once
def _start(problem: Problem, q: Array, t: Array, n: int, active: tuple[int, ...]) -> _Start:
    return _Start(*start_mode(problem, q, t, n, active), closest_pairs_and_poses(*frozen((problem.system, q))))


@once
def _contact_tracks(reader: ContactReader, q: Array, v: Array, a: Array, mode: Mode) -> ContactTrack:
    return jax.vmap(reader)(q, v, a, mode)
