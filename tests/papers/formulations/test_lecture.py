"""Displayed formulas of the lecture on Lagrangian dynamics: which hold, and what its last section proves."""

import numpy as np
import pytest
from duals import partial
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn import formulations, screw
from screwdyn.testing import random_tree


@pytest.fixture(scope="module")
def tree():
    tree = random_tree(np.random.default_rng(12), 4, joints=("revolute", "prismatic"))
    joint = sd.revolute((1, 2, 3), (0.1, 0.2, 0.3), damping=0.7, friction=0.4)
    tree.attach(sd.Link("hand", sd.Inertia.sphere(1, 0.1)), to="link4", joint=joint, at=(0.1, 0.2, 0.3))
    return tree


@pytest.fixture(scope="module")
def state(tree):
    return np.random.default_rng(9).uniform(-2, 2, (3, tree.nv))


def equal(actual, expected):
    assert_allclose(actual, expected, rtol=1e-10, atol=1e-10)


def test_kinetic_energy_of_the_particles_of_a_body():
    """Eqs. 29 to 34: the translational and the rotational term; the cross term of Eq. 32 vanishes."""
    rng = np.random.default_rng(10)
    masses, points = rng.uniform(0.1, 1, 6), rng.normal(size=(6, 3))
    v, omega = rng.normal(size=(2, 3))
    m, com = masses.sum(), masses @ points / masses.sum()
    r = points - com
    I = sum(k * screw.skew(x).T @ screw.skew(x) for k, x in zip(masses, r, strict=True))
    velocities = v + np.cross(omega, r)
    equal(masses @ (np.cross(omega, r) @ v), 0)
    equal(0.5 * masses @ (velocities**2).sum(axis=1), 0.5 * m * v @ v + 0.5 * omega @ I @ omega)


def test_kinetic_and_potential_energy(tree, state):
    """Eqs. 36 to 38."""
    q, qd, _ = state
    witness = formulations.lagrangian(tree)
    equal(0.5 * qd @ witness.B(q) @ qd, tree.kinetic_energy(q, qd))
    U = -sum(row.m * tree.gravity @ p for row, p in zip(witness.rows, witness.centres(witness.poses(q)), strict=True))
    equal(U, tree.potential_energy(q))


def test_the_vector_form(tree, state):
    """n = Ḃ q̇ − ½ (∂(q̇ᵀ B q̇)/∂q)ᵀ + (∂U/∂q)ᵀ of Eq. 39."""
    q, qd, _ = state
    dB = partial(formulations.lagrangian(tree).B, q)
    n = (dB @ qd) @ qd - 0.5 * np.einsum("jki,j,k->i", dB, qd, qd) + tree.gravity_vector(q)
    equal(n, tree.bias_force(q, qd))


def test_centrifugal_terms_of_both_forms_are_equal(tree, state):
    """h_ijj of Eq. 41 is c_ijj of Eq. 46; for j ≠ k only h_ijk + h_ikj = 2 c_ijk."""
    witness = formulations.lagrangian(tree)
    h, c = witness.h_ijk(state[0]), witness.c_ijk(state[0])
    equal(np.einsum("ijj->ij", h), np.einsum("ijj->ij", c))
    equal(h + h.swapaxes(1, 2), 2 * c)
    assert np.abs(h - c).max() > 0.01


def test_the_energy_balance(tree, state):
    """Eqs. 47 to 49 with friction and contact: dT/dt is the power of all forces."""
    q, qd, qdd = state
    witness = formulations.lagrangian(tree)
    push = {"hand": np.arange(1.0, 7.0)}
    rate = qd @ witness.B(q) @ qdd + 0.5 * qd @ (partial(witness.B, q) @ qd) @ qd
    friction = np.zeros(tree.nv)
    friction[-1] = 0.7 * qd[-1] + 0.4 * np.sign(qd[-1])
    contact = tree.wrench_torque(q, push)  # −Jᵀ h_e
    power = qd @ (witness.motor_torque(q, qd, qdd, push) - friction - witness.g(q) + contact)
    equal(rate, power)


def test_the_energy_balance_does_not_prove_skew_symmetry(tree, state):
    """q̇ᵀ (Ḃ − 2C) q̇ = 0 holds for every C that gives C q̇. The last equation is printed with B for Ḃ, and fails."""
    q, qd, _ = state
    witness = formulations.lagrangian(tree)
    B, B_dot = witness.B(q), partial(witness.B, q) @ qd
    matrices = [witness.C(q, qd), witness.h_ijk(q) @ qd, formulations.denoc(tree).MCI(q, qd)]
    asymmetry = []
    for C in matrices:
        difference = B_dot - 2 * C
        assert abs(qd @ difference @ qd) < 1e-10
        asymmetry.append(np.abs(difference + difference.T).max())
        assert abs(qd @ (B - 2 * C) @ qd) > 0.1
    assert asymmetry[0] < 1e-12
    assert min(asymmetry[1:]) > 0.01
