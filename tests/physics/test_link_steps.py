"""Each step against the 6x6 algebra of docs/mathematics.md §1 and §4."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from screwdyn import Inertia, screw
from screwdyn.physics import link_steps as steps
from screwdyn.physics.link_steps import (
    Acceleration,
    ArticulatedInertia,
    JointScrew,
    MassMoment,
    Pose,
    RigidInertia,
    Twist,
    Wrench,
)
from screwdyn.testing import random_inertia, random_pose

JOINTS = {"revolute": JointScrew(1.0, 0.0), "prismatic": JointScrew(0.0, 1.0), "helical": JointScrew(1.0, -0.3)}


class Link:
    """Random numbers of one link, as tuples for the steps and as arrays for the algebra."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.T = random_pose(rng)
        self.pose = Pose(matrix(self.T[:3, :3]), vector(self.T[:3, 3]))
        self.X = screw.Ad(screw.inverse(self.T))  # from the parent's frame to the link's
        body = random_inertia(rng)
        self.m, self.h, self.theta = body.mass, vector(body.first_moment), symmetric(body.origin_tensor)
        self.I = body.matrix
        self.V, self.W = rng.normal(size=(2, 6))
        self.w, self.v = self.twist = Twist(vector(self.V[:3]), vector(self.V[3:]))
        self.wrench = Wrench(*self.twist)
        A = rng.normal(size=(6, 6))
        self.IA = A @ A.T
        self.blocks = ArticulatedInertia(
            symmetric(self.IA[:3, :3]), matrix(self.IA[:3, 3:]), symmetric(self.IA[3:, 3:])
        )
        self.q, self.qd, self.qdd = rng.normal(size=3).tolist()

    @property
    def body(self):
        return RigidInertia(self.m, self.h, self.theta)

    def B(self):
        """B = [[−ω̂Σ − ĥv̂, 0], [−P̂, 0]] of §4."""
        theta = self.I[:3, :3]
        sigma = 0.5 * np.trace(theta) * np.eye(3) - theta
        w, v, h = self.V[:3], self.V[3:], np.array(self.h)
        B = np.zeros((6, 6))
        B[:3, :3] = -screw.skew(w) @ sigma - screw.skew(h) @ screw.skew(v)
        B[3:, :3] = -screw.skew(self.m * v + np.cross(w, h))
        return B


def vector(a):
    return tuple(np.asarray(a).tolist())


def matrix(A):
    return tuple(np.asarray(A).ravel().tolist())


def symmetric(A):
    return tuple(np.asarray(A)[np.triu_indices(3)].tolist())


def full(I):
    A = np.zeros((3, 3))
    A[np.triu_indices(3)] = I
    return A + np.triu(A, 1).T


def six(pair):
    return np.concatenate([np.array(half, dtype=float) for half in pair])


def articulated(A, H, L):
    H = np.reshape(H, (3, 3))
    return np.block([[full(A), H], [H.T, full(L)]])


def coriolis(K, P):
    return np.block([[np.reshape(K, (3, 3)), np.zeros((3, 3))], [-screw.skew(np.array(P)), np.zeros((3, 3))]])


def along_z(turn, slide):
    return np.array([0, 0, turn, 0, 0, slide])


def equal(actual, expected):
    assert_allclose(actual, expected, rtol=1e-13, atol=1e-13)


@pytest.fixture(params=range(2))
def link(request):
    return Link(request.param)


@pytest.fixture(params=JOINTS.values(), ids=JOINTS)
def joint(request):
    return request.param


def test_joint_pose(link, joint):
    R, p = steps.joint_pose(link.pose, joint, link.q)
    T = link.T @ screw.exp(along_z(*joint) * link.q)
    equal(np.reshape(R, (3, 3)), T[:3, :3])
    equal(p, T[:3, 3])


