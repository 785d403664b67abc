"""Contacts: places where two links may push each other (docs/mathematics.md §14)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from screwdyn.core import Array, ArrayLike, ContactError, ShapeError, cached_property, expressions
from screwdyn.mechanism.link import new_serial
from screwdyn.mechanism.shape import Shape
from screwdyn.screws.screw import frame_along, pose_of

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


class Core(NamedTuple):
    """A body: all points within the radius of a box with this pose and half of its edges, (3,), m.

    The half-space z <= 0 has edges below zero.
    """

    pose: Array
    half: Array
    radius: float


class Spot(NamedTuple):
    """A pair of cores that may touch: one without edges, or a segment of z, and any, or for a segment, a segment.

    The first is of ``link``, or if ``turned`` of ``to``.
    """

    turned: bool
    at: Core
    on: Core


@dataclass(frozen=True, eq=False)
class Contact:
    """Points or bodies of one link that may push a body of another one (docs/mathematics.md §14).

    Attributes
    ----------
    name : str
    link, to : str
        The two links.
    on : Plane or Shape
        The body of ``to``: a plane, a sphere, a capsule or a box.
    friction : float
        Coulomb's coefficient, >= 0.
    restitution : float
        From 0 to 1.
    points : (k, 3) array
        Centres of spheres, in the frame of ``link``, m.
    radii : (k,) array
        Their radii, m; 0 for a point.
    shapes : sequence of Shape
        Spheres, capsules and boxes of ``link`` that touch the body too.
    rounding : float
        Radius of the edges and corners of these boxes, and of the box that they touch, within their size, m.
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
    on: Plane | Shape
    friction: float = 0.0
    restitution: float = 0.0
    points: Array = field(default_factory=lambda: np.zeros((0, 3)))
    radii: Array = field(default_factory=lambda: np.zeros(0))
    shapes: Sequence[Shape] = ()
    rounding: float = 0.0
    serial: int = field(default_factory=new_serial)

    def __post_init__(self) -> None:
        which = f"contact {self.name!r}"
        points = _numbers(self.points, f"the points of {which}", (-1, 3))
        radii = _numbers(self.radii, f"the radii of {which}", None)
        shapes = tuple(self.shapes)
        if not len(points) and not shapes:
            raise ContactError(f"{which} has no point; give points=, in the frame of {self.link!r}")
        if radii.ndim > 1 or radii.shape not in ((), (len(points),)) or (radii < 0).any():
            raise ShapeError(f"the radii of {which} must be numbers >= 0 m, one or {len(points)}; got {self.radii!r}")
        radii = np.broadcast_to(radii, len(points)).copy()
        for body in (self.on, *shapes):
            if not (isinstance(body, Plane) and body is self.on) and getattr(body, "kind", None) not in ROUND:
                kinds = ", ".join(f"Shape.{kind}(…)" for kind in ROUND)
                raise ContactError(f"{which} needs a Plane(…), {kinds} as on=; got {body!r}")
        for what, most in (("friction", expressions.LARGEST), ("restitution", 1.0), ("rounding", expressions.LARGEST)):
            given = getattr(self, what)
            value = float(given) if isinstance(given, Real) and not isinstance(given, bool) else math.nan
            if not 0 <= value <= most:
                raise ContactError(f"the {what} of {which} must be a number from 0 to {most:g}; got {given!r}")
            object.__setattr__(self, what, value)
        for array in (points, radii):
            array.setflags(write=False)
        vars(self).update(points=points, radii=radii, shapes=shapes)
        if any((spot.on.half == 0).any() and spot.at.radius + spot.on.radius == 0 for spot in self.spots):
            what = "boxes with sharp edges" if shapes else f"points and {self.on!r}, which has no thickness"
            raise ContactError(
                f"{which} is between {what}: there is no normal where they meet; give {'' if shapes else 'the points '}"
                f"a radius="
            )

    @cached_property
    def spots(self) -> tuple[Spot, ...]:
        """The pairs that may touch: those of points, then those of shapes."""
        on, found = core(self.on, self.rounding if self.shapes else 0.0), list[Spot]()
        for point, radius in zip(self.points, self.radii.tolist(), strict=True):
            found.append(Spot(False, Core(pose_of(np.eye(3), point), np.zeros(3), radius), on))
        for shape in self.shapes:
            found += meetings(core(shape, self.rounding), on)
        return tuple(found)

    def check_slides(self) -> None:
        """Raise ContactError if points could slip off an edge, where there is no normal."""
        if any((spot.on.half > 0).sum() > 1 and spot.at.radius + spot.on.radius == 0 for spot in self.spots):
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


