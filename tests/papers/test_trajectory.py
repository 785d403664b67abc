import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd
from screwdyn.core.errors import ScrewdynError, ShapeError
from screwdyn.papers.selection import Trajectory


def test_cycloidal_is_equation_23():
    found = Trajectory.cycloidal([0, 1], [np.pi, -1], duration=10, step=0.01)
    t = found.t
    assert_allclose(t, np.arange(1001) * 0.01)
    assert_allclose(found.q[:, 0], np.pi * t / 10 - 0.5 * np.sin(2 * np.pi * t / 10), atol=1e-14)
    assert_allclose(found.q[[0, -1]], [[0, 1], [np.pi, -1]], atol=1e-15)
    assert_allclose(found.qd[[0, -1]], 0, atol=1e-15)
    for x, rate in ((found.q, found.qd), (found.qd, found.qdd)):
        assert_allclose((x[2:] - x[:-2]) / 0.02, rate[1:-1], atol=1e-5)


def test_the_file_of_a_run_is_read_to_the_last_bit(tmp_path):
    arm = sd.robots.two_link()
    run = sd.simulate(arm, sd.State(arm, [0.1, 0.2], [0.3, 0]), 0.2, step=0.02)
    run.to_csv(tmp_path / "run.csv")
    found = Trajectory.from_csv(tmp_path / "run.csv", arm)
    for what in ("t", "q", "qd", "qdd"):
        assert_array_equal(getattr(found, what), getattr(run, what))


def test_rates_that_a_file_does_not_have_are_those_of_a_spline(tmp_path):
    exact = Trajectory.cycloidal([0, 0], [1, 2], duration=2, step=0.02)
    table = np.column_stack([exact.q[:, ::-1], exact.t])
    file = tmp_path / "path.csv"
    np.savetxt(file, table, delimiter=",", header="q:theta2,q:theta1,t", comments="")
    found = Trajectory.from_csv(file, sd.robots.two_link())
    assert_array_equal(found.q, exact.q)
    assert_allclose(found.qd, exact.qd, atol=1e-6)
    assert_allclose(found.qdd, exact.qdd, atol=1e-4)


def test_accelerations_that_a_file_does_not_have_follow_from_its_rates(tmp_path):
    exact = Trajectory.cycloidal([0, 0], [1, 2], duration=2, step=0.02)
    file = tmp_path / "path.csv"
    header = "t,q:theta1,q:theta2,qd:theta1,qd:theta2"
    # The positions are those of another motion: accelerations are not taken from them.
    np.savetxt(file, np.column_stack([exact.t, 0 * exact.q, exact.qd]), delimiter=",", header=header, comments="")
    found = Trajectory.from_csv(file, sd.robots.two_link())
    assert_array_equal(found.qd, exact.qd)
    assert_allclose(found.qdd, exact.qdd, atol=1e-5)


def test_an_event_is_in_the_file_of_a_run_twice(tmp_path):
    arm = sd.robots.two_link()
    grasp = sd.Grasp(sd.Inertia.point(1.0), to="link2", twist="at_rest", time=0.1)
    run = sd.simulate(arm, sd.State(arm, [0.1, 0.2], [0.3, 0]), 0.2, step=0.02, events=[grasp])
    assert (np.diff(run.t) == 0).any()
    run.to_csv(tmp_path / "run.csv")
    found = Trajectory.from_csv(tmp_path / "run.csv", sd.robots.two_link())
    for what in ("t", "q", "qd", "qdd"):
        assert_array_equal(getattr(found, what), getattr(run, what))
        assert_array_equal(getattr(Trajectory.of(run), what), getattr(run, what))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no column 't', 'q:theta1', 'q:theta2'"),
        ("t,q:theta1,q:thet2\n", "no column 'q:theta2'; did you mean 'q:thet2'"),
        ("t,q:theta1,q:theta2,qd:theta1\n", "no column 'qd:theta2'"),
        ("t,q:theta1,q:theta1,q:theta2\n", "the column 'q:theta1' twice"),
        ("t,q:theta1,q:theta2\n", "no samples"),
        ("t,q:theta1,q:theta2\n0,1,2\n1,,2\n", "line 3: 'q:theta1' must be a number; got ''"),
        ("t,q:theta1,q:theta2\n0,1\n", "line 2: 3 entries were expected; got 2"),
        ("t,q:theta1,q:theta2\n0,1,2\n0,1,2\n", "at least 6 samples"),
        ("t,q:theta1,q:theta2\n" + "0,1,2\n" * 6, "samples 0 and 1 have the same time: no rates; or add columns"),
        (
            "t,q:theta1,q:theta2\n" + "1,1,2\n" * 5 + "0,1,2\n",
            "times of a trajectory must increase; they decrease after sample 4",
        ),
        ("t,q:theta1,q:theta2\n" + "nan,1,2\n" * 6, "t of a trajectory has entries that are not finite"),
    ],
)
def test_errors_of_files_say_where(tmp_path, text, message):
    file = tmp_path / "path.csv"
    file.write_text(text)
    with pytest.raises(ScrewdynError) as caught:
        Trajectory.from_csv(file, sd.robots.two_link())
    assert message in str(caught.value) and "path.csv" in str(caught.value)


def test_files_that_are_no_tables(tmp_path):
    with pytest.raises(ScrewdynError, match="cannot read the file"):
        Trajectory.from_csv(tmp_path / "none.csv", sd.robots.two_link())
    (tmp_path / "path.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ScrewdynError, match="not a table"):
        Trajectory.from_csv(tmp_path / "path.csv", sd.robots.two_link())


def test_shapes_must_fit_together():
    x = np.zeros((3, 2))
    with pytest.raises(ShapeError, match=r"t \(2,\), q \(3, 2\)"):
        Trajectory(np.arange(2), x, x, x)
    with pytest.raises(ShapeError, match="one length"):
        Trajectory.cycloidal([0, 0], [1])
    with pytest.raises(ShapeError, match="must be positive"):
        Trajectory.cycloidal([0], [1], duration=-1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Trajectory("a", "b", "c", "d"), "t of a trajectory must be an array of numbers; got 'a'"),
        (lambda: Trajectory([0, 1], [[0], [1, 2]], [0], [0]), "q of a trajectory must be an array of numbers"),
        (lambda: Trajectory([0], 3, 3, 3), r"q, qd, qdd (samples, n); got t (1,), q ()"),
        (lambda: Trajectory.cycloidal("a", "b"), "start must be an array of numbers"),
        (lambda: Trajectory.cycloidal([0], [1], duration="a"), "duration must be an array of numbers; got 'a'"),
        (lambda: Trajectory.cycloidal([0], [1], duration=np.inf), "duration has entries that are not finite"),
        (lambda: Trajectory.cycloidal([0], [1], duration=[1, 2]), "duration must be one number, s; got [1, 2]"),
        (lambda: Trajectory.cycloidal([0], [1], step=1e-30), "at most 10,000,000 samples; got 10.0 s by 1e-30 s"),
        (lambda: Trajectory.from_csv(None, sd.robots.two_link()), "path must be the path of a file; got None"),
    ],
)
def test_wrong_arguments_are_named(make, message):
    with pytest.raises(ScrewdynError) as caught:
        make()
    assert message in str(caught.value)
