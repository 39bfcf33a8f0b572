"""Every analysis, of every kind of mechanism, in every use: it gives the right numbers, or refuses in one sentence.

A program serves several cells. `batched` runs five variants side by side: they are the referee of a single, eager run,
of what is read by name, and, by differences of fourth order, of all derivatives.
"""

import functools
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbsjax as mbs
from tests.kinds import KINDS, Kind


TS = jnp.array([0.1, 0.3])
H = 4e-3
VARIANTS = 1.0 + H * jnp.arange(-2, 3)
SIZES = {"max_steps": 64, "max_events": 6, "throw": False}


class Analysis(NamedTuple):
    """What it makes of a kind of mechanism and its number, and one number that it tells."""

    run: Callable[[Kind, Any], Any]
    number: Callable[[Kind, Any], Any]


def simulate(kind: Kind, p: Any) -> mbs.Solution:
    mech = kind.mech(p)
    begin = mbs.state(mech, kind.positions, kind.velocities, drive=kind.moves, estimate=kind.estimate, throw=False)
    return mbs.simulate(mech, begin, TS[-1], ts=TS, drive=kind.moves, triggers=kind.triggers(p), **SIZES)


def begin(kind: Kind, p: Any) -> mbs.State:
    mech, first = kind.mech(p), kind.names[1]
    return mbs.state(mech, {first: 0.5}, {first: 2.0}, estimate=kind.estimate, throw=False)


def driven(analysis: Callable, **options: Any) -> Callable:
    return lambda kind, p: analysis(kind.mech(p), kind.drive, TS, estimate=kind.estimate, throw=False, **options)


def small_motions(kind: Kind, p: Any) -> mbs.Linearisation:
    mech = kind.mech(p)
    return mbs.linearise(mech, mbs.equilibrium(mech, kind.estimate, throw=False).state)


@functools.cache
def studied(name: str, what: Callable) -> Any:
    model = lambda p: ANALYSES["kinematics"].run(KINDS[name], p["p"])
    told = lambda motion: motion[KINDS[name].names[0]].q[-1]
    if what is mbs.Study:
        return mbs.Study(model, {"p": 1.0}, {"p": 0.1}, {"end": told})
    return mbs.Task(model, {"p": 1.0}, {"p": (0.5, 1.5)}, {"end": mbs.Match(told, 1.0)})


def of_study(kind: Kind, p: Any) -> Any:
    return studied(named(kind), mbs.Study)(jnp.reshape(p, 1)).values[0]


def of_task(kind: Kind, p: Any) -> Any:
    return studied(named(kind), mbs.Task)(jnp.reshape(p, 1)).y[0]


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
        lambda kind, p: mbs.assemble(kind.mech(p), kind.estimate, fixed={kind.names[1]: 0.5}, throw=False),
        lambda kind, found: found[kind.names[0]],
    ),
    "equilibrium": Analysis(
        lambda kind, p: mbs.equilibrium(kind.mech(p), kind.estimate, drive=kind.moves, throw=False),
        lambda kind, found: found[kind.names[0]],
    ),
    "inverse_dynamics": Analysis(
        driven(mbs.inverse_dynamics, max_events=4), lambda kind, efforts: efforts[kind.names[1]][-1]
    ),
    "linearise": Analysis(small_motions, lambda kind, found: found.A[1, 0]),
    "study": Analysis(of_study, plain),
    "task": Analysis(of_task, plain),
}
USES = ("eager", "vmap", "jvp", "grad", "by name")
FEW = ("jvp", "by name")  # of those that cost much and differ in little from the others
GRID = {
    "kinematics": {"loop": USES, "spatial": FEW, "cam": ("by name",)},
    "simulate": {"tree": USES, "forces": USES, "ball": ("by name",)},
    "state": {"loop": USES[:4]},
    "assemble": {"loop": USES, "spatial": FEW},
    "equilibrium": {"forces": USES},
    "inverse_dynamics": {"loop": USES, "cam": ("by name",)},
    "linearise": {"tree": USES[:4]},
    "study": {"loop": USES[:4]},
    "task": {"loop": USES[:4]},
}
CELLS = [(analysis, kind, use) for analysis, kinds in GRID.items() for kind, uses in kinds.items() for use in uses]


