"""Histories as arrays, and files of runs."""

import csv
import sys
import types
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import screwdyn as sd
from screwdyn.simulation import recording


@pytest.fixture(scope="module")
def run():
    """A slider that carries a ball on a spherical joint from 0.1 s to 0.2 s."""
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.point(2.0), to="base", joint=sd.prismatic("x", damping=0.3), name="cart")
    ball = sd.Inertia.sphere(1.0, 0.05, (0, 0, -0.3))
    events = [
        sd.Grasp(ball, to="cart", joint=sd.spherical(passive=True), name="ball", twist=[0, 1, 0, 0, 0, 0], time=0.1),
        sd.Release("ball", time=0.2),
    ]
    return sd.simulate(tree, sd.State(tree), 0.3, lambda t, state: {"cart": 2.0}, events, step=0.05)


def test_arrays_over_all_samples(run):
    assert run.positions == ("cart", "ball[x]", "ball[y]", "ball[z]", "ball[w]")
    assert run.coordinates == ("cart", "ball[wx]", "ball[wy]", "ball[wz]")
    assert run.q.shape == (len(run.t), 5)
    assert run.qd.shape == run.qdd.shape == run.tau.shape == (len(run.t), 4)
    held = np.array([len(state.positions) == 5 for state in run.states])
    for table in (run.q, run.qd, run.qdd, run.tau):
        assert_array_equal(np.isnan(table).any(axis=0), [False] + [True] * (table.shape[1] - 1))
        assert_array_equal(np.isnan(table[:, 1]), ~held)
    for k, state in enumerate(run.states):
        assert_array_equal(run.q[k, : len(state.q)], state.q)
        assert_array_equal(run.qd[k, : len(state.qd)], state.qd)
        assert_array_equal(run.tau[k, : len(state.qd)], run.torques[k])
    assert_array_equal(run["ball[w]"], run.q[:, 4])
    assert_array_equal(run.velocity("ball[wy]"), run.qd[:, 2])


def test_accelerations_are_those_of_the_forces(run):
    for state, tau, qdd in zip(run.states, run.torques, run.qdd, strict=True):
        force = tau + state.tree.joint_force(state.q, state.qd)
        assert_array_equal(qdd[: len(tau)], state.tree.forward_dynamics(state.q, state.qd, force))


def test_states_are_a_sequence(run):
    states = run.states
    assert len(states) == len(run.t)
    assert [state["cart"] for state in states] == run["cart"].tolist()
    assert states[-1]["cart"] == run["cart"][-1]
    assert [state["cart"] for state in states[2:8:3]] == run["cart"][2:8:3].tolist()
    with pytest.raises(IndexError):
        states[len(states)]


def test_an_array_file_keeps_all_samples(run, tmp_path):
    run.to_npz(tmp_path / "run.npz")
    read = sd.Run.from_npz(tmp_path / "run.npz")
    assert type(read) is sd.Recording
    for name in ("t", "q", "qd", "qdd", "tau"):
        assert_array_equal(getattr(read, name), getattr(run, name))
    for name, x in vars(run.energy).items():
        assert_array_equal(getattr(read.energy, name), x)
    assert (read.positions, read.coordinates) == (run.positions, run.coordinates)
    assert [(e.t, e.verb, e.link) for e in read.events] == [(0.1, "grasp", "ball"), (0.2, "release", "ball")]
    assert [e.subject for e in read.events] == [e.subject for e in run.events]
    for name, joint in run.joints.items():
        found = read.joints[name]
        assert (found.kind, found.passive, found.nq, found.nv) == (joint.kind, joint.passive, joint.nq, joint.nv)
        assert (found.limits, found.effort, found.velocity) == (joint.limits, joint.effort, joint.velocity)
    assert_array_equal(read["ball[x]"], run["ball[x]"])
    assert repr(read) == repr(run).replace("Run", "Recording")
    again = tmp_path / "again.npz"
    read.to_npz(again)
    assert_array_equal(sd.Recording.from_npz(again).q, run.q)


@pytest.mark.parametrize("path", [3, None, [], np.eye(3)])
def test_files_without_a_path(run, path):
    for use in (sd.Run.from_npz, run.to_npz, run.to_csv):
        with pytest.raises(sd.ScrewdynError, match="a file is given by its path"):
            use(path)


