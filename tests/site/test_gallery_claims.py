"""What the gallery and the lessons say: each test checks what the example of its name has computed.

``nox -s docs`` calls it on what Sphinx-Gallery has just computed for the site (``keep`` and ``check``); run by pytest,
it executes the example once more, and says more of what differs.
"""

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import sympy as sp
from numpy.testing import assert_allclose

import screwdyn as sd

pytestmark = pytest.mark.site
EXAMPLES = [
    path for room in ("gallery", "lessons") for path in (Path(__file__).parents[2] / "examples" / room).glob("*.py")
]


last = SimpleNamespace()


def keep(block, block_vars, gallery_conf):
    """As a scraper of images: remember the names of an example that is being executed."""
    last.found = block_vars["example_globals"]
    return ""


def check(gallery_conf, path, when):
    """As a function that follows an example: call its test."""
    if path is None:  # the beginning of a folder
        return
    name = f"test_{Path(path).stem}"
    try:
        globals()[name](SimpleNamespace(**last.found))
    except Exception as error:
        raise AssertionError(f"what {path} says does not hold {error}: pytest -m site {__file__} -k {name}") from error


@pytest.fixture
def found(request, monkeypatch, tmp_path):
    """The names that the example has at its end."""
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda: None)
    name = request.node.name.removeprefix("test_")
    with plt.rc_context({"backend": "Agg"}):
        (path,) = (path for path in EXAMPLES if path.stem == name)
        yield SimpleNamespace(**runpy.run_path(str(path)))
    plt.close("all")


def test_every_example_has_a_test():
    assert {f"test_{path.stem}" for path in EXAMPLES} < set(globals())


def test_c_on_a_microcontroller(found):
    loaded = found.arm.inverse_dynamics(found.q, found.qd, found.qdd)
    found.arm.detach("crate")
    empty = found.arm.inverse_dynamics(found.q, found.qd, found.qdd)
    assert_allclose(found.tau, np.where(found.carried, loaded, empty), rtol=0, atol=1e-11)
    assert max(found.sizes) < 64


def test_closed_form(found):
    """The matrices as Kelly, Santibáñez and Loría print them."""
    m1, m2, l1, l2, a1, I1, I2, g, t1, t2, w1, w2 = (
        getattr(found, name) for name in ("m1", "m2", "l1", "l2", "a1", "I1", "I2", "g", "t1", "t2", "w1", "w2")
    )
    c2, h = sp.cos(t2), m2 * a1 * l2 * sp.sin(t2)
    m12, far = m2 * (l2**2 + a1 * l2 * c2) + I2, m2 * l2 * g * sp.cos(t1 + t2)
    M = [[m1 * l1**2 + m2 * (a1**2 + l2**2 + 2 * a1 * l2 * c2) + I1 + I2, m12], [m12, m2 * l2**2 + I2]]
    assert sp.simplify(found.M - sp.Matrix(M)).is_zero_matrix
    assert sp.simplify(found.C - sp.Matrix([[-h * w2, -h * (w1 + w2)], [h * w1, 0]])).is_zero_matrix
    assert sp.simplify(found.gravity - sp.Matrix([(m1 * l1 + m2 * a1) * g * sp.cos(t1) + far, far])).is_zero_matrix


def test_collision_in_c(found):
    """At the end of the strike the observer has its torques but for exp(−60 · 0.1); then the weight of the crate."""
    assert np.abs(found.in_single - found.in_double).max() < 1e-4
    state = found.run.at(0.6 - 1e-6)
    expected = found.arm.wrench_torque(state.q, found.push)
    at = np.searchsorted(found.t, 0.6 - 1e-9) - 1
    assert_allclose(found.in_double[at], expected, atol=0.02 * np.abs(expected).max())
    assert found.alarm[found.t > 1.22].all() and not found.alarm[found.t < 0.5].any()


def test_computed_torque(found):
    """At rest, M K_p (q_path − q) is the torque of the weight: the potential energy of the crate, differentiated."""
    rest, loaded = found.runs["without"].states[-1].q, found.runs["without"].tree
    steps = np.vstack([np.eye(6), -np.eye(6)]) * 1e-5
    lever = loaded.potential_energy(rest + steps) - found.empty.potential_energy(rest + steps)
    sag = np.linalg.solve(found.KP * found.empty.mass_matrix(rest), (lever[:6] - lever[6:]) / 2e-5)
    assert_allclose(found.stations[-1] - rest, sag, atol=1e-3)
    assert found.errors["with the payload"].max() < 1e-6


