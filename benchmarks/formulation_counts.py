"""Operations of inverse dynamics in every formulation, for arms of 1 to 12 joints, beside the formulas of the papers.

python benchmarks/formulation_counts.py --joints 12 --plot docs/formulations.png

The arms have revolute joints and general Denavit-Hartenberg parameters and inertias. *Written* counts each addition and
multiplication that involves the state, also with 0 and 1, as often as the formulas ask for it. *Folded* is the count of
the tape: operations with zeros and ones and on constants are left out, and equal operations are counted once. Sines and
cosines are not counted.
"""

import argparse
from collections import Counter

import numpy as np
from screwdyn.testing import random_inertia

import screwdyn as sd
from screwdyn import formulations
from screwdyn.backends.tape.tape import Tape
from screwdyn.backends.tape.trace import inputs

# Multiplications and additions, as coefficients of n⁴, n³, n², n and 1.
PAPERS = {
    "lagrange_euler": ((128 / 3, 512 / 3, 844 / 3, 76 / 3, 0), (98 / 3, 781 / 6, 637 / 3, 107 / 6, 0), "Fu Table 3.1"),
    "newton_euler": ((117, -24), (103, -21), "Fu Table 3.4"),
    "generalized_dalembert": ((13 / 6, 105 / 12, 268 / 3, 69), (4 / 3, 44, 146 / 3, 45), "Fu Table 3.5"),
    "denoc GIM": ((11, 42, -18), (7, 44, -18), "Bhangale Eq. 14"),
    "denoc MCI": ((14, 22, 4), (13.5, 55.5, -65.5), "Bhangale Eq. 16"),
}
GROUPS = ("q", "qd", "qdd")


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


def serial_arm(n):
    """An arm of n revolute joints."""
    rng = np.random.default_rng(n)
    keys = ("d", "a", "alpha")
    rows = [dict(zip(keys, rng.uniform(0.2, 1.2, 3), strict=True), inertia=random_inertia(rng)) for _ in range(n)]
    return sd.KinematicTree.from_dh(rows)


def results(arm):
    """Functions of q, qd and qdd by name."""
    for name in formulations.__all__:
        yield name, getattr(formulations, name)(arm).inverse_dynamics
    denoc = formulations.denoc(arm)
    yield "denoc GIM", lambda q, qd, qdd: denoc.mass_matrix(q)
    yield "denoc MCI", lambda q, qd, qdd: denoc.coriolis_matrix(q, qd)


def folded(function, n):
    """Multiplications and additions on the tape."""
    tape = Tape()
    result = function(*(inputs(tape, group, range(n)) for group in GROUPS))
    count = tape.count(list(result.ravel()), lambda name: False)
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
    return tuple(round(np.polyval(coefficients, n)) for coefficients in PAPERS[name][:2])


def counts(n):
    """Folded, written and published counts by name; this library's routes at the end."""
    arm = serial_arm(n)
    found = {name: (folded(f, n), written(f, n), published(name, n)) for name, f in results(arm)}
    for quantity in ("inverse_dynamics", "mass_matrix", "coriolis_matrix"):
        count = arm.operation_count(quantity)
        found[f"tree.{quantity}"] = ((count["mul"], count["add"]), None, None)
    return found


def text(count):
    return "" if count is None else f"{count[0]}/{count[1]}"


def plot(path, table):
    """Multiplications over the number of joints."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    joints = list(table)
    for k, name in enumerate([*formulations.__all__, "tree.inverse_dynamics"]):
        axes.semilogy(
            joints, [table[n][name][0][0] for n in joints], "o-", ms=3, color=f"C{k}", label=f"{name}, folded"
        )
        if name in PAPERS:
            formula = [table[n][name][2][0] for n in joints]
            axes.semilogy(joints, formula, "--", color=f"C{k}", label=PAPERS[name][2])
    axes.set(xlabel="joints", ylabel="multiplications of inverse dynamics", xticks=joints, xticklabels=joints)
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joints", type=int, default=6, help="the largest number of joints")
    parser.add_argument("--plot", help="file of the figure")
    options = parser.parse_args()
    table = {n: counts(n) for n in range(1, options.joints + 1)}
    for n, rows in table.items():
        print(f"n = {n:<26}{'folded':>16}{'written':>16}{'paper':>16}   multiplications/additions")
        for name, (fold, write, paper) in rows.items():
            source = PAPERS[name][2] if name in PAPERS else ""
            print(f"  {name:28}{text(fold):>16}{text(write):>16}{text(paper):>16}   {source}")
    if options.plot:
        plot(options.plot, table)


if __name__ == "__main__":
    main()
