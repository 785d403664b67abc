"""Poses and numbers as URDF writes them."""

import numpy as np

from screwdyn.core.types import Array
from screwdyn.io.rpy import rotation_from_rpy, rpy_from_rotation
from screwdyn.io.urdf_xml import Element, Report, Severity
from screwdyn.screws.screw import pose

__all__ = ["axis_direction", "numbers_text", "origin_of", "origin_text"]


def origin_of(element: Element, report: Report, severity: Severity = "error") -> Array | None:
    """The pose of the only <origin> of an element, the identity if there is none; None, with a problem, if invalid."""
    origin = report.only(element, "origin")
    if origin is None:
        return np.eye(4)
    if "quat_xyzw" in origin.attributes:
        hint = 'give the orientation as rpy="roll pitch yaw"'
        report.add(origin, "quat_xyzw is not supported yet", hint, severity)
    xyz = report.numbers(origin, "xyz", 3, (0.0, 0.0, 0.0), severity)
    rpy = report.numbers(origin, "rpy", 3, (0.0, 0.0, 0.0), severity)
    return None if xyz is None or rpy is None else pose(rotation_from_rpy(*rpy), xyz)


def axis_direction(joint: Element, report: Report) -> tuple[float, ...] | None:
    """The direction in the only <axis> of a joint, x if there is none; None, with a problem, if invalid."""
    element = report.only(joint, "axis")
    if element is None:
        return (1.0, 0.0, 0.0)
    axis = report.numbers(element, "xyz", 3)
    if axis is not None and not any(axis):
        report.add(element, "the axis is zero", "give the direction of the joint, such as 0 0 1")
        return None
    if axis is None:
        return None
    largest = max(abs(x) for x in axis)  # avoids underflow and overflow of the norm
    return tuple(x / largest for x in axis)


def origin_text(T: Array) -> str:
    """The element <origin> of a pose."""
    return f'<origin xyz="{numbers_text(T[:3, 3])}" rpy="{numbers_text(rpy_from_rotation(T[:3, :3]))}"/>'


def numbers_text(values: object) -> str:
    """Numbers with all digits; adding zero replaces −0 by 0."""
    return " ".join(repr(float(x) + 0.0) for x in np.ravel(np.asarray(values, dtype=np.float64)))
