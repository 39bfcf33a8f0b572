"""Friction: which pairs slide or stick, and with what force.

A pair with friction is a contact or a joint. Its sliding speed is w = T v, its friction force f acts along T. Without
friction the pairs would slide with accelerations `free`; forces add W f, and change the normal loads N(f), which are
affine for contacts; a joint's is the length of what it carries. So much is solved for here, with as many unknowns as
there are pairs: w' = 0 where a pair sticks, f = -s mu N where it slides in the direction s, f = 0 where it is open.
Lengths count in parts of the mechanism's size: forces are energies, speeds are rates. Written for one lane.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .._kinematics.layout import Layout
from .._numerics.groups import wide
from .._numerics.linalg import general
from .._programs.precision import TINY
from .._programs.trees import frozen


_SOFT = 1e-6  # of a pair's mobility: pairs that stick and hold the same share it; three passes make up for that
_HELD = 1e-12  # of the mobility that a pair would have by itself: one that has less is held by something else
_PASSES = 10  # of Newton's method, for the loads of joints
_UNSOLVED = 1e-6  # of the forces: where more is left of the equations, they have no solution
_EDGE = 1e-9  # of a limit: what is not further beyond it is on it
STILL = 1e-10  # of the speed that the present forces and energies could give: what is slower stands still


class SlidingProblem(NamedTuple):
    """What there is to know of the pairs with friction, before their forces."""

    speed: Float[Array, "r *lanes"]
    free: Float[Array, "r *lanes"]  # accelerations of sliding without friction,
    W: Float[Array, "r r *lanes"]  # and what friction forces change of them
    alone: Float[Array, "r *lanes"]  # the mobility that each pair would have if nothing else held its bodies
    normal: Float[Array, "c *lanes"]  # of the pairs that are contacts, the normal force without friction,
    normal_by: Float[Array, "c r *lanes"]  # and what friction forces change of it
    wrench: Float[Array, "h rows *lanes"]  # of the joints whose friction depends on it, what they carry, likewise
    wrench_by: Float[Array, "h rows r *lanes"]

    @property
    def mobility(self) -> Float[Array, "r *lanes"]:
        """What a unit of its own force changes of each pair's acceleration; one, where it is held anyway."""
        return jnp.where(self.movable, self._own, 1.0)

    @property
    def movable(self) -> Bool[Array, "r *lanes"]:
        return self._own > _HELD * self.alone

    def fast(self, scale: Array) -> Float[Array, "r *lanes"]:
        """How fast each pair would slide if its bodies had an energy."""
        energy = scale * self.alone
        return jnp.sqrt(jnp.where(energy > 0, energy, 1.0))

    def acceleration(self, force: Float[Array, "r *lanes"]) -> Float[Array, "r *lanes"]:
        """Of sliding, with these friction forces."""
        return self.free + jnp.sum(self.W * force[None], 1)

    @property
    def _own(self) -> Float[Array, "r *lanes"]:
        return jnp.sum(self.W * wide(np.eye(self.W.shape[0]), self.W.ndim - 2), 1)


class FrictionForces(NamedTuple):
    """The forces of all pairs with friction."""

    force: Float[Array, "r *lanes"]
    normal: Float[Array, "r *lanes"]  # the normal loads
    margin: Float[Array, "r *lanes"]  # how much more a pair could hold that sticks
    determinant: Float[Array, "*lanes"]  # of the equations; where it is not positive they have no solution, or several
    own: Float[Array, "r *lanes"]  # that of each pair's own equation
    off: Float[Array, "*lanes"]  # what is left of them

    @property
    def solved(self) -> Bool[Array, "*lanes"]:
        """Whether these forces are the only ones."""
        return (self.determinant > 0) & (self.off < _UNSOLVED)


