"""
Weigh a crate while it moves
============================

A UR5 grasps a crate and goes on along its path. An estimator takes the rates, and torques with the noise of their
sensors, and finds the ten inertial parameters with their covariance, without accelerations.
"""

import matplotlib.pyplot as plt
import numpy as np

import screwdyn as sd
from screwdyn import control

crate = sd.Inertia.box(3.0, (0.3, 0.2, 0.2), com=(0.03, -0.02, 0.15))
centre = np.array([0, -1.2, 1.8, -0.6, 1.57, 0])
rates = np.array([1.1, 1.7, 2.3, 2.9, 3.1, 3.7])
noise = np.array([3.0, 3.0, 2.0, 0.5, 0.5, 0.2])  # N m


def reference(t):
    return centre + 0.5 * np.sin(rates * t), 0.5 * rates * np.cos(rates * t), -0.5 * rates**2 * np.sin(rates * t)


arm, rng, last, found = sd.robots.ur5(), np.random.default_rng(0), [np.zeros(6)], []
law = control.PassivityControl(arm, reference, stiffness=8.0, damping=[60, 60, 40, 8, 8, 3])
estimator = control.PayloadEstimator("crate", noise=dict(zip(arm.coordinates, noise, strict=True)))


def torque(t, state):
    if "crate" in state.tree.links:
        estimator(t, state, last[0] + noise * rng.normal(size=6))
        found.append((t, estimator.parameters, np.sqrt(np.diag(estimator.covariance))))
    last[0] = law(t, state)
    return last[0]


grasp = sd.Grasp(crate, to="tool0", name="crate", twist="at_rest", time=0.5)
sd.simulate(arm, sd.State(arm, *reference(0.0)[:2]), 4.0, torque, [grasp], control_period=2e-3, step=0.01)
times, parameters, errors = map(np.array, zip(*found, strict=True))
away = (parameters[-1] - crate.parameters) / errors[-1]
print(f"{parameters[-1, 0]:.3f} kg with a standard error of {errors[-1, 0]:.3f} kg")
print(f"ten parameters, in standard errors from the truth: {np.abs(away).min():.1f} to {np.abs(away).max():.1f}")

# %%
# Three of the ten estimates, with two standard errors on either side, and the truth.
plt.style.use("petroff10")
figure, charts = plt.subplots(3, 1, figsize=(8, 6), sharex=True, layout="constrained")
labels = {0: "mass (kg)", 1: "m x (kg m)", 7: "moment about y (kg m²)"}
for chart, (k, label) in zip(charts, labels.items(), strict=True):
    chart.fill_between(times, *(parameters[:, k] + s * errors[:, k] for s in (-2, 2)), alpha=0.3)
    chart.plot(times, parameters[:, k], lw=2)
    chart.axhline(crate.parameters[k], color="0.5", ls="--")
    width = 12 * np.median(errors[len(errors) // 4 :, k])
    chart.set(ylabel=label, ylim=(crate.parameters[k] - width, crate.parameters[k] + width))
charts[-1].set(xlabel="time (s)", xlim=(0.5, 4))
plt.show()
