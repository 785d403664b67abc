"""Derivatives of every quantity for joints of any kind: against differences along ``integrate``, and the laws of §7."""

import pickle
from functools import partial

import numpy as np
import pytest
from cases import EPS, close, gradient, norm, total
from hypothesis import given, settings
from kinds import GROUPS
from tangents import along_tangents, joint_cases, state_of

import screwdyn as sd
from screwdyn import KinematicTree, ShapeError, SingularAttachmentError, UnknownLinkError
from screwdyn.physics.quantities import CATALOGUE
from screwdyn.testing import random_inertia, random_pose, random_tree

# Each is compiled for every tree that it is tried on.
FEW = settings(max_examples=6)
SMALL = {"most": 2}


def size_of(case):
    """Of torques at a state of order one."""
    return 1 + 10 * case.tree.mass * (1 + total(case.qdd) + total(case.qd) ** 2)


@pytest.mark.slow
@FEW
@given(joint_cases(**SMALL))
def test_inverse_dynamics(case):
    tree, q, qd, qdd = case.tree, case.q, case.qd, case.qdd
    dq, dqd, M = tree.derivatives.inverse_dynamics(q, qd, qdd)
    scale = size_of(case)
    close(dq, along_tangents(lambda x: tree.inverse_dynamics(x, qd, qdd), tree, q), scale, 1e-9)
    close(dqd, gradient(lambda x: tree.inverse_dynamics(q, x, qdd), qd), scale, 1e-10)
    close(M, tree.mass_matrix(q), 1 + norm(M), 100 * EPS)


@FEW
@given(joint_cases(least=1, **SMALL))
def test_by_the_rate_it_is_twice_c_less_the_bracket(case):
    """∂τ/∂ν = 2 C − M ad(ν), where C(a) b − C(b) a = M [a, b]: the bracket is read off C itself."""
    tree, q, v = case.tree, case.q, case.qd
    _, dqd, _ = tree.derivatives.inverse_dynamics(q, v, case.qdd)
    C = tree.coriolis_matrix(q, v)
    bracket = np.array([C @ e - tree.coriolis_matrix(q, e) @ v for e in np.eye(tree.nv)]).reshape(tree.nv, tree.nv).T
    close(dqd, 2 * C - bracket, size_of(case), 1e3 * EPS)


@pytest.mark.slow
@FEW
@given(joint_cases(least=1, **SMALL))
def test_forward_dynamics(case):
    tree, q, qd, tau = case.tree, case.q, case.qd, case.qdd
    dq, dqd, inverse = tree.derivatives.forward_dynamics(q, qd, tau)
    M, qdd = tree.mass_matrix(q), tree.forward_dynamics(q, qd, tau)
    tau_q, tau_qd, _ = tree.derivatives.inverse_dynamics(q, qd, qdd)
    kappa = np.linalg.cond(M) if tree.nv else 1.0
    close(M @ inverse, np.eye(tree.nv), kappa, 100 * EPS)
    close(M @ dq, -tau_q, 1 + norm(tau_q), 1e3 * kappa * EPS)
    close(M @ dqd, -tau_qd, 1 + norm(tau_qd), 1e3 * kappa * EPS)


@FEW
@given(joint_cases(**SMALL))
def test_mass_matrix_and_its_rate(case):
    tree, q, qd = case.tree, case.q, case.qd
    D, rate, C = tree.derivatives.mass_matrix(q), tree.derivatives.mass_matrix_dot(q, qd), tree.coriolis_matrix(q, qd)
    scale = 1 + norm(tree.mass_matrix(q)) * (1 + total(qd))
    close(D, along_tangents(tree.mass_matrix, tree, q), scale, 1e-9)
    close(rate, D @ qd, scale, 100 * EPS)
    close(rate, C + C.T, scale, 100 * EPS)


@FEW
@given(joint_cases(least=1, **SMALL))
def test_regressor(case):
    tree, q, qd, qdd = case.tree, case.q, case.qd, case.qdd
    Y, parameters = tree.derivatives.regressor(q, qd, qdd), tree.derivatives.parameters()
    close(Y @ parameters, tree.inverse_dynamics(q, qd, qdd), size_of(case), 1e3 * EPS)


