"""Matrices, sums, frames and parameters of bodies, and invalid input."""

import copy
import math
import pickle
import warnings

import numpy as np
import pytest
import sympy
from bodies import SHAPES, bodies, close, masses, of_points, poses, vectors
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from screwdyn.core.errors import InertiaError, ScrewdynError, ScrewdynWarning
from screwdyn.mechanism.inertia import Inertia
from screwdyn.screws.screw import Ad, exp, inverse, pose, virtual_power


def test_three_moments_or_a_whole_tensor():
    close(Inertia(1.0, 0, (1.0, 2.0, 2.5)).tensor, np.diag([1.0, 2.0, 2.5]), 0.0)
    tensor = [[2.0, 0.1, 0.2], [0.1, 2.0, 0.3], [0.2, 0.3, 2.0]]
    close(Inertia(1.0, (0, 0, 1), tensor).tensor, tensor, 0.0)
    assert Inertia(1.0) == Inertia(1.0, (0, 0, 0), np.zeros((3, 3))) == Inertia.point(1.0)


# matrices -----------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(masses, vectors), min_size=1, max_size=6))
def test_points_welded_together_are_the_sum_over_points(points):
    body = Inertia.point(*points[0])
    for m, r in points[1:]:
        body = body + Inertia.point(m, r)
    expected = of_points([m for m, _ in points], [r for _, r in points])
    close(body.matrix, expected, 1e-11)
    assert body.is_physical


@given(bodies)
def test_matrix_has_the_documented_blocks(body):
    c, m = body.com, body.mass
    hat = np.cross(np.eye(3), m * c)
    close(body.first_moment, m * c)
    close(body.matrix, np.block([[body.origin_tensor, hat], [-hat, m * np.eye(3)]]))
    upper = body.matrix[:3, :3][np.triu_indices(3)]
    close(body.parameters, [body.matrix[3, 3], *(m * c), *upper])
    close(body.origin_tensor, body.tensor - m * np.cross(np.eye(3), c) @ np.cross(np.eye(3), c), 1e-11)
    close(body.com_matrix, np.block([[body.tensor, np.zeros((3, 3))], [np.zeros((3, 3)), m * np.eye(3)]]))


@given(bodies)
def test_com_matrix_is_the_matrix_moved_to_the_centre_of_mass(body):
    X = Ad(pose(np.eye(3), body.com))
    close(X.T @ body.matrix @ X, body.com_matrix, 1e-10)


@given(bodies, poses, st.tuples(*[st.floats(-2.0, 2.0)] * 6).map(np.array))
def test_transformed_keeps_the_kinetic_energy(body, T, V):
    moved = body.transformed(T)
    X = Ad(inverse(T))
    close(moved.matrix, X.T @ body.matrix @ X, 1e-10)
    W = Ad(T) @ V
    close(virtual_power(W, moved.matrix @ W), virtual_power(V, body.matrix @ V), 1e-9)


@given(bodies, poses, poses)
def test_transformed_composes_and_comes_back(body, A, B):
    close(body.transformed(A).transformed(B).matrix, body.transformed(B @ A).matrix, 1e-10)
    close(body.transformed(A).transformed(inverse(A)).matrix, body.matrix, 1e-10)


def test_parallel_axis_theorem_by_hand():
    # a rod about its end: m l^2 / 3
    rod = Inertia.rod(3.0, 2.0, "x").transformed((1.0, 0.0, 0.0))
    close(rod.origin_tensor, np.diag([0.0, 4.0, 4.0]))
    # a solid sphere about a tangent: 7 m r^2 / 5
    close(Inertia.sphere(5.0, 1.0, (0.0, 1.0, 0.0)).origin_tensor, np.diag([7.0, 2.0, 7.0]))


def test_a_quarter_turn_exchanges_moments():
    R = Rotation.from_euler("z", 90, degrees=True).as_matrix()
    body = Inertia.box(12.0, (1.0, 2.0, 3.0), (1.0, 0.0, 0.0)).transformed(pose(R, (0.0, 0.0, 5.0)))
    close(body.tensor, np.diag([10.0, 13.0, 5.0]))
    close(body.com, (0.0, 1.0, 5.0))


@given(bodies, bodies, bodies)
def test_welding_adds_matrices_in_any_order(a, b, c):
    close((a + b).matrix, a.matrix + b.matrix, 1e-10)
    close(((a + b) + c).matrix, (a + (c + b)).matrix, 1e-10)
    assert (a + b).is_physical


