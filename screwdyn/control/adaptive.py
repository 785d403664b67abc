"""Control of an arm with loads that it does not know: their estimates stay bodies that can exist."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Self

import numpy as np

from screwdyn.backends.c import identifiers
from screwdyn.control.laws import _TAU, Arithmetic, PassivityControl, Reference, _Plan, number, since
from screwdyn.core import Array, ArrayLike, InertiaError, ScrewdynError, UnknownNameError, expressions
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.plausible import warn
from screwdyn.physics import Robot, State
from screwdyn.robots.identification import is_consistent, parameters_of, pseudo_inertia

# π = _DUAL P, (10, 16), of the 16 entries of P: with g of ten entries, S = g _DUAL is symmetric and tr(S dP) = g · dπ.
_DUAL = np.array([parameters_of(0.5 * (E + E.T)) for E in np.eye(16).reshape(16, 4, 4)]).T
# Largest relative change of an estimate in one step, so that a rate that is too high does not lead to infinity.
_LARGEST = 0.05


class _Estimate:
    """A body that is being learned: the root R of its pseudo-inertia P = R Rᵀ, and its ten parameters."""

    def __init__(self, root: Array, parameters: Array) -> None:
        self.root, self.parameters = root, parameters

    @classmethod
    def of(cls, parameters: Array) -> Self:
        """The estimate with some parameters."""
        return cls(np.asarray(np.linalg.cholesky(pseudo_inertia(parameters))), parameters)

    def move(self, slope: Array, step: float, masses: tuple[float, float], with_: Arithmetic) -> None:
        """R ← R − step P S R / 2, where the factor of R is regular as its change is small; then into the masses."""
        R = self.root
        W = R.T.dot(slope.dot(_DUAL).reshape(4, 4)).dot(R)  # of small matrices in half the time of @
        w, half = W.ravel(), 0.5 * step
        R = R - (half * _LARGEST / with_.clamped(half * with_.sqrt(w.dot(w)), _LARGEST, math.inf)) * R.dot(W)
        P = R.dot(R.T)
        ratio = with_.clamped(P[3, 3], *masses) / P[3, 3]
        if ratio != 1.0:
            R, P = R * with_.sqrt(ratio), P * ratio
        self.root, self.parameters = R, _DUAL.dot(P.ravel())


class AdaptiveControl(PassivityControl):
    """:class:`PassivityControl` that learns the inertias of some links while it follows the reference.

    τ = M q̈_r + C q̇_r + g − K s with the estimates π̂ in the place of what the tree has for these links. They follow
    Ṗ = −γ P S P, where P is the pseudo-inertia of π̂ and S the symmetric matrix with tr(S dP) = (Yᵀ s) · dπ (mirror
    descent of −log det P; Slotine and Li 1987; Lee, Kwon and Park 2018). A step multiplies a root of P, so that every
    estimate is a body that can exist. With an exact model of all else, the error of the motion vanishes.

    An estimate begins when the tree of a state first has its link, such as after a grasp, and ends with it; that of a
    link that has been attached again begins anew. Estimates
    rest while a torque is clipped, and while ``|s|`` is below ``still``, where noise alone would move them.

    Parameters
    ----------
    tree, reference, stiffness, damping
        As for :class:`PassivityControl`.
    links : sequence of str
        Their inertias are not known; a tree may not have them yet.
    start : Inertia, or mapping from link to Inertia, optional
        First estimates. What matters is their size: a centre of mass is found in some seconds within the body that is
        given. By default 1 kg in a cube of 0.5 m.
    rate : float
        γ, 1/(W s): 5 to 50 for loads of some kg.
    mass : (float, float)
        Bounds of the estimated masses, kg.
    still : float
        Weighted length √(sᵀ K s) of s, √W, below which estimates rest. Without it, strong noise of the rates carries
        estimates away, towards the border of the bodies that can exist.

    Raises
    ------
    InertiaError
        If a first estimate is no body with a positive definite pseudo-inertia inside the bounds of the mass.
    ScrewdynError
        If the rate or ``still`` is negative; in a call, if time goes backward.

    Warns
    -----
    ScrewdynWarning
        In a call, if the tree lacks a link but has a new one with a similar name.

    Attributes
    ----------
    estimates : mapping from link to Inertia
        Present estimates.
    """

    derivative = None  # type: ignore[assignment]  # estimates are a memory

    def __init__(
        self,
        tree: Robot,
        reference: Reference,
        links: Sequence[str],
        *,
        start: Inertia | Mapping[str, Inertia] | None = None,
        stiffness: ArrayLike = 10.0,
        damping: ArrayLike = 20.0,
        rate: float = 10.0,
        mass: tuple[float, float] = (1e-3, np.inf),
        still: float = 0.0,
    ) -> None:
        super().__init__(tree, reference, stiffness=stiffness, damping=damping)
        sequence = isinstance(links, Sequence) and not isinstance(links, str)
        if not sequence or not links or not all(isinstance(x, str) for x in links):
            raise ScrewdynError(f"links must be a sequence of one or more names; got {links!r}")
        masses = expressions.read_or_nan(mass)
        if masses.shape != (2,) or not 0 <= masses[0] < masses[1]:
            raise ScrewdynError(f"mass must be the least and the largest mass of a load, kg; got {mass!r}")
        self.links, self.masses = tuple(links), mass
        self._others = {*tree.links, *links}
        self.rate, self.still = number("rate", rate), number("still", still, finite=False)
        self._starts: dict[str, Array] = {}
        start = Inertia.box(1.0, (0.5, 0.5, 0.5)) if start is None else start
        for link in self.links:
            if isinstance(start, Mapping):
                UnknownNameError.check(link, start)
            body = start[link] if isinstance(start, Mapping) else start
            if not isinstance(body, Inertia):
                raise ScrewdynError(f"start must be an Inertia, or a mapping from link to Inertia; got {start!r}")
            if not is_consistent(body.parameters) or not mass[0] <= body.mass <= mass[1]:
                raise InertiaError(
                    f"the first estimate of {link!r} must be a body with volume and a mass between {mass[0]:g} and "
                    f"{mass[1]:g} kg, such as Inertia.box(1, (0.1, 0.1, 0.1)); got {body!r}"
                )
            self._starts[link] = body.parameters
        self._known: dict[str, _Estimate] = {}
        self._serials: dict[str, int] = {}  # of the attachments of the known links
        self._of_tree: dict[str, Array] = {}  # parameters that the present tree has for the links
        self._regressors: dict[str, Array] = {}
        self._last: float | None = None

    @property
    def estimates(self) -> dict[str, Inertia]:
        """Present estimates by link."""
        return {link: Inertia.from_parameters(x.parameters) for link, x in self._known.items()}

    def __call__(self, t: float, state: State) -> Array:
        """Torques of all freedoms of the state's tree, (nv,), N m or N; the estimates move by the time since the last.

        Call it once in each period: in simulations with ``control_period``.
        """
        period = since(self._last, t, state, "law")
        plan = self._planned(state)
        torque, slip, _ = self._passive(plan, t, state)
        tau = self._clipped(plan, torque)
        step, self._last = self.rate * period, t
        if step > 0 and not self.saturated and not self._is_still(slip[plan.driven], plan):
            for link, estimate in self._known.items():
                estimate.move(slip @ self._regressors[link], step, self.masses, self._arithmetic)
        return tau

    def _in_c(self, tree: Robot) -> Any:
        from screwdyn.control.in_c import request

        names = [f"root_of_{name}" for name in identifiers([x for x in self.links if x in tree.links])]
        return request(self, tree, (*self._given, "dt"), _TAU, *names)

    def _recorded(self, at: Any) -> list[Any]:
        from screwdyn.control.in_c import chosen, positive

        law = self._referred(at)
        plan = law._planned(at)
        law._known = {}
        names = [*law._of_tree]
        law._of_tree = {link: at.numbers(x) for link, x in law._of_tree.items()}
        for link, member in zip(names, identifiers(names), strict=True):
            kept = at.kept(f"root_of_{member}", 16).reshape(4, 4)
            # Without a mass it has just begun.
            root = chosen(positive(kept[3] @ kept[3]), kept, _Estimate.of(law._starts[link]).root)
            law._known[link] = _Estimate(root, _DUAL @ (root @ root.T).ravel())
        torque, slip, _ = law._passive(plan, np.nan, at)
        tau, s = law._clipped(plan, torque), slip[plan.driven]
        rests = positive((torque - tau) @ (torque - tau))
        if law.still > 0:
            rests = 1.0 - (1.0 - rests) * positive(law.damping[plan.of_reference] @ (s * s) - law.still**2)
        for link, estimate in law._known.items():
            slope = slip @ law._regressors[link]
            estimate.move(slope, law.rate * at.dt * (1.0 - rests), law.masses, law._arithmetic)
        return [tau * at.present, *(at.has(link) * x.root.ravel() for link, x in law._known.items())]

    def _is_still(self, s: Array, plan: _Plan) -> bool:
        """Whether √(sᵀ K s) of driven freedoms is below ``still``."""
        return self.still > 0 and bool(self.damping[plan.of_reference] @ s**2 <= self.still**2)

    def _plan_of(self, state: State) -> _Plan:
        plan = super()._plan_of(state)
        here = [link for link in self.links if link in plan.tree.links]
        for link in {*self.links}.difference(here):
            if near := get_close_matches(link, {*plan.tree.links} - self._others, 1):
                warn(f"the tree has no link {link!r}, whose inertia shall be learned, but {near[0]!r}")
        bodies = {link: plan.tree.link(link).inertia for link in here}
        self._of_tree = {link: np.zeros(10) if x is None else x.parameters for link, x in bodies.items()}
        serials, known = {link: state.topology.attachments[link].serial for link in here}, self._known
        same = {link for link in known.keys() & serials if serials[link] == self._serials[link]}
        self._known = {link: known[link] if link in same else _Estimate.of(self._starts[link]) for link in here}
        self._serials = serials
        return plan

    def _force(self, plan: _Plan, state: State, qd_ref: Array) -> Callable[[Array], Array]:
        """The same with the estimates instead of what the tree has; keeps the regressors of the last call."""
        tree, q, qd = plan.tree, state.q, state.qd

        def force(qdd_ref: Array) -> Array:
            tau = tree.reference_dynamics(q, qd, qd_ref, qdd_ref)
            for link, estimate in self._known.items():
                Y = self._regressors[link] = tree.reference_regressor(link, q, qd, qd_ref, qdd_ref)
                tau = tau + Y @ (estimate.parameters - self._of_tree[link])
            return tau

        return force
