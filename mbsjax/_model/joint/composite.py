"""Haug's composite joints (9.4.28-34): chains of pairs through links without mass."""

from collections.abc import Sequence
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ... import frames
from ..._programs.custom_types import Number, Numbers
from ..._programs.precision import positive
from .base import AbstractPair
from .joint import Frame, Joint
from .prismatic import PrismaticPair
from .revolute import RevolutePair
from .screw import CylindricalPair
from .spherical import SphericalPair


# a frame whose z axis lies along x, and whose x axis along z
_ACROSS = np.array([[0.0, 0, 1, 0], [0, -1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]])


class CompositePair(AbstractPair):
    """phi_1 X_1 phi_2 X_2 ... phi_n: pairs in a row, with fixed frames between them."""

    kind: ClassVar[str] = "composite"
    pairs: tuple[AbstractPair, ...]
    links: tuple[Float[Array, "4 4"], ...]

    @property
    def coordinates(self) -> tuple[str, ...]:
        return tuple(f"{c}_{i + 1}" for i, p in enumerate(self.pairs) for c in p.coordinates)

    @property
    def lengths(self) -> tuple[bool, ...]:
        return tuple(length for p in self.pairs for length in p.lengths)

    @property
    def rest(self) -> tuple[float, ...]:
        return tuple(x for p in self.pairs for x in p.rest)

    @property
    def slots(self) -> tuple[int | None, ...]:
        slots, start = [], 0
        for p in self.pairs:
            slots += [None if s is None else start + s for s in p.slots]
            start += len(p.rest)
        return tuple(slots)

    def phi(self, q: Float[Array, " nq"]) -> Float[Array, "4 4"]:
        parts = self._split(q, [len(p.rest) for p in self.pairs])
        product = self.pairs[0].phi(parts[0])
        for X, pair, part in zip(self.links, self.pairs[1:], parts[1:], strict=True):
            product = frames.compose(product, X, pair.phi(part))
        return product

    def retract(self, q: Float[Array, " nq"], d: Float[Array, " nv"]) -> Float[Array, " nq"]:
        qs = self._split(q, [len(p.rest) for p in self.pairs])
        ds = self._split(d, [len(p.coordinates) for p in self.pairs])
        moved = [p.retract(qi, di) for p, qi, di in zip(self.pairs, qs, ds, strict=True)]
        return jnp.concatenate(moved)

    @staticmethod
    def _split(x: Array, sizes: Sequence[int]) -> list[Array]:
        return jnp.split(x, np.cumsum(sizes)[:-1])


def RevoluteSpherical(
    name: str,
    body_a: str,
    body_b: str,
    frame_a: Frame = None,
    frame_b: Frame = None,
    *,
    length: Number,
    start: Numbers | None = None,
) -> Joint:
    """A massless link, hinged about z of frame k-, with a ball at `length` from it (9.4.29).

    !!! Example

        >>> import mbsjax as mbs
        >>> mbs.RevoluteSpherical("arm", "chassis", "wheel", length=0.2).phi((0, 1.0, 0, 0, 0))[0, 3].item()
        0.2
    """
    link = _reach(length, f"the length of joint {name!r}")
    pair = CompositePair(pairs=(RevolutePair(), SphericalPair()), links=(link,))
    return Joint(name, body_a, body_b, pair, frame_a, frame_b, start=start)


def RevoluteRevolute(
    name: str,
    body_a: str,
    body_b: str,
    frame_a: Frame = None,
    frame_b: Frame = None,
    *,
    length: Number,
    crossed: bool = False,
    start: Numbers | None = None,
) -> Joint:
    """A massless link with a hinge at each end (9.4.30).

    The hinges are parallel, or, `crossed`, the second one lies along the link and meets the first
    at a right angle (9.4.31).

    !!! Example

        >>> import mbsjax as mbs
        >>> mbs.RevoluteRevolute("link", "crank", "slider", length=2.0).phi((0, 0))[0, 3].item()
        2.0
    """
    link = _reach(length, f"the length of joint {name!r}")
    link = frames.compose(link, jnp.asarray(_ACROSS)) if crossed else link
    pair = CompositePair((RevolutePair(), RevolutePair()), (link,))
    return Joint(name, body_a, body_b, pair, frame_a, frame_b, start=start)


def RevoluteCylindrical(
    name: str, body_a: str, body_b: str, frame_a: Frame = None, frame_b: Frame = None, *, start: Numbers | None = None
) -> Joint:
    """A massless piece hinged about z of frame k-, in which a rod along z of frame k+ turns and
    slides; the two axes meet at a right angle (9.4.32).

    !!! Example

        >>> import mbsjax as mbs
        >>> mbs.RevoluteCylindrical("eye", "rod", "slider").phi((0, 0, 0.5))[0, 3].item()
        0.5
    """
    pair = CompositePair((RevolutePair(), CylindricalPair()), (jnp.asarray(_ACROSS),))
    return Joint(name, body_a, body_b, pair, frame_a, frame_b, start=start)


def RevoluteTranslational(
    name: str, body_a: str, body_b: str, frame_a: Frame = None, frame_b: Frame = None, *, start: Numbers | None = None
) -> Joint:
    """As [`mbsjax.RevoluteCylindrical`][], but the rod only slides: x of frame k+ stays parallel to
    z of frame k- (9.4.33).

    !!! Example

        >>> import mbsjax as mbs
        >>> mbs.RevoluteTranslational("block", "rod", "slider").phi((0, 0.5))[0, 3].item()
        0.5
    """
    pair = CompositePair((RevolutePair(), PrismaticPair()), (jnp.asarray(_ACROSS),))
    return Joint(name, body_a, body_b, pair, frame_a, frame_b, start=start)


def Strut(
    name: str, body_a: str, body_b: str, frame_a: Frame = None, frame_b: Frame = None, *, start: Numbers | None = None
) -> Joint:
    """A point of `body_b` on the z axis of frame k-, free to turn about it all ways (9.4.34).

    !!! Example

        >>> import mbsjax as mbs
        >>> mbs.Strut("strut", "chassis", "wheel").phi((0.3, 1.0, 0, 0, 0))[2, 3].item()
        0.3
    """
    pair = CompositePair((PrismaticPair(), SphericalPair()), (jnp.eye(4),))
    return Joint(name, body_a, body_b, pair, frame_a, frame_b, start=start)


def _reach(length: Any, what: str) -> Float[Array, "4 4"]:
    length = positive(length, what)
    return frames.translation(jnp.stack([length, 0 * length, 0 * length]))
