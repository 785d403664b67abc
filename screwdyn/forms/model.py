"""A frozen snapshot of a tree as the table of numbers that the sweeps walk.

Every link hangs in the working frame of the freedom that carries it: the frame whose z axis is the joint's screw.
Links welded to one another share a row, so fixed joints and massless frames cost nothing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from screwdyn.backends.numba import kernels as looped
from screwdyn.core import expressions
from screwdyn.core.errors import ShapeError, StaleHandleError, UnboundSymbolError, UnknownLinkError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.forms.numbers import Dynamics
from screwdyn.mechanism.joint import Joint
from screwdyn.mechanism.link import Link
from screwdyn.physics.joint_forces import JointForces
from screwdyn.physics.link_steps import composed, inertia_inward
from screwdyn.physics.table import COLUMNS, MASS
from screwdyn.physics.vectors import Matrix, Vector, add, cross, dot, rotate, rotate_back, scale, transpose
from screwdyn.screws import screw

__all__ = ["Model", "Placement", "place"]

_NOTHING = (0.0,) * 10
# What entries of a rotation, at most 1, lose when two or three are multiplied.
_ROUNDING = 1e-15


class Placement(NamedTuple):
    """Where one link sits, in numbers that do not depend on q and never change while it is attached.

    Where the robot holds expressions, so does its placement.

    Attributes
    ----------
    coordinate : str or None
        The freedom whose row carries the link; ``None`` if it is welded to the base.
    R, p
        Pose of the link in that row's frame.
    body : 10 floats
        Mass, first moment and inertia about the origin of the row's frame.
    freedom : 14 floats or None
        Home pose, turn and slide of the row that begins with this link; ``None`` if its joint is fixed.
    parent : str or None
        The coordinate that carries the parent.
    link, joint
        What was attached, and by which joint; the base has none.
    """

    coordinate: str | None
    R: Matrix
    p: Vector
    body: tuple[float, ...]
    freedom: tuple[float, ...] | None
    parent: str | None
    link: Link
    joint: Joint | None


def place(
    link: Link,
    joint: Joint | None = None,
    home: Array | None = None,
    name: str | None = None,
    parent: Placement | None = None,
) -> Placement:
    """Placement of a link from its joint, home pose, joint's name and its parent's placement; the base has none."""
    R, p = _pose(np.eye(4) if home is None else home)
    freedom, carrier, coordinate = None, None, None
    if parent is not None:
        R, p = composed(*expressions.alike(parent.R, parent.p, R, p))
        carrier = coordinate = parent.coordinate
    if joint is not None and joint.screw is not None:
        D, d, turn, slide = _screw_frame(joint.screw)
        R, p = composed(*expressions.alike(R, p, D, d))
        freedom, coordinate = _tidied((*_squared(R), *p, turn, slide)), name
        R, p = transpose(D), scale(-1, rotate_back(D, d))
    R, p = _tidied(_squared(R)), _tidied(p)
    return Placement(coordinate, R, p, _tidied(_body(link, R, p)), freedom, carrier, link, joint)


def _squared(R: Matrix) -> Any:
    """A rotation without the rounding of right angles: cos(π/2) is 6e-17 in floats, which would cost as much as 0.6."""
    return tuple([_whole(x) if type(x) is float else x for x in R])


def _whole(x: float) -> float:
    size = abs(x)
    if size <= _ROUNDING:
        return 0.0
    return math.copysign(1.0, x) if abs(size - 1.0) <= _ROUNDING else x


def _tidied(entries: Any) -> Any:
    """Constants in which the lengths that cancel are cancelled."""
    if not expressions.possible():
        return entries
    return tuple(map(expressions.tidied, entries))


def _body(link: Link, R: Matrix, p: Vector) -> tuple[float, ...]:
    """The link's body in the row's frame, brought there from its centre of mass."""
    if link.inertia is None:
        return _NOTHING
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = link.inertia.tensor.tolist()
    com, (m,), I = tuple(link.inertia.com.tolist()), (link.inertia.mass,), (xx, xy, xz, yy, yz, zz)
    R, p, com, (m,), I, zero = expressions.alike(R, p, com, (m,), I, (0.0, 0.0, 0.0))
    m, h, I = inertia_inward(R, add(p, rotate(R, com)), m, zero, I)
    return (m, *h, *I)


def _pose(T: Array) -> tuple[Matrix, Vector]:
    a, b, c, _ = T.tolist()
    return (a[0], a[1], a[2], b[0], b[1], b[2], c[0], c[1], c[2]), (a[3], b[3], c[3])


def _screw_frame(S: Array) -> tuple[Matrix, Vector, float, float]:
    """Pose of a frame with the unit screw along z through its origin, and the screw's turn and slide there."""
    *w, a, b, c = S.tolist()
    v = (a, b, c)
    turns = any(w)
    D = screw.frame_along(w if turns else v)
    if not turns:
        return D, (0.0, 0.0, 0.0), 0.0, 1.0
    h = expressions.tidied(dot(w, v))
    if expressions.is_expression(h):
        return D, cross(w, v), 1.0, h
    # A pitch that is rounding of the cross product is none.
    return D, cross(w, v), 1.0, h if abs(h) > 1e-15 * max(map(abs, v)) else 0.0