class Friction(eqx.Module):
    """The pairs with friction of a mechanism: the contacts, then the joints. Lanes may stand behind its numbers."""

    sliding: Float[Array, "r *lanes"]
    static: Float[Array, "r *lanes"]
    stribeck: Float[Array, "r *lanes"]  # zero for none
    viscous: Float[Array, "r *lanes"]
    sizes: Float[Array, "r *lanes"]  # what one unit of each sliding speed weighs
    carries: Float[Array, "h 2 3 rows *lanes"]  # the forces at two places of a joint, from what it carries
    contacts: tuple[int, ...] = eqx.field(static=True)
    freedoms: tuple[int, ...] = eqx.field(static=True)  # of the joints
    wrench_of: tuple[int, ...] = eqx.field(static=True)  # of each joint, the number of its wrench; -1 for a given load
    sides: tuple[int, ...] = eqx.field(static=True)  # the body whose frame each wrench is seen in
    layout: Layout = eqx.field(static=True)  # with the joints held whose wrenches are asked for
    names: tuple[str, ...] = eqx.field(static=True)

    @property
    def count(self) -> int:
        return len(self.names)

    def coefficient(self, speed: Float[Array, " r"]) -> Float[Array, " r"]:
        """The coefficients of friction of pairs that slide."""
        falls = self.stribeck > 0
        share = jnp.where(falls, jnp.exp(-jnp.abs(speed) * self.sizes / jnp.where(falls, self.stribeck, 1.0)), 0.0)
        return self.sliding + (self.static - self.sliding) * share

    def normal_loads(self, problem: SlidingProblem, f: Array) -> tuple[Float[Array, " r"], Float[Array, "r r"]]:
        """The normal loads, where friction makes the forces f, and their derivatives in these."""
        loads, slopes = [problem.normal + jnp.sum(problem.normal_by * f, 1)], [problem.normal_by]
        if self.freedoms:
            r, given = len(f), jnp.ones(1)
            of_wrench, by = jnp.zeros(0), jnp.zeros((0, r))
            if self.sides:
                carried = problem.wrench + jnp.sum(problem.wrench_by * f, 2)
                parts = jnp.sum(self.carries * carried[:, None, None], 3)
                square = jnp.sum(parts * parts, 2)
                loaded = square > 0
                length = jnp.where(loaded, jnp.sqrt(jnp.where(loaded, square, 1.0)), 0.0)
                unit = parts / jnp.where(loaded, length, 1.0)[:, :, None]
                along = jnp.sum(unit[..., None] * self.carries, (1, 2))
                of_wrench, by = jnp.sum(length, 1), jnp.sum(along[:, :, None] * problem.wrench_by, 1)
            which = np.array(self.wrench_of)  # -1 is the last one
            own = self.sizes[len(self.contacts) :]
            loads.append(jnp.concatenate([of_wrench, given])[which] * own)
            slopes.append(jnp.concatenate([by, jnp.zeros((1, r))])[which] * own[:, None])
        return jnp.concatenate(loads), jnp.concatenate(slopes)

    def forces(self, problem: SlidingProblem, closed: Bool[Array, " r"], slide: Float[Array, " r"]) -> FrictionForces:
        """The forces, where `slide` tells which way each pair slides that is closed: 1 or -1, or 0 where it sticks."""
        r, eye = len(slide), np.eye(len(slide))
        slips, sticks = closed & (slide != 0), closed & (slide == 0) & problem.movable
        mobility = problem.mobility
        mu = slide * self.coefficient(problem.speed)
        drag = self.viscous * self.sizes**2 * problem.speed
        W, soft = problem.W / mobility[:, None], 0.0 if r == 1 else _SOFT

        def equations(f: Array) -> tuple[Array, Array, Array]:
            """What is left of them, in parts of the loads too, and their derivatives."""
            N, slopes = self.normal_loads(problem, f)
            stuck = problem.free / mobility + jnp.sum(W * f, 1)
            left = jnp.where(sticks, stuck, f + jnp.where(slips, mu * N + drag, 0.0))
            J = jnp.where(sticks[:, None], W + soft * eye, eye + jnp.where(slips, mu, 0.0)[:, None] * slopes)
            # all of them may be zero: no slopes
            lacks, *sizes = (jnp.max(jnp.abs(x)) for x in frozen((left, f, N)))
            return left, lacks / (sum(sizes) + TINY()), J

        def newton(f: Array, _: Any = None) -> tuple[Array, tuple[Array, Array, Array]]:
            left, off, J = equations(f)
            solve, determinant = general(J)
            return f - solve(left[:, None])[:, 0], (jnp.sum(J * eye, 1), determinant, off)

        f = jnp.zeros(r)
        if self.sides:
            f, seen = jax.lax.scan(newton, f, None, length=_PASSES)
            own, determinant, off = (x[-1] for x in seen)
        else:  # linear
            left, off, J = equations(f)
            solve, determinant = general(J)
            own, f = jnp.sum(J * eye, 1), -solve(left[:, None])[:, 0]
            for _ in range(0 if r == 1 else 2):
                left, off, _ = equations(f)
                f = f - solve(left[:, None])[:, 0]
            off = jnp.zeros_like(off) if r == 1 else off
        N, _ = self.normal_loads(problem, f)
        return FrictionForces(f, N, self.static * N - jnp.abs(f), determinant, own, off)

    def stopping(self, problem_W: Array, alone: Array, speed: Array, sticks: Array) -> Float[Array, " r"]:
        """The impulses that stop the pairs that stick, where they slide with `speed`."""
        eye = np.eye(len(speed))
        own = jnp.sum(problem_W * eye, 1)
        sticks = sticks & (own > _HELD * alone)
        own = jnp.where(sticks, own, 1.0)
        both = sticks[:, None] & sticks[None]
        single, pi = len(speed) == 1, jnp.zeros_like(speed)
        J = jnp.where(both, problem_W / own[:, None] + (0.0 if single else _SOFT) * eye, eye)
        solve, _ = general(J)
        for _ in range(1 if single else 3):
            left = jnp.where(sticks, (speed + jnp.sum(problem_W * pi, 1)) / own, pi)
            pi = pi - solve(left[:, None])[:, 0]
        return pi


