"""Contact joints laid out for computing: gaps, their gradients, and what is watched of them.

Written for one mechanism in one position; `lanewise` applies it along lanes.
"""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._events.places import Places
from .._model.joint.contact import Contact, allowed_elements
from .._model.profile.closest_pair import ClosestPair, closest_pair, element_pairs
from .._model.profile.common_normal import CommonNormal, common_normal
from .._model.profile.outline import Outline
from .._model.profile.profile import Profile
from .._numerics.groups import SE2, SE3, AbstractPose, pick
from ..frames import PlanarFrame, embed


class Proximity(NamedTuple):
    """Where a contact is, and what is near it."""

    gap: Float[Array, "*lanes"]  # of the closest pair; of an active contact, elsewhere than where it is
    ends: Float[Array, "4 *lanes"]  # how far the places of an active contact are from the ends of their elements
    places: Places  # where the contact is,
    closest: Places  # and where the closest pair is
    apart: Float[Array, "pairs *lanes"]  # the gaps of the pairs that are apart; none, where nothing is known of them


class AbstractContactGeometry(eqx.Module):
    """A contact laid out for computing."""

    X_A: eqx.AbstractVar[AbstractPose]  # the planes of what touches, in their bodies
    X_B: eqx.AbstractVar[AbstractPose]

    def planes(self, X_a: AbstractPose, X_b: AbstractPose) -> tuple[AbstractPose, AbstractPose]:
        """The planes of the two profiles, where the bodies stand."""
        return X_a @ self.X_A, X_b @ self.X_B

    @staticmethod
    def in_plane(P_a: AbstractPose, P_b: AbstractPose) -> SE2:
        """The pose of the second plane in the first, as it is seen in that."""
        X = P_a.inverse() @ P_b
        if isinstance(X, SE2):
            return X
        assert isinstance(X, SE3)
        c, s = X.R[0, 0], X.R[1, 0]
        return SE2(c, s, X.p[0], X.p[1], jnp.arctan2(s, c))

    @staticmethod
    @abc.abstractmethod
    def relative(P_a: AbstractPose, P_b: AbstractPose) -> Any:
        """The pose of the second plane in the first, as the other methods ask for it."""

    @abc.abstractmethod
    def common_normal(self, X: Any, e1: Array, e2: Array, s1: Array, s2: Array) -> CommonNormal:
        """The common normal of two elements."""

    @property
    @abc.abstractmethod
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """The pairs of elements that can meet."""

    @abc.abstractmethod
    def closest_pair(self, X: Any) -> ClosestPair:
        """The closest elements."""

    @abc.abstractmethod
    def spot(self, P_a: AbstractPose, P_b: AbstractPose, e1: Array, s1: Array) -> tuple[Array, Array]:
        """The place in ground, and the normal out of the first body there."""

    @abc.abstractmethod
    def wrench(
        self, P_a: AbstractPose, P_b: AbstractPose, e1: Array, s1: Array, along: bool = False
    ) -> Float[Array, " rows"]:
        """What the gap grows by, for each unit of a twist in ground of the second body: the wrench of a unit force
        along the common normal; the first body's twist takes as much away. Or, `along` the first profile, how fast the
        second body slides: the wrench of a unit force along the common tangent."""

    @abc.abstractmethod
    def proximity(
        self, X: Any, e1: Array, e2: Array, s1: Array, s2: Array, on: Array, radius: Array, apart: Array | None = None
    ) -> Proximity:
        """What is near a contact that is on elements e1, e2 at s1, s2. Its gap is that of the closest pair, or of the
        pair that has come to overlap since the gaps of the pairs were `apart`; where it is active (`on`), of a pair
        that meets at least `radius` from where it is, or beyond a hollow corner. The gaps of the pairs that are apart
        now are padded as `apart` is."""

    @abc.abstractmethod
    def next_elements(
        self, X: Any, e1: Array, e2: Array, s1: Array, s2: Array, w: Array, size: Array
    ) -> tuple[Places, Array]:
        """Where a contact is next that has left its element by the end w, and whether it can be there."""

    @property
    @abc.abstractmethod
    def bounding_circles(self) -> tuple[Float[Array, "2 2"], Float[Array, "2"]]:
        """A center of each profile, and how far the profile reaches from it."""

    @abc.abstractmethod
    def gap_rate_bound(self, P_a: AbstractPose, P_b: AbstractPose, V: Array, centers: Array, reaches: Array) -> Array:
        """A bound on how fast the gap can change, where V is the twist of the second body relative to the first, in
        ground, and the profiles reach so far around their centers."""

    @property
    @abc.abstractmethod
    def feature_sizes(self) -> tuple[Array, Array]:
        """How far bodies can move along each other without missing anything between two looks: the length of the
        shortest element; and near two elements that are round, corners included, half of their radii, or of what these
        differ by where one is in the other."""


