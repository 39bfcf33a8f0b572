"""Discs that roll on a floor into a wall, rub on both, bounce off both, and come to rest in the corner."""

import jax
import jax.numpy as jnp
import numpy as np

import mbsjax as mbs


LANES, T1 = 32, 4.0


def corner(p) -> mbs.Mechanism:
    floor, wall = mbs.Line((10.0, 0.0), (-10.0, 0.0)), mbs.Line((0.0, -1.0), (0.0, 10.0))
    walls = {name: mbs.Profile.chain([line], closed=False) for name, line in (("floor", floor), ("wall", wall))}
    disc = mbs.Body("disc", mass=p["mass"], inertia=p["inertia"], profiles={"rim": mbs.disc(p["radius"])})
    contacts = [
        mbs.Contact(name, f"ground.{name}", "disc.rim", restitution=p["restitution"][k], friction=p["friction"][k])
        for k, name in enumerate(walls)
    ]
    bodies = [mbs.Body("ground", profiles=walls), disc]
    return mbs.Mechanism(bodies, [mbs.Planar("at", "ground", "disc"), *contacts], gravity=(0.0, -9.81))


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
    return p


@jax.jit
@jax.vmap
def rolled(p):
    R, v = p["radius"], p["speed"]
    state = mbs.State(jnp.stack([0 * R, R + p["start"], R]), jnp.stack([v / R, -v, 0 * v]), jnp.zeros(()))
    options = {"max_steps": 2000, "max_events": 200, "throw": False}
    sol = mbs.simulate(corner(p), state, T1, ts=jnp.linspace(0.0, T1, 33), **options)
    log = sol.events
    return sol.result._value, log.t, log.kind, log.contact, log.count, sol.q, sol.energy


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