@given(bodies)
def test_matrix_and_back(body):
    again = Inertia.from_matrix(body.matrix)
    close(again.matrix, body.matrix, 1e-11)


@pytest.mark.parametrize("body", SHAPES)
@pytest.mark.parametrize("far", [0.0, 1.0, 1e3])
def test_matrix_and_back_at_the_edge_of_possibility(body, far):
    body = body.transformed(exp([0.3, -0.8, 0.5, far, -far, far]))
    again = Inertia.from_matrix(body.matrix)
    assert again.is_physical
    close(again.com, body.com, 1e-12 * max(1.0, far))
    close(again.tensor, body.tensor, 1e-14 * max(10.0, far**2))


@given(bodies)
def test_ten_parameters_and_back(body):
    again = Inertia.from_parameters(body.parameters)
    close(again.parameters, body.parameters, 1e-11)
    close(again.matrix, Inertia.from_matrix(body.matrix).matrix, 1e-15)


@pytest.mark.parametrize("body", SHAPES)
def test_ten_parameters_and_back_at_the_edge_of_possibility(body):
    again = Inertia.from_parameters(body.parameters)
    assert again.is_physical
    close(again.com, body.com, 1e-12)
    close(again.tensor, body.tensor, 1e-13)


def test_ten_parameters_are_about_the_origin_in_the_order_of_the_field():
    # Two points of 1 kg: the integrals are sums.
    points = np.array([[1.0, 2.0, 3.0], [-0.5, 0.25, 2.0]])
    (x, y, z), (xx, yy, zz) = points.T, (points**2).sum(axis=0)
    expected = [2, *points.sum(axis=0), yy + zz, -x @ y, -x @ z, xx + zz, -y @ z, xx + yy]
    body = Inertia.from_parameters(expected)
    close(body.com, points.mean(axis=0))
    close(body.parameters, expected)
    close(sum(principal := body.principal_moments), 2 * principal.max())


def test_ten_parameters_may_be_expressions():
    m, c, J = sympy.symbols("m c J")
    body = Inertia.from_parameters([m, m * c, 0, 0, J, 0, 0, J + m * c**2, 0, J + m * c**2])
    assert sympy.simplify(body.com[0] - c) == 0
    assert sympy.simplify(body.tensor[2, 2] - J) == 0


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ([0.0] * 10, "mass 0 kg is not positive"),
        ([-2.0, *[0.0] * 9], "mass -2 kg is not positive"),
        ([1.0, 1.0, 0, 0, *[0.0] * 6], "principal moment -1 kg m^2 is negative"),
        ([1.0, 1.0, 0, 0, 1, 0, 0, 2, 0, 4], "triangle inequality: 1 + 1 < 3"),
        ([1.0] * 9, "ten finite numbers"),
        ([math.nan] * 10, "ten finite numbers"),
    ],
)
def test_ten_parameters_that_no_body_has_are_refused_by_condition(parameters, reason):
    with pytest.raises(InertiaError) as error:
        Inertia.from_parameters(parameters)
    assert reason in str(error.value)


def test_what_is_no_inertia_matrix_is_refused():
    good = SHAPES[3].matrix
    for i, j in [(0, 3), (1, 3), (3, 1), (3, 3), (4, 5), (0, 1)]:
        bad = good.copy()
        bad[i, j] += 0.1
        with pytest.raises(InertiaError):
            Inertia.from_matrix(bad)
    with pytest.raises(InertiaError, match="mass 0 kg is not positive"):
        Inertia.from_matrix(np.zeros((6, 6)))
    with pytest.raises(InertiaError, match="6x6 and finite"):
        Inertia.from_matrix(good[:5])
    with pytest.raises(InertiaError, match="6x6 and finite"):
        Inertia.from_matrix(np.full((6, 6), math.nan))
    bad = good.copy()
    bad[:3, :3] -= SHAPES[3].tensor - np.diag([1.0, 1.0, 3.0])
    with pytest.raises(InertiaError, match="triangle inequality"):
        Inertia.from_matrix(bad)


# impossible bodies ---------------------------------------------------------------------------------

