"""
Monte Carlo of a payload
========================

Two thousand UR5 move to the same goal, each with another box: mass and centre of mass are uncertain. The controller
is linear feedback for the expected box. All runs are integrated side by side in compiled code. Where the tools come to
rest is what statics predicts: the feedback gives way under the weight that it does not expect.
"""

import matplotlib.pyplot as plt
import numpy as np

import screwdyn as sd

RUNS, STEPS, DT = 2000, 600, 5e-3
START, GOAL = np.radians([[0, -90, 90, -90, -90, 0], [60, -60, 90, -120, -90, 30]])
rng = np.random.default_rng(0)
arm = sd.robots.ur5()
arm.attach(sd.Link("box", sd.Inertia.box(3.0, (0.2, 0.2, 0.2), (0, 0, 0.1))), to="tool0")
kp, kd = np.array([1500, 1500, 1000, 150, 150, 50]), np.array([300, 300, 150, 15, 10, 3])
control = sd.Feedback(kp, kd, GOAL, tau=arm.gravity_vector(GOAL))

mass, place = rng.normal(3.0, 0.5, RUNS), rng.normal((0, 0, 0.1), 0.02, (RUNS, 3))
boxes = [sd.Inertia.box(m, (0.2, 0.2, 0.2), c) for m, c in zip(mass, place, strict=True)]
run = arm.compile().rollout(
    [START], np.zeros((1, 6)), STEPS, DT, control, method="rk4", payload={"box": boxes}, every=10
)
tool = 1e3 * (arm.forward_kinematics("tool0", run.q) - arm.forward_kinematics("tool0", GOAL))[..., :3, 3]

# %%
# Statics: K_p (q_goal − q) is the additional torque of the weight, and the tool gives way by J (q − q_goal).
J = arm.jacobian("tool0", GOAL, "mixed")[3:]
T = arm.forward_kinematics("box", GOAL)
arms = place @ T[:3, :3].T  # from the tool to the centre of mass, in axes of the base
moments = np.cross(arms, mass[:, None] * arm.gravity) - np.cross(T[:3, 2] * 0.1, 3.0 * arm.gravity)
more = np.hstack([moments, (mass - 3.0)[:, None] * arm.gravity])  # wrench of the weight at the tool
sink = 1e3 * more @ arm.jacobian("tool0", GOAL, "mixed") / kp @ J.T
print(f"correlation of heights, found and predicted: {np.corrcoef(sink[:, 2], tool[-1, :, 2])[0, 1]:.4f}")

plt.style.use("petroff10")
figure, (chart, cloud) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained", width_ratios=(1.4, 1))
away = np.linalg.norm(tool, axis=2)
for low, high, shade in ((0, 100, 0.15), (2.5, 97.5, 0.3), (25, 75, 0.6)):
    band = np.percentile(away, (low, high), axis=1)
    chart.fill_between(run.t, *band, alpha=shade, color="C0", lw=0, label=f"{high - low:g} % of the runs")
chart.set(xlabel="time (s)", ylabel="tool from its goal (mm)", yscale="log", ylim=(0.1, None), xlim=(0, STEPS * DT))
chart.legend(frameon=False)
drawn = cloud.scatter(tool[-1, :, 0], tool[-1, :, 2], c=mass, s=6, cmap="plasma")
figure.colorbar(drawn, label="mass (kg)")
cloud.set(xlabel="x at the end (mm)", ylabel="z at the end (mm)")
plt.show()
