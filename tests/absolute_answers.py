"""What a mechanism in absolute coordinates (`tests/absolute.py`) answers: coordinates of its joints, what these
transmit, rest and what holds it, small motions about it."""

from typing import NamedTuple

import numpy as np

from tests.absolute import Absolute, Joint, Now, Pose, parameters, times


class Reading(NamedTuple):
    """The stored numbers of a joint, and the velocities and accelerations of its freedoms."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray


def coordinates(model: Absolute, joint: Joint) -> list[int]:
    """The numbers of a joint's own coordinates, in the order in which it stores them. The angle of a screw follows."""
    own = [k for k, name in enumerate(model.names) if name.partition(".")[0] == joint.name]
    return own[1:] if joint.kind == "screw" else own


def reading(model: Absolute, joint: Joint, pose: Pose, now: Now, y: np.ndarray, a: np.ndarray) -> Reading:
    own = coordinates(model, joint)
    told = Reading(now.x[own], now.G[own] @ y, now.G[own] @ a + now.x_bend[own])
    if joint.kind not in ("spherical", "free"):
        return told
    R, V, A = pose.R, model.spread(y)[:, 3:], model.spread(a)[:, 3:]
    first, second = R[joint.a] @ joint.A, R[joint.b] @ joint.B
    w = V[joint.b] - V[joint.a]
    change = A[joint.b] - A[joint.a] - np.cross(V[joint.b], w)
    turned = Reading(parameters(first.T @ second), second.T @ w, second.T @ change)
    return Reading(*(np.concatenate(both) for both in zip(turned, told)))


class Wrench(NamedTuple):
    """What the first body of a joint exerts on the second, at the origin of the second frame, in ground."""

    force: np.ndarray
    torque: np.ndarray


def wrench(
    model: Absolute, joint: Joint, pose: Pose, now: Now, y: np.ndarray, lam: np.ndarray, held: dict[int, float]
) -> Wrench:
    """From the multipliers, springs on its coordinates, and what drives or holds these."""
    push = np.zeros(len(model.columns))
    for row, owner in enumerate(model.owner):
        if owner == joint.name:
            push += lam[row] * now.C[row]
    every = [k for k, name in enumerate(model.names) if name.partition(".")[0] == joint.name]
    for spring, tension in zip(model.parts.springs, model.tensions(now, y)):
        k = model.names.index(spring.on)
        push -= tension * now.G[k] * (k in every)
    for k, effort in held.items():
        push += effort * now.G[k] * (k in every)
    body, sign = (joint.b, 1.0) if joint.b < model.n else (joint.a, -1.0)
    force, moment = np.split(sign * model.spread(push)[body], 2)
    at = pose.c[joint.b] + pose.R[joint.b] @ (joint.p_b - model.center[joint.b])
    return Wrench(force, moment - np.cross(at - pose.c[body], force))


def pose_of(model: Absolute, read: dict[str, np.ndarray]) -> Pose:
    """The poses of all bodies from the stored numbers of the joints, along the first joints that reach them."""
    n = model.n
    c, e, known = np.zeros((n + 1, 3)), np.tile([1.0, 0, 0, 0], (n + 1, 1)), {n}
    while len(known) <= n:
        for joint in model.parts.joints:
            if (joint.a in known) == (joint.b in known):
                continue
            d, T = _phi(model, joint, read[joint.name])
            R = Pose(c, e).R
            if joint.a in known:
                X = R[joint.a] @ joint.A
                o = c[joint.a] + R[joint.a] @ (joint.p_a - model.center[joint.a]) + X @ d
                body, turned = joint.b, X @ T @ joint.B.T
                c[body] = o - turned @ (joint.p_b - model.center[body])
            else:
                X = R[joint.b] @ joint.B @ T.T
                o = c[joint.b] + R[joint.b] @ (joint.p_b - model.center[joint.b]) - X @ d
                body, turned = joint.a, X @ joint.A.T
                c[body] = o - turned @ (joint.p_a - model.center[body])
            e[body] = parameters(turned)
            known.add(body)
    return Pose(c, e)


