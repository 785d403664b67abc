"""Grasps of payloads much heavier or lighter than the robot, against the momentum balance in 50 digits."""

import mpmath as mp
import numpy as np
import pytest
from kinds import random_joint
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn.testing import random_inertia, random_pose, random_tree

DIGITS = 50


def matrix(a):
    return mp.matrix(np.asarray(a).tolist())


def hat(v):
    return mp.matrix([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


def rotation(R):
    """The rotation nearest to a matrix that is a rotation up to rounding."""
    R = matrix(R)
    for _ in range(4):
        R = (R + (R**-1).T) / 2
    return R


def unit(S):
    S = [mp.mpf(float(x)) for x in S]
    length = mp.sqrt(sum(x * x for x in (S[:3] if any(S[:3]) else S[3:])))
    return [x / length for x in S]


def jacobians(tree, q):
    """Body Jacobian of every link, (6, nv); joints of several freedoms are at home."""
    found, first, graph = {tree.base: mp.zeros(6, tree.nv)}, 0, tree.graph
    for link in tree.links[1:]:
        ((parent, edge),) = graph.pred[link].items()
        R, p = rotation(edge["home"][:3, :3]), matrix(edge["home"][:3, 3:])
        screws = [unit(S) for S in edge["joint"].screws.T]
        if len(screws) == 1:
            (S,) = screws
            angle, W, v = mp.mpf(float(q[first])), hat(S[:3]), mp.matrix(S[3:])
            s, c = mp.sin(angle), mp.cos(angle)
            p = p + R * (angle * mp.eye(3) + (1 - c) * W + (angle - s) * W * W) * v
            R = R * (mp.eye(3) + s * W + (1 - c) * W * W)
        X = mp.zeros(6)
        X[:3, :3] = X[3:, 3:] = R.T
        X[3:, :3] = -R.T * hat(p)
        found[link] = X * found[parent]
        for k, S in enumerate(screws, first):
            for i in range(6):
                found[link][i, k] = S[i]
        first += len(screws)
    return found


def inertia_matrix(inertia):
    m, c, T = mp.mpf(inertia.mass), hat([mp.mpf(float(x)) for x in inertia.com]), matrix(inertia.tensor)
    I = mp.zeros(6)
    I[:3, :3] = (T + T.T) / 2 - m * c * c
    I[:3, 3:], I[3:, :3], I[3:, 3:] = m * c, -m * c, m * mp.eye(3)
    return I


def rates_after(tree, q, qd, payload, twist):
    """The rates, (nv,), that minimise the energy of the changes of all links, and the impulse on the payload, (6,)."""
    with mp.workdps(DIGITS):
        M, momentum = mp.zeros(tree.nv), mp.zeros(tree.nv, 1)
        J = jacobians(tree, q)
        for link in tree.links[1:]:
            I = inertia_matrix(tree.link(link).inertia)
            V = matrix(twist[:, None]) if link == payload else J[link] * matrix(qd[:, None])
            M += J[link].T * I * J[link]
            momentum += J[link].T * I * V
        after = mp.lu_solve(M, momentum)
        impulse = inertia_matrix(tree.link(payload).inertia) * (J[payload] * after - matrix(twist[:, None]))
        return np.array([*map(float, after)]), np.array([*map(float, impulse)])


def arm(rng, links):
    """A chain of revolute joints: with eight, some motions do not move the payload."""
    tree = sd.KinematicTree()
    for i in range(links):
        body = sd.Link(f"link{i + 1}", random_inertia(rng))
        tree.attach(body, tree.links[-1], random_joint(rng, "revolute"), random_pose(rng))
    return tree


@pytest.mark.parametrize("kind", ["fixed", "revolute", "helical", "cylindrical", "universal", "spherical", "planar"])
@pytest.mark.parametrize("ratio", [1e-9, 1e12])
@pytest.mark.parametrize("robot", ["branched", "arm"])
def test_digits_do_not_depend_on_the_mass_of_the_payload(robot, ratio, kind):
    rng = np.random.default_rng(7)
    tree = arm(rng, 8) if robot == "arm" else random_tree(rng, 4, frames=0)
    state = sd.State(tree, *rng.uniform(-2, 2, (2, tree.nv)))
    body, twist = random_inertia(rng), rng.uniform(-2, 2, 6)
    heavy = sd.Inertia(ratio * body.mass, body.com, ratio * body.tensor)
    n = tree.nv
    event = tree.grasp(
        state, heavy, to=tree.links[-1], joint=random_joint(rng, kind), at=random_pose(rng), twist=twist, name="load"
    )
    before = np.concatenate([state.qd, np.zeros(tree.nv - n)])
    after, impulse = rates_after(tree, event.state.q, before, "load", twist)
    assert_allclose(event.state.qd, after, rtol=0, atol=2e-13 * np.abs(after).max())
    # The impulse is 𝓜 times a small change of the payload's twist, which has the rounding of the twist.
    assert_allclose(event.impulse, impulse, rtol=0, atol=1e-12 * max(1, ratio) * np.abs(twist).max())
