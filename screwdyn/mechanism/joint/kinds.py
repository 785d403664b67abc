"""The kinds of joints: functions that make a joint of its axes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import fields
from math import inf
from typing import ParamSpec, TypedDict, Unpack

import numpy as np

from screwdyn.core.errors import JointError
from screwdyn.core.types import ArrayLike
from screwdyn.mechanism.chart import Chart
from screwdyn.mechanism.joint.mimic import Mimic
from screwdyn.mechanism.joint.rotor import Rotor
from screwdyn.mechanism.joint.screws import NO_SCREWS, number, parallel, screw
from screwdyn.mechanism.joint.screws import point as origin
from screwdyn.mechanism.joint.value import Joint
from screwdyn.screws.screw import frame_along

__all__ = [
    "cylindrical",
    "fixed",
    "free",
    "helical",
    "planar",
    "prismatic",
    "revolute",
    "spherical",
    "universal",
]

P = ParamSpec("P")


class GroupOptions(TypedDict, total=False):
    """Keyword arguments of all kinds of joints; see :class:`Joint`."""

    passive: bool
    damping: float
    friction: float
    effort: float | None
    velocity: float | None
    name: str | None


class Options(GroupOptions, total=False):
    """Keyword arguments of joints whose positions are those of their screws."""

    stiffness: float
    rest: float
    limits: Sequence[float] | None
    armature: float
    mimic: Mimic | None
    rotor: Rotor | None


def _spelled_out(make: Callable[P, Joint]) -> Callable[P, Joint]:
    """Give a function the signature in which its keyword options are written out, with the defaults of a Joint."""
    signature = inspect.signature(make)
    *own, options = signature.parameters.values()
    known = {"Unpack[Options]": Options, "Unpack[GroupOptions]": GroupOptions}[options.annotation].__annotations__
    for field in fields(Joint):
        if field.name in known:
            kind, hint = inspect.Parameter.KEYWORD_ONLY, known[field.name]
            own.append(inspect.Parameter(field.name, kind, default=field.default, annotation=hint.__forward_arg__))
    names = {parameter.name for parameter in own}

    @functools.wraps(make)
    def checked(*args: P.args, **kwargs: P.kwargs) -> Joint:
        if not names.issuperset(kwargs):
            wrong = next(name for name in kwargs if name not in names)
            raise TypeError(f"{make.__name__}() got an unexpected keyword argument {wrong!r}")
        return make(*args, **kwargs)

    checked.__signature__ = signature.replace(parameters=own)  # type: ignore[attr-defined]
    return checked


@_spelled_out
def revolute(axis: str | ArrayLike = "z", point: ArrayLike = 0, **own: Unpack[Options]) -> Joint:
    """A revolute joint about an axis, S = [a; −a×r] (docs/mathematics.md §1).

    Parameters
    ----------
    axis : "x", "y", "z", "-x", … or (3,) array
        Direction a in the carried link's own frame; any length but zero.
    point : (3,) array or 0
        Any point r of the axis, in the link's own frame, in metres.
    passive, damping, friction, stiffness, rest, limits, effort, velocity, armature, mimic, rotor, name
        As for :class:`Joint`.

    Raises
    ------
    JointError
        If the axis is zero or not finite, or another argument is invalid.
    """
    return Joint(screw(axis, point, 0.0), **own)


@_spelled_out
def prismatic(axis: str | ArrayLike = "z", **own: Unpack[Options]) -> Joint:
    """A prismatic joint along an axis, S = [0; a] (docs/mathematics.md §1).

    Parameters and errors as for :func:`revolute`.
    """
    return Joint(screw(axis, 0, inf), **own)


@_spelled_out
def helical(axis: str | ArrayLike, pitch: float, point: ArrayLike = 0, **own: Unpack[Options]) -> Joint:
    """A helical joint about an axis, S = [a; −a×r + h a], with pitch h in metres per radian (docs/mathematics.md §1).

    Parameters and errors as for :func:`revolute`; raises JointError also if the pitch is not a finite number.
    """
    return Joint(screw(axis, point, number("pitch", pitch)), **own)


def fixed(name: str | None = None) -> Joint:
    """A joint without freedoms, which welds the link to its parent.

    Raises JointError if the name is empty.
    """
    return Joint(NO_SCREWS, name=name)


@_spelled_out
def cylindrical(axis: str | ArrayLike = "z", point: ArrayLike = 0, **own: Unpack[Options]) -> Joint:
    """A cylindrical joint about and along an axis, T = home · exp(Ŝ₁ angle) exp(Ŝ₂ p), S₁ = [a; −a×r], S₂ = [0; a].

    docs/mathematics.md §7. A joint named ``pin`` has the freedoms ``pin[w]``, ``pin[v]`` and the positions
    ``pin[angle]``, ``pin[p]``, in radians and metres. Parameters and errors as for :func:`revolute`.
    """
    screws = np.stack([screw(axis, point, 0.0), screw(axis, 0, inf)], axis=1)
    return Joint(screws, **own)


@_spelled_out
def universal(
    axis1: str | ArrayLike = "x", axis2: str | ArrayLike = "y", point: ArrayLike = 0, **own: Unpack[Options]
) -> Joint:
    """A universal joint about two axes through one point, T = home · exp(Ŝ₁ angle1) exp(Ŝ₂ angle2).

    docs/mathematics.md §7. A joint named ``hook`` has the freedoms ``hook[w1]``, ``hook[w2]`` and the positions
    ``hook[angle1]``, ``hook[angle2]``, in radians.

    Parameters
    ----------
    axis1 : "x", "y", "z", "-x", … or (3,) array
        Direction of the axis that is fixed in the parent, in the carried link's own frame at angle2 = 0.
    axis2 : "x", "y", "z", "-x", … or (3,) array
        Direction of the axis that is fixed in the link, in the link's own frame.
    point : (3,) array or 0
        The point where the axes meet, in the link's own frame, in metres.
    passive, damping, friction, stiffness, rest, limits, effort, velocity, armature, mimic, rotor, name
        As for :class:`Joint`.

    Raises
    ------
    JointError
        As for :func:`revolute`, and if the axes are parallel.
    """
    screws = np.stack([screw(axis1, point, 0.0), screw(axis2, point, 0.0)], axis=1)
    if parallel(*screws.T):
        raise JointError(f"the axes of a universal joint must not be parallel; got {axis1!r} and {axis2!r}")
    return Joint(screws, **own)


@_spelled_out
def spherical(point: ArrayLike = 0, **own: Unpack[GroupOptions]) -> Joint:
    """A spherical joint about a point r, T = home · g(q), with screws S_k = [e_k; −e_k×r] (docs/mathematics.md §7).

    The positions of a joint named ``hip`` are the components of a quaternion of length 1, scalar last: ``hip[x]``,
    ``hip[y]``, ``hip[z]``, ``hip[w]``. The freedoms are the components of the link's angular velocity relative to its
    parent, in the link's own axes: ``hip[wx]``, ``hip[wy]``, ``hip[wz]``, rad/s.

    Parameters
    ----------
    point : (3,) array or 0
        The center, in the link's own frame, in metres.
    passive, damping, friction, effort, velocity, name
        As for :class:`Joint`. There are no springs, limits and armatures.

    Raises
    ------
    JointError
        If the point is not three finite numbers, or another argument is invalid.
    """
    chart = Chart(4, 0, np.eye(3), origin(point))
    return Joint(chart.screws, chart=chart, **own)


@_spelled_out
def free(**own: Unpack[GroupOptions]) -> Joint:
    """A free joint, T = home · g(q), with g(q) = [R(x, y, z, w), p] (docs/mathematics.md §7).

    The positions of a joint named ``base`` are a quaternion of length 1, scalar last, ``base[x]``, ``base[y]``,
    ``base[z]``, ``base[w]``, and the position of the link's origin in the axes of the home pose, ``base[px]``,
    ``base[py]``, ``base[pz]``, in metres. The freedoms are the components of the link's twist [ω; v] relative to its
    parent, in the link's own frame: ``base[wx]``, …, ``base[vz]``, rad/s and m/s. Parameters and errors as for
    :func:`spherical`.
    """
    chart = Chart(4, 3, np.eye(3), np.zeros(3))
    return Joint(chart.screws, chart=chart, **own)


@_spelled_out
def planar(axis: str | ArrayLike = "z", point: ArrayLike = 0, **own: Unpack[GroupOptions]) -> Joint:
    """A planar joint: S₁ = [a; −a×r], S₂ = [0; e₁], S₃ = [0; e₂] with e₁×e₂ = a (docs/mathematics.md §7).

    The positions of a joint named ``base`` are the angle about a, and the position of the point r along e₁ and e₂ in
    the axes of the home pose: ``base[angle]``, ``base[px]``, ``base[py]``, radians and metres. The freedoms are the
    rate of the angle and the velocity of this point along e₁ and e₂ in the link's own axes: ``base[w]``, ``base[vx]``,
    ``base[vy]``, rad/s and m/s.

    Parameters
    ----------
    axis : "x", "y", "z", "-x", … or (3,) array
        Normal a of the plane, in the link's own frame; any length but zero. e₁ is the projection on the plane of the
        first link axis among those most nearly perpendicular to a: for "z", e₁ and e₂ are x and y.
    point : (3,) array or 0
        The point r, in the link's own frame, in metres.
    passive, damping, friction, effort, velocity, name
        As for :func:`spherical`.

    Raises
    ------
    JointError
        If the axis is zero or not finite, the point is not three finite numbers, or another argument is invalid.
    """
    axes = np.reshape(frame_along(screw(axis, 0, 0.0)[:3].tolist()), (3, 3))
    chart = Chart(1, 2, axes, origin(point))
    return Joint(chart.screws, chart=chart, **own)
