"""Random trees with random states, as hypothesis strategies, and functions that measure errors."""

import os
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from kinds import SINGLE

from screwdyn import KinematicTree, State
from screwdyn.physics.quantities import CATALOGUE
from screwdyn.testing import random_tree

# The dynamics, and their arguments in order.
FUNCTIONS = {
    name: CATALOGUE[name].arguments
    for name in (
        *("mass_matrix", "coriolis_matrix", "gravity_vector"),
        *("bias_force", "inverse_dynamics", "forward_dynamics"),
    )
}
# Whether a soak has its full length; CI runs a shorter one.
FULL_SOAK = os.environ.get("SCREWDYN_SOAK") == "full"
ONE_OR_NONE = (*SINGLE, "fixed")
EPS = np.finfo(float).eps

# Weights of a central difference that is exact for polynomials up to the sixth degree: f' ≈ Σ w_k (f(kh) − f(−kh)) / h.
CENTRAL = ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))
STEP = 5e-3


@dataclass(frozen=True)
class Case:
    """A tree and a state of it."""

    tree: KinematicTree
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    rng: np.random.Generator

    def __repr__(self):
        return f"<{self.tree}\nq={self.q!r}, qd={self.qd!r}, qdd={self.qdd!r}>"


@st.composite
def cases(draw, least=0, most=8, batch=()):
    """Trees of up to ``most`` links of one kind of joint or of all, at a state of order one.

    Examples shrink in size and kinds; all other numbers are drawn from a seed.
    """
    n = draw(st.integers(least, most))
    kinds = draw(st.sampled_from([*((kind,) for kind in ONE_OR_NONE), ONE_OR_NONE, SINGLE]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tree = random_tree(rng, n, kinds)
    q, qd, qdd = rng.uniform(-2, 2, (3, *batch, tree.nq))
    return Case(tree, q, qd, qdd, rng)


def derivative(f, q, direction):
    """df(q + t·direction)/dt at t = 0, for an f that takes a batch.

    M is a sum of sines and cosines of at most twice an angle, so that its seventh derivative (h⁶/140)
    and rounding (ε/h) both stay below 1e-12 of the size of f times the sum of the rates.
    """
    size = total(direction) or 1.0
    h = STEP / size
    steps = np.array([[k * h, -k * h] for k, _ in CENTRAL]).ravel()
    values = f(q + steps[:, None] * direction)
    weights = np.array([[w, -w] for _, w in CENTRAL]).ravel() / h
    return np.tensordot(weights, values, axes=1)


def gradient(f, q):
    """Partial derivatives of f along every coordinate, stacked in the last axis."""
    n = len(q)
    columns = [derivative(f, q, e) for e in np.eye(n)]
    return np.stack(columns, axis=-1) if n else np.zeros((*np.shape(f(q)), 0))


def christoffel(M, q, qd):
    """Laus Eq. 35: C_ij = ½ Σ_k (∂M_ij/∂q_k + ∂M_ik/∂q_j − ∂M_jk/∂q_i) q̇_k, by differences of M alone."""
    D = gradient(M, q)
    return 0.5 * (np.einsum("ijk,k->ij", D, qd) + np.einsum("ikj,k->ij", D, qd) - np.einsum("jki,k->ij", D, qd))


def close(actual, desired, scale, tolerance):
    """Entry by entry within ``tolerance`` of a common scale; rounding is relative to the terms, not to the sum."""
    actual, desired = np.asarray(actual), np.asarray(desired)
    assert actual.shape == desired.shape, f"{actual.shape} instead of {desired.shape}"
    worst = np.abs(actual - desired).max(initial=0)
    assert worst <= tolerance * max(scale, 1e-300), f"differs by {worst:.3g}, {worst / scale:.3g} of {scale:.3g}"


def norm(a):
    """Largest absolute entry; 0 for an empty array."""
    return float(np.abs(a).max(initial=0))


def total(a):
    """Sum of the absolute entries."""
    return float(np.abs(a).sum())


def unaligned(a):
    """The same numbers at odd addresses."""
    memory = np.zeros(a.nbytes + 1, dtype=np.uint8)[1:]
    odd = memory.view(np.float64).reshape(a.shape)
    odd[...] = a
    return odd


def by_differences(law, state, t=0.0, h=1e-4):
    """∂τ/∂[q; q̇] by differences of order 4."""
    tree, n = state.tree, len(state.qd)

    def torque(d):
        return law(t, State(tree, tree.integrate(state.q, d[:n]), state.qd + d[n:]))

    steps = ((1, 2 / 3), (2, -1 / 12))
    units = np.eye(2 * n)
    return np.transpose([sum(w * (torque(k * h * d) - torque(-k * h * d)) for k, w in steps) / h for d in units])
