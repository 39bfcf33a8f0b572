"""Contacts in the literature's mechanisms: Haug volume I (1989), the thesis, and the tables in tests/cases.

The truth is a closed form or an envelope computed here with NumPy and SciPy.
"""

import itertools
import json
import pathlib

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy import pi
from numpy.polynomial import Chebyshev
from scipy.optimize import brentq

import mbsjax as mbs
from tests.mechanisms import rates, run, same_motion, turn


def case(name):
    return json.loads((pathlib.Path(__file__).parent / "cases" / f"{name}.json").read_text())


def kinds(motion):
    return [event.kind for event in motion.events.list(motion.mech)]


# -- Haug 5.6: valve lifter --------------------------------------------------------------------------------


def valve_lifter(e):
    """Section 5.6: eccentric cam, flat-faced follower, rocker, valve stem. The pivot B is raised with the eccentricity,
    so that the follower begins at the same height."""
    face = mbs.Profile.chain([mbs.Line((-15.0, 3.0), (-15.0, -3.0))], closed=False)
    return mbs.Mechanism(
        [
            mbs.Body("cam", profiles={"rim": mbs.disc(1.25)}),
            mbs.Body("follower", profiles={"face": face}),
            mbs.Body("rocker"),
            mbs.Body("stem"),
        ],
        [
            mbs.Revolute("B", "ground", "cam", (0.0, e - 0.25), (0.0, e)),
            mbs.Revolute("C", "ground", "rocker", (6.0, 31.0)),
            mbs.Prismatic("D", "ground", "follower", mbs.at(0.0, 16.0, pi / 2), start=0.1),
            mbs.Prismatic("E", "ground", "stem", mbs.at(12.0, 23.5, -pi / 2)),
            mbs.PinSlot("F", "rocker", "follower", (-6.0, 0.0), (15.0, 0.0)),
            mbs.PinSlot("G", "rocker", "stem", (6.0, 0.0), (-7.5, 0.0)),
            mbs.Contact("lift", "cam.rim", "follower.face", active=True),
        ],
    )


@pytest.mark.parametrize("e", [0.25, 0.35, 0.45])
def test_valve_lifter(e):
    """Haug 5.6: lift e (1 - cos), the rocker's line symmetric about its pivot."""
    w = 40 * pi
    ts = np.linspace(0.0, 2 * pi / w, 31)
    estimate = {"F.angle": pi / 2, "G.angle": -pi / 2}
    motion = run(valve_lifter(e), {"B": turn(w)}, ts, estimate=estimate)
    lift = lambda t: e * (1 - jnp.cos(w * t))
    same_motion(motion["D"], rates(lift, ts), 1e-10)
    same_motion(motion["E"], rates(lift, ts), 1e-10)
    same_motion(motion["C"], rates(lambda t: -jnp.arctan(lift(t) / 6), ts), 1e-10)
    same_motion([x[:, 1] for x in motion.point("follower")], rates(lambda t: 16 + lift(t), ts), 1e-10)
    same_motion([x[:, 1] for x in motion.point("stem")], rates(lambda t: 23.5 - lift(t), ts), 1e-10)
    assert np.max(np.abs(motion["D"].a)) == pytest.approx(e * w**2, rel=1e-10)
    place = motion["lift"]
    same_motion([x[:, 1] * 6 for x in (place.q, place.v, place.a)], rates(lambda t: 3 + e * jnp.sin(w * t), ts), 1e-10)
    assert int(motion.events.count) == 0
    q = motion.q[7]
    assert mbs.mobility(motion.mech, q).freedom == mbs.mobility(motion.mech, q, active=["lift"]).freedom == 1
    assert mbs.mobility(motion.mech, q, active=[]).freedom == 2


# -- cams against their envelopes --------------------------------------------------------------------------
# The follower's line of motion is x, and the cam turns backwards: when it has turned by -a0, the place with the polar
# angle a0 is on that line.


TURN = (np.arange(180) + 0.37) / 180


