"""What a tree gives besides quantities: its configurations, and steps from one to another."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from screwdyn.core.errors import ScrewdynError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.physics.model import Model

__all__ = ["Configurations"]


class Configurations(ABC):
    """Configurations of a tree, and steps from one to another."""

    @property
    @abstractmethod
    def model(self) -> Model:
        """The snapshot of the tree."""

    def neutral(self) -> Array:
        """The configuration with every joint at home, (nq,): zero, but for the scalar parts of quaternions, 1."""
        return self.model.configurations.neutral.copy()

    def random_configuration(self, rng: np.random.Generator) -> Array:
        """A random configuration, (nq,).

        Each coordinate is uniform within the joint's limits, or within ±π (rad or m) where there are none; orientations
        of spherical and free joints are uniform over all.
        """
        if not isinstance(rng, np.random.Generator):
            raise ScrewdynError(f"rng must be a numpy.random.Generator, such as default_rng(0); got {rng!r}")
        return self.model.configurations.random(rng)

    def integrate(self, q: ArrayLike, v: ArrayLike) -> Array:
        """The configuration reached from q by moving at v for unit time, (…, nq).

        A coordinate moves to q + v. A spherical, free or planar joint moves from g(q) to g(q) exp(S v): v is a twist in
        the link's own frame. Quaternions come back with length 1.
        """
        (q, v), batch = self.model.flat(q=q, v=v)
        space = self.model.configurations
        return space.integrate(q.reshape(*batch, space.nq), v.reshape(*batch, space.nv))

    def difference(self, q0: ArrayLike, q1: ArrayLike) -> Array:
        """The v that moves q0 to q1 in unit time, (…, nv), as by :meth:`integrate`.

        A spherical, free or planar joint turns by the smallest angle, so that ``integrate(q0, v)`` may differ from q1
        by the sign of a quaternion or by whole turns.
        """
        (q0, q1), batch = self.model.flat(q0=q0, q1=q1)
        space = self.model.configurations
        shape = (*batch, space.nq)
        return space.difference(q0.reshape(shape), q1.reshape(shape))

    def position_rate(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """dq/dt, (…, nq), at the rates qd (…, nv) of the freedoms.

        For spherical, free and planar joints it is ½ q ∘ ω of a quaternion and R(q) v of a position
        (docs/mathematics.md §7); everywhere else, qd itself.
        """
        (q, qd), batch = self.model.flat(q=q, qd=qd)
        space = self.model.configurations
        return space.rate(q.reshape(*batch, space.nq), qd.reshape(*batch, space.nv))
