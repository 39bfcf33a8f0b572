"""Forces in motion: springs, dampers, buffers, ropes and loads against closed forms and SciPy; stiff ones by implicit
solvers.

Structures are few and shared, and so are the numbers of output times: others would have to be compiled.
"""

import functools

import diffrax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy import cos, pi, sin
from scipy.integrate import solve_ivp
from scipy.special import ellipj

import mbsjax as mbs
from tests.opinions import FINE, close, scipy, times


G = 9.81


@functools.cache
def rail():
    """Bodies that have nothing to do with each other, each with a force of its own: one structure to compile."""
    sliders = ("buffer", "rope", "curve", "damped", "drag", "shaken")
    joints = [mbs.Prismatic(f"x_{name}", "ground", name) for name in sliders]
    joints += [mbs.Revolute("twist", "ground", "wheel"), mbs.Planar("fly", "ground", "rocket")]
    forces = [
        mbs.Spring("x_buffer", stiffness=8.0, acts="compression", name="pushing"),
        mbs.Spring("x_rope", stiffness=8.0, free_length=0.5, acts="tension", name="pulling"),
        mbs.Spring("x_curve", stiffness=lambda x: 2.0 * x**3),
        mbs.Spring("x_damped", stiffness=10.0, damping=4.0, free_length=-0.5, preload=3.0),
        mbs.Spring("x_drag", damping=lambda v: 2.0 * v * jnp.abs(v)),
        mbs.Load("shaken", force=lambda t, at: (6.0 * jnp.sin(2 * t) - 8.0 * at["x_shaken"].q, 5.0)),
        mbs.Spring("twist", stiffness=2.0, free_length=0.3),
        mbs.Load("wheel", force=(1.0, 3.0), point=(0.5, 0.2), torque=0.25),
        mbs.Load("rocket", force=(4.0, 0.0), fixed_in="body"),
    ]
    bodies = [mbs.Body(name, mass=2.0, inertia=0.5) for name in (*sliders, "wheel", "rocket")]
    return mbs.Mechanism(bodies, joints, forces=forces)


@functools.cache
def ride():
    mech = rail()
    start = mech.estimate({"x_buffer": 0.5, "x_curve": 1.5, "x_damped": 0.5})
    v = {"x_buffer": -1.0, "x_rope": 1.0, "x_drag": 3.0, "fly.angle": 2.0}
    state = mbs.State(start, jnp.array([v.get(name, 0.0) for name in mech.coordinates]), jnp.zeros(()))
    return mbs.simulate(mech, state, 3.0, ts=times(3.0), **FINE)


@pytest.mark.long
def test_buffer_pushes_and_rope_pulls():
    """Free flight, half a period at 2 rad/s, and free flight back; the changes are located."""
    sol = ride()
    ts = np.asarray(sol.ts)
    gone = 0.5 + pi / 2
    depth = np.select([ts < 0.5, ts < gone], [0.5 - ts, -sin(2 * (ts - 0.5)) / 2], ts - gone)
    close(sol["x_buffer"].q, depth, 1e-10)
    close(sol["x_rope"].q, 0.5 - depth, 1e-10)
    event_times = {"pushing": [], "pulling": []}
    for event in sol.events.list(sol.mech):
        event_times[event.contact].append(event.t)
    for name in event_times:
        close(event_times[name], [0.5, gone], 1e-11)


def test_spring_by_its_curve():
    """x'' = -x^3: Jacobi's cosine; the energy is that of the curve."""
    sol = ride()
    close(sol["x_curve"].q, 1.5 * ellipj(1.5 * np.asarray(sol.ts), 0.5)[1], 1e-10)
    x, v = sol["x_curve"].q, sol["x_curve"].v
    close(v**2 + x**4 / 2, np.full(21, 1.5**4 / 2), 1e-10)


def test_spring_with_a_damper_and_a_preload():
    """Damped at half the rate of its frequency; it comes to rest where the preload is balanced."""
    ts, rest = np.asarray(ride().ts), -0.5 - 3.0 / 10.0
    close(ride()["x_damped"].q, rest + (0.5 - rest) * np.exp(-ts) * (cos(2 * ts) + sin(2 * ts) / 2), 1e-10)


