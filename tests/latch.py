"""A latch that blocks a slide, releases it and stops it again: the topology of the trigger mechanism of the thesis
(2.2.2, 4.5), with dimensions of its own, since the data of the thesis are lost."""

import itertools
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

import mbsjax as mbs


class Finger(eqx.Module):
    """The torque on the trigger: it follows an angle, which is pulled at `on` and let go at `off`."""

    angle: Float[Array, ""]
    on: Float[Array, ""]
    off: Float[Array, ""]
    ease: Float[Array, ""]
    stiffness: Float[Array, ""]
    damping: Float[Array, ""]

    def __init__(self, angle=-0.3, on=0.2, off=0.6, ease=0.06, stiffness=2000.0, damping=40.0):
        given = (angle, on, off, ease, stiffness, damping)
        self.angle, self.on, self.off, self.ease, self.stiffness, self.damping = (jnp.asarray(x, float) for x in given)

    def __call__(self, angle: Array, rate: Array, t: Array) -> Array:
        pull = (jnp.tanh((t - self.on) / self.ease) - jnp.tanh((t - self.off) / self.ease)) / 2
        return self.stiffness * (self.angle * pull - angle) - self.damping * rate


DIMENSIONS = {
    "tooth": 1.0,  # how far the teeth reach below the roof
    "nose": 0.3,  # radius of the sear's nose,
    "reach": 5.3,  # and how far it is from the sear's pivot
    "tail": 0.3,  # how far the sear's tail lies below its pivot
    "finger": 0.3,  # radius of the trigger's finger,
    "arm": 2.5,  # and how far it is from the trigger's pivot
    "pivot": 0.92,  # how far the trigger's pivot lies below the slide's roof
    "pin": 0.2,  # radius of the sear's pin
    "hook": 4.3,  # height of the tripping lever's hook
}


def _chain(*points: tuple) -> mbs.Profile:
    return mbs.Profile.chain([mbs.Line(a, b) for a, b in itertools.pairwise(points)], closed=False, ends=False)


BLOCKED = ("C26", "C26 roof", "C24")  # the contacts that are active then


def latch(
    restitution: float = 0.0,
    dimensions: dict = DIMENSIONS,
    friction: float | None = None,
    active: tuple[str, ...] = BLOCKED,
    finger: Any = None,
) -> mbs.Mechanism:
    """Six links: ground (L1), the sear L2, the trigger L3, the tripping lever L4, the plunger L5 on the trigger, and
    the slide L6, which a spring pushes along x. All are loaded by springs, and a `Finger`, or another torque, turns the
    trigger.

    - Block: the sear's nose holds the first tooth of the slide (C26), and is held by the slide's roof (C26 roof). The
      tripping lever leans on the sear's pin (C24).
    - Release: the trigger's finger lifts the sear's tail (C23), the nose goes down and the slide runs. The hook of the
      tripping lever snaps over the pin, and holds the sear down when the trigger is let go (C24 and C24 stem).
    - Stop: the slide's lug presses on the plunger (C56), the plunger turns the tripping lever (C45), its hook lets go
      of the pin, the sear comes up, and its nose stops the second tooth (C26 second).

    C26 and C24 have several places of contact, as in the thesis: each of these is a contact joint of its own. All
    profiles are two lines, or a disc: contacts of one kind, which compiles fast.
    """
    d = dimensions
    first = _chain((-2.0, -d["tooth"]), (0.0, -d["tooth"]), (0.0, 0.0))
    second = _chain((-9.0, -d["tooth"]), (-6.0, -d["tooth"]), (-6.0, 0.0))
    roof = _chain((-6.0, 0.0), (-2.0, 0.0), (1.5, 0.0))
    lug = _chain((5.4, 1.0), (6.4, 0.2), (7.2, 1.0))
    hook = _chain((-0.7, d["hook"]), (-0.2, d["hook"]), (-0.2, 5.2))
    stem = _chain((-0.7, 2.5), (-0.7, 3.5), (-0.7, d["hook"]))
    tail = _chain((0.5, -d["tail"]), (1.5, -d["tail"]), (3.0, -d["tail"]))
    arm = _chain((4.8, 2.0), (4.8, 4.0), (4.8, 5.5))
    nose, pin = mbs.disc(d["nose"], (-d["reach"], 0.0)), mbs.disc(d["pin"], (-3.0, -1.0))
    roller, toe = mbs.disc(0.3, (1.2, 2.0)), mbs.disc(0.25, (0.0, -1.5))

    def contact(name: str, a: str, b: str) -> mbs.Contact:
        return mbs.Contact(name, a, b, active=name in active, restitution=restitution, friction=friction)

    return mbs.Mechanism(
        [
            mbs.Body(
                "L2", mass=0.5, center=(-1.0, 0.0), inertia=1.0, profiles={"nose": nose, "tail": tail, "pin": pin}
            ),
            mbs.Body("L3", mass=0.5, inertia=0.5, profiles={"finger": mbs.disc(d["finger"], (-d["arm"], 0.0))}),
            mbs.Body("L4", mass=0.1, center=(0.0, 2.0), inertia=0.2, profiles={"hook": hook, "stem": stem, "arm": arm}),
            mbs.Body("L5", mass=0.1, inertia=0.1, profiles={"roller": roller, "toe": toe}),
            mbs.Body("L6", mass=1.0, profiles={"first": first, "second": second, "roof": roof, "lug": lug}),
        ],
        [
            mbs.Revolute("R12", "ground", "L2", (5.6, -0.3)),
            mbs.Revolute("R13", "ground", "L3", (10.0, -d["pivot"])),
            mbs.Revolute("R14", "ground", "L4", (2.6, -6.0)),
            mbs.Prismatic("P16", "ground", "L6"),
            mbs.Revolute("R35", "L3", "L5", (-1.5, -0.58)),
            contact("C23", "L2.tail", "L3.finger"),
            contact("C45", "L4.arm", "L5.toe"),
            contact("C56", "L6.lug", "L5.roller"),
            contact("C26", "L6.first", "L2.nose"),
            contact("C26 roof", "L6.roof", "L2.nose"),
            contact("C26 second", "L6.second", "L2.nose"),
            contact("C24", "L4.hook", "L2.pin"),
            contact("C24 stem", "L4.stem", "L2.pin"),
        ],
        [mbs.Angle("plunger", "ground", "L5")],
        forces=[
            mbs.Spring("R12", stiffness=20.0, free_length=-1.0, damping=3.0),
            mbs.Spring("R14", stiffness=10.0, free_length=-1.0, damping=1.0),
            mbs.Spring("P16", stiffness=2.0, free_length=8.0),
            mbs.Spring("plunger", stiffness=20.0, damping=1.0),
            mbs.Actuator("R13", Finger() if finger is None else finger),
        ],
    )


