"""When the flat follower of an eccentric that runs too fast comes back, and the slope in its spring's stiffness."""

import jax
import jax.numpy as jnp

import mbsjax as mbs


jax.config.update("jax_enable_x64", True)
FACE = mbs.Profile.chain([mbs.Line((-0.03, 0.0), (0.03, 0.0))], closed=False)  # solid above it


def comes_back(stiffness):
    mech = mbs.Mechanism(
        [
            mbs.Body("cam", profiles={"rim": mbs.disc(0.02, (0.0, -0.005))}),
            mbs.Body("follower", mass=0.2, profiles={"face": FACE}),
        ],
        [
            mbs.Revolute("O", "ground", "cam"),
            mbs.Prismatic("lift", "ground", "follower", (0.0, 0.015), axis=(0.0, 1.0)),
            mbs.Contact("C", "cam.rim", "follower.face", active=True),
        ],
        forces=[mbs.Spring("lift", stiffness=stiffness, free_length=0.0, preload=10.0)],
    )
    drive = {"O": mbs.constant_speed(200.0)}
    sol = mbs.simulate(mech, mbs.state(mech, drive=drive), 0.03, ts=jnp.array([0.03]), drive=drive, max_steps=256)
    return sol.event_times("C", "closed")[0]


print(*jax.jvp(comes_back, (2000.0,), (1.0,)))
