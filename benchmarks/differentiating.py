"""Runs of a UR5 with derivatives against the same runs without them, in turns.

python benchmarks/differentiating.py [repeats]

A crate is grasped, the elbow locked, the crate released and the elbow unlocked within a second. Derivatives are by the
start and by the times of these events.
"""

import statistics
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from clock import clock, machine

import screwdyn as sd
from screwdyn import control

TARGET = 2.0
ARM = sd.robots.ur5()
START = sd.State(ARM, [0.3, -1.2, 0.9, -0.5, 0.4, 0.2], [0.2, -0.1, 0.3, 0.1, -0.2, 0.4])
CRATE = sd.Inertia.box(2.0, (0.2, 0.1, 0.15), com=(0.02, 0.01, 0.1))
EVENTS = [
    sd.Grasp(CRATE, to="tool0", name="crate", twist="at_rest", time=0.2013),
    sd.Lock("elbow_joint", time=0.4017),
    sd.Release("crate", time=0.6011),
    sd.Unlock("elbow_joint", time=0.8019),
]


def reference(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A motion of all joints near the start, for those that there are."""
    phase = t + np.arange(6.0)
    return START.q + 0.2 * (np.sin(phase) - np.sin(np.arange(6.0))), 0.2 * np.cos(phase), -0.2 * np.sin(phase)


def law() -> control.ComputedTorque:
    """Computed torque without saturation."""
    return control.ComputedTorque(ARM, reference, kp=100.0, kd=20.0)


def written(t: float, state: sd.State) -> np.ndarray:
    """What a user writes, without a derivative: the start is held."""
    error = state.q - np.array([START[x] for x in state.positions])
    return state.tree.inverse_dynamics(state.q, state.qd, -100.0 * error - 20.0 * state.qd)


CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "no controller": dict,
    "ComputedTorque": lambda: {"torque": law()},
    "ComputedTorque, every 10 ms": lambda: {"torque": law(), "control_period": 0.01},
    "ComputedTorque, every 2 ms": lambda: {"torque": law(), "control_period": 0.002},
    "a function": lambda: {"torque": written},
    "a function, every 10 ms": lambda: {"torque": written, "control_period": 0.01},
    "a function, every 2 ms": lambda: {"torque": written, "control_period": 0.002},
}


def compare(options: dict[str, Any], repeats: int) -> tuple[float, float, float]:
    """Milliseconds of a run without and with derivatives, and the median of the ratios."""

    def run(sensitivities: bool) -> sd.Run:
        return sd.simulate(ARM, START, 1.0, events=EVENTS, sensitivities=sensitivities, **options)

    plain, both = clock("run(False)", {"run": run}), clock("run(True)", {"run": run})
    plain(1), both(1)
    pairs = [(plain(1), both(1)) for _ in range(repeats)]
    a, b = (1e3 * statistics.median(times) for times in zip(*pairs, strict=True))
    return a, b, statistics.median(y / x for x, y in pairs)


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    print(f"{machine()}; milliseconds of processor time, medians; target {TARGET}\n")
    print(f"{'':40s}{'run':>10s}{'with':>10s}{'ratio':>8s}")
    for name, options in CASES.items():
        without, derived, times = compare(options(), count)
        print(
            f"{name:40s}{without:10.1f}{derived:10.1f}{times:8.2f}{'' if times <= TARGET else '  not met'}", flush=True
        )
