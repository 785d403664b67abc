"""Grasps and releases against the laws of momentum (docs/mathematics.md §6) and against grasps done by hand."""

import copy
from dataclasses import dataclass, replace

import numpy as np
import pytest
from cases import close, norm
from hypothesis import given
from hypothesis import strategies as st
from kinds import EVERY, MOVING, random_joint
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd
from screwdyn import screw
from screwdyn.testing import random_inertia, random_pose, random_tree

# A free joint transmits no impulse.
HELD = tuple(kind for kind in EVERY if kind != "free")
# Relative to the terms that cancel; the error is rounding times the condition of the mass matrix.
TIGHT = 1e-9


def renamed(tree, prefix, base):
    """The same tree with other names and with a body at its base."""
    twin = sd.KinematicTree(sd.Link(prefix + tree.base, base))
    graph = tree.graph
    for link in tree.links[1:]:
        ((parent, edge),) = graph.pred[link].items()
        joint = replace(edge["joint"], name=prefix + edge["name"])
        twin.attach(sd.Link(prefix + link, tree.link(link).inertia), prefix + parent, joint, edge["home"])
    return twin


def floating_mass_matrix(tree, q):
    """Over the base's twist in its own frame and q̇."""
    floating = sd.KinematicTree("ground")
    joint = sd.free(name="floating")
    floating.attach(tree, to="ground", joint=joint)
    return floating.mass_matrix([*joint.neutral, *q])


def random_state(rng, tree):
    return sd.State(tree, tree.integrate(tree.neutral(), rng.uniform(-2, 2, tree.nv)), rng.uniform(-2, 2, tree.nv))


def floating(body, inner=()):
    """The body on three revolute and three prismatic joints, whose rates at q = 0 are its twist."""
    free = sd.KinematicTree("ground", gravity=(0, 0, 0))
    at = "ground"
    for k, joint in enumerate([*map(sd.revolute, "xyz"), *map(sd.prismatic, "xyz")]):
        if k < 5:
            free.attach(sd.Link(f"frame{k}"), at, joint)
            at = f"frame{k}"
        else:
            free.attach(body, at, joint)
    return free, np.concatenate([np.zeros(6), inner])


@dataclass
class Meeting:
    """A robot about to grasp a payload."""

    tree: sd.KinematicTree
    state: sd.State
    body: object
    to: str
    joint: sd.Joint
    at: np.ndarray
    twist: np.ndarray
    body_state: sd.State | None

    def grasp(self, tree=None, **changed):
        options = {"to": self.to, "joint": self.joint, "at": self.at, "twist": self.twist, "name": "load"}
        options |= {"body_state": self.body_state} | changed
        return (tree or self.tree).grasp(self.state, self.body, **options)

    @property
    def payload(self):
        """(6 + b, 6 + b) mass matrix and rates of the free payload, from a robot that can move it anywhere."""
        inner = self.body_state
        free, q = floating(self.body, () if inner is None else inner.q)
        return free.mass_matrix(q), np.concatenate([self.twist, () if inner is None else inner.qd])

    @property
    def J(self):
        return screw.Ad(screw.inverse(self.at)) @ self.tree.jacobian(self.to, self.state.q, "body")

    def __repr__(self):
        return f"<{self.state}\n{self.tree}\n  meets on {self.to}, by {self.joint}\n{self.body}, {self.body_state}>"


@st.composite
def meetings(draw, kinds=EVERY, least=0, robot=MOVING):
    n, b = draw(st.integers(least, 6)), draw(st.integers(0, 3))
    kind = draw(st.sampled_from(kinds))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tree = random_tree(rng, n, robot)
    body, body_state = random_inertia(rng), None
    if b:
        body = renamed(random_tree(rng, b, MOVING), "p_", body)
        body_state = random_state(rng, body)
    to = tree.links[int(rng.integers(len(tree.links)))]
    state = random_state(rng, tree)
    twist = rng.uniform(-2, 2, 6)
    return Meeting(tree, state, body, to, random_joint(rng, kind), random_pose(rng), twist, body_state)


def moment(pose, wrench):
    """A momentum in a body's own frame, about the base's origin and in its axes."""
    return screw.Ad(screw.inverse(pose)).T @ wrench


# By hand -----------------------------------------------------------------------------------------------------------


def arm(I, omega):
    """A wheel about z with a moment of inertia, turning."""
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia(1.0, tensor=(I, I, I)), to="base", joint=sd.revolute("z"), name="arm")
    return tree, sd.State(tree, [0.3], [omega])


