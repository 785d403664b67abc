"""
A crate that is picked up, carried and put down
===============================================

A gantry takes a crate of 3 kg from the floor, carries it, and lets it go 5 cm above the floor while it still moves. The
crate falls, bounces on its corners, slides and stops. Contacts push and rub only; the ledger of energy closes.
"""

import matplotlib.pyplot as plt
import numpy as np

import screwdyn as sd

SIZE, FRICTION, RELEASE = (0.4, 0.3, 0.2), 0.35, 1.5
gantry = sd.KinematicTree()
gantry.attach(sd.Inertia.box(4.0, (0.2, 0.2, 0.1)), to="base", joint=sd.prismatic("x", name="x"), name="trolley")
gantry.attach(sd.Inertia.box(2.0, (0.1, 0.1, 0.6)), to="trolley", joint=sd.prismatic("z", name="z"), name="mast")
gantry.attach(sd.Inertia.box(3.0, SIZE), to="base", joint=sd.free(), name="crate", shape=sd.Shape.box(SIZE))
gantry.touch("crate", to="base", on=sd.Plane(), friction=FRICTION, restitution=0.3, name="floor")
start = gantry.neutral()
start[gantry.positions.index("crate[pz]")] = 0.1  # it stands on the floor, below the mast


def goal(t):  # of the gantry, and its rate: up, to the right, down to 5 cm above the floor
    u = np.clip([t / 0.5 - 0.2, t - 0.4], 0, 1)
    return np.array(
        [1.0 * max(0.0, t - 0.5), 0.15 * (3 * u[0] ** 2 - 2 * u[0] ** 3) - 0.1 * (3 * u[1] ** 2 - 2 * u[1] ** 3)]
    )


def torque(t, now):
    carried = 3.0 if "hand" in now.tree.loops else 0.0
    mass = np.array([6.0 + carried, 2.0 + carried])
    rate = (goal(t + 1e-4) - goal(t - 1e-4)) / 2e-4
    force = mass * (100 * (goal(t) - now.q[:2]) + 20 * (rate - now.qd[:2])) + [0, 9.81 * mass[1]]
    return dict(zip(("x", "z"), force.tolist(), strict=True))


events = [sd.Close("crate", "mast", name="hand", time=0.05), sd.Open("hand", time=RELEASE)]
run = sd.simulate(gantry, sd.State(gantry, start), 2.6, torque, events, control_period=0.005, step=0.005)
steps = [happened for happened in run.events if isinstance(happened.event, sd.ContactEvent)]
print(f"{len(steps)} events at the floor; the last: {steps[-1].verb} {steps[-1].subject} at {steps[-1].t:.3f} s")
print(f"{run.energy.impact_loss[-1]:.2f} J lost in impacts, {run.energy.dissipated[-1]:.2f} J by friction")
print(f"residual of the ledger: {abs(run.energy.residual).max():.0e} J")

t = np.linspace(0, 2.6, 521)
pose, floor = run.pose("crate", t), [run.contact("floor", x) for x in t]
push = np.array([contact.forces[:, 2].sum() for contact in floor])
plt.style.use("petroff10")
figure, (way, forces, ledger) = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
corners = np.array([(x, z) for x, z in ((-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1))]) * [0.2, 0.1]
for at in (0, 0.4, 0.8, 1.2, RELEASE, 1.65, 2.6):
    T = run.pose("crate", at)
    drawn = corners @ T[np.ix_([0, 2], [0, 2])].T + T[[0, 2], 3]
    way.plot(*drawn.T, color="C0" if at <= RELEASE else "C1")
way.axhline(0, color="0.4")
way.set(xlabel="x (m)", ylabel="z (m)", aspect="equal", title="carried (blue), on its own (orange)")
forces.plot(t, push, label="the floor pushes")
forces.axhline(3 * 9.81, color="0.6", ls=":", label="weight of the crate")
forces.set(xlabel="time (s)", ylabel="force (N)", ylim=(0, 40))
forces.legend(frameon=False)
ledger.plot(run.t, run.energy.impact_loss, label="lost in impacts")
ledger.plot(run.t, run.energy.dissipated, label="lost by friction")
ledger.set(xlabel="time (s)", ylabel="energy (J)")
ledger.legend(frameon=False)
plt.show()
