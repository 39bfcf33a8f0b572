"""The event loop: one flat, bounded loop over integration steps, in which every lane goes at its own pace.

Take a step; look at the switching functions half way and at its end; if one of them changed its sign, step again, to
where that happened, until it is found; let it happen; else go on. Nothing here is differentiated: what was decided is
recorded, and `_replay` differentiates that.
"""

from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .._kinematics.modes import GUARDS
from .._numerics.groups import lanes_behind, lanewise, pick, wide
from .._numerics.record import Record
from .._numerics.stepper import step
from .impact import Blow, Rule, bouncing_time, happen
from .plant import Frame, Instant, Plant, Stance


CODES = ("successful", "max_steps_reached", "max_events_reached", "step_too_small", "nonfinite", "locked", "stopped")

_STRIDE = 0.3  # the longest step where contacts are watched, in radians, or parts of the mechanism's size
_NOISE = 1e-11  # a guard nearer to zero has not left its surface,
_FINE_NOISE = 1e-13  # nor has a gap of an open contact, or what it passes in the shortest time that can be told
_HOP = 16  # times that noise: bounces that are less high are not resolved; their series is summed
REST = 2e-5  # of the fastest impact so far: bodies that part more slowly stay together, unless a speed is given
SERIES = 0.01  # of the time covered: bouncing that would last longer is no series
_TRIES = 96  # a step that has not come about after so many attempts will not
_FOUND = 3e-14  # a guard nearer to zero is on it; a gap must be so near
_SOON = 1e-14  # that it closes within this part of the time covered, and
_DIGITS, _MET = 3e-17, 3e-15  # no nearer than numbers tell apart, no further than this: later events inherit the error
_JUMP = 1e-6  # a guard that changes its sign by more than this in no time did not pass through zero
_ILLINOIS = 0.5
_CHORDS = 8  # attempts after which every other one halves the bracket
_OFF = 1e-3  # a constraint further off than this, in radians or sizes, is lost


class Options(NamedTuple):
    """How to integrate."""

    solver: diffrax.AbstractSolver
    max_steps: int
    max_events: int
    watching: bool  # whether there is anything to watch
    meter: Any  # a diffrax progress meter


class Side(NamedTuple):
    """How fast a mechanism moves."""

    v: Array  # velocities,
    kinetic: Array  # their energy,
    rates: Array  # and the rates of the gaps


class Row(NamedTuple):
    """A step: where it begins, and what ended it."""

    t: Array
    q: Array
    p: Array
    stance: Stance
    side: Side
    t_end: Array
    p_end: Array  # the momenta, and
    before: Side  # how fast it moved, before what ended it
    impulse: Array  # of every contact
    guard: Array  # -1 where none ended it
    kind: Array
    contact: Array
    struck: Array
    elastic: Array
    settle: Array  # how long the bouncing still lasts that this event sums up,
    jerk: Array  # where the acceleration of the gap changes so fast


class Course(NamedTuple):
    """What the loop found."""

    rows: Row  # one for each step, stacked on a first axis; from number `count` on they mean nothing
    count: Array
    last: Row  # the final state
    code: Array  # a number of CODES
    rejected: Array
    events: Array


def side_of(frame: Frame, v: Array, rates: Array) -> Side:
    """How fast it moves with these velocities, and these rates of the gaps."""
    return Side(v, jnp.sum(v * jnp.sum(frame.M * v[None], 1), 0) / 2, rates)


class _State(NamedTuple):
    t: Array
    q: Array
    p: Array
    side: Side
    f: Array  # the rates of q and p
    stance: Stance
    there: tuple  # where each contact might close, and the gap there
    apart: Array  # the gaps of the pairs of elements that are apart
    g: Array  # the guards
    armed: Array
    exempt: Array  # contacts that have changed at this very time
    fresh: Array  # nothing is known but t, q, p and the stance
    h: Array  # the step to try,
    h_free: Array  # and the one to try after an event
    lo: Array  # the bracket of an event,
    hi: Array
    g_lo: Array
    g_hi: Array
    kept_lo: Array  # which of its ends was kept last: -1, 0, 1
    fastest: Array  # the fastest impact so far
    last_impact: Array  # when each contact last made one,
    last_pull: Array  # and the acceleration of its gap before it
    tries: Array  # attempts since the last step,
    cut: Array  # and whether one led an unarmed guard through its surface
    steps: Array
    rejected: Array
    events: Array
    code: Array
    done: Array


