"""Impacts: which contacts make an impulse, and how large it is (thesis 3.5). Written for one lane."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._numerics.groups import pick
from .._numerics.linalg import definite, product
from .mode import Mode
from .plant import Frame, Plant


TOUCHING = 1e-8  # of the mechanism's size: contacts nearer than this take part in an impact elsewhere


class RestRule(NamedTuple):
    """Which speeds count as rest: those below a speed, or below a share of the fastest impact so far; and how near, in
    parts of the mechanism's size, contacts are that take part in an impact elsewhere."""

    speed: Float[Array, "*lanes"]
    share: Float[Array, "*lanes"]
    touching: Float[Array, "*lanes"]

    def below(self, fastest: Float[Array, "*lanes"]) -> Float[Array, "*lanes"]:
        """The largest speed that counts as rest."""
        return jnp.maximum(self.speed, self.share * fastest)


class Collision(NamedTuple):
    """The contacts of a position, as an impact sees them."""

    frame: Frame
    rates: Float[Array, " c"]  # of the gaps
    response: Float[Array, "nu c"]  # velocities that unit impulses make,
    G: Float[Array, "c c"]  # and the rates of the gaps


def collision(plant: Plant, frame: Frame, v: Array, mode: Mode) -> Collision:
    """Where the frame is known, with whatever contacts."""
    frame = plant.touching(frame, mode)
    there = jnp.all(jnp.isfinite(frame.slopes), 1)  # not where two profiles have no common normal
    frame = frame._replace(slopes=jnp.where(there[:, None], frame.slopes, 0.0))
    Cc = pick(frame.slopes, plant.problem.unknown, 1)
    held = frame.C.shape[0] - int(plant.rigid.sum())
    response, _ = plant.solver(frame, mode, contacts=False)(Cc.T, jnp.zeros((held, Cc.shape[0])))
    return Collision(frame, _times(frame.slopes, v), response, product(Cc, response))


def _times(A: Array, x: Array) -> Array:
    """A x, written out: a loop with a matrix product in it is not compiled as one piece on CPUs."""
    return jnp.sum(A * x, 1)


def impulses(
    met: Collision, restitution: Float[Array, " c"], struck: Bool[Array, " c"], elastic: Bool[Array, " c"]
) -> Float[Array, " c"]:
    """The impulses that bring the contacts `struck` to rest, or, `elastic`, to what restitution leaves (3.5.2)."""
    b = met.rates * (1 + jnp.where(elastic, restitution, 0.0))
    return _chosen(met.G, b, struck)


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


def struck_velocity(plant: Plant, met: Collision, v: Array, pi: Array) -> Array:
    """The velocities after impulses."""
    return v + plant.spread(_times(met.response, pi), jnp.zeros(len(plant.problem.columns)))


class Impact(NamedTuple):
    """What an impact does."""

    struck: Bool[Array, " c"]  # which contacts make an impulse,
    elastic: Bool[Array, " c"]  # and which of them with their restitution
    impulse: Float[Array, " c"]
    rates: Float[Array, " c"]  # of the gaps, afterwards


def impact(
    met: Collision,
    restitution: Float[Array, " c"],
    taking_part: Bool[Array, " c"],
    bouncing: Bool[Array, " c"],
    rest_speed: Float[Array, ""],
) -> Impact:
    """The impulses of the contacts that take part. Of those that would bounce, the ones that part more slowly than
    `rest_speed` stay together (3.6.1-4); and none bounces where that would make energy."""
    no, zero = jnp.zeros_like(taking_part), jnp.zeros_like(met.rates)

    def weighed(k: Array, state: Impact) -> Impact:
        elastic = state.elastic
        struck = complementary(met.G, met.rates * (1 + jnp.where(elastic, restitution, 0.0)), taking_part)
        pi = impulses(met, restitution, struck, elastic)
        after = met.rates + _times(met.G, pi)
        rests = ~(after >= rest_speed)
        work = jnp.sum(pi * met.rates)
        gains = work + jnp.sum(pi * _times(met.G, pi)) / 2 > 1e-12 * jnp.abs(work)
        return Impact(struck, elastic & ~jnp.select([k == 0, k == 1], [rests, gains | no], no), pi, after)

    return jax.lax.fori_loop(0, 3, weighed, Impact(no, bouncing, zero, zero))
