"""Derivatives of runs through changes, against differences of whole runs."""

import dataclasses
import functools

import numpy as np
import pytest
import sympy
from cases import FULL_SOAK

import screwdyn as sd
from screwdyn.simulation.sensitivities import _larger, _stopping

# Weights of a central difference of fourth order.
CENTRAL = ((1, 2 / 3), (2, -1 / 12))


def bar(mass, length):
    return sd.Inertia.box(mass, (length, 0.1, 0.1), com=(length / 2, 0, 0))


class Case:
    """A run of 0.5 s whose robot has bodies that differ by ``more`` and events that are ``late``."""

    links = ("tip",)
    torque = None
    step = 1e-3

    def __init__(self, more=0.0, late=None):
        self.more, self.late, self.more_options = more, late or {}, {}
        self.tree = tree = sd.KinematicTree(gravity=(0.3, -9.81, 0))
        tree.attach(bar(1, 1), to="base", joint=sd.revolute("z", damping=0.2), name="a")
        tree.attach(bar(1, 1), to="a", joint=sd.revolute("z", stiffness=3.0, rest=0.2), at=(1, 0, 0), name="b")
        self.q, self.qd = [0.4, -0.3], [0.5, -0.8]
        self.build()

    def tip(self):
        return _larger(bar(0.5, 0.5), self.more + np.zeros(10))

    def time(self, t, name):
        return t + self.late.get(f"time of {name}", 0.0)

    def run(self, sensitivities=False, q=None, qd=None):
        state = sd.State(self.tree, self.q if q is None else q, self.qd if qd is None else qd)
        options = {"events": self.events(), "torque": self.torque, "rtol": 1e-11, "atol": 1e-12, "step": 0.02}
        options |= self.more_options
        return sd.simulate(self.tree, state, 0.5, sensitivities=sensitivities, **options)


class GraspOnCondition(Case):
    """A body on a passive joint is caught when a joint passes an angle; later it is welded and let go."""

    def build(self):
        self.qd = [2.0, -0.8]

    def events(self):
        hook = sd.spherical(passive=True, name="hook")
        return [
            sd.Grasp(self.tip(), to="b", joint=hook, at=(1, 0, 0), name="tip", twist="at_rest", when=self.level),
            sd.Lock("hook", time=self.time(0.25, "lock hook")),
            sd.Release("tip", time=self.time(0.4, "release tip")),
        ]

    @staticmethod
    def level(t, state):
        return state["a"] - 0.45 - 0.1 * t


class LockUnlock(Case):
    """A ball joint is locked where it is, and unlocked; torques depend on the state and the time."""

    def build(self):
        ball = sd.spherical(passive=True, name="ball", damping=0.1)
        self.tree.attach(self.tip(), to="b", joint=ball, at=(1, 0, 0), name="tip")
        self.q = self.tree.integrate(self.tree.neutral(), np.array([-0.5, 0.3, 0.2, 0.4, -0.3]))
        self.qd = [0.3, -0.2, 1.0, 0.5, -0.7]

    def events(self):
        return [
            sd.Lock("ball", time=self.time(0.2, "lock ball")),
            sd.Unlock("ball", time=self.time(0.3, "unlock ball")),
        ]

    @staticmethod
    def torque(t, state):
        return {"a": -2 * state.velocity("a") * state["b"], "b": np.sin(3 * t)}


class LockUniversal(LockUnlock):
    """The first axis of the joint that is locked depends on its second angle."""

    def build(self):
        cross = sd.universal("x", "y", passive=True, name="ball", damping=0.1)
        self.tree.attach(self.tip(), to="b", joint=cross, at=(1, 0, 0), name="tip")
        self.q, self.qd = [-0.5, 0.3, 0.4, 0.9], [0.3, -0.2, 1.0, 0.5]


class HandOverAndLoop(Case):
    """A bar is handed from one arm to the other, and then a loop closes."""

    def build(self):
        self.tree.attach(bar(1, 1), to="base", joint=sd.revolute("z"), at=(0.5, 1, 0), name="other")
        self.tree.attach(self.tip(), to="a", joint=sd.revolute("z"), at=(1, 0, 0), name="tip")
        self.tree.detach("b")
        self.tree.attach(bar(1, 1), to="a", joint=sd.revolute("z"), at=(0.5, 0, 0), name="b")
        self.q, self.qd = [0.5, 0.3, 0.2, 0.1], [0.3, -1.0, 0.2, 0.4]

    def events(self):
        slot = sd.prismatic("x")
        return [
            sd.HandOver("tip", to="other", time=self.time(0.2, "hand over tip")),
            sd.Close("b", to="other", joint=slot, name="slot", time=self.time(0.3, "close slot")),
            sd.Lock("tip", time=self.time(0.4, "lock tip")),
            sd.Unlock("tip", time=self.time(0.45, "unlock tip")),
        ]


