"""What the page shows at events: the values just before and just after them."""

import numpy as np
import pytest

import mbsjax as mbs
from tests.impacts import FLAT, TWO_TURNS, flat_follower, turning
from tests.viewing import both_sides, content, numbers


def two_halves() -> mbs.Profile:
    """The eccentric of `flat_follower` as two arcs, which meet at its sides."""
    center = (FLAT["e"], 0.0)
    return mbs.Profile.chain([mbs.Arc(center, FLAT["R"], start, np.pi) for start in (0.0, np.pi)], smooth=True)


@pytest.fixture(scope="module")
def lifting() -> mbs.Solution:
    mech = flat_follower(restitution=0.0, rim=two_halves())
    begin = mbs.state(mech, drive=turning())
    ts = np.linspace(0.0, TWO_TURNS, 24)  # few: an event is far from its neighbors
    return mbs.simulate(mech, begin, TWO_TURNS, drive=turning(), ts=ts, max_steps=256, max_events=16)


def closed_form(t: np.ndarray) -> np.ndarray:
    """The force between cam and follower as long as they touch: weight, spring and inertia."""
    p, turned = FLAT, np.cos(FLAT["omega"] * t)
    return p["m"] * (p["g"] + p["e"] * p["omega"] ** 2 * turned) + p["F0"] + p["k"] * p["e"] * (1 - turned)


def test_forces_at_events_have_their_one_sided_values(lifting):
    data = content(mbs.view(lifting))
    kind, t = (np.array([e[key] for e in data["events"]]) for key in ("kind", "t"))
    assert {"released", "closed", "transition"} == set(kind)
    before, after = both_sides(data, "C: force")
    exact, largest = closed_form(t), closed_form(np.zeros(1))[0]
    np.testing.assert_allclose(before[kind == "released"], 0.0, atol=1e-6 * largest)
    np.testing.assert_allclose(after[kind == "released"], 0.0, atol=1e-6 * largest)
    np.testing.assert_allclose(before[kind == "closed"], 0.0, atol=1e-6 * largest)
    np.testing.assert_allclose(after[kind == "closed"], exact[kind == "closed"], rtol=1e-6)
    for side in (before, after):  # the arcs are parts of one circle
        np.testing.assert_allclose(side[kind == "transition"], exact[kind == "transition"], rtol=1e-6)
    # so are the arrows
    (contact,) = data["contacts"]
    np.testing.assert_allclose(numbers(contact["before"]), before, atol=1e-6 * largest)
