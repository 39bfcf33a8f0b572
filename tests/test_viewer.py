"""The page that plays a motion: what is in it, and what a browser makes of it."""

import dataclasses
import html
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbsjax as mbs
from mbsjax.demo import CAM, SPRUNG, lost_contact
from tests.mechanisms import spatial_slider_crank, turn
from tests.simulated import skid
from tests.viewing import both_sides, content, numbers, panel, planar, poses, state, until


HOSTILE = "</script><b onclick=1>&amp; \u2028'\""
SIZES = {"crank": 1.0, "coupler": 3.0, "rocker": 2.5, "ground": 3.5}
TS = np.linspace(0.0, 6.0, 61)


def four_bar(**sizes) -> mbs.Motion:
    p = SIZES | sizes
    mech = mbs.Mechanism(
        [mbs.Body("crank"), mbs.Body(HOSTILE, points={"E": (p["coupler"] / 2, 1.0)}), mbs.Body("rocker")],
        [
            mbs.Revolute("A", "ground", "crank"),
            mbs.Revolute("B", "crank", HOSTILE, (p["crank"], 0.0)),
            mbs.Revolute("C", HOSTILE, "rocker", (p["coupler"], 0.0), (p["rocker"], 0.0)),
            mbs.Revolute("D", "ground", "rocker", (p["ground"], 0.0), start=1.5),
        ],
        [mbs.Offset("height", "ground", HOSTILE, point_b=(1.5, 1.0), axis=(0.0, 1.0))],
    )
    return mbs.kinematics(mech, {"A": mbs.constant_speed(1.0)}, TS, throw=False)


@pytest.fixture(scope="module")
def linkage() -> mbs.Motion:
    return four_bar()


@pytest.fixture(scope="module")
def sol() -> mbs.Solution:
    return lost_contact(SPRUNG)


@pytest.fixture(scope="module")
def skidding() -> mbs.Solution:
    return skid()


@pytest.fixture(scope="module")
def spatial() -> mbs.Motion:
    return mbs.kinematics(spatial_slider_crank(), {"A": turn(start=0.0)}, np.linspace(0.0, 1.0, 21))


# ---- what is in the page


def test_poses_in_the_page_are_those_of_the_motion(linkage):
    data = content(mbs.view(linkage))
    np.testing.assert_array_equal(numbers(data["t"]), TS)
    E = planar(poses(data, HOSTILE), (1.5, 1.0))
    np.testing.assert_allclose(E, linkage.point(HOSTILE, "E").q, atol=1e-6)
    np.testing.assert_allclose(poses(data, "crank")[:, 2], TS, atol=1e-6)
    pin = planar(poses(data, "rocker"), (2.5, 0.0))  # where the coupler ends
    np.testing.assert_allclose(pin, planar(poses(data, HOSTILE), (3.0, 0.0)), atol=2e-6)
    np.testing.assert_allclose(numbers(panel(data, "height")["lines"][0]["y"]), E[:, 1], atol=2e-6)


def test_poses_in_space_are_positions_and_euler_parameters(spatial):
    data = content(mbs.view(spatial))
    X = poses(data, "slider")
    np.testing.assert_allclose(X[:, 0], 0.2 + spatial["P"].q, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(X[:, 3:], axis=1), 1.0, atol=1e-6)
    e = poses(data, "crank")[:, 3:]  # turns about x by 2 pi t, without a change of sign on the way
    half = np.pi * numbers(data["t"])
    np.testing.assert_allclose(e, np.stack([np.cos(half), np.sin(half), 0 * half, 0 * half], 1), atol=1e-6)


def test_events_are_frames_of_their_own_with_their_contacts(sol):
    data = content(mbs.view(sol))
    t, times = numbers(data["t"]), np.asarray(sol.events.t)[: int(sol.events.count)]
    np.testing.assert_array_equal(np.unique(t), np.union1d(np.asarray(sol.ts), times))
    assert (np.diff(t) >= 0).all()
    events, said = data["events"], sol.events.list(sol.mech)
    assert [e["text"] for e in events] == [str(e) for e in said]
    assert [t[e["frame"]] for e in events] == [e.t for e in said]
    # wherever the cam and the roller touch, the place is as far from the roller's center as it is large
    (contact,) = data["contacts"]
    on, force = numbers(contact["on"]) > 0, numbers(contact["force"])
    point, normal = (np.stack([numbers(x) for x in contact[k]], 1) for k in ("point", "normal"))
    center = poses(data, "follower")[:, :2]
    touching = on | np.isin(t, [e.t for e in said if e.kind in ("impact", "released")])
    np.testing.assert_allclose((point + CAM["r"] * normal)[touching], center[touching], atol=2e-5)
    assert touching.sum() > on.sum() > 0 and (force[~on] == 0).all()
    gap = numbers(panel(data, "C23: gap")["lines"][0]["y"])
    assert np.abs(gap[touching]).max() < 1e-6 and gap.max() > 1.0
    rows = np.searchsorted(t, np.asarray(sol.ts))
    np.testing.assert_allclose(force[rows], sol["C23"].force, rtol=1e-6, atol=1e-6)
    assert [bool(on[e["frame"]]) for e in events] == np.asarray(sol.events.active)[: len(events), 0].tolist()