class Law:
    """Torques with gains, towards a reference."""

    def __init__(self, more):
        self.kp = np.array([30 + more.get("torque.kp[0]", 0.0), 20 + more.get("torque.kp[1]", 0.0)])
        self.kd = 4.0 + more.get("torque.kd", 0.0)

    def __call__(self, t, state):
        reference = 0.3 * np.sin(2 * t)
        q, qd = state.q[:2], state.qd[:2]
        return dict(zip("ab", self.kp * (reference - q) - self.kd * qd, strict=True))


class GainsHeld(Case):
    """Torques with gains are computed every 10 ms; a payload comes, is welded and goes."""

    links = ("tip", "torque.kp", "torque.kd")

    def build(self):
        self.torque = Law(self.late)
        self.more_options = {"control_period": 0.01}

    def events(self):
        hook = sd.spherical(passive=True, name="hook")
        return [
            sd.Grasp(
                self.tip(),
                to="b",
                joint=hook,
                at=(1, 0, 0),
                name="tip",
                twist="at_rest",
                time=self.time(0.1033, "grasp tip"),
            ),
            sd.Lock("hook", time=self.time(0.2541, "lock hook")),
            sd.Release("tip", time=self.time(0.4527, "release tip")),
        ]


class GainsOften(GainsHeld):
    """The same so often that some calls give the derivatives at all."""

    step = 1e-4  # no event passes a call

    def build(self):
        self.torque, self.more_options = Law(self.late), {"control_period": 0.0019}


class GainsFollow(GainsHeld):
    """The same with torques that follow the state."""

    step = 3e-4

    def build(self):
        self.torque = Law(self.late)


class Stops(GainsHeld):
    """A joint runs against its stop while the payload swings, and leaves it."""

    links = ("tip",)
    stops: object = "inelastic"

    def build(self):
        self.tree.replace_joint("b", sd.revolute("z", stiffness=3.0, rest=0.2, limits=(-0.6, 0.6)))
        self.more_options = {"stops": self.stops}


class SpringStops(Stops):
    stops = sd.SpringStop(300.0)
    step = 3e-4  # with 1e-3 one of the runs for differences is off by some 1e-8


class Friction(GainsHeld):
    """A joint slides, sticks, and slides again."""

    links = ("tip",)

    def build(self):
        self.tree.replace_joint("a", sd.revolute("z", friction=6.0))
        self.q = [-1.3, -0.3]


CASES = [
    GraspOnCondition,
    LockUnlock,
    LockUniversal,
    HandOverAndLoop,
    GainsHeld,
    GainsOften,
    GainsFollow,
    Stops,
    SpringStops,
    Friction,
]


# Of these, by each parameter.
EACH = CASES if FULL_SOAK else [GainsHeld]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "each"),
    [*((x, False) for x in CASES), *(pytest.param(x, True, marks=pytest.mark.soak) for x in EACH)],
)
def test_derivatives_are_those_of_differences_of_runs(case, each):
    """Along one direction, or by each parameter."""
    base = case()
    n, space = base.tree.nv, base.tree.model.configurations
    q0, qd0 = np.asarray(base.q, dtype=float), np.asarray(base.qd, dtype=float)
    run = base.run(sensitivities=case.links)
    end, names = run.states[-1], run.sensitivities.parameters
    last, sizes = end.tree.model.configurations, np.ones(len(names))
    sizes[2 * n : 2 * n + 10] = run.sensitivities._quantities[0].sizes
    P = run.sensitivity(0.5) * sizes

    def outcome(step):
        """The end of a run whose parameters have changed."""
        more = (step * sizes)[2 * n : 2 * n + 10]
        late = {name: x for name, x in zip(names, step, strict=True) if name.startswith(("time", "torque"))}
        q, qd = space.integrate(q0, step[:n]), qd0 + step[n : 2 * n]
        state = case(more, late).run(q=q, qd=qd).states[-1]
        return np.concatenate([last.difference(end.q, state.q), state.qd])

    h, largest = case.step, 0.0
    some = np.random.default_rng(5).uniform(-1, 1, (1, len(names)))
    for d in np.eye(len(names)) if each else 0.3 * some:
        found = sum(w * (outcome(i * h * d) - outcome(-i * h * d)) for i, w in CENTRAL) / h
        largest = max(largest, np.abs(found).max())
        assert np.abs(P @ d - found).max() < 1e-7 * largest, [x for x, y in zip(names, d, strict=True) if y]


