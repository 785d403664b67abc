"""Without llvmlite, the extra ``compile``: trees are not compiled, and everything else works."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

import screwdyn as sd

# Any import of llvmlite raises ModuleNotFoundError.
WITHOUT = """
import sys
sys.modules["llvmlite"] = None
import pickle, screwdyn as sd
given = pickle.load(sys.stdin.buffer)
found = []
{work}
sys.stdout.buffer.write(pickle.dumps(found))
"""


def without_llvmlite(work, given, folder):
    """What a process has found, which prints nothing on stderr, but for what takes it long, and keeps no file."""
    environment = os.environ | {"SCREWDYN_CACHE": str(folder)}
    command = [sys.executable, "-c", WITHOUT.format(work=work)]
    done = subprocess.run(command, input=pickle.dumps(given), capture_output=True, env=environment)
    assert done.returncode == 0, done.stderr.decode()
    assert all(line.startswith("screwdyn: tracing ") for line in done.stderr.decode().splitlines())
    assert not list(folder.iterdir())
    return pickle.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [("revolute", "prismatic"), ("spherical", "planar")])
def test_derivatives_are_interpreted(kinds, tmp_path):
    rng, step = np.random.default_rng(5), 1e-5
    tree = sd.testing.random_tree(rng, 3, kinds)
    turn, qd, x = rng.normal(size=(3, 4, tree.nv))
    q = tree.integrate(tree.neutral(), turn)
    work = """
tree, state = given
for some in (state, [y[0] for y in state]):  # a batch, and one state
    D = tree.derivatives
    A, B = tree.linearize(*some[:2])
    found.append([*D.inverse_dynamics(*some), *D.forward_dynamics(*some), D.regressor(*some), A])
"""
    batch, single = without_llvmlite(work, (tree, (q, qd, x)), tmp_path)
    assert all(np.array_equal(many[0], one) for many, one in zip(batch, single, strict=True))
    by_q, by_qd, M, dq, dqd, inverse, Y, A = batch
    tau = tree.inverse_dynamics(q, qd, x)
    for k, h in enumerate(step * np.eye(tree.nv)):
        for name, found in (("inverse_dynamics", (by_q, by_qd)), ("forward_dynamics", (dq, dqd))):
            f = getattr(tree, name)
            along_q = f(tree.integrate(q, h), qd, x) - f(tree.integrate(q, -h), qd, x)
            along_qd = f(q, qd + h, x) - f(q, qd - h, x)
            for derivative, difference in zip(found, (along_q, along_qd), strict=True):
                assert_allclose(
                    derivative[..., k], difference / (2 * step), rtol=0, atol=1e-7 * np.abs(derivative).max()
                )
    assert_allclose(M, tree.mass_matrix(q), rtol=0, atol=1e-13 * np.abs(M).max())
    assert_allclose(inverse @ M, np.broadcast_to(np.eye(tree.nv), M.shape), rtol=0, atol=1e-12)
    assert_allclose(Y @ tree.derivatives.parameters(), tau, rtol=0, atol=1e-13 * np.abs(tau).max())
    assert_allclose(A[:, : tree.nv, tree.nv :], np.broadcast_to(np.eye(tree.nv), M.shape), rtol=0, atol=1e-13)


@pytest.mark.slow
def test_compile_says_what_to_install_and_all_else_works(tmp_path):
    arm = sd.robots.two_link()
    work = """
arm, compiled = given
for make in (arm.compile, lambda: pickle.loads(compiled)):
    try:
        make()
    except sd.ScrewdynError as error:
        found.append(str(error))
sd.simulate(arm, sd.State(arm, [0.1, 0.2], [0, 0]), 0.1)
found.append(arm.c_source(["mass_matrix"]))
"""
    *messages, text = without_llvmlite(work, (arm, pickle.dumps(arm.compile(threads=1))), tmp_path)
    assert len(messages) == 2
    assert text == arm.c_source(["mass_matrix"])
    for message in messages:
        assert message.startswith("compiled trees need llvmlite (")
        assert message.endswith("): pip install 'screwdyn[compile]'")
