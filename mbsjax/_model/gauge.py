"""Gauges: scalars measured between bodies. They can be read, driven in time, or held at a value."""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from equinox import AbstractVar
from jaxtyping import Array, Float

from .._numerics.groups import SE2, AbstractPose
from .._programs.custom_types import Given, Number, Numbers
from .._programs.modules import AbstractModule
from .._programs.precision import as_float, number, positive
from .._programs.reprs import by_fields
from ..frames import unit
from .joint.joint import check_name
from .points import Find, PointName, found, named


class AbstractGauge(AbstractModule):
    """A scalar that depends on the poses of a few bodies.

    With a `value` it is a constraint of the mechanism: one equation, no coordinates. Without, it
    is there to be read, or to be driven (Haug 3.5, 9.5).
    """

    name: AbstractVar[str]
    bodies: AbstractVar[tuple[str, ...]]
    value: AbstractVar[Float[Array, ""] | None]
    planar: AbstractVar[bool]
    dimension: AbstractVar[int]  # the residual is an angle (0), a length (1), a length squared (2)

    @abc.abstractmethod
    def measure(self, *poses: AbstractPose) -> Float[Array, ""]:
        """The scalar itself."""

    @abc.abstractmethod
    def residual(self, target: Float[Array, ""], *poses: AbstractPose) -> Float[Array, ""]:
        """Zero if and only if the scalar has the value `target`."""

    @property
    def kind(self) -> str:
        """What it is called in tables: `"distance"`; one of the user's own is a gauge."""
        return "gauge"

    def located(self, find: Find) -> "AbstractGauge":
        """The gauge with coordinates where it has names of points."""
        return self

    __repr__ = by_fields


class Distance(AbstractGauge):
    """The distance between a point of `body_a` and a point of `body_b`, given by coordinates or by name.

    With a `value` it is a massless rod with a ball (in the plane, a hinge) at each end: Haug's
    distance constraint and revolute-revolute composite joint (3.3.7, 3.3.15, 9.4.8).

    !!! Example

        >>> rod = Distance("rod", "crank", "slider", point_a=(2.0, 0.0), value=3.5)
        >>> rod.value.item()
        3.5
    """

    kind: ClassVar[str] = "distance"
    name: str = eqx.field(static=True)
    bodies: tuple[str, ...] = eqx.field(static=True)
    point_a: Given[Float[Array, " dim"]]  # until it belongs to a mechanism, the name of a point too
    point_b: Given[Float[Array, " dim"]]
    value: Float[Array, ""] | None

    def __init__(
        self,
        name: str,
        body_a: str,
        body_b: str,
        point_a: Numbers | str | None = None,
        point_b: Numbers | str | None = None,
        *,
        value: Number | None = None,
    ):
        check_name(name, "a gauge")
        what = f"distance {name!r}"
        self.name, self.bodies = name, (body_a, body_b)
        self.point_a, self.point_b = _points(point_a, point_b, what)
        self.value = None if value is None else positive(value, f"the value of {what}")

    dimension = 2

    def located(self, find: Find) -> "Distance":
        return _located(self, find, f"distance {self.name!r}")

    @property
    def planar(self) -> bool:
        return self.point_a.shape == (2,)

    def _square(self, *poses: AbstractPose) -> Float[Array, ""]:
        X_A, X_B = poses
        d = X_B.apply(to_dim(self.point_b, X_B)) - X_A.apply(to_dim(self.point_a, X_A))
        return jnp.sum(d * d)

    def measure(self, *poses: AbstractPose) -> Float[Array, ""]:
        return jnp.sqrt(self._square(*poses))

    def residual(self, target: Float[Array, ""], *poses: AbstractPose) -> Float[Array, ""]:
        # smooth also where the points coincide; the square root is not
        return (self._square(*poses) - target**2) / 2


