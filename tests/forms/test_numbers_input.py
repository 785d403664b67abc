"""Input of quantities: any array_like of real numbers gives the same bits, other input raises an error."""

import functools
import itertools

import numpy as np
import pytest
from cases import unaligned
from numpy.testing import assert_array_equal
from scipy.integrate import solve_ivp

import screwdyn as sd
from screwdyn import (
    Inertia,
    KinematicTree,
    Link,
    ShapeError,
    SingularAttachmentError,
    UnknownLinkError,
    prismatic,
    revolute,
)
from screwdyn.testing import random_tree


@pytest.fixture
def tree():
    return random_tree(np.random.default_rng(7), 4)


# How arguments come in: a quantity, one of a link, one with wrenches, and functions outside the catalogue.
DOORS = {
    "inverse_dynamics": (3, lambda tree: tree.inverse_dynamics),
    "jacobian_dot": (2, lambda tree: functools.partial(tree.jacobian_dot, "link4")),
    "pushed": (3, lambda tree: functools.partial(tree.forward_dynamics, wrenches={"link4": [1, 2, 3, 4, 5, 6]})),
    "joint_force": (2, lambda tree: tree.joint_force),
    "wrench_torque": (1, lambda tree: functools.partial(tree.wrench_torque, wrenches={"link4": [1, 2, 3, 4, 5, 6]})),
    "integrate": (2, lambda tree: tree.integrate),
    "difference": (2, lambda tree: tree.difference),
}


@pytest.fixture(params=DOORS)
def door(request, tree):
    """The number of arguments of a function of the state, and the function."""
    count, of = DOORS[request.param]
    return count, of(tree)


def strided(a):
    wide = np.full(2 * len(a), np.nan)
    wide[::2] = a
    return wide[::2]


def read_only(a):
    a = a.copy()
    a.setflags(write=False)
    return a


DISGUISES = {
    "list": list,
    "tuple": tuple,
    "strided": strided,
    "reversed": lambda a: a[::-1].copy()[::-1],
    "read only": read_only,
    "big endian": lambda a: a.astype(">f8"),
    "objects": lambda a: a.astype(object),
    "float32": lambda a: a.astype(np.float32),
    "int": lambda a: a.astype(int),
    "bool": lambda a: a.astype(bool),
    "ints in a list": lambda a: [int(x) for x in a],
}


@pytest.mark.parametrize("disguise", DISGUISES)
def test_every_kind_of_array_gives_the_same_bits(door, disguise):
    count, ask = door
    # Zeros and ones are the same number in every type.
    state = np.random.default_rng(0).integers(0, 2, (count, 4)).astype(float)
    hidden = [DISGUISES[disguise](a) for a in state]
    kept = [np.array(a) for a in hidden]
    assert_array_equal(ask(*hidden), ask(*state))
    for a, b in zip(hidden, kept, strict=True):
        assert_array_equal(a, b)


def test_swapped_bytes_are_noticed_after_an_unaligned_array(door):
    """Neither reaches a kernel as it is."""
    count, ask = door
    state = np.random.default_rng(0).normal(size=(count, 4))
    for disguised in (unaligned(state), state.astype(">f8")):
        assert_array_equal(ask(*disguised), ask(*state))


def test_fortran_order_gives_the_same_bits(door):
    count, ask = door
    states = np.random.default_rng(0).normal(size=(count, 3, 4))
    assert_array_equal(ask(*map(np.asfortranarray, states)), ask(*states))


def test_asking_twice_gives_the_same_bits_and_arrays_of_one_s_own(door):
    count, ask = door
    state = np.random.default_rng(0).normal(size=(count, 4))
    first = ask(*state)
    kept = first.copy()
    first[...] = np.nan
    assert_array_equal(ask(*state), kept)


def test_numbers_that_are_not_finite_are_refused_by_coordinate(door):
    count, ask = door
    for argument, bad in itertools.product(range(count), (np.nan, np.inf, -np.inf)):
        state = np.zeros((count, 4))
        state[argument, 2] = bad
        with pytest.raises(ShapeError, match=rf"is {bad} at 'joint3'; every entry must be finite"):
            ask(*state)
        batch = np.zeros((count, 5, 4))
        batch[argument, 3, 1] = bad
        with pytest.raises(ShapeError, match=rf"is {bad} at 'joint2'"):
            ask(*batch)


