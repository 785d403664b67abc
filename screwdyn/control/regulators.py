"""Linear-quadratic regulators about an equilibrium and along a run; passive joints swing less. docs/control.md."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from screwdyn.control.laws import Law, _check_numbers, check_state, difference_by_state
from screwdyn.core import Array, ArrayLike, ScrewdynError, ShapeError
from screwdyn.mechanism.topology import check_open
from screwdyn.physics.state import State
from screwdyn.simulation.simulate import Run
from screwdyn.tree import KinematicTree

# Accelerations, rad/s² and m/s², of a state that counts as an equilibrium.
_REST = 1e-6
# Relative singular value below which torques do not reach a direction, or weights do not see it.
_UNREACHED = 1e-7
# Time constants of the fastest motion over which one exponential serves.
_FOLDS = 5.0

# Numbers, diagonals or matrices, or a function of the names of the freedoms that returns one.
Weights = ArrayLike | Callable[[tuple[str, ...]], ArrayLike]


class _Regulator(Law):
    """τ = τ_d − K [q ⊖ q_d; q̇ − q̇_d] of all freedoms."""

    @abstractmethod
    def _now(self, t: float, state: State) -> tuple[list[int], Array, Array, Array, Array]:
        """Indices of the active freedoms at a time, and q_d, q̇_d, τ_d and K."""

    def __call__(self, t: float, state: State) -> Array:
        """Torques of all freedoms of the state's tree, (nv,), N m or N; zero for passive ones."""
        check_state("the law", state)
        return self._fed_back(state, *self._now(t, state))

    def _fed_back(self, state: State, active: list[int], q: Array, qd: Array, tau: Array, gain: Array) -> Array:
        """τ − K x, clipped at what motors can give."""
        plan, torque = self._planned(state), np.zeros_like(state.qd) + tau
        configurations = plan.tree.model.configurations
        error = configurations.difference(configurations.normalized(q), state.q)
        torque[active] -= gain @ np.concatenate([error, state.qd - qd])
        return self._clipped(plan, torque)

    def _by_state(self, plan: Any, t: float, state: State) -> Array:
        active, q, _, _, gain = self._now(t, state)
        n, by = len(state.qd), np.eye(2 * len(state.qd))
        by[:n, :n] = difference_by_state(plan.tree, plan.tree.model.configurations.normalized(q), state.q)
        found = np.zeros((n, 2 * n))
        found[active] = -gain @ by
        return found


class LQR(_Regulator):
    """τ = τ₀ − K [q ⊖ q₀; q̇] with K of the least ∫ xᵀ Q x + uᵀ R u dt of the linear model about an equilibrium.

    x = [q ⊖ q₀; q̇] has all freedoms, u = τ − τ₀ the active ones, so that motors damp the swing of passive joints. K is
    R⁻¹ Bᵀ P, where Aᵀ P + P A − P B R⁻¹ Bᵀ P + Q = 0 (Kalman 1960). All else as for
    :class:`~screwdyn.control.laws.Law`; docs/control.md.

    Parameters
    ----------
    tree : KinematicTree
    q : (nq,) array
        An equilibrium, rad and m, such as from ``tree.equilibrium(q0)``.
    Q, R : float, array, or function of the names of freedoms that returns one
        Weights of x and u: a number, a diagonal (2 nv,) and (number of active freedoms,), or a matrix.
    tau : (nv,) or (number of active freedoms,) array, optional
        τ₀, N m or N; by default those that hold the tree at q.

    Attributes
    ----------
    gain : (number of active freedoms, 2 nv) array
        K.
    cost : (2 nv, 2 nv) array
        P: xᵀ P x is the cost from x on.

    Raises
    ------
    ShapeError
        If weights have wrong shapes, Q has a negative eigenvalue, or R one that is not positive.
    LoopError
        If the tree has closed loops.
    ScrewdynError
        If q is no equilibrium, the torques cannot stabilise some freedoms, or the weights do not see one that is not
        stable: the message names them. In a call, if the tree of the state has other freedoms.
    """

    def __init__(self, tree: KinematicTree, q: ArrayLike, Q: Weights, R: Weights, tau: ArrayLike | None = None) -> None:
        super().__init__(tree)
        check_open(tree.topology, "LQR")
        self.q, model = State(tree, q).q, tree.linearize(q, tau=tau)
        moved = [
            f"{name} by {x:.3g}"
            for name, x in zip(tree.coordinates, model.rate[tree.nv :], strict=True)
            if abs(x) > _REST
        ]
        if moved:
            raise ScrewdynError(
                f"q is no equilibrium; it accelerates {', '.join(moved)} rad/s² or m/s²; take tree.equilibrium(q), or "
                f"other torques"
            )
        self.tau = model.tau
        self.cost, self.gain = _riccati(model, *_weights(model, Q, R))
        self._freedoms, self._active = model.coordinates, _indices(model)

    def _now(self, t: float, state: State) -> tuple[list[int], Array, Array, Array, Array]:
        if state.coordinates != self._freedoms:
            raise _other_freedoms(state, t, self._freedoms)
        return self._active, self.q, np.zeros(len(state.qd)), self.tau, self.gain

    def _recorded(self, at: Any) -> list[Any]:
        _check_numbers(at, passive=True)
        return super()._recorded(at)


