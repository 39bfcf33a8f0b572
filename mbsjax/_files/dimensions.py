"""What a number of a model file is: a length, a force and so on, by its key. Needs no JAX."""

from .lines import Path


_LENGTHS = (
    "center", "frame_a", "frame_b", "frame", "cam_at", "follower_at", "x", "y", "radius", "length", "radii", "point_a",
    "point_b", "point", "points", "eccentricity", "width", "mouth", "vertices", "base_radius", "module", "outer_radius",
    "root_radius", "nose_radius", "hub_radius", "center_distance", "pin_radius", "clearance", "lock_radius", "depth",
    "position", "offset", "pivot", "arm", "half_width", "backlash", "offsets",
)  # fmt: skip
_EITHER = ("start", "end", "value", "height", "free_length", "play", "size", "positions", "estimate", "drive")
_OF_KEYS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_LENGTHS, ("length",)),
    **dict.fromkeys(_EITHER, ("length", "angle")),
    **dict.fromkeys(("angle", "pressure_angle", "turn", "theta"), ("angle",)),
    **dict.fromkeys(("preload", "function", "dry"), ("force", "torque")),
    **dict.fromkeys(("velocities", "rest_speed", "stribeck"), ("velocity", "angular velocity")),
    **dict.fromkeys(("t0", "t1", "ts"), ("time",)),
    **dict.fromkeys(("axis", "normal", "ratio", "restitution", "sliding", "exponent", "rtol", "lies"), ("number",)),
    "mass": ("mass",),
    "inertia": ("moment of inertia",),
    "gravity": ("acceleration",),
    "stiffness": ("stiffness", "torsional stiffness"),
    "damping": ("damping", "torsional damping"),
    "force": ("force",),
    "torque": ("torque",),
}


def expected(path: Path) -> tuple[str, ...]:
    """The kinds of quantity that may stand at a place of a file; none where any may.

    !!! Example

        >>> expected(("forces", "spring", "free_length")), expected(("bodies", "crank", "points", "B"))
        (('length', 'angle'), ('length',))
        >>> expected(("simulate", "velocities", "O")), expected(("parameters", "mass"))
        (('velocity', 'angular velocity'), ())
    """
    if len(path) == 0 or path[0] in ("parameters", "tolerances", "limits", "synthesis", "correlation"):
        return ()
    named = path[-2] if len(path) > 1 and path[-2] in ("points", "positions", "velocities", "estimate") else None
    key = "drive" if path[0] == "drive" else named or path[-1]
    return _OF_KEYS.get(key, ())
