"""
A hand that closes on a ball
============================

Three fingers of three phalanges each close on a ball that lies beside the axis of the palm. A phalanx that touches the
ball stops, with all joints before it, and those beyond continue, as in a hand driven by tendons: events lock the joints
on contact. After 0.8 s the palm grasps the ball, and the arm lifts both. No finger knows where the ball is.
"""

import matplotlib.pyplot as plt
import numpy as np

import screwdyn as sd

RADIUS, CENTRE = 0.045, np.array([0.01, 0.006, 0.065])
LENGTHS = np.array([0.06, 0.045, 0.04])
hand = sd.KinematicTree("arm")
hand.attach(sd.Inertia.cylinder(0.5, 0.05, 0.02), to="arm", joint=sd.prismatic("z", name="lift"), name="palm")
for f in range(3):
    link, at = "palm", sd.screw.exp([0, 0, 2 * np.pi * f / 3, 0, 0, 0]) @ sd.screw.exp([0, 0.9, 0, 0.036, 0, 0.02])
    for k, length in enumerate(LENGTHS):
        rod = sd.Inertia.rod(0.03, length, "z", (0, 0, length / 2))
        hand.attach(rod, to=link, joint=sd.revolute("y", name=f"q{f}{k}", damping=0.02), at=at, name=f"{f}{k}")
        link, at = f"{f}{k}", (0, 0, length)


def depth(state, f, phalanges):  # of phalanges in the ball, negative if they do not touch
    T = np.array([state.tree.forward_kinematics(f"{f}{k}", state.q) for k in phalanges])
    z, way = T[:, :3, 2], CENTRE - T[:, :3, 3]
    along = np.clip(np.sum(z * way, axis=1), 0, LENGTHS[phalanges])
    return RADIUS - np.linalg.norm(way - along[:, None] * z, axis=1).min()


def torque(t, now):  # tendons close the fingers; then the arm lifts hand and ball with 2 m/s²
    lift = now.tree.inverse_dynamics(now.q, now.qd, np.full(now.tree.nv, 2.0))
    return {name: lift[0] if name == "lift" else (-0.09, -0.05, -0.02)[int(name[2])] for name in now.coordinates}


hand.lock("lift")
grasp = sd.Grasp(sd.Inertia.sphere(0.2, RADIUS), to="palm", pose=CENTRE, twist="at_rest", name="ball", time=0.8)
events = [grasp, sd.Unlock("lift", time=0.8)]
for f, k in np.ndindex(3, 3):
    events.append(sd.Lock(f"q{f}{k}", when=lambda t, now, f=f, k=k: max(t - 0.7, depth(now, f, range(k, 3)))))
run = sd.simulate(hand, sd.State(hand), 1.1, torque, events, step=0.02, rtol=1e-7)
print("fingers from the ball (m):", [f"{-depth(run.at(0.79), f, range(3)):.0e}" for f in range(3)])

# %%
plt.style.use("petroff10")
figure, axes = plt.subplots(1, 4, figsize=(12, 4), layout="constrained", subplot_kw={"projection": "3d"})
for ax, t in zip(axes, (0.0, 0.25, 0.79, 1.1), strict=True):
    u, v = np.mgrid[0 : 2 * np.pi : 24j, 0 : np.pi : 13j]
    sphere = RADIUS * np.transpose([np.cos(u) * np.sin(v), np.sin(u) * np.sin(v), np.cos(v)])
    sphere += run.pose("ball", t)[:3, 3] if t > 0.8 else CENTRE
    ax.plot_surface(*sphere.T, color="C1", alpha=0.6, linewidth=0)
    for f in range(3):
        T = [run.pose(name, t) for name in ("palm", f"{f}0", f"{f}1", f"{f}2")]
        points = [*(x[:3, 3] for x in T), (T[-1] @ (0, 0, LENGTHS[-1], 1))[:3]]
        ax.plot(*np.transpose(points), "o-", lw=6, ms=7, color=f"C{2 * f}", solid_capstyle="round")
    ax.set(xlim=(-0.1, 0.1), ylim=(-0.1, 0.1), zlim=(-0.01, 0.19), title=f"{t:.2f} s")
    ax.set_box_aspect((1, 1, 1), zoom=1.0)
    ax.view_init(20, 40)
    ax.set_axis_off()
plt.show()