def tip(kind, r=0.0, reach=1.3):
    """A follower's tip, the material on the side of +x. All three have a line and another element, so that one compiled
    motion does for them."""
    if kind == "flat":
        return [mbs.Line((0.0, reach), (0.0, -reach)), mbs.Arc((0.1, -reach), 0.1, pi, pi / 2)]
    round_or_sharp = mbs.Arc((0.0, 0.0), r, pi / 2, pi) if kind == "roller" else mbs.Point((0.0, 0.0), (-1.0, 0.0))
    return [mbs.Line((1.0, r), (0.0, r)), round_or_sharp]


def radial_cam(rim, follower, start):
    return mbs.Mechanism(
        [mbs.Body("cam", profiles={"rim": rim}), mbs.Body("follower", profiles={"tip": follower})],
        [
            mbs.Revolute("O", "ground", "cam"),
            mbs.Prismatic("guide", "ground", "follower", start=start),
            mbs.Contact("C", "cam.rim", "follower.tip", active=True),
        ],
    )


class Envelope:
    """The height of a follower on a cam, given as rho and its derivative in the polar angle, at the cam angle -a0: the
    greatest one at which it touches any place of the cam; and the derivative in a0 (the envelope theorem)."""

    def __init__(self, rho, kind, r=0.0):
        self.rho, self.kind, self.r = rho, kind, r
        self.grid = np.linspace(0.0, 2 * pi, 20001)
        self.on_grid = rho(self.grid)

    def height(self, a, a0, rho):
        """If it touches at the polar angle a; with the derivatives in a and a0."""
        (R, dR), b = rho, a - a0
        x, y = R * np.cos(b), R * np.sin(b)
        dx, dy = dR * np.cos(b) - y, dR * np.sin(b) + x
        if self.kind == "flat":
            return x, dx, y
        with np.errstate(invalid="ignore", divide="ignore"):
            over = np.sqrt(self.r**2 - y**2)
            return x + over, dx - y * dy / over, y + y * x / over

    def __call__(self, a0):
        if self.kind == "knife":
            R, dR = self.rho(np.array([a0]))
            return R[0], dR[0]
        heights = self.height(self.grid, a0, self.on_grid)[0]
        best = self.grid[np.nanargmax(heights)]
        step = self.grid[1]
        slope = lambda a: self.height(a, a0, self.rho(np.array([a % (2 * pi)])))[1].item()
        a = brentq(slope, best - step, best + step, xtol=1e-15, rtol=1e-14)
        h, _, dh = self.height(a, a0, self.rho(np.array([a % (2 * pi)])))
        return h.item(), dh.item()

    def along(self, start, rate, ts):
        q, v = np.array([self((start + rate * t) % (2 * pi)) for t in ts]).T
        return q, rate * v


class Lobe(eqx.Module):
    """rho = mean - wave cos 3a over a third of a turn."""

    mean: jax.Array
    wave: jax.Array

    def __call__(self, s):
        a = 2 * jnp.pi / 3 * s
        rho = self.mean - self.wave * jnp.cos(3 * a)
        return rho * jnp.cos(a), rho * jnp.sin(a)


def cosine_cam():
    """Example 3.4.3."""
    lobe = mbs.Curve(Lobe(jnp.array(1.25), jnp.array(0.25)))
    return mbs.Profile.chain([mbs.Arc((0.0, 0.0), 1.0, 2 * pi / 3, 4 * pi / 3), lobe], smooth=True)


def cosine_rho(a):
    on = a < 2 * pi / 3
    return np.where(on, 5 / 4 - np.cos(3 * a) / 4, 1.0), np.where(on, 3 / 4 * np.sin(3 * a), 0.0)


ORDERS = (0, 1, 2, 3, 4, 12, 16)  # of all polynomials here: one compiled motion does for all cams made of five


def polynomial_cam():
    """Problem 3.4.7, in five pieces."""
    ends = np.linspace(0.0, 2.0, 6)
    pieces = [mbs.Polynomial((1.0, 0.0, 2.0, -2.0, 0.5, 0.0, 0.0), ORDERS, a, b) for a, b in itertools.pairwise(ends)]
    return mbs.Profile.chain([mbs.Arc((0.0, 0.0), 1.0, 2.0, 2 * pi - 2), *pieces], smooth=True)


