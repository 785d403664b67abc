"""Trees as URDF: what is read again moves in the same way, and what URDF cannot express is named."""

import subprocess
import sys
import warnings
from xml.etree import ElementTree

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn import KinematicTree, ScrewdynWarning, URDFError, screw
from screwdyn.io import check_urdf
from screwdyn.io.urdf import rotation_from_rpy, rpy_from_rotation
from screwdyn.io.xml_text import quoted
from screwdyn.testing import random_pose, random_tree

KINDS = ("revolute", "prismatic", "cylindrical", "universal", "planar", "free", "fixed")


def written(tree):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ScrewdynWarning)
        return tree.to_urdf()


def read(text, tree):
    """The tree of a text, with the gravity of a given one."""
    twin = KinematicTree.from_urdf(text, strict=True)
    twin.gravity = tree.gravity
    return twin


def positions_there(tree):
    """Names of the positions of a tree after it has been written as joints of one freedom."""
    return [
        name
        for at in tree.topology.attachments.values()
        for name in (at.coordinates if at.joint.chart is None else at.joint.position_names(at.name))
    ]


def check(tree, twin, rng):
    """M, C, g, the joints' own forces and the poses of all links, by names."""
    assert sorted(twin.coordinates) == sorted(tree.coordinates)
    order = [twin.coordinates.index(name) for name in tree.coordinates]
    block = np.ix_(order, order)
    for _ in range(2):
        q, qd = tree.random_configuration(rng), rng.uniform(-1, 1, tree.nv)
        q2, qd2 = np.empty(twin.nq), np.empty(twin.nv)
        q2[[twin.positions.index(name) for name in positions_there(tree)]] = q
        qd2[order] = qd
        size = tree.mass * (1 + np.abs(q).max(initial=0)) ** 2
        options = {"rtol": 1e-12, "atol": 1e-12 * size * (1 + np.abs(qd).sum()) + 1e-300}
        assert_allclose(twin.mass_matrix(q2)[block], tree.mass_matrix(q), **options)
        assert_allclose(twin.coriolis_matrix(q2, qd2)[block], tree.coriolis_matrix(q, qd), **options)
        assert_allclose(twin.gravity_vector(q2)[order], tree.gravity_vector(q), rtol=1e-12, atol=1e-11 * size)
        for link in tree.links:
            pose = tree.forward_kinematics(link, q)
            assert_allclose(twin.forward_kinematics(link, q2), pose, rtol=0, atol=1e-13 * (10 + np.abs(q).max()))


@given(st.integers(0, 2**32 - 1), st.integers(1, 7), st.sampled_from([*((kind,) for kind in KINDS), KINDS]))
def test_random_trees_come_back(seed, n, kinds):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n, kinds)
    text = written(tree)
    twin = read(text, tree)
    check(tree, twin, rng)
    # The second time no axis lies beside an origin, and no link is added.
    assert read(written(twin), twin).links == twin.links


@pytest.mark.filterwarnings("ignore::screwdyn.ScrewdynWarning")
@pytest.mark.parametrize("make", ["pelican", "puma560", "rtx", "stanford", "two_link", "ur5"])
def test_known_robots_come_back(make):
    tree = getattr(sd.robots, make)()
    twin = KinematicTree.from_urdf(tree.to_urdf(make))
    twin.gravity = tree.gravity
    assert twin.coordinates == tree.coordinates
    check(tree, twin, np.random.default_rng(0))


def test_what_joints_have_comes_back():
    tree = KinematicTree()
    limits = [(-1.0, 2.0), None, (-np.inf, 0.1), (0.1, np.inf)]
    for k, pair in enumerate(limits):
        for kind in (sd.revolute, sd.prismatic):
            name = f"{kind.__name__}{k}"
            joint = kind((1, 2, 3), damping=k / 3, friction=k / 7, limits=pair, name=name)
            tree.attach(sd.Inertia(1.0), to="base", joint=joint, name=f"link of {name}")
    tree.attach(sd.Inertia(1.0), to="base", joint=sd.free(passive=True, damping=0.5, name="throw"), name="ball")
    tree.attach(sd.Inertia(1.0), to="base", joint=sd.planar(friction=0.25, name="slide"), name="puck")
    tree.attach(sd.Link("tool"), to="puck", joint=sd.fixed("weld"), at=(0, 0, 0.1))
    twin = KinematicTree.from_urdf(tree.to_urdf(), strict=True)
    assert twin.links == tree.links
    assert twin.joints == tree.joints
    for name in tree.joints:
        there, here = twin.joint(name), tree.joint(name)
        assert (there.kind, there.passive, there.limits) == (here.kind, here.passive, here.limits)
        assert (there.damping, there.friction) == (here.damping, here.friction)


@pytest.mark.parametrize("kind", [sd.revolute, sd.prismatic])
@pytest.mark.parametrize("limits", [None, (-1.0, 2.0)])
@pytest.mark.parametrize(("effort", "velocity"), [(None, None), (5.0, None), (None, 0.5), (0.0, 3.0)])
def test_limits_of_effort_and_velocity_come_back(kind, limits, effort, velocity):
    tree = KinematicTree()
    joint = kind(limits=limits, effort=effort, velocity=velocity, name="j")
    tree.attach(sd.Inertia(1.0), to="base", joint=joint, name="link")
    there = KinematicTree.from_urdf(tree.to_urdf(), strict=True).joint("j")
    assert (there.limits, there.effort, there.velocity) == (limits, effort, velocity)


