"""A model as rows of numbers, and how to read and write them.

The table has a row for each freedom, parents before children, and a last row for gravity:

====== =================================================================
column
====== =================================================================
0-8    R0, orientation of the link in its parent's frame at q = 0
9-11   p0, position of its origin there
12, 13 turn and slide of the joint's screw along z
14     mass of all that is welded to the link
15-17  its first moment about the origin
18-23  its inertia about the origin (xx, xy, xz, yy, yz, zz)
24     row of the parent, −1 for the base
====== =================================================================

``work`` is scratch space with a row for each freedom and ``WORK`` columns; the first twelve hold R, p.
"""

from typing import Any

from numba.extending import register_jitable

from screwdyn.physics.vectors import Matrix, Symmetric, Vector

TURN, SLIDE, MASS, FIRST_MOMENT, INERTIA, PARENT, COLUMNS = 12, 13, 14, 15, 18, 24, 25
WORK = 72

Table = Any  # a float64 array, or one of recording scalars


@register_jitable
def load3(A: Table, i: int, k: int) -> Vector:
    """Three numbers of row i, from column k on."""
    return (A[i, k], A[i, k + 1], A[i, k + 2])


@register_jitable
def load6(A: Table, i: int, k: int) -> Symmetric:
    """Six numbers of row i, from column k on."""
    return (A[i, k], A[i, k + 1], A[i, k + 2], A[i, k + 3], A[i, k + 4], A[i, k + 5])


@register_jitable
def load9(A: Table, i: int, k: int) -> Matrix:
    """Nine numbers of row i, from column k on."""
    return (
        A[i, k],
        A[i, k + 1],
        A[i, k + 2],
        A[i, k + 3],
        A[i, k + 4],
        A[i, k + 5],
        A[i, k + 6],
        A[i, k + 7],
        A[i, k + 8],
    )


@register_jitable
def store3(A: Table, i: int, k: int, a: Vector) -> None:
    """Write three numbers to row i, from column k on."""
    A[i, k] = a[0]
    A[i, k + 1] = a[1]
    A[i, k + 2] = a[2]


@register_jitable
def store6(A: Table, i: int, k: int, a: Symmetric) -> None:
    """Write six numbers to row i, from column k on."""
    A[i, k] = a[0]
    A[i, k + 1] = a[1]
    A[i, k + 2] = a[2]
    A[i, k + 3] = a[3]
    A[i, k + 4] = a[4]
    A[i, k + 5] = a[5]


@register_jitable
def store9(A: Table, i: int, k: int, a: Matrix) -> None:
    """Write nine numbers to row i, from column k on."""
    A[i, k] = a[0]
    A[i, k + 1] = a[1]
    A[i, k + 2] = a[2]
    A[i, k + 3] = a[3]
    A[i, k + 4] = a[4]
    A[i, k + 5] = a[5]
    A[i, k + 6] = a[6]
    A[i, k + 7] = a[7]
    A[i, k + 8] = a[8]


@register_jitable
def raise3(A: Table, i: int, k: int, a: Vector) -> None:
    """Add to three numbers of row i, from column k on."""
    A[i, k] += a[0]
    A[i, k + 1] += a[1]
    A[i, k + 2] += a[2]
