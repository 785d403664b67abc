"""
The closed form of a robot on one page
======================================

Any number of a robot may be a SymPy symbol. The equations of motion of an arm with two links then come out as formulas:
M q̈ + C q̇ + g = τ. They are those that Kelly, Santibáñez and Loría derive by hand.
"""

import matplotlib.pyplot as plt
import sympy as sp

import screwdyn as sd

m1, m2, l1, l2, a1, a2, I1, I2, g = sp.symbols("m_1 m_2 l_1 l_2 a_1 a_2 I_1 I_2 g", positive=True)
arm = sd.robots.pelican(a1, a2, l1, l2, m1, m2, I1, I2, g)
form = arm.symbolic()
t1, t2, w1, w2 = sp.symbols("theta_1 theta_2 omega_1 omega_2", real=True)
short = dict(zip([*form.q, *form.qd], (t1, t2, w1, w2), strict=True))
M, C, gravity = (
    sp.Matrix(matrix).subs(short).applyfunc(lambda entry: sp.factor_terms(sp.expand(sp.trigsimp(entry))))
    for matrix in (form.mass_matrix(), form.coriolis_matrix(), form.gravity_vector())
)

# %%
plt.rcParams["mathtext.fontset"] = "cm"
figure = plt.figure(figsize=(9, 6.5), facecolor="#fffdf5")
sketch = figure.add_axes((0.64, 0.62, 0.33, 0.33), aspect="equal", frameon=False, xticks=[], yticks=[])
sketch.plot([0, 0.8, 1.2], [0, 0.5, 1.2], "o-", lw=8, ms=12, color="0.35", mfc="white")
for x, y, text in ((0.25, 0.03, r"$\theta_1$"), (0.95, 0.5, r"$\theta_2$"), (0.3, 0.35, "$a_1$"), (0.8, 0.9, "$a_2$")):
    sketch.text(x, y, text, fontsize=18)
figure.text(0.06, 0.91, r"$M\,\ddot\theta + C\,\dot\theta + g = \tau$", fontsize=26)
lines = [(f"{name}_{{{i + 1}{j + 1}}}", A[i, j]) for name, A in (("M", M), ("C", C)) for i in (0, 1) for j in (0, 1)]
lines += [(f"g_{i + 1}", gravity[i]) for i in (0, 1)]
for k, (name, entry) in enumerate(lines):
    text = sp.latex(entry, fold_func_brackets=True).replace(r"\omega", r"\dot\theta")
    figure.text(0.06, 0.82 - 0.08 * k - 0.025 * (k > 3) - 0.025 * (k > 7), f"${name} = {text}$", fontsize=16)
plt.show()
