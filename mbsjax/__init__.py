"""Mechanisms with contact joints, simulated exactly and differentiable throughout."""

from . import frames as frames
from ._assembly import Assembly as Assembly, assemble as assemble
from ._body import Body as Body
from ._drive import constant_speed as constant_speed
from ._gauge import AbstractGauge as AbstractGauge, Angle as Angle, Distance as Distance, Offset as Offset
from ._joint.base import (
    AbstractFlatPair as AbstractFlatPair,
    AbstractPair as AbstractPair,
    AbstractPlanarPair as AbstractPlanarPair,
)
from ._joint.composite import (
    RevoluteCylindrical as RevoluteCylindrical,
    RevoluteRevolute as RevoluteRevolute,
    RevoluteSpherical as RevoluteSpherical,
    RevoluteTranslational as RevoluteTranslational,
    Strut as Strut,
)
from ._joint.fixed import Fixed as Fixed
from ._joint.gear import Gear as Gear, RackPinion as RackPinion, Rolling as Rolling
from ._joint.joint import Joint as Joint
from ._joint.planar import PinSlot as PinSlot, Planar as Planar
from ._joint.prismatic import Prismatic as Prismatic
from ._joint.revolute import Revolute as Revolute
from ._joint.screw import Cylindrical as Cylindrical, Screw as Screw
from ._joint.spherical import Free as Free, Spherical as Spherical
from ._joint.universal import Universal as Universal
from ._kinematics import Motion as Motion, kinematics as kinematics
from ._mechanism import Mechanism as Mechanism
from ._mobility import Mobility as Mobility, Partition as Partition, mobility as mobility, partition as partition
from ._results import RESULTS as RESULTS
from ._topology import Topology as Topology, topology as topology
from ._track import Track as Track
from .frames import PlanarFrame as PlanarFrame, at as at


__version__ = "0.1.0"
