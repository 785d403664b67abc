"""
LQR against sway
================

A UR5 holds a crate that swings on a universal joint. Its linear model, with eight freedoms, comes from the tree; a
linear-quadratic regulator moves the arm so that the swing dies out, where an arm that only holds its position lets the
crate swing on. A small motion is the one that the linear model predicts.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import expm, solve_continuous_are

import screwdyn as sd

arm = sd.robots.ur5()
hook = sd.universal("x", "y", passive=True, name="hook")
upright = sd.screw.inverse(arm.forward_kinematics("tool0", [0, -1.2, 1.8, -0.6, 1.57, 0]))
upright[:3, 3] = 0
arm.attach(sd.Inertia.box(3.0, (0.15, 0.15, 0.15), com=(0, 0, -0.4)), to="tool0", at=upright, joint=hook, name="crate")
q0 = arm.equilibrium([0, -1.2, 1.8, -0.6, 1.57, 0, 0, 0])
hold = arm.holding_torque(q0)[:6]

A, B = arm.linearize(q0)
Q, R = np.diag([*[10.0] * 6, 100, 100, *[0.1] * 6, 1, 1]), 0.1 * np.eye(6)
gains = {
    "LQR": np.linalg.solve(R, B.T @ solve_continuous_are(A, B, Q, R)),
    "hold the arm": np.kron([100.0, 20.0], np.eye(6, 8) * arm.mass_matrix(q0).diagonal()),
}


def swing(gain, angle, seconds):
    start = sd.State(arm, q0 + np.eye(8)[6:].T @ (angle, angle / 2))
    return sd.simulate(
        arm, start, seconds, lambda t, now: hold - gain @ [*(now.q - q0), *now.qd], step=0.03, rtol=1e-6, atol=1e-8
    )


small = swing(gains["LQR"], 0.01, 1.0)
predicted = expm(A - B @ gains["LQR"]) @ [*[0] * 6, 0.01, 0.005, *[0] * 8]
print("positions after 1 s (mrad):", 1e3 * (small.q[-1] - q0), "linear:", 1e3 * predicted[:8], sep="\n")
assert abs(small.q[-1] - q0 - predicted[:8]).max() < 1e-4

# %%
# The crate seen from above for 6 s, and its distance from the place below the hook.
plt.style.use("petroff10")
figure, (top, chart) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained", width_ratios=(1, 1.4))
for name, gain in reversed(gains.items()):
    run = swing(gain, 0.4, 6.0)
    at = run.pose("crate") @ (0, 0, -0.4, 1) - arm.forward_kinematics("crate", q0) @ (0, 0, -0.4, 1)
    top.plot(100 * at[:, 0], 100 * at[:, 1], label=name)
    chart.plot(run.t, 100 * np.linalg.norm(at[:, :3], axis=1), label=name)
top.set(aspect="equal", xlabel="x (cm)", ylabel="y (cm)")
chart.set(xlabel="time (s)", ylabel="crate from its place at rest (cm)", xlim=(0, 6))
chart.legend(frameon=False)
plt.show()
