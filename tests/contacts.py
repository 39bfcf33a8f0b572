"""Mechanisms with contacts that several tests share."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import mbsjax as mbs
from mbsjax.demo import CAM, cam_follower


T3 = CAM


def t3_cam(p=None) -> mbs.Mechanism:
    """The cam-follower of the thesis 4.4. Appendix C and D.3 tell the dimensions."""
    return cam_follower(T3 if p is None else p)


def geneva_drive(slots=4, clearance=0.05) -> mbs.Mechanism:
    """Crank at the origin, wheel at (100, 0). The wheel is held by nothing but its locking disc."""
    parts = mbs.geneva(slots, 100.0, 4.0, clearance=clearance)
    return mbs.Mechanism(
        [
            mbs.Body("crank", profiles={"pin": parts.pin, "lock": parts.lock}),
            mbs.Body("wheel", profiles={"rim": parts.wheel}),
        ],
        [
            mbs.Revolute("A", "ground", "crank"),
            mbs.Revolute("B", "ground", "wheel", (100.0, 0.0), start=np.pi - np.pi / slots),
            mbs.Contact("drive", "crank.pin", "wheel.rim", hold="push"),
            mbs.Contact("lock", "crank.lock", "wheel.rim", hold="push"),
        ],
    )


class Swing(eqx.Module):
    """To and fro, between 0 and twice the amplitude."""

    amplitude: jax.Array

    def __call__(self, t):
        return self.amplitude * (1 - jnp.cos(t))


def ratchet(teeth=12) -> mbs.Mechanism:
    """A wheel, turned by a pawl on a swinging arm, held by another. Springs press the pawls on (seat); their noses push
    the steep flanks (catch)."""
    wheel, pawl = mbs.ratchet_wheel(teeth, 50.0, 42.0, undercut=0.15), mbs.pawl(30.0, 1.5, 3.0)
    backs = [e for k in range(teeth) for e in (4 * k + 1, 4 * k + 2)]
    flanks = [4 * k for k in range(teeth)]
    away = np.pi + 0.3

    def pivot(angle):
        return 60 * np.cos(angle) + 30 * np.sin(angle), 60 * np.sin(angle) - 30 * np.cos(angle)

    def pair(body, coordinate):
        sides = ("wheel.rim", f"{body}.nose")
        return [
            mbs.Contact(f"seat {body}", *sides, active=True, hold="press", moves=coordinate, elements_a=backs),
            mbs.Contact(f"catch {body}", *sides, hold="push", moves="W", elements_a=flanks),
        ]

    return mbs.Mechanism(
        [
            mbs.Body("wheel", profiles={"rim": wheel}),
            mbs.Body("arm"),
            mbs.Body("driver", profiles={"nose": pawl}),
            mbs.Body("holder", profiles={"nose": pawl}),
        ],
        [
            mbs.Revolute("W", "ground", "wheel"),
            mbs.Revolute("A", "ground", "arm"),
            mbs.Revolute("D", "arm", "driver", pivot(0.0), start=np.pi / 2 + 0.1),
            mbs.Revolute("H", "ground", "holder", pivot(away), start=np.pi / 2 + away + 0.1),
            *pair("driver", "D"),
            *pair("holder", "H"),
        ],
    )


T7 = {"crank": 2.0, "rod": 4.0, "corner": -0.7, "low": -2.2, "coupler": 4.0}


def crank_slider_and_four_bar(p: dict = T7) -> mbs.Mechanism:
    """The mechanism of the thesis 2.6: a slider whose nose pushes link L5 of a four-bar. The shape of L5 is lost; here
    it is arc, corner, arc."""
    nose = mbs.Profile.chain([mbs.Arc((0.0, 0.0), 1.0, -jnp.pi / 2, jnp.pi)], closed=False, ends=False)
    top, corner, tip = (-0.1, -0.4), (p["corner"], p["low"]), (-0.1, -3.6)
    flank = mbs.Profile.chain(
        [mbs.Arc.between(top, corner, radius=6.0), mbs.Arc.between(corner, tip, radius=6.0)],
        closed=False,
        ends=False,
    )
    return mbs.Mechanism(
        [
            mbs.Body("L2"),
            mbs.Body("L3"),
            mbs.Body("L4", profiles={"nose": nose}),
            mbs.Body("L5", profiles={"flank": flank}),
            mbs.Body("L6"),
            mbs.Body("L7"),
        ],
        [
            mbs.Revolute("R12", "ground", "L2", start=np.pi),
            mbs.Revolute("R23", "L2", "L3", (p["crank"], 0.0), start=-np.pi),
            mbs.Revolute("R34", "L3", "L4", (p["rod"], 0.0)),
            mbs.Prismatic("P14", "ground", "L4", start=2.0),
            mbs.Revolute("R15", "ground", "L5", (6.6, 2.2), start=-0.3),
            mbs.Revolute("R56", "L5", "L6", (0.0, 2.5), start=0.3),
            mbs.Revolute("R67", "L6", "L7", (p["coupler"], 0.0), (2.5, 0.0)),
            mbs.Revolute("R17", "ground", "L7", (10.6, 2.2), start=1.27),
            mbs.Contact("C45", "L4.nose", "L5.flank"),
        ],
    )


def heavy_crank_slider(restitution: float, p: dict = T7) -> mbs.Mechanism:
    """2.6 with the masses of 3.7. What presses the four-bar on the slider is not told; here, a spring and a damper do
    so, which also bring it back after it has been thrown off."""
    plain = crank_slider_and_four_bar(p)
    masses = {"L2": 2.5, "L3": 5.0, "L4": 1.0, "L5": 2.5, "L6": 5.0, "L7": 2.5}
    inertias = {"L2": 1e3, "L3": 20.0, "L4": 1.0, "L5": 15.0, "L6": 20.0, "L7": 15.0}
    centers = {"L2": 1.0, "L3": 2.0, "L4": 0.0, "L5": 0.0, "L6": 2.0, "L7": 1.25}
    profiles = {body.name: body.profiles for body in plain.bodies}
    return mbs.Mechanism(
        [
            mbs.Body(k, mass=masses[k], inertia=inertias[k], center=(centers[k], 0.0), profiles=profiles[k])
            for k in masses
        ],
        [*plain.joints, mbs.Contact("C45", "L4.nose", "L5.flank", restitution=restitution)],
        forces=[mbs.Spring("R15", stiffness=1e4, free_length=-0.58, damping=1e3)],
        gravity=(0.0, -9.81),
    )


def kinds(motion: mbs.Motion) -> list[tuple[str, str]]:
    """What happened, and to which contact."""
    assert motion.events is not None
    return [(e.kind, e.contact) for e in motion.events.list(motion.mech)]