def polynomial_rho(a):
    on = a < 2
    return np.where(on, 1 + 2 * a**2 - 2 * a**3 + a**4 / 2, 1.0), np.where(on, 4 * a - 6 * a**2 + 2 * a**3, 0.0)


@pytest.mark.parametrize(
    "cam,rho,kind",
    [
        pytest.param(cosine_cam, cosine_rho, "roller", marks=pytest.mark.long),
        pytest.param(cosine_cam, cosine_rho, "knife", marks=pytest.mark.long),
        (cosine_cam, cosine_rho, "flat"),
        pytest.param(polynomial_cam, polynomial_rho, "roller", marks=pytest.mark.long),
        (polynomial_cam, polynomial_rho, "knife"),
        pytest.param(polynomial_cam, polynomial_rho, "flat", marks=pytest.mark.long),
    ],
)
def test_cam_with_hollow_flanks(cam, rho, kind):
    """Haug Examples 3.4.3 (roller), 3.4.4 (flat face), 3.4.5 (point), and Problem 3.4.7. The roller, of radius 1/4,
    fits into the flanks. The flat face would bridge them: it is followed from the top of the cam until it is about to
    do so."""
    r, top = (0.25 if kind == "roller" else 0.0), pi / 3 if cam is cosine_cam else 1.0
    follower = mbs.Profile.chain(tip(kind, r), closed=False, smooth=True)
    mech, truth = radial_cam(cam(), follower, 1.9), Envelope(rho, kind, r)
    ways = (1.0, -1.0) if cam is cosine_cam else (1.0,)
    for rate in ways if kind == "flat" else (2 * pi,):
        motion = run(mech, {"O": turn(-rate, -top)}, TURN)
        q, v = truth.along(top, rate, TURN)
        np.testing.assert_allclose(motion["guide"].q, q, rtol=0, atol=1e-10)
        np.testing.assert_allclose(motion["guide"].v, v, rtol=0, atol=1e-8)
        assert set(kinds(motion)) <= {"transition"} and bool(jnp.all(motion["C"].active))


@pytest.mark.long
@pytest.mark.parametrize("way", [1.0, -1.0])
def test_flat_face_bridges_hollow_flanks(way):
    """Haug Example 3.4.4 over a whole turn: the face is as high as the highest point of the cam, and goes over from the
    lobe to the base circle, and back, where both are as high."""
    mech = radial_cam(cosine_cam(), mbs.Profile.chain(tip("flat", 0.0), closed=False, smooth=True), 1.9)
    motion = run(mech, {"O": turn(-2 * pi * way, -pi / 3)}, TURN)
    a = np.linspace(0, 2 * pi, 100_001)
    rho = cosine_rho(a)[0]
    highest = np.array([np.max(rho * np.cos(a - pi / 3 - 2 * pi * way * t)) for t in np.asarray(TURN)])
    np.testing.assert_allclose(motion["guide"].q, highest, rtol=0, atol=1e-8)
    assert kinds(motion) == ["shifted", "shifted"]


# -- thesis 4.3 --------------------------------------------------------------------------------------------


def thesis_pieces(middle):
    """Table 4.3-1: from, to, reference and scale of the angle, all in degrees, and the coefficients by order. The last
    exponent is lost in print; 16 continues the others."""
    return [
        (90.0, 95.0, 90.0, 1.0, {0: 50.0, 3: 0.0008, 4: -0.00008}),
        (95.0, 105.0, 90.0, 1.0, {0: 49.95, 1: 0.02}),
        (105.0, 255.0, 180.0, 75.0, {0: 50 + middle, 2: -14.0625, 12: 7.7344, 16: -4.1367}),
        (255.0, 265.0, 270.0, 1.0, {0: 49.95, 1: -0.02}),
        (265.0, 270.0, 270.0, 1.0, {0: 50.0, 3: -0.0008, 4: -0.00008}),
    ]


