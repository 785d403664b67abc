"""
A robot as a system of python-control
=====================================

``control.nlsys`` needs the derivative of the state and the output: the tree has both. A crane is then a block like any
other. A force does not move the trolley at the frequency √(g/l), and is in resonance at √((1 + m/M) g/l).
"""

import control as ct
import matplotlib.pyplot as plt
import numpy as np

import screwdyn as sd

M, m, length, g = 20.0, 50.0, 4.0, 9.81
crane = sd.KinematicTree(gravity=(0, 0, -g))
crane.attach(sd.Inertia.point(M), to="base", joint=sd.prismatic("x", name="trolley"), name="frame")
hook = sd.revolute("y", passive=True, name="hook")
crane.attach(sd.Inertia.point(m, (0, 0, -length)), to="frame", joint=hook, name="load")


def rate(t, x, u, params):
    return np.concatenate([x[2:], crane.forward_dynamics(x[:2], x[2:], [u[0], 0.0])])


def place(t, x, u, params):
    return [x[0], (crane.forward_kinematics("load", x[:2]) @ (0, 0, -length, 1))[0]]


states = [*crane.coordinates, *(f"{name} rate" for name in crane.coordinates)]
plant = ct.nlsys(rate, place, inputs=["force"], outputs=["trolley", "load"], states=states, name="crane")

# %%
# Its linearization by differences, and the exact one of the tree.
linear, exact = plant.linearize(np.zeros(4), [0.0]), crane.linearize([0, 0])
print(f"A differs by {abs(linear.A - exact.A).max():.0e}, B by {abs(linear.B - exact.B).max():.0e}")
resonance, notch = np.sqrt((1 + m / M) * g / length), np.sqrt(g / length)
found = abs(ct.poles(linear)).max(), abs(ct.zeros(linear[0, 0])).max()
print(f"resonance {found[0]:.4f} rad/s, by hand {resonance:.4f}; notch {found[1]:.4f} rad/s, by hand {notch:.4f}")

# %%
# A linear-quadratic regulator around the nonlinear plant.
gain, _, _ = ct.lqr(exact.A, exact.B, np.diag([100, 100, 1, 1]), [[1e-3]])
time = np.linspace(0, 12, 400)
closed = ct.nlsys(lambda t, x, u, p: rate(t, x, -gain @ x, p), place, inputs=0, outputs=2, states=states)
answer = ct.input_output_response(closed, time, X0=[-3.0, 0, 0, 0])

plt.style.use("petroff10")
figure, (bode, chart) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
w = np.geomspace(0.3, 12, 800)
for k, name in enumerate(("trolley", "load")):
    bode.loglog(w, abs(ct.ss(exact.A, exact.B, linear.C, 0)(1j * w))[k, 0], lw=2)
    chart.plot(time, answer.outputs[k], lw=2, label=name)
for x in (notch, resonance):
    bode.axvline(x, color="0.6", ls="--")
bode.set(xlabel="frequency (rad/s)", ylabel="way per force (m/N)")
chart.set(xlabel="time (s)", ylabel="x (m)", xlim=(0, 12))
chart.legend(frameon=False)
plt.show()
