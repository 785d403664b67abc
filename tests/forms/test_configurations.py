"""Active and passive freedoms, limits without stops, and the screw system of a tree, known from geometry."""

import numpy as np
import pytest
import sympy as sp
from cases import close, norm
from closed_forms import evaluated
from hypothesis import given
from hypothesis import strategies as st
from kinds import EVERY
from mechanisms import four_bar
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd
from screwdyn.screws.screw import Ad, ad, exp
from screwdyn.screws.screw_system import system_order
from screwdyn.testing import random_inertia, random_pose, random_tree

KINDS = ("revolute", "prismatic", "spherical", "planar", "universal")


def half_passive(rng, n):
    """A random tree with further bodies on active and passive joints in between."""
    tree = random_tree(rng, n, KINDS)
    for passive in rng.permutation([True, True, False, False]):
        joint = rng.choice([sd.spherical(passive=passive), sd.revolute(rng.normal(size=3), passive=passive)])
        tree.attach(random_inertia(rng), rng.choice(tree.links), joint, random_pose(rng))
    return tree


@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_the_blocks_are_the_equation_of_motion(seed, n):
    rng = np.random.default_rng(seed)
    tree = half_passive(rng, n)
    q, qd = tree.random_configuration(rng), rng.uniform(-2, 2, tree.nv)
    tau = tree.actuation_matrix @ rng.uniform(-3, 3, len(tree.active))
    qdd = dict(zip(tree.coordinates, tree.forward_dynamics(q, qd, tau), strict=True))
    rate, force = (dict(zip(tree.coordinates, x, strict=True)) for x in (qd, tau))
    part = tree.partition(q, qd)
    assert set(part.active) | set(part.passive) == set(tree.coordinates)
    a, p = ([of[x] for x in names] for of in (qdd,) for names in (part.active, part.passive))
    va, vp = ([rate[x] for x in names] for names in (part.active, part.passive))
    upper = part.M_aa @ a + part.M_ap @ p + part.C_aa @ va + part.C_ap @ vp + part.g_a
    lower = part.M_pa @ a + part.M_pp @ p + part.C_pa @ va + part.C_pp @ vp + part.g_p
    scale = norm(part.M_aa) * norm(a) + norm(part.g_a) + norm(part.M_pp) * norm(p) + norm(part.C_aa) * norm(qd)
    close(upper, [force[x] for x in part.active], scale, 1e-10)
    close(lower, np.zeros(len(part.passive)), scale, 1e-10)


@pytest.mark.slow
def test_names_and_blocks_of_a_batch():
    tree = sd.robots.two_link()
    tree.attach(sd.Inertia.sphere(1, 0.1, (0, 0, 0.2)), tree.links[-1], sd.spherical(passive=True, name="ball"))
    assert tree.active == tree.coordinates[:2]
    assert tree.passive == ("ball[wx]", "ball[wy]", "ball[wz]")
    assert_array_equal(tree.actuation_matrix, np.eye(5)[:, :2])
    q = np.stack([tree.random_configuration(np.random.default_rng(k)) for k in range(3)])
    part, M = tree.partition(q), tree.mass_matrix(q)
    assert part.M_ap.shape == (3, 2, 3)
    assert_array_equal(part.M_ap, M[:, :2, 2:])
    assert_array_equal(part.M_pa, M[:, 2:, :2])
    assert_array_equal(part.C_aa, np.zeros((3, 2, 2)))
    assert_array_equal(part.g_p, tree.gravity_vector(q)[:, 2:])
    assert_allclose(tree.compile().wait().partition(q).M_pp, part.M_pp, rtol=1e-12, atol=1e-14)


def test_a_tree_without_passive_freedoms_has_empty_blocks():
    tree = sd.robots.two_link()
    part = tree.partition(np.zeros(2), np.ones(2))
    assert (part.passive, part.M_pp.shape, part.M_ap.shape, part.g_p.shape) == ((), (0, 0), (2, 0), (0,))
    with pytest.raises(sd.ShapeError, match="q has shape"):
        tree.partition([0.0])


G = 9.81


def oscillator(limits, mass=2.0, stiffness=8.0):
    """A mass on a spring, of 2 rad/s."""
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    joint = sd.prismatic("x", stiffness=stiffness, limits=limits, name="slide")
    tree.attach(sd.Inertia.point(mass), to="base", joint=joint, name="box")
    return tree


