"""Tables with fewer numbers have the same dynamics, and motions that no inertia resists are found."""

from dataclasses import replace
from math import pi

import numpy as np
import pytest
import sympy as sp
from cases import FULL_SOAK, cases
from closed_forms import evaluated
from hypothesis import given, settings
from hypothesis import strategies as st
from kinds import EVERY, SINGLE
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd
from screwdyn import Inertia, KinematicTree, Link, helical, prismatic, revolute
from screwdyn.backends.llvm import program as native
from screwdyn.backends.tape.tape import CountingTape, Tape
from screwdyn.backends.tape.trace import Subject, constants, record
from screwdyn.forms.requests import requested, results
from screwdyn.physics.link_steps import joint_pose
from screwdyn.physics.reductions import aligned_frames, base_parameters, moved_zeros
from screwdyn.physics.table import FIRST_MOMENT, INERTIA, MASS, PARENT, home, joint_screw
from screwdyn.testing import random_inertia, random_pose, random_tree

BODY = Inertia(2.0, (0.1, 0.2, 0.3), np.array([[0.5, 0.01, 0.02], [0.01, 0.4, 0.03], [0.02, 0.03, 0.3]]))
KEPT = {
    "revolute": {1, 2, 4, 5, 6, 8, 9},
    "prismatic": {0, 1, 2, 3},
    "helical": {0, 1, 2, 3, 4, 5, 6, 8, 9},
}


def test_what_each_joint_leaves():
    for kind, joint in {"revolute": revolute("z"), "prismatic": prismatic("z"), "helical": helical("z", 0.1)}.items():
        tree = KinematicTree()
        tree.attach(Link("body", BODY), to="base", joint=joint)
        (left,) = np.nonzero(base_parameters(tree.model.table)[0, MASS:PARENT])
        assert set(left) == KEPT[kind]


@given(cases(least=1))
def test_twice_is_once_and_the_table_given_is_not_touched(case):
    table = case.tree.model.table
    before = table.copy()
    once = base_parameters(table)
    assert (table == before).all()
    assert (base_parameters(once) == once).all()
    assert (np.delete(once, np.s_[MASS:PARENT], 1) == np.delete(before, np.s_[MASS:PARENT], 1)).all()


def test_a_load_behind_a_pin_is_a_point_mass_to_the_arm():
    """A disc on a pin through its centre: the arm feels its mass at the pin, and the pin its moment only."""
    tree = KinematicTree()
    tree.attach(Link("arm"), to="base", joint=revolute("z"))
    tree.attach(Link("disc", Inertia(3.0, 0, (0.1, 0.1, 0.2))), to="arm", joint=revolute("z"), at=(2.0, 0, 0))
    arm, disc = base_parameters(tree.model.table)[:2]
    assert disc[MASS:PARENT].tolist() == [0] * 9 + [0.2]
    assert arm[FIRST_MOMENT] == 6 and arm[INERTIA + 5] == 12


def gripper(first="x"):
    """A hand on two joints, with two fingers that open along a diagonal."""
    tree = KinematicTree()
    tree.attach(Link("arm", BODY), to="base", joint=revolute(first))
    tree.attach(Link("hand", BODY), to="arm", joint=revolute("z"), at=(0.1, 0.2, 0.3))
    for side in (1, -1):
        finger = Link(f"finger {side}", Inertia(0.1, (0, 0, 0.05)))
        tree.attach(finger, to="hand", joint=prismatic((side, side, 0)), at=(0, 0, 0.1))
    return tree


@given(case=cases(least=2))
def test_the_dynamics_remain(case):
    table, state = case.tree.model.table, {"q": case.q, "qd": case.qd, "qdd": case.qdd}
    values = {(group, i): x for group, given_ in state.items() for i, x in enumerate(given_)}
    before, after = [], []
    for numbers, found in ((constants(table), before), (aligned_frames(constants(table)), after)):
        tape = Tape()
        for name in ("inverse_dynamics", "mass_matrix"):
            (outputs,) = record(tape, name, Subject(numbers))
            found += tape.evaluate(outputs.ravel(), values)
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-13 * (1 + np.abs(before).max(initial=0)))


def test_diagonal_fingers_move_along_a_coordinate_axis():
    table = constants(gripper().model.table)
    assert not whole(table[2:4, :9])
    aligned = aligned_frames(table)
    assert whole(aligned[2:4, :9])
    assert (aligned_frames(aligned) == aligned).all()


