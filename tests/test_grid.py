"""Every analysis, of every kind of mechanism, in every use: it gives the right numbers, or refuses in one sentence.

A program serves several cells. `batched` runs five variants side by side: they are the referee of a single, eager run,
of what is read by name, and, by differences of fourth order, of all derivatives.
"""

import functools
import itertools
import pathlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

import mbsjax as mbs
from tests.kinds import KINDS, Kind


TS = jnp.array([0.1, 0.3])
H = 4e-3
VARIANTS = 1.0 + H * jnp.arange(-2, 3)
SIZES = {"max_steps": 64, "max_events": 6}


class Analysis(NamedTuple):
    """What it makes of a kind of mechanism and its number, raising where that fails or not, and one number that it
    tells."""

    run: Callable[[Kind, Any, bool], Any]
    number: Callable[[Kind, Any], Any]


def simulate(kind: Kind, p: Any, throw: bool) -> mbs.Solution:
    mech = kind.mech(p)
    begin = mbs.state(mech, kind.positions, kind.velocities, drive=kind.moves, estimate=kind.estimate, throw=throw)
    return mbs.simulate(mech, begin, TS[-1], ts=TS, drive=kind.moves, triggers=kind.triggers(p), throw=throw, **SIZES)


def begin(kind: Kind, p: Any, throw: bool) -> mbs.State:
    mech, first = kind.mech(p), held(kind)
    return mbs.state(mech, {first: 0.5}, {first: 2.0}, estimate=kind.estimate, throw=throw)


def held(kind: Kind) -> str:
    """The freedom that is given."""
    return next(iter(kind.drive))


def driven(analysis: Callable, **options: Any) -> Callable:
    return lambda kind, p, throw: analysis(kind.mech(p), kind.drive, TS, estimate=kind.estimate, throw=throw, **options)


def small_motions(kind: Kind, p: Any, throw: bool) -> mbs.Linearization:
    mech = kind.mech(p)
    return mbs.linearize(mech, mbs.equilibrium(mech, kind.estimate, throw=throw).state)


@functools.cache
def studied(name: str, what: Callable) -> Any:
    model = lambda p: ANALYSES["kinematics"].run(KINDS[name], p["p"], False)
    told = lambda motion: motion[KINDS[name].names[0]].q[-1]
    if what is mbs.Study:
        return mbs.Study(model, {"p": 1.0}, {"p": 0.1}, {"end": told})
    return mbs.Task(model, {"p": 1.0}, {"p": (0.5, 1.5)}, {"end": mbs.Match(told, 1.0)})


def of_study(kind: Kind, p: Any, throw: bool) -> Any:
    return studied(named(kind), mbs.Study)(jnp.reshape(p, 1)).values[0]


def of_task(kind: Kind, p: Any, throw: bool) -> Any:
    return studied(named(kind), mbs.Task)(jnp.reshape(p, 1)).y[0]


@pytest.mark.parametrize("what", [mbs.Study, mbs.Task])
def test_studies_and_tasks_are_made_outside(what):
    make = jax.jit(lambda p: studied.__wrapped__("tree", what)(p).values)
    with pytest.raises(ValueError, match="look at values: make them outside jit, vmap and grad, call them within"):
        make(jnp.ones(1))


def named(kind: Kind) -> str:
    return next(name for name, other in KINDS.items() if other is kind)


def last(kind: Kind, run: Any) -> Any:
    return run[kind.names[0]].q[-1]


def plain(kind: Kind, found: Any) -> Any:
    return found


ANALYSES = {
    "kinematics": Analysis(driven(mbs.kinematics, max_events=4), last),
    "simulate": Analysis(simulate, last),
    "state": Analysis(begin, lambda kind, state: jnp.sum(state.q) + jnp.sum(state.v)),
    "assemble": Analysis(
        lambda kind, p, throw: mbs.assemble(kind.mech(p), kind.estimate, fixed={held(kind): 0.5}, throw=throw),
        lambda kind, found: found[kind.names[0]],
    ),
    "equilibrium": Analysis(
        lambda kind, p, throw: mbs.equilibrium(kind.mech(p), kind.estimate, drive=kind.moves, throw=throw),
        lambda kind, found: found[kind.names[0]],
    ),
    "inverse_dynamics": Analysis(
        driven(mbs.inverse_dynamics, max_events=4), lambda kind, efforts: jnp.sum(efforts.drive[-1])
    ),
    "linearize": Analysis(small_motions, lambda kind, found: jnp.trace(found.A @ found.A)),
    "study": Analysis(of_study, plain),
    "task": Analysis(of_task, plain),
}
USES = {
    "eager": "eager",
    "vmap": "`jit`, `vmap`",
    "jvp": "`jvp`",
    "grad": "`grad`, `vmap` of `grad`",
    "by name": "by name in a batch",
}
ALL, FEW = tuple(USES), ("jvp", "by name")
# what `make test` goes through; the others cost much, and run with the long tests
SHORT = {
    "kinematics": {"loop": ALL, "spatial": FEW, "cam": ("by name",)},
    "simulate": {"tree": ALL, "forces": ALL, "ball": ("by name",), "friction": ("by name",)},
    "state": {"loop": ALL},
    "assemble": {"loop": ALL, "spatial": FEW},
    "equilibrium": {"forces": ALL},
    "inverse_dynamics": {"loop": ALL, "forces": ("by name",), "cam": ("by name",)},
    "linearize": {"tree": ("eager", "vmap", "jvp"), "friction": ("eager",)},
    "study": {"loop": ALL},
    "task": {"loop": ALL},
}


