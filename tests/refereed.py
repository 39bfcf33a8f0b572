"""Analyses of a drawn mechanism beside those of its referee in absolute coordinates: how far they disagree."""

from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax.numpy as jnp
import numpy as np
import scipy.optimize

import mbsjax as mbs
from tests.absolute import Absolute, Pose
from tests.absolute_answers import (
    Wrench,
    at_rest,
    eigenvalues,
    pose_of,
    reading,
    stiffness,
    turned_apart,
    wrench,
)
from tests.drawn_mechanisms import Numbers, Structure, candidates, independent, mechanism, referee


TS = np.array([0.0, 0.2, 0.45, 0.7])
# what an answer may be off, in parts of its size: of motions, by what integrations leave of their tolerances
ALLOWED = {
    "motion": 1e-7, "velocities": 1e-6, "accelerations": 1e-6, "energy": 1e-8, "reactions": 1e-6, "file": 0.0,
    "loops": 1e-10, "held": 1e-10, "balance": 1e-8, "holding forces": 1e-8, "stability": 0.5, "found": 0.5,
    "reactions at rest": 1e-8, "eigenvalues": 1e-6,
    "driven motion": 1e-9, "driving forces": 1e-8, "reactions of a driven motion": 1e-8,
}  # fmt: skip
Errors = dict[str, float]


class Case(NamedTuple):
    """A structure with numbers, as mechanism and as referee."""

    structure: Structure
    numbers: Numbers
    mech: mbs.Mechanism
    model: Absolute


def case(structure: Structure, numbers: Numbers) -> Case:
    return Case(structure, numbers, mechanism(structure, numbers), referee(structure, numbers))


def worse(errors: Errors, name: str, error: Any) -> None:
    """Keeps the largest; what is no number is infinitely wrong."""
    error = float(np.max(error, initial=0.0))
    errors[name] = max(errors.get(name, 0.0), error if np.isfinite(error) else np.inf)


def apart(found: Any, wanted: Any, size: float = 0.0) -> float:
    """The largest difference, in parts of the largest number, or of a size that is larger."""
    found, wanted = np.asarray(found, float), np.asarray(wanted, float)
    return float(np.abs(found - wanted).max(initial=0.0) / max(np.abs(wanted).max(initial=0.0), size, 1e-300))


# motion ---------------------------------------------------------------------------------------------------------------


def thrown(of: Case, seed: int) -> np.ndarray:
    """Random velocities that the constraints allow."""
    Z = of.model.free_moves(of.model.at(of.model.start))
    y = Z @ np.random.default_rng([seed, 2]).normal(size=Z.shape[1])
    return y / max(np.linalg.norm(y), 1.0)


def first_state(of: Case, y: np.ndarray) -> mbs.State:
    v, now = np.zeros(len(of.mech.coordinates)), of.model.at(of.model.start, of.model.spread(y))
    for joint in of.model.parts.joints:
        told = reading(of.model, joint, of.model.start, now, y, 0 * y)
        v[list(of.mech.freedoms(joint.name))] = told.v
    return mbs.State(of.mech.start, jnp.asarray(v), jnp.zeros(()))


def simulated(mech: mbs.Mechanism, state: mbs.State, tol: float = 1e-11) -> mbs.Solution:
    return mbs.simulate(
        mech, state, TS[-1], ts=TS, rtol=tol, atol=tol, solver=diffrax.Dopri8(), max_steps=512, throw=False
    )


def motion_errors(of: Case, seed: int, joint: str | None = None, again: bool = True) -> Errors:
    """A motion from a random state: positions, rates, energies; what a joint transmits; and the same from a file."""
    y = thrown(of, seed)
    state = first_state(of, y)
    sol = simulated(of.mech, state)
    errors: Errors = {}
    worse(errors, "found", float(sol.result != mbs.RESULTS.successful))
    reaction = None if joint is None else sol.reaction(joint)
    compare_motion(errors, of, y, sol, reaction, joint)
    if again:
        read = mbs.loads(mbs.dumps(of.mech)).mechanism()
        twin = simulated(read, state)
        worse(errors, "file", np.abs(np.asarray(twin.q) - np.asarray(sol.q)))
    return errors


def compare_motion(errors: Errors, of: Case, y: np.ndarray, sol: Any, reaction: Any, joint: str | None) -> None:
    """A solution beside the referee's motion from the velocities y."""
    model = of.model
    worse(errors, "loops", np.asarray(sol.residual))
    begun = sum(model.energies(model.start, model.at(model.start), y))
    run = model.motion(y, TS)
    for i, (pose, y, lost) in enumerate(run):
        a, lam, now = model.accelerated(pose, y)
        compare_coordinates(errors, of, ("motion", "velocities", "accelerations"), sol, i, pose, now, y, a)
        energies = model.energies(pose, now, y)
        size = max(abs(begun), abs(energies[1]), 1.0)
        worse(errors, "energy", apart([sol.kinetic[i], sol.potential[i]], energies, size))
        worse(errors, "energy", abs(float(sol.kinetic[i] + sol.potential[i]) + lost - begun) / size)
        if joint is not None:
            compare_wrench(errors, "reactions", of, joint, reaction, i, pose, now, y, lam, {})


