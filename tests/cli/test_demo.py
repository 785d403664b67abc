import sys
from pathlib import Path

import numpy as np
import pytest

import screwdyn as sd
from screwdyn.cli import demo
from screwdyn.testing import random_tree

ARM = Path(__file__).parents[1] / "data" / "urdf" / "arm.urdf"


def chain(scale: float = 1.0, **options) -> sd.KinematicTree:
    """A planar arm that moves in a vertical plane, with a frame at its tip."""
    tree = sd.KinematicTree()
    rod = sd.Inertia.rod(2.0 * scale, 0.5, axis="x", com=(0.25, 0, 0))
    tree.attach(rod, to="base", joint=sd.revolute("y", **options), name="upper")
    tree.attach(rod, to="upper", joint=sd.revolute("y", **options), at=(0.5, 0, 0), name="lower")
    tree.attach(sd.Link("tip"), to="lower", at=(0.5, 0, 0))
    return tree


# The path


def test_the_path_begins_and_ends_at_rest_and_stays_there() -> None:
    path = demo.Path5(np.array([1.0, -2.0]), np.array([3.0, 2.0]), 2.0)
    for t, place in ((-1.0, path.start), (0.0, path.start), (2.0, path.end), (5.0, path.end)):
        q, qd, qdd = path(t)
        np.testing.assert_array_equal(q, place)
        assert not qd.any() and not qdd.any()
    np.testing.assert_allclose(path(1.0)[0], (2.0, 0.0))
    # The fastest moment of a minimum-jerk path: 15/8 of the mean rate.
    np.testing.assert_allclose(path(1.0)[1], np.array([2.0, 4.0]) / 2.0 * 15 / 8)


def test_rates_of_the_path_are_its_derivatives() -> None:
    path = demo.Path5(np.array([1.0, -2.0]), np.array([3.0, 2.0]), 2.0)
    h = 1e-5
    for t in (0.3, 0.9, 1.7):
        np.testing.assert_allclose((path(t + h)[0] - path(t - h)[0]) / (2 * h), path(t)[1], rtol=1e-7)
        np.testing.assert_allclose((path(t + h)[1] - path(t - h)[1]) / (2 * h), path(t)[2], rtol=1e-7)


# The controller


@pytest.mark.parametrize("passive", [(), (4,), (1, 5)])
def test_driven_joints_accelerate_as_asked_whatever_the_passive_ones_do(passive: tuple[int, ...]) -> None:
    rng = np.random.default_rng(5)
    model = random_tree(rng, 6)
    tree = sd.KinematicTree(gravity=model.gravity)
    for k, link in enumerate(model.links[1:]):
        edge = model.graph.edges[model.parent(link), link]
        joint = edge["joint"]
        if joint.screw is not None:
            number = model.coordinates.index(edge["name"])
            joint = sd.Joint(joint.screw, passive=number in passive, damping=0.1 * k, stiffness=0.2 * k)
        tree.attach(model.link(link), to=model.parent(link), joint=joint, at=edge["home"])
    start, end, q, qd = rng.normal(size=(4, 6))
    path, t = demo.Path5(start, end, 2.0), 0.7
    torque = demo.ComputedTorque(path)(t, sd.State(tree, q, qd))
    driven = [k for k in range(6) if k not in passive]
    assert list(torque) == [tree.coordinates[k] for k in driven]
    tau = np.array([torque.get(name, 0.0) for name in tree.coordinates])
    qdd = tree.forward_dynamics(q, qd, tau + tree.joint_force(q, qd))
    wanted, rate, acceleration = path(t)
    asked = acceleration + demo.DAMPING * (rate - qd) + demo.STIFFNESS * (wanted - q)
    np.testing.assert_allclose(qdd[driven], asked[driven], rtol=1e-9)


def test_without_the_payload_model_the_controller_uses_the_empty_robot() -> None:
    robot = chain()
    path = demo.Path5(np.zeros(2), np.ones(2), 2.0)
    empty = sd.State(robot, [0.1, 0.2], [0.3, 0.4])
    loaded = robot.copy()
    loaded.attach(sd.Inertia.point(1.0, (0, 0, -0.1)), to="tip", joint=sd.revolute("y", passive=True), name="crate")
    state = sd.State(loaded, [0.1, 0.2, 0.9], [0.3, 0.4, 0.5])
    full, reduced = demo.ComputedTorque(path), demo.ComputedTorque(path, robot.copy())
    assert reduced(0.5, state) == full(0.5, empty)
    assert full(0.5, state) != full(0.5, empty)


