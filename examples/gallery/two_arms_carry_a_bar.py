"""
Two arms carry one bar
======================

Two UR5 hold the ends of a bar of 6 kg, which closes a loop, and lift it by 0.3 m. Twelve motors for six freedoms leave
six numbers to choose, the wrench that the right hand exerts on the bar: half of its weight, so that the hands share
it, and from 1 s on also a squeeze of 50 N, which changes torques and no motion.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.interpolate import CubicSpline

import screwdyn as sd

MASS, LENGTH, LIFT, END = 6.0, 0.8, 0.3, 2.0
robot = sd.KinematicTree("floor")
for side, x, turn in (("left/", -0.75, np.eye(3)), ("right/", 0.75, np.diag([-1.0, -1.0, 1.0]))):
    robot.attach(sd.robots.ur5(), to="floor", at=sd.screw.pose(turn, (x, 0, 0)), prefix=side)
times, stations = np.linspace(0, END, 21), [np.tile([0, -1.2, 1.8, -0.6, 1.57, 0], 2)]
for z in 0.3 + LIFT * np.polyval([6, -15, 10, 0, 0, 0], times / END):
    q = stations[-1]
    for k, (tool, along) in enumerate((("left/tool0", 1.0), ("right/tool0", -1.0))):
        pose = sd.screw.pose([[0, 0, along], [0, 1, 0], [-along, 0, 0]], (-along * LENGTH / 2, 0, z))
        q = robot.inverse_kinematics(tool, pose, q, freedoms=robot.coordinates[6 * k : 6 * k + 6])
    stations.append(q)
path = CubicSpline(times, stations[1:], bc_type="clamped")
bar = sd.Inertia.box(MASS, (0.05, 0.05, LENGTH), com=(0, 0, LENGTH / 2))
robot.attach(bar, to="left/tool0", name="bar")
robot.close("bar", to="right/tool0", name="grip", state=sd.State(robot, path(0)))


def torque(t, now):
    q, v, tree = now.q, now.qd, now.tree
    wanted = path(t, 2) + 100 * (path(t) - q) + 20 * (path(t, 1) - v)
    allowed = tree.forward_dynamics(q, v, tree.mass_matrix(q) @ wanted + tree.bias_force(q, v))
    squeeze = np.array([MASS * 9.81 / 2, 0, 0 if t < 1 else 50.0]) * (-1, 1, -1)  # x points down, z to the right
    return tree.squeezing_torque(q, v, allowed, {"grip": [*np.cross((0, 0, LENGTH), squeeze), *squeeze]})


run = sd.simulate(robot, sd.State(robot, path(0)), END, torque, step=0.01, rtol=1e-6)
middle = run.at(1.0)
jump = torque(1.0, middle) - torque(np.nextafter(1.0, 0.0), middle)
print(
    f"squeezing takes {jump[1]:.1f} N m of the left shoulder; the loop's gap is {abs(robot.gap(run.q[-1])).max():.0e}"
)

# %%
plt.style.use("petroff10")
figure, axes = plt.subplot_mosaic("abc;ttt", figsize=(9, 5), layout="constrained")
for name, t in zip("abc", (0, END / 2, END), strict=True):
    now = run.at(t)
    now.tree.draw("now.png", now.q, hide=("text",), camera=(0.1, -1, 0.2), size=(480, 360))
    axes[name].imshow(plt.imread("now.png"))
    axes[name].set(title=f"{t} s", xticks=[], yticks=[])
for name in ("left/shoulder_lift_joint", "right/shoulder_lift_joint"):
    axes["t"].plot(run.t, run.torque(name), label=name, lw=2)
axes["t"].set(xlabel="time (s)", ylabel="torque (N m)", xlim=(0, END))
axes["t"].legend(frameon=False)
plt.show()
