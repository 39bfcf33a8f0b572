"""A joint: a kinematic pair between a frame on one body and a frame on another."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ... import frames
from ..._numerics.groups import SE2, SE3, AbstractPose
from ..._programs.custom_types import Given, Matrix4, Number, Numbers
from ..._programs.modules import AbstractModule
from ..._programs.precision import as_float, numpy_of, visible
from ..._programs.reprs import by_fields
from ...frames import PlanarFrame
from ..friction import AbstractFriction
from ..play import Play, joint_play
from ..points import Find, PointName, found
from .base import AbstractPair, AbstractPlanarPair, Pose


Frame = Given[Numbers | PlanarFrame | PointName | str | None]


class Joint(AbstractModule):
    """A pair between frame k- on `body_a` and frame k+ on `body_b`.

    Made by [`mbsjax.Revolute`][] and its siblings. Every number in it is a leaf.

    A frame may be given as

    - nothing: the body's own frame;
    - a pair of numbers: a point of the plane, axes parallel to the body's;
    - [`mbsjax.at`][]`(x, y, angle)`: a frame in the plane;
    - three numbers: a point in space, axes parallel to the body's;
    - the name of a point of the body, in place of its coordinates;
    - a 4x4 matrix, from [`mbsjax.frames`][].

    `axis` turns frames given as points: it is the direction of the joint's axis in both
    bodies. `start` is the estimate of the joint's coordinates that assembly begins from: what is given weighs, joints
    without a start follow. `friction` is that of the joint, a [`mbsjax.JointFriction`][] or a [`mbsjax.DryTorque`][];
    `play` how loose it is, a [`mbsjax.Play`][].
    """

    name: str = eqx.field(static=True)
    body_a: str = eqx.field(static=True)
    body_b: str = eqx.field(static=True)
    pair: AbstractPair
    frame_a: Given[PlanarFrame | Matrix4]  # until it belongs to a mechanism, the name of a point too
    frame_b: Given[PlanarFrame | Matrix4]
    start: Float[Array, " nq"]
    friction: AbstractFriction | None
    play: Play | None
    given: bool = eqx.field(static=True)  # whether the start was

    def __init__(
        self,
        name: str,
        body_a: str,
        body_b: str,
        pair: AbstractPair,
        frame_a: Frame = None,
        frame_b: Frame = None,
        *,
        axis: Numbers | None = None,
        start: Numbers | None = None,
        friction: AbstractFriction | None = None,
        play: Number | Play | None = None,
    ):
        check_name(name, "a joint")
        if body_a == body_b:
            raise ValueError(f"joint {name!r} connects body {body_a!r} with itself")
        self.name, self.body_a, self.body_b, self.pair = name, body_a, body_b, pair
        self.frame_a = frame_of(frame_a, axis, f"frame_a of joint {name!r}")
        self.frame_b = frame_of(frame_b, axis, f"frame_b of joint {name!r}")
        self.given = start is not None
        start = as_float(pair.rest if start is None else start, f"start of joint {name!r}")
        start = jnp.asarray(numpy_of(start).atleast_1d(start))
        if start.shape != (len(pair.rest),):
            raise ValueError(f"start of joint {name!r} must hold {len(pair.rest)} number(s), got shape {start.shape}")
        self.start, self.friction = start, friction
        self.play = joint_play(play, name, discs=pair.play_discs)

    def located(self, find: Find) -> "Joint":
        """The joint with coordinates where it has names of points."""

        def frame(body: str, given: Any, side: str) -> Any:
            what = f"frame_{side} of joint {self.name!r}"
            return frame_of(found(find, body, given, what), given.axis, what) if isinstance(given, PointName) else given

        both = frame(self.body_a, self.frame_a, "a"), frame(self.body_b, self.frame_b, "b")
        return eqx.tree_at(lambda j: (j.frame_a, j.frame_b), self, both)

    @property
    def planar(self) -> bool:
        """Whether this joint was described within the plane."""
        return (
            isinstance(self.pair, AbstractPlanarPair)
            and isinstance(self.frame_a, PlanarFrame)
            and isinstance(self.frame_b, PlanarFrame)
        )

    def phi(self, q: Numbers) -> Matrix4:
        """The joint matrix phi_k(q_k) (2.2.3-6).

        !!! Example

            >>> import mbsjax as mbs
            >>> mbs.Prismatic("P", "ground", "slider").phi(0.5)[:3, 3].tolist()
            [0.0, 0.0, 0.5]
        """
        return self.pair.phi(jnp.atleast_1d(as_float(q, f"q of joint {self.name!r}")))

    def interlink(self, q: Numbers) -> Matrix4:
        """The pose of `body_b` in `body_a`: A_ij = T_ik phi_k T_kj (2.2.3-9).

        !!! Example

            >>> import mbsjax as mbs
            >>> mbs.Prismatic("P", "ground", "slider").interlink(0.5)[:3, 3].tolist()
            [0.5, 0.0, 0.0]
        """
        X_A, X_B = (X.matrix() for X in self.seats(SE3))
        return frames.compose(X_A, self.phi(q), frames.inverse(X_B))

    def placed(self, frame: PlanarFrame | Matrix4, group: type[AbstractPose]) -> AbstractPose:
        """One of this joint's frames in the algebra of the mechanism."""
        if isinstance(frame, PlanarFrame):
            if group is SE2:
                return SE2.of(frame)
            return SE3.of(frames.compose(frames.embed(frame), jnp.asarray(self.pair.lift)))
        return SE3.of(frame)

    def seats(self, group: type[AbstractPose]) -> tuple[AbstractPose, AbstractPose]:
        """Both frames in the algebra of the mechanism, as far off as the play has it."""
        X_A, X_B = (self.placed(frame, group) for frame in (self.frame_a, self.frame_b))
        if self.play is None:
            return X_A, X_B
        D, E = self.pair.displacement(self.play)
        return X_A if D is None else X_A @ self._moved(D, group), (
            X_B if E is None else X_B @ self._moved(E, group).inverse()
        )

    def _moved(self, D: Pose, group: type[AbstractPose]) -> AbstractPose:
        """A displacement between the frames of the pair."""
        if not isinstance(D, PlanarFrame):
            return SE3.of(D)
        if group is SE2:
            return SE2.of(D)
        lift = jnp.asarray(self.pair.lift)
        return SE3.of(frames.compose(lift.T, frames.embed(D), lift))

    __repr__ = by_fields


