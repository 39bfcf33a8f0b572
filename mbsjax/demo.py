"""The main job in one go: `python -m mbsjax.demo` analyses a four-bar, a slider-crank, and a cam with its follower, and
simulates the cam with a spring that is too weak to keep its follower on it.

Prints a table for each and writes pictures under `out/`.
"""

import itertools
import pathlib
import sys
import time
from typing import Any

import jax
import jax.numpy as jnp

import mbsjax as mbs


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
    """The cam of the thesis 4.4, an arc and three lines with corners between them, and a roller whose centre moves on
    x. For dynamics, a mass m of the follower and a spring k that presses it on, compressed by c where the roller's
    centre would be on the cam's."""
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


def analyse(build, p: dict, output: str, ts: jax.Array) -> tuple[mbs.Motion, dict]:
    """The motion over one turn, and the sensitivity of its largest output to every dimension."""
    motion = mbs.kinematics(build(p), drive(), ts)
    peak = int(jnp.argmax(motion[output].q))

    def largest(p: dict) -> jax.Array:
        return mbs.kinematics(build(p), drive(), ts, throw=False)[output].q[peak]

    return motion, jax.jit(jax.grad(largest))(p)


def table(title: str, motion: mbs.Motion, output: str, slopes: dict) -> None:
    print(f"\n{title}\n{motion.mech}\n")
    print(f"  {'crank [deg]':>12}{output:>14}{'rate':>14}{'second rate':>14}{'E x':>12}{'E y':>12}")
    track, point = motion[output], motion.point(motion.mech.links[2], "E").q
    for i in range(0, len(motion.ts), 60):
        row = (track.q[i], track.v[i], track.a[i], *point[i])
        print(
            f"  {jnp.rad2deg(motion['A'].q[i]):12.0f}"
            + "".join(f"{x:{w}.6f}" for x, w in zip(row, (14, 14, 14, 12, 12)))
        )
    print(f"  largest loop residual {float(motion.residual.max()):.1e}")
    print(f"  d(largest {output})/d(dimension): " + ", ".join(f"{k} {float(v):+.6f}" for k, v in slopes.items()))


def cam_table(motion: mbs.Motion) -> None:
    print(f"\nCam with a roller follower (thesis 4.4) over one turn\n{motion.mech}\n")
    events, guide = motion.events, motion.mech.freedoms("guide")[0]
    assert events is not None
    print(f"  {'t':>12}{'lift':>12}{'rate':>12}{'second rate before':>20}{'after':>12}   event")
    for i, event in enumerate(events.list(motion.mech)):
        row = (events.q[i, guide], events.v_after[i, guide], events.a_before[i, guide], events.a_after[i, guide])
        numbers = "".join(f"{float(x):{w}.6f}" for x, w in zip(row, (12, 12, 20, 12)))
        print(f"  {event.t:12.6f}{numbers}   {event.before[0][1]} -> {event.after[0][1]}")


def lost_contact(p: dict, outputs: int = 721) -> mbs.Solution:
    """One turn of the cam at 0.5 rad/s under a spring that is too weak."""
    drive = {"O": mbs.constant_speed(-0.5)}
    mech, t1 = cam_follower(p), 4 * jnp.pi
    return mbs.simulate(
        mech, mbs.state(mech, drive=drive, throw=False), t1, ts=jnp.linspace(0.0, t1, outputs), drive=drive,
        rest_speed=1e-2, max_steps=512, max_events=48, throw=False,
    )  # fmt: skip


def event_table(sol: mbs.Solution) -> None:
    print(f"\nThe same cam with a weak spring, k = {SPRUNG['k']}: the follower is thrown off and comes back\n")
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


def return_date(k: Any) -> jax.Array:
    """When the follower first comes back."""
    log = lost_contact({**SPRUNG, "k": k}, 2).events
    hits = (log.kind == mbs.EVENTS.index("impact")) | (log.kind == mbs.EVENTS.index("closed"))
    return log.t[jnp.argmax(hits)]


