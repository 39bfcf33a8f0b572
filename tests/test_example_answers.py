"""The questions of examples, answered: what a file measures is what a closed form, or another solver, finds."""

import functools
from math import pi

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq, minimize_scalar

import mbsjax as mbs
from mbsjax._kinematics.track import Configuration

from .test_examples import example


@functools.cache
def moved(name: str) -> tuple[dict, mbs.Motion, dict]:
    """Its parameters, its driven motion and its measures."""
    model = example(name)
    motion = model.kinematics()
    return model.parameters, motion, {key: float(x) for key, x in model.measured(motion).items()}


@functools.cache
def simulated(name: str) -> tuple[dict, mbs.Solution, dict]:
    model = example(name)
    sol = model.simulate()
    return model.parameters, sol, {key: float(x) for key, x in model.measured(sol).items()}


def test_a_wiper_sweeps_as_far_as_it_was_made_for():
    """Both blades, from one dead position to the other in half a turn; the coupler pushes at the angle that the law of
    cosines tells."""
    p, motion, measured = moved("wiper")
    crank, arm = np.asarray(motion["A"].q), np.asarray(motion["D"].q)
    ends = [(p["ground"] ** 2 + p["rocker"] ** 2 - (p["coupler"] + x) ** 2) for x in (p["crank"], -p["crank"])]
    folded, stretched = (pi - np.arccos(x / (2 * p["ground"] * p["rocker"])) for x in reversed(ends))
    np.testing.assert_allclose(arm[[0, 36, 72]], [stretched, folded, stretched], atol=1e-7)  # a square root of 1e-15
    np.testing.assert_allclose(motion["D"].v[jnp.array([0, 36, 72])], 0.0, atol=1e-6)
    np.testing.assert_allclose(motion["F"].q, arm, atol=1e-12)
    for name in ("wiped", "wiped_too", "back"):
        assert measured[name] == pytest.approx(np.rad2deg(p["wipe"]), abs=1e-5)
    # with crank^2 + ground^2 = coupler^2 + rocker^2 the cosine of the transmission angle is that of the crank, scaled
    most = p["crank"] * p["ground"] / (p["coupler"] * p["rocker"])
    np.testing.assert_allclose(np.cos(motion["C"].q), most * np.cos(crank), atol=1e-9)
    assert measured["transmission"] == pytest.approx(np.rad2deg(np.min(np.arccos(most * np.abs(np.cos(crank))))))
    assert measured["transmission"] == pytest.approx(np.rad2deg(np.arccos(most)), abs=0.1)  # within half a step


def test_a_toggle_press_is_strongest_at_its_dead_center():
    p, motion, measured = moved("toggle_press")
    x = np.asarray(motion["knee"].q)
    lean = [x / np.sqrt(p[link] ** 2 - x**2) for link in ("upper", "lower")]
    np.testing.assert_allclose(-motion["knee"].v / motion["P"].v, 1 / (lean[0] + lean[1]), rtol=1e-9)
    np.testing.assert_allclose(motion["P"].q, np.sqrt(p["upper"] ** 2 - x**2) + np.sqrt(p["lower"] ** 2 - x**2))
    alike = 1 / (2 * np.tan(np.arcsin(p["stop"] / p["upper"])))  # both links lean alike
    assert measured["last"] == pytest.approx(alike, rel=1e-9) == pytest.approx(25.0, rel=1e-3)
    assert measured["thrust"] == pytest.approx(alike * p["push"] / 1000, rel=1e-9)


@pytest.mark.long
def test_a_scissor_lift_needs_its_strongest_push_at_the_bottom():
    p, motion, measured = moved("scissor_lift")
    a, length = np.asarray(motion["A"].q), np.asarray(motion["cylinder"].q)
    np.testing.assert_allclose(a[[0, -1]], [p["low"], p["high"]], atol=1e-9)
    np.testing.assert_allclose(motion.point("platform").q[:, 1], 2 * p["arm"] * np.sin(a), atol=1e-9)
    force = p["load"] * 2 * p["arm"] * np.cos(a) * length / (p["foot"] * p["eye"] * np.sin(a))
    np.testing.assert_allclose(p["load"] * motion.point("platform").v[:, 1] / motion["cylinder"].v, force, rtol=1e-8)
    assert measured["hardest"] == pytest.approx(force[0] / 1000, rel=1e-8) and force[0] == max(force)
    assert measured["last"] == pytest.approx(force[-1] / 1000, rel=1e-8)
    assert measured["tilt"] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.long
