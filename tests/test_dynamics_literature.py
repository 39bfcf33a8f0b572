"""Dynamics against the literature: each case against a closed form, SciPy in minimal coordinates, a published number
that was computed again, or an invariant.

Structures are few and shared, and so are the numbers of output times: others would have to be compiled.
"""

import dataclasses
import functools
import json
import pathlib

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from numpy import cos, pi, sin, sqrt
from scipy.optimize import brentq
from scipy.special import ellipj, ellipk

import mbsjax as mbs
from tests.mechanisms import heavy_ladder
from tests.opinions import FINE, close, scipy, times


G = 9.81
CASES = pathlib.Path(__file__).parent / "cases"


def one_freedom(inertia, potential, force=lambda x, v: 0.0):
    """The equation of a mechanism of one freedom, d/dt(J(x) v) - J'(x) v^2 / 2 = -V'(x) + force."""

    @jax.jit
    def acceleration(x, v):
        return (force(x, v) - jax.grad(potential)(x) - jax.grad(inertia)(x) * v**2 / 2) / inertia(x)

    return lambda t, y: np.array([y[1], acceleration(y[0], y[1])])


def rod(name, mass, length, **options):
    """Uniform, its first end at its origin."""
    return mbs.Body(name, mass=mass, center=(length / 2, 0.0), inertia=mass * length**2 / 12, **options)


def conserves_energy(sol, tol):
    """Relative to the largest kinetic energy."""
    error = np.abs(sol.energy - sol.energy[0])
    assert error.max() <= tol * np.max(sol.kinetic), error.max() / np.max(sol.kinetic)


# -- Andrews' squeezing mechanism --------------------------------------------------------------------------


def squeezer(data):
    """Seven bodies on ground, three loops through one common point E."""
    d = data
    A, B, C = ((d["x" + k], d["y" + k]) for k in "abc")
    # body frames turn with the angles of the case: K2 points from E to F, K3, K4 and K7 hang down
    centers = [
        (d["ra"], 0.0),
        (-d["da"], 0.0),
        (d["sb"], -d["sa"]),
        (0.0, d["ea"] - d["e"]),
        (d["tb"], -d["ta"]),
        (d["zf"] - d["fa"], 0.0),
        (d["ub"], -d["ua"]),
    ]
    bodies = [
        mbs.Body(f"K{i + 1}", mass=m, inertia=J, center=center)
        for i, (m, J, center) in enumerate(zip(d["m"], d["I"], centers, strict=True))
    ]
    joints = [
        mbs.Revolute("O", "ground", "K1"),
        mbs.Revolute("F", "K1", "K2", (d["rr"], 0.0)),
        mbs.Revolute("B", "ground", "K3", B),
        mbs.Revolute("A5", "ground", "K5", A),
        mbs.Revolute("G", "K5", "K4", (d["zt"], 0.0)),
        mbs.Revolute("A7", "ground", "K7", A),
        mbs.Revolute("H", "K7", "K6", (0.0, -d["u"])),
        mbs.Revolute("E2", "K3", "K2", (0.0, -d["ss"]), (-d["d"], 0.0)),
        mbs.Revolute("E4", "K3", "K4", (0.0, -d["ss"]), (0.0, -d["e"])),
        mbs.Revolute("E6", "K3", "K6", (0.0, -d["ss"]), (d["zf"], 0.0)),
    ]
    stretch = mbs.Distance("stretch", "ground", "K3", C, (d["sd"], -d["sc"]))
    forces = [mbs.Spring(stretch, stiffness=d["c0"], free_length=d["l0"]), mbs.Actuator("O", d["mom"])]
    return mbs.Mechanism(bodies, joints, forces=forces)


