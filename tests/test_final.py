"""Classes are abstract or final: a subclass of a final one is refused where it is made, and one of an abstract class is
what it is, whatever it is called."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import mbsjax as mbs
from mbsjax._model.joint.revolute import RevolutePair
from mbsjax._programs.modules import AbstractModule


def every_class() -> list[type]:
    """All modules of the model, public or not."""
    for name in mbs.__all__:
        getattr(mbs, name)
    found, left = [], [AbstractModule]
    while left:
        below = left.pop().__subclasses__()
        found += below
        left += below
    return [c for c in found if c.__module__.startswith("mbsjax.")]


FINAL = [c for c in every_class() if not c.__name__.startswith("Abstract")]


def test_families_are_all_there():
    assert {mbs.Line, mbs.Spring, mbs.Distance, mbs.Coulomb, mbs.Normal, mbs.Match, mbs.Body, RevolutePair} <= {*FINAL}
    public = [getattr(mbs, name) for name in mbs.__all__ if name.startswith("Abstract")]
    assert all(issubclass(c, AbstractModule) for c in public)


@pytest.mark.parametrize("base", FINAL, ids=lambda c: c.__name__)
def test_a_final_class_refuses_subclasses(base):
    """A floor of `class Edge(Line)` had an infinite gap, as its name was not "Line"."""
    with pytest.raises(TypeError, match=f"Edge cannot be a subclass of {base.__name__}, which is final"):
        type("Edge", (base,), {})


def test_a_class_of_the_users_own_may_have_any_name():
    """A curve that is called as an element of the package is a curve all the same: its contacts are found by search."""
    straight = lambda s: jnp.stack([2.0 - 4.0 * s, 0.1 * jnp.sin(3.0 * s)])

    class Line(mbs.AbstractCurve):
        height: jnp.ndarray
        samples: int = eqx.field(static=True, default=32)

        def position(self, s):
            return straight(s) * jnp.stack([jnp.ones_like(s), self.height])

    own = mbs.Profile.chain([Line(jnp.asarray(1.0))], closed=False)
    same = mbs.Profile.chain([mbs.Curve(straight, samples=32)], closed=False)
    assert own.kinds == same.kinds == ("curve", "point", "point")
    for q in (0.2, 0.7):
        for a, b in zip(own(q), same(q)):
            np.testing.assert_allclose(a, b, atol=1e-12)


def test_what_is_neither_plain_nor_a_curve_is_no_element():
    class Strange(mbs.AbstractElement):
        def __call__(self, s):
            raise NotImplementedError

    with pytest.raises(ValueError, match=r"element 0 of a profile must be .* \(a subclass of AbstractCurve\)"):
        mbs.Profile.chain([Strange()])
