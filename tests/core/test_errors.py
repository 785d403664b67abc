"""Errors: one family, and names that are nearly right."""

import pytest

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


def test_a_urdf_error_carries_its_problems():
    assert URDFError("two problems", ["a", "b"]).problems == ("a", "b")
