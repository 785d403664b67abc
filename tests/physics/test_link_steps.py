"""Each step against the 6x6 algebra of docs/mathematics.md §1 and §4 that it spells out in scalars."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from screwdyn.testing import random_inertia, random_pose

from screwdyn import screw
from screwdyn.physics import link_steps as steps

JOINTS = {"revolute": (1.0, 0.0), "prismatic": (0.0, 1.0), "helical": (1.0, -0.3)}


class Link:
    """Random numbers of one link, as tuples for the steps and as arrays for the algebra."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.T = random_pose(rng)
        self.R, self.p = matrix(self.T[:3, :3]), vector(self.T[:3, 3])
        self.X = screw.Ad(screw.inverse(self.T))  # from the parent's frame to the link's
        body = random_inertia(rng)
        self.m, self.h, self.theta = body.mass, vector(body.first_moment), symmetric(body.origin_tensor)
        self.I = body.matrix
        self.V, self.W = rng.normal(size=(2, 6))
        self.w, self.v = vector(self.V[:3]), vector(self.V[3:])
        A = rng.normal(size=(6, 6))
        self.IA = A @ A.T
        self.blocks = symmetric(self.IA[:3, :3]), matrix(self.IA[:3, 3:]), symmetric(self.IA[3:, 3:])
        self.q, self.qd, self.qdd = rng.normal(size=3).tolist()

    @property
    def body(self):
        return self.m, self.h, self.theta

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


@pytest.fixture(params=range(5))
def link(request):
    return Link(request.param)


@pytest.fixture(params=JOINTS.values(), ids=JOINTS)
def joint(request):
    return request.param


def test_joint_pose(link, joint):
    R, p = steps.joint_pose(link.R, link.p, *joint, link.q)
    T = link.T @ screw.exp(along_z(*joint) * link.q)
    equal(np.reshape(R, (3, 3)), T[:3, :3])
    equal(p, T[:3, 3])


def test_twists_and_wrenches_move_in_opposite_directions(link):
    equal(six(steps.twist_inward(link.R, link.p, link.w, link.v)), link.X @ link.V)
    equal(six(steps.wrench_inward(link.R, link.p, link.w, link.v)), link.X.T @ link.V)


def test_outward_twist(link, joint):
    V = steps.outward_twist(link.R, link.p, link.w, link.v, *joint, link.qd)
    equal(six(V), link.X @ link.V + along_z(*joint) * link.qd)


def test_screw_rate_and_bracket(link, joint):
    equal(six(steps.screw_rate(link.w, link.v, *joint)), screw.ad(link.V) @ along_z(*joint))
    bracket = steps.bracket(link.w, link.v, vector(link.W[:3]), vector(link.W[3:]))
    equal(six(bracket), screw.ad(link.V) @ link.W)


def test_spin(link):
    w, dw = link.V[:3], link.W[:3]
    U = steps.spin(vector(w), vector(dw))
    equal(np.reshape(U, (3, 3)), screw.skew(dw) + screw.skew(w) @ screw.skew(w))


def test_outward_acceleration(link, joint):
    """Against V̇ = X V̇_p + ad_V S q̇ + S q̈; the acceleration of the origin is v̇ + ω×v."""
    w, v, dw, dv = link.V[:3], link.V[3:], link.W[:3], link.W[3:]
    S = along_z(*joint)
    V = link.X @ link.V + S * link.qd
    dV = link.X @ link.W + screw.ad(V) @ S * link.qd + S * link.qdd
    U = steps.spin(vector(w), vector(dw))
    found = steps.outward_acceleration(
        link.R, link.p, vector(w), vector(dw), U, vector(dv + np.cross(w, v)), *joint, link.qd, link.qdd
    )
    equal(found[0], V[:3])
    equal(found[1], dV[:3])
    equal(found[2], dV[3:] + np.cross(V[:3], V[3:]))


def test_newton_euler(link):
    """F = I V̇ − ad_Vᵀ I V."""
    w, v = link.V[:3], link.V[3:]
    dw, dv = link.W[:3], link.W[3:]
    a = vector(dv + np.cross(w, v))
    U = steps.spin(vector(w), vector(dw))
    F = steps.newton_euler(*link.body, vector(w), vector(dw), U, a)
    equal(six(F), link.I @ link.W - screw.ad(link.V).T @ link.I @ link.V)


def test_bias_wrench(link):
    equal(six(steps.bias_wrench(*link.body, link.w, link.v)), -screw.ad(link.V).T @ link.I @ link.V)


def test_along_joint(link, joint):
    equal(steps.along_joint(link.w, link.v, *joint), along_z(*joint) @ link.V)


def test_momentum_and_weight(link, joint):
    equal(six(steps.momentum(*link.body, link.w, link.v)), link.I @ link.V)
    equal(six(steps.rigid_column(*link.body, *joint)), link.I @ along_z(*joint))
    held = steps.weight(link.m, link.h, link.v)
    equal(six(held), link.I @ np.concatenate([np.zeros(3), link.V[3:]]))


def test_inertia_inward(link):
    m, h, theta = steps.inertia_inward(link.R, link.p, *link.body)
    expected = link.X.T @ link.I @ link.X
    assert m == link.m
    equal(screw.skew(np.array(h)), expected[:3, 3:])
    equal(full(theta), expected[:3, :3])


def test_coriolis_body_and_its_way_inward(link):
    K, P = steps.coriolis_body(*link.body, link.w, link.v)
    equal(coriolis(K, P), link.B())
    equal(coriolis(*steps.coriolis_inward(link.R, link.p, K, P)), link.X.T @ link.B() @ link.X)


def test_coriolis_columns(link, joint):
    K, P = steps.coriolis_body(*link.body, link.w, link.v)
    F1, F2, n3 = steps.coriolis_columns(*link.body, K, P, link.w, link.v, *joint)
    S = along_z(*joint)
    equal(six(F1), link.I @ screw.ad(link.V) @ S + link.B() @ S)
    equal(six(F2), link.I @ S)
    equal(np.concatenate([n3, np.zeros(3)]), link.B().T @ S)


def test_articulated_inertia(link, joint):
    S = along_z(*joint)
    equal(articulated(*steps.rigid_blocks(*link.body)), link.I)
    Un, Uf = steps.articulated_column(*link.blocks, *joint)
    U = link.IA @ S
    equal(six((Un, Uf)), U)
    D = float(S @ U)
    equal(articulated(*steps.freed(*link.blocks, Un, Uf, D)), link.IA - np.outer(U, U) / D)
    equal(articulated(*steps.articulated_inward(link.R, link.p, *link.blocks)), link.X.T @ link.IA @ link.X)
    equal(six(steps.articulated_apply(*link.blocks, link.w, link.v)), link.IA @ link.V)


def test_poses_compose_and_screws_are_seen_from_beyond(link, joint):
    other = Link(99)
    R, p = steps.composed(link.R, link.p, other.R, other.p)
    T = link.T @ other.T
    equal(np.reshape(R, (3, 3)), T[:3, :3])
    equal(p, T[:3, 3])
    equal(six(steps.seen_from(link.R, link.p, *joint)), link.X @ along_z(*joint))
