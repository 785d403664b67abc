"""Trees as MJCF: MuJoCo has the same M, bias and loops, and what MJCF cannot express is named."""

import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose
from screwdyn.testing import random_pose

import screwdyn as sd
from screwdyn import KinematicTree, ModelError, ScrewdynWarning

pytestmark = pytest.mark.oracle

JOINTS = (
    *(sd.free(passive=True, name="fly"), sd.revolute((1, 2, 2), (0.1, 0.2, 0), limits=(-1, 2), damping=0.3)),
    *(sd.prismatic("x", stiffness=3, rest=0.2, armature=0.1), sd.cylindrical((0, 1, 1), (0.1, 0, 0))),
    *(sd.spherical((0.1, 0, 0.2), friction=0.1), sd.universal("x", "y", (0, 0.1, 0)), sd.fixed()),
)


def of_all_kinds(rng):
    tree, to = KinematicTree("floor", gravity=(0.3, 0.2, -9)), "floor"
    for k, joint in enumerate(JOINTS):
        body = sd.Inertia.box(2.0, (0.2, 0.3, 0.4), com=rng.uniform(-0.2, 0.2, 3))
        home = None if joint.kind == "free" else random_pose(rng)
        to = tree.attach(body, to=to, joint=joint, at=home, name=f"link {k}").name
    return tree


def test_what_is_written_is_read_again() -> None:
    rng = np.random.default_rng(2)
    tree = of_all_kinds(rng)
    shapes = [sd.Shape.box((1, 2, 3), pose=(0, 0, 1), color=(1, 0, 0, 1)), sd.Shape.sphere(0.2, use="collision")]
    tree.set_shapes("link 1", [*shapes, sd.Shape.cylinder(0.1, 2), sd.Shape.capsule(0.1, 3)])
    tree.close("link 6", to="link 1", joint=sd.spherical((0.1, 0.2, 0.3)), at=random_pose(rng), name="ball & socket")
    tree.close("link 5", to="floor", at=random_pose(rng), name="glue")
    text = tree.to_mjcf("<all>")
    twin = KinematicTree.from_mjcf(text, strict=True)
    assert (twin.base, twin.coordinates, twin.loops) == ("world", tree.coordinates, tree.loops)
    assert {*tree.links[1:]} < {*twin.links}
    for name in tree.loops:
        one, other = tree.loop(name), twin.loop(name)
        assert (one.link, one.to.replace("floor", "world"), one.joint.kind) == (other.link, other.to, other.joint.kind)
    for one, other in zip(tree.shapes("link 1"), twin.shapes("link 1"), strict=True):
        assert (one.kind, one.use, one.color) == (other.kind, other.use, other.color)
        assert_allclose([*one.size, *one.pose.ravel()], [*other.size, *other.pose.ravel()], rtol=0, atol=1e-14)
    assert twin.joint("link 1").limits == (-1, 2)
    q, qd = tree.random_configuration(rng), rng.uniform(-1, 1, tree.nv)
    for what in ("mass_matrix", "gravity_vector", "constraint_jacobian", "gap"):
        assert_allclose(getattr(twin, what)(q), getattr(tree, what)(q), rtol=0, atol=1e-11, err_msg=what)
    for what in ("bias_force", "joint_force", "constraint_jacobian_dot"):
        assert_allclose(getattr(twin, what)(q, qd), getattr(tree, what)(q, qd), rtol=0, atol=1e-10, err_msg=what)


def test_the_written_constraints_are_those_of_mujoco() -> None:
    tree = of_all_kinds(np.random.default_rng(2))
    tree.close("link 6", to="link 1", name="glue")
    model = mujoco.MjModel.from_xml_string(tree.to_mjcf())
    assert [model.eq_type[0], model.neq, model.nu] == [mujoco.mjtEq.mjEQ_WELD, 1, 0]
    assert model.opt.gravity.tolist() == [0.3, 0.2, -9]


def test_everything_that_mjcf_cannot_express_is_listed() -> None:
    tree, body = KinematicTree(), sd.Inertia.box(1.0, (0.1, 0.1, 0.1))
    tree.attach(body, to="base", joint=sd.helical("z", 0.1), name="screw")
    tree.attach(body, to="base", joint=sd.planar(), name="puck")
    tree.attach(body, to="puck", joint=sd.free(passive=True), name="moon")
    tree.attach(body, to="base", joint=sd.revolute(mimic=sd.Mimic("screw")), name="gear")
    tree.attach(sd.Inertia.point(1.0), to="base", joint=sd.revolute(), name="bob")
    tree.attach(sd.Link("world"), to="base", name="world")
    tree.close("moon", to="puck", joint=sd.revolute(), name="pin\uffff")
    with pytest.raises(ModelError) as caught:
        tree.to_mjcf()
    words = ("'screw' has the helical", "'puck' is planar", "'moon' is not on the base", "'gear' follows 'screw'")
    words += ("'bob' and those fixed to it have no inertia", "'world' has the name", "has a revolute joint", "XML does")
    assert len(caught.value.problems) == len(words)
    for word in words:
        assert word in str(caught.value)
    with pytest.raises(ModelError, match="name of the model"):
        tree.to_mjcf("")


def test_what_is_lost_is_warned_about() -> None:
    tree, body = KinematicTree(), sd.Inertia.box(1.0, (0.1, 0.1, 0.1))
    tree.attach(body, to="base", joint=sd.revolute(passive=True, limits=(-np.inf, 1), effort=3), name="flap")
    tree.attach(body, to="base", joint=sd.revolute(), name="latch", shape=sd.Shape.mesh("a.stl"))
    tree.lock("latch", at=0.3)
    with pytest.warns(ScrewdynWarning) as caught:
        tree.to_mjcf()
    assert [w.filename for w in caught] == [__file__]
    for words in ("'flap' is passive", "limit on one side", "effort and velocity", "mesh of link 'latch'", "lock of"):
        assert words in str(caught[0].message)
