"""Two planar arms with a revolute and a prismatic joint."""

from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.joint import prismatic, revolute
from screwdyn.tree import KinematicTree

__all__ = ["planar_pr", "planar_rp"]


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