def coordinate_names(joint: Joint) -> tuple[str, ...]:
    """The names of the freedoms of a joint in its mechanism: `"O"`, or `"sleeve.angle"` where there are several."""
    names = joint.pair.coordinates
    return (joint.name,) if len(names) == 1 else tuple(f"{joint.name}.{name}" for name in names)


def check_name(name: Any, what: str, dots: bool = False) -> None:
    """Raises where a name is none, or has dots, which stand between a name and what is read of it."""
    if not isinstance(name, str) or not name or ("." in name and not dots):
        raise ValueError(f"the name of {what} must be a text{'' if dots else ' without dots'}, got {name!r}")


def frame_of(given: Any, axis: Any, what: str) -> Given[PlanarFrame | Matrix4]:
    """A frame of a joint as it may be given; the name of a point stays one."""
    if isinstance(given, PlanarFrame):
        if axis is not None:
            raise ValueError(f"{what} already has its axes: give it as a point, or leave out `axis`")
        return given
    axis = None if axis is None else as_float(axis, f"the axis of {what}")
    if isinstance(given, str):
        return PointName(given, axis)  # pyright: ignore
    if isinstance(given, PointName):
        return given  # pyright: ignore
    if given is None:
        given = (0.0, 0.0) if axis is None or axis.shape == (2,) else (0.0, 0.0, 0.0)
    array = as_float(given, what)
    if array.shape == (4, 4):
        if axis is not None:
            raise ValueError(f"{what} already has its axes: give it as a point, or leave out `axis`")
        return _checked_pose(array, what)
    if array.shape not in ((2,), (3,)) or (axis is not None and axis.shape != array.shape):
        raise ValueError(
            f"{what} must be a pair or a triple of numbers (with `axis` of the same length), "
            f"a frame made by at(x, y, angle), or a 4x4 matrix, got {given!r}"
        )
    if array.shape == (3,):
        return frames.from_axis(array, (0.0, 0.0, 1.0) if axis is None else axis, what=what)
    xp = numpy_of(array, axis)
    angle = 0.0 * xp.asarray(array)[0]
    if axis is not None:
        frames.check_length(axis, f"the axis of {what}")
        angle = xp.arctan2(*xp.asarray(axis)[::-1])
    return PlanarFrame(*(jnp.asarray(x) for x in (*xp.asarray(array), angle)))


def _checked_pose(X: Matrix4, what: str) -> Matrix4:
    if (seen := visible(X)) is None:
        return X
    R, bottom = np.asarray(seen[0])[:3, :3], np.asarray(seen[0])[3]
    skew = float(np.abs(R @ R.T - np.eye(3)).max())
    if skew > 1e-6 or np.linalg.det(R) < 0 or bottom.tolist() != [0.0, 0.0, 0.0, 1.0]:
        raise ValueError(f"{what} is not a right-handed pose: its axes miss being perpendicular units by {skew:.1e}")
    return X
