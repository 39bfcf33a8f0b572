"""The searches themselves, on small functions: against SciPy, stopped and gone on with, and with bad input."""

import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
import optax
import pytest
import scipy.optimize

import mbsjax as mbs
from tests.tolerances import clutch_study


mpl.use("Agg")


def rosenbrock(p):
    x = p["x"]
    return jnp.stack([10 * (x[1:] - x[:-1] ** 2), 1 - x[:-1]])


BOX = {"x": (-2.0, 2.0)}
VALLEY = mbs.Task(rosenbrock, {"x": np.array([-1.2, 1.0, -0.5])}, BOX, {"valley": mbs.Match(lambda r: r)})


def test_least_squares_within_bounds_is_scipys():
    found = mbs.synthesize(VALLEY, starts=32)
    assert found.ended.get("converged", 0) >= 30 and found.best.objective < 1e-25
    np.testing.assert_allclose(found.best.x, 1.0, atol=1e-10)
    tight = mbs.Task(rosenbrock, {"x": np.array([-0.2, 0.1, -0.5])}, {"x": (-0.7, [0.8, 0.5, 0.9])}, {
        "valley": mbs.Match(lambda r: r)})  # fmt: skip
    best = mbs.synthesize(tight).best
    wanted = scipy.optimize.least_squares(
        lambda x: np.asarray(rosenbrock({"x": x})).ravel(), [-0.2, 0.1, -0.5], bounds=(-0.7, [0.8, 0.5, 0.9]),
        xtol=1e-15, ftol=1e-15, gtol=1e-15)  # fmt: skip
    np.testing.assert_allclose(best.objective, 2 * wanted.cost, rtol=1e-9)
    np.testing.assert_allclose(best.x, wanted.x, atol=1e-6)
    assert [("bound" in what) for what in best.active] == [True] * int(np.sum(wanted.active_mask != 0))


def linear(p):
    return p["A"] @ p["x"] - p["b"]


def test_searches_do_not_stick_to_bounds():
    """Linear least squares in a box, from a corner of it and from 31 other places: all end at SciPy's one minimum."""
    random = np.random.default_rng(5)
    goal = {"off": mbs.Match(lambda y: y)}
    for _ in range(12):
        A, b = random.normal(size=(12, 8)), 3 * random.normal(size=12)
        low, high = -random.uniform(0.1, 1, 8), random.uniform(0.1, 1, 8)
        start = {
            "A": jnp.asarray(A),
            "b": jnp.asarray(b),
            "x": jnp.asarray(np.where(random.uniform(size=8) < 0.5, low, high)),
        }
        found = mbs.synthesize(mbs.Task(linear, start, {"x": (low, high)}, goal), starts=32)
        wanted = scipy.optimize.lsq_linear(A, b, (low, high), tol=1e-14)
        assert len(found.designs) == 1 and found.best.starts == 32
        np.testing.assert_allclose(found.best.objective, 2 * wanted.cost, rtol=1e-9)
        at = (wanted.x - low < 1e-8) | (high - wanted.x < 1e-8)
        assert len(found.best.active) == at.sum()


@pytest.mark.long
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3, 1e6])
def test_conditions_are_kept_whatever_the_objective_is_measured_in(size):
    goals = {"far": mbs.Minimize(lambda x: size * (x - 3) ** 2)}
    near = {"near": mbs.Within(lambda x: x, upper=1.0)}
    task = mbs.Task(lambda p: p["x"], {"x": 0.0}, {"x": (-10.0, 10.0)}, goals, conditions=near)
    best = mbs.synthesize(task).best
    assert best.met
    np.testing.assert_allclose(best.x, 1.0, atol=1e-5)


