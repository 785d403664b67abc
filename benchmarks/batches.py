"""``tree.compile()`` beside Pinocchio in one run, one thread each: single calls, batches, and the time to compile.

python benchmarks/compiled_against_pinocchio.py [robot …]
"""

import sys
from time import perf_counter
from typing import Any

import numpy as np
import pinocchio as pin
from clock import ROBOTS, Timed, clock, machine, read, robot_file, same, side_by_side

from screwdyn.backends.llvm.machine import host

STATES = 100_000
# What is called, our way and theirs, and the ratio aimed at on the two arms.
SINGLE = {
    "inverse dynamics": ("inverse_dynamics(q, v, a, out=tau)", "pin.rnea(model, data, p, u, b)", 0.5),
    "C": ("coriolis_matrix(q, v, out=C)", "pin.computeCoriolisMatrix(model, data, p, u)", 0.5),
    "g": ("gravity_vector(q, out=g)", "pin.computeGeneralizedGravity(model, data, p)", 0.5),
    "forward dynamics": ("forward_dynamics(q, v, a, out=qdd)", "pin.aba(model, data, p, u, b)", 0.5),
    "M": ("mass_matrix(q, out=M)", "pin.crba(model, data, p)", 0.7),
    "M, C and g": (
        "dynamics(q, v, out=MCg)",
        "pin.crba(model, data, p); pin.computeCoriolisMatrix(model, data, p, u); "
        "pin.computeGeneralizedGravity(model, data, p)",
        0.35,
    ),
}
BATCH = {
    "inverse dynamics": ("inverse_dynamics", "pin.rneaInParallel(1, pool, P, U, B, R)"),
    "forward dynamics": ("forward_dynamics", "pin.abaInParallel(1, pool, P, U, B, R)"),
}


def row(what: str, ours: Timed, theirs: Timed, target: float, states: int = 1, repeats: int = 200) -> None:
    """One line of the table, in nanoseconds a state."""
    a, b, ratio = side_by_side(ours, theirs, repeats)
    verdict = "met" if ratio <= target else "not met"
    print(
        f"  {what:30s}{1e9 * a / states:11.1f}{1e9 * b / states:11.1f}{ratio:8.3f}{target:8.3f}  {verdict}", flush=True
    )


def compiling(name: str) -> Any:
    """The compiled tree, and how long the processor worked at it; shared code is made before."""
    tree = read(name)
    host()
    start = perf_counter()
    fast = tree.compile(threads=1).wait()
    print(f"  code of all functions, for one state and for many, ready after {perf_counter() - start:.2f} s")
    start = perf_counter()
    tree.compile(threads=1)
    print(f"  and again, from what is kept, after {1e3 * (perf_counter() - start):.2f} ms")
    return fast


def interchangeable(scope: dict[str, Any], order: list[int]) -> None:
    """All single calls: coordinates stand in a different order only."""
    back = np.argsort(order)
    for what, (ours, theirs, _) in SINGLE.items():
        found = eval(f"fast.{ours}", scope)
        if what == "M, C and g":
            for x, y in zip(found, (scope["M"], scope["C"], scope["g"]), strict=True):
                same(x, y)
        else:
            expected = eval(theirs, scope)
            same(found, expected[back] if expected.ndim == 1 else expected[np.ix_(back, back)])


def compare(name: str) -> None:
    """All rows of one robot."""
    print(name)
    rng = np.random.default_rng(0)
    tree, fast, model = read(name), compiling(name), pin.buildModelFromUrdf(str(robot_file(name)))
    n, arm = tree.nv, name != "Talos"
    order = [tree.coordinates.index(joint) for joint in list(model.names)[1:]]
    q, v, a = rng.uniform(-1, 1, (3, n))
    square = np.empty((n, n))
    scope = {
        "pin": pin,
        "fast": fast,
        "model": model,
        "data": model.createData(),
        "pool": pin.ModelPool(model, 1),
        **{"q": q, "v": v, "a": a, "p": q[order], "u": v[order], "b": a[order]},
        **{"tau": np.empty(n), "g": np.empty(n), "qdd": np.empty(n), "M": square.copy(), "C": square.copy()},
        "MCg": (square.copy(), square.copy(), np.empty(n)),
    }
    interchangeable(scope, order)
    print(f"  {'one state':30s}{'compiled':>11s}{'pinocchio':>11s}{'ratio':>8s}{'target':>8s}")
    for what, (ours, theirs, target) in SINGLE.items():
        row(what, clock(f"fast.{ours}", scope), clock(theirs, scope), target if arm else 1.0)

    print(f"  one of {STATES}")
    Q = rng.uniform(-1, 1, (3, STATES, n))
    for group, x in zip("PUB", Q, strict=True):
        scope[group] = np.asfortranarray(x[:, order].T)
    scope["R"] = np.zeros((n, STATES), order="F")
    rows = {f"{group}rows": x for group, x in zip("qva", Q, strict=True)} | {"rows": np.empty((STATES, n))}
    beside = {f"{group}beside": np.ascontiguousarray(x.T).T for group, x in zip("qva", Q, strict=True)}
    scope |= rows | beside | {"beside": np.empty((n, STATES)).T}
    for what, (ours, theirs) in BATCH.items():
        eval(theirs, scope)
        for layout, target in (("beside", 1 / 50 if arm else 1 / 20), ("rows", 1 / 25 if arm else 1 / 20)):
            call = f"fast.{ours}(q{layout}, v{layout}, a{layout}, out={layout})"
            same(eval(call, scope).T[order], scope["R"])
            row(f"{what}, {layout}", clock(call, scope), clock(theirs, scope), target, STATES, 15)
    print()


if __name__ == "__main__":
    print(f"{machine()}, pinocchio {pin.__version__}; nanoseconds a state, medians; beside: (n, B).T, rows: (B, n)\n")
    for robot in sys.argv[1:] or ROBOTS:
        compare(robot)
