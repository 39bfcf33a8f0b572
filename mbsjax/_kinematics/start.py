"""Whether a motion can begin where it is to begin: bodies that do not interpenetrate, contacts that are possible."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .._model.joint.clearance import Clearance
from .._model.joint.contact import Contact
from .._model.mechanism import Mechanism
from .._model.profile.closest_pair import ClosestPair
from .._model.profile.profile import Profile, sampled
from .._numerics.groups import SE2, AbstractPose
from .._programs.precision import Threshold
from .._programs.trees import once
from .contacts import AbstractContactGeometry
from .system import System


_DENSE = 8  # times as many points as tell the shape of a profile
_OVERLAP = Threshold(1e-8, 1e-5)  # of the size of the mechanism: bodies that overlap by more do so from the start
_DEEP = 2e-3  # of the size of the profiles: points that are less deep are left to the common normal, which is exact


def closest_pairs_and_poses(laid_out: System, q: Float[Array, " nq"]) -> tuple[ClosestPair, SE2]:
    """The closest elements of every contact, and the pose of its second profile in the plane of the first."""
    return laid_out.each_contact(_near, *laid_out.planes(laid_out.poses(q)))


def _near(contact: AbstractContactGeometry, *planes: AbstractPose) -> tuple[ClosestPair, SE2]:
    return contact.closest_pair(contact.relative(*planes)), contact.in_plane(*planes)


def check_start(mech: Mechanism, near: ClosestPair, poses: SE2) -> None:
    """Raises where the bodies of a contact overlap, saying by how much and where, and where an active contact is one of
    those that last for an instant only. `near` and `poses` are those of `closest_pairs_and_poses`."""
    near, poses = jax.tree_util.tree_map(np.asarray, (near, poses))
    for k, contact in enumerate(mech.contacts):
        if isinstance(contact, Clearance):
            _check_clearance(contact, float(near.gap[k]))
            continue
        a, b = mech.profiles(contact)
        c, s, x, y = poses.c[k], poses.s[k], poses.x[k], poses.y[k]
        first = np.concatenate([p[:-1] for p in sampled(a, _DENSE)])
        second = np.concatenate([p[:-1] for p in sampled(b, _DENSE)]) @ np.array([[c, s], [-s, c]]) + np.array([x, y])
        size = max(float(np.ptp(first, 0).max()), float(np.ptp(second, 0).max()))
        worst, where = 0.0, np.zeros(2)
        for outline, points, closed in ((first, second, a.closed), (second, first, b.closed)):
            depth = _depths(outline, points) if closed else np.zeros(len(points))
            i = int(np.argmax(depth))
            if depth[i] > max(worst, _DEEP * size):
                worst, where = float(depth[i]), points[i]
        gap = float(near.gap[k])
        if contact.active and not worst:
            _check_pair(
                contact, (a, b), [(int(e[k]), float(s[k])) for e, s in ((near.e1, near.s1), (near.e2, near.s2))]
            )
        if not worst and -0.05 * size < gap < -_OVERLAP() * size:
            place = a(float(near.e1[k] + near.s1[k])).position
            worst, where = -gap, np.asarray(place)
        if worst and abs(worst + gap) < 0.1 * worst:
            worst = -gap  # exact, where it is the same place
        if worst:
            raise ValueError(
                f"bodies {contact.body_a!r} and {contact.body_b!r} interpenetrate at the start by {worst:.6g}, at "
                f"({where[0]:.6g}, {where[1]:.6g}) on profile {contact.body_a}.{contact.profile_a} (contact "
                f"{contact.name!r}): give an estimate from outside, or check the dimensions"
            )


@once
def overlapping(near: ClosestPair, size: Float[Array, ""], held: Bool[Array, " c"]) -> Bool[Array, ""]:
    """Whether the bodies of a contact overlap that is not held closed: what `check_start` would say of a little
    overlap, also where nobody can look."""
    gap = near.gap / size
    return jnp.any(~held & (gap < -_OVERLAP()) & (gap > -0.05))


def _check_clearance(contact: Clearance, gap: float) -> None:
    most = float(contact.play.size)
    if contact.play.law is None and gap < -1e-6 * most:
        raise ValueError(
            f"the play of size {most:.6g} of {contact.name!r} is exceeded at the start by {-gap:.6g}: say where it lies"
        )


def _check_pair(contact: Contact, profiles: tuple[Profile, Profile], places: list[tuple[int, float]]) -> None:
    def kinds(profile: Profile, e: int, s: float) -> set[str]:
        """What is touched: at the end of an element, also its neighbor."""
        n = len(profile.kinds)
        ends = [e - 1] * (s < 1e-7) + [e + 1] * (s > 1 - 1e-7)
        return {profile.kinds[i % n] for i in (e, *ends) if profile.closed or 0 <= i < n}

    first, second = (kinds(profile, *place) for profile, place in zip(profiles, places))
    for kind in ("point", "line"):
        if kind in first & second:
            raise ValueError(
                f"contact {contact.name!r} is active at the start with a {kind} on a {kind}, which lasts for an "
                "instant only: begin a little earlier or later, or describe two contacts"
            )


def _depths(outline: np.ndarray, points: np.ndarray) -> np.ndarray:
    """How deep points lie in the material, which is on the left of a closed outline; 0 outside of it."""
    a, b = outline, np.roll(outline, -1, 0)
    x, y = points[:, :1], points[:, 1:]
    straddles = (a[:, 1] > y) != (b[:, 1] > y)
    rise = np.where(b[:, 1] == a[:, 1], 1.0, b[:, 1] - a[:, 1])
    inside = np.sum(straddles & (x < a[:, 0] + (y - a[:, 1]) * (b[:, 0] - a[:, 0]) / rise), 1) % 2 == 1
    area = np.sum(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0])
    d = b - a
    along = np.clip(((x - a[:, 0]) * d[:, 0] + (y - a[:, 1]) * d[:, 1]) / np.maximum(np.sum(d * d, 1), 1e-300), 0, 1)
    off = np.hypot(x - a[:, 0] - along * d[:, 0], y - a[:, 1] - along * d[:, 1]).min(1)
    return np.where(inside == (area > 0), off, 0.0)
