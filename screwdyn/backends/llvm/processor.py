"""The processor that code is compiled for."""

import functools
from typing import NamedTuple

import llvmlite.binding as llvm

__all__ = ["Processor", "processor"]


class Processor(NamedTuple):
    """The processor of this machine, as LLVM describes it.

    Attributes
    ----------
    triple, name, features : str
        Architecture and system, kind of processor, and its instruction sets.
    width : int
        Number of lanes of its widest vectors of float64.
    fused : bool
        Whether it has a fused multiply-add.
    """

    triple: str
    name: str
    features: str
    width: int
    fused: bool


@functools.cache
def processor() -> Processor:
    """The processor of this machine."""
    has, triple = llvm.get_host_cpu_features(), llvm.get_process_triple()
    width = 8 if has.get("avx512f") and has.get("avx512dq") else 4 if has.get("avx2") else 2
    fused = not triple.startswith(("x86_64", "i686")) or bool(has.get("fma"))
    return Processor(triple, llvm.get_host_cpu_name(), has.flatten(), width, fused)
