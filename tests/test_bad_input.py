"""Bad input gets an error that names the culprit."""

import ast
import math

import jax.numpy as jnp
import numpy as np
import pytest

import mbsjax as mbs
from tests.mechanisms import bodies, four_bar, slider_crank, turn


def hinge(name="O", a="ground", b="bob", *args, **kw):
    return mbs.Revolute(name, a, b, *args, **kw)


CULPRITS = {
    "unknown body": (lambda: mbs.Mechanism(bodies("bob"), [hinge(b="bop")]), "'O'.*'bop'.*did you mean 'bob'"),
    "unknown body of a gauge": (
        lambda: mbs.Mechanism(bodies("bob"), [hinge()], [mbs.Distance("d", "ground", "nobody")]),
        "'d'.*'nobody'",
    ),
    "duplicate body": (lambda: mbs.Mechanism(bodies("bob", "bob"), [hinge()]), "'bob'"),
    "duplicate joint": (lambda: mbs.Mechanism(bodies("bob"), [hinge(), hinge()]), "'O'"),
    "name of a body given to a joint": (lambda: mbs.Mechanism(bodies("bob"), [hinge("bob")]), "'bob'"),
    "name with a dot": (lambda: hinge("a.b"), "'a.b'"),
    "joint of a body with itself": (lambda: hinge(a="bob"), "'O'.*'bob'"),
    "body not connected": (lambda: mbs.Mechanism(bodies("bob", "loner"), [hinge()]), "'loner'.*not connected"),
    "negative mass": (lambda: mbs.Body("bob", mass=-1.0), "mass of body 'bob'"),
    "mass that is no number": (lambda: mbs.Body("bob", mass="heavy"), "mass of body 'bob'.*'heavy'"),
    "negative inertia": (lambda: mbs.Body("bob", mass=1.0, inertia=-1.0), "body 'bob'"),
    "products of inertia too large": (lambda: mbs.Body("bob", mass=1.0, inertia=(1, 1, 1, 2, 0, 0)), "body 'bob'"),
    "asymmetric inertia": (lambda: mbs.Body("bob", inertia=np.triu(np.ones((3, 3)))), "'bob' is not symmetric"),
    "inertia of a wrong shape": (lambda: mbs.Body("bob", inertia=(1.0, 2.0)), "inertia of body 'bob'"),
    "axis of zero length": (lambda: hinge(axis=(0.0, 0.0, 0.0)), "'O'.*zero length"),
    "planar axis of zero length": (lambda: mbs.Prismatic("P", "ground", "bob", axis=(0.0, 0.0)), "'P'.*zero length"),
    "gauge axis of zero length": (lambda: mbs.Offset("y", "ground", "bob", axis=(0.0, 0.0)), "'y'.*zero length"),
    "non-finite frame": (lambda: hinge("O", "ground", "bob", (np.nan, 0.0)), "frame_a of joint 'O'.*finite"),
    "non-finite mass": (lambda: mbs.Body("bob", mass=np.inf), "mass of body 'bob'.*finite"),
    "frame of a wrong shape": (lambda: hinge("O", "ground", "bob", (1.0,)), "frame_a of joint 'O'"),
    "frame that is not a pose": (lambda: hinge("O", "ground", "bob", np.diag([1.0, 1, 2, 1])), "frame_a of joint 'O'"),
    "left-handed frame": (lambda: hinge("O", "ground", "bob", np.diag([1.0, 1, -1, 1])), "frame_a of joint 'O'"),
    "axis given twice": (lambda: hinge("O", "ground", "bob", mbs.at(0, 0, 1), axis=(1.0, 0.0)), "frame_a of joint 'O'"),
    "axis of another dimension": (lambda: hinge("O", "ground", "bob", (0.0, 0.0), axis=(0, 0, 1.0)), "frame_a.*'O'"),
    "start of a wrong length": (lambda: hinge(start=(1.0, 2.0)), "start of joint 'O'"),
    "lead of zero": (lambda: mbs.Screw("S", "ground", "bob", lead=0.0), "'S'"),
    "radius of zero": (lambda: mbs.RackPinion("R", "ground", "bob", radius=0.0), "'R'"),
    "negative gear radius": (lambda: mbs.Gear("G", "ground", "bob", radii=(1.0, -1.0)), "'G'"),
    "equal radii inside": (lambda: mbs.Rolling("G", "ground", "bob", radii=(1.0, 1.0), internal=True), "'G'"),
    "gear without ratio": (lambda: mbs.Gear("G", "ground", "bob"), "'G'.*ratio"),
    "length of zero": (lambda: mbs.RevoluteSpherical("L", "ground", "bob", length=0.0), "'L'"),
    "distance of zero": (lambda: mbs.Distance("d", "ground", "bob", value=0.0), "'d'.*positive"),
    "points of two dimensions": (lambda: mbs.Distance("d", "ground", "bob", (0.0, 0.0), (0.0, 0.0, 0.0)), "'d'"),
    "planar by force": (
        lambda: mbs.Mechanism(bodies("bob"), [mbs.Spherical("S", "ground", "bob")], planar=True),
        "'S' is described in space",
    ),
    "angle in space": (
        lambda: mbs.Mechanism(bodies("bob"), [mbs.Spherical("S", "ground", "bob")], [mbs.Angle("a", "ground", "bob")]),
        "'a'",
    ),
    "joint among the bodies": (lambda: mbs.Mechanism([hinge()], [hinge()]), "bodies"),
    "estimate of an unknown joint": (lambda: slider_crank().estimate({"Q": 1.0}), "'Q'"),
    "estimate of a wrong length": (lambda: slider_crank().estimate({"A": (1.0, 2.0)}), "'A'.*1 number"),
    "unknown coordinate": (lambda: slider_crank().estimate({"A.travel": 1.0}), "'A.travel'.*'A.angle'"),
    "quaternion by parts": (
        lambda: mbs.Mechanism(bodies("bob"), [mbs.Spherical("S", "ground", "bob")]).estimate({"S.rotation_x": 0.0}),
        "'S.rotation_x'.*quaternion",
    ),
}


