"""States: labelled numbers of their own, checked once."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import screwdyn as sd
from screwdyn.simulation.state import State, check_state


@pytest.fixture
def arm():
    return sd.robots.pelican()


def test_numbers_go_by_name(arm):
    state = sd.State(arm, [0.1, 0.2], [0.3, 0.4])
    assert state.coordinates == ("shoulder", "elbow")
    assert (state["shoulder"], state["elbow"]) == (0.1, 0.2)
    assert (state.velocity("shoulder"), state.velocity("elbow")) == (0.3, 0.4)
    assert repr(state) == "State(shoulder=0.1 (0.3/s), elbow=0.2 (0.4/s))"
    assert state.tree is arm


def test_the_default_is_rest_at_zero(arm):
    state = sd.State(arm)
    assert_array_equal(state.q, [0, 0])
    assert_array_equal(state.qd, [0, 0])
    assert state.q.dtype == state.qd.dtype == float


@pytest.mark.parametrize("q", [[1, 2], (1, 2), np.array([1, 2]), np.array([1, 2], dtype=np.float32)])
def test_any_two_numbers_will_do(arm, q):
    assert_array_equal(sd.State(arm, q).q, [1.0, 2.0])


def test_arrays_are_copied(arm):
    q, qd = np.array([0.1, 0.2]), np.array([0.3, 0.4])
    states = [sd.State(arm, q, qd), State.unchecked(arm, arm.coordinates, q, qd)]
    q[0] = qd[0] = 9
    for state in states:
        assert_array_equal(state.q, [0.1, 0.2])
        assert_array_equal(state.qd, [0.3, 0.4])


def test_a_tree_without_coordinates_has_a_state():
    state = sd.State(sd.KinematicTree())
    assert state.q.shape == state.qd.shape == (0,)
    assert state.coordinates == ()
    assert repr(state) == "State()"


@pytest.mark.parametrize("q", [0.1, [0.1], [0.1, 0.2, 0.3], [[0.1, 0.2]], np.zeros((3, 2)), "ab", [1j, 0], [[], []]])
@pytest.mark.parametrize("which", ["q", "qd"])
def test_wrong_shapes_are_refused(arm, q, which):
    with pytest.raises(sd.ShapeError):
        sd.State(arm, **{which: q})


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("which", ["q", "qd"])
def test_numbers_that_are_not_finite_are_refused_by_name(arm, bad, which):
    with pytest.raises(sd.ShapeError, match=f"{which} is .* at 'elbow'"):
        sd.State(arm, **{which: [0.0, bad]})


def test_unknown_coordinates_list_the_near_ones(arm):
    state = sd.State(arm)
    with pytest.raises(sd.UnknownLinkError, match="no coordinate 'elbw'; did you mean 'elbow'"):
        state["elbw"]
    with pytest.raises(sd.UnknownLinkError, match="no coordinate 'wrist'"):
        state.velocity("wrist")


def test_part_keeps_what_the_other_tree_has(arm):
    state = sd.State(arm, [0.1, 0.2], [0.3, 0.4])
    forearm = arm.detach("link2")
    assert repr(state.part(arm)) == "State(shoulder=0.1 (0.3/s))"
    assert state.part(arm).tree is arm
    # The forearm is the base of what was taken off: its own joint went with the attachment.
    assert state.part(forearm).coordinates == ()


def test_a_state_outlives_a_change_that_leaves_its_coordinates(arm):
    state = sd.State(arm, [0.1, 0.2])
    arm.attach(sd.Inertia.point(1.0), to="link2")
    check_state(state, arm)


def test_a_state_of_other_coordinates_is_stale(arm):
    state = sd.State(arm)
    arm.attach(sd.Inertia.point(1.0, (0.1, 0, 0)), to="link2", joint=sd.revolute(), name="hook")
    with pytest.raises(sd.StaleHandleError, match=r"over \(shoulder, elbow\), but the tree now has .*, hook\)"):
        check_state(state, arm)


@pytest.mark.parametrize("thing", [None, [0, 0], np.zeros(2), "state"])
def test_only_a_state_is_a_state(arm, thing):
    with pytest.raises(sd.ShapeError, match="must be a State"):
        check_state(thing, arm)


@pytest.mark.parametrize("thing", [None, 3, "arm"])
def test_a_state_is_of_a_tree(thing):
    with pytest.raises(sd.ScrewdynError, match="is of a KinematicTree; got"):
        sd.State(thing)
