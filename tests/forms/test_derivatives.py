"""Derivatives of a tree: against differences of the functions, and relations between them."""

import copy
import pickle

import numpy as np
import pytest
from cases import CENTRAL, EPS, STEP, cases, close, derivative, gradient, norm, total
from hypothesis import given, settings
from hypothesis import strategies as st
from kinds import EVERY
from mechanisms import bar, four_bar, moving_bricard, slider_crank
from numpy.testing import assert_allclose, assert_array_equal
from small_arm import nearly_singular
from tangents import state_of

import screwdyn as sd
from screwdyn import Inertia, KinematicTree, Link, ShapeError, SingularAttachmentError, UnknownLinkError, revolute
from screwdyn.backends.llvm import emit
from screwdyn.backends.llvm import program as native
from screwdyn.backends.llvm.program import Kept
from screwdyn.forms import derivatives
from screwdyn.testing import random_tree

NUMBERS = 10


@pytest.fixture(scope="module")
def ur5():
    """Compiled once, for tests that do not change it."""
    return sd.robots.ur5()


def transposed(A):
    return np.swapaxes(A, -1, -2)


def size_of(case):
    """Of torques at a state of order one."""
    return 1 + 10 * case.tree.mass * (1 + total(case.qdd) + total(case.qd) ** 2)


@given(cases(most=4))
def test_inverse_dynamics(case):
    tree, q, qd, qdd = case.tree, case.q, case.qd, case.qdd
    dq, dqd, M = tree.derivatives.inverse_dynamics(q, qd, qdd)
    scale = size_of(case)
    close(dq, gradient(lambda x: tree.inverse_dynamics(x, qd, qdd), q), scale, 1e-10)
    close(dqd, gradient(lambda x: tree.inverse_dynamics(q, x, qdd), qd), scale, 1e-10)
    close(M, tree.mass_matrix(q), 1 + norm(M), 100 * EPS)
    close(dqd, 2 * tree.coriolis_matrix(q, qd), scale, 100 * EPS)


@given(cases(least=1, most=4))
def test_forward_dynamics(case):
    """M ∂q̈ = −∂τ at the acceleration that τ causes: the definition of an implicit derivative."""
    tree, q, qd, tau = case.tree, case.q, case.qd, case.qdd
    dq, dqd, inverse = tree.derivatives.forward_dynamics(q, qd, tau)
    M = tree.mass_matrix(q)
    qdd = tree.forward_dynamics(q, qd, tau)
    tau_q, tau_qd, _ = tree.derivatives.inverse_dynamics(q, qd, qdd)
    kappa = np.linalg.cond(M) if tree.nv else 1.0
    close(M @ inverse, np.eye(tree.nv), kappa, 100 * EPS)
    close(inverse, transposed(inverse), norm(inverse), 0)
    close(M @ dq, -tau_q, 1 + norm(tau_q), 1e3 * kappa * EPS)
    close(M @ dqd, -tau_qd, 1 + norm(tau_qd), 1e3 * kappa * EPS)


def test_forward_dynamics_along_any_direction(ur5):
    rng, arm = np.random.default_rng(4), ur5
    q, qd, tau = rng.uniform(-1, 1, (3, 6))
    for found, along in zip(arm.derivatives.forward_dynamics(q, qd, tau), np.eye(3), strict=True):
        u = rng.uniform(-1, 1, 6)
        moved = derivative(
            lambda x, a=along: arm.forward_dynamics(q + a[0] * x, qd + a[1] * x, tau + a[2] * x), np.zeros(6), u
        )
        close(found @ u, moved, 1 + norm(moved), 1e-6)


@given(cases(most=5))
def test_mass_matrix(case):
    tree, q, qd = case.tree, case.q, case.qd
    D, rate, C = tree.derivatives.mass_matrix(q), tree.derivatives.mass_matrix_dot(q, qd), tree.coriolis_matrix(q, qd)
    scale = 1 + norm(tree.mass_matrix(q)) * (1 + total(qd))
    close(D, gradient(tree.mass_matrix, q), scale, 1e-10)
    close(D, np.swapaxes(D, 0, 1), scale, 0)
    close(rate, D @ qd, scale, 100 * EPS)
    close(rate, C + C.T, scale, 100 * EPS)


@given(cases(most=5))
def test_gravity_vector(case):
    tree, q = case.tree, case.q
    hessian = tree.derivatives.gravity_vector(q)
    close(hessian, gradient(tree.gravity_vector, q), 1 + 10 * tree.mass, 1e-10)
    close(hessian, hessian.T, 1 + 10 * tree.mass, 100 * EPS)


