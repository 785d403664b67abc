"""Properties that are computed once."""

import functools
from typing import Any, Self, TypeVar, overload

__all__ = ["cached_property"]

T = TypeVar("T")


class cached_property(functools.cached_property[T]):
    """``functools.cached_property`` without a lock, as it is from Python 3.12 on.

    The lock of Python 3.11 is one for all objects of a class, and takes a microsecond. Two threads that ask for a
    value at once may both compute it.
    """

    attrname: str

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...
    def __get__(self, instance: object, owner: type[Any] | None = None) -> Self | T:
        if instance is None:
            return self
        value = vars(instance)[self.attrname] = self.func(instance)
        return value
