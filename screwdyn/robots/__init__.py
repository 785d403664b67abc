"""Robots of the literature, with the source of their numbers.

Each function returns a new :class:`~screwdyn.KinematicTree`. The tests compare results for these robots with values
from independent engines.
"""

from functools import cache
from importlib.resources import files
from math import pi

import numpy as np

from screwdyn.io.document import known_effective
from screwdyn.io.urdf import read_urdf
from screwdyn.mechanism import Inertia, Topology
from screwdyn.mechanism.joint import prismatic, revolute
from screwdyn.tree import KinematicTree

__all__ = [
    "andrews",
    "panda",
    "pelican",
    "planar_pr",
    "planar_rp",
    "puma560",
    "rtx",
    "stanford",
    "truc_3r",
    "two_link",
    "ur5",
]


def andrews() -> KinematicTree:
    """Seven plane bodies in three closed loops, without gravity.

    "Andrews' squeezing mechanism" of F. Mazzia, C. Magherini, "Test Set for Initial Value Problem Solvers", release
    2.4, 2008, after W. Schiehlen, "Multibody Systems Handbook", 1990. The bodies turn about z.

    Returns
    -------
    KinematicTree
        Links "K1" to "K7" and loops "K3-K2", "K4-K2", "K6-K2". The coordinates of the source, β, Θ, γ, Φ, δ, Ω, ε, are
        those of K1, K2, K3, K4, K5, K6 and K7, rad. Of the bodies' inertias, the source gives those about z; the others
        have no influence.

    Notes
    -----
    In the source, the mechanism starts at rest with Θ = 0. A motor drives K1 with 0.033 N m, and a spring of 4530 N/m
    and 0.07785 m pulls the point (0.02, -0.018, 0) of K3 towards (0.014, 0.072, 0).

    Examples
    --------
    >>> import screwdyn as sd
    >>> tree = sd.robots.andrews()
    >>> q = tree.assemble([-0.06, 0, 0.46, 0.49, 0.22, 1.23, -0.22], hold=["K2"])
    >>> print(q[0].round(12), tree.freedoms(q))
    -0.061713890014 1
    """
    bodies = {  # mass, inertia about z, centre of mass; parent and place
        "K1": (0.04325, 2.194e-6, (0.00092, 0), "base", (0, 0)),
        "K2": (0.00365, 4.410e-7, (-0.0115, 0), "K1", (0.007, 0)),
        "K3": (0.02373, 5.255e-6, (0.01043, -0.01874), "base", (-0.03635, 0.03273)),
        "K5": (0.07050, 1.169e-5, (0.02308, -0.00916), "base", (-0.06934, -0.00227)),
        "K4": (0.00706, 5.667e-7, (0, -0.00579), "K5", (0.04, 0)),
        "K7": (0.05498, 1.912e-5, (-0.00449, -0.01228), "base", (-0.06934, -0.00227)),
        "K6": (0.00706, 5.667e-7, (0.00579, 0), "K7", (0, -0.04)),
    }
    tree = KinematicTree(gravity=(0, 0, 0))
    for name, (mass, inertia, com, to, at) in bodies.items():
        body = Inertia(mass, (*com, 0), np.diag([inertia / 2, inertia / 2, inertia]))
        tree.attach(body, to=to, joint=revolute("z"), at=(*at, 0), name=name)
    # Ends of K3, K4 and K6 are on one pin with the end of K2.
    for name, (x, y) in {"K3": (0, -0.035), "K4": (0, -0.02), "K6": (0.02, 0)}.items():
        tree.close(name, to="K2", joint=revolute("z", (x, y, 0)), at=(-0.028 - x, -y, 0))
    return tree


def panda() -> KinematicTree:
    """Panda arm without its hand.

    z of the base "panda_link0" points up; gravity is 9.81 m/s² downwards. The frames of the links are those of the
    modified Denavit-Hartenberg convention; the massless frame "panda_link8" is the flange. The zero angles, at which
    the arm is stretched upwards, are not within the limits of "panda_joint4".

    Returns
    -------
    KinematicTree
        Links "panda_link0" … "panda_link8"; coordinates "panda_joint1" … "panda_joint7", rad, with limits of position,
        torque (87 and 12 N m) and velocity. Shapes show what it looks like.

    Notes
    -----
    Frames and limits: Franka's description of the robot, package franka_description of franka_ros. Inertias: C. Gaz,
    M. Cognetti, A. Oliva, P. Robuffo Giordano, A. De Luca, "Dynamic identification of the Franka Emika Panda robot
    with retrieval of feasible parameters using penalty-based optimization", IEEE RA-L 4(4), 2019, with the digits of
    that package. Inertial parameters are identified up to combinations that no motion shows, so that those of a single
    link are not measured. Joints have no friction.
    """
    return _described("panda")


