"""A three-link arm with a published closed form of the Coriolis matrix."""

from math import pi

from screwdyn.tree import KinematicTree

__all__ = ["truc_3r"]


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
