"""Simulations of mechanisms with contacts: made with the same sizes, so that few programs are compiled, and checked."""

import jax.numpy as jnp
import numpy as np

import mbsjax as mbs


COUNT = 201  # of output times, the same everywhere: so few programs are compiled


def go(mech, t1, *, drive=None, positions=None, velocities=None, ts=None, rest_speed=1e-4, **options):
    """A simulation with sizes that all tests share. Output times are padded, at their end."""
    state = mbs.state(mech, positions or {}, velocities or {}, drive=drive)
    if ts is not None:
        ts = np.asarray(ts, float)
        ts = np.concatenate([ts, np.linspace(ts[-1], t1, COUNT - len(ts) + 1)[1:]])
    else:
        ts = np.linspace(0.0, t1, COUNT)
    return mbs.simulate(
        mech, state, t1, drive=drive, ts=ts, rest_speed=rest_speed, max_steps=1024, max_events=64, **options
    )


def skid() -> mbs.Solution:
    """A disc that slides on a floor at first, and rolls after half a second: friction of 2 slows it from 3 by 2 each
    second, and turns it faster by 40, until it rolls at 2."""
    floor = mbs.Profile.chain([mbs.Line((4.0, 0.0), (-1.0, 0.0))], closed=False)
    disc = mbs.Body("disc", mass=1.0, inertia=0.005, profiles={"rim": mbs.disc(0.1)})
    mech = mbs.Mechanism(
        [mbs.Body("ground", profiles={"floor": floor}), disc],
        [
            mbs.Planar("P", "ground", "disc", start=(0.0, 0.0, 0.1)),
            mbs.Contact("C", "ground.floor", "disc.rim", active=True, friction=0.2),
        ],
        gravity=(0.0, -10.0),
    )
    begin = mbs.state(mech, velocities={"P.x": 3.0})
    return mbs.simulate(mech, begin, 1.0, ts=np.linspace(0.0, 1.0, 21), max_steps=64, max_events=8)


def story(sol):
    """What happened, and to which contact."""
    return [(e.kind, e.contact) for e in sol.events.list(sol.mech)]


def event_times(sol):
    return np.asarray(sol.events.t[: int(sol.events.count)])


def check_contacts(sol, size=1.0, forces=1.0, driven=False, behind=np.inf):
    """Bodies do not penetrate, do not pull, and impacts do not make energy, unless a driver pushes. A gap below
    -`behind` is that of a body which stands on the far side of an open profile: it cannot have come there through it
    from one output to the next."""
    assert bool(sol.result == mbs.RESULTS.successful)
    for contact in sol.mech.contacts:
        track = sol[contact.name]
        if contact.law is None:
            assert not np.any((track.gap < -1e-9 * size) & (track.gap > -behind)), contact.name
            assert float(jnp.max(jnp.abs(jnp.where(track.active, track.gap, 0.0)))) <= 1e-9 * size
        assert float(jnp.min(track.force)) >= -1e-9 * forces, contact.name
        assert float(jnp.max(jnp.abs(jnp.where(track.active, 0.0, track.force)))) == 0.0
    n = int(sol.events.count)
    before, after = np.asarray(sol.events.energy[:n]).T
    assert driven or np.all(after <= before * (1 + 1e-12) + 1e-15)
    assert np.all(np.asarray(sol.events.impulse[:n]) >= 0)
