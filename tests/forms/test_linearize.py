"""Linearized equations against closed forms, and against the deviations of neighbouring motions."""

import numpy as np
import pytest
from cases import CENTRAL, STEP, derivative, norm
from hypothesis import given, settings
from hypothesis import strategies as st
from kinds import EVERY
from mechanisms import bar, four_bar, moving_bricard, slider_crank
from numpy.testing import assert_allclose, assert_array_equal
from tangents import state_of

import screwdyn as sd
from screwdyn.testing import random_tree

G = 9.81


def cart_pole(M=1.5, m=0.3, l=0.8, damping=0.7, stiffness=20.0):
    """A cart on rails with a spring, and a point mass on a passive damped pole that stands upright at 0."""
    tree = sd.KinematicTree()
    rails = sd.prismatic("x", name="cart", stiffness=stiffness)
    tree.attach(sd.Inertia.point(M), to="base", joint=rails, name="body")
    pin = sd.revolute("y", passive=True, damping=damping, name="pole")
    tree.attach(sd.Inertia.point(m, (0, 0, l)), to="body", joint=pin, name="ball")
    return tree


def test_a_cart_pole_has_the_matrices_of_the_textbook():
    M, m, l, d, k = 1.5, 0.3, 0.8, 0.7, 20.0
    model = cart_pole(M, m, l, d, k).linearize([0.0, 0.0])
    A, B = model
    # (M + m) ẍ + m l θ̈ = u − k x,   m l ẍ + m l² θ̈ = m g l θ − d θ̇
    lower = [
        [-k / M, -m * G / M, 0, d / (M * l)],
        [k / (M * l), (M + m) * G / (M * l), 0, -(M + m) * d / (M * m * l**2)],
    ]
    assert_allclose(A, [[0, 0, 1, 0], [0, 0, 0, 1], *lower], rtol=1e-13, atol=1e-14)
    assert_allclose(B, [[0], [0], [1 / M], [-1 / (M * l)]], rtol=1e-13)
    assert (model.coordinates, model.inputs) == (("cart", "pole"), ("cart",))
    assert_allclose(model.rate, 0, atol=1e-14)


def test_the_torques_that_hold_the_state_are_the_default():
    tree = sd.robots.pelican()
    q = np.array([0.4, -1.1])
    model = tree.linearize(q)
    assert_allclose(model.tau, tree.gravity_vector(q), rtol=1e-14)
    assert_allclose(model.rate, 0, atol=1e-12)
    assert_allclose(tree.linearize(q, tau=[0, 0]).rate[2:], tree.forward_dynamics(q, [0, 0], [0, 0]), rtol=1e-13)
    moving = tree.linearize(q, [1.0, 2.0])
    assert_allclose(moving.rate, [1, 2, 0, 0], atol=1e-12)


def test_a_passive_joint_that_does_not_hang_moves_at_the_stated_rate():
    tree = cart_pole()
    model = tree.linearize([0.0, 0.3])
    assert_array_equal(model.tau[1], 0)
    assert_allclose(model.rate[2:], tree.forward_dynamics([0, 0.3], [0, 0], model.tau), rtol=1e-13)
    assert abs(model.rate[3]) > 1


def test_dry_friction_acts_on_the_state_but_not_on_its_neighbours():
    smooth, rough = cart_pole(), cart_pole()
    rough.replace_joint("body", sd.prismatic("x", name="cart", stiffness=20.0, friction=3.0))
    state, tau = ([0.1, 0.2], [0.5, -0.4]), [1.0, 0.0]
    force = tau - np.array([3.0, 0.0])
    found, expected = rough.linearize(*state, tau), smooth.linearize(*state, force)
    assert_allclose(found.A, expected.A, rtol=1e-12, atol=1e-12)
    assert_allclose(found.rate, expected.rate, rtol=1e-12)


