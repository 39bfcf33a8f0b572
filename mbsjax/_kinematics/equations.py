"""The equations of a mechanism: loops that close, gauges that read a target value, and, where contacts change, what
rests or is held by a contact. Residuals, their derivatives in the freedoms, and their rates in time."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._model.gauge import AbstractGauge
from .._numerics.groups import AbstractPose, expand, lanewise, one, part, take, wide
from .._numerics.rates import derivatives_at_zero, moving_pose
from .contacts import AbstractContactGeometry
from .layout import Layout
from .mode import Mode
from .system import Rotations, System, Targets


def residual(
    system: System,
    q: Float[Array, "nq *lanes"],
    targets: Targets = (),
    mode: Mode | None = None,
    afar: bool = False,
) -> Float[Array, "m *lanes"]:
    """What every loop lacks to be closed (2.2.3-10), in the frame of its chord; then the gauges that are
    to have a target value; then the coordinates that rest, or the contacts that hold them. `afar` is for
    positions that may be far from closed."""
    lanes = q.ndim - 1
    X, phi = system.poses_and_joints(q)
    rows = []
    if system.layout.topology.chords:
        rows.append(_by_loop(_chords(system, X, phi)[1].defect(afar)))
    for i, target in targets:
        value = lanewise(lambda gauge, *args: gauge.residual(*args), lanes)(
            system.gauges[i], target, *system.gauge_poses(X, i)
        )
        rows.append(value[None])
    if mode is not None:
        rows.append(_owned(mode, system.gaps(system.planes(X), mode), system.resting(q, mode) - mode.held))
    return jnp.concatenate(rows) if rows else jnp.zeros((0, *q.shape[1:]))


def linearize(
    system: System,
    q: Float[Array, "nq *lanes"],
    targets: Targets = (),
    mode: Mode | None = None,
    rotations: Rotations | None = None,
    afar: bool = False,
) -> tuple[Float[Array, "m *lanes"], Float[Array, "m nv *lanes"]]:
    """`residual` and its derivative in the freedoms, read off the twists: nothing is differentiated
    round a loop. `rotations` may be given where they are known."""
    X, phi = system.poses_and_joints(q, rotations)
    S = system.twists(q, X)
    residuals, rows, _ = loops_and_gauges(system, X, phi, S, targets, afar)
    if mode is not None:
        wrenches, (_, _, gaps) = system.contact_wrenches(system.planes(X), mode)
        slopes = system.gap_jacobian(wrenches, S)
        unit = (wide(np.arange(S.shape[1]), q.ndim - 1)[None] == mode.rests[:, None]).astype(q.dtype)
        residuals = jnp.concatenate([residuals, _owned(mode, gaps, system.resting(q, mode) - mode.held)])
        rows = jnp.concatenate([rows, _owned(mode, slopes, unit)])
    return residuals, rows


def loops_and_gauges(
    system: System,
    X: AbstractPose,
    phi: AbstractPose,
    S: Float[Array, "rows nv *lanes"],
    targets: Targets = (),
    afar: bool = False,
) -> tuple[Float[Array, "m *lanes"], Float[Array, "m nv *lanes"], Any]:
    """The residuals of the loops and the gauges, and their derivatives in the freedoms, from the poses; and the
    chords, as `loop_rates` takes them."""
    lanes = S.ndim - 2
    residuals, rows, chords = [], [], None
    if system.layout.topology.chords:
        arrived, left = _chords(system, X, phi)
        chords = arrived.inverse(), left
        residuals.append(_by_loop(left.defect(afar)))
        relative = expand(chords[0]).twist_map(S[:, None])
        rows.append(_by_loop(expand(left).defect_rate(relative, afar) * wide(system.layout.loops, lanes)))
    for i, target in targets:
        value, slopes = lanewise(_gauge_slopes, lanes)(system.gauges[i], target, *system.gauge_poses(X, i))
        numbers = [system.layout.body_numbers[name] for name in system.layout.gauge_bodies[i]]
        moves = jnp.sum(slopes[:, :, None] * S[None], 1)  # bodies, freedoms
        rows.append(jnp.sum(wide(system.layout.paths[numbers], lanes) * moves, 0)[None])
        residuals.append(value[None])
    if not rows:
        return jnp.zeros((0, *S.shape[2:])), jnp.zeros((0, *S.shape[1:])), None
    if len(rows) == 1:
        return residuals[0], rows[0], chords
    return jnp.concatenate(residuals), jnp.concatenate(rows), chords


def loop_rates(system: System, chords: Any, A: Float[Array, "rows nv *lanes"]) -> Float[Array, "m *lanes"]:
    """The second rates of the loops' residuals, where A is what every freedom adds to the rates of twists: the two
    sides of a loop have one twist, so this is all."""
    if chords is None:
        return jnp.zeros((0, *A.shape[2:]))
    back, left = chords
    apart = jnp.sum(wide(system.layout.loops, A.ndim - 2) * A[:, None], 2)
    return _by_loop(left.defect_rate(back.twist_map(apart)))


def second_rate(
    system: System,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    a: Float[Array, " nv"],
    targets: Callable[[Array], Targets],
    mode: Mode | None = None,
) -> Float[Array, " m"]:
    """The second rate in time of `residual` at a closed position, where the freedoms move with v and a, and
    `targets` tells the gauges' targets a short time later."""
    layout = system.layout
    X, V, A = system.rates(q, v, a)
    rows = []
    if layout.topology.chords:
        n = len(layout.topology.tree)
        arrived = take(X, layout.ends[n:, 1]) @ part(system.X_B, n, len(layout.order))
        apart = jnp.sum(layout.loops * A[:, None], -1)  # the sides of a loop have one twist, so this is all
        rows.append(_by_loop(arrived.inverse().twist_map(apart)))
    for k, (i, _) in enumerate(targets(jnp.zeros(()))):
        poses = [moving_pose(*each) for each in _movement(layout, layout.gauge_bodies[i], X, V, A)]

        def later(s: Array, i: int = i, k: int = k, poses: list = poses) -> Array:
            return system.gauges[i].residual(targets(s)[k][1], *(at(s) for at in poses))

        rows.append(derivatives_at_zero(later)[2][None])
    if mode is not None:
        moves = [_movement(layout, pair, X, V, A) for pair in layout.contact_bodies]
        twists: list[Array] = []
        for side in (0, 1):
            twists += [jnp.stack([m[side][1] for m in moves]), jnp.stack([m[side][2] for m in moves])]
        rates = system.each_contact(_second_gap_rate, *system.planes(X), *twists, *mode.places)
        rows.append(_owned(mode, rates, a[mode.rests]))
    return jnp.concatenate(rows) if rows else jnp.zeros(0)


