"""Readers beside a thread that changes the tree, and trees in other processes."""

import contextlib
import itertools
import multiprocessing
import sys
import threading

import numpy as np
import pytest
from cases import FULL_SOAK

import screwdyn as sd
from screwdyn.testing import random_inertia, random_pose

SLOW = {"derivatives", "compiled", "source"}
RNG = np.random.default_rng(1)
BODIES = [random_inertia(RNG) for _ in range(9)]


def branched():
    """Six links on three arms, with a load."""
    tree = sd.KinematicTree()
    for k, parent in enumerate(["base", "link1", "link2", "link1", "link2", "base"], 1):
        joint = sd.revolute((1, k, 2), (0.1, 0, 0), name=f"joint{k}", passive=k == 4)
        tree.attach(sd.Link(f"link{k}", BODIES[k]), to=parent, joint=joint, at=random_pose(RNG))
    tree.attach(BODIES[0], to="link5", at=(0.1, 0.2, 0.3), name="load")
    return tree


# Changes that keep nv, so that a mixture of two revisions has the shape of both, and the ways back.
CHANGES = {
    "inertia": (lambda tree: tree.set_inertia("load", BODIES[7]), lambda tree: tree.set_inertia("load", BODIES[0])),
    "gravity": (lambda tree: setattr(tree, "gravity", (1, 2, 3)), lambda tree: setattr(tree, "gravity", (0, 0, -9.8))),
    "parent": (
        lambda tree: tree.move("link5", "link4", sd.revolute("x")),
        lambda tree: tree.move("link5", "link2", sd.revolute("y")),
    ),
    "joint": (
        lambda tree: tree.replace_joint("link3", sd.prismatic("x", passive=True)),
        lambda tree: tree.replace_joint("link3", sd.revolute("y")),
    ),
    "lock": (lambda tree: swap(tree, "joint6", "joint3"), lambda tree: swap(tree, "joint3", "joint6")),
}


def by_default(kind):
    """The kinds of changes, of which long runs try some more or all."""
    others = [other for other in CHANGES if other != kind][:: 1 if FULL_SOAK else 2]
    return [kind, *(pytest.param(other, marks=pytest.mark.soak) for other in others)]


def swap(tree, lock, unlock):
    """Lock one joint and unlock another in one change."""
    topology = tree.topology.lock(lock)
    tree.topology = topology.unlock(unlock) if unlock in tree.locked else topology


def as_bytes(value):
    """All numbers and names of a result."""
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if isinstance(value, tuple | list):
        return tuple(map(as_bytes, value))
    if isinstance(value, sd.Contribution):
        return value.link, value.coordinates, value.J.tobytes(), as_bytes([np.asarray(x) for x in (value.M, value.g)])
    return value


def read(tree, q, qd):
    """Everything that reads more than one entry of the tree, by name."""
    return {
        "dynamics": lambda: tree.dynamics(q, qd),
        "batch": lambda: tree.inverse_dynamics(np.tile(q, (5, 1)), qd, qd),
        "contributions": lambda: tree.contributions(q, qd),
        "subtree": lambda: tree.subtree_contribution("link1", q, qd),
        "partition": lambda: tree.partition(q, qd),
        "wrench": lambda: tree.inverse_dynamics(q, qd, qd, wrenches={"link5": np.arange(6.0)}),
        "derivatives": lambda: tree.derivatives.inverse_dynamics(q, qd, qd),
        "compiled": lambda: tree.compile(threads=1).wait().mass_matrix(q),
        "text": lambda: tree.to_json(),
        "source": lambda: tree.c_source(["gravity_vector"]),
        "paths": lambda: tree.path("link5"),
        "beyond": lambda: tree.subtree("link1"),
        "links": lambda: tree.links,
        "state": lambda: sd.State(tree, q, qd).topology.gravity,
        "copy": lambda: tree.copy().dynamics(q, qd),
    }