def polar(piece, degrees, derivative=0):
    """A piece or its derivatives by the angle in degrees."""
    _, _, reference, scale, terms = piece
    x, total = (degrees - reference) / scale, 0.0
    for n, c in terms.items():
        for k in range(derivative):
            c = c * (n - k)
        total = total + (c * x ** (n - derivative) / scale**derivative if c else 0.0)
    return total


def jumps(middle):
    """Of rho and its first two derivatives, per degree, at 90, 95, 105, 255, 265 and 270 degrees."""
    dwells = [(0.0, 90.0, 0.0, 1.0, {0: 50.0}), (270.0, 360.0, 0.0, 1.0, {0: 50.0})]
    chain = [dwells[0], *thesis_pieces(middle), dwells[1]]
    return np.array([[polar(b, b[0], k) - polar(a, b[0], k) for k in range(3)] for a, b in itertools.pairwise(chain)])


def test_thesis_cam_is_smooth_but_for_its_rounded_coefficients():
    """Thesis 4.3. As printed, rho jumps by 5e-5 mm at 105 and 255 degrees; with 10.7148 it does not."""
    printed, mended = jumps(10.71475), jumps(10.7148)
    np.testing.assert_allclose(printed[:, 0], [0, 0, -5e-5, 5e-5, 0, 0], rtol=0, atol=1e-13)
    np.testing.assert_allclose(mended[:, 0], 0, rtol=0, atol=1e-13)
    slope, curve = mended[:, 1:].T
    np.testing.assert_allclose(slope, [0, 0, -8e-6, -8e-6, 0, 0], rtol=0, atol=1e-15)
    np.testing.assert_allclose(curve, [0, 0, 7.8e-3 / 75**2, -7.8e-3 / 75**2, 0, 0], rtol=0, atol=1e-15)


def thesis_rim() -> mbs.Profile:
    """The cam of thesis 4.3: half a circle of rho0 = 50 mm, and five polynomials."""
    deg = np.deg2rad
    pieces = [
        mbs.Polynomial(
            [terms.get(n, 0.0) for n in ORDERS], ORDERS, deg(a), deg(b), reference=deg(reference), scale=deg(scale)
        )
        for a, b, reference, scale, terms in thesis_pieces(10.7148)
    ]
    return mbs.Profile.chain([mbs.Arc((0.0, 0.0), 50.0, -pi / 2, pi), *pieces], smooth=True)


@pytest.mark.long
def test_thesis_cam_lifts_its_roller():
    """Thesis 4.3, with a roller of 5 mm."""
    rim = thesis_rim()
    follower = mbs.Profile.chain(tip("roller", 5.0), closed=False, smooth=True)
    motion = run(radial_cam(rim, follower, 60.0), {"O": turn(-2 * pi)}, TURN)

    def rho(a):
        degrees, R, dR = np.rad2deg(a), np.full_like(a, 50.0), np.zeros_like(a)
        for piece in thesis_pieces(10.7148):
            on = (piece[0] <= degrees) & (degrees < piece[1])
            R[on], dR[on] = polar(piece, degrees[on]), np.rad2deg(polar(piece, degrees[on], 1))
        return R, dR

    q, v = Envelope(rho, "roller", 5.0).along(0.0, 2 * pi, TURN)
    np.testing.assert_allclose(motion["guide"].q, q, rtol=0, atol=1e-8)
    np.testing.assert_allclose(motion["guide"].v, v, rtol=0, atol=1e-8)
    assert kinds(motion) == ["transition"] * 6