@pytest.mark.long
def test_andrews_squeezing_mechanism_ends_where_the_test_set_says():
    """Schiehlen 1990 and the test set for initial value problems; the values were confirmed with forty digits."""
    case = json.loads((CASES / "dyn_andrews_squeezer.json").read_text())
    mech = squeezer(case["data"])
    beta, theta, gamma, phi, delta, omega, epsilon = case["initial"]["q"]
    start = {"O": beta, "F": theta, "B": gamma, "A5": delta, "G": phi, "A7": epsilon, "H": omega}
    start |= {"E2": beta + theta - gamma, "E4": phi + delta - gamma, "E6": omega + epsilon - gamma}
    begin = mbs.State(mech.estimate(start), jnp.zeros(10), jnp.zeros(()))
    sol = mbs.simulate(mech, begin, 0.03, ts=times(0.03), **FINE)
    for kind, places in (("q", 0), ("v", 1)):
        turned = {i: sol.orientation(f"K{i}")[places][-1] for i in (3, 5, 7)}
        found = [sol["O"], sol["F"], None, sol["G"], None, sol["H"], None]
        found = [turned[i + 1] if x is None else x[places][-1] for i, x in enumerate(found)]
        expected = np.array(case["confirmed_at_t_0.03"][kind])
        error = np.abs(np.array(found) - expected) / np.maximum(1.0, np.abs(expected))
        assert error.max() <= 1e-8, error
    work = case["data"]["mom"] * (sol["O"].q - sol["O"].q[0])
    close(sol.energy - work, np.full(21, sol.energy[0]), 1e-10)
    assert float(sol.residual.max()) <= 1e-13


# -- linkages with masses ----------------------------------------------------------------------------------


def massive_four_bar(crank=2.0, coupler=4.0, follower=3.0, pivot=(4.0, -1.0), masses=(2.0, 4.0, 3.0), far=0.0):
    names, lengths = ("crank", "coupler", "follower"), (crank, coupler, follower)
    return mbs.Mechanism(
        [rod(name, m, length) for name, m, length in zip(names, masses, lengths, strict=True)],
        [
            mbs.Revolute("A", "ground", "crank", (far, 0.0)),
            mbs.Revolute("B", "crank", "coupler", (crank, 0.0)),
            mbs.Revolute("C", "coupler", "follower", (coupler, 0.0), (follower, 0.0)),
            mbs.Revolute("D", "ground", "follower", (far + pivot[0], pivot[1])),
        ],
        gravity=(0.0, -G),
    )


@dataclasses.dataclass(frozen=True)
class Links:
    """The numbers of a slider-crank: lengths, masses, inertias about the centers, and where the crank's center is."""

    crank: float
    rod: float
    masses: tuple[float, float, float]
    inertias: tuple[float, float]
    center: float

    def reach(self, x, np=np):
        """Where the slider is at a crank angle."""
        return self.crank * np.cos(x) + np.sqrt(self.rod**2 - (self.crank * np.sin(x)) ** 2)

    def inertia(self, x, np=np):
        """Twice the kinetic energy at unit crank speed."""
        across, up = self.crank * np.cos(x), self.crank * np.sin(x)
        along = np.sqrt(self.rod**2 - up**2)
        tilt = -across / along  # the rate of the rod's angle
        middle = (-up + up * tilt / 2) ** 2 + across**2 / 4
        turning = self.inertias[0] + self.masses[0] * self.center**2 + self.inertias[1] * tilt**2
        return turning + self.masses[1] * middle + self.masses[2] * (-up + up * tilt) ** 2


class Gas(eqx.Module):
    """Haug 8.2: compressed up to x = 5, where the valve opens; while the slider goes back, nothing."""

    scale: Array

    def __call__(self, x, v, t, on):
        squeezed, vented = -282857 / (6 - x) + 62857, -110000 * (1 - jnp.sin(2 * pi * (x - 5.25)))
        return self.scale * jnp.where(on[0], jnp.where(on[1], vented, squeezed), 0.0)


def forward(x, v, t):
    return v


def vents(x, v, t):
    return x - 5


STALL = mbs.Trigger("stall", lambda at: at["A"].v, stop=True)


def driven_slider_crank(links, gravity, gas=0.0, torque=0.0):
    """With a gas on its slider and a torque on its crank; zero where a case has none, so that all are one structure."""
    return mbs.Mechanism(
        [
            mbs.Body("crank", mass=links.masses[0], inertia=links.inertias[0], center=(links.center, 0.0)),
            mbs.Body("rod", mass=links.masses[1], inertia=links.inertias[1], center=(links.rod / 2, 0.0)),
            mbs.Body("slider", mass=links.masses[2]),
        ],
        [
            mbs.Revolute("A", "ground", "crank"),
            mbs.Revolute("B", "crank", "rod", (links.crank, 0.0)),
            mbs.Revolute("C", "rod", "slider", (links.rod, 0.0)),
            mbs.Prismatic("P", "ground", "slider"),
        ],
        forces=[mbs.Actuator("P", Gas(jnp.asarray(gas)), switches=[forward, vents]), mbs.Actuator("A", torque)],
        gravity=gravity,
    )


