"""Statics and inverse dynamics of model files, and measures of forces, against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from click.testing import CliRunner

import mbsjax as mbs
from mbsjax import plots
from mbsjax._cli.main import main
from mbsjax._dynamics.reaction import _beside, _slides
from mbsjax._numerics.groups import SE3
from tests.mechanisms import four_bar
from tests.viewing import content, numbers


# A weight at the tip of a lever, held by a spring that acts along y, `arm` from the pivot. Nothing has mass.
LEVER = """
[parameters]
length = 0.5
arm = 0.2
weight = 12.0
stiffness = 800.0
free = 0.05

[bodies.lever]
points.tip = ["length", 0]

[joints]
O = {type = "revolute", body_a = "ground", body_b = "lever"}

[gauges]
height = {type = "offset", body_a = "ground", body_b = "lever", point_b = ["arm", 0], axis = [0, 1]}

[forces]
spring = {type = "spring", on = "height", stiffness = "stiffness", free_length = "free"}
load = {type = "load", body = "lever", force = [0, "-weight"], point = ["length", 0]}

[equilibrium]
estimate = {O = 0.1}

[study]
of = "equilibrium"

[tolerances]
weight = 0.5
arm = 0.01

[measures]
angle = "O"
held = "O.fy"
pull = "spring.force"
tip = "lever.tip.y"
stored = "potential"
"""

# A slider-crank whose slider alone has mass; a gas pushes it back.
ENGINE = """
[parameters]
crank = 0.05
rod = 0.15
mass = 0.8
gas = 300.0
speed = 20.0

[bodies.crank]

[bodies.rod]

[bodies.slider]
mass = "mass"
inertia = 0.01

[joints]
A = {type = "revolute", body_a = "ground", body_b = "crank"}
B = {type = "revolute", body_a = "crank", body_b = "rod", frame_a = ["crank", 0]}
C = {type = "revolute", body_a = "rod", body_b = "slider", frame_a = ["rod", 0]}
P = {type = "prismatic", body_a = "ground", body_b = "slider", start = "crank + rod"}

[forces]
gas = {type = "load", body = "slider", force = ["-gas", 0]}

[drive]
A = "0.5 + speed*t"

[kinematics]
t1 = 0.1
outputs = 7

[study]
of = "inverse"

[tolerances]
crank = 0.001
mass = 0.05

[measures]
torque = "max(A.effort)"
wall = "P.fy"
rod = "C.reaction[2]"
power = "power[2]"
moving = "kinetic[2]"
"""


def at_rest(weight, arm, length=0.5, stiffness=800.0, free=0.05):
    """Angle, reaction, tension, height of the tip and energy: the moments about the pivot balance."""
    tension = -weight * length / arm
    height = free + tension / stiffness
    angle = np.arcsin(height / arm)
    return angle, weight + tension, tension, length * np.sin(angle), tension**2 / (2 * stiffness)


def moving(crank, mass, rod=0.15, gas=300.0, speed=20.0, n=7):
    """Torque by virtual work, force of the wall, force in the rod, power and energy, along the motion."""
    phi = 0.5 + speed * np.linspace(0.0, 0.1, n)
    root = np.sqrt(rod**2 - (crank * np.sin(phi)) ** 2)
    slope = -crank * np.sin(phi) - crank**2 * np.sin(phi) * np.cos(phi) / root
    bend = -crank * np.cos(phi) - crank**2 * np.cos(2 * phi) / root - (crank**2 * np.sin(2 * phi) / 2) ** 2 / root**3
    push = mass * bend * speed**2 + gas  # along x, on the slider
    torque = push * slope
    return torque, push * crank * np.sin(phi) / root, push * rod / root, torque * speed, mass * (slope * speed) ** 2 / 2


@pytest.fixture(scope="module")
def lever():
    return mbs.loads(LEVER, source="lever")


@pytest.fixture(scope="module")
def engine():
    return mbs.loads(ENGINE, source="engine")


@pytest.mark.long
def test_a_lever_rests_where_its_moments_balance(lever):
    found = lever.measured(lever.equilibrium())
    np.testing.assert_allclose([*map(float, found.values())], at_rest(12.0, 0.2), rtol=1e-12)


@pytest.mark.long
def test_a_study_of_rest_has_the_slopes_of_the_closed_form(lever):
    slopes = np.asarray(mbs.first_order(lever.study()).slopes)
    h = 1e-30
    steps = [np.imag(at_rest(12.0 + 1j * h, 0.2)) / h, np.imag(at_rest(12.0, 0.2 + 1j * h)) / h]
    np.testing.assert_allclose(slopes, np.transpose(steps), rtol=1e-9, atol=1e-12)


def test_pictures_and_pages_of_a_rest_show_what_its_joints_carry(lever):
    rest, held = lever.equilibrium(), at_rest(12.0, 0.2)[1]
    (arrow,) = [x for x in plots.mechanism(rest).collections if hasattr(x, "U")]
    assert arrow.V[0] < 0 and abs(arrow.U[0]) < 1e-9 * abs(arrow.V[0])
    assert arrow.XY.tolist() == [[0.0, 0.0]]
    data = content(mbs.view(rest, title="lever"))
    (pivot,) = data["reactions"]
    told = [numbers(x)[0] for x in (*pivot["point"], *pivot["normal"], pivot["force"])]
    np.testing.assert_allclose(told, [0, 0, 0, -1, -held], rtol=1e-8, atol=1e-9)
    assert (data["kind"], pivot["name"], data["contacts"]) == ("rest", "O", [])
    np.testing.assert_allclose(numbers(data["ties"][0]["push"])[0], -at_rest(12.0, 0.2)[2], rtol=1e-8)
    with pytest.raises(ValueError, match="`drive` and `estimate` are for a mechanism"):
        mbs.view(rest, estimate={"O": 0.1})


DRIVEN = (
    LEVER
    + """
