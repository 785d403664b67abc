"""The first three joints of the RTX arm."""

from screwdyn.io.effective import known_effective
from screwdyn.tree import KinematicTree

__all__ = ["rtx"]


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
        {
            "d": 0.01,
            "a": 0.432,
            "inertia": known_effective(6, (-0.292, 0, 0), (0.5, 0.6, 0.01)),
            "joint": "theta2",
        },
        {"d": 0.01, "a": 0.2, "m": 4, "com": (0.02, 0, 0), "inertia": (0.4, 0.4, 0.1), "joint": "theta3"},
    ]
    return KinematicTree.from_dh(rows)
