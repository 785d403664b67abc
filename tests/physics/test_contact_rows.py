"""Gaps, rows and drift of contacts against differences, and gaps against distances of their own."""

import numpy as np
import pytest
from c_compiler import load, pointer
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar

import screwdyn as sd
from screwdyn.physics.contact import Contacts
from screwdyn.testing import random_pose, random_tree

POSE = sd.screw.exp([0.3, 0.2, 0.5, 0.1, 0.2, 0.3])
BODIES = {
    "plane": sd.Plane((1, 2, 3), 0.1),
    "sphere": sd.Shape.sphere(0.2, pose=POSE),
    "capsule": sd.Shape.capsule(0.1, 0.8, pose=POSE),
    "box": sd.Shape.box((0.2, 0.4, 0.6), pose=POSE),
    "plate": sd.Shape.box((0.4, 0.6, 0), pose=POSE),
}
# Of central differences of order 8.
STENCIL = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}


def half(on):
    return {"sphere": (0, 0, 0), "capsule": (0, 0, on.size[-1] / 2), "box": np.array(on.size) / 2}[on.kind]


def between(p, d, half):
    """Distance of the segment p + s d, |s| <= 1, and one of z, |t| <= half, with s and t: the least of candidates."""
    u = np.array([0, 0, 1.0])
    along = [np.clip(((t * u - p) @ d) / (d @ d), -1, 1) for t in (-half, half)]
    found = [(-1, p[2] - d[2]), (1, p[2] + d[2]), *zip(along, (-half, half), strict=True)]
    s, t = np.linalg.lstsq(np.column_stack([-d, u]), p, rcond=None)[0]
    found += [(s, t)] if abs(s) < 1 and abs(t) < half else []
    pairs = [(s, np.clip(t, -half, half)) for s, t in found]
    return min((np.linalg.norm(p + s * d - t * u), s, t) for s, t in pairs)


def sides(tree, contact, spot, q):
    """On which side of faces and between which ends points are: what jumps in the second derivative of a gap."""
    if isinstance(contact.on, sd.Plane):
        return 0
    links = (contact.to, contact.link) if spot.turned else (contact.link, contact.to)
    at, on = (
        tree.forward_kinematics(link, q) @ core.pose for link, core in zip(links, (spot.at, spot.on), strict=True)
    )
    T = np.linalg.inv(on) @ at
    if spot.at.half.any():
        _, s, t = between(T[:3, 3], T[:3, 2] * spot.at.half[2], spot.on.half[2])
        return np.trunc(s), np.trunc(t / spot.on.half[2])
    return tuple(np.sign(T[:3, 3]) * (np.abs(T[:3, 3]) > spot.on.half))


def check_by_differences(tree, q, qd):
    """φ̇ = u_n, u̇_n, and u̇ of all rows where nothing slips, of each point."""
    contact, h = tree.contact(tree.contacts[0]), 5e-4
    here = tree.contact_rows(q, qd)
    for p, J in enumerate(here.jacobian):
        at_rest = qd - np.linalg.pinv(J) @ (J @ qd)
        for rates, rows in ((qd, [0]), (at_rest, [0, 1, 2])):
            around = {k: tree.integrate(q, k * h * rates) for n in STENCIL for k in (n, -n)}
            if len({sides(tree, contact, contact.spots[p], x) for x in (q, *around.values())}) > 1:
                continue  # the second derivative jumps between them
            near = {k: tree.contact_rows(x, rates) for k, x in around.items()}
            gap, slip = (
                sum(w * (f(near[k]) - f(near[-k])) for k, w in STENCIL.items()) / h
                for f in (lambda x, p=p: x.gaps[p], lambda x, p=p: x.rates[p])
            )
            r = tree.contact_rows(q, rates)
            scale = 1 + np.abs(rates).max() ** 2
            assert_allclose(gap, r.rates[p, 0], rtol=0, atol=1e-9 * scale)
            assert_allclose(slip[rows], r.drift[p, rows], rtol=0, atol=1e-9 * scale)


@pytest.mark.parametrize("body", BODIES)
def test_rows_and_drift_by_differences_while_both_links_move(body):
    rng, tree, part = np.random.default_rng(1), sd.KinematicTree(), sd.Inertia.box(1, (0.1, 0.2, 0.3))
    for name, joint in (("a", sd.revolute("x")), ("b", sd.universal("x", "y"))):
        tree.attach(part, to="base", joint=sd.free(), name=name)
        tree.attach(part, to=name, joint=joint, at=(0.1, 0.2, 0.3), name=name * 2)
    tree.touch("aa", "bb", on=BODIES[body], points=[(0.1, 0.2, 0.1), (0, -0.3, 0.2)], radius=[0.15, 0.2])
    for _ in range(5):
        q = tree.integrate(tree.neutral(), rng.normal(size=tree.nv))
        check_by_differences(tree, q, rng.normal(size=tree.nv))