def run_slider_crank(mech, links, angle, speed, t1):
    """From a crank angle and speed, the rod to the right; 41 output times."""
    tilt = lambda x: -jnp.arcsin(links.crank * jnp.sin(x) / links.rod)
    coordinates = lambda x: jnp.stack([x, tilt(x) - x, -tilt(x), links.reach(x, jnp)])
    q, v = jax.jvp(coordinates, (jnp.asarray(angle),), (jnp.asarray(speed),))
    options = FINE | {"max_steps": 8192, "max_events": 256, "triggers": [STALL]}
    return mbs.simulate(mech, mbs.State(q, v, jnp.zeros(())), t1, ts=times(t1, 40), **options)


LONG = FINE | {"max_steps": 8192}


@pytest.mark.long
def test_four_bar_swings_for_ten_seconds():
    mech = massive_four_bar()
    state = mbs.state(mech, {"A": 1.0}, estimate={"A": 1.0, "B": -0.6, "D": 1.2})
    sol = mbs.simulate(mech, state, 10.0, ts=times(10.0, 40), **LONG)
    assert np.ptp(sol["A"].q) > 3.0
    conserves_energy(sol, 1e-9)
    assert float(sol.residual.max()) <= 1e-11


@pytest.mark.long
def test_slider_crank_turns_for_ten_seconds():
    """Also against its equation of motion in the crank angle alone."""
    masses = (2.0, 1.0, 3.0)
    links = Links(0.5, 1.5, masses, (masses[0] * 0.5**2 / 12, masses[1] * 1.5**2 / 12), 0.25)
    sol = run_slider_crank(driven_slider_crank(links, (0.0, -G)), links, 2.0, 6.0, 10.0)
    conserves_energy(sol, 1e-9)
    assert float(sol.residual.max()) <= 1e-11
    height = lambda x: G * links.crank * jnp.sin(x) * (masses[0] + masses[1]) / 2
    x, v = scipy(one_freedom(lambda x: links.inertia(x, jnp), height), [2.0, 6.0], np.asarray(sol.ts))
    close(sol["A"].q, x, 1e-9)
    close(sol["A"].v, v, 1e-9)


@pytest.mark.long
@pytest.mark.parametrize(("seed", "far"), [(0, 0.0), (1, 0.0), (2, 0.0), (3, 40.0)])
def test_parallelogram_passes_its_flat_position(seed, far):
    """The N-four-bar of the IFToMM benchmark with one loop: unit rods of 1 kg, upright, tips at 1 m/s, 10 s. As long as
    it stays a parallelogram it is a pendulum. Rounding must not lead it astray, whatever it is: it is off by 1e-12. Nor
    does it matter how large the mechanism is that it is a part of."""
    mech = massive_four_bar(1.0, 1.0, 1.0, (1.0, 0.0), (1.0, 1.0, 1.0), far)
    off = 1e-12 * np.random.default_rng(seed).normal(size=4) * (seed > 0)
    q, v = jnp.array([pi / 2, -pi / 2, pi / 2, pi / 2]) + off, jnp.array([-1.0, 1.0, -1.0, -1.0])
    ts = times(10.0, 40)
    sol = mbs.simulate(mech, mbs.State(q, v, jnp.zeros(())), 10.0, ts=ts, **LONG)
    x, v = scipy(one_freedom(lambda x: 5 / 3 + 0 * x, lambda x: 2 * G * jnp.sin(x)), [pi / 2, -1.0], ts)
    assert np.sum(np.diff(np.floor(x / pi)) != 0) >= 5  # flat at each multiple of pi
    close(sol["A"].q, x, 1e-9)
    close(sol["A"].v, v, 1e-9)
    close(sol["D"].q, x, 1e-9)
    conserves_energy(sol, 1e-9)
    assert float(sol.residual.max()) <= 1e-11
    assert int(sol.stats.steps) < 250 and int(sol.stats.rejected) < 60
    fine = np.linspace(0.0, 10.0, 100_001)
    x, _ = scipy(one_freedom(lambda x: 5 / 3 + 0 * x, lambda x: 2 * G * jnp.sin(x)), [pi / 2, -1.0], fine)
    (flat,) = np.nonzero(np.diff(np.floor(x / pi)))
    np.testing.assert_allclose(sol.bifurcations(), fine[flat], rtol=0, atol=1e-3)
    assert str(sol).count("passed a bifurcation") == len(flat)


