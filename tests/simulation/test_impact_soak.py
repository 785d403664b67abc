"""The laws of ``test_impact`` on the number of trees that SCREWDYN_SOAK sets."""

import pytest
import test_impact

pytestmark = pytest.mark.soak

laws = {name: law for name, law in vars(test_impact).items() if hasattr(law, "hypothesis")}
globals().update(laws)


def test_there_are_laws_to_try():
    assert len(laws) > 10
