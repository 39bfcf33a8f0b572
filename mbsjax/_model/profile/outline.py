"""A profile laid out for computing: any of its elements by a number that may be traced."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ..._numerics.groups import pick
from ..._programs.modules import AbstractModule
from ..._programs.precision import AGREEING
from .base import AbstractCurve, AbstractElement, AbstractPlain, Place, Row, place_on, right_of, tangent
from .elements import Line


SMOOTH = AGREEING  # a corner that turns less has no extent
_SHOWN = 5  # places of a curve tell how large it is
_STEEP = 10.0  # elements are prolonged beyond a hollow corner by this many times the overlap


class Outline(AbstractModule):
    """The elements of a profile, corners included, as arrays. Made by `outline`."""

    table: Float[Array, "6 n"]  # the numbers of a row, for each number; zero for curves
    has_extent: Bool[Array, " n"]  # false for corners without extent
    curves: tuple[AbstractCurve, ...]  # one for each structure, its leaves stacked
    lines: tuple[bool, ...] = eqx.field(static=True)  # for each number
    hollow: tuple[bool, ...] = eqx.field(static=True)  # which are concave arcs
    groups: tuple[int, ...] = eqx.field(static=True)  # which of `curves`; -1 for plain elements
    slots: tuple[int, ...] = eqx.field(static=True)  # and where in its stack
    corners: tuple[bool, ...] = eqx.field(static=True)  # which numbers are corners between elements
    closed: bool = eqx.field(static=True)
    tips: bool = eqx.field(static=True)  # whether the last two numbers are the ends of an open chain, its start last
    samples: int = eqx.field(static=True)  # how many points show the shape of any curve

    @property
    def count(self) -> int:
        return len(self.lines)

    @property
    def has_plain(self) -> bool:
        """Whether not all of them are curves."""
        return any(g < 0 for g in self.groups)

    @property
    def endless(self) -> bool:
        """Whether the only element runs into itself."""
        return self.closed and self.count == 1

    @property
    def is_disc(self) -> bool:
        """Whether it is a full circle, with its material inside."""
        return self.endless and not self.curves and not self.hollow[0]

    @property
    def is_ring(self) -> bool:
        """Whether it is one curve that runs into itself."""
        return self.endless and bool(self.curves)

    @property
    def rows(self) -> Row:
        """All rows at once."""
        return Row(*self.table)

    @property
    def size(self) -> Float[Array, ""]:
        """The largest number that is a length; of curves, the farthest of some places."""
        plain = jnp.max(jnp.abs(self.table) * np.array([1.0, 1, 1, 0, 0, 1])[:, None])
        return jnp.maximum(plain, jnp.max(jnp.abs(self._along_curves()))) if self.curves else plain

    @property
    def curve_sizes(self) -> Float[Array, " n"]:
        """Half of how far each curve goes away from where it begins; zero for the others."""
        if not self.curves:
            return jnp.zeros(self.count)
        places = self._along_curves()
        far = jnp.max(jnp.sum((places - places[:, :1]) ** 2, -1), -1)
        return jnp.zeros(self.count).at[np.array(self.groups) >= 0].set(jnp.sqrt(far) / 2)

    def _along_curves(self) -> Float[Array, "curves places 2"]:
        """Some places of each curve."""
        curves, s = np.flatnonzero(np.array(self.groups) >= 0), jnp.linspace(0.0, 1.0, _SHOWN)
        return jax.vmap(lambda e: jax.vmap(self.curve(e))(s))(curves)

    def column(self, e: Any) -> Float[Array, "6 *e"]:
        """The numbers of an element, or of many."""
        if isinstance(e, np.ndarray):
            return pick(self.table, e, 1)
        if self.count == 1:
            return self.table.reshape(6, *[1] * e.ndim)
        return self.table.at[:, e].get(mode="promise_in_bounds", wrap_negative_indices=False)

    def is_line(self, e: Any) -> Any:
        return _flag_of(self.lines, e)

    def is_curve(self, e: Any) -> Any:
        return _flag_of(tuple(g >= 0 for g in self.groups), e)

    def curvature(self, e: np.ndarray) -> Float[Array, " e"]:
        """The curvature of plain elements."""
        radius = self.column(e)[2]
        return jnp.where(self.is_line(e), 0.0, jnp.where(radius == 0, jnp.inf, 1 / jnp.where(radius == 0, 1.0, radius)))

    def curve(self, e: Int[Array, ""]) -> Callable[[Array], Array]:
        """The positions along a curve, as a function of the local coordinate."""
        mine = []
        for g, stack in enumerate(self.curves):
            numbers, structure = eqx.partition(stack, eqx.is_array)
            count = self.groups.count(g)
            slot = jnp.clip(jnp.asarray(self.slots)[e], 0, count - 1) if count > 1 else 0
            mine.append(eqx.combine(jax.tree_util.tree_map(lambda x, k=slot: x[k], numbers), structure))

        def position(s: Array) -> Array:
            # a plain element is given the first curve, harmless where nobody asks: a constant has no tangent
            result = mine[0].position(s)
            for g, curve in enumerate(mine[1:], 1):
                result = jnp.where(jnp.asarray(self.groups)[e] == g, curve.position(s), result)
            return result

        return position

    def place(self, e: Int[Array, ""], s: Float[Array, ""]) -> Place:
        """The place on element `e` with the local coordinate `s`."""
        if not self.curves:
            return self.plain_place(e, s)
        smooth = FunctionCurve(function=self.curve(e), samples=0)(s)
        if not self.has_plain:
            return smooth
        plain = self.plain_place(e, s)
        curved = self.is_curve(e)
        return Place(*(jnp.where(curved, a, b) for a, b in zip(smooth, plain)))

    def point_and_normal(self, e: Int[Array, ""], s: Float[Array, ""]) -> tuple[Float[Array, "2"], Float[Array, "2"]]:
        """The position alone, and the outward normal."""
        if self.curves:
            p, t = tangent(self.curve(e), s)
            if not self.has_plain:
                return p, right_of(t)
        plain = self.plain_place(e, s)
        if not self.curves:
            return plain.position, plain.normal
        curved = self.is_curve(e)
        return jnp.where(curved, p, plain.position), jnp.where(curved, right_of(t), plain.normal)

    def plain_place(self, e: Any, s: Float[Array, "*e"]) -> Place:
        """The same for elements that are no curves, of one or many."""
        return place_on(Row(*self.column(e)), s)

    def neighbor(self, e: Int[Array, ""], way: Int[Array, ""]) -> Int[Array, ""]:
        """The next element (way = 1) or the one before (-1) that has an extent; -1 beyond an end."""

        def step(e: Array) -> Array:
            on = e + way
            if self.closed:
                return on % self.count
            if self.tips:  # before the first element stands the last number, and nothing behind the one before it
                on = jnp.where(e == self.count - 1, jnp.where(way > 0, 0, -1), on)
                on = jnp.where((e == 0) & (way < 0), self.count - 1, on)
                return jnp.where((e == self.count - 2) & (way > 0), -1, on)
            return jnp.where((on < 0) | (on >= self.count), -1, on)

        first = step(e)
        skip = (first >= 0) & ~self.has_extent[jnp.maximum(first, 0)]
        return jnp.where(skip, step(first), first)

    @property
    def bounding_circle(self) -> tuple[Float[Array, "2"], Float[Array, ""]]:
        """A center, and how far from it the profile reaches; not at all, if it is a circle."""
        if self.endless and not self.curves:
            return jnp.stack([self.rows.x[0], self.rows.y[0]]), jnp.zeros(())
        s = jnp.linspace(0.0, 1.0, max(self.samples, 9))
        places = jax.vmap(lambda e: jax.vmap(lambda s: self.point_and_normal(e, s)[0])(s))(jnp.arange(self.count))
        places = places.reshape(-1, 2)
        center = (jnp.max(places, 0) + jnp.min(places, 0)) / 2
        return center, jnp.max(jnp.hypot(*(places - center).T))

    def least_overlap_beyond(self, e: np.ndarray, s: Float[Array, " k"]) -> Float[Array, " k"]:
        """By how much bodies overlap, at least, that have come through the boundary at places beyond the ends of
        elements: there it goes on with a hollow corner or a concave arc, behind which an element is prolonged; the disc
        may be too large for the arc. Infinitely, at other ends; but a point has been met whatever the direction."""
        column = self.column(e)
        radius, turn, length = column[2], column[4], column[5]
        point = ~np.array(self.lines)[e] & (np.array(self.groups)[e] < 0) & (radius == 0)
        if not any(self.corners) and not any(self.hollow):
            return jnp.where(point, 0.0, jnp.inf)
        long = jnp.where(self.is_line(e), length, jnp.abs(radius * turn))
        long = long + 2 * pick(self.curve_sizes, e) if self.curves else long
        goes_on = jnp.where(s > 1, self._turns_inward(e, 1), self._turns_inward(e, -1)) & (long > 0)
        return jnp.where(point, 0.0, jnp.where(goes_on, jnp.maximum(s - 1, -s) * long / _STEEP, jnp.inf))

    def _turns_inward(self, e: np.ndarray, way: int) -> Bool[Array, " k"]:
        """Whether the boundary goes on from elements, that way, with a hollow corner or a concave arc."""
        n = self.count - 2 * self.tips  # the tips of a chain stand behind it
        on, over, turn = (e + way) % n, (e + 2 * way) % n, self.table[4]
        corner, arc = jnp.asarray(self.corners), np.array(self.hollow)
        inward, flat = (corner & (turn < -SMOOTH())) | arc, corner & (jnp.abs(turn) <= SMOOTH())
        ends = np.zeros_like(e, bool) if self.closed else (e + way < 0) | (e + way >= n)
        return (pick(inward, on) | (pick(flat, on) & arc[over])) & ~ends

    def adjacent(self, e: Int[Array, ""]) -> Bool[Array, " n"]:
        """Which elements one is on at one place with an element: that itself, and those next to it, unless the boundary
        is hollow between them."""
        n = self.count
        found, over_corner = np.eye(n, dtype=bool), np.zeros((n, n), int)
        walk = [n - 1, *range(n - 1)] if self.tips else list(range(n))
        for k in range(n if self.closed else n - 1):
            i, j, over = (walk[(k + m) % n] for m in range(3))
            found[i, j] = found[j, i] = True
            if self.corners[j] and over != i:
                over_corner[i, over] = over_corner[over, i] = j + 1
        if n == 1 or found.all():
            return jnp.ones(n, bool)
        row, corner = (jnp.asarray(x).at[e].get(mode="promise_in_bounds") for x in (found, over_corner))
        return row | ((corner > 0) & (self.table[4] >= -SMOOTH())[jnp.maximum(corner - 1, 0)])


def _flag_of(flags: tuple[bool, ...], e: Any) -> Any:
    """What is known of an element, or of many; an array of NumPy where that does not depend on traced numbers."""
    if isinstance(e, np.ndarray):
        return np.array(flags)[e]
    if len(set(flags)) == 1:
        return np.full(jnp.shape(e), flags[0])
    return jnp.asarray(flags).at[e].get(mode="promise_in_bounds", wrap_negative_indices=False)


class FunctionCurve(AbstractCurve):
    """A curve given by a function, as an element."""

    function: Callable
    samples: int = eqx.field(static=True)

    def position(self, s: Float[Array, ""]) -> Float[Array, "2"]:
        return self.function(s)


class _Slot(NamedTuple):
    row: Row
    line: bool
    hollow: bool
    group: int
    slot: int
    has_extent: Array
    corner: bool = False


def outline(
    elements: tuple[AbstractElement, ...], closed: bool, corners: tuple[bool, ...], ends: bool = False
) -> Outline:
    """`ends` puts a point at either end of an open chain: its normal turns by half a turn, from that of the element to
    the opposite one."""
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
            flat = isinstance(element, Line)
            slots.append(_Slot(row, flat, element.concave, -1, 0, yes))
        else:
            group = list(groups).index(keys[i])
            slots.append(_Slot(none, False, False, group, counts[keys[i]], yes))
            counts[keys[i]] += 1
        if i < len(corners) and corners[i]:
            end, on = element(1.0), elements[(i + 1) % len(elements)](0.0)
            turn = on.angle - end.angle
            turn = turn - 2 * jnp.pi * jax.lax.stop_gradient(jnp.round(turn / (2 * jnp.pi)))
            row = Row(end.position[0], end.position[1], zero, end.angle, turn, zero)
            slots.append(_Slot(row, False, False, -1, 0, turn > SMOOTH(), True))
    if ends:
        last, first = elements[-1](1.0), elements[0](0.0)
        for end, start in ((last, last.angle), (first, first.angle - jnp.pi)):
            row = Row(end.position[0], end.position[1], zero, start, zero + jnp.pi, zero)
            slots.append(_Slot(row, False, False, -1, 0, yes))
    return Outline(
        table=jnp.stack([jnp.stack(s.row) for s in slots], 1),
        has_extent=jnp.stack([s.has_extent for s in slots]),
        curves=tuple(
            jax.tree_util.tree_map(lambda *x: jnp.stack(x) if eqx.is_array(x[0]) else x[0], *members)
            for members in groups.values()
        ),
        lines=tuple(s.line for s in slots),
        hollow=tuple(s.hollow for s in slots),
        groups=tuple(s.group for s in slots),
        slots=tuple(s.slot for s in slots),
        corners=tuple(s.corner for s in slots),
        closed=closed,
        tips=ends,
        samples=max((e.samples for e in elements if isinstance(e, AbstractCurve)), default=0),
    )
