"""Motion laws have the peak factors of the handbooks, and programs are what their segments say."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import cumulative_simpson

import mbsjax as mbs
from mbsjax._model.profile.motion_laws import LAWS, slope


pi = np.pi
# Norton, Cam Design and Manufacturing Handbook; VDI 2143: velocity, acceleration, jerk
FACTORS = {
    "harmonic": (pi / 2, pi**2 / 2, pi**3 / 2),
    "cycloidal": (2, 2 * pi, 4 * pi**2),
    "poly345": (15 / 8, 10 / np.sqrt(3), 60),
    "poly4567": (35 / 16, 7.513188404, 52.5),
    "mod_trapezoid": (2, 8 * pi / (2 + pi), 61.425974812367315),
    "mod_sine": (1.7596033859537705, 5.52795707054409, 69.46635728872427),
}
GRID = jnp.linspace(0.0, 1.0, 4097)


@jax.jit
def derivatives(x):
    found = {}
    for name, law in LAWS.items():
        v = slope(law)
        found[name] = law(x), v(x), slope(v)(x)
    return found


@pytest.mark.parametrize("name", FACTORS)
def test_peak_factors_of_the_handbooks(name):
    digits = 1e-10 if name == "poly4567" else 1e-14
    np.testing.assert_allclose(mbs.peak_factors(name), FACTORS[name], rtol=digits)


@pytest.mark.parametrize("name", FACTORS)
def test_laws_rise_from_0_to_1_smoothly(name):
    y, v, a = (np.asarray(d) for d in derivatives(GRID)[name])
    step = 1 / (len(GRID) - 1)
    np.testing.assert_allclose(y[[0, -1]], (0.0, 1.0), atol=1e-14)
    np.testing.assert_allclose(v[[0, -1]], 0.0, atol=1e-13)
    np.testing.assert_allclose(y + y[::-1], 1.0, atol=1e-14)
    jerk = FACTORS[name][2]
    assert np.abs(np.diff(a)).max() <= jerk * step * 1.001  # acceleration has no jumps inside
    if name != "harmonic":
        np.testing.assert_allclose(a[[0, -1]], 0.0, atol=1e-12)
    # the acceleration, integrated twice, gives the law back
    velocity = cumulative_simpson(a, dx=step, initial=0)
    np.testing.assert_allclose(velocity, v, atol=1e-7)
    np.testing.assert_allclose(cumulative_simpson(v, dx=step, initial=0), y, atol=1e-7)


def program(rise=1.2, height=20.0):
    rest = 2 * pi - rise - 2.5
    return mbs.Program(
        [
            mbs.Rise("mod_sine", rise, height),
            mbs.Dwell(0.5),
            mbs.Fall("poly4567", 1.4, 0.25 * height),
            mbs.Fall("harmonic", rest, 0.75 * height),
            mbs.Dwell(0.6),
        ]
    )


def test_program_follows_its_segments():
    p = program()
    theta = np.array([0.0, 0.6, 1.2, 1.5, 1.7, 2.4, 3.1, 2 * pi - 0.6, 2 * pi - 0.3, 2 * pi, 2 * pi + 0.6, -0.3])
    lift = [0.0, 10.0, 20.0, 20.0, 20.0, 17.5, 15.0, 0.0, 0.0, 0.0, 10.0, 0.0]
    np.testing.assert_allclose(p(theta), lift, atol=1e-12)
    harmonic = 7.5 * (1 + np.cos(pi * 0.25))
    np.testing.assert_allclose(p(3.1 + (2 * pi - 3.7) / 4), harmonic, rtol=1e-13)


def test_derivatives_of_a_program():
    p = program()
    theta = jnp.linspace(0.01, 6.27, 61)
    h, speed = 1e-4, 12.0
    table = p.svaj(theta, speed)
    before, after = p.svaj(theta - h, speed), p.svaj(theta + h, speed)
    for k in range(3):
        slope_of = speed * (np.asarray(after[k]) - np.asarray(before[k])) / (2 * h)
        np.testing.assert_allclose(table[k + 1], slope_of, atol=2e-6 * np.abs(table[k + 1]).max())
    np.testing.assert_allclose(table.jerk, speed**3 * p.svaj(theta).jerk, rtol=1e-12)


def test_gradients_with_respect_to_the_segments():
    value = jax.jit(lambda x: jnp.sum(program(x[0], x[1])(jnp.array([0.7, 2.0, 4.0])) ** 2))
    x, h = jnp.array([1.2, 20.0]), 1e-5
    central = [(value(x + h * e) - value(x - h * e)) / (2 * h) for e in jnp.eye(2)]
    np.testing.assert_allclose(jax.grad(value)(x), central, rtol=1e-7)


def test_any_function_is_a_law():
    p = mbs.Program([mbs.Rise(lambda x: x * x * (3 - 2 * x), pi, 2.0), mbs.Fall("poly345", pi, 2.0)])
    np.testing.assert_allclose(p(pi / 4), 2 * 0.15625, rtol=1e-14)


CULPRITS = {
    "angles too small": (lambda: mbs.Program([mbs.Dwell(6.0)]), "fall short of a full turn by 0.283185 rad"),
    "angles too large": (lambda: mbs.Program([mbs.Dwell(2 * pi + pi / 180)]), r"exceed .* \(1 deg\)"),
    "lift that stays": (
        lambda: mbs.Program([mbs.Rise("cycloidal", pi, 3.0), mbs.Fall("cycloidal", pi, 2.5)]),
        r"does not return.*\+0.5",
    ),
    "unknown law": (lambda: mbs.Rise("cyclodial", pi, 1.0), "'cyclodial'.*cycloidal"),
    "no segments": (lambda: mbs.Program([]), "at least one segment"),
    "no segment": (lambda: mbs.Program([mbs.Dwell(pi), "fall"]), "segment 1.*'fall'"),
    "negative angle": (lambda: mbs.Dwell(-1.0), "cam angle of a segment must be positive"),
    "height that is no number": (lambda: mbs.Rise("poly345", 1.0, "high"), "height of a segment.*'high'"),
    "law that does not rise": (
        lambda: mbs.Program([mbs.Rise(lambda x: 2 * x, pi, 1.0), mbs.Fall("poly345", pi, 1.0)]),
        "law of segment 0",
    ),
}


@pytest.mark.parametrize("case", CULPRITS)
def test_bad_programs_are_named(case):
    make, message = CULPRITS[case]
    with pytest.raises(ValueError, match=message):
        make()
