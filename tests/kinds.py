"""Small mechanisms of every kind, each a function of one number: what `test_grid` goes through."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

import mbsjax as mbs


class Kind(NamedTuple):
    """A mechanism with what its analyses need.

    - `tells`: what it stands for; `mech`: of one number, which is near 1.
    - `drive`: of all its freedoms, for kinematics; `moves`: of some of them, for dynamics.
    - `positions`, `velocities`, `estimate`, `triggers`: where it begins, and what is watched.
    - `names`: what is read; the first is what is differentiated.
    """

    tells: str
    mech: Callable
    names: tuple[str, ...]
    drive: dict
    moves: Any = None
    positions: Any = None
    velocities: Any = None
    estimate: Any = None
    triggers: Callable = lambda p: []


def tree(p):
    """A pendulum."""
    return mbs.Mechanism(
        [mbs.Body("bob", mass=1.0, inertia=0.1, center=jnp.stack([0.5 * p, 0.0 * p]), points={"E": (0.6, 0.0)})],
        [mbs.Revolute("A", "ground", "bob")],
        gravity=(0.0, -9.81),
    )


def loop(p):
    """A four-bar with a gauge, and a spring along it."""
    return mbs.Mechanism(
        [mbs.Body(n, mass=1.0, inertia=0.1, points={"E": (0.5, 0.2)}) for n in ("crank", "coupler", "rocker")],
        [
            mbs.Revolute("A", "ground", "crank"),
            mbs.Revolute("B", "crank", "coupler", jnp.stack([p, 0.0 * p])),
            mbs.Revolute("C", "coupler", "rocker", (3.0, 0.0), (2.0, 0.0)),
            mbs.Revolute("D", "ground", "rocker", (3.0, 0.0)),
        ],
        [mbs.Distance("span", "crank", "rocker", (0.5, 0.0), (1.0, 0.0))],
        forces=[mbs.Spring("span", stiffness=20.0, free_length=2.0)],
        gravity=(0.0, -9.81),
    )


def spatial(p):
    """Two shafts at an angle, with a universal joint between them; the second is out of balance."""
    out = jnp.stack([jnp.cos(0.5 * p), jnp.sin(0.5 * p), 0.0 * p])
    turned = lambda *axes: mbs.frames.from_axis((0, 0, 0), *axes)
    return mbs.Mechanism(
        [
            mbs.Body("first", mass=1.0, inertia=(0.2, 0.1, 0.1)),
            mbs.Body("second", mass=1.0, inertia=(0.2, 0.1, 0.1), center=(0.3, 0.1, 0.0)),
        ],
        [
            mbs.Revolute("A", "ground", "first", (0, 0, 0), (0, 0, 0), axis=(1, 0, 0)),
            mbs.Revolute("B", "ground", "second", turned(out, (0, 0, 1)), turned((1, 0, 0), (0, 0, 1))),
            mbs.Universal("cross", "first", "second", turned((0, 1, 0)), turned((0, 0, 1))),
        ],
        gravity=(0.0, 0.0, -9.81),
    )


def forces(p):
    """A block on a carriage that is driven: a buffer that acts in compression only, and a drag."""
    return mbs.Mechanism(
        [mbs.Body("carriage", mass=1.0), mbs.Body("block", mass=1.0, inertia=0.1, points={"E": (0.1, 0.0)})],
        [mbs.Prismatic("X", "ground", "carriage"), mbs.Prismatic("Y", "carriage", "block", axis=(0.0, 1.0))],
        [mbs.Offset("height", "ground", "block", axis=(0.0, 1.0))],
        forces=[
            mbs.Spring("Y", stiffness=40.0, free_length=0.2, damping=1.0, acts="compression"),
            mbs.Load("block", force=lambda t, at: (0.0, -0.5 * p * at["Y"].v)),
            mbs.Actuator("Y", lambda x, v, t: -2.0 * p * x),
        ],
        gravity=(0.0, -9.81),
    )


def cam(p):
    """A cam, eccentric by a third of a number, and a roller that is kept on it."""
    return mbs.Mechanism(
        [
            mbs.Body("cam", mass=1.0, inertia=0.1, profiles={"rim": mbs.eccentric(1.0, 0.3 * p)}),
            mbs.Body("roller", mass=1.0, inertia=0.1, profiles={"rim": mbs.disc(0.2)}, points={"E": (0.1, 0.0)}),
        ],
        [
            mbs.Revolute("O", "ground", "cam"),
            mbs.Prismatic("Y", "ground", "roller", start=1.6),
            mbs.Contact("C", "cam.rim", "roller.rim", active=True),
        ],
        [mbs.Distance("far", "ground", "roller", (0.0, -1.0))],
        forces=[mbs.Spring("Y", stiffness=30.0)],
    )


def ball(p):
    """A ball on a carriage that is driven: it bounces from the floor, and from a soft ceiling."""
    floor = mbs.Profile.chain([mbs.Line((4.0, 0.0), (-4.0, 0.0))], closed=False)
    ceiling = mbs.Profile.chain([mbs.Line((-4.0, 0.8), (4.0, 0.8))], closed=False)
    return mbs.Mechanism(
        [
            mbs.Body("ground", profiles={"floor": floor, "ceiling": ceiling}),
            mbs.Body("carriage", mass=1.0),
            mbs.Body("ball", mass=1.0, inertia=0.1, profiles={"rim": mbs.disc(0.1)}, points={"E": (0.1, 0.0)}),
        ],
        [
            mbs.Prismatic("X", "ground", "carriage"),
            mbs.Prismatic("Y", "carriage", "ball", axis=(0.0, 1.0)),
            mbs.Contact("hard", "ground.floor", "ball.rim", restitution=0.8 * p),
            mbs.Contact("soft", "ground.ceiling", "ball.rim", law=mbs.KelvinVoigt(500.0, 1.0)),
        ],
        [mbs.Distance("far", "ground", "ball", (0.0, -1.0))],
        gravity=(0.0, -9.81),
    )


def rubbing(p):
    """A block on a spring, in a guide with friction."""
    return mbs.Mechanism(
        [mbs.Body("block", mass=1.0, inertia=0.1, points={"E": (0.1, 0.0)})],
        [mbs.Prismatic("X", "ground", "block", friction=mbs.JointFriction(0.3 * p, 0.4))],
        forces=[mbs.Spring("X", stiffness=40.0)],
        gravity=(0.0, -9.81),
    )


TURN, PUSH = mbs.constant_speed(1.0, 0.5), {"X": mbs.constant_speed(0.5)}
KINDS = {
    "tree": Kind(
        "planar, a tree, no contact",
        tree,
        ("A",),
        {"A": TURN},
        positions={"A": -0.5},
        estimate={"A": -1.0},
    ),
    "loop": Kind(
        "planar, a loop, with a gauge, no contact",
        loop,
        ("D", "A", "span"),
        {"A": TURN},
        positions={"A": 0.5},
        estimate={"B": 0.5, "D": 1.6},
    ),
    "spatial": Kind("spatial, a loop, no contact", spatial, ("B", "A"), {"A": TURN}, positions={"A": 0.5}),
    "forces": Kind(
        "driven, with a gauge, a switch, a trigger and functions of the state",
        forces,
        ("Y", "X", "height"),
        {"X": TURN, "Y": TURN},
        PUSH,
        {"Y": 0.5},
        triggers=lambda p: [mbs.Trigger("low", lambda at: at["Y"].q - 0.3 * p)],
    ),
    "cam": Kind(
        "planar, a rigid contact that is kept, with a gauge",
        cam,
        ("Y", "O", "far", "C"),
        {"O": TURN},
        positions={"O": 0.5},
    ),
    "ball": Kind(
        "driven, a rigid and a compliant contact, with a gauge",
        ball,
        ("Y", "X", "far", "hard", "soft"),
        {"X": TURN, "Y": mbs.constant_speed(-1.0, 0.5)},
        PUSH,
        {"Y": 0.3},
        {"Y": -3.0},
        {"Y": 0.5},
    ),
    "friction": Kind(
        "friction in a guide: it slides, turns and sticks", rubbing, ("X",), {"X": TURN}, positions={"X": 0.5}
    ),
}
