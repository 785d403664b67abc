"""The model of a tree: it remains valid for its revision of the tree, and can be copied and pickled."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
import sympy as sp
from kinds import EVERY
from numpy.testing import assert_array_equal

import screwdyn as sd
from screwdyn.forms.numbers import Numbers
from screwdyn.physics import placement
from screwdyn.physics.model import Model
from screwdyn.physics.recursions import whole_tree
from screwdyn.physics.table import MASS, workspace
from screwdyn.testing import random_inertia, random_pose, random_tree

POLES = {"turn": sd.revolute, "slide": sd.prismatic, "screw": lambda axis, **at: sd.helical(axis, 0.3, **at)}


def numbers(of, q, qd, links):
    found = [*of.mass_and_coriolis(q, qd), of.gravity_vector(q), of.inverse_dynamics(q, qd, qd), of.momentum(q, qd)]
    for link in links:
        found += [of.forward_kinematics(link, q), of.jacobian(link, q), of.jacobian_dot(link, q, qd)]
    return [np.array(a) for a in found]


@pytest.mark.parametrize("twin_of", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_a_used_tree_and_of_its_snapshot_give_the_same_numbers(twin_of):
    tree = sd.robots.ur5()
    q, qd = np.random.default_rng(0).uniform(-1, 1, (2, tree.nv))
    M, C = tree.mass_and_coriolis(q, qd)
    for twin in (twin_of(tree), Numbers(twin_of(tree.model))):
        assert twin.model.coordinates == tree.coordinates
        again = twin.mass_and_coriolis(q, qd)
        assert np.array_equal(again[0], M) and np.array_equal(again[1], C)


def test_a_snapshot_answers_with_the_tree_s_numbers():
    rng = np.random.default_rng(0)
    tree = random_tree(rng, 5)
    q, qd = rng.normal(size=(2, 5))
    model = tree.model
    assert (model.coordinates, model.nv, model.revision) == (tree.coordinates, 5, tree.revision)
    for a, b in zip(numbers(Numbers(model), q, qd, tree.links), numbers(tree, q, qd, tree.links), strict=True):
        assert_array_equal(a, b)


def test_a_snapshot_stays_what_it_was_while_the_tree_changes():
    rng = np.random.default_rng(1)
    tree = random_tree(rng, 5)
    q, qd = rng.normal(size=(2, 5))
    model, links = Numbers(tree.model), tree.links
    before = numbers(model, q, qd, links)
    tree.attach(random_inertia(rng), to="link5", joint=sd.revolute(), at=random_pose(rng))
    tree.mass_matrix(np.zeros(6))
    tree.detach("link3")
    tree.gravity = (0, 0, 0)
    tree.mass_matrix(np.zeros(tree.nq))
    for a, b in zip(numbers(model, q, qd, links), before, strict=True):
        assert_array_equal(a, b)


def test_a_snapshot_refuses_questions_about_a_newer_link():
    tree = random_tree(np.random.default_rng(2), 3)
    model, revision = Numbers(tree.model), tree.revision
    tree.attach(sd.Inertia.sphere(1, 0.1), to="link3", name="crate")
    zero = np.zeros(3)
    for ask in (
        lambda: model.forward_kinematics("crate", zero),
        lambda: model.jacobian("crate", zero),
        lambda: model.inverse_dynamics(zero, zero, zero, {"crate": np.zeros(6)}),
    ):
        with pytest.raises(
            sd.UnknownNameError, match=f"this model, of revision {revision} of the tree, has no link 'crate'"
        ):
            ask()
    assert tree.forward_kinematics("crate", zero).shape == (4, 4)


@pytest.mark.parametrize("joint", POLES.values(), ids=POLES)
@pytest.mark.parametrize("axis", [*np.eye(3), *-np.eye(3), [1, 1, 0], [0, -1, 1], [1, 0, 1e-9], [1, 1, 1]])
def test_no_direction_of_an_axis_is_special(joint, axis):
    """The same joint with a link frame of any orientation: the numbers of its coordinate do not change."""
    rng = np.random.default_rng(3)
    body, home, R = random_inertia(rng), random_pose(rng), random_pose(rng)
    R[:3, 3] = 0
    one, two = sd.KinematicTree(), sd.KinematicTree()
    for tree, turn in ((one, np.eye(4)), (two, R)):
        back = sd.screw.inverse(turn)
        hinge = joint(back[:3, :3] @ axis)
        tree.attach(body.transformed(back), to="base", joint=hinge, at=home @ turn, name="a")
        tree.attach(random_tree(np.random.default_rng(4), 2), to="a", at=back, name="stem")
    q, qd, qdd = rng.normal(size=(3, 3))
    tau = one.inverse_dynamics(q, qd, qdd)
    np.testing.assert_allclose(two.inverse_dynamics(q, qd, qdd), tau, rtol=1e-12, atol=1e-12)
    turned = two.forward_kinematics("a", q) @ sd.screw.inverse(R)
    np.testing.assert_allclose(turned, one.forward_kinematics("a", q), rtol=1e-12, atol=1e-13)


def test_numbers_do_not_depend_on_where_a_body_s_link_frame_is():
    rng = np.random.default_rng(5)
    T, body = random_pose(rng), random_inertia(rng)
    q, qd, qdd = rng.normal(size=(3, 4))
    torques = []
    for pose, inertia in ((np.eye(4), body), (T, body.transformed(sd.screw.inverse(T)))):
        tree = random_tree(np.random.default_rng(6), 4)
        tree.attach(inertia, to="link4", at=pose)
        torques.append(tree.inverse_dynamics(q, qd, qdd))
    np.testing.assert_allclose(*torques, rtol=1e-12, atol=1e-12)


def test_right_angles_in_floats_cost_no_operations():
    """cos(π/2) is 6e-17 in floats; the rows contain 0, and a chain takes as few operations as an exact one."""
    costs, rows = [], []
    for c, s in ((np.cos(np.pi / 2), np.sin(np.pi / 2)), (0.0, 1.0)):
        tree, bend = sd.KinematicTree(), np.eye(4)
        bend[1:3, 1:3] = [[c, -s], [s, c]]
        bend[:3, 3] = 0.1, 0.2, 0.3
        for k in range(4):
            tree.attach(
                sd.Inertia.point(1.0, (0.1, 0.0, 0.0)), to=tree.links[-1], joint=sd.revolute(), at=bend, name=f"b{k}"
            )
        costs.append(tree.operation_count("inverse_dynamics"))
        rows.append(tree.model.table)
    assert costs[0] == costs[1]
    assert_array_equal(*rows)


def test_small_angles_are_not_taken_for_none():
    tree, bend = sd.KinematicTree(), np.eye(4)
    bend[:2, :2] = [[1.0, -1e-12], [1e-12, 1.0]]
    tree.attach(sd.Inertia.sphere(1.0, 0.1), to="base", joint=sd.revolute(), at=bend)
    assert tree.model.table[0, 3] == 1e-12


def test_welding_is_the_sum_of_inertias():
    rng = np.random.default_rng(7)
    first, second, T = random_inertia(rng), random_inertia(rng), random_pose(rng)
    q, qd, qdd = rng.normal(size=(3, 3))
    apart, together = (random_tree(np.random.default_rng(8), 3) for _ in range(2))
    apart.attach(first, to="link3", name="one")
    apart.attach(second, to="one", at=T, name="two")
    together.attach(first + second.transformed(T), to="link3")
    expected = together.inverse_dynamics(q, qd, qdd)
    np.testing.assert_allclose(apart.inverse_dynamics(q, qd, qdd), expected, rtol=1e-12, atol=1e-12)


# joints of several freedoms -----------------------------------------------------------------------------


def recentred(tree, q):
    """The table at q, and the rows' coordinates: the home of a group joint's first row includes the joint's pose."""
    where, groups, *_ = tree.model.charts
    table, x = tree.model.table.copy(), np.where(where < 0, 0.0, q[where])
    for group in groups:
        row, at, o, t = map(int, group)
        A = np.roll(np.eye(3), 1, axis=1) if o == 4 else np.eye(3)  # axes of the joint in the first row's frame
        R = sd.spherical().chart.pose(q[at : at + 4]) if o == 4 else sd.screw.exp([0, 0, q[at], 0, 0, 0])
        g = sd.screw.pose(A @ R[:3, :3] @ A.T, A[:, :t] @ q[at + o : at + o + t])
        home = sd.screw.pose(table[row, :9].reshape(3, 3), table[row, 9:12]) @ g
        table[row, :9], table[row, 9:12] = home[:3, :3].ravel(), home[:3, 3]
    return table, x


