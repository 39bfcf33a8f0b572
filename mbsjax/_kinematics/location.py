"""What the guards say of a position that was found, the location of an event, and its reset."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from .._events.dips import dip_by_rates
from .._events.kinds import number
from .._events.locator import JUMP, aim, first, narrowed, no_bracket
from .._numerics.groups import wide
from .._programs.precision import TINY, Threshold
from .._programs.trees import tree_where
from .continuation_state import EventRow, Run, State, Watch
from .drive import Problem
from .guards import guards
from .mode import Mode
from .reset import Reset, reset_lanes


_STRIDE = 0.1  # the longest step where contacts are watched, in radians, or parts of the mechanism's size
_TOUCHING = Threshold(1e-10, 1e-5)  # a guard that begins on its surface counts as passed when it is this far beyond
_FALL = 10.0  # a body that drops covers this much, in radians or sizes, in a time as long as the motion
_SHORT = 1e-5  # of the time covered: in a shorter step, no dip is looked for


def first_watch(run: Run, mode: Mode, q: Array, none: Array) -> Watch:
    lanes = none.shape
    g, zero, no = jnp.zeros((run.table.count, *lanes)), jnp.zeros(lanes), jnp.zeros(lanes, bool)
    row = EventRow(zero + jnp.inf, q, none, mode, mode, none, none, none)
    apart = run.problem.system.no_pairs_apart(lanes)
    never = zero + jnp.inf
    return Watch(mode, g, g, mode.places, apart, never, g > 0, no_bracket(g), none, zero, no, none, no, row)


def falling(s: State) -> Array:
    return jnp.zeros_like(s.fresh) if s.watch is None else s.watch.mode.clock == 0


def watched(run: Run, s: State, w: Watch, now: Problem, y: Array, v: Array, done: Array) -> tuple[Watch, Array, Array]:
    """The guards at a position that was found: whether it may be accepted, and if not, after which shorter step to look
    again."""

    def look():
        def moved(d: Array):
            g, *rest = guards(now, run.problem.system.retract(y, d), v, run.span, w.apart)
            return g, rest

        g, rate, (mode, near, apart) = jax.jvp(moved, (jnp.zeros_like(v),), (v,), has_aux=True)
        return g, rate, mode, near, apart, _clear(run, y, v, g)

    known = (w.g, w.rate, w.mode, w.near, w.apart, w.clear)
    g, rate, mode, near, apart, clear = jax.lax.cond(jnp.any(done), look, lambda: known)
    armed = w.armed | (g > _TOUCHING())
    shifted = g + jnp.where(w.armed, 0.0, _TOUCHING())
    passed = jnp.any((w.g > 0) & (shifted <= 0) & ~s.fresh, 0) & done
    dip, where = dip_by_rates(w.g, w.rate, shifted, rate, s.h)
    dips = jnp.any(dip, 0) & done & ~passed & ~s.fresh & (s.h > _SHORT * run.span)
    lowest = jnp.min(jnp.where(dip, where, 1.0), 0) * s.h
    fine = done & ~passed & ~dips
    g = g + jnp.where(armed, 0.0, _TOUCHING())
    mode = mode._replace(held=w.mode.held)
    locating, zero = w.bracket.locating, jnp.zeros_like(s.h)
    b = w.bracket._replace(g_lo=jnp.where(locating, w.bracket.g_lo, w.g))
    b = narrowed(b, fine & locating, zero, g, passed, s.h, shifted)
    tries = jnp.where(locating, w.tries + (fine | passed), 0)
    early = jnp.where(passed | (dips & locating), aim(b, tries, jnp.zeros_like(dips)), jnp.where(dips, lowest, 0.0))
    known = tree_where(fine, (mode, g, rate, near, apart, clear, armed), w[:7])
    return w._replace(**dict(zip(w._fields, known)), bracket=b, tries=tries), fine, early


def _clear(run: Run, q: Array, v: Array, g: Array) -> Array:
    """How long it takes bodies to cover the gap between them, or what they can move along each other without missing
    anything."""
    system = run.problem.system
    X = system.poses(q)
    V = jnp.sum(wide(system.layout.paths, run.table.lanes) * (system.twists(q, X) * v)[:, None], 2)
    room = jnp.maximum(run.table.gaps(g) * system.size, run.finest)
    return jnp.min(room / jnp.maximum(system.gap_rate_bounds(system.planes(X), V, run.around), TINY()), 0)


def accepted_watch(w: Watch, h: Array) -> Watch:
    """After a step by h."""
    mode = w.mode._replace(held=w.mode.held + w.mode.drift * h)
    bracket = w.bracket._replace(hi=w.bracket.hi - h)
    return w._replace(mode=mode, bracket=bracket, fallen=w.fallen + (1 - mode.clock) * h)


def watched_step(run: Run, s: State, on: State, first: Array, h: Array, arrived: Array) -> Array:
    """The next step, where contacts are watched: no further than bodies could come through each other; and where an
    event is being located, towards it."""
    assert on.watch is not None
    first = jnp.where(falling(s), 0.01 * run.span, first)
    h = jnp.where(s.fresh & ~arrived, first, jnp.where(falling(s), 2 * s.h, h))
    speed = jnp.max(jnp.abs(on.v * run.per_size), 0, initial=0.0)
    stride = _STRIDE / jnp.maximum(speed, _STRIDE / (10 * run.span))
    h = jnp.minimum(h, jnp.minimum(stride, on.watch.clear))
    b = on.watch.bracket
    return jnp.where(b.locating, aim(b, on.watch.tries, jnp.zeros_like(arrived)), h)


def reset_where_due(run: Run, s: State, w: Watch, active: Array, lost: Array) -> tuple[State, Array]:
    """Resets where an event is located, or where the mechanism stops at one. Also whether the motion ends."""
    given_up = lost & jnp.any(w.mode.owner >= 0, 0) & ~s.stuck
    due = (active & (w.bracket.hi <= run.least)) | given_up
    s = s._replace(watch=w._replace(made=jnp.zeros_like(lost)))
    s, ended = jax.lax.cond(
        jnp.any(due), lambda s: _reset(run, s, s.watch, due, given_up), lambda s: (s, jnp.zeros_like(lost)), s
    )
    assert s.watch is not None
    return s, (lost & ~given_up) | ended | (s.watch.fallen > run.span)


def _reset(run: Run, s: State, w: Watch, due: Array, given_up: Array) -> tuple[State, Array]:
    """The state after the events that are due, and where nothing goes on from there."""
    crossed, guard = w.bracket.crossed, first(w.bracket)
    value = jnp.take_along_axis(w.bracket.g_hi, guard[None], 0)[0]
    made = due & (given_up | (value > -JUMP()))
    jump = due & ~made  # of a guard, to be stepped over
    now, fall = run.problem.with_mode(w.mode), _FALL / run.span
    after: Reset = reset_lanes(now, w.near, s.t.ndim, s.q, s.t, s.v, guard, given_up, fall)
    jammed = made & (after.kind == number("jammed"))
    mode = tree_where(made & ~jammed, after.mode, w.mode)
    cause = jnp.where(given_up, -1, guard)
    row = EventRow(s.t, s.q, cause, w.mode, mode, after.kind, after.contact, after.gave_way)
    numbers = run.table.contact_numbers
    touched = run.table.of_contacts((numbers == after.contact) | (numbers == after.gave_way), False) & made
    full = made & (w.count >= run.max_events)
    w = w._replace(
        mode=mode,
        armed=w.armed & ~touched,
        g=jnp.where(crossed & jump, -1.0, w.g),
        bracket=w.bracket._replace(hi=jnp.where(due, jnp.inf, w.bracket.hi), moved=jnp.where(due, 0, w.bracket.moved)),
        jammed=w.jammed | jammed,
        count=w.count + made,
        fallen=jnp.where(made, 0.0, w.fallen),
        made=made,
        row=row,
    )
    # the new mode begins where the old one ended
    h = jnp.where(made, 0.0, jnp.where(jump, 2 * run.least, s.h))
    begins = dict(v=0.0, v_back=0.0, moved=0.0, back=1.0, fresh=True, k=0, last=jnp.inf)
    s = s._replace(h=h, watch=w, **{x: jnp.where(made, y, getattr(s, x)) for x, y in begins.items()})
    d = s.v * h
    y = run.problem.system.retract(s.q, d)
    return s._replace(d=jnp.where(due, d, s.d), y=jnp.where(due, y, s.y)), jammed | full
