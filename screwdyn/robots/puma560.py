"""The Unimation PUMA 560."""

from math import pi

from screwdyn.io.effective import known_effective
from screwdyn.tree import KinematicTree

__all__ = ["puma560"]


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
