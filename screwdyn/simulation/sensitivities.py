"""Derivatives of a run by its start, inertias of links, gains, symbols and events, through changes of the tree.

Between changes δx = (δq along the freedoms, δν) obeys δẋ = A δx + b, with A of the linearized equation of motion and b
for parameters and for torques that are held. It is solved by collocation at Gauss points (order 8), in intervals that
are divided until the slopes in each are smooth. At a change each column is moved along the motion to the time at which
the change happens for it, through the change, and back: the saltation matrix
Ξ = DR + (F⁺ − DR F⁻) h_x / (h_x F⁻) (Burden, Sastry, Koditschek and Revzen 2016). DR is taken by differences of the
change itself, along the freedoms and all else that moves, so that every kind of change has it; it is linear in the
rates. Where a stop or friction sets in, R = 1. Poses of links that a change makes constant, such as that of a locked
joint, remain parameters of the motion. docs/simulation.md.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, is_dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from screwdyn.changes.change import Happened
from screwdyn.core import Array, InertiaError, ScrewdynError, ShapeError, UnknownNameError, expressions
from screwdyn.forms.derivatives import Derivatives
from screwdyn.mechanism import Joint, Link, Topology, check_untouched, pose_at
from screwdyn.mechanism.inertia import INERTIAL, Inertia
from screwdyn.mechanism.link import Locked
from screwdyn.physics import Robot, State
from screwdyn.physics.charts import ConfigurationSpace
from screwdyn.physics.closure import Closure
from screwdyn.screws import screw
from screwdyn.simulation.equations import EquationsOfMotion, Phase
from screwdyn.simulation.hybrid import TreeMotion
from screwdyn.simulation.integrators import solution

# Step of central differences, of angles, lengths and relative to sizes of numbers.
_STEP = 1e-5
# Twist of a home pose, rad and m, below which a change has not moved it; and relative to the largest of a run.
_STILL, _SMALL = 1e-11, 1e-9
# Deviation of the derivative of a change along one direction, of length about 1, that is rounding.
_UNMOVED = 1e-9
# Singular values of mobilities, relative to the largest, that count as zero where loops and stops hold the same.
_DEPENDENT = 1e-9
# Share of the cubic part of the slopes in an interval above which it is divided; least part of a step of the run, and
# least length, relative or in s, such as between a call and an event that rounding tells apart.
_CUBIC, _LEAST, _SHORTEST = 4e-3, 1e-4, 1e-12
# Steps of the run in a motion of which all begin an interval; intervals that are solved together, for their memory.
_FEW, _AT_ONCE = 20, 256
# Calls of a function of the user from which its derivatives at many are found.
_NODES = 14
# Halvings of a step of a run down to rounding.
_HALVINGS = 50
# Gauss-Legendre points on (0, 1), their weights, the integrals of their Lagrange polynomials up to each point, and the
# weights that give the cubic part of a function.
_POINTS, _WEIGHTS = (0.5 * (np.polynomial.legendre.leggauss(4)[0] + 1), 0.5 * np.polynomial.legendre.leggauss(4)[1])
_UP_TO = np.array([_POINTS**k / k for k in range(1, 5)]).T @ np.linalg.inv(np.vander(_POINTS, increasing=True))
_THIRD = 7 * _WEIGHTS * np.polynomial.legendre.legval(2 * _POINTS - 1, [0, 0, 0, 1])

# Twists of the homes of links and of loops by parameter, (6, p), by kind and name.
Key = tuple[str, str]
Homes = dict[Key, Array]
# A number of a function or of a change: the name of its owner, the attribute, the entry of this, the size of a step.
Number = tuple[str, str, tuple[int, ...], float]


class Symbol:
    """A symbol of the tree at the start of a run, and the structures that other values of it give."""

    def __init__(self, name: str, tree: Robot) -> None:
        assert tree._bound is not None
        origin, values, self.start = tree._bound
        own = {x: value for x, value in values.items() if x.name == name}  # of different assumptions
        self.size = abs(float(next(iter(own.values())))) or 1.0
        larger = {s: {x: value + s * self.size for x, value in own.items()} for s in (_STEP, -_STEP)}
        self.moved = {s: origin.subs(values | more).topology for s, more in larger.items()}  # type: ignore[attr-defined]

    def tree(self, tree: Robot, s: float) -> Robot:
        """A tree of the run with the bodies, joints and gravity of another value; homes are parameters of their own."""
        tree, moved = tree.copy(), self.moved[s]
        before, now, found = self.start.attachments, moved.attachments, []
        for name, at in tree.topology.attachments.items():
            if name in before:
                then, link, joint, locked = before[name], at.link, at.joint, at.locked
                if link.inertia is then.link.inertia:
                    link = replace(link, inertia=now[name].link.inertia)
                if joint is then.unlocked.joint:
                    joint = now[name].unlocked.joint
                elif locked is not None and locked.joint is then.unlocked.joint:
                    other = locked._replace(joint=now[name].unlocked.joint)
                    q = np.array(locked.q)
                    T, X = pose_at(other.joint, q), pose_at(locked.joint, q)
                    locked = _slid(other, at.name, screw.log(screw.inverse(T) @ X))
                found.append(replace(at, link=link, joint=joint, locked=locked))
        loops = dict(tree.topology.loops)
        for name, loop in loops.items():
            if name in self.start.loops and loop.joint is self.start.loops[name].joint:
                loops[name] = replace(loop, joint=moved.loops[name].joint)
        tree.topology = replace(tree.topology.with_attachments(*found), loops=loops, gravity=moved.gravity)
        return tree

    def homes(self) -> Homes:
        """How home poses move with it, (6,) each."""
        start = _homes(self.start)
        plus, minus = (_twists(start, _homes(self.moved[s])) for s in (_STEP, -_STEP))
        twists = zip(start, (plus - minus) / (2 * _STEP * self.size), strict=True)
        return {x: twist for x, twist in twists if twist.any()}


@dataclass(frozen=True)
class Direction:
    """A direction in which a state moves, and what it is a state of: rates, (2 nv,), homes, ten numbers of a link.

    Or a symbol of the tree, or a number of a change.
    """

    state: Array
    homes: Mapping[Key, Array] = field(default_factory=dict)
    link: str = ""
    more: Array = field(default_factory=lambda: np.zeros(10))
    symbol: Symbol | None = None
    number: Number | None = None
    # Trees that are made already, by what they are made of.
    _made: dict[tuple[Robot, float], Robot] = field(default_factory=dict, repr=False)

    def tree(self, tree: Robot, s: float) -> Robot:
        """The tree at a step."""
        if not (s and (self.homes or self.symbol or self.link in tree.links)):
            return tree
        if (tree, s) not in self._made:
            other = _with_homes(tree, {x: s * twist for x, twist in self.homes.items()}) if self.homes else tree
            other = other if self.symbol is None else self.symbol.tree(other, s)
            more = self.link in tree.links
            self._made[tree, s] = _with_inertia(other, self.link, s * self.more) if more else other
        return self._made[tree, s]

    def change(self, happened: Happened, s: float) -> Any:
        """A change at a step."""
        if happened.subject == self.link:
            return _brings(happened, self.link, s * self.more)
        if self.number is not None and self.number[0] == _name(happened):
            _, attribute, entry, size = self.number
            return _varied(happened.what, attribute, entry, s * size)
        return happened.what


@dataclass(eq=False)
class Stretch:
    """One motion of a run, what acts in it, the changes at its end, and the columns in it, which are found in order."""

    motion: TreeMotion
    changes: Sequence[Happened]
    equations: EquationsOfMotion
    # The functions of the user by name, and the times of the calls whose torques are held.
    sources: Mapping[str, Any]
    calls: Array

    def __post_init__(self) -> None:
        self.phases = self.equations.phases or [Phase(float(self.motion.t[0]))]
        self.n = len(self.motion.coordinates)
        # Directions of homes and symbols, and their shares in the columns, (k, p).
        self.of_tree: tuple[list[Direction], Array] = [], np.zeros((0, 0))
        self.calls = self.calls if self.n else self.calls[:0]
        self.held = np.zeros((1, self.n))
        # Beginnings of intervals, with the columns there, of the state and of held torques, and the phases.
        self.starts: list[float] = []
        self.columns: list[tuple[Array, Array]] = []
        self.of_phase: list[Phase] = []

    @property
    def sampled(self) -> bool:
        """Whether torques are held between calls."""
        return self.equations.controller is not None and self.equations.controller.period is not None

    def begin(self, before: Stretch | None) -> Array:
        """Find the held torques; returns which freedoms of the motion before go on, (nv, nv before).

        ScrewdynError if the torques of the run were others, because the function that gave them has a memory.
        """
        names = self.motion.coordinates if before is None else before.motion.coordinates
        kept = np.array([[float(a == b) for b in names] for a in self.motion.coordinates]).reshape(self.n, len(names))
        if self.sampled:
            controller: Any = self.equations.controller
            controller.enter(self.motion.tree)
            called = [
                controller.called(t, *at) for t, *at in zip(self.calls.tolist(), *self.path(self.calls), strict=True)
            ]
            first = np.zeros(self.n) if before is None else kept @ before.held[-1]
            self.held = np.array([first, *called])
            t, near = self.motion.t, 1e-9 * (1 + np.abs(self.motion.t))
            held = (self.held[np.searchsorted(self.calls, at, side="right")] for at in (t - near, t + near))
            apart = np.minimum(*(np.abs(self.motion.torque - tau).max(axis=1, initial=0.0) for tau in held))
            wrong = apart > 1e-6 * (1 + np.abs(self.held).max(initial=0.0))
            if wrong.any():
                raise ScrewdynError(
                    f"torque= gave other torques at t = {t[wrong][0]:g} s when it was called again: derivatives need a "
                    f"function of the time and the state, without a memory"
                )
        return kept

    def path(self, times: Array) -> tuple[Array, Array]:
        """Positions and rates at times of the motion, by the polynomials of the integrator."""
        model = self.motion.tree.model
        y = solution(self.motion.pieces, times, model.nq + model.nv)
        q, qd = model.configurations.normalized(y[:, : model.nq]), y[:, model.nq :]
        return Closure(self.motion.tree).project(q, qd)

    def kinks(self, phase: Phase, until: float) -> Array:
        """The times in a phase at which springs of stops begin or cease to act, or torques become the largest."""
        springs, controller = phase.springs, self.equations.controller
        pressed = springs is not None and (springs.damping * springs.pressed).any()
        clipped = controller is not None and not self.sampled and np.isfinite(controller.largest).any()
        if not pressed and not clipped:
            return np.zeros(0)

        def acting(times: Array) -> npt.NDArray[np.bool_]:
            q, qd = self.path(times)
            found = [(springs.push(q, qd) > 0) & springs.pressed] if pressed else []  # type: ignore[union-attr]
            if clipped:
                called = controller.called  # type: ignore[union-attr]
                tau = np.array([called(t, *at) for t, *at in zip(times.tolist(), q, qd, strict=True)])
                found += [tau >= controller.largest, tau <= -controller.largest]  # type: ignore[union-attr]
            return np.hstack(found)

        self.enter(phase)
        starts = np.array([piece.t_old for piece in self.motion.pieces])
        times = np.concatenate([[phase.t], starts[(starts > phase.t) & (starts < until)], [until]])
        rows, columns = np.nonzero(np.diff(before := acting(times), axis=0))
        low, high, first = times[rows], times[rows + 1], before[rows, columns]
        for _ in range(_HALVINGS if len(rows) else 0):
            middle = 0.5 * (low + high)
            same = acting(middle)[range(len(rows)), columns] == first
            low, high = np.where(same, middle, low), np.where(same, high, middle)
        return high

    def enter(self, phase: Phase) -> None:
        """Let the functions of the user act on the tree of the motion, in a phase."""
        self.equations.resume(phase)
        for function in (self.equations.controller, self.equations.disturbance):
            if function is not None:
                function.enter(self.motion.tree)

    def forces(self, times: Array, q: Array, qd: Array) -> Array:
        """All joint forces at some times, (k, nv), but those that hold freedoms; after :meth:`enter`."""
        equations, found = self.equations, np.empty(qd.shape)
        if equations.smooth:
            return equations.own.viscous_force(qd) + equations.own.spring_force(q)
        held = self.held[np.searchsorted(self.calls, times, side="right")]
        for k, t in enumerate(times.tolist()):
            if self.sampled:
                equations.controller.output = held[k]  # type: ignore[union-attr]
            found[k] = equations.forces(t, q[k], qd[k])[1]
        return found

    def flow(self, phase: Phase, t: float, q: Array, qd: Array) -> Array:
        """[q̇; q̈] in a state, (2 nv,)."""
        self.enter(phase)
        force = self.forces(np.array([t]), q[None], qd[None])[0]
        return np.concatenate([qd, self.equations.accelerations(q, qd, force)])


class Sensitivities:
    """Derivatives of the states of a run by parameters; see :meth:`Run.sensitivity`.

    Attributes
    ----------
    parameters : tuple of str
        The positions ``"q:elbow"`` along the freedoms of the start, its rates ``"qd:elbow"``, ten numbers of each link
        that was asked for, ``"crate.m"`` … ``"crate.Izz"``, numbers of the functions of the user, ``"torque.kp[0]"``,
        and the times of events, ``"time of grasp crate"``.
    """

    def __init__(self, stretches: Sequence[Stretch], wanted: Sequence[str]) -> None:
        self._stretches, self._wanted = stretches, tuple(wanted)
        trees = [x.motion.tree for x in stretches]
        self._links = tuple(x for x in wanted if any(x in tree.links for tree in trees))
        # Ten numbers of each link, of the size of those of its body: the directions of differences.
        self._units = {link: _sizes(link, trees) for link in self._links}
        first = stretches[0].motion
        self._symbols = {x: Symbol(x, first.tree) for x in wanted if x in _symbols(first.tree) and x not in self._links}
        # The entries of gains and of numbers of changes by their names: owner, attribute, index, size of a step.
        self._gains, self._numbers = dict[str, Number](), dict[str, Number]()
        for name in wanted:
            if name not in (*self._links, *self._symbols):
                owner, _, attribute = name.partition(".")
                sources = [x.sources[owner] for x in stretches if owner in x.sources]
                changes = [h.what for x in stretches for h in x.changes if _name(h) == owner]
                found = _entries(sources or changes, attribute)
                entries = {f"{name}{label}": (owner, attribute, *entry) for label, entry in found.items()}
                (self._gains if sources else self._numbers).update(entries)
        start = first.coordinates
        times = _distinct([_time_of(x.changes) for x in stretches])
        self.parameters: tuple[str, ...] = (
            *(f"q:{name}" for name in start),
            *(f"qd:{name}" for name in start),
            *(f"{link}.{name}" for link in self._links for name in INERTIAL),
            *self._gains,
            *self._symbols,
            *self._numbers,
            *filter(None, times),
        )
        n = len(start)
        P = np.zeros((2 * n, len(self.parameters)))
        P[:, : 2 * n] = np.eye(2 * n)
        T, homes = np.zeros((n, len(self.parameters))), Homes()
        for name, symbol in self._symbols.items():
            for key, twist in symbol.homes().items():
                columns = homes.setdefault(key, np.zeros((6, P.shape[1])))
                columns[:, self.parameters.index(name)] = twist
        stretches[0].of_tree = self._of_tree(homes, 2 * n)
        if first.tree.loops:
            P = self._differences(stretches[0], first.q[0], first.qd[0], P, lambda tree, state, d, s: state)[0]
        stretches[0].begin(None)
        for x, later, timed in zip(stretches, [*stretches[1:], None], times, strict=True):
            P, T = self._through(x, P, T)
            if later is not None:
                T = later.begin(x) @ T
                P, later.of_tree = self._changed(x, later, P, timed)

    def at(self, t: float, side: str = "after") -> Array:
        """∂[q; q̇]/∂(parameters) at a time, (2 nv, p); see :meth:`Run.sensitivity`."""
        x = self._stretch(t, side)
        k = int(np.searchsorted(x.starts, t, side="right")) - 1
        P, T = x.columns[k]
        if t == x.starts[k]:
            return P.copy()
        (Phi,), (beta,), _ = self._solved(x, x.of_phase[k], np.array([[x.starts[k], t]]))
        return np.asarray(Phi @ P + beta @ self._driving(x, T))

    def _stretch(self, t: float, side: str = "after") -> Stretch:
        """The stretch at a time."""
        inside = [x for x in self._stretches if x.starts[0] <= t <= x.starts[-1]]
        if not inside:
            first, last = self._stretches[0].starts[0], self._stretches[-1].starts[-1]
            raise ScrewdynError(f"the run lasts from {first:g} to {last:g} s; got t = {t!r}")
        return inside[-1 if side == "after" else 0]

    def gradient(self, cost: Callable[..., float], times: Sequence[float], states: Sequence[State]) -> dict[str, float]:
        """Derivatives of a function of states at some times; see :meth:`Run.gradient`."""
        total = np.zeros(len(self.parameters))
        for k, (t, state) in enumerate(zip(times, states, strict=True)):

            def along(d: Direction, s: float) -> Array:
                moved = _moved(d.tree(state.tree, s), state.q, state.qd, s * d.state)  # noqa: B023
                value = expressions.read_or_nan(cost(*states[:k], moved, *states[k + 1 :]))  # noqa: B023
                if np.shape(value) or not np.isfinite(value):
                    raise ScrewdynError(f"cost must return one finite number; it returned {value!r}")
                return np.asarray(value)

            directions, shares = self._directions(self.at(t), self._stretch(t))
            total += np.array([_slope(partial(along, d)) for d in directions]) @ shares
        return dict(zip(self.parameters, total.tolist(), strict=True))

    def joined(self, other: Sensitivities) -> Sensitivities:
        """The derivatives of a run that is continued by another one, by the parameters of both."""
        stretches = [replace(x) for x in (*self._stretches, *other._stretches)]
        return Sensitivities(stretches, tuple(dict.fromkeys((*self._wanted, *other._wanted))))

    # Between changes

    def _through(self, x: Stretch, P: Array, T: Array) -> tuple[Array, Array]:
        """The columns of the state and of held torques at the end of a motion, from those at its beginning."""
        end, n = float(x.motion.t[-1]), x.n
        calls = {t: k for k, t in enumerate(x.calls.tolist())}
        if calls:
            K, L = self._at_calls(x, slice(None))
        for k, phase in enumerate(x.phases):
            if k and phase.row is not None:
                q, qd = (values[0] for values in x.path(np.array([phase.t])))
                before, after = (x.flow(acting, phase.t, q, qd) for acting in (x.phases[k - 1], phase))
                P = P + np.outer(before - after, _delayed(P[phase.row], float(before[phase.row]), phase.t))
            if phase.held.size:
                P[n:] = _stopping(x.motion.tree, x.path(np.array([phase.t]))[0][0], phase.held) @ P[n:]
            until = x.phases[k + 1].t if k + 1 < len(x.phases) else end
            for start, Phi, beta in self._intervals(x, phase, until):
                if start in calls:
                    T = K[calls[start]] @ P + L[calls[start]]
                x.starts.append(start)
                x.columns.append((P, T))
                x.of_phase.append(phase)
                P = Phi @ P + beta @ self._driving(x, T)
        x.starts.append(end)
        x.columns.append((P, T))
        return P, T

    def _at_calls(self, x: Stretch, part: slice) -> tuple[Array, Array]:
        """Derivatives of held torques at calls, as of :meth:`_response`, from a part of the calls if they are smooth.

        They are polynomials of the time where these give the torques of all calls, and the derivatives of more calls
        than they have coefficients; other spans of time are halved.
        """
        times, held = x.calls[part], x.held[1:][part]
        q, qd = x.path(times)
        if len(times) < 2 * _NODES:
            return self._response(x, "torque", times, q, qd)
        scaled = 2 * (times - times[0]) / (times[-1] - times[0]) - 1
        wanted = -np.cos(np.pi * (np.arange(_NODES) + 0.5) / _NODES)
        some = np.unique(np.abs(scaled[:, None] - wanted).argmin(axis=0))
        found = np.concatenate(self._response(x, "torque", times[some], q[some], qd[some]), axis=-1)
        basis = np.polynomial.chebyshev.chebvander(scaled, len(some) - 4)
        values = np.hstack([held[some], found.reshape(len(some), -1)])
        fitted = basis @ np.linalg.lstsq(basis[some], values)[0]
        apart = np.abs(fitted[some] - values).max(axis=0)
        apart[: x.n] = np.abs(fitted[:, : x.n] - held).max(axis=0)
        if (apart < _SMALL * (1 + np.abs(values).max(axis=0))).all():
            found = fitted[:, x.n :].reshape(len(times), *found.shape[1:])
            return found[..., : 2 * x.n], found[..., 2 * x.n :]
        first = part.start or 0
        middle = first + len(times) // 2
        halves = (self._at_calls(x, slice(a, b)) for a, b in ((first, middle), (middle, first + len(times))))
        K, L = (np.concatenate(both) for both in zip(*halves, strict=True))
        return K, L

    def _driving(self, x: Stretch, T: Array) -> Array:
        """What the columns of :meth:`_solved` belong to: held torques, and parameters."""
        return np.vstack([T if x.sampled else T[:0], np.eye(len(self.parameters))])

    def _intervals(self, x: Stretch, phase: Phase, until: float) -> list[tuple[float, Array, Array]]:
        """Beginnings, Φ and β of intervals of a phase; each between two calls, and with slopes that are smooth."""
        pieces = np.array([piece.t_old for piece in x.motion.pieces])
        inner = np.unique(np.concatenate([x.calls, pieces[:: 1 + len(pieces) // _FEW], x.kinks(phase, until)]))
        bounds = np.concatenate([[phase.t], inner[(inner > phase.t) & (inner < until)], [until]])
        todo, found = np.column_stack([bounds[:-1], bounds[1:]])[bounds[1:] > bounds[:-1]], []
        while len(todo):
            now, todo = todo[:_AT_ONCE], todo[_AT_ONCE:]
            solved = self._solved(x, phase, now)
            rows = np.searchsorted(pieces, now[:, 0], side="right") - 1
            steps = np.append(pieces[1:], np.inf)[rows] - pieces[rows]
            shortest = np.maximum(_LEAST * steps, _SHORTEST * (1 + np.abs(now[:, 0])))
            rough = (solved[2] > _CUBIC) & (np.diff(now)[:, 0] > shortest)
            found += [(float(now[k, 0]), solved[0][k], solved[1][k]) for k in np.flatnonzero(~rough)]
            parts = np.maximum(np.ceil(1.2 * np.cbrt(solved[2] / _CUBIC)), 2).astype(int)
            edges = [np.linspace(now[k, 0], now[k, 1], int(parts[k]) + 1) for k in np.flatnonzero(rough)]
            todo = np.concatenate([*(np.column_stack([x[:-1], x[1:]]) for x in edges), todo])
        return sorted(found, key=lambda x: x[0])

    def _solved(self, x: Stretch, phase: Phase, intervals: Array) -> tuple[Array, Array, Array]:
        """Φ, (k, 2 nv, 2 nv), and β of δx₁ = Φ δx₀ + β u over intervals, and the share of cubic parts of the slopes."""
        starts, h, n = intervals[:, 0], np.diff(intervals)[:, 0], x.n
        R, A, b = self._linear(x, phase, (starts[:, None] + h[:, None] * _POINTS).ravel())
        driven, m = b.any(axis=(0, 1)), 4 * n  # the slopes of rates in the four stages are the unknowns
        R, A, b = (y.reshape(len(h), 4, n, y.shape[-1]) for y in (R, A, b[..., driven]))
        a, one = (h[:, None, None] * _UP_TO)[:, :, None, :, None], np.eye(n)
        # Slopes of positions, positions and rates in the stages, by these unknowns, by the state before and by u.
        rates = np.zeros((len(h), 4, n, m + 2 * n + b.shape[-1]))
        rates[..., :m] = (a * one[:, None]).reshape(len(h), 4, n, m)
        rates[..., m + n : m + 2 * n] = one
        turned = rates - R @ np.eye(n, rates.shape[-1], m)
        if R.any():
            turning = np.eye(m) + (a * R[:, :, :, None]).reshape(len(h), m, m)
            turned = np.linalg.solve(turning, turned.reshape(len(h), m, -1)).reshape(turned.shape)
        places = (a[:, :, 0, :, 0] @ turned.reshape(len(h), 4, -1)).reshape(turned.shape) + np.eye(n, turned.shape[-1], m)
        found = A[..., :n] @ places + A[..., n:] @ rates
        found[..., m + 2 * n :] += b
        left, right = found.reshape(len(h), m, -1)[..., :m], found.reshape(len(h), m, -1)[..., m:]
        slopes = np.linalg.solve(np.eye(m) - left, right)
        slopes = np.concatenate(
            [turned[..., m:] + turned[..., :m] @ slopes[:, None], slopes.reshape(len(h), 4, n, -1)], axis=2
        )
        both = np.array([_WEIGHTS, _THIRD]) @ slopes.reshape(len(h), 4, -1)
        mean, third = both.swapaxes(0, 1).reshape(2, len(h), *slopes.shape[2:])
        total, cubic = h[:, None, None] * mean, np.abs(third).max(axis=1, initial=0.0)
        size = np.abs(slopes).max(axis=(1, 2), initial=1e-300)
        share = cubic / (size + 1e-6 * size.max(axis=1, keepdims=True, initial=0.0))
        beta = np.zeros((len(h), 2 * n, len(driven)))
        beta[..., driven] = total[..., 2 * n :]
        return np.eye(2 * n) + total[..., : 2 * n], beta, share.max(axis=1, initial=0.0)

    def _linear(self, x: Stretch, phase: Phase, times: Array) -> tuple[Array, Array, Array]:
        """R, A and b of δq̇ = δν − R δq and δν̇ = A δx + b u, (k, nv, …), at some times of a motion."""
        tree, model, n, held = x.motion.tree, x.motion.tree.model, x.n, phase.held
        q, qd = x.path(times)
        x.enter(phase)
        force, project = x.forces(times, q, qd), np.eye(n)
        by = model.derived(Derivatives).forward_dynamics(q, qd, force)
        if held.size:  # with the forces that hold freedoms, so that their accelerations are zero
            columns = by[2][..., held]
            at_rest = tree.forward_dynamics(q, qd, force)[:, held, None]
            force[:, held] -= (np.linalg.pinv(columns[:, held], _DEPENDENT) @ at_rest)[..., 0]
            by = model.derived(Derivatives).forward_dynamics(q, qd, force)
            project = _without(columns, held)
        by_tau = project @ by[2]
        K, L = self._feedback(x, phase, times, q, qd)
        A, b = project @ np.concatenate([by[0], by[1]], axis=-1) + by_tau @ K, by_tau @ L
        qdd = tree.forward_dynamics(q, qd, force) if self._links else qd
        for link, at in self._inertial():
            if link in tree.links:
                b[..., at] -= by_tau @ tree.reference_regressor(link, q, qd, qd, qdd)
        directions, shares = x.of_tree
        if directions:

            def moved(d: Direction, s: float) -> Array:
                other = d.tree(tree, s)
                more = _own_force(other, phase, q, qd) - own if d.symbol else 0.0
                return np.asarray(other.forward_dynamics(q, qd, force + more))

            own = _own_force(tree, phase, q, qd)
            b += project @ _slopes(moved, directions) @ shares
        if x.sampled:
            b = np.concatenate([by_tau, b], axis=-1)
        return model.chart_rotation(qd), A, b

    def _feedback(self, x: Stretch, phase: Phase, times: Array, q: Array, qd: Array) -> tuple[Array, Array]:
        """Derivatives of the joint forces by the state, (k, nv, 2 nv), and by parameters, (k, nv, p)."""
        own, n = x.equations.own, x.n
        K, L = np.zeros((len(times), n, 2 * n)), np.zeros((len(times), n, len(self.parameters)))
        K[:, range(n), range(n)], K[:, range(n), range(n, 2 * n)] = -own.stiffness, -own.damping
        if phase.springs is not None:
            stiffness, damping = phase.springs.slopes(q, qd)
            K[:, range(n), range(n)] -= stiffness
            K[:, range(n), range(n, 2 * n)] -= damping
        for name in x.sources:
            if n and not (name == "torque" and x.sampled):
                more = self._response(x, name, times, q, qd)
                K, L = K + more[0], L + more[1]
        return K, L

    def _response(self, x: Stretch, name: str, times: Array, q: Array, qd: Array) -> tuple[Array, Array]:
        """Derivatives of what a function of the user gives, by the state and by parameters, as for forces."""
        tree, n = x.motion.tree, x.n
        function: Any = x.equations.disturbance if name == "wrenches" else x.equations.controller
        source, space = x.sources[name], tree.model.configurations

        def forces(d: Direction, s: float) -> Array:
            function.enter(d.tree(tree, s))
            step = s * d.state
            there = (space.integrate(q, np.broadcast_to(step[:n], qd.shape)), qd + step[n:]) if step.any() else (q, qd)
            return np.array([function.asked(*at) for at in zip(times.tolist(), *there, strict=True)])

        still = np.zeros(2 * n)
        given = getattr(source, "derivative", None) if name == "torque" else None
        clips = name == "torque" and function.saturate
        here = forces(Direction(still), 0.0) if clips or self._links else np.zeros((len(times), n))
        if given is None:
            K = _slopes(forces, map(Direction, np.eye(2 * n)))
        else:
            K = np.empty((len(times), n, 2 * n))
            for k, t in enumerate(times.tolist()):
                D: Array = expressions.read_or_nan(given(t, State.of(tree, q[k], qd[k], own=False)), expressions.floats)
                if D.shape != (n, 2 * n) or not np.isfinite(D).all():
                    raise ShapeError(
                        f"torque.derivative must be {(n, 2 * n)} finite numbers at t = {t:g} s, of the torques on "
                        f"{', '.join(tree.coordinates)}, by positions and rates; got shape {D.shape}"
                    )
                K[k] = D
        L = np.zeros((len(times), n, len(self.parameters)))
        for link, at in self._inertial():
            units = self._units[link]
            several = Direction(still, {}, link, np.arange(1.0, 11.0) * units)
            # A function that does not look at the bodies needs one call for all ten numbers.
            if link in tree.links and not np.array_equal(forces(several, _STEP), here):
                L[..., at] = _slopes(forces, [Direction(still, {}, link, unit) for unit in np.diag(units)]) / units
        directions, shares = x.of_tree
        if directions:
            L += _slopes(forces, directions) @ shares
        for gain, (owner, attribute, entry, size) in self._gains.items():
            if owner == name:
                now = partial(_with_gain, source, attribute, entry, lambda: forces(Direction(still), 0.0))
                by = _slope(lambda s, f=now, size=size: f(s * size))  # type: ignore[misc]
                L[..., self.parameters.index(gain)] = by / size
        if clips:
            full = np.abs(here) >= function.largest
            K[full], L[full] = 0.0, 0.0
        function.enter(tree)
        return K, L

    def _inertial(self) -> list[tuple[str, slice]]:
        """The links whose inertias are parameters, and the columns of these."""
        first = 2 * self._stretches[0].n
        return [(link, slice(first + 10 * k, first + 10 * k + 10)) for k, link in enumerate(self._links)]

    # Changes

    def _changed(
        self, x: Stretch, later: Stretch, P: Array, timed: str | None
    ) -> tuple[Array, tuple[list[Direction], Array]]:
        """The columns after the changes between a motion and the next one, and what moves its tree."""
        if not x.changes:
            return P, x.of_tree
        tree, t, q, qd = x.motion.tree, float(x.motion.t[-1]), x.motion.q[-1], x.motion.qd[-1]
        flow = x.flow(x.phases[-1], t, q, qd)
        after = later.flow(later.phases[0], t, later.motion.q[0], later.motion.qd[0])
        first: Any = x.changes[0]
        if timed is not None:
            delays = np.zeros(P.shape[1])
            delays[self.parameters.index(timed)] = 1.0
        elif first.what is None:
            row = tree.model.coordinates.index(first.event.coordinate)
            delays = _delayed(P[row], float(flow[row]), t)
        else:
            delays = self._delays(first, x, P, flow)

        def changed(other: Robot, state: State, d: Direction, s: float) -> State:
            for happened in x.changes:
                event: Any = happened.event
                if happened.what is None:
                    rates = _stopping(other, state.q, np.flatnonzero(event.impulse)) @ state.qd
                    state = State.of(other, state.q, rates)
                else:
                    state = d.change(happened, s).happen(other, state).state
            return state

        P, homes = self._differences(x, q, qd, P + np.outer(flow, delays), changed)
        return P - np.outer(after, delays), self._of_tree(homes, 2 * later.n)

    def _delays(self, happened: Happened, x: Stretch, P: Array, flow: Array) -> Array:
        """By how much later a change on a condition happens for each parameter, (p,)."""
        tree, t, q, qd = x.motion.tree, float(x.motion.t[-1]), x.motion.q[-1], x.motion.qd[-1]

        def level(d: Direction, s: float, t: float = t) -> Array:
            return np.array(d.change(happened, s).level(t, _moved(d.tree(tree, s), q, qd, s * d.state)))

        along = Direction(flow)
        rate = float(_slope(lambda s: level(along, s, t + s)))
        far, near = (abs(level(along, s, t + s) - level(along, -s, t - s)) for s in (_STEP, 1e-3 * _STEP))
        if near > 0.5 * far or not abs(rate) > 1e-9:
            raise ScrewdynError(
                f"the condition of {_name(happened)} at t = {t:g} s does not pass zero at a finite rate, so that "
                f"its time has no derivative; let when= return a smooth number instead of True or False"
            )
        directions, shares = self._directions(P, x)
        return -np.array([_slope(partial(level, d)) for d in directions]) @ shares / rate

    def _directions(self, P: Array, x: Stretch) -> tuple[list[Direction], Array]:
        """The directions in which columns go, those of the state first, and their shares in the columns, (k, p)."""
        moved, share = x.of_tree
        directions, shares, zero = [*map(Direction, np.eye(len(P))), *moved], [P, share], np.zeros(len(P))
        for link, units in self._units.items():
            directions += [Direction(zero, {}, link, unit) for unit in np.diag(units)]
            shares += [self._share(f"{link}.{x}", unit) for x, unit in zip(INERTIAL, units.tolist(), strict=True)]
        directions += [Direction(zero, number=number) for number in self._numbers.values()]
        shares += [self._share(name, number[-1]) for name, number in self._numbers.items()]
        return directions, np.concatenate(shares)

    def _of_tree(self, homes: Homes, n: int) -> tuple[list[Direction], Array]:
        """Directions of homes and symbols, for states of n numbers, and their shares in the columns, (k, p)."""
        directions, shares = _of_homes(homes, n)
        directions += [Direction(np.zeros(n), symbol=symbol) for symbol in self._symbols.values()]
        more = [self._share(name, symbol.size) for name, symbol in self._symbols.items()]
        return directions, np.concatenate([shares.reshape(-1, len(self.parameters)), *more])

    def _share(self, name: str, size: float) -> Array:
        """The share in the columns, (1, p), of a direction whose unit is a size of a parameter."""
        share = np.zeros((1, len(self.parameters)))
        share[0, self.parameters.index(name)] = 1 / size
        return share

    def _differences(
        self, x: Stretch, q: Array, qd: Array, P: Array, change: Callable[[Robot, State, Direction, float], State]
    ) -> tuple[Array, Homes]:
        """The columns and homes after a change, by differences of the change along each direction."""
        n, tree, here, still = len(qd), x.motion.tree, x.motion.tree.copy(), Direction(np.zeros(2 * len(qd)))
        state = change(here, _moved(here, q, qd, still.state), still, 0.0)
        space, places = here.model.configurations, _homes(here.topology)

        def outcome(d: Direction, s: float) -> Array:
            other = d.tree(tree, s).copy()
            after = change(other, _moved(other, q, qd, s * d.state), d, s)
            _check_joints(other.topology, (d.symbol.tree(here, s) if d.symbol else here).topology)
            twists = _twists(places, _homes(other.topology)).ravel()
            return np.concatenate([space.difference(state.q, after.q), after.qd - state.qd, twists])

        directions, shares = self._directions(P, x)
        m, names = 2 * len(state.qd), [*tree.coordinates, *(f"{name}'" for name in tree.coordinates)]
        total = np.zeros((m + 6 * len(places), P.shape[1]))
        now = [*here.coordinates, *(f"{name}'" for name in here.coordinates)]
        kept = np.array([[float(a == b) for b in names] for a in now] + [[0.0] * 2 * n] * 6 * len(places))
        # What a change does along a direction in general position it does along all: many leave all rates as they are,
        # others all momenta along freedoms that go on.
        general = Direction(np.cos(np.arange(1.0, 2 * n + 1)))
        found, DR = _slope(partial(outcome, general)), kept
        if np.abs(found - DR @ general.state).max(initial=0.0) >= _UNMOVED:
            gone = np.flatnonzero(~kept[:, :n].any(axis=0))
            DR = _by_momenta(tree, q, qd, here, state, kept)
            DR[:, gone] = np.array([_slope(partial(outcome, Direction(d))) for d in np.eye(2 * n)[gone]]).reshape(-1, len(DR)).T
        if np.abs(found - DR @ general.state).max(initial=0.0) < _UNMOVED * (1 + np.abs(DR).max(initial=0.0)):
            total, directions, shares = DR @ P, directions[2 * n :], shares[2 * n :]
            rates = range(0)
        else:
            rates = range(n, 2 * n)
        for k, (d, share) in enumerate(zip(directions, shares, strict=True)):
            if share.any():  # a change is linear in the rates
                total += np.outer(outcome(d, 1.0) if k in rates else _slope(partial(outcome, d)), share)
        twists = dict(zip(places, total[m:].reshape(len(places), 6, -1), strict=True))
        return total[:m], {x: twist for x, twist in twists.items() if np.abs(twist).max(initial=0.0) > _STILL}


def derivatives_of(
    motions: Sequence[TreeMotion],
    equations: Sequence[EquationsOfMotion],
    events: Sequence[Happened],
    wanted: object,
    sources: Mapping[str, Any],
    calls: Array,
) -> Sensitivities:
    """The derivatives of a run by its start, its events and what else is wanted, of ``simulate``."""
    if not isinstance(wanted, bool | Sequence) or isinstance(wanted, str):
        raise ScrewdynError(f"sensitivities must be True or a list of names of links; got {wanted!r}")
    for motion in motions:
        check_untouched(motion.tree.topology, "sensitivities")
    symbols = _symbols(motions[0].tree)
    known = tuple(dict.fromkeys([*(x for motion in motions for x in motion.tree.links), *symbols]))
    named = {_name(x): x.what for x in events if x.what is not None}
    names = () if isinstance(wanted, bool) else tuple(dict.fromkeys(wanted))
    for name in names:
        owner, _, attribute = name.partition(".") if isinstance(name, str) else ("", "", "")
        if attribute and owner in named:
            varies = attribute != "time" and attribute.rpartition(".")[0] in ("", "when")
            value = _numbers(named[owner], attribute) if varies else None
            if value is None or value.ndim > 1:
                raise ScrewdynError(
                    f"no derivatives by {name!r}: give an attribute of the change, or of its condition (when.…), that "
                    f"is a number or a row of numbers; poses by their position"
                )
        elif name not in known and (not attribute or owner not in sources):
            raise UnknownNameError.of(name, (*known, *named), "link, symbol or change")
        elif name not in known and not _settable(sources[owner], attribute):
            raise ScrewdynError(
                f"{owner}= has no attribute {attribute!r} that is a number or an array of numbers, and can be set"
            )
    # Of motions without duration only the first and the last are parts of the derivatives.
    lasting = [k for k, x in enumerate(motions) if k in (0, len(motions) - 1) or x.t[-1] > x.t[0]]
    changed = [x for x in events if x.what is not None or x.event.impulse.any()]  # type: ignore[attr-defined]
    stretches = []
    for k in lasting:
        motion, last = motions[k], k == lasting[-1]
        changes = [x for x in changed if x.t == motion.t[-1] and not last]
        within = calls[(calls >= motion.t[0]) & (calls < motion.t[-1])]
        stretches.append(Stretch(motion, changes, equations[k], sources, within))
    return Sensitivities(stretches, names)


def _time_of(group: Sequence[Happened]) -> str | None:
    """The name of the time of changes that happen together, as a parameter; None if it follows from a condition."""
    what = group[0].what if group else None
    return None if what is None or what.time is None else f"time of {_name(group[0])}"


def _name(happened: Happened) -> str:
    """The name of a change in those of parameters, such as "grasp crate"."""
    return f"{happened.verb} {happened.subject}"


def _symbols(tree: Robot) -> dict[str, Any]:
    """The symbols that ``subs`` has replaced in a tree that has not changed since, by name."""
    return {x.name: x for x in tree._bound[1]} if tree._bound and tree._bound[2] is tree.topology else {}


def _varied(part: Any, attribute: str, entry: tuple[int, ...], more: float) -> Any:
    """A copy of a change, or of its condition, in which an entry of an attribute is larger."""
    head, _, rest = attribute.partition(".")
    value: Any = getattr(part, head)
    value = _varied(value, rest, entry, more) if rest else _more(value, entry, more)
    if is_dataclass(part):
        return replace(part, **{head: value})  # type: ignore[type-var]
    part = copy.copy(part)
    setattr(part, head, value)
    return part


def _own_force(tree: Robot, phase: Phase, q: Array, qd: Array) -> Array:
    """Forces of springs, dampers and dry friction that slides, (k, nv)."""
    own = tree.model.joint_forces
    dry = 0.0 if phase.bounded is None else own.friction * np.sign(phase.bounded.force)
    return own.viscous_force(qd) + own.spring_force(q) + dry


def _delayed(column: Array, rate: float, t: float) -> Array:
    """How much later a number is zero, (p,), of its derivatives by parameters and by time."""
    if not abs(rate) > 1e-9:
        raise ScrewdynError(f"a joint stops or reaches a stop at t = {t:g} s at no finite rate: no derivatives there")
    return -column / rate


def _without(columns: Array, rows: npt.NDArray[np.intp]) -> Array:
    """Rates or accelerations, of those without, if impulses or forces make some zero, (…, nv, nv).

    ``columns``, (…, nv, k), are what unit impulses on these rows cause.
    """
    one = np.eye(columns.shape[-2])
    return np.asarray(one - columns @ np.linalg.pinv(columns[..., rows, :], _DEPENDENT) @ one[rows])


def _stopping(tree: Robot, q: Array, rows: npt.NDArray[np.intp]) -> Array:
    """The rates after an impact that stops some freedoms, of the rates before, (nv, nv)."""
    found = np.array([tree.impulse_response(q, one) for one in np.eye(tree.nv)[rows]])
    if tree.loops:
        found -= tree._closing(np.tile(q, (len(rows), 1)), found @ tree.constraint_jacobian(q).T)[0]
    return _without(found.T, rows)


def _by_momenta(tree: Robot, q: Array, qd: Array, after: Robot, state: State, kept: Array) -> Array:
    """∂(state after)/∂(state before) of a change that keeps the momenta along the freedoms that go on.

    ``kept`` has ones where freedoms, and their rates, go on: M⁺ δν⁺ = (δp)⁻ − δ(M⁺) ν⁺ in their rows.
    """
    DR, n, m = kept.copy(), len(qd), len(state.qd)

    def momenta(at: Robot, q: Array, qd: Array, along: Array) -> Array:
        space, q = at.model.configurations, np.broadcast_to(q, (len(along), len(q)))
        ends = (at.joint_momentum(space.integrate(q, s * along), qd) for s in (_STEP, -_STEP))
        return np.asarray(np.subtract(*ends).T / (2 * _STEP))

    go = kept[:m, :n]
    p = go @ np.hstack([momenta(tree, q, qd, np.eye(n)), tree.mass_matrix(q)])
    p[:, :n] -= momenta(after, state.q, state.qd, go.T)
    DR[m : 2 * m] = np.linalg.solve(after.mass_matrix(state.q), p)
    return DR


def _numbers(part: object, attribute: str) -> Array | None:
    """An attribute, or one of an attribute, as numbers; None if it is none."""
    for name in attribute.split("."):
        part = getattr(part, name, None)
    with suppress(TypeError, ValueError):
        return None if part is None else np.array(part, dtype=float)
    return None


def _entries(parts: Iterable[object], attribute: str) -> dict[str, tuple[tuple[int, ...], float]]:
    """Indices and sizes of the entries of an attribute of the first part that has it, by ``""`` or ``"[0]"``, …."""
    found = (_numbers(part, attribute) for part in parts)
    value = next((x for x in found if x is not None), np.zeros(0))
    indices = {f"[{','.join(map(str, at))}]" if at else "": at for at in np.ndindex(value.shape)}
    return {label: (at, abs(float(value[at])) or 1.0) for label, at in indices.items()}


def _settable(part: object, attribute: str) -> bool:
    """Whether an attribute is numbers that can be set."""
    if "." in attribute or _numbers(part, attribute) is None:
        return False
    with suppress(AttributeError):
        setattr(part, attribute, getattr(part, attribute))
        return True
    return False


def _more(value: Any, entry: tuple[int, ...], more: float) -> Any:
    """Numbers of which an entry is larger."""
    found = np.array(value, dtype=float)
    found[entry] += more
    return found if found.shape else float(found)


def _with_gain(source: Any, attribute: str, entry: tuple[int, ...], forces: Callable[[], Array], more: float) -> Array:
    """Forces while an entry of an attribute of a function is larger."""
    kept = getattr(source, attribute)
    setattr(source, attribute, _more(kept, entry, more))
    try:
        return forces()
    finally:
        setattr(source, attribute, kept)


def _of_homes(homes: Homes, n: int) -> tuple[list[Direction], Array]:
    """Directions of the homes of all links together, for states of n numbers, and their shares in columns, (k, p)."""
    if not homes:
        return [], np.zeros((0, 0))
    U, sizes, Vt = np.linalg.svd(np.concatenate([*homes.values()]), full_matrices=False)
    kept = np.flatnonzero(sizes > _SMALL * sizes[0])
    found = [Direction(np.zeros(n), dict(zip(homes, U[:, k].reshape(-1, 6), strict=True))) for k in kept]
    return found, sizes[kept, None] * Vt[kept]


def _sizes(link: str, trees: Sequence[Robot]) -> Array:
    """Sizes of changes of ten numbers that a body allows: m, m r and m r² with r its least radius of gyration."""
    bodies = [tree.link(link).inertia for tree in trees if link in tree.links]
    body = next((x for x in bodies if x is not None), None)
    mass = 1.0 if body is None else float(body.mass)
    least = 0.0 if body is None else float(np.linalg.eigvalsh(np.asarray(body.tensor, dtype=np.float64))[0])
    if body is not None and not least > 0.0:
        raise InertiaError(
            f"derivatives by the numbers of {link!r} need a body with inertia about every axis, unlike a rod or a point"
        )
    radius = np.sqrt(least / mass) if body is not None else 1e-2
    return mass * np.repeat([1.0, radius, radius**2], [1, 3, 6])


def _slope(f: Callable[[float], Array]) -> Array:
    """df/ds at s = 0."""
    return (f(_STEP) - f(-_STEP)) / (2 * _STEP)


def _slopes(f: Callable[[Any, float], Array], directions: Iterable[Any]) -> Array:
    """df/ds along some directions, (…, k)."""
    return np.stack([_slope(partial(f, d)) for d in directions], axis=-1)


def _moved(tree: Robot, q: Array, qd: Array, direction: Array) -> State:
    """The state at some step along the freedoms and rates, on closed loops."""
    n = len(qd)
    q, qd = tree.model.configurations.integrate(q, direction[:n]), qd + direction[n:]
    return State.of(tree, *Closure(tree).project(q, qd))


def _homes(topology: Topology) -> dict[Key, Array]:
    """Poses of all links in their parents at neutral positions, of those of locked joints unlocked too; of loops."""
    homes = {("link", x): at.home for x, at in topology.attachments.items()}
    homes |= {("locked", x): at.locked.home for x, at in topology.attachments.items() if at.locked is not None}
    return homes | {("loop", name): loop.home for name, loop in topology.loops.items()}


def _distinct(names: Sequence[str | None]) -> list[str | None]:
    """The same names, with a number where one comes again."""
    return [x if x is None or x not in names[:k] else f"{x} ({names[: k + 1].count(x)})" for k, x in enumerate(names)]


def _check_joints(after: Topology, known: Topology) -> None:
    """ScrewdynError if joints after a change depend on parameters otherwise than those of a tree with these."""

    def numbers(joint: Joint) -> Array:
        own = [joint.damping, joint.friction, joint.stiffness, joint.rest, joint.armature]
        return np.concatenate([np.ravel(joint.screws), own]).astype(float)

    pairs = [(x.name, x.joint, known.attachments[link].joint) for link, x in after.attachments.items()]
    pairs += [(name, x.joint, known.loops[name].joint) for name, x in after.loops.items()]
    for name, x, y in pairs:
        if x is not y and np.abs(numbers(x) - numbers(y)).max() > _STILL:
            raise ScrewdynError(
                f"no derivatives of this run: a change reverses joint {name!r}, whose axis or forces depend on a "
                f"parameter"
            )


def _twists(homes: Mapping[Key, Array], now: Mapping[Key, Array]) -> Array:
    """The twists from home poses to others, (k, 6), most of which have not moved."""
    T, X = (np.array([x[key] for key in homes]).reshape(-1, 4, 4) for x in (homes, now))
    found, moved = np.zeros((len(T), 6)), (T != X).any(axis=(1, 2))
    if moved.any():
        found[moved] = screw.log(screw.inverse(T[moved]) @ X[moved])
    return found


def _with_homes(tree: Robot, twists: Mapping[Key, Array]) -> Robot:
    """A copy of a tree in which links and loops have moved by twists in their own frames from their homes."""
    tree, still = tree.copy(), np.zeros(6)
    moved, loops = [], dict(tree.topology.loops)
    for name in {name: None for kind, name in twists if kind != "loop"}:
        at = tree.topology.attachments[name]
        twist, locked = twists.get(("link", name), still), at.locked
        home = at.home @ screw.exp(twist)
        if locked is not None:  # it will be unlocked where it is
            if (own := twists.get(("locked", name))) is not None:
                twist = twist - screw.twist_in(screw.inverse(locked.home) @ at.home, own)
                locked = locked._replace(home=locked.home @ screw.exp(own))
            locked = _slid(locked, at.name, twist)
        moved.append(at.by(at.joint, home, locked))
    for (kind, name), twist in twists.items():
        if kind == "loop":
            loops[name] = replace(loops[name], home=loops[name].home @ screw.exp(twist))
    tree.topology = replace(tree.topology.with_attachments(*moved), loops=loops)
    return tree


def _slid(locked: Locked, name: str, twist: Array) -> Locked:
    """A locked joint whose positions have moved by a small twist of its link, in its own frame."""
    rates = np.linalg.lstsq(locked.joint.screws, twist)[0]
    space = ConfigurationSpace({name: locked.joint})
    q = space.integrate(np.array(locked.q), np.asarray(rates, np.float64))
    return locked._replace(q=tuple(q.tolist()))


def _with_inertia(tree: Robot, link: str, more: Array) -> Robot:
    """A copy of a tree in which the ten numbers of a link are larger."""
    tree = tree.copy()
    tree.topology = tree.topology.set_inertia(link, _larger(tree.link(link).inertia, more))
    return tree


def _larger(body: Inertia | None, more: Array) -> Inertia:
    """A body with larger ten numbers, which may be none that exists."""
    m, *h, xx, xy, xz, yy, yz, zz = more + (np.zeros(10) if body is None else body.parameters)
    c = np.array(h) / m
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theta = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        return Inertia.effective(m, c, theta - m * (c @ c * np.eye(3) - np.outer(c, c)))


def _brings(happened: Happened, link: str, more: Array) -> Any:
    """The event with a body whose ten numbers are larger."""
    what: Any = happened.what
    body = getattr(what, "body", None)
    if isinstance(body, Inertia):
        return replace(what, body=_larger(body, more))
    if isinstance(body, Link):
        return replace(what, body=replace(body, inertia=_larger(body.inertia, more)))
    return what
