"""Forces and torques applied to bodies."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._numerics.groups import one
from ..._numerics.linalg import magnitude
from ..._programs.custom_types import Given, Numbers
from ..._programs.precision import as_float
from ..._programs.trees import as_function
from ..gauge import to_dim
from ..joint.joint import check_name
from ..points import Find, found, named
from .base import AbstractForce, Moment


class Load(AbstractForce):
    """A force at a point of a body, and a torque.

    **Arguments:**

    - `body`: its name.
    - `force`: two or three numbers, or a function `f(t, at)` of the time and of an [`mbsjax.Moment`][], which
        tells positions and velocities by name.
    - `torque`: one number (about z) in the plane, three in space, or a function likewise.
    - `point`: where the force acts, in the body's frame, or the name of a point of the body; its origin by default.
    - `fixed_in`: whether the components are those in `"ground"`, or turn with the `"body"`.

    !!! Example

        >>> Load("bob", force=lambda t, at: (0.0, -2.0 * at["O"].v), point=(1.0, 0.0)).name
        'load on bob'
    """

    name: str = eqx.field(static=True)
    body: str = eqx.field(static=True)
    force: Float[Array, " dim"] | Callable | None
    torque: Float[Array, "..."] | Callable | None
    point: Given[Float[Array, " dim"]]  # until it belongs to a mechanism, the name of a point too
    fixed_in: str = eqx.field(static=True)

    def __init__(
        self,
        body: str,
        *,
        force: Numbers | Callable[..., Any] | None = None,
        torque: Numbers | Callable[..., Any] | None = None,
        point: Numbers | str = (0.0, 0.0),
        fixed_in: str = "ground",
        name: str | None = None,
    ):
        self.body, self.name, self.fixed_in = body, f"load on {body}" if name is None else name, fixed_in
        check_name(body, "the body of a load")
        check_name(self.name, "a load", dots=True)
        if fixed_in not in ("ground", "body"):
            raise ValueError(f"`fixed_in` of {self.name!r} must be 'ground' or 'body', got {fixed_in!r}")
        if force is None and torque is None:
            raise ValueError(f"{self.name!r} needs a force or a torque")
        self.force = _components(force, f"the force of {self.name!r}", (2, 3))
        self.torque = _components(torque, f"the torque of {self.name!r}", (1, 3))
        where = f"the point of {self.name!r}"
        self.point = named(point) if isinstance(point, str) else _components(point, where, (2, 3))

    def located(self, find: Find) -> "Load":
        point = found(find, self.body, self.point, f"the point of {self.name!r}")
        return eqx.tree_at(lambda load: load.point, self, point)

    @property
    def needs(self) -> tuple[Any, ...]:
        return ()

    @property
    def bodies(self) -> tuple[str, ...]:
        return (self.body,)

    @property
    def n_switches(self) -> int:
        return 0

    def switches(self, at: Moment) -> Float[Array, " n"]:
        return jnp.zeros(0)

    def _components(self, at: Moment) -> tuple[Float[Array, " dim"], Float[Array, "..."]]:
        """Force and torque as they are given."""
        X = one(at.X, at.layout.body_numbers[self.body])
        F, T = jnp.zeros(X.dim), jnp.zeros(X.rows - X.dim)
        if self.force is not None:
            F = to_dim(_evaluated(self.force, at, self.name), X)
        if self.torque is not None:
            given = jnp.atleast_1d(_evaluated(self.torque, at, self.name))
            T = jnp.concatenate([jnp.zeros(len(T) - given.shape[0]), given])
        return F, T

    def strength(self, at: Moment, sides: Float[Array, " n"]) -> Float[Array, ""]:
        """The size of its force; without one, that of its torque."""
        F, T = self._components(at)
        return magnitude(T if self.force is None else F)

    def act(self, at: Moment, sides: Float[Array, " n"]) -> Float[Array, " nv"]:
        X = one(at.X, at.layout.body_numbers[self.body])
        dim, (F, T) = X.dim, self._components(at)
        if self.fixed_in == "body":
            F = X.rotate(F)
            T = T if dim == 2 else X.rotate(T)
        p = X.apply(to_dim(self.point, X))
        moment = (p[0] * F[1] - p[1] * F[0])[None] if dim == 2 else jnp.cross(p, F)
        return at.push(self.body, jnp.concatenate([T + moment, F]))

    def potential(self, at: Moment, sides: Float[Array, " n"]) -> Float[Array, ""]:
        return jnp.zeros(())


def _components(given: Any, what: str, counts: tuple[int, int]) -> Any:
    """What is given of a load: nothing, a function, or one of these counts of numbers."""
    if given is None or callable(given):
        return given if given is None else as_function(given)
    found = as_float(given, what)
    if found.ndim > 1 or found.size not in counts or (found.ndim == 0 and 1 not in counts):
        raise ValueError(f"{what} must be {counts[0]} or {counts[1]} numbers, or a function, got {given!r}")
    return found


def _evaluated(given: Any, at: Moment, name: str) -> Array:
    value = given(at.t, at) if callable(given) else given
    return jnp.stack([jnp.asarray(x, float) for x in value]) if isinstance(value, tuple | list) else jnp.asarray(value)
