"""The translational and rotational parts of D and h along a trajectory."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from screwdyn.core.types import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Parts"]


class Parts(NamedTuple):
    """The translational and rotational parts of D and h, at the k set points of a trajectory.

    Attributes
    ----------
    D_tran, D_rot : (k, n, n) arrays
        Fu Eq. 3.4-25; their sum is the mass matrix, kg m².
    h_tran, h_rot : (k, n) arrays
        Fu Eqs. 3.4-26 and 3.4-27; their sum is C q̇, N m.
    """

    D_tran: Array
    D_rot: Array
    h_tran: Array
    h_rot: Array

    def translational_share(self) -> tuple[Array, Array]:
        """rms(tran) / (rms(tran) + rms(rot)) of every D_ij, (n, n), and h_i, (n,): 1 where only translation matters.

        NaN where both parts are zero along the trajectory; the share of an element that is zero but for rounding has
        no meaning.
        """
        D_tran, D_rot, h_tran, h_rot = (np.sqrt((x**2).mean(axis=0)) for x in self)
        with np.errstate(invalid="ignore"):
            return D_tran / (D_tran + D_rot), h_tran / (h_tran + h_rot)

    def plot(self) -> Figure:
        """Draw both parts of every D_ij and h_i, and their sums, over the set points, as Fu's Figs. 3.10 and 3.11.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        ScrewdynError
            If Matplotlib, the extra ``plot``, is not installed.
        """
        from screwdyn.papers.formulations.dominance.figure import plot_parts

        return plot_parts(*self)
