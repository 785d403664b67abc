"""The arms of a comparison, and their workspaces: which positions a tip can reach, and by which configurations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from reprlib import repr as cut_repr
from typing import NamedTuple, Self

import numpy as np
from scipy.optimize import minimize
from scipy.spatial import cKDTree
from scipy.stats import qmc

from screwdyn.core import Array, Flags, ScrewdynError, UnknownNameError, expressions
from screwdyn.mechanism import check_open, screw_kind
from screwdyn.papers.formulations import denoc
from screwdyn.tree import KinematicTree

Limits = Mapping[str, tuple[float, float]]

# Configurations from which Newton's method starts, and those that are tried for one position.
_CONFIGURATIONS, _STARTS = 2048, 6
_STEPS = 25
# Relative to the size of the workspace.
_TOLERANCE, _FLAT = 1e-6, 1e-9
_REPLICATES = 16
UNITS = {1: "m", 2: "m²", 3: "m³"}  # of the size of a workspace, by dimension


class Arm(NamedTuple):
    """An arm whose joints have one screw for each of their positions: all but spherical, planar and free ones."""

    name: str
    tree: KinematicTree
    formulation: denoc
    tip: str  # the link whose origin works: its positions are the workspace
    low: Array  # range of each position, (n,), rad or m
    high: Array
    turning: Flags  # whether a joint turns by at least 2π, so that its range is no limit to the pose
    units: tuple[str, ...]  # "N m" or "N" for each coordinate

    @classmethod
    def of(cls, name: str, tree: KinematicTree, tip: str | None, limits: Limits) -> Self:
        """The arm with given limits, those of its joints, or full turns; errors as for :func:`selection.compare`."""
        check_open(tree.topology, f"the comparison of arms, for {name!r},")
        joints = {joint: tree.joint(joint) for joint in tree.joints if tree.joint(joint).nv}
        if wrong := [f"{joint!r} is {x.kind}" for joint, x in joints.items() if x.chart is not None]:
            raise ScrewdynError(f"the positions of {', '.join(wrong)} in {name!r}, have no ranges; replace the joint")
        for given in limits:
            UnknownNameError.check(given, tree.positions, f"position of {name!r}")
        kinds = [screw_kind(S) for joint in joints.values() for S in joint.screws.T]
        own = {p: joint.limits for j, joint in joints.items() for p in joint.position_names(j)}
        ranges, endless = [], []
        for position, moves in zip(tree.positions, kinds, strict=True):
            what = f"the range of {position!r} of {name!r}"
            found = _bounds(limits[position], what) if position in limits else own[position]
            if found is None or not np.isfinite(found).all():
                if moves != "revolute":
                    endless.append(position)
                found = (-np.pi, np.pi)
            if not found[0] < found[1]:
                raise ScrewdynError(f"{what} is empty: {found[0]:g} to {found[1]:g}")
            ranges.append(found)
        if endless:
            raise ScrewdynError(
                f"{', '.join(map(repr, endless))} of {name!r} can slide without end; give the joints limits, or ranges "
                f"for the comparison: limits={{{name!r}: {{{endless[0]!r}: (0, 1), …}}}} "
                f"(of the command: --limits {name}:{endless[0]}=0,1)"
            )
        if tip is None:
            paths = {link: tree.graph.subgraph(tree.path(link)) for link in reversed(tree.links)}
            tip = max(paths, key=lambda link: sum(joint.nv for *_, joint in paths[link].edges(data="joint")))
        elif tip not in tree.links:
            raise UnknownNameError.of(tip, tree.links)
        low, high = np.array(ranges, dtype=float).reshape(-1, 2).T
        turning = np.array([moves == "revolute" for moves in kinds], dtype=bool) & (high - low > 2 * np.pi - 1e-9)
        units = tuple("N" if moves == "prismatic" else "N m" for moves in kinds)
        return cls(name, tree, denoc(tree), tip, low, high, turning, units)


def _bounds(given: object, what: str) -> tuple[float, float]:
    found: Array = expressions.read_or_nan(given)
    if found.shape != (2,) or not np.isfinite(found).all():
        raise ScrewdynError(f"{what} must be two finite numbers (low, high); got {cut_repr(given)}")
    return float(found[0]), float(found[1])


class Estimate(NamedTuple):
    """A number and its standard error."""

    value: float
    error: float


class NoSizeError(ScrewdynError):
    """A workspace that has no length, area or volume."""


class Reach:
    """Positions of the tip in axes (3, k) of their line, plane or space, and the configurations that reach them.

    ``low`` and ``high`` (k,) are the smallest box with the workspace. NoSizeError if the tip moves on a curve or a
    surface that is not straight.
    """

    def __init__(self, arm: Arm, rng: np.random.Generator) -> None:
        self.arm, self.rng = arm, rng
        self._q = sobol(_CONFIGURATIONS, arm.low, arm.high, rng)
        self.axes = np.eye(3)
        points = self.position(self._q)
        _, sizes, directions = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
        if sizes[0] < 1e-12:
            raise NoSizeError(f"the tip {arm.tip!r} of {arm.name!r} does not move; choose another link as the tip")
        basis = directions[sizes > _FLAT * sizes[0]]
        # An orthonormal basis of the same span, along axes of the base frame as far as possible.
        projector = basis.T @ basis
        kept = np.sort(np.argsort(-np.diag(projector).round(9), kind="stable")[: len(basis)])
        Q, R = np.linalg.qr(projector[:, kept])
        self.axes = np.asarray(Q * np.sign(np.diag(R)))
        x = self.position(self._q)
        self._points, self._size = cKDTree(x), float(np.ptp(x, axis=0).max())
        if self.manipulability(self._q).max() < _FLAT * self._size ** len(basis):
            raise NoSizeError(
                f"the tip {arm.tip!r} of {arm.name!r} moves on a surface or curve that is not straight; "
                f"its workspace has no size in {len(basis)} dimensions; choose another link as the tip"
            )
        unit = np.eye(x.shape[1])
        self.low = np.array([-self._farthest(-u) for u in unit])
        self.high = np.array([self._farthest(u) for u in unit])

    def position(self, q: Array) -> Array:
        """Positions of the tip, (…, k), m; the origin is that of the base frame, projected."""
        return np.asarray(self.arm.tree.forward_kinematics(self.arm.tip, q)[..., :3, 3] @ self.axes)

    def jacobian(self, q: Array) -> Array:
        """Derivatives of the positions, (…, k, n)."""
        return np.asarray(self.axes.T @ self.arm.tree.jacobian(self.arm.tip, q, "mixed")[..., 3:, :])

    def manipulability(self, q: Array) -> Array:
        """w = √det(J Jᵀ), (…,) (Bhangale Eq. 21), of the velocity of the tip."""
        J = self.jacobian(q)
        if J.shape[-1] < J.shape[-2]:
            return np.zeros(J.shape[:-2])
        return np.asarray(np.prod(np.linalg.svd(J, compute_uv=False), axis=-1))

    def measure(self, samples: int) -> tuple[Estimate, Array]:
        """Length, area or volume of the workspace, m, m² or m³, and configurations whose positions are uniform in it.

        The size is the fraction of the box that is reached, in replicates of a Sobol sequence with random shifts, and
        its error that of their mean, but at least the share of one position. NoSizeError if no position is reached.
        """
        low, high = self.low, self.high
        x = [sobol(-(-samples // _REPLICATES), low, high, self.rng) for _ in range(_REPLICATES)]
        q, reached = self.solve(np.concatenate(x))
        if not reached.any():
            raise NoSizeError(f"the tip of {self.arm.name!r} reaches none of {len(q)} positions; give more samples")
        fractions = reached.reshape(_REPLICATES, -1).mean(axis=1)
        error = max(np.std(fractions, ddof=1) / np.sqrt(_REPLICATES), 1 / len(q))
        box = np.prod(high - low)
        return Estimate(float(box * fractions.mean()), float(box * error)), q[reached]

    def solve(self, x: Array) -> tuple[Array, Flags]:
        """Configurations (m, n) that reach positions x (m, k) from the nearest samples, and whether they do, (m,)."""
        nearest = np.reshape(self._points.query(x, _STARTS)[1], (len(x), _STARTS))
        q, missed = self._q[nearest[:, 0]], np.arange(len(x))
        for starts in nearest.T:
            found, reached = self._newton(x[missed], self._q[starts[missed]])
            q[missed[reached]] = found[reached]
            missed = missed[~reached]
        return q, ~np.isin(np.arange(len(x)), missed)

    def _newton(self, x: Array, q: Array) -> tuple[Array, Flags]:
        """Levenberg-Marquardt with damping |r|², which keeps steps below ½ and converges quadratically."""
        arm, q = self.arm, q.copy()
        low, high = np.where(arm.turning, -np.inf, arm.low), np.where(arm.turning, np.inf, arm.high)
        open_ = np.arange(len(x))
        eye = np.eye(x.shape[1])
        for _ in range(_STEPS):
            at = q[open_]
            r = x[open_] - self.position(at)
            short = np.linalg.norm(r, axis=1) > _TOLERANCE * self._size
            open_, at, r = open_[short], at[short], r[short]
            if not len(open_):
                break
            J = self.jacobian(at)
            slope = np.einsum("mki,mk->mi", J, r)
            # A joint at its limit whose motion outward would bring the tip nearer stays there.
            J = J * ~(((at <= low) & (slope < 0)) | ((at >= high) & (slope > 0)))[:, None]
            damped = J @ J.swapaxes(1, 2) + np.sum(r * r, axis=1)[:, None, None] * eye
            step = np.einsum("mki,mk->mi", J, np.linalg.solve(damped, r[..., None])[..., 0])
            q[open_] = np.clip(at + step, low, high)
        q = np.where(arm.turning, arm.low + (q - arm.low) % (2 * np.pi), q)
        return q, np.linalg.norm(x - self.position(q), axis=1) <= _TOLERANCE * self._size

    def _farthest(self, u: Array) -> float:
        """The greatest uᵀ x, m."""
        return self.greatest(lambda q: self.position(q) @ u, lambda q: u @ self.jacobian(q))

    def greatest(self, value: Callable[[Array], Array], gradient: Callable[[Array], Array] | None = None) -> float:
        """The greatest value in the ranges of the joints, by SLSQP from the best of the sampled configurations."""
        slope = None if gradient is None else lambda q: -gradient(q)
        bounds = [*zip(self.arm.low, self.arm.high, strict=True)]
        best = self._q[np.argsort(value(self._q))[-3:]]
        found = [
            minimize(lambda q: -value(q), q, jac=slope, method="SLSQP", bounds=bounds, options={"ftol": 1e-12})
            for q in best
        ]
        return float(max(-one.fun for one in found))


def sobol(count: int, low: Array, high: Array, rng: np.random.Generator) -> Array:
    """At least ``count`` points in a box, a power of 2: a Sobol sequence with a random shift, (points, n)."""
    points = qmc.Sobol(len(low), scramble=False).random_base2((count - 1).bit_length())
    return np.asarray(low + (high - low) * ((points + rng.random(len(low))) % 1))