def chart_rate(tree, v):
    D = np.zeros((tree.nv, tree.nv))
    for m, k, l, c in tree.model.charts.terms:
        D[int(m), int(k)] += c * v[int(l)]
    return D


@pytest.mark.parametrize("seed", range(12))
def test_rows_and_charts_give_what_the_definition_gives(seed):
    """Rows of all kinds of joints, re-centred at q, against the contributions link by link (docs/mathematics.md §7)."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 6, EVERY)
    tree.attach(random_inertia(rng), to="link6", joint=sd.spherical((0.1, 0.2, 0.3)), at=random_pose(rng), name="ball")
    q, v = tree.random_configuration(rng), rng.normal(size=tree.nv)
    (table, x), n = recentred(tree, q), tree.nv
    M, C, g = np.empty((n, n)), np.empty((n, n)), np.empty(n)
    whole_tree.dynamics(table, x, v, workspace(table, lambda *shape: np.empty(shape)), M, C, g)
    parts = tree.contributions(q, v)
    totals = {
        name: sd.padded_sum(getattr(part, name) for part in parts).matrix(tree.coordinates) for name in ("M", "C", "g")
    }
    scale = np.abs(M).max()
    np.testing.assert_allclose(M, totals["M"], atol=1e-13 * scale)
    np.testing.assert_allclose(C + M @ chart_rate(tree, v), totals["C"], atol=1e-12 * scale * np.abs(v).sum())
    np.testing.assert_allclose(g, totals["g"], atol=1e-12 * np.abs(g).max())


def test_a_tree_without_group_joints_has_no_charts():
    tree = random_tree(np.random.default_rng(0), 8, ("revolute", "universal", "cylindrical", "helical"))
    assert tree.model.charts is None
    assert tree.model.nq == tree.model.nv == len(tree.positions)


def test_charts_are_contiguous_arrays_of_numbers():
    where, groups, terms, couplings = random_tree(
        np.random.default_rng(1), 6, ("spherical", "free", "planar")
    ).model.charts
    assert (where.dtype, groups.dtype, terms.dtype) == (np.int64, np.int64, np.float64)
    assert where.flags.c_contiguous and groups.flags.c_contiguous and terms.flags.c_contiguous
    assert groups.shape == (6, 4) and terms.shape[1] == 4 and couplings.shape == (0, 3)


@pytest.mark.parametrize("joint", [sd.spherical((0.1, 0.2, 0.3)), sd.free(), sd.planar((0.48, 0.6, 0.64))])
def test_rows_of_a_group_joint_differ_in_the_names_of_their_axes(joint):
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.sphere(1, 0.1), to="base", joint=joint, at=random_pose(np.random.default_rng(0)))
    cyclic = np.roll(np.eye(3), -1, axis=1)
    np.testing.assert_array_equal(tree.model.table[1:-1, :9], np.tile(cyclic.ravel(), (tree.nv - 1, 1)))
    assert not tree.model.table[1:-1, 9:12].any()


def test_aligned_joints_of_several_freedoms_have_exact_rows():
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.sphere(1, 0.1), to="base", joint=sd.free(), name="body")
    tree.attach(sd.Inertia.sphere(1, 0.1), to="body", joint=sd.cylindrical("x"), name="rod")
    homes = tree.model.table[:-1, :12]
    assert set(np.abs(homes).ravel()) == {0.0, 1.0}


@pytest.mark.parametrize("kind", ["spherical", "free"])
def test_a_quaternion_of_another_length_is_refused_by_name(kind):
    tree = random_tree(np.random.default_rng(2), 3, (kind,))
    q = np.stack([tree.neutral()] * 5)
    width = tree.joint("joint2").nq
    q[3, width : width + 4] *= 1.002
    with pytest.raises(sd.ShapeError, match=r"q holds a quaternion of length 1.002 for joint 'joint2'; divide it"):
        tree.model.flat(q=q)
    q[3, width : width + 4] *= 0.9985 / 1.002
    with pytest.raises(sd.ShapeError, match=r"q1 holds a quaternion of length 0.9985 for joint 'joint2'"):
        tree.difference(q[0], q)
    q[3, width : width + 4] *= 1.0009 / 0.9985
    tree.model.flat(q=q)
    q[3, width : width + 4] = 1e200
    with pytest.raises(sd.ShapeError, match=r"q holds a quaternion of length inf for joint 'joint2'"):
        tree.model.flat(q=q)


def test_positions_and_freedoms_have_lengths_of_their_own():
    tree = random_tree(np.random.default_rng(3), 2, ("spherical",), frames=0)
    with pytest.raises(sd.ShapeError, match=r"q has shape \(6,\); expected \(…, 8\), one entry .* joint1\[x\]"):
        tree.model.flat(q=np.zeros(6))
    with pytest.raises(sd.ShapeError, match=r"qd has shape \(8,\); expected \(…, 6\), .* joint1\[wx\], joint1\[wy\]"):
        tree.model.flat(q=tree.neutral(), qd=np.zeros(8))
    with pytest.raises(sd.ShapeError, match=r"q is nan at 'joint2\[w\]'"):
        tree.model.flat(q=[0, 0, 0, 1, 0, 0, 0, np.nan])


def test_springs_act_beside_group_joints():
    tree = sd.KinematicTree()
    body = sd.Inertia.sphere(1, 0.1)
    tree.attach(body, to="base", joint=sd.spherical(damping=2), name="ball")
    tree.attach(body, to="ball", joint=sd.revolute(stiffness=3, rest=0.1), name="hinge")
    q, qd = np.array([0, 0, 0, 1, 0.5]), np.array([1, 2, 3, 0])
    np.testing.assert_allclose(tree.joint_force(q, qd), [-2, -4, -6, -1.2])
    assert tree.model.joint_forces.spring_energy(q) == pytest.approx(0.24)


# snapshots from snapshots -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_machine_code_places_links_with_the_bits_of_python(seed, monkeypatch):
    """Also at right angles and for axes off the origin, whose rounding is removed."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 8, EVERY)
    for k, axis in enumerate("xyz"):
        turn = sd.screw.screw_motion(sd.screw.screw_from_axis(axis, (0.1, 0.2, k), 0.3), np.pi / 2)
        at, joint = turn @ random_pose(rng) if k else turn, sd.revolute(axis, point=rng.normal(size=3))
        tree.attach(random_inertia(rng), to=tree.links[-1 - k], joint=joint, at=at)
        tree.attach(random_inertia(rng), to=tree.links[-1], at=at)
    compiled = Model(tree.topology)
    for name in ("weld", "mount"):
        monkeypatch.setattr(placement, name, lambda *numbers: None)
    placement._body_beyond.cache_clear()
    plain = Model(tree.topology)
    assert compiled.entries.tobytes() == plain.entries.tobytes()
    assert [repr(at[:5]) for at in compiled.placements.values()] == [repr(at[:5]) for at in plain.placements.values()]


