"""Discs that roll on a floor into a wall, or spin there: they rub on both, bounce off both, and rest in the corner."""

import jax
import jax.numpy as jnp
import numpy as np

import mbsjax as mbs


LANES, T1, G = 32, 4.0, 9.81


def corner(p) -> mbs.Mechanism:
    floor, wall = mbs.Line((10.0, 0.0), (-10.0, 0.0)), mbs.Line((0.0, -1.0), (0.0, 10.0))
    walls = {name: mbs.Profile.chain([line], closed=False) for name, line in (("floor", floor), ("wall", wall))}
    disc = mbs.Body("disc", mass=p["mass"], inertia=p["inertia"], profiles={"rim": mbs.disc(p["radius"])})
    contacts = [
        mbs.Contact(name, f"ground.{name}", "disc.rim", restitution=p["restitution"][k], friction=p["friction"][k])
        for k, name in enumerate(walls)
    ]
    bodies = [mbs.Body("ground", profiles=walls), disc]
    return mbs.Mechanism(bodies, [mbs.Planar("at", "ground", "disc"), *contacts], gravity=(0.0, -G))


def drawn() -> dict[str, np.ndarray]:
    """Among such, contacts that closed in the corner were shifted again and again, at one time."""
    rng = np.random.default_rng(11)
    radius, mass = rng.uniform(0.1, 0.4, LANES), rng.uniform(0.5, 3.0, LANES)
    p = {
        "radius": radius,
        "mass": mass,
        "inertia": rng.uniform(0.3, 1.0, LANES) * mass * radius**2,
        "friction": rng.uniform(0.05, 0.6, (LANES, 2)),
        "restitution": np.stack([np.full(LANES, 0.2), rng.uniform(0.1, 0.6, LANES)], 1),
        "speed": rng.uniform(0.1, 1.5, LANES),
        "start": rng.uniform(0.01, 0.3, LANES),
    }
    known = (0.25741966149773665, 2.814286443036047, 0.6725123314320409)
    first = {"radius": known[0], "mass": known[1], "inertia": known[2] * known[1] * known[0] ** 2, "speed": 0.3}
    first |= {"friction": (0.3717853168921833, 0.1185933018522594), "restitution": (0.2, 0.30248900591499406)}
    for name, x in (first | {"start": 0.02}).items():
        p[name][0] = x
    return p | {"spin": p["speed"] / p["radius"]}


@jax.jit
@jax.vmap
def rolled(p):
    R, v = p["radius"], p["speed"]
    state = mbs.State(jnp.stack([0 * R, R + p["start"], R]), jnp.stack([p["spin"], -v, 0 * v]), jnp.zeros(()))
    options = {"max_steps": 2000, "max_events": 200, "throw": False}
    sol = mbs.simulate(corner(p), state, T1, ts=jnp.linspace(0.0, T1, 33), **options)
    log = sol.events
    return sol.result._value, log.t, log.kind, log.contact, log.count, sol.q, sol.energy


def spun() -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Discs that spin fast on their floor, whose friction presses them onto the wall, off which they bounce; when that
    ends, and when the spin does. Friction at the wall throws the disc up: until it is back, nothing presses."""
    rng, found = np.random.default_rng(12), []
    while len(found) < LANES:
        R, m, k, speed, d = rng.uniform((0.1, 0.5, 0.3, 0.1, 0.01), (0.4, 3.0, 1.0, 1.5, 0.3))
        mu, nu, e_floor, e, stop = rng.uniform((0.1, 0.05, 0.0, 0.1, 2.0), (0.5, 0.4, 0.2, 0.6, 3.8))
        a = mu * nu
        ratio = e + a * (1 + e)  # of speeds at the wall, from impact to impact
        struck = np.sqrt(speed**2 + 2 * mu * G * d)
        first = (struck - speed) / (mu * G)
        period = struck * ((e + ratio) / mu + nu * (1 + e)) / G
        end, hops = first + period / (1 - ratio), 2 * nu * (1 + e) * struck / (G * (1 - e_floor))
        # momentum, up to the end of the spin: floor and wall bear the weight, and have stopped the disc
        floor = m * (G * stop - nu * speed) / (1 + a)
        spin = R * (mu * floor + nu * (m * speed + mu * floor)) / (k * m * R**2)
        if ratio < 0.7 and end < 0.9 * stop and hops < 0.5 * period:
            found.append([R, m, k * m * R**2, speed, d, spin, (mu, nu), (e_floor, e), end, stop])
    *p, end, stop = (np.array(x) for x in zip(*found))
    names = "radius", "mass", "inertia", "speed", "start", "spin", "friction", "restitution"
    return dict(zip(names, p, strict=True)), end, stop


def test_bouncing_ends_where_friction_presses_as_its_series_does():
    p, end, stop = spun()
    result, t, kind, contact, *_ = (np.asarray(x) for x in rolled(p))
    assert np.all(result == mbs.RESULTS.successful._value)
    of = lambda name: np.where(kind == mbs.EVENTS.index(name), t, np.inf)
    np.testing.assert_allclose(np.where(contact == 1, of("closed"), np.inf).min(1), end, rtol=0, atol=1e-9)
    np.testing.assert_allclose(of("sticks").min(1), stop, rtol=0, atol=1e-9)


def test_discs_come_to_rest_in_a_corner_after_few_events():
    p = drawn()
    result, t, kind, contact, count, q, energy = (np.asarray(x) for x in rolled(p))
    assert np.all(result == mbs.RESULTS.successful._value) and count.max() < 150
    happens = np.isfinite(t[:, 1:])
    soon = np.where(happens, t[:, 1:], np.inf) - np.where(happens, t[:, :-1], 0.0) < 1e-13
    again = soon & (contact[:, 1:] == contact[:, :-1]) & (kind[:, 1:] == kind[:, :-1])
    assert not again.any()  # nothing happens twice at one time
    assert np.max(p["radius"][:, None] - q[..., 1:].min(-1)) < 1e-11
    assert np.max(np.diff(energy)) < 1e-11