def test_conditions_are_kept_and_named():
    """Hock and Schittkowski's problem 71, against SLSQP."""
    cost = lambda x: x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2]
    start = np.array([1.0, 5.0, 5.0, 1.0])
    task = mbs.Task(
        lambda p: p["x"],
        {"x": start},
        {"x": (1.0, 5.0)},
        {"cost": mbs.Minimize(cost)},
        conditions={
            "product": mbs.Within(jnp.prod, lower=25.0, scale=10.0),
            "square": mbs.Within(lambda x: jnp.sum(x**2), 40.0, 40.0, scale=10.0),
            "loose": mbs.Within(jnp.sum, upper=100.0, scale=10.0),
        },
    )
    best = mbs.synthesize(task, max_steps=1000).best
    np.testing.assert_allclose(best.objective, 17.0140173, rtol=1e-6)
    np.testing.assert_allclose(best.x, [1.0, 4.7429994, 3.8211503, 1.3794082], atol=2e-4)
    assert best.met and best.active == ["the lower bound of x[0]", "the condition product", "the condition square"]
    assert best.excess["loose"] < -5 and abs(best.excess["product"]) < 1e-6


def test_largest_error_is_that_of_a_linear_program():
    """Chebyshev's line of best fit to exp on [0, 1]."""
    t = jnp.linspace(0.0, 1.0, 101)
    line = lambda p: p["a"] + p["b"] * t - jnp.exp(t)
    free = {"a": (-9.0, 9.0), "b": (-9.0, 9.0)}
    task = mbs.Task(line, {"a": 0.0, "b": 0.0}, free, {"off": mbs.Minimax(lambda r: r)})
    A = np.stack([np.ones(101), np.asarray(t)], 1)
    rows, right = np.block([[A, -np.ones((101, 1))], [-A, -np.ones((101, 1))]]), np.asarray(jnp.exp(t))
    wanted = scipy.optimize.linprog([0, 0, 1], rows, np.concatenate([right, -right]), bounds=(None, None))
    best = mbs.synthesize(task, max_steps=600).best
    np.testing.assert_allclose(best.objective, wanted.fun, rtol=1e-6)
    np.testing.assert_allclose(best.x, wanted.x[:2], atol=1e-5)


def test_ties_and_leaves_picked_by_a_function():
    task = mbs.Task(lambda p: p["a"] * p["link"][0] + p["b"], {"a": 1.0, "b": 0.0, "link": [2.0, 5.0]},
                    {"a": (0.0, 9.0), "first": (lambda p: p["link"][0], (0.0, 9.0))},
                    {"sum": mbs.Match(lambda y: y, 12.0)}, ties={"b": lambda p: p["a"] + 1.0})  # fmt: skip
    p = mbs.synthesize(task).best.dimensions
    assert float(p["b"]) == float(p["a"]) + 1.0 and p["link"][1] == 5.0
    assert float(p["a"] * p["link"][0] + p["b"]) == pytest.approx(12.0, abs=1e-9)


def test_descent_goes_on_where_it_stopped(tmp_path):
    """In two parts, by object and by file, bit for bit as in one."""
    optimizer = optax.adam(optax.cosine_decay_schedule(0.02, 400))
    whole = mbs.descend(VALLEY, optimizer=optimizer, steps=120)
    half = mbs.descend(VALLEY, optimizer=optimizer, steps=50)
    again = mbs.descend(VALLEY, optimizer=optimizer, steps=70, resume=half)
    np.testing.assert_array_equal(again.history, whole.history)
    np.testing.assert_array_equal(again.best.x, whole.best.x)
    path = tmp_path / "descent.npz"
    mbs.descend(VALLEY, optimizer=optimizer, steps=50, save=path)
    filed = mbs.descend(VALLEY, optimizer=optimizer, steps=70, save=path)
    np.testing.assert_array_equal(filed.history, whole.history)
    np.testing.assert_array_equal(filed.best.x, whole.best.x)
    assert whole.best.objective == whole.history[:, 0].min() < 0.05 * whole.history[0, 0]
    other = mbs.Task(rosenbrock, {"x": np.array([-1.0, 1.0, -0.5])}, BOX, {"valley": mbs.Match(lambda r: r)})
    with pytest.raises(ValueError, match="belongs to another task"):
        mbs.descend(other, optimizer=optimizer, save=path)


