from dataclasses import replace

import numpy as np
import pytest
from film import CRATE, END, GRASP, RELEASE, arm, node_of, swing, texts_of

import screwdyn as sd
from screwdyn.simulation.film import run_scene
from screwdyn.views.scene import IMPACT, LOOP, LOOPS, Stage, View, at_rest, stage_scene, still


@pytest.fixture(scope="module")
def run():
    return swing()


def filmed(run, show=(), fps=50.0, hide=()):
    return run_scene(run.motions, run.events, fps, View(show, hide))


@pytest.fixture(scope="module")
def scene(run):
    return filmed(run, ("com", "momentum"))


@pytest.mark.slow
def test_links_have_the_poses_of_the_run(run, scene) -> None:
    assert scene.times[0] == 0 and scene.times[-1] == pytest.approx(END) and len(scene.times) == 41
    for link in ("base", "upper", "lower"):
        node = node_of(scene, link)
        assert node.shown.all()
        np.testing.assert_allclose(node.poses, run.pose(link, scene.times), atol=1e-14)


@pytest.mark.slow
def test_a_payload_waits_hangs_and_flies(run, scene) -> None:
    crate, t = node_of(scene, "crate"), scene.times
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
    crate, t = node_of(scene, "crate"), scene.times
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
    np.testing.assert_array_equal(node_of(scene, "crate").shown, scene.times >= GRASP)


@pytest.mark.slow
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


def test_wrenches_are_those_of_the_joints(run) -> None:
    scene = run_scene(run.motions, run.events, 50, View(wrenches=("crate",)))
    force, moment = scene.arrows
    held = (scene.times >= GRASP) & (scene.times < RELEASE)
    # Newton: the joint carries the crate against its weight.
    t = scene.times[held]
    T, V, A = run.pose("crate", t), run.twist("crate", t), run.acceleration("crate", t)
    at_com = A[:, 3:] + np.cross(V[:, :3], V[:, 3:])
    expected = CRATE.mass * ((T[:, :3, :3] @ at_com[..., None])[..., 0] - (0, -9.81, 0))
    longest = np.linalg.norm(expected, axis=1).max()
    np.testing.assert_allclose((force.end - force.start)[held], expected * 0.5 * scene.size / longest, atol=1e-6)
    np.testing.assert_allclose(force.start[held], T[:, :3, 3], atol=1e-12)
    assert force.name == f"force on crate, up to {longest:.3g} N" and not force.shown[~held].any()
    # The passive hook turns freely, so that no moment is about its axis.
    assert np.abs((moment.end - moment.start)[held, 2]).max() < 1e-6
    np.testing.assert_allclose(run.wrench("crate", t)[:, 2], 0, atol=1e-6)
    with pytest.raises(sd.UnknownNameError, match="crat"):
        run_scene(run.motions, run.events, 50, View(wrenches=("crat",)))


def test_marks_of_a_link_end_with_its_next_event() -> None:
    tree = arm()
    events = [
        sd.Lock("elbow", time=0.1),
        sd.Unlock("elbow", time=0.2),
        sd.SetInertia("lower", CRATE, time=0.2),
        sd.Lock("shoulder", time=0.2),
    ]
    scene = filmed(sd.simulate(tree, sd.State(tree, qd=[1.0, 1.0]), 0.4, events=events))
    lock, both, other = texts_of(scene)
    assert lock.text.startswith("lock elbow: ") and both.text == "unlock elbow, set inertia of lower"
    assert other.text.startswith("lock shoulder: ")
    np.testing.assert_array_equal(lock.shown, (scene.times >= 0.1) & (scene.times < 0.2))
    np.testing.assert_array_equal(both.shown, scene.times >= 0.2)
    # The box follows the inertia, and the axis of a locked joint disappears meanwhile.
    parts = {part.name: part.shown for part in node_of(scene, "lower").parts}
    np.testing.assert_array_equal(parts["body 2"], scene.times >= 0.2)
    np.testing.assert_array_equal(parts["joint"], (scene.times < 0.1) | (scene.times >= 0.2))


