"""Bhangale 2004, appendix B: turning vectors and tensors from frame i + 1 to frame i, and products of vectors.

A vector is a tuple of three scalars, a symmetric tensor the tuple (11, 12, 22, 13, 23, 33), a matrix nine by rows. Q is
the rotation R_z(θ) R_x(α) of Eq. A.1. The comments are the counts of the paper, or ours where it has none.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

__all__ = ["Matrix", "Q", "Tensor", "Vector", "added", "cross", "shift", "times", "twice_crossed"]

Vector = tuple[Any, Any, Any]
Tensor = tuple[Any, Any, Any, Any, Any, Any]
Matrix = tuple[Any, ...]
_T = TypeVar("_T", bound=tuple[Any, ...])


class Q(NamedTuple):
    """Cosine and sine of θ and α."""

    c: Any
    s: Any
    ca: Any
    sa: Any

    def vector(self, r: Vector) -> Vector:
        """Q r (B.1, with r_y sin α + r_z cos α for the printed difference): 8M 4A."""
        x, y, z = r
        r_c = y * self.ca - z * self.sa
        return x * self.c - r_c * self.s, x * self.s + r_c * self.c, y * self.sa + z * self.ca

    def back(self, r: Vector) -> Vector:
        """Qᵀ r, from frame i to frame i + 1: 8M 4A."""
        x, y, z = r
        r_c = y * self.c - x * self.s
        return x * self.c + y * self.s, r_c * self.ca + z * self.sa, z * self.ca - r_c * self.sa

    def tensor(self, I: Tensor) -> Tensor:
        """Q I Qᵀ: 16M 17A.

        B.2 has these counts for Qᵀ I Q, which turns the other way; here R_x(α) comes first.
        """
        i11, i12, i22, i13, i23, i33 = I
        c, s, ca, sa = self
        b0 = i23 * ca
        b1 = (i22 - i33) * sa + (b0 + b0)
        b2 = i12 * ca - i13 * sa
        b3 = b1 * ca - i23
        b4 = i12 * sa + i13 * ca
        b5 = b1 * sa
        b6 = b2 * c
        b7 = ((i11 - i22) + b5) * s + (b6 + b6)
        b8 = b7 * s
        return i11 - b8, b7 * c - b2, i22 - b5 + b8, b4 * c - b3 * s, b4 * s + b3 * c, i33 + b5

    def matrix(self, X: Matrix) -> Matrix:
        """Q X Qᵀ of any matrix: 24M 22A."""
        c, s, ca, sa = self
        xx, xy, xz, yx, yy, yz, zx, zy, zz = X
        yy, yz, zy, zz = _turned(yy, yz, zy, zz, ca, sa)
        xy, xz = xy * ca - xz * sa, xy * sa + xz * ca
        yx, zx = yx * ca - zx * sa, yx * sa + zx * ca
        xx, xy, yx, yy = _turned(xx, xy, yx, yy, c, s)
        xz, yz = xz * c - yz * s, xz * s + yz * c
        zx, zy = zx * c - zy * s, zx * s + zy * c
        return xx, xy, xz, yx, yy, yz, zx, zy, zz


def _turned(uu: Any, uv: Any, vu: Any, vv: Any, c: Any, s: Any) -> tuple[Any, Any, Any, Any]:
    """R [[uu, uv], [vu, vv]] Rᵀ with R = [[c, −s], [s, c]]: 4M 7A."""
    b = (uu - vv) * s + (uv + vu) * c
    low, off = b * s, b * c
    return uu - low, off - vu, off - uv, vv + low


def cross(a: Vector, b: Vector) -> Vector:
    """a × b: 6M 3A."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def times(m: Any, a: Vector) -> Vector:
    """m a: 3M."""
    return m * a[0], m * a[1], m * a[2]


def added(a: _T, b: _T) -> _T:
    """a + b of vectors, tensors or matrices."""
    return tuple(x + y for x, y in zip(a, b, strict=True))  # type: ignore[return-value]


def twice_crossed(d: Vector, md: Vector) -> Tensor:
    """−d × (m d × 1) (B.2, with −δ_y d_y in the last entry): 6M 3A."""
    x, y, z = (a * b for a, b in zip(d, md, strict=True))
    return z + y, -(md[0] * d[1]), z + x, -(md[0] * d[2]), -(md[1] * d[2]), y + x


def shift(I: Tensor, first: Vector, a: Vector, s: Vector) -> Tensor:
    """I − δ × (a × 1) − a × (s × 1) with s = δ + m a, entry by entry: 18M 18A.

    The upper left block of A_{i+1,i}ᵀ M̃_{i+1} A_{i+1,i}: the tensor of M̃_{i+1} about O_i.
    """
    x, y, z = zip(first, a, s, strict=True)

    def off(u: Vector, v: Vector) -> Any:
        return u[0] * v[1] + u[1] * v[2]

    def own(u: Vector, v: Vector) -> Any:
        return u[0] * u[1] + v[0] * v[1] + u[1] * u[2] + v[1] * v[2]

    return I[0] + own(y, z), I[1] - off(x, y), I[2] + own(z, x), I[3] - off(x, z), I[4] - off(y, z), I[5] + own(x, y)
