"""The numbers of a mechanism, stacked: joints of a kind together, the tree walked by generations.

All that follows from names and structure is in `Layout`, static; all numbers are in `System`.
Tracing then costs in proportion to the number of kinds of joints and the depth of the tree, not to the
number of joints.
"""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._events.places import Places
from .._model.gauge import AbstractGauge
from .._model.joint.base import AbstractFlatPair, AbstractPair, fixed_screws, local_twists, motion
from .._model.joint.clearance import Clearance
from .._model.mechanism import Mechanism
from .._model.profile.closest_pair import ClosestPair
from .._model.profile.common_normal import CommonNormal
from .._numerics.groups import SE2, SE3, AbstractPose, lanewise, one, part, pick, rowwise, take, wide
from .._numerics.linalg import least_squares
from .._programs.trees import once
from .clearance import clearance_geometry
from .contacts import AbstractContactGeometry, ContactGeometry, Proximity, contact_geometry
from .layout import Layout, layout
from .mode import Mode


Rotations = Any  # (cosines, sines) of all bodies in the plane; phi of all joints in space
_SHORT, _LONG = 1e-3, 0.1  # of the mechanism's size: elements that are shorter, or longer, do not set the steps
_ELSEWHERE = 1e-3  # of the mechanism's size: an active contact's places nearer to each other are the same place

Planes = tuple[AbstractPose, AbstractPose]  # of the two profiles of every contact
Targets = tuple[tuple[int, Float[Array, "*lanes"]], ...]  # gauge number, value