IMPOSSIBLE = [
    (0.0, 0.0, "mass 0 kg is not positive"),
    (-1.0, 0.0, "mass -1 kg is not positive"),
    (1.0, (1.0, 2.0, 4.0), "triangle inequality: 1 + 2 < 4"),
    (1.0, (-0.1, 1.0, 1.0), "moment -0.1 kg m^2 is negative"),
]
SENSELESS = [
    (math.nan, 0, 0, "mass nan is not finite"),
    (math.inf, 0, 0, "mass inf is not finite"),
    (1.0, (0, math.nan, 0), 0, "com is not finite"),
    (1.0, 0, (1.0, math.nan, 1.0), "tensor is not finite"),
    (1.0, 0, np.eye(3) + np.eye(3, k=1), "not symmetric"),
    (1.0, (0, 0), 0, "com must be a 3-vector"),
    (1.0, 2.0, 0, "com must be a 3-vector"),
    (1.0, 0, 2.0, "tensor must be 3x3, 3 principal moments or 0"),
    (1.0, 0, np.eye(2), "tensor must be 3x3, 3 principal moments or 0"),
    ((1.0, 2.0), 0, 0, "mass must be one number"),
    ("heavy", 0, 0, "mass must be numbers"),
]


@pytest.mark.parametrize(("mass", "tensor", "reason"), IMPOSSIBLE)
def test_an_impossible_body_is_refused_by_condition(mass, tensor, reason):
    with pytest.raises(InertiaError) as error:
        Inertia(mass, (0.1, 0.0, 0.0), tensor)
    assert reason in str(error.value)


@pytest.mark.parametrize(("mass", "tensor", "reason"), IMPOSSIBLE)
def test_effective_accepts_it_with_a_warning(mass, tensor, reason):
    with pytest.warns(ScrewdynWarning) as record:
        body = Inertia.effective(mass, (0.1, 0.0, 0.0), tensor)
    assert reason in str(record[0].message)
    assert record[0].filename == __file__
    assert not body.is_physical
    assert reason in str(body.failing_condition)
    assert body.mass == mass


@pytest.mark.parametrize(("mass", "com", "tensor", "reason"), SENSELESS)
@pytest.mark.parametrize("make", [Inertia, Inertia.effective])
def test_senseless_numbers_are_refused_by_both(make, mass, com, tensor, reason):
    with pytest.raises(InertiaError) as error:
        make(mass, com, tensor)
    assert reason in str(error.value)


def test_effective_is_silent_about_a_possible_body():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Inertia.effective(2.0, 0, (1.0, 1.0, 1.0)) == Inertia(2.0, 0, (1.0, 1.0, 1.0))


