"""Frames that are turned about their joints' axes."""

import numpy as np
from cases import cases
from hypothesis import given

import screwdyn as sd
from screwdyn import Inertia, KinematicTree, Link, prismatic, revolute
from screwdyn.backends.llvm import code_cache
from screwdyn.backends.tape.tape import Tape
from screwdyn.backends.tape.trace import Subject, constants, record
from screwdyn.physics.aligned_frames import aligned_frames

BODY = Inertia(2.0, (0.1, 0.2, 0.3), np.array([[0.5, 0.01, 0.02], [0.01, 0.4, 0.03], [0.02, 0.03, 0.3]]))


def gripper(first="x"):
    """A hand on two joints, with two fingers that open along a diagonal."""
    tree = KinematicTree()
    tree.attach(Link("arm", BODY), to="base", joint=revolute(first))
    tree.attach(Link("hand", BODY), to="arm", joint=revolute("z"), at=(0.1, 0.2, 0.3))
    for side in (1, -1):
        finger = Link(f"finger {side}", Inertia(0.1, (0, 0, 0.05)))
        tree.attach(finger, to="hand", joint=prismatic((side, side, 0)), at=(0, 0, 0.1))
    return tree


@given(case=cases(least=2))
def test_the_dynamics_remain(case):
    table, state = case.tree.model.table, {"q": case.q, "qd": case.qd, "qdd": case.qdd}
    values = {(group, i): x for group, given_ in state.items() for i, x in enumerate(given_)}
    before, after = [], []
    for numbers, found in ((constants(table), before), (aligned_frames(constants(table)), after)):
        tape = Tape()
        for name in ("inverse_dynamics", "mass_matrix"):
            (outputs,) = record(tape, name, Subject(numbers))
            found += tape.evaluate(outputs.ravel(), values)
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-13 * (1 + np.abs(before).max(initial=0)))


def test_diagonal_fingers_move_along_a_coordinate_axis():
    table = constants(gripper().model.table)
    assert not whole(table[2:4, :9])
    aligned = aligned_frames(table)
    assert whole(aligned[2:4, :9])
    assert (aligned_frames(aligned) == aligned).all()


def whole(rotations):
    """Whether all entries are 0, 1 or -1."""
    return np.isin(rotations.astype(float), (0, 1, -1)).all()


def test_frames_remain_where_nothing_is_gained():
    for tree in (sd.robots.ur5(), sd.robots.puma560(), gripper(first="z")):
        table = constants(tree.model.table)
        assert (aligned_frames(table) == table).all()


def test_quantities_of_links_are_in_the_links_own_frames():
    """Operational-space inertia is computed from base parameters, too, for a link in the frame of its row."""
    tree, above = KinematicTree(), "base"
    for k, axis in enumerate(("z", "x", (0, 1, 1), (1, 0, 1), (1, 1, 0), "y", (1, 0, 2), (1, 2, 3))):
        above = tree.attach(Link(f"link {k}", BODY), to=above, joint=revolute(axis), at=(0.1, 0.2, 0.3)).name
    model = tree.model
    places = model.places("one", "link 6", 0)
    opened = np.zeros((8, 10), dtype=bool)
    assert (aligned_frames(constants(model.table))[6] != constants(model.table)[6]).any()
    program = code_cache.recorded("operational_inertia", code_cache.Structure(model.table, opened, None, places))
    q = np.linspace(0.2, 1.6, 8)
    found = program.plan.tape.evaluate(program.plan.outputs[0], {("q", i): x for i, x in enumerate(q)})
    expected = tree.operational_inertia("link 6", q).ravel()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.abs(expected).max())