@pytest.mark.parametrize("along", range(3))
@pytest.mark.parametrize("across", [1, 2])
def test_an_axis_through_the_origin_of_the_frame_before_has_exact_numbers(along, across):
    """Also if its point is given along one axis only, and the link at home is turned about that point."""
    point, turn = 0.23 * np.eye(3)[along], np.eye(3)[(along + across) % 3]
    for angle in np.linspace(0.1, 3, 10):
        tree, home = sd.KinematicTree(), sd.screw.screw_motion(sd.screw.screw_from_axis(turn, point), angle)
        tree.attach(sd.Link("plate"), to="base", at=-point)
        tree.attach(sd.Inertia.point(1.0), to="plate", joint=sd.revolute(turn, point=point), at=home)
        assert not tree.model.table[0, 9:12].any()


def test_exact_numbers_stay_exact_in_a_snapshot_made_from_a_former_one():
    tree = sd.robots.two_link()
    former = tree.model
    tree.attach(sd.Inertia.point(1.0), to="link2", at=(sp.sqrt(2), 0, 0))
    for model in (Model(tree.topology, former), Model(tree.topology)):
        assert model.entries[1, MASS + 1] == sp.sqrt(2) + 1.5


def assert_same_snapshot(one, two):
    assert one.table.tobytes() == two.table.tobytes()
    assert (one.index, one.nq, one.nv, one.positions) == (two.index, two.nq, two.nv, two.positions)
    assert list(one.placements.items()) == list(two.placements.items())
    assert one.entries.tolist() == two.entries.tolist()
    assert (one.charts is None) == (two.charts is None)
    for a, b in zip(one.charts or (), two.charts or (), strict=True):
        assert_array_equal(a, b)


