"""What a rollout refuses, and what the error says."""

import numpy as np
import pytest

from screwdyn import (
    Feedback,
    Inertia,
    InertiaError,
    JointError,
    KinematicTree,
    Link,
    Mimic,
    Rotor,
    ScrewdynError,
    ShapeError,
    SingularAttachmentError,
    State,
    TopologyError,
    UnknownNameError,
    free,
    prismatic,
    revolute,
    robots,
    simulate,
    spherical,
)
from screwdyn.backends.llvm import program as native
from screwdyn.backends.llvm.program import MEMORY, Kept
from screwdyn.testing import random_inertia

pytestmark = pytest.mark.usefixtures("compiled_when_called")

START = np.zeros((3, 6)), np.zeros((3, 6))


@pytest.fixture(scope="module")
def fast():
    return robots.ur5().compile(threads=1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"steps": 0}, "steps must be an integer >= 1; got 0"),
        ({"steps": True}, "steps must be an integer"),
        ({"steps": 2.0}, "steps must be an integer"),
        ({"every": 3}, "every must be a divisor of steps; got every=3 and steps=10"),
        ({"every": 0}, "every must be an integer"),
        ({"dt": 0.0}, "dt must be positive"),
        ({"dt": np.nan}, "dt must be a finite number"),
        ({"t0": "now"}, "t0 must be a finite number"),
        ({"method": "euler"}, "method must be one of 'semi_implicit_euler', 'rk4'; got 'euler'"),
        ({"method": ["rk4"]}, r"method must be one of 'semi_implicit_euler', 'rk4'; got \['rk4'\]"),
        ({"payload": Inertia.point(1)}, "payload must be a mapping from link to inertia"),
    ],
)
def test_options(fast, given, message):
    with pytest.raises(ScrewdynError, match=message):
        fast.rollout(*START, **{"steps": 10, "dt": 1e-3, **given})


def refused(fast, error, message, torque=None, q=START[0], **given):
    with pytest.raises(error) as caught:
        fast.rollout(q, START[1][:1] if q.ndim > 1 else START[1][0], 4, 1e-3, torque, **given)
    assert message in str(caught.value)


def test_shapes_of_torques(fast):
    refused(fast, ShapeError, "torque has shape (5,); expected (6,), (…, 6) for each run, or (4, …, 6)", np.zeros(5))
    refused(fast, ShapeError, "torque has shape (5, 3, 6)", np.zeros((5, 3, 6)))
    refused(fast, ShapeError, "torque has shape (4, 3, 1, 6)", np.zeros((4, 3, 1, 6)))
    refused(fast, ShapeError, "q and qd (3,), torque (2,)", np.zeros((2, 6)))
    refused(fast, ShapeError, "give q as (1, 6)", np.zeros((3, 6)), q=np.zeros(6))
    refused(fast, ShapeError, "torque.kd has shape (2,)", Feedback(1.0, np.zeros(2)))
    refused(fast, ShapeError, "torque returned shape (2, 6) at t = 0 s", lambda t, q, qd: np.zeros((2, 6)))
    refused(fast, ShapeError, "torque returned None", lambda t, q, qd: None)
    with pytest.raises(TypeError) as caught:
        fast.rollout(np.zeros(6), np.zeros(6), 2, 1e-3, lambda t, state: state)
    assert caught.value.__notes__ == ["in a call of torque(t, q, qd) of all runs at t = 0 s"]
    refused(fast, ShapeError, "torque must be an array of real numbers", "strong")
    refused(fast, ShapeError, "give an array, whose entries have the order of .coordinates", {"elbow_joint": 1.0})


def test_entries_that_are_not_finite(fast):
    tau = np.zeros((4, 3, 6))
    tau[2, 1, 3] = np.nan
    refused(fast, ShapeError, "torque is nan at 'wrist_1_joint' in step 2; every entry must be finite", tau)
    refused(fast, ShapeError, "torque.kp is inf at 'shoulder_pan_joint'", Feedback(np.inf, 0.0))
    refused(fast, ShapeError, "q is nan", q=np.full((3, 6), np.nan))


def test_payloads(fast):
    refused(fast, UnknownNameError, "did you mean 'tool0'?", payload={"tool": Inertia.point(1)})
    refused(fast, ShapeError, "payload['tool0'] has shape (4,); expected (…, 10)", payload={"tool0": np.zeros(4)})
    refused(
        fast, ShapeError, "payload['tool0'] has entries that are not finite", payload={"tool0": np.full(10, np.nan)}
    )
    numbers = np.array([Inertia.box(1, (0.1, 0.2, 0.3)).parameters] * 3)
    numbers[1, 4] = 2.0
    refused(fast, InertiaError, "payload['tool0'][1] is the inertia of no rigid body", payload={"tool0": numbers})
    rods = np.array([Inertia.rod(m, 1e-3, com=(5, -3, 2)).parameters for m in (1e-3, 1.0, 1e3)])  # with equality
    assert not fast.rollout(np.zeros((3, 6)), np.zeros((3, 6)), 4, 1e-3, payload={"tool0": rods}).failed.any()
    for k, value, why in ((0, -1.0, "mass -1 kg is not positive"), (9, 9.0, "principal moments break the triangle")):
        one = Inertia.box(1, (0.1, 0.2, 0.3)).parameters
        one[k] = value
        refused(fast, InertiaError, f"payload['tool0'] is the inertia of no rigid body: {why}", payload={"tool0": one})
    refused(fast, ShapeError, "payload (2,)", payload={"tool0": [Inertia.point(1)] * 2})
    two = {"tool0": [Inertia.point(1)] * 2, "forearm_link": [Inertia.point(1)] * 3}
    message = "the batch axes of the payloads cannot be broadcast together: 'tool0' (2,), "
    refused(fast, ShapeError, message + "'forearm_link' (3,)", payload=two)
    both = {"tool0": [Inertia.point(1)] * 2, "ee_link": [Inertia.point(1)] * 3}
    refused(fast, ShapeError, message + "'ee_link' (3,)", payload=both)


