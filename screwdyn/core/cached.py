"""Properties that are computed once for each object."""

import functools
from typing import Any, Self, TypeVar, overload

__all__ = ["cached_property"]

T = TypeVar("T")


class cached_property(functools.cached_property[T]):
    """``functools.cached_property`` without a lock, as in Python 3.12 and later.

    In Python 3.11, all objects of a class share a lock, which takes a microsecond. Without it, two threads that read
    the property at the same time may both compute it.
    """

    attrname: str

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...
    def __get__(self, instance: object, owner: type[Any] | None = None) -> Self | T:
        if instance is None:
            return self
        # The dictionary is read first: a tree that changes in the meantime has another one, which this is no value of.
        state = vars(instance)
        value = state[self.attrname] = self.func(instance)
        return value
