"""Machine code for this processor: text is compiled to an object file, which is loaded and kept."""

import functools
from collections.abc import Callable
from ctypes import CFUNCTYPE, c_int64, c_void_p
from typing import Any, NamedTuple

import llvmlite.binding as llvm

from screwdyn.backends.background import compiling_once
from screwdyn.backends.llvm import batch_loop, ir

__all__ = ["Host", "Loaded", "host", "object_file", "with_lanes"]

# Measured overhead of a loaded object in bytes: partly filled pages, and the engine's tables.
_ENGINE = 64_000

# Signature of ``batch_loop.driver``.
_Drive = CFUNCTYPE(c_int64, c_void_p, c_int64, c_void_p, c_int64, c_void_p, c_void_p, c_int64)


def _target_machine() -> Any:
    target = llvm.Target.from_triple(llvm.get_process_triple())
    # The tape has folded and ordered the operations; LLVM only has to choose instructions and registers.
    features = llvm.get_host_cpu_features().flatten()
    return target.create_target_machine(opt=1, cpu=llvm.get_host_cpu_name(), features=features)


@functools.cache
def _emitter() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return _target_machine()


def object_file(text: str) -> bytes:
    """Compile the text of a module to an object file."""
    emitter = _emitter()
    # A separate context, because a context keeps every constant as long as it exists.
    module = llvm.parse_assembly(text, llvm.create_context())
    module.verify()
    code: bytes = emitter.emit_object(module)
    return code


class Loaded:
    """The functions of a module as machine code, which is freed with this object.

    An engine that compiles a module keeps some megabytes of tables; one that loads an object file keeps some pages.

    Parameters
    ----------
    text : str
        The module in LLVM's intermediate representation.

    Attributes
    ----------
    nbytes : int
        Memory that is kept.
    """

    def __init__(self, text: str) -> None:
        code = object_file(text)
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        self.nbytes = len(code) + _ENGINE

    def address(self, name: str) -> int:
        """Address of a function."""
        address: int = self._engine.get_function_address(name)
        return address


class Host(NamedTuple):
    """Properties of this processor, and the code that all functions share."""

    width: int
    fused: bool
    sincos: int
    drive: Callable[..., int]
    code: tuple[Loaded, ...]


@compiling_once
def host() -> Host:
    """The shared code for the widest vectors of this processor."""
    features = llvm.get_host_cpu_features()
    x86 = llvm.get_default_triple().startswith(("x86_64", "i686"))
    width = 8 if features.get("avx512f") and features.get("avx512dq") else 4 if features.get("avx2") else 2
    return with_lanes(width, not x86 or bool(features.get("fma")))


def with_lanes(width: int, fused: bool) -> Host:
    """The shared code for vectors of ``width`` lanes."""
    sincos, drive = Loaded(ir.sincos(width)), Loaded(batch_loop.driver(width))
    return Host(width, fused, sincos.address(ir.SINCOS), _Drive(drive.address(batch_loop.DRIVER)), (sincos, drive))