@given(cases(most=5), st.data())
def test_regressor(case, data):
    tree, q, qd, qdd = case.tree, case.q, case.qd, case.qdd
    Y, parameters = tree.derivatives.regressor(q, qd, qdd), tree.derivatives.parameters()
    links = tree.links[1:]
    assert Y.shape == (tree.nv, NUMBERS * len(links))
    assert parameters.shape == (NUMBERS * len(links),)
    close(Y @ parameters, tree.inverse_dynamics(q, qd, qdd), size_of(case), 100 * EPS)
    if links:
        k = data.draw(st.integers(0, len(links) - 1))
        columns = slice(NUMBERS * k, NUMBERS * (k + 1))
        close(tree.derivatives.regressor(q, qd, qdd, links[k]), Y[:, columns], 1 + norm(Y), 100 * EPS)
        assert np.array_equal(tree.derivatives.parameters(links[k]), parameters[columns])


def test_ten_columns_tell_what_any_payload_adds():
    rng = np.random.default_rng(5)
    arm = sd.robots.ur5()
    q, qd, qdd = rng.uniform(-2, 2, (3, 20, 6))
    empty = arm.inverse_dynamics(q, qd, qdd)
    at = sd.testing.random_pose(rng)
    handle = arm.attach(Link("tool"), to=arm.links[-1], at=at)
    Y = arm.derivatives.regressor(q, qd, qdd, "tool")
    arm.detach(handle)
    for _ in range(5):
        payload = sd.testing.random_inertia(rng)
        with arm.attached(payload, to=arm.links[-1], at=at, name="tool"):
            felt = arm.inverse_dynamics(q, qd, qdd) - empty
            close(Y @ arm.derivatives.parameters("tool"), felt, norm(felt), 1e-13)


def test_order_of_the_ten_numbers():
    body = Inertia(2.0, (0.1, 0.2, 0.3), [[0.5, 0.01, 0.02], [0.01, 0.6, 0.03], [0.02, 0.03, 0.7]])
    tree = KinematicTree()
    tree.attach(Link("frame"), to="base")
    tree.attach(body, to="frame", joint=revolute(), name="body")
    I = body.origin_tensor
    expected = [2.0, 0.2, 0.4, 0.6, I[0, 0], I[0, 1], I[0, 2], I[1, 1], I[1, 2], I[2, 2]]
    assert np.allclose(tree.derivatives.parameters("body"), expected, rtol=1e-15)
    assert not tree.derivatives.parameters("frame").any()
    # About a fixed vertical axis only Izz has an influence; bodies welded to the base have none.
    Y = tree.derivatives.regressor([0.4], [0.5], [2.0])
    assert np.allclose(Y, [[*[0] * 19, 2.0]], atol=1e-15)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (100,), (3, 0), (2, 3)])
def test_batches(shape):
    rng = np.random.default_rng(6)
    tree = sd.testing.random_tree(rng, 4)
    q, qd, qdd = rng.uniform(-1, 1, (3, *shape, 4))
    D = tree.derivatives
    functions = [
        (D.inverse_dynamics, (q, qd, qdd), 3 * [(4, 4)]),
        (D.forward_dynamics, (q, qd, qdd), 3 * [(4, 4)]),
        (lambda *x: (D.mass_matrix(*x),), (q,), [(4, 4, 4)]),
        (lambda *x: (D.mass_matrix_dot(*x),), (q, qd), [(4, 4)]),
        (lambda *x: (D.gravity_vector(*x),), (q,), [(4, 4)]),
        (lambda *x: (D.regressor(*x),), (q, qd, qdd), [(4, NUMBERS * (len(tree.links) - 1))]),
    ]
    for function, arguments, tails in functions:
        results = function(*arguments)
        for result, tail in zip(results, tails, strict=True):
            assert result.shape == (*shape, *tail)
        for where in np.ndindex(shape):
            alone = function(*(x[where] for x in arguments))
            for result, one in zip(results, alone, strict=True):
                close(result[where], one, 1 + norm(one), 10 * EPS)


def test_batch_axes_broadcast():
    rng = np.random.default_rng(7)
    D = sd.robots.pelican().derivatives
    q, qd = rng.uniform(-1, 1, (2, 5, 1, 2))
    qdd = rng.uniform(-1, 1, (3, 2))
    for result in (*D.inverse_dynamics(q, qd, qdd), *D.forward_dynamics(q, qd, qdd)):
        assert result.shape == (5, 3, 2, 2)
    assert np.array_equal(D.inverse_dynamics(q, qd, qdd)[0][4, 2], D.inverse_dynamics(q[4, 0], qd[4, 0], qdd[2])[0])


