"""Mechanisms with contact joints, simulated exactly and differentiable throughout."""

from typing import TYPE_CHECKING, Any

from . import _xla, frames as frames, plots as plots  # noqa: F401
from ._allocation import Allocation as Allocation, Cost as Cost, allocate as allocate
from ._assembly import Assembly as Assembly, assemble as assemble
from ._body import Body as Body, inertia_matrix as inertia_matrix
from ._cam import (
    Cam as Cam,
    CamExtremes as CamExtremes,
    CamTable as CamTable,
    CamWarning as CamWarning,
    least_base_radius as least_base_radius,
)
from ._campaign import Campaign as Campaign, StoreWarning as StoreWarning, campaign as campaign
from ._capability import Capability as Capability, Moments as Moments, capability as capability
from ._conditions import (
    grashof as grashof,
    hertz_pressure as hertz_pressure,
    increasing as increasing,
    inside as inside,
    pressure_angle as pressure_angle,
    transmission_angle as transmission_angle,
)
from ._descend import Descent as Descent, SequenceWarning as SequenceWarning, descend as descend
from ._distribution.base import AbstractDistribution as AbstractDistribution
from ._distribution.skewed import Beta as Beta, Rayleigh as Rayleigh, Weibull as Weibull
from ._distribution.symmetric import (
    Normal as Normal,
    Triangular as Triangular,
    Truncated as Truncated,
    Uniform as Uniform,
)
from ._drive import constant_speed as constant_speed
from ._dyn import Dyn as Dyn, DynWarning as DynWarning
from ._dyn_read import read_dyn as read_dyn
from ._dyn_write import write_dyn as write_dyn
from ._events import Event as Event, Events as Events
from ._extremes import (
    DesignPoint as DesignPoint,
    WorstCase as WorstCase,
    form as form,
    worst_case as worst_case,
)
from ._file import Model as Model, load as load, loads as loads
from ._file_read import FileError as FileError
from ._file_write import dump as dump, dumps as dumps
from ._force.base import AbstractForce as AbstractForce, Moment as Moment, Reading as Reading
from ._force.laws import (
    AbstractContactLaw as AbstractContactLaw,
    Hertz as Hertz,
    HuntCrossley as HuntCrossley,
    KelvinVoigt as KelvinVoigt,
    LankaraniNikravesh as LankaraniNikravesh,
    equivalent_restitution as equivalent_restitution,
)
from ._force.load import Load as Load
from ._force.spring import Actuator as Actuator, Spring as Spring
from ._gauge import AbstractGauge as AbstractGauge, Angle as Angle, Distance as Distance, Offset as Offset
from ._goal import (
    AbstractGoal as AbstractGoal,
    Match as Match,
    Minimax as Minimax,
    Minimise as Minimise,
    Within as Within,
)
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
from ._joint.contact import (
    Contact as Contact,
    contact_coordinates as contact_coordinates,
    contact_matrix as contact_matrix,
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
from ._modes import EVENTS as EVENTS
from ._outcome import CLASSES as CLASSES
from ._prepare import keep_programs as keep_programs
from ._profile.base import (
    AbstractCurve as AbstractCurve,
    AbstractElement as AbstractElement,
    Place as Place,
)
from ._profile.curves import Curve as Curve, Polynomial as Polynomial, Spline as Spline
from ._profile.deviated import deviated as deviated
from ._profile.drawing import read_dxf as read_dxf
from ._profile.followers import (
    AbstractFollower as AbstractFollower,
    AbstractTip as AbstractTip,
    CamCurve as CamCurve,
    FlatFace as FlatFace,
    Knife as Knife,
    Oscillating as Oscillating,
    Roller as Roller,
    Translating as Translating,
)
from ._profile.geneva import Geneva as Geneva, geneva as geneva
from ._profile.involute import (
    Involute as Involute,
    involute_flank as involute_flank,
    involute_gear as involute_gear,
)
from ._profile.laws import (
    SVAJ as SVAJ,
    Dwell as Dwell,
    Fall as Fall,
    Peak as Peak,
    PeakFactors as PeakFactors,
    Programme as Programme,
    Rise as Rise,
    Segment as Segment,
    peak_factors as peak_factors,
)
from ._profile.makers import (
    bore as bore,
    disc as disc,
    eccentric as eccentric,
    from_table as from_table,
    polygon as polygon,
    slot as slot,
)
from ._profile.plain import Arc as Arc, Circle as Circle, Line as Line, Point as Point
from ._profile.profile import Profile as Profile
from ._profile.ratchet import pawl as pawl, ratchet_wheel as ratchet_wheel
from ._profile.shaped import PolynomialLaw as PolynomialLaw, SplineLaw as SplineLaw
from ._reaction import Reaction as Reaction
from ._report import Report as Report, tolerance as tolerance
from ._results import RESULTS as RESULTS
from ._robust import Robust as Robust, robust as robust
from ._sample import (
    Rare as Rare,
    Regression as Regression,
    Sample as Sample,
    importance as importance,
    monte_carlo as monte_carlo,
)
from ._solution import ContactForce as ContactForce, Log as Log, Solution as Solution, Stats as Stats
from ._state import State as State, state as state
from ._statics import (
    Efforts as Efforts,
    Equilibrium as Equilibrium,
    Linearisation as Linearisation,
    equilibrium as equilibrium,
    inverse_dynamics as inverse_dynamics,
    linearise as linearise,
)
from ._study import Study as Study
from ._synthesize import Design as Design, Synthesis as Synthesis, synthesize as synthesize
from ._table import Table as Table
from ._tally import Tally as Tally
from ._task import Task as Task
from ._taylor import (
    FirstOrder as FirstOrder,
    SecondOrder as SecondOrder,
    first_order as first_order,
    second_order as second_order,
)
from ._topology import Topology as Topology, topology as topology
from ._track import ContactTrack as ContactTrack, Track as Track
from ._tradeoff import Front as Front, levels as levels, pareto as pareto
from ._trigger import Trigger as Trigger
from ._viewer import Viewer as Viewer, view as view
from .frames import PlanarFrame as PlanarFrame, at as at


if TYPE_CHECKING:
    from ._simulate import simulate as simulate

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # diffrax, which only simulations need, takes a third of the time to import all this
    if name == "simulate":
        from ._simulate import simulate

        globals()[name] = simulate
        return simulate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), "simulate"})