@pytest.mark.long
def test_chain_of_parallelograms_is_a_pendulum():
    """The N-four-bar of the IFToMM benchmark with twelve loops, whose rows all but vanish together where it is flat."""
    n = 12
    mech, begin = heavy_ladder(n)
    ts = times(10.0, 40)
    sol = mbs.simulate(mech, begin, 10.0, ts=ts, **LONG)
    inertia, weight = (n + 1) / 3 + n, (n + 1) / 2 + n
    x, _ = scipy(one_freedom(lambda x: inertia + 0 * x, lambda x: weight * G * jnp.sin(x)), [pi / 2, -1.0], ts)
    close(sol["A0"].q, x, 1e-9)
    close(sol[f"A{n}"].q, x, 1e-9)
    assert float(sol.residual.max()) <= 1e-11
    assert int(sol.stats.steps) < 250 and int(sol.stats.rejected) < 60


def test_slider_crank_with_equal_links_passes_its_singular_position_eleven_times():
    """Example 10.6 of García de Jalón and Bayo (1994): unit rods of 1 kg, the crank at 45 degrees, the slider at
    -4 m/s."""
    links = Links(1.0, 1.0, (1.0, 1.0, 0.0), (1 / 12, 1 / 12), 0.5)
    sol = run_slider_crank(driven_slider_crank(links, (0.0, -G)), links, pi / 4, sqrt(8), 10.0)
    assert float(sol["P"].v[0]) == pytest.approx(-4.0, abs=1e-12)
    fine = np.linspace(0.0, 10.0, 2001)
    # as long as it is a slider-crank; the two bars might also turn together
    inertia, height = lambda x: 2 / 3 + 2 * jnp.sin(x) ** 2, lambda x: G * jnp.sin(x)
    x, v = scipy(one_freedom(inertia, height), [pi / 4, sqrt(8)], fine)
    assert np.sum(np.diff(np.sign(cos(x))) != 0) == 11
    close(sol["A"].q, x[::50], 1e-9)
    close(sol["A"].v, v[::50], 1e-9)
    close(sol["P"].q, 2 * cos(x[::50]), 1e-9)
    conserves_energy(sol, 1e-9)
    assert float(sol.residual.max()) <= 1e-11


# -- Haug's compressor, 8.2 --------------------------------------------------------------------------------


class Compressor:
    """Its energy at any crank angle in closed form, and the time it takes to get there as an integral."""

    torque, speed = 41450.0, 30.0

    def __init__(self, inertia):
        self.links = Links(2.0, 3.5, (200.0, 35.0, 25.0), (inertia, 35.0), 0.0)
        opens = np.arccos((5.0**2 + 2.0**2 - 3.5**2) / (2 * 5.0 * 2.0))
        turns = 2 * pi * np.arange(1, 10)
        self.kinks = np.sort(
            np.concatenate([turns - pi, turns, turns - opens, turns + opens])
        )  # where a switch changes
        self.begin = self.links.inertia(pi) * self.speed**2 / 2

    @staticmethod
    def gas_work(x):
        """From the beginning of a stroke, where the slider is at 1.5."""
        early = 282857 * np.log((6 - np.minimum(x, 5)) / 4.5) + 62857 * (np.minimum(x, 5) - 1.5)
        late = np.maximum(x, 5)
        return early - 110000 * (late - 5 + cos(2 * pi * (late - 5.25)) / (2 * pi))

    def energy_gain(self, angle):
        """The work of torque, gas and gravity (along x) since the crank was at pi."""
        x = self.links.reach(angle)
        turns = np.floor((angle - pi) / (2 * pi))
        stroke = np.where(angle - pi - 2 * pi * turns < pi, self.gas_work(x), self.gas_work(5.5))
        middle = (2.0 * cos(angle) + x) / 2
        weight = G * (35.0 * (middle + 0.25) + 25.0 * (x - 1.5))
        return self.torque * (angle - pi) + turns * self.gas_work(5.5) + stroke + weight

    def rate(self, angle):
        return sqrt(2 * (self.begin + self.energy_gain(angle)) / self.links.inertia(angle))

    def clock(self, angle):
        """The time at which the crank gets to an angle."""
        nodes, weights = np.polynomial.legendre.leggauss(40)
        edges = np.array([*self.kinks[self.kinks < angle - 1e-12], angle])
        widths = np.diff(edges)[:, None]
        return np.sum(widths / 2 * weights / self.rate(edges[:-1, None] + widths / 2 * (nodes + 1)))