def test_wrong_shapes_are_refused_with_the_coordinates(door):
    count, ask = door
    for argument, shape in itertools.product(range(count), [(), (3,), (5,), (4, 1), (4, 3), (0,)]):
        state = [np.zeros(4)] * count
        state[argument] = np.zeros(shape)
        with pytest.raises(ShapeError, match="entry for each of: joint1, joint2, joint3, joint4") as caught:
            ask(*state)
        assert str(shape) in str(caught.value)


JUNK = (None, "abcd", b"abcd", {}, [], [[]], ["a"] * 4, [1, 2, 3, [4]], [1, 2, 3, 1j], [1, 2, 3, 10**400])


def test_what_is_no_array_of_real_numbers_is_refused(door):
    count, ask = door
    for argument, junk in itertools.product(range(count), JUNK):
        state = [np.zeros(4)] * count
        state[argument] = junk
        with pytest.raises(ShapeError):
            ask(*state)


def test_complex_arrays_are_refused_even_if_real(tree):
    with pytest.raises(ShapeError, match="q must be an array of real numbers"):
        tree.mass_matrix(np.zeros(4, dtype=complex))


def test_a_state_is_given_as_its_positions(tree):
    state = sd.State(tree)
    for part, call, given in (("q", tree.mass_matrix, [state]), ("qd", tree.coriolis_matrix, [np.zeros(4), state])):
        with pytest.raises(ShapeError, match=rf"must be an array of real numbers; got State.*; give its \.{part}$"):
            call(*given)


def test_batches_that_do_not_fit_are_refused(tree):
    with pytest.raises(ShapeError, match=r"batch axes cannot be broadcast together: q \(2, 4\), qd \(3, 4\)"):
        tree.coriolis_matrix(np.zeros((2, 4)), np.zeros((3, 4)))


@pytest.mark.parametrize("wrench", [np.zeros(5), np.zeros((6, 1)), 0, [np.nan] * 6, "push", [1j] * 6, np.zeros((2, 6))])
def test_bad_wrenches_are_refused_by_link(tree, wrench):
    with pytest.raises(ShapeError, match="wrench on 'link2'"):
        tree.inverse_dynamics(np.zeros((3, 4)), np.zeros(4), np.zeros(4), {"link2": wrench})


def test_unknown_links_are_told_from_known_ones(tree):
    zero = np.zeros(4)
    for ask in (
        lambda: tree.forward_kinematics("lnik2", zero),
        lambda: tree.jacobian("lnik2", zero),
        lambda: tree.jacobian_dot("lnik2", zero, zero),
        lambda: tree.contribution("lnik2", zero, zero),
        lambda: tree.wrench_torque(zero, {"lnik2": np.zeros(6)}),
    ):
        with pytest.raises(UnknownLinkError, match=r"no link 'lnik2'; did you mean 'link2'"):
            ask()


def test_unknown_frames_are_refused(tree):
    with pytest.raises(ShapeError, match="frame must be 'com', 'body', 'base' or 'mixed'; got 'tool'"):
        tree.jacobian("link1", np.zeros(4), "tool")


POINT = Inertia.point(1, (0, 0, 0.5))


@pytest.mark.parametrize(
    ("joint", "body"),
    [
        (revolute("z", name="wrist"), None),
        (prismatic("z", name="wrist"), None),
        (revolute("z", name="wrist"), POINT),
        (revolute([1, 2, 3], name="wrist"), Inertia.point(1, (0.1, 0.2, 0.3))),
        (revolute([1, 2, 3], [0.1, 0.2, 0.3], name="wrist"), Inertia.point(3, (0.2, 0.4, 0.6))),
        (revolute("x", name="wrist"), Inertia.rod(1, 0.3, "x")),
    ],
)
def test_a_joint_that_carries_no_inertia_is_named(joint, body):
    rng = np.random.default_rng(3)
    tree = random_tree(rng, 3)
    tree.attach(Link("hand", body), to="link2", joint=joint, at=(0.1, 0.2, 0.3))
    tree.attach(Link("tip"), to="hand", at=(0, 0, 0.1))
    q, qd, tau = rng.normal(size=(3, 4))
    assert np.linalg.cond(tree.mass_matrix(q)) > 1e14
    for state in ((q, qd, tau), ([q, q], qd, tau)):
        with pytest.raises(SingularAttachmentError, match="joint 'wrist'"):
            tree.forward_dynamics(*state)
    # Everything that needs no inverse of M is still answered, and a body at the tip puts it right.
    assert np.isfinite(tree.inverse_dynamics(q, qd, tau)).all()
    tree.attach(Inertia.sphere(0.1, 0.02), to="tip", at=(0.1, 0, 0))
    assert np.isfinite(tree.forward_dynamics(q, qd, tau)).all()


