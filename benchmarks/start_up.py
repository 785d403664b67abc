"""Time and memory of a new process: the import, first calls of the kernels, and compiled code anew and from disk.

The import is also given as a multiple of NumPy's, in processor time, which other processes influence less. New
processes that read a URDF file and compute inverse dynamics once are compared with those of Pinocchio, in turns and in
processor time of all threads. Memory is the largest resident set of a process, which Linux reports.

python benchmarks/start_up.py
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from resource import RUSAGE_CHILDREN, getrusage
from time import perf_counter
from typing import NamedTuple

from clock import machine
from robots import ROBOTS, robot_file

IMPORT = "import screwdyn"
FIRST_M = """
import screwdyn
arm = screwdyn.robots.ur5()
arm.mass_matrix(arm.neutral())
"""
SEVEN = (
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
MEMORY = "\nprint(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
READ = """
from time import process_time
import numpy as np
import screwdyn
tree = screwdyn.KinematicTree.from_urdf({file!r})
q, zero = tree.neutral(), np.zeros(tree.nv)
start = process_time()
"""
COMPILED = READ + "tree.compile(threads=1).wait().inverse_dynamics(q, zero, zero)\nprint(process_time() - start)"
DEFAULT = READ + "tree.inverse_dynamics(q, zero, zero)\nprint(process_time() - start)"
PINOCCHIO = """
import numpy as np
import pinocchio
model = pinocchio.buildModelFromUrdf({file!r})
pinocchio.rnea(model, model.createData(), pinocchio.neutral(model), np.zeros(model.nv), np.zeros(model.nv))
print(0)
"""


def environment(cache: str) -> dict[str, str]:
    """The environment of a new process: ``cache`` has its compiled code, and Python keeps its modules compiled."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"SCREWDYN_CACHE": cache}


class Took(NamedTuple):
    """Seconds of a new process, its processor time, and its output."""

    seconds: float
    processor: float
    printed: str


def once(program: str, cache: str) -> Took:
    """Run a program in a new process."""
    start, before = perf_counter(), getrusage(RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env=environment(cache),
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    seconds, after = perf_counter() - start, getrusage(RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Took(seconds, processor, done.stdout)


def seconds(program: str, cache: str, repeats: int = 1) -> float:
    """Shortest time of a new process."""
    return min(once(program, cache).seconds for _ in range(repeats))


def processor_seconds(programs: Sequence[str], cache: str, repeats: int = 15) -> list[float]:
    """Shortest processor time of a new process for each program; the programs run in turns."""
    return [
        min(times)
        for times in zip(*([once(x, cache).processor for x in programs] for _ in range(repeats)), strict=True)
    ]


def report(what: str, measured: float, target: float | None) -> None:
    """One line of the table."""
    judged = "" if target is None else f"{target:6.1f} s  {'met' if measured <= target else 'not met'}"
    print(f"{what:62s}{measured:7.2f} s{judged}", flush=True)


def first_results(turns: int = 7) -> None:
    """Time to the first inverse dynamics: from ``compile()``, and from the start of the process, against Pinocchio."""
    heads = f"{'from the call':>15s}{'process':>10s}{'ratio':>8s}"
    print(f"\n{'first inverse dynamics, robot from a URDF file':52s}{heads}")
    for name in ROBOTS:
        file = str(robot_file(name))
        ours, kernel, theirs = (text.format(file=file) for text in (COMPILED, DEFAULT, PINOCCHIO))
        with tempfile.TemporaryDirectory() as kept:
            for program in (ours, kernel):
                once(program, kept)
            found: dict[str, list[tuple[float, float]]] = {}
            for _ in range(turns):
                with tempfile.TemporaryDirectory() as empty:
                    ways = {"compiled anew": (ours, empty), "code from disk": (ours, kept), "kernel": (kernel, kept)}
                    for way, (program, cache) in {**ways, "Pinocchio": (theirs, kept)}.items():
                        took = once(program, cache)
                        found.setdefault(way, []).append((float(took.printed), took.processor))
        shortest = {way: [min(times) for times in zip(*pairs, strict=True)] for way, pairs in found.items()}
        for way, (call, whole) in shortest.items():
            call_text = f"{call:13.3f} s" if call else " " * 15
            ratio = whole / shortest["Pinocchio"][1]
            print(f"{name + ', ' + way:52s}{call_text}{whole:8.2f} s{ratio:8.2f}", flush=True)


if __name__ == "__main__":
    print(f"{machine()}; new processes\n\n{'':62s}{'measured':>9s}{'target':>8s}")
    with tempfile.TemporaryDirectory() as cache:
        once(SEVEN, cache)
        bare = seconds("pass", cache, 15)
        report("import screwdyn (without starting Python)", seconds(IMPORT, cache, 15) - bare, 0.3)
        idle, numpy, whole = processor_seconds(("pass", "import numpy", IMPORT), cache)
        print(
            f"import screwdyn, processor time: {(whole - idle) / (numpy - idle):.2f} of import numpy, which it contains"
        )
        report("from the start of a process to its first M", seconds(FIRST_M, cache, 7), 2)
        report("the same to M, C, g, dynamics, a pose and a Jacobian", seconds(SEVEN, cache, 7), 2)
        for what, program in {"import numpy": "import numpy", IMPORT: IMPORT, "the first M": FIRST_M}.items():
            print(f"memory of a process after {what}: {int(once(program + MEMORY, cache).printed) / 1000:.0f} MB")
    first_results()
