"""Random mechanisms: trees of joints, in the plane or in space, closed by rods and further joints, with springs,
dampers and loads. Each is drawn with all bodies in their places, and joints wherever they happen to be in ground, so
that every loop is closed at the start. The same numbers make a `Mechanism` and its referee in absolute coordinates."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

import mbsjax as mbs
from tests.absolute import Absolute, Joint, Load, Parts, Rod, Spring
from tests.absolute_answers import about_z, phi


class Structure(NamedTuple):
    """What is drawn before any number.

    - `planar`; `in_space`: whether a planar one is solved in space, where many of its equations are redundant.
    - `bodies`: how many; ground is number `bodies`.
    - `joints`: kind, first and second body.
    - `distances`: what for (`"rod"`, `"gauge"` or `"spring"`), and between which bodies.
    - `springs`: what they are on, coordinates or distances.
    - `loads`: the bodies that have one.
    """

    planar: bool
    in_space: bool
    bodies: int
    joints: tuple[tuple[str, int, int], ...]
    distances: tuple[tuple[str, int, int], ...]
    springs: tuple[str, ...]
    loads: tuple[int, ...]

    @property
    def joint_names(self) -> list[str]:
        return [f"j{k}" for k in range(len(self.joints))]

    @property
    def distance_names(self) -> list[str]:
        return [f"{role}{k}" for k, (role, *_) in enumerate(self.distances)]

    @property
    def rows(self) -> int:
        """How many equations hold it."""
        loops = sum(_HOLDS[self.planar][kind] for kind, *_ in self.joints)
        return loops + sum(role == "rod" for role, *_ in self.distances)

    @property
    def freedom(self) -> int:
        return (3 if self.planar else 6) * self.bodies - self.rows


Numbers = dict[str, np.ndarray]

_HOLDS = {
    True: {"revolute": 2, "prismatic": 2, "pin_slot": 1, "planar": 0},
    False: dict(revolute=5, prismatic=5, screw=5, cylindrical=4, universal=4, spherical=3, free=0),
}
# how often each kind of joint is drawn: in the tree, and to close a loop ("rod" is a distance that is held)
_TREE = {
    True: {"revolute": 0.6, "prismatic": 0.25, "pin_slot": 0.08, "planar": 0.07},
    False: dict(revolute=0.27, prismatic=0.13, screw=0.06, cylindrical=0.12, universal=0.14, spherical=0.18, free=0.1),
}
_CHORD = {
    True: {"rod": 0.55, "revolute": 0.25, "prismatic": 0.1, "pin_slot": 0.1},
    False: dict(rod=0.6, spherical=0.16, universal=0.08, cylindrical=0.06, revolute=0.06, screw=0.04),
}
_STORED = {"cylindrical": 2, "pin_slot": 2, "universal": 2, "planar": 3, "spherical": 4, "free": 7}
_TRAVELS = {
    "prismatic": ("",), "screw": ("",), "cylindrical": (".travel",), "pin_slot": (".travel",), "planar": (".x", ".y"),
    "free": (".x", ".y", ".z"),
}  # fmt: skip
_ANGLES = {
    "revolute": ("",), "cylindrical": (".angle",), "pin_slot": (".angle",), "planar": (".angle",),
    "universal": (".angle_a", ".angle_b"),
}  # fmt: skip


def drawn_structure(seed: int, planar: bool | None = None) -> Structure:
    """One of endlessly many structures, of those that are still free to move."""
    rng = np.random.default_rng([seed, 0])
    planar = bool(rng.random() < 0.5) if planar is None else planar
    n = int(rng.integers(1, 6 if planar else 4))
    pick = lambda table: str(rng.choice(list(table), p=np.array([*table.values()]) / sum(table.values())))
    flip = lambda *ends: ends[::-1] if rng.random() < 0.3 else ends
    other = lambda: [int(x) for x in rng.choice(n + 1, 2, replace=False)]
    joints, distances = [], []
    for b in range(n):
        parent = int(rng.integers(-1, b))
        joints.append((pick(_TREE[planar]), *flip(n if parent < 0 else parent, b)))
    found = Structure(planar, False, n, tuple(joints), (), (), ())
    least = int(rng.choice([1, 1, 2, 3]))
    for _ in range(int(rng.integers(0, 4))):
        kind, (a, b) = pick(_CHORD[planar]), other()
        closed = (
            found._replace(distances=(*found.distances, ("rod", a, b)))
            if kind == "rod"
            else found._replace(joints=(*found.joints, (kind, a, b)))
        )
        if closed.freedom >= least and _has_numbers(closed):
            found = closed
    distances, springs = list(found.distances), []
    for k, (kind, a, b) in enumerate(found.joints):
        springs += [f"j{k}{x}" for x in _TRAVELS.get(kind, ())]
        springs += [f"j{k}{x}" for x in _ANGLES.get(kind, ()) if rng.random() < 0.3]
        if kind in ("spherical", "free"):  # else it may turn about the vertical as it likes
            distances.append(("spring", a, b))
            distances += [("gauge", a, b)] * 3
    distances += [("spring", *other()) for _ in range(int(rng.integers(0, 3)))]
    found = found._replace(distances=tuple(distances))
    springs += [name for name in found.distance_names if name.startswith("spring")]
    loads = tuple(int(b) for b in np.flatnonzero(rng.random(n) < 0.15))
    in_space = planar and rng.random() < 0.15
    return found._replace(in_space=in_space, springs=tuple(springs), loads=loads)


def drawn_numbers(structure: Structure, seed: int, attempts: int = 1000) -> Numbers:
    """Numbers of a structure whose equations are independent at the start."""
    for attempt in range(attempts):
        rng = np.random.default_rng([seed, 1, attempt])
        numbers = _numbers(structure, rng)
        model = referee(structure, numbers)
        C = model.at(model.start).C
        C = C / np.linalg.norm(C, axis=1, keepdims=True)
        if not len(C) or np.linalg.svd(C, compute_uv=False)[-1] > 0.1:
            return numbers
    raise ValueError(f"no numbers were found for {structure}: its equations depend on each other")


def _has_numbers(structure: Structure) -> bool:
    """Whether its equations are independent for one of some draws."""
    try:
        drawn_numbers(structure, 0, 12)
    except ValueError:
        return False
    return True


def _numbers(structure: Structure, rng: np.random.Generator) -> Numbers:
    planar, n, J, K = structure.planar, structure.bodies, len(structure.joints), len(structure.distances)
    flat = np.array([1.0, 1.0, 0.0]) if planar else np.ones(3)
    place = lambda *size: rng.uniform(-1, 1, (*size, 3)) * flat
    turned = lambda: about_z(rng.uniform(-3, 3)) if planar else np.linalg.qr(rng.normal(size=(3, 3)))[0]
    origin = np.concatenate([place(n), np.zeros((1, 3))])
    axes = np.stack([*(_right_handed(turned()) for _ in range(n)), np.eye(3)])
    local = lambda body, x: axes[body].T @ (x - origin[body])
    lead = rng.uniform(1.0, 3.0, J) * rng.choice([-1, 1], J)
    frames: dict[str, list] = {"p_a": [], "A": [], "p_b": [], "B": []}
    start = []
    for k, (kind, a, b) in enumerate(structure.joints):
        q = rng.uniform(-0.8, 0.8, _STORED.get(kind, 1))
        if kind in ("spherical", "free"):
            q[:4] = rng.normal(size=4)
            q[:4] /= np.linalg.norm(q[:4])
        o, X = place(), _right_handed(turned())
        d, T = phi(kind, planar, q, lead[k])
        frames["p_a"].append(local(a, o))
        frames["A"].append(axes[a].T @ X)
        frames["p_b"].append(local(b, o + X @ d))
        frames["B"].append(axes[b].T @ X @ T)
        start.append(q)
    ends, points = [(a, b) for _, a, b in structure.distances], []
    for a, b in ends:
        first = place()
        while np.linalg.norm((second := place()) - first) < 0.4:
            pass
        points.append((local(a, first), local(b, second), np.linalg.norm(second - first)))
    moments = rng.uniform(0.05, 0.3, (n, 3))
    moments = moments.sum(1, keepdims=True) - moments  # as the three of a body are
    turns = np.stack([turned() for _ in range(n)])
    stiff, free, damped = [], [], []
    places = dict(zip(structure.distance_names, [p[2] for p in points]))
    for on in structure.springs:
        travel = on in places or on.partition(".")[2] in ("travel", "x", "y", "z") or _is_slide(structure, on)
        x = places[on] if on in places else _at_start(structure, start, on)
        stiff.append(rng.uniform(15.0, 80.0) if travel else rng.uniform(1.0, 12.0))
        free.append(x * rng.uniform(0.6, 1.3) if on in places else x + rng.uniform(-0.5, 0.5))
        damped.append(rng.uniform(0.0, 2.0) * (rng.random() < 0.6))
    way = place()
    return {
        "mass": rng.uniform(0.5, 3.0, n),
        "center": place(n) / 2,
        "inertia": turns @ (moments[:, :, None] * np.eye(3)) @ np.swapaxes(turns, 1, 2),
        "origin": origin[:n],
        "axes": axes[:n],
        **{name: np.array(x) for name, x in frames.items()},
        "lead": lead,
        "start": np.concatenate(start),
        "point_a": np.reshape([p[0] for p in points], (K, 3)),
        "point_b": np.reshape([p[1] for p in points], (K, 3)),
        "length": np.array([p[2] for p in points]),
        "stiffness": np.array(stiff),
        "free_length": np.array(free),
        "damping": np.array(damped),
        "load_point": place(len(structure.loads)),
        "load": 6 * place(len(structure.loads)),
        "gravity": 9.81 * way / np.linalg.norm(way),
    }


def _right_handed(R: np.ndarray) -> np.ndarray:
    return R * np.array([1.0, 1.0, np.sign(np.linalg.det(R))])


def _is_slide(structure: Structure, on: str) -> bool:
    return structure.joints[int(on.partition(".")[0][1:])][0] in ("prismatic", "screw") and "." not in on


def _starts(structure: Structure, start: Any) -> list[Any]:
    """The stored numbers of each joint."""
    ends = np.cumsum([_STORED.get(kind, 1) for kind, *_ in structure.joints])
    return [start[end - _STORED.get(kind, 1) : end] for end, (kind, *_) in zip(ends, structure.joints)]


def _at_start(structure: Structure, start: list[np.ndarray], on: str) -> float:
    joint, _, coordinate = on.partition(".")
    k = int(joint[1:])
    kind = structure.joints[k][0]
    names = {
        "cylindrical": ("angle", "travel"), "pin_slot": ("angle", "travel"), "universal": ("angle_a", "angle_b"),
        "planar": ("angle", "x", "y"), "free": ("e0", "e1", "e2", "e3", "x", "y", "z"),
    }  # fmt: skip
    return start[k][names[kind].index(coordinate) if coordinate else 0]


def referee(structure: Structure, numbers: Numbers) -> Absolute:
    """The mechanism in absolute coordinates."""
    x, starts = numbers, _starts(structure, numbers["start"])
    joints = [
        Joint(name, *what, x["p_a"][k], x["A"][k], x["p_b"][k], x["B"][k], starts[k], float(x["lead"][k]))
        for k, (name, what) in enumerate(zip(structure.joint_names, structure.joints))
    ]
    rods = [
        Rod(name, a, b, x["point_a"][k], x["point_b"][k], float(x["length"][k]) if role == "rod" else None)
        for k, (name, (role, a, b)) in enumerate(zip(structure.distance_names, structure.distances))
    ]
    springs = [
        Spring(on, *(float(x[name][k]) for name in ("stiffness", "free_length", "damping")))
        for k, on in enumerate(structure.springs)
    ]
    loads = [Load(b, x["load_point"][k], x["load"][k]) for k, b in enumerate(structure.loads)]
    own = [x[name] for name in ("mass", "center", "inertia", "origin", "axes")]
    return Absolute(Parts(structure.planar, *own, joints, rods, springs, loads, x["gravity"]))


_MAKERS = {
    "revolute": mbs.Revolute, "prismatic": mbs.Prismatic, "pin_slot": mbs.PinSlot, "planar": mbs.Planar,
    "screw": mbs.Screw, "cylindrical": mbs.Cylindrical, "universal": mbs.Universal, "spherical": mbs.Spherical,
    "free": mbs.Free,
}  # fmt: skip


def mechanism(structure: Structure, numbers: Any) -> mbs.Mechanism:
    """The mechanism; its numbers may be traced."""
    x, dim = numbers, 2 if structure.planar else 3
    names = [*(f"b{k}" for k in range(structure.bodies)), "ground"]
    xp = np if all(isinstance(value, np.ndarray) for value in numbers.values()) else jnp
    inertia = lambda k: x["inertia"][k, 2, 2] if structure.planar else x["inertia"][k]
    bodies = [
        mbs.Body(names[k], mass=x["mass"][k], center=x["center"][k], inertia=inertia(k))
        for k in range(structure.bodies)
    ]

    def frame(p: Any, R: Any) -> Any:
        if structure.planar:
            return mbs.at(p[0], p[1], xp.arctan2(R[1, 0], R[0, 0]))
        return xp.concatenate([xp.concatenate([R, p[:, None]], 1), np.array([[0.0, 0, 0, 1]])])

    joints, starts = [], _starts(structure, x["start"])
    for k, (name, (kind, a, b)) in enumerate(zip(structure.joint_names, structure.joints)):
        more = {"lead": x["lead"][k]} if kind == "screw" else {}
        ends = frame(x["p_a"][k], x["A"][k]), frame(x["p_b"][k], x["B"][k])
        joints.append(_MAKERS[kind](name, names[a], names[b], *ends, start=starts[k], **more))
    points = zip(x["point_a"], x["point_b"])
    distances = {
        name: mbs.Distance(name, names[a], names[b], first[:dim], second[:dim], value=length if role == "rod" else None)
        for name, (role, a, b), (first, second), length in zip(
            structure.distance_names, structure.distances, points, x["length"]
        )
    }
    springs = [
        mbs.Spring(
            distances.get(on, on), stiffness=x["stiffness"][k], free_length=x["free_length"][k],
            damping=x["damping"][k], name=f"on {on}",
        )
        for k, on in enumerate(structure.springs)
    ]  # fmt: skip
    loads = [
        mbs.Load(names[b], force=x["load"][k, :dim], point=x["load_point"][k, :dim])
        for k, b in enumerate(structure.loads)
    ]
    gauges = [gauge for name, gauge in distances.items() if not name.startswith("spring")]
    space = {"planar": False} if structure.in_space else {}
    return mbs.Mechanism(bodies, joints, gauges, forces=[*springs, *loads], gravity=x["gravity"][:dim], **space)


def candidates(structure: Structure) -> list[str]:
    """What can be held or driven: coordinates that are stored as they are, and gauges."""
    own = [
        f"j{k}{x}"
        for k, (kind, *_) in enumerate(structure.joints)
        for x in (*_ANGLES.get(kind, ()), *_TRAVELS.get(kind, ()))
    ]
    return own + [name for name in structure.distance_names if name.startswith("gauge")]


def independent(model: Absolute, names: list[str], rng: np.random.Generator) -> list[str]:
    """As many of them, in random order, as can be held or driven together."""
    now = model.at(model.start)
    Z, kept, rows = model.free_moves(now), [], []
    for name in rng.permutation(names).tolist():
        row = now.G[model.names.index(name)] @ Z
        row = row / max(np.linalg.norm(row), 1e-12)
        if len(rows) < Z.shape[1] and np.linalg.svd(np.array([*rows, row]), compute_uv=False)[-1] > 0.15:
            kept.append(name)
            rows.append(row)
    return kept
