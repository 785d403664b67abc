"""Truc, Quyen and Quang 2019, section 5: a three-link arm in closed form, and under feed-forward control.

The matrices of the paper's formulation are compared with its closed forms, Eqs. 56 to 70, in its order. Then the torque
of Eq. 72, with the Coriolis matrix of Eq. 52, drives a simulation of the arm along Eq. 73 without feedback: the
tracking error shows whether the model is exact. The paper reports at most 1e-12 rad. The figure has the paper's Figs. 4
(the scheme of the control), 5 (torques) and 6 (responses and errors).

    python examples/truc_feedforward.py
"""

import numpy as np
import sympy as sp
from matplotlib.figure import Figure

import screwdyn as sd
from screwdyn import formulations

arm = sd.robots.truc_3r()
truc = formulations.kronecker(arm)

l0, l1, l2, r0, r1, r2 = 0.294, 0.190, 0.170, 0.140, 0.088, 0.080  # Eq. 71
m1, m2, m3, g = 5.248, 2.412, 1.577, 9.807
I1y, I2x, I2y, I2z, I3x, I3y, I3z = 0.0304, 0.0159, 0.0405, 0.0405, 0.0079, 0.0202, 0.0202
q, qd = np.array([[0.4, 0.9, -0.5], [0.7, -1.1, 1.6]])
(s1, s2, s3, s23), (c1, c2, c3, c23) = (f([*q, q[1] + q[2]]) for f in (np.sin, np.cos))
d1, d2, d3 = qd
reach, drop = c2 * l1 + c23 * r2, l1 * s2 + r2 * s23


compared = []  # values and their closed forms


def show(name, value, closed_form, equation):
    """Print a value that has a closed form."""
    compared.append((np.asarray(value), closed_form))
    label = f"{name:>6} = "
    rows = np.array2string(np.round(value, 12) + 0.0, precision=5, suppress_small=True, prefix=label)
    print(f"{label}{rows}    Eq. {equation}")


T1 = [[c1, 0, -s1, 0], [s1, 0, c1, 0], [0, -1, 0, l0], [0, 0, 0, 1]]
x2, x3, z3 = l1 * c2, l1 * c2 + l2 * c23, l0 - l1 * s2 - l2 * s23
T2 = [[c1 * c2, -c1 * s2, -s1, c1 * x2], [s1 * c2, -s1 * s2, c1, s1 * x2], [-s2, -c2, 0, l0 - l1 * s2], [0, 0, 0, 1]]
T3 = [[c1 * c23, -c1 * s23, -s1, c1 * x3], [s1 * c23, -s1 * s23, c1, s1 * x3], [-s23, -c23, 0, z3], [0, 0, 0, 1]]
poses = truc.poses(q)
for i, (T, closed_form) in enumerate(zip(poses, (T1, T2, T3), strict=True), start=1):
    show(f"T_{i}", T, closed_form, 56)

J_T, J_R, _, _ = zip(*truc.jacobians(q), strict=True)
rotational = [
    [[0, 0, 0], [-1, 0, 0], [0, 0, 0]],
    [[-s2, 0, 0], [-c2, 0, 0], [0, 1, 0]],
    [[-s23, 0, 0], [-c23, 0, 0], [0, 1, 1]],
]
spins = [0, -d1, 0], [-s2 * d1, -c2 * d1, d2], [-s23 * d1, -c23 * d1, d2 + d3]
for i in range(3):
    show(f"ω_{i + 1}", J_R[i] @ qd, spins[i], 58)
for i in range(3):
    show(f"J_R{i + 1}", J_R[i], rotational[i], 59)
own = [0, l0 - r0, 0], [r1 - l1, 0, 0], [r2 - l2, 0, 0]
centres = [0, 0, r0], [r1 * c1 * c2, r1 * s1 * c2, l0 - r1 * s2], [reach * c1, reach * s1, l0 - drop]
for i in range(3):
    show(f"r_C{i + 1}", truc.rows[i].com, own[i], 60)
for i in range(3):
    show(f"p_C{i + 1}", truc.centres(poses)[i], centres[i], 61)
translational = [
    np.zeros((3, 3)),
    [[-s1 * c2 * r1, -c1 * s2 * r1, 0], [c1 * c2 * r1, -s1 * s2 * r1, 0], [0, -c2 * r1, 0]],
    [[-s1 * reach, -c1 * drop, -c1 * s23 * r2], [c1 * reach, -s1 * drop, -s1 * s23 * r2], [0, -reach, -c23 * r2]],
]
for i in range(3):
    show(f"J_T{i + 1}", J_T[i], translational[i], 62)

M11 = I3y * c23**2 + I3x * s23**2 + I2x * s2**2 + I1y + (m2 * r1**2 + I2y) * c2**2 + m3 * reach**2
M22 = 2 * l1 * m3 * r2 * c3 + (l1**2 + r2**2) * m3 + m2 * r1**2 + I3z + I2z
M23, M33 = l1 * m3 * r2 * c3 + m3 * r2**2 + I3z, m3 * r2**2 + I3z
show("M", truc.M(q), [[M11, 0, 0], [0, M22, M23], [0, M23, M33]], "64, 65")

