"""A planned function, and its machine code."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from screwdyn.backends.background import compiling
from screwdyn.backends.kernels.entry import address
from screwdyn.backends.llvm import disk, emit, emit_steps
from screwdyn.backends.llvm.host import host
from screwdyn.backends.llvm.interface import Interface, interface, restored
from screwdyn.backends.llvm.interpreter import Interpreter
from screwdyn.backends.llvm.machine import Loaded, object_file
from screwdyn.backends.llvm.plan import Plan
from screwdyn.backends.tape.tape import Tape
from screwdyn.backends.tape.trace import Scalars

__all__ = ["LARGEST", "Program", "kept", "planned"]

Array = npt.NDArray[np.float64]
# Functions with more operations are not compiled; compiling this many takes about 5 s.
LARGEST = 50_000
# Memory of an operation on a tape, in bytes.
_OPERATION = 250


class Program:
    """A function, and the machine code that is made from its plan on request.

    Parameters
    ----------
    interface : Interface
    plan : Plan, optional
        If there is none, it is made when code is requested that is not in ``code``.
    code : mapping from str to bytes
        Object files that contain a function of that name.

    Attributes
    ----------
    name, lengths, shapes, sparse
        As in the interface.
    plan : Plan or None
        None when all code has been made.
    compiled : bool
        Whether it is compiled: it is short enough, has inputs and outputs, and there is llvmlite. Other functions use
        the ``interpreter``.
    rows : list of int
        Number of rows of scratch space of every input and output.
    slots : list of int
        Addresses of the slots of each of them; see ``batch_loop.Field``.
    single, batch : int
        Addresses of the code for one state and of the code for many states, or for many steps; 0 if not made yet.
    """

    def __init__(self, interface: Interface, plan: Plan | None, code: Mapping[str, bytes] | None = None) -> None:
        self._interface, self.plan = interface, plan
        self.name, self.lengths, self.shapes, self.sparse, slots, self._known = interface
        short = plan is None or (plan.size <= LARGEST and sum(self.lengths) > 0 and len(self.shapes) > 0)
        self.compiled = short and host().code is not None
        self.rows = [1 + max(here, default=-1) for here in slots]
        lanes = range(host().width)
        self._slots = [
            np.array([*lanes, *here, *(n + k for k in lanes)], dtype=np.int64)
            for n, here in zip(self.rows, slots, strict=True)
        ]
        self.slots = [address(here[len(lanes) :]) for here in self._slots]
        self._record: Callable[[], Program] | None = None
        self._key = ""
        self._interpreter: Interpreter | None = None
        self._code = [Loaded(*code.values())] if code else []
        self._found = {name: self._code[0].address(name) for name in code or ()}
        self.single = self._found.get(emit.SINGLE, 0)
        self.batch = self._found.get(emit.BATCH, self._found.get(emit_steps.STEPS, 0))

    @property
    def nbytes(self) -> int:
        """Memory that is kept in bytes, with an error of a few per cent."""
        operations = len(self._known[0].nodes) + (len(self.plan.tape.nodes) if self.plan else 0)
        interpreter = self._interpreter.nbytes if self._interpreter else 0
        return _OPERATION * operations + interpreter + sum(x.nbytes for x in self._code)

    def parameters(self, values: Mapping[Hashable, float]) -> Array:
        """The array that the code reads: known values, from the values of the parameters, and an address."""
        tape, known = self._known
        # Values that are not finite violate the bounds of the program.
        with np.errstate(divide="ignore", invalid="ignore"):
            array = np.array([*tape.evaluate(known, values), 0.0], dtype=np.float64)
        array[-1:].view(np.int64)[0] = host().sincos
        return array

    def compile_single(self) -> None:
        """Make the code for one state unless it exists."""
        if not self.single:
            self.single = self._function(emit.SINGLE, emit.single)
            self._forget()

    def compile_batch(self) -> None:
        """Make the code for many states, unless it exists."""
        if not self.batch:
            self.batch = self._function(emit.BATCH, emit.batch)
            self._forget()

    def compile_steps(self) -> None:
        """Make the code for many steps of an integrator, unless it exists."""
        if not self.batch:
            self.batch = self._function(emit_steps.STEPS, emit_steps.steps)
            self.plan = None

    def interpreter(self) -> Interpreter:
        """The interpreter of the function, used instead of code."""
        return self._interpreter or self._interpreted()

    @compiling
    def _interpreted(self) -> Interpreter:
        """The interpreter, made once."""
        if self._interpreter is None:
            assert self.plan is not None
            self._interpreter, self.plan = Interpreter(self.plan), None
        return self._interpreter

    def _function(self, name: str, text: Callable[[Plan, int], str]) -> int:
        """The address of a function, which is loaded from disk or compiled; stderr announces what takes long."""
        folder = disk.folder() if self._key else None
        kept = "not kept on disk" if folder is None else f"once; kept in {folder}"
        address: int = self._compiled(name, text, line=f"compiling {self.name} of this robot ({kept})")
        return address

    @compiling
    def _compiled(self, name: str, text: Callable[[Plan, int], str]) -> int:
        if name not in self._found:
            if self.plan is None:
                assert self._record is not None
                self.plan = self._record().plan
                assert self.plan is not None
            code = object_file(text(self.plan, host().width))
            self._code.append(Loaded(code))
            self._found[name] = self._code[-1].address(name)
            if self._key:
                _, others = _read(self._key) or (None, {})
                _write(self._key, self._interface, {**others, name: code})
        return self._found[name]

    def _forget(self) -> None:
        if self.single and self.batch:
            self.plan = None


def planned(name: str, tape: Tape, groups: Mapping[str, int], outputs: Sequence[Scalars]) -> Program:
    """The program of a function on a tape.

    Parameters
    ----------
    name : str
    tape : Tape
    groups : mapping from str to int
        Names of the input arrays in order, and their numbers of entries; inputs are named (group, index). Other inputs
        are parameters.
    outputs : sequence of arrays of scalars
    """
    plan = Plan(tape, groups, [out.ravel().tolist() for out in outputs], tape.assumed, host().fused)
    return Program(interface(name, plan, outputs), plan)


def kept(made_from: Hashable, record: Callable[[], Program]) -> Program:
    """The program with the code that is on disk; or a new one, whose code is kept there when it has been made.

    Parameters
    ----------
    made_from : hashable
        All that the program depends on, with an exact ``repr``.
    record : callable
        Makes the program.
    """
    key = disk.key(made_from, host().width, host().fused)
    program = _loaded(key) or record()
    program._key, program._record = key, record
    return program


@compiling
def _loaded(key: str) -> Program | None:
    """The program with the code of a key; None if it is not on disk."""
    found = _read(key)
    return None if found is None else Program(found[0], None, found[1])


def _read(key: str) -> tuple[Interface, dict[str, bytes]] | None:
    """What :func:`_write` has written; None if it is not on disk."""
    content = disk.read(key)
    if content is None:
        return None
    head, _, code = content.partition(b"\n")
    lengths, plain = json.loads(head)
    parts = {}
    for name, length in lengths.items():
        parts[name], code = code[:length], code[length:]
    return restored(plain), parts


def _write(key: str, interface: Interface, code: Mapping[str, bytes]) -> None:
    lengths = {name: len(part) for name, part in code.items()}
    disk.write(key, json.dumps([lengths, interface.plain()]).encode() + b"\n" + b"".join(code.values()))
