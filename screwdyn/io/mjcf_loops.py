"""Reader of MJCF: the equality constraints of a compiled model that are joints between two bodies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from screwdyn.core.types import Array
from screwdyn.io.mjcf_flags import disabled
from screwdyn.io.mjcf_shapes import pose_of_quaternion
from screwdyn.io.names import Names
from screwdyn.mechanism.joint import fixed, spherical
from screwdyn.mechanism.loop import Loop
from screwdyn.screws.poses import inverse, pose

__all__ = ["active_equalities", "is_loop", "loops_of"]

# Values of mjtEq and mjtObj.
_CONNECT, _WELD = 0, 1
_SITE = 6


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
