"""Random tolerance studies whose rejects have closed forms: bent and flat limits, far ones, kinks, jumps, lock-outs, in
normal, uniform and triangular dimensions. All of them are run by one program: what differs are numbers."""

import jax.numpy as jnp
import numpy as np
from scipy import special

import mbsjax as mbs


FAR = 50.0  # where a limit is that plays no part
TOLERANCES = {"n": mbs.Normal(sigma=1.0), "u": mbs.Uniform(1.0), "t": mbs.Triangular(1.0)}
MEASURES = {"y": lambda y: y}
GRID = np.linspace(-9.0, 9.0, 6001)
NORMAL = np.exp(-(GRID**2) / 2) / np.sqrt(2 * np.pi) * (GRID[1] - GRID[0])
WITHIN = (np.arange(4000) + 0.5) / 2000 - 1
UNIFORM, TRIANGULAR = np.full(4000, 1 / 4000), (1 - np.abs(WITHIN)) / 2000
above = lambda x: special.ndtr(-x)


def worst(p):
    """The largest of what is beyond each limit, positive for a reject; no value where it locks."""
    y, a, b = p["Q"] @ p["n"], p["slopes"], p["bounds"]
    bent = y[0] + p["bend"] * y[1] ** 2 - b[0]
    together = y[3] + p["mix"] * p["u"] - b[3]
    corner = jnp.minimum(y[3] - b[4], 3 * (p["u"] - p["corner"]))
    modes = a * jnp.stack([bent, y[2] - b[1], -y[2] - b[2], together, corner])
    other = p["mix"] * p["t"]
    jumped = jnp.where(other - y[4] > b[6], 100.0, jnp.max(modes))
    return jnp.where(y[4] + other > b[5], jnp.nan, jumped)


def mode_rejects(p):
    """The rejects of each of the seven limits alone, and of all: they are of four groups of dimensions, which do not
    depend on each other, and those of one group exclude each other."""
    b, mix = p["bounds"], p["mix"]
    each = np.array([
        above(b[0] - p["bend"] * GRID**2) @ NORMAL, above(b[1]), above(b[2]), above(b[3] - mix * WITHIN) @ UNIFORM,
        above(b[4]) * (1 - p["corner"]) / 2, above(b[5] - mix * WITHIN) @ TRIANGULAR,
        above(b[6] - mix * WITHIN) @ TRIANGULAR,
    ])  # fmt: skip
    groups = each[0], each[1] + each[2], each[3] + each[4], each[5] + each[6]
    return each, -np.expm1(np.sum(np.log1p(-np.array(groups))))


def random_problem(rng):
    """The numbers of one study, with its exact rejects: one to four limits, the others out of reach."""
    p = {
        "Q": np.linalg.qr(rng.normal(size=(5, 5)))[0], "slopes": 10 ** rng.uniform(-1.5, 0.5, 5), "bend": 0.0,
        "mix": rng.uniform(0.2, 0.8), "corner": rng.uniform(-0.5, 0.5), "bounds": np.full(7, FAR),
    }  # fmt: skip
    rejects, active = 10 ** rng.uniform(-7, -1.5), rng.permutation(7)[: rng.integers(1, 5)]
    if 3 in active and 4 in active:
        active = active[active != 4]
    p["bend"] = rng.uniform(-0.15, 0.04) if 0 in active else 0.0
    part = rejects * np.where(np.arange(len(active)) == 0, 1.0, 10 ** -rng.uniform(0, 1.5, len(active)))
    low, high = np.zeros(len(active)), np.full(len(active), 12.0)
    for _ in range(50):  # the bounds that leave so many
        p["bounds"][active] = (low + high) / 2
        many = mode_rejects(p)[0][active] > part
        low, high = np.where(many, p["bounds"][active], low), np.where(many, high, p["bounds"][active])
    return p, float(mode_rejects(p)[1])


def random_study(p):
    nominal = {"n": np.zeros(5), "u": 0.0, "t": 0.0} | {k: jnp.asarray(x) for k, x in p.items()}
    return mbs.Study(worst, nominal, TOLERANCES, MEASURES, limits={"y": (None, 0.0)})


def covered_as_often_as_they_should(z):
    """Of normal variates, 68.3 % lie within one standard deviation and 95.4 % within two; as many problems as there are
    here know that to so much, of which three are allowed."""
    for size, part in ((1.0, 0.6827), (2.0, 0.9545)):
        seen, error = np.mean(z < size), np.sqrt(part * (1 - part) / len(z))
        assert abs(seen - part) < 3 * error, f"{100 * seen:.1f} % within {size:.0f}, which should be {100 * part:.1f} %"
