"""Motions of joints with play whose pins lie elsewhere, at each position in another place if need be."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._events.closure import if_closed
from .._events.results import RESULTS
from .._model.joint.joint import Joint
from .._model.mechanism import Mechanism
from .._model.play import check_lies
from .._programs.batch import AbstractBatch
from .._programs.custom_types import ByName, Numbers
from .._programs.names import unknown
from .._programs.precision import as_float
from .._programs.reprs import brief
from .._programs.trees import frozen, once
from .drive import root
from .loop_closure import levenberg_marquardt
from .mode import Mode
from .motion import Motion, rates
from .system import system
from .track import ContactTrack, Track


def loose_joints(mech: Mechanism) -> list[Joint]:
    """The joints that have play. Where all of them lie is told by their numbers in this order, one after the other."""
    return [joint for joint in mech.joints if joint.play is not None]


def play_counts(mech: Mechanism) -> dict[str, int]:
    """By the names of the joints that have play, how many numbers tell where they lie."""
    return {joint.name: joint.pair.play_places for joint in loose_joints(mech)}


def at_play(mech: Mechanism, lies: ByName) -> Mechanism:
    """The mechanism with its pins lying elsewhere in their plays.

    **Arguments:**

    - `mech`: the mechanism.
    - `lies`: by name of the joint, where it lies, in units of the play's size: see [`mbsjax.Play`][].

    !!! Example

        A crank of length 2 whose pin lies farthest from its axis.

        >>> import mbsjax as mbs
        >>> arm = mbs.Mechanism([mbs.Body("crank"), mbs.Body("arm")],
        ...                     [mbs.Revolute("A", "ground", "crank"),
        ...                      mbs.Revolute("B", "crank", "arm", (2.0, 0.0), play=0.1)])
        >>> motion = mbs.kinematics(mbs.at_play(arm, {"B": (1.0, 0.0)}), {"A": 0.0, "B": 0.0}, jnp.zeros(1))
        >>> motion.point("arm").q.tolist()
        [[2.1, 0.0]]
    """
    for name, given in lies.items():
        x = _checked(mech, name, given)
        mech = eqx.tree_at(lambda m, name=name: m.joint(name).play.lies, mech, x)
    return mech


def _checked(mech: Mechanism, name: str, given: Numbers, many: bool = False) -> Array:
    """Where a joint lies: within its play, as far as that can be seen."""
    counts = play_counts(mech)
    if name not in counts:
        raise ValueError(f"there is {unknown('joint with play', name, list(counts))}")
    x = as_float(given, f"where the play of joint {name!r} lies")
    x = x[None] if x.ndim == 0 else x
    if x.shape[-1:] != (counts[name],) or x.ndim > 1 + many:
        raise ValueError(f"the play of joint {name!r} lies at {counts[name]} number(s), got shape {x.shape}")
    check_lies(x, mech.joint(name).pair.play_discs, name)
    return x


class Displaced(AbstractBatch):
    """A motion whose pins lie elsewhere in their plays, made by [`mbsjax.displaced`][]. It reads like a
    [`mbsjax.Motion`][]. Velocities and accelerations are those with the pins at rest in their bores.

    - `mech`: the mechanism, with its pins in the middle or where they were.
    - `lies`: for each output time, where all joints with play lie, one after the other.
    - `rows`: the positions, a batch of motions at one time each.
    - `result`: a member of [`mbsjax.RESULTS`][], whether all positions can be assembled so.
    """

    mech: Mechanism
    lies: Float[Array, "times n"]
    rows: Motion
    result: RESULTS

    @property
    def batch(self) -> tuple[int, ...]:
        return self.rows.batch[:-1]

    def _whole(self, x: Any) -> Any:
        """What was read of all rows, without their own axis of times."""
        return jax.tree_util.tree_map(lambda leaf: jnp.squeeze(leaf, len(self.rows.batch)), x)

    @property
    def ts(self) -> Float[Array, " times"]:
        return self._whole(self.rows.ts)

    @property
    def q(self) -> Float[Array, "times nq"]:
        return self._whole(self.rows.q)

    @property
    def v(self) -> Float[Array, "times nv"]:
        return self._whole(self.rows.v)

    @property
    def a(self) -> Float[Array, "times nv"]:
        return self._whole(self.rows.a)

    def __getitem__(self, name: str) -> Any:
        return self._whole(self.rows[name])

    def coordinate(self, name: str) -> Track:
        """Position, velocity and acceleration of a joint, or of one of its coordinates."""
        return self._whole(self.rows.coordinate(name))

    def gauge(self, name: str) -> Track:
        """The reading of a gauge, with its rates."""
        return self._whole(self.rows.gauge(name))

    def contact(self, name: str) -> ContactTrack:
        """What there is to read of a contact."""
        return self._whole(self.rows.contact(name))

    def point(self, body: str, point: Numbers | str | None = None) -> Track:
        """Position, velocity and acceleration in ground of a point of a body."""
        return self._whole(self.rows.point(body, point))

    def orientation(self, body: str) -> Track:
        """A body's orientation, with its angular velocity and acceleration in ground."""
        return self._whole(self.rows.orientation(body))

    def pose(self, body: str) -> Float[Array, "times 4 4"]:
        """The pose of a body in ground as 4x4 matrices."""
        return self._whole(self.rows.pose(body))

    def play(self, name: str) -> Float[Array, "times k"]:
        """Where a joint lies, for each output time."""
        counts = play_counts(self.mech)
        end = np.cumsum(list(counts.values()))[list(counts).index(name)]
        return self.lies[..., end - counts[name] : end]

    def __repr__(self) -> str:
        return brief(self, q=self.rows.q, lies=self.lies)


