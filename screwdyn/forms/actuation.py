"""Active and passive freedoms, and the equation of motion in their blocks (docs/mathematics.md §8)."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from screwdyn.core.types import Array, ArrayLike
from screwdyn.physics.model import Model
from screwdyn.physics.quantities import Quantities

if TYPE_CHECKING:
    from screwdyn.forms.numbers import Numbers

__all__ = ["Actuation", "Partition"]


class Partition(NamedTuple):
    """M, C and g in blocks of active (a) and passive (p) freedoms; a and p are their numbers.

    ``[M_aa M_ap; M_pa M_pp] [q̈_a; q̈_p] + [C_aa C_ap; C_pa C_pp] [q̇_a; q̇_p] + [g_a; g_p] = [τ_a; 0]``

    Attributes
    ----------
    active, passive : tuples of str
        Names of the freedoms, in the order of the tree's coordinates: the indices of the blocks.
    M_aa, M_ap, M_pa, M_pp : (…, a, a), (…, a, p), (…, p, a), (…, p, p) arrays
        kg m², kg m or kg.
    C_aa, C_ap, C_pa, C_pp : arrays of the same shapes
        N m s, N s or kg/s.
    g_a, g_p : (…, a), (…, p) arrays
        N m or N.
    """

    active: tuple[str, ...]
    passive: tuple[str, ...]
    M_aa: Array
    M_ap: Array
    M_pa: Array
    M_pp: Array
    C_aa: Array
    C_ap: Array
    C_pa: Array
    C_pp: Array
    g_a: Array
    g_p: Array


class Actuation(Quantities):
    """Which freedoms have a motor."""

    @property
    @abstractmethod
    def model(self) -> Model:
        """The frozen snapshot of the tree."""

    @property
    def active(self) -> tuple[str, ...]:
        """Names of the freedoms of joints with a motor, in the order of ``coordinates``."""
        return tuple(name for name, passive in self._freedoms if not passive)

    @property
    def passive(self) -> tuple[str, ...]:
        """Names of the freedoms of passive joints, in the order of ``coordinates``."""
        return tuple(name for name, passive in self._freedoms if passive)

    @property
    def actuation_matrix(self) -> Array:
        """Matrix B of zeros and ones, (nv, number of active freedoms), with τ = B τ_active."""
        model = self.model
        return np.eye(model.nv)[:, ~np.array(model.passive, dtype=bool)]

    def partition(self, q: ArrayLike, qd: ArrayLike | None = None) -> Partition:
        """M, C and g in blocks of active and passive freedoms (docs/mathematics.md §8).

        Parameters
        ----------
        q : (…, nq)
            rad and m.
        qd : (…, nv), optional
            rad/s and m/s; by default zero, so that the blocks of C are zero.

        Returns
        -------
        Partition

        Raises
        ------
        ShapeError, UnboundSymbolError
            As for :class:`~screwdyn.physics.quantities.Quantities`.

        Examples
        --------
        The accelerations of passive freedoms while the active ones keep their rates:

        >>> import numpy as np
        >>> import screwdyn as sd
        >>> rod = sd.Inertia.rod(1.0, 1.0, com=(0.5, 0, 0))
        >>> tree = sd.KinematicTree()
        >>> _ = tree.attach(rod, to="base", joint=sd.revolute("y", name="shoulder"), name="upper")
        >>> elbow = sd.revolute("y", passive=True, name="elbow")
        >>> _ = tree.attach(rod, to="upper", joint=elbow, at=(1, 0, 0), name="lower")
        >>> part = tree.partition([0.0, 0.0])
        >>> part.active, part.passive
        (('shoulder',), ('elbow',))
        >>> np.linalg.solve(part.M_pp, -part.g_p)
        array([14.715])
        """
        one = self._frozen()
        model = one.model
        M, C, g = one.dynamics(q, np.zeros(model.nv) if qd is None else qd)
        passive = np.array(model.passive, dtype=bool)
        a, p = np.flatnonzero(~passive), np.flatnonzero(passive)
        blocks: dict[str, Any] = {
            f"{name}_{i}{j}": A[..., rows[:, None], columns]
            for name, A in (("M", M), ("C", C))
            for i, rows in (("a", a), ("p", p))
            for j, columns in (("a", a), ("p", p))
        }
        active, passive_ones = (tuple(model.coordinates[i] for i in rows) for rows in (a, p))
        return Partition(active, passive_ones, g_a=g[..., a], g_p=g[..., p], **blocks)

    @abstractmethod
    def _frozen(self) -> Numbers:
        """The quantities of the present model, even if another thread changes the tree meanwhile."""

    @property
    def _freedoms(self) -> list[tuple[str, bool]]:
        model = self.model
        return list(zip(model.coordinates, model.passive, strict=True))
