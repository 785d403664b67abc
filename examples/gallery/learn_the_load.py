"""
A load that nobody has weighed
==============================

A UR5 grasps a crate of 3 kg and goes on along its path. Its controller does not know the crate, and learns it while it
moves; every estimate is a body that can exist. Beside it, the same controller without learning.
"""

import matplotlib.pyplot as plt
import numpy as np

import screwdyn as sd
from screwdyn import control

crate = sd.Inertia.box(3.0, (0.3, 0.2, 0.2), com=(0.03, -0.02, 0.15))
centre = np.array([0, -1.2, 1.8, -0.6, 1.57, 0])
rates = np.array([1.1, 1.7, 2.3, 2.9, 3.1, 3.7])
gains = {"stiffness": 8.0, "damping": [60, 60, 40, 8, 8, 3]}


def reference(t):
    return centre + 0.5 * np.sin(rates * t), 0.5 * rates * np.cos(rates * t), -0.5 * rates**2 * np.sin(rates * t)


def follow(rate):
    arm, masses = sd.robots.ur5(), []
    law = control.AdaptiveControl(arm, reference, ["crate"], rate=rate, **gains)

    def torque(t, state):
        tau = law(t, state)
        masses.append((t, law.estimates["crate"].mass if "crate" in law.estimates else np.nan))
        return tau

    grasp = sd.Grasp(crate, to="tool0", name="crate", twist="at_rest", time=0.5)
    run = sd.simulate(arm, sd.State(arm, *reference(0.0)[:2]), 5.0, torque, [grasp], control_period=2e-3, step=0.01)
    return run.t, np.abs(run.q - [reference(t)[0] for t in run.t]).max(axis=1), np.array(masses)


known, learned = follow(0.0), follow(10.0)
for name, (t, error, _) in {"without": known, "with": learned}.items():
    print(f"{name} learning: up to {np.degrees(error[t > 3.0].max()):.2f} degrees after 3 s")

# %%
plt.style.use("petroff10")
figure, (above, below) = plt.subplots(2, 1, figsize=(8, 5), sharex=True, layout="constrained")
for (t, error, _), name in ((known, "without learning"), (learned, "with learning")):
    above.semilogy(t, np.degrees(error), lw=2, label=name)
below.plot(*learned[2].T, lw=2, color="C1")
below.axhline(crate.mass, color="0.5", ls="--")
above.set(ylabel="largest error (degrees)", ylim=(0.02, 20))
below.set(xlabel="time (s)", ylabel="estimated mass (kg)", xlim=(0, 5))
above.legend(frameon=False)
plt.show()