def test_same_bits_every_time(ur5):
    rng, arm = np.random.default_rng(8), ur5
    q, qd, qdd = rng.uniform(-1, 1, (3, 6))
    first = arm.derivatives.inverse_dynamics(q, qd, qdd)
    for again in (arm.derivatives.inverse_dynamics(q, qd, qdd), arm.copy().derivatives.inverse_dynamics(q, qd, qdd)):
        for a, b in zip(first, again, strict=True):
            assert np.array_equal(a, b)
            assert a is not b


def test_a_tree_that_changes():
    rng = np.random.default_rng(9)
    arm = sd.robots.ur5()
    q, qd, qdd = rng.uniform(-1, 1, (3, 6))
    before = arm.derivatives
    assert arm.derivatives is before
    M = before.inverse_dynamics(q, qd, qdd)[2]
    arm.attach(Inertia(3.0, (0, 0, 0.1)), to=arm.links[-1])
    assert arm.derivatives is not before
    assert np.array_equal(before.inverse_dynamics(q, qd, qdd)[2], M)
    close(arm.derivatives.inverse_dynamics(q, qd, qdd)[2], arm.mass_matrix(q), 10, 100 * EPS)
    arm.gravity = (0, 0, 0)
    assert not arm.derivatives.gravity_vector(q).any()


def test_nothing_that_moves():
    tree = KinematicTree()
    tree.attach(Inertia(1.0), to="base")
    assert [x.shape for x in tree.derivatives.inverse_dynamics([], [], [])] == [(0, 0)] * 3
    assert [x.shape for x in tree.derivatives.forward_dynamics([], [], [])] == [(0, 0)] * 3
    assert tree.derivatives.mass_matrix([]).shape == (0, 0, 0)
    assert tree.derivatives.regressor([], [], []).shape == (0, NUMBERS)
    assert KinematicTree().derivatives.regressor([], [], []).shape == (0, 0)
    assert KinematicTree().derivatives.parameters().shape == (0,)


@pytest.mark.parametrize("wrong", [np.zeros(5), np.full(6, np.nan), 1.0, np.zeros((2, 3)), "six", [1, 2j, 0, 0, 0, 0]])
def test_wrong_arguments_are_named(ur5, wrong):
    D, right = ur5.derivatives, np.zeros(6)
    calls = [
        ("qdd", lambda: D.inverse_dynamics(right, right, wrong)),
        ("tau", lambda: D.forward_dynamics(right, right, wrong)),
        ("q", lambda: D.mass_matrix(wrong)),
        ("qd", lambda: D.mass_matrix_dot(right, wrong)),
        ("q", lambda: D.gravity_vector(wrong)),
        ("qd", lambda: D.regressor(right, wrong, right)),
    ]
    # Before anything is compiled, and after.
    for _ in range(2):
        for name, call in calls:
            with pytest.raises(ShapeError, match=rf"^{name} "):
                call()
        D.inverse_dynamics(right, right, right), D.forward_dynamics(right, right, right)
    with pytest.raises(ShapeError, match="batch axes"):
        D.inverse_dynamics(np.zeros((2, 6)), np.zeros((3, 6)), right)


def test_unknown_link(ur5):
    D = ur5.derivatives
    with pytest.raises(UnknownLinkError, match="wrist"):
        D.regressor(*np.zeros((3, 6)), link="wrist")
    with pytest.raises(UnknownLinkError):
        D.parameters("wrist")


@pytest.mark.slow
def test_another_payload_needs_no_other_code(monkeypatch):
    """The payload's ten numbers are parameters: only the first one is compiled for."""
    rng = np.random.default_rng(13)
    tree = sd.robots.ur5()
    states = rng.uniform(-1, 1, (3, 5, 6))
    for turn in range(3):
        with tree.attached(sd.testing.random_inertia(rng), to="wrist_3_link", name="payload"):
            D, results = tree.derivatives, []
            for q, qd, qdd in (states, states[:, 0]):
                tau = tree.inverse_dynamics(q, qd, qdd)
                Y, pi = D.regressor(q, qd, qdd), D.parameters()
                close(Y @ pi, tau, 100, 1e-13)
                dq, dqd, M = D.inverse_dynamics(q, qd, qdd)
                close(M, tree.mass_matrix(q), 100, 1e-14)
                close(dqd, 2 * tree.coriolis_matrix(q, qd), 100, 1e-13)
                close(M @ D.forward_dynamics(q, qd, tau)[0], -dq, 100, 1e-11)
                results.append(dq)
            close(results[0][0], results[1], 100, 1e-14)
            close(results[1], gradient(lambda x: tree.inverse_dynamics(x, *states[1:, 0]), q), 100, 1e-10)
        if turn == 0:
            monkeypatch.setattr(native, "Loaded", None)


