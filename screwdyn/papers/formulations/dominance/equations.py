"""Fu's equations of motion of one tree, of which any part can be left out."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np

from screwdyn.backends.tape.tape import Tape
from screwdyn.backends.tape.trace import inputs
from screwdyn.core import expressions
from screwdyn.core.errors import ShapeError, UnboundSymbolError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.mechanism.structure import Structure
from screwdyn.papers.formulations.dominance.parts import Parts
from screwdyn.papers.formulations.generalized_dalembert import GeneralizedDAlembert
from screwdyn.papers.formulations.states import symbolic
from screwdyn.screws.poses import shaped

__all__ = ["Equations", "Trajectory", "parts"]

_GROUPS = ("q", "qd", "qdd")


class Motion(Protocol):
    """Anything with positions, rates and accelerations, such as a :class:`screwdyn.Run` or a `selection.Trajectory`."""

    @property
    def q(self) -> Array: ...
    @property
    def qd(self) -> Array: ...
    @property
    def qdd(self) -> Array: ...


Trajectory: TypeAlias = Motion | Sequence[ArrayLike] | Array


def parts(tree: Structure, trajectory: Trajectory) -> Parts:
    """The translational and rotational parts of D and h along a trajectory.

    Parameters
    ----------
    tree : KinematicTree
        With revolute joints, as `formulations.generalized_dalembert` requires.
    trajectory : Run, selection.Trajectory, or three (k, n) arrays
        q, q̇ and q̈ at k ≥ 1 set points: three arrays, or an object that has them as ``q``, ``qd`` and ``qdd``.

    Raises
    ------
    ScrewdynError
        If the tree has other joints.
    UnboundSymbolError
        If numbers of the tree are symbols.
    ShapeError
        If the trajectory has a wrong shape, or entries that are not finite.

    Examples
    --------
    >>> import screwdyn as sd
    >>> found = sd.formulations.dominance.parts(sd.robots.two_link(), ([[0, 0]], [[1, 1]], [[0, 0]]))
    >>> print(found.D_tran[0].round(3))
    [[2.5  0.75]
     [0.75 0.25]]
    >>> print(found.D_rot[0].round(3))
    [[0.167 0.083]
     [0.083 0.083]]
    """
    equations = Equations(tree)
    return equations.parts_at(equations.set_points(trajectory))


class Equations:
    """Fu's equations of one tree on a tape: each part is computed only if a result depends on it."""

    def __init__(self, tree: Structure) -> None:
        fu = GeneralizedDAlembert(tree)
        if symbols := expressions.free_symbols(symbolic(vars(fu))):
            raise UnboundSymbolError.of(symbols, "the robot")
        self.coordinates, self._tape = fu.coordinates, Tape()
        state: list[Any] = [inputs(self._tape, group, range(len(fu.coordinates))) for group in _GROUPS]
        q, qd, self._qdd = state
        x, rates = fu.joint_positions(q), fu.joint_rates(qd)
        D_rot = fu.D_rot(x) + np.diag(fu.armature)  # the rotation of motors
        self.parts = Parts(*map(fu.contracted, (fu.D_tran(x), D_rot, fu.h_tran(x, rates), fu.h_rot(x, rates))))
        self._c = fu.contracted(fu.c(x))
        self.all = Parts(*(np.full(x.shape, True) for x in self.parts))

    @cached_property
    def all_torques(self) -> Array:
        """τ of all parts, recorded."""
        return self.torque(self.all)

    def torque(self, kept: Parts) -> Array:
        """τ of the kept parts (Eq. 3.4-24), recorded."""
        D_tran, D_rot, h_tran, h_rot = (np.where(k, x, 0.0) for k, x in zip(kept, self.parts, strict=True))
        tau: Array = (D_tran + D_rot) @ self._qdd + h_tran + h_rot + self._c
        return tau

    def set_points(self, trajectory: Trajectory) -> Array:
        """The trajectory as an array (3, k, n), k ≥ 1."""
        if isinstance(trajectory, Sequence | np.ndarray):
            if len(trajectory) != 3:
                raise ShapeError(f"a trajectory is three arrays, q, qd and qdd; got {len(trajectory)}")
            state = self.checked(*trajectory)
        elif not all(hasattr(trajectory, group) for group in _GROUPS):
            expected = "three arrays, q, qd and qdd, or an object that has them, such as a Run"
            raise ShapeError(f"a trajectory is {expected}; got {trajectory!r}")
        else:
            state = self.checked(trajectory.q, trajectory.qd, trajectory.qdd)
        if state.ndim != 3 or not state.shape[1]:
            raise ShapeError(f"q, qd and qdd must have shape (set points, {state.shape[-1]}); got {state.shape[1:]}")
        return state

    def checked(self, *state: ArrayLike) -> Array:
        """q, q̇ and q̈ (…, n) as an array (3, …, n)."""
        n = len(self.coordinates)
        arrays = [shaped(x, (n,), name) for x, name in zip(state, _GROUPS, strict=True)]
        if len({x.shape for x in arrays}) > 1:
            shapes = ", ".join(f"{name} {x.shape}" for x, name in zip(arrays, _GROUPS, strict=True))
            raise ShapeError(f"q, qd and qdd must have the same shape (…, {n}); got {shapes}")
        return np.stack(arrays)

    def evaluated(self, outputs: Array, state: Array) -> Array:
        """Values of recorded results at states (3, …, n)."""
        values: dict[Hashable, Array] = {
            (group, i): x[..., i] for group, x in zip(_GROUPS, state, strict=True) for i in range(state.shape[-1])
        }
        batch = state.shape[1:-1]
        found = self._tape.evaluate(outputs.ravel().tolist(), values, np.sin, np.cos)
        entries = [np.broadcast_to(x, batch) for x in found]
        return np.array(entries).reshape(outputs.size, math.prod(batch)).T.reshape(*batch, *outputs.shape)

    def full(self, state: Array) -> Array:
        """τ of all parts at states (3, …, n)."""
        return self.evaluated(self.all_torques, state)

    def parts_at(self, state: Array) -> Parts:
        """The parts at states (3, …, n)."""
        return Parts(*(self.evaluated(x, state) for x in self.parts))

    def count(self, outputs: Array) -> dict[str, int]:
        """Operations on the tape that recorded results depend on."""
        return self._tape.count(outputs.tolist())
