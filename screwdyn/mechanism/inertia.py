"""Mass properties of a rigid body, and Ball's principal screws of inertia (docs/mathematics.md §4-5)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from itertools import permutations
from typing import Any, Self

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import InertiaError, ScrewdynWarning
from screwdyn.core.types import Array, ArrayLike
from screwdyn.mechanism.mass_properties import (
    ROUNDING,
    failing_condition,
    malformed_numbers,
    read_array,
    read_com,
    read_number,
    read_tensor,
)
from screwdyn.mechanism.solids import Solids, squared_lengths
from screwdyn.screws.screw import as_pose, pose, skew, unskew

__all__ = ["Inertia", "failing_condition"]


def _parallel_axis(mass: float, offset: Array) -> Array:
    """Tensor m (r.r 1 - r r^T) of a point mass at r, shape (3, 3)."""
    x, y, z = offset.tolist()
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    return mass * np.array([[yy + zz, -xy, -xz], [-xy, xx + zz, -yz], [-xz, -yz, xx + yy]])


class Inertia(Solids):
    """Mass, centre of mass and inertia tensor of one rigid body, immutable.

    Parameters
    ----------
    mass : float
        In kg. Every number may be a SymPy expression; conditions that do not depend on symbols are checked.
    com : array_like, shape (3,), or 0
        Centre of mass in the link frame, in metres.
    tensor : array_like of shape (3, 3) or (3,), or 0
        Inertia tensor about the centre of mass in link axes, in kg m^2: all nine entries (with -int xy dm off the
        diagonal), three moments about the link axes, or 0 for a point mass. `planar` needs one moment only.

    Raises
    ------
    InertiaError
        If no rigid body has these properties (see `failing_condition`; docs/mathematics.md §5), or a shape is
        wrong. `Inertia.effective` accepts lumped numbers.
    """

    __slots__ = ("_com", "_effective", "_numbers", "_tensor")

    def __init__(self, mass: float, com: ArrayLike = (0.0, 0.0, 0.0), tensor: ArrayLike = 0.0) -> None:
        self._set(read_number(mass, "mass"), read_com(com), read_tensor(tensor), effective=False)
        condition = self.failing_condition
        if condition:
            raise InertiaError(f"no rigid body has this inertia: {condition}")

    def _set(self, mass: float, com: Array, tensor: Array, effective: bool) -> None:
        self._com, self._effective = com, effective
        malformed = malformed_numbers(mass, tensor)
        if malformed:
            raise InertiaError(malformed)
        self._tensor = (tensor + tensor.T) / 2
        self._com.flags.writeable = self._tensor.flags.writeable = False
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = self._tensor.tolist()
        self._numbers = (mass, *com.tolist(), xx, xy, xz, yy, yz, zz)

    @classmethod
    def _of(cls, mass: float, com: Array, tensor: Array, effective: bool) -> Self:
        """An inertia without the check of the conditions for a rigid body."""
        self = cls.__new__(cls)
        self._set(mass, com, tensor, effective)
        return self

    # constructors -----------------------------------------------------------------------------------------

    @classmethod
    def effective(cls, mass: float, com: ArrayLike = (0.0, 0.0, 0.0), tensor: ArrayLike = 0.0) -> Self:
        """Identified or lumped inertia, which need not be that of a rigid body.

        Parameters as for `Inertia`. Issues a ScrewdynWarning with the failing condition if there is one. Raises
        InertiaError for wrong shapes, an asymmetric tensor and numbers that are not finite.
        """
        self = cls._of(read_number(mass, "mass"), read_com(com), read_tensor(tensor), effective=True)
        condition = self.failing_condition
        if condition:
            warnings.warn(f"no rigid body has this effective inertia: {condition}", ScrewdynWarning, stacklevel=2)
        return self

    @classmethod
    def from_radii_of_gyration(
        cls, mass: float, radii: ArrayLike, rotation: ArrayLike | None = None, com: ArrayLike = 0.0
    ) -> Self:
        """Body with moments m a^2, m b^2, m c^2 about its principal axes (docs/mathematics.md §5).

        Parameters
        ----------
        mass, com
            As for `Inertia`.
        radii : array_like, shape (3,)
            Radii of gyration a, b, c in metres.
        rotation : array_like, shape (3, 3), optional
            Principal axes in the link frame, as columns; the link axes by default.

        Raises
        ------
        InertiaError, ShapeError
            As for `Inertia`, for a negative radius, or if the rotation is not orthonormal.
        """
        m, gyration = read_number(mass, "mass"), read_array(radii, "radii")
        if gyration.shape != (3,):
            raise InertiaError(f"radii must be three radii of gyration, got {gyration.tolist()}")
        moments = m * squared_lengths(gyration, "radius of gyration")
        R = np.eye(3) if rotation is None else as_pose(pose(rotation, np.zeros(3)), "principal axes")[:3, :3]
        return cls(m, com, (R * moments) @ R.T)

    @classmethod
    def from_principal_screws(cls, mass: float, screws: ArrayLike, com: ArrayLike = 0.0) -> Self:
        """Body whose six principal screws of inertia are the rows of S: M = (m/2) S^T S (Laus Eqs. 8-11).

        Parameters
        ----------
        mass, com
            As for `Inertia`.
        screws : array_like, shape (6, 6)
            Rows [h u; u] as in `principal_screws`, h in metres, in any order and with either sign.

        Raises
        ------
        InertiaError
            As for `Inertia`, or if the rows are not six principal screws of inertia.
        """
        m, S = read_number(mass, "mass"), expressions.floats(read_array(screws, "screws"), "the screws")
        if S.shape != (6, 6):
            raise InertiaError(f"screws must be six rows of six coordinates, got shape {S.shape}")
        if not np.isfinite(S).all():
            raise InertiaError(f"screws have entries that are not finite: {S.tolist()}")
        gram = 0.5 * S.T @ S
        expected = np.eye(6)
        expected[:3, :3] = gram[:3, :3]
        if not np.allclose(gram, expected, rtol=0.0, atol=ROUNDING * max(1.0, np.abs(S).max())):
            raise InertiaError(
                "these are not six principal screws of inertia: they must come in pairs of pitches +a, -a "
                "along three perpendicular axes, as [pitch * axis; axis]"
            )
        return cls(m, com, m * gram[:3, :3])

    @classmethod
    def from_parameters(cls, parameters: ArrayLike) -> Self:
        """Body with the ten `parameters` [m, hx, hy, hz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz] about the link origin.

        The first moment is h = m c, and the tensor is about the origin in link axes, with -int xy dm off the diagonal:
        kg, kg m and kg m^2, in the order of the columns of `tree.derivatives.regressor` (docs/mathematics.md §10).
        Pinocchio's `toDynamicParameters` has Iyy before Ixz.

        Raises
        ------
        InertiaError
            If they are not ten numbers, or no rigid body has them; the message states the condition that fails, for the
            moments about the centre of mass.
        """
        given = read_array(parameters, "parameters")
        if given.shape != (10,) or not expressions.is_finite(given):
            raise InertiaError(
                f"parameters must be the ten finite numbers [m, hx, hy, hz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz], got "
                f"{given.tolist()}"
            )
        m, x, y, z, xx, xy, xz, yy, yz, zz = given.tolist()
        return cls._about_origin(m, np.array([x, y, z]), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))

    @classmethod
    def _about_origin(cls, mass: float, first_moment: Array, theta: Array) -> Self:
        """Body with a first moment, and a tensor about the link origin."""
        if expressions.is_never_positive(mass):
            raise InertiaError(f"no rigid body has this inertia: mass {expressions.short(mass, 6)} kg is not positive")
        com = first_moment / mass
        tensor = theta - _parallel_axis(mass, com)
        if tensor.dtype != object:
            # Rounding of the subtraction may violate the condition that tr/2 - tensor is positive semidefinite:
            # negative eigenvalues within rounding are set to zero.
            sizes, axes = np.linalg.eigh(0.5 * np.trace(tensor) * np.eye(3) - tensor)
            if -1e-13 * np.trace(theta) <= sizes[0] < 0.0:
                sizes = np.maximum(sizes, 0.0)
                tensor = sizes.sum() * np.eye(3) - (axes * sizes) @ axes.T
        return cls(mass, com, tensor)

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Self:
        """Body with inertia [[Theta, h^], [-h^, m 1]] (6, 6) about the link origin (docs/mathematics.md §4).

        In kg m^2, kg m and kg. Raises InertiaError if the matrix does not have this form, or no rigid body has it.
        """
        given = expressions.floats(read_array(matrix, "matrix"), "the matrix")
        if given.shape != (6, 6) or not np.isfinite(given).all():
            raise InertiaError(f"matrix must be 6x6 and finite, got {given.tolist()}")
        self = cls._about_origin(float(np.trace(given[3:, 3:])) / 3.0, unskew(given[:3, 3:]), given[:3, :3])
        if not np.allclose(self.matrix, given, rtol=0.0, atol=ROUNDING * np.abs(given).max()):
            raise InertiaError("matrix does not have the form [[Theta, h^], [-h^, m 1]] of a rigid body's inertia")
        return self

    # properties -----------------------------------------------------------------------------------------

    @property
    def mass(self) -> float:
        """Mass in kg."""
        mass: float = self._numbers[0]
        return mass

    @property
    def com(self) -> Array:
        """Centre of mass in the link frame (3,), in metres; read-only."""
        return self._com

    @property
    def tensor(self) -> Array:
        """Inertia tensor about the centre of mass in link axes (3, 3), in kg m^2; read-only."""
        return self._tensor

    @property
    def entries(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Centre of mass, and xx, xy, xz, yy, yz, zz of the tensor, as tuples of floats or expressions."""
        return self._numbers[1:4], self._numbers[4:]

    @property
    def first_moment(self) -> Array:
        """h = m c in kg m, (3,)."""
        return self.mass * self.com

    @property
    def origin_tensor(self) -> Array:
        """Theta, the inertia tensor about the link origin in link axes (3, 3), in kg m^2."""
        return self.tensor + _parallel_axis(self.mass, self.com)

    @property
    def parameters(self) -> Array:
        """Mass, `first_moment` and xx, xy, xz, yy, yz, zz of `origin_tensor`, (10,), in kg, kg m and kg m^2.

        See `from_parameters`.
        """
        return np.array([self.mass, *self.first_moment, *self.origin_tensor[np.triu_indices(3)]])

    @property
    def matrix(self) -> Array:
        """Inertia [[Theta, h^], [-h^, m 1]] about the link origin, (6, 6), in SI units (docs/mathematics.md §4)."""
        result = self._mass_blocks()
        result[:3, :3] = self.origin_tensor
        result[:3, 3:] = skew(self.first_moment)
        result[3:, :3] = -result[:3, 3:]
        return result

    @property
    def com_matrix(self) -> Array:
        """M-bar = [[tensor, 0], [0, m 1]], (6, 6), about the centre of mass in link axes (Laus Eq. 9); SI units."""
        result = self._mass_blocks()
        result[:3, :3] = self.tensor
        return result

    def _mass_blocks(self) -> Array:
        """6x6 matrix with m on the diagonal."""
        return self.mass * np.eye(6, dtype=np.result_type(np.asarray(self.mass), self.com, self.tensor))

    @property
    def principal_moments(self) -> Array:
        """Moments about the columns of `principal_axes` (3,), in kg m^2."""
        return self._principal()[0]

    @property
    def principal_axes(self) -> Array:
        """Rotation (3, 3) whose columns are the principal axes in the link frame, nearest to x, y and z.

        Axes of equal moments are arbitrary in their plane. For a diagonal tensor they are the link axes. Raises
        UnboundSymbolError if the tensor contains symbols.
        """
        return self._principal()[1]

    def _principal(self) -> tuple[Array, Array]:
        moments, axes = np.linalg.eigh(expressions.floats(self.tensor, "the tensor of inertia"))
        alignment = np.abs(axes)
        order = list(max(permutations(range(3)), key=lambda p: float(alignment[np.arange(3), list(p)].sum())))
        moments, axes = moments[order], axes[:, order]
        # This is a rotation and not a reflection: its trace exceeds 1.
        return moments, axes * np.copysign(1.0, np.diag(axes))

    @property
    def radii_of_gyration(self) -> Array:
        """a, b, c = sqrt(moment / m) about the columns of `principal_axes` (3,), in metres.

        Raises InertiaError for an effective inertia with a negative moment or a mass that is not positive.
        """
        return self._gyration()[0]

    def _gyration(self) -> tuple[Array, Array]:
        moments, axes = self._principal()
        mass = float(expressions.floats(self.mass, "the mass"))
        if mass <= 0.0 or moments.min() < -ROUNDING * np.abs(moments).sum():
            raise InertiaError(f"there are no radii of gyration: {self.failing_condition}")
        return np.sqrt(np.maximum(moments, 0.0) / mass), axes

    @property
    def principal_screws(self) -> Array:
        """Ball's six principal screws of inertia as rows (6, 6): ``com_matrix == mass / 2 * S.T @ S``.

        Pitches h = +a, -a, +b, -b, +c, -c in metres, along the principal axes u through the centre of mass. The
        components [h u; u] are about the centre of mass in link axes, in the order [P, Q, R; L, M, N] of Laus Eqs. 2-7,
        with the direction last (docs/mathematics.md §5). Raises InertiaError as `radii_of_gyration` does.
        """
        radii, axes = self._gyration()
        pitches = np.column_stack([radii, -radii]).ravel()
        directions = np.repeat(axes.T, 2, axis=0)
        return np.hstack([pitches[:, None] * directions, directions])

    @property
    def failing_condition(self) -> str | None:
        """The condition for a rigid body that fails, with its numbers; None if all hold."""
        return failing_condition(self.mass, self.tensor)

    @property
    def is_physical(self) -> bool:
        """Whether a rigid body can have this inertia."""
        return self.failing_condition is None

    @property
    def is_effective(self) -> bool:
        """Whether it was made by `effective` (or from such an inertia), so that the conditions are not checked."""
        return self._effective

    # changes of frame and sums ----------------------------------------------------------------------------------

    def transformed(self, T: ArrayLike) -> Self:
        """Return the inertia of the body in a frame in which the link frame has pose T, (4, 4), or a translation (3,).

        ``b.transformed(T).matrix == Ad(inverse(T)).T @ b.matrix @ Ad(inverse(T))`` (docs/mathematics.md §4). Raises
        ShapeError if T is not a pose.
        """
        T = as_pose(T)
        R = T[:3, :3]
        return self._of(self.mass, R @ self.com + T[:3, 3], R @ self.tensor @ R.T, self._effective)

    @property
    def free_symbols(self) -> set[Any]:
        """SymPy symbols that the numbers depend on."""
        return expressions.free_symbols((self.mass, self.com, self.tensor))

    def subs(self, values: Mapping[Any, Any]) -> Self:
        """Return the inertia with values substituted for symbols.

        Raises InertiaError if no rigid body has the resulting inertia, unless it is `effective`.
        """
        values = expressions.bound(values, self.free_symbols)
        mass, com, tensor = (expressions.substituted(x, values) for x in (self.mass, self.com, self.tensor))
        return self._of(mass, com, tensor, True) if self._effective else type(self)(mass, com, tensor)

    def evaluated(self) -> Self:
        """Return the inertia with floats for all numbers; UnboundSymbolError if they contain symbols."""
        if isinstance(self.mass, float) and object not in (self.com.dtype, self.tensor.dtype):
            return self
        numbers = (expressions.floats(x, "the inertia") for x in (self.mass, self.com, self.tensor))
        mass, com, tensor = numbers
        return self._of(float(mass), com, tensor, self._effective)

    def __add__(self, other: object) -> Inertia:
        """Return the inertia of two bodies welded together, both in the same frame: the matrices add."""
        if not isinstance(other, Inertia):
            return NotImplemented
        mass, moment = self.mass + other.mass, self.first_moment + other.first_moment
        tensor = self.tensor + other.tensor
        if mass == 0.0:
            if moment.any():
                raise InertiaError("two effective masses cancel, but their first moments do not")
            return self._of(0.0, self.com.copy(), tensor, True)
        reduced = self.mass * other.mass / mass
        offset = _parallel_axis(reduced, other.com - self.com)
        return self._of(mass, moment / mass, tensor + offset, self._effective or other._effective)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Inertia):
            return NotImplemented
        return self._numbers == other._numbers

    def __hash__(self) -> int:
        return hash(self._numbers)

    def __reduce__(self) -> tuple[object, ...]:
        return self._of, (self.mass, self.com.copy(), self.tensor, self._effective)

    def __repr__(self) -> str:
        short = expressions.short
        mass, com = short(self.mass, 6), ", ".join(short(x, 6) for x in self.com)
        if self.free_symbols:
            return f"{type(self).__name__}(mass={mass}, com=[{com}], tensor={self.tensor.tolist()})"
        moments = ", ".join(short(x, 6) for x in self.principal_moments)
        return f"{type(self).__name__}(mass={mass}, com=[{com}], principal_moments=[{moments}])"