@pytest.mark.parametrize("body", [Link("load"), Link("load", Inertia.point(1.0))])
def test_a_joint_without_inertia_is_named(body):
    arm = sd.robots.ur5()
    arm.attach(body, to=arm.links[-1], joint=revolute((1, 2, 2), name="loose"))
    arguments = np.zeros((3, 7))
    for state in (arguments, np.zeros((3, 4, 7))):
        with pytest.raises(SingularAttachmentError, match="loose"):
            arm.derivatives.forward_dynamics(*state)
    dq, dqd, M = arm.derivatives.inverse_dynamics(*arguments)
    assert np.isfinite([dq, dqd, M]).all()


def limited(monkeypatch, module, limit, value):
    """From now on functions are recorded anew, under another limit."""
    monkeypatch.setattr(module, limit, value)
    monkeypatch.setattr(derivatives, "_programs", Kept(derivatives._program, 10**9))


@pytest.mark.parametrize("batch", [(), (1,), (11,), (2, 0)])
@pytest.mark.parametrize(("module", "limit"), [(native, "LARGEST"), (emit, "_FEW")])
def test_large_functions_give_the_same(monkeypatch, module, limit, batch):
    """Too long to compile, so they are interpreted; and with many zeros, which are stored sparsely."""
    rng = np.random.default_rng(10)
    tree = sd.testing.random_tree(rng, 4, ("revolute", "prismatic"))
    state = rng.uniform(-1, 1, (3, *batch, 4))
    q, qd = state[:2]

    def everything(D):
        single = D.mass_matrix(q), D.mass_matrix_dot(q, qd), D.gravity_vector(q), D.regressor(*state)
        return *D.inverse_dynamics(*state), *D.forward_dynamics(*state), *single

    expected = everything(tree.derivatives)
    limited(monkeypatch, module, limit, 3)
    for found, wanted in zip(everything(tree.copy().derivatives), expected, strict=True):
        close(found, wanted, 1 + norm(wanted), 1e-13)


@pytest.mark.usefixtures("monkeypatch")  # without code on disk, which may have been called for one state before
def test_a_batch_compiles_no_code_for_one_state():
    D = sd.testing.random_tree(np.random.default_rng(30), 2).derivatives
    D.gravity_vector(np.zeros((3, 2)))
    program = D._function("gravity_vector").program
    assert program.batch and not program.single
    D.gravity_vector(np.zeros(2))
    assert program.single


def test_a_loose_joint_is_named_by_large_functions_too(monkeypatch):
    limited(monkeypatch, native, "LARGEST", 10)
    arm = sd.robots.pelican()
    arm.attach(Inertia.point(1.0), to=arm.links[-1], joint=revolute("z", name="loose"))
    with pytest.raises(SingularAttachmentError, match="loose"):
        arm.derivatives.forward_dynamics(*np.zeros((3, 3)))


@pytest.mark.parametrize("limit", [None, "LARGEST"])
@pytest.mark.parametrize("batch", [(), (1,), (5,), (2, 3)])
def test_out(monkeypatch, batch, limit):
    if limit:
        limited(monkeypatch, native, limit, 10)
    state = np.random.default_rng(11).uniform(-1, 1, (3, *batch, 2))
    D = sd.robots.pelican().derivatives
    for function in (D.inverse_dynamics, D.forward_dynamics):
        expected = function(*state)
        out = tuple(np.empty((3, *batch, 2, 2)))
        for own, found, wanted in zip(out, function(*state, out=out), expected, strict=True):
            assert found is own
            assert np.array_equal(found, wanted)


@pytest.mark.parametrize("limit", [None, "LARGEST"])
def test_out_of_any_layout_and_of_every_function(monkeypatch, limit):
    if limit:
        limited(monkeypatch, native, limit, 10)
    state = np.random.default_rng(14).uniform(-1, 1, (3, 5, 2))
    D = sd.robots.pelican().derivatives
    wide = np.full((3, 5, 2, 5), np.nan)
    out = tuple(wide[..., 1:4:2])
    for found, wanted in zip(D.inverse_dynamics(*state, out=out), D.inverse_dynamics(*state), strict=True):
        assert np.array_equal(found, wanted)
    assert np.isnan(wide[..., ::2]).all() and np.array_equal(wide[..., 1:4:2], out)
    for function, count in ((D.mass_matrix, 1), (D.mass_matrix_dot, 2), (D.gravity_vector, 1), (D.regressor, 3)):
        for some in (state[:count], state[:count, 0]):
            expected = function(*some)
            for result in (np.empty(expected.shape), np.empty(expected.T.shape).T):
                assert function(*some, out=result) is result
                assert np.array_equal(result, expected)
            with pytest.raises(ShapeError, match="out has shape"):
                function(*some, out=np.empty(expected.shape[1:]))


