"""Fu, Gonzalez and Lee, "Robotics", chapter 3: the two-link arm of sections 3.2.6, 3.3.7 and 3.4.2, three ways.

Each formulation computes its own terms; they are printed in the order of the book at one state, and compared with its
closed forms.

    python examples/fu_two_link.py
"""

import numpy as np

import screwdyn as sd
from screwdyn import formulations
from screwdyn.formulations.lagrange_euler import pseudo_inertia
from screwdyn.formulations.pose_derivatives import PoseDerivatives

m1, m2, l, g = 1.3, 0.7, 0.9, 9.8062
arm = sd.robots.two_link(m1, m2, l, g)
q, qd, qdd = np.array([[0.4, 0.9], [0.7, -1.1], [2.0, -3.0]])
(C1, C12), (S1, S12) = (f([q[0], q.sum()]) for f in (np.cos, np.sin))
C2, S2, (d1, d2) = np.cos(q[1]), np.sin(q[1]), qd


def show(name, value, closed_form):
    """Check that a value agrees with the closed form, and print it."""
    np.testing.assert_allclose(value, closed_form, rtol=1e-12, atol=1e-14)
    label = f"{name:>8} = "
    print(label + np.array2string(np.round(value, 12) + 0.0, precision=5, suppress_small=True, prefix=label))


def planar(c, s, x, y):
    """The derivative of a pose by an angle of the arm: rows of cosine and sine, and the derivative of the origin."""
    return np.array([[-s, -c, 0, x], [c, -s, 0, y], [0, 0, 0, 0], [0, 0, 0, 0]])


D = m2 * l**2 * np.array([[m1 / m2 / 3 + 4 / 3 + C2, 1 / 3 + C2 / 2], [1 / 3 + C2 / 2, 1 / 3]])
h = m2 * l**2 * S2 * np.array([-(d2**2) / 2 - d1 * d2, d1**2 / 2])
c = g * l * np.array([(m1 / 2 + m2) * C1 + m2 * C12 / 2, m2 * C12 / 2])
tau = D @ qdd + h + c

print("Lagrange-Euler (section 3.2.6)")
fu = formulations.lagrange_euler(arm)
at = PoseDerivatives(fu.rows, q)
show("U_11", at.U(0, 0), planar(C1, S1, -l * S1, l * C1))
show("U_21", at.U(1, 0), planar(C12, S12, -l * (S12 + S1), l * (C12 + C1)))
show("U_22", at.U(1, 1), planar(C12, S12, -l * S12, l * C12))
for i, m in enumerate((m1, m2)):  # the text at hand has 1/2 m l² here; ∫ x² dm of a rod is 1/3 m l², as D requires
    J = np.diag([m * l**2 / 3, 0, 0, m])
    J[0, 3] = J[3, 0] = -m * l / 2
    show(f"J_{i + 1}", pseudo_inertia(fu.rows[i]), J)
show("D", fu.D(q), D)
show("h", fu.h(q, qd), h)
show("c", fu.c(q), c)
show("τ", fu.inverse_dynamics(q, qd, qdd), tau)

print("Newton-Euler (section 3.3.7)")
recursion = formulations.newton_euler(arm)
show("τ, link", recursion.inverse_dynamics(q, qd, qdd), tau)
show("τ, base", recursion.inverse_dynamics_in_base_frame(q, qd, qdd), tau)
show("D", recursion.mass_matrix(q), D)  # by probing, Problem 3.11

print("Generalized d'Alembert (section 3.4.2)")
dalembert = formulations.generalized_dalembert(arm)
show("D_rot", dalembert.D_rot(q), np.array([[m1 + m2, m2], [m2, m2]]) * l**2 / 12)
show("D", dalembert.D_rot(q) + dalembert.D_tran(q), D)
show("h_tran", dalembert.h_tran(q, qd), h)
show("h_rot", dalembert.h_rot(q, qd), [0, 0])
show("c", dalembert.c(q), c)
