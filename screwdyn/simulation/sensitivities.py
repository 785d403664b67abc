"""Derivatives of a run by its start, inertias of links, gains, symbols and events, through changes of the tree.

Between changes δx = (δq along the freedoms, δν) obeys δẋ = A δx + b, with A of the linearized equation of motion and b
for parameters and for torques that are held. It is solved by collocation at Gauss points (of order 10, between calls
6), in intervals that are divided until the slopes in each are smooth. At a change each column is moved along the motion
to the time at which the change happens for it, through the change, and back: the saltation matrix
Ξ = DR + (F⁺ − DR F⁻) h_x / (h_x F⁻) (Burden, Sastry, Koditschek and Revzen 2016). DR is taken by differences of the
change itself, along the freedoms and all else that moves, so that every kind of change has it; it is linear in the
rates. Where a direction in general position shows that all rates, or all momenta, along freedoms that go on are kept,
that gives it along the state. Where a stop or friction sets in, R = 1. Poses of links that a change makes constant,
such as that of a locked joint, remain parameters of the motion. docs/simulation.md.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, is_dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from screwdyn.changes.change import Happened
from screwdyn.core import Array, InertiaError, ScrewdynError, ShapeError, UnknownNameError, expressions
from screwdyn.forms.derivatives import Derivatives
from screwdyn.mechanism import Link, Topology, check_untouched
from screwdyn.mechanism.inertia import INERTIAL, Inertia
from screwdyn.mechanism.link import Locked
from screwdyn.physics import Robot, State
from screwdyn.physics.charts import ConfigurationSpace, screws_at
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
# Singular values of mobilities that count as zero where loops and stops hold the same: relative to the largest, and to
# mobilities without loops, as those of freedoms that loops hold alone are rounding.
_DEPENDENT, _HELD = 1e-9, 1e-12
# Share of the last term, of degree 4, of the slopes in an interval above which it is divided; least part of a step of
# the run, and least length, relative or in s, such as between a call and an event that rounding tells apart.
_ROUGH, _LEAST, _SHORTEST = 1e-3, 1e-4, 1e-12
# Steps of the run in a motion of which all begin an interval; intervals that are solved together, for their memory.
_FEW, _AT_ONCE = 20, 256
# Calls of a function of the user from which its derivatives at many are found, and from which its curvatures.
_NODES, _CURVED = 14, 7
# Halvings of a step of a run down to rounding.
_HALVINGS = 50


class Gauss:
    """Gauss-Legendre points on (0, 1), and what integrates functions by their values there."""

    def __init__(self, stages: int) -> None:
        self.stages, powers = stages, np.arange(1, stages + 1)
        self.points, self.weights = (0.5 * x for x in np.polynomial.legendre.leggauss(stages))
        self.points += 0.5
        # Integrals of the Lagrange polynomials up to each point, and the weights of the last term of a function.
        self.up_to = self.points[:, None] ** powers / powers @ np.linalg.inv(np.vander(self.points, increasing=True))
        legendre = np.polynomial.legendre.legval(2 * self.points - 1, [0] * (stages - 1) + [1])
        self.last = (2 * stages - 1) * self.weights * legendre


# In intervals between calls, which are short, and in others.
_SHORT, _LONG = Gauss(3), Gauss(5)


# Twists of the homes of links and of loops by parameter, (6, p), by kind and name.
Key = tuple[str, str]
Homes = dict[Key, Array]


class Quantity:
    """What is the same all the time and a parameter: names of its numbers, and sizes of steps of these, (k,).

    Its methods give a tree of the run, a change, and a function of the user, where the numbers are ``more``, (k,).
    """

    names: tuple[str, ...] = ()
    sizes: Array = np.zeros(0)
    # The name of the function or of the change that has it as an attribute.
    owner = ""

    def tree(self, tree: Robot, more: Array) -> Robot:
        """A tree, itself if it does not depend on them."""
        return tree

    def change(self, happened: Happened, more: Array) -> Any:
        """A change."""
        return happened.what

    @contextmanager
    def function(self, source: Any, more: Array) -> Iterator[None]:
        """Let a function have them."""
        yield

    def pass_on(self, tree: Robot, more: Array, moved: Robot) -> None:
        """Note the tree after a change, and what the change made of :meth:`tree` before it."""


class Body(Quantity):
    """The ten numbers of a link, and sizes that a body allows: m, m r and m r² with r its least radius of gyration."""

    def __init__(self, link: str, trees: Sequence[Robot]) -> None:
        bodies = [tree.link(link).inertia for tree in trees if link in tree.links]
        body = next((x for x in bodies if x is not None), None)
        mass = 1.0 if body is None else float(body.mass)
        least = 0.0 if body is None else float(np.linalg.eigvalsh(np.asarray(body.tensor, dtype=np.float64))[0])
        if body is not None and not least > 0.0:
            raise InertiaError(
                f"derivatives by the numbers of {link!r} need a body with inertia about every axis, unlike a rod or a "
                f"point"
            )
        radius = np.sqrt(least / mass) if body is not None else 1e-2
        self.link, self.names = link, tuple(f"{link}.{name}" for name in INERTIAL)
        self.sizes = mass * np.repeat([1.0, radius, radius**2], [1, 3, 6])

    def tree(self, tree: Robot, more: Array) -> Robot:
        """A copy with another body, if it has the link."""
        if self.link not in tree.links:
            return tree
        topology, tree = tree.topology, tree.copy()
        tree.topology = topology.set_inertia(self.link, _larger(tree.link(self.link).inertia, more))
        return tree

    def change(self, happened: Happened, more: Array) -> Any:
        """A change that brings another body."""
        what: Any = happened.what
        body = getattr(what, "body", None) if happened.subject == self.link else None
        if isinstance(body, Inertia):
            return replace(what, body=_larger(body, more))
        if isinstance(body, Link):
            return replace(what, body=replace(body, inertia=_larger(body.inertia, more)))
        return what


class Number(Quantity):
    """An attribute, of numbers, of a function of the user, of a change, or of the condition of one."""

    def __init__(self, name: str, parts: Iterable[object]) -> None:
        self.owner, _, self.attribute = name.partition(".")
        found = (_numbers(part, self.attribute) for part in parts)
        value = next((x for x in found if x is not None), np.zeros(0))
        self.names = tuple(f"{name}[{','.join(map(str, at))}]" if at else name for at in np.ndindex(value.shape))
        self.sizes = np.where(value == 0.0, 1.0, np.abs(value)).ravel()

    def change(self, happened: Happened, more: Array) -> Any:
        """A copy of the change that has them."""
        return _varied(happened.what, self.attribute, more) if _name(happened) == self.owner else happened.what

    @contextmanager
    def function(self, source: Any, more: Array) -> Iterator[None]:
        """Set the attribute meanwhile."""
        kept = getattr(source, self.attribute)
        setattr(source, self.attribute, _more(kept, more))
        try:
            yield
        finally:
            setattr(source, self.attribute, kept)


class Symbol(Quantity):
    """A symbol of the tree at the start of a run, and what the run does to trees with other values of it.

    Homes of links, loops and locked joints are parameters of their own, but those of the tree that it begins with.
    """

    def __init__(self, name: str, tree: Robot) -> None:
        assert tree._bound is not None
        origin, values, start = tree._bound
        self.names = (name,)
        own = {x: value for x, value in values.items() if x.name == name}  # of different assumptions
        size = abs(float(next(iter(own.values())))) or 1.0
        self.sizes = np.array([size])
        larger = {s * size: {x: value + s * size for x, value in own.items()} for s in (_STEP, -_STEP)}
        there: Any = {(start, more): origin.subs(values | x) for more, x in larger.items()}  # type: ignore[attr-defined]
        self.trees: dict[tuple[Topology, float], Robot] = there

    def tree(self, tree: Robot, more: Array) -> Robot:
        """A tree with the bodies, joints and gravity of another value."""
        return self.trees.get((tree.topology, float(more[0])), tree)

    def pass_on(self, tree: Robot, more: Array, moved: Robot) -> None:
        """Note what a change made of its tree; the tree itself then has the homes."""
        self.trees[tree.topology, float(more[0])] = _placed(moved, _homes(tree.topology))


@dataclass(frozen=True, eq=False)
class Direction:
    """A direction in which all moves that a run depends on: the state, (2 nv,), homes, numbers of a quantity."""

    state: Array
    homes: Mapping[Key, Array] = field(default_factory=dict)
    quantity: Quantity = field(default_factory=Quantity)
    more: Array = field(default_factory=lambda: np.zeros(0))
    # Trees that are made already, by what they are made of.
    _made: dict[tuple[Robot, float], Robot] = field(default_factory=dict, repr=False)

    def tree(self, tree: Robot, s: float) -> Robot:
        """The tree at a step; itself if it does not move."""
        if not s:
            return tree
        if (tree, s) not in self._made:
            at = _homes(tree.topology) if self.homes else {}
            moved = {x: at[x] @ screw.exp(s * twist) for x, twist in self.homes.items()}
            self._made[tree, s] = _placed(tree, moved) if moved else self.quantity.tree(tree, s * self.more)
        return self._made[tree, s]

    def change(self, happened: Happened, s: float) -> Any:
        """A change at a step."""
        return self.quantity.change(happened, s * self.more)


# Directions, and their shares in the columns, (k, p); the state after a change of a tree along a direction at a step.
Moving = tuple[list[Direction], Array]
Change = Callable[[Robot, State, Direction, float], State]


@dataclass(eq=False)
class Stretch:
    """One motion of a run, what acts in it, the changes at its end, and the columns in it, which are found in order."""

    motion: TreeMotion
    changes: Sequence[Happened]
    equations: EquationsOfMotion
    # The functions of the user by name, and the times of the calls whose torques are held.
    sources: Mapping[str, Any]
    calls: Array
    # When its run began: what is due then, on a condition that holds already, has no other time.
    began: float

    def __post_init__(self) -> None:
        self.phases = self.equations.phases or [Phase(float(self.motion.t[0]))]
        self.n = len(self.motion.coordinates)
        self.moving: Moving = [], np.zeros((0, 0))
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

    @property
    def gauss(self) -> Gauss:
        """The points in each interval."""
        return _SHORT if self.sampled else _LONG

    def begin(self, before: Stretch | None) -> Array:
        """Find the held torques; returns which freedoms of the motion before go on, (nv, nv before).

        ScrewdynError if the torques of the run were others, because the function that gave them has a memory.
        """
        kept = _going_on((before or self).motion.tree, self.motion.tree)
        if self.sampled:
            controller: Any = self.equations.controller
            controller.enter(self.motion.tree)
            self.at_calls = self.path(self.calls)
            called = [controller.called(t, *at) for t, *at in zip(self.calls.tolist(), *self.at_calls, strict=True)]
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
        if not (pressed or clipped) or not self.motion.pieces:
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
        held = self.held[np.searchsorted(self.calls, times, side="right")]
        tried = equations.disturbance if self.sampled else equations.disturbance or equations.controller
        if all(x is None for x in (tried, equations.bounded, equations.springs)):
            return held + equations.own.viscous_force(qd) + equations.own.spring_force(q)
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
        first, trees = stretches[0].motion, [x.motion.tree for x in stretches]
        links = [x for x in wanted if any(x in tree.links for tree in trees)]
        symbols = {x: Symbol(x, first.tree) for x in wanted if x in _symbols(first.tree) and x not in links}
        parts = [part for x in stretches for part in (*x.sources.items(), *((_name(h), h.what) for h in x.changes))]
        others = [x for x in wanted if x not in links and x not in symbols]
        numbers = [Number(x, [part for owner, part in parts if owner == x.partition(".")[0]]) for x in others]
        gains = [x for x in numbers if any(x.owner in stretch.sources for stretch in stretches)]
        changed = [x for x in numbers if x not in gains]
        self._quantities = [*(Body(x, trees) for x in links), *gains, *symbols.values(), *changed]
        start = first.coordinates
        times = _distinct([_time_of(x.changes) for x in stretches])
        self.parameters: tuple[str, ...] = (
            *(f"q:{name}" for name in start),
            *(f"qd:{name}" for name in start),
            *(name for x in self._quantities for name in x.names),
            *filter(None, times),
        )
        n = len(start)
        P = np.zeros((2 * n, len(self.parameters)))
        P[:, : 2 * n] = np.eye(2 * n)
        T, homes = np.zeros((n, len(self.parameters))), Homes()
        stretches[0].moving = self._moving(homes, 2 * n)
        if first.tree.loops or symbols:  # as a change that has no effect, but by other homes
            q, qd, tree = first.q[0], first.qd[0], first.tree
            start_state = _moved(tree, q, qd, np.zeros(2 * n))
            P, homes = self._across(stretches[0], q, qd, P, lambda tree, state, d, s: state, tree, start_state)
            stretches[0].moving = self._moving(homes, 2 * n)
        stretches[0].begin(None)
        for x, later, timed in zip(stretches, [*stretches[1:], None], times, strict=True):
            P, T = self._through(x, P, T)
            if later is not None:
                T = later.begin(x) @ T
                P, later.moving = self._changed(x, later, P, timed)

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
        if not callable(cost):
            raise ScrewdynError(f"cost must be a function of states; got {cost!r}")
        total = np.zeros(len(self.parameters))
        for k, (t, state) in enumerate(zip(times, states, strict=True)):

            def along(d: Direction, s: float) -> Array:
                moved = _moved(d.tree(state.tree, s), state.q, state.qd, s * d.state)  # noqa: B023
                value = expressions.read_or_nan(given := cost(*states[:k], moved, *states[k + 1 :]))  # noqa: B023
                if np.shape(value) or not np.isfinite(value):
                    raise ScrewdynError(f"cost must return one finite number; it returned {given!r}")
                return np.asarray(value)

            directions, shares = self._directions(self.at(t), self._stretch(t))
            total += _slopes(along, directions) @ shares
        return dict(zip(self.parameters, total.tolist(), strict=True))

    def joined(self, other: Sensitivities) -> Sensitivities:
        """The derivatives of a run that is continued by another one, by the parameters of both."""
        end, begin = self._stretches[-1].motion.tree, other._stretches[0].motion.tree
        if end.topology is not begin.topology and any(isinstance(x, Symbol) for x in self._quantities):
            raise ScrewdynError(
                "no derivatives of this run: the tree has been changed between its two parts; let changes be events"
            )
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
            u = self._driving(x, T)
            for start, Phi, beta in self._intervals(x, phase, until):
                if start in calls:
                    T = K[calls[start]] @ P + L[calls[start]]
                    u = self._driving(x, T)
                x.starts.append(start)
                x.columns.append((P, T))
                x.of_phase.append(phase)
                P = Phi @ P + beta @ u
        x.starts.append(end)
        x.columns.append((P, T))
        return P, T

    def _at_calls(self, x: Stretch, part: slice) -> tuple[Array, Array]:
        """Derivatives of held torques at calls, as of :meth:`_response`, from a part of the calls if they are smooth.

        They are polynomials of the time where these give the torques of all calls, and the derivatives of more calls
        than they have coefficients; other spans of time are halved.
        """
        times, held, (q, qd) = x.calls[part], x.held[1:][part], (y[part] for y in x.at_calls)
        here = held if not x.equations.controller.saturate else None  # type: ignore[union-attr]
        if len(times) < 2 * _NODES:
            return self._response(x, "torque", times, q, qd, here)
        wanted = times[0] + (times[-1] - times[0]) * 0.5 * (1 - np.cos(np.pi * (np.arange(_NODES) + 0.5) / _NODES))
        some = np.unique(np.abs(times[:, None] - wanted).argmin(axis=0))
        found = np.concatenate(self._response(x, "torque", times[some], q[some], qd[some]), axis=-1)
        values = np.hstack([held[some], found.reshape(len(some), -1)])
        fitted, apart = _fitted(times, some, values, len(some) - 4)
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
            rough = (solved[2] > _ROUGH) & (np.diff(now)[:, 0] > shortest)
            found += [(float(now[k, 0]), solved[0][k], solved[1][k]) for k in np.flatnonzero(~rough)]
            parts = np.maximum(np.ceil(1.2 * (solved[2] / _ROUGH) ** (1 / (x.gauss.stages - 1))), 2).astype(int)
            edges = [np.linspace(now[k, 0], now[k, 1], int(parts[k]) + 1) for k in np.flatnonzero(rough)]
            todo = np.concatenate([*(np.column_stack([x[:-1], x[1:]]) for x in edges), todo])
        return sorted(found, key=lambda x: x[0])

    def _solved(self, x: Stretch, phase: Phase, intervals: Array) -> tuple[Array, Array, Array]:
        """Φ, (k, 2 nv, 2 nv), and β of δx₁ = Φ δx₀ + β u over intervals, and the share of the last terms of slopes."""
        starts, h, n, gauss = intervals[:, 0], np.diff(intervals)[:, 0], x.n, x.gauss
        R, A, b = self._linear(x, phase, (starts[:, None] + h[:, None] * gauss.points).ravel())
        driven, columns, m, count = np.flatnonzero(b.any(axis=(0, 1))), b.shape[-1], gauss.stages * n, len(h)
        R, A, b = (y.reshape(count, gauss.stages, n, y.shape[-1]) for y in (R, A, b[..., driven]))
        # Rates, slopes of positions, and positions in the stages, by the slopes of the rates in these, which are
        # the unknowns, by the positions and rates before, and by u.
        width, a = m + 2 * n + len(driven), h[:, None, None] * gauss.up_to
        rates = np.zeros((count, gauss.stages, n, width))
        rates[..., :m] = (a[:, :, None, :, None] * np.eye(n)[:, None]).reshape(count, gauss.stages, n, m)
        rates[..., m + n : m + 2 * n] = np.eye(n)
        before = np.eye(n, width, m)
        moving: Array = rates - R @ before
        if R.any():
            turning = np.eye(m) + (a[:, :, None, :, None] * R[:, :, :, None]).reshape(count, m, m)
            moving = np.asarray(np.linalg.solve(turning, moving.reshape(count, m, width))).reshape(moving.shape)
        found = A[..., :n] @ ((a @ moving.reshape(count, gauss.stages, n * width)).reshape(moving.shape) + before)
        found += A[..., n:] @ rates
        found[..., m + 2 * n :] += b
        system = found.reshape(count, m, width)
        solved = np.linalg.solve(np.eye(m) - system[..., :m], system[..., m:])
        positions = moving[..., m:] + moving[..., :m] @ solved[:, None]
        slopes = np.concatenate([positions, solved.reshape(positions.shape)], axis=2)
        both = np.array([gauss.weights, gauss.last]) @ slopes.reshape(count, gauss.stages, 2 * n * (width - m))
        mean, last = both.swapaxes(0, 1).reshape(2, count, *slopes.shape[2:])
        total, size = h[:, None, None] * mean, np.abs(slopes).max(axis=(1, 2), initial=1e-300)
        size += 1e-6 * size.max(axis=1, keepdims=True, initial=0.0)
        share = np.abs(last).max(axis=1, initial=0.0) / size
        beta = np.zeros((count, 2 * n, columns))
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
            inverse, at_rest = _holding(tree, q, by[2], held), tree.forward_dynamics(q, qd, force)[:, held, None]
            force[:, held] -= (inverse @ at_rest)[..., 0]
            by = model.derived(Derivatives).forward_dynamics(q, qd, force)
            project = project - by[2][..., held] @ inverse @ project[held]
        by_tau = project @ by[2]
        K, L = self._feedback(x, phase, times, q, qd)
        A, b = project @ np.concatenate([by[0], by[1]], axis=-1) + by_tau @ K, by_tau @ L
        bodies = [x for x in self._quantities if isinstance(x, Body) and x.link in tree.links]
        qdd = tree.forward_dynamics(q, qd, force) if bodies else qd
        for body in bodies:  # exact
            first = self.parameters.index(body.names[0])
            b[..., first : first + 10] -= by_tau @ tree.reference_regressor(body.link, q, qd, qd, qdd)
        own = _own_force(tree, phase, q, qd)

        def accelerations(d: Direction, s: float) -> Array:
            other = d.tree(tree, s)
            more = 0.0 if d.homes else _own_force(other, phase, q, qd) - own
            return np.asarray((project @ other.forward_dynamics(q, qd, force + more)[..., None])[..., 0])

        b += _by(accelerations, x.moving, lambda d: d.quantity not in bodies and d.tree(tree, _STEP) is not tree)
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

    def _response(
        self, x: Stretch, name: str, times: Array, q: Array, qd: Array, here: Array | None = None
    ) -> tuple[Array, Array]:
        """Derivatives of what a function of the user gives, by the state and by parameters, as for forces.

        At successive calls ``here`` is what it gives, (k, nv).
        """
        tree, n = x.motion.tree, x.n
        function: Any = x.equations.disturbance if name == "wrenches" else x.equations.controller
        source, space = x.sources[name], tree.model.configurations

        def forces(d: Direction, s: float, at: Any = slice(None)) -> Array:
            if (other := d.tree(tree, s)) is not function.tree:
                function.enter(other)
            step, there = s * d.state, (q[at], qd[at])
            if step.any():
                there = space.integrate(q[at], np.broadcast_to(step[:n], qd[at].shape)), qd[at] + step[n:]
            with d.quantity.function(source, s * d.more) if d.quantity.owner == name else nullcontext():
                return np.array([function.asked(*y) for y in zip(times[at].tolist(), *there, strict=True)])

        still = np.zeros(2 * n)
        given = getattr(source, "derivative", None) if name == "torque" else None
        clips = name == "torque" and function.saturate
        successive = times if here is not None else times[:0]
        if here is None:
            here = forces(Direction(still), 0.0) if clips or self._quantities else np.zeros((len(times), n))
        if given is None:
            K = _differences(forces, here, successive)
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
        # What a function looks at shows in one call for all numbers of a quantity.
        several = {y: Direction(still, {}, y, np.arange(1.0, 1 + len(y.sizes)) * y.sizes) for y in self._quantities}
        moves = [y for y, d in several.items() if y.owner == name or d.tree(tree, _STEP) is not tree]
        seen = {y for y in moves if not np.array_equal(forces(several[y], _STEP), here)}
        L = np.zeros((len(times), n, len(self.parameters)))
        L += _by(forces, x.moving, lambda d: bool(d.homes) or d.quantity in seen)
        if clips:
            full = np.abs(here) >= function.largest
            K[full], L[full] = 0.0, 0.0
        function.enter(tree)
        return K, L

    # Changes

    def _changed(self, x: Stretch, later: Stretch, P: Array, timed: str | None) -> tuple[Array, Moving]:
        """The columns after the changes between a motion and the next one, and what moves its tree."""
        if not x.changes:
            return P, x.moving
        tree, t, q, qd = x.motion.tree, float(x.motion.t[-1]), x.motion.q[-1], x.motion.qd[-1]
        flow = x.flow(x.phases[-1], t, q, qd)
        after = later.flow(later.phases[0], t, later.motion.q[0], later.motion.qd[0])
        first: Any = x.changes[0]
        if timed is not None:
            delays = np.zeros(P.shape[1])
            delays[self.parameters.index(timed)] = 1.0
        elif t == x.began:
            delays = np.zeros(P.shape[1])
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

        here, last = later.motion.tree, x.changes[-1]
        if last.what is None:
            other = tree.copy()
            state = changed(other, State.of(other, q, qd), Direction(np.zeros(len(P))), 0.0)
        else:
            state = last.event.state
        P, homes = self._across(x, q, qd, P + np.outer(flow, delays), changed, here, state)
        return P - np.outer(after, delays), self._moving(homes, 2 * later.n)

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
        return -_slopes(level, directions) @ shares / rate

    def _directions(self, P: Array, x: Stretch) -> Moving:
        """The directions in which columns go, those of the state first, and their shares in the columns, (k, p)."""
        return [*map(Direction, np.eye(len(P))), *x.moving[0]], np.concatenate([P, x.moving[1]])

    def _moving(self, homes: Homes, n: int) -> Moving:
        """Directions of homes and quantities, for states of n numbers, and their shares in the columns, (k, p)."""
        directions, shares, zero = list[Direction](), list[Array](), np.zeros(n)
        if homes:
            U, sizes, Vt = np.linalg.svd(np.concatenate([*homes.values()]), full_matrices=False)
            kept = np.flatnonzero(sizes > _SMALL * sizes[0])
            directions = [Direction(zero, dict(zip(homes, U[:, k].reshape(-1, 6), strict=True))) for k in kept]
            shares = [sizes[k] * Vt[k] for k in kept]
        for x in self._quantities:
            directions += [Direction(zero, {}, x, unit) for unit in np.diag(x.sizes)]
            shares += [(np.array(self.parameters) == name) / size for name, size in zip(x.names, x.sizes, strict=True)]
        return directions, np.array(shares).reshape(len(shares), len(self.parameters))

    def _across(
        self, x: Stretch, q: Array, qd: Array, P: Array, change: Change, here: Robot, state: State
    ) -> tuple[Array, Homes]:
        """The columns and homes after a change to a tree and a state, by differences of it along each direction."""
        n, tree, space, places = len(qd), x.motion.tree, here.model.configurations, _homes(here.topology)
        poses = _poses(places)

        def outcome(d: Direction, s: float) -> Array:
            other = d.tree(tree, s).copy()
            after = change(other, _moved(other, q, qd, s * d.state), d, s)
            if d.homes:
                _check_joints(other.topology, here.topology)
            d.quantity.pass_on(here, s * d.more, other)
            moved = _poses(_homes(other.topology)) - poses
            return np.concatenate([space.difference(state.q, after.q), after.qd - state.qd, moved.ravel()])

        m, kept = 2 * len(state.qd), np.zeros((2 * len(state.qd) + poses.size, 2 * n))
        kept[: m // 2, :n] = kept[m // 2 : m, n:] = _going_on(tree, here)
        DR = kept
        # What a change does along a direction in general position it does along all: many leave all rates as they are,
        # others all momenta along freedoms that go on.
        general, each = Direction(np.cos(np.arange(1.0, 2 * n + 1))), [*map(Direction, np.eye(2 * n))]
        ahead = outcome(general, _STEP)
        if np.abs(ahead / _STEP - kept @ general.state).max(initial=0.0) > _UNMOVED:
            if not (tree.loops or here.loops):
                DR = _by_momenta(tree, q, qd, here, state, kept)
                for k in np.flatnonzero(~kept[:, :n].any(axis=0)):
                    DR[:, k] = _slope(partial(outcome, each[k]))
            apart = np.abs((ahead - outcome(general, -_STEP)) / (2 * _STEP) - DR @ general.state).max(initial=0.0)
            if apart > _UNMOVED * (1 + np.abs(DR).max(initial=0.0)):  # it is linear in the rates
                by_rates = [outcome(d, 1.0) for d in each[n:]]
                DR = np.column_stack([*(_slope(partial(outcome, d)) for d in each[:n]), *by_rates])

        def acts(d: Direction) -> bool:
            return d.tree(tree, _STEP) is not tree or any(d.change(y, _STEP) is not y.what for y in x.changes)

        total = DR @ P + _by(outcome, x.moving, acts)
        return total[:m], _twists(places, total[m:].reshape(*poses.shape, -1))


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
        stretches.append(Stretch(motion, changes, equations[k], sources, within, float(motions[0].t[0])))
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


def _varied(part: Any, attribute: str, more: Array) -> Any:
    """A copy of a change, or of its condition, in which the numbers of an attribute are larger."""
    head, _, rest = attribute.partition(".")
    value: Any = getattr(part, head)
    value = _varied(value, rest, more) if rest else _more(value, more)
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


def _going_on(before: Robot, after: Robot) -> Array:
    """Ones where freedoms after a change are freedoms before it, (nv after, nv before)."""
    names, kept = {name: k for k, name in enumerate(before.coordinates)}, np.zeros((after.nv, before.nv))
    for row, name in enumerate(after.coordinates):
        if name in names:
            kept[row, names[name]] = 1.0
    return kept


def _holding(tree: Robot, q: Array, mobility: Array, held: npt.NDArray[np.intp]) -> Array:
    """Forces on some freedoms, (…, k, k), by the rates or accelerations of these that they shall make zero."""
    own, free = mobility[..., held[:, None], held], np.diagonal(tree.mass_matrix(q), axis1=-2, axis2=-1).min(axis=-1)
    largest = np.maximum(np.linalg.norm(own, 2, axis=(-2, -1)), np.finfo(float).tiny)
    return np.asarray(np.linalg.pinv(own, np.maximum(_DEPENDENT, _HELD / (free * largest))))


def _stopping(tree: Robot, q: Array, rows: npt.NDArray[np.intp]) -> Array:
    """The rates after an impact that stops some freedoms, of the rates before, (nv, nv)."""
    mobility = tree.model.derived(Derivatives).forward_dynamics(q, *np.zeros((2, tree.nv)))[2]
    one = np.eye(tree.nv)
    return np.asarray(one - mobility[:, rows] @ _holding(tree, q, mobility, rows) @ one[rows])


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


def _settable(part: object, attribute: str) -> bool:
    """Whether an attribute is numbers that can be set."""
    if "." in attribute or _numbers(part, attribute) is None:
        return False
    with suppress(AttributeError):
        setattr(part, attribute, getattr(part, attribute))
        return True
    return False


def _more(value: Any, more: Array) -> Any:
    """Larger numbers."""
    found = np.array(value, dtype=float) + more.reshape(np.shape(value))
    return found if found.shape else float(found)


def _slope(f: Callable[[float], Array]) -> Array:
    """df/ds at s = 0."""
    return (f(_STEP) - f(-_STEP)) / (2 * _STEP)


def _slopes(f: Callable[[Any, float], Array], directions: Iterable[Any]) -> Array:
    """df/ds along some directions, (…, k)."""
    return np.stack([_slope(partial(f, d)) for d in directions], axis=-1)


def _by(f: Callable[[Direction, float], Array], moving: Moving, which: Callable[[Direction], bool]) -> Array | float:
    """What a function gains along some of the directions, (…, p); 0 if there is none of these."""
    some = [k for k, d in enumerate(moving[0]) if which(d)]
    return _slopes(f, (moving[0][k] for k in some)) @ moving[1][some] if some else 0.0


def _differences(forces: Callable[..., Array], here: Array, times: Array) -> Array:
    """Derivatives of a function by the state, (k, nv, 2 nv), at calls at these times, from its values here.

    Differences to one side, and the half of the curvature times the step that is too much in them, are enough where
    it is a polynomial of the time that some calls determine.
    """
    each = [*map(Direction, np.eye(2 * here.shape[1]))]
    if len(times) > 2 * _CURVED:
        some = np.linspace(0, len(times) - 1, _CURVED).round().astype(int)
        ahead = np.stack([forces(d, _STEP) - here for d in each], axis=-1) / _STEP
        bend = np.stack([forces(d, -_STEP, some) - here[some] for d in each], axis=-1) / _STEP + ahead[some]
        fitted, apart = _fitted(times, some, bend.reshape(_CURVED, -1) / 2, _CURVED - 2)
        if (apart.reshape(ahead.shape[1:]) < _SMALL * (1 + np.abs(ahead).max(axis=(0, 2))[:, None])).all():
            return np.asarray(ahead - fitted.reshape(ahead.shape))
    return _slopes(forces, each)


def _fitted(times: Array, some: Array, values: Array, degree: int) -> tuple[Array, Array]:
    """Polynomials of the time through values at some of the times, at all, (k, m), and how far from these, (m,)."""
    basis = np.polynomial.chebyshev.chebvander(2 * (times - times[0]) / (times[-1] - times[0]) - 1, degree)
    fitted = basis @ np.linalg.lstsq(basis[some], values)[0]
    return fitted, np.abs(fitted[some] - values).max(axis=0)


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
    """ScrewdynError if a change of a tree whose homes have moved has moved axes of joints too."""
    pairs = [(x.name, x.joint, known.attachments[link].joint) for link, x in after.attachments.items()]
    pairs += [(name, x.joint, known.loops[name].joint) for name, x in after.loops.items()]
    for name, x, y in pairs:
        if x is not y and np.abs(x.screws - y.screws).max(initial=0.0) > _STILL:
            raise ScrewdynError(
                f"no derivatives of this run: a change reverses joint {name!r}, whose home depends on a parameter"
            )


def _poses(homes: Mapping[Key, Array]) -> Array:
    """The poses in one array, (k, 4, 4)."""
    return np.array([*homes.values()]).reshape(-1, 4, 4)


def _twists(homes: Mapping[Key, Array], rates: Array) -> Homes:
    """The twists of homes that move, in their own frames, from the rates of their poses, (k, 4, 4, p)."""
    moved = np.einsum("kji,kjlp->ilkp", _poses(homes)[:, :3, :3], rates[:, :3])
    w = 0.5 * np.array([moved[2, 1] - moved[1, 2], moved[0, 2] - moved[2, 0], moved[1, 0] - moved[0, 1]])
    twists = zip(homes, np.concatenate([w, moved[:, 3]]).swapaxes(0, 1), strict=True)
    return {x: twist for x, twist in twists if np.abs(twist).max(initial=0.0) > _STILL}


def _placed(tree: Robot, homes: Mapping[Key, Array]) -> Robot:
    """A copy of a tree with other homes, near those that it has; locked joints will be unlocked where they are."""
    tree, moved = tree.copy(), []
    for name in {name: None for kind, name in homes if kind != "loop"}:
        at = tree.topology.attachments[name]
        home, locked = homes.get(("link", name), at.home), at.locked
        if locked is not None:
            base, space = homes.get(("locked", name), locked.home), ConfigurationSpace({name: locked.joint})
            apart = screw.log_of(screw.inverse_of(at.home) @ locked.home @ screw.inverse_of(base) @ home)
            q = np.array(locked.q)
            rates = np.asarray(np.linalg.lstsq(screws_at(locked.joint, q), apart)[0], np.float64)
            locked = Locked(locked.joint, base, tuple(space.integrate(q, rates).tolist()))
        moved.append(at.by(at.joint, home, locked))
    loops = {x: replace(loop, home=homes.get(("loop", x), loop.home)) for x, loop in tree.topology.loops.items()}
    tree.topology = replace(tree.topology.with_attachments(*moved), loops=loops)
    return tree


def _larger(body: Inertia | None, more: Array) -> Inertia:
    """A body with larger ten numbers, which may be none that exists."""
    m, *h, xx, xy, xz, yy, yz, zz = more + (np.zeros(10) if body is None else body.parameters)
    c = np.array(h) / m
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theta = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        return Inertia.effective(m, c, theta - m * (c @ c * np.eye(3) - np.outer(c, c)))