@pytest.mark.parametrize("make, message", CULPRITS.values(), ids=CULPRITS)
def test_construction_names_the_culprit(make, message):
    with pytest.raises(ValueError, match=message):
        make()


TS = jnp.linspace(0.0, 1.0, 21)


@pytest.mark.parametrize(
    "drive, message",
    [
        ({}, "1 driver.*missing.*1 degree.*'A'"),
        ({"A": turn(), "P": 5.0}, "'P' over-determines.*follows from 'A'"),
        ({"A": turn(), "Q": turn()}, "'Q'"),
        ({"A": turn(), "A.travel": turn()}, "'A.travel'"),
    ],
)
def test_drivers_must_fit_the_freedom(drive, message):
    with pytest.raises(ValueError, match=message):
        mbs.kinematics(slider_crank(), drive, TS, estimate={"P": 5.0})


def test_a_driver_of_something_that_cannot_move():
    stiff = mbs.Mechanism(
        bodies("left", "right"),
        [
            mbs.Revolute("A", "ground", "left", start=1.0),
            mbs.Revolute("B", "ground", "right", (5.0, 0.0), start=2.0),
            mbs.Revolute("C", "left", "right", (3.0, 0.0), (4.0, 0.0)),
        ],
    )
    with pytest.raises(ValueError, match="'A'.*cannot move at all"):
        mbs.kinematics(stiff, {"A": turn()}, TS)


@pytest.mark.parametrize("ts", [[], [0.0, 0.0], [1.0, 0.0], [[0.0, 1.0]], [0.0, np.nan]])
def test_times_must_be_a_row_that_increases(ts):
    with pytest.raises(ValueError, match="times"):
        mbs.kinematics(slider_crank(), {"A": turn()}, ts)


def test_a_loop_that_cannot_close_is_named_with_its_gap():
    """Crank 1, coupler 1, follower 1 cannot bridge pivots 5 apart: 2 are missing."""
    with pytest.raises(
        ValueError, match=r"ground-crank-coupler-follower-ground through joint 'C' stays open by at least 2"
    ):
        mbs.assemble(four_bar(1.0, 1.0, 1.0, (5.0, 0.0)))


def test_a_gauge_that_cannot_have_its_value_is_named():
    mech = mbs.Mechanism(
        bodies("bob"), [mbs.Revolute("O", "ground", "bob")], [mbs.Distance("far", "ground", "bob", None, (1.0, 0.0))]
    )
    with pytest.raises(ValueError, match="gauge 'far'"):
        mbs.assemble(mech, fixed={"far": 3.0})


def test_a_poor_estimate_is_told_from_an_impossible_mechanism():
    """With one step allowed, assembly from afar fails; the advice must then assemble in that one step."""
    mech = slider_crank()
    with pytest.raises(ValueError, match="too poor.*for instance from") as caught:
        mbs.assemble(mech, {"A": 2.0, "B": -3.0, "C": 2.0, "P": 9.0}, max_steps=1)
    text = str(caught.value).split("from ")[1]
    advice = ast.literal_eval(text)
    assert float(mbs.assemble(mech, advice, max_steps=5).residual) < 1e-11


def test_inertias_of_textbooks_draw_a_warning():
    """(4, 2, 0) is the inertia of no body, and still that of many an exercise."""
    with pytest.warns(UserWarning, match="inertia of body 'bob': of its principal moments 0, 2, 4 one is larger"):
        body = mbs.Body("bob", mass=1.0, inertia=(4.0, 2.0, 0.0))
    assert np.diag(body.inertia).tolist() == [4.0, 2.0, 0.0]


def test_results_read_by_an_unknown_name_tell_the_known_ones():
    mech = slider_crank()
    found = mbs.assemble(mech, {"P": 5.0})
    motion = mbs.kinematics(mech, {"A": mbs.constant_speed(1.0)}, TS, estimate={"P": 5.0})
    efforts = mbs.inverse_dynamics(mech, {"A": mbs.constant_speed(1.0)}, TS, estimate={"P": 5.0})
    for read in (found, motion, motion.at(0)):
        with pytest.raises(KeyError, match="unknown coordinate, gauge or contact 'PP'; there are 'A', 'B', 'C', 'P'"):
            read["PP"]
    with pytest.raises(KeyError, match="'P' is neither driven nor a contact; there are 'A'"):
        efforts["P"]
    with pytest.raises(IndexError, match=f"no output time number {len(TS)}"):
        motion.at(len(TS))


