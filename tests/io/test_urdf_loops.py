"""Loops in URDF files: what is written is read again, and each problem has its line."""

import numpy as np
import pytest
import sympy
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn import KinematicTree, URDFError
from screwdyn.io import check_urdf
from screwdyn.testing import random_pose

KINDS = {
    "fixed": sd.fixed(),
    "revolute": sd.revolute((1, 2, 3), (0.1, -0.2, 0.3)),
    "prismatic": sd.prismatic((0, 3, 4)),
    "helical": sd.helical((1, 0, 2), -0.02, (0.3, 0.2, 0.1)),
    "cylindrical": sd.cylindrical((2, 1, 0), (0, 0.5, 0.1)),
    "spherical": sd.spherical((0.1, 0.2, 0.3)),
    "planar": sd.planar((1, 1, 1), (0.3, 0, 0)),
}


def two_arms():
    tree = KinematicTree()
    for side, y in (("left/", 0.4), ("right/", -0.4)):
        tree.attach(sd.robots.two_link(), to="base", at=(0, y, 0), name="foot", prefix=side)
    return tree


@pytest.mark.parametrize("kind", KINDS)
def test_a_loop_that_is_written_constrains_the_same_motions(kind):
    tree, rng = two_arms(), np.random.default_rng(5)
    one, other = (next(x for x in reversed(tree.links) if x.startswith(side)) for side in ("left/", "right/"))
    tree.close(one, to=other, joint=KINDS[kind], at=random_pose(rng), name='the "grip" & bar')
    twin = KinematicTree.from_urdf(tree.to_urdf(), strict=True)
    loop = twin.loop('the "grip" & bar')
    assert (loop.link, loop.to, loop.joint.kind) == (one, other, kind)
    assert twin.coordinates == tree.coordinates
    q, qd = tree.random_configuration(rng), rng.uniform(-1, 1, tree.nv)
    assert tree.constraint_jacobian(q).shape == (6 - KINDS[kind].nv, tree.nv)
    assert_allclose(twin.constraint_jacobian(q), tree.constraint_jacobian(q), rtol=0, atol=1e-13)
    assert_allclose(twin.constraint_jacobian_dot(q, qd), tree.constraint_jacobian_dot(q, qd), rtol=0, atol=1e-13)
    assert_allclose(twin.gap(q), tree.gap(q), rtol=1e-13, atol=1e-13)


def test_defaults_of_an_element():
    text = '<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="continuous"><parent link="a"/>'
    text += '<child link="b"/></joint><screwdyn_loop name="j2" type="revolute" link="b" to="a"/></robot>'
    loop = KinematicTree.from_urdf(text, strict=True).loop("j2")
    assert_allclose(loop.home, np.eye(4))
    assert_allclose(loop.joint.screws[:, 0], [1, 0, 0, 0, 0, 0])


def problems(*lines):
    """Of loops, the first on line 4, of a robot with the links a and b and the joint j."""
    joint = '<joint name="j" type="floating"><parent link="a"/><child link="b"/></joint>'
    return check_urdf("\n".join(['<robot name="r">', '<link name="a"/><link name="b"/>', joint, *lines, "</robot>"]))


def loop(attributes='name="l" type="fixed" link="a" to="b"', inside=""):
    return f"<screwdyn_loop {attributes}>{inside}</screwdyn_loop>"


@pytest.mark.parametrize(
    ("lines", "line", "words"),
    [
        ([loop('type="fixed" link="a" to="b"')], 4, "the attribute 'name' is missing"),
        ([loop('name="l" type="fixed" link="a"')], 4, "the attribute 'to' is missing"),
        ([loop('name="l" link="a" to="b"')], 4, "the attribute 'type' is missing"),
        (
            [loop('name="l" type="ball" link="a" to="b"')],
            4,
            "unknown type 'ball' of a loop; use one of fixed, revolute",
        ),
        ([loop('name="l" type="fixed" link="a" to="bb"')], 4, "to='bb' is an unknown link"),
        ([loop('name="l" type="fixed" link="a" to="a"')], 4, "it connects 'a' with itself; give two links"),
        ([loop('name="j" type="fixed" link="a" to="b"')], 4, "a link, joint or loop named 'j' already; rename one"),
        ([loop(), loop()], 5, "a link, joint or loop named 'l' already on line 4"),
        ([loop(inside='\n<origin xyz="0 1"/>')], 5, "<origin> of <screwdyn_loop name=\"l\">: xyz='0 1' has 2"),
        ([loop('name="l" type="planar" link="a" to="b"', '\n<axis xyz="0 0 0"/>')], 5, "the axis is zero"),
        ([loop('name="l" type="spherical" link="a" to="b"', '\n<point xyz="0 0 x"/>')], 5, "'x' is not a number"),
        ([loop('name="l" type="helical" link="a" to="b"', '\n<axis xyz="0 0 1"/>')], 5, "'pitch' is missing"),
        ([loop('name="l" type="helical" link="a" to="b"')], 4, "it has no <axis>; a helical joint needs <axis"),
    ],
)
def test_each_problem_of_a_loop_has_its_line(lines, line, words):
    (problem,) = problems(*lines)
    assert (problem.line, problem.severity) == (line, "error")
    assert words in str(problem)


def test_a_floating_base_takes_no_name_of_a_loop():
    links = '<robot name="r"><link name="a"/><link name="b"/>'
    joint = '<joint name="j" type="floating"><parent link="a"/><child link="b"/></joint>'
    loops = loop('name="world" type="fixed" link="b" to="a"') + loop('name="base" type="fixed" link="b" to="a"')
    tree = KinematicTree.from_urdf(f"{links}{joint}{loops}</robot>", floating_base=True)
    assert (tree.base, tree.joints[0], tree.loops) == ("world_2", "base_2", ("world", "base"))


def test_a_loop_that_has_no_type_is_refused():
    tree = two_arms()
    slider = sd.Joint(np.array([[0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 0]]).T)
    tree.close("left/foot", to="right/foot", joint=slider, name="table")
    with pytest.raises(URDFError, match=r"loop 'table' has a prismatic-prismatic joint, .* use to_json"):
        tree.to_urdf()


def test_symbols_of_a_loop_are_refused():
    tree = two_arms()
    tree.close("left/foot", to="right/foot", at=(0, sympy.Symbol("w"), 0), name="plate")
    with pytest.raises(sd.UnboundSymbolError, match="w"):
        tree.to_urdf()
