"""Programs as their authors see them in an editor. `tests/test_typing.py` lets pyright look at them, which has to find
the lines that are marked, and no others. They are never run."""

# ruff: noqa: B018

import jax
import jax.numpy as jnp
import numpy as np

import mbsjax as mbs


def lift(t):
    return 0.1 * t


def mechanism(p: dict[str, float], x: jax.Array) -> mbs.Mechanism:
    row = [0.0, 1.0]
    rim = mbs.Profile.chain([mbs.Line((1.0, 0.0), (-1.0, 0.0))], closed=False)
    return mbs.Mechanism(
        [
            mbs.Body("crank", mass=p["m"], center=(x[0], 0.0), inertia=0.1, points={"E": row}),
            mbs.Body("slide", mass=np.float64(2.0), inertia=(1, 1, 1), profiles={"rim": rim, "roll": mbs.disc(x[1])}),
            mbs.Body("rod", mass=jnp.array(1), inertia=np.eye(3)),
        ],
        [
            mbs.Revolute("A", "ground", "crank", row, mbs.at(0.0, x[0])),
            mbs.Revolute("B", "crank", "rod", "E", (0.0, 0.0)),
            mbs.Prismatic("P", "ground", "slide", axis=(0.0, 1.0), start=8),
            mbs.Revolute("S", "ground", "rod", jnp.eye(4), start=np.zeros(1)),
            mbs.Gear("G", "crank", "slide", radii=(1.0, p["m"])),
            mbs.Contact("C", "ground.floor", "slide.rim", restitution=x[1], law=mbs.Hertz(1e3)),
        ],
        [mbs.Distance("d", "ground", "slide", None, (0.0, 3.0), value=3), mbs.Offset("h", "ground", "slide", axis=row)],
        forces=[
            mbs.Spring("P", stiffness=lambda x: x**3, free_length=x[0], damping=2),
            mbs.Actuator("P", lift),
            mbs.Actuator("P", 3.0),
            mbs.Load("slide", force=(0.0, -1.0), torque=lambda t, at: at["P"].q),
        ],
        gravity=row,
    )


def correct(mech: mbs.Mechanism, x: jax.Array) -> jax.Array:
    drive = {"A": mbs.constant_speed(2), "P": lift, "S": 1.0}
    motion = mbs.kinematics(mech, drive, np.linspace(0.0, 1.0, 11), estimate={"P": 8.0})
    mbs.kinematics(mech, {"A": lambda t: t}, [0.0, 1.0], estimate=x)
    state = mbs.state(mech, {"P": x[0], "ball": (1.0, 0.0, 0.0, 0.0)}, {"A": 1}, t=np.float32(0.0))
    sol = mbs.simulate(mech, state, x[0], ts=[0.0, 1.0], drive=drive, rtol=1e-6)
    rest = mbs.equilibrium(mech, {"P": 1.0}, fixed={"d": 2.0})
    found = mbs.assemble(mech, fixed={"A": x[0]})
    study = mbs.Study(lambda p: p, {"a": 1.0}, {"a": mbs.Uniform((-0.1, 0.2))}, {"b": lambda p: p["a"]})
    mbs.first_order(study).slopes.tolist()
    mbs.Normal(0.1, shift=0.02), mbs.Normal(sigma=x[0]), mbs.Beta(0.1, a=2, b=np.float64(3.0))
    mbs.Arc((0.0, 0.0), 1.0, 0, jnp.pi), mbs.Circle(x, x[0]), mbs.Arc.between((0, 1), row(), radius=2), mbs.Point(row())
    total = motion["P"].q[-1] + motion["C"].q[-1, 2] + motion.coordinate("P").a[0] + motion.contact("C").gap[0]
    total = total + sol["P"].q[0] + sol.coordinate("P").a[0] + sol.contact("C").force[0] + sol.gauge("d").v[0]
    total = total + sol.reaction("A").force_ground[0, 0] + rest["P"] + found.gauge("d") + rest.contact("C")[2]
    total = total + motion.lane(3).point("crank", "E").v[0, 0] + motion.at(0)["P"] + rest.point("rod", (1.0, 0.0))[0]
    return total + jnp.where(motion.result == mbs.RESULTS.successful, 0.0, 1.0)


