"""Whether bodies interpenetrate where a motion begins."""

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from ._mechanism import Mechanism
from ._profile.closest import Pairing
from ._profile.profile import sampled
from ._system import System, system


_DENSE = 8  # times as many points as tell the shape of a profile
_DEEP = 2e-3  # of the size of the profiles: points that are less deep are left to the common normal, which is exact


def check_overlap(mech: Mechanism, q: Float[Array, " nq"]) -> None:
    """Raises where the bodies of a contact overlap: by how much, and where."""
    if not mech.contacts:
        return
    laid_out = system(mech)
    near, poses = _look(laid_out, q)
    for k, contact in enumerate(mech.contacts):
        a, b = mech.profiles(contact)
        c, s, x, y = poses[k]
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
        if not worst and -0.05 * size < gap < -1e-8 * size:
            place = a(float(near.e1[k] + near.s1[k])).position
            worst, where = -gap, np.asarray(place)
        if worst:
            raise ValueError(
                f"bodies {contact.body_a!r} and {contact.body_b!r} interpenetrate at the start by {worst:.6g}, at "
                f"({where[0]:.6g}, {where[1]:.6g}) on profile {contact.body_a}.{contact.profile_a} (contact "
                f"{contact.name!r}): give an estimate from outside, or check the dimensions"
            )


@eqx.filter_jit
def _look(laid_out: System, q: Array) -> tuple[Pairing, list[tuple[Array, Array, Array, Array]]]:
    X = laid_out.poses(q)
    numbers = range(len(laid_out.layout.holds))
    relative = [laid_out.touch(k).relative(*laid_out.touch_poses(X, k)) for k in numbers]
    return laid_out.nearest(X), [(R.c, R.s, R.x, R.y) for R in relative]


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