@pytest.mark.parametrize(
    "inertia, cycles, slowest, fastest", [(450.0, 3.81, 17.68, 31.04), (900.0, 4.31, 23.95, 30.56)]
)
def test_compressor_keeps_running(inertia, cycles, slowest, fastest):
    """Haug 8.2.4: printed are 3.7 and 4.2 cycles a second, read off a plot."""
    exact = Compressor(inertia)
    mech = driven_slider_crank(exact.links, (G, 0.0), 1.0, exact.torque)
    sol = run_slider_crank(mech, exact.links, pi, exact.speed, 1.5)
    assert exact.gas_work(5.5) == pytest.approx(-260439.3, abs=0.1)  # printed as 260438
    angle = np.asarray(sol["A"].q)
    close(sol["A"].v, exact.rate(angle), 1e-9)
    close([exact.clock(x) for x in angle[1:]], sol.ts[1:], 1e-9)
    assert (angle[-1] - pi) / (2 * pi * 1.5) == pytest.approx(cycles, abs=0.005)
    speeds = exact.rate(np.linspace(pi, angle[-1], 4001))
    assert (speeds.min(), speeds.max()) == pytest.approx((slowest, fastest), abs=0.005)
    event_times = [event.t for event in sol.events.list(mech, sol.triggers)]
    passed = exact.kinks[(exact.kinks > pi) & (exact.kinks < angle[-1])]
    close(event_times, [exact.clock(x) for x in passed], 1e-9)


def test_compressor_with_a_light_flywheel_stalls():
    """Haug 8.2.4: 225 kg m^2 do not complete the first cycle; they stand still at 0.1149 s, after 2.6546 rad."""
    exact = Compressor(225.0)
    mech = driven_slider_crank(exact.links, (G, 0.0), 1.0, exact.torque)
    sol = run_slider_crank(mech, exact.links, pi, exact.speed, 1.5)
    end = brentq(lambda x: exact.begin + exact.energy_gain(x), pi + 2.0, 2 * pi, xtol=1e-14)
    assert end - pi == pytest.approx(2.6546, abs=5e-5)
    # the time, by an integral whose end is made regular by x = end - u^2
    kink = exact.kinks[exact.kinks < end][-1]
    nodes, weights = np.polynomial.legendre.leggauss(60)
    u = sqrt(end - kink) / 2 * (nodes + 1)
    stall = exact.clock(kink) + np.sum(sqrt(end - kink) / 2 * weights * 2 * u / exact.rate(end - u**2))
    assert stall == pytest.approx(0.1149, abs=5e-5)
    assert float(sol.stopped_at) == pytest.approx(stall, abs=1e-9)
    last = sol.events.list(mech, sol.triggers)[-1]
    assert last.contact == "stall" and last.t == pytest.approx(stall, abs=1e-9)
    k = int(sol.events.count) - 1
    assert float(sol.events.q[k, 0]) == pytest.approx(end, abs=1e-9)
    assert bool(np.isnan(sol.q[-1]).all())


# -- rotation in space -------------------------------------------------------------------------------------


