"""Derivatives and steps of integrators in C against those of the tree and of compiled code."""

import ctypes

import numpy as np
import pytest
from c_compiler import load, pointer
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn import Inertia

CRATE = Inertia.box(3.0, (0.2, 0.15, 0.1), com=(0, 0.02, 0.1))


def hand():
    """Joints with springs, damping and friction, a ball joint, and a payload."""
    tree = sd.KinematicTree()
    pan = sd.revolute("z", name="pan", damping=0.3, friction=0.2, stiffness=2.0, rest=0.1)
    tree.attach(Inertia.box(2.0, (0.1, 0.2, 0.3), com=(0.1, 0, 0.2)), to="base", joint=pan, name="arm")
    tree.attach(
        Inertia.box(1.0, (0.1, 0.1, 0.2), com=(0, 0, 0.1)), to="arm", joint=sd.spherical(name="ball"), name="fist"
    )
    tree.attach(CRATE, to="fist", joint=sd.revolute("y", passive=True, damping=0.1, name="hook"), name="crate")
    return tree


def call(function, inputs, carried, shapes, dt=None):
    """Results of a C function."""
    outputs = [np.full(shape, np.nan) for shape in shapes]
    further = ([] if dt is None else [ctypes.c_double(dt)]) + [ctypes.c_ulong(carried)]
    function.restype = None
    function(*map(pointer, inputs), *further, *map(pointer, outputs))
    return outputs


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    steps = ["step:semi_implicit_euler", "step:rk4"]
    names = ["derivatives:inverse_dynamics", "derivatives:forward_dynamics", "derivatives:forward_kinematics:crate"]
    return load(hand().c_source([*steps, *names], optional=["crate"]), tmp_path_factory.mktemp("c"))


def state(seed=0):
    tree, rng = hand(), np.random.default_rng(seed)
    return tree, tree.random_configuration(rng), *rng.normal(size=(2, tree.nv))


@pytest.mark.parametrize("carried", [0, 1])
def test_derivatives_are_those_of_the_tree(library, carried):
    tree, q, qd, x = state()
    n = tree.nv
    kept = n if carried else n - 1
    other = tree.copy()
    if not carried:
        other.detach("crate")
    for name in ("inverse_dynamics", "forward_dynamics"):
        found = call(getattr(library, f"derivatives_{name}"), [q, qd, x], carried, [(n, n)] * 3)
        expected = getattr(other.derivatives, name)(q[: other.nq], qd[:kept], x[:kept])
        for y, z in zip(found, expected, strict=True):
            assert_allclose(y[:kept, :kept], z, rtol=1e-10, atol=1e-10)
            assert carried or not y[kept:].any()


def test_derivatives_of_poses(library):
    tree, q, *_ = state()
    (found,) = call(library.derivatives_forward_kinematics_crate, [q], 1, [(4, 4, tree.nv)])
    assert_allclose(found, tree.derivatives.forward_kinematics("crate", q), atol=1e-12)


@pytest.mark.parametrize("method", ["semi_implicit_euler", "rk4"])
@pytest.mark.parametrize("carried", [0, 1])
def test_steps_are_those_of_rollouts(library, method, carried):
    tree, q, qd, tau = state(1)
    tau[-1], n, nq = 0.0, tree.nv, tree.nq
    after, rates = call(getattr(library, f"step_{method}"), [q, qd, tau], carried, [nq, n], dt=0.01)
    other = tree.copy()
    if not carried:
        other.detach("crate")
    given = q[: other.nq], qd[: other.nv], 1, 0.01, tau[: other.nv]
    run = other.compile().rollout(*given, method=method)
    assert_allclose(after[: other.nq], run.q, rtol=1e-12, atol=1e-12)
    assert_allclose(rates[: other.nv], run.qd, rtol=1e-11, atol=1e-12)
    assert carried or rates[-1] == qd[-1]


def test_a_free_body_at_rest_in_single_precision(tmp_path):
    """Whose rate of 0 is divided by itself plus a number that only ``double`` has."""
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    tree.attach(CRATE, to="base", joint=sd.free(), name="crate")
    step = load(tree.c_source(["step:semi_implicit_euler"], real="float"), tmp_path).step_semi_implicit_euler
    q, rest, after = tree.neutral().astype("f4"), np.zeros(6, dtype="f4"), np.full((2, 7), np.nan, dtype="f4")
    step.restype = None
    step(*map(pointer, (q, rest, rest)), ctypes.c_float(0.01), *map(pointer, after))
    assert after[0].tolist() == q.tolist() and not after[1, :6].any()


def test_names_that_are_none():
    with pytest.raises(
        sd.ScrewdynError, match=r"a step is one of 'step:semi_implicit_euler', 'step:rk4'; got 'step:rk5'"
    ):
        hand().c_source(["step:rk5"])
    with pytest.raises(sd.ScrewdynError, match="no function 'inverse_dynamic'; did you mean"):
        hand().c_source(["derivatives:inverse_dynamic"])
    with pytest.raises(sd.ScrewdynError, match="name each function of a group once"):
        hand().c_source([("step:rk4", "step:rk4")])
    closed = hand()
    closed.close("fist", to="base", joint=sd.spherical(), at=closed.forward_kinematics("fist", closed.neutral()))
    with pytest.raises(sd.LoopError, match="C source of 'step:rk4'"):
        closed.c_source(["step:rk4"])
