"""Every public object is a PyTree of arrays: it goes through jit, vmap, grad, tree_map and pickling."""

import functools
import pickle
import tempfile

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbsjax as mbs
from mbsjax._dynamics.build import plant, some_moment
from tests.kinds import rubbing


def cube(x):
    return x**3


def force(x, v, t, on):
    return -v * on[0]


def guard(x, v, t):
    return v


def push(t, at):
    return 0.0, -at["y"].v


def above(at):
    return at["y"].q - 0.2


def ellipse(s):
    return 2 * jnp.cos(2 * jnp.pi * s), jnp.sin(2 * jnp.pi * s)


def swing(t):
    return 0.1 * jnp.sin(t)


def same(p):
    return p


def square(p):
    return p["a"] ** 2


CHAIN = mbs.Distance("chain", "ground", "bob", (0.0, 2.0))
FORCES = {
    "Spring": mbs.Spring("y", stiffness=cube, damping=0.1, acts="tension"),
    "Spring of a gauge": mbs.Spring(CHAIN, stiffness=3.0, free_length=1.0),
    "Actuator": mbs.Actuator("y", force, switches=[guard]),
    "Load": mbs.Load("bob", force=push),
}
TIP = mbs.Translating(mbs.Roller(5.0), offset=2.0)
PROGRAMME = mbs.Program([mbs.Rise("cycloidal", jnp.pi, 10.0), mbs.Fall(mbs.PolynomialLaw([0.0]), jnp.pi, 10.0)])


@functools.cache
def mechanism():
    return mbs.Mechanism(
        [mbs.Body("bob", mass=1.0, points={"E": (0.1, 0.0)}, profiles={"rim": mbs.disc(0.1)})],
        [mbs.Prismatic("y", "ground", "bob", axis=(0.0, 1.0))],
        [mbs.Offset("height", "ground", "bob", axis=(0.0, 1.0))],
        forces=list(FORCES.values()),
        gravity=(0.0, -9.81),
    )


@functools.cache
def study():
    return mbs.Study(same, {"a": 2.0, "n": 3, "kind": "plain"}, {"a": 0.3}, {"b": square}, limits={"b": (3.0, 5.0)})


@functools.cache
def report():
    return mbs.tolerance(study(), samples=64)


@functools.cache
def campaign():
    return mbs.campaign(study(), 64, tempfile.mkdtemp(), chunk=64, progress=False)


@functools.cache
def simulation():
    mech = mechanism()
    trigger = mbs.Trigger("above", above)
    ts = jnp.array([0.1, 0.2])
    return mbs.simulate(mech, mbs.state(mech), 0.2, ts=ts, triggers=[trigger], max_steps=256, max_events=4)


@functools.cache
def efforts():
    return mbs.inverse_dynamics(mechanism(), {"y": swing}, jnp.array([0.1, 0.2]))


def events():
    one, none = jnp.zeros(1), jnp.zeros(1, int)
    rows = jnp.zeros((1, 2), int)
    return mbs.Events(one, none[0], none, none, none, rows, rows, *[jnp.zeros((1, 1))] * 5, jnp.zeros(0, bool))


def loose():
    return mbs.Mechanism([mbs.Body("arm", mass=1.0)], [mbs.Revolute("O", "ground", "arm", (1.0, 0.0), play=0.01)])


def at_a_point():
    arm = mbs.Body("arm", points={"B": (1.0, 0.0)})
    return mbs.Mechanism([arm], [mbs.Revolute("O", "ground", "arm", None, "B")], units={"length": "mm"})


