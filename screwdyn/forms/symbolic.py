"""The closed form of a tree: every function of it, and every link's contribution, as SymPy matrices.

The sweeps that compute the numbers run on a tape, and the tape is read out as expressions. Nothing is simplified and
nothing is differentiated; C is made of composite B's like the numbers are (docs/mathematics.md §4).
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias, TypeVar, overload

import numpy as np
import sympy

from screwdyn.backends.handover import Recording, casadi_function, jax_function, lambdified
from screwdyn.backends.sympy.closed_form import Derivation, Intermediates, symbol
from screwdyn.backends.tape.trace import FUNCTIONS, Scalars, Subject, Undetermined, record
from screwdyn.core import expressions
from screwdyn.core.errors import ScrewdynError, SingularAttachmentError
from screwdyn.forms.chain import Path, path_to
from screwdyn.forms.requests import requested
from screwdyn.physics.frames import frame_code
from screwdyn.physics.model import Model
from screwdyn.physics.quantities import Frame

__all__ = ["Symbolic", "SymbolicContribution"]

Matrix: TypeAlias = sympy.ImmutableDenseMatrix
Form: TypeAlias = Matrix | tuple[Intermediates, Matrix]
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class SymbolicContribution:
    """One link's share of the dynamics, over the k coordinates on its path, as in :class:`screwdyn.Contribution`.

    Attributes
    ----------
    link : str
    coordinates : tuple of str
    J, J_dot : (6, k) matrices
        Twist Jacobian of the centre of mass in link axes (Laus Eqs. 22-31), and its rate entry by entry.
    M, C : (k, k) matrices
        Mass matrix (Laus Eq. 21) and Coriolis matrix (Eq. 35) of this link alone.
    g : (k, 1) matrix
        Gravity torques of this link alone (Eq. 36).
    """

    link: str
    coordinates: tuple[str, ...]
    J: Matrix
    J_dot: Matrix
    M: Matrix
    C: Matrix
    g: Matrix


Contributed: TypeAlias = SymbolicContribution | tuple[Intermediates, SymbolicContribution]


class Symbolic:
    """What :meth:`screwdyn.KinematicTree.symbolic` returns: the functions of a tree as it was then.

    Results are immutable SymPy matrices, vectors as columns, and the same object each time they are asked for. What
    a tree has derived once is known to all its later closed forms: after an attachment only what is new is derived,
    and the contributions of the links that were there are the very same objects.

    Attributes
    ----------
    coordinates : tuple of str
    q, qd, qdd, tau : (nv, 1) matrices
        Real symbols: ``elbow``, ``elbow_dot``, ``elbow_ddot`` and ``elbow_tau`` for a coordinate "elbow".
    parameters : tuple of symbols
        All other symbols, by name.

    Notes
    -----
    Numbers that were given as floats stay floats, except whole and half ones; integers, rationals and π stay exact.
    """

    def __init__(self, model: Model, derivation: Derivation) -> None:
        self._model = model
        self._derivation = derivation
        self.coordinates = model.coordinates
        self.q, self.qd, self.qdd, self.tau = (
            Matrix(model.nv, 1, [symbol(group, name) for name in self.coordinates])
            for group in ("q", "qd", "qdd", "tau")
        )
        held = expressions.free_symbols([x for row in model.rows for x in row] + [model.gravity])
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

    # The functions of a tree

    def mass_matrix(self, expand: bool = True) -> Form:
        """Mass matrix M(q), (nv, nv).

        Parameters
        ----------
        expand : bool
            Of this and the following functions: one matrix of whole expressions, or else, as ``sympy.cse`` would
            give it, a pair (intermediates, matrix), where intermediates is a list of (symbol, expression) in the
            order of computation. The former is for reading, the latter for robots of more than a few axes.
        """
        return self._form("mass_matrix", expand)

    def coriolis_matrix(self, expand: bool = True) -> Form:
        """Coriolis matrix C(q, q̇) of the Christoffel symbols, (nv, nv)."""
        return self._form("coriolis_matrix", expand)

    def gravity_vector(self, expand: bool = True) -> Form:
        """Gravity torques g(q), (nv, 1)."""
        return self._form("gravity_vector", expand)

    def bias_force(self, expand: bool = True) -> Form:
        """C q̇ + g, (nv, 1), by recursive Newton-Euler."""
        return self._form("bias_force", expand)

    def inverse_dynamics(self, expand: bool = True) -> Form:
        """τ(q, q̇, q̈), (nv, 1), by recursive Newton-Euler."""
        return self._form("inverse_dynamics", expand)

    def forward_dynamics(self, expand: bool = True) -> Form:
        """q̈(q, q̇, τ), (nv, 1), by articulated bodies.

        Raises
        ------
        SingularAttachmentError
            If a joint carries no inertia whatever the state, so that M is singular.
        """
        return self._form("forward_dynamics", expand)

    def shared(self, *functions: str) -> tuple[Intermediates, list[Matrix]]:
        """Several functions over the same intermediates: (intermediates, [matrix, …]).

        Parameters
        ----------
        *functions : str
            Names such as "mass_matrix", "coriolis_matrix", "gravity_vector".

        Raises
        ------
        ScrewdynError
            If there is no such function.
        """
        return self._shared(("together", *functions), [self.recorded(name) for name in functions])

    def recorded(self, function: str) -> Scalars:
        """One of the functions on the derivation's tape: an array of scalars and numbers."""
        requested(function, tuple(self._model.placements))

        def recorded() -> Scalars:
            try:
                return self._recorded(function)
            except Undetermined as joint:
                raise SingularAttachmentError(
                    f"nothing beyond joint {self.coordinates[joint.row]!r} resists its motion, so its acceleration is "
                    "undetermined; give a link that it carries an inertia, or make the joint fixed"
                ) from None

        return self._once(function, recorded)

    def _form(self, function: str, expand: bool) -> Form:
        if expand:
            return self._once((function, "expanded"), lambda: self._derivation.matrix(self.recorded(function)))
        intermediates, (matrix,) = self.shared(function)
        return intermediates, matrix

    # One link

    @overload
    def contribution(self, link: str, expand: Literal[True] = True) -> SymbolicContribution: ...

    @overload
    def contribution(self, link: str, expand: bool) -> Contributed: ...

    def contribution(self, link: str, expand: bool = True) -> Contributed:
        """What one link contributes: J_i, J̇_i, M_i, C_i, g_i over its own path's coordinates.

        Parameters
        ----------
        link : str
        expand : bool
            As for :meth:`mass_matrix`: without it a pair (intermediates, contribution).

        Raises
        ------
        UnknownLinkError
            If the tree has no such link.
        """
        path = path_to(self._model, link)
        # The key is all that the result depends on, so that what is known is recognised on whatever tree.
        parts = self._derivation.once(("contribution", *path), lambda: self._contribution(path))
        if not expand:
            intermediates, matrices = self._shared(("contribution over intermediates", link), parts)
            return intermediates, SymbolicContribution(link, path.coordinates, *matrices)
        return self._derivation.once(
            ("contribution", link, *path),
            lambda: SymbolicContribution(link, path.coordinates, *map(self._derivation.matrix, parts)),
        )

    def contributions(self) -> list[SymbolicContribution]:
        """The contribution of every link but the base, in order of attachment; their ‡ is the whole model."""
        return [self.contribution(link) for link in self._model.placements][1:]

    def _contribution(self, path: Path) -> list[Scalars]:
        """J, J̇, M, C and g of the link at the end of a path, on the tape."""
        tape, subject = self._derivation.tape, path.subject(self._derivation, "com")
        # M, C and g are linear in the inertias: one link's are those of the chain without the others' inertias.
        return [x for name in ("jacobian", "jacobian_dot", "dynamics") for x in record(tape, name, subject)]

    def forward_kinematics(self, link: str) -> Matrix:
        """Pose of a link's frame in the base frame, (4, 4)."""
        path = path_to(self._model, link)

        def pose() -> Matrix:
            subject = path.subject(self._derivation)
            (T,) = record(self._derivation.tape, "forward_kinematics", subject)
            return self._derivation.matrix(T)

        return self._derivation.once(("pose", *path), pose)

    def jacobian(self, link: str, frame: Frame = "com") -> Matrix:
        """Twist Jacobian of a link, (6, nv); frames as for :meth:`screwdyn.KinematicTree.jacobian`."""
        return self._jacobian("jacobian", link, frame)

    def jacobian_dot(self, link: str, frame: Frame = "com") -> Matrix:
        """Entry-by-entry time derivative of :meth:`jacobian`, (6, nv)."""
        return self._jacobian("jacobian_dot", link, frame)

    def _jacobian(self, name: str, link: str, frame: Frame) -> Matrix:
        path, code = path_to(self._model, link), frame_code(frame)

        def padded() -> Matrix:
            places = [self.coordinates.index(name) for name in path.coordinates]
            whole = np.full((6, len(self.coordinates)), 0.0, dtype=object)
            (J,) = record(self._derivation.tape, name, path.subject(self._derivation, frame))
            whole[:, places] = J
            return self._derivation.matrix(whole)

        return self._derivation.once((name, code, self.coordinates, *path), padded)

    # For other tools

    def lambdify(self, function: str, modules: Any = "numpy") -> Callable[..., Any]:
        """A function for numbers, by ``sympy.lambdify`` with the shared intermediates.

        Parameters
        ----------
        function : str
            A name such as "mass_matrix". Its arguments are q, and qd, qdd or tau as far as it depends on them, each
            (…, nv); and, last, the values of ``parameters``, if there are any, (…, their number).
        modules
            As for ``sympy.lambdify``.

        Returns
        -------
        callable
            Giving an array (…, nv, nv), or (…, nv) for a vector; of dtype object if ``modules`` computes with other
            numbers than floats. Raises ShapeError for arguments of another number or length.
        """
        return lambdified(self._recording(function), modules)

    def jax(self, function: str) -> Callable[..., Any]:
        """A function of JAX arrays, to be compiled, mapped and differentiated there; needs the extra ``jax``.

        Arguments and results as for :meth:`lambdify`, in single precision unless JAX is set otherwise. Batches need no
        ``jax.vmap``, which is slower. Raises ShapeError for arguments of another number or length, and ScrewdynError
        when it is called if numbers of the robot hold other functions than elementary ones.
        """
        return jax_function(self._recording(function))

    def casadi(self, function: str) -> Any:
        """A CasADi function with inputs of these names, to be differentiated and optimised with; needs ``casadi``.

        Arguments of one state as for :meth:`lambdify`. CasADi has matrices only: a vector is a column, (nv, 1). Raises
        ScrewdynError if numbers of the robot hold other functions than elementary ones.
        """
        return casadi_function(self._recording(function))

    def _recording(self, function: str) -> Recording:
        outputs = [self.recorded(function)]
        arguments = dict.fromkeys(FUNCTIONS[function], self.coordinates)
        return Recording(self._derivation, function, outputs, arguments, self.parameters)

    # Energy and momentum

    def kinetic_energy(self) -> sympy.Expr:
        """½ q̇ᵀ M q̇."""
        return self._scalar("kinetic_energy")

    def potential_energy(self) -> sympy.Expr:
        """U(q) = −Σ m_i g₀ᵀ p_i: zero for a mass at the base's origin."""
        return self._scalar("potential_energy")

    def momentum(self) -> Matrix:
        """Spatial momentum [L; P] of the whole tree about the base's origin, base axes, (6, 1)."""
        return self._once("momentum", lambda: self._derivation.matrix(self._recorded("momentum")))

    # Inside

    @cached_property
    def _table(self) -> Scalars:
        return self._derivation.table([*self._model.rows, self._model.base_row])

    @cached_property
    def _key(self) -> Hashable:
        """Everything that a function of the whole tree depends on."""
        model = self._model
        return self.coordinates, *map(tuple, model.rows), tuple(model.base_body), tuple(model.gravity.tolist())

    def _shared(self, what: Hashable, parts: Sequence[Scalars]) -> tuple[Intermediates, list[Matrix]]:
        """Parts over the same intermediates, in lists of the caller's own."""
        taken = [*self.q, *self.qd, *self.qdd, *self.tau, *self.parameters]
        intermediates, matrices = self._once(what, lambda: self._derivation.shared(parts, taken))
        return [*intermediates], [*matrices]

    def _once(self, what: Hashable, make: Callable[[], Result]) -> Result:
        return self._derivation.once((what, self._key), make)

    def _recorded(self, name: str) -> Scalars:
        subject = Subject(self._table, None, None, self.coordinates, self.coordinates)
        (result,) = record(self._derivation.tape, name, subject)
        return result

    def _scalar(self, name: str) -> sympy.Expr:
        def scalar() -> sympy.Expr:
            (value,) = self._derivation.matrix(self._recorded(name).reshape(1))
            return value

        return self._once(name, scalar)


def _repeated(names: Counter[str]) -> set[str]:
    return {name for name, times in names.items() if times > 1}
