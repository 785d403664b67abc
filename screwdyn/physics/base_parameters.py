"""Base parameters: fewer inertial numbers with the same dynamics (docs/mathematics.md §4).

Inertia that has no momentum along a joint's screw and is constant in the parent's frame for all positions of the joint
can be added to the parent. Behind a revolute joint these are the mass, the first moment along the axis and equal
moments about the two perpendicular axes; behind a prismatic joint, all moments. The remaining numbers are base inertial
parameters in the sense of M. Gautier and W. Khalil, "Direct calculation of minimum set of inertial parameters of
serial robots", IEEE Trans. Robotics and Automation 6(3), 1990. The further reductions for parallel axes and for the
direction of gravity are not made.
"""

from .link_steps import inertia_to_parent
from .spatial import RigidInertia
from .table import MASS, PARENT, Table, body, grouped_rows, home, joint_screw, parent

__all__ = ["base_parameters"]


def base_parameters(table: Table) -> Table:
    """The table with base parameters in place of the inertial numbers; the numbers that are not needed are zero.

    M, C, g, inverse and forward dynamics are the same up to rounding. Masses of links are not, nor are centres of mass,
    momenta, energies and internal wrenches: the catalogue states for each quantity whether it may be computed from base
    parameters. Rows of group joints keep their inertia, because their charts are re-centred.

    Parameters
    ----------
    table : array
        See ``table``; of floats or of traced scalars.
    """
    table = table.copy()
    n = len(table) - 1
    grouped = grouped_rows(table)
    for i in range(n - 1, -1, -1):
        if i in grouped:
            continue
        (m, (hx, hy, hz), I), S = body(table, i), joint_screw(table, i)
        across = I[3]
        moved_I = (across, 0.0, 0.0, across, 0.0, 0.0) if S.turn else I
        moved_m, moved_h = (0.0, 0.0) if S.slide else (m, hz)
        table[i, MASS:PARENT] = [
            m - moved_m,
            hx,
            hy,
            hz - moved_h,
            *(x - moved for x, moved in zip(I, moved_I, strict=True)),
        ]
        k = parent(table, i)
        if k >= 0:
            m, h, I = inertia_to_parent(home(table, i), RigidInertia(moved_m, (0.0, 0.0, moved_h), moved_I))
            table[k, MASS:PARENT] += [m, *h, *I]
    return table
