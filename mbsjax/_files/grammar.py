"""The grammar of model files, in plain Python: which tables, types and keys there are, and how a key is read.

What types there are, and the keys of each, is kept in `model.schema.json`. It is made from the constructors in
`words.py` (`make schema`), so that files can be checked, and their schema printed, without JAX.
"""

import functools
import importlib.resources
import json
from typing import Any, NamedTuple


TABLES = ("bodies", "joints", "contacts", "gauges", "forces", "drive", "kinematics", "simulate", "equilibrium")
_STUDY = ("study", "tolerances", "correlation", "lots", "measures", "limits", "units", "synthesis")
KEYS = ("title", "gravity", "planar", "parameters", *TABLES, *_STUDY)
KINEMATICS = ("t0", "t1", "outputs", "ts", "estimate", "max_steps", "max_events")
SIMULATE = (
    "t1", "outputs", "ts", "positions", "velocities", "estimate", "solver", "rtol", "atol", "rest_speed", "impacts",
    "restitution", "max_steps", "max_events", "triggers",
)  # fmt: skip
EQUILIBRIUM = ("estimate", "fixed", "free", "t", "max_steps")
# and the keys of their tables; the forces of a prescribed motion are those of [kinematics]
ANALYSES = {"kinematics": KINEMATICS, "simulate": SIMULATE, "equilibrium": EQUILIBRIUM, "inverse": KINEMATICS}
STUDY = ("of",)
SYNTHESIS = ("of", "variables", "goals", "conditions", "angles", "exact", "starts", "seed", "draw")
CHOICES = {"impacts": ("together", "in turn"), "restitution": ("newton", "poisson")}  # of [simulate]
SOLVERS = {"tsit5": "Tsit5", "dopri8": "Dopri8", "kvaerno5": "Kvaerno5"}  # as diffrax calls them
GOALS = ("match", "minimax", "minimize")
GOAL, CONDITION = ("type", "measure", "target", "weight"), ("measure", "lower", "upper", "scale")
TRIGGER = ("function", "stop")

RENAMED = {"minimise": "minimize", "programme": "program"}  # keys and types, the old name first

# how a key is read, unless it is a number, a row of them, or a formula: by its name, of any constructor
TEXTS = (
    "body_a", "body_b", "body", "axis_body", "profile_a", "profile_b", "hold", "moves", "acts", "fixed_in", "kind",
    "guide", "rule", "mmc", "feature",
)  # fmt: skip
PARTS = {"follower": "follower", "tip": "tip", "element": "element"}  # a table of that group
LISTS = {"elements": "element", "program": "segment"}  # an array of such tables
FRAMES = ("frame_a", "frame_b", "frame", "cam_at", "follower_at")
POINTS = {
    "frame_a": "body_a",
    "frame_b": "body_b",
    "point_a": "body_a",
    "point_b": "body_b",
    "point": "body",
}  # of which
UNITS = ("length", "mass", "time", "angle", "force")  # what [units] may say of all numbers
WHOLES = {"teeth": 400, "slots": 100}  # and the largest
WHOLE_ROWS = ("orders", "hollow", "elements_a", "elements_b")
# what may be a function: of which variables
VARIABLES = {
    ("spring", "stiffness"): ("x",),
    ("spring", "damping"): ("v",),
    ("actuator", "function"): ("x", "v", "t", *(f"s{i + 1}" for i in range(9))),
    ("actuator", "switches"): ("x", "v", "t"),
}
# a text that names something else of the file: what it is
REFERENCES = {
    "body_a": "body", "body_b": "body", "body": "body", "axis_body": "body", "profile_a": "profile",
    "profile_b": "profile", "moves": "coordinate", "on": "coordinate or gauge", "mmc": "dimension with a tolerance",
}  # fmt: skip
SHAPES = {"point": ((2,), (3,)), "frame": ((2,), (3,), (4, 4)), "number": ((),)}
# keys of which the shape is known: it is one of these
SHAPED = {
    **dict.fromkeys(FRAMES, "frame"), "gravity": "point", "center": "point", "mass": "number", "radius": "number",
    "length": "number", "ratio": "number", "lead": "number", "restitution": "number", "base_radius": "number",
    "free_length": "number", "preload": "number",
}  # fmt: skip


class Key(NamedTuple):
    """What is known of a key of a table: whether it is needed, and its schema."""

    needed: bool
    schema: dict[str, Any]

    @property
    def flag(self) -> bool:
        return self.schema.get("type") == "boolean"

    @property
    def choices(self) -> list[str]:
        return self.schema.get("enum", [])


def kept_schema() -> str:
    """The schema of model files, as it was made when the package was."""
    return (importlib.resources.files("mbsjax._files") / "model.schema.json").read_text(encoding="utf-8")


@functools.cache
def _parts() -> dict[str, Any]:
    return json.loads(kept_schema())["$defs"]


@functools.cache
def types(group: str) -> dict[str, dict[str, Any]]:
    """The types of a group, and the schema of each; those of a group without types have one name."""
    if group == "friction":
        return {kind: _parts()[f"{kind}_friction"] for kind in ("contact", "joint", "dry")}
    found = _parts()[group.replace(" ", "_")]
    return (
        {each["properties"]["type"]["const"]: each for each in found["oneOf"]} if "oneOf" in found else {group: found}
    )


@functools.cache
def keys(group: str, kind: str) -> dict[str, Key]:
    """The keys of a type, besides `type`."""
    found = types(group)[kind]
    needed = found.get("required", [])
    return {key: Key(key in needed, each) for key, each in found["properties"].items() if key != "type"}
