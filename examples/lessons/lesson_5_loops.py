r"""
5. Loops
========

A tree has one path between two links; a four-bar has two. A loop adds no coordinate and changes no contribution: it
adds constraints between the coordinates that are there. This lesson closes loops at rest and in motion, and asks what
the pins bear.
"""

import matplotlib.pyplot as plt
import numpy as np

import screwdyn as sd

np.set_printoptions(precision=3, suppress=True)


def bar(mass, length):
    return sd.Inertia.box(mass, (length, 0.02, 0.02), com=(length / 2, 0, 0))


# %%
# A four-bar
# ----------
#
# Crank and coupler form one chain, the rocker another. ``close`` joins their ends by a pin. ``at`` is where the frame
# of the rocker then lies on the coupler: at 0.5 m, so that its end of 2 m is at that of 2.5 m.

linkage = sd.KinematicTree(gravity=(0, -9.81, 0))
linkage.attach(bar(1.0, 1.0), to="base", joint=sd.revolute("z"), name="crank")
linkage.attach(
    bar(2.5, 2.5),
    to="crank",
    joint=sd.revolute("z", passive=True),
    at=(1.0, 0, 0),
    name="coupler",
)
linkage.attach(
    bar(2.0, 2.0),
    to="base",
    joint=sd.revolute("z", passive=True),
    at=(2.2, 0, 0),
    name="rocker",
)
linkage.close(
    "rocker",
    to="coupler",
    joint=sd.revolute("z", (2.0, 0, 0)),
    at=(0.5, 0, 0),
    name="pin",
)
print(linkage)

# %%
# Three coordinates, two constraints in the plane: one freedom is left. ``assemble`` closes the loop from a guess, and
# follows the crank through a turn.

q = linkage.assemble([0.7, -0.2, 1.5], hold=["crank"])
turn, poses = np.linspace(0, 2 * np.pi, 73), []
for angle in turn:
    q = linkage.assemble([angle, *q[1:]], hold=["crank"])
    poses.append(q)
poses = np.array(poses)
print(
    "freedoms:",
    linkage.freedoms(q),
    "largest gap:",
    max(np.abs(linkage.gap(q)).max() for q in poses),
)
figure, (plane, chart) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
ends = {"crank": (1.0, 0, 0, 1), "coupler": (2.5, 0, 0, 1), "rocker": (2.0, 0, 0, 1)}
for q in poses[::8]:
    for link, color in (("crank", "C0"), ("coupler", "C1"), ("rocker", "C2")):
        T = linkage.forward_kinematics(link, q)
        plane.plot(
            *np.transpose([T[:2, 3], (T @ ends[link])[:2]]), color=color, alpha=0.6
        )
plane.set(aspect="equal", xlabel="x (m)", ylabel="y (m)")
chart.plot(turn, np.unwrap(poses[:, 1:], axis=0), label=linkage.coordinates[1:])
chart.set(xlabel="crank (rad)", ylabel="other joints (rad)", xlim=(0, 2 * np.pi))
chart.legend()
plt.show()

# %%
# Rates, accelerations, forces
# ----------------------------
#
# The constraint is J_c q̇ = 0. Rates that satisfy it are found by ``project``; forward dynamics solves for
# accelerations and for the wrenches in the pin together.

q, qd = linkage.project(poses[10], [2.0, 0, 0], hold=["crank"])
print("rates:", qd, "that the loop forbids:", linkage.constraint_jacobian(q) @ qd)
qdd = linkage.forward_dynamics(q, qd, [1.3, 0, 0])
found = linkage.constraint_wrenches(q, qd, [1.3, 0, 0])
print("accelerations:", qdd)
print("wrench in the pin [n; f]:", found.wrenches["pin"])
print("what rigid bodies leave open:", found.undetermined["pin"].shape[1], "combinations")

# %%
# The wrench is that on the rocker, about the origin of its frame. The pin is 2 m along x from it and transmits no
# moment about its own axis: n_z = 2 f_y. Out of the plane, rigid bodies cannot tell how a load is shared between the
# joints: three combinations are undetermined, and the library says so instead of guessing.

n, f = np.split(found.wrenches["pin"], 2)
print("moment about the pin:", n[2] - 2.0 * f[1])

# %%
#
# As many coordinates as freedoms
# -------------------------------
#
# With one freedom, the linkage is a pendulum whose inertia changes. ``reduced`` gives its M, C and g over the crank
# alone.

inertia = [linkage.reduced(q, 0 * q, ["crank"]).M[0, 0] for q in poses]
figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
axes.plot(turn, inertia)
axes.set(
    xlabel="crank (rad)",
    ylabel="inertia at the crank (kg m²)",
    xlim=(0, 2 * np.pi),
    ylim=(0, None),
)
plt.show()

# %%
# Closing in motion
# -----------------
#
# A loop may close while everything moves. It is an impact like any other: rates jump to the nearest ones that the
# loop allows. `In the laboratory
# <../lab.html#q=0,-1.8,1.6,0.2,1.57,0&qd=0.5,0.2,-0.3,0,0,0&joint=hook&mass=3&hang&close>`_ the hand of an arm has just
# been held by a ball joint: three freedoms are gone, and the matrices M of the links have the same bits. Let the crate
# swing, open the loop, and close it while the arm moves: the ledger books the heat.
#
# A run keeps a loop closed to rounding until it opens, here after a second.

moving = linkage.copy()  # a run changes its robot
run = sd.simulate(moving, sd.State(moving, q, qd), 3.0, events=[sd.Open("pin", time=1.0)])
print(
    [event.verb for event in run.events],
    "residual:",
    np.abs(run.energy.residual).max(),
    "J",
)
figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
axes.plot(run.t, run.q, label=linkage.coordinates)
axes.axvline(1.0, color="0.6", label="the pin opens")
axes.set(xlabel="time (s)", ylabel="joints (rad)", xlim=(0, 3))
axes.legend()
plt.show()

# %%
# Exercises
# ---------
#
# 1. Which condition on the lengths lets the shortest bar turn fully (Grashof)? Does this linkage satisfy it?
# 2. Hold the linkage still at some pose by the motor of the crank. How large is the torque? Where does it vanish?
# 3. A hand grasps a bar with two arms. How many freedoms of the arms are left, and what can they squeeze?
#
# Solutions
# ---------
#
# 1. Shortest plus longest must be at most the sum of the others: 1 + 2.5 ≤ 2.2 + 2, so the crank turns fully.
# 2. As below; it vanishes where the linkage would rest.
# 3. Six freedoms of each arm and six constraints leave six, the motions of the bar; the six wrenches between the
#    hands can be squeezed.

torque = [linkage.holding_torque(q)[0] for q in poses]
rest = turn[np.flatnonzero(np.diff(np.sign(torque)))]
print(
    f"2. at most {np.abs(torque).max():.1f} N m, none near crank angles of", rest, "rad"
)
