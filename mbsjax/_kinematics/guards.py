"""The guards of a driven motion, in the order of `GuardTable`."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._events.guards import stacked
from .._events.places import Places
from .drive import Problem
from .mode import Mode


def guards(
    problem: Problem,
    q: Float[Array, "nq *lanes"],
    v: Float[Array, "nv *lanes"],
    span: Array,
    *apart: Float[Array, "c pairs *lanes"],
) -> tuple[Float[Array, "guards *lanes"], Mode, Places, Float[Array, "c pairs *lanes"]]:
    """All guards; the mode with the contacts where they are; where each contact would close; and the gaps of the pairs
    of elements that are apart, where `apart` are those that were at the last position, if that is known.

    Of a virtual contact: the gap (G_I). Of an active one: the gap to the nearest elements elsewhere; how far its
    places are from the ends of their elements (G_T); and, if it can only push, how fast it does.
    """
    system, mode = problem.system, problem.mode
    assert mode is not None
    far = system.size
    P, active = system.planes(system.poses(q)), mode.active
    here = system.common_normals(P, mode.places)
    where = mode.places._replace(s1=here.s1, s2=here.s2)
    near = system.proximity(P, where, active, *apart)
    gaps = jnp.where(near.gap < far, near.gap, far)
    speed = jnp.take_along_axis(v / system.column_sizes(), mode.rests, 0) * span
    numbers = np.arange(len(system.layout.holds)).reshape(-1, *(1,) * mode.owner.ndim)
    mine = jnp.sum(jnp.where(mode.owner[None] == numbers, speed[None], 0.0), 1) * mode.push
    pushes = np.array([hold == "push" for hold in system.layout.holds]).reshape(-1, *(1,) * (mode.owner.ndim - 1))
    push_speed = jnp.where(active & pushes, mine, 1.0)
    values = stacked(gaps / system.size, near.ends, push_speed)
    return values, mode._replace(places=near.places), near.closest, near.apart
