"""Where a simulation begins: positions and velocities that the constraints allow."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._events.places import Places
from .._events.results import RESULTS
from .._kinematics.assembly import check_closed
from .._kinematics.drive import problem as make_problem
from .._kinematics.loop_closure import Estimate, close_loops, guess, with_closed_contacts
from .._kinematics.mode import Mode as DrivenMode
from .._model.joint.joint import coordinate_names
from .._model.joint.loose import LooseBallPair, LoosePair
from .._model.loosened import loosened
from .._model.mechanism import Mechanism
from .._model.profile.closest_pair import ClosestPair
from .._numerics.groups import pick
from .._numerics.linalg import saddle
from .._programs.custom_types import ByName, Laws, Number
from .._programs.precision import TINY, Threshold, as_float, visible
from .._programs.reprs import by_fields
from .._programs.trees import frozen, once
from .build import plant as make_plant
from .mode import Mode
from .plant import Plant


OFF = Threshold(1e-6, 1e-4)  # in radians, parts of the mechanism's size, or of its speeds: a state further off is wrong


class State(eqx.Module):
    """A mechanism in motion at an instant: stored coordinates of all joints, velocities of all degrees of freedom."""

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    t: Float[Array, ""]

    __repr__ = by_fields


def state(
    mech: Mechanism,
    positions: ByName | Array | None = None,
    velocities: ByName | Array | None = None,
    *,
    drive: Laws | None = None,
    t: Number = 0.0,
    estimate: ByName | Array | None = None,
    throw: bool = True,
) -> State:
    """A state to begin a simulation from: loops closed, contacts that are `active` closed, velocities that go with it.

    **Arguments:**

    - `mech`: the mechanism. Joints with play are as [`mbsjax.loosened`][] has them: they lie where
        their play says, and rest there, unless a position or a velocity of `"B play"` is given.
    - `positions`: coordinates or gauges by name, which are held while the others are found; or all stored
        coordinates, which are taken as an estimate. Derivatives go through both; what loops leave free is where it
        is estimated, as in [`mbsjax.assemble`][].
    - `velocities`: of coordinates, by name. The others are what the constraints make of them; where that leaves them
        free, they are those of least kinetic energy: zero, if nothing pushes them. Or those of all, as an array.
    - `drive`: the coordinates and gauges that are driven, as in [`mbsjax.simulate`][]; they need no
        position and no velocity.
    - `t`: the time.
    - `estimate`: as in [`mbsjax.assemble`][].
    - `throw`: whether to raise where there is no such state, saying how far off the nearest one is. Otherwise its
        numbers are NaN.

    !!! Example

        >>> import mbsjax as mbs
        >>> four_bar = mbs.Mechanism(
        ...     [mbs.Body("crank", mass=1.0), mbs.Body("coupler", mass=1.0), mbs.Body("rocker", mass=1.0)],
        ...     [mbs.Revolute("A", "ground", "crank"), mbs.Revolute("B", "crank", "coupler", (1.0, 0.0)),
        ...      mbs.Revolute("C", "coupler", "rocker", (1.0, 0.0), (1.0, 0.0)),
        ...      mbs.Revolute("D", "ground", "rocker", (1.0, 0.0), start=1.0)])
        >>> mbs.state(four_bar, {"A": 1.0}, {"A": 2.0}).v.round(9).tolist()
        [2.0, -2.0, 2.0, 2.0]
    """
    return state_of(loosened(mech), positions, velocities, drive=drive, t=t, estimate=estimate, throw=throw)


def state_of(
    mech: Mechanism,
    positions: Any,
    velocities: Any = None,
    *,
    drive: Laws | None = None,
    t: Number = 0.0,
    estimate: Any = None,
    throw: bool = True,
) -> State:
    """`state`, of the mechanism as it is: a joint that has play is where that lies."""
    drive, t = dict(drive or {}), as_float(t, "the time of a state")
    lying = _in_play(mech, drive)
    fixed: dict[str, Any] = lying if positions is None else {}
    if isinstance(positions, Mapping):
        fixed = _without(lying, positions) | {name: value for name, value in positions.items() if name not in drive}
        both = [name for name in positions if name in drive]
        if both:
            raise ValueError(f"{both[0]!r} is driven: its position follows from the driver")
    elif positions is not None:
        estimate = positions
    whole = {name: value for name, value in fixed.items() if name in [j.name for j in mech.joints]}
    several = [name for name in whole if len(mech.freedoms(name)) != 1]
    single = {name: value for name, value in fixed.items() if name not in several}
    assembling = with_closed_contacts(mech, make_problem(mech, drive, single))
    begin = guess(mech, assembling, estimate)
    if whole:
        places = {*begin.given, *(i for name in several for i in mech.freedoms(name))}
        q = mech.estimate({**_by_joint(mech, begin.q), **{name: fixed[name] for name in whole}})
        begin = Estimate(q, tuple(sorted(places)))
    q, _, closed, _, mode = close_loops(assembling, begin, 200, t)
    if throw and not check_closed(mech, assembling, begin, q, closed, t, single):
        q = RESULTS.not_assembled.error_if(q, ~closed)
    plant = make_plant(mech, make_problem(mech, drive))
    numbers = _numbers(velocities)
    if numbers is None or isinstance(numbers, dict):
        given = numbers or {}
        numbers = _without({name: jnp.zeros_like(x) for name, x in lying.items()}, given) | given
    v, off = _velocity(plant, mech, q, t, mode, numbers)
    if throw:
        return State(q, _possible(v, off, numbers), t)
    return State(jnp.where(closed, q, jnp.nan), jnp.where(closed & (off < OFF()), v, jnp.nan), t)


def _possible(v: Array, off: Array, given: Any) -> Array:
    """Velocities that miss the constraints by no more than rounding: raises where they do, at once, or, where nobody
    can look, once the numbers are known."""
    told = "do not go together with the constraints: they miss them by"
    if (seen := visible(off, given)) is None:
        return eqx.error_if(v, ~(off < OFF()), f"the velocities of a state {told} more than {OFF():.0e}")
    off, given = seen
    if not float(off) < OFF():
        asked = {name: x.tolist() for name, x in given.items()} if isinstance(given, dict) else "given"
        raise ValueError(f"the velocities {asked} {told} {float(off):.3g}")
    return v


def _in_play(mech: Mechanism, drive: Mapping[str, Any]) -> dict[str, Array]:
    """Where joints with play lie in it, by coordinates."""
    loose = [j for j in mech.joints if isinstance(j.pair, LoosePair | LooseBallPair)]
    found = {name: x for j in loose for name, x in zip(coordinate_names(j), j.start)}
    return {name: x for name, x in found.items() if name not in drive}


def _without(fixed: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What is fixed of joints that nothing is given of."""
    told = {name.partition(".")[0] for name in given}
    return {name: x for name, x in fixed.items() if name.partition(".")[0] not in told}


