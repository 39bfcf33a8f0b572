"""Mechanisms in absolute coordinates with multipliers: a referee in NumPy and SciPy alone.

Every body has a center of mass c and Euler parameters e; nothing is eliminated. A joint is some scalar products of
arms, u . w = const, where an arm is a vector of a body or leads from a point of one body to a point of another. Their
gradients in the velocities (v, w) of the bodies, w in ground, are written down, and so are second rates. Motion is that
of M a = Q + C^T lambda, C a = -gamma, integrated by DOP853; a joint transmits its own rows of C^T lambda. In the plane
bodies have the columns (vx, vy, wz) alone. Bodies are counted from 0, ground comes last.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.integrate
import scipy.linalg


class Joint(NamedTuple):
    """Two frames, each by its origin and its axes (columns) in its body, and the coordinates at the start."""

    name: str
    kind: str
    a: int
    b: int
    p_a: np.ndarray
    A: np.ndarray
    p_b: np.ndarray
    B: np.ndarray
    start: np.ndarray
    lead: float = 1.0


class Rod(NamedTuple):
    """A distance between two points; held where it has a `length`, else there to be read."""

    name: str
    a: int
    b: int
    p_a: np.ndarray
    p_b: np.ndarray
    length: float | None


class Spring(NamedTuple):
    """On what is called `on`."""

    on: str
    stiffness: float
    free_length: float
    damping: float


class Load(NamedTuple):
    """A force with constant components in ground, at a point of a body."""

    body: int
    point: np.ndarray
    force: np.ndarray


class Parts(NamedTuple):
    """A mechanism: its bodies as masses, centers and inertia tensors about these, in the frames of the bodies; their
    poses at the start (origins, and axes as columns)."""

    planar: bool
    mass: np.ndarray
    center: np.ndarray
    inertia: np.ndarray
    origin: np.ndarray
    axes: np.ndarray
    joints: list[Joint]
    rods: list[Rod]
    springs: list[Spring]
    loads: list[Load]
    gravity: np.ndarray


class Pose(NamedTuple):
    """Of all bodies, ground last: centers of mass and Euler parameters; and coordinates by number, where they are known
    well enough to tell how often angles have turned (else they are within half a turn of the start)."""

    c: np.ndarray
    e: np.ndarray
    x: np.ndarray | None = None

    @property
    def R(self) -> np.ndarray:
        e = self.e / np.linalg.norm(self.e, axis=-1, keepdims=True)
        w, v = e[:, 0], e[:, 1:]
        square = 2 * w**2 - 1
        return square[:, None, None] * np.eye(3) + 2 * v[:, :, None] * v[:, None] + 2 * w[:, None, None] * skew(v)

    def moved(self, d: np.ndarray) -> "Pose":
        """After a small move (translations, rotations in ground)."""
        return Pose(self.c + d[:, :3], times(turn(d[:, 3:]), self.e), self.x)


class Dots(NamedTuple):
    """Scalar products of arms at a pose: their values, gradients in (v, w) of the bodies, and second rates without
    accelerations."""

    value: np.ndarray
    gradient: np.ndarray
    bend: np.ndarray


class Now(NamedTuple):
    """Coordinates and distances by number, their gradients and second rates without accelerations; and the same of the
    constraints."""

    x: np.ndarray
    G: np.ndarray
    x_bend: np.ndarray
    residual: np.ndarray
    C: np.ndarray
    bend: np.ndarray


def skew(x: np.ndarray) -> np.ndarray:
    S = np.zeros((*x.shape, 3))
    S[..., 0, 1], S[..., 0, 2], S[..., 1, 2] = -x[..., 2], x[..., 1], -x[..., 0]
    return S - np.swapaxes(S, -1, -2)


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """np.cross takes longer to look at its arguments than to multiply them."""
    x, y, z = a[..., 0], a[..., 1], a[..., 2]
    u, v, w = b[..., 0], b[..., 1], b[..., 2]
    return np.stack([y * w - z * v, z * u - x * w, x * v - y * u], -1)


def times(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product of quaternions."""
    s, u = a[..., :1], a[..., 1:]
    t, v = b[..., :1], b[..., 1:]
    return np.concatenate([s * t - np.sum(u * v, -1, keepdims=True), s * v + t * u + cross(u, v)], -1)