# -- tests/cases/kin_geneva.json -----------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("n", [3, 4, 5, 6, 7, 8, 10, 12])
def test_geneva_wheel(n):
    """The pin and the wall that it pushes, through one step, against the handbook's table and the closed form."""
    row = case("kin_geneva")["confirmed"][str(n)]
    ratio, half, r = np.sin(pi / n), pi / 2 - pi / n, 0.05
    wall = mbs.Profile.chain([mbs.Line((1.2 * np.cos(pi / n), -r), (0.5 * (1 - ratio), -r))], closed=False)
    mech = mbs.Mechanism(
        [
            mbs.Body("crank", profiles={"pin": mbs.disc(r, (ratio, 0.0))}),
            mbs.Body("wheel", profiles={"wall": wall}),
        ],
        [
            mbs.Revolute("A", "ground", "crank"),
            mbs.Revolute("B", "ground", "wheel", (1.0, 0.0), start=pi + pi / n - 0.02),
            mbs.Contact("C", "crank.pin", "wheel.wall", active=True),
        ],
    )
    # Chebyshev's points between the entry and the middle, and the two ends
    x = np.cos(pi * (np.arange(64) + 0.5) / 64)[::-1]
    ts = np.concatenate([[-half], half * (x - 1) / 2, [0.0, half / 2, half]])
    motion = run(mech, {"A": turn(1.0)}, ts)
    beta = lambda t: pi - jnp.arctan2(ratio * jnp.sin(t), 1 - ratio * jnp.cos(t))
    same_motion(motion["B"], rates(beta, ts), 1e-10)
    v, a = -motion["B"].v, -motion["B"].a
    curve = Chebyshev.fit(ts[1:65], a[1:65], 50, domain=[-half, 0.0])
    peak = max((float(z.real) for z in curve.deriv().roots() if abs(z.imag) < 1e-6 and -half < z.real < 0), key=curve)
    c = (1 + ratio**2) / (4 * ratio)
    where = np.arccos(np.sqrt(c**2 + 2) - c)
    assert float(v[65]) == pytest.approx(row["max_vel_ratio"], rel=1e-12)
    assert float(a[0]) == pytest.approx(row["init_acc"], rel=1e-12)
    assert curve(peak) == pytest.approx(row["max_acc"], rel=1e-11)
    assert -peak == pytest.approx(where, abs=1e-9)
    assert np.rad2deg(-peak) == pytest.approx(row["at_deg"], abs=1e-6)


# -- involute gears ----------------------------------------------------------------------------------------


def mesh(z1, z2, m=2.0):
    """How far the first of two gears turns from the pitch point to the last contact of a pair of teeth, and from the
    first contact to the pitch point, its flank ahead."""
    alpha = pi / 9

    def along(z):
        base, tip = m * z / 2 * np.cos(alpha), m * (z / 2 + 1)
        return np.sqrt(tip**2 - base**2) - m * z / 2 * np.sin(alpha)

    base = m * z1 / 2 * np.cos(alpha)
    return along(z1) / base, along(z2) / base


@pytest.mark.long
@pytest.mark.parametrize("z1,z2", [(20, 30), (25, 18)])
def test_involute_flanks_run_at_the_ratio_of_tooth_numbers(z1, z2):
    """The law of gearing, along the whole line of action of one pair of teeth."""
    recess, approach = mesh(z1, z2)
    mech = mbs.Mechanism(
        [
            mbs.Body("pinion", profiles={"flank": mbs.involute_flank(2.0, z1)}),
            mbs.Body("wheel", profiles={"flank": mbs.involute_flank(2.0, z2)}),
        ],
        [
            mbs.Revolute("A", "ground", "pinion"),
            mbs.Revolute("B", "ground", "wheel", (float(z1 + z2), 0.0)),
            mbs.Contact("C", "pinion.flank", "wheel.flank", active=True),
        ],
    )
    at_pitch = pi / (2 * z1)  # the middle of the tooth, when its lower flank is at the pitch point
    ts = np.linspace(at_pitch - 0.98 * recess, at_pitch + 0.98 * approach, 41)
    ts = -ts[::-1]
    follow = pi + pi / z2 + z1 / z2 * ts
    motion = run(mech, {"A": turn(-1.0)}, ts, estimate={"B": follow[0] + 0.005})
    np.testing.assert_allclose(motion["B"].q, follow, rtol=0, atol=1e-10)
    np.testing.assert_allclose(motion["B"].v, z1 / z2, rtol=0, atol=1e-10)
    np.testing.assert_allclose(motion["B"].a, 0, rtol=0, atol=1e-9)
    assert int(motion.events.count) == 0 and bool(jnp.all(motion["C"].active))
