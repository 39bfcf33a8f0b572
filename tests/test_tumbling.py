"""Bodies of any shape among walls of any shape: how far they are told to be apart, and what no simulation may do."""

import jax
import numpy as np
import pytest

import mbsjax as mbs

from .tumbling import SHAPES, Scenes, certified, profile, scenes, simulated, touch


SIMULATED = [("wavy", "wavy", "pocket"), ("wavy", "cap", "room"), ("cap", "wavy", "obstacle"),
             ("rounded star", "moon", "room"), ("star", "stadium", "room")]  # fmt: skip


def told(drawn: Scenes, names: tuple[str, str], hole: bool, poses: np.ndarray) -> np.ndarray:
    """The gaps that the package tells, in some poses of each scene."""
    kinds = [tuple(kind for kind, *_ in pieces) for pieces in (drawn.walls, drawn.body)]

    @jax.jit
    @jax.vmap
    def gaps(walls, body, poses):
        around = profile(kinds[0], walls, SHAPES[names[0]][1], hole)
        inner = profile(kinds[1], body, SHAPES[names[1]][1], False)
        return jax.vmap(lambda p: mbs.contact_coordinates(around, inner, mbs.PlanarFrame(*p))[2])(poses)

    return np.asarray(gaps(*([x for _, *x in pieces] for pieces in (drawn.walls, drawn.body)), poses))


@pytest.mark.parametrize("way", ["pocket", pytest.param("room", marks=pytest.mark.long)])
def test_closed_curves_are_told_to_overlap_wherever_they_do(way):
    """Deep ones too: a step of a simulation may have led there, and the event is then looked for between."""
    n, m, rng = 24, 24, np.random.default_rng(5)
    drawn = scenes("wavy", "wavy", way, 0, n)
    away = 10 ** rng.uniform(-3, -0.3, (n, m, 1)) * rng.uniform(-1, 1, (n, m, 3))
    poses = drawn.pose[:, None] + away if way == "pocket" else rng.uniform(-0.9, 0.9, (n, m, 3))
    true, found = touch(drawn.walls, drawn.body, poses).gap, told(drawn, ("wavy", "wavy"), True, poses)
    assert np.sum(true < -0.01) > 40 and np.sum(true > 0) > 40
    assert np.all(np.isfinite(found)) and not np.any((found > 0) != (true > 0))
    # where several places are nearly as near as the nearest one, another one may be told of
    assert np.quantile(np.abs(found - true), 0.98) < 1e-9 and np.max(np.abs(found - true)) < 1e-2


@pytest.mark.long
@pytest.mark.parametrize("walls, body, way", SIMULATED, ids=lambda x: x)
def test_bodies_fly_and_hit_as_they_must_and_are_never_inside(walls, body, way):
    drawn = scenes(walls, body, way, 0, 16)
    errors = certified(drawn, simulated(drawn, (walls, body), way))
    assert not errors.wrong() and errors.impacts.sum() >= 16