def test_no_frame_of_a_link_moves_and_a_massless_link_carries_the_joint():
    tree = KinematicTree()
    tree.attach(sd.Inertia(1.0), to="base", joint=sd.revolute("y", (0.1, 0, 0.2), name="hinge"), name="lid")
    tree.attach(sd.Link("lid_axis"), to="lid")
    twin = KinematicTree.from_urdf(tree.to_urdf())
    assert twin.links == ("base", "lid_axis_2", "lid", "lid_axis")
    assert twin.link("lid").inertia == tree.link("lid").inertia
    assert twin.joints == ("hinge", "lid_offset", "lid_axis")


def test_names_are_escaped():
    odd = "a<b>&\"'c "
    tree = KinematicTree(odd)
    tree.attach(sd.Inertia(1.0), to=odd, joint=sd.revolute(name=f"{odd}j"), name=f"{odd}é漢😀")
    text = tree.to_urdf(odd)
    assert check_urdf(text) == []
    twin = KinematicTree.from_urdf(text)
    assert (twin.links, twin.joints) == (tree.links, tree.joints)


def test_what_urdf_does_not_have_is_listed():
    tree = KinematicTree()
    tree.attach(sd.Inertia(1.0), to="base", joint=sd.helical("z", 0.1, name="screw"), name="nut")
    tree.attach(sd.Inertia(1.0), to="base", joint=sd.spherical(name="hip"), name="leg")
    tree.attach(sd.Link("bad\ufffe"), to="base")
    tree.attach(sd.Link("odd"), to="base", joint=sd.fixed("${x}"))
    with pytest.raises(URDFError) as caught:
        tree.to_urdf()
    assert len(caught.value.problems) == 5
    for words in (
        "'screw' has the helical freedom",
        "'hip' is spherical",
        r"'bad\ufffe' of a link",
        "'${x}' of a joint",
    ):
        assert words in str(caught.value)
    for name in ("", 3, "\ud800"):
        with pytest.raises(URDFError):
            sd.robots.two_link().to_urdf(name)


def test_what_urdf_has_no_place_for_is_warned_about():
    tree = KinematicTree(gravity=(0, 0, -1.62))
    tree.attach(
        sd.Inertia(1.0), to="base", joint=sd.revolute(passive=True, stiffness=2, armature=0.1, name="flap"), name="a"
    )
    tree.attach(sd.Inertia(1.0), to="base", joint=sd.free(name="ship"), name="b")
    tree.attach(sd.Inertia(1.0), to="base", joint=sd.revolute(name="latch"), name="c")
    tree.lock("latch", at=0.3)
    with pytest.warns(ScrewdynWarning) as caught:
        tree.to_urdf()
    assert [w.filename for w in caught] == [__file__]
    for words in (
        "gravity [0.0, 0.0, -1.62]",
        "'flap' is passive",
        "spring of joint 'flap'",
        "armature of joint 'flap'",
        "'ship' is a free joint",
        "lock of joint 'latch'",
    ):
        assert words in str(caught[0].message)


def test_symbols_are_refused_and_numbers_without_symbols_are_not():
    tree = KinematicTree()
    tree.attach(sd.Inertia(sympy.Symbol("m")), to="base", name="a", at=(sympy.sqrt(2), sympy.Symbol("L"), 0))
    with pytest.raises(sd.UnboundSymbolError, match="L, m"):
        tree.to_urdf()
    bound = tree.subs({"m": sympy.pi, "L": 1})
    assert repr(float(np.sqrt(2))) in bound.to_urdf()


def test_limits_that_other_readers_need_are_the_largest_float():
    tree = KinematicTree()
    tree.attach(sd.Inertia(1.0), to="base", joint=sd.prismatic(name="rail"), name="cart")
    assert f'lower="{-sys.float_info.max!r}"' in tree.to_urdf()


@given(st.integers(0, 2**32 - 1))
def test_angles_of_a_rotation(seed):
    rng = np.random.default_rng(seed)
    R = random_pose(rng)[:3, :3]
    assert_allclose(rotation_from_rpy(*rpy_from_rotation(R)), R, rtol=0, atol=5e-16 * 4)


@pytest.mark.parametrize("off", [0, 1e-17, 1e-16, 1e-12, 1e-9, 1e-8, 1e-5])
@pytest.mark.parametrize("sign", [1, -1])
def test_angles_near_gimbal_lock(off, sign):
    for roll, yaw in ((0, 0), (1, 2), (-3, 0.5)):
        R = rotation_from_rpy(roll, sign * (np.pi / 2 - off), yaw)
        R = screw.as_pose(screw.pose(R, (0, 0, 0)))[:3, :3]
        assert_allclose(rotation_from_rpy(*rpy_from_rotation(R)), R, rtol=0, atol=2e-15)


# text ----------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["arm", "", "a \"b\" & 'c' <d>", "two\nlines\tand\rmore", "ω₁"])
def test_attributes_are_read_back(text):
    assert ElementTree.fromstring(f"<link name={quoted(text)}/>").get("name") == text


def test_no_module_of_the_network_is_imported():
    """They take a sixth of the time of ``import screwdyn``."""
    code = "import sys, numpy; before = {*sys.modules}; import screwdyn; print(*sorted({*sys.modules} - before))"
    imported = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "screwdyn.io.xml_text" in imported
    assert not {"ssl", "http.client"} & {*imported}