def pelican(
    a1: float = 0.26,
    a2: float = 0.26,
    l1: float = 0.0983,
    l2: float = 0.0229,
    m1: float = 6.5225,
    m2: float = 2.0458,
    I1: float = 0.1213,
    I2: float = 0.0116,
    g: float = 9.81,
) -> KinematicTree:
    """Pelican arm of Laus, section 3, in a vertical plane.

    The frames are those of Laus Table 1 (standard Denavit-Hartenberg): z is normal to the plane, x points
    along the link, and the link frame lies at the *distal* joint, so that the com is at (l - a, 0, 0) (Eq.
    40). At zero coordinates the arm is stretched along x of the base, horizontally. Gravity is along -y, so that link 1
    contributes m1 g l1 cos(shoulder) to the torque of the shoulder (Eq. 51).

    Parameters
    ----------
    a1, a2 : float
        Link lengths, m.
    l1, l2 : float
        Distances of the centres of mass from the proximal joints, m.
    m1, m2 : float
        Masses, kg.
    I1, I2 : float
        Moments of inertia about the centres of mass and z, kg m². The other moments have no influence on motion in the
        plane; they are those of :meth:`screwdyn.Inertia.planar`.
    g : float
        Gravity, m/s².

    Returns
    -------
    KinematicTree
        Links "link1", "link2"; coordinates "shoulder", "elbow", rad.

    Notes
    -----
    Model: L. P. Laus, R. Simoni, D. Martins, "Progressive dynamic analysis of serial robots based on screw
    theory", section 3. Numbers: R. Kelly, V. Santibáñez, A. Loría, "Control of Robot Manipulators in Joint
    Space", Springer 2005, section 5 (where angles are measured from the hanging arm). Printed with four or five
    digits.
    """
    rows = [
        {"a": a1, "inertia": Inertia.planar(m1, (l1 - a1, 0.0), I1), "joint": "shoulder"},
        {"a": a2, "inertia": Inertia.planar(m2, (l2 - a2, 0.0), I2), "joint": "elbow"},
    ]
    return KinematicTree.from_dh(rows, gravity=(0.0, -g, 0.0))


def planar_rp(a1: float = 0.0, m1: float = 12.25, m2: float = 2.45, length: float = 0.8584) -> KinematicTree:
    """Revolute, then prismatic joint in a horizontal plane: Bhangale Fig. 3 and Eq. 19.

    The frame of a link is at its far end; x points along the arm. At zero coordinates the arm is stretched along x of
    the base, with its end at a1. There is no gravity.

    Parameters
    ----------
    a1 : float
        Length of the first link, m.
    m1, m2 : float
        Masses of the links, kg. The first is a disc of radius 0.1 m about its joint, the second a rod.
    length : float
        Length of the second link, m.

    Returns
    -------
    KinematicTree
        Links "link1", "link2"; coordinates "theta1" (rad), "b2" (m).

    Notes
    -----
    P. P. Bhangale, S. K. Saha, V. P. Agrawal, "A dynamic model based robot arm selection criterion", Multibody System
    Dynamics 12, 2004. It does not give shapes of the links; disc, rod and the length of the rod are not from the
    source, which has 0.8584 m for the second link of :func:`planar_pr`.
    """
    arm = KinematicTree(gravity=(0, 0, 0))
    disc = Inertia.planar(m1, (-a1, 0, 0), m1 * 0.1**2 / 2)
    arm.attach(disc, to="base", joint=revolute("z", point=(-a1, 0, 0), name="theta1"), at=(a1, 0, 0), name="link1")
    rod = Inertia.rod(m2, length, axis="x", com=(-length / 2, 0, 0))
    arm.attach(rod, to="link1", joint=prismatic("x", name="b2"), name="link2")
    return arm


