"""All quantities of coupled trees, on the number of trees that SCREWDYN_SOAK sets."""

import pytest
import test_couplings
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.soak


@given(test_couplings.SEEDS, st.integers(0, 3), st.integers(1, 4))
def test_every_quantity_is_that_of_independent_joints_contracted(seed, n, followers):
    pair = test_couplings.Pair(seed, n, followers)
    test_couplings.check_contraction(pair, test_couplings.QUANTITIES, test_couplings.OF_LINKS)
