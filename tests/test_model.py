"""The snapshot of a tree: it is copied and sent like any value."""

import copy
import pickle

import numpy as np
import pytest

import screwdyn as sd


@pytest.mark.parametrize("twin_of", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_a_used_tree_and_of_its_snapshot_give_the_same_numbers(twin_of):
    tree = sd.robots.ur5()
    q, qd = np.random.default_rng(0).uniform(-1, 1, (2, tree.nv))
    M, C = tree.mass_and_coriolis(q, qd)
    for twin in (twin_of(tree), twin_of(tree.model)):
        assert twin.coordinates == tree.coordinates
        again = twin.mass_and_coriolis(q, qd)
        assert np.array_equal(again[0], M) and np.array_equal(again[1], C)
