"""
LQR against sway
================

A UR5 holds a crate that swings on a universal joint. A linear-quadratic regulator, of the linear model with eight
freedoms, moves the arm so that the swing dies out, where an arm that only holds its position lets the crate swing on. A
small motion is the one that the linear model predicts.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import expm

import screwdyn as sd
from screwdyn import control

arm = sd.robots.ur5()
hook = sd.universal("x", "y", passive=True, name="hook")
upright = sd.screw.inverse(arm.forward_kinematics("tool0", [0, -1.2, 1.8, -0.6, 1.57, 0]))
upright[:3, 3] = 0
arm.attach(sd.Inertia.box(3.0, (0.15, 0.15, 0.15), com=(0, 0, -0.4)), to="tool0", at=upright, joint=hook, name="crate")
q0 = arm.equilibrium([0, -1.2, 1.8, -0.6, 1.57, 0, 0, 0])
Q = [10.0] * 6 + [100.0] * 2 + [0.1] * 6 + [1.0] * 2  # weights of positions, then of rates
lqr = control.LQR(arm, q0, Q, 0.1)
stiff = np.kron([100.0, 20.0], np.diag([1] * 6 + [0] * 2) * arm.mass_matrix(q0).diagonal())


def hold(t, state):
    return lqr.tau - stiff @ [*(state.q - q0), *state.qd]


def swing(law, angle, seconds):
    start = sd.State(arm, q0 + np.eye(8)[6:].T @ (angle, angle / 2))
    return sd.simulate(arm, start, seconds, law, step=0.03, rtol=1e-6, atol=1e-8)


small = swing(lqr, 0.01, 1.0)
A, B = arm.linearize(q0)
predicted = expm(A - B @ lqr.gain) @ [*[0] * 6, 0.01, 0.005, *[0] * 8]
print("positions after 1 s (mrad):", 1e3 * (small.q[-1] - q0), "linear:", 1e3 * predicted[:8], sep="\n")

# %%
# The crate seen from above for 6 s, and its distance from the place below the hook.
plt.style.use("petroff10")
figure, (top, chart) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained", width_ratios=(1, 1.4))
for name, law in {"hold the arm": hold, "LQR": lqr}.items():
    run = swing(law, 0.4, 6.0)
    at = run.pose("crate") @ (0, 0, -0.4, 1) - arm.forward_kinematics("crate", q0) @ (0, 0, -0.4, 1)
    top.plot(100 * at[:, 0], 100 * at[:, 1], label=name)
    chart.plot(run.t, 100 * np.linalg.norm(at[:, :3], axis=1), label=name)
top.set(aspect="equal", xlabel="x (cm)", ylabel="y (cm)")
chart.set(xlabel="time (s)", ylabel="crate from its place at rest (cm)", xlim=(0, 6))
chart.legend(frameon=False)
plt.show()
