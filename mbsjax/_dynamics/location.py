"""What the guards say of a step that is tried, and the location of the event that they tell of."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from .._events.dips import dip_by_middle
from .._events.locator import JUMP, Bracket, aim, narrowed
from .._programs.precision import TINY, Threshold
from .loop_state import Run, State, Trial
from .reset import REST_NOISE


_NOISE = Threshold(1e-11, 1e-5)  # a guard nearer to zero has not left its surface,
_FINE_NOISE = REST_NOISE  # nor has a gap of an open contact, or what it passes in the shortest time that can be told
_JUST = 16  # times that: a guard that goes below zero has just done so. Steps are halved until one does
_BEYOND = Threshold(1e-7, 1e-4)  # a friction that is further beyond its limit has given way
_FOUND = Threshold(3e-14, 1e-6)  # a guard nearer to zero is on it; a gap must be so near
_SOON = Threshold(1e-14, 1e-7)  # that it closes within this part of the time covered, and
_DIGITS = Threshold(3e-17, 3e-8)  # no nearer than numbers tell apart,
_MET = Threshold(3e-15, 1e-6)  # no further than this: later events inherit the error
_SLOW = Threshold(1e-9, 1e-2)  # of the speed that counts as rest: nothing moves that is slower
_SHORT = Threshold(1e-7, 1e-4)  # of the time covered: in a shorter step, no dip is looked for


class GuardSigns(NamedTuple):
    """What the guards say of a trial, lane by lane, and, first, guard by guard."""

    noise: Array
    passed: Array  # which passed zero in the step,
    unarmed: Array  # or were led through their surface before they had left it
    at_once: Array
    early: Array  # whether one passed zero in the first half,
    crossing: Array  # or at all
    long: Array  # whether the step was too long: an unarmed guard came back
    leaves: Array  # whether a contact that began at the end of an element goes on to the next, and nothing else is due
    due_now: Array  # whether an event is due before any step
    sinks: Array
    dips: Array
    h_dip: Array


class Located(NamedTuple):
    """How far the search for an event has come."""

    bracket: Bracket
    not_yet: Array  # the trial did not come as far as the event
    found: Array
    jump: Array  # a guard has jumped over zero,
    over: Array  # and so does the step
    dips: Array
    h: Array  # the step to try next


def signs_of(run: Run, s: State, trial: Trial) -> GuardSigns:
    """Which guards have passed zero, and when."""
    table, size, g, g_mid = run.table, run.plant.problem.system.size, trial.g, trial.g_mid
    kept = trial.keep & ~s.done
    is_open = ~table.of_contacts(s.mode.active, True)
    noise = jnp.full_like(g, _NOISE())
    if table.contacts:
        fine = jnp.maximum(_FINE_NOISE(), 8 * run.least * jnp.abs(s.speeds.rates) / size)
        noise = jnp.where(table.is_gap & is_open, table.of_contacts(fine, _NOISE()), noise)
    early = s.armed & (g_mid <= 0) & ~s.fresh
    left = s.armed | (g_mid > noise) | (s.bracket.locating & (s.bracket.g_lo > 0))
    late = (g <= 0) & left & ~s.fresh
    unarmed = ~s.armed & ~s.fresh & (s.g > -100 * noise)  # one that is negative from the start does not count
    low = jnp.minimum(s.g, 0.0) - noise  # one that rises from a little below has not come back
    unarmed = unarmed & ((g_mid < low) | ((g < low) & (g_mid <= noise)))
    # at once: forces that pull, and contacts that approach where they begin
    exempt = table.of_contacts(s.exempt, False)
    at_once = s.fresh & ((s.armed & (g <= 0) & ~exempt) | (table.is_release & (g < -_NOISE())))
    if table.pairs:  # and what sticks with more than it can hold
        at_once = at_once | (s.fresh & table.is_friction & (g < -_BEYOND()))
    sinks = jnp.zeros_like(s.fresh)
    if table.contacts:
        rates, onward = trial.now.gap_rates, trial.now.gap_rates_dot
        touching = (jnp.abs(g) <= _NOISE()) & table.is_gap & ~exempt & ~s.armed & is_open
        slow = _SLOW() * jnp.maximum(run.rest.below(s.bounces.fastest), TINY())
        falling = (rates < -slow) | ((rates <= slow) & (onward < 0))
        at_once = at_once | (s.fresh & touching & table.of_contacts(falling, False))
        # a contact that has opened and comes back before it has left its surface: let it be looked at anew
        sunk = unarmed & table.is_gap & (jnp.abs(s.g) <= _NOISE()) & ~exempt & is_open
        sinks = jnp.any(sunk & table.of_contacts(s.speeds.rates < -2 * slow, False), 0) & kept
    just = jnp.any(unarmed, 0) & jnp.all(~unarmed | (table.is_end & (g > s.g - _JUST * noise)), 0)
    dip, h_dip = _dip(s, trial, size)
    was_early, was_late, long = (jnp.any(x, 0) & kept for x in (early, late, unarmed))
    crossing, due_now = (was_early | was_late) & ~long, jnp.any(at_once, 0) & ~s.done
    dips = dip & kept & ~long
    leaves, passed = just & kept, early | late
    return GuardSigns(noise, passed, unarmed, at_once, was_early, crossing, long, leaves, due_now, sinks, dips, h_dip)


def _dip(s: State, trial: Trial, size: Array) -> tuple[Array, Array]:
    """Whether a guard may have been below zero on the way, or the gap of a pair of elements that was never the closest;
    and where it was lowest."""
    clear = ~s.mode.active[:, None] & (s.apart > _NOISE() * size)
    begin, middle, end, armed = (
        jnp.concatenate([x, y.reshape(-1, *s.t.shape)])
        for x, y in ((s.g, s.apart), (trial.g_mid, trial.apart_mid), (trial.g, trial.apart), (s.armed, clear))
    )
    dip, where = dip_by_middle(begin, middle, end)
    dip = dip & armed & ~s.fresh
    return jnp.any(dip, 0), jnp.min(jnp.where(dip, where, 1.0), 0, initial=1.0) * trial.h


def locate(run: Run, s: State, trial: Trial, signs: GuardSigns, closing: Any) -> Located:
    """The bracket, narrowed by the trial, and whether the event is found."""
    table, h, g, g_mid = run.table, trial.h, trial.g, trial.g_mid
    crossing, early = signs.crossing, signs.early
    not_yet = s.bracket.locating & trial.keep & ~s.done & ~crossing & ~signs.long
    # what is below zero half way, before the bracket begins, came back until then: the search begins anew
    sooner = crossing & early & (h / 2 <= s.bracket.lo)
    locating = s.bracket.locating & ~sooner
    from_mid = crossing & ~early & (h / 2 > s.bracket.lo)
    g_lo = jnp.where(locating, s.bracket.g_lo, jnp.where(s.armed, s.g, jnp.minimum(s.g, 0.0)))
    begin, low = s.bracket._replace(g_lo=g_lo, lo=jnp.where(sooner, 0.0, s.bracket.lo)), jnp.where(from_mid, g_mid, g)
    left = s.armed | (g_lo > 0) | (g_mid > signs.noise) | (low > signs.noise)  # the others have not left zero
    low = (jnp.where(from_mid, h / 2, h), jnp.where(left, low, jnp.minimum(low, 0.0)))
    high = (jnp.where(early, h / 2, h), jnp.where(early, g_mid, g))
    b = narrowed(begin, from_mid | not_yet, *low, crossing, *high)
    # where no guard passes zero any more there is nothing to be found, and the step counts as any other
    given_up = b.locating & ~crossing & ~jnp.any(b.crossed, 0)
    b, not_yet = b._replace(hi=jnp.where(given_up, jnp.inf, b.hi)), not_yet & ~given_up
    width, crossed = b.hi - b.lo, b.crossed
    on_it, leaps = jnp.full_like(g, _FOUND()), jnp.zeros_like(early)
    if closing is not None:
        size, (speed, onward) = run.plant.problem.system.size, closing
        # a gap that is deeper than bodies can come within the bracket was not closed there: chords lead nowhere
        depth = 2 * (speed + onward * width) * width / size
        leaps = crossed & table.is_gap & (-b.g_hi > table.of_contacts(depth, jnp.inf) + JUMP())
        leaps = jnp.any(crossed, 0) & jnp.all(~crossed | leaps, 0)
        soon = jnp.clip(_SOON() * run.span * jnp.abs(trial.now.gap_rates) / size, _DIGITS(), _MET())
        is_open = ~table.of_contacts(s.mode.active, True)
        on_it = jnp.where(table.is_gap & is_open, table.of_contacts(soon, _FOUND()), on_it)
    arrived = (crossing & ~early | not_yet) & jnp.all(~crossed | (jnp.abs(g) <= on_it), 0)
    found = b.locating & trial.keep & ~s.done & ~signs.long & ((width <= run.least) | arrived)
    # nor does an event count that comes after a dip
    dips = signs.dips & (h > _SHORT() * run.span) & (found | ~b.locating)
    found &= ~dips
    jump = found & (jnp.max(jnp.where(crossed, jnp.abs(g), 0.0), 0, initial=0.0) > JUMP())
    return Located(b, not_yet, found & ~jump, jump, jump & crossing & ~early, dips, aim(b, s.tries, leaps))


def guard_of(run: Run, s: State, signs: GuardSigns, located: Located, stays: Array) -> Array:
    """The guard that an event is due to: of several at one time, one that closes a contact."""
    table, b = run.table, located.bracket
    if not table.count:
        return jnp.zeros_like(s.steps)
    order = jnp.where(b.crossed & located.found, b.roots, jnp.where(signs.passed, 1.0, jnp.inf))
    order = order - jnp.where(table.is_gap & ~table.of_contacts(s.mode.active, True), 1.0, 0.0)
    order = jnp.where(signs.at_once & signs.due_now, -1.0 + jnp.where(table.is_release, 0.0, -1.0), order)
    return jnp.argmin(jnp.where(signs.unarmed & stays, 0.0, order), 0)
