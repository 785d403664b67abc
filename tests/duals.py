"""Derivatives of formulas at one state by dual numbers, of floats, expressions or traced scalars."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.types import Array


class Dual:
    """A number x and its derivatives dx, (k,); both may be floats, expressions or traced scalars."""

    __slots__ = ("dx", "x")

    def __init__(self, x: Any, dx: Array) -> None:
        self.x, self.dx = x, dx

    def __add__(self, other: Any) -> Dual:
        return Dual(self.x + other.x, self.dx + other.dx) if isinstance(other, Dual) else Dual(self.x + other, self.dx)

    __radd__ = __add__

    def __neg__(self) -> Dual:
        return Dual(-self.x, -self.dx)

    def __sub__(self, other: Any) -> Dual:
        return Dual.__add__(self, -other)

    def __rsub__(self, other: Any) -> Dual:
        return Dual.__add__(-self, other)

    def __mul__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            return Dual(self.x * other.x, self.dx * other.x + other.dx * self.x)
        return Dual(self.x * other, self.dx * other)

    __rmul__ = __mul__

    def cos(self) -> Dual:
        """Cosine."""
        c, s = expressions.cos_sin(self.x)
        return Dual(c, self.dx * -s)

    def sin(self) -> Dual:
        """Sine."""
        c, s = expressions.cos_sin(self.x)
        return Dual(s, self.dx * c)


def partial(f: Callable[[Array], Array], q: Array) -> Array:
    """∂f/∂q, (…, n), of an array function f of q (n,)."""
    return _derivatives(f, q, np.eye(len(q)))


def rate(f: Callable[[Array], Array], q: Array, qd: Array) -> Array:
    """ḟ = Σ_k ∂f/∂q_k q̇_k, of the shape of f."""
    return _derivatives(f, q, qd[:, None])[..., 0]


def _derivatives(f: Callable[[Array], Array], q: Array, seeds: Array) -> Array:
    """Derivatives along the columns of the seeds, (n, k)."""
    moving = np.empty(len(q), dtype=object)
    moving[:] = [Dual(x, seed) for x, seed in zip(q, seeds, strict=True)]
    value, none = f(moving), np.zeros(seeds.shape[1])
    rows = [entry.dx if isinstance(entry, Dual) else none for entry in value.flat]
    return np.array(rows).reshape(*value.shape, seeds.shape[1])