def whole(rotations):
    """Whether all entries are 0, 1 or -1."""
    return np.isin(rotations.astype(float), (0, 1, -1)).all()


def test_frames_remain_where_nothing_is_gained():
    for tree in (sd.robots.ur5(), sd.robots.puma560(), gripper(first="z")):
        table = constants(tree.model.table)
        assert (aligned_frames(table) == table).all()


def test_quantities_of_links_are_in_the_links_own_frames():
    """Operational-space inertia is computed from base parameters, too, for a link in the frame of its row."""
    tree, above = KinematicTree(), "base"
    for k, axis in enumerate(("z", "x", (0, 1, 1), (1, 0, 1), (1, 1, 0), "y", (1, 0, 2), (1, 2, 3))):
        above = tree.attach(Link(f"link {k}", BODY), to=above, joint=revolute(axis), at=(0.1, 0.2, 0.3)).name
    model = tree.model
    places = model.places("one", "link 6", 0)
    opened = np.zeros((8, 10), dtype=bool)
    assert (aligned_frames(constants(model.table))[6] != constants(model.table)[6]).any()
    program = native.recorded("operational_inertia", native.Structure(model.table, opened, None, places))
    q = np.linspace(0.2, 1.6, 8)
    found = program.plan.tape.evaluate(program.plan.outputs[0], {("q", i): x for i, x in enumerate(q)})
    expected = tree.operational_inertia("link 6", q).ravel()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


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


@pytest.mark.slow
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
        (c,) = moved_zeros(tree.model.entries.astype(object))[1]
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


NAMED = "nothing resists a motion of .* together in any configuration|nothing beyond joint .* resists its motion in any"


def rod_between(mass, a, b):
    """A thin rod from one point to another."""
    a, b = np.array(a), np.array(b)
    return sd.Inertia.rod(mass, np.linalg.norm(b - a), b - a, (a + b) / 2)