@pytest.mark.slow
def test_the_gradient_of_a_cost_and_a_joined_run():
    """A run in two halves has the derivatives of the whole; a cost looks at two times."""
    base = GainsFollow()
    options = {"torque": base.torque, "rtol": 1e-11, "atol": 1e-12, "step": 0.02, "sensitivities": GainsFollow.links}
    whole = base.run(sensitivities=GainsFollow.links)
    base = GainsFollow()
    *first, last = base.events()
    half = sd.simulate(base.tree, sd.State(base.tree, base.q, base.qd), 0.3, events=first, **options)
    joined = half + sd.simulate(base.tree, half.states[-1], 0.2, events=[last], t0=0.3, **options)
    assert joined.sensitivities.parameters == whole.sensitivities.parameters
    P = whole.sensitivity(0.5)
    np.testing.assert_allclose(joined.sensitivity(0.5), P, atol=1e-7 * np.abs(P).max())

    def cost(early, late):
        return late["a"] ** 2 + early["hook[w]"] * late.velocity("b")

    early, late = whole.at(0.2), whole.at(0.5)
    found = whole.gradient(cost, (0.2, 0.5))
    at = early.positions.index("hook[w]")
    assert found.keys() == {*whole.sensitivities.parameters}
    E, x = whole.sensitivity(0.2), early.tree.model.configurations
    unit = np.array([x.integrate(early.q, s * d)[at] for s in (1e-5, -1e-5) for d in np.eye(5)]).reshape(2, 5)
    by_q = (unit[0] - unit[1]) / 2e-5
    expected = 2 * late["a"] * P[0] + early["hook[w]"] * P[3] + late.velocity("b") * by_q @ E[:5]
    np.testing.assert_allclose([*found.values()], expected, rtol=1e-7, atol=1e-8)
    # A cost that looks at the tree depends on where the hook was locked, and on the body of the payload.
    found = whole.gradient(lambda state: state.tree.potential_energy(state.q), 0.3)
    for name in ("time of lock hook", "tip.m"):
        energies = []
        for s in (1e-5, -1e-5):
            state = GainsFollow(s * np.eye(10)[0] if name == "tip.m" else 0.0, {name: s}).run().at(0.3)
            energies.append(state.tree.potential_energy(state.q))
        assert abs(found[name] - (energies[0] - energies[1]) / 2e-5) < 1e-6 * abs(found[name])
    with pytest.raises(sd.ScrewdynError, match="cost must return one finite number; it returned None"):
        whole.gradient(lambda state: None)
    with pytest.raises(sd.ScrewdynError, match="cost must be a function of states; got None"):
        whole.gradient(None)
    assert (half + base_without(base, half)).sensitivities is None


def test_a_tree_without_freedoms():
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.sphere(1.0, 0.1), to="base", name="weld")
    assert sd.simulate(tree, sd.State(tree), 0.1, sensitivities=True).sensitivity(0.1).shape == (0, 0)


def base_without(base, half):
    """A run that continues another one, without derivatives."""
    tree = half.states[-1].tree
    return sd.simulate(tree, sd.State(tree, half.states[-1].q, half.states[-1].qd), 0.1, t0=0.3)


def test_a_derivative_that_the_user_gives():
    class Given(Law):
        def derivative(self, t, state):
            D = np.zeros((2, 4))
            D[:, :2], D[:, 2:] = -np.diag(self.kp), -self.kd * np.eye(2)
            return D if t < 0.3 else D[:1]

    base = GainsFollow()
    state = sd.State(base.tree, base.q, base.qd)
    options = {"sensitivities": True, "control_period": 0.01, "rtol": 1e-11, "step": 0.02}
    P = sd.simulate(base.tree, state, 0.2, Law({}), **options).sensitivity(0.2)
    run = sd.simulate(base.tree, state, 0.2, Given({}), **options)
    np.testing.assert_allclose(run.sensitivity(0.2), P, atol=1e-8)
    clipped = base.tree.copy()
    clipped.replace_joint("a", sd.revolute("z", effort=1e-3))
    state = sd.State(clipped, base.q, base.qd)
    both = [sd.simulate(clipped, state, 0.1, x({}), saturate=True, **options).sensitivity(0.1) for x in (Law, Given)]
    np.testing.assert_allclose(*both, atol=1e-8)
    with pytest.raises(sd.ShapeError, match=r"torque.derivative must .* got shape \(1, 4\)"):
        sd.simulate(base.tree, sd.State(base.tree, base.q), 0.5, Given({}), **options)


