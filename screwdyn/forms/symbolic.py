"""Closed forms of a tree: every quantity of the catalogue as SymPy expressions.

The recursions run on traced scalars, and the tape is converted to expressions. There is no differentiation, and no
search for identities as in ``sympy.simplify``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import sympy

from screwdyn.backends.closed_form import Derivation, Handover, Intermediates, symbol
from screwdyn.backends.llvm.machine import announced
from screwdyn.backends.tape.trace import Scalars, dependent_rates, subject_of
from screwdyn.core import ScrewdynError, ShapeError, UnknownNameError, expressions
from screwdyn.forms.closed_loops import Reduced, dependent, independent_constraints, indices
from screwdyn.forms.requests import Request, requested, results
from screwdyn.physics import SHARES, Contribution, Model, Padded, share_of
from screwdyn.physics.quantities import ARGUMENTS, CATALOGUE, Frame, Method, Quantity
from screwdyn.physics.recursions.links import FRAMES, frame_code

Matrix: TypeAlias = sympy.ImmutableDenseMatrix
Form = TypeVar("Form")


class Symbolic:
    """Closed forms of the quantities of one model; made by :meth:`screwdyn.KinematicTree.symbolic`.

    There is a method for each quantity of the catalogue, with the arguments ``link`` and ``frame`` if it is a quantity
    of a link, and ``expand``. Results are immutable SymPy matrices; vectors are columns, numbers are expressions, and
    the poses of all links are a tuple. The same call returns the same object. After an attachment only new expressions
    are derived: results that do not depend on the new link, such as contributions of other links, are the same objects
    as before.

    Parameters
    ----------
    expand : bool
        Parameter of every method. True returns whole expressions, which are shortened if they are not too long. False
        returns a pair (intermediates, result) as ``sympy.cse`` does, where intermediates is a list of (symbol,
        expression) in the order of computation. Use False for robots of more than a few axes.

    Attributes
    ----------
    coordinates, positions : tuples of str
        Names of the nv freedoms and of the nq positions.
    q : (nq, 1) matrix
    qd, qdd, tau, qd_ref, qdd_ref : (nv, 1) matrices
        Real symbols: ``elbow``, ``elbow_dot``, ``elbow_ddot`` and ``elbow_tau`` for a joint "elbow" of one freedom. The
        freedoms of joints of several freedoms are rates: ``hip_wx``, ``hip_wx_dot`` and ``hip_wx_tau`` for "hip[wx]".
        The symbol of the position "hip[x]" is ``hip_x``; those of a reference motion end with ``_ref``.
    parameters : tuple of symbols
        All other symbols, sorted by name.

    Raises
    ------
    ScrewdynError
        If two symbols have the same name.

    Notes
    -----
    Floats remain floats, except multiples of ½; integers, rationals and π remain exact. Closed forms divide quaternions
    by their length, so any length but 0 is valid.
    """

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Any]: ...

    def __init__(self, model: Model, derivation: Derivation) -> None:
        self._model = model
        self._derivation = derivation
        # Results on the tape, of a contribution with its freedoms.
        self._found: dict[Hashable, tuple[list[Scalars], tuple[str, ...]]] = {}
        self._derived: set[Hashable] = set()
        self.coordinates, self.positions = model.coordinates, model.positions
        inputs = {x: Matrix(len(names), 1, [symbol(x, name) for name in names]) for x, names in self._names.items()}
        self.q, self.qd, self.qdd, self.tau, self.qd_ref, self.qdd_ref = self._inputs = (*inputs.values(),)
        self.parameters = tuple(model.symbols)
        own, parameters = (
            Counter(x.name for x in group) for group in (chain.from_iterable(self._inputs), self.parameters)
        )
        for names, problem in (
            (own - Counter([*own]), "the symbol of two inputs, such as a rate and a position; rename a joint"),
            (parameters - Counter([*parameters]), "the name of two symbols with different assumptions; use one symbol"),
            (own.keys() & parameters, "both a parameter and the symbol of a coordinate; rename one of them"),
        ):
            if names:
                raise ScrewdynError(f"{', '.join(sorted(names))} is {problem}")

    def contributions(self, expand: bool = True) -> list[Any]:
        """The contributions of all links but the base, in order of attachment; their padded sum ‡ is the whole model.

        docs/mathematics.md §2 and §3; ``expand`` as in :class:`Symbolic`.
        """
        return [self.contribution(link, expand=expand) for link in self._model.placements][1:]

    def reduced(self, *independent: str) -> Reduced:
        """M, C and g of closed loops over independent coordinates y (docs/mathematics.md §12).

        Parameters
        ----------
        *independent : str
            As many freedoms as the loops leave.

        Returns
        -------
        Reduced
            Matrices of SymPy, functions of the positions and rates of all coordinates, which the loops relate.

        Raises
        ------
        LoopError
            If these freedoms do not determine the others. Constraints that are redundant only for particular values of
            symbols count as independent: substitute numbers first.
        UnknownNameError
            If there is no such freedom.
        """
        model, read = self._model, self._derivation.scalars
        chosen = indices(model, independent)
        key = "reduced", *chosen
        if key not in self._found:
            constraints, J = independent_constraints(model)
            # In the configuration in which they determine the others most clearly.
            least = np.linalg.svd(np.delete(J, chosen, axis=-1), compute_uv=False).min(axis=-1, initial=np.inf)
            others = dependent(model, J[np.argmax(least)], len(constraints), chosen)
            subject = subject_of(model, self._derivation.tape, [model.constraints[k] for k in constraints], read)
            subject = subject._replace(positions=self.positions, coordinates=self.coordinates)
            self._found[key] = [*dependent_rates(self._derivation.tape, subject, chosen, others)], ()
        M, C, g = self.mass_matrix(), self.coriolis_matrix(), self.gravity_vector()
        Z, rate = map(self._derivation.matrix, self._found[key][0])
        Z_dot = rate * Z
        names = tuple(self.coordinates[k] for k in chosen)
        return Reduced(names, Z.T * M * Z, Z.T * (M * Z_dot + C * Z), Z.T * g, Z, Z_dot)

    def shared(self, *functions: str) -> tuple[Intermediates, list[Matrix]]:
        """Several quantities over the same intermediates: (intermediates, [matrix, …]).

        Parameters
        ----------
        *functions : str
            Names such as "mass_matrix". For a quantity of a link, the link follows and, optionally, a frame:
            "jacobian:tool0:body". A quantity with several results returns several matrices.

        Raises
        ------
        ScrewdynError
            If there is no such quantity, or a link is missing.
        """
        parts = [part for name in functions for part in self._recorded(self._request(name))[0]]
        return self._derivation.shared(parts, self._symbols)

    def subs(self, form: Form, values: Mapping[Any, Any]) -> Form:
        """A closed form with values (or expressions) in place of symbols, which are matched by name.

        SymPy's own ``subs`` tells ``Symbol("elbow")`` from the real symbol of a coordinate, and changes nothing.

        Parameters
        ----------
        form : expression, matrix, Padded, contribution, or tuple or list of these
            Results of the other methods.
        values : mapping
            From symbols of coordinates, rates and parameters, or their names, to values; all are replaced at once.

        Raises
        ------
        UnknownNameError
            If these closed forms have no such symbol.
        ShapeError
            For another key, another form, or a value that is neither a number nor an expression.

        Examples
        --------
        >>> import screwdyn as sd
        >>> forms = sd.robots.pelican().symbolic()
        >>> round(forms.subs(forms.mass_matrix()[1, 0], {"elbow": 0.5}), 9)
        0.023362402
        """
        found = expressions.bound(values, {*self._symbols})
        own = {x.name: x for x in self._symbols}
        found = {x: v.xreplace({s: own.get(s.name, s) for s in v.free_symbols}) for x, v in found.items()}
        known = sorted(own)
        given: dict[str, Any] = {}
        for key, value in values.items():
            if given.setdefault(UnknownNameError.check(str(key), known, "symbol"), value) != value:
                raise ShapeError(f"{key} is given several values: {given[str(key)]}, {value}")
        if isinstance(form, str | Mapping | np.ndarray):
            raise ShapeError(f"values are given to an expression or a matrix of SymPy, not to {type(form).__name__}")
        result: Form = _substituted(form, found)
        return result

    # For other tools

    def lambdify(
        self, function: str, modules: Any = "numpy", *, link: str | None = None, frame: Frame | None = None
    ) -> Callable[..., Any]:
        """A function of numbers, made by ``sympy.lambdify`` from shared intermediates.

        Parameters
        ----------
        function : str
            A quantity such as "mass_matrix". The arguments of the resulting function are those of q, qd, qdd and tau
            that the quantity depends on, in this order, (…, nq) or (…, nv); the last argument is the values of
            ``parameters``, (…, number of parameters), if there are any.
        modules
            As for ``sympy.lambdify``.
        link, frame : str, optional
            For a quantity of a link; the default frame is that of the quantity.

        Returns
        -------
        callable
            Returns an array (…, nv, nv), (…, nv) or (…), or a tuple of arrays for a quantity with several results (J,
            J̇, M, C and g of a contribution, over its coordinates); of dtype object if ``modules`` does not compute with
            floats. Raises ShapeError if the number or the length of the arguments is wrong, or if the length of a
            quaternion differs from 1 by more than 1e-3.

        Raises
        ------
        ScrewdynError, UnknownNameError
            If there is no such quantity or link.
        """
        return self._handover(function, link, frame).lambdify(modules)

    def jax(self, function: str, link: str | None = None, frame: Frame | None = None) -> Callable[..., Any]:
        """A function of JAX arrays, which JAX can compile, map and differentiate; needs the extra ``jax``.

        Arguments and results as for :meth:`lambdify`, in single precision unless JAX is configured otherwise; batches
        do not need ``jax.vmap``. Quaternions are divided by their length, which cannot be checked while JAX traces the
        function: for a quaternion of zeros the result is NaN. The function raises ShapeError if the number or the
        length of the arguments is wrong, and ScrewdynError if numbers of the robot contain functions that are not
        elementary.
        """
        return self._handover(function, link, frame).jax()

    def casadi(self, function: str, link: str | None = None, frame: Frame | None = None) -> Any:
        """A CasADi function whose inputs have the names of the arguments; needs the extra ``casadi``.

        Arguments as for :meth:`lambdify`, for one state. CasADi has matrices only: a vector is a column, (nv, 1), and
        the poses of all links are below each other. For a quaternion of zeros the result is NaN. Raises ScrewdynError
        if numbers of the robot contain functions that are not elementary.
        """
        return self._handover(function, link, frame).casadi()

    def _handover(self, function: str, link: str | None, frame: Frame | None) -> Handover:
        request = self._request(function, link, frame)
        arguments = {group: self._names[group] for group in request.entry.arguments}
        parts, _ = self._recorded(request)
        configurations = self._model.configurations
        return Handover(self._derivation, request.entry.name, parts, arguments, self.parameters, configurations)

    # Inside

    def __repr__(self) -> str:
        return f"<{type(self).__name__} over {len(self.coordinates)} coordinates>"

    @property
    def _names(self) -> dict[str, tuple[str, ...]]:
        return {"q": self.positions} | dict.fromkeys(ARGUMENTS[1:], self.coordinates)

    @property
    def _symbols(self) -> list[sympy.Symbol]:
        """All symbols of inputs and parameters."""
        return [*chain.from_iterable(self._inputs), *self.parameters]

    def _request(self, function: str, link: str | None = None, frame: object = None) -> Request:
        links = tuple(self._model.placements)
        if link is not None:
            function = f"{function}:{UnknownNameError.check(link, links)}"
        return requested(function if frame is None else f"{function}:{FRAMES[frame_code(frame)]}", links)

    def _recorded(self, request: Request) -> tuple[list[Scalars], tuple[str, ...]]:
        """The results of a request on the derivation's tape, and the freedoms of a contribution."""
        name, link, tape = request.entry.name, request.link, self._derivation.tape
        key = name, link, request.code
        if key not in self._found:
            subject = request.subject(self._model, tape, self._derivation.scalars)
            subject = subject._replace(positions=self.positions, coordinates=self.coordinates)
            parts = results(request, self._model, tape, subject, plain=True)
            self._found[key] = parts, ()
            if name in SHARES:
                share: Any = share_of(self._model, name, str(link))(*parts)
                self._found[key] = [*share.arrays], share.coordinates
        return self._found[key]

    def _form(self, request: Request, expand: bool) -> Any:
        """The result of the method of a quantity; the first one of a kind says why its caller waits."""
        kind = request.entry.name, expand
        if kind in self._derived:
            return self._made(request, expand)
        with announced(f"deriving the closed form of {request.entry.name} (once for a tree)"):
            form = self._made(request, expand)
        self._derived.add(kind)
        return form

    def _made(self, request: Request, expand: bool) -> Any:
        """The result of the method of a quantity."""
        parts, names = self._recorded(request)
        intermediates: Intermediates = []
        if expand:
            matrices = [self._derivation.matrix(part) for part in parts]
        else:
            intermediates, matrices = self._derivation.shared(parts, self._symbols)
        if request.entry.name in SHARES:
            key = "share", request.link, names, *matrices
            form: Any = self._derivation.once(key, lambda: Contribution(str(request.link), names, *matrices))
        else:
            form, *more = (_as_shaped(matrix, part.shape) for matrix, part in zip(matrices, parts, strict=True))
            form = (form, *more) if more else form
        return form if expand else (intermediates, form)


