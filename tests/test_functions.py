"""A user's function is what it was when it was handed over, whatever it refers to and wherever it is handed over."""

import ast
import collections
import dataclasses
import enum
import functools
import inspect
import json
import operator
import pathlib
import re
import subprocess
import sys
import textwrap
import threading
import types
import typing
import warnings

import cloudpickle
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.interpolate

import mbsjax as mbs
from mbsjax._programs.bytecode import code_of
from mbsjax._programs.functions import Plain
from mbsjax._programs.snapshot import snapshot
from mbsjax._programs.trees import Function, as_function


K = 1.0  # of functions that read a global
TABLE = {"k": 1.0}
CONSTANTS = types.ModuleType("constants")
T = jnp.array(2.0)
traced = []


@jax.jit
def use(f, t):
    traced.append(f)
    return jnp.asarray(f(t), float)


def set_global(k):
    global K
    K = k


def helper(t):
    return K * t


@functools.lru_cache
def remembered(n):
    return n * K


class Settings:
    k = 1.0
    kind = "k"

    @classmethod
    def times(cls, t):
        return cls.k * t


@dataclasses.dataclass
class Motor:
    k: float = 1.0
    rest: list = dataclasses.field(default_factory=list)

    @property
    def gain(self):
        return self.k

    def torque(self, t):
        return self.gain * t

    def __call__(self, t):
        return self.torque(t)


class Slotted:
    __slots__ = ("k",)


class OfGlobals:
    """Its own numbers are never changed: those around its methods are."""

    def __call__(self, t):
        return self.inner(t)

    def inner(self, t):
        return helper(t)


class Pair(typing.NamedTuple):
    k: typing.Any
    box: list


class Law(eqx.Module):
    size: jax.Array
    static: typing.Any = eqx.field(static=True)

    def __call__(self, t):
        return self.size * self.static.k * t

    def other(self, t):
        return self(t)


# Each kind: how to hand over a function k t, and how to change k. What is handed over is written anew each time.
def closure():
    k = 1.0

    def change(value):
        nonlocal k
        k = value

    return (lambda: lambda t: k * t), change


def default():
    def f(t, k=1.0):
        return k * t

    return (lambda: f), lambda k: setattr(f, "__defaults__", (k,))


def keyword_default():
    def f(t, *, k=1.0):
        return k * t

    return (lambda: f), lambda k: setattr(f, "__kwdefaults__", {"k": k})


def attribute_of_function():
    def f(t):
        return f.k * t

    f.k = 1.0
    return (lambda: f), functools.partial(setattr, f, "k")


def held(x, read, change):
    """A function that has closed over x."""
    change(x, 1.0)
    return (lambda: lambda t: read(x) * t), functools.partial(change, x)


def attribute(x, make):
    """A function made anew, of an x with an attribute k."""
    x.k = 1.0
    return (lambda: make(x)), functools.partial(setattr, x, "k")


