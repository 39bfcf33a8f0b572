"""Functions computed entry by entry give what they give with arrays."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbsjax._numerics.components.graph import Graph
from mbsjax._numerics.components.moves import MOST_CHOICES
from mbsjax._numerics.components.transform import MOST_OPERATIONS, by_components
from mbsjax._numerics.linalg import saddle


KEY = jax.random.key(3)
TABLE = jax.random.normal(KEY, (3, 4, 5))  # entries, entries, lanes


def moved(x):
    y = jnp.concatenate([x[1:], x[:1]]).T[::-1, :2]
    return jnp.stack([y, jnp.pad(y, ((1, 0), (0, 1)))[1:, :2]]).reshape(-1), x[:, np.array([2, 0, 3])], jnp.arange(3)


def reduced(x):
    return x.sum(0), x.max(1), jnp.prod(x, 1), jnp.all(x > 0, 0), jnp.any(x > 0), jnp.sum(x[:0], 0), jnp.argmin(x, 1)


def multiplied(x):
    return x @ x.T, jnp.einsum("ij,kj->ki", x, x), jnp.dot(x[0], x[1])


def chosen(x):
    k = jnp.argmax(x[0])
    row = x.at[:, k].get(mode="promise_in_bounds", wrap_negative_indices=False)
    return row, jax.lax.dynamic_index_in_dim(x, k - 1, 1), x[k % 3], jnp.take_along_axis(x, jnp.argsort(x, 1), 1)


def put(x):
    return x.at[1].set(7.0), x.at[:, 2].set(x[:, 0]), x.at[jnp.argmax(x[:, 0])].set(0.0)


def structured(x):
    ways = np.array([[0.0, 1.0, -1.0], [1.0, 0.0, 0.0], [2.0, 0.0, -1.0]])
    zero = jnp.zeros(3)
    return (
        jnp.sum(ways[:, :, None] * x[None], 1),
        zero / x[:, 0],
        x[:, 0] - zero,
        -jnp.negative(x),
        jnp.where(ways[0] > 0, 1.0, 1),
    )


def looped(x):
    turn = lambda carry, y: (carry * jnp.cos(y), carry)
    grown = jax.lax.while_loop(lambda y: jnp.sum(y * y) < 100, lambda y: 2 * y + 1, x)
    return jax.lax.scan(turn, x[0], x), grown, jax.lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x)


def solved(x):
    M, C = x[:, :3] @ x[:, :3].T + jnp.eye(3), x[:1, 1:]
    solve = saddle(M, C, jnp.zeros(1), np.full(1, 1e-11), (np.ones((3, 3), bool), np.ones((1, 3), bool)))
    return solve(x[:, :1], jnp.ones((1, 1)))


def differentiated(x):
    f = lambda x: jnp.sum(jnp.sin(x) * x[::-1]) + jnp.arctan2(x[0, 0], x[1, 1])
    return jax.grad(f)(x), jax.jvp(f, (x,), (jnp.cos(x),))


@pytest.mark.long
@pytest.mark.parametrize("f", [moved, reduced, multiplied, chosen, put, structured, looped, solved, differentiated])
def test_entry_by_entry(f):
    along = jax.vmap(f, in_axes=-1, out_axes=-1)
    for table in (TABLE, TABLE[..., None] + jnp.arange(2)):  # one axis of lanes, and two
        lanes = table.ndim - 2
        native = along if lanes == 1 else jax.vmap(along, in_axes=-1, out_axes=-1)
        expected, found = native(table), jax.jit(by_components(f, lanes))(table)
        assert jax.tree_util.tree_structure(expected) == jax.tree_util.tree_structure(found)
        for a, b in zip(jax.tree_util.tree_leaves(expected), jax.tree_util.tree_leaves(found)):
            assert a.shape == b.shape and a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)


def numbers_of(f, *shapes):
    program = jax.make_jaxpr(f)(*(jnp.zeros(s) for s in shapes))
    return Graph(program.jaxpr, program.consts).size


def test_what_is_not_needed_is_not_there():
    ways = np.array([[1.0, 0.0], [0.0, -1.0]])
    assert numbers_of(lambda x: (ways @ x)[0], (2,)) == 1  # the entry itself
    assert numbers_of(lambda x: jnp.stack([x[0], 0 * x[1], x[1] * 1]), (2,)) == 2
    assert numbers_of(lambda x: x[0] * x[1] + x[0] * x[1], (2,)) == 4  # a product once, and a sum
    assert numbers_of(lambda x: x.reshape(2, 2).T[::-1].reshape(-1), (4,)) == 4


def test_large_functions_and_single_lanes_stay_as_they_are():
    f = lambda x: jnp.sin(x).sum(0)
    small, large, one = jnp.ones((3, 2)), jnp.ones((MOST_OPERATIONS + 1, 2)), jnp.ones(3)
    sines = lambda x: str(jax.make_jaxpr(by_components(f, 1))(x)).count("= sin")
    assert (sines(small), sines(large)) == (3, 1)
    assert numbers_of(f, large.shape[:1]) > MOST_OPERATIONS
    assert str(jax.make_jaxpr(by_components(f, 0))(one)) == str(jax.make_jaxpr(f)(one))


def test_a_choice_from_many_is_left_to_a_gather():
    f = lambda x: x.at[jnp.argmax(x)].get(mode="promise_in_bounds", wrap_negative_indices=False)
    x = jax.random.normal(KEY, (2 * MOST_CHOICES, 7))
    np.testing.assert_array_equal(by_components(f, 1)(x), jnp.max(x, 0))
