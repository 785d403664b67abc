"""Zeros of joints: operations and results do not depend on the positions at which coordinates are zero."""

from dataclasses import replace
from math import pi

import numpy as np
import pytest
import sympy as sp
from closed_forms import evaluated
from hypothesis import given, settings
from hypothesis import strategies as st
from kinds import EVERY, SINGLE
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd
from screwdyn.backends.tape.tape import CountingTape, Tape
from screwdyn.backends.tape.trace import constants
from screwdyn.forms.requests import requested, results
from screwdyn.physics.joint_zeros import moved_zeros
from screwdyn.physics.link_steps import joint_pose
from screwdyn.physics.table import home, joint_screw
from screwdyn.testing import random_inertia, random_tree

FUNCTIONS = ("mass_matrix", "coriolis_matrix", "gravity_vector", "inverse_dynamics", "forward_dynamics")


def with_zeros(tree, zeros):
    """The tree whose coordinates are q − c: a home T becomes T exp(Ŝ c), and an offset grows by ratio · c_leader − c.

    ``zeros`` are the constants c of joints by name, which concern the first screw of a joint with two.
    """
    moved = sd.KinematicTree(gravity=tree.gravity)
    for link in tree.links[1:]:
        if link.endswith("_rotor"):
            continue  # attached with the joint that drives it
        edge = tree.graph.edges[tree.parent(link), link]
        joint, at = edge["joint"], edge["home"]
        if joint.name in zeros:
            at = at @ sd.screw.exp(joint.screws[:, 0] * zeros[joint.name])
        if joint.mimic is not None:
            mimic = joint.mimic
            offset = mimic.offset + mimic.ratio * zeros[mimic.joint] - zeros.get(joint.name, 0)
            joint = replace(joint, mimic=sd.Mimic(mimic.joint, mimic.ratio, offset))
        moved.attach(tree.graph.nodes[link]["link"], tree.parent(link), joint, at)
    return moved


def counts(tree):
    """Operations of exact arithmetic; of floats, two values of one product may differ by rounding."""
    found = []
    for name in FUNCTIONS:
        tape = CountingTape()
        (outputs,) = results(requested(name, tree.links), tree.model, tape)
        found.append(tape.count(outputs.ravel(), lambda name: name[0] == "symbol"))
    return found


def differ_by_additions_alone(first, second, joints):
    """Whether each count differs by at most one addition for each joint."""
    for a, b in zip(first, second, strict=True):
        a, b = dict(a), dict(b)
        if abs(a.pop("add") - b.pop("add")) > joints or a != b:
            return False
    return True


def by_tape(tree, name, state):
    """The results of a quantity from its recording, which generated code executes."""
    tape = Tape()
    (outputs,) = results(requested(name, tree.links), tree.model, tape)
    values = {(group, k): x for group, xs in state.items() for k, x in enumerate(xs)}
    return np.array(tape.evaluate(outputs.ravel(), values), dtype=float).reshape(outputs.shape)


@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1), kinds=st.sampled_from([*((kind,) for kind in SINGLE), EVERY]))
def test_random_trees_with_random_zeros(seed, kinds):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 4, kinds)
    zeros = {joint.name: rng.uniform(-3, 3) for joint in tree.model.joints if joint.chart is None}
    moved = with_zeros(tree, zeros)
    assert differ_by_additions_alone(counts(tree), counts(moved), len(zeros))
    q, (qd, qdd) = tree.random_configuration(rng), rng.uniform(-1, 1, (2, tree.nv))
    for name, state in (("inverse_dynamics", {"q": q, "qd": qd, "qdd": qdd}), ("mass_matrix", {"q": q})):
        expected = getattr(moved, name)(*state.values())
        assert_allclose(by_tape(moved, name, state), expected, rtol=0, atol=1e-12 * (1 + np.abs(expected).max()))


@pytest.mark.parametrize("robot", ["pelican", "truc_3r", "rtx"])
def test_zeros_of_axes_off_the_origin_leave_no_rounding(robot):
    tree = getattr(sd.robots, robot)()
    for seed in range(3):
        rng = np.random.default_rng(seed)
        moved = with_zeros(tree, {joint.name: rng.uniform(-1, 1) for joint in tree.model.joints})
        for name in FUNCTIONS:
            a, b = tree.operation_count(name), moved.operation_count(name)
            assert a.pop("add") + tree.nv >= b.pop("add") and a == b


