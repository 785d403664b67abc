"""Simulations with contacts against closed forms, against loops that hold in both directions, and their ledger."""

import math
import pickle

import numpy as np
import pytest
from cases import FULL_SOAK
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog

import screwdyn as sd
from screwdyn.simulation import bounded
from screwdyn.testing import random_inertia, random_tree

g = 9.81
SIZE = (0.4, 0.3, 0.2)
FEET = [(x, y, -0.1) for x in (0.2, -0.2) for y in (0.15, -0.15)]
FINE = {"rtol": 1e-10, "atol": 1e-12}


def body(inertia, joint=None):
    tree = sd.KinematicTree()
    tree.attach(inertia, to="base", joint=joint or sd.free(), name="body")
    return tree


def crate(friction, restitution=0.0, on=None, height=0.1):
    tree = body(sd.Inertia.box(3.0, SIZE))
    floor = on or sd.Plane()
    tree.touch("body", on=floor, points=FEET, friction=friction, restitution=restitution, name="floor")
    q = tree.neutral()
    q[6] = height
    return tree, q


def ball(friction=0.3, restitution=0.0, height=0.1):
    tree = body(sd.Inertia.sphere(2.0, 0.1))
    tree.touch("body", "base", on=sd.Plane(), points=(0, 0, 0), radius=0.1, friction=friction, restitution=restitution)
    q = tree.neutral()
    q[6] = height
    return tree, q


def happened(run):
    return [(x.event.change, x.event.points) for x in run.events if isinstance(x.event, sd.ContactEvent)]


def times(run, change):
    return [x.t for x in run.events if isinstance(x.event, sd.ContactEvent) and x.event.change == change]


def residual(run):
    return np.abs(run.energy.residual).max()


def test_a_bouncing_ball_comes_to_rest_at_the_limit_of_its_series():
    """t = √(2h/g) (1 + 2e/(1 − e)); positions of 0.1 m have errors of 1e-17 m at each of some thirty bounces."""
    tree, q = ball(restitution=0.6, height=1.1)
    run = sd.simulate(tree, sd.State(tree, q), 2.0, step=0.05, **FINE)
    first = math.sqrt(2 / g)
    assert_allclose(times(run, "touch")[:3], first * np.array([1, 2.2, 2.92]), rtol=1e-13)
    assert_allclose(times(run, "rest"), first * (1 + 2 * 0.6 / 0.4), rtol=1e-9)
    assert_allclose(run.states[-1].q[6], 0.1, atol=1e-15)
    assert_array_equal(run.states[-1].qd, np.zeros(6))
    assert_allclose(run.energy.impact_loss[-1], 2 * g, rtol=1e-12)
    assert residual(run) < 1e-12


@pytest.mark.parametrize("gap", [-1e-12, -1e-14, 0.0])
@pytest.mark.parametrize("rate", [1.1e-7, 1e-6])
def test_a_ball_that_would_not_rise_out_of_the_rounding_of_its_gap_stays(gap, rate):
    tree, q = ball()
    q[6] += gap
    run = sd.simulate(tree, sd.State(tree, q, rate * np.eye(6)[5]), 0.1, step=0.05)
    assert happened(run) == ([] if rate**2 < -2 * g * gap else [("touch", (0,))])
    assert_allclose(run.states[-1].q[6], 0.1, atol=1e-15)
    assert residual(run) < 1e-14 - 2 * g * gap  # of the weight that is lifted to the floor


def test_a_sphere_slides_and_then_rolls():
    """At t = 2 v0 / (7 μ g) with 5/7 of its speed; friction has taken m v0² / 7."""
    tree, q = ball()
    run = sd.simulate(tree, sd.State(tree, q, [0, 0, 0, 2.0, 0.5, 0]), 0.4, step=0.01, rtol=1e-12, atol=1e-14)
    v0, end = math.hypot(2, 0.5), run.states[-1]
    R = tree.forward_kinematics("body", end.q)[:3, :3]
    assert happened(run) == [("rest", (0,))]
    assert_allclose(run.events[0].t, 2 * v0 / (7 * 0.3 * g), atol=1e-9)
    assert_allclose(R @ end.qd[3:], np.array([2, 0.5, 0]) * 5 / 7, atol=1e-12)
    assert_allclose(run.energy.dissipated[-1], 2 * v0**2 / 7, atol=1e-12)
    assert residual(run) < 1e-10  # in steps of up to 0.08 s
    sliding, rolling = (run.contact("body/base", t) for t in (0.1, 0.3))
    assert (sliding.states, rolling.states) == (("slides",), ("sticks",))
    assert_allclose(np.linalg.norm(sliding.forces[0, :2]), 0.3 * 2 * g, rtol=1e-9)
    assert_allclose(rolling.forces[0], [0, 0, 2 * g], atol=1e-9)
    assert_allclose(rolling.slips, 0, atol=1e-10)  # of the polynomial between samples
    assert sliding.slips[0, :2] @ sliding.forces[0, :2] < 0


def test_a_crate_slides_and_stops():
    tree, q = crate(0.3)
    run = sd.simulate(tree, sd.State(tree, q, [0, 0, 0, 1.0, 0.3, 0]), 0.6, step=0.02, **FINE)
    v = math.hypot(1, 0.3)
    assert happened(run) == [("rest", (0, 1, 2, 3))]
    assert_allclose(run.events[0].t, v / (0.3 * g), atol=1e-9)
    assert_allclose(math.hypot(*run.states[-1].q[4:6]), v**2 / (0.6 * g), atol=1e-12)
    assert_allclose(run.states[-1].qd, 0, atol=1e-14)
    assert residual(run) < 1e-12
    assert run.events[0].verb == "rest at" and run.events[0].subject == "floor"


@pytest.mark.slow
@pytest.mark.parametrize("angle", [0.3, 0.37, 0.41, 0.45])  # atan 0.4 = 0.3805
def test_a_crate_on_an_incline_rests_below_the_threshold(angle):
    n = np.array([math.sin(angle), 0, math.cos(angle)])
    tree, _ = crate(0.4, on=sd.Plane(n))
    q = np.r_[0, math.sin(angle / 2), 0, math.cos(angle / 2), 0.1 * n]
    run = sd.simulate(tree, sd.State(tree, q), 0.5, step=0.1, **FINE)
    a = max(0.0, g * (math.sin(angle) - 0.4 * math.cos(angle)))
    assert_allclose(np.linalg.norm(run.states[-1].q[4:] - q[4:]), a / 8, atol=1e-12)
    assert residual(run) < 1e-12
    assert run.contact("floor", 0.25).states == (("slides" if a else "sticks"),) * 4


@pytest.mark.parametrize("way", [1, -1])
def test_a_slip_begins_at_rest_where_feet_still_leave_or_approach_within_rounding(way):
    """What is left of the rates of gaps, taken away alone, would leave a slip of 0.04 um/s against the friction."""
    tree, q = crate(0.4)
    tree.gravity = g * np.array([0.8 * math.sin(0.5), 0.6 * math.sin(0.5), -math.cos(0.5)])
    run = sd.simulate(tree, sd.State(tree, q, 4e-7 * way * np.array([0, 1, 0, 0.1, 0, 0])), 0.1, step=0.05)
    a = g * (math.sin(0.5) - 0.4 * math.cos(0.5))
    assert_allclose(run.states[-1].q[4:6], a * 0.1**2 / 2 * np.array([0.8, 0.6]), atol=1e-12)
    assert residual(run) < 1e-12


