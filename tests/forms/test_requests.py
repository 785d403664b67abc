"""Requests by name: the quantity, link and frame that they mean, and errors that state the correct form."""

import pytest

import screwdyn as sd
from screwdyn.forms.requests import requested

LINKS = ("base", "rod", "rod:body", "tool")


@pytest.mark.parametrize(
    ("name", "link", "frame"),
    [
        ("jacobian:rod", "rod", None),
        ("jacobian:tool:body", "tool", "body"),
        ("jacobian:tool:LOCAL", "tool", "body"),
        ("jacobian:rod:body", "rod:body", None),
        ("jacobian:rod:body:com", "rod:body", "com"),
        ("forward_kinematics:tool", "tool", None),
        ("mass_matrix", None, None),
    ],
)
def test_what_names_stand_for(name, link, frame):
    request = requested(name, LINKS)
    assert (request.entry.name, request.link, request.frame) == (name.split(":")[0], link, frame)


@pytest.mark.parametrize(
    ("name", "kind", "match"),
    [
        ("jacobian:tool:foo", sd.ShapeError, "frame must be 'com', 'body', 'base' or 'mixed'; got 'foo'"),
        ("jacobian:tol:body", sd.UnknownNameError, "no link 'tol'; did you mean 'tool'"),
        ("jacobian:tol:foo", sd.UnknownNameError, "no link 'tol:foo'"),
        ("jacobian", sd.ScrewdynError, "write 'jacobian:<link>' or, with a frame, 'jacobian:<link>:body'"),
        ("jacobian:body", sd.ScrewdynError, "is a quantity of a link; write 'jacobian:<link>'"),
        ("contribution", sd.ScrewdynError, "write 'contribution:<link>'$"),
        ("forward_kinematics:tool:body", sd.ScrewdynError, "has no frame; write 'forward_kinematics:tool'"),
        ("mass_matrix:tool", sd.ScrewdynError, "of the whole tree"),
        ("mass_matriks", sd.ScrewdynError, "did you mean 'mass_matrix'"),
    ],
)
def test_errors_say_how(name, kind, match):
    with pytest.raises(kind, match=match):
        requested(name, LINKS)