# The task


@pytest.mark.parametrize(
    "robot, to",
    [(sd.robots.ur5(), "tool0"), (sd.robots.stanford(), None), (sd.robots.rtx(), None), (chain(), "tip")],
    ids=["ur5", "stanford", "rtx", "planar"],
)
def test_the_crate_hangs_straight_down_across_the_motion(robot: sd.KinematicTree, to: str | None) -> None:
    job = demo.plan(robot, to or demo.farthest(robot))
    q, qd, _ = job.path(job.grasp.time)
    pose = job.loaded.forward_kinematics(job.crate, np.append(q, 0.0))
    np.testing.assert_allclose(pose[:3, 3], robot.forward_kinematics(job.to, q)[:3, 3], atol=1e-12)
    np.testing.assert_allclose(pose[:3, 2], (0, 0, 1), atol=1e-12)
    velocity = robot.jacobian(job.to, q, "mixed")[3:] @ qd
    assert np.linalg.norm(velocity) > 0
    np.testing.assert_allclose(pose[:3, 0] @ velocity, 0, atol=1e-12)
    # Hanging still under a still tool, it stays so.
    np.testing.assert_allclose(job.loaded.gravity_vector(np.append(q, 0.0))[-1], 0, atol=1e-12)


def test_the_path_keeps_within_every_limit() -> None:
    tree = sd.KinematicTree()
    limits = [(-0.1, 0.05), (3.0, 9.0), None, (2.0, np.inf), (-np.inf, -4.0), (1.0, 1.0), (-10.0, 10.0)]
    body, link = sd.Inertia.box(1.0, (0.1, 0.1, 0.1), com=(0.1, 0, 0)), "base"
    for k, pair in enumerate(limits):
        make = sd.prismatic if k == 0 else sd.revolute
        link = tree.attach(body, to=link, joint=make("xyz"[k % 3], limits=pair), at=(0.2, 0, 0)).name
    tree.attach(body, to="base", joint=sd.revolute("x", limits=(0.5, 0.7)), name="aside")
    path = demo.plan(tree, link).path
    for name, start, end in zip(tree.coordinates, path.start, path.end, strict=True):
        low, high = tree.joint(name).limits or (-np.inf, np.inf)
        assert low <= start <= end <= high
    moves = path.end > path.start
    np.testing.assert_array_equal(moves, [True] * 5 + [False, True, False])
    assert (path.end - path.start).max() <= 1.0
    # What is not on the way to the tool keeps to the middle of its range.
    assert path.start[-1] == pytest.approx(0.6)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_the_crate_fits_the_robot(scale: float) -> None:
    light, robot = demo.plan(chain(), "tip"), chain(scale)
    job = demo.plan(robot, "tip")
    mass = job.loaded.link("crate").inertia.mass
    assert mass <= 0.05 * robot.mass
    assert mass == pytest.approx(scale * light.loaded.link("crate").inertia.mass)


def test_names_that_are_taken_are_left_alone() -> None:
    robot = chain()
    robot.attach(sd.Link("crate"), to="tip")
    robot.attach(sd.Link("frame"), to="tip", joint=sd.fixed(name="swing"))
    job = demo.plan(robot, "tip")
    assert job.crate == "crate_2"
    assert job.loaded.coordinates[-1] == "swing_2"


def test_what_cannot_be_done_is_said() -> None:
    with pytest.raises(sd.UnknownLinkError, match="did you mean 'tip'"):
        demo.plan(chain(), "tipp")
    with pytest.raises(sd.ScrewdynError, match="no joint moves link 'base'; choose one of: upper, lower, tip"):
        demo.plan(chain(), "base")
    with pytest.raises(sd.ScrewdynError, match="the robot has no movable joint"):
        demo.plan(sd.KinematicTree(), "base")
    with pytest.raises(sd.ScrewdynError, match="no joint moves link 'tip'"):
        demo.plan(chain(passive=True), "tip")
    with pytest.raises(sd.ScrewdynError, match="limits of upper, lower leave no range"):
        demo.plan(chain(limits=(0, 0)), "tip")
    wrist = chain()
    wrist.attach(sd.Inertia.point(1.0, (0, 0, 0.1)), to="tip", joint=sd.spherical(name="ball"))
    with pytest.raises(sd.ScrewdynError, match="joints of one freedom each; 'ball' is a spherical joint"):
        demo.plan(wrist, "tip")
    hand = chain()
    hand.attach(sd.Link("finger"), to="tip", joint=sd.revolute("x", name="knuckle"))
    with pytest.raises(sd.SingularAttachmentError, match="'knuckle'"):
        demo.plan(hand, "tip")