def test_arm_grasps_point_mass_at_rest():
    I, m, r, omega = 0.7, 2.5, 0.4, 3.0
    tree, state = arm(I, omega)
    event = tree.grasp(state, sd.Inertia.point(m), to="arm", at=(r, 0, 0), twist="at_rest")
    after = I * omega / (I + m * r**2)
    assert_allclose(event.state.qd, [after], rtol=1e-14)
    assert_allclose(event.energy_lost, 0.5 * I * omega**2 - 0.5 * (I + m * r**2) * after**2, rtol=1e-14)
    # The mass is pushed along y of its frame, from rest to r ω⁺.
    assert_allclose(event.impulse, [0, 0, 0, 0, m * r * after, 0], atol=1e-15)
    assert event.state.tree is tree
    assert event.state["arm"] == 0.3


SPUN = {"I": 0.7, "m": 2.5, "r": 0.4, "J": 0.09, "omega": 3.0, "u": 1.1, "spin": -8.0}


def spinning_payload(joint):
    """A disc that moves along the arm's circle with speed u and rotates with a spin."""
    I, m, r, J, omega, u, spin = SPUN.values()
    tree, state = arm(I, omega)
    disc = sd.Inertia(m, tensor=(J, J, J))
    return tree.grasp(state, disc, to="arm", at=(r, 0, 0), joint=joint, name="disc", twist=[0, 0, spin, 0, u, 0])


def test_spinning_payload_on_a_passive_pin_keeps_its_spin():
    I, m, r, _, omega, u, spin = SPUN.values()
    event = spinning_payload(sd.revolute("z", passive=True))
    after = (I * omega + m * r * u) / (I + m * r**2)
    assert_allclose(event.state.velocity("arm"), after, rtol=1e-14)
    assert_allclose(event.state.velocity("arm") + event.state.velocity("disc"), spin, rtol=1e-14)
    assert event.state["disc"] == 0


def test_spinning_payload_on_a_fixed_joint_shares_its_angular_momentum():
    I, m, r, J, omega, u, spin = SPUN.values()
    event = spinning_payload(None)
    assert_allclose(event.state.qd, [(I * omega + m * r * u + J * spin) / (I + m * r**2 + J)], rtol=1e-14)


def test_falling_rod_grasped_at_one_end():
    m, L, v = 1.3, 0.8, 2.0
    tree = sd.KinematicTree()
    rod = sd.Inertia.rod(m, L, axis="x", com=(L / 2, 0, 0))
    event = tree.grasp(sd.State(tree), rod, to="base", joint=sd.revolute("z"), twist=[0, 0, 0, 0, v, 0], name="rod")
    assert_allclose(event.state.qd, [3 * v / (2 * L)], rtol=1e-14)
    kinetic = 0.5 * m * v**2
    assert_allclose(event.energy_lost, kinetic / 4, rtol=1e-14)
    assert_allclose(tree.kinetic_energy(event.state.q, event.state.qd), 0.75 * kinetic, rtol=1e-14)
    # The pin stops a quarter of the momentum.
    assert_allclose(event.impulse, [0, 0, 0, 0, -m * v / 4, 0], atol=1e-15)


def test_two_sliders_coupled():
    m1, m2, v1, v2 = 2.0, 3.0, 1.5, -0.5
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.point(m1), to="base", joint=sd.prismatic("x"), name="cart")
    event = tree.grasp(sd.State(tree, [0.2], [v1]), sd.Inertia.point(m2), to="cart", twist=[0, 0, 0, v2, 0, 0])
    assert_allclose(event.state.qd, [(m1 * v1 + m2 * v2) / (m1 + m2)], rtol=1e-14)
    assert_allclose(event.energy_lost, 0.5 * m1 * m2 / (m1 + m2) * (v1 - v2) ** 2, rtol=1e-14)


def test_slider_on_a_parallel_slider_keeps_its_speed():
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.point(2.0), to="base", joint=sd.prismatic("x"), name="cart")
    rider = sd.Inertia.point(3.0)
    event = tree.grasp(
        sd.State(tree, qd=[1.5]),
        rider,
        to="cart",
        joint=sd.prismatic("x"),
        twist=[0, 0, 0, -0.5, 0, 0],
        name="rider",
    )
    assert_allclose(event.state.qd, [1.5, -2.0], rtol=1e-14)
    assert event.energy_lost < 1e-30


def test_nut_that_lands_on_a_screw():
    m, I, h, v = 0.4, 2e-3, 0.05, -3.0
    tree = sd.KinematicTree()
    nut = sd.Inertia(m, tensor=(I, I, I))
    event = tree.grasp(sd.State(tree), nut, to="base", joint=sd.helical("z", h), twist=[0, 0, 0, 0, 0, v], name="nut")
    rate = m * h * v / (I + m * h**2)
    assert_allclose(event.state.qd, [rate], rtol=1e-14)
    assert_allclose(event.energy_lost, 0.5 * m * v**2 - 0.5 * (I + m * h**2) * rate**2, rtol=1e-13)
    n, f = event.impulse[2], event.impulse[5]
    assert_allclose(n + h * f, 0, atol=1e-15)


