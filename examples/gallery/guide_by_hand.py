"""
An arm that a hand guides, and that picks up a crate
====================================================

Gravity compensation holds a UR5 wherever a hand leaves it. After 1 s the arm grasps a crate of 3 kg. The law takes
each state in the tree as it is then, so that the hand does not notice; a law of the arm alone lets it droop, against
the hand, and all the more when this lets go.
"""

import matplotlib.pyplot as plt
import numpy as np

import screwdyn as sd
from screwdyn import control

crate = sd.Inertia.box(3.0, (0.3, 0.2, 0.2), com=(0, 0, 0.12))
q0, let_go = np.array([0, -1.2, 1.8, -0.6, 1.57, 0]), 3.0
alone = sd.robots.ur5()
start = alone.forward_kinematics("tool0", q0)[:3, 3]


def wanted(t):
    s = np.clip(t / 2.5, 0, 1)
    return start + (3 * s**2 - 2 * s**3) * np.array([-0.1, 0.2, 0.15])


def hand(t, state):
    """The pull of a hand that holds the tool as by a soft spring, until it lets go."""
    T = state.tree.forward_kinematics("tool0", state.q)
    force = 400 * (wanted(t) - T[:3, 3]) if t < let_go else np.zeros(3)
    return {"tool0": [0, 0, 0, *(T[:3, :3].T @ force)]}


law = control.GravityCompensation(alone, damping=[40, 40, 20, 5, 5, 5])
laws = {"knows the crate": law, "of the arm alone": lambda t, state: law(t, sd.State(alone, state.q, state.qd))}
how = {"control_period": 4e-3, "step": 0.02}
plt.style.use("petroff10")
figure, (above, below) = plt.subplots(2, 1, figsize=(8, 6), sharex=True, layout="constrained")
pulls, heights = {}, {}
for name, torque in laws.items():
    arm = sd.robots.ur5()
    grasp = sd.Grasp(crate, to="tool0", name="crate", twist="co_moving", time=1.0)
    run = sd.simulate(arm, sd.State(arm, q0), 4.0, torque, [grasp], wrenches=hand, **how)
    heights[name] = np.array([arm.forward_kinematics("tool0", q)[2, 3] for q in run.q])
    pulls[name] = np.array([np.linalg.norm(hand(t, run.at(t))["tool0"]) for t in run.t])
    above.plot(run.t, heights[name], label=name)
    below.plot(run.t, pulls[name])
above.plot(run.t, [wanted(t)[2] for t in run.t], "0.5", ls="--", label="the hand's way")
above.set(ylabel="height of the tool (m)")
below.set(xlabel="time (s)", ylabel="pull of the hand (N)", xlim=(0, 4))
for chart in (above, below):
    chart.axvline(1.0, color="0.8")
    chart.axvline(let_go, color="0.8")
above.legend(frameon=False)
falls = {name: z[run.t <= let_go][-1] - z[-1] for name, z in heights.items()}
for name, fall in falls.items():
    print(f"{name}: the hand pulls by up to {pulls[name].max():.0f} N; let go, the tool falls {1e3 * fall:.0f} mm")
plt.show()
