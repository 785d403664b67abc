"""What is accepted and is probably a mistake: a warning with the reason, and none for what is unusual only."""

import warnings

import numpy as np
import pytest

import screwdyn as sd

CRATE = sd.Inertia.box(1.0, (0.1, 0.2, 0.3))


@pytest.fixture
def floating():
    tree = sd.KinematicTree()
    tree.attach(CRATE, to="base", joint=sd.free(name="body"), name="body")
    tree.attach(CRATE, to="body", joint=sd.spherical(name="hip"), at=(0, 0, 0.5), name="leg")
    return tree


@pytest.mark.parametrize("x", [90, -45.0, 9.5])
def test_degrees_where_limits_are_in_radians(x):
    with pytest.warns(
        sd.ScrewdynWarning, match=rf"'elbow_joint' is at {x:g} rad.* {x:g} degrees are {np.radians(x):.4g}"
    ):
        sd.State(sd.robots.ur5(), {"elbow_joint": x})


def test_positions_that_may_be_meant():
    """Within a turn of the limits; without limits; of a joint that slides or advances; in a state of a run."""
    arm = sd.robots.ur5()
    sd.State(arm, {"elbow_joint": 9.4})
    tree = sd.KinematicTree()
    for k, joint in enumerate(
        (sd.revolute("z"), sd.prismatic("z", limits=(0, 1)), sd.helical("x", 0.1, limits=(0, 1)))
    ):
        tree.attach(CRATE, to="base", joint=joint, name=f"link{k}")
    sd.State(tree, [900, 90, 90])
    wheel = sd.KinematicTree()
    wheel.attach(CRATE, to="base", joint=sd.revolute("z", limits=(-1, 1)), name="wheel")
    run = sd.simulate(wheel, sd.State(wheel, qd=[100]), 0.2)
    assert run.states[-1]["wheel"] == pytest.approx(20)


@pytest.mark.parametrize("joint", ["body", "hip"])
def test_a_quaternion_with_its_scalar_first(floating, joint):
    q = floating.neutral()
    k = floating.positions.index(f"{joint}[x]")
    q[k : k + 4] = 1, 0, 0, 0
    with pytest.warns(sd.ScrewdynWarning, match=f"quaternion of '{joint}' .* no rotation is \\(0, 0, 0, 1\\)"):
        sd.State(floating, q)
    q[k] = -1  # the same half turn, without a warning
    pose = floating.forward_kinematics("leg", sd.State(floating, q).q)
    assert pose[2, 2] == pytest.approx(-1)


def test_a_frequency_instead_of_a_period():
    arm = sd.robots.two_link()
    with pytest.warns(sd.ScrewdynWarning, match="500 s is longer than the run, 0.1 s.* 500 Hz is control_period=0.002"):
        sd.simulate(arm, sd.State(arm), 0.1, lambda t, state: [0, 0], control_period=500)
    sd.simulate(arm, sd.State(arm), 0.1, lambda t, state: [0, 0], control_period=0.1)


def test_a_payload_that_the_hand_cannot_be_near():
    arm, crane = sd.robots.ur5(), sd.KinematicTree()
    state = sd.State(arm)
    x, y, z = arm.forward_kinematics("tool0", state.q)[:3, 3]
    for place in ((x + 0.4, y, z), (x, y, z - 0.9)):
        arm.copy().grasp(state, CRATE, to="tool0", twist="at_rest", pose=place)
    with pytest.warns(sd.ScrewdynWarning, match=r"'lamp' is 3\.5 m from 'tool0'.* pose= in the base frame") as warned:
        arm.grasp(state, CRATE, to="tool0", twist="at_rest", pose=(x, y, z + 3.5), name="lamp")
    assert warned[0].filename == __file__
    boom = sd.Inertia.rod(1.0, 8.0, axis="x", com=(4, 0, 0))
    sd.robots.ur5().grasp(state, boom, to="tool0", twist="at_rest", pose=(x - 3.5, y, z))
    crane.attach(CRATE, to="base", joint=sd.prismatic("z"), name="hook")
    crane.grasp(sd.State(crane, [3.5]), CRATE, to="hook", twist="at_rest", pose=(0, 0, 0))
    crane.grasp(sd.State(crane), CRATE, to="base", twist="at_rest", pose=(9, 0, 0), name="on the floor")


def test_a_payload_that_is_handed_over_from_afar():
    """A link of the tree, and a payload whose place in the hand is given; a rope may be long."""
    arm = sd.robots.ur5()
    arm.attach(CRATE, to=arm.base, at=(0, 9, 0), name="crate")
    state = sd.State(arm)
    far = r"'crate' is 8\.\d+ m from 'tool0'"
    with pytest.warns(sd.ScrewdynWarning, match=far) as warned:
        arm.copy().move("crate", "tool0", state=state)
    assert warned[0].filename == __file__
    with pytest.warns(sd.ScrewdynWarning, match=far):
        arm.copy().grasp(state, "crate", to="tool0")
    with pytest.warns(sd.ScrewdynWarning, match=r"'lamp' is 5 m from 'tool0'.* at= in that of 'tool0'"):
        arm.copy().grasp(state, CRATE, to="tool0", twist="at_rest", at=(0, 0, 5), name="lamp")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rope, flight = sd.prismatic("z", passive=True), sd.free()
        arm.copy().grasp(state, CRATE, to="tool0", twist="at_rest", joint=rope, start=-8)
        arm.copy().grasp(state, CRATE, to="tool0", twist="at_rest", joint=flight, at=(0, 0, 8))
        arm.move("crate", arm.base, state=state)
