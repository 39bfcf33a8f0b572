"""The study of the cam with contact loss, as its notebook makes it: derivatives through events against samples."""

import numpy as np
import pytest

from mbsjax._tolerance.evaluate import linearized
from tests import notebook


STEP = 1e-4
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def told():
    """What the cells of the notebook leave behind; and the values beside the mean, as `beside`, while the program that
    finds them is at hand: between tests, it may be forgotten."""
    names = notebook.told("tolerance_cam")
    study, steps = names["study"], STEP * np.eye(len(names["study"].names))
    names["beside"], _ = linearized(study, np.asarray(study.mean) + np.concatenate([steps, -steps]))
    return names


def test_first_order_agrees_with_samples_where_the_sequence_is_constant(told):
    report = told["report"]
    tally, first, second = report.sample.tally, report.first, report.second
    assert list(tally.kinds) == ["as nominal"] and tally.changed[0] == 0
    for k in range(3):
        assert abs(tally.mean[k] - second.moments.mean[k]) < 3.5 * tally.errors.mean[k]
        assert abs(tally.std[k] - first.std[k]) < 3.5 * tally.errors.std[k]
    p, error = tally.rate(tally.tails)
    above, below = second.capability.above[1], second.capability.below[2]
    assert abs(p[1][1] - above) < 3.5 * error[1][1] and abs(p[0][2] - below) < 3.5 * error[0][2]
    points = {point.value: point for point in report.points}
    for name, side, k in (("impact speed", 1, 1), ("least force", 0, 2)):
        assert points[name].converged
        assert abs(points[name].probability - p[side][k]) < 3.5 * error[side][k]
    # the expansion tells every single sample: what it leaves is of third order
    x = report.sample.dimensions(np.arange(1024)) - np.asarray(told["study"].mean)
    expanded = first.values + x @ first.slopes.T + np.einsum("ni,mij,nj->nm", x, second.curvatures, x) / 2
    left = np.abs(report.sample.values - expanded).max(0) / first.std
    assert np.all(left < 0.1), left


def test_lift_off_at_a_corner_depends_on_the_cam_alone(told):
    """The roller passes from the first flank to its end when the flank's normal through that corner meets the axis."""
    study, first = told["study"], told["report"].first
    k, names = list(told["measures"]).index("lift-off"), study.names
    for name in ("k", "m", "c"):
        assert abs(first.slopes[k, names.index(name)]) < 1e-12

    def lift_off_time(e, R, l, w, r):  # noqa: E741
        corner, along = np.array([-l, w]), np.array([-l - e, w - R])
        normal = np.array([along[1], -along[0]]) / np.hypot(*along)
        center = corner + r * (normal if normal[1] > 0 else -normal)
        return np.arctan2(center[1], center[0]) / 0.5

    p = {name: float(told["nominal"][name]) for name in ("e", "R", "l", "w", "r")}
    np.testing.assert_allclose(first.values[k], lift_off_time(**p), rtol=1e-10)
    for name in p:
        slope = (lift_off_time(**{**p, name: p[name] + 1e-5}) - lift_off_time(**{**p, name: p[name] - 1e-5})) / 2e-5
        np.testing.assert_allclose(first.slopes[k, names.index(name)], slope, rtol=1e-6, atol=1e-8)


def test_slopes_are_differences_also_where_two_events_happen_at_once(told):
    """At the corner, the contact goes on to the point and is released from it in the same instant."""
    above, below = np.split(told["beside"], 2)
    np.testing.assert_allclose(told["report"].first.slopes.T, (above - below) / (2 * STEP), rtol=1e-5, atol=1e-5)


def test_wider_tolerances_change_the_sequence(told):
    wide = told["wide"]
    p, error = wide.tally.changed
    early = wide["lift-off"] < 4
    assert 0.02 < early.mean() <= p < 0.98 and error < 0.02
    example = wide.tally.kinds["changed sequence"][2]
    log = wide.outcome(example).events
    nominal = told["sol"].events
    same = int(log.count) == int(nominal.count) and np.array_equal(log.kind, nominal.kind)
    assert not (same and np.array_equal(log.after, nominal.after))
    # who leaves early has a soft spring for its mass
    x = wide.dimensions(np.arange(2048))
    ratio = x[:, wide.study.names.index("k")] / x[:, wide.study.names.index("m")]
    assert ratio[early].mean() < ratio[~early].mean() - 3 * ratio.std() / np.sqrt(early.sum())