def test_every_change_of_a_robot_is_drawn() -> None:
    """Group joints, a floating base, names with slashes, and a payload that is passed on and grasped again."""
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.box(9.0, (0.3, 0.3, 0.1)), to="base", joint=sd.free(), name="ship")
    for side, y in (("left", -0.5), ("right", 0.5)):
        one = sd.KinematicTree(f"{side}/root")
        rod = sd.Inertia.rod(1.0, 0.5, com=(0.25, 0, 0))
        one.attach(rod, to=f"{side}/root", joint=sd.universal("y", "z"), name=f"{side}/arm")
        tree.attach(one, to="ship", at=(0, y, 0))
    ball = sd.spherical(passive=True)
    events = [
        sd.Grasp(CRATE, to="left/arm", at=(0.5, 0, 0), joint=ball, name="crate", twist="at_rest", time=0.04),
        sd.HandOver("crate", to="right/arm", time=0.08),
        sd.ReplaceJoint("crate", sd.helical("x", pitch=0.1, passive=True), time=0.12),
        sd.Release("crate", into_world=True, time=0.16),
        sd.Grasp("crate", to="left/arm", joint=ball, time=0.2),
        sd.Release("crate", time=0.24),
    ]
    run = sd.simulate(tree, sd.State(tree), 0.28, events=events)
    scene = filmed(run, ("com", "momentum"), fps=100)
    for link in tree.links:
        poses = run.pose(link, scene.times)
        there = ~np.isnan(poses[:, 0, 0])
        assert node_of(scene, link).shown.all() and there.any()
        np.testing.assert_allclose(node_of(scene, link).poses[there], poses[there], atol=1e-12)
    crate = node_of(scene, "crate")
    assert np.linalg.norm(np.diff(crate.poses[:, :3, 3], axis=0), axis=1).max() < 0.03
    assert [flash.text.split(":")[0] for flash in texts_of(scene)] == [
        "grasp crate", "hand over crate", "replace joint of crate", "release crate", "grasp crate", "release crate"
    ]  # fmt: skip


def test_bodies_of_one_name_are_told_apart() -> None:
    """Two crates wait; the first one still falls while the second one is grasped and its mark is at the second."""
    tree = arm()
    first, second = (
        sd.Grasp(CRATE, to="lower", at=(0.5, 0, 0), name="crate", twist="at_rest", time=t) for t in (0.1, 0.3)
    )
    events = [first, sd.Release("crate", time=0.2), second, sd.Release("crate", time=0.4)]
    run = sd.simulate(tree, sd.State(tree, [-0.6, 0.4], qd=[1.0, 1.0]), 0.5, events=events)
    scene = filmed(run, ("momentum",))
    one, other, t = node_of(scene, "crate"), node_of(scene, "crate (2)"), scene.times
    assert one.shown.all() and other.shown.all()
    grasped = [happened.event.payload.pose for happened in run.events[::2]]
    np.testing.assert_allclose(one.poses[t < 0.1], np.tile(grasped[0], (5, 1, 1)))
    np.testing.assert_allclose(other.poses[t < 0.3], np.tile(grasped[1], (15, 1, 1)), atol=1e-12)
    np.testing.assert_allclose(one.poses[8], run.pose("crate", t[8]), atol=1e-12)
    np.testing.assert_allclose(other.poses[18], run.pose("crate", t[18]), atol=1e-12)
    assert (np.diff(one.poses[11:, 1, 3]) < 0).all() and (np.diff(one.poses[11:, 1, 3], 2) < 0).all()
    np.testing.assert_allclose(texts_of(scene)[-2].poses[0, :3, 3], grasped[1][:3, 3], atol=1e-3)


