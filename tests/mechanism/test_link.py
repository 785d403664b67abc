"""Links: a name and an optional inertia."""

import pytest

from screwdyn import Inertia, InertiaError, Link, TopologyError


def test_a_link_has_a_name_and_may_be_massless():
    body = Inertia.sphere(1, 0.1)
    assert Link("a", body).inertia is body
    assert Link("tool0").inertia is None


def test_a_link_cannot_be_changed():
    with pytest.raises(AttributeError):
        Link("a").name = "b"


@pytest.mark.parametrize("name", ["", None, 3, b"a"])
def test_a_link_needs_a_name(name):
    with pytest.raises(TopologyError, match="non-blank string"):
        Link(name)


@pytest.mark.parametrize("inertia", [1.0, "heavy", (1, (0, 0, 0), 0)])
def test_mass_properties_must_be_an_inertia(inertia):
    with pytest.raises(InertiaError, match=r"link 'a': inertia must be a screwdyn\.Inertia or None"):
        Link("a", inertia)
