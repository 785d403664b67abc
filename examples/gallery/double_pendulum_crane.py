"""
A crane with a double pendulum
==============================

A trolley moves a load that hangs on slings below a heavy hook. Hook and load swing in two modes. A smooth move of the
trolley excites both; the same move, convolved with four impulses that are half a period of each mode apart (a ZV
shaper), leaves almost none. The two frequencies, from the linear model of the tree, are those of the textbook.
"""

from itertools import product

import matplotlib.pyplot as plt
import numpy as np

import screwdyn as sd

hook_mass, load_mass, rope, slings, g = 200.0, 600.0, 6.0, 2.0, 9.81
crane = sd.KinematicTree()
crane.attach(sd.Inertia.point(900), to="base", joint=sd.prismatic("x", name="rail"), name="trolley")
hinge = sd.revolute("y", passive=True)
crane.attach(sd.Inertia.point(hook_mass, (0, 0, -rope)), to="trolley", joint=hinge, name="hook")
crane.attach(sd.Inertia.point(load_mass, (0, 0, -slings)), to="hook", joint=hinge, at=(0, 0, -rope), name="load")

# With the rail locked, the linear model of the tree has the two frequencies of a double pendulum.
hanging = crane.copy()
hanging.lock("rail")
modes = np.unique(np.abs(np.linalg.eigvals(hanging.linearize([0, 0]).A).imag).round(9))
ratio, total = 1 + load_mass / hook_mass, 1 / rope + 1 / slings
root = np.sqrt((ratio * total) ** 2 - 4 * ratio / (rope * slings))
by_hand = np.sqrt(g / 2 * (ratio * total + np.array([-root, root])))
print("frequencies (rad/s):", modes, "by hand:", by_hand)


# %%
# The trolley's acceleration is prescribed, and hook and load swing as they will.
def drive(delays, way=5.0, seconds=5.0):
    def torque(t, state):
        s = np.clip((t - np.array(delays)) / seconds, 0, 1)
        v = way * 2 * np.pi / seconds**2 * np.sin(2 * np.pi * s).mean()
        M, h = crane.mass_matrix(state.q), crane.bias_force(state.q, state.qd)
        return [M[0, 0] * v + M[0, 1:] @ np.linalg.solve(M[1:, 1:], -M[1:, 0] * v - h[1:]) + h[0]]

    return sd.simulate(crane, sd.State(crane), 16.0, torque, step=0.05, rtol=1e-7)


four = [sum(pair) for pair in product(*((0, np.pi / w) for w in modes))]
plt.style.use("petroff10")
figure, axes = plt.subplots(2, 2, figsize=(11, 6.2), layout="constrained", sharex="col")
for (scene, chart), delays, title in zip(axes, ([0], four), ("smooth move", "shaped move"), strict=True):
    run = drive(delays)
    ahead = (run.pose("load") @ (0, 0, -slings, 1))[:, 0] - run["rail"]
    remaining = np.ptp(ahead[run.t > 10]) / 2
    for t in np.arange(0, 10, 0.4):
        ends = run.pose("trolley", t)[:3, 3], run.pose("load", t)[:3, 3], (run.pose("load", t) @ (0, 0, -slings, 1))[:3]
        scene.plot(*np.transpose(ends)[[0, 2]], "s-", ms=9, markevery=[2], color=plt.cm.viridis(t / 10))
    scene.set(title=f"{title}: rope and slings every 0.4 s", aspect="equal", xlabel="x (m)", ylabel="z (m)")
    chart.plot(run.t, ahead, lw=2)
    chart.set(title=f"remaining sway {remaining:.3f} m", ylabel="load ahead of the trolley (m)", ylim=(-3.2, 3.2))
axes[1, 1].set(xlabel="time (s)")
plt.show()