def test_control_nlsys(found):
    assert_allclose(found.linear.A, found.exact.A, atol=1e-4)
    assert_allclose(found.linear.B, found.exact.B, atol=1e-6)
    assert_allclose(found.found, [found.resonance, found.notch], rtol=1e-4)


def test_crucible(found):
    assert abs(found.period - found.closed_form) < 1e-3
    assert abs(found.run.energy.residual).max() < 1e-6


def test_double_pendulum_crane(found):
    assert_allclose(found.modes, found.by_hand, rtol=1e-8)
    assert found.remaining < 0.02


def test_grip_by_friction(found):
    """The bar slips where m (g + a) = 2 μ N; then friction takes its force along the slip."""
    for mass, run in found.runs.items():
        if found.expected[mass] < 1.2:
            assert_allclose(found.slips[mass], found.expected[mass], atol=1e-9)
        else:
            assert found.slips[mass] == np.inf
        assert abs(run.energy.residual).max() < 1e-9
    run, begin = found.runs[3.5], found.slips[3.5]
    t = 1.2 - begin  # the bar keeps the acceleration with which the slip begins; that of the gripper grows faster
    assert_allclose(run.twist("bar", 1.2, frame="mixed")[5], found.JERK * begin * (begin / 2 + t), rtol=1e-8)
    slip = found.JERK * (1 + 3.5 / 1.2) * t**3 / 6
    assert_allclose(run.energy.dissipated[-1], 2 * found.FRICTION * found.PRESS * slip, rtol=1e-7)


def test_gripper(found):
    assert abs(found.run.energy.impact_loss[-1] - found.FINGER * found.SPEED**2) < 1e-9
    assert abs(found.grip[3] + found.PRESS) < 1e-9
    assert abs(found.run["lift"][-1] - found.LIFT * 0.4**2 / 2) < 1e-9  # from 0.4 s on


def test_gymnasium_crane(found):
    sway, _ = found.episode(np.zeros(4), [0, 1e-3, 0, 0])  # without force: the frequency of trolley and load
    w = np.sqrt((1 + 50 / 20) * 9.81 / 4)
    assert_allclose(sway[:, 1], 1e-3 * np.cos(w * 0.1 * np.arange(1, 81)), atol=1e-5)
    assert found.total > 0.6 * found.best[0]


def test_hand(found):
    assert all(abs(found.depth(found.run.at(0.79), f, range(3))) < 1e-7 for f in range(3))
    assert abs(found.run.torque("lift")[-1] - (0.5 + 9 * 0.03 + 0.2) * (9.81 + 2.0)) < 1e-9


def test_hook_and_table(found):
    """The swing of a compound pendulum, at rest after a period; a landing of all that the mast carries; all weight."""
    run = found.run
    half = run.at(found.go + found.period / 2)
    assert_allclose(half.q[half.positions.index("sway")], 2 * found.tilt, rtol=1e-7)
    assert_allclose(run.at(found.coast).qd[run.at(found.coast).coordinates.index("sway")], 0, atol=1e-7)
    # The tilt at the landing, some 1e-7 of two swings, differs between processors, as does when both feet stay down.
    assert_allclose(run.energy.impact_loss[-1], found.heat, rtol=3e-6)
    touches = [x.t for x in run.events if x.t > 1 and x.verb == "touch"]
    assert_allclose(touches, found.land, atol=2e-5)
    assert_allclose(touches[0], found.land, atol=1e-5)
    assert_allclose(run.contact("table", run.t[-1]).forces.sum(axis=0), [0, 0, 5 * 9.81], atol=1e-9)
    assert abs(run.energy.residual).max() < 1e-9


def test_humanoid(found):
    assert abs(found.run.energy.work[-1] - 9.81 * (found.lifted + 8 * found.box_lifted)) < 1e-3


def test_identify_load(found):
    assert abs(found.inside - 0.95) < 0.05


def test_learn_the_load(found):
    late = found.learned[0] > 3.0
    assert found.learned[1][late].max() < found.known[1][late].max() / 6
    assert abs(found.learned[2][-1, 1] - 3.0) < 0.3