class TimeVaryingLQR(_Regulator):
    """τ = τ_d(t) − K(t) [q ⊖ q_d(t); q̇ − q̇_d(t)] along a run, K of the least ∫ xᵀ Q x + uᵀ R u dt up to its end.

    K = R⁻¹ Bᵀ P, where −Ṗ = Aᵀ P + P A − P B R⁻¹ Bᵀ P + Q goes backward along the linear models at the samples and
    halfway between, by exponentials of the Hamiltonian matrix, of order 4 in the time between samples. There, gains
    and torques are linear, and the motion is cubic. Where the tree changes, each part of the run has its own P. After
    the end of a part, its last state and gain hold. All else as for :class:`~screwdyn.control.laws.Law`.

    Parameters
    ----------
    run : Run
        The motion and its torques; the finer its samples, the better.
    Q, R
        As for :class:`LQR`, at all times.
    final : float, array, or function of the names of freedoms, optional
        P at the end of each part. By default that of :class:`LQR` for the linear model there, for ever; or, where no
        torques stabilise it, such as the yaw of a load on a rope, that for another time as long as the part.

    Raises
    ------
    ShapeError, LoopError
        As for :class:`LQR`.
    ScrewdynError
        In a call, if the tree of the state has other freedoms than the run then.
    """

    def __init__(self, run: Run, Q: Weights, R: Weights, final: Weights | None = None) -> None:
        if not isinstance(run, Run):
            raise ScrewdynError(f"a TimeVaryingLQR is made along a Run, the result of simulate; got {run!r}")
        super().__init__(run.motions[-1].tree)
        self._parts: list[_Part] = []
        for motion in run.motions:
            check_open(motion.tree.topology, "TimeVaryingLQR")
            if motion.t[0] < motion.t[-1]:
                self._parts.append(_along(motion, Q, R, final))

    def _now(self, t: float, state: State) -> tuple[list[int], Array, Array, Array, Array]:
        fitting = [part for part in self._parts if part.coordinates == state.coordinates]
        if not fitting:
            raise _other_freedoms(state, t, self._parts[0].coordinates)
        # The part at this time; at its ends also the integrator's trials, which are a little outside.
        part = min(fitting, key=lambda x: max(x.t[0] - t, t - x.t[-1], 0.0))
        now = min(max(t, part.t[0]), part.t[-1])
        k = min(int(np.searchsorted(part.t, now, side="right")), len(part.t) - 1) - 1
        w = (now - part.t[k]) / (part.t[k + 1] - part.t[k])
        tau, gain = ((1 - w) * x[k] + w * x[k + 1] for x in (part.torques, part.gains))
        q, qd = np.split(part.motion(now), [len(state.q)])
        return part.active, q, qd, tau, gain

    _given = ("t", "q", "qd")

    def _recorded(self, at: Any) -> list[Any]:
        """As a call, from a table of torques, gains, [q; q̇] and its rates at the samples."""
        _check_numbers(at, passive=True)
        names, n = at.coordinates, at.nv
        active = [k for k, passive in enumerate(at.model.passive) if not passive]
        parts = []
        for part in self._parts:
            if {*part.coordinates} <= {*names}:
                own, count = [names.index(x) for x in part.coordinates], len(part.t)
                curves, K = np.zeros((count, 5, n)), np.zeros((count, n, 2, n))
                motion = part.motion(part.t), part.motion(part.t, 1)
                curves[:, :, own] = np.stack([part.torques, *(y for x in motion for y in np.split(x, 2, 1))], axis=1)
                driven = [own[k] for k in part.active]
                K[np.ix_(range(count), driven, range(2), own)] = part.gains.reshape(count, len(driven), 2, -1)
                rows = part.t, curves[:, 0, active], K[:, active].reshape(count, -1), curves[:, 1:].reshape(count, -1)
                parts.append((np.isin(range(n), own), np.column_stack(rows)))
        if not parts:
            raise _other_freedoms(at, self._parts[0].t[0], self._parts[0].coordinates)
        before, after, now = at.along(parts)
        h, x = after[0] - before[0], (now - before[0]) / (after[0] - before[0])
        held = len(active) * (1 + 2 * n) + 1
        tau, K = np.zeros(n, dtype=object), (1.0 - x) * before[1:held] + x * after[1:held]
        tau[active], K = K[: len(active)], K[len(active) :].reshape(-1, 2 * n)
        (y0, r0), (y1, r1) = (row[held:].reshape(2, 2 * n) for row in (before, after))
        y = y0 + x * x * (3.0 - 2.0 * x) * (y1 - y0) + h * x * (1.0 - x) * ((1.0 - x) * r0 - x * r1)
        return [at.host(self)._fed_back(at, active, y[:n], y[n:], tau, K) * at.present]