set_k, set_item = lambda x, k: setattr(x, "k", k), lambda x, k: operator.setitem(x, "k", k)
set_first = lambda x, k: operator.setitem(x, 0, k)
new = types.SimpleNamespace
KINDS = {
    "global": ((lambda: lambda t: K * t), set_global),
    "global of a helper": ((lambda: lambda t: helper(t)), set_global),
    "globals of methods": ((lambda: OfGlobals()), set_global),
    "cached": ((lambda: lambda t: remembered(1.0) * t), set_global),
    "entry of a global": ((lambda: lambda t: TABLE["k"] * t), functools.partial(set_item, TABLE)),
    "closure": closure(),
    "default": default(),
    "keyword default": keyword_default(),
    "attribute of a function": attribute_of_function(),
    "namespace": held(new(), lambda x: x.k, set_k),
    "dataclass": held(Motor(), lambda x: x.gain, set_k),
    "slots": held(Slotted(), lambda x: x.k, set_k),
    "attribute by name": held(new(), lambda x: getattr(x, "".join("k")), set_k),
    "dict": held({}, lambda x: x["k"], set_item),
    "list": held([1.0, [2.0]], lambda x: x[0], set_first),
    "deque": held(collections.deque([1.0]), lambda x: x[0], set_first),
    "tuple": held(Pair(1.0, [1.0]), lambda x: x.box[0], lambda x, k: set_first(x.box, k)),
    "array": held(np.ones(3), lambda x: x[0], set_first),
    "array of objects": held(np.array([1.0, None], object), lambda x: x[0], set_first),
    "array inside": held({"a": [new(k=np.ones(1))]}, lambda x: x["a"][0].k[0], lambda x, k: set_first(x["a"][0].k, k)),
    "polynomial": held(np.poly1d([1.0, 2.0]), lambda x: x(0.0) / 2 * x.coeffs[0], lambda x, k: set_first(x.coeffs, k)),
    "partial": attribute(new(), lambda x: functools.partial(lambda m, t: m.k * t, x)),
    "bound method": attribute(Motor(), lambda x: x.torque),
    "callable object": attribute(Motor(), lambda x: x),
    "jitted": attribute(new(), lambda x: jax.jit(lambda t: x.k * t)),
    "transformed": attribute(new(), lambda x: jax.grad(lambda t: x.k * t**2 / 2)),
    "filtered": attribute(new(), lambda x: eqx.filter_jit(lambda t: x.k * t)),
    "static field": attribute(new(), lambda x: Law(jnp.ones(()), x)),
    "method of a module": attribute(new(), lambda x: Law(jnp.ones(()), x).other),
    "class attribute": attribute(Settings, lambda x: lambda t: x.k * t),
    "class attribute by name": attribute(Settings, lambda x: lambda t: getattr(x, x.kind.lower()) * t),
    "class method": attribute(Settings, lambda x: x.times),
    "module attribute": attribute(CONSTANTS, lambda x: lambda t: x.k * t),
}
OF_CLASSES = ("class attribute", "class attribute by name", "class method", "module attribute", "globals of methods")


@pytest.mark.parametrize("kind", KINDS)
def test_it_stays_what_it_was_and_is_found_again(kind):
    hand, change = KINDS[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        change(3.0)
        first = as_function(hand())
        change(5.0)
        assert use(first, T) == 6.0
        change(7.0)
        assert use(first, T) == 6.0 and first(T) == 6.0
        second = as_function(hand())
        assert use(second, T) == 14.0 and second.rest != first.rest
        change(3.0)
        count, third = len(traced), as_function(hand())
        assert use(third, T) == 6.0 and len(traced) == count and third.rest.lasting
        change(11.0)
        elsewhere = cloudpickle.loads(cloudpickle.dumps(first))  # as workers get it
        assert elsewhere(T) == 6.0 and use(elsewhere, T) == 6.0 and len(traced) == count
        copy = snapshot(first.rest.function).digest == first.rest.key
        assert copy or kind in (*OF_CLASSES, "bound method")  # where the class has another function now


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("array", "array inside", "polynomial")])
def test_traced_numbers_are_leaves_wherever_they_are(kind):
    hand, change = KINDS[kind]

    def value(k):
        change(k)
        f = as_function(hand(), T)
        change(1.0)
        assert isinstance(f, Function) and not all(x is None for x in f.arrays)
        return use(f, T)

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert jax.grad(value)(3.0) == 2.0
        assert jax.vmap(value)(jnp.arange(3.0)).tolist() == [0.0, 2.0, 4.0]
        assert jax.jit(value)(4.0) == 8.0
    assert bool(told) == (kind in OF_CLASSES)


def test_one_thing_stays_one_thing():
    shared: list[float] = [1.0]
    loop: list[typing.Any] = [1.0]
    loop.append(loop)
    box = new(first=shared, second=shared)
    box.itself = box

    def even(n):
        return n == 0 or odd(n - 1)

    def odd(n):
        return n != 0 and even(n - 1)

    counter = new(count=0)

    def counted(t):
        counter.count += 1
        return counter.count * t

    copy = Plain(lambda: (box.first is box.second is box.itself.second, loop[1] is loop, even(6), odd(6)))
    assert copy() == (True, True, True, False)
    copy = Plain(lambda: (lambda f, g: (f(1.0), g()))(counted, lambda: counter.count))
    assert copy() == (1.0, 1) and copy() == (2.0, 2) and counter.count == 0  # what it changes is its own


