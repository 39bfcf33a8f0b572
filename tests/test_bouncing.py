"""How bouncing ends: where the series of impacts does, whatever the length of the floor and the speed called rest."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbsjax as mbs
from tests.impacts import ball


G = 9.81
# height of the drop, restitution, half the floor, rest_speed
DROPS = np.array(
    [
        (1.0, 0.5, 1.0, 1e-4),
        (1.0, 0.5, 1.0, 1e-5),
        (1.0, 0.5, 1.0, 1e-6),
        (1e-3, 0.5, 1.0, 1e-5),
        (1e-3, 0.5, 0.01, 1e-5),
        (1e-3, 0.5, 100.0, 1e-5),
        (0.3, 0.2, 5.0, 1e-9),
    ]
)


@jax.jit
@jax.vmap
def dropped(h, e, half, rest_speed):
    """The slopes of the last event's time in h and e; times, kinds and number of the events, where the ball is in the
    end, and whether that was reached."""

    def last(h, e):
        mech, t1 = ball(e, half), 1.6 * jnp.sqrt(h)
        state = mbs.state(mech, {"height": 0.1 + h}, throw=False)
        options = {"rest_speed": rest_speed, "max_steps": 128, "max_events": 32, "throw": False}
        sol = mbs.simulate(mech, state, t1, ts=t1[None], **options)
        log = sol.events
        return log.t[log.count - 1], (log.t, log.kind, log.count, sol.q[-1], sol.result == mbs.RESULTS.successful)

    return jax.jacfwd(last, (0, 1), has_aux=True)(h, e)


@pytest.mark.long
def test_bouncing_ends_at_its_accumulation_point():
    """The n-th impact is at t1 (1 + 2 e + ... + 2 e^(n-1)), where t1 = sqrt(2 h/g), the end at t1 (1 + e) / (1 - e)."""
    slopes, (times, kinds, count, q, fine) = dropped(*jnp.asarray(DROPS).T)
    assert bool(jnp.all(fine))
    h, e = DROPS[:, 0], DROPS[:, 1]
    np.testing.assert_allclose(slopes[0], np.sqrt(1 / (2 * G * h)) * (1 + e) / (1 - e), rtol=1e-8)
    np.testing.assert_allclose(slopes[1], np.sqrt(2 * h / G) * 2 / (1 - e) ** 2, rtol=1e-8)
    np.testing.assert_allclose(q, 0.1, rtol=0, atol=1e-12)
    for i, (h, e, _, rest_speed) in enumerate(DROPS):
        n, first = int(count[i]), np.sqrt(2 * h / G)
        assert [mbs.EVENTS[k] for k in kinds[i, :n]] == ["impact"] * (n - 1) + ["closed"]
        impacts = first * np.cumsum([1.0, *(2 * e**k for k in range(1, n - 1))])
        np.testing.assert_allclose(times[i, :n], [*impacts, first * (1 + e) / (1 - e)], rtol=0, atol=3e-11)
        # all that part faster than `rest_speed` are there, as long as bounces can be told from rounding
        expected = int(np.floor(np.log(rest_speed / (G * first)) / np.log(e))) + 1
        assert n == expected if i in (0, 1, 3, 4) else n <= expected
    assert count[0] == 16 and count[1] == 19 and count[3] == count[4]