def test_weigh_while_moving(found):
    error = found.parameters[-1] - found.crate.parameters
    assert error @ np.linalg.solve(found.estimator.covariance, error) < 30  # chi squared of 10 in 999 of 1000 cases
    assert found.errors[-1, 0] < 0.02 < 0.1 < found.errors[100, 0]


def test_modular_chain(found):
    assert np.ptp(found.momentum, axis=0).max() < 1e-9
    assert abs(found.momentum[0, 3] - 4.0 * 0.3) < 1e-12
    assert abs(found.run.energy.residual).max() < 1e-8


def test_monte_carlo(found):
    sink, settled = found.sink[:, 2], found.tool[-1, :, 2]
    assert np.corrcoef(sink, settled)[0, 1] > 0.999
    assert abs(sink.std() / settled.std() - 1) < 0.05


def test_plan_to_put_down(found):
    """On the shelf, beyond the reach of a load that hangs still, and almost at rest."""
    assert found.off < 0.03 and found.speed < 0.25
    assert abs(found.run["trolley"]).max() < found.RAIL + 0.02 < found.SHELF[0] - 0.5
    assert abs(found.run["trolley"][-1]) < 0.3 and len(found.seen) > 20


def test_rimless_wheel(found):
    """Each step gains the same energy, and each impact leaves the share η of the rate."""
    for rate, after in found.after.items():
        before = np.sqrt(np.array([rate, *after[:-1]]) ** 2 + found.gained)
        assert_allclose(after, found.eta * before, rtol=1e-7)
        assert abs(after[-1] - found.limit) < 0.02
        assert abs(found.runs[rate].energy.residual).max() < 1e-7


def test_robot_as_graph(found):
    assert found.passive == ["left/crate", "right/crate"]
    assert len(found.moving) == found.robot.nv == 17
    assert ((np.abs(found.M) > 1e-12) == found.pattern).all()


def test_shift_of_weight(found):
    """Newton and Euler: the forces of feet and shelf are the rate of momentum and the weight."""
    run, man = found.run, found.man
    between = ~np.isin(run.t, [event.t for event in run.events])  # where accelerations have one value
    assert_allclose(sum(found.load.values())[between], found.rate[between], atol=1e-8)
    points = np.concatenate([[x.points for x in bears] for bears in found.bearing.values()], axis=1)
    forces = np.concatenate([[x.forces for x in bears] for bears in found.bearing.values()], axis=1)
    c, rate = man.center_of_mass(run.q), man.centroidal_momentum_rate(run.q, run.qd, run.qdd)
    about = np.cross(points - c[:, None], forces).sum(axis=1)
    assert_allclose(about[between, 0], rate[between, 0], atol=1e-8)
    assert_allclose(found.load["shelf"][0], 9.81 * found.BOX)
    assert [event.verb for event in run.events] == ["close", "touch", "leave"]
    assert 0.8 < found.load["left"].max() / (9.81 * man.mass) < 1
    assert abs(run.energy.residual).max() < 1e-9


def test_stewart_platform(found):
    """The legs have the lengths that the pose of the platform demands."""
    T = found.run.pose("platform", found.END)
    for k, loop in enumerate(map(found.robot.loop, found.robot.loops)):
        tip = found.run.pose(f"{k}/rod", found.END)[:3, 3]
        length = np.linalg.norm((T @ loop.home)[:3, 3] - found.feet[k])
        assert abs(np.linalg.norm(tip - found.feet[k]) - length) < 1e-9
    assert found.robot.freedoms(found.run.states[-1].q) == 6
    assert_allclose(T[:3, 3], (0.1, 0.05, 1.1), atol=1e-3)


def test_set_down(found):
    """The crate stands still at the end, on all of its weight; in between it slid as far as friction lets it."""
    run, end = found.run, found.run.states[-1]
    assert abs(run.energy.residual).max() < 1e-9
    assert abs(end.qd[-6:]).max() < 1e-12
    assert_allclose(found.push[-1], 3 * 9.81, rtol=1e-9)
    assert_allclose(end.q[end.tree.positions.index("crate[pz]")], 0.1, atol=1e-12)
    begins, stops = (x.t for x in found.steps[-2:])
    v = run.twist("crate", begins + 1e-6)[3]
    assert_allclose(stops - begins, v / (found.FRICTION * 9.81), atol=1e-5)