def picture(path: str) -> None:
    """Four stages of the latch, with the contacts that are active and their forces."""
    import jax
    import matplotlib.pyplot as plt
    import numpy as np

    mech = latch()
    sol = mbs.simulate(mech, mbs.state(mech), 2.0, ts=np.linspace(0.0, 2.0, 201), max_steps=1024)
    figure, axes = plt.subplots(2, 2, figsize=(11, 7), layout="constrained")
    colors = dict(zip(mech.links[1:], ("tab:blue", "tab:orange", "tab:green", "tab:red", "0.4")))
    stages = {"block": 0.05, "release": 0.32, "held by the hook": 0.7, "stop": 2.0}
    contacts = {c.name: sol[c.name] for c in mech.contacts}
    for axis, (title, t) in zip(axes.flat, stages.items()):
        i = int(np.argmin(np.abs(np.asarray(sol.ts) - t)))
        at = sol.at(i)
        for body in mech.bodies:
            X = np.asarray(at.pose(body.name))
            for profile in body.profiles.values():
                s = jnp.linspace(0, len(profile.kinds) - 1e-6, 120)
                points = np.asarray(jax.vmap(lambda q, p=profile: p(q).position)(s)) @ X[:2, :2].T + X[:2, 3]
                axis.plot(*points.T, color=colors[body.name], lw=2)
            axis.plot([], [], color=colors[body.name], label=body.name)
        for joint in ("R12", "R13", "R14"):
            frame = mech.joint(joint).frame_a
            axis.plot(frame.x, frame.y, "k^", ms=7)
        for name, contact in contacts.items():
            if bool(contact.active[i]):
                axis.plot(*contact.point[i], "o", color="k", ms=4)
                arrow = np.asarray(contact.normal[i]) * 1.2
                axis.annotate(
                    f"{name}: {float(contact.force[i]):.1f}", np.asarray(contact.point[i]) + arrow, fontsize=7
                )
                axis.quiver(*contact.point[i], *arrow, angles="xy", scale_units="xy", scale=1, width=0.004)
        axis.set(title=f"{title}, t = {float(sol.ts[i]):.2f}", aspect="equal", xlim=(-10, 14), ylim=(-7, 3))
        axis.grid(alpha=0.2)
    axes[0, 0].legend(loc="upper left", fontsize=8, ncols=5)
    figure.savefig(path, dpi=100)


if __name__ == "__main__":
    import sys

    import jax

    jax.config.update("jax_enable_x64", True)
    picture(sys.argv[1])