def row() -> list[float]:
    return [0.0, 1.0]


def mistaken(mech: mbs.Mechanism, motion: mbs.Motion, sol: mbs.Solution, efforts: mbs.Efforts) -> None:
    mbs.Body("crank", mass="heavy")  # wrong
    mbs.Body(3, mass=1.0)  # wrong
    mbs.Body("crank", center="middle")  # wrong
    mbs.Body("crank", points={"E": "here"})  # wrong
    mbs.Body("crank", profiles={"rim": mbs.Line((0.0, 0.0), (1.0, 0.0))})  # wrong
    mbs.Body("crank", weight=1.0)  # wrong
    mbs.Revolute("A", "ground", "crank", lift)  # wrong
    mbs.Revolute("A", "ground")  # wrong
    mbs.Prismatic("P", "ground", "slide", axis="y")  # wrong
    mbs.Prismatic("P", "ground", "slide", start="8.0")  # wrong
    mbs.Screw("S", "ground", "bob", lead="two")  # wrong
    mbs.Gear("G", "crank", "slide", radii="1:2")  # wrong
    mbs.Contact("C", "cam.rim", "slide.rim", hold="kept")  # wrong
    mbs.Contact("C", "cam.rim", "slide.rim", restitution="half")  # wrong
    mbs.Contact("C", "cam.rim", "slide.rim", law=3.0)  # wrong
    mbs.Distance("d", "ground", "slide", value="far")  # wrong
    mbs.Offset("h", "ground", "slide")  # wrong
    mbs.Spring("P", stiffness="big")  # wrong
    mbs.Spring("P", free_length=lift)  # wrong
    mbs.Spring(3.0, stiffness=1.0)  # wrong
    mbs.Actuator("P", "push")  # wrong
    mbs.Load("slide", force="down")  # wrong
    mbs.Line((0.0, 0.0), "end")  # wrong
    mbs.Line((0.0, 0.0))  # wrong
    mbs.Arc((0.0, 0.0), "large", 0.0, 1.0)  # wrong
    mbs.Circle((0.0, 0.0), (1.0, 2.0))  # wrong
    mbs.Point("corner")  # wrong
    mbs.disc("large")  # wrong
    mbs.constant_speed("fast")  # wrong
    mbs.Normal("0.1")  # wrong
    mbs.Uniform(0.1, shift="left")  # wrong
    mbs.simulate(mech, None, "end")  # wrong
    mbs.simulate(mech, 0.0, 1.0)  # wrong
    mbs.simulate(None, None, 1.0)  # wrong
    mbs.simulate(mech, None, 1.0, steps=3)  # wrong
    mbs.simulate(mech, None, 1.0, ts="all")  # wrong
    mbs.kinematics(mech, {"A": "fast"}, [0.0, 1.0])  # wrong
    mbs.kinematics(mech, {1: lift}, [0.0, 1.0])  # wrong
    mbs.kinematics(mech, lift, [0.0, 1.0])  # wrong
    mbs.kinematics(mech, {"A": lift}, "0 to 1")  # wrong
    mbs.state(mech, {"P": "top"})  # wrong
    mbs.state(mech, t="now")  # wrong
    mbs.assemble(mech, {"P": "top"})  # wrong
    mbs.Match(lambda p: p, "target")  # wrong
    motion["P"].qq  # wrong
    motion.coordinate("P").position  # wrong
    motion.coordinate("P").gap  # wrong
    motion.contact("C").force  # wrong
    sol.contact("C").forces  # wrong
    sol.coordinate("P").force  # wrong
    sol.reaction("A").forces  # wrong
    motion[0]  # wrong
    motion.coordinate(0)  # wrong
    sol["P", "q"]  # wrong
    efforts[1]  # wrong
    motion.lane("first")  # wrong
    motion.at(0.5)  # wrong
    motion.coordinates("P")  # wrong
    motion.point(3)  # wrong
    sol.energy()  # wrong
    mbs.RESULTS.sucessful  # wrong
    mbs.Revolut("A", "ground", "crank")  # wrong