def _substituted(form: Any, values: Mapping[sympy.Symbol, Any]) -> Any:
    """A closed form with other expressions in place of symbols."""
    if isinstance(form, Padded):
        return Padded(form.coordinates, _substituted(form.array, values), form.order)
    if isinstance(form, Contribution):
        return Contribution(form.link, form.coordinates, *(_substituted(part, values) for part in form.arrays))
    if isinstance(form, Reduced):
        return Reduced(*(_substituted(part, values) for part in form))
    if isinstance(form, tuple | list):
        return type(form)([_substituted(part, values) for part in form])
    return form.xreplace(values) if expressions.is_expression(form) else form


def _as_shaped(matrix: Matrix, shape: tuple[int, ...]) -> Any:
    """The array that a matrix represents: a number, the matrix itself, or a tuple of matrices."""
    if not shape:
        return matrix[0]
    if len(shape) < 3:
        return matrix
    return tuple(matrix[k * shape[1] : (k + 1) * shape[1], :] for k in range(shape[0]))


def input_names(model: Model) -> frozenset[str]:
    """Names of the symbols of positions, rates, accelerations and torques."""
    rates = (symbol(group, name) for group in ARGUMENTS[1:] for name in model.coordinates)
    return frozenset(x.name for x in (*rates, *(symbol("q", name) for name in model.positions)))


def _method(entry: Quantity) -> Callable[..., Any]:
    """The method of a quantity: its link and frame, if it has them, and ``expand``."""
    summary = entry.summary.replace("(…, ", "(").replace(", (…)", "")
    doc = (
        f"{summary}\n\n``expand`` as in :class:`Symbolic`; equations, units and errors as for "
        f":meth:`screwdyn.KinematicTree.{entry.name}`."
    )
    declared = Method(entry, "Symbolic", doc, state=False, expand=True)

    def method(self: Symbolic, *args: Any, **named: Any) -> Any:
        *of_link, expand = declared.values(args, named)
        if not isinstance(expand, bool):
            raise ScrewdynError(
                f"{entry.name} of a closed form takes no state, and expand must be True or False; got "
                f"{expand!r}; for numbers, use lambdify({entry.name!r})"
            )
        return self._form(self._request(entry.name, *of_link), expand)

    return declared.of(method)


for _entry in CATALOGUE.values():
    setattr(Symbolic, _entry.name, _method(_entry))
