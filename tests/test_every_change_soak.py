"""``test_every_change`` with longer sequences, as many as SCREWDYN_SOAK sets."""

import pytest
from hypothesis import settings
from test_every_change import EveryChange

pytestmark = pytest.mark.soak


class Longer(EveryChange):
    pass


Longer.TestCase.settings = settings(stateful_step_count=50)
TestLonger = Longer.TestCase