def planar_pr(a2: float = 0.8584, m1: float = 12.25, m2: float = 2.45) -> KinematicTree:
    """Prismatic, then revolute joint in a horizontal plane: Bhangale Fig. 3 and Eqs. 20 and 22.

    The first link slides along x of the base; the second is a rod of length a2, m, with its frame at the far end and x
    along it. Masses m1, m2 in kg. There is no gravity. Links "link1", "link2"; coordinates "b1" (m), "theta2" (rad).
    Source as for :func:`planar_rp`; that link 2 is a rod is not from the source.
    """
    arm = KinematicTree(gravity=(0, 0, 0))
    arm.attach(Inertia.point(m1), to="base", joint=prismatic("x", name="b1"), name="link1")
    rod = Inertia.rod(m2, a2, axis="x", com=(-a2 / 2, 0, 0))
    arm.attach(rod, to="link1", joint=revolute("z", point=(-a2, 0, 0), name="theta2"), at=(a2, 0, 0), name="link2")
    return arm


def puma560() -> KinematicTree:
    """PUMA 560 without its motors' rotor inertias.

    Standard Denavit-Hartenberg; com and inertia (about the com, products of inertia neglected) in the DH link
    frames, in m, kg and kg m². z of the base points up; gravity is 9.81 m/s² downwards. Two links have
    *effective* inertias, which no rigid body has: for link 1 only the moment about its vertical axis is given
    (m = 0, Iyy = 0.35), and the moments of link 3 (0.066, 0.086, 0.0125) violate the triangle inequality.

    Returns
    -------
    KinematicTree
        Links "link1" … "link6"; coordinates "joint1" … "joint6", rad.

    Notes
    -----
    P. I. Corke, B. Armstrong-Hélouvry, "A search for consensus among model parameters reported for the PUMA
    560 robot", IEEE ICRA 1994. Two or three digits.
    """
    rows = [
        {"alpha": pi / 2, "inertia": known_effective(0, 0, (0, 0.35, 0))},
        {"a": 0.4318, "m": 17.4, "com": (-0.3638, 0.006, 0.2275), "inertia": (0.13, 0.524, 0.539)},
        {
            "d": 0.15005,
            "a": 0.0203,
            "alpha": -pi / 2,
            "inertia": known_effective(4.8, (-0.0203, -0.0141, 0.07), (0.066, 0.086, 0.0125)),
        },
        {"d": 0.4318, "alpha": pi / 2, "m": 0.82, "com": (0, 0.019, 0), "inertia": (1.8e-3, 1.3e-3, 1.8e-3)},
        {"alpha": -pi / 2, "m": 0.34, "inertia": (0.3e-3, 0.4e-3, 0.3e-3)},
        {"m": 0.09, "com": (0, 0, 0.032), "inertia": (0.15e-3, 0.15e-3, 0.04e-3)},
    ]
    return KinematicTree.from_dh(rows)


def rtx() -> KinematicTree:
    """RTX arm (prismatic, revolute, revolute; all axes vertical) of Bhangale, Table IV(a).

    Standard Denavit-Hartenberg; inertias about the com, in the DH link frames, in kg m². The vector r of the table
    points from the centre of mass to the *next* joint, where the DH frame lies, so com = -r. z of the base points
    up; gravity is 9.81 m/s² downwards. The moments of link 2 (0.5, 0.6, 0.01) violate the triangle
    inequality: it is an *effective* inertia.

    Returns
    -------
    KinematicTree
        Links "link1" … "link3"; coordinates "b1" (m), "theta2" and "theta3" (rad).

    Notes
    -----
    P. P. Bhangale, S. K. Saha, V. P. Agrawal, "A dynamic model based robot arm selection criterion",
    Multibody System Dynamics 12, 2004. One to three digits. Link 3 is as printed, r = (-0.02, 0, 0), so its centre
    of mass is 2 cm beyond the end of the 0.2 m link.
    """
    rows = [
        {"type": "P", "m": 9, "com": (0, 0, -0.054), "inertia": (0.1, 0.02, 0.1), "joint": "b1"},
        {"d": 0.01, "a": 0.432, "inertia": known_effective(6, (-0.292, 0, 0), (0.5, 0.6, 0.01)), "joint": "theta2"},
        {"d": 0.01, "a": 0.2, "m": 4, "com": (0.02, 0, 0), "inertia": (0.4, 0.4, 0.1), "joint": "theta3"},
    ]
    return KinematicTree.from_dh(rows)