def cells() -> Iterator[Any]:
    """Every analysis, of every kind, in every use that it has: only some have names to read."""
    for analysis, kind, use in itertools.product(ANALYSES, KINDS, USES):
        if use != "by name" or analysis in READ:
            long = () if use in SHORT[analysis].get(kind, ()) else (pytest.mark.long,)
            yield pytest.param(analysis, kind, use, marks=long, id=f"{analysis}-{kind}-{use}")


def table() -> list[str]:
    """The grid as the documentation has it."""
    heads = ("analysis", *USES.values())
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for analysis in ANALYSES:
        told = dict.fromkeys(USES, "yes") | ({} if analysis in READ else {"by name": "-"})
        if analysis == "linearize":
            told |= {"vmap": "refused", "grad": "yes, one by one"}
        lines.append(f"| `{analysis}` | {' | '.join(told.values())} |")
    return lines


def test_documentation_has_the_grid():
    page = (pathlib.Path(__file__).parents[1] / "docs" / "grid.md").read_text(encoding="utf-8")
    for line in [*table(), *(f"- **{name}**: {kind.tells}" for name, kind in KINDS.items())]:
        assert line in page, line


@functools.cache
def batched(analysis: str, kind: str) -> Any:
    return jax.jit(jax.vmap(lambda p: ANALYSES[analysis].run(KINDS[kind], p, False)))(VARIANTS)


@functools.cache
def single(analysis: str, kind: str) -> Any:
    return ANALYSES[analysis].run(KINDS[kind], jnp.asarray(1.0), True)


def number(analysis: str, kind: str, throw: bool, p: Any) -> Any:
    return ANALYSES[analysis].number(KINDS[kind], ANALYSES[analysis].run(KINDS[kind], p, throw))


def slope(analysis: str, kind: str) -> Any:
    """By differences of fourth order between the variants."""
    if analysis == "linearize":  # which has no batches
        y = [number(analysis, kind, True, p) for p in VARIANTS]
    else:
        y = jax.vmap(lambda run: ANALYSES[analysis].number(KINDS[kind], run))(batched(analysis, kind))
    return (y[0] - 8 * y[1] + 8 * y[3] - y[4]) / (12 * H)


def four_bar_square() -> Any:
    """How stiff the loop is for its inertia, where it rests: from its closed form, in the angle of the crank."""

    def angles(a: Any) -> Any:
        B = jnp.stack([jnp.cos(a), jnp.sin(a)])
        x, y = B - jnp.array([3.0, 0.0])
        far = jnp.hypot(x, y)
        d = jnp.arctan2(y, x) - jnp.arccos((far**2 + 2.0**2 - 3.0**2) / (4 * far))
        C = jnp.stack([3 + 2 * jnp.cos(d), 2 * jnp.sin(d)])
        return jnp.stack([a, jnp.arctan2(*(C - B)[::-1]), d])

    def energy(a: Any) -> Any:
        d = angles(a)[2]
        span = jnp.hypot(3 + jnp.cos(d) - 0.5 * jnp.cos(a), jnp.sin(d) - 0.5 * jnp.sin(a))
        return 9.81 * jnp.sin(a) + 10 * (span - 2) ** 2

    slope = jax.grad(energy)
    rest = scipy.optimize.minimize_scalar(energy, bracket=(0.5, 0.6)).x
    rest = rest - slope(rest) / jax.grad(slope)(rest)
    rates = jax.jacfwd(angles)(rest)
    return jax.grad(slope)(rest) / (1.0 + 0.1 * jnp.sum(rates**2))


