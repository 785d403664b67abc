"""Exact derivatives of quantities, the regressor of the inertial parameters, and the linearized equation of motion."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, compress
from typing import TYPE_CHECKING, Any

import numpy as np

from screwdyn.backends.llvm.program import (
    MEMORY,
    NO_PLACES,
    Function,
    Kept,
    Program,
    Structure,
    felt_by,
    frozen,
    kept,
    planned,
)
from screwdyn.backends.tape import trace
from screwdyn.backends.tape.tape import Tape
from screwdyn.backends.tape.trace import Undetermined
from screwdyn.core import Array, ArrayLike, ShapeError, UnknownNameError, check_out, hand_over, written
from screwdyn.forms.closed_loops import accelerations_by, deviations
from screwdyn.forms.numbers import Numbers, require_resisted, too_large
from screwdyn.forms.requests import Request
from screwdyn.mechanism.topology import check_open, check_untouched
from screwdyn.physics import SHARES, Model, share_of
from screwdyn.physics.closure import Closure
from screwdyn.physics.quantities import CATALOGUE, LARGEST, WITH_LOOPS, Method, Quantity
from screwdyn.physics.recursions.links import FRAMES, frame_code
from screwdyn.physics.table import MASS, PARENT

Triple = tuple[Array, Array, Array]

# Arguments of the functions: of the quantities, and of those that are not derivatives of a quantity.
_ARGUMENTS = {name: entry.arguments for name, entry in CATALOGUE.items()}
_ARGUMENTS |= {"mass_matrix_dot": ("q", "qd"), "regressor": ("q", "qd", "qdd")}


class Derivatives:
    """Derivatives of the quantities of one model, exact up to rounding (docs/mathematics.md §10).

    Each quantity has a method of the same name: ``derivatives.center_of_mass(q)`` is ∂c/∂q, and
    ``derivatives.kinetic_energy(q, qd)`` is (∂T/∂q, ∂T/∂q̇), with one array for each argument, in order; if q is the
    only argument, the result is an array. For a quantity with several results, there is a named tuple of arrays instead
    of each array: after ``by_q, by_qd = derivatives.contribution("crate", q, qd)``, ``by_q.M`` is ∂M/∂q of that link's
    M, over the coordinates of the contribution. The freedom of differentiation is always the last index, which runs
    over all coordinates of the tree. Units are those of the result divided by those of the freedom.

    Derivatives with respect to q are along the freedoms: entry k is the rate at q̇ = ν = e_k. For joints of one freedom
    this is ∂/∂q_k. For spherical, free and planar joints it is the derivative along the tangent of q,
    d/dε f(integrate(q, ε e_k)), and the last axis has length nv, not nq.

    In its first call a function is recorded on a tape, differentiated operation by operation, and compiled. This takes
    a large part of a second for six or seven joints. The code is cached and serves all trees that differ in inertias
    only. Functions that are too long to be compiled, from 17 joints in a row on, take tenths of a millisecond per
    state: see docs/compiled.md.

    Shapes: q is (…, nq); qd, qdd and tau are (…, nv), in the order of ``coordinates``; leading axes are batch axes and
    are broadcast. Springs, damping and friction of the joints are not included, as in
    :meth:`KinematicTree.inverse_dynamics`. Arrays of a wrong shape or with entries that are not finite raise
    :class:`ShapeError`. Every function takes ``out=``: an array of float64 for the result, or tuples of arrays in the
    structure of the results.

    Parameters
    ----------
    model : Model
        The snapshot; later changes of the tree do not affect it.
    """

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Any]: ...

    def __init__(self, model: Model) -> None:
        self._model = model
        self._functions: dict[Hashable, Function] = {}

    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, out: Triple | None = None) -> Triple:
        """∂τ/∂q, ∂τ/∂q̇ and ∂τ/∂q̈ = M, each (…, nv, nv), of τ = M q̈ + C q̇ + g.

        Entry [i, j] is ∂τ_i/∂(·)_j, in the unit of τ_i divided by that of the argument, such as N m/rad. ∂τ/∂q̇ is 2 C
        for joints of one freedom, and 2 C − M ad(ν) with spherical, free or planar joints (docs/mathematics.md §10).

        Parameters
        ----------
        q : (…, nq)
        qd, qdd : (…, nv)
        out : tuple of three (…, nv, nv) arrays, optional
            Of float64, for the results; contiguous arrays save the time of allocation for large batches.

        Raises
        ------
        ShapeError
            As for :class:`Derivatives`.
        """
        (dq, dqd, M), sound = self._evaluate("inverse_dynamics", q, qd, qdd, out=out)
        if not sound:
            Numbers(self._model).inverse_dynamics(q, qd, qdd)  # raises the error
        return dq, dqd, M

    def forward_dynamics(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, *, out: Triple | None = None) -> Triple:
        """∂q̈/∂q, ∂q̈/∂q̇ and ∂q̈/∂τ = M⁻¹, each (…, nv, nv), of q̈ = M⁻¹ (τ − C q̇ − g).

        Entry [i, j] is ∂q̈_i/∂(·)_j (docs/mathematics.md §10). Parameters as for :meth:`inverse_dynamics`.

        Raises
        ------
        SingularAttachmentError
            If a joint feels no inertia along its screw, so that M is singular; the message names the joint.
        """
        if self._model.topology.loops:
            found: Sequence[Array] = accelerations_by(self, q, qd, tau)
        else:
            require_resisted(CATALOGUE["forward_dynamics"], self._model)
            if self._in_one_piece:
                (dq, dqd, inverse), sound = self._evaluate("forward_dynamics", q, qd, tau, out=out)
                if sound:
                    return dq, dqd, inverse
            dq, dqd, M = self.inverse_dynamics(q, qd, Numbers(self._model).forward_dynamics(q, qd, tau))
            inverse = np.asarray(np.linalg.inv(M), dtype=np.float64)
            found = -(inverse @ dq), -(inverse @ dqd), inverse
        dq, dqd, inverse = written(found, out)
        return dq, dqd, inverse

    def mass_matrix_dot(self, q: ArrayLike, qd: ArrayLike, *, out: Array | None = None) -> Array:
        """Ṁ = Σ_k ∂M/∂q_k q̇_k, (…, nv, nv), symmetric, kg m²/s, kg m/s or kg/s; it equals C + Cᵀ.

        docs/mathematics.md §10. Errors and ``out`` as for :class:`Derivatives`.
        """
        return self._single("mass_matrix_dot", q, qd, out=out)

    def regressor(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        link: str | Sequence[str] | None = None,
        *,
        out: Array | None = None,
    ) -> Array:
        """Regressor Y with τ = Y π, where π are the inertial :meth:`parameters` (docs/mathematics.md §10).

        Parameters
        ----------
        q, qd, qdd : (…, nq), (…, nv), (…, nv)
        link : str or sequence of str, optional
            Return only the ten columns of this link, or those of several, such as ``tree.subtree(link)``, in their
            order. ``regressor(…, link=name) @ x`` is the contribution to τ of a body with parameters x attached to it.

        Returns
        -------
        (…, nv, 10 · number of links) array, or (…, nv, 10) for one link
            Ten columns for every link but the base, in order of attachment, for [m, hx, hy, hz, Ixx, Ixy, Ixz, Iyy,
            Iyz, Izz] about the origin of the link's frame and in its axes, with h = m c; kg, kg m, kg m². Massless
            links also have columns. The base has none, because it does not move; the columns of a link welded to it are
            zero.

        Raises
        ------
        UnknownNameError
            If there is no such link.
        ShapeError
            As for :class:`Derivatives`.
        """
        return self._single("regressor", q, qd, qdd, what=self._links(link), out=out)

    def parameters(self, link: str | Sequence[str] | None = None) -> Array:
        """Inertial parameters π of the links, (10 · number of links,), or (10,) for one link; see :meth:`regressor`.

        kg, kg m and kg m² (docs/mathematics.md §10). Of several links, such as ``tree.subtree(link)``, in their order.

        Raises
        ------
        UnknownNameError
            If there is no such link.
        """
        inertias = [self._model.placements[name].link.inertia for name in self._links(link)]
        return np.concatenate([np.zeros(0), *(np.zeros(10) if x is None else x.parameters for x in inertias)])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} over {self._model.nv} coordinates>"

    def __reduce__(self) -> tuple[object, ...]:
        # Code is not pickled: a copy uses the code that its process has, or compiles it.
        return Derivatives, (self._model,)

    # Inside

    def _links(self, link: str | Sequence[str] | None) -> tuple[str, ...]:
        links = tuple(self._model.placements)
        if link is None:
            return links[1:]
        return tuple([UnknownNameError.check(x, links) for x in (link if isinstance(link, (tuple, list)) else (link,))])

    def _of(self, entry: Quantity, values: Sequence[Any], out: Any) -> Any:
        """Derivatives of a quantity, in the structure described in :class:`Derivatives`."""
        require_resisted(entry, self._model)
        link, state, frame, _ = entry.split(values)
        if "link" in entry.parameters:
            UnknownNameError.check(link, self._model.placements)
        what = link, None if frame is None else FRAMES[frame_code(frame)]
        kind, single = _RESULTS.get(entry.name), len(entry.arguments) == 1
        count = len(entry.given) if kind else 1
        if out is not None:
            out = (out,) if single else out
            if kind:
                if not isinstance(out, tuple) or not all(isinstance(x, tuple) and len(x) == count for x in out):
                    raise ShapeError(
                        f"out must contain, for each argument, a tuple of {count} arrays: one for each result"
                    )
                out = tuple(chain.from_iterable(out))
        found: Sequence[Array] = ()
        sound = bool(self._function(entry.name, what).program.shapes)
        if sound:
            found, sound = self._evaluate(entry.name, *state, what=what, out=None if entry.name in SHARES else out)
        if not sound:
            Numbers(self._model)._evaluate(entry, *values)  # raises the error
        if entry.name in SHARES:
            found = self._shares(entry, link, found, out)
        by = [kind(*found[k : k + count]) for k in range(0, len(found), count)] if kind else found
        return by[0] if single else tuple(by)

    def _shares(self, entry: Quantity, link: str, found: Sequence[Array], out: Any) -> Sequence[Array]:
        """Derivatives of a contribution, over the coordinates of the contribution."""
        shares: list[Array] = []
        made, count = share_of(self._model, entry.name, link), len(entry.given)
        for k in range(0, len(found), count):
            # With the freedom of differentiation as a batch axis, the arrays have the shapes of contributions.
            share = made(*(np.moveaxis(x, -1, 0) for x in found[k : k + count]))
            shares += [np.ascontiguousarray(np.moveaxis(x, 0, -1)) for x in share.arrays]
        return written(shares, out)

    def _single(self, name: str, *state: ArrayLike, what: Hashable = None, out: Array | None) -> Array:
        """The result of a function with one result."""
        (result,), sound = self._evaluate(name, *state, what=what, out=None if out is None else (out,))
        if not sound:
            q, qd, qdd, *_ = (*state, np.zeros(self._model.nv))
            Numbers(self._model).inverse_dynamics(q, qd, qdd)  # raises the error
        return result

    def _evaluate(
        self, name: str, *state: ArrayLike, what: Hashable = None, out: tuple[Array, ...] | None = None
    ) -> tuple[Sequence[Array], bool]:
        """The results of one function, and whether the assumptions of its tape hold for all states."""
        # If they do not, arrays that may overlap the arguments have not been written to.
        function, model, names = self._function(name, what), self._model, _ARGUMENTS[name]
        single = function.state(state, out)
        if single is not None:
            return single, True
        values, batch = model.arrays(dict(zip(names, state, strict=True)))
        shapes = [(*batch, *shape) for shape in function.program.shapes]
        if out is not None:
            check_out(out, shapes)
        found, sound = function.evaluate(values, shapes, out)
        if not sound and np.abs(values[0]).max(initial=0.0) >= LARGEST:
            values[0] = model.wound(values[0])
            found, sound = function.evaluate(values, shapes, out)
        overflow = None if sound else too_large(model, dict(zip(names, values, strict=True)))
        if overflow is not None:
            raise overflow
        return (hand_over(found, out) if sound else found), sound

    @cached_property
    def _in_one_piece(self) -> bool:
        """Whether ∂q̈ is one compiled function; it is not if that is too long, or if some joint never feels inertia."""
        return self._function("forward_dynamics").program.compiled

    def _function(self, name: str, what: Hashable = None) -> Function:
        function = self._functions.get((name, what))
        if function is None:
            function = self._functions[name, what] = self._written(name, what)
        return function

    def _written(self, name: str, what: Any) -> Function:
        """A function of this model; its program is taken from the cache if possible."""
        model, table, loaded = self._model, self._model.table, self._model.loaded
        if name in (*WITH_LOOPS, "regressor"):
            check_open(model.topology, f"derivatives.{name}", "derivatives.forward_dynamics and linearize(…) know them")
        of, seen = None, NO_PLACES
        if name == "regressor":
            # τ is linear in the inertias, so Y does not depend on them.
            table, loaded = table.copy(), np.zeros(len(table) - 1, dtype=bool)
            table[:, MASS:PARENT] = 0.0
            places = [model.placements[link] for link in what]
            of = tuple((model.index[at.coordinate], at.pose.R, at.pose.p) for at in places)
        else:
            entry = CATALOGUE.get(name, CATALOGUE["mass_matrix"])
            table = felt_by(entry.name, table)
            request = Request(entry, *(what or ()))
            seen = model.places(entry.places, request.link or "", request.code)
        program = _programs.serving(table, loaded, (name, of), model.charts, seen)
        return Function(program, None if name == "regressor" else table)


def _program(structure: Structure, what: Any) -> Program:
    """A function of a structure."""
    traced = f"the derivatives of {what[0]}" if what[0] in CATALOGUE else what[0]
    return kept(("derivatives", what, frozen(structure)), partial(_recorded, structure, *what), traced)


def _recorded(structure: Structure, name: str, of: Any) -> Program:
    """A function of a structure, recorded on a tape and planned."""
    tape = Tape()
    subject = structure.subject(tape).with_zeros()
    if name == "regressor":
        outputs = [trace.regressor(tape, subject, of)]
    elif name == "mass_matrix_dot":
        outputs = [trace.mass_matrix_dot(tape, subject)]
    else:
        try:
            outputs = trace.derivatives(tape, name, subject)
        except Undetermined:
            outputs = []
    return planned(name, tape, {x: subject.nq if x == "q" else subject.nv for x in _ARGUMENTS[name]}, outputs)


_programs = Kept(_program, MEMORY)


def _method(entry: Quantity) -> Callable[..., Any]:
    """The method of the derivatives of a quantity."""
    names, direct = entry.arguments, not entry.parameters and len(entry.given) == 1
    kind = _RESULTS[entry.name].__name__ if entry.name in _RESULTS else "Array"
    doc = (
        f"{_listed(entry)}, of :meth:`KinematicTree.{entry.name}`.\n\n"
        "Exact derivatives (docs/mathematics.md §10). Units, errors and ``out`` as for :class:`Derivatives`."
    )
    declared = Method(entry, "Derivatives", doc, kind if len(names) == 1 else f"tuple[{kind}, ...]", out=None)

    def derivatives(self: Derivatives, *args: Any, out: Any = None, **named: Any) -> Any:
        # The other way takes ten times as long as the derivatives of gravity.
        if direct and out is None and not named and len(args) == len(names):
            found = self._function(entry.name, (None, None)).state(args)
            if found is not None:
                return found[0] if len(names) == 1 else tuple(found)
        *values, _ = declared.values(args, named)
        return self._of(entry, values, out)

    return declared.of(derivatives)


def _listed(entry: Quantity) -> str:
    """The derivatives of a quantity, with their shapes, as text."""
    sizes = {
        "v": "k" if entry.name in SHARES else "nv",
        "q": "nq",
        "L": "number of links",
        "10L": "10 · number of links",
    }
    shapes = [", ".join(["…", *(sizes.get(str(d), str(d)) for d in x.shape), "nv"]) for x in entry.given]
    names = [x.name for x in entry.given]
    if len(names) == 1:
        return ", ".join(f"∂{names[0]}/∂{x}" for x in entry.arguments) + f", ({shapes[0]})"
    several = ", ".join(f"∂({', '.join(names)})/∂{x}" for x in entry.arguments)
    return f"{several}, each of {', '.join(f'{x} ({shape})' for x, shape in zip(names, shapes, strict=True))}"


# The named tuples of the derivatives of several results, which are stored under their names for pickle.
_RESULTS: dict[str, Any] = {}
for _entry in CATALOGUE.values():
    if len(_entry.given) > 1:
        _name = _entry.name.title().replace("_", "") + "Derivatives"
        _RESULTS[_entry.name] = globals()[_name] = namedtuple(_name, [x.name for x in _entry.given])
    if not hasattr(Derivatives, _entry.name):
        setattr(Derivatives, _entry.name, _method(_entry))


@dataclass(frozen=True, eq=False)
class Linearization:
    """δẋ = A δx + B δu about a state, with δx = [δq; δq̇] and δu = δτ of the active freedoms.

    ``A, B = tree.linearize(q)`` unpacks the two matrices. With joints of one freedom, ẋ = rate + A δx + B δu. With
    spherical, free or planar joints, δq has nv entries too: two neighbouring motions q(t) and q'(t) deviate by
    δq(t) = difference(q(t), q'(t)), while the state about which they deviate moves on at ``rate``.

    Attributes
    ----------
    A : (…, 2 nv, 2 nv) array
    B : (…, 2 nv, number of active freedoms) array
    rate : (…, 2 nv) array
        [q̇; q̈] of the state itself; zero in an equilibrium.
    tau : (…, nv) array
        The torques, N m or N; zero for passive freedoms.
    coordinates : tuple of str
        Names of the freedoms: x has their positions in this order, then their rates. With closed loops, the independent
        ones.
    inputs : tuple of str
        Names of the active freedoms, the entries of u.
    """

    A: Array
    B: Array
    rate: Array
    tau: Array
    coordinates: tuple[str, ...]
    inputs: tuple[str, ...]

    def __iter__(self) -> Iterator[Array]:
        yield from (self.A, self.B)

    def __repr__(self) -> str:
        if self.A.ndim > 2:
            return f"<{type(self).__name__} of {self.A.shape[:-2]} states: {', '.join(self.coordinates)}>"
        nv = len(self.coordinates)
        fastest = np.abs(self.rate).max(initial=0.0)
        return (
            f"<{type(self).__name__}: x = {', '.join(self.coordinates)} and their rates, u = "
            f"{', '.join(self.inputs) or 'nothing'}; fastest rate {fastest:.3g}, eigenvalues of A "
            f"{np.array2string(np.linalg.eigvals(self.A), precision=4, threshold=2 * nv)}>"
        )


def linearize(
    model: Model, q: ArrayLike, qd: ArrayLike | None, tau: ArrayLike | None, independent: Sequence[str] | None
) -> Linearization:
    """See :meth:`screwdyn.KinematicTree.linearize`."""
    check_untouched(model.topology, "linearize")
    numbers, forces, nv = Numbers(model), model.joint_forces, model.nv
    qd = np.zeros(nv) if qd is None else qd
    given = np.zeros(nv) if tau is None else model.torques(tau)
    (q, qd, given), batch = model.arrays({"q": q, "qd": qd, "tau": given})
    own = forces.smoothed_force(q, qd)
    active = ~np.array(model.passive, dtype=bool)
    kept = deviations(model, q, qd, independent)
    if tau is None and kept is not None:
        given = Closure(numbers).inverse_dynamics(q, qd, kept[1], own)
    elif tau is None:
        given = np.where(active, numbers.inverse_dynamics(q, qd, np.zeros(nv)) - own, 0.0)
    by_q, by_qd, by_tau = model.derived(Derivatives).forward_dynamics(q, qd, given + own)
    A, B = np.zeros((*batch, 2 * nv, 2 * nv)), np.zeros((*batch, 2 * nv, int(active.sum())))
    A[..., :nv, :nv] = -model.chart_rotation(qd)
    A[..., :nv, nv:] = np.eye(nv)
    A[..., nv:, :nv] = by_q - by_tau * forces.stiffness
    A[..., nv:, nv:] = by_qd - by_tau * forces.damping
    B[..., nv:, :] = by_tau[..., active]
    rate = np.concatenate([qd, numbers.forward_dynamics(q, qd, given + own)], axis=-1)
    names, inputs = model.coordinates, tuple(compress(model.coordinates, active))
    if kept is not None:
        freedoms, _, deviation = kept
        rows = [*freedoms, *(nv + k for k in freedoms)]
        A, B, rate, names = A[rows] @ deviation, B[rows], rate[rows], tuple(names[k] for k in freedoms)
    return Linearization(A, B, rate, np.ascontiguousarray(given), names, inputs)
