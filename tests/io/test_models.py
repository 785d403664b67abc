"""Models of other libraries, where these are not installed; tests/oracle compares what is read with them."""

import sys

import pytest

from screwdyn import KinematicTree, ModelError, ScrewdynError


def test_mjcf_needs_mujoco(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ScrewdynError, match=r"pip install 'screwdyn\[mjcf\]'"):
        KinematicTree.from_mjcf("<mujoco/>")


def test_a_pinocchio_model_is_one_of_pinocchio():
    with pytest.raises(ModelError, match=r"must be a pinocchio\.Model; got str"):
        KinematicTree.from_pinocchio("ur5.urdf")