@pytest.mark.long
def test_body_tumbling_about_its_middle_axis():
    """A hundred turns: energy and angular momentum stay, and Euler's equations have Jacobi's solution."""
    I, w0 = np.array([1.0, 2.0, 3.0]), np.array([0.0, 2 * pi, 0.02 * pi])  # noqa: E741
    body = mbs.Body("body", mass=2.0, inertia=I)
    mech = mbs.Mechanism([body], [mbs.Free("F", "ground", "body", (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))])
    state = mbs.State(mech.estimate(), jnp.array([*w0, 0.1, -0.2, 0.3]), jnp.zeros(()))
    ts = times(100.0)
    sol = mbs.simulate(mech, state, 100.0, ts=ts, max_steps=8192, **FINE)
    close(sol.energy / sol.energy[0], np.ones(21), 1e-9)
    H = np.asarray(sol.momentum())
    close(H / np.linalg.norm(H[0, :3]), np.tile(H[0], (21, 1)) / np.linalg.norm(H[0, :3]), 1e-9)
    close(H[0], [*(I * w0), *(2.0 * np.array([0.1, -0.2, 0.3]))], 1e-14)
    close(sol["F"].q[:, 4:], np.outer(ts, [0.1, -0.2, 0.3]), 1e-11)
    # Landau and Lifshitz, section 37, from where the first component is zero
    E2, L2 = np.sum(I * w0**2), np.sum((I * w0) ** 2)
    inner = L2 > E2 * I[1]
    a, c = (0, 2) if inner else (2, 0)
    rate = sqrt((I[c] - I[1]) * (L2 - E2 * I[a]) / np.prod(I))
    m = (I[1] - I[a]) * (E2 * I[c] - L2) / ((I[c] - I[1]) * (L2 - E2 * I[a]))
    quarter = ellipk(m)
    sn, cn, dn, _ = ellipj(rate * ts + quarter, m)
    top = [sqrt((E2 * I[c] - L2) / (I[a] * (I[c] - I[a]))), sqrt((E2 * I[c] - L2) / (I[1] * (I[c] - I[1])))]
    top.append(sqrt((L2 - E2 * I[a]) / (I[c] * (I[c] - I[a]))))
    # so near the separatrix, one part in 1e12 of energy is 1.3e-7 of the solution after 100 s
    close(np.abs(sol["F"].v[:, [a, 1, c]]), np.abs(np.stack([top[0] * cn, top[1] * sn, top[2] * dn], 1)), 1e-7)


@pytest.mark.long
def test_heavy_top():
    """Against its equations in Euler's angles; the momenta about the vertical and its own axis stay."""
    m, h, A, C = 2.0, 0.3, 0.05, 0.02  # A is about the center
    A0, tilt, spin = A + m * h**2, 0.6, 60.0
    body = mbs.Body("top", mass=m, center=(0.0, 0.0, h), inertia=(A, A, C))
    mech = mbs.Mechanism(
        [body], [mbs.Spherical("O", "ground", "top", (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))], gravity=(0.0, 0.0, -G)
    )
    start = mech.estimate({"O": (cos(tilt / 2), sin(tilt / 2), 0.0, 0.0)})
    state = mbs.State(start, jnp.array([0.4, 0.0, spin]), jnp.zeros(()))
    ts = times(2.0)
    sol = mbs.simulate(mech, state, 2.0, ts=ts, **FINE)

    def rate(t, y):
        """Precession, nutation, nutation's rate; with psi' the spin that is left, all momenta are known."""
        _, theta, theta_v = y
        up, own = C * spin * cos(tilt), C * spin
        turn = (up - own * cos(theta)) / (A0 * sin(theta) ** 2)
        return [turn, theta_v, turn**2 * sin(theta) * cos(theta) - (own * turn - m * G * h) * sin(theta) / A0]

    phi, theta, _ = scipy(rate, [0.0, tilt, 0.4], ts)
    axis = sol.point("top", (0.0, 0.0, 1.0))
    # the line of nodes begins along x
    close(axis.q, np.stack([sin(theta) * sin(phi), -sin(theta) * cos(phi), cos(theta)], 1), 1e-9)
    conserves_energy(sol, 1e-10)
    close(sol.momentum()[:, 2], np.full(21, C * spin * cos(tilt)), 1e-10)
    close(sol["O"].v[:, 2], np.full(21, spin), 1e-9)


# -- pendula -----------------------------------------------------------------------------------------------


ROD, DISK, HOLE = 2.8, 8000 * 0.01 * pi * 0.25**2, 8000 * 0.01 * pi * 0.125**2


@functools.cache
def pendula():
    """A double pendulum, and Haug's composite pendulum twice: as one body, and as a rod and a ring fixed to it."""
    ring = DISK - HOLE
    whole = ROD + ring
    center = (ROD * 0.5 + ring * 1.25) / whole
    own = ROD / 12 + (DISK * 0.25**2 - HOLE * 0.125**2) / 2
    inertia = own + ROD * (center - 0.5) ** 2 + ring * (1.25 - center) ** 2
    mech = mbs.Mechanism(
        [
            rod("upper", 1.0, 1.0),
            rod("lower", 2.0, 0.8),
            mbs.Body("one", mass=whole, center=(center, 0.0), inertia=inertia),
            rod("rod", ROD, 1.0),
            mbs.Body("ring", mass=ring, inertia=ring * (0.25**2 + 0.125**2) / 2),
        ],
        [
            mbs.Revolute("A", "ground", "upper"),
            mbs.Revolute("B", "upper", "lower", (1.0, 0.0)),
            mbs.Revolute("O", "ground", "one"),
            mbs.Revolute("Q", "ground", "rod"),
            mbs.Fixed("weld", "rod", "ring", (1.25, 0.0)),
        ],
        gravity=(0.0, -G),
    )
    return mech, whole, center, inertia