@pytest.mark.parametrize(
    ("own", "body"),
    [
        *(("capsule", x) for x in BODIES),
        *(("box", x) for x in ("plane", "sphere", "capsule")),
        pytest.param("box", "box", marks=pytest.mark.soak),  # 160 points
    ],
)
def test_rows_of_bodies_by_differences(own, body):
    """Of corners, of those of the other body, and of edges that cross."""
    rng, tree, part = np.random.default_rng(6), sd.KinematicTree(), sd.Inertia.box(1, (0.1, 0.2, 0.3))
    shapes = {"capsule": sd.Shape.capsule(0.15, 0.7, pose=POSE), "box": sd.Shape.box((0.3, 0.4, 0.5), pose=POSE)}
    for name in ("a", "b"):
        tree.attach(part, to="base", joint=sd.free(), name=name, shape=shapes[own])
    tree.touch("a", "b", on=BODIES[body], radius=0.05 if own == body == "box" else None)
    drawn = (tree.integrate(tree.neutral(), rng.normal(size=tree.nv)) for _ in range(100))
    for q in [q for q in drawn if tree.contact_gaps(q).min() > 0][:3]:
        check_by_differences(tree, q, rng.normal(size=tree.nv))


@given(st.integers(0, 2**32 - 1))
def test_gaps_of_capsules_are_those_of_their_axes(seed):
    """The ends and the crossing point; the crossing alone is the distance of both, also if they are nearly parallel."""
    rng = np.random.default_rng(seed)
    tree, part, e = sd.KinematicTree(), sd.Inertia.sphere(1, 0.1), 0.35
    tree.attach(part, to="base", joint=sd.free(), name="rod", shape=sd.Shape.capsule(0.1, 1.0))
    tree.touch("rod", "base", on=sd.Shape.capsule(0.2, 2 * e))
    turned = rng.normal(size=3) * 10.0 ** rng.integers(-16, 1)
    q = tree.integrate(tree.neutral(), np.r_[turned, rng.normal(size=3)])
    T, gaps = tree.forward_kinematics("rod", q), tree.contact_gaps(q)
    assert_allclose(gaps[-1], between(T[:3, 3], T[:3, 2] / 2, e)[0] - 0.3, rtol=0, atol=1e-14)
    assert gaps.min() >= gaps[-1] - 1e-14


@pytest.mark.parametrize(
    ("turned", "bearing"),
    [
        ((0, 0, 0), {1: -0.1, 2: 0.5, 4: 0.2}),
        ((1e-16, 0, 0), {1: -0.1, 2: 0.5, 4: 0.2}),
        ((1e-3, 0, 0), {4: 0.2}),  # they cross where their middles were
        ((0, 1e-10, 0), {1: -0.1, 4: -0.1}),
    ],
)
def test_capsules_along_each_other_touch_at_both_ends_of_their_overlap(turned, bearing):
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.sphere(1, 0.1), to="base", joint=sd.free(), name="rod", shape=sd.Shape.capsule(0.1, 1.0))
    tree.touch("rod", "base", on=sd.Shape.capsule(0.2, 1.0))
    middle = tree.integrate(tree.neutral(), [0, 0, 0, 0.3, 0, 0.2])
    q = tree.integrate(tree.integrate(middle, [*turned, 0, 0, 0]), [0, 0, 0, 0, 0, 0.2])
    gaps, (points, normals) = tree.contact_gaps(q), Contacts(tree, tree.model).frames(q)
    touching = np.flatnonzero(gaps < 1e-15)
    assert_array_equal(touching, [*bearing])
    assert_allclose(points[touching], [(0.2, 0, z) for z in bearing.values()], atol=3e-9)
    assert_allclose(normals[touching, 0], [(1, 0, 0)] * len(bearing), atol=1e-9)  # on the rod, at its own ends too


def test_edges_that_have_passed_through_each_other_are_inside():
    """Planks crosswise, from 5 cm apart to 6 cm inside: four of the crossings have the height as their gap."""
    tree = sd.KinematicTree()
    part, look = sd.Inertia.sphere(1, 0.1), sd.Shape.box((1.0, 0.2, 0.1))
    tree.attach(part, to="base", joint=sd.prismatic("z"), at=(0.01, 0.02, 0.1), name="plank", shape=look)
    tree.touch("plank", "base", on=sd.Shape.box((0.2, 1.0, 0.1)), radius=1e-3)
    before = np.argsort(tree.contact_gaps([0.05]))[:4]
    for z in (0.05, 1e-3, 0.0, -1e-3, -0.002 + 1e-9, -0.01, -0.06):
        rows = tree.contact_rows([z], [-2.0])
        assert_allclose(rows.gaps[before], z, atol=1e-15)
        assert_allclose(rows.rates[before], [(-2, 0, 0)] * 4, atol=1e-15)
        assert_allclose(rows.drift[before], 0, atol=1e-9)