def check_size(mech: Mechanism, state0: State, hint: str) -> None:
    """Raises where a state is that of another mechanism."""
    given, own = (state0.q.shape[-1], state0.v.shape[-1]), (len(mech.start), len(mech.coordinates))
    if given != own:
        have = "the state has {} positions and {} velocities, the mechanism has {} and {}"
        raise ValueError(f"{have.format(*given, *own)}: {hint}")


def active_contacts(mech: Mechanism) -> tuple[bool, ...]:
    """Which contacts are active from the start."""
    return tuple(contact.active for contact in mech.contacts)


def _numbers(velocities: Any) -> Any:
    """What is given, as arrays: other numbers need no other program."""
    if velocities is None:
        return None
    if not isinstance(velocities, Mapping):
        return as_float(velocities, "the velocities")
    return {name: as_float(x, f"the velocity of {name!r}") for name, x in velocities.items()}


def _by_joint(mech: Mechanism, q: Array) -> dict[str, Array]:
    return {j.name: q[np.array(mech.stored(j.name), dtype=int)] for j in mech.joints if len(j.pair.rest)}


@once
def first_mode(plant: Plant, active: tuple[bool, ...], q: Array, near: ClosestPair | None = None) -> Mode:
    """The contacts that are active from the start, and where all of them are, if their closest elements are not known
    yet; switches are not looked at."""
    system, c = plant.problem.system, len(plant.laws)
    n = sum(force.n_switches for force in plant.forces) + len(plant.triggers)
    zero, slide = jnp.zeros(c), jnp.zeros(0 if plant.friction is None else plant.friction.count)
    if c == 0:
        none = jnp.zeros(0, int)
        return Mode(none > 0, Places(none, none, zero, zero), zero, jnp.ones(n), slide)
    if near is None:
        near = system.closest_pairs(system.planes(system.poses(q)))
    on = jnp.where(plant.rigid, jnp.asarray(active), near.gap < 0)
    places = Places(near.e1, near.e2, jnp.clip(near.s1, 0, 1), jnp.clip(near.s2, 0, 1))
    return Mode(on, places, zero, jnp.ones(n), slide)


