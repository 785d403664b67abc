"""The catalogue of quantities: everything that can be computed of a robot and its state.

Each quantity stands here once, as a method of :class:`Quantities` with its signature and docstring, entered with its
recursion, the shape and unit of its results, and whether base parameters may be used for it. The default kernels, the
tape, compiled code, closed forms, C source, hand-over, derivatives and operation counts all read :data:`CATALOGUE`.
"""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, ParamSpec, TypeVar

from screwdyn.core.types import Array, ArrayLike
from screwdyn.physics.contribution import Contribution
from screwdyn.physics.recursions import contributions, joint_space, links, operational, whole_tree

__all__ = ["CATALOGUE", "INTERNAL", "LARGEST", "Dimension", "Frame", "Quantities", "Quantity", "Result"]

Frame = Literal["com", "body", "base", "mixed"]
# Numbers of a state beyond this are refused: products of five of them would overflow.
LARGEST = 1e60
# "v" freedoms, "q" positions, "L" links, "k" freedoms on the path to a link, "6v" and "vv" products; or a number.
Dimension = str | int
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Result:
    """One array that a quantity gives.

    Attributes
    ----------
    name : str
        The symbol of docs/mathematics.md, as an identifier.
    shape : tuple of Dimension
    unit : str
        Of the entries, in radians and metres.
    rate_of : str or None
        The result of the same quantity whose rate entry by entry this one is, over the coordinates in its columns:
        with the chart of a group joint, (its) D(ν) is added (docs/mathematics.md §7).
    acceleration : bool
        Whether it is an acceleration of the coordinates, from which the chart's own is subtracted.
    hidden : bool
        Whether it is only computed on the way and not given.
    flat : bool
        Whether the recursion writes it as one line of numbers.
    """

    name: str
    shape: tuple[Dimension, ...]
    unit: str
    rate_of: str | None = None
    acceleration: bool = False
    hidden: bool = False
    flat: bool = False


@dataclass(frozen=True)
class Quantity:
    """An entry of the catalogue.

    Attributes
    ----------
    name : str
    arguments : tuple of str
        Arrays of the state that it is a function of, in order: of "q", "qd", "qdd" and "tau".
    at_rest : tuple of str
        Arrays that the recursion takes and that are zero here: "qdd" of a bias force.
    parameters : tuple of str
        "link", and "frame".
    results : tuple of Result
    scratch : tuple of shapes
        Arrays of scratch space that the recursion takes besides its workspace.
    recursion : callable
        ``(table, *arguments, *at_rest, [places], *scratch, work, *results)``; see ``recursions``.
    base_parameters : bool
        Whether it is the same function of base inertial parameters (``base_parameters``), which have another mass.
    wrenches : "result", "tau" or None
        Where external wrenches on links enter: subtracted from the result, or added to τ.
    links : "one", "subtree", "all" or None
        Whose places the recursion takes: the link's, those of the link and all beyond it, those of all links.
    signature : inspect.Signature
    doc : str
    """

    name: str
    arguments: tuple[str, ...]
    at_rest: tuple[str, ...]
    parameters: tuple[str, ...]
    results: tuple[Result, ...]
    scratch: tuple[tuple[Dimension, ...], ...]
    recursion: Callable[..., int | None]
    base_parameters: bool
    wrenches: Literal["result", "tau"] | None
    links: Literal["one", "subtree", "all"] | None
    signature: inspect.Signature
    doc: str

    @property
    def given(self) -> tuple[Result, ...]:
        """Results that are not hidden."""
        return tuple(result for result in self.results if not result.hidden)

    @property
    def summary(self) -> str:
        """First paragraph of the docstring, as one line."""
        return " ".join(self.doc.split("\n\n")[0].split())


CATALOGUE: dict[str, Quantity] = {}
_STATE = ("q", "qd", "qdd", "tau")


