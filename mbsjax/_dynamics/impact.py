"""Impacts: which contacts make an impulse, and how large it is (thesis 3.5). Written for one lane."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .._numerics.groups import pick
from .._numerics.linalg import definite, general, lemke, product
from .._programs.precision import ROUNDING, TINY, Threshold
from .instant import Frame
from .mode import Mode
from .plant import Plant


TOUCHING = Threshold(1e-8, 1e-5)  # of the mechanism's size: contacts nearer than this take part in an impact elsewhere
_LITTLE = Threshold(1e-6, 1e-3)  # of the largest rate, or impulse: an impact that leaves more has not been solved


class RestRule(NamedTuple):
    """Which speeds count as rest: those below a speed, or below a share of the fastest impact so far; and how near, in
    parts of the mechanism's size, contacts are that take part in an impact elsewhere."""

    speed: Float[Array, "*lanes"]
    share: Float[Array, "*lanes"]
    touching: Float[Array, "*lanes"]

    def below(self, fastest: Float[Array, "*lanes"]) -> Float[Array, "*lanes"]:
        """The largest speed that counts as rest."""
        return jnp.maximum(self.speed, self.share * fastest)


class Tangents(NamedTuple):
    """The contacts of a position, as an impact with friction sees them."""

    rates: Float[Array, " c"]  # of sliding
    response: Float[Array, "nu c"]  # velocities that unit impulses along the contacts make,
    G_n: Float[Array, "c c"]  # the rates of the gaps,
    G: Float[Array, "c c"]  # and those of sliding
    mu: Float[Array, " c"]


class Collision(NamedTuple):
    """The contacts of a position, as an impact sees them."""

    frame: Frame
    rates: Float[Array, " c"]  # of the gaps
    response: Float[Array, "nu c"]  # velocities that unit impulses make,
    G: Float[Array, "c c"]  # and the rates of the gaps
    tangents: Tangents | None  # without friction, nothing


class Impulses(NamedTuple):
    """The impulses of all contacts; without friction there are none along them."""

    normal: Float[Array, " c"]
    along: Float[Array, " k"]


def collision(plant: Plant, frame: Frame, v: Array, mode: Mode) -> Collision:
    """Where the frame is known, with whatever contacts."""
    frame = plant.touching(frame, mode)
    there = jnp.all(jnp.isfinite(frame.slopes), 1)  # not where two profiles have no common normal
    frame = frame._replace(slopes=jnp.where(there[:, None], frame.slopes, 0.0))
    u, c = plant.problem.unknown, len(plant.laws)
    rows = frame.slopes
    if plant.friction is not None and plant.tangents:
        along, mine = jnp.zeros_like(rows), np.array(plant.friction.contacts)
        along = along.at[mine].set(frame.T[: len(mine)] * plant.problem.system.size)
        rows = jnp.concatenate([rows, jnp.where(there[:, None], along, 0.0)])
    Cc = pick(rows, u, 1)
    held = frame.C.shape[0] - int(plant.rigid.sum())
    response, _ = plant.solver(frame, mode, contacts=False)(Cc.T, jnp.zeros((held, Cc.shape[0])))
    rates, G = _times(rows, v), product(Cc, response)
    if plant.friction is None or not plant.tangents:
        return Collision(frame, rates, response, G, None)
    mu = jnp.zeros(c).at[mine].set(plant.friction.sliding[: len(mine)])
    tangents = Tangents(rates[c:], response[:, c:], G[:c, c:], G[c:, c:], mu)
    return Collision(frame, rates[:c], response[:, :c], G[:c, :c], tangents)


def _times(A: Array, x: Array) -> Array:
    """A x, written out: a loop with a matrix product in it is not compiled as one piece on CPUs."""
    return jnp.sum(A * x, 1)


