"""What all formulations share: the rows of a tree at a state, and the results under the names of the library."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import ScrewdynError, ShapeError, UnknownNameError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.mechanism.structure import Structure
from screwdyn.papers.formulations.geometry import Geometry, couplings
from screwdyn.papers.formulations.rows import cross, read
from screwdyn.papers.formulations.states import numbers, symbolic

__all__ = ["Formulation", "MatrixFormulation"]


class Formulation(Geometry, ABC):
    """The equations of motion of a tree, M(q) q̈ + h(q, q̇) + g(q) = τ, as one publication computes them.

    A formulation is a snapshot: later changes of the tree do not affect it. It takes one state at a time. The entries
    of a state may be numbers, SymPy expressions or traced scalars. Every method of a state, also those with the names
    of the source, raises ShapeError if an argument is not n of these, or not finite.

    The source's equations are about all joints, x. If joints follow others, as rotors do, x = W q + offset, and results
    with the names of the library are those of the source by substitution: M = Wᵀ M_x W, τ = Wᵀ τ_x. The armatures of
    the joints, which no source has, are added to the diagonal of M_x. Methods with the names of the source take x.

    Parameters
    ----------
    tree : KinematicTree
        A serial arm or a tree, with revolute, prismatic, helical, universal, cylindrical and fixed joints.

    Raises
    ------
    ScrewdynError
        If this is no tree, or if it has other joints or closed loops; the message names them and where the source
        excludes them.

    Attributes
    ----------
    kinds : tuple of str
        Kinds of the screws of joints that the formulation covers.
    scope : str
        What the source is about, which is why other trees are refused.
    coordinates, joints : tuples of str
        Names of the n freedoms, as in the tree, and of the joints of the rows.
    rows : tuple of Row
    gravity : (3,) array
        Acceleration of gravity in the base frame, m/s².
    armature : (rows,) array
        kg m², or kg for prismatic joints.
    """

    kinds: ClassVar[tuple[str, ...]] = ("revolute", "prismatic", "helical")
    scope: ClassVar[str]

    def __init__(self, tree: Structure) -> None:
        if not isinstance(tree, Structure):
            raise ScrewdynError(f"{type(self).__name__} is made from a KinematicTree; got {tree!r}")
        self.coordinates, self.gravity = tree.coordinates, tree.gravity
        self.rows, self.places = read(tree, self.kinds, type(self).__name__, self.scope)
        self.joints = tuple(row.name for row in self.rows)
        self.W, self.offset = couplings(tree, self.joints)
        self.armature = expressions.array([row.armature for row in self.rows])
        self._symbolic = bool(symbolic(vars(self)))
        self._dtype = np.dtype(object if self._symbolic else float)

    # The names of the library

    def mass_matrix(self, q: ArrayLike) -> Array:
        """M(q), (n, n), kg m² (revolute), kg (prismatic). ShapeError if q is not n numbers."""
        M = self._mass_matrix(self.joint_positions(q))
        return self.contracted(M + np.diag(self.armature) if self.armature.any() else M)

    def velocity_product(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """C(q, q̇) q̇, (n,), N m or N. ShapeError if an argument is not n numbers."""
        return self.contracted(self._velocity_product(self.joint_positions(q), self.joint_rates(qd)))

    def gravity_vector(self, q: ArrayLike) -> Array:
        """g(q) = ∂U/∂q, (n,), N m or N. ShapeError if q is not n numbers."""
        return self.contracted(self._gravity_vector(self.joint_positions(q)))

    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
        """τ = M q̈ + C q̇ + g, (n,), N m or N, without friction. ShapeError if an argument is not n numbers."""
        inertial: Array = self.mass_matrix(q) @ self._vector(qdd, "qdd", self.coordinates)
        return inertial + self.velocity_product(q, qd) + self.gravity_vector(q)

    # The results over all joints, for arguments that have been checked

    @abstractmethod
    def _mass_matrix(self, q: Array, /) -> Array: ...

    @abstractmethod
    def _velocity_product(self, q: Array, qd: Array, /) -> Array: ...

    @abstractmethod
    def _gravity_vector(self, q: Array, /) -> Array: ...

    def _gravity_of(self, J_P: Sequence[Array]) -> Array:
        """−Σ_i m_i gᵀ J_Pi, from the Jacobians (3, n) of the centres of mass."""
        g = np.full(len(self.rows), 0.0)
        for row, J in zip(self.rows, J_P, strict=True):
            g = g - row.m * (self.gravity @ J)
        return g

    def _loads(self, wrenches: Mapping[str, ArrayLike] | None) -> list[Array]:
        """The sum of the wrenches on each row, (6,), about the origin and in axes of its frame."""
        wrenches = {} if wrenches is None else wrenches
        if not isinstance(wrenches, Mapping):
            raise ShapeError(f"wrenches must map names of links to [n; f], {{link: six numbers}}; got {wrenches!r}")
        loads = [np.zeros(6) for _ in self.rows]
        for link, given in wrenches.items():
            if link not in self.places:
                raise UnknownNameError.of(link, self.places)
            wrench = numbers(given, f"the wrench on {link!r}")
            if wrench.shape != (6,):
                raise ShapeError(f"the wrench on {link!r} must have shape (6), got {wrench.shape}")
            i, T = self.places[link]
            if i >= 0:
                n, f = T[:3, :3] @ wrench[:3], T[:3, :3] @ wrench[3:]
                loads[i] = loads[i] + np.concatenate([n + cross(T[:3, 3], f), f])
        return loads


class MatrixFormulation(Formulation):
    """A formulation that gives C(q, q̇) as a matrix."""

    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """C(q, q̇), (n, n). ShapeError if an argument is not n numbers."""
        return self.contracted(self._coriolis_matrix(self.joint_positions(q), self.joint_rates(qd)))

    def _velocity_product(self, q: Array, qd: Array, /) -> Array:
        product: Array = self._coriolis_matrix(q, qd) @ qd
        return product

    @abstractmethod
    def _coriolis_matrix(self, q: Array, qd: Array, /) -> Array: ...