def test_damper_by_its_curve():
    """Quadratic drag: v = v0 / (1 + v0 t)."""
    sol, ts = ride(), np.asarray(ride().ts)
    close(sol["x_drag"].v, 3 / (1 + 3 * ts), 1e-10)
    close(sol["x_drag"].q, np.log(1 + 3 * ts), 1e-10)


def test_load_by_a_function_of_time_and_place():
    """Resonance: x'' = 3 sin(2 t) - 4 x."""
    sol, ts = ride(), np.asarray(ride().ts)
    close(sol["x_shaken"].q, 3 * (sin(2 * ts) - 2 * ts * cos(2 * ts)) / 8, 1e-10)


def test_loads_fixed_in_a_body_and_in_ground():
    """A rocket that spins goes in circles; a wheel on a torsion spring is turned by a force that keeps its direction,
    and by a torque."""
    sol, ts = ride(), np.asarray(ride().ts)
    close(sol["fly"].q, np.stack([2 * ts, (1 - cos(2 * ts)) / 2, ts - sin(2 * ts) / 2], 1), 1e-10)

    def rate(t, y):
        x, z = 0.5 * cos(y[0]) - 0.2 * sin(y[0]), 0.5 * sin(y[0]) + 0.2 * cos(y[0])
        return [y[1], (0.25 + 3.0 * x - 1.0 * z - 2.0 * (y[0] - 0.3)) / 0.5]

    angle, speed = scipy(rate, [0.0, 0.0], ts)
    close(sol["twist"].q, angle, 1e-10)
    close(sol["twist"].v, speed, 1e-10)


@pytest.mark.long
def test_stiff_spring_by_an_implicit_solver():
    """Decay rates 1 and 10^6: an explicit method would need a million steps."""
    mech = mbs.Mechanism(
        [mbs.Body("mass", mass=1.0)],
        [mbs.Prismatic("x", "ground", "mass")],
        forces=[mbs.Spring("x", stiffness=1e6, damping=1e6 + 1)],
    )
    state = mbs.State(jnp.array([1.0]), jnp.array([0.0]), jnp.zeros(()))
    ts = times(2.0)
    sol = mbs.simulate(mech, state, 2.0, ts=ts, solver=diffrax.Kvaerno5(), rtol=1e-9, atol=1e-9, max_steps=1024)
    close(sol["x"].q, (1e6 * np.exp(-ts) - np.exp(-1e6 * ts)) / (1e6 - 1), 1e-8)
    assert int(sol.stats.steps) < 500


@pytest.mark.long
def test_stiff_rod_in_cartesian_coordinates_takes_long_steps():
    """A pendulum on a spring-damper that is nearly a rod: its stiff direction turns with it, and an implicit solver
    goes as far as the motion is smooth. (Where a root finder that converges is stopped after two iterations, it takes
    6500 steps and rejects 10000 more.)"""
    joints = [
        mbs.Prismatic("x", "ground", "cart", start=1.0),
        mbs.Prismatic("y", "cart", "bob", axis=(0.0, 1.0)),
    ]
    rod = mbs.Spring(mbs.Distance("rod", "ground", "bob"), stiffness=8e5, damping=4e4, free_length=1.0)
    bodies = [mbs.Body("cart", mass=0.3), mbs.Body("bob", mass=5.0)]
    mech, ts = mbs.Mechanism(bodies, joints, forces=[rod], gravity=(0.0, -G)), times(2.0)

    def rate(t, y):
        r, v = y[:2], y[2:]
        d = np.hypot(*r)
        tension = 8e5 * (d - 1.0) + 4e4 * (r @ v) / d
        return [*v, *(-tension * r / d / [5.3, 5.0] - [0.0, G])]

    state = mbs.State(jnp.array([1.0, 0.0]), jnp.zeros(2), jnp.zeros(()))
    sol = mbs.simulate(mech, state, 2.0, ts=ts, solver=diffrax.Kvaerno5(), rtol=1e-6, atol=1e-6, max_steps=1024)
    ref = solve_ivp(rate, (0, 2.0), [1.0, 0.0, 0.0, 0.0], "Radau", ts, rtol=1e-10, atol=1e-12)
    close(sol["x"].q, ref.y[0], 1e-4)
    close(sol["y"].q, ref.y[1], 1e-4)
    assert int(sol.stats.steps) < 300 and int(sol.stats.rejected) < 100


