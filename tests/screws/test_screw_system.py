"""Orders known from geometry, and reciprocity."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from screwdyn.core.errors import ShapeError
from screwdyn.screws.screw import Ad, exp, reciprocal_product, screw_from_axis
from screwdyn.screws.screw_system import ScrewSystem, reciprocal_system, system_basis, system_order

RNG = np.random.default_rng(7)
number = st.floats(-3.0, 3.0, allow_subnormal=False)
poses = st.tuples(*[number] * 6).map(lambda V: exp(np.array(V)))

PLANAR = screw_from_axis("z", RNG.normal(size=(5, 3)))
SPHERICAL = screw_from_axis(RNG.normal(size=(5, 3)), (0.3, -0.2, 0.5))
SCHOENFLIES = np.vstack([screw_from_axis("z", RNG.normal(size=(3, 3))), screw_from_axis("z", pitch=np.inf)])
SYSTEMS = [
    (np.zeros((0, 6)), 0),
    (np.zeros((3, 6)), 0),
    (screw_from_axis("z"), 1),
    (screw_from_axis("z", [(0, 0, 0), (0, 0, 5.0), (0, 0, -2.0)]), 1),
    (screw_from_axis("z", pitch=[0.0, 1.0, np.inf]), 2),  # a cylindrical joint
    (screw_from_axis("z", [(0, 0, 0), (1.0, 0, 0), (2.0, 0, 0)]), 2),  # three parallel axes in one plane
    (PLANAR, 3),
    (SPHERICAL, 3),
    (screw_from_axis(RNG.normal(size=(4, 3)), pitch=np.inf), 3),
    (SCHOENFLIES, 4),
    (RNG.normal(size=(5, 6)), 5),
    (RNG.normal(size=(9, 6)), 6),
]


@pytest.mark.parametrize(("screws", "order"), SYSTEMS)
def test_order_and_basis(screws, order):
    basis = system_basis(screws)
    assert system_order(screws) == order
    assert basis.shape == (order, 6)
    np.testing.assert_allclose(basis @ basis.T, np.eye(order), atol=1e-14)
    np.testing.assert_allclose(screws @ basis.T @ basis, screws, atol=1e-13)


@pytest.mark.parametrize(("screws", "order"), SYSTEMS)
def test_reciprocal_system_is_reciprocal_and_complete(screws, order):
    others = reciprocal_system(screws)
    assert others.shape == (6 - order, 6)
    np.testing.assert_allclose(others @ others.T, np.eye(6 - order), atol=1e-14)
    products = reciprocal_product(np.reshape(screws, (-1, 1, 6)), others)
    np.testing.assert_allclose(products, np.zeros_like(products), atol=1e-13)
    again = system_basis(reciprocal_system(others))
    np.testing.assert_allclose(again.T @ again, system_basis(screws).T @ system_basis(screws), atol=1e-13)


@pytest.mark.parametrize(("screws", "order"), SYSTEMS)
def test_components_of_a_system_are_coordinates(screws, order):
    system = ScrewSystem.of(screws)
    assert system.order == order
    np.testing.assert_array_equal(system.basis[:, list(system.components)], np.eye(order))
    J = np.reshape(screws, (-1, 6)).T
    np.testing.assert_allclose(system.basis.T @ system.jacobian(J), J, atol=1e-13)
    M = np.diag([1.0, 2, 3, 4, 5, 6])
    twist = system.basis.T @ np.arange(1.0, order + 1)
    own = system.jacobian(twist[:, None])
    np.testing.assert_allclose(own.T @ system.inertia(M) @ own, twist @ M @ twist, rtol=1e-13)


def test_components_are_rotations_where_screws_turn():
    assert ScrewSystem.of(SPHERICAL).components == (0, 1, 2)
    assert ScrewSystem.of(PLANAR).components == (2, 3, 4)
    np.testing.assert_array_equal(ScrewSystem.of(PLANAR).basis, np.eye(6)[[2, 3, 4]])


def test_a_planar_arm_feels_no_force_across_and_no_moment_in_its_plane():
    others = reciprocal_system(PLANAR)  # in axis coordinates [w; v]: a wrench's force is in w
    np.testing.assert_allclose(others[:, [0, 1, 5]], np.zeros((3, 3)), atol=1e-13)


@pytest.mark.parametrize(("screws", "order"), SYSTEMS)
@given(T=poses)
def test_order_is_the_same_in_every_frame(screws, order, T):
    assert system_order(screws @ Ad(T).T) == order


def test_order_does_not_depend_on_the_lengths_of_the_screws():
    assert system_order([[0, 0, 1e-8, 0, 0, 0], [0, 0, 0, 1e8, 0, 0]]) == 2
    assert system_order(PLANAR * np.geomspace(1e-9, 1e9, 5)[:, None]) == 3


def test_a_stack_of_jacobians_is_one_system():
    assert system_order(np.reshape(np.vstack([PLANAR, SPHERICAL]), (2, 5, 6))) == 5


def test_what_is_no_screw_is_refused():
    with pytest.raises(ShapeError, match=r"\(\.\.\., 6\), got \(2, 5\)"):
        system_order(np.zeros((2, 5)))
    with pytest.raises(ShapeError, match="not finite"):
        system_basis([0, 0, np.nan, 0, 0, 0])
    for words in ("screw", [["0"] * 6], None, [[1], [1, 2]]):
        with pytest.raises(ShapeError, match="screws must be an array of numbers"):
            system_order(words)
    with pytest.raises(ShapeError, match=r"got \(\)"):
        system_order(3)
