"""A computed-torque controller in C for a UR5 that picks up a known crate, tested on the simulated arm.

The law is exported once, for the arm with the crate as an optional link. The running controller sets a bit when
the gripper closes and clears it when the gripper opens; no code is compiled again.

    python examples/export_controller.py [folder for the C source]
"""

import ctypes
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import screwdyn as sd
from screwdyn import control

CRATE = sd.Link("crate", sd.Inertia.box(3.0, (0.2, 0.15, 0.1)))
GRIP = (0.0, 0.0, 0.08)  # the crate's centre in the frame of the flange
GRASP, RELEASE, END = 0.5, 1.5, 2.0

# Calls the controller a number of times with different rates, to measure the time of a call.
REPEAT = """
void ur5_repeat(long times, const double q[UR5_NQ], unsigned long carried, double tau[UR5_NV])
{
    double qd[UR5_NV];
    while (times-- > 0) {
        for (int i = 0; i < UR5_NV; ++i)
            qd[i] = 0.1 * (double)(times % (i + 2));
        ur5_computed_torque(q, qd, q, q, q, carried, tau);
    }
}
"""


def export(folder):
    """Write, compile and load the controller."""
    tree = sd.robots.ur5()
    with tree.attached(CRATE, to="tool0", at=GRIP):
        text = tree.c_source([LAW], prefix="ur5_", optional=["crate"])
    source = Path(folder, "ur5_control.c")
    source.write_text(f"{text}\n{REPEAT}", encoding="ascii")
    library = source.with_suffix(".so")
    compiler = os.environ.get("CC", "cc")
    flags = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O2", "-fPIC", "-shared"]
    subprocess.run([compiler, *flags, str(source), "-o", str(library), "-lm"], check=True)
    print(f"{source.name}: {len(source.read_text().splitlines())} lines of C99")
    return ctypes.CDLL(str(library))


def pointer(x):
    """Pointer to a contiguous array of doubles."""
    return x.ctypes.data_as(ctypes.POINTER(ctypes.c_double))


def reference(t):
    """Reference position, rate and acceleration at time t: every joint oscillates about a middle position."""
    middle = np.array([0.0, -1.2, 1.5, -0.8, 0.5, 0.0])
    swing, speed = np.array([0.6, 0.4, -0.5, 0.3, 0.4, 0.8]), np.array([1.5, 2.0, 1.2, 2.5, 1.8, 1.0])
    s, c = np.sin(speed * t), np.cos(speed * t)
    return middle + swing * s, swing * speed * c, -swing * speed**2 * s


# The same law computes torques in C, where the reference is an argument, and in Python, from the present tree.
LAW = control.ComputedTorque(sd.robots.ur5(), reference, kp=100.0, kd=20.0)


def in_c(library, aware=True):
    """The compiled controller as a torque for simulate; if not ``aware`` of the crate, it never sets the bit."""

    def torque(t, state):
        tau = np.empty(6)
        carried = ctypes.c_ulong(aware and "crate" in state.tree.links)
        given = [np.ascontiguousarray(x) for x in (state.q, state.qd, *reference(t))]
        library.ur5_computed_torque(*map(pointer, given), carried, pointer(tau))
        return tau

    return torque


def run(torque):
    """Simulate a grasp and a release; returns the positions and the largest distance from the reference."""
    tree = sd.robots.ur5()
    q, qd, _ = reference(0.0)
    events = [
        sd.Grasp(time=GRASP, body=CRATE, to="tool0", at=GRIP, twist="co_moving"),
        sd.Release(time=RELEASE, what="crate"),
    ]
    result = sd.simulate(tree, sd.State(tree, q, qd), END, torque, events, step=0.01)
    q = np.stack([state.q for state in result.states])
    errors = np.abs(q - np.array([reference(t)[0] for t in result.t]))
    return q, errors.max()


def microseconds(library, calls=200_000):
    """Time of one call of the controller from C, in microseconds."""
    q, tau = np.array([0.1, -1.0, 1.2, -0.5, 0.4, 0.2]), np.zeros(6)
    start = time.perf_counter()
    library.ur5_repeat(ctypes.c_long(calls), pointer(q), ctypes.c_ulong(1), pointer(tau))
    return (time.perf_counter() - start) / calls * 1e6


def main():
    """Print the errors of the controllers and the time of a call."""
    with tempfile.TemporaryDirectory() as scratch:
        library = export(sys.argv[1] if len(sys.argv) > 1 else scratch)
        ours, error = run(in_c(library))
        theirs, error_python = run(LAW)
        _, error_unaware = run(in_c(library, aware=False))
        print(f"largest difference between the runs with C and with Python: {np.abs(ours - theirs).max():.1e} rad")
        print(f"largest error: C {error:.1e} rad, Python {error_python:.1e} rad")
        print(f"largest error if the bit of the crate is never set: {error_unaware:.1e} rad")
        print(f"one call of the controller: {microseconds(library):.2f} us")


if __name__ == "__main__":
    main()
