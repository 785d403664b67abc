"""
A humanoid that lifts a box and shifts its weight
=================================================

A humanoid stands on two feet that nothing holds to the ground. Its arms grip a box of 5 kg on a shelf, and lift it.
Then its hips move the trunk from side to side, so that one foot bears most, then the other. What feet and shelf bear
follows from the motion of the centre of mass alone: the weight, and what accelerates it.
"""

import matplotlib.pyplot as plt
import numpy as np

import screwdyn as sd

WIDTH, LEG, TRUNK, SHIFT, PERIOD, BOX, SHELF = 0.24, 0.8, 0.6, 0.08, 4.0, 5.0, 0.9
GRIP, RISE, AWAY = 0.5, 1.0, 3.0  # s
man = sd.KinematicTree()
trunk = sd.Inertia.box(30, (0.2, 0.35, TRUNK), com=(0, 0, TRUNK / 2))
man.attach(trunk, to="base", joint=sd.planar("x", passive=True), at=(0, 0, LEG + 0.06), name="trunk")
lift = sd.prismatic("z", name="lift")
man.attach(sd.Inertia.box(1, (0.1, 0.4, 0.1)), to="trunk", joint=lift, at=(0.2, 0, 0.2), name="arms")
box = sd.Inertia.box(BOX, (0.3, 0.3, 0.3))
man.attach(box, to="base", joint=sd.planar("x", passive=True), at=(0.4, 0, SHELF + 0.15), name="box")
below = [(0, y, -0.15) for y in (-0.15, 0.15)]
man.touch("box", to="base", on=sd.Plane(offset=SHELF), points=below, friction=0.5, name="shelf")
soles = [(0, y, -0.06) for y in (-0.04, 0.04)]
for side, y in (("left", WIDTH / 2), ("right", -WIDTH / 2)):
    leg = sd.Inertia.rod(8, LEG, "z", (0, 0, -LEG / 2))
    man.attach(leg, to="trunk", joint=sd.revolute("x", name=f"{side} hip"), at=(0, y, 0), name=f"{side} leg")
    ankle = sd.revolute("x", passive=True, name=f"{side} ankle")
    man.attach(sd.Inertia.box(1, (0.25, 0.1, 0.06)), f"{side} leg", ankle, (0, 0, -LEG), f"{side} foot")
    man.touch(f"{side} foot", to="base", on=sd.Plane(), points=soles, friction=0.8, name=side)


def wanted(t):  # the height of the arms, and the angle of both hips, which moves the pelvis by SHIFT to both sides
    x, late = np.clip((t - RISE) / (AWAY - RISE), 0, 1), max(t - AWAY, 0)
    angle = np.arcsin(SHIFT / LEG) * np.sin(2 * np.pi * late / PERIOD) * min(1.0, late / PERIOD) ** 2
    return {"lift": 0.25 * x**3 * (10 - 15 * x + 6 * x**2), "left hip": angle, "right hip": angle}


def torque(t, now):
    here, rate, held = now.to_dict()["q"], now.to_dict()["qd"], 1 + BOX * np.clip((t - GRIP) / (RISE - GRIP), 0, 1)
    before, after = wanted(t - 1e-5), wanted(t + 1e-5)
    speed = {x: (after[x] - before[x]) / 2e-5 for x in after}
    push = {x: 3000 * (at - here[x]) + 150 * (speed[x] - rate[x]) for x, at in wanted(t).items()}
    return push | {"lift": push["lift"] + 9.81 * held}


grip = sd.Close("box", to="arms", name="grip", time=GRIP)
run = sd.simulate(man, sd.State(man), AWAY + 3 * PERIOD, torque, events=[grip], step=0.04)
bearing = {name: [run.contact(name, t) for t in run.t] for name in ("left", "right", "shelf")}
load = {name: np.array([x.forces[:, 2].sum() for x in found]) for name, found in bearing.items()}
moment = sum(np.array([x.points[:, 1] @ x.forces[:, 2] for x in found]) for found in bearing.values())
moment -= sum(np.array([x.points[:, 2] @ x.forces[:, 1] for x in found]) for found in bearing.values())
# The same from the motion alone: the rate of momentum, and the weight, about the middle of the ground.
c = man.center_of_mass(run.q)
rate = man.centroidal_momentum_rate(run.q, run.qd, run.qdd) + 9.81 * man.mass * np.eye(6)[5]
expected = rate[:, 0] + c[:, 1] * rate[:, 5] - c[:, 2] * rate[:, 4]
print(f"contacts and motion agree to {abs(sum(load.values()) - rate[:, 5]).max():.0e} N, ", end="")
print(f"{abs(moment - expected).max():.0e} N m; one foot bears up to {load['left'].max() / 9.81 / man.mass:.0%}")

plt.style.use("petroff10")
figure, (scene, curves) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", width_ratios=(1.5, 1))
for k, t in enumerate(times := (0.4, 3.0, 8.0, 10.0)):
    names = ["left foot", "left leg", "right leg", "right foot"]
    scene.plot(*np.array([run.pose(name, t)[[1, 2], 3] + [k, 0] for name in names]).T, "o-", lw=8, ms=9, color="C0")
    middle, height = run.pose("trunk", t)[[1, 2], 3]
    scene.add_patch(plt.Rectangle((middle + k - 0.175, height), 0.35, TRUNK, color="C0"))
    scene.add_patch(plt.Rectangle(run.pose("box", t)[[1, 2], 3] + [k - 0.15, -0.15], 0.3, 0.3, color="C1"))
    scene.plot([k - 0.2, k + 0.2], [SHELF, SHELF], "0.4", lw=3, zorder=3)
    for side in bearing:  # what ground and shelf push
        found = run.contact(side, t)
        for point, push in zip(found.points, found.forces, strict=True):
            if push.any():
                scene.arrow(k + point[1], point[2], *push[1:] / 600, width=0.012, color="C2", zorder=3)
labels = [f"{t:g} s" for t in times]
scene.set(aspect="equal", xticks=range(4), xticklabels=labels, ylabel="z (m)", ylim=(-0.1, 1.6))
for side, sign in (("left", 1), ("right", -1)):
    curves.plot(run.t, load[side], label=f"{side} foot")
    curves.plot(run.t, (9.81 * man.mass - load["shelf"]) * (0.5 + sign * c[:, 1] / WIDTH), "k:", lw=1)
curves.plot(run.t, load["shelf"], label="shelf")
curves.plot([], [], "k:", lw=1, label="at rest at this place")
curves.set(xlabel="time (s)", ylabel="force (N)")
curves.legend(frameon=False, loc=(0.02, 0.12))
plt.show()
