"""The mechanism of a study as lines, with their derivatives with respect to its dimensions."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import frames
from .._dynamics.outcome import runs
from .._kinematics.system import system
from .._model.force.spring import Spring
from .._model.gauge import Distance
from .._model.mechanism import GROUND, Mechanism
from .._model.profile.base import AbstractCurve
from .._model.profile.elements import Line
from .._numerics.groups import SE2, SE3
from .._programs.trees import once, without_unused
from ..frames import PlanarFrame
from .study import Study


_ROWS = 25  # positions of a motion that are shown


class Local(NamedTuple):
    """What there is of the bodies, each in its own frame: places of joints and points, and outlines; `(n, dim)`."""

    places: dict[str, Any]
    axes: dict[str, Any]  # of the joints among the places, which come first
    outlines: dict[str, list]


class Moving(NamedTuple):
    """A mechanism in a few positions.

    - `poses`: `(rows, bodies, 3)`: x, y, angle; in space `(rows, bodies, 7)`: x, y, z, Euler parameters.
    - `t`: the time of each row.
    - `local`: the bodies themselves.
    """

    poses: Any
    t: Any
    local: Local


class Drawing(NamedTuple):
    """A mechanism at the mean dimensions, and its slopes, which have the dimensions as their last axis."""

    mech: Mechanism
    moving: Moving
    slopes: Moving


def drawn(study: Study) -> Drawing | None:
    """The mechanism of a study and its derivatives; None where the study is not of a motion or a position, or where
    these have no derivatives."""
    outcome = eqx.filter_eval_shape(study.outcome, study.mean)
    found = runs(outcome)
    if not found or found[0].q.ndim > 2 or not found[0].mech.joints:
        return None
    moving, slopes = jax.tree_util.tree_map(np.asarray, _linearized(study, study.mean))
    there = np.isfinite(moving.poses).all((1, 2)) & np.isfinite(slopes.poses).all((1, 2, 3))
    if not there.any():
        return None
    cut = lambda x: x._replace(poses=x.poses[there], t=x.t[there])
    return Drawing(found[0].mech, cut(moving), cut(slopes))


@once
def _linearized(study: Study, x: Float[Array, " d"]) -> tuple[Moving, Moving]:
    def moved(x: Array) -> Moving:
        run = runs(study.outcome(x))[0]
        q = run.q if run.q.ndim == 2 else run.q[None]
        rows = np.unique(np.linspace(0, q.shape[0] - 1, _ROWS).round().astype(int))
        t = run.ts[rows] if run.q.ndim == 2 else jnp.zeros(1)
        return Moving(_poses(run.mech, q[rows]), jax.lax.stop_gradient(t), _local(run.mech))

    moving = without_unused(moved, x)

    def twice(x: Array) -> tuple[Moving, Moving]:
        found = moving(x)
        return found, found

    slopes, found = jax.jacfwd(twice, has_aux=True)(x)
    return found, slopes


def _poses(mech: Mechanism, q: Array) -> Array:
    plan = system(mech.replaced(contacts=(), forces=()))
    order = np.array([plan.layout.body_numbers[name] for name in mech.links])

    def one(q: Array) -> Array:
        X = plan.poses(q)
        if isinstance(X, SE2):
            return jnp.stack([X.x, X.y, X.angle], -1)[order]
        M = X.matrix()
        return jnp.concatenate([M[..., :3, 3], jax.vmap(frames.quaternion)(M[..., :3, :3])], -1)[order]

    return jax.vmap(one)(q)


def _local(mech: Mechanism) -> Local:
    dim = 2 if mech.planar else 3
    places, axes, outlines = ({name: [] for name in mech.links} for _ in range(3))
    for joint in mech.joints:
        for body, frame in ((joint.body_a, joint.frame_a), (joint.body_b, joint.frame_b)):
            X = joint.placed(frame, SE2 if mech.planar else SE3).matrix()
            places[body].append(X[:dim, 3])
            axes[body].append(X[:dim, 0 if mech.planar else 2])
    for name in mech.links:
        body = mech.body(name)
        places[name] += [_resized(p, dim) for p in body.points.values()]
        for profile in body.profiles.values():
            X = jnp.asarray(frames.embed(profile.frame) if isinstance(profile.frame, PlanarFrame) else profile.frame)
            points = jnp.concatenate([_along(element) for element in profile.elements])
            outlines[name].append(points @ X[:dim, :2].T + X[:dim, 3])
    for _, gauge in ties(mech):
        for body, p in zip(gauge.bodies, (gauge.point_a, gauge.point_b)):
            places[body].append(_resized(p, dim))
    stacked = lambda every: {name: jnp.stack(x) if x else jnp.zeros((0, dim)) for name, x in every.items()}
    return Local(stacked(places), stacked(axes), outlines)


def _along(element: Any) -> Array:
    n = element.samples if isinstance(element, AbstractCurve) else 1 if isinstance(element, Line) else 24
    return jax.vmap(lambda s: element(s).position)(jnp.linspace(0.0, 1.0, n + 1))


def _resized(p: Any, dim: int) -> Array:
    p = jnp.ravel(jnp.asarray(p))
    return jnp.concatenate([p, jnp.zeros(3)])[:dim]


def ties(mech: Mechanism) -> list[tuple[str, Distance]]:
    """Rods, which are distances that are held, and springs along a distance."""
    found = [("rod", g) for g in mech.gauges if g.value is not None]
    for force in mech.forces:
        if isinstance(force, Spring):
            on = [g for g in mech.gauges if g.name == force.on] if isinstance(force.on, str) else [force.on]
            found += [("spring", g) for g in on]
    return [(kind, g) for kind, g in found if isinstance(g, Distance)]


def dimension_lines(drawing: Drawing, i: int) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Where dimension number `i` is seen: the body, and the two ends of a line in its frame. A dimension is seen where
    a place moves with it, from the place of the same body that does not; on an outline, from its middle."""
    local, slopes = drawing.moving.local, drawing.slopes.local
    found = []
    for body in drawing.mech.links:
        spots = [(p, d[:, i]) for p, d in zip(local.places[body], slopes.places[body])]
        still = [p for p, d in spots if not np.any(np.abs(d) > 1e-9)]
        moves = max(spots, key=lambda s: float(np.linalg.norm(s[1])), default=None)
        if moves is not None and np.linalg.norm(moves[1]) > 1e-9:
            found.append((body, *_measured(*moves, still), float(np.linalg.norm(moves[1]))))
            continue
        for points, d in zip(local.outlines[body], slopes.outlines[body]):
            k = int(np.argmax(np.linalg.norm(d[..., i], axis=1)))
            if np.linalg.norm(d[k, :, i]) > 1e-9:
                middle, along = points.mean(0), d[..., i].mean(0)
                same = np.linalg.norm(along - d[k, :, i]) < 1e-3 * np.linalg.norm(along)
                start, end = _measured(middle, along, still) if same else _radius(points, d[..., i])
                found.append((body, start, end, float(np.linalg.norm(d[k, :, i]))))
                break
    most = max((x[3] for x in found), default=0.0)
    return [x[:3] for x in found if x[3] > 0.5 * most][:2]