def test_friction_in_the_page_is_that_of_the_contact(skidding):
    data = content(mbs.view(skidding))
    t, ((event,), (contact,)) = numbers(data["t"]), (data["events"], data["contacts"])
    assert event["kind"] == "sticks" and event["t"] == pytest.approx(0.5, abs=1e-9)
    force, sticks = (numbers(contact["friction"][key]) for key in ("force", "sticks"))
    np.testing.assert_array_equal(sticks > 0, t >= event["t"])
    np.testing.assert_allclose(force[t < event["t"]], 2.0, atol=1e-6)
    np.testing.assert_allclose(force[t >= event["t"]], 0.0, atol=1e-6)
    along = np.stack([numbers(x) for x in contact["friction"]["along"]], 1)
    np.testing.assert_allclose(along, np.tile((-1.0, 0.0), (len(t), 1)), atol=1e-6)
    np.testing.assert_array_equal(numbers(panel(data, "C: friction")["lines"][0]["y"]), force)


def test_between_events_at_once_there_is_nothing(sol):
    """A contact passes on to a corner, and opens at once: the force there, which would pull, acts at no time."""
    data = content(mbs.view(sol))
    t = np.array([e["t"] for e in data["events"]])
    (first,) = np.flatnonzero(np.diff(t) == 0)
    before, after = both_sides(data, "C23: force")
    assert min(before.min(), after.min()) > -1e-6 * after.max() and before[first] > 1.0
    np.testing.assert_allclose([after[first], before[first + 1], after[first + 1]], 0.0, atol=1e-9)


def test_friction_before_it_sticks_is_that_of_sliding(skidding):
    data = content(mbs.view(skidding))
    before, after = both_sides(data, "C: friction")
    np.testing.assert_allclose([*before, *after], [2.0, 0.0], atol=1e-6)


def test_outlines_are_the_profiles(sol):
    data = content(mbs.view(sol))
    cam, roller = (np.stack([numbers(x) for x in data["bodies"][k]["outlines"][0]["points"]], 1) for k in (1, 2))
    np.testing.assert_allclose(np.linalg.norm(roller, axis=1), CAM["r"], atol=1e-6)
    x, y = cam.T
    area = np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)) / 2
    trapezium = (CAM["R"] + CAM["w"]) * (CAM["e"] + CAM["l"])
    assert abs(area - (trapezium + np.pi * CAM["R"] ** 2 / 2)) < 2e-3 * area
    assert len(cam) < 70  # lines are two points


def test_what_ended_early_is_shown_as_far_as_it_came():
    motion = four_bar(crank=2.5)  # too long to turn: the others are at full stretch where it stops
    assert np.isnan(motion.q[-1]).all()
    data = content(mbs.view(motion))
    angle = np.arccos((2.5**2 + 3.5**2 - 5.5**2) / (2 * 2.5 * 3.5))
    np.testing.assert_allclose(data["end"]["t"], angle, atol=1e-6)
    assert data["end"]["why"] == mbs.RESULTS[mbs.RESULTS.locked]
    np.testing.assert_array_equal(numbers(data["t"]), TS[angle > TS])
    assert all(np.isfinite(poses(data, b)).all() for b in ("crank", "rocker"))


def test_the_page_is_small_and_needs_nothing_else(sol, tmp_path):
    viewer = mbs.view(sol)
    assert len(viewer.html.encode()) < 200_000
    assert not re.search(r"https?:|\b(src|href)\s*=|@import|url\(", viewer.html)
    path = viewer.save(tmp_path / "a" / "b" / "cam.html")
    assert path.read_text(encoding="utf-8") == viewer.html
    frame = viewer._repr_html_()
    (inside,) = re.findall(r'^<iframe srcdoc="([^"]*)"[^<>]*></iframe>$', frame)
    assert html.unescape(inside) == viewer.html


