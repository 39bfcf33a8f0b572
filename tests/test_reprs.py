"""Every public object shows itself in a few lines: numbers where there are some, shapes where there are none yet."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbsjax as mbs
from mbsjax._programs.reprs import short
from tests.test_pytrees import MAKERS, square


def shown(x):
    repr(x), str(x)


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_short_and_without_addresses(name):
    x = MAKERS[name]()
    text = repr(x)
    assert len(text.splitlines()) <= 9 and len(text) < 800 and " at 0x" not in text and "f64[]" not in text
    if not jax.tree_util.tree_leaves(x):
        return
    both = jax.tree_util.tree_map(lambda *x: jnp.stack(x), x, x)
    shown(both)
    jax.jit(shown)(x)
    jax.vmap(shown)(both)
    shown(jax.eval_shape(lambda x: x, x))


def test_numbers_are_shown():
    assert repr(mbs.Body("cam", mass=5.0)) == "Body('cam', mass=5.0)"
    state = mbs.State(jnp.array([0.5, 2.0]), jnp.array([1.0, -1.0]), jnp.array(0.0))
    assert repr(state) == "State(q=[0.5, 2.0], v=[1.0, -1.0], t=0.0)"
    assert repr(mbs.Track(jnp.linspace(0.0, 8.0, 201), jnp.zeros(2), jnp.ones((2, 2)))) == (
        "Track(q=f64[201] in [0.0, 8.0], v=[0.0, 0.0], a=[[1.0, 1.0], [1.0, 1.0]])"
    )
    assert repr(mbs.Spring("y", stiffness=3.0)).startswith("Spring('spring on y', along='y', stiffness=3.0")


def test_functions_are_shown_by_their_names():
    assert repr(mbs.Minimize(square)) == "Minimize(measure=square, weight=1.0)"
    assert repr(mbs.Minimax(lambda p: p, weight=2.0)) == "Minimax(measure=<lambda>, weight=2.0)"
    assert short(functools.partial(square, 1.0)) == "square"
    assert short(object()) == "object"


def test_long_lists_are_cut():
    assert short(list(range(20))) == "[0, 1, ... 17 more ..., 19]"
    assert short(np.full(20, np.nan)) == "f64[20] of none"
    assert short(np.ones(20, bool)) == "bool[20]"


def test_results_show_their_names():
    look = lambda x: mbs.RESULTS.where(x > 1, mbs.RESULTS.locked, mbs.RESULTS.successful)
    assert repr(mbs.RESULTS.successful) == "RESULTS.successful"
    assert repr(look(jnp.array(2))) == "RESULTS.locked"
    assert repr(jax.vmap(look)(jnp.arange(5))) == "RESULTS<2 successful, 3 locked>"
    told = []
    jax.jit(lambda x: told.append(repr(look(x))))(2)
    assert told == ["RESULTS<i32[]>"]
    assert bool(jax.jit(look)(2) == mbs.RESULTS.locked)
    assert mbs.RESULTS[look(jnp.array(2))].startswith("The mechanism locked")


def test_results_tell_all_of_their_members():
    told = re.findall(r"`([a-z_]+)`", mbs.RESULTS.__doc__ or "")
    assert sorted(told) == sorted(mbs.RESULTS._name_to_item)  # pyright: ignore
