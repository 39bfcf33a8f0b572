"""What is wrong with a study is said, with the name of the culprit."""

import jax.numpy as jnp
import numpy as np
import pytest

import mbsjax as mbs
from mbsjax.demo import four_bar


MOMENTS = mbs.Moments(*np.array([[0.0], [1.0], [0.0], [3.0]]))
P = {"a": 2.0, "b": 3.0, "link": {"length": jnp.array([1.0, 2.0])}}
Y = {"y": lambda p: p["a"]}


def study(tolerances=None, measures=Y, nominal=P, model=lambda p: p, **options):
    return mbs.Study(model, nominal, {"a": 0.1} if tolerances is None else tolerances, measures, **options)


WRONG = {
    "there is no dimension 'c'; the dimensions are a, b, link.length": lambda: study({"c": 0.1}),
    "the tolerance of 'a': the tolerance of a Normal must be positive, got -0.1": lambda: study({"a": -0.1}),
    "the tolerance of 'a', a Position, is for 2 numbers together, and there is 1": lambda: study(
        {"a": mbs.Position(0.1)}
    ),
    "there is no Position of the kind 'square'; there are normal, truncated": lambda: mbs.Position(0.1, kind="square"),
    "the feature of a Position is a 'hole' or a 'pin', not 'slot'": lambda: mbs.Position(0.1, mmc="a", feature="slot"),
    "the shift of a Position must be two numbers": lambda: mbs.Position(0.1, shift=0.01),
    "the diameter of a Position must be positive, got -0.1": lambda: mbs.Position(-0.1),
    r"the shift 0.06 of a Position leaves its tolerance \+-0.05": lambda: mbs.Position(0.1, shift=(0.06, 0.0)),
    "the zone of 'link.length' grows with the size 'b', which must be .* of its own; these are a$": lambda: study(
        {"a": 0.1, "link.length": mbs.Position(0.1, mmc="b")}
    ),
    "the numbers of the zone 'link.length' are spread together: they cannot be correlated": lambda: study(
        {"a": 0.1, "link.length": mbs.Position(0.1)}, correlation={("a", "link.length[0]"): 0.5}
    ),
    "there is no ProfileZone of the kind 'rim'; there are normal": lambda: mbs.ProfileZone(0.1, kind="rim"),
    "correlation of a ProfileZone, in places, must not be negative, got -1": lambda: mbs.ProfileZone(
        0.1, correlation=-1
    ),
    "the lot 'rods' must name at least two dimensions": lambda: study({"a": 0.1}, lots={"rods": ["a"]}),
    "the lot 'rods' names 'c', which has no tolerance; there are a": lambda: study(
        {"a": 0.1}, lots={"rods": ["a", "c"]}
    ),
    "the dimension 'a' is twice in lots: in 'rods' and 'pins'": lambda: study(
        {"a": 0.1, "b": 0.1}, lots={"rods": ["a", "b"], "pins": ["a", "b"]}
    ),
    "the lot 'rods' has 'a' of 1 numbers and 'link.length' of 2": lambda: study(
        {"a": 0.1, "link.length": 0.1}, lots={"rods": ["a", "link.length"]}
    ),
    r"the lot 'rods' has 'a' and 'link.length\[0\]': a zone goes together with whole zones": lambda: study(
        {"a": 0.1, "link.length": mbs.Position(0.1)}, lots={"rods": ["a", "link.length[0]"]}
    ),
    "the correlation of 'a' and 'b' cannot be 0.5: the lot 'rods' makes it 1": lambda: study(
        {"a": 0.1, "b": 0.1}, correlation={("a", "b"): 0.5}, lots={"rods": ["a", "b"]}
    ),
    r"correlation of 'b' and 'link.length\[0\]' cannot be 0.2: the lot 'rods' makes it 0.1": lambda: study(
        {"a": 0.1, "b": 0.1, "link.length": 0.1},
        correlation={("a", "link.length[0]"): 0.1, ("b", "link.length[0]"): 0.2},
        lots={"rods": ["a", "b"]},
    ),
    "the tolerance of 'a': .* limits in the wrong order: 0.2, 0.1": lambda: study({"a": (0.2, 0.1)}),
    "needs at least one tolerance": lambda: study({}),
    "needs at least one measure": lambda: study(measures={}),
    "the dimension 'again' has two tolerances": lambda: study({"a": 0.1, "again": (lambda p: p["a"], 0.1)}),
    "picks the dimension 'two' must give one number": lambda: study({"two": (lambda p: (p["a"], p["b"]), 0.1)}),
    "picks the dimension 'sum' does not lead to a leaf": lambda: study({"sum": (lambda p: p["a"] + p["b"], 0.1)}),
    "the measure 'none' must give a number or a row": lambda: study(measures={"none": lambda p: jnp.zeros(0)}),
    r"two measures have a value 'y\[0\]'": lambda: study(measures={"y": lambda p: jnp.ones(2), "y[0]": lambda p: 1.0}),
    "no dimension 'z' to be correlated; they are a": lambda: study(correlation={("a", "z"): 0.5}),
    "the correlation of 'a' and 'b' must be one number, got nan": lambda: study(
        {"a": 0.1, "b": 0.1}, correlation={("a", "b"): np.nan}
    ),
    "cannot be correlated with itself": lambda: study(correlation={("a", "a"): 0.5}),
    "the correlation of 'a' and 'b' must be between -1 and 1, got 1.5": lambda: study(
        {"a": 0.1, "b": 0.1}, correlation={("a", "b"): 1.5}
    ),
    "the correlation of 'b' and 'a' must be between -1 and 1, got -1.2|of 'a' and 'b' .*-1.2": lambda: study(
        {"a": 0.1, "b": 0.1}, correlation=[[1.0, -1.2], [-1.2, 1.0]]
    ),
    "not positive semi-definite: its smallest eigenvalue is -0.8": lambda: study(
        {"a": 0.1, "b": 0.1, "link.length": 0.1},
        correlation={("a", "b"): 0.9, ("a", "link.length[0]"): 0.9, ("b", "link.length[0]"): -0.9},
    ),
    "a limit of 'y' must be a number, or None for none, got '3'": lambda: study(limits={"y": ("3", None)}),
    "a limit of 'y' must be a number, or None for none, got nan": lambda: study(limits={"y": (np.nan, 1.0)}),
    "a Uniform of sigma 0.2 reaches 0.34641 from its middle, beyond its limits": lambda: mbs.Uniform(0.1, sigma=0.2),
    "a Position of sigma 0.2 reaches 0.4 from its middle": lambda: mbs.Position(0.1, kind="uniform", sigma=0.2),
    "the number of sigma at which a Truncated is cut must be one number": lambda: mbs.Truncated(0.1, at="3"),
    "the tolerance of a Normal must be made of real numbers, got '0.1'": lambda: mbs.Normal("0.1"),
    "must be a square matrix, got": lambda: study({"a": 0.1, "b": 0.1}, correlation=np.eye(3)),
    "must be symmetric, with ones": lambda: study({"a": 0.1, "b": 0.1}, correlation=np.full((2, 2), 0.5)),
    "`limits` names 'x', which is not a measure; these are y": lambda: study(limits={"x": (0, 1)}),
    "limits of 'y' are in the wrong order: 3, 1": lambda: study(limits={"y": (3.0, 1.0)}),
    "limits of 'y' must be a pair": lambda: study(limits={"y": 3.0}),
    "`along` names 'x'": lambda: study(along={"x": [1.0]}),
    "the measure 'bad' is not finite at the nominal dimensions: nan": lambda: study(
        measures={**Y, "bad": lambda p: jnp.log(-p["a"])}
    ),
    "the measure 'm' must give a number or a row of numbers, got shape": lambda: study(
        measures={"m": lambda p: jnp.zeros((2, 2))}
    ),
    "fails at its nominal dimensions: The loops of the mechanism could not be closed": lambda: study(
        {"crank": 0.1},
        {"D": lambda found: found["D"]},
        {"crank": 1.0, "coupler": 1.0, "rocker": 1.0, "ground": 9.0, "height": 0.0},
        lambda p: mbs.assemble(four_bar(p), throw=False),
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_studies(message):
    with pytest.raises(ValueError, match=message):
        WRONG[message]()


def test_wrong_questions():
    good = study({"a": 0.1}, limits={"y": (None, 2.1)})
    first = mbs.first_order(good)
    cost = {"a": mbs.Cost(0.0, 1.0)}
    wrong = {
        "there is no way of sampling 'lucky'; there are random, latin, sobol": lambda: mbs.monte_carlo(
            good, 10, method="lucky"
        ),
        "`samples` must be a positive whole number, got 0": lambda: mbs.monte_carlo(good, 0),
        "4294967296 samples that differ, and 10000000000000 are asked for: .* `reliability`": lambda: mbs.monte_carlo(
            good, 10**13
        ),
        "4000000000 samples of 1 value.s. take 96 GB, .*: `campaign` makes as many": lambda: mbs.monte_carlo(
            good, 4 * 10**9
        ),
        "`samples` must be a positive whole number, got True": lambda: mbs.monte_carlo(good, True),
        "a study without limits has none that could be broken": lambda: mbs.reliability(study()),
        "the limits of a capability are in the wrong order: 3, -3": lambda: mbs.capability(MOMENTS, 3.0, -3.0),
        "the limits of a capability must be numbers, got '3'": lambda: mbs.capability(MOMENTS, "3", 4.0),
        "the cost of the process 'saw' of a catalogue must not be negative, got -2": lambda: mbs.Catalogue(
            {"saw": (0.1, -2.0)}
        ),
        "the fixed part of a cost must be one number, got '1'": lambda: mbs.Cost("1", 1.0),
        "`chunk` must be a positive whole number, got 0": lambda: mbs.monte_carlo(good, 10, chunk=0),
        "'b', which has a cost, is no contributor; there are a": lambda: mbs.allocate(
            first, {"b": cost["a"]}, rss={"y": 1.0}
        ),
        "no measure 'x' to require a rss of": lambda: mbs.allocate(first, cost, rss={"x": 1.0}),
        "a yield below 1, got 1": lambda: mbs.allocate(first, cost, good={"y": 1.0}),
        "at least one requirement": lambda: mbs.allocate(first, cost),
        "the factor of a cost must be positive, got -1": lambda: mbs.Cost(0.0, -1.0),
        "the power of a cost must be positive, got -1": lambda: mbs.Cost(0.0, 1.0, power=-1),
        r"0 <= lower < upper, got 0.2, 0.1": lambda: mbs.Cost(0.0, 1.0, lower=0.2, upper=0.1),
        "a catalogue needs at least one process": lambda: mbs.Catalogue({}),
        "the tolerance of the process 'saw' of a catalogue must be positive": lambda: mbs.Catalogue(
            {"saw": (0.0, 1.0)}
        ),
        "the process 'saw' of a catalogue needs": lambda: mbs.Catalogue({"saw": 1.0}),
        "all of them a Cost, or all of them a Catalogue": lambda: mbs.allocate(
            mbs.first_order(study({"a": 0.1, "b": 0.1})),
            {**cost, "b": mbs.Catalogue({"saw": (0.1, 1.0)})},
            rss={"y": 1.0},
        ),
        r"'link.length\[0\]', which has a cost, shares its tolerance with the rest": lambda: mbs.allocate(
            mbs.first_order(study({"link.length": 0.1})), {"link.length[0]": cost["a"]}, rss={"y": 1.0}
        ),
        "needs samples: call `tolerance` with `samples`": lambda: mbs.tolerance(good).histogram("y"),
        "of the kind 'fourier', 'spline', 'through', not 'bumpy'": lambda: mbs.deviated(
            mbs.disc(1.0), [0.1], kind="bumpy"
        ),
        "needs 1 rows of offsets": lambda: mbs.deviated(mbs.disc(1.0), np.zeros((2, 3))),
    }
    for message, ask in wrong.items():
        with pytest.raises(ValueError, match=message):
            ask()
