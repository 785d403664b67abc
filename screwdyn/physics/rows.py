"""The rows of a tree: the numbers of its joints and links, made anew or changed from those of an earlier revision."""

from __future__ import annotations

import itertools
import operator
from functools import cached_property
from typing import Any, Self

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import UnboundSymbolError
from screwdyn.core.types import Array
from screwdyn.mechanism.link import Attachment
from screwdyn.mechanism.topology import Topology
from screwdyn.physics.charts import Charts
from screwdyn.physics.model_charts import coupled_charts, group_charts
from screwdyn.physics.placement import NOTHING, Placement, place
from screwdyn.physics.table import COLUMNS, MASS, PARENT

__all__ = ["Rows"]


class Rows:
    """The rows of one revision of a tree and what they are made of; immutable.

    Parameters
    ----------
    topology : Topology
    former : Rows, optional
        Those of an earlier revision, from which unchanged numbers are copied; the result has the same bits without it.

    Attributes
    ----------
    topology : Topology
    table : (n + 1, 27) array
        The rows of the joints, and the row of the base at the end; see ``physics.table``.
    ready : array or None
        The table if it contains numbers only; None if there are expressions.
    charts : Charts or None
        How positions enter the rows if there is a group joint or a joint that follows another one; otherwise positions
        are the coordinates of the rows.
    index : mapping from the name of a row to its number
        The name of a row is that of its freedom, or of the joint if it follows another one.
    nq, nv : int
        Number of positions, and number of freedoms.
    coupled : bool
        Whether a joint follows another one.
    placements : mapping from link name to :class:`Placement`
    """

    placements: dict[str, Placement]
    index: dict[str | None, int]
    charts: Charts | None
    nq: int
    nv: int

    def __init__(self, topology: Topology, former: Self | None = None) -> None:
        self.topology, self.coupled = topology, topology.coupled
        self.nodes = tuple(topology.attachments.values())
        if former is None or former.ready is None or not self._changed(former):
            self._made(former)
            try:
                self.ready: Array | None = self.table
            except UnboundSymbolError:
                self.ready = None
        self.nv = len(self.index) - 1
        if self.coupled:
            self.nv -= sum([at.follows for at in self.placements.values()])

    @property
    def gravity(self) -> Array:
        """Acceleration of gravity in the base frame, (3,), m/s²."""
        return self.topology.gravity

    @property
    def revision(self) -> int:
        """Number of the revision of the tree."""
        return self.topology.revision

    def _changed(self, former: Self) -> bool:
        """Copy unchanged numbers from former rows without expressions; False if there are expressions now.

        The common first part of the attachments is kept; the rows of later links are removed and made anew.
        """
        common = [*map(operator.is_, self.nodes, former.nodes), False].index(False)
        self.placements, self.index = former.placements.copy(), former.index.copy()
        lighter: set[str | None] = set()
        position = former.nq
        for _ in former.nodes[common:]:
            _, at = self.placements.popitem()
            position -= at.nq
            for _ in at.freedoms:
                self.index.popitem()
            if not at.freedoms:
                lighter.add(at.coordinate)
        lighter &= self.index.keys()
        n, self.nq = len(self.index) - 1, position
        new: list[Placement] = []
        rows: list[list[Any]] = []
        for node in self.nodes[common:]:
            at = self._place(node, former)
            new.append(at)
            rows += self._rows(at)
            self.nq += at.nq
        table = np.empty((n + len(rows) + 1, COLUMNS))
        table[:n], table[-1] = former.table[:n], former.table[-1]
        try:  # expressions cannot be stored as floats
            if self.topology.gravity is not former.topology.gravity:
                table[-1, :3] = self.gravity
            if rows:
                table[n:-1] = rows
            for coordinate in lighter:
                body = table[self.index[coordinate], MASS:PARENT]
                body[:] = 0.0
                for at in itertools.islice(self.placements.values(), common):
                    if at.coordinate == coordinate:
                        if at.freedoms:
                            body[:] = at.body
                        else:
                            self._weld(table, at)
            for at in new:
                if not at.freedoms:
                    self._weld(table, at)
        except TypeError:
            return False
        if former.coupled or self.coupled:
            self.charts = coupled_charts(self.placements)
            if self.charts is not None and self.charts.couplings.dtype != np.float64:
                return False
        else:
            self.charts = group_charts(former.charts, n, position, new)
        table.setflags(write=False)
        self.table = self.ready = table
        return True

    def _weld(self, table: Array, at: Placement) -> None:
        """Add a link's body to the row that carries it."""
        if at.body is not NOTHING:
            table[self.index[at.coordinate], MASS:PARENT] += np.array(at.body, dtype=np.float64)

    def _made(self, former: Self | None) -> None:
        """Make all rows."""
        self.placements = {}
        self.index = {None: -1}
        self.rows = []
        self.base_body = [0.0] * 10
        for attachment in self.nodes:
            at = self._place(attachment, former)
            self.rows += self._rows(at)
            if not at.freedoms and at.body is not NOTHING:
                row = self.index[at.coordinate]
                sums, first = (self.base_body, 0) if row < 0 else (self.rows[row], MASS)
                for k, x in enumerate(at.body, first):
                    sums[k] += x
        self.nq = sum(at.nq for at in self.placements.values())
        self.charts = coupled_charts(self.placements)

    def _place(self, node: Attachment, former: Self | None) -> Placement:
        """Placement of a link, from the former rows if it has it; also stored in the placements."""
        name, above = node.link.name, node.parent or ""
        parent = self.placements.get(above)
        # A link whose joint or carrier has been replaced in place moves the links beyond it to other frames.
        if (
            former is not None
            and former.topology.attachments.get(name) is node
            and former.placements.get(above) is parent
        ):
            at = former.placements[name]
        else:
            at = place(node, parent)
        self.placements[name] = at
        return at

    def _rows(self, at: Placement) -> list[list[Any]]:
        """The rows of a link's joint, which are also stored in the index."""
        index = self.index
        rows = at.rows(len(index) - 1, index[at.parent])
        for name in at.names:
            index[name] = len(index) - 1
        return rows

    @cached_property
    def table(self) -> Array:
        """All rows, and the row of the base.

        Raises
        ------
        UnboundSymbolError
            If the numbers contain symbols.
        """
        rows = [*self.rows, self.base_row]
        if self.charts is not None:
            expressions.floats(self.charts.couplings, "the coupling of joints")
        try:
            table = np.array(rows, dtype=np.float64)
            table.setflags(write=False)
            return table
        except TypeError:
            symbols = expressions.free_symbols(itertools.chain(*rows))
            raise UnboundSymbolError.of(symbols, "the robot") from None

    @cached_property
    def rows(self) -> list[list[Any]]:
        """The numbers or expressions of every row; see ``physics.table``."""
        rows: list[list[Any]] = self.table[:-1].tolist()
        return rows

    @cached_property
    def base_body(self) -> list[Any]:
        """Mass, first moment and inertia about the base's origin of all bodies welded to the base."""
        body: list[Any] = self.table[-1, MASS:PARENT].tolist()
        return body

    @cached_property
    def base_row(self) -> list[Any]:
        """The last row of the table: gravity, and the inertia of all bodies welded to the base."""
        return [*self.gravity.tolist(), *[0.0] * (MASS - 3), *self.base_body, 0.0, -1.0, 0.0]
