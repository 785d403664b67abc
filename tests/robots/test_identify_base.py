"""Base parameters against those of the literature, against ranks, and against torques."""

import numpy as np
import pytest
from kinds import EVERY
from numpy.testing import assert_allclose, assert_array_equal
from tangents import state_of

import screwdyn as sd
from screwdyn.robots.identification import base_parameters
from screwdyn.testing import random_tree

G, LENGTH = 9.81, 0.8


def planar(gravity, **joint):
    """Two links in a plane, whose frames are at their joints."""
    tree = sd.KinematicTree(gravity=gravity)
    body = sd.Inertia.box(2.0, (0.5, 0.1, 0.1), (0.3, 0.1, 0))
    tree.attach(body, to="base", joint=sd.revolute("z", name="shoulder", **joint), name="upper")
    tree.attach(body, to="upper", joint=sd.revolute("z", name="elbow", **joint), at=(LENGTH, 0, 0), name="lower")
    return tree


def test_a_planar_arm_has_the_base_parameters_of_the_textbook():
    upright = base_parameters(planar((0, -G, 0)))
    names = ("upper.hx + 0.8 lower.m", "upper.hy", "upper.Izz + 0.64 lower.m", "lower.hx", "lower.hy", "lower.Izz")
    assert upright.names == names
    assert upright.units == ("kg m", "kg m", "kg m²", "kg m", "kg m", "kg m²")
    body = planar(0 * np.ones(3)).link("upper").inertia
    m, (hx, hy, _), Izz = body.mass, body.first_moment, body.origin_tensor[2, 2]
    assert_allclose(upright.values, [hx + LENGTH * m, hy, Izz + LENGTH**2 * m, hx, hy, Izz], rtol=1e-12)
    # On a table, the first moments of the link at the base have no influence.
    level = base_parameters(planar((0, 0, -G)))
    assert level.names == (names[2], *names[3:])


@pytest.mark.slow
def test_the_puma_has_36():
    """H. Mayeda, K. Yoshida, K. Osuka, IEEE ICRA 1988; W. Khalil, F. Bennis, Int. J. Robotics Research 14, 1995."""
    puma = sd.robots.puma560()
    base = base_parameters(puma)
    assert len(base) == 36
    assert base.matrix.shape == (36, 60)
    # Of the first link, only the moment about its axis: gravity is parallel to it.
    assert [name for name in base.names if name.startswith("link1.")] == [base.names[0]]
    assert base.names[0].startswith("link1.Iyy ")
    # Whatever the upper arm carries moves its centre of mass by its length.
    assert base.names[1] == "link2.hx + " + " + ".join(f"0.4318 link{k}.m" for k in range(2, 7))
    assert len(base_parameters(puma, friction=True)) == 36 + 18


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [("revolute", "prismatic", "helical"), ("spherical", "planar"), EVERY])
def test_base_parameters_give_the_torques_of_any_tree(kinds):
    rng = np.random.default_rng(0)
    tree = random_tree(rng, 3, kinds)
    base = base_parameters(tree)
    states = [state_of(tree, rng) for _ in range(3)]
    motion = [np.array([getattr(x, name) for x in states]) for name in ("q", "qd", "qdd")]
    torques = tree.inverse_dynamics(*motion)
    assert_allclose(base.regressor(*motion) @ base.values, torques, rtol=1e-6, atol=1e-7 * (1 + np.abs(torques).max()))
    # As many as the rank, and the combinations are those that it can see.
    count = 12 * len(tree.links)
    more = [np.array([getattr(state_of(tree, rng), name) for _ in range(count)]) for name in ("q", "qd", "qdd")]
    Y = tree.derivatives.regressor(*more).reshape(-1, 10 * len(tree.links) - 10)
    size = np.linalg.norm(Y, axis=0)
    scaled = Y / np.where(size > 0, size, 1)
    assert np.linalg.matrix_rank(scaled, tol=1e-8 * np.linalg.norm(scaled, 2)) == len(base)
    assert_allclose(Y, Y[:, base.kept] @ base.matrix, atol=1e-6 * np.abs(Y).max())


def test_some_states_determine_fewer():
    tree, q = planar((0, -G, 0)), np.random.default_rng(0).uniform(-2, 2, (30, 2))
    still = base_parameters(tree, q, 0 * q, 0 * q)
    assert still.names == ("upper.hx + 0.8 lower.m", "upper.hy", "lower.hx", "lower.hy")
    assert still.condition >= 1
    assert len(base_parameters(tree, q, q[::-1], q[::-1])) == 6


def test_base_parameters_are_estimated_with_their_covariance():
    tree = planar((0, -G, 0), damping=0.4, friction=0.2)
    rng = np.random.default_rng(1)
    q, qd, qdd = rng.uniform(-2, 2, (3, 100, 2))
    tau = tree.inverse_dynamics(q, qd, qdd) - tree.joint_force(q, qd) + rng.normal(0, 0.1, (100, 2))
    base = base_parameters(tree, friction=True)
    guess = base_parameters(sd.KinematicTree.from_json(tree.to_json()), friction=True)
    assert_array_equal(guess.values, base.values)
    found = base.estimate(q, qd, qdd, tau)
    assert found.names == base.names
    error = found.values - base.values
    assert error @ np.linalg.solve(found.covariance, error) < 50
    assert_allclose(found.noise, 0.1, rtol=0.3)
    assert_allclose([found.friction["elbow"].viscous, found.friction["shoulder"].dry], [0.4, 0.2], atol=0.1)
    columns = (base.regressor(q, qd, qdd) / found.noise[:, None]).reshape(-1, len(base))
    assert_allclose(found.covariance, np.linalg.inv(columns.T @ columns), rtol=1e-6, atol=1e-12)
    # With the friction of the tree known, it is subtracted.
    known = base_parameters(tree).estimate(q, qd, qdd, tau, noise=[0.1, 0.1])
    assert_allclose(known.values, found.values[:6], atol=0.2)
    assert known.friction == {}


def test_what_samples_do_not_determine_is_named_and_keeps_its_value():
    tree, q = planar((0, -G, 0)), np.random.default_rng(2).uniform(-2, 2, (30, 2))
    tau = tree.gravity_vector(q)
    with pytest.warns(sd.ScrewdynWarning, match=r"\(upper.Izz \+ 0.64 lower.m\); \(lower.Izz\); give motions"):
        found = base_parameters(tree).estimate(q, 0 * q, 0 * q, tau, noise=0.1)
    assert_allclose(found.values, base_parameters(tree).values, atol=1e-12)
    assert_array_equal(np.isinf(found.standard_errors), [False, False, True, False, False, True])


def test_it_lists_itself():
    lines = repr(base_parameters(planar((0, -G, 0)))).splitlines()
    assert lines[0].startswith("6 base parameters of 20; condition number ")
    assert lines[1].split(maxsplit=3) == ["2.2", "kg", "m", "upper.hx + 0.8 lower.m"]


def test_wrong_arguments_are_named():
    tree = planar((0, -G, 0))
    with pytest.raises(sd.ScrewdynError, match="q, qd and qdd of the states, or none"):
        base_parameters(tree, np.zeros((5, 2)))
    with pytest.raises(sd.ShapeError, match="q has shape"):
        base_parameters(tree, *np.zeros((3, 5, 3)))
    with pytest.raises(sd.ScrewdynError, match="no coordinates"):
        base_parameters(sd.KinematicTree())
