"""Operations of every formulation for arms of 1 to 12 joints beside the formulas of the papers, as tables in Markdown.

python benchmarks/formulation_counts.py --joints 12 --plot docs/formulations.png

The arms have revolute joints and general Denavit-Hartenberg parameters and inertias; the planar ones parallel axes, and
bodies in their plane. *Written* counts each addition and multiplication that involves the state, also with 0 and 1, as
often as the formulas ask for it. *Folded* is the count of the tape: operations with zeros and ones and on constants are
left out, and equal operations are counted once. Constants that differ by rounding are one number, so that the counts do
not depend on the numbers of the arm. Sines and cosines are not counted.
"""

import argparse
from collections import Counter

import numpy as np
from screwdyn.testing import random_inertia

import screwdyn as sd
from screwdyn import formulations
from screwdyn.backends.tape.counting import CountingTape
from screwdyn.forms.operation_count import operations_of
from screwdyn.forms.requests import requested
from screwdyn.forms.requests import results as results_of

# Multiplications and additions, as coefficients of n⁴, n³, n², n and 1.
PAPERS = {
    "lagrange_euler": ((128 / 3, 512 / 3, 844 / 3, 76 / 3, 0), (98 / 3, 781 / 6, 637 / 3, 107 / 6, 0), "Fu Table 3.1"),
    "newton_euler": ((117, -24), (103, -21), "Fu Table 3.4"),
    # Printed 105/12 n², which is no integer for odd n.
    "generalized_dalembert": ((13 / 6, 105 / 2, 268 / 3, 69), (4 / 3, 44, 146 / 3, 45), "Fu Table 3.5"),
    "denoc M": ((11, 42, -18), (7, 44, -18), "Bhangale Eq. 14"),
    "denoc C": ((14, 22, 4), (13.5, 55.5, -65.5), "Bhangale Eq. 16"),
    "denoc M, planar": ((3.5, 11.5, -7), (2, 9, -7), "Bhangale Eq. 17"),
    "denoc C, planar": ((7, 13, 4), (4, 13, 2), "Bhangale Eq. 18"),
    "walker_orin M": ((12, 56, -27), (7, 67, -53), "Bhangale Eq. 15"),
}


class Written:
    """A scalar that counts the operations with it."""

    def __init__(self, counter):
        self.counter = counter

    def _added(self, _=None):
        self.counter["add"] += 1
        return self

    def _multiplied(self, _):
        self.counter["mul"] += 1
        return self

    def _same(self):
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = _added
    __mul__ = __rmul__ = _multiplied
    __neg__ = cos = sin = _same


def serial_arm(n, seed=0):
    """An arm of n revolute joints."""
    rng = np.random.default_rng(seed)
    keys = ("d", "a", "alpha")
    rows = [dict(zip(keys, rng.uniform(0.2, 1.2, 3), strict=True), inertia=random_inertia(rng)) for _ in range(n)]
    return sd.KinematicTree.from_dh(rows)


def planar_arm(n, seed=0):
    """An arm of n revolute joints with parallel axes; the bodies have a general place and inertia in the plane."""
    rng = np.random.default_rng(seed)
    bodies = [sd.Inertia.planar(m, com, I) for m, *com, I in rng.uniform(0.2, 1.2, (n, 4))]
    return sd.KinematicTree.from_dh([{"a": rng.uniform(0.2, 1.2), "inertia": body} for body in bodies])


def matrices(arm, kind=""):
    """The matrices of DeNOC as functions of q, qd and qdd by name."""
    denoc = formulations.denoc(arm)
    yield f"denoc M{kind}", lambda q, qd, qdd: denoc.mass_matrix(q)
    yield f"denoc C{kind}", lambda q, qd, qdd: denoc.coriolis_matrix(q, qd)


def results(arm):
    """Functions of q, qd and qdd by name."""
    for name in formulations.__all__:
        yield name, getattr(formulations, name)(arm).inverse_dynamics
    yield from matrices(arm)


def folded(function, n):
    """Multiplications and additions on the tape."""
    count = operations_of(function, q=n, qd=n, qdd=n)
    return count["mul"], count["add"]