@once
def _velocity(
    plant: Plant, mech: Mechanism, q: Array, t: Array, closed: DrivenMode | None, given: Any
) -> tuple[Array, Array]:
    """Velocities of least kinetic energy that satisfy the constraints and are as given, and by how much they miss that,
    scaled. `closed` tells where the active contacts are."""
    none = jnp.zeros(len(plant.laws))
    first = none.astype(int)
    mode = Mode(none > 0, Places(first, first, none, none), none, jnp.ones(0), jnp.zeros(0))
    if closed is not None:
        mode = mode._replace(active=jnp.asarray(active_contacts(mech)), places=frozen(closed.places))
    frame, (v_d, _) = plant.frame(q, t, mode), plant.driven(t)
    driven, u, sizes = (
        np.array(plant.problem.columns, dtype=int),
        plant.problem.unknown,
        plant.problem.system.column_sizes(),
    )
    rows, aims, weights = [], [], []
    if given is not None and not isinstance(given, Mapping):
        given = {name: x for name, x in zip(mech.coordinates, as_float(given, "the velocities"), strict=True)}
        given = {name: x for i, (name, x) in enumerate(given.items()) if i not in driven}
    for name, value in (given or {}).items():
        places = mech.freedoms(name)
        value = jnp.atleast_1d(as_float(value, f"the velocity of {name!r}"))
        if value.shape != (len(places),):
            raise ValueError(f"the velocity of {name!r} must hold {len(places)} number(s), got shape {value.shape}")
        for place, x in zip(places, value):
            if place in driven:
                raise ValueError(f"{name!r} is driven: its velocity follows from the driver")
            rows.append(jnp.zeros(len(mech.coordinates)).at[place].set(1.0))
            aims.append(x)
            weights.append(sizes[place])
    m = len(rows)
    extra = jnp.stack(rows) if m else jnp.zeros((0, frame.C.shape[1]))
    C, D = jnp.concatenate([frame.C, extra]), plant.columns
    size = jnp.concatenate([plant.row_sizes, jnp.stack(weights) if m else jnp.zeros(0)])
    aim = jnp.concatenate([-frame.drift, jnp.stack(aims) if m else jnp.zeros(0)]) - C[:, driven] @ v_d
    idle = jnp.concatenate([plant.idle(mode), jnp.zeros(m)])
    M = frame.M[u][:, u] * D[:, None] * D[None]
    J = C[:, u] * D[None] / size[:, None]
    x, _ = saddle(M, J, idle)(-(D * (frame.M[u][:, driven] @ v_d))[:, None], (aim / size)[:, None])
    off = jnp.max(jnp.abs(J @ x[:, 0] - aim / size), initial=0.0)
    speeds = jnp.concatenate([aim / size, v_d / sizes[driven]])
    scale = jnp.maximum(jnp.max(jnp.abs(speeds), initial=0.0), TINY())
    return plant.spread(pick(x[:, 0], np.arange(len(u))) * D, v_d), off / scale
