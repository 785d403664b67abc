"""LLVM, if llvmlite is installed, and the processor that it compiles for. llvmlite is imported here only."""

import functools
from typing import Any, NamedTuple

from screwdyn.core.errors import ScrewdynError

llvm: Any
_missing: ImportError | None
try:
    import llvmlite
    from llvmlite import binding
except ImportError as _error:
    llvm, _missing = None, _error
else:
    llvm, _missing = binding, None

__all__ = ["Processor", "llvm", "processor", "require_compiler"]


class Processor(NamedTuple):
    """The processor of this machine, as LLVM describes it.

    Attributes
    ----------
    compiler : str
        Versions of llvmlite and LLVM.
    triple, name, features : str
        Architecture and system, kind of processor, and its instruction sets.
    width : int
        Number of lanes of its widest vectors of float64.
    fused : bool
        Whether it has a fused multiply-add.
    """

    compiler: str
    triple: str
    name: str
    features: str
    width: int
    fused: bool


@functools.cache
def processor() -> Processor | None:
    """The processor of this machine; None without llvmlite."""
    if llvm is None:
        return None
    has, triple = llvm.get_host_cpu_features(), llvm.get_process_triple()
    width = 8 if has.get("avx512f") and has.get("avx512dq") else 4 if has.get("avx2") else 2
    fused = not triple.startswith(("x86_64", "i686")) or bool(has.get("fma"))
    compiler = f"{llvmlite.__version__} {llvm.llvm_version_info}"
    return Processor(compiler, triple, llvm.get_host_cpu_name(), has.flatten(), width, fused)


def require_compiler() -> None:
    """Raise ScrewdynError without llvmlite."""
    if _missing is not None:
        needed = f"compiled trees need llvmlite ({_missing}): pip install 'screwdyn[compile]'"
        raise ScrewdynError(needed) from _missing