def reached(run):
    return [(h.event.coordinate, h.event.side) for h in run.events if isinstance(h.event, sd.LimitEvent)]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["DOP853", "RK45", "Radau"])
def test_each_passage_from_inside_is_reported_at_its_time(method):
    tree = oscillator((-0.5, 0.8))
    run = sd.simulate(tree, sd.State(tree, qd=[2.0]), 2 * np.pi, method=method, step=0.05)  # sin 2t, two periods
    up, down = np.arcsin(0.8) / 2, (np.pi + np.arcsin(0.5)) / 2
    assert reached(run) == [("slide", "upper"), ("slide", "lower")] * 2
    assert_allclose(
        [h.t for h in run.events], [up, down, up + np.pi, down + np.pi], atol=1e-5 if method == "Radau" else 1e-7
    )
    for happened, value in zip(run.events, [0.8, -0.5, 0.8, -0.5], strict=True):
        event = happened.event
        assert (happened.what, happened.verb, happened.link, event.joint) == (None, "reach limit of", "box", "slide")
        assert_allclose(event.state["slide"], value, atol=1e-12)
        assert event.energy_lost == 0 and not event.impulse.any()


@pytest.mark.slow
def test_motion_is_that_without_limits():
    runs = []
    for limits in (None, (-0.5, 0.8)):
        tree = oscillator(limits)
        runs.append(sd.simulate(tree, sd.State(tree, qd=[2.0]), 3.0, lambda t, state: [np.sin(t)], step=0.01))
    free, limited = runs
    assert len(free.events) == 0 and len(limited.events) == 2
    assert_array_equal(limited.q, free.q)
    assert_array_equal(limited.qd, free.qd)


@pytest.mark.parametrize("top, count", [(0.9999, 1), (1.0001, 0)])
def test_a_passage_within_one_step_is_reported(top, count):
    """The oscillator turns just beyond its limit, in steps much longer than it stays there."""
    tree = oscillator((-2.0, top))
    run = sd.simulate(tree, sd.State(tree, qd=[2.0]), 2.0)
    assert reached(run) == [("slide", "upper")] * count
    for happened in run.events:
        assert_allclose(happened.t, np.arcsin(top) / 2, atol=1e-6)


def test_start_beyond_a_limit_is_reported_once():
    tree = oscillator((-2.0, 0.5))
    run = sd.simulate(tree, sd.State(tree, [1.0]), 1.0, t0=3.0)  # cos 2t
    assert reached(run) == [("slide", "upper")]
    assert run.events[0].t == 3.0


def test_start_at_a_limit_is_not_reported():
    tree = oscillator((-2.0, 1.0))
    assert not sd.simulate(tree, sd.State(tree, [1.0]), 1.0).events


def test_changes_of_the_tree_do_not_repeat_reports():
    tree = oscillator((-2.0, 0.5))
    events = [sd.SetInertia("box", sd.Inertia.point(1.0), time=0.1)] * 2
    run = sd.simulate(tree, sd.State(tree, [1.0]), 0.2, events=events)
    assert [h.verb for h in run.events] == ["reach limit of", "set inertia of", "set inertia of"]


def test_a_grasp_beyond_the_limit_of_the_new_joint_is_reported_after_it():
    tree = oscillator(None)
    hook = sd.revolute("y", limits=(0.1, 1.0), name="hook")
    grasp = sd.Grasp(sd.Inertia.point(1.0, (0.1, 0, 0)), to="box", twist="at_rest", joint=hook, name="load", time=0.1)
    run = sd.simulate(tree, sd.State(tree, [0.1]), 0.2, events=[grasp])
    assert [(h.t, h.verb, h.link) for h in run.events] == [(0.1, "grasp", "load"), (0.1, "reach limit of", "load")]
    assert run.events[1].event.coordinate == "hook" and run.events[1].event.side == "lower"


def test_joints_of_several_freedoms():
    """The limits of a joint hold for each of its freedoms."""
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    tree.attach(sd.Inertia.sphere(1.0, 0.1), to="base", joint=sd.cylindrical("x", limits=(-1, 1), name="c"), name="rod")
    tree.attach(sd.Inertia.sphere(1.0, 0.1), to="rod", joint=sd.spherical(name="ball"), name="end")
    names = tree.coordinates[:2]
    run = sd.simulate(tree, sd.State(tree, qd=[2.0, -4.0, 0, 0, 0]), 1.0)
    assert reached(run) == [(names[1], "lower"), (names[0], "upper")]
    assert_allclose([h.t for h in run.events], [0.25, 0.5], atol=1e-9)


