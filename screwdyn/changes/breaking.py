"""Loops that open when they cannot bear their wrench: hooks, suction cups, bolts, hands (docs/mathematics.md §14)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from typing import Annotated, Any

import numpy as np

from screwdyn.changes.change import LoopRef, Scheduled
from screwdyn.changes.loops import LoopEvent, Open
from screwdyn.core import Array, ScrewdynError, ShapeError, expressions
from screwdyn.mechanism import Handle
from screwdyn.physics import Robot, State
from screwdyn.physics.closure import Closure
from screwdyn.screws.screw import frame_along

Number = Annotated[float, "number"]
Vector = Annotated[Any, "vector"]
Rows = Annotated[Any, "rows"]
_SHAPES = {"axis": (3,), "at": (3,), "points": (-1, 3), "normals": (-1, 3)}
# Share of its size by which a wrench is one that no forces at the points of a hand give; its level then.
_OUTSIDE, _NEVER = 1e-9, 1e3
# Roundness of the tips of cones, tolerance of the share, and what may be left of the laws, relative to the force.
_TIP, _FOUND, _LEFT = 1e-10, 1e-13, 1e-9


@dataclass(frozen=True, eq=False)
class Limit(ABC):
    """What a loop bears of [n; f], the wrench of ``to`` on ``link`` about the origin of ``link`` and in its axes.

    Points and axes are in the frame of ``link`` too. Raises ShapeError for numbers out of range.
    """

    def __post_init__(self) -> None:
        for name in (own.name for own in fields(self)):
            given, shape = getattr(self, name), _SHAPES.get(name, ())
            found = np.asarray(expressions.read_or_nan(given))
            least = (
                np.linalg.norm(found, axis=-1).min(initial=np.inf)
                if name in ("axis", "normals")
                else found.min(initial=np.inf)
            )
            fits = (
                found.ndim == len(shape) and found.shape[-1:] == shape[-1:] and found.size and np.isfinite(found).all()
            )
            if not fits or (name not in ("at", "points") and not (least > 0 or (name == "friction" and least == 0))):
                wanted = {0: "a number > 0", 1: "three numbers", 2: "rows of three numbers"}[len(shape)]
                wanted += ", not all zero" if name in ("axis", "normals") else ""
                raise ShapeError(f"{name}= of a {type(self).__name__} must be {wanted}; got {given!r}")
            if name in ("axis", "normals"):
                found = found / np.linalg.norm(found, axis=-1, keepdims=True)
            object.__setattr__(self, name, found if shape else float(found))

    @classmethod
    def kind(cls) -> str:
        """What files call the kind."""
        return next(name for name, kind in LIMITS.items() if kind is cls)

    @abstractmethod
    def level(self, n: Array, f: Array) -> float:
        """A number that is positive if the loop does not bear a moment and a force, (3,) each."""


@dataclass(frozen=True, eq=False)
class Pull(Limit):
    """A magnet, a hook, a rope: the loop opens if ``to`` pulls ``link`` with more than a force.

    Parameters
    ----------
    force : float
        N.
    axis : (3,) array
        From ``to`` towards ``link``; a pull is against it.
    """

    force: Number
    axis: Vector = (0.0, 0.0, 1.0)

    def level(self, n: Array, f: Array) -> float:
        """−a · f − F."""
        return float(-self.axis @ f - self.force)


@dataclass(frozen=True, eq=False)
class SuctionCup(Limit):
    """A suction cup, whose rim pushes with N = Δp S + a · f: it comes off, slips, tilts or turns.

    It bears N ≥ 0, a force of μ N across its axis, and moments of ρ N / 2 across and ⅔ μ ρ N about it, at its middle.

    Parameters
    ----------
    pressure : float
        Δp, below that of the air, Pa.
    radius : float
        ρ, m; the area is S = π ρ².
    friction : float
        μ of the rim.
    axis : (3,) array
        a, from ``to`` towards ``link``.
    at : (3,) array
        Its middle, m.
    """

    pressure: Number
    radius: Number
    friction: Number = 0.5
    axis: Vector = (0.0, 0.0, 1.0)
    at: Vector = (0.0, 0.0, 0.0)

    def level(self, n: Array, f: Array) -> float:
        """The largest excess, N or, of moments, N m."""
        a, mu, rho = self.axis, self.friction, self.radius
        n, N = n - np.cross(self.at, f), self.pressure * np.pi * rho**2 + a @ f
        slip, tilt = (float(np.linalg.norm(x - a * (a @ x))) for x in (f, n))
        return float(max(-N, slip - mu * N, tilt - rho * N / 2, abs(a @ n) - 2 / 3 * mu * rho * N))


@dataclass(frozen=True, eq=False)
class Bolt(Limit):
    """A bolt or a weld, which bears (f / F)² + (n / N)² ≤ 1 of a force f and a moment n.

    Parameters
    ----------
    force, moment : float
        F, N, and N, N m, each alone.
    at : (3,) array
        The point about which moments are, m.
    """

    force: Number
    moment: Number
    at: Vector = (0.0, 0.0, 0.0)

    def level(self, n: Array, f: Array) -> float:
        """(f / F)² + (n / N)² − 1, of lengths."""
        n = n - np.cross(self.at, f)
        return float(f @ f / self.force**2 + n @ n / self.moment**2 - 1)


@dataclass(frozen=True, eq=False)
class Hand(Limit):
    """Fingers that hold by friction: pushes λ_n ≤ F at points, each with a force up to μ λ_n across its normal.

    The hand presses no more than it must. Points have no extent: a soft finger, which also bears a moment about its
    normal, is several points.

    Parameters
    ----------
    points : (k, 3) array
        Where fingers touch ``link``, m.
    normals : (k, 3) array
        Into ``link``.
    force : float
        F, the largest push of a finger, N.
    friction : float
        μ.
    """

    points: Rows
    normals: Rows
    force: Number
    friction: Number = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.shape(self.points) != np.shape(self.normals):
            raise ShapeError(f"a Hand needs a normal for each point; got {len(self.normals)} for {len(self.points)}")

    def level(self, n: Array, f: Array) -> float:
        """The least largest push that bears the wrench, as a share of F, less 1 (a program over cones)."""
        from scipy.optimize import minimize

        middle, k, mu = np.mean(self.points, axis=0), len(self.points), self.friction
        axes = np.array([np.reshape(frame_along(a), (3, 3)).T[[2, 0, 1]] for a in self.normals])
        arms = self.points - middle
        size = max(float(np.abs(arms).max()), 1e-9)
        G = np.concatenate([np.cross(arms[:, None], axes) / size, axes], axis=-1).reshape(3 * k, 6).T
        F = np.concatenate([(n - np.cross(middle, f)) / size, f]) / self.force
        U, sizes, _ = np.linalg.svd(G, full_matrices=False)
        U = U[:, sizes > _OUTSIDE * sizes[0]]
        A, b, e = np.pad(U.T @ G, ((0, 0), (0, 1))), U.T @ F, np.eye(3 * k + 1)
        if np.linalg.norm(F - U @ b) > _OUTSIDE * (1 + np.linalg.norm(F)):
            return _NEVER

        # Of x = [λ / F; share], in which the tips of cones are round.
        def within(x: Array) -> Array:
            push, slip = x[:-1:3], np.sqrt(x[1:-1:3] ** 2 + x[2:-1:3] ** 2 + _TIP**2)
            return np.concatenate([mu * push - slip + _TIP, x[-1] - push])

        def slopes(x: Array) -> Array:
            slip = np.sqrt(x[1:-1:3] ** 2 + x[2:-1:3] ** 2 + _TIP**2)[:, None]
            across = x[1:-1:3, None] * e[1:-1:3] + x[2:-1:3, None] * e[2:-1:3]
            return np.concatenate([mu * e[:-1:3] - across / slip, e[-1] - e[:-1:3]])

        laws = [
            {"type": "eq", "fun": lambda x: A @ x - b, "jac": lambda x: A},
            {"type": "ineq", "fun": within, "jac": slopes},
        ]
        start = np.linalg.lstsq(A, b, rcond=None)[0] + e[-1]
        found = minimize(lambda x: x[-1], start, jac=lambda x: e[-1], method="SLSQP", constraints=laws, tol=_FOUND).x
        left = max(np.abs(A @ found - b).max(), -within(found).min())
        return float(found[-1] - 1) if left < _LEFT else _NEVER


# What files call the limits.
LIMITS: dict[str, type[Limit]] = {"pull": Pull, "suction_cup": SuctionCup, "bolt": Bolt, "hand": Hand}


@dataclass(frozen=True, eq=False, repr=False)
class Break(Scheduled[LoopEvent]):
    """A loop opens as soon as its wrench leaves a limit in :func:`simulate` (docs/mathematics.md §14).

    The wrench includes what the torques, the joints, other loops and contacts cause, but no impulses of impacts. Loops
    that share a load by more constraints than it determines have wrenches of least norm.

    Parameters
    ----------
    what : Handle or str
        The loop, which may be closed later.
    limit : Pull, SuctionCup, Bolt or Hand
    time : float, optional
        From when on the limit counts, s; from the start of the run by default.

    Raises
    ------
    ScrewdynError
        If the limit is none of these, or a condition is given.
    """

    verb = "break"

    what: LoopRef = field(metadata={"key": "loop"})
    limit: Annotated[Limit, "limit"]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.limit, Limit) or self.when is not None:
            raise ScrewdynError(
                f"a Break needs a Pull(…), SuctionCup(…), Bolt(…) or Hand(…) and no when=; got {self.limit!r}; use "
                f"Open(…, when=) for other conditions"
            )

    @property
    def watched(self) -> bool:
        """True."""
        return True

    @property
    def loop(self) -> str:
        """Name of the loop."""
        return self.what.name if isinstance(self.what, Handle) else self.what

    def level(self, t: float, state: State, force: Array | None = None) -> float:
        """The level of the limit with all joint forces, (nv,); below zero before the time and without the loop."""
        if t < (self.time or 0.0) or self.loop not in state.tree.loops:
            return -1.0
        closure, force = Closure(state.tree), np.zeros(len(state.qd)) if force is None else force
        found = closure.multipliers(state.q, state.qd, force)[0]
        F = next(N @ found[rows] for loop, N, rows in closure.own() if loop.name == self.loop)
        return self.limit.level(F[:3], F[3:])

    def enact(self, tree: Robot, state: State) -> LoopEvent:
        """All rates continue."""
        return Open(self.what).enact(tree, state)

    def restructure(self, tree: Robot) -> None:
        """Open the loop."""
        Open(self.what).restructure(tree)
