"""
A humanoid that shifts its weight
=================================

A humanoid stands on two feet that nothing holds to the ground, with a box of 5 kg in its arms. Its hips move the trunk
from side to side, so that one foot bears nearly all, then the other. What the feet bear follows from the motion of the
centre of mass alone: its weight, and a quarter more of what it shifts because it accelerates.
"""

import matplotlib.pyplot as plt
import numpy as np

import screwdyn as sd

WIDTH, LEG, TRUNK, SHIFT, PERIOD = 0.24, 0.8, 0.6, 0.09, 4.0
man = sd.KinematicTree()
trunk = sd.Inertia.box(30, (0.2, 0.35, TRUNK), com=(0, 0, TRUNK / 2))
man.attach(trunk, to="base", joint=sd.planar("x", passive=True), at=(0, 0, LEG + 0.06), name="trunk")
man.attach(sd.Inertia.box(5, (0.3, 0.3, 0.3)), to="trunk", at=(0.25, 0, 0.25), name="box")
soles = [(0, y, -0.06) for y in (-0.04, 0.04)]
for side, y in (("left", WIDTH / 2), ("right", -WIDTH / 2)):
    leg = sd.Inertia.rod(8, LEG, "z", (0, 0, -LEG / 2))
    man.attach(leg, to="trunk", joint=sd.revolute("x", name=f"{side} hip"), at=(0, y, 0), name=f"{side} leg")
    ankle = sd.revolute("x", passive=True, name=f"{side} ankle")
    man.attach(sd.Inertia.box(1, (0.25, 0.1, 0.06)), f"{side} leg", ankle, (0, 0, -LEG), f"{side} foot")
    man.touch(f"{side} foot", to="base", on=sd.Plane(), points=soles, friction=0.8, name=side)


def lean(t):  # of the legs: the pelvis moves by SHIFT to both sides
    return np.arcsin(SHIFT / LEG) * np.sin(2 * np.pi * t / PERIOD) * min(1.0, t / PERIOD) ** 2


def torque(t, now):
    q, qd = (now.to_dict()[what] for what in ("q", "qd"))
    wanted, rate = lean(t), (lean(t + 1e-5) - lean(t - 1e-5)) / 2e-5
    return {x: 3000 * (wanted - q[x]) + 150 * (rate - qd[x]) for x in ("left hip", "right hip")}


run = sd.simulate(man, sd.State(man), 3 * PERIOD, torque, step=0.04)
feet = {side: [run.contact(side, t) for t in run.t] for side in ("left", "right")}
load = {side: np.array([x.forces[:, 2].sum() for x in found]) for side, found in feet.items()}
moment = sum(np.array([x.points[:, 1] @ x.forces[:, 2] for x in found]) for found in feet.values())
# The same from the motion alone: the rate of momentum, and the weight, about the middle of the ground.
c = man.center_of_mass(run.q)
rate = man.centroidal_momentum_rate(run.q, run.qd, run.qdd) + 9.81 * man.mass * np.eye(6)[5]
expected = rate[:, 0] + c[:, 1] * rate[:, 5] - c[:, 2] * rate[:, 4]
print(f"feet and motion agree to {abs(load['left'] + load['right'] - rate[:, 5]).max():.0e} N, ", end="")
print(f"{abs(moment - expected).max():.0e} N m; one foot bears up to {load['left'].max() / 9.81 / man.mass:.0%}")

plt.style.use("petroff10")
figure, (scene, curves) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", width_ratios=(1.5, 1))
for k, t in enumerate((4.0, 5.0, 6.0, 7.0)):
    names = ["left foot", "left leg", "right leg", "right foot"]
    scene.plot(*np.array([run.pose(name, t)[[1, 2], 3] + [k, 0] for name in names]).T, "o-", lw=8, ms=9, color="C0")
    middle, height = run.pose("trunk", t)[[1, 2], 3]
    scene.add_patch(plt.Rectangle((middle + k - 0.175, height), 0.35, TRUNK, color="C0"))
    scene.add_patch(plt.Rectangle((middle + k - 0.15, height + 0.1), 0.3, 0.3, color="C1"))
    for side in feet:  # what the ground pushes
        found = run.contact(side, t)
        for point, push in zip(found.points, found.forces, strict=True):
            scene.arrow(k + point[1], 0, *push[1:] / 600, width=0.012, color="C2", zorder=3)
scene.set(aspect="equal", xticks=range(4), xticklabels=["4 s", "5 s", "6 s", "7 s"], ylabel="z (m)", ylim=(-0.1, 1.6))
for side, sign in (("left", 1), ("right", -1)):
    curves.plot(run.t, load[side], label=f"{side} foot")
    curves.plot(run.t, 9.81 * man.mass * (0.5 + sign * c[:, 1] / WIDTH), "k:", lw=1)
curves.plot([], [], "k:", lw=1, label="at rest at this place")
curves.set(xlabel="time (s)", ylabel="force of the ground (N)")
curves.legend(frameon=False)
plt.show()