class ContactGeometry(AbstractContactGeometry):
    """A contact joint with its profiles as arrays."""

    A: Outline
    B: Outline
    X_A: AbstractPose
    X_B: AbstractPose
    allowed_a: tuple[int, ...] = eqx.field(static=True)
    allowed_b: tuple[int, ...] = eqx.field(static=True)

    @staticmethod
    def relative(P_a: AbstractPose, P_b: AbstractPose) -> SE2:
        return AbstractContactGeometry.in_plane(P_a, P_b)

    def common_normal(self, X: SE2, e1: Array, e2: Array, s1: Array, s2: Array) -> CommonNormal:
        return common_normal(self.A, self.B, X, e1, e2, s1, s2)

    @property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        return element_pairs(self.A, self.B, self.allowed_a, self.allowed_b)

    @property
    def hollow_pairs(self) -> np.ndarray:
        """Which of the pairs have a concave arc."""
        first, second = self.pairs
        return np.array(self.A.hollow)[first] | np.array(self.B.hollow)[second]

    def closest_pair(self, X: SE2) -> ClosestPair:
        return closest_pair(self.A, self.B, X, self.pairs)[0]

    def spot(self, P_a: AbstractPose, P_b: AbstractPose, e1: Array, s1: Array) -> tuple[Array, Array]:
        at = self.A.place(e1, s1)
        point, normal = (lifted(P_a, x) for x in (at.position, at.normal))
        return P_a.apply(point), P_a.rotate(normal)

    def wrench(
        self, P_a: AbstractPose, P_b: AbstractPose, e1: Array, s1: Array, along: bool = False
    ) -> Float[Array, " rows"]:
        p, n = self.A.point_and_normal(e1, s1)
        n = jnp.stack([-n[1], n[0]]) if along else n
        return unit_wrench(P_a.apply(lifted(P_a, p)), P_a.rotate(lifted(P_a, n)))

    def proximity(
        self, X: SE2, e1: Array, e2: Array, s1: Array, s2: Array, on: Array, radius: Array, apart: Array | None = None
    ) -> Proximity:
        first, second = self.pairs
        n = len(first)
        near, outside = closest_pair(
            self.A,
            self.B,
            X,
            self.pairs,
            same=pick(self.A.adjacent(e1), first) & pick(self.B.adjacent(e2), second),
            skip=self.A.point_and_normal(e1, s1)[0],
            radius=jnp.where(on, radius, -1.0),
            apart=None if apart is None else apart[:n],
        )
        outside = outside[:0] if apart is None else jnp.pad(outside, (0, apart.shape[0] - n), constant_values=-jnp.inf)
        ends = []
        for shape, s in ((self.A, s1), (self.B, s2)):
            ends += [jnp.ones_like(s)] * 2 if shape.endless else [s, 1 - s]
        there = Places(near.e1, near.e2, jnp.clip(near.s1, 0, 1), jnp.clip(near.s2, 0, 1))
        places = Places(e1, e2, s1, s2).where(on, there)
        return Proximity(near.gap, jnp.where(on, jnp.stack(ends), 1.0), places, there, outside)

    def next_elements(
        self, X: SE2, e1: Array, e2: Array, s1: Array, s2: Array, w: Array, size: Array
    ) -> tuple[Places, Array]:
        *pairs, begin = self._pairs_after(e1, e2, w)
        n1, n2 = (jnp.stack(x) for x in zip(*pairs))
        sure = (jnp.maximum(n1, 0), jnp.maximum(n2, 0))
        begins = (jnp.where(n1 == e1, s1, begin), jnp.where(n2 == e2, s2, begin))
        met = jax.vmap(lambda *where: self.common_normal(X, *where))(*sure, *begins)
        good = (n1 >= 0) & (n2 >= 0) & (jnp.abs(met.gap) < 1e-4 * size)
        for s in (met.s1, met.s2):
            good &= (s > -1e-3) & (s < 1 + 1e-3)
        return Places(*(jnp.where(good[0], x[0], x[1]) for x in (n1, n2, met.s1, met.s2))), good[0] | good[1]

    @property
    def bounding_circles(self) -> tuple[Float[Array, "2 2"], Float[Array, "2"]]:
        centers, reaches = zip(self.A.bounding_circle, self.B.bounding_circle)
        return jnp.stack(centers), jnp.stack(reaches)

    def gap_rate_bound(self, P_a: AbstractPose, P_b: AbstractPose, V: Array, centers: Array, reaches: Array) -> Array:
        """No point of a profile moves faster than its center, and round that. A circle is as far from anything as its
        center, but for its radius."""
        bounds = []
        for X, center, reach in zip((P_a, P_b), centers, reaches):
            p = X.apply(lifted(X, center))
            if X.dim == 2:
                turning, velocity = jnp.abs(V[0]), V[1:] + V[0] * jnp.stack([-p[1], p[0]])
            else:
                turning, velocity = jnp.sqrt(jnp.sum(V[:3] ** 2)), V[3:] + jnp.cross(V[:3], p)
            bounds.append(jnp.sqrt(jnp.sum(velocity * velocity)) + turning * reach)
        return jnp.minimum(*bounds)

    @property
    def feature_sizes(self) -> tuple[Array, Array]:
        shortest, radii = [], []
        for shape in (self.A, self.B):
            row = shape.rows
            curved = jnp.abs(row.radius) * jnp.minimum(jnp.abs(row.turn), 1.0)
            lines, curves = np.array(shape.lines), shape.curve_sizes
            along = jnp.where(lines, row.length, curved + curves)
            shortest.append(jnp.min(jnp.where(along > 0, along, jnp.inf)))
            radii.append(jnp.where(~lines & shape.has_extent, row.radius + curves, jnp.inf))
        first, second = self.pairs
        # how sharply the one is bent round which the center of the other goes; within a hollow arc, if it fits in
        reach, hollow = radii[0][first] + radii[1][second], self.hollow_pairs
        reach = jnp.where(hollow, jnp.where(reach < 0, -reach, jnp.inf), reach) if hollow.any() else reach
        return jnp.minimum(*shortest), reach / 2

    def _pairs_after(self, e1: Array, e2: Array, w: Array) -> tuple[tuple[Array, Array], tuple[Array, Array], Array]:
        """The elements after a place has left its element by one of four ends (w: 1, 2 those of the first profile's,
        3, 4 those of the second's): two pairs to try, -1 where there is none; and the local coordinate that a new
        element begins from.

        Two lines have no common normal: the place goes on to the end of one or of the other, whichever comes first.
        Two corners that meet go on together: the corner of one is then on the flank of the other.
        """
        way = jnp.where((w == 2) | (w == 4), 1, -1)
        first = w <= 2
        n1 = jnp.where(first, _next(self.A, self.allowed_a, e1, way), e1)
        n2 = jnp.where(first, e2, _next(self.B, self.allowed_b, e2, way))
        flat = _line(self.A, n1) & _line(self.B, n2)
        sharp = _corner(self.A, n1) & _corner(self.B, n2)
        on1 = jnp.where(flat & first | sharp & ~first, _next(self.A, self.allowed_a, n1, way), n1)
        on2 = jnp.where(flat & ~first | sharp & first, _next(self.B, self.allowed_b, n2, way), n2)
        other1 = jnp.where(flat & ~first, _next(self.A, self.allowed_a, n1, -way), jnp.where(flat, n1, on1))
        other2 = jnp.where(flat & first, _next(self.B, self.allowed_b, n2, -way), jnp.where(flat, n2, on2))
        return (on1, on2), (other1, other2), jnp.where(way > 0, 0.0, 1.0)


