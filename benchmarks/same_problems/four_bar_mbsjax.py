"""Rocker angle of a four-bar where its crank stands at 100 degrees, and its slope in the length of the coupler."""

import jax
import jax.numpy as jnp

import mbsjax as mbs


jax.config.update("jax_enable_x64", True)
CRANK = jnp.deg2rad(jnp.arange(361.0))


def rocker(coupler):
    mech = mbs.Mechanism(
        [mbs.Body("crank"), mbs.Body("coupler"), mbs.Body("rocker")],
        [
            mbs.Revolute("A", "ground", "crank"),
            mbs.Revolute("B", "crank", "coupler", (1.0, 0.0)),
            mbs.Revolute("C", "coupler", "rocker", (coupler, 0.0), (2.5, 0.0)),
            mbs.Revolute("D", "ground", "rocker", (3.5, 0.0), start=1.5),
        ],
    )
    return mbs.kinematics(mech, {"A": mbs.constant_speed(1.0)}, CRANK)["D"].q[100]


print(*jax.jvp(rocker, (3.0,), (1.0,)))
