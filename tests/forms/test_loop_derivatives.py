"""Derivatives of forward dynamics with closed loops, by differences of the default kernel."""

import numpy as np
import pytest
from cases import derivative, norm
from mechanisms import four_bar, slider_crank
from numpy.testing import assert_allclose, assert_array_equal


@pytest.mark.parametrize("mechanism", [four_bar, slider_crank])
def test_along_all_directions(mechanism):
    """Also along those that open the loops."""
    tree, (q, qd) = mechanism()
    tau = np.array([1.3, -0.4, 0.7])
    found = tree.derivatives.forward_dynamics(q, qd, tau)
    functions = (
        lambda x: tree.forward_dynamics(x, qd, tau),
        lambda x: tree.forward_dynamics(q, x, tau),
        lambda x: tree.forward_dynamics(q, qd, x),
    )
    for exact, f, at in zip(found, functions, (q, qd, tau), strict=True):
        expected = np.stack([derivative(f, at, along) for along in np.eye(3)], axis=-1)
        assert_allclose(exact, expected, rtol=0, atol=1e-9 * norm(expected))


def test_batches_and_out():
    tree, (q, qd) = four_bar()
    tau = np.array([1.3, -0.4, 0.7])
    one = tree.derivatives.forward_dynamics(q, qd, tau)
    out = tuple(np.empty((2, 3, 3)) for _ in range(3))
    found = tree.derivatives.forward_dynamics([q, q], qd, tau, out=out)
    for single, batch, array in zip(one, found, out, strict=True):
        assert batch is array
        assert_array_equal(batch[0], batch[1])
        assert_allclose(batch[0], single, rtol=0, atol=1e-13 * norm(single))
