"""Laws, observers and reference motions of a UR5, per call, beside what users write by hand over Pinocchio.

python benchmarks/controlling.py
"""

import numpy as np
import pinocchio as pin
from clock import clock, machine, same, seconds_per_call, side_by_side
from robots import read, robot_file

import screwdyn as sd
from screwdyn import control

arm, model = read("UR5"), pin.buildModelFromUrdf(str(robot_file("UR5")))
arm.attach(sd.Link("crate"), to="tool0")
data, rng = model.createData(), np.random.default_rng(0)
q, qd, a = rng.uniform(-1, 1, (3, 6))
still, state = np.zeros(6), sd.State(arm, q, qd)
held = arm.inverse_dynamics(q, still, still)
rest = sd.State(arm, q)
lqr = control.LQR(arm, q, 1.0, 1.0)


def reference(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Near where the arm is, so that no torque is clipped."""
    return q, qd, still


class Clock:
    """Periods of 1 ms."""

    now = 0.0

    def tick(self) -> float:
        """The next time."""
        self.now += 1e-3
        return self.now


class Hand:
    """What a user writes over Pinocchio: one tree, no passive joints, no payload that comes or goes."""

    effort = model.effortLimit

    def clipped(self, tau: np.ndarray) -> np.ndarray:
        return np.clip(tau, -self.effort, self.effort)

    def reference_dynamics(self, qd_ref: np.ndarray, qdd_ref: np.ndarray) -> np.ndarray:
        M, C = pin.crba(model, data, q), pin.computeCoriolisMatrix(model, data, q, qd)
        return M @ qdd_ref + C @ qd_ref + pin.computeGeneralizedGravity(model, data, q)

    def gravity(self) -> np.ndarray:
        return self.clipped(pin.computeGeneralizedGravity(model, data, q))

    def torque(self) -> np.ndarray:
        q_ref, qd_ref, qdd_ref = reference(0.0)
        return self.clipped(pin.rnea(model, data, q, qd, qdd_ref - 20.0 * (qd - qd_ref) - 100.0 * (q - q_ref)))

    def passive(self) -> np.ndarray:
        q_ref, qd_ref, qdd_ref = reference(0.0)
        s = qd - qd_ref + 10.0 * (q - q_ref)
        return self.clipped(self.reference_dynamics(qd - s, qdd_ref - 10.0 * (qd - qd_ref)) - 20.0 * s)

    def regulated(self) -> np.ndarray:
        return self.clipped(lqr.tau - lqr.gain @ np.concatenate([q - lqr.q, qd]))

    def momentum_rate(self) -> np.ndarray:
        C = pin.computeCoriolisMatrix(model, data, q, qd)
        return C.T @ qd - pin.computeGeneralizedGravity(model, data, q)

    integral, residual = np.zeros(6), np.zeros(6)

    def observed(self) -> np.ndarray:
        self.integral = self.integral + 1e-3 * (held + self.momentum_rate() + self.residual)
        self.residual = 50.0 * (pin.crba(model, data, q) @ qd - self.integral)
        return self.residual


hand = Hand()
scope = {"arm": arm, "q": q, "qd": qd, "a": a, "state": state, "held": held, "time": Clock(), "hand": hand}
scope |= {"pin": pin, "model": model, "data": data}
scope |= {
    "torque": control.ComputedTorque(arm, reference),
    "passive": control.PassivityControl(arm, reference),
    "adaptive": control.AdaptiveControl(arm, reference, ["crate"], rate=1e-9),
    "lqr": lqr,
    "gravity": control.GravityCompensation(arm),
    "observer": control.MomentumObserver(),
    "estimator": control.PayloadEstimator("crate", noise=1.0),
}
CALLS = {
    "reference dynamics": ("arm.reference_dynamics(q, qd, qd, a)", "hand.reference_dynamics(qd, a)"),
    "p = M qd": ("arm.joint_momentum(q, qd)", "pin.crba(model, data, q) @ qd"),
    "C^T qd - g": ("arm.transposed_velocity_product(q, qd) - arm.gravity_vector(q)", "hand.momentum_rate()"),
    "regressor of one link": (
        "arm.reference_regressor('crate', q, qd, qd, a)",
        "pin.computeJointTorqueRegressor(model, data, q, qd, a)",
    ),
    "GravityCompensation": ("gravity(0.0, state)", "hand.gravity()"),
    "ComputedTorque": ("torque(0.0, state)", "hand.torque()"),
    "PassivityControl": ("passive(0.0, state)", "hand.passive()"),
    "LQR": ("lqr(0.0, state)", "hand.regulated()"),
    "MomentumObserver": ("observer(time.tick(), state, held)", "hand.observed()"),
    "AdaptiveControl, one link": ("adaptive(time.tick(), state)", None),
    "PayloadEstimator": ("estimator(time.tick(), state, held)", None),
}
print(f"{machine()}, pinocchio {pin.__version__}")
print("µs per call: ours, by hand over Pinocchio, ratio")
inverse = seconds_per_call(clock("arm.inverse_dynamics(q, qd, a)", scope))
print(f"  {'inverse dynamics':30s}{1e6 * inverse:8.2f}")
for what, (call, theirs) in CALLS.items():
    if theirs is None:
        print(f"  {what:30s}{1e6 * seconds_per_call(clock(call, scope)):8.2f}")
        continue
    if "regressor" not in what and "Observer" not in what:  # of all links there; of a state that changes
        same(eval(call, scope), eval(theirs, scope))
    print(
        f"  {what:30s}"
        + "{:8.2f}{:8.2f}{:8.2f}".format(
            *np.array([1e6, 1e6, 1]) * side_by_side(clock(call, scope), clock(theirs, scope), 200)
        )
    )
assert not scope["adaptive"].saturated