def test_a_landing_gear_folds_about_the_diagonal_of_a_cube():
    p, motion, measured = moved("landing_gear")
    a = np.asarray(motion["O"].q)
    c, s, third = np.cos(a), np.sin(a), np.sqrt(3)
    way = np.stack([c - 1 - third * s, c - 1 + third * s, -1 - 2 * c], -1) / 3
    np.testing.assert_allclose(motion.point("leg", "end").q, p["leg"] * way, atol=1e-9)
    universal = np.array([-p["back"], 0.0, p["back"]])
    length = np.linalg.norm(p["lug"] * way - universal, axis=-1)
    np.testing.assert_allclose(motion["S"].q, length, rtol=1e-9)
    swept = p["lug"] ** 2 + 2 * p["back"] ** 2 + 2 * p["back"] * p["lug"] * (c - s / third)
    np.testing.assert_allclose(length**2, swept, rtol=1e-9)
    pull = p["weight"] * 2 / 3 * p["leg"] * s * length / (p["back"] * p["lug"] * (s + c / third))
    np.testing.assert_allclose(
        -p["weight"] * motion.point("leg", "end").v[:, 2] / motion["S"].v, pull, rtol=1e-9, atol=1e-9
    )
    assert measured["pull"] == pytest.approx(pull[-1] / 1000, rel=1e-9)  # hardest at the end
    wanted = {"turned": 120.0, "aft": -p["leg"], "flat": p["axle"]}
    assert {name: measured[name] for name in wanted} == pytest.approx(wanted, abs=1e-9)


@pytest.mark.long
def test_a_latch_opens_where_virtual_work_says():
    """Then the lever runs as an equation of its own, solved by SciPy, until the hook is slack and the lever upright."""
    p, sol, measured = simulated("over_center")
    free = p["apart"] + p["arm"] - p["draw"] / p["stiffness"]

    def length(a: float) -> float:
        return np.sqrt(p["apart"] ** 2 + p["arm"] ** 2 + 2 * p["apart"] * p["arm"] * np.cos(a))

    def turning(a: float) -> float:
        """Moment of the hook, away from the dead center."""
        tension = p["stiffness"] * max(length(a) - free, 0.0)
        return tension * p["apart"] * p["arm"] * np.sin(a) / length(a)

    pull = turning(p["over"]) / p["handle"]
    assert measured["pull"] == pytest.approx(pull, rel=1e-8)
    assert measured["presses"] == pytest.approx(turning(p["over"]) / (p["heel"] * np.cos(p["over"])), rel=1e-8)
    ways = np.linspace(0.0, p["over"], 50)
    assert max(turning(a) for a in ways) == turning(p["over"])  # nowhere on the way more than at the stop
    release = pull / p["rate"]
    events = [lambda t, y: length(y[0]) - free, lambda t, y: y[0] - pi / 2]
    run = solve_ivp(
        lambda t, y: [y[1], (p["rate"] * t * p["handle"] + turning(y[0])) / p["inertia"]],
        (release, 0.4),
        [-p["over"], 0.0],
        events=events,
        rtol=1e-11,
        atol=1e-12,
        max_step=1e-4,
    )
    wanted = [("stop", release), ("hook", run.t_events[0][0]), ("upright", run.t_events[1][0])]
    found = sol.events.list(sol.mech, sol.triggers)
    assert [event.contact for event in found] == [name for name, _ in wanted]
    np.testing.assert_allclose([event.t for event in found], [t for _, t in wanted], rtol=1e-6)
    with pytest.raises(ValueError, match=r"one of a trigger: pass `sol\.triggers`"):
        sol.events.list(sol.mech)


