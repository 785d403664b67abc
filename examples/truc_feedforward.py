"""Truc, Quyen and Quang 2019, section 5: a three-link arm under feed-forward control.

The Jacobians of the paper, Eqs. 59 and 62, are compared with its closed forms. Then the torque of Eq. 72, from the
paper's own formulas with the Coriolis matrix of Eq. 52, drives a simulation of the arm along Eq. 73 without feedback:
the tracking error shows whether the model is exact. The paper reports at most 1e-12 rad.

    python examples/truc_feedforward.py
"""

import numpy as np
import sympy as sp

import screwdyn as sd
from screwdyn import formulations

arm = sd.robots.truc_3r()
truc = formulations.kronecker(arm)

l1, r1, r2 = 0.190, 0.088, 0.080
q = np.array([0.4, 0.9, -0.5])
(s1, s2, s23), (c1, c2, c23) = (f([q[0], q[1], q[1] + q[2]]) for f in (np.sin, np.cos))
reach, drop = c2 * l1 + c23 * r2, l1 * s2 + r2 * s23
rotational = [
    [[0, 0, 0], [-1, 0, 0], [0, 0, 0]],
    [[-s2, 0, 0], [-c2, 0, 0], [0, 1, 0]],
    [[-s23, 0, 0], [-c23, 0, 0], [0, 1, 1]],
]
translational = [
    np.zeros((3, 3)),
    [[-s1 * c2 * r1, -c1 * s2 * r1, 0], [c1 * c2 * r1, -s1 * s2 * r1, 0], [0, -c2 * r1, 0]],
    [[-s1 * reach, -c1 * drop, -c1 * s23 * r2], [c1 * reach, -s1 * drop, -s1 * s23 * r2], [0, -reach, -c23 * r2]],
]
for i, (J_T, J_R, _, _) in enumerate(truc.jacobians(q)):
    np.testing.assert_allclose(J_R, rotational[i], atol=1e-14)
    np.testing.assert_allclose(J_T, translational[i], atol=1e-14)
    print(f"J_R{i + 1} =\n{J_R.round(4) + 0.0}\nJ_T{i + 1} =\n{J_T.round(4) + 0.0}")

# The closed form of Eq. 72 as a function of numbers
state = sp.symbols("q:3"), sp.symbols("v:3"), sp.symbols("a:3")
torque = sp.lambdify(state, list(truc.inverse_dynamics(*state)), "math", cse=True)


def reference(t):
    """Positions, rates and accelerations of Eq. 73."""
    size, w = np.array([1, 0.75, 0.5]), 2 * np.pi
    return size * (1 - np.cos(w * t)), size * w * np.sin(w * t), size * w**2 * np.cos(w * t)


start = sd.State(arm, np.zeros(3), np.zeros(3))
run = sd.simulate(arm, start, 1.0, torque=lambda t, state: torque(*reference(t)), rtol=1e-12, atol=1e-12)
response = np.array([run[name] for name in arm.coordinates])
error = np.abs(response - np.array([reference(t)[0] for t in run.t]).T).max()
print(f"largest tracking error in {run.t[-1]:g} s: {error:.1e} rad")
assert error < 1e-9
