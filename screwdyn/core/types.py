"""Array types, names and texts, signatures, properties computed once, dictionaries that grow, and output arrays."""

import dataclasses
import functools
import html
import inspect
import re
from collections import ChainMap
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from itertools import chain
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from screwdyn.core.errors import ShapeError

__all__ = ["NAME", "Array", "ArrayLike", "Entries", "Flags", "Indices", "Layered", "Text", "aligned", "apart"]
__all__ += ["cached_property", "check_out", "given_fields", "growing", "hand_over", "html_table", "is_name"]
__all__ += ["printable", "spelled_out", "written"]

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]
ArrayLike = npt.ArrayLike

P = ParamSpec("P")
T = TypeVar("T")
Value = TypeVar("Value")

# What a name must be, for messages.
NAME = "a non-blank string without control characters"
# Terminals, figures and files act on controls and on marks that turn the direction of text, or cannot hold surrogates.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def is_name(value: Any) -> bool:
    """Whether a value can be the name of a link or a joint."""
    return isinstance(value, str) and value.strip() != "" and (value.isprintable() or _CONTROL.search(value) is None)


def printable(text: str) -> str:
    """The text with control characters as Python writes them."""
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


def aligned(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """The lines of a table of texts, whose columns are flush left, or flush right if their indices are given."""
    columns = enumerate(zip(*rows, strict=True))
    formats = [f"{'>' if k in right else '<'}{max(map(len, column))}" for k, column in columns]
    return ["  ".join(map(format, row, formats)).rstrip() for row in rows]


def given_fields(value: Any) -> list[tuple[dataclasses.Field[Any], Any]]:
    """The fields of a dataclass that are not at their defaults, and their values."""
    return [
        (field, x)
        for field in dataclasses.fields(value)
        if (x := getattr(value, field.name)) is not field.default
        and not (isinstance(x, float | str) and x == field.default)
    ]


class Text(str):
    """A text of several lines, whose representation is the text itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """For notebooks."""
        return f"<pre>{html.escape(self)}</pre>"


# Rows of a table in a notebook.
_MOST_ROWS = 40


def html_table(caption: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for notebooks; of many rows the first ones."""

    def line(row: Sequence[str], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in row)}</tr>"

    lines = [line(header, "th")] * bool(rows) + [line(row, "td") for row in rows[:_MOST_ROWS]]
    more = f"; {len(rows) - _MOST_ROWS} rows are not shown" if len(rows) > _MOST_ROWS else ""
    return f"<table><caption>{html.escape(caption)}{more}</caption>{''.join(lines)}</table>"


def spelled_out(defaults: Mapping[str, Any]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Write the options of a function of ``**own: Unpack[Options]`` out in its signature, with these defaults."""

    def decorated(make: Callable[P, T]) -> Callable[P, T]:
        signature = inspect.signature(make)
        *own, options = signature.parameters.values()
        hints = make.__globals__[options.annotation.removeprefix("Unpack[").removesuffix("]")].__annotations__
        for name in defaults:
            if name in hints:
                kind, hint = inspect.Parameter.KEYWORD_ONLY, hints[name].__forward_arg__
                own.append(inspect.Parameter(name, kind, default=defaults[name], annotation=hint))
        names = {parameter.name for parameter in own}

        @functools.wraps(make)
        def checked(*args: P.args, **kwargs: P.kwargs) -> T:
            if not names.issuperset(kwargs):
                wrong = next(name for name in kwargs if name not in names)
                raise TypeError(f"{make.__name__}() got an unexpected keyword argument {wrong!r}")
            return make(*args, **kwargs)

        checked.__signature__ = signature.replace(parameters=own)  # type: ignore[attr-defined]
        return checked

    return decorated


if TYPE_CHECKING:
    cached_property = functools.cached_property
else:

    class cached_property(functools.cached_property):
        """``functools.cached_property`` without a lock, as in Python 3.12 and later.

        In Python 3.11, all objects of a class share a lock, which takes a microsecond. Without it, two threads that
        read the property at the same time may both compute it.
        """

        def __get__(self, instance: object, owner: Any = None) -> Any:
            if instance is None:
                return self
            # The dictionary is read first: a tree that changes meanwhile has another one, which this is no value of.
            state = vars(instance)
            value = state[self.attrname] = self.func(instance)
            return value


# Number of entries from which copies share some; a dictionary of fewer is copied in the time that sharing takes.
_MANY = 1000


class Layered(ChainMap[str, Value]):
    """Two dictionaries, of the last entries and of those before, without a common name, as one in their order."""

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(reversed(self.maps))

    def __len__(self) -> int:
        return sum(map(len, self.maps))

    def copy(self) -> dict[str, Value]:  # type: ignore[override]
        """A dictionary of all entries."""
        last, before = self.maps
        together = dict(before)
        together.update(last)
        return together

    def values(self) -> ValuesView[Value]:
        """As of a dictionary."""
        return self.copy().values()

    def items(self) -> ItemsView[str, Value]:
        """As of a dictionary."""
        return self.copy().items()


Entries: TypeAlias = dict[str, Value] | Layered[Value]


def growing(entries: Entries[Value], further: int) -> Entries[Value]:
    """A copy for entries that are only added: one at a time, in amortized time of the square root of their number."""
    if len(entries) >= _MANY:
        last, before = ({}, entries) if isinstance(entries, dict) else entries.maps
        if (len(last) + further) ** 2 < 4 * len(before):
            return Layered(dict(last), before)
    return entries.copy()


def check_out(out: Any, shapes: Sequence[tuple[int, ...]]) -> None:
    """Raise ShapeError unless ``out`` is a tuple of writable float64 arrays of these shapes that do not overlap."""
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
    """Return the results, copied to ``out`` if it is given; ``out`` has passed :func:`check_out`."""
    if out is None:
        return tuple(results)
    for result, array in zip(results, out, strict=True):
        if result is not array:
            array[...] = result
    return tuple(out)


def written(results: Sequence[Array], out: Any) -> tuple[Array, ...]:
    """Return the results, copied to ``out`` if it is given; ShapeError as by :func:`check_out`."""
    if out is not None:
        check_out(out, [x.shape for x in results])
    return hand_over(results, out)


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