def test_a_released_body_that_is_grasped_again_flies_until_then() -> None:
    tree = arm()
    grasp = sd.Grasp(CRATE, to="lower", at=(0.5, 0, 0), name="crate", twist="at_rest", time=0.1)
    run = sd.simulate(tree, sd.State(tree), 0.2, events=[grasp, sd.Release("crate", time=0.2)])
    released = run.events[1].event.released
    again = sd.Grasp(released, to="lower", name="crate", time=0.25)
    run += sd.simulate(tree, run.states[-1], 0.1, t0=0.2, events=[again])
    scene = filmed(run)
    crate = node_of(scene, "crate")
    assert crate.shown.all() and not any(node.name == "crate (2)" for node in scene.nodes)
    held = scene.times >= 0.25
    np.testing.assert_allclose(crate.poses[held], run.pose("crate", scene.times[held]), atol=1e-12)


def test_events_are_marked_where_and_when_they_happen(run, scene) -> None:
    grasp, release = texts_of(scene)
    lost = run.events[0].event.energy_lost
    assert lost > 0 and grasp.parts[0].solids[0].color == IMPACT and grasp.text == f"grasp crate: {lost:.3g} J lost"
    assert release.parts[0].solids[0].color != IMPACT and release.text == "release crate"
    np.testing.assert_allclose(grasp.poses[0, :3, 3], run.pose("crate", GRASP)[:3, 3], atol=1e-9)
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
    longer = run_scene(run.motions, run.events, 10)
    np.testing.assert_allclose(longer.camera.target, camera.target, atol=0.1)


def test_a_tree_that_stands_still() -> None:
    tree = arm()
    scene = still(tree, np.zeros(2))
    assert [node.name for node in scene.nodes] == ["base", "upper", "lower"] and not texts_of(scene)
    np.testing.assert_allclose(node_of(scene, "lower").poses[0], tree.forward_kinematics("lower", [0, 0]))


def test_a_loop_moves_with_its_link_while_it_is_closed() -> None:
    tree, q = arm(), np.array([0.3, 0.5])
    cut = tree.copy()
    tree.close("lower", to="base", joint=sd.revolute("y", point=(1, 0, 0)), name="base/pin")
    closed, opened = (Stage(x, t, t + 1, at_rest(x, q), x.links) for t, x in ((0.0, tree), (1.0, cut)))
    scene = stage_scene([closed, opened], np.array([0.0, 0.5, 1.0, 1.5]))
    pin = scene.nodes[-1]
    assert (pin.name, pin.group, [len(part.solids) for part in pin.parts]) == ("base/pin", LOOPS, [2])
    np.testing.assert_array_equal(pin.shown, [True, True, False, False])
    np.testing.assert_allclose(pin.poses[1], tree.forward_kinematics("lower", q))
    assert [scene.legend(frame) for frame in (0, 3)] == [[("loop base/pin", LOOP)], []]
    waiting = replace(closed, waiting=True)
    assert [node.group for node in stage_scene([waiting], scene.times).nodes] == 3 * ["links"]


def test_opening_of_a_loop_is_marked_and_ends_its_drawing() -> None:
    tree = sd.KinematicTree()
    for name, x in (("left", 0.0), ("right", 1.0)):
        tree.attach(sd.Inertia.point(1.0, (0, 0, -1)), to="base", joint=sd.revolute("y"), at=(x, 0, 0), name=name)
    tree.attach(sd.Inertia.rod(1.0, 1.0, com=(0.5, 0, 0)), to="left", joint=sd.revolute("y"), at=(0, 0, -1), name="bar")
    tree.close("right", to="bar", joint=sd.revolute("y", point=(0, 0, -1)), at=(1, 0, 1), name="pin")
    run = sd.simulate(tree, sd.State(tree), 0.2, events=[sd.Open("pin", time=0.1)])
    scene = filmed(run)
    (flash,) = texts_of(scene)
    assert flash.text == "open pin"
    q = run.at(0.1).q
    np.testing.assert_allclose(
        flash.poses[0, :3, 3], (tree.forward_kinematics("right", q) @ [0, 0, -1, 1])[:3], atol=1e-12
    )
    np.testing.assert_array_equal(flash.shown, scene.times >= 0.1)
    np.testing.assert_array_equal(node_of(scene, "pin").shown, scene.times < 0.1)


