"""Zones, lots and correlation in model files: read, checked, written and read again."""

import tomllib

import jax
import jax.numpy as jnp
import jsonschema
import numpy as np
import pytest

import mbsjax as mbs
from mbsjax._files.schema import schema


PLATE = """
[parameters]
hole = [3.0, 4.0]
bore = 1.0
a = 0.05
b = 0.05
form = [0.0, 0.0, 0.0, 0.0, 0.0]

[bodies.plate]
points.H = ["hole[0]", "hole[1]"]
profiles.rim = {type = "chain", elements = [{type = "deviated", element = {type = "circle", center = [0, 0], radius = 2}, offsets = "form", kind = "through"}]}

[joints]
A = {type = "revolute", body_a = "ground", body_b = "plate"}

[drive]
A = 0

[kinematics]
t1 = 1
outputs = 2

[tolerances]
hole = {type = "position", tol = 0.1, kind = "uniform", mmc = "bore", feature = "pin", shift = [0.01, 0]}
bore = {type = "uniform", tol = [-0.02, 0.02]}
a = 0.1
b = 0.1
form = {type = "profile_zone", tol = 0.05, correlation = 1.5}

[lots]
rods = ["a", "b"]

[correlation]
a.bore = 0.5

[measures]
x = "first(plate.H.x)"
sum = "a + b"
"""  # noqa: E501


def test_study_of_a_file_has_zones_lots_and_correlation():
    model = mbs.loads(PLATE)
    assert "a tolerance study" in model.check()
    study = model.study()
    by_hand = mbs.Study(
        lambda p: p,
        {"hole": jnp.array([3.0, 4.0]), "bore": 1.0, "a": 0.05, "b": 0.05, "form": jnp.zeros(5)},
        {
            "hole": mbs.Position(0.1, kind="uniform", mmc="bore", feature="pin", shift=(0.01, 0.0)),
            "bore": mbs.Uniform(0.02),
            "a": 0.1,
            "b": 0.1,
            "form": mbs.ProfileZone(0.05, correlation=1.5),
        },
        {"x": lambda p: p["hole"][0], "sum": lambda p: p["a"] + p["b"]},
        lots={"rods": ["a", "b"]},
        correlation={("a", "bore"): 0.5},
    )
    assert study.names == by_hand.names and study.groups == by_hand.groups
    z = np.random.default_rng(0).normal(size=(20, len(study.names)))
    x, y = (jax.vmap(s.dimensions)(jnp.asarray(z)) for s in (study, by_hand))
    np.testing.assert_allclose(x, y, rtol=1e-14)
    np.testing.assert_allclose(mbs.first_order(study).std, mbs.first_order(by_hand).std, rtol=1e-12)
    checker = jsonschema.Draft202012Validator(schema())
    checker.validate(tomllib.loads(PLATE))
    for right, wrong in (
        ('type = "position"', 'type = "place"'),
        ('["a", "b"]', "[1, 2]"),
        ("a.bore = 0.5", "a = 0.5"),
    ):
        assert not checker.is_valid(tomllib.loads(PLATE.replace(right, wrong)))


@pytest.mark.parametrize(
    "right, wrong, told",
    [
        (
            'mmc = "bore"',
            'mmc = "boar"',
            "line 24, tolerances.hole.mmc: an unknown dimension with a tolerance 'boar'; did you mean 'bore'",
        ),
        ('kind = "uniform", mmc', 'kind = "unifrom", mmc', "tolerances.hole: there is no Position of the kind"),
        ("correlation = 1.5", "corelation = 1.5", "tolerances.form.corelation: .* did you mean 'correlation'"),
        ('["a", "b"]', '["a", "c"]', "line 31, lots.rods: there is an unknown dimension with a tolerance"),
        ('["a", "b"]', '["a"]', "the lot 'rods' must name at least two"),
        ("a.bore = 0.5", "a.boer = 0.5", "line 34, correlation.a.boer: there is an unknown dimension with a tolerance"),
        ("a.bore = 0.5", "a.bore = [0.5]", "correlation.a.bore: one number is expected"),
        (
            "a.bore = 0.5",
            "a.bore = 1.5",
            "line 34, correlation.a.bore: a correlation must be between -1 and 1",
        ),
        ("a.bore = 0.5", "a = 0.5", "correlation.a: a table is expected"),
        ('kind = "through"', 'kind = "trough"', "of the kind 'fourier', 'spline', 'through', not 'trough'"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(right, wrong, told):
    assert PLATE.count(right) == 1
    with pytest.raises(mbs.FileError, match=told):
        mbs.loads(PLATE.replace(right, wrong)).study()


DISTRIBUTIONS = (
    mbs.Normal(0.1), mbs.Normal((-0.1, 0.3), cpk=1.5), mbs.Normal(sigma=0.02, shift=0.01), mbs.Uniform(0.2, shift=-0.1),
    mbs.Uniform(0.1, cpk=0.5),
    mbs.Triangular(0.1, mode=0.3), mbs.Truncated(0.1, at=2.0), mbs.Beta((0.0, 0.4), a=2, b=3), mbs.Rayleigh(0.1),
    mbs.Weibull(0.1, k=1.5, shift=0.02), mbs.Position(0.1), mbs.Position(0.2, kind="rim", shift=(0.02, -0.01)),
    mbs.Position(0.1, sigma=0.01, mmc="x0", feature="pin"), mbs.ProfileZone(0.1, kind="truncated"),
    mbs.ProfileZone((0.0, 0.1), correlation=2.0, closed=False, cpk=2.0),
)  # fmt: skip


def test_distributions_are_written_as_they_are_read():
    mech = mbs.Mechanism([mbs.Body("bob")], [mbs.Revolute("O", "ground", "bob")])
    names = [f"x{i}" for i in range(len(DISTRIBUTIONS))]
    tables = {
        "parameters": {n: [0.0, 0.0] if d.zone else 0.0 for n, d in zip(names, DISTRIBUTIONS)},
        "kinematics": {"t1": 1.0, "outputs": 2},
        "tolerances": dict(zip(names, DISTRIBUTIONS)),
        "lots": {"all": ["x0", "x1"]},
        "measures": {"y": "x0"},
    }
    text = mbs.dumps(mech, drive={"O": mbs.constant_speed(0.0)}, **tables)
    found = mbs.loads(text).study()
    for before, after in zip(DISTRIBUTIONS, found.distributions):
        assert type(before) is type(after) and before.parameters == after.parameters
        for a, b in zip(before.spread, after.spread):
            np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-15)
    assert found.groups["x0, x1"] == (0, 1)
    assert tables["tolerances"]["x0"] is DISTRIBUTIONS[0]


def test_limits_need_no_tolerances_until_a_study_is_asked_for():
    text = PLATE[: PLATE.index("[tolerances]")] + '[measures]\nsum = "a + b"\n[limits]\nsum = [0, 1]\n'
    model = mbs.loads(text)
    assert "1 measures" in model.check() and "a tolerance study" not in model.check()
    with pytest.raises(mbs.FileError, match=r"a table \[tolerances\] is missing"):
        model.study()
    with pytest.raises(mbs.FileError, match="line 26, limits.summ: .* did you mean 'sum'"):
        mbs.loads(text.replace("sum = [0", "summ = [0")).check()
