"""Simulation: the canonical equations integrated through contacts that form, slide, break and hit."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .._events.results import RESULTS
from .._events.trigger import Trigger
from .._kinematics.drive import problem as make_problem
from .._kinematics.modes import EVENTS
from .._kinematics.start import check_start, closest_pairs_and_poses, overlapping
from .._model.mechanism import Mechanism
from .._model.profile.closest_pair import ClosestPair
from .._numerics.groups import SE2
from .._numerics.stepper import Chord
from .._programs.precision import as_float, is_concrete, numpy_of
from .._programs.trees import frozen, lasting, once
from .impact import TOUCHING
from .loop import CODES, REST, Course, Options, Side, run, unmade, weights
from .plant import Frame, Plant, Stance, plant as make_plant
from .replay import Trail, advance, recorded, trail
from .solution import Log, Solution, Stats
from .state import State, active_contacts, first_stance, state


def simulate(
    mech: Mechanism,
    state0: State | None,
    t1: Any,
    *,
    ts: Any = None,
    drive: Mapping[str, Any] | None = None,
    triggers: Sequence[Any] = (),
    solver: diffrax.AbstractSolver | None = None,
    rtol: Any = 1e-9,
    atol: Any = 1e-9,
    rest_speed: Any = None,
    impacts: str = "together",
    max_steps: int = 4096,
    max_events: int = 64,
    progress_meter: diffrax.AbstractProgressMeter | None = None,
    throw: bool = True,
) -> Solution:
    """How a mechanism moves under its forces, through contacts that form, slide from element to element, break and hit.

    Every change is located as an event: a contact closes where its gap does, with an impulse and the contact's
    restitution; it opens where its force is zero. Between events the canonical equations (thesis 3.4) are integrated by
    a solver of diffrax; positions and momenta are put back on the constraints after each step.

    **Arguments:**

    - `mech`: the mechanism, with masses, forces and gravity.
    - `state0`: where it begins, from [`mbsjax.state`][]; None for the assembled mechanism at rest.
    - `t1`: when it ends. It begins at `state0.t`.
    - `ts`: the output times, increasing; by default 201 of them.
    - `drive`: coordinates or gauges whose motion is prescribed, by name: a function of time, or a number to hold it.
    - `triggers`: events of your own, [`mbsjax.Trigger`][].
    - `solver`: any solver of diffrax that estimates its error; `diffrax.Tsit5()` by default. `diffrax.Dopri8()` for
        tight tolerances, `diffrax.Kvaerno5()` for stiff compliant contacts.
    - `rtol`, `atol`: tolerances of a step, relative, and absolute in parts of the mechanism's size; for velocities,
        of that size in the time covered.
    - `rest_speed`: bodies that part more slowly than this after an impact stay together (3.6.1-4); by default, more
        slowly than 2e-5 of the fastest impact so far. Where they would go on bouncing, the infinitely many impacts that
        are left are summed up: the contact closes at the time at which their series ends.
    - `impacts`: bodies that touch when one of them is hit take part in that impact, `"together"`: each contact keeps
        Newton's law, and three balls in a row are hit as one. `"in turn"`, each impact is over before it is handed on,
        as if there were a hair's breadth between them: the last ball of the row flies off. Real bodies are in between.
    - `max_steps`, `max_events`: how many to allow.
    - `progress_meter`: one of diffrax's, for long runs.
    - `throw`: whether to raise when it does not reach its end. Under `jit` or `vmap`, or with `throw=False`, look at
        `.result`.

    **Returns:** an [`mbsjax.Solution`][]. It can be differentiated in forward and reverse mode, through all events,
    with respect to any number of the mechanism, the drivers, the state, and the times; dates of events too.

    !!! Example

        A ball that is dropped from a height of 1 and bounces back without loss.

        >>> import mbsjax as mbs
        >>> floor = mbs.Profile.chain([mbs.Line((1.0, 0.0), (-1.0, 0.0))], closed=False)  # solid on the left
        >>> ball = mbs.Mechanism(
        ...     [mbs.Body("ground", profiles={"floor": floor}),
        ...      mbs.Body("ball", mass=1.0, profiles={"rim": mbs.disc(0.1)})],
        ...     [mbs.Prismatic("height", "ground", "ball", axis=(0.0, 1.0), start=1.1),
        ...      mbs.Contact("bounce", "ground.floor", "ball.rim", restitution=1.0)],
        ...     gravity=(0.0, -9.81))
        >>> sol = mbs.simulate(ball, None, 1.0)
        >>> sol.events.list(mech := ball)[0].kind, round(float(sol["height"].q[-1]), 7)
        ('impact', 1.0538938)
    """
    drive = dict(drive or {})
    if state0 is None:
        state0 = state(mech, drive=drive, throw=throw)
    problem = make_problem(mech, drive)
    triggers = tuple(triggers)
    for trigger in triggers:
        if not isinstance(trigger, Trigger):
            raise ValueError(f"a trigger of a simulation must be a Trigger, got {trigger!r}")
    plant = make_plant(mech, problem, triggers)
    t0, t1 = state0.t, as_float(t1, "the end of a simulation")
    if ts is None:
        ts = numpy_of(t0, t1).linspace(t0, t1, 201)
    ts = as_float(ts, "the output times")
    if ts.ndim != 1 or ts.shape[0] == 0:
        raise ValueError(f"the output times must be a row of at least one number, got shape {ts.shape}")
    if is_concrete(ts, t0, t1):
        times = np.asarray(ts)
        if not np.all(np.diff(times) > 0) or not (times[0] >= float(t0) and times[-1] <= float(t1)):
            raise ValueError(f"the output times must increase, from {float(t0):.6g} to {float(t1):.6g}")
    chosen: Any = _with_tolerances(solver or diffrax.Tsit5(), rtol, atol)
    watching = bool(mech.contacts) or bool(triggers) or any(f.n_switches for f in mech.forces)
    options = Options(chosen, int(max_steps), int(max_events), watching, progress_meter)
    share = REST if rest_speed is None else 0.0
    given = (("rtol", rtol), ("atol", atol), ("rest_speed", 0.0 if rest_speed is None else rest_speed))
    if impacts not in ("together", "in turn"):
        raise ValueError(f'`impacts` must be "together" or "in turn", got {impacts!r}')
    near = TOUCHING if impacts == "together" else 0.0
    limits = [*(as_float(x, f"`{name}`") for name, x in given), share, near]
    limits = jnp.asarray(numpy_of(*limits).stack(limits))
    opened = _opening(plant, active_contacts(mech), state0, t1)
    looking = throw and is_concrete(plant, state0, ts, t1)
    if looking:
        _check_state(mech, plant, state0, opened)
        if opened.around is not None:
            check_start(mech, *opened.around)
    found: Any = _simulate(plant, state0.t, opened, ts, t1, limits, options)
    sol = Solution(mech, plant, ts, *found)  # pyright: ignore
    if looking:
        for event in sol.events.list(mech, triggers):
            if event.kind == "deleted":
                warnings.warn(
                    f"contact {event.contact!r} was deleted at t = {event.t:.9g}: one body ran off the end of the "
                    "other's profile, and nothing holds it from there on. Extend the profile, or let it end in a point "
                    "(`ends=True`)",
                    stacklevel=2,
                )
    if looking and bool(sol.result != RESULTS.successful):
        raise RuntimeError(f"At t = {float(sol.stopped_at):.9g}: {RESULTS[sol.result]}")
    if throw and not looking:
        q = sol.result.error_if(sol.q, sol.result != RESULTS.successful)
        sol = eqx.tree_at(lambda s: s.q, sol, q)
    return sol


def _with_tolerances(solver: Any, rtol: Any, atol: Any) -> Any:
    """An implicit solver whose root finder takes the tolerances of the steps, as `diffrax.diffeqsolve` has it, and does
    not give up early."""
    if not isinstance(solver, diffrax.AbstractImplicitSolver):
        return solver
    theirs, mine = diffrax.Kvaerno5().root_finder, diffrax.PIDController(rtol=rtol, atol=atol)
    finder: Any = solver.root_finder
    names = [n for n in ("rtol", "atol", "norm") if getattr(finder, n) is getattr(theirs, n)]
    if names:
        where = lambda f: [getattr(f, n) for n in names]
        finder = eqx.tree_at(where, finder, [getattr(mine, n) for n in names])
    finder = Chord(finder) if isinstance(finder, diffrax.VeryChord) else finder  # pyright: ignore
    return eqx.tree_at(lambda s: s.root_finder, solver, finder)


class _Opening(NamedTuple):
    """Where a simulation begins."""

    stance: Stance
    q: Array  # position and
    p: Array  # momenta, put on the constraints,
    off: Array  # by how much they miss these, in parts of the mechanism's size,
    units: Array  # and what one unit of them weighs
    given: Frame  # the position as it was given,
    rate: Array  # and how fast the constraints would be left
    around: tuple[ClosestPair, SE2] | None  # what is around the contacts,
    clear: Array  # and whether they are open


@once
def _opening(plant: Plant, active: tuple[bool, ...], state0: State, t1: Array) -> _Opening:
    system, t = plant.problem.system, state0.t
    plant_, q_ = frozen((plant, state0.q))
    near = closest_pairs_and_poses(plant_.problem.system, q_) if plant.laws else None
    stance = first_stance(plant_, active, q_, None if near is None else near[0])
    clear = jnp.ones((), bool)
    if near is not None:
        clear = ~overlapping(near[0], plant_.problem.system.size, stance.on | ~jnp.asarray(plant.rigid))

    def put_back(q: Array, _: None) -> tuple[Array, Frame]:
        frame = plant.frame(q, t, stance)
        return system.retract(frame.q, plant.way_back(frame.C, frame.residual, stance)), frame

    q = system.retract(state0.q, jnp.zeros_like(state0.v))
    _, frames = jax.lax.scan(put_back, q, None, length=2)
    given, frame = (jax.tree_util.tree_map(lambda x, k=k: x[k], frames) for k in (0, 1))
    v = plant.velocity(frame, plant.solver(frame, stance), plant.momentum(frame, state0.v), t)
    p = plant.momentum(frame, v)
    off = jnp.max(jnp.abs(frozen(frame.residual) / plant.row_sizes), initial=0.0)
    if stance.side.shape[0]:
        stance = stance._replace(side=_sides(*frozen((plant, t, frame.q, p, stance, t1))))
    units, given, rate = frozen((weights(plant, frame, t1 - t), given, given.C @ state0.v + given.drift))
    return _Opening(stance, frame.q, p, off, units, given, rate, near, clear)


def _sides(plant: Plant, t: Array, q: Array, p: Array, stance: Stance, t1: Array) -> Array:
    """On which sides the switches are."""
    now = plant.instant(t, q, p, stance)
    values = plant.switches(t, q, now.v, now.frame)
    # on its very edge, the side is that of a moment later
    s = 1e-7 * (t1 - t)
    later = q + s * now.q_dot
    there = plant.frame(later, t + s, stance)
    onward = plant.switches(t + s, later, now.v + s * now.a, there)
    return jnp.where(jnp.where(jnp.abs(values) < 1e-12, onward, values) >= 0, 1.0, -1.0)


def _check_state(mech: Mechanism, plant: Plant, state0: State, opened: _Opening) -> None:
    """Raises where a state is off the constraints, saying how far, and where an inertia is missing, naming a
    coordinate."""
    frame, rate = opened.given, opened.rate
    v_d, rows, columns = (np.asarray(x) for x in _measures(plant, state0.t))
    off = np.abs(np.asarray(frame.residual)) / rows
    if off.size and off.max() > 1e-6:
        raise ValueError(
            f"the positions of the state are off the constraints by {off.max():.3g} (in radians, or parts of the "
            "mechanism's size): make the state with mbsjax.state(mech, ..., drive=...)"
        )
    speeds = np.abs(np.asarray(state0.v)) / columns
    scale = max(float(speeds.max(initial=0.0)), float(np.abs(np.asarray(rate) / rows).max(initial=0.0)), 1e-300)
    driven = np.array(plant.problem.columns, dtype=int)
    miss = np.abs(np.asarray(rate) / rows).max(initial=0.0) / scale
    apart = np.abs(np.asarray(state0.v)[driven] - v_d).max(initial=0.0)
    if miss > 1e-6 or apart > 1e-6 * max(float(np.abs(v_d).max(initial=0.0)), scale):
        raise ValueError(
            f"the velocities of the state do not go together with the constraints and drivers: they miss them by "
            f"{max(miss, apart):.3g}; make the state with mbsjax.state(mech, ..., drive=...)"
        )
    u, D = plant.problem.unknown, columns[plant.problem.unknown]
    if len(u) == 0:
        return
    J = np.asarray(frame.C)[:, u] * D / rows[:, None]
    M = np.asarray(frame.M)[np.ix_(u, u)] * D[:, None] * D[None]
    _, s, V = np.linalg.svd(J, full_matrices=True)
    free = V[int(np.sum(s > 1e-9 * max(s.max(initial=0.0), 1e-300))) :]
    weights, vectors = np.linalg.eigh(free @ M @ free.T)
    if len(weights) and weights[0] <= 1e-13 * max(float(np.trace(M)), 1e-300):
        loose = int(np.argmax(np.abs(vectors[:, 0] @ free)))
        raise ValueError(
            f"nothing has inertia when {mech.coordinates[u[loose]]!r} moves: give the bodies that it moves a mass or "
            "an inertia, or drive it"
        )


@once
def _measures(plant: Plant, t: Array) -> tuple[Array, Array, Array]:
    """Velocities of the driven coordinates; what one unit of each row and each freedom weighs."""
    return plant.driven(t)[0], plant.row_sizes, plant.problem.system.column_sizes()


def _simulate(plant: Plant, t0: Array, opened: _Opening, ts: Array, t1: Array, limits: Array, options: Options):
    plant_, t0_, opened_, t1_, limits_ = frozen((plant, t0, opened, t1, limits))
    wait = _told.ahead((plant, t0, opened, ts, options), _to_tell)
    course = _course(plant_, t0_, opened_, t1_, limits_, options)
    found = trail(plant, t0, opened.q, opened.p, course=course, options=options)
    wait()
    return _told(plant, found, course, ts, opened_, options)


def _to_tell(plant: Plant, t: Array, opened: _Opening, ts: Array, options: Options) -> tuple:
    """What `_told` will be given."""
    course = eqx.filter_eval_shape(unmade, plant, t, opened.q, opened.p, opened.stance, options)
    return plant, eqx.filter_eval_shape(recorded, course), course, ts, opened, options


@lasting
def _course(plant: Plant, t: Array, opened: _Opening, t1: Array, limits: Array, options: Options) -> Course:
    return run(plant, (t, opened.q, opened.p, opened.stance, opened.units), t1, limits, options)


@once
def _told(plant: Plant, found: Trail, course: Course, ts: Array, opened: _Opening, options: Options):
    """Outputs and events, each from the step that it is in."""
    rows, last, count = course.rows, course.last, course.count
    n = rows.t.shape[0]
    stances = jax.tree_util.tree_map(
        lambda x, y: jnp.concatenate([x, y[None]]).at[count].set(y), rows.stance, last.stance
    )
    stances = stances._replace(approach=found.approach)
    known = jnp.where(jnp.arange(n + 1) <= count, frozen(found.t), jnp.inf)
    begins = (found.t, found.q, found.p, stances)

    def output(t: Array):
        k = jnp.clip(jnp.searchsorted(known, frozen(t), side="right") - 1, 0, count)
        alive = t <= frozen(last.t)
        t_k, q, p, stance = jax.tree_util.tree_map(lambda x: x[k], begins)
        t = jnp.where(alive, t, t_k)
        now = advance(plant, t_k, q, p, stance, t, options)
        kinetic, potential = plant.energies(t, now.frame, now.v, stance)
        residual = jnp.max(jnp.abs(now.frame.residual), initial=0.0)
        values = (now.frame.q, now.v, now.a, now.p, now.press, now.drive, kinetic, potential, residual)
        return tuple(jnp.where(alive, x, jnp.nan) for x in values), stance

    outputs, stance = jax.vmap(output)(ts)

    log = _log(plant, found, stances, course, options)
    code = RESULTS.successful
    for i, name in enumerate(CODES):
        code = RESULTS.where(course.code == i, getattr(RESULTS, "successful" if name == "stopped" else name), code)
    stopped = jnp.where(course.code > 0, found.t[count], jnp.inf)
    for fine, name in ((opened.clear, "overlapping"), (opened.off < 1e-6, "not_assembled")):
        code = RESULTS.where(fine, code, getattr(RESULTS, name))
        stopped = jnp.where(fine, stopped, found.t[0])
    stats = Stats(count, course.rejected, course.events)
    return (*outputs, stance, log, stopped, code, stats)


def _log(plant: Plant, found: Trail, stances: Stance, course: Course, options: Options) -> Log:
    """The events, each at the end of its step: what happened to its contact, switch or trigger, then what became of
    other contacts because of it."""
    rows, n, c, size = course.rows, course.rows.t.shape[0], len(plant.laws), options.max_events
    if not options.watching:
        none, two = jnp.zeros(0, int), jnp.zeros((0, 2))
        pairs, q, v, impulse = two.astype(int), found.q[:0], found.side.v[:0], found.impulse[:0]
        return Log(found.t[:0], jnp.zeros((), int), none, none, pairs, pairs, q, v, v, impulse, two, two, impulse > 0)
    happened = (jnp.arange(n) < course.count) & (rows.guard >= 0)
    others = (stances.on[1:] != stances.on[:-1]) & (jnp.arange(c) != rows.contact[:, None])
    every = happened[:, None] & jnp.concatenate([happened[:, None], others], 1)
    (which,) = jnp.nonzero(every.reshape(-1), size=size, fill_value=n * (c + 1))
    there = which < n * (c + 1)
    k, other = jnp.where(there, which // (c + 1), 0), which % (c + 1) - 1
    row, before = jax.tree_util.tree_map(lambda x: x[k], (rows, found.before))
    after: Side = jax.tree_util.tree_map(lambda x: x[k + 1], found.side)
    whose, active = jnp.where(other < 0, row.contact, other), stances.on[k + 1]
    t, q, kind = found.t[k + 1], found.q[k + 1], row.kind
    speeds, pairs = jnp.zeros((size, 2)), jnp.zeros((2, size, 2), int)
    if c:
        mine = jnp.clip(whose, 0, c - 1)[:, None]
        of_mine = lambda x: jnp.take_along_axis(x, mine, 1)[:, 0]
        speeds = jnp.stack([of_mine(x.rates) for x in (before, after)], 1)
        pairs = jnp.stack([jnp.stack([of_mine(x[j]) for x in (stances.e1, stances.e2)], 1) for j in (k, k + 1)])
        made = jnp.where(of_mine(active), EVENTS.index("closed"), EVENTS.index("released"))
        kind = jnp.where(other < 0, kind, made)
        # bouncing that is summed up ends a little later
        problem, later = plant.problem, found.settle[k]
        t = t + later
        on = lambda q, v, s, t: problem.place(problem.system.retract(q, v * s), t)
        q = jax.vmap(on)(q, after.v, later, t)
    energies = jnp.stack([before.kinetic, after.kinetic], 1)
    states = (q, before.v, after.v, found.impulse[k], speeds, energies)
    q, v_before, v_after, impulse, speeds, energies = (jnp.where(there[:, None], x, 0.0) for x in states)
    return Log(
        t=jnp.where(there, t, jnp.inf),
        count=jnp.sum(there),
        kind=kind,
        contact=jnp.where(there, whose, -1),
        before=pairs[0],
        after=pairs[1],
        q=q,
        v_before=v_before,
        v_after=v_after,
        impulse=impulse,
        speed=speeds,
        energy=energies,
        active=active & there[:, None],
    )