def test_it_is_the_same_only_if_all_is():
    def made(k, name="a", pick=lambda x, y: x - y, flag=True):
        return Plain(lambda t: pick(k, t) if flag else len(name))

    names = lambda x, y: x - y
    swapped = lambda y, x: y - x  # the same as it is called here, but not by name
    numbers = [1, 1.0, True, 1 + 0j, -0.0, 0.0, "1", b"1", None, (1.0,), [1.0], np.float64(1.0), np.float32(1.0)]
    numbers += [np.ones(1), np.ones((1, 1)), jnp.ones(1), jnp.ones(1, int), {1.0}, {"a": 1.0}, {"b": 1.0}, range(1)]
    numbers += [Motor(), Pair(1.0, []), new(k=1.0), Color.RED, Color.BLUE, Settings, Motor, slice(1), 1e-300, 10**5000]
    numbers += [float("nan"), float("inf"), jax.random.key(0), jax.random.key(1), ..., frozenset(), object]
    every = [*map(made, numbers), made(1.0, "b"), made(1.0, pick=swapped), made(1.0, flag=False)]
    assert all((f == g) == (i == j) for i, f in enumerate(every) for j, g in enumerate(every))
    again = [*map(made, numbers), made(1.0, "b"), made(1.0, pick=swapped), made(1.0, flag=False)]
    assert again == every and made(1.0, pick=names) == made(1.0)


class Color(enum.Enum):
    RED = 1
    BLUE = 2


def test_what_libraries_make_is_seen():
    @jax.custom_jvp
    def kinked(t):
        return K * jnp.abs(t)

    kinked.defjvp(lambda x, v: (kinked(*x), K * v[0]))
    spline, lock = scipy.interpolate.CubicSpline([0.0, 1.0, 2.0], [0.0, 1.0, 4.0]), threading.Lock()
    leaves, structure = jax.tree_util.tree_flatten({"a": 2.0})
    every = [
        kinked, jnp.sin, np.sin, jax.nn.relu, jax.vmap(jnp.sin), functools.partial(jnp.add, 1.0),
        lambda t: float(spline(0.5)) * t, lambda t: (lock, t)[1],
        lambda t: jax.tree_util.tree_unflatten(structure, leaves)["a"] * t,
        lambda t: jax.lax.scan(lambda c, x: (c * x, None), t, jnp.arange(1.0, 3.0))[0],
    ]  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = jnp.array([0.5, 1.5])
        for f in every:
            first, second = as_function(f), as_function(f)
            assert first.rest == second.rest and first.rest.lasting
            np.testing.assert_array_equal(first(x), f(x))
    assert as_function(mbs.constant_speed(2.0)) == mbs.constant_speed(2.0)  # nothing of a user's is in it


def test_what_cannot_be_seen_is_compiled_anew_with_one_warning():
    state = (k for k in [3.0])
    hidden = [0.0]

    def cell(t):
        return hidden[0] * t + 0 * (state is None)

    with pytest.warns(
        UserWarning, match=r"function .*cell \(.*test_functions.py:\d+\) .* `state`: cannot pickle"
    ) as told:
        results = []
        for k in (3.0, 5.0):
            hidden[0] = k
            first = as_function(cell, T)
            hidden[0] = -1.0
            results.append(float(use(first, T)))
        assert results == [6.0, 10.0]  # it was traced when it was handed over
        live = as_function(cell)
        hidden[0] = 4.0
        assert use(live, T) == 8.0 and as_function(cell).rest != live.rest
    assert len(told) == 1 and told[0].filename == __file__
    outside = [
        (lambda t: eval("K") * t, "`eval`"),
        (lambda t: __import__("constants").k * t, "`__import__`"),
        (imports, "imports 'tests'"),
        (lambda t: getattr(CONSTANTS, "".join("k")) * t, "`constants`: .*names that are computed"),
        (lambda t: getattr(CONSTANTS, "" + str(t)) * t, "`constants`: .*names that are computed"),
    ]
    for f, why in outside:
        with pytest.warns(UserWarning, match=why):
            assert not Plain(f).known