def test_descent_keeps_conditions():
    task = mbs.Task(lambda p: p["x"], {"x": np.array([3.0, 1.0])}, {"x": (-5.0, 5.0)},
                    {"size": mbs.Minimize(lambda x: jnp.sum(x**2))},
                    conditions={"line": mbs.Within(jnp.sum, lower=2.0)})  # fmt: skip
    found = mbs.descend(task, steps=600, optimizer=optax.adam(optax.exponential_decay(0.02, 100, 0.5)))
    np.testing.assert_allclose(found.best.x, 1.0, atol=0.01)
    assert found.best.excess["line"] < 5e-3


def test_descent_takes_back_a_step_that_fails():
    """sqrt(x - 1) at its minimum: the step beyond is taken back, those after it are shorter."""
    task = mbs.Task(
        lambda p: jnp.sqrt(p["x"] - 1.0), {"x": 1.5}, {"x": (0.0, 2.0)}, {"root": mbs.Minimize(lambda y: y)}
    )
    found = mbs.descend(task, steps=40, optimizer=optax.sgd(0.1))
    assert len(found.history) > 3 and np.all(np.isfinite(found.history[:, 0]))
    assert found.best.objective == found.history[:, 0].min() < 0.02


def test_search_that_is_interrupted_gives_what_it_has():
    task = mbs.Task(rosenbrock, {"x": np.array([-1.2, 1.0, -0.5])}, BOX, {"valley": mbs.Match(lambda r: r)})
    calls = []

    class Impatient:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def set_postfix_str(self, text):
            calls.append(text)
            if len(calls) == 2:
                raise KeyboardInterrupt

        def update(self, n):
            pass

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mbsjax._synthesis.synthesize.bar", lambda *_, **__: Impatient())
        found = mbs.synthesize(task, starts=16, width=8)
    assert sum(found.ended.values()) >= 8 and found.best.objective < 1e-20
    again = mbs.synthesize(found.task, **found.options)
    assert sum(again.ended.values()) == 16


def test_pictures_of_a_search():
    found = mbs.synthesize(VALLEY, starts=4)
    axes = found.plot_match("valley")
    assert [line.get_label() for line in axes.get_lines()] == ["start", "design 0", "target"]
    path = mbs.Task(lambda p: p["x"] + jnp.arange(6.0).reshape(3, 2), {"x": 1.0}, {"x": (0.0, 2.0)},
                    {"path": mbs.Match(lambda P: P, np.arange(6.0).reshape(3, 2))})  # fmt: skip
    axes = mbs.synthesize(path).plot_match("path")
    assert [text.get_text() for text in axes.texts] == ["1", "2", "3"]
    np.testing.assert_allclose(axes.get_lines()[1].get_xydata(), np.arange(6.0).reshape(3, 2), atol=1e-9)
    assert len(found.plot_history().get_lines()) == 1
    with pytest.raises(ValueError, match="there is no goal 'z' to match"):
        found.plot_match("z")


def test_descent_of_another_task_has_its_own_best(tmp_path):
    make = lambda target: mbs.Task(
        lambda p: p["x"], {"x": 1.0}, {"x": (0.0, 9.0)}, {"g": mbs.Match(lambda x: x, target)}
    )
    steps = {"steps": 60, "optimizer": optax.sgd(0.003)}  # each halves the way that is left
    first = mbs.descend(make(2.0), save=tmp_path / "file", **steps)
    np.testing.assert_allclose(first.best.x, 2.0, atol=1e-9)
    np.testing.assert_allclose(mbs.descend(make(5.0), resume=first, **steps).best.x, 5.0, atol=1e-9)
    with pytest.raises(ValueError, match="belongs to another task"):
        mbs.descend(make(5.0), save=tmp_path / "file", **steps)
    with pytest.raises(ValueError, match="the start of 'x' is outside its bounds"):
        mbs.descend(make(5.0), start=[100.0])


