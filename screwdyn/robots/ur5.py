"""The Universal Robots UR5."""

from math import pi

from screwdyn.io.rpy import rotation_from_rpy
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.joint import fixed, revolute
from screwdyn.mechanism.link import Link
from screwdyn.screws.screw import pose
from screwdyn.tree import KinematicTree

__all__ = ["ur5"]

_QUARTER = 1.57079632679  # pi/2 with the digits of the file; math.pi / 2 would change the poses by 1e-11

# Link, mass, position of the com along the link's z, moments of inertia about the com (Ixx = Iyy, Izz).
_BODIES = {
    "base_link": (4.0, 0.0, 0.00443333156, 0.0072),
    "shoulder_link": (3.7, 0.0, 0.010267495893, 0.00666),
    "upper_arm_link": (8.393, 0.28, 0.22689067591, 0.0151074),
    "forearm_link": (2.275, 0.25, 0.049443313556, 0.004095),
    "wrist_1_link": (1.219, 0.0, 0.111172755531, 0.21942),
    "wrist_2_link": (1.219, 0.0, 0.111172755531, 0.21942),
    "wrist_3_link": (0.1879, 0.0, 0.0171364731454, 0.033822),
}

# Joint, parent, child, origin of the child's frame, its roll-pitch-yaw, axis, largest angle in either direction.
_JOINTS = (
    ("shoulder_pan_joint", "base_link", "shoulder_link", (0.0, 0.0, 0.089159), (0.0, 0.0, 0.0), "z", 2 * pi),
    (
        "shoulder_lift_joint",
        "shoulder_link",
        "upper_arm_link",
        (0.0, 0.13585, 0.0),
        (0.0, _QUARTER, 0.0),
        "y",
        2 * pi,
    ),
    ("elbow_joint", "upper_arm_link", "forearm_link", (0.0, -0.1197, 0.425), (0.0, 0.0, 0.0), "y", pi),
    ("wrist_1_joint", "forearm_link", "wrist_1_link", (0.0, 0.0, 0.39225), (0.0, _QUARTER, 0.0), "y", 2 * pi),
    ("wrist_2_joint", "wrist_1_link", "wrist_2_link", (0.0, 0.093, 0.0), (0.0, 0.0, 0.0), "z", 2 * pi),
    ("wrist_3_joint", "wrist_2_link", "wrist_3_link", (0.0, 0.0, 0.09465), (0.0, 0.0, 0.0), "y", 2 * pi),
)

# Joint, parent, massless frame, its origin and roll-pitch-yaw.
_FRAMES = (
    ("ee_fixed_joint", "wrist_3_link", "ee_link", (0.0, 0.0823, 0.0), (0.0, 0.0, _QUARTER)),
    ("wrist_3_link-tool0_fixed_joint", "wrist_3_link", "tool0", (0.0, 0.0823, 0.0), (-_QUARTER, 0.0, 0.0)),
    ("base_link-base_fixed_joint", "base_link", "base", (0.0, 0.0, 0.0), (0.0, 0.0, -3.14159265359)),
)


def ur5() -> KinematicTree:
    """UR5 arm with the frames of its public ROS description.

    The tree's base is "world", and "base_link" is welded to it; z points up and gravity is 9.81 m/s² downwards.
    At zero angles the arm is stretched horizontally along x. The massless frames "ee_link" and "tool0" (z along
    the last axis, out of the flange) are 82.3 mm beyond "wrist_3_link"; "base" is the controller's base
    frame.

    Returns
    -------
    KinematicTree
        Coordinates "shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint", "wrist_1_joint",
        "wrist_2_joint", "wrist_3_joint", rad, with limits of ±360° (the elbow ±180°).

    Notes
    -----
    Numbers: ``ur5_robot.urdf`` of the package ur_description of ROS-Industrial's universal_robot, in m, kg,
    kg m², with the 12 digits of that file. The inertias of the file are possible but not realistic: the wrists have
    radii of gyration of 0.42 m.
    """
    tree = KinematicTree(base="world")
    bodies = {
        name: Link(name, Inertia(mass, (0.0, 0.0, z), (across, across, along)))
        for name, (mass, z, across, along) in _BODIES.items()
    }
    tree.attach(bodies["base_link"], to="world", joint=fixed(name="world_joint"))
    for name, parent, child, origin, rpy, axis, reach in _JOINTS:
        joint = revolute(axis, limits=(-reach, reach), name=name)
        tree.attach(bodies[child], to=parent, joint=joint, at=pose(rotation_from_rpy(*rpy), origin))
    for name, parent, child, origin, rpy in _FRAMES:
        tree.attach(Link(child), to=parent, joint=fixed(name=name), at=pose(rotation_from_rpy(*rpy), origin))
    return tree
