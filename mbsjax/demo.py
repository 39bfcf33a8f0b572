"""The main job in one go: `python -m mbsjax.demo` takes the four-bar of the examples through its motion and its
tolerances, and simulates the cam of the thesis with a spring that is too weak to keep its follower on it.

Prints a table for each and leaves a report, a page to play the cam, and pictures under `out/`.
"""

import importlib.resources
import itertools
import pathlib
import sys
import time

import jax.numpy as jnp

import mbsjax as mbs

from ._programs.prepare import prepare


def four_bar(p: dict) -> mbs.Mechanism:
    """A crank-rocker with a point of interest on its coupler."""
    return mbs.Mechanism(
        [mbs.Body("crank"), mbs.Body("coupler", points={"E": (p["coupler"] / 2, p["height"])}), mbs.Body("rocker")],
        [
            mbs.Revolute("A", "ground", "crank"),
            mbs.Revolute("B", "crank", "coupler", (p["crank"], 0.0)),
            mbs.Revolute("C", "coupler", "rocker", (p["coupler"], 0.0), (p["rocker"], 0.0)),
            mbs.Revolute("D", "ground", "rocker", (p["ground"], 0.0), start=1.5),
        ],
    )


def slider_crank(p: dict) -> mbs.Mechanism:
    return mbs.Mechanism(
        [mbs.Body("crank"), mbs.Body("rod", points={"E": (p["rod"] / 2, 0.0)}), mbs.Body("slider")],
        [
            mbs.Revolute("A", "ground", "crank"),
            mbs.Revolute("B", "crank", "rod", (p["crank"], 0.0)),
            mbs.Revolute("C", "rod", "slider", (p["rod"], 0.0)),
            mbs.Prismatic("P", "ground", "slider", start=p["crank"] + p["rod"]),
        ],
    )


def cam_follower(p: dict) -> mbs.Mechanism:
    """The cam of the thesis 4.4, an arc and three lines with corners between them, and a roller whose center moves on
    x. For dynamics, a mass m of the follower and a spring k that presses it on, compressed by c where the roller's
    center would be on the cam's."""
    e, R, l, w = (p[k] for k in ("e", "R", "l", "w"))  # noqa: E741
    corners = [(e, R), (-l, w), (-l, -w), (e, -R)]
    arc = mbs.Arc.between(corners[3], corners[0], (e, 0.0))
    rim = mbs.Profile.chain([arc, *(mbs.Line(a, b) for a, b in itertools.pairwise(corners))])
    return mbs.Mechanism(
        [
            mbs.Body("cam", profiles={"rim": rim}),
            mbs.Body("follower", mass=p.get("m", 0.0), profiles={"roller": mbs.disc(p["r"])}),
        ],
        [
            mbs.Revolute("O", "ground", "cam"),
            mbs.Prismatic("guide", "ground", "follower", start=45.0),
            mbs.Contact("C23", "cam.rim", "follower.roller", active=True, restitution=p.get("restitution", 0.0)),
        ],
        forces=[mbs.Spring("guide", stiffness=p["k"], free_length=-p["c"])] if "k" in p else [],
    )


CAM = {"e": 15.0, "R": 20.0, "l": 35.0, "w": 10.0, "r": 5.0}
SPRUNG = {**CAM, "m": 0.15, "k": 0.35, "c": 5.0, "restitution": 0.2}  # with k = 1.5 the contact is kept
FOUR_BAR = {"crank": 1.0, "coupler": 3.0, "rocker": 2.5, "ground": 3.5, "height": 1.0}
SLIDER_CRANK = {"crank": 1.0, "rod": 3.0}


def drive() -> dict:
    return {"A": mbs.constant_speed(1.0)}


def lost_contact(p: dict, outputs: int = 721) -> mbs.Solution:
    """One turn of the cam at 0.5 rad/s under a spring that is too weak."""
    drive = {"O": mbs.constant_speed(-0.5)}
    mech, t1 = cam_follower(p), 4 * jnp.pi
    return mbs.simulate(
        mech, mbs.state(mech, drive=drive, throw=False), t1, ts=jnp.linspace(0.0, t1, outputs), drive=drive,
        rest_speed=1e-2, max_steps=512, max_events=48, throw=False,
    )  # fmt: skip


