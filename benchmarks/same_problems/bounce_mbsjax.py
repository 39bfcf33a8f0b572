"""Height of a ball a second after it fell from a height of 1 and bounced without loss, and its slope in that height."""

import jax
import jax.numpy as jnp

import mbsjax as mbs


jax.config.update("jax_enable_x64", True)


def after_a_second(height):
    floor = mbs.Profile.chain([mbs.Line((1.0, 0.0), (-1.0, 0.0))], closed=False)
    ball = mbs.Mechanism(
        [mbs.Body("ground", profiles={"floor": floor}), mbs.Body("ball", mass=1.0, profiles={"rim": mbs.disc(0.1)})],
        [
            mbs.Prismatic("y", "ground", "ball", axis=(0.0, 1.0)),
            mbs.Contact("bounce", "ground.floor", "ball.rim", restitution=1.0),
        ],
        gravity=(0.0, -9.81),
    )
    start = mbs.state(ball, {"y": 0.1 + height})
    return mbs.simulate(ball, start, 1.0, ts=jnp.array([1.0]), max_steps=64)["y"].q[0] - 0.1


print(*jax.jvp(after_a_second, (1.0,), (1.0,)))
