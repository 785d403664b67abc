"""Trees made of Pinocchio models: M, C, g and the poses of frames, entry by entry."""

import numpy as np
import pinocchio as pin
import pytest
from engine import robot_file
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn import KinematicTree, ModelError, ScrewdynWarning

pytestmark = pytest.mark.oracle

A = np.array([0.6, 0.0, 0.8])
SKEW = pin.SE3(pin.Quaternion(np.array([0.5, 0.5, -0.1, 0.7])).normalized().matrix(), np.array([0.1, -0.2, 0.3]))


def composite(*joints):
    model = pin.JointModelComposite()
    for joint in joints:
        model.addJoint(joint, SKEW)
    return model


JOINTS = {
    "RX": pin.JointModelRX(),
    "RZ": pin.JointModelRZ(),
    "RU": pin.JointModelRevoluteUnaligned(A),
    "RUBY": pin.JointModelRUBY(),
    "PY": pin.JointModelPY(),
    "PU": pin.JointModelPrismaticUnaligned(A),
    "HX": pin.JointModelHX(0.3),
    "HU": pin.JointModelHelicalUnaligned(A, -0.2),
    "Spherical": pin.JointModelSpherical(),
    "ZYX": pin.JointModelSphericalZYX(),
    "Planar": pin.JointModelPlanar(),
    "FreeFlyer": pin.JointModelFreeFlyer(),
    "Translation": pin.JointModelTranslation(),
    "Universal": pin.JointModelUniversal(np.array([1.0, 0, 0]), np.array([0, 1.0, 0])),
    "Composite": composite(pin.JointModelRX(), pin.JointModelPY(), pin.JointModelRZ()),
}

GROUPS = {"JointModelSpherical", "JointModelFreeFlyer", "JointModelPlanar"}
MOVING_SCREWS = {"JointModelSphericalZYX", "JointModelUniversal", "JointModelComposite"}


def body(rng):
    return pin.Inertia(rng.uniform(1, 2), rng.uniform(-0.2, 0.2, 3), 0.1 * np.diag(rng.uniform(1, 1.4, 3)))


def placement(rng):
    return pin.SE3(pin.Quaternion(rng.normal(size=4)).normalized().matrix(), rng.uniform(-0.3, 0.3, 3))


def model_with(rng, kinds):
    """A branched model; every link has a body, and some have a frame."""
    model = pin.Model()
    model.gravity.linear = np.array([0.5, -1.0, -9.0])
    model.appendBodyToJoint(0, body(rng), placement(rng))
    i = 0
    for kind in kinds:
        parent = int(
            rng.choice(list(model.supports[i]))
        )  # Pinocchio requires the joints of a subtree to be consecutive
        i = model.addJoint(parent, JOINTS[kind], placement(rng), kind)
        model.appendBodyToJoint(i, body(rng), placement(rng))
        model.addFrame(pin.Frame(f"tool of {kind}", i, placement(rng), pin.FrameType.OP_FRAME))
    own = [i for i in range(1, model.njoints) if model.joints[i].shortname() not in GROUPS]
    for i in own:
        there = model.joints[i]
        model.armature[there.idx_v : there.idx_v + there.nv] = rng.uniform(0, 2)
    return model


def mapped(model, tree, q):
    """Pinocchio's position, and the indices of its velocities in the order of the tree's freedoms."""
    theirs, order, at = np.empty(model.nq), [], 0
    for name in tree.joints:
        joint = tree.joint(name)
        if not joint.nv:
            continue
        there = model.joints[model.getJointId(name)]
        x = q[at : at + joint.nq]
        at += joint.nq
        own = list(range(joint.nv))
        if joint.kind == "free":
            x, own = [*x[4:], *x[:4]], [3, 4, 5, 0, 1, 2]
        elif joint.kind == "planar":
            x, own = [x[1], x[2], np.cos(x[0]), np.sin(x[0])], [2, 0, 1]
        elif there.nq == 2 and joint.nv == 1:
            x = [np.cos(x[0]), np.sin(x[0])]
        theirs[there.idx_q : there.idx_q + there.nq] = x
        order += [there.idx_v + k for k in own]
    assert sorted(order) == list(range(model.nv))
    return theirs, order


def compare(model, tree, states=4):
    data, rng = model.createData(), np.random.default_rng(5)
    for _ in range(states):
        q, v = tree.random_configuration(rng), rng.uniform(-1, 1, tree.nv)
        p, order = mapped(model, tree, q)
        u = np.empty(model.nv)
        u[order] = v
        block = np.ix_(order, order)
        M = pin.crba(model, data, p, pin.Convention.WORLD)[block]
        size = np.abs(M).max()
        assert_allclose(tree.mass_matrix(q), M, rtol=1e-9, atol=1e-12 * size)
        C, bias = tree.coriolis_matrix(q, v), pin.nonLinearEffects(model, data, p, u)[order]
        assert_allclose(C @ v + tree.gravity_vector(q), bias, rtol=1e-9, atol=1e-11 * size)
        # Pinocchio's C leaves out the rates of screws that depend on the configuration.
        if not {model.joints[i].shortname() for i in range(1, model.njoints)} & MOVING_SCREWS:
            theirs = pin.computeCoriolisMatrix(model, data, p, u)[block]
            assert_allclose(C, theirs, rtol=1e-9, atol=1e-11 * size)
        g = pin.computeGeneralizedGravity(model, data, p)[order]
        assert_allclose(tree.gravity_vector(q), g, rtol=1e-9, atol=1e-11 * size)
        pin.framesForwardKinematics(model, data, p)
        for k, frame in enumerate(model.frames):
            if frame.name in tree.links:
                pose = tree.forward_kinematics(frame.name, q)
                assert_allclose(pose, data.oMf[k].homogeneous, rtol=0, atol=1e-12 * (1 + np.abs(q).max()))


