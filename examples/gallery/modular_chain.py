"""
A modular chain that grows in orbit
===================================

A module spins freely. Every 1.5 s its chain bends round, docks with a module that waits at rest, and goes on with one
more motor. Each docking is an impact that dissipates energy, but no force from outside acts: the centre of mass of all
modules moves on a straight line, and the angular momentum about the origin stays that of the first module.
"""

import matplotlib.pyplot as plt
import numpy as np

import screwdyn as sd

LENGTH, COUNT, EVERY, LAST = 0.5, 6, 1.5, 12.0
module = sd.Inertia.rod(4.0, LENGTH, "x", (LENGTH / 2, 0, 0))
tree = sd.KinematicTree("station", gravity=(0, 0, 0))
tree.attach(module, to="station", joint=sd.planar("z", passive=True, name="orbit"), name="module0")


def torque(t, state):  # a wave along the joints of the chain
    waves = {f"bend{k}": 0.5 * np.sin(1.4 * t - 0.9 * k) for k in range(1, COUNT)}
    return {name: waves[name] - 0.25 * state.velocity(name) for name in state.coordinates if name in waves}


# %%
# A new module waits at the tip of the chain, in line with it.
docking = []
for k in range(1, COUNT):
    place = {"to": f"module{k - 1}", "at": (LENGTH, 0, 0), "joint": sd.revolute("z", name=f"bend{k}")}
    docking.append(sd.Grasp(module, **place, twist="at_rest", name=f"module{k}", time=EVERY * k))
start = sd.State(tree, {}, {"orbit[w]": 1.5, "orbit[vx]": 0.3})
run = sd.simulate(tree, start, LAST, torque, docking, step=0.03)
momentum = np.array([state.tree.momentum(state.q, state.qd) for state in run.states])  # about the origin
print(f"momentum changes by {np.ptp(momentum, axis=0).max():.0e}")

# %%
plt.style.use("petroff10")
figure, (scene, chart) = plt.subplots(2, 1, figsize=(11, 5.5), layout="constrained")
for k, t in enumerate(np.arange(0.75, LAST, EVERY)):
    state = run.at(t)
    places = [state.tree.forward_kinematics(link, state.q) for link in state.tree.links[1:]]
    points = np.transpose([T[:2, 3] for T in places] + [(places[-1] @ (LENGTH, 0, 0, 1))[:2]])
    x, y = points - state.tree.center_of_mass(state.q)[:2, None]
    scene.plot(x + 2.2 * k, y, "o-", lw=5, ms=8, color=plt.cm.plasma(t / LAST), mec="white")
scene.set(aspect="equal", title="the chain every 1.5 s, about its centre of mass", xticks=[], ylabel="m")
chart.plot(run.t, momentum[:, 2], label="angular momentum (kg m²/s)", lw=2)
chart.plot(run.t, run.energy.kinetic, label="kinetic energy (J)", lw=2)
chart.plot(run.t, run.energy.impact_loss, label="lost in dockings (J)", lw=2)
chart.set(xlabel="time (s)", xlim=(0, LAST))
chart.legend(frameon=False)
plt.show()