def test_twists_and_wrenches_move_in_opposite_directions(link):
    equal(six(steps.twist_to_child(link.pose, link.twist)), link.X @ link.V)
    equal(six(steps.wrench_to_parent(link.pose, link.wrench)), link.X.T @ link.V)
    equal(six(steps.twist_to_parent(link.pose, link.twist)), screw.Ad(link.T) @ link.V)


def test_link_twist(link, joint):
    V = steps.link_twist(link.pose, link.twist, joint, link.qd)
    equal(six(V), link.X @ link.V + along_z(*joint) * link.qd)


def test_screw_rate_and_bracket(link, joint):
    equal(six(steps.screw_rate(link.twist, joint)), screw.ad(link.V) @ along_z(*joint))
    bracket = steps.bracket(link.twist, Twist(vector(link.W[:3]), vector(link.W[3:])))
    equal(six(bracket), screw.ad(link.V) @ link.W)


def spin(w, dw):
    return matrix(screw.skew(dw) + screw.skew(w) @ screw.skew(w))


def test_link_acceleration(link, joint):
    """Against V̇ = X V̇_p + ad_V S q̇ + S q̈; the acceleration of the origin is v̇ + ω×v."""
    w, v, dw, dv = link.V[:3], link.V[3:], link.W[:3], link.W[3:]
    S = along_z(*joint)
    V = link.X @ link.V + S * link.qd
    dV = link.X @ link.W + screw.ad(V) @ S * link.qd + S * link.qdd
    parent = Acceleration(vector(w), vector(dw), vector(dv + np.cross(w, v)), spin(w, dw))
    found = steps.link_acceleration(link.pose, parent, joint, link.qd, link.qdd)
    equal(found[0], V[:3])
    equal(found[1], dV[:3])
    equal(found[2], dV[3:] + np.cross(V[:3], V[3:]))
    equal(found.U, spin(V[:3], dV[:3]))


def test_newton_euler(link):
    """F = I V̇ − ad_Vᵀ I V."""
    w, v = link.V[:3], link.V[3:]
    dw, dv = link.W[:3], link.W[3:]
    a = vector(dv + np.cross(w, v))
    F = steps.newton_euler(link.body, Acceleration(vector(w), vector(dw), a, spin(w, dw)))
    equal(six(F), link.I @ link.W - screw.ad(link.V).T @ link.I @ link.V)


def test_bias_wrench(link):
    equal(six(steps.bias_wrench(link.body, link.twist)), -screw.ad(link.V).T @ link.I @ link.V)


def test_joint_component_and_power(link, joint):
    equal(steps.joint_component(link.wrench, joint), along_z(*joint) @ link.V)
    equal(steps.power(Twist(vector(link.W[:3]), vector(link.W[3:])), link.wrench), link.W @ link.V)


def test_momentum_and_weight(link, joint):
    equal(six(steps.momentum(link.body, link.twist)), link.I @ link.V)
    equal(six(steps.momentum_of_joint(link.body, joint)), link.I @ along_z(*joint))
    held = steps.weight(link.body, link.v)
    equal(six(held), link.I @ np.concatenate([np.zeros(3), link.V[3:]]))


def test_inertia_to_parent(link):
    m, h, theta = steps.inertia_to_parent(link.pose, link.body)
    expected = link.X.T @ link.I @ link.X
    assert m == link.m
    equal(screw.skew(np.array(h)), expected[:3, 3:])
    equal(full(theta), expected[:3, :3])


def test_moment_to_parent(link):
    """As part of the inertia there, [[I, ĥ], [−ĥ, m 1]]."""
    m, h = steps.moment_to_parent(link.pose, MassMoment(link.m, link.h))
    expected = link.X.T @ link.I @ link.X
    assert m == link.m
    equal(screw.skew(np.array(h)), expected[:3, 3:])


