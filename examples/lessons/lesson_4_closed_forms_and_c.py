r"""
4. Closed forms and C
=====================

The recursions that compute numbers run on symbols as well. So the model that a program uses, the formula in a paper
and the code on a microcontroller can be one and the same. This lesson derives a textbook arm, reads its terms, and
compiles it.
"""

import ctypes
import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import sympy

import screwdyn as sd

# %%
# An arm of symbols
# -----------------
#
# Any number of a robot may be a SymPy symbol. This is the two-link arm of the textbooks: masses m, lengths l, rods.

m1, m2, l1, l2, g = sympy.symbols("m1 m2 l1 l2 g", positive=True)
arm = sd.KinematicTree(gravity=(0, -g, 0))
for name, joint, m, length, parent, at in (
    ("upper", "q1", m1, l1, "base", 0),
    ("lower", "q2", m2, l2, "upper", l1),
):
    rod = sd.Inertia.rod(m, length, axis="x", com=(length / 2, 0, 0))
    arm.attach(
        rod, to=parent, at=(at, 0, 0), joint=sd.revolute("z", name=joint), name=name
    )
forms = arm.symbolic()
M = forms.mass_matrix().applyfunc(sympy.factor)
print(M)

# %%
# The entry M₂₂ is the inertia of the lower rod about its end, m₂ l₂²/3. The Coriolis matrix is that of the
# Christoffel symbols, computed without a derivative of M. Its definition, which has derivatives, gives the same.

q, qd = forms.q, forms.qd
C = forms.coriolis_matrix()


def christoffel(i, j):
    return sum(
        (M[i, j].diff(q[k]) + M[i, k].diff(q[j]) - M[j, k].diff(q[i])) * qd[k] / 2
        for k in range(2)
    )


print(sympy.simplify(C))
by_definition = sympy.Matrix(2, 2, christoffel)
print("difference:", sympy.simplify(C - by_definition))

# %%
# What one link adds
# ------------------
#
# Contributions have closed forms too. A point mass at the end of the lower rod adds one term to each entry; the
# others stay as they stand in the paper.

m3 = sympy.symbols("m3", positive=True)
arm.attach(sd.Inertia.point(m3), to="lower", at=(l2, 0, 0), name="tip")
added = sympy.Matrix(arm.symbolic().contribution("tip").M.matrix(arm.coordinates))
print(added.applyfunc(sympy.simplify))
others = arm.symbolic().mass_matrix() - added
print("change of the others:", sympy.simplify(others - forms.mass_matrix()))

# %%
# From symbols to numbers
# -----------------------
#
# ``subs`` gives symbols values and returns a robot of numbers. The inertia that motor 1 feels depends on q₂ only: it
# is largest for the stretched arm.

numbers = arm.subs({"m1": 2.0, "m2": 1.0, "l1": 0.5, "l2": 0.4, "g": 9.81, "m3": 0.5})
angle = np.linspace(-np.pi, np.pi, 121)
felt = numbers.mass_matrix(np.stack([0 * angle, angle], axis=-1))[:, 0, 0]
figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
axes.plot(angle, felt)
axes.set(xlabel="q₂ (rad)", ylabel="M₁₁ (kg m²)", xlim=(-np.pi, np.pi), ylim=(0, None))
plt.show()

# %%
# A real arm
# ----------
#
# The numbers of a UR5 stay numbers, and its coordinates are symbols. With the last two joints at π/2 and 0, the
# weight that motors 2 to 4 hold is a sum of three terms: of all that the upper arm carries, of all that the forearm
# carries, and of the hand. Its table has angles such as 1.570796 for π/2; the formula is rounded to six digits.