def test_names_and_sides_of_another_type(run):
    for ask in (run.__getitem__, run.velocity, run.torque, run.pose):
        with pytest.raises(sd.UnknownNameError):
            ask(np.eye(3))
    with pytest.raises(sd.ScrewdynError, match="side must be 'after' or 'before'"):
        run.at(0.0, np.eye(3))


def test_a_coordinate_that_changes_its_unit(tmp_path):
    """A hinge with a slide after it: histories in rad and in m are different columns, in every form."""
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    tree.attach(sd.Inertia.box(1, (0.1, 0.2, 0.3)), "base", sd.revolute("z", name="w"), name="arm")
    tree.attach(sd.Inertia.point(1), "arm", sd.prismatic("y", name="v"), name="mass")
    slide = sd.ReplaceJoint("arm", sd.prismatic("x"), time=0.5)
    run = sd.simulate(tree, sd.State(tree, [0.1, 0.2], [2.0, 0.3]), 1.0, events=[slide], step=0.25)
    run.to_npz(tmp_path / "run.npz")
    run.to_csv(tmp_path / "run.csv")
    for found in (run, sd.Run.from_npz(tmp_path / "run.npz")):
        assert found.positions == found.coordinates == ("w (rad)", "v", "w (m)")
        assert_array_equal(np.isfinite(found.q), np.isfinite(found.qd))
        assert_array_equal(np.isfinite(found["w (rad)"]), np.arange(6) < 3)
        assert_array_equal(np.isnan(found["w (rad)"]), np.isfinite(found["w (m)"]))
        assert_array_equal(found["w (rad)"][:3], [state["w"] for state in run.states[:3]])
        assert_array_equal(found["w (m)"][3:], [state["w"] for state in run.states[3:]])
        assert (found.joints["w (rad)"].kind, found.joints["w (m)"].kind) == ("revolute", "prismatic")
        for ask in (found.__getitem__, found.velocity, found.torque):
            with pytest.raises(sd.UnknownNameError, match=r"in rad in a part .* 'w \(rad\)' and 'w \(m\)'"):
                ask("w")
        axes = found.plot("positions").axes
        assert [ax.get_ylabel() for ax in axes] == ["angle (°)", "displacement (m)"]
    header = (tmp_path / "run.csv").read_text().splitlines()[0].split(",")
    assert header[:7] == ["t", "q:w (rad)", "q:v", "q:w (m)", "qd:w (rad)", "qd:v", "qd:w (m)"]


@pytest.mark.slow
def test_figure_of_a_file(run, tmp_path):
    run.to_npz(tmp_path / "run.npz")
    run.plot().savefig(tmp_path / "one.png")
    sd.Recording.from_npz(tmp_path / "run.npz").plot().savefig(tmp_path / "other.png")
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "other.png").read_bytes()


def test_files_that_are_no_runs(run, tmp_path):
    with pytest.raises(sd.ScrewdynError, match=r"cannot read .*none\.npz': No such file"):
        sd.Run.from_npz(tmp_path / "none.npz")
    with pytest.raises(sd.ScrewdynError, match=r"cannot write .*run\.npz'"):
        run.to_npz(tmp_path / "no folder" / "run.npz")
    with pytest.raises(sd.ScrewdynError, match=r"cannot write .*run\.csv'"):
        run.to_csv(tmp_path / "no folder" / "run.csv")
    other = tmp_path / "other.npz"
    run.to_npz(other)
    whole = bytearray(other.read_bytes())
    whole[whole.index(b"PK\x01\x02") + 10] = 77  # a method of compression that there is not
    for content in (b"", b"text", b"PK\x03\x04 cut off", bytes(whole)):
        other.write_bytes(content)
        with pytest.raises(sd.ScrewdynError, match=r"other\.npz' is not a file of Run\.to_npz"):
            sd.Run.from_npz(other)
    with other.open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(sd.ScrewdynError, match=r"other\.npz' is not a file of Run\.to_npz"):
        sd.Run.from_npz(other)
    np.savez(other, q=np.zeros(3))
    with pytest.raises(sd.ScrewdynError, match=r"is not a file of Run\.to_npz of this version"):
        sd.Run.from_npz(other)
    np.savez(other, layout=recording.LAYOUT, motions=1)
    with pytest.raises(sd.ScrewdynError, match="is incomplete: it has no '0/positions'"):
        sd.Run.from_npz(other)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("layout", np.zeros((3, 3)), "of this version"),
        ("motions", np.zeros(3), "'motions' must be numbers of shape"),
        ("motions", np.array(0), "it has no samples"),
        ("energy/work", None, "incomplete: it has no 'energy/work'"),
        ("energy/work", np.zeros(2), "'energy/work' must be numbers of shape"),
        ("0/q", np.zeros((3, 3)), "'0/q' must be numbers of shape"),
        ("0/qd", np.array("x"), "'0/qd' must be numbers of shape .* got str"),
        ("0/t", np.zeros((2, 2)), "'0/t' must be numbers of shape"),
        ("0/positions", np.array(3.0), "do not fit together"),
        ("events/t", np.zeros(7), "do not fit together"),
        ("events/link", np.array("x"), "do not fit together"),
        ("0/joints/numbers", np.zeros((1, 2)), "do not fit together"),
    ],
)
def test_files_whose_entries_do_not_fit_together(run, tmp_path, key, value, words):
    path = tmp_path / "run.npz"
    run.to_npz(path)
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files if name != key}
    np.savez(path, **arrays | ({} if value is None else {key: value}))
    with pytest.raises(sd.ScrewdynError, match=words):
        sd.Run.from_npz(path)