def imports(t):
    from tests import kinds

    return len(kinds.__name__) * t


def test_what_it_appends_to_is_its_own():
    seen = []

    def noting(t):
        seen.append(t)
        return 2.0 * t

    f = as_function(noting)
    assert use(f, T) == 4.0 and f(T) == 4.0 and seen == []


def test_results_of_classes_of_users_are_looked_at_as_they_were():
    class Result(typing.NamedTuple):
        x: typing.Any

        def score(self):
            return K * self.x

    class Dimensions(eqx.Module):
        a: jax.Array

        def build(self):
            return Result(K * self.a)

    def study():
        measures = {"y": lambda result: result.score()}
        return mbs.Study(lambda p: p.build(), Dimensions(jnp.array(1.0)), {"a": 0.1}, measures)

    set_global(2.0)
    first = study()
    set_global(3.0)
    second = study()
    set_global(5.0)
    value = eqx.filter_jit(lambda study, x: study(x).values)
    assert [float(value(s, jnp.ones(1))[0]) for s in (first, second)] == [4.0, 9.0]
    assert [float(s.at_nominal.values[0]) for s in (first, second)] == [4.0, 9.0]
    goals = lambda: {"y": mbs.Minimize(lambda result: result.score())}
    task = lambda: mbs.Task(lambda p: p.build(), Dimensions(jnp.array(1.0)), {"a": (0.0, 2.0)}, goals())
    value = eqx.filter_jit(lambda task, x: task(x).y)
    first = task()
    set_global(7.0)
    second = task()
    set_global(1.0)
    assert [float(value(s, jnp.ones(1))[0]) for s in (first, second)] == [25.0, 49.0]


def of_text(text):
    scope = {"jnp": jnp}
    exec(textwrap.dedent(text), scope)
    return scope["f"]


def test_the_digest_is_that_of_what_code_does():
    text = """
    def f(t):
        offset, factor = 1.0, 2.0
        inner = lambda x, **more: jnp.sin(factor * x) if x is not None else [y for y in (1, 2.5) if y in {1, 2}]
        try:
            return inner(t, scale=3) + offset
        except ValueError:
            return 0.0
    """
    harmless = [
        text.replace("offset", "shift"),
        text.replace("    offset,", "    # a comment\n\n        offset,"),
        text.replace("def f(t):", 'def f(t):\n        """Documented."""'),
        text.replace("f(t)", "f(time)").replace("(t,", "(time,"),
    ]
    harmful = [
        text.replace("2.5", "2.0"), text.replace("1.0", "1"), text.replace("sin", "cos"), text.replace("+", "-"),
        text.replace("scale", "size"), text.replace("ValueError", "KeyError"), text.replace("x, **more", "x=0, **more"),
        text.replace("{1, 2}", "{1, 3}"), text.replace("is not", "is"), text.replace("**more", "**most"),
    ]  # fmt: skip
    key = lambda text: Plain(of_text(text)).key
    assert [key(x) == key(text) for x in harmless] == [True] * len(harmless)
    assert len({key(text), *map(key, harmful)}) == len(harmful) + 1
    assert code_of(of_text(text).__code__).read == ("ValueError", "jnp")


def test_digests_are_the_same_in_other_processes():
    code = "import json, jax; jax.config.update('jax_enable_x64', True); from tests.test_functions import *; "
    code += "print(json.dumps({kind: as_function(hand()).rest.key.hex() for kind, (hand, _) in KINDS.items()}))"
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=pathlib.Path(__file__).parents[1]
    )
    for _, change in KINDS.values():
        change(1.0)
    here = {kind: as_function(hand()).rest.key.hex() for kind, (hand, _) in KINDS.items()}
    assert json.loads(told.stdout) == here and len(set(here.values())) > len(here) - 3


