"""DeNOC in link frames for arms in space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.types import Array
from screwdyn.papers.formulations.formulation import Row
from screwdyn.papers.formulations.link_frames.arm import InLinkFrames, carried_masses, is_none
from screwdyn.papers.formulations.link_frames.convective import mci
from screwdyn.papers.formulations.link_frames.counting import Begin, Elements, silent
from screwdyn.papers.formulations.link_frames.routines import Q, added, times, twice_crossed
from screwdyn.papers.formulations.link_frames.spatial import Body, Link, composites, gim

__all__ = ["Spatial"]


class Spatial(InLinkFrames):
    """The algorithm of Bhangale section 3.2 and appendix B, with their misprints corrected.

    ``GIM`` is `mass_matrix`, ``MCI`` is `coriolis_matrix`, entry by entry those of `denoc`.

    Parameters
    ----------
    tree : KinematicTree
        A serial arm with revolute and prismatic joints, and link frames of Denavit and Hartenberg, as
        :meth:`screwdyn.KinematicTree.from_dh` makes them. What is welded to a link is part of it.

    Raises
    ------
    ScrewdynError
        If the tree has branches, other joints or other frames; the message names them.
    """

    frames = "frames of Denavit and Hartenberg, as KinematicTree.from_dh makes them"

    def _covers(self, row: Row) -> bool:
        R, p = row.home[:3, :3], row.home[:3, 3]
        turned = R[0, 0] * p[1] - R[1, 0] * p[0]
        return is_none(*row.z[:2], row.z[2] - 1, *row.p, R[2, 0], turned)

    def _links(self, q: Sequence[Any]) -> list[Link]:
        return [_link(row, x, m) for row, x, m in zip(self.rows, q, carried_masses(self.rows), strict=True)]

    def _gim(self, links: list[Link], begin: Begin) -> Elements:
        return gim(links, begin)

    def _mci(self, links: list[Link], rates: Sequence[Any], begin: Begin) -> Elements:
        return mci(links, rates, begin)

    def _gravity_vector(self, q: Array) -> Array:
        """−p_iᵀ [δ̃_i × g; m̃_i g]: gravity is part of w^E (Eq. 8)."""
        links = self._links(q.tolist())
        found, (x, y, z) = [], self.gravity.tolist()
        for link, body in zip(links, composites(links, silent), strict=True):
            found.append(-(link.carried * z) if link.fixed else body.first[1] * x - body.first[0] * y)
            x, y, z = link.turn.back((x, y, z))
        return np.array(found, dtype=np.result_type(q, self._dtype))


def _link(row: Row, q: Any, carried: Any) -> Link:
    """The link of a row with z of frame i as its axis and home = R_z(θ) D_z(b) D_x(a) R_x(α)."""
    (c, *_), (s, *_), (_, sa, ca) = row.home[:3, :3].tolist()
    x, y, b = row.home[:3, 3].tolist()
    a, r, I = x * c + y * s, times(-1, tuple(row.com.tolist())), row.I.tolist()
    tensor = (I[0][0], I[0][1], I[1][1], I[0][2], I[1][2], I[2][2])
    if row.sigma:
        cq, sq = expressions.cos_sin(q)
        turn = Q(cq * c - sq * s, sq * c + cq * s, ca, sa)
        return Link(turn, a, b, r, tensor, row.m, carried, None)
    turn, end = Q(c, s, ca, sa), (x, y, b)
    d = added(end, times(-1, turn.vector(r)))
    first = times(row.m, d)
    fixed = Body(added(turn.tensor(tensor), twice_crossed(d, first)), first, end)
    return Link(turn, a, q, r, tensor, row.m, carried, fixed)