def impulses(
    met: Collision,
    restitution: Float[Array, " c"],
    struck: Bool[Array, " c"],
    elastic: Bool[Array, " c"],
    slid: Float[Array, " k"],
    poisson: bool,
) -> Impulses:
    """The impulses that bring the contacts `struck` to rest, or, `elastic`, to what restitution leaves (3.5.2). With
    friction, `slid` tells which way each slides afterwards, 0 for one that does not; a single contact goes along
    Routh's path. Restitution is Newton's, of speeds, or for a single contact Poisson's, of impulses."""
    e = jnp.where(elastic, restitution, 0.0)
    if met.tangents is None:
        return Impulses(_chosen(met.G, met.rates * (1 + e), struck), jnp.zeros(0))
    together = _together(met, met.rates * (1 + e), struck, slid)
    one = lambda x: jnp.sum(jnp.where(struck, x, 0.0))
    diagonal = lambda A: one(jnp.sum(A * np.eye(len(e)), 1))
    near, t = jnp.sum(struck) == 1, met.tangents
    masses = [jnp.where(near, diagonal(A), x) for A, x in ((met.G, 1.0), (t.G_n, 0.0), (t.G, 1.0))]
    alone = routh(one(met.rates), one(t.rates), masses, one(t.mu), one(e), poisson)
    return Impulses(*(jnp.where(near & struck, x, y) for x, y in zip(alone, together)))


def routh(u: Array, w: Array, response: Sequence[Array], mu: Array, e: Array, poisson: bool) -> tuple[Array, Array]:
    """The impulses of a single contact whose gap closes with u < 0 and which slides with w, by Routh's construction:
    the normal impulse grows, friction has its limit until sliding stops, from then on it holds, or, where it cannot,
    has its limit the other way. u grows by g_n and g_nt, w by g_nt and g_t, the `response`, for units of the two
    impulses."""
    g_n, g_nt, g_t = response
    g_t = jnp.where(g_t > 0, g_t, 1.0)
    s = jnp.where(w < 0, -1.0, 1.0)
    slows = g_nt - mu * s * g_t  # of w, for each unit of the normal impulse
    stops = s * slows < 0
    until = jnp.where(stops, -w / jnp.where(stops, slows, 1.0), jnp.inf)  # the impulse at which sliding stops
    after = jnp.clip(-g_nt / g_t, -mu, mu)
    first, then = g_n - mu * s * g_nt, g_n + g_nt * after  # what u grows by, before and after that

    def reaching(gain: Array) -> Array:
        """The impulse that changes u by `gain`."""
        most = jnp.where(stops, first * jnp.where(stops, until, 0.0), jnp.inf)
        early = (first > 0) & (gain <= most)
        late = jnp.where(stops, until, 0.0) + (gain - jnp.where(stops, most, 0.0)) / jnp.where(then > 0, then, 1.0)
        return jnp.where(early, gain / jnp.where(first > 0, first, 1.0), late)

    total = (1 + e) * reaching(-u) if poisson else reaching(-(1 + e) * u)
    total = jnp.maximum(total, 0.0)
    before = jnp.minimum(total, until)
    return total, -mu * s * before + after * (total - before)


def _chosen(G: Array, b: Array, chosen: Array) -> Array:
    """pi with G pi + b = 0 on the chosen ones, zero on the others."""
    both = chosen[:, None] & chosen[None]
    A = jnp.where(both, G, 0.0) + jnp.diag(jnp.where(chosen, 0.0, 1.0))
    return definite(A, ROUNDING())(jnp.where(chosen, -b, 0.0)[:, None])[:, 0]


def _together(met: Collision, b: Array, struck: Array, slid: Array) -> Impulses:
    """The impulses of the contacts `struck` that bring G pi + b to zero, and sliding to rest, or friction to its limit
    where it goes on."""
    t, c = met.tangents, len(b)
    assert t is not None
    eye, zero = np.eye(c), jnp.zeros((c, c))
    rubs = struck & (t.mu > 0)
    holds = rubs & (slid == 0)
    own = [jnp.sum(A * eye, 1) for A in (met.G, t.G)]
    own = [jnp.where(x > 0, x, 1.0)[:, None] for x in own]
    limit = jnp.where(rubs, slid * t.mu, 0.0)[:, None] * eye
    upper = jnp.where(struck[:, None], jnp.concatenate([met.G, t.G_n], 1) / own[0], jnp.concatenate([eye, zero], 1))
    lower = jnp.concatenate([t.G_n.T, t.G], 1) / own[1]
    lower = jnp.where(holds[:, None], lower, jnp.concatenate([limit, eye + zero], 1))
    A = jnp.concatenate([upper, lower])
    aim = jnp.concatenate([jnp.where(struck, -b / own[0][:, 0], 0.0), jnp.where(holds, -t.rates / own[1][:, 0], 0.0)])
    x, (solve, _) = jnp.zeros(2 * c), general(A + 1e-11 * np.eye(2 * c))
    for _ in range(2):  # the second pass makes up for the softness, which contacts need that share a load
        x = x + solve((aim - _times(A, x))[:, None])[:, 0]
    return Impulses(x[:c], x[c:])


