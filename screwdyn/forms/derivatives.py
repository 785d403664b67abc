"""What ``tree.derivatives`` is: exact derivatives of the dynamics, and the regressor of the inertial parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from screwdyn.backends.llvm.code_cache import MEMORY, Kept, Opened
from screwdyn.backends.llvm.evaluate import Evaluator
from screwdyn.backends.llvm.program import Program
from screwdyn.backends.tape.differentiate import DERIVATIVES, regressor
from screwdyn.backends.tape.tape import Tape
from screwdyn.backends.tape.trace import open_inertias
from screwdyn.core import out_arrays as memory
from screwdyn.core.errors import UnknownLinkError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.forms.numbers import Numbers
from screwdyn.physics.table import MASS, PARENT

if TYPE_CHECKING:
    from screwdyn.mechanism.link import Link
    from screwdyn.physics.model import Model

__all__ = ["Derivatives"]

Triple = tuple[Array, Array, Array]

_ARGUMENTS = {name: groups for name, (groups, _) in DERIVATIVES.items()} | {"regressor": ("q", "qd", "qdd")}
_UPPER = np.triu_indices(3)


class Derivatives:
    """Derivatives of one snapshot's dynamics, exact to rounding (docs/mathematics.md §10).

    A function is written out on a tape when it is first asked for, differentiated there operation by operation,
    compiled for this processor and kept. That takes a good part of a second for six or seven joints, and is not done
    again for trees that differ in inertias only: see ``physics.structures``. What is too long to be compiled, from 17
    joints in a row on, takes tenths of a millisecond a state: see docs/compiled.md.

    Shapes: q, qd, qdd and tau are (…, nv), in the order of ``coordinates``; leading axes are batches and broadcast. The
    coordinate along which something is differentiated is always the last index. Springs, damping and friction of the
    joints are no part of it, as in :meth:`KinematicTree.inverse_dynamics`. Arrays of the wrong shape or with entries
    that are not finite raise :class:`ShapeError`.

    Parameters
    ----------
    model : Model
        Later changes of the tree do not matter to it.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._functions: dict[tuple[str, tuple[str, ...]], Evaluator] = {}

    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, out: Triple | None = None) -> Triple:
        """∂τ/∂q, ∂τ/∂q̇ and ∂τ/∂q̈ = M, each (…, nv, nv), of τ = M q̈ + C q̇ + g.

        Entry [i, j] is ∂τ_i/∂(·)_j. N m per rad, and so on: units of τ_i by units of the coordinate j.

        Parameters
        ----------
        q, qd, qdd : (…, nv)
        out : tuple of three (…, nv, nv) arrays, optional
            Of float64, to write to; contiguous ones save the time to get memory for large batches.
        """
        (dq, dqd, M), _ = self._evaluate("inverse_dynamics", q, qd, qdd, out=out)
        return dq, dqd, M

    def forward_dynamics(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, *, out: Triple | None = None) -> Triple:
        """∂q̈/∂q, ∂q̈/∂q̇ and ∂q̈/∂τ = M⁻¹, each (…, nv, nv), of q̈ = M⁻¹ (τ − C q̇ − g).

        Entry [i, j] is ∂q̈_i/∂(·)_j. Parameters as :meth:`inverse_dynamics`.

        Raises
        ------
        SingularAttachmentError
            If a joint carries no inertia along its screw, so that M is singular; the message names it.
        """
        if self._in_one_piece:
            (dq, dqd, inverse), sound = self._evaluate("forward_dynamics", q, qd, tau, out=out)
            if sound:
                return dq, dqd, inverse
        dq, dqd, M = self.inverse_dynamics(q, qd, Numbers(self._model).forward_dynamics(q, qd, tau))
        inverse = np.asarray(np.linalg.inv(M), dtype=np.float64)
        if out is not None:
            memory.check(out, [M.shape] * 3)
        dq, dqd, inverse = memory.hand_over((-(inverse @ dq), -(inverse @ dqd), inverse), out)
        return dq, dqd, inverse

    def mass_matrix(self, q: ArrayLike, *, out: Array | None = None) -> Array:
        """∂M/∂q, (…, nv, nv, nv): entry [i, j, k] is ∂M_ij/∂q_k."""
        return self._single("mass_matrix", q, out=out)

    def mass_matrix_dot(self, q: ArrayLike, qd: ArrayLike, *, out: Array | None = None) -> Array:
        """Ṁ = Σ_k ∂M/∂q_k q̇_k, (…, nv, nv), symmetric; it equals C + Cᵀ."""
        return self._single("mass_matrix_dot", q, qd, out=out)

    def gravity_vector(self, q: ArrayLike, *, out: Array | None = None) -> Array:
        """∂g/∂q, (…, nv, nv): the Hessian of the potential energy, symmetric."""
        return self._single("gravity_vector", q, out=out)

    def regressor(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, link: str | None = None, *, out: Array | None = None
    ) -> Array:
        """Y with τ = Y π, where π are the inertial parameters of the links: :meth:`parameters`.

        Parameters
        ----------
        q, qd, qdd : (…, nv)
        link : str, optional
            Only this link's ten columns: what a payload adds to τ is ``regressor(…, link=name) @ its ten numbers``.

        Returns
        -------
        (…, nv, 10 · number of links) array, or (…, nv, 10) for one link
            Ten columns for every link but the base, in order of attachment: [m, hx, hy, hz, Ixx, Ixy, Ixz, Iyy, Iyz,
            Izz] about the origin of the link's frame and in its axes, h = m c. Massless links have their columns too.
            The base has none, since it does not move; a link welded to it has zeros.

        Raises
        ------
        UnknownLinkError
            If there is no such link.
        """
        return self._single("regressor", q, qd, qdd, links=self._links(link), out=out)

    def parameters(self, link: str | None = None) -> Array:
        """π, the inertial parameters that :meth:`regressor` multiplies, (10 · number of links,), or (10,) for one link.

        Raises
        ------
        UnknownLinkError
            If there is no such link.
        """
        return np.concatenate(
            [np.zeros(0), *(_parameters(self._model.placements[name].link) for name in self._links(link))]
        )

    def __reduce__(self) -> tuple[object, ...]:
        # Code is not copied: a copy takes what the process has, or compiles again.
        return Derivatives, (self._model,)

    # Inside

    def _links(self, link: str | None) -> tuple[str, ...]:
        known = tuple(self._model.placements)
        if link is None:
            return known[1:]
        if link not in known:
            raise UnknownLinkError.of(link, known)
        return (link,)

    def _single(self, name: str, *state: ArrayLike, links: tuple[str, ...] = (), out: Array | None) -> Array:
        """The derivative of a function that has only one."""
        (result,), _ = self._evaluate(name, *state, links=links, out=None if out is None else (out,))
        return result

    def _evaluate(
        self, name: str, *state: ArrayLike, links: tuple[str, ...] = (), out: tuple[Array, ...] | None = None
    ) -> tuple[Sequence[Array], bool]:
        """The derivatives of one function, and whether all that was assumed of the states is true.

        Where it is not, nothing that the state lies in has been written to.
        """
        function = self._function(name, links)
        single = function.single(state, out)
        if single is not None:
            return single, True
        flat, batch = self._model.flat(**dict(zip(_ARGUMENTS[name], state, strict=True)))
        shapes, count = [(*batch, *shape) for shape in function.shapes], math.prod(batch)
        whole = None
        if out is not None:
            memory.check(out, shapes)
            given = [*flat, *(x for x in state if isinstance(x, np.ndarray))]
            if all(y.flags.c_contiguous and y.flags.aligned and memory.apart(y, given) for y in out):
                whole = [np.asarray(y).reshape(count, *shape) for y, shape in zip(out, function.shapes, strict=True)]
        found, sound = function.many([x.reshape(count, self._model.nv) for x in flat], whole)
        results = [x.reshape(shape) for x, shape in zip(found, shapes, strict=True)]
        if out is None or not sound:
            return results, sound
        return (out if whole is not None else memory.hand_over(results, out)), True

    @cached_property
    def _in_one_piece(self) -> bool:
        """Whether ∂q̈ is one compiled function: unless that is too long, or some joint never carries anything."""
        return self._function("forward_dynamics").compiled

    def _function(self, name: str, links: tuple[str, ...] = ()) -> Evaluator:
        function = self._functions.get((name, links))
        if function is None:
            function = self._functions[name, links] = self._written(name, links)
        return function

    def _written(self, name: str, links: tuple[str, ...]) -> Evaluator:
        """A function of this model, by a program that is known from another one or new."""
        model = self._model
        if name != "regressor":
            return Evaluator(_programs.serving(model.table, model.loaded, (name, ())), model.table)
        # τ is linear in the inertias, so that theirs do not matter.
        massless, places = model.table.copy(), [model.placements[link] for link in links]
        massless[:-1, MASS:PARENT] = 0.0
        bodies = tuple([(model.index[at.coordinate], at.R, at.p) for at in places])
        return Evaluator(_programs.serving(massless, np.zeros(model.nv, dtype=bool), (name, bodies)))


def _program(table: Array, opened: Opened, what: Any) -> Program:
    """A function of a structure, written out on a tape."""
    (name, bodies), tape = what, Tape()
    numbers = open_inertias(table, tape, opened)
    outputs = regressor(tape, numbers, bodies) if name == "regressor" else DERIVATIVES[name][1](tape, numbers)
    return Program(name, tape, dict.fromkeys(_ARGUMENTS[name], len(table) - 1), outputs)


_programs = Kept(_program, MEMORY)


def _parameters(link: Link) -> Array:
    """The ten numbers of one link, zeros if it is massless."""
    if link.inertia is None:
        return np.zeros(10)
    return np.concatenate([[link.inertia.mass], link.inertia.first_moment, link.inertia.origin_tensor[_UPPER]])
