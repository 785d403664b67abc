"""Ctrl-C at any line of a change: it has happened completely, or not at all."""

import gc
import itertools
import sys

import numpy as np
import pytest
from small_arm import BODY, arm

import screwdyn as sd

CHANGES = {
    "attach": lambda tree, state: tree.attach(BODY, to="tool", joint=sd.revolute("y"), at=(1, 2, 3), name="crate"),
    "attach a tree": lambda tree, state: tree.attach(arm(), to="tool", prefix="second/"),
    "detach": lambda tree, state: tree.detach("upper"),
    "gravity": lambda tree, state: setattr(tree, "gravity", (1, 2, 3)),
    "lock": lambda tree, state: tree.lock("elbow", at=0.3),
    "lock in motion": lambda tree, state: tree.lock("elbow", state),
    "unlock": lambda tree, state: tree.unlock("jaw"),
    "unlock in motion": lambda tree, state: tree.unlock("jaw", state),
    "replace": lambda tree, state: tree.replace_joint("lower", sd.spherical()),
    "replace in motion": lambda tree, state: tree.replace_joint("lower", sd.spherical(), state),
    "inertia": lambda tree, state: tree.set_inertia("lower", sd.Inertia.point(3)),
    "inertia in motion": lambda tree, state: tree.set_inertia("lower", sd.Inertia.point(3), state),
    "move": lambda tree, state: tree.move("lower", "lamp", sd.revolute("x")),
    "move in motion": lambda tree, state: tree.move("lower", "lamp", sd.revolute("x"), state=state),
    "grasp": lambda tree, state: tree.grasp(state, BODY, to="tool", twist="at_rest", joint=sd.spherical()),
    "grasp a link": lambda tree, state: tree.grasp(state, "lower", to="lamp", at=None),
    "grasp what hangs": lambda tree, state: tree.grasp(
        state,
        sd.Inertia.rod(1, 1, com=(0, 0.5, 0)),
        to="tool",
        twist="at_rest",
        joint=sd.revolute("x"),
        start="hanging",
    ),
    "reroot": lambda tree, state: tree.reroot("flyer"),
    "reroot in motion": lambda tree, state: tree.reroot("flyer", state),
    "weld": lambda tree, state: tree.weld("tool", "lamp"),
    "weld in motion": lambda tree, state: tree.weld("tool", "lamp", state),
    "weld by a lock": lambda tree, state: tree.weld("lower", "upper", state),
    "unweld": lambda tree, state: tree.unweld("jaw", "tool", state),
    "release": lambda tree, state: tree.release(state, "lower"),
    "release onto a loop": lambda tree, state: tree.release(state, "upper"),
    "release into the world": lambda tree, state: tree.release(state, "lower", into_world=True),
}


def start(loop=False):
    """An arm with a locked jaw, and a moving state of it; a loop may hold its tool. The first numbers are computed."""
    tree = arm()
    tree.attach(BODY, to="tool", joint=sd.prismatic("x", name="jaw"), name="jaw")
    tree.lock("jaw", at=0.1)
    tree.attach(BODY, to="base", joint=sd.free(name="flight"), name="drone")
    tree.attach(BODY, to="drone", joint=sd.revolute("x"), at=(0.3, 0, 0), name="flyer")
    q, qd = [0.1, 0.2, 0.3, 0, 0, 0, 1, 1, 2, 3, 0.4], [1.0, -2.0, 0.5, 1, 2, 3, 0.1, 0.2, 0.3, 2.0]
    if loop:
        tree.close("tool", to="base", joint=sd.spherical(), at=tree.forward_kinematics("tool", q), name="pin")
        q, qd = tree.project(q, qd)
    return tree, sd.State(tree, q, qd)


def interrupted(change, event):
    """Run a change and raise KeyboardInterrupt at its n-th line in the library; returns whether it has so many lines.

    No garbage is collected meanwhile: an exception in a callback of the collector, such as hypothesis has, is lost.
    """
    count = itertools.count(1)

    def trace(frame, what, argument):
        if "screwdyn" not in frame.f_code.co_filename:
            return None
        if what == "line" and next(count) == event:
            raise KeyboardInterrupt
        return trace

    gc.disable()
    sys.settrace(trace)
    try:
        change()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
        gc.enable()
    return False


def interrupted_at_opcode(block, event):
    """Raise KeyboardInterrupt before the n-th instruction of all that a function does; whether there was one."""
    count = itertools.count(1)

    def trace(frame, what, argument):
        if not frame.f_trace_opcodes:
            frame.f_trace_opcodes = True
            sys.settrace(trace)  # Python 3.12 and 3.13 report the opcodes of a frame only after this
        if what == "opcode" and next(count) == event:
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        block()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    return next(count) > event


def seen(tree):
    """Everything that a tree says."""
    at_rest = np.zeros(tree.nv)
    M, C, g = tree.dynamics(tree.neutral(), at_rest + 1)
    parents = tuple(map(tree.parent, tree.links))
    return (
        tree.links,
        tree.joints,
        tree.loops,
        tree.locked,
        tree.positions,
        parents,
        M.tobytes(),
        C.tobytes(),
        g.tobytes(),
    )


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_is_interrupted_anywhere_has_happened_or_not(change):
    loop = change.endswith("loop")
    (before, _), (after, state) = start(loop), start(loop)
    CHANGES[change](after, state)
    expected, found, event = {seen(before), seen(after)}, set(), 1
    while True:
        tree, state = start(loop)
        topology, entries = tree.topology, state.to_dict()
        if not interrupted(lambda tree=tree, state=state: CHANGES[change](tree, state), event):
            break
        found.add(seen(tree))
        assert found <= expected
        assert tree.topology is topology or seen(tree) == seen(after)
        assert state.to_dict() == entries
        event += 1 + event // 25
    assert event > 10
    assert seen(before) in found


# Python reports an interrupt of the end of a generator instead of raising it.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_payload_attached_for_a_block_never_stays_after_an_interrupt():
    """At every instruction of the entry and the exit, also those of the with statement itself."""

    def block():
        with tree.attached(BODY, to="base", name="crate") as handle:
            assert tree.resolve(handle) == "crate"

    gc.disable()
    try:
        for event in itertools.count(1):
            tree = sd.KinematicTree()
            if not interrupted_at_opcode(block, event):
                break
            assert tree.links == ("base",) and tree.joints == (), event
    finally:
        gc.enable()
    assert event > 500


@pytest.mark.slow
def test_a_simulation_that_is_interrupted_anywhere_has_happened_or_not():
    events = [sd.Lock("elbow", time=0.01), sd.Grasp(BODY, to="tool", twist="at_rest", name="crate", time=0.02)]

    def run(tree, state):
        return sd.simulate(tree, state, 0.03, events=events, step=0.02)

    (before, _), (after, state) = start(), start()
    run(after, state)
    expected, found, event = {seen(before), seen(after)}, set(), 1
    while True:
        tree, state = start()
        entries = state.to_dict()
        if not interrupted(lambda tree=tree, state=state: run(tree, state), event):
            break
        found.add(seen(tree))
        assert found <= expected
        assert state.to_dict() == entries
        event += 1 + event // 12
    assert event > 1000
    assert seen(before) in found
