"""Checks of the arrays that are given as ``out``, and writing of results to them."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from screwdyn.core.errors import ShapeError
from screwdyn.core.types import Array

__all__ = ["apart", "check", "hand_over"]

Shape = tuple[int, ...]


def check(out: Any, shapes: Sequence[Shape]) -> None:
    """Check that results of these shapes can be written to ``out``.

    Parameters
    ----------
    out : tuple
        A float64 array for each result, in any layout.
    shapes : sequence of tuple of int
        The shapes of the results.

    Raises
    ------
    ShapeError
        If an array has another type or shape, is read-only, or overlaps itself or another array of ``out``.
    """
    if not isinstance(out, tuple) or len(out) != len(shapes):
        got = f"a tuple of {len(out)}" if isinstance(out, tuple) else _kind(out)
        raise ShapeError(f"out must be a tuple of {len(shapes)} arrays; got {got}")
    for k, (array, shape) in enumerate(zip(out, shapes, strict=True)):
        what = "out" if len(out) == 1 else f"out[{k}]"
        if isinstance(array, np.ma.MaskedArray):
            raise ShapeError(f"{what} is a masked array; pass a plain one")
        if not isinstance(array, np.ndarray) or array.dtype != np.float64 or not array.dtype.isnative:
            raise ShapeError(f"{what} must be an array of float64; got {_kind(array)}")
        if array.shape != shape:
            raise ShapeError(f"{what} has shape {array.shape}; the result has shape {shape}")
        if not array.flags.writeable:
            raise ShapeError(f"{what} is read-only; pass a writable array")
        if _folded(array):
            raise ShapeError(f"{what} has entries that overlap in memory; pass an array without overlapping strides")
        if any(np.shares_memory(array, other) for other in out[:k]):
            raise ShapeError(f"{what} overlaps another array of out; pass arrays that do not share memory")


def apart(array: Array, others: Iterable[Array]) -> bool:
    """Whether an array is known to share no memory with the others, by the bounds of their memory."""
    return not any(np.may_share_memory(array, other) for other in others)


def hand_over(results: Sequence[Array], out: Sequence[Array] | None) -> tuple[Array, ...]:
    """Return the results, copied to ``out`` if it is given; ``out`` has passed :func:`check`."""
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
    """Whether the array may overlap itself: a stride is smaller than the extent of the axes of smaller strides."""
    if array.flags.c_contiguous or array.flags.f_contiguous:
        return False
    reach = array.itemsize
    for step, length in sorted((abs(step), length) for step, length in zip(array.strides, array.shape, strict=True)):
        if length > 1:
            if step < reach:
                return True
            reach += step * (length - 1)
    return False
