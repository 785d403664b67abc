"""Reader of Denavit-Hartenberg tables: the frame of each link is its DH frame, which also has the joint's screw."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from math import isfinite, pi
from typing import Any

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import InertiaError, JointError, ScrewdynError, ScrewdynWarning, ShapeError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.io.document import known_effective, similar
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.joint import Joint, prismatic, revolute
from screwdyn.mechanism.link import Attachment, Link
from screwdyn.mechanism.topology import Topology

__all__ = ["from_dh"]

_GEOMETRY = ("d", "a", "alpha", "theta")
_JOINT = ("passive", "damping", "friction", "stiffness", "rest", "limits", "effort", "velocity", "armature")
_KEYS = ("type", *_GEOMETRY, "m", "com", "inertia", "name", "joint", *_JOINT)


def from_dh(
    rows: Iterable[Mapping[str, Any]],
    convention: str = "standard",
    *,
    base: str | Link = "base",
    gravity: ArrayLike = (0.0, 0.0, -9.81),
) -> Topology:
    """Read a Denavit-Hartenberg table; parameters, errors and warnings are those of :meth:`KinematicTree.from_dh`."""
    if convention not in ("standard", "modified"):
        raise ScrewdynError(f"unknown DH convention {convention!r}; use 'standard' or 'modified'")
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
        raise ScrewdynError(f"a DH table must be a list of dicts, one for each row; got {rows!r}")
    root = base if isinstance(base, Link) else Link(base)
    attachments, doubtful = [], []
    parent = root.name
    for i, row in enumerate(rows, start=1):
        if not isinstance(row, Mapping):
            raise ScrewdynError(f"DH row {i} must be a dict such as {{'a': 0.4, 'm': 2}}; got {row!r}")
        name = row.get("name", f"link{i}")
        where = f"DH row {i} ({name})"
        for key in row:
            if key not in _KEYS:
                raise ScrewdynError(f"{where}: unknown key {key!r}; {similar(str(key), _KEYS)}")
        try:
            home, axis, point = _frame(row, convention)
            inertia = _inertia(row)
            joint = _joint(row, axis, point, f"joint{i}")
        except ScrewdynError as error:
            raise type(error)(f"{where}: {error}") from None
        if inertia is not None and inertia.failing_condition and inertia is not row.get("inertia"):
            doubtful.append(f"{where}: {inertia.failing_condition}")
        attachments.append(Attachment(Link(name, inertia), parent, joint, home))
        parent = name
    if doubtful:
        message = "no rigid body has these numbers; they are used as they are"
        warnings.warn("\n  ".join([message, *doubtful]), ScrewdynWarning, stacklevel=3)  # of from_dh's caller
    return Topology.rooted(root, gravity).attach(attachments)


def _number(row: Mapping[str, Any], key: str) -> Any:
    try:
        x = expressions.number(row.get(key, 0.0))
    except (TypeError, ValueError):
        x = np.nan
    if expressions.is_number(x) and not isfinite(x):
        raise ShapeError(f"{key} must be a finite number; got {row[key]!r}")
    return x


def _frame(row: Mapping[str, Any], convention: str) -> tuple[Array, Array, Array]:
    """Home pose, and the axis of the joint and a point on it in the link's own frame."""
    d, a, alpha, theta = (_number(row, key) for key in _GEOMETRY)
    (ca, sa), (ct, st) = _cos_sin(alpha), _cos_sin(theta)
    if convention == "standard":
        home = expressions.array(
            [
                [ct, -st * ca, st * sa, a * ct],
                [st, ct * ca, -ct * sa, a * st],
                [0.0, sa, ca, d],
                [0.0, 0.0, 0.0, 1.0],
            ]
        )
        return home, expressions.array([0.0, sa, ca]), expressions.array([-a, 0.0, 0.0])
    home = expressions.array(
        [
            [ct, -st, 0.0, a],
            [ca * st, ca * ct, -sa, -sa * d],
            [sa * st, sa * ct, ca, ca * d],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )
    return home, np.array([0.0, 0.0, 1.0]), np.zeros(3)


def _cos_sin(angle: Any) -> tuple[Any, Any]:
    """Cosine and sine, exactly 0 or ±1 at multiples of pi/2 (within rounding)."""
    if not expressions.is_expression(angle):
        quarters = round(angle / (pi / 2))
        if abs(angle - quarters * (pi / 2)) <= 1e-15 * max(1, abs(quarters)):
            return ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[quarters % 4]
    return expressions.cos_sin(angle)


def _joint(row: Mapping[str, Any], axis: Array, point: Array, default_name: str) -> Joint:
    kind = row.get("type", "R")
    options = {key: row[key] for key in _JOINT if key in row} | {"name": row.get("joint", default_name)}
    if kind not in ("R", "P"):
        raise JointError(f"unknown type {kind!r}; use 'R' (revolute) or 'P' (prismatic)")
    return revolute(axis, point, **options) if kind == "R" else prismatic(axis, **options)


def _inertia(row: Mapping[str, Any]) -> Inertia | None:
    tensor = row.get("inertia", 0.0)
    if isinstance(tensor, Inertia):
        extra = [key for key in ("m", "com") if key in row]
        if extra:
            raise ScrewdynError(f"inertia is an Inertia, so {' and '.join(extra)} must not be given too")
        return tensor
    mass = _number(row, "m")
    if expressions.is_number(mass) and mass < 0:
        raise InertiaError(f"the mass is negative ({float(mass):g} kg); give a mass >= 0")
    inertia = known_effective(mass, row.get("com", (0.0, 0.0, 0.0)), tensor)
    return inertia if mass != 0 or inertia.tensor.any() else None
