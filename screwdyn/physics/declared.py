"""Types of the methods of quantities, for type checkers and editors: with ``out`` on objects that take it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, overload

__all__ = ["Declared", "TakesOut"]

P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class TakesOut:
    """A class whose methods of quantities take ``out``: an array of float64 for the result, or a tuple of arrays."""


class _WithOut(Protocol[P, R]):
    """The same function with and without ``out``; with ``out``, the types of other arguments are not checked."""

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def __call__(self, *args: Any, out: Any, **kwargs: Any) -> R: ...


class Declared(Generic[P, R]):
    """A declaration of :class:`screwdyn.physics.quantities.Quantities`; at run time it is a plain function."""

    @overload
    def __get__(self, form: TakesOut, owner: Any = None) -> _WithOut[P, R]: ...
    @overload
    def __get__(self, form: object, owner: Any = None) -> Callable[P, R]: ...
    def __get__(self, form: object, owner: Any = None) -> Any:
        raise NotImplementedError
