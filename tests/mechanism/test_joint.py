"""Joints: unit screws, options, and invalid input."""

import inspect
from dataclasses import replace

import numpy as np
import pytest
import sympy as sp
from numpy.testing import assert_allclose, assert_array_equal

from screwdyn import (
    Joint,
    JointError,
    cylindrical,
    fixed,
    free,
    helical,
    planar,
    prismatic,
    revolute,
    screw,
    spherical,
    universal,
)
from screwdyn.mechanism.chart import Chart

MAKERS = {
    "revolute": lambda axis, **options: revolute(axis, **options),
    "prismatic": lambda axis, **options: prismatic(axis, **options),
    "helical": lambda axis, **options: helical(axis, 0.2, **options),
}


@pytest.mark.parametrize(
    ("joint", "expected"),
    [
        (revolute("z"), [0, 0, 1, 0, 0, 0]),
        (revolute(), [0, 0, 1, 0, 0, 0]),
        (revolute("-y"), [0, -1, 0, 0, 0, 0]),
        (revolute("z", (1, 0, 0)), [0, 0, 1, 0, -1, 0]),
        (revolute([0, 0, 5], [1, 0, 7]), [0, 0, 1, 0, -1, 0]),
        (prismatic("x"), [0, 0, 0, 1, 0, 0]),
        (prismatic([0, 3, 4]), [0, 0, 0, 0, 0.6, 0.8]),
        (helical("z", 0.25), [0, 0, 1, 0, 0, 0.25]),
        (helical("z", -0.25, (1, 0, 0)), [0, 0, 1, 0, -1, -0.25]),
        (helical("z", 0, (0, 2, 0)), [0, 0, 1, 2, 0, 0]),
    ],
)
def test_unit_screws(joint, expected):
    assert_allclose(joint.screw, expected, atol=1e-16)


@pytest.mark.parametrize("seed", range(3))
def test_random_axes_have_their_direction_point_and_pitch(seed):
    rng = np.random.default_rng(seed)
    a, r, h = rng.normal(size=3), rng.normal(size=3), rng.normal()
    joint = helical(a, h, r)
    direction, point = screw.axis(joint.screw)
    assert_allclose(direction, a / np.linalg.norm(a), rtol=1e-14)
    assert_allclose(np.cross(point - r, direction), 0, atol=1e-14)
    assert screw.pitch(joint.screw) == pytest.approx(h, rel=1e-12)
    assert_allclose(revolute(a, r).screw, helical(a, 0, r).screw, rtol=0, atol=0)


def test_kinds_are_read_off_the_screw():
    joints = (revolute([1, 2, 3], [4, 5, 6]), prismatic([1, 1, 0]), helical("x", 1e-3), fixed(), helical("x", 0))
    assert [joint.kind for joint in joints] == ["revolute", "prismatic", "helical", "fixed", "revolute"]


@pytest.mark.parametrize("size", [1e-150, 1e-30, 1, 1e30, 1e150])
def test_the_length_of_an_axis_does_not_matter(size):
    assert_allclose(revolute(size * np.array([1, 2, -2])).screw[:3], [1 / 3, 2 / 3, -2 / 3], rtol=1e-15)


def test_screws_cannot_be_changed_and_arguments_are_copied():
    axis = np.array([0.0, 0.0, 1.0])
    joint = revolute(axis)
    axis[:] = 7
    assert_array_equal(joint.screw, [0, 0, 1, 0, 0, 0])
    with pytest.raises(ValueError, match="read-only"):
        joint.screw[0] = 1
    with pytest.raises(AttributeError):
        joint.damping = 1


def test_options_are_kept():
    joint = prismatic("x", passive=True, damping=1, friction=2, stiffness=3, rest=-4, limits=[-1, 2], name="slide")
    assert (joint.passive, joint.damping, joint.friction, joint.stiffness, joint.rest) == (True, 1, 2, 3, -4)
    assert joint.limits == (-1, 2)
    assert joint.name == "slide"
    strong = spherical(effort=3, velocity=np.inf, passive=True)
    assert (strong.effort, strong.velocity, strong.passive) == (3, None, True)
    plain = revolute()
    assert (plain.passive, plain.damping, plain.limits, plain.name) == (False, 0, None, None)
    assert (plain.effort, plain.velocity) == (None, None)
    assert fixed("weld").name == "weld"
    assert fixed().screw is None
    assert fixed().screws.shape == (6, 0)


