"""Simulation: the canonical equations integrated through contacts that form, slide, break and hit."""

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .._events.results import RESULTS
from .._events.trigger import Trigger
from .._kinematics.drive import problem as make_problem
from .._kinematics.run import output_times
from .._model.loosened import loosened
from .._model.mechanism import Mechanism
from .._numerics.stepper import Chord
from .._programs.called import beforehand
from .._programs.custom_types import Laws, Number, Numbers
from .._programs.precision import Threshold, is_concrete, number, numpy_of, value, visible, whole
from .._programs.purpose import asked_for_values_only
from .._programs.trees import frozen, lasting
from .build import plant as make_plant
from .impact import TOUCHING
from .loop import rows_for, run
from .loop_state import Options
from .outputs import outputs
from .plant import Plant
from .record import Recording
from .replay import as_recorded, replayed
from .solution import Solution
from .start import Begin, Start, begin_shapes, check_state, start
from .state import State, active_contacts, check_size, state


_OUTPUTS = 201  # where none are asked for
_FINEST = Threshold(0.0, 1e-5)  # no tolerance of a step is finer: rounding would refuse all steps
_REST = Threshold(2e-5, 1e-3)  # of the fastest impact so far: what parts more slowly stays, unless a speed is given


def simulate(
    mech: Mechanism,
    state0: State | Callable[[], State] | None,
    t1: Number,
    *,
    ts: Numbers | None = None,
    drive: Laws | None = None,
    triggers: Sequence[Any] = (),
    solver: diffrax.AbstractSolver | None = None,
    rtol: Number = 1e-9,
    atol: Number = 1e-9,
    rest_speed: Number | None = None,
    impacts: str = "together",
    restitution: str = "newton",
    painleve: str = "stop",
    max_steps: int = 4096,
    max_events: int = 64,
    progress_meter: diffrax.AbstractProgressMeter | None = None,
    throw: bool = True,
) -> Solution:
    """How a mechanism moves under its forces, through contacts that form, slide from element to element, break and hit.

    Every change is located as an event: a contact closes where its gap does, with an impulse and the contact's
    restitution; it opens where its force is zero; friction sticks and slips. Between events the canonical equations
    (thesis 3.4) are integrated by a solver of diffrax, positions and momenta put back on the constraints each step.

    **Arguments:**

    - `mech`: the mechanism, with masses, forces and gravity. The solution is that of [`mbsjax.loosened`][]`(mech)`.
    - `state0`: where it begins, from [`mbsjax.state`][], or a function that makes it while programs are compiled;
        None for the assembled mechanism at rest.
    - `t1`: when it ends (it begins at `state0.t`); `ts`: the output times, increasing, by default 201 of them.
    - `drive`: coordinates or gauges whose motion is prescribed, by name: a function of time, or a number to hold it;
        `triggers`: events of your own, [`mbsjax.Trigger`][].
    - `solver`: any solver of diffrax that estimates its error; `diffrax.Tsit5()` by default. `diffrax.Dopri8()` for
        tight tolerances, `diffrax.Kvaerno5()` for stiff compliant contacts.
    - `rtol`, `atol`: tolerances of a step, relative, and absolute in parts of the mechanism's size; for velocities,
        of that size in the time covered; 1e-5 at least in single precision.
    - `rest_speed`: bodies that part more slowly than this after an impact stay together (3.6.1-4); by default, more
        slowly than 2e-5 of the fastest impact so far, in single precision 1e-3. Where they would go on bouncing, the
        infinitely many impacts that are left are summed up: the contact closes when their series ends.
    - `impacts`: bodies that touch when one of them is hit take part in that impact, `"together"`: each contact keeps
        Newton's law, and three balls in a row are hit as one. `"in turn"`, each impact is over before it is handed on,
        as if there were a hair's breadth between them: the last ball of the row flies off. Real bodies are in between.
    - `restitution`: of speeds, `"newton"`, or of impulses, `"poisson"`: they differ where friction turns bodies about.
    - `painleve`: where a contact can neither slide on nor part, `"stop"`, or stop its sliding by an `"impact"`.
    - `max_steps`, `max_events`: how many to allow; `progress_meter`: one of diffrax's, for long runs.
    - `throw`: whether to raise when it does not reach its end; else look at `.result`, as under `jit` or `vmap`.

    **Returns:** an [`mbsjax.Solution`][]. It can be differentiated in forward and reverse mode, through all events,
    with respect to any number of the mechanism, the drivers, the state, and the times; event times too.

    !!! Example

        A ball that is dropped from a height of 1 and bounces back without loss.

        >>> import mbsjax as mbs
        >>> floor = mbs.Profile.chain([mbs.Line((1.0, 0.0), (-1.0, 0.0))], closed=False)  # solid on the left
        >>> bodies = [mbs.Body("ground", profiles={"floor": floor}),
        ...           mbs.Body("ball", mass=1.0, profiles={"rim": mbs.disc(0.1)})]
        >>> joints = [mbs.Prismatic("height", "ground", "ball", axis=(0.0, 1.0), start=1.1),
        ...           mbs.Contact("bounce", "ground.floor", "ball.rim", restitution=1.0)]
        >>> ball = mbs.Mechanism(bodies, joints, gravity=(0.0, -9.81))
        >>> sol = mbs.simulate(ball, None, 1.0)
        >>> sol.events.list(mech := ball)[0].kind, round(float(sol["height"].q[-1]), 7)
        ('impact', 1.0538938)
    """
    mech, drive = loosened(mech), dict(drive or {})
    plant = _laid_out(mech, drive, triggers, restitution)
    t1, (rtol, atol) = number(t1, "the end of a simulation"), _attainable(rtol=rtol, atol=atol)
    options = _options(plant, solver, rtol, atol, max_steps, max_events, progress_meter, painleve)
    limits = _limits(rtol, atol, rest_speed, impacts)
    _prepare(mech, plant, (state0, ts), t1, limits, options)
    state0 = _first(mech, state0, drive, throw)
    ts, begin = _output_times(ts, state0.t, t1), start(plant, active_contacts(mech), state0, t1)
    if throw and (seen := visible(mech, plant, state0, begin)) is not None:
        check_state(*seen)
    found: Any = _simulate(plant, state0.t, begin, ts, t1, limits, options)
    sol = Solution(mech, plant, ts, *found)  # pyright: ignore
    return _checked(sol) if throw else sol