@functools.cache
def swing():
    """All released from the horizontal; for one period of the composite pendulum."""
    mech, mass, center, inertia = pendula()
    period = 4 * sqrt((inertia + mass * center**2) / (mass * G * center)) * ellipk(0.5)
    state = mbs.State(mech.estimate(), jnp.array([0.5, -1.0, 0.0, 0.0]), jnp.zeros(()))
    return mbs.simulate(mech, state, period, ts=times(period), **FINE)


def test_double_pendulum():
    """Against its Lagrange equations in absolute angles."""
    (m1, m2), (l1, l2) = (1.0, 2.0), (1.0, 0.8)

    def rate(t, y):
        a, b, av, bv = y
        M = np.array([[m1 * l1**2 / 3 + m2 * l1**2, m2 * l1 * l2 / 2 * cos(a - b)], [0.0, m2 * l2**2 / 3]])
        M[1, 0] = M[0, 1]
        swirl = m2 * l1 * l2 / 2 * sin(a - b)
        Q = [-swirl * bv**2 - (m1 / 2 + m2) * G * l1 * cos(a), swirl * av**2 - m2 * G * l2 / 2 * cos(b)]
        return [av, bv, *np.linalg.solve(M, Q)]

    sol = swing()
    a, b, av, bv = scipy(rate, [0.0, 0.0, 0.5, -0.5], np.asarray(sol.ts))
    close(sol["A"].q, a, 1e-9)
    close(sol["A"].q + sol["B"].q, b, 1e-9)
    close(sol["A"].v, av, 1e-9)
    close(sol["A"].v + sol["B"].v, bv, 1e-9)
    conserves_energy(sol, 1e-10)


def test_composite_pendulum():
    """Haug, example 6.1.2: the printed inertia, the equation of motion, and the period of a swing from the
    horizontal."""
    _, mass, center, inertia = pendula()
    assert center == pytest.approx(1.105977, abs=1e-6) and inertia == pytest.approx(1.966079, abs=1e-6)
    sol = swing()
    close(sol["O"].q, sol["Q"].q, 1e-12)
    close(sol["O"].v, sol["Q"].v, 1e-12)
    close(sol["O"].a, -mass * G * center * np.cos(sol["O"].q) / (inertia + mass * center**2), 1e-12)
    angle, speed = sol["O"].q, sol["O"].v
    close([angle[5], angle[10], angle[15], angle[20]], [-pi / 2, -pi, -pi / 2, 0.0], 1e-9)
    close([speed[10], speed[20]], [0.0, 0.0], 1e-9)


def test_pendulum_on_a_driven_slider():
    """Driven coordinates beside free ones; what the driver pushes with is the rate of the momentum. Beside it Haug's
    driven pendulum (examples 6.4.1 and 6.6.1), phi = 3 pi/2 + 2 pi t, whose torque is m g l cos(phi)."""
    m, length, cart = 1.5, 0.7, 2.0
    mech = mbs.Mechanism(
        [mbs.Body("cart", mass=cart), rod("bar", m, length), rod("crank", 3.0, 2.0)],
        [
            mbs.Prismatic("P", "ground", "cart"),
            mbs.Revolute("A", "cart", "bar"),
            mbs.Revolute("O", "ground", "crank"),
        ],
        gravity=(0.0, -G),
    )
    drive = {"P": lambda t: 0.3 * jnp.sin(5 * t), "O": mbs.constant_speed(2 * pi, 3 * pi / 2)}
    state = mbs.state(mech, {"A": -1.0}, {"A": 0.2}, drive=drive)
    ts = times(4.0)
    sol = mbs.simulate(mech, state, 4.0, ts=ts, drive=drive, **FINE)

    def rate(t, y):
        pull = -0.3 * 25 * sin(5 * t)
        return [y[1], 1.5 / length * (pull * sin(y[0]) - G * cos(y[0]))]

    x, v = scipy(rate, [-1.0, 0.2], ts)
    close(sol["A"].q, x, 1e-9)
    close(sol["A"].v, v, 1e-9)
    slide = -0.3 * 25 * sin(5 * ts)
    close(sol["P"].q, 0.3 * sin(5 * ts), 1e-14)
    a = np.array([rate(*each)[1] for each in zip(ts, np.stack([x, v], 1))])
    force = (cart + m) * slide - m * length / 2 * (sin(x) * a + cos(x) * v**2)
    close(sol.drive[:, 0], force, 1e-9)
    close(sol.drive[:, 1], 3.0 * G * cos(3 * pi / 2 + 2 * pi * ts), 1e-11)


