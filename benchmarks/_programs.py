"""Standard programs, how large they are, and what they are when written by hand."""

import importlib.resources
from collections.abc import Callable, Iterator
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
from jax.extend.core import Jaxpr, JaxprEqn

import mbsjax as mbs
from tests.impacts import FLAT

from .dynamics import follower, four_bar


def equations(program: Jaxpr) -> int:
    """How many equations a program has; a program within it counts as often as it is called."""
    return sum(1 + sum(map(equations, _within(equation))) for equation in program.eqns)


def _within(equation: JaxprEqn) -> Iterator[Jaxpr]:
    for value in equation.params.values():
        for item in value if isinstance(value, tuple | list) else (value,):
            item = getattr(item, "jaxpr", item)
            if hasattr(item, "eqns"):
                yield item


# -- a pendulum ---------------------------------------------------------------------------------------------------


def pendulum(angle: Any) -> Any:
    """The angle of a rod that swings for two seconds."""
    mech = mbs.Mechanism(
        [mbs.Body("bob", mass=1.0, center=(1.0, 0.0), inertia=0.1)],
        [mbs.Revolute("O", "ground", "bob")],
        gravity=(0.0, -9.81),
    )
    begin = mbs.State(jnp.reshape(angle, 1), jnp.zeros(1), jnp.zeros(()))
    return mbs.simulate(mech, begin, 2.0, ts=jnp.linspace(0.0, 2.0, 21), throw=False)["O"].q


# -- the flat follower --------------------------------------------------------------------------------------------


def nominal() -> dict[str, Any]:
    return {name: jnp.asarray(x) for name, x in {**FLAT, "restitution": 0.3}.items()}


def final_lift(p: dict) -> Any:
    return follower(p)[0]


# -- a four-bar that swings ---------------------------------------------------------------------------------------


def swing(crank: Any) -> Any:
    """The crank's angle after five seconds from rest."""
    coupler, rocker = _angles(crank)
    q = jnp.stack([crank, coupler - crank, rocker - coupler, rocker])
    begin = mbs.State(q, jnp.zeros(4), jnp.zeros(()))
    return mbs.simulate(four_bar(), begin, 5.0, ts=jnp.array([5.0]), rtol=1e-10, atol=1e-10, throw=False)["A"].q[-1]


def _angles(crank: Any) -> tuple[Any, Any]:
    """Of coupler and rocker, by the triangle that they make with the diagonal."""
    x, y = 1.8 - jnp.cos(crank), -jnp.sin(crank)  # from the crank's end to the rocker's pivot
    square = x**2 + y**2
    coupler = jnp.arctan2(y, x) + jnp.arccos((square + 2.0**2 - 1.5**2) / (4.0 * jnp.sqrt(square)))
    return coupler, jnp.arctan2(2.0 * jnp.sin(coupler) - y, 2.0 * jnp.cos(coupler) - x)


def swing_by_hand(crank: Any) -> Any:
    """The same with one coordinate x: of J(x) v^2/2 - V(x) Lagrange makes J a = -V' - J' v^2/2."""
    long = jnp.array([1.0, 2.0, 1.5])  # of the rods, and their masses

    def places(x):
        coupler, rocker = _angles(x)
        angles = jnp.stack([x, coupler, rocker])
        begin = jnp.stack([jnp.zeros(2), jnp.stack([jnp.cos(x), jnp.sin(x)]), jnp.array([1.8, 0.0])], 1)
        return begin + long / 2 * jnp.stack([jnp.cos(angles), jnp.sin(angles)]), angles

    def inertia(x):
        centers, angles = jax.jvp(places, (x,), (jnp.ones_like(x),))[1]
        return jnp.sum(long * centers**2) + jnp.sum(long**3 / 12 * angles**2)

    potential = lambda x: 9.81 * jnp.sum(long * places(x)[0][1])

    def field(t, y, args):
        x, v = y
        J, dJ = jax.jvp(inertia, (x,), (jnp.ones_like(x),))
        return v, -(jax.grad(potential)(x) + dJ * v**2 / 2) / J

    start = jnp.asarray(crank), jnp.zeros(())
    control = diffrax.PIDController(rtol=1e-10, atol=1e-10)
    term = diffrax.ODETerm(field)
    found = diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, 5.0, None, start, stepsize_controller=control)
    return found.ys[0][-1]  # pyright: ignore[reportOptionalSubscript]


# -- model files --------------------------------------------------------------------------------------------------


def example(name: str) -> mbs.Model:
    with importlib.resources.as_file(importlib.resources.files("mbsjax") / "examples" / f"{name}.toml") as path:
        return mbs.load(path)


def four_bar_turn(lengths: dict) -> Any:
    """The driven motion of `four_bar.toml`."""
    return example("four_bar").kinematics(lengths, throw=False).q


PROGRAMS: dict[str, Callable[[], tuple[Callable, Any]]] = {
    "pendulum": lambda: (pendulum, 0.0),
    "four-bar": lambda: (swing, 1.0),
    "flat follower": lambda: (final_lift, nominal()),
    "gradient of the flat follower": lambda: (jax.grad(final_lift), nominal()),
    "four_bar.toml": lambda: (four_bar_turn, {name: float(x) for name, x in example("four_bar").nominal.items()}),
}
