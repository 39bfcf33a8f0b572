"""Second opinions on motions, and how near two of them are."""

import diffrax
import numpy as np
from scipy.integrate import solve_ivp


FINE = {"solver": diffrax.Dopri8(), "rtol": 1e-11, "atol": 1e-11}


def times(t1, n=20):
    return np.linspace(0.0, t1, n + 1)


def close(actual, expected, tol):
    """Agreement to `tol` of the largest value, or of one where all are smaller."""
    expected = np.asarray(expected)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tol * max(1.0, np.abs(expected).max()))


def scipy(rate, y0, ts, events=None):
    """A second opinion on an ordinary differential equation: the values at `ts`, one row for each unknown."""
    found = solve_ivp(
        rate, (ts[0], ts[-1]), y0, method="DOP853", rtol=3e-14, atol=1e-14, dense_output=True, events=events
    )
    assert found.success
    return found.sol(ts) if events is None else found
