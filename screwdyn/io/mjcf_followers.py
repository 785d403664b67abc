"""Reader of MJCF: the equality constraints of a compiled model by which one joint follows another."""

from __future__ import annotations

from typing import Any, NamedTuple

from screwdyn.io.mjcf_loops import active_equalities

__all__ = ["Follower", "followers_of"]

# Values of mjtEq and mjtJoint.
_JOINT = 2
_SLIDE, _HINGE = 2, 3


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
