"""The clearance of a joint with play: a pin in its bore or slot, an end of a block in its guide, a ball in its cavity,
a tooth between two others. It is a contact whose gap follows from the pose of one frame in another."""

import equinox as eqx
from jaxtyping import Array, Float

from ..._programs.custom_types import Matrix4
from ..._programs.modules import AbstractModule
from ..._programs.reprs import by_fields
from ...frames import PlanarFrame
from ..contact_laws import AbstractContactLaw
from ..friction import Coulomb
from ..play import Play
from .joint import check_name


ELEMENTS = {  # what touches: on the first body, by its sides, and on the second
    "bore": (("bore",), "pin"),
    "slot": (("lower wall", "upper wall"), "pin"),
    "guide": (("lower wall", "upper wall"), "corner"),
    "cavity": (("cavity",), "ball"),
    "backlash": (("rear flank", "front flank"), "tooth"),
}


class Clearance(AbstractModule):
    """A contact between the two sides of a play; [`mbsjax.loosened`][] makes them.

    Its gap is the size of the play, less how far frame_b lies from frame_a: in the plane in a `"bore"`, along y in a
    `"slot"`, in space in a `"cavity"`; of a `"guide"` along y too, for the end of a block whose half height is the
    play's radius; of a `"backlash"` the angle, times the radius. It has no places that it could leave, and is read
    and told of as a [`mbsjax.Contact`][].

    !!! Example

        >>> import mbsjax as mbs
        >>> arm = mbs.Mechanism([mbs.Body("arm")], [mbs.Revolute("O", "ground", "arm", play=0.01)])
        >>> mbs.loosened(arm).contacts[0].kind
        'bore'
    """

    name: str = eqx.field(static=True)
    kind: str = eqx.field(static=True)
    body_a: str = eqx.field(static=True)
    body_b: str = eqx.field(static=True)
    frame_a: PlanarFrame | Matrix4
    frame_b: PlanarFrame | Matrix4
    play: Play
    active: bool = eqx.field(static=True, default=False)
    hold: str = eqx.field(static=True, default="push")
    moves: None = eqx.field(static=True, default=None)

    def __check_init__(self):
        check_name(self.name, "a clearance")

    @property
    def planar(self) -> bool:
        """Whether it was described within the plane."""
        flat = isinstance(self.frame_a, PlanarFrame) and isinstance(self.frame_b, PlanarFrame)
        return flat and self.kind != "cavity"

    @property
    def restitution(self) -> Float[Array, ""]:
        return self.play.restitution

    @property
    def law(self) -> AbstractContactLaw | None:
        return self.play.law

    @property
    def friction(self) -> Coulomb | None:
        return self.play.friction

    def moving(self, coordinate: None) -> "Clearance":
        """The same clearance: it moves no coordinate of its own."""
        return self

    __repr__ = by_fields
