"""What is accepted and is probably a mistake: a warning with the reason, and none for what is unusual only."""

import warnings

import numpy as np
import pytest
import sympy

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


def grasped(start, joint):
    arm = sd.robots.ur5()
    body = sd.Inertia.box(1.0, (0.1, 0.2, 0.3), com=(0, 0, 0.2))
    arm.grasp(sd.State(arm), body, to="tool0", joint=joint, start=start, twist="at_rest", name="crate")


@pytest.mark.parametrize(
    "given",
    [
        lambda: sd.robots.ur5().lock("elbow_joint", at=90),
        lambda: sd.robots.ur5().inverse_kinematics("tool0", (0.4, 0.2, 0.3), q0=[0, -90, 90, 0, 45, 0]),
        lambda: sd.robots.ur5().equilibrium([0, -90, 90, 0, 45, 0]),
        lambda: grasped(90, sd.revolute("x", limits=(-1, 1))),
        lambda: sd.revolute("z", limits=(-180, 180)),
        lambda: sd.revolute("z", limits=(0, 137.5)),
        lambda: sd.revolute("z", limits=(-112.7, 37.3)),
        lambda: sd.control.ComputedTorque(a := sd.robots.ur5(), lambda t: 3 * (np.full(6, -90.0),))(0, sd.State(a)),
    ],
    ids=["lock", "inverse_kinematics", "equilibrium", "start", "limits", "one limit", "odd limits", "reference"],
)
def test_degrees_elsewhere(given):
    with pytest.warns(sd.ScrewdynWarning, match="angles are in radians: .* degrees are") as warned:
        given()
    assert len(warned) == 1
    assert warned[0].filename == __file__


def test_degrees_of_one_run_of_a_rollout():
    pytest.importorskip("llvmlite")
    starts, tree = np.zeros((3, 1)), sd.KinematicTree()
    tree.attach(CRATE, to="base", joint=sd.revolute("z", limits=(-1, 1)), name="flap")
    starts[1] = -45
    with pytest.warns(sd.ScrewdynWarning, match="'flap' is at -45 rad"):
        tree.compile().rollout(starts, np.zeros((3, 1)), 1, 1e-3)


def test_limits_that_may_be_meant():
    for limits in (
        (-10, 10),
        (-6 * np.pi, 6 * np.pi),
        (-100, np.inf),
        (-1e4, 1e4),
        (-17.3, 14.2),
        (0, 62.83),
        (-45.2, np.inf),
    ):
        sd.revolute("z", limits=limits)
    sd.prismatic("z", limits=(-180, 180))


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


def test_a_start_with_the_scalar_first():
    with pytest.warns(sd.ScrewdynWarning, match="quaternion of 'crate' .* no rotation is") as warned:
        grasped([1, 0, 0, 0], sd.spherical(passive=True))
    assert len(warned) == 1
    grasped([0, 0, 0, 1], sd.spherical(passive=True))


def test_a_frequency_instead_of_a_period():
    arm = sd.robots.two_link()
    with pytest.warns(sd.ScrewdynWarning, match="500 s is longer than the run, 0.1 s.* 500 Hz is control_period=0.002"):
        sd.simulate(arm, sd.State(arm), 0.1, lambda t, state: [0, 0], control_period=500)
    with pytest.warns(sd.ScrewdynWarning, match="1 s is longer than the run, 0.1 s.*; choose it shorter"):
        sd.simulate(arm, sd.State(arm), 0.1, lambda t, state: [0, 0], control_period=1)
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


def test_how_far_a_payload_is():
    """The mount does not lengthen an arm; the centre of mass counts; a body that a tree is built of may be anywhere."""
    far, tower = sd.KinematicTree("world"), sd.KinematicTree()
    body = sd.Inertia.box(1.0, (0.1, 0.1, 0.1), com=(0, 0, 3.5))
    far.attach(sd.Inertia.box(9.0, (1, 1, 0.3)), to="world", joint=sd.prismatic("x", name="rail"), name="cart")
    far.attach(sd.robots.ur5(), to="cart", at=(0, 30, 0), prefix="a/")
    state, match = sd.State(far, {"rail": 10.0}), "'crate' is 3.5 m from 'a/tool0', .* less than [12][.].* m long"
    for payload, at in ((CRATE, (3.5, 0, 0)), (body, None)):
        with pytest.warns(sd.ScrewdynWarning, match=match) as warned:
            far.copy().grasp(state, payload, to="a/tool0", at=at, twist="at_rest", name="crate")
        assert len(warned) == 1
        with pytest.warns(sd.ScrewdynWarning, match=match) as warned:
            far.copy().attach(payload, to="a/tool0", at=at, name="crate")
        assert warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        far.grasp(state, body, to="a/tool0", at=(0, 0, -3.5), twist="at_rest")
        tower.attach(CRATE, to="base", name="foot")
        tower.attach(CRATE, to="foot", at=(0, 0, 40), name="top")
        tower.attach(sd.Inertia.rod(9.0, 8.0, axis="x", com=(4, 0, 0)), to="top", joint=sd.revolute("z"), name="jib")
        tower.attach(CRATE, to="jib", at=(8, 0, 0), name="load")
        sd.robots.ur5().attach(sd.Inertia.point(m := sympy.Symbol("m", positive=True), (m, 0, 0)), to="tool0")


@pytest.mark.parametrize(
    ("make", "density"),
    [
        (lambda x: sd.Inertia.box(2.0, (100 * x, 200 * x, 50 * x)), 2e-6),
        (lambda x: sd.Inertia.cylinder(2.0, 30 * x, 400 * x), 1.8e-6),
        (lambda x: sd.Inertia.sphere(0.5, 60 * x), 5.5e-7),
    ],
)
def test_sizes_in_millimetres(make, density):
    with pytest.warns(sd.ScrewdynWarning, match=rf"are {density:.2g} kg/m³, and air has 1.2: sizes are in m"):
        make(1.0)
    make(0.001)
    make(sympy.Symbol("mm", positive=True))