@pytest.mark.parametrize("kinds", [EVERY, ("revolute", "fixed"), ("spherical", "fixed")])
@pytest.mark.parametrize("seed", range(3))
def test_a_snapshot_made_from_a_former_one_has_the_same_bits(seed, kinds):
    """Any changes, with a new model after each or after some: the same bits as without a former model."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 5, kinds)
    for step in range(25):
        what = rng.integers(5)
        if what == 0 and len(tree.links) > 3:
            tree.detach(tree.links[rng.integers(1, len(tree.links))])
        elif what == 1:
            tree.gravity = rng.normal(size=3)
        elif what == 2:
            tree.attach(random_inertia(rng), to=tree.links[rng.integers(len(tree.links))], at=random_pose(rng))
        elif what == 3:
            name = f"t{step}"
            joint = random_tree(rng, 1, kinds, frames=0).joint("joint1")
            to = tree.links[rng.integers(len(tree.links))]
            tree.attach(sd.Link(name, random_inertia(rng)), to=to, joint=replace(joint, name=name), at=random_pose(rng))
        elif len(tree.links) > 3:
            tree.detach(tree.links[-1])
        if rng.random() < 0.7:
            assert_same_snapshot(tree.model, Model(tree.topology))


def test_a_payload_that_comes_and_goes_leaves_the_same_bits():
    tree = random_tree(np.random.default_rng(3), 5)
    before = tree.model.table.tobytes()
    for _ in range(3):
        handle = tree.attach(sd.Inertia.sphere(0.3, 0.1), to="link2", at=(0.1, 0.2, 0.3))
        assert tree.model.table.tobytes() != before
        tree.detach(handle)
        assert tree.model.table.tobytes() == before


def test_a_symbol_that_comes_and_goes_is_noticed():
    tree = random_tree(np.random.default_rng(3), 3)
    before = tree.model.table.tobytes()
    m = sp.Symbol("m")
    for joint in (None, sd.revolute()):
        handle = tree.attach(sd.Inertia.point(m), to="link2", joint=joint)
        assert tree.model.ready is None
        with pytest.raises(sd.UnboundSymbolError, match="m"):
            tree.mass_matrix(tree.neutral())
        tree.detach(handle)
        assert tree.model.table.tobytes() == before


def test_signs_of_zeros_are_those_of_a_model_made_anew():
    """A massless link from which a welded body has been detached: its row is 0, not -0."""
    tree = sd.KinematicTree()
    tree.attach(sd.Link("frame"), to="base", joint=sd.revolute("z"))
    anew = tree.copy().model.table.tobytes()
    handle = tree.attach(sd.Inertia(1.0, (0.1, 0.2, 0.3)), to="frame")
    tree.mass_matrix([0.0])
    tree.detach(handle)
    assert tree.model.table.tobytes() == anew


def test_freedoms_of_a_tree_in_which_joints_follow_others():
    """Each freedom is that of its own joint; those that follow, and a rotor, have none."""
    tree, body = sd.KinematicTree(), sd.Inertia.box(1, (0.1, 0.2, 0.3))
    motor = sd.revolute("z", effort=7.0, name="motor", rotor=sd.Rotor(1e-4, ratio=50, mass=0.2, across=1e-4))
    tree.attach(body, to="base", joint=motor, name="arm")
    finger = sd.prismatic("x", effort=3.0, damping=2.0, name="finger", mimic=sd.Mimic("motor", 0.5, 0.1))
    tree.attach(body, to="arm", joint=finger, name="tip")
    tree.attach(body, to="tip", joint=sd.spherical(name="ball", passive=True), name="load")
    model = tree.model
    assert [joint.name for joint in model.movers] == ["motor", "ball", "ball", "ball"]
    assert_array_equal(model.efforts, [7.0, np.inf, np.inf, np.inf])
    assert model.passive == (False, True, True, True)
    assert_array_equal(model.of_rows(np.array([2.0, 3.0, 4.0, 5.0]))[[0, -4]], [2.0, 1.0])
    assert model.joint_forces.acting and not tree.without_friction().model.joint_forces.friction.any()
    tree.replace_joint("tip", sd.prismatic("x", name="finger"))
    assert not tree.model.joint_forces.acting
