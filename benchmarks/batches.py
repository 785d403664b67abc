"""Many states in one compiled call against Pinocchio's batches, one thread each, and the time to compile.

python benchmarks/batches.py [robot ...]
"""

import sys
from time import perf_counter

import numpy as np
import pinocchio as pin
from clock import clock, machine, same, side_by_side
from robots import GROUPED, ROBOTS, Pair

from screwdyn.backends.llvm.machine import host

STATES = 100_000
CALLS = {
    "inverse_dynamics": "pin.rneaInParallel(1, pool, P, U, B, R)",
    "forward_dynamics": "pin.abaInParallel(1, pool, P, U, B, R)",
}
# Target ratios: for arms, with states side by side and in rows; for larger robots, in both layouts.
ARMS, TARGETS, OTHERS = ("UR5", "Panda"), {"beside": 1 / 50, "rows": 1 / 25}, 1 / 20


def compare(name: str) -> None:
    """The table of one robot."""
    host()  # makes the code that all robots share
    pair, start = Pair(name), perf_counter()
    fast = pair.tree.compile(threads=1).wait()
    compiling = perf_counter() - start
    start = perf_counter()
    pair.tree.compile(threads=1)
    again = perf_counter() - start
    print(f"{name}: nq {pair.tree.nq}, nv {pair.tree.nv}; all functions compiled in {compiling:.2f} s, ", end="")
    print(f"again from the cache in {1e3 * again:.2f} ms")
    print(f"  {f'one of {STATES}':30s}{'compiled':>11s}{'pinocchio':>11s}{'ratio':>8s}{'target':>8s}")

    n = pair.tree.nv
    ours, theirs = pair.states(np.random.default_rng(0), STATES)
    scope = {"pin": pin, "fast": fast, "pool": pin.ModelPool(pair.model, 1), "R": np.zeros((n, STATES), order="F")}
    scope |= dict(zip("PUB", (np.asfortranarray(x.T) for x in theirs), strict=True))
    layouts = {"rows": ours, "beside": [np.ascontiguousarray(x.T).T for x in ours]}
    for layout, arrays in layouts.items():
        scope |= {f"{group}{layout}": x for group, x in zip("qva", arrays, strict=True)}
    scope |= {"rows": np.empty((STATES, n)), "beside": np.empty((n, STATES)).T}
    for function, statement in CALLS.items():
        eval(statement, scope)
        for layout in ("beside", "rows"):
            call = f"fast.{function}(q{layout}, v{layout}, a{layout}, out={layout})"
            same(eval(call, scope).T[pair.order], scope["R"])
            a, b, ratio = side_by_side(clock(call, scope), clock(statement, scope), 15)
            target = TARGETS[layout] if name in ARMS else OTHERS
            times = f"{1e9 * a / STATES:11.1f}{1e9 * b / STATES:11.1f}{ratio:8.3f}{target:8.3f}"
            print(f"  {function + ', ' + layout:30s}{times}{'' if ratio <= target else '  not met'}", flush=True)


if __name__ == "__main__":
    print(f"{machine()}, pinocchio {pin.__version__}; nanoseconds per state, medians; beside: (n, B).T, rows: (B, n)\n")
    for robot in sys.argv[1:] or [*ROBOTS, *GROUPED]:
        compare(robot)
