"""The key of compiled code, the cache of compiled code, and compiled steps of an integrator.

Code is made for a structure: the poses of the links, the screws of the joints, gravity, and which inertial numbers are
exactly zero. The other inertial numbers are parameters of the code. In rows that may carry a payload, and in a row one
of whose zeros has changed, all ten numbers are parameters, so another payload needs no new code.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future, wait
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from screwdyn.backends.kernels.entry import address
from screwdyn.backends.llvm import machine
from screwdyn.backends.llvm import program as programs
from screwdyn.backends.llvm.machine import host
from screwdyn.backends.llvm.program import Program, drive, inertias, kept, planned
from screwdyn.backends.tape.outputs import outputs
from screwdyn.backends.tape.tape import Node, Recorded, Tape
from screwdyn.backends.tape.trace import Scalars, Subject, Undetermined, constants, inputs, open_inertias
from screwdyn.physics import charts as charting
from screwdyn.physics.charts import Charts
from screwdyn.physics.joint_forces import STEPS, Feedback, JointForces
from screwdyn.physics.model import Model
from screwdyn.physics.quantities import CATALOGUE
from screwdyn.physics.reductions import aligned_frames
from screwdyn.physics.table import MASS, PARENT, PLACE

__all__ = ["LARGEST_STEP", "MEMORY", "Compilation", "Kept", "Opened", "StepKind", "Stepper", "TooLong", "programs_of"]

Array = npt.NDArray[np.float64]
Opened = npt.NDArray[np.bool_]
# Bytes of code that are kept: for some sixty six-axis arms.
MEMORY = 64_000_000
NO_PLACES = np.zeros((0, PLACE))
# Bound of the ratio of all operations on a tape to those that its outputs depend on, for trees of more than 20
# rows.
_WRITTEN = 3


class Structure(NamedTuple):
    """The structure that the code of a quantity is made for."""

    table: Array  # (n + 1, 27), rows of a model, with zeros for their inertias, and the base's
    opened: Opened  # (n, 10), which inertial numbers are parameters; the others are zero
    charts: Charts | None = None  # of a model with group joints or couplings
    places: Array = NO_PLACES  # (links, 25), of the links of the quantity

    def subject(self, tape: Tape) -> Subject:
        """The structure on a tape, with inputs for its parameters."""
        charts = self.charts and Charts(self.charts.where, *map(constants, self.charts[1:]))
        return Subject(open_inertias(self.table, tape, self.opened), charts, constants(self.places))

    @property
    def made_from(self) -> tuple[bytes | None, ...]:
        """The structure as a hashable value."""
        return tuple(
            None if x is None else x.tobytes() for x in (self.table, self.opened, self.places, *(self.charts or ()))
        )


class Sized(Protocol):
    """An object that takes memory."""

    @property
    def nbytes(self) -> int:
        """Its memory in bytes, which may grow."""


Made = TypeVar("Made", bound=Sized)


class Kept(Generic[Made]):
    """A cache of objects for the most recently used structures; each object serves all models of a structure.

    ``make`` gets a table without the rows' inertias, the (n, 10) array of bool of the inertial numbers that are
    parameters, and the further key ``what``. ``most`` bytes are kept in addition to the most recently used object.
    """

    def __init__(self, make: Callable[[Array, Opened, Hashable], Made], most: int) -> None:
        self._make, self._most = make, most
        self._known: OrderedDict[Hashable, tuple[Opened, Made]] = OrderedDict()
        # Several threads that ask for the same object share it; the process is not forked meanwhile.
        self._lock = threading.RLock()
        if hasattr(os, "register_at_fork"):
            release = self._lock.release
            os.register_at_fork(before=self._lock.acquire, after_in_parent=release, after_in_child=release)

    def serving(self, table: Array, loaded: Opened, what: Hashable = None) -> Made:
        """The object that serves a model, whose ``loaded`` rows may carry a payload; a new one if there is none."""
        frame = table + 0.0
        inertias = frame[:-1, MASS:PARENT]
        needed = (inertias != 0) | loaded[:, None]
        inertias[:] = 0
        key = what, frame.tobytes()
        with self._lock:
            opened, made = self._known.pop(key, (None, None))
            if made is None or opened is None or (needed & ~opened).any():
                if opened is not None:
                    # Parameters stay parameters; all numbers of a row in which a zero has changed become parameters.
                    needed |= opened | (needed & ~opened).any(axis=1)[:, None]
                opened, made = needed, self._make(frame, needed, what)
            self._known[key] = opened, made
            self._bound()
            return made

    def _bound(self) -> None:
        """Remove the least recently used objects while the memory exceeds the bound."""
        sizes = [made.nbytes for _, made in self._known.values()]
        excess = sum(sizes) - self._most
        for size in sizes[:-1]:
            if excess <= 0:
                return
            self._known.popitem(last=False)
            excess -= size


class Compilation(NamedTuple):
    """A program while it is compiled; the result of each part is the program, or None if it is too long to compile."""

    single: Future[Program | None]
    batch: Future[Program | None]

    @property
    def program(self) -> Program | None:
        """The program if its code for single states is ready; otherwise None."""
        return self.single.result() if self.single.done() and self.single.exception() is None else None


class Programs:
    """The programs of all quantities of one structure, compiled one after another in the background."""

    def __init__(self, table: Array, opened: Opened) -> None:
        self._table, self._opened = table, opened
        self._known: dict[tuple[str, bytes, bytes], Compilation] = {}

    def get(self, name: str, model: Model, places: Array = NO_PLACES) -> Compilation:
        """The compilation of a quantity of a model, for links at some places; it starts in the first call."""
        base = np.where(CATALOGUE[name].base_parameters, 0.0, model.table[-1, MASS:PARENT])  # without −0.0
        key = name, base.tobytes(), places.tobytes()
        found = self._known.get(key)
        if found is None:
            table = self._table.copy()
            table[-1, MASS:PARENT] = base
            structure = Structure(table, self._opened, model.charts, places)
            # Code for single states before code for batches, and small trees first.
            size = len(table)
            single = machine.submit((size, 0), partial(_compile_single, name, structure))
            batch = machine.submit((size, 1), partial(_compile_batch, single))
            found = self._known[key] = Compilation(single, batch)
        return found

    @property
    def nbytes(self) -> int:
        """Memory of the programs that are ready, in bytes."""
        return sum(x.program.nbytes for x in list(self._known.values()) if x.program is not None)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the quantities that are compiled, for any link."""
        found = {name for (name, *_), x in list(self._known.items()) if x.program is not None}
        return tuple(name for name in CATALOGUE if name in found)

    @property
    def ready(self) -> bool:
        """Whether all compilations that were requested are finished."""
        return all(x.batch.done() for x in list(self._known.values()))

    def wait(self, timeout: float | None) -> None:
        """Wait until all compilations that were requested are finished; TimeoutError after ``timeout`` seconds."""
        parts = [x.batch for x in list(self._known.values())]
        if wait(parts, timeout).not_done:
            raise TimeoutError(f"the code is not ready after {timeout} s")
        for part in parts:
            part.result()


