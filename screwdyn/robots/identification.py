"""Inertial parameters from measured motions and torques: a body's ten, or the base parameters of a whole robot.

See docs/identification.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from screwdyn.core import Array, ArrayLike, Indices, ScrewdynError, ScrewdynWarning, ShapeError, UnknownNameError
from screwdyn.mechanism.inertia import INERTIAL, Inertia
from screwdyn.physics.joint_forces import SLIP
from screwdyn.tree import KinematicTree

__all__ = ["BaseParameters", "Friction", "Identified", "ParameterEstimate", "base_parameters", "identify"]

# Units of the ten parameters of a body (docs/mathematics.md §10).
_UNITS: tuple[str, ...] = ("kg", *["kg m"] * 3, *["kg m²"] * 6)


@dataclass(frozen=True, eq=False)
class _Samples:
    """Samples of a motion, flattened to N states q (N, nq), qd and qdd (N, nv), of a copy of a tree."""

    tree: KinematicTree
    q: Array
    qd: Array
    qdd: Array

    @classmethod
    def of(cls, tree: KinematicTree, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Self:
        """The samples (…, nq), (…, nv), (…, nv), broadcast together; ShapeError for other arrays."""
        tree = tree.copy()
        flat, _ = tree.model.flat(q=q, qd=qd, qdd=qdd)
        return cls(tree, *(x.reshape(-1, n) for x, n in zip(flat, (tree.nq, tree.nv, tree.nv), strict=True)))

    def columns(self, friction: bool, link: str | None = None) -> Array:
        """The regressor of a link, or of all, (N, nv, p); then of viscous, dry (smoothed) friction and offsets."""
        columns = self.tree.derivatives.regressor(self.q, self.qd, self.qdd, link)
        if not friction:
            return columns
        others = (self.qd, np.tanh(self.qd / SLIP), np.ones_like(self.qd))
        return np.concatenate([columns, *(x[..., None] * np.eye(self.tree.nv) for x in others)], axis=-1)

    def rest(self, tau: ArrayLike, friction: bool, inertial: Array) -> Array:
        """Measured torques without what is known, (N, nv): all but some inertial ones, and the friction if unknown."""
        forces = self.tree.model.joint_forces
        measured = self.tree.model.torques(tau).reshape(-1, self.tree.nv)
        if len(measured) != len(self.q):
            raise ShapeError(f"tau has {len(measured)} samples, but the motion has {len(self.q)}; give one for each")
        known = self.tree.inverse_dynamics(self.q, self.qd, self.qdd) - forces.spring_force(self.q)
        if not friction:
            known = known - forces.viscous_force(self.qd) - forces.smoothed_friction(self.qd)
        return np.asarray(measured - (known - inertial))

    def deviations(self, noise: ArrayLike | None) -> Array | None:
        """Standard deviations of the torques, (nv,), given as one number or one for each freedom; else ShapeError."""
        if noise is None:
            return None
        tree = self.tree
        given = tree.model.numbers("noise", noise)
        if given.shape not in ((), (tree.nv,)) or not np.all((given > 0) & np.isfinite(given)):
            raise ShapeError(
                f"noise must be the standard deviation of the torques, one positive number or one for each of: "
                f"{', '.join(tree.coordinates)}; got {noise!r}"
            )
        return np.array(np.broadcast_to(given, (tree.nv,)))


def _labels(
    tree: KinematicTree, friction: bool, prefixes: Sequence[str] = ("",)
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names and units of the parameters of bodies, and of friction and offsets if they are unknown."""
    names = [prefix + name for prefix in prefixes for name in INERTIAL]
    units = [*_UNITS] * len(prefixes)
    if friction:
        turns = [S[:3].any() for joint in map(tree.joint, tree.joints) if joint.nv for S in joint.screws.T]
        for what, turning, sliding in (("viscous", "N m s/rad", "N s/m"), ("dry", "N m", "N"), ("offset", "N m", "N")):
            names += [f"{name}.{what}" for name in tree.coordinates]
            units += [turning if turn else sliding for turn in turns]
    return tuple(names), tuple(units)


class Friction(NamedTuple):
    """Friction of one freedom: viscous q̇ + dry sgn q̇ + offset, N m or N.

    ``viscous`` and ``dry`` are the ``damping`` and ``friction`` of a joint; ``offset`` is an error of the measured
    torque, or a constant load.
    """

    viscous: float
    dry: float
    offset: float