def _movement(
    layout: Layout, bodies: tuple[str, ...], X: AbstractPose, V: Array, A: Array
) -> list[tuple[AbstractPose, Array, Array]]:
    """Poses, twists and rates of twists of some bodies, from what every freedom adds to the twists and their rates."""
    paths = [(b, layout.paths[b]) for b in (layout.body_numbers[name] for name in bodies)]
    return [(one(X, b), jnp.sum(path * V, -1), jnp.sum(path * A, -1)) for b, path in paths]


def _second_gap_rate(
    contact: AbstractContactGeometry,
    P_a: AbstractPose,
    P_b: AbstractPose,
    V_a: Array,
    A_a: Array,
    V_b: Array,
    A_b: Array,
    *where: Array,
) -> Array:
    first, other = moving_pose(P_a, V_a, A_a), moving_pose(P_b, V_b, A_b)
    return derivatives_at_zero(lambda s: contact.common_normal(contact.relative(first(s), other(s)), *where).gap)[2]


def _gauge_slopes(gauge: AbstractGauge, target: Array, *poses: AbstractPose) -> tuple[Array, Array]:
    """The residual of a gauge, and its derivatives in twists in ground of its bodies."""
    value, slopes = jax.value_and_grad(lambda poses: gauge.residual(target, *poses))(poses)
    return value, jnp.stack([X.wrench(slope) for X, slope in zip(poses, slopes, strict=True)])


def _chords(system: System, X: AbstractPose, phi: AbstractPose) -> tuple[AbstractPose, AbstractPose]:
    """For every chord: its frame k+ seen from the following body, and what is left to close."""
    n, m = len(system.layout.topology.tree), len(system.layout.order)
    a, b = system.layout.ends[n:].T
    arrived = take(X, b) @ part(system.X_B, n, m)
    sent = take(X, a) @ part(system.X_A, n, m) @ part(phi, n, m)
    return arrived, arrived.inverse() @ sent


def _owned(
    mode: Mode, of_contacts: Float[Array, "c *more"], of_rests: Float[Array, "n *more"]
) -> Float[Array, "n *more"]:
    """For each resting coordinate, what belongs to the contact that took it, or its own."""
    extra = of_rests.ndim - mode.owner.ndim  # axes between the first one and the lanes
    owner = mode.owner.reshape(mode.owner.shape[:1] + (1,) * extra + mode.owner.shape[1:])
    taken = jnp.take_along_axis(of_contacts, jnp.broadcast_to(jnp.maximum(owner, 0), of_rests.shape), 0)
    return jnp.where(owner >= 0, taken, of_rests)


def _by_loop(x: Float[Array, "rows loops *more"]) -> Float[Array, "m *more"]:
    """Loop after loop, the rows of each together."""
    return jnp.swapaxes(x, 0, 1).reshape(-1, *x.shape[2:])