def table() -> list[str]:
    """The grid as the documentation has it."""
    heads = (
        "analysis",
        "mechanism",
        "eager",
        "`jit`, `vmap`",
        "`jvp`",
        "`grad`, `vmap` of `grad`",
        "by name in a batch",
    )
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for analysis, kind in dict.fromkeys(cell[:2] for cell in CELLS):
        told = {use: "yes" if (analysis, kind, use) in CELLS else "" for use in USES}
        if analysis == "linearise":
            told = {use: "yes" if use == "eager" else "refused" if told[use] else "" for use in USES}
        lines.append(f"| `{analysis}` | {kind} | {' | '.join(told.values())} |")
    return lines


def test_documentation_has_the_grid():
    page = (pathlib.Path(__file__).parents[1] / "docs" / "grid.md").read_text(encoding="utf-8")
    for line in [*table(), *(f"- **{name}**: {kind.tells}" for name, kind in KINDS.items())]:
        assert line in page, line


@functools.cache
def batched(analysis: str, kind: str) -> Any:
    return jax.jit(jax.vmap(lambda p: ANALYSES[analysis].run(KINDS[kind], p)))(VARIANTS)


@functools.cache
def single(analysis: str, kind: str) -> Any:
    return ANALYSES[analysis].run(KINDS[kind], jnp.asarray(1.0))


def number(analysis: str, kind: str, p: Any) -> Any:
    return ANALYSES[analysis].number(KINDS[kind], ANALYSES[analysis].run(KINDS[kind], p))


def slope(analysis: str, kind: str) -> Any:
    """By differences of fourth order between the variants."""
    y = jax.vmap(lambda run: ANALYSES[analysis].number(KINDS[kind], run))(batched(analysis, kind))
    return (y[0] - 8 * y[1] + 8 * y[3] - y[4]) / (12 * H)


READ = {
    "kinematics": lambda run, kind: [run[n] for n in kind.names] + poses(run, kind),
    "simulate": lambda run, kind: [run[n] for n in kind.names] + poses(run, kind) + [run.energy, run.momentum()],
    "assemble": lambda found, kind: [found[n] for n in kind.names] + [found.point(kind.mech(1.0).links[1])],
    "equilibrium": lambda found, kind: [found[n] for n in kind.names] + [found.state],
    "inverse_dynamics": lambda found, kind: [found[kind.names[1]], found.reaction(kind.names[1])],
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


@pytest.mark.parametrize(("analysis", "kind", "use"), CELLS, ids=["-".join(cell) for cell in CELLS])
def test_cell(analysis, kind, use):
    value = functools.partial(number, analysis, kind)
    if analysis == "linearise" and use != "eager":
        run = {
            "vmap": jax.vmap(value),
            "jvp": lambda p: jax.jvp(value, (p[0],), (p[0],)),
            "grad": jax.vmap(jax.grad(value)),
        }
        with pytest.raises(ValueError, match="`linearise` looks at values.*cannot be called under jit, vmap or grad"):
            run[use](VARIANTS)
    elif analysis == "linearise":
        found = value(jnp.asarray(1.0))
        np.testing.assert_allclose(found, -9.81 * 0.5 / (0.1 + 0.25), rtol=1e-9)
    elif use == "eager":
        assert np.isfinite(ANALYSES[analysis].number(KINDS[kind], single(analysis, kind)))
    elif use == "vmap":
        lane = jax.tree_util.tree_map(lambda x: x[2], batched(analysis, kind))
        mine, alone = (ANALYSES[analysis].number(KINDS[kind], x) for x in (lane, single(analysis, kind)))
        np.testing.assert_allclose(mine, alone, atol=1e-12)
    elif use == "jvp":
        found = jax.jvp(value, (1.0,), (1.0,))[1]
        np.testing.assert_allclose(found, slope(analysis, kind), rtol=1e-6, atol=1e-6)
    elif use == "grad":
        found = jax.jit(jax.vmap(jax.grad(value)))(VARIANTS[1:3])[1]
        np.testing.assert_allclose(found, slope(analysis, kind), rtol=1e-6, atol=1e-6)
    else:
        run, read = batched(analysis, kind), functools.partial(READ[analysis], kind=KINDS[kind])
        close(jax.tree_util.tree_map(lambda x: x[3], read(run)), read(run.lane(3)), 1e-12)
        twice = jax.tree_util.tree_map(lambda x: jnp.stack([x, x]), run)
        assert twice.batch == (2, 5)
        close(jax.tree_util.tree_map(lambda x: x[1, 3], read(twice)), read(run.lane(3)), 1e-12)
