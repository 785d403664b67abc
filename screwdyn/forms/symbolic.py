"""The closed form of a tree: every quantity of the catalogue as SymPy expressions.

The recursions that compute the numbers run on a tape, and the tape is written out as expressions. Nothing is simplified
by search for identities and nothing is differentiated.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import sympy

from screwdyn.backends.handover import Recording, casadi_function, jax_function, lambdified
from screwdyn.backends.sympy.closed_form import Derivation, Intermediates, symbol
from screwdyn.backends.tape.trace import Scalars, Undetermined, record
from screwdyn.core import expressions
from screwdyn.core.errors import ScrewdynError, UnknownNameError
from screwdyn.forms.numbers import SHARES, undetermined
from screwdyn.forms.requests import Request, requested
from screwdyn.physics.frames import BODY, FRAMES, frame_code
from screwdyn.physics.model import Model
from screwdyn.physics.quantities import CATALOGUE, Frame, Quantity

__all__ = ["Symbolic", "SymbolicContribution"]

Matrix: TypeAlias = sympy.ImmutableDenseMatrix


@dataclass(frozen=True, eq=False)
class SymbolicContribution:
    """What one link or one subtree contributes, over k freedoms, as in :class:`screwdyn.Contribution`.

    Attributes
    ----------
    link : str
    coordinates : tuple of str
    J, J_dot : (6, k) matrices
        Twist Jacobian of the link's centre of mass in link axes (Laus Eqs. 22-31), and its rate entry by entry.
    M, C : (k, k) matrices
        Mass matrix (Laus Eq. 21) and Coriolis matrix (Eq. 35).
    g : (k, 1) matrix
        Gravity forces of the joints (Eq. 36).
    """

    link: str
    coordinates: tuple[str, ...]
    J: Matrix
    J_dot: Matrix
    M: Matrix
    C: Matrix
    g: Matrix


class _Found(NamedTuple):
    """The results of a quantity on the tape, and the freedoms that a contribution is over."""

    parts: list[Scalars]
    coordinates: tuple[str, ...] = ()


class Symbolic:
    """What :meth:`screwdyn.KinematicTree.symbolic` returns: the quantities of a tree as it was then.

    There is a method for each quantity of the catalogue, with the arguments ``link`` and ``frame`` where it is one of a
    link, and ``expand``. Results are immutable SymPy matrices, vectors as columns, numbers as expressions, poses of all
    links as a tuple; and the same object each time they are asked for. After an attachment only what is new is
    derived: results that do not depend on it, such as contributions of other links, are the very same objects.

    Parameters
    ----------
    expand : bool
        Of every method: whole expressions for reading, which are shortened if they are not too long; or else, as
        ``sympy.cse`` would give it, a pair (intermediates, result), where intermediates is a list of (symbol,
        expression) in the order of computation. The latter is for robots of more than a few axes.

    Attributes
    ----------
    coordinates, positions : tuples of str
        Names of the nv freedoms and of the nq positions.
    q : (nq, 1) matrix
    qd, qdd, tau : (nv, 1) matrices
        Real symbols: ``elbow``, ``elbow_dot``, ``elbow_ddot`` and ``elbow_tau`` for a joint "elbow" of one freedom. A
        freedom of a joint of several is a rate itself: ``hip_wx``, ``hip_wx_dot`` and ``hip_wx_tau`` for "hip[wx]";
        and ``hip_x`` is its position "hip[x]".
    parameters : tuple of symbols
        All other symbols, by name.

    Notes
    -----
    Numbers that were given as floats stay floats, except whole and half ones; integers, rationals and π stay exact.
    Quaternions need not have length 1 in closed forms: it is divided out.
    """

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Any]: ...

    def __init__(self, model: Model, derivation: Derivation) -> None:
        self._model = model
        self._derivation = derivation
        self._found: dict[Hashable, _Found] = {}
        self.coordinates, self.positions = model.coordinates, model.positions
        self.q, self.qd, self.qdd, self.tau = (
            Matrix(len(names), 1, [symbol(group, name) for name in names]) for group, names in self._names.items()
        )
        places = [x for link in model.placements for x in model.place(link, BODY)]
        charts = [] if model.charts is None else [model.charts.groups]
        held = expressions.free_symbols([*(x for row in model.rows for x in row), *model.base_row, *places, *charts])
        self.parameters = tuple(sorted(held, key=str))
        own, parameters = (
            Counter(x.name for x in group) for group in ([*self.q, *self.qd, *self.qdd, *self.tau], self.parameters)
        )
        for names, problem in (
            (_repeated(own), "the symbol of two things, such as a rate and a coordinate; rename a joint"),
            (_repeated(parameters), "the name of two symbols that are assumed to be different things; use one of them"),
            (own.keys() & parameters, "both a parameter and a coordinate's symbol; rename the one or the other"),
        ):
            if names:
                raise ScrewdynError(f"{', '.join(sorted(names))} is {problem}")

    def contributions(self, expand: bool = True) -> list[Any]:
        """The contribution of every link but the base, in order of attachment; their ‡ is the whole model."""
        return [self.contribution(link, expand=expand) for link in self._model.placements][1:]

    def shared(self, *functions: str) -> tuple[Intermediates, list[Matrix]]:
        """Several quantities over the same intermediates: (intermediates, [matrix, …]).

        Parameters
        ----------
        *functions : str
            Names such as "mass_matrix"; of a link, with its name and perhaps a frame: "jacobian:tool0:body". A quantity
            of several results gives several matrices.

        Raises
        ------
        ScrewdynError
            If there is no such quantity, or a link is missing.
        """
        parts = [part for name in functions for part in self._recorded(self._request(name)).parts]
        return self._derivation.shared(parts, self._symbols)

    # For other tools

    def lambdify(
        self, function: str, modules: Any = "numpy", *, link: str | None = None, frame: Frame | None = None
    ) -> Callable[..., Any]:
        """A function for numbers, by ``sympy.lambdify`` with the shared intermediates.

        Parameters
        ----------
        function : str
            A quantity such as "mass_matrix". Arguments of the result are those of q, qd, qdd and tau that the quantity
            is a function of, in this order, (…, nq) or (…, nv); and, last, the values of ``parameters``, if there are
            any, (…, their number).
        modules
            As for ``sympy.lambdify``.
        link, frame : str, optional
            For a quantity of a link; the frame is the quantity's default if not given.

        Returns
        -------
        callable
            Giving an array (…, nv, nv), (…, nv) or (…), or a tuple of arrays for a quantity of several results (J, J̇,
            M, C and g of a contribution, over its own coordinates); of dtype object if ``modules`` computes with other
            numbers than floats. Raises ShapeError for arguments of another number or length, and for quaternions that
            are not of length 1 to 1e-3.
        """
        return lambdified(self._recording(function, link, frame), modules)

    def jax(self, function: str, link: str | None = None, frame: Frame | None = None) -> Callable[..., Any]:
        """A function of JAX arrays, to be compiled, mapped and differentiated there; needs the extra ``jax``.

        Arguments and results as for :meth:`lambdify`, in single precision unless JAX is set otherwise; batches need no
        ``jax.vmap``. Quaternions are divided by their length, which cannot be checked while JAX traces the function:
        a quaternion of zeros gives NaN. Raises ShapeError for arguments of another number or length, and ScrewdynError
        when it is called if numbers of the robot hold other functions than elementary ones.
        """
        return jax_function(self._recording(function, link, frame))

    def casadi(self, function: str, link: str | None = None, frame: Frame | None = None) -> Any:
        """A CasADi function with inputs of these names, to be differentiated and optimised with; needs ``casadi``.

        Arguments of one state as for :meth:`lambdify`. CasADi has matrices only: a vector is a column, (nv, 1), and the
        poses of all links stand one below the other. A quaternion of zeros gives NaN, as for :meth:`jax`. Raises
        ScrewdynError if numbers of the robot hold other functions than elementary ones.
        """
        return casadi_function(self._recording(function, link, frame))

    def _recording(self, function: str, link: str | None, frame: Frame | None) -> Recording:
        request = self._request(function, link, frame)
        arguments = {group: self._names[group] for group in request.entry.arguments}
        parts = self._recorded(request).parts
        configurations = self._model.configurations
        return Recording(self._derivation, request.entry.name, parts, arguments, self.parameters, configurations)

    # Inside

    @property
    def _names(self) -> dict[str, tuple[str, ...]]:
        return {"q": self.positions} | dict.fromkeys(("qd", "qdd", "tau"), self.coordinates)

    @property
    def _symbols(self) -> list[sympy.Symbol]:
        """All symbols that stand for something."""
        return [*self.q, *self.qd, *self.qdd, *self.tau, *self.parameters]

    def _request(self, function: str, link: str | None = None, frame: object = None) -> Request:
        links = tuple(self._model.placements)
        if link is not None:
            if link not in links:
                raise UnknownNameError.of(link, links)
            function = f"{function}:{link}"
        return requested(function if frame is None else f"{function}:{FRAMES[frame_code(frame)]}", links)

    def _recorded(self, request: Request) -> _Found:
        """The results of a request on the derivation's tape."""
        entry, link, model = request.entry, request.link, self._model
        key = entry.name, link, request.code
        if key not in self._found:
            subject = request.subject(model, self._derivation.tape, self._derivation.scalars)
            subject = subject._replace(positions=self.positions, coordinates=self.coordinates)
            try:
                found = _Found(record(self._derivation.tape, entry.name, subject))
            except Undetermined as stopped:
                raise undetermined(stopped.status, model, link) or stopped from None
            if entry.name in SHARES and link is not None:
                parts: Any = found.parts
                share: Any = SHARES[entry.name](model, link, parts)
                parts = [share.J, share.J_dot, share.M.array, share.C.array, share.g.array]
                found = _Found(parts, share.coordinates)
            self._found[key] = found
        return self._found[key]

    def _form(self, request: Request, expand: bool) -> Any:
        """A quantity as its method gives it."""
        parts, names = self._recorded(request)
        if expand:
            return self._shaped(request, parts, names, [self._derivation.matrix(part) for part in parts])
        intermediates, matrices = self._derivation.shared(parts, self._symbols)
        return intermediates, self._shaped(request, parts, names, matrices)

    def _shaped(
        self, request: Request, parts: Sequence[Scalars], names: tuple[str, ...], matrices: Sequence[Matrix]
    ) -> Any:
        if request.entry.name in SHARES and request.link is not None:
            key = "share", request.link, names, *matrices
            return self._derivation.once(key, lambda: SymbolicContribution(str(request.link), names, *matrices))
        results = [_as_shaped(matrix, part.shape) for matrix, part in zip(matrices, parts, strict=True)]
        return results[0] if len(results) == 1 else tuple(results)