def flow(tree, q, qd, tau, h):
    """The state after a short time h, by one step of Runge and Kutta's method along tangents."""

    def rate(x, v):
        return v, tree.forward_dynamics(x, v, tau + tree.joint_force(x, v))

    def after(k, share):
        return tree.integrate(q, share * h * k[0]), qd + share * h * k[1]

    k1 = rate(q, qd)
    k2 = rate(*after(k1, 0.5))
    return tree.integrate(q, h * k2[0]), qd + h * k2[1]


def deviations(tree, q, qd, tau, h):
    """Derivatives of the state after h along all entries of x and u, (2 nv, 3 nv), as deviations of motions."""
    nv = tree.nv
    q1, qd1 = flow(tree, q, qd, tau, h)
    columns = []
    for e in np.eye(3 * nv):
        column = np.zeros(2 * nv)
        for k, w in CENTRAL:
            for s in (k * STEP, -k * STEP):
                dq, dv, du = np.split(s * e, 3)
                q2, qd2 = flow(tree, tree.integrate(q, dq), qd + dv, tau + du, h)
                column += np.sign(s) * w / STEP * np.concatenate([tree.difference(q1, q2), qd2 - qd1])
        columns.append(column)
    return np.array(columns).T


@settings(max_examples=8)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_neighbouring_motions_deviate_as_stated_also_those_of_group_joints(seed, n):
    rng = np.random.default_rng(seed)
    case = state_of(random_tree(rng, n, EVERY), rng)
    tree, q, qd, tau = case.tree, case.q, case.qd, case.qdd
    for name in tree.joints:
        joint = tree.joint(name)
        if joint.nv:
            forces = {"damping": rng.uniform(0, 2), "stiffness": rng.uniform(0, 5) if joint.chart is None else 0.0}
            tree.replace_joint(tree.topology.carried[name], sd.Joint(joint.screws, chart=joint.chart, **forces))
    A, B = tree.linearize(q, qd, tau)
    h = 1e-4
    # Differences at two times leave an error of h² to that of the first derivative in time.
    start = np.concatenate([np.eye(2 * tree.nv), np.zeros((2 * tree.nv, tree.nv))], axis=1)
    slopes = [(deviations(tree, q, qd, tau, s) - start) / s for s in (h, -h)]
    size = 1 + np.abs(A).max(initial=0) ** 3
    assert_allclose((slopes[0] + slopes[1]) / 2, np.concatenate([A, B], axis=1), atol=1e-6 * size)


def test_joints_that_follow_others_and_group_joints_together():
    """Columns of the freedoms are not rows of the tree where joints follow others."""
    rng = np.random.default_rng(3)
    tree = sd.KinematicTree()
    finger = sd.prismatic("x", name="finger", stiffness=3.0, damping=0.5)
    tree.attach(sd.Inertia.point(1.0, (0.1, 0, 0)), to="base", joint=finger, name="left")
    thumb = sd.prismatic("y", name="thumb", mimic=sd.Mimic("finger", -2.0, 0.1), stiffness=1.0, damping=0.2)
    tree.attach(sd.Inertia.point(0.5), to="left", joint=thumb, name="right")
    tree.attach(sd.Inertia.box(1.0, (0.1, 0.2, 0.3)), to="right", joint=sd.free(passive=True, damping=0.3), name="body")
    q = tree.integrate(tree.neutral(), rng.uniform(-1, 1, 7))
    qd, tau, h = rng.uniform(-1, 1, 7), np.array([1.0, *[0.0] * 6]), 1e-4
    A, B = tree.linearize(q, qd, tau[:1])
    slopes = [(deviations(tree, q, qd, tau, s) - np.eye(14, 21)) / s for s in (h, -h)]
    assert_allclose(sum(slopes)[:, :15] / 2, np.concatenate([A, B], axis=1), atol=1e-5)
    assert np.abs(A[1:7, 1:7]).max() > 0.3