@pytest.fixture
def impatient():
    """Threads take turns a hundred times as often as by default."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(5e-5)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.slow
@pytest.mark.parametrize("kind", by_default("joint"))
def test_a_reader_beside_a_writer_sees_one_revision(kind, impatient):
    tree, (there, back) = branched(), CHANGES[kind]
    there(tree)
    back(tree)
    q, qd = RNG.uniform(-1, 1, (2, tree.nv))
    queries, expected = read(tree, q, qd), {}

    def expect():
        for name, query in queries.items():
            expected.setdefault(name, set()).add(as_bytes(query()))

    expect()
    there(tree)
    expect()
    with tree.attached(BODIES[8], to="link1", name="in vain"):
        expect()
    back(tree)
    assert sum(len(one) == 3 for one in expected.values()) > 5
    found, errors, done = {name: set() for name in queries}, [], threading.Event()

    def reader():
        try:
            for k in range(3000):
                for name, query in queries.items():
                    if name not in SLOW or k % 30 == 0:
                        found[name].add(as_bytes(query()))
                if k > 30 and sum(len(values) > 1 for values in found.values()) > 5:
                    break  # on a busy machine the writer may begin later
        except BaseException as error:  # a thread's exception would only be printed
            errors.append(error)

    def writer():
        while not done.is_set():
            there(tree)
            with contextlib.suppress(RuntimeError), tree.transaction():
                tree.attach(BODIES[8], to="link1", name="in vain")
                raise RuntimeError
            back(tree)

    readers, changer = [threading.Thread(target=reader) for _ in range(3)], threading.Thread(target=writer)
    for thread in (*readers, changer):
        thread.start()
    for thread in readers:
        thread.join()
    done.set()
    changer.join()
    assert not errors, errors[0]
    for name, values in found.items():
        assert values <= expected[name], name
    assert sum(len(values) > 1 for values in found.values()) > 5
    expect()


def read_while(query, events):
    """The result of a query during which functions are called at given lines of the library, and the lines in all."""
    count = itertools.count(1)

    def trace(frame, what, argument):
        if "screwdyn" not in frame.f_code.co_filename:
            return None
        if what == "line" and (event := events.get(next(count))) is not None:
            event()
        return trace

    sys.settrace(trace)
    try:
        return as_bytes(query()), next(count) - 1
    finally:
        sys.settrace(None)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dynamics", "batch", "contributions", "partition", "wrench", "paths", "state"])
@pytest.mark.parametrize("kind", by_default("parent"))
def test_a_change_at_any_line_of_a_read(kind, name):
    """The same without chance: another thread changes the tree, or tries to in vain, between two lines of a read."""
    there, back = CHANGES[kind]
    tree = branched()
    there(tree)
    back(tree)
    q, qd = RNG.uniform(-1, 1, (2, tree.nv))
    before, twin = tree.topology, tree.copy()
    there(twin)
    expected = {as_bytes(read(one, q, qd)[name]()) for one in (tree, twin)}

    def trial(length, line):
        """A read of a new tree with a change at a line; it is undone after some lines if ``length`` is not None."""
        one = sd.KinematicTree()
        one.topology = before
        one.mass_matrix(q)  # the former model
        one.topology = one.topology.with_gravity(one.gravity)
        query, attempt = read(one, q, qd)[name], one.transaction()

        def begin():
            attempt.__enter__()
            there(one)

        def abort():
            with contextlib.suppress(RuntimeError):
                attempt.__exit__(RuntimeError, RuntimeError(), None)

        events = {line: begin} if length is None else {line: begin, line + length: abort}
        found, lines = read_while(query, events)
        assert found in expected
        if length is not None and line + length <= lines:
            assert as_bytes(query()) == as_bytes(read(tree, q, qd)[name]())
        return lines

    for length in (None, 1, 5, 40):
        line = 1
        while trial(length, line) >= line:
            line += 1 + line // 20  # every line at first: the model is made there
        assert line > 3


def numbers(tree, compiled, q, qd):
    """Bits of M, C, g and contributions, by the tree and by its compiled form."""
    return as_bytes([tree.dynamics(q, qd), tree.contributions(q, qd), compiled.wait().dynamics(q, qd)])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "fork"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_trees_go_to_other_processes(method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this platform does not {method}")
    tree = branched()
    tree.lock("joint2")
    compiled = tree.compile(threads=2)
    q, qd = RNG.uniform(-1, 1, (2, tree.nv))
    expected = numbers(tree, compiled, q, qd)
    with multiprocessing.get_context(method).Pool(1) as pool:
        found = pool.starmap(numbers, [(tree, compiled, q, qd)] * 2)
    assert found == [expected] * 2
