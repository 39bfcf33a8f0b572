"""The places farthest along a direction within the plays of all joints."""

import itertools
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._kinematics.displaced import loose_joints, play_counts
from ..._model.mechanism import Mechanism
from ..._numerics.linalg import magnitude
from ..._programs.names import unknown


def chosen(mech: Mechanism, joints: Sequence[str] | None) -> tuple[bool, ...]:
    """Which of the numbers that tell where joints lie belong to these joints; to all, if none are named."""
    counts = play_counts(mech)
    for name in joints or ():
        if name not in counts:
            raise ValueError(f"there is {unknown('joint with play', name, list(counts))}")
    return tuple(joints is None or name in joints for name, n in counts.items() for _ in range(n))


def discs(mech: Mechanism) -> list[slice]:
    """The discs, balls and intervals that make up all plays, as parts of the numbers that tell where joints lie."""
    ends = np.cumsum([0, *(n for joint in loose_joints(mech) for n in joint.pair.play_discs)]).tolist()
    return [slice(a, b) for a, b in itertools.pairwise(ends)]


def owners(mech: Mechanism) -> list[str]:
    """The joint of each disc."""
    return [joint.name for joint in loose_joints(mech) for _ in joint.pair.play_discs]


def lengths(g: Float[Array, "*times n"], mech: Mechanism) -> Float[Array, "*times discs"]:
    """How long the part of g in each disc is."""
    return jnp.stack([magnitude(g[..., disc]) for disc in discs(mech)], -1)


def farthest(g: Float[Array, "times n"], mech: Mechanism, still: Float[Array, "*times n"]) -> Float[Array, "times n"]:
    """The place on each disc's rim that lies farthest along g; `still` where g is zero, or not known."""
    size, found = lengths(g, mech), []
    for k, disc in enumerate(discs(mech)):
        s = size[..., k : k + 1]
        good = jnp.isfinite(s) & (s > 0)
        found.append(jnp.where(good, jnp.where(good, g[..., disc], 0.0) / jnp.where(good, s, 1.0), still[..., disc]))
    return jnp.concatenate(found, -1)


def some_direction(mech: Mechanism) -> Float[Array, " n"]:
    """A place on the rim of each disc that is no special one: where a gradient vanishes, a step there tells more."""
    way = jnp.asarray(np.random.default_rng(0).normal(size=sum(play_counts(mech).values())))
    return farthest(way[None], mech, way)[0]
