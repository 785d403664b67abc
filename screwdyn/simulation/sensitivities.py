"""Derivatives of a run by its start, by inertias of links and by the times of its events, through changes of the tree.

Between changes δx = (δq along the freedoms, δν) obeys δẋ = A δx + b, with A of the linearized equation of motion and b
for parameters. It is solved by collocation at the Gauss points of each step of the integrator (order 8). At a change
each column is moved along the motion to the time at which the change happens for it, through the change, and back: the
saltation matrix Ξ = DR + (F⁺ − DR F⁻) h_x / (h_x F⁻) (Burden, Sastry, Koditschek and Revzen 2016). DR is taken by
central differences of fourth order of the change itself, so that every kind of change has it. Poses of links that a
change makes constant, such as that of a locked joint, remain parameters of the motion. docs/simulation.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from screwdyn.changes.change import Happened
from screwdyn.core.errors import InertiaError, ScrewdynError
from screwdyn.core.types import Array
from screwdyn.forms.derivatives import Derivatives
from screwdyn.mechanism.inertia import INERTIAL, Inertia
from screwdyn.mechanism.link import Link
from screwdyn.mechanism.topology import Topology
from screwdyn.physics.charts import ConfigurationSpace
from screwdyn.physics.closure import Closure
from screwdyn.physics.model import Robot
from screwdyn.physics.state import State
from screwdyn.screws import screw
from screwdyn.simulation.equations import EquationsOfMotion
from screwdyn.simulation.hybrid import TreeMotion

# Weights of a central difference, f' ≈ Σ w (f(k h) − f(−k h)) / h, and its h.
_CENTRAL, _STEP = ((1, 2 / 3), (2, -1 / 12)), 1e-3
# Twist of a home pose, rad and m, below which a change has not moved it.
_STILL = 1e-11
# Gauss-Legendre points on (0, 1), their weights, and the integrals of their Lagrange polynomials up to each point.
_POINTS, _WEIGHTS = (0.5 * (np.polynomial.legendre.leggauss(4)[0] + 1), 0.5 * np.polynomial.legendre.leggauss(4)[1])
_UP_TO = np.array([_POINTS**k / k for k in range(1, 5)]).T @ np.linalg.inv(np.vander(_POINTS, increasing=True))

# Twists of the homes of links and of loops by parameter, (6, p), by kind and name.
Key = tuple[str, str]
Homes = dict[Key, Array]


class Sensitivities:
    """Derivatives of the states of a run by parameters; see :meth:`Run.sensitivity`.

    Attributes
    ----------
    parameters : tuple of str
        The positions ``"q:elbow"`` along the freedoms of the start, its rates ``"qd:elbow"``, ten numbers of each link
        that was asked for, ``"crate.m"`` … ``"crate.Izz"``, and the times of events, ``"time of grasp crate"``.
    """

    def __init__(
        self,
        motions: Sequence[TreeMotion],
        events: Sequence[Happened],
        links: Sequence[str],
        make: Callable[[Robot, Array], EquationsOfMotion],
    ) -> None:
        self._motions, self._links, self._make = motions, tuple(links), make
        # Ten numbers of each link, of the size of those of its body: the directions of differences.
        self._units = {link: _sizes(link, motions) for link in self._links}
        happened = [x for x in events if x.what is not None]
        # The changes between one motion and the next.
        self._changes = [[x for x in happened if x.t == motion.t[-1]] for motion in motions[:-1]]
        start = motions[0].coordinates
        times = _distinct([self._time_of(group) for group in self._changes])
        self.parameters: tuple[str, ...] = (
            *(f"q:{name}" for name in start),
            *(f"qd:{name}" for name in start),
            *(f"{link}.{name}" for link in self._links for name in INERTIAL),
            *filter(None, times),
        )
        n, first = len(start), motions[0]
        P = np.zeros((2 * n, len(self.parameters)))
        P[:, : 2 * n] = np.eye(2 * n)
        if first.tree.loops:
            P = self._columns(first.tree, first.q[0], first.qd[0], P, {}, self._as_it_is)[0]
        homes: Homes = {}
        # For each motion its homes, and the columns at the ends of its steps.
        self._parts: list[tuple[Homes, list[Array]]] = []
        for k, motion in enumerate(motions):
            columns = [P]
            for Phi, beta in zip(*self._steps(motion, homes, self._ends(motion)), strict=True):
                columns.append(Phi @ columns[-1] + beta)
            self._parts.append((homes, columns))
            if k + 1 < len(motions):
                P, homes = self._changed(k, columns[-1], homes, times[k])

    def at(self, t: float, side: str = "after") -> Array:
        """∂[q; q̇]/∂(parameters) at a time, (2 nv, p); see :meth:`Run.sensitivity`."""
        inside = [k for k, motion in enumerate(self._motions) if motion.t[0] <= t <= motion.t[-1]]
        if not inside:
            raise ScrewdynError(
                f"the run lasts from {self._motions[0].t[0]:g} to {self._motions[-1].t[-1]:g} s; got t = {t!r}"
            )
        k = inside[-1 if side == "after" else 0]
        motion, (homes, columns) = self._motions[k], self._parts[k]
        ends = self._ends(motion)
        step = max(int(np.searchsorted(ends, t, side="right")) - 1, 0)
        if step >= len(columns) - 1 or t == ends[step]:
            return columns[min(step, len(columns) - 1)].copy()
        (Phi,), (beta,) = self._steps(motion, homes, [ends[step], t])
        return np.asarray(Phi @ columns[step] + beta)

    # Inside

    @staticmethod
    def _time_of(group: Sequence[Happened]) -> str | None:
        """The name of the time of changes that happen together, as a parameter; None if it follows from a condition."""
        what = group[0].what if group else None
        return None if what is None or what.time is None else f"time of {group[0].verb} {group[0].subject}"

    @staticmethod
    def _ends(motion: TreeMotion) -> list[float]:
        """Times of the ends of the steps of a motion; a step that an event has cut ends there."""
        last = float(motion.t[-1])
        return [*(min(piece.t_old, last) for piece in motion.pieces), last] if motion.pieces else [last]

    # Between changes

    def _steps(self, motion: TreeMotion, homes: Homes, ends: Sequence[float]) -> tuple[Array, Array]:
        """Φ, (steps, 2 nv, 2 nv), and β, (steps, 2 nv, p), of δx₁ = Φ δx₀ + β over some intervals."""
        starts, h = np.array(ends[:-1]), np.diff(ends)
        n, p = 2 * len(motion.coordinates), len(self.parameters)
        times = (starts[:, None] + h[:, None] * _POINTS).ravel()
        if not len(h):
            return np.zeros((0, n, n)), np.zeros((0, n, p))
        A, b = self._linear(motion, homes, times)
        steps = len(h)
        A, b = A.reshape(steps, 4, n, n), b.reshape(steps, 4, n, p)
        system = np.eye(4 * n) - np.einsum("s,ij,sikl->sikjl", h, _UP_TO, A).reshape(steps, 4 * n, 4 * n)
        slopes = np.linalg.solve(system, np.concatenate([A, b], axis=-1).reshape(steps, 4 * n, n + p))
        total = np.einsum("s,i,sikl->skl", h, _WEIGHTS, slopes.reshape(steps, 4, n, n + p))
        return np.eye(n) + total[..., :n], total[..., n:]

    def _linear(self, motion: TreeMotion, homes: Homes, times: Array) -> tuple[Array, Array]:
        """A, (k, 2 nv, 2 nv), and b, (k, 2 nv, p), at some times of a motion."""
        tree, model, nv, k = motion.tree, motion.tree.model, len(motion.coordinates), len(times)
        q, qd = self._path(motion, times)
        equations = self._make(tree, np.concatenate([q[0], qd[0], np.zeros(3)]))
        force = _forces(equations, times, q, qd)
        by_q, by_qd, by_tau = model.derived(Derivatives).forward_dynamics(q, qd, force)
        A, b = np.zeros((k, 2 * nv, 2 * nv)), np.zeros((k, 2 * nv, len(self.parameters)))
        A[:, :nv, :nv], A[:, :nv, nv:] = -model.chart_rotation(qd), np.eye(nv)
        if equations.smooth:
            A[:, nv:, :nv] = by_q - by_tau * equations.own.stiffness
            A[:, nv:, nv:] = by_qd - by_tau * equations.own.damping
        else:
            units, zero = np.eye(nv), np.zeros(nv)

            def along(dq: Array, dqd: Array) -> Array:
                def moved(s: float) -> Array:
                    there = model.configurations.integrate(q, s * np.broadcast_to(dq, qd.shape))
                    return _forces(equations, times, there, qd + s * dqd)

                return _slope(moved)

            A[:, nv:, :nv] = by_q + by_tau @ np.stack([along(unit, zero) for unit in units], axis=-1)
            A[:, nv:, nv:] = by_qd + by_tau @ np.stack([along(zero, unit) for unit in units], axis=-1)
        y0 = np.concatenate([q[0], qd[0], np.zeros(3)])

        def acting(other: Robot) -> Array:
            """The forces in a tree that differs, which torques that look at it may take into account."""
            return force if equations.smooth else _forces(self._make(other, y0), times, q, qd)

        qdd = tree.forward_dynamics(q, qd, force) if self._links else qd
        for link, at in self._inertial():
            if link not in tree.links:
                continue
            b[:, nv:, at] = -by_tau @ tree.reference_regressor(link, q, qd, qd, qdd)
            for j, size in enumerate([] if equations.smooth else self._units[link]):
                unit = size * np.eye(10)[j]
                by_number = _slope(lambda s, x=link, u=unit: acting(_with_inertia(tree, x, s * u)))  # type: ignore[misc]
                b[:, nv:, at.start + j] += np.einsum("kij,kj->ki", by_tau, by_number / size)

        def by_home(link: str, unit: Array) -> Array:
            """∂q̈ by the motion of a link from its home, (k, nv)."""

            def of(s: float) -> Array:
                other = _with_homes(tree, {("link", link): s * unit})
                return np.asarray(other.forward_dynamics(q, qd, acting(other)))

            return _slope(of)

        for (kind, link), twists in homes.items():
            if kind != "link":  # constraints depend on the poses of links only
                continue
            b[:, nv:] += np.stack([by_home(link, unit) for unit in np.eye(6)], axis=-1) @ twists
        return A, b

    def _inertial(self) -> list[tuple[str, slice]]:
        """The links whose inertias are parameters, and the columns of these."""
        first = 2 * len(self._motions[0].coordinates)
        return [(link, slice(first + 10 * k, first + 10 * k + 10)) for k, link in enumerate(self._links)]

    @staticmethod
    def _path(motion: TreeMotion, times: Array) -> tuple[Array, Array]:
        """Positions and rates at times of a motion, by the polynomials of the integrator."""
        owners = np.searchsorted([piece.t_old for piece in motion.pieces], times, side="right") - 1
        model = motion.tree.model
        y = np.empty((len(times), model.nq + model.nv))
        for k in np.unique(owners):
            y[owners == k] = motion.pieces[max(k, 0)](times[owners == k])[: y.shape[1]].T
        q, qd = model.configurations.normalized(y[:, : model.nq]), y[:, model.nq :]
        return Closure(motion.tree).project(q, qd)

    # Changes

    def _changed(self, k: int, P: Array, homes: Homes, timed: str | None) -> tuple[Array, Homes]:
        """The columns and homes after the changes between motion k and the next one."""
        before, after, group = self._motions[k], self._motions[k + 1], self._changes[k]
        tree, t, q, qd = before.tree, float(before.t[-1]), before.q[-1], before.qd[-1]
        flow, later = self._flow(tree, t, q, qd), self._flow(after.tree, t, after.q[0], after.qd[0])
        delays = np.zeros(P.shape[1])
        if timed is not None:
            delays[self.parameters.index(timed)] = 1.0
        elif group:
            delays = self._delays(group[0].what, tree, t, q, qd, P, homes, flow)

        def changed(other: Robot, state: State, link: str, more: Array) -> tuple[Robot, State]:
            for x in group:
                what = _brings(x, link, more) if x.subject == link else x.what
                assert what is not None
                state = what.happen(other, state).state
            return other, state

        P, homes = self._columns(tree, q, qd, P + np.outer(flow, delays), homes, changed)
        return P - np.outer(later, delays), homes

    def _flow(self, tree: Robot, t: float, q: Array, qd: Array) -> Array:
        """[q̇; q̈] of a tree in a state, (2 nv,)."""
        equations = self._make(tree, np.concatenate([q, qd, np.zeros(3)]))
        force = _forces(equations, np.array([t]), q[None], qd[None])[0]
        return np.concatenate([qd, tree.forward_dynamics(q, qd, force)])

    def _delays(
        self, event: Any, tree: Robot, t: float, q: Array, qd: Array, P: Array, homes: Homes, flow: Array
    ) -> Array:
        """By how much later a change on a condition happens for each parameter, (p,)."""

        def level(t: float, direction: Array, s: float, homes: Mapping[Key, Array]) -> float:
            other = _with_homes(tree, {x: s * twist for x, twist in homes.items()}) if homes else tree
            return float(event.level(t, _moved(other, q, qd, s * direction)))

        rate = float(_slope(lambda s: np.array(level(t + s, flow, s, {}))))
        far, near = (abs(level(t + s, flow, s, {}) - level(t - s, flow, -s, {})) for s in (_STEP, 1e-3 * _STEP))
        if near > 0.5 * far or not abs(rate) > 1e-9:
            raise ScrewdynError(
                f"the condition of a {type(event).__name__} at t = {t:g} s does not pass zero at a finite rate, so "
                f"that its time has no derivative; let when= return a smooth number instead of True or False"
            )
        slopes = [
            _scaled(column, lambda d, s, own=own: np.array(level(t, d, s, own)), own) for column, own in _each(P, homes)
        ]
        return -np.array(slopes) / rate

    @staticmethod
    def _as_it_is(tree: Robot, state: State, *inertia: Any) -> tuple[Robot, State]:
        return tree, state

    def _columns(
        self,
        tree: Robot,
        q: Array,
        qd: Array,
        P: Array,
        homes: Homes,
        change: Callable[[Robot, State, str, Array], tuple[Robot, State]],
    ) -> tuple[Array, Homes]:
        """The columns and homes after a change, by differences of the change along each column."""
        here = tree.copy()
        here, state = change(here, _moved(here, q, qd, np.zeros(2 * len(qd))), "", np.zeros(10))
        space, places = here.model.configurations, _homes(here.topology)
        inertial = {at.start + j: (link, j) for link, at in self._inertial() for j in range(10)}
        found: list[Array] = []
        for k, (column, own) in enumerate(_each(P, homes)):
            link, j = inertial.get(k, ("", 0))
            size = self._units[link][j] if link else 1.0
            unit = size * np.eye(10)[j]
            own = {x: size * twist for x, twist in own.items()}

            def outcome(d: Array, s: float) -> Array:
                other = _with_homes(tree, {x: s * twist for x, twist in own.items()})  # noqa: B023
                if link in other.links:  # noqa: B023
                    other = _with_inertia(other, link, s * unit)  # noqa: B023
                other, after = change(other, _moved(other, q, qd, s * d), link, s * unit)  # noqa: B023
                moved = [_from_home(places[x], T) for x, T in _homes(other.topology).items()]
                return np.concatenate([space.difference(state.q, after.q), after.qd - state.qd, *moved])

            if link or own or column.any():
                found.append(_scaled(size * column, outcome, own) / size)
            else:  # the time of a later event
                found.append(np.zeros(2 * len(state.qd) + 6 * len(places)))
        total = np.array(found).T
        n = 2 * len(state.qd)
        twists = dict(zip(places, total[n:].reshape(len(places), 6, -1), strict=True))
        return total[:n], {x: twist for x, twist in twists.items() if np.abs(twist).max(initial=0.0) > _STILL}


def _sizes(link: str, motions: Sequence[TreeMotion]) -> Array:
    """Sizes of changes of ten numbers that a body allows: m, m r and m r² with r its least radius of gyration."""
    bodies = [x.tree.link(link).inertia for x in motions if link in x.tree.links]
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
    return np.asarray(sum(w * (f(k * _STEP) - f(-k * _STEP)) for k, w in _CENTRAL) / _STEP)


def _scaled(column: Array, f: Callable[..., Array], homes: Mapping[Key, Array]) -> Array:
    """df/ds for f(s d) along a column d, in steps that are short also if the column is long."""
    size = max([1.0, float(np.abs(column).max(initial=0.0)), *(float(np.abs(x).max()) for x in homes.values())])
    return _slope(lambda s: f(column, s / size)) * size


def _each(P: Array, homes: Homes) -> list[tuple[Array, dict[Key, Array]]]:
    """Each column with its twists of homes."""
    return [
        (P[:, k], {x: twists[:, k] for x, twists in homes.items() if twists[:, k].any()}) for k in range(P.shape[1])
    ]


def _forces(equations: EquationsOfMotion, times: Array, q: Array, qd: Array) -> Array:
    """All joint forces at some times, (k, nv)."""
    if equations.smooth:
        return equations.own.viscous_force(qd) + equations.own.spring_force(q)
    states = zip(times.tolist(), q, qd, strict=True)
    return np.array([equations.forces(*state)[1].copy() for state in states])


def _moved(tree: Robot, q: Array, qd: Array, direction: Array) -> State:
    """The state at some step along the freedoms and rates, on closed loops."""
    n = len(qd)
    q, qd = tree.model.configurations.integrate(q, direction[:n]), qd + direction[n:]
    return State(tree, *Closure(tree).project(q, qd))


def _homes(topology: Topology) -> dict[Key, Array]:
    """Poses of all links in their parents at neutral positions, of those of locked joints unlocked too; of loops."""
    homes = {("link", x): at.home for x, at in topology.attachments.items()}
    homes |= {("locked", x): at.locked.home for x, at in topology.attachments.items() if at.locked is not None}
    return homes | {("loop", name): loop.home for name, loop in topology.loops.items()}


def _distinct(names: Sequence[str | None]) -> list[str | None]:
    """The same names, with a number where one comes again."""
    return [x if x is None or x not in names[:k] else f"{x} ({names[: k + 1].count(x)})" for k, x in enumerate(names)]


def _from_home(home: Array, T: Array) -> Array:
    """The twist from one home pose to another, (6,); most links have not moved."""
    return np.zeros(6) if T is home or np.array_equal(T, home) else screw.log(screw.inverse(home) @ T)


def _with_homes(tree: Robot, twists: Mapping[Key, Array]) -> Robot:
    """A copy of a tree in which links and loops have moved by twists in their own frames from their homes."""
    tree, still = tree.copy(), np.zeros(6)
    moved, loops = [], dict(tree.topology.loops)
    for name in {name: None for kind, name in twists if kind != "loop"}:
        at = tree.topology.attachments[name]
        home, locked = at.home @ screw.exp(twists.get(("link", name), still)), at.locked
        if locked is not None:  # it will be unlocked where it is
            unlocked = locked.home @ screw.exp(twists.get(("locked", name), still))
            before, now = (screw.inverse(T) @ X for T, X in ((locked.home, at.home), (unlocked, home)))
            rates = np.linalg.lstsq(locked.joint.screws, screw.log(screw.inverse(before) @ now))[0]
            space = ConfigurationSpace({at.name: locked.joint})
            q = space.integrate(np.array(locked.q), np.asarray(rates, np.float64))
            locked = locked._replace(home=unlocked, q=tuple(q.tolist()))
        moved.append(at.by(at.joint, home, locked))
    for (kind, name), twist in twists.items():
        if kind == "loop":
            loops[name] = replace(loops[name], home=loops[name].home @ screw.exp(twist))
    tree.topology = replace(tree.topology.with_attachments(*moved), loops=loops)
    return tree


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