def test_a_small_inertia_is_not_taken_for_none():
    """A microgram at a tenth of a millimetre, next to a tonne: small, but not undetermined."""
    tree = KinematicTree(gravity=(0, 0, 0))
    tree.attach(Inertia.sphere(1000, 1), to="base", joint=revolute("x"), name="big")
    tree.attach(Inertia.point(1e-9, (1e-4, 0, 0)), to="big", joint=revolute("z"), name="small")
    qdd = tree.forward_dynamics([0, 0], [0, 0], [0, 1e-17])
    np.testing.assert_allclose(qdd, [0, 1], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("wrenches", [[0.0] * 6, np.zeros(6), "link", 3])
def test_wrenches_that_name_no_link(tree, wrenches):
    x = np.zeros(4)
    for ask in (tree.inverse_dynamics, tree.forward_dynamics):
        with pytest.raises(ShapeError, match="wrenches must map names of links to"):
            ask(x, x, x, wrenches)


@pytest.mark.parametrize(
    "value", [["1"] * 4, np.array(["1"] * 4), np.zeros(4, "datetime64[s]"), np.zeros(4, "timedelta64[s]"), [None] * 4]
)
def test_what_reads_like_numbers_but_is_none(tree, value):
    for ask in (tree.mass_matrix, tree.gravity_vector, tree.potential_energy):
        with pytest.raises(ShapeError, match="q must be an array of real numbers"):
            ask(value)


def test_masked_arrays_are_refused(tree):
    with pytest.raises(ShapeError, match=r"q is a masked array.*filled"):
        tree.mass_matrix(np.ma.masked_array(np.zeros(tree.nq), [True] + [False] * (tree.nq - 1)))


def test_a_tree_that_changes_while_an_argument_is_converted_answers_as_it_was():
    tree = random_tree(np.random.default_rng(0), 4)
    q = np.full(tree.nq, 0.5)
    expected = tree.gravity_vector(q)

    class Late:
        def __array__(self, dtype=None, copy=None):
            tree.attach(Inertia.point(1.0, com=(0.1, 0.2, 0.3)), to=tree.links[-1], joint=prismatic("x"))
            return q

    assert_array_equal(tree.gravity_vector(Late()), expected)
    assert tree.gravity_vector(np.zeros(5)).shape == (5,)


def test_huge_angles_are_refused_only_if_results_are_not_finite():
    """A hub turns at a huge angle, on which its accelerations do not depend; a huge slide overflows the mass matrix."""
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia(2.0, (0.1, 0, 0), np.eye(3)), to="base", joint=sd.revolute("z", name="spindle"), name="hub")
    tree.attach(sd.Inertia(1.0, (0.1, 0, 0), np.eye(3)), to="hub", joint=sd.prismatic("x", name="slide"), name="bob")
    for robot in (tree, tree.compile().wait()):
        expected = robot.forward_dynamics([0.0, 0.3], [1.0, 2.0], [0.1, 0.2])
        for angle in (1e61, -1e200, 1.7e308):
            found = robot.forward_dynamics([angle, 0.3], [1.0, 2.0], [0.1, 0.2])
            np.testing.assert_allclose(found, expected, rtol=1e-14)
            pose = robot.forward_kinematics("hub", [angle, 0.3])
            np.testing.assert_allclose(pose[:2, 0], [np.cos(angle), np.sin(angle)], rtol=0, atol=1e-15)
        with pytest.raises(sd.ShapeError, match=r"q is 1e\+200 at 'slide'; results would overflow"):
            robot.mass_matrix([0.0, 1e200])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "rtol", "duration", "conserved"), [("Radau", 1e-6, 2.5, 1e-5), ("BDF", 1e-3, 10, 0.3)]
)
def test_implicit_integrators_may_probe_a_coordinate_on_which_nothing_depends(method, rtol, duration, conserved):
    """SciPy multiplies the step of its differences by ten each time it has no effect; the spin is conserved."""
    tree = KinematicTree()
    shaft = Inertia.cylinder(1.0, 0.05, 0.5)
    tree.attach(shaft, to="base", joint=revolute("z", name="spindle"), name="shaft")
    for side in (1, -1):
        joint = revolute((0, side, 0), name=f"arm {side}")
        tree.attach(Inertia.sphere(1.2, 0.02, (0, 0, -0.3)), to="shaft", joint=joint, at=(0.05 * side, 0, 0.25))
    angles = []

    def rate(t, y):
        angles.append(abs(y[0]))
        return np.concatenate([y[3:], tree.forward_dynamics(y[:3], y[3:], np.zeros(3))])

    start = np.array([0, 0.3, 0.5, 60.0, 0, 0])
    found = solve_ivp(rate, (0, duration), start, method=method, rtol=rtol, atol=1e-10)
    assert found.success
    assert max(angles) > 1e60
    first, last = (tree.momentum(y[:3], y[3:])[2] for y in (start, found.y[:, -1]))
    assert last == pytest.approx(first, rel=conserved)