def draw_lost_contact(path: pathlib.Path, sol: mbs.Solution, kept: mbs.Motion) -> None:
    """Lift, gap and contact force, with the events."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(3, 1, figsize=(9, 9), sharex=True, layout="constrained")
    contact, log = sol["C23"], sol.events
    assert isinstance(contact, mbs.ContactForce)
    axes[0].plot(kept.ts, kept["guide"].q, color="0.7", label="cam: lift of a follower that stays on")
    axes[0].plot(sol.ts, sol["guide"].q, color="tab:blue", label="follower")
    axes[1].plot(sol.ts, contact.gap, color="tab:green", label="gap q3")
    axes[2].plot(sol.ts, contact.force, color="tab:red", label="contact force")
    axes[2].plot(sol.ts, jnp.where(contact.active, contact.static, jnp.nan), "--", color="0.5", label="its static part")
    for i, event in enumerate(log.list(sol.mech)):
        style = {"impact": ("tab:red", "-"), "closed": ("k", "-"), "released": ("tab:green", "-")}
        color, line = style.get(event.kind, ("0.8", ":"))
        for axis in axes:
            axis.axvline(event.t, color=color, lw=0.7, ls=line)
        if event.kind in style:
            axes[0].annotate(event.kind, (event.t, float(log.q[i, 1])), rotation=60, fontsize=7)
    for axis in axes:
        axis.grid(alpha=0.3)
        axis.legend(loc="upper right")
    axes[0].set(title=f"Cam of the thesis 4.4 with a weak spring (k = {SPRUNG['k']})")
    axes[2].set(xlabel="time", xlim=(0, float(sol.ts[-1])))
    figure.savefig(path, dpi=150)
    plt.close(figure)


def draw_cam(left, right, motion: mbs.Motion) -> None:
    """The cam in the position of one output, its roller, the contact and its normal; the lift with its events."""
    i = 75
    turned = motion["O"].q[i]
    R = jnp.array([[jnp.cos(turned), jnp.sin(turned)], [-jnp.sin(turned), jnp.cos(turned)]])
    rim, roller = (motion.mech.body(b).profiles[n] for b, n in (("cam", "rim"), ("follower", "roller")))
    outline = jax.vmap(lambda q: rim(q).position)(jnp.linspace(0, len(rim.kinds) - 1e-6, 800)) @ R
    left.fill(*outline.T, color="tab:blue", alpha=0.2, ec="tab:blue")
    circle = jax.vmap(lambda q: roller(q).position)(jnp.linspace(0, 1, 200)) + motion.point("follower").q[i]
    left.fill(*circle.T, color="tab:gray", alpha=0.3, ec="k")
    contact = motion["C23"]
    assert isinstance(contact, mbs.ContactTrack)
    left.plot(*contact.point[i], "o", color="tab:red", label="contact and its normal")
    left.quiver(*contact.point[i], *contact.normal[i], color="tab:red", scale=8, width=0.006)
    left.plot(0, 0, "k+")
    left.set(title="Cam", aspect="equal", xlabel="x", ylabel="y")
    left.legend(loc="upper right")
    right.plot(motion.ts, motion["guide"].q, label="guide: lift")
    right.plot(motion.ts, motion["guide"].v, label="guide: rate")
    events = motion.events
    assert events is not None
    n = int(events.count)
    for t in events.t[:n]:
        right.axvline(float(t), color="tab:red", lw=0.7, ls=":")
    right.plot(events.t[:n], events.q[:n, 1], "o", color="tab:red", label="element ends")
    right.set(xlabel="time", xlim=(0, float(motion.ts[-1])))
    right.grid(alpha=0.3)
    right.legend()


def picture(path: pathlib.Path, motions: dict[str, tuple[mbs.Motion, str]], cam: mbs.Motion) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, len(motions) + 1, figsize=(16, 8), layout="constrained")
    draw_cam(axes[0, -1], axes[1, -1], cam)
    for (left, right), (title, (motion, output)) in zip(axes.T, motions.items()):
        corners = [motion.point(body).q for body in motion.mech.links[1:]]
        tip = motion.point(*_tip(motion)).q
        line = jnp.stack([corners[0], corners[1], tip, corners[2]], 1)
        for i in range(0, len(motion.ts) - 1, 30):
            left.plot(*line[i].T, "o-", color="tab:blue", alpha=0.15 + 0.85 * (i == 30), markersize=4)
        left.plot(*motion.point(motion.mech.links[2], "E").q.T, color="tab:red", label="point E of the coupler")
        left.set(title=title, aspect="equal", xlabel="x", ylabel="y")
        left.legend()
        for name, values in zip(("value", "rate", "second rate"), motion[output]):
            right.plot(jnp.rad2deg(motion["A"].q), values, label=f"{output}: {name}")
        right.set(xlabel="crank angle [deg]", xlim=(0, 360))
        right.grid(alpha=0.3)
        right.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _tip(motion: mbs.Motion) -> tuple[str, tuple]:
    """The far end of the coupler: where joint C sits on it."""
    frame = motion.mech.joint("C").frame_a
    assert isinstance(frame, mbs.PlanarFrame)
    return motion.mech.links[2], (frame.x, frame.y)


def main() -> int:
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_compilation_cache_dir", str(pathlib.Path(".cache") / "jax"))
    start = time.perf_counter()
    ts = jnp.linspace(0.0, 2 * jnp.pi, 361)
    rocker, rocker_slopes = analyse(four_bar, FOUR_BAR, "D", ts)
    table("Four-bar: rocker angle D over one turn of the crank", rocker, "D", rocker_slopes)
    slider, slider_slopes = analyse(slider_crank, SLIDER_CRANK, "P", ts)
    table("Slider-crank: slider travel P over one turn of the crank", slider, "P", slider_slopes)
    cam = mbs.kinematics(cam_follower(CAM), {"O": mbs.constant_speed(-0.5)}, 2 * ts)
    cam_table(cam)
    sol = lost_contact(SPRUNG)
    event_table(sol)
    date, slope = jax.jvp(return_date, (jnp.asarray(SPRUNG["k"]),), (jnp.ones(()),))
    print(f"  it first comes back at t = {float(date):.9f}; d(that)/dk = {float(slope):+.6f}")
    path = pathlib.Path("out") / "demo.png"
    try:
        picture(path, {"Four-bar": (rocker, "D"), "Slider-crank": (slider, "P")}, cam)
        draw_lost_contact(path.with_name("lost_contact.png"), sol, cam)
        print(f"\npictures: {path}, {path.with_name('lost_contact.png')}")
    except ImportError:
        print('\nno picture: matplotlib is missing (pip install "mbsjax[plots]")')
    print(f"done in {time.perf_counter() - start:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