class TooLong(Exception):
    """The function has more operations than are compiled."""


class Nodes(list[Node]):
    """Operations on a tape; raises TooLong if the outputs will depend on more than ``LARGEST`` of them."""

    def append(self, node: Node) -> None:
        """Append an operation."""
        if len(self) > _WRITTEN * programs.LARGEST:
            raise TooLong
        super().append(node)


def recorded(name: str, structure: Structure) -> Program:
    """Record a quantity of a structure, and plan it; raises TooLong, or Undetermined as ``record``."""
    tape = Tape()
    tape.nodes = Nodes()
    subject = structure.subject(tape)
    if CATALOGUE[name].base_parameters and not len(structure.places):
        subject = subject._replace(table=aligned_frames(subject.table))
    lengths = {group: subject.nq if group == "q" else subject.nv for group in CATALOGUE[name].arguments}
    return planned(name, tape, lengths, outputs(tape, name, subject.with_zeros()))


def _compile_single(name: str, structure: Structure) -> Program | None:
    try:
        program = kept((name, structure.made_from), partial(recorded, name, structure))
    except (TooLong, Undetermined):
        return None
    if not program.compiled:
        return None
    program.compile_single()
    return program


def _compile_batch(single: Future[Program | None]) -> Program | None:
    program = single.result()
    if program is not None:
        program.compile_batch()
    return program