def complementary(G: Float[Array, "c c"], b: Float[Array, " c"], taking_part: Bool[Array, " c"]) -> Bool[Array, " c"]:
    """Which contacts make an impulse: pi >= 0, w = G pi + b >= 0, pi w = 0 (Murty's principal pivoting; all that is
    wrong is exchanged at first, and if that does not settle it, one after the other, which does)."""
    c = b.shape[0]
    small = ROUNDING() * (jnp.max(jnp.abs(b), initial=0.0) + TINY())

    def wrong(chosen: Array) -> Array:
        pi = _chosen(G, b, chosen)
        w = _times(G, pi) + b
        force = jnp.max(jnp.abs(pi), initial=0.0) * ROUNDING()
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


def _frictional(met: Collision, b: Array, taking_part: Array) -> tuple[Array, Array, Array]:
    """Which contacts make an impulse, as in `complementary`, and which way they slide then: pairs hold where that takes
    no more than friction can do, and slide on where friction is against it; and whether there is such. By Lemke's
    pivoting, from all pairs sliding on the way that they do: that is where all unknowns are zero."""
    t, c = met.tangents, len(b)
    assert t is not None
    eye = np.eye(c)
    part, rubs = taking_part.astype(b.dtype), (taking_part & (t.mu > 0)).astype(b.dtype)
    way, mu = jnp.where(t.rates < 0, -1.0, 1.0), t.mu * rubs
    own = [jnp.where(x > 0, x, 1.0)[:, None] for x in (jnp.sum(A * eye, 1) for A in (met.G, t.G))]
    G, G_n = met.G / own[0] * part * part[:, None], t.G_n / own[0] * way * rubs * part[:, None]
    G_t = t.G / own[1] * way * way[:, None] * rubs * rubs[:, None]
    slows = t.G_n.T / own[1] * way[:, None] * part * rubs[:, None] - G_t * mu  # of the speed, by normal impulses
    none, speed = 0 * G, jnp.abs(t.rates / own[1][:, 0]) * rubs
    # the normal impulse, friction along the way, the speed against it (twice), and what friction could do more;
    # each is zero, or the rate of the gap is, the speed along the way (twice), friction against it, and the speed
    M = [
        [G - G_n * mu, 2 * G_n, none, G_n],
        [2 * slows, 4 * G_t, none + eye, 2 * G_t],
        [mu * eye, none - eye, none, none - eye],
        [slows, 2 * G_t, none + eye, G_t],
    ]
    q = jnp.concatenate([jnp.where(taking_part, b / own[0][:, 0], 1.0), 2 * speed, 0 * speed, speed])
    # a little more than that, of each another bit: nothing is due at once, and what only rounding closes stays open
    little = ROUNDING() * (jnp.max(jnp.abs(q)) + TINY())
    q = q + little * np.modf(0.618 * np.arange(1, 4 * c + 1))[0]
    normal, along, back, spare = lemke(jnp.concatenate([jnp.concatenate(row, 1) for row in M]), q).reshape(4, c)
    struck, turns = normal > 0, back != 0
    slid = jnp.where((spare != 0) | ((along != 0) & ~turns), 0.0, jnp.where(turns, -way, way))
    # what others stop needs no friction: where more hold than are needed, it has none
    pi = _together(met, b, struck, slid)
    beyond = jnp.abs(pi.along) > t.mu * pi.normal + _LITTLE() * jnp.max(jnp.abs(pi.normal))
    idle = (spare != 0) & turns & (along == 0) & jnp.any(struck & (rubs > 0) & beyond)
    opens = ~taking_part | (b + opening(met, pi) >= -_LITTLE() * jnp.max(jnp.abs(b)) - little * own[0][:, 0])
    return struck, jnp.where(idle, TINY(), slid), jnp.all(opens)