[drive]
height = "0.01*t"
"""
)


def test_drivers_that_move_leave_nothing_at_rest(lever):
    """It is said at once; without them, it rests as if there were none."""
    with pytest.raises(mbs.FileError, match=r'take them out with --free height, or free = \["height"\] here'):
        mbs.loads(DRIVEN, source="lever").equilibrium()
    free = lambda name: mbs.loads(DRIVEN.replace("[equilibrium]", f'[equilibrium]\nfree = ["{name}"]'), source="lever")
    found = free("height").measured(free("height").equilibrium())
    np.testing.assert_allclose([*map(float, found.values())], at_rest(12.0, 0.2), rtol=1e-12)
    with pytest.raises(mbs.FileError, match="lever, line 23, equilibrium.free: .*driver 'A'; there are 'height'"):
        free("A").check()


def test_a_lever_with_mass_swings_about_its_rest(lever):
    """U'' = k a^2 cos(angle)^2 at rest, and I = m l^2."""
    heavy = LEVER.replace('points.tip = ["length", 0]', 'mass = 2\ncenter = ["length", 0]\npoints.tip = ["length", 0]')
    rest = mbs.loads(heavy, source="lever").equilibrium()
    expected = np.sqrt(800.0 / 2.0) * 0.2 / 0.5 * np.cos(at_rest(12.0, 0.2)[0])
    np.testing.assert_allclose(mbs.linearize(rest).frequencies, [expected], rtol=1e-9)
    with pytest.raises(ValueError, match="has its own state and drivers"):
        mbs.linearize(rest, rest.state)
    with pytest.raises(ValueError, match="give a state of the mechanism"):
        mbs.linearize(rest.mech)


def test_what_holds_a_lever_that_is_fixed(lever):
    model = mbs.loads(LEVER.replace("estimate = {O = 0.1}", "fixed = {O = 0.3}"), source="lever")
    rest = model.equilibrium()
    tension = 800.0 * (0.2 * np.sin(0.3) - 0.05)
    expected = (12.0 * 0.5 + tension * 0.2) * np.cos(0.3)
    np.testing.assert_allclose(rest.effort("O"), expected, rtol=1e-12)
    np.testing.assert_allclose(rest.reaction("O").torque[0], expected, rtol=1e-12)
    np.testing.assert_allclose(rest.force("spring").force, tension, rtol=1e-12)


@pytest.mark.long
def test_efforts_and_reactions_of_a_slider_crank_are_those_of_virtual_work(engine):
    efforts = engine.inverse_dynamics()
    torque, wall, rod, power, kinetic = moving(0.05, 0.8)
    columns = efforts.columns()
    for name, expected in (("A.effort", torque), ("P.fy", wall), ("C.reaction", rod), ("power", power),
                           ("kinetic", kinetic), ("gas.force", np.full(7, 300.0)), ("P.fx", np.zeros(7)),
                           ("P.across", np.abs(wall)), ("C.across", rod)):  # fmt: skip
        np.testing.assert_allclose(columns[name], expected, rtol=1e-10, atol=1e-9, err_msg=name)


@pytest.mark.long
def test_a_study_of_efforts_has_the_slopes_of_the_closed_form(engine):
    study = engine.study()
    slopes, h = np.asarray(mbs.first_order(study).slopes), 1e-30

    def told(crank, mass):
        torque, wall, rod, power, kinetic = moving(crank, mass)
        return np.array([torque[np.argmax(torque.real)], *wall, rod[2], power[2], kinetic[2]])

    np.testing.assert_allclose(study.at_nominal.values, told(0.05, 0.8), rtol=1e-10)
    steps = [np.imag(told(0.05 + 1j * h, 0.8)) / h, np.imag(told(0.05, 0.8 + 1j * h)) / h]
    np.testing.assert_allclose(slopes, np.transpose(steps), rtol=1e-8, atol=1e-9)


@pytest.mark.long
def test_a_gradient_in_reverse_goes_through_reactions(engine):
    pressed = lambda r: jnp.sum(engine.inverse_dynamics({"crank": r}, throw=False).reaction("P").force_ground[:, 1])
    h = 1e-30
    expected = np.imag(np.sum(moving(0.05 + 1j * h, 0.8)[1])) / h
    np.testing.assert_allclose(jax.grad(pressed)(jnp.asarray(0.05)), expected, rtol=1e-8)


def four_bar_by_newton_and_euler(turned, speed, acceleration, links, centers, masses, inertias, pivot, g):
    """Angles of the links, and the forces A, B, C, D on the second bodies of the joints with the torque of the crank:
    nine equations, in complex numbers for the plane."""
    a, b, c = links
    B = a * np.exp(1j * turned)
    apart = pivot - B
    bend = np.arccos((b**2 + abs(apart) ** 2 - c**2) / (2 * b * abs(apart)))
    C = B + b * np.exp(1j * (np.angle(apart) + bend))
    turns = np.array([turned, np.angle(C - B), np.angle(C - pivot)])
    e = np.exp(1j * turns)
    pairs = np.array([b * 1j * e[1], -c * 1j * e[2]])  # what the rates of coupler and follower do to the loop
    rows = np.stack([pairs.real, pairs.imag])
    solved = lambda left: np.linalg.solve(rows, [-left.real, -left.imag])
    w = np.array([speed, *solved(a * 1j * speed * e[0])])
    curved = a * (1j * acceleration - speed**2) * e[0] - b * w[1] ** 2 * e[1] + c * w[2] ** 2 * e[2]
    al = np.array([acceleration, *solved(curved)])
    origins, begins = np.array([0, B, pivot]), np.array([0, a * (1j * acceleration - speed**2) * e[0], 0])
    at = origins + centers * e
    inertial = masses * (begins + centers * e * (1j * al - w**2) + 1j * g)
    matrix, right = np.zeros((9, 9)), np.zeros(9)
    places = np.array([0, B, C, pivot])
    for k, held in enumerate([{0: 1, 1: -1}, {1: 1, 2: -1}, {2: 1, 3: 1}]):
        for joint, sign in held.items():
            arm = places[joint] - at[k]
            matrix[3 * k : 3 * k + 3, 2 * joint : 2 * joint + 2] = sign * np.array(
                [[1, 0], [0, 1], [-arm.imag, arm.real]]
            )
        right[3 * k : 3 * k + 3] = inertial[k].real, inertial[k].imag, inertias[k] * al[k]
    matrix[2, 8] = 1.0
    found = np.linalg.solve(matrix, right)
    return turns, found[:8].reshape(4, 2), found[8]


@pytest.mark.long
def test_reactions_of_a_four_bar_are_those_of_newton_and_euler():
    links, pivot, g = (2.0, 4.0, 3.0), 4.0 - 1.0j, 9.81
    centers, masses = np.array([0.9 + 0.1j, 2.2 - 0.3j, 1.4 + 0.2j]), np.array([1.5, 2.5, 2.0])
    inertias = np.array([0.3, 1.7, 0.8])
    law = lambda t: 0.3 + 1.5 * t + 0.4 * t**2
    by_hand = lambda t: four_bar_by_newton_and_euler(
        law(t), 1.5 + 0.8 * t, 0.8, links, centers, masses, inertias, pivot, g
    )
    bare = four_bar(*links, (pivot.real, pivot.imag))
    solid = [
        mbs.Body(body.name, mass=m, center=(z.real, z.imag), inertia=i)
        for body, m, z, i in zip(bare.bodies[-3:], masses, centers, inertias)
    ]
    mech = mbs.Mechanism(solid, bare.joints, gravity=(0.0, -g))
    ts, turns = np.array([0.0, 0.7, 1.6]), by_hand(0.0)[0]
    near = {"A": turns[0], "B": turns[1] - turns[0], "D": turns[2]}
    efforts = mbs.inverse_dynamics(mech, {"A": law}, ts, estimate=near)
    expected = [by_hand(t) for t in ts]
    np.testing.assert_allclose(efforts.effort("A"), [torque for *_, torque in expected], rtol=1e-9)
    for k, name in enumerate("ABCD"):
        forces = [forces[k] for _, forces, _ in expected]
        np.testing.assert_allclose(efforts.reaction(name).force_ground, forces, rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize(
    "formula, told",
    [
        ("A.efort", "unknown reading 'A.efort'"),
        ("B.effort", "unknown driver 'B'; there are 'A'"),
        ("A.fz[0]", "a planar mechanism has no z"),
        ("gas.length", "the load 'gas' has no length"),
    ],
)
def test_measures_of_forces_that_are_not_there(engine, formula, told):
    model = mbs.loads(ENGINE.replace("max(A.effort)", formula), source="engine")
    with pytest.raises(mbs.FileError, match=told.replace("[", r"\\[")):
        model.check() and model.measured(engine.inverse_dynamics())


def test_a_driven_motion_and_a_rest_say_what_they_do_not_tell(engine, lever):
    with pytest.raises(mbs.FileError, match='a driven motion tells no effort of .A.: take it of = "inverse"'):
        engine.measured(engine.kinematics())
    with pytest.raises(mbs.FileError, match="a position of rest tells no rates: O.v"):
        mbs.loads(LEVER.replace('"O"', '"O.v"'), source="lever").measured(lever.equilibrium())


@pytest.mark.long
def test_commands_write_what_the_closed_forms_say(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lever.toml").write_text('units = {length = "mm", angle = "deg", force = "N"}\n' + DRIVEN)
    (tmp_path / "engine.toml").write_text(ENGINE)
    done = CliRunner().invoke(main, ["--no-cache", "equilibrium", "lever.toml", "--free", "all"])
    assert done.exit_code == 0, done.output
    told = "no natural frequencies, as something is left to move that has no mass: give mass to 'lever'"
    assert f"the position is stable; {told}" in done.output
    assert {p.name for p in (tmp_path / "lever_equilibrium").iterdir()} == {"results.csv", "mechanism.png", "view.html"}
    rows = dict(line.split(",") for line in (tmp_path / "lever_equilibrium/results.csv").read_text().splitlines()[1:])
    angle, held, *_ = at_rest(12.0, 0.2)
    np.testing.assert_allclose([float(rows["O.q"]), float(rows["O.fy"])], [angle, held], rtol=1e-12)
    printed = {line.split()[0]: line.split()[1:] for line in done.output.splitlines() if line.startswith("O.")}
    assert (printed["O.q"][1], printed["O.fy"][1], printed["O.moment"][1]) == ("deg", "N", "N·mm")
    shown = [float(printed["O.q"][0]), float(printed["O.fy"][0])]
    assert shown == [float(f"{x:.6g}") for x in (np.rad2deg(angle), held / 1000)]  # six digits, and no noise
    assert printed["O.fx"][0] == printed["O.moment"][0] == "0"
    done = CliRunner().invoke(main, ["--no-cache", "inverse", "engine.toml", "--pictures", "svg", "--over", "A"])
    assert done.exit_code == 0, done.output
    table = np.genfromtxt(tmp_path / "engine_inverse/results.csv", delimiter=",", names=True, deletechars="")
    torque = moving(0.05, 0.8)[0]
    np.testing.assert_allclose(table["A.effort"], torque, rtol=1e-10)
    k = int(np.argmax(np.abs(torque)))
    line = next(line.split() for line in done.output.splitlines() if line.startswith("A.effort"))
    assert [float(line[1]), float(line[2])] == [float(f"{x:.6g}") for x in (torque[k], k / 60)]
    assert next(line.split() for line in done.output.splitlines() if line.startswith("B.moment")) == ["B.moment", "0"]
    names = {"results.csv", "efforts.svg", "ghosts.svg", "view.html"}
    assert {p.name for p in (tmp_path / "engine_inverse").iterdir()} == names
    page = (tmp_path / "engine_inverse/view.html").read_text(encoding="utf-8")
    panels = content(mbs.Viewer(page))["panels"]
    assert [p["key"] for p in panels] == ["A.effort", "A.q"] + [f"{j}.reaction" for j in "ABCP"]
    assert (panels[0]["label"], panels[-1]["lines"][1]["label"]) == ("A: driving torque", "y")
    told = [numbers(panels[k]["lines"][i]["y"]) for k, i in ((0, 0), (-1, 1))]
    np.testing.assert_allclose(told, moving(0.05, 0.8)[:2], rtol=1e-6, atol=1e-6)
    picture = (tmp_path / "engine_inverse/efforts.svg").read_text(encoding="utf-8")
    assert ">driving torque</text>" in picture and ">A [rad]</text>" in picture and ">time</text>" not in picture


def test_forces_are_drawn_over_an_angle(engine, tmp_path, monkeypatch):
    found = engine.inverse_dynamics()
    for axis in plots.efforts(found, against="A"):
        for line in axis.lines:
            np.testing.assert_array_equal(line.get_xdata(), found.motion["A"].q)
    (tmp_path / "engine.toml").write_text(ENGINE)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["--no-cache", "inverse", "engine.toml", "--over", "crank"], env={"COLUMNS": "200"})
    assert done.exit_code == 2 and "unknown coordinate 'crank'" in done.output and "'A', 'B', 'C', 'P'" in done.output
    assert [p.name for p in tmp_path.iterdir()] == ["engine.toml"]


INCLINE = """
gravity = [0, -10]
[parameters]
slope = 0.3
mu = 0.4
[bodies.block]
mass = 2
[joints.x]
type = "prismatic"
body_a = "ground"
body_b = "block"
frame_a = {x = 0, y = 0, angle = "slope"}
frame_b = {x = 0, y = 0, angle = 0}
friction = {sliding = "mu"}
[equilibrium]
fixed = {x = 0.0}
"""


def test_friction_holds_a_block_on_an_incline_up_to_its_angle():
    model = mbs.loads(INCLINE, source="incline")
    rest = model.equilibrium()
    np.testing.assert_allclose(rest.effort("x"), 20 * np.sin(0.3), rtol=1e-12)
    columns = rest.columns()  # what holds it is part of the reaction, and not across the slide
    np.testing.assert_allclose([columns["x.reaction"], columns["x.across"]], [20, 20 * np.cos(0.3)], rtol=1e-12)
    held = model.holding()
    np.testing.assert_allclose(held.share, np.tan(0.3) / 0.4, rtol=1e-9)
    assert bool(held.held) and not bool(model.holding({"mu": 0.3}).held)


def test_directions_in_which_joints_slide():
    """In the frame of the second body: a cylinder along its axis, turned or not, a plane in two, a screw in none."""
    q, force = jnp.array([0.7, 0.4]), jnp.array([3.0, 4.0, 12.0])
    bar = mbs.Cylindrical("c", "ground", "bar").pair
    np.testing.assert_allclose(_slides(bar, q, SE3), [[0], [0], [1]], atol=1e-15)
    np.testing.assert_allclose(_beside(force, _slides(bar, q, SE3)), [3, 4, 0], atol=1e-14)
    table = mbs.Planar("p", "ground", "table").pair
    along = _slides(table, jnp.array([0.7, 0.4, 0.2]), SE3)
    np.testing.assert_allclose(_beside(force, along), [0, 0, 12], atol=1e-14)
    nut = mbs.Screw("s", "ground", "nut", lead=0.1).pair
    np.testing.assert_allclose(_beside(force, _slides(nut, q[:1], SE3)), force, atol=1e-15)
    skew = jnp.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(_beside(force, skew), [0, 0, 12], atol=1e-14)


DROP = """
gravity = [0, -10]
[parameters]
height = 0.2
[bodies.ground.profiles.floor]
type = "chain"
closed = false
elements = [{type = "line", start = [1, 0], end = [-1, 0]}]
[bodies.ball]
mass = 2.0
profiles.rim = {type = "disc", radius = 0.1}
[joints]
y = {type = "prismatic", body_a = "ground", body_b = "ball", axis = [0, 1], start = "0.1 + height"}
[contacts]
C = {profile_a = "ground.floor", profile_b = "ball.rim", restitution = 0.5}
[simulate]
t1 = 0.45
outputs = 10
max_steps = 64
max_events = 4
[measures]
first = "C.impulse[0]"
second = "C.impulse[1]"
none = "C.impulse[3]"
falling = "kinetic[2] + potential[2] - potential[0]"
last = "C.impact[-1]"
weakest = "C.impulse[-1]"
"""


@pytest.mark.long
def test_impulses_of_a_ball_that_bounces():
    model = mbs.loads(DROP, source="drop")
    found = model.measured(model.simulate())
    speed = np.sqrt(2 * 10 * 0.2)
    np.testing.assert_allclose(found["first"], 2 * 1.5 * speed, rtol=1e-7)
    np.testing.assert_allclose(found["second"], 2 * 1.5 * speed / 2, rtol=1e-7)
    assert found["none"] == 0.0  # there is room for more than happened
    np.testing.assert_allclose(found["falling"], 0.0, atol=1e-8)
    np.testing.assert_allclose(found["last"], 0.4, rtol=1e-7)  # 0.2 s of fall, and 0.2 s of flight
    np.testing.assert_allclose(found["weakest"], found["second"], rtol=1e-15)


@pytest.mark.long
def test_events_are_written_and_all_of_them_printed(tmp_path, monkeypatch):
    """Bounces of a ball, at 0.2 and 0.4."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mbsjax._dynamics.solution.head", lambda text: "what a notebook shows of it")
    (tmp_path / "drop.toml").write_text(DROP)
    done = CliRunner().invoke(main, ["--no-cache", "simulate", "drop.toml", "--pictures", "svg"])
    assert done.exit_code == 0, done.output
    assert done.output.count("contact 'C' impact") == 2
    folder = tmp_path / "drop_simulate"
    names = {"results.csv", "events.csv", "view.html", "ghosts.svg", "contacts.svg", "curves.svg"}
    assert {p.name for p in folder.iterdir()} == names
    head, *rows = [line.split(",") for line in (folder / "events.csv").read_text().splitlines()]
    assert head == ["t", "kind", "contact", "from", "to", "impulse"]
    hits = [row for row in rows if row[1] == "impact"]
    assert {(row[2], row[3], row[4]) for row in hits} == {("C", "line 0 - circle 0", "line 0 - circle 0")}
    told = [[float(row[0]), float(row[5])] for row in hits]
    np.testing.assert_allclose(told, [[0.2, 6.0], [0.4, 3.0]], rtol=1e-7)  # 2 kg that fall with 2, then with 1 m/s
    drawn = (folder / "curves.svg").read_text(encoding="utf-8")
    assert all(f">{words}</text>" in drawn for words in ("y", "velocity of y", "acceleration of y", "C.force"))
