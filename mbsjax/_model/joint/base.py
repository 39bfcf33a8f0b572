"""What a kinematic pair is: a matrix phi(q) between its two frames."""

import abc

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ... import frames
from ..._numerics.groups import SE2, SE3, AbstractPose
from ..._programs.custom_types import Matrix4
from ..._programs.modules import AbstractModule
from ..._programs.reprs import by_fields
from ...frames import PlanarFrame
from ..play import Play


Pose = PlanarFrame | Matrix4


KEEP = np.eye(4)


class AbstractPair(AbstractModule):
    """A kinematic pair: the motion that a joint allows between its frames k- and k+.

    A pair stores the numbers `q` and moves by `retract(q, d)`, one entry of `d` for each freedom.
    Most pairs store the freedoms themselves; those that turn freely store a quaternion,
    so that no position is singular.
    """

    @property
    @abc.abstractmethod
    def coordinates(self) -> tuple[str, ...]:
        """The names of the freedoms."""

    @property
    def kind(self) -> str:
        """What it is called in tables and drawn as: `"revolute"`; one of the user's own is a joint."""
        return "joint"

    @property
    @abc.abstractmethod
    def lengths(self) -> tuple[bool, ...]:
        """Which of the freedoms are lengths, not angles."""

    @property
    @abc.abstractmethod
    def rest(self) -> tuple[float, ...]:
        """The stored numbers at which phi is the identity, or nearest to it."""

    @property
    @abc.abstractmethod
    def slots(self) -> tuple[int | None, ...]:
        """Where each freedom stands in the stored numbers; None if it does not."""

    @property
    def lift(self) -> np.ndarray:
        """The turn from the frame in which a planar pair is described to its frame in space."""
        return KEEP

    @abc.abstractmethod
    def phi(self, q: Float[Array, " nq"]) -> Float[Array, "4 4"]:
        """The joint matrix phi_k(q_k): the pose of frame k+ in frame k- (2.2.3-6)."""

    @abc.abstractmethod
    def retract(self, q: Float[Array, " nq"], d: Float[Array, " nv"]) -> Float[Array, " nq"]:
        """The stored numbers after a move by `d` in the freedoms."""

    @property
    def play_places(self) -> int:
        """How many numbers say where the pair lies in its play; none where it cannot have any."""
        return 0

    @property
    def play_discs(self) -> tuple[int, ...]:
        """The play is a disc, a ball or an interval, or several of them: their dimensions."""
        return (self.play_places,) if self.play_places else ()

    def displacement(self, play: Play) -> tuple[Pose | None, Pose | None]:
        """D and E, where play makes phi(q) to D phi(q) E; None for the identity. Of a planar pair, in its plane."""
        return None, None

    __repr__ = by_fields


class AbstractFlatPair(AbstractPair):
    """A pair that stores its degrees of freedom as they are."""

    @property
    def rest(self) -> tuple[float, ...]:
        return (0.0,) * len(self.coordinates)

    @property
    def slots(self) -> tuple[int | None, ...]:
        return tuple(range(len(self.coordinates)))

    def retract(self, q: Float[Array, " nq"], d: Float[Array, " nv"]) -> Float[Array, " nq"]:
        return q + d


class AbstractPlanarPair(AbstractFlatPair):
    """A pair whose motion lies in a plane: `planar(q)` says it all, phi follows from it.

    `lift` turns the pair's frame from the habit of the plane (z is the normal) to that of
    space (z is the axis of the pair): the identity but for a prismatic pair, whose axis lies
    in the plane along x.
    """

    @property
    @abc.abstractmethod
    def lift(self) -> np.ndarray:
        """The turn from the pair's frame in the plane to its frame in space."""

    @property
    def screws(self) -> np.ndarray | None:
        """The twists of the freedoms within the plane, as columns, if they do not depend on the position."""
        return None

    @abc.abstractmethod
    def planar(self, q: Float[Array, " nq"]) -> SE2:
        """phi(q) within the plane."""

    def phi(self, q: Float[Array, " nq"]) -> Float[Array, "4 4"]:
        return frames.compose(jnp.asarray(self.lift.T), self.planar(q).matrix(), jnp.asarray(self.lift))


def fixed_screws(pair: AbstractPair, group: type[AbstractPose]) -> np.ndarray | None:
    """The twists of the freedoms of a pair in its frame k-, as columns, if they do not depend on the position."""
    if not isinstance(pair, AbstractPlanarPair) or pair.screws is None or group is SE2:
        return pair.screws if isinstance(pair, AbstractPlanarPair) else None
    w, v = pair.screws[:1], pair.screws[1:]
    nothing = np.zeros_like(w)
    turn = pair.lift[:3, :3].T
    return np.concatenate([turn @ np.concatenate([nothing, nothing, w]), turn @ np.concatenate([v, nothing])])


def local_twists(pair: AbstractPair, q: Float[Array, " nq"], group: type[AbstractPose]) -> Float[Array, "rows n"]:
    """vee(dphi/dq phi^-1) of a joint in its frame k- (2.2.3-14)."""
    n = len(pair.coordinates)
    if n == 0:
        return jnp.zeros((group.rows, 0))
    phi, push = jax.linearize(lambda d: motion(pair, pair.retract(q, d), group), jnp.zeros(n))
    return jax.vmap(lambda e: phi.left_twist(push(e)), out_axes=1)(jnp.eye(n))


def motion(pair: AbstractPair, q: Float[Array, " nq"], group: type[AbstractPose]) -> AbstractPose:
    """phi(q) in the algebra of the mechanism."""
    if group is SE2:
        assert isinstance(pair, AbstractPlanarPair)
        return pair.planar(q)
    return SE3.of(pair.phi(q))
