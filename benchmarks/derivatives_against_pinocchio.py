"""Derivatives and regressor against Pinocchio's analytical ones: single calls from Python, and batches.

python benchmarks/derivatives_against_pinocchio.py
"""

from time import perf_counter
from typing import Any

import numpy as np
import pinocchio as pin
from clock import clock, machine, same, side_by_side
from robots import ROBOTS, read, robot_file

# The calls of screwdyn and of Pinocchio, and the target ratios for single calls and for each state of a batch.
CALLS = {
    "inverse dynamics": ("D.inverse_dynamics(q, v, a)", "pin.computeRNEADerivatives(model, data, p, u, b)", 1.0, 0.1),
    "forward dynamics": ("D.forward_dynamics(q, v, a)", "pin.computeABADerivatives(model, data, p, u, b)", 1.0, 0.1),
    "gravity": ("D.gravity_vector(q)", "pin.computeGeneralizedGravityDerivatives(model, data, p)", 1.0, 0.1),
    "regressor": ("D.regressor(q, v, a)", "pin.computeJointTorqueRegressor(model, data, p, u, b)", None, None),
}
# The derivatives for this many states of Talos, 25 kB each, fit into memory.
BATCH = 4000


def seconds(statement: str, scope: dict[str, Any]) -> float:
    """Time of the first call, which includes recording and compiling."""
    start = perf_counter()
    eval(statement, dict(scope))
    return perf_counter() - start


def interchangeable(scope: dict[str, Any], order: list[int]) -> None:
    """Check that the results agree, up to the order of the coordinates."""
    D, data, back = scope["D"], scope["data"], np.argsort(order)
    ours = [*D.inverse_dynamics(scope["q"], scope["v"], scope["a"])[:2]]
    ours += [*D.forward_dynamics(scope["q"], scope["v"], scope["a"])[:2]]
    eval(CALLS["inverse dynamics"][1], scope)
    theirs = [data.dtau_dq.copy(), data.dtau_dv.copy()]
    eval(CALLS["forward dynamics"][1], scope)
    theirs += [data.ddq_dq.copy(), data.ddq_dv.copy()]
    ours += [D.gravity_vector(scope["q"])]
    theirs += [eval(CALLS["gravity"][1], scope)]
    for x, y in zip(ours, theirs, strict=True):
        same(x, y[np.ix_(back, back)])


def compare(name: str) -> None:
    """The table of one robot."""
    rng = np.random.default_rng(0)
    tree, model = read(name), pin.buildModelFromUrdf(str(robot_file(name)))
    n, D = tree.nv, tree.derivatives
    order = [tree.coordinates.index(joint) for joint in list(model.names)[1:]]
    one, many = rng.uniform(-1.0, 1.0, (3, n)), rng.uniform(-1.0, 1.0, (3, BATCH, n))
    scope = {"pin": pin, "D": D, "model": model, "data": model.createData()}
    scope |= dict(zip("qvapub", [*one, *np.ascontiguousarray(one[:, order])], strict=True))
    batch = scope | dict(zip("qvaPUB", [*many, *map(list, many[..., order])], strict=True))
    batch["out"] = tuple(np.empty((3, BATCH, n, n)))
    print(f"{name}: {n} coordinates")
    print(f"  {'':32s}{'first, s':>10s}{'screwdyn':>11s}{'pinocchio':>11s}{'ratio':>8s}{'target':>8s}")
    for what, (ours, theirs, *targets) in CALLS.items():
        loop = f"for p, u, b in zip(P, U, B): {theirs}"
        rows = [(what, scope, ours, theirs, 1, targets[0])]
        rows += [(f"{what}, each of {BATCH}", batch, ours, loop, BATCH, targets[1])]
        if what != "regressor":
            ours = ours.replace(")", ", out=out)" if "dynamics" in what else ", out=out[0])")
            rows += [("… with out", batch, ours, loop, BATCH, targets[1])]
        for label, given, statement, other, states, target in rows:
            first = seconds(statement, given)
            a, b, ratio = side_by_side(clock(statement, given), clock(other, given), 50 if states == 1 else 20)
            a, b = 1e6 * a / states, 1e6 * b / states
            verdict = f"{target:8.1f}  {'met' if ratio <= target else 'not met'}" if target else ""
            print(f"  {label:32s}{first:10.2f}{a:11.3f}{b:11.3f}{ratio:8.3f}{verdict}", flush=True)
    interchangeable(scope, order)


if __name__ == "__main__":
    print(f"{machine()}, pinocchio {pin.__version__}; microseconds per state, medians\n")
    for robot in ROBOTS:
        compare(robot)