# Laws, on random trees ---------------------------------------------------------------------------------------------


@given(meetings())
def test_momentum_equations(meeting):
    n, M, J, qd = meeting.tree.nv, meeting.tree.mass_matrix(meeting.state.q), meeting.J, meeting.state.qd
    M_payload, rates = meeting.payload
    S, k = meeting.joint.screws, meeting.joint.nv
    event = meeting.grasp()
    after = event.state
    momentum = M_payload @ rates

    # Row by row; the matrix on the left is the mass matrix of the tree with its payload.
    left = meeting.tree.mass_matrix(after.q) @ after.qd
    right = np.concatenate([M @ qd + J.T @ momentum[:6], S.T @ momentum[:6], momentum[6:]])
    scale = norm(meeting.tree.mass_matrix(after.q)) * norm(after.qd) + norm(right) + norm(momentum)
    close(left, right, scale, TIGHT)

    # The impulse on the payload, its reaction on the robot, and none along the new joint.
    change = np.concatenate([J @ after.qd[:n] + S @ after.qd[n : n + k], after.qd[n + k :]]) - rates
    push = M_payload @ change
    close(event.impulse, push[:6], scale, TIGHT)
    close(push[6:], np.zeros(len(rates) - 6), scale, TIGHT)
    close(S.T @ event.impulse, np.zeros(k), scale, TIGHT)
    close(M @ (after.qd[:n] - qd), -J.T @ event.impulse, scale, TIGHT)


@given(meetings())
def test_energy_lost_is_the_decrease_of_kinetic_energy(meeting):
    M_payload, rates = meeting.payload
    own = 0.5 * rates @ M_payload @ rates
    before = meeting.tree.kinetic_energy(meeting.state.q, meeting.state.qd) + own
    event = meeting.grasp()
    after = meeting.tree.kinetic_energy(event.state.q, event.state.qd)
    assert event.energy_lost >= 0
    close(event.energy_lost, before - after, before, TIGHT)
    close(event.payload.kinetic_energy, own, own, 1e-12)


@given(meetings())
def test_positions_are_continuous_and_the_new_joint_starts_neutral(meeting):
    q = meeting.state.q.copy()
    event = meeting.grasp()
    inner = () if meeting.body_state is None else meeting.body_state.q
    assert_array_equal(event.state.q, [*q, *meeting.joint.neutral, *inner])
    assert event.state.coordinates == meeting.tree.coordinates
    assert event.state.positions == meeting.tree.positions
    pose = meeting.tree.forward_kinematics("load", event.state.q)
    close(event.payload.pose, pose, 1, 1e-12)


@given(meetings())
def test_co_moving_payload_changes_no_rate(meeting):
    event = meeting.grasp(twist="co_moving")
    inner = () if meeting.body_state is None else meeting.body_state.qd
    assert_array_equal(event.state.qd, [*meeting.state.qd, *np.zeros(meeting.joint.nv), *inner])
    assert event.energy_lost == 0
    assert_array_equal(event.impulse, np.zeros(6))


@given(meetings())
def test_co_moving_and_at_rest_as_twists(meeting):
    for words, numbers in (("co_moving", meeting.J @ meeting.state.qd), ("at_rest", np.zeros(6))):
        by_word, by_numbers = (meeting.grasp(tree=meeting.tree.copy(), twist=twist) for twist in (words, numbers))
        close(by_word.state.qd, by_numbers.state.qd, norm(by_numbers.state.qd), 1e-10)
        close(by_word.payload.twist, numbers, norm(numbers), 1e-15)


@given(meetings())
def test_release_changes_no_rate_and_loses_no_energy(meeting):
    before = meeting.grasp().state
    tree = meeting.tree
    kinetic = tree.kinetic_energy(before.q, before.qd)
    momentum = tree.momentum(before.q, before.qd)
    pose = tree.forward_kinematics("load", before.q)
    event = tree.release(before, "load")
    assert event.state.coordinates == tree.coordinates == meeting.state.coordinates
    assert_array_equal(event.state.q, meeting.state.q)
    assert_array_equal(event.state.qd, before.qd[: meeting.state.qd.size])
    free = event.released
    close(free.pose, pose, 1, 1e-13)
    close(tree.kinetic_energy(event.state.q, event.state.qd) + free.kinetic_energy, kinetic, kinetic, 1e-10)
    rates = np.concatenate([free.twist, free.state.qd])
    gone = moment(free.pose, (floating_mass_matrix(free.tree, free.state.q) @ rates)[:6])
    rest = tree.momentum(event.state.q, event.state.qd)
    close(rest + gone, momentum, norm(rest) + norm(gone), 1e-10)


