"""Forces with bounds: unilateral contact with Coulomb's friction, dry friction of joints, inelastic stops.

docs/mathematics.md §13.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from screwdyn.core import Array, ContactError

# What may remain of the natural map, relative to the forces.
EXACT = 1e-13
# Newton steps from one start, and singular values of their equations, relative to the largest, that count as zero:
# those that may be rounding, or only those that are, because feet may be almost redundant.
STEPS, RANKS = 40, (1e-11, 1e-14)
# Parts of a step of which the first is taken that reduces what is left, or the last.
HALVES = 0.5 ** np.arange(4)
# Sweeps of Gauss-Seidel, then steps in which rows harden, then convex problems, after which Newton's method begins
# anew; last, random forces after a few sweeps, and their number.
SWEEPS, HARDER, PROBLEMS, FEW, GUESSES = (0, 20, 200), (60, 200), (5, 20, 80), 3, 200
# Softness of the hardest rows, relative to their mobility.
HARD = 1e-6
# Gradient steps for one convex problem.
GRADIENTS = 60
# Asymmetry, relative to the largest entry, of a symmetric G.
SYMMETRIC = 1e-12


class Cone(NamedTuple):
    """Friction of one contact: the two ``tangents`` bear at most ``friction`` times the force of the row ``normal``."""

    normal: int
    tangents: tuple[int, int]
    friction: float


def forces(
    G: Array,
    b: Array,
    low: Array,
    high: Array,
    cones: Sequence[Cone] = (),
    start: Array | None = None,
    terms: Array | None = None,
) -> Array:
    """The forces λ, (n,), with the rates or accelerations u = G λ + b that their laws allow.

    A row that is in no cone has low_i ≤ λ_i ≤ high_i, with u_i = 0 in between, u_i ≥ 0 at the lower bound and u_i ≤ 0
    at the upper one. [0, ∞) is a contact or a stop that pushes, [−F, F] dry friction, [c, c] a given force. In a cone
    |λ_t| ≤ μ λ_n, with u_t = 0 inside, and λ_t against u_t on its surface.

    Block Gauss-Seidel, if that cycles rows that yield to their forces ever less, De Saxcé's fixed point of convex
    problems, and last random forces find which rows are at their bounds; Newton's method on the natural map ends at
    rounding. What is returned has been checked.

    Parameters
    ----------
    G : (n, n) array
        R P Cᵀ with the rows R of what is constrained, the columns C of the forces and the mobility P. It may be
        singular; then u is unique, and λ is one of several unless a bound decides. A row of zeros has its bound
        against b.
    b : (n,) array
        u without these forces. Of impulses λ, u are rates; of forces λ, accelerations.
    low, high : (n,) arrays
        Bounds of rows, which may be infinite. The normal of a cone has its own, such as 0 and ∞; those of tangents are
        not read.
    cones : sequence of Cone
        Contacts with friction; in a plane mechanism the row of the second tangent is zero.
    start : (n,) array, optional
        Forces near the solution, such as those a moment ago. By default, those that would hold all rows.
    terms : (n,) array, optional
        Size of the largest terms of which b is the sum, whose rounding error redundant rows cannot remove.

    Raises
    ------
    ContactError
        If no λ was found with which the natural map λ − proj(λ − u) is below 1e-13 of the forces and terms.
    """
    law = _Law(G, b, low, high, cones, terms)
    x = least(law.G, -law.b, RANKS[0])[0] if start is None else start / law.scale
    problems = PROBLEMS if law.symmetric else ()
    stages = (law.swept, SWEEPS), (law.hardened, HARDER), (law.convex, problems), (law.guessed, range(GUESSES))
    with np.errstate(over="ignore", invalid="ignore"):  # where there is no solution
        for improved, counts in stages:
            for count in counts:
                x = improved(x, count)
                for rank in RANKS:
                    found, left = law.newton(x, rank)
                    if left <= EXACT:
                        return law.scale * found
    raise ContactError(
        f"the forces of contacts, friction and stops were not found: what is left of their law is {left:.1e} of the "
        f"forces; with large friction, rigid bodies may have no solution. Reduce friction=, or the number of contacts"
    )


def least(A: Array, y: Array, smallest: float) -> tuple[Array, int]:
    """The shortest x with A x = y, in the sense of least squares, for a square A, and its rank.

    Singular values below ``smallest``, relative to the largest, count as zero. An orthogonal factorization is faster,
    but was seen to keep one that was rounding, whose noise was 1e-6 of the forces.
    """
    if not y.size:
        return y, 0
    (solve,) = lapack("dgelsd")
    x, _, rank, _ = solve(A, y, *_space(len(y)), smallest)
    return x, rank


@functools.cache
def lapack(*names: str) -> tuple[Any, ...]:
    """Functions of LAPACK, which are loaded with the first one."""
    from scipy.linalg import lapack as functions

    return tuple(getattr(functions, name) for name in names)


@functools.cache
def _space(n: int) -> tuple[int, int]:
    """Sizes of the work arrays for n equations of n numbers."""
    size, integers, _ = lapack("dgelsd_lwork")[0](n, n, 1)
    return int(size), integers


class _Law:
    """The law of :func:`forces` for x = λ / scale, so that the diagonal of G is 1, and 1 in total for two tangents."""

    def __init__(self, G: Array, b: Array, low: Array, high: Array, cones: Sequence[Cone], terms: Array | None) -> None:
        self.N = np.array([cone.normal for cone in cones], dtype=np.intp)
        self.T = np.array([cone.tangents for cone in cones], dtype=np.intp).reshape(-1, 2)
        size = np.abs(G.diagonal())
        size[self.T] = size[self.T].sum(axis=1, keepdims=True)
        moves = size > 0
        self.scale = 1 / np.sqrt(np.where(moves, size, 1.0))
        self.G, self.b = G * self.scale * self.scale[:, None], b * self.scale
        self.dz = np.eye(len(b)) - self.G
        self.size = np.abs((b if terms is None else terms) * self.scale).max(initial=0.0)
        if not moves.all():  # a row that cannot move has the force against b
            fixed, moves = np.where(b > 0, low, high), moves | (b == 0)
            low, high = np.where(moves, low, fixed), np.where(moves, high, fixed)
        self.low, self.high = low / self.scale, high / self.scale
        self.low[self.T], self.high[self.T] = -np.inf, np.inf
        self.friction = np.array([cone.friction for cone in cones]) * self.scale[self.N] / self.scale[self.T[:, 0]]
        self.free = self.low[self.N] < self.high[self.N]

    @property
    def symmetric(self) -> bool:
        """Whether G is symmetric, so that problems with fixed slips are convex."""
        return bool(np.abs(self.G - self.G.T).max(initial=0.0) <= SYMMETRIC)

    def newton(self, x: Array, rank: float) -> tuple[Array, float]:
        """Where Newton's method on the natural map x − proj(x − u) ends, and what is left of it there.

        Steps are halved until they reduce it; singular values below ``rank`` count as zero in them.
        """
        left, slope = self._natural(x)
        for _ in range(STEPS):
            rest = _largest(left)
            error = rest / max(rest, self.size, _largest(x)) if rest else 0.0
            if error <= EXACT or not np.isfinite(error):
                break
            step, size = least(slope, left, rank)[0], left @ left
            for share in HALVES:
                near = x - share * step
                left, slope = self._natural(near)
                if left @ left < (1 - 0.1 * share) ** 2 * size:
                    break
            x = near
        return x, error

    def _natural(self, x: Array) -> tuple[Array, Array]:
        """The natural map and its derivative (Alart and Curnier)."""
        z, dz = x - (self.G @ x + self.b), self.dz
        p = np.minimum(np.maximum(z, self.low), self.high)
        slope = ((self.low < z) & (z < self.high))[:, None] * -dz
        y, radius = z[self.T], self.friction * p[self.N]
        length = np.sqrt((y * y).sum(axis=1))
        for k in (length > radius).nonzero()[0].tolist():
            t, d, share = self.T[k], y[k] / length[k], radius[k] / length[k]
            p[t], along = radius[k] * d, share * (d @ dz[t]) + self.friction[k] * slope[self.N[k]]
            slope[t] = d[:, None] * along - share * dz[t]
        slope.flat[:: len(x) + 1] += 1.0
        return x - p, slope

    def swept(self, x: Array, count: int) -> Array:
        """X after sweeps of Gauss-Seidel over rows and pairs of tangents."""
        x, alone = x.copy(), np.delete(np.arange(len(x)), self.T.ravel())
        for _ in range(count):
            for i in alone.tolist():
                x[i] = min(max(x[i] - self.G[i] @ x - self.b[i], self.low[i]), self.high[i])
            for n, t, friction in zip(self.N, self.T, self.friction, strict=True):
                y, radius = x[t] - self.G[t] @ x - self.b[t], friction * x[n]
                x[t] = y * min(1.0, radius / max(float(np.linalg.norm(y)), 1e-300))
        return x

    def convex(self, x: Array, count: int) -> Array:
        """X after convex problems, ½ xᵀ G x + (b + s)ᵀ x in the cones, each with s_n = μ |u_t| of the one before."""
        steepest = max(float(np.linalg.norm(self.G, 2)), 1e-300)
        x = self._in_cones(x)
        for _ in range(count):
            s = self.b.copy()
            s[self.N] += self.friction * np.linalg.norm((self.G @ x + self.b)[self.T], axis=1)
            z, momentum = x, 1.0
            for _ in range(GRADIENTS):
                new = self._in_cones(z - (self.G @ z + s) / steepest)
                if (z - new) @ (new - x) > 0:
                    z, momentum = new, 1.0
                else:
                    later = 0.5 * (1 + np.sqrt(1 + 4 * momentum**2))
                    z, momentum = new + (momentum - 1) / later * (new - x), later
                x = new
        return x

    def hardened(self, _: Array, count: int) -> Array:
        """Forces where each row yields to its own, ever less in so many steps, each from the solution before."""
        G, dz, one = self.G, self.dz, np.eye(len(self.b))
        x = -self.b
        for soft in np.geomspace(1.0, HARD, count).tolist():
            self.G, self.dz = G + soft * one, dz - soft * one
            x = self.newton(x, RANKS[1])[0]
        self.G, self.dz = G, dz
        return x

    def guessed(self, _: Array, seed: int) -> Array:
        """Random forces of any size up to that of the terms, after a few sweeps."""
        rng = np.random.default_rng(seed)
        return self.swept(rng.normal(size=len(self.b)) * self.size * 10.0 ** rng.uniform(-2, 0.5), FEW)

    def _in_cones(self, z: Array) -> Array:
        """The nearest forces within the bounds and cones, which are convex."""
        mu, n = self.friction, z[self.N]
        length = np.linalg.norm(z[self.T], axis=1)
        beyond = self.free & (length > mu * n)
        nearest = np.where(beyond, np.maximum(n + mu * length, 0) / (1 + mu**2), n)
        p = np.clip(z, self.low, self.high)
        p[self.N] = np.where(self.free, np.maximum(nearest, 0), p[self.N])
        p[self.T] *= np.minimum(1.0, mu * p[self.N] / np.maximum(length, 1e-300))[:, None]
        return p


def _largest(x: Array) -> float:
    return float(np.abs(x).max(initial=0.0))
