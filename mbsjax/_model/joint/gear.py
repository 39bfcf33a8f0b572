"""Rolling pairs. The angles of the frames are the assembly angles of the gears."""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._numerics.groups import SE2
from ..._programs.custom_types import Number, Numbers
from ..._programs.precision import as_float, number, value
from ...frames import PlanarFrame
from ..play import Play
from .base import KEEP, AbstractPlanarPair
from .joint import Frame, Joint


class GearPair(AbstractPlanarPair):
    kind: ClassVar[str] = "gear"
    ratio: Float[Array, ""]

    coordinates: ClassVar[tuple[str, ...]] = ("roll", "distance")
    lengths: ClassVar[tuple[bool, ...]] = (False, True)
    lift: ClassVar[np.ndarray] = KEEP

    def planar(self, q: Float[Array, "2"]) -> SE2:
        return _rolled(q[0], q[1], self.ratio)

    @property
    def play_places(self) -> int:
        return 1

    def displacement(self, play: Play) -> tuple[None, PlanarFrame]:
        (turn,) = play.size * play.lies
        return None, PlanarFrame(0 * turn, 0 * turn, turn)


class RollingPair(AbstractPlanarPair):
    kind: ClassVar[str] = "rolling"
    radius_a: Float[Array, ""]
    radius_b: Float[Array, ""]

    coordinates: ClassVar[tuple[str, ...]] = ("roll",)
    lengths: ClassVar[tuple[bool, ...]] = (False,)
    lift: ClassVar[np.ndarray] = KEEP

    def planar(self, q: Float[Array, "1"]) -> SE2:
        return _rolled(q[0], jnp.abs(self.radius_a + self.radius_b), self.radius_a / self.radius_b)


class RackPair(AbstractPlanarPair):
    kind: ClassVar[str] = "rack"
    radius: Float[Array, ""]

    coordinates: ClassVar[tuple[str, ...]] = ("travel",)
    lengths: ClassVar[tuple[bool, ...]] = (True,)
    lift: ClassVar[np.ndarray] = KEEP

    def planar(self, q: Float[Array, "1"]) -> SE2:
        return SE2.of(PlanarFrame(q[0], self.radius, -q[0] / self.radius))


def _rolled(roll: Array, distance: Array, ratio: Array) -> SE2:
    # the arc that wheel a offers is the arc that wheel b takes: R_a roll = R_b (turn - roll)
    x, y = distance * jnp.cos(roll), distance * jnp.sin(roll)
    return SE2.of(PlanarFrame(x, y, (1 + ratio) * roll))


def Gear(
    name: str,
    body_a: str,
    body_b: str,
    frame_a: Frame = None,
    frame_b: Frame = None,
    *,
    ratio: Number | None = None,
    radii: Numbers | None = None,
    internal: bool = False,
    start: Numbers | None = None,
    play: Number | Play | None = None,
) -> Joint:
    """Gears that mesh, their center distance held by other joints: roll and distance.

    The frames stand at the centers. `roll` is the angle of the line of centers in frame k-;
    where it is zero, the x axes of both frames lie along it. Wheel b then turns by
    (1 + ratio) roll, ratio = R_a / R_b, negative for an internal pair. Haug's gear set (3.4.2,
    3.4.6): one equation, with theta_i = angle of frame_a and theta_j = angle of frame_b + pi.
    `play`: the backlash, half of the angle that wheel b can turn while wheel a stands, or a [`mbsjax.Play`][].

    !!! Example

        >>> Gear("mesh", "sun", "planet", radii=(0.2, 0.1)).phi((0.0, 0.3))[:2, 3].round(12).tolist()
        [0.3, 0.0]
    """
    if (ratio is None) == (radii is None):
        raise ValueError(f"gear {name!r} needs either a ratio or a pair of radii")
    if radii is not None:
        radius_a, radius_b = _radii(radii, internal, f"gear {name!r}")
        ratio, distance = radius_a / radius_b, jnp.abs(radius_a + radius_b)
    else:
        ratio = _nonzero(ratio, f"the ratio of gear {name!r}") * (-1 if internal else 1)
        distance = jnp.ones_like(ratio)
    joint = Joint(name, body_a, body_b, GearPair(ratio), frame_a, frame_b, start=start, play=play)
    given: Any = start  # to look at as it is: under `jit` even a constant becomes a traced array
    if given is not None and value(given[0]) != 0:
        return joint
    # the distance alone is no estimate: other joints hold it
    begin = jnp.stack([0 * distance, distance]) if start is None else joint.start
    joint = Joint(name, body_a, body_b, GearPair(ratio), frame_a, frame_b, play=play)
    return eqx.tree_at(lambda j: j.start, joint, begin)


def Rolling(
    name: str,
    body_a: str,
    body_b: str,
    frame_a: Frame = None,
    frame_b: Frame = None,
    *,
    radii: Numbers,
    internal: bool = False,
    start: Numbers | None = None,
) -> Joint:
    """Wheels that roll on each other and keep their center distance themselves: one roll.

    The thesis' pure rolling joint (A.1-26), put right: the turn is (1 + R_a/R_b) roll, the center
    stands at (R_a + R_b)(cos, sin). As printed, the turn has R_b/R_a and sine and cosine are exchanged.
    Between wheels on fixed pivots its hold on the distance is redundant: use [`mbsjax.Gear`][] there.

    !!! Example

        >>> Rolling("roll", "sun", "planet", radii=(2.0, 1.0)).phi(0.0)[0, 3].item()
        3.0
    """
    radius_a, radius_b = _radii(radii, internal, f"rolling joint {name!r}")
    return Joint(name, body_a, body_b, RollingPair(radius_a, radius_b), frame_a, frame_b, start=start)


def RackPinion(
    name: str,
    body_a: str,
    body_b: str,
    frame_a: Frame = None,
    frame_b: Frame = None,
    *,
    radius: Number,
    axis: Numbers | None = None,
    start: Numbers | None = None,
) -> Joint:
    """A pinion, `body_b`, that rolls on the rack line of `body_a`, the x axis of frame k-: one travel.

    A positive radius stands to the left of the line (Haug 3.4.12).

    !!! Example

        >>> RackPinion("rack", "bar", "pinion", radius=0.25).phi(0.5)[:2, 3].tolist()
        [0.5, 0.25]
    """
    radius = _nonzero(radius, f"the radius of rack and pinion {name!r}")
    return Joint(name, body_a, body_b, RackPair(radius), frame_a, frame_b, axis=axis, start=start)


def _radii(radii: Any, internal: bool, what: str) -> tuple[Array, Array]:
    """Signed radii: the larger wheel of an internal pair counts as negative (Haug 3.4.6)."""
    radius = as_float(radii, f"the radii of {what}")
    if radius.shape != (2,):
        raise ValueError(f"the radii of {what} must be a pair of numbers, got {radii!r}")
    seen = value(radius)
    if np.any(seen <= 0):
        raise ValueError(f"the radii of {what} must be positive, got {radii!r}")
    if not internal:
        return radius[0], radius[1]
    if seen[0] == seen[1]:
        raise ValueError(f"the radii of the internal pair {what} must differ, got {radii!r}")
    return -radius[0], radius[1]


def _nonzero(x: Any, what: str) -> Array:
    x = number(x, what)
    if value(x) == 0:
        raise ValueError(f"{what} must not be zero")
    return x
