"""The base parameters of a robot: the combinations of inertial parameters on which its torques depend."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from screwdyn.core.errors import ScrewdynError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.robots.identification.estimate import ParameterEstimate, combination
from screwdyn.robots.identification.fit import dependencies, fit
from screwdyn.robots.identification.samples import (
    INERTIAL,
    INERTIAL_UNITS,
    MotionStates,
    friction_names,
    measured_torques,
    standard_deviations,
)
from screwdyn.tree import KinematicTree

__all__ = ["BaseParameters", "base_parameters"]

# Random states per inertial parameter and freedom, and how many more.
_STATES, _MORE = 3, 10
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
    kept: npt.NDArray[np.intp]
    condition: float

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def values(self) -> Array:
        """β of the tree, (b,)."""
        return np.asarray(self.matrix @ _parameters(self.tree, self.friction))

    def regressor(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
        """Y_b, (N, nv, b), for samples (…, nq), (…, nv), (…, nv) of N states."""
        return _columns(MotionStates.of(self.tree, q, qd, qdd), self.friction)[..., self.kept]

    def estimate(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, tau: ArrayLike, *, noise: ArrayLike | None = None
    ) -> ParameterEstimate:
        """β from measured torques, by weighted least squares.

        Parameters, errors and warnings as for :func:`screwdyn.identify`. Combinations that the
        samples do not determine keep the values of the tree.
        """
        motion = MotionStates.of(self.tree, q, qd, qdd)
        tau, weights = measured_torques(motion, tau), None if noise is None else standard_deviations(self.tree, noise)
        columns = _columns(motion, self.friction)[..., self.kept]
        inertial = _columns(motion, False) @ self.tree.derivatives.parameters()
        rest = tau - (motion.known(self.friction) - inertial)
        found = fit(columns, rest, weights, self.values)
        estimate = ParameterEstimate(
            self.names,
            self.units,
            found.x,
            found.covariance,
            found.noise,
            rest - columns @ found.x,
            found.condition,
            tuple(combination(direction, tuple(f"({x})" for x in self.names)) for direction in found.undetermined),
            self.tree.coordinates,
        )
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
    given = [x is not None for x in (q, qd, qdd)]
    if q is not None and qd is not None and qdd is not None:
        motion = MotionStates.of(tree, q, qd, qdd)
    elif any(given):
        raise ScrewdynError("give q, qd and qdd of the states, or none of them for random states")
    else:
        motion = _random_motion(tree)
    tree = motion.tree
    names = tuple(f"{link}.{what}" for link in tree.links[1:] for what in INERTIAL)
    units = INERTIAL_UNITS * (len(tree.links) - 1)
    preference = np.tile(_PREFERENCE, len(tree.links) - 1)
    if friction:
        names, units = (*names, *(others := friction_names(tree))[0]), (*units, *others[1])
        preference = np.concatenate([preference, np.full(len(others[0]), 3)])
    columns = _columns(motion, friction).reshape(-1, len(names))
    order = np.argsort(preference, kind="stable")
    first, later, coefficients = dependencies(columns[:, order])
    matrix = np.zeros((len(first), len(names)))
    matrix[range(len(first)), order[first]] = 1.0
    matrix[:, order[later]] = coefficients
    sequence = np.argsort(order[first])
    matrix, kept = matrix[sequence], order[first][sequence]
    scaled = columns[:, kept] / np.linalg.norm(columns[:, kept], axis=0)
    return BaseParameters(
        tree,
        friction,
        tuple(_beginning(row, k, names) for row, k in zip(matrix, kept, strict=True)),
        tuple(units[k] for k in kept),
        matrix,
        kept,
        float(np.linalg.cond(scaled)),
    )


def _random_motion(tree: KinematicTree) -> MotionStates:
    """Random states, enough to determine all that any motion determines."""
    tree, rng = tree.copy(), np.random.default_rng(0)
    count = _MORE + _STATES * 10 * len(tree.links) // max(tree.nv, 1)
    q = np.array([tree.random_configuration(rng) for _ in range(count)])
    return MotionStates.of(tree, q, *rng.uniform(-2, 2, (2, count, tree.nv)))


def _columns(motion: MotionStates, friction: bool) -> Array:
    """The regressor of all parameters, (N, nv, p)."""
    columns = motion.tree.derivatives.regressor(motion.q, motion.qd, motion.qdd)
    return np.concatenate([columns, motion.friction_columns()], axis=-1) if friction else columns


def _parameters(tree: KinematicTree, friction: bool) -> Array:
    """π of the tree, (p,)."""
    inertial = tree.derivatives.parameters()
    forces = tree.model.joint_forces
    return np.concatenate([inertial, forces.damping, forces.friction, np.zeros(tree.nv)]) if friction else inertial


def _beginning(row: Array, first: int, names: tuple[str, ...]) -> str:
    """A combination as text, which begins with one of its parameters."""
    order = [first, *(k for k in range(len(row)) if k != first)]
    return combination(row[order], tuple(names[k] for k in order))