@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(BODIES)))
def test_rows_of_random_trees(seed, body):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 5, ("revolute", "prismatic", "spherical", "planar", "universal"))
    link, to = rng.choice(tree.links, 2, replace=False)
    on = BODIES[body]
    if isinstance(on, sd.Shape):
        on = sd.Shape(on.kind, on.size, pose=random_pose(rng))
    tree.touch(link, to, on=on, points=rng.normal(size=(1, 3)), radius=0.1)
    q = tree.integrate(tree.neutral(), rng.normal(size=tree.nv))
    check_by_differences(tree, q, rng.normal(size=tree.nv))


@pytest.mark.parametrize("body", ["sphere", "capsule", "box", "plate"])
def test_gaps_are_distances_to_the_nearest_of_many_points(body):
    rng, on, tree = np.random.default_rng(2), BODIES[body], sd.KinematicTree()
    tree.attach(sd.Inertia.sphere(1, 0.1), to="base", joint=sd.free(), name="ball")
    points = rng.normal(size=(20, 3))
    tree.touch("ball", on=on, points=points, radius=0.05)
    inside = rng.uniform(-1, 1, (20000, 3)) * half(on)
    spots = inside @ POSE[:3, :3].T + POSE[:3, 3]
    nearest = np.linalg.norm(points[:, None] - spots, axis=-1).min(axis=1)
    radius = 0 if on.kind == "box" else on.size[0]
    assert_allclose(tree.contact_gaps(tree.neutral()), nearest - radius - 0.05, atol=0.05)
    assert (tree.contact_gaps(tree.neutral()) <= nearest - radius - 0.05 + 1e-12).all()


def test_a_point_may_reach_the_face_of_a_box_and_be_inside():
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.sphere(1, 0.1), to="base", joint=sd.prismatic("z"), name="ball")
    tree.touch("ball", "base", on=sd.Box((1, 1, 1)), points=(0.1, 0.2, 0))
    for z in (0.6, 0.5, 0.45):
        rows = tree.contact_rows([z], [-2.0])
        assert_allclose(rows.gaps, [z - 0.5], atol=1e-15)
        assert_allclose(rows.jacobian[0, :, 0], [1, 0, 0], atol=1e-15)
        assert_allclose(rows.rates[0], [-2, 0, 0], atol=1e-15)


def test_rows_of_a_point_on_a_plane_are_those_of_a_planar_loop():
    """Of its three wrenches, the force along the normal is the one that a point has too."""
    rng, tree = np.random.default_rng(3), sd.KinematicTree()
    for name in ("palm", "crate"):
        tree.attach(sd.Inertia.box(1, (0.1, 0.2, 0.3)), to="base", joint=sd.free(), name=name)
    tree.touch("crate", "palm", on=sd.Plane(), points=(0, 0, 0))
    tree.close("crate", "palm", joint=sd.planar("z"), name="loop")
    # Turned about their common normal and moved across it: the loop is closed.
    common, beside = rng.normal(size=6), np.array([0, 0, 0.1, 0.2, 0.1, 0])
    q = tree.assemble(tree.integrate(tree.neutral(), np.r_[common, common + beside]))
    qd = tree.project(q, rng.normal(size=12))[1]
    rows = tree.contact_rows(q, qd)
    J, J_dot = tree.constraint_jacobian(q), tree.constraint_jacobian_dot(q, qd)
    weights = np.linalg.lstsq(J.T, rows.jacobian[0, 0], rcond=None)[0]
    assert_allclose(weights @ J, rows.jacobian[0, 0], atol=1e-12)
    assert_allclose(rows.drift[0, 0], weights @ (J_dot @ qd), atol=1e-11)


