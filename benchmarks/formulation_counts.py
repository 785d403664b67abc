"""Operations of every formulation for arms of 1 to 12 joints beside the formulas of the papers, as tables in Markdown.

python benchmarks/formulation_counts.py --joints 12 --plot docs/formulations.png

The arms have revolute joints and general Denavit-Hartenberg parameters and inertias; the planar ones parallel axes, and
bodies in their plane. *Written* counts each addition and multiplication that involves the state, also with 0 and 1, as
often as the formulas ask for it. *Folded* is the count of the tape: operations with zeros and ones and on constants are
left out, and equal operations are counted once. Constants that differ by rounding are one number, so that the counts do
not depend on the numbers of the arm. Sines and cosines are not counted.

``--rows`` prints Fu's Tables 3.1, 3.4 and 3.5 row by row beside the operations of the same steps here.
"""

import argparse
import itertools
from collections import Counter

import numpy as np

import screwdyn as sd
from screwdyn import formulations
from screwdyn.backends.tape.tape import CountingTape
from screwdyn.backends.tape.trace import inputs
from screwdyn.forms.requests import operations_of, requested
from screwdyn.forms.requests import results as results_of
from screwdyn.papers.formulations.fu import PoseDerivatives, Vectors, recursion
from screwdyn.testing import random_inertia

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


# Fu's tables by row


def lagrange_euler_rows(n):
    """Table 3.1: (row, Fu, here) for n joints, as written. Here the poses ^{j-1}A_j are not in the first row."""
    pairs, triples = n * (n - 1) // 2, n * (n + 1) * (n + 2)
    fu = {
        "^jA_i": (32 * n * (n - 1), 24 * n * (n - 1)),
        "c_i": (4 * n * (9 * n - 7), n * (51 * n - 45) // 2 + pairs),
        "D_ik": (128 * triples // 3, 65 * triples // 2 + pairs * (n + 1) // 3),
        "h_ikm": (128 * n * triples // 3, n * (65 * triples // 2 + pairs * (n + 1) // 3)),
    }
    witness = formulations.lagrange_euler(serial_arm(n))

    def count(function):
        return np.array(written(lambda q, qd, qdd: function(q), n))

    poses = count(lambda q: PoseDerivatives(witness.rows, q))
    single = count(lambda q: [row.pose(x) for row, x in zip(witness.rows, q, strict=True)])
    here = [poses - single, *(count(f) - poses for f in (witness.c, witness.D, witness.h_ikm))]
    return [(row, fu[row], tuple(map(int, count))) for row, count in zip(fu, here, strict=True)]


def newton_euler_rows():
    """Table 3.4: (row, Fu, here) for one link between others, with any rotation matrix; without τ."""
    fu = {
        "ω": (9, 7),
        "ω̇": (9, 9),
        "v̇": (27, 22),
        "a": (15, 14),
        "F": (3, 0),
        "f": (9, 9),
        "N": (24, 18),
        "n": (21, 24),
    }
    tape, count, k = CountingTape(), 4, 1
    row = formulations.newton_euler(serial_arm(1)).rows[0]
    rows, links = [], []
    for i in range(count):
        m, R, p, s, I = (
            inputs(tape, f"{name}{i}", range(size)) for name, size in zip("mRpsI", (1, 9, 3, 3, 6), strict=True)
        )
        rows.append(row._replace(parent=i - 1, m=m))
        tensor = I[[0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(3, 3)
        links.append(Vectors(R.reshape(3, 3), row.z, row.p, p, s, tensor, np.zeros(6)))
    rates = (inputs(tape, name, range(count)) for name in ("qd", "qdd"))
    steps = recursion(rows, links, *rates, np.array([0, 0, -9.81]))
    motion = [step[:4] for step in steps]
    others = [x for step in (*motion, *steps[k + 1 :]) for x in step]
    order = [([*motion[k - 1]], motion[k]), (others, (steps[k].F, steps[k].f, steps[k].N, steps[k].n))]
    here = []
    for before, parts in order:
        totals = [np.array(folded_of(tape, [*before, *parts[:i]])) for i in range(len(parts) + 1)]
        here += [tuple(map(int, after - so_far)) for so_far, after in itertools.pairwise(totals)]
    return [(name, fu[name], x) for name, x in zip(fu, here, strict=True)]


def folded_of(tape, arrays):
    """Multiplications and additions on a tape that some arrays depend on."""
    found = tape.count([x for array in arrays for x in np.ravel(array)])
    return found["mul"], found["add"]


def dalembert_rows(n):
    """Table 3.5, generalized d'Alembert: (term, written, folded) of the terms for n joints."""
    witness = formulations.generalized_dalembert(serial_arm(n))
    terms = {name: getattr(witness, name) for name in ("D_rot", "D_tran", "h_tran", "h_rot", "c")}
    functions = {x: (lambda q, qd, qdd, f=f, h=x[0] == "h": f(q, qd) if h else f(q)) for x, f in terms.items()}
    return [(name, written(f, n), folded(f, n)) for name, f in functions.items()]


def row_tables(n):
    """Fu's tables by row, as lines of Markdown."""
    for title, heads, rows in (
        (f"Table 3.1, {n} joints", ("Fu", "here, written"), lagrange_euler_rows(n)),
        ("Table 3.4, one link between others", ("Fu", "here"), newton_euler_rows()),
        (f"Table 3.5, generalized d'Alembert, {n} joints", ("written", "folded"), dalembert_rows(n)),
    ):
        sums = ["/".join(map(str, map(sum, zip(*column, strict=True)))) for column in list(zip(*rows, strict=True))[1:]]
        yield from (f"**{title}**", "", f"| | {' | '.join(heads)} |", "| --- | --- | --- |")
        yield from (f"| {name} | {a[0]}/{a[1]} | {b[0]}/{b[1]} |" for name, a, b in rows)
        yield from (f"| sum | {' | '.join(sums)} |", "")


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
    parser.add_argument("--rows", action="store_true", help="Fu's tables by row instead")
    options = parser.parse_args()
    if options.rows:
        print("\n".join(row_tables(options.joints)))
        return
    table = {n: counts(n) for n in range(1, options.joints + 1)}
    for title, columns in tables(table):
        print("\n".join(markdown(table, title, columns)))
    if options.plot:
        plot(options.plot, table)


if __name__ == "__main__":
    main()
