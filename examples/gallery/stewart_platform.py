"""
A Stewart platform, built leg by leg while it moves
===================================================

A platform of 20 kg drifts and turns without weight. Six legs follow it, each on a universal joint and with a motor that
changes its length. One after the other seizes the platform with a ball joint, which takes three of the 24 freedoms.
With the sixth, the legs hold the platform, and bring it to a given pose.
"""

import matplotlib.pyplot as plt
import numpy as np

import screwdyn as sd

GOAL, END = np.array([0, 0, np.sin(0.25), np.cos(0.25), 0.1, 0.05, 0.2]), 4.0  # quaternion, and m from the start
robot, leg = sd.KinematicTree(gravity=(0, 0, 0)), sd.KinematicTree("foot")
drift = sd.free(passive=True, name="drift")
robot.attach(sd.Inertia.cylinder(20.0, 0.45, 0.05), to="base", at=(0, 0, 0.9), joint=drift, name="platform")
lower, upper = (sd.Inertia.rod(mass, 0.6, axis="z", com=(0, 0, z)) for mass, z in ((3.0, 0.3), (1.0, -0.3)))
leg.attach(lower, to="foot", joint=sd.universal(passive=True), name="tube")
leg.attach(upper, to="tube", at=(0, 0, 1.0), joint=sd.prismatic("z"), name="rod")
own, q, feet = robot.coordinates, [0, 0, 0, 1, 0, 0, 0], []
for k, angle in enumerate(np.radians([9, 111, 129, 231, 249, 351])):
    foot, ball = (r * np.array([np.cos(a), np.sin(a), 0]) for r, a in ((0.8, angle), (0.4, angle + 0.6)))
    z, across = ball + np.array([0, 0, 0.9]) - foot, np.array([-np.sin(angle), np.cos(angle), 0])
    x = np.cross(across, z) / np.linalg.norm(np.cross(across, z))
    turn = np.column_stack([x, np.cross(z, x) / np.linalg.norm(z), z / np.linalg.norm(z)])
    robot.attach(leg, to="base", at=sd.screw.pose(turn, foot), prefix=f"{k}/")
    robot.close(f"{k}/rod", to="platform", joint=sd.spherical(), at=sd.screw.pose(turn, ball))
    q, feet = [*q, 0, 0, np.linalg.norm(z) - 1.0], [*feet, foot]
start = robot.project(q, [0.3, -0.2, 0.4, 0.1, 0.05, 0.12, *np.zeros(18)], hold=own)  # the legs follow at first
for name in robot.loops:
    robot.open(name)


def torque(t, now):
    if len(now.tree.loops) < 6:
        return np.zeros(now.tree.nv)
    wanted = 9 * now.tree.difference(now.q, [*GOAL, *now.q[7:]])[:6] - 6 * now.qd[:6]
    small = now.tree.reduced(now.q, now.qd, own)
    return now.tree.inverse_dynamics(now.q, now.qd, small.Z @ wanted + small.Z_dot @ now.qd[:6])


events = [sd.Close(f"{k}/rod", to="platform", joint=sd.spherical(), time=0.1 * (k + 1)) for k in range(6)]
run = sd.simulate(robot, sd.State(robot, *start), END, torque, events, control_period=0.01, step=0.02)
print("freedoms:", robot.freedoms(run.states[-1].q), "platform at", run.pose("platform", END)[:3, 3], "m")

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for scene, t in zip(axes, (0.0, END), strict=True):
    now = run.at(t)
    now.tree.draw("now.png", now.q, hide=("text",), camera=(0.6, -1, 0.4), size=(640, 520))
    scene.imshow(plt.imread("now.png"))
    scene.set(title=f"{t:.1f} s", xticks=[], yticks=[])
plt.show()
