"""The arguments of formulations: states are checked, and expressions recorded, so that they share intermediates."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import ShapeError
from screwdyn.core.types import Array, ArrayLike

__all__ = ["Stated", "numbers", "symbolic"]

_STATES = frozenset(("q", "qd", "qdd", "theta", "thetad"))


class Stated:
    """A class with public methods that take states under the names q, qd and qdd, or theta and thetad.

    If the arguments of such a method or the attributes of its object have expressions, it runs with traced scalars in
    their place, and its results are converted to expressions: equal operations occur once, and no product of sums is
    multiplied out.
    """

    _symbolic: bool  # whether its attributes have expressions

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, method in [*vars(cls).items()]:
            public = inspect.isfunction(method) and not name.startswith("_")
            if public and not _STATES.isdisjoint(inspect.signature(method).parameters):
                setattr(cls, name, _recording(method))


def _recording(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that records expressions."""
    signature = inspect.signature(method)

    @functools.wraps(method)
    def call(self: Stated, *args: Any, **kwargs: Any) -> Any:
        found = symbolic([x for x in (*args, *kwargs.values()) if getattr(x, "dtype", None) != np.float64])
        if not (found or self._symbolic) or not all(map(expressions.is_expression, found)):
            return method(self, *args, **kwargs)
        from screwdyn.backends.sympy.closed_form import Derivation

        derivation = Derivation()

        def traced(x: Array) -> Array:
            return derivation.scalars(x.flat).astype(object).reshape(x.shape)

        given = signature.bind(self, *args, **kwargs).arguments
        del given["self"]
        for name in _STATES & given.keys():
            given[name] = numbers(given[name], name)
        if isinstance(wrenches := given.get("wrenches"), Mapping):
            given["wrenches"] = {link: numbers(x, f"the wrench on {link!r}") for link, x in wrenches.items()}
        twin = copy.copy(self)
        vars(twin).update(_mapped(traced, vars(self)), _symbolic=False)
        return _mapped(derivation.expressions, method(twin, **_mapped(traced, given)))

    return call


def numbers(x: ArrayLike, what: str) -> Array:
    """An array of finite floats; of objects, as given, if some entries are expressions or traced scalars."""
    try:
        given = np.asarray(x)
        plain = given.dtype != object
        values = expressions.real(given if plain else [entry for entry in given.flat if not _is_symbolic(entry)])
    except (TypeError, ValueError):
        raise ShapeError(f"{what} must be numbers; got {x!r}") from None
    if not np.isfinite(values).all():
        raise ShapeError(f"{what} has entries that are not finite: {given.tolist()}")
    return given if values.size < given.size else values.reshape(given.shape)


def symbolic(x: Any) -> list[Any]:
    """The expressions and traced scalars in nested containers."""
    found: list[Any] = []

    def noted(a: Array) -> Array:
        found.extend(filter(_is_symbolic, a.flat))
        return a

    _mapped(noted, x)
    return found


def _is_symbolic(x: Any) -> bool:
    """Whether a number is an expression, or a scalar with sines and cosines of its own, such as a traced one."""
    return expressions.is_expression(x) or hasattr(x, "cos")


def _mapped(f: Callable[[Any], Any], x: Any) -> Any:
    """Nested containers with f of all arrays of objects, and of all expressions and traced scalars."""
    if isinstance(x, np.ndarray):
        return f(x) if x.dtype == object else x
    if isinstance(x, Mapping):
        return {key: _mapped(f, part) for key, part in x.items()}
    if isinstance(x, tuple | list):
        parts = [_mapped(f, part) for part in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    return f(np.array([x]))[0] if _is_symbolic(x) else x
