"""The schema of model files, made from the arguments of constructors: for editors that check and complete them, and for
`grammar.py`, by which files are read. `make schema` makes it again."""

import inspect
import json
import math
import pathlib
import typing
from typing import Any

from .._model.cam import Cam
from .._model.play import RULES
from .._model.profile.followers import Knife, Translating
from .._model.profile.motion_laws import Dwell, Program
from .grammar import (
    ANALYSES,
    CHOICES,
    CONDITION,
    EQUILIBRIUM,
    FRAMES,
    GOAL,
    GOALS,
    KINEMATICS,
    LISTS,
    PARTS,
    SIMULATE,
    SOLVERS,
    STUDY,
    SYNTHESIS,
    TEXTS,
    TRIGGER,
    WHOLE_ROWS,
)
from .words import WORDS, arguments


_NUMBER = {"$ref": "#/$defs/number"}
_NUMBERS = {"$ref": "#/$defs/numbers"}
_TEXT = {"type": "string"}
_SINGLE = ("body", "contact", "friction", "play", "cam")  # tables without a type


def schema() -> dict[str, Any]:
    """The JSON Schema of model files: every table, every type, every key.

    !!! Example

        >>> sorted(schema()["$defs"]["joint"]["oneOf"][0]["required"])
        ['body_a', 'body_b', 'type']
    """
    groups = {name.replace(" ", "_"): _group(name) for name in WORDS if name not in _SINGLE}
    groups |= {name: _table(name, name) for name in ("body", "contact", "play", "cam")}
    groups |= {f"{kind}_friction": _table("friction", kind) for kind in WORDS["friction"]}
    pair = {"type": "array", "items": _NUMBERS, "minItems": 2, "maxItems": 2}
    whole, flag, every = {"type": "integer", "minimum": 0}, {"type": "boolean"}, _each(_NUMBERS)
    aims: dict[str, Any] = {"type": {"enum": list(GOALS)}, "measure": _TEXT, "weight": _NUMBER, "scale": _NUMBER}
    aims |= {key: _NUMBERS for key in ("target", "lower", "upper")}
    goal, condition = (_closed({key: aims[key] for key in keys}) for keys in (GOAL, CONDITION))
    trigger = _closed(dict(zip(TRIGGER, (_TEXT, flag))))
    kinds: dict[str, Any] = {
        "t0": _NUMBER, "t1": _NUMBER, "ts": _NUMBERS, "outputs": whole, "t": _NUMBER, "fixed": every,
        "free": {"type": "array", "items": _TEXT},
        "estimate": every, "positions": every,
        "velocities": every, "max_steps": whole, "max_events": whole, "solver": {"enum": list(SOLVERS)},
        "impacts": {"enum": list(CHOICES["impacts"])}, "restitution": {"enum": list(CHOICES["restitution"])},
        "rtol": _NUMBER, "atol": _NUMBER, "rest_speed": _NUMBER, "triggers": _each(trigger),
        "of": {"enum": list(ANALYSES)}, "variables": _each(pair), "goals": _each(goal),
        "conditions": _each(condition), "angles": {"type": "array", "items": _TEXT}, "exact": flag,
        "starts": whole, "seed": whole, "draw": _each(pair),
    }  # fmt: skip
    pick = lambda names: _closed({name: kinds[name] for name in names})
    tolerance = {"anyOf": [_NUMBERS, {"$ref": "#/$defs/distribution"}]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "mbsjax model file",
        **_closed({
            "title": _TEXT, "gravity": _NUMBERS, "planar": flag, "parameters": every,
            "bodies": _each({"$ref": "#/$defs/body"}), "joints": _each({"$ref": "#/$defs/joint"}),
            "contacts": _each({"$ref": "#/$defs/contact"}), "gauges": _each({"$ref": "#/$defs/gauge"}),
            "forces": _each({"$ref": "#/$defs/force"}), "drive": _each(_NUMBER), "kinematics": pick(KINEMATICS),
            "simulate": pick(SIMULATE), "equilibrium": pick(EQUILIBRIUM), "study": pick(STUDY),
            "tolerances": _each(tolerance),
            "correlation": _each(_each(_NUMBER)), "lots": _each({"type": "array", "items": _TEXT}),
            "measures": _each(_TEXT), "limits": _each(pair), "units": _each(_TEXT), "synthesis": pick(SYNTHESIS),
        }),
        "$defs": {
            "number": {"type": ["number", "string"], "description": "a number, or a formula of the parameters"},
            "numbers": {
                "anyOf": [_NUMBER, {"type": "array", "items": _NUMBERS}],
                "description": "a number, a formula, or an array of these",
            },
            "frame": {
                "anyOf": [
                    _NUMBERS,
                    _closed({"x": _NUMBER, "y": _NUMBER, "angle": _NUMBER}),
                    {**_closed({"point": _TEXT, "axis": _NUMBERS}), "required": ["point"]},
                ]
            },
            **groups,
        },
    }  # fmt: skip