_programs = Kept(lambda table, opened, _: Programs(table, opened), MEMORY)


def programs_of(model: Model) -> Programs:
    """The programs that serve a model."""
    table = model.table.copy()
    table[-1, MASS:PARENT] = 0
    return _programs.serving(table, model.loaded, tuple(array.tobytes() for array in model.charts or ()))


# A step of an integrator on a tape: the state after it from the state before. Inputs besides the state are ("dt", 0),
# the torques or the entries of a ``Feedback`` by name, ("bodies", k) for the inertial numbers of some rows, and
# (field, row) for the parameters of the joints' own forces that are not zero.

# Inertial numbers of a row.
NUMBERS = PARENT - MASS


class StepKind(NamedTuple):
    """What the code of a step depends on besides the structure of the tree."""

    method: str  # a name in ``joint_forces.STEPS``
    control: tuple[str, ...]  # groups of inputs that control the joints: none, ("tau",), or the fields of ``Feedback``
    rows: tuple[int, ...]  # rows whose inertial numbers are inputs
    forces: tuple[tuple[str, int], ...]  # parameters of the joints' own forces that are not zero


class _Motion:
    """A tree on a tape, with the operations that ``STEPS`` need.

    ``own`` is a further tape, on which forward dynamics is recorded once, to be repeated for each state that a step
    needs; the subject has its inputs there, and their names become inputs on ``tape``.
    """

    def __init__(self, tape: Tape, own: Tape, subject: Subject, kind: StepKind) -> None:
        self._tape, self._own, self._charts, self._freedoms = tape, own, subject.chart, subject.freedoms
        n = subject.nv
        # The position of each freedom.
        self._where = np.zeros(n, dtype=np.intp)
        self._where[self._freedoms] = self._charts.where
        table = subject.table.copy()
        if kind.rows:
            bodies = inputs(own, "bodies", range(NUMBERS * len(kind.rows)))
            table[list(kind.rows), MASS:PARENT] = bodies.reshape(-1, NUMBERS)
        (self._acceleration,) = outputs(own, "forward_dynamics", subject._replace(table=table))
        numbers = {field: _zeros(n) for field in JointForces._fields if field != "where"}
        for field, row in kind.forces:
            numbers[field][row] = tape.input((field, row))
        forces: Any = JointForces
        self._forces = forces(**numbers, where=self._where)
        control = {
            group: inputs(tape, group, range(subject.nq if group == "q_target" else n)) for group in kind.control
        }
        self._tau = control.get("tau", 0.0)
        self._feedback = Feedback(**control) if len(control) > 1 else None

    def acceleration(self, q: Scalars, qd: Scalars) -> Scalars:
        """Forward dynamics with the torques and the joints' own forces."""
        forces, tape, own = self._forces, self._tape, self._own
        tau = forces.viscous_force(qd) + forces.smoothed_friction(qd) + forces.spring_force(q)
        tau = tau + (self._tau if self._feedback is None else self._feedback.torque(q, qd, self._where))
        state = {"q": q, "qd": qd, "tau": tau}
        values = {
            node.a: state[node.a[0]][node.a[1]] if node.a[0] in state else tape.input(node.a)
            for node in own.nodes
            if node.op == "input"
        }
        ends = [*self._acceleration, *(x for pair in own.assumed for x in pair)]
        found = own.evaluate(ends, values, Recorded.sin, Recorded.cos)
        n = len(qd)
        tape.assumed += zip(found[n::2], found[n + 1 :: 2], strict=True)
        return np.array(found[:n], dtype=object)

    def rate(self, q: Scalars, qd: Scalars) -> Scalars:
        """The time derivative of the positions."""
        rate = _zeros(len(q))
        charting.position_rate(self._charts.where, self._charts.groups, q, qd[self._freedoms], rate)
        return rate

    def normalized(self, q: Scalars) -> Scalars:
        """The positions with quaternions of length 1."""
        q = q.copy()
        charting.normalize(self._charts.groups, q)
        return q

    def moved(self, q: Scalars, v: Scalars) -> Scalars:
        """The positions reached by moving at v for unit time."""
        reached = _zeros(len(q))
        charting.integrate(self._charts.where, self._charts.groups, q, v[self._freedoms], reached)
        return reached