def core(on: Plane | Shape, rounding: float = 0.0) -> Core:
    """The core of a body; that of a box with rounded edges is smaller by their radius."""
    if isinstance(on, Plane):
        return Core(
            pose_of(np.reshape(frame_along(on.normal), (3, 3)), np.array(on.normal) * on.offset), -np.ones(3), 0
        )
    if on.kind != "box":
        return Core(on.pose, np.array([0, 0, on.size[1] / 2 if on.kind == "capsule" else 0.0]), on.size[0])
    if rounding > 0 and 2 * rounding >= min(on.size):
        raise ContactError(f"the edges of {on!r} are too short for a radius of {rounding:g} m; give a smaller radius=")
    return Core(on.pose, np.array(on.size) / 2 - rounding, rounding)


def features(of: Core, dimension: int) -> Iterator[Core]:
    """The corners, of dimension 0, or edges, of dimension 1, of a core.

    An edge is along z of its frame; where two faces meet in it, x and y are their normals, and its second half edge is
    the thickness of the core there, below zero.
    """
    wide = np.flatnonzero(of.half > 0).tolist()
    for along in itertools.combinations(wide, dimension):
        for corner in itertools.product(
            *[(x, -x) if k in {*wide} - {*along} else (0.0,) for k, x in enumerate(of.half)]
        ):
            turned = np.roll(of.pose[:3, :3], 2 - along[0], axis=1) if along else of.pose[:3, :3]
            half = np.array([0, 0, of.half[along[0]] if along else 0.0])
            if along and len(wide) == 3:
                out = np.sign(np.roll(corner, 2 - along[0])[:2])
                turned, half[1] = turned * [*out, out.prod()], -2 * np.delete(of.half, along[0]).min()
            yield Core(pose_of(turned, of.pose[:3, :3] @ corner + of.pose[:3, 3]), half, of.radius)


def meetings(own: Core, on: Core) -> Iterator[Spot]:
    """Where a body of the link may touch one of the other: with corners, the other's corners, and crossing edges."""
    if on.half.any() or not own.half.any():
        yield from [Spot(False, corner, on) for corner in features(own, 0)]
    if own.half.any() and on.half[2] >= 0:
        yield from [Spot(True, corner, own) for corner in features(on, 0)]
        yield from [Spot(False, *pair) for pair in itertools.product(features(own, 1), features(on, 1))]


def bodies_of(link: str, shapes: Sequence[Shape]) -> list[Shape]:
    """The collision shapes, or if there are none all shapes; ContactError unless they are spheres, capsules, boxes."""
    chosen = [shape for shape in shapes if shape.use == "collision"] or list(shapes)
    wrong = [shape for shape in chosen if shape.kind not in ROUND]
    if wrong or not chosen:
        raise ContactError(
            f"link {link!r} has {f'{wrong[0]!r}, which is no sphere, capsule or box' if wrong else 'no shapes'}, from "
            f"which its points would be; give points=, of meshes tree.hull({link!r}), and radius="
        )
    return chosen


def _numbers(value: ArrayLike, what: str, shape: tuple[int, ...] | None) -> Array:
    """Finite numbers, of a given shape or of any; ShapeError."""
    found = np.array(expressions.floats(expressions.read(value, what), what))
    fits = shape is None or (
        found.ndim == len(shape) and all(n in (-1, m) for n, m in zip(shape, found.shape, strict=True))
    )
    if not fits or not expressions.is_bounded(found):
        several = "finite numbers" + (f" of shape {shape}".replace("-1", "k") if shape else "")
        wanted = "a finite number" if shape == () else several
        raise ShapeError(f"{what} must be {wanted}, at most {expressions.LARGEST:g}; got {value!r}")
    return found
