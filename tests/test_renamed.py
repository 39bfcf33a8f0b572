"""Old names work for one more version, and warn."""

import jax.numpy as jnp
import pytest

import mbsjax as mbs


@pytest.mark.parametrize(
    "old, new",
    [
        ("Linearisation", "Linearization"),
        ("Minimise", "Minimize"),
        ("Programme", "Program"),
        ("linearise", "linearize"),
    ],
)
def test_an_old_public_name_is_the_new_one(old, new):
    with pytest.warns(DeprecationWarning, match=new):
        assert getattr(mbs, old) is getattr(mbs, new)


def test_an_old_argument_and_an_old_attribute_of_a_cam():
    lift = mbs.Program([mbs.Rise("harmonic", jnp.pi, 2.0), mbs.Fall("harmonic", jnp.pi, 2.0)])
    with pytest.warns(DeprecationWarning, match="`program`"):
        cam = mbs.Cam(programme=lift, follower=mbs.Translating(mbs.FlatFace(1.5)), base_radius=3.0)
    with pytest.warns(DeprecationWarning, match="`cam.program`"):
        assert cam.programme is cam.program


def test_an_argument_by_both_names_is_refused():
    with pytest.raises(TypeError, match="optimiser"):
        mbs.descend(None, optimiser=None, optimizer=None)


def test_old_keys_of_model_files():
    text = """
        [bodies.cam.profiles.rim]
        type = "cam"
        base_radius = 3.0
        follower = { type = "translating", tip = { type = "flat_face", half_width = 1.5 } }
        %s = [
            { type = "rise", law = "harmonic", angle = 3.141592653589793, height = 2.0 },
            { type = "fall", law = "harmonic", angle = 3.141592653589793, height = 2.0 },
        ]

        [joints.O]
        type = "revolute"
        body_a = "ground"
        body_b = "cam"
    """
    new = mbs.loads(text % "program").mechanism()
    with pytest.warns(DeprecationWarning, match="'program'"):
        old = mbs.loads(text % "programme").mechanism()
    assert mbs.dumps(old) == mbs.dumps(new)