def chain(six=False):
    """A hand on a cart; on a mast of the cart if it is to move in all six directions."""
    rng, tree = np.random.default_rng(3), KinematicTree()
    mast = [("mast", sd.revolute("x"))] if six else []
    for name, joint in (("cart", sd.planar("y")), *mast, ("hand", sd.spherical((0.1, 0, 0.2)))):
        tree.attach(random_inertia(rng), to=tree.links[-1], joint=joint, at=random_pose(rng), name=name)
    return state_of(tree, rng)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(CATALOGUE.keys() - {"inverse_dynamics", "forward_dynamics"}))
def test_every_quantity(name):
    case, entry = chain(six=name == "operational_inertia"), CATALOGUE[name]
    tree, D = case.tree, case.tree.derivatives
    state = {"q": case.q, "qd": case.qd, "qdd": case.qdd}
    state |= {"qd_ref": case.qdd[::-1], "qdd_ref": case.qd}
    place = {"link": "hand" if entry.places == "one" else "cart"} if "link" in entry.parameters else {}
    place |= {"frame": "mixed"} if "frame" in entry.parameters else {}
    found = getattr(D, name)(**place, **{x: state[x] for x in entry.arguments})
    by = found if len(entry.arguments) > 1 else (found,)
    for argument, derivatives in zip(entry.arguments, by, strict=True):
        rest = {x: state[x] for x in entry.arguments if x != argument}
        for k, result in enumerate(entry.given):

            def along(x, rest=rest, argument=argument, k=k):
                return arrays_of(getattr(tree, name)(**place, **rest, **{argument: x}))[k]

            if argument == "q":
                expected = along_tangents(along, tree, case.q)
            else:
                expected = gradient(along, state[argument])
            derivative = derivatives if len(entry.given) == 1 else getattr(derivatives, result.name)
            close(derivative, expected, size_of(case), 1e-9)


def arrays_of(results):
    """The arrays of a quantity's results."""
    if isinstance(results, sd.Contribution):
        return results.J, results.J_dot, results.M.array, results.C.array, results.g.array
    return results if isinstance(results, tuple) else (results,)


def test_what_follows_from_what():
    """∂U/∂q = g, ∂T/∂q̇ = M q̇, ∂ċ/∂q̇ is the Jacobian of the centre of mass and ∂h/∂q̇ the momentum matrix."""
    rng = np.random.default_rng(4)
    tree = random_tree(rng, 2, GROUPS)
    case, D = state_of(tree, rng), tree.derivatives
    q, qd, scale = case.q, case.qd, size_of(case)
    close(D.potential_energy(q), tree.gravity_vector(q), scale, 100 * EPS)
    close(D.kinetic_energy(q, qd)[1], tree.mass_matrix(q) @ qd, scale, 100 * EPS)
    close(D.center_of_mass(q), tree.center_of_mass_jacobian(q), scale, 100 * EPS)
    close(D.center_of_mass_velocity(q, qd)[1], tree.center_of_mass_jacobian(q), scale, 100 * EPS)
    close(D.centroidal_momentum(q, qd)[1], tree.centroidal_momentum_matrix(q), scale, 100 * EPS)
    close(D.link_twist("link2", q, qd, "body")[1], tree.jacobian("link2", q, "body"), scale, 100 * EPS)
    close(D.jacobian("link2", q, "base") @ qd, tree.jacobian_dot("link2", q, qd, "base"), scale, 100 * EPS)


@pytest.mark.parametrize("batch", [(), (1,), (7,), (2, 3)])
def test_batches_and_out(batch):
    rng = np.random.default_rng(6)
    tree = random_tree(rng, 2, ["free", "revolute"])
    q = tree.integrate(tree.neutral(), rng.uniform(-1, 1, (*batch, tree.nv)))
    qd = rng.uniform(-1, 1, (*batch, tree.nv))
    D = tree.derivatives
    dq, dqd = D.kinetic_energy(q, qd)
    assert dq.shape == dqd.shape == (*batch, tree.nv)
    for where in np.ndindex(batch):
        close(dq[where], D.kinetic_energy(q[where], qd[where])[0], 1 + norm(dq), 10 * EPS)
    out = np.empty((*batch, 3, tree.nv))
    assert D.center_of_mass(q, out=out) is out
    assert np.array_equal(out, D.center_of_mass(q))


