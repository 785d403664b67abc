"""Linear couplings of joints: rows whose coordinates follow those of other rows (docs/mathematics.md §8).

The rows of a table are those of all joints. With mimic joints, their coordinates are x = W y + const, with W constant
and y the coordinates of the tree. Each row follows one of them, so a row of W has one entry. Recursions compute over
the rows; results are contracted: M = Wᵀ M_rows W, C = Wᵀ C_rows W, g = Wᵀ g_rows, J = J_rows W. C remains the matrix of
the Christoffel symbols, because W is constant.

Couplings are an array with three columns for each row: the coordinate that it follows, the ratio, and the offset.
"""

from .table import Table, path_of

__all__ = [
    "contracted_columns",
    "contracted_matrix",
    "contracted_symmetric",
    "contracted_vector",
    "follow",
    "of_path",
    "spread",
]

COLUMN, RATIO, OFFSET, COUPLING = 0, 1, 2, 3


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
    for r in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[r, k] = 0.0
        for i in range(couplings.shape[0]):
            k = int(couplings[i, COLUMN])
            out[r, k] = out[r, k] + couplings[i, RATIO] * rows[r, i]


def contracted_matrix(couplings: Table, rows: Table, out: Table) -> None:
    """Wᵀ A W for a square matrix A over the rows of the table."""
    for k in range(out.shape[0]):
        for l in range(out.shape[1]):
            out[k, l] = 0.0
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
    """Couplings of the rows on the path to a row, from the base on, over the coordinates that these rows follow.

    The coordinates of the path are numbered in the order of the tree.
    """
    path = couplings[path_of(table, row)[::-1]]
    columns = path[:, COLUMN].tolist()
    number = {column: k for k, column in enumerate(sorted(set(columns)))}
    path[:, COLUMN] = [number[column] for column in columns]
    return path
