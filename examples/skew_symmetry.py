"""The lecture on Lagrangian dynamics, Eqs. 47 to 50: what its energy balance says about Ḃ − 2C.

Four matrices that give the same vector C q̇ are compared for a PUMA 560. The power balance q̇ᵀ (Ḃ − 2C) q̇ = 0 holds for
all of them, since it contains only C q̇. Ḃ − 2C is skew-symmetric for the matrix of the Christoffel symbols.

    python examples/skew_symmetry.py
"""

import numpy as np

import screwdyn as sd
from screwdyn import formulations

arm = sd.robots.puma560()
q, qd = np.random.default_rng(0).uniform(-1, 1, (2, arm.nv))
lecture = formulations.lagrangian(arm)
B_dot = arm.derivatives.mass_matrix_dot(q, qd)
matrices = {
    "Christoffel symbols, Eq. 46": lecture.C(q, qd),
    "Truc, Eq. 52": formulations.kronecker(arm).C(q, qd),
    "h_ijk of Eq. 41": lecture.h_ijk(q) @ qd,
    "Bhangale, MCI": formulations.denoc(arm).MCI(q, qd),
}
print(f"{'matrix C':<30}{'C q̇ differs by':>18}{'q̇ᵀ (Ḃ − 2C) q̇':>22}{'symmetric part':>18}")
for name, C in matrices.items():
    difference = B_dot - 2 * C
    vector = np.abs(C @ qd - arm.velocity_product(q, qd)).max()
    symmetric = np.abs(difference + difference.T).max() / 2
    print(f"{name:<28}{vector:>18.0e}{abs(qd @ difference @ qd):>18.0e}{symmetric:>18.1e}")