@pytest.mark.long
def test_change_of_contacts_during_a_descent_is_told():
    """A block is pushed towards a wall: only above some speed it gets there, and the objective has a corner."""
    wall = mbs.Profile.chain([mbs.Line((2.0, 5.0), (2.0, -5.0))], closed=False)
    mech = mbs.Mechanism(
        [
            mbs.Body("ground", profiles={"wall": wall}),
            mbs.Body("slide"),
            mbs.Body("block", profiles={"rim": mbs.disc(0.5)}),
        ],
        [
            mbs.Prismatic("push", "ground", "slide"),
            mbs.Prismatic("give", "slide", "block"),
            mbs.Contact("C", "ground.wall", "block.rim"),
        ],
    )
    run = lambda p: mbs.kinematics(mech, {"push": lambda t: p["speed"] * t}, np.linspace(0.0, 1.0, 3), throw=False)
    task = mbs.Task(run, {"speed": 1.4}, {"speed": (1.0, 2.0)}, {"way": mbs.Match(lambda m: m["push"].q[-1], 1.9)})
    with pytest.warns(mbs.SequenceWarning, match="sequence of contacts changed at step"):
        found = mbs.descend(task, steps=20, optimizer=optax.sgd(0.05))
    assert len(found.jumps) == 1 and "changed at steps" in repr(found)


def test_goals_by_levels_and_front():
    """A circle of designs between two points: the front is known in closed form."""
    far = lambda a: lambda x: jnp.sum((x - jnp.asarray(a)) ** 2)
    task = mbs.Task(lambda p: p["x"], {"x": np.array([0.3, 0.7])}, {"x": (-3.0, 3.0)},
                    {"left": mbs.Minimize(far([-1.0, 0.0])), "right": mbs.Minimize(far([1.0, 0.0]))})  # fmt: skip
    front = mbs.pareto(task, "left", "right", count=6)
    left, right = front.costs.T
    np.testing.assert_allclose(np.sqrt(left) + np.sqrt(right), 2.0, atol=1e-4)
    np.testing.assert_allclose(right, np.linspace(4.0, 0.0, 6), atol=1e-4)
    shifted = mbs.Task(task.model, {"x": np.array([0.3, 0.7])}, {"x": (-3.0, 3.0)}, {
        "left": mbs.Minimize(lambda x: 1 + far([-1.0, 0.0])(x)), "right": task.goals[1]})  # fmt: skip
    first, second = mbs.levels(shifted, ["left", "right"], worsening=0.25)
    np.testing.assert_allclose(first.best.x, [-1.0, 0.0], atol=1e-5)
    np.testing.assert_allclose(second.best.x, [-0.5, 0.0], atol=1e-4)


def test_level_after_a_largest_number():
    """The limit on a largest number is one on each of them; against SLSQP."""
    rows = lambda x: jnp.array([x[0] + x[1] - 1, x[0] - x[1] - 1, x[0]])
    task = mbs.Task(lambda p: p["x"], {"x": np.zeros(2)}, {"x": (-3.0, 3.0)}, {
        "most": mbs.Minimax(rows), "far": mbs.Minimize(lambda x: (x[0] - 2) ** 2 + (x[1] - 1) ** 2)})  # fmt: skip
    first, second = mbs.levels(task, ["most", "far"])
    assert first.best.objective == pytest.approx(0.5, abs=1e-5) and second.best.met
    np.testing.assert_allclose(second.best.x, [0.525, 0.05], atol=1e-4)


def test_conditions_of_designers():
    inside = np.asarray(mbs.inside([(1.0, 1.0), (3.0, 1.0)], [(0.0, 0.0), (2.0, 0.0), (2.0, 2.0), (0.0, 2.0)]))
    np.testing.assert_allclose(inside, [[1.0, 1.0, 1.0, 1.0], [1.0, -1.0, 1.0, 3.0]])
    # a crank of any length that just can turn has a margin of zero
    assert float(mbs.grashof(1.0, 3.0, 3.5, 5.5).min()) == 0.0 and float(mbs.grashof(3.0, 1.0, 3.0, 3.0).min()) < 0
    # steel cylinders of 20 mm on a plane, by Roark: 0.591 sqrt(F E / (w D)) with equal E, nu = 0.3
    F, w, D, E = 5000.0, 0.02, 0.02, 2.1e11
    wanted = 0.591 * np.sqrt(F * E / (w * D))
    assert float(mbs.hertz_pressure(F, D / 2, w, E / (2 * (1 - 0.3**2)))) == pytest.approx(wanted, rel=1e-3)
    assert float(mbs.hertz_pressure(-1.0, 1.0, 1.0, 1.0)) == 0.0


