"""Estimated numbers with their covariance."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from screwdyn.core.errors import ScrewdynError, ScrewdynWarning, UnknownNameError
from screwdyn.core.types import Array

__all__ = ["Friction", "ParameterEstimate", "combination"]


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
        if name not in self.names:
            raise UnknownNameError.of(name, self.names, "estimated number")
        k = self.names.index(name)
        return float(self.values[k]), np.eye(len(self.names))[k]

    def __repr__(self) -> str:
        width = max(map(len, self.names), default=0)
        lines = [self._title(), f"{'':{width}}  {'estimate':>12}  {'std. error':>10}"]
        for name in self._listed():
            value, error = self[name], self.standard_error(name)
            digits = "undetermined" if np.isinf(error) else f"{error:10.3g}"
            lines.append(f"{name:{width}}  {value:12.6g}  {digits}  {self._unit(name)}".rstrip())
        return "\n".join([*lines, *self._remarks()])

    def _title(self) -> str:
        size = np.sqrt(np.mean(self.residual**2, axis=0))
        rms = ", ".join(f"{name} {x:.3g}" for name, x in zip(self.coordinates, size, strict=True))
        return f"{len(self.residual)} samples, condition number {self.condition:.3g}; residual rms: {rms}"

    def _listed(self) -> tuple[str, ...]:
        """Names of the lines of the table."""
        return self.names

    def _unit(self, name: str) -> str:
        return self.units[self.names.index(name)]

    def _remarks(self) -> list[str]:
        return [f"not determined by the data: {x}" for x in self.undetermined]

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


def combination(coefficients: Array, names: tuple[str, ...]) -> str:
    """A sum of numbers as text, such as "link1.Izz + 0.25 link2.m"."""
    text = ""
    for c, name in zip(coefficients.tolist(), names, strict=True):
        if c:
            sign = ("-" if c < 0 else "") if not text else " - " if c < 0 else " + "
            size = "" if abs(abs(c) - 1.0) < 1e-6 else f"{abs(c):.4g} "
            text += f"{sign}{size}{name}"
    return text
