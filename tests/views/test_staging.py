import numpy as np
import pytest
from film import CRATE, END, GRASP, RELEASE, arm, swing

import screwdyn as sd
from screwdyn.simulation.stages import frame_times, stages
from screwdyn.views.staging import stage_scene, still


@pytest.fixture(scope="module")
def run():
    return swing()


def filmed(run, show=(), fps=50.0):
    return stage_scene(stages(run), frame_times(run, fps), run.events, show)


@pytest.fixture(scope="module")
def scene(run):
    return filmed(run, ("com", "momentum"))


def test_links_have_the_poses_of_the_run(run, scene) -> None:
    assert scene.times[0] == 0 and scene.times[-1] == pytest.approx(END) and len(scene.times) == 41
    for link in ("base", "upper", "lower"):
        node = scene.node(link)
        assert node.shown.all()
        np.testing.assert_allclose(node.poses, run.pose(link, scene.times), atol=1e-14)


def test_a_payload_waits_hangs_and_flies(run, scene) -> None:
    crate, t = scene.node("crate"), scene.times
    waits, hangs, flies = t < GRASP, (t >= GRASP) & (t < RELEASE), t >= RELEASE
    assert crate.shown.all()
    before = run.events[0].event.payload.pose
    np.testing.assert_allclose(crate.poses[waits], np.tile(before, (waits.sum(), 1, 1)))
    np.testing.assert_allclose(crate.poses[hangs], run.pose("crate", t[hangs]), atol=1e-14)
    released = run.events[1].event.released
    # Newton: the centre of mass falls along a parabola; Euler: here, about a principal axis, the spin is constant.
    T0, (w, v), s = released.pose, released.twist.reshape(2, 3), t[flies] - RELEASE
    com = T0[:3, :3] @ CRATE.com + T0[:3, 3]
    speed = T0[:3, :3] @ (v + np.cross(w, CRATE.com))
    falls = com + np.outer(s, speed) + np.outer(s**2 / 2, (0, -9.81, 0))
    seen = crate.poses[flies]
    np.testing.assert_allclose(seen[:, :3, :3] @ CRATE.com + seen[:, :3, 3], falls, atol=1e-6)
    assert w[2] != 0 and not w[:2].any()
    spins = T0[:3, :3] @ np.array([sd.screw.exp(np.r_[w * x, 0, 0, 0])[:3, :3] for x in s])
    np.testing.assert_allclose(seen[:, :3, :3], spins, atol=1e-6)


def test_waiting_payloads_are_pale_and_passive_joints_appear_with_the_grasp(scene) -> None:
    crate, t = scene.node("crate"), scene.times
    parts = {part.name: part for part in crate.parts}
    assert set(parts) == {"body", "body 2", "joint"}
    hanging, waiting = parts["body"], parts["body 2"]
    assert hanging.solids[0].color[3] == 1.0 and waiting.solids[0].color[3] < 1.0
    np.testing.assert_array_equal(waiting.shown, t < GRASP)
    np.testing.assert_array_equal(hanging.shown, t >= GRASP)
    np.testing.assert_array_equal(parts["joint"].shown, (t >= GRASP) & (t < RELEASE))


def test_moving_payloads_appear_with_their_grasp() -> None:
    tree = arm()
    grasp = sd.Grasp(CRATE, to="lower", at=(0.5, 0, 0), name="crate", twist="co_moving", time=GRASP)
    scene = filmed(sd.simulate(tree, sd.State(tree, qd=[1.0, 0.0]), 0.3, events=[grasp]))
    np.testing.assert_array_equal(scene.node("crate").shown, scene.times >= GRASP)


def test_centre_of_mass_and_momentum(run, scene) -> None:
    (mark,) = (node for node in scene.nodes if node.group == "marks")
    linear, angular = scene.arrows
    h = np.array([run.at(t).tree.centroidal_momentum(run.at(t).q, run.at(t).qd) for t in scene.times])
    c = np.array([run.at(t).tree.center_of_mass(run.at(t).q) for t in scene.times])
    np.testing.assert_allclose(mark.poses[:, :3, 3], c, atol=1e-14)
    for arrow, part in ((linear, h[:, 3:]), (angular, h[:, :3])):
        np.testing.assert_allclose(arrow.start, c, atol=1e-14)
        longest = np.linalg.norm(part, axis=1).max()
        np.testing.assert_allclose((arrow.end - arrow.start) / (0.5 * scene.size), part / longest, atol=1e-12)
        assert f"{longest:.3g}" in arrow.name


def test_events_are_marked_where_and_when_they_happen(run, scene) -> None:
    grasp, release = scene.flashes
    lost = run.events[0].event.energy_lost
    assert lost > 0 and grasp.impact and grasp.text == f"grasp crate: {lost:.3g} J lost"
    assert not release.impact and release.text == "release crate"
    np.testing.assert_allclose(grasp.position, run.pose("crate", GRASP)[:3, 3], atol=1e-9)
    assert scene.times[grasp.shown].min() == pytest.approx(GRASP)
    assert scene.times[release.shown].min() == pytest.approx(RELEASE)


def test_the_camera_sees_the_robot_and_does_not_follow_what_falls(run, scene) -> None:
    camera = scene.camera
    np.testing.assert_allclose(camera.up, (0, 1, 0))
    # The arm moves in the plane z = 0, which the camera sees from the front.
    ahead = camera.target - camera.position
    assert ahead[2] / np.linalg.norm(ahead) < -0.9
    far = np.linalg.norm(camera.position - camera.target)
    assert far < 5 * scene.size
    longer = stage_scene(stages(run), frame_times(run, 10), run.events)
    np.testing.assert_allclose(longer.camera.target, camera.target, atol=0.1)


def test_a_tree_that_stands_still() -> None:
    tree = arm()
    scene = stage_scene([still(tree, np.zeros(2))], np.zeros(1))
    assert [node.name for node in scene.nodes] == ["base", "upper", "lower"] and not scene.flashes
    np.testing.assert_allclose(scene.node("lower").poses[0], tree.forward_kinematics("lower", [0, 0]))


def test_unknown_things_to_show_are_refused(run) -> None:
    with pytest.raises(sd.ScrewdynError, match="show may name 'com', 'momentum'; got 'mass'"):
        filmed(run, ("mass",))
    with pytest.raises(sd.ScrewdynError, match="fps must be a number of frames per second > 0; got 0"):
        run.animate("run.html", fps=0)
