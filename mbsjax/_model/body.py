"""A rigid body."""

import warnings
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._programs.custom_types import ByName, Given, Number, Numbers
from .._programs.modules import AbstractModule
from .._programs.precision import AGREEING, as_float, known, number, numpy_of, visible
from .._programs.reprs import brief, unless_zero
from .joint.joint import check_name
from .profile.profile import Profile


class Body(AbstractModule):
    """A rigid body: a frame, with mass and points of interest fixed in it.

    **Arguments:**

    - `name`: how joints and results call it.
    - `mass`: may be zero, for a link whose inertia is neglected.
    - `center`: the center of mass in the body's frame, two or three numbers.
    - `inertia`: about the center of mass, along the body's axes: one number (about z, for planar
        mechanisms), three (Ixx, Iyy, Izz), six (then Ixy, Iyz, Izx, with the sign of a tensor's
        entries: Ixy = -integral of x y dm), or a 3x3 tensor.
    - `points`: points of interest by name.
    - `profiles`: contact profiles by name.

    !!! Example

        >>> Body("rod", mass=2.0, center=(0.5, 0.0), inertia=0.2, points={"tip": (1.0, 0.0)}).mass.item()
        2.0
        >>> Body("cam", mass=5.0)
        Body('cam', mass=5.0)
    """

    name: str = eqx.field(static=True)
    mass: Float[Array, ""]
    center: Float[Array, "3"]
    inertia: Float[Array, "3 3"]
    points: dict[str, Array]
    profiles: dict[str, Profile]

    def __init__(
        self,
        name: str,
        *,
        mass: Number = 0.0,
        center: Numbers = (0.0, 0.0, 0.0),
        inertia: Numbers = 0.0,
        points: ByName | None = None,
        profiles: Mapping[str, Given[Profile]] | None = None,
    ):
        check_name(name, "a body")
        self.name = name
        self.mass = number(mass, f"the mass of body {name!r}", least=0.0)
        self.center = point3(center, f"the center of body {name!r}")
        self.inertia = _inertia(inertia, name)
        self.points = {key: _point(p, f"point {key!r} of body {name!r}") for key, p in (points or {}).items()}
        self.profiles = dict(profiles or {})
        for key, profile in self.profiles.items():
            check_name(key, f"a profile of body {name!r}")
            if not isinstance(profile, Profile):
                raise ValueError(f"profile {key!r} of body {name!r} must be a Profile, got {profile!r}")

    def __repr__(self) -> str:
        mass, center, inertia = (unless_zero(x) for x in (self.mass, self.center, self.inertia))
        names = {"points": list(self.points) or None, "profiles": list(self.profiles) or None}
        return brief(self, self.name, mass=mass, center=center, inertia=inertia, **names)


def inertia_matrix(body: Body) -> Float[Array, "4 4"]:
    """The integral of r r^T dm, r = (x, y, z, 1) in the body's frame (3.3.2-14): where A is the body's pose, its
    kinetic energy is Tr(A' J A'^T) / 2.

    !!! Example

        >>> inertia_matrix(Body("rod", mass=2.0, center=(0.5, 0.0), inertia=(0.0, 0.1, 0.1))).diagonal().tolist()
        [0.6, 0.0, 0.0, 2.0]
    """
    c, m = body.center, body.mass
    about_center = jnp.trace(body.inertia) / 2 * jnp.eye(3) - body.inertia
    first = m * c
    return jnp.block([[about_center + m * jnp.outer(c, c), first[:, None]], [first[None], m[None, None]]])


def _point(given: Any, what: str) -> Array:
    point = as_float(given, what)
    if point.shape not in ((2,), (3,)):
        raise ValueError(f"{what} must be two or three numbers, got {given!r}")
    return point


def point3(given: Any, what: str) -> Float[Array, "3"]:
    """Two or three numbers as three."""
    point = _point(given, what)
    return jnp.asarray(numpy_of(point).concatenate([point, np.zeros(3 - len(point))]))


def _inertia(given: Any, name: str) -> Float[Array, "3 3"]:
    J = known(as_float(given, f"the inertia of body {name!r}"))
    if J.shape == ():
        # seen in the plane alone: spread over x and y as for a flat plate, so that it is a body's
        J = J * np.diag([0.5, 0.5, 1.0])
    elif J.shape == (3,):
        J = J * np.eye(3)
    elif J.shape == (6,):  # xx, yy, zz, xy, yz, zx
        J = J[np.array([[0, 3, 5], [3, 1, 4], [5, 4, 2]])]
    if J.shape != (3, 3):
        raise ValueError(f"the inertia of body {name!r} must be 1, 3 or 6 numbers or a 3x3 tensor, got {given!r}")
    if (seen := visible(J)) is not None:
        _check_inertia(np.asarray(seen[0]), name)
    return jnp.asarray(J)


def _check_inertia(J: Float[np.ndarray, "3 3"], name: str) -> None:
    small = AGREEING() * (1e-300 + float(np.abs(J).max()))
    if float(np.abs(J - J.T).max()) > small:
        raise ValueError(f"the inertia tensor of body {name!r} is not symmetric")
    a, b, c = (float(x) for x in np.linalg.eigvalsh(J))
    if a < -small:
        raise ValueError(f"the inertia of body {name!r} has a negative principal moment, {a:.6g}")
    if c > a + b + small:  # textbooks have such
        warnings.warn(
            f"no body has the inertia of body {name!r}: of its principal moments {a:.6g}, {b:.6g}, {c:.6g} one is "
            "larger than the sum of the other two",
            stacklevel=6,
        )
