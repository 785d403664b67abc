"""Rotors of motors, against formulas by hand, a Lagrangian and attached bodies."""

import json

import networkx as nx
import numpy as np
import pytest
import sympy as sp
from cases import close, norm
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd
from screwdyn.screws.screw import Ad, inverse, pose, skew
from screwdyn.testing import random_inertia, random_pose, random_tree

AXIS, COM, MASS, ABOUT, ACROSS, RATIO = np.array([2, 3, 6]) / 7, np.array([0.1, 0.2, -0.05]), 0.8, 4e-4, 3e-4, 80.0


def share(tree, carrier, j, q, qd):
    """M, C and g of a rotor on a link of a tree without it, and M and C without those of the rotor at rest.

    docs/mathematics.md §8: J_r = J_a + r S e_jᵀ, C_r = J_rᵀ (M̄ J̇_a + B J_r), with every axis that of the carrier.
    """
    X = Ad(inverse(pose(np.eye(3), COM)))
    J, J_dot = X @ tree.jacobian(carrier, q, "body"), X @ tree.jacobian_dot(carrier, q, qd, "body")
    e, tensor = np.eye(tree.nv)[j], ACROSS * np.eye(3) + (ABOUT - ACROSS) * np.outer(AXIS, AXIS)
    w, J_r = J[:3] @ qd, J + RATIO * np.outer([*AXIS, 0, 0, 0], e)
    sigma = 0.5 * np.trace(tensor) * np.eye(3) - tensor
    inertia, B = np.zeros((2, 6, 6))
    inertia[:3, :3], inertia[3:, 3:] = tensor, MASS * np.eye(3)
    B[:3, :3], B[3:, 3:] = skew(sigma @ w - 0.5 * RATIO * qd[j] * ABOUT * AXIS), MASS * skew(w)
    g = -MASS * J[3:].T @ tree.forward_kinematics(carrier, q)[:3, :3].T @ tree.gravity
    u, u_dot, y = AXIS @ J[:3], AXIS @ J_dot[:3], J[:3].T @ np.cross(w, AXIS)
    dM = ABOUT * RATIO * (np.outer(u, e) + np.outer(e, u) + RATIO * np.outer(e, e))
    across = np.outer(e, u_dot - y / 2) + np.outer(y, e) / 2 - qd[j] / 2 * J[:3].T @ skew(AXIS) @ J[:3]
    return (J_r.T @ inertia @ J_r, J_r.T @ (inertia @ J_dot + B @ J_r), g), (dM, ABOUT * RATIO * across)


