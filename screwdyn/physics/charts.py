"""Joints of several freedoms whose motions form a group, as rows of the table (docs/mathematics.md §7)."""

from typing import Any, NamedTuple

__all__ = ["Charts"]


class Charts(NamedTuple):
    """Where the positions q of a tree with group joints enter the rows of its table.

    Attributes
    ----------
    where : (nv,) array of int64
        Index in q of each row's coordinate; −1 for rows of a group joint, whose coordinates are 0.
    groups : (G, 13) array
        For each group joint its first row, its first position, how many positions its orientation takes (4: a unit
        quaternion, scalar last; 1: an angle), how many translations follow, and A, the axes of the joint in the first
        row's frame, row by row.
    terms : (T, 4) array
        m, k, l, c for every term D(ν)_mk += c ν_l.
    """

    where: Any
    groups: Any
    terms: Any
