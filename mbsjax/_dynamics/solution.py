"""What a simulation tells."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._events.log import Log, sources
from .._events.results import RESULTS
from .._kinematics.contacts import AbstractContactGeometry
from .._kinematics.drive import Problem
from .._kinematics.run import AbstractRun
from .._kinematics.track import check_kind
from .._model.mechanism import Mechanism
from .._numerics.groups import AbstractPose
from .._numerics.rates import derivatives_at_zero
from .._programs.batch import lane_by_lane
from .._programs.reprs import brief, by_fields, has_numbers, head
from .._programs.trees import frozen, once
from .applied import ForceTrack, effort_of, force_of
from .mode import Mode
from .plant import Plant
from .reaction import Reaction, reaction
from .rest import static_press
from .rubbing import Rubbing, rubbing_of


class ContactForce(NamedTuple):
    """A contact along a simulation.

    - `q`, `v`: the places q1, q2 on the two profiles and the gap q3 (columns), and the rate of the gap.
    - `active`: whether it is active.
    - `force`: its normal force; `static`, the part of it that would be there at rest (3.6.2), `dynamic` the other.
    - `point`, `normal`: the place on the first profile, and the common normal, out of the first body, in ground.
    - `friction`: the force on the second body along the first profile, in the direction in which that is drawn;
        `sliding`, the speed at which the second body slides along it; `sticks`, whether friction holds it.
    """

    q: Array
    v: Array
    active: Array
    force: Array
    static: Array
    point: Array
    normal: Array
    friction: Array
    sliding: Array
    sticks: Array

    @property
    def gap(self) -> Array:
        return self.q[..., 2]

    @property
    def dynamic(self) -> Array:
        return self.force - self.static

    __repr__ = by_fields


class Stats(NamedTuple):
    """How many steps a simulation took, how many were tried in vain, and how many events it had."""

    steps: Array
    rejected: Array
    events: Array
    paradox: Any = None  # with friction: the last pair whose force could not be found, and its determinant

    __repr__ = by_fields


class Solution(AbstractRun[ContactForce]):
    """A simulated motion. Arrays have one row for each output time; rows after `stopped_at` are NaN.

    - `ts`: the output times.
    - `q`, `v`, `a`: stored coordinates of all joints, velocities and accelerations of all degrees of freedom.
    - `p`: the momenta of the degrees of freedom that are not driven.
    - `kinetic`, `potential`: energies; potential of gravity and springs.
    - `residual`: the largest residual of a loop, gauge or active contact, in the mechanism's units.
    - `drive`: the force or torque of each driver: of the driven coordinates, in their order.
    - `events`: an [`mbsjax.Log`][]; `print(sol)` shows it in words.
    - `stopped_at`: when it ended before its time; infinite if it did not.
    - `result`: a member of [`mbsjax.RESULTS`][].
    - `stats`: steps, rejected steps, events.

    `sol["O"]` is a [`mbsjax.Track`][] with the `q`, `v`, `a` of a joint, of one coordinate, or of a gauge; of a contact
    it is an [`mbsjax.ContactForce`][]. `sol.coordinate("O")`, `sol.gauge(...)` and `sol.contact(...)` read one of a
    kind, which an editor then knows.
    """

    mech: Mechanism
    plant: Plant
    ts: Float[Array, " times"]
    q: Float[Array, "times nq"]
    v: Float[Array, "times nv"]
    a: Float[Array, "times nv"]
    p: Float[Array, "times nu"]
    press: Float[Array, "times c"]
    drive: Float[Array, "times nd"]
    rubbing: Rubbing
    kinetic: Float[Array, " times"]
    potential: Float[Array, " times"]
    residual: Float[Array, " times"]
    held: Mode  # that of the step which each output is in
    events: Log
    stopped_at: Float[Array, ""]
    result: RESULTS
    stats: Stats

    @property
    @lane_by_lane
    def mode(self) -> Mode:
        """Which contacts are active, and where they are: an open one on its closest elements."""
        return _located(*frozen((self.plant, self.q, self.held))) if self.mech.contacts else self.held

    @lane_by_lane
    def contact(self, name: str) -> ContactForce:
        """What there is to read of a contact, with its force.

        !!! Example

            A mass of 2 that lies on the floor.

            >>> import mbsjax as mbs
            >>> floor = mbs.Profile.chain([mbs.Line((1.0, 0.0), (-1.0, 0.0))], closed=False)
            >>> box = mbs.Mechanism(
            ...     [mbs.Body("ground", profiles={"floor": floor}),
            ...      mbs.Body("box", mass=2.0, profiles={"rim": mbs.disc(0.1)})],
            ...     [mbs.Prismatic("y", "ground", "box", axis=(0.0, 1.0), start=0.1),
            ...      mbs.Contact("C", "ground.floor", "box.rim", active=True)],
            ...     gravity=(0.0, -10.0))
            >>> sol = mbs.simulate(box, None, 1.0, ts=jnp.array([0.0, 1.0]), max_steps=64)
            >>> sol.contact("C").force.round(9).tolist()
            [20.0, 20.0]
        """
        check_kind(self.mech, name, "contact")
        k = self.mech.contacts.index(self.mech.contact(name))
        every = _contacts(self.plant, self.ts, self.q, self.v, self.mode, self.press, self.rubbing)
        return jax.tree_util.tree_map(lambda x: x[:, k], every)

    @lane_by_lane
    def friction(self, name: str) -> Rubbing:
        """The friction of a contact or a joint, by its name; see [`mbsjax.Rubbing`][].

        !!! Example

            A block of mass 2 that slides on, with a speed of 3, and stops by friction.

            >>> import mbsjax as mbs
            >>> block = mbs.Mechanism(
            ...     [mbs.Body("block", mass=2.0)],
            ...     [mbs.Prismatic("x", "ground", "block", friction=mbs.JointFriction(0.5))], gravity=(0.0, -10.0))
            >>> sol = mbs.simulate(block, mbs.state(block, velocities={"x": 3.0}), 1.0, max_steps=64)
            >>> rub = sol.friction("x")
            >>> rub.force[0].round(9).item(), rub.sticks[-1].item(), rub.work[-1].round(9).item()
            (-10.0, True, 9.0)
        """
        return rubbing_of(self.plant, self.rubbing, name)

    @property
    def paradox(self) -> tuple[str, float] | None:
        """Where it stopped as Painleve's paradox has it: the contact or joint, and the determinant of its equation,
        which is not positive there. None if it did not."""
        if self.plant.friction is None or not bool(self.result == RESULTS.painleve):
            return None
        pair, determinant = self.stats.paradox
        return self.plant.friction.names[int(pair)], float(determinant)

    def sources(self) -> list[str]:
        return sources(self.mech, self.triggers)

    def more(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in () if self.plant.friction is None else self.plant.friction.names:
            rub = self.friction(name)
            found |= {f"{name}.friction": rub.force, f"{name}.sliding": rub.sliding, f"{name}.sticks": rub.sticks}
        return found | {"kinetic": self.kinetic, "potential": self.potential, "residual": self.residual}

    @property
    def energy(self) -> Float[Array, "*batch times"]:
        """Kinetic and potential energy together."""
        return self.kinetic + self.potential

    @lane_by_lane
    def momentum(self) -> Float[Array, "times rows"]:
        """Angular momentum about the origin of ground, then linear momentum, of all bodies together."""
        return _momentum(self.plant, self.ts, self.q, self.v, self.mode)

    @lane_by_lane
    def force(self, name: str) -> ForceTrack:
        """A spring, an actuator or a load, by its name; see [`mbsjax.ForceTrack`][].

        !!! Example

            A mass of 2 falls on a spring of stiffness 20, from where it is relaxed.

            >>> import mbsjax as mbs
            >>> scale = mbs.Mechanism([mbs.Body("pan", mass=2.0)],
            ...                       [mbs.Prismatic("y", "ground", "pan", axis=(0.0, 1.0))],
            ...                       forces=[mbs.Spring("y", stiffness=20.0, name="s")], gravity=(0.0, -10.0))
            >>> sol = mbs.simulate(scale, None, jnp.pi / 10**0.5, max_steps=64)
            >>> sol.force("s").force[-1].round(4).item()  # twice the weight, pressed
            -40.0
        """
        return force_of(self.mech, self.plant, name, self.ts, self.q, self.v, self.held)

    def effort(self, name: str) -> Array:
        """What the driver of a coordinate pushes with, by its name."""
        names = tuple(self.mech.coordinates[k] for k in self.plant.problem.columns)
        return effort_of(names, self.drive, name)

    @lane_by_lane
    def power(self, name: str | None = None) -> Array:
        """The power of the driver of a coordinate, or of all of these together."""
        columns = self.plant.problem.columns
        names = [self.mech.coordinates[k] for k in columns] if name is None else [name]
        return sum((self.effort(n) * self.coordinate(n).v for n in names), jnp.zeros_like(self.ts))

    @lane_by_lane
    def reaction(self, joint: str) -> Reaction:
        """What a joint transmits; see [`mbsjax.Reaction`][]."""
        return reaction(self.mech, self.plant, joint, self.ts, self.q, self.v, self.mode)

    def bifurcations(self) -> list[float]:
        """When it passed a singular position of its loops and held gauges, from which it could have gone on along
        another branch. It is looked for between the outputs, along their positions, velocities and accelerations: where
        two such positions lie between neighbors, neither is seen."""
        if self.q.ndim != 2:
            raise ValueError("bifurcations are those of one simulation: take one of the batch")
        if not self.plant.problem.row_sizes.shape[0] or len(self.ts) < 2:
            return []
        path = self.plant.problem, self.ts, self.q, self.v, self.a
        ends = np.stack([np.zeros(len(self.ts) - 1), np.ones(len(self.ts) - 1)])
        crossed = np.asarray(_sides(*path, ends[1])) < 0
        for _ in range(40):
            middle = ends.mean(0)
            beyond = np.asarray(_sides(*path, middle)) < 0
            ends = np.where(beyond, [ends[0], middle], [middle, ends[1]])
        times = self.ts[:-1] + ends[1] * np.diff(self.ts)
        return [float(t) for t in times[crossed]]

    @property
    def triggers(self) -> tuple:
        return self.plant.triggers

    def __repr__(self) -> str:
        return head(str(self))

    def __str__(self) -> str:
        if not hasattr(self.q, "shape"):
            return brief(self, q=self.q)
        many = f"Batch of shape {self.batch}: s" if self.batch else "S"
        n, names = self.q.shape[-2], ", ".join(self.mech.coordinates)
        lines = [f"{many}imulation at {n} times of the coordinates {names}"]
        if has_numbers(self.q, self.ts) and not self.batch:
            lines[0] += f", t = {float(self.ts[0]):.6g} to {float(self.ts[-1]):.6g}"
            s = self.stats
            lines.append(f"  {int(s.steps)} steps, {int(s.rejected)} more tried; largest residual "
                         f"{float(np.nan_to_num(self.residual).max(initial=0.0)):.1e}")  # fmt: skip
            lines += [f"  passed a bifurcation at t = {t:.6g}" for t in self.bifurcations()]
            lines += [f"  {event}" for event in self.events.list(self.mech, self.triggers)]
            if bool(self.result != RESULTS.successful):
                lines.append(f"  at t = {float(self.stopped_at):.9g}: {RESULTS[self.result]}")
        return "\n".join(lines)


@once
def _sides(problem: Problem, ts: Array, q: Array, v: Array, a: Array, parts: Array) -> Array:
    """For each two neighboring outputs, and a part of the way between them: 1, or -1 beyond a singular position."""

    def along(q: Array, v: Array, a: Array) -> Any:
        return derivatives_at_zero(lambda s: problem.system.retract(q, v * s + a * s * s / 2))

    def one(t: Array, h: Array, ends: tuple, x: Array) -> Array:
        (q0, v0, a0), (q1, v1, a1) = ([y * h**k for k, y in enumerate(end)] for end in ends)
        near = lambda x, q, v, a: (1 - x) ** 3 * (q + x * (3 * q + v) + x**2 * (6 * q + 3 * v + a / 2))
        q = near(x, q0, v0, a0) + near(1 - x, q1, -v1, a1)
        (_, J0, _), (_, J, _) = problem.linearize(q0, t), problem.linearize(q, t + x * h)
        free = jnp.eye(J.shape[1]) - jnp.linalg.pinv(J0, rtol=1e-9) @ J0
        return jnp.linalg.slogdet(J0.T @ J + free)[0]

    each = jax.vmap(along)(q, v, a)
    ends = tuple(tuple(y[k : len(ts) - 1 + k] for y in each) for k in (0, 1))
    return jax.vmap(one)(ts[:-1], jnp.diff(ts), ends, parts)


@once
def _located(plant: Plant, q: Array, held: Mode) -> Mode:
    system = plant.problem.system
    return jax.vmap(lambda q, mode: system.locate_contacts(system.planes(system.poses(q)), mode))(q, held)


@once
def _momentum(plant: Plant, ts: Array, q: Array, v: Array, mode: Mode) -> Array:
    def one(t: Array, q: Array, v: Array, mode: Mode) -> Array:
        frame = plant.frame(q, t, mode)
        V = jnp.sum(plant.problem.system.layout.paths * (frame.S * v)[:, None], 2)
        return jnp.sum(frame.inertia.momentum(V), 1)

    return jax.vmap(one)(ts, q, v, mode)


@once
def _contacts(plant: Plant, ts: Array, q: Array, v: Array, mode: Mode, press: Array, rubbing: Rubbing) -> ContactForce:
    system = plant.problem.system

    def one(t: Array, q: Array, v: Array, mode: Mode) -> tuple:
        frame = plant.frame(q, t, mode)
        coordinates, point, normal = system.each_contact(_place, *frame.planes, *mode.places)
        there = mode.active | jnp.isfinite(system.closest_pairs(frame.planes).gap)  # else there is no common normal
        coordinates = coordinates.at[:, 2].set(jnp.where(there, coordinates[:, 2], jnp.inf))
        along, _ = system.contact_wrenches(frame.planes, mode, tangents=True)
        slides = system.gap_jacobian(along, frame.S)[len(plant.laws) :] @ v
        return coordinates, frame.slopes @ v, slides, static_press(plant, t, frame, mode), point, normal

    coordinates, rate, slides, static, point, normal = jax.vmap(one)(ts, q, v, mode)
    friction, sticks = jnp.zeros_like(press), jnp.zeros(press.shape, bool)
    if plant.friction is not None:
        n, places = len(plant.friction.contacts), np.array(plant.friction.contacts, dtype=int)
        friction = friction.at[:, places].set(rubbing.force[:, :n])
        sticks = sticks.at[:, places].set(rubbing.sticks[:, :n] > 0)
    return ContactForce(coordinates, rate, mode.active, press, static, point, normal, friction, slides, sticks)


def _place(
    contact: AbstractContactGeometry, plane: AbstractPose, other: AbstractPose, e1: Array, e2: Array, *s: Array
) -> tuple:
    found = contact.common_normal(contact.relative(plane, other), e1, e2, *s)
    return jnp.stack([e1 + found.s1, e2 + found.s2, found.gap]), *contact.spot(plane, other, e1, found.s1)
