"""Andrews' squeezing mechanism: the time of a simulation of 0.03 s, and the distance from the published end.

python benchmarks/squeezer.py
"""

from time import process_time

import numpy as np
from clock import machine

import screwdyn as sd

TARGET = 0.2
# Positions of K1 to K7 at the end: Test Set for Initial Value Problem Solvers, release 2.4.
END = [15.81077119629904, -15.75637105984298, 0.04082224013073101, -0.5347301163226948]
END += [0.5244099658805304, 0.5347301163226948, 1.048080741042263]


def forces(t: float, state: sd.State) -> dict[str, float]:
    """The motor of K1, and the moment of the spring about the pin of K3."""
    c, s = np.cos(state["K3"]), np.sin(state["K3"])
    arm_x, arm_y = 0.02 * c + 0.018 * s, 0.02 * s - 0.018 * c
    x, y = arm_x - 0.05035, arm_y - 0.03927
    pull = 4530 * (1 - 0.07785 / np.hypot(x, y))
    return {"K1": 0.033, "K3": pull * (arm_y * x - arm_x * y)}


def main() -> None:
    """Simulate several times."""
    tree = sd.robots.andrews()
    q = tree.assemble([-0.06, 0, 0.46, 0.49, 0.22, 1.23, -0.22], hold=["K2"])
    end = dict(zip(("K1", "K2", "K3", "K4", "K5", "K6", "K7"), END, strict=True))
    times = []
    for _ in range(6):
        start = process_time()
        run = sd.simulate(tree, sd.State(tree, q), 0.03, torque=forces, step=3e-4)
        times.append(process_time() - start)
    seconds = min(times)
    away = max(abs(run.states[-1][name] - x) for name, x in end.items())
    verdict = "met" if seconds < TARGET else "not met"
    print(f"{machine()}\n{seconds:.3f} s of processor time; target {TARGET} s, {verdict}")
    print(f"distance from the published end {away:.1e} rad, gap {np.abs(tree.gap(run.q)).max():.1e} m")


if __name__ == "__main__":
    main()