K, sway, bend = m3 * r2**2 + I3y - I3x, (l1**2 * m3 + m2 * r1**2 - I2x + I2y) * c2 * s2, l1 * m3 * r2 * s3
C11 = -(K * (d2 + d3) * s23 + m3 * r2 * l1 * (2 * d2 + d3) * s2) * c23 - sway * d2 - bend * (d2 + d3)
C12 = -((K * s23 + 2 * l1 * s2 * m3 * r2) * c23 + sway + bend) * d1
C13 = -((K * s23 + l1 * s2 * m3 * r2) * c23 + bend) * d1
show("C", truc.C(q, qd), [[C11, C12, C13], [-C12, -bend * d3, -bend * (d2 + d3)], [-C13, bend * d2, 0]], 67)

show("P", arm.potential_energy(q), g * (l0 * (m2 + m3) + m1 * r0 - (l1 * m3 + m2 * r1) * s2 - m3 * r2 * s23), 68)
show("g", truc.g(q), [0, -(l1 * m3 + m2 * r1) * g * c2 - m3 * r2 * g * c23, -m3 * r2 * g * c23], 69)

M_dot = truc.dM(q) @ np.kron(np.eye(3), qd[:, None])  # Eq. 40
skew = [[0, -2 * C12, -2 * C13], [2 * C12, 0, bend * (2 * d2 + d3)], [2 * C13, -bend * (2 * d2 + d3), 0]]
show("Ṁ − 2C", M_dot - 2 * truc.C(q, qd), skew, "70, where I_3xx is printed I_3zz")

print(f"largest difference from a closed form: {max(np.abs(np.subtract(*pair)).max() for pair in compared):.0e}")

# The closed form of Eq. 72 as a function of numbers
state = sp.symbols("q:3"), sp.symbols("v:3"), sp.symbols("a:3")
torque = sp.lambdify(state, list(truc.inverse_dynamics(*state)), "math", cse=True)


def reference(t):
    """Positions, rates and accelerations of Eq. 73."""
    size, w = np.array([1, 0.75, 0.5]), 2 * np.pi
    return size * (1 - np.cos(w * t)), size * w * np.sin(w * t), size * w**2 * np.cos(w * t)


start = sd.State(arm, np.zeros(3), np.zeros(3))
given = {"torque": lambda t, state: torque(*reference(t)), "step": 0.005}
run = sd.simulate(arm, start, 1.0, **given, rtol=1e-12, atol=1e-12)
response = np.array([run[name] for name in arm.coordinates])
references = np.moveaxis([reference(t) for t in run.t], 0, -1)  # q, rates and accelerations, (3, 3, times)
errors = response - references[0]
print(f"largest tracking error in {run.t[-1]:g} s: {np.abs(errors).max():.1e} rad")

torques = np.array([torque(*x) for x in np.moveaxis(references, -1, 0)]).T
for k, tau in enumerate(torques, start=1):
    print(f"τ_{k} from {tau.min():.3f} to {tau.max():.3f} N m")


def scheme(axes):
    """The blocks of Fig. 4, from the reference to the response."""
    blocks = (
        "reference\n$q_r, \\dot q_r, \\ddot q_r$\nEq. 73",
        ("feed-forward\n$M(q_r)\\ddot q_r + C(q_r, \\dot q_r)\\dot q_r + g(q_r)$\nEq. 72"),
    )
    for x, label in zip((0.1, 0.43, 0.76), (*blocks, "arm\n(simulation)"), strict=True):
        axes.text(x, 0.5, label, ha="center", va="center", bbox={"boxstyle": "square,pad=0.7", "fc": "white"})
    for start, end, label in ((0.145, 0.335, ""), (0.535, 0.7, "$\\tau$"), (0.82, 0.97, "$q, \\dot q$")):
        axes.annotate("", (end, 0.5), (start, 0.5), arrowprops={"arrowstyle": "->"})
        axes.text((start + end) / 2, 0.6, label, ha="center")
    axes.set(xlim=(0, 1), ylim=(0, 1), title="Fig. 4: feed-forward control, without feedback")
    axes.axis("off")


figure = Figure(figsize=(11, 8), layout="constrained")
panels = figure.subplot_mosaic(
    [["scheme", "scheme"], ["torques", "responses"], ["torques", "errors"]], height_ratios=(2, 3, 3)
)
scheme(panels["scheme"])
for k, name in enumerate(arm.coordinates):
    color = f"C{k}"
    panels["torques"].plot(run.t, torques[k], color, label=rf"$\tau_{k + 1}$")
    panels["responses"].plot(run.t, references[0, k], color, lw=5, alpha=0.3, label=f"reference of {name}")
    panels["responses"].plot(run.t, response[k], color, lw=1, label=f"response of {name}")
    panels["errors"].plot(run.t, errors[k], color, label=name)
panels["torques"].set(title="Fig. 5: torques", xlabel="t, s", ylabel="N m")
panels["responses"].set(title="Fig. 6a: references and responses", ylabel="rad")
panels["errors"].set(title="Fig. 6b: tracking errors", xlabel="t, s", ylabel="rad")
for name in ("torques", "responses", "errors"):
    panels[name].grid(alpha=0.3)
    panels[name].legend(fontsize="small")
figure.savefig("truc_feedforward.png", dpi=80)
print("Figure: truc_feedforward.png")