@given(meetings(kinds=[kind for kind in EVERY if kind != "universal"]))
def test_release_then_grasp_again_loses_nothing(meeting):
    """A universal joint is excluded: when it starts again, its first axis is that of angle2 = 0."""
    tree, to = meeting.tree, meeting.to
    held = meeting.grasp().state
    # With the joint moved, so that it has to begin anew from there.
    held = sd.State(tree, tree.integrate(held.q, np.full(tree.nv, 0.3)), held.qd)
    kinetic = tree.kinetic_energy(held.q, held.qd)
    released = tree.release(held, "load")
    free = released.released
    again = tree.grasp(
        released.state,
        free.tree,
        to=to,
        joint=meeting.joint,
        at=screw.inverse(tree.forward_kinematics(to, released.state.q)) @ free.pose,
        twist=free.twist,
        name="load",
        body_state=free.state,
    )
    assert again.state.coordinates == held.coordinates
    close(again.state.qd, held.qd, norm(held.qd), 1e-8)
    assert again.energy_lost <= 1e-14 * kinetic
    close(tree.kinetic_energy(again.state.q, again.state.qd), kinetic, kinetic, 1e-10)


@given(meetings(), st.integers(0, 2**32 - 1))
def test_order_of_two_grasps_does_not_matter(meeting, seed):
    rng = np.random.default_rng(seed)
    second = {"to": meeting.tree.links[-1], "at": random_pose(rng), "twist": rng.uniform(-2, 2, 6), "name": "other"}
    second |= {"joint": random_joint(rng, EVERY[seed % len(EVERY)])}
    body, tree = random_inertia(rng), meeting.tree.copy()
    one = meeting.grasp()
    two = meeting.tree.grasp(one.state, body, **second)
    first = tree.grasp(meeting.state, body, **second)
    then = replace(meeting, state=first.state).grasp(tree=tree)
    order = [two.state.coordinates.index(name) for name in then.state.coordinates]
    close(then.state.qd, two.state.qd[order], norm(two.state.qd), 1e-8)
    lost = one.energy_lost + two.energy_lost
    close(first.energy_lost + then.energy_lost, lost, lost, 1e-9)


@given(meetings(least=1))
def test_floating_robot_keeps_its_spatial_momentum(meeting):
    free, q = floating(renamed(meeting.tree, "r_", sd.Inertia.sphere(2.0, 0.2)), meeting.state.q)
    # Away from q = 0, and from where two of the three axes fall together.
    q[:6] = [0.3, -0.4, 0.5, 1.0, -2.0, 0.7]
    qd = np.concatenate([[0.5, -1.0, 0.7, 0.2, 0.4, -0.6], meeting.state.qd])
    M_payload, rates = meeting.payload
    to = f"r_{meeting.to}"
    pose = free.forward_kinematics(to, q) @ meeting.at
    before = free.momentum(q, qd) + moment(pose, (M_payload @ rates)[:6])
    state = sd.State(free, q, qd)
    event = replace(meeting, state=state, to=to).grasp(tree=free)
    close(free.momentum(event.state.q, event.state.qd), before, norm(before) + norm(M_payload) * norm(rates), TIGHT)


@given(meetings(kinds=HELD, least=1, robot=HELD[1:]))
def test_robot_on_a_fixed_base_does_not(meeting):
    M_payload, rates = meeting.payload
    pose = meeting.tree.forward_kinematics(meeting.to, meeting.state.q) @ meeting.at
    before = meeting.tree.momentum(meeting.state.q, meeting.state.qd) + moment(pose, (M_payload @ rates)[:6])
    event = meeting.grasp()
    assert norm(meeting.tree.momentum(event.state.q, event.state.qd) - before) > 1e-6


@given(meetings(least=1))
def test_payload_on_a_massless_hook(meeting):
    """A massless hook rotates freely: without a payload, its acceleration is undetermined."""
    tree = meeting.tree
    tree.attach(sd.Link("hook"), to=meeting.to, joint=sd.revolute("x"))
    state = sd.State(tree, [*meeting.state.q, 0.2], [*meeting.state.qd, 0.5])
    with pytest.raises(sd.SingularAttachmentError, match="hook"):
        tree.forward_dynamics(state.q, state.qd, np.zeros(tree.nv))
    hung = replace(meeting, state=state, to="hook", joint=sd.fixed())
    event = hung.grasp(twist="co_moving")
    assert_array_equal(event.state.qd[: tree.nv], [*state.qd, *event.state.qd[len(state.qd) :]])
    assert np.isfinite(tree.forward_dynamics(event.state.q, event.state.qd, np.zeros(tree.nv))).all()


