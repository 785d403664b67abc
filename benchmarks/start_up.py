"""Time of a new process: the import, the first M, and compilation on a machine without compiled kernels.

The import is also given as a multiple of NumPy's, in processor time, which other processes influence less.

python benchmarks/start_up.py
"""

import os
import subprocess
import sys
import tempfile
from resource import RUSAGE_CHILDREN, getrusage
from time import perf_counter

from clock import machine

IMPORT = "import screwdyn"
FIRST_M = """
import screwdyn
arm = screwdyn.robots.ur5()
arm.mass_matrix(arm.neutral())
"""
EVERYTHING = (
    FIRST_M
    + """
q, link = arm.neutral(), arm.links[-1]
arm.coriolis_matrix(q, q)
arm.gravity_vector(q)
arm.inverse_dynamics(q, q, q, wrenches={link: [0] * 6})
arm.forward_dynamics(q, q, q)
arm.forward_kinematics(link, q)
arm.jacobian(link, q)
"""
)


def seconds(program: str, cache: str, repeats: int = 1) -> float:
    """Shortest time of a new process, with the folder ``cache`` for compiled kernels."""
    settings = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | {"XDG_CACHE_HOME": cache}
    times = []
    for _ in range(repeats):
        start = perf_counter()
        subprocess.run([sys.executable, "-c", program], env=settings, check=True, stderr=subprocess.DEVNULL)
        times.append(perf_counter() - start)
    return min(times)


def processor_seconds(programs: tuple[str, ...], cache: str, repeats: int = 15) -> list[float]:
    """Shortest processor time of a new process for each program; the programs run in turns."""
    settings = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | {"XDG_CACHE_HOME": cache}
    times: list[list[float]] = [[] for _ in programs]
    for _ in range(repeats):
        for k, program in enumerate(programs):
            before = getrusage(RUSAGE_CHILDREN)
            subprocess.run([sys.executable, "-c", program], env=settings, check=True)
            after = getrusage(RUSAGE_CHILDREN)
            times[k].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return [min(took) for took in times]


def report(what: str, measured: float, target: float) -> None:
    """One line of the table."""
    print(f"{what:62s}{measured:7.2f} s{target:6.1f} s  {'met' if measured <= target else 'not met'}", flush=True)


if __name__ == "__main__":
    print(f"{machine()}; new processes\n\n{'':62s}{'measured':>9s}{'target':>8s}")
    with tempfile.TemporaryDirectory() as empty:
        report("first M on a machine, one kernel compiled", seconds(FIRST_M, empty), 15)
    with tempfile.TemporaryDirectory() as cache:
        report("every function for the first time, all kernels compiled", seconds(EVERYTHING, cache), 15)
        bare = seconds("pass", cache, 15)
        report("import screwdyn (without starting Python)", seconds(IMPORT, cache, 15) - bare, 0.3)
        idle, numpy, whole = processor_seconds(("pass", "import numpy", IMPORT), cache)
        print(
            f"import screwdyn, processor time: {(whole - idle) / (numpy - idle):.2f} of import numpy, which it contains"
        )
        report("later processes, from start to first M", seconds(FIRST_M, cache, 7), 2)
        report("later processes, from start to the end of every function", seconds(EVERYTHING, cache, 7), 2)
