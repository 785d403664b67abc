"""``test_every_change`` with longer sequences, as many as SCREWDYN_SOAK sets."""

import pytest
from hypothesis import given, settings
from test_every_change import SEEDS, EveryChange
from test_every_change_followers import check_a_sequence

pytestmark = pytest.mark.soak


class Longer(EveryChange):
    pass


Longer.TestCase.settings = settings(stateful_step_count=50)
TestLonger = Longer.TestCase


@given(SEEDS)
def test_rotors_and_followers_stay_with_their_joints(seed):
    check_a_sequence(seed, 40)
