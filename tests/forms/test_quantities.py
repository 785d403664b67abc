"""Laws of every quantity on random trees of every kind of joint, compiled and traced.

Independent results: the contribution of each link in NumPy (``definition``), the mass matrix, and central differences
along the configuration space. Tolerances: 1e-12 of the largest term where a law holds exactly, 1e-7 where it is
differenced.
"""

import definition
import numpy as np
import pytest
import traced
from hypothesis import given
from hypothesis import strategies as st
from kinds import EVERY

import screwdyn as sd
from screwdyn.backends.kernels import entry as kernels
from screwdyn.forms import numbers
from screwdyn.physics.quantities import ARGUMENTS, CATALOGUE
from screwdyn.testing import random_tree

FRAMES = ("com", "body", "base", "mixed")
EXACT, DIFFERENCED, STEP = 1e-12, 1e-7, 1e-5


class Case:
    """A tree with a state, and the scale of its dynamics."""

    def __init__(self, seed, n, kinds):
        rng = np.random.default_rng(seed)
        self.tree = tree = random_tree(rng, n, kinds)
        self.q = tree.random_configuration(rng)
        self.qd, self.qdd = rng.normal(size=(2, tree.nv))
        self.link = tree.links[int(rng.integers(len(tree.links)))]
        self.M = tree.mass_matrix(self.q)
        self.rng = rng

    def __repr__(self):
        return f"Case({self.tree!r})"

    def rate(self, function):
        """d/dt of a function of (q, qd) along the motion, by central differences of fourth order."""

        def at(t):
            return np.asarray(function(self.tree.integrate(self.q, t * self.qd), self.qd + t * self.qdd))

        # The path q ∘ exp(t ν) has the right velocity; of its acceleration, rates need no more.
        h = 1e-3
        return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)


cases = st.builds(
    Case,
    st.integers(0, 2**32 - 1),
    st.integers(1, 5),
    st.sampled_from([EVERY, *((kind, "revolute") for kind in EVERY)]),
)


def near(found, expected, tolerance, scale=1.0):
    found, expected = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    assert found.shape == expected.shape
    worst = np.abs(found - expected).max(initial=0)
    assert worst <= tolerance * max(scale, 1.0, np.abs(expected).max(initial=0)), worst