class Offset(AbstractGauge):
    """The component along `axis` of the vector from a point of `body_a` to a point of `body_b`, given by coordinates
    or by name.

    `axis` is fixed in `axis_body`, which is `body_a` unless said otherwise. Covers Haug's absolute
    and relative coordinates of points, and the translational distance (3.5.1-2, 3.5.5-6, 3.5.12, 9.5.1, 9.5.3).

    !!! Example

        >>> height = Offset("height", "ground", "coupler", point_b=(1.0, 2.0), axis=(0.0, 1.0))
        >>> height.bodies
        ('ground', 'coupler', 'ground')
    """

    kind: ClassVar[str] = "offset"
    name: str = eqx.field(static=True)
    bodies: tuple[str, ...] = eqx.field(static=True)
    point_a: Given[Float[Array, " dim"]]  # until it belongs to a mechanism, the name of a point too
    point_b: Given[Float[Array, " dim"]]
    axis: Float[Array, " dim"]
    value: Float[Array, ""] | None

    def __init__(
        self,
        name: str,
        body_a: str,
        body_b: str,
        point_a: Numbers | str | None = None,
        point_b: Numbers | str | None = None,
        *,
        axis: Numbers,
        axis_body: str | None = None,
        value: Number | None = None,
    ):
        check_name(name, "a gauge")
        what = f"offset {name!r}"
        self.name, self.bodies = name, (body_a, body_b, axis_body or body_a)
        axis = as_float(axis, f"the axis of {what}")
        self.axis = unit(axis, f"the axis of {what}")
        self.point_a, self.point_b = _points(point_a, point_b, what, axis.shape)
        self.value = _value(value, what)

    dimension = 1

    def located(self, find: Find) -> "Offset":
        return _located(self, find, f"offset {self.name!r}", self.axis.shape)

    @property
    def planar(self) -> bool:
        return self.axis.shape == (2,)

    def measure(self, *poses: AbstractPose) -> Float[Array, ""]:
        X_A, X_B, X_C = poses
        d = X_B.apply(to_dim(self.point_b, X_B)) - X_A.apply(to_dim(self.point_a, X_A))
        return jnp.sum(d * X_C.rotate(to_dim(self.axis, X_C)))

    def residual(self, target: Float[Array, ""], *poses: AbstractPose) -> Float[Array, ""]:
        return self.measure(*poses) - target


class Angle(AbstractGauge):
    """The angle from `body_a` to `body_b` in a planar mechanism, continuous over many turns.

    Haug's absolute and relative angles (3.5.3, 3.5.7). In space, use the coordinate of a joint.

    !!! Example

        >>> Angle("tilt", "ground", "coupler").bodies
        ('ground', 'coupler')
    """

    kind: ClassVar[str] = "angle"
    name: str = eqx.field(static=True)
    bodies: tuple[str, ...] = eqx.field(static=True)
    value: Float[Array, ""] | None

    def __init__(self, name: str, body_a: str, body_b: str, *, value: Number | None = None):
        check_name(name, "a gauge")
        self.name, self.bodies = name, (body_a, body_b)
        self.value = _value(value, f"angle {name!r}")

    dimension = 0
    planar = True

    def measure(self, *poses: AbstractPose) -> Float[Array, ""]:
        X_A, X_B = poses
        assert isinstance(X_A, SE2) and isinstance(X_B, SE2)
        return X_B.angle - X_A.angle

    def residual(self, target: Float[Array, ""], *poses: AbstractPose) -> Float[Array, ""]:
        return self.measure(*poses) - target


def to_dim(point: Float[Array, " dim"], X: AbstractPose) -> Float[Array, " n"]:
    """A point of the plane as a point in space, where the mechanism asks for it."""
    return jnp.concatenate([point, jnp.zeros(X.dim - point.shape[0])])


def _located(gauge: Any, find: Find, what: str, shape: tuple[int, ...] | None = None) -> Any:
    point_a, point_b = (found(find, *both, what) for both in zip(gauge.bodies, (gauge.point_a, gauge.point_b)))
    points = _points(point_a, point_b, what, shape)
    none = lambda x: x is None
    return eqx.tree_at(lambda g: (g.point_a, g.point_b), gauge, points, is_leaf=none)


def _points(point_a: Any, point_b: Any, what: str, shape: tuple[int, ...] | None = None) -> tuple[Any, Any]:
    points = named(point_a), named(point_b)
    if any(isinstance(p, PointName) for p in points):  # a mechanism will know them
        a, b = (p if p is None or isinstance(p, PointName) else as_float(p, f"a point of {what}") for p in points)
        return a, b
    given = [as_float(p, f"a point of {what}") for p in (point_a, point_b) if p is not None]
    shape = shape or (given[0].shape if given else (2,))
    if shape not in ((2,), (3,)) or any(p.shape != shape for p in given):
        raise ValueError(f"the points (and the axis) of {what} must all be pairs, or all triples, of numbers")
    origin = jnp.zeros(shape)
    a, b = (origin if p is None else as_float(p, what) for p in (point_a, point_b))
    return a, b


def _value(value: Any, what: str) -> Float[Array, ""] | None:
    return None if value is None else number(value, f"the value of {what}")