@dataclass(frozen=True, eq=False, repr=False)
class ParameterEstimate:
    """Estimated numbers with their covariance. Its text is a table.

    Attributes
    ----------
    names, units : tuples of str
    values : (p,) array
    covariance : (p, p) array
        Of the weighted least squares, for exact q, q̇, q̈ and independent normal noise of the torques. Infinite
        variances, and NaN beside them, for numbers that the data do not determine.
    noise : (nv,) array
        Standard deviation of the noise of the torque of each freedom, given or estimated, N m or N.
    residual : (N, nv) array
        Measured torques minus those of the estimate, N m or N.
    condition : float
        Condition number of the weighted columns scaled to length 1, apart from undetermined directions. Below about
        100, motions excite the numbers well.
    undetermined : tuple of str
        Combinations of the numbers that can change without any change of the torques.
    coordinates : tuple of str
        Names of the freedoms.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    values: Array
    covariance: Array
    noise: Array
    residual: Array
    condition: float
    undetermined: tuple[str, ...]
    coordinates: tuple[str, ...]

    @property
    def standard_errors(self) -> Array:
        """Standard errors of the values, (p,); infinite for values that the data do not determine."""
        return np.sqrt(np.diag(self.covariance))

    @cached_property
    def friction(self) -> Mapping[str, Friction]:
        """Friction of each freedom, if it was estimated."""
        values = dict(zip(self.names, self.values.tolist(), strict=True))
        named = [name for name in self.coordinates if f"{name}.dry" in values]
        return {name: Friction(*(values[f"{name}.{what}"] for what in Friction._fields)) for name in named}

    def __getitem__(self, name: str) -> float:
        """An estimated number; UnknownNameError if there is none of this name."""
        return self._derived(name)[0]

    def standard_error(self, name: str) -> float:
        """The standard error of an estimated number; UnknownNameError if there is none of this name."""
        covariance = self._propagated(self._derived(name)[1][None])
        return float(np.sqrt(covariance[0, 0]))

    def ellipse(self, first: str, second: str, level: float = 0.95, points: int = 100) -> Array:
        """The border of the confidence region of two numbers, (points, 2).

        It contains the true numbers with probability ``level``: where ``δᵀ P⁻¹ δ = −2 log(1 − level)``, with P their
        covariance.

        Raises
        ------
        UnknownNameError
            If there is no such number.
        ScrewdynError
            If the data do not determine a number, or the level is not between 0 and 1.
        """
        if not 0.0 < level < 1.0:
            raise ScrewdynError(f"level must be between 0 and 1, such as 0.95; got {level}")
        (x, along_x), (y, along_y) = self._derived(first), self._derived(second)
        slopes = np.stack([along_x, along_y])
        P = self._propagated(slopes)
        if not np.isfinite(P).all():
            raise ScrewdynError(
                f"the data do not determine {first!r} and {second!r}, so there is no ellipse; undetermined: "
                f"{'; '.join(self.undetermined)}"
            )
        sizes, axes = np.linalg.eigh(P)
        angle = np.linspace(0, 2 * np.pi, points)
        radii = np.sqrt(np.maximum(sizes, 0.0) * -2 * np.log(1 - level))
        circle = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        return np.asarray([x, y] + circle * radii @ axes.T)

    def _propagated(self, slopes: Array) -> Array:
        """Covariance of numbers with derivatives (k, p), (k, k); infinite if one of the values is not determined."""
        used = slopes.any(axis=0)
        covariance = self.covariance[np.ix_(used, used)]
        if not np.isfinite(covariance).all():
            return np.full((len(slopes), len(slopes)), np.inf)
        return np.asarray(slopes[:, used] @ covariance @ slopes[:, used].T)

    def _derived(self, name: str) -> tuple[float, Array]:
        """A number and its derivatives with respect to the values, (p,)."""
        UnknownNameError.check(name, self.names, "estimated number")
        k = self.names.index(name)
        return float(self.values[k]), np.eye(len(self.names))[k]

    def __repr__(self) -> str:
        width, units = max(map(len, self.names), default=0), dict(zip(self.names, self.units, strict=True))
        lines = [self._title(), f"{'':{width}}  {'estimate':>12}  {'std. error':>10}"]
        for name in self._listed():
            value, error = self[name], self.standard_error(name)
            digits = "undetermined" if np.isinf(error) else f"{error:10.3g}"
            unit = units.get(name, "m")
            lines.append(f"{name:{width}}  {value:12.6g}  {digits}  {unit}".rstrip())
        return "\n".join([*lines, *self._problems()])

    def _title(self) -> str:
        size = np.sqrt(np.mean(self.residual**2, axis=0))
        rms = ", ".join(f"{name} {x:.3g}" for name, x in zip(self.coordinates, size, strict=True))
        return f"{len(self.residual)} samples, condition number {self.condition:.3g}; residual rms: {rms}"

    def _listed(self) -> tuple[str, ...]:
        """Names of the lines of the table; those that are no values are in metres."""
        return self.names

    def _problems(self) -> list[str]:
        """What the data do not determine, and what to do."""
        if not self.undetermined:
            return []
        what = "; ".join(self.undetermined)
        return [f"the data do not determine {what}; give motions that excite them, and see standard_errors"]

    def warn(self) -> None:
        """Issue a warning for each problem, at the caller of the function that calls this."""
        for problem in self._problems():
            warnings.warn(problem, ScrewdynWarning, stacklevel=3)


def _combinations(rows: Array, names: Sequence[str]) -> tuple[str, ...]:
    """Sums of numbers as texts, such as "link1.Izz + 0.25 link2.m"."""
    texts = []
    for row in rows.tolist():
        text = ""
        for c, name in ((c, name) for c, name in zip(row, names, strict=True) if c):
            sign = ("-" if c < 0 else "") if not text else " - " if c < 0 else " + "
            text += f"{sign}{'' if abs(abs(c) - 1.0) < 1e-6 else f'{abs(c):.4g} '}{name}"
        texts.append(text)
    return tuple(texts)


_COM = ("cx", "cy", "cz")
# Standard error, relative to what a body of this mass and size has, above which a parameter is poorly determined.
_POOR = 0.5


@dataclass(frozen=True, eq=False, repr=False)
class Identified(ParameterEstimate):
    """The ten parameters of a body, with their covariance. Its text is a table.

    ``values`` begin with [m, hx, hy, hz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz] about the origin of the link's frame and in its
    axes, with h = m c; then come viscous friction, dry friction and offsets of all freedoms, if they were estimated.
    The centre of mass, "cx", "cy" and "cz", may be named too, such as in ``found.ellipse("m", "cx")``.

    Attributes
    ----------
    link : str
    inertia : Inertia
        A rigid body can have it: ``tree.set_inertia(link, found.inertia)``.
    adjusted : bool
        Whether weighted least squares alone gave parameters that no rigid body has; ``values`` are then those of the
        nearest one in the metric of the torques. ``covariance`` is always that without this condition.
    """

    link: str
    inertia: Inertia
    adjusted: bool

    @property
    def parameters(self) -> Array:
        """The ten parameters, (10,), kg, kg m and kg m²."""
        return self.values[:10]

    @property
    def poorly_determined(self) -> tuple[str, ...]:
        """Parameters with a standard error above half of what a body of this mass and size has."""
        m, size = self.values[0], np.sqrt(max(0.5 * self.values[[4, 7, 9]].sum() / self.values[0], 0.0))
        scale = m * np.repeat([1.0, size, size**2], [1, 3, 6])
        poor = self.standard_errors[:10] > _POOR * scale
        return tuple(name for name, is_poor in zip(INERTIAL, poor, strict=True) if is_poor)

    def _derived(self, name: str) -> tuple[float, Array]:
        if name not in _COM:
            return super()._derived(name)
        k = 1 + _COM.index(name)
        m, h = self.values[0], self.values[k]
        slope = np.zeros(len(self.values))
        slope[0], slope[k] = -h / m**2, 1 / m
        return float(h / m), slope

    def _title(self) -> str:
        return f"inertial parameters of {self.link!r}: {super()._title()}"

    def _listed(self) -> tuple[str, ...]:
        return (*self.names[:10], *_COM, *self.names[10:])

    def _problems(self) -> list[str]:
        problems = super()._problems()
        if poor := [name for name in self.poorly_determined if np.isfinite(self.standard_error(name))]:
            problems.append(
                f"the data hardly determine {', '.join(poor)} of {self.link!r}: their standard errors exceed half of "
                f"what such a body has; give faster motions, or more samples"
            )
        return problems

    def __repr__(self) -> str:
        nearest = "\nno rigid body has what least squares alone gives; these are the parameters of the nearest one"
        return super().__repr__() + nearest * self.adjusted


def identify(
    tree: KinematicTree,
    link: str,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    tau: ArrayLike,
    *,
    friction: bool = False,
    noise: ArrayLike | None = None,
) -> Identified:
    """The inertial parameters of a link from measured torques, those of all other links being known.

    Weighted least squares of ``τ = Y π + τ_rest`` over the bodies that exist: their pseudo-inertia is positive definite
    (docs/mathematics.md §5, docs/identification.md). The inertia that the tree has for the link is not used, except in
    directions that the data do not determine. For an unknown load, attach a link without inertia:
    ``tree.attach(sd.Link("load"), to="tool0")``.

    Parameters
    ----------
    tree : KinematicTree
        Unchanged. Its springs are part of the model, and so is its friction unless ``friction`` is true.
    link : str
    q, qd, qdd : (…, nq), (…, nv), (…, nv) arrays
        Samples of the motion, rad, m, s; not noisy compared with the torques.
    tau : (…, nv) or (…, number of active freedoms) array
        Measured torques, N m or N; those of passive freedoms are zero.
    friction : bool
        Whether viscous friction, dry friction and an offset of every freedom are unknown too.
    noise : float or (nv,) array, optional
        Standard deviation of the torques, N m or N. By default estimated for each freedom from the residual, by
        restricted maximum likelihood.

    Returns
    -------
    Identified

    Raises
    ------
    ShapeError, UnknownNameError, JointError, UnboundSymbolError
        For wrong arrays or names, forces on passive joints, or if numbers of the tree contain symbols.
    ScrewdynError
        If there are too few samples to estimate the noise, or no joint moves the link in them.

    Warns
    -----
    ScrewdynWarning
        If the data do not determine some parameters or combinations, or hardly do. The message names them.

    Examples
    --------
    >>> import numpy as np
    >>> import screwdyn as sd
    >>> arm = sd.robots.ur5()
    >>> rng = np.random.default_rng(0)
    >>> q, qd, qdd = rng.uniform(-2, 2, (3, 100, 6))
    >>> with arm.attached(sd.Inertia.box(3.0, (0.2, 0.3, 0.4), com=(0, 0.1, 0.2)), to="tool0"):
    ...     tau = arm.inverse_dynamics(q, qd, qdd) + rng.normal(0, 0.5, q.shape)
    >>> _ = arm.attach(sd.Link("load"), to="tool0")
    >>> found = sd.identify(arm, "load", q, qd, qdd, tau)
    >>> abs(found["m"] - 3.0) < 3 * found.standard_error("m") < 0.1
    True
    """
    motion = _Samples.of(tree, q, qd, qdd)
    tree = motion.tree
    if not isinstance(link, str):  # None stands for all links in a regressor
        raise UnknownNameError.of(link, tree.links)
    columns, start = motion.columns(friction, link), tree.derivatives.parameters(link)
    Y, (names, units) = columns[..., :10], _labels(tree, friction)
    rest, deviations = motion.rest(tau, friction, Y @ start), motion.deviations(noise)
    if not Y.any():
        raise ScrewdynError(f"the torques do not depend on {link!r}, because no joint moves it in these samples")
    start = np.append(start, np.zeros(len(names) - 10))
    found = fit(columns, rest, deviations, start, names, units, tree.coordinates)
    if adjusted := not is_consistent(found.values[:10]):
        x = _nearest_body(columns / found.noise[:, None], rest / found.noise, found.values)
        found = replace(found, values=x, residual=rest - columns @ x)
    body = Inertia.from_parameters(found.values[:10])
    identified = Identified(**vars(found), link=link, inertia=body, adjusted=adjusted)
    identified.warn()
    return identified


def _nearest_body(columns: Array, rest: Array, x: Array) -> Array:
    """The least squares over the bodies that exist; the other unknowns are linear and adapt to the body."""
    A, b = columns.reshape(-1, columns.shape[-1]), rest.ravel()
    others = A[:, 10:]
    # What the other unknowns can explain drops out of the residual.
    U, s, _ = np.linalg.svd(others, full_matrices=False)
    basis = U[:, s > 1e-12 * s.max(initial=0.0)]
    Y, z = A[:, :10] - basis @ (basis.T @ A[:, :10]), b - basis @ (basis.T @ b)
    R = np.asarray(np.linalg.qr(np.column_stack([Y, z]), mode="r"))
    body = consistent_fit(R[:, :10], R[:, 10], x[:10])
    change = np.linalg.lstsq(others, b - A[:, :10] @ body - others @ x[10:])[0]
    return np.concatenate([body, x[10:] + change])


# Random states per inertial parameter and freedom, and how many more.
_PER_PARAMETER, _MORE = 3, 10
# Tensors are kept rather than first moments, and these rather than masses.
_PREFERENCE = np.repeat([2, 1, 0], [1, 3, 6])


@dataclass(frozen=True, eq=False, repr=False)
class BaseParameters:
    """Combinations β = K π of the parameters of all links, with τ = Y_b(q, q̇, q̈) β. Its text lists them.

    Attributes
    ----------
    tree : KinematicTree
        A copy of the tree.
    friction : bool
        Whether π ends with viscous friction, dry friction and offsets of all freedoms.
    names, units : tuples of str
        Of the b combinations: ``"link1.Izz + 0.25 link2.m"``. Each begins with the parameter that it is named after.
    matrix : (b, p) array
        K, for the parameters π of ``tree.derivatives.parameters()``.
    kept : (b,) array of int
        The parameters that the combinations begin with; Y_b are these columns of the regressor.
    condition : float
        Condition number of the columns of Y_b at the given states, scaled to length 1.
    """

    tree: KinematicTree
    friction: bool
    names: tuple[str, ...]
    units: tuple[str, ...]
    matrix: Array
    kept: Indices
    condition: float

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def values(self) -> Array:
        """β of the tree, (b,)."""
        forces = self.tree.model.joint_forces
        others = (forces.damping, forces.friction, np.zeros(self.tree.nv)) if self.friction else ()
        return np.asarray(self.matrix @ np.concatenate([self.tree.derivatives.parameters(), *others]))

    def regressor(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
        """Y_b, (N, nv, b), for samples (…, nq), (…, nv), (…, nv) of N states."""
        return _Samples.of(self.tree, q, qd, qdd).columns(self.friction)[..., self.kept]

    def estimate(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, tau: ArrayLike, *, noise: ArrayLike | None = None
    ) -> ParameterEstimate:
        """β from measured torques, by weighted least squares.

        Parameters, errors and warnings as for :func:`screwdyn.identify`. Combinations that the
        samples do not determine keep the values of the tree.
        """
        motion = _Samples.of(self.tree, q, qd, qdd)
        columns, inertial = motion.columns(self.friction), self.tree.derivatives.parameters()
        rest = motion.rest(tau, self.friction, columns[..., : len(inertial)] @ inertial)
        columns, deviations = columns[..., self.kept], motion.deviations(noise)
        estimate = fit(columns, rest, deviations, self.values, self.names, self.units, self.tree.coordinates)
        estimate.warn()
        return estimate

    def __repr__(self) -> str:
        lines = [f"{len(self)} base parameters of {self.matrix.shape[1]}; condition number {self.condition:.3g}"]
        for name, unit, value in zip(self.names, self.units, self.values.tolist(), strict=True):
            lines.append(f"{value:12.6g} {unit:10} {name}")
        return "\n".join(lines)


def base_parameters(
    tree: KinematicTree,
    q: ArrayLike | None = None,
    qd: ArrayLike | None = None,
    qdd: ArrayLike | None = None,
    *,
    friction: bool = False,
) -> BaseParameters:
    """The combinations of inertial parameters that joint torques determine (docs/identification.md).

    The columns of the regressor are linearly dependent in all states. A QR decomposition with pivoting gives their
    rank, and another one the columns that depend on those before them (Gautier 1991): their parameters are added to
    those of the others. Tensors are kept rather than first moments, these rather than masses, and links near the base
    rather than others.

    Parameters
    ----------
    tree : KinematicTree
        Unchanged.
    q, qd, qdd : (…, nq), (…, nv), (…, nv) arrays, optional
        States, rad, m, s: the combinations are those that these states determine. By default random states, the same in
        every call, which determine all that any motion determines.
    friction : bool
        Whether viscous friction, dry friction and an offset of every freedom are parameters too.

    Returns
    -------
    BaseParameters

    Raises
    ------
    ScrewdynError
        If only some of q, qd and qdd are given, or the tree has no coordinates.
    ShapeError, UnboundSymbolError
        For wrong arrays, or if numbers of the tree contain symbols.

    Examples
    --------
    >>> import screwdyn as sd
    >>> rod = sd.Inertia.rod(2.0, 1.0, com=(0.5, 0, 0))
    >>> tree = sd.KinematicTree()
    >>> _ = tree.attach(rod, to="base", joint=sd.revolute("z"), name="upper")
    >>> _ = tree.attach(rod, to="upper", joint=sd.revolute("z"), at=(1, 0, 0), name="lower")
    >>> sd.identification.base_parameters(tree).names
    ('upper.Izz + lower.m', 'lower.hx', 'lower.hy', 'lower.Izz')
    """
    if not tree.nv:
        raise ScrewdynError("the tree has no coordinates, so there are no torques")
    if q is not None and qd is not None and qdd is not None:
        motion = _Samples.of(tree, q, qd, qdd)
    elif any(x is not None for x in (q, qd, qdd)):
        raise ScrewdynError("give q, qd and qdd of the states, or none of them for random states")
    else:
        rng, count = np.random.default_rng(0), _MORE + _PER_PARAMETER * 10 * len(tree.links) // tree.nv
        q = np.array([tree.random_configuration(rng) for _ in range(count)])
        motion = _Samples.of(tree, q, *rng.uniform(-2, 2, (2, count, tree.nv)))
    tree, bodies = motion.tree, motion.tree.links[1:]
    names, units = _labels(tree, friction, [f"{link}." for link in bodies])
    preference = np.append(np.tile(_PREFERENCE, len(bodies)), np.full(len(names) - 10 * len(bodies), 3))
    columns = motion.columns(friction).reshape(-1, len(names))
    order = np.argsort(preference, kind="stable")
    first, later, coefficients = dependencies(columns[:, order])
    matrix = np.zeros((len(first), len(names)))
    matrix[range(len(first)), order[first]] = 1.0
    matrix[:, order[later]] = coefficients
    sequence = np.argsort(order[first])
    matrix, kept = matrix[sequence], order[first][sequence]
    scaled = columns[:, kept] / np.linalg.norm(columns[:, kept], axis=0)
    texts: list[str] = []
    for row, k in zip(matrix, kept, strict=True):
        ordered = [k, *np.delete(np.arange(len(row)), k)]
        texts += _combinations(row[None, ordered], [names[j] for j in ordered])
    condition = float(np.linalg.cond(scaled))
    return BaseParameters(tree, friction, tuple(texts), tuple(units[k] for k in kept), matrix, kept, condition)


# Weighted linear least squares: what the data do not determine, and fits to bodies that exist

# Singular values, of columns scaled to length 1 and relative to the largest, below which a direction counts as not
# determined: rounding leaves less.
_RANK = 1e-9
# Length of a column, relative to the longest, that rounding leaves.
_ROUNDING = 1e-13
# Coefficients of a dependency below which it counts as none: rounding, times the condition of the columns.
_NONE = 1e-6
# Least standard deviation of the noise of a freedom, relative to the largest, and to the largest torque.
_QUIET, _EXACT = 1e-6, 1e-15
# Relative change of the estimated noise at which it has settled, and the most fits for it.
_SETTLED, _REWEIGHTINGS = 1e-2, 30


def fit(A: Array, b: Array, noise: Array | None, start: Array, *named: tuple[str, ...]) -> ParameterEstimate:
    """The minimum of Σ (A x − b)² / σ² for A (N, nv, p) and b (N, nv); σ by default of restricted maximum likelihood.

    In directions that the data do not determine, x is the start. ``named`` are names and units of x, and the freedoms.
    """
    noise = _estimated_noise(A, b, start) if noise is None else noise
    x, rank, size, s, Vt, _ = _solve(A, b, noise, start)
    root = Vt[:rank].T / s[:rank] / size[:, None]
    covariance = root @ root.T
    weighted = (A / noise[:, None]).reshape(-1, A.shape[2])
    kept, dropped, combination = dependencies(weighted, rank)
    undetermined = np.zeros((len(dropped), len(x)))
    undetermined[range(len(dropped)), dropped] = 1.0
    undetermined[:, kept] = -combination.T
    free = np.any(undetermined != 0.0, axis=0)
    covariance[free] = covariance[:, free] = np.nan
    covariance[free, free] = np.inf
    condition = float(s[0] / s[rank - 1]) if rank else np.inf
    names, units, coordinates = named
    sums = any(" " in name for name in names)
    open_ = _combinations(undetermined, [f"({name})" for name in names] if sums else names)
    return ParameterEstimate(names, units, x, covariance, noise, b - A @ x, condition, open_, coordinates)


def _estimated_noise(A: Array, b: Array, start: Array) -> Array:
    """σ of each freedom: the residual's square over its samples less its share of the unknowns, by reweighting."""
    noise, least = np.ones(A.shape[1]), max(_EXACT * np.abs(b).max(initial=0.0), np.finfo(float).tiny ** 0.25)
    for _ in range(_REWEIGHTINGS):
        x, rank, *_, shares = _solve(A, b, noise, start)
        if b.size <= rank:
            raise ScrewdynError(
                f"{b.size} measured torques cannot determine {rank} unknowns and the noise; give more samples, or the "
                f"noise of the torques"
            )
        last, free = noise, np.maximum(len(b) - shares, 1e-9 * len(b))
        noise = np.sqrt(np.sum((b - A @ x) ** 2, axis=0) / free)
        noise = np.maximum(noise, max(_QUIET * noise.max(), least))
        if np.allclose(noise, last, rtol=_SETTLED, atol=0.0) or len(b) <= rank:
            break  # or the unknowns could explain all samples of a freedom, so that its weight would grow for ever
    return noise


