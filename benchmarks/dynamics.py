"""How fast mechanisms are simulated.

(a) a four-bar swinging for ten seconds, beside Exudyn and MuJoCo at equal accuracy;
(b) a cam with a flat follower that loses contact, bounces and comes to rest on it again: one run, many variants in one
call, and the same two-state model written by hand, in a loop of the same kind;
(c) what its gradients cost.

`python -m benchmarks.dynamics [--check] [--lanes N] [--only a|b|c]`: prints tables and, on the last line, the headline
figure; with `--check` it exits with 1 if an aim is missed.
"""

import argparse
import importlib
import sys
import time

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

import mbsjax as mbs
from tests.impacts import FLAT, flat_follower, turning

from ._timing import best, compiled


END = 4 * np.pi / 110
REST = 1e-3


# (a) ------------------------------------------------------------------------------------------------------------------


def four_bar() -> mbs.Mechanism:
    """Crank 1, coupler 2, rocker 1.5, ground 1.8: uniform rods of 1 kg a meter."""
    rod = lambda name, long: mbs.Body(name, mass=long, center=(long / 2, 0.0), inertia=long**3 / 12)
    return mbs.Mechanism(
        [rod("crank", 1.0), rod("coupler", 2.0), rod("rocker", 1.5)],
        [
            mbs.Revolute("A", "ground", "crank", start=1.0),
            mbs.Revolute("B", "crank", "coupler", (1.0, 0.0)),
            mbs.Revolute("C", "coupler", "rocker", (2.0, 0.0), (1.5, 0.0)),
            mbs.Revolute("D", "ground", "rocker", (1.8, 0.0), start=1.0),
        ],
        gravity=(0.0, -9.81),
    )


def swing(state: mbs.State, rtol: float) -> mbs.Solution:
    return mbs.simulate(
        four_bar(), state, 10.0, ts=jnp.array([10.0]), solver=diffrax.Dopri8(), rtol=rtol, atol=rtol, throw=False
    )


def exudyn_four_bar(q: np.ndarray, h: float) -> tuple[float, float]:
    """The final crank angle by Exudyn's generalized-alpha solver with steps h, and the time that takes."""
    exu, eii = (importlib.import_module(name) for name in ("exudyn", "exudyn.itemInterface"))

    container = exu.SystemContainer()
    system = container.AddSystem()
    ground = system.AddObject(eii.ObjectGround())
    angles = {"crank": q[0], "coupler": q[0] + q[1], "rocker": q[3]}
    lengths = {"crank": 1.0, "coupler": 2.0, "rocker": 1.5}
    starts = {"crank": np.zeros(2), "rocker": np.array([1.8, 0.0])}
    starts["coupler"] = np.array([np.cos(q[0]), np.sin(q[0])])
    bodies, nodes = {}, {}
    for name, long in lengths.items():
        a = angles[name]
        place = [*(starts[name] + long / 2 * np.array([np.cos(a), np.sin(a)])), a]
        nodes[name] = system.AddNode(eii.NodeRigidBody2D(referenceCoordinates=place))
        bodies[name] = system.AddObject(eii.ObjectRigidBody2D(mass=long, inertia=long**3 / 12, nodeNumber=nodes[name]))
        middle = system.AddMarker(eii.MarkerBodyPosition(bodyNumber=bodies[name], localPosition=[0, 0, 0]))
        system.AddLoad(eii.Force(markerNumber=middle, loadVector=[0, -9.81 * long, 0]))

    def marker(body, x: float, y: float = 0.0):
        return system.AddMarker(eii.MarkerBodyPosition(bodyNumber=body, localPosition=[x, y, 0]))

    for a, b in (
        (marker(ground, 0.0), marker(bodies["crank"], -0.5)),
        (marker(bodies["crank"], 0.5), marker(bodies["coupler"], -1.0)),
        (marker(bodies["coupler"], 1.0), marker(bodies["rocker"], 0.75)),
        (marker(ground, 1.8), marker(bodies["rocker"], -0.75)),
    ):
        system.AddObject(eii.RevoluteJoint2D(markerNumbers=[a, b]))
    system.Assemble()
    settings = exu.SimulationSettings()
    settings.timeIntegration.numberOfSteps = round(10.0 / h)
    settings.timeIntegration.endTime = 10.0
    settings.timeIntegration.verboseMode = 0
    settings.solution.file.write = False
    start = time.perf_counter()
    system.SolveDynamic(settings)
    took = time.perf_counter() - start
    angle = system.GetNodeOutput(nodes["crank"], exu.OutputVariableType.Coordinates)[2] + angles["crank"]
    return float(angle), took


