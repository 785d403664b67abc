"""Denavit-Hartenberg tables: poses against products of elementary motions, dynamics between conventions."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from screwdyn import KinematicTree
from screwdyn.core.errors import InertiaError, JointError, ScrewdynError, ScrewdynWarning, ShapeError
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.link import Link

ORACLES = Path(__file__).parents[1] / "data" / "oracles"


def turn(axis, angle):
    T = np.eye(4)
    c, s = np.cos(angle), np.sin(angle)
    i, j = {"x": (1, 2), "z": (0, 1)}[axis]
    T[[i, i, j, j], [i, j, i, j]] = c, -s, s, c
    return T


def shift(axis, distance):
    T = np.eye(4)
    T["xyz".index(axis), 3] = distance
    return T


def elementary(row, q, convention):
    theta, d = row.get("theta", 0), row.get("d", 0)
    if row.get("type", "R") == "R":
        theta = theta + q
    else:
        d = d + q
    about_z = turn("z", theta) @ shift("z", d)
    about_x = turn("x", row.get("alpha", 0)) @ shift("x", row.get("a", 0))
    return about_z @ about_x if convention == "standard" else about_x @ about_z


def random_rows(rng, n=4):
    rows = []
    for i in range(n):
        d, a, alpha, theta = rng.uniform(-1, 1, 4)
        rows.append({"type": "RP"[i % 2], "d": d, "a": a, "alpha": alpha, "theta": theta})
    return rows


@pytest.mark.parametrize("convention", ["standard", "modified"])
@pytest.mark.parametrize("seed", range(5))
def test_frames_are_products_of_elementary_motions(convention, seed):
    rng = np.random.default_rng(seed)
    rows = random_rows(rng)
    tree = KinematicTree.from_dh(rows, convention)
    q = rng.uniform(-3, 3, 4)
    T = np.eye(4)
    for i, row in enumerate(rows):
        T = T @ elementary(row, q[i], convention)
        assert_allclose(tree.forward_kinematics(f"link{i + 1}", q), T, rtol=0, atol=1e-13)


def test_both_conventions_describe_the_same_puma():
    """The modified frame of a link is its standard frame before the shift and turn about x."""
    links = json.loads((ORACLES / "puma560.json").read_text())["links"]
    state = json.loads((ORACLES / "puma560.json").read_text())["states"][1]
    modified, before = [], {"a": 0.0, "alpha": 0.0}
    for row in links:
        X = turn("x", row["alpha"]) @ shift("x", row["a"])
        com = X[:3, :3] @ row["com"] + X[:3, 3]
        tensor = X[:3, :3] @ row["inertia"] @ X[:3, :3].T
        modified.append({"d": row["d"], **before, "m": row["m"], "com": com, "inertia": tensor})
        before = {"a": row["a"], "alpha": row["alpha"]}
    with pytest.warns(ScrewdynWarning) as caught:
        tree = KinematicTree.from_dh(modified, "modified")
    assert len(caught) == 1
    assert "DH row 1 (link1): mass 0 kg is not positive" in str(caught[0].message)
    assert "DH row 3 (link3): principal moments break the triangle inequality" in str(caught[0].message)
    q, qd, qdd = (np.array(state[key]) for key in ("q", "qd", "qdd"))
    assert_allclose(tree.mass_matrix(q), state["mass_matrix"], rtol=1e-9, atol=1e-9)
    assert_allclose(tree.coriolis_matrix(q, qd), state["coriolis_matrix"], rtol=1e-9, atol=1e-9)
    assert_allclose(tree.inverse_dynamics(q, qd, qdd), state["inverse_dynamics"], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("quarters", [-8, -1, 0, 1, 2, 3, 7])
@pytest.mark.parametrize("key", ["alpha", "theta"])
def test_right_angles_are_exact(quarters, key):
    for angle in (quarters * np.pi / 2, np.deg2rad(90.0 * quarters)):
        tree = KinematicTree.from_dh([{key: angle}])
        entries = tree.forward_kinematics("link1", [0.0])
        assert_array_equal(entries, np.round(entries))
        assert_array_equal(tree.joint("joint1").screw, np.round(tree.joint("joint1").screw))


def test_other_angles_are_left_alone():
    T = KinematicTree.from_dh([{"alpha": 1e-14}]).forward_kinematics("link1", [0.0])
    assert T[2, 1] == 1e-14


def test_defaults_and_names():
    tree = KinematicTree.from_dh([{}, {"name": "boom", "joint": "luff"}, {"type": "P", "name": "hoist"}])
    assert list(tree.links) == ["base", "link1", "boom", "hoist"]
    assert tree.coordinates == ("joint1", "luff", "joint3")
    assert all(tree.link(name).inertia is None for name in tree.links)
    assert_allclose(tree.gravity, [0, 0, -9.81])
    assert_allclose(KinematicTree.from_dh([{}], gravity=(0, -1, 0)).gravity, [0, -1, 0])
    assert KinematicTree.from_dh([{}], base="floor").links[0] == "floor"
    column = Link("column", Inertia.point(2.0))
    assert KinematicTree.from_dh([{}], base=column).link("column") is column


def test_mass_properties_and_joint_options():
    bob = Inertia.point(1.0, (0, 0, 1))
    tree = KinematicTree.from_dh(
        [
            {"m": 2, "com": (1, 2, 3), "inertia": (0.1, 0.2, 0.25)},
            {
                "inertia": bob,
                "passive": True,
                "damping": 0.5,
                "friction": 0.1,
                "stiffness": 3,
                "rest": 1,
                "limits": (-1, 1),
            },
        ]
    )
    first = tree.link("link1").inertia
    assert first.mass == 2
    assert_allclose(first.com, [1, 2, 3])
    assert_allclose(first.tensor, np.diag([0.1, 0.2, 0.25]))
    assert tree.link("link2").inertia is bob
    joint = tree.joint("joint2")
    assert (joint.passive, joint.damping, joint.friction, joint.stiffness, joint.rest) == (
        True,
        0.5,
        0.1,
        3,
        1,
    )
    assert joint.limits == (-1, 1)


def test_impossible_numbers_are_used_with_a_warning():
    with pytest.warns(ScrewdynWarning, match="triangle"):
        tree = KinematicTree.from_dh([{"m": 1, "inertia": (1, 0.1, 0.1)}])
    assert_allclose(tree.link("link1").inertia.tensor, np.diag([1, 0.1, 0.1]))
    with pytest.warns(ScrewdynWarning, match="DH row 1 .link1.: mass 0 kg"):
        tree = KinematicTree.from_dh([{"inertia": (0, 0.35, 0)}])
    assert tree.link("link1").inertia.mass == 0
    assert KinematicTree.from_dh([{"inertia": np.zeros((3, 3))}]).link("link1").inertia is None


def test_an_effective_inertia_given_as_such_is_not_questioned():
    with pytest.warns(ScrewdynWarning):
        lump = Inertia.effective(0, 0, (0, 0.35, 0))
    assert KinematicTree.from_dh([{"inertia": lump}]).link("link1").inertia is lump


@pytest.mark.parametrize(
    ("row", "error", "words"),
    [
        ({"alhpa": 1}, ScrewdynError, "DH row 2 .link2.: unknown key 'alhpa'; did you mean 'alpha'"),
        ({"zzzzzz": 1}, ScrewdynError, "unknown key 'zzzzzz'; known: type, d, a"),
        ({"type": "S", "name": "wrist"}, JointError, "DH row 2 .wrist.: unknown type 'S'"),
        ({"d": np.nan}, ShapeError, "DH row 2 .link2.: d must be a finite number; got nan"),
        ({"theta": "q2"}, ShapeError, "theta must be a finite number; got 'q2'"),
        ({"a": None}, ShapeError, "a must be a finite number"),
        ({"m": np.inf}, ShapeError, "m must be a finite number"),
        ({"m": "1"}, ShapeError, "m must be a finite number; got '1'"),
        ({"m": -1}, InertiaError, "DH row 2 .link2.: the mass is negative .-1 kg.; give a mass >= 0"),
        ({"inertia": [[1], [1, 2]]}, InertiaError, "DH row 2 .link2.: tensor must be numbers"),
        ({"inertia": ""}, InertiaError, "tensor must be numbers"),
        (3, ScrewdynError, "DH row 2 must be a dict .*; got 3"),
        ("abc", ScrewdynError, "DH row 2 must be a dict .*; got 'abc'"),
        (None, ScrewdynError, "DH row 2 must be a dict .*; got None"),
        ({"m": 1, "com": (0, 0)}, InertiaError, "com"),
        ({"m": 1, "inertia": np.nan}, InertiaError, "tensor"),
        ({"damping": -1}, JointError, "DH row 2 .link2.: damping"),
        ({"inertia": Inertia.point(1), "m": 1}, ScrewdynError, "m must not be given too"),
    ],
)
def test_bad_rows_are_refused_by_name(row, error, words):
    with pytest.raises(error, match=words):
        KinematicTree.from_dh([{}, row])


def test_unknown_convention():
    with pytest.raises(ScrewdynError, match="'classic'; use 'standard' or 'modified'"):
        KinematicTree.from_dh([{}], "classic")


@pytest.mark.parametrize("rows", [None, 3, {"d": 1}, "abc", b"abc"])
def test_what_is_no_table(rows):
    with pytest.raises(ScrewdynError, match="a DH table must be a list of dicts"):
        KinematicTree.from_dh(rows)


def test_any_iterable_of_mappings_is_a_table():
    assert KinematicTree.from_dh({"a": x} for x in (1, 2)).nq == 2


def test_warnings_point_to_the_line_that_reads_the_table():
    with pytest.warns(ScrewdynWarning) as caught:
        KinematicTree.from_dh([{"m": 1, "inertia": (1, 0.1, 0.1)}])
    assert [w.filename for w in caught] == [__file__]
