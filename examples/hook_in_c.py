"""A C program takes up a crate on a hook in mid-motion, and has the bits that Python has.

The kernels and the robot are written as C, compiled and run: examples/hook_in_c.c. The same run in Python prints the
same numbers. On a microcontroller the same three files are compiled by its own compiler (docs/c_library.md).

    python examples/hook_in_c.py [folder for the C files]
"""

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import screwdyn as sd

STEPS, TAKE_UP, PUT_DOWN, SHOWN = 600, 150, 450, 50
H, KP, KD = 1 / 1024, 40.0, 8.0
TARGET = np.array([0.5, -1.0, 1.25, -0.5, 0.75, 0.25])
CRATE = sd.Link("crate", sd.Inertia.box(3.0, (0.3, 0.2, 0.2), com=(0, 0, -0.15)))
HOOK = {"to": "tool0", "joint": sd.revolute("x", name="hook"), "at": (0, 0, 0.05)}
# Products and sums are not fused, so that both have the same bits; functions that are not called are left out.
FLAGS = "-std=c99 -Os -ffp-contract=off -ffunction-sections -fdata-sections -Wl,--gc-sections -DSCREWDYN_ROWS=7"


def in_c(folder):
    """What the C program prints: names and numbers."""
    arm = sd.robots.ur5()
    arm.attach(CRATE, **HOOK)
    sd.c_library(folder)
    Path(folder, "ur5.h").write_text(arm.to_c_table("ur5", optional=["crate"]))
    program, compiler = Path(folder, "hook"), shlex.split(os.environ.get("CC", "cc"))
    sources = [Path(__file__).with_suffix(".c"), Path(folder, "screwdyn.c")]
    subprocess.run([*compiler, *FLAGS.split(), f"-I{folder}", *sources, "-o", program, "-lm"], check=True)
    lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
    return [(name, [float.fromhex(x) for x in numbers]) for name, *numbers in map(str.split, lines)]


def in_python():
    """The same run of a tree."""
    arm, q, qd = sd.robots.ur5(), np.zeros(6), np.zeros(6)
    shown = []
    for k in range(STEPS):
        if k == TAKE_UP:
            arm.attach(CRATE, **HOOK)
            q, qd = np.append(q, 0.0), np.append(qd, 0.0)
        if k == PUT_DOWN:
            arm.detach("crate")
            q, qd = q[:6], qd[:6]
        if k % SHOWN == 0:
            found = zip("MCg", arm.dynamics(q, qd), strict=True)
            shown += [(name, x.ravel().tolist()) for name, x in (("q", q), ("qd", qd), *found)]
        wanted = np.zeros(arm.nv)
        wanted[:6] = KP * (TARGET - q[:6]) - KD * qd[:6]
        tau = arm.inverse_dynamics(q, qd, wanted)
        tau[6:] = 0.0
        qd = qd + H * arm.forward_dynamics(q, qd, tau)
        q = q + H * qd
    return shown


def main():
    with tempfile.TemporaryDirectory() as made:
        found, expected = in_c(sys.argv[1] if len(sys.argv) > 1 else made), in_python()
    different = 0
    for (name, numbers), (_, own) in zip(found, expected, strict=True):
        different += sum(x.hex() != y.hex() for x, y in zip(numbers, own, strict=True))
        if name == "q":
            print(f"{len(numbers)} freedoms, q = {' '.join(f'{x:8.4f}' for x in numbers)}")
    total = sum(len(numbers) for _, numbers in found)
    print(f"{total} numbers of the C program, {different} of which differ from those of Python")
    return different


if __name__ == "__main__":
    sys.exit(main())
