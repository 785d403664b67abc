"""Operations, code size, time to compile and time of a call of every function written out for a robot.

python benchmarks/operations.py
"""

import timeit
from time import perf_counter

import numpy as np
import sympy as sp
from clock import machine

import screwdyn as sd
from screwdyn.backends.llvm import emit
from screwdyn.backends.llvm.machine import host, object_file
from screwdyn.backends.llvm.program import Structure, recorded
from screwdyn.physics.quantities import CATALOGUE
from screwdyn.physics.table import MASS, PARENT
from screwdyn.testing import random_tree

ALL_THREE = ("mass_matrix", "coriolis_matrix", "gravity_vector")


def open_puma() -> sd.KinematicTree:
    """PUMA 560 with a symbol for each of the ten inertial numbers of every link."""
    puma, tree = sd.robots.puma560(), sd.KinematicTree()
    for row, name in enumerate(puma.links[1:]):
        m, *com = sp.symbols(f"m{row} x{row} y{row} z{row}")
        tensor = [[sp.Symbol(f"I{row}{min(i, j)}{max(i, j)}") for j in range(3)] for i in range(3)]
        edge = puma.graph.edges[puma.parent(name), name]
        body = sd.Link(name, sd.Inertia.effective(m, com, tensor))
        tree.attach(body, to=tree.links[-1], joint=edge["joint"], at=edge["home"])
    return tree


def planar_arm() -> sd.KinematicTree:
    """A planar arm with three links."""
    tree = sd.KinematicTree(gravity=(0, -9.81, 0))
    for k in range(3):
        body = sd.Inertia(1.0 + k, (0.3, 0.1, 0.2), (0.1, 0.2, 0.25))
        tree.attach(body, to=tree.links[-1], joint=sd.revolute("z"), at=(0.5, 0, 0), name=f"link{k}")
    return tree


def published() -> None:
    """Operation counts against targets, without sines and cosines."""
    rows = [
        ("M, C and g", ALL_THREE, (816, 662)),
        ("inverse dynamics", ("inverse_dynamics",), (298, 283)),
    ]
    print(f"{'PUMA 560, multiplications/additions':38s}{'numeric':>14s}{'symbolic':>14s}{'target':>14s}")
    for label, functions, (mul, add) in rows:
        counts = [tree.operation_count(*functions) for tree in (sd.robots.puma560(), open_puma())]
        found = [f"{count['mul']}/{count['add']}" for count in counts]
        verdict = "met" if all(c["mul"] <= mul and c["add"] <= add for c in counts) else "not met"
        print(f"  {label:36s}{found[0]:>14s}{found[1]:>14s}{f'{mul}/{add}':>14s}  {verdict}")
    print()


def show(name: str, tree: sd.KinematicTree) -> None:
    """One row for each function, for single states."""
    fast, table = tree.compile(threads=1).wait(), tree.model.table
    opened = (table[:-1, MASS:PARENT] != 0) | tree.model.loaded[:, None]
    states = np.random.default_rng(0).uniform(-1, 1, (3, tree.nv))
    print(f"{name}, {tree.nv} coordinates")
    titles = f"{'mul':>7s}{'add':>7s}{'div':>5s}{'sincos':>7s}{'code, kB':>10s}{'compiled, ms':>14s}{'call, ns':>10s}"
    print(f"  {'':20s}{titles}")
    for function in fast.compiled:
        count = tree.operation_count(*(ALL_THREE if function == "dynamics" else (function,)))
        plan = recorded(function, Structure(table, opened)).plan
        start = perf_counter()
        code = object_file(emit.single(plan, host().width))
        compiling = perf_counter() - start
        scope = dict(zip(CATALOGUE[function].arguments, states, strict=False)) | {"call": getattr(fast, function)}
        arguments = ", ".join(CATALOGUE[function].arguments)
        scope["out"] = eval(f"call({arguments})", scope)
        ns = min(timeit.repeat(f"call({arguments}, out=out)", globals=scope, number=20_000, repeat=5)) / 20_000 * 1e9
        numbers = f"{count['mul']:7d}{count['add']:7d}{count['div']:5d}{count['sincos']:7d}"
        print(f"  {function:20s}{numbers}{len(code) / 1e3:10.1f}{1e3 * compiling:14.1f}{ns:10.0f}", flush=True)
    print()


if __name__ == "__main__":
    print(f"{machine()}\n")
    published()
    for label, tree in {
        "planar arm": planar_arm(),
        "PUMA 560": sd.robots.puma560(),
        "UR5": sd.robots.ur5(),
        "random tree": random_tree(np.random.default_rng(0), 20),
    }.items():
        show(label, tree)