def compare_coordinates(
    errors: Errors, of: Case, names: tuple[str, str, str], run: Any, i: int, pose: Pose, now: Any, y: Any, a: Any
) -> None:
    """The coordinates of all joints, and their rates, at one time."""
    mech, rates = of.mech, [[], []]
    for joint in of.model.parts.joints:
        told = reading(of.model, joint, pose, now, y, a)
        q = np.asarray(run.q)[i, list(mech.stored(joint.name))]
        wanted = told.q
        if joint.kind in ("spherical", "free"):
            worse(errors, names[0], turned_apart(q[:4], wanted[:4]))
            q, wanted = q[4:], wanted[4:]
        worse(errors, names[0], np.abs(q - wanted))
        for rate, x, mine in zip(rates, (run.v, run.a), told[1:]):
            rate.append((np.asarray(x)[i, list(mech.freedoms(joint.name))], mine))
    for name, rate in zip(names[1:], rates):
        worse(errors, name, apart(*map(np.concatenate, zip(*rate)), size=1.0))


def compare_wrench(
    errors: Errors, name: str, of: Case, joint: str, told: Any, i: int | None, pose: Pose, now: Any, y: Any, *rest: Any
) -> None:
    """What a joint transmits, in ground."""
    j = next(j for j in of.model.parts.joints if j.name == joint)
    wanted: Wrench = wrench(of.model, j, pose, now, y, *rest)
    force, torque = (np.asarray(x) if i is None else np.asarray(x)[i] for x in (told.force_ground, told.torque_ground))
    flat = force.shape[-1] == 2
    size = float(np.sum(of.model.parts.mass)) * 9.81
    worse(errors, name, apart(force, wanted.force[:2] if flat else wanted.force, size))
    worse(errors, name, apart(torque, wanted.torque[2:] if flat else wanted.torque, size))


# rest -----------------------------------------------------------------------------------------------------------------


def held_names(of: Case, seed: int, share: float) -> list[str]:
    """A part of the freedoms to hold, from none to all."""
    names = independent(of.model, candidates(of.structure), np.random.default_rng([seed, 3]))
    return names[: round(share * len(names))]


def can_be_held(of: Case, names: list[str]) -> bool:
    """Whether these freedoms are independent with other numbers too."""
    order = independent(of.model, names, np.random.default_rng(0))
    return len(order) == len(names)


def held_values(of: Case, names: list[str], seed: int) -> np.ndarray:
    """Where to hold them: a little off the start, as far as that can be assembled."""
    which = [of.model.names.index(name) for name in names]
    first = of.model.at(of.model.start).x[which]
    shift = np.random.default_rng([seed, 4]).uniform(-0.2, 0.2, len(names))
    for part in (1.0, 0.5, 0.25):
        if of.model.closed(of.model.start, which, first + part * shift) is not None:
            return first + part * shift
    return first


def rest_errors(
    of: Case, names: list[str], values: np.ndarray, drive: bool, joint: str | None = None, small_motions: bool = False
) -> Errors:
    """A position of rest with some coordinates held: closed, balanced, stable; what holds it; small motions."""
    how = {"drive" if drive else "fixed": dict(zip(names, values.tolist()))}
    rest = mbs.equilibrium(of.mech, throw=False, **how)
    reaction = None if joint is None else rest.reaction(joint)
    errors = compare_rest(of, names, values, rest, reaction, joint)
    if small_motions and errors["found"] == 0 and len(names) < of.structure.freedom:
        found = np.asarray(mbs.linearize(rest).eigenvalues)
        model, pose, which = at_found(of, names, rest)
        K = stiffness(model, pose, which, at_rest(model, pose, model.at(pose), which))
        worse(errors, "eigenvalues", eigenvalues_apart(found, eigenvalues(model, pose, which, K)))
    return errors


def at_found(of: Case, names: list[str], rest: Any) -> tuple[Absolute, Pose, list[int]]:
    """The referee where a rest was found; angles are counted from there."""
    q = np.asarray(rest.q)
    model = referee(of.structure, of.numbers | {"start": q})
    pose = pose_of(model, {j.name: q[list(of.mech.stored(j.name))] for j in model.parts.joints})
    return model, pose, [model.names.index(name) for name in names]


