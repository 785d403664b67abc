"""Trees with joints of any kind at random states, and differences along the tangents of their configurations."""

import numpy as np
from cases import CENTRAL, STEP, Case
from hypothesis import strategies as st
from kinds import EVERY, GROUPS, MOVING, SINGLE

from screwdyn.testing import random_tree


@st.composite
def joint_cases(draw, least=0, most=4):
    """Trees of up to ``most`` links with joints of one or several freedoms, at a state of order one."""
    n = draw(st.integers(least, most))
    kinds = draw(st.sampled_from([*((kind,) for kind in MOVING if kind not in SINGLE), GROUPS, EVERY]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return state_of(random_tree(rng, n, kinds), rng)


def state_of(tree, rng):
    """A tree at a random state."""
    q = tree.integrate(tree.neutral(), rng.uniform(-2, 2, tree.nv))
    return Case(tree, q, *rng.uniform(-2, 2, (2, tree.nv)), rng)


def along_tangents(f, tree, q):
    """df(q exp(t ν))/dt at t = 0 for every ν = e_k, stacked in the last axis; ``f`` takes a batch."""
    columns = []
    for e in np.eye(tree.nv):
        steps = np.array([[k * STEP, -k * STEP] for k, _ in CENTRAL]).ravel()
        weights = np.array([[w, -w] for _, w in CENTRAL]).ravel() / STEP
        columns.append(np.tensordot(weights, f(tree.integrate(q, steps[:, None] * e)), axes=1))
    return np.stack(columns, axis=-1) if columns else np.zeros((*np.shape(f(q)), 0))
