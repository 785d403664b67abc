r"""
3. A payload in mid-motion
==========================

A robot grasps a crate that hangs still, while the robot moves. What happens to the rates, to momentum and to energy?
The answer is one principle, which this lesson tries on the simplest example, on an arm, and in a simulation.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize_scalar

import screwdyn as sd

np.set_printoptions(precision=3, suppress=True)

# %%
# Two carts
# ---------
#
# A cart of 2 kg moves at 3 m/s, grasps a cart of 1 kg that stands, and both move on together. Momentum decides: 6 kg
# m/s shared by 3 kg is 2 m/s. Energy of 9 J becomes 6 J; 3 J are lost in the impact, whatever the clutch is made of.

track = sd.KinematicTree("track", gravity=(0, 0, 0))
track.attach(
    sd.Inertia.point(2.0), to="track", joint=sd.prismatic("x", name="x"), name="cart"
)
grasp = track.grasp(
    sd.State(track, qd=[3.0]),
    sd.Inertia.point(1.0),
    to="cart",
    twist="at_rest",
    name="other",
)
print(f"rate after it {grasp.state.qd[0]} m/s, energy lost {grasp.energy_lost} J")

# %%
# The law
# -------
#
# An arm with a payload has many rates, and a hook does not transmit a moment about its pin. The principle is the
# same: *of all motions that the changed robot can make, the one nearest to the motion before, in the metric of the
# mass matrix*. The energy lost is the energy of the difference, and the impulses are its momentum.

arm = sd.robots.ur5()
state = sd.State(arm, q=[0, -1.8, 1.6, 0.2, 1.57, 0], qd=[0.5, 0.2, -0.3, 0, 0, 0])
crate = sd.Inertia.box(3.0, size=(0.3, 0.2, 0.2), com=(0, -0.3, 0))
rigid = arm.copy().grasp(state, crate, to="tool0", twist="at_rest", name="crate")
hook = sd.revolute("x", passive=True, damping=0.05)
hung = arm.grasp(state, crate, to="tool0", joint=hook, twist="at_rest", name="crate")
print("rates before:        ", state.qd)
print("after a rigid grasp: ", rigid.state.qd, f"{rigid.energy_lost:.3f} J lost")
print("after one on a hook: ", hung.state.qd, f"{hung.energy_lost:.3f} J lost")

# %%
# The hook loses less: it adds a motion, and with more motions to choose from the nearest one is nearer. The rates
# jump, the positions do not. A crate on such a hook
# `in the laboratory <../lab.html#q=0,-1.8,1.6,0.2,1.57,0&qd=0.5,0.2,-0.3,0,0,0&joint=pin&mass=3&hang>`_ has just
# been grasped by this arm in this state.
#
# Check the law for the hook: the momentum of the robot and the crate along every motion that the joints allow is the
# same before and after. Before, the crate is at rest, so only the arm has any.

M_arm = arm.mass_matrix(hung.state.q) - arm.contribution(
    "crate", hung.state.q, hung.state.qd
).M.matrix(arm.coordinates)
before = M_arm @ np.append(state.qd, 0.0)
print("momentum before:", before)
after = arm.mass_matrix(hung.state.q) @ hung.state.qd
print("momentum after: ", after)

# %%
# Energy over many grasps
# -----------------------
#
# How much is lost depends on how the crate moves when it is caught. If it moves with the tool, nothing is.

share = np.linspace(-0.5, 2.0, 26)
tool = sd.robots.ur5()
co_moving = tool.jacobian("tool0", state.q, "body") @ state.qd
lost = [
    tool.copy().grasp(state, crate, to="tool0", twist=x * co_moving).energy_lost
    for x in share
]
figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
axes.plot(share, lost, "o-")
axes.set(
    xlabel="motion of the crate, as a share of that of the tool",
    ylabel="energy lost (J)",
    ylim=(0, None),
)
plt.show()

# %%
# A task
# ------
#
# Events of a simulation are the same changes at a time. The controller holds the arm where it is, and knows the
# weight of what it carries; the crate begins half a radian off the vertical, and swings on its hook until it is
# released.

home = dict(zip(hung.state.coordinates, hung.state.q, strict=True))
del home["crate"]


def hold(t, now):
    tau = dict(zip(now.coordinates, now.tree.gravity_vector(now.q), strict=True))
    return {x: tau[x] + 300 * (home[x] - now[x]) - 30 * now.velocity(x) for x in home}


tilted = sd.State(arm, [*state.q, 0.5], hung.state.qd)
run = sd.simulate(arm, tilted, 2.0, torque=hold, events=[sd.Release("crate", time=1.2)])
print(
    [event.verb for event in run.events],
    "residual of the energy's ledger:",
    np.abs(run.energy.residual).max(),
    "J",
)
figure, (angle, ledger) = plt.subplots(1, 2, figsize=(11, 3.4), layout="constrained")
angle.plot(run.t, run["crate"])
angle.set(xlabel="time (s)", ylabel="angle of the hook (rad)", xlim=(0, 2))
ledger.plot(
    run.t, run.energy.total - run.energy.total[0], label="kinetic and potential energy"
)
ledger.plot(run.t, run.energy.work, label="work of the motors")
ledger.plot(run.t, run.energy.exchanged, label="brought and taken by the payload")
ledger.plot(run.t, run.energy.residual, "k:", label="residual")
ledger.set(xlabel="time (s)", ylabel="energy (J)", xlim=(0, 2))
ledger.legend(fontsize=8)
plt.show()

# %%
# The ledger of energy books what motors, damping and impacts take or give. Its residual is what the integrator has
# lost, which tells that the run is right without knowing its result.
#
# Exercises
# ---------
#
# 1. A skater turns with arms spread, and pulls them in. Model her as a turning post with two prismatic arms; the arms
#    are *locked* at the end. Which quantity is conserved, and what is lost?
# 2. At which pose should the crate hang on its hook so that the grasp loses the least energy? Try ``start``.
# 3. Release the crate at once after the grasp. Do the rates of the arm return to what they were?
#
# Solutions
# ---------
#
# 1. The angular momentum about the post; the lock takes the energy of the arms' own motion.
# 2. Five angles show where the least is about; a search by SciPy finds it.
# 3. No: a release does not change any rate, and the energy of the impact is gone.

skater = sd.KinematicTree("ice", gravity=(0, 0, 0))
skater.attach(
    sd.Inertia.cylinder(50.0, 0.15, 1.7),
    to="ice",
    joint=sd.revolute("z", name="turn"),
    name="body",
)
for side, axis in (("left", (-1, 0, 0)), ("right", (1, 0, 0))):
    skater.attach(
        sd.Inertia.point(4.0),
        to="body",
        joint=sd.prismatic(axis, name=side),
        name=f"{side} hand",
    )
moving = sd.State(skater, [0.0, 0.8, 0.8], [3.0, -0.5, -0.5])
L = skater.momentum(moving.q, moving.qd)[2]
first = skater.lock("left", moving)
second = skater.lock("right", first.state)
print("1. L before and after:", L, skater.momentum(second.state.q, second.state.qd)[2])
print("   lost:", first.energy_lost + second.energy_lost, "J")


def energy_lost(angle):
    return (
        tool.copy()
        .grasp(state, crate, to="tool0", joint=hook, twist="at_rest", start=angle)
        .energy_lost
    )


for angle in np.linspace(-3.0, 3.0, 5):
    print(f"2. at {angle:4.1f} rad: {energy_lost(angle):.4f} J")
least = minimize_scalar(energy_lost, bounds=(-np.pi, np.pi), method="bounded")
print(f"   least at {least.x:.3f} rad: {least.fun:.4f} J")
again = tool.copy()
held = again.grasp(state, crate, to="tool0", joint=hook, twist="at_rest", name="crate")
released = again.release(held.state, "crate")
print("3.", released.state.qd - state.qd)
