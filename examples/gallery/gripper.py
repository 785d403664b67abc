"""
A gripper that closes on a ball
===============================

Two fingers of 0.1 kg slide towards each other. The left one meets a ball of 0.3 kg and takes it along; the right one
meets the ball and closes the loop through palm, fingers and ball. Both are impacts without rebound, and the momentum
is zero at the end: all kinetic energy of the fingers is lost. Then they press with 20 N, and the gripper is lifted.
"""

import matplotlib.pyplot as plt
import numpy as np

import screwdyn as sd

FINGER, BALL, RADIUS, SPEED, PRESS, LIFT = 0.1, 0.3, 0.03, 0.4, 20.0, 2.0
gripper = sd.KinematicTree("arm")
gripper.attach(sd.Inertia.box(0.8, (0.2, 0.06, 0.04)), to="arm", joint=sd.prismatic("z", name="lift"), name="palm")
for name, x in (("left", -0.08), ("right", 0.08)):
    finger = sd.Inertia.box(FINGER, (0.02, 0.04, 0.1))
    gripper.attach(finger, to="palm", joint=sd.prismatic((-np.sign(x), 0, 0)), at=(x, 0, -0.07), name=name)
gripper.lock("lift")
start = sd.State(gripper, qd={"left": SPEED, "right": SPEED})


def touching(side):  # the ball lies at x = −0.01 at first; negative until the finger meets it
    def depth(t, now):
        ball = now.tree.forward_kinematics("ball", now.q)[0, 3] if "ball" in now.tree.links else -0.01
        return RADIUS + 0.01 - abs(ball - now.tree.forward_kinematics(side, now.q)[0, 3])

    return depth


def torque(t, now):  # the fingers coast until the loop is closed
    lift = (0.8 + 2 * FINGER + BALL) * (9.81 + LIFT)
    press = PRESS if now.tree.loops else 0.0
    return {name: lift if name == "lift" else press for name in now.coordinates}


ball = sd.Inertia.sphere(BALL, RADIUS)
grasp = sd.Grasp(ball, to="left", pose=(-0.01, 0, -0.07), twist="at_rest", name="ball", when=touching("left"))
events = [grasp, sd.Close("ball", to="right", name="grip", when=touching("right")), sd.Unlock("lift", time=0.4)]
run = sd.simulate(gripper, start, 0.8, torque, events, step=0.005)
end = run.states[-1]
grip = end.tree.constraint_wrenches(end.q, end.qd, np.array([*torque(0.8, end).values()])).wrenches["grip"]
print(f"{run.energy.impact_loss[-1]:.3f} J lost, pressed with {abs(grip[3]):.1f} N, lifted by {run['lift'][-1]:.3f} m")

plt.style.use("petroff10")
figure, axes = plt.subplots(1, 4, figsize=(12, 4), layout="constrained", sharey=True)
for ax, t in zip(axes, (0.0, run.events[0].t, run.events[1].t, 0.8), strict=True):
    for k, (name, (w, h)) in enumerate({"palm": (0.2, 0.04), "left": (0.02, 0.1), "right": (0.02, 0.1)}.items()):
        x, _, z = run.pose(name, t)[:3, 3]
        ax.add_patch(plt.Rectangle((x - w / 2, z - h / 2), w, h, color=f"C{k}"))
    place = run.pose("ball", t)[[0, 2], 3] if t >= run.events[0].t else (-0.01, -0.07)
    ax.add_patch(plt.Circle(place, RADIUS, color="C3"))
    ax.set(aspect="equal", xlim=(-0.12, 0.12), ylim=(-0.14, 0.2), xlabel="x (m)", title=f"{t:.3f} s")
axes[0].set_ylabel("z (m)")
plt.show()
