"""
A humanoid picks up a box
=========================

A small humanoid squats, grasps a box and stands up. Its right leg and arm follow the left ones by mimic joints, so both
feet stay flat on the ground. The motors do the work that lifts the body and the box.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.interpolate import CubicHermiteSpline
from scipy.optimize import brentq

import screwdyn as sd

man = sd.KinematicTree("foot")
box, grip = sd.Inertia.box(8, (0.3, 0.3, 0.3)), (0, -0.1, -0.45)
for name, to, mass, length, at, follow in (
    ("ankle", "foot", 3, 0.4, (0, 0, 0.08), None),
    ("knee", "ankle", 6, 0.4, (0, 0, 0.4), None),
    ("hip", "knee", 30, 0.6, (0, 0, 0.4), None),
    ("right hip", "hip", 6, -0.4, (0, -0.2, 0), sd.Mimic("hip", -1)),
    ("right knee", "right hip", 3, -0.4, (0, 0, -0.4), sd.Mimic("knee", -1)),
    ("right ankle", "right knee", 1, -0.08, (0, 0, -0.4), sd.Mimic("ankle", -1)),
    ("shoulder", "hip", 2, -0.3, (0, 0.1, 0.5), None),
    ("elbow", "shoulder", 1.5, -0.3, (0, 0, -0.3), None),
    ("right shoulder", "hip", 2, -0.3, (0, -0.3, 0.5), sd.Mimic("shoulder")),
    ("right elbow", "right shoulder", 1.5, -0.3, (0, 0, -0.3), sd.Mimic("elbow")),
):
    man.attach(sd.Inertia.rod(mass, abs(length), "z", (0, 0, length / 2)), to, sd.revolute("y", mimic=follow), at, name)


def balanced(knee, hip, *arms):  # angles for which the centre of mass is 5 cm in front of the ankles
    ankle = brentq(lambda x: man.center_of_mass([x, knee, hip - x, *arms])[0] - 0.05, -1, 1.5)
    return np.array([ankle, knee, hip - ankle, *arms])


stand, low = balanced(-0.1, 0.1, 0, -0.2), balanced(-2.0, 2.6, -0.9, 0)
with man.attached(box, to="elbow", at=grip):
    high = balanced(-0.2, 0.2, -0.2, -1.1)
path = CubicHermiteSpline([0, 1.5, 1.8, 3.5], [stand, low, low, high], np.zeros((4, 5)))
lifted = man.mass * (man.center_of_mass(high) - man.center_of_mass(stand))[2]


def torque(t, now):
    wanted = path(t, 2) + 100 * (path(t) - now.q) + 20 * (path(t, 1) - now.qd)
    return now.tree.inverse_dynamics(now.q, now.qd, wanted)


grasp = sd.Grasp(box, to="elbow", at=grip, twist="at_rest", name="box", time=1.65)
run = sd.simulate(man, sd.State(man, stand), 3.5, torque, [grasp], step=0.02, rtol=1e-8)
box_lifted = (run.pose("box", 3.5) - run.pose("box", 1.65))[2, 3]
print(f"work {run.energy.work[-1]:.3f} J, to lift both {9.81 * (lifted + 8 * box_lifted):.3f} J")

# %%
plt.style.use("petroff10")
figure, scene = plt.subplots(figsize=(11, 3.6), layout="constrained")
corners = 0.15 * np.array([(-1, 0, -1, 0), (1, 0, -1, 0), (1, 0, 1, 0), (-1, 0, 1, 0)]).T + [[0], [0], [0], [1]]
joints, times = ["ankle", "knee", "hip", "shoulder", "elbow"], [0, 0.7, 1.1, 1.65, 2.3, 2.8, 3.5]
for x, t in enumerate(times):
    scene.fill(*(run.pose("box", t) @ corners)[[0, 2]] + [[x], [0]], color="C1")
    body = [run.pose(name, t)[[0, 2], 3] for name in joints] + [(run.pose("elbow", t) @ (0, 0, -0.3, 1))[[0, 2]]]
    scene.plot(*np.add(body, (x, 0)).T, "o-", lw=9, ms=11, color="C0")
    scene.plot(*(run.pose("hip", t) @ (0, 0, 0.68, 1))[[0, 2]] + (x, 0), "o", ms=24, color="C0")
    scene.plot([x - 0.08, x + 0.2], [0.03, 0.03], lw=9, color="C0", solid_capstyle="round")
scene.set(aspect="equal", ylabel="z (m)", ylim=(0, 1.75), xticks=range(7), xticklabels=times, xlabel="time (s)")
plt.show()
