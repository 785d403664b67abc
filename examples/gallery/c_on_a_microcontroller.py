"""
C on a microcontroller
======================

The dynamics of a robot as C99, without heap, and with a bit that says whether the crate is carried. It is compiled with
``cc``, computes torques along a path, and is small enough for a controller with 64 kB of flash.
"""

import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import screwdyn as sd

arm = sd.robots.ur5()
arm.attach(sd.Link("crate", sd.Inertia.box(3.0, (0.2, 0.15, 0.1), com=(0, 0, 0.1))), to="tool0")
MAIN = """
#include <stdio.h>
int main(void) {
    double x[18], tau[6]; unsigned long carried;
    while (scanf("%lu", &carried) == 1) {
        for (int i = 0; i < 18; ++i) if (scanf("%lf", x + i) != 1) return 1;
        ur5_inverse_dynamics(x, x + 6, x + 12, carried, tau);
        for (int i = 0; i < 6; ++i) printf("%.17g ", tau[i]);
    }
}"""
functions = ["gravity_vector", "inverse_dynamics", "mass_matrix", "forward_dynamics"]


def build(folder, names, extra="", *flags):
    source, made = Path(folder, "ur5.c"), Path(folder, "ur5")
    source.write_text(arm.c_source(names, prefix="ur5_", optional=["crate"]) + extra, encoding="ascii")
    subprocess.run(["cc", "-std=c99", "-Wall", "-Werror", "-Os", *flags, source, "-o", made, "-lm"], check=True)
    return made


t = np.linspace(0, 2, 201)[:, None]
rate, carried = np.array([1.5, 2.0, 1.2, 2.5, 1.8, 1.0]), (t > 0.7) & (t < 1.5)
q, qd, qdd = np.sin(rate * t), rate * np.cos(rate * t), -(rate**2) * np.sin(rate * t)
with tempfile.TemporaryDirectory() as folder:
    asked = Path(folder, "asked")
    np.savetxt(asked, np.hstack([carried, q, qd, qdd]), fmt=["%d", *["%.17g"] * 18])
    said = subprocess.check_output([build(folder, ["inverse_dynamics"], MAIN)], input=asked.read_bytes())
    sizes = [build(folder, [name], "", "-c").stat().st_size / 1e3 for name in functions]
tau = np.array(said.split(), dtype=float).reshape(-1, 6)
off = abs(tau - arm.inverse_dynamics(q, qd, qdd))[carried[:, 0]].max()
print(f"C differs from Python by {off:.0e} N m while the crate is carried")

plt.style.use("petroff10")
figure, (chart, bars) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", width_ratios=(1.4, 1))
chart.plot(t, tau[:, :3], lw=2, label=arm.coordinates[:3])
chart.axvspan(0.7, 1.5, color="0.93", label="the bit of the crate is set")
chart.set(xlabel="time (s)", ylabel="torque, from C (N m)", xlim=(0, 2))
chart.legend(frameon=False, loc=(0.3, 0.48))
bars.bar_label(bars.barh(functions, sizes), fmt=" %.1f kB")
bars.set(xlabel="object file (kB)", xlim=(0, 64), title="compiled with -Os; flash: 64 kB")
plt.show()
