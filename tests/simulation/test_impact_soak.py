"""The laws of ``test_impact`` once more, on as many trees as SCREWDYN_SOAK says."""

import pytest
import test_impact

pytestmark = pytest.mark.soak

laws = {name: law for name, law in vars(test_impact).items() if hasattr(law, "hypothesis")}
globals().update(laws)


def test_there_are_laws_to_try():
    assert len(laws) > 10
