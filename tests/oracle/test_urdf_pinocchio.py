"""URDF read by both libraries: floating bases, floating and planar joints, entry by entry against Pinocchio."""

from xml.etree import ElementTree

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from engine import robot_file
from numpy.testing import assert_allclose

from screwdyn import KinematicTree, helical, padded_sum, robots
from screwdyn.testing import random_tree

pytestmark = pytest.mark.oracle

# Indices of a joint's freedoms and positions in Pinocchio's order.
FREEDOMS = {"free": [3, 4, 5, 0, 1, 2], "planar": [2, 0, 1], "revolute": [0], "prismatic": [0]}


def test_links_without_inertia_have_no_mass_in_other_readers():
    arm = robots.ur5()  # some readers take a link without <inertial> as 1 kg
    root = ElementTree.fromstring(arm.to_urdf())
    links = {link.get("name"): link for link in root.iter("link")}
    masses = {name: link.find("inertial/mass") for name, link in links.items()}
    assert [name for name, mass in masses.items() if mass is None] == [arm.base]
    massless = [name for name in arm.links[1:] if arm.link(name).inertia is None]
    assert massless and all(float(masses[name].get("value")) == 0 for name in massless)
    for name in massless:
        links[name].remove(links[name].find("inertial"))
    without = ElementTree.tostring(root, encoding="unicode")
    for read in (pin.buildModelFromXML, lambda text: KinematicTree.from_urdf(text).to_json()):
        assert read(arm.to_urdf()) == read(without)
    model = mujoco.MjModel.from_xml_string(arm.to_urdf())
    assert_allclose(sum(model.body_mass), arm.mass - arm.link("base_link").inertia.mass, rtol=1e-12)


def test_a_loop_is_an_element_that_other_readers_ignore():
    tree = KinematicTree()
    for side in ("left/", "right/"):
        tree.attach(robots.ur5(), to="base", name="foot", prefix=side)
    cut = tree.copy()
    tree.close("left/tool0", to="right/tool0", joint=helical("x", 0.1, (0, 1, 0)), name="screw")
    assert tree.to_urdf() != cut.to_urdf()
    assert pin.buildModelFromXML(tree.to_urdf()) == pin.buildModelFromXML(cut.to_urdf())
    one, other = (mujoco.MjModel.from_xml_string(x.to_urdf()) for x in (tree, cut))
    assert (one.nbody, one.nv, one.neq) == (other.nbody, other.nv, 0)


class Reading:
    """A URDF text as Pinocchio reads it, over the coordinates of a tree."""

    def __init__(self, tree, model):
        self.model, self.data = model, model.createData()
        self.joints = []
        for name in tree.joints:
            joint = tree.joint(name)
            if joint.nv:
                there = model.getJointId(name if model.existJointName(name) else "root_joint")
                self.joints.append((joint, model.joints[there]))
        self.order = [theirs.idx_v + k for ours, theirs in self.joints for k in FREEDOMS[ours.kind]]
        assert sorted(self.order) == list(range(model.nv))

    def position(self, q):
        theirs, at = np.empty(self.model.nq), 0
        for ours, other in self.joints:
            x = q[at : at + ours.nq]
            at += ours.nq
            if ours.kind == "free":
                x = [*x[4:], *x[:4]]
            elif ours.kind == "planar":
                x = [x[1], x[2], np.cos(x[0]), np.sin(x[0])]
            elif other.nq == 2:  # a continuous joint
                x = [np.cos(x[0]), np.sin(x[0])]
            theirs[other.idx_q : other.idx_q + other.nq] = x
        return theirs

    def velocity(self, v):
        theirs = np.empty(self.model.nv)
        theirs[self.order] = v
        return theirs

    def terms(self, q, qd):
        """M, C and g."""
        q, qd = self.position(q), self.velocity(qd)
        M = pin.crba(self.model, self.data, q, pin.Convention.WORLD)
        C = pin.computeCoriolisMatrix(self.model, self.data, q, qd)
        g = pin.computeGeneralizedGravity(self.model, self.data, q)
        ours = np.ix_(self.order, self.order)
        return M[ours], C[ours], g[self.order]


def compare(tree, model, states=10):
    """M, C, g of both, and of the sum of all links' contributions; 1e-9 relative in every entry."""
    engine = Reading(tree, model)
    rng = np.random.default_rng(7)
    for _ in range(states):
        q, qd = tree.random_configuration(rng), rng.uniform(-2, 2, tree.nv)
        parts = tree.contributions(q, qd)
        M, C, g = (padded_sum(getattr(part, name) for part in parts).matrix(tree.coordinates) for name in "MCg")
        for (expected, scale), results in zip(
            zip(engine.terms(q, qd), scales(tree, engine, q, qd), strict=True),
            ((tree.mass_matrix(q), M), (tree.coriolis_matrix(q, qd), C), (tree.gravity_vector(q), g)),
            strict=True,
        ):
            for result in results:
                assert_allclose(result, expected, rtol=1e-9, atol=1e-13 * max(scale, 1))


