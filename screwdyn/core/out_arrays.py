"""Arrays that results are written to: what they must be, and what they may share."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from screwdyn.core.errors import ShapeError
from screwdyn.core.types import Array

__all__ = ["apart", "check", "hand_over"]

Shape = tuple[int, ...]


def check(out: Any, shapes: Sequence[Shape]) -> None:
    """Refuse what results of these shapes cannot be written to.

    Parameters
    ----------
    out : tuple
        An array of float64 for each result, in any layout.

    Raises
    ------
    ShapeError
        Naming the array and what is wrong with it.
    """
    if not isinstance(out, tuple) or len(out) != len(shapes):
        got = f"a tuple of {len(out)}" if isinstance(out, tuple) else _kind(out)
        raise ShapeError(f"out must be a tuple of {len(shapes)} arrays; got {got}")
    for k, (array, shape) in enumerate(zip(out, shapes, strict=True)):
        what = "out" if len(out) == 1 else f"out[{k}]"
        if not isinstance(array, np.ndarray) or array.dtype != np.float64 or not array.dtype.isnative:
            raise ShapeError(f"{what} must be an array of float64; got {_kind(array)}")
        if array.shape != shape:
            raise ShapeError(f"{what} has shape {array.shape}; the result has shape {shape}")
        if not array.flags.writeable:
            raise ShapeError(f"{what} cannot be written to; pass an array that can")
        if _folded(array):
            raise ShapeError(f"{what} has entries that lie on top of each other; pass an array of its own memory")
        if any(np.shares_memory(array, other) for other in out[:k]):
            raise ShapeError(f"{what} must have memory of its own; it overlaps another array of out")


def apart(array: Array, others: Iterable[Array]) -> bool:
    """Whether an array surely shares no memory with others."""
    return not any(np.may_share_memory(array, other) for other in others)


def hand_over(results: Sequence[Array], out: Sequence[Array] | None) -> tuple[Array, ...]:
    """The results; in ``out``, which has been checked, if that is given."""
    if out is None:
        return tuple(results)
    for result, array in zip(results, out, strict=True):
        if result is not array:
            array[...] = result
    return tuple(out)


def _kind(thing: Any) -> str:
    if isinstance(thing, np.ndarray):
        return f"an array of {thing.dtype}"
    return "nothing" if thing is None else f"a {type(thing).__name__}"


def _folded(array: Array) -> bool:
    """Whether entries may share memory with one another: no step is longer than all that lies within it."""
    if array.flags.c_contiguous or array.flags.f_contiguous:
        return False
    reach = array.itemsize
    for step, length in sorted((abs(step), length) for step, length in zip(array.strides, array.shape, strict=True)):
        if length > 1:
            if step < reach:
                return True
            reach += step * (length - 1)
    return False
