"""The catalogue of quantities: all functions of a robot and its state.

Each quantity is declared once, as a method of :class:`Quantities` with its signature and docstring. The decorator
:func:`quantity` enters it in the catalogue with its recursion, the shapes and units of its results, and whether it may
be computed from base parameters. The default kernels, the tape, compiled code, closed forms, C source, JAX and CasADi
functions, derivatives and operation counts all read :data:`CATALOGUE`. :data:`INTERNAL` has quantities that are no
methods: parts from which others follow, and what replaces others in trees with loops.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Literal, NamedTuple, ParamSpec, Protocol, TypeVar, overload

from screwdyn.core.types import Array, ArrayLike
from screwdyn.physics import charts, couplings
from screwdyn.physics.contribution import Contribution
from screwdyn.physics.recursions import contacts, links, loops, whole_tree

if TYPE_CHECKING:
    from screwdyn.physics.model import Model

# Arrays of the state that quantities take; a reference motion has rates and accelerations of its own.
ARGUMENTS = ("q", "qd", "qdd", "tau", "qd_ref", "qdd_ref")
# Accelerations among them, with the rates that they are those of.
ACCELERATIONS = {"qdd": "qd", "qdd_ref": "qd_ref"}
# A number, or that of "v" freedoms, "q" positions, "L" places (of links, constraints or points), ten for each of these
# ("10L"), "k" freedoms on the path to a link, "p" on that to its parent.
Dimension = str | int
Places = Literal["one", "subtree", "bodies", "all", "loops", "contacts"]
# Or a name of the frame in another library, such as "local"; editors offer the first four.
Frame = Literal["com", "body", "base", "mixed"] | str
P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
# Products of five entries of a state up to this do not overflow; results of larger ones are checked.
LARGEST = 1e60

# Types of the methods, for type checkers and editors


class TakesOut:
    """A class whose methods of quantities take ``out``: an array of float64 for the result, or a tuple of arrays."""


class _WithOut(Protocol[P, R_co]):
    """The same function with and without ``out``; with ``out``, the types of other arguments are not checked."""

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @overload
    def __call__(self, *args: Any, out: Any, **kwargs: Any) -> R_co: ...


class Declared(Generic[P, R_co]):
    """A declaration of :class:`Quantities`; at run time it is a plain function."""

    @overload
    def __get__(self, form: TakesOut, owner: Any = None) -> _WithOut[P, R_co]: ...
    @overload
    def __get__(self, form: object, owner: Any = None) -> Callable[P, R_co]: ...
    def __get__(self, form: object, owner: Any = None) -> Any:
        raise NotImplementedError


# Entries


@dataclass(frozen=True)
class Result:
    """One array of the results of a quantity (docs/mathematics.md §7)."""

    name: str  # the symbol of docs/mathematics.md, as an identifier
    shape: tuple[Dimension, ...]
    unit: str  # of the entries, with radians and metres
    rate_of: str | None = None  # the name of a result A whose time derivative this is, to which A D(ν) is added
    acceleration: bool = False  # whether it is q̈, from which D(ν) ν is subtracted
    momentum: str | None = None  # the name of a result p = M ν whose D(ν)ᵀ p is added to this one, Cᵀ ν
    hidden: bool = False  # an intermediate result that is not returned
    symmetric: bool = False

    @property
    def drifted(self) -> Callable[[Any, Any, Any, Any], None]:
        """The function that adds D(ν)ᵀ times the momenta that it comes from."""
        return charts.add_transposed_drift if len(self.shape) == 1 else charts.add_transposed_drift_of_rows

    @property
    def contraction(self) -> Callable[[Any, Any, Any], None] | None:
        """How the result over the rows of a table with couplings is contracted; None if it has no axis of freedoms."""
        if self.shape[-1:] not in (("v",), ("k",)):
            return couplings.contracted_rows if self.shape[:1] == ("v",) else None
        if len(self.shape) == 1:
            return couplings.contracted_vector
        if self.shape[0] != self.shape[1]:
            return couplings.contracted_columns
        return couplings.contracted_symmetric if self.symmetric else couplings.contracted_matrix


class Coupled(NamedTuple):
    """How a quantity of a tree with couplings follows from others, where its rows alone do not determine it."""

    quantities: tuple[str, ...]
    arguments: tuple[str, ...]
    finish: Callable[..., int]  # of their contracted results, arguments, scratch, the workspace and results: a status
    scratch: tuple[tuple[Dimension, ...], ...] = ()


_NOTHING = inspect.Signature()


@dataclass(frozen=True)
class Quantity:
    """An entry of the catalogue."""

    name: str
    arguments: tuple[str, ...]  # its arrays of the state, in order: some of ``ARGUMENTS``
    # (table, *arguments, *at_rest, [places], [scratch], work, *results); see ``recursions``.
    recursion: Callable[..., int | None]
    results: tuple[Result, ...]
    parameters: tuple[str, ...] = ()  # or "link", or "link" and "frame"
    # Arguments of the recursion that are zero for this quantity, such as "qdd" for a bias force.
    at_rest: tuple[str, ...] = ()
    scratch: tuple[tuple[Dimension, ...], ...] = ()  # a tuple of arrays in addition to the recursion's workspace
    record: Any = None  # the kind of record in which the recursion takes the last results
    base_parameters: bool = False  # whether base parameters, which do not keep the masses, give the same value
    # Whether the forces of external wrenches are subtracted from the result or added to τ.
    wrenches: Literal["result", "tau"] | None = None
    # Of one link, of that link and all links beyond it, of these without the base, of all links, of the constraints of
    # all loops, or of the points of all contacts.
    places: Places | None = None
    coupled: Coupled | None = None  # unless the results for a tree with couplings are the contracted ones
    signature: inspect.Signature = _NOTHING
    doc: str = ""

    @property
    def given(self) -> tuple[Result, ...]:
        """Results that are not hidden."""
        return tuple(result for result in self.results if not result.hidden)

    def handed(self, results: Sequence[Any], record: Callable[[Sequence[Any]], Any] | None = None) -> list[Any]:
        """The results as the recursion takes them; ``record`` makes their record from its members."""
        if not self.record:
            return [*results]
        first = len(results) - len(self.record._fields)
        return [*results[:first], (record or self.record._make)(results[first:])]

    def split(self, values: Sequence[Any]) -> tuple[Any, Sequence[Any], Any, Any]:
        """The link, the state, the frame and the wrenches among the values of all arguments; None without them."""
        first = bool(self.parameters)
        last = first + len(self.arguments)
        frame = values[last] if "frame" in self.parameters else None
        return values[0] if first else None, values[first:last], frame, values[last] if self.wrenches else None

    @property
    def summary(self) -> str:
        """First paragraph of the docstring, as one line."""
        return " ".join(self.doc.split("\n\n")[0].split())


CATALOGUE: dict[str, Quantity] = {}


def quantity(
    recursion: Callable[..., int | None], *results: Result, see: str = "", **properties: Any
) -> Callable[[Callable[Concatenate[Any, P], R]], Declared[P, R]]:
    """Enter a declaration; its docstring gets the sections to ``see``, and the errors, if it names none."""

    def enter(declaration: Callable[Concatenate[Any, P], R]) -> Declared[P, R]:
        name, signature = declaration.__name__, inspect.signature(declaration)
        names = tuple(signature.parameters)[1:]
        arguments = tuple(x for x in names if x in ARGUMENTS)
        parameters = tuple(x for x in names if x in ("link", "frame"))
        doc, given = inspect.getdoc(declaration) or "", inspect.signature(recursion)
        if "Raises" not in doc and "rrors as for" not in doc:
            like = ":meth:`center_of_mass`" if given.return_annotation is int else ":class:`Quantities`"
            errors = "Frames and errors as for :meth:`jacobian`." if "frame" in names else f"Errors as for {like}."
            doc += ("\n" if "\n\n" in doc else "\n\n") + (f"docs/mathematics.md {see}. " if see else "") + errors
        declaration.__doc__ = doc
        at_rest = tuple({"qdd"} & {*given.parameters} - {*names, *(result.name for result in results)})
        told = {"places": "one" if parameters else None, "at_rest": at_rest} | properties
        told |= {"signature": signature, "doc": doc}
        CATALOGUE[name] = Quantity(name, arguments, recursion, results, parameters, **told)
        declared: Any = declaration
        return declared  # type: ignore[no-any-return]

    return enter


class Method:
    """The method of a quantity for a class: its name, signature and docstring, and the arguments of its calls.

    Without ``state`` the signature has only the link and the frame. ``further`` are arguments with their defaults.
    """

    def __init__(
        self, entry: Quantity, owner: str, doc: str = "", returns: str = "", state: bool = True, **further: Any
    ) -> None:
        empty, parameter = inspect.Signature.empty, inspect.Parameter
        kind = parameter.KEYWORD_ONLY if state else parameter.POSITIONAL_OR_KEYWORD
        parameters = [x for x in entry.signature.parameters.values() if state or x.name in ("self", *entry.parameters)]
        for name, value in further.items():
            annotation = empty if value is None else type(value).__name__
            parameters.append(parameter(name, kind, default=value, annotation=annotation))
        given = entry.signature.return_annotation if state else empty
        self.signature = inspect.Signature(parameters, return_annotation=returns or given)
        self.name, self.called, self.doc = entry.name, f"{owner}.{entry.name}", doc or entry.doc
        self.names = [p.name for p in parameters[1:]]
        self.defaults = {p.name: p.default for p in parameters[1:] if p.default is not p.empty}
        self.most = sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters[1:])

    def of(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of the object, ``*args`` and ``**named`` as this method."""
        function.__name__, function.__qualname__, function.__doc__ = self.name, self.called, self.doc
        function.__signature__ = self.signature  # type: ignore[attr-defined]
        return function

    def values(self, args: Sequence[Any], named: dict[str, Any]) -> tuple[Any, ...]:
        """The values of all arguments of a call, in the order of the signature; TypeError if they do not fit it."""
        try:
            values = [named.pop(x) if x in named else self.defaults[x] for x in self.names[len(args) :]]
        except KeyError as missing:
            hint = "; of a state, give .q and .qd" if any(hasattr(x, "qd") for x in args) else ""
            raise TypeError(f"{self.called}() missing a required argument: {missing}{hint}") from None
        if named or len(args) > self.most:
            try:
                self.signature.bind_partial(None, *args, **named)
            except TypeError as error:
                raise TypeError(f"{self.called}() {error}") from None
        return *args, *values


