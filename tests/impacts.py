"""Mechanisms with impacts that several tests share, and what follows from a law of impact."""

import jax.numpy as jnp
import numpy as np
from scipy.optimize import brentq

import mbsjax as mbs


FLAT = {"R": 0.05, "e": 0.02, "m": 0.5, "k": 2000.0, "F0": 20.0, "g": 9.81, "omega": 110.0}
TWO_TURNS = 4 * np.pi / 110


def flat_follower(p=FLAT, restitution=0.3, rim=None) -> mbs.Mechanism:
    """An eccentric disc, or a cam with another rim, and a flat-faced follower that a spring presses on."""
    face = mbs.Profile.chain([mbs.Line((-0.2, 0.0), (0.2, 0.0))], closed=False)
    return mbs.Mechanism(
        [
            mbs.Body("cam", mass=1.0, inertia=1.0, profiles={"rim": rim or mbs.eccentric(p["R"], p["e"])}),
            mbs.Body("follower", mass=p["m"], profiles={"face": face}),
        ],
        [
            mbs.Revolute("O", "ground", "cam"),
            mbs.Prismatic("guide", "ground", "follower", axis=(0.0, 1.0), start=0.2),
            mbs.Contact("C", "cam.rim", "follower.face", active=True, restitution=restitution),
        ],
        forces=[mbs.Spring("guide", stiffness=p["k"], free_length=p["R"] - p["e"] - p["F0"] / p["k"])],
        gravity=(0.0, -p["g"]),
    )


def turning(omega=110.0) -> dict:
    """From the lowest lift on."""
    return {"O": mbs.constant_speed(omega, -jnp.pi / 2)}


def two_pendulums(p) -> mbs.Mechanism:
    """Two pendulums with round bobs, side by side."""
    bodies = [
        mbs.Body(name, mass=p[f"m {name}"], center=(0.0, -p[f"l {name}"]), inertia=p[f"J {name}"],
                 profiles={"bob": mbs.Profile.chain([mbs.Circle((0.0, -p[f"l {name}"]), p[f"r {name}"])])})
        for name in ("left", "right")
    ]  # fmt: skip
    return mbs.Mechanism(
        bodies,
        [
            mbs.Revolute("A", "ground", "left"),
            mbs.Revolute("B", "ground", "right", (p["apart"], 0.0)),
            mbs.Contact("C", "left.bob", "right.bob", restitution=p["e"]),
        ],
        gravity=(0.0, -9.81),
    )


PENDULUMS = {
    "m left": 1.0, "l left": 1.0, "J left": 0.02, "r left": 0.1,
    "m right": 1.5, "l right": 0.9, "J right": 0.03, "r right": 0.12,
    "apart": 0.25, "e": 0.8,
}  # fmt: skip


def ball(restitution=1.0, half=1.0) -> mbs.Mechanism:
    """A ball above a floor, `half` to either side, on a vertical guide."""
    floor = mbs.Profile.chain([mbs.Line((half, 0.0), (-half, 0.0))], closed=False)
    return mbs.Mechanism(
        [
            mbs.Body("ground", profiles={"floor": floor}),
            mbs.Body("ball", mass=1.0, profiles={"rim": mbs.disc(0.1)}),
        ],
        [
            mbs.Prismatic("height", "ground", "ball", axis=(0.0, 1.0)),
            mbs.Contact("bounce", "ground.floor", "ball.rim", restitution=restitution),
        ],
        gravity=(0.0, -9.81),
    )


def rebound(c, v):
    """The speed after an impact of Hunt and Crossley's law, in which c = hysteresis / stiffness. From
    m v dv = -k (1 + c v) d^n dd, whatever k, m and n are: c (v + v') = log((1 + c v) / (1 - c v'))."""
    if c == 0:
        return v
    return brentq(lambda u: c * (v + u) - np.log1p(c * v) + np.log1p(-c * u), 1e-3 * v, min(v, (1 - 1e-12) / c))