def _measured(p: np.ndarray, d: np.ndarray, still: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """A line to a place along the way it moves, as long as that way is from a place that stays."""
    u = d / np.linalg.norm(d)
    ref = max(still, key=lambda s: abs((p - s) @ u) / max(float(np.linalg.norm(p - s)), 1e-12), default=0 * p)
    return p - u * ((p - ref) @ u), p


def _radius(points: np.ndarray, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A line from the center that points of an outline move away from, if there is one, to the middle of them."""
    moves = np.linalg.norm(d, axis=1) > 1e-3 * np.linalg.norm(d, axis=1).max()
    p, u = points[moves], d[moves] / np.linalg.norm(d[moves], axis=1, keepdims=True)
    far, center = p[len(p) // 2], points.mean(0)
    across = np.stack([-u[:, 1], u[:, 0]], 1)  # lines through the points, along their ways
    found, _, rank, _ = np.linalg.lstsq(across, np.sum(across * p[:, :2], 1), rcond=1e-6)
    off = np.abs(across @ found - np.sum(across * p[:, :2], 1)).max()
    if rank == 2 and off < 1e-3 * np.ptp(points, axis=0).max():
        center = np.concatenate([found, far[2:]])
    return center, far


def skeleton(mech: Mechanism, body: str, local: Local) -> tuple[list[list[int]], list[bool]]:
    """Lines between the places of a body, by their numbers: the polygon round them, or, from its first place, to those
    of a body with outlines; and, of each outline, whether a line leads to its middle."""
    places, outlines = local.places[body], local.outlines[body]
    if body == GROUND:
        return [], [False] * len(outlines)
    if outlines:
        inside = [_around(rim, places[0]) if len(places) else True for rim in outlines]
        far = [k for k in range(1, len(places)) if not any(_around(rim, places[k]) for rim in outlines)]
        return [[0, k] for k in far if np.linalg.norm(places[k] - places[0]) > 0], [not x for x in inside]
    _, first = np.unique(np.round(places, 9), axis=0, return_index=True)
    kept = sorted(first.tolist())
    if len(kept) < 2:
        return [], []
    d = places[kept] - places[kept[0]]
    if len(kept) == 2 or not mech.planar or np.linalg.matrix_rank(d, tol=1e-9 * np.abs(d).max()) < 2:
        along = d @ d[int(np.argmax(np.linalg.norm(d, axis=1)))]
        return [[kept[k] for k in np.argsort(along, kind="stable")]], []
    from scipy.spatial import ConvexHull

    hull = [kept[k] for k in ConvexHull(places[kept]).vertices]
    return [[*hull, hull[0]]], []


def _around(rim: np.ndarray, point: np.ndarray) -> bool:
    """Whether an outline goes round a point, in its xy plane."""
    d = rim[:, :2] - point[:2]
    angles = np.unwrap(np.arctan2(*np.concatenate([d, d[:1]]).T[::-1]))
    return bool(abs(angles[-1] - angles[0]) > np.pi)
