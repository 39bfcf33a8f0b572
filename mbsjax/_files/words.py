"""The words of model files: every `type`, and the constructor behind it. Its arguments are the keys:
whoever changes them makes the schema again (`make schema`), by which files are read and checked."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._model.body import Body
from .._model.cam import Cam
from .._model.contact_laws import Hertz, HuntCrossley, KelvinVoigt, LankaraniNikravesh
from .._model.force.load import Load
from .._model.force.spring import Actuator, Spring
from .._model.friction import Coulomb, DryTorque, JointFriction
from .._model.gauge import Angle, Distance, Offset
from .._model.joint.composite import (
    RevoluteCylindrical,
    RevoluteRevolute,
    RevoluteSpherical,
    RevoluteTranslational,
    Strut,
)
from .._model.joint.contact import Contact
from .._model.joint.fixed import Fixed
from .._model.joint.gear import Gear, RackPinion, Rolling
from .._model.joint.joint import Joint
from .._model.joint.planar import PinSlot, Planar
from .._model.joint.prismatic import Prismatic
from .._model.joint.revolute import Revolute
from .._model.joint.screw import Cylindrical, Screw
from .._model.joint.spherical import Free, Spherical
from .._model.joint.universal import Universal
from .._model.play import Play
from .._model.profile.curves import Polynomial, Spline
from .._model.profile.deviated import Deviated
from .._model.profile.elements import Arc, Circle, Line, Point
from .._model.profile.followers import CamCurve, FlatFace, Knife, Oscillating, Roller, Translating
from .._model.profile.free_laws import PolynomialLaw, SplineLaw
from .._model.profile.geneva import geneva
from .._model.profile.involute import Involute, involute_flank, involute_gear
from .._model.profile.motion_laws import Dwell, Fall, Program, Rise
from .._model.profile.profile import Profile
from .._model.profile.ratchet import pawl, ratchet_wheel
from .._model.profile.shapes import bore, disc, eccentric, from_table, polygon, slot
from .._programs.precision import is_concrete
from .._tolerance.distribution.skewed import Beta, Rayleigh, Weibull
from .._tolerance.distribution.symmetric import Normal, Triangular, Truncated, Uniform
from .._tolerance.distribution.zone import Position, ProfileZone


def _point(position: Any, normal: Any = (0.0, -1.0), turn: Any = np.pi, start: Any = None) -> Point:
    """A corner; instead of the middle of its normals, `start` gives the direction of travel at its beginning."""
    found = Point(position, normal, turn)
    return found if start is None else eqx.tree_at(lambda p: p.start, found, jnp.asarray(start, float))


@functools.wraps(Offset)
def _offset(*given: Any, **more: Any) -> Offset:
    """An offset whose axis, where it is a unit vector, is taken to the last digit."""
    found, axis = Offset(*given, **more), more["axis"]
    if is_concrete(axis) and abs(float(np.sum(np.square(axis))) - 1) < 1e-15:
        found = eqx.tree_at(lambda o: o.axis, found, jnp.asarray(axis, float))
    return found


def _dry(dry: Any, static: Any = None, *, stribeck: Any = None, viscous: Any = None) -> DryTorque:
    """A given torque or force, by a key of its own: `sliding` is a coefficient."""
    return DryTorque(dry, static, stribeck=stribeck, viscous=viscous)


def _cam(program: Any, follower: Any, base_radius: Any) -> Cam:
    return Cam(Program(program), follower, base_radius)


@functools.wraps(_cam)
def _cam_profile(*given: Any, **more: Any) -> Profile:
    return _cam(*given, **more).profile()


def _cam_follower(follower: Any = None, cam: Any = None) -> Profile:
    if (follower is None) == (cam is None):
        raise ValueError("'cam' or 'follower', one of them, says what the follower is")
    return Profile.chain([(cam.follower if follower is None else follower).element()], closed=False)


def _cam_joint(tell: str, *others: str) -> Callable:
    """A joint that a cam tells, its `shaft` or its `guide`; `others` are keys of it alone."""

    def make(name: str, body_a: str, body_b: str, *, cam: Any, **more: Any) -> Joint:
        return getattr(cam, tell)(name, body_a, body_b, **more)

    *first, _ = inspect.signature(make).parameters.values()
    keys = ("cam_at", "follower_at", "start", "friction", "play", *others)
    optional = [inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=None) for key in keys]
    signed: Any = make
    signed.__signature__ = inspect.Signature([*first, *optional])
    return signed


def _geneva(part: str) -> Callable:
    @functools.wraps(geneva)
    def make(*given: Any, **more: Any) -> Profile:
        return getattr(geneva(*given, **more), part)

    return make


WORDS: dict[str, dict[str, Callable]] = {
    "body": {"body": Body},
    "joint": {
        "revolute": Revolute,
        "prismatic": Prismatic,
        "cylindrical": Cylindrical,
        "screw": Screw,
        "spherical": Spherical,
        "universal": Universal,
        "planar": Planar,
        "free": Free,
        "fixed": Fixed,
        "pin_slot": PinSlot,
        "gear": Gear,
        "rolling": Rolling,
        "rack_pinion": RackPinion,
        "revolute_revolute": RevoluteRevolute,
        "revolute_spherical": RevoluteSpherical,
        "revolute_cylindrical": RevoluteCylindrical,
        "revolute_translational": RevoluteTranslational,
        "strut": Strut,
        "cam_shaft": _cam_joint("shaft"),
        "cam_guide": _cam_joint("guide", "length"),
    },
    "contact": {"contact": Contact},
    "gauge": {"distance": Distance, "offset": _offset, "angle": Angle},
    "force": {"spring": Spring, "actuator": Actuator, "load": Load},
    "profile": {
        "chain": Profile.chain,
        "disc": disc,
        "bore": bore,
        "eccentric": eccentric,
        "slot": slot,
        "polygon": polygon,
        "table": from_table,
        "cam": _cam_profile,
        "cam_follower": _cam_follower,
        "involute_gear": involute_gear,
        "involute_flank": involute_flank,
        "ratchet_wheel": ratchet_wheel,
        "pawl": pawl,
        "geneva_wheel": _geneva("wheel"),
        "geneva_lock": _geneva("lock"),
        "geneva_pin": _geneva("pin"),
    },
    "element": {
        "point": _point,
        "line": Line,
        "arc": Arc,
        "arc_between": Arc.between,
        "circle": Circle,
        "polynomial": Polynomial,
        "spline": Spline,
        "spline_through": Spline.through,
        "involute": Involute,
        "cam_curve": CamCurve,
        "deviated": Deviated,
    },
    "cam": {"cam": _cam},
    "follower": {"translating": Translating, "oscillating": Oscillating},
    "tip": {"roller": Roller, "knife": Knife, "flat_face": FlatFace},
    "segment": {"rise": Rise, "fall": Fall, "dwell": Dwell},
    "motion law": {"spline": SplineLaw, "polynomial": PolynomialLaw},
    "contact law": {
        "hertz": Hertz,
        "kelvin_voigt": KelvinVoigt,
        "hunt_crossley": HuntCrossley,
        "lankarani_nikravesh": LankaraniNikravesh,
    },
    "friction": {"contact": Coulomb, "joint": JointFriction, "dry": _dry},
    "play": {"play": Play},
    "distribution": {
        "normal": Normal,
        "uniform": Uniform,
        "triangular": Triangular,
        "truncated": Truncated,
        "beta": Beta,
        "rayleigh": Rayleigh,
        "weibull": Weibull,
        "position": Position,
        "profile_zone": ProfileZone,
    },
}


def arguments(group: str, kind: str) -> dict[str, inspect.Parameter]:
    """The arguments of a constructor that a file may give."""
    return {k: p for k, p in inspect.signature(WORDS[group][kind]).parameters.items() if k != "name"}