def decided(
    friction: Friction,
    problem: SlidingProblem,
    closed: Bool[Array, " r"],
    scale: Float[Array, ""],
    stands: Bool[Array, " r"],
    at_limit: Bool[Array, " r"],
) -> Float[Array, " r"]:
    """Which way each pair slides on, all decided together. Those that move go on. Of those that stand still, or
    `stands` says so, one sticks if what holds it is within its limit, and slides if not, where its force gave way.
    Where several hold the same they share it, as far as each can: they move when none can do more. Those that were
    `at_limit` need not go beyond it to be there again. `scale` is the energy that `STILL` is about."""
    r = closed.shape[0]
    still = (jnp.abs(problem.speed) <= STILL * problem.fast(scale)) | stands
    slide = jnp.where(still, 0.0, jnp.sign(problem.speed))
    # where nothing gives way to friction, as in a dead center, the others move the pair, whatever it does
    led = ~problem.movable & (jnp.abs(problem.free) > _EDGE * scale * problem.alone)
    slide = jnp.where(still & led, jnp.sign(problem.free), slide)

    def wrong(slide: Array) -> tuple[Array, Array]:
        now = friction.forces(problem, closed, slide)
        small = _EDGE * (jnp.max(jnp.abs(now.force)) + jnp.max(jnp.abs(now.normal)))
        onward = problem.acceleration(now.force) / problem.mobility
        beyond, against = now.margin < jnp.where(at_limit, small, -small), slide * onward < -small
        off = still & closed & problem.movable & jnp.where(slide == 0, beyond, against)
        return off, now.force

    def exchange(state):
        slide, (off, force), i = state
        one = (jnp.arange(r) == jnp.argmax(off)) & off
        change = jnp.where(i < r + 1, off, one)
        slide = jnp.where(change, jnp.where(slide == 0, -jnp.sign(force), 0.0), slide)
        return slide, wrong(slide), i + 1

    go_on = lambda state: jnp.any(state[1][0]) & (state[2] < 6 * r + 6)
    return jax.lax.while_loop(go_on, exchange, (slide, wrong(slide), 0))[0]