@given(meetings(kinds=("free",)))
def test_grasp_by_a_free_joint_changes_nothing(meeting):
    """The payload continues its motion; the rates of the joint are its twist minus that of the frame."""
    n, carried = meeting.state.qd.size, meeting.J @ meeting.state.qd
    event = meeting.grasp()
    close(event.state.qd[:n], meeting.state.qd, norm(event.state.qd), 1e-9)
    close(event.state.qd[n : n + 6], meeting.twist - carried, norm(event.state.qd), 1e-9)
    if meeting.body_state is not None:
        close(event.state.qd[n + 6 :], meeting.body_state.qd, norm(event.state.qd), 1e-9)
    energy = meeting.tree.kinetic_energy(event.state.q, event.state.qd)
    assert event.energy_lost <= 1e-15 * energy


@given(meetings(kinds=HELD[1:]))
def test_grasp_by_a_joint_then_weld_is_a_fixed_grasp(meeting):
    """The total energy lost in the two steps is the same."""
    tree = meeting.tree.copy()
    at_once = meeting.grasp(tree=tree, joint=sd.fixed())
    hung = meeting.grasp()
    off = meeting.tree.release(hung.state, "load")
    free = off.released
    welded = meeting.tree.grasp(
        off.state, free.tree, to=meeting.to, at=meeting.at, twist=free.twist, name="load", body_state=free.state
    )
    assert welded.state.coordinates == at_once.state.coordinates
    close(welded.state.qd, at_once.state.qd, norm(at_once.state.qd), 1e-8)
    lost = hung.energy_lost + welded.energy_lost
    close(lost, at_once.energy_lost, at_once.energy_lost, 1e-9)


def test_falling_top_grasped_by_its_tip():
    """A rod with a spin falls upright on a ball joint: the spin remains, the translation is lost."""
    m, L, v, spin = 1.3, 0.8, -2.0, 30.0
    rod = sd.Inertia.cylinder(m, 0.05, L, com=(0, 0, L / 2))
    tree = sd.KinematicTree()
    event = tree.grasp(sd.State(tree), rod, to="base", joint=sd.spherical(), twist=[0, 0, spin, 0.3, 0, v], name="top")
    about_tip = rod.matrix[1, 1]
    assert_allclose(event.state.qd, [0, m * 0.3 * L / 2 / about_tip, spin], rtol=1e-13, atol=1e-13)
    assert (event.state["top[w]"], event.state.velocity("top[wz]")) == (1.0, pytest.approx(spin))
    kept = 0.5 * rod.tensor[2, 2] * spin**2 + 0.5 * (m * 0.3 * L / 2) ** 2 / about_tip
    assert_allclose(tree.kinetic_energy(event.state.q, event.state.qd), kept, rtol=1e-13)


# Names and handles -------------------------------------------------------------------------------------------------


def test_payload_may_have_a_link_named_like_another_base():
    tree = sd.KinematicTree("world")
    cup = sd.KinematicTree(sd.Link("base", sd.Inertia.sphere(1.0, 0.1)))
    cup.attach(sd.Inertia.point(0.1), to="base", name="spoon")
    event = tree.grasp(sd.State(tree), cup, to="world", joint=sd.revolute("x"), twist="at_rest")
    assert tree.links == ("world", "base", "spoon")
    assert event.handle.name == "base"


def test_payloads_without_a_name_are_numbered():
    tree, state = arm(1.0, 1.0)
    names = []
    for _ in range(3):
        event = tree.grasp(state, sd.Inertia.point(0.1, (0.1, 0, 0)), to="arm", twist="co_moving")
        state = event.state
        names.append(event.handle.name)
    assert names == ["payload", "payload_2", "payload_3"]
    assert tree.release(state, event.handle).released.tree.base == "payload_3"


def test_prefix_of_a_payload():
    tree, state = arm(1.0, 1.0)
    for side in ("left/", "right/"):
        inner = sd.State(CUP, [0.2], [3.0])
        event = tree.grasp(state, CUP, to="arm", twist="at_rest", body_state=inner, prefix=side)
        state = event.state
        assert (event.handle.name, event.link) == (f"{side}cup", f"{side}cup")
        assert event.payload.state.velocity(f"{side}spoon") == 3.0
    assert state.coordinates == ("arm", "left/spoon", "right/spoon")
    assert (state["left/spoon"], state["right/spoon"]) == (0.2, 0.2)