@pytest.mark.parametrize("kind", SINGLE)
def test_poses_remain(kind):
    rng = np.random.default_rng(1)
    for name in ("x", "z", (0, 3, 4), (1, 2, 3)):
        joint = {"revolute": sd.revolute, "prismatic": sd.prismatic}.get(kind, lambda axis: sd.helical(axis, 0.1))(name)
        for c in (0, 0.4, pi / 2, -2.5, 3):
            tree = sd.KinematicTree()
            tree.attach(random_inertia(rng), "base", joint, sd.screw.exp(joint.screw * c))
            table = constants(tree.model.table)
            moved, (constant,) = moved_zeros(table)
            for q in (0.0, 0.3, -1.2):
                before = joint_pose(home(table, 0), joint_screw(table, 0), q)
                after = joint_pose(home(moved, 0), joint_screw(moved, 0), q + constant)
                assert_allclose([*after.R, *after.p], [*before.R, *before.p], rtol=0, atol=2e-15)
            # p + q along a coordinate axis takes as many operations as q + c.
            assert name in ("x", "z") or np.abs(moved[0, 9:12]).max() < 1e-15


def test_nothing_is_added_where_nothing_is_gained():
    for tree in (sd.robots.puma560(), sd.robots.panda(), sd.robots.stanford()):
        table = constants(tree.model.table)
        moved, zeros = moved_zeros(table)
        assert_array_equal(moved, table)
        assert not zeros.any()


def arm(zeros, types="RRR", alphas=(0.5, 1.5, 2.5), gravity=(0, 0, -9.81)):
    """An arm with general Denavit-Hartenberg parameters."""
    rng = np.random.default_rng(0)
    rows = []
    for k, (zero, alpha, type) in enumerate(zip(zeros, alphas, types, strict=True)):
        given, other = ("theta", "d") if type == "R" else ("d", "theta")
        rows.append({"type": type, "a": 0.4 + 0.3 * k, "alpha": alpha, given: zero, other: 0.3 + k})
        rows[-1]["inertia"] = random_inertia(rng)
    return sd.KinematicTree.from_dh(rows, gravity=gravity)


def test_the_order_of_two_arms_does_not_depend_on_zeros():
    """M of RRR took 120/91 operations with offsets and 100/76 without, and that of RPR 101/78 and 90/71."""
    zeros = (0, 0, 0), (0.2, 1.2, -2.2)
    some, more = ([arm(c, types).operation_count("mass_matrix") for c in zeros] for types in ("RPR", "RRR"))
    assert [(x["mul"], x["add"]) for x in some + more] == [(90, 71), (90, 72), (100, 76), (100, 78)]


@pytest.mark.parametrize("types", ["RRR", "RPR", "PRR"])
@pytest.mark.parametrize("alphas", [(0.5, 1.5, 2.5), (0, pi / 2, 0), (pi / 2, 0, 0)])
def test_offsets_take_one_addition_each(types, alphas):
    few = counts(arm((0, 0, 0), types, alphas))
    assert differ_by_additions_alone(few, counts(arm((0.2, 1.2, -2.2), types, alphas)), 3)
    symbols = sp.symbols("c1:4", real=True)
    assert differ_by_additions_alone(few, counts(arm(symbols, types, alphas)), 3)


def test_parallel_axes_share_the_sums_of_their_angles():
    """Ten angles q_i + … + q_k + c of four joints are sums of four q_i + c_i."""
    for zeros in ((0.1, 0.2, 0.3, 0.4), (0.3, 0.3, 0.3, 0.3), (pi / 2, 0, -pi / 2, pi)):
        arms = [arm(c, "RRRR", (0, 0, 0, 0), (0, -9.81, 0)) for c in ((0, 0, 0, 0), zeros)]
        assert differ_by_additions_alone(*map(counts, arms), 4)


