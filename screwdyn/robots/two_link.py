"""The two-link manipulator of a textbook."""

from screwdyn.mechanism.inertia import Inertia
from screwdyn.tree import KinematicTree

__all__ = ["two_link"]


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