def stanford() -> KinematicTree:
    """Stanford arm (revolute, revolute, prismatic) of Bhangale, Table IV(b), with one or two digits.

    Conventions and source as for :func:`rtx`; the moments of link 2 are those of an *effective* inertia too.

    Returns
    -------
    KinematicTree
        Links "link1" … "link3"; coordinates "theta1", "theta2" (rad) and "b3" (m).
    """
    rows = [
        {"d": 0.1, "alpha": -pi / 2, "m": 9, "com": (0.1, 0, -0.1), "inertia": (0.1, 0.02, 0.1), "joint": "theta1"},
        {"d": 0.1, "alpha": -pi / 2, "inertia": known_effective(6, (0, 0, -0.5), (0.5, 0.6, 0.01)), "joint": "theta2"},
        {"type": "P", "m": 4, "com": (0, 0, -0.4), "inertia": (0.4, 0.4, 0.1), "joint": "b3"},
    ]
    return KinematicTree.from_dh(rows)


def truc_3r() -> KinematicTree:
    """Three revolute joints: waist, shoulder and elbow; Truc Eq. (71).

    Standard Denavit-Hartenberg; com and inertia (about the com) in the DH link frames, in m, kg and kg m². z
    of the base points up; gravity is 9.807 m/s² downwards. Positive q2 and q3 lower the arm.

    Returns
    -------
    KinematicTree
        Links "link1" … "link3"; coordinates "q1", "q2", "q3", rad.

    Notes
    -----
    L. N. Truc, N. V. Quyen, N. P. Quang, "Dynamic model with a new formulation of Coriolis/centrifugal matrix
    for robot manipulators", 2019. Three or four digits.
    """
    rows = [
        {"d": 0.294, "alpha": -pi / 2, "m": 5.248, "com": (0, 0.154, 0), "inertia": (0.0835, 0.0304, 0.0835)},
        {"a": 0.19, "m": 2.412, "com": (-0.102, 0, 0), "inertia": (0.0159, 0.0405, 0.0405)},
        {"a": 0.17, "m": 1.577, "com": (-0.09, 0, 0), "inertia": (0.0079, 0.0202, 0.0202)},
    ]
    named = [{**row, "joint": f"q{i}"} for i, row in enumerate(rows, start=1)]
    return KinematicTree.from_dh(named, gravity=(0.0, 0.0, -9.807))


def two_link(m1: float = 1.0, m2: float = 1.0, length: float = 1.0, g: float = 9.8062) -> KinematicTree:
    """Two equal thin rods in a vertical plane: Fu Fig. 3.2 and section 3.2.6.

    Standard Denavit-Hartenberg frames: z normal to the plane, x along the rod, the link frame at its far end,
    so that the com is at (-length/2, 0, 0). At zero coordinates the arm is stretched along x of the base;
    gravity is along -y of the base.

    Parameters
    ----------
    m1, m2 : float
        Masses of the rods, kg. The source uses symbols; the default values are not from the source.
    length : float
        Length of each rod, m; the default value is not from the source.
    g : float
        Gravity, m/s²; the default value is from the source.

    Returns
    -------
    KinematicTree
        Links "link1", "link2"; coordinates "theta1", "theta2", rad.

    Notes
    -----
    K. S. Fu, R. C. Gonzalez, C. S. G. Lee, "Robotics: Control, Sensing, Vision, and Intelligence",
    McGraw-Hill 1987, chapter 3.
    """
    rods = (Inertia.rod(m, length, axis="x", com=(-length / 2, 0, 0)) for m in (m1, m2))
    rows = [{"a": length, "inertia": rod, "joint": f"theta{i}"} for i, rod in enumerate(rods, start=1)]
    return KinematicTree.from_dh(rows, gravity=(0.0, -g, 0.0))


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
        "wrist_2_joint", "wrist_3_joint", rad, with limits of position, ±360° (the elbow ±180°), torque (150 and 28 N m)
        and velocity. Shapes show what it looks like.

    Notes
    -----
    Numbers: ``ur5_robot.urdf`` of the package ur_description of ROS-Industrial's universal_robot, in m, kg,
    kg m², with the 12 digits of that file. The inertias of the file are possible but not realistic: the wrists have
    radii of gyration of 0.42 m.
    """
    return _described("ur5")


def _described(robot: str) -> KinematicTree:
    """A new tree of a robot that the files of this package describe."""
    found = _read(robot)
    tree = KinematicTree(found.at(found.base).link)
    tree.topology = tree.topology.attach([at.copied(at.parent) for at in found.attached])
    return tree


@cache
def _read(robot: str) -> Topology:
    """A robot of a URDF file."""
    return read_urdf(files("screwdyn.robots").joinpath(f"{robot}.urdf").read_text(encoding="utf-8"))