MAKERS = {
    **{name: (lambda force=force: force) for name, force in FORCES.items()},
    "Angle": lambda: mbs.Angle("tilt", "ground", "bob"),
    "Arc": lambda: mbs.Arc((0.0, 0.0), 1.0, 0.0, 1.0),
    "Assembly": lambda: mbs.assemble(mechanism()),
    "Ball": lambda: mbs.Ball(0.1),
    "Beta": lambda: mbs.Beta(0.1, a=2.0, b=3.0),
    "Body": lambda: mechanism().bodies[0],
    "Cam": lambda: mbs.Cam(PROGRAMME, TIP, 40.0),
    "CamCurve": lambda: mbs.CamCurve(TIP, 40.0, "cycloidal", 0.0, 1.0, 10.0),
    "Campaign": campaign,
    "Catalogue": lambda: mbs.Catalogue({"turned": (0.1, 2.0), "ground": (0.02, 5.0)}),
    "Circle": lambda: mbs.Circle((0.0, 0.0), 1.0),
    "Clearance": lambda: mbs.loosened(loose()).contacts[0],
    "Contact": lambda: mbs.Contact("C", "ground.floor", "bob.rim", law=mbs.Hertz(1e3)),
    "Cost": lambda: mbs.Cost(0.0, 1.0),
    "Coulomb": lambda: mbs.Coulomb(0.2, 0.3, stribeck=0.1, viscous=0.5),
    "Curve": lambda: mbs.Curve(ellipse),
    "DesignPoint": lambda: mbs.form(study())[0],
    "Displaced": lambda: mbs.displaced(mbs.kinematics(loose(), {"O": 0.0}, jnp.zeros(1)), {"O": (1.0, 0.0)}),
    "Distance": lambda: CHAIN,
    "DryTorque": lambda: mbs.DryTorque(0.2),
    "Dyn": lambda: mbs.Dyn(mechanism(), independent=["y"]),
    "Efforts": efforts,
    "Equilibrium": lambda: mbs.equilibrium(mechanism(), throw=False),
    "Events": events,
    "FirstOrder": lambda: report().first,
    "FlatFace": lambda: mbs.FlatFace(5.0),
    "Hertz": lambda: mbs.Hertz(1e3),
    "Holding": lambda: mbs.holding(rubbing(jnp.asarray(1.0))),
    "HuntCrossley": lambda: mbs.HuntCrossley(1e3, 2.0),
    "Involute": lambda: next(e for e in mbs.involute_gear(2.0, 17).elements if isinstance(e, mbs.Involute)),
    "Joint": lambda: mbs.Screw("S", "ground", "bob", lead=2.0),
    "JointFriction": lambda: mbs.JointFriction(0.2, radius=5.0),
    "KelvinVoigt": lambda: mbs.KelvinVoigt(1e3, 2.0),
    "Knife": lambda: mbs.Knife(),
    "LankaraniNikravesh": lambda: mbs.LankaraniNikravesh(1e3, 0.5),
    "Line": lambda: mbs.Line((0.0, 0.0), (1.0, 0.0)),
    "Linearization": lambda: mbs.linearize(mechanism(), mbs.state(mechanism())),
    "Log": lambda: simulation().events,
    "Match": lambda: mbs.Match(square, 2.0),
    "Mechanism": mechanism,
    "Mechanism with a point by name": at_a_point,
    "Minimax": lambda: mbs.Minimax(square),
    "Minimize": lambda: mbs.Minimize(square),
    "Moment": lambda: some_moment(plant(mechanism(), simulation().plant.problem)),
    "Motion": lambda: efforts().motion,
    "Normal": lambda: mbs.Normal(0.1),
    "Offset": lambda: mechanism().gauges[0],
    "Oscillating": lambda: mbs.Oscillating(mbs.Roller(5.0), pivot=50.0, arm=40.0),
    "PlanarFrame": lambda: mbs.at(1.0, 2.0, 0.5),
    "Play": lambda: mbs.Play(0.1, (0.5, 0.0), radius=2.0, law=mbs.Hertz(1e3), friction=0.2),
    "Point": lambda: mbs.Point((1.0, 2.0)),
    "Polynomial": lambda: mbs.Polynomial([10.0, 1.0], (0, 2), 0.0, 1.0),
    "PolynomialLaw": lambda: mbs.PolynomialLaw([0.0, 20.0]),
    "Position": lambda: mbs.Position(0.1, kind="uniform"),
    "Profile": lambda: mbs.involute_gear(2.0, 17),
    "ProfileZone": lambda: mbs.ProfileZone(0.1, correlation=2),
    "Program": lambda: PROGRAMME,
    "Rayleigh": lambda: mbs.Rayleigh(0.1),
    "LimitReliability": lambda: mbs.reliability(study(), 64, check=False).limits[0],
    "Rare": lambda: mbs.Rare(1e-6, 1e-7, 64),
    "Reliability": lambda: mbs.reliability(study(), 64, check=False),
    "Report": report,
    "Roller": lambda: mbs.Roller(5.0),
    "Sample": lambda: report().sample,
    "SecondOrder": lambda: report().second,
    "Segment": lambda: mbs.Rise(mbs.SplineLaw.like("cycloidal", 8), 1.0, 5.0),
    "Solution": simulation,
    "Spline": lambda: mbs.Spline([(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)]),
    "SplineLaw": lambda: mbs.SplineLaw.like("cycloidal", 8),
    "State": lambda: mbs.state(mechanism()),
    "Study": study,
    "Task": lambda: mbs.Task(same, {"a": 1.0, "n": 3}, {"a": (0.0, 3.0)}, {"g": mbs.Match(square, 2.0)}),
    "Translating": lambda: TIP,
    "Triangular": lambda: mbs.Triangular(0.1),
    "Trigger": lambda: mbs.Trigger("above", above),
    "Truncated": lambda: mbs.Truncated(0.1),
    "Uniform": lambda: mbs.Uniform(0.1),
    "Viewer": lambda: mbs.Viewer("<html></html>"),
    "Weibull": lambda: mbs.Weibull(0.1, k=2.0),
    "WorstCase": lambda: report().worst,
    "Within": lambda: mbs.Within(square, lower=0.1),
}


