"""The progressive evaluation at one state: each term from its parent's, kept, and the same as by the recursions."""

import pickle

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from kinds import EVERY
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn.core.errors import ShapeError, TopologyError, UnboundSymbolError, UnknownNameError

CRATE = sd.Inertia.box(2.0, (0.3, 0.2, 0.1), com=(0.1, 0.2, -0.3))


@pytest.fixture
def point():
    arm = sd.robots.ur5()
    return arm.at(np.full(6, 0.3), np.arange(6.0))


def agree(point, tree, q, qd):
    """Every term of a point is that of the tree by the recursions, which compute it in other frames."""
    for own, other in zip(point.contributions(), tree.contributions(q, qd), strict=True):
        order = [own.coordinates.index(name) for name in other.coordinates]
        assert_allclose(own.J[:, order], other.J, rtol=0, atol=1e-12)
        assert_allclose(own.J_dot[:, order], other.J_dot, rtol=0, atol=1e-11)
        for term in ("M", "C", "g"):
            expected = getattr(other, term)
            size = np.abs(expected.array).max(initial=1.0)
            assert_allclose(getattr(own, term).matrix(other.coordinates), expected.array, rtol=0, atol=1e-12 * size)
        assert_allclose(point.pose(own.link), tree.forward_kinematics(own.link, q), rtol=0, atol=1e-12)
        assert_allclose(point.twist(own.link), tree.link_twist(own.link, q, qd, "body"), rtol=0, atol=1e-11)
    for term, total in (
        ("M", tree.mass_matrix(q)),
        ("C", tree.coriolis_matrix(q, qd)),
        ("g", tree.gravity_vector(q)),
    ):
        assert_allclose(
            getattr(point, term).matrix(tree.coordinates), total, rtol=0, atol=1e-11 * np.abs(total).max(initial=1.0)
        )


@given(st.integers(0, 2**32 - 1), st.lists(st.sampled_from(EVERY), min_size=2, max_size=5))
def test_terms_are_those_of_the_recursions(seed, kinds):
    rng = np.random.default_rng(seed)
    tree = sd.testing.random_tree(rng, len(kinds) + 2, joints=kinds)
    q, qd = tree.random_configuration(rng), rng.normal(size=tree.nv)
    agree(tree.at(q, qd), tree, q, qd)


def test_rotors_followers_armatures_and_massless_links():
    tree = sd.KinematicTree(gravity=(1.0, -2.0, -9.0))
    rotor = sd.Rotor(1e-2, ratio=30.0)
    tree.attach(CRATE, to="base", joint=sd.revolute("y", name="shoulder", armature=0.3), name="upper")
    tree.attach(CRATE, to="upper", joint=sd.revolute("z", (0.1, 0, 0), rotor=rotor, name="elbow"), at=(0.5, 0, 0))
    tree.attach(sd.Link("frame"), to="payload", at=(0.2, 0, 0))
    follower = sd.revolute("x", name="finger", mimic=sd.Mimic("elbow", -0.5, 0.2), armature=0.1)
    tree.attach(CRATE, to="upper", joint=follower, name="beside")
    tree.attach(CRATE, to="frame", joint=sd.prismatic("x", name="inner", mimic=sd.Mimic("finger", 0.7)), name="beyond")
    q, qd = np.array([0.4, -0.8]), np.array([1.0, -2.0])
    agree(tree.at(q, qd), tree, q, qd)


def test_a_leader_beyond_its_follower_has_one_column():
    arm = sd.robots.ur5()
    arm.replace_joint("shoulder_link", sd.revolute("z", name="first", mimic=sd.Mimic("elbow_joint", 0.5, 0.1)))
    q, qd = np.array([0.4, -0.8, 0.3, 0.7, -0.2]), np.arange(1.0, 6.0)
    point = arm.at(q, qd)
    agree(point, arm, q, qd)
    assert (point.q == q).all() and (point.qd == qd).all()


def test_terms_that_points_share_cannot_be_written(point):
    own = point.contribution("tool0")
    for array in (*own.arrays, own.M.array, point.M.array, point.C.array, point.g.array):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0


