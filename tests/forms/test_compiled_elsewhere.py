"""Compiled functions in other processes, together with large trees and with other payloads, without long waits."""

import multiprocessing
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from screwdyn import Inertia, KinematicTree, Link, ScrewdynError, helical, prismatic, revolute
from screwdyn.backends.llvm import program as native
from screwdyn.forms import compiled
from screwdyn.robots import two_link
from screwdyn.testing import random_inertia, random_tree


def run(program):
    """Output of a program, which must end in time."""
    # With one arena, glibc does not reserve memory in advance for each thread.
    environment = {**os.environ, "MALLOC_ARENA_MAX": "1"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_forked_process_shares_batches_among_threads_of_its_own():
    assert run(FORKED.format(before="fast.wait(); expected = fast.gravity_vector(q)")).count("same") == 1


@pytest.mark.slow
def test_a_forked_process_compiles_what_was_not_ready():
    assert run(FORKED.format(before="expected = tree.gravity_vector(q)")).count("same") == 1


FORKED = """
import os
import numpy as np
from screwdyn.testing import random_tree
tree = random_tree(np.random.default_rng(0), 4)
q = np.random.default_rng(1).uniform(-1, 1, (30_000, 4))
fast = tree.compile(threads=2)
{before}
child = os.fork()
if not child:
    assert fast.wait(60).ready
    np.testing.assert_allclose(fast.gravity_vector(q), expected, atol=1e-11)
    assert isinstance(fast.gravity_vector, type(len))
    assert tree.compile().wait(60).ready
    print("same", flush=True)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert fast.wait(60).ready
"""


@pytest.mark.slow
def test_code_that_is_ready_follows_into_a_forked_process():
    program = """
import os
import numpy as np
import sys
from screwdyn.testing import random_tree
tree = random_tree(np.random.default_rng(0), 3)
tree.compile().wait()
child = os.fork()
if not child:
    print("ready" if tree.compile().ready else "not ready")
    sys.exit()
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    assert run(program) == "ready\n"


def test_methods_can_be_pickled_for_other_processes(arm, fast):
    q = np.random.default_rng(16).normal(size=(5, arm.nv))
    for method in (fast.gravity_vector, fast.inverse_dynamics, fast.dynamics, fast.joint_force):
        twin = pickle.loads(pickle.dumps(method))
        assert twin.__name__ == method.__name__
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for found, expected in zip(pool.map(fast.gravity_vector, q), fast.gravity_vector(q), strict=True):
            assert_array_equal(found, expected)


def test_a_pickled_copy_is_of_the_same_tree_and_uses_the_code_of_its_process(monkeypatch):
    tree, q = two_link(), np.array([0.3, -1.2])
    fast, expected = tree.compile(threads=3).wait(), tree.mass_matrix(q)
    assert len(pickle.dumps(fast)) < 5000
    tree.attach(Inertia.point(1.0), to=tree.links[-1])
    twin = pickle.loads(pickle.dumps(fast))
    assert twin.ready and twin.threads == 3 and twin.coordinates == fast.coordinates
    assert_array_equal(twin.mass_matrix(q), fast.mass_matrix(q))
    np.testing.assert_allclose(twin.mass_matrix(q), expected, rtol=1e-14)
    everywhere = pickle.dumps(tree.compile())
    monkeypatch.setattr(compiled, "processors", lambda: 17)
    assert pickle.loads(everywhere).threads == 17


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system cannot restrict a process to processors")
def test_by_default_there_is_a_thread_for_each_processor_that_may_be_used():
    code = "import os, screwdyn; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]); print(screwdyn.robots.ur5()"
    assert run(f"{code}.compile().threads)") == "1\n"


@pytest.mark.slow
def test_small_trees_wait_for_at_most_one_function_of_a_large_tree(monkeypatch):
    order, compile_single = [], native._compile_single

    def noted(name, structure):
        order.append(len(structure.table) - 1)
        return compile_single(name, structure)

    monkeypatch.setattr(native, "_compile_single", noted)
    rng = np.random.default_rng(17)
    large, small = random_tree(rng, 10).compile(), random_tree(rng, 3).compile()
    small.wait()
    assert order.count(10) <= 2
    large.wait()
    assert order.count(10) == order.count(3) == 7


def test_recording_stops_where_nothing_will_be_compiled(monkeypatch):
    monkeypatch.setattr(native, "LARGEST", 500)
    tree = random_tree(np.random.default_rng(18), 12)
    nothing = np.zeros((12, 10), dtype=bool)
    with pytest.raises(native.TooLong):
        native.recorded("coriolis_matrix", native.Structure(tree.model.table, nothing))
    fast = tree.compile().wait()
    q, qd = np.random.default_rng(18).normal(size=(2, 12))
    assert_array_equal(fast.coriolis_matrix(q, qd), tree.coriolis_matrix(q, qd))


def laden(joint, flange, body):
    """An arm with a payload on its own joint, with or without a massless flange between them."""
    tree = random_tree(np.random.default_rng(19), 3, ("revolute",))
    if flange:
        tree.attach(Link("flange"), to="link3", joint=joint, at=(0, 0, 0.3), name="flange")
        tree.attach(body, to="flange", name="payload")
    else:
        tree.attach(body, to="link3", joint=joint, at=(0, 0, 0.3), name="payload")
    return tree


@pytest.mark.slow
@pytest.mark.parametrize("joint", [revolute("y"), prismatic("x"), helical("z", 0.1)], ids=lambda j: j.kind)
@pytest.mark.parametrize("flange", [False, True])
def test_a_point_on_a_joint_becomes_a_body_without_a_compiler(joint, flange):
    rng = np.random.default_rng(20)
    laden(joint, flange, Inertia.point(2, (0.1, 0, 0))).compile().wait()
    for body in (Inertia.box(1, (0.1, 0.2, 0.3)), random_inertia(rng), Inertia.point(3)):
        tree = laden(joint, flange, body)
        fast, q = tree.compile(), rng.normal(size=4)
        assert fast.ready
        np.testing.assert_allclose(fast.mass_matrix(q), tree.mass_matrix(q), atol=1e-12)


@pytest.mark.slow
def test_a_body_on_a_flange_may_begin_as_anything():
    laden(revolute("y"), True, Inertia.box(1, (0.1, 0.2, 0.3))).compile().wait()
    assert laden(revolute("y"), True, random_inertia(np.random.default_rng(21))).compile().ready


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "two"])
def test_threads_are_counted_from_one(threads):
    with pytest.raises(ScrewdynError, match="threads"):
        KinematicTree().compile(threads)


def test_what_is_said_of_the_coordinates(arm, fast):
    assert (fast.coordinates, fast.nq, fast.nv) == (arm.coordinates, arm.nq, arm.nv)


@pytest.mark.soak
def test_code_of_many_structures_takes_little_memory_and_gives_it_back():
    """Megabytes for each structure: of four that are kept, then of five times four of which only a few are kept."""
    kept, *more = map(float, run(MANY_STRUCTURES).split())
    assert kept < 2
    # What is never given back grows every time.
    assert min(more) < 0.1


MANY_STRUCTURES = """
import gc
import numpy as np
from screwdyn.backends.llvm import program as native
from screwdyn.robots import two_link

tree, rng = two_link(), np.random.default_rng(0)

def growth(count):
    before = resident()
    for _ in range(count):
        tree.gravity = rng.normal(size=3)
        tree.compile().wait()
    return (resident() - before) / count

def resident():
    gc.collect()
    with open("/proc/self/smaps_rollup") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("Rss")) / 1024

growth(2)
print(growth(4))
native._programs._most = 5_000_000
growth(2)
print(*(growth(4) for _ in range(5)))
"""