def driven(seed, rotor):
    """A random tree, and one with a rotor of its last joint on any link; the freedom of that joint and a state."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 3, ("revolute", "prismatic", "spherical"))
    plain, to, at = tree.copy(), rng.choice(tree.links), random_pose(rng)
    carrier, body = str(rng.choice(tree.links)), random_inertia(rng)
    motor = None if rotor is None else rotor(carrier)
    tree.attach(body, to, sd.revolute("z", name="last", rotor=motor), at, "tip")
    plain.attach(body, to, sd.revolute("z", name="last"), at, "tip")
    j = plain.coordinates.index("last")
    return plain, tree, carrier, j, plain.random_configuration(rng), rng.uniform(-2, 2, plain.nv)


@given(st.integers(0, 2**32 - 1))
def test_a_rotor_contributes_as_a_body_whose_jacobian_has_its_spin(seed):
    plain, tree, carrier, j, q, qd = driven(seed, lambda on: sd.Rotor(ABOUT, RATIO, AXIS, COM, MASS, ACROSS, on))
    own, _ = share(plain, carrier, j, q, qd)
    assert tree.coordinates == plain.coordinates
    size = norm(plain.mass_matrix(q)) + norm(own[0])  # C may vanish
    for found, without, rotor in zip(tree.dynamics(q, qd), plain.dynamics(q, qd), own, strict=True):
        close(found, without + rotor, norm(without) + norm(rotor) + size, 1e-12)
    part = tree.contribution("last_rotor", q, qd)
    columns = [tree.coordinates.index(x) for x in part.coordinates]
    close(np.asarray(part.C), own[1][np.ix_(columns, columns)], norm(own[1]) + norm(own[0]), 1e-11)
    assert_allclose(tree.mass, plain.mass + MASS, rtol=1e-14)


@given(st.integers(0, 2**32 - 1))
def test_a_rotor_that_its_carrier_contains_adds_its_spin_only(seed):
    plain, tree, carrier, j, q, qd = driven(seed, lambda on: sd.Rotor(ABOUT, RATIO, AXIS, COM, carrier=on))
    _, (dM, dC) = share(plain, carrier, j, q, qd)
    M, C, g = plain.dynamics(q, qd)
    for found, expected in zip(tree.dynamics(q, qd), (M + dM, C + dC, g), strict=True):
        close(found, expected, norm(expected) + norm(dC) + norm(M) + norm(dM), 1e-12)
    assert tree.mass == plain.mass


def test_a_rotor_on_the_base_is_an_armature():
    # A pendulum geared to a motor on the base with a parallel axis: (I + r² I_s) q̈, in either direction.
    for ratio in (100.0, -100.0):
        tree = sd.KinematicTree()
        rod = sd.Inertia.rod(2.0, 1.0, com=(0.5, 0, 0))
        tree.attach(rod, "base", sd.revolute("z", rotor=sd.Rotor(1e-4, ratio), name="hinge"))
        assert_allclose(tree.mass_matrix([0.3]), [[2 / 3 + 1.0]], rtol=1e-13)
    # On the pendulum itself, about the same axis, the rotor turns at q̇ + r q̇.
    tree = sd.KinematicTree()
    motor = sd.Rotor(1e-4, 100.0, mass=0.2, across=1e-4, carrier="rod")
    tree.attach(rod, "base", sd.revolute("z", rotor=motor), name="rod")
    assert_allclose(tree.mass_matrix([0.3]), [[2 / 3 + 1e-4 * 101**2]], rtol=1e-13)
    # A slide with a spindle: r in rad/m.
    lift = sd.KinematicTree()
    lift.attach(sd.Inertia.point(3.0), "base", sd.prismatic("z", rotor=sd.Rotor(1e-4, 200.0, "x"), name="lift"))
    assert_allclose(lift.mass_matrix([0.1]), [[3.0 + 4.0]], rtol=1e-13)


def test_two_links_with_a_rotor_against_their_lagrangian():
    plain = sd.KinematicTree()
    bodies = sd.Inertia.box(4, (0.5, 0.1, 0.1), (0.25, 0, 0)), sd.Inertia.box(2, (0.4, 0.08, 0.08), (0.2, 0, 0))
    plain.attach(bodies[0], "base", sd.revolute("z", name="a"), name="l1")
    tree = plain.copy()
    motor = sd.Rotor(ABOUT, RATIO, AXIS, COM, MASS, ACROSS, carrier="l2")
    tree.attach(bodies[1], "l1", sd.revolute("y", name="b", rotor=motor), (0.5, 0, 0), "l2")
    plain.attach(bodies[1], "l1", sd.revolute("y", name="b"), (0.5, 0, 0), "l2")
    x, xd, s = sp.Matrix(sp.symbols("a b")), sp.Matrix(sp.symbols("da db")), sp.Matrix([2, 3, 6]) / 7
    Rz, Ry = sp.rot_axis3(-x[0]), sp.rot_axis2(-x[1])
    w = Ry.T * sp.Matrix([0, 0, xd[0]]) + sp.Matrix([0, xd[1], 0]) + RATIO * xd[1] * s
    v = (Rz * (sp.Matrix([0.5, 0, 0]) + Ry * sp.Matrix(COM))).jacobian(x) * xd
    T = (MASS * v.dot(v) + ACROSS * w.dot(w) + (ABOUT - ACROSS) * w.dot(s) ** 2) / 2
    H = sp.hessian(T, list(xd))
    q, qd = np.array([0.4, -0.9]), np.array([1.3, -2.1])
    at = {**dict(zip(x, q, strict=True)), **dict(zip(xd, qd, strict=True))}

    def symbol(i, j):
        terms = (H[i, j].diff(x[k]) + H[i, k].diff(x[j]) - H[j, k].diff(x[i]) for k in (0, 1))
        return sum(term * rate for term, rate in zip(terms, xd, strict=True)) / 2

    M, C = (np.array(sp.Matrix(2, 2, f).subs(at), dtype=float) for f in (lambda i, j: H[i, j], symbol))
    assert_allclose(tree.mass_matrix(q) - plain.mass_matrix(q), M, rtol=1e-11)
    assert_allclose(tree.coriolis_matrix(q, qd) - plain.coriolis_matrix(q, qd), C, rtol=1e-9, atol=1e-12)


def test_a_rotor_comes_and_goes_with_its_joint():
    tree = sd.robots.two_link()
    q = np.array([0.3, 0.4])
    before = tree.mass_matrix(q)
    rotor = sd.Rotor(1e-4, 50, carrier=tree.links[1])
    handle = tree.attach(
        sd.Inertia.sphere(1, 0.1, (0.1, 0, 0)), tree.links[-1], sd.revolute("z", rotor=rotor), name="tool"
    )
    assert tree.links[-3:] == ("tool", "tool_rotor", "tool_rotor_at_rest")
    assert (tree.parent("tool_rotor"), tree.nv) == (tree.links[1], 3)
    twin = sd.KinematicTree()
    twin.attach(tree, "base", prefix="left/")
    assert twin.joint("left/tool_rotor").mimic.joint == "left/tool"
    assert_allclose(twin.mass_matrix([*q, 0.1]), tree.mass_matrix([*q, 0.1]), rtol=1e-13)
    again = sd.KinematicTree.from_json(tree.to_json())
    assert again.to_json() == tree.to_json()
    assert_array_equal(again.mass_matrix([*q, 0.1]), tree.mass_matrix([*q, 0.1]))
    again.detach("tool")
    assert again.links == sd.robots.two_link().links
    tree.detach(handle)
    assert_array_equal(tree.mass_matrix(q), before)
    own = sd.Rotor(1e-4, 50, carrier="tool", mass=0.1, across=1e-4)
    tree.attach(sd.Inertia.sphere(1, 0.1), tree.links[-1], sd.revolute("z", rotor=own), name="tool")
    tree.attach(sd.Link("disc"), "tool_rotor")
    with pytest.raises(sd.TopologyError, match="the rotor 'tool_rotor' carries 'disc'; detach that link first"):
        tree.detach("tool")
    tree.detach("disc")
    tree.detach("tool")
    assert_array_equal(tree.mass_matrix(q), before)


@pytest.mark.parametrize("missing", ["tool_rotor", "tool_rotor_at_rest"])
def test_a_tree_that_lacks_links_of_a_rotor_is_not_read(missing):
    tree = sd.robots.two_link()
    rotor = sd.Rotor(1e-4, 50)
    tree.attach(sd.Inertia.sphere(1, 0.1), tree.links[-1], sd.revolute("z", rotor=rotor), name="tool")
    graph, document = nx.DiGraph(tree.graph), json.loads(tree.to_json())
    assert sd.KinematicTree.from_graph(graph).links == tree.links
    graph.remove_node(missing)
    document["links"] = [link for link in document["links"] if link["name"] != missing]
    for read in (lambda: sd.KinematicTree.from_graph(graph), lambda: sd.KinematicTree.from_json(json.dumps(document))):
        with pytest.raises(sd.ScrewdynError, match=f"joint 'tool' has a rotor, but there is no link '{missing}'"):
            read()


@pytest.mark.parametrize("lock", [False, True])
def test_joints_are_not_separated_from_those_that_they_follow(lock):
    tree, box = sd.KinematicTree(), sd.Inertia.box(1, (0.1, 0.2, 0.3))
    tree.attach(box, "base", name="housing")
    rotor = sd.Rotor(1e-4, 50, carrier="housing")
    tree.attach(box, "base", sd.revolute("z", rotor=rotor, name="left"), name="l")
    tree.attach(box, "base", sd.revolute("z", mimic=sd.Mimic("left"), name="right"), name="r")
    if lock:
        tree.lock("left")

    def refused(link, follows):
        before = tree.topology
        with pytest.raises(sd.TopologyError, match=f"{follows}, from which it would be separated"):
            tree.detach(link)
        assert tree.topology is before

    refused("housing", "'left_rotor' follows 'left'")
    refused("l", "'right' follows 'left'")
    tree.detach("r")
    if lock:
        tree.unlock("left")
    tree.attach(box, "base", sd.revolute("z", mimic=sd.Mimic("left_rotor"), name="encoder"), name="disc")
    if lock:
        tree.lock("left")
    refused("l", "'encoder' follows 'left_rotor'")


@pytest.mark.parametrize("lock", [False, True])
@pytest.mark.parametrize("link", ["left/tool_rotor", "left/tool_rotor_at_rest"])
def test_a_rotor_changes_with_its_joint_only(link, lock):
    arm, tree = sd.robots.two_link(), sd.KinematicTree()
    box = sd.Inertia.box(1, (0.1, 0.2, 0.3))
    arm.attach(box, arm.links[-1], sd.revolute("z", rotor=sd.Rotor(1e-4, 50)), name="tool")
    tree.attach(arm, "base", prefix="left/")
    if lock:
        tree.lock("left/tool")
    before, state = tree.topology, sd.State(tree)
    for change in (
        lambda: tree.detach(link),
        lambda: tree.release(state, link),
        lambda: tree.release(state, link, into_world=True),
        lambda: tree.move(link, "base"),
        lambda: tree.move(link, "base", state=state),
        lambda: tree.replace_joint(link, sd.revolute("z")),
        lambda: tree.set_inertia(link, box),
        lambda: tree.set_inertia(link, box, state),
    ):
        with pytest.raises(sd.TopologyError, match=f"'{link}' is the rotor of joint 'left/tool', .* link 'left/tool'"):
            change()
        assert tree.topology is before
    tree.detach("left/tool")
    # Any other link may have such a name.
    tree.attach(box, "base", name=link)
    tree.detach(link)


def test_a_lock_holds_the_rotor_and_a_release_takes_its_energy():
    tree = sd.robots.two_link()
    body = sd.Inertia.sphere(1, 0.1, (0.1, 0, 0))
    motor = sd.Rotor(1e-3, 30, mass=0.2, across=1e-3)
    tree.attach(body, tree.links[-1], sd.revolute("z", rotor=motor), name="tool")
    state = sd.State(tree, [0.1, 0.2, 0.3], [1.0, -2.0, 3.0])
    M = tree.mass_matrix(state.q)
    locked = tree.copy().lock("tool", state)
    assert_allclose(locked.state.qd, np.linalg.solve(M[:2, :2], M[:2] @ state.qd), rtol=1e-9)
    kinetic = tree.kinetic_energy(state.q, state.qd)
    event = tree.release(state, "tool")
    after = tree.kinetic_energy(event.state.q, event.state.qd)
    assert_allclose(after - kinetic, event.kinetic_energy_brought, rtol=1e-11)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sd.Rotor(-1e-4, 10), "the inertia of a rotor must be a finite number >= 0; got -0.0001"),
        (lambda: sd.Rotor(1e-4, 0), "the ratio of a rotor must not be zero"),
        (lambda: sd.Rotor(1e-4, 10, mass=1.0), "needs both mass= and across="),
        (lambda: sd.Rotor(1e-4, 10, mass=1.0, across=1e-5), "no solid of revolution has the moments 0.0001"),
        (lambda: sd.Rotor(1e-4, 10, axis=(0, 0, 0)), "zero"),
        (lambda: sd.revolute(rotor=100.0), r"rotor must be a Rotor, such as Rotor\(1e-4, ratio=100\); got 100.0"),
        (lambda: sd.universal(rotor=sd.Rotor(1e-4, 10)), "only a joint of one freedom has a rotor; got a universal"),
    ],
)
def test_bad_rotors_are_refused(make, message):
    with pytest.raises(sd.JointError, match=message):
        make()


def test_an_unknown_carrier_is_refused():
    tree = sd.robots.two_link()
    before = tree.topology
    with pytest.raises(sd.UnknownNameError, match="'bse'"):
        tree.attach(sd.Inertia.point(1.0), "base", sd.revolute(rotor=sd.Rotor(1e-4, 10, carrier="bse")))
    with pytest.raises(sd.UnknownNameError, match="'bse'"):
        tree.replace_joint(tree.links[1], sd.revolute(rotor=sd.Rotor(1e-4, 10, carrier="bse")))
    assert tree.topology is before


def test_a_rotor_may_hold_symbols():
    I, r = sp.symbols("I r", positive=True)
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.rod(3.0, 1.0, com=(0.5, 0, 0)), "base", sd.revolute("z", rotor=sd.Rotor(I, r)), name="rod")
    assert tree.free_symbols == {I, r}
    assert sp.simplify(tree.symbolic().mass_matrix()[0] - (1 + I * r**2)) == 0
    assert_allclose(tree.subs({I: 0.01, r: 10}).mass_matrix([0.0]), [[2.0]], rtol=1e-13)


@pytest.mark.parametrize("carrier", [3, ["link1"]])
def test_a_carrier_that_is_no_name(carrier):
    with pytest.raises(sd.JointError, match="the carrier of a rotor must be the name of a link"):
        sd.Rotor(1e-3, 5, carrier=carrier)
