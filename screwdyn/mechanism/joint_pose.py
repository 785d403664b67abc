"""The pose that a joint has at given positions, and the positions at which it has a given pose."""

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import ShapeError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.mechanism.configuration import ConfigurationSpace
from screwdyn.mechanism.joint import Joint
from screwdyn.screws.groups import whole_turns
from screwdyn.screws.screw import Ad, inverse, log, screw_motion

__all__ = ["checked_positions", "pose_at", "positions_near", "screws_at"]

# A step in rad and m below which the search for positions ends, and the largest number of steps.
_STEP, _MOST_STEPS = 1e-14, 100


def checked_positions(name: str, joint: Joint, q: ArrayLike) -> Array:
    """Positions of one joint as a new array, (nq,), rad and m; a number will do for a single position.

    Raises
    ------
    ShapeError
        If the shape is wrong, an entry is not finite, or the length of a quaternion is not 1.
    """
    what = f"the position of joint {name!r}"
    try:
        positions = np.array(np.atleast_1d(expressions.real(q)), dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ShapeError(f"{what} must be numbers; got {q!r}") from None
    if positions.shape != (joint.nq,) or not np.isfinite(positions).all():
        entries = ", ".join(joint.position_names(name))
        raise ShapeError(f"{what} must be a finite number for each of: {entries}; got {q!r}")
    space = ConfigurationSpace({name: joint})
    space.check(what, positions)
    return space.normalized(positions)


def pose_at(joint: Joint, q: Array) -> Array:
    """The pose of the link relative to its home at positions q (nq,): g(q), (4, 4) (docs/mathematics.md §7)."""
    if joint.chart is not None:
        return joint.chart.pose(q)
    T = np.eye(4)
    for S, x in zip(joint.screws.T, q, strict=True):
        T = T @ screw_motion(S, x)
    return T


def screws_at(joint: Joint, q: Array) -> Array:
    """S, (6, nv): the twist of the link relative to its parent is S ν at positions q, in the link's own frame."""
    screws = np.array(joint.screws)
    if joint.chart is None:
        for k in range(joint.nv):
            for S, x in zip(joint.screws.T[k + 1 :], q[k + 1 :], strict=True):
                screws[:, k] = Ad(screw_motion(S, -x)) @ screws[:, k]
    return screws


def positions_near(joint: Joint, T: Array) -> tuple[Array, Array]:
    """The positions at which a joint has the pose T relative to home, by Newton's method from the neutral positions.

    A helical joint starts with the whole turns that the pose shows.

    Returns
    -------
    (nq,) array
        If the joint cannot have the pose, the positions at which the twist below is shortest.
    (6,) array
        The twist that moves the reached pose to T in unit time, in the link's own frame, rad and m.
    """
    space = ConfigurationSpace({"": joint})
    q = space.integrate(space.neutral, np.full(joint.nv, whole_turns(joint.screws, T)))
    for _ in range(_MOST_STEPS):
        gap = log(inverse(pose_at(joint, q)) @ T)
        step = np.asarray(np.linalg.lstsq(screws_at(joint, q), gap)[0], dtype=np.float64)
        if np.abs(step).max(initial=0.0) < _STEP * (1 + np.abs(q).max(initial=0.0)):
            break
        q = space.integrate(q, step)
    return q, gap
