"""Contacts: places where two links may push each other (docs/mathematics.md §14)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

import numpy as np

from screwdyn.core import Array, ArrayLike, ContactError, ShapeError, expressions
from screwdyn.mechanism.link import new_serial
from screwdyn.mechanism.shape import Shape
from screwdyn.screws.screw import frame_along

# What a contact can be on, besides planes.
ROUND = ("sphere", "capsule", "box")
Ball, Capsule, Box = Shape.sphere, Shape.capsule, Shape.box


@dataclass(frozen=True)
class Plane:
    """The half-space normal · x <= offset of a link, in its frame: a floor, a palm, a face.

    Parameters
    ----------
    normal : (3,) array
        Out of the body; scaled to length 1.
    offset : float
        Distance of the plane from the origin along the normal, m.

    Raises
    ------
    ShapeError
        If the normal is zero, or a number is not finite.

    Examples
    --------
    >>> import screwdyn as sd
    >>> sd.Plane((0, 3, 4), 0.5)
    Plane(normal=(0.0, 0.6, 0.8), offset=0.5)
    """

    normal: tuple[float, ...] = (0.0, 0.0, 1.0)
    offset: float = 0.0

    def __post_init__(self) -> None:
        n = _numbers(self.normal, "the normal of a Plane", (3,))
        length = math.hypot(*n.tolist())
        if length == 0:
            raise ShapeError("the normal of a Plane must not be zero")
        if abs(length - 1) > 1e-15:
            n = n / length
        object.__setattr__(self, "normal", tuple((n + 0.0).tolist()))
        object.__setattr__(self, "offset", float(_numbers(self.offset, "the offset of a Plane", ())))


@dataclass(frozen=True, eq=False)
class Contact:
    """Points of one link that may push a body of another one (docs/mathematics.md §14).

    Attributes
    ----------
    name : str
    link, to : str
        The two links.
    points : (k, 3) array
        Centres in the frame of ``link``, m.
    radii : (k,) array
        Radii of the spheres around them, m; 0 for a point, such as the corner of a box.
    on : Plane or Shape
        The body of ``to``: a plane, a sphere, a capsule or a box.
    friction : float
        Coulomb's coefficient, >= 0.
    restitution : float
        From 0 to 1.
    serial : int
        A number that distinguishes this contact from a later one with the same name.

    Raises
    ------
    ContactError
        If there is no point, the body is none of these, or a point without radius could reach a body without thickness,
        where there is no normal; or if the friction or restitution is out of range.
    ShapeError
        If points or radii are not finite numbers of these shapes.
    """

    name: str
    link: str
    to: str
    points: Array
    radii: Array
    on: Plane | Shape
    friction: float = 0.0
    restitution: float = 0.0
    serial: int = field(default_factory=new_serial)

    def __post_init__(self) -> None:
        which = f"contact {self.name!r}"
        points = _numbers(self.points, f"the points of {which}", (-1, 3))
        radii = _numbers(self.radii, f"the radii of {which}", ())
        if not len(points):
            raise ContactError(f"{which} has no point; give points=, in the frame of {self.link!r}")
        if radii.ndim > 1 or radii.shape not in ((), (len(points),)) or (radii < 0).any():
            raise ShapeError(f"the radii of {which} must be numbers >= 0 m, one or {len(points)}; got {self.radii!r}")
        radii = np.broadcast_to(radii, len(points)).copy()
        if not isinstance(self.on, Plane | Shape) or (isinstance(self.on, Shape) and self.on.kind not in ROUND):
            kinds = ", ".join(f"Shape.{kind}(…)" for kind in ROUND)
            raise ContactError(f"{which} needs a Plane(…), {kinds} as on=; got {self.on!r}")
        _, half, grown = core(self.on)
        if (half == 0).any() and grown + radii.min() == 0:
            raise ContactError(
                f"{which} is between points and {self.on!r}, which has no thickness: there is no normal where they "
                f"meet; give the points a radius="
            )
        for what, most in (("friction", expressions.LARGEST), ("restitution", 1.0)):
            given = getattr(self, what)
            value = float(given) if isinstance(given, Real) and not isinstance(given, bool) else math.nan
            if not 0 <= value <= most:
                raise ContactError(f"the {what} of {which} must be a number from 0 to {most:g}; got {given!r}")
            object.__setattr__(self, what, value)
        for what, array in (("points", points), ("radii", radii)):
            array.setflags(write=False)
            object.__setattr__(self, what, array)

    def check_slides(self) -> None:
        """Raise ContactError if points could slip off an edge, where there is no normal."""
        if isinstance(self.on, Shape) and self.on.kind == "box" and self.radii.min() == 0:
            raise ContactError(
                f"contact {self.name!r} has points without radius on a box, which could slip off its edges, "
                f"where there is no normal; give them a radius=, or use on=Plane(…) for one face of the box"
            )

    def copied(self, names: Mapping[str, str], prefix: str = "") -> Contact:
        """A new contact between the same links by their new names; the prefix begins its own."""
        link, to = names[self.link], names[self.to]
        return replace(self, name=prefix + self.name, link=link, to=to, serial=new_serial())

    def subs(self, values: Mapping[Any, Any]) -> Contact:
        """A new contact; it has no symbols."""
        return replace(self, serial=new_serial())


def core(on: Plane | Shape) -> tuple[Array, Array, float]:
    """Pose, (4, 4), half of the edges, (3,), and radius of the body: all points within the radius of this box, m.

    The half-space z <= 0 has edges below zero.
    """
    if isinstance(on, Plane):
        pose = np.eye(4)
        pose[:3, :3] = np.reshape(frame_along(on.normal), (3, 3))
        pose[:3, 3] = np.array(on.normal) * on.offset
        return pose, np.full(3, -1.0), 0.0
    if on.kind == "box":
        return on.pose, np.array(on.size) / 2, 0.0
    return on.pose, np.array([0, 0, on.size[1] / 2 if on.kind == "capsule" else 0.0]), on.size[0]


def points_of(link: str, shapes: Sequence[Shape], on: object) -> tuple[Array, Array]:
    """Points and radii of the collision shapes, or if there are none of all shapes, that touch a body as these do.

    A sphere, a capsule and a box on a plane touch it by a centre, two ends and eight corners; a sphere, other bodies
    too. Raises ContactError for others.
    """
    chosen = [shape for shape in shapes if shape.use == "collision"] or list(shapes)
    if not chosen:
        raise ContactError(f"link {link!r} has no shapes, from which its points would be; give points=")
    points, radii = list[Array](), list[float]()
    for shape in chosen:
        _, half, radius = core(shape) if shape.kind in ROUND else (None, np.zeros(3), 0.0)
        if shape.kind not in ROUND or (half.any() and isinstance(on, Shape)):
            raise ContactError(
                f"the points of {shape!r} of link {link!r} on {on!r} are not known: spheres touch planes, spheres, "
                f"capsules and boxes, capsules and boxes touch planes; give points= and radius="
            )
        corners: Iterable[Any] = itertools.product(*[(x, -x) if x else (0.0,) for x in half.tolist()])
        points += [shape.pose[:3, :3] @ corner + shape.pose[:3, 3] for corner in corners]
        radii += [radius] * (len(points) - len(radii))
    return np.array(points), np.array(radii)


def _numbers(value: ArrayLike, what: str, shape: tuple[int, ...]) -> Array:
    """Finite numbers, of a given shape unless it is that of a single one; ShapeError."""
    found = np.array(expressions.floats(expressions.read(value, what), what))
    fits = found.ndim == len(shape) and all(n in (-1, m) for n, m in zip(shape, found.shape, strict=True))
    if not (fits or not shape) or not expressions.is_bounded(found):
        wanted = "finite numbers" + (f" of shape {shape}".replace("-1", "k") if shape else "")
        raise ShapeError(f"{what} must be {wanted}, at most {expressions.LARGEST:g}; got {value!r}")
    return found
