"""Bhangale, Saha and Agrawal 2004, conclusion: link masses and lengths that make the inertia matrix well-conditioned.

An arm of two rods with revolute joints (the second option of section 4) reaches 1 m and weighs 12 kg. SciPy chooses
lengths and masses such that the largest condition number of M, over all angles of the elbow, is least. The arm of equal
rods is where it begins. The condition number has no units, since both joints turn.

    python examples/well_conditioned_arm.py
"""

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import minimize

import screwdyn as sd

REACH, MASS = 1.0, 12.0  # m, kg
SHORTEST, LIGHTEST = 0.15, 1.0
ELBOW = np.linspace(-np.pi, np.pi, 73)


def arm(a1, m1):
    """The arm whose first rod has this length and mass."""
    rods = [(a1, m1), (REACH - a1, MASS - m1)]
    rows = [{"a": a, "inertia": sd.Inertia.rod(m, a, axis="x", com=(-a / 2, 0, 0))} for a, m in rods]
    return sd.KinematicTree.from_dh(rows, gravity=(0, 0, 0))


def conditions(a1, m1):
    """Condition numbers of M over the angles of the elbow; M does not depend on the first joint."""
    return np.linalg.cond(arm(a1, m1).mass_matrix(np.column_stack([np.zeros_like(ELBOW), ELBOW])))


# The largest of several functions has corners. Its bound is smooth: the least t with log κ ≤ t at every angle.
start = np.array([REACH / 2, MASS / 2])
path = [start]
found = minimize(
    lambda x: x[-1],
    [*start, np.log(conditions(*start).max())],
    method="SLSQP",
    bounds=[(SHORTEST, REACH - SHORTEST), (LIGHTEST, MASS - LIGHTEST), (0, None)],
    constraints={"type": "ineq", "fun": lambda x: x[-1] - np.log(conditions(*x[:2]))},
    callback=lambda x: path.append(x[:2].copy()),
    options={"ftol": 1e-10},
)
best = found.x[:2]

print("first rod:       length, m   mass, kg   condition of M, median and largest   workspace, m²")
for name, (a1, m1) in (("equal rods", start), ("chosen", best)):
    kappa, area = conditions(a1, m1), 4 * np.pi * a1 * (REACH - a1)
    print(f"{name:16} {a1:10.4f} {m1:10.3f} {np.median(kappa):20.2f} {kappa.max():17.2f} {area:15.2f}")

# By hand: κ + 1/κ = (tr M)² / det M − 2, which is largest for the stretched arm. There its least value over the lengths
# is at a1/a2 = √(2 / (3 + m1/m2)), and it falls with m1/m2, which ends at the lightest second rod.
ratio = np.sqrt(2 / (3 + (MASS - LIGHTEST) / LIGHTEST))
by_hand = REACH * ratio / (1 + ratio), MASS - LIGHTEST
print("closed form: a1 = {:.4f} m, m1 = {:g} kg".format(*by_hand))

figure = Figure(figsize=(11, 4.5), layout="constrained")
left, right = figure.subplots(1, 2)
lengths, masses = np.linspace(SHORTEST, REACH - SHORTEST, 31), np.linspace(LIGHTEST, MASS - LIGHTEST, 21)
largest = [[conditions(a1, m1).max() for a1 in lengths] for m1 in masses]
levels = left.contourf(lengths, masses, largest, levels=[12, 15, 20, 30, 50, 100, 200, 500, 1000], norm="log")
figure.colorbar(levels, ax=left, label="largest condition number of M")
left.plot(*np.transpose(path), "w.-", label="steps of SLSQP")
left.plot(*best, "r*", ms=14, label="chosen")
left.set(xlabel="length of the first rod, m", ylabel="mass of the first rod, kg")
left.legend(loc="lower right")
for name, design in (("equal rods", start), ("chosen", best)):
    right.semilogy(np.degrees(ELBOW), conditions(*design), label=name)
right.set(xlabel="angle of the elbow, °", ylabel="condition number of M", xticks=range(-180, 181, 60))
right.grid(alpha=0.3)
right.legend()
figure.savefig("well_conditioned_arm.png", dpi=80)
print("Figure: well_conditioned_arm.png")
