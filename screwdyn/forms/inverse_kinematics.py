"""Inverse kinematics: configurations within the joint limits in which a link has a given pose."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from screwdyn.core import expressions
from screwdyn.core.errors import InverseKinematicsError, ScrewdynError, ShapeError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.forms.closed_loops import indices
from screwdyn.forms.configurations import Limits
from screwdyn.forms.numbers import one_state
from screwdyn.physics.closure import Closure
from screwdyn.physics.model import Robot
from screwdyn.screws import screw

if TYPE_CHECKING:
    from screwdyn.tree import KinematicTree

__all__ = ["inverse_kinematics"]

# Largest number of steps of one search; damping relative to the largest diagonal entry of JᵀJ, at the start and where a
# search ends.
_MOST_STEPS, _DAMPING, _STUCK = 200, 1e-3, 1e12
# Step at which a search ends, rad or m: more than that changes only the rounding.
_SMALL = 1e-15
# Decrease of |e|² in a step, relative to it, at which a search is given up beside the target, and at which the nearest
# configuration is final.
_SLOW, _FINAL = 1e-5, 1e-14
# Distance from a limit at which a freedom counts as being there, rad or m.
_STOPPED = 1e-6
# Gap of closed loops in a result, m and rad; Newton steps that remove what a search leaves of it; how much more a gap
# counts than an error of the pose where no configuration has the pose.
_CLOSED, _CLOSING, _STIFF = 1e-12, 5, 1e3
_TURN = 2 * np.pi


def inverse_kinematics(
    tree: KinematicTree,
    link: str,
    pose: ArrayLike,
    q0: ArrayLike | None = None,
    *,
    freedoms: Iterable[str] | None = None,
    tolerance: float = 1e-9,
    searches: int = 20,
) -> Array:
    """A configuration within the joint limits in which a link has a pose, near q0 if possible.

    Damped least squares: each step minimises ``|e − J δ|² + λ |δ|²`` within the limits, where e are the error of the
    position and, times a length, the rotation vector of the error of the orientation, and λ adapts (Nielsen's rule). If
    the search from q0 ends elsewhere, others begin at random configurations, the same in every call. The gaps of
    closed loops are errors too: q0 need not close them, and a result does.

    Parameters
    ----------
    link : str
    pose : (4, 4) or (3,) array
        Pose of the link's frame in the base, or the position of its origin, m; the orientation is then free.
    q0 : (nq,) array, optional
        Start of the search, rad and m, moved into the limits; neutral by default.
    freedoms : names of coordinates, optional
        The others keep their positions of q0. By default the active freedoms. The passive freedoms in closed loops
        follow in any case.
    tolerance : float
        Largest error of a result, m and rad. Most results are exact to rounding.
    searches : int
        Largest number of searches.

    Returns
    -------
    (nq,) array
        Other solutions may exist, such as those of another elbow: they are found from other q0.

    Raises
    ------
    InverseKinematicsError
        If no search finds the pose. The error has the nearest configuration that was found, ``q``, and its
        ``position_error`` (m) and ``angle_error`` (rad); the message names the freedoms that are at their limits.
    ShapeError, UnknownNameError, UnboundSymbolError
        For wrong arrays or names, or if numbers of the tree contain symbols.

    Notes
    -----
    The nearest configuration minimises ``|e|²``. The length that multiplies the angle is that of the chain of links, in
    q0.

    Examples
    --------
    >>> import numpy as np
    >>> import screwdyn as sd
    >>> arm = sd.robots.ur5()
    >>> pose = arm.forward_kinematics("tool0", [0.3, -1.2, 1.5, -0.4, 1.2, 0.1])
    >>> q = arm.inverse_kinematics("tool0", pose, q0=[0, -1, 1, 0, 1, 0])
    >>> bool(np.allclose(arm.forward_kinematics("tool0", q), pose, rtol=0, atol=1e-9))
    True
    """
    tree = tree.copy()
    given = (pose := tree.model.numbers("pose", pose)).shape
    if given not in ((4, 4), (3,)):
        raise ShapeError(f"pose must be a 4x4 matrix, or three numbers for a position alone; got shape {given}")
    (q,) = one_state(tree.model, q0=tree.model.configurations.neutral if q0 is None else q0)
    if not searches >= 1 or not tolerance > 0:
        raise ScrewdynError(f"searches must be at least 1 and tolerance positive; got {searches} and {tolerance}")
    moving = tree.active if freedoms is None else [tree.coordinates[k] for k in indices(tree.model, freedoms)]
    target = _Target(tree, link, screw.as_pose(pose), given == (4, 4), q, moving)
    rng, found = np.random.default_rng(0), []
    for k in range(searches):
        end = _search(target, target.limited(q if k == 0 else target.elsewhere(q, rng)))
        while max(target.misses(end)) > tolerance and (same := target.turned_back(end)) is not None:
            further = _search(target, same)
            if not target.distance(further) < 0.99 * target.distance(end):
                break
            end = further
        found.append(target.closure.assembled(end, target.free, flat=True, steps=_CLOSING))
        position, angle = target.misses(found[-1])
        if max(position, angle) <= tolerance and target.gap(found[-1]) <= _CLOSED:
            return found[-1]
        if not len(target.free):
            break
    target.stiffness = _STIFF
    nearest = _search(target, min(found, key=target.distance), _FINAL)
    nearest = target.closure.assembled(nearest, target.free, flat=True, steps=_CLOSING)
    position, angle = target.misses(nearest)
    orientation = f" and {angle:.3g} rad" if target.oriented else ""
    stopped = ", ".join(target.stopped(nearest))
    ajar = f"; its loops are open by {gap:.3g} m or rad" if (gap := target.gap(nearest)) > _CLOSED else ""
    raise InverseKinematicsError(
        f"no configuration was found in which {link!r} has this {'pose' if target.oriented else 'position'}: the "
        f"nearest of {len(found)} searches misses it by {position:.3g} m{orientation}"
        f"{f', with {stopped} at the limits' if stopped else ''}{ajar}; choose a pose within reach"
        f"{', or give three numbers to leave the orientation free' if target.oriented else ''} (the error has the "
        f"nearest configuration as its q)",
        nearest,
        position,
        angle,
    )


class _Target:
    """The errors of one link against a pose, over the freedoms that move it, and their limits.

    ``stiffness`` is how much more the gap of a loop counts than an error of the pose.
    """

    def __init__(self, tree: Robot, link: str, pose: Array, oriented: bool, q0: Array, moving: Iterable[str]) -> None:
        self.tree, self.link, self.pose, self.oriented = tree, link, pose, oriented
        tree.forward_kinematics(link, q0)  # raises the error for an unknown link
        self.closure, self.stiffness = Closure(tree, tree.model), 1.0
        looped = {x for loop in self.closure.loops for end in (loop.link, loop.to) for x in tree.model.path(end)}
        passive = set(compress(tree.coordinates, tree.model.passive))
        free = ({*moving} & ({*tree.model.path(link)} | looped)) | (looped & passive)
        self.free: npt.NDArray[np.intp] = np.flatnonzero([name in free for name in tree.coordinates])
        self.lower, self.upper = np.full((2, tree.nv), [[-np.inf], [np.inf]])
        limits = Limits.of(tree, lambda joint: True)
        self.where = np.full(tree.nv, -1)
        for row, where, sign, value in zip(limits.rows, limits.where, limits.sign, limits.values, strict=True):
            self.where[row] = where
            if sign > 0:
                self.upper[row] = min(self.upper[row], value)
            else:
                self.lower[row] = max(self.lower[row], value)
        self.periodic = np.array([name in _turning(tree) for name in tree.coordinates], dtype=bool)
        self.length = self._chain(q0) or 1.0

    def _chain(self, q: Array) -> float:
        """Sum of the distances between the origins of the links on the path, m."""
        poses = dict(zip(self.tree.links, self.tree.link_poses(q), strict=True))
        total, at = 0.0, self.link
        while (parent := self.tree.topology.attachments[at].parent) is not None:
            total, at = total + float(np.linalg.norm(poses[at][:3, 3] - poses[parent][:3, 3])), parent
        return total

    def errors(self, q: Array) -> tuple[Array, Array]:
        """Rotation vector and translation from the link's pose to the target, in axes of the base, (3,) and (3,)."""
        T = self.tree.forward_kinematics(self.link, q)
        turn = screw.log(screw.pose(self.pose[:3, :3] @ T[:3, :3].T, np.zeros(3)))[:3]
        return (turn if self.oriented else np.zeros(0)), self.pose[:3, 3] - T[:3, 3]

    def error(self, q: Array) -> Array:
        """e, (6,) or (3,), m, followed by the gaps of closed loops, m and rad."""
        turn, travel = self.errors(q)
        return np.concatenate([self.length * turn, travel, -self.stiffness * self.closure.gap(q)])

    def distance(self, q: Array) -> float:
        """|e|, m."""
        return float(np.linalg.norm(self.error(q)))

    def jacobian(self, q: Array) -> Array:
        """J, with −Jᵀ e the slope of ½ |e|²: exact, although −J is ∂e/∂q only where the orientations agree."""
        J = self.tree.jacobian(self.link, q, "mixed")[:, self.free]
        opening = self.stiffness * self.tree.constraint_jacobian(q)[:, self.free]
        return np.concatenate([self.length * J[: 3 * self.oriented], J[3:], opening])

    def misses(self, q: Array) -> tuple[float, float]:
        """Errors of position and angle, m and rad."""
        turn, travel = self.errors(q)
        return float(np.linalg.norm(travel)), float(np.linalg.norm(turn))

    def gap(self, q: Array) -> float:
        """The largest entry of the gap of the closed loops, m and rad."""
        return float(np.abs(self.closure.gap(q)).max(initial=0.0))

    def room(self, q: Array) -> tuple[Array, Array]:
        """How far the free freedoms may move down and up, (k,) and (k,), rad and m."""
        here = q[self.where[self.free]]
        return np.minimum(self.lower[self.free] - here, 0.0), np.maximum(self.upper[self.free] - here, 0.0)

    def moved(self, q: Array, step: Array) -> Array:
        """The configuration beyond q by a step of the free freedoms."""
        v = np.zeros(self.tree.nv)
        v[self.free] = step
        return self.tree.model.configurations.integrate(q, v)

    def limited(self, q: Array) -> Array:
        """The nearest configuration within the limits of the free freedoms."""
        q, bounded = q.copy(), self.free[self.where[self.free] >= 0]
        where = self.where[bounded]
        q[where] = np.clip(q[where], self.lower[bounded], self.upper[bounded])
        return q

    def elsewhere(self, q: Array, rng: np.random.Generator) -> Array:
        """q with random positions of the free freedoms."""
        space = self.tree.model.configurations
        return self.moved(q, space.difference(q, space.random(rng))[self.free])

    def turned_back(self, q: Array) -> Array | None:
        """The same pose with freedoms at a limit turned by whole turns towards the middle; None if none can turn."""
        down, up = self.room(q)
        lower, upper = self.lower[self.free], self.upper[self.free]
        stopped = ((down > -_STOPPED) | (up < _STOPPED)) & (upper - lower > _TURN - _STOPPED) & self.periodic[self.free]
        if not stopped.any():
            return None
        # By one turn if the range is open on the other side.
        room = np.where(up < _STOPPED, -down, up)
        turns = np.where(np.isfinite(room), np.maximum(1, np.round(0.5 * room / _TURN)), 1)
        step = np.where(stopped, _TURN * turns, 0.0)
        return self.limited(self.moved(q, np.where(up < _STOPPED, -step, step)))

    def stopped(self, q: Array) -> list[str]:
        """Names of the freedoms at their limits."""
        down, up = self.room(q)
        names = [repr(self.tree.coordinates[i]) for i in self.free]
        return list(compress(names, (down > -_STOPPED) | (up < _STOPPED)))


def _turning(tree: Robot) -> set[str]:
    """Names of the freedoms of which a whole turn changes no pose: rotations that no joint follows."""
    attached = tree.topology.attachments.values()
    followed = {at.joint.mimic.joint for at in attached if at.joint.mimic is not None}
    return {
        name
        for at in attached
        if at.joint.chart is None and at.joint.mimic is None and at.name not in followed
        for name, S in zip(at.coordinates, expressions.floats(at.joint.screws, "a screw").T, strict=True)
        if S[:3].any() and abs(screw.pitch(S)) < _STOPPED
    }


def _search(target: _Target, q: Array, slow: float = _SLOW) -> Array:
    """The end of the descent of ½ |e|² from q; ``slow`` is the relative decrease in a step at which it ends."""
    e, J = target.error(q), target.jacobian(q)
    damping, growth = _DAMPING, 2.0
    for _ in range(_MOST_STEPS if len(target.free) else 0):
        scale = float(np.einsum("ij,ij->j", J, J).max())
        if damping > _STUCK or not scale:
            break
        step = _step(J, e, damping * scale, *target.room(q))
        if np.abs(step).max() < _SMALL:
            break
        ahead = target.moved(q, step)
        there = target.error(ahead)
        gain, predicted = float(e @ e - there @ there), float(e @ e - np.sum((e - J @ step) ** 2))
        if gain > 0.0:
            q, e, J = ahead, there, target.jacobian(ahead)
            if gain < slow * (e @ e):
                break
            damping *= max(1 / 3, 1 - (2 * gain / predicted - 1) ** 3) if predicted > 0 else 1.0
            growth = 2.0
        else:
            damping, growth = damping * growth, 2 * growth
    return q


def _step(J: Array, e: Array, damping: float, down: Array, up: Array) -> Array:
    """The minimum of |e − J δ|² + damping |δ|² where no bound is active; entries that pass a bound stop there."""
    step, inside = np.zeros(len(down)), np.ones(len(down), dtype=bool)
    while inside.any():
        K = J[:, inside]
        rest = e - J[:, ~inside] @ step[~inside]
        stacked = np.concatenate([K, np.sqrt(damping) * np.eye(K.shape[1])])
        step[inside] = np.linalg.lstsq(stacked, np.concatenate([rest, np.zeros(K.shape[1])]))[0]
        beyond = inside & ((step < down) | (step > up))
        if not beyond.any():
            break
        step[beyond], inside = np.clip(step, down, up)[beyond], inside & ~beyond
    return step
