"""A UR5 that moves all joints with a load of 3 kg, for tests of control."""

import numpy as np

import screwdyn as sd

LOAD = sd.Inertia.box(3.0, (0.3, 0.2, 0.2), com=(0.03, -0.02, 0.15))
W, A = np.array([1.1, 1.7, 2.3, 2.9, 3.1, 3.7]), np.array([0.5, 0.4, 0.5, 0.6, 0.6, 0.6])
CENTRE = np.array([0, -1.2, 1.8, -0.6, 1.57, 0])


def reference(t):
    return CENTRE + A * np.sin(W * t), A * W * np.cos(W * t), -A * W * W * np.sin(W * t)


def with_link():
    """The arm with a link for the load, without its inertia."""
    arm = sd.robots.ur5()
    arm.attach(sd.Link("crate"), to="tool0")
    return arm
