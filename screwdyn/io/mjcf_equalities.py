"""Reader of MJCF: equality constraints of a compiled model, by which bodies close loops and joints follow others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from screwdyn.core.types import Array
from screwdyn.io.mjcf_flags import disabled
from screwdyn.io.mjcf_shapes import pose_of_quaternion
from screwdyn.io.names import Names
from screwdyn.mechanism.joint import fixed, spherical
from screwdyn.mechanism.loop import Loop
from screwdyn.screws.poses import inverse, pose

__all__ = ["Follower", "active_equalities", "followers_of", "is_loop", "loops_of"]

# Values of mjtEq, mjtObj and mjtJoint.
_CONNECT, _WELD, _JOINT = 0, 1, 2
_SITE = 6
_SLIDE, _HINGE = 2, 3


def active_equalities(m: Any) -> list[int]:
    """The equality constraints that act at first."""
    return [] if "equality" in disabled(m) else [k for k in range(m.neq) if m.eq_active0[k]]


def is_loop(m: Any, k: int) -> bool:
    """Whether an equality constraint is a joint between two bodies."""
    return m.eq_type[k] in (_CONNECT, _WELD) and len(set(_bodies(m, k))) == 2


def loops_of(m: Any, bodies: Sequence[str], names: Sequence[str], taken: Names) -> Iterator[Loop]:
    """The connect and weld constraints that act at first as spherical and fixed joints of body1 on body2.

    Parameters
    ----------
    m : mujoco.MjModel
    bodies, names : sequences of str
        Of the bodies and of the equality constraints.
    taken : Names
        Those that loops may not have.
    """
    for k in filter(lambda k: is_loop(m, k), active_equalities(m)):
        body, other = _bodies(m, k)
        frame, frame_there = _frames(m, k)
        if m.eq_type[k] == _CONNECT or m.eq_data[k, 10] == 0:  # without torques, a weld holds the anchors only
            joint, home = spherical(frame[:3, 3]), pose(np.eye(3), frame_there[:3, 3] - frame[:3, 3])
        else:
            joint, home = fixed(), frame_there @ inverse(frame)
        yield Loop(taken.unused(names[k]), bodies[body], bodies[other], joint, home)


def _bodies(m: Any, k: int) -> tuple[int, int]:
    one, other = int(m.eq_obj1id[k]), int(m.eq_obj2id[k])
    if m.eq_objtype[k] == _SITE:
        return int(m.site_bodyid[one]), int(m.site_bodyid[other])
    return one, other


def _frames(m: Any, k: int) -> tuple[Array, Array]:
    """The frames in body1 and body2 that coincide; of a connect constraint, only their origins do."""
    data = m.eq_data[k]
    if m.eq_objtype[k] == _SITE:
        one, other = (pose_of_quaternion(m.site_quat[s], m.site_pos[s]) for s in (m.eq_obj1id[k], m.eq_obj2id[k]))
        return one, other
    if m.eq_type[k] == _CONNECT:
        return pose(np.eye(3), data[:3]), pose(np.eye(3), data[3:6])
    return pose_of_quaternion(data[6:10], data[3:6]), pose(np.eye(3), data[:3])


class Follower(NamedTuple):
    """The constraint by which a joint follows another one, q = ratio · q_leader + offset, by their indices."""

    equality: int
    leader: int
    ratio: float
    offset: float


def followers_of(m: Any) -> dict[int, Follower]:
    """The joints that follow others by an active linear constraint, which is the first of each.

    MuJoCo has q₁ − ref₁ = a₀ + a₁ (q₂ − ref₂) + a₂ (q₂ − ref₂)² + …. A constraint of a joint that follows already, or
    that would close a circle, is left out.

    Parameters
    ----------
    m : mujoco.MjModel
    """
    found: dict[int, Follower] = {}
    for k in active_equalities(m):
        joint, leader = int(m.eq_obj1id[k]), int(m.eq_obj2id[k])
        if m.eq_type[k] != _JOINT or leader < 0 or m.eq_data[k, 2:5].any() or joint in found:
            continue
        passed = leader
        while passed in found:
            passed = found[passed].leader
        if passed != joint and {int(m.jnt_type[joint]), int(m.jnt_type[leader])} <= {_SLIDE, _HINGE}:
            constant, ratio = m.eq_data[k, :2].tolist()
            one, other = (float(m.qpos0[m.jnt_qposadr[x]]) for x in (joint, leader))
            found[joint] = Follower(k, leader, ratio, constant + one - ratio * other)
    return found