def test_marks_name_joints_and_loops_as_the_figure_does() -> None:
    tree, q = arm(), [0.3, 0.5]
    tree.close("lower", to="base", at=tree.forward_kinematics("lower", q), joint=sd.spherical(), name="pin")
    ball = sd.Close("lower", to="base", joint=sd.spherical(), name="ball", time=0.1)
    events = [sd.Open("pin", time=0.0), sd.Lock("elbow", time=0.05), ball]
    run = sd.simulate(tree, sd.State(tree, q), 0.2, events=events)
    assert [flash.text.split(":")[0] for flash in texts_of(filmed(run))] == ["open pin", "lock elbow", "close ball"]


def test_the_joints_of_a_long_chain_are_not_larger_than_its_links() -> None:
    tree, parent = sd.KinematicTree(), "base"
    for k in range(40):
        rod = sd.Inertia.rod(1.0, 0.2, com=(0.1, 0, 0))
        tree.attach(rod, to=parent, joint=sd.revolute("zy"[k % 2]), at=(0.2 if k else 0, 0, 0), name=f"link{k}")
        parent = f"link{k}"
    pins = []
    for robot, links in ((tree, ("link7", "link30")), (sd.robots.ur5(), ("forearm_link", "wrist_1_link"))):
        scene = still(robot, np.zeros(robot.nq), View("joints"))
        for link in links:
            (joint,) = (part for part in node_of(scene, link).parts if part.name == "joint")
            pins.append(np.ptp(joint.solids[0].vertices, axis=0).max() / scene.size)
    assert max(pins[:2]) * 7.8 < 0.2
    np.testing.assert_allclose(pins[2:], 0.1, rtol=0.02)  # a tenth of an arm, as ever


def test_a_camera_is_where_it_is_asked_to_be() -> None:
    tree, q = arm(), np.array([0.3, 0.5])
    exact = still(tree, q, View(camera=[(1, 2, 3), (0.5, 0, 0)])).camera
    np.testing.assert_allclose([exact.position, exact.target], [(1, 2, 3), (0.5, 0, 0)])
    beside = still(tree, q, View(camera=(0, 0, 7), size=(300, 100))).camera
    sight = beside.target - beside.position
    np.testing.assert_allclose(sight / np.linalg.norm(sight), (0, 0, -1), atol=1e-12)
    # In the plane of the picture, x to the right and y up, the arm fits.
    reach = np.linalg.norm(sight) * np.tan(np.radians(20))
    ends = np.array([(0, 0), tree.forward_kinematics("lower", q)[:2] @ (0.5, 0, 0, 1)]) - beside.target[:2]
    assert 0.5 < np.abs(ends / (3 * reach, reach)).max() < 1
    above = still(tree, q, View(camera=(0, 1, 0))).camera  # along gravity
    assert np.linalg.norm(np.cross(above.up, above.target - above.position)) > 0
    for wrong in ((0, 0, 0), (1, 2), "top", [(1, 2, 3), (1, 2, 3)], (1, np.nan, 0)):
        with pytest.raises(sd.ScrewdynError, match="camera is the direction"):
            View(camera=wrong)


