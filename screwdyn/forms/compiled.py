"""The result of ``tree.compile()``: machine code for the quantities of one tree."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from functools import partial
from types import MethodType
from typing import Any

import numpy as np

from screwdyn.backends.kernels.entry import method as in_c
from screwdyn.backends.kernels.entry import processors
from screwdyn.backends.llvm import machine, program
from screwdyn.backends.llvm.machine import require_compiler
from screwdyn.backends.llvm.program import Function
from screwdyn.core.errors import ScrewdynError
from screwdyn.core.types import ArrayLike, check_out, hand_over, written
from screwdyn.forms.configurations import Configurations
from screwdyn.forms.numbers import Numbers
from screwdyn.forms.requests import Request
from screwdyn.forms.rollout import Rollouts
from screwdyn.physics.contribution import SHARES, Contribution, share_of
from screwdyn.physics.model import Model
from screwdyn.physics.quantities import CATALOGUE, SOLVING, WITH_LOOPS, Method, Quantity, TakesOut
from screwdyn.physics.recursions.links import frame_code
from screwdyn.physics.table import PLACE

__all__ = ["AT_ONCE", "Compiled"]

# Quantities that are compiled at once; the others are compiled after their first call.
AT_ONCE = (
    "mass_matrix",
    "coriolis_matrix",
    "gravity_vector",
    "bias_force",
    "inverse_dynamics",
    "forward_dynamics",
    "dynamics",
)
# Numbers of the methods in C, after those of trees.
_NUMBERS = {name: k for k, name in enumerate((x for x, e in CATALOGUE.items() if e.parameters), len(CATALOGUE))}
# Number of states for which a further thread is used.
_SHARE = 4096


class Compiled(Numbers, Configurations, Rollouts, TakesOut):
    """The quantities of a model as machine code; made by :meth:`KinematicTree.compile`.

    It has a method for every quantity of the tree, with the same arguments, units and errors. Every method also takes
    ``out=``: a float64 array of the shape of the result, or a tuple of arrays if there are several results, in any
    layout. ``out`` may alias the arguments. After an error its contents are undefined.

    Calls without conversions are fastest: single states as contiguous float64 arrays with ``out=``, and batches as
    transposed views ``x.T`` of contiguous (nv, B) arrays, in which a coordinate of all states is contiguous. If all
    arguments of a batch have this layout and ``out`` is not given, so has the result. The results for a state have the
    same bits alone, in any batch and with any number of threads. The exception is a batch with a state that violates an
    assumption of the compiled code: the default kernel then computes the whole batch.

    A thread compiles in the background: M, C, g, bias force, inverse and forward dynamics at once, and any other
    quantity, for each link and frame, after its first call. Until a function is compiled, the default kernel computes
    it. Functions of more than ``screwdyn.backends.llvm.program.LARGEST`` operations are never compiled. A forked
    process has the code that was ready, and compiles other functions when they are next called. The process caches the
    code and uses it for all trees that differ in inertias only, and keeps it on disk: see docs/compiled.md. Compiled
    trees and their methods can be pickled; the other process loads the code from disk.

    Parameters
    ----------
    model : Model
        The snapshot; later changes of the tree do not affect it.
    threads : int, optional
        Number of threads for large batches; by default the number of processors that the process may use. A pickled
        copy uses as many, or by default those of its own process.

    Attributes
    ----------
    coordinates, positions : tuples of str
        Names of the nv freedoms, in the order of the entries of q̇, and of the nq entries of q.
    nq, nv, threads : int

    Raises
    ------
    ScrewdynError
        If llvmlite is not installed, or ``threads`` is not an integer of at least 1.
    """

    def __init__(self, model: Model, threads: int | None = None) -> None:
        require_compiler()
        self._asked = threads
        if threads is None:
            threads = processors()
        if isinstance(threads, bool) or not isinstance(threads, (int, np.integer)) or threads < 1:
            raise ScrewdynError(f"threads must be an integer >= 1, or None for one per processor; got {threads!r}")
        super().__init__(model)
        self.coordinates, self.positions, self.nq, self.nv = model.coordinates, model.positions, model.nq, model.nv
        self.threads = int(threads)
        self._programs = program.programs_of(model) if model.nv else None
        self._functions: dict[tuple[str, str | None, int], Function] = {}
        self._calls: dict[tuple[str, str, Any], Callable[..., Any]] = {}
        for name in AT_ONCE:
            self._compilation(Request(CATALOGUE[name]))

    def __reduce__(self) -> tuple[Any, ...]:
        """Code is not pickled: a copy uses the code that its process has, or compiles it."""
        return Compiled, (self._model, self._asked)

    def __repr__(self) -> str:
        state = "ready" if self.ready else "compiling"
        return f"<Compiled {self.nv} coordinates, {state}: {', '.join(self.compiled) or 'nothing compiled'}>"

    @property
    def compiled(self) -> tuple[str, ...]:
        """Names of the quantities whose code is ready; the default kernels compute all others."""
        return () if self._programs is None else self._programs.names

    @property
    def ready(self) -> bool:
        """Whether all code that was requested is ready."""
        machine.resume()
        return self._programs is None or self._programs.ready

    def wait(self, timeout: float | None = None) -> Compiled:
        """Wait until all code that was requested is ready; returns the object itself.

        Raises
        ------
        TimeoutError
            If it is not ready after ``timeout`` seconds.
        """
        machine.resume()
        if self._programs is not None:
            self._programs.wait(timeout)
        return self

    # Inside

    def _compilation(self, request: Request) -> program.Compilation | None:
        """Request the compilation of a quantity; None if a result has no entries, or if it is refused."""
        name, model = request.entry.name, self._model
        if self._programs is None or (model.constraints and WITH_LOOPS.get(name, "") is None):
            return None
        if name in SOLVING and model.unresisted:
            return None
        places = np.array(request.places(model), dtype=np.float64).reshape(-1, PLACE)
        if any(0 in shape for shape in model.shapes(request.entry, request.link or "")):
            return None
        return self._programs.get(name, model, places)

    def _function(self, request: Request) -> Function | None:
        """A compiled quantity with the numbers of this model if its code is ready; otherwise request it."""
        key = request.entry.name, request.link, request.code
        function = self._functions.get(key)
        if function is None:
            compilation = self._compilation(request)
            if compilation is not None and compilation.program is not None:
                function = self._functions[key] = Function(compilation.program, self._model.table)
            else:
                machine.resume()
        return function

    def _call(self, request: Request) -> Callable[..., Any]:
        """The function that computes a quantity of one link: the built-in function as soon as its code is ready."""
        slow, name, link = partial(self._answer, request), request.entry.name, str(request.link)
        self._model.carrier(request.link)  # raises an error for an unknown link
        if "frame" in request.entry.parameters:
            frame_code(request.frame)
        function = self._function(request)
        if function is None:
            return slow
        call: Callable[..., Any]
        call = function.builtin(slow, share_of(self._model, name, link) if name in SHARES else None)
        self._calls[name, link, request.frame] = call
        return call

    def _answer(
        self, request: Request, *state: ArrayLike, wrenches: Mapping[str, ArrayLike] | None = None, out: Any = None
    ) -> Any:
        """Evaluate a quantity, by compiled code if it is ready and the arguments are valid."""
        entry, model, named = request.entry, self._model, dict(zip(request.entry.arguments, state, strict=True))
        if wrenches is not None and entry.wrenches == "tau":
            named["tau"] = model.numbers("tau", named["tau"]) + self.wrench_torque(named["q"], wrenches)
        elif wrenches is not None:
            if model.constraints:
                found = self._evaluate(entry, *state, wrenches)
            else:
                found = self._answer(request, *state) - self.wrench_torque(named["q"], wrenches)
            return found if out is None else written((found,), (out,))[0]
        values, batch = model.arrays(named, checked=False)
        shapes = [(*batch, *shape) for shape in model.shapes(entry, request.link or "")]
        share = share_of(model, entry.name, str(request.link)) if entry.name in SHARES else None
        several = len(shapes) > 1
        arrays = out if several or out is None else (out,)
        if arrays is not None and share is None:
            check_out(arrays, shapes)
        function, found, sound = self._function(request), None, False
        if function is not None and (math.prod(batch) == 1 or function.program.batch):
            in_parts = partial(self._in_parts, least=_SHARE)
            found, sound = function.evaluate(values, shapes, None if share else arrays, in_parts)
        if not sound:
            machine.resume()
            given = {"link": request.link, **named, "frame": request.frame, "wrenches": None}
            found = self._evaluate(entry, *(given[name] for name in [*entry.signature.parameters][1:]))
        elif share:
            found = share(*found)
        elif not several:
            (found,) = found
        if share:
            return found if out is None else Contribution(found.link, found.coordinates, *written(found.arrays, out))
        results = hand_over(found if several else (np.asarray(found),), arrays)
        return out if out is not None else results if several else results[0][()]


class _Quantity:
    """The method of a quantity of the whole tree; the built-in function replaces it as soon as its code is ready."""

    def __init__(self, entry: Quantity, method: Callable[..., Any]) -> None:
        self._entry, self._method = entry, method

    def __get__(self, compiled: Compiled | None, owner: type) -> Callable[..., Any]:
        if compiled is None:
            return self._method
        method = MethodType(self._method, compiled)
        function = compiled._function(Request(self._entry))
        if function is None:
            return method
        builtin: Callable[..., Any] = function.builtin(method, k=[*CATALOGUE].index(self._entry.name))
        vars(compiled)[self._entry.name] = builtin
        return builtin


def _method(entry: Quantity) -> Any:
    """The method of a quantity, with ``out``."""
    out = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None)
    signature = entry.signature.replace(parameters=[*entry.signature.parameters.values(), out])
    one = len(entry.given) == 1
    kind, results = ("an array", "result") if one else (f"a tuple of {len(entry.given)} arrays", "results")
    takes = f"The optional ``out`` is {kind} of float64 for the {results}."
    declared = Method(entry, "Compiled", signature, f"{entry.doc}\n\nCompiled; see :class:`Compiled`. {takes}\n")
    name, count, last = entry.name, len(entry.arguments), 1 + len(entry.arguments)
    framed = "frame" in entry.parameters

    def of_tree(self: Compiled, *state: Any, out: Any = None, **named: Any) -> Any:
        wrenches = None
        if named or len(state) != count:
            _, given, _, wrenches = entry.split(declared.values(state, named))
            state = tuple(given)
        return self._answer(Request(entry), *state, wrenches=wrenches, out=out)

    def of_link(self: Compiled, *values: Any, out: Any = None, **named: Any) -> Any:
        if named or len(values) != declared.most:
            values = declared.values(values, named)
        link, frame = values[0], values[last] if framed else None
        try:
            call = self._calls[name, link, frame]
        except (KeyError, TypeError):
            call = self._call(Request(entry, link, frame))
        return call(*values[1:last]) if out is None else call(*values[1:last], out=out)

    if not entry.parameters:
        return _Quantity(entry, declared.of(of_tree))
    return in_c(Compiled, _NUMBERS[name], entry, declared.of(of_link), compiled=True)


for _entry in CATALOGUE.values():
    setattr(Compiled, _entry.name, _method(_entry))
