"""Screwdyn beside Pinocchio in one run: single calls from Python, batches, and attaching a payload.

python benchmarks/against_pinocchio.py
"""

from time import process_time
from typing import Any

import numpy as np
import pinocchio as pin
from clock import ROBOTS, Timed, clock, machine, read, robot_file, same, side_by_side

import screwdyn as sd

# What is called, our way and theirs, and the ratio aimed at on the two arms.
CALLS = {
    "inverse dynamics": ("tree.inverse_dynamics(q, v, a)", "pin.rnea(model, data, p, u, b)", 1.0),
    "C": ("tree.coriolis_matrix(q, v)", "pin.computeCoriolisMatrix(model, data, p, u)", 1.0),
    "forward dynamics": ("tree.forward_dynamics(q, v, a)", "pin.aba(model, data, p, u, b)", 1.0),
    "M": ("tree.mass_matrix(q)", "pin.crba(model, data, p)", 1.3),
    "g": ("tree.gravity_vector(q)", "pin.computeGeneralizedGravity(model, data, p)", 1.3),
}
BATCH = 1000
MASS, COM, TENSOR = 3.0, np.array([0.0, 0.0, -0.2]), np.diag([0.03, 0.03, 0.01])
AT = np.array([0.0, 0.0, 0.1])


def table_row(what: str, ours: Timed, theirs: Timed, target: float | None = None, calls: int = 1) -> None:
    """One line of the table, in microseconds; `calls` is how many states one call serves."""
    a, b, ratio = side_by_side(ours, theirs)
    verdict = "" if target is None else f"{target:8.1f}  {'met' if ratio <= target else 'not met'}"
    print(f"  {what:26s}{1e6 * a / calls:11.3f}{1e6 * b / calls:11.3f}{ratio:8.2f}{verdict}", flush=True)


def interchangeable(scope: dict[str, Any], order: list[int]) -> None:
    """Both sides must give the same numbers: coordinates stand in a different order only."""
    back = np.argsort(order)
    for ours, theirs, _ in CALLS.values():
        x, y = eval(ours, scope), eval(theirs, scope)
        same(x, y[back] if y.ndim == 1 else y[np.ix_(back, back)])


def attaching(tree: sd.KinematicTree, q: np.ndarray, v: np.ndarray) -> Timed:
    """Attach a payload by a passive hinge, then M, C and g; making the payload and detaching it are not counted."""
    body, hinge, to = sd.Inertia(MASS, COM, TENSOR), sd.revolute("x", passive=True), tree.links[-1]

    def timed(number: int) -> float:
        seconds = 0.0
        for _ in range(number):
            start = process_time()
            handle = tree.attach(body, to=to, joint=hinge, at=AT)
            tree.mass_matrix(q)
            tree.coriolis_matrix(q, v)
            tree.gravity_vector(q)
            seconds += process_time() - start
            tree.detach(handle)
        return seconds

    return timed


def copying(model: pin.Model, q: np.ndarray, v: np.ndarray) -> Timed:
    """The same on a copy of a Pinocchio model."""
    body, hinge, at = pin.Inertia(MASS, COM, TENSOR), pin.JointModelRX(), pin.SE3(np.eye(3), AT)
    last = model.njoints - 1

    def timed(number: int) -> float:
        seconds = 0.0
        for _ in range(number):
            start = process_time()
            grown = model.copy()
            joint = grown.addJoint(last, hinge, at, "payload")
            grown.appendBodyToJoint(joint, body, pin.SE3.Identity())
            data = grown.createData()
            pin.crba(grown, data, q)
            pin.computeCoriolisMatrix(grown, data, q, v)
            pin.computeGeneralizedGravity(grown, data, q)
            seconds += process_time() - start
        return seconds

    return timed


def states(qva: np.ndarray, order: list[int]) -> dict[str, Any]:
    """q, v and a of one state or many, and the same in Pinocchio's order of joints."""
    q, v, a = qva
    p, u, b = (np.ascontiguousarray(x[..., order]) for x in qva)
    return {"q": q, "v": v, "a": a, "p": p, "u": u, "b": b, "P": list(p), "U": list(u), "B": list(b)}


def compare(name: str) -> None:
    """All rows of one robot."""
    rng = np.random.default_rng(0)
    tree, model = read(name), pin.buildModelFromUrdf(str(robot_file(name)))
    n = tree.nv
    order = [tree.coordinates.index(joint) for joint in list(model.names)[1:]]
    scope = {"pin": pin, "tree": tree, "model": model, "data": model.createData()}
    scope |= states(rng.uniform(-1.0, 1.0, (3, n)), order)
    interchangeable(scope, order)
    print(f"{name}: {n} coordinates")
    print(f"  {'':26s}{'screwdyn':>11s}{'pinocchio':>11s}{'ratio':>8s}{'target':>8s}")

    for what, (ours, theirs, target) in CALLS.items():
        table_row(what, clock(ours, scope), clock(theirs, scope), 1.0 if name == "Talos" else target)
    q, v = rng.uniform(-1.0, 1.0, (2, n + 1))
    table_row("attach, first M, C, g", attaching(tree, q, v), copying(model, q, v))
    scope |= states(rng.uniform(-1.0, 1.0, (3, BATCH, n)), order)
    for what, (ours, theirs, _) in CALLS.items():
        loop = f"for p, u, b in zip(P, U, B): {theirs}"
        table_row(f"{what}, each of {BATCH}", clock(ours, scope), clock(loop, scope), calls=BATCH)


if __name__ == "__main__":
    print(f"{machine()}, pinocchio {pin.__version__}; microseconds per state, medians\n")
    for robot in ROBOTS:
        compare(robot)
