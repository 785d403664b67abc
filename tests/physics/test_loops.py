"""Constraints of closed loops, and accelerations with them, for trees of all joints."""

import mechanisms
import numpy as np
import pytest
from cases import derivative, norm
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from kinds import EVERY
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd
from screwdyn.physics.closure import Closure
from screwdyn.screws.screw import Ad, inverse
from screwdyn.testing import random_inertia, random_pose, random_tree

CLOSING = {
    "fixed": lambda p: sd.fixed(),
    "revolute": lambda p: sd.revolute(p[:3, 0], p[:3, 3]),
    "prismatic": lambda p: sd.prismatic(p[:3, 0]),
    "helical": lambda p: sd.helical(p[:3, 0], 0.2, p[:3, 3]),
    "cylindrical": lambda p: sd.cylindrical(p[:3, 0], p[:3, 3]),
    "planar": lambda p: sd.planar(p[:3, 0], p[:3, 3]),
    "spherical": lambda p: sd.spherical(p[:3, 3]),
}


@st.composite
def closed(draw):
    """A tree of up to seven links with one loop, closed in a configuration; rates that it allows, and joint forces."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tree = random_tree(rng, draw(st.integers(3, 7)), draw(st.sampled_from([("revolute", "prismatic"), EVERY])))
    leader = next((name for name in tree.joints if tree.joint(name).nv == 1), None)
    if leader and draw(st.booleans()):
        joint = sd.revolute("x", (0, 0.1, 0), mimic=sd.Mimic(leader, -1.5, 0.3))
        tree.attach(random_inertia(rng), to="link2", joint=joint, at=random_pose(rng), name="follower")
    q = tree.integrate(tree.neutral(), rng.uniform(-2, 2, tree.nv))
    to, link = (str(x) for x in rng.choice(tree.links, 2, replace=False))
    at = inverse(tree.forward_kinematics(to, q)) @ tree.forward_kinematics(link, q)
    tree.close(link, to=to, joint=CLOSING[draw(st.sampled_from([*CLOSING]))](random_pose(rng)), at=at, name="loop")
    J = tree.constraint_jacobian(q)
    qd = rng.uniform(-2, 2, tree.nv)
    qd = qd - np.linalg.pinv(J, rcond=1e-9) @ (J @ qd)
    return tree, q, qd, rng.uniform(-2, 2, tree.nv)


@pytest.mark.slow
@settings(max_examples=40)
@given(closed())
def test_jacobian_by_its_definition(case):
    """J_c = Nᵀ (J_link − X J_to), X = Ad(T)⁻¹, and its rate by differences along any motion."""
    tree, q, qd, other = case
    loop = tree.loop("loop")
    T = inverse(tree.forward_kinematics(loop.to, q)) @ tree.forward_kinematics(loop.link, q)
    relative = tree.jacobian(loop.link, q, "body") - Ad(inverse(T)) @ tree.jacobian(loop.to, q, "body")
    J = tree.constraint_jacobian(q)
    scale = max(1, norm(relative), norm(loop.wrenches) * norm(relative))
    assert_allclose(J, loop.wrenches.T @ relative, rtol=0, atol=1e-12 * scale)
    for rates in (qd, other):
        dot = derivative(lambda t, v=rates: tree.constraint_jacobian(tree.integrate(q, t * v)), 0.0, 1.0)
        scale = 1 + norm(J) * norm(rates)
        assert_allclose(tree.constraint_jacobian_dot(q, rates), dot, rtol=0, atol=1e-8 * scale**2)
    # The gap is zero where the loop was closed, and its rate is that of the constraints.
    assert_allclose(tree.gap(q), 0, rtol=0, atol=1e-12)
    rate = (tree.gap(tree.integrate(q, 1e-5 * other)) - tree.gap(tree.integrate(q, -1e-5 * other))) / 2e-5
    assert_allclose(J @ other, rate, rtol=0, atol=1e-6 * (1 + norm(J) * norm(other)) ** 2)


@settings(max_examples=40)
@given(closed())
def test_accelerations_are_those_of_gauss(case):
    """Of all accelerations that the loops allow, the ones nearest to the free ones in the metric of M."""
    tree, q, qd, tau = case
    M, J = tree.mass_matrix(q), tree.constraint_jacobian(q)
    free = np.linalg.solve(M, tau - tree.bias_force(q, qd)) if tree.nv else np.zeros(0)
    L = np.linalg.cholesky(M)
    A = np.linalg.solve(L, J.T).T
    wanted = -tree.constraint_jacobian_dot(q, qd) @ qd - J @ free
    expected = free + np.linalg.solve(L.T, np.linalg.pinv(A, rcond=1e-6) @ wanted)
    sizes = np.linalg.svd(A, compute_uv=False)
    if ((sizes > 1e-9 * sizes.max(initial=0)) & (sizes < 1e-3 * sizes.max(initial=0))).any():
        return  # the rank is a matter of the tolerance
    found = tree.forward_dynamics(q, qd, tau)
    scale = np.linalg.cond(M) * (1 + norm(free) + norm(expected)) if tree.nv else 1
    assert_allclose(found, expected, rtol=0, atol=1e-11 * scale)
    states = [np.stack([x, x]) for x in (q, qd, tau)]
    assert_array_equal(tree.forward_dynamics(*states), [found, found])


@pytest.mark.slow
@settings(max_examples=40)
@given(closed(), st.integers(0, 2), st.floats(1, 1e3))
def test_rates_and_impulses_of_loops_that_close(case, again, heavier):
    """Least in the metric of M, by pseudo-inverses, also of loops that are closed twice and between unequal links."""
    tree, q, _, _ = case
    rng, loop = np.random.default_rng(again), tree.loop("loop")
    for k in range(again):
        tree.close(loop.link, to=loop.to, joint=loop.joint, at=loop.home, name=f"again{k}")
    body = tree.link(loop.link).inertia
    if body is not None:
        tree.set_inertia(loop.link, sd.Inertia(heavier * body.mass, body.com, heavier * body.tensor))
    M, J = tree.mass_matrix(q), tree.constraint_jacobian(q)
    opening = J @ rng.uniform(-2, 2, tree.nv)
    L = np.linalg.cholesky(M)
    A = np.linalg.solve(L, J.T).T
    A = A / np.linalg.norm(A, axis=1, keepdims=True).clip(1e-12)
    sizes = np.linalg.svd(A, compute_uv=False)
    assume(not ((sizes > 1e-9 * sizes.max(initial=0)) & (sizes < 1e-3 * sizes.max(initial=0))).any())
    scaled = opening / np.linalg.norm(np.linalg.solve(L, J.T), axis=0).clip(1e-12)
    expected = np.linalg.solve(L.T, np.linalg.pinv(A, rcond=1e-6) @ scaled)
    rates, impulses = tree._closing(q, opening)
    scale = np.linalg.cond(M) * (1 + norm(expected)) if tree.nv else 1
    assert_allclose(rates, expected, rtol=0, atol=1e-12 * scale)
    assert_allclose(J.T @ impulses, M @ rates, rtol=0, atol=1e-11 * scale * (1 + norm(M)))
    nothing = np.linalg.svd(J.T)[2][np.linalg.matrix_rank(J, tol=1e-9 * (1 + norm(J))) :]
    assert_allclose(nothing @ impulses, 0, rtol=0, atol=1e-9 * (1 + norm(impulses)))
    both = tree._closing(np.stack([q, q]), np.stack([opening, 0 * opening]))
    assert_array_equal(both[0], [rates, 0 * rates])
    assert_array_equal(both[1], [impulses, 0 * impulses])


def chain(cut):
    """Base, link1, link2, link3 and base in a ring, with one of its joints as the loop; and its freedoms.

    The joints are revolute, spherical, revolute and spherical. Links have the same frames whichever joint is cut.
    """
    rng = np.random.default_rng(5)
    bodies, homes = [random_inertia(rng) for _ in range(3)], [random_pose(rng) for _ in range(4)]
    first, third = sd.revolute((1, 2, 3), (0.1, 0, 0)), sd.revolute((0, 1, 2), (0, 0.2, 0.1))
    second, last = sd.spherical((0.1, 0.2, 0)), sd.spherical((-0.1, 0, 0.3))
    tree = sd.KinematicTree(gravity=(1, -2, -9.0))
    tree.attach(bodies[0], to="base", joint=first, at=homes[0], name="link1")
    if cut == "last":
        tree.attach(bodies[1], to="link1", joint=second, at=homes[1], name="link2")
        tree.attach(bodies[2], to="link2", joint=third, at=homes[2], name="link3")
        tree.close("link3", to="base", joint=last, at=homes[3])
    else:
        tree.attach(bodies[2], to="base", joint=last, at=homes[3], name="link3")
        reversed_third = sd.Joint(Ad(homes[2]) @ third.screw)
        tree.attach(bodies[1], to="link3", joint=reversed_third, at=inverse(homes[2]), name="link2")
        tree.close("link2", to="link1", joint=second, at=homes[1])
    return tree


def test_which_joint_is_cut_makes_no_difference():
    one, other = chain("last"), chain("second")
    q = one.assemble(one.neutral())
    rng = np.random.default_rng(2)
    q, qd = one.project(one.integrate(q, 0.3 * rng.normal(size=one.nv)), rng.normal(size=one.nv))
    # The same poses and twists in the other tree, whose last joint turns the other way.
    where = one.forward_kinematics("link3", q)
    home = other.topology.attachments["link3"].home
    V = one.link_twist("link3", q, qd, "body")
    p = np.concatenate([q[:1], quaternion((inverse(home) @ where)[:3, :3]), -q[5:]])
    pd = np.concatenate([qd[:1], V[:3], -qd[4:]])
    for link in ("link1", "link2", "link3"):
        assert_allclose(other.forward_kinematics(link, p), one.forward_kinematics(link, q), rtol=0, atol=1e-12)
        found, expected = (tree.link_twist(link, *s, "body") for tree, s in ((other, (p, pd)), (one, (q, qd))))
        assert_allclose(found, expected, rtol=0, atol=1e-11)
    assert one.freedoms(q) == other.freedoms(p) == 2
    assert norm(qd) > 0.1
    # A torque in the first joint, and no forces in the others.
    qdd, pdd = one.forward_dynamics(q, qd, 3 * np.eye(5)[0]), other.forward_dynamics(p, pd, 3 * np.eye(5)[0])
    for link in ("link1", "link2", "link3"):
        expected = one.link_acceleration(link, q, qd, qdd, "body")
        assert_allclose(other.link_acceleration(link, p, pd, pdd, "body"), expected, rtol=0, atol=1e-9 * norm(expected))


def quaternion(R):
    """Unit quaternion of a rotation matrix, scalar last."""
    w = np.sqrt(1 + np.trace(R)) / 2
    return np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1], 4 * w * w]) / (4 * w)


def test_a_joint_without_inertia_is_named():
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.box(1, (1, 1, 1)), to="base", joint=sd.revolute("z"), name="a")
    tree.attach(sd.Link("b"), to="base", joint=sd.revolute("z", name="idle"), name="b")
    tree.close("b", to="a", joint=sd.spherical())
    with pytest.raises(sd.SingularAttachmentError, match="nothing beyond joint 'idle'"):
        tree.forward_dynamics(tree.neutral(), *np.zeros((2, tree.nv)))


def test_a_door_on_two_hinges():
    """A loop whose constraints the tree keeps by itself, but for rounding, changes no acceleration and no rate."""
    door, (q, qd) = mechanisms.door()
    alone, tau = door.copy(), [0.7, -0.2]
    alone.open("hinge")
    rounding = np.abs(door.constraint_jacobian(q)).max()
    assert 0 < rounding < 1e-15
    expected = alone.forward_dynamics(q, qd, tau)
    assert door.freedoms(q) == 2
    assert_allclose(door.forward_dynamics(q, qd, tau), expected, rtol=1e-12)
    assert_allclose(door.compile().wait().forward_dynamics(q, qd, tau), expected, rtol=1e-12)
    assert_array_equal(door.project(q, qd)[1], qd)


def test_a_closure_without_loops_leaves_everything_as_it_is():
    """Simulations and contacts use it without a question."""
    arm = sd.robots.two_link()
    closure, q, qd = Closure(arm), np.array([3.0, -40.0]), np.array([1e3, 2.0])
    closure.check_moving(q, qd)
    kept = closure.project(q, qd)
    assert kept[0] is q and kept[1] is qd and closure.closed(q) is q
    assert closure.gap(q).shape == closure.opening(q, qd).shape == (0,)
    assert closure.dependent(q, [q]) == [] and closure.assembled(q, np.arange(2)) == (q, 0.0)
    taken, impulses = closure.impact(q, qd)
    assert not taken.any() and not impulses.size
    assert_allclose(closure.inverse_dynamics(q, qd, qd), arm.inverse_dynamics(q, qd, qd), rtol=1e-12)


def test_what_recursions_compute_with_loops():
    tree, _ = mechanisms.four_bar()
    names = ["mass_matrix", "forward_dynamics", "inverse_dynamics", "operational_inertia"]
    assert [tree.model.computed(name) for name in names] == ["mass_matrix", "constrained_dynamics", None, None]
    tree.open("pin")
    assert [tree.model.computed(name) for name in names] == names
