"""Forward dynamics on a tape: the choice of the algorithm, and its results for long chains."""

import numpy as np
import pytest
from cases import close, norm

import screwdyn as sd
from screwdyn.backends.tape.tape import Tape
from screwdyn.backends.tape.trace import Subject, constants, forward_dynamics, outputs, record

BODY = sd.Inertia.box(1.0, (0.1, 0.15, 0.3), com=(0.0, 0.02, -0.15))


def chain(joints):
    tree = sd.KinematicTree()
    for joint in joints:
        tree.attach(sd.Link(f"link{len(tree.links)}", BODY), to=tree.links[-1], joint=joint, at=(0.01, 0.0, -0.3))
    return tree


def balls(n):
    return chain([sd.spherical() for _ in range(n)])


def revolutes(n):
    return chain([sd.revolute("xy"[k % 2], armature=0.1) for k in range(n)])


def recorded(tree, method):
    tape = Tape()
    found = method(tape, Subject(constants(tree.model.table), tree.model.charts))
    return tape, found


@pytest.mark.parametrize("tree", [sd.robots.ur5(), balls(2), revolutes(8), balls(6), revolutes(18)])
def test_forward_dynamics_takes_the_algorithm_with_fewer_operations(tree):
    def size(method):
        tape, found = recorded(tree, method)
        return len(tape.live(found))

    def articulated(tape, subject):
        return record(tape, "forward_dynamics", subject)[0]

    def chosen(tape, subject):
        return outputs(tape, "forward_dynamics", subject)[0]

    assert size(chosen) == min(size(forward_dynamics), size(articulated))


@pytest.mark.parametrize("tree", [balls(6), revolutes(18)])
def test_accelerations_of_long_chains_need_the_forces_that_cause_them(tree):
    rng = np.random.default_rng(0)
    q, qd, tau = tree.random_configuration(rng), *rng.uniform(-1.0, 1.0, (2, tree.nv))
    tape, (qdd,) = recorded(tree, lambda tape, subject: outputs(tape, "forward_dynamics", subject))
    values = {(group, i): x for group, numbers in {"q": q, "qd": qd, "tau": tau}.items() for i, x in enumerate(numbers)}
    qdd = np.array(tape.evaluate(qdd, values), dtype=float)
    close(tree.inverse_dynamics(q, qd, qdd), tau, norm(tree.mass_matrix(q)) * norm(qdd), 1e-13)