def written(function, n):
    """Multiplications and additions as the formulas ask for them."""
    counter = Counter()
    scalar = np.full(n, None, dtype=object)
    scalar[:] = [Written(counter) for _ in range(n)]
    function(scalar, scalar, scalar)
    return counter["mul"], counter["add"]


def published(name, n):
    """Multiplications and additions by the formula of the paper, or None."""
    if name not in PAPERS:
        return None
    return tuple(round(np.polyval(coefficients, n), 1) for coefficients in PAPERS[name][:2])


def library(tree, quantity):
    """Multiplications and additions of this library's own route to a quantity, on the tape."""
    tape = CountingTape()
    (result,) = results_of(requested(quantity, tree.links), tree.model, tape)
    count = tape.count(list(result.ravel()))
    return count["mul"], count["add"]


def counts(n, seed=0):
    """Folded, written and published counts by name; this library's routes have the prefix ``tree``."""
    arm, planar = serial_arm(n, seed), planar_arm(n, seed)
    functions = [*results(arm), *matrices(planar, ", planar")]
    found = {name: (folded(f, n), written(f, n), published(name, n)) for name, f in functions}
    found["walker_orin M"] = None, None, published("walker_orin M", n)
    for tree, kind in ((arm, ""), (planar, ", planar")):
        for quantity, name in (("inverse_dynamics", ""), ("mass_matrix", " M"), ("coriolis_matrix", " C")):
            found[f"tree{name}{kind}"] = library(tree, quantity), None, None
    return found


def tables(table):
    """The tables of docs/papers/counts.md: multiplications/additions for each number of joints."""
    torque = [*formulations.__all__, "tree"]
    parts = ["denoc M", "walker_orin M", "tree M", "denoc C", "tree C"]
    parts += [f"{name}, planar" for name in ("denoc M", "tree M", "denoc C", "tree C")]
    yield "Inverse dynamics, folded", [(name, 0) for name in torque]
    yield "Inverse dynamics, written", [(name, 1) for name in formulations.__all__]
    yield "Inverse dynamics, the formulas of the papers", [(name, 2) for name in torque if name in PAPERS]
    yield (
        "M and C, folded, beside the formulas of the paper",
        [column for name in parts for column in ((name, 0), (name, 2)) if table[1][name][column[1]]],
    )


def markdown(table, title, columns):
    """Lines of one table."""
    heads = [PAPERS[name][2] if which == 2 else f"`{name}`" for name, which in columns]
    yield from (f"**{title}**", "", "| n | " + " | ".join(heads) + " |", "| --- " * (len(columns) + 1) + "|")
    for n, rows in table.items():
        cells = ["/".join(f"{x:.1f}".removesuffix(".0") for x in rows[name][which]) for name, which in columns]
        yield f"| {n} | " + " | ".join(cells) + " |"
    yield ""


def plot(path, table):
    """Multiplications over the number of joints: of inverse dynamics, and of the matrices M and C."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, both = plt.subplots(2, figsize=(8, 9), layout="constrained", sharex=True)
    joints = list(table)
    panels = [*formulations.__all__, "tree"], ["denoc M", "walker_orin M", "tree M", "denoc C", "tree C"]
    for axes, names, what in zip(both, panels, ("inverse dynamics", "the matrices M and C"), strict=True):
        for k, name in enumerate(names):
            for which, style in ((0, "o-"), (2, "--")):
                if table[1][name][which]:
                    label = PAPERS[name][2] if which == 2 else f"{name}, folded"
                    values = [table[n][name][which][0] or np.nan for n in joints]
                    axes.semilogy(joints, values, style, ms=3, color=f"C{k}", label=label)
        axes.set(ylabel=f"multiplications of {what}", xticks=joints, xticklabels=joints)
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    both[-1].set_xlabel("joints")
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joints", type=int, default=6, help="the largest number of joints")
    parser.add_argument("--plot", help="file of the figure")
    options = parser.parse_args()
    table = {n: counts(n) for n in range(1, options.joints + 1)}
    for title, columns in tables(table):
        print("\n".join(markdown(table, title, columns)))
    if options.plot:
        plot(options.plot, table)


if __name__ == "__main__":
    main()
