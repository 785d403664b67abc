"""
A gripper that loses what is too heavy
======================================

Two fingers press on a bar with 40 N and lift it, ever faster. Nothing joins fingers and bar: they hold by friction,
which bears 2 μ N. The bar begins to slip at the instant at which m (g + a) = 2 μ N. From then on the fingers slide
along it, and the ledger has the work of friction.
"""

import matplotlib.pyplot as plt
import numpy as np

import screwdyn as sd

PRESS, FRICTION, JERK, SIZE = 40.0, 0.6, 5.0, (0.08, 0.06, 1.2)
corners = [(0, y, z) for y in (-0.01, 0.01) for z in (-0.01, 0.01)]


def lifted(mass, end=1.2):
    gripper = sd.KinematicTree()
    gripper.attach(sd.Inertia.box(1.0, (0.2, 0.06, 0.04)), to="base", joint=sd.prismatic("z", name="lift"), name="palm")
    gripper.attach(sd.Inertia.box(mass, SIZE), to="base", joint=sd.planar("y"), at=(0, 0, -0.1), name="bar")
    for side in (-1, 1):
        name, finger = f"finger {side:+}", sd.Inertia.box(0.1, (0.02, 0.04, 0.1))
        slide = sd.prismatic((-side, 0, 0))
        gripper.attach(finger, to="palm", joint=slide, at=(side * (SIZE[0] / 2 + 0.01), 0, -0.1), name=name)
        face = sd.Plane((side, 0, 0), SIZE[0] / 2)
        pads = np.add((-side * 0.01, 0, 0), corners)
        gripper.touch(name, to="bar", on=face, points=pads[[0, 1]], friction=FRICTION, name=f"pad {side:+}")

    def torque(t, now):  # accelerates by jerk · t while the fingers hold
        return {"lift": (1.2 + mass) * (9.81 + JERK * t), "finger -1": PRESS, "finger +1": PRESS}

    return sd.simulate(gripper, sd.State(gripper), end, torque, step=0.01)


masses = (1.5, 3.2, 3.5)
runs = {mass: lifted(mass) for mass in masses}
slips, expected = {}, {}
for mass, run in runs.items():
    slips[mass] = min((x.t for x in run.events if x.verb == "slip at"), default=np.inf)
    expected[mass] = (2 * FRICTION * PRESS / mass - 9.81) / JERK
    print(f"{mass} kg: slips at {slips[mass]:.6f} s, closed form {expected[mass]:.6f} s; ", end="")
    print(f"{run.energy.dissipated[-1]:.2f} J of friction, residual {abs(run.energy.residual).max():.0e} J")

plt.style.use("petroff10")
figure, (scene, force) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
for k, (mass, run) in enumerate(runs.items()):
    for t, alpha in ((0.0, 0.3), (1.2, 1.0)):  # in the frame of the palm
        (x, _, z), w, h = run.pose("bar", t)[:3, 3] - run.pose("palm", t)[:3, 3], SIZE[0], SIZE[2]
        scene.add_patch(plt.Rectangle((x + k / 3 - w / 2, z - h / 2), w, h, color=f"C{k}", alpha=alpha))
        for name in ("finger -1", "finger +1"):
            x, _, z = run.pose(name, t)[:3, 3] - run.pose("palm", t)[:3, 3]
            scene.add_patch(plt.Rectangle((x + k / 3 - 0.01, z - 0.05), 0.02, 0.1, color="0.2", zorder=3))
    rubs = [run.contact("pad +1", t).forces[:, 2].sum() for t in run.t[::4]]
    force.plot(run.t[::4], np.abs(rubs), label=f"{mass} kg")
scene.set(aspect="equal", xlim=(-0.2, 0.86), ylim=(-1.3, 0.6), xticks=[], ylabel="z (m) in the gripper, at 0 and 1.2 s")
force.axhline(FRICTION * PRESS, color="0.6", ls=":", label="μ N")
force.set(xlabel="time (s)", ylabel="friction of one finger (N)")
force.legend(frameon=False)
plt.show()