def guards(plant: Plant, t: Array, now: Instant, stance: Stance, apart: Array) -> tuple[Array, list, tuple, Array]:
    """The switching functions, positive as long as nothing happens: for each contact the gap (G_I), or, once active,
    the gap elsewhere; the ends of its elements (G_T); its force (G_F). Then the switches. Also where the contacts are,
    where each might close, and the gaps of the pairs of elements that are apart; `apart` are those of when the step
    began."""
    frame, system = now.frame, plant.problem.system
    values = []
    places, there = list(stance.where), (*stance.where, jnp.zeros_like(stance.s1))
    if plant.laws:
        rigid = plant.rigid.reshape(-1, *(1,) * t.ndim)
        where = (stance.e1, stance.e2, *frame.spots)
        near, ends, places, there, apart = system.proximity(frame.planes, where, stance.on, apart)
        there = (*there, near)
        seen = (jnp.abs(near) < 1e3 * system.size) & (rigid | ~stance.on)
        near = jnp.where(seen, near / system.size, 1.0)
        scale = jnp.where(now.scale > 0, now.scale, 1.0) / system.size
        press = jnp.where(rigid, now.press / scale, -frame.gaps / system.size)
        press = jnp.where(stance.on, press, 1.0)
        six = jnp.concatenate([near[:, None], ends, press[:, None]], 1)
        values.append(six.reshape(-1, *t.shape))
    values.append(plant.switches(t, frame.q, now.v, frame) * stance.side)
    return jnp.concatenate(values), places, there, apart


def guard_value(plant: Plant, t: Array, now: Instant, stance: Stance, after: Stance, guard: Array) -> Array:
    """One of the guards, but for a factor, where it is known which event it led to: nothing is searched for (of one
    lane)."""
    values = [jnp.zeros(0)]
    if plant.laws:
        gaps, (s1, s2) = plant.problem.system.gaps(now.frame.planes, after), now.frame.spots
        four = jnp.stack([s1, 1 - s1, s2, 1 - s2], 1)
        press = jnp.where(plant.rigid, now.press, -now.frame.gaps)
        values.append(jnp.concatenate([gaps[:, None], four, press[:, None]], 1).reshape(-1))
    values.append(plant.switches(t, now.frame.q, now.v, now.frame))
    return jnp.concatenate(values)[jnp.maximum(guard, 0)]


def run(plant: Plant, start: tuple, t_end: Array, limits: Array, options: Options) -> Course:
    """The course of a motion from `start` (t, q, p, stance, and what one unit of q and p weighs); `limits` are rtol,
    atol, the speed that counts as rest, which part of the fastest impact so far does, and how near contacts are that
    take part in impacts of others. Under `vmap`, lanes are put behind all other axes."""
    numbers, structure = eqx.partition(plant, eqx.is_array)

    @lanes_behind
    def go(numbers, start, t_end, limits):
        return _run(eqx.combine(numbers, structure), start, t_end, limits, options)

    return go(numbers, start, t_end, limits)


def look(args: tuple[Plant, Stance], t: Array, y: Array, d: Array) -> tuple[Instant, Array, Array]:
    """What holds where y is moved by d; the canonical right-hand side; and the way back onto the constraints."""
    plant, stance = args
    nq = y.shape[0] - len(plant.problem.unknown)
    now = plant.instant(t, plant.problem.system.retract(y[:nq], d), y[nq:], stance)
    back = plant.way_back(now.frame.C, now.frame.residual, stance)
    return now, jnp.concatenate([now.q_dot, now.p_dot]), back


