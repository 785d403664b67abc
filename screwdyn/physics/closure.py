"""How far the loops of a tree are from being closed, and the nearest states in which they are closed.

docs/mathematics.md §12. All functions of a state also take batches.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from math import degrees

import numpy as np
import numpy.typing as npt

from screwdyn.core import Array, ArrayLike, LoopError, ShapeError, SingularAttachmentError, expressions
from screwdyn.mechanism import Joint, Loop
from screwdyn.physics.quantities import Frame, Quantities
from screwdyn.physics.recursions.loops import KEPT_ANYWAY, REDUNDANT
from screwdyn.physics.recursions.whole_tree import invert
from screwdyn.screws.screw import inverse_of
from screwdyn.screws.screw_system import NEAREST, nearest_element, projection, whole_turns

Indices = npt.NDArray[np.intp]

# Gap, m and rad, and rate of a gap, m/s and rad/s, that counts as rounding of the numbers given.
TOLERANCE = 1e-6
# Gap from which a Newton step leaves rounding; Newton steps of a projection.
_NEAR, _STEPS = 1e-7, 4
# Gap, m and rad, of assembled loops; Newton steps from anywhere; largest change of a coordinate in one, rad and m.
_CLOSED, _MOST_STEPS, _LARGEST_STEP = 1e-13, 100, 0.5
# Largest ratio of the weights of gaps in such a step.
_MAGNIFIED = 10.0
# Gap, m and rad, that is mentioned.
MENTIONED = 1e-10
# Share of a singular value in another configuration up to which one is close to zero.
_CLOSER = 0.1
# Of the largest weight that a motion could have: forces below this share count as large as it, because rounding of the
# weight is all that acts along a mechanism that lies flat.
SLIGHT = 1e-2
# Singular values of the motors' forces, relative to the largest, that are rounding.
_WEAKEST = 1e-10
# Of accelerations that open a loop and of forces that motors cannot give, relative to the largest term; of the
# accelerations at least relative to 1 rad/s² or m/s².
_ROUNDING = 1e-8
# Share of the rates at which loops open that an impact may leave: what is dependent up to rounding.
_LEFT_OPEN = 1e-3


class Factors:
    """M = L Lᵀ and L⁻¹ J_cᵀ D = U s Vᵀ of one state, cut at its rank: redundant constraints drop out here.

    The diagonal D weighs the constraints alike, those of heavy links and of light ones. M is (n, n), J_c (m, n), and
    the singular values s that are not redundant are (rank,), from large to small.
    """

    def __init__(self, M: Array, J: Array) -> None:
        try:
            self.L = np.linalg.cholesky(M)
        except np.linalg.LinAlgError:
            raise SingularAttachmentError(
                "a joint feels no inertia, so the forces in the loops are undetermined; give its links a mass"
            ) from None
        columns = self.lower(significant(J).T)
        self.D = weights(columns.T)
        U, sizes, Vt = np.linalg.svd(columns * self.D, full_matrices=False)
        self.rank = int(np.count_nonzero(sizes > REDUNDANT * sizes.max(initial=0.0)))
        self.U, self.sizes, self.V = U[:, : self.rank], sizes[: self.rank], Vt[: self.rank].T

    def lower(self, x: Array) -> Array:
        """L⁻¹ x for columns x."""
        return np.asarray(np.linalg.solve(self.L, x))

    def least(self, residual: Array) -> Array:
        """The x that is least in the metric of M with J_c x = residual, or as near to it as can be, (n,)."""
        # The whole of D would magnify the residuals of constraints that hardly depend on x.
        weight = np.minimum(self.D, _MAGNIFIED * self.D.min(initial=np.inf))
        along = np.linalg.lstsq((weight / self.D)[:, None] * self.V, weight * residual)[0] / self.sizes
        return np.asarray(np.linalg.solve(self.L.T, self.U @ along))

    def multipliers(self, z: Array) -> Array:
        """A λ with L⁻¹ J_cᵀ λ = z for a z that constraints cause, (m,)."""
        return np.asarray(self.D * (self.V @ (self.U.T @ z / self.sizes)))

    def undetermined(self) -> Array:
        """An orthonormal basis, (m, m − rank), of the λ with J_cᵀ λ = 0."""
        across = np.linalg.svd(self.V, full_matrices=True)[0][:, self.rank :]
        return np.linalg.qr(self.D[:, None] * across)[0]

    def motions(self) -> Array:
        """A basis Z of the rates that the loops allow, (n, n − rank), orthonormal in the metric of M."""
        across = np.linalg.svd(self.U, full_matrices=True)[0][:, self.rank :]
        return np.asarray(np.linalg.solve(self.L.T, across))

    def motor_forces(self, force: Array, active: npt.NDArray[np.bool_], wanted: Array | None = None) -> Array:
        """The τ of active freedoms with Zᵀ τ = Zᵀ force, (n,), that is nearest to a wanted one."""
        Z, tau = self.motions(), np.where(active, 0.0 if wanted is None else wanted, 0.0)
        U, sizes, Vt = np.linalg.svd(Z.T[:, active], full_matrices=False)
        kept = sizes > _WEAKEST * sizes.max(initial=0.0)
        tau[active] += Vt[kept].T @ (U[:, kept].T @ (Z.T @ (force - tau)) / sizes[kept])
        return tau

    def missing(self, force: Array, tau: Array, weight: float) -> float:
        """The largest |Zᵀ (force − τ)| relative to the terms of Zᵀ force, with the bound of weights."""
        Z = self.motions()
        terms = max(_largest(np.abs(Z.T) @ np.abs(force)), SLIGHT * weight)
        return _largest(Z.T @ (force - tau)) / terms if terms else 0.0


def weights(rows: Array) -> Array:
    """One over the length of each row, (…, m); 1 for a row of zeros."""
    lengths = np.linalg.norm(rows, axis=-1)
    return np.asarray(1 / np.where(lengths > 0, lengths, 1.0))


def significant(J: Array) -> Array:
    """J_c, (…, m, n), with zeros in the rows that are rounding: constraints that the tree keeps by itself."""
    return np.where(np.linalg.norm(J, axis=-1, keepdims=True) < KEPT_ANYWAY, 0.0, J)


class Closure:
    """The loops of the model of a tree, or of what else has its quantities; there may be none.

    The methods with the names of quantities give those that loops change, and that no recursion gives; their
    ``wrenches`` are joint forces (docs/mathematics.md §12).
    """

    def __init__(self, of: Quantities) -> None:
        self.of, self.model = of, of.model
        self.loops = tuple(self.model.topology.loops.values())

    @functools.cached_property
    def wrenches(self) -> list[Array]:
        """N of every loop, (6, m_l)."""
        return [_numbers(loop.wrenches, loop) for loop in self.loops]

    @functools.cached_property
    def _poses(self) -> tuple[Indices, Indices, Array, list[Array], Array]:
        """Of every loop: the places of its two links among all, home⁻¹, the screws of its joint, and their span."""
        at = {name: k for k, name in enumerate(self.model.placements)}
        links, others = np.array([(at[x.link], at[x.to]) for x in self.loops], dtype=np.intp).T
        inward = np.array([inverse_of(_numbers(loop.home, loop)) for loop in self.loops])
        screws = [_numbers(loop.joint.screws, loop) for loop in self.loops]
        return links, others, inward, screws, np.array([_span(loop.joint) for loop in self.loops])

    def own(self) -> Iterator[tuple[Loop, Array, slice]]:
        """Each loop with its N and its rows of J_c."""
        at = 0
        for loop, N in zip(self.loops, self.wrenches, strict=True):
            yield loop, N, slice(at, at + N.shape[1])
            at += N.shape[1]

    def remainders(self, q: Array, most: int = NEAREST) -> Array:
        """log(g⁻¹ home⁻¹ T) of every loop, (…, loops, 6), with the g that is found in so many steps."""
        poses, (links, others, inward, screws, spans) = self.of.link_poses(q), self._poses
        T = inward @ inverse_of(poses[..., others, :, :]) @ poses[..., links, :, :]
        for k, S in enumerate(screws):
            turns = whole_turns(S, T[..., k, :, :])
            if turns.any():  # they shift a helical joint along its axis
                w, v = S[:3, 0], S[3:, 0]
                T[..., k, :3, 3] -= turns[..., None] * (w @ v / (w @ w)) * w
        return nearest_element(spans, T, most)[1]

    def gap(self, q: Array, most: int = NEAREST) -> Array:
        """φ = Nᵀ log(g⁻¹ home⁻¹ T) of all loops, (…, m); m and rad."""
        found = self.remainders(q, most) if self.loops else np.zeros((*q.shape[:-1], 0, 6))
        parts = [found[..., k, :] @ N for k, N in enumerate(self.wrenches)]
        return np.concatenate([np.zeros((*q.shape[:-1], 0)), *parts], axis=-1)

    def factors(self, q: Array, free: Indices | None = None, flat: bool = False) -> Factors:
        """The factors in a configuration, of the freedoms that are free; with M = 1 if ``flat``."""
        J = self.of.constraint_jacobian(q)
        M = np.eye(self.model.nv) if flat else self.of.mass_matrix(q)
        return Factors(M, J) if free is None else Factors(M[np.ix_(free, free)], J[:, free])

    def step(self, q: Array, residual: Array, free: Indices, flat: bool = False) -> Array:
        """The x of the free freedoms that is least in the metric of M, or of 1 if ``flat``, with J_c x = residual."""
        x = np.zeros(self.model.nv)
        x[free] = self.factors(q, free, flat).least(residual)
        return x

    def assembled(self, q: Array, free: Indices, flat: bool = False, steps: int = _MOST_STEPS) -> tuple[Array, float]:
        """Where Newton steps of the free freedoms end, as :meth:`step` makes them, and the gap before the last one."""
        for _ in range(steps):
            phi = self.gap(q, 1)
            left = _largest(phi)
            if left <= _CLOSED:
                break
            x = self.step(q, phi, free, flat)
            q = self.model.configurations.integrate(q, -x * min(1.0, _LARGEST_STEP / max(_largest(x), 1e-300)))
        return q, left

    def closed(self, q: Array) -> Array:
        """The nearest configuration in which nearly closed loops are closed; one Newton step is the rule."""
        if not self.loops:
            return q
        for _ in range(_STEPS):
            phi = self.gap(q, 1)
            q = self.model.configurations.integrate(q, -self.of._closing(q, phi)[0])
            if _largest(phi) <= _NEAR:
                break
        else:
            if _largest(self.gap(q)) > TOLERANCE:
                raise LoopError(f"the loops do not stay closed: {self.described(q)}")
        return q

    def project(self, q: Array, qd: Array) -> tuple[Array, Array]:
        """The state nearest to one whose loops are nearly closed; see :meth:`closed`."""
        if not self.loops:
            return q, qd
        q = self.closed(q)
        return q, qd - self.of._closing(q, self.opening(q, qd))[0]

    def opening(self, q: Array, qd: Array) -> Array:
        """J_c q̇, the rates at which the loops open, (…, m); m/s and rad/s."""
        return np.asarray((self.of.constraint_jacobian(q) @ qd[..., None])[..., 0])

    def impact(self, q: Array, qd: Array) -> tuple[Array, Array]:
        """The rates that loops which close take, and the impulses Λ of their constraints.

        Of all rates that the loops allow, the others are nearest in the metric of M; of all impulses that rigid bodies
        allow, Λ are those of least ΛᵀΛ. LoopError if the loops would open all the same, because constraints on links of
        very different inertias cannot be told apart.
        """
        opening = self.opening(q, qd)
        taken, impulses = self.of._closing(q, opening)
        left = _largest(self.opening(q, qd - taken))
        if left > max(TOLERANCE, _LEFT_OPEN * _largest(opening)):
            raise LoopError(
                f"the rates after it would open the loops {', '.join(repr(loop.name) for loop in self.loops)} at up to "
                f"{left:.3g} rad/s or m/s: their links have inertias too different for the constraints to be told "
                f"apart; give the lightest ones more, or the heaviest ones less"
            )
        return taken, -impulses

    def multipliers(self, q: Array, qd: Array, tau: Array) -> tuple[Array, Array]:
        """λ in one state, (m,), of least λᵀλ, and a basis of what can be added to it, (m, …)."""
        free = self.of.impulse_response(q, tau - self.of.bias_force(q, qd))
        opening = self.opening(q, free) + self.of.constraint_jacobian_dot(q, qd) @ qd
        return self.of._closing(q, -opening)[1], self.factors(q).undetermined()

    def inverse_dynamics(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrenches: Array | None = None, wanted: Array | None = None
    ) -> Array:
        """τ of the active freedoms, (…, nv), nearest to that for wanted multipliers λ, or of least norm."""
        arrays, _ = self.model.arrays({"q": q, "qd": qd, "qdd": qdd})
        each = np.vectorize(functools.partial(self._torques, wanted), otypes=[float], signature="(p),(v),(v),(v)->(v)")
        return np.asarray(each(*arrays, np.zeros(self.model.nv) if wrenches is None else wrenches))

    def _torques(self, multipliers: Array | None, q: Array, qd: Array, qdd: Array, external: Array) -> Array:
        """τ of one state, from Zᵀ B u = Zᵀ (M q̈ + C q̇ + g − Σ J_iᵀ F_i) with J_c Z = 0."""
        model, of, J = self.model, self.of, self.of.constraint_jacobian(q)
        turning = of.constraint_jacobian_dot(q, qd) @ qd
        opening, terms = J @ qdd + turning, np.concatenate([np.abs(J) @ np.abs(qdd), np.abs(turning)])
        if np.any(np.abs(opening) > _ROUNDING * terms.max(initial=1.0)):
            raise LoopError(
                f"these accelerations open {', '.join(map(repr, model.topology.loops))}: J_c q̈ + J̇_c q̇ has an entry "
                f"of {np.abs(opening).max():.3g}; with found = reduced(q, qd), q̈ = Z ÿ + Ż ẏ keeps the loops closed"
            )
        force = of.bias_force(q, qd) + of.mass_matrix(q) @ qdd - external
        factors, active = self.factors(q), ~np.array(model.passive, dtype=bool)
        tau = factors.motor_forces(force, active, None if multipliers is None else force - J.T @ multipliers)
        if factors.missing(force, tau, model.weight_bound) > _ROUNDING:
            motors, others = (
                ", ".join(repr(model.coordinates[k]) for k in np.flatnonzero(which)) or "none"
                for which in (active, ~active)
            )
            raise LoopError(
                f"the motors ({motors}) cannot give these accelerations: the passive joints {others} move otherwise; "
                f"take the accelerations of forward_dynamics, or make a joint active"
            )
        return tau

    def operational_inertia(self, link: str, q: ArrayLike, frame: Frame) -> Array:
        """Λ = (J Z Zᵀ Jᵀ)⁻¹, (…, 6, 6), with the motions Z that the loops allow, Zᵀ M Z = 1."""
        (q,), batch = self.model.flat(q=q)
        inverse = np.empty((*batch, 6, 6))
        for found, x in zip(inverse.reshape(-1, 6, 6), q.reshape(-1, self.model.nq), strict=True):
            motions = np.asarray(self.of.jacobian(link, x, frame)) @ self.factors(x).motions()
            found[...] = motions @ motions.T
            if status := invert(found):
                raise self.model.undetermined(status, link) or ShapeError("results would overflow")
        return inverse

    def dependent(self, q: Array, others: Sequence[Array]) -> list[str]:
        """Loops of which fewer constraints are clearly independent at q than in other configurations, by name.

        First those whose own constraints are; else those without which the constraints of all are as independent.
        """
        columns = [self.factors(x).lower(significant(self.of.constraint_jacobian(x)).T) for x in (q, *others)]

        def fewer(rows: Sequence[int]) -> int:
            at, *aside = (np.linalg.svd(x[:, rows], compute_uv=False) for x in columns)
            clear = np.max(aside, axis=0)
            return int(np.count_nonzero((at < _CLOSER * clear) & (clear > REDUNDANT * clear.max(initial=0.0))))

        everything = range(columns[0].shape[1])
        rows = {loop.name: everything[own] for loop, _, own in self.own()}
        alone = [name for name, own in rows.items() if fewer(own) > 0]
        if alone:
            return alone
        together = fewer(everything)
        return [name for name, own in rows.items() if fewer([k for k in everything if k not in own]) < together]

    def check(self, q: Array, advice: str = "tree.assemble(q) closes the loops of a configuration") -> None:
        """Raise LoopError unless the loops are closed in a configuration but for rounding."""
        if self.loops and _largest(self.gap(q, 1)) > TOLERANCE:
            raise LoopError(f"{self.described(q)}; {advice}")

    def check_moving(
        self,
        q: Array,
        qd: Array,
        advice: str = "tree.project(q, qd) removes that, and tree.close(…, state=) closes a loop in motion",
    ) -> None:
        """Raise LoopError unless the loops are closed in a state, and stay closed, but for rounding."""
        self.check(q, "tree.project(q, qd) closes the loops of a state")
        opening = _largest(self.opening(q, qd)) if self.loops else 0.0
        if opening > TOLERANCE * (1 + _largest(qd)):
            raise LoopError(f"the rates open the loops at up to {opening:.3g} rad/s or m/s; {advice}")

    def described(self, q: Array) -> str:
        """The gap of each loop that is open, with its size and direction."""
        parts = []
        for loop, found in zip(self.loops, self.remainders(q), strict=True):
            w, v = np.split(found, 2)
            slide = f"{1e3 * np.linalg.norm(v):.3g} mm along {_direction(v)}" if _largest(v) > MENTIONED else ""
            turn = f"{degrees(np.linalg.norm(w)):.3g}° about {_direction(w)}" if _largest(w) > MENTIONED else ""
            if slide or turn:
                size = " and ".join(filter(None, (slide, turn)))
                parts.append(f"loop {loop.name!r} is open by {size} of {loop.link!r}")
        return "; ".join(parts) or "no loop is open"


# Found once for each joint, of which loops are closed and opened many times.
@functools.lru_cache(maxsize=256)
def _span(joint: Joint) -> Array:
    """The projection of twists on the motions of a joint, (6, 6)."""
    return projection(expressions.floats(joint.screws, "the joint of a loop"))


def _numbers(values: Array, loop: Loop) -> Array:
    return expressions.floats(values, f"loop {loop.name!r}")


def _largest(A: Array) -> float:
    return float(np.abs(A).max(initial=0.0))


def _direction(v: Array) -> str:
    return f"({', '.join(f'{x:.2g}' for x in v / np.linalg.norm(v))})"