def test_handle_is_stale_after_the_release():
    tree, state = arm(1.0, 1.0)
    event = tree.grasp(state, sd.Inertia.point(0.1), to="arm", twist="co_moving", name="nut")
    released = tree.release(event.state, event.handle)
    with pytest.raises(sd.StaleHandleError, match="nut"):
        tree.release(released.state, event.handle)


def test_payload_is_copied():
    tree, state = arm(1.0, 1.0)
    cup = sd.KinematicTree(sd.Link("cup", sd.Inertia.sphere(1.0, 0.1)))
    event = tree.grasp(state, cup, to="arm", twist="co_moving")
    event.payload.tree.attach(sd.Inertia.point(1.0), to="cup")
    cup.attach(sd.Inertia.point(1.0), to="cup")
    assert tree.links == ("base", "arm", "cup")


def test_any_link_of_the_robot_can_be_released():
    tree = sd.robots.pelican()
    state = sd.State(tree, [0.3, -0.4], [1.0, 2.0])
    twist = tree.jacobian("link2", state.q, "body") @ state.qd
    event = tree.release(state, "link2")
    assert event.state.coordinates == ("shoulder",)
    assert event.released.tree.base == "link2"
    assert_allclose(event.released.twist, twist, rtol=1e-15)


def test_gravity_of_a_free_body_is_given_in_its_own_frame():
    tree, state = arm(1.0, 0.0)
    tree.gravity = (1.0, 2.0, 3.0)
    at = screw.exp([0.3, -0.4, 0.5, 0, 0, 0])
    event = tree.grasp(state, sd.Inertia.sphere(1.0, 0.1), to="arm", at=at, twist="co_moving", name="ball")
    released = tree.release(event.state, "ball").released
    for free in (event.payload, released):
        assert_allclose(free.pose[:3, :3] @ free.tree.gravity, tree.gravity, rtol=1e-15)


def test_effective_inertia_on_a_fixed_joint():
    """Lumped numbers, such as a motor's inertia along one axis, as long as every motion has an energy."""
    tree, state = arm(0.7, 3.0)
    with pytest.warns(sd.ScrewdynWarning):
        motor = sd.Inertia.effective(0.0, (0, 0, 0), (0, 0, 0.2))
        negative = sd.Inertia.effective(1.0, (0, 0, 0), [[0.1, 0.101, 0], [0.101, 0.1, 0], [0, 0, 0.2]])
    before = fingerprint(tree, state)
    with pytest.raises(sd.InertiaError, match="kinetic energy of some motion is negative"):
        tree.grasp(state, negative, to="arm", twist="at_rest")
    assert fingerprint(tree, state) == before
    event = tree.grasp(state, motor, to="arm", twist="at_rest")
    assert_allclose(event.state.qd, [0.7 * 3.0 / 0.9], rtol=1e-14)


# Refusals ----------------------------------------------------------------------------------------------------------


def fingerprint(tree, state):
    """Everything that must not change after an error."""
    graph = tree.graph
    nodes = {name: (id(data["link"]), data["serial"]) for name, data in graph.nodes(data=True)}
    edges = {
        (a, b): (id(data["joint"]), data["home"].tobytes(), data["name"], data["coordinate"])
        for a, b, data in graph.edges(data=True)
    }
    return (
        *(tree.revision, tree.links, tree.joints, tree.coordinates, tree.gravity.tobytes(), str(tree)),
        *(list(nodes.items()), list(edges.items()), tree.mass_matrix(tree.neutral()).tobytes()),
        *(state.coordinates, state.q.tobytes(), state.qd.tobytes(), id(state.tree)),
    )


CUP = sd.KinematicTree(sd.Link("cup", sd.Inertia.sphere(1.0, 0.1)))
CUP.attach(sd.Inertia.point(0.1, (0.1, 0, 0)), to="cup", joint=sd.revolute("z"), name="spoon")
SHELL = sd.KinematicTree("shell")
SHELL.attach(sd.Inertia.point(0.1, (0.1, 0, 0)), to="shell", joint=sd.revolute("z", (0.1, 0, 0)), name="pea")
LUMP = sd.Inertia.point(1.0, (0.1, 0, 0))

