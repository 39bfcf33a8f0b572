"""Period of a box that a spring holds on a moving belt, and its slope in the speed of the belt."""

import jax
import jax.numpy as jnp

import mbsjax as mbs


jax.config.update("jax_enable_x64", True)


def period(speed):
    top = mbs.Profile.chain([mbs.Line((2.0, 0.0), (-2.0, 0.0))], closed=False)
    mech = mbs.Mechanism(
        [
            mbs.Body("belt", mass=1.0, profiles={"top": top}),
            mbs.Body("cart"),
            mbs.Body("box", mass=1.0, profiles={"rim": mbs.disc(0.1)}),
        ],
        [
            mbs.Prismatic("drive", "ground", "belt"),
            mbs.Prismatic("x", "ground", "cart"),
            mbs.Prismatic("y", "cart", "box", axis=(0.0, 1.0), start=0.1),
            mbs.Contact("C", "belt.top", "box.rim", active=True, friction=mbs.Coulomb(0.25, static=0.4)),
        ],
        forces=[mbs.Spring("x", stiffness=100.0)],
        gravity=(0.0, -9.81),
    )
    drive = {"drive": mbs.constant_speed(speed)}
    start = mbs.state(mech, {"x": 0.0}, {"x": speed}, drive=drive)
    sol = mbs.simulate(mech, start, 4.0, ts=jnp.array([4.0]), drive=drive, max_steps=512)
    slips = sol.event_times("C", "slips")
    return (slips[4] - slips[0]) / 4


print(*jax.jvp(period, (0.1,), (1.0,)))