def _run(plant: Plant, start: tuple, t_end: Array, limits: Array, options: Options) -> Course:
    rtol, atol, rest_speed, rest_share, touching = limits
    t0, q0, p0, stance0, units = start
    lanes, c = t0.ndim, len(plant.laws)
    system, solver = plant.problem.system, options.solver
    span = t_end - t0
    nq, eps = q0.shape[0], jnp.finfo(q0.dtype).eps
    least = 4 * eps * (jnp.abs(t0) + jnp.abs(t_end))
    shortest = 1e-12 * span
    sizes = system.column_sizes()
    term: Any = diffrax.ODETerm(lambda t, y, args: y)
    order: Any = solver.order(term)
    gap_guards = np.arange(GUARDS * c) % GUARDS == 0
    force_guards = np.arange(GUARDS * c) % GUARDS == GUARDS - 1
    count = GUARDS * c + stance0.side.shape[0]

    def column(of_contacts: np.ndarray) -> np.ndarray:
        return np.pad(of_contacts, (0, count - len(of_contacts))).reshape(-1, *(1,) * lanes)

    paths = wide(system.layout.paths, lanes)
    if c:
        along, rounds = system.feature_sizes
        around = system.bounding_circles
    is_gap, is_force = column(gap_guards), column(force_guards)
    owners = np.append(np.repeat(np.arange(c), GUARDS), np.full(count - GUARDS * c, c))

    def of_guard(x: Array, fill: Any) -> Array:
        """A quantity of contacts, for each guard."""
        return pick(jnp.concatenate([x, jnp.full((1, *t0.shape), fill, x.dtype)]), owners)

    def judge(rtol: Array, atol: Array, t: Array, h: Array, y0: Array, y1: Array, error: Array) -> Any:
        """Whether a step is good enough, and how long the next one may be. (The controller has no memory.)"""
        controller = diffrax.PIDController(rtol=rtol, atol=atol)
        _, state = controller.init(term, t, t + h, y0, h, None, solver.func, order)
        keep, begin, end, _, _, _ = controller.adapt_step_size(t, t + h, y0, y1, None, error, order, state)
        return keep, end - begin

    def attempt(s: _State) -> tuple[_State, Row, Array]:
        active = ~s.done
        h = jnp.where(s.fresh | s.done, 0.0, s.h)
        last = s.t + h >= t_end - least
        t1 = jnp.where(last & ~s.fresh, t_end, s.t + h)
        y = jnp.concatenate([s.q, s.p])
        taken = step(solver, look, (plant, s.stance), s.t, h, y, s.f, still, middle=options.watching, scan_kind="lax")
        now: Instant = jax.tree_util.tree_map(lambda x: x[-1], taken.instants)
        g = g_mid = nothing
        places, there, apart, apart_mid = s.stance.where, s.there, s.apart, s.apart
        if options.watching:
            both = jax.vmap(lambda t, now: guards(plant, t, now, s.stance, s.apart))(
                jnp.stack([s.t + h / 2, t1]), taken.instants
            )
            g_mid, apart_mid = both[0][0], both[3][0]
            g, places, there, apart = jax.tree_util.tree_map(lambda x: x[1], both)
        here = side_of(now.frame, now.v, now.gap_rates)
        off = jnp.max(jnp.abs(now.frame.residual / plant.row_sizes), 0, initial=0.0)
        # momenta count modulo impulses of the constraints, which are large, and noise, near singular positions
        error = jnp.concatenate([taken.error[:nq], plant.tangent(now.frame, s.stance, taken.error[nq:])])
        keep, h_next = lanewise(judge, lanes)(
            rtol, atol, s.t, jnp.where(h > 0, h, span), y / units, taken.y / units, error / units
        )
        sound = jnp.isfinite(jnp.sum(taken.y, 0) + jnp.sum(taken.error, 0) + jnp.sum(now.p_dot, 0)) & (off < _OFF)
        keep = jnp.where(sound, keep, False) | s.fresh
        h_next = jnp.where(sound, h_next, h / 4)

        # the guards
        negative, middle = g <= 0, g_mid <= 0
        noise = jnp.full_like(g, _NOISE)
        if c:
            fine = jnp.maximum(_FINE_NOISE, 8 * least * jnp.abs(s.side.rates) / system.size)
            noise = jnp.where(is_gap & ~of_guard(s.stance.on, True), of_guard(fine, _NOISE), noise)
        unarmed = ~s.armed & ~s.fresh & (s.g > -100 * noise)  # one that is negative from the start does not count
        early = s.armed & middle & ~s.fresh
        too_long = unarmed & ((g_mid < -noise) | ((g < -noise) & (g_mid <= noise)))
        late = negative & (s.armed | (g_mid > noise)) & ~s.fresh
        # at once: forces that pull, and contacts that approach where they begin
        exempt = of_guard(s.exempt, False)
        at_once = s.fresh & ((s.armed & negative & ~exempt) | (is_force & (g < -_NOISE)))
        sinks = no
        if c:
            rates, onward = now.gap_rates, now.gap_rates_dot
            touching = (jnp.abs(g) <= _NOISE) & is_gap & ~exempt & ~s.armed & ~of_guard(s.stance.on, True)
            slow = 1e-9 * jnp.maximum(jnp.maximum(rest_speed, rest_share * s.fastest), 1e-300)
            falling = (rates < -slow) | ((rates <= slow) & (onward < 0))
            at_once = at_once | (s.fresh & touching & of_guard(falling, False))
            # a contact that has opened and comes back before it has left its surface: let it be looked at anew
            sunk = too_long & is_gap & (jnp.abs(s.g) <= _NOISE) & ~exempt & ~of_guard(s.stance.on, True)
            sinks = jnp.any(sunk & of_guard(s.side.rates < -2 * slow, False), 0) & keep & active
        # a guard may dip below zero on the way, and so may the gap of a pair of elements that was never the closest
        clear = ~s.stance.on[:, None] & (s.apart > _NOISE * system.size)
        begins, halfway, ends, leaving = (
            jnp.concatenate([x, y.reshape(-1, *t0.shape)])
            for x, y in ((s.g, s.apart), (g_mid, apart_mid), (g, apart), (s.armed, clear))
        )
        dip, where = _dips(begins, halfway, ends, leaving & ~s.fresh)
        was_early, was_late, long = (jnp.any(x, 0) & keep & active for x in (early, late, too_long))
        crossing = (was_early | was_late) & ~long
        now_at_once = jnp.any(at_once, 0) & active

        # the bracket
        locating = jnp.isfinite(s.hi)
        first_half = was_early
        hi = jnp.where(crossing, jnp.where(first_half, h / 2, h), s.hi)
        g_hi = jnp.where(crossing, jnp.where(first_half, g_mid, g), s.g_hi)
        from_mid = crossing & ~first_half & (h / 2 > s.lo)
        not_yet = locating & keep & active & ~crossing & ~long
        lo = jnp.where(from_mid, h / 2, jnp.where(not_yet, h, s.lo))
        g_lo = jnp.where(from_mid, g_mid, jnp.where(not_yet, g, jnp.where(locating, s.g_lo, s.g)))
        crossed = (g_lo > 0) & (g_hi <= 0) & jnp.isfinite(hi)
        nearest = jnp.max(jnp.where(crossed, jnp.abs(g), 0.0), 0, initial=0.0)
        on_it = jnp.full_like(g, _FOUND)
        leaps = jnp.zeros_like(keep)
        if c:
            V, A = (jnp.sum(paths * (now.frame.S * x)[:, None], 2) for x in (now.v, now.a))
            passing, onward = (system.gap_rate_bounds(now.frame.planes, x, around) for x in (V, A))
            # a gap that is deeper than bodies can come within the bracket was not closed there: chords lead nowhere
            depth = 2 * (passing + onward * (hi - lo)) * (hi - lo) / system.size
            leaps = crossed & is_gap & (-g_hi > of_guard(depth, jnp.inf) + _JUMP)
            leaps = jnp.any(crossed, 0) & jnp.all(~crossed | leaps, 0)
            soon = jnp.clip(_SOON * span * jnp.abs(now.gap_rates) / system.size, _DIGITS, _MET)
            on_it = jnp.where(is_gap & ~of_guard(s.stance.on, True), of_guard(soon, _FOUND), on_it)
        arrived = jnp.all(~crossed | (jnp.abs(g) <= on_it), 0)
        found = jnp.isfinite(hi) & keep & active & ~long
        found &= ((hi - lo) <= least) | ((crossing & ~first_half | not_yet) & arrived)
        # nor does an event count that comes after another
        dips = jnp.any(dip, 0) & keep & active & ~long & (h > 1e-7 * span) & (found | ~(crossing | locating))
        found &= ~dips
        # the guard has jumped over zero: so does the step
        jump = found & (nearest > _JUMP)
        found &= ~jump
        over_it = jump & crossing & ~first_half
        side = jnp.where(not_yet, 1, jnp.where(crossing, -1, 0))
        g_hi_ = jnp.where(not_yet & (s.kept_lo == 1), _ILLINOIS * g_hi, g_hi)
        g_lo_ = jnp.where(crossing & (s.kept_lo == -1) & ~from_mid, _ILLINOIS * g_lo, g_lo)
        part = jnp.where(crossed, g_lo_ / jnp.where(crossed, g_lo_ - g_hi_, 1.0), 1.0)
        part = jnp.clip(jnp.min(part, 0, initial=1.0), 1e-3, 1 - 1e-3)
        part = jnp.where(leaps | ((s.tries > _CHORDS) & (s.tries % 2 == 0)), 0.5, part)
        h_locate = lo + part * (hi - lo)

        event = found | now_at_once
        plain = (keep & active & ~crossing & ~long & ~dips & ~locating & ~s.fresh) | over_it
        fail = active & ~keep
        # a contact that parts and comes back within the step: where the parabola through its rate says
        h_long = h / 2
        if c:
            grows = of_guard(s.side.rates, 0.0) / system.size
            bend = (g_mid - grows * h / 2) / jnp.where(h > 0, h * h / 4, 1.0)
            back = too_long & is_gap & (grows > 0) & (bend < 0)
            flight = jnp.where(back, -1.1 * grows / jnp.where(back, bend, -1.0), h / 2)
            h_long = jnp.clip(jnp.min(jnp.where(too_long, flight, h / 2), 0, initial=jnp.inf), h / 256, h / 2)
        stuck_at = long & (h <= shortest)  # it does not leave its surface: it stays, or is met again
        event = event | stuck_at
        h_dip = jnp.min(jnp.where(dip, where, 1.0), 0, initial=1.0) * h
        stride = jnp.full_like(span, jnp.inf)
        if c:
            # no further than bodies could come near each other, or than the shortest element
            speed, gain = (jnp.max(jnp.abs(x / sizes), 0, initial=0.0) for x in (now.v, now.a))
            stride = _time_for(jnp.full_like(span, _STRIDE), speed, gain, span)
            gap = jnp.abs(g[: GUARDS * c : GUARDS]) * system.size
            near = jnp.min(jnp.maximum(apart, rounds), 1)  # the nearest corner that might be clipped
            room = jnp.where(s.stance.on, along, jnp.maximum(gap, jnp.minimum(along, near)))
            stride = jnp.minimum(stride, jnp.min(_time_for(room, passing, onward, span), 0))
        ahead = jnp.minimum(jnp.minimum(h_next, stride), t_end - t1)
        ahead = jnp.where(s.cut, jnp.minimum(ahead, 4 * h), ahead)  # what had to be cut short grows slowly again
        h_new = jnp.select(
            [fail, long, dips, plain, jump, crossing | not_yet],
            [jnp.minimum(h_next, 0.9 * h), h_long, h_dip, ahead, hi, h_locate],
            s.h,
        )
        h_new = jnp.where(s.fresh, jnp.minimum(jnp.minimum(s.h_free, stride), t_end - s.t), h_new)

        # what is written down
        missed = over_it & crossed
        order_ = jnp.where(crossed & found, part_of(g_lo, g_hi), jnp.inf)
        if c:  # of several at one time, those that close
            order_ = order_ - jnp.where(is_gap & ~of_guard(s.stance.on, True), 1.0, 0.0)
        order_ = jnp.where(at_once & now_at_once, -1.0 + jnp.where(is_force, 0.0, -1.0), order_)
        order_ = jnp.where(too_long & stuck_at, 0.0, order_)
        guard = jnp.argmin(order_, 0) if count else jnp.zeros_like(s.steps)
        guard = jnp.where(event, guard, -1)
        e1, e2, s1, s2 = places
        moved = s.stance._replace(e1=e1, e2=e2, s1=s1, s2=s2)
        commit = plain | event
        reached = commit | (s.fresh & active)
        new = s._replace(
            t=jnp.where(commit, t1, s.t),
            q=jnp.where(reached, now.frame.q, s.q),
            p=jnp.where(reached, now.p, s.p),
            side=_where(reached, here, s.side),
            f=jnp.where(reached, jnp.concatenate([now.q_dot, now.p_dot]), s.f),
            stance=_where(reached, moved, s.stance),
            there=_where(reached, there, s.there),
            apart=jnp.where(reached, apart, s.apart),
            g=jnp.where(reached, g, s.g),
            armed=jnp.where(plain | (s.fresh & active), (s.armed & ~missed) | (g > noise), s.armed),
            exempt=s.exempt & ~(plain & (h > 0)),
            fresh=(s.fresh & ~active) | over_it | sinks,  # behind a jump, all is looked at anew
            h=h_new,
            h_free=jnp.where(plain, h_next, s.h_free),
            # where a step towards an event fails, leads an unarmed guard through its surface, or over a dip, a shorter
            # one comes first, and the event is bracketed anew from there
            lo=jnp.where(commit | fail | long | dips, 0.0, lo),
            hi=jnp.where(commit | s.fresh | fail | long | dips, jnp.inf, hi),
            g_lo=g_lo_,
            g_hi=g_hi_,
            kept_lo=jnp.where(commit, 0, jnp.where(side != 0, side, s.kept_lo)),
            tries=jnp.where(commit | s.fresh, 0, s.tries + 1),
            cut=(s.cut | long) & ~commit,
            steps=s.steps + commit,
            rejected=s.rejected + (active & ~commit & ~s.fresh),
        )
        # the row that this step is written to
        row = _row(s.t, s.q, s.p, s.stance, s.side)._replace(t_end=t1, p_end=now.p, before=here, guard=guard)
        fresh_row = s.fresh & event  # an event before any step: the state was put on the constraints just now
        row = row._replace(
            q=jnp.where(fresh_row, new.q, row.q),
            p=jnp.where(fresh_row, new.p, row.p),
            side=_where(fresh_row, new.side, row.side),
            stance=_where(fresh_row, moved, row.stance),
        )
        new, row = jax.lax.cond(
            jnp.any(event), lambda new, row: apply(new, row, now, event, guard), lambda new, row: (new, row), new, row
        )
        small = fail & (h <= shortest)
        code = jnp.select(
            [
                new.events > options.max_events,
                small & ~sound & (off >= _OFF),
                small & ~sound,
                small | (new.tries > _TRIES),
                (new.steps >= options.max_steps) & ~(new.t >= t_end),
            ],
            [
                CODES.index(x)
                for x in ("max_events_reached", "locked", "nonfinite", "step_too_small", "max_steps_reached")
            ],
            s.code,
        )
        code = jnp.where(active & (s.code == 0), jnp.where(new.code > 0, new.code, code), s.code)
        over = (new.t >= t_end) & ~new.fresh & ~(event & s.fresh)
        return new._replace(code=code, done=s.done | over | (code > 0)), row, commit

    def part_of(a: Array, b: Array) -> Array:
        return a / jnp.where(a > b, a - b, 1.0)

    def apply(s: _State, row: Row, now: Instant, event: Array, guard: Array) -> tuple[_State, Row]:
        """Lets events happen."""
        told: Blow
        slowest = rest_speed
        if c:
            mine = (np.arange(c).reshape(-1, *(1,) * lanes) == guard // GUARDS) & (guard % GUARDS == 0) & event
            before = row.stance  # the acceleration is known on the elements that the step began with
            mine = mine & (before.e1 == s.there[0]) & (before.e2 == s.there[1])
            pull = jnp.sum(jnp.where(mine, now.gap_rates_dot, 0.0), 0)
            hop = _HOP * _FINE_NOISE * system.size
            slowest = jnp.maximum(rest_speed, jnp.sqrt(2 * jnp.maximum(-pull, 0.0) * hop))
        share, near = (jnp.broadcast_to(x, s.t.shape) for x in (rest_share, touching))
        rule = Rule(slowest, share, s.fastest, near)
        told, v = lanewise(happen, lanes)(plant, now.frame, now.v, s.stance, s.there, jnp.maximum(guard, 0), rule)
        p = plant.momentum(now.frame, v)
        touched = of_guard(told.touched, False)
        numbers = np.arange(count).reshape(-1, *(1,) * lanes)
        touched = touched | (numbers == guard)
        stops = jnp.zeros_like(event)
        first = c + sum(force.n_switches for force in plant.forces)
        for i, trigger in enumerate(plant.triggers):
            stops = stops | (trigger.stop & (told.contact == first + i))
        settle = jerk = jnp.zeros_like(s.t)
        last_impact, last_pull, others = s.last_impact, s.last_pull, 0
        if c:
            before_t, before_pull, bounce = (
                jnp.sum(jnp.where(mine, x, 0.0), 0) for x in (last_impact, last_pull, plant.restitution)
            )
            flew = jnp.isfinite(before_t) & (s.t > before_t)
            jerk = jnp.where(flew, (pull - before_pull) / jnp.where(flew, s.t - before_t, 1.0), 0.0)
            settle = bouncing_time(told.rebound, pull, jerk, bounce, SERIES * span)
            last_impact, last_pull = jnp.where(mine, s.t, last_impact), jnp.where(mine, now.gap_rates_dot, last_pull)
            changed = (told.stance.on != s.stance.on) & (np.arange(c).reshape(-1, *(1,) * lanes) != told.contact)
            others = jnp.sum(changed & event, 0)
        new = s._replace(
            fastest=jnp.where(event, jnp.maximum(s.fastest, told.approach), s.fastest),
            last_impact=last_impact,
            last_pull=last_pull,
            p=jnp.where(event, p, s.p),
            stance=_where(event, told.stance, s.stance),
            armed=jnp.where(event, s.armed & ~touched, s.armed),
            exempt=jnp.where(event, s.exempt | told.touched, s.exempt),
            fresh=s.fresh | (event & ~stops),
            events=s.events + event + others,  # contacts that change with it have events of their own
            code=jnp.where(event & stops, CODES.index("stopped"), s.code),
        )
        pick_ = lambda x, y: jnp.where(event, x, y)
        return new, row._replace(
            kind=pick_(told.kind, row.kind),
            contact=pick_(told.contact, row.contact),
            struck=pick_(told.struck, row.struck),
            elastic=pick_(told.elastic, row.elastic),
            before=row.before._replace(rates=pick_(told.rates, row.before.rates)),
            impulse=pick_(told.impulse, row.impulse),
            settle=pick_(settle, row.settle),
            jerk=pick_(jerk, row.jerk),
        )

    none, no = jnp.zeros(t0.shape, int), jnp.zeros(t0.shape, bool)
    nothing, still = jnp.zeros((count, *t0.shape)), jnp.zeros((len(plant.names[0]), *t0.shape))
    h0 = 1e-3 * span
    y0 = jnp.concatenate([q0, p0])
    there = (*stance0.where, stance0.s1)
    resting = _resting(plant, t0)
    state = _State(
        t0, q0, p0, resting, jnp.zeros_like(y0), stance0, there, system.no_pairs_apart(t0.shape), nothing, nothing > 0,
        jnp.zeros((c, *t0.shape), bool), ~no, h0, h0, jnp.zeros_like(t0), jnp.full_like(t0, jnp.inf),
        nothing, nothing, none, jnp.zeros_like(t0), jnp.full((c, *t0.shape), -jnp.inf), jnp.zeros((c, *t0.shape)),
        none, no, none, none, none, none, span <= 0,
    )  # fmt: skip
    first = _row(t0, q0, p0, stance0, resting)
    record = Record.blank(first, options.max_steps, lanes)
    meter = options.meter

    def body(carry):
        s, record, progress = carry
        new, row, commit = attempt(s)
        record = record.written(jnp.where(commit, s.steps, options.max_steps), row)
        if meter is not None:
            progress = meter.step(progress, jnp.min((new.t - t0) / jnp.where(span > 0, span, 1.0)))
        return new, record, progress

    progress = None if meter is None else meter.init()
    state, record, progress = jax.lax.while_loop(lambda carry: jnp.any(~carry[0].done), body, (state, record, progress))
    if meter is not None:
        meter.close(progress)
    final = _row(state.t, state.q, state.p, state.stance, state.side)
    return Course(record.read(first, lanes), state.steps, final, state.code, state.rejected, state.events)


def _resting(plant: Plant, t: Array) -> Side:
    return Side(*(jnp.zeros((*n, *t.shape)) for n in ((len(plant.names[0]),), (), (len(plant.laws),))))


def unmade(plant: Plant, t: Array, q: Array, p: Array, stance: Stance, options: Options) -> Course:
    """A course that is laid out as those of `run` from such a beginning."""
    last, none = _row(t, q, p, stance, _resting(plant, t)), jnp.zeros(t.shape, int)
    rows = jax.tree_util.tree_map(lambda x: jnp.zeros((options.max_steps, *x.shape), x.dtype), last)
    return Course(rows, none, last, none, none, none)


def _row(t: Array, q: Array, p: Array, stance: Stance, side: Side) -> Row:
    """A step that has not been made yet."""
    none, no, zero = jnp.zeros(t.shape, int), jnp.zeros(stance.on.shape, bool), jnp.zeros_like(t)
    return Row(t, q, p, stance, side, t, p, side, jnp.zeros_like(side.rates), none, none, none, no, no, zero, zero)


def _time_for(way: Array, speed: Array, gain: Array, span: Array) -> Array:
    """How long a way takes from a speed that grows, at most the time covered."""
    rush = speed + jnp.sqrt(speed**2 + 2 * gain * way)
    return 2 * way / jnp.maximum(rush, 2 * way / span)


def weights(plant: Plant, frame: Frame, span: Array) -> Array:
    """What one unit of each coordinate and momentum weighs in the error: the size of the mechanism, and what a
    freedom's momentum is at the speed that takes it through that size, or a radian, in the time covered."""
    sizes = plant.problem.system.column_sizes()
    u, slots = plant.problem.unknown, np.array(plant.problem.system.layout.slots, dtype=int)
    owner = np.full(frame.q.shape[0], len(slots))
    owner[slots[slots >= 0]] = np.flatnonzero(slots >= 0)
    of_q = pick(jnp.concatenate([sizes, jnp.ones_like(sizes[:1])]), owner)
    inertia = pick(jnp.sum(frame.M * wide(np.eye(len(slots)), span.ndim), 1), u)
    largest = jnp.max(inertia * plant.columns**2, 0, initial=0.0)
    inertia = jnp.maximum(inertia, 1e-3 * largest / plant.columns**2)
    inertia = jnp.where(inertia > 0, inertia, 1.0)
    return jnp.concatenate([of_q, inertia * plant.columns / jnp.where(span > 0, span, 1.0)])


def _dips(g0: Array, g_mid: Array, g1: Array, armed: Array) -> tuple[Array, Array]:
    """Whether a guard, positive at the ends and in the middle of a step, may have been negative on the way, and at
    which part of it, by the parabola through the three."""
    bend = 2 * (g0 - 2 * g_mid + g1)
    slope = 4 * g_mid - 3 * g0 - g1
    bent = bend > 0
    where = -slope / jnp.where(bent, 2 * bend, 1.0)
    low = g0 - slope**2 / jnp.where(bent, 4 * bend, 1.0)
    positive = (g0 > 0) & (g_mid > 0) & (g1 > 0)
    valley = armed & bent & positive & (where > 0.02) & (where < 0.98)
    return valley & (low < 0.1 * jnp.maximum(g0, g1)), where


def _where(condition: Array, a, b):
    return jax.tree_util.tree_map(lambda x, y: jnp.where(condition, x, y), a, b)
