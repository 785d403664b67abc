"""Operational-space inertia with closed loops: two hands on one block by hand, and what confines a link."""

import numpy as np
import pytest
from mechanisms import four_bar
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd

INERTIA, MASSES = np.array([0.2, 0.3, 0.4]), (1.5, 2.5)


def two_free_hands():
    """Two bodies that fly freely, of which the second is welded to the first at (0.3, 0, 0)."""
    tree = sd.KinematicTree()
    for name, mass in zip(("left", "right"), MASSES, strict=True):
        tree.attach(sd.Inertia(mass, 0, np.diag(INERTIA)), to="base", joint=sd.free(), name=name)
    tree.close("right", to="left", at=(0.3, 0, 0), name="hold")
    return tree, tree.assemble(tree.neutral())


def test_of_two_welded_bodies():
    """Together they are one rigid body, whose spatial inertia at its centre of mass is block-diagonal."""
    tree, q = two_free_hands()
    mass, at = sum(MASSES), 0.3 * MASSES[1] / sum(MASSES)
    beyond = MASSES[0] * at**2 + MASSES[1] * (0.3 - at) ** 2
    expected = np.diag([*(2 * INERTIA + [0, beyond, beyond]), mass, mass, mass])
    shift = np.eye(6)
    shift[3:, :3] = -np.array([[0, 0, 0], [0, 0, -at], [0, at, 0]])  # velocity at (at, 0, 0) from that at the origin
    expected = shift.T @ expected @ shift
    found = tree.operational_inertia("left", q, "body")
    assert_allclose(found, expected, rtol=0, atol=1e-12)
    fast = tree.compile().wait()
    assert_array_equal(fast.operational_inertia("left", [q, q], "body"), [found, found])
    assert tree.operational_inertia("left", np.empty((0, tree.nq))).shape == (0, 6, 6)


def test_confined():
    tree, (q, _) = four_bar()
    with pytest.raises(sd.errors.SingularAttachmentError, match="'rocker' cannot move in all six directions"):
        tree.operational_inertia("rocker", q)
    with pytest.raises(sd.UnknownNameError, match="rockr"):
        tree.operational_inertia("rockr", q)
    with pytest.raises(sd.ShapeError):
        tree.operational_inertia("rocker", q[:2])