@pytest.mark.parametrize("link", ["drive_rotor", "drive_rotor_at_rest"])
def test_the_rotor_of_a_joint_has_no_payload(link):
    tree, box = KinematicTree(), Inertia.box(1, (0.1, 0.2, 0.3))
    tree.attach(box, "base", revolute("z", rotor=Rotor(1e-3, 9.0), name="drive"))
    with pytest.raises(TopologyError, match=f"'{link}' is the rotor of joint 'drive'"):
        tree.compile().rollout([[0.1]], [[0.2]], 10, 1e-3, payload={link: box})


def test_out(fast):
    refused(fast, ShapeError, "out[1] has shape (3, 5)", out=(np.zeros((3, 6)), np.zeros((3, 5))))
    refused(fast, ShapeError, "out must be a tuple of 2 arrays", out=np.zeros((3, 6)))


def test_joints_that_take_no_torque_or_gain():
    rng = np.random.default_rng(0)
    tree = KinematicTree()
    tree.attach(Link("hull", random_inertia(rng)), to="base", joint=free(name="root"))
    tree.attach(Link("tail", random_inertia(rng)), to="hull", joint=revolute("x", passive=True, name="hinge"))
    start, fast = (tree.neutral(), np.zeros(7)), tree.compile()
    for torque, message in (
        (np.ones(7), "torque must be 0 for 'hinge', whose joint is passive"),
        (lambda t, q, qd: np.ones(7), "the result of torque must be 0 for 'hinge'"),
        (Feedback(0.0, np.ones((1, 7))), "torque.kd must be 0 for 'hinge'"),
        (Feedback([0, 0, 0, 0, 1, 0, 0], 0.0), "torque.kp must be 0 for 'root[vy]', whose joint is spherical, free or"),
    ):
        with pytest.raises(JointError) as caught:
            fast.rollout(start[0][None], start[1], 2, 1e-3, torque)
        assert message in str(caught.value)
    with pytest.raises(ShapeError, match="or entries for the active freedoms only"):
        fast.rollout(*start, 2, 1e-3, np.ones(5))


def test_a_joint_without_inertia():
    tree = KinematicTree()
    tree.attach(Link("frame"), to="base", joint=revolute("z", name="swivel"))
    with pytest.raises(SingularAttachmentError, match="nothing beyond joint 'swivel' resists"):
        tree.compile().rollout([0.0], [0.0], 2, 1e-3)


def test_trees_that_are_too_large(monkeypatch):
    monkeypatch.setattr(native, "_steps", Kept(native._stepped, MEMORY))
    for module, name, most in (
        (native, "LARGEST_STEP", 500),
        (native, "LARGEST", 50),
    ):  # too long when planned, and already while it is traced
        monkeypatch.setattr(module, name, most)
        with pytest.raises(ScrewdynError, match=r"a step of this tree by 'rk4' has more than .* operations"):
            robots.ur5().compile().rollout(*START, 2, 1e-3, method="rk4")


def test_gains_beside_a_follower_and_a_spherical_joint():
    """Gains belong to freedoms: a follower before the spherical joint has none."""
    tree, box = KinematicTree(gravity=(0, 0, 0)), Inertia.box(1, (0.1, 0.2, 0.3), (0.05, 0.02, 0.1))
    tree.attach(box, "base", revolute("z", name="a"), name="A")
    tree.attach(box, "A", prismatic("y", name="m", mimic=Mimic("a", 0.3)), at=(0.1, 0.2, 0.3), name="C")
    tree.attach(box, "A", spherical(name="h"), at=(0.1, 0.2, 0.3), name="H")
    tree.attach(box, "A", revolute("x", name="z"), at=(0.1, 0.2, 0.3), name="Z")
    start, goal = (tree.neutral()[None], np.zeros((1, 5))), np.array([0.3, 0, 0, 0, 1, 0.2])
    fast = tree.compile()
    q = fast.rollout(*start, 500, 1e-3, Feedback([2.0, 0, 0, 0, 5.0], 0.0, q_target=goal), method="rk4").q

    def torque(t, state):
        return {"a": 2 * (0.3 - state["a"]), "z": 5 * (0.2 - state["z"])}

    run = simulate(tree, State(tree), 0.5, torque, step=0.1)
    np.testing.assert_allclose(q[0], run.q[-1], atol=1e-8)
    with pytest.raises(JointError, match=r"kp must be 0 for 'h\[wx\]'"):
        fast.rollout(*start, 5, 1e-2, Feedback([2.0, 3.0, 0, 0, 0], 0.0))
