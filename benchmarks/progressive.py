"""Time to attach a payload and to compute its contribution alone, against attaching it and computing M, C and g.

python benchmarks/progressive.py
"""

from time import process_time
from typing import Any

import numpy as np
from clock import Timed, clock, machine, seconds_per_call, side_by_side
from scaling import grown

import screwdyn as sd

BODY = sd.Inertia(3.0, (0.0, 0.0, -0.2), np.diag([0.03, 0.03, 0.01]))
HINGE, AT = sd.revolute("x", passive=True), np.array([0.0, 0.0, 0.1])
OTHERS = {"a hinge": HINGE, "a ball joint": sd.spherical(), "a weld": None}


def whole(tree: sd.KinematicTree, q: np.ndarray, v: np.ndarray) -> Timed:
    """Attach a payload to the last link by a hinge and compute M, C and g; detaching it is not timed."""
    to = tree.links[-1]

    def timed(number: int) -> float:
        seconds = 0.0
        for _ in range(number):
            start = process_time()
            handle = tree.attach(BODY, to=to, joint=HINGE, at=AT, name="crate")
            tree.mass_matrix(q)
            tree.coriolis_matrix(q, v)
            tree.gravity_vector(q)
            seconds += process_time() - start
            tree.detach(handle)
        return seconds

    return timed


def step(point: sd.Point, to: str, joint: sd.Joint | None = HINGE) -> Timed:
    """Attach a payload to a link of a point and compute its contribution."""
    scope: dict[str, Any] = {"point": point, "body": BODY, "to": to, "joint": joint, "at": AT}
    return clock("point.attach(body, to, joint, at, 'crate').contribution('crate')", scope)


def compare(n: int) -> None:
    """One line of the table; the target of the ratio is 1."""
    tree = grown(n, branching=False)
    x = np.random.default_rng(0).normal(size=n + 1)
    point = tree.at(x[:-1], x[:-1])
    point.contributions()
    a, b, ratio = side_by_side(step(point, tree.links[-1]), whole(tree, x, x))
    others = (seconds_per_call(step(point, tree.links[3], joint)) for joint in OTHERS.values())
    times = "".join(f"{1e6 * t:14.1f}" for t in others)
    print(f"{n:5d}{1e6 * a:12.1f}{1e6 * b:14.1f}{ratio:8.2f}{'  ' if ratio <= 1 else ' !'}{times}", flush=True)


if __name__ == "__main__":
    print(f"{machine()}; microseconds, medians; on the last link of a chain of n, then on its third\n")
    print(f"{'n':>5s}{'last link':>12s}{'M, C and g':>14s}{'ratio':>8s}  " + "".join(f"{x:>14s}" for x in OTHERS))
    for n in (6, 30, 100):
        compare(n)