def _solve(A: Array, b: Array, noise: Array, start: Array) -> tuple[Array, int, Array, Array, Array, Array]:
    """The solution next to start, the rank, lengths of columns, singular values and vectors, unknowns by freedom."""
    from scipy.linalg import svd

    rest = ((b - A @ start) / noise).ravel()
    weighted = (A / noise[:, None]).reshape(len(rest), -1)
    size = _lengths(weighted)
    U, s, Vt = svd(weighted / size, full_matrices=False)
    rank = int(np.sum(s > _RANK * s.max(initial=0.0)))
    shares = np.sum((U[:, :rank] ** 2).reshape(len(b), -1, rank), axis=(0, 2))
    return start + Vt[:rank].T @ (U[:, :rank].T @ rest / s[:rank]) / size, rank, size, s, Vt, shares


def _lengths(A: Array) -> Array:
    """Lengths by which columns are divided: columns that contain only rounding remain short."""
    size = np.linalg.norm(A, axis=0)
    largest = size.max(initial=0.0)
    return np.where(size > _ROUNDING * largest, size, largest or 1.0)


def dependencies(A: Array, rank: int | None = None) -> tuple[Indices, Indices, Array]:
    """Columns kept, the first ones of dependent ones; the others; and ``A[:, dropped] = A[:, kept] @ coefficients``."""
    from scipy.linalg import lstsq, qr

    size = _lengths(A)
    scaled = A / size
    R = np.asarray(np.linalg.qr(scaled, mode="r"))
    if len(R) < R.shape[1]:
        R = np.concatenate([R, np.zeros((R.shape[1] - len(R), R.shape[1]))])
    if rank is None:
        found = np.abs(np.diag(qr(R, mode="r", pivoting=True)[0]))
        rank = int(np.sum(found > _RANK * found.max(initial=0.0)))
    # A column whose part perpendicular to those before it vanishes depends on them.
    kept = np.sort(np.argsort(-np.abs(np.diag(R)), kind="stable")[:rank])
    dropped = np.setdiff1d(np.arange(A.shape[1]), kept)
    coefficients = np.zeros((rank, len(dropped)))
    if rank and len(dropped):
        coefficients = lstsq(scaled[:, kept], scaled[:, dropped])[0]
    coefficients[np.abs(coefficients) < _NONE] = 0.0
    return kept, dropped, coefficients * size[dropped] / size[kept, None]


