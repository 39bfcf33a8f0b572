"""Tolerance studies that several tests share."""

import json
import pathlib

import jax.numpy as jnp
import numpy as np

import mbsjax as mbs


def case(name: str) -> dict:
    return json.loads((pathlib.Path(__file__).parent / "cases" / f"{name}.json").read_text())


def clutch(p: dict) -> mbs.Mechanism:
    """Chase's one-way clutch: a roller between the flat of the hub and the bore of the ring."""
    flat = mbs.Profile.chain([mbs.Line((20.0, p["a"]), (-20.0, p["a"]))], closed=False)
    return mbs.Mechanism(
        [
            mbs.Body("ground", profiles={"hub": flat, "ring": mbs.bore(p["e"])}),
            mbs.Body("slide"),
            mbs.Body("roller", profiles={"rim": mbs.disc(p["c"])}),
        ],
        [
            mbs.Prismatic("b", "ground", "slide", start=5.0),
            mbs.Prismatic("h", "slide", "roller", axis=(0.0, 1.0), start=39.0),
            mbs.Contact("on hub", "ground.hub", "roller.rim", active=True),
            mbs.Contact("in ring", "ground.ring", "roller.rim", active=True),
        ],
    )


def clutch_study() -> mbs.Study:
    data = case("tol_clutch_chase")
    names = {"a": "a_hub_half_height", "c": "c_roller_radius", "e": "e_ring_radius"}
    dims = {k: data["dims"][v] for k, v in names.items()}
    limits = np.deg2rad([data["spec"]["phi_LSL_deg"], data["spec"]["phi_USL_deg"]])
    return mbs.Study(
        lambda p: mbs.assemble(clutch(p), throw=False),
        {k: d["nominal"] for k, d in dims.items()},
        {k: d["tol"] for k, d in dims.items()},
        {"phi": lambda found: jnp.arctan2(found["b"], found["h"]), "b": lambda found: found["b"]},
        limits={"phi": tuple(limits)},
    )


def four_bar(p: dict) -> mbs.Mechanism:
    """The function generator of Zhang and Du; lengths R1 to R4 from crank to ground."""
    return mbs.Mechanism(
        [mbs.Body("crank"), mbs.Body("coupler"), mbs.Body("rocker")],
        [
            mbs.Revolute("A", "ground", "crank"),
            mbs.Revolute("B", "crank", "coupler", (p["R1"], 0.0), start=-1.5),
            mbs.Revolute("C", "coupler", "rocker", (p["R2"], 0.0), (p["R3"], 0.0)),
            mbs.Revolute("D", "ground", "rocker", (p["R4"], 0.0), start=1.3),
        ],
    )


def generator_study(places: int, limit: float | None = None) -> mbs.Study:
    """Its error over the interval, in degrees."""
    data = case("tol_fourbar_function_generator")
    angles = np.deg2rad(np.linspace(95.5, 215.5, places))
    wanted = 76 + 60 * np.sin(0.75 * (angles - np.deg2rad(95.5)))

    def error(motion: mbs.Motion):
        return jnp.rad2deg(motion["D"].q) - wanted

    return mbs.Study(
        lambda p: mbs.kinematics(four_bar(p), {"A": lambda t: t}, angles, throw=False),
        {f"R{i}": value for i, value in enumerate(data["R"].values(), 1)},
        {f"R{i}": mbs.Normal(sigma=s) for i, s in enumerate(data["sigma"], 1)},
        {"error": error},
        limits={} if limit is None else {"error": (-limit, limit)},
        along={"error": np.rad2deg(angles)},
    )
