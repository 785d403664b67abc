"""Changes within runs of fixed step (docs/rollouts.md).

One tree has the links of all changes, and its code serves all runs at all times: a link that a run does not have has no
inertia in it, a freedom that does not move is held by an armature without bounds, and a loop that is open yields by a
compliance without bounds. All leave the motion of all else as it is in a tree without the link or loop, or with the
joint locked, up to rounding.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from screwdyn.backends.llvm.program import IMPACT, StepKind, Stepper
from screwdyn.core import Array, Flags, LoopError, ScrewdynError, ShapeError, TopologyError
from screwdyn.forms.closed_loops import independent_constraints
from screwdyn.forms.configurations import Limits
from screwdyn.forms.numbers import Numbers
from screwdyn.mechanism.structure import Mechanism, Switch
from screwdyn.mechanism.topology import check_open
from screwdyn.physics.closure import Closure
from screwdyn.physics.link_steps import Pose, RigidInertia, inertia_to_parent
from screwdyn.physics.model import Model
from screwdyn.physics.recursions.loops import REDUNDANT
from screwdyn.physics.recursions.whole_tree import MOST_STEPS, SETTLED

Integers = npt.NDArray[np.int64]
# Places of constraints.
Constraints = Sequence[Sequence[Any]]
# Whatever moves a freedom of this armature is less than the rounding of all else, kg m² or kg; so are the forces of a
# constraint of this compliance.
_BOUNDLESS = 1e200
# Gap of a point that a run lacks, m.
_FAR = 1e30
# Distance beyond a stop that counts as rounding, rad or m.
_PASSED = 1e-9
# Gap of a closed loop, m and rad, and the most Newton steps to it.
_CLOSED, _CLOSING = 1e-14, 3
# Share of a step by which a time may be after the start of the step before which the change happens.
_ROUNDING = 1e-6


class Switching(Protocol):
    """A change that can happen in runs of fixed step."""

    @property
    def time(self) -> float | None:
        """Seconds on the clock of the run."""
        ...

    def switch(self, tree: Mechanism) -> Switch:
        """Add the links that come to a tree, free joints that will move, and return what the change does."""
        ...


class Union:
    """The tree with the links of all changes of a rollout, what they do in it, and its limits if they are stops.

    An error of a change tells one of its runs, by the steps before which it is ``due``.
    """

    def __init__(self, model: Model, events: Sequence[Switching], stops: bool, due: Sequence[Integers]) -> None:
        tree, before = Mechanism(), model.topology
        tree.topology = before
        made: dict[int, Switch] = {}
        for event, steps in zip(events, due, strict=True):  # an event that is given again happens again
            try:
                made[id(event)] = made.get(id(event)) or event.switch(tree)
            except ScrewdynError as error:
                if not (runs := np.flatnonzero(steps >= 0)).size:
                    raise
                what = f"the {type(event).__name__} before step {steps.flat[runs[0]]}"
                raise type(error)(f"run {runs[0]} cannot have {what}: {error}") from None
        self.made_from, self.kinds = sources(events, stops), [type(event).__name__ for event in events]
        self.switches = [made[id(event)] for event in events]
        # All loops, those of a run before all changes, and of these the ones that are closed at all times.
        self.loops, self.first = tree.topology.loops, tuple(before.loops)
        some = {x for switch in self.switches for x in (*switch.closes, *switch.opens)}
        self._always, self._closures = tuple(x for x in self.first if x not in some), dict[tuple[str, ...], Closure]()
        if {*self.loops} - {*self.first, *some} or (some and tree.topology.contacts):
            what = "contacts" if some else "this payload"
            check_open(tree.topology, f"a rollout with {what}", "use simulate for each run", touching=True)
        self.model = Model(replace(tree.topology, loops={x: self.loops[x] for x in self._always}))
        self.numbers = Numbers(self.model)
        # Independent constraints of loops that are always closed, and of each other loop, which a run may lack.
        parts = [(x,) for x in self.loops if x not in self._always]
        self._parts = {loops: self._independent(loops) for loops in (self._always, *parts)}
        self.constraints = [place for places in self._parts.values() for place in places]
        self.loose = tuple(range(len(self._parts[self._always]), len(self.constraints)))
        self.loose_of = [part[0] for part in parts for _ in self._parts[part]]
        self.limits = Limits.of(tree, lambda joint: stops)
        self._places, self._rows = (
            {x: k for k, x in enumerate(of)} for of in (self.model.positions, self.model.coordinates)
        )
        # Links that a run may lack, or whose inertias change; indices of freedoms that are held at some time.
        self.gone = [{y for x in switch.goes for y in tree.subtree(x)} for switch in self.switches]
        self.absent = self.model.placements.keys() - model.placements.keys()
        self.varying = self.absent.union(*self.gone, *(switch.bodies for switch in self.switches))
        freed = [[*x.frees, *self._of(x.comes)] for x in self.switches]
        held = [[*x.holds, *self._of(gone)] for x, gone in zip(self.switches, self.gone, strict=True)]
        self.frees, self.holds = ([self.freedoms(names) for names in of] for of in (freed, held))
        # Points of contacts that a run may lack, with the links that they need.
        needed = {k: self.varying & {contact.link, contact.to} for k, contact in enumerate(tree.topology.touching)}
        self.apart = {k: names for k, names in needed.items() if names}
        # The links of a payload, which strike; links of its motor do not.
        self.struck = [
            [y for x in switch.comes[:1] for y in tree.subtree(x) if y in switch.comes] for switch in self.switches
        ]
        # The positions and freedoms of a run before all changes, and the positions of others.
        self.own = self._positions(before.positions), self.freedoms(before.coordinates)
        self.held = sorted({*range(self.model.nv)} - {*self.own[1]})
        self.holdable = sorted({*self.held, *self.limits.rows.tolist()}.union(*map(np.ndarray.tolist, self.holds)))
        # Indices and values of the positions and rates at which links start to move.
        self.starts = [
            ((self._positions(x.q), [*x.q.values()]), (self.freedoms(x.qd), [*x.qd.values()])) for x in self.switches
        ]
        self.start = tree.topology.neutral.copy()
        for (places, values), _ in reversed(self.starts):
            self.start[places] = values
        for at in before.attached:
            if at.locked is not None and tree.topology.attachments[at.link.name].locked is None:
                self.start[self._positions(at.locked.joint.position_names(at.name))] = at.locked.q

    def closure(self, loops: tuple[str, ...]) -> Closure:
        """The tree with some loops, which are closed at the same time; LoopError if constraints of them are redundant.

        If none is, those that are independent in each loop alone are so together, and in some of these loops.
        """
        if loops not in self._closures:
            model, alone = self._with(loops), [x for part, x in self._parts.items() if {*part} <= {*loops}]
            known = any({*loops} <= {*others} for others in (*self._parts, *self._closures))
            if not known and len(independent_constraints(model)[0]) != sum(map(len, alone)):
                raise LoopError(
                    f"loops {', '.join(map(repr, loops))} have constraints in common, which a rollout cannot divide "
                    f"among them while one is closed or opened; use simulate for each run"
                )
            self._closures[loops] = Closure(Numbers(model))
        return self._closures[loops]

    def _with(self, loops: tuple[str, ...]) -> Model:
        """The model with some of the loops."""
        if loops == self._always:
            return self.model
        return Model(replace(self.model.topology, loops={x: self.loops[x] for x in loops}))

    def _independent(self, loops: tuple[str, ...]) -> Constraints:
        """Independent constraints of some loops."""
        model = self._with(loops)
        return [model.constraints[k] for k in independent_constraints(model)[0]] if loops else []

    def freedoms(self, names: Iterable[str]) -> Integers:
        """Indices of freedoms."""
        return np.array([self._rows[name] for name in names], dtype=np.int64)

    def _positions(self, names: Iterable[str]) -> Integers:
        """Indices of positions."""
        return np.array([self._places[name] for name in names], dtype=np.int64)

    def _of(self, links: Any) -> list[str]:
        """The freedoms of the joints of links."""
        return [name for x in links for name in self.model.topology.attachments[x].coordinates]

    def row(self, freedom: int) -> int:
        """The row of a freedom."""
        return self.model.index[self.model.coordinates[freedom]]

    def started(self, model: Model, q: Any, qd: Any) -> tuple[Array, Array]:
        """Positions and rates, (…, n), from those of a tree before all changes."""
        (q, qd), batch = model.arrays({"q": q, "qd": qd})
        full = np.broadcast_to(self.start, (*batch, self.model.nq)).copy(), np.zeros((*batch, self.model.nv))
        for x, own, places in zip(full, (q, qd), self.own, strict=True):
            x[..., places] = own
        return full


def sources(events: Sequence[Switching], stops: bool) -> list[object]:
    """What a union is made of, with the structures of payloads; something new in place of what may change."""
    found: list[object] = [stops]
    for event in events:
        found.append(event)
        for x in vars(event).values():
            x = sys.intern(x.tobytes().hex()) if isinstance(x, np.ndarray) else x  # one object for the same numbers
            kept = isinstance(x, Hashable) and not hasattr(x, "qd")
            found.append(x.topology if isinstance(x, Mechanism) else x if kept else object())
    return found


def scheduled(events: Any, steps: int, t0: float, dt: float) -> tuple[list[Switching], list[Integers]]:
    """The changes of a rollout, and for each the step before which it happens, for all runs or each; or −1, never.

    ScrewdynError if they are not changes with a time or pairs of a change and steps, ShapeError if steps are not whole.
    """
    if not isinstance(events, Sequence) or isinstance(events, str):
        raise ScrewdynError(f"events must be a list of changes, such as Grasp and Release; got {events!r}")
    changes: list[Switching] = []
    due: list[Integers] = []
    for k, given in enumerate(events):
        change, at = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
        if not hasattr(change, "switch"):
            raise ScrewdynError(
                f"events[{k}] must be a change, such as Grasp(…, time=0.5), or a pair (change, steps); got {given!r}"
            )
        kind = type(change).__name__
        if getattr(change, "when", None) is not None:
            raise ScrewdynError(f"a {kind} has when=, which rollouts do not evaluate; give the step, (change, steps)")
        if (at is None) == (change.time is None):
            raise ScrewdynError(f"a {kind} in a rollout needs either time= or a step, as in (change, steps)")
        if at is None:
            if not t0 <= change.time <= t0 + steps * dt:
                span = f"{t0:g} s to {t0 + steps * dt:g} s"
                raise ScrewdynError(f"the rollout is from {span}, but a {kind} is set for {change.time:g} s")
            at = int(np.ceil((change.time - t0) / dt - _ROUNDING))
        whole = np.asarray(at)
        if whole.dtype.kind not in "iu":
            raise ShapeError(
                f"the steps of a {kind} must be integers, for all runs or each, negative for never; got {at!r}"
            )
        whole = whole.astype(np.int64)
        changes.append(change)
        due.append(np.where((whole >= 0) & (whole < steps), whole, -1))
    return changes, due


def sums(model: Model, rows: Sequence[int], bodies: Mapping[str, Array], present: Mapping[str, Array]) -> Array:
    """The inertial numbers of all bodies of some rows, (…, 10 · rows).

    ``bodies`` are those of some links in the frames of their rows, (…, 10); ``present``, (…, 1), is 0 for links that a
    run does not have.
    """
    # Sums over the bodies, not changes of the model's sums: where all bodies are zero, so are the sums, exactly.
    found: dict[int, Any] = {row: np.zeros(10) for row in rows}
    for name, at in model.placements.items():
        row = model.index[at.coordinate]
        if row in found:
            body = bodies.get(name, np.array(at.body))
            found[row] = found[row] + (body * present[name] if name in present else body)
    arrays = np.broadcast_arrays(*found.values()) if found else [np.zeros(0)]
    return np.concatenate(arrays, axis=-1)


def moved(pose: Pose, parameters: Array) -> Array:
    """Inertial numbers, (…, 10), in a frame in which their own frame has this pose."""
    m, x, y, z, *tensor = np.moveaxis(parameters, -1, 0)
    inertia: Any = RigidInertia(m, (x, y, z), tuple(tensor))
    m, h, I = inertia_to_parent(pose, inertia)
    return np.stack([m, *h, *I], axis=-1)


class Lanes:
    """All runs of a rollout with changes: which links they have, which freedoms are held, and the inputs of the code.

    ``due`` are the steps of each change in each run, ``bodies`` the inertial numbers of links, (runs, 10), as for
    :func:`sums`. TopologyError if a run cannot have a change in its order, such as a release before the grasp.
    """

    def __init__(
        self,
        union: Union,
        due: Integers,
        bodies: Mapping[str, Array],
        rows: Sequence[int],
        stepper: Callable[[StepKind], Stepper],
    ) -> None:
        self.union, self.due, self._rows, count = union, due, [*rows], due.shape[1]
        self._model, placements = union.model, union.model.placements
        self.steps = sorted({*due[due >= 0].tolist()})  # before which something changes
        self._bodies = {**bodies}
        self._brought: dict[str, Array] = {}  # what links have that come, again too, and of which some change
        for name in {x for switch in union.switches for x in switch.bodies}:
            body = bodies.get(name, np.array(placements[name].body, dtype=np.float64))
            self._brought[name] = np.broadcast_to(body, (count, 10))
            self._bodies[name] = self._brought[name].copy()
        self._begin(count)
        self._check()
        self._begin(count)
        # Coordinate by coordinate: the code reads such arrays without copies.
        lengths = 10 * len(rows), len(union.holdable), len(union.apart), len(union.loose)
        self.inputs = [np.zeros((n, count)).T for n in lengths if n]
        self._write(np.arange(count))
        self._impacts = {
            e: stepper(self._impact(union.struck[e]))
            for e, switch in enumerate(union.switches)
            if (switch.twist is not None or switch.holds or switch.closes) and (due[e] >= 0).any()
        }
        if len(union.limits.rows):
            self._at_stops = stepper(self._impact(()))

    def _begin(self, count: int) -> None:
        """What the runs have before all changes."""
        names = self.union.varying
        self._present = {name: np.full((count, 1), float(name not in self.union.absent)) for name in names}
        self._held = np.zeros((self._model.nv, count), dtype=bool)
        self._held[self.union.held] = True
        self._stopped = np.zeros((len(self.union.limits.rows), count), dtype=bool)
        self._closed = {name: np.full(count, name in self.union.first) for name in self.union.loops}

    def _check(self) -> None:
        """Raise an error if a change is impossible in a run at its time."""
        self._check_loops(np.arange(self.due.shape[1]))
        order = np.argsort(np.where(self.due < 0, np.iinfo(np.int64).max, self.due), axis=0, kind="stable")
        for rank in order:
            for e in np.unique(rank):
                lanes = np.flatnonzero((rank == e) & (self.due[e] >= 0))
                if len(lanes):
                    self._require(e, lanes)
                    self._take(e, lanes)
                    self._check_loops(lanes, e)

    def _what(self, e: int | None, run: Any) -> str:
        """What a run cannot do, for errors: have a change, or its start."""
        return "begin so" if e is None else f"have the {self.union.kinds[e]} before step {self.due[e, run]}"

    def _check_loops(self, lanes: Integers, e: int | None = None) -> None:
        """Raise LoopError if one of some runs has a loop that lacks a link, or in which a joint is held or may stop."""
        model, held = self._model, self._held[:, lanes]
        held[self.union.limits.rows] = True
        for name, loop in self.union.loops.items():
            closed = self._closed[name][lanes]
            moving = sorted({*model.path(loop.link)} ^ {*model.path(loop.to)})
            for what, wrong in (
                *((f"link {x!r}", self._present[x][lanes, 0] == 0) for x in (loop.link, loop.to) if x in self._present),
                *((f"joint {x!r}", held[k]) for x, k in zip(moving, self.union.freedoms(moving), strict=True)),
            ):
                if (wrong & closed).any():
                    run = lanes[np.argmax(wrong & closed)]
                    raise LoopError(
                        f"run {run} cannot {self._what(e, run)}: {what} is in loop {name!r}, which is closed then, so "
                        f"that it cannot be missing, locked, freed or stopped; use simulate for each run"
                    )
        for loops, _ in self._by_loops(lanes) if self._closed else ():
            self.union.closure(loops)

    def _by_loops(self, lanes: Integers) -> Iterator[tuple[tuple[str, ...], Integers]]:
        """Loops that are closed at the same time, and those of some runs in which they are."""
        closed = (
            np.array([x[lanes] for x in self._closed.values()], dtype=bool).reshape(len(self._closed), len(lanes)).T
        )
        for some in np.unique(closed, axis=0):
            yield tuple(np.array([*self._closed])[some].tolist()), lanes[(closed == some).all(axis=1)]

    def _require(self, e: int, lanes: Integers) -> None:
        """Raise TopologyError if one of some runs cannot have a change."""
        switch, never = self.union.switches[e], np.zeros(len(lanes), dtype=bool)
        have = {x: self._present[x][lanes, 0] > 0 for x in (switch.on, *switch.comes[:1]) if x in self._present}
        held = [*self._held[self.union.freedoms([*switch.holds, *switch.frees])][:, lanes], never][0]
        closed = [*(self._closed[x][lanes] for x in (*switch.closes, *switch.opens)), never][0]
        for wrong, why in (
            (~have.get(switch.on, ~never), f"has no link {switch.on!r} then"),
            (have[switch.comes[0]] if switch.comes else never, f"has link {switch.concerns!r} already"),
            (held if switch.holds else never, f"has joint {switch.concerns!r} locked already"),
            (~held if switch.frees else never, f"does not have joint {switch.concerns!r} locked"),
            (closed if switch.closes else never, f"has loop {switch.concerns!r} closed already"),
            (~closed if switch.opens else never, f"does not have loop {switch.concerns!r} closed"),
        ):
            if wrong.any():
                run = lanes[np.argmax(wrong)]
                raise TopologyError(f"run {run} cannot {self._what(e, run)}: it {why}")

    def _take(self, e: int, lanes: Integers) -> None:
        """Note a change of some runs."""
        for name in self.union.gone[e]:
            self._present[name][lanes] = 0.0
        for name in self.union.switches[e].comes:
            self._present[name][lanes] = 1.0
        self._held[self.union.holds[e][:, None], lanes] = True
        self._held[self.union.frees[e][:, None], lanes] = False
        for name in (*self.union.switches[e].closes, *self.union.switches[e].opens):
            self._closed[name][lanes] = name in self.union.switches[e].closes
        if len(self._stopped):
            starts = np.isin(self.union.limits.where, self.union.starts[e][0][0])
            self._stopped[np.ix_(starts, lanes)] = False

    def _write(self, lanes: Integers) -> None:
        """Write the inputs of the code for some runs."""
        bodies, present = ({x: a[lanes] for x, a in of.items()} for of in (self._bodies, self._present))
        holds = self._held[:, lanes]
        np.logical_or.at(holds, self.union.limits.rows, self._stopped[:, lanes])
        held = np.where(holds[self.union.holdable].T, _BOUNDLESS, 0.0)
        absent = [np.any([present[x] == 0 for x in names], axis=0) for names in self.union.apart.values()]
        apart = np.hstack([np.zeros((len(lanes), 0)), *(_FAR * x for x in absent)])
        opened = [~self._closed[x][lanes, None] for x in self.union.loose_of]
        loose = [np.where(np.hstack(opened), _BOUNDLESS, 0.0)] if opened else []
        found = [x for x in (sums(self._model, self._rows, bodies, present), held, apart, *loose) if x.shape[-1]]
        for x, new in zip(self.inputs, found, strict=True):
            x[lanes] = new

    def change(self, step: int, q: Array, qd: Array) -> None:
        """Let the changes before a step happen to positions and rates, (runs, n), which are overwritten."""
        for e, switch in enumerate(self.union.switches):
            lanes = np.flatnonzero(self.due[e] == step)
            if not len(lanes):
                continue
            self._take(e, lanes)
            for name in self._brought.keys() & switch.comes:
                self._bodies[name][lanes] = self._brought[name][lanes]
            for name, body in switch.bodies.items():
                self._bodies[name][lanes] = moved(self._model.placements[name].pose, body)
            self._write(lanes)
            lanes = lanes[np.isfinite(qd[lanes]).all(axis=1)]
            for x, (places, values) in zip((q, qd), self.union.starts[e], strict=True):
                x[lanes[:, None], places] = values
            held = lanes[:, None], self.union.holds[e]
            if switch.closes:
                self._close(e, q, lanes)
            if e in self._impacts:
                change, more = np.zeros((len(lanes), self._model.nv)), []
                if switch.twist is None:
                    change[:, self.union.holds[e]] = -qd[held]
                else:
                    V = self.union.numbers.link_twist(switch.comes[0], q[lanes], qd[lanes], "body")
                    more = [switch.twist - V, self._struck(self.union.struck[e], lanes)]
                qd[lanes] += self._refined(self._impacts[e], change, q, qd, lanes, more)
            qd[held] = 0.0

    def _close(self, e: int, q: Array, lanes: Integers) -> None:
        """Move some runs to where their loops are closed, in place; LoopError if a loop is open by more than rounding.

        As by ``Closure.closed``: the impact of rates at which the loops open by their gaps in unit time.
        """
        for loops, own in self._by_loops(lanes):
            closure = self.union.closure(loops)
            gap = closure.gap(q[own], 1)
            run = own[np.abs(gap).max(axis=1, initial=0.0).argmax()]
            why = f"run {run} cannot {self._what(e, run)}: let links meet before a loop of them is closed"
            closure.check(q[run], why)
            rates = np.zeros((len(q), self._model.nv))
            for _ in range(_CLOSING):
                left = np.abs(gap).max(axis=1, initial=0.0) > _CLOSED
                if not left.any():
                    break
                own, J = own[left], closure.of.constraint_jacobian(q[own[left]])
                rates[own] = (np.linalg.pinv(J, REDUNDANT) @ gap[left, :, None])[..., 0]
                still = np.zeros((len(own), self._model.nv))
                change = self._refined(self._impacts[e], still, q, rates, own, ())
                q[own] = self._model.configurations.integrate(q[own], change)
                gap = closure.gap(q[own], 1)

    def check_start(self, q: Array) -> None:
        """Raise an error if a freedom begins beyond a stop, at the start of a run or where a change lets it move."""
        union, limits = self.union, self.union.limits
        if not limits.keys:
            return
        self._check_stops(q, ~self._held[limits.rows].T, "")
        for e, (places, values) in enumerate(x[0] for x in union.starts):
            runs = self.due[e] >= 0
            start = q.copy()  # a joint that is locked at the start stays where it is
            start[:, places] = values
            frees = np.isin(limits.rows, np.intersect1d(union.frees[e], union.held))
            self._check_stops(start, runs[:, None] & frees, f" after the {union.kinds[e]}")

    def _check_stops(self, q: Array, moving: Flags, when: str) -> None:
        """Raise an error if one of the freedoms that move is beyond its stop."""
        limits = self.union.limits
        beyond = (limits.excess(q) > _PASSED) & moving
        if beyond.any():
            run, k = np.argwhere(beyond)[0].tolist()
            name, value = limits.keys[k][2], q[run, limits.where[k]]
            raise ScrewdynError(f"{name!r} is at {value:g} in run {run}{when}, beyond its stop at {limits.values[k]:g}")

    def stop(self, q: Array, qd: Array) -> None:
        """Let freedoms strike the stops that they have passed, and leave those from which forces draw them, in place.

        A stopped freedom is held; the rate that a force gives to its armature has the sign of the force.
        """
        limits = self.union.limits
        approach, free = limits.approach(qd).T, ~self._held[limits.rows] & ~self._stopped
        leaves, strikes = self._stopped & (approach < 0), free & (limits.excess(q).T >= 0) & (approach > 0)
        lanes = np.flatnonzero((leaves | strikes).any(axis=0))
        if len(lanes):
            self._stopped ^= leaves | strikes
            self._write(lanes)
            k, lane = np.nonzero(strikes[:, lanes])
            q[lanes[lane], limits.where[k]] = limits.values[k]
            change, now = np.zeros((len(lanes), self._model.nv)), qd[lanes]
            change[lane, limits.rows[k]] = -now[lane, limits.rows[k]]
            qd[lanes] += self._refined(self._at_stops, change, q, qd, lanes, ())
        k, lane = np.nonzero(self._stopped)
        qd[lane, limits.rows[k]] = 0.0

    def _impact(self, struck: Sequence[str]) -> StepKind:
        """The kind of the code for the impact of a lock, or of a grasp of some links, the root of the payload first."""
        slips, model = None, self._model
        if struck:
            root, *beyond = (model.placements[link] for link in struck)
            own = root.coordinate, *(name for at in beyond for name in at.names)
            slips = tuple(model.index[name] for name in own), (*root.pose.R, *root.pose.p)
        held = tuple(map(self.union.row, self.union.holdable))
        return StepKind(IMPACT, (), tuple(self._rows), (), held, slips, loose=self.union.loose)

    def _struck(self, struck: Sequence[str], lanes: Integers) -> Array:
        """The inertial numbers of those of some links that the row of the first one carries, (runs, 10)."""
        row, bodies = self._model.index[self._model.placements[struck[0]].coordinate], self._bodies
        own = {x: np.array(float(x in struck)) for x in self._model.placements}
        slips = sums(self._model, [row], {x: bodies[x][lanes] for x in struck if x in bodies}, own)
        return np.broadcast_to(slips, (len(lanes), 10))

    def _refined(
        self, impact: Stepper, change: Array, q: Array, qd: Array, lanes: Integers, more: Sequence[Array]
    ) -> Array:
        """The change of the rates of some runs, each refined until the last step is rounding; see ``changes.law``."""
        left, sizes, inputs = np.arange(len(lanes)), (self._model.nq, self._model.nv), (q, *self.inputs)
        more = [*more, qd[lanes]] if self.union.constraints else more
        for _ in range(MOST_STEPS // 2):
            q, *given = (x[lanes[left]] for x in inputs)
            after = [np.empty((len(left), 2, n)) for n in sizes]
            state = [q, change[left], *given, *(x[left] for x in more)]
            impact.run(2, 1, state, [*after, np.empty((len(left), 1))], slice(None))
            found, change[left] = after[1], after[1][:, 1]
            step = found[:, 1] - found[:, 0]
            left = left[(step * step).sum(axis=1) > SETTLED * (found[:, 1] * found[:, 1]).sum(axis=1)]
            if not len(left):
                break
        return change