def test_batches():
    rng = np.random.default_rng(4)
    tree = random_tree(rng, 4)
    tree.touch("link4", "link1", on=BODIES["capsule"], points=rng.normal(size=(3, 3)), radius=0.1)
    tree.touch("link2", "base", on=sd.Plane(), points=rng.normal(size=(2, 3)))
    q, qd = rng.normal(size=(2, 3, tree.nv)), rng.normal(size=(2, 3, tree.nv))
    rows, gaps = tree.contact_rows(q, qd), tree.contact_gaps(q)
    assert (gaps.shape, rows.jacobian.shape) == ((2, 3, 5), (2, 3, 5, 3, tree.nv))
    one = tree.contact_rows(q[1, 2], qd[1, 2])
    assert_array_equal(gaps, rows.gaps)
    for whole, part in zip(rows, one, strict=True):
        assert_allclose(whole[1, 2], part, rtol=1e-13, atol=1e-14)
    assert sd.robots.ur5().contact_rows(np.zeros(6), np.zeros(6)).jacobian.shape == (0, 3, 6)


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_when_called")
def test_every_form_of_the_rows(tmp_path):
    """C, machine code, the closed form and derivatives of the default kernels, also of a link that follows another."""
    rng, tree = np.random.default_rng(5), sd.KinematicTree()
    part = sd.Inertia.box(1, (0.1, 0.2, 0.3))
    tree.attach(part, to="base", joint=sd.revolute("x", name="lead"), at=(0.1, 0.2, 0.3), name="arm")
    tree.attach(part, to="arm", joint=sd.revolute("y", mimic=sd.Mimic("lead", 1.5)), at=(0, 0.2, 0), name="hand")
    tree.attach(part, to="hand", name="rod", shape=sd.Shape.capsule(0.05, 0.3, pose=POSE))
    tree.touch("rod", "base", on=BODIES["capsule"], name="capsule")
    for name in ("plane", "sphere", "box"):
        tree.touch("hand", "base", on=BODIES[name], points=rng.normal(size=(1, 3)), radius=0.05, name=name)
    q, qd = tree.integrate(tree.neutral(), rng.normal(size=tree.nv)), rng.normal(size=tree.nv)
    rows = tree.contact_rows(q, qd)
    assert_allclose(rows.jacobian @ qd, rows.rates, rtol=0, atol=1e-13)
    expected = {"contact_gaps": rows.gaps, "contact_jacobian": rows.jacobian, "contact_drift": rows.drift}
    fast, symbolic, library = tree.compile(), tree.symbolic(), load(tree.c_source([*expected]), tmp_path)
    state = {name: (q,) if name != "contact_drift" else (q, qd) for name in expected}
    for name, wanted in expected.items():
        assert_array_equal(getattr(tree, name)(*state[name]), wanted)
        getattr(fast, name)(*state[name])
        fast.wait()
        assert name in fast.compiled
        assert_allclose(getattr(fast, name)(*state[name]), wanted, rtol=0, atol=1e-12)
        assert_allclose(np.reshape(symbolic.lambdify(name)(*state[name]), wanted.shape), wanted, rtol=0, atol=1e-12)
        found = np.empty(wanted.shape)
        getattr(library, name)(*map(pointer, state[name]), pointer(found))
        assert_allclose(found, wanted, rtol=0, atol=1e-12)
    along = tree.derivatives.contact_gaps(q)
    assert_allclose(along, rows.jacobian[:, 0], rtol=0, atol=1e-12)
    along = tree.derivatives.contact_drift(q, qd)[1]
    assert_allclose(along @ qd, 2 * rows.drift, rtol=0, atol=1e-11)  # which is a quadratic form of the rates
    assert tree.operation_count("contact_gaps")["div"] > 0
    tree.part("sphere")
    assert len(tree.contact_gaps(q)) == len(rows.gaps) - 1


def test_there_is_no_normal_in_the_middle_of_a_body():
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.sphere(1, 0.1), to="base", joint=sd.free(), name="ball")
    tree.touch("ball", "base", on=sd.Capsule(0.1, 1), points=(0, 0, 0.2), name="rod")
    with pytest.raises(sd.ContactError, match=r"contact 'rod', a point of 'ball' is in the middle of .* no normal"):
        tree.contact_gaps(tree.neutral())


def test_the_gap_of_a_box_and_a_capsule_is_the_least_along_the_axis():
    """The distance of a point of the axis from a box is convex; its least value is exact where the place is nearly."""
    rng, tree, half = np.random.default_rng(7), sd.KinematicTree(), np.array([0.2, 0.3, 0.4])
    look = sd.Shape.box(2 * half)
    tree.attach(sd.Inertia.sphere(1, 0.1), to="base", joint=sd.free(), name="part", shape=look)
    tree.touch("part", on=sd.Capsule(0.1, 0.8))
    apart = 0
    for _ in range(40):
        q = tree.integrate(tree.neutral(), rng.normal(size=6))
        T = tree.forward_kinematics("part", q)

        def beyond(s, T=T):
            return np.linalg.norm(np.maximum(np.abs(T[:3, :3].T @ ([0, 0, s] - T[:3, 3])) - half, 0))

        least = minimize_scalar(beyond, bounds=(-0.4, 0.4), method="bounded", options={"xatol": 1e-12}).fun
        least = min(least, beyond(-0.4), beyond(0.4))
        if least > 1e-3:
            assert_allclose(tree.contact_gaps(q).min(), least - 0.1, rtol=0, atol=1e-14)
            apart += 1
    assert apart > 20