@pytest.fixture(autouse=True, scope="module", params=[kernels.Kernels, traced.Kernels], ids=["compiled", "traced"])
def route(request):
    """The compiled recursions, and the tapes recorded from them: the laws hold for both."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numbers, "Kernels", request.param)
        yield


@given(cases)
def test_contributions_are_the_definition_link_by_link(case):
    tree, q, qd = case.tree, case.q, case.qd
    parts = definition.contributions(tree, q, qd)
    found = tree.contributions(q, qd)
    assert [part.link for part in found] == list(tree.links[1:])
    for mine, part in zip(found, parts, strict=True):
        assert mine.coordinates == part.coordinates
        assert mine == tree.contribution(part.link, q, qd)
        for name in ("J", "J_dot", "M", "C", "g"):
            near(getattr(mine, name), getattr(part, name), EXACT)


@given(cases)
def test_totals_are_the_padded_sum_of_the_definition(case):
    tree, q, qd = case.tree, case.q, case.qd
    parts = definition.contributions(tree, q, qd)
    M, C, g = tree.dynamics(q, qd)
    for total, name in ((M, "M"), (C, "C"), (g, "g")):
        near(total, sd.padded_sum(getattr(part, name) for part in parts).matrix(tree.coordinates), EXACT)
    near(M, case.M, 0)
    near(C, tree.coriolis_matrix(q, qd), 0)
    near(g, tree.gravity_vector(q), EXACT)


@given(cases)
def test_subtrees_add_up_what_their_links_contribute(case):
    tree, q, qd = case.tree, case.q, case.qd
    share = tree.subtree_contribution(case.link, q, qd)
    own = tree.contribution(case.link, q, qd)
    parts = [tree.contribution(link, q, qd) for link in tree.subtree(case.link)]
    for name in ("M", "C", "g"):
        expected = sd.padded_sum(getattr(part, name) for part in parts)
        assert set(getattr(share, name).coordinates) == set(expected.coordinates)
        near(getattr(share, name).matrix(tree.coordinates), expected.matrix(tree.coordinates), EXACT)
    at = [share.coordinates.index(name) for name in own.coordinates]
    near(share.J[:, at], own.J, EXACT)
    near(share.J_dot[:, at], own.J_dot, EXACT)


@given(cases)
def test_dynamics_fit_together(case):
    tree, q, qd, qdd = case.tree, case.q, case.qd, case.qdd
    M, C, g = tree.dynamics(q, qd)
    tau = tree.inverse_dynamics(q, qd, qdd)
    near(tau, M @ qdd + C @ qd + g, EXACT)
    near(tree.bias_force(q, qd), C @ qd + g, EXACT)
    near(tree.velocity_product(q, qd), C @ qd, EXACT)
    kappa = np.linalg.cond(M) if tree.nv else 1
    near(tree.forward_dynamics(q, qd, tau), qdd, 1e-15 * kappa * 100, 1 + np.abs(tau).max(initial=0))
    near(case.rate(lambda q, qd: tree.mass_matrix(q)), C + C.T, DIFFERENCED)


@given(cases)
def test_coriolis_matrix_is_a_connection(case):
    """C is linear in the rates, and C(a) b − C(b) a = M [a, b] joint by joint."""
    tree, q, a, b = case.tree, case.q, case.qd, case.qdd
    near(tree.coriolis_matrix(q, 2 * a - b), 2 * tree.coriolis_matrix(q, a) - tree.coriolis_matrix(q, b), EXACT)
    bracket = np.zeros(tree.nv)
    for name in tree.joints:
        joint = tree.joint(name)
        if joint.chart is not None:
            at = [tree.coordinates.index(x) for x in joint.freedom_names(name)]
            S = joint.screws
            bracket[at] = np.linalg.lstsq(S, sd.screw.ad(S @ a[at]) @ S @ b[at], rcond=None)[0]
    near(tree.coriolis_matrix(q, a) @ b - tree.coriolis_matrix(q, b) @ a, case.M @ bracket, EXACT)


@pytest.mark.slow
@given(cases)
def test_poses_and_twists_of_links(case):
    tree, q, qd, qdd, link = case.tree, case.q, case.qd, case.qdd, case.link
    poses = tree.link_poses(q)
    near(poses[tree.links.index(link)], tree.forward_kinematics(link, q), EXACT)
    T = tree.forward_kinematics(link, q)
    T_dot = case.rate(lambda q, qd: tree.forward_kinematics(link, q))
    V = np.linalg.solve(T, T_dot)
    near(tree.link_twist(link, q, qd, "body"), [V[2, 1], V[0, 2], V[1, 0], *V[:3, 3]], DIFFERENCED)
    for frame in FRAMES:
        J, J_dot = tree.jacobian(link, q, frame), tree.jacobian_dot(link, q, qd, frame)
        near(tree.link_twist(link, q, qd, frame), J @ qd, EXACT)
        near(tree.link_acceleration(link, q, qd, qdd, frame), J @ qdd + J_dot @ qd, EXACT)
        near(J_dot, case.rate(lambda q, qd, frame=frame: tree.jacobian(link, q, frame)), DIFFERENCED)
    inertia = tree.link(link).inertia
    com = np.zeros(3) if inertia is None else inertia.com
    X = sd.screw.Ad(sd.screw.pose(np.eye(3), -com))
    near(tree.jacobian(link, q), X @ tree.jacobian(link, q, "body"), EXACT)
    near(tree.jacobian(link, q, "base"), sd.screw.Ad(T) @ tree.jacobian(link, q, "body"), EXACT)
    turned = sd.screw.pose(T[:3, :3], (0, 0, 0))
    near(tree.jacobian(link, q, "mixed"), sd.screw.Ad(turned) @ tree.jacobian(link, q, "body"), EXACT)


@pytest.mark.slow
@given(cases)
def test_energies_and_momenta(case):
    tree, q, qd, qdd = case.tree, case.q, case.qd, case.qdd
    near(tree.kinetic_energy(q, qd), 0.5 * qd @ case.M @ qd, EXACT)
    near(case.rate(lambda q, qd: tree.potential_energy(q)), tree.gravity_vector(q) @ qd, DIFFERENCED, 10 * tree.mass)
    c, mass = tree.center_of_mass(q), tree.mass
    bodies = [(name, tree.link(name).inertia) for name in tree.links]
    coms = [(b.mass, (tree.forward_kinematics(name, q) @ [*b.com, 1])[:3]) for name, b in bodies if b is not None]
    near(c, sum(m * p for m, p in coms) / mass, EXACT)
    J = tree.center_of_mass_jacobian(q)
    near(tree.center_of_mass_velocity(q, qd), J @ qd, EXACT)
    near(J @ qd, case.rate(lambda q, qd: tree.center_of_mass(q)), DIFFERENCED)
    a = tree.center_of_mass_bias_acceleration(q, qd)
    near(J @ qdd + a, case.rate(lambda q, qd: tree.center_of_mass_velocity(q, qd)), DIFFERENCED)
    h, total = tree.centroidal_momentum(q, qd), tree.momentum(q, qd)
    near(h, [*(total[:3] - np.cross(c, total[3:])), *total[3:]], EXACT)
    A, A_dot = tree.centroidal_momentum_matrix(q), tree.centroidal_momentum_matrix_dot(q, qd)
    near(A @ qd, h, EXACT)
    near(A[3:], mass * J, EXACT)
    near(A_dot, case.rate(lambda q, qd: tree.centroidal_momentum_matrix(q)), DIFFERENCED)
    near(tree.centroidal_momentum_rate(q, qd, qdd), A @ qdd + A_dot @ qd, EXACT)


@given(cases)
def test_operational_inertia_is_what_a_wrench_meets(case):
    tree, q, link = case.tree, case.q, case.link
    for frame in FRAMES:
        J = tree.jacobian(link, q, frame)
        inverse = J @ np.linalg.solve(case.M, J.T) if tree.nv else np.zeros((6, 6))
        scaled = inverse / np.sqrt(np.maximum(np.outer(np.diag(inverse), np.diag(inverse)), 1e-300))
        condition = np.linalg.cond(scaled) if np.diag(inverse).all() else np.inf
        if condition < 1e8:
            near(
                tree.operational_inertia(link, q, frame) @ inverse,
                np.eye(6),
                1e-14 * condition * np.linalg.cond(case.M),
            )
        elif condition > 1e14:
            with pytest.raises(sd.SingularAttachmentError, match=link):
                tree.operational_inertia(link, q, frame)


@pytest.mark.slow
@given(cases)
def test_a_batch_gives_what_its_states_give(case):
    tree, rng = case.tree, case.rng
    state = {"q": np.stack([tree.random_configuration(rng) for _ in range(6)]).reshape(2, 3, -1)}
    state |= {name: rng.normal(size=(2, 3, tree.nv)) for name in ARGUMENTS[1:]}
    for entry in CATALOGUE.values():
        link = {"link": case.link} if "link" in entry.parameters else {}
        ask, many = getattr(tree, entry.name), {name: state[name] for name in entry.arguments}
        try:
            one = ask(**link, **{name: a[1, 2] for name, a in many.items()})
        except sd.SingularAttachmentError:  # for any state
            with pytest.raises(sd.SingularAttachmentError):
                ask(**link, **many)
            continue
        found = ask(**link, **many)
        if hasattr(one, "C"):
            found, one = (found.J, np.asarray(found.C)), (one.J, np.asarray(one.C))
        for whole, alone in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, one)), strict=True):
            near(whole[1, 2], alone, 1e-15)


def test_a_tree_without_mass_has_no_centre():
    tree = sd.KinematicTree()
    tree.attach(sd.Link("frame"), to="base", joint=sd.revolute())
    with pytest.raises(sd.InertiaError, match="no link of the tree has a mass"):
        tree.center_of_mass([0.0])


def test_frames_go_by_the_names_of_other_libraries():
    arm, q = sd.robots.ur5(), np.linspace(0.1, 0.6, 6)
    for theirs, ours in (("LOCAL", "body"), ("WORLD", "base"), ("LOCAL_WORLD_ALIGNED", "mixed"), ("world", "base")):
        np.testing.assert_array_equal(arm.jacobian("tool0", q, theirs), arm.jacobian("tool0", q, ours))
    with pytest.raises(sd.ShapeError, match="'local_world_aligned' = 'mixed'"):
        arm.jacobian("tool0", q, "LOCAL_WORLD")


@pytest.mark.parametrize("length", [0.99, 1.01, 0.0])
def test_quaternions_of_another_length_are_refused(length):
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.sphere(1.0, 0.1), to="base", joint=sd.spherical(name="hip"), name="ball")
    q = np.array([0.0, 0, 0, length])
    for ask in (lambda: tree.mass_matrix(q), lambda: tree.mass_matrix(np.stack([q, q]))):
        with pytest.raises(sd.ShapeError, match="hip"):
            ask()