_ROWS, _COLUMNS = np.triu_indices(3)
# Least eigenvalue of a pseudo-inertia at the start, relative to the largest, in units in which the body has size 1.
_INSIDE = 1e-2
# Size of a body whose estimate has none, m.
_SIZE = 0.1
# Last weight of the divergence, eight times which the sum of squares then exceeds its minimum. The ratio of
# successive weights, the decrement at which Newton's method goes on to the next one, and its largest number of steps.
_LAST, _RATIO, _NEAR, _MOST_STEPS = 1e-9, 0.1, 0.1, 1000
# About the least eigenvalue that a pseudo-inertia may have, in units in which the body has mass and size 1.
_BORDER = 1e-12


def pseudo_inertia(parameters: Array) -> Array:
    """J = ∫ [r; 1] [r; 1]ᵀ dm = [[½ tr(Θ) 1 − Θ, h], [hᵀ, m]], (4, 4), of ten parameters."""
    theta, J = np.zeros((3, 3)), np.zeros((4, 4))
    theta[_ROWS, _COLUMNS] = theta[_COLUMNS, _ROWS] = parameters[4:]
    J[:3, :3] = 0.5 * np.trace(theta) * np.eye(3) - theta
    J[3, :3] = J[:3, 3] = parameters[1:4]
    J[3, 3] = parameters[0]
    return J


