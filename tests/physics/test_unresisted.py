"""Mass matrices that are singular in every configuration: refused by structure, whatever rounding leaves."""

import numpy as np
import pytest

import screwdyn as sd
from screwdyn.testing import random_inertia, random_pose

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


@pytest.mark.parametrize("make", [rod_on_a_ball, planar_on_a_ball])
@pytest.mark.parametrize("seeds", [range(40), pytest.param(range(40, 600), marks=pytest.mark.soak)])
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
