"""Shared functions of the benchmarks: timing, comparison of results, and the name of the machine."""

import os
import platform
import statistics
from collections.abc import Callable
from pathlib import Path
from time import process_time
from timeit import Timer
from typing import Any

import numpy as np

# Returns the seconds of processor time of a number of calls.
Timed = Callable[[int], float]


def clock(statement: str, scope: dict[str, Any]) -> Timed:
    """A timer of a statement in processor time, which other processes hardly influence."""
    return Timer(statement, timer=process_time, globals=dict(scope)).timeit


def often(timed: Timed, seconds: float) -> int:
    """Number of calls that take about that long. The first call, which may compile or load, is not timed."""
    timed(1)
    return max(1, round(seconds / min(timed(3) / 3 for _ in range(5))))


def seconds_per_call(timed: Timed, repeats: int = 15) -> float:
    """Median time of one call."""
    number = often(timed, 0.005)
    return statistics.median(timed(number) / number for _ in range(repeats))


def side_by_side(ours: Timed, theirs: Timed, repeats: int = 400) -> tuple[float, float, float]:
    """Median seconds of both calls, and the median ratio of short runs in turns: disturbances affect both."""
    number = min(often(ours, 0.001), often(theirs, 0.001))
    pairs = [(ours(number) / number, theirs(number) / number) for _ in range(repeats)]
    a, b = (statistics.median(times) for times in zip(*pairs, strict=True))
    return a, b, statistics.median(x / y for x, y in pairs)


def same(ours: np.ndarray, theirs: np.ndarray) -> None:
    """Check that both results agree to 1e-9 of the largest entry."""
    assert np.abs(ours - theirs).max() <= 1e-9 * np.abs(theirs).max()


def machine() -> str:
    """Processor, cores, Python."""
    cpu, info = platform.machine(), Path("/proc/cpuinfo")
    if info.exists():
        cpu = next((line.split(": ")[1] for line in info.read_text().splitlines() if "model name" in line), cpu)
    return f"{cpu}, {os.cpu_count()} cores, Python {platform.python_version()}, numpy {np.__version__}"
