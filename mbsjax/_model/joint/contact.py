"""The contact joint: two profiles that touch, or may touch."""

from collections.abc import Iterable
from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ... import frames
from ..._numerics.groups import SE2
from ..._programs.custom_types import Given, Matrix4, Number, Numbers
from ..._programs.modules import AbstractModule
from ..._programs.precision import as_float, number
from ..._programs.reprs import by_fields
from ..._programs.trees import once
from ...frames import PlanarFrame
from ..contact_laws import AbstractContactLaw
from ..friction import Coulomb, contact_friction
from ..profile.closest_pair import closest_pair, element_pairs
from ..profile.profile import Profile
from .joint import check_name


HOLDS = ("keep", "push", "press")


class Contact(AbstractModule):
    """A joint between a profile of one body and a profile of another (thesis 2.4).

    Its coordinates are q1 and q2, the places on the two profiles (number of the element and local coordinate), and
    q3, the gap along the common normal. An open contact has all three, and they follow from the position of the
    bodies; an active one has q3 = 0, and takes one degree of freedom from the mechanism.

    **Arguments:**

    - `name`: how results call it.
    - `profile_a`, `profile_b`: `"body.profile"`, the preceding and the following one.
    - `active`: whether it is closed from the start; the mechanism is then assembled so. If not, it becomes active
        when the gap closes.
    - `hold`: what becomes of it once it is active. `"keep"`, as in the thesis 2.5: something presses the bodies
        together, it stays active until it is geometrically impossible. `"push"`: it can only push, and is released
        as soon as the body that it pushes would be drawn back. `"press"`: like keep, but where it becomes impossible
        the body drops at once until it meets the profile again, as a follower does that a spring presses on a snail.
    - `moves`: the coordinate that it moves when it is active, by name: the angle of the pawl that it lifts, say. By
        default it is, of all coordinates that rest when it closes, the one that its gap depends on most.
    - `restitution`: what an impact leaves of the approach speed, between 0 and 1, in [`mbsjax.simulate`][].
    - `law`: a compliant contact instead, with the force of [`mbsjax.HuntCrossley`][] or one of its siblings; in
        [`mbsjax.simulate`][] only.
    - `friction`: its coefficient of friction, or a [`mbsjax.Coulomb`][]. The force is along the first profile, positive
        on the second body in the direction in which that profile is drawn.
    - `elements_a`, `elements_b`: restrict it to some elements, by their numbers, so that several contact joints can
        stand for several places between the same two bodies.

    !!! Example

        >>> Contact("C23", "cam.rim", "follower.roller", active=True).body_b
        'follower'
    """

    name: str = eqx.field(static=True)
    body_a: str = eqx.field(static=True)
    profile_a: str = eqx.field(static=True)
    body_b: str = eqx.field(static=True)
    profile_b: str = eqx.field(static=True)
    active: bool = eqx.field(static=True)
    hold: str = eqx.field(static=True)
    moves: str | None = eqx.field(static=True)
    elements_a: tuple[int, ...] | None = eqx.field(static=True)
    elements_b: tuple[int, ...] | None = eqx.field(static=True)
    restitution: Float[Array, ""]
    law: AbstractContactLaw | None
    friction: Coulomb | None

    def __init__(
        self,
        name: str,
        profile_a: str,
        profile_b: str,
        *,
        active: bool = False,
        hold: Literal["keep", "push", "press"] = "keep",
        moves: str | None = None,
        restitution: Number = 0.0,
        law: Given[AbstractContactLaw] | None = None,
        friction: Number | Coulomb | None = None,
        elements_a: Iterable[int] | None = None,
        elements_b: Iterable[int] | None = None,
    ):
        check_name(name, "a contact")
        self.name, self.active, self.hold, self.moves = name, bool(active), hold, moves
        self.body_a, self.profile_a = _address(profile_a, name)
        self.body_b, self.profile_b = _address(profile_b, name)
        if self.body_a == self.body_b:
            raise ValueError(f"contact {name!r} connects body {self.body_a!r} with itself")
        if hold not in HOLDS:
            raise ValueError(f"`hold` of contact {name!r} must be one of {', '.join(map(repr, HOLDS))}, got {hold!r}")
        self.restitution = number(restitution, f"the restitution of contact {name!r}", least=0.0, most=1.0)
        if law is not None and not isinstance(law, AbstractContactLaw):
            raise ValueError(f"the law of contact {name!r} must be a contact law such as HuntCrossley, got {law!r}")
        self.law, self.friction = law, contact_friction(friction, f"the friction of contact {name!r}")
        self.elements_a = None if elements_a is None else tuple(elements_a)
        self.elements_b = None if elements_b is None else tuple(elements_b)

    def moving(self, coordinate: str | None) -> "Contact":
        """The same contact with another coordinate that it moves."""
        return Contact(
            self.name,
            f"{self.body_a}.{self.profile_a}",
            f"{self.body_b}.{self.profile_b}",
            active=self.active,
            hold=self.hold,  # pyright: ignore
            moves=coordinate,
            restitution=self.restitution,
            law=self.law,
            friction=self.friction,
            elements_a=self.elements_a,
            elements_b=self.elements_b,
        )

    __repr__ = by_fields


