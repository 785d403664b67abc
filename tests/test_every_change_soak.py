"""``test_every_change`` with longer sequences, as many as SCREWDYN_SOAK sets."""

import pytest
from hypothesis import settings
from test_every_change import EveryChange

pytestmark = pytest.mark.soak


class Longer(EveryChange):
    pass


# A sequence takes as long as many examples of other properties.
Longer.TestCase.settings = settings(stateful_step_count=50, max_examples=max(1, settings().max_examples // 10))
TestLonger = Longer.TestCase
