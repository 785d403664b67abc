r"""
1. Screws and twists
====================

A rigid body moves, at every instant, like a screw in its nut: it turns about a line in space and slides along it.
This lesson writes such motions as six numbers, moves them from frame to frame, and finds that a Jacobian is nothing
but the list of the screws of the joints.
"""

import matplotlib.pyplot as plt
import numpy as np

import screwdyn as sd
from screwdyn import screw

np.set_printoptions(precision=3, suppress=True)

# %%
# A twist
# -------
#
# A *twist* is V = [ω; v]: the angular velocity of the body, and the velocity of the point of the body that is at the
# origin of the frame. The velocity of any other point at r follows from it: v + ω × r. Here a wheel turns at 2 rad/s
# about a vertical axle at x = 1 m. The point of the (extended) wheel at the origin moves, although the axle does not.

axle = np.array([1.0, 0.0, 0.0])
w = np.array([0.0, 0.0, 2.0])
V = np.concatenate([w, np.cross(axle, w)])
print("twist:", V)
print("velocity of the axle:", V[3:] + np.cross(V[:3], axle))

# %%
# The arrows are the velocities of points of the wheel's plane. They turn about the axle, wherever the origin is.

x, y = np.meshgrid(np.linspace(-0.5, 2.5, 9), np.linspace(-1.5, 1.5, 9))
points = np.stack([x, y, 0 * x], axis=-1)
velocity = V[3:] + np.cross(V[:3], points)
figure, axes = plt.subplots(figsize=(5, 5), layout="constrained")
axes.quiver(x, y, velocity[..., 0], velocity[..., 1], angles="xy")
axes.plot(*axle[:2], "o", label="axle")
axes.plot(0, 0, "s", label="origin of the frame")
axes.set(aspect="equal", xlabel="x (m)", ylabel="y (m)")
axes.legend(loc="upper left")
plt.show()

# %%
# The screw of a twist
# --------------------
#
# Every twist is a multiple of a *unit screw*: an axis, and a pitch, which is how far the body slides in one radian. A
# revolute joint has pitch 0, a prismatic joint an infinite one, a bolt something between. ``screw.axis`` and
# ``screw.pitch`` take a twist apart again.

bolt = screw.screw_from_axis("z", point=axle, pitch=0.05)
direction, point = screw.axis(bolt)
print("unit screw:", bolt)
print(
    "its axis passes through",
    point,
    "along",
    direction,
    "with a pitch of",
    screw.pitch(bolt),
    "m/rad",
)

# %%
# Motion for a while
# ------------------
#
# A body that keeps the twist S for an "angle" θ reaches the pose exp(Ŝ θ), a matrix of 4 × 4 with a rotation and a
# translation. The path of a point on a bolt is a helix. ``screw.log`` leads back from the pose to S θ.

theta = np.linspace(0, 6 * np.pi, 200)
path = np.array([screw.exp(bolt * x) @ (1.5, 0, 0, 1) for x in theta])[:, :3]
print("log of the pose after 2 rad:", screw.log(screw.exp(bolt * 2.0)))
axes = plt.figure(figsize=(5, 4.5), layout="constrained").add_subplot(projection="3d")
axes.plot(*path.T)
axes.plot([1, 1], [0, 0], [0, path[-1, 2]], color="0.6")
axes.set(xlabel="x (m)", ylabel="y (m)", zlabel="z (m)")
axes.set_box_aspect(None, zoom=0.9)  # room for the label of z
plt.show()

# %%
# Another frame
# -------------
#
# The same motion has other numbers in another frame. If T is the pose of frame b in frame a, the twist in a is
# Ad(T) times the twist in b. Nothing else changes: pitch and magnitude stay.

T = screw.exp([0.3, -0.2, 0.5, 0.4, 0.1, 0.7])
other = screw.Ad(T) @ bolt
print("in the other frame:", other)
print("pitch:", screw.pitch(other))

# %%
# A Jacobian is a list of screws
# ------------------------------
#
# In the base frame, column k of the Jacobian of an arm is the unit screw of joint k, where the joint is now. So the
# Jacobian of the UR5 shows six lines of pitch 0. They are drawn here as they pierce the arm.

arm = sd.robots.ur5()
q = np.array([0, -1.8, 1.6, 0.2, 1.57, 0])
J = arm.jacobian("tool0", q, frame="base")
joints = np.array([arm.forward_kinematics(link, q)[:3, 3] for link in arm.path("tool0")])
axes = plt.figure(figsize=(5, 4.5), layout="constrained").add_subplot(projection="3d")
axes.plot(*joints.T, "o-", color="0.5", lw=4)
for S, name in zip(J.T, arm.coordinates, strict=True):
    direction, point = screw.axis(S)
    near = point + direction * ((joints - point) @ direction).mean()
    axes.plot(
        *np.transpose([near - 0.3 * direction, near + 0.3 * direction]),
        label=name.removesuffix("_joint"),
    )
axes.set(xlabel="x (m)", ylabel="y (m)", zlabel="z (m)")
axes.set_box_aspect(None, zoom=0.9)  # room for the label of z
axes.legend(fontsize=8, loc="upper left")
plt.show()

# %%
# Turn the joints yourself: the arm
# `in the laboratory <../lab.html#q=0,-1.8,1.6,0.2,1.57,0&qd=0,0,0,0,0,0>`_, in a browser.

# %%
# Exercises
# ---------
#
# 1. Two equal and opposite rotations about parallel axes that are 1 m apart act at the same instant. Which
#    motion is their sum?
# 2. A wrench [n; f] is a force along a line and a moment about it. How much power does a unit force along the axis of
#    a revolute joint deliver to the joint? Use ``screw.virtual_power``.
# 3. When are the six lines of the UR5 linearly dependent? Find one such configuration, and the motion that the tool
#    cannot make there.
#
# Solutions
# ---------
#
# 1. A translation across the plane of the axes: the angular velocities cancel.
# 2. None, because the moment of the force about the axis vanishes.
# 3. For example, if the arm is stretched: the smallest singular value of J vanishes. Its left singular vector is
#    perpendicular to all twists that the joints can make: with its six numbers as a twist, the motion that the tool
#    cannot make; as a wrench, the one that the motors cannot feel.

first, second = screw.screw_from_axis("z"), screw.screw_from_axis("z", point=(1, 0, 0))
print("1.", first - second)
force = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
print("2.", screw.virtual_power(first, force), "W")
stretched = arm.jacobian("tool0", [0, -1.8, 0, 0.2, 1.57, 0], frame="base")
U, sizes, _ = np.linalg.svd(stretched)
print("3. singular values", sizes, "motion", U[:, -1])