def event_table(sol: mbs.Solution) -> None:
    print(f"\nThe thesis' cam (4.4) with a weak spring, k = {SPRUNG['k']}: the follower is thrown off and comes back\n")
    print(f"  {'t':>12}{'lift':>12}{'gap rate before':>17}{'after':>12}{'impulse':>12}   event")
    log = sol.events
    for i, event in enumerate(log.list(sol.mech)):
        row = (log.q[i, 1], log.speed[i, 0], log.speed[i, 1], log.impulse[i, 0])
        numbers = "".join(f"{float(x) + 0.0:{w}.6f}" for x, w in zip(row, (12, 17, 12, 12)))
        where = f" {event.before[0][1]} -> {event.after[0][1]}" if event.kind == "transition" else ""
        print(f"  {event.t:12.6f}{numbers}   {event.kind}{where}")
    contact = sol["C23"]
    assert isinstance(contact, mbs.ContactForce)
    least = float(jnp.min(contact.gap)), float(jnp.min(contact.force))
    print(f"  {int(sol.stats.steps)} steps; smallest gap {least[0]:.1e}, smallest force {least[1]:.1e}")


def motion_table(title: str, motion: mbs.Motion) -> None:
    print(f"\n{title}: rocker angle D over one turn of the crank\n{motion.mech}\n")
    print(f"  {'crank [deg]':>12}{'D':>14}{'rate':>14}{'second rate':>14}{'E x':>12}{'E y':>12}")
    track, point = motion["D"], motion.point("coupler", "E").q
    for i in range(0, len(motion.ts), 60):
        row = (track.q[i], track.v[i], track.a[i], *point[i])
        print(
            f"  {jnp.rad2deg(motion['A'].q[i]):12.0f}"
            + "".join(f"{x:{w}.6f}" for x, w in zip(row, (14, 14, 14, 12, 12)))
        )
    print(f"  largest loop residual {float(motion.residual.max()):.1e}")


def pictures(folder: pathlib.Path, motion: mbs.Motion, sol: mbs.Solution) -> list[pathlib.Path]:
    import matplotlib

    matplotlib.use("Agg")
    from mbsjax import plots

    linkage = plots.path(motion, "coupler", "E", axes=plots.ghosts(motion, 12))
    drawn = {
        "four_bar": linkage,
        "cam": plots.mechanism(sol, 150),
        "contact_loss": plots.switching(sol, "C23")[0],
        "contacts": plots.contacts(sol),
    }
    paths = [folder / f"{name}.png" for name in drawn]
    for path, axes in zip(paths, drawn.values()):
        plots.save(axes, path)
    return paths


def waiting(what: str) -> None:
    """Tells what is being waited for."""
    print(f"\n... {what}", flush=True)


def main() -> int:
    cache = pathlib.Path(".cache") / "jax"
    prepare(cache)
    start = time.perf_counter()
    first = "" if cache.exists() else f"; programs are compiled, and kept in {cache} for the next time"
    folder = pathlib.Path("out")
    folder.mkdir(exist_ok=True)
    file = importlib.resources.files("mbsjax") / "examples" / "four_bar.toml"
    model = mbs.loads(file.read_text(encoding="utf-8"), source="four_bar.toml")
    waiting(f"motion of the four-bar{first}")
    motion = model.kinematics()
    motion_table(model.title, motion)
    print(f"  first result after {time.perf_counter() - start:.1f} s", flush=True)

    waiting(f"tolerances of the four-bar{first}")
    report = mbs.tolerance(model.study(), second=False, worst=False)
    print(f"\n{report['contributors of swing']}", flush=True)

    waiting(f"simulation of the cam{first}")
    sol = lost_contact(SPRUNG)
    event_table(sol)

    waiting("report, viewer and pictures")
    written = [mbs.view(sol, title="Cam of the thesis 4.4 with a weak spring").save(folder / "cam.html")]
    try:
        written.insert(0, report.to_html(folder / "tolerances.html", title=model.title))
        written += pictures(folder, motion, sol)
    except ImportError:
        print('\nno pictures and no report page: matplotlib is missing (pip install "mbsjax[plots]")')
    print("\nreport, viewer and pictures:", *written, sep="\n  ")
    print(f"done in {time.perf_counter() - start:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
