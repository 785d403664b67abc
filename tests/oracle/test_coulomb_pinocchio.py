"""Frictional impacts of a body with two links against the ADMM solver of Pinocchio 4."""

import numpy as np
import pinocchio as pin
import pytest
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn.simulation import coulomb
from screwdyn.simulation.coulomb import Cone

pytestmark = pytest.mark.oracle


def impact(rng):
    """Two random bodies on a hinge that strike planes in up to eight points: J, M⁻¹, rates and friction."""
    tree, k = sd.KinematicTree(), int(rng.integers(1, 9))
    for name, to, joint in (("a", "base", sd.free()), ("b", "a", sd.revolute("x"))):
        body = sd.Inertia.box(rng.uniform(0.1, 5), rng.uniform(0.1, 1, 3))
        tree.attach(body, to=to, joint=joint, at=(0.2, 0.1, 0.3), name=name)
    q, rows = tree.neutral(), []
    for _ in range(k):
        n, x = rng.normal(size=3), 0.4 * rng.normal(size=3)
        n[2] = abs(n[2])
        axes = np.linalg.qr(np.column_stack([n, rng.normal(size=(3, 2))]))[0].T
        axes[0] *= np.sign(axes[0] @ n)
        J = tree.jacobian(str(rng.choice(["a", "b"])), q, "base")
        rows.append(np.hstack([np.cross(x, axes), axes]) @ J)
    return np.concatenate(rows), np.linalg.inv(tree.mass_matrix(q)), rng.normal(size=tree.nv), rng.uniform(0.1, 1, k)


def by_pinocchio(G, b, friction):
    """Impulses with the rows n, t, t of each contact; Pinocchio has t, t, n."""
    model, k = pin.buildSampleModelManipulator(), len(friction)
    order = np.arange(3 * k).reshape(k, 3)[:, [1, 2, 0]].ravel()
    models, datas = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
    for mu in friction.tolist():
        contact = pin.PointContactConstraintModel(model, 1)
        contact.setFriction(mu)
        models.append(pin.ConstraintModel(contact))
        datas.append(models[-1].createData())
    solver, settings, result = pin.ADMMConstraintSolver(3 * k), pin.ADMMSolverSettings(), pin.ADMMSolverResult()
    settings.max_iterations, settings.solve_ncp = 20_000, True
    for kind in ("feasibility", "complementarity"):
        setattr(settings, f"absolute_{kind}_tol", 1e-12)
        setattr(settings, f"relative_{kind}_tol", 1e-12)
    sorted_G = np.ascontiguousarray(G[np.ix_(order, order)])
    solver.solve(pin.DelassusOperatorDense(sorted_G), b[order].copy(), models, datas, settings, result)
    found = np.zeros(3 * k)
    found[order] = result.retrieveConstraintImpulses()
    return found


def violation(G, b, friction, impulse):
    """How far impulses are from Coulomb's law: in the power of normal and tangential ones."""
    (N, *T), (rate, *slip) = impulse.reshape(-1, 3).T, (G @ impulse + b).reshape(-1, 3).T
    power = (np.array(T) * slip).sum(axis=0) + friction * N * np.linalg.norm(slip, axis=0)
    return max(np.abs(N * rate).max(), np.abs(power).max(), -rate.min())


def test_rates_after_frictional_impacts():
    """The rates are unique at moderate friction; compared are impacts at which ADMM has converged, most of them."""
    rng, errors = np.random.default_rng(5), []
    for _ in range(30):
        J, P, qd, friction = impact(rng)
        G, k = J @ P @ J.T, len(friction)
        cones = [Cone(3 * i, (3 * i + 1, 3 * i + 2), mu) for i, mu in enumerate(friction)]
        ours = coulomb.forces(G, J @ qd, np.zeros(3 * k), np.full(3 * k, np.inf), cones)
        theirs = by_pinocchio(G, J @ qd, friction)
        if violation(G, J @ qd, friction, theirs) < 1e-10:
            errors.append(np.abs(P @ J.T @ (theirs - ours)).max())
    assert len(errors) >= 27
    assert_allclose(errors, 0, atol=1e-9)
