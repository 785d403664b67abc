"""Shapes of links: bodies that a picture shows. They have no part in the dynamics."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Self, TypedDict, Unpack, get_args

import numpy as np

from screwdyn.core import Array, ArrayLike, ShapeError, expressions, spelled_out
from screwdyn.screws.screw import as_pose

Kind = Literal["box", "cylinder", "capsule", "sphere", "mesh"]
Use = Literal["visual", "collision"]

# What the entries of `size` are called in messages.
_SIZES: dict[str, tuple[str, ...]] = {
    "box": ("edge x", "edge y", "edge z"),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "sphere": ("radius",),
    "mesh": ("scale x", "scale y", "scale z"),
}
_IDENTITY = np.eye(4)


class Look(TypedDict, total=False):
    """Keyword arguments of all kinds of shapes; see :class:`Shape`."""

    pose: ArrayLike | None
    color: ArrayLike | None
    use: Use


_spelled_out = spelled_out({"pose": None, "color": None, "use": "visual"})


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Shape:
    """A body that a picture shows, fixed to a link; immutable.

    :meth:`box`, :meth:`cylinder`, :meth:`capsule`, :meth:`sphere` and :meth:`mesh` make shapes. A shape changes no
    mass, inertia or motion.

    Parameters
    ----------
    kind : "box", "cylinder", "capsule", "sphere" or "mesh"
    size : tuple of floats
        Edges along x, y and z of a box; radius and length of a cylinder or capsule, whose axis is z (without the
        hemispheres of the capsule); radius of a sphere, m. Factors along x, y and z of a mesh.
    path : str, optional
        File of a mesh; None for other kinds. The file is not read. A name that a reader could not resolve, such as
        ``package://arm/link.stl``, stays as it is.
    pose : (4, 4) pose or (3,) position, optional
        Of the shape's frame in the link's frame, m; the identity by default. The origin is the centre of the shape, or
        that of the mesh's file. Read-only.
    color : three or four numbers, optional
        Red, green, blue and opacity from 0 to 1; opaque by default. None for no particular colour.
    use : "visual" or "collision"
        Whether it is what the link looks like or the simpler body for contacts, which pictures do not show by default.

    Raises
    ------
    ShapeError
        If a size is negative or not finite, a factor of a mesh is 0, a mesh has no path or another kind has one, or the
        pose, the colour or the use is not valid.

    Notes
    -----
    Shapes are equal if all these values are.

    Examples
    --------
    >>> import screwdyn as sd
    >>> tree = sd.KinematicTree()
    >>> crate = sd.Shape.box((0.2, 0.3, 0.1), pose=(0, 0, 0.05), color=(0.8, 0.5, 0.2))
    >>> handle = tree.attach(sd.Inertia.box(2.0, (0.2, 0.3, 0.1), com=(0, 0, 0.05)), to="base", shape=crate)
    >>> tree.shapes("payload")
    (Shape.box((0.2, 0.3, 0.1), pose=(0, 0, 0.05), color=(0.8, 0.5, 0.2, 1)),)
    """

    kind: Kind
    size: tuple[float, ...]
    path: str | None
    pose: Array
    color: tuple[float, ...] | None
    use: Use

    def __init__(
        self,
        kind: Kind,
        size: ArrayLike,
        path: str | os.PathLike[str] | None = None,
        pose: ArrayLike | None = None,
        color: ArrayLike | None = None,
        use: Use = "visual",
    ) -> None:
        if kind not in _SIZES:
            raise ShapeError(f"a shape is one of {', '.join(_SIZES)}; got {kind!r}")
        if use not in get_args(Use):
            raise ShapeError(f"the use of a shape is 'visual' or 'collision'; got {use!r}")
        if kind != "mesh" and path is not None:
            raise ShapeError(f"only a mesh has a path; a {kind} got {path!r}")
        file = os.fspath(path) if isinstance(path, os.PathLike) else path
        if kind == "mesh" and not (isinstance(file, str) and file):
            raise ShapeError(f"a mesh needs the path of its file; got {path!r}")
        what = f"the pose of a {kind}"
        T = expressions.floats(as_pose(pose, what), what)
        T.setflags(write=False)
        look = None if color is None else _color(color)
        vars(self).update(kind=kind, size=_size(kind, size), path=file, pose=T, color=look, use=use)

    @classmethod
    @_spelled_out
    def box(cls, size: ArrayLike, **look: Unpack[Look]) -> Self:
        """A box with its centre at the origin and edges `size` (3,) along x, y, z, m; else as for :class:`Shape`."""
        return cls("box", size, **look)

    @classmethod
    @_spelled_out
    def cylinder(cls, radius: float, length: float, **look: Unpack[Look]) -> Self:
        """A cylinder about z with its centre at the origin; radius and length in m; all else as for :class:`Shape`."""
        return cls("cylinder", (radius, length), **look)

    @classmethod
    @_spelled_out
    def capsule(cls, radius: float, length: float, **look: Unpack[Look]) -> Self:
        """A cylinder about z with its centre at the origin and a hemisphere on each end; radius and length in m.

        The length is that of the cylinder, without the hemispheres. Other parameters and errors as for :class:`Shape`.
        """
        return cls("capsule", (radius, length), **look)

    @classmethod
    @_spelled_out
    def sphere(cls, radius: float, **look: Unpack[Look]) -> Self:
        """A sphere with its centre at the origin; radius in m. Other parameters and errors as for :class:`Shape`."""
        return cls("sphere", (radius,), **look)

    @classmethod
    @_spelled_out
    def mesh(cls, path: str | os.PathLike[str], scale: ArrayLike = 1.0, **look: Unpack[Look]) -> Self:
        """A triangle mesh in a file, such as STL, OBJ or Collada; `scale` is one factor or three, along x, y and z.

        Other parameters and errors as for :class:`Shape`.
        """
        return cls("mesh", scale, path, **look)

    @property
    def _values(self) -> tuple[object, ...]:
        return self.kind, self.size, self.path, tuple(self.pose.ravel().tolist()), self.color, self.use

    def __eq__(self, other: object) -> bool:
        return self._values == other._values if isinstance(other, Shape) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._values)

    def __reduce__(self) -> tuple[object, ...]:
        # An array that has been pickled could be written to.
        return type(self), (self.kind, self.size, self.path, self.pose, self.color, self.use)

    def __repr__(self) -> str:
        def text(x: Iterable[float]) -> str:
            return f"({', '.join(f'{value:.6g}' for value in x)})"

        sizes = ", ".join(f"{x:.6g}" for x in self.size)
        shown = [repr(self.path), f"scale={text(self.size)}"] if self.kind == "mesh" else [sizes]
        if self.kind == "box":
            shown = [text(self.size)]
        if not np.array_equal(self.pose, _IDENTITY):
            turned = not np.array_equal(self.pose[:3, :3], _IDENTITY[:3, :3])
            shown.append("pose=" + (repr(self.pose.round(6).tolist()) if turned else text(self.pose[:3, 3])))
        shown += [] if self.color is None else [f"color={text(self.color)}"]
        shown += [] if self.use == "visual" else [f"use={self.use!r}"]
        return f"{type(self).__name__}.{self.kind}({', '.join(shown)})"


Shapes = Shape | Iterable[Shape]


def shapes_of(given: Shapes) -> tuple[Shape, ...]:
    """One or several shapes as a tuple; ShapeError if something else is given."""
    shapes = (given,) if isinstance(given, Shape | str) or not isinstance(given, Iterable) else tuple(given)
    wrong = [x for x in shapes if not isinstance(x, Shape)]
    if wrong:
        raise ShapeError(f"a shape is made by Shape.box(), Shape.mesh(), …; got {wrong[0]!r}")
    return shapes


def _numbers(value: ArrayLike, what: str) -> list[float]:
    """One number or several, finite and not too large."""
    numbers = expressions.floats(expressions.read(value, what), what)
    if numbers.ndim > 1 or not expressions.is_bounded(numbers):
        raise ShapeError(f"{what} must be finite numbers, at most {expressions.LARGEST:g}; got {value!r}")
    return [x + 0.0 for x in numbers.ravel().tolist()]


def _size(kind: str, value: ArrayLike) -> tuple[float, ...]:
    names, factors = _SIZES[kind], kind == "mesh"
    what = f"the {'scale' if factors else 'size'} of a {kind}"
    numbers = _numbers(value, what)
    if factors and len(numbers) == 1:
        numbers *= 3
    if len(numbers) != len(names):
        raise ShapeError(f"{what} is ({', '.join(names)}); got {value!r}")
    for name, x in zip(names, numbers, strict=True):
        if (factors and x == 0) or (not factors and x < 0):
            raise ShapeError(f"the {name} of a {kind} must {'not be 0' if factors else 'be >= 0 m'}; got {x:g}")
    return tuple(numbers)


def _color(value: ArrayLike) -> tuple[float, ...]:
    numbers = _numbers(value, "the colour of a shape")
    if len(numbers) not in (3, 4) or not all(0 <= x <= 1 for x in numbers):
        raise ShapeError(f"a colour is (red, green, blue, opacity), each from 0 to 1; got {value!r}")
    return (*numbers, 1.0)[:4]
