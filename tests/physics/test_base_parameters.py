"""Base parameters. That the dynamics remain the same is tested with the tapes."""

import numpy as np
from cases import cases
from hypothesis import given

from screwdyn import Inertia, KinematicTree, Link, helical, prismatic, revolute
from screwdyn.physics.base_parameters import base_parameters
from screwdyn.physics.table import FIRST_MOMENT, INERTIA, MASS, PARENT

BODY = Inertia(2.0, (0.1, 0.2, 0.3), np.array([[0.5, 0.01, 0.02], [0.01, 0.4, 0.03], [0.02, 0.03, 0.3]]))
KEPT = {
    "revolute": {1, 2, 4, 5, 6, 8, 9},
    "prismatic": {0, 1, 2, 3},
    "helical": {0, 1, 2, 3, 4, 5, 6, 8, 9},
}


def test_what_each_joint_leaves():
    for kind, joint in {"revolute": revolute("z"), "prismatic": prismatic("z"), "helical": helical("z", 0.1)}.items():
        tree = KinematicTree()
        tree.attach(Link("body", BODY), to="base", joint=joint)
        (left,) = np.nonzero(base_parameters(tree.model.table)[0, MASS:PARENT])
        assert set(left) == KEPT[kind]


@given(cases(least=1))
def test_twice_is_once_and_the_table_given_is_not_touched(case):
    table = case.tree.model.table
    before = table.copy()
    once = base_parameters(table)
    assert (table == before).all()
    assert (base_parameters(once) == once).all()
    assert (np.delete(once, np.s_[MASS:PARENT], 1) == np.delete(before, np.s_[MASS:PARENT], 1)).all()


def test_a_load_behind_a_pin_is_a_point_mass_to_the_arm():
    """A disc on a pin through its centre: the arm feels its mass at the pin, and the pin its moment only."""
    tree = KinematicTree()
    tree.attach(Link("arm"), to="base", joint=revolute("z"))
    tree.attach(Link("disc", Inertia(3.0, 0, (0.1, 0.1, 0.2))), to="arm", joint=revolute("z"), at=(2.0, 0, 0))
    arm, disc = base_parameters(tree.model.table)[:2]
    assert disc[MASS:PARENT].tolist() == [0] * 9 + [0.2]
    assert arm[FIRST_MOMENT] == 6 and arm[INERTIA + 5] == 12