def scales(tree, engine, q, qd):
    """Largest term of a sum in M, C and g, to which the error of entries that cancel is relative."""
    M = np.abs(engine.terms(q, qd)[0]).max()
    return M, M * np.abs(qd).sum(), 10 * tree.mass


INERTIA = '<inertia ixx="0.11" ixy="0.01" ixz="-0.02" iyy="0.2" iyz="0.03" izz="0.25"/>'


def link(name, mass=1.5):
    body = f'<inertial><origin xyz="0.1 -0.2 0.3" rpy="0.4 0.5 -0.6"/><mass value="{mass}"/>{INERTIA}</inertial>'
    return f'<link name="{name}">{body}</link>'


def joint(name, kind, parent, child, inside='<origin xyz="0.3 -0.1 0.2" rpy="0.7 -0.3 1.1"/>'):
    limit = '<limit lower="-1" upper="1" effort="1" velocity="1"/>' if kind in ("revolute", "prismatic") else ""
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}">{ends}{inside}{limit}</joint>'


def robot(*parts):
    return "\n".join(['<robot name="r">', *parts, "</robot>"])


TURNED = '<origin xyz="0.3 -0.1 0.2" rpy="0.7 -0.3 1.1"/><axis xyz="0.6 0 0.8"/>'
MIXED = robot(
    link("torso", 9.0),
    link("ball", 2.0),
    link("puck", 3.0),
    link("arm"),
    link("hand", 0.7),
    joint("throw", "floating", "arm", "ball"),
    joint("slide", "planar", "torso", "puck", '<origin xyz="0.3 -0.1 0.2" rpy="0.7 -0.3 1.1"/><axis xyz="0 0 1"/>'),
    joint("shoulder", "revolute", "torso", "arm", TURNED),
    joint("reach", "prismatic", "puck", "hand", TURNED),
)


@pytest.mark.parametrize("floating", [False, True])
def test_floating_and_planar_joints(floating):
    tree = KinematicTree.from_urdf(MIXED, floating_base=floating)
    model = pin.buildModelFromXML(MIXED, pin.JointModelFreeFlyer()) if floating else pin.buildModelFromXML(MIXED)
    assert (tree.nq, tree.nv) == ((7 if floating else 0) + 12, (6 if floating else 0) + 11)
    compare(tree, model)


def test_the_axis_of_a_planar_joint_is_the_normal_of_the_plane():
    text = robot(link("floor"), link("puck"), joint("slide", "planar", "floor", "puck", '<axis xyz="1 0 0"/>'))
    tree = KinematicTree.from_urdf(text)
    axes = tree.joint("slide").chart.axes
    assert_allclose(axes[:, 2], [1, 0, 0])
    # Pinocchio ignores the axis and uses z as the plane's normal: its frames have the joint's own axes.
    model = pin.Model()
    number = model.addJoint(0, pin.JointModelPlanar(), pin.SE3(axes, np.zeros(3)), "slide")
    body = tree.link("puck").inertia
    model.appendBodyToJoint(number, pin.Inertia(body.mass, body.com, body.tensor), pin.SE3(axes, np.zeros(3)).inverse())
    compare(tree, model)


@pytest.mark.parametrize(
    ("file", "nv"), [("solo12.urdf", 18), ("ur5_robot.urdf", 12), ("talos_reduced.urdf", 38), ("icub.urdf", 38)]
)
@pytest.mark.filterwarnings("ignore::screwdyn.ScrewdynWarning")
def test_real_robots_on_a_floating_base(file, nv):
    path = robot_file(file)
    tree = KinematicTree.from_urdf(path, floating_base=True)
    assert tree.nv == nv
    assert tree.coordinates[:6] == tuple(f"base[{x}]" for x in ("wx", "wy", "wz", "vx", "vy", "vz"))
    compare(tree, pin.buildModelFromUrdf(path, pin.JointModelFreeFlyer()), states=3)


@pytest.mark.filterwarnings("ignore::screwdyn.ScrewdynWarning")
@pytest.mark.parametrize("seed", range(6))
def test_urdf_that_was_written_here(seed):
    rng = np.random.default_rng(seed)
    text = random_tree(rng, 6, ("revolute", "prismatic", "cylindrical", "universal", "fixed")).to_urdf()
    compare(KinematicTree.from_urdf(text), pin.buildModelFromXML(text), states=3)
