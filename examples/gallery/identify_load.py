"""
An unknown load, from torques
=============================

A UR5 moves a load that it knows nothing about along sums of sines, and measures torques with noise of 0.5 N m. The load
is estimated from 150 such measurements. Each estimate comes with a covariance: 95 % of them should lie in its ellipse.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.path import Path

import screwdyn as sd

NOISE, SETS = 0.5, 150
rng = np.random.default_rng(1)
t = np.linspace(0, 10, 100)[:, None]
w = 2 * np.pi * 0.1 * np.arange(1, 6)[:, None, None]  # five harmonics of 0.1 Hz
a, b = rng.uniform(-0.3, 0.3, (2, 5, 1, 6))
q = np.sum(a * np.sin(w * t) + b * np.cos(w * t), axis=0)
qd = np.sum(w * (a * np.cos(w * t) - b * np.sin(w * t)), axis=0)
qdd = np.sum(w**2 * (-a * np.sin(w * t) - b * np.cos(w * t)), axis=0)

arm = sd.robots.ur5()
load = sd.Inertia.box(3.0, size=(0.2, 0.2, 0.3), com=(0.02, 0.05, 0.15))
with arm.attached(load, to="tool0"):
    exact = arm.inverse_dynamics(q, qd, qdd)
arm.attach(sd.Link("load"), to="tool0")  # a link without inertia, which is to be found

# %%
found = [sd.identify(arm, "load", q, qd, qdd, exact + rng.normal(0, NOISE, q.shape), noise=NOISE) for _ in range(SETS)]
print(found[0])
cloud = np.array([[one["m"], one["cz"]] for one in found])
ellipses = [one.ellipse("m", "cz") for one in found]
inside = np.mean([Path(ellipse).contains_point((load.mass, load.com[2])) for ellipse in ellipses])
print(f"the truth is inside {inside:.1%} of the ellipses of 95 %")

# %%
# The first twelve ellipses and all estimates.
plt.style.use("petroff10")
figure, ax = plt.subplots(figsize=(7.5, 5.5), layout="constrained")
ax.plot(*cloud.T * [[1], [1e3]], ".", color="0.6", label=f"{SETS} estimates")
for k, ellipse in enumerate(ellipses[:12]):
    ax.plot(*ellipse.T * [[1], [1e3]], color="C0", lw=0.8 + 1.7 * (k == 0), label="95 % ellipses" if k == 0 else None)
ax.plot(load.mass, 1e3 * load.com[2], "*", ms=18, color="C1", label="truth")
ax.set(xlabel="mass (kg)", ylabel="height of the centre of mass (mm)")
ax.legend(frameon=False)
plt.show()