def lifted(X: AbstractPose, p: Float[Array, "2"]) -> Float[Array, " dim"]:
    """A vector of a plane, in the space that the plane is in."""
    return p if X.dim == 2 else jnp.concatenate([p, jnp.zeros(X.dim - 2)])


def _next(shape: Outline, allowed: tuple[int, ...], e: Array, way: Array) -> Array:
    on = shape.neighbor(jnp.maximum(e, 0), way)
    inside = jnp.asarray(np.isin(np.arange(shape.count), allowed))[jnp.maximum(on, 0)]
    return jnp.where(inside & (on >= 0) & (e >= 0), on, -1)


def _line(shape: Outline, e: Array) -> Array:
    return (e >= 0) & shape.is_line(jnp.maximum(e, 0))


def _corner(shape: Outline, e: Array) -> Array:
    sure = jnp.maximum(e, 0)
    return (e >= 0) & ~shape.is_line(sure) & ~shape.is_curve(sure) & (shape.column(sure)[2] == 0)


def unit_wrench(p: Array, n: Array) -> Float[Array, " rows"]:
    """That of a unit force along n at p."""
    if p.shape[0] == 2:
        return jnp.stack([p[0] * n[1] - p[1] * n[0], n[0], n[1]])
    return jnp.concatenate([jnp.cross(p, n), n])


def placed(frame: PlanarFrame | Array, group: type[AbstractPose]) -> AbstractPose:
    """A plane of a body, in the algebra of the mechanism."""
    if isinstance(frame, PlanarFrame):
        return SE2.of(frame) if group is SE2 else SE3.of(embed(frame))
    return SE3.of(frame)


def contact_geometry(contact: Contact, a: Profile, b: Profile, group: type[AbstractPose]) -> ContactGeometry:
    what = f"of contact {contact.name!r}"
    return ContactGeometry(
        A=a.outline,
        B=b.outline,
        X_A=placed(a.frame, group),
        X_B=placed(b.frame, group),
        allowed_a=allowed_elements(a, contact.elements_a, f"elements_a {what}"),
        allowed_b=allowed_elements(b, contact.elements_b, f"elements_b {what}"),
    )
