"""Some structures, each with many random numbers side by side, against a model in absolute coordinates. Endlessly many
structures: `python -m benchmarks.mechanisms`."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbsjax as mbs
from tests.drawn_mechanisms import Numbers, Structure, drawn_numbers, mechanism
from tests.refereed import (
    ALLOWED,
    TS,
    Case,
    Errors,
    can_be_held,
    case,
    compare_driven,
    compare_motion,
    compare_rest,
    first_state,
    held_names,
    held_values,
    simulated,
    swings,
    thrown,
    worse,
)


# a crank and a rod, whose end a slide of another body carries; a pendulum in a slot of the rod
PLANAR = Structure(
    planar=True,
    in_space=False,
    bodies=4,
    joints=(("revolute", 4, 0), ("revolute", 0, 1), ("prismatic", 2, 4), ("revolute", 1, 2), ("pin_slot", 1, 3)),
    distances=(("spring", 0, 2), ("rod", 3, 4)),
    springs=("j0", "j2", "j4.travel", "spring0"),
    loads=(3,),
)
# a body on a universal joint, with another one on a ball; a rod and a sleeve hold them
SPATIAL = Structure(
    planar=False,
    in_space=False,
    bodies=3,
    joints=(("universal", 3, 0), ("spherical", 0, 1), ("cylindrical", 2, 3), ("screw", 2, 1)),
    distances=(("rod", 0, 3), ("gauge", 0, 1), ("spring", 1, 3)),
    springs=("j0.angle_b", "j2.travel", "j3", "spring2"),
    loads=(),
)


@functools.cache
def cases(structure: Structure, count: int) -> list[Case]:
    """Numbers in which the same freedoms can be held."""
    every, names, seed = [], None, 0
    while len(every) < count:
        drawn = case(structure, drawn_numbers(structure, seed))
        names = held_names(drawn, 0, 1.0) if names is None else names
        every += [drawn] * can_be_held(drawn, names)
        seed += 1
    return every


def side_by_side(every: list[Case]) -> Numbers:
    return {name: np.stack([c.numbers[name] for c in every]) for name in every[0].numbers}


def batch(f, *args):
    """`f` of many numbers in one program."""
    return jax.jit(jax.vmap(f))(*jax.tree_util.tree_map(jnp.asarray, args))


def right(errors: list[Errors], *names: str) -> None:
    """Whether all that was compared is within what is allowed, and these were among it."""
    worst: Errors = {}
    for each in errors:
        for name, error in each.items():
            worse(worst, name, error)
    assert set(names) <= set(worst)
    assert {name: error for name, error in worst.items() if not error <= ALLOWED[name]} == {}


LONG = pytest.mark.long


@pytest.mark.parametrize(
    ("structure", "share", "how"),
    [
        pytest.param(PLANAR, 1.0, "drive", id="planar, all held"),
        pytest.param(SPATIAL, 0.0, "fixed", id="spatial, none held", marks=LONG),
    ],
)
def test_rest_and_what_holds_it(structure, share, how):
    every = cases(structure, 12)
    names = held_names(every[0], 0, share)
    values = np.array([held_values(c, names, seed) for seed, c in enumerate(every)])
    rest = batch(
        lambda x, v: mbs.equilibrium(mechanism(structure, x), throw=False, **{how: dict(zip(names, v))}),
        side_by_side(every),
        values,
    )
    reaction = rest.reaction("j1")
    lane = lambda k: jax.tree_util.tree_map(lambda x: x[k], reaction)
    errors = [compare_rest(c, names, values[k], rest.lane(k), lane(k), "j1") for k, c in enumerate(every)]
    right(errors, "found", "loops", "held", "balance", "holding forces", "stability", "reactions at rest")


@pytest.mark.long
@pytest.mark.parametrize(
    "structure", [pytest.param(PLANAR, id="planar", marks=LONG), pytest.param(SPATIAL, id="spatial")]
)
def test_motion_and_energy(structure):
    every = cases(structure, 3)
    thrown_ = [thrown(c, seed) for seed, c in enumerate(every)]
    states = [first_state(c, y) for c, y in zip(every, thrown_)]
    together = jax.tree_util.tree_map(lambda *x: jnp.stack(x), *states)
    sol = batch(lambda x, state: simulated(mechanism(structure, x), state), side_by_side(every), together)
    errors: list[Errors] = [{} for _ in every]
    for k, (c, y) in enumerate(zip(every, thrown_)):
        worse(errors[k], "found", float(sol.lane(k).result != mbs.RESULTS.successful))
        compare_motion(errors[k], c, y, sol.lane(k), None, None)
    right(errors, "found", "motion", "velocities", "accelerations", "energy")


@pytest.mark.long
@pytest.mark.parametrize(
    "structure", [pytest.param(PLANAR, id="planar"), pytest.param(SPATIAL, id="spatial", marks=LONG)]
)
def test_forces_of_a_driven_motion(structure):
    every = cases(structure, 12)
    names = held_names(every[0], 0, 1.0)
    assert len(names) == structure.freedom
    laws = [swings(c, names, seed) for seed, c in enumerate(every)]
    together = jax.tree_util.tree_map(lambda *x: np.stack(x), *laws)
    efforts = batch(
        lambda x, laws: mbs.inverse_dynamics(mechanism(structure, x), dict(zip(names, laws)), TS, throw=False),
        side_by_side(every),
        together,
    )
    reaction = efforts.reaction("j1")
    lane = lambda k: jax.tree_util.tree_map(lambda x: x[k], reaction)
    errors = [compare_driven(c, names, laws[k], efforts.lane(k), lane(k), "j1") for k, c in enumerate(every)]
    assert sum(bool(each) for each in errors) > 3  # the others come near a singular position
    right(errors, "found", "driven motion", "driving forces", "reactions of a driven motion")