def _address(given: Any, name: str) -> tuple[str, str]:
    body, _, profile = given.partition(".") if isinstance(given, str) else ("", "", "")
    if not body or not profile:
        raise ValueError(f"contact {name!r} needs the names of its profiles as 'body.profile', got {given!r}")
    return body, profile


def contact_matrix(a: Profile, b: Profile, q: Numbers) -> Matrix4:
    """phi = phi_p(q1) phi_D(q3) phi_f(q2): the pose of the plane of profile `b` in that of profile `a` (2.5.3-7).

    !!! Example

        >>> import mbsjax as mbs
        >>> disc = mbs.Profile.chain([mbs.Circle((0.0, 0.0), 1.0)])
        >>> contact_matrix(disc, disc, (0.25, 0.75, 0.5))[:3, 3].round(9).tolist()
        [0.0, 2.5, 0.0]
    """
    q1, q2, q3 = as_float(q, "the coordinates of a contact")
    apart = frames.translation(jnp.stack([jnp.zeros_like(q3), q3, jnp.zeros_like(q3)]))
    facing = frames.rotation((0.0, 0.0, 1.0), jnp.pi)
    return frames.compose(frames.embed(a(q1).frame), apart, facing, frames.inverse(frames.embed(b(q2).frame)))


@once
def contact_coordinates(
    a: Profile, b: Profile, pose: PlanarFrame, elements: tuple[int, int] | None = None
) -> Float[Array, "3"]:
    """q1, q2, q3 of two profiles, where `pose` is that of the plane of `b` in the plane of `a`: of the closest pair of
    elements, or of a given pair, for which the places may lie beyond the ends. The inverse of
    [`mbsjax.contact_matrix`][]. Where no two elements have a common normal, q3 is infinite.

    !!! Example

        >>> import mbsjax as mbs
        >>> disc = mbs.Profile.chain([mbs.Circle((0.0, 0.0), 1.0)])
        >>> contact_coordinates(disc, disc, mbs.at(0.0, 2.5)).round(9).tolist()
        [0.25, 0.75, 0.5]
    """
    A, B, X = a.outline, b.outline, SE2.of(pose)
    if elements is None:
        pairs = element_pairs(A, B, tuple(range(A.count)), tuple(range(B.count)))
    else:
        pairs = np.array([elements[0]]), np.array([elements[1]])
    near, _ = closest_pair(A, B, X, pairs, anywhere=elements is not None)
    return jnp.stack([near.e1 + near.s1, near.e2 + near.s2, near.gap])


def allowed_elements(profile: Profile, given: Any, what: str) -> tuple[int, ...]:
    """The numbers of the elements that a contact is restricted to."""
    n = len(profile.kinds)
    if given is None:
        return tuple(range(n))
    if not given or not all(isinstance(e, int) and 0 <= e < n for e in given):
        raise ValueError(f"{what} must be numbers of elements, from 0 to {n - 1}, got {given!r}")
    return given