def _first(mech: Mechanism, state0: Any, drive: Any, throw: bool) -> State:
    if not isinstance(state0, State):
        state0 = state(mech, drive=drive, throw=throw) if state0 is None else state0()
    check_size(mech, state0, "make it with mbsjax.state of this mechanism: joints with play are free in it")
    return state0


def _laid_out(mech: Mechanism, drive: Any, triggers: Any, restitution: str) -> Plant:
    if restitution not in ("newton", "poisson"):
        raise ValueError(f'`restitution` must be "newton" or "poisson", got {restitution!r}')
    plant = make_plant(mech, make_problem(mech, drive), _checked_triggers(triggers))
    return dataclasses.replace(plant, poisson=restitution == "poisson")


def _checked_triggers(triggers: Sequence[Any]) -> tuple[Trigger, ...]:
    for trigger in triggers:
        if not isinstance(trigger, Trigger):
            raise ValueError(f"a trigger of a simulation must be a Trigger, got {trigger!r}")
    return tuple(triggers)


def _output_times(ts: Any, t0: Array, t1: Array) -> Array:
    if ts is None:
        ts = numpy_of(t0, t1).linspace(t0, t1, _OUTPUTS)
    ts = output_times(ts)
    times, begin, end = value(ts), value(t0), value(t1)
    if np.any(np.diff(times) <= 0) or times[0] < begin or times[-1] > end:
        raise ValueError(f"the output times must increase, from {begin:.6g} to {end:.6g}")
    return ts


def _options(
    plant: Plant, solver: Any, rtol: Any, atol: Any, max_steps: int, max_events: int, meter: Any, painleve: str
) -> Options:
    if painleve not in ("stop", "impact"):
        raise ValueError(f'`painleve` must be "stop" or "impact", got {painleve!r}')
    chosen: Any = _with_tolerances(solver or diffrax.Tsit5(), rtol, atol)
    watching = (
        bool(plant.laws)
        or plant.friction is not None
        or bool(plant.triggers)
        or any(f.n_switches for f in plant.forces)
    )
    steps, events = whole(max_steps, "`max_steps`", 1), whole(max_events, "`max_events`", 0)
    return Options(chosen, steps, events, watching, meter, painleve == "impact")


def _attainable(**tolerances: Any) -> list[Any]:
    """Tolerances that steps can keep in the precision in use: finer ones are raised."""
    found = {name: number(x, f"`{name}`", least=0.0) for name, x in tolerances.items()}
    given = [x if isinstance(x, float) else found[name] for name, x in tolerances.items()]
    return [max(x, _FINEST()) if isinstance(x, float) else jnp.maximum(x, _FINEST()) for x in given]


def _limits(rtol: Any, atol: Any, rest_speed: Any, impacts: str) -> Array:
    """The numbers that `run` asks for."""
    share = _REST() if rest_speed is None else 0.0
    given = (("rtol", rtol), ("atol", atol), ("rest_speed", 0.0 if rest_speed is None else rest_speed))
    if impacts not in ("together", "in turn"):
        raise ValueError(f'`impacts` must be "together" or "in turn", got {impacts!r}')
    near = TOUCHING() if impacts == "together" else 0.0
    limits = [*(number(x, f"`{name}`", least=0.0) for name, x in given), share, near]
    return jnp.asarray(numpy_of(*limits).stack(limits))