@pytest.mark.parametrize(("batch", "link"), [((), "cart"), ((2, 3), "cart"), ((1,), None), ((2, 3), None)])
def test_batches_and_out_of_several_results(batch, link):
    case = chain()
    tree, D = case.tree, case.tree.derivatives
    q = tree.integrate(tree.neutral(), case.rng.uniform(-1, 1, (*batch, tree.nv)))
    qd = case.rng.uniform(-1, 1, (*batch, tree.nv))
    function = D.dynamics if link is None else partial(D.subtree_contribution, link)
    by_q, by_qd = found = function(q, qd)
    for where in np.ndindex(batch):
        for whole, one in zip(found, function(q[where], qd[where]), strict=True):
            for a, b in zip(whole, one, strict=True):
                close(a[where], b, 1 + norm(b), 10 * EPS)
    out = tuple(tuple(np.full(x.shape, np.nan) for x in by) for by in found)
    again = function(q, qd, out=out)
    for whole, own, place in zip(found, again, out, strict=True):
        assert all(a is b for a, b in zip(own, place, strict=True))
        assert all(map(np.array_equal, whole, own))
    assert all(map(np.array_equal, pickle.loads(pickle.dumps(by_q)), by_q))
    assert by_q.M.shape == by_qd.M.shape
    for wrong in (out[0], (out[0], out[1][:-1]), list(out), (out[0], out[0])):
        with pytest.raises(ShapeError, match="out"):
            function(q, qd, out=wrong)


def test_another_payload_of_the_centre_of_mass_needs_no_other_code(monkeypatch):
    from screwdyn.backends.llvm import program as programs

    rng = np.random.default_rng(8)
    tree, q = sd.robots.ur5(), rng.uniform(-1, 1, 6)
    for turn in range(3):
        with tree.attached(random_inertia(rng), to="wrist_3_link", name="payload"):
            close(tree.derivatives.center_of_mass(q), tree.center_of_mass_jacobian(q), 1.0, 1e-14)
        if turn == 0:
            monkeypatch.setattr(programs, "Program", None)


def test_refusals():
    tree = sd.robots.two_link()
    D, q = tree.derivatives, np.zeros(2)
    with pytest.raises(ShapeError, match=r"^q "):
        D.center_of_mass(np.zeros(3))
    with pytest.raises(UnknownLinkError, match="link9"):
        D.jacobian("link9", q)
    with pytest.raises(ShapeError, match="frame must be"):
        D.jacobian("link2", q, "sideways")
    with pytest.raises(TypeError):
        D.center_of_mass(q, q)
    # A planar arm does not move its link in all six directions.
    with pytest.raises(SingularAttachmentError, match="cannot move in all six directions"):
        D.operational_inertia("link2", q)


def test_signatures_are_those_of_the_quantities():
    D = sd.robots.two_link().derivatives
    first = {name: getattr(D, name).__doc__.splitlines()[0] for name in ("jacobian", "kinetic_energy", "dynamics")}
    assert first == {
        "jacobian": "∂J/∂q, (…, 6, nv, nv), of :meth:`KinematicTree.jacobian`.",
        "kinetic_energy": "∂T/∂q, ∂T/∂qd, (…, nv), of :meth:`KinematicTree.kinetic_energy`.",
        "dynamics": "∂(M, C, g)/∂q, ∂(M, C, g)/∂qd, each of M (…, nv, nv, nv), C (…, nv, nv, nv), g (…, nv, nv), of "
        ":meth:`KinematicTree.dynamics`.",
    }
    assert "M (…, k, k, nv)" in D.subtree_contribution.__doc__
    assert CATALOGUE.keys() <= set(dir(D))
