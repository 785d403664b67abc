"""The laws of ``test_rearrange`` on the number of trees that SCREWDYN_SOAK sets."""

import pytest
import test_rearrange

pytestmark = pytest.mark.soak

laws = {name: law for name, law in vars(test_rearrange).items() if hasattr(law, "hypothesis")}
globals().update(laws)


def test_there_are_laws_to_try():
    assert len(laws) > 9
