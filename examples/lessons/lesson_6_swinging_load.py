r"""
6. Control of a swinging load
=============================

A crate on a hook has no motor, yet the arm can move it where it should be. This lesson takes the model apart into
active and passive freedoms, linearizes it, and compares a controller that knows the swing with one that does not.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import solve_continuous_are

import screwdyn as sd

np.set_printoptions(precision=3, suppress=True)

# %%
# The load
# --------
#
# The crate hangs 0.4 m below a universal joint at the tool of a UR5. ``equilibrium`` lets it hang; ``holding_torque``
# is what the motors need for it.

posture = np.array([0, -1.8, 1.6, 0.2, 1.57, 0])
arm = sd.robots.ur5()
upright = sd.screw.inverse(arm.forward_kinematics("tool0", posture))
upright[:3, 3] = 0
hook = sd.universal("x", "y", passive=True, name="hook")
crate = sd.Inertia.box(3.0, (0.15, 0.15, 0.15), com=(0, 0, -0.4))
arm.attach(crate, to="tool0", at=upright, joint=hook, name="crate")
q0 = arm.equilibrium([*posture, 0.1, 0.1])
hold = arm.holding_torque(q0)
print("it hangs at", q0[6:], "rad; torques", hold)

# %%
# Active and passive
# ------------------
#
# The equation of motion splits into the rows of the motors and those of the hook. The hook's rows have no torque:
# they say how the crate must accelerate when the arm does. M_pa transmits it.

blocks = arm.partition(q0, np.zeros(8))
print(blocks.passive, "feel accelerations of", blocks.active, "by", blocks.M_pa, sep="\n")
push = np.zeros(6)
push[2] = 1.0
print(
    "1 rad/s² of the elbow accelerates the hook by",
    -np.linalg.solve(blocks.M_pp, blocks.M_pa @ push),
    "rad/s²",
)

# %%
# A linear model
# --------------
#
# Near the equilibrium, x = [q − q₀; q̇] satisfies ẋ = A x + B u. With the arm's joints locked, the eigenvalues are
# those of two undamped pendulums; a point mass on a thread of 0.4 m would swing at √(9.81 / 0.4) = 4.95 rad/s. If the
# arm is free to recoil, the hook's own rows of A have faster ones.

A, B = arm.linearize(q0)
locked, hook_rows = arm.copy(), np.ix_([6, 7, 14, 15], [6, 7, 14, 15])
for joint, position in zip(arm.coordinates[:6], posture, strict=True):
    locked.lock(joint, at=position)
print("arm locked:    ", np.linalg.eigvals(locked.linearize(q0[6:]).A))
print("free to recoil:", np.linalg.eigvals(A[hook_rows]))

# %%
# Two controllers
# ---------------
#
# The first holds the arm where it is, with compensation of gravity; the second is the linear-quadratic regulator of
# the whole model, which weighs the angles of the hook heavily.

Q = np.diag([*[10.0] * 6, 100.0, 100.0, *[0.1] * 6, 1.0, 1.0])
R = 0.1 * np.eye(6)
regulator = np.linalg.solve(R, B.T @ solve_continuous_are(A, B, Q, R))
stiff = np.kron([100.0, 20.0], np.eye(6, 8) * arm.mass_matrix(q0).diagonal())
print(
    "slowest eigenvalue with the regulator:",
    np.linalg.eigvals(A - B @ regulator).real.max(),
    "1/s",
)


def swing(gain, angle, seconds=5.0):
    start = sd.State(arm, q0 + np.eye(8)[6] * angle)
    return sd.simulate(
        arm,
        start,
        seconds,
        lambda t, now: hold[:6] - gain @ [*(now.q - q0), *now.qd],
        step=0.02,
        rtol=1e-6,
        atol=1e-8,
    )


runs = {"hold the arm": swing(stiff, 0.4), "regulator": swing(regulator, 0.4)}
figure, (hooks, torques) = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained")
for name, run in runs.items():
    hooks.plot(run.t, run.q[:, 6], label=name)
    torques.plot(run.t, run.torque("shoulder_lift_joint"), label=name)
hooks.set(xlabel="time (s)", ylabel="first angle of the hook (rad)", xlim=(0, 5))
torques.set(xlabel="time (s)", ylabel="torque of the shoulder (N m)", xlim=(0, 5))
hooks.legend()
plt.show()

# %%
# The regulator lets the arm follow the crate and takes energy out of the swing. The torques differ by little: to know
# the model is worth more than strength. Try to calm a crate by hand
# `in the laboratory <../lab.html#q=0,-1.8,1.6,0.2,1.57,0&qd=0.5,0,0,0,0,0&joint=hook&mass=3&hang>`_.
#
# When the load is gone
# ---------------------
#
# A controller that reads the tree knows at every instant what it carries. Here gravity is compensated from the
# state's own tree, so the arm does not jump when the crate is released.

home = dict(zip(arm.coordinates[:6], q0[:6], strict=True))


def aware(t, now):
    tau = dict(zip(now.coordinates, now.tree.gravity_vector(now.q), strict=True))
    return {x: tau[x] - 200 * (now[x] - home[x]) - 40 * now.velocity(x) for x in home}


def unaware(t, now):
    tau = dict(zip(home, hold[:6], strict=True))
    return {x: tau[x] - 200 * (now[x] - home[x]) - 40 * now.velocity(x) for x in home}


figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
offsets = {}
for controller in (aware, unaware):
    carrier = arm.copy()
    run = sd.simulate(
        carrier,
        sd.State(carrier, q0),
        1.5,
        torque=controller,
        events=[sd.Release("crate", time=0.5)],
        rtol=1e-6,
    )
    offsets[controller.__name__] = run["shoulder_lift_joint"] - q0[1]
    axes.plot(run.t, 1e3 * offsets[controller.__name__], label=controller.__name__)
axes.set(xlabel="time (s)", ylabel="shoulder from its place (mrad)", xlim=(0, 1.5))
axes.legend()
plt.show()

# %%
# Exercises
# ---------
#
# 1. Which motors move the hook at this posture, and which do not?
# 2. How does the eigenvalue of the swing change with a thread of 0.1 m?
# 3. Give the hook a damping of 0.2 N m s. Does the crate come to rest faster by itself than by the regulator?
#
# Solutions
# ---------
#
# 1. The rows of the hook in B: in the plane of the arm above all the first wrist, across it the last one.
# 2. It rises to that of a short pendulum, in which the inertia of the box counts.
# 3. The swing dies out with 0.87 1/s or more, where the slowest motion with the regulator has 0.33; but damping does
#    not bring the arm back.

print("1. accelerations of the hook by 1 N m of each motor:", B[14:], sep="\n")
short, damped = arm.copy(), arm.copy()
short.set_inertia("crate", sd.Inertia.box(3.0, (0.15, 0.15, 0.15), com=(0, 0, -0.1)))
damped.replace_joint(
    "crate", sd.universal("x", "y", passive=True, name="hook", damping=0.2)
)
for number, other in (("2.", short), ("3.", damped)):
    print(number, np.linalg.eigvals(other.linearize(q0).A[hook_rows]))
