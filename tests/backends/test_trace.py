"""The quantities of a tree on a tape, against the compiled kernels."""

import numpy as np
import pytest
from cases import FUNCTIONS, cases, norm
from hypothesis import given

import screwdyn as sd
from screwdyn.backends.tape.tape import Recorded, Tape
from screwdyn.backends.tape.trace import Subject, constants, open_inertias, record
from screwdyn.physics.reductions import base_parameters
from screwdyn.physics.table import MASS, PARENT

ROUNDING = 1e-13


def inputs(tree, q, qd, qdd, tau):
    values = {(group, i): x[i] for group, x in dict(q=q, qd=qd, qdd=qdd, tau=tau).items() for i in range(tree.nv)}
    inertias = tree.model.table[:-1, MASS:PARENT]
    return values | {("inertia", (row, k)): x for (row, k), x in np.ndenumerate(inertias)}


def sizes(tree, q, qd, qdd):
    M = norm(tree.mass_matrix(q))
    force = M * (np.abs(qd).sum() ** 2 + np.abs(qdd).sum()) + 9.81 * tree.mass
    scale = {"mass_matrix": M, "coriolis_matrix": M * np.abs(qd).sum()}
    scale["forward_dynamics"] = force * norm(np.linalg.inv(tree.mass_matrix(q)))
    return {name: scale.get(name, force) for name in FUNCTIONS}


@pytest.mark.parametrize(
    "table",
    [
        lambda table, tape: constants(table),
        open_inertias,
        lambda table, tape: base_parameters(constants(table)),
        lambda table, tape: base_parameters(open_inertias(table, tape)),
    ],
    ids=["numbers", "open inertias", "numbers regrouped", "open inertias regrouped"],
)
@given(case=cases(least=1))
def test_agrees_with_the_kernels(case, table):
    tree, q, qd, qdd = case.tree, case.q, case.qd, case.qdd
    given_ = dict(q=q, qd=qd, qdd=qdd, tau=case.rng.normal(size=tree.nv))
    values = inputs(tree, **given_)
    scale = sizes(tree, q, qd, qdd) if tree.nv else dict.fromkeys(FUNCTIONS, 1.0)
    for name, arguments in FUNCTIONS.items():
        tape = Tape()
        outputs = record(tape, name, Subject(table(tree.model.table, tape)))[0]
        played = np.array(tape.evaluate(outputs.ravel(), values), dtype=float).reshape(outputs.shape)
        expected = getattr(tree, name)(*(given_[x] for x in arguments))
        worst = np.abs(played - expected).max(initial=0)
        assert worst <= ROUNDING * max(scale[name], 1e-300), (name, worst / scale[name])


def test_parallel_axes_need_the_sum_of_their_angles_only():
    """PUMA 560: joints 2 and 3 are parallel, so the direction of gravity depends on θ2 and θ2 + θ3."""
    tape = Tape()
    outputs = record(tape, "gravity_vector", Subject(constants(sd.robots.puma560().model.table)))[0]
    waves = [tape.nodes[at] for at in tape.live(outputs) if tape.nodes[at].op in ("sin", "cos")]
    sums = [tape.nodes[wave.a] for wave in waves if tape.nodes[wave.a].op != "input"]
    assert {frozenset(tape.nodes[at].a for at in node.operands) for node in sums} == {frozenset([("q", 1), ("q", 2)])}
    assert {node.op for node in sums} == {"+"}


def test_symmetric_entries_are_one_result():
    tape = Tape()
    M = record(tape, "mass_matrix", Subject(constants(sd.robots.puma560().model.table)))[0]
    for i, j in np.ndindex(M.shape):
        a, b = M[i, j], M[j, i]
        assert a is b or (isinstance(a, Recorded) and (a.node, a.minus) == (b.node, b.minus)) or a == b


def test_equal_functions_on_one_tape_cost_nothing_more():
    tape = Tape()
    table = constants(sd.robots.stanford().model.table)
    once = record(tape, "coriolis_matrix", Subject(table))[0].ravel()
    length = len(tape.nodes)
    again = record(tape, "coriolis_matrix", Subject(table))[0].ravel()
    assert len(tape.nodes) == length
    assert tape.count([*once, *again]) == tape.count(once)
