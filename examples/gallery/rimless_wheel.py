"""
A rimless wheel that walks down a slope
=======================================

A wheel of eight spokes without a rim rolls down a slope from spoke to spoke, the simplest thing that walks. Each step
gains the same energy on the way down, and the impact of the next spoke leaves the share η of the rate. So the rate
after impacts approaches a limit cycle, ω² = η² s / (1 − η²) if a step gains s in ω², whatever the start (McGeer 1990).
"""

import matplotlib.pyplot as plt
import numpy as np

import screwdyn as sd

SPOKES, LENGTH, MASS, INERTIA, SLOPE, g = 8, 1.0, 2.0, 0.1, 0.12, 9.81
half = np.pi / SPOKES  # of the angle between spokes
angles = 2 * half * np.arange(SPOKES) - half
tips = LENGTH * np.column_stack([np.sin(angles), 0 * angles, -np.cos(angles)])
wheel = sd.KinematicTree(gravity=(g * np.sin(SLOPE), 0, -g * np.cos(SLOPE)))
body = sd.Inertia(MASS, (0, 0, 0), (INERTIA / 2, INERTIA, INERTIA / 2))
joint = sd.planar("y", name="hub")
wheel.attach(body, to="base", joint=joint, at=(0, 0, LENGTH * np.cos(half)), name="wheel")
wheel.touch("wheel", to="base", on=sd.Plane(), points=tips, friction=2.0, name="slope")


def start(rate):  # it stands on two spokes and begins to turn about the one in front
    q = wheel.neutral()
    J = wheel.contact_jacobian(q)
    front = int(np.argmax(tips[:, 0] - 1e3 * (wheel.contact_gaps(q) > 1e-9)))
    A = np.vstack([J[front], np.eye(3)[:1]])
    return sd.State(wheel, q, np.linalg.lstsq(A, [0, 0, 0, rate], rcond=None)[0])


about_tip = INERTIA + MASS * LENGTH**2
eta = (INERTIA + MASS * LENGTH**2 * np.cos(2 * half)) / about_tip
gained = 4 * MASS * g * LENGTH * np.sin(half) * np.sin(SLOPE) / about_tip  # ω² of a step
limit = eta * np.sqrt(gained / (1 - eta**2))
runs, after = {}, {}
for rate in (0.9, 1.6, 2.4):
    run = runs[rate] = sd.simulate(wheel, start(rate), 4.5, step=0.01)
    hits = [x.t for x in run.events if x.verb == "touch" and x.event.energy_lost > 1e-6]
    after[rate] = np.array([run.at(t).qd[0] for t in hits])
    print(f"from {rate} rad/s: {len(hits)} impacts, the last leaves {after[rate][-1]:.6f} rad/s")
print(f"closed form {limit:.6f} rad/s")

plt.style.use("petroff10")
figure, (steps, cycle) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", width_ratios=(1.7, 1))
run = runs[1.6]
for t in np.linspace(0, 1.4, 8):
    T = run.pose("wheel", t)
    hub, ends = T[:3, 3], tips @ T[:3, :3].T + T[:3, 3]
    for end in ends:
        steps.plot([hub[0], end[0]], [hub[2], end[2]], color=plt.cm.viridis(t / 1.6), lw=1.5)
steps.axhline(0, color="0.4")
steps.set(aspect="equal", xlabel="along the slope (m)", ylabel="height above it (m)")
for rate, found in after.items():
    cycle.plot([rate, *found], "o-", label=f"from {rate} rad/s")
cycle.axhline(limit, color="0.6", ls=":", label="closed form")
cycle.set(xlabel="impact", ylabel="rate after it (rad/s)")
cycle.legend(frameon=False)
plt.show()