@pytest.mark.filterwarnings("error")
def test_configurations_and_joint_forces_are_finite():
    """What overflows is refused, with the coordinate; the angle of a plate may be any number."""
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia(1.0, 0, (1, 1, 1)), "base", sd.planar(name="foot"))
    tree.attach(sd.Inertia(1.0, 0, (1, 1, 1)), tree.links[-1], sd.free(name="fly"))
    tree.attach(sd.Inertia(1.0, 0, (1, 1, 1)), tree.links[-1], sd.revolute(stiffness=10.0, name="spring"))
    q, v = tree.neutral(), np.ones(tree.nv)
    for angle in (1e160, 1.7e308):
        q[0] = angle
        s, c = np.sin(angle), np.cos(angle)
        assert_array_equal(tree.position_rate(q, v)[:3], [1, c - s, s + c])
        assert tree.difference(q, q)[0] == 0
    assert tree.model.joint_forces.spring_energy(q) == 0
    q[0] = 0.0
    q[3:7], v[6:8] = [0, 0, np.sin(0.4), np.cos(0.4)], 1.7e308
    for call in (
        lambda: tree.integrate(q, v),
        lambda: tree.position_rate(q, v),
        lambda: tree.difference([*q[:1], 1.7e308, *q[2:]], [*q[:1], -1.7e308, *q[2:]]),
        lambda: tree.joint_force([*q[:-1], 1e308], np.zeros(tree.nv)),
    ):
        with pytest.raises(sd.ShapeError, match=r"at '(fly.vx.|foot.px.|spring)'; results would overflow"):
            call()


def test_wrenches_whose_forces_would_overflow_are_refused():
    arm = sd.robots.ur5()
    state = np.full((3, 6), 0.3)
    for call in (arm.wrench_torque, lambda q, F: arm.inverse_dynamics(q, q, q, F)):
        with pytest.raises(sd.ShapeError, match=r"a wrench is 1.7e\+308 N m or N in an entry; results would overflow"):
            call(state, {"tool0": [1.7e308] * 6})
    with pytest.raises(sd.ShapeError, match="quaternion"):
        hip = sd.KinematicTree()
        hip.attach(sd.Inertia.sphere(1, 0.1), to="base", joint=sd.spherical(), name="leg")
        hip.wrench_torque([0, 0, 0, 2], {"leg": [1.0] * 6})


def test_a_state_in_place_of_its_parts_is_named():
    arm = sd.robots.ur5()
    for call in (arm.coriolis_matrix, arm.kinetic_energy):
        with pytest.raises(TypeError, match=r"KinematicTree\..*\(\) missing a required argument.*give \.q and \.qd"):
            call(sd.State(arm))