def test_files_and_figures_have_the_event(tmp_path):
    tree = oscillator((-2.0, 0.8))
    run = sd.simulate(tree, sd.State(tree, qd=[2.0]), 1.0)
    run.to_npz(tmp_path / "run.npz")
    (event,) = sd.Recording.from_npz(tmp_path / "run.npz").events
    assert (event.t, event.verb, event.link) == (run.events[0].t, "reach limit of", "box")


BALL = sd.Inertia.sphere(1.0, 0.1)


def chain(*joints, at=(0.7, 0, 0)):
    tree = sd.KinematicTree()
    for k, joint in enumerate(joints):
        tree.attach(BALL, tree.links[-1], joint, at if k else None, f"link{k + 1}")
    return tree


R, P, RX, PX = sd.revolute("z"), sd.prismatic("z"), sd.revolute("x"), sd.prismatic("x")
ORDERS = {
    "no joint": (chain(), 0),
    "pin": (chain(R), 1),
    "two coaxial pins": (chain(R, R, at=None), 1),
    "cylindrical": (chain(R, P, at=None), 2),
    "two pins of a planar arm": (chain(R, R), 3),
    "planar arm": (chain(R, R, R), 3),
    "two parallel sliders and a pin": (chain(PX, PX, R), 3),
    "spherical arm of two pins": (chain(R, RX, at=None), 3),
    "two skew pins": (chain(R, sd.revolute("x", (0, 0.3, 0))), 4),
    "universal": (chain(sd.universal("x", "y")), 3),
    "spherical arm with a link far from its centre": (chain(sd.universal("x", "y"), RX), 3),
    "three sliders": (chain(PX, sd.prismatic("y"), P), 3),
    "planar": (chain(sd.planar("z")), 3),
    "spherical": (chain(sd.spherical((0.1, 0.2, 0.3))), 3),
    "Schoenflies": (sd.robots.rtx(), 4),
    "parallel helical joints": (chain(sd.helical("z", 0.2), sd.helical("z", 0.2), sd.helical("z", 0.2)), 3),
    "parallel helical joints of two pitches": (chain(sd.helical("z", 0.2), sd.helical("z", 0.3)), 4),
    "free": (chain(sd.free()), 6),
    "six axes": (sd.robots.ur5(), 6),
}


@pytest.mark.parametrize("name", ORDERS)
def test_orders_known_from_geometry(name):
    tree, order = ORDERS[name]
    assert tree.system_order() == order
    system = tree.screw_system()
    assert system.order == order == len(system.basis)


def test_one_configuration_of_a_planar_arm_gives_less():
    arm = sd.robots.two_link()
    assert arm.system_order() == 3
    assert arm.system_order("link1") == arm.system_order(["base", "link1"]) == 1
    assert system_order(arm.jacobian("link2", [0.3, 0.8], "base").T) == 2
    np.testing.assert_array_equal(arm.screw_system().basis, np.eye(6)[[2, 3, 4]])


def test_order_of_two_branches_is_that_of_both():
    tree = chain(R, R)
    tree.attach(BALL, "base", P, name="lift")
    assert (tree.system_order(["link2"]), tree.system_order("lift"), tree.system_order()) == (3, 1, 4)


def closure(screws, space):
    """The smallest space that contains another one and is invariant under ad of some screws."""
    order = 0
    while True:
        U, sizes, _ = np.linalg.svd(space, full_matrices=False)
        space = U[:, sizes > 1e-9]
        if space.shape[1] == order:
            return space
        order = space.shape[1]
        space = np.column_stack([space, *(ad(S) @ space for S in screws)])


def structural_order(tree):
    """λ from the tips inward: W_k = span S_k + the smallest space ⊃ W_{k+1} that ad S_k does not leave."""
    beyond = {link: np.zeros((6, 0)) for link in tree.links}
    poses = dict(zip(tree.links, tree.link_poses(tree.neutral()), strict=True))
    for at in reversed(list(tree.topology.attached)):
        S, link = Ad(poses[at.link.name]) @ at.joint.screws, at.link.name
        groups = [S] if at.joint.chart is not None else [S[:, [k]] for k in reversed(range(S.shape[1]))]
        for own in groups:
            beyond[link] = closure(own.T, np.column_stack([own, beyond[link]]))
        beyond[at.parent] = np.column_stack([beyond[at.parent], beyond[link]])
    return system_order(beyond[tree.base].T)