def test_limits_may_be_open():
    assert revolute(limits=(-np.inf, 1)).limits == (-np.inf, 1)


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        ([0, 0, 0], "axis is zero or not finite"),
        ([0, 0, -0.0], "axis is zero"),
        ([1, 0, np.nan], "axis is zero or not finite"),
        ([1, 0, np.inf], "axis is zero or not finite"),
        ("w", 'there is no axis \'w\': write "x", "y"'),
        ("", "there is no axis"),
        ([1, 0], "axis must have shape"),
        ([[1, 0, 0]], "a joint has one axis"),
        (None, "axis must be an array of numbers"),
        (1, "axis must have shape"),
        (["a", "b", "c"], "axis must be an array of numbers"),
        ([1j, 0, 0], "axis must be an array of numbers"),
    ],
)
def test_bad_axes_are_refused(axis, message):
    for make in MAKERS.values():
        with pytest.raises(JointError, match=message):
            make(axis)


@pytest.mark.parametrize("pitch", [np.nan, np.inf, -np.inf, "steep", None, [1, 2]])
def test_bad_pitches_are_refused(pitch):
    with pytest.raises(JointError, match="pitch must be a"):
        helical("z", pitch)


@pytest.mark.parametrize("point", [[1, 2], "here", [np.nan, 0, 0], [np.inf, 0, 0], 1, None, [[0, 0, 0]]])
def test_bad_points_are_refused(point):
    with pytest.raises(JointError, match="point"):
        revolute("z", point)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"damping": -1}, "damping must be a finite number >= 0; got -1"),
        ({"friction": -1e-9}, "friction must be"),
        ({"stiffness": np.nan}, "stiffness must be"),
        ({"rest": np.inf}, "rest must be a finite number; got inf"),
        ({"damping": "much"}, "damping must be a number"),
        ({"limits": (1, -1)}, "lower <= upper"),
        ({"limits": (np.nan, 1)}, "lower <= upper"),
        ({"limits": (np.inf, np.inf)}, "within reach"),
        ({"limits": (1,)}, "limits must be two numbers"),
        ({"limits": 3}, "limits must be two numbers"),
        ({"limits": ("a", "b")}, "limits must be two numbers"),
        ({"limits": ("-1", "1")}, "limits must be two numbers"),
        ({"limits": np.zeros((2, 2))}, "limits must be two numbers"),
        ({"effort": -1}, "effort must be a number >= 0, or None for no limit; got -1"),
        ({"velocity": np.nan}, "velocity must be a number"),
        ({"velocity": "3"}, "velocity must be a number"),
        ({"damping": "1"}, "damping must be a number"),
        ({"damping": None}, "damping must be a number"),
        ({"damping": np.datetime64(3, "s")}, "damping must be a number"),
        ({"damping": 10**400}, "damping must be a number"),
        ({"damping": True}, "damping must be a number; got True"),
        ({"armature": True}, "armature must be a number; got True"),
        ({"armature": np.False_}, "armature must be a number; got np.False_"),
        ({"effort": True}, "effort must be a number >= 0, or None for no limit; got True"),
        ({"passive": "no"}, "passive must be True or False; got 'no'"),
        ({"passive": 1}, "passive must be True or False"),
        ({"passive": None}, "passive must be True or False"),
        ({"name": ""}, "name must be a non-blank string"),
        ({"name": 3}, "name must be a non-blank string"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(JointError, match=message):
        revolute("z", **options)


@pytest.mark.parametrize("make", [revolute, prismatic, helical])
def test_options_are_keywords_that_completion_can_find(make):
    options = [
        "passive",
        "damping",
        "friction",
        "stiffness",
        "rest",
        "limits",
        "name",
        "effort",
        "velocity",
        "armature",
        "mimic",
        "rotor",
    ]
    parameters = inspect.signature(make).parameters
    assert [name for name in parameters if parameters[name].kind is inspect.Parameter.KEYWORD_ONLY] == options
    with pytest.raises(TypeError, match=rf"{make.__name__}\(\) got an unexpected keyword argument 'dampign'"):
        make("z", 0, dampign=1) if make is not prismatic else make("z", dampign=1)


# a joint from its screw ---------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [[0, 0, 1, 0, -1, 0], (0.0, 0.0, 0.0, 0.0, 0.6, 0.8), [0, 0, -1, 5, 5, 5]])
def test_a_screw_may_be_any_six_numbers_of_unit_length(given):
    assert_array_equal(Joint(given).screw, given)
    assert Joint(given).screw.dtype == float


@pytest.mark.parametrize("turns", [True, False])
@pytest.mark.parametrize("error", [4e-10, -4e-10, 1e-13])
def test_a_screw_that_is_off_by_rounding_is_scaled_to_unit_length(turns, error):
    a = np.array([2, -1, 2]) / 3
    exact = np.concatenate([a, [0.1, 0.2, 0.3]]) if turns else np.concatenate([np.zeros(3), a])
    S = Joint(exact * (1 + error)).screw
    assert_allclose(S, exact, rtol=3e-16)
    assert_array_equal(Joint(S).screw, S)


def test_the_screw_is_a_copy():
    S = np.array([0, 0, 1.0, 0, 0, 0])
    joint = Joint(S, passive=np.bool_(True))
    S[0] = 7
    assert joint.screw[0] == 0
    assert joint.passive is True


@pytest.mark.parametrize(
    ("S", "message"),
    [
        (np.zeros(6), "must be a unit screw"),
        ([0, 0, 2, 0, 0, 0], "must be a unit screw.*scale it with screwdyn.screw.unit"),
        ([0, 0, 0, 0, 0, 0.9], "must be a unit screw"),
        ([0, 0, 1e-9, 0, 0, 1], "must be a unit screw"),
        ([0, 0, 1, 0, 0], r"shape \(6,\) or \(6, k\), as \[w; v\]; got \(5,\)"),
        (np.zeros((6, 2)), "must be a unit screw"),
        (np.eye(6)[:5], r"\(6, k\), as \[w; v\]; got \(5, 6\)"),
        (np.ones((6, 7)), "shape"),
        (np.ones((6, 1, 1)), "shape"),
        ([], "shape"),
        (3, "shape"),
        ([0, 0, 1, np.nan, 0, 0], "not finite"),
        ([0, 0, np.inf, 0, 0, 0], "not finite"),
        ("z", "must be six numbers; got 'z'"),
        (["0", "0", "1", "0", "0", "0"], "must be six numbers"),
        ([0, 0, 1j, 0, 0, 0], "must be six numbers"),
        ([[0, 0, 1], [0]], "must be six numbers"),
        ({"axis": "z"}, "must be six numbers"),
    ],
)
def test_what_is_no_unit_screw_is_refused(S, message):
    with pytest.raises(JointError, match=message):
        Joint(S)


# several freedoms ---------------------------------------------------------------------------------------

SEVERAL = {
    "spherical": (spherical, 4, ["wx", "wy", "wz"], ["x", "y", "z", "w"]),
    "free": (free, 7, ["wx", "wy", "wz", "vx", "vy", "vz"], ["x", "y", "z", "w", "px", "py", "pz"]),
    "planar": (planar, 3, ["w", "vx", "vy"], ["angle", "px", "py"]),
    "cylindrical": (cylindrical, 2, ["w", "v"], ["angle", "p"]),
    "universal": (universal, 2, ["w1", "w2"], ["angle1", "angle2"]),
}


@pytest.mark.parametrize(("kind", "made"), SEVERAL.items(), ids=SEVERAL)
def test_kind_and_names_of_joints_of_several_freedoms(kind, made):
    make, nq, freedoms, positions = made
    joint = make(name="hip", damping=2, friction=1, passive=True)
    assert (joint.kind, joint.nq, joint.nv) == (kind, nq, len(freedoms))
    assert joint.freedom_names("hip") == tuple(f"hip[{label}]" for label in freedoms)
    assert joint.position_names("hip") == tuple(f"hip[{label}]" for label in positions)
    assert (joint.name, joint.damping, joint.friction, joint.passive) == ("hip", 2, 1, True)
    assert joint.neutral == tuple(float(label == "w") for label in positions)
    assert (joint.chart is None) == (kind in ("cylindrical", "universal"))
    assert replace(joint, name="knee").kind == kind
    with pytest.raises(JointError, match=f"a {kind} joint has {joint.nv} screws"):
        _ = joint.screw


@pytest.mark.parametrize("joint", [revolute(), prismatic(), helical("x", 1)])
def test_a_single_freedom_is_called_as_its_joint(joint):
    assert joint.freedom_names("elbow") == joint.position_names("elbow") == ("elbow",)
    assert (joint.nq, joint.nv, joint.neutral) == (1, 1, (0.0,))
    assert (fixed().nq, fixed().nv, fixed().neutral, fixed().freedom_names("weld")) == (0, 0, (), ())


def test_screws_of_joints_of_several_freedoms():
    r = np.array([1.0, 2.0, 3.0])
    turns = np.array([revolute(a, r).screw for a in np.eye(3)]).T
    assert_array_equal(free().screws, np.eye(6))
    assert_array_equal(spherical().screws, np.eye(6)[:, :3])
    assert_array_equal(spherical(r).screws, turns)
    assert_array_equal(planar(point=r).screws, np.c_[turns[:, 2], np.eye(6)[:, 3:5]])
    assert_array_equal(cylindrical("x", r).screws, np.c_[turns[:, 0], np.eye(6)[:, 3]])
    assert_array_equal(universal("x", "z", r).screws, turns[:, [0, 2]])
    S = planar([1, 2, 3], r).screws
    assert_allclose(S[:, 0], revolute([1, 2, 3], r).screw)
    assert_allclose(np.cross(S[3:, 1], S[3:, 2]), S[:3, 0], atol=1e-15)
    assert not spherical().screws.flags.writeable


def test_screws_in_a_row_are_called_by_their_kinds():
    assert Joint(universal(point=(1, 2, 3)).screws).kind == "universal"
    skew = np.stack([revolute("x").screw, revolute("y", (0, 0, 1)).screw], axis=1)
    assert Joint(skew).kind == "revolute-revolute"
    table = np.stack([prismatic("x").screw, prismatic("y").screw, revolute("z").screw], axis=1)
    assert Joint(table).kind == "prismatic-prismatic-revolute"
    assert Joint(table).freedom_names("t") == ("t[v1]", "t[v2]", "t[w]")
    assert Joint(table).position_names("t") == ("t[p1]", "t[p2]", "t[angle]")
    assert Joint(table[:, [2, 0]]).kind == "revolute-prismatic"


Z, X, FAR = revolute("z").screw, revolute("x").screw, revolute("z", (1e3, 0, 0)).screw
ALONG = prismatic("z").screw


@pytest.mark.parametrize(
    ("screws", "named"),
    [
        ((Z, Z), [Z, Z]),
        ((Z, -Z), [Z, -Z]),
        ((X, ALONG, ALONG), [ALONG, ALONG]),
        ((Z, ALONG, helical("z", pitch=0.1).screw), [Z, ALONG]),
        ((X, FAR, prismatic("x").screw, prismatic("y").screw, Z), [FAR, Z]),
        ((Z, X, Z, X), [Z, X]),
    ],
)
def test_a_screw_that_adds_no_freedom_is_refused(screws, named):
    with pytest.raises(JointError, match=r"adds no freedom to .* linearly dependent in every configuration") as error:
        Joint(np.stack(screws, axis=1))
    assert all(str(S.tolist()) in str(error.value) for S in named)


def test_screws_that_are_dependent_at_home_only_are_a_joint():
    """Euler angles: z, x and z again; and parallel axes a micrometre apart."""
    assert Joint(np.stack([Z, X, Z], axis=1)).nv == 3
    assert Joint(np.stack([Z, revolute("z", (1e-6, 0, 0)).screw], axis=1)).nv == 2


@pytest.mark.parametrize("make", [spherical, free, planar])
@pytest.mark.parametrize("option", [{"stiffness": 1}, {"rest": 0.1}, {"limits": (-1, 1)}, {"armature": 1}])
def test_groups_have_no_springs_and_limits(make, option):
    with pytest.raises(JointError, match="takes no stiffness, rest, limits or armature"):
        Joint(make().screws, chart=make().chart, **option)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: universal("x", "-x"), "axes of a universal joint must not be parallel; got 'x' and '-x'"),
        (lambda: universal([1, 1, 0], [2, 2, 0]), "must not be parallel"),
        (lambda: planar([0, 0, 0]), "axis is zero"),
        (lambda: spherical([1, 2]), "point must have shape"),
        (lambda: spherical([1, np.nan, 2]), "point must be three finite numbers"),
        (lambda: planar("z", [[1, 2, 3]]), "point must be three finite numbers"),
        (lambda: cylindrical("w"), "there is no axis"),
        (lambda: Chart(4, 1, np.eye(3), np.zeros(3)), r"one of \(4, 0\), \(4, 3\), \(1, 2\); got \(4, 1\)"),
    ],
)
def test_bad_joints_of_several_freedoms_are_refused(make, message):
    with pytest.raises(JointError, match=message):
        make()


