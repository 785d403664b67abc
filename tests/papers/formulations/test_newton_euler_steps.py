"""The vectors of the Newton-Euler recursions, link by link."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn import formulations
from screwdyn.testing import random_tree


def equal(actual, expected):
    assert_allclose(actual, expected, rtol=1e-11, atol=1e-11)


def test_fu_s_two_link_arm_step_by_step():
    """Section 3.3.7, every vector in axes of its link; n_1 is not multiplied out in the text."""
    m1, m2, l, g = 1.3, 0.7, 0.9, 9.8062
    arm = sd.robots.two_link(m1, m2, l, g)
    q, (d1, d2), (e1, e2) = np.random.default_rng(0).uniform(-2, 2, (3, 2))
    (C1, C2, C12), (S1, S2, S12) = (f([q[0], q[1], q.sum()]) for f in (np.cos, np.sin))
    first, second = formulations.newton_euler(arm).steps(q, [d1, d2], [e1, e2])
    equal(first.omega, [0, 0, d1])
    equal(second.omega, [0, 0, d1 + d2])
    equal(first.omegad, [0, 0, e1])
    equal(second.omegad, [0, 0, e1 + e2])
    equal(first.vd, [-l * d1**2 + g * S1, l * e1 + g * C1, 0])
    along = S2 * e1 - C2 * d1**2
    across = C2 * e1 + S2 * d1**2
    spin = d1**2 + d2**2 + 2 * d1 * d2
    equal(second.vd, [l * (along - spin) + g * S12, l * (e1 + e2 + across) + g * C12, 0])
    equal(first.a, [-l / 2 * d1**2 + g * S1, l / 2 * e1 + g * C1, 0])
    a2 = np.array([l * (along - spin / 2) + g * S12, l * (across + e1 / 2 + e2 / 2) + g * C12, 0])
    equal(second.a, a2)
    equal(first.F, m1 * first.a)
    equal(second.F, m2 * a2)
    equal(second.f, m2 * a2)
    tangential = -(d1**2) - C2 / 2 * (d1**2 + d2**2) - C2 * d1 * d2 - S2 / 2 * (e1 + e2)
    normal = e1 - S2 / 2 * (d1**2 + d2**2) - S2 * d1 * d2 + C2 / 2 * (e1 + e2)
    weight = -m2 * g * (C12 * S2 - C2 * S12)
    f1 = [
        m2 * l * tangential + weight - m1 / 2 * l * d1**2 + m1 * g * S1,
        m2 * l * normal + m2 * g * C1 + m1 / 2 * l * e1 + m1 * g * C1,
        0,
    ]
    equal(first.f, f1)
    equal(first.N, [0, 0, m1 * l**2 / 12 * e1])
    equal(second.N, [0, 0, m2 * l**2 / 12 * (e1 + e2)])
    n2 = [0, 0, m2 * l**2 * (e1 + e2) / 3 + m2 * l**2 / 2 * across + m2 * g * l / 2 * C12]
    equal(second.n, n2)
    # ^1R_2 n_2 + ^1R_2 (^2R_0 p_1* × f_2) + (l/2, 0, 0) × F_1 + N_1
    R = np.array([[C2, -S2, 0], [S2, C2, 0], [0, 0, 1]])
    moment = R @ n2 + R @ np.cross([l * C2, -l * S2, 0], second.f)
    equal(first.n, moment + np.cross([l / 2, 0, 0], first.F) + first.N)


@pytest.fixture(scope="module")
def tree():
    tree = random_tree(np.random.default_rng(1), 5, joints=("revolute", "prismatic", "helical"), frames=0.0)
    assert len(set(map(tree.parent, tree.links[1:]))) > 2
    return tree


def test_the_motion_of_each_link_is_that_of_the_library(tree):
    q, qd, qdd = np.random.default_rng(2).uniform(-2, 2, (3, tree.nv))
    steps = formulations.newton_euler(tree).steps_in_base_frame(q, qd, qdd)
    for step, link in zip(steps, tree.links[1:], strict=True):
        equal(step.omega, tree.link_twist(link, q, qd, "mixed")[:3])
        acceleration = tree.link_acceleration(link, q, qd, qdd, "mixed")
        equal(step.omegad, acceleration[:3])
        equal(step.vd, acceleration[3:] - tree.gravity)


def test_vectors_of_both_recursions_differ_by_the_axes_only(tree):
    """Also with forces on links, which f_i and n_i support; Newton's law for each link."""
    rng = np.random.default_rng(3)
    q, qd, qdd = rng.uniform(-2, 2, (3, tree.nv))
    wrenches = dict(zip(tree.links[1:], rng.normal(size=(tree.nv, 6)), strict=True))
    witness = formulations.newton_euler(tree)
    poses = witness.poses(q)
    own, base = (f(q, qd, qdd, wrenches) for f in (witness.steps, witness.steps_in_base_frame))
    for i, row in enumerate(witness.rows):
        R = poses[i][:3, :3]
        for a, b in zip(own[i], base[i], strict=True):
            equal(R @ a, b)
        carried = [base[j].f for j, other in enumerate(witness.rows) if other.parent == i]
        equal(base[i].F, row.m * base[i].a)
        equal(base[i].f, base[i].F + np.sum([np.zeros(3), *carried], axis=0) - R @ wrenches[tree.links[1 + i]][3:])