def mujoco_four_bar(q: np.ndarray, h: float) -> tuple[float, float]:
    """The final crank angle by MuJoCo's Runge-Kutta with steps h, and the time that takes."""
    mujoco = importlib.import_module("mujoco")

    def rod(long: float) -> str:
        J = long**3 / 12
        return f'<inertial pos="{long / 2} 0 0" mass="{long}" diaginertia="{J} {J} {J}"/>'

    model = mujoco.MjModel.from_xml_string(f"""<mujoco><compiler angle="radian" autolimits="true"/>
    <option timestep="{h}" integrator="RK4" gravity="0 -9.81 0" iterations="100" tolerance="1e-14"/>
    <worldbody>
      <body name="crank"><joint name="A" type="hinge" axis="0 0 1"/>{rod(1.0)}
        <body name="coupler" pos="1 0 0"><joint name="B" type="hinge" axis="0 0 1"/>{rod(2.0)}</body></body>
      <body name="rocker" pos="1.8 0 0"><joint name="D" type="hinge" axis="0 0 1"/>{rod(1.5)}</body>
    </worldbody>
    <equality><connect body1="coupler" body2="rocker" anchor="2 0 0" solref="{2 * h} 1" solimp="0.9999 0.9999 0.001"/>
    </equality></mujoco>""")
    data = mujoco.MjData(model)
    # the anchor of a connect is set where the reference positions put it; give it the true ones
    model.eq_data[0, :6] = [2.0, 0.0, 0.0, 1.5, 0.0, 0.0]
    data.qpos[:] = [q[0], q[1], q[3]]
    mujoco.mj_forward(model, data)
    start = time.perf_counter()
    mujoco.mj_step(model, data, nstep=round(10.0 / h))
    return float(data.qpos[0]), time.perf_counter() - start


def beside_others() -> None:
    state = mbs.state(four_bar(), {"A": 1.0})
    q = np.asarray(state.q)
    # the coarse runs reuse what the first one compiled
    start = time.perf_counter()
    truth = float(swing(state, 1e-12)["A"].q[-1])
    compile_time = time.perf_counter() - start
    print("(a) four-bar from rest, ten seconds: final crank angle")
    print(f"  {'':24}{'error rad':>12}{'run s':>10}    (compile {compile_time:.1f} s)")
    for rtol in (1e-5, 1e-7, 1e-9):
        swing(state, rtol)
        angle = float(swing(state, rtol)["A"].q[-1])
        took = best(lambda r=rtol: swing(state, r).q, 3)
        print(f"  {f'mbsjax, tolerance {rtol:.0e}':24}{abs(angle - truth):12.1e}{took:10.3f}")
    for name, run in (("Exudyn", exudyn_four_bar), ("MuJoCo", mujoco_four_bar)):
        for h in (1e-2, 1e-3, 1e-4):
            try:
                angle, took = run(q, h)
                print(f"  {f'{name}, step {h:.0e}':24}{abs(angle - truth):12.1e}{took:10.3f}")
            except Exception as error:
                print(f"  {name}: {error!r:.100}")
                break


# (b) ------------------------------------------------------------------------------------------------------------------


def follower(p: dict):
    """Where the follower ends, when its contact changed, and how often."""
    drive = turning(p["omega"])
    mech = flat_follower(p, p["restitution"])
    sol = mbs.simulate(
        mech, mbs.state(mech, drive=drive, throw=False), END, ts=jnp.array([END]), drive=drive, rest_speed=REST,
        max_steps=192, max_events=24, throw=False,
    )  # fmt: skip
    return sol.q[-1, 1], sol.v[-1, 1], sol.events.t, sol.events.count, sol.stats


