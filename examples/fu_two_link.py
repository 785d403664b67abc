"""Fu, Gonzalez and Lee, "Robotics", chapter 3: the two-link arm of sections 3.2.6, 3.3.7 and 3.4.2, three ways.

Each formulation computes its own terms and vectors; they are printed in the order of the book at one state, and
compared with its closed forms.

    python examples/fu_two_link.py
"""

import numpy as np

import screwdyn as sd
from screwdyn import formulations
from screwdyn.papers.formulations.fu import PoseDerivatives, pseudo_inertia

m1, m2, l, g = 1.3, 0.7, 0.9, 9.8062
arm = sd.robots.two_link(m1, m2, l, g)
q, qd, qdd = np.array([[0.4, 0.9], [0.7, -1.1], [2.0, -3.0]])
(C1, C12), (S1, S12) = (f([q[0], q.sum()]) for f in (np.cos, np.sin))
C2, S2, (d1, d2) = np.cos(q[1]), np.sin(q[1]), qd


compared = []  # values and their closed forms


def show(name, value, closed_form):
    """Print a value that has a closed form."""
    compared.append((np.asarray(value), closed_form))
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

print("Newton-Euler (section 3.3.7): the vectors of each link in axes of the link")
recursion = formulations.newton_euler(arm)
first, second = recursion.steps(q, qd, qdd)
(e1, e2), spin = qdd, d1**2 + d2**2 + 2 * d1 * d2
along, across = S2 * e1 - C2 * d1**2, C2 * e1 + S2 * d1**2
show("ω_1", first.omega, [0, 0, d1])
show("ω_2", second.omega, [0, 0, d1 + d2])
show("ω̇_1", first.omegad, [0, 0, e1])
show("ω̇_2", second.omegad, [0, 0, e1 + e2])
show("v̇_1", first.vd, [-l * d1**2 + g * S1, l * e1 + g * C1, 0])
show("v̇_2", second.vd, [l * (along - spin) + g * S12, l * (e1 + e2 + across) + g * C12, 0])
show("ā_1", first.a, [-l / 2 * d1**2 + g * S1, l / 2 * e1 + g * C1, 0])
show("ā_2", second.a, [l * (along - spin / 2) + g * S12, l * (across + e1 / 2 + e2 / 2) + g * C12, 0])
show("f_2", second.f, m2 * second.a)  # F_2, as the hand is free
turn = np.array([[C2, -S2, 0], [S2, C2, 0], [0, 0, 1]])
show("f_1", first.f, turn @ second.f + m1 * first.a)
show("n_2", second.n, [0, 0, m2 * l**2 * ((e1 + e2) / 3 + across / 2) + m2 * g * l * C12 / 2])
show("n_1", first.n, [0, 0, tau[0]])
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
print(f"largest difference from a closed form: {max(np.abs(np.subtract(*pair)).max() for pair in compared):.0e}")
