"""Time of a call against the size of the tree: chains of 5 to 200 bodies, and random branched trees.

Then chains of up to 131,072 rods: reading them, attaching one link, and their inverse and forward dynamics.

python benchmarks/scaling.py
"""

from collections.abc import Callable
from time import perf_counter
from typing import Any

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


def long_chain(doublings: int) -> sd.KinematicTree:
    """A chain of 2^doublings rods, each half of which is a copy of the other one: quicker than rod after rod."""
    tree = sd.KinematicTree(sd.Link("rod", sd.Inertia.rod(1.0, 0.1, com=(0.05, 0, 0))))
    for k in range(doublings):
        tree.attach(tree, to=tree.links[-1], joint=sd.revolute("y"), at=(0.1, 0, 0), prefix=f"{k}/")
    return tree


def timed(call: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """Shortest seconds of three calls, and the last result."""
    times = []
    for _ in range(3):
        start = perf_counter()
        result = call(*arguments)
        times.append(perf_counter() - start)
    return min(times), result


def long_chains() -> None:
    """Times that grow in proportion to the size."""
    names = ("of parts", "from JSON", "attach", "inverse dyn.", "forward dyn.")
    print("\nmilliseconds, shortest of three\n")
    print(f"{'links':>7s}" + "".join(f"{name:>14s}" for name in names))
    for doublings in (10, 13, 17):
        made, tree = timed(long_chain, doublings)
        read, twin = timed(sd.KinematicTree.from_json, tree.to_json())
        attached, _ = timed(twin.attach, sd.Inertia.point(1.0), "rod")
        q, v, a = np.zeros((3, tree.nv))
        inverse, tau = timed(tree.inverse_dynamics, q, v, a)
        forward, _ = timed(tree.forward_dynamics, q, v, tau)
        times = (made, read, attached, inverse, forward)
        print(f"{len(tree.links):7d}" + "".join(f"{1e3 * t:14.2f}" for t in times), flush=True)


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
    long_chains()
