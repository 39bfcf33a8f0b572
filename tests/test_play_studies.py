"""Studies of joints with play: rules mixed, drawn, in model files, and what they refuse."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from click.testing import CliRunner

import mbsjax as mbs
from mbsjax._cli.main import main
from tests.mechanisms import bodies
from tests.test_play import CRANK, ROD, THETA, TRAVEL, TS, TURN, position, slider_crank


NOMINAL = {"crank": CRANK, "rod": ROD, "play": 0.02}


def model(p, rules=("worst", "loaded"), ts=TS):
    B, C = mbs.Play(p["play"], rule=rules[0]), mbs.Play(0.03, rule=rules[1])
    mech = slider_crank(B, C, crank=p["crank"], rod=p["rod"])
    return mbs.kinematics(mech, {"A": TURN}, ts, throw=False)


@pytest.mark.long
def test_rules_are_mixed_and_rows_have_their_own_worst_places():
    tolerances = {"crank": 0.05, "rod": 0.05, "play": 0.005}
    # the largest of many is where play does most, not where it is largest in the middle
    ideal = position(THETA, rod=ROD - 0.03)
    off = {"off": lambda m: jnp.max(m["P"].q - ideal), "short": lambda m: jnp.min(m["P"].q - ideal)}
    measures = TRAVEL | {"from start": lambda m: (m["P"].q - m["P"].q[0])[4:6], "range": lambda m: jnp.ptp(m["P"].q)}
    measures |= off
    study = mbs.play_study(model, NOMINAL, tolerances, measures, limits={"x": (0.0, 6.0)}, along={"x": THETA})
    assert study.labels == (
        "x least",
        "x most",
        *(f"{m} {side}" for m in list(measures)[1:] for side in ("least", "most")),
    )
    found = mbs.first_order(study)

    def by_hand(crank, rod, play):
        low, high = (position(THETA, crank, rod - 0.03 + side * play) for side in (-1, 1))
        away = (low[4:6] - high[0], high[4:6] - low[0])
        numbers = [low.max() - high.min(), high.max() - low.min()]
        numbers += [f(x - ideal) for f in (jnp.max, jnp.min) for x in (low, high)]
        return jnp.concatenate([low, high, *away, jnp.stack(numbers)])

    numbers = tuple(map(jnp.asarray, NOMINAL.values()))
    np.testing.assert_allclose(found.values, by_hand(*numbers), atol=1e-9)
    np.testing.assert_allclose(found.slopes, np.stack(jax.jacfwd(by_hand, (0, 1, 2))(*numbers), 1), atol=1e-7)
    n = len(TS)
    assert np.all(np.isinf(study.upper[:n])) and np.all(study.lower[:n] == 0) and np.all(study.upper[n : 2 * n] == 6)


@pytest.mark.long
def test_pins_that_are_drawn_are_contributors():
    one = functools.partial(model, rules=("random", "random"), ts=TS[1:2])
    rim = {"C": mbs.Position(2.0, kind="rim")}
    study = mbs.play_study(one, NOMINAL, {"rod": 0.01}, {"x": lambda m: m["P"].q[0]}, rules=rim)
    assert study.names == ("rod", "B.play[0]", "B.play[1]", "C.play[0]", "C.play[1]")
    first, slope = mbs.first_order(study), jax.grad(lambda rod: position(THETA[1], rod=rod))(ROD)
    # along the rod, as a longer one; the mean square of one coordinate is 1/4 in a disc, 1/2 on its rim
    variance = np.array([(0.01 / 3) ** 2, 0.02**2 / 4, 0.03**2 / 2]) * slope**2
    np.testing.assert_allclose(first.std, np.sqrt(variance.sum()), rtol=1e-9)
    parts = first.contribution[0]
    np.testing.assert_allclose([parts[0], parts[1:3].sum(), parts[3:].sum()], variance / variance.sum(), rtol=1e-9)
    sample = mbs.monte_carlo(study, 4096, seed=1)
    values = np.asarray(sample.values[:, 0])
    assert abs(values.std() / first.std[0] - 1) < 5 / np.sqrt(2 * len(values))  # the rim has a smaller kurtosis yet
    # no sample goes beyond what worst places do: rods longer or shorter by both plays and four sigma
    assert values.max() < position(THETA[1], rod=ROD + 0.05 + 0.02) and values.min() > position(
        THETA[1], rod=ROD - 0.07
    )


FILE = """
[parameters]
rod = 3.5
gap = 0.02
[bodies.crank]
[bodies.rod]
[bodies.slider]
[joints]
A = {type = "revolute", body_a = "ground", body_b = "crank"}
B = {type = "revolute", body_a = "crank", body_b = "rod", frame_a = [2, 0], play = "gap"}
C = {type = "revolute", body_a = "rod", body_b = "slider", frame_a = ["rod", 0]}
P = {type = "prismatic", body_a = "ground", body_b = "slider", start = 5}
[drive]
A = 0.7
[kinematics]
ts = [0.0]
[tolerances]
rod = 0.01
gap = 0.005
[measures]
x = "P[0]"
[limits]
x = [4.5, 5.0]
"""


@pytest.mark.long
def test_a_model_file_with_play_is_reported_without_python(tmp_path):
    study = mbs.loads(FILE).study()
    x = [position(0.7, rod=ROD + side * 0.02) for side in (-1, 1)]
    np.testing.assert_allclose(study.at_nominal.values, x, atol=1e-9)
    (tmp_path / "crank.toml").write_text(FILE)
    arguments = ["tolerance", str(tmp_path / "crank.toml"), "-o", str(tmp_path / "out"), "--first", "--no-worst"]
    told = CliRunner().invoke(main, arguments, env={"COLUMNS": "200"})
    assert told.exit_code == 0, told.output
    assert "x least" in told.output and "x most" in told.output and "What plays do" in told.output


def test_plays_are_read_and_written_with_all_digits():
    law = mbs.HuntCrossley(1e5, 0.1)
    whole = {"rule": "random", "radius": 1 / 3, "restitution": 0.5, "law": law, "friction": mbs.Coulomb(0.1, 0.2)}
    mech = mbs.Mechanism(
        bodies("a", "b", "c", "d", "e"),
        [
            mbs.Revolute("R", "ground", "a", play=mbs.Play(1 / 7, (0.6, -0.8), **whole)),
            mbs.Prismatic("P", "a", "b", play=1 / 3, length=2 / 3),
            mbs.PinSlot("S", "b", "c", play=0.1),
            mbs.Gear("G", "c", "d", ratio=2.0, play=mbs.Play(0.01, rule="loaded", friction=0.3)),
            mbs.Spherical("B", "d", "e", play=0.2),
        ],
    )
    back = mbs.loads(mbs.dumps(mech)).mechanism()
    for joint in mech.joints:
        leaves, structure = jax.tree_util.tree_flatten(joint.play)
        others, same = jax.tree_util.tree_flatten(back.joint(joint.name).play)
        assert structure == same and all(np.array_equal(x, y) for x, y in zip(leaves, others))


@pytest.mark.long
def test_bad_plays_are_refused():
    motion = model(NOMINAL, ts=TS[:2])
    make = lambda **more: mbs.play_study(model, NOMINAL, {"rod": 0.01}, TRAVEL, **more)
    plain = lambda p: mbs.kinematics(slider_crank(rod=p["rod"]), {"A": TURN}, TS[:2], throw=False)
    free = lambda p: mbs.kinematics(slider_crank(0.1, rod=p["rod"], push=0.0), {"A": TURN}, TS[:2], throw=False)
    for words, call in {
        "unknown joint with play 'A'": lambda: mbs.displaced(motion, {"A": (1.0, 0.0)}),
        "lies at 2 number": lambda: mbs.displaced(motion, {"B": 1.0}),
        "at most 1 from its middle": lambda: mbs.at_play(motion.mech, {"B": (1.0, 0.1)}),
        "one for each of 2 output times": lambda: mbs.displaced(motion, {"B": np.zeros((3, 2))}),
        "unknown joint with play 'Q'": lambda: make(rules={"Q": "worst"}),
        "the rule of joint 'B' must be one of": lambda: make(rules={"B": "best"}),
        "`limits` names 'y'": lambda: make(limits={"y": (0.0, 1.0)}),
        "no joint of this mechanism has play": lambda: mbs.play_study(plain, NOMINAL, {"rod": 0.01}, TRAVEL),
        "gives one motion": lambda: mbs.play_study(lambda p: p["rod"], NOMINAL, {"rod": 0.01}, TRAVEL),
        "nothing presses joint 'B'": lambda: mbs.play_study(
            free, NOMINAL, {"rod": 0.01}, TRAVEL, rules={"B": "loaded"}
        ),
        "there is no dimension 'rode'": lambda: mbs.play_study(model, NOMINAL, {"rode": 0.01}, TRAVEL),
        "there is no Ball": lambda: mbs.Ball(1.0, kind="normal"),
    }.items():
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(mbs.FileError, match='joints.B.play.rule: "loaded", "worst" or "random" is expected'):
        mbs.loads(FILE.replace('"gap"}', '{size = 0.1, rule = "best"}}')).mechanism()
    with pytest.raises(mbs.FileError, match="joints.B.play.siz: .* did you mean 'size'"):
        mbs.loads(FILE.replace('"gap"}', "{siz = 0.1}}")).mechanism()


@pytest.mark.long
def test_displaced_motions_are_read_in_batches():
    motion = model(NOMINAL, ts=TS[:3])
    ways = jnp.array([[1.0, 0.0], [0.6, -0.8]])
    many = jax.vmap(lambda way: mbs.displaced(motion, {"B": way}))(ways)
    assert many.batch == (2,) and many["P"].q.shape == (2, 3) and many.point("rod").q.shape == (2, 3, 2)
    for k, way in enumerate(ways):
        alone = mbs.displaced(motion, {"B": way})
        for read in (lambda m: m["P"], lambda m: m.point("rod", (1.0, 0.0)), lambda m: m.orientation("rod")):
            for x, y in zip(read(many), read(alone)):
                np.testing.assert_allclose(x[k], y, atol=1e-12)
        np.testing.assert_allclose(many.lane(k)["P"].q, alone["P"].q, atol=1e-12)
        np.testing.assert_array_equal(alone.play("B"), np.tile(way, (3, 1)))
        # the same as a mechanism that is made so, its velocities too
        whole = mbs.kinematics(mbs.at_play(motion.mech, {"B": way}), {"A": TURN}, TS[:3])
        for x, y in zip(whole["P"], alone["P"]):
            np.testing.assert_allclose(x, y, atol=1e-11)
    assert isinstance(many, mbs.Displaced) and "lies" in repr(many)


@pytest.mark.parametrize("kind, second, fourth", [("uniform", 1 / 5, 3 / 35), ("rim", 1 / 3, 1 / 5)])
def test_places_in_a_ball(kind, second, fourth):
    ball = mbs.Ball(1.0, kind=kind)
    x = np.asarray(ball.at(jax.random.normal(jax.random.key(0), (40000, 3))))
    r = np.linalg.norm(x, axis=1)
    assert r.max() < 1 + 1e-12
    if kind == "uniform":  # the cube of the radius is uniform
        assert abs((r**3).mean() - 0.5) < 5 * np.sqrt(1 / 12 / len(r))
    assert np.all(np.abs((x**2).mean(0) - second) < 5 * np.sqrt((fourth - second**2) / len(x)))
    np.testing.assert_allclose([ball.std**2, ball.shape.kurtosis], [second, fourth / second**2], rtol=1e-12)
    near = ball.at(jnp.array([[0.2 - 1e-9, 0.0, 0.0], [0.2 + 1e-9, 0.0, 0.0]]))  # where a series ends
    assert abs(near[0, 0] - near[1, 0]) < 2e-9
