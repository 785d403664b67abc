"""What ``tree.compile()`` gives: a tree's dynamics as machine code made for its own structure."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from types import MethodType
from typing import Any

import numpy as np

from screwdyn.backends.llvm import background
from screwdyn.backends.llvm import code_cache as structures
from screwdyn.backends.llvm.call import Function
from screwdyn.core import out_arrays as memory
from screwdyn.core.errors import ScrewdynError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.forms.numbers import Dynamics
from screwdyn.physics.model import Model

__all__ = ["Compiled"]

# States that are worth a thread.
_SHARE = 4096


class _compiled:
    """A method that is replaced, on its object, by the builtin function as soon as there is one."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method

    def __get__(self, compiled: Compiled | None, owner: type) -> Callable[..., Any]:
        if compiled is None:
            return self._method
        method, name = MethodType(self._method, compiled), self._method.__name__
        function = compiled._function(name)
        if function is None:
            return method
        builtin: Callable[..., Any] = function.builtin(method)
        vars(compiled)[name] = builtin
        return builtin


class Compiled(Dynamics):
    """The dynamics of a snapshot of a tree, compiled; made by :meth:`KinematicTree.compile`.

    What a tree answers about its dynamics, with the same arguments and errors. The functions ``mass_matrix``,
    ``coriolis_matrix``, ``gravity_vector``, ``bias_force``, ``inverse_dynamics``, ``forward_dynamics`` and
    :meth:`dynamics` are compiled and take ``out=``: float64 arrays of the shape of the result, in any layout, also
    such as share memory with the arguments; after an error they hold anything. All else is answered as by the tree.

    It is quickest where nothing has to be converted: single states as contiguous float64 arrays with ``out=``, and
    batches as transposed views ``x.T`` of contiguous (nv, B) arrays, so that states stand side by side. Where all
    arguments of a batch are laid out so, and ``out`` is not given, the result is too. A state gives the same bits
    alone, in any batch and on any number of threads, save for a batch that ``forward_dynamics`` leaves to the tree
    because some joint carries hardly more than rounding.

    Compilation runs in the background and begins when this is made; until a function is ready, the tree's own
    kernels answer. They also answer for good for functions of more than ``physics.native.LARGEST`` operations. A
    forked process has the code that was ready, and compiles what was not when it is next asked. Code is kept in the
    process and reused for trees that differ in inertias only: see ``physics.structures``. Methods can be pickled.

    Parameters
    ----------
    model : Model
        It goes on answering for that form of the tree.
    threads : int, optional
        How many threads share a large batch; as many as there are processors if not given.

    Attributes
    ----------
    threads : int

    Raises
    ------
    ScrewdynError
        If ``threads`` is no whole number of at least 1.
    """

    def __init__(self, model: Model, threads: int | None = None) -> None:
        if threads is None:
            threads = os.cpu_count() or 1
        if isinstance(threads, bool) or not isinstance(threads, (int, np.integer)) or threads < 1:
            raise ScrewdynError(f"threads must be a whole number of at least 1, or None for all; got {threads!r}")
        self._model, self.threads = model, int(threads)
        self._functions: dict[str, Function] = {}
        self._structure = structures.structure(model.table, model.loaded) if model.nv else None
        self._pool: ThreadPoolExecutor | None = None
        self._process = 0

    def __reduce__(self) -> tuple[Any, ...]:
        """Code is not copied: a copy compiles again, or takes what the process has."""
        return Compiled, (self._model, self.threads)

    @property
    def model(self) -> Model:
        """The snapshot that the code was made for."""
        return self._model

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the coordinates, in the order of the entries of q."""
        return self._model.coordinates

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return self._model.nv

    @property
    def nv(self) -> int:
        """Number of freedoms."""
        return self._model.nv

    def __repr__(self) -> str:
        state = "ready" if self.ready else "at work"
        return f"<Compiled {self.nv} coordinates, {state}: {', '.join(self.compiled) or 'nothing compiled'}>"

    @property
    def compiled(self) -> tuple[str, ...]:
        """Functions that compiled code answers by now; when all is ready, the others stay with the tree's kernels."""
        return tuple(name for name in structures.ARGUMENTS if self._function(name))

    @property
    def ready(self) -> bool:
        """Whether all code is there."""
        background.resume()
        return self._structure is None or self._structure.ready

    def wait(self, timeout: float | None = None) -> Compiled:
        """Wait until all code is there.

        Raises
        ------
        TimeoutError
            If it is not, after so many seconds.
        """
        background.resume()
        if self._structure is not None:
            self._structure.wait(timeout)
        return self

    @_compiled
    def mass_matrix(self, q: ArrayLike, *, out: Array | None = None) -> Array:
        """Mass matrix M(q), (…, nv, nv); see :meth:`KinematicTree.mass_matrix`."""
        return self._answer("mass_matrix", out, q=q)

    @_compiled
    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike, *, out: Array | None = None) -> Array:
        """Coriolis matrix C(q, q̇), (…, nv, nv); see :meth:`KinematicTree.coriolis_matrix`."""
        return self._answer("coriolis_matrix", out, q=q, qd=qd)

    @_compiled
    def gravity_vector(self, q: ArrayLike, *, out: Array | None = None) -> Array:
        """Torques g(q) that hold the arm still, (…, nv); see :meth:`KinematicTree.gravity_vector`."""
        return self._answer("gravity_vector", out, q=q)

    @_compiled
    def bias_force(self, q: ArrayLike, qd: ArrayLike, *, out: Array | None = None) -> Array:
        """C(q, q̇) q̇ + g(q), (…, nv); see :meth:`KinematicTree.bias_force`."""
        return self._answer("bias_force", out, q=q, qd=qd)

    @_compiled
    def inverse_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        wrenches: Mapping[str, ArrayLike] | None = None,
        *,
        out: Array | None = None,
    ) -> Array:
        """Torques for a motion, (…, nv); see :meth:`KinematicTree.inverse_dynamics`."""
        if wrenches is None:
            return self._answer("inverse_dynamics", out, q=q, qd=qd, qdd=qdd)
        tau = self._answer("inverse_dynamics", None, q=q, qd=qd, qdd=qdd) - self.wrench_torque(q, wrenches)
        if out is not None:
            memory.check((out,), [tau.shape])
        (result,) = memory.hand_over([tau], None if out is None else (out,))
        return result

    @_compiled
    def forward_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        wrenches: Mapping[str, ArrayLike] | None = None,
        *,
        out: Array | None = None,
    ) -> Array:
        """Accelerations, (…, nv); see :meth:`KinematicTree.forward_dynamics`."""
        if wrenches is not None:
            tau = self._model.numbers("tau", tau) + self.wrench_torque(q, wrenches)
        return self._answer("forward_dynamics", out, q=q, qd=qd, tau=tau)

    @_compiled
    def dynamics(
        self, q: ArrayLike, qd: ArrayLike, *, out: tuple[Array, Array, Array] | None = None
    ) -> tuple[Array, Array, Array]:
        """M(q), C(q, q̇) and g(q) in one call, (…, nv, nv), (…, nv, nv) and (…, nv), sharing the work.

        Parameters
        ----------
        q, qd : (…, nv)
        out : tuple of three arrays, optional
        """
        M, C, g = self._answers("dynamics", out, q=q, qd=qd)
        return out or (M, C, g)

    # Inside

    def _function(self, name: str) -> Function | None:
        """A compiled function with this model's numbers, if its code is there."""
        function = self._functions.get(name)
        if function is None and self._structure is not None:
            program = self._structure.program(name)
            if program is not None:
                function = self._functions[name] = Function(program, self._model.table)
            else:
                background.resume()
        return function

    def _answer(self, name: str, out: Array | None, **named: ArrayLike) -> Array:
        result: Array
        (result,) = self._answers(name, None if out is None else (out,), **named)
        return result

    def _answers(self, name: str, out: Any, **named: ArrayLike) -> Any:
        """What one function gives, as a tuple, by its code if that is there and the arguments are in order."""
        model = self._model
        values = [model.numbers(what, value) for what, value in named.items()]
        lengths = [self.nq if what == "q" else self.nv for what in named]
        fits = all(a.ndim and a.shape[-1] == length for a, length in zip(values, lengths, strict=True))
        try:
            batch = np.broadcast_shapes(*(a.shape[:-1] for a in values))
        except ValueError:
            fits = False
        if not fits:
            model.flat(**named)  # names what does not fit
        shapes = [(*batch, *shape) for shape in _shapes(name, model.nv)]
        if out is not None:
            memory.check(out, shapes)
        results = self._compute(name, batch, values, shapes, out)
        if results is None:
            results = self._looped(name, named)
        return memory.hand_over(results, out)

    def _compute(
        self,
        name: str,
        batch: tuple[int, ...],
        values: Sequence[Array],
        shapes: Sequence[tuple[int, ...]],
        out: Sequence[Array] | None,
    ) -> Sequence[Array] | None:
        """The results by compiled code; None if there is none, or if the numbers mean nothing.

        Only an ``out`` apart from the arguments is written to: these may be needed once more.
        """
        function, count = self._function(name), math.prod(batch)
        if function is None:
            return None
        single = count == 1
        if not single and not function.program.batch:
            background.resume()
            return None
        whole = [(*batch, a.shape[-1]) for a in values]
        inputs = [
            _states(a if a.shape == full else np.broadcast_to(a, full), len(batch), count)
            for a, full in zip(values, whole, strict=True)
        ]
        beside = not single and all(a.strides[0] == a.itemsize for a in inputs)
        results = [_empty(shape, len(batch), count, beside) for shape in shapes] if out is None else [*out]
        flat = [_states(a, len(batch), count) for a in results]
        for k, (result, states) in enumerate(zip(results, flat, strict=True)):
            if not memory.apart(result, values) or memory.apart(states, [result]):
                results[k] = _empty(shapes[k], len(batch), count, beside)
                flat[k] = _states(results[k], len(batch), count)
        if single:
            arrays = [np.ascontiguousarray(a) for a in inputs]
            parts = [np.ascontiguousarray(a) for a in flat]
            if not function.single(arrays, parts):
                return None
            for a, b in zip(flat, parts, strict=True):
                if a is not b:
                    a[...] = b
        elif not self._share(function, count, inputs, flat):
            return None
        return results

    def _share(self, function: Function, count: int, inputs: Sequence[Array], outputs: Sequence[Array]) -> bool:
        """Compute a batch in as many parts as there are threads; what a state gives does not depend on it."""
        threads = min(self.threads, count // _SHARE)
        if threads < 2:
            return function.batch(inputs, outputs)
        if self._pool is None or self._process != os.getpid():  # threads do not exist in a forked process
            self._process = os.getpid()
            self._pool = ThreadPoolExecutor(self.threads, "screwdyn-batch")
        # Whole cache lines for each.
        ends = [count * k // threads // 8 * 8 for k in range(threads)] + [count]
        parts = [slice(a, b) for a, b in pairwise(ends)]
        return all([*self._pool.map(lambda p: function.batch([a[p] for a in inputs], [a[p] for a in outputs]), parts)])

    def _looped(self, name: str, named: Mapping[str, ArrayLike]) -> Sequence[Array]:
        if name == "dynamics":
            return (*super().mass_and_coriolis(**named), super().gravity_vector(named["q"]))
        return (getattr(super(), name)(**named),)


def _shapes(name: str, n: int) -> list[tuple[int, ...]]:
    if name == "dynamics":
        return [(n, n), (n, n), (n,)]
    return [(n, n) if name in ("mass_matrix", "coriolis_matrix") else (n,)]


def _states(a: Array, axes: int, count: int) -> Array:
    """An aligned array with its leading axes, so many, made one; a view where that is possible."""
    if axes != 1 or type(a) is not np.ndarray:
        a = np.asarray(a).reshape(count, *a.shape[axes:])
    return a if a.flags.aligned else a.copy()


def _empty(shape: tuple[int, ...], axes: int, count: int, beside: bool) -> Array:
    """A new array, with the states side by side or each by itself."""
    if not beside:
        return np.empty(shape)
    entries = np.empty((*shape[axes:], count))
    return np.moveaxis(entries, -1, 0).reshape(shape)