# The methods

_M = Result("M", ("v", "v"), "kg m^2, kg m or kg", symmetric=True)
_C = Result("C", ("v", "v"), "N m s, N s, ...", rate_of="M")
_G = Result("g", ("v",), "N m or N")
_TAU = Result("tau", ("v",), "N m or N")
_P, _Y = Result("p", ("v",), "N m s or N s"), Result("Y", ("v", 10), "N m or N per kg, kg m or kg m^2")
_Y_P, _Y_P_DOT = Result("Y_p", ("v", 10), "N m s or N s per kg, kg m or kg m^2"), replace(_Y, momentum="Y_p")
_YS = replace(_Y, shape=("v", "10L"))
_J = Result("J", (6, "v"), "1 or m, and 1/m or 1")
_J_C = Result("J_c", ("L", "v"), "1 or m, and 1/m or 1")
_J_C_DOT = Result("J_c_dot", ("L", "v"), "1/s, ...", rate_of="J_c")
_PHI, _X, _E = Result("phi", ("L",), "m"), Result("x", ("L", 4), "m"), Result("e", ("L", 9), "1")
_J_T, _J_T_DOT = Result("J_t", ("L", 3, "v"), "m or 1"), Result("J_t_dot_qd", ("L", 3), "m/s^2")
_U, _POINTS = Result("u", ("L", 3), "m/s"), (("L",), ("L", 4), ("L", 9))
_J_DOT = Result("J_dot", (6, "v"), "1/s, ...", rate_of="J")
_A = Result("A", (6, "v"), "kg m^2, kg m or kg")
_QDD = Result("qdd", ("v",), "rad/s^2 or m/s^2", acceleration=True)


