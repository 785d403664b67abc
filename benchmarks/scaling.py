"""Time of a call against the size of the tree: chains of 5 to 200 bodies, and random branched trees.

python benchmarks/scaling.py
"""

import numpy as np
from clock import Timed, clock, machine, seconds_per_call

import screwdyn as sd

CALLS = {
    "M": "tree.mass_matrix(q)",
    "C": "tree.coriolis_matrix(q, v)",
    "inverse dyn.": "tree.inverse_dynamics(q, v, a)",
    "forward dyn.": "tree.forward_dynamics(q, v, a)",
}


def grown(n: int, branching: bool, seed: int = 0) -> sd.KinematicTree:
    """n bodies on revolute, prismatic and helical joints: a chain, or each attached to a random earlier link."""
    rng, tree = np.random.default_rng(seed), sd.KinematicTree()
    for k in range(n):
        axis = rng.normal(size=3)
        joint = (sd.revolute(axis), sd.prismatic(axis), sd.revolute(axis), sd.helical(axis, 0.1))[k % 4]
        body = sd.Inertia.box(1.0, rng.uniform(0.1, 0.3, 3), com=rng.normal(0.0, 0.1, 3))
        to = tree.links[rng.integers(k + 1)] if branching else tree.links[-1]
        tree.attach(body, to=to, joint=joint, at=rng.normal(0.0, 0.2, 3))
    return tree


def attaching(tree: sd.KinematicTree) -> Timed:
    """Time to attach a payload, make the new model, and detach the payload."""
    scope = {"tree": tree, "body": sd.Inertia.point(1.0), "to": tree.links[-1]}
    return clock("handle = tree.attach(body, to=to); tree.model; tree.detach(handle)", scope)


if __name__ == "__main__":
    print(f"{machine()}; microseconds per call, medians\n")
    print(f"{'':16s}{'n':>5s}{'depth':>9s}" + "".join(f"{what:>14s}" for what in (*CALLS, "attach+detach")))
    for kind, branching in (("chain", False), ("branched tree", True)):
        for n in (5, 10, 20, 50, 100, 200):
            tree = grown(n, branching)
            q, v, a = np.random.default_rng(1).uniform(-1.0, 1.0, (3, n))
            scope = {"tree": tree, "q": q, "v": v, "a": a}
            times = [seconds_per_call(clock(call, scope)) for call in CALLS.values()]
            times.append(seconds_per_call(attaching(tree)))
            depth = max(len(tree.path(link)) - 1 for link in tree.links)
            print(f"{kind:16s}{n:5d}{depth:9d}" + "".join(f"{1e6 * t:14.1f}" for t in times), flush=True)
