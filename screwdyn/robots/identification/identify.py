"""Identification of one body from the torques of a robot that is known otherwise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from screwdyn.core.errors import ScrewdynError, UnknownNameError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.mechanism.inertia import Inertia
from screwdyn.robots.identification.consistent import consistent_fit, is_consistent
from screwdyn.robots.identification.estimate import ParameterEstimate, combination
from screwdyn.robots.identification.fit import fit
from screwdyn.robots.identification.samples import (
    INERTIAL,
    INERTIAL_UNITS,
    MotionStates,
    friction_names,
    measured_torques,
    standard_deviations,
)
from screwdyn.tree import KinematicTree

__all__ = ["Identified", "identify"]

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

    def _unit(self, name: str) -> str:
        return "m" if name in _COM else super()._unit(name)

    def _remarks(self) -> list[str]:
        remarks = super()._remarks()
        if self._poor:
            remarks.append(f"poorly determined: {', '.join(self._poor)}")
        if self.adjusted:
            remarks.append(
                "no rigid body has what least squares alone gives; these are the parameters of the nearest one"
            )
        return remarks

    def _problems(self) -> list[str]:
        problems = super()._problems()
        if self._poor:
            problems.append(
                f"the data hardly determine {', '.join(self._poor)} of {self.link!r}: their standard errors exceed "
                f"half of what such a body has; give faster motions, or more samples"
            )
        return problems

    @property
    def _poor(self) -> list[str]:
        """Names of :attr:`poorly_determined` parameters that the data determine."""
        return [name for name in self.poorly_determined if np.isfinite(self.standard_error(name))]


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
        Standard deviation of the torques, N m or N. By default estimated for each freedom, from the residual of
        unweighted least squares.

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
    motion = MotionStates.of(tree, q, qd, qdd)
    tree = motion.tree
    if not isinstance(link, str):  # None stands for all links in a regressor
        raise UnknownNameError.of(link, tree.links)
    tau, weights = measured_torques(motion, tau), None if noise is None else standard_deviations(tree, noise)
    derivatives = tree.derivatives
    Y, nominal = derivatives.regressor(motion.q, motion.qd, motion.qdd, link), derivatives.parameters(link)
    if not Y.any():
        raise ScrewdynError(f"the torques do not depend on {link!r}, because no joint moves it in these samples")
    rest = tau - (motion.known(friction) - Y @ nominal)
    names, units, columns, start = INERTIAL, INERTIAL_UNITS, Y, nominal
    if friction:
        others, their_units = friction_names(tree)
        names, units = (*names, *others), (*units, *their_units)
        columns = np.concatenate([Y, motion.friction_columns()], axis=-1)
        start = np.concatenate([nominal, np.zeros(len(others))])
    found = fit(columns, rest, weights, start)
    x, adjusted = found.x, not is_consistent(found.x[:10])
    if adjusted:
        x = _nearest_body(columns / found.noise[:, None], rest / found.noise, x)
    identified = Identified(
        names,
        units,
        x,
        found.covariance,
        found.noise,
        rest - columns @ x,
        found.condition,
        tuple(combination(direction, names) for direction in found.undetermined),
        tree.coordinates,
        link,
        Inertia.from_parameters(x[:10]),
        adjusted,
    )
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