def test_attaching_computes_the_new_term_alone(point):
    before = {own.link: own for own in point.contributions()}
    M = point.M
    caught = point.attach(CRATE, to="tool0", joint=sd.spherical(), name="crate", q=[0, 0, 0.6, 0.8], qd=[1, 2, 3])
    assert all(caught.contribution(link) is own for link, own in before.items())
    assert caught.coordinates == (*point.coordinates, "crate[wx]", "crate[wy]", "crate[wz]")
    assert caught.M == M + caught.contribution("crate").M
    agree(caught, caught.tree, caught.q, caught.qd)
    assert "crate" not in point.links
    released = caught.detach("crate")
    assert released.links == point.links
    assert released.contribution("tool0") is before["tool0"]
    agree(released, released.tree, point.q, point.qd)
    agree(released.attach(CRATE, to="forearm_link", name="crate"), *_with_crate(point))


def _with_crate(point):
    tree = point.tree
    tree.attach(CRATE, to="forearm_link", name="crate")
    return tree, point.q, point.qd


def test_points_share_what_either_has_computed(point):
    caught = point.attach(CRATE, to="tool0", name="crate")
    caught.contribution("crate")
    assert point.contribution("tool0") is caught.contribution("tool0")
    assert point.attach(CRATE, to="tool0", name="crate").contribution("crate") == caught.contribution("crate")


def test_closed_loops_change_no_term():
    arm, q, qd = sd.robots.ur5(), np.full(6, 0.3), np.arange(6.0)
    arm.close("tool0", to=arm.base, joint=sd.spherical(), at=arm.forward_kinematics("tool0", q))
    agree(arm.at(q, qd), arm, q, qd)
    two = arm.at(q, qd).attach(arm, to="forearm_link", prefix="other/", q=q, qd=qd)
    assert len(two.tree.loops) == 2
    agree(two, two.tree, two.q, two.qd)


def test_a_copy_from_a_pickle_computes_the_same(point):
    caught = point.attach(CRATE, to="tool0", joint=sd.spherical(), q=[0, 0, 0.6, 0.8])
    assert pickle.loads(pickle.dumps(caught)).contributions() == caught.contributions()


def test_a_point_is_of_the_tree_as_it_was():
    arm = sd.robots.two_link()
    point = arm.at([0.1, 0.2])
    arm.detach("link2")
    assert point.links == ("base", "link1", "link2")
    assert point.contribution("link2").M.shape == (2, 2)
    assert sd.KinematicTree().at([]).M.shape == (0, 0)


def test_wrong_input_is_refused(point):
    arm = sd.robots.two_link()
    with pytest.raises(ShapeError, match="one state"):
        arm.at(np.zeros((3, 2)))
    with pytest.raises(ShapeError, match="theta2"):
        arm.at([0.0])
    with pytest.raises(ShapeError, match="q of the new links must be 1 finite numbers"):
        point.attach(CRATE, to="tool0", joint=sd.revolute("x"), q=[1, 2])
    with pytest.raises(ShapeError, match="qd of the new links"):
        point.attach(CRATE, to="tool0", joint=sd.revolute("x"), qd=[np.nan])
    for wrong in ("a", 1j, [None], sympy.Symbol("a"), [[1.0]]):
        with pytest.raises(ShapeError, match="q of the new links must be 1 finite numbers"):
            point.attach(CRATE, to="tool0", joint=sd.revolute("x"), q=wrong)
    with pytest.raises(ShapeError, match="path to link 'upper_arm_link' are so large"):
        sd.robots.ur5().at(np.zeros(6), [0, 1e308, 0, 0, 0, 0]).contribution("upper_arm_link")
    with pytest.raises(UnknownNameError):
        point.contribution("hand")
    with pytest.raises(TopologyError):
        point.attach(CRATE, to="tool0", name="forearm_link")
    heavy = sd.Inertia(sympy.Symbol("m", positive=True))
    with pytest.raises(UnboundSymbolError, match="m"):
        point.attach(heavy, to="tool0", name="heavy").contribution("heavy")
    arm.attach(heavy, to="link2", name="heavy")
    with pytest.raises(UnboundSymbolError, match="m"):
        arm.at([0.0, 0.0])
