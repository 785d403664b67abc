"""Time to derive the closed form of the PUMA 560, without and with a payload.

python benchmarks/symbolic.py
"""

import time
from collections.abc import Callable

import sympy as sp

import screwdyn as sd

FUNCTIONS = ("mass_matrix", "coriolis_matrix", "gravity_vector")


def best(make: Callable[[], sd.KinematicTree], derive: Callable[[sd.KinematicTree], object], runs: int = 5) -> float:
    """Shortest time of some runs in seconds, each on a new tree from `make`."""
    times = []
    for _ in range(runs):
        tree = make()
        _ = tree.model
        sp.core.cache.clear_cache()
        start = time.perf_counter()
        derive(tree)
        times.append(time.perf_counter() - start)
    return min(times)


def loaded(tree: sd.KinematicTree) -> sd.KinematicTree:
    tree.attach(sd.Inertia.box(1.5, (0.1, 0.1, 0.2)), to="link6", joint=sd.revolute("x"), name="payload")
    return tree


def prepared() -> sd.KinematicTree:
    tree = sd.robots.puma560()
    tree.symbolic().contributions()
    return loaded(tree)


def main() -> None:
    def totals(tree: sd.KinematicTree) -> object:
        return tree.symbolic().shared(*FUNCTIONS)

    def parts(tree: sd.KinematicTree) -> object:
        return tree.symbolic().contributions()

    intermediates, matrices = sd.robots.puma560().symbolic().shared(*FUNCTIONS)
    operations = sum(sp.count_ops(e) for _, e in intermediates) + sum(sp.count_ops(x) for m in matrices for x in m)
    print(f"PUMA 560, M, C and g over {len(intermediates)} intermediates: {operations} operations")
    print(f"  derived in                              {best(sd.robots.puma560, totals) * 1e3:6.0f} ms")
    print("contributions of every link")
    print(f"  PUMA 560                                {best(sd.robots.puma560, parts) * 1e3:6.0f} ms")
    print(f"  PUMA 560 with a payload, all links      {best(lambda: loaded(sd.robots.puma560()), parts) * 1e3:6.0f} ms")
    print(f"  the payload after the PUMA 560          {best(prepared, parts) * 1e3:6.0f} ms")


if __name__ == "__main__":
    main()
