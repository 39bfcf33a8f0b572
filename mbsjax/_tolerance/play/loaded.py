"""Where the reactions press pins against their bores."""

import dataclasses
import itertools
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._dynamics.build import plant as make_plant
from ..._dynamics.mode import signs_of
from ..._kinematics.displaced import by_name, loose_joints, moved, play_counts, where_it_lies, with_some_play
from ..._kinematics.drive import Problem
from ..._kinematics.equations import loops_and_gauges
from ..._kinematics.motion import Motion
from ..._model.force.base import Moment
from ..._model.joint.base import motion as pair_motion
from ..._model.joint.joint import Joint
from ..._model.mechanism import Mechanism
from ..._numerics.groups import SE2, SE3, AbstractPose
from ..._numerics.linalg import least_squares
from ..._programs.trees import once
from .directions import chosen, farthest, lengths


STEPS = 8  # where a pin lies changes the reactions by as much as the play is small: each step is better by that factor
NOTHING = 1e-9  # a force this much less than the largest one does not press


def loaded_play(motion: Motion, *, joints: Sequence[str] | None = None) -> dict[str, Array]:
    """Where the forces on a mechanism press its pins against their bores, at each position of a motion.

    Forces and gravity are those of the mechanism, at rest: inertia, damping and friction are left out. A pin lies
    where the bore's reaction points from, in a guide each end of the block by itself: both on one side, or tilted. The
    reactions are those of the mechanism with its pins where they lie, found by a few steps. A pin that nothing presses
    is in the middle.

    **Arguments:**

    - `motion`: a driven motion of joints with play.
    - `joints`: the names of the joints that are loaded, all that have play by default; others stay where they are.

    **Returns:** by name of the joint, where it lies at each output time, to be given to [`mbsjax.displaced`][]. It has
    derivatives, with respect to forces too.

    !!! Example

        A weight hangs at a pin: it lies lowest in its bore.

        >>> import mbsjax as mbs
        >>> hung = mbs.Mechanism([mbs.Body("bob", mass=1.0, center=(0.0, -2.0))],
        ...                      [mbs.Revolute("O", "ground", "bob", play=0.1)], gravity=(0.0, -9.81))
        >>> motion = mbs.kinematics(hung, {"O": 0.0}, jnp.zeros(1))
        >>> lies = mbs.loaded_play(motion)
        >>> lies["O"].round(9).tolist(), mbs.displaced(motion, lies).point("bob").q.round(9).tolist()
        ([[0.0, -1.0]], [[0.0, -0.1]])
    """
    mask = chosen(motion.mech, joints)
    check_loaded(motion.mech, mask)
    found = by_name(motion.mech, _pressed(motion, where_it_lies(motion), mask))
    return {name: x for name, x in found.items() if joints is None or name in joints}


def check_loaded(mech: Mechanism, mask: tuple[bool, ...]) -> None:
    if not any(mask):
        raise ValueError("there is no joint with play that could be loaded")
    if mech.contacts:
        raise ValueError("where joints are pressed to is not known of mechanisms with contacts; take another rule")


@once
def _pressed(motion: Motion, lies: Array, mask: tuple[bool, ...]) -> Array:
    return pressed(motion, lies, mask)


def pressed(motion: Motion, lies: Float[Array, "times n"], mask: tuple[bool, ...]) -> Float[Array, "times n"]:
    """Where joints lie, those of the mask where they are pressed to."""
    motion = with_some_play(motion)
    mech, free = motion.mech, jnp.asarray(mask)

    def step(lies: Array, _: None) -> tuple[Array, None]:
        load = jax.vmap(lambda row: loads(row, mask))(moved(motion, lies).rows)
        return jnp.where(free, farthest(_felt(load, mech), mech, jnp.zeros(len(mask))), lies), None

    return jax.lax.scan(step, lies, None, length=STEPS)[0]


@once
def loads_along(motion: Motion, mask: tuple[bool, ...]) -> Float[Array, "times n"]:
    """The forces that push pins along their plays in a motion; zero where they are nothing but rounding."""
    rows = moved(with_some_play(motion), where_it_lies(motion)).rows
    return _felt(jax.vmap(lambda row: loads(row, mask))(rows), motion.mech)