class _Part(NamedTuple):
    """Freedoms of x, indices of the active ones; torques and gains at times of a motion, and its [q, q̇] at any time."""

    coordinates: tuple[str, ...]
    active: list[int]
    t: Array
    torques: Array
    gains: Array
    motion: Any


def _other_freedoms(state: State, t: float, own: tuple[str, ...]) -> ScrewdynError:
    """The error for a state of another tree."""
    extra, missing = sorted({*state.coordinates} - {*own}), sorted({*own} - {*state.coordinates})
    what = [f"it has {', '.join(extra)}"] * bool(extra) + [f"it lacks {', '.join(missing)}"] * bool(missing)
    return ScrewdynError(
        f"at t = {t:g} s the tree has other freedoms than the regulator: {'; '.join(what) or 'in another order'}; make "
        f"one for each tree"
    )


def _along(motion: Any, Q: Weights, R: Weights, final: Weights | None) -> _Part:
    """Gains at the samples of a motion, by the Riccati equation backward."""
    from scipy.interpolate import CubicHermiteSpline
    from scipy.linalg import expm

    t, tree, h = motion.t, motion.tree, np.diff(motion.t)[:, None, None]
    y, rate = (motion.q, motion.qd), (tree.position_rate(motion.q, motion.qd), motion.qdd)
    cubic = CubicHermiteSpline(t, np.hstack(y), np.hstack(rate))
    model = tree.linearize(motion.q, motion.qd, motion.torque)
    q, qd = np.split(cubic(0.5 * (t[1:] + t[:-1])), [tree.nq], axis=1)
    middle = tree.model.configurations.normalized(q), qd, 0.5 * (motion.torque[1:] + motion.torque[:-1])
    Q, R = _weights(model, Q, R)

    def hamiltonian(model: Any) -> tuple[Array, Array]:
        A, RB = model.A, np.linalg.solve(R, np.swapaxes(model.B, -1, -2))
        return np.block([[A, -model.B @ RB], [np.broadcast_to(-Q, A.shape), -np.swapaxes(A, -1, -2)]]), RB

    (H, RB), (between, _) = map(hamiltonian, (model, tree.linearize(*middle)))
    # Exponentials over many time constants are singular to rounding.
    parts = max(1, int(np.ceil(np.abs(np.linalg.eigvals(H)).max() * h.max() / _FOLDS)))
    # Magnus's expansion of order 4.
    mean, turn = (H[:-1] + 4.0 * between + H[1:]) / 6.0, H[1:] @ H[:-1] - H[:-1] @ H[1:]
    steps = expm(-h / parts * (mean + h / 12.0 * turn))
    if final is None:
        try:
            P, _ = _riccati(tree.linearize(motion.q[-1], motion.qd[-1], motion.torque[-1]), Q, R)
        except ScrewdynError:
            rest = expm(-h.mean() / parts * H[-1])
            P = reduce(lambda P, _: _before(P, rest, parts), t, np.zeros(Q.shape))
    else:
        P = _matrix("final", final, model.coordinates, 2 * len(model.coordinates), 0.0)
    gains = np.empty(RB.shape)
    gains[-1] = RB[-1] @ P
    for k in range(len(t) - 2, -1, -1):
        P = _before(P, steps[k], parts)
        gains[k] = RB[k] @ P
    return _Part(model.coordinates, _indices(model), t, motion.torque, gains, cubic)