def test_a_pendulum_in_closed_form():
    """Without gravity, q = q0 + (1 − exp(−c t)) v0/c, and a lock at 1 s keeps ∂q of then."""
    tree, c = sd.KinematicTree(gravity=(0, 0, 0)), 0.7
    tree.attach(sd.Inertia.rod(1, 1), to="base", joint=sd.revolute("y", damping=c / 12, name="a"), name="one")
    tree.attach(sd.Link("two"), to="base", joint=sd.revolute("y", armature=1.0, name="b"))
    lock = sd.Lock("a", time=1.0)
    run = sd.simulate(tree, sd.State(tree, [0.1, 0], [0.8, 0.5]), 2.0, events=[lock], sensitivities=True)
    assert run.sensitivities.parameters == ("q:a", "q:b", "qd:a", "qd:b", "time of lock a")
    P = run.sensitivity(0.6)
    travel, left = (1 - np.exp(-c * 0.6)) / c, np.exp(-c * 0.6)
    np.testing.assert_allclose(P[:, [0, 2]], [[1, travel], [0, 0], [0, left], [0, 0]], atol=1e-8)
    np.testing.assert_allclose(run.sensitivity(2.0), [[0, 1, 0, 2, 0], [0, 0, 0, 1, 0]], atol=1e-8)
    assert run.sensitivity(1.0, "before").shape == (4, 5) and run.sensitivity(1.0).shape == (2, 5)


@pytest.mark.slow
@pytest.mark.parametrize("damping", [0.0, 6.0])
def test_a_mass_that_bounces_in_closed_form(damping):
    """Without gravity all motions from a stop are multiples of one: the rates before and after have a fixed ratio."""
    tree, stop = sd.KinematicTree(gravity=(0, 0, 0)), sd.SpringStop(200.0, damping)
    tree.attach(sd.Inertia.sphere(2, 0.1), to="base", joint=sd.prismatic("x", limits=(-1, 0.5), name="s"), name="one")
    run = sd.simulate(
        tree, sd.State(tree, [0.1], [0.8]), 1.5, stops=stop, rtol=1e-11, atol=1e-13, sensitivities=True, step=0.05
    )
    last, (touched, *_) = run.states[-1], run.events
    ratio = last.qd[0] / 0.8
    back = (last.q[0] - 0.5) / last.qd[0]  # since it left the stop
    expected = [[ratio, ratio * (touched.t + back)], [0, ratio]]
    np.testing.assert_allclose(run.sensitivity(1.5), expected, atol=1e-8)


def test_a_joint_that_sticks_at_the_start():
    """A rate at the start is lost at once, in an impact of friction alone: M δν = e_a λ with δν_a = −1."""
    tree = GraspOnCondition().tree
    tree.replace_joint("a", sd.revolute("z", friction=50.0))
    start = sd.State(tree, [0.4, -0.3], [0.0, 0.8])
    run = sd.simulate(tree, start, 0.1, sensitivities=True)
    M = tree.mass_matrix(start.q)
    expected = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0], [0, 0, M[0, 1] / M[1, 1], 1]]
    np.testing.assert_allclose(run.sensitivity(0.0), expected, atol=1e-12)
    np.testing.assert_allclose(run.sensitivity(0.1)[2], 0.0, atol=1e-12)


def test_joints_that_stick_where_a_loop_holds_them_change_no_other():
    """Their mobilities are rounding, whose inverse would be the slopes of the freedom that moves."""
    tree = sd.KinematicTree()
    for k, joint in enumerate((sd.revolute("z"), sd.revolute((1, 2, 3)), sd.prismatic((3, -1, 2)), sd.revolute("z"))):
        tree.attach(bar(1, 0.5), to=tree.links[-1], joint=joint, at=(0.5, 0, 0), name=f"link{k}")
    q = np.array([0.3, -0.5, 0.1, 0.3])
    tree.close("link2", to="base", joint=sd.spherical((0.2, 0.1, 0.05)), at=tree.forward_kinematics("link2", q))
    np.testing.assert_allclose(_stopping(tree, q, np.array([0, 2])), np.eye(4), atol=1e-9)