# -- Haug's coil spring, 8.4 -------------------------------------------------------------------------------


def coil(stiffness, contact):
    """Six masses in a row on springs, and one that may push them."""
    names = [f"m{i}" for i in range(1, 7)]
    chain = zip(["ground", *names], names, range(1, 7))
    return mbs.Mechanism(
        [*(mbs.Body(name, mass=2.5) for name in names), mbs.Body("ram", mass=100.0)],
        [*(mbs.Prismatic(f"x{i}", a, b) for a, b, i in chain), mbs.Prismatic("x", "ground", "ram")],
        forces=[
            *(mbs.Spring(f"x{i}", stiffness=stiffness, free_length=0.2) for i in range(1, 7)),
            mbs.Spring(
                mbs.Offset("gap", "m6", "ram", axis=(1.0, 0.0)), stiffness=contact, acts="compression", name="touch"
            ),
        ],
    )


TURNS = mbs.Trigger("turns", lambda at: at["x"].v)
ROW = (0.2,) * 6


def run_coil(mech, ram, last, t1):
    v = jnp.zeros(7).at[5].set(last).at[6].set(-0.1)
    state = mbs.State(jnp.array([*ROW, ram]), v, jnp.zeros(()))
    options = FINE | {"rtol": 1e-12, "atol": 1e-12, "max_steps": 16384, "max_events": 256}
    return mbs.simulate(mech, state, t1, ts=times(t1), triggers=[TURNS], **options)


@pytest.mark.long
def test_surge_in_a_coil_spring_is_the_sum_of_its_modes():
    """Haug 8.4.1; the ram goes away."""
    sol = run_coil(coil(200.0, 4e4), 9.0, -0.1, 8.0)
    j = np.arange(1, 7)
    w = 2 * sqrt(200.0 / 2.5) * sin((2 * j - 1) * pi / 26)
    np.testing.assert_allclose(w, [2.1563, 6.3435, 10.162, 13.390, 15.840, 17.369], rtol=5e-5)
    modes = sin(np.outer(j, (2 * j - 1) * pi / 13))
    modes = modes / np.linalg.norm(modes, axis=0)
    amount = -0.1 * modes[5]
    ts = np.asarray(sol.ts)[:, None]
    x = np.cumsum(np.stack([sol[f"x{i}"].q for i in j], 1) - 0.2, 1)
    v = np.cumsum(np.stack([sol[f"x{i}"].v for i in j], 1), 1)
    close(10 * x, 10 * (amount * sin(w * ts) / w) @ modes.T, 1e-9)
    close(10 * v, 10 * (amount * cos(w * ts)) @ modes.T, 1e-9)
    assert int(sol.events.count) == 0


@pytest.mark.slow
def test_impact_on_a_coil_spring():
    """Haug 8.4.2: the largest deflection 0.327; contact ends at about 11.8 s (which chattering makes uncertain)."""
    mech = coil(50.0, 4e4)
    sol = run_coil(mech, 1.2, 0.0, 14.0)
    events = sol.events.list(mech, sol.triggers)
    (turn,) = [i for i, event in enumerate(events) if event.contact == "turns"]
    assert 1.2 - float(sol.events.q[turn, 6]) == pytest.approx(0.327, abs=0.002)
    assert 1.2 - float(sol.events.q[turn, 6]) == pytest.approx(0.32779, abs=1e-5)
    touches = [event.t for event in events if event.contact == "touch"]
    assert touches[-1] == pytest.approx(11.8, rel=0.03)
    assert len(touches) % 2 == 1  # touched from the start, and off in the end
    close(sol.energy / sol.energy[0], np.ones(21), 1e-9)
