"""
Two arms hand a crate over
==========================

The left UR5 lifts a crate, both arms meet in the middle, and the right one takes the crate and puts it down. Inverse
kinematics gives the stations. The torques are computed from the robot as it is at the time: at the hand-over nothing
moves, and the weight of the crate passes from one shoulder to the other.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.interpolate import CubicHermiteSpline

import screwdyn as sd

robot = sd.KinematicTree("floor")
for side, x, turn in (("left/", -0.75, np.eye(3)), ("right/", 0.75, np.diag([-1.0, -1.0, 1.0]))):
    robot.attach(sd.robots.ur5(), to="floor", at=sd.screw.pose(turn, (x, 0, 0)), prefix=side)
crate = sd.Inertia.box(2.0, (0.2, 0.2, 0.2), (0, 0, 0.1))
orange = sd.Shape.box((0.2, 0.2, 0.2), pose=sd.screw.pose(np.eye(3), (0, 0, 0.1)), color=(0.9, 0.55, 0.1))
high, low = 0.45, 0.2


def station(left, right, axes):  # angles for places of both tools, with their axes in given directions
    q = np.tile([0, -1.2, 1.8, -0.6, 1.57, 0], 2)
    for tool, place, z, k in zip(("left/tool0", "right/tool0"), (left, right), axes, (0, 6), strict=True):
        pose = sd.screw.pose(np.column_stack([np.cross((0, 1, 0), z), (0, 1, 0), z]), place)
        q = robot.inverse_kinematics(tool, pose, q, freedoms=robot.coordinates[k : k + 6])
    return q


ways = [(high, high), (low, high), (high, low), (high, high)]
q = [station((-0.35, 0, left), (0.35, 0, right), [(0, 0, -1)] * 2) for left, right in ways]
q[2:2] = [station((-0.1, 0, 0.5), (0.1, 0, 0.5), [(1, 0, 0), (-1, 0, 0)])] * 2
path = CubicHermiteSpline([0.0, 1.0, 2.5, 3.0, 4.5, 5.5], q, np.zeros((6, 12)))
grasp = sd.Grasp(crate, to="left/tool0", twist="at_rest", name="crate", shape=orange, time=1.0)
events = [grasp, sd.HandOver("crate", to="right/tool0", time=2.75), sd.Release("crate", time=4.5)]


def torque(t, now):
    wanted = path(t, 2) + 100 * (path(t) - now.q) + 20 * (path(t, 1) - now.qd)
    return now.tree.inverse_dynamics(now.q, now.qd, wanted)


run = sd.simulate(robot, sd.State(robot, q[0]), 5.5, torque, events, step=0.02, rtol=1e-8)
passed = np.ptp(run.torque("left/shoulder_lift_joint")[abs(run.t - 2.75) < 1e-9])
print(f"{passed:.2f} N m pass from the left shoulder to the right one; {run.energy.impact_loss[-1]:.0e} J are lost")
run.animate("hand_over.html", fps=20)
# %%
plt.style.use("petroff10")
figure, axes = plt.subplot_mosaic("abc;ttt", figsize=(9, 5), layout="constrained")
for name, t in zip("abc", (1.2, 2.75, 4.3), strict=True):
    now = run.at(t)
    now.tree.draw("now.png", now.q, camera=(0.1, -1, 0.3), size=(480, 360))
    axes[name].imshow(plt.imread("now.png"))
    axes[name].set(title=f"{t} s", xticks=[], yticks=[])
for name in ("left/shoulder_lift_joint", "right/shoulder_lift_joint"):
    axes["t"].plot(run.t, run.torque(name), label=name, lw=2)
axes["t"].set(xlabel="time (s)", ylabel="torque (N m)", xlim=(0, 5.5))
axes["t"].legend(frameon=False)
plt.show()