@pytest.mark.parametrize("way", [1, -1])
def test_a_slip_begins_where_rear_feet_bear_nothing(way):
    """A crate of half the width of its height slides on an incline at which it is about to tip."""
    tree = sd.KinematicTree()
    size, angle = (0.2, 0.3, 0.4), math.atan(0.52)
    tree.attach(sd.Inertia.box(2.0, size), to="base", joint=sd.free(), name="body", shape=sd.Shape.box(size))
    tree.touch("body", to="base", on=sd.Plane(), friction=0.5, name="floor")
    tree.gravity = g * np.array([way * math.sin(angle), 0, -math.cos(angle)])
    q = tree.neutral()
    q[6] = 0.2
    run = sd.simulate(tree, sd.State(tree, q), 0.1, step=0.05)
    a = g * (math.sin(angle) - 0.5 * math.cos(angle))
    assert_allclose(run.states[-1]["body[px]"], way * a * 0.1**2 / 2, atol=3e-10)


@pytest.mark.slow
def test_a_slip_begins_hardly_beyond_its_threshold():
    tree, q = crate(0.4)
    angle = math.atan(0.4 * (1 + 3e-5))
    tree.gravity = g * np.array([0.8 * math.sin(angle), 0.6 * math.sin(angle), -math.cos(angle)])
    run = sd.simulate(tree, sd.State(tree, q), 0.5, step=0.1)
    slip = 0.4 * 3e-5 * math.cos(angle) * g * 0.5**2 / 2
    assert_allclose(run.states[-1].q[4:6], [0.8 * slip, 0.6 * slip], rtol=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("ramp", "friction"), [(10.0, 0.3), (100.0, 0.6), (3.0, 0.1)])
def test_a_crate_begins_to_slip_on_a_plate_that_moves(ramp, friction):
    """Both of 1 kg: together up to a = mu g at 2 mu g / ramp, then each on its own."""
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.box(1.0, (1, 1, 0.1)), to="base", joint=sd.prismatic("x", name="plate"), name="plate")
    tree.attach(sd.Inertia.box(1.0, SIZE), to="base", joint=sd.free(), name="body")
    tree.touch("body", to="plate", on=sd.Plane((0, 0, 1), 0.05), points=FEET, friction=friction, name="floor")
    q = tree.neutral()
    q[tree.positions.index("body[pz]")] = 0.15
    begin, end, push = 2 * friction * g / ramp, 1.0, friction * g
    run = sd.simulate(tree, sd.State(tree, q), end, lambda t, state: {"plate": ramp * t}, step=0.1)
    rest, place, rate = end - begin, ramp * begin**3 / 12, ramp * begin**2 / 4
    both = place + rate * rest
    forced = ramp * (end**3 / 6 - begin**2 * end / 2 + begin**3 / 3)
    wanted = [both + forced - push * rest**2 / 2, both + push * rest**2 / 2]
    assert_allclose([run.states[-1][x] for x in ("plate", "body[px]")], wanted, atol=1e-10)
    assert [event for event, _ in happened(run)] == ["slip"] and residual(run) < 1e-9


@pytest.mark.slow
def test_a_crate_that_is_pushed_harder_and_harder_slips_when_all_its_feet_must():
    """Its front feet bear more, so that forces of least norm would let the rear feet slip long before."""
    tree, q = crate(0.4)
    push = {"wrenches": lambda t, state: {"body": [0, 0, 0, 2 * (t + 5.7), 0, 0]}}
    run = sd.simulate(tree, sd.State(tree, q), 0.18601, step=0.05, **push, **FINE)
    assert happened(run) == [("slip", (0, 1, 2, 3))]
    assert_allclose(run.events[0].t, 0.4 * 3 * g / 2 - 5.7, atol=1e-7)
    assert residual(run) < 1e-12


@pytest.mark.parametrize("heavy", [1e4, 1e6])
def test_a_foot_creeps_to_rest_along_a_direction_of_large_inertia(heavy):
    """F - mu N sin a = m dvx/dt and -mu N cos a = (m + M) dvy/dt at one angle a; steps do not follow its balance."""
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.sphere(1.0, 0.1), to="base", joint=sd.prismatic("y", armature=heavy), name="rail")
    tree.attach(sd.Inertia.sphere(1.0, 0.1), to="rail", joint=sd.prismatic("x"), name="cart")
    tree.attach(sd.Inertia.sphere(1.0, 0.1), to="cart", joint=sd.prismatic("z"), name="foot")
    tree.touch("foot", "base", on=sd.Plane(), points=(0, 0, 0), friction=0.5, name="floor")
    grip, push, calls = 0.5 * g, 0.3 * g, []
    sine = push / grip / (1 - 2 / (heavy + 3))
    tangent, v = sine / math.sqrt(1 - sine**2), 7e-5
    end = (heavy + 3) * v / (grip * math.sqrt(1 - sine**2))
    start = sd.State(tree, tree.neutral(), [v, tangent * v, 0])
    run = sd.simulate(tree, start, 1.1 * end, lambda t, _: calls.append(t) or {"cart": push}, step=end / 10)
    assert_allclose(times(run, "rest"), end, rtol=2e-4)
    assert_allclose(run.states[-1].q, [v * end / 2, tangent * v * end / 2, 0], rtol=1e-6)
    assert residual(run) < 1e-14 and len(calls) < 5000


@pytest.mark.slow
@pytest.mark.parametrize(("friction", "least"), [(0.0, 50), (0.7, 30)])
def test_a_biped_lands_with_two_feet_that_are_almost_redundant(friction, least):
    """On ice, rear points leave while they approach by 2 nm/s, which alone cannot be taken away; else, one creeps."""
    tree = sd.KinematicTree()
    trunk = sd.free(name="trunk", passive=True)
    tree.attach(sd.Inertia.box(3, (0.2, 0.3, 0.2)), to="base", joint=trunk, name="body")
    for side, y in (("left", 0.12), ("right", -0.12)):
        hip, ankle = (sd.revolute("y", name=f"{side} {name}") for name in ("hip", "ankle"))
        leg, sole, size = f"{side} leg", f"{side} foot", (0.2, 0.1, 0.05)
        rod = sd.Inertia.rod(1, 0.4, axis="z", com=(0, 0, -0.2))
        tree.attach(rod, to="body", at=(0, y, -0.1), joint=hip, name=leg)
        tree.attach(sd.Inertia.box(0.5, size), to=leg, at=(0, 0, -0.425), joint=ankle, name=sole)
        tree.set_shapes(sole, sd.Shape.box(size))
        tree.touch(sole, to="base", on=sd.Plane(), friction=friction, name=f"{side} floor")
    q = tree.neutral()
    q[6] = 0.6

    def held(t, state):
        return {x: -300 * state[x] - 10 * state.velocity(x) for x in tree.active}

    run = sd.simulate(tree, sd.State(tree, q, np.r_[0.1, 0.2, 0, 0.5, 0, 0, np.zeros(4)]), 0.4, held, step=0.02)
    assert len(run.events) > least and residual(run) < 1e-10
    assert min(tree.contact_gaps(state.q).min() for state in run.states) > -1e-9


