# The public names, and where each is found. `__init__.py` reads these lines when the package is imported, and imports a
# module when one of its names is asked for.

from . import frames as frames, plots as plots
from ._dynamics.applied import ForceTrack as ForceTrack
from ._dynamics.equilibrium import Equilibrium as Equilibrium, equilibrium as equilibrium
from ._dynamics.holding import Holding as Holding, holding as holding, holding_limit as holding_limit
from ._dynamics.inverse_dynamics import Efforts as Efforts, inverse_dynamics as inverse_dynamics
from ._dynamics.linearize import Linearization as Linearization, linearize as linearize
from ._dynamics.outcome import CLASSES as CLASSES
from ._dynamics.reaction import Reaction as Reaction
from ._dynamics.rubbing import Rubbing as Rubbing
from ._dynamics.simulate import simulate as simulate
from ._dynamics.solution import ContactForce as ContactForce, Solution as Solution, Stats as Stats
from ._dynamics.state import State as State, state as state
from ._events.kinds import EVENTS as EVENTS
from ._events.log import Event as Event, Events as Events, Log as Log
from ._events.results import RESULTS as RESULTS
from ._events.trigger import Trigger as Trigger
from ._files.cad.dxf import read_dxf as read_dxf
from ._files.cad.dxf_write import write_dxf as write_dxf
from ._files.cad.step import read_step as read_step
from ._files.cad.svg import read_svg as read_svg
from ._files.dyn.content import Dyn as Dyn, DynWarning as DynWarning
from ._files.dyn.read import read_dyn as read_dyn
from ._files.dyn.write import write_dyn as write_dyn
from ._files.errors import FileError as FileError
from ._files.export.mujoco import to_mujoco as to_mujoco
from ._files.export.urdf import to_urdf as to_urdf
from ._files.model import Model as Model, load as load, loads as loads
from ._files.write import dump as dump, dumps as dumps
from ._kinematics.assembly import Assembly as Assembly, assemble as assemble
from ._kinematics.displaced import Displaced as Displaced, at_play as at_play, displaced as displaced
from ._kinematics.drive import constant_speed as constant_speed
from ._kinematics.mobility import (
    Mobility as Mobility,
    Partition as Partition,
    mobility as mobility,
    partition as partition,
)
from ._kinematics.motion import Motion as Motion, kinematics as kinematics
from ._kinematics.track import ContactTrack as ContactTrack, Track as Track
from ._model.body import Body as Body, inertia_matrix as inertia_matrix
from ._model.cam import (
    Cam as Cam,
    CamExtremes as CamExtremes,
    CamTable as CamTable,
    CamWarning as CamWarning,
    least_base_radius as least_base_radius,
)
from ._model.contact_laws import (
    AbstractContactLaw as AbstractContactLaw,
    Hertz as Hertz,
    HuntCrossley as HuntCrossley,
    KelvinVoigt as KelvinVoigt,
    LankaraniNikravesh as LankaraniNikravesh,
    equivalent_restitution as equivalent_restitution,
)
from ._model.force.base import AbstractForce as AbstractForce, Moment as Moment, Reading as Reading
from ._model.force.load import Load as Load
from ._model.force.spring import Actuator as Actuator, Spring as Spring
from ._model.friction import Coulomb as Coulomb, DryTorque as DryTorque, JointFriction as JointFriction
from ._model.gauge import AbstractGauge as AbstractGauge, Angle as Angle, Distance as Distance, Offset as Offset
from ._model.joint.base import (
    AbstractFlatPair as AbstractFlatPair,
    AbstractPair as AbstractPair,
    AbstractPlanarPair as AbstractPlanarPair,
)
from ._model.joint.clearance import Clearance as Clearance
from ._model.joint.composite import (
    RevoluteCylindrical as RevoluteCylindrical,
    RevoluteRevolute as RevoluteRevolute,
    RevoluteSpherical as RevoluteSpherical,
    RevoluteTranslational as RevoluteTranslational,
    Strut as Strut,
)
from ._model.joint.contact import (
    Contact as Contact,
    contact_coordinates as contact_coordinates,
    contact_matrix as contact_matrix,
)
from ._model.joint.fixed import Fixed as Fixed
from ._model.joint.gear import Gear as Gear, RackPinion as RackPinion, Rolling as Rolling
from ._model.joint.joint import Joint as Joint
from ._model.joint.planar import PinSlot as PinSlot, Planar as Planar
from ._model.joint.prismatic import Prismatic as Prismatic
from ._model.joint.revolute import Revolute as Revolute
from ._model.joint.screw import Cylindrical as Cylindrical, Screw as Screw
from ._model.joint.spherical import Free as Free, Spherical as Spherical
from ._model.joint.universal import Universal as Universal
from ._model.loosened import loosened as loosened
from ._model.mechanism import Mechanism as Mechanism
from ._model.play import Play as Play
from ._model.profile.base import (
    AbstractCurve as AbstractCurve,
    AbstractElement as AbstractElement,
    Place as Place,
)
from ._model.profile.curves import Curve as Curve, Polynomial as Polynomial, Spline as Spline
from ._model.profile.deviated import deviated as deviated
from ._model.profile.elements import Arc as Arc, Circle as Circle, Line as Line, Point as Point
from ._model.profile.followers import (
    AbstractFollower as AbstractFollower,
    AbstractTip as AbstractTip,
    CamCurve as CamCurve,
    FlatFace as FlatFace,
    Knife as Knife,
    Oscillating as Oscillating,
    Roller as Roller,
    Translating as Translating,
)
from ._model.profile.free_laws import PolynomialLaw as PolynomialLaw, SplineLaw as SplineLaw
from ._model.profile.geneva import Geneva as Geneva, geneva as geneva
from ._model.profile.involute import (
    Involute as Involute,
    involute_flank as involute_flank,
    involute_gear as involute_gear,
)
from ._model.profile.motion_laws import (
    SVAJ as SVAJ,
    Dwell as Dwell,
    Fall as Fall,
    Peak as Peak,
    PeakFactors as PeakFactors,
    Program as Program,
    Rise as Rise,
    Segment as Segment,
    peak_factors as peak_factors,
)
from ._model.profile.profile import Profile as Profile
from ._model.profile.ratchet import pawl as pawl, ratchet_wheel as ratchet_wheel
from ._model.profile.shapes import (
    bore as bore,
    disc as disc,
    eccentric as eccentric,
    from_table as from_table,
    polygon as polygon,
    slot as slot,
)
from ._model.topology import Topology as Topology, topology as topology
from ._model.units import Units as Units
from ._pictures.table import Table as Table
from ._pictures.viewer.view import Viewer as Viewer, view as view
from ._programs.prepare import keep_programs as keep_programs
from ._programs.slopes import value_and_slopes as value_and_slopes
from ._synthesis.conditions import (
    grashof as grashof,
    hertz_pressure as hertz_pressure,
    increasing as increasing,
    inside as inside,
    pressure_angle as pressure_angle,
    transmission_angle as transmission_angle,
)
from ._synthesis.descend import Descent as Descent, SequenceWarning as SequenceWarning, descend as descend
from ._synthesis.goal import (
    AbstractGoal as AbstractGoal,
    Match as Match,
    Minimax as Minimax,
    Minimize as Minimize,
    Within as Within,
)
from ._synthesis.robust import Robust as Robust, robust as robust
from ._synthesis.synthesize import Design as Design, Synthesis as Synthesis, synthesize as synthesize
from ._synthesis.task import Task as Task
from ._synthesis.tradeoff import Front as Front, levels as levels, pareto as pareto
from ._tolerance.allocation import Allocation as Allocation, allocate as allocate
from ._tolerance.analysis import tolerance as tolerance
from ._tolerance.belief import Belief as Belief
from ._tolerance.campaign import Campaign as Campaign, campaign as campaign
from ._tolerance.capability import Capability as Capability, Moments as Moments, capability as capability
from ._tolerance.cost import Catalogue as Catalogue, Cost as Cost
from ._tolerance.design_points import DesignPoint as DesignPoint, form as form
from ._tolerance.distribution.ball import Ball as Ball
from ._tolerance.distribution.base import AbstractDistribution as AbstractDistribution
from ._tolerance.distribution.skewed import Beta as Beta, Rayleigh as Rayleigh, Weibull as Weibull
from ._tolerance.distribution.symmetric import (
    Normal as Normal,
    Triangular as Triangular,
    Truncated as Truncated,
    Uniform as Uniform,
)
from ._tolerance.distribution.zone import Position as Position, ProfileZone as ProfileZone
from ._tolerance.drawn import WorstSample as WorstSample
from ._tolerance.importance import importance as importance
from ._tolerance.play.loaded import loaded_play as loaded_play
from ._tolerance.play.parts import PlayParts as PlayParts, play_parts as play_parts
from ._tolerance.play.study import play_study as play_study
from ._tolerance.play.worst import WorstPlay as WorstPlay, worst_play as worst_play
from ._tolerance.precision_loss import PrecisionLoss as PrecisionLoss, precision_loss as precision_loss
from ._tolerance.reliability import (
    LimitReliability as LimitReliability,
    Rare as Rare,
    Reliability as Reliability,
    reliability as reliability,
)
from ._tolerance.report import Report as Report
from ._tolerance.sample import Sample as Sample, monte_carlo as monte_carlo
from ._tolerance.sobol import SobolIndices as SobolIndices, sobol_indices as sobol_indices
from ._tolerance.store import StoreError as StoreError, StoreWarning as StoreWarning
from ._tolerance.study import Study as Study
from ._tolerance.summary import Summary as Summary
from ._tolerance.tally import Convergence as Convergence, Regression as Regression, Tally as Tally
from ._tolerance.taylor import (
    FirstOrder as FirstOrder,
    SecondOrder as SecondOrder,
    first_order as first_order,
    second_order as second_order,
)
from ._tolerance.worst_case import WorstCase as WorstCase, worst_case as worst_case
from .frames import PlanarFrame as PlanarFrame, at as at

__version__: str