@pytest.mark.long
def test_robust_design_of_the_clutch_costs_less():
    """Nominal dimensions and tolerances together, against tolerances alone, for the same rejects; the limits are planes
    in the dimensions, so rejects have a closed form."""
    study = clutch_study()
    costs = {name: mbs.Cost(0.0, 1.0) for name in "ace"}
    good = {"phi": 1 - 2700e-6}
    fixed = mbs.robust(study, {}, costs=costs, good=good)
    best = mbs.robust(study, {"a": (25.0, 30.0), "c": (11.0, 12.0), "e": (50.0, 51.0)}, costs=costs, good=good)
    assert fixed.converged and best.converged
    assert best.cost < 0.98 * fixed.cost
    low, high = np.cos(np.asarray(study.lower[0])), np.cos(np.asarray(study.upper[0]))
    for found in (fixed, best):
        a, c, e = (found.nominals[n] for n in "ace")
        T = np.array([found.tolerances[n] for n in "ace"]) / 3
        z = [(a + c - k * (e - c)) / np.linalg.norm(T * [1, 1 + k, -k]) for k in (low, high)]
        rejects = scipy.special.ndtr(z[0]) + scipy.special.ndtr(-z[1])
        np.testing.assert_allclose(rejects, 2700e-6, rtol=1e-4)
        np.testing.assert_allclose(found.rejects["phi"], rejects, rtol=1e-6)

    # the same in closed form, by SciPy
    def rejects(x):
        a, c, e = x[:3]
        T = np.exp(x[3:]) / 3
        z = [(a + c - k * (e - c)) / np.linalg.norm(T * [1, 1 + k, -k]) for k in (low, high)]
        return np.logaddexp(scipy.special.log_ndtr(z[0]), scipy.special.log_ndtr(-z[1]))

    x0 = np.array([*best.nominals.values(), *np.log(list(best.tolerances.values()))])
    wanted = scipy.optimize.minimize(
        lambda x: np.log(np.sum(np.exp(-x[3:]))), x0, method="SLSQP", options={"ftol": 1e-14},
        bounds=[(25, 30), (11, 12), (50, 51)] + [(-9, 0)] * 3,
        constraints={"type": "ineq", "fun": lambda x: np.log(2700e-6) - rejects(x)})  # fmt: skip
    np.testing.assert_allclose(np.log(best.cost), wanted.fun, atol=1e-5)
    centered = mbs.robust(study, {"a": (27.0, 28.0)})
    assert centered.cost is None and centered.rejects["phi"] < 0.99 * (4406.28e-6 + 2166.24e-6)