@pytest.mark.slow
@pytest.mark.parametrize("frictions", [(0.5, 0.4, 0.3), (0.5, 0.5, 0.5)])
def test_three_crates_of_which_the_lowest_is_yanked_come_to_rest(frictions):
    """Feet that share a load need less friction than the most: on the surface of a cone they would leave it at once."""
    tree, q = sd.KinematicTree(), []
    cube = [(x, y, -0.1) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]
    for k, friction in enumerate(frictions):
        tree.attach(sd.Inertia.box(1.0, (0.2, 0.2, 0.2)), to="base", joint=sd.free(), name=f"crate {k}")
        on, to = (sd.Plane((0, 0, 1), 0.1), f"crate {k - 1}") if k else (sd.Plane(), "base")
        tree.touch(f"crate {k}", to=to, on=on, points=cube, friction=friction, name=f"floor {k}")
        q += [0, 0, 0, 1, 0, 0, 0.1 + 0.2 * k]
    run = sd.simulate(tree, sd.State(tree, q, [0, 0, 0, 1.0, *np.zeros(14)]), 0.7, step=0.02)
    assert np.abs(run.states[-1].qd).max() < 1e-7 and residual(run) < 2e-9
    assert min(tree.contact_gaps(state.q).min() for state in run.states) > -1e-9


def test_a_crate_dropped_flat_bounces_and_rests_on_equal_feet():
    tree, q = crate(0.3, 0.5, height=1.1)
    run = sd.simulate(tree, sd.State(tree, q), 2.0, step=0.05, **FINE)
    assert_allclose(times(run, "rest"), 3 * math.sqrt(2 / g), rtol=1e-10)
    assert_allclose(run.states[-1].q, [0, 0, 0, 1, 0, 0, 0.1], atol=1e-14)
    assert_allclose(run.contact("floor", 2.0).forces, np.outer(np.ones(4), [0, 0, 3 * g / 4]), atol=1e-12)
    assert residual(run) < 1e-12


def test_one_crate_falls_on_another_and_slides_to_rest():
    """The impact brakes it by μ times its normal impulse."""
    tree = sd.KinematicTree()
    for name, mass in (("lower", 3.0), ("upper", 1.0)):
        tree.attach(sd.Inertia.box(mass, SIZE), to="base", joint=sd.free(), name=name)
    tree.touch("lower", "base", on=sd.Plane(), points=FEET, friction=0.5, name="floor")
    tree.touch("upper", "lower", on=sd.Plane((0, 0, 1), 0.1), points=FEET, friction=0.3, name="lid")
    q, qd = tree.neutral(), np.zeros(12)
    q[6], q[11], q[13], qd[9] = 0.1, 0.03, 0.35, 0.5
    run = sd.simulate(tree, sd.State(tree, q, qd), 0.5, step=0.05, **FINE)
    fall, slip = math.sqrt(0.1 / g), 0.5 - 0.3 * math.sqrt(2 * g * 0.05)
    assert_allclose(run.states[-1].q[11] - 0.03, 0.5 * fall + slip**2 / (0.6 * g), atol=1e-12)
    assert_allclose(run.contact("floor", 0.5).forces.sum(axis=0), [0, 0, 4 * g], atol=1e-10)
    assert happened(run) == [("touch", (0, 1, 2, 3)), ("rest", (0, 1, 2, 3))]
    assert residual(run) < 1e-12


def test_housners_rocking_block():
    """ω⁺/ω⁻ = 1 − 3/2 sin²α of a block that does not slip, as it falls from one edge on the other."""
    b, h, angle = 0.15, 0.4, 0.2
    tree = body(sd.Inertia.box(5.0, (2 * b, 0.1, 2 * h)), sd.planar("y"))
    tree.touch("body", "base", on=sd.Plane(), points=[(b, 0, -h), (-b, 0, -h)], friction=2.0)
    q = [angle, 0, -b * math.sin(angle) - h * math.cos(angle)]
    run = sd.simulate(tree, sd.State(tree, q), 0.6, step=0.05, rtol=1e-12, atol=1e-14)
    t = times(run, "touch")[0]
    ratio = run.at(t).qd[0] / run.at(t, "before").qd[0]
    assert_allclose(ratio, 1 - 1.5 * math.sin(math.atan(b / h)) ** 2, atol=1e-12)
    assert happened(run)[:2] == [("touch", (1,)), ("leave", (0,))]
    assert residual(run) < 1e-11


def test_a_rimless_wheel_follows_its_return_map():
    """w² ← η² w² + 4 m g l sin α sin γ / (I + m l²) at each step."""
    slope, a = 0.08, math.pi / 8
    tree = body(sd.Inertia.box(1.0, (0.7, 0.1, 0.7)), sd.planar("y"))
    tree.gravity = (g * math.sin(slope), 0, -g * math.cos(slope))
    inertia = tree.mass_matrix(np.zeros(3))[0, 0]
    spokes = [(math.sin(2 * a * k), 0, -math.cos(2 * a * k)) for k in range(8)]
    tree.touch("body", "base", on=sd.Plane(), points=spokes, friction=1.0)
    run = sd.simulate(tree, sd.State(tree, [0, 0, -1.0], [1.6, 1.6, 0]), 3.0, step=0.1, **FINE)
    w = np.array([run.at(t, "before").qd[0] for t in times(run, "touch")]) ** 2
    eta, c = (inertia + math.cos(2 * a)) / (inertia + 1), 4 * g * math.sin(a) * math.sin(slope) / (inertia + 1)
    assert len(w) > 3
    assert_allclose(w[1:], eta**2 * w[:-1] + c, atol=1e-10)
    assert residual(run) < 1e-9


@pytest.mark.parametrize(("impacts", "rates"), [("at once", [-0.6, 0.4, 0.4, 0.4, 0.4]), ("by pairs", [0, 0, 0, 0, 1])])
def test_newtons_cradle(impacts, rates):
    """Both keep energy and momentum; all at once is the law that does not depend on an order."""
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    for k in range(5):
        tree.attach(sd.Inertia.sphere(1, 0.05), to="base", joint=sd.prismatic("x"), at=(0.1 * k, 0, 0), name=f"b{k}")
    for k in range(4):
        tree.touch(f"b{k + 1}", f"b{k}", on=sd.Ball(0.05), points=(0, 0, 0), radius=0.05, restitution=1)
    run = sd.simulate(tree, sd.State(tree, np.zeros(5), [1.0, 0, 0, 0, 0]), 0.1, step=0.05, impacts=impacts)
    assert_allclose(run.states[-1].qd, rates, atol=1e-13)
    assert residual(run) < 1e-13
    with pytest.raises(sd.ScrewdynError, match="impacts must be 'at once' or 'by pairs'; got 'both'"):
        sd.simulate(tree, sd.State(tree), 0.1, impacts="both")