def test_no_class_is_left_out():
    public = {name: getattr(mbs, name) for name in mbs.__all__}
    every = {n: c for n, c in public.items() if isinstance(c, type) and issubclass(c, eqx.Module)}
    final = {name for name in every if not name.startswith("Abstract")}
    assert final - set(MAKERS) == set()


def alike(x, y):
    """Whether two trees hold the same, in the same places."""
    first, second = (jax.tree_util.tree_leaves_with_path(tree) for tree in (x, y))
    assert [path for path, _ in first] == [path for path, _ in second] and type(x) is type(y)
    for (_, a), (_, b) in zip(first, second):
        assert jnp.array_equal(a, b, equal_nan=jnp.issubdtype(a.dtype, jnp.inexact)) and jnp.shape(a) == jnp.shape(b)


@pytest.mark.parametrize("name", MAKERS)
def test_every_object_is_a_pytree_of_arrays(name):
    x = MAKERS[name]()
    leaves = jax.tree_util.tree_leaves(x)
    for path, leaf in jax.tree_util.tree_leaves_with_path(x):
        assert isinstance(leaf, jax.Array | np.ndarray | np.generic), jax.tree_util.keystr(path)
    alike(jax.jit(lambda x: x)(x), x)
    alike(jax.tree_util.tree_map(lambda x: x, x), x)
    alike(pickle.loads(pickle.dumps(x)), x)
    if not leaves:
        return
    both = jax.tree_util.tree_map(lambda *x: jnp.stack(x), x, x)
    for i in range(2):
        alike(jax.tree_util.tree_map(lambda x: x[i], jax.vmap(lambda x: x)(both)), x)  # noqa: B023
    numbers = lambda x: [leaf for leaf in jax.tree_util.tree_leaves(x) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    if len(numbers(x)) == len(leaves):
        slopes = jax.grad(lambda x: sum(jnp.sum(leaf) for leaf in numbers(x)))(x)
        alike(slopes, jax.tree_util.tree_map(jnp.ones_like, x))


def test_mechanism_with_a_force_goes_through_jit():
    mech = mbs.Mechanism(
        [mbs.Body("b", mass=1.0)],
        [mbs.Prismatic("y", "ground", "b")],
        forces=[mbs.Spring("y", stiffness=2.0)],
        gravity=(0.0, -9.81),
    )
    assert jax.jit(lambda m: m.gravity)(mech).tolist() == [0.0, -9.81, 0.0]
