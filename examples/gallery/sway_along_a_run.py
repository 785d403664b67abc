"""
A crucible that sways less along its way
========================================

The Pelican carries a crucible on a passive joint; at the start it is 20° away from where the plan has it. A regulator
with gains for every time of the planned run lets the sway die out on the way, where an arm that follows its path does
not.
"""

import matplotlib.pyplot as plt
import numpy as np

import screwdyn as sd
from screwdyn import control

arm = sd.robots.pelican()
crucible = sd.Link("crucible", sd.Inertia.planar(1.5, (0.08, 0), 0.006))
arm.attach(crucible, to="link2", joint=sd.revolute("z", passive=True, name="hook"))
q0 = arm.equilibrium([-1.6, 1.2, 0.0])


def way(t):
    s = min(t / 1.5, 1.0)
    return q0[:2] + (10 * s**3 - 15 * s**4 + 6 * s**5) * np.array([0.9, -0.2]), np.zeros(2), np.zeros(2)


follow = control.ComputedTorque(arm, way)
plan = sd.simulate(arm, sd.State(arm, q0), 3.0, follow, control_period=2e-3, step=0.01)
along = control.TimeVaryingLQR(plan, [100.0, 100, 100, 1, 1, 10], 0.01)
start = sd.State(arm, q0 + np.array([0, 0, np.radians(20)]))
plt.style.use("petroff10")
figure, chart = plt.subplots(figsize=(8, 4), layout="constrained")
off = {}
for name, law in {"follow the arm's path": follow, "LQR along the run": along}.items():
    run = sd.simulate(arm, start, 3.0, law, control_period=2e-3, step=0.01)
    off[name] = np.degrees(run.q.sum(axis=1) - plan.q.sum(axis=1))
    chart.plot(run.t, off[name], label=name)
chart.set(xlabel="time (s)", ylabel="crucible from its plan (°)", xlim=(0, 3))
chart.legend(frameon=False)
last = {name: abs(x[plan.t > 2]).max() for name, x in off.items()}
print(", ".join(f"{name}: {x:.2f}° in the last second" for name, x in last.items()))
plt.show()