def test_a_joint_that_leaves_its_stop_in_an_impact():
    """Its impulse is zero, also where the solution has 4e-18 N m s."""
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    for k, (limits, length, x) in enumerate((((-0.3, 0.3), 1, 0), ((0, 1.2), 0.6, 1), ((-1, 0.1), 0.3, 0.6))):
        joint = sd.revolute("z", limits=limits, name="abc"[k])
        tree.attach(bar(1 - 0.5 * (k == 2), length), to=tree.links[-1], joint=joint, at=(x, 0, 0))

    def run(rate, **options):
        start = sd.State(tree, [0.2, 0.4, 0.1], [rate, 0, 0])
        return sd.simulate(tree, start, 0.2, stops="inelastic", rtol=1e-11, atol=1e-12, **options)

    base = run(1.0, sensitivities=True)
    assert base.events[0].event.coordinate == "a" and base.events[0].event.impulse[2] == 0.0
    change = np.subtract(*([*x.q[-1], *x.qd[-1]] for x in (run(1.0 + 1e-5), run(1.0 - 1e-5)))) / 2e-5
    np.testing.assert_allclose(base.sensitivity(0.2)[:, 3], change, atol=1e-7)


@pytest.mark.parametrize("due", [{"time": 0.0}, {"when": lambda t, state: state["a"] - 0.1}])
def test_what_happens_at_the_start_has_no_other_time(due):
    """Also of a condition that holds already; beside a law of joints with efforts."""
    tree = sd.KinematicTree(gravity=(0.3, -9.81, 0))
    tree.attach(bar(1, 1), to="base", joint=sd.revolute("z", effort=50.0), name="a")
    tree.attach(bar(1, 1), to="a", joint=sd.revolute("z", effort=50.0), at=(1, 0, 0), name="b")

    def end(a, **options):
        own, law = tree.copy(), sd.control.GravityCompensation(tree, damping=0.3)
        exact = {"rtol": 1e-11, "atol": 1e-12, "events": [sd.Lock("b", **due)]}
        return sd.simulate(own, sd.State(own, [a, 0.3], [0.1, 0.2]), 0.2, law, **exact, **options)

    found = end(0.5, sensitivities=True).sensitivity(0.2)
    change = np.subtract(*([*x.q[-1, :1], *x.qd[-1, :1]] for x in (end(0.5 + 1e-5), end(0.5 - 1e-5)))) / 2e-5
    np.testing.assert_allclose(found[:, 0], change, atol=1e-8)


@pytest.mark.slow
def test_what_has_no_derivatives():
    tree = sd.robots.two_link()
    run = functools.partial(sd.simulate, tree, sd.State(tree, [0.1, 0.2]), 0.1, step=0.02)
    with pytest.raises(sd.ScrewdynError, match="sensitivities=True"):
        run().sensitivity(0.1)
    calls = iter(range(10**6))
    with pytest.raises(sd.ScrewdynError, match="without a memory"):
        run(lambda t, s: [0, next(calls)], control_period=0.01, sensitivities=True)
    with pytest.raises(sd.ScrewdynError, match="torque= has no attribute 'kp' that is a number"):
        run(lambda t, s: [0, 0], sensitivities=["torque.kp"])
    frozen = dataclasses.make_dataclass(
        "Frozen", [("kp", float)], frozen=True, namespace={"__call__": lambda *_: [0, 0]}
    )
    with pytest.raises(sd.ScrewdynError, match=r"torque= has no attribute 'kp' that .* can be set"):
        run(frozen(1.0), sensitivities=["torque.kp"])
    with pytest.raises(sd.UnknownNameError, match=r"torque\.kp"):
        run(sensitivities=["torque.kp"])
    with pytest.raises(sd.UnknownNameError, match="crate"):
        run(sensitivities=["crate"])
    with pytest.raises(sd.ScrewdynError, match="the run lasts from 0 to"):
        run(sensitivities=True).sensitivity(0.2)
    yes = sd.SetInertia("link2", sd.Inertia.rod(1, 1), when=lambda t, s: t >= 0.05)
    with pytest.raises(sd.ScrewdynError, match="has no derivative"):
        run(events=[yes], sensitivities=True)
    jumps = sd.SetInertia("link2", sd.Inertia.rod(1, 1), when=lambda t, s: 1.0 if t >= 0.05 else -1.0)
    with pytest.raises(sd.ScrewdynError, match="has no derivative"):
        run(events=[jumps], sensitivities=True)
    with pytest.raises(sd.ScrewdynError, match="names of links; got 'link2'"):
        run(sensitivities="link2")
    resting = sd.KinematicTree(gravity=(0, 0, 0))
    resting.attach(sd.Inertia.rod(1, 1), to="base", joint=sd.revolute("y", limits=(-1, 1)), name="one")
    with pytest.raises(sd.ScrewdynError, match="at no finite rate"):
        sd.simulate(
            resting, sd.State(resting, [1 - 1e-9], [1e-9]), 2.0, stops="inelastic", sensitivities=True, step=0.1
        )