def test_joints_of_several_freedoms_may_hold_symbols():
    a, x = sp.symbols("a x")
    axis = (0, sp.sin(a), sp.cos(a))
    for make, numeric in (
        (lambda axis, x: planar(axis, (x, 0, 0)), "planar"),
        (lambda axis, x: cylindrical(axis, (x, 0, 0)), "cylindrical"),
        (lambda axis, x: universal("x", axis, (x, 0, 0)), "universal"),
    ):
        joint = make(axis, x)
        assert joint.kind == numeric
        assert joint.free_symbols == {a, x}
        expected = make((0, np.sin(0.3), np.cos(0.3)), 2.0)
        assert_allclose(joint.subs({a: 0.3, "x": 2}).screws, expected.screws, atol=1e-15)
    ball = spherical((x, 0, 0))
    assert ball.free_symbols == {x}
    assert_array_equal(ball.subs({x: 2}).chart.center, [2, 0, 0])
    assert_array_equal(ball.subs({x: 2}).screws, spherical((2, 0, 0)).screws)


def test_a_joint_shows_its_kind_and_what_is_not_the_default():
    assert repr(spherical(passive=True, name="hip")) == "<Joint: spherical, passive=True, name='hip'>"
    shown = "revolute, screw [0.0, 0.0, 1.0, 1.0, 0.0, 0.0], limits=(-1.0, 2.0), name='hinge'"
    assert repr(revolute("z", (0, 1, 0), name="hinge", limits=(-1, 2))) == f"<Joint: {shown}>"
