"""The URDF reader: valid and invalid files, and the lines in its messages."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from screwdyn import KinematicTree, Mimic
from screwdyn.core.errors import ScrewdynError, ScrewdynWarning, URDFError
from screwdyn.io import Problem, check_urdf, urdf
from screwdyn.io.urdf import rotation_from_rpy

DATA = Path(__file__).parents[1] / "data"
BAD = DATA / "urdf_bad"
ARM = DATA / "urdf" / "arm.urdf"

MASS = '<mass value="1"/>'
TENSOR = '<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/>'
LIMIT = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'


def link(name, inertial=""):
    return f'<link name="{name}">{f"<inertial>{inertial}</inertial>" if inertial else ""}</link>'


def joint(name, parent, child, kind="fixed", inside=""):
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}">{ends}{inside}</joint>'


def robot(*lines):
    """One element per line; the first of `lines` is on line 2."""
    return "\n".join(['<robot name="r">', *lines, "</robot>"])


def arm(inside=LIMIT, kind="revolute"):
    """A robot whose joint j is on line 4."""
    return robot(link("a"), link("b", MASS + TENSOR), joint("j", "a", "b", kind, inside))


def only_problem(text):
    (problem,) = check_urdf(text)
    return problem


# the shared malformed files ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "line", "words"),
    [
        ("comma", 3, ("<mass>", "'1,5'", "','")),
        ("cycle", 4, ('<joint name="k">', "cycle", "'a'")),
        ("entities", 1, ("DOCTYPE", "not allowed")),
        ("missing_parent", 4, ("<parent>", '"j"', "'zzz'")),
        ("neg_mass", 3, ("<mass>", '"b"', "negative", "-1")),
        ("trunc", 3, ('<link name="b">', "ends too early")),
        ("two_parents", 4, ('<joint name="k">', "second parent", "'b'", '"j"')),
        ("unknown_type", 4, ('<joint name="j">', "'weld'")),
        ("zero_axis", 4, ("<axis>", '"j"', "zero")),
    ],
)
def test_each_bad_file_is_refused_with_its_line(name, line, words):
    path = BAD / f"{name}.urdf"
    with pytest.raises(URDFError) as caught:
        KinematicTree.from_urdf(path)
    (problem,) = [p for p in caught.value.problems if p.severity == "error"]
    assert problem.line == line
    assert f"line {line}, {problem.element}: {problem.message}" in str(caught.value)
    assert str(path) in str(caught.value)
    for word in words:
        assert word in str(problem)


def test_the_good_file_is_read_silently():
    tree = KinematicTree.from_urdf(BAD / "ok.urdf", strict=True)
    assert list(tree.links) == ["a", "b"]
    assert tree.coordinates == ("j",)
    assert check_urdf(BAD / "ok.urdf") == []


def test_an_impossible_inertia_is_warned_about_and_kept():
    with pytest.warns(ScrewdynWarning, match=r'line 3, <inertial> of <link name="b">.*0.01 \+ 0.01 < 1') as caught:
        tree = KinematicTree.from_urdf(BAD / "tri.urdf")
    assert [w.filename for w in caught] == [__file__]
    assert_allclose(tree.link("b").inertia.tensor, np.diag([1, 0.01, 0.01]))
    with pytest.raises(URDFError, match="triangle inequality") as refused:
        KinematicTree.from_urdf(BAD / "tri.urdf", strict=True)
    assert refused.value.problems == tuple(check_urdf(BAD / "tri.urdf"))


def test_a_mimic_that_names_no_joint_is_warned_about_and_passed_over():
    with pytest.warns(ScrewdynWarning, match=r'line 4, <mimic> of <joint name="k">.*unknown joint \'nope\'') as caught:
        tree = KinematicTree.from_urdf(BAD / "mimic_missing.urdf")
    assert len(caught) == 1
    assert tree.coordinates == ("j", "k")
    with pytest.raises(URDFError, match="unknown joint 'nope'"):
        KinematicTree.from_urdf(BAD / "mimic_missing.urdf", strict=True)


# valid files ------------------------------------------------------------------------


def test_arm_agrees_with_outside_engine():
    oracle = json.loads((DATA / "oracles" / "arm_urdf.json").read_text())
    tree = KinematicTree.from_urdf(ARM, strict=True)
    order = [oracle["coordinates"].index(name) for name in tree.coordinates]
    for state in oracle["states"]:
        q, qd, qdd = (np.array(state[key])[order] for key in ("q", "qd", "qdd"))
        M, C = (np.array(state[key])[np.ix_(order, order)] for key in ("mass_matrix", "coriolis_matrix"))
        assert_allclose(tree.mass_matrix(q), M, rtol=1e-9, atol=1e-9)
        assert_allclose(tree.coriolis_matrix(q, qd), C, rtol=1e-9, atol=1e-9)
        assert_allclose(tree.gravity_vector(q), np.array(state["gravity_vector"])[order], rtol=1e-9, atol=1e-9)
        tau = np.array(state["inverse_dynamics"])[order]
        assert_allclose(tree.inverse_dynamics(q, qd, qdd), tau, rtol=1e-9, atol=1e-9)
        for name, pose in state["poses"].items():
            assert_allclose(tree.forward_kinematics(name, q), pose, rtol=0, atol=1e-12)


def test_arm_keeps_names_order_and_joint_data():
    tree = KinematicTree.from_urdf(ARM)
    assert list(tree.links) == [
        "foot",
        "turret",
        "slide",
        "bracket",
        "wheel",
        "finger",
        "tool0",
    ]
    assert tree.coordinates == ("turn", "push", "spin", "bend")
    assert tree.link("foot").inertia.mass == 7
    assert tree.link("tool0").inertia is None
    turn = tree.joint("turn")
    assert (turn.damping, turn.friction, turn.limits) == (0.25, 0.5, (-2.0, 1.5))
    assert_allclose(turn.screw, [0, 0.6, 0.8, 0, 0, 0], atol=1e-15)
    assert tree.joint("push").kind == "prismatic"
    assert tree.joint("spin").limits is None
    assert_allclose(tree.joint("bend").screw, [1, 0, 0, 0, 0, 0])
    assert_allclose(tree.gravity, [0, 0, -9.81])


def test_roll_pitch_yaw_is_about_fixed_axes():
    quarter = np.pi / 2
    assert_allclose(rotation_from_rpy(quarter, 0, 0) @ [0, 1, 0], [0, 0, 1], atol=1e-15)
    assert_allclose(rotation_from_rpy(0, quarter, 0) @ [0, 0, 1], [1, 0, 0], atol=1e-15)
    assert_allclose(rotation_from_rpy(0, 0, quarter) @ [1, 0, 0], [0, 1, 0], atol=1e-15)
    R = rotation_from_rpy(0.3, -0.8, 2.1)
    product = rotation_from_rpy(0, 0, 2.1) @ rotation_from_rpy(0, -0.8, 0) @ rotation_from_rpy(0.3, 0, 0)
    assert_allclose(R, product, atol=1e-15)


@pytest.mark.parametrize("text", ["{}", "\n\n  {}", "\ufeff{}", '<?xml version="1.0" encoding="latin-1"?>{}'])
def test_text_may_be_given_instead_of_a_path(text):
    assert KinematicTree.from_urdf(text.format(arm())).coordinates == ("j",)


def test_lines_are_counted_from_the_beginning_of_indented_text():
    assert only_problem("\n\n" + arm('<axis xyz="0 0 0"/>' + LIMIT)).line == 6


def test_path_as_text_or_object_and_other_encodings(tmp_path):
    path = tmp_path / "r.urdf"
    text = '<?xml version="1.0" encoding="utf-16"?>' + arm().replace('"b"', '"β"')
    path.write_bytes(text.encode("utf-16"))
    assert list(KinematicTree.from_urdf(path).links) == ["a", "β"]
    assert list(KinematicTree.from_urdf(str(path)).links) == ["a", "β"]


def test_axis_of_any_length_is_normalised():
    for axis, unit in (("0 0 5", [0, 0, 1]), ("0 3e-200 4e-200", [0, 0.6, 0.8])):
        tree = KinematicTree.from_urdf(arm(f'<axis xyz="{axis}"/>' + LIMIT))
        assert_allclose(tree.joint("j").screw[:3], unit, atol=1e-15)


def test_massless_link_written_with_zeros_is_massless():
    zeros = '<mass value="0"/>' + TENSOR.replace("0.01", "0")
    assert KinematicTree.from_urdf(robot(link("a"), link("b", zeros), joint("j", "a", "b"))).link("b").inertia is None


def test_a_single_link_is_a_robot():
    assert list(KinematicTree.from_urdf(robot(link("a"))).links) == ["a"]


@pytest.mark.slow
def test_a_chain_of_two_thousand_links():
    n = 2000
    lines = [link(f"l{i}", MASS + TENSOR) for i in range(n)]
    lines += [joint(f"j{i}", f"l{i}", f"l{i + 1}", "continuous") for i in reversed(range(n - 1))]
    tree = KinematicTree.from_urdf(robot(*lines))
    assert tree.coordinates == tuple(f"j{i}" for i in range(n - 1))


def test_deeply_nested_foreign_elements_are_passed_over():
    depth = 100_000
    assert check_urdf(robot("<gazebo>" + "<a>" * depth + "</a>" * depth + "</gazebo>", link("a"))) == []


def test_a_long_cycle_is_found_at_its_last_joint():
    n = 2000
    lines = [link(f"l{i}") for i in range(n)] + [joint(f"j{i}", f"l{i}", f"l{(i + 1) % n}") for i in range(n)]
    problem = only_problem(robot(*lines))
    assert (problem.line, problem.element) == (2 * n + 1, f'<joint name="j{n - 1}">')


# joints of several freedoms ------------------------------------------------------------------------


def test_a_floating_joint_is_a_free_one():
    dynamics = '<dynamics damping="0.2" friction="0.3"/><axis xyz="0 0 0"/><limit effort="1" velocity="1"/>'
    tree = KinematicTree.from_urdf(arm('<origin xyz="1 2 3"/>' + dynamics, "floating"), strict=True)
    j = tree.joint("j")
    assert (j.kind, j.damping, j.friction, j.passive) == ("free", 0.2, 0.3, True)
    assert (tree.nq, tree.nv) == (7, 6)
    assert tree.coordinates == ("j[wx]", "j[wy]", "j[wz]", "j[vx]", "j[vy]", "j[vz]")
    assert tree.positions == ("j[x]", "j[y]", "j[z]", "j[w]", "j[px]", "j[py]", "j[pz]")
    # Half a turn about z, then a step along the parent's axes.
    (part,) = tree.contributions([0, 0, 1, 0, 10, 20, 30], np.zeros(6))
    assert_allclose(part.g, [0, 0, 0, 0, 0, 9.81], atol=1e-15)


def test_the_axis_of_a_planar_joint_is_the_normal_of_its_plane():
    tree = KinematicTree.from_urdf(arm('<axis xyz="0 3 4"/><dynamics damping="0.2"/>', "planar"), strict=True)
    j = tree.joint("j")
    assert (j.kind, j.damping) == ("planar", 0.2)
    assert tree.coordinates == ("j[w]", "j[vx]", "j[vy]")
    assert_allclose(j.screws[:3, 0], [0, 0.6, 0.8], atol=1e-15)
    assert_allclose(j.screws[3:, 1:].T @ [0, 0.6, 0.8], 0, atol=1e-15)
    assert KinematicTree.from_urdf(arm("", "planar"), strict=True).joint("j").screws[:3, 0].tolist() == [1, 0, 0]


@pytest.mark.parametrize("kind", ["floating", "planar"])
def test_joints_of_several_freedoms_are_checked_as_others(kind):
    assert "damping is negative" in only_problem(arm('<dynamics damping="-1"/>', kind)).message
    assert "unknown joint 'k'" in only_problem(arm('<mimic joint="k"/>', kind)).message


def test_a_floating_base_hangs_the_root_on_a_world():
    fixed, floating = KinematicTree.from_urdf(ARM), KinematicTree.from_urdf(ARM, floating_base=True)
    assert (floating.base, floating.links[1:], floating.nq, floating.nv) == ("world", fixed.links, 4 + 7, 4 + 6)
    assert floating.coordinates[:6] == tuple(f"base[{x}]" for x in ("wx", "wy", "wz", "vx", "vy", "vz"))
    assert floating.coordinates[6:] == fixed.coordinates
    assert floating.joint("base").kind == "free"
    assert_array_equal(floating.actuation_matrix, np.eye(10)[:, 6:])
    assert floating.mass == fixed.mass


@pytest.mark.parametrize("word", ["yes", "base", 1, None])
def test_a_floating_base_is_true_or_false(word):
    with pytest.raises(ScrewdynError, match="floating_base must be True or False; got"):
        KinematicTree.from_urdf(ARM, floating_base=word)


def test_names_that_a_floating_base_would_take_stay_with_the_file():
    text = robot(link("world", MASS + TENSOR), link("world_2"), joint("base", "world", "world_2"))
    tree = KinematicTree.from_urdf(text, floating_base=True)
    assert tree.links == ("world_3", "world", "world_2")
    assert tree.joints == ("base_2", "base")


# mimic joints ------------------------------------------------------------------------


def gripper(follower, kind="prismatic"):
    """A finger, and on the next line one that follows it; the joint that follows comes first in the file."""
    second = joint("right", "palm", "r", kind, LIMIT + follower)
    first = joint("left", "palm", "l", "prismatic", LIMIT)
    bodies = [link("palm"), link("l", MASS + TENSOR), link("r", MASS + TENSOR), link("tip", MASS + TENSOR)]
    return robot(*bodies, second, first, joint("tip", "r", "tip", "revolute", LIMIT + '<mimic joint="right"/>'))


def test_a_mimic_joint_follows_the_joint_that_it_names():
    tree = KinematicTree.from_urdf(gripper('<mimic joint="left" multiplier="-2" offset="0.1"/>'), strict=True)
    assert (tree.coordinates, tree.nq, tree.joints) == (("left",), 1, ("right", "tip", "left"))
    assert tree.joint("right").mimic == Mimic("left", -2, 0.1)
    assert_allclose(tree.forward_kinematics("r", [0.3])[:3, 3], [-0.5, 0, 0], atol=1e-15)
    twin = KinematicTree.from_urdf(tree.to_urdf(), strict=True)
    assert twin.joint("tip").mimic == Mimic("right", 1, 0)
    assert_allclose(twin.mass_matrix([0.3]), tree.mass_matrix([0.3]), rtol=1e-15)


def test_mimic_joints_that_cannot_follow_are_named():
    for follower, words in (
        ('<mimic joint="lefd"/>', "unknown joint 'lefd' (did you mean 'left'?)"),
        ('<mimic joint="tip"/>', "mimics 'tip' in a circle"),
    ):
        problem = only_problem(gripper(follower))
        assert (problem.line, problem.severity) == (6, "warning")
        assert words in problem.message
    lines = [link("a"), link("b"), link("c")]
    for kinds, words in (
        (("floating", "continuous"), "mimics 'f', a floating joint, which has not one freedom"),
        (("continuous", "planar"), "a planar joint cannot follow another one"),
    ):
        leader, follower = joint("f", "a", "b", kinds[0]), joint("r", "b", "c", kinds[1], '<mimic joint="f"/>')
        assert only_problem(robot(*lines, leader, follower)).message == words
    assert "'1,5' is not a number" in str(only_problem(gripper('<mimic joint="left" multiplier="1,5"/>')))


@pytest.mark.slow
def test_many_joints_follow_each_other_in_a_row():
    links = [link("l0"), *(link(f"l{i}") for i in range(1, 3001))]
    first = joint("j1", "l0", "l1", "continuous")
    follow = [
        joint(f"j{i}", f"l{i - 1}", f"l{i}", "continuous", f'<mimic joint="j{i - 1}"/>') for i in range(3000, 1, -1)
    ]
    assert KinematicTree.from_urdf(robot(*links, *follow, first), strict=True).coordinates == ("j1",)


def test_a_row_of_joints_that_follow_is_searched_for_circles_once():
    class Counted(dict):
        read = 0

        def __getitem__(self, name):
            self.read += 1
            return super().__getitem__(name)

    leaders = Counted()
    for k in range(1, 200):
        assert urdf._top(f"j{k - 1}", leaders) == "j0"
        leaders[f"j{k}"] = f"j{k - 1}"
    assert leaders.read < 1000


# limits ------------------------------------------------------------------------


def test_limits_of_position_effort_and_velocity_are_read():
    limit = '<limit lower="-1" upper="2" effort="30" velocity="4"/>'
    bounded, endless = (KinematicTree.from_urdf(arm(limit, kind)).joint("j") for kind in ("prismatic", "continuous"))
    assert (bounded.limits, bounded.effort, bounded.velocity) == ((-1, 2), 30, 4)
    assert (endless.limits, endless.effort, endless.velocity) == (None, 30, 4)
    unlimited = KinematicTree.from_urdf(arm('<limit lower="-1" upper="2"/>')).joint("j")
    assert (unlimited.effort, unlimited.velocity) == (None, None)


# warnings ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (arm(""), 4, "revolute joint without <limit>"),
        (arm("", "prismatic"), 4, "prismatic joint without <limit>"),
        (arm('<limit effort="1" velocity="1"/>'), 4, "neither lower nor upper"),
        (arm('<limit lower="2" upper="1"/>'), 4, "lower limit 2 is above the upper limit 1"),
        (arm('<limit lower="0" upper="1" effort="1,5"/>'), 4, "effort='1,5'"),
        (arm('<limit lower="0" upper="1" velocity="-2"/>'), 4, "the velocity is negative (-2)"),
        (arm(LIMIT + '<axis xyz="0 0 1"/><axis xyz="0 1 0"/>'), 4, "a second <axis>"),
        (
            robot(link("a"), link("b", '<mass value="0"/>' + TENSOR), joint("j", "a", "b")),
            3,
            "mass 0 kg is not positive",
        ),
        (arm(LIMIT + '<mimic joint="jj"/>'), 4, "mimics an unknown joint 'jj' (did you mean 'j'?)"),
        (arm(LIMIT + '<mimic joint="j"/>'), 4, "mimics 'j' in a circle"),
    ],
)
def test_doubtful_entries_are_warned_about_unless_strict(text, line, words):
    problem = only_problem(text)
    assert (problem.line, problem.severity) == (line, "warning")
    assert words in problem.message
    with pytest.warns(ScrewdynWarning) as caught:
        KinematicTree.from_urdf(text)
    assert [str(problem) in str(w.message) for w in caught] == [True]
    with pytest.raises(URDFError) as refused:
        KinematicTree.from_urdf(text, strict=True)
    assert refused.value.problems == (problem,)


def test_joints_read_with_a_warning_are_independent_and_unlimited():
    with pytest.warns(ScrewdynWarning):
        tree = KinematicTree.from_urdf(arm('<mimic joint="j" multiplier="2"/>'))
    assert tree.coordinates == ("j",)
    assert tree.joint("j").limits is None


def test_all_warnings_of_a_file_come_as_one():
    bodies = [link(f"b{i}", MASS + TENSOR.replace('izz="0.01"', 'izz="1"')) for i in range(30)]
    joints = [joint(f"j{i}", "a", f"b{i}", "revolute") for i in range(30)]
    with pytest.warns(ScrewdynWarning, match="60 problems") as caught:
        KinematicTree.from_urdf(robot(link("a"), *bodies, *joints))
    assert len(caught) == 1
    for line in range(3, 63):
        assert f"line {line}, " in str(caught[0].message)


# errors ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        ('<axis xyz="0 0"/>', "has 2; expected 3 numbers"),
        ('<axis xyz="0 0 1 0"/>', "has 4; expected 3 numbers"),
        ('<axis xyz=""/>', "has 0; expected 3 numbers"),
        ('<axis xyz="0 0 nan"/>', "nan is not a finite number"),
        ('<axis xyz="0 -inf 1"/>', "-inf is not a finite number"),
        ('<axis xyz="0,0,1"/>', "separate numbers by spaces"),
        ('<axis xyz="0 0,5 1"/>', "write the decimal point as '.'"),
        ('<axis xyz="0 0 1_0"/>', "'1_0' is not a number"),
        ('<axis xyz="0 0 ١"/>', "is not a number"),
        ('<axis xyz="0 0 1e999"/>', "1e999 is too large"),
        ("<axis/>", "'xyz' is missing"),
        ('<origin xyz="a b c"/>', "'a' is not a number"),
        ('<origin rpy="0 0"/>', "has 2; expected 3 numbers"),
        ('<origin quat_xyzw="0 0 0 1"/>', "quat_xyzw is not supported yet"),
        ('<dynamics damping="-1"/>', "the damping is negative (-1)"),
        ('<dynamics friction="x"/>', "friction='x'"),
        ("<mimic/>", "'joint' is missing"),
        ('<parent link="b"/>', "a second <parent>"),
    ],
)
def test_bad_joints(inside, words):
    problem = only_problem(arm(LIMIT + inside))
    assert (problem.line, problem.severity) == (4, "error")
    assert words in str(problem)
    assert '<joint name="j">' in problem.element


@pytest.mark.parametrize(
    ("inertial", "words"),
    [
        (TENSOR, "it has no <mass>"),
        (MASS, "it has no <inertia>"),
        ("<mass/>" + TENSOR, "'value' is missing"),
        ('<mass value="1 2"/>' + TENSOR, "expected one number"),
        ('<mass value="nan"/>' + TENSOR, "not a finite number"),
        (MASS + TENSOR.replace('iyz="0" ', ""), "'iyz' is missing"),
        (MASS + TENSOR.replace('iyz="0"', 'iyz="O"'), "'O' is not a number"),
        ('<origin xyz="0 0"/>' + MASS + TENSOR, "has 2"),
    ],
)
def test_bad_inertias(inertial, words):
    problem = only_problem(robot(link("a"), link("b", inertial), joint("j", "a", "b")))
    assert (problem.line, problem.severity) == (3, "error")
    assert words in str(problem)
    assert '<link name="b">' in problem.element


@pytest.mark.parametrize(
    ("lines", "line", "words"),
    [
        ([link("a"), link("a")], 3, "a second link named 'a'; the first is on line 2"),
        (
            [link("a"), link("b"), link("c"), joint("j", "a", "b"), joint("j", "b", "c")],
            6,
            "a second joint named 'j'; the first is on line 5",
        ),
        (
            [link("a"), link("b"), link("c"), joint("j", "a", "b")],
            4,
            "2 links without a parent: 'a' (line 2), 'c' (line 4)",
        ),
        ([link("a"), joint("j", "a", "a")], 3, "closes a cycle"),
        (
            [link("upper"), link("b"), joint("j", "uper", "b")],
            4,
            "unknown parent link 'uper'; did you mean 'upper'?",
        ),
        ([link("a"), link("b"), joint("j", "a", "bb")], 4, "unknown child link 'bb'; did you mean 'b'?"),
        ([link("a"), "<link/>"], 3, "'name' is missing"),
        ([link("a"), '<link name=""/>'], 3, "'name' is empty"),
        ([link("a"), '<link name="  "/>'], 3, "'name' is empty"),
        (
            [link("a"), link("b"), '<joint name="j" type="fixed"><parent link="a"/></joint>'],
            4,
            "it has no <child>",
        ),
        ([link("a"), link("b"), joint("j", "a", "b").replace(' type="fixed"', "")], 4, "'type' is missing"),
        ([], 1, "there is no <link>"),
    ],
)
def test_bad_structure(lines, line, words):
    problem = only_problem(robot(*lines))
    assert (problem.line, problem.severity) == (line, "error")
    assert words in str(problem)


def test_every_problem_is_reported_at_once_in_order():
    text = robot(
        link("a", MASS),
        link("b", '<mass value="-1"/>' + TENSOR),
        joint("j", "a", "b", "revolute", '<axis xyz="0 0 0"/>'),
        joint("k", "q", "b", "wobbly"),
    )
    with pytest.raises(URDFError) as caught:
        KinematicTree.from_urdf(text)
    assert [(p.line, p.severity) for p in caught.value.problems] == [
        (2, "error"),
        (3, "error"),
        (4, "error"),
        (4, "warning"),
        (5, "error"),
        (5, "error"),
        (5, "error"),
    ]
    assert list(caught.value.problems) == check_urdf(text)
    assert "7 problems in the URDF text" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("<sdf><model/></sdf>", 1, "the root element is not <robot>"),
        ("<robot><link name='a'></robot>", 1, "mismatched tag"),
        ("<robot>\n<link name='a' name='b'/></robot>", 2, "duplicate attribute"),
        ("<robot>&nbsp;</robot>", 1, "undefined entity"),
        ("<robot>\n\n", 3, "the file ends too early; <robot>, opened on line 1, is not closed yet"),
        ("<robot/><robot/>", 1, "junk after document element"),
        ("<!-- nothing -->", 1, "there is no XML element"),
    ],
)
def test_what_is_no_urdf(text, line, words):
    problem = only_problem(text)
    assert problem.line == line
    assert words in str(problem)
    with pytest.raises(URDFError):
        KinematicTree.from_urdf(text)


def test_a_declared_xacro_namespace_alone_is_fine():
    assert check_urdf(arm().replace("<robot", '<robot xmlns:xacro="http://wiki.ros.org/xacro"')) == []


@pytest.mark.parametrize("content", [b"", b"\x00\xff", b'<?xml version="1.0" encoding="klingon"?><robot/>'])
def test_files_that_are_no_text(tmp_path, content):
    path = tmp_path / "r.urdf"
    path.write_bytes(content)
    with pytest.raises(URDFError, match="line 1"):
        KinematicTree.from_urdf(path)


@pytest.mark.parametrize("path", ["", "no/such.urdf", Path("no/such.urdf"), "nul\0byte", "x" * 5000, "."])
def test_a_file_that_cannot_be_opened_is_named(path):
    for function in (KinematicTree.from_urdf, check_urdf):
        with pytest.raises(URDFError, match="cannot read the file") as caught:
            function(path)
        assert str(path)[:50] in str(caught.value).replace("\\x00", "\0")


@pytest.mark.parametrize("path", ["", "  \n"])
def test_an_empty_path_is_called_empty(path):
    for function in (KinematicTree.from_urdf, check_urdf):
        with pytest.raises(URDFError, match="the path is empty; give the path of a URDF file, or its text"):
            function(path)


@pytest.mark.parametrize(
    ("thing", "kind"), [(3, "int"), (None, "NoneType"), (["<robot/>"], "list"), (b"<robot", "bytes")]
)
def test_what_is_neither_path_nor_text_is_refused(thing, kind):
    for function in (KinematicTree.from_urdf, check_urdf):
        with pytest.raises(
            URDFError, match=f"a {kind} is not a URDF: give the path of a URDF file, or its text"
        ) as caught:
            function(thing)
        assert ("decode bytes" in str(caught.value)) == (kind == "bytes")


def test_problem_reads_well():
    problem = Problem(3, '<link name="b">', "it is odd", "mend it")
    assert str(problem) == 'line 3, <link name="b">: it is odd; mend it'
    assert str(Problem(3, "<x>", "odd", severity="warning")) == "line 3, <x> (warning): odd"


# random changes ------------------------------------------------------------------------

ORIGINAL = ARM.read_bytes()
VALUES = [
    "",
    "nan",
    "1e300",
    "-1e-320",
    "1,5",
    "0",
    "-1",
    "a",
    "foot",
    "turret",
    "${x}",
    "9" * 400,
    "0 0 0",
    "1e49 1e49 1e49",
]


def must_be_read_or_refused(document, path):
    path.write_bytes(document)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ScrewdynWarning)
        problems = check_urdf(path)
        try:
            KinematicTree.from_urdf(path)
        except URDFError as error:
            assert list(error.problems) == problems
            assert any(p.severity == "error" for p in problems)
        else:
            assert all(p.severity == "warning" for p in problems)
    lines = document.count(b"\n") + document.count(b"\r") + 1
    assert all(1 <= p.line <= lines for p in problems)


@given(st.data())
def test_mutated_bytes_are_read_or_refused(tmp_path_factory, data):
    document = bytearray(ORIGINAL)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(document)))
        stop = start + data.draw(st.integers(0, 12))
        document[start:stop] = data.draw(st.binary(max_size=6))
    must_be_read_or_refused(bytes(document), tmp_path_factory.getbasetemp() / "mutated.urdf")


@given(st.data())
def test_mutated_attributes_are_read_or_refused(tmp_path_factory, data):
    words = ORIGINAL.decode().split('"')
    for _ in range(data.draw(st.integers(1, 4))):
        where = data.draw(st.integers(0, (len(words) - 1) // 2 - 1)) * 2 + 1
        words[where] = data.draw(st.sampled_from(VALUES + words[1::2]))
    must_be_read_or_refused('"'.join(words).encode(), tmp_path_factory.getbasetemp() / "attributes.urdf")


@given(st.integers(0, len(ORIGINAL) - 3))
def test_every_truncation_is_refused(length):
    with pytest.raises(URDFError, match="line"):
        KinematicTree.from_urdf("<" + ORIGINAL[:length].decode("ascii", "ignore")[1:])


@pytest.mark.parametrize("character", ["&#10;", "&#x9b;", "\u202e"])
def test_names_have_no_control_characters(character):
    for place, line in ((f'<link name="a{character}"/>', 2), (f'<link name="a"/><joint name="j{character}"/>', 2)):
        problems = check_urdf(f'<robot name="r">\n{place}</robot>')
        assert any("has control characters" in str(p) and p.line == line for p in problems)
        assert all(str(p).isprintable() for p in problems)


@pytest.mark.parametrize("place", ['"b"', "<robot", 'name="'])
def test_an_encoding_that_is_not_declared_is_named(place, tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_bytes(arm().replace(place, {"<robot": "<!-- ä --><robot"}.get(place, f"{place}ä")).encode("latin-1"))
    with pytest.raises(URDFError, match=r"declare its encoding, <.xml .*encoding=.*, or save it as UTF-8"):
        KinematicTree.from_urdf(path)
    # Other characters that are wrong are no matter of the encoding.
    path.write_bytes(b'<?xml version="1.0" encoding="latin-1"?><robot name="\xe4"><link name="a"/> < </robot>')
    with pytest.raises(URDFError, match=r"invalid token.*is not closed yet$"):
        KinematicTree.from_urdf(path)
