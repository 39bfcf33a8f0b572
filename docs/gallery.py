"""Makes the pictures of the gallery: `python docs/gallery.py [name ...]` writes them to docs/gallery/.

Each function below is a mechanism; what it yields are pictures of one motion of it, by name.
"""

import importlib.resources
import pathlib
import sys
import time
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

import mbsjax as mbs
from mbsjax import plots
from mbsjax.demo import FOUR_BAR, SPRUNG, four_bar, lost_contact


FOLDER = pathlib.Path(__file__).parent / "gallery"


def linkage() -> Iterator[tuple[str, object]]:
    """A crank-rocker: its positions, the path of a coupler point, and how the rocker scatters with the dimensions."""
    ts = jnp.linspace(0.0, 2 * jnp.pi, 181)
    turn = jax.jit(lambda p: mbs.kinematics(four_bar(p), {"A": mbs.constant_speed(1.0)}, ts, throw=False))
    nominal = {name: jnp.asarray(value) for name, value in FOUR_BAR.items()}
    motion = turn(nominal)
    yield "four_bar", plots.mechanism(motion, 24, labels=True)
    axes = plots.ghosts(motion, 13, strong=3)
    yield "four_bar_path", plots.path(motion, "coupler", "E", axes=axes)
    yield "four_bar_curves", plots.curves(motion, "D", rates=(0, 1, 2))
    draw = np.random.default_rng(1).normal(size=(len(FOUR_BAR), 200))
    made = {name: value + 0.05 * row for (name, value), row in zip(nominal.items(), draw)}
    yield "four_bar_bands", plots.bands(jax.vmap(turn)(made), "D", nominal=motion, rate=1)


def weak_spring() -> Iterator[tuple[str, object]]:
    """The cam of the thesis 4.4 under a spring that is too weak: the follower is thrown off and comes back."""
    sol = lost_contact(SPRUNG)
    strongest = int(jnp.argmax(sol["C23"].force))
    yield "weak_spring", plots.mechanism(sol, strongest)
    yield "weak_spring_switching", plots.switching(sol, "C23")
    yield "weak_spring_contacts", plots.contacts(sol)
    yield "weak_spring_lift", plots.curves(sol, "guide", against="O")


def geneva() -> Iterator[tuple[str, object]]:
    """A Geneva drive: the pin pushes the wheel by a quarter of a turn, then the lock holds it."""
    parts = mbs.geneva(4, 100.0, 4.0, clearance=0.05)
    mech = mbs.Mechanism(
        [
            mbs.Body("crank", profiles={"pin": parts.pin, "lock": parts.lock}),
            mbs.Body("wheel", profiles={"rim": parts.wheel}),
        ],
        [
            mbs.Revolute("A", "ground", "crank"),
            mbs.Revolute("B", "ground", "wheel", (100.0, 0.0), start=0.75 * np.pi),
            mbs.Contact("drive", "crank.pin", "wheel.rim", hold="push"),
            mbs.Contact("lock", "crank.lock", "wheel.rim", hold="push"),
        ],
    )
    ts = jnp.linspace(0.0, 4 * jnp.pi, 241)
    motion = mbs.kinematics(mech, {"A": mbs.constant_speed(1.0, np.pi)}, ts)
    pushing = int(np.flatnonzero(motion["drive"].active)[5])
    yield "geneva", plots.mechanism(motion, pushing)
    yield "geneva_contacts", plots.contacts(motion)
    yield "geneva_curves", plots.curves(motion, "B", rates=(0, 1))


def cam_design() -> Iterator[tuple[str, object]]:
    """A cam with a roller follower: rise, dwell, fall."""
    quarter = jnp.pi / 2
    lift = mbs.Program(
        [mbs.Rise("cycloidal", quarter, 20.0), mbs.Dwell(quarter), mbs.Fall("mod_sine", 2 * quarter, 20.0)]
    )
    cam = mbs.Cam(lift, mbs.Translating(mbs.Roller(10.0)), 25.0)
    yield "cam", plots.cam(cam, 0.7, units={"length": "mm"})
    yield "cam_svaj", plots.svaj(cam, units={"length": "mm"})
    yield "cam_pressure_angle", plots.pressure_angle(cam)


def spatial() -> Iterator[tuple[str, object]]:
    """A crank and a rocker whose axes cross, with a rod between two balls."""
    mech = mbs.Mechanism(
        [mbs.Body("crank", points={"B": (0.0, 1.0, 0.0)}), mbs.Body("rocker", points={"C": (0.0, 0.0, 2.5)})],
        [
            mbs.Revolute("A", "ground", "crank", (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), axis=(1.0, 0.0, 0.0)),
            mbs.Revolute("D", "ground", "rocker", (2.5, 2.5, 0.0), (0.0, 0.0, 0.0), axis=(0.0, 1.0, 0.0)),
        ],
        [mbs.Distance("rod", "crank", "rocker", (0.0, 1.0, 0.0), (0.0, 0.0, 2.5), value=4.0)],
    )
    motion = mbs.kinematics(mech, {"A": mbs.constant_speed(1.0)}, jnp.linspace(0.0, 2 * jnp.pi, 73))
    yield "spatial", plots.path(motion, "rocker", "C", axes=plots.ghosts(motion, 9))


def answers() -> Iterator[tuple[str, object]]:
    """Examples that come with the package: what answers the question of each."""
    motion = example("wiper").kinematics()
    yield "wiper", plots.path(motion, "second", "tip", axes=plots.ghosts(motion, 7))
    yield "toggle_press", plots.ghosts(example("toggle_press").kinematics(), 4)
    yield "scissor_lift", plots.ghosts(example("scissor_lift").kinematics(), 4)
    motion = example("landing_gear").kinematics()
    yield "landing_gear", plots.path(motion, "leg", "wheel", axes=plots.ghosts(motion, 5))
    motion = example("quick_return").kinematics()
    yield "quick_return", plots.curves(motion, "P", rates=(0, 1))
    motion = example("planetary").kinematics()
    yield "planetary", plots.path(motion, "planet", "mark", axes=plots.ghosts(motion, 5))
    sol = example("over_center").simulate()
    yield "over_center", plots.mechanism(sol, labels=True)
    yield "snap_fit", plots.ghosts(example("snap_fit").simulate(), 6)


def example(name: str) -> mbs.Model:
    with importlib.resources.as_file(importlib.resources.files("mbsjax") / "examples" / f"{name}.toml") as path:
        return mbs.load(path)


def main(names: list[str]) -> int:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    jax.config.update("jax_enable_x64", True)
    FOLDER.mkdir(exist_ok=True)
    start = time.perf_counter()
    makers = {make.__name__: make for make in (linkage, weak_spring, geneva, cam_design, spatial, answers)}
    if set(names) - set(makers):
        raise SystemExit(f"there are {', '.join(makers)}")
    for maker in names or makers:
        for name, axes in makers[maker]():
            plots.save(axes, FOLDER / f"{name}.svg")
            plt.close("all")
            print(f"{time.perf_counter() - start:7.1f} s  {FOLDER.name}/{name}.svg", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
