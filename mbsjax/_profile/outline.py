"""A profile laid out for computing: any of its elements by a number that may be traced."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .base import AbstractCurve, AbstractElement, AbstractPlain, Place, Row, place_on


SMOOTH = 1e-9  # a corner that turns less has no extent


class Outline(eqx.Module):
    """The elements of a profile, corners included, as arrays. Made by `outline`."""

    rows: Row  # for each number; zero for curves
    there: Bool[Array, " n"]  # false for corners without extent
    curves: tuple[AbstractCurve, ...]  # one for each structure, its leaves stacked
    lines: tuple[bool, ...] = eqx.field(static=True)  # for each number
    groups: tuple[int, ...] = eqx.field(static=True)  # which of `curves`; -1 for plain elements
    slots: tuple[int, ...] = eqx.field(static=True)  # and where in its stack
    closed: bool = eqx.field(static=True)
    samples: int = eqx.field(static=True)  # how many points show the shape of any curve

    @property
    def count(self) -> int:
        return len(self.lines)

    @property
    def endless(self) -> bool:
        """Whether the only element runs into itself."""
        return self.closed and self.count == 1

    def row(self, e: Int[Array, ""]) -> Row:
        return _entry(self.rows, e)

    def is_line(self, e: Int[Array, ""]) -> Bool[Array, ""]:
        return jnp.asarray(self.lines)[e]

    def is_curve(self, e: Int[Array, ""]) -> Bool[Array, ""]:
        return jnp.asarray(self.groups)[e] >= 0

    def curve(self, e: Int[Array, ""]) -> Callable[[Array], Array]:
        """The positions along a curve, as a function of the local coordinate."""
        group, slot = jnp.asarray(self.groups)[e], jnp.asarray(self.slots)[e]

        def position(s: Array) -> Array:
            result = jnp.zeros(2)
            for g, stack in enumerate(self.curves):
                numbers, structure = eqx.partition(stack, eqx.is_array)
                mine = _entry(numbers, jnp.clip(slot, 0, self.groups.count(g) - 1))
                p = eqx.combine(mine, structure).position(s)
                # a plain element is given the first curve, harmless where nobody asks: a constant has no tangent
                result = p if g == 0 else jnp.where(group == g, p, result)
            return result

        return position

    def place(self, e: Int[Array, ""], s: Float[Array, ""]) -> Place:
        """The place on element `e` with the local coordinate `s`."""
        plain = place_on(self.row(e), s)
        if not self.curves:
            return plain
        smooth = Placed(function=self.curve(e), samples=0)(s)
        curved = self.is_curve(e)
        return Place(*(jnp.where(curved, a, b) for a, b in zip(smooth, plain)))

    def neighbour(self, e: Int[Array, ""], way: Int[Array, ""]) -> Int[Array, ""]:
        """The next element (way = 1) or the one before (-1) that has an extent; -1 beyond an end."""

        def step(e: Array) -> Array:
            on = e + way
            return on % self.count if self.closed else jnp.where((on < 0) | (on >= self.count), -1, on)

        first = step(e)
        skip = (first >= 0) & ~self.there[jnp.maximum(first, 0)]
        return jnp.where(skip, step(first), first)


def _entry(tree, i: Int[Array, ""]):
    return jax.tree_util.tree_map(lambda x: x[i], tree)


class Placed(AbstractCurve):
    """A curve given by a function, as an element."""

    function: Callable
    samples: int = eqx.field(static=True)

    def position(self, s: Float[Array, ""]) -> Float[Array, "2"]:
        return self.function(s)


class _Slot(NamedTuple):
    row: Row
    line: bool
    group: int
    slot: int
    there: Array


def outline(elements: tuple[AbstractElement, ...], closed: bool, corners: tuple[bool, ...]) -> Outline:
    groups: dict[object, list[AbstractElement]] = {}
    keys = []
    for element in elements:
        leaves, structure = jax.tree_util.tree_flatten(element)
        keys.append((structure, tuple(x.shape if eqx.is_array(x) else x for x in leaves)))
        if isinstance(element, AbstractCurve):
            groups.setdefault(keys[-1], []).append(element)
    zero, yes = jnp.zeros(()), jnp.ones((), bool)
    none = Row(*[zero] * 6)
    slots, counts = [], dict.fromkeys(groups, 0)
    for i, element in enumerate(elements):
        if isinstance(element, AbstractPlain):
            row = element.row()
            flat = type(element).__name__ == "Line"
            slots.append(_Slot(row, flat, -1, 0, yes))
        else:
            group = list(groups).index(keys[i])
            slots.append(_Slot(none, False, group, counts[keys[i]], yes))
            counts[keys[i]] += 1
        if i < len(corners) and corners[i]:
            end, on = element(1.0), elements[(i + 1) % len(elements)](0.0)
            turn = on.angle - end.angle
            turn = turn - 2 * jnp.pi * jax.lax.stop_gradient(jnp.round(turn / (2 * jnp.pi)))
            row = Row(end.position[0], end.position[1], zero, end.angle, turn, zero)
            slots.append(_Slot(row, False, -1, 0, turn > SMOOTH))
    return Outline(
        rows=jax.tree_util.tree_map(lambda *x: jnp.stack(x), *(s.row for s in slots)),
        there=jnp.stack([s.there for s in slots]),
        curves=tuple(
            jax.tree_util.tree_map(lambda *x: jnp.stack(x) if eqx.is_array(x[0]) else x[0], *members)
            for members in groups.values()
        ),
        lines=tuple(s.line for s in slots),
        groups=tuple(s.group for s in slots),
        slots=tuple(s.slot for s in slots),
        closed=closed,
        samples=max((e.samples for e in elements if isinstance(e, AbstractCurve)), default=0),
    )