def rod_on_a_ball(seed, off=0.0):
    """A thin rod on a ball joint whose centre lies on the rod's axis, or at a distance, in general position."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, 3))
    tree = sd.KinematicTree()
    tree.attach(random_inertia(rng), to="base", joint=sd.revolute(rng.normal(size=3)), at=random_pose(rng))
    across = np.cross(b - a, rng.normal(size=3))
    center = a + rng.normal() * (b - a) + off * across / np.linalg.norm(across)
    tree.attach(rod_between(1.3, a, b), to=tree.links[-1], joint=sd.spherical(center, name="ball"), at=random_pose(rng))
    return tree


def planar_on_a_ball(seed):
    """A massless base that carries a planar joint, on a ball joint."""
    rng = np.random.default_rng(seed)
    payload = sd.KinematicTree(sd.Link("plate"))
    joint = sd.planar(rng.normal(size=3), name="table")
    payload.attach(sd.Inertia(1.0, rng.normal(size=3), (0.4, 0.5, 0.6)), to="plate", joint=joint, at=random_pose(rng))
    tree = sd.KinematicTree()
    tree.attach(random_inertia(rng), to="base", joint=sd.revolute(rng.normal(size=3)), at=random_pose(rng))
    ball = sd.spherical(rng.normal(size=3), name="ball")
    tree.attach(payload, to=tree.links[-1], joint=ball, at=random_pose(rng), prefix="p/")
    return tree


@pytest.mark.slow
@pytest.mark.parametrize("make", [rod_on_a_ball, planar_on_a_ball])
@pytest.mark.parametrize(
    "seeds", [range(40), pytest.param(range(40, 600 if FULL_SOAK else 160), marks=pytest.mark.soak)]
)
def test_no_rounding_accepts_them(make, seeds):
    for seed in seeds:
        tree, rng = make(seed), np.random.default_rng(seed)
        q = tree.model.configurations.integrate(tree.neutral(), rng.normal(size=tree.nv))
        M = tree.mass_matrix(q)
        assert np.linalg.eigvalsh(M)[0] < 1e-12 * np.trace(M)  # the witness
        for _ in range(2):
            with pytest.raises(sd.SingularAttachmentError, match=NAMED):
                tree.forward_dynamics(q, *rng.normal(size=(2, tree.nv)))


def test_the_error_names_what_moves():
    message = "motion of 'ball[wx]', 'ball[wy]' and 'ball[wz]' together in any configuration"
    for seed in range(5):
        tree = rod_on_a_ball(seed)
        with pytest.raises(sd.SingularAttachmentError) as caught:
            tree.forward_dynamics(tree.neutral(), *np.zeros((2, 4)))
        assert message in str(caught.value)


@pytest.mark.parametrize("seed", range(10))
def test_inertia_that_some_configuration_has_is_enough(seed):
    """A millimetre off the axis, an armature, and a second rod across the first give M an inverse."""
    rng = np.random.default_rng(1000 + seed)
    across = rod_on_a_ball(seed)
    across.attach(rod_between(0.1, *rng.normal(size=(2, 3))), to=across.links[-1])
    pinned = sd.KinematicTree()
    pinned.attach(rod_between(1.0, (0, 0, 0), (0, 0, 1)), to="base", joint=sd.revolute("z", armature=1e-3))
    assert not rod_on_a_ball(seed, off=1e-7).model.unresisted
    for tree in (rod_on_a_ball(seed, off=1e-3), across, pinned):
        q = tree.model.configurations.integrate(tree.neutral(), rng.normal(size=tree.nv))
        tau, rest = rng.normal(size=tree.nv), np.zeros(tree.nv)
        for _ in range(2):  # the first call asks whether M has an inverse
            qdd = tree.forward_dynamics(q, rest, tau)
        found = tree.inverse_dynamics(q, rest, qdd)
        assert np.allclose(found, tau, rtol=0, atol=1e-6 * np.abs(tau).max())


def test_a_chain_of_points_is_not_refused():
    """Composite inertias of long chains say nothing: 300 points on a rope, each on massless universal joints."""
    tree = sd.KinematicTree()
    for k in range(300):
        rope = sd.universal("x", "y")
        tree.attach(sd.Link(f"p{k}", sd.Inertia.point(1.0, (0, 0, -1.0))), to=tree.links[-1], joint=rope, at=(0, 0, -1))
    assert tree.model.lean
    assert not tree.model.unresisted


def test_where_a_robot_stands_does_not_matter():
    """A pendulum of a millimetre whose base has coordinates of the Earth's centre moves as one that stands at 0."""
    found = []
    for at in (0.0, 6.4e6, 1e12):
        tree = sd.KinematicTree()
        tree.attach(sd.Inertia.point(1.0, (0, 0, -1e-3)), to="base", joint=sd.universal("x", "y"), at=(at, 0, 0))
        found.append(tree.forward_dynamics([0.7, 0.5], [0, 0], [1, 2]))
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


def test_parts_of_different_sizes_are_judged_each_by_its_own():
    """On the arm of a slide, a pendulum of a millimetre moves as at the slide; a rod of a millimetre is still refused.

    The slide translates only, so the arm's length is of no influence.
    """
    for offset, refused in (((0, 0, 1e-3), False), ((1e-3, 0, 0), True)):
        found = []
        for arm in (1e-3, 1e6, 1e12):
            tree = sd.KinematicTree()
            tree.attach(sd.Inertia.point(2.0), to="base", joint=sd.prismatic("x"), name="cart")
            rod = sd.Inertia.rod(1.0, 1e-3, "x", offset)
            tree.attach(rod, to="cart", joint=sd.spherical(name="ball"), at=(0, arm, 0))
            q = np.array([0.3, 0.1, 0.5, 0.1, np.sqrt(0.73)])
            if refused:
                with pytest.raises(sd.SingularAttachmentError, match=r"'ball\[wx\]' resists its motion in any"):
                    tree.forward_dynamics(q, np.zeros(4), np.ones(4))
            else:
                found.append(tree.forward_dynamics(q, np.zeros(4), [1, 1e-6, 2e-6, 3e-6]))
        for one in found:
            assert np.allclose(one, found[0], rtol=1e-9, atol=0)


