"""Simulations from Python against SciPy's solve_ivp over Pinocchio's forward dynamics, with the same tolerances.

python benchmarks/simulating.py [robot ...]          robots whose joints have neither damping nor friction

Both compute 10 s of free motion under gravity with DOP853, rtol=1e-9, atol=1e-10, and 1001 samples; screwdyn also
computes the accelerations, the energy ledger and the solution between samples. The second row is a controller at 1 kHz,
for which the peer integrates from call to call.
"""

import sys

import numpy as np
import pinocchio as pin
from clock import clock, machine, side_by_side
from robots import Pair
from scipy.integrate import solve_ivp

import screwdyn as sd

SECONDS, SAMPLES, RTOL, ATOL = 10.0, 1000, 1e-9, 1e-10
PERIOD, CALLS = 1e-3, 500
TARGET = 1.0


class Peer:
    """SciPy over Pinocchio."""

    def __init__(self, pair: Pair, start: np.ndarray) -> None:
        self.model, self.data, self.start = pair.model, pair.data, pair.position(start)
        self.n = len(start)

    def rate(self, tau: np.ndarray):
        """The right side for constant torques."""
        model, data, n = self.model, self.data, self.n

        def rate(t, y):
            return np.concatenate([y[n:], pin.aba(model, data, y[:n], y[n:], tau)])

        return rate

    def free(self) -> np.ndarray:
        """Samples of the free motion, (samples, 2 n)."""
        y = np.concatenate([self.start, np.zeros(self.n)])
        times = np.linspace(0, SECONDS, SAMPLES + 1)
        rate = self.rate(np.zeros(self.n))
        return solve_ivp(rate, (0, SECONDS), y, "DOP853", times, rtol=RTOL, atol=ATOL).y.T

    def controlled(self) -> np.ndarray:
        """States at the calls of the controller, (calls + 1, 2 n)."""
        y = [np.concatenate([self.start, np.zeros(self.n)])]
        for _ in range(CALLS):
            rate = self.rate(controller(y[-1][: self.n], y[-1][self.n :], self.start))
            # Without first_step, SciPy would take several steps for each call.
            run = solve_ivp(rate, (0, PERIOD), y[-1], "DOP853", rtol=RTOL, atol=ATOL, first_step=PERIOD)
            y.append(run.y[:, -1])
        return np.array(y)


def controller(q: np.ndarray, qd: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """Torques that hold the start loosely."""
    return 20.0 * (goal - q) - 2.0 * qd


def compare(name: str) -> None:
    """The rows of one robot."""
    pair = Pair(name)
    tree, n = pair.tree, pair.tree.nv
    start = 0.5 * np.random.default_rng(0).uniform(-1, 1, n)
    peer = Peer(pair, start)

    def free() -> sd.Run:
        return sd.simulate(tree, sd.State(tree, start), SECONDS, rtol=RTOL, atol=ATOL)

    def controlled() -> sd.Run:
        def torque(t, state):
            return controller(state.q, state.qd, start)

        state = sd.State(tree, start)
        return sd.simulate(
            tree, state, CALLS * PERIOD, torque, control_period=PERIOD, step=PERIOD, rtol=RTOL, atol=ATOL
        )

    for what, ours, theirs in (("free motion", free, peer.free), ("controller", controlled, peer.controlled)):
        # Rounding grows with time.
        early = slice(0, 100)
        apart = np.abs(ours().q[early][:, pair.order] - theirs()[early, :n]).max()
        assert apart < 1e-6, apart
        a, b, ratio = side_by_side(clock("f()", {"f": ours}), clock("f()", {"f": theirs}), 15)
        print(
            f"  {what:20s}{1e3 * a:12.1f}{1e3 * b:12.1f}{ratio:8.2f}{'' if ratio <= TARGET else '  not met'}",
            flush=True,
        )


if __name__ == "__main__":
    print(f"{machine()}, pinocchio {pin.__version__}; milliseconds of processor time, medians; target {TARGET}\n")
    for robot in sys.argv[1:] or ["UR5"]:
        print(f"{robot}\n  {'':20s}{'screwdyn':>12s}{'pinocchio':>12s}{'ratio':>8s}")
        compare(robot)
