"""The laws of ``test_couplings`` on the number of trees that SCREWDYN_SOAK sets."""

import pytest
import test_couplings

pytestmark = pytest.mark.soak

laws = {name: law for name, law in vars(test_couplings).items() if hasattr(law, "hypothesis")}
globals().update(laws)


def test_there_are_laws_to_try():
    assert len(laws) >= 5