def turn(x: np.ndarray) -> np.ndarray:
    """The Euler parameters of a rotation vector."""
    angle = np.linalg.norm(x, axis=-1, keepdims=True)
    return np.concatenate([np.cos(angle / 2), np.sinc(angle / (2 * np.pi)) * x / 2], -1)


def parameters(R: np.ndarray) -> np.ndarray:
    """The Euler parameters of a rotation matrix: the eigenvector of a symmetric matrix made of it."""
    K = np.zeros((4, 4))
    K[0, 0], K[1:, 1:] = np.trace(R), R + R.T - np.trace(R) * np.eye(3)
    K[0, 1:] = K[1:, 0] = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    return np.linalg.eigh(K)[1][:, -1]


# the rows of each kind of joint, pairs of arms: d leads from the first frame's origin to the second's, x, y, z are the
# axes of the first frame, X, Y, Z those of the second, and 1, 2, 3 those of ground
_ROWS = {
    False: {
        "revolute": ("d1", "d2", "d3", "zX", "zY"),
        "prismatic": ("dx", "dy", "xY", "yZ", "zX"),
        "cylindrical": ("dx", "dy", "zX", "zY"),
        "screw": ("dx", "dy", "zX", "zY"),  # and one that couples its coordinates
        "universal": ("d1", "d2", "d3", "zZ"),
        "spherical": ("d1", "d2", "d3"),
        "free": (),
    },
    True: {"revolute": ("d1", "d2"), "prismatic": ("dy", "xY"), "pin_slot": ("dy",), "planar": ()},
}
# the coordinates of each kind: a scalar product, or an angle by its sine, its cosine (with a sign), and its axis
_ANGLE = ("Xy", "Xx", 1.0, "z")
_COORDINATES = {
    False: {
        "revolute": {"": _ANGLE},
        "prismatic": {"": "dz"},
        "cylindrical": {".angle": _ANGLE, ".travel": "dz"},
        "screw": {".angle": _ANGLE, "": "dz"},
        "universal": {".angle_a": ("Zx", "Zy", -1.0, "z"), ".angle_b": ("zX", "zY", 1.0, "Z")},
        "spherical": {},
        "free": {".x": "dx", ".y": "dy", ".z": "dz"},
    },
    True: {
        "revolute": {"": _ANGLE},
        "prismatic": {"": "dx"},
        "pin_slot": {".angle": _ANGLE, ".travel": "dx"},
        "planar": {".angle": _ANGLE, ".x": "dx", ".y": "dy"},
    },
}
# which stored number each coordinate is
_SLOT = {".travel": 1, ".angle_b": 1, "planar.x": 1, "planar.y": 2, "free.x": 4, "free.y": 5, "free.z": 6}