def _contribution(k: str) -> tuple[Result, ...]:
    """The results of a contribution over freedoms."""
    J, J_dot = Result("J", (6, k), _J.unit), Result("J_dot", (6, k), "1/s, ...")
    return J, J_dot, replace(_M, shape=(k, k)), Result("C", (k, k), _C.unit), Result("g", (k,), _G.unit)


class Quantities(ABC):
    """Rigid-body kinematics and dynamics of a tree, τ = M(q) q̈ + C(q, q̇) q̇ + g(q).

    Shapes: ``q`` is (…, nq), one entry for each of ``positions``; ``qd``, ``qdd`` and ``tau`` are (…, nv), one entry
    for each of ``coordinates``; leading axes are batch axes and are broadcast. Units are SI and radians. For spherical,
    free and planar joints ``qd`` contains quasi-velocities ν and ``qdd`` their rates (docs/mathematics.md §7).

    Every function raises :class:`ShapeError` if an array has a wrong shape, an entry that is not finite or so large
    that results overflow, or a quaternion whose length differs from 1 by more than 1e-3;
    :class:`UnknownNameError` for a link that is not in the tree; and :class:`UnboundSymbolError` if numbers of the tree
    contain symbols. Damping, friction and springs of joints are not part of the rigid-body equation: see
    ``joint_force``.
    """

    @property
    @abstractmethod
    def model(self) -> Model:
        """The frozen snapshot of the tree from which quantities are computed."""

    # What impulses cause, and loops that close; see ``forms.numbers``.
    impulse_response: Callable[..., Array]
    _closing: Callable[[Array, Array], tuple[Array, Array]]
    _of_points: Callable[..., Sequence[Array]]
    _holding: Callable[[Sequence[int]], Quantities]

    # Dynamics

    @quantity(whole_tree.mass_matrix, _M, base_parameters=True)
    def mass_matrix(self, q: ArrayLike) -> Array:
        """Mass matrix M(q), (…, nv, nv), symmetric; kg m², kg m or kg.

        M = Σ_i J_iᵀ M̄_i J_i (docs/mathematics.md §2, Laus Eq. 21), by composite inertias (§4). Cost O(Σ depth).
        """

    @quantity(whole_tree.mass_and_coriolis, replace(_M, hidden=True), _C, base_parameters=True)
    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Coriolis matrix C(q, q̇), (…, nv, nv), of the Christoffel symbols of M (Laus Eq. 35), or with quasi-velocities
        of its Levi-Civita connection (docs/mathematics.md §7); N m s, N s or kg/s.

        C = Σ_i J_iᵀ (M̄_i J̇_i + B_i J_i) (docs/mathematics.md §2), so that Ṁ = C + Cᵀ; M is not differentiated. With
        quasi-velocities C(ν) b = M ∇_ν b (§7).
        """

    @quantity(whole_tree.mass_and_coriolis, _M, _C, base_parameters=True)
    def mass_and_coriolis(self, q: ArrayLike, qd: ArrayLike) -> tuple[Array, Array]:
        """M and C, both (…, nv, nv), at the cost of C: see :meth:`mass_matrix` and :meth:`coriolis_matrix`."""

    @quantity(whole_tree.dynamics, _M, _C, _G, base_parameters=True)
    def dynamics(self, q: ArrayLike, qd: ArrayLike) -> tuple[Array, Array, Array]:
        """M, C (…, nv, nv) and g (…, nv): :meth:`mass_matrix`, :meth:`coriolis_matrix` and :meth:`gravity_vector`."""

    @quantity(whole_tree.gravity_vector, _G, base_parameters=True, see="§1 and §2")
    def gravity_vector(self, q: ArrayLike) -> Array:
        """Gravity vector g(q) = ∂U/∂q, (…, nv), N m or N: joint forces that hold the robot at rest (Laus Eq. 36)."""

    @quantity(whole_tree.inverse_dynamics, replace(_TAU, name="bias"), base_parameters=True, see="§4")
    def bias_force(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """C(q, q̇) q̇ + g(q), (…, nv), N m or N: the joint forces of a motion with q̈ = 0, by recursive Newton-Euler."""

    @quantity(whole_tree.velocity_forces, replace(_TAU, name="c"), base_parameters=True, see="§4")
    def velocity_product(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """C(q, q̇) q̇, (…, nv), N m or N: the Coriolis and centrifugal forces of joints, by recursive Newton-Euler."""

    @quantity(whole_tree.transposed_velocity_forces, replace(_P, hidden=True), replace(_TAU, name="c", momentum="p"))
    def transposed_velocity_product(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """C(q, q̇)ᵀ q̇, (…, nv), N m or N: the rate of p = M q̇ beside τ − g, for momentum observers.

        The momenta of all bodies that a joint carries along the rate of its screw (docs/mathematics.md §4; De Luca and
        Mattone 2003). Cost O(nv).
        """

    @quantity(whole_tree.joint_momentum, _P, base_parameters=True)
    def joint_momentum(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Momentum p = M(q) q̇ along the freedoms, (…, nv), N m s or N s. Cost O(nv)."""

    @quantity(whole_tree.reference_dynamics, _TAU, base_parameters=True)
    def reference_dynamics(self, q: ArrayLike, qd: ArrayLike, qd_ref: ArrayLike, qdd_ref: ArrayLike) -> Array:
        """Joint forces M q̈_r + C(q, q̇) q̇_r + g for the rates and accelerations of a reference, (…, nv), N m or N.

        With C of :meth:`coriolis_matrix`, so that Ṁ − 2 C is skew: passivity-based control (Slotine and Li 1987;
        docs/mathematics.md §4). Where q̇_r = q̇ they are those of :meth:`inverse_dynamics`. Cost O(nv).

        Parameters
        ----------
        q : (…, nq)
            rad and m.
        qd, qd_ref : (…, nv)
            Actual rates, and those of the reference; rad/s and m/s.
        qdd_ref : (…, nv)
            rad/s² and m/s².

        Raises
        ------
        ShapeError, UnboundSymbolError
            As for :class:`Quantities`.
        """

    @quantity(links.reference_regressor, _Y, scratch=((6, "v"),), see="§4")
    def reference_regressor(
        self, link: str, q: ArrayLike, qd: ArrayLike, qd_ref: ArrayLike, qdd_ref: ArrayLike
    ) -> Array:
        """Regressor Y of a link in :meth:`reference_dynamics`, (…, nv, 10): Y π is what a body with parameters π adds.

        π = [m, hx, hy, hz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz] about the link's origin and in its axes, as in
        :attr:`Inertia.parameters`. The sum of Y π over all links, with the forces of armatures, is
        :meth:`reference_dynamics`; see :meth:`subtree_reference_regressor`. Slotine and Li 1987.
        """

    @quantity(links.reference_regressor, _YS, scratch=((6, "v"),), places="bodies", see="§4")
    def subtree_reference_regressor(
        self, link: str, q: ArrayLike, qd: ArrayLike, qd_ref: ArrayLike, qdd_ref: ArrayLike
    ) -> Array:
        """:meth:`reference_regressor` of a link and all links beyond it side by side, (…, nv, 10 · number of links).

        Ten columns for each of ``tree.subtree(link)``, also for massless links and welded ones, without the base, which
        does not move. They multiply ``tree.derivatives.parameters(tree.subtree(link))``; for the base as the link, so
        that all links count, ``tree.derivatives.parameters()``.
        """

    @quantity(links.momentum_regressor, _Y_P, scratch=((6, "v"),))
    def momentum_regressor(self, link: str, q: ArrayLike, qd: ArrayLike) -> Array:
        """Regressor Y of a link in :meth:`joint_momentum`, (…, nv, 10): Y π is what a body with parameters π adds.

        Parameters as for :meth:`reference_regressor`.
        """

    @quantity(links.momentum_regressor, replace(_YS, unit=_Y_P.unit), scratch=((6, "v"),), places="bodies", see="§4")
    def subtree_momentum_regressor(self, link: str, q: ArrayLike, qd: ArrayLike) -> Array:
        """:meth:`momentum_regressor` of a link and all beyond it, as of :meth:`subtree_reference_regressor`."""

    @quantity(links.momentum_rate_regressor, replace(_Y_P, hidden=True), _Y_P_DOT, scratch=((6, "v"),), see="§4")
    def momentum_rate_regressor(self, link: str, q: ArrayLike, qd: ArrayLike) -> Array:
        """Regressor of a link in Cᵀ q̇ − g, (…, nv, 10): Y π is what a body adds to the rate of M q̇, besides torques.

        With it and :meth:`momentum_regressor` a body is estimated without accelerations. Parameters as for
        :meth:`reference_regressor`.
        """

    @quantity(
        links.momentum_rate_regressor,
        replace(_Y_P, shape=_YS.shape, hidden=True),
        replace(_Y_P_DOT, shape=_YS.shape),
        scratch=((6, "v"),),
        places="bodies",
        see="§4",
    )
    def subtree_momentum_rate_regressor(self, link: str, q: ArrayLike, qd: ArrayLike) -> Array:
        """:meth:`momentum_rate_regressor` of a link and all beyond it, as of :meth:`subtree_reference_regressor`."""

    @quantity(whole_tree.inverse_dynamics, _TAU, base_parameters=True, wrenches="result")
    def inverse_dynamics(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrenches: Mapping[str, ArrayLike] | None = None
    ) -> Array:
        """Joint forces of a motion, τ = M q̈ + C q̇ + g − Σ J_iᵀ F_i, (…, nv), N m or N. Cost O(nv).

        By recursive Newton-Euler (docs/mathematics.md §4; Featherstone 2008, Fu et al. 1987).

        Parameters
        ----------
        q : (…, nq)
            rad and m.
        qd, qdd : (…, nv)
            rad/s and m/s; rad/s² and m/s².
        wrenches : mapping from link name to (…, 6), optional
            External wrench [n; f] on each link, about the origin of the link's frame and in its axes; N m and N.

        Raises
        ------
        ShapeError, UnknownNameError, UnboundSymbolError
            As for :class:`Quantities`.
        LoopError
            With closed loops: if the accelerations open a loop, or if the motors cannot give them.

        Notes
        -----
        With closed loops, M q̈ + C q̇ + g = τ + J_cᵀ λ + Σ J_iᵀ F_i has many solutions τ, of which the shortest is
        returned; it is zero for passive joints (§12). ``squeezing_torque`` takes the wrenches in the loops.
        """

    @quantity(
        whole_tree.forward_dynamics,
        _QDD,
        base_parameters=True,
        wrenches="tau",
        coupled=Coupled(("mass_matrix", "bias_force"), ("tau",), whole_tree.accelerations),
    )
    def forward_dynamics(
        self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, wrenches: Mapping[str, ArrayLike] | None = None
    ) -> Array:
        """Accelerations q̈ = M⁻¹ (τ + Σ J_iᵀ F_i − C q̇ − g), (…, nv), rad/s² or m/s². Cost O(nv).

        By the articulated-body algorithm (docs/mathematics.md §4; Featherstone 2008). ``tau`` is (…, nv), N m or N; the
        other parameters and errors are those of :meth:`inverse_dynamics`. With closed loops, M q̈ + C q̇ + g = τ + J_cᵀ λ
        and J_c q̈ + J̇_c q̇ = 0, at a cost of O(nv³) (§12); the state must be one in which the loops are closed.

        Raises
        ------
        SingularAttachmentError
            If a joint feels no inertia along its screw, so that M is singular. The message names the joint, the inertia
            that it feels and the inertia that it carries (docs/mathematics.md §4).
        """

    # Poses, twists and Jacobians of links

    @quantity(links.forward_kinematics, Result("T", (4, 4), "1 and m"), see="§1")
    def forward_kinematics(self, link: str, q: ArrayLike) -> Array:
        """Pose T_0i of a link's frame in the base frame, (…, 4, 4), m: the product of home · exp(Ŝ q) over its path."""

    @quantity(links.link_poses, Result("T", ("L", 4, 4), "1 and m"), places="all", see="§1")
    def link_poses(self, q: ArrayLike) -> Array:
        """Poses of all links in the base frame, (…, number of links, 4, 4), in metres, in the order of ``links``."""

    @quantity(links.jacobian, _J)
    def jacobian(self, link: str, q: ArrayLike, frame: Frame = "com") -> Array:
        """Jacobian of the twist [ω; v] = J q̇ of a link at the frame's point, by default its centre of mass, (…, 6, nv).

        In rad/s and m/s per unit rate (docs/mathematics.md §2; Laus Eqs. 22-31).

        Parameters
        ----------
        link : str
        q : (…, nq)
            rad and m.
        frame : "com", "body", "base" or "mixed"
            The point and the axes of the twist: centre of mass and link axes (Laus's J^C), link origin and link axes,
            base origin and base axes (Laus's J⁰), or link origin and base axes. Names of other libraries are also
            known: "local" (body), "world" (base), "local_world_aligned" (mixed); upper and lower case are equivalent.

        Raises
        ------
        ShapeError, UnknownNameError, UnboundSymbolError
            For an unknown frame, and as for :class:`Quantities`.
        """

    @quantity(links.jacobian_dot, replace(_J, hidden=True), _J_DOT, see="§2 and §7")
    def jacobian_dot(self, link: str, q: ArrayLike, qd: ArrayLike, frame: Frame = "com") -> Array:
        """Time derivative J̇ of :meth:`jacobian`, entry by entry, (…, 6, nv); rad/s² and m/s² per unit rate."""

    @quantity(links.twist_of_link, Result("V", (6,), "rad/s and m/s"), see="§11")
    def link_twist(self, link: str, q: ArrayLike, qd: ArrayLike, frame: Frame = "com") -> Array:
        """Twist [ω; v] = J q̇ of a link at the frame's point, by default its centre of mass, (…, 6), rad/s and m/s."""

    @quantity(links.acceleration_of_link, Result("A", (6,), "rad/s^2 and m/s^2"))
    def link_acceleration(self, link: str, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, frame: Frame = "com") -> Array:
        """Time derivative J q̈ + J̇ q̇ of :meth:`link_twist`, entry by entry, (…, 6), rad/s² and m/s².

        In the frame "mixed" its linear part is the acceleration of the link's origin. The frames "com" and "body"
        rotate with the link: the acceleration of their origin is the linear part plus ω × v (docs/mathematics.md §11).
        """

    # Centre of mass, momentum, energy

    @quantity(whole_tree.center_of_mass, Result("c", (3,), "m"))
    def center_of_mass(self, q: ArrayLike) -> Array:
        """Centre of mass of the tree including its base, in the base frame: c = Σ m_i c_i / Σ m_i, (…, 3), m.

        docs/mathematics.md §11.

        Raises
        ------
        InertiaError
            If the tree has no mass.
        ShapeError, UnboundSymbolError
            As for :class:`Quantities`.
        """

    @quantity(whole_tree.center_of_mass_velocity, Result("c_dot", (3,), "m/s"), see="§11")
    def center_of_mass_velocity(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Velocity ċ = P / m of the centre of mass, (…, 3), in base axes, m/s."""

    @quantity(whole_tree.center_of_mass_jacobian, Result("J", (3, "v"), "m or 1"), see="§11")
    def center_of_mass_jacobian(self, q: ArrayLike) -> Array:
        """Jacobian J = Σ m_i R_0i J_v,i / m of the centre of mass, ċ = J q̇, (…, 3, nv), in base axes; m or 1."""

    @quantity(whole_tree.center_of_mass_acceleration, Result("a", (3,), "m/s^2"), see="§11")
    def center_of_mass_bias_acceleration(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Acceleration J̇ q̇ of the centre of mass for q̈ = 0, (…, 3), in base axes, m/s²."""

    @quantity(whole_tree.centroidal_momentum, Result("h", (6,), "N m s and N s"), see="§11; Orin et al. 2013")
    def centroidal_momentum(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Momentum h = [L; P] = A q̇ of the tree about its centre of mass, (…, 6), in base axes; N m s and N s."""

    @quantity(whole_tree.centroidal_momentum_matrix, _A, see="§11; Orin et al. 2013")
    def centroidal_momentum_matrix(self, q: ArrayLike) -> Array:
        """Matrix A(q) of the centroidal momentum h = A q̇, (…, 6, nv), in base axes; kg m², kg m or kg."""

    @quantity(
        whole_tree.centroidal_momentum_matrix_dot,
        replace(_A, hidden=True),
        Result("A_dot", (6, "v"), "N m s, ...", rate_of="A"),
        see="§11; Wensing and Orin 2016",
    )
    def centroidal_momentum_matrix_dot(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Time derivative Ȧ of :meth:`centroidal_momentum_matrix`, entry by entry, (…, 6, nv), in base axes."""

    @quantity(whole_tree.centroidal_momentum_rate, Result("h_dot", (6,), "N m and N"))
    def centroidal_momentum_rate(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
        """Rate ḣ = A q̈ + Ȧ q̇ of the centroidal momentum, (…, 6), in base axes; N m and N.

        It equals the sum of the external wrenches about the centre of mass, including the weight and the reaction of
        the base (docs/mathematics.md §11).
        """

    @quantity(whole_tree.spatial_momentum, Result("h", (6,), "N m s and N s"), see="§2")
    def momentum(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Momentum [L; P] = Σ Ad(T_0i)⁻ᵀ I_i V_i about the base's origin, (…, 6), in base axes; N m s and N s."""

    @quantity(whole_tree.kinetic_energy, Result("T", (), "J"), see="§2")
    def kinetic_energy(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Kinetic energy ½ Σ V_iᵀ I_i V_i = ½ q̇ᵀ M q̇, (…), J."""

    @quantity(whole_tree.potential_energy, Result("U", (), "J"), see="§2")
    def potential_energy(self, q: ArrayLike) -> Array:
        """Potential energy U(q) = −Σ m_i g₀ᵀ p_i of gravity alone, (…), J; zero for a mass at the base's origin."""

    # One link

    @quantity(links.contribution, *_contribution("k"), record=links.Share, scratch=(("v", "k", 12),))
    def contribution(self, link: str, q: ArrayLike, qd: ArrayLike) -> Contribution:
        """Contribution of one link: J_i, J̇_i, M_i, C_i, g_i over the k freedoms on its path (docs/mathematics.md §2).

        Parameters
        ----------
        link : str
        q, qd : (…, nq), (…, nv)
            Of the whole tree.

        Returns
        -------
        Contribution
            J and J̇, (…, 6, k), in the com frame; M and C, (…, k, k); g, (…, k) (Laus Eqs. 21-36).
        """

    @quantity(
        links.subtree_contribution,
        *_contribution("v"),
        record=links.Share,
        scratch=(("v", "v", 12), (6, "v"), (6, "v"), ("v", "v"), ("v", "v"), ("v",)),
        places="subtree",
    )
    def subtree_contribution(self, link: str, q: ArrayLike, qd: ArrayLike) -> Contribution:
        """Contribution of a link and all links beyond it: the padded sum of their M, C and g, and J, J̇ of the link.

        Its coordinates are those on the path to the link and those beyond it (docs/mathematics.md §11). Parameters and
        errors as for :meth:`contribution`.
        """

    @quantity(links.kinetic_energy, Result("T", (), "J"))
    def link_kinetic_energy(self, link: str, q: ArrayLike, qd: ArrayLike) -> Array:
        """Kinetic energy of one link, T_i = ½ V_iᵀ M̄_i V_i = ½ q̇_iᵀ M_i q̇_i over its path, (…), J (Laus Eqs. 1, 18).

        The armature of its own joint is included, as in M_i; the rotor of a joint is a link of its own. The sum over
        all links is :meth:`kinetic_energy` (docs/mathematics.md §2).
        """

    @quantity(links.potential_energy, Result("U", (), "J"), see="§2")
    def link_potential_energy(self, link: str, q: ArrayLike) -> Array:
        """Potential energy of one link, U_i = −m_i g₀ᵀ p_i, (…), J; the sum over all is :meth:`potential_energy`."""

    @quantity(links.kinetic_energy, Result("T", (), "J"), places="subtree")
    def subtree_kinetic_energy(self, link: str, q: ArrayLike, qd: ArrayLike) -> Array:
        """Kinetic energy of a link and all beyond it, the sum of their :meth:`link_kinetic_energy`, (…), J."""

    @quantity(links.potential_energy, Result("U", (), "J"), places="subtree")
    def subtree_potential_energy(self, link: str, q: ArrayLike) -> Array:
        """Potential energy of a link and all beyond it, the sum of their :meth:`link_potential_energy`, (…), J."""

    @quantity(
        whole_tree.operational_inertia,
        Result("Lambda", (6, 6), "kg m^2, kg m and kg"),
        base_parameters=True,
        scratch=(("v", "v"), (6, "v")),
        coupled=Coupled(("mass_matrix", "jacobian"), (), whole_tree.inertia_felt),
    )
    def operational_inertia(self, link: str, q: ArrayLike, frame: Frame = "com") -> Array:
        """Operational-space inertia Λ = (J M⁻¹ Jᵀ)⁻¹ of a link, (…, 6, 6); kg m², kg m and kg.

        docs/mathematics.md §11; Khatib 1987. Frames and errors as for :meth:`jacobian`.

        Raises
        ------
        SingularAttachmentError
            If the link cannot move in all six directions, so that J M⁻¹ Jᵀ is singular; or as for
            :meth:`forward_dynamics`.
        """

    @quantity(loops.constraint_jacobian, _J_C, places="loops")
    def constraint_jacobian(self, q: ArrayLike) -> Array:
        """Jacobian J_c of the constraints of all loops, J_c q̇ = 0, (…, m, nv).

        A loop with a joint of k freedoms has 6 − k rows, one for each of its ``wrenches``: the power of the wrench on
        the twist of the loop's link relative to the other one. Loops come in the order of ``loops``. The columns of
        coordinates that move both links alike are zero (docs/mathematics.md §12).
        """

    @quantity(loops.constraint_jacobian_dot, replace(_J_C, hidden=True), _J_C_DOT, places="loops")
    def constraint_jacobian_dot(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Time derivative of :meth:`constraint_jacobian`, (…, m, nv), so that J_c q̈ + J̇_c q̇ = 0."""

    @quantity(contacts.contact_frames, _PHI, replace(_X, hidden=True), replace(_E, hidden=True), places="contacts")
    def contact_gaps(self, q: ArrayLike) -> Array:
        """Distances between the points of all contacts and their bodies, (…, k), m; negative inside.

        The points are those of the contacts in order; of bodies, the corners of both and pairs of edges
        (docs/mathematics.md §14).

        Raises
        ------
        ContactError
            For a point in the middle of a sphere, or on the axis of a capsule, where there is no normal.
        ShapeError, UnboundSymbolError
            As for :class:`Quantities`.

        Examples
        --------
        >>> import screwdyn as sd
        >>> tree = sd.KinematicTree()
        >>> ball = sd.Inertia.sphere(2.0, 0.1)
        >>> _ = tree.attach(ball, to="base", joint=sd.prismatic("z"), name="ball", shape=sd.Shape.sphere(0.1))
        >>> _ = tree.touch("ball", to="base", on=sd.Plane())
        >>> tree.contact_gaps([0.5])
        array([0.4])
        """

    @quantity(contacts.contact_jacobian, _J_T, scratch=_POINTS, places="contacts")
    def contact_jacobian(self, q: ArrayLike) -> Array:
        """Jacobian J of the rates u = J q̇ of the points of contacts relative to their bodies, (…, k, 3, nv); m or 1.

        Of the three rows of a point, the first is along the normal out of the body, the rate of the gap; the others are
        along two tangents (docs/mathematics.md §14). Errors as for :meth:`contact_gaps`.
        """

    @quantity(
        contacts.contact_rows,
        replace(_PHI, hidden=True),
        replace(_J_T, hidden=True),
        _J_T_DOT,
        replace(_U, hidden=True),
        scratch=_POINTS,
        places="contacts",
    )
    def contact_drift(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Drift J̇ q̇ of the rates of points of contacts, in addition to J q̈ (``contact_jacobian``), (…, k, 3), m/s².

        That of tangents holds where nothing slips, and where the body is a plane. Errors as for :meth:`contact_gaps`.
        """


# Quantities that are no methods


def _all_of(name: str, called: str) -> Quantity:
    """A quantity whose hidden results are results too."""
    entry = CATALOGUE[name]
    return replace(entry, name=called, results=tuple(replace(result, hidden=False) for result in entry.results))


_BASIS = (("L", "L"), ("L", 2))
_SLIP = Result("wrench", (6,), "N m s and N s"), Result("energies", (3,), "J")
_INTERNAL = (
    # The passes of every change of a moving tree; see ``changes.law``.
    Quantity("slip_momentum", ("q", "qd", "slip"), whole_tree.slip_momentum, (_TAU, *_SLIP), places="one"),
    Quantity(
        "impact",
        ("q", "qd", "slip"),
        whole_tree.impact,
        (Result("change", ("v",), ""), *_SLIP),
        places="one",
        scratch=(("v",), ("v",)),
        coupled=Coupled(("mass_matrix", "slip_momentum"), ("qd",), whole_tree.impact_of_coupled, (("v",),)),
    ),
    Quantity(
        "impulse_response",
        ("q", "tau"),
        whole_tree.impulse_response,
        (Result("jump", ("v",), ""),),
        coupled=Coupled(("mass_matrix",), ("tau",), whole_tree.solved),
    ),
    # What a link has at one state, from what its parent has; see ``forms.point``.
    Quantity(
        "link_step",
        ("q", "qd", "onto", "frame_above", "columns_above"),
        links.link_step,
        (Result("frame", (1, 18), ""), Result("columns", ("k", 12), ""), *CATALOGUE["contribution"].results),
        places="one",
        record=links.Share,
    ),
    # The rows of constraints and of contacts at once, and the frames of these; see ``physics.contact``.
    _all_of("constraint_jacobian_dot", "constraints"),
    _all_of("contact_drift", "contact_rows"),
    _all_of("contact_gaps", "contact_frames"),
    # The impact of loops that close; see ``physics.closure``.
    Quantity(
        "closing",
        ("q", "opening"),
        loops.closing,
        (Result("rates", ("v",), ""), Result("impulses", ("L",), "")),
        scratch=(("v", "v"), ("L", "v"), *_BASIS),
        places="loops",
        coupled=Coupled(("mass_matrix", "constraint_jacobian"), ("opening",), loops.least_rates, _BASIS),
    ),
    Quantity(
        "constrained_dynamics",
        ("q", "qd", "tau"),
        loops.forward_dynamics,
        (_QDD,),
        scratch=(("v", "v"), ("v",), ("v",), ("L", "v"), ("L", "v"), ("L",), *_BASIS),
        places="loops",
        coupled=Coupled(
            ("mass_matrix", "bias_force", "constraints"), ("qd", "tau"), loops.accelerations, (("L",), *_BASIS)
        ),
    ),
)
INTERNAL = {entry.name: entry for entry in _INTERNAL}

# What computes a quantity of a tree with loops, if the forces in these change it; None if it is not available there.
WITH_LOOPS = {"forward_dynamics": "constrained_dynamics", "inverse_dynamics": None, "operational_inertia": None}


def computed(quantity: str, loops: bool) -> str | None:
    """The quantity whose recursion gives a quantity of a tree; None if only ``physics.closure`` gives it."""
    return WITH_LOOPS.get(quantity, quantity) if loops else quantity


# What needs the inverse of M.
SOLVING = ("forward_dynamics", "operational_inertia")