# for each freedom, what damps it and how stiff it is
SMALL_MOTIONS = {
    "tree": lambda: [(0.0, 9.81 * 0.5 / (0.1 + 0.25))],
    "loop": lambda: [(0.0, four_bar_square())],
    "spatial": lambda: [(0.0, 0.981 * np.cos(0.5) ** 2 / (0.2 + 0.21 * np.cos(0.5) ** 2))],
    "forces": lambda: [(0.0, 0.0), (1.0 + 0.5, 40.0 + 2.0)],
    "cam": lambda: [(0.0, -30.0 * 1.5 * (0.3 + 0.3**2 / 1.2) / 0.1)],  # it stands on its highest point
    "ball": lambda: [(0.0, 0.0), (0.0, 0.0)],  # it is not held on the floor
    "friction": lambda: [(0.0, 40.0)],  # which is left out
}
READ = {
    "kinematics": lambda run, kind: [run[n] for n in kind.names] + poses(run, kind),
    "simulate": lambda run, kind: [run[n] for n in kind.names] + poses(run, kind) + [run.energy, run.momentum()],
    "assemble": lambda found, kind: [found[n] for n in kind.names] + [found.point(kind.mech(1.0).links[1])],
    "equilibrium": lambda found, kind: [found[n] for n in kind.names] + [found.state],
    "inverse_dynamics": lambda found, kind: [found[held(kind)], found.reaction(held(kind))],
}


def poses(run: Any, kind: Kind) -> list[Any]:
    body = kind.mech(1.0).links[-1]
    at = run.at(1)
    return [run.point(body, "E" if kind.mech(1.0).body(body).points else None), run.orientation(body), run.pose(body),
            *(at[n] for n in kind.names), at.point(body), at.pose(body)]  # fmt: skip


def close(found: Any, expected: Any, tol: float) -> None:
    first, second = (jax.tree_util.tree_leaves(x) for x in (found, expected))
    assert len(first) == len(second) > 0
    for a, b in zip(first, second):
        np.testing.assert_allclose(a, b, rtol=tol, atol=tol)


@pytest.mark.parametrize(("analysis", "kind", "use"), list(cells()))
def test_cell(analysis, kind, use):
    value = functools.partial(number, analysis, kind)  # of whether to raise, and of what it depends on
    if analysis in ("study", "task"):
        studied(kind, {"study": mbs.Study, "task": mbs.Task}[analysis])  # before anything is traced
    if analysis == "linearize" and use == "vmap":
        for refused in (jax.vmap, jax.jit, lambda f: jax.vmap(jax.grad(f))):
            with pytest.raises(ValueError, match="`linearize` looks at values.*cannot be called under jit or vmap"):
                refused(functools.partial(value, True))(VARIANTS[:1] if refused is not jax.jit else 1.0)
    elif analysis == "linearize" and use == "eager":
        found = single(analysis, kind)
        characteristic = functools.reduce(np.polymul, [[1.0, *x] for x in SMALL_MOTIONS[kind]()])
        np.testing.assert_allclose(np.poly(found.A), characteristic, rtol=1e-8, atol=1e-8)
    elif use == "eager":
        assert np.isfinite(ANALYSES[analysis].number(KINDS[kind], single(analysis, kind)))
    elif use == "vmap":
        lane = jax.tree_util.tree_map(lambda x: x[2], batched(analysis, kind))
        mine, alone = (ANALYSES[analysis].number(KINDS[kind], x) for x in (lane, single(analysis, kind)))
        np.testing.assert_allclose(mine, alone, atol=1e-12)
    elif use == "jvp":
        found = jax.jvp(functools.partial(value, True), (1.0,), (1.0,))[1]  # as users write it
        np.testing.assert_allclose(found, slope(analysis, kind), rtol=1e-6, atol=1e-6)
    elif use == "grad":
        if analysis == "linearize":
            found = jax.grad(functools.partial(value, True))(1.0)
        else:
            found = jax.jit(jax.vmap(jax.grad(functools.partial(value, False))))(VARIANTS[1:3])[1]
        np.testing.assert_allclose(found, slope(analysis, kind), rtol=1e-6, atol=1e-6)
    else:
        run, read = batched(analysis, kind), functools.partial(READ[analysis], kind=KINDS[kind])
        close(jax.tree_util.tree_map(lambda x: x[3], read(run)), read(run.lane(3)), 1e-12)
        twice = jax.tree_util.tree_map(lambda x: jnp.stack([x, x]), run)
        assert twice.batch == (2, 5)
        close(jax.tree_util.tree_map(lambda x: x[1, 3], read(twice)), read(run.lane(3)), 1e-12)
