"""The joints' own forces: damping, dry friction and springs (docs/mathematics.md §8)."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.types import Array
from screwdyn.mechanism.joint import Joint
from screwdyn.physics.charts import Charts

__all__ = ["SLIP", "JointForces"]

# Rate in rad/s or m/s below which smoothed dry friction is nearly proportional to it.
SLIP = 1e-3


class JointForces(NamedTuple):
    """Parameters of the joints' own forces, each (nv,), and the resulting forces and energies.

    The parameters of a joint that follows another one are added to those of the freedom that it follows.

    Attributes
    ----------
    damping, friction, stiffness : arrays
        N m s/rad, N m and N m/rad of a rotational freedom; N s/m, N and N/m of a translational one.
    rest : array
        Position at which the spring has no force, rad or m.
    where : index
        Index in q of the position of each freedom; any index for freedoms of group joints, which have no springs.
    """

    damping: Array
    friction: Array
    stiffness: Array
    rest: Array
    where: Any

    @classmethod
    def of(cls, joints: Sequence[Joint], charts: Charts | None) -> Self:
        """Parameters of the freedoms of the joints of all rows, in order.

        Raises
        ------
        UnboundSymbolError
            If a parameter is an expression.
        """
        parameters = [(j.damping, j.friction, j.stiffness, j.rest) for j in joints]
        numbers = expressions.floats(np.array(parameters), "a joint's own force").reshape(-1, 4)
        if charts is not None and charts.coupled:
            return cls._coupled(numbers, charts)
        damping, friction, stiffness, rest = numbers.T
        return cls(damping, friction, stiffness, rest, slice(None) if charts is None else charts.where)

    @classmethod
    def _coupled(cls, numbers: Array, charts: Charts) -> Self:
        """Parameters in which joints follow others, x = r y + c: f = r f_x gives r² F_v, |r| F_c and r² K."""
        column, ratio, offset = expressions.floats(charts.couplings, "the coupling of joints").T
        nv = 1 + int(column.max())
        added, where = np.zeros((4, nv)), np.zeros(nv, dtype=np.intp)
        where[column.astype(np.intp)] = charts.where
        damping, friction, stiffness, rest = numbers.T
        terms = ratio**2 * damping, np.abs(ratio) * friction, ratio**2 * stiffness, ratio * stiffness * (rest - offset)
        for total, term in zip(added, terms, strict=True):
            np.add.at(total, column.astype(np.intp), term)
        damping, friction, stiffness, moment = added
        rest = np.divide(moment, stiffness, out=np.zeros(nv), where=stiffness > 0)
        return cls(damping, friction, stiffness, rest, where)

    def viscous_force(self, qd: Array) -> Array:
        """−damping q̇, (…, nv), N m or N."""
        return np.asarray(-self.damping * qd)

    def smoothed_friction(self, qd: Array) -> Array:
        """−friction tanh(q̇ / 1e-3), (…, nv), N m or N: dry friction as a continuous function of the rates."""
        return np.asarray(-self.friction * np.tanh(qd / SLIP))

    def spring_force(self, q: Array) -> Array:
        """−stiffness (q − rest), (…, nv), N m or N."""
        return np.asarray(-self.stiffness * (q[..., self.where] - self.rest))

    def spring_energy(self, q: Array) -> Array:
        """Σ ½ stiffness (q − rest)², (…), J: with joints that follow others, up to a constant."""
        strain = q[..., self.where] - self.rest
        return np.asarray(0.5 * np.sum(self.stiffness * strain * strain, axis=-1))  # 0 without stiffness, however far
