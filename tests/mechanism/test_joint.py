"""Joints: their unit screws, their options, and what is refused."""

import inspect

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from screwdyn import Joint, JointError, fixed, helical, prismatic, revolute, screw

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


@pytest.mark.parametrize("seed", range(10))
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
    plain = revolute()
    assert (plain.passive, plain.damping, plain.limits, plain.name) == (False, 0, None, None)
    assert fixed("weld").name == "weld"
    assert fixed().screw is None


def test_limits_may_be_open():
    assert revolute(limits=(-np.inf, 1)).limits == (-np.inf, 1)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
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
def test_bad_axes_are_refused(make, axis, message):
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


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
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
        ({"limits": (1,)}, "limits must be two numbers"),
        ({"limits": 3}, "limits must be two numbers"),
        ({"limits": ("a", "b")}, "limits must be two numbers"),
        ({"limits": ("-1", "1")}, "limits must be two numbers"),
        ({"limits": np.zeros((2, 2))}, "limits must be two numbers"),
        ({"damping": "1"}, "damping must be a number"),
        ({"damping": None}, "damping must be a number"),
        ({"damping": np.datetime64(3, "s")}, "damping must be a number"),
        ({"damping": 10**400}, "damping must be a number"),
        ({"passive": "no"}, "passive must be True or False; got 'no'"),
        ({"passive": 1}, "passive must be True or False"),
        ({"passive": None}, "passive must be True or False"),
        ({"name": ""}, "name must be a non-empty string"),
        ({"name": 3}, "name must be a non-empty string"),
    ],
)
def test_bad_options_are_refused(make, options, message):
    with pytest.raises(JointError, match=message):
        make("z", **options)


@pytest.mark.parametrize("make", [revolute, prismatic, helical])
def test_options_are_keywords_that_completion_can_find(make):
    options = ["passive", "damping", "friction", "stiffness", "rest", "limits", "name"]
    parameters = inspect.signature(make).parameters
    assert [name for name in parameters if parameters[name].kind is inspect.Parameter.KEYWORD_ONLY] == options
    with pytest.raises(TypeError, match=rf"{make.__name__}\(\) got an unexpected keyword argument 'dampign'"):
        make("z", 0, dampign=1) if make is not prismatic else make("z", dampign=1)


# a joint from its screw ---------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [[0, 0, 1, 0, -1, 0], (0.0, 0.0, 0.0, 0.0, 0.6, 0.8), [0, 0, 1 + 1e-12, 5, 5, 5]])
def test_a_screw_may_be_any_six_numbers_of_unit_length(given):
    assert_array_equal(Joint(given).screw, given)
    assert Joint(given).screw.dtype == float


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
        ([0, 0, 1, 0, 0], r"shape \(6,\), as \[w; v\]; got \(5,\)"),
        (np.eye(6), "shape"),
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