@pytest.mark.parametrize(("friction", "joint"), [(5.0, sd.fixed()), (0.0, sd.planar("z"))])
def test_a_crate_on_a_moving_palm_moves_as_a_loop_would_hold_it(friction, joint):
    tree = sd.KinematicTree()
    upper = sd.Inertia.box(2.0, (0.5, 0.1, 0.1), com=(0.25, 0, 0))
    palm = sd.Inertia.box(1.0, (0.4, 0.3, 0.02), com=(0.2, 0, 0))
    tree.attach(upper, to="base", joint=sd.revolute("y"), name="upper")
    tree.attach(palm, to="upper", joint=sd.revolute("y"), at=(0.5, 0, 0), name="palm")
    tree.attach(sd.Inertia.box(0.7, (0.1, 0.08, 0.12)), to="base", joint=sd.free(), name="crate")
    q, at = tree.neutral(), sd.screw.exp([0, 0, 0, 0.2, 0.02, 0.07])
    q[:2], q[2:6] = [-0.3, 0.35], [0, math.sin(0.025), 0, math.cos(0.025)]
    q[6:9] = (tree.forward_kinematics("palm", q) @ at)[:3, 3]
    qd = np.r_[0.3, -0.5, np.zeros(6)]
    qd[2:] = np.linalg.solve(tree.jacobian("crate", q, "base")[:, 2:], tree.jacobian("palm", q, "base") @ qd)
    qd[5:7] += [0.2, -0.1] if joint.screws.size else 0
    looped = tree.copy()
    feet = [(x, y, -0.06) for x in (0.05, -0.05) for y in (0.04, -0.04)]
    tree.touch("crate", "palm", on=sd.Plane((0, 0, 1), 0.01), points=feet, friction=friction, name="feet")
    looped.close("crate", to="palm", joint=joint, at=at, name="loop")
    push = {"torque": lambda t, state: np.r_[-25.0, -6.0, np.zeros(6)], "control_period": 0.05, "step": 0.01}
    touched, held = (sd.simulate(x, sd.State(x, q, qd), 0.05, **push, **FINE) for x in (tree, looped))
    assert_allclose(touched.states[-1].q, held.states[-1].q, atol=1e-12)
    assert_allclose(touched.states[-1].qd, held.states[-1].qd, atol=1e-11)
    reaction = looped.constraint_wrenches(q, qd, push["torque"](0, None)).wrenches["loop"][3:]
    R = tree.forward_kinematics("crate", q)[:3, :3]
    assert_allclose(R.T @ touched.contact("feet", 0.0).forces.sum(axis=0), reaction, atol=1e-11)


def test_a_hoist_lifts_a_crate_that_a_loop_holds():
    """Contacts beside a closed loop, with which they are redundant: it lifts off at c t = (m1 + m2) g."""
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.box(1.5, (0.1, 0.1, 0.1)), to="base", joint=sd.prismatic("z"), at=(0, 0, 0.4), name="hoist")
    tree.attach(sd.Inertia.box(3.0, SIZE), to="base", joint=sd.free(), name="box")
    q = tree.neutral()
    q[-1] = 0.1
    tree.close("box", to="hoist", at=(0, 0, -0.3), name="grip")
    tree.touch("box", "base", on=sd.Plane(), points=FEET, friction=0.5)
    run = sd.simulate(tree, sd.State(tree, q), 0.5, lambda t, _: {"hoist": 100 * t}, step=0.05, **FINE)
    lift = 4.5 * g / 100
    assert happened(run) == [("leave", (0, 1, 2, 3))]
    assert_allclose(run.events[0].t, lift, atol=1e-8)
    assert_allclose(run.states[-1].q[0], 100 * (0.5 - lift) ** 3 / 27, atol=1e-12)
    assert residual(run) < 1e-12


@pytest.mark.slow
def test_a_crate_is_picked_up_from_the_floor_and_set_down():
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.box(5, (0.1, 0.1, 0.1)), to="base", joint=sd.prismatic("z"), at=(0, 0, 0.6), name="lift")
    tree.attach(sd.Inertia.box(3.0, SIZE), to="base", joint=sd.free(), name="crate")
    tree.touch("crate", "base", on=sd.Plane(), points=FEET, friction=0.5, name="floor")
    q = tree.neutral()
    q[0], q[-1] = -0.15, 0.1

    def torque(t, state):
        goal, load = (0.1, 8) if 0.2 < t < 1.0 else (-0.15, 8 if t < 1.4 else 5)
        return {"lift": load * g + 400 * (goal - state["lift"]) - 80 * state.qd[0]}

    events = [sd.Close("crate", "lift", name="hand", time=0.2), sd.Open("hand", time=1.6)]
    run = sd.simulate(tree, sd.State(tree, q), 2.0, torque, events=events, control_period=0.02, step=0.02, **FINE)
    # The torque that the controller holds lifts it once more for some milliseconds.
    assert happened(run) == [("leave", (0, 1, 2, 3)), *[("touch", (0, 1, 2, 3))] * 2]
    assert run.pose("crate", 0.9)[2, 3] > 0.2
    assert_allclose(run.states[-1].q[-3:], [0, 0, 0.1], atol=1e-12)
    assert_allclose(run.contact("floor", 2.0).forces.sum(axis=0), [0, 0, 3 * g], atol=1e-9)
    assert run.contact("floor", 0.9).states == ("open",) * 4
    assert residual(run) < 1e-11
    assert [x.subject for x in run.events] == ["hand", "floor", "floor", "floor", "hand"]
    again = pickle.loads(pickle.dumps(run))
    assert_array_equal(again.contact("floor", 2.0).forces, run.contact("floor", 2.0).forces)


def test_links_that_cannot_move_towards_each_other_push_nothing():
    """Whether they overlap or not; a tree without freedoms too."""
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.sphere(1, 0.1), to="base", joint=sd.fixed(), at=(0, 0, 0.1), name="knob")
    tree.touch("knob", "base", on=sd.Plane(), points=[(0, 0, 0), (0, 0, -0.1)], radius=0.1, friction=0.3, name="seat")
    assert sd.simulate(tree, sd.State(tree), 0.1, step=0.05).contact("seat", 0.1).states == ("open", "open")
    tree.attach(sd.Inertia.sphere(1, 0.1), to="base", joint=sd.prismatic("x"), name="slide")
    assert_allclose(sd.simulate(tree, sd.State(tree, [0], [1.0]), 0.5, step=0.05).q[-1], 0.5)


@pytest.mark.parametrize("friction", [0.0, 0.5])
@pytest.mark.parametrize("joint", [sd.planar("z"), sd.prismatic("x")])
def test_a_point_that_no_joint_can_press_is_idle(joint, friction):
    tree = sd.KinematicTree()
    size = (0.2, 0.2, 0.2)
    tree.attach(sd.Inertia.box(2, size), to="base", joint=joint, at=(0, 0, 0.1), name="crate", shape=sd.Shape.box(size))
    tree.touch("crate", to="base", on=sd.Plane(), friction=friction, name="floor")
    qd = np.eye(tree.nv)[-1]
    run = sd.simulate(tree, sd.State(tree, qd=qd), 0.3, step=0.1)
    assert_allclose(run.qd[-1], qd, atol=1e-15)
    contact = run.contact("floor", 0.2)
    assert contact.states.count("idle") == 4
    assert not contact.forces.any()