ur5 = sd.robots.ur5().symbolic()
q2, q3, q4 = sympy.symbols("q2 q3 q4")
posture = dict(zip(ur5.q, [0, q2, q3, q4, sympy.pi / 2, 0], strict=True))
held = ur5.gravity_vector().subs(posture)[1:4]
digits = {x: round(x, 6) for row in held for x in row.atoms(sympy.Float)}
held = [sympy.simplify(row.xreplace(digits)).n(4) for row in held]
for number, row in enumerate(held, 2):
    print(f"g{number} =", row)
print([row.subs({q2: -1.8, q3: 1.6, q4: 0.2}).round(2) for row in held])

# %%
# The same state `in the laboratory <../lab.html#q=0,-1.8,1.6,0.2,1.570796,0&qd=0,0,0,0,0,0>`_: the table of g has these
# numbers. Which of them change when joint 4 turns?
#
# C for a controller
# ------------------
#
# The same recursion, recorded once, is straight-line C99: no loops, no heap. Symbols that are left become members of
# a struct. Here the mass at the tip stays a symbol, so that one binary serves every tool.

tool = arm.subs({"m1": 2.0, "m2": 1.0, "l1": 0.5, "l2": 0.4, "g": 9.81})
text = tool.c_source(["gravity_vector"], prefix="arm_")
print(*text.splitlines()[-24:], sep="\n")

# %%
# Compile it, call it, and compare it with the library.

with tempfile.TemporaryDirectory() as folder:
    source, made = Path(folder, "arm.c"), Path(folder, "arm.so")
    source.write_text(text, encoding="ascii")
    subprocess.run(
        ["cc", "-std=c99", "-O2", "-fPIC", "-shared", source, "-o", made, "-lm"],
        check=True,
    )
    compiled = ctypes.CDLL(str(made))
state, out, mass = np.array([0.3, -0.7]), np.zeros(2), ctypes.c_double(0.5)
pointer = np.ctypeslib.ndpointer(dtype=np.float64)
compiled.arm_gravity_vector.argtypes = [pointer, ctypes.c_void_p, pointer]
compiled.arm_gravity_vector(state, ctypes.addressof(mass), out)
print("by C:", out, "by the library:", numbers.gravity_vector(state))

# %%
# Operations
# ----------
#
# A recording knows its own cost. Computing M, C and g together shares sines, poses and products, here of a UR5.

alone = [
    sd.robots.ur5().operation_count(name)
    for name in ("mass_matrix", "coriolis_matrix", "gravity_vector")
]
alone = sum(sum(x.values()) for x in alone)
together = sum(sd.robots.ur5().operation_count("dynamics").values())
figure, axes = plt.subplots(figsize=(6, 1.9), layout="constrained")
axes.bar_label(axes.barh(["together", "one by one"], [together, alone]), fmt=" %d")
axes.set(xlabel="operations for M, C and g", xlim=(0, 1.15 * alone))
plt.show()

# %%
# Exercises
# ---------
#
# 1. For which length l₂ does gravity pull equally hard on both joints of the horizontal, stretched arm without its
#    tip?
# 2. Show that Ṁ − 2C is skew-symmetric, as a formula.
# 3. Replace the joint q2 by a prismatic one along x. Which entries of M lose their dependence on q?
#
# Solutions
# ---------
#
# 1. Never: g₁ − g₂ = g l₁ (m₁/2 + m₂) is positive.
# 2. As below.
# 3. The inertia about the first joint depends on the stroke alone, and the inertia of the slide on nothing.

g1, g2 = forms.subs(forms.gravity_vector(), {"q1": 0, "q2": 0})
print("1.", sympy.factor(g1 - g2))
M_dot = M.applyfunc(
    lambda entry: sum(entry.diff(x) * v for x, v in zip(q, qd, strict=True))
)
N = M_dot - 2 * C
print("2.", sympy.simplify(N + N.T))
slide = arm.copy()
slide.detach("tip")
slide.replace_joint("lower", sd.prismatic("x", name="q2"))
print("3.", slide.symbolic().mass_matrix().applyfunc(sympy.factor))
