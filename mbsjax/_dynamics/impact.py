"""Impacts, and every other change of a contact or a switch in dynamics (thesis 3.5, 3.6). Written for one lane."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .._kinematics.modes import EVENTS, GUARDS
from .._numerics.groups import pick
from .._numerics.linalg import definite, product
from .plant import Frame, Plant, Stance


TOUCHING = 1e-8  # of the mechanism's size: contacts nearer than this take part in an impact elsewhere
_STILL = 1e-9  # of the speeds before an impact: contacts that part more slowly stay together


class Blow(NamedTuple):
    """What an event decided."""

    stance: Stance
    kind: Int[Array, ""]  # a number of EVENTS
    contact: Int[Array, ""]  # or c plus the number of a switch
    struck: Bool[Array, " c"]  # which contacts make an impulse,
    elastic: Bool[Array, " c"]  # and which of them with their restitution
    impulse: Float[Array, " c"]
    rates: Float[Array, " c"]  # of the gaps, before it
    touched: Bool[Array, " c"]
    approach: Float[Array, ""]  # how fast the gap closed,
    rebound: Float[Array, ""]  # and the speed at which restitution would have bodies part that stay together


class Rule(NamedTuple):
    """Which speeds count as rest: those below a speed, or below a share of the fastest impact so far; and how near, in
    parts of the mechanism's size, contacts are that take part in an impact elsewhere."""

    speed: Float[Array, ""]
    share: Float[Array, ""]
    fastest: Float[Array, ""]
    touching: Float[Array, ""]

    def below(self, approach: Float[Array, ""]) -> Float[Array, ""]:
        """The largest speed that counts as rest, at an impact with this one."""
        return jnp.maximum(self.speed, self.share * jnp.maximum(self.fastest, approach))


class Meeting(NamedTuple):
    """The contacts of a position, as an impact sees them."""

    frame: Frame
    rates: Float[Array, " c"]  # of the gaps
    response: Float[Array, "nu c"]  # velocities that unit impulses make,
    G: Float[Array, "c c"]  # and the rates of the gaps


def meeting(plant: Plant, frame: Frame, v: Array, stance: Stance) -> Meeting:
    """Where the frame is known, with whatever contacts."""
    frame = plant.touching(frame, stance)
    there = jnp.all(jnp.isfinite(frame.slopes), 1)  # not where two profiles have no common normal
    frame = frame._replace(slopes=jnp.where(there[:, None], frame.slopes, 0.0))
    Cc = pick(frame.slopes, plant.problem.unknown, 1)
    held = frame.C.shape[0] - int(plant.rigid.sum())
    response, _ = plant.solver(frame, stance, contacts=False)(Cc.T, jnp.zeros((held, Cc.shape[0])))
    return Meeting(frame, _times(frame.slopes, v), response, product(Cc, response))


def _times(A: Array, x: Array) -> Array:
    """A x, written out: a loop with a matrix product in it is not compiled as one piece on CPUs."""
    return jnp.sum(A * x, 1)


def impulses(
    meets: Meeting, restitution: Float[Array, " c"], struck: Bool[Array, " c"], elastic: Bool[Array, " c"]
) -> Float[Array, " c"]:
    """The impulses that bring the contacts `struck` to rest, or, `elastic`, to what restitution leaves (3.5.2)."""
    b = meets.rates * (1 + jnp.where(elastic, restitution, 0.0))
    return _chosen(meets.G, b, struck)


def _chosen(G: Array, b: Array, chosen: Array) -> Array:
    """pi with G pi + b = 0 on the chosen ones, zero on the others."""
    both = chosen[:, None] & chosen[None]
    A = jnp.where(both, G, 0.0) + jnp.diag(jnp.where(chosen, 0.0, 1.0))
    return definite(A, 1e-12)(jnp.where(chosen, -b, 0.0)[:, None])[:, 0]


def complementary(G: Float[Array, "c c"], b: Float[Array, " c"], taking_part: Bool[Array, " c"]) -> Bool[Array, " c"]:
    """Which contacts make an impulse: pi >= 0, w = G pi + b >= 0, pi w = 0 (Murty's principal pivoting; all that is
    wrong is exchanged at first, and if that does not settle it, one after the other, which does)."""
    c = b.shape[0]
    small = 1e-12 * (jnp.max(jnp.abs(b), initial=0.0) + 1e-300)

    def wrong(chosen: Array) -> Array:
        pi = _chosen(G, b, chosen)
        w = _times(G, pi) + b
        force = jnp.max(jnp.abs(pi), initial=0.0) * 1e-12
        return taking_part & jnp.where(chosen, pi < -force, w < -small)

    def exchange(state):
        chosen, off, i = state
        first = jnp.arange(c) == jnp.argmax(off)
        chosen = chosen ^ jnp.where(i < c, off, first)
        return chosen, wrong(chosen), i + 1

    chosen = taking_part & (b < -small)
    chosen, _, _ = jax.lax.while_loop(
        lambda state: jnp.any(state[1]) & (state[2] < 8 * c + 8), exchange, (chosen, wrong(chosen), 0)
    )
    return chosen


def struck_velocity(plant: Plant, meets: Meeting, v: Array, pi: Array) -> Array:
    """The velocities after impulses."""
    return v + plant.spread(_times(meets.response, pi), jnp.zeros(len(plant.problem.columns)))