def test_a_pendulum_grazes_the_floor():
    """Where it touches, its joint moves the tip along the floor only."""
    runs = []
    for height in (1.0, 2.0):
        tree = sd.KinematicTree()
        rod = sd.Inertia.rod(1, 1, axis="z", com=(0, 0, -0.5))
        tree.attach(rod, to="base", joint=sd.revolute("y"), at=(0, 0, height), name="rod")
        tree.touch("rod", to="base", on=sd.Plane(), points=(0, 0, -1), friction=0.5, name="floor")
        runs.append(sd.simulate(tree, sd.State(tree, [0.5]), 2.0, step=0.01))
    assert_allclose(runs[0].q, runs[1].q, atol=1e-8)


def test_the_load_of_a_joint_that_follows_another_one():
    """The second slide moves twice as far as the first: of its force of 1.5 m g it has what both weigh."""
    tree, one = sd.KinematicTree(), sd.Inertia.sphere(1, 0.1)
    tree.attach(one, to="base", joint=sd.prismatic("z"), name="lead")
    follows = sd.prismatic("z", mimic=sd.Mimic("lead", 2.0))
    tree.attach(one, to="base", joint=follows, at=(1, 0, 0.3), name="far")
    tree.touch("far", "base", on=sd.Plane(), points=(0, 0, 0), radius=0.1, restitution=0.3)
    run = sd.simulate(tree, sd.State(tree, [0.2]), 1.0, step=0.02)
    assert_allclose(run.contact("far/base", 1.0).forces, [[0, 0, 1.5 * g]], atol=1e-12)
    assert residual(run) < 1e-12


@pytest.mark.parametrize(("mass", "held"), [(1.5, True), (2.5, False)])
def test_two_fingers_hold_by_friction_what_is_not_too_heavy(mass, held):
    """2 μ F = 20 N."""
    tree = sd.KinematicTree()
    palm, finger = sd.Inertia.box(0.8, (0.2, 0.06, 0.04)), sd.Inertia.box(0.1, (0.02, 0.04, 0.1))
    tree.attach(palm, to="base", joint=sd.prismatic("z", name="lift"), at=(0, 0, 0.1), name="palm")
    tree.attach(sd.Inertia.sphere(mass, 0.03), to="base", joint=sd.free(), name="ball")
    ball = {"points": (0, 0, 0), "radius": 0.03, "friction": 0.5}
    for name, side in (("left", 1), ("right", -1)):
        tree.attach(finger, to="palm", joint=sd.prismatic((side, 0, 0)), at=(-0.04 * side, 0, -0.07), name=name)
        tree.touch("ball", name, on=sd.Plane((side, 0, 0), 0.01), **ball, name=f"{name} tip")
    tree.touch("ball", "base", on=sd.Plane(), **ball, name="floor")
    q = tree.neutral()
    q[tree.positions.index("ball[pz]")] = 0.03

    def torque(t, state):
        goal = 0.5 * max(0.0, t - 0.1) ** 2
        lift = (1.0 + mass * (t > 0.1)) * g + 300 * (goal - state["lift"]) + 40 * (max(0.0, t - 0.1) - state.qd[0])
        return {"lift": lift, "left": 20.0, "right": 20.0}

    run = sd.simulate(tree, sd.State(tree, q), 0.5, torque, control_period=0.02, step=0.02)
    assert (run.pose("ball", 0.5)[2, 3] > 0.1) == held
    assert run.contact("left tip", 0.5).states == (("sticks" if held else "slides"),)
    assert_allclose(run.contact("left tip", 0.5).forces[0, 0], 20, atol=1e-9)
    assert residual(run) < 1e-9


def test_a_ball_bounces_off_a_crate_that_rests():
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.box(30.0, SIZE), to="base", joint=sd.free(), name="crate")
    tree.attach(sd.Inertia.sphere(0.1, 0.05), to="base", joint=sd.prismatic("z"), at=(0, 0, 0.6), name="ball")
    tree.touch("crate", "base", on=sd.Plane(), points=FEET, friction=0.5, restitution=0.8, name="floor")
    on = sd.Shape.box(SIZE)
    tree.touch("ball", "crate", on=on, points=(0, 0, 0), radius=0.05, restitution=0.8, name="top")
    q = tree.neutral()
    q[6] = 0.1
    run = sd.simulate(tree, sd.State(tree, q), 0.4, step=0.02)
    t = math.sqrt(2 * 0.35 / g)
    assert_allclose(times(run, "touch")[0], t, atol=1e-9)
    assert run.at(t + 1e-6).qd[-1] > 0.5 * g * t
    assert run.energy.impact_loss[-1] > 0 and residual(run) < 1e-9


def test_a_rod_that_slides_in_the_range_of_painleve_is_refused_in_one_direction():
    """1 + 3 cos²θ − 3 μ sin θ cos θ < 0 near tan θ = 2 for μ = 2."""
    tree = body(sd.Inertia.box(1.0, (1.0, 1e-9, 1e-9)), sd.planar("y"))
    tree.touch("body", "base", on=sd.Plane(), points=(-0.5, 0, 0), friction=2.0, name="tip")
    q = np.array([-math.atan(2), 0, -0.5 * math.sin(math.atan(2))])
    J = tree.contact_rows(q, np.zeros(3)).jacobian[0]
    left, right = (sd.State(tree, q, np.linalg.pinv(J) @ [0, slip, 0]) for slip in (1, -1))
    sd.simulate(tree, left, 1e-3, step=1e-3)
    with pytest.raises(sd.ContactError, match=r"contact 'tip' .* jams while it slides: friction 2 presses it harder"):
        sd.simulate(tree, right, 1e-3)


def test_what_begins_inside_a_body_is_refused_and_can_be_separated():
    tree, q = crate(0.5, height=0.0968)
    with pytest.raises(sd.ContactError, match=r"'body' is 3.2 mm inside 'base' at contact 'floor'; .*separate\(q\)"):
        sd.simulate(tree, sd.State(tree, q), 0.1)
    sd.simulate(tree, sd.State(tree, tree.separate(q)), 0.01, step=0.01)


def test_what_contacts_do_not_know_yet_is_refused():
    tree, q = crate(0.5)
    state = sd.State(tree, q)
    with pytest.raises(sd.ContactError, match="method='Radau' cannot keep contacts closed"):
        sd.simulate(tree, state, 0.1, method="Radau")
    with pytest.raises(sd.ContactError, match="sensitivities is not available for a tree with contacts"):
        sd.simulate(tree, state, 0.01, step=0.01, sensitivities=True)
    run = sd.simulate(tree, state, 0.01, step=0.01)
    with pytest.raises(sd.ContactError, match="not available for a tree with contacts"):
        run.wrench("body", by="base")
    with pytest.raises(sd.UnknownNameError, match="ceiling"):
        run.contact("ceiling", 0.0)
    tree.touch("body", "base", on=sd.Box(SIZE, pose=(0, 0, 1)), points=FEET, name="box")
    with pytest.raises(sd.ContactError, match=r"contact 'box' has points without radius on a box.*give them a radius="):
        sd.simulate(tree, sd.State(tree, q), 0.1)


