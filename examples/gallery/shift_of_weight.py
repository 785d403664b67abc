"""
A humanoid that lifts a box and shifts its weight
=================================================

A humanoid stands on two feet that nothing holds to the ground. Its arms grip a box of 5 kg on a shelf and lift it. Then
its hips move the trunk from side to side, so that one foot bears most, then the other. What feet and shelf bear
together follows from the motion of the centre of mass alone: the weight, and what accelerates it.
"""

import matplotlib.pyplot as plt
import numpy as np

import screwdyn as sd

WIDTH, LEG, TRUNK, SHIFT, PERIOD, BOX, SHELF = 0.24, 0.8, 0.6, 0.08, 4.0, 5.0, 0.9
GRIP, AWAY, SOLES, BELOW = 0.5, 3.0, [(0, y, -0.06) for y in (-0.04, 0.04)], [(0, y, -0.15) for y in (-0.15, 0.15)]
man, above = sd.KinematicTree(), sd.planar("x", passive=True)
trunk = sd.Inertia.box(30, (0.2, 0.35, TRUNK), com=(0, 0, TRUNK / 2))
man.attach(trunk, to="base", joint=above, at=(0, 0, LEG + 0.06), name="trunk")
arms = sd.Inertia.box(1, (0.1, 0.4, 0.1))
man.attach(arms, to="trunk", joint=sd.prismatic("z", name="lift"), at=(0.2, 0, 0.2), name="arms")
box = sd.Inertia.box(BOX, (0.3, 0.3, 0.3))
man.attach(box, to="base", joint=above, at=(0.4, 0, SHELF + 0.15), name="box")
man.touch("box", to="base", on=sd.Plane(offset=SHELF), points=BELOW, friction=0.5, name="shelf")
for side, y in (("left", WIDTH / 2), ("right", -WIDTH / 2)):
    leg, foot = sd.Inertia.rod(8, LEG, "z", (0, 0, -LEG / 2)), sd.Inertia.box(1, (0.25, 0.1, 0.06))
    man.attach(leg, to="trunk", joint=sd.revolute("x", name=f"{side} hip"), at=(0, y, 0), name=f"{side} leg")
    ankle = sd.revolute("x", passive=True, name=f"{side} ankle")
    man.attach(foot, to=f"{side} leg", joint=ankle, at=(0, 0, -LEG), name=f"{side} foot")
    man.touch(f"{side} foot", to="base", on=sd.Plane(), points=SOLES, friction=0.8, name=side)


def torque(t, now):  # towards a height of the arms, and an angle of both hips that moves the pelvis to both sides
    x, late, state = np.clip((t - GRIP) / (AWAY - GRIP), 0, 1), max(t - AWAY, 0), now.to_dict()
    angle = np.arcsin(SHIFT / LEG) * np.sin(2 * np.pi * late / PERIOD) * min(1.0, late / PERIOD) ** 2
    goal = {"lift": 0.3 * x**3 * (10 - 15 * x + 6 * x**2), "left hip": angle, "right hip": angle}
    return {name: 3000 * (goal[name] - state["q"][name]) - 150 * state["qd"][name] for name in goal}


grip = sd.Close("box", to="arms", name="grip", time=GRIP)
run = sd.simulate(man, sd.State(man), AWAY + 3 * PERIOD, torque, events=[grip], step=0.04)
bearing = {name: [run.contact(name, t) for t in run.t] for name in ("left", "right", "shelf")}
load = {name: np.array([x.forces[:, 2].sum() for x in found]) for name, found in bearing.items()}
rate = man.centroidal_momentum_rate(run.q, run.qd, run.qdd)[:, 5] + 9.81 * man.mass
print(f"one foot bears up to {load['left'].max() / 9.81 / man.mass:.0%} of the weight")
print(f"contacts and motion agree to {abs(sum(load.values()) - rate)[run.t > AWAY].max():.0e} N")

plt.style.use("petroff10")
figure, (scene, curves) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", width_ratios=(1.5, 1))
for k, t in enumerate(times := (0.4, 3.0, 8.0, 10.0)):
    joints = [run.pose(name, t)[[1, 2], 3] + [k, 0] for name in ("left foot", "left leg", "right leg", "right foot")]
    scene.plot(*np.transpose(joints), "o-", lw=8, ms=9, color="C0")
    scene.add_patch(plt.Rectangle(run.pose("trunk", t)[[1, 2], 3] + [k - 0.175, 0], 0.35, TRUNK, color="C0"))
    scene.add_patch(plt.Rectangle(run.pose("box", t)[[1, 2], 3] + [k - 0.15, -0.15], 0.3, 0.3, color="C1"))
    scene.plot([k - 0.2, k + 0.2], [SHELF, SHELF], "0.4", lw=3, zorder=3)
    for found in (run.contact(name, t) for name in bearing):  # what ground and shelf push
        at, push = found.points[:, 1:] + [k, 0], found.forces[:, 1:]
        scene.quiver(*at.T, *push.T, color="C2", angles="xy", scale_units="xy", scale=600, minlength=0, zorder=3)
scene.set(aspect="equal", xticks=range(4), xticklabels=[f"{t:g} s" for t in times], ylabel="z (m)", ylim=(-0.1, 1.6))
for name, force in load.items():
    curves.plot(run.t, force, label=name if name == "shelf" else f"{name} foot")
curves.set(xlabel="time (s)", ylabel="force (N)")
curves.legend(frameon=False)
plt.show()
