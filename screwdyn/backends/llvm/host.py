"""The code that all functions of this process share: sine and cosine, and the loop over a batch."""

from ctypes import CFUNCTYPE, c_int64, c_void_p
from typing import Any, NamedTuple

from screwdyn.backends.background import compiling_once
from screwdyn.backends.llvm import batch_loop, ir
from screwdyn.backends.llvm.machine import Loaded, shared_code
from screwdyn.backends.llvm.processor import processor

__all__ = ["Host", "host", "with_lanes"]

# Signature of ``batch_loop.driver``.
_Drive = CFUNCTYPE(c_int64, c_void_p, c_int64, c_void_p, c_int64, c_void_p, c_void_p, c_int64)


class Host(NamedTuple):
    """Properties of this processor, and the code that all functions share; by default those without a compiler."""

    width: int = 1
    fused: bool = False
    sincos: int = 0
    drive: Any = None
    code: Loaded | None = None


@compiling_once
def host() -> Host:
    """The shared code for the widest vectors of this processor."""
    here = processor()
    return Host() if here is None else with_lanes(here.width, here.fused)


def with_lanes(width: int, fused: bool) -> Host:
    """The shared code for vectors of ``width`` lanes."""
    code = Loaded(shared_code(ir.sincos, width), shared_code(batch_loop.driver, width))
    return Host(width, fused, code.address(ir.SINCOS), _Drive(code.address(batch_loop.DRIVER)), code)