def pusher(friction, table=0.4, **options):
    """An arm of a slide and a lift with friction, whose tip leans on a block of 3 kg on a table."""
    tree, rod = sd.KinematicTree(), sd.Inertia.rod(1.0, 0.5, "x", (0.25, 0, 0))
    slide, lift = (sd.prismatic(axis, friction=friction, name=axis, **options) for axis in "xz")
    tree.attach(rod, to="base", joint=slide, name="slide")
    tree.attach(rod, to="slide", joint=lift, at=(0, 0, 0.1), name="arm")
    tree.attach(sd.Inertia.box(3.0, SIZE), to="base", joint=sd.free(), name="block")
    tree.touch("block", "base", on=sd.Plane(), points=FEET, friction=table, name="table")
    tree.touch("arm", "block", on=sd.Plane((-1, 0, 0), 0.2), points=(0.5, 0, 0), radius=0.02, name="tip")
    return tree, np.array([0, 0, 0, 0, 0, 1, 0.72, 0, 0.1])


@pytest.mark.soak
def test_an_arm_with_friction_in_its_joints_pushes_a_block_on_a_table():
    """Slide and table bear the load together until both cannot; the lift holds its weight by its friction."""
    F = 12.0
    tree, q = pusher(F)
    run = sd.simulate(tree, sd.State(tree, q), 1.4, lambda t, _: {"x": 20 * t}, step=0.05, **FINE)
    begin, mass = (F + 0.4 * 3 * g) / 20, 5.0
    assert happened(run) == [("slip", (0, 1, 2, 3))]
    assert_allclose(run.events[0].t, begin, atol=1e-7)
    assert_allclose(run.states[-1].q[0], 20 * (1.4 - begin) ** 3 / (6 * mass), atol=1e-9)
    assert_allclose(run.states[-1].q[1:], [0, 0, 0, 0, 1, run.states[-1].q[0] + 0.72, 0, 0.1], atol=1e-12)
    assert_allclose(run.energy.dissipated[-1], (F + 0.4 * 3 * g) * run.states[-1].q[0], atol=1e-9)
    push = 3 / mass * 20 * (1.3 - begin) + 0.4 * 3 * g
    assert_allclose(run.contact("tip", 1.3).forces, [[-push, 0, 0]], atol=1e-9)
    assert residual(run) < 1e-10


def test_a_bent_arm_and_a_block_begin_to_move_when_no_forces_within_all_bounds_hold_them():
    """A linear programme in the plane: the largest push for which joints, tip and feet still find an equilibrium."""
    tree, rod = sd.KinematicTree(), sd.Inertia.rod(1.0, 0.5, "x", (0.25, 0, 0))
    tree.attach(rod, to="base", joint=sd.revolute("y", friction=2.0), at=(0, 0, 0.5), name="upper")
    tree.attach(rod, to="upper", joint=sd.revolute("y", friction=1.0), at=(0.5, 0, 0), name="fore")
    tree.attach(sd.Inertia.box(3.0, SIZE), to="base", joint=sd.planar("y"), name="block")
    tip = 0.5 * np.array([math.cos(0.7) + math.cos(0.1), math.sin(0.7) + math.sin(0.1)])
    side = sd.Plane((-1, 0, 0), 0.2)
    tree.touch("block", "base", on=sd.Plane(), points=[(0.2, 0, -0.1), (-0.2, 0, -0.1)], friction=0.4, name="table")
    tree.touch("fore", "block", on=side, points=(0.5, 0, 0), radius=0.02, friction=0.3, name="tip")
    q = np.array([0.7, -0.6, 0, tip[0] + 0.22, -0.1])
    push = np.array([-2 * tip[1], -math.sin(0.1), 0, 0, 0])
    weight = tree.gravity_vector(q) * [1, 1, 0, 0, 0]
    run = sd.simulate(tree, sd.State(tree, q), 1.0, lambda t, _: weight - 20 * t * push, step=0.05)
    J = tree.contact_rows(q, 0 * q).jacobian
    J = np.concatenate([J[:, 0], J[:, 1:][np.abs(J[:, 1:]).max(axis=2) > 1e-9]])  # three normals, three tangents
    cones = np.vstack([np.c_[np.zeros((3, 3)), -np.diag([0.4, 0.4, 0.3]), sign * np.eye(3)] for sign in (1, -1)])
    balance = np.c_[-20 * push, np.eye(5)[:, :2], J.T]
    largest = linprog(
        -np.eye(9)[0],
        cones,
        np.zeros(6),
        balance,
        tree.gravity_vector(q) - weight,
        [(0, None), (-2, 2), (-1, 1), *[(0, None)] * 3, *[(None, None)] * 3],
    )
    first = next(t for t, qd in zip(run.t, run.qd, strict=True) if np.abs(qd).max() > 1e-6)
    assert_allclose(run.events[0].t, largest.x[0], atol=1e-8)
    assert run.events[0].t < first < run.events[0].t + 0.06
    assert residual(run) < 1e-10


@pytest.mark.parametrize("impacts", ["at once", "by pairs"])
def test_a_stop_is_reached_while_a_foot_stands(impacts):
    """A weight falls on a stop within a crate, which the floor bears: all its energy is lost, and the crate stays."""
    tree, q = crate(0.5, restitution=0.0)
    fall = sd.prismatic("z", limits=(0, 1))
    tree.attach(sd.Inertia.point(2.0), to="body", joint=fall, at=(0.05, 0, 0), name="weight")
    start = sd.State(tree, {"weight": 0.2, "body[pz]": 0.1})
    run = sd.simulate(tree, start, 0.5, stops="inelastic", step=0.05, impacts=impacts)
    (limit,) = (x for x in run.events if isinstance(x.event, sd.LimitEvent))
    assert_allclose(limit.t, math.sqrt(0.4 / g), atol=1e-9)
    assert_allclose(limit.event.impulse, 2 * math.sqrt(0.4 * g) * np.eye(7)[6], atol=1e-8)
    assert_allclose(run.energy.impact_loss[-1], 2 * g * 0.2, rtol=1e-9)
    assert_allclose(run.states[-1].q, [*q, 0], atol=1e-12)
    assert_allclose(run.contact("floor", 0.5).forces.sum(axis=0), [0, 0, 5 * g], atol=1e-9)
    assert residual(run) < 1e-9


def test_a_crate_on_ice_is_driven_by_a_stop():
    """The momentum of the weight goes to the crate, and both go on with it."""
    tree, _ = crate(0.0)
    tree.attach(sd.Inertia.point(2.0), to="body", joint=sd.prismatic("x", limits=(-1, 0.1)), name="weight")
    start = sd.State(tree, {"body[pz]": 0.1}, {"weight": 1.0})
    run = sd.simulate(tree, start, 0.3, stops="inelastic", step=0.05)
    assert_allclose(run.events[-1].t, 0.1, atol=1e-9)
    assert_allclose(run.states[-1].qd, [0, 0, 0, 0.4, 0, 0, 0], atol=1e-12)
    assert_allclose(run.energy.impact_loss[-1], 0.5 * 2 * 3 / 5, rtol=1e-9)
    assert residual(run) < 1e-9


