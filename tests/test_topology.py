"""Graphs of mechanisms: the thesis' example, and laws that hold for any graph."""

import numpy as np
from hypothesis import given, settings, strategies as st

import mbsjax as mbs
from tests.mechanisms import bodies, four_bar


TRIGGER = mbs.topology(
    ["L1", "L2", "L3", "L4", "L5", "L6"],
    [
        ("R12", "L1", "L2"),
        ("R13", "L1", "L3"),
        ("R14", "L1", "L4"),
        ("P16", "L1", "L6"),
        ("R35", "L3", "L5"),
        ("C23", "L2", "L3"),
        ("C45", "L4", "L5"),
        ("C56", "L5", "L6"),
        ("C26", "L2", "L6"),
        ("C24", "L2", "L4"),
    ],
)


def test_thesis_trigger_mechanism_incidence_2_2_2_2():
    expected = [
        [-1, -1, -1, -1, 0, 0, 0, 0, 0, 0],
        [1, 0, 0, 0, 0, -1, 0, 0, -1, -1],
        [0, 1, 0, 0, -1, 1, 0, 0, 0, 0],
        [0, 0, 1, 0, 0, 0, -1, 0, 0, 1],
        [0, 0, 0, 0, 1, 0, 1, -1, 0, 0],
        [0, 0, 0, 1, 0, 0, 0, 1, 1, 0],
    ]
    np.testing.assert_array_equal(TRIGGER.incidence, expected)


def test_thesis_trigger_mechanism_loops_2_2_2_19():
    expected = [
        [-1, 1, 0, 0, 0, -1, 0, 0, 0, 0],
        [0, 1, -1, 0, 1, 0, -1, 0, 0, 0],
        [0, -1, 0, 1, -1, 0, 0, -1, 0, 0],
        [-1, 0, 0, 1, 0, 0, 0, 0, -1, 0],
        [-1, 0, 1, 0, 0, 0, 0, 0, 0, -1],
    ]
    np.testing.assert_array_equal(TRIGGER.loops, expected)
    np.testing.assert_array_equal(TRIGGER.incidence @ TRIGGER.loops.T, 0)
    loops = [tuple(link[1:] for link in TRIGGER.loop_links(i)) for i in range(5)]
    for found, listed in zip(loops, ["1231", "13541", "13561", "1261", "1241"], strict=True):
        assert "".join(found) in (listed, listed[::-1])


def test_thesis_crank_slider_with_four_bar_2_6_without_its_contact():
    """Two loops, 1-2-3-4 and 1-5-6-7, and two degrees of freedom while the contact is open."""
    mech = mbs.Mechanism(
        bodies("2", "3", "4", "5", "6", "7"),
        [
            mbs.Revolute("R12", "ground", "2"),
            mbs.Revolute("R23", "2", "3", (1.0, 0.0)),
            mbs.Revolute("R34", "3", "4", (3.0, 0.0)),
            mbs.Prismatic("P14", "ground", "4", start=4.0),
            mbs.Revolute("R15", "ground", "5", (6.0, 0.0), start=1.2),
            mbs.Revolute("R56", "5", "6", (2.0, 0.0), start=-1.2),
            mbs.Revolute("R67", "6", "7", (3.0, 0.0), (2.5, 0.0)),
            mbs.Revolute("R17", "ground", "7", (9.0, 0.0), start=1.4),
        ],
    )
    assert {mech.topology.loop_links(i) for i in range(2)} == {
        ("ground", "2", "3", "4", "ground"),
        ("ground", "5", "6", "7", "ground"),
    }
    found = mbs.mobility(mech)
    assert (found.counted, found.freedom) == (2, 2)


def test_open_branches_and_free_bodies():
    mech = mbs.Mechanism(
        [*four_bar().bodies, *bodies("arm", "hand", "dust")],
        [
            *four_bar().joints,
            mbs.Revolute("E", "coupler", "arm"),
            mbs.Revolute("F", "arm", "hand"),
            mbs.Planar("drift", "ground", "dust"),
        ],
    )
    assert mech.topology.open_branches == ("arm", "hand", "dust")
    assert mech.planar and len(mech.coordinates) == 4 + 2 + 3


@st.composite
def graphs(draw):
    """A connected graph of up to nine links: a random tree and a few more joints."""
    n = draw(st.integers(2, 9))
    joints = [(draw(st.integers(0, i - 1)), i) for i in range(1, n)]
    for _ in range(draw(st.integers(0, 5))):
        a, b = draw(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda ab: ab[0] != ab[1]))
        joints.append((a, b))
    joints = draw(st.permutations([draw(st.sampled_from([(a, b), (b, a)])) for a, b in joints]))
    return mbs.topology([str(i) for i in range(n)], [(f"J{k}", str(a), str(b)) for k, (a, b) in enumerate(joints)])


@given(graphs())
@settings(max_examples=100, deadline=None)
def test_laws_of_any_graph(graph):
    """N_loops = N_joints - N_links + 1, Gamma Pi^T = 0, the loops are independent, paths lead from the root."""
    n_links, n_joints = graph.incidence.shape
    assert len(graph.loops) == n_joints - n_links + 1 and len(graph.tree) == n_links - 1
    np.testing.assert_array_equal(graph.incidence @ graph.loops.T, 0)
    if len(graph.loops):
        assert np.linalg.matrix_rank(graph.loops) == len(graph.loops)
    for link in range(1, n_links):
        ends = np.zeros(n_links)
        ends[0], ends[link] = -1, 1
        np.testing.assert_array_equal(graph.incidence @ graph.paths[link], ends)