@pytest.mark.slow
def test_what_is_hidden_is_not_drawn_and_what_is_shown_is() -> None:
    tree = sd.KinematicTree()
    rod, cover = sd.Inertia.rod(1.0, 0.5, com=(0, 0, 0.25)), sd.Shape.capsule(0.05, 0.5, pose=(0, 0, 0.25))
    hull = sd.Shape.box((0.2, 0.2, 0.6), use="collision")
    tree.attach(rod, to="base", joint=sd.revolute("x", name="hip"), name="leg", shape=[cover, hull])
    foot = sd.revolute("x", passive=True, name="ankle")
    tree.attach(rod, to="leg", joint=foot, at=(0, 0, 0.5), name="foot", shape=cover)
    tree.attach(rod, to="leg", joint=sd.revolute("x", name="knee"), at=(0, 0, 0.4), name="bare")

    def parts(*show, hide=()):
        nodes = still(tree, np.zeros(3), View(show, hide)).nodes
        return {node.name: [part.name for part in node.parts] for node in nodes}

    # Pins would stick out of shapes; those of passive joints are seen all the same.
    assert parts() == {"base": [], "leg": ["body"], "foot": ["body", "joint"], "bare": ["body", "joint"]}
    assert parts("joints")["leg"] == ["body", "joint"]
    assert parts(hide=("joints", "leg")) == {"base": [], "foot": ["body"], "bare": ["body"]}
    (part,) = node_of(still(tree, np.zeros(3), View("collision")), "leg").parts
    np.testing.assert_allclose(np.ptp(part.solids[0].vertices, axis=0), (0.2, 0.2, 0.6))
    assert not texts_of(filmed(swing(), hide="events"))
    with pytest.raises(sd.UnknownNameError, match="'gird'; did you mean 'grid'"):
        parts(hide="gird")


def test_no_bar_joins_the_bases_of_two_robots() -> None:
    tree = sd.KinematicTree()
    for side in (-1, 1):
        tree.attach(arm(), to="base", at=(0, side, 0), prefix=f"{side}/")
    assert not node_of(still(tree, np.zeros(4)), "base").parts


def test_unknown_things_to_show_are_refused(run) -> None:
    with pytest.raises(
        sd.ScrewdynError, match="show may name 'collision', 'com', 'contacts', 'joints', 'momentum'; got 'mass'"
    ):
        filmed(run, ("mass",))
    with pytest.raises(sd.ScrewdynError, match="hide must be a name or several names; got 5"):
        run.animate("run.html", hide=5)
    with pytest.raises(sd.ScrewdynError, match="fps must be a number of frames per second > 0; got 0"):
        run.animate("run.html", fps=0)
    with pytest.raises(
        sd.ScrewdynError, match=r"1e\+09 frames per second are [0-9]+ frames, and a film has at most 100000"
    ):
        run.animate("run.html", fps=1e9)


@pytest.mark.parametrize("size", [0.03, 0.3, 3.0, 0.7])
def test_a_grid_has_cells_of_round_sizes(scene, size):
    cell, cells = replace(scene, size=size).grid
    assert size / 10 < cell <= size / 3 * (1 + 1e-9) and cell * cells >= 1.5 * size
    assert f"{cell:.0e}"[0] in "125"


def test_arrows_show_the_forces_of_contacts_in_one_scale():
    """A bar on two points bears its weight by the law of the lever; one arrow for each contact that is loaded."""
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.box(3.0, (1, 0.2, 0.1), com=(0.25, 0, 0)), to="base", joint=sd.free(), name="bar")
    for name, x in (("near", 0.0), ("far", 1.0)):
        feet = [(x, y, 0) for y in (-0.1, 0.1)]
        tree.touch("bar", to="base", on=sd.Plane(), points=feet, friction=0.5, name=name)
    run = sd.simulate(tree, sd.State(tree), 0.2, step=0.05)
    scene = run_scene(run.motions, run.events, 20.0, View(("contacts",)))
    near, far = scene.arrows
    np.testing.assert_allclose(near.start, np.zeros((5, 3)), atol=1e-9)
    np.testing.assert_allclose(far.start, np.tile([1.0, 0, 0], (5, 1)), atol=1e-9)
    longer, shorter = ((arrow.end - arrow.start)[:, 2] for arrow in (near, far))
    np.testing.assert_allclose(longer / shorter, 3, rtol=1e-6)
    assert near.name == f"force at near, up to {0.75 * 3 * 9.81:.3g} N"
    assert View(("contacts",)) and still(tree, tree.neutral(), View(("contacts",))).arrows == ()