@pytest.mark.parametrize("seed", range(60))
def test_random_configurations_span_the_closure_under_brackets(seed):
    """Joints of every kind along x, y or z through points of a lattice, so that orders differ."""
    rng = np.random.default_rng(seed)
    tree = sd.KinematicTree()
    axis, point = lambda: str(rng.choice(["z", "z", "x", "y"])), lambda: rng.integers(0, 2, 3) * [1, seed % 2, 0]
    single = (
        lambda: sd.revolute(axis(), point()),
        lambda: sd.prismatic(axis()),
        lambda: sd.helical(axis(), 0.5, point()),
        lambda: sd.cylindrical(axis(), point()),
        lambda: sd.universal("x", "y", point()),
        sd.fixed,
        lambda: sd.planar(axis(), point()),
        lambda: sd.spherical(point()),
    )
    weights = np.array([4, 4, 2, 1, 1, 1, 0.3, 0.3])
    for _ in range(rng.integers(1, 5)):
        joint = single[rng.choice(len(single), p=weights / weights.sum())]()
        turn = exp(np.pi / 2 * np.eye(6)[rng.integers(3)]) if rng.random() < 0.3 else np.eye(4)
        turn[:3, 3] = point()
        tree.attach(BALL, rng.choice(tree.links[-2:]), joint, turn)
    assert tree.system_order() == structural_order(tree)


def test_every_kind_has_its_columns_in_its_system():
    rng = np.random.default_rng(3)
    for kind in EVERY:
        tree = random_tree(rng, 1, (kind,))
        assert tree.system_order() == structural_order(tree)
        for frame in ("com", "body", "base", "mixed"):
            system = tree.screw_system(frame=frame)
            q, qd = tree.random_configuration(rng), rng.normal(size=tree.nv)
            for J in (tree.jacobian("link1", q, frame), tree.jacobian_dot("link1", q, qd, frame)):
                close(system.basis.T @ system.jacobian(J), J, 1 + np.abs(J).sum(), 1e-13)


def test_joints_that_follow_others_span_what_they_reach():
    """A parallelogram carries its link by pure translations, which with independent pins would be 3."""
    follow = sd.revolute("z", mimic=sd.Mimic("lead", -1.0), name="follow")
    tree = chain(sd.revolute("z", name="lead"), follow)
    assert tree.system_order("link2") == 2
    assert tree.screw_system("link2").components == (3, 4)
    assert tree.system_order() == 3  # with link 1, which turns


def test_loops_are_not_considered():
    tree, (q, _) = four_bar()
    assert tree.system_order() == 3
    J = tree.jacobian("coupler", q)
    system = tree.screw_system(frame="com")
    close(system.basis.T @ system.jacobian(J), J, 1.0, 1e-14)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e5])
def test_the_size_of_a_robot_does_not_matter(size):
    axes = ("z", "x", "x")
    arm = chain(*(sd.revolute(axis) for axis in axes), at=(0, size, 0))
    assert arm.system_order() == structural_order(chain(*(sd.revolute(axis) for axis in axes), at=(0, 1, 0))) == 6
    planar = chain(R, R, R, at=(size, 0, 0))
    assert planar.system_order() == 3
    far = sd.KinematicTree()
    far.attach(planar, "base", at=(3e4 * size, 0, 2e4 * size), prefix="far/")
    assert far.system_order() == 3


def test_angles_of_a_file_are_rounded():
    rounded = exp(np.array([1.5708, 0, 0, 0, 0, 0])) @ exp(np.array([-np.pi / 2, 0, 0, 0.5, 0, 0]))
    arm = chain(R, R, R, at=rounded)
    assert arm.system_order() > 3
    assert arm.system_order(tol=1e-4) == 3
    np.testing.assert_array_equal(arm.screw_system(tol=1e-4).basis, np.eye(6)[[2, 3, 4]])


def test_the_order_of_a_link_s_own_frame_may_differ():
    """Pin z, slider z and pin x: the axis of the last pin rises in the base, but the first two pass through it."""
    tree = chain(R, P, RX, at=None)
    assert [tree.screw_system("link3", frame).order for frame in ("base", "body")] == [6, 5]
    assert tree.system_order("link3") == 6


