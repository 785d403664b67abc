"""
A collision, found in C
=======================

A UR5 carries a crate along its path, is struck at the wrist, and loses the crate. A momentum observer finds both
without a sensor of forces. It runs in C and in single precision, as on a controller, and in Python beside it.
"""

import ctypes
import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import screwdyn as sd
from screwdyn import control

arm = sd.robots.ur5()
arm.attach(sd.Inertia.box(2.0, (0.2, 0.15, 0.1), com=(0, 0, 0.1)), to="tool0", name="crate")
observer = control.MomentumObserver(gain=60.0, threshold=4.0)
text = arm.c_source([observer], optional=["crate"], real="float")
with tempfile.TemporaryDirectory() as folder:
    (source := Path(folder, "observer.c")).write_text(text, encoding="ascii")
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O2", "-fPIC", "-shared"]
    subprocess.run(["cc", *flags, source, "-o", made := Path(folder, "observer.so"), "-lm"], check=True)
    in_c = ctypes.CDLL(str(made)).momentum_observer
single = np.ctypeslib.ndpointer(dtype=np.float32, flags="C")
in_c.argtypes = [single, single, single, ctypes.c_float, ctypes.c_ulong, single, single]

centre, period = np.array([0, -1.2, 1.8, -0.6, 1.57, 0]), 2e-3
push = {"wrist_1_link": [0, 0, 0, 0, 0, -40.0]}


def reference(t):
    s, c = np.sin(1.5 * t) * np.ones(6), np.cos(1.5 * t) * np.ones(6)
    return centre + 0.3 * s, 0.45 * c, -0.675 * s


law = control.ComputedTorque(arm, reference)
held, kept, found, residuals = np.zeros(6), np.zeros(3 * 6 + 2, np.float32), np.zeros(6, np.float32), []


def controller(t, state):
    """The robot that the controller believes in has its crate all the time: its bit stays set."""
    believed = sd.State(arm, state.q, state.qd)
    in_c(*(x.astype(np.float32) for x in (state.q, state.qd, held)), period, 1, kept, found)
    residuals.append((t, found.copy(), observer(t, believed, held)))
    held[:] = law(t, believed)
    return held.copy()


start, lost = sd.State(arm, *reference(0.0)[:2]), sd.Release("crate", time=1.2)
sampled = {"control_period": period, "wrenches": lambda t, state: push if 0.5 < t < 0.6 else {}}
run = sd.simulate(arm.copy(), start, 2.0, controller, [lost], **sampled)
t, in_single, in_double = (np.array(x) for x in zip(*residuals, strict=True))
alarm = np.abs(in_single).max(axis=1) > observer.threshold
print(f"alarms at {t[alarm][0]:.3f} s and {t[alarm & (t > 1.1)][0]:.3f} s")

# %%
plt.style.use("petroff10")
figure, chart = plt.subplots(figsize=(8, 4), layout="constrained")
for k, name in enumerate(arm.coordinates[1:4], 1):
    chart.plot(t, in_single[:, k], lw=2, label=name.removesuffix("_joint"))
chart.axhspan(-observer.threshold, observer.threshold, color="0.93")
chart.set(xlabel="time (s)", ylabel="external torque, from C (N m)", xlim=(0, 2))
chart.legend(frameon=False)
plt.show()
