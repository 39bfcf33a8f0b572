"""How bouncing ends: where the series of impacts does, whatever the length of the floor and the speed called rest."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import brentq

import mbsjax as mbs
from tests.impacts import ball


G = 9.81
# height of the drop, restitution, half the floor, rest_speed; a damper that drags, and how fast the pull fades
DROPS = np.array(
    [
        (1.0, 0.5, 1.0, 1e-4, 0.0, 0.0),
        (1.0, 0.5, 1.0, 1e-5, 0.0, 0.0),
        (1.0, 0.5, 1.0, 1e-6, 0.0, 0.0),
        (1e-3, 0.5, 1.0, 1e-5, 0.0, 0.0),
        (1e-3, 0.5, 0.01, 1e-5, 0.0, 0.0),
        (1e-3, 0.5, 100.0, 1e-5, 0.0, 0.0),
        (0.3, 0.2, 5.0, 1e-9, 0.0, 0.0),
        (0.3, 0.2, 1.0, 1e-2, 2.0, 1.5),
        (1.0, 0.5, 1.0, 3e-2, 0.6, -4.0),
        (0.6, 0.6, 1.0, 1e-2, 4.0, 3.0),
    ]
)


@jax.jit
@jax.vmap
def dropped(h, e, half, rest_speed, drag, fading):
    """The slopes of the last event's time in h, e, drag and fading; times, kinds and number of the events, where the
    ball is in the end, and whether that was reached."""

    def last(h, e, drag, fading):
        mech, t1 = ball(e, half), 1.6 * jnp.sqrt(h)
        pushed = lambda t, at: (0.0, fading * t - drag * at["height"].v)
        mech = mech.replaced(forces=(mbs.Load("ball", force=pushed),))
        state = mbs.state(mech, {"height": 0.1 + h}, throw=False)
        options = {"rest_speed": rest_speed, "max_steps": 128, "max_events": 32, "throw": False}
        sol = mbs.simulate(mech, state, t1, ts=t1[None], **options)
        log = sol.events
        return log.t[log.count - 1], (log.t, log.kind, log.count, sol.q[-1], sol.result == mbs.RESULTS.successful)

    return jax.jacfwd(last, (0, 1, 2, 3), has_aux=True)(h, e, drag, fading)


def end_of_bouncing(h, e, drag, fading):
    """The sum of all flights under g - fading t + drag v, by the power series of each."""
    t, y, v, s = 0.0, h, 0.0, np.sqrt(2 * h / G)
    while s > 1e-9:
        speed = [v, fading * t - G - drag * v]
        speed.append((fading - drag * speed[1]) / 2)
        for k in range(3, 30):
            speed.append(-drag * speed[-1] / k)
        mean = np.polynomial.Polynomial(np.divide(speed, np.arange(1, 31)))  # of the speed, up to a time
        long = brentq(lambda s, y=y, mean=mean: y / s + mean(s), 0.6 * s, 1.6 * s, xtol=1e-24, rtol=1e-15)
        v = -e * np.polynomial.Polynomial(speed)(long)
        t, y = t + long, 0.0
        s = 2 * v / (G - fading * t)
    return t + s / (1 - e)


def test_bouncing_ends_at_its_accumulation_point():
    """The n-th impact is at t1 (1 + 2 e + ... + 2 e^(n-1)), where t1 = sqrt(2 h/g), the end at t1 (1 + e) / (1 - e)."""
    slopes, (times, kinds, count, q, fine) = dropped(*jnp.asarray(DROPS).T)
    assert bool(jnp.all(fine))
    free = DROPS[:, 4] == 0
    h, e = DROPS[free, 0], DROPS[free, 1]
    slopes = [np.asarray(x)[free] for x in slopes]
    np.testing.assert_allclose(slopes[0], np.sqrt(1 / (2 * G * h)) * (1 + e) / (1 - e), rtol=1e-8)
    np.testing.assert_allclose(slopes[1], np.sqrt(2 * h / G) * 2 / (1 - e) ** 2, rtol=1e-8)
    np.testing.assert_allclose(q, 0.1, rtol=0, atol=1e-12)
    for i, (h, e, _, rest_speed, *_) in enumerate(DROPS[free]):
        n, first = int(count[i]), np.sqrt(2 * h / G)
        assert [mbs.EVENTS[k] for k in kinds[i, :n]] == ["impact"] * (n - 1) + ["closed"]
        impacts = first * np.cumsum([1.0, *(2 * e**k for k in range(1, n - 1))])
        np.testing.assert_allclose(times[i, :n], [*impacts, first * (1 + e) / (1 - e)], rtol=0, atol=3e-11)
        # all that part faster than `rest_speed` are there, as long as bounces can be told from rounding
        expected = int(np.floor(np.log(rest_speed / (G * first)) / np.log(e))) + 1
        assert n == expected if i in (0, 1, 3, 4) else n <= expected
    assert count[0] == 16 and count[1] == 19 and count[3] == count[4]


def test_bouncing_in_a_medium_ends_where_its_flights_do():
    """What pulls changes with the time and with the speed. The told end leaves out what is of third order in the time
    that the flights would take which are not made, its slopes those of how the pull changes too: (1 - e)/2e + 1/6 of
    that time's square in that of the drag, -1/3P in that of the fading."""
    slopes, (times, _, count, *_) = dropped(*jnp.asarray(DROPS).T)
    for i, (h, e, _, _, *more) in enumerate(DROPS):
        if not more[0]:
            continue
        x = np.array([h, e, *more])
        n, end = int(count[i]), float(times[i, count[i] - 1])
        left = e * (end - times[i, n - 2])  # of a geometric series
        assert 5e-4 < left < 1e-2  # much is left, so that the law of the flights is seen
        third = left**3 / 2
        np.testing.assert_allclose(end, end_of_bouncing(*x), rtol=0, atol=2e-10 + third)
        out = left**2 * np.array([0.0, 0.0, (1 - e) / (2 * e) + 1 / 6, -1 / (3 * (G - more[1] * end))])
        steep = np.array([1.0, 3 * (n / e + 1 / (1 - e)), 1.0, 1.0])  # how that time's cube depends on e
        for k, slope in enumerate(slopes):
            d = 1e-4 * np.eye(4)[k]
            wanted = [(end_of_bouncing(*(x + s * d)) - end_of_bouncing(*(x - s * d))) / (2e-4 * s) for s in (1, 2)]
            wanted = (4 * wanted[0] - wanted[1]) / 3 + out[k]
            np.testing.assert_allclose(slope[i], wanted, rtol=0, atol=5e-9 + third * steep[k])