P = {"a": 1.0, "b": 2.0}
GOAL = {"g": mbs.Match(lambda p: p["a"])}


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: mbs.Task(lambda p: p, P, {"a": (2.0, 1.0)}, GOAL), "bounds of 'a' are in the wrong order"),
        (lambda: mbs.Task(lambda p: p, P, {"c": (0.0, 1.0)}, GOAL), "no dimension 'c'; the dimensions are a, b"),
        (lambda: mbs.Task(lambda p: p, P, {"a": (5.0, 6.0)}, GOAL), "'a' starts at \\[1.0\\], outside its bounds"),
        (lambda: mbs.Task(lambda p: p, P, {"a": 3.0}, GOAL), "bounds of 'a' must be a pair"),
        (lambda: mbs.Task(lambda p: p, P, {}, GOAL), "at least one variable"),
        (lambda: mbs.Task(lambda p: p, P, {"a": (0.0, 3.0)}, {}), "at least one goal"),
        (lambda: mbs.Task(lambda p: p, P, {"a": (0.0, 3.0)}, {"g": 3.0}), "goal 'g' must be a Match"),
        (lambda: mbs.Task(lambda p: p, P, {"a": (0.0, 3.0)}, GOAL, conditions={"g": mbs.Within(lambda p: p["a"], 0.0)}),
         "a goal and a condition are both called 'g'"),
        (lambda: mbs.Task(lambda p: p, P, {"a": (0.0, 3.0)}, GOAL, ties={"a": lambda p: p["b"]}),
         "'a' is tied to others"),
        (lambda: mbs.Task(lambda p: p, P, {"a": (0.0, 3.0)}, GOAL, angles=["z"]), "'z' of `angles` is not a variable"),
        (lambda: mbs.Task(lambda p: p, P, {"a": (0.0, 3.0)}, {"g": mbs.Match(lambda p: p["a"], (1.0, 2.0))}),
         "target of 'g' have shape \\(2,\\)"),
        (lambda: mbs.Within(lambda p: p["a"]), "needs a lower or an upper limit"),
        (lambda: mbs.Within(lambda p: p["a"], 2.0, 1.0), "limits of a condition are in the wrong order"),
        (lambda: mbs.Match(lambda p: p["a"], weight=-1.0), "positive number for its weight"),
    ],
)  # fmt: skip
def test_bad_tasks_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_bad_searches_are_refused():
    never = mbs.Task(lambda p: jnp.log(-p["a"]), P, {"a": (0.5, 3.0)}, {"g": mbs.Match(lambda y: y)})
    with pytest.raises(ValueError, match="none of the 8 starts could be used.*no value.*first was a = 1"):
        mbs.synthesize(never, starts=8)
    with pytest.raises(ValueError, match="no finite objective and gradient.*at a = 1"):
        mbs.descend(never)
    plain = mbs.Task(lambda p: p, P, {"a": (None, None)}, GOAL)
    with pytest.raises(ValueError, match="starts cannot be drawn for 'a'"):
        mbs.synthesize(plain, starts=8)
    with pytest.raises(ValueError, match="a width of 0"):
        mbs.synthesize(plain, width=0)
    with pytest.raises(ValueError, match="must give a pair"):
        mbs.synthesize(plain, starts=8, draw={"a": 5.0})
    drawn = mbs.synthesize(plain, starts=3, draw={"a": (5.0, 6.0)}, max_steps=1)
    assert all(5 <= float(d.x[0]) <= 6 for d in drawn.designs) and sum(drawn.ended.values()) == 3
    with pytest.raises(ValueError, match="tie of 'b' must give shape"):
        mbs.Task(lambda p: p, P, {"a": (0.0, 3.0)}, GOAL, ties={"b": lambda p: jnp.ones(2)})
    with pytest.raises(ValueError, match="rows of 1 numbers"):
        mbs.synthesize(plain, starts=np.zeros((3, 2)))
    with pytest.raises(ValueError, match="there is no variable 'q' to draw"):
        mbs.synthesize(plain, starts=8, draw={"q": (0, 1)})
    two = mbs.Task(
        lambda p: p, P, {"a": (0.0, 3.0)}, {"g": mbs.Match(lambda p: p["a"]), "h": mbs.Match(lambda p: p["b"])}
    )
    with pytest.raises(ValueError, match="`order` must name every goal once"):
        mbs.levels(two, ["g"])
    with pytest.raises(ValueError, match="there is no goal 'z'"):
        mbs.pareto(two, "g", "z")
    study = mbs.Study(lambda p: p, P, {"a": 0.1}, {"a": lambda p: p["a"]}, limits={"a": (0.8, 1.2)})
    with pytest.raises(ValueError, match="no contributor 'z' to change"):
        mbs.robust(study, {"z": (0.0, 1.0)})
    with pytest.raises(ValueError, match="belong together"):
        mbs.robust(study, {"a": (0.5, 1.5)}, good={"a": 0.99})
