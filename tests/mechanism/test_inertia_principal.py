"""Ball's principal screws of inertia in both directions (Laus Eqs. 2-11), principal axes and radii of gyration."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from screwdyn.core.errors import InertiaError, ShapeError
from screwdyn.mechanism.inertia import Inertia
from screwdyn.screws.screw import exp, pitch

coordinate = st.floats(-2.0, 2.0, allow_subnormal=False)
vectors = st.tuples(coordinate, coordinate, coordinate).map(np.array)
lengths = st.floats(0.05, 2.0)
masses = st.floats(0.1, 20.0)
bodies = st.builds(
    lambda m, size, com, turn: Inertia.box(m, size, com).transformed(exp(np.append(turn, (1.0, -2.0, 0.5)))),
    masses,
    st.tuples(lengths, lengths, lengths),
    vectors,
    vectors,
)
LAUS = Inertia.from_radii_of_gyration(3.0, (0.4, 0.35, 0.3))
DEGENERATE = [
    Inertia.point(2.0, (1.0, -2.0, 3.0)),
    Inertia.rod(2.0, 0.6, (1.0, 2.0, -1.0), (4.0, 5.0, 6.0)),
    Inertia.cylinder(2.0, 0.1, 0.4, (1.0, 1.0, 1.0), (0.3, 0.0, 0.0)),
    Inertia.sphere(2.0, 0.3, (0.0, 0.0, 9.0)),
    Inertia.planar(2.0, (0.3, 0.1), 0.05),
]


def close(a, b, tol=1e-13):
    np.testing.assert_allclose(a, b, rtol=tol, atol=tol)


def test_principal_screws_are_those_of_laus_equations_2_to_7():
    a, b, c = 0.4, 0.35, 0.3
    expected = [
        [a, 0, 0, 1, 0, 0],
        [-a, 0, 0, 1, 0, 0],
        [0, b, 0, 0, 1, 0],
        [0, -b, 0, 0, 1, 0],
        [0, 0, c, 0, 0, 1],
        [0, 0, -c, 0, 0, 1],
    ]
    close(LAUS.principal_screws, expected, 1e-15)
    # Eq. 8; the printed product has [0, 0, -c] in its last row, a misprint of c^2 and 1 on the diagonal
    S = LAUS.principal_screws
    close(S.T @ S, 2.0 * np.diag([a**2, b**2, c**2, 1.0, 1.0, 1.0]), 1e-15)


@given(masses, st.tuples(lengths, lengths, lengths), vectors, vectors)
def test_com_matrix_is_laus_equation_10(m, size, rotvec, com):
    R = Rotation.from_rotvec(rotvec).as_matrix()
    radii = np.sqrt(Inertia.box(1.0, size).principal_moments)
    body = Inertia.from_radii_of_gyration(m, radii, R, com)
    S = Inertia.from_radii_of_gyration(m, radii).principal_screws
    T = np.block([[R, np.zeros((3, 3))], [np.zeros((3, 3)), R]])
    close(body.com_matrix, 0.5 * m * T @ S.T @ S @ T.T, 1e-12)
    close(body.com_matrix, 0.5 * m * body.principal_screws.T @ body.principal_screws, 1e-12)
    close(np.sort(body.radii_of_gyration), np.sort(radii), 1e-12)


@given(bodies)
def test_principal_screws_and_back(body):
    S = body.principal_screws
    again = Inertia.from_principal_screws(body.mass, S, body.com)
    close(again.matrix, body.matrix, 1e-11)
    shuffled = S[[4, 1, 0, 5, 3, 2]] * np.array([1.0, -1.0, 1.0, 1.0, -1.0, -1.0])[:, None]
    close(Inertia.from_principal_screws(body.mass, shuffled, body.com).matrix, body.matrix, 1e-11)


@given(bodies)
def test_principal_screws_are_screws_with_the_radii_as_pitches(body):
    S = np.roll(body.principal_screws, 3, axis=1)  # direction first
    radii = body.radii_of_gyration
    close(pitch(S), np.column_stack([radii, -radii]).ravel(), 1e-12)
    close(body.mass * radii**2, body.principal_moments, 1e-11)


@given(bodies)
def test_principal_screws_are_conjugate(body):
    # Ball: an impulse along one starts a twist about the same one; the six are mutually conjugate
    S = np.roll(body.principal_screws, 3, axis=1)
    products = S @ body.com_matrix @ S.T
    close(products, np.diag(np.diag(products)), 1e-11)


@pytest.mark.parametrize("body", DEGENERATE)
def test_degenerate_principal_axes_are_still_a_rotation(body):
    body = body.transformed(exp([0.4, -0.2, 0.9, 0.0, 0.0, 0.0]))
    R, moments = body.principal_axes, body.principal_moments
    close(R.T @ R, np.eye(3), 1e-14)
    close(np.linalg.det(R), 1.0, 1e-14)
    close((R * moments) @ R.T, body.tensor, 1e-14)
    close(body.com_matrix, 0.5 * body.mass * body.principal_screws.T @ body.principal_screws, 1e-14)
    again = Inertia.from_principal_screws(body.mass, body.principal_screws, body.com)
    close(again.matrix, body.matrix, 1e-12)


@pytest.mark.parametrize("moments", [(3, 2, 1.5), (1.5, 3, 2), (2, 2, 3), (1, 1, 1), (0, 0, 0), (0, 1, 1), (1, 0, 1)])
def test_a_diagonal_tensor_keeps_the_link_axes_in_their_order(moments):
    body = Inertia(2.0, 0, moments)
    close(body.principal_axes, np.eye(3), 0.0)
    close(body.principal_moments, moments, 0.0)
    close(body.radii_of_gyration, np.sqrt(np.array(moments) / 2.0), 1e-15)


@given(vectors)
def test_principal_axes_are_a_rotation_at_any_turn(rotvec):
    R = Rotation.from_rotvec(2.0 * rotvec).as_matrix()
    body = Inertia.from_radii_of_gyration(1.0, (0.4, 0.35, 0.3), R)
    close(np.linalg.det(body.principal_axes), 1.0, 1e-14)
    assert (np.diag(body.principal_axes) > 0.4).all()
    close((body.principal_axes * body.principal_moments) @ body.principal_axes.T, body.tensor, 1e-14)


@given(st.tuples(*[st.floats(-0.5, 0.5)] * 3))
def test_principal_axes_follow_a_small_turn(rotvec):
    R = Rotation.from_rotvec(rotvec).as_matrix()
    body = Inertia.from_radii_of_gyration(1.0, (0.4, 0.35, 0.3), R)
    close(body.principal_axes, R, 1e-12)
    close(body.radii_of_gyration, (0.4, 0.35, 0.3), 1e-12)


def test_what_are_no_principal_screws_is_refused():
    S = LAUS.principal_screws
    for bad in (S[:, [3, 4, 5, 0, 1, 2]], S * 2.0, S[[0, 0, 2, 3, 4, 5]], np.abs(S)):
        with pytest.raises(InertiaError, match="principal screws"):
            Inertia.from_principal_screws(3.0, bad)
    with pytest.raises(InertiaError, match="shape"):
        Inertia.from_principal_screws(3.0, S[:5])
    with pytest.raises(InertiaError, match="triangle"):
        Inertia.from_radii_of_gyration(1.0, (0.1, 0.1, 0.3))
    with pytest.raises(InertiaError, match="not negative"):
        Inertia.from_radii_of_gyration(1.0, (0.1, 0.1, -0.1))
    with pytest.raises(ShapeError, match="principal axes"):
        Inertia.from_radii_of_gyration(1.0, (0.1, 0.1, 0.1), 2.0 * np.eye(3))