def _as_shaped(matrix: Matrix, shape: tuple[int, ...]) -> Any:
    """A matrix as what it stands for: a number, itself, or a stack of matrices."""
    if not shape:
        return matrix[0]
    if len(shape) < 3:
        return matrix
    return tuple(matrix[k * shape[1] : (k + 1) * shape[1], :] for k in range(shape[0]))


def _repeated(names: Counter[str]) -> set[str]:
    return {name for name, times in names.items() if times > 1}


def _method(entry: Quantity) -> Callable[..., Any]:
    """The method of a quantity: its link and frame, if it has them, and ``expand``."""
    own, kind = entry.signature.parameters, inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter("self", kind), *(own[name] for name in entry.parameters)]
    parameters.append(inspect.Parameter("expand", kind, default=True, annotation="bool"))
    signature = inspect.Signature(parameters)

    def method(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        named = given.arguments
        self: Symbolic = named["self"]
        request = self._request(entry.name, named.get("link"), named.get("frame"))
        return self._form(request, named["expand"])

    method.__name__, method.__qualname__ = entry.name, f"Symbolic.{entry.name}"
    method.__signature__ = signature  # type: ignore[attr-defined]
    summary = entry.summary.replace("(…, ", "(").replace(", (…)", "")
    method.__doc__ = (
        f"{summary}\n\n``expand`` as in :class:`Symbolic`; see :meth:`screwdyn.KinematicTree.{entry.name}`."
    )
    return method


for _entry in CATALOGUE.values():
    setattr(Symbolic, _entry.name, _method(_entry))