def test_guide_by_hand(found):
    """Alone, the hand holds the weight of the crate, 29 N, and the pull against damping."""
    knows, lacks = found.laws
    assert found.falls[knows] < 0.003 < 0.1 < found.falls[lacks]
    assert found.pulls[lacks].max() > found.pulls[knows].max() + 25
    before = found.run.t < 1.0
    assert_allclose(found.heights[knows][before], found.heights[lacks][before], rtol=0, atol=1e-9)


def test_sway_along_a_run(found):
    assert found.last["LQR along the run"] < 0.1 * found.last["follow the arm's path"]


def test_sway_lqr(found):
    assert_allclose(found.small.q[-1] - found.q0, found.predicted[:8], rtol=0, atol=1e-4)


def test_throw_and_catch(found):
    """Differences of whole runs give the gradient; the ball flies on a parabola, and is where the palm is."""
    x, run = np.array([4.0, 1.0, -1.0, -2.0, 0.35]), found.throw(found.best.x, rtol=1e-12)
    cost, gradient = found.asked(x)
    steps = [1e-5 * unit for unit in np.eye(5)]
    found_by_differences = [(found.asked(x + s)[0] - found.asked(x - s)[0]) / 2e-5 for s in steps]
    assert_allclose(gradient, found_by_differences, rtol=1e-5)
    (start, finish), way = (found.best.x[4], found.CATCH), found.CATCH - found.best.x[4]
    place, rate = run.pose("ball", start)[:2, 3], run.twist("ball", start, frame="mixed")[3:5]
    landed = place + rate * way - np.array([0, 9.81]) * way**2 / 2
    assert_allclose(run.pose("ball", finish)[:2, 3], landed, atol=1e-9)
    assert np.linalg.norm(landed - run.pose("right palm", finish)[:2, 3]) < 1e-3
    assert cost > 100 * found.best.fun
    assert found.miss < 1e-3 and found.rate < 0.05


def test_two_arms_carry_a_bar(found):
    run = found.run
    axis, place = run.pose("left/upper_arm_link", 1.0)[:3, [1, 3]].T  # of the left shoulder, which presses with 50 N
    moment = np.cross(run.pose("left/tool0", 1.0)[:3, 3] - place, (50.0, 0, 0)) @ axis
    assert abs(found.jump[1] - moment) < 1e-6
    assert abs(found.robot.gap(run.states[-1].q)).max() < 1e-12
    assert abs(run.pose("bar", found.END)[2, 3] - run.pose("bar", 0)[2, 3] - found.LIFT) < 1e-6


def test_two_arms_hand_over(found):
    axis, place = found.run.pose("left/upper_arm_link", 2.75)[:3, [1, 3]].T  # of the shoulder
    moment = np.cross((0, 0, 0.5) - place, (0, 0, -2.0 * 9.81)) @ axis  # the crate is at (0, 0, 0.5)
    assert abs(found.passed - moment) < 1e-6
    assert found.run.energy.impact_loss[-1] < 1e-12


def test_lesson_1_screws_and_twists(found):
    """The axle stands still; the logarithm undoes the exponential; a change of frame keeps the pitch."""
    screw = sd.screw
    assert_allclose(found.V[3:] + np.cross(found.V[:3], found.axle), 0, atol=1e-15)
    assert_allclose(screw.log(screw.exp(found.bolt * 2.0)), found.bolt * 2.0, atol=1e-14)
    assert_allclose([screw.pitch(found.bolt), screw.pitch(found.other)], 0.05, rtol=1e-12)
    assert_allclose(found.first - found.second, [0, 0, 0, 0, 1, 0])
    assert_allclose(found.U[:, -1] @ found.stretched, 0, atol=1e-3)


def test_lesson_2_contributions(found):
    assert_allclose(found.by_hand, found.contribution.M.array, atol=1e-14)
    assert_allclose(found.total.matrix(found.arm.coordinates), found.before, atol=1e-14)
    assert_allclose(found.difference, found.crate.M.array, atol=1e-14)
    assert (found.arm.mass_matrix(found.q) == found.before).all()
    assert_allclose(found.of_others, found.before, atol=1e-14)
    assert np.abs(found.N + found.N.T).max() < 1e-8
    assert found.having == ["link5", "link6"]
    assert not found.pair.mass_matrix(np.tile(found.q, 2))[:6, 6:].any()