def happen(
    plant: Plant,
    frame: Frame,
    v: Array,
    stance: Stance,
    there: tuple[Array, ...],
    guard: Int[Array, ""],
    rule: Rule,
) -> tuple[Blow, Float[Array, " nv"]]:
    """What follows when a guard has reached zero, and the velocities after it. `there` is where each contact might
    close, and its gap there; `rule` tells which speeds count as none, and what takes part."""
    system, c = plant.problem.system, len(plant.laws)
    *where_near, gap = there
    there = tuple(where_near)
    number, name = jnp.arange(c), EVENTS.index
    switch = guard - GUARDS * c
    is_switch = switch >= 0
    side = jnp.where(jnp.arange(stance.side.shape[0]) == switch, -stance.side, stance.side)
    no = jnp.zeros(c, bool)
    n_own = sum(force.n_switches for force in plant.forces)
    turned = jnp.where(switch < n_own, name("switched"), name("triggered"))
    if c == 0:
        zero, none = jnp.zeros(()), jnp.zeros(0)
        return Blow(stance._replace(side=side), turned, c + switch, no, no, none, none, no, zero, zero), v

    k, w = jnp.clip(guard // GUARDS, 0, c - 1), jnp.where(is_switch, -1, guard % GUARDS)
    me, rigid = number == k, jnp.asarray(plant.rigid)
    closing = w == 0
    meets = closing & rigid[k]
    shifts = meets & stance.on[k]
    held = stance.on & ~(me & shifts)

    def placed(chosen: Array, where: tuple[Array, ...]) -> Stance:
        e1, e2, s1, s2 = (jnp.where(chosen, x, y) for x, y in zip(where, stance.where))
        return stance._replace(e1=e1, e2=e2, s1=s1, s2=s2)

    candidate = placed(~stance.on | (me & closing), there)
    met = meeting(plant, frame, v, candidate)
    near = jnp.abs(gap) < rule.touching * system.size
    part = rigid & (held | near | me)
    hits = part & ~held & ((met.rates < 0) | (me & meets))  # one that rests on its surface is formed

    approach = jnp.where(meets, jnp.maximum(-met.rates[k], 0.0), 0.0)
    rest_speed = rule.below(approach)

    def settled(elastic: Array) -> tuple[Array, Array, Array]:
        struck = complementary(met.G, met.rates * (1 + jnp.where(elastic, plant.restitution, 0.0)), part)
        pi = impulses(met, plant.restitution, struck, elastic)
        return struck, pi, met.rates + _times(met.G, pi)

    def weighed(k: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        elastic = state[0]
        struck, pi, after = settled(elastic)
        rests = ~(after >= rest_speed)  # these are formed: no endless bouncing (3.6.1-4)
        work = jnp.sum(pi * met.rates)
        gains = work + jnp.sum(pi * _times(met.G, pi)) / 2 > 1e-12 * jnp.abs(work)
        return elastic & ~jnp.select([k == 0, k == 1], [rests, gains | no], no), struck, pi, after

    zero = jnp.zeros(c)
    bounce = hits & (plant.restitution > 0)
    elastic, struck, pi, after = jax.lax.fori_loop(0, 3, weighed, (bounce, no, zero, zero))
    struck, pi = struck & meets, jnp.where(meets, pi, 0.0)
    still = _STILL * jnp.max(jnp.abs(met.rates)) + rest_speed  # what parts more slowly stays: the contacts hold it
    closed = hits & ~elastic & (after <= still)
    kept = stance.on & (~part | (after <= still)) & ~(me & shifts)
    on_impact = jnp.where(rigid, closed | kept, stance.on)

    further, possible = system.next_elements(frame.planes, stance.where, w)
    goes_on = (w >= 1) & (w <= 4) & possible[k]
    opens = (w == 5) | ((w >= 1) & (w <= 4) & ~possible[k])
    soft = closing & ~rigid[k]
    on = jnp.where(meets, on_impact, jnp.where(me & opens, False, stance.on | (me & soft)))
    moved = jnp.where(goes_on, me, ~stance.on | (me & closing))
    where = tuple(jnp.where(goes_on, x, y) for x, y in zip(further, there))
    soft_approach = jnp.where(me & soft, -met.rates, stance.approach)
    after_it = placed(moved, where)._replace(on=on, approach=soft_approach, side=side)
    kind = jnp.select(
        [is_switch, shifts, meets & closed[k], meets, soft, goes_on, w == 5],
        [turned, *(name(x) for x in ("shifted", "closed", "impact", "closed", "transition", "released"))],
        name("deleted"),
    )
    touched = (me & ~is_switch) | struck | (on != stance.on)
    contact = jnp.where(is_switch, c + switch, k)
    keep = lambda x, y: jnp.where(is_switch, y, x)
    final = jax.tree_util.tree_map(keep, after_it, stance._replace(side=side))
    rebound = jnp.where(closed[k] & ~shifts, plant.restitution[k] * approach, 0.0)
    told = Blow(final, kind, contact, struck, elastic & struck, pi, met.rates, touched, approach, rebound)
    return told, struck_velocity(plant, met, v, pi)


def bouncing_time(speed: Array, acceleration: Array, jerk: Array, restitution: Array, longest: Any) -> Array:
    """How long the bouncing lasts that begins with this speed away from a surface, under an acceleration towards it
    that changes evenly: infinitely many flights, the first of 2 v/A, each `restitution` times as long as the last.
    Right to second order in the speed; zero where the acceleration is not steady enough for such a series, or it would
    be longer than `longest`."""
    pull = -acceleration
    falls = (pull > 0) & (speed > 0) & (restitution < 1)
    safe = jnp.where(falls, pull, 1.0)
    sum_ = 2 * speed / (safe * jnp.where(falls, 1 - restitution, 1.0))
    change = jerk * sum_ / (3 * safe)
    return jnp.where(falls & (jnp.abs(change) < 0.25) & (sum_ < longest), sum_ * (1 + change), 0.0)
