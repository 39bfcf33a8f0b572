"""The part of a plant that friction adds: how pairs slide, and what joints carry."""

import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from equinox import AbstractVar
from jaxtyping import Array

from .._kinematics.drive import Problem
from .._kinematics.system import System
from .._model.contact_laws import AbstractContactLaw
from .._numerics.groups import lanewise, pick, wide
from .._numerics.linalg import product
from .friction import Friction, FrictionForces, SlidingProblem
from .instant import Frame
from .mode import Mode


class AbstractFrictional(eqx.Module):
    """A mechanism whose contacts and joints may have friction. Lanes may stand behind."""

    problem: AbstractVar[Problem]
    friction: AbstractVar[Friction | None]
    laws: AbstractVar[tuple[AbstractContactLaw | None, ...]]

    @property
    def rigid(self) -> np.ndarray:
        return np.array([law is None for law in self.laws], dtype=bool)

    def spread(self, unknown: Array, driven: Array) -> Array:
        """All freedoms from those that are not driven and those that are."""
        both = jnp.concatenate([unknown, driven])
        return pick(both, np.argsort([*self.problem.unknown, *self.problem.columns]))

    @property
    def tangents(self) -> bool:
        """Whether there is friction in a contact."""
        return self.friction is not None and bool(self.friction.contacts)

    @property
    def holding_system(self) -> System:
        """The system with the joints held that have to tell what they carry."""
        assert self.friction is not None
        return dataclasses.replace(self.problem.system, layout=self.friction.layout)

    def of_tangents(self, of_contacts: Array) -> Array:
        """What belongs to sliding in the contacts with friction, scaled, of what belongs to all gaps, then to sliding
        in all contacts."""
        assert self.friction is not None
        places = len(self.laws) + np.array(self.friction.contacts, dtype=int)
        return pick(of_contacts, places) / self.problem.system.size

    def response(self, frame: Frame, solve) -> Any:
        """The accelerations and multipliers that unit friction forces make, and the accelerations of sliding."""
        T = pick(frame.T, self.problem.unknown, 1)
        X, lam = solve(jnp.swapaxes(T, 0, 1), jnp.zeros((frame.C.shape[0], *frame.T.shape[:1], *T.shape[2:])))
        return X, lam, product(T, X)

    def closed(self, mode: Mode) -> Array:
        """Which pairs with friction touch."""
        assert self.friction is not None
        joints = jnp.ones((len(self.friction.freedoms), *mode.slide.shape[1:]), bool)
        return jnp.concatenate([pick(mode.active, np.array(self.friction.contacts, dtype=int)), joints])

    def alone(self, frame: Frame) -> Array:
        """The mobilities of the pairs with friction, if nothing held their bodies; of joints that close a loop and
        carry no body themselves, the largest there is."""
        u, D = self.problem.unknown, pick(self.problem.system.column_sizes(), self.problem.unknown)
        M = jnp.sum(pick(pick(frame.M, u), u, 1) * wide(np.eye(len(u)), frame.M.ndim - 2), 1) * D**2
        inert = M > 0
        inverse = jnp.where(inert, 1.0 / jnp.where(inert, M, 1.0), 0.0)
        inverse = jnp.where(inert, inverse, jnp.max(inverse, 0, initial=0.0))
        return jnp.sum((pick(frame.T, u, 1) * D) ** 2 * inverse, 1)

    def stuck(self, frame: Frame, mode: Mode, response: Any, v: Array) -> Array:
        """Velocities of the freedoms that are not driven, from those of all, where pairs that stick stop."""
        X, _, W = response
        stop = lanewise(lambda friction, *args: friction.stopping(*args), v.ndim - 1)
        speed, sticks = jnp.sum(frame.T * v[None], 1), self.closed(mode) & (mode.slide == 0)
        pi = stop(self.friction, W, self.alone(frame), speed, sticks)
        return pick(v, self.problem.unknown) + jnp.sum(X * pi[None], 1)

    def carried(self, frame: Frame, push: Array, carries: Any, press: Array) -> Any:
        """What the joints carry that are held, as a function of accelerations, multipliers and friction forces; where
        nothing is accelerated, bodies resist with `push`, forces and compliant contacts act as given."""
        holding = frame.holding
        if holding is None:
            return None
        paths = wide(self.holding_system.layout.paths, press.ndim - 1)
        own, behind = paths[:, : frame.S.shape[1]], paths[:, frame.S.shape[1] :]

        def onto(x: Array) -> Array:
            return jnp.sum(holding.S * jnp.sum(behind[None] * x[:, :, None], 1), 0)

        def changed(a: Array, lam: Array, f: Array) -> Array:
            moved = frame.inertia.momentum(jnp.sum(own * (frame.S * a)[:, None], 2))
            return onto(moved) - jnp.sum(holding.C * lam[:, None], 0) - jnp.sum(holding.T * f[:, None], 0)

        return onto(push) - carries - jnp.sum(holding.slopes * press[:, None], 0), changed

    def sliding(
        self, frame: Frame, mode: Mode, v: Array, a: Array, lam: Array, press: Array, bends: Array, response, carried
    ) -> SlidingProblem:
        """The problem of the pairs with friction, where a and lam hold without it."""
        assert self.friction is not None
        X, X_lam, W = response
        r, c, size = W.shape[0], len(self.friction.contacts), self.problem.system.size
        bends = self.of_tangents(bends) if c else bends[:0]
        bends = jnp.concatenate([bends, jnp.zeros((r - c, *press.shape[1:]))])
        first, rigid = lam.shape[0] - int(self.rigid.sum()), np.flatnonzero(self.rigid).tolist()
        place = {k: first + i for i, k in enumerate(rigid)}
        nothing = jnp.zeros_like(W[0])
        normal = [lam[place[k]] if k in place else press[k] for k in self.friction.contacts]
        normal_by = [X_lam[place[k]] if k in place else nothing for k in self.friction.contacts]
        rows, lanes = self.problem.system.layout.group.rows, press.shape[1:]
        wrench, wrench_by = jnp.zeros((0, rows, *lanes)), jnp.zeros((0, rows, r, *lanes))
        if carried is not None:
            base, changed = carried
            none = jnp.zeros_like(frame.T[:, 0])
            wrench = (base + changed(a, lam, none)).reshape(-1, rows, *lanes)
            still = jnp.zeros((len(self.problem.columns), *lanes))
            each = [
                changed(self.spread(X[:, k], still), X_lam[:, k], none + wide(np.eye(r)[k], none.ndim - 1))
                for k in range(r)
            ]
            wrench_by = jnp.stack(each, 1).reshape(-1, rows, r, *lanes)
        return SlidingProblem(
            jnp.sum(frame.T * v[None], 1),
            jnp.sum(frame.T * a[None], 1) + bends,
            W,
            self.alone(frame),
            jnp.stack(normal) * size if c else nothing[:0],
            jnp.stack(normal_by) * size if c else W[:0],
            wrench,
            wrench_by,
        )

    def rubbed(
        self, frame: Frame, mode: Mode, sliding: SlidingProblem, response: Any, a: Array, lam: Array, load: Array
    ) -> tuple[FrictionForces, Array, Array, Array]:
        """The friction forces; accelerations, multipliers and loads with them."""
        solve = lanewise(lambda friction, *args: friction.forces(*args), mode.slide.ndim - 1)
        forces = solve(self.friction, sliding, self.closed(mode), mode.slide)
        (X, X_lam, _), f = response, forces.force
        a = a + self.spread(jnp.sum(X * f[None], 1), jnp.zeros((len(self.problem.columns), *f.shape[1:])))
        return forces, a, lam + jnp.sum(X_lam * f[None], 1), load + jnp.sum(frame.T * f[:, None], 0)