def test_out_may_lie_where_a_state_lies_that_is_nearly_singular():
    """The compiled function refuses some of these states, so they are computed again."""
    tree = nearly_singular()
    rng = np.random.default_rng(8)
    q, qd, tau = rng.normal(size=(3, 3))
    declined = 0
    for q[2] in np.linspace(1e-12, 3e-12, 41):
        try:
            expected = tree.derivatives.forward_dynamics(q, qd, tau)
        except SingularAttachmentError:
            continue
        declined += not tree.derivatives._evaluate("forward_dynamics", q, qd, tau)[1]
        out = tuple(np.zeros((3, 3, 3)))
        out[0][0] = q
        for found, wanted in zip(tree.derivatives.forward_dynamics(out[0][0], qd, tau, out=out), expected, strict=True):
            assert np.array_equal(found, wanted)
    assert declined


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_tree_whose_derivatives_were_used_is_copied_as_before(copied):
    tree = sd.robots.pelican()
    state = np.random.default_rng(15).uniform(-1, 1, (3, 2))
    expected = tree.derivatives.inverse_dynamics(*state)
    for of in (tree, sd.State(tree, *state[:2])):
        copied(of)
    for D in (copied(tree).derivatives, copied(tree.derivatives)):
        assert all(map(np.array_equal, D.inverse_dynamics(*state), expected))


def test_out_may_lie_where_the_state_lies():
    D = sd.robots.pelican().derivatives
    q, qd, qdd = np.random.default_rng(12).uniform(-1, 1, (3, 2))
    expected = D.inverse_dynamics(q, qd, qdd)
    shared = np.array([[q, qd], [qd, qdd], [qdd, q]])
    found = D.inverse_dynamics(shared[0, 0], shared[0, 1], shared[1, 1], out=tuple(shared))
    assert np.array_equal(found, expected)


@pytest.mark.parametrize(
    "wrong",
    [
        np.empty((3, 2, 2)),
        (np.empty((2, 2)),) * 2,
        (np.empty((2, 2)),) * 3,
        tuple(np.empty((3, 1, 2, 2))),
        tuple(np.empty((3, 2, 2), dtype=np.float32)),
        tuple(np.zeros((3, 2, 2)).view(np.ndarray)[:, :1].repeat(2, 1)[:, :, :1]),
        (np.lib.stride_tricks.as_strided(np.zeros(3), (2, 2), (8, 8)), np.empty((2, 2)), np.empty((2, 2))),
        (np.empty((2, 2)), np.empty((2, 2)), [[0, 0], [0, 0]]),
    ],
)
@pytest.mark.parametrize("limit", [None, "LARGEST"])
def test_wrong_out_is_named(monkeypatch, wrong, limit):
    if limit:
        limited(monkeypatch, native, limit, 10)
    D = sd.robots.pelican().derivatives
    for function in (D.inverse_dynamics, D.forward_dynamics):
        with pytest.raises(ShapeError, match="out"):
            function(*np.zeros((3, 2)), out=wrong)


@pytest.mark.parametrize("limit", [None, "LARGEST"])
def test_a_batch_that_would_overflow_names_the_coordinate(monkeypatch, limit):
    if limit:
        limited(monkeypatch, native, limit, 10)
    q = np.zeros((3, 6))
    qd = q.copy()
    qd[2, 4] = 1e200
    with pytest.raises(ShapeError, match=r"qd is 1e\+200 at 'wrist_2_joint'; results would overflow"):
        sd.robots.ur5().derivatives.inverse_dynamics(q, qd, q)


@pytest.mark.parametrize("state", [([0.1, 0.2], [1e160, 0], [0, 0]), ([0.1, 1e160], [0, 0], [0, 0])])
@pytest.mark.parametrize("limit", [None, "LARGEST"])
def test_results_that_would_overflow_are_refused(monkeypatch, state, limit):
    if limit:
        limited(monkeypatch, native, limit, 10)
    tree = KinematicTree()
    tree.attach(Inertia.box(1, (0.1, 0.2, 0.3)), to="base", joint=revolute(), name="arm")
    tree.attach(Inertia.point(1), to="arm", joint=sd.prismatic("x"), name="slider")
    for one in (state, [np.array(x, dtype=float) for x in state]):
        with pytest.raises(ShapeError, match="would overflow"):
            tree.derivatives.inverse_dynamics(*one)
        with pytest.raises(ShapeError, match="would overflow"):
            tree.derivatives.regressor(*one)
        with pytest.raises(ShapeError, match="would overflow"):
            tree.derivatives.mass_matrix_dot(*one[:2])


