"""Time to attach a payload, against copying a Pinocchio model, and against the size of the tree.

python benchmarks/attaching.py
"""

from time import process_time

import numpy as np
import pinocchio as pin
from clock import Timed, clock, machine, seconds_per_call, side_by_side
from progressive import AT, BODY, whole
from robots import GROUPED, ROBOTS, Pair
from scaling import attaching, grown

import screwdyn as sd


def there(pair: Pair, q: np.ndarray, v: np.ndarray) -> Timed:
    """Attach a payload by a passive hinge to a copy of a Pinocchio model, and compute M, C and g."""
    body, hinge, at = pin.Inertia(BODY.mass, BODY.com, BODY.tensor), pin.JointModelRX(), pin.SE3(np.eye(3), AT)
    model = pair.model
    last = model.njoints - 1

    def timed(number: int) -> float:
        seconds = 0.0
        for _ in range(number):
            start = process_time()
            copied = model.copy()
            joint = copied.addJoint(last, hinge, at, "payload")
            copied.appendBodyToJoint(joint, body, pin.SE3.Identity())
            data = copied.createData()
            pin.crba(copied, data, q)
            pin.computeCoriolisMatrix(copied, data, q, v)
            pin.computeGeneralizedGravity(copied, data, q)
            seconds += process_time() - start
        return seconds

    return timed


def compare(name: str) -> None:
    """One line of the table: attach, then the first M, C and g; the target of the ratio is 1."""
    pair = Pair(name)
    (q, v, _), (p, u, _) = pair.states(np.random.default_rng(0))
    ours = whole(pair.tree, np.append(q, 0.1), np.append(v, 0.2))
    a, b, ratio = side_by_side(ours, there(pair, np.append(p, 0.1), np.append(u, 0.2)))
    print(f"  {name:20s}{1e6 * a:11.1f}{1e6 * b:11.1f}{ratio:8.2f}{'' if ratio <= 1 else '  not met'}", flush=True)


if __name__ == "__main__":
    print(f"{machine()}, pinocchio {pin.__version__}; microseconds, medians\n")
    print(f"attach, M, C, g{'':7s}{'screwdyn':>11s}{'pinocchio':>11s}{'ratio':>8s}")
    for robot in [*ROBOTS, *GROUPED]:
        compare(robot)
    print("\nattach and detach alone (target: at most twice as long on 200 links as on 10)")
    body = sd.Inertia.point(1.0)
    for n in (10, 200):
        tree = grown(n, branching=True)
        scope = {"tree": tree, "body": body, "to": tree.links[-1]}
        alone = seconds_per_call(clock("tree.detach(tree.attach(body, to=to))", scope))
        first = seconds_per_call(attaching(tree))
        print(f"  {n:3d} links {1e6 * alone:8.1f}; with the new model {1e6 * first:8.1f}", flush=True)
