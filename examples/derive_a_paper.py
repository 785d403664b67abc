"""Derive a published model in a few lines: the pelican arm and its payload (Laus et al., Eqs. 45-64)."""

import sympy as sp

import screwdyn as sd

a1, a2, l1, l2, l3, m1, m2, m3, I1, I2, I3, g = sp.symbols("a1:3 l1:4 m1:4 I1:4 g")
links = [(a1, l1, m1, I1), (a2, l2, m2, I2)]
rows = [
    {"a": a, "inertia": sd.Inertia.planar(m, (c - a, 0), I), "joint": f"theta{i}"}
    for i, (a, c, m, I) in enumerate(links, 1)
]
arm = sd.KinematicTree.from_dh(rows, gravity=(0, -g, 0))
arm.symbolic().contributions()  # the arm alone; after attaching the payload, only its terms are derived
hook = sd.revolute("z", name="theta3", passive=True)
arm.attach(sd.Inertia.planar(m3, (l3, 0), I3), to="link2", joint=hook, name="payload")
forms = arm.symbolic()
parts = forms.contributions()
for part in parts:
    print(part.link, part.J, part.M.array, part.C.array, part.g.array, sep="\n  ", end="\n\n")
totals = {"M": forms.mass_matrix(), "C": forms.coriolis_matrix(), "g": forms.gravity_vector()}
sums = {name: sd.padded_sum(getattr(part, name) for part in parts) for name in totals}
for name, total in sums.items():  # M = M1 ‡ M2 ‡ M3, and likewise C and g (Eqs. 62-64)
    print(f"{name} =", total.array)