def parameters_of(J: Array) -> Array:
    """The ten parameters of a pseudo-inertia (4, 4), (10,)."""
    theta = np.trace(J[:3, :3]) * np.eye(3) - J[:3, :3]
    return np.concatenate([J[3:, 3], J[:3, 3], theta[_ROWS, _COLUMNS]])


def is_consistent(parameters: Array) -> bool:
    """Whether a body of positive density everywhere in some region has these parameters: J is positive definite."""
    J = pseudo_inertia(parameters)
    scale = np.sqrt(np.diag(J)) if np.all(np.diag(J) > 0.0) else np.zeros(4)
    return bool(scale.all()) and bool(np.linalg.eigvalsh(J / np.outer(scale, scale))[0] > 1e-12)


def consistent_fit(A: Array, b: Array, near: Array) -> Array:
    """The minimum of |A π − b|² over the bodies that exist, (10,); what A (m, 10) leaves open ends next to ``near``.

    Damped Newton steps follow the minima of ½ |A π − b|² + μ (tr J₀⁻¹J − log det J), which is convex, as μ vanishes
    (Lee, Wensing and Park 2020). J and J₀ are the pseudo-inertias of π and of ``near`` without negative eigenvalues.
    """
    mass, square = near[0], 0.5 * (near[4] + near[7] + near[9])
    size = np.sqrt(square / mass) if square > 0.0 and mass > 0.0 else _SIZE  # radius of gyration about the origin
    unit = (mass if mass > 0.0 else 1.0) * np.repeat([1.0, size, size**2], [1, 3, 6])
    A, basis = A * unit, np.array([pseudo_inertia(e) for e in np.eye(10)])
    values, axes = np.linalg.eigh(pseudo_inertia(near / unit))
    values = np.maximum(values, _INSIDE * (np.abs(values).max() or 1.0))  # or of an empty hand: all are zero
    J, inverse = (axes * values) @ axes.T, (axes / values) @ axes.T
    x = parameters_of(J)
    weight = 1.0 + float(np.sum((A @ x - b) ** 2))
    for _ in range(_MOST_STEPS):
        L = np.linalg.cholesky(pseudo_inertia(x))
        relative = np.linalg.solve(L, np.linalg.solve(L, basis).swapaxes(1, 2)).reshape(10, 16).T
        slope = (np.eye(4) - L.T @ inverse @ L).ravel()
        rows, root = np.concatenate([A, np.sqrt(weight) * relative]), np.sqrt(weight)
        step = np.linalg.lstsq(rows, np.concatenate([b - A @ x, root * slope]))[0]
        decrement = float(np.linalg.norm(rows @ step)) / root
        # The sum divided by μ is self-concordant: this step stays inside, and decreases it.
        x = x + step / (1.0 + decrement if decrement > _NEAR else 1.0)
        if decrement <= _NEAR:
            if weight <= _LAST or L.diagonal().min() ** 2 < _BORDER:
                break
            weight = max(_RATIO * weight, _LAST)
    return np.asarray(x * unit)