def governor():
    """The flyball governor of the IFToMM benchmark: rods of 1 m and 0.3 kg with spheres of 5 kg, at 30 degrees on an
    axis that spins; stiff spring-dampers from the middle of each rod carry a slider of 3 kg."""
    m, far = 5.3, 5.15 / 5.3
    across = 0.3 / 3 + 5.0 - m * far**2
    heavy = {"mass": m, "center": (far, 0.0, 0.0), "inertia": (1e-4, across, across)}
    rods = [mbs.Body(name, **heavy) for name in ("left", "right")]
    axis, slider = (mbs.Body(name, mass=x, inertia=(0.01, 0.01, 0.01)) for name, x in (("axis", 0.3), ("slider", 3.0)))
    x, y, z = np.eye(3)  # rods along x of their frames: at an angle of zero they hang
    hinges = [np.block([[np.stack([-z, s * x, -s * y], 1), np.zeros((3, 1))], [0, 0, 0, 1]]) for s in (-1, 1)]
    joints = [
        mbs.Revolute("spin", "ground", "axis", (0.0, 0.0, 0.0), axis=(0.0, 0.0, 1.0)),
        mbs.Revolute("L", "axis", "left", hinges[0], np.eye(4), start=pi / 6),
        mbs.Revolute("R", "axis", "right", hinges[1], np.eye(4), start=pi / 6),
        mbs.Prismatic("height", "axis", "slider", (0.0, 0.0, 0.0), axis=(0.0, 0.0, 1.0), start=-cos(pi / 6)),
    ]
    springs = [
        mbs.Spring(
            mbs.Distance(f"to {rod.name}", rod.name, "slider", (0.5, 0.0, 0.0), (0.0, 0.0, 0.0)),
            stiffness=8e5, damping=4e4, free_length=0.5,
        )
        for rod in rods
    ]  # fmt: skip
    return mbs.Mechanism([axis, *rods, slider], joints, forces=springs, gravity=(0.0, 0.0, -G))


def governor_rate(t, y):
    """Its motion by hand: the angle of both rods, the height of the slider, their rates; angular momentum is kept."""
    x, z, w, u = y
    turns = lambda x: 0.02 + 2 * (5.1 * np.sin(x) ** 2 + 1e-4 * np.cos(x) ** 2)
    spin = turns(pi / 6) * 2 * pi / turns(x)
    across, down = np.sin(x) / 2, z + np.cos(x) / 2
    d = np.hypot(across, down)
    to_x, to_z = (across * np.cos(x) - down * np.sin(x)) / 2 / d, down / d  # of d
    tension = 8e5 * (d - 0.5) + 4e4 * (to_x * w + to_z * u)
    turning = 2 * (5.1 - 1e-4) * np.sin(x) * np.cos(x) * spin**2 - 2 * 5.15 * G * np.sin(x) - 2 * tension * to_x
    return [w, u, turning / (2 * 5.1), (-2 * tension * to_z - 3.0 * G) / 3.0]


@pytest.mark.long
def test_stiff_governor_takes_long_steps():
    """Two seconds: an implicit solver goes as far as the motion is smooth. (Where a root finder that converges is
    stopped after two iterations, ten seconds take some 6500 steps and 7500 rejected ones.)"""
    mech, ts = governor(), times(2.0, 10)
    state = mbs.state(mech, velocities={"spin": 2 * pi})
    sol = mbs.simulate(mech, state, 2.0, ts=ts, solver=diffrax.Kvaerno5(), rtol=1e-6, atol=1e-6, max_steps=2048)
    ref = solve_ivp(governor_rate, (0, 2.0), [pi / 6, -cos(pi / 6), 0, 0], "Radau", ts, rtol=1e-10, atol=1e-12)
    close(sol["height"].q, ref.y[1], 1e-5)
    assert int(sol.stats.steps) < 150 and int(sol.stats.rejected) < 60