def displaced(motion: Motion, lies: ByName) -> Displaced:
    """The motion with pins that lie elsewhere in their plays: each position closes its loops anew, from where it was,
    with its drivers where they were.

    **Arguments:**

    - `motion`: a motion of joints with play.
    - `lies`: by name of the joint, where it lies, in units of the play's size: one place, or one for each output time.
        Other joints stay where they are.

    **Returns:** a [`mbsjax.Displaced`][], which reads like a motion; with derivatives.

    !!! Example

        >>> import mbsjax as mbs
        >>> arm = mbs.Mechanism([mbs.Body("crank"), mbs.Body("arm")],
        ...                     [mbs.Revolute("A", "ground", "crank"),
        ...                      mbs.Revolute("B", "crank", "arm", (2.0, 0.0), play=0.1)])
        >>> motion = mbs.kinematics(arm, {"A": 0.0, "B": 0.0}, jnp.array([0.0, 1.0]))
        >>> mbs.displaced(motion, {"B": [[1.0, 0.0], [0.0, -1.0]]}).point("arm").q.tolist()
        [[2.1, 0.0], [2.0, -0.1]]
    """
    n, parts = motion.ts.shape[0], by_name(motion.mech, where_it_lies(motion))
    for name, given in lies.items():
        x = _checked(motion.mech, name, given, many=True)
        if x.ndim == 2 and x.shape[0] != n:
            raise ValueError(f"the play of joint {name!r} must lie at one place, or one for each of {n} output times")
        parts[name] = jnp.broadcast_to(x, (n, x.shape[-1]))
    if not parts:
        raise ValueError("no joint of this mechanism has play")
    return moved(motion, jnp.concatenate(list(parts.values()), 1))


def where_it_lies(motion: Motion) -> Float[Array, "times n"]:
    """Where all joints lie in a motion, one after the other."""
    parts = [joint.play.lies for joint in loose_joints(motion.mech) if joint.play is not None]
    here = jnp.concatenate([jnp.zeros(0), *parts])
    return jnp.broadcast_to(here, (motion.ts.shape[0], here.shape[0]))


def with_some_play(motion: Motion) -> Motion:
    """The motion with a little play where a joint has one of size zero: directions are then those of the limit."""
    for name in play_counts(motion.mech):
        where = lambda m, name=name: m.mech.joint(name).play.size
        size = where(motion)
        little = 1e-9 * jax.lax.stop_gradient(motion.problem.system.size)
        motion = eqx.tree_at(where, motion, jnp.where(size > 0, size, little))
    return motion


def by_name(mech: Mechanism, lies: Float[Array, "*times n"]) -> dict[str, Array]:
    """Where each joint lies."""
    counts = play_counts(mech)
    return dict(zip(counts, jnp.split(lies, np.cumsum(list(counts.values()))[:-1].tolist(), -1)))


@once
def moved(motion: Motion, lies: Float[Array, "times n"]) -> Displaced:
    """The motion with all joints lying where these numbers say, one after the other."""

    def row(t: Array, q: Array, mode: Mode | None, lies: Array, first: Array) -> Motion:
        mech = motion.mech
        for name, x in by_name(mech, lies).items():
            mech = eqx.tree_at(lambda m, name=name: m.joint(name).play.lies, mech, x)
        problem = eqx.tree_at(lambda p: p.system, motion.problem, system(mech)).with_mode(mode)
        there = jnp.all(jnp.isfinite(q))
        start = jnp.where(there, q, first)
        at_rest, start, then = frozen((problem, start, t))
        found, _, closed, *_ = levenberg_marquardt(at_rest, start, then, 60)
        found = jax.lax.stop_gradient(found)
        q = root(problem, found, t) if len(problem.unknown) else problem.place(found, t)
        v, a, r = rates(problem, q, t)
        residual = jnp.max(jnp.abs(r * problem.row_sizes), initial=0.0)
        good = there & closed
        q, v, a, residual = (jnp.where(good, x, jnp.nan)[None] for x in (q, v, a, residual))
        one = lambda x: None if x is None else jax.tree_util.tree_map(lambda leaf: leaf[None], x)
        result = if_closed(RESULTS.successful, closed, RESULTS.not_assembled)
        return Motion(
            mech=mech,
            ts=t[None],
            q=q,
            v=v,
            a=a,
            residual=residual,
            crossed_at=motion.crossed_at[:1],
            branch=motion.branch,
            stopped_at=motion.stopped_at,
            result=result,
            mode=one(mode),
            events=None,
            estimate=motion.estimate,
            problem=problem.with_mode(None),
        )

    rows = jax.vmap(row, (0, 0, 0, 0, None))(motion.ts, motion.q, motion.mode, lies, motion.q[0])
    closed = jnp.all(rows.result == RESULTS.successful)
    result = RESULTS.where(closed, motion.result, RESULTS.not_assembled)
    return Displaced(motion.mech, lies, rows, result)
