"""DeNOC in link frames for planar arms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.types import Array
from screwdyn.mechanism.structure import Mechanism
from screwdyn.papers.formulations.formulation import Row
from screwdyn.papers.formulations.link_frames.arm import InLinkFrames, carried_masses, is_none
from screwdyn.papers.formulations.link_frames.counting import Begin, Elements, silent
from screwdyn.papers.formulations.link_frames.planar import Body, Link, Vector, composites, gim
from screwdyn.papers.formulations.link_frames.planar_convective import mci

__all__ = ["Planar"]


class _Shape(NamedTuple):
    """Cosine and sine of the angle from frame i to frame i + 1 at q = 0, and constants of `Link`."""

    turn: Vector
    a: Any
    r: Vector
    carried: Any
    slide: Vector


class Planar(InLinkFrames):
    """The algorithm of Bhangale section 3.2.1, with its misprints corrected.

    ``GIM`` is `mass_matrix`, ``MCI`` is `coriolis_matrix`, which for a planar arm is the Christoffel matrix.

    Parameters
    ----------
    tree : KinematicTree
        A serial arm whose links move in the plane x-y of their frames: joints are revolute about z or slide in the
        plane. What is welded to a link is part of it.

    Raises
    ------
    ScrewdynError
        If the tree has branches, other joints or other frames; the message names them.
    """

    frames = "joints about z or along the plane x-y, and frames that turn about z only"

    def __init__(self, tree: Mechanism) -> None:
        super().__init__(tree)
        self._shapes = _shapes(self.rows)

    def _covers(self, row: Row) -> bool:
        upright = is_none(*row.home[2, :2], row.home[2, 2] - 1)
        return upright and (is_none(*row.z[:2], row.z[2] - 1) if row.sigma else is_none(row.z[2]))

    def _gim(self, links: list[Link], begin: Begin) -> Elements:
        return gim(links, begin)

    def _mci(self, links: list[Link], rates: Sequence[Any], begin: Begin) -> Elements:
        return mci(links, rates, begin)

    def _gravity_vector(self, q: Array) -> Array:
        """−p_iᵀ [δ̃_i × g; m̃_i g]: gravity is part of w^E (Eq. 8)."""
        links = self._links(q.tolist())
        found, g = [], (self.gravity[0], self.gravity[1])
        for link, (body, _, _) in zip(links, composites(links, silent), strict=True):
            if link.slide:
                found.append(-(link.carried * (link.slide[0] * g[0] + link.slide[1] * g[1])))
            else:
                found.append(body.first[1] * g[0] - body.first[0] * g[1])
            g = link.back(g)
        return np.array(found, dtype=np.result_type(q, self._dtype))

    def _links(self, q: Sequence[Any]) -> list[Link]:
        return [_link(row, shape, x) for row, shape, x in zip(self.rows, self._shapes, q, strict=True)]


def _shapes(rows: Sequence[Row]) -> list[_Shape]:
    """What is constant of the links; x of frame i + 1 is along a_i, at an angle to the tree's frame of link i."""
    starts = [row.p[:2] if row.sigma else row.home[:2, 3] for row in rows]
    ends = [*starts[1:], np.zeros(2)]
    found: list[_Shape] = []
    before, masses = (1.0, 0.0), carried_masses(rows)
    for row, start, end, carried in zip(rows, starts, ends, masses, strict=True):
        a, along = _polar(end - row.home[:2, :2].T @ (start - row.home[:2, 3]))
        r = _back((end[0] - row.com[0], end[1] - row.com[1]), along)
        turn = _turned(_back((row.home[0, 0], row.home[1, 0]), before), along)
        found.append(_Shape(turn, a, r, carried, _back((row.z[0], row.z[1]), before)))
        before = along
    return found


def _polar(r: Array) -> tuple[Any, tuple[Any, Any]]:
    """A number a and a direction with r = a (cos φ, sin φ); the direction is x if r is along x, or 0."""
    x, y = r.tolist()
    if is_none(y):
        return x, (1.0, 0.0)
    a = (x * x + y * y) ** 0.5
    return a, (x / a, y / a)


def _turned(r: Vector, by: Vector) -> Vector:
    """A vector turned by an angle with this cosine and sine."""
    return r[0] * by[0] - r[1] * by[1], r[0] * by[1] + r[1] * by[0]


def _back(r: Vector, by: Vector) -> Vector:
    return _turned(r, (by[0], -by[1]))


def _link(row: Row, shape: _Shape, q: Any) -> Link:
    """Link i at a configuration."""
    (x, y), a, r, carried, slide = shape
    m, I = row.m, row.I[2, 2]
    if row.sigma:
        c, s = _turned(expressions.cos_sin(q), shape.turn)
        return Link(c, s, a, r, I, m, carried, None, None, q)
    r_x, r_y = _turned(r, shape.turn)
    d = (a * x - r_x, a * y - r_y)
    first = (m * d[0], m * d[1])
    fixed = Body(I + d[0] * first[0] + d[1] * first[1], first, (a * x, a * y))
    return Link(x, y, a, r, I, m, carried, fixed, slide, q)