def test_inertia_rate(link):
    """−ad_Vᵀ I − I ad_V."""
    m, h, theta = steps.inertia_rate(link.body, link.twist)
    expected = -screw.ad(link.V).T @ link.I - link.I @ screw.ad(link.V)
    assert m == 0
    equal(np.zeros((3, 3)), expected[3:, 3:])
    equal(screw.skew(np.array(h)), expected[:3, 3:])
    equal(full(theta), expected[:3, :3])


def test_wrench_about(link):
    c = vector(link.W[:3])
    at_c = screw.pose(np.eye(3), link.W[:3])
    equal(six(steps.wrench_about(c, link.wrench)), screw.Ad(at_c).T @ link.V)


def test_coriolis_tensor_and_its_way_inward(link):
    B = steps.coriolis_tensor(link.body, link.twist)
    equal(coriolis(*B), link.B())
    equal(coriolis(*steps.coriolis_to_parent(link.pose, B)), link.X.T @ link.B() @ link.X)


def test_coriolis_columns(link, joint):
    B = steps.coriolis_tensor(link.body, link.twist)
    F1, F2, n3 = steps.coriolis_columns(link.body, B, link.twist, joint)
    S = along_z(*joint)
    equal(six(F1), link.I @ screw.ad(link.V) @ S + link.B() @ S)
    equal(six(F2), link.I @ S)
    equal(np.concatenate([n3, np.zeros(3)]), link.B().T @ S)


def test_articulated_inertia(link, joint):
    S = along_z(*joint)
    equal(articulated(*steps.rigid_as_articulated(link.body)), link.I)
    column = steps.articulated_column(link.blocks, joint)
    U = link.IA @ S
    equal(six(column), U)
    D = float(S @ U)
    equal(articulated(*steps.project_out_joint(link.blocks, column, D, joint)), link.IA - np.outer(U, U) / D)
    u = 0.7 - float(S @ six(link.wrench))
    equal(six(steps.transmitted(link.wrench, column, D, u, 0.7, joint)), six(link.wrench) + U * u / D)
    equal(articulated(*steps.articulated_to_parent(link.pose, link.blocks)), link.X.T @ link.IA @ link.X)
    equal(six(steps.articulated_times(link.blocks, link.twist)), link.IA @ link.V)


def test_spread_of_a_body_about_its_centre_is_the_trace_of_its_tensor_about_the_parent_s_origin(link):
    sphere = Inertia.sphere(link.m, 0.3)
    trace = np.trace(sphere.tensor)
    spread, felt, _ = steps.spread_to_parent(link.pose, trace, trace, link.m)
    assert_allclose(spread, np.trace(sphere.transformed(link.T).origin_tensor), rtol=1e-14)
    assert_allclose(felt, trace + 2 * link.m * (link.T[:2, 3] ** 2).sum(), rtol=1e-14)


def test_poses_compose_and_screws_are_seen_from_beyond(link, joint):
    other = Link(99)
    R, p = steps.compose(link.pose, other.pose)
    T = link.T @ other.T
    equal(np.reshape(R, (3, 3)), T[:3, :3])
    equal(p, T[:3, 3])
    equal(six(steps.twist_to_child(link.pose, steps.unit_twist(joint))), link.X @ along_z(*joint))
    equal(six(steps.screw_in_base(link.pose, joint)), screw.Ad(link.T) @ along_z(*joint))


def test_momentum_about_the_centre_of_mass(link):
    rng = np.random.default_rng(3)
    body = random_inertia(rng)
    m, I, w = body.mass, symmetric(body.tensor), link.V[:3]
    V = Twist(vector(link.W[:3]), vector(link.W[3:]))
    equal(six(steps.com_momentum(m, I, V)), body.com_matrix @ link.W)
    sigma = 0.5 * np.trace(body.tensor) * np.eye(3) - body.tensor
    B = np.zeros((6, 6))
    B[:3, :3], B[3:, 3:] = screw.skew(sigma @ w), m * screw.skew(w)
    equal(six(steps.com_coriolis(m, I, vector(w), V)), B @ link.W)
