r"""
2. Contributions and the padded sum
===================================

The mass matrix of a robot looks like one object, but it is a sum: every link contributes its own matrix, over the
coordinates that move it. This lesson computes a contribution by hand, adds contributions by the *names* of their
coordinates, and shows why a payload changes nobody else's.
"""

import matplotlib.pyplot as plt
import numpy as np

import screwdyn as sd

np.set_printoptions(precision=3, suppress=True)
arm = sd.robots.puma560()
q = np.array([0.3, -0.8, 0.5, 0.2, 0.7, 0.1])
qd = np.array([0.5, 0.4, -0.6, 1.0, 0.3, -0.2])
print(arm)

# %%
# The energy of one link
# ----------------------
#
# A link moves with the twist V = J q̇ in its own frame, and has the kinetic energy ½ Vᵀ M̄ V, with its inertia M̄ of
# 6 × 6. So its part of the robot's mass matrix is Jᵀ M̄ J. Here is link 3, by hand and by the library. It has three
# coordinates only, because the wrist does not move it.

link = arm.links[3]
J = arm.jacobian(link, q, frame="com")[:, :3]
by_hand = J.T @ arm.link(link).inertia.com_matrix @ J
contribution = arm.contribution(link, q, qd)
print(link, "is moved by", contribution.coordinates)
print(by_hand, contribution.M.array, sep="\n")

# %%
# The sum by names
# ----------------
#
# Contributions have different sizes. The *padded sum* ‡ adds entries that belong to the same two coordinates, and
# takes what a link does not have for zero. The sum over all links is the mass matrix of the robot.

total = sd.padded_sum(part.M for part in arm.contributions(q, qd))
print(
    "largest difference from the mass matrix:",
    np.abs(total.matrix(arm.coordinates) - arm.mass_matrix(q)).max(),
)
parts = [part.M.matrix(arm.coordinates) for part in arm.contributions(q, qd)]
figure, places = plt.subplots(1, len(parts) + 1, figsize=(14, 2.8), layout="constrained")
largest = np.abs(arm.mass_matrix(q)).max()
for axes, part, name in zip(
    places, [*parts, arm.mass_matrix(q)], [*arm.links[1:], "sum ‡"], strict=True
):
    axes.imshow(np.log10(np.abs(part) / largest + 1e-6), vmin=-6, vmax=0)
    axes.set(title=name, xticks=[], yticks=[])
plt.show()

# %%
# A payload is one more term
# --------------------------
#
# A crate on the tool adds its own matrix. No other term changes, and after it is detached the matrix is what it was
# before, to the last bit. In the difference, two numbers that are nearly equal cancel, so the last digits are lost.

before = arm.mass_matrix(q)
arm.attach(sd.Inertia.box(2.0, (0.2, 0.2, 0.1)), to=arm.links[-1], name="crate")
crate = arm.contribution("crate", q, qd)
difference = arm.mass_matrix(q) - before
arm.detach("crate")
print("the crate alone:", crate.M.array, sep="\n")
print("difference that it makes:", difference, sep="\n")
print("the same bits after it is detached:", (arm.mass_matrix(q) == before).all())

# %%
# This holds also for a payload that swings. The hook has a coordinate of its own, which comes last; the rows and
# columns of the arm stay in their places.

hook = sd.universal("x", "y", passive=True, name="hook")
arm.attach(
    sd.Inertia.box(2.0, (0.2, 0.2, 0.1), com=(0, 0, 0.3)),
    to=arm.links[-1],
    joint=hook,
    name="crate",
)
q8 = np.append(q, [0.2, -0.1])
swinging = arm.contribution("crate", q8, np.append(qd, [0, 0]))
of_others = arm.mass_matrix(q8)[:6, :6] - swinging.M.array[:6, :6]
print(swinging.coordinates)
print("change of the other terms:", np.abs(of_others - before).max())

# %%
# Coriolis matrix and gravity
# ---------------------------
#
# Each link also contributes C_i = Jᵀ (M̄ J̇ + B J) and g_i = −m J_vᵀ Rᵀ g₀. The matrix C is that of the Christoffel
# symbols, so that Ṁ − 2C is skew-symmetric, already for each link alone. Here Ṁ comes from differences.

h, rate = 1e-6, np.append(qd, [0.3, 0.4])
step = [arm.contribution("crate", q8 + s * h * rate, rate).M.array for s in (1, -1)]
M_dot = (step[0] - step[1]) / (2 * h)
N = M_dot - 2 * arm.contribution("crate", q8, rate).C.array
print("Ṁ − 2C plus its transpose:", np.abs(N + N.T).max())
figure, axes = plt.subplots(figsize=(4, 3.4), layout="constrained")
axes.figure.colorbar(axes.imshow(N, cmap="RdBu"), ax=axes)
axes.set(title="Ṁ − 2C of the crate (kg m²/s)", xticks=[], yticks=[])
plt.show()

# %%
# Look at the contributions of an arm that moves
# `in the laboratory <../lab.html#q=0,-1.8,1.6,0.2,1.57,0&qd=0.5,0.2,-0.3,0,0,0>`_, in a browser: hang a load on it,
# and drop it.
#
# Exercises
# ---------
#
# 1. Which links contribute to the entry of M in the row of joint 2 and the column of joint 5? Check it with numbers.
# 2. Share of the last link in the torque of gravity at joint 2: compute it from the contributions.
# 3. Two robots share a table. Why is the mass matrix of both block-diagonal? Attach two arms to one base and look.
#
# Solutions
# ---------
#
# 1. Those that both joints move: link 5 and all beyond it.
# 2. The quotient of two entries.
# 3. No link is moved by joints of both arms, so no contribution has coordinates of both.

arm.detach("crate")
having = [
    c.link
    for c in arm.contributions(q, qd)
    if {arm.coordinates[1], arm.coordinates[4]} <= {*c.coordinates}
]
print("1.", *having)
last = arm.contribution(arm.links[-1], q, qd).g.array[1]
print(f"2. {last / arm.gravity_vector(q)[1]:.2%}")
pair = sd.KinematicTree("table")
for side, y in (("left/", 0.5), ("right/", -0.5)):
    pair.attach(sd.robots.puma560(), to="table", at=(0, y, 0), prefix=side)
print(
    "3. largest entry between the arms:",
    np.abs(pair.mass_matrix(np.tile(q, 2))[:6, 6:]).max(),
)
