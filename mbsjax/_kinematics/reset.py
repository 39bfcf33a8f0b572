"""Resets: the mode of a driven motion after a guard has reached zero (thesis 2.5)."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .._events.guards import GAP, RELEASE, contact_of, is_end, kind_of
from .._events.kinds import number
from .._events.places import Places
from .._numerics.groups import lanewise
from .._programs.trees import tree_where
from .drive import Problem
from .mode import Mode
from .modes import SURE, influence, slopes, take


class Reset(NamedTuple):
    """What an event decides."""

    mode: Mode
    kind: Int[Array, "*lanes"]  # a number of EVENTS
    contact: Int[Array, "*lanes"]
    gave_way: Int[Array, "*lanes"]  # the contact that opened because of it; -1 if none did


def reset(
    problem: Problem,
    near: Places,
    q: Float[Array, " nq"],
    t: Float[Array, ""],
    v: Float[Array, " nv"],
    guard: Int[Array, ""],
    lost: Bool[Array, ""],
    fall: Float[Array, ""],
) -> Reset:
    """The mode after a guard has reached zero, or, `lost`, after the active contacts could not be followed further.
    `near` is where each contact would close; `fall` is the speed of a body that drops. A contact that closes takes hold
    of a coordinate that rests, or of one that another contact gives way on; one that opens leaves it where it is; one
    that cannot do either jams the mechanism."""
    mode, system = problem.mode, problem.system
    assert mode is not None
    n, c = mode.owner.shape[0], len(system.layout.holds)
    if n == 0:  # everything is driven: nothing can give way
        return Reset(mode, jnp.asarray(number("jammed")), contact_of(guard), jnp.asarray(-1))
    D = influence(problem, q, t)
    along = D[mode.rests, jnp.arange(n)]  # how a coordinate moves when the contact that took it opens
    loose = -v[mode.rests] * jnp.sign(along)  # how fast that contact would open if the coordinate rested
    blame = jnp.where((mode.owner >= 0) & (loose >= 0), jnp.abs(along), -1.0)
    can_lose = jnp.any(blame >= 0)
    k = jnp.where(lost, mode.owner[jnp.argmax(blame)], contact_of(guard))
    what = jnp.where(lost, -1, kind_of(guard))
    row, active = jnp.argmax(mode.owner == k), jnp.any(mode.owner == k)

    further, possible = system.next_elements(system.planes(system.poses(q)), mode.places, what)
    closed = _moved(mode, k, near)
    slope = slopes(problem.with_mode(closed), q)[k]
    took, able, sign = take(problem, D, slope, k, exchange=True)
    closes, shifts = (what == GAP) & ~active, (what == GAP) & active
    follows = slope @ D[:, row] > SURE * system.size  # the old place opens when the new one is kept
    goes_on, ends = is_end(what) & possible[k], is_end(what) & ~possible[k]
    deleted, released = ends | (lost & can_lose), what == RELEASE
    jams = (closes & ~able) | (shifts & ~follows) | (lost & ~can_lose)

    taken = closed._replace(
        owner=mode.owner.at[took].set(k), push=mode.push.at[k].set(sign), **_landed(mode, mode.drift[took] != 0)
    )
    presses = jnp.asarray([hold == "press" for hold in system.layout.holds])[k]
    drop = -jnp.sign(along[row]) * fall * system.column_sizes()[mode.rests[row]]
    opened = _opened(mode, row, system.resting(q, mode), deleted & presses, drop)
    after = tree_where(goes_on, _moved(mode, k, further), tree_where(deleted | released, opened, mode))
    after = tree_where(closes, taken, tree_where(shifts, closed, after))
    kinds = {"jammed": jams, "closed": closes, "transition": goes_on, "shifted": shifts, "released": released}
    kind = jnp.select(list(kinds.values()), [number(x) for x in kinds], number("deleted"))
    gave_way = jnp.where(closes & ~jams, mode.owner[took], -1)
    return Reset(tree_where(jams, mode, after), kind, jnp.clip(k, 0, c - 1), gave_way)


def _moved(mode: Mode, k: Array, places: Places) -> Mode:
    """With contact k in another place."""
    return mode._replace(places=Places(*(x.at[k].set(y[k]) for x, y in zip(mode.places, places))))


def _landed(mode: Mode, lands: Array) -> dict[str, Array]:
    """What holds once a body that dropped has met something: time goes on."""
    return dict(drift=jnp.where(lands, 0.0, mode.drift), clock=jnp.where(lands, 1.0, mode.clock))


def _opened(mode: Mode, row: Array, here: Array, drops: Array, drop: Array) -> Mode:
    """Without the contact of this row: its coordinate rests where it is, or drops, and time stands still."""
    mine = jnp.arange(mode.owner.shape[0]) == row
    return mode._replace(
        owner=mode.owner.at[row].set(-1),
        held=jnp.where(mine, here, mode.held),
        drift=jnp.where(drops, jnp.where(mine, drop, 0.0), mode.drift),
        clock=jnp.where(drops, 0.0, mode.clock),
    )


def reset_lanes(problem: Problem, near: Places, lanes: int, *args: Array) -> Reset:
    """`reset`, along lanes."""
    return lanewise(reset, lanes)(problem, near, *args)