def test_states_are_batches():
    tree = sd.robots.pelican()
    q, qd = np.random.default_rng(0).uniform(-1, 1, (2, 3, 1, 2))
    tau = np.zeros((4, 2))
    model = tree.linearize(q, qd, tau)
    assert (model.A.shape, model.B.shape, model.rate.shape) == ((3, 4, 4, 4), (3, 4, 4, 2), (3, 4, 4))
    one = tree.linearize(q[1, 0], qd[1, 0], tau[2])
    for name in ("A", "B", "rate", "tau"):
        assert_allclose(getattr(model, name)[1, 2], getattr(one, name), rtol=1e-12, atol=1e-12)
    assert "3, 4" in repr(model)
    assert "shoulder" in repr(one)


def test_torques_are_those_of_all_or_of_the_active_freedoms():
    tree = cart_pole()
    both = [tree.linearize([0, 0.1], tau=tau).rate for tau in ([2.0], [2.0, 0.0])]
    assert_array_equal(*both)
    with pytest.raises(sd.JointError, match="'pole' is passive"):
        tree.linearize([0, 0], tau=[0, 1])
    with pytest.raises(sd.ShapeError, match="tau has shape"):
        tree.linearize([0, 0], tau=[0, 1, 2])


def on_balls():
    """A crank, a coupler between two balls, which may turn about itself, and a rocker; a motor at the crank only."""
    tree = sd.KinematicTree(gravity=(0, -9.81, 0))
    crank = sd.revolute("z", damping=0.3, stiffness=2.0)
    tree.attach(bar(1.0, 1.0), to="base", joint=crank, name="crank")
    tree.attach(bar(2.5, 2.5), to="crank", joint=sd.spherical(), at=(1, 0, 0), name="coupler")
    tree.attach(bar(2.0, 2.0), to="base", joint=sd.revolute("z"), at=(2.2, 0, 0.1), name="rocker")
    tree.attach(sd.Inertia.point(0.1), to="rocker", at=(2, 0, 0), name="tip")
    tree.close("tip", to="coupler", joint=sd.spherical(), at=(2.5, 0, 0), name="ball")
    start = [0.7, 0, 0, np.sin(-0.1), np.cos(-0.1), 1.5]
    return tree, tree.project(start, [2.0, 1.0, 0, 0, 0], hold=["crank", "coupler[wx]"])


@pytest.mark.parametrize(
    ("mechanism", "independent"),
    [
        (four_bar, ["crank"]),
        (slider_crank, ["crank"]),
        (moving_bricard, ["bar0"]),
        (on_balls, ["crank", "coupler[wx]"]),
    ],
)
def test_closed_loops_against_neighbouring_states(mechanism, independent):
    """ÿ in states with closed loops whose y or ẏ differ a little, with springs and damping."""
    tree, (q, qd) = mechanism()
    at = [tree.coordinates.index(name) for name in independent]
    r, steps = len(at), np.eye(tree.nv)[at]
    found = tree.linearize(q, qd, independent=independent)
    assert found.coordinates == tuple(independent)
    assert_allclose(found.rate, [*qd[at], *np.zeros(r)], rtol=0, atol=1e-9 * norm(found.tau))

    def accelerations(deviations):
        values = []
        for x in deviations:
            near = tree.integrate(q, x[:r] @ steps), qd + x[r:] @ steps
            state = tree.project(*near, hold=independent)
            values.append(tree.forward_dynamics(*state, found.tau + tree.joint_force(*state))[at])
        return np.array(values)

    for column, along in enumerate(np.eye(2 * r)):
        expected = derivative(accelerations, np.zeros(2 * r), along)
        assert_allclose(found.A[r:, column], expected, rtol=0, atol=1e-8 * norm(found.A))
    assert_array_equal(found.A[:r, r:], np.eye(r))
    pushed = tree.forward_dynamics(q, qd, found.tau + tree.joint_force(q, qd) + np.eye(tree.nv)[-1])
    assert_allclose(found.B[r:, -1], pushed[at], rtol=0, atol=1e-9 * norm(found.tau))