def test_names_do_no_harm(linkage):
    page = mbs.view(linkage, title=f"{HOSTILE} {{{{DATA}}}}").html
    assert page.count("<script") == page.count("</script") == 2 and "<b onclick" not in page
    assert content(mbs.view(linkage, title=HOSTILE))["title"] == HOSTILE
    assert HOSTILE in [b["name"] for b in content(mbs.view(linkage))["bodies"]]


def test_variants_are_poses_and_bands(linkage):
    others = [four_bar(coupler=3.05), four_bar(coupler=2.95, rocker=2.52), four_bar(crank=20.0)]
    assert np.isnan(others[2].q).all()  # cannot be assembled
    data = content(mbs.view(linkage, variants=others, plots=["D"]))
    assert len(data["variants"]) == 2 and data["idle"] == 1
    first = data["variants"][0]["bodies"][2]  # ground, crank, coupler
    E = planar(np.stack([numbers(x) for x in first["pose"]], 1), (3.05, 0.0))
    rocker = np.asarray(others[0]["D"].q)
    pin = np.stack([3.5 + 2.5 * np.cos(rocker), 2.5 * np.sin(rocker)], 1)
    np.testing.assert_allclose(E, pin, atol=3e-4)  # 16 bits
    every = np.stack([linkage["D"].q, others[0]["D"].q, others[1]["D"].q])
    low, high = (numbers(x) for x in panel(data, "D")["lines"][0]["band"])
    np.testing.assert_allclose(low, every.min(0), atol=1e-6)
    np.testing.assert_allclose(high, every.max(0), atol=1e-6)


def test_plots_are_what_moves_or_what_is_asked_for(linkage, sol, spatial):
    assert [p["label"] for p in content(mbs.view(linkage))["panels"]] == ["A", "B", "C", "D", "height"]
    assert [p["label"] for p in content(mbs.view(sol))["panels"]] == ["O", "guide", "C23: gap", "C23: force"]
    data = content(mbs.view(spatial, plots="B"))
    (found,) = data["panels"]
    assert [line["label"] for line in found["lines"]] == ["e0", "e1", "e2", "e3"]
    np.testing.assert_allclose(np.stack([numbers(x["y"]) for x in found["lines"]], 1), spatial["B"].q, atol=1e-6)


def test_bad_input_is_named(linkage, spatial, sol):
    with pytest.raises(ValueError, match="must be a Motion, a Solution or Efforts, got 3"):
        mbs.view(3)
    with pytest.raises(ValueError, match="unknown coordinate, joint, gauge or contact 'hight'; did you mean 'height'"):
        mbs.view(linkage, plots=["A", "hight"])
    with pytest.raises(ValueError, match="variant 1 is of another mechanism: its bodies are"):
        mbs.view(linkage, variants=[linkage, spatial])
    with pytest.raises(ValueError, match="variant 0 is a Solution, and the first a Motion"):
        mbs.view(linkage, variants=[sol])
    with pytest.raises(ValueError, match="variant 0 must be a Motion or a Solution"):
        mbs.view(linkage, variants=["x"])
    pair = jax.tree_util.tree_map(lambda x: jnp.stack([x, x]), linkage)
    with pytest.raises(ValueError, match="variant 0 is a batch of motions: give one of them"):
        mbs.view(linkage, variants=[pair])
    with pytest.raises(ValueError, match="being traced"):
        eqx.filter_jit(lambda motion: mbs.view(motion).html)(linkage)
    with pytest.raises(ValueError, match="there is nothing to see: The loops"):
        mbs.view(four_bar(crank=20.0))


# ---- what a browser makes of it


def pixel(page, xy) -> tuple[int, ...]:
    """The color of the stage at a place in CSS pixels."""
    script = """([x, y]) => { const c = document.getElementById("stage"), k = c.width / c.clientWidth;
        return [...c.getContext("2d").getImageData(Math.round(x * k), Math.round(y * k), 1, 1).data] }"""
    return tuple(page.evaluate(script, [float(v) for v in xy]))


def on_screen(page, p) -> np.ndarray:
    """Where a point of ground is seen: worked out from the view alone."""
    view = state(page)["view"]
    width, height = page.evaluate("(c => [c.clientWidth, c.clientHeight])(document.getElementById('stage'))")
    if len(p) == 2:
        right, up, p = np.eye(3)[0], np.eye(3)[1], np.array([*p, 0.0])
    else:
        (cy, sy), (cp, sp) = ((np.cos(a), np.sin(a)) for a in (view["yaw"], view["pitch"]))
        right, up = np.array([-sy, cy, 0.0]), np.array([-sp * cy, -sp * sy, cp])
    d = (np.asarray(p) - view["focus"]) * view["scale"]
    return np.array([width / 2 + right @ d, height / 2 - up @ d])


