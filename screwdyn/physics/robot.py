"""The base class of trees: a structure with a method for every quantity, evaluated by any back-end."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from screwdyn.core.types import Array, ArrayLike
from screwdyn.mechanism.structure import Mechanism
from screwdyn.physics.model import Model
from screwdyn.physics.quantities import Quantities

__all__ = ["Robot"]


class Robot(Mechanism, Quantities):
    """The part of :class:`screwdyn.KinematicTree` that simulation and code generation use."""

    @property
    @abstractmethod
    def model(self) -> Model:
        """The frozen snapshot of the tree from which quantities are computed."""

    @abstractmethod
    def joint_force(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """The joints' own forces: damping, friction and springs, (…, nv), N m or N (docs/mathematics.md §8)."""

    @abstractmethod
    def wrench_torque(self, q: ArrayLike, wrenches: Mapping[str, ArrayLike]) -> Array:
        """Joint forces Σ J_iᵀ F_i of external wrenches F_i, (…, nv), N m or N (docs/mathematics.md §8)."""