def _felt(load: Float[Array, "times n"], mech: Mechanism) -> Float[Array, "times n"]:
    """The loads without those that are nothing but rounding."""
    size = lengths(jax.lax.stop_gradient(load), mech)
    least = NOTHING * jnp.max(size, initial=0.0, where=jnp.isfinite(size))
    widths = [n for joint in loose_joints(mech) for n in joint.pair.play_discs]
    return jnp.where(jnp.repeat(size <= least, np.array(widths), axis=-1), 0.0, load)


def loads(row: Motion, mask: tuple[bool, ...]) -> Float[Array, " n"]:
    """The forces that push pins along their plays, those of the mask, of a motion at one time: what the forces of the
    mechanism do in work when a pin moves, all else following (the principle of virtual displacements)."""
    mech, problem, t, q = row.mech, row.problem, row.ts[0], row.q[0]
    loose, ends = loose_joints(mech), np.cumsum([0, *play_counts(mech).values()])
    wanted = [any(mask[a:b]) for a, b in itertools.pairwise(ends)]
    names = [joint.name for joint in mech.joints]
    numbers = tuple(names.index(joint.name) for joint, on in zip(loose, wanted) if on)
    # joints that are given all freedoms, those of frame k+, beside their own
    layout = dataclasses.replace(problem.system.layout, held=numbers)
    system = dataclasses.replace(problem.system, layout=layout)
    X, phi, S = problem.system.poses_and_twists(q)
    n = S.shape[1]
    S = jnp.concatenate([S, system.holding_twists(X, (1,) * len(numbers))], 1)
    _, C, _ = loops_and_gauges(system, X, phi, S, problem.targets(t))
    load = _load(mech, problem, Moment(t, q, jnp.zeros(S.shape[1]), X, S, system.gauges, layout, _names(mech)))
    # what the others do when these move, and what forces do in all of that
    unknown, rows, columns = problem.unknown, problem.row_sizes, problem.system.column_sizes()
    J = C[:, unknown] * columns[unknown] / rows[:, None]
    follow = least_squares(J, refine=1)(C[:, n:] / rows[:, None]) * columns[unknown][:, None]
    work = (load[n:] - load[unknown] @ follow).reshape(len(numbers), -1)
    found, each = [], iter(work)
    for joint, on in zip(loose, wanted):
        found.append(next(each) @ _twists(joint, mech, q) if on else jnp.zeros(joint.pair.play_places))
    return jnp.concatenate(found)


def _names(mech: Mechanism) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return mech.coordinates, tuple(gauge.name for gauge in mech.gauges)


def _load(mech: Mechanism, problem: Problem, at: Moment) -> Float[Array, " n"]:
    """The forces on all freedoms, where all stands still."""
    plant = make_plant(mech, problem)
    weight = plant.inertia.seen(at.X).weight(plant.gravity)
    load = jnp.sum(at.S * jnp.sum(at.layout.paths[None] * weight[:, :, None], 1), 0)
    for force in plant.forces:
        load = load + force.act(at, signs_of(force.switches(at)))
    return load


def _twists(joint: Joint, mech: Mechanism, q: Float[Array, " nq"]) -> Float[Array, "rows n"]:
    """How frame k+ moves, in its own axes, when the joint lies elsewhere: a column for each number that tells where.
    Play makes phi to D phi E; frame k+ is that before E."""
    group = SE2 if mech.planar else SE3
    assert joint.play is not None
    phi = pair_motion(joint.pair, q[np.array(mech.stored(joint.name), int)], group)
    plain_a, plain_b = (joint.placed(frame, group) for frame in (joint.frame_a, joint.frame_b))

    def moves(lies: Array) -> tuple[AbstractPose, AbstractPose]:
        X_A, X_B = eqx.tree_at(lambda j: j.play.lies, joint, lies).seats(group)
        return (plain_a.inverse() @ X_A @ phi).inverse(), X_B.inverse() @ plain_b

    (back, E), push = jax.linearize(moves, joint.play.lies)

    def twist(way: Array) -> Array:
        back_rate, E_rate = push(way)
        return E.left_twist(E_rate) - back.left_twist(back_rate)

    return jax.vmap(twist, out_axes=1)(jnp.eye(joint.pair.play_places))