def color(page, body: str, what: str) -> tuple[int, ...]:
    text = page.evaluate("([body, what]) => mbsjax.color(body)[what]", [body, what])
    return (*bytes.fromhex(text[1:]), 255)


def test_it_plays_pauses_and_begins_again(visit, sol):
    page = visit(mbs.view(sol, title="Cam"))
    assert page.title() == "Cam" and page.inner_text("h1") == "Cam"
    assert state(page)["t"] == 0.0 and not state(page)["playing"]
    page.click("#play")
    until(page, "mbsjax.state().t > 0.2")
    assert state(page)["playing"]
    page.keyboard.press("Space")
    held = state(page)["t"]
    page.wait_for_timeout(150)
    assert state(page)["t"] == held and not state(page)["playing"] and page.url.endswith(f"#t={held}")
    page.select_option("#speed", "10")
    page.evaluate("mbsjax.jump(12.4); mbsjax.play()")
    until(page, "mbsjax.state().t < 12")  # from the end to the start
    page.click("#loop")
    page.evaluate("mbsjax.jump(12.4)")
    until(page, "!mbsjax.state().playing")
    assert state(page)["t"] == pytest.approx(4 * np.pi)


def test_clicks_and_keys_go_to_events_and_times(visit, sol):
    said = sol.events.list(sol.mech)
    t = np.array([e.t for e in said])
    apart = np.abs(t[:, None] - t) + np.where(np.eye(len(t)), np.inf, 0)
    k = int(np.argmax(apart.min(1)))  # the mark that stands most alone
    page = visit(mbs.view(sol), "#t=1.5")
    assert state(page)["t"] == 1.5
    page.hover(f"#marks [data-event='{k}']")
    assert page.inner_text("#tip") == str(said[k])
    page.click(f"#marks [data-event='{k}']")
    assert state(page)["t"] == t[k]
    impact = next(i for i, e in enumerate(said) if e.kind == "impact")
    page.click(f"#events [data-event='{impact}']")
    assert state(page)["t"] == t[impact] and state(page)["event"] == impact
    assert page.get_attribute(f"#events [data-event='{impact}']", "aria-current") == "true"
    page.keyboard.press("Shift+ArrowRight")
    assert state(page)["t"] == t[impact + 1]
    page.keyboard.press("ArrowRight")
    frames = np.union1d(np.asarray(sol.ts), t)
    assert state(page)["t"] == frames[frames > t[impact + 1]][0]
    page.keyboard.press("Home")
    assert state(page)["t"] == 0.0
    box = page.locator("#slider").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert state(page)["t"] == pytest.approx(2 * np.pi, rel=0.01)
    plot = page.locator(".plot canvas").nth(1).bounding_box()  # from 46 left to 8 right
    page.mouse.click(plot["x"] + 46 + 0.25 * (plot["width"] - 54), plot["y"] + 40)
    assert state(page)["t"] == pytest.approx(np.pi, rel=0.01)
    page.evaluate("location.hash = '#t=2.5'")
    until(page, "mbsjax.state().t === 2.5")


def test_the_picture_is_the_state(visit, sol):
    page = visit(mbs.view(sol))
    row = np.array([40, 300])  # the contact is kept at both
    places = {}
    for i in row:
        page.evaluate(f"mbsjax.jump({float(sol.ts[i])!r})")
        x, a = float(sol["guide"].q[i]), float(sol["O"].q[i])
        roller = on_screen(page, (x - 2.0, 3.0))
        np.testing.assert_allclose(page.evaluate("mbsjax.project('follower', [-2, 3])"), roller, atol=1e-3)
        corner = 0.97 * np.array([-CAM["l"], CAM["w"]])  # just inside of the far corner of the cam, and just outside
        turned = np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]) @ corner
        inside, outside = on_screen(page, turned), on_screen(page, turned / 0.97**2)
        assert pixel(page, roller) == color(page, "follower", "fill")
        assert pixel(page, inside) == color(page, "cam", "fill") != pixel(page, outside)
        places[i] = inside
    assert pixel(page, places[row[0]]) != color(page, "cam", "fill")  # it has gone from there
    assert state(page)["active"] == ["C23"]
    flying = np.flatnonzero(np.asarray(sol["C23"].gap) > 0.5)[0]
    page.evaluate(f"mbsjax.jump({float(sol.ts[flying])!r})")
    assert state(page)["active"] == []


