"""The step of one link from its parent's, by a kernel whose table has the rows of the link's own joint alone."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from screwdyn.backends.kernels.entry import address, machine
from screwdyn.backends.kernels.source import Context
from screwdyn.core.types import Array
from screwdyn.physics.table import COLUMNS

__all__ = ["link_step"]

_PATH, _ABOVE, _TABLE, _MOVED, _PLACES = map(Context._fields.index, ("path", "above", "Table", "Moved", "Places"))


class _Joint(NamedTuple):
    """The context of links with one kind of joint, which lacks their numbers, and the arrays at its addresses."""

    context: Array
    kept: list[np.ndarray]


@functools.cache
def _joint(rows: int, positions: int, group: tuple[int, int] | None) -> _Joint:
    """The context for joints with numbers of rows and positions, and of the orientation and translations of a group."""
    integers = [[-1] * rows, [0, 0, *group] if group else [], range(-1, rows - 1)]
    integers += [[*([0] * rows if group else range(rows)), -1]]
    kept = [np.array(x, np.int64) for x in integers]
    where, groups, parents, firsts = map(address, kept)
    sizes = (1, rows, positions, 1, 0, 0, 1 if group else 0, 0)
    return _Joint(np.array(Context(*sizes, 0, where, groups, 0, 0, 0, parents, firsts), np.int64), kept)


_step = machine.builtin("link_step")


def link_step(
    numbers: Array,
    rows: int,
    group: tuple[int, int] | None,
    path: int,
    state: Sequence[Array],
) -> tuple[Array, ...] | None:
    """The results of the internal quantity ``link_step``; None if they overflow.

    Parameters
    ----------
    numbers : array
        The table of the joint's rows, and the place of the link.
    rows : int
        Number of rows of the joint.
    group : (int, int) or None
        Numbers of the positions of the orientation and of the translations of a group joint.
    path : int
        Number of freedoms on the path to the link.
    state : sequence of arrays
        The arguments of the quantity.
    """
    context = _joint(rows, len(state[0]), group).context.copy()
    at = address(numbers)
    context[_PATH], context[_ABOVE] = path, len(state[-1])
    context[_TABLE], context[_PLACES] = at, at + 8 * COLUMNS * (rows + 1)
    if group:
        moved = numbers.copy()
        context[_MOVED] = address(moved)
    found: tuple[Array, ...] | None = _step(context, *state)
    return found