def test_an_effective_body_moves_and_welds_without_another_warning():
    with pytest.warns(ScrewdynWarning):
        link = Inertia.effective(0.0, (0.1, 0.2, 0.3), (0.0, 0.35, 0.0))  # PUMA's link 1
    with pytest.warns(ScrewdynWarning):
        nothing = Inertia.effective(0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        close((link + nothing).matrix, link.matrix)
        close((nothing + nothing).matrix, np.zeros((6, 6)))
        tool = Inertia.box(2.0, (0.1, 0.2, 0.3), (0.5, 0.0, 0.0))
        close((link + tool).matrix, link.matrix + tool.matrix)
        close((tool + nothing).matrix, tool.matrix)
        T = exp([0.1, 0.2, 0.3, 1.0, 2.0, 3.0])
        X = Ad(inverse(T))
        close(link.transformed(T).matrix, X.T @ link.matrix @ X)
    with pytest.raises(InertiaError, match="no radii of gyration: mass 0"):
        _ = link.principal_screws


def test_masses_that_cancel():
    tool = Inertia.box(2.0, (0.1, 0.2, 0.3), (0.5, 0.0, 0.0))
    with pytest.warns(ScrewdynWarning):
        correction = Inertia.effective(-2.0, tool.com, -tool.tensor)
    close((tool + correction).matrix, np.zeros((6, 6)))
    with pytest.raises(InertiaError, match="first moments do not"):
        tool.transformed((0.1, 0.0, 0.0)) + correction


@pytest.mark.parametrize(
    "make",
    [
        lambda: Inertia.rod(1.0, -1.0),
        lambda: Inertia.box(1.0, (1.0, -1.0, 1.0)),
        lambda: Inertia.box(1.0, (1.0, 1.0)),
        lambda: Inertia.cylinder(1.0, -1.0, 1.0),
        lambda: Inertia.cylinder(1.0, 1.0, math.nan),
        lambda: Inertia.sphere(1.0, math.inf),
        lambda: Inertia.sphere(-1.0, 1.0),
        lambda: Inertia.planar(1.0, (0.0, 0.0), -1.0),
        lambda: Inertia.from_radii_of_gyration(1.0, (1.0, 1.0)),
        lambda: Inertia.rod(1.0, 1e200),
        lambda: Inertia.rod(1.0, 1.0, np.eye(3)),
    ],
)
def test_senseless_shapes_are_refused(make):
    with pytest.raises(InertiaError):
        make()


@pytest.mark.parametrize("bad", ["1", "a", b"1", None, [1, 2], [], 1j, np.datetime64(1, "s"), 10**400, {}])
def test_what_is_no_number_is_refused(bad):
    with pytest.raises(InertiaError, match="mass must be "):
        Inertia(bad)


@pytest.mark.parametrize(
    ("what", "make"),
    [
        ("mass", lambda x: Inertia(x)),
        ("mass", lambda x: Inertia.point(x)),
        ("mass", lambda x: Inertia.rod(x, 1)),
        ("mass", lambda x: Inertia.box(x, (1, 1, 1))),
        ("mass", lambda x: Inertia.cylinder(x, 1, 1)),
        ("mass", lambda x: Inertia.sphere(x, 1)),
        ("mass", lambda x: Inertia.planar(x, (0, 0), 1)),
        ("mass", lambda x: Inertia.from_radii_of_gyration(x, (1, 1, 1))),
        ("mass", lambda x: Inertia.from_principal_screws(x, np.eye(6))),
        ("length", lambda x: Inertia.rod(1, x)),
        ("size", lambda x: Inertia.box(1, x)),
        ("radius", lambda x: Inertia.cylinder(1, x, 1)),
        ("length", lambda x: Inertia.cylinder(1, 1, x)),
        ("radius", lambda x: Inertia.sphere(1, x)),
        ("izz", lambda x: Inertia.planar(1, 0, x)),
        ("radii", lambda x: Inertia.from_radii_of_gyration(1, x)),
        ("screws", lambda x: Inertia.from_principal_screws(1, x)),
        ("matrix", lambda x: Inertia.from_matrix(x)),
        ("parameters", lambda x: Inertia.from_parameters(x)),
        ("tensor", lambda x: Inertia(1, 0, x)),
    ],
)
def test_every_argument_is_named_that_is_no_number(what, make):
    for bad in ("1", [1, 2]):
        with pytest.raises(InertiaError, match=f"^{what} must be "):
            make(bad)


def test_an_axis_without_direction_is_refused():
    with pytest.raises(ScrewdynError, match="no direction"):
        Inertia.rod(1.0, 1.0, (0.0, 0.0, 0.0))


# a value ------------------------------------------------------------------------------------------------


def test_it_cannot_be_changed():
    com, tensor = np.array([1.0, 2.0, 3.0]), np.eye(3)
    body = Inertia(1.0, com, tensor)
    com[0] = tensor[0, 0] = 9.0
    assert body == Inertia(1.0, (1.0, 2.0, 3.0), np.eye(3))
    for array in (body.com, body.tensor, body.transformed(None).tensor, (body + body).com):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0
    with pytest.raises(AttributeError):
        body.mass = 2.0
    with pytest.raises(AttributeError):
        body.colour = "red"


def test_equality_and_hash():
    body, same = Inertia(1.0, (0.0, 1.0, 0.0), np.eye(3)), Inertia(1.0, (-0.0, 1.0, 0.0), np.eye(3))
    assert body == same
    assert hash(body) == hash(same)
    assert body != Inertia(1.0, (0.0, 1.0, 1e-9), np.eye(3))
    assert body != "body"
    with pytest.raises(TypeError):
        body + 1.0


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b))])
def test_copies_are_equal_and_as_unchangeable(again):
    with pytest.warns(ScrewdynWarning):
        body = Inertia.effective(0.0, (1.0, 0.0, 0.0), (0.0, 0.35, 0.0))
    assert again(body) == body
    assert not again(body).tensor.flags.writeable
    assert body.tensor.tolist() == again(body).tensor.tolist()


def test_repr_shows_mass_place_and_moments():
    body = Inertia.box(12.0, (1.0, 2.0, 3.0), (0.5, 0.0, 0.0))
    assert repr(body) == "Inertia(mass=12, com=[0.5, 0, 0], principal_moments=[13, 10, 5])"