def _before(P: Array, step: Array, parts: int) -> Array:
    """P before an interval with a given exponential of the Hamiltonian matrix over each of its parts."""
    for _ in range(parts):
        X = step @ np.concatenate([np.eye(len(P)), P])
        P = np.linalg.solve(X[: len(P)].T, X[len(P) :].T)
        P = 0.5 * (P + P.T)
    return P


def _indices(model: Any) -> list[int]:
    return [model.coordinates.index(name) for name in model.inputs]


def _weights(model: Any, Q: Weights, R: Weights) -> tuple[Array, Array]:
    n, least = len(model.coordinates), np.finfo(float).tiny
    return _matrix("Q", Q, model.coordinates, 2 * n, 0.0), _matrix("R", R, model.inputs, len(model.inputs), least)


def _matrix(name: str, given: Weights, names: tuple[str, ...], count: int, least: float) -> Array:
    """A symmetric matrix of weights (count, count), with eigenvalues of at least ``least``."""
    W = np.asarray(given(names) if callable(given) else given, dtype=np.float64)
    if W.shape not in ((), (count,), (count, count)):
        of = ", ".join(names) + (" and of their rates" if count > len(names) else "")
        raise ShapeError(
            f"{name} must be a number, {count} numbers or a {count} × {count} matrix, of {of}; got {W.shape}"
        )
    W = np.diag(np.broadcast_to(W, count)) if W.ndim < 2 else W
    size = np.abs(W).max(initial=0.0)
    if not np.isfinite(W).all() or np.abs(W - W.T).max(initial=0.0) > 1e-9 * size:
        raise ShapeError(f"{name} must be symmetric and finite")
    values = np.linalg.eigvalsh(W)
    if values.min(initial=np.inf) < (least or -1e-12 * size):
        what = "positive" if least else "not negative"
        raise ShapeError(f"the eigenvalues of {name} must be {what}; the smallest is {values.min():.3g}")
    return np.asarray(W)


def _riccati(model: Any, Q: Array, R: Array) -> tuple[Array, Array]:
    """P and K; ScrewdynError that names the freedoms that cannot be stabilised."""
    from scipy.linalg import solve_continuous_are

    A, B = model.A, model.B
    if stuck := _unreached(A, B, model.coordinates):
        raise ScrewdynError(
            f"the torques of {', '.join(model.inputs) or 'no joint'} cannot stabilise {', '.join(stuck)}; give passive "
            f"joints damping, or another configuration"
        )
    if unseen := _unreached(A.T, Q, model.coordinates):
        raise ScrewdynError(f"Q has no weight on {', '.join(unseen)}, which would not come to rest; give it some")
    try:
        P = solve_continuous_are(A, B, Q, R)
    except np.linalg.LinAlgError as error:
        raise ScrewdynError(f"no regulator found: {error}; take weights that differ less") from error
    return P, np.linalg.solve(R, B.T @ P)


def _unreached(A: Array, B: Array, names: tuple[str, ...]) -> list[str]:
    """Freedoms in directions w with wᴴ A = λ wᴴ, wᴴ B = 0 that do not decay (Popov, Belevitch, Hautus)."""
    n, size = len(names), np.linalg.norm(A, 2)
    B = B * (size / (np.linalg.norm(B) or 1.0))
    found = set[int]()
    for value in np.linalg.eigvals(A):
        if value.real > -_UNREACHED * size:
            U, s, _ = np.linalg.svd(np.hstack([A - value * np.eye(2 * n), B]))
            for w in U.T[s <= _UNREACHED * size]:
                both = np.maximum(np.abs(w[:n]), np.abs(w[n:]))
                found |= {*np.flatnonzero(both > 0.1 * both.max()).tolist()}
    return [names[k] for k in sorted(found)]