@pytest.mark.parametrize("kind", JOINTS)
def test_each_joint(kind):
    model = model_with(np.random.default_rng(1), [kind])
    tree = KinematicTree.from_pinocchio(model, strict=True)
    assert (tree.joints[0], tree.nv) == (kind, model.nv)
    compare(model, tree)


@pytest.mark.parametrize("seed", range(4))
def test_all_joints_together(seed):
    rng = np.random.default_rng(seed)
    model = model_with(rng, rng.permutation(list(JOINTS)))
    tree = KinematicTree.from_pinocchio(model)
    assert_allclose(tree.gravity, model.gravity.linear)
    compare(model, tree)


@pytest.mark.parametrize("file", ["ur5_robot.urdf", "talos_reduced.urdf", "panda.urdf"])
def test_public_robots(file):
    model = pin.buildModelFromUrdf(robot_file(file), pin.JointModelFreeFlyer())
    tree = KinematicTree.from_pinocchio(model)
    compare(model, tree, states=2)
    assert set(tree.links) >= {frame.name for frame in model.frames if frame.type == pin.FrameType.BODY}
    assert tree.joint("root_joint").passive


def with_follower(kind, scaling):
    """A model in which a joint follows another one of its kind, on the same path."""
    rng = np.random.default_rng(3)
    model = model_with(rng, [kind, "RZ"])
    follower = pin.JointModelMimic(model.joints[1], scaling, 0.3)
    model.appendBodyToJoint(model.addJoint(2, follower, placement(rng), "follower"), body(rng), placement(rng))
    return model


@pytest.mark.parametrize("kind", ["RX", "RU", "RUBY", "PY", "PU"])
def test_mimic_joints(kind):
    model = with_follower(kind, -1.7)
    tree = KinematicTree.from_pinocchio(model, strict=True)
    assert (tree.coordinates, tree.joint("follower").mimic) == ((kind, "RZ"), sd.Mimic(kind, -1.7, 0.3))
    data, rng = model.createData(), np.random.default_rng(4)
    for q, qd, qdd in rng.uniform(-1, 1, (4, 3, 2)):
        theirs = [np.cos(q[0]), np.sin(q[0]), q[1]] if kind == "RUBY" else q
        tau = pin.rnea(model, data, np.array(theirs), qd, qdd)  # with the armature
        assert_allclose(tree.inverse_dynamics(q, qd, qdd), tau, rtol=1e-9, atol=1e-9)
        pin.forwardKinematics(model, data, np.array(theirs))
        found = data.oMi[model.getJointId("follower")].homogeneous
        assert_allclose(tree.forward_kinematics("follower", q), found, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("kind", "scaling"), [("RX", 0.0), ("HX", 2.0)])
def test_mimic_joints_that_are_not_read_are_named(kind, scaling):
    """Pinocchio's screw of a mimic joint that follows a helical one lacks the pitch."""
    with pytest.raises(ModelError, match=f"joint 'follower' mimics '{kind}' with the scaling {scaling:g}; supported"):
        KinematicTree.from_pinocchio(with_follower(kind, scaling))


def test_limits_and_friction():
    model = model_with(np.random.default_rng(1), ["RX", "RUBY", "Spherical", "PY"])
    model.lowerPositionLimit[0], model.upperPositionLimit[0] = -1.0, 2.0
    model.damping = 0.1 * np.array([1, 2, 3, 3, 3, 4])
    model.effortLimit = np.array([7.0, np.inf, 1, 1, 1, 2])
    tree = KinematicTree.from_pinocchio(model, strict=True)
    assert (tree.joint("RX").limits, tree.joint("RX").effort) == ((-1.0, 2.0), 7.0)
    assert (tree.joint("RUBY").limits, tree.joint("PY").limits, tree.joint("RUBY").effort) == (None, None, None)
    assert [tree.joint(name).damping for name in ("RX", "RUBY", "Spherical", "PY")] == pytest.approx(
        [0.1, 0.2, 0.3, 0.4]
    )


def test_what_is_not_read_is_listed():
    model = model_with(np.random.default_rng(1), ["RX", "Universal", "Spherical"])
    model.armature = np.array([0.1, 0.2, 0.2, 0.0, 0.1, 0.2])
    with pytest.warns(ScrewdynWarning, match="armature of joint 'Spherical', a JointModelSpherical") as caught:
        KinematicTree.from_pinocchio(model)
    assert "'RX'" not in str(caught[0].message)
    model.armature[1] = 0.1
    model.damping = np.array([0.1, 0.2, 0.3, 0.0, 0.0, 0.0])
    model.addJoint(0, composite(pin.JointModelSpherical(), pin.JointModelRX()), SKEW, "ball and hinge")
    with pytest.raises(ModelError) as caught:
        KinematicTree.from_pinocchio(model)
    for words in (
        "'Universal' has damping that differs",
        "'Universal' has armature that differs",
        "'ball and hinge' is a JointModelComposite",
    ):
        assert words in str(caught.value)
    with pytest.raises(ModelError, match=r"must be a pinocchio\.Model; got KinematicTree"):
        KinematicTree.from_pinocchio(sd.robots.two_link())