def test_lesson_3_payload_in_motion(found):
    assert_allclose([found.grasp.state.qd[0], found.grasp.energy_lost], [2.0, 3.0])
    assert 0 < found.hung.energy_lost < found.rigid.energy_lost
    assert_allclose(found.after, found.before, atol=1e-14)
    assert np.argmin(found.lost) == np.argmin(np.abs(found.share - 1)) and min(found.lost) < 1e-15
    assert np.abs(found.run.energy.residual).max() < 1e-9
    assert found.least.fun < min(map(found.energy_lost, np.linspace(-3, 3, 50))) + 1e-9
    assert_allclose(found.released.state.qd, found.hung.state.qd[:6], atol=1e-15)
    momentum = found.skater.momentum(found.second.state.q, found.second.state.qd)[2]
    assert_allclose([momentum, found.first.energy_lost + found.second.energy_lost], [found.L, 2 * 4 * 0.5**2 / 2])


def test_lesson_4_closed_forms_and_c(found):
    m2, m3, l1, l2, g, q = found.m2, found.m3, found.l1, found.l2, found.g, found.q
    assert sp.expand(found.M[1, 1] - m2 * l2**2 / 3) == 0
    assert sp.simplify(found.C - found.by_definition).is_zero_matrix
    assert sp.simplify(found.others - found.forms.mass_matrix()).is_zero_matrix
    assert sp.simplify(found.added[0, 0] - m3 * (l1**2 + l2**2 + 2 * l1 * l2 * sp.cos(q[1]))) == 0
    ur5 = sd.robots.ur5().gravity_vector([0, -1.8, 1.6, 0.2, np.pi / 2, 0])[1:4]
    at = {found.q2: -1.8, found.q3: 1.6, found.q4: 0.2}
    assert_allclose([float(row.subs(at)) for row in found.held], ur5, atol=0.01)
    assert_allclose(found.out, found.numbers.gravity_vector(found.state), rtol=1e-14)
    assert found.together < found.alone
    assert sp.simplify(found.g1 - found.g2 - g * l1 * (found.m1 / 2 + m2)) == 0
    assert sp.simplify(found.N + found.N.T).is_zero_matrix


def test_lesson_5_loops(found):
    """At a pin, no moment; the crank rests where the potential energy of the linkage is stationary."""
    linkage = found.linkage
    assert max(np.abs(linkage.gap(q)).max() for q in found.poses) < 1e-12
    assert linkage.freedoms(found.poses[0]) == 1
    assert_allclose(linkage.constraint_jacobian(found.q) @ found.qd, 0, atol=1e-13)
    assert_allclose(found.n[2] - 2.0 * found.f[1], 0, atol=1e-12)
    assert found.found.undetermined["pin"].shape[1] == 3
    assert np.abs(found.run.energy.residual).max() < 1e-5
    energy = np.array([linkage.potential_energy(q) for q in found.poses])
    slope = np.gradient(energy, found.turn)[1:-1]
    assert_allclose(found.torque[1:-1], slope, atol=0.02 * np.ptp(energy))


def test_lesson_6_swinging_load(found):
    """Two eigenvalues of a box on a rod; the regulator calms what the other leaves; the aware arm stays."""
    pendulum = np.sqrt(9.81 * 0.4 / (0.4**2 + 0.15**2 / 6))
    assert_allclose(np.linalg.eigvals(found.locked.linearize(found.q0[6:]).A).imag.max(), pendulum, rtol=1e-6)
    left, calmed = (np.abs(run.q[run.t > 4, 6] - found.q0[6]).max() for run in found.runs.values())
    assert calmed < 0.02 < 0.15 < left
    slowest = -np.linalg.eigvals(found.A - found.B @ found.regulator).real.max()
    swing = -np.linalg.eigvals(found.damped.linearize(found.q0).A[found.hook_rows]).real.max()
    assert_allclose([slowest, swing], [0.33, 0.87], atol=0.005)
    assert abs(found.offsets["aware"]).max() < 1e-4 < 0.05 < abs(found.offsets["unaware"]).max()