def test_derivatives_at_an_angle_of_any_size():
    """An angle enters by its sine and cosine only; a slide of such a size overflows, and is named."""
    tree, rng = sd.robots.ur5(), np.random.default_rng(5)
    q = np.array([0.1, 1e65, -1e200, 0.4, 1.7e308, 0.6])
    turned = np.arctan2(np.sin(q), np.cos(q))
    qd, qdd = rng.normal(size=(2, 6))
    for batch in ((), (2,)):
        many, same = np.broadcast_to(q, (*batch, 6)), np.broadcast_to(turned, (*batch, 6))
        for function in (tree.derivatives.inverse_dynamics, tree.derivatives.forward_dynamics):
            for found, expected in zip(function(many, qd, qdd), function(same, qd, qdd), strict=True):
                close(found, expected, np.abs(expected).max(), 1e-12)
        close(tree.derivatives.regressor(many, qd, qdd), tree.derivatives.regressor(same, qd, qdd), 1, 1e-12)
        close(tree.linearize(many).A, tree.linearize(same).A, 1e3, 1e-12)
    tree = KinematicTree()
    tree.attach(Inertia.box(1, (0.1, 0.2, 0.3)), to="base", joint=sd.planar("z", name="foot"))
    tree.attach(Inertia.box(1, (0.1, 0.2, 0.3)), tree.links[-1], sd.prismatic("x", name="slide"))
    huge, small = np.array([1e200, 1.0, 2.0, 3.0]), np.array([np.arctan2(np.sin(1e200), np.cos(1e200)), 1.0, 2.0, 3.0])
    close(tree.derivatives.gravity_vector(huge), tree.derivatives.gravity_vector(small), 10, 1e-14)
    with pytest.raises(ShapeError, match=r"q is 1e\+160 at 'slide'; results would overflow"):
        tree.derivatives.inverse_dynamics([1e200, 1.0, 2.0, 1e160], np.zeros(4), np.zeros(4))


def test_arguments_in_the_wrong_order_are_named():
    tree, q = sd.robots.two_link(), np.zeros(2)
    for call in (tree.derivatives.jacobian, tree.derivatives.contribution):
        with pytest.raises(UnknownLinkError, match="link"):
            call(None, *[q] * (call == tree.derivatives.contribution), q)
    with pytest.raises(UnknownLinkError, match=r"arguments are \(link, …"):
        tree.derivatives.jacobian(q, "link2")
    with pytest.raises(UnknownLinkError, match="given by its name"):
        tree.derivatives.regressor(q, q, q, link=q)


G = 9.81


def cart_pole(M=1.5, m=0.3, l=0.8, damping=0.7, stiffness=20.0):
    """A cart on rails with a spring, and a point mass on a passive damped pole that stands upright at 0."""
    tree = sd.KinematicTree()
    rails = sd.prismatic("x", name="cart", stiffness=stiffness)
    tree.attach(sd.Inertia.point(M), to="base", joint=rails, name="body")
    pin = sd.revolute("y", passive=True, damping=damping, name="pole")
    tree.attach(sd.Inertia.point(m, (0, 0, l)), to="body", joint=pin, name="ball")
    return tree


def test_a_cart_pole_has_the_matrices_of_the_textbook():
    M, m, l, d, k = 1.5, 0.3, 0.8, 0.7, 20.0
    model = cart_pole(M, m, l, d, k).linearize([0.0, 0.0])
    A, B = model
    # (M + m) ẍ + m l θ̈ = u − k x,   m l ẍ + m l² θ̈ = m g l θ − d θ̇
    lower = [
        [-k / M, -m * G / M, 0, d / (M * l)],
        [k / (M * l), (M + m) * G / (M * l), 0, -(M + m) * d / (M * m * l**2)],
    ]
    assert_allclose(A, [[0, 0, 1, 0], [0, 0, 0, 1], *lower], rtol=1e-13, atol=1e-14)
    assert_allclose(B, [[0], [0], [1 / M], [-1 / (M * l)]], rtol=1e-13)
    assert (model.coordinates, model.inputs) == (("cart", "pole"), ("cart",))
    assert_allclose(model.rate, 0, atol=1e-14)


def test_the_torques_that_hold_the_state_are_the_default():
    tree = sd.robots.pelican()
    q = np.array([0.4, -1.1])
    model = tree.linearize(q)
    assert_allclose(model.tau, tree.gravity_vector(q), rtol=1e-14)
    assert_allclose(model.rate, 0, atol=1e-12)
    assert_allclose(tree.linearize(q, tau=[0, 0]).rate[2:], tree.forward_dynamics(q, [0, 0], [0, 0]), rtol=1e-13)
    moving = tree.linearize(q, [1.0, 2.0])
    assert_allclose(moving.rate, [1, 2, 0, 0], atol=1e-12)