def keeping(met: Collision, pi: Impulses, kept: Bool[Array, " c"], slid: Float[Array, " k"]) -> Impulses:
    """The impulses that take back what `pi` makes of the rates of gaps that are `kept` closed, though they would open
    so slowly that it counts as rest. They pull, and friction goes with them: in the hop that is not resolved a contact
    neither presses nor rubs, and by the time it has ended, bodies have moved as much as if it had been pulled back."""
    rates, t = met.rates + opening(met, pi), met.tangents
    if t is None:
        return Impulses(_chosen(met.G, rates, kept), pi.along)
    sliding = t.rates + _times(t.G_n.T, pi.normal) + _times(t.G, pi.along)
    return _together(met._replace(tangents=t._replace(rates=sliding)), rates, kept, slid)


def opening(met: Collision, pi: Impulses) -> Float[Array, " c"]:
    """The rates of the gaps that impulses make."""
    rates = _times(met.G, pi.normal)
    return rates if met.tangents is None else rates + _times(met.tangents.G_n, pi.along)


def struck_velocity(plant: Plant, met: Collision, v: Array, pi: Impulses) -> Array:
    """The velocities after impulses."""
    change = _times(met.response, pi.normal)
    if met.tangents is not None:
        change = change + _times(met.tangents.response, pi.along)
    return v + plant.spread(change, jnp.zeros(len(plant.problem.columns)))


class Impact(NamedTuple):
    """What an impact does."""

    struck: Bool[Array, " c"]  # which contacts make an impulse,
    elastic: Bool[Array, " c"]  # which of them with their restitution,
    slid: Float[Array, " k"]  # and which way they slide then
    impulse: Impulses
    rates: Float[Array, " c"]  # of the gaps, afterwards


def impact(
    met: Collision,
    restitution: Float[Array, " c"],
    taking_part: Bool[Array, " c"],
    bouncing: Bool[Array, " c"],
    rest_speed: Float[Array, ""],
    poisson: bool,
) -> Impact:
    """The impulses of the contacts that take part. Of those that would bounce, the ones that part more slowly than
    `rest_speed` stay together (3.6.1-4); and none bounces where that would make energy."""
    no, zero, t = jnp.zeros_like(taking_part), jnp.zeros_like(met.rates), met.tangents
    none = zero[:0] if t is None else zero

    def weighed(state: tuple[Impact, Array, Array]) -> tuple[Impact, Array, Array]:
        (_, elastic, *_), _, k = state
        b = met.rates * (1 + jnp.where(elastic, restitution, 0.0))
        if t is None:
            struck, slid, solved = complementary(met.G, b, taking_part), none, True
        else:
            struck, slid, solved = _frictional(met, b, taking_part)
        pi = impulses(met, restitution, struck, elastic, slid, poisson)
        work, gain = jnp.sum(pi.normal * met.rates), _times(met.G, pi.normal)
        after = met.rates + gain
        lost = jnp.sum(pi.normal * gain) / 2
        if t is not None:
            across = _times(t.G_n, pi.along)
            work, after = work + jnp.sum(pi.along * t.rates), after + across
            lost = lost + jnp.sum(pi.normal * across) + jnp.sum(pi.along * _times(t.G, pi.along)) / 2
        rests = elastic & ~(after >= rest_speed) & (k == 0)
        gains = elastic & ((work + lost > ROUNDING() * jnp.abs(work)) | ~jnp.asarray(solved))
        still = jnp.where(jnp.any(rests), rests, gains)
        pi = pi._replace(normal=jnp.where(solved, pi.normal, jnp.nan))
        return Impact(struck, elastic & ~still, slid, pi, after), jnp.any(still), k + 1

    begin = Impact(no, bouncing, none, Impulses(zero, none), zero), jnp.ones((), bool), jnp.zeros((), int)
    return jax.lax.while_loop(lambda state: state[1], weighed, begin)[0]
