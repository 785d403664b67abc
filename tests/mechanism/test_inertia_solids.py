"""Solids of textbooks, and integrals over their volumes."""

import math

import numpy as np
import pytest
from bodies import SHAPES, close, lengths, masses, of_points, vectors
from hypothesis import given

from screwdyn.mechanism.inertia import Inertia


def test_textbook_values():
    close(Inertia.box(12.0, (1.0, 2.0, 3.0)).tensor, np.diag([13.0, 10.0, 5.0]))
    close(Inertia.rod(12.0, 2.0).tensor, np.diag([0.0, 4.0, 4.0]))
    close(Inertia.rod(12.0, 2.0, "z").tensor, np.diag([4.0, 4.0, 0.0]))
    close(Inertia.cylinder(12.0, 1.0, 3.0).tensor, np.diag([12.0, 12.0, 6.0]))
    close(Inertia.cylinder(12.0, 1.0, 3.0, "x").tensor, np.diag([6.0, 12.0, 12.0]))
    close(Inertia.sphere(5.0, 2.0).tensor, 8.0 * np.eye(3))
    close(Inertia.point(5.0, (1.0, 2.0, 3.0)).tensor, np.zeros((3, 3)))
    close(Inertia.planar(2.0, (0.3, 0.1), 0.5).tensor, np.diag([0.25, 0.25, 0.5]))


def test_limits_of_shapes_agree():
    close(Inertia.cylinder(2.0, 0.0, 0.6, "y").tensor, Inertia.rod(2.0, 0.6, "y").tensor)
    close(Inertia.box(2.0, (0.6, 0.0, 0.0)).tensor, Inertia.rod(2.0, 0.6).tensor)
    close(Inertia.rod(2.0, 0.0).tensor, Inertia.point(2.0).tensor)


@pytest.mark.parametrize("body", SHAPES)
def test_shapes_are_possible_and_keep_mass_and_place(body):
    assert body.is_physical
    assert body.failing_condition is None
    assert body.mass == 2.0


def test_a_box_is_the_integral_over_its_volume():
    nodes, weights = np.polynomial.legendre.leggauss(3)  # exact for squares
    size, com = np.array([0.2, 0.5, 1.1]), np.array([0.3, -0.7, 0.4])
    r = np.stack(np.meshgrid(nodes, nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 3) * size / 2 + com
    m = 7.0 * np.einsum("i,j,k->ijk", weights, weights, weights).ravel() / 8.0
    close(Inertia.box(7.0, size, com).matrix, of_points(m, r), 1e-13)


def test_a_cylinder_is_the_integral_over_its_volume():
    nodes, weights = np.polynomial.legendre.leggauss(4)
    angles = np.arange(8) * math.pi / 4
    radius, length = 0.3, 0.9
    r, m = [], []
    for a, wa in zip(nodes, weights, strict=True):
        for b, wb in zip(nodes, weights, strict=True):
            rho, z = radius * (1 + a) / 2, length * b / 2
            r += [(rho * math.cos(t), rho * math.sin(t), z) for t in angles]
            m += [5.0 * wa * wb * (1 + a) / 4 / 8] * 8
    close(Inertia.cylinder(5.0, radius, length).matrix, of_points(m, r), 1e-13)


@given(masses, lengths, vectors.filter(lambda v: np.linalg.norm(v) > 1e-2))
def test_a_rod_along_any_vector_is_two_gauss_points(m, length, v):
    end = v / np.linalg.norm(v) * length / 2 / math.sqrt(3.0)
    close(Inertia.rod(m, length, v).matrix, of_points([m / 2, m / 2], [end, -end]), 1e-12)


def test_a_planar_body_takes_its_centre_in_the_plane_or_in_space():
    assert Inertia.planar(2.0, (0.3, 0.1), 0.5) == Inertia.planar(2.0, (0.3, 0.1, 0.0), 0.5)
    close(Inertia.planar(2.0, (0.3, 0.1, 0.7), 0.5).com, (0.3, 0.1, 0.7), 0.0)
