"""Robots of the benchmarks, in screwdyn and in Pinocchio."""

import importlib.metadata
import re
import warnings
from pathlib import Path

import numpy as np
import pinocchio as pin

import screwdyn as sd

ROBOTS = {"UR5": "ur5_robot.urdf", "Panda": "panda.urdf", "Talos": "talos_reduced.urdf"}
# Robots with joints of several freedoms: two with a free base, and a chain of ball joints.
GROUPED = {"Solo 12, free": "solo12.urdf", "Talos, free": "talos_reduced.urdf", "ten balls": ""}


def robot_file(name: str) -> Path:
    """URDF file of a robot in example-robot-data, which has no importable module."""
    file = (ROBOTS | GROUPED)[name]
    files = importlib.metadata.files("example-robot-data") or []
    return Path(str(next(f.locate() for f in files if f.name == file)))


def read(name: str) -> sd.KinematicTree:
    """A robot on a fixed or free base, without the warnings about its file."""
    if name == "ten balls":
        return balls(10)[0]
    # Pinocchio ignores <mimic> by default: the Panda has two independent fingers.
    text = re.sub(r"<mimic\b[^>]*/>", "", robot_file(name).read_text(encoding="utf-8"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sd.ScrewdynWarning)
        return sd.KinematicTree.from_urdf(text, floating_base=name in GROUPED)


def balls(n: int) -> tuple[sd.KinematicTree, pin.Model]:
    """A chain of n boxes on ball joints."""
    size, com, length = (0.1, 0.15, 0.3), np.array([0.0, 0.02, -0.15]), np.array([0.0, 0.0, -0.3])
    tree, model, body = sd.KinematicTree(), pin.Model(), sd.Inertia.box(1.0, size, com=com)
    theirs = pin.Inertia(body.mass, body.com, body.tensor)
    for k in range(n):
        at = length if k else np.zeros(3)
        tree.attach(sd.Link(f"box{k}", body), to=tree.links[-1], joint=sd.spherical(name=f"ball{k}"), at=at)
        joint = model.addJoint(k, pin.JointModelSpherical(), pin.SE3(np.eye(3), at), f"ball{k}")
        model.appendBodyToJoint(joint, theirs, pin.SE3.Identity())
        model.addFrame(pin.Frame(f"box{k}", joint, pin.SE3.Identity(), pin.FrameType.BODY))
    return tree, model


class Pair:
    """One robot in screwdyn and in Pinocchio.

    Attributes
    ----------
    tree, model, data
    order : list of int
        Index in screwdyn of each of Pinocchio's freedoms.
    """

    def __init__(self, name: str) -> None:
        if name == "ten balls":
            self.tree, self.model = balls(10)
        else:
            path, root = str(robot_file(name)), [pin.JointModelFreeFlyer()] if name in GROUPED else []
            self.tree, self.model = read(name), pin.buildModelFromUrdf(path, *root)
        self.data = self.model.createData()
        self.balls = name == "ten balls"
        self.free = name in GROUPED and not self.balls
        if self.balls:
            self.order = list(range(self.tree.nv))
        else:
            first = 2 if self.free else 1
            self.order = [3, 4, 5, 0, 1, 2] if self.free else []
            self.order += [self.tree.coordinates.index(joint) for joint in list(self.model.names)[first:]]

    def position(self, q: np.ndarray) -> np.ndarray:
        """Positions, (..., nq), in the order of Pinocchio, which has the position of a free base first."""
        if self.balls:
            return q
        if not self.free:
            return np.ascontiguousarray(q[..., self.order])
        joints = [i + 1 for i in self.order[6:]]
        return np.ascontiguousarray(q[..., [4, 5, 6, 0, 1, 2, 3, *joints]])

    def states(self, rng: np.random.Generator, count: int | None = None) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """One random state (q, v, a) or many, in the order of screwdyn and in that of Pinocchio."""
        shape = () if count is None else (count,)
        q = [self.tree.random_configuration(rng) for _ in range(count or 1)]
        ours = [q[0] if count is None else np.array(q), *rng.uniform(-1.0, 1.0, (2, *shape, self.tree.nv))]
        theirs = [self.position(ours[0]), *(np.ascontiguousarray(x[..., self.order]) for x in ours[1:])]
        return ours, theirs