def _with_tolerances(solver: Any, rtol: Any, atol: Any) -> Any:
    """An implicit solver whose root finder takes the tolerances of the steps, as `diffrax.diffeqsolve` has it, and does
    not give up early."""
    if not isinstance(solver, diffrax.AbstractImplicitSolver):
        return solver
    theirs, mine = diffrax.Kvaerno5().root_finder, diffrax.PIDController(rtol=rtol, atol=atol)
    finder: Any = solver.root_finder
    names = [n for n in ("rtol", "atol", "norm") if getattr(finder, n) is getattr(theirs, n)]
    if names:
        where = lambda f: [getattr(f, n) for n in names]
        finder = eqx.tree_at(where, finder, [getattr(mine, n) for n in names])
    finder = Chord(finder) if isinstance(finder, diffrax.VeryChord) else finder  # pyright: ignore
    return eqx.tree_at(lambda s: s.root_finder, solver, finder)


def _simulate(plant: Plant, t0: Array, begin: Start, ts: Array, t1: Array, limits: Array, options: Options):
    if asked_for_values_only() and 2 * rows_for(ts.shape[0], options) <= options.max_steps:
        return _value(plant, t0, begin, ts, t1, limits, options=options)
    return _simulated(plant, t0, begin, ts, t1, limits, options)


@eqx.filter_custom_jvp
def _value(plant: Plant, t0: Array, begin: Start, ts: Array, t1: Array, limits: Array, *, options: Options):
    """`_simulated`, without the steps that derivatives alone need; with derivatives, that."""
    recording = _recorded(plant, t0, begin.at, t1, limits, options, ts)
    return outputs(plant, as_recorded(recording), recording, ts, begin, options)


@_value.def_jvp
def _value_jvp(primals, tangents, *, options: Options):
    again = lambda plant, *rest: _simulated(plant, *rest, options=options)
    return eqx.filter_jvp(again, primals, tangents)


def _simulated(plant: Plant, t0: Array, begin: Start, ts: Array, t1: Array, limits: Array, options: Options):
    recording = _recorded(*frozen((plant, t0, begin.at, t1, limits)), options)
    found = replayed(plant, t0, begin.at.q, begin.at.p, recording=recording, options=options)
    return outputs(plant, found, recording, ts, frozen(begin), options)


def _prepare(mech: Mechanism, plant: Plant, given: Any, t1: Array, limits: Array, options: Options) -> None:
    """Programs that a simulation is going to ask for are made from now on, beside what is done until then."""
    if not is_concrete(plant, given, t1, limits) or asked_for_values_only():
        return
    shape = lambda *sizes: jax.ShapeDtypeStruct(sizes, t1.dtype)
    state0 = given[0]
    if not isinstance(state0, State):
        state0 = eqx.filter_eval_shape(State, shape(len(mech.start)), shape(len(mech.coordinates)), shape())
    task = plant, state0.t, begin_shapes(plant, state0.q), t1, limits, options
    if _recorded.is_known(*task):
        return

    def others() -> None:
        begin, recording = start.shapes(plant, active_contacts(mech), state0, t1), _recorded.shapes(*task)
        times = shape(*((_OUTPUTS,) if given[1] is None else np.shape(given[1])))
        outputs.shapes(plant, as_recorded.shapes(recording), recording, times, begin, options)

    beforehand(lambda: _recorded.shapes(*task), others)


@lasting
def _recorded(
    plant: Plant, t: Array, begin: Begin, t1: Array, limits: Array, options: Options, ts: Array | None = None
) -> Recording:
    return run(plant, (t, begin.q, begin.p, begin.mode, begin.units), t1, limits, options, ts)


def _checked(sol: Solution) -> Solution:
    """Warns where a contact was lost, and raises where the simulation did not reach its end: at once, or, where nobody
    can look, once its numbers are known."""
    if (seen := visible(sol)) is None:
        q = sol.result.error_if(sol.q, sol.result != RESULTS.successful)
        return eqx.tree_at(lambda s: s.q, sol, q)
    _look_at(*seen)
    return sol


def _look_at(sol: Solution) -> None:
    for event in sol.events.list(sol.mech, sol.triggers):
        if event.kind == "deleted":
            warnings.warn(
                f"contact {event.contact!r} was deleted at t = {event.t:.9g}: one body ran off the end of the "
                "other's profile, and nothing holds it from there on. Extend the profile, or let it end in a point "
                "(`ends=True`)",
                stacklevel=4,
            )
    if bool(sol.result != RESULTS.successful):
        where = ""
        if bool(sol.result == RESULTS.painleve) and (paradox := sol.paradox) is not None:
            where = f" of {paradox[0]!r} (the determinant is {paradox[1]:.3g})"
        raise RuntimeError(f"At t = {float(sol.stopped_at):.9g}{where}: {RESULTS[sol.result]}")