@pytest.mark.long
def test_a_snap_fit_snaps():
    """The nose meets the ramp, passes its top and lies behind it when geometry and the arm's swing say; on the ramp
    it presses as the moments about the hinge balance."""
    p, sol, measured = simulated("snap_fit")
    L, r, h, ramp, mu, v = (p[name] for name in ("length", "round", "height", "ramp", "mu", "speed"))
    K, T, far = p["stiffness"] * L**2, p["preload"] * L, p["run"] + p["top"]

    def when(x: float, rise: float) -> float:
        """The time at which the nose is at x, and raised."""
        return (x - np.sqrt(L**2 - rise**2) + L + p["ahead"]) / v

    lifted = h - r + r * np.cos(ramp)  # at the end of the ramp
    wanted = [when(-r * np.tan(ramp / 2), 0.0)] * 2
    wanted += [when(p["run"] - r * np.sin(ramp), lifted), when(p["run"], h), when(far, h)]

    def turned(t):
        """By how much, while the nose slips over the edge of the back."""
        x, y = far + L + p["ahead"] - v * t, h - r
        near = jnp.hypot(x, y)
        return jnp.arctan2(y, x) + jnp.arccos((L**2 + near**2 - r**2) / (2 * L * near))

    bent = jax.jit(jax.grad(jax.grad(turned)))
    stretched = when(far + L - np.sqrt((L - r) ** 2 - (h - r) ** 2), 0.0)  # hinge, edge and nose are in line
    left = brentq(lambda t: float(p["inertia"] * bent(t) + K * turned(t) + T), wanted[-1], stretched - 1e-9)
    w, rest, speed = np.sqrt(K / p["inertia"]), T / K, float(jax.grad(turned)(left))
    swing = lambda t: (float(turned(left)) + rest) * np.cos(w * t) + speed / w * np.sin(w * t) - rest
    wanted += [left, left + brentq(swing, 0.0, pi / w)]
    events = sol.events.list(sol.mech)
    kinds = [(event.contact, event.kind) for event in events]
    assert kinds == [("catch", "closed"), ("floor", "released"), *[("catch", "transition")] * 3] + [
        ("catch", "released"),
        ("floor", "closed"),
    ]
    np.testing.assert_allclose([event.t for event in events], wanted, rtol=1e-7)
    named = {"meets": wanted[0], "snaps": left, "lies": wanted[-1]}
    assert {name: measured[name] / 1000 for name in named} == pytest.approx(named, rel=1e-7)

    t = np.asarray(sol.ts)
    foot = np.hypot(p["ahead"] - v * t, r) - r  # how far the nose is from the foot of the ramp, which is next to it
    far_off = t < when(-r, 0.0)
    np.testing.assert_allclose(sol.contact("catch").gap[far_off], foot[far_off], rtol=1e-9)
    climbing = (t > wanted[0]) & (t < wanted[2])
    a = ramp + np.arcsin((r * (1 - np.cos(ramp)) - (L + p["ahead"] - v * t[climbing]) * np.sin(ramp)) / L)
    rate = v * np.sin(ramp) / (L * np.cos(a - ramp))
    normal, back = np.array([-np.sin(ramp), np.cos(ramp)]), np.array([-np.cos(ramp), -np.sin(ramp)])
    at = L * np.stack([np.cos(a), np.sin(a)]) - r * normal[:, None]
    push = normal + mu * back
    force = (K * a + T + p["inertia"] * rate**2 * np.tan(a - ramp)) / (at[0] * push[1] - at[1] * push[0])
    np.testing.assert_allclose(sol["H"].q[climbing], a, atol=1e-9)
    np.testing.assert_allclose(sol["catch"].force[climbing], force, rtol=1e-6)
    np.testing.assert_allclose(np.abs(sol["catch"].friction[climbing]), mu * force, rtol=1e-6)
    assert measured["push"] == pytest.approx(-push[0] * force[-1], rel=1e-6)  # at the upper end


def test_a_geneva_wheel_rocks_in_its_lock_by_what_the_clearance_leaves():
    """While it is locked, turned by the angle `rocks` to either side, it touches the disc with an end of its arc."""
    model = example("geneva")
    p, mech = model.parameters, model.mechanism()
    rocks = float(p["hollow"] - p["grip"])
    middle = pi - p["step"] / 2
    turned = jnp.array([[pi, middle + x] for x in (0.0, -rocks, rocks, -2 * rocks)])
    gaps = [float(Configuration(mech, q).contact("lock")[2]) for q in turned]
    assert gaps[0] == pytest.approx(p["clearance"], rel=1e-9)
    np.testing.assert_allclose(gaps[1:3], 0.0, atol=1e-9)
    nearest = np.sqrt(p["outer"] ** 2 + p["distance"] ** 2 - 2 * p["outer"] * p["distance"] * np.cos(p["grip"] - rocks))
    assert gaps[3] == pytest.approx(nearest - p["lock"], rel=1e-6)  # below the surface


@pytest.mark.long
def test_a_rocker_lifts_off_at_the_speed_that_one_run_below_it_tells():
    """Closed form: valve and rocker follow the cycloidal law. Just below that speed they touch, above they part."""
    model = example("valve_train")
    p, sol = model.parameters, model.simulate()

    def share(x):
        """Inertia in parts of the spring's force, on the valve, where the cam has turned by x parts of its flank."""
        w = p["speed"] / p["flank"]
        s = p["swing"] * (x - np.sin(2 * pi * x) / (2 * pi))
        rate, more = p["swing"] * (1 - np.cos(2 * pi * x)) * w, p["swing"] * 2 * pi * np.sin(2 * pi * x) * w**2
        angle, arm = p["swing"] / 2 - s, p["valve_arm"]
        opening = arm * (np.sin(p["swing"] / 2) - np.sin(angle))
        inertia = p["inertia"] * more / (arm * np.cos(angle))
        inertia = inertia + p["mass"] * arm * (np.cos(angle) * more + np.sin(angle) * rate**2)
        return -inertia / (p["stiffness"] * opening + p["preload"] - p["mass"] * p["g"])

    most = minimize_scalar(lambda x: -share(x), bounds=(0.5, 1.0), method="bounded", options={"xatol": 1e-10})
    lift_off = p["rpm"] / np.sqrt(-most.fun)
    x = (np.asarray(p["speed"] * sol.ts) - pi / 6) / p["flank"]
    seen = np.max(share(x[(x > 0) & (x < 1)]))
    measured = float(model.measured(sol)["lift_off"])
    assert measured == pytest.approx(p["rpm"] / np.sqrt(seen), rel=1e-7)
    assert measured == pytest.approx(lift_off, rel=1e-3)  # the outputs are two degrees apart
    for part, lost in ((0.999, False), (1.001, True)):
        faster = model.simulate({"rpm": part * lift_off})
        assert bool(np.isfinite(faster.event_times("on_cam", "released")[0])) == lost