@pytest.mark.slow
def test_crates_that_nothing_connects_move_as_each_of_them_alone():
    """A crate that slides and turns, one that rocks onto its face, and one that rests, which share the floor only."""

    def crates(count):
        tree = sd.KinematicTree()
        for k in range(count):
            tree.attach(sd.Inertia.box(3.0 + k, SIZE), to="base", joint=sd.free(), name=f"crate {k}")
            tree.touch(f"crate {k}", "base", on=sd.Plane(), points=FEET, friction=0.4, name=f"floor {k}")
        return tree

    tilted = np.r_[0, math.sin(0.1), 0, math.cos(0.1), 0, 0, 0.1 * math.cos(0.2) + 0.2 * math.sin(0.2)]
    q = [np.r_[0, 0, 0, 1, 0, 0, 0.1], tilted, np.r_[0, 0, 0, 1, 0, 0, 0.1]]
    qd = [np.r_[0, 0, 2.0, 0.7, 0.3, 0], np.zeros(6), np.zeros(6)]
    every = crates(3)
    run = sd.simulate(every, sd.State(every, np.concatenate(q), np.concatenate(qd)), 0.25, step=0.05, **FINE)
    for k in range(3):
        alone = crates(k + 1)
        for other in range(k):
            alone.detach(f"crate {other}")
        one = sd.simulate(alone, sd.State(alone, q[k], qd[k]), 0.25, step=0.05, **FINE)
        assert_allclose(run.q[-1, 7 * k : 7 * k + 7], one.q[-1], atol=1e-9)
        pushes = (x.contact(f"floor {k}", 0.22).forces for x in (run, one))
        assert_allclose(*pushes, atol=1e-6)
    assert_allclose(run.contact("floor 2", 0.1).forces, np.outer(np.ones(4), [0, 0, 5 * g / 4]), atol=1e-11)
    assert residual(run) < 1e-10


def lifted_crate():
    """A crate that stands on the floor below a hoist of 5 kg."""
    tree, q = crate(0.5)
    tree.attach(sd.Inertia.box(5.0, (0.1, 0.1, 0.1)), to="base", joint=sd.prismatic("z"), at=(0, 0, 0.6), name="hoist")
    return tree, q


@pytest.mark.parametrize("rate", [0.2, -0.2, 0.0])
@pytest.mark.parametrize("change", [sd.Grasp("body", to="hoist", time=0.1), sd.Close("body", "hoist", time=0.1)])
def test_a_hoist_that_moves_takes_a_crate_from_the_floor(change, rate):
    """Up, both have 5/8 of its rate; down, the floor stops both at the same instant."""
    tree, q = lifted_crate()

    def torque(t, now):
        return {"hoist": (5 if t < 0.1 else 8) * g}

    start = sd.State(tree, np.r_[q, 0], np.r_[np.zeros(6), rate])
    run = sd.simulate(tree, start, 0.15, torque, events=[change], control_period=0.05, step=0.05)
    after = max(0.0, 5 / 8 * rate)
    assert_allclose(run.states[-1].to_dict()["qd"]["hoist"], after, atol=1e-12)
    assert_allclose(run.energy.impact_loss[-1], 2.5 * rate**2 - 4 * after**2, atol=1e-12)
    assert happened(run) == ([("leave", (0, 1, 2, 3))] if rate > 0 else [("touch", (0, 1, 2, 3))] if rate < 0 else [])
    assert residual(run) < 1e-12


def test_a_crate_that_stands_is_handed_over_at_one_instant():
    """The other hand comes down with 0.3 m/s, and the floor takes all of its energy."""
    tree, q = lifted_crate()
    tree.attach(
        sd.Inertia.box(4.0, (0.1, 0.1, 0.1)), to="base", joint=sd.prismatic("z"), at=(0.1, 0, 0.8), name="other"
    )
    events = [
        sd.Grasp("body", to="hoist", time=0.1),
        sd.Release("body", into_world=True, time=0.2),
        sd.Grasp("body", to="other", time=0.2),
    ]
    start, hold = sd.State(tree, np.r_[q, 0, 0], np.r_[np.zeros(7), -0.3]), {"hoist": 5 * g, "other": 4 * g}
    run = sd.simulate(tree, start, 0.3, lambda t, now: hold, events=events, control_period=0.05, step=0.05)
    assert [event.verb for event in run.events] == ["grasp", "release", "grasp", "touch"]
    assert_allclose(run.energy.impact_loss[-1], 2 * 0.3**2, atol=1e-12)
    for t in (0.05, 0.15, 0.25):
        assert_allclose(run.contact("floor", t).forces.sum(axis=0), [0, 0, 3 * g], atol=1e-10)
    assert residual(run) < 1e-12


def test_a_load_that_slides_on_a_crate_is_welded_to_it():
    """The momentum of the load goes to both; the contact between them then bears nothing that moves them."""
    tree, _ = crate(0.0)
    tree.attach(sd.Inertia.box(2.0, (0.1, 0.1, 0.1)), to="base", joint=sd.free(), name="load")
    feet = [(x, y, -0.05) for x in (0.05, -0.05) for y in (0.05, -0.05)]
    tree.touch("load", "body", on=sd.Plane((0, 0, 1), 0.1), points=feet, name="lid")
    start = sd.State(tree, {"body[pz]": 0.1, "load[pz]": 0.25}, {"load[vx]": 0.3})
    run = sd.simulate(tree, start, 0.2, events=[sd.Weld("load", to="body", time=0.1)], step=0.05)
    assert_allclose(run.states[-1].qd, [0, 0, 0, 0.12, 0, 0] * 2, atol=1e-12)
    assert_allclose(run.contact("lid", 0.05).forces.sum(axis=0), [0, 0, 2 * g], atol=1e-11)
    assert_allclose(run.contact("floor", 0.2).forces.sum(axis=0), [0, 0, 5 * g], atol=1e-10)
    assert residual(run) < 1e-12


def test_a_weight_in_a_crate_on_ice_is_locked_and_unlocked():
    tree, _ = crate(0.0)
    tree.attach(sd.Inertia.point(2.0), to="body", joint=sd.prismatic("x"), name="weight")
    start = sd.State(tree, {"body[pz]": 0.1}, {"weight": 0.5})
    events = [sd.Lock("weight", time=0.1), sd.Unlock("weight", time=0.2)]
    run = sd.simulate(tree, start, 0.3, events=events, step=0.05)
    assert_allclose(run.states[-1].qd, [0, 0, 0, 0.2, 0, 0, 0], atol=1e-12)
    for t in (0.05, 0.15, 0.25):
        assert_allclose(run.contact("floor", t).forces.sum(axis=0), [0, 0, 5 * g], atol=1e-10)
    assert residual(run) < 1e-12


