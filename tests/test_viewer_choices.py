"""What can be chosen in the page of a motion: plots, lanes, senses; what it says of events, springs and drivers."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

import mbsjax as mbs
from mbsjax._pictures.viewer.events import words
from mbsjax.demo import SPRUNG, lost_contact
from tests.viewing import content, numbers, poses, state, until


TS, CRANKS = np.linspace(0.0, 2.0, 21), np.array([0.6, 0.8, 1.0])


def arm(length, units=None) -> mbs.Mechanism:
    """An arm that turns, with a point at its end, and a ram that is driven or read."""
    return mbs.Mechanism(
        [mbs.Body("arm", points={"E": (length, 0.0)})],
        [mbs.Revolute("A", "ground", "arm")],
        [mbs.Distance("ram", "ground", "arm", (0.0, -2.0), (length, 0.0))],
        units=units,
    )


def swing(length=1.0, units=None) -> mbs.Motion:
    return mbs.kinematics(arm(length, units), {"A": lambda t: t**2}, TS, throw=False)


@pytest.fixture(scope="module")
def swung() -> mbs.Motion:
    return swing()


@pytest.fixture(scope="module")
def batch() -> mbs.Motion:
    return jax.vmap(swing)(jnp.asarray(CRANKS))


@pytest.fixture(scope="module")
def sol() -> mbs.Solution:
    return lost_contact(SPRUNG)


def signal(data: dict, key: str) -> dict:
    return next(s for s in (*data["panels"], *data["more"]) if s["key"] == key)


def test_rates_points_and_phase_plots_can_be_asked_for(swung):
    data = content(mbs.view(swung, plots=["A.v over A", "arm.E.a", "A.a"]))
    assert [(p["key"], p["over"]) for p in data["panels"]] == [("A.v", "A.q"), ("arm.E.a", None), ("A.a", None)]
    v, a = (numbers(p["lines"][0]["y"]) for p in (data["panels"][0], data["panels"][2]))
    np.testing.assert_allclose(v, 2 * TS, atol=1e-6)
    np.testing.assert_allclose(a, np.full(len(TS), 2.0), atol=1e-6)
    w, angle = 2 * TS, TS**2  # r'' = -w^2 r + w' (z x r)
    expected = np.stack([-(w**2) * np.cos(angle) - 2 * np.sin(angle), -(w**2) * np.sin(angle) + 2 * np.cos(angle)])
    E = [numbers(line["y"]) for line in data["panels"][1]["lines"]]
    np.testing.assert_allclose(E, expected, rtol=0, atol=1e-6)
    assert [line["label"] for line in data["panels"][1]["lines"]] == ["x", "y"]
    np.testing.assert_allclose(numbers(signal(data, "A.q")["lines"][0]["y"]), angle, atol=1e-6)
    assert {s["key"] for s in data["more"]} == {"A.q", "ram.q", "ram.v", "ram.a", "arm.E.q", "arm.E.v"}


def test_quantities_have_units():
    data = content(mbs.view(swing(10.0, {"length": "mm", "angle": "deg"})))
    told = {s["key"]: (s["quantity"], s["unit"]) for s in (*data["panels"], *data["more"])}
    assert told["A.q"] == ("angle", "deg") and told["A.v"] == ("angular velocity", "deg/s")
    assert told["ram.q"] == ("travel", "mm") and told["arm.E.a"] == ("acceleration", "mm/s²")
    assert data["time_unit"] == "s"
    np.testing.assert_allclose(numbers(signal(data, "A.q")["lines"][0]["y"]), np.rad2deg(TS**2), rtol=1e-6)


def test_forces_and_energies_of_a_simulation(sol):
    data = content(mbs.view(sol, plots=["spring on guide.force", "energy", "O.effort", "guide.v"]))
    spring, energy, torque, speed = data["panels"]
    q = numbers(signal(data, "guide.q")["lines"][0]["y"])
    expected = SPRUNG["k"] * (q + SPRUNG["c"])  # it pulls, as `sol.force` tells
    np.testing.assert_allclose(sol.force("spring on guide").force[0], expected[0], rtol=1e-6)
    np.testing.assert_allclose(numbers(spring["lines"][0]["y"]), expected, rtol=1e-6)
    outputs = np.searchsorted(numbers(data["t"]), np.asarray(sol.ts))
    kinetic, _, total = (numbers(line["y"])[outputs] for line in energy["lines"])
    plain = ~np.isin(np.asarray(sol.ts), np.asarray(sol.events.t))
    np.testing.assert_allclose(kinetic[plain], np.asarray(sol.kinetic)[plain], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(total[plain], np.asarray(sol.energy)[plain], rtol=1e-6)
    np.testing.assert_allclose(
        numbers(torque["lines"][0]["y"])[outputs][plain], np.asarray(sol.drive)[plain, 0], rtol=1e-6
    )
    n, guide = int(sol.events.count), sol.mech.coordinates.index("guide")
    np.testing.assert_allclose(
        numbers(speed["lines"][0]["before"]), sol.events.v_before[:n, guide], rtol=1e-6, atol=1e-6
    )


def test_events_are_told_in_words_with_their_impulses(sol):
    data = content(mbs.view(sol))
    (contact,) = data["contacts"]
    normal, log = numbers(contact["normal"][0]), sol.events
    guide, hits = sol.mech.coordinates.index("guide"), 0
    for i, event in enumerate(data["events"]):
        kind, side = event["kind"], f"{event['text'].split(' - ')[0].split('(')[1]}"
        if kind == "transition":
            assert event["words"].startswith(f"C23: {side.replace('point', 'corner')} to ")
        elif kind == "impact":
            assert event["words"] == f"C23: follower hits {side.replace('point', 'corner')} of cam"
            ((_, impulse, along),) = event["impulses"]
            gained = SPRUNG["m"] * float(log.v_after[i, guide] - log.v_before[i, guide])
            assert impulse * normal[event["frame"]] == pytest.approx(gained, rel=1e-5) and along == 0.0
            hits += 1
    assert hits == sum(e.kind == "impact" for e in log.list(sol.mech)) and hits > 3


def test_elements_are_called_by_their_names():
    assert mbs.ratchet_wheel(3, 5.0, 4.0).labels[:5] == (
        "flank of tooth 0", "corner 1", "back of tooth 0", "corner 3", "flank of tooth 1",
    )  # fmt: skip
    assert mbs.pawl(4.0, 0.2, 0.5).labels == ("nose", "upper side", "hub", "lower side")
    corners = [(1.0, 0.0), (0.0, 0.0), (-1.0, 0.0)]
    lines = [mbs.Line(a, b) for a, b in itertools.pairwise(corners)]
    assert mbs.Profile.chain(lines, closed=False).labels == ("line 0", "corner 1", "line 2", "end 3", "end 4")
    floor = mbs.Profile.chain(lines, closed=False, names=["ramp", "step"])
    mech = mbs.Mechanism(
        [mbs.Body("ground", profiles={"floor": floor}), mbs.Body("ball", profiles={"rim": mbs.disc(0.1)})],
        [mbs.Planar("p", "ground", "ball"), mbs.Contact("C", "ground.floor", "ball.rim")],
    )
    ball = (0, "circle")
    said = [
        mbs.Event(1.0, "impact", "C", ((0, "line"), ball), ((0, "line"), ball), None),
        mbs.Event(1.0, "transition", "C", ((0, "line"), ball), ((2, "line"), ball), None),
        mbs.Event(1.0, "closed", "C", ((3, "point"), ball), ((3, "point"), ball), "D"),
        mbs.Event(1.0, "triggered", "door", None, None, None),
    ]
    assert [words(event, mech) for event in said] == [
        "C: ball hits ramp of ground",
        "C: ramp to step",
        "C: ball comes to end 3 of ground; D gives way",
        "door: passes zero",
    ]
    assert mech.element_names(mech.contacts[0]) == (floor.labels, ("circle 0",))
    assert str(said[1]) == "t = 1: contact 'C' transition (line 0 - circle 0 -> line 2 - circle 0)"
    named = said[1]._replace(names=(("ramp", "circle 0"), ("step", "circle 0")))
    assert str(named) == "t = 1: contact 'C' transition (ramp - circle 0 -> step - circle 0)"
    with pytest.raises(ValueError, match="`names` of a profile must be a text for each of its 2 elements"):
        mbs.Profile.chain(lines, closed=False, names=["ramp"])


def test_a_mechanism_at_rest_shows_its_springs_and_drivers():
    free = arm(1.0)
    bar = mbs.Distance("bar", "ground", "arm", (3.0, 0.0), (1.0, 0.0))  # 2 long at A = 0
    forces = [
        mbs.Spring(bar, stiffness=10.0, free_length=1.5, name="pull"),
        mbs.Spring(bar, stiffness=10.0, free_length=2.5, damping=1.0, name="push"),
        mbs.Spring("A", damping=2.0, name="drag"),
        mbs.Actuator("A", 3.0, name="motor"),
    ]
    mech = mbs.Mechanism(free.bodies, free.joints, free.gauges, forces=forces)
    data = content(mbs.view(mech, drive={"A": lambda t: -2.0 * t}))
    assert data["kind"] == "mechanism" and data["panels"] == [] and numbers(data["t"]).tolist() == [0.0]
    told = {x["name"]: (x["kind"], x["turns"], float(numbers(x["push"])[0])) for x in data["ties"]}
    assert told["pull"] == ("spring", False, pytest.approx(-5.0))
    assert told["push"] == ("spring damper", False, pytest.approx(5.0))
    assert told["drag"] == ("damper", True, 0.0) and told["motor"] == ("actuator", True, 3.0)
    (driver,) = data["drivers"]
    assert (driver["joint"], driver["turns"], float(numbers(driver["speed"])[0])) == (0, True, -2.0)
    data = content(mbs.view(free, drive={"ram": lambda t: 2.5 + 0.1 * t}, estimate={"A": 0.5}))
    (ram,), (driver,) = data["ties"], data["drivers"]
    assert ram["kind"] == "drive" and driver["gauge"] == "ram" and numbers(driver["speed"])[0] == pytest.approx(0.1)
    a = poses(data, "arm")[0, 2]
    assert np.hypot(np.cos(a), np.sin(a) + 2.0) == pytest.approx(2.5, abs=1e-6)


def test_lanes_of_a_batch_are_all_in_the_page(batch):
    data = content(mbs.view(batch, over={"length": CRANKS}))
    assert data["names"] == ["length = 0.6", "length = 0.8", "length = 1"] and data["over"] == "length"
    for length, lane in zip(CRANKS, (data, *data["lanes"])):
        E = [numbers(line["y"]) for line in signal(lane, "arm.E.q")["lines"]]
        np.testing.assert_allclose(E, length * np.stack([np.cos(TS**2), np.sin(TS**2)]), atol=1e-6)
    named = content(mbs.view({"short": batch.lane(0), "at rest": arm(1.0)}))
    assert named["names"] == ["short", "at rest"] and named["over"] is None
    assert [x["kind"] for x in (named, *named["lanes"])] == ["motion", "mechanism"]


def test_bad_choices_are_named(swung, batch):
    with pytest.raises(
        ValueError, match=r"over\['length'\] must have a number for each of the 3 lanes, got shape \(2,\)"
    ):
        mbs.view(batch, over={"length": CRANKS[:2]})
    with pytest.raises(ValueError, match="`over` tells what the lanes of a batch differ in, and this is none"):
        mbs.view(swung, over={"length": CRANKS})
    with pytest.raises(ValueError, match="`drive` and `estimate` are for a mechanism"):
        mbs.view(swung, drive={"A": 1.0})
    with pytest.raises(ValueError, match=r"a batch of shape \(2, 3\) has several axes"):
        mbs.view(jax.tree_util.tree_map(lambda x: jnp.stack([x, x]), batch))
    many = jax.tree_util.tree_map(lambda x: jnp.concatenate([x] * 67), batch)
    with pytest.raises(ValueError, match="a batch of 201 lanes is too large for a page, which can have 200"):
        mbs.view(many)
    with pytest.raises(ValueError, match="the dictionary is empty"):
        mbs.view({})
    with pytest.raises(ValueError, match="'b' must be a Motion, a Solution or Efforts, got 3"):
        mbs.view({"a": swung, "b": 3})
    with pytest.raises(ValueError, match=r"unknown .* 'A\.reaction'.*; all there is: A.q, A.v"):
        mbs.view(swung, plots=["A.reaction"])


# ---- in a browser


def test_plots_are_chosen_added_and_removed(visit, swung):
    page = visit(mbs.view(swung, plots=["A"]))
    title = "s => s.selectedOptions[0].text"
    first = page.locator(".plot").nth(0)
    assert first.locator("select").nth(0).evaluate(title) == "A: angle (rad)"
    first.locator("select").nth(0).select_option("arm.E.v")
    page.evaluate("mbsjax.jump(1)")
    shown = first.locator("span").inner_text()
    assert shown.split() == ["x", f"{-2 * np.sin(1):.5g}", "y", f"{2 * np.cos(1):.5g}"]
    first.locator("select").nth(1).select_option("A.q")
    assert first.locator("canvas").nth(0).get_attribute("aria-label") == "arm.E: velocity over A: angle (rad)"
    box = first.locator("canvas").nth(1).bounding_box()  # the far right of it is the end: A = 4
    page.mouse.click(box["x"] + box["width"] - 14, box["y"] + 40)
    until(page, "mbsjax.state().t > 1.8")
    page.click("#add")
    assert page.locator(".plot").count() == 2
    first.locator("button").click()
    assert page.locator(".plot").count() == 1


def test_a_slider_goes_through_the_lanes(visit, batch):
    page = visit(mbs.view(batch, over={"length": CRANKS}, plots=["ram"]), "#t=1")
    reach = []
    for k, length in enumerate(CRANKS):
        page.locator("#over").fill(str(k))
        assert page.inner_text("#laneName") == f"length = {length:.6g}" and state(page)["lane"] == k
        assert state(page)["t"] == 1.0
        (x, y), (u, v) = (page.evaluate("p => mbsjax.project('arm', p)", p) for p in ([0, 0], [float(length), 0]))
        reach.append(np.hypot(u - x, v - y))
        ram = float(page.locator(".plot span").inner_text())
        assert ram == pytest.approx(np.hypot(length * np.cos(1), length * np.sin(1) + 2), rel=1e-4)  # five digits
    np.testing.assert_allclose(np.array(reach) / reach[-1], CRANKS, rtol=1e-6)  # the view stays as it is
    page = visit(mbs.view({"a": batch.lane(0), "b": batch.lane(2)}))
    page.select_option("#lane", label="b")
    assert state(page)["lane"] == 1


def test_senses_are_drawn_before_anything_moves(visit):
    page = visit(mbs.view(arm(1.0), drive={"A": lambda t: 2.0 * t}))
    colors = """(c => { const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data; let n = 0;
        for (let i = 0; i < d.length; i += 4) n += d[i] === 47 && d[i + 1] === 111 && d[i + 2] === 222; return n
        })(document.getElementById("stage"))"""
    assert page.locator(".transport").is_hidden()
    drawn = page.evaluate(colors)  # in the color of drivers
    page.click("#senses")
    until(page, f"{colors} < {drawn} - 60")


def test_a_film_is_saved(visit, swung, tmp_path):
    page = visit(mbs.view(swung, title="An arm: <swing>"))
    page.select_option("#speed", index=7)  # in one second
    with page.expect_download() as found:
        page.click("#gif")
    assert found.value.suggested_filename == "An_arm_swing.gif"
    found.value.save_as(tmp_path / "film.gif")
    film = Image.open(tmp_path / "film.gif")
    assert film.n_frames == 15 and film.info["loop"] == 0
    fill = np.array([*bytes.fromhex(page.evaluate("mbsjax.color('arm').fill")[1:])])
    for k in (1, 7, 12):  # the arm is where it is at that time
        page.evaluate(f"mbsjax.jump({2.0 * k / 15})")
        x, y = (
            np.array(page.evaluate("mbsjax.project('arm', [0.5, 0])"))
            * film.width
            / page.evaluate("document.getElementById('stage').clientWidth")
        )
        film.seek(k)
        assert np.abs(np.array(film.convert("RGB").getpixel((round(x), round(y)))) - fill).max() < 12


def test_a_page_opens_with_few_plots():
    """Of a chain of eight driven links, the first six."""
    names = [f"J{k}" for k in range(8)]
    links = ["ground", *(f"link {k}" for k in range(8))]
    joints = [mbs.Revolute(name, *links[k : k + 2], (0.1, 0.0)) for k, name in enumerate(names)]
    chain = mbs.Mechanism([mbs.Body(link) for link in links[1:]], joints)
    drive = {name: mbs.constant_speed(1.0) for name in names}
    data = content(mbs.view(mbs.kinematics(chain, drive, np.linspace(0.0, 1.0, 5))))
    assert [p["key"] for p in data["panels"]] == [f"{name}.q" for name in names[:6]]
    assert {f"{name}.q" for name in names[6:]} <= {p["key"] for p in data["more"]}