DOORS = {
    "batch": lambda t, q, v: t.forward_dynamics(np.stack([q, q]), v, v),
    "frozen": lambda t, q, v: t.copy().forward_dynamics(q, v, v),
    "compiled": lambda t, q, v: t.compile().wait().forward_dynamics(q, v, v),
    "compiled batch": lambda t, q, v: t.compile().wait().forward_dynamics(np.stack([q, q]), v, v),
    "operational_inertia": lambda t, q, v: t.operational_inertia(t.links[-1], q),
    "compiled operational_inertia": lambda t, q, v: t.compile().wait().operational_inertia(t.links[-1], q),
    "derivatives": lambda t, q, v: t.derivatives.forward_dynamics(q, v, v),
    "linearize": lambda t, q, v: t.linearize(q),
    "symbolic": lambda t, q, v: t.symbolic().forward_dynamics(),
    "c_source": lambda t, q, v: t.c_source("forward_dynamics"),
    "operation_count": lambda t, q, v: t.operation_count("forward_dynamics"),
    "simulate": lambda t, q, v: sd.simulate(t, sd.State(t, q, v), 0.1),
    "rollout": lambda t, q, v: t.compile().rollout(q, v, 10, 1e-3),
    "lock": lambda t, q, v: t.lock("payload", state=sd.State(t, q, v)),
    "replace_joint": lambda t, q, v: t.replace_joint(t.links[1], sd.prismatic("x"), state=sd.State(t, q, v)),
}


@pytest.mark.parametrize("door", DOORS)
def test_every_door_refuses(door):
    tree = rod_on_a_ball(3)
    q = tree.model.configurations.integrate(tree.neutral(), np.full(4, 0.3))
    with pytest.raises(sd.SingularAttachmentError, match=NAMED):
        DOORS[door](tree, q, np.full(4, 0.1))
    assert tree.nv == 4


def test_a_grasp_in_motion_refuses_and_changes_nothing():
    tree, rng = sd.robots.ur5(), np.random.default_rng(1)
    state = sd.State(tree, rng.normal(size=6), rng.normal(size=6))
    rod = rod_between(1.0, (0, 0, 0), (0.1, 0.2, 0.3))
    with pytest.raises(sd.SingularAttachmentError, match=NAMED):
        tree.grasp(state, rod, to="tool0", joint=sd.spherical(), twist="at_rest")
    assert tree.nv == 6


def test_joints_that_follow_others_are_found():
    """A rod that turns about itself leads another one that does."""
    for seed in range(40):
        rng, tree = np.random.default_rng(seed), sd.KinematicTree()
        tree.attach(random_inertia(rng), to="base", joint=sd.revolute(rng.normal(size=3)), at=random_pose(rng))
        for name, mimic in (("lead", None), ("tail", sd.Mimic("lead", 2.0))):
            a, b = rng.normal(size=(2, 3))
            joint = sd.revolute(b - a, a, name=name, mimic=mimic)
            tree.attach(rod_between(1.0, a, b), to=tree.links[1], joint=joint, at=random_pose(rng))
        with pytest.raises(sd.SingularAttachmentError, match=r"'lead' resists its motion in any"):
            tree.forward_dynamics(*rng.normal(size=(3, 2)))


def test_loops_elsewhere_do_not_hide_them():
    for seed in range(40):
        rng, tree = np.random.default_rng(seed), sd.KinematicTree()
        for k in range(3):
            bar = sd.Inertia(1.0, (0.5, 0, 0), (0.1, 0.1, 0.1))
            tree.attach(bar, tree.links[-1], sd.revolute("z"), name=f"bar{k}", at=(1.0 if k else 0.0, 0, 0))
        a, b = rng.normal(size=(2, 3))
        tree.attach(rod_between(1.0, a, b), "bar1", sd.spherical(a, name="ball"), at=random_pose(rng))
        q = np.array([0.5, 1.0, 1.2, 0, 0, 0, 1])
        tree.close("bar2", "base", sd.revolute("z"), at=tree.forward_kinematics("bar2", q))
        with pytest.raises(sd.SingularAttachmentError, match=NAMED):
            tree.forward_dynamics(q, np.zeros(6), rng.normal(size=6))


@pytest.mark.parametrize("axis", "xyz")
def test_only_the_freedoms_that_move_are_named(axis):
    tree, u = sd.KinematicTree(), np.eye(3)["xyz".index(axis)]
    tree.attach(rod_between(1.0, -u, 2 * u), to="base", joint=sd.spherical(name="ball"))
    with pytest.raises(sd.SingularAttachmentError, match=rf"nothing beyond joint 'ball\[w{axis}\]' resists its motion"):
        tree.forward_dynamics(tree.neutral(), *np.zeros((2, 3)))
