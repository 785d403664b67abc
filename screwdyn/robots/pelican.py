"""The pelican, a two-link planar arm."""

from screwdyn.mechanism.inertia import Inertia
from screwdyn.tree import KinematicTree

__all__ = ["pelican"]


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