def _zeros(n: int) -> Scalars:
    return np.full(n, 0.0, dtype=object)


# Compiled steps: many steps of an integrator in one call, for a batch of states

# Steps with more operations are not compiled; compiling this many takes about 6 s.
LARGEST_STEP = 100_000


def _stepped(table: Array, opened: Opened, what: Any) -> Program:
    """The steps of a structure."""
    return kept(("steps", table.tobytes(), opened.tobytes(), *what), partial(_recorded_steps, table, opened, what))


def _recorded_steps(table: Array, opened: Opened, what: Any) -> Program:
    """The steps of a structure, recorded on a tape and planned."""
    kind, charts = what
    tape, own = Tape(), Tape()
    tape.nodes, own.nodes = Nodes(), Nodes()
    structure = Structure(table, opened, charts and Charts(*map(np.array, charts)))
    subject = structure.subject(own).with_zeros()
    n = subject.nv
    lengths = {"q": subject.nq, "qd": n, **{x: subject.nq if x == "q_target" else n for x in kind.control}}
    if kind.rows:
        lengths["bodies"] = NUMBERS * len(kind.rows)
    q, qd = (subject.inputs(tape, group) for group in ("q", "qd"))
    after = STEPS[kind.method](_Motion(tape, own, subject, kind), q, qd, tape.input(("dt", 0)))
    return planned("step", tape, lengths, after)


_steps = Kept(_stepped, MEMORY)


class Stepper:
    """Steps of a model, with values of parameters; TooLong, or Undetermined if some joint feels no inertia."""

    def __init__(self, model: Model, kind: StepKind, values: Mapping[Hashable, float]) -> None:
        charts = model.charts and tuple(map(frozen, model.charts))
        table = model.table.copy()
        table[-1, MASS:PARENT] = 0.0  # bodies welded to the base have no influence
        self._program = _steps.serving(table, model.loaded, (kind, charts))
        plan = self._program.plan  # another thread may discard it
        if plan is not None and plan.size > LARGEST_STEP:
            raise TooLong
        self._program.compile_steps()
        self._known = self._program.parameters({**inertias(table), **values})

    def run(
        self, samples: int, every: int, inputs: Sequence[Array], varying: Sequence[bool], outputs: Sequence[Array]
    ) -> bool:
        """Compute ``samples`` · ``every`` steps; False if a state became NaN.

        Inputs are (count, n), or (count, steps, n) if they vary with time. Outputs are positions and rates, (count,
        samples, n), and the number of steps until the state became NaN, (count, 1).
        """
        program, lanes = self._program, host().width
        lengths = program.lengths
        header = np.array([samples, every, *(n * v for n, v in zip(lengths, varying, strict=True))])
        context = np.concatenate([header.astype(np.int64).view(np.float64), self._known])
        rows = [n * (samples * every if v else 1) for n, v in zip(lengths, varying, strict=True)]
        rows += [samples * lengths[0], samples * lengths[1], 1]
        numbers = np.array([*range(lanes), *range(max(rows) + lanes)], dtype=np.int64)
        return drive(program.batch, context, inputs, outputs, [(n, address(numbers[lanes:]), False) for n in rows])


def frozen(array: Any) -> Any:
    """An array as nested tuples, which are hashable."""
    return tuple(map(frozen, array)) if array.ndim else array.item()