def planar_arm():
    m, a, l, I, G = (sp.symbols(f"{x}1:3", positive=True) for x in "malIG")
    tree = sd.KinematicTree(gravity=(0, -G[0], 0))
    for k in range(2):
        body, home = sd.Inertia.planar(m[k], (l[k], 0), I[k]), (a[k - 1], 0, 0) if k else None
        tree.attach(body, tree.links[-1], sd.revolute("z", name=f"t{k + 1}"), home, f"link{k + 1}")
    return tree, m, I


def test_closed_forms_of_a_planar_arm_have_three_rows():
    """Laus's conclusion: λ × i Jacobians; the inertia of link i in them is diag(I_i, m_i, m_i)."""
    tree, m, I = planar_arm()
    system, forms = tree.screw_system(frame="com"), tree.symbolic()
    assert system.components == (2, 3, 4)
    terms = []
    for i, link in enumerate(tree.links[1:]):
        part = forms.contribution(link)
        J, M_bar = system.jacobian(part.J), system.inertia(sp.Matrix(tree.link(link).inertia.com_matrix))
        assert J.shape == (3, i + 1)
        assert M_bar == sp.diag(I[i], m[i], m[i])
        assert (sp.Matrix(system.basis.T.astype(int)) * J - part.J).is_zero_matrix
        terms.append(sd.Padded(part.coordinates, J.T * M_bar * J))
    total = sp.Matrix(sd.padded_sum(terms).matrix(tree.coordinates))
    names = [*forms.q, *forms.parameters]
    at = dict(zip(names, np.random.default_rng(0).uniform(0.5, 2, len(names)), strict=True))
    close(*(evaluated(form, at, (2, 2)) for form in (total, forms.mass_matrix())), 1, 1e-13)


def test_closed_forms_of_a_spherical_arm_have_three_rows():
    """In frames at the common point: the rows are ω, and the inertia is the tensor about the point."""
    m, l, A, B = sp.symbols("m l A B", positive=True)
    tree, body = sd.KinematicTree(), sd.Inertia(m, (0, 0, l), sp.diag(A, A, B))
    for k, axis in enumerate("zx"):
        tree.attach(body, tree.links[-1], sd.revolute(axis, name=f"t{k + 1}"), name=f"link{k + 1}")
    system, forms = tree.screw_system(frame="body"), tree.symbolic()
    assert system.components == (0, 1, 2)
    assert tree.system_order() == 3
    J, M = system.jacobian(forms.jacobian("link2", "body")), system.inertia(sp.Matrix(body.matrix))
    assert sp.diag(A + m * l**2, A + m * l**2, B) == M
    assert sp.simplify(J.T * M * J - forms.contribution("link2").M.array).is_zero_matrix


def test_a_system_that_depends_on_symbols_has_an_order_only():
    x = sp.Symbol("x", positive=True)
    tree = chain(sd.revolute("z", (x, 0, 0)), sd.revolute("x", (x, 0, 0)), at=None)
    assert tree.system_order() == 3
    with pytest.raises(sd.UnboundSymbolError, match="of order 3, depends on the symbols"):
        tree.screw_system()
    assert tree.subs({"x": 0.5}).screw_system().components == (0, 1, 2)


def test_what_is_no_link_frame_or_tolerance_is_refused():
    tree = sd.robots.two_link()
    for links in ("link3", ["link1", "link3"], 3):
        with pytest.raises(sd.UnknownNameError, match="3"):
            tree.system_order(links)
    with pytest.raises(sd.ShapeError, match="frame must be"):
        tree.screw_system(frame="tip")
    for tol in (0, 2.0, "small", np.nan):
        with pytest.raises(sd.ShapeError, match="tol must be a number between 0 and 1"):
            tree.system_order(tol=tol)
    system = tree.screw_system()
    for matrix in (np.eye(3), sp.eye(3), np.ones(6), "J"):
        with pytest.raises(sd.ShapeError, match="a Jacobian has 6 rows"):
            system.jacobian(matrix)
        with pytest.raises(sd.ShapeError, match="an inertia is a matrix"):
            system.inertia(matrix)


def test_configurations_are_contiguous_in_memory():
    """Which other libraries may rely on, also where a single configuration is moved at many rates."""
    tree = sd.robots.ur5()
    q = tree.integrate(tree.neutral(), np.ones((3, tree.nv)))
    assert q.flags.carray and tree.difference(tree.neutral(), q).flags.carray
    assert tree.position_rate(tree.neutral(), np.ones((3, tree.nv))).flags.carray