def test_names_in_a_file_have_no_control_characters(run, tmp_path):
    run.to_npz(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as stored:
        arrays = dict(stored)
    arrays["0/positions"] = np.array(["\x1b]0;x\x07", *arrays["0/positions"][1:]])
    np.savez(tmp_path / "run.npz", **arrays)
    with pytest.raises(sd.ScrewdynError, match="has a name that is not a non-blank string without control characters"):
        sd.Run.from_npz(tmp_path / "run.npz")


def test_a_header_that_announces_terabytes_is_refused(run, tmp_path):
    run.to_npz(tmp_path / "run.npz")
    with zipfile.ZipFile(tmp_path / "run.npz") as whole, zipfile.ZipFile(tmp_path / "huge.npz", "w") as huge:
        for name in whole.namelist():
            data = whole.read(name)
            if name == "0/t.npy":
                data = (
                    np.lib.format.magic(1, 0)
                    + b"v\0{'descr': '<f8', 'fortran_order': False, 'shape': (%d,), }" % 10**12
                )
                data = data.ljust(128 - 1) + b"\n"
            huge.writestr(name, data)
    with pytest.raises(sd.ScrewdynError, match=r"huge\.npz' is not a file of Run\.to_npz"):
        sd.Run.from_npz(tmp_path / "huge.npz")


def test_names_in_a_table_are_no_formulas_and_no_commands(tmp_path):
    name = "a;=1+1|'$(touch x)` %41é [1]"
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.point(1.0), "base", sd.prismatic("x", name=name), name="mass")
    sd.simulate(tree, sd.State(tree, [0.5]), 0.1, step=0.1).to_csv(tmp_path / "run.csv")
    header = (tmp_path / "run.csv").read_text(encoding="utf-8").splitlines()[0].split(",")
    assert header[1] == "q:a%3B%3D1+1%7C%27%24(touch x)%60 %2541é [1]"
    assert sd.selection.Trajectory.from_csv(tmp_path / "run.csv", tree).q[0] == 0.5


def test_table_of_text(run, tmp_path):
    run.to_csv(tmp_path / "run.csv")
    with (tmp_path / "run.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    ledger = ["kinetic", "potential", "work", "dissipated", "impact_loss", "exchanged", "external"]
    assert header == [
        "t",
        *(f"q:{name}" for name in run.positions),
        *(f"{what}:{name}" for what in ("qd", "qdd", "tau") for name in run.coordinates),
        *ledger,
    ]
    numbers = np.array([[float(x) if x else np.nan for x in row] for row in rows])
    assert_array_equal(numbers[:, 1:6], run.q)
    assert_array_equal(numbers[:, header.index("kinetic")], run.energy.kinetic)


def test_frame_of_pandas(run, monkeypatch):
    """With a stand-in for pandas, which the tests do not require."""

    class DataFrame(dict):
        def set_index(self, name):
            return name, self

    monkeypatch.setitem(sys.modules, "pandas", types.SimpleNamespace(DataFrame=DataFrame))
    index, frame = run.to_frame()
    assert index == "t" and [*frame] == [*run.columns()]
    assert_array_equal(frame["qd:ball[wy]"], run.velocity("ball[wy]"))
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(sd.ScrewdynError, match=r"to_frame needs pandas .*pip install pandas"):
        run.to_frame()
