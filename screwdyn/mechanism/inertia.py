"""Mass properties of rigid bodies and solids, and Ball's principal screws of inertia (docs/mathematics.md §4-5)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from itertools import permutations
from typing import Any, Self

import numpy as np

from screwdyn.core import Array, ArrayLike, InertiaError, ScrewdynWarning, expressions
from screwdyn.mechanism.plausible import check_density
from screwdyn.screws.screw import as_pose, direction, pose, skew, unskew

# Tolerance for rounding of the moments of a point, a rod or a lamina, relative to the sum of the moments.
ROUNDING = 1e-9


def read_array(value: ArrayLike, what: str, shape: tuple[int, ...] | None = None, expected: str = "") -> Array:
    """Numbers and expressions as a new array, of any shape if none is given. All readers raise InertiaError."""
    found: Array = expressions.read(value, what, error=InertiaError)
    if shape is not None and found.shape != shape:
        raise InertiaError(f"{what} must be {expected}, got {found.tolist()}")
    return found


def read_number(value: ArrayLike, what: str) -> Any:
    """One number or expression."""
    return read_array(value, what, (), "one number").item()


def read_size(value: ArrayLike, what: str) -> Any:
    """One length that is not negative, or an expression."""
    size = read_number(value, what)
    if expressions.is_number(size) and not 0.0 <= size <= expressions.LARGEST:
        raise InertiaError(
            f"{what} must be finite, not negative and at most {expressions.LARGEST:g} m, got {float(size):g}"
        )
    return size


def read_com(value: ArrayLike) -> Array:
    """Centre of mass, (3,); 0 means the origin."""
    if np.ndim(value) == 0 and value == 0:
        return np.zeros(3)
    com = read_array(value, "com", (3,), "a 3-vector in metres or 0")
    if not expressions.is_bounded(com):
        raise InertiaError(f"com is not finite, or beyond {expressions.LARGEST:g} m: {com.tolist()}")
    return com


def read_tensor(value: ArrayLike) -> Array:
    """Tensor of inertia, (3, 3), from nine numbers, three moments, or 0."""
    tensor = read_array(value, "tensor")
    if tensor.shape == (3, 3):
        return tensor
    if tensor.shape == (3,):
        return np.diag(tensor)
    if tensor.shape == () and tensor == 0.0:
        return np.zeros((3, 3))
    raise InertiaError(f"tensor must be 3x3, 3 principal moments or 0, got {tensor.tolist()}")


def malformed_numbers(mass: float, tensor: Array) -> str | None:
    """Why the numbers are invalid even for an effective inertia; None if they are not."""
    if expressions.is_number(mass) and not abs(mass) <= expressions.LARGEST:
        return f"mass {mass} is not finite, or beyond {expressions.LARGEST:g} kg"
    if not expressions.is_finite(tensor):
        return f"tensor is not finite: {tensor.tolist()}"
    if tensor.dtype == object:
        symmetric = all(expressions.is_zero(x) for x in (tensor - tensor.T).flat)
        return None if symmetric else f"tensor is not symmetric: {tensor.tolist()}"
    if np.abs(tensor - tensor.T).max() > ROUNDING * np.abs(tensor).max():
        return f"tensor is not symmetric: {tensor.tolist()}"
    return None


def failing_condition(mass: float, tensor: ArrayLike) -> str | None:
    """The first condition for a rigid body that a mass, kg, and a tensor about its centre, (3, 3), kg m^2, break.

    Points, thin rods and laminas satisfy the conditions of docs/mathematics.md §5 with equality. If there are symbols,
    only conditions that fail for all values count.
    """
    tensor = expressions.array(tensor)
    malformed = malformed_numbers(mass, tensor)
    if malformed:
        return malformed
    if expressions.is_never_positive(mass):
        return f"mass {expressions.short(mass, 6)} kg is not positive"
    if expressions.free_symbols([tensor]):
        negative = [x for x in np.diag(tensor) if expressions.is_never_positive(x) and not expressions.is_zero(x)]
        return f"moment of inertia {negative[0]} kg m^2 is negative" if negative else None
    tensor = expressions.floats(tensor)
    a, b, c = np.linalg.eigvalsh(tensor).tolist()
    slack = ROUNDING * (abs(a) + abs(b) + abs(c))
    if a < -slack:
        return f"principal moment {a:.6g} kg m^2 is negative"
    if a + b < c - slack:
        hint = "; for a planar model, use Inertia.planar" if a + b <= slack else ""
        return f"principal moments break the triangle inequality: {a:.6g} + {b:.6g} < {c:.6g} kg m^2{hint}"
    return None


def squared_lengths(value: ArrayLike, what: str, expected: str, each: str) -> Array:
    """Squares of three lengths that are not negative."""
    return np.array([size * size for size in (read_size(x, each) for x in read_array(value, what, (3,), expected))])


def _parallel_axis(mass: float, offset: Array) -> Array:
    """Tensor m (r.r 1 - r r^T) of a point mass at r, shape (3, 3)."""
    x, y, z = offset.tolist()
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    return mass * np.array([[yy + zz, -xy, -xz], [-xy, xx + zz, -yz], [-xz, -yz, xx + yy]])


# Names of the ten parameters of a body (docs/mathematics.md §10).
INERTIAL: tuple[str, ...] = ("m", "hx", "hy", "hz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")


class Inertia:
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

    Notes
    -----
    The constructors of solids take masses in kg, lengths in metres and `com` (3,) in metres. They raise InertiaError
    also for negative lengths, and ScrewdynError for a zero axis.
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
        m = read_number(mass, "mass")
        moments = m * squared_lengths(radii, "radii", "three radii of gyration", "radius of gyration")
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
        m, S = read_number(mass, "mass"), read_array(screws, "screws", (6, 6), "of shape (6, 6)")
        S = expressions.floats(S, "the screws")
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

    # solids of uniform density ------------------------------------------------------------------------------

    @classmethod
    def point(cls, mass: float, com: ArrayLike = 0.0) -> Self:
        """Point mass at `com`."""
        return cls(mass, com)

    @classmethod
    def _axial(cls, mass: float, along: float, across: float, axis: str | ArrayLike, com: ArrayLike) -> Self:
        """Body of revolution with moments `along` about its axis and `across` about perpendicular axes."""
        a = direction(axis)
        if a.shape != (3,):
            raise InertiaError(f"axis must be one direction, got {a.tolist()}")
        return cls(mass, com, np.diag([across] * 3) + (along - across) * np.outer(a, a))

    @classmethod
    def rod(cls, mass: float, length: float, axis: str | ArrayLike = "x", com: ArrayLike = 0.0) -> Self:
        """Thin uniform rod along `axis` ("x", "y", "z" or a vector), moments 0 about it and m l^2 / 12 across it."""
        m, l = read_number(mass, "mass"), read_size(length, "length")
        return cls._axial(m, 0.0, m * (l * l) / 12, axis, com)

    @classmethod
    def box(cls, mass: float, size: ArrayLike, com: ArrayLike = 0.0) -> Self:
        """Uniform box with edges `size` (3,) in metres along the link axes, with moments m (y^2 + z^2) / 12, …."""
        m, squares = read_number(mass, "mass"), squared_lengths(size, "size", "the three edges of the box", "edge")
        check_density(m, math.sqrt(squares.prod()) if squares.dtype != object else None)
        return cls(m, com, m * (squares.sum() - squares) / 12)

    @classmethod
    def cylinder(
        cls, mass: float, radius: float, length: float, axis: str | ArrayLike = "z", com: ArrayLike = 0.0
    ) -> Self:
        """Uniform solid cylinder, with moments m r^2 / 2 about `axis` and m (3 r^2 + l^2) / 12 across it."""
        m, r, l = read_number(mass, "mass"), read_size(radius, "radius"), read_size(length, "length")
        check_density(m, math.pi * r * r * l)
        return cls._axial(m, m * (r * r) / 2, m * (3 * (r * r) + l * l) / 12, axis, com)

    @classmethod
    def sphere(cls, mass: float, radius: float, com: ArrayLike = 0.0) -> Self:
        """Uniform solid sphere, with moments 2 m r^2 / 5."""
        m, r = read_number(mass, "mass"), read_size(radius, "radius")
        check_density(m, 4 / 3 * math.pi * r**3)
        return cls(m, com, [2 * m * (r * r) / 5] * 3)

    @classmethod
    def planar(cls, mass: float, com: ArrayLike, izz: float) -> Self:
        """Lamina in the xy plane, with moment `izz` about z through its centre of mass and izz / 2 about x and y.

        For planar arms of textbooks, whose motion about z does not depend on the other moments. `com` is (2,) or (3,),
        and `izz` in kg m^2.
        """
        com, izz = read_array(com, "com"), read_number(izz, "izz")
        if com.shape == (2,):
            com = np.append(com, 0)
        return cls(mass, com, (izz / 2, izz / 2, izz))

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
        """Mass, `first_moment` and xx, xy, xz, yy, yz, zz of `origin_tensor`, (10,), SI; see `from_parameters`."""
        return np.array([self.mass, *self.first_moment, *self.origin_tensor[np.triu_indices(3)]])

    @property
    def matrix(self) -> Array:
        """Inertia [[Theta, h^], [-h^, m 1]] about the link origin, (6, 6), in SI units (docs/mathematics.md §4)."""
        return self._matrix(self.origin_tensor, skew(self.first_moment))

    @property
    def com_matrix(self) -> Array:
        """M-bar = [[tensor, 0], [0, m 1]], (6, 6), about the centre of mass in link axes (Laus Eq. 9); SI units."""
        return self._matrix(self.tensor, np.zeros((3, 3)))

    def _matrix(self, tensor: Array, across: Array) -> Array:
        """[[tensor, across], [−across, m 1]], (6, 6)."""
        result = self.mass * np.eye(6, dtype=np.result_type(np.asarray(self.mass), self.com, self.tensor))
        result[:3, :3], result[:3, 3:], result[3:, :3] = tensor, across, 0 - across
        return result

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
        """a, b, c = sqrt(moment / m) about `principal_axes` (3,), m; InertiaError for negative moments or mass."""
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
        """Return the inertia with values for symbols; InertiaError if no body has it, unless it is `effective`."""
        values = expressions.bound(values, self.free_symbols)
        mass, com, tensor = (expressions.substituted(x, values) for x in (self.mass, self.com, self.tensor))
        return self._of(mass, com, tensor, True) if self._effective else type(self)(mass, com, tensor)

    def evaluated(self) -> Self:
        """Return the inertia with floats for all numbers; UnboundSymbolError if they contain symbols."""
        if isinstance(self.mass, float) and object not in (self.com.dtype, self.tensor.dtype):
            return self
        mass, com, tensor = (expressions.floats(x, "the inertia") for x in (self.mass, self.com, self.tensor))
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
