"""What joints transmit, by the principle of virtual displacements: a joint is given the freedoms that it does not have,
all of them driven to stay at zero, and what those drivers push with is the reaction (thesis 3.6.2, for any joint)."""

import dataclasses
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import tree_map
from jaxtyping import Array, Float

from .. import frames
from .._kinematics.drive import Hold, Problem
from .._kinematics.system import system
from .._model.force.base import Moment
from .._model.force.load import Load
from .._model.joint.base import AbstractPair, AbstractPlanarPair, Pose, local_twists, motion
from .._model.mechanism import Mechanism
from .._model.play import Play
from .._numerics.groups import SE2, AbstractPose, one
from .._numerics.linalg import magnitude
from .._programs.reprs import by_fields
from .._programs.trees import Function, once
from .build import plant as make_plant
from .instant import Frame
from .mode import Mode
from .plant import Plant
from .rest import steady_load


class Reaction(NamedTuple):
    """What body_a of a joint exerts on body_b, at the origin of its frame k+; forces on the joint's own coordinates are
    part of it.

    - `force`, `torque`: in frame k+.
    - `force_ground`, `torque_ground`: the same in ground.
    - `across`: the size of the force across the directions in which the joint slides, what a guide itself carries: a
        spring, an actuator or a driver on the joint's travel is no part of it. Of a joint that does not slide, the size
        of the force.
    """

    force: Array
    torque: Array
    force_ground: Array
    torque_ground: Array
    across: Array

    def columns(self, name: str) -> dict[str, Array]:
        """Columns of a table, or numbers at rest: `A.fx`, `A.fy`, in space `A.fz`, in ground; `A.reaction`,
        `A.across` and, in space, `A.moment` are sizes; in the plane `A.moment` has a sign."""
        found = {f"{name}.f{axis}": self.force_ground[..., k] for k, axis in zip(range(self.force.shape[-1]), "xyz")}
        planar = self.torque.shape[-1] == 1
        moment = self.torque[..., 0] if planar else magnitude(self.torque)
        sizes = {f"{name}.reaction": magnitude(self.force), f"{name}.across": self.across}
        return found | sizes | {f"{name}.moment": moment}

    __repr__ = by_fields


class _ReleasedPlanar(AbstractPlanarPair):
    pair: AbstractPlanarPair
    extra: ClassVar[tuple[str, ...]] = ("release_angle", "release_x", "release_y")

    @property
    def coordinates(self) -> tuple[str, ...]:
        return (*self.pair.coordinates, *self.extra)

    @property
    def lengths(self) -> tuple[bool, ...]:
        return (*self.pair.lengths, False, True, True)

    @property
    def lift(self) -> np.ndarray:
        return self.pair.lift

    def planar(self, q: Float[Array, " nq"]) -> SE2:
        angle, x, y = q[-3:]
        return self.pair.planar(q[:-3]) @ SE2(jnp.cos(angle), jnp.sin(angle), x, y, angle)

    def displacement(self, play: Play) -> tuple[Pose | None, Pose | None]:
        return self.pair.displacement(play)


class _ReleasedSpatial(AbstractPair):
    pair: AbstractPair
    extra: ClassVar[tuple[str, ...]] = tuple(f"release_{x}" for x in ("turn_x", "turn_y", "turn_z", "x", "y", "z"))

    @property
    def coordinates(self) -> tuple[str, ...]:
        return (*self.pair.coordinates, *self.extra)

    @property
    def lengths(self) -> tuple[bool, ...]:
        return (*self.pair.lengths, *[False] * 3, *[True] * 3)

    @property
    def rest(self) -> tuple[float, ...]:
        return (*self.pair.rest, *[0.0] * 6)

    @property
    def slots(self) -> tuple[int | None, ...]:
        n = len(self.pair.rest)
        return (*self.pair.slots, *range(n, n + 6))

    @property
    def lift(self) -> np.ndarray:
        return self.pair.lift

    def phi(self, q: Float[Array, " nq"]) -> Float[Array, "4 4"]:
        turn = frames.quaternion_matrix(frames.quaternion_exp(q[-6:-3]))
        return frames.compose(self.pair.phi(q[:-6]), frames.pose(turn, q[-3:]))

    def retract(self, q: Float[Array, " nq"], d: Float[Array, " nv"]) -> Float[Array, " nq"]:
        return jnp.concatenate([self.pair.retract(q[:-6], d[:-6]), q[-6:] + d[-6:]])

    def displacement(self, play: Play) -> tuple[Pose | None, Pose | None]:
        return self.pair.displacement(play)


