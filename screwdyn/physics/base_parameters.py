"""A model with fewer inertial numbers and the same dynamics: what a joint does not feel is moved to its parent.

Inertia that has no momentum along a joint's screw and looks the same in the parent's frame wherever the joint stands
moves with the parent as well as with the link: behind a revolute joint the mass, the first moment along the axis and
equal moments about the two axes across it, behind a prismatic joint all moments. What stays are base inertial
parameters in the sense of M. Gautier and W. Khalil, "Direct calculation of minimum set of inertial parameters of
serial robots", IEEE Trans. Robotics and Automation 6(3), 1990, save for those that parallel axes or gravity make
superfluous besides.
"""

from screwdyn.physics.link_steps import inertia_inward
from screwdyn.physics.table import FIRST_MOMENT, INERTIA, MASS, PARENT, SLIDE, TURN, Table, load3, load6, load9

__all__ = ["regrouped"]


def regrouped(table: Table) -> Table:
    """The same model with as few inertial numbers as its joints tell apart; zeros stand for the others.

    M, C, g, inverse and forward dynamics are the same up to rounding; energies, and wrenches inside the links, are not.

    Parameters
    ----------
    table : array
        See ``rows``; of floats or of recording scalars.
    """
    table = table.copy()
    for i in range(len(table) - 2, -1, -1):
        m, (hx, hy, hz), I = table[i, MASS], load3(table, i, FIRST_MOMENT), load6(table, i, INERTIA)
        across = I[3]
        moved_I = (across, 0.0, 0.0, across, 0.0, 0.0) if table[i, TURN] else I
        moved_m, moved_h = (0.0, 0.0) if table[i, SLIDE] else (m, hz)
        table[i, MASS:PARENT] = [
            m - moved_m,
            hx,
            hy,
            hz - moved_h,
            *(x - moved for x, moved in zip(I, moved_I, strict=True)),
        ]
        k = int(table[i, PARENT])
        if k >= 0:
            m, h, I = inertia_inward(load9(table, i, 0), load3(table, i, 9), moved_m, (0.0, 0.0, moved_h), moved_I)
            table[k, MASS:PARENT] += [m, *h, *I]
    return table
