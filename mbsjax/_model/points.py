"""Points of bodies by name, where coordinates could stand: in joints, gauges and forces."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float

from .._programs.modules import AbstractModule


class PointName(AbstractModule):
    """The name of a point, and the axis of a joint in it. The coordinates are found in the body when they are needed,
    so that they have one place and derivatives with respect to them go there.

    !!! Example

        >>> import mbsjax as mbs
        >>> rod = mbs.Body("rod", points={"tip": (2.0, 0.0)})
        >>> mech = mbs.Mechanism([rod], [mbs.Revolute("O", "ground", "rod", None, "tip")])
        >>> mech.joint("O").frame_b.x.item()
        2.0
    """

    name: str = eqx.field(static=True)
    axis: Float[Array, " dim"] | None = None

    def __repr__(self) -> str:
        return repr(self.name)


Find = Callable[[str, str, str], Array]  # the coordinates of a point: of which body, by what name, who asks


def named(point: Any) -> Any:
    """A name as such; all else as it is."""
    return PointName(point) if isinstance(point, str) else point


def found(find: Find, body: str, point: Any, what: str) -> Any:
    """Coordinates for a name; all else as it is."""
    return find(body, point.name, what) if isinstance(point, PointName) else point


def has_names(tree: Any) -> bool:
    """Whether there are names of points in it."""
    is_name = lambda x: isinstance(x, PointName)
    return any(map(is_name, jax.tree_util.tree_leaves(tree, is_leaf=is_name)))