REFUSED = {
    "a point mass on a pin through itself": (
        sd.SingularAttachmentError,
        "nothing beyond joint 'load'",
        {"body": sd.Inertia.point(1.0), "joint": sd.revolute("y")},
    ),
    "a thin rod on a pin along itself": (
        sd.SingularAttachmentError,
        "nothing beyond joint 'load'",
        {"body": sd.Inertia.rod(1.0, 0.5, axis="x"), "joint": sd.revolute("x")},
    ),
    "nothing on a slide": (
        sd.SingularAttachmentError,
        "nothing beyond joint 'load'",
        {"body": sd.Link("hook"), "joint": sd.prismatic("x")},
    ),
    "a payload with such a joint within": (sd.SingularAttachmentError, "nothing beyond joint 'pea'", {"body": SHELL}),
    "five numbers": (sd.ShapeError, "twist must be six finite numbers", {"twist": np.zeros(5)}),
    "a batch of twists": (sd.ShapeError, "twist must be six finite numbers", {"twist": np.zeros((1, 6))}),
    "a twist that is not finite": (sd.ShapeError, "twist must be six", {"twist": [0, 0, np.nan, 0, 0, 0]}),
    "a word": (sd.ShapeError, "'co_moving', 'at_rest' or six numbers", {"twist": "comoving"}),
    "no twist": (sd.ShapeError, "because the impact depends on .* it was not given", {"twist": None}),
    "an unknown link": (sd.UnknownLinkError, "did you mean 'link2'", {"to": "link22"}),
    "no link": (sd.UnknownLinkError, "no link None", {"to": None}),
    "a link that is there already": (sd.TopologyError, "a link 'link1' already", {"name": "link1"}),
    "a joint that is there already": (
        sd.TopologyError,
        "a joint 'elbow' already",
        {"joint": sd.revolute("z", name="elbow")},
    ),
    "a link within that is there already": (sd.TopologyError, "already", {"body": sd.robots.pelican()}),
    "no body": (sd.TopologyError, "or a FreeBody can be grasped, or a link .* got 3.0", {"body": 3.0}),
    "an unknown name": (sd.UnknownNameError, "no link 'crate'", {"body": "crate"}),
    "no joint": (sd.TopologyError, "joint must be made by", {"joint": "revolute"}),
    "a pose that mirrors": (sd.ShapeError, "the pose of", {"at": np.diag([1, 1, -1, 1])}),
    "the state of another payload": (
        sd.StaleHandleError,
        "but the payload now has",
        {"body_state": sd.State(sd.robots.pelican())},
    ),
    "a state of a payload that has none": (sd.StaleHandleError, "payload", {"body": LUMP, "body_state": sd.State(CUP)}),
    "a payload's state that is none": (sd.ShapeError, "payload must be a State", {"body": CUP, "body_state": [0.1]}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_grasp_changes_nothing(case):
    error, message, changed = REFUSED[case]
    tree = sd.robots.pelican()
    tree.attach(LUMP, to="link2", name="tool")
    state = sd.State(tree, [0.1, 0.2], [0.3, -0.4])
    before, model = fingerprint(tree, state), tree.model
    options = {"body": LUMP, "to": "link2", "twist": "at_rest", "name": "load", "joint": sd.revolute("z")} | changed
    with pytest.raises(error, match=message):
        tree.grasp(state, **options)
    assert fingerprint(tree, state) == before
    assert tree.model is model


@pytest.mark.parametrize("kind", EVERY)
def test_massless_payload_needs_a_fixed_joint(kind):
    tree, state = arm(1.0, 2.0)
    joint = random_joint(np.random.default_rng(0), kind, name="pin")
    before = fingerprint(tree, state)
    if kind == "fixed":
        assert_array_equal(tree.grasp(state, sd.Link("frame"), to="arm", joint=joint, twist="at_rest").state.qd, [2])
    else:
        with pytest.raises(sd.SingularAttachmentError, match="pin"):
            tree.grasp(state, sd.Link("frame"), to="arm", joint=joint, twist="at_rest")
        assert fingerprint(tree, state) == before


def test_interrupted_release_changes_nothing(monkeypatch):
    tree = sd.robots.pelican()
    state = tree.grasp(sd.State(tree), LUMP, to="link2", joint=sd.revolute("z"), name="load", twist="at_rest").state
    before = fingerprint(tree, state)

    def interrupt(self, tree):
        raise KeyboardInterrupt

    monkeypatch.setattr(sd.State, "part", interrupt)
    with pytest.raises(KeyboardInterrupt):
        tree.release(state, "load")
    assert fingerprint(tree, state) == before


def test_stale_state_is_refused():
    tree = sd.robots.pelican()
    stale = sd.State(tree)
    held = tree.grasp(stale, LUMP, to="link2", joint=sd.revolute("z"), name="load", twist="at_rest")
    before = fingerprint(tree, stale)
    with pytest.raises(sd.StaleHandleError, match="use the state of the last grasp or release"):
        tree.grasp(stale, LUMP, to="link2", twist="at_rest")
    with pytest.raises(sd.StaleHandleError, match="use the state of the last grasp or release"):
        tree.release(stale, held.handle)
    assert fingerprint(tree, stale) == before


@pytest.mark.parametrize(
    "what, error, message",
    [
        ("lod", sd.UnknownLinkError, "did you mean 'load'"),
        ("base", sd.TopologyError, "is the base"),
        (None, sd.UnknownLinkError, "no link None"),
    ],
)
def test_refused_release_changes_nothing(what, error, message):
    tree = sd.robots.pelican()
    state = tree.grasp(sd.State(tree), LUMP, to="link2", joint=sd.revolute("z"), name="load", twist="at_rest").state
    before = fingerprint(tree, state)
    with pytest.raises(error, match=message):
        tree.release(state, what)
    assert fingerprint(tree, state) == before


def test_a_massless_frame_cannot_fly():
    tree = sd.robots.pelican()
    tree.attach(sd.Link("frame"), "link2")
    before = tree.topology
    with pytest.raises(sd.SingularAttachmentError, match=r"nothing beyond joint 'frame\[v.\]' resists its motion"):
        tree.release(sd.State(tree), "frame", into_world=True)
    assert tree.topology is before


def test_a_massless_hand_lets_go():
    """What is left on its joint has no inertia, which a release accepts with the payload in the world too."""
    tree = sd.KinematicTree()
    tree.attach(sd.Link("hand"), to="base", joint=sd.revolute("z", name="pan"))
    tree.attach(sd.Inertia.sphere(1.0, 0.1), to="hand", at=(0.3, 0, 0), name="ball")
    state, other = sd.State(tree, [0.1], [2.0]), tree.copy()
    event = tree.release(state, "ball", into_world=True)
    assert_allclose(event.state.qd, [2.0, 0, 0, 2.0, 0, 0.6, 0], atol=1e-15)
    assert_allclose(other.release(state, "ball").released.twist, event.state.qd[1:], atol=1e-15)


def test_a_rotor_that_its_carrier_does_not_contain():
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.sphere(0.01, 0.01), to="base", joint=sd.revolute("z", name="a"), name="A")
    motor = sd.Rotor(1e-3, 5.0, axis="x")
    tree.attach(sd.Inertia.sphere(1.0, 0.1), to="A", joint=sd.revolute("z", name="b", rotor=motor), name="B")
    with pytest.raises(sd.InertiaError, match="give the rotor of a motor mass= and across= unless the inertia of its"):
        tree.grasp(sd.State(tree), sd.Inertia.sphere(1.0, 0.1), to="B", twist="at_rest")


def test_payloads_of_outcomes_do_not_depend_on_what_happens_to_the_state():
    """They are made when they are asked for, from what was there at the time of the change, and any number of times."""
    tree = sd.robots.two_link()
    tree.attach(sd.Inertia.sphere(1.0, 0.1), to="link2", joint=sd.revolute("z", name="hook"), name="crate")
    state = sd.State(tree, [0.1, 0.2, 0.3], [1.0, 2.0, 3.0])
    V = tree.jacobian("crate", state.q, "body") @ state.qd
    others = [tree.copy() for _ in range(3)]
    released = others[0].release(state, "crate")
    flying = others[1].release(state, "crate", into_world=True)
    again = others[2].grasp(state, "crate", to="link1")
    after = others[0].grasp(released.state, sd.Inertia.sphere(1.0, 0.1), to="link2", name="crate", twist=V)
    copied = copy.copy(after)
    state.q[:], state.qd[:] = 0.0, 0.0
    for body in (released.released, flying.released, again.payload, after.payload, copied.payload):
        assert_allclose(body.twist, V, rtol=1e-14)


def test_a_link_whose_joint_is_followed_from_beyond_it_is_not_released_into_the_world():
    tree, body = sd.KinematicTree(), sd.Inertia.box(1, (0.1, 0.2, 0.3))
    tree.attach(body, to="base", joint=sd.revolute("y", name="k"), name="x")
    tree.attach(body, to="x", joint=sd.revolute("x", mimic=sd.Mimic("k", 2.0)), name="m")
    with pytest.raises(sd.JointError, match="joint 'k' is followed by another one, which cannot be exchanged"):
        tree.release(sd.State(tree), "x", into_world=True)


def test_a_twist_that_would_overflow_is_refused():
    tree = sd.robots.two_link()
    for size in (1e155, np.inf, np.nan):
        with pytest.raises(sd.ShapeError, match="twist must be six finite numbers"):
            tree.grasp(sd.State(tree), sd.Inertia.sphere(1.0, 0.1), to="link2", twist=np.full(6, size))
