"""Impacts with friction: Routh's construction for a rod, several contacts at once, Painleve's paradox."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbsjax as mbs
from mbsjax._dynamics.impact import Collision, Tangents, impact


G, HALF, TIP = 9.81, 0.5, 0.05
INERTIA = (2 * HALF) ** 2 / 12  # of a mass of one


def floor():
    return mbs.Body(
        "ground", profiles={"floor": mbs.Profile.chain([mbs.Line((50.0, 0.0), (-50.0, 0.0))], closed=False)}
    )


def rod(mu, e=0.0, *, active=False, tip=TIP):
    """A rod whose lower end is a disc."""
    return mbs.Mechanism(
        [floor(), mbs.Body("rod", mass=1.0, inertia=INERTIA, profiles={"tip": mbs.disc(tip, center=(-HALF, 0.0))})],
        [
            mbs.Planar("P", "ground", "rod"),
            mbs.Contact("C", "ground.floor", "rod.tip", active=active, friction=mu, restitution=e),
        ],
        gravity=(0.0, -G),
    )


def response(angle, tip=TIP):
    """What unit impulses up and along at the contact change of the gap's rate and of the sliding speed. The floor is
    drawn from right to left: sliding to the left is positive."""
    x, y = -HALF * np.cos(angle), -HALF * np.sin(angle) - tip
    return 1 + x**2 / INERTIA, -(-x * y / INERTIA), 1 + y**2 / INERTIA


def routh(u, w, g, mu, e, poisson):
    """The impulses, marched from break to break: sliding, until it stops; compression, until it ends; restitution,
    until the gap opens as fast as Newton says, or the impulse has grown by what Poisson says."""
    g_n, g_nt, g_t = g
    N = F = 0.0
    side, begin, compressed, more = np.sign(w), u, False, np.inf
    while True:
        if side:
            k = -mu * side
        else:
            k = -g_nt / g_t if abs(g_nt / g_t) <= mu else -mu * np.sign(g_nt)
        du, dw = g_n + g_nt * k, g_nt + g_t * k
        stop = -w / dw if side and side * dw < 0 else np.inf
        aim = -e * begin if compressed and not poisson else 0.0
        turn = (aim - u) / du if du > 0 and not (compressed and poisson) else np.inf
        step = min(stop, turn, more)
        N, F, u, w, more = N + step, F + k * step, u + du * step, w + dw * step, more - step
        if step == stop:
            w, side = 0.0, 0.0
        elif compressed or e == 0:
            return N, F
        else:
            compressed, more = True, e * N if poisson else np.inf


@pytest.mark.long
@pytest.mark.parametrize("restitution", ["newton", "poisson"])
def test_rods_hit_the_floor_as_in_rouths_construction(restitution):
    n = 128
    u = np.random.default_rng(5).uniform(size=(6, n))
    p = dict(
        angle=0.2 + 2.7 * u[0], spin=8 * u[1] - 4, v=4 * u[2] - 2, fall=-0.5 - 2 * u[3], mu=1.2 * u[4], e=0.9 * u[5]
    )

    def hit(p):
        y = HALF * jnp.sin(p["angle"]) + TIP + 0.02
        begin = mbs.State(jnp.stack([p["angle"], 0.0 * y, y]), jnp.stack([p["spin"], p["v"], p["fall"]]), jnp.zeros(()))
        log = mbs.simulate(
            rod(p["mu"], p["e"]), begin, 0.05, ts=jnp.array([0.0, 0.05]), max_steps=64, max_events=4,
            restitution=restitution, throw=False,
        ).events  # fmt: skip
        return (
            log.q[0],
            log.v_before[0],
            log.v_after[0],
            log.impulse[0, 0],
            log.friction[0, 0],
            log.count,
            log.energy[0],
        )

    q, before, after, N, F, count, energy = map(
        np.asarray, jax.jit(jax.vmap(hit))({k: jnp.asarray(x) for k, x in p.items()})
    )
    there, kinds = count > 0, set()
    assert there.sum() > 100 and np.all(energy[there, 1] <= energy[there, 0] * (1 + 1e-12))
    for i in np.flatnonzero(there):
        angle = q[i, 0]
        x, y = -HALF * np.cos(angle), -HALF * np.sin(angle) - TIP
        gap, sliding = before[i, 2] + before[i, 0] * x, -(before[i, 1] - before[i, 0] * y)
        for e in (float(p["e"][i]), 0.0):  # where restitution would make energy, there is none
            n_, f_ = routh(gap, sliding, response(angle), float(p["mu"][i]), e, restitution == "poisson")
            dv = np.array([(x * n_ + y * f_) / INERTIA, -f_, n_])
            gained = lambda v: INERTIA * v[0] ** 2 + v[1] ** 2 + v[2] ** 2
            if gained(before[i] + dv) <= gained(before[i]) * (1 + 1e-12):
                break
        kinds.add("slides" if abs(abs(f_) - p["mu"][i] * n_) < 1e-12 else "stops")
        np.testing.assert_allclose((N[i], F[i]), (n_, f_), rtol=0, atol=1e-9)
        np.testing.assert_allclose(after[i], before[i] + dv, rtol=0, atol=1e-8)
    assert kinds == {"slides", "stops"}


@pytest.mark.long
def test_a_box_lands_on_two_feet_at_once():
    """Both feet push, and friction stops the box or takes its share of the fall; it does not turn."""
    feet = {"left": mbs.disc(0.01, center=(-1.0, -0.29)), "right": mbs.disc(0.01, center=(1.0, -0.29))}

    def landed(v, mu):
        mech = mbs.Mechanism(
            [floor(), mbs.Body("box", mass=2.0, inertia=1.0, profiles=feet)],
            [
                mbs.Planar("P", "ground", "box"),
                *(mbs.Contact(k, "ground.floor", f"box.{k}", friction=mu) for k in feet),
            ],
            gravity=(0.0, -G),
        )
        begin = mbs.State(jnp.array([0.0, 0.0, 0.4]), jnp.stack([0.0, v, -1.0]), jnp.zeros(()))
        sol = mbs.simulate(mech, begin, 0.2, ts=jnp.array([0.0, 0.2]), max_steps=96, max_events=12, throw=False)
        first = sol.events.v_before[0], sol.events.v_after[0]
        return *first, sol.events.impulse[0], sol.events.friction[0], sol.v[-1]

    v, mu = jnp.array([3.0, 0.1, -2.0]), jnp.array([0.3, 0.3, 0.5])
    before, after, N, F, last = map(np.asarray, jax.jit(jax.vmap(landed))(v, mu))
    fall = before[:, 2]
    limit = np.asarray(mu) * 2 * -fall
    pushed = np.clip(2 * np.asarray(v), -limit, limit)
    np.testing.assert_allclose(N.sum(1), -2 * fall, rtol=1e-9)
    np.testing.assert_allclose(F.sum(1), pushed, rtol=1e-8)  # to the left, against a motion to the right
    np.testing.assert_allclose(after, np.stack([0 * fall, np.asarray(v) - pushed / 2, 0 * fall], 1), atol=1e-8)
    assert np.all(N > 0)
    assert abs(last[1, 1]) < 1e-9 and np.all(np.abs(last[:, [0, 2]]) < 1e-9)


def test_painleves_rod_has_no_way_to_slide_on():
    """A rod that points forward, with a coefficient above 4/3 (for a uniform one), cannot slide there."""
    mech, lean = rod(1.6, active=True, tip=1e-6), np.pi - np.arctan(2.0)
    begin = mbs.state(mech, {"P.angle": lean}, {"P.x": 1.0, "P.angle": 0.0})
    options = dict(ts=jnp.array([0.0, 0.2]), max_steps=256)
    sol = mbs.simulate(mech, begin, 0.2, throw=False, **options)
    assert sol.result == mbs.RESULTS.painleve and float(sol.stopped_at) == 0.0
    g_n, g_nt, _ = response(lean, 1e-6)
    expected = 1 - 1.6 * abs(g_nt) / g_n
    assert sol.paradox is not None and sol.paradox[0] == "C"
    assert sol.paradox[1] == pytest.approx(expected, abs=1e-9) and expected < 0
    with pytest.raises(RuntimeError, match="of 'C'.*Painleve"):
        mbs.simulate(mech, begin, 0.2, **options)
    # the other way it slides, and so it does with less friction
    for way, mu in ((-1.0, 1.6), (1.0, 1.2)):
        other = rod(mu, active=True, tip=1e-6)
        start = mbs.state(other, {"P.angle": lean}, {"P.x": way, "P.angle": 0.0})
        assert mbs.simulate(other, start, 0.02, throw=False, ts=jnp.array([0.0, 0.02]), max_steps=256).paradox is None


def test_painleves_rod_is_stopped_by_a_tangential_impact():
    mech, lean = rod(1.6, active=True, tip=1e-6), np.pi - np.arctan(2.0)
    begin = mbs.state(mech, {"P.angle": lean}, {"P.x": 1.0, "P.angle": 0.0})
    sol = mbs.simulate(mech, begin, 0.2, ts=jnp.array([0.0, 0.2]), max_steps=256, painleve="impact")
    N, F = float(sol.events.impulse[0, 0]), float(sol.events.friction[0, 0])
    g = response(lean, 1e-6)
    # sliding stops at first, with the limit of friction; then it sticks, until the gap no longer closes
    slows = g[1] - 1.6 * -1.0 * g[2]
    until = 1.0 / slows
    then = -(g[0] - 1.6 * -1.0 * g[1]) * until / (g[0] - g[1] ** 2 / g[2])
    assert N == pytest.approx(until + then, abs=1e-9)
    assert F == pytest.approx(1.6 * until - g[1] / g[2] * then, abs=1e-9)
    assert float(sol.events.energy[0, 1]) < float(sol.events.energy[0, 0])
    x, y = -HALF * np.cos(lean), -HALF * np.sin(lean) - 1e-6
    w, vx, vy = np.asarray(sol.events.v_after[0])
    assert abs(vy + w * x) < 1e-9 and abs(vx - w * y) < 1e-9


@pytest.mark.parametrize("c", [2, 4])
def test_impacts_of_several_contacts_keep_to_coulombs_law(c):
    """Discs and other bodies that touch in places all round them, some sliding a million times as fast as they
    approach: nothing pulls, nothing goes on closing, pairs hold within their cones, or slide with friction against."""
    lanes = 512
    rng = np.random.default_rng(c)
    shape = (lanes, c)
    angle, turned = rng.uniform(0, 2 * np.pi, shape), rng.uniform(0, 2 * np.pi, shape)
    disc = rng.random((lanes, 1)) < 0.5
    reach = np.where(disc, 0.3, rng.uniform(0.1, 0.5, shape))
    r = reach[..., None] * np.stack([np.cos(angle), np.sin(angle)], -1)
    along = np.where(disc, angle + np.pi, turned)
    n = np.stack([np.cos(along), np.sin(along)], -1)
    t = np.stack([n[..., 1], -n[..., 0]], -1)
    wrench = lambda d: np.concatenate([(r[..., 0] * d[..., 1] - r[..., 1] * d[..., 0])[..., None], d], -1)
    N, T = wrench(n), wrench(t)
    m = rng.uniform(0.5, 3.0, lanes)
    inverse = np.stack([1 / (m * rng.uniform(0.02, 0.09, lanes)), 1 / m, 1 / m], -1)[:, None]
    v = rng.normal(size=(lanes, 3)) * np.stack(
        [rng.choice([0.0, 1.0, 30.0], lanes), *[rng.choice([1e-5, 1.0], lanes)] * 2], 1
    )
    mu = rng.uniform(0.05, 1.0, shape)
    by = lambda A, B: np.einsum("lik,ljk->lij", A * inverse, B)
    rates, slides = (np.einsum("lik,lk->li", A, v) for A in (N, T))
    response = lambda A: np.swapaxes(A * inverse, 1, 2)
    tangents = Tangents(slides, response(T), by(N, T), by(T, T), mu)

    @jax.jit
    @jax.vmap
    def met(met):
        none, all_ = jnp.zeros(c), jnp.ones(c, bool)
        return impact(met, none, all_, ~all_, jnp.zeros(()), False)

    hit = met(jax.tree_util.tree_map(jnp.asarray, Collision(None, rates, response(N), by(N, N), tangents)))
    pressed, rubbed = (np.asarray(x) for x in hit.impulse)
    opens = rates + np.einsum("lij,lj->li", by(N, N), pressed) + np.einsum("lij,lj->li", by(N, T), rubbed)
    slips = slides + np.einsum("lji,lj->li", by(N, T), pressed) + np.einsum("lij,lj->li", by(T, T), rubbed)
    worst = lambda x, size: np.max(x / (1e-300 + np.max(np.abs(size), 1, keepdims=True)))
    assert worst(-pressed, pressed) < 1e-7 and worst(-opens, rates) < 1e-6
    assert worst(np.abs(pressed * opens), pressed * rates) < 1e-6
    assert worst(np.abs(rubbed) - mu * pressed, pressed) < 1e-6
    # what is within its cone does not slide, and friction is never the way that it slides; one alone goes Routh's path
    several = np.sum(np.asarray(hit.struck), 1, keepdims=True) > 1
    assert 0.2 < several.mean() < 1
    inside = several & (np.abs(rubbed) < mu * pressed - 1e-5 * pressed.max(1, keepdims=True))
    assert worst(np.abs(np.where(inside, slips, 0.0)), slides) < 1e-6
    assert worst(np.where(several, rubbed * slips, 0.0), pressed.max(1, keepdims=True) * slides) < 1e-6
