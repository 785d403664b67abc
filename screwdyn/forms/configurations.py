"""Configurations of a tree: neutral, random, and the conversions between positions and rates."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from screwdyn.core.errors import ScrewdynError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.forms.numbers import of_finite
from screwdyn.physics.model import Model

__all__ = ["Configurations"]


class Configurations(ABC):
    """Configurations of a tree, and conversions between positions and rates (docs/mathematics.md §7)."""

    @property
    @abstractmethod
    def model(self) -> Model:
        """The frozen snapshot of the tree."""

    def neutral(self) -> Array:
        """The configuration with every link at its home pose, (nq,): zeros, and [0, 0, 0, 1] for quaternions."""
        return self.model.configurations.neutral.copy()

    def random_configuration(self, rng: np.random.Generator) -> Array:
        """A random configuration, (nq,).

        Each position is uniform within the joint's limits, or within ±π (rad or m) if it has none. Orientations of
        spherical and free joints are uniform over all rotations.

        Raises
        ------
        ScrewdynError
            If ``rng`` is not a numpy.random.Generator.
        """
        if not isinstance(rng, np.random.Generator):
            raise ScrewdynError(f"rng must be a numpy.random.Generator, such as default_rng(0); got {rng!r}")
        return self.model.configurations.random(rng)

    def integrate(self, q: ArrayLike, v: ArrayLike) -> Array:
        """The configuration reached from q (…, nq) at the constant rates v (…, nv) in unit time, (…, nq).

        A joint of one freedom moves to q + v. A spherical, free or planar joint moves from g(q) to g(q) exp(S v), where
        v are the components of a twist in the link's own frame (docs/mathematics.md §7). Quaternions of the result have
        length 1. Errors as for :class:`~screwdyn.physics.quantities.Quantities`.
        """
        return of_finite(self.model, self.model.configurations.integrate, q=q, v=v)

    def difference(self, q0: ArrayLike, q1: ArrayLike) -> Array:
        """The constant rates v, (…, nv), that move q0 to q1 in unit time: the inverse of :meth:`integrate`.

        A spherical, free or planar joint rotates by the smallest angle (docs/mathematics.md §7), so that
        ``integrate(q0, v)`` may differ from q1 by the sign of a quaternion or by whole turns. Errors as for
        :class:`~screwdyn.physics.quantities.Quantities`.
        """
        return of_finite(self.model, self.model.configurations.difference, q0=q0, q1=q1)

    def position_rate(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """The time derivative dq/dt, (…, nq), at the rates qd (…, nv) of the freedoms.

        ½ q ∘ (ω, 0) for quaternions and R(q) v for positions of spherical, free and planar joints
        (docs/mathematics.md §7); qd for all others. Errors as for :class:`~screwdyn.physics.quantities.Quantities`.
        """
        return of_finite(self.model, self.model.configurations.rate, q=q, qd=qd)