class _Unreleased(eqx.Module):
    """A function of a moment that is told of the mechanism as it is, without what was released."""

    function: Function
    plant: Plant
    in_q: tuple[int, int] = eqx.field(static=True)  # from where to where the released coordinates are
    in_v: tuple[int, int] = eqx.field(static=True)

    def __call__(self, t: Array, at: Moment) -> Any:
        q, v = (jnp.delete(x, np.arange(*where)) for x, where in ((at.q, self.in_q), (at.v, self.in_v)))
        X, _, S = self.plant.problem.system.poses_and_twists(q)
        return self.function(t, self.plant.moment(t, q, v[: S.shape[1]], X, S))


class _Opened(NamedTuple):
    """A mechanism with a joint released: its plant, from where on the released coordinates are stored and free, how
    many there are; the number of the joint's second body, the joint's frame in it, and its pair."""

    plant: Plant
    at_q: int
    at_v: int
    rows: int
    number: int
    X_B: Any
    pair: AbstractPair


def reaction(mech: Mechanism, plant: Plant, name: str, ts: Array, q: Array, v: Array, mode: Mode) -> Reaction:
    """The reaction of a joint along a motion."""
    opened = _opened(mech, plant, name)
    return _reaction(mech.planar, *_pushes(*opened[:1], ts, q, v, mode, *opened[1:]))


def rest_reaction(mech: Mechanism, plant: Plant, name: str, t: Array, q: Array, mode: Mode) -> Reaction:
    """The reaction of a joint at rest, of bodies that need no mass."""
    opened = _opened(mech, plant, name)
    return _reaction(mech.planar, *_rest_pushes(*opened[:1], t, q, mode, *opened[1:]))


def _reaction(planar: bool, wrench: Array, R: Array, slides: Array) -> Reaction:
    n = 1 if planar else 3
    force, torque = wrench[..., n:], wrench[..., :n]
    turned = lambda x: jnp.einsum("...ij,...j->...i", R, x)
    across = magnitude(_beside(force, slides))
    return Reaction(force, torque, turned(force), torque if planar else turned(torque), across)


def _beside(force: Array, slides: Array) -> Array:
    """A force without its parts along some directions, which are columns; those of them that are zero count for
    nothing."""
    seen: list[Array] = []
    dot = lambda a, b: jnp.sum(a * b, -1, keepdims=True)
    for k in range(slides.shape[-1]):
        along = slides[..., k]
        for other in seen:
            along = along - dot(along, other) * other
        square = dot(along, along)
        seen.append(along / jnp.sqrt(jnp.where(square > 0, square, 1.0)))
        force = force - dot(force, seen[-1]) * seen[-1]
    return force


def _slides(pair: AbstractPair, q: Array, group: type[AbstractPose]) -> Array:
    """The directions in which a joint slides without turning, in its frame k+, as columns; zero for a travel with which
    it turns, as that of a screw."""
    twists = local_twists(pair, q, group)[:, np.flatnonzero(pair.lengths)]
    n = group.n_rotations
    back = motion(pair, q, group).inverse()
    along = jax.vmap(back.rotate, 1, 1)(twists[n:]) if twists.shape[1] else twists[n:]
    return jnp.where(jnp.max(jnp.abs(twists[:n]), 0) > 0, 0.0, along)


