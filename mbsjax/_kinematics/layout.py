"""The static plan of a mechanism: which joint, freedom, body and contact stands where in the arrays of `System`."""

import itertools
from dataclasses import dataclass
from functools import cached_property

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._model.joint.revolute import RevolutePair
from .._model.mechanism import Mechanism
from .._model.topology import Topology
from .._numerics.groups import SE2, SE3, AbstractPose
from .contacts import AbstractContactGeometry


@dataclass(frozen=True)
class Layout:
    """Who stands where. Bodies are numbered as the tree reaches them, ground first. Joints stand in the
    order in which the tree is walked, the chords behind; freedoms and stored numbers as the user listed them."""

    topology: Topology
    planar: bool
    kinds: tuple[tuple[int, ...], ...]  # listed numbers of the joints that share one formula
    n_stored: tuple[int, ...]  # for each listed joint
    n_free: tuple[int, ...]
    lengths: tuple[bool, ...]  # for each freedom
    gauge_bodies: tuple[tuple[str, ...], ...]
    contact_bodies: tuple[tuple[str, str], ...]  # of the contacts
    contact_kinds: tuple[tuple[int, ...], ...]  # numbers of the contacts whose profiles share their structure
    holds: tuple[str, ...]
    moves: tuple[int, ...]  # the freedom that each contact is to move; -1 if that is left open
    slots: tuple[int, ...]  # where each freedom is stored; -1 if it is not
    hinges: tuple[int, ...]  # the chords that are revolute
    held: tuple[int, ...] = ()  # joints that are given all freedoms, behind those of all: what holds these, they carry

    @cached_property
    def group(self) -> type[AbstractPose]:
        return SE2 if self.planar else SE3

    @cached_property
    def order(self) -> np.ndarray:
        """The listed joints in the order of the walk."""
        return np.array([*self.topology.tree, *self.topology.chords], dtype=int)

    @cached_property
    def by_kind(self) -> np.ndarray:
        """For each joint of the walk, its place among the joints stacked by kinds."""
        stacked = np.array([j for kind in self.kinds for j in kind], dtype=int)
        return np.argsort(stacked)[self.order]

    @cached_property
    def walked(self) -> tuple[np.ndarray, ...]:
        """For each kind, where its joints stand in the walk."""
        place = np.argsort(self.order)
        return tuple(place[list(kind)] for kind in self.kinds)

    @cached_property
    def stored(self) -> tuple[np.ndarray, ...]:
        """For each kind, the places in q of each number (first axis) of each joint (second axis)."""
        starts = np.cumsum([0, *self.n_stored])
        return tuple(np.array([np.arange(starts[j], starts[j + 1]) for j in kind]).T for kind in self.kinds)

    @cached_property
    def free(self) -> tuple[np.ndarray, ...]:
        """The same for the freedoms."""
        return tuple(np.array([self.columns[j] for j in kind]).T for kind in self.kinds)

    @cached_property
    def columns(self) -> list[np.ndarray]:
        """For each listed joint, the places of its freedoms."""
        starts = np.cumsum([0, *self.n_free])
        return [np.arange(a, b) for a, b in itertools.pairwise(starts)]

    @cached_property
    def owner(self) -> np.ndarray:
        """The listed joint that each freedom belongs to."""
        own, held = np.arange(len(self.n_free)), np.array(self.held, dtype=int)
        return np.concatenate([np.repeat(own, self.n_free), np.repeat(held, self.group.rows)])

    @cached_property
    def body_numbers(self) -> dict[str, int]:
        """From a body's name to its number in the tree."""
        reached = [0, *(child for g in self.topology.generations for _, _, child in g)]
        return {self.topology.links[link]: i for i, link in enumerate(reached)}

    @cached_property
    def _renumber(self) -> np.ndarray:
        return np.array([self.body_numbers[link] for link in self.topology.links])

    @cached_property
    def ends(self) -> np.ndarray:
        """The numbers of the two bodies of each joint of the walk."""
        return self._renumber[self.topology.ends[self.order]]

    @cached_property
    def backwards(self) -> np.ndarray:
        """Which joints of the tree are walked from their following to their preceding body."""
        children = [child for g in self.topology.generations for _, _, child in g]
        return self.topology.ends[list(self.topology.tree), 1] != np.array(children)

    @cached_property
    def parents(self) -> list[np.ndarray]:
        """For each generation of the tree, the numbers of the bodies it grows from."""
        return [self._renumber[[p for _, p, _ in g]] for g in self.topology.generations]

    @cached_property
    def loops(self) -> np.ndarray:
        """For each loop and freedom: how the freedom turns the chord's following side away (-Pi)."""
        return -self.topology.loops[:, self.owner].astype(float)

    @cached_property
    def contact_body_numbers(self) -> np.ndarray:
        """The numbers of the first bodies of all contacts, and of the second."""
        return (
            np.array([[self.body_numbers[name] for name in pair] for pair in self.contact_bodies], int).reshape(-1, 2).T
        )

    @cached_property
    def carriers(self) -> np.ndarray:
        """For each freedom, the number of the body that its screw is fixed to."""
        return self.ends[np.argsort(self.order)[self.owner], 0]

    @cached_property
    def paths(self) -> np.ndarray:
        """For each body and freedom: how the freedom moves the body."""
        return self.topology.paths[np.argsort(self._renumber)][:, self.owner].astype(float)


def layout(mech: Mechanism, contacts: tuple[AbstractContactGeometry, ...] = ()) -> Layout:
    """The static side of a mechanism."""
    kinds: dict[object, list[int]] = {}
    for i in (*mech.topology.tree, *mech.topology.chords):  # in the order of the walk: one kind needs no sorting then
        leaves, structure = jax.tree_util.tree_flatten(mech.joints[i].pair)
        kinds.setdefault((structure, tuple(jnp.shape(leaf) for leaf in leaves)), []).append(i)
    return Layout(
        topology=mech.topology,
        planar=mech.planar,
        kinds=tuple(tuple(kind) for kind in kinds.values()),
        n_stored=tuple(len(j.pair.rest) for j in mech.joints),
        n_free=tuple(len(j.pair.coordinates) for j in mech.joints),
        lengths=tuple(x for j in mech.joints for x in j.pair.lengths),
        gauge_bodies=tuple(g.bodies for g in mech.gauges),
        contact_bodies=tuple((c.body_a, c.body_b) for c in mech.contacts),
        contact_kinds=tuple(_contact_kinds(contacts).values()),
        holds=tuple(c.hold for c in mech.contacts),
        moves=tuple(-1 if c.moves is None else mech.coordinates.index(c.moves) for c in mech.contacts),
        slots=_slots(mech),
        hinges=tuple(j for j in mech.topology.chords if isinstance(mech.joints[j].pair, RevolutePair)),
    )


def _slots(mech: Mechanism) -> tuple[int, ...]:
    slots, start = [], 0
    for joint in mech.joints:
        slots += [-1 if slot is None else start + slot for slot in joint.pair.slots]
        start += len(joint.pair.rest)
    return tuple(slots)


def _contact_kinds(contacts: tuple[AbstractContactGeometry, ...]) -> dict[object, tuple[int, ...]]:
    kinds: dict[object, tuple[int, ...]] = {}
    for k, each in enumerate(contacts):
        numbers, structure = eqx.partition(each, eqx.is_array)
        leaves, tree = jax.tree_util.tree_flatten(numbers)
        others = jax.tree_util.tree_leaves(structure)
        key = (tree, tuple(x.shape for x in leaves), tuple(id(x) for x in others))
        kinds[key] = (*kinds.get(key, ()), k)
    return kinds