def compare_rest(of: Case, names: list[str], values: np.ndarray, rest: Any, reaction: Any, joint: str | None) -> Errors:
    errors: Errors = {}
    worse(errors, "found", float(rest.result != mbs.RESULTS.successful))
    if errors["found"]:
        return errors
    model, pose, which = at_found(of, names, rest)
    now = model.at(pose)
    forces = at_rest(model, pose, now, which)
    worse(errors, "loops", np.abs(now.residual))
    worse(errors, "held", np.abs(now.x[which] - values))
    worse(errors, "balance", forces.left)
    size = float(np.abs(model.forces(pose, now, np.zeros(len(model.columns)))).max())
    efforts = [float(rest.effort(name)) for name in names]
    worse(errors, "holding forces", apart(efforts, forces.held, size))
    K = stiffness(model, pose, which, forces)
    w = np.linalg.eigvalsh((K + K.T) / 2) if K.size else np.ones(1)
    unclear = abs(w[0]) < 1e-6 * np.abs(w).max()
    worse(errors, "stability", 0.0 if unclear else float(not (bool(rest.stable) and w[0] > 0)))
    if joint is not None:
        held = dict(zip(which, forces.held))
        compare_wrench(
            errors, "reactions at rest", of, joint, reaction, None, pose, now, np.zeros(len(model.columns)), forces.lam,
            held,
        )  # fmt: skip
    return errors


def eigenvalues_apart(found: np.ndarray, wanted: np.ndarray) -> float:
    """The largest distance between two sets, paired as well as possible, in parts of the largest number."""
    if len(found) != len(wanted):
        return np.inf
    far = np.abs(found[:, None] - wanted[None])
    return float(far[scipy.optimize.linear_sum_assignment(far)].max(initial=0.0) / np.abs(wanted).max(initial=1.0))


# driven motion --------------------------------------------------------------------------------------------------------


class Swing(eqx.Module):
    """A law: from its start, a sine."""

    start: Any
    amplitude: Any
    speed: Any

    def __call__(self, t: Any) -> Any:
        return self.start + self.amplitude * jnp.sin(self.speed * t)

    def rates(self, t: float) -> tuple[float, float, float]:
        """Its value and its first two rates, in NumPy."""
        a, w = self.amplitude, self.speed
        return self.start + a * np.sin(w * t), a * w * np.cos(w * t), -a * w**2 * np.sin(w * t)


def swings(of: Case, names: list[str], seed: int) -> list[Swing]:
    rng = np.random.default_rng([seed, 5])
    first = of.model.at(of.model.start).x
    draw = lambda name: (first[of.model.names.index(name)], rng.uniform(0.05, 0.2), rng.uniform(1, 5))
    return [Swing(*(np.asarray(x, float) for x in draw(name))) for name in names]


def driven_errors(of: Case, names: list[str], laws: list[Swing], joint: str | None = None) -> Errors:
    """The forces of a motion of which all is driven."""
    drive: dict[str, Callable] = dict(zip(names, laws))
    told = mbs.inverse_dynamics(of.mech, drive, jnp.asarray(TS), throw=False)
    reaction = None if joint is None else told.reaction(joint)
    return compare_driven(of, names, laws, told, reaction, joint)


def compare_driven(
    of: Case, names: list[str], laws: list[Swing], told: Any, reaction: Any, joint: str | None
) -> Errors:
    errors: Errors = {}
    model, which = of.model, [of.model.names.index(name) for name in names]
    poses = _followed(model, which, laws)
    if poses is None:  # the referee locks too, or is too near to it
        return errors
    worse(errors, "found", float(told.result != mbs.RESULTS.successful))
    worse(errors, "loops", np.asarray(told.motion.residual))
    for i, (t, pose) in enumerate(zip(TS, poses)):
        rates = np.array([law.rates(t) for law in laws]).reshape(-1, 3)
        now = model.at(pose)
        rows = np.concatenate([now.C, now.G[which]])
        y = np.linalg.solve(rows, np.concatenate([np.zeros(len(now.C)), rates[:, 1]]))
        a, lam, now = model.accelerated(pose, y, (which, rates[:, 2]))
        kinds = ("driven motion",) * 3
        compare_coordinates(errors, of, kinds, told.motion, i, pose, now, y, a)
        efforts = lam[len(now.C) :]
        size = float(np.abs(model.forces(pose, now, y)).max())
        worse(errors, "driving forces", apart([told.effort(name)[i] for name in names], efforts, size))
        if joint is not None:
            kind = "reactions of a driven motion"
            held = dict(zip(which, efforts))
            compare_wrench(errors, kind, of, joint, reaction, i, pose, now, y, lam[: len(now.C)], held)
    return errors


def _followed(model: Absolute, which: list[int], laws: list[Swing]) -> list[Pose] | None:
    """The poses at all times, in small steps; None where they come near a singular one."""
    pose, found, every = model.start, [], np.linspace(0.0, TS[-1], 29)
    for t in sorted({*every, *TS}):
        pose = model.closed(pose, which, np.array([law.rates(t)[0] for law in laws]))
        if pose is None:
            return None
        now = model.at(pose)
        rows = np.concatenate([now.C, now.G[which]])
        if np.linalg.svd(rows / np.linalg.norm(rows, axis=1, keepdims=True), compute_uv=False)[-1] < 3e-3:
            return None
        if t in TS:
            found.append(pose)
    return found