class Absolute:
    """A mechanism in absolute coordinates."""

    def __init__(self, parts: Parts):
        self.parts, n = parts, len(parts.mass)
        self.n, self.planar = n, parts.planar
        self.columns = (6 * np.arange(n)[:, None] + ([0, 1, 5] if parts.planar else np.arange(6))).reshape(-1)
        self.center = np.concatenate([parts.center, np.zeros((1, 3))])
        c = np.einsum("bij,bj->bi", parts.axes, parts.center) + parts.origin
        e = np.array([*(parameters(R) for R in parts.axes), [1.0, 0, 0, 0]])
        self.start = Pose(np.concatenate([c, np.zeros((1, 3))]), e)
        self._arms: list[tuple] = []
        self._pairs: list[tuple[int, int, float]] = []
        self.names: list[str] = []
        self._measures: list[tuple] = []
        rows, self._screws, self._held = [], [], []
        self.owner: list[str] = []  # of each row
        for joint in parts.joints:
            arms = self._joint_arms(joint)
            dot = lambda text, arms=arms: self._dot(arms[text[0]], arms[text[1]])
            kinds = _ROWS[parts.planar][joint.kind]
            rows += [dot(text) for text in kinds]
            self.owner += [joint.name] * len(kinds)
            for name, what in _COORDINATES[parts.planar][joint.kind].items():
                around = joint.start[_SLOT.get(f"{joint.kind}{name}", _SLOT.get(name, 0))]
                if isinstance(what, str):
                    self._measure(joint.name + name, "dot", dot(what))
                    continue
                if joint.kind == "screw":
                    around = 2 * np.pi * joint.start[0] / joint.lead
                sine, cosine, sign, axis = what
                own = (joint.a, joint.b), joint.b if axis == "Z" else joint.a, arms[axis]
                self._measure(joint.name + name, "angle", dot(sine), dot(cosine), sign, around, own)
        for rod in parts.rods:
            arm = self._arm((rod.b, 1.0, rod.p_b), (rod.a, 1.0, rod.p_a))
            pair = self._dot(arm, arm)
            self._measure(rod.name, "distance", pair)
            if rod.length is not None:
                rows.append(pair)
                self.owner.append(rod.name)
                self._held.append((len(rows) - 1, rod.length**2))
        self._rows = np.array(rows, dtype=int)
        for joint in parts.joints:
            if joint.kind == "screw":
                angle, travel = (self.names.index(joint.name + x) for x in (".angle", ""))
                self._screws.append((angle, travel, 2 * np.pi / joint.lead))
                self.owner.append(joint.name)
        self._close()

    # arms and their products ------------------------------------------------------------------------------------------

    def _arm(self, to: tuple, since: tuple | None = None) -> int:
        """A vector: R l + alpha c of one body (with l from its center of mass), less that of another."""
        since = (self.n, 0.0, np.zeros(3)) if since is None else since
        local = [np.asarray(x, float) - alpha * self.center[body] for body, alpha, x in (to, since)]
        self._arms.append(((to[0], since[0]), (to[1], since[1]), local))
        return len(self._arms) - 1

    def _joint_arms(self, joint: Joint) -> dict[str, int]:
        arms = {"d": self._arm((joint.b, 1.0, joint.p_b), (joint.a, 1.0, joint.p_a))}
        for k in range(3):
            arms["xyz"[k]] = self._arm((joint.a, 0.0, joint.A[:, k]))
            arms["XYZ"[k]] = self._arm((joint.b, 0.0, joint.B[:, k]))
            arms["123"[k]] = self._arm((self.n, 0.0, np.eye(3)[k]))
        return arms

    def _dot(self, u: int, w: int) -> int:
        self._pairs.append((u, w, 0.0))
        return len(self._pairs) - 1

    def _measure(self, name: str, *what: Any) -> None:
        self.names.append(name)
        self._measures.append(what)

    def _close(self) -> None:
        """All arms and products as arrays."""
        bodies, alphas, locals_ = zip(*self._arms)
        self._body, self._local = np.array(bodies), np.array(locals_)
        self._sign = np.array([1.0, -1.0])
        self._alpha = np.array(alphas) * self._sign
        self._u, self._w = np.array([pair[:2] for pair in self._pairs], dtype=int).T
        where = np.concatenate([self._body[self._u], self._body[self._w]], 1)
        self._onto = (where[..., None] == np.arange(self.n + 1)).astype(float)

    def _dots(self, pose: Pose, V: np.ndarray) -> Dots:
        v, w = V[self._body, :3], V[self._body, 3:]
        L = np.einsum("ksij,ksj->ksi", pose.R[self._body], self._local) * self._sign[:, None]
        U = np.sum(self._alpha[..., None] * pose.c[self._body] + L, 1)
        wL = cross(w, L)
        rate = np.sum(self._alpha[..., None] * v + wL, 1)
        bend = np.sum(cross(w, wL), 1)
        i, j = self._u, self._w
        parts = []
        for own, other in ((i, j), (j, i)):
            push = np.broadcast_to(U[other][:, None], L[own].shape)
            parts.append(np.concatenate([self._alpha[own][..., None] * push, cross(L[own], push)], -1))
        gradient = np.einsum("ksb,ksx->kbx", self._onto, np.concatenate(parts, 1))[:, : self.n]
        dot = lambda a, b: np.sum(a * b, -1)
        bends = dot(bend[i], U[j]) + 2 * dot(rate[i], rate[j]) + dot(U[i], bend[j])
        self._U = U
        return Dots(dot(U[i], U[j]), gradient, bends)

    def at(self, pose: Pose, V: np.ndarray | None = None) -> Now:
        """Coordinates, distances and constraints where the bodies are, and move with V."""
        V = np.zeros((self.n + 1, 6)) if V is None else V
        dots = self._dots(pose, V)
        x, G, bends = [], [], []
        for kind, *what in self._measures:
            if kind == "angle":
                sine, cosine, sign, around, ((a, b), carrier, arm) = what
                around = around if pose.x is None else pose.x[len(x)]
                angle = np.arctan2(dots.value[sine], sign * dots.value[cosine])
                x.append(around + (angle - around + np.pi) % (2 * np.pi) - np.pi)
                row, axis = np.zeros((self.n + 1, 6)), self._U[arm]
                row[b, 3:] += axis
                row[a, 3:] -= axis
                G.append(row[: self.n])
                bends.append((V[b, 3:] - V[a, 3:]) @ np.cross(V[carrier, 3:], axis))
            elif kind == "distance":
                length = np.sqrt(dots.value[what[0]])
                x.append(length)
                G.append(dots.gradient[what[0]] / (2 * length))
                rate = np.sum(G[-1] * V[: self.n])
                bends.append((dots.bend[what[0]] / 2 - rate**2) / length)
            else:
                x.append(dots.value[what[0]])
                G.append(dots.gradient[what[0]])
                bends.append(dots.bend[what[0]])
        x, bends = np.array(x), np.array(bends)
        G = np.array(G).reshape(len(x), -1)[:, self.columns]
        residual, C, gamma = (y[self._rows] for y in dots)
        for row, square in self._held:
            residual[row] -= square
        C = C.reshape(len(self._rows), 6 * self.n)[:, self.columns]
        for angle, travel, factor in self._screws:
            residual = np.append(residual, x[angle] - factor * x[travel])
            C = np.concatenate([C, [G[angle] - factor * G[travel]]])
            gamma = np.append(gamma, bends[angle] - factor * bends[travel])
        return Now(x, G, bends, residual, C, gamma)

    # forces -----------------------------------------------------------------------------------------------------------

    def spread(self, y: np.ndarray) -> np.ndarray:
        """(v, w) of all bodies, ground last, from those columns that they have."""
        full = np.zeros(6 * self.n + 6)
        full[self.columns] = y
        return full.reshape(-1, 6)

    def inertia(self, pose: Pose) -> np.ndarray:
        R = pose.R[: self.n]
        M = np.zeros((self.n, 6, self.n, 6))
        J = R @ self.parts.inertia @ np.swapaxes(R, 1, 2)
        for b in range(self.n):
            M[b, :3, b, :3] = self.parts.mass[b] * np.eye(3)
            M[b, 3:, b, 3:] = J[b]
        M = M.reshape(6 * self.n, 6 * self.n)
        return M[np.ix_(self.columns, self.columns)]

    def tensions(self, now: Now, y: np.ndarray) -> np.ndarray:
        return np.array(
            [
                s.stiffness * (now.x[k] - s.free_length) + s.damping * (now.G[k] @ y)
                for s in self.parts.springs
                for k in [self.names.index(s.on)]
            ]
        )

    def forces(self, pose: Pose, now: Now, y: np.ndarray) -> np.ndarray:
        """All that pushes the bodies, but for the constraints; y are the velocities."""
        V, Q = self.spread(y), np.zeros((self.n + 1, 6))
        R = pose.R
        Q[: self.n, :3] = self.parts.mass[:, None] * self.parts.gravity
        w = V[: self.n, 3:]
        h = np.einsum("bij,bkj,bk->bi", R[: self.n] @ self.parts.inertia, R[: self.n], w)
        Q[: self.n, 3:] = -cross(w, h)
        for load in self.parts.loads:
            s = R[load.body] @ (load.point - self.center[load.body])
            Q[load.body] += np.concatenate([load.force, np.cross(s, load.force)])
        Q = Q[: self.n].reshape(-1)[self.columns]
        for spring, tension in zip(self.parts.springs, self.tensions(now, y)):
            Q = Q - tension * now.G[self.names.index(spring.on)]
        return Q

    def accelerated(
        self, pose: Pose, y: np.ndarray, driven: tuple[list[int], np.ndarray] = ([], np.zeros(0))
    ) -> tuple[np.ndarray, np.ndarray, Now]:
        """Accelerations and multipliers where some coordinates are driven, with accelerations that are given."""
        now, M = self.at(pose, self.spread(y)), self.inertia(pose)
        which, wanted = driven
        C = np.concatenate([now.C, now.G[which]])
        gamma = np.concatenate([now.bend, now.x_bend[which] - wanted])
        m, zero = len(C), np.zeros((len(C), len(C)))
        both = np.linalg.solve(np.block([[M, -C.T], [C, zero]]), np.concatenate([self.forces(pose, now, y), -gamma]))
        return both[: len(both) - m], both[len(both) - m :], now

    def energies(self, pose: Pose, now: Now, y: np.ndarray) -> tuple[float, float]:
        kinetic = y @ self.inertia(pose) @ y / 2
        potential = -np.sum(self.parts.mass[:, None] * self.parts.gravity * pose.c[: self.n])
        for s in self.parts.springs:
            potential += s.stiffness * (now.x[self.names.index(s.on)] - s.free_length) ** 2 / 2
        return float(kinetic), float(potential)

    def lost_power(self, pose: Pose, now: Now, y: np.ndarray) -> float:
        """What dampers take, less what loads give."""
        lost = 0.0
        for s in self.parts.springs:
            lost += s.damping * (now.G[self.names.index(s.on)] @ y) ** 2
        V, R = self.spread(y), pose.R
        for load in self.parts.loads:
            s = R[load.body] @ (load.point - self.center[load.body])
            lost -= load.force @ (V[load.body, :3] + np.cross(V[load.body, 3:], s))
        return lost

    # motion -----------------------------------------------------------------------------------------------------------

    def motion(self, y0: np.ndarray, ts: np.ndarray, tol: float = 1e-12) -> list[tuple[Pose, np.ndarray, float]]:
        """Poses, velocities and the energy that was lost, at some times after the start."""
        n, k, m = self.n, len(self.columns), len(self.names)

        def unpacked(z: np.ndarray) -> tuple[Pose, np.ndarray]:
            c = np.concatenate([z[: 3 * n].reshape(n, 3), np.zeros((1, 3))])
            e = np.concatenate([z[3 * n : 7 * n].reshape(n, 4), [[1.0, 0, 0, 0]]])
            return Pose(c, e, z[7 * n + k : 7 * n + k + m]), z[7 * n : 7 * n + k]

        def rates(t: float, z: np.ndarray) -> np.ndarray:
            pose, y = unpacked(z)
            a, _, now = self.accelerated(pose, y)
            V = self.spread(y)[:n]
            spin = times(np.concatenate([np.zeros((n, 1)), V[:, 3:]], 1), pose.e[:n]) / 2
            lost = self.lost_power(pose, now, y)
            return np.concatenate([V[:, :3].reshape(-1), spin.reshape(-1), a, now.G @ y, [lost]])

        x = self.at(self.start).x
        z = np.concatenate([self.start.c[:n].reshape(-1), self.start.e[:n].reshape(-1), y0, x, [0.0]])
        run = scipy.integrate.solve_ivp(
            rates, (0.0, ts[-1]), z, t_eval=ts, method="DOP853", rtol=max(tol, 3e-14), atol=tol
        )
        if run.status != 0 or run.y.shape[1] != len(ts):
            raise ArithmeticError(f"the referee's integration failed: {run.message}")
        return [(*unpacked(z), float(z[-1])) for z in run.y.T]

    def closed(
        self,
        pose: Pose,
        which: Sequence[int] = (),
        values: np.ndarray | tuple = (),
        steps: int = 30,
    ) -> Pose | None:
        """The nearest pose with all constraints closed and some coordinates as wanted, by Newton's method; None if it
        does not contract."""
        for _ in range(steps):
            now = self.at(pose)
            r = np.concatenate([now.residual, now.x[list(which)] - np.asarray(values, float)])
            rows = np.concatenate([now.C, now.G[list(which)]])
            if not len(r) or np.abs(r).max() < 1e-13:
                return pose
            d = -np.linalg.lstsq(rows, r, rcond=1e-11)[0]
            if np.abs(d).max() > 1.0:
                return None
            pose = pose.moved(self.spread(d))
            if np.abs(d).max() < 1e-14:
                return pose if np.abs(r).max() < 1e-11 else None
        return None

    def free_moves(self, now: Now, which: Sequence[int] = ()) -> np.ndarray:
        """An orthonormal basis of the velocities that the constraints, and coordinates that are held, allow."""
        rows = np.concatenate([now.C, now.G[list(which)]])
        return np.eye(len(self.columns)) if not len(rows) else scipy.linalg.null_space(rows, rcond=1e-9)