HINGE = mbs.Revolute("O", "ground", "bob")
TIMES = jnp.linspace(0.0, 1.0, 2)


def pendulum(*forces):
    return mbs.Mechanism([mbs.Body("bob", mass=1.0, inertia=1.0)], [HINGE], forces=forces)


def end(drive):
    """Where a driven hinge ends."""
    return float(mbs.kinematics(pendulum(), {"O": drive}, TIMES)["O"].q[-1])


def effort(mech):
    """What holds a hinge at one second."""
    return -float(mbs.inverse_dynamics(mech, {"O": 0.0}, TIMES)["O"][-1])


@pytest.mark.parametrize("kind", ["namespace", "callable object", "bound method"])
def test_drivers(kind):
    hand, change = KINDS[kind]
    change(1.0)
    assert end(hand()) == pytest.approx(1.0)
    change(2.0)
    assert end(hand()) == pytest.approx(2.0)
    change(1.0)
    assert end(hand()) == pytest.approx(1.0)


def test_actuators_of_mechanisms_that_are_made_anew():
    motor = Motor(1.0)
    made = lambda: pendulum(mbs.Actuator("O", lambda x, v, t: motor.k * t))
    first = made()
    motor.k = 2.0
    assert effort(first) == pytest.approx(1.0)
    second = made()
    assert effort(second) == pytest.approx(2.0) and effort(first) == pytest.approx(1.0)
    motor.k = 1.0
    assert effort(made()) == pytest.approx(1.0) and effort(second) == pytest.approx(2.0)


def test_measures_of_studies_that_are_made_anew():
    settings = new(k=1.0)
    study = lambda: mbs.Study(lambda p: p, {"a": 1.0}, {"a": 0.1}, {"y": lambda p: settings.k * p["a"]})
    first = study()
    settings.k = 10.0
    second = study()
    settings.k = 3.0
    slopes = [mbs.first_order(s).slopes.item() for s in (first, second, study())]
    np.testing.assert_allclose(slopes, [1.0, 10.0, 3.0])


class Reached(Exception):
    """A function was handed over."""


def public_doors():
    """Arguments of public functions and classes that are functions by their annotations, or may be by their texts."""
    for name in sorted(dir(mbs)):
        x = getattr(mbs, name)
        if name.startswith("_") or not callable(x) or not getattr(x, "__module__", "").startswith("mbsjax"):
            continue
        try:
            source = textwrap.dedent(inspect.getsource(x.__init__ if isinstance(x, type) else x))
            made = next(n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef))
        except (TypeError, OSError, SyntaxError, StopIteration):
            continue
        text = inspect.getdoc(x) or ""
        for argument in (*made.args.posonlyargs, *made.args.args, *made.args.kwonlyargs):
            said = re.search(rf"- `{argument.arg}`:(.*?)(\n- `|\n\n|\Z)", text, re.DOTALL)
            kind = ast.unparse(argument.annotation) if argument.annotation else ""
            loose = "Any" in kind and said is not None and re.search(r"function|lambda", said[1])
            if re.search(r"Callable|\bLaws?\b", kind) or loose:
                yield name, argument.arg