def test_a_dead_center_to_begin_from_is_called_so():
    """Pushed by its slider, a crank in line with its rod does not know which way to turn."""
    for speed in (1.0, -1.0):
        with pytest.raises(RuntimeError, match="t = 0, where it begins, the mechanism stands in a dead center"):
            mbs.kinematics(slider_crank(2.0, 3.5), {"P": mbs.constant_speed(speed, 5.5)}, TS, estimate={"P": 5.5})


@pytest.mark.parametrize(
    "options, message",
    [
        ({"rtol": -1.0}, "`rtol` must not be negative, got -1"),
        ({"atol": "1e-9"}, "`atol` must be made of real numbers, got '1e-9'"),
        ({"max_steps": 0}, "`max_steps` must be at least 1, got 0"),
        ({"max_events": True}, "`max_events` must be a whole number, got True"),
        ({"rest_speed": -1.0}, "`rest_speed` must not be negative"),
        ({"t1": -10.0}, "the output times must increase, from 0 to -10"),
    ],
)
def test_options_of_a_simulation(options, message):
    bob = mbs.Mechanism([mbs.Body("bob", mass=1.0)], [hinge("O", "ground", "bob", (0.0, 0.0), (1.0, 0.0))])
    with pytest.raises(ValueError, match=message):
        mbs.simulate(bob, None, **{"t1": 1.0, **options})


BAD_DRIVERS = {
    "a vector": (lambda t: jnp.stack([t, t]), r"the driver of 'A' must give one number, got shape \(2,\)"),
    "math": (lambda t: math.sin(t), "the driver of 'A' cannot be evaluated.*JAX operations"),
    "numpy": (lambda t: np.sin(t), "the driver of 'A' cannot be evaluated.*JAX operations"),
    "nothing": (lambda t: None, "the driver of 'A' cannot be evaluated"),
}


@pytest.mark.parametrize("name", BAD_DRIVERS)
def test_drivers_that_are_no_functions_of_time(name):
    driver, message = BAD_DRIVERS[name]
    with pytest.raises(ValueError, match=message):
        mbs.kinematics(slider_crank(), {"A": driver}, TS)


def test_what_is_prescribed_is_blamed_by_what_it_is():
    mech, turn = slider_crank(), mbs.constant_speed(1.0)
    with pytest.raises(ValueError, match="a position names an unknown coordinate or gauge 'Z'"):
        mbs.state(mech, {"Z": 1.0})
    with pytest.raises(ValueError, match="a driver names an unknown coordinate or gauge 'Z'"):
        mbs.state(mech, {}, drive={"Z": turn})
    with pytest.raises(ValueError, match="'A' is prescribed twice, the second time as 'A.angle'"):
        mbs.state(mech, drive={"A": turn, "A.angle": turn})
    twice = "over-determines the motion: .* 1 degree.* 'P' already follows from 'A'"
    with pytest.raises(ValueError, match=f"the driver of 'P' {twice}"):
        mbs.state(mech, drive={"A": turn, "P": turn})
    with pytest.raises(ValueError, match=f"the position of 'P' {twice}"):
        mbs.assemble(mech, fixed={"A": 0.0, "P": 1.0})


def test_unknown_names_in_results():
    found = mbs.assemble(slider_crank(), {"P": 5.0})
    for read in (
        lambda: found.point("rodd"),
        lambda: found.point("rod", "tip"),
        lambda: found.pose("x"),
    ):
        with pytest.raises(ValueError, match="unknown"):
            read()
    with pytest.raises(ValueError, match="point of body 'rod'"):
        found.point("rod", (1.0, 2.0, 3.0, 4.0))


def test_failures_are_codes_where_nothing_can_be_raised():
    impossible = mbs.assemble(four_bar(1.0, 1.0, 1.0, (5.0, 0.0)), throw=False)
    assert bool(impossible.result == mbs.RESULTS.not_assembled)
    drive = {"A": lambda t: jnp.where(t > 0.5, jnp.nan, t)}
    broken = mbs.kinematics(slider_crank(), drive, TS, estimate={"P": 5.0}, throw=False)
    assert bool(broken.result == mbs.RESULTS.nonfinite) and 0.4 < float(broken.stopped_at) <= 0.51
    assert np.isfinite(broken.q[:10]).all() and np.isnan(broken.q[11:]).all()
    with pytest.raises(RuntimeError, match="NaN"):
        mbs.kinematics(slider_crank(), drive, TS, estimate={"P": 5.0})


def test_float32_draws_one_warning(tmp_path):
    import subprocess
    import sys

    code = (
        "import warnings, mbsjax as mbs\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n"
        "    [mbs.Body('bob', mass=1.0) for _ in range(3)]\n"
        "assert [w for w in seen if 'jax_enable_x64' in str(w.message)].__len__() == 1\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
