"""Identification against torques and regressors of Pinocchio."""

import numpy as np
import pinocchio as pin
import pytest
from engine import Engine, model_of, robot
from numpy.testing import assert_allclose

import screwdyn as sd

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("file", ["ur5_robot.urdf", "panda.urdf"])
def test_as_many_base_parameters_as_the_rank_of_pinocchios_regressor(file):
    tree, model = robot(file)
    data, rng = model.createData(), np.random.default_rng(0)
    states = [
        (pin.randomConfiguration(model), *rng.uniform(-2, 2, (2, model.nv)))
        for _ in range(3 * 10 * model.njoints // model.nv + 20)
    ]
    Y = np.concatenate([pin.computeJointTorqueRegressor(model, data, *state) for state in states])
    size = np.linalg.norm(Y, axis=0)
    Y = Y[:, size > 1e-13 * size.max()] / size[size > 1e-13 * size.max()]
    assert len(sd.identification.base_parameters(tree)) == np.linalg.matrix_rank(Y, tol=1e-9 * np.linalg.norm(Y, 2))


def test_a_load_is_found_from_torques_of_pinocchio():
    tree, model = robot("ur5_robot.urdf")
    load = sd.Inertia.box(2.5, (0.1, 0.2, 0.3), (0.1, 0.05, 0.2))
    rng = np.random.default_rng(1)
    q, qd, qdd = rng.uniform(-2, 2, (3, 40, 6))
    tree.attach(load, to="tool0", name="load")
    engine = Engine(model_of(tree), tree)
    tau = np.array([engine.inverse_dynamics(*state) for state in zip(q, qd, qdd, strict=True)])
    tree.set_inertia("load", None)
    found = sd.identify(tree, "load", q, qd, qdd, tau, noise=0.1)
    assert_allclose(found.parameters, load.parameters, atol=1e-9)
    place = model.frames[model.getFrameId("tool0")].placement
    # Pinocchio's regressor of the last joint, moved to the load's frame, gives the same covariance.
    columns = []
    for k in range(40):
        Y = pin.computeJointTorqueRegressor(model, model.createData(), q[k], qd[k], qdd[k])[:, -10:]
        some = sd.Inertia.box(1.0, (1, 1, 1))
        base = pin.Inertia(some.mass, some.com, some.tensor).toDynamicParameters()
        moved = [
            place.act(pin.Inertia.FromDynamicParameters(x)).toDynamicParameters()
            for x in (base, *(base + 0.01 * np.eye(10)))
        ]
        columns.append(Y @ (100 * (np.array(moved[1:]) - moved[0])).T)
    Y = np.concatenate(columns)[:, [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]]
    assert_allclose(found.covariance, 0.1**2 * np.linalg.inv(Y.T @ Y), rtol=1e-6, atol=1e-9)
