"""Machine code for this processor: text is compiled to an object file, which is loaded and kept."""

import functools
from collections.abc import Callable
from typing import Any

from screwdyn.backends.llvm import disk
from screwdyn.backends.llvm.processor import llvm, processor

__all__ = ["Loaded", "object_file", "shared_code"]

# Measured overhead of a loaded object in bytes: partly filled pages, and the engine's tables.
_ENGINE = 64_000


def _target_machine() -> Any:
    here = processor()
    assert here is not None  # without llvmlite nothing is compiled
    target = llvm.Target.from_triple(here.triple)
    # The tape has folded and ordered the operations; LLVM only has to choose instructions and registers.
    return target.create_target_machine(opt=1, cpu=here.name, features=here.features)


@functools.cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@functools.cache
def _emitter() -> Any:
    _initialize()
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
    """The functions of some modules as machine code, which is freed with this object.

    An engine that compiles a module keeps some megabytes of tables; one that loads an object file keeps some pages.

    Parameters
    ----------
    *code : bytes
        Object files.

    Attributes
    ----------
    nbytes : int
        Memory that is kept.
    """

    def __init__(self, *code: bytes) -> None:
        _initialize()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
        for part in code:
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(part))
        self._engine.finalize_object()
        self.nbytes = sum(map(len, code)) + _ENGINE

    def address(self, name: str) -> int:
        """Address of a function."""
        address: int = self._engine.get_function_address(name)
        return address


def shared_code(text: Callable[..., str], *arguments: object) -> bytes:
    """The object file of a module that serves all robots, which is kept on disk.

    Parameters
    ----------
    text : callable
        Makes the text of the module from nothing but the arguments, which have an exact ``repr``.
    """
    key = disk.key(text.__module__, text.__qualname__, arguments)
    code = disk.read(key)
    if code is None:
        code = object_file(text(*arguments))
        disk.write(key, code)
    return code