def test_a_contact_that_left_with_its_link_is_known_by_its_time():
    tree, q = crate(0.5)
    run = sd.simulate(tree, sd.State(tree, q), 0.2, events=[sd.Release("body", time=0.1)], step=0.05)
    assert run.contact("floor", 0.1, "before").states == ("sticks",) * 4
    with pytest.raises(sd.UnknownNameError, match=r"contact 'floor' is in the tree from 0 to 0.1 s, not at t = 0.15 s"):
        run.contact("floor", 0.15)


# Crates that are thrown on the floor; the first two did not come to rest.
THROWN = [1003, 2016, *range(100, 300 if FULL_SOAK else 101)]


@pytest.mark.soak
@pytest.mark.parametrize("seed", THROWN)
def test_a_crate_that_tumbles_comes_to_rest(seed):
    """Within 10 s, as one stands on an edge for a while (158), and a ledger within ten times rtol of the energy.

    The error within a step is that of its polynomial, and as large in a free flight as with contacts (131).
    """
    rng, tree = np.random.default_rng(seed), sd.KinematicTree()
    size, mass = rng.uniform(0.05, 0.6, 3), rng.uniform(0.2, 10)
    shape = sd.Shape.box(size)
    tree.attach(sd.Inertia.box(mass, size), to="base", joint=sd.free(), name="crate", shape=shape)
    tree.touch("crate", to="base", on=sd.Plane(), friction=rng.uniform(0.1, 1), restitution=rng.uniform(0, 0.8))
    q = tree.integrate(tree.neutral(), np.r_[2 * rng.normal(size=3), 0, 0, 0])
    q[4:] = [0, 0, 0.5 * np.linalg.norm(size) + rng.uniform(0, 0.8)]
    start = sd.State(tree, q, np.r_[4 * rng.normal(size=3), 1.5 * rng.normal(size=3)])
    run = sd.simulate(tree, start, 10.0, step=0.02)
    assert residual(run) < 1e-8 * run.energy.total[0]
    assert min(tree.contact_gaps(state.q).min() for state in run.states) > -1e-9
    assert_allclose(run.states[-1].qd, 0, atol=1e-12)


@pytest.mark.parametrize("mass", [3e-12, 3e9])
@pytest.mark.parametrize("feet", [FEET, [(0.2, 0.15, -0.1), (0.2, -0.15, -0.1), (-0.2, 0, -0.1)]])
def test_when_a_crate_slips_does_not_depend_on_its_mass(mass, feet):
    tree = body(sd.Inertia.box(mass, SIZE), sd.planar("y"))
    tree.touch("body", on=sd.Plane(), points=feet, friction=0.4)
    start = sd.State(tree, [0, 0, -0.1])
    run = sd.simulate(tree, start, 1.0, wrenches=lambda t, _: {"body": [0, 0, 0, 5 * mass * t, 0, 0]}, step=0.1)
    assert_allclose(times(run, "slip"), [0.4 * g / 5], rtol=1e-8)


def fallen(size):
    """A crate of a size that has fallen on its feet, and time and length relative to those of a crate of size 1."""
    tree = body(sd.Inertia.box(3.0 * size**3, size * np.array(SIZE)))
    tree.touch("body", on=sd.Plane(), points=size * np.array(FEET), friction=0.3, restitution=0.2)
    q = tree.integrate(tree.neutral(), [0.1, 0.06, 0, 0, 0, 0.15 * size])
    unit = math.sqrt(size)
    return sd.simulate(tree, sd.State(tree, q), 0.6 * unit, step=0.05 * unit), unit


def test_a_crate_of_a_kilometre_falls_as_one_of_a_metre():
    """Its gaps are known to 1e-13 m, which are heights of flights at 1 μm/s."""
    (small, _), (large, unit) = fallen(1.0), fallen(1e3)
    assert_allclose(large.states[-1].q[4:] / 1e3, small.states[-1].q[4:], atol=1e-7)
    assert_allclose(times(large, "rest")[-1] / unit, times(small, "rest")[-1], atol=1e-4)


def test_an_arm_of_a_millimetre_with_friction_in_its_joints_comes_to_rest_on_a_floor():
    """Its links have 1 μg, and forces of 10 nN."""
    found = []
    for size in (1.0, 1e-3):
        tree, bar = sd.KinematicTree(), (0.5 * size, 0.05 * size, 0.05 * size)
        link = sd.Inertia.box(size**3, bar, com=(0.25 * size, 0, 0))
        upper, lower = (sd.revolute("y", friction=share * g * size**4) for share in (0.05, 0.02))
        tree.attach(link, to="base", joint=upper, name="upper")
        tree.attach(link, to="upper", joint=lower, at=(0.5 * size, 0, 0), name="lower")
        tree.touch("lower", on=sd.Plane(offset=-0.3 * size), points=(0.5 * size, 0, 0), friction=0.4)
        unit = math.sqrt(size)
        run = sd.simulate(tree, sd.State(tree, [0.1, 0.2]), 2 * unit, step=0.01 * unit, **FINE)
        assert run.contact("lower/base", 1.9 * unit).states == ("sticks",)
        found.append(run.states[-1].q)
    assert_allclose(*found, atol=1e-8)


def test_what_was_found_of_sets_of_points_can_be_forgotten(monkeypatch):
    """A crate that falls on an edge, then on its face, and comes to rest."""
    tree, q = crate(0.4)
    q = tree.integrate(q, [0.3, 0, 0, 0, 0, 0.045])
    kept = sd.simulate(tree, sd.State(tree, q), 0.2, step=0.05)
    monkeypatch.setattr(bounded, "MOST_KEPT", 0)
    assert happened(kept) == [("touch", (1, 3)), ("touch", (0, 2)), ("rest", (0, 1, 2, 3))]
    assert_array_equal(sd.simulate(tree, sd.State(tree, q), 0.2, step=0.05).q, kept.q)


@pytest.mark.soak
@pytest.mark.parametrize("seed", [0, 1, 2, 4, 5, 6, 10, 11, 15])
def test_random_trees_whose_links_touch_the_floor_and_each_other(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 3, ("revolute", "prismatic", "spherical", "planar", "universal", "cylindrical"), frames=0)
    tree.attach(random_inertia(rng), to="base", joint=sd.free(), name="loose")
    q = tree.integrate(tree.neutral(), 0.5 * rng.normal(size=tree.nv))
    up = -tree.gravity / np.linalg.norm(tree.gravity)
    for link in tree.links[1:]:
        height = up @ tree.forward_kinematics(link, q)[:3, 3] - 0.1 - rng.uniform(0, 0.3)
        rough = {"friction": rng.uniform(0, 0.8), "restitution": rng.uniform(0, 0.6)}
        points = 0.02 * rng.normal(size=(2, 3))
        tree.touch(link, "base", on=sd.Plane(up, height), points=points, radius=0.05, **rough)
    bar = sd.Shape.capsule(0.05, 0.3)
    tree.touch("loose", "link2", on=bar, points=(0, 0, 0), radius=0.06, friction=0.3, restitution=0.3)
    run = sd.simulate(tree, sd.State(tree, tree.separate(q), rng.normal(size=tree.nv)), 0.6, step=0.02)
    assert happened(run)
    assert residual(run) < 1e-6
    assert min(tree.contact_gaps(state.q).min() for state in run.states) > -1e-9