def test_a_passive_joint_that_does_not_hang_moves_at_the_stated_rate():
    tree = cart_pole()
    model = tree.linearize([0.0, 0.3])
    assert_array_equal(model.tau[1], 0)
    assert_allclose(model.rate[2:], tree.forward_dynamics([0, 0.3], [0, 0], model.tau), rtol=1e-13)
    assert abs(model.rate[3]) > 1


def test_dry_friction_acts_on_the_state_but_not_on_its_neighbours():
    smooth, rough = cart_pole(), cart_pole()
    rough.replace_joint("body", sd.prismatic("x", name="cart", stiffness=20.0, friction=3.0))
    state, tau = ([0.1, 0.2], [0.5, -0.4]), [1.0, 0.0]
    force = tau - np.array([3.0, 0.0])
    found, expected = rough.linearize(*state, tau), smooth.linearize(*state, force)
    assert_allclose(found.A, expected.A, rtol=1e-12, atol=1e-12)
    assert_allclose(found.rate, expected.rate, rtol=1e-12)


def flow(tree, q, qd, tau, h):
    """The state after a short time h, by one step of Runge and Kutta's method along tangents."""

    def rate(x, v):
        return v, tree.forward_dynamics(x, v, tau + tree.joint_force(x, v))

    def after(k, share):
        return tree.integrate(q, share * h * k[0]), qd + share * h * k[1]

    k1 = rate(q, qd)
    k2 = rate(*after(k1, 0.5))
    return tree.integrate(q, h * k2[0]), qd + h * k2[1]


def deviations(tree, q, qd, tau, h):
    """Derivatives of the state after h along all entries of x and u, (2 nv, 3 nv), as deviations of motions."""
    nv = tree.nv
    q1, qd1 = flow(tree, q, qd, tau, h)
    columns = []
    for e in np.eye(3 * nv):
        column = np.zeros(2 * nv)
        for k, w in CENTRAL:
            for s in (k * STEP, -k * STEP):
                dq, dv, du = np.split(s * e, 3)
                q2, qd2 = flow(tree, tree.integrate(q, dq), qd + dv, tau + du, h)
                column += np.sign(s) * w / STEP * np.concatenate([tree.difference(q1, q2), qd2 - qd1])
        columns.append(column)
    return np.array(columns).T


@pytest.mark.slow
@settings(max_examples=8)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_neighbouring_motions_deviate_as_stated_also_those_of_group_joints(seed, n):
    rng = np.random.default_rng(seed)
    case = state_of(random_tree(rng, n, EVERY), rng)
    tree, q, qd, tau = case.tree, case.q, case.qd, case.qdd
    for name in tree.joints:
        joint = tree.joint(name)
        if joint.nv:
            forces = {"damping": rng.uniform(0, 2), "stiffness": rng.uniform(0, 5) if joint.chart is None else 0.0}
            tree.replace_joint(tree.topology.carried[name], sd.Joint(joint.screws, chart=joint.chart, **forces))
    A, B = tree.linearize(q, qd, tau)
    h = 1e-4
    # Differences at two times leave an error of h² to that of the first derivative in time.
    start = np.concatenate([np.eye(2 * tree.nv), np.zeros((2 * tree.nv, tree.nv))], axis=1)
    slopes = [(deviations(tree, q, qd, tau, s) - start) / s for s in (h, -h)]
    size = 1 + np.abs(A).max(initial=0) ** 3
    assert_allclose((slopes[0] + slopes[1]) / 2, np.concatenate([A, B], axis=1), atol=1e-6 * size)


@pytest.mark.slow
def test_joints_that_follow_others_and_group_joints_together():
    """Columns of the freedoms are not rows of the tree where joints follow others."""
    rng = np.random.default_rng(3)
    tree = sd.KinematicTree()
    finger = sd.prismatic("x", name="finger", stiffness=3.0, damping=0.5)
    tree.attach(sd.Inertia.point(1.0, (0.1, 0, 0)), to="base", joint=finger, name="left")
    thumb = sd.prismatic("y", name="thumb", mimic=sd.Mimic("finger", -2.0, 0.1), stiffness=1.0, damping=0.2)
    tree.attach(sd.Inertia.point(0.5), to="left", joint=thumb, name="right")
    tree.attach(sd.Inertia.box(1.0, (0.1, 0.2, 0.3)), to="right", joint=sd.free(passive=True, damping=0.3), name="body")
    q = tree.integrate(tree.neutral(), rng.uniform(-1, 1, 7))
    qd, tau, h = rng.uniform(-1, 1, 7), np.array([1.0, *[0.0] * 6]), 1e-4
    A, B = tree.linearize(q, qd, tau[:1])
    slopes = [(deviations(tree, q, qd, tau, s) - np.eye(14, 21)) / s for s in (h, -h)]
    assert_allclose(sum(slopes)[:, :15] / 2, np.concatenate([A, B], axis=1), atol=1e-5)
    assert np.abs(A[1:7, 1:7]).max() > 0.3