def by_hand(p: dict):
    """The same by a model of two states, the follower's position and speed: in flight, or on the cam, where they follow
    from its angle. The loop is of the same kind: Tsit5 with error control, both guards looked at half way and at the
    end of a step, events located by stepping again."""
    low, tableau = p["R"] - p["e"], diffrax.Tsit5.tableau
    a = np.zeros((7, 7))
    for i, row in enumerate(tableau.a_lower):
        a[i + 1, : i + 1] = row
    a, c, b = jnp.asarray(a), jnp.asarray([0.0, *tableau.c]), jnp.asarray(tableau.b_sol)
    b_error = jnp.asarray(tableau.b_error)
    w = p["omega"]
    lift = lambda t: p["R"] - p["e"] * jnp.cos(w * t)
    speed = lambda t: p["e"] * w * jnp.sin(w * t)
    accel = lambda t: p["e"] * w**2 * jnp.cos(w * t)
    pull = lambda y: p["k"] * (y - low) + p["F0"] + p["m"] * p["g"]

    def field(t, y, on):
        return jnp.stack([y[1], jnp.where(on, accel(t), -pull(y[0]) / p["m"])])

    def guard(t, y, on):
        return jnp.where(on, (p["m"] * accel(t) + pull(lift(t))) / 1000.0, (y[0] - lift(t)) / 0.1)

    def attempt(s):
        t, y, on, h, lo, hi, g_lo, g_hi, armed, n, events, log = s
        stage = lambda i, ks: ks.at[i].set(h * field(t + c[i] * h, y + a[i] @ ks, on))
        ks = jax.lax.fori_loop(0, 7, stage, jnp.zeros((7, 2)))
        y1, error = y + b @ ks, b_error @ ks
        y1 = jnp.where(on, jnp.stack([lift(t + h), speed(t + h)]), y1)
        middle = diffrax.Tsit5.interpolation_cls(t0=0.0, t1=1.0, y0=y, y1=y1, k=ks).evaluate(0.5)
        g_mid, g = guard(t + h / 2, middle, on), guard(t + h, y1, on)
        size = jnp.sqrt(jnp.mean((error / (jnp.array([1e-10, 1e-8]) + 1e-9 * jnp.abs(y))) ** 2))
        keep = size < 1
        h_next = h * jnp.clip(0.9 * size**-0.2, 0.2, jnp.where(keep, 10.0, 0.9))
        long = ~armed & (g_mid < -1e-11) & keep
        early, late = armed & (g_mid <= 0) & keep, (g <= 0) & (armed | (g_mid > 0)) & keep
        crossing = (early | late) & ~long
        locating = jnp.isfinite(hi)
        new_hi = jnp.where(crossing, jnp.where(early, h / 2, h), hi)
        new_g_hi = jnp.where(crossing, jnp.where(early, g_mid, g), g_hi)
        inside = locating & ~crossing & keep & ~long
        new_lo = jnp.where(inside, h, jnp.where(crossing & ~early & (h / 2 > lo), h / 2, lo))
        new_g_lo = jnp.where(
            inside, g, jnp.where(crossing & ~early & (h / 2 > lo), g_mid, jnp.where(locating, g_lo, guard(t, y, on)))
        )
        found = jnp.isfinite(new_hi) & keep & ((jnp.abs(g) < 3e-14) | (new_hi - new_lo < 1e-17)) & ~early
        new_g_hi = jnp.where(inside, new_g_hi / 2, new_g_hi)
        new_g_lo = jnp.where(crossing & locating, new_g_lo / 2, new_g_lo)
        part = jnp.clip(new_g_lo / (new_g_lo - new_g_hi), 1e-3, 1 - 1e-3)
        plain = keep & ~crossing & ~locating & ~long
        # the event
        approach = y1[1] - speed(t + h)
        rebound = -p["restitution"] * approach
        sticks = rebound < REST
        y2 = jnp.where(on, y1, jnp.stack([lift(t + h), speed(t + h) + jnp.where(sticks, 0.0, rebound)]))
        on2 = jnp.where(on, False, sticks)
        t_new = jnp.where(plain | found, t + h, t)
        y_new = jnp.where(found, y2, jnp.where(plain, y1, y))
        on_new = jnp.where(found, on2, on)
        log = log.at[jnp.where(found, events, log.shape[0])].set(t + h, mode="drop")
        stride = 0.3 / w
        grows = (y[1] - speed(t)) / 0.1
        bend = (g_mid - grows * h / 2) / (h * h / 4)
        flight = jnp.where((grows > 0) & (bend < 0), -1.1 * grows / bend, h / 2)
        h_new = jnp.select(
            [~keep, long, found, crossing | inside],
            [h_next, jnp.clip(flight, h / 256, h / 2), stride, new_lo + part * (new_hi - new_lo)],
            h_next,
        )
        h_new = jnp.minimum(jnp.minimum(h_new, stride), jnp.maximum(END - t_new, 0.0))
        done = plain | found
        armed_new = jnp.where(found, on2, jnp.where(plain, armed | (g > 1e-11), armed))
        return (t_new, y_new, on_new, h_new, jnp.where(done, 0.0, new_lo), jnp.where(done, jnp.inf, new_hi),
                new_g_lo, new_g_hi, armed_new, n + 1, events + found, log)  # fmt: skip

    y = jnp.stack([lift(0.0), speed(0.0)])
    zero = jnp.zeros(())
    start = (
        zero,
        y,
        jnp.array(True),
        zero + 1e-4,
        zero,
        zero + jnp.inf,
        zero,
        zero,
        jnp.array(True),
        0,
        0,
        jnp.full(24, jnp.inf),
    )
    _, y, _, _, _, _, _, _, _, n, events, log = jax.lax.while_loop(
        lambda s: (s[0] < END) & (s[9] < 2000), attempt, start
    )
    return y[0], y[1], log, events, n