def test_events_of_one_name_have_times_of_their_own():
    tree = sd.KinematicTree()
    tree.attach(bar(1, 1), to="base", joint=sd.revolute("y"), name="a")
    events = [sd.Lock("a", time=0.1), sd.Unlock("a", time=0.2), sd.Lock("a", time=0.3)]
    run = sd.simulate(tree, sd.State(tree, [0.3], [1.0]), 0.4, events=events, sensitivities=True)
    assert run.sensitivities.parameters[2:] == ("time of lock a", "time of unlock a", "time of lock a (2)")


def test_an_event_that_rounding_tells_apart_from_a_call():
    """0.3 < 3 * 0.1 in floats: the interval between the event and the call is not divided for ever."""
    assert 0.3 < 3 * 0.1

    def derivatives(time):
        base = GainsHeld()
        events = [sd.SetInertia("b", bar(2, 1), time=time)]
        options = {"control_period": 0.1, "sensitivities": True, "events": events}
        state = sd.State(base.tree, base.q, base.qd)
        return sd.simulate(base.tree, state, 0.5, Law({}), **options).sensitivity(0.5)

    np.testing.assert_allclose(derivatives(0.3)[:, :4], derivatives(0.3 - 1e-9)[:, :4], atol=1e-6)


class Level:
    """A condition with a number of its own."""

    def __init__(self, level):
        self.level = level

    def __call__(self, t, state):
        return state["a"] - self.level - 0.1 * t


def design():
    """Two bars and a disc, of which a length, a mass, a spring, dry friction, gravity and an axis are symbols."""
    length, mass, k, dry, g, x = sympy.symbols("length mass k dry g x", positive=True)
    tree = sd.KinematicTree(gravity=(0.3, -g, 0))
    tree.attach(bar(1, 1), to="base", joint=sd.revolute("z", damping=0.2, friction=dry), name="a")
    tree.attach(bar(1, 1), to="a", joint=sd.revolute("z", stiffness=k, rest=0.2), at=(length, 0, 0), name="b")
    disc = sd.Link("disc", sd.Inertia.point(mass, (0.2, 0.1, 0)))
    same = sympy.Symbol("length")  # another symbol for SymPy, of which nothing is assumed
    tree.attach(disc, to="b", joint=sd.revolute("z", (x, 0, 0), armature=0.05 * mass), at=(0.8 * same, 0.1, 0))
    return tree


SYMBOLS = {"length": 1.0, "mass": 0.7, "k": 3.0, "dry": 0.4, "g": 9.81, "x": 0.1}
NUMBERS = {
    "grasp tip.when.level": 0.45,
    "grasp tip.at": np.array([1.0, 0.1, 0.0]),
    "grasp tip.start": 0.3,
    "grasp tip.twist": np.array([0.1, 0, 0.2, 0.3, -0.1, 0]),
}


def catch(values, numbers, **options):
    """A bar is caught; joints are locked and free again; torques look at the tree."""
    tree, hook = design().subs(values), sd.revolute("y", passive=True, name="hook")
    level, at, start, twist = numbers.values()
    events = [
        sd.Grasp(bar(0.5, 0.5), to="b", joint=hook, at=at, start=start, name="tip", twist=twist, when=Level(level)),
        *(sd.Lock("disc", time=0.25), sd.Lock("hook", time=0.3), sd.Unlock("disc", time=0.35)),
        sd.Release("tip", time=0.4),
    ]

    def torque(t, state):
        return {"b": 0.3 * state.tree.gravity_vector(state.q)[1]}

    state = sd.State(tree, [0.4, -0.3, 0.2], [2.5, -0.8, 0.3])
    options |= {"events": events, "rtol": 1e-11, "atol": 1e-13, "step": 0.02}
    return sd.simulate(tree, state, 0.5, torque, **options)