def quantity(
    recursion: Callable[..., int | None],
    *results: Result,
    base_parameters: bool = False,
    at_rest: tuple[str, ...] = (),
    scratch: tuple[tuple[Dimension, ...], ...] = (),
    wrenches: Literal["result", "tau"] | None = None,
    links: Literal["one", "subtree", "all"] = "one",
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Enter a declaration in the catalogue; the method asks the face that it is a method of."""

    def enter(declaration: Callable[P, R]) -> Callable[P, R]:
        name, signature = declaration.__name__, inspect.signature(declaration)
        names = tuple(signature.parameters)[1:]
        CATALOGUE[name] = entry = Quantity(
            name=name,
            arguments=tuple(x for x in names if x in _STATE),
            at_rest=at_rest,
            parameters=tuple(x for x in names if x in ("link", "frame")),
            results=results,
            scratch=scratch,
            recursion=recursion,
            base_parameters=base_parameters,
            wrenches=wrenches,
            links=links if "link" in names or links == "all" else None,
            signature=signature,
            doc=inspect.getdoc(declaration) or "",
        )

        @functools.wraps(declaration)
        def ask(*args: P.args, **kwargs: P.kwargs) -> R:
            face: Any = args[0]
            result: R = face._evaluate(entry, *args[1:], **kwargs)
            return result

        return ask

    return enter


_M = Result("M", ("v", "v"), "kg m^2, kg m or kg")
_C = Result("C", ("v", "v"), "N m s, N s, ...", rate_of="M")
_G = Result("g", ("v",), "N m or N")
_TAU = Result("tau", ("v",), "N m or N")
_J = Result("J", (6, "v"), "1 or m, and 1/m or 1")
_POINT = "m"


class Quantities(ABC):
    """Rigid-body kinematics and dynamics of a tree, τ = M(q) q̈ + C(q, q̇) q̇ + g(q).

    Shapes throughout: ``q`` is (…, nq), one entry for each of ``positions``; ``qd``, ``qdd`` and ``tau`` are (…, nv),
    one entry for each of ``coordinates``; leading axes are batches and broadcast. SI units, radians. For joints of
    several freedoms ``qd`` holds quasi-velocities ν and ``qdd`` their rates (docs/mathematics.md §7).

    Every function raises :class:`ShapeError` for an array of the wrong shape, with an entry that is not finite or
    beyond 1e60, or with a quaternion that is not of length 1 to 1e-3; and :class:`UnknownNameError` for a link that is
    not in the tree. Damping, friction and springs of joints are not part of the rigid-body equation: see
    ``joint_force``.
    """

    @abstractmethod
    def _evaluate(self, entry: Quantity, *args: Any, **kwargs: Any) -> Any:
        """The results of a quantity for given arguments."""

    # Dynamics

    @quantity(joint_space.mass_matrix, _M, base_parameters=True)
    def mass_matrix(self, q: ArrayLike) -> Array:
        """Mass matrix M(q), (…, nv, nv), symmetric.

        M = Σ_i J_iᵀ M̄_i J_i (docs/mathematics.md §2, Laus Eq. 21), by composite inertias (§4). Cost O(Σ depth).
        """

    @quantity(joint_space.mass_and_coriolis, Result("M", ("v", "v"), _M.unit, hidden=True), _C, base_parameters=True)
    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Coriolis matrix C(q, q̇), (…, nv, nv), of the Christoffel symbols of M (Laus Eq. 35).

        C = Σ_i J_iᵀ (M̄_i J̇_i + B_i J_i) (docs/mathematics.md §2), so that Ṁ = C + Cᵀ; nothing is differentiated. With
        quasi-velocities it is the Levi-Civita connection: C(ν) b = M ∇_ν b (§7).
        """

    @quantity(joint_space.mass_and_coriolis, _M, _C, base_parameters=True)
    def mass_and_coriolis(self, q: ArrayLike, qd: ArrayLike) -> tuple[Array, Array]:
        """M(q) and C(q, q̇), each (…, nv, nv), at hardly more than the price of C."""

    @quantity(joint_space.dynamics, _M, _C, _G, base_parameters=True)
    def dynamics(self, q: ArrayLike, qd: ArrayLike) -> tuple[Array, Array, Array]:
        """M(q), C(q, q̇) and g(q) in one call, (…, nv, nv), (…, nv, nv) and (…, nv)."""

    @quantity(joint_space.gravity_vector, _G, base_parameters=True)
    def gravity_vector(self, q: ArrayLike) -> Array:
        """Forces of the joints g(q) = ∂U/∂q that hold the robot still, (…, nv), N m or N (Laus Eq. 36)."""

    @quantity(joint_space.inverse_dynamics, Result("bias", ("v",), _TAU.unit), base_parameters=True, at_rest=("qdd",))
    def bias_force(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """C(q, q̇) q̇ + g(q), (…, nv): the joint forces of a motion without acceleration."""

    @quantity(joint_space.velocity_forces, Result("c", ("v",), _TAU.unit), base_parameters=True, at_rest=("qdd",))
    def velocity_product(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """C(q, q̇) q̇, (…, nv): Coriolis and centrifugal forces of the joints."""

    @quantity(joint_space.inverse_dynamics, _TAU, base_parameters=True, wrenches="result")
    def inverse_dynamics(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrenches: Mapping[str, ArrayLike] | None = None
    ) -> Array:
        """Joint forces of a motion, τ = M q̈ + C q̇ + g − Σ J_iᵀ F_i, (…, nv), by recursive Newton-Euler. Cost O(nv).

        Parameters
        ----------
        q : (…, nq)
        qd, qdd : (…, nv)
        wrenches : mapping from link name to (…, 6), optional
            External wrench [n; f] on each link, about the origin of the link's frame and in its axes; N m and N.
        """

    @quantity(
        joint_space.forward_dynamics,
        Result("qdd", ("v",), "rad/s^2 or m/s^2", acceleration=True),
        base_parameters=True,
        wrenches="tau",
    )
    def forward_dynamics(
        self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, wrenches: Mapping[str, ArrayLike] | None = None
    ) -> Array:
        """Accelerations q̈ = M⁻¹ (τ + Σ J_iᵀ F_i − C q̇ − g), (…, nv), by articulated bodies. Cost O(nv).

        Parameters as :meth:`inverse_dynamics`.

        Raises
        ------
        SingularAttachmentError
            If a joint carries no inertia along its screw, so that M is singular; the message names it and says what
            was compared: what the joint feels, and what it carries (docs/mathematics.md §4).
        """

    # Poses, twists and Jacobians of links

    @quantity(links.forward_kinematics, Result("T", (4, 4), "1 and m"))
    def forward_kinematics(self, link: str, q: ArrayLike) -> Array:
        """Pose of a link's frame in the base frame, (…, 4, 4)."""

    @quantity(links.link_poses, Result("T", ("L", 4, 4), "1 and m"), links="all")
    def link_poses(self, q: ArrayLike) -> Array:
        """Poses of all links in the base frame, (…, number of links, 4, 4), in the order of ``links``."""

    @quantity(links.jacobian, _J)
    def jacobian(self, link: str, q: ArrayLike, frame: Frame = "com") -> Array:
        """Twist Jacobian of a link, at its centre of mass unless ``frame`` says otherwise: [ω; v] = J q̇, (…, 6, nv).

        Parameters
        ----------
        link : str
        q : (…, nq)
        frame : "com", "body", "base" or "mixed"
            Where the twist is taken and in which axes: at the centre of mass in link axes (Laus's J^C), at the link's
            origin in link axes, at the base's origin in base axes (Laus's J⁰), or at the link's origin in base axes.
            Also under the names that other libraries use: "local" (body), "world" (base), "local_world_aligned"
            (mixed), in any case.

        Raises
        ------
        ShapeError
            For an unknown frame; and as everywhere.
        """

    @quantity(
        links.jacobian_dot,
        Result("J", (6, "v"), _J.unit, hidden=True),
        Result("J_dot", (6, "v"), "1/s, ...", rate_of="J"),
    )
    def jacobian_dot(self, link: str, q: ArrayLike, qd: ArrayLike, frame: Frame = "com") -> Array:
        """Entry-by-entry time derivative of :meth:`jacobian`, (…, 6, nv)."""

    @quantity(links.twist_of_link, Result("V", (6,), "rad/s and m/s"))
    def link_twist(self, link: str, q: ArrayLike, qd: ArrayLike, frame: Frame = "com") -> Array:
        """Twist [ω; v] = J q̇ of a link, (…, 6); frames as for :meth:`jacobian`."""

    @quantity(links.acceleration_of_link, Result("A", (6,), "rad/s^2 and m/s^2"))
    def link_acceleration(self, link: str, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, frame: Frame = "com") -> Array:
        """Time derivative J q̈ + J̇ q̇ of :meth:`link_twist`, entry by entry, (…, 6).

        In the frame "mixed" its lower half is the acceleration of the link's origin; in "com" and "body" the frame
        turns with the link, and ω × v must be added to that half.
        """

    # Centre of mass, momentum, energy

    @quantity(whole_tree.center_of_mass, Result("c", (3,), _POINT))
    def center_of_mass(self, q: ArrayLike) -> Array:
        """Centre of mass of the whole tree, its base included, in the base frame: c = Σ m_i c_i / Σ m_i, (…, 3), m.

        Raises
        ------
        InertiaError
            If the tree has no mass; and so for all quantities of the centre of mass.
        """

    @quantity(whole_tree.center_of_mass_velocity, Result("c_dot", (3,), "m/s"))
    def center_of_mass_velocity(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Velocity ċ of the centre of mass, (…, 3), base axes, m/s."""

    @quantity(whole_tree.center_of_mass_jacobian, Result("J", (3, "v"), "m or 1"))
    def center_of_mass_jacobian(self, q: ArrayLike) -> Array:
        """Jacobian of the centre of mass, ċ = J q̇, (…, 3, nv), base axes."""

    @quantity(whole_tree.center_of_mass_acceleration, Result("a", (3,), "m/s^2"), at_rest=("qdd",))
    def center_of_mass_bias_acceleration(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Acceleration J̇ q̇ of the centre of mass while q̈ = 0, (…, 3), base axes, m/s²."""

    @quantity(whole_tree.centroidal_momentum, Result("h", (6,), "N m s and N s"))
    def centroidal_momentum(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Spatial momentum [L; P] of the whole tree about its centre of mass, base axes, (…, 6): h = A q̇."""

    @quantity(whole_tree.centroidal_momentum_matrix, Result("A", (6, "v"), "kg m^2, kg m or kg"))
    def centroidal_momentum_matrix(self, q: ArrayLike) -> Array:
        """Matrix A(q) of the centroidal momentum h = A q̇, (…, 6, nv), base axes (docs/mathematics.md §11)."""

    @quantity(
        whole_tree.centroidal_momentum_matrix_dot,
        Result("A", (6, "v"), "kg m^2, kg m or kg", hidden=True),
        Result("A_dot", (6, "v"), "N m s, ...", rate_of="A"),
    )
    def centroidal_momentum_matrix_dot(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Entry-by-entry time derivative of :meth:`centroidal_momentum_matrix`, (…, 6, nv)."""

    @quantity(whole_tree.centroidal_momentum_rate, Result("h_dot", (6,), "N m and N"))
    def centroidal_momentum_rate(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
        """Rate ḣ = A q̈ + Ȧ q̇ of the centroidal momentum, (…, 6): the wrench that gives the tree its motion."""

    @quantity(whole_tree.spatial_momentum, Result("h", (6,), "N m s and N s"))
    def momentum(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Spatial momentum [L; P] of the whole tree about the base's origin, base axes, (…, 6), N m s and N s."""

    @quantity(whole_tree.kinetic_energy, Result("T", (), "J"))
    def kinetic_energy(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """½ Σ V_iᵀ I_i V_i = ½ q̇ᵀ M q̇, (…), J."""

    @quantity(whole_tree.potential_energy, Result("U", (), "J"))
    def potential_energy(self, q: ArrayLike) -> Array:
        """U(q) = −Σ m_i g₀ᵀ p_i, (…), J: zero for a mass at the base's origin. Springs of joints are not in it."""

    # One link

    @quantity(
        contributions.contributions,
        Result("J", (6, "k"), _J.unit, flat=True),
        Result("J_dot", (6, "k"), "1/s, ...", flat=True),
        Result("M", ("k", "k"), _M.unit, flat=True),
        Result("C", ("k", "k"), _C.unit, flat=True),
        Result("g", ("k",), _G.unit, flat=True),
        scratch=((2, "v", "6v"),),
    )
    def contribution(self, link: str, q: ArrayLike, qd: ArrayLike) -> Contribution:
        """What one link contributes: J_i, J̇_i, M_i, C_i, g_i over the freedoms on its path (docs/mathematics.md §2).

        Parameters
        ----------
        link : str
        q, qd : (…, nq), (…, nv)
            Of the whole tree.
        """

    @quantity(
        contributions.subtree_contribution,
        Result("J", (6, "v"), _J.unit),
        Result("J_dot", (6, "v"), "1/s, ..."),
        Result("M", ("v", "v"), _M.unit),
        Result("C", ("v", "v"), _C.unit),
        Result("g", ("v",), _G.unit),
        scratch=((2, "v", "6v"), ("6v",), ("6v",), ("vv",), ("vv",), ("v",)),
        links="subtree",
    )
    def subtree_contribution(self, link: str, q: ArrayLike, qd: ArrayLike) -> Contribution:
        """What a link and all that hangs on it contribute: the padded sum of their M, C and g, and J, J̇ of the link.

        Its coordinates are those on the path to the link, and those beyond. Parameters as :meth:`contribution`.
        """

    @quantity(
        operational.operational_inertia,
        Result("Lambda", (6, 6), "kg m^2, kg m and kg"),
        base_parameters=True,
        scratch=(("v", "v"), (6, "v")),
    )
    def operational_inertia(self, link: str, q: ArrayLike, frame: Frame = "com") -> Array:
        """Operational-space inertia of a link, Λ = (J M⁻¹ Jᵀ)⁻¹, (…, 6, 6); frames as for :meth:`jacobian`.

        Raises
        ------
        SingularAttachmentError
            If the link cannot move in all six directions there, so that J M⁻¹ Jᵀ has no inverse; or as
            :meth:`forward_dynamics`.
        """


INTERNAL = {
    # Forces of wrenches on the rows, (…, nv, 6), each in its row's frame: what ``wrench_torque`` calls.
    "wrench_torque": Quantity(
        name="wrench_torque",
        arguments=("q", "wrenches"),
        at_rest=(),
        parameters=(),
        results=(_TAU,),
        scratch=(),
        recursion=joint_space.wrench_torque,
        base_parameters=False,
        wrenches=None,
        links=None,
        signature=inspect.Signature(),
        doc="",
    )
}