# The runs


@pytest.fixture(scope="module")
def runs() -> tuple[demo.Task, sd.Run, sd.Run]:
    job = demo.plan(sd.robots.ur5(), "tool0", mass=3.0, ends=demo._UR5_ENDS)
    full = demo.ComputedTorque(job.path)
    reduced = demo.ComputedTorque(job.path, job.robot.copy())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "SAMPLES", 100)
        return job, job.run(full, False), job.run(reduced, False)


@pytest.mark.slow
def test_with_the_payload_model_the_tool_stays_on_the_path(runs) -> None:
    job, full, reduced = runs
    assert job.deviation(full).max() < 0.005
    assert job.deviation(reduced).max() > 0.03
    # Before the grasp both models are the same.
    assert job.deviation(full)[full.t < job.grasp.time].max() < 1e-6
    assert job.deviation(reduced)[reduced.t < job.grasp.time].max() < 1e-6
    assert job.deviation(full)[-1] < 1e-4


@pytest.mark.slow
def test_the_crate_swings_and_the_energy_balance_closes(runs) -> None:
    for run in runs[1:]:
        assert np.nanmax(run["swing"]) > 0.2 and np.nanmin(run["swing"]) < -0.1
        assert run.events[0].event.energy_lost > 0.01
        assert run.energy.impact_loss[-1] == pytest.approx(run.events[0].event.energy_lost)
        assert run.energy.dissipated[-1] > 0
        assert np.abs(run.energy.residual).max() < 1e-6
        assert run.tree.coordinates == sd.robots.ur5().coordinates


def test_the_report_states_what_happened(runs) -> None:
    text = demo.describe(*runs)
    assert "tool0 picks up a crate of 3 kg on a free hook at 1.2 s and releases it at 3.4 s" in text
    assert "└─ crate [passive revolute swing] 3 kg" in text
    assert "The contributions of all other links are unchanged: largest difference 0." in text
    # The last entry of M_i is the crate's inertia about its hook, to four figures.
    about = runs[0].loaded.link("crate").inertia.origin_tensor[0, 0]
    (row,) = (line for line in text.splitlines() if line.startswith("swing "))
    assert float(row.split()[1]) == pytest.approx(about, abs=5e-4)
    for worst, run in zip(text.split("Largest deviation")[1].splitlines()[1:], runs[1:], strict=True):
        assert f"{1000 * runs[0].deviation(run).max():.1f} mm" in worst


@pytest.mark.slow
def test_someone_elses_robot_with_a_sliding_joint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "SAMPLES", 100)
    demo.demo(ARM, "wheel", tmp_path / "arm.png", tmp_path / "arm.html", progress=True)
    out, err = capsys.readouterr()
    assert "wheel picks up a crate" in out
    assert out.rstrip().endswith(f"Figure: {tmp_path / 'arm.png'}\nFilm: {tmp_path / 'arm.html'}")
    assert "__VISER_EMBED_DATA__" in (tmp_path / "arm.html").read_text()
    assert (tmp_path / "arm.png").read_bytes().startswith(b"\x89PNG")
    assert "run 2 of 2: controller without the payload model" in err and "100%" in err


def test_without_a_link_the_farthest_one_grasps() -> None:
    assert demo.farthest(sd.KinematicTree.from_urdf(ARM)) == "wheel"
    assert demo.farthest(chain()) == "lower"


def test_a_figure_that_cannot_be_written_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(sd.ScrewdynError, match="there is no folder"):
        demo.demo(tmp_path / "not_even_read.urdf", None, tmp_path / "nowhere" / "a.png", progress=False)


def test_a_film_without_the_extra_is_refused_before_the_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "viser", None)
    monkeypatch.delitem(sys.modules, "screwdyn.views.web", raising=False)
    with pytest.raises(sd.ScrewdynError, match="needs the extra view"):
        demo.demo(ARM, "wheel", tmp_path / "arm.png", tmp_path / "arm.html", progress=True)
    assert capsys.readouterr() == ("", "")