def _each(kind: dict) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": kind}


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _group(group: str) -> dict[str, Any]:
    return {"oneOf": [_table(group, kind, True) for kind in WORDS[group]]}


def _table(group: str, kind: str, typed: bool = False) -> dict[str, Any]:
    given = arguments(group, kind)
    properties = {key: _kind(kind, key, p) for key, p in given.items()}
    needed = [key for key, p in given.items() if p.default is inspect.Parameter.empty]
    if typed:
        properties, needed = {"type": {"const": kind}, **properties}, ["type", *needed]
    found = _closed(properties)
    if group == "joint":
        found["coordinates"] = _coordinates(kind, needed)
    return found | ({"required": needed} if needed else {})


def _coordinates(kind: str, needed: list[str]) -> list[str]:
    """The coordinates of a joint of this type: what formulas and drives call them."""
    every = arguments("joint", kind)
    numbers: dict[str, Any] = {key: 1.0 for key in needed if key not in ("type", "body_a", "body_b")}
    if "cam" in every:
        numbers["cam"] = Cam(Program([Dwell(2 * math.pi)]), Translating(Knife()), 1.0)  # any does
    more = {**numbers, **({"radii": (1.0, 2.0)} if "radii" in every else {})}
    return list(WORDS["joint"][kind]("J", "a", "b", **more).pair.coordinates)


def _kind(kind: str, key: str, parameter: inspect.Parameter) -> dict[str, Any]:
    if typing.get_origin(parameter.annotation) is typing.Literal:
        return {"enum": list(typing.get_args(parameter.annotation))}
    if key == "cam" or (key in TEXTS and key != "rule"):
        return _TEXT
    if key in PARTS:
        return {"$ref": f"#/$defs/{PARTS[key]}"}
    if key in LISTS:
        return {"type": "array", "items": {"$ref": f"#/$defs/{LISTS[key]}"}}
    if key in FRAMES:
        return {"$ref": "#/$defs/frame"}
    if key == "profiles":
        return _each({"$ref": "#/$defs/profile"})
    if key == "points" and kind == "body":
        return _each(_NUMBERS)
    if key == "law":
        return {"anyOf": [_TEXT, {"$ref": f"#/$defs/{'contact' if kind in ('contact', 'play') else 'motion'}_law"}]}
    if key == "play":
        return {"anyOf": [_NUMBER, {"$ref": "#/$defs/play"}]}
    if key == "rule":
        return {"enum": list(RULES)}
    if key == "friction" and kind in ("contact", "play"):
        return {"anyOf": [_NUMBER, {"$ref": "#/$defs/contact_friction"}]}
    if key == "friction":
        return {"anyOf": [{"$ref": f"#/$defs/{which}_friction"} for which in ("joint", "dry")]}
    if key == "on":
        return {"anyOf": [_TEXT, {"type": "object"}]}
    if key == "smooth":
        return {"anyOf": [{"type": "boolean"}, {"type": "array", "items": {"type": "boolean"}}]}
    if key == "names":
        return {"type": "array", "items": _TEXT}
    if parameter.annotation is bool:
        return {"type": "boolean"}
    if key in WHOLE_ROWS:
        return {"type": "array", "items": {"type": "integer"}}
    if parameter.annotation is int:
        return {"type": "integer"}
    return _NUMBERS


if __name__ == "__main__":
    pathlib.Path(__file__).with_name("model.schema.json").write_text(json.dumps(schema(), indent=2) + "\n")