class Model(Dynamics):
    """The numbers of one revision of a tree; never edited.

    Attributes
    ----------
    rows : list of list
        The numbers or expressions of every row; see ``physics.rows``.
    table : (nv + 1, 25) array
        The same as one array of numbers, with gravity at the end.
    ready : array or None
        The table if it holds numbers: what a call hands to compiled code at once, which refuses None.
    base_body : list
        Mass, first moment and inertia about the base's origin of all that is welded to the base.
    index : mapping from coordinate to row
    nv, square : int, (int, int)
        Number of rows, and the shape of M and C.
    placements : mapping from link name to :class:`Placement`
    gravity, base_first_moment : (3,) arrays
        Gravity in the base frame, and the first moment there of all that is welded to the base.
    revision : int
    """

    # What every call reads: a slot is found faster than what lies beside a cached property.
    __slots__ = ("kernels", "nv", "ready", "square")

    def __init__(self, placements: Mapping[str, Placement], gravity: Array, revision: int) -> None:
        rows: list[list[float]] = []
        index: dict[str | None, int] = {None: -1}
        base = [0.0] * 10
        for at in placements.values():
            row = index.get(at.coordinate, len(rows))
            if at.freedom is not None:
                index[at.coordinate] = row
                rows.append([*at.freedom, *at.body, index[at.parent]])
            elif at.body is not _NOTHING:
                sums, first = (base, 0) if row < 0 else (rows[row], MASS)
                for k, x in enumerate(at.body, first):
                    sums[k] += x
        self.rows = rows
        self.index = index
        self.nv = len(rows)
        self.square = (self.nv, self.nv)
        self.kernels: Any = looped
        self.placements = placements
        self.gravity = gravity
        self.revision = revision
        self.base_body = base
        try:
            self.ready: Array | None = self.table
        except UnboundSymbolError:
            self.ready = None

    def __reduce__(self) -> tuple[object, ...]:
        # A copy is made anew: compiled functions do not travel.
        return Model, (self.placements, self.gravity, self.revision)

    @property
    def model(self) -> Model:
        """Itself: a snapshot goes on answering for the tree as it was."""
        return self

    @cached_property
    def table(self) -> Array:
        """All rows, and gravity.

        Raises
        ------
        UnboundSymbolError
            If symbols stand where numbers should.
        """
        table = np.zeros((self.nv + 1, COLUMNS))
        try:
            if self.rows:
                table[:-1] = self.rows
            table[-1, :3] = self.gravity
        except TypeError:
            symbols = expressions.free_symbols([*itertools.chain(*self.rows), self.gravity])
            raise UnboundSymbolError.of(symbols, "the robot") from None
        return table

    @cached_property
    def base_first_moment(self) -> Array:
        """(3,): first moment of all that is welded to the base."""
        return expressions.floats(expressions.array(self.base_body[1:4]), "the base's first moment")

    @cached_property
    def weightless(self) -> Array:
        """The same table without gravity."""
        table = self.table.copy()
        table[-1] = 0
        return table

    @cached_property
    def inertias(self) -> Array:
        """(nv, 6, 6): inertia of every row in its own frame, [[Θ, ĥ], [−ĥ, m1]]."""
        t = self.table[:-1]
        I = np.zeros((self.nv, 6, 6))
        I[:, :3, :3] = t[:, [18, 19, 20, 19, 21, 22, 20, 22, 23]].reshape(-1, 3, 3)
        hat = screw.skew(t[:, 15:18])
        I[:, :3, 3:], I[:, 3:, :3] = hat, -hat
        I[:, 3:, 3:] = t[:, 14, None, None] * np.eye(3)
        return I

    @cached_property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the coordinates, in the order of the rows."""
        return tuple(name for name in self.index if name is not None)

    @cached_property
    def joints(self) -> tuple[Joint, ...]:
        """The joint of every row."""
        return tuple(at.joint for at in self.placements.values() if at.joint is not None and at.freedom is not None)

    @cached_property
    def passive(self) -> tuple[bool, ...]:
        """Which rows have no motor."""
        return tuple(joint.passive for joint in self.joints)

    @cached_property
    def loaded(self) -> npt.NDArray[np.bool_]:
        """(nv,): rows that may carry a payload: a body welded to something, or that swings, or a point at an end."""
        loaded = np.array(self.passive, dtype=bool)
        carriers = {self.index[at.parent] for at in self.placements.values() if at.freedom is not None}
        for at in self.placements.values():
            row, inertia = self.index[at.coordinate], at.link.inertia
            if row >= 0 and inertia is not None:
                loaded[row] |= at.freedom is None or (row not in carriers and not inertia.tensor.any())
        return loaded

    @cached_property
    def joint_forces(self) -> JointForces:
        """Damping, friction and springs of the joints."""
        return JointForces.of(self.joints)

    def com(self, link: str) -> Array:
        """Centre of mass of a link in its own frame; the origin if the link is massless."""
        inertia = self.placements[link].link.inertia
        return np.zeros(3) if inertia is None else expressions.floats(inertia.com, f"the centre of mass of {link!r}")

    def carrier(self, link: str) -> tuple[int, Array]:
        """Row that carries a link (−1: the base) and the link's pose in that row's frame.

        Raises
        ------
        StaleHandleError
            If this snapshot does not know the link.
        UnknownLinkError
            If the link is not given by its name.
        """
        if not isinstance(link, str):
            raise UnknownLinkError.of(link, self.placements)
        at = self.placements.get(link)
        if at is None:
            raise StaleHandleError(
                f"revision {self.revision} of the tree has no link {link!r}; after a change, take a new snapshot; "
                f"{UnknownLinkError.hint(link, self.placements)}"
            )
        T = np.eye(4)
        T[:3, :3] = expressions.floats(at.R, f"the pose of {link!r}").reshape(3, 3)
        T[:3, 3] = expressions.floats(at.p, f"the pose of {link!r}")
        return self.index[at.coordinate], T

    @staticmethod
    def numbers(what: str, value: ArrayLike) -> Array:
        """A float64 array of real numbers; what complex numbers, words, dates and ragged lists are not.

        Raises
        ------
        ShapeError
            Naming the argument.
        """
        try:
            return expressions.real(value)
        except (TypeError, ValueError, OverflowError):
            raise ShapeError(f"{what} must be an array of real numbers; got {value!r}") from None

    def flat(self, **named: ArrayLike) -> tuple[list[Array], tuple[int, ...]]:
        """Arrays over the coordinates, checked, broadcast together and flattened; and their batch shape.

        Raises
        ------
        ShapeError
            Naming the argument and the coordinates, if one has the wrong shape or an entry that is not finite.
        """
        arrays = []
        for what, value in named.items():
            a = self.numbers(what, value)
            if a.ndim == 0 or a.shape[-1] != self.nv:
                raise ShapeError(
                    f"{what} has shape {a.shape}; expected (…, {self.nv}), one entry for each of: "
                    f"{', '.join(self.coordinates) or 'no coordinates'}"
                )
            finite = np.isfinite(a)
            if not finite.all():
                where = tuple(np.argwhere(~finite)[0])
                raise ShapeError(f"{what} is {a[where]} at {self.coordinates[where[-1]]!r}; every entry must be finite")
            arrays.append(a)
        try:
            batch = np.broadcast_shapes(*(a.shape[:-1] for a in arrays))
        except ValueError:
            shapes = ", ".join(f"{what} {a.shape}" for what, a in zip(named, arrays, strict=True))
            raise ShapeError(f"the batch axes do not fit together: {shapes}") from None
        full = (*batch, self.nv)
        arrays = [a if a.shape == full else np.broadcast_to(a, full) for a in arrays]
        return [np.require(a, requirements=["C", "W", "A"]).ravel() for a in arrays], batch