@pytest.mark.slow
@pytest.mark.parametrize("each", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_symbols_of_the_tree_and_numbers_of_changes(each):
    run = catch(SYMBOLS, NUMBERS, sensitivities=[*SYMBOLS, *NUMBERS])
    names, P = run.sensitivities.parameters[6:-4], run.sensitivity(0.5)[:, 6:-4]
    ends = np.cumsum([np.size(x) for x in NUMBERS.values()])[:-1]

    def outcome(step):
        values = {x: y + d for (x, y), d in zip(SYMBOLS.items(), step, strict=False)}
        parts = np.split(step[len(SYMBOLS) :], ends)
        numbers = {x: y + d.reshape(np.shape(y)) for (x, y), d in zip(NUMBERS.items(), parts, strict=True)}
        numbers |= {x: float(y) for x, y in numbers.items() if not np.ndim(y)}
        end = catch(values, numbers).states[-1]
        return np.concatenate([end.q, end.qd])

    some, h, largest = np.random.default_rng(8).uniform(-1, 1, (1, len(names))), 3e-4, 0.0
    for d in np.eye(len(names))[:: 1 if FULL_SOAK else 3] if each else 0.3 * some:
        found = sum(w * (outcome(i * h * d) - outcome(-i * h * d)) for i, w in CENTRAL) / h
        largest = max(largest, np.abs(found).max())
        assert np.abs(P @ d - found).max() < 1e-7 * largest, [x for x, y in zip(names, d, strict=True) if y]


def test_a_length_of_a_closed_loop_is_a_symbol():
    """A parallelogram, whose crank of a symbol as long as the rocker moves as one bar of this length."""
    length = sympy.Symbol("length", positive=True)
    tree = sd.KinematicTree(gravity=(0, -9.81, 0))
    for name, x in (("crank", 0.0), ("rocker", 1.0)):
        body = sd.Inertia.rod(1.0, 0.5, com=(0.25, 0, 0))
        tree.attach(body, to="base", joint=sd.revolute("z", damping=0.1), at=(x, 0, 0), name=name)
    rod = sd.Inertia.rod(2.0, 1.0, com=(0.5, 0, 0))
    tree.attach(rod, to="crank", joint=sd.revolute("z"), at=(length, 0, 0), name="coupler")
    tree.close("coupler", to="rocker", joint=sd.revolute("z", (1, 0, 0)), at=(length - 1, 0, 0), name="pin")

    def run(value, **options):
        numbers = tree.subs({"length": value})
        state = sd.State(numbers, *numbers.project([-1.0, -1.0, 1.0], [0.5, 0.5, -0.5]))
        return sd.simulate(numbers, state, 0.5, rtol=1e-11, atol=1e-13, **options)

    P = run(0.7, sensitivities=["length"]).sensitivity(0.5)[:, -1]
    ends = [run(0.7 + s).states[-1] for s in (1e-4, -1e-4)]
    expected = np.subtract(*(np.concatenate([x.q, x.qd]) for x in ends)) / 2e-4
    np.testing.assert_allclose(P, expected, atol=1e-7 * np.abs(expected).max())


def test_symbols_in_a_run_in_two_parts():
    """The second part goes on with the tree of the first one, and knows the symbols that this has."""
    tree, lock = design().subs(SYMBOLS), sd.Lock("disc", time=0.02)
    state, options = sd.State(tree, [0.4, -0.3, 0.2], [2.5, -0.8, 0.3]), {"rtol": 1e-10, "step": 0.01}
    names = ["mass", "length"]
    whole = sd.simulate(tree.copy(), state, 0.08, events=[lock], sensitivities=names, **options)
    first = sd.simulate(tree, state, 0.04, events=[lock], sensitivities=names, **options)
    options |= {"sensitivities": True, "t0": 0.04}
    both = first + sd.simulate(tree, sd.State(tree, first.states[-1].q, first.states[-1].qd), 0.04, **options)
    expected = whole.sensitivity(0.08)
    np.testing.assert_allclose(both.sensitivity(0.08), expected, atol=1e-8 * np.abs(expected).max())
    tree.set_inertia("b", bar(2, 1))
    other = sd.simulate(tree, sd.State(tree, first.states[-1].q, first.states[-1].qd), 0.04, **options)
    with pytest.raises(sd.ScrewdynError, match="the tree has been changed between its two parts"):
        first + other


@pytest.mark.slow
def test_numbers_that_have_no_derivatives():
    tree, q, qd = design().subs(SYMBOLS), [0.4, -0.3, 0.2], [2.5, -0.8, 0.3]
    options = {"events": [sd.Lock("disc", time=0.05)], "rtol": 1e-6, "step": 0.02}

    def asked(name, tree=tree):
        copy = tree.copy()
        return sd.simulate(copy, sd.State(copy, q, qd), 0.1, sensitivities=[name], **options)

    for name in ("lock disc.time", "lock disc.joint", "lock disc.colour", "lock disc.when.level"):
        with pytest.raises(sd.ScrewdynError, match=f"no derivatives by '{name}': give an attribute"):
            asked(name)
    changed = tree.copy()
    changed.set_inertia("disc", sd.Inertia.point(1, (0.2, 0.1, 0)))
    for name, other in (("width", tree), ("mass", changed)):
        with pytest.raises(sd.UnknownNameError, match=name):
            asked(name, other)
    with pytest.raises(sd.ScrewdynError, match="a change reverses joint 'two', whose home depends on a parameter"):
        reversed_joint(0.1, {"at": (sympy.Symbol("far"), 0, 0)}, sensitivities=["far"])


def reversed_joint(value, place, **options):
    """Two bodies that float, of which the second one becomes the root."""
    tree = sd.KinematicTree()
    tree.attach(bar(1, 1), to="base", joint=sd.free(name="float"), name="one")
    joint = sd.revolute("z", place.pop("axis", (0, 0, 0)), damping=0.3)
    tree.attach(bar(1, 1), to="one", joint=joint, name="two", **place)
    numbers = tree.subs({"far": value})
    state = sd.State(numbers, numbers.neutral(), np.linspace(0.3, 0.9, 7))
    events = [sd.Reroot("two", time=0.05)]
    return sd.simulate(numbers, state, 0.1, events=events, rtol=1e-11, atol=1e-13, **options)


def test_a_symbol_in_the_axis_of_a_joint_that_is_reversed():
    far, h = sympy.Symbol("far"), 1e-4
    end, *ends = (reversed_joint(0.1 + s, {"axis": (0, far, 0)}).states[-1] for s in (0.0, h, -h))
    run = reversed_joint(0.1, {"axis": (0, far, 0)}, sensitivities=["far"])
    q, space = [x.q for x in ends], end.tree.model.configurations
    by_q = (space.difference(end.q, q[0]) - space.difference(end.q, q[1])) / (2 * h)
    expected = np.concatenate([by_q, (ends[0].qd - ends[1].qd) / (2 * h)])
    np.testing.assert_allclose(run.sensitivity(0.1)[:, -2], expected, atol=1e-7 * np.abs(expected).max())


@pytest.mark.slow
@pytest.mark.parametrize("own", [True, False])
def test_motors_that_saturate_without_a_period(own):
    """Torques of both motors become the largest and less again, at times that depend on the start.

    Steps across the kinks of the torques carry errors of the runs: differences need a tolerance of 1e-12.
    """
    tree = sd.KinematicTree(gravity=(0.3, -9.81, 0))
    tree.attach(bar(1, 1), to="base", joint=sd.revolute("z", damping=0.2, effort=12.0), name="a")
    tree.attach(bar(1, 1), to="a", joint=sd.revolute("z", effort=4.0), at=(1, 0, 0), name="b")

    def reference(t):
        return np.array([0.3, 0.2]) * np.sin(2 * t), np.array([0.6, 0.4]) * np.cos(2 * t), np.zeros(2)

    torque = sd.control.ComputedTorque(tree, reference) if own else Law({})
    options = {"torque": torque, "saturate": True, "atol": 1e-13, "step": 0.01}

    def end(s, direction, rtol=1e-12, **more):
        y = np.array([0.5, -0.4, 0.5, -0.8]) + s * direction
        return sd.simulate(tree, sd.State(tree, y[:2], y[2:]), 0.35, rtol=rtol, **options, **more)

    direction, h = np.array([0.3, -0.2, 0.5, 0.4]), 1e-3
    run = end(0.0, direction, 1e-10, sensitivities=True)
    full = np.abs(run.motions[0].torque) == tree.model.efforts
    assert (np.abs(np.diff(full, axis=0)).sum(axis=0) >= 1).all()
    states = {i: end(i * h, direction).states[-1] for k, _ in CENTRAL for i in (k, -k)}
    found = sum(w * np.concatenate([states[k].q - states[-k].q, states[k].qd - states[-k].qd]) for k, w in CENTRAL) / h
    apart = np.abs(run.sensitivity(0.35) @ direction - found).max()
    assert apart < 2e-8 * np.abs(found).max()
