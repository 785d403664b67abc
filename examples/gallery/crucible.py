"""
A crucible that is picked up in motion
======================================

A planar arm moves along an arc. On its way it hooks a crucible that hangs at rest, carries it to the end and stops.
The hook has no motor, so the crucible sways. From the grasp on the controller knows the crucible: it prescribes the
motion of the arm, and the passive joint moves as it will. The remaining sway has the period of a physical pendulum.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import ellipk

import screwdyn as sd

START, END = np.array([-2.2, 1.3]), np.array([-0.2, 1.0])
DURATION, GRASP = 2.4, 0.6
mass, length, izz = 1.5, 0.08, 0.006  # of the crucible, and the moment of inertia about its centre of mass


def torque(t, state):
    """The arm follows a smooth path; the passive joint obeys its own equation of motion."""
    s, way = 2 * np.pi * min(t / DURATION, 1), (END - START) / DURATION
    q, qd = START + way * DURATION * (s - np.sin(s)) / (2 * np.pi), way * (1 - np.cos(s))
    v = way * 2 * np.pi / DURATION * np.sin(s) + 100 * (q - state.q[:2]) + 20 * (qd - state.qd[:2])
    M, h = state.tree.mass_matrix(state.q), state.tree.bias_force(state.q, state.qd)
    swing = np.linalg.solve(M[2:, 2:], -M[2:, :2] @ v - h[2:])
    return M[:2, :2] @ v + M[:2, 2:] @ swing + h[:2]


# %%
# The grasp is an event of the simulation. It adds the coordinate ``hook``.
arm = sd.robots.pelican()
hook = sd.revolute("z", passive=True, name="hook")
crucible = sd.Link("crucible", sd.Inertia.planar(mass, (length, 0), izz))  # hangs along its x axis
grasp = sd.Grasp(crucible, to="link2", joint=hook, start="hanging", twist="at_rest", time=GRASP)
run = sd.simulate(arm, sd.State(arm, START), 6.0, torque, [grasp], step=0.015)
sway = np.degrees(run["shoulder"] + run["elbow"] + run["hook"]) + 90

k = np.flatnonzero((run.t[:-1] > DURATION) & (sway[:-1] < 0) & (sway[1:] >= 0))
period = np.diff(run.t[k] - sway[k] * (run.t[k + 1] - run.t[k]) / (sway[k + 1] - sway[k])).mean()
most = np.radians(sway[run.t > DURATION].max())
closed_form = 4 * np.sqrt((izz + mass * length**2) / (mass * 9.81 * length)) * ellipk(np.sin(most / 2) ** 2)
print(f"period {period:.4f} s, of a pendulum of this amplitude {closed_form:.4f} s")

# %%
# The arm at intervals of 0.15 s, darker with time, and the angle of the crucible.
plt.style.use("petroff10")
figure, (scene, chart) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained", width_ratios=(1, 1.2))
cup = np.array([[0, 0], [0.05, -0.035], [0.11, -0.025], [0.11, 0.025], [0.05, 0.035], [0, 0]])
for t in np.arange(0, DURATION + 0.01, 0.15):
    elbow, hand = run.pose("link1", t), run.pose("link2", t)
    scene.plot(*np.transpose([(0, 0), elbow[:2, 3], hand[:2, 3]]), "o-", color="C0", lw=5, alpha=0.1 + 0.3 * t)
    if t >= GRASP:
        scene.fill(*(run.pose("crucible", t)[:2, :2] @ cup.T + hand[:2, 3:]), color="C1", alpha=0.1 + 0.35 * t)
scene.set(aspect="equal", xlabel="x (m)", ylabel="y (m)")
chart.plot(run.t, sway, color="C1", lw=2)
chart.axvspan(0, DURATION, color="0.93")
chart.set(title="the arm moves until 2.4 s", xlabel="time (s)", ylabel="crucible from the vertical (°)", xlim=(0, 6))
plt.show()
