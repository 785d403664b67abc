"""Shapes of public robots are where Pinocchio's GeometryModel has them, with the same sizes, files and colours."""

from pathlib import Path

import coal
import numpy as np
import pinocchio as pin
import pytest
from engine import robot_file
from numpy.testing import assert_allclose

from screwdyn import KinematicTree, ModelError, Shape

pytestmark = pytest.mark.oracle

USES = {"visual": pin.GeometryType.VISUAL, "collision": pin.GeometryType.COLLISION}


def size(geometry):
    """Kind and sizes of a geometry of Pinocchio; those of a mesh are its scale, which is not here."""
    kind = type(geometry).__name__.lower()
    sizes = {
        "box": lambda: 2 * geometry.halfSide,
        "cylinder": lambda: (geometry.radius, 2 * geometry.halfLength),
        "sphere": lambda: (geometry.radius,),
    }
    return (kind, tuple(sizes[kind]())) if kind in sizes else ("mesh", None)


def position(tree, q, name):
    """Of a joint of one freedom, which may follow another one."""
    mimic = tree.joint(name).mimic
    if mimic is None:
        return q[tree.coordinates.index(name)]
    return mimic.ratio * position(tree, q, mimic.joint) + mimic.offset


def check(tree, q, there, data, use):
    """The shapes of a tree, whose links have the names of Pinocchio's bodies, are those of a geometry model."""
    found = {}
    for link in tree.links:
        T = tree.forward_kinematics(link, q)
        named = (shape for shape in tree.shapes(link) if shape.use == use)
        found |= {f"{link}_{k}": (shape, T @ shape.pose) for k, shape in enumerate(named)}
    assert {body.name for body in there.geometryObjects} == found.keys()
    for body, placement in zip(there.geometryObjects, data.oMg, strict=True):
        shape, T = found[body.name]
        assert_allclose(T, placement.homogeneous, rtol=0, atol=1e-12)
        named, sizes = size(body.geometry)
        assert shape.kind == named
        assert_allclose(shape.size, body.meshScale if sizes is None else sizes, rtol=1e-12)
        if shape.kind == "mesh":
            assert Path(shape.path).samefile(body.meshPath)
        if shape.color is not None:
            assert_allclose(body.meshColor, shape.color, atol=1e-12)


@pytest.mark.parametrize("file", ["ur5_robot.urdf", "panda.urdf", "talos_full_v2.urdf"])
def test_shapes_are_where_pinocchio_has_them(file):
    path = robot_file(file)
    tree = KinematicTree.from_urdf(path)  # no mesh is missing
    model = pin.buildModelFromUrdf(path)
    ours = np.random.default_rng(1).uniform(-1, 1, tree.nv)
    q = np.array([position(tree, ours, name) for name in model.names[1:]])
    (share,) = (str(folder) for folder in Path(path).parents if folder.name == "share")
    geometry = {use: pin.buildGeomFromUrdf(model, path, kind, package_dirs=[share]) for use, kind in USES.items()}
    twin = KinematicTree.from_pinocchio(model, **geometry)
    for use, there in geometry.items():
        data = there.createData()
        pin.updateGeometryPlacements(model, model.createData(), there, data, q)
        check(tree, ours, there, data, use)
        check(twin, q, there, data, use)
    for link in set(tree.links) & set(twin.links):
        assert [x.color is None for x in twin.shapes(link)] == [x.color is None for x in tree.shapes(link)]


def test_bodies_of_joints_without_a_frame():
    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelRX(), pin.SE3.Random(), "j")
    place, there = pin.SE3.Random(), pin.GeometryModel()
    for name, body in {"capsule": coal.Capsule(0.1, 0.4), "cone": coal.Cone(0.1, 0.2)}.items():
        there.addGeometryObject(pin.GeometryObject(name, joint, place, body))
    (shape,) = KinematicTree.from_pinocchio(model, collision=there).shapes("j")
    assert shape == Shape.capsule(0.1, 0.4, pose=place.homogeneous, use="collision")
    with pytest.raises(ModelError, match=r"visual= must be a pinocchio.GeometryModel; got Model"):
        KinematicTree.from_pinocchio(model, visual=model)