def variants(lanes: int) -> dict:
    nominal = {**FLAT, "restitution": 0.3}
    keys = jax.random.split(jax.random.key(0), len(nominal))
    return {k: v * (1 + 0.02 * jax.random.normal(key, (lanes,))) for key, (k, v) in zip(keys, nominal.items())}


def cams(lanes: int) -> float:
    """Prints the table, and gives the ratio to the model written by hand."""
    many = variants(lanes)
    first = {k: v[0] for k, v in many.items()}
    print("(b) flat follower, two turns")
    print(f"  {'':40}{'compile s':>10}{'run s':>10}{'runs/s':>12}")
    times, results = {}, {}
    for name, model in (("mbsjax", follower), ("two states by hand", by_hand)):
        if lanes <= 4096:
            one, compile_one = compiled(model, first)
            alone = best(lambda one=one: one(first), 10)
            print(f"  {f'{name}, one run':40}{compile_one:10.1f}{alone:10.4f}{1 / alone:12.0f}")
        batch, compile_batch = compiled(jax.vmap(model), many)
        results[name] = jax.block_until_ready(batch(many))
        times[name] = best(lambda batch=batch: batch(many), 3)
        label, rate = f"{name}, {lanes} variants in one call", lanes / times[name]
        print(f"  {label:40}{compile_batch:10.1f}{times[name]:10.3f}{rate:12.0f}")
    _, _, event_times, count, stats = results["mbsjax"]
    _, _, event_times2, count2, tries = results["two states by hand"]
    same = np.asarray(count == count2)
    gap = np.abs(np.where(np.isfinite(event_times[same]), event_times[same] - event_times2[same], 0.0)).max()
    tried = float(np.mean(stats.steps + stats.rejected))
    print(f"  events a run: {float(np.mean(count)):.1f}; tries {tried:.0f}, by hand {float(np.mean(tries)):.0f}")
    print(f"  same number of events in {100 * same.mean():.2f} %; times there agree to {gap:.1e} s")
    return times["mbsjax"] / times["two states by hand"]


# (c) ------------------------------------------------------------------------------------------------------------------


def gradients() -> tuple[float, float]:
    """How many times as long as the value its gradient takes, in reverse mode; and each parameter in forward mode."""
    p = {k: jnp.asarray(v) for k, v in {**FLAT, "restitution": 0.3}.items()}
    final = lambda p: follower(p)[0]
    flat, back = ravel_pytree(p)
    value, _ = compiled(final, p)
    reverse, compile_reverse = compiled(jax.grad(final), p)
    forward, compile_forward = compiled(jax.jacfwd(lambda x: final(back(x))), flat)
    plain = best(lambda: value(p), 20)
    r, f = best(lambda: reverse(p), 10) / plain, best(lambda: forward(flat), 10) / plain
    print("(c) gradients of the flat follower's final position, 8 parameters, relative to the value")
    print(f"  reverse {r:.2f} (compile {compile_reverse:.0f} s), forward {f:.2f}, {f / len(flat):.2f} a parameter "
          f"(compile {compile_forward:.0f} s)")  # fmt: skip
    a, b = ravel_pytree(reverse(p))[0], forward(flat)
    print(f"  they agree to {float(jnp.max(jnp.abs(a - b) / jnp.max(jnp.abs(b)))):.1e}")
    return r, f / len(flat)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 if an aim is missed")
    parser.add_argument("--lanes", type=int, default=4096)
    parser.add_argument("--only", default="abc")
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    ratio, reverse, forward = 0.0, 0.0, 0.0
    if "a" in args.only:
        beside_others()
    if "b" in args.only:
        ratio = cams(args.lanes)
    if "c" in args.only:
        reverse, forward = gradients()
    headline = f"dynamics: {ratio:.1f} times the two-state model written by hand (aim 3)"
    print(f"{headline}; gradient {reverse:.1f} (aim 6) and {forward:.2f} a parameter (aim 1.5)")
    return int(args.check and (ratio > 3 or reverse > 6 or forward > 1.5))


if __name__ == "__main__":
    sys.exit(main())
