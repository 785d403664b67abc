"""Laws, observers and reference motions, per call, beside inverse dynamics.

python benchmarks/controlling.py
"""

import numpy as np
from clock import clock, machine, seconds_per_call, side_by_side

import screwdyn as sd
from screwdyn import control

arm = sd.robots.ur5()
arm.attach(sd.Link("crate"), to="tool0")
rng = np.random.default_rng(0)
q, qd, a = rng.uniform(-1, 1, (3, 6))
still, state = np.zeros(6), sd.State(arm, q, qd)
held = arm.inverse_dynamics(q, still, still)


def reference(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where the arm is, so that no torque is clipped."""
    return q, qd, still


class Clock:
    """Periods of 1 ms."""

    now = 0.0

    def tick(self) -> float:
        """The next time."""
        self.now += 1e-3
        return self.now


scope = {"arm": arm, "q": q, "qd": qd, "a": a, "state": state, "held": held, "time": Clock()}
scope |= {
    "torque": control.ComputedTorque(arm, reference),
    "passive": control.PassivityControl(arm, reference),
    "adaptive": control.AdaptiveControl(arm, reference, ["crate"], rate=1e-9),
    "lqr": control.LQR(arm, arm.equilibrium(q), 1.0, 1.0),
    "gravity": control.GravityCompensation(arm),
    "observer": control.MomentumObserver(),
    "estimator": control.PayloadEstimator("crate", noise=1.0),
}
inverse = clock("arm.inverse_dynamics(q, qd, a)", scope)
print(machine())
print("UR5 with a link for a crate; µs per call, and as a multiple of inverse dynamics where that says something")
for what, call in {
    "reference dynamics": "arm.reference_dynamics(q, qd, qd, a)",
    "regressor of one link in it": "arm.reference_regressor('crate', q, qd, qd, a)",
    "p = M qd": "arm.joint_momentum(q, qd)",
    "C^T qd": "arm.transposed_velocity_product(q, qd)",
}.items():
    ours, _, ratio = side_by_side(clock(call, scope), inverse, 200)
    print(f"  {what:30s}{1e6 * ours:8.2f}{ratio:8.2f}")
for what, call in {
    "GravityCompensation": "gravity(0.0, state)",
    "ComputedTorque": "torque(0.0, state)",
    "PassivityControl": "passive(0.0, state)",
    "AdaptiveControl, one link": "adaptive(time.tick(), state)",
    "LQR": "lqr(0.0, state)",
    "MomentumObserver": "observer(time.tick(), state, held)",
    "PayloadEstimator": "estimator(time.tick(), state, held)",
}.items():
    print(f"  {what:30s}{1e6 * seconds_per_call(clock(call, scope)):8.2f}")
assert not scope["adaptive"].saturated