class System(eqx.Module):
    """A mechanism's numbers, stacked. Made by `system`. Coordinates may have lanes behind; then so has
    every number of the mechanism."""

    layout: Layout = eqx.field(static=True)
    pairs: tuple[AbstractPair, ...]  # one for each kind, its leaves stacked
    X_A: AbstractPose  # of every joint of the walk
    X_B: AbstractPose
    inlet: AbstractPose  # of every joint of the tree: its frame on the parent,
    outlet: AbstractPose  # and its frame on the child
    gauges: tuple[AbstractGauge, ...]
    contacts: tuple[AbstractContactGeometry, ...]  # the contacts, one for each kind, their leaves stacked
    size: Float[Array, "*lanes"]  # a typical length, to weigh lengths against angles

    def retract(self, q: Float[Array, "nq *lanes"], d: Float[Array, "nv *lanes"]) -> Float[Array, "nq *lanes"]:
        """The coordinates after a move by `d` in the freedoms."""
        if all(isinstance(pair, AbstractFlatPair) for pair in self.pairs):
            return q + d
        parts = []
        for pair, stored, free in zip(self.pairs, self.layout.stored, self.layout.free, strict=True):
            moved = lanewise(lambda p, qk, dk: p.retract(qk, dk), q.ndim)(pair, pick(q, stored), pick(d, free))
            parts.append(moved.reshape(-1, *q.shape[1:]))
        places = np.concatenate([s.reshape(-1) for s in self.layout.stored])
        return pick(jnp.concatenate(parts), np.argsort(places))

    def stored_rates(self, q: Float[Array, "nq *lanes"], v: Float[Array, "nv *lanes"]) -> Float[Array, "nq *lanes"]:
        """The rates of the coordinates, where the freedoms move with v."""
        if all(isinstance(pair, AbstractFlatPair) for pair in self.pairs):
            return v
        return jax.jvp(lambda d: self.retract(q, d), (jnp.zeros_like(v),), (v,))[1]

    def beside(self, q: Float[Array, " nq"], other: Float[Array, " nq"]) -> tuple[Array, Array]:
        """How far a position is from another one, in the freedoms there, and how that changes with its own."""
        if all(isinstance(pair, AbstractFlatPair) for pair in self.pairs):
            return q - other, jnp.eye(q.shape[0])
        none = jnp.zeros(len(self.layout.lengths))
        here, there = (jax.jacfwd(lambda v, at=x: self.stored_rates(at, v))(none) for x in (q, other))
        from_stored = least_squares(there)
        return from_stored((q - other)[:, None])[:, 0], from_stored(here)

    def poses(self, q: Float[Array, "nq *lanes"]) -> AbstractPose:
        """The pose in ground of every body, numbered as the tree reaches them."""
        return self.poses_and_joints(q)[0]

    def _joints(self, q: Float[Array, "nq *lanes"]) -> AbstractPose:
        """phi of every joint of the walk."""
        group = self.layout.group
        phi = [
            lanewise(lambda p, qk: motion(p, qk, group), q.ndim)(pair, pick(q, stored))
            for pair, stored in zip(self.pairs, self.layout.stored, strict=True)
        ]
        if len(phi) == 1:
            return phi[0]
        by_kind = self.layout.by_kind
        return group.concatenate(phi).map_many(lambda leaf, axis: pick(leaf, by_kind, axis))

    def rotations(self, q: Float[Array, "nq *lanes"]) -> Rotations:
        """All cosines and sines that a position needs.

        A loop that keeps them in its state computes them once a turn; without that, compilers compute them
        again in every kernel that uses them.
        """
        return self._rotations(self._joints(q))

    def _rotations(self, phi: AbstractPose) -> Rotations:
        if not self.layout.planar:
            return phi
        backwards = self.layout.backwards
        tree = part(phi, 0, len(backwards))
        assert isinstance(tree, SE2) and isinstance(self.inlet, SE2) and isinstance(self.outlet, SE2)
        lanes = tree.angle.shape[1:]
        sign = wide(np.where(backwards, -1.0, 1.0), len(lanes))
        steps = self.inlet.angle + (sign * tree.angle if backwards.any() else tree.angle) - self.outlet.angle
        angles, start = jnp.zeros((1, *lanes), steps.dtype), 0
        for parents in self.layout.parents:
            stop = start + len(parents)
            angles = jnp.concatenate([angles, pick(angles, parents) + pick(steps, np.arange(start, stop))])
            start = stop
        angles = pick(angles, np.arange(1, start + 1))
        return jnp.cos(angles), jnp.sin(angles)

    def poses_and_joints(
        self, q: Float[Array, "nq *lanes"], rotations: Rotations | None = None
    ) -> tuple[AbstractPose, AbstractPose]:
        """The poses of all bodies, and phi of every joint of the walk; `rotations`, where they are known."""
        phi = self._joints(q) if self.layout.planar or rotations is None else rotations
        turns: Any = self._rotations(phi) if rotations is None else rotations
        backwards = self.layout.backwards
        step = part(phi, 0, len(backwards))
        if backwards.any():
            back = wide(backwards, q.ndim - 1)
            step = jax.tree_util.tree_map(lambda f, b: jnp.where(back, b, f), step, step.inverse())
        bodies, start = self.layout.group.origin(jnp.zeros((1, *q.shape[1:]), q.dtype)), 0
        for parents in self.layout.parents:
            stop = start + len(parents)
            turn = tuple(pick(x, np.arange(start, stop)) for x in turns) if self.layout.planar else ()
            phi_, inlet, outlet = (part(x, start, stop) for x in (step, self.inlet, self.outlet))
            grown = (take(bodies, parents) @ inlet).onward(phi_, outlet, turn)
            bodies = self.layout.group.concatenate([bodies, grown])
            start = stop
        return bodies, phi

    def gauge_poses(self, X: AbstractPose, i: int) -> tuple[AbstractPose, ...]:
        """The poses that gauge number `i` depends on."""
        return tuple(one(X, self.layout.body_numbers[name]) for name in self.layout.gauge_bodies[i])

    def planes(self, X: AbstractPose) -> Planes:
        """The planes of the profiles of every contact, where the bodies stand at X; on the first axis of all leaves
        stands which contact."""
        bodies = [
            X.map_many(lambda leaf, axis, side=side: jnp.moveaxis(pick(leaf, side, axis), axis, 0))
            for side in self.layout.contact_body_numbers
        ]
        return self.each_contact(AbstractContactGeometry.planes, *bodies)

    def each_contact(self, f: Callable, *of_each: Any, **options: Any) -> Any:
        """f(contact, ..., **options) of every contact, stacked on a first axis; `of_each` has a first axis of contacts.
        f is a function of a module, or of a class, for it is traced once for each kind of contact, however often it is
        asked for."""
        kinds = [np.array(members) for members in self.layout.contact_kinds]
        results = [
            _of_kind(
                f, tuple(options.items()), self.size.ndim, len(members), stack,
                *jax.tree_util.tree_map(lambda x, members=members: pick(x, members), of_each),
            )
            for stack, members in zip(self.contacts, kinds, strict=True)
        ]  # fmt: skip
        if len(results) == 1 and len(kinds[0]) == len(self.layout.holds):
            return results[0]
        order = np.argsort(np.concatenate(kinds))
        return jax.tree_util.tree_map(lambda *x: pick(jnp.concatenate(x), order), *results)

    def contact(self, k: int) -> AbstractContactGeometry:
        """Contact number `k`."""
        group, members = next((g, m) for g, m in enumerate(self.layout.contact_kinds) if k in m)
        i = members.index(k)
        return jax.tree_util.tree_map(lambda x: x[i] if eqx.is_array(x) else x, self.contacts[group])

    def resting(self, q: Float[Array, "nq *lanes"], mode: Mode) -> Float[Array, "n *lanes"]:
        """Where the resting coordinates are."""
        return jnp.take_along_axis(q, jnp.asarray(self.layout.slots)[mode.rests], 0)

    def closest_pairs(self, P: Planes) -> ClosestPair:
        """The closest elements of every contact."""
        return self.each_contact(_closest_pair, *P)

    def gaps(self, P: Planes, mode: Any) -> Float[Array, "c *lanes"]:
        """The gap of every contact on its present elements."""
        return self.common_normals(P, mode.places).gap

    def common_normals(self, P: Planes, where: tuple[Array, ...]) -> CommonNormal:
        """The common normal of every contact on its present elements."""
        return self.each_contact(_common_normal, *P, *where)

    @once
    def proximity(self, P: Planes, where: Places, active: Array, *apart: Array) -> Proximity:
        """What is near every contact, which is at `where`, since its pairs were `apart`, if that is known;
        `ContactGeometry.proximity`."""
        radius = jnp.broadcast_to(_ELSEWHERE * self.size, active.shape)
        return self.each_contact(_proximity, *P, *where, active, radius, *apart)

    def locate_contacts(self, P: Planes, mode: Any) -> Any:
        """The mode with every contact where it is: an open one on its closest elements."""
        here = self.common_normals(P, mode.places)
        places = mode.places._replace(s1=here.s1, s2=here.s2)
        return mode._replace(places=self.proximity(P, places, mode.active).places)

    def no_pairs_apart(self, lanes: tuple[int, ...]) -> Float[Array, "c pairs *lanes"]:
        """The gaps of the pairs of elements of every contact that are apart: none yet."""
        return jnp.full((len(self.layout.holds), self._most_pairs, *lanes), -jnp.inf, self.size.dtype)

    @property
    def _most_pairs(self) -> int:
        return max((len(contact.pairs[0]) for contact in self.contacts), default=0)

    def next_elements(self, P: Planes, where: Places, w: Array) -> tuple[Places, Array]:
        """Where every contact is next if it left its element by the end w; `ContactGeometry.next_elements`."""
        each = [jnp.broadcast_to(x, where[0].shape) for x in (w, self.size)]
        return self.each_contact(_next_elements, *P, *where, *each)

    @property
    def feature_sizes(self) -> tuple[Float[Array, "c *lanes"], Float[Array, "c pairs *lanes"]]:
        """How far the bodies of every contact can move along each other between two positions that are looked at, and
        near each pair of elements; within bounds."""
        along, rounds = self.each_contact(_feature_sizes, most=self._most_pairs)
        along = jnp.clip(along, _SHORT * self.size, _LONG * self.size)
        return along, jnp.maximum(rounds, _SHORT / 4 * self.size)

    @property
    def bounding_circles(self) -> tuple[Array, Array]:
        """Centers of the two profiles of every contact, and how far the profiles reach from them."""
        return self.each_contact(_bounding_circles)

    def contact_twists(self, V: Float[Array, "rows bodies *lanes"]) -> list[Float[Array, "c rows *lanes"]]:
        """The twists of the two bodies of every contact."""
        return [jnp.swapaxes(pick(V, side, 1), 0, 1) for side in self.layout.contact_body_numbers]

    def gap_rate_bounds(self, P: Planes, V: Float[Array, "rows bodies *lanes"], circles: tuple[Array, Array]) -> Array:
        """How fast the distance of the bodies of every contact may change, where their twists are V."""
        V_a, V_b = self.contact_twists(V)
        return self.each_contact(_gap_rate_bound, *P, V_b - V_a, *circles)

    def contact_wrenches(
        self, P: Planes, mode: Any, tangents: bool = False
    ) -> tuple[Float[Array, "c rows *lanes"], CommonNormal]:
        """The wrench of a unit force in every contact on its present elements, and its common normal. With `tangents`,
        the wrenches of unit forces along them follow."""
        wrenches, found = self.each_contact(_wrenches, *P, *mode.places, tangents=tangents)
        return jnp.concatenate(wrenches) if tangents else wrenches[0], found

    def gap_jacobian(self, wrenches: Float[Array, "c rows *lanes"], S: Float[Array, "rows nv *lanes"]) -> Array:
        """The derivatives in the freedoms of the gaps of every contact."""
        between = np.subtract(*(self.layout.paths[side] for side in self.layout.contact_body_numbers[::-1]))
        between = np.tile(between, (len(wrenches) // max(len(between), 1), 1))
        return jnp.sum(wrenches[:, :, None] * S[None], 1) * wide(between, self.size.ndim)

    def holding_twists(self, X: AbstractPose, sides: tuple[int, ...]) -> Float[Array, "rows n *lanes"]:
        """The twists in ground of all freedoms that the joints `held` in the layout are given, in their frame on the
        first body (side 0) or on the second."""
        walked = np.argsort(self.layout.order)[list(self.layout.held)]
        columns = []
        for place, side in zip(walked, sides, strict=True):
            frame = one(X, int(self.layout.ends[place, side])) @ one((self.X_A, self.X_B)[side], int(place))
            basis = wide(np.eye(self.layout.group.rows), self.size.ndim)
            columns += [frame.twist_map(jnp.asarray(basis[:, k])) for k in range(self.layout.group.rows)]
        return jnp.stack(columns, 1)

    def twists(self, q: Float[Array, "nq *lanes"], X: AbstractPose) -> Float[Array, "rows nv *lanes"]:
        """The twist in ground of every freedom: B_ji of (2.2.3-21) as a column."""
        group = self.layout.group
        frame = take(X, self.layout.ends[:, 0]) @ self.X_A

        def columns(pair: AbstractPair, stored: np.ndarray, frame: AbstractPose) -> Array:
            if (screws := fixed_screws(pair, group)) is not None:
                return frame.screws(screws)
            mine = lanewise(lambda pair, qk: local_twists(pair, qk, group), q.ndim)(pair, pick(q, stored))
            return frame.map_many(lambda leaf, axis: jnp.expand_dims(leaf, axis)).twist_map(mine)

        return self._by_freedom(columns, frame)

    def _by_freedom(self, columns: Callable, frame: AbstractPose) -> Float[Array, "rows nv *lanes"]:
        """Columns [rows freedoms joints] of the joints of every kind, where their frames are, in the order in which
        the freedoms are listed."""
        rows, lanes = self.layout.group.rows, frame.position.shape[2:]
        found = [
            columns(pair, stored, take(frame, walked)).reshape(rows, -1, *lanes)
            for pair, stored, walked in zip(self.pairs, self.layout.stored, self.layout.walked, strict=True)
        ]
        places = np.concatenate([free.reshape(-1) for free in self.layout.free])
        return pick(jnp.concatenate(found, 1) if len(found) > 1 else found[0], np.argsort(places), 1)

    def twist_rates(
        self, q: Float[Array, "nq *lanes"], X: AbstractPose, S: Float[Array, "rows nv *lanes"], v: Array, V: Array
    ) -> Float[Array, "rows nv *lanes"]:
        """The rates of the twists of the freedoms, which move with v, the bodies with V: a screw is carried along by
        its body; some change within it."""
        group = self.layout.group
        rates = group.bracket(pick(V, self.layout.carriers, 1), S)
        if all(fixed_screws(pair, group) is not None for pair in self.pairs):
            return rates
        frame = take(X, self.layout.ends[:, 0]) @ self.X_A
        free = {id(pair): places for pair, places in zip(self.pairs, self.layout.free, strict=True)}

        def columns(pair: AbstractPair, stored: np.ndarray, frame: AbstractPose) -> Array:
            n = len(pair.coordinates)
            if fixed_screws(pair, group) is not None:
                return jnp.zeros((group.rows, n, stored.shape[1], *q.shape[1:]))

            def change(pair: AbstractPair, qk: Array, vk: Array) -> Array:
                within = lambda d: local_twists(pair, pair.retract(qk, d), group)
                return jax.jvp(within, (jnp.zeros(n),), (vk,))[1]

            mine = lanewise(change, q.ndim)(pair, pick(q, stored), pick(v, free[id(pair)]))
            return frame.map_many(lambda leaf, axis: jnp.expand_dims(leaf, axis)).twist_map(mine)

        return rates + self._by_freedom(columns, frame)

    def poses_and_twists(
        self, q: Float[Array, "nq *lanes"]
    ) -> tuple[AbstractPose, AbstractPose, Float[Array, "rows nv *lanes"]]:
        """The poses of all bodies, phi of every joint of the walk, and the twist of every freedom."""
        X, phi = self.poses_and_joints(q)
        return X, phi, self.twists(q, X)

    def rates(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], a: Float[Array, " nv"]
    ) -> tuple[AbstractPose, Float[Array, "rows nv"], Float[Array, "rows nv"]]:
        """The poses, and what every freedom adds to the twists in ground of the bodies behind it, and to the
        rates of these twists, where the freedoms move with v and a."""

        def place(d: Array) -> tuple[AbstractPose, Array]:
            moved = self.retract(q, d)
            X = self.poses(moved)
            return X, self.twists(moved, X)

        (X, S), (_, S_dot) = jax.jvp(place, (jnp.zeros_like(v),), (v,))
        return X, S * v, S_dot * v + S * a

    def row_sizes(self, gauges: tuple[int, ...] = (), mode: Mode | None = None) -> Float[Array, "m *lanes"]:
        """What one unit of each row of `residual` weighs: 1 for angles, the typical size for lengths."""
        group, n = self.layout.group, len(self.layout.topology.chords)
        powers = ([0] * group.n_rotations + [1] * (group.rows - group.n_rotations)) * n
        powers += [self.gauges[i].dimension for i in gauges]
        table = jnp.stack([jnp.ones_like(self.size), self.size, self.size**2])
        sizes = pick(table, np.array(powers, dtype=int))
        if mode is None:
            return sizes
        own = jnp.take_along_axis(self.column_sizes(), mode.rests, 0)
        return jnp.concatenate([sizes, jnp.where(mode.owner >= 0, self.size, own)])

    def column_sizes(self) -> Float[Array, "nv *lanes"]:
        """The same for the freedoms."""
        lengths = np.array(self.layout.lengths, dtype=bool)
        return jnp.where(wide(lengths, self.size.ndim), self.size[None], 1.0)


# of one contact, or of all contacts of a kind


@once
def _of_kind(f: Callable, options: tuple, lanes: int, count: int, *of_each: Any) -> Any:
    return rowwise(lanewise(functools.partial(f, **dict(options)), lanes), count)(*of_each)


def _closest_pair(contact: AbstractContactGeometry, P_a: AbstractPose, P_b: AbstractPose) -> ClosestPair:
    return contact.closest_pair(contact.relative(P_a, P_b))


def _common_normal(
    contact: AbstractContactGeometry, P_a: AbstractPose, P_b: AbstractPose, *where: Array
) -> CommonNormal:
    return contact.common_normal(contact.relative(P_a, P_b), *where)


def _proximity(contact: AbstractContactGeometry, P_a: AbstractPose, P_b: AbstractPose, *rest: Array) -> Proximity:
    return contact.proximity(contact.relative(P_a, P_b), *rest)


def _next_elements(
    contact: AbstractContactGeometry, P_a: AbstractPose, P_b: AbstractPose, *rest: Array
) -> tuple[Places, Array]:
    return contact.next_elements(contact.relative(P_a, P_b), *rest)


def _feature_sizes(contact: AbstractContactGeometry, most: int) -> tuple[Array, Array]:
    along, rounds = contact.feature_sizes
    return along, jnp.pad(rounds, (0, most - rounds.shape[0]), constant_values=jnp.inf)


def _bounding_circles(contact: AbstractContactGeometry) -> tuple[Array, Array]:
    return contact.bounding_circles


def _gap_rate_bound(contact: AbstractContactGeometry, *rest: Any) -> Array:
    return contact.gap_rate_bound(*rest)


def _wrenches(
    contact: AbstractContactGeometry,
    P_a: AbstractPose,
    P_b: AbstractPose,
    e1: Array,
    e2: Array,
    *s: Array,
    tangents: bool,
) -> tuple[tuple[Array, ...], CommonNormal]:
    found = contact.common_normal(contact.relative(P_a, P_b), e1, e2, *s)
    wrenches = [contact.wrench(P_a, P_b, e1, found.s1, along) for along in (False, True)[: 1 + tangents]]
    return tuple(wrenches), found


def system(mech: Mechanism) -> System:
    """The mechanism laid out for computing."""
    return _system(mech.replaced(forces=()))


@once
def _system(mech: Mechanism) -> System:
    group = SE2 if mech.planar else SE3
    contacts = tuple(
        clearance_geometry(c, group) if isinstance(c, Clearance) else contact_geometry(c, *mech.profiles(c), group)
        for c in mech.contacts
    )
    plan = layout(mech, contacts)
    given = mech.joints
    joints = [given[j] for j in plan.order]
    X_A, X_B = (list(X) for X in zip(*(j.seats(plan.group) for j in joints)))
    tree = list(zip(plan.backwards, X_A, X_B, strict=False))
    inlet = plan.group.stack([b if back else a for back, a, b in tree])
    outlet = plan.group.stack([a if back else b for back, a, b in tree])
    pairs = tuple(
        jax.tree_util.tree_map(lambda *leaves: jnp.stack(leaves, -1), *(given[j].pair for j in kind))
        for kind in plan.kinds
    )
    X_A, X_B = plan.group.stack(X_A), plan.group.stack(X_B)
    lengths = [X_A.position.reshape(-1), X_B.position.reshape(-1)]
    lengths += [g.value[None] for g in mech.gauges if g.value is not None and g.dimension]
    lengths += [side.size[None] for t in contacts if isinstance(t, ContactGeometry) for side in (t.A, t.B)]
    contacts = tuple(
        jax.tree_util.tree_map(lambda *x: jnp.stack(x) if eqx.is_array(x[0]) else x[0], *(contacts[k] for k in members))
        for members in plan.contact_kinds
    )
    reach = jax.lax.stop_gradient(jnp.max(jnp.abs(jnp.concatenate(lengths))))
    return System(plan, pairs, X_A, X_B, inlet, outlet, mech.gauges, contacts, jnp.where(reach > 0, reach, 1.0))