def test_states_are_batches():
    tree = sd.robots.pelican()
    q, qd = np.random.default_rng(0).uniform(-1, 1, (2, 3, 1, 2))
    tau = np.zeros((4, 2))
    model = tree.linearize(q, qd, tau)
    assert (model.A.shape, model.B.shape, model.rate.shape) == ((3, 4, 4, 4), (3, 4, 4, 2), (3, 4, 4))
    one = tree.linearize(q[1, 0], qd[1, 0], tau[2])
    for name in ("A", "B", "rate", "tau"):
        assert_allclose(getattr(model, name)[1, 2], getattr(one, name), rtol=1e-12, atol=1e-12)
    assert "3, 4" in repr(model)
    assert "shoulder" in repr(one)


def test_torques_are_those_of_all_or_of_the_active_freedoms():
    tree = cart_pole()
    both = [tree.linearize([0, 0.1], tau=tau).rate for tau in ([2.0], [2.0, 0.0])]
    assert_array_equal(*both)
    with pytest.raises(sd.JointError, match="'pole' is passive"):
        tree.linearize([0, 0], tau=[0, 1])
    with pytest.raises(sd.ShapeError, match="tau has shape"):
        tree.linearize([0, 0], tau=[0, 1, 2])


def on_balls():
    """A crank, a coupler between two balls, which may turn about itself, and a rocker; a motor at the crank only."""
    tree = sd.KinematicTree(gravity=(0, -9.81, 0))
    crank = sd.revolute("z", damping=0.3, stiffness=2.0)
    tree.attach(bar(1.0, 1.0), to="base", joint=crank, name="crank")
    tree.attach(bar(2.5, 2.5), to="crank", joint=sd.spherical(), at=(1, 0, 0), name="coupler")
    tree.attach(bar(2.0, 2.0), to="base", joint=sd.revolute("z"), at=(2.2, 0, 0.1), name="rocker")
    tree.attach(sd.Inertia.point(0.1), to="rocker", at=(2, 0, 0), name="tip")
    tree.close("tip", to="coupler", joint=sd.spherical(), at=(2.5, 0, 0), name="ball")
    start = [0.7, 0, 0, np.sin(-0.1), np.cos(-0.1), 1.5]
    return tree, tree.project(start, [2.0, 1.0, 0, 0, 0], hold=["crank", "coupler[wx]"])


@pytest.mark.parametrize(
    ("mechanism", "independent"),
    [
        (four_bar, ["crank"]),
        (slider_crank, ["crank"]),
        (moving_bricard, ["bar0"]),
        (on_balls, ["crank", "coupler[wx]"]),
    ],
)
def test_closed_loops_against_neighbouring_states(mechanism, independent):
    """ÿ in states with closed loops whose y or ẏ differ a little, with springs and damping."""
    tree, (q, qd) = mechanism()
    at = [tree.coordinates.index(name) for name in independent]
    r, steps = len(at), np.eye(tree.nv)[at]
    found = tree.linearize(q, qd, independent=independent)
    assert found.coordinates == tuple(independent)
    assert_allclose(found.rate, [*qd[at], *np.zeros(r)], rtol=0, atol=1e-9 * norm(found.tau))

    def accelerations(deviations):
        values = []
        for x in deviations:
            near = tree.integrate(q, x[:r] @ steps), qd + x[r:] @ steps
            state = tree.project(*near, hold=independent)
            values.append(tree.forward_dynamics(*state, found.tau + tree.joint_force(*state))[at])
        return np.array(values)

    for column, along in enumerate(np.eye(2 * r)):
        expected = derivative(accelerations, np.zeros(2 * r), along)
        assert_allclose(found.A[r:, column], expected, rtol=0, atol=1e-8 * norm(found.A))
    assert_array_equal(found.A[:r, r:], np.eye(r))
    pushed = tree.forward_dynamics(q, qd, found.tau + tree.joint_force(q, qd) + np.eye(tree.nv)[-1])
    assert_allclose(found.B[r:, -1], pushed[at], rtol=0, atol=1e-9 * norm(found.tau))