MEASURES = {"y": lambda p: p["a"]}
ONE, NEAR = {"a": 1.0}, {"a": 0.1}
DOORS = {
    ("Actuator", "function"): lambda f: mbs.Actuator("O", f),
    ("Actuator", "switches"): lambda f: mbs.Actuator("O", 1.0, switches=[f]),
    ("Curve", "function"): lambda f: mbs.Curve(f),
    ("Load", "force"): lambda f: mbs.Load("bob", force=f),
    ("Load", "torque"): lambda f: mbs.Load("bob", torque=f),
    ("Match", "measure"): lambda f: mbs.Match(f),
    ("Minimax", "measure"): lambda f: mbs.Minimax(f),
    ("Minimize", "measure"): lambda f: mbs.Minimize(f),
    ("Within", "measure"): lambda f: mbs.Within(f, lower=0.0),
    ("Rise", "law"): lambda f: mbs.Rise(f, 1.0, 1.0),
    ("Fall", "law"): lambda f: mbs.Fall(f, 1.0, 1.0),
    ("Segment", "law"): lambda f: mbs.Segment(f, 1.0, 1.0),
    ("CamCurve", "law"): lambda f: mbs.CamCurve(mbs.Translating(mbs.Knife()), 1.0, f, 0.0, 1.0, 1.0),
    ("peak_factors", "law"): lambda f: mbs.peak_factors(f),
    ("Spring", "stiffness"): lambda f: mbs.Spring("O", stiffness=f),
    ("Spring", "damping"): lambda f: mbs.Spring("O", damping=f),
    ("Study", "model"): lambda f: mbs.Study(f, ONE, NEAR, {"y": mbs.constant_speed(1.0)}),
    ("Study", "measures"): lambda f: mbs.Study(mbs.constant_speed(1.0), ONE, NEAR, {"y": f}),
    ("Task", "model"): lambda f: mbs.Task(f, ONE, {"a": (0.0, 1.0)}, {"y": match()}),
    ("Task", "ties"): lambda f: mbs.Task(
        mbs.constant_speed(1.0), {**ONE, "b": 1.0}, {"a": (0.0, 1.0)}, {"y": match()}, ties={"b": f}
    ),
    ("Trigger", "function"): lambda f: mbs.Trigger("here", f),
    ("equilibrium", "drive"): lambda f: mbs.equilibrium(pendulum(), drive={"O": f}),
    ("inverse_dynamics", "drive"): lambda f: mbs.inverse_dynamics(pendulum(), {"O": f}, TIMES),
    ("kinematics", "drive"): lambda f: mbs.kinematics(pendulum(), {"O": f}, TIMES),
    ("linearize", "drive"): lambda f: mbs.linearize(pendulum(), mbs.state(pendulum()), drive={"O": f}),
    ("simulate", "drive"): lambda f: mbs.simulate(pendulum(), None, 1.0, drive={"O": f}),
    ("state", "drive"): lambda f: mbs.state(pendulum(), drive={"O": f}),
    ("view", "drive"): lambda f: mbs.view(pendulum(), drive={"O": f}),
    ("play_parts", "measures"): lambda f: mbs.play_parts(loose(), {"y": f}),
    ("play_study", "model"): lambda f: mbs.play_study(f, ONE, NEAR, {"y": mbs.constant_speed(1.0)}),
    ("play_study", "measures"): lambda f: mbs.play_study(mbs.constant_speed(1.0), ONE, NEAR, {"y": f}),
    ("value_and_slopes", "f"): lambda f: mbs.value_and_slopes(f, 1.0),
    ("worst_play", "measures"): lambda f: mbs.worst_play(loose(), {"y": f}),
}  # fmt: skip
AT_ONCE = {  # called when they are given, and not kept
    ("Study", "tolerances"), ("Task", "variables"), ("holding_limit", "f"), ("simulate", "state0"),
}  # fmt: skip


def match():
    """Made without a door."""
    made = object.__new__(mbs.Match)
    object.__setattr__(made, "measure", mbs.constant_speed(1.0))
    return made


def loose():
    """A motion with nothing but a mechanism."""
    made, hinge = object.__new__(mbs.Motion), mbs.Revolute("O", "ground", "bob", play=0.1)
    object.__setattr__(made, "mech", mbs.Mechanism([mbs.Body("bob")], [hinge]))
    return made


def test_every_door_is_known():
    assert {*public_doors()} - AT_ONCE <= {*DOORS}


@pytest.mark.parametrize("door", DOORS, ids=" ".join)
def test_every_door_takes_functions_as_they_are(door, monkeypatch):
    def reached(f, *_, **__):
        if f is given:
            raise Reached
        return f

    given = lambda *_: 1.0
    [getattr(mbs, name) for name in dir(mbs)]
    for name, module in list(sys.modules.items()):
        if name.startswith("mbsjax.") and hasattr(module, "as_function"):
            monkeypatch.setattr(module, "as_function", reached)
    with pytest.raises(Reached):
        DOORS[door](given)
