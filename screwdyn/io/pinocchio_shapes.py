"""Reader of Pinocchio models: the bodies of its geometry models as shapes of links."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from screwdyn.core.errors import ModelError
from screwdyn.mechanism.shape import Shape, Use
from screwdyn.screws.poses import inverse

__all__ = ["geometry_of", "shapes_by_link"]

# By the names of Coal's classes.
_BODIES: dict[str, Callable[..., Shape]] = {
    "Box": lambda body, **given: Shape.box(2 * body.halfSide, **given),
    "Capsule": lambda body, **given: Shape.capsule(body.radius, 2 * body.halfLength, **given),
    "Cylinder": lambda body, **given: Shape.cylinder(body.radius, 2 * body.halfLength, **given),
    "Sphere": lambda body, **given: Shape.sphere(body.radius, **given),
}


def geometry_of(visual: Any, collision: Any) -> dict[Use, Any]:
    """The geometry models that are given, by their use.

    Raises
    ------
    ModelError
        If one of them is something else.
    """
    given: dict[Use, Any] = {"visual": visual, "collision": collision}
    for use, geometry in given.items():
        if geometry is not None and type(geometry).__name__ != "GeometryModel":
            raise ModelError(f"{use}= must be a pinocchio.GeometryModel; got {type(geometry).__name__}")
    return {use: geometry for use, geometry in given.items() if geometry is not None}


def shapes_by_link(
    model: Any, geometry: Mapping[Use, Any], frames: Sequence[Any], carriers: Sequence[str]
) -> dict[str, tuple[Shape, ...]]:
    """Shapes by the names of links: of the frames of bodies, if they are given, or of the joints' links.

    Parameters
    ----------
    model : pinocchio.Model
    geometry : mapping from use to pinocchio.GeometryModel
        Bodies other than boxes, capsules, cylinders, spheres and meshes with a file are left out.
    frames : sequence of pinocchio.Frame
        Those that are links.
    carriers : sequence of str
        Names of the links of the joints.
    """
    placed = {frame.name: np.array(frame.placement.homogeneous) for frame in frames}
    found: dict[str, tuple[Shape, ...]] = {}
    for use, bodies in geometry.items():
        for body in bodies.geometryObjects:
            frame = model.frames[body.parentFrame].name if body.parentFrame < len(model.frames) else ""
            link = frame if frame in placed else carriers[body.parentJoint]
            # Pinocchio's placements are in the frames of joints.
            T = inverse(placed.get(frame, np.eye(4))) @ body.placement.homogeneous
            color = np.clip(body.meshColor, 0, 1) if body.overrideMaterial else None
            options = {"pose": T, "color": color, "use": use}
            make = _BODIES.get(type(body.geometry).__name__)
            if make is not None:
                shape = make(body.geometry, **options)
            elif body.meshPath:
                shape = Shape.mesh(body.meshPath, body.meshScale, **options)
            else:
                continue
            found[link] = (*found.get(link, ()), shape)
    return found
