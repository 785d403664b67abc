"""A tree and everything that can be asked of it; which back-end answers is left open."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from screwdyn.core.types import Array, ArrayLike
from screwdyn.mechanism.structure import Structure
from screwdyn.physics.model import Model
from screwdyn.physics.quantities import Quantities

__all__ = ["Robot"]


class Robot(Structure, Quantities):
    """What simulation and code generation need of a :class:`screwdyn.KinematicTree`."""

    @property
    @abstractmethod
    def model(self) -> Model:
        """The snapshot that the quantities are computed from."""

    @abstractmethod
    def joint_force(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """The joints' own forces: damping, friction and springs, (…, nv)."""

    @abstractmethod
    def wrench_torque(self, q: ArrayLike, wrenches: Mapping[str, ArrayLike]) -> Array:
        """Joint forces Σ J_iᵀ F_i that external wrenches amount to, (…, nv)."""