def _opened(mech: Mechanism, plant: Plant, name: str) -> _Opened:
    joint = mech.joint(name)
    i = [j.name for j in mech.joints].index(name)
    planar = mech.planar
    kind = _ReleasedPlanar if planar else _ReleasedSpatial
    rows = 3 if planar else 6
    released = eqx.tree_at(
        lambda j: (j.pair, j.start),
        joint,
        (kind(joint.pair), jnp.concatenate([joint.start, jnp.zeros(rows)])),  # pyright: ignore
    )
    contacts = tuple(c.moving(None) for c in mech.contacts)
    after_q, after_v = mech.stored(name)[-1] + 1 if joint.pair.rest else None, mech.freedoms(name)
    at_q = sum(len(j.pair.rest) for j in mech.joints[: i + 1]) if after_q is None else after_q
    at_v = sum(len(j.pair.coordinates) for j in mech.joints[: i + 1]) if not after_v else after_v[-1] + 1
    # those of the plant: the numbers that they have closed over are leaves, of a batch too
    whole = lambda x: isinstance(x, Function)
    unreleased = lambda x: _Unreleased(x, plant, (at_q, at_q + rows), (at_v, at_v + rows)) if whole(x) else x
    forces = tuple(tree_map(unreleased, f, is_leaf=whole) if isinstance(f, Load) else f for f in plant.forces)
    joints = tuple(released if j.name == name else j for j in mech.joints)
    loose = mech.replaced(joints=joints, contacts=contacts, forces=forces)
    old = plant.problem
    shift = lambda k, at: k if k < at else k + rows
    problem = Problem(
        system(loose),
        (*old.functions, *[Hold(jnp.zeros(()))] * rows),
        (*(shift(k, at_v) for k in old.columns), *range(at_v, at_v + rows)),
        (*(shift(k, at_q) for k in old.slots), *range(at_q, at_q + rows)),
        old.gauge_functions,
        old.gauges,
    )
    names = list(mech.coordinates)
    names[at_v:at_v] = [f"{name}.{x}" for x in kind.extra]
    friction = plant.friction
    if friction is not None:
        freedoms = tuple(shift(k, at_v) for k in friction.freedoms)
        plan = dataclasses.replace(problem.system.layout, held=friction.layout.held)
        friction = dataclasses.replace(friction, freedoms=freedoms, layout=plan)
    opened = make_plant(loose, problem, names=(tuple(names), plant.names[1]), friction=friction)
    number = plant.problem.system.layout.body_numbers[joint.body_b]
    X_B = joint.seats(plant.problem.system.layout.group)[1]
    return _Opened(opened, at_q, at_v, rows, number, X_B, joint.pair)


@once
def _pushes(
    plant: Plant, ts: Array, q: Array, v: Array, mode: Mode, at_q: int, at_v: int, rows: int, number: int, X_B, pair
):
    def at(t: Array, q: Array, v: Array, mode: Mode) -> tuple[Array, Array, Array]:
        slides = _slides(pair, q[at_q - len(pair.rest) : at_q], type(X_B))
        q = jnp.concatenate([q[:at_q], jnp.zeros(rows), q[at_q:]])
        v = jnp.concatenate([v[:at_v], jnp.zeros(rows), v[at_v:]])
        p = plant.momentum(plant.frame(q, t, mode), v)
        now = plant.instant(t, q, p, mode)
        return now.drive[-rows:], _turn(now.frame, number, X_B), slides

    return jax.vmap(at)(ts, q, v, mode)


def _turn(frame: Frame, number: int, X_B: Any) -> Array:
    """The orientation of a joint's frame in ground."""
    X = one(frame.X, number) @ X_B
    return jnp.stack([X.rotate(e) for e in jnp.eye(X.dim)], 1)


@once
def _rest_pushes(
    plant: Plant, t: Array, q: Array, mode: Mode, at_q: int, at_v: int, rows: int, number: int, X_B: Any, pair
):
    slides = _slides(pair, q[at_q - len(pair.rest) : at_q], type(X_B))
    u = plant.problem.unknown
    frame = plant.frame(jnp.concatenate([q[:at_q], jnp.zeros(rows), q[at_q:]]), t, mode)
    load = steady_load(plant, t, frame, mode)
    lam = jnp.zeros(frame.C.shape[0])
    if len(lam):
        C = frame.C[:, u] * plant.columns[None] / plant.row_sizes[:, None]
        lam = -(load[u] * plant.columns) @ jnp.linalg.pinv(C, rtol=1e-9) / plant.row_sizes
    drive = -(load + lam @ frame.C)
    return drive[at_v : at_v + rows], _turn(frame, number, X_B), slides
