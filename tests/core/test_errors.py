"""Errors: their base class, and similar names in messages."""

import pytest

import screwdyn as sd
from screwdyn import ScrewdynError, UnknownLinkError, URDFError, errors


def test_every_error_is_a_value_error_of_one_family():
    for name in errors.__all__:
        error = getattr(errors, name)
        if name.endswith("Error"):
            assert issubclass(error, ScrewdynError)
            assert issubclass(error, ValueError)
        else:
            assert issubclass(error, UserWarning)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("elbw", "there is no joint 'elbw'; did you mean 'elbow'?"),
        ("wrist", "there is no joint 'wrist'; did you mean 'wrist_1' or 'wrist_10'?"),
        ("xyz", "there is no joint 'xyz'; known: wrist_1, wrist_10, elbow"),
        (7, "there is no joint 7; known: wrist_1, wrist_10, elbow"),
    ],
)
def test_near_names_are_listed(name, message):
    assert str(UnknownLinkError.of(name, ["wrist_1", "wrist_10", "elbow"], "joint")) == message


def test_of_many_names_the_nearest_are_listed():
    names = [f"left/wrist_{k}" for k in range(20)] + ["a7xyz"]
    message = str(UnknownLinkError.of("7", names, "joint"))
    *listed, last = message.removeprefix("there is no joint '7'; known: ").split(", ")
    assert last == "a7xyz and 13 more"
    assert "left/wrist_7" in listed
    assert listed == [name for name in names if name in listed]
    assert message.count(",") == 7


def test_an_array_in_the_place_of_a_name_is_told_the_order_of_arguments():
    arm = sd.robots.ur5()
    q = arm.neutral()
    for answer in (arm.forward_kinematics, arm.jacobian, arm.compile().jacobian):
        for given in (q, list(q)):
            with pytest.raises(
                UnknownLinkError, match=r"a link is given by its name, a str; arguments are \(link, …\)"
            ):
                answer(given, "tool0")


def test_the_error_for_unknown_names_keeps_its_former_name():
    assert sd.UnknownLinkError is sd.UnknownNameError
    for ask in (sd.robots.ur5().link, sd.robots.ur5().joint, sd.State(sd.robots.ur5()).velocity):
        with pytest.raises(sd.UnknownNameError):
            ask("nothing")


def test_a_urdf_error_carries_its_problems():
    assert URDFError("two problems", ["a", "b"]).problems == ("a", "b")