def test_the_closed_form_of_two_links_with_offsets():
    """Point masses in the middle of two links of length a, by hand."""
    a, m, g = sp.symbols("a m g", positive=True)
    c1, c2 = sp.symbols("c1 c2", real=True)
    rows = [{"a": a, "theta": c, "m": m, "com": (-a / 2, 0, 0), "joint": f"q{k}"} for k, c in ((1, c1), (2, c2))]
    symbolic = sd.KinematicTree.from_dh(rows, gravity=(0, -g, 0)).symbolic()
    q1, q2 = symbolic.q
    M, G = symbolic.mass_matrix(), symbolic.gravity_vector()
    x, y = q1 + c1, q2 + c2
    half = m * a**2 / 4 + m * a**2 / 2 * sp.cos(y)
    swing = m * g * a / 2 * sp.cos(x + y)
    for found, expected in (
        (M, [[m * a**2 * 3 / 2 + m * a**2 * sp.cos(y), half], [half, m * a**2 / 4]]),
        (G, [[3 * m * g * a / 2 * sp.cos(x) + swing], [swing]]),
    ):
        assert sp.simplify(found - sp.Matrix(expected)) == sp.zeros(*found.shape)
    assert sorted(map(str, M.atoms(sp.sin, sp.cos))) == ["cos(c2 + q2)"]


def followers(mimic):
    """An arm, of which one joint drives a rotor and another one has a follower on a parallel axis."""
    rng = np.random.default_rng(2)
    tree, rotor = sd.KinematicTree(), sd.Rotor(1e-4, 50.0, (0, 0.6, 0.8), mass=0.3, across=8e-5)
    tree.attach(random_inertia(rng), "base", sd.revolute((1, 2, 2), name="a"), name="a")
    tree.attach(random_inertia(rng), "a", sd.revolute("y", name="b", rotor=rotor), (0.1, 0.2, 0.3), "b")
    tree.attach(random_inertia(rng), "b", sd.revolute("y", name="c", mimic=mimic), (0.1, 0, 0.4), "c")
    return tree


@pytest.mark.parametrize("ratio", [-1.0, 1.0, 0.7])
def test_constants_of_followers_are_one(ratio):
    """The offset of a follower, that of its leader and their zeros; a hand that remains parallel has one angle less."""
    plain = followers(sd.Mimic("b", ratio, 0.4))
    moved = with_zeros(plain, {"a": 0.3, "b": 1.1, "c": -0.8})
    assert differ_by_additions_alone(counts(plain), counts(moved), 3)
    q, qd = np.array([[0.4, -0.7], [1.1, 0.3]])
    for name, state in (("mass_matrix", {"q": q}), ("coriolis_matrix", {"q": q, "qd": qd})):
        expected = getattr(moved, name)(*state.values())
        assert_allclose(by_tape(moved, name, state), expected, rtol=0, atol=1e-13 * np.abs(expected).max())
    offset = sp.Symbol("c")
    symbolic = followers(sd.Mimic("b", ratio, offset)).symbolic()
    found = evaluated(symbolic.mass_matrix(expand=False), dict(zip(symbolic.q, q, strict=True)) | {offset: 0.4}, (2, 2))
    assert_allclose(found, plain.mass_matrix(q), rtol=1e-12, atol=1e-13)


def test_angles_of_expressions():
    """Of expressions, only angles that occur as such are moved: a home of two angles remains."""
    u, v = sp.symbols("u v", real=True)
    for R, moves in (
        (sp.rot_axis3(-u), True),
        (sp.rot_axis1(-v) * sp.rot_axis3(u), True),
        (sp.rot_axis3(-sp.pi / 7), True),
        (sp.rot_axis3(-u) * sp.rot_axis1(-v) * sp.rot_axis3(-u), False),
    ):
        at = sp.eye(4)
        at[:3, :3] = R
        tree = sd.KinematicTree()
        tree.attach(sd.Inertia.box(1, (0.1, 0.2, 0.3)), "base", sd.revolute(), np.array(at, dtype=object))
        (c,) = moved_zeros(np.array([*tree.model.rows, tree.model.base_row], dtype=object))[1]
        assert (c != 0) == moves


def test_compiled_code_steps_and_derivatives_know_the_zeros():
    tree = arm((0.2, 1.2, -2.2), "RPR")
    q, qd, tau = np.random.default_rng(0).uniform(-1, 1, (3, 3))
    fast = tree.compile(threads=1).wait()
    for name, state in (("inverse_dynamics", (q, qd, tau)), ("forward_dynamics", (q, qd, tau))):
        expected = getattr(tree, name)(*state)
        assert_allclose(getattr(fast, name)(*state), expected, rtol=1e-12, atol=1e-12)
    h = 1e-5 * np.eye(3)
    expected = (tree.gravity_vector(q + h) - tree.gravity_vector(q - h)).T / 2e-5
    assert_allclose(tree.derivatives.gravity_vector(q), expected, rtol=0, atol=1e-8)
