"""Resets: what follows when a guard has reached zero in dynamics (thesis 3.5, 3.6)."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .._events.guards import GAP, PER_CONTACT, RELEASE, contact_of, is_end, kind_of
from .._events.kinds import number
from .._events.places import Places
from .._numerics.groups import lanewise
from .._programs.precision import Threshold
from .._programs.trees import tree_where
from .bouncing import Bounces, Fall, bouncing_time, fall_of
from .friction import decided
from .impact import (
    Collision,
    Impact,
    Impulses,
    RestRule,
    collision,
    impact,
    impulses,
    keeping,
    struck_velocity,
)
from .instant import Frame, Instant
from .mode import Mode
from .plant import Plant


REST_NOISE = Threshold(1e-13, 1e-6)  # in parts of the mechanism's size: a gap that is less has not left its surface,
_HOP = 16  # times that: bounces that are less high are not resolved; their series is summed
_SERIES = 0.01  # of the time covered: bouncing that would last longer is no series
_SLOW = Threshold(1e-6, 1e-4)  # of the speed that its energies could give: a pair that stops is not faster
_STILL = Threshold(1e-9, 1e-5)  # of the speeds before an impact: contacts that part more slowly stay together


class Reset(NamedTuple):
    """What an event decides."""

    mode: Mode
    v: Float[Array, " nv"]  # velocities afterwards
    kind: Int[Array, ""]  # a number of EVENTS
    contact: Int[Array, ""]  # or, counted on from there, that of a joint with friction, then of a switch
    struck: Bool[Array, " c"]  # which contacts make an impulse,
    elastic: Bool[Array, " c"]  # which of them with their restitution,
    slid: Float[Array, " k"]  # and which way they slide then
    impulse: Impulses
    rates: Float[Array, " c"]  # of the gaps, before it
    touched: Bool[Array, " c"]  # contacts that it changes, or that make an impulse
    approach: Float[Array, ""]  # how fast the gap closed,
    ratio: Float[Array, ""]  # and in which ratio bodies that stay together would part, from bounce to bounce


def reset(
    plant: Plant,
    frame: Frame,
    v: Float[Array, " nv"],
    mode: Mode,
    there: tuple[Places, Array],
    guard: Int[Array, ""],
    rest: RestRule,
    fastest: Float[Array, ""],
) -> Reset:
    """What follows when a guard has reached zero; -1 for none. `there` is where each contact might close, and its gap
    there; `fastest` is the fastest impact so far."""
    c = len(plant.laws)
    other = guard >= PER_CONTACT * c
    r, joints = mode.slide.shape[0], 0 if plant.friction is None else len(plant.friction.freedoms)
    switch = guard - PER_CONTACT * c - r
    signs = jnp.where(jnp.arange(mode.signs.shape[0]) == switch, -mode.signs, mode.signs)
    n_own = sum(force.n_switches for force in plant.forces)
    turned = jnp.where(switch < n_own, number("switched"), number("triggered"))
    if c == 0:
        zero, no, none = jnp.zeros(()), jnp.zeros(0, bool), jnp.zeros(0)
        nothing, mode = Impulses(none, none), mode._replace(signs=signs)
        return Reset(mode, v, turned, joints + switch, no, no, none, nothing, none, no, zero, zero)

    k, what = jnp.clip(contact_of(guard), 0, c - 1), jnp.where(other | (guard < 0), -1, kind_of(guard))
    mine, rigid, closing = jnp.arange(c) == k, jnp.asarray(plant.rigid), what == GAP
    meets = closing & rigid[k]
    shifts = meets & mode.active[k]
    near, gap = there
    nearest = near.where(~mode.active | (mine & closing), mode.places)
    met = collision(plant, frame, v, mode._replace(places=nearest))
    approach = jnp.where(meets, jnp.maximum(-met.rates[k], 0.0), 0.0)
    hit, active, closed = _hit(plant, met, mode, mine, meets, shifts, gap, rest, approach, fastest)
    after, goes_on = _changed(plant, frame, mode, mine, what, near, jnp.where(meets, active, mode.active), meets)
    soft = closing & ~rigid[k]
    after = after._replace(approach=jnp.where(mine & soft, -met.rates, mode.approach))
    after = tree_where(other, mode, after)._replace(signs=signs)
    kinds = {
        "shifted": shifts,
        "closed": (meets & closed[k]) | soft,
        "impact": meets,
        "transition": goes_on,
        "released": what == RELEASE,
    }
    kind = jnp.select([other, *kinds.values()], [turned, *map(number, kinds)], number("deleted"))
    struck = hit.struck & meets
    impulse = Impulses(*(jnp.where(meets, x, 0.0) for x in hit.impulse))
    touched = (mine & ~other) | struck | (after.active != mode.active)
    contact, elastic, slid = jnp.where(other, c + joints + switch, k), hit.elastic & struck, _slid(plant, mode, hit)
    total, ratio = with_hops(plant, met, impulse, after, struck, slid, k)
    v = struck_velocity(plant, met, v, total)
    return Reset(after, v, kind, contact, struck, elastic, slid, impulse, met.rates, touched, approach, ratio)


def _hit(
    plant: Plant,
    met: Collision,
    mode: Mode,
    mine: Array,
    meets: Array,
    shifts: Array,
    gap: Array,
    rest: RestRule,
    approach: Array,
    fastest: Array,
) -> tuple[Impact, Array, Array]:
    """The impact of a contact that closes, with all that touch; which contacts are active after it; and which of them
    it has closed."""
    rigid = jnp.asarray(plant.rigid)
    held = mode.active & ~(mine & shifts)
    near = jnp.abs(gap) < rest.touching * plant.problem.system.size
    part = rigid & (held | near | mine) & meets
    hits = part & ~held & ((met.rates < 0) | (mine & meets))  # one that rests on its surface is formed
    rest_speed = rest.below(jnp.maximum(fastest, approach))
    hit = impact(met, plant.restitution, part, hits & (plant.restitution > 0), rest_speed, plant.poisson)
    still = _STILL() * jnp.max(jnp.abs(met.rates)) + rest_speed  # what parts more slowly stays: the contacts hold it
    closed = hits & ~hit.elastic & (hit.rates <= still)
    kept = mode.active & (~part | (hit.rates <= still)) & ~(mine & shifts)
    return hit, jnp.where(rigid, closed | kept, mode.active), closed


def _slid(plant: Plant, mode: Mode, hit: Impact) -> Array:
    """Which way each contact slides: as the impact has it, or, where that does not strike it, as before."""
    if not plant.tangents:
        return hit.slid
    assert plant.friction is not None
    mine = np.array(plant.friction.contacts)
    return jnp.where(hit.struck, hit.slid, jnp.zeros_like(hit.slid).at[mine].set(mode.slide[: len(mine)]))


def with_hops(
    plant: Plant, met: Collision, pi: Impulses, after: Mode, struck: Array, slid: Array, k: Array
) -> tuple[Impulses, Array]:
    """The impulses of an impact of contact k, with what keeps contacts closed that it opens too slowly to be seen; and
    the ratio in which k bounces while it goes on like this."""
    e = plant.restitution[k]
    if len(plant.laws) == 1:
        return pi, e
    kept = keeping(met, pi, after.active & jnp.asarray(plant.rigid) & jnp.any(struck), slid)
    total = Impulses(*(x + y for x, y in zip(pi, kept)))
    pushed = total.normal[k] > 0
    return total, jnp.where(pushed, (1 + e) * pi.normal[k] / jnp.where(pushed, total.normal[k], 1.0) - 1, e)


def _changed(
    plant: Plant,
    frame: Frame,
    mode: Mode,
    mine: Array,
    what: Array,
    there: Places,
    active: Array,
    meets: Array,
) -> tuple[Mode, Array]:
    """The mode with its contacts where they are then, and whether the contact goes on to its next element. One that
    cannot is deleted; one whose force is zero opens."""
    further, possible = plant.problem.system.next_elements(frame.planes, mode.places, what)
    able = jnp.any(mine & possible)
    goes_on = is_end(what) & able
    opens = (what == RELEASE) | (is_end(what) & ~able)
    closing = what == GAP
    active = jnp.where(meets, active, jnp.where(mine & opens, False, active | (mine & closing)))
    moved = jnp.where(goes_on, mine, ~mode.active | (mine & closing))
    places = further.where(goes_on, there).where(moved, mode.places)
    return mode._replace(places=places, active=active), goes_on


def reset_lanes(
    plant: Plant,
    rest: RestRule,
    now: Instant,
    t: Array,
    mode: Mode,
    there: tuple[Places, Array],
    began: Mode,
    bounces: Bounces,
    guard: Array,
    event: Array,
    span: Array,
    tangential: Array | None,
) -> tuple[Reset, Bounces, Array, Fall]:
    """`reset`, along lanes, where there is an event; what is known of the impacts then; how long the bouncing still
    lasts that it sums up, and what the gap falls under. The step `began` in another mode. Where the event is
    `tangential`, an impact stops a contact that slides."""
    c, lanes = len(plant.laws), t.ndim
    acceleration = settle = jnp.zeros_like(t)
    fall: Fall = Fall(settle, settle)
    mine: Any = None
    if c:
        numbers = np.arange(c).reshape(-1, *(1,) * lanes)
        mine = (numbers == contact_of(guard)) & (kind_of(guard) == GAP) & event
        # the acceleration is known on the elements that the step began with
        mine = mine & (began.places.e1 == there[0].e1) & (began.places.e2 == there[0].e2)
        acceleration = jnp.sum(jnp.where(mine, now.gap_rates_dot, 0.0), 0)
        hop = _HOP * REST_NOISE() * plant.problem.system.size
        rest = rest._replace(speed=jnp.maximum(rest.speed, jnp.sqrt(2 * jnp.maximum(-acceleration, 0.0) * hop)))
    rest = RestRule(*(jnp.broadcast_to(x, t.shape) for x in rest))
    made = lanewise(reset, lanes)(plant, now.frame, now.v, mode, there, guard, rest, bounces.fastest)
    if plant.friction is not None:
        if tangential is not None and plant.tangents:
            made = _tangential(plant, now, mode, made, guard, tangential)
        made = _with_friction(plant, now, t, mode, made, guard, event)
    if c:
        fall = fall_of(t, acceleration, made.approach, *(jnp.sum(jnp.where(mine, x, 0.0), 0) for x in bounces[1:]))
        settle = bouncing_time(made.approach, acceleration, fall, made.ratio, _SERIES * span)
        settle = jnp.where(made.kind == number("closed"), settle, 0.0)
        rebound = jnp.sum(now.frame.slopes * made.v[None], 1)
        disturbed = bounces._replace(rebound=jnp.where(event, -1.0, bounces.rebound))
        struck = (t, now.gap_rates_dot, made.approach, rebound)
        fastest = jnp.where(event, jnp.maximum(bounces.fastest, made.approach), bounces.fastest)
        bounces = Bounces(fastest, *(jnp.where(mine, x, y) for x, y in zip(struck, disturbed[1:])))
    return made, bounces, settle, fall


def _with_friction(plant: Plant, now: Instant, t: Array, mode: Mode, made: Reset, guard: Array, event: Array) -> Reset:
    """What an event decides, with what becomes of the pairs with friction, all together."""
    assert plant.friction is not None and now.friction is not None
    c, r = len(plant.laws), mode.slide.shape[0]
    fired = np.arange(r).reshape(-1, *(1,) * t.ndim) == guard - PER_CONTACT * c
    assert now.sliding is not None
    slow = jnp.abs(now.sliding.speed) <= _SLOW() * now.sliding.fast(now.scale)
    # at its limit is what slid, or stood there, and what has just reached it; not what has just stopped
    slid = plant.closed(mode) & (mode.slide != 0)
    slide = decide_friction(
        plant, t, now.frame.q, made.v, now.frame, made.mode, fired & (slow | ~slid), slid ^ fired, event
    )
    before, after = (jnp.sum(jnp.where(fired, x, 0.0), 0) for x in (mode.slide, slide))
    mine = jnp.any(fired, 0)
    owner = jnp.sum(jnp.where(fired, owners(plant).reshape(-1, *(1,) * t.ndim), 0), 0)
    return made._replace(
        mode=made.mode._replace(slide=slide),
        kind=jnp.where(mine, friction_event(before, after), made.kind),
        contact=jnp.where(mine, owner, made.contact),
    )


def _tangential(plant: Plant, now: Instant, mode: Mode, made: Reset, guard: Array, there: Array) -> Reset:
    """What an event decides, where `there` is one: an impact without a collision, in a contact that cannot slide
    on."""
    assert plant.friction is not None
    c, mine = len(plant.laws), np.array(plant.friction.contacts)

    def stopped(plant: Plant, now: Instant, mode: Mode, made: Reset, pair: Array, there: Array) -> Reset:
        met = collision(plant, now.frame, now.v, mode)
        struck = jnp.arange(c) == jnp.asarray(mine)[jnp.clip(pair, 0, len(mine) - 1)]
        struck = struck & there & (pair < len(mine))
        none = jnp.zeros(c)
        pi = impulses(met._replace(rates=none), none, struck, struck & False, none, plant.poisson)
        new = made._replace(
            v=struck_velocity(plant, met, now.v, pi), struck=struck, elastic=struck & False, slid=none, impulse=pi
        )
        return tree_where(there, new, made)

    pair = guard - PER_CONTACT * c
    return lanewise(stopped, there.ndim)(plant, now, mode, made, pair, there)


def friction_event(before: Array, after: Array) -> Array:
    """The kind of event that changes how a pair slides."""
    kinds = [number("sticks"), number("reverses")]
    return jnp.select([after == 0, (before == -after)], kinds, number("slips"))


def owners(plant: Plant) -> np.ndarray:
    """The numbers of the contacts that have friction; counted on from all contacts, those of the joints that have."""
    assert plant.friction is not None
    c = len(plant.laws)
    return np.array([*plant.friction.contacts, *range(c, c + len(plant.friction.freedoms))])


def slides_otherwise(plant: Plant, before: Mode, after: Mode, contact: Array) -> Bool[Array, "r *lanes"]:
    """Which pairs with friction that stay closed change how they slide, but for that of the contact or joint with this
    number."""
    others = owners(plant).reshape(-1, *(1,) * contact.ndim) != contact
    return (before.slide != after.slide) & plant.closed(before) & plant.closed(after) & others


def decide_friction(
    plant: Plant, t: Array, q: Array, v: Array, frame: Frame, mode: Mode, stands: Array, at_limit: Array, asked: Array
) -> Array:
    """Which way the pairs with friction slide on from a position and velocities, in the lanes where that is `asked`;
    `stands` and `at_limit` as for `decided`. The frame tells the masses there."""
    free = mode._replace(slide=jnp.ones_like(mode.slide))
    now = plant.instant(t, q, plant.momentum(frame, v), free)
    decide = lanewise(decided, t.ndim)
    return decide(plant.friction, now.sliding, plant.closed(mode) & asked, now.scale, stands, at_limit)
