"""What a simulation tells, from its recorded steps: outputs at given times, and the log of its events."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .._events.closure import if_all_closed, is_closed
from .._events.kinds import number
from .._events.log import Log
from .._events.results import RESULTS, result_of
from .._programs.trees import frozen, once
from .instant import Instant
from .loop_state import Options
from .mode import Mode
from .plant import Plant
from .record import Recording, Speeds
from .replay import Trajectory, advance
from .reset import friction_event, owners, slides_otherwise
from .rubbing import friction_of
from .solution import Stats
from .start import Start


@once
def outputs(plant: Plant, found: Trajectory, recording: Recording, ts: Array, begin: Start, options: Options):
    """Outputs and events, each from the step that it is in."""
    rows, last, count = recording.steps, recording.last, recording.count
    n = rows.t.shape[0]
    modes = jax.tree_util.tree_map(lambda x, y: jnp.concatenate([x, y[None]]).at[count].set(y), rows.mode, last.mode)
    modes = modes._replace(approach=found.approach)
    known = jnp.where(jnp.arange(n + 1) <= count, frozen(found.t), jnp.inf)
    begins = (found.t, found.q, found.p, modes)

    def output(t: Array):
        k = jnp.clip(jnp.searchsorted(known, frozen(t), side="right") - 1, 0, count)
        alive = t <= frozen(last.t)
        t_k, q, p, mode = jax.tree_util.tree_map(lambda x: x[k], begins)
        t = jnp.where(alive, t, t_k)
        now = advance(plant, t_k, q, p, mode, t, options)
        closed = is_closed(now.frame.residual / plant.row_sizes)
        shown = alive & closed
        told = jax.tree_util.tree_map(lambda x: jnp.where(shown, x, jnp.nan), _told(plant, t, now, mode))
        return told, mode, closed | ~alive

    values, mode, closed = jax.vmap(output)(ts)

    log = _log(plant, found, modes, recording, options)
    stopped = jnp.where(recording.code > 0, found.t[count], jnp.inf)
    code = result_of(recording.code)
    if plant.row_sizes.shape[0]:
        code, stopped = if_all_closed(code, stopped, ts, closed)
    for fine, name in ((begin.clear, "overlapping"), (begin.closed, "not_assembled")):
        code = RESULTS.where(fine, code, getattr(RESULTS, name))
        stopped = jnp.where(fine, stopped, found.t[0])
    stats = Stats(recording.taken, recording.rejected, recording.events, recording.paradox)
    return (*values, mode, log, stopped, code, stats)


@once
def at_states(plant: Plant, ts: Array, q: Array, v: Array, mode: Mode) -> dict[str, Any]:
    """What is told at given states, one in each row, by the names of `Solution`."""

    def one(t: Array, q: Array, v: Array, mode: Mode) -> tuple:
        return _told(plant, t, plant.instant(t, q, plant.momentum(plant.frame(q, t, mode), v), mode), mode)

    return dict(zip(_NAMES, jax.vmap(one)(ts, q, v, mode), strict=True))


_NAMES = ("q", "v", "a", "p", "press", "drive", "rubbing", "kinetic", "potential", "residual")


def _told(plant: Plant, t: Array, now: Instant, mode: Mode) -> tuple:
    """What a solution tells of an instant, in the order of `_NAMES`."""
    kinetic, potential = plant.energies(t, now.frame, now.v, mode)
    residual = jnp.max(jnp.abs(now.frame.residual), initial=0.0)
    p, rubs = now.p[: len(plant.problem.unknown)], friction_of(plant, now, mode)
    return now.frame.q, now.v, now.a, p, now.press, now.drive, rubs, kinetic, potential, residual


def _log(plant: Plant, found: Trajectory, modes: Mode, recording: Recording, options: Options) -> Log:
    """The events, each at the end of its step: what happened to its contact, switch or trigger, then what became of
    other contacts because of it."""
    rows, n, c, size = recording.steps, recording.steps.t.shape[0], len(plant.laws), options.max_events
    r = modes.slide.shape[1]
    if not options.watching:
        none, two = jnp.zeros(0, int), jnp.zeros((0, 2))
        pairs, q, v, impulse = two.astype(int), found.q[:0], found.speeds.v[:0], found.impulse.normal[:0]
        count, active = jnp.zeros((), int), impulse > 0
        return Log(found.t[:0], count, none, none, pairs, pairs, q, v, v, impulse, impulse, two, two, active)
    happened = (jnp.arange(n) < recording.count) & (rows.guard >= 0)
    others = (modes.active[1:] != modes.active[:-1]) & (jnp.arange(c) != rows.contact[:, None])
    every = [happened[:, None], others]
    if r:
        begins, ends = (jax.tree_util.tree_map(lambda x, k=k: x[k : n + k], modes) for k in (0, 1))
        every.append(jax.vmap(lambda *each: slides_otherwise(plant, *each))(begins, ends, rows.contact))
    every = happened[:, None] & jnp.concatenate(every, 1)
    (which,) = jnp.nonzero(every.reshape(-1), size=size, fill_value=n * (1 + c + r))
    there = which < n * (1 + c + r)
    k, other = jnp.where(there, which // (1 + c + r), 0), which % (1 + c + r) - 1
    row, before = jax.tree_util.tree_map(lambda x: x[k], (rows, found.before))
    after: Speeds = jax.tree_util.tree_map(lambda x: x[k + 1], found.speeds)
    whose, active = jnp.where(other < 0, row.contact, other), modes.active[k + 1]
    rubs, pair = other >= c, jnp.clip(other - c, 0, max(r - 1, 0))
    if r:
        whose = jnp.where(rubs, jnp.asarray(owners(plant))[pair], whose)
    t, q, kind = found.t[k + 1], found.q[k + 1], row.kind
    speeds, pairs = jnp.zeros((size, 2)), jnp.zeros((2, size, 2), int)
    if c:
        mine = jnp.clip(whose, 0, c - 1)[:, None]
        of_mine = lambda x: jnp.take_along_axis(x, mine, 1)[:, 0]
        speeds = jnp.stack([of_mine(x.rates) for x in (before, after)], 1)
        pairs = jnp.stack([jnp.stack([of_mine(x[j]) for x in modes.places[:2]], 1) for j in (k, k + 1)])
        made = jnp.where(of_mine(active), number("closed"), number("released"))
        kind = jnp.where(other < 0, kind, made)
    if r:
        was, now = (jnp.take_along_axis(modes.slide[j], pair[:, None], 1)[:, 0] for j in (k, k + 1))
        kind = jnp.where(rubs, friction_event(was, now), kind)
    if c:
        # bouncing that is summed up ends a little later, and so does at the earliest what follows it
        problem, told = plant.problem, t + found.settle[k]
        last = jnp.argmax(jnp.where(np.tri(size, dtype=bool), frozen(told), -jnp.inf), 1)
        later = told[last] - t
        t = told[last]
        on = lambda q, v, s, t: problem.place(problem.system.retract(q, v * s), t)
        q = jax.vmap(on)(q, after.v, later, t)
    energies = jnp.stack([before.kinetic, after.kinetic], 1)
    impulse = found.impulse.normal[k]
    along = found.impulse.along[k] if plant.tangents else jnp.zeros_like(impulse)
    states = (q, before.v, after.v, impulse, along, speeds, energies)
    q, v_before, v_after, impulse, along, speeds, energies = (jnp.where(there[:, None], x, 0.0) for x in states)
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
        friction=along,
        speed=speeds,
        energy=energies,
        active=active & there[:, None],
    )
