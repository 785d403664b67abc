"""The first three joints of the Stanford arm."""

from math import pi

from screwdyn.io.effective import known_effective
from screwdyn.tree import KinematicTree

__all__ = ["stanford"]


def stanford() -> KinematicTree:
    """Stanford arm (revolute, revolute, prismatic) of Bhangale, Table IV(b).

    Standard Denavit-Hartenberg; inertias about the com, in the DH link frames, in kg m². The vector r of the table
    points from the centre of mass to the *next* joint, where the DH frame lies, so com = -r. z of the base points
    up; gravity is 9.81 m/s² downwards. The moments of link 2 (0.5, 0.6, 0.01) violate the triangle
    inequality: it is an *effective* inertia.

    Returns
    -------
    KinematicTree
        Links "link1" … "link3"; coordinates "theta1", "theta2" (rad) and "b3" (m).

    Notes
    -----
    P. P. Bhangale, S. K. Saha, V. P. Agrawal, "A dynamic model based robot arm selection criterion",
    Multibody System Dynamics 12, 2004. One or two digits.
    """
    rows = [
        {
            "d": 0.1,
            "alpha": -pi / 2,
            "m": 9,
            "com": (0.1, 0, -0.1),
            "inertia": (0.1, 0.02, 0.1),
            "joint": "theta1",
        },
        {
            "d": 0.1,
            "alpha": -pi / 2,
            "inertia": known_effective(6, (0, 0, -0.5), (0.5, 0.6, 0.01)),
            "joint": "theta2",
        },
        {"type": "P", "m": 4, "com": (0, 0, -0.4), "inertia": (0.4, 0.4, 0.1), "joint": "b3"},
    ]
    return KinematicTree.from_dh(rows)
