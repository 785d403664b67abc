"""
Computed torque with and without the payload
============================================

A UR5 picks up 4 kg on its way. With the payload in its model, computed torque follows the path exactly. With the model
of the empty arm and the same gains, the arm sags under the weight, which the feedback must balance.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.interpolate import CubicHermiteSpline

import screwdyn as sd

GRASP, END, KP, KD = 0.8, 4.0, 100.0, 20.0
empty = sd.robots.ur5()
crate = sd.Link("crate", sd.Inertia.box(4.0, (0.2, 0.2, 0.2), com=(0, 0, 0.1)))
stations = np.array([[-1.2, -1, 1.5, -2, -1.57, 0], [1.2, -1.5, 1.3, -1.3, -1.57, 0.5], [0, -0.9, 1, -1.6, -1.57, 0]])
path = CubicHermiteSpline([0, 1.5, 3.0], stations, np.zeros((3, 6)))


def follow(model):  # the controller's model; None for the robot as it is
    def torque(t, now):
        q, qd, qdd = (path(min(t, 3.0), k) * (k == 0 or t < 3.0) for k in range(3))
        qdd = qdd + KP * (q - now.q) + KD * (qd - now.qd)
        return (model or now.tree).inverse_dynamics(now.q, now.qd, qdd)

    arm = empty.copy()
    grasp = sd.Grasp(crate, to="tool0", twist="co_moving", time=GRASP)
    return sd.simulate(arm, sd.State(arm, stations[0]), END, torque, [grasp], step=0.02, rtol=1e-8)


runs = {"with the payload": follow(None), "without": follow(empty)}
place = {name: run.pose("tool0")[:, :3, 3] for name, run in runs.items()}
planned = {name: empty.forward_kinematics("tool0", path(np.minimum(run.t, 3)))[:, :3, 3] for name, run in runs.items()}
errors = {name: np.linalg.norm(place[name] - planned[name], axis=1) for name in runs}

# %%
plt.style.use("petroff10")
figure = plt.figure(figsize=(11, 4.6), layout="constrained")
scene, chart = figure.add_subplot(121, projection="3d"), figure.add_subplot(122)
for (name, run), color in zip(runs.items(), ("C0", "C1"), strict=True):
    scene.plot(*place[name].T, color=color, lw=2)
    links = [run.pose(link, END)[:3, 3] for link in empty.path("tool0")[1:]]
    scene.plot(*np.transpose(links), "o-", color=color, lw=4, alpha=0.7)
    chart.plot(run.t, 1e3 * errors[name], color=color, lw=2, label=f"{name}: {1e3 * errors[name].max():.2g} mm at most")
scene.set_box_aspect((1, 1, 1))
scene.view_init(25, 20)
chart.axvline(GRASP, color="0.5", ls="--")
chart.set(xlabel="time (s)", ylabel="tool from its path (mm)", xlim=(0, END))
chart.legend(frameon=False)
plt.show()