def _phi(model: Absolute, joint: Joint, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Origin and axes of the second frame, seen from the first."""
    return phi(joint.kind, model.planar, q, joint.lead)


def phi(kind: str, planar: bool, q: np.ndarray, lead: float) -> tuple[np.ndarray, np.ndarray]:
    """Origin and axes of a joint's second frame, seen from the first, from the numbers that it stores."""
    none, keep = np.zeros(3), np.eye(3)
    along = np.eye(3)[0 if planar else 2]
    if kind == "revolute":
        return none, about_z(q[0])
    if kind == "prismatic":
        return q[0] * along, keep
    if kind in ("cylindrical", "pin_slot"):
        return q[1] * along, about_z(q[0])
    if kind == "screw":
        return q[0] * along, about_z(2 * np.pi * q[0] / lead)
    if kind == "planar":
        return np.array([q[1], q[2], 0.0]), about_z(q[0])
    if kind == "universal":
        across = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])
        return none, about_z(q[0]) @ across @ about_z(q[1])
    turned = Pose(np.zeros((1, 3)), np.array([q[:4]])).R[0]
    return (none if kind == "spherical" else np.array(q[4:])), turned


def about_z(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])


class Rest(NamedTuple):
    """Forces at a pose where all stands still: multipliers, what holds coordinates, and what is left unbalanced, the
    largest force or moment in parts of the largest that acts, or of the largest weight or tension."""

    lam: np.ndarray
    held: np.ndarray
    left: float


def at_rest(model: Absolute, pose: Pose, now: Now, which: list[int]) -> Rest:
    Q = model.forces(pose, now, np.zeros(len(model.columns)))
    rows = np.concatenate([now.C, now.G[which]])
    lam = np.linalg.lstsq(rows.T, -Q, rcond=None)[0]
    weights = np.outer(model.parts.mass, model.parts.gravity)
    every = np.concatenate([Q, weights.reshape(-1), model.tensions(now, np.zeros(len(model.columns)))])
    left = np.abs(Q + lam @ rows).max() / np.abs(every).max()
    return Rest(lam[: len(now.C)], lam[len(now.C) :], float(left))


def stiffness(model: Absolute, pose: Pose, which: list[int], rest: Rest, h: float = 2e-4) -> np.ndarray:
    """How forces and constraint forces, with the multipliers held, fall along the free moves: by differences of fourth
    order."""
    Z = model.free_moves(model.at(pose), which)
    still, lam = np.zeros(len(model.columns)), np.concatenate([rest.lam, rest.held])

    def pull(d: np.ndarray) -> np.ndarray:
        there = pose.moved(model.spread(d))
        now = model.at(there)
        Q = model.forces(there, now, still) + lam @ np.concatenate([now.C, now.G[which]])
        return Q

    columns = []
    for z in Z.T:
        f = [pull(k * h * z) for k in (-2, -1, 1, 2)]
        columns.append(-(f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h))
    return Z.T @ np.stack(columns, 1) if columns else np.zeros((0, 0))


def eigenvalues(model: Absolute, pose: Pose, which: list[int], K: np.ndarray) -> np.ndarray:
    """Of small motions about a rest with the stiffness K."""
    now = model.at(pose)
    Z = model.free_moves(now, which)
    D = np.zeros_like(K)
    for s in model.parts.springs:
        row = now.G[model.names.index(s.on)] @ Z
        D = D + s.damping * np.outer(row, row)
    M, n = Z.T @ model.inertia(pose) @ Z, len(K)
    K_M, D_M = (np.linalg.solve(M, x) for x in (K, D))
    return np.linalg.eigvals(np.block([[np.zeros((n, n)), np.eye(n)], [-K_M, -D_M]]))


def turned_apart(a: np.ndarray, b: np.ndarray) -> float:
    """How far two rotations are apart, in radians, by their Euler parameters."""
    both = times(a * np.array([1.0, -1, -1, -1]), b)
    return float(2 * np.arctan2(np.linalg.norm(both[1:]), abs(both[0])))
