"""Joints that follow others: from the freedoms of a tree to the rows of its table and back (docs/mathematics.md §8).

The coordinates of the rows are x = W y + const, with one entry in each row of the constant W and y the coordinates of
the tree. Results over the rows are contracted: M = Wᵀ M_rows W, C = Wᵀ C_rows W, g = Wᵀ g_rows, J = J_rows W. Couplings
are an array with three columns for each row: the coordinate that it follows, the ratio, and the offset. Kernels and
tapes wrap the recursions of quantities in these functions; a tree in which no joint follows another one has none.
"""

import itertools
from collections.abc import Sequence
from typing import Any

from screwdyn.core import Array, expressions
from screwdyn.mechanism.topology import leaders

from .placement import Placement
from .recursions.links import clear
from .table import Table, path_of

# Columns of couplings.
COLUMN, RATIO, OFFSET, COUPLING = 0, 1, 2, 3


def couplings_of(where: Array, links: Sequence[Placement]) -> Array:
    """The couplings of all rows; in ``where``, rows that follow another one get its position."""
    joints = {at.name: at.joint for at in links if at.joint is not None and at.name is not None}
    first: dict[str, int] = {}
    columns: dict[str, int] = {}
    row = 0
    for name, joint in joints.items():
        first[name], row = row, row + joint.screws.shape[1]
        columns |= zip(joint.freedom_names(name), itertools.count(len(columns)), strict=False)
    couplings: list[list[Any]] = []
    follows = leaders(joints)
    for name, joint in joints.items():
        leader, ratio, offset = follows.get(name, (name, 1.0, 0.0))
        if joint.mimic is not None:
            where[first[name]] = where[first[leader]]
        couplings += [[columns[x], ratio, offset] for x in joints[leader].freedom_names(leader)]
    return expressions.array(couplings)


def follow(couplings: Table, x: Table) -> None:
    """Coordinates of the rows from those that they follow, in place: ratio · x + offset."""
    for i in range(couplings.shape[0]):
        x[i] = couplings[i, RATIO] * x[i] + couplings[i, OFFSET]


def spread(couplings: Table, v: Table, rows: Table) -> None:
    """W v: rates or accelerations of the rows."""
    for i in range(couplings.shape[0]):
        rows[i] = couplings[i, RATIO] * v[int(couplings[i, COLUMN])]


def contracted_vector(couplings: Table, rows: Table, out: Table) -> None:
    """Wᵀ rows."""
    for k in range(out.shape[0]):
        out[k] = 0.0
    for i in range(couplings.shape[0]):
        k = int(couplings[i, COLUMN])
        out[k] = out[k] + couplings[i, RATIO] * rows[i]


def contracted_columns(couplings: Table, rows: Table, out: Table) -> None:
    """A W for a matrix A with a column for each row of the table."""
    clear(out)
    for r in range(out.shape[0]):
        for i in range(couplings.shape[0]):
            k = int(couplings[i, COLUMN])
            out[r, k] = out[r, k] + couplings[i, RATIO] * rows[r, i]


def contracted_rows(couplings: Table, rows: Table, out: Table) -> None:
    """Wᵀ A for a matrix A with a row for each row of the table."""
    clear(out)
    for i in range(couplings.shape[0]):
        k = int(couplings[i, COLUMN])
        for c in range(out.shape[1]):
            out[k, c] = out[k, c] + couplings[i, RATIO] * rows[i, c]


def contracted_matrix(couplings: Table, rows: Table, out: Table) -> None:
    """Wᵀ A W for a square matrix A over the rows of the table."""
    clear(out)
    for i in range(couplings.shape[0]):
        k = int(couplings[i, COLUMN])
        for j in range(couplings.shape[0]):
            l = int(couplings[j, COLUMN])
            out[k, l] = out[k, l] + couplings[i, RATIO] * couplings[j, RATIO] * rows[i, j]


def contracted_symmetric(couplings: Table, rows: Table, out: Table) -> None:
    """Wᵀ A W for a symmetric matrix A, with a result that is symmetric to the last bit."""
    contracted_matrix(couplings, rows, out)
    for k in range(out.shape[0]):
        for l in range(k):
            out[l, k] = out[k, l]


def of_path(table: Table, couplings: Table, row: int) -> Table:
    """Couplings of the rows on the path to a row, from the base on, over the coordinates of the path in their order."""
    path = couplings[path_of(table, row)[::-1]]
    columns = path[:, COLUMN].tolist()
    number = {column: k for k, column in enumerate(sorted(set(columns)))}
    path[:, COLUMN] = [number[column] for column in columns]
    return path
