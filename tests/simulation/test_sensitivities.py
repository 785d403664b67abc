"""Derivatives of runs through changes, against differences of whole runs."""

import numpy as np
import pytest

import screwdyn as sd
from screwdyn.simulation.sensitivities import _larger

# Weights of a central difference of fourth order, and its step.
CENTRAL, STEP = ((1, 2 / 3), (2, -1 / 12)), 1e-3


def bar(mass, length):
    return sd.Inertia.box(mass, (length, 0.1, 0.1), com=(length / 2, 0, 0))


class Case:
    """A run of 0.5 s whose robot has bodies that differ by ``more`` and events that are ``late``."""

    links = ("tip",)
    torque = None

    def __init__(self, more=0.0, late=None):
        self.more, self.late = more, late or {}
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


@pytest.mark.parametrize("case", [GraspOnCondition, pytest.param(LockUnlock, marks=pytest.mark.soak), HandOverAndLoop])
def test_derivatives_are_those_of_differences_of_runs(case):
    base = case()
    n, space = base.tree.nv, base.tree.model.configurations
    q0, qd0 = np.asarray(base.q, dtype=float), np.asarray(base.qd, dtype=float)
    run = base.run(sensitivities=["tip"])
    P, end, names = run.sensitivity(0.5), run.states[-1], run.sensitivities.parameters
    last = end.tree.model.configurations

    def outcome(k, s):
        """The end of a run in which parameter k has changed."""
        unit = s * np.eye(len(names))[k]
        more = unit[2 * n : 2 * n + 10] * run.sensitivities._units["tip"]
        late = {name: x for name, x in zip(names, unit, strict=True) if name.startswith("time") and x}
        q, qd = space.integrate(q0, unit[:n]), qd0 + unit[n : 2 * n]
        state = case(more, late).run(q=q, qd=qd).states[-1]
        return np.concatenate([last.difference(end.q, state.q), state.qd])

    sizes = np.ones(len(names))
    sizes[2 * n : 2 * n + 10] = run.sensitivities._units["tip"]
    largest = 0.0
    for k in range(len(names)):
        found = sum(w * (outcome(k, i * STEP) - outcome(k, -i * STEP)) for i, w in CENTRAL) / STEP / sizes[k]
        largest = max(largest, np.abs(found).max())
        assert np.abs(P[:, k] - found).max() < 1e-7 * largest, names[k]


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


def test_what_has_no_derivatives():
    tree = sd.robots.two_link()
    state = sd.State(tree, [0.1, 0.2])
    with pytest.raises(sd.ScrewdynError, match="sensitivities=True"):
        sd.simulate(tree, state, 0.1).sensitivity(0.1)
    with pytest.raises(sd.ScrewdynError, match="omit control_period"):
        sd.simulate(tree, state, 0.1, torque=lambda t, s: [0, 0], control_period=0.01, sensitivities=True)
    with pytest.raises(sd.UnknownNameError, match="crate"):
        sd.simulate(tree, state, 0.1, sensitivities=["crate"])
    with pytest.raises(sd.ScrewdynError, match="the run lasts from 0 to"):
        sd.simulate(tree, state, 0.1, sensitivities=True).sensitivity(0.2)
    yes = sd.SetInertia("link2", sd.Inertia.rod(1, 1), when=lambda t, s: t >= 0.05)
    with pytest.raises(sd.ScrewdynError, match="has no derivative"):
        sd.simulate(tree, state, 0.1, events=[yes], sensitivities=True)
    jumps = sd.SetInertia("link2", sd.Inertia.rod(1, 1), when=lambda t, s: 1.0 if t >= 0.05 else -1.0)
    with pytest.raises(sd.ScrewdynError, match="has no derivative"):
        sd.simulate(tree, state, 0.1, events=[jumps], sensitivities=True)
    with pytest.raises(sd.ScrewdynError, match="names of links; got 'link2'"):
        sd.simulate(tree, state, 0.1, sensitivities="link2")
    rough = sd.KinematicTree()
    rough.attach(sd.Inertia.rod(1, 1), to="base", joint=sd.revolute("y", friction=0.1, limits=(-1, 1)), name="one")
    with pytest.raises(sd.ScrewdynError, match="without_friction"):
        sd.simulate(rough, sd.State(rough), 0.1, sensitivities=True)
    smooth, stop = rough.without_friction(), sd.SpringStop(10.0)
    with pytest.raises(sd.ScrewdynError, match="and stops"):
        sd.simulate(smooth, sd.State(smooth), 0.1, stops=stop, sensitivities=True)


def test_events_of_one_name_have_times_of_their_own():
    tree = sd.KinematicTree()
    tree.attach(bar(1, 1), to="base", joint=sd.revolute("y"), name="a")
    events = [sd.Lock("a", time=0.1), sd.Unlock("a", time=0.2), sd.Lock("a", time=0.3)]
    run = sd.simulate(tree, sd.State(tree, [0.3], [1.0]), 0.4, events=events, sensitivities=True)
    assert run.sensitivities.parameters[2:] == ("time of lock a", "time of unlock a", "time of lock a (2)")