def test_friction_is_drawn_in_the_color_of_slipping(visit, skidding):
    page = visit(mbs.view(skidding))
    page.evaluate("mbsjax.jump(0.2)")
    x, y = on_screen(page, np.asarray(skidding["C"].point[4]))
    shown = [pixel(page, (x - d, y)) for d in range(5, 14)]  # a fifth as long as the normal force, to the left
    assert (*bytes.fromhex("b37400"), 255) in shown
    page.evaluate("mbsjax.jump(0.9)")
    x, y = on_screen(page, np.asarray(skidding["C"].point[18]))
    assert (*bytes.fromhex("b37400"), 255) not in [pixel(page, (x - d, y)) for d in range(5, 14)]


def test_zooming_moving_and_fitting(visit, linkage):
    page = visit(mbs.view(linkage, title=HOSTILE))
    assert page.text_content("h1") == HOSTILE and page.locator("b[onclick]").count() == 0
    first, box = state(page)["view"], page.locator("#stage").bounding_box()
    x, y = round(box["x"] + 200), round(box["y"] + 150)
    before = on_screen(page, (1.0, 1.0))
    page.mouse.move(x, y)
    page.mouse.wheel(0, -400)
    until(page, f"mbsjax.state().view.scale > {first['scale'] * 1.5}")
    factor = state(page)["view"]["scale"] / first["scale"]
    about = np.array([x - box["x"], y - box["y"]])  # what is under the pointer stays there
    np.testing.assert_allclose(on_screen(page, (1.0, 1.0)), about + factor * (before - about), atol=0.01)
    held = on_screen(page, (1.0, 1.0))
    page.mouse.down()
    page.mouse.move(x + 60, y - 25)
    page.mouse.up()
    np.testing.assert_allclose(on_screen(page, (1.0, 1.0)), held + [60, -25], atol=0.01)
    page.click("#fit")
    assert state(page)["view"] == first


def test_between_outputs_bodies_turn_evenly(visit, linkage, spatial):
    page = visit(mbs.view(linkage))
    t = float(TS[7] + 0.4 * (TS[8] - TS[7]))
    page.evaluate(f"mbsjax.jump({t})")
    tip = page.evaluate("mbsjax.project('crank', [1, 0])")
    np.testing.assert_allclose(tip, on_screen(page, (np.cos(t), np.sin(t))), atol=1e-3)
    page = visit(mbs.view(spatial))
    box = page.locator("#stage").bounding_box()
    yaw = state(page)["view"]["yaw"]
    page.mouse.move(box["x"] + 300, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 340, box["y"] + 230)
    page.mouse.up()
    assert state(page)["view"]["yaw"] != yaw
    t = 0.4 * float(spatial.ts[12]) + 0.6 * float(spatial.ts[13])
    page.evaluate(f"mbsjax.jump({t})")
    ball = (0.0, 0.1 + 0.08 * np.cos(2 * np.pi * t), 0.12 + 0.08 * np.sin(2 * np.pi * t))
    np.testing.assert_allclose(page.evaluate("mbsjax.project('crank', [0, 0.08, 0])"), on_screen(page, ball), atol=1e-3)


def test_what_jumps_at_an_event_is_not_smeared(visit, sol):
    k, guide = 1, sol.mech.stored("guide")[0]  # as if the follower had dropped by 10 at an event, in no time
    log = sol.events
    moved = log.q.at[k + 1, guide].set(log.q[k, guide] - 10.0)
    log = dataclasses.replace(log, q=moved, t=log.t.at[k + 1].set(log.t[k]))
    page = visit(mbs.view(dataclasses.replace(sol, events=log)))

    def x(t) -> float:
        page.evaluate(f"mbsjax.jump({float(t)!r})")
        here, origin = (page.evaluate(f"mbsjax.project({body!r}, [0, 0])")[0] for body in ("follower", "ground"))
        return (here - origin) / state(page)["view"]["scale"]

    at, height = log.t[k], float(log.q[k, guide])
    before, after = x(at - 1e-7), x(at)
    np.testing.assert_allclose([before, after], [height, height - 10.0], atol=1e-3)


def test_variants_are_seen_and_can_be_hidden(visit, linkage):
    page = visit(mbs.view(linkage, variants=[four_bar(rocker=r) for r in (2.3, 2.7)]))
    painted = """(c => c.getContext("2d").getImageData(0, 0, c.width, c.height).data.reduce(
        (n, x, i) => n + (i % 4 === 3 && x > 0), 0))(document.getElementById("stage"))"""
    there = page.evaluate(painted)
    page.click("#ghosts")
    until(page, f"{painted} < {there} - 500")
    page.click("#ghosts")
    until(page, f"{painted} > {there} - 50")
