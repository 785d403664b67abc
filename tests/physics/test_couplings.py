"""Trees in which joints follow others, against the same trees with independent joints and q = W y + const."""

from dataclasses import replace

import c_compiler
import numpy as np
import pytest
import sympy as sp
from cases import close, norm
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd
from screwdyn.testing import random_inertia, random_pose, random_tree

KINDS = ("revolute", "prismatic", "helical", "spherical", "universal")
SEEDS = st.integers(0, 2**32 - 1)


class Pair:
    """A random tree in which some joints follow others, and the same tree with independent joints."""

    def __init__(self, seed, n=3, followers=3):
        self.rng = rng = np.random.default_rng(seed)
        self.free = random_tree(rng, n, KINDS)
        self.free.attach(random_inertia(rng), rng.choice(self.free.links), sd.revolute(rng.normal(size=3), name="lead"))
        self.coupled = self.free.copy()
        leads = [name for name in self.free.joints if self.free.joint(name).nv == 1]
        following = {}
        for k in range(followers):
            make = (sd.revolute, sd.prismatic)[int(rng.integers(2))]
            joint = make(rng.normal(size=3), damping=rng.uniform(0, 2), name=f"follow{k}")
            joint = replace(joint, stiffness=rng.uniform(0, 3), rest=rng.uniform(-1, 1))
            mimic = sd.Mimic(str(rng.choice(leads)), *rng.uniform(-2, 2, 2))
            body, to, at = random_inertia(rng), rng.choice(self.free.links), random_pose(rng)
            self.free.attach(sd.Link(f"f{k}", body), to, joint, at)
            self.coupled.attach(sd.Link(f"f{k}", body), to, replace(joint, mimic=mimic), at)
            following[joint.name] = mimic
            leads.append(joint.name)  # a joint may follow one that follows
        tree, free = self.coupled, self.free
        self.W, constant = np.zeros((free.nv, tree.nv)), np.zeros(free.nv)
        for i, name in enumerate(free.coordinates):
            if name in following:
                leader = free.coordinates.index(following[name].joint)
                self.W[i] = following[name].ratio * self.W[leader]
                constant[i] = following[name].ratio * constant[leader] + following[name].offset
            else:
                self.W[i, tree.coordinates.index(name)] = 1
        self.q = tree.random_configuration(rng)
        self.qd, self.qdd, self.tau = rng.uniform(-2, 2, (3, tree.nv))
        at = dict(zip(tree.positions, self.q, strict=True))
        for name, mimic in following.items():
            at[name] = mimic.ratio * at[mimic.joint] + mimic.offset
        self.x = np.array([at[name] for name in free.positions])
        self.xd, self.xdd = self.W @ self.qd, self.W @ self.qdd


FORCES = {"gravity_vector", "bias_force", "velocity_product", "inverse_dynamics", "reference_dynamics"}
FORCES |= {"transposed_velocity_product", "joint_momentum"}
JACOBIANS = {"jacobian", "jacobian_dot", "center_of_mass_jacobian", "centroidal_momentum_matrix"}


def contracted(name, found, W):
    """Results of the independent tree, contracted: M and C on both sides, forces on one, Jacobians on the other."""
    if name in ("mass_matrix", "coriolis_matrix"):
        return W.T @ found @ W
    if name in FORCES:
        return W.T @ found
    return found @ W if name.removesuffix("_dot") in JACOBIANS else found


EQUATION_OF_MOTION = (
    ("mass_matrix", "q"),
    ("coriolis_matrix", "q qd"),
    ("gravity_vector", "q"),
    ("inverse_dynamics", "q qd qdd"),
)
QUANTITIES = (
    *EQUATION_OF_MOTION,
    ("bias_force", "q qd"),
    ("velocity_product", "q qd"),
    ("transposed_velocity_product", "q qd"),
    ("joint_momentum", "q qd"),
    ("reference_dynamics", "q qd qdd tau"),
    ("link_poses", "q"),
    ("center_of_mass", "q"),
    ("center_of_mass_jacobian", "q"),
    ("centroidal_momentum_matrix", "q"),
    ("centroidal_momentum_matrix_dot", "q qd"),
    ("centroidal_momentum_rate", "q qd qdd"),
    ("momentum", "q qd"),
    ("kinetic_energy", "q qd"),
    ("potential_energy", "q"),
)
OF_LINKS = (("jacobian", "q"), ("jacobian_dot", "q qd"), ("link_twist", "q qd"), ("link_acceleration", "q qd qdd"))


def arguments(pair, names):
    given = {
        "q": (pair.q, pair.x),
        "qd": (pair.qd, pair.xd),
        "qdd": (pair.qdd, pair.xdd),
        "tau": (pair.tau, pair.W @ pair.tau),
    }
    return zip(*(given[name] for name in names.split()), strict=True)


def check_contraction(pair, quantities, of_links):
    for name, names in quantities:
        own, others = arguments(pair, names)
        expected = contracted(name, np.asarray(getattr(pair.free, name)(*others)), pair.W)
        close(getattr(pair.coupled, name)(*own), expected, norm(expected) + 1, 1e-11)
    link = str(pair.rng.choice(pair.coupled.links))
    for name, names in of_links:
        for frame in ("com", "body", "base", "mixed"):
            own, others = arguments(pair, names)
            expected = contracted(name, getattr(pair.free, name)(link, *others, frame), pair.W)
            close(getattr(pair.coupled, name)(link, *own, frame), expected, norm(expected) + 1, 1e-11)


@given(SEEDS, st.integers(0, 3), st.integers(1, 4))
def test_the_equation_of_motion_is_that_of_independent_joints_contracted(seed, n, followers):
    check_contraction(Pair(seed, n, followers), EQUATION_OF_MOTION, OF_LINKS[:1])


@given(SEEDS)
def test_forward_dynamics_solves_the_contracted_equation(seed):
    pair = Pair(seed)
    tree, W = pair.coupled, pair.W
    wrenches = {link: pair.rng.normal(size=6) for link in tree.links}
    qdd = tree.forward_dynamics(pair.q, pair.qd, pair.tau, wrenches)
    M = W.T @ pair.free.mass_matrix(pair.x) @ W
    push = W.T @ pair.free.wrench_torque(pair.x, wrenches)
    expected = np.linalg.solve(M, pair.tau + push - W.T @ pair.free.bias_force(pair.x, pair.xd))
    close(qdd, expected, norm(expected), 1e-12 * np.linalg.cond(M))
    close(tree.inverse_dynamics(pair.q, pair.qd, qdd, wrenches), pair.tau, norm(pair.tau) + norm(push), 1e-9)


@given(SEEDS)
def test_forces_of_the_joints_act_through_their_ratios(seed):
    pair = Pair(seed)
    tree, free, W = pair.coupled, pair.free, pair.W
    close(tree.joint_force(pair.q, pair.qd), W.T @ free.joint_force(pair.x, pair.xd), 10.0, 1e-12)
    # The energy of the springs, up to a constant.
    forces, others = tree.model.joint_forces, free.model.joint_forces
    q = np.stack([pair.q, pair.q])
    q[1, tree.positions.index("lead")] += 0.7
    x = np.stack([pair.x, pair.x])
    x[1] = free.integrate(pair.x, W[:, tree.coordinates.index("lead")] * 0.7)
    assert_allclose(np.diff(forces.spring_energy(q)), np.diff(others.spring_energy(x)), rtol=1e-9, atol=1e-11)


def test_dry_friction_acts_through_the_size_of_the_ratio():
    tree = sd.KinematicTree()
    body = sd.Inertia.sphere(1, 0.1)
    tree.attach(body, "base", sd.revolute(friction=0.5, name="a"))
    tree.attach(body, "base", sd.revolute(friction=0.2, mimic=sd.Mimic("a", -3.0), name="b"))
    assert_allclose(tree.joint_force([0.0], [1.0]), [-0.5 - 3 * 0.2], rtol=1e-15)


@given(SEEDS)
def test_contributions_are_over_the_coordinates_that_move_a_link(seed):
    pair = Pair(seed)
    tree, q, qd = pair.coupled, pair.q, pair.qd
    parts = tree.contributions(q, qd)
    M, C, g = tree.dynamics(q, qd)
    for total, x in ((sd.padded_sum(p.M for p in parts), M), (sd.padded_sum(p.C for p in parts), C)):
        close(total.matrix(tree.coordinates), x, norm(x) + 1, 1e-12)
    for part in parts:
        columns = [tree.coordinates.index(name) for name in part.coordinates]
        J = tree.jacobian(part.link, q)
        assert not np.delete(J, columns, axis=1).any()
        close(part.J, J[:, columns], 1.0, 1e-12)
        close(part.J_dot, tree.jacobian_dot(part.link, q, qd)[:, columns], norm(part.J_dot) + 1, 1e-11)
    whole = tree.subtree_contribution(tree.base, q, qd)
    columns = [tree.coordinates.index(name) for name in whole.coordinates]
    close(np.asarray(whole.M), M[np.ix_(columns, columns)], norm(M), 1e-12)
    close(np.asarray(whole.g), g[columns], norm(g) + 1, 1e-12)


@given(SEEDS)
def test_operational_inertia_is_the_inverse_of_the_mobility(seed):
    pair = Pair(seed, n=4)
    tree = pair.coupled
    tree.attach(random_inertia(pair.rng), tree.links[-1], sd.free(name="loose"))
    q = np.concatenate([pair.q, [0, 0, 0, 1, 0.1, 0.2, 0.3]])
    link = tree.links[-1]
    for frame in ("com", "mixed"):
        J, M = tree.jacobian(link, q, frame), tree.mass_matrix(q)
        mobility = J @ np.linalg.solve(M, J.T)
        scale = np.sqrt(np.diag(mobility))
        identity = tree.operational_inertia(link, q, frame) @ mobility * scale[:, None] / scale
        assert_allclose(identity, np.eye(6), atol=1e-8 * np.linalg.cond(mobility / np.outer(scale, scale)))


def test_one_coordinate_without_inertia_is_named():
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.sphere(1, 0.1), "base", sd.revolute(name="turn"))
    tree.attach(sd.Link("frame"), "base", sd.revolute(name="idle"))
    tree.attach(sd.Link("other"), "base", sd.revolute(mimic=sd.Mimic("idle")))
    with pytest.raises(sd.SingularAttachmentError, match="nothing beyond joint 'idle' resists"):
        tree.forward_dynamics([0.0, 0.0], [0.0, 0.0], [0.0, 0.0])
    with pytest.raises(sd.SingularAttachmentError, match="'idle'"):
        tree.c_source("forward_dynamics")


def test_batches_are_those_of_single_states():
    pair = Pair(5)
    tree, rng = pair.coupled, pair.rng
    q = np.stack([tree.random_configuration(rng) for _ in range(6)]).reshape(2, 3, -1)
    qd = rng.normal(size=(3, tree.nv))
    M, _, _ = tree.dynamics(q, qd)
    qdd = tree.forward_dynamics(q, qd, qd)
    for k in np.ndindex(2, 3):
        assert_array_equal(M[k], tree.mass_matrix(q[k]))
        assert_array_equal(M[k], M[k].T)
        assert_array_equal(qdd[k], tree.forward_dynamics(q[k], qd[k[1]], qd[k[1]]))


# other forms --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pair():
    return Pair(11, 3, 3)


@pytest.mark.slow
def test_compiled_code_agrees(pair):
    tree, fast = pair.coupled, pair.coupled.compile().wait()
    q, qd = np.stack([pair.q] * 9), np.stack([pair.qd] * 9)
    for name, names in (*QUANTITIES, ("forward_dynamics", "q qd tau")):
        own = [getattr(pair, x) for x in names.split()]
        expected = np.asarray(getattr(tree, name)(*own))
        getattr(fast, name)(*own)
        fast.wait()
        close(getattr(fast, name)(*own), expected, norm(expected) + 1, 1e-10)
    assert set(dict(QUANTITIES)) - {"link_poses"} < set(fast.compiled)
    close(fast.forward_dynamics(q, qd, qd), tree.forward_dynamics(q, qd, qd), 10.0, 1e-8)
    part, expected = fast.contribution("f2", pair.q, pair.qd), tree.contribution("f2", pair.q, pair.qd)
    assert part.coordinates == expected.coordinates
    close(np.asarray(part.C), np.asarray(expected.C), 1 + norm(expected.C.array), 1e-11)


@pytest.mark.slow
def test_derivatives_agree_with_differences(pair):
    tree, h = pair.coupled, 1e-6
    of = tree.derivatives

    def along(f, x, move):
        return np.stack([(f(move(x, h * e)) - f(move(x, -h * e))) / (2 * h) for e in np.eye(tree.nv)], axis=-1)

    q, qd, qdd, tau = pair.q, pair.qd, pair.qdd, pair.tau
    add = np.add
    for name, last in (("inverse_dynamics", qdd), ("forward_dynamics", tau)):
        by = getattr(of, name)(q, qd, last)
        f = getattr(tree, name)
        numeric = (
            along(lambda x, f=f, y=last: f(x, qd, y), q, tree.integrate),
            along(lambda x, f=f, y=last: f(q, x, y), qd, add),
            along(lambda x, f=f: f(q, qd, x), last, add),
        )
        for exact, difference in zip(by, numeric, strict=True):
            close(exact, difference, norm(exact) + 1, 1e-6)
    close(of.center_of_mass(q), tree.center_of_mass_jacobian(q), 1.0, 1e-12)
    close(of.mass_matrix_dot(q, qd), tree.coriolis_matrix(q, qd) + tree.coriolis_matrix(q, qd).T, 10.0, 1e-11)
    tau = tree.inverse_dynamics(q, qd, qdd)
    close(of.regressor(q, qd, qdd) @ of.parameters(), tau, norm(tau), 1e-12)


def test_c_agrees(pair, tmp_path):
    tree = pair.coupled
    library = c_compiler.load(tree.c_source(["mass_matrix", "forward_dynamics", "contribution:f2"]), tmp_path)
    M, qdd = np.zeros((tree.nv, tree.nv)), np.zeros(tree.nv)
    p = c_compiler.pointer
    library.mass_matrix(p(pair.q), p(M))
    library.forward_dynamics(p(pair.q), p(pair.qd), p(pair.tau), p(qdd))
    close(M, tree.mass_matrix(pair.q), norm(M), 1e-12)
    close(qdd, tree.forward_dynamics(pair.q, pair.qd, pair.tau), norm(qdd), 1e-9)
    part = tree.contribution("f2", pair.q, pair.qd)
    parts = [np.zeros(np.asarray(x).shape) for x in (part.J, part.J_dot, part.M, part.C, part.g)]
    library.contribution_f2(p(pair.q), p(pair.qd), *map(p, parts))
    close(parts[3], np.asarray(part.C), 1 + norm(parts[3]), 1e-11)


def test_a_link_cannot_be_left_out_alone_if_its_joint_is_followed(pair):
    tree = pair.coupled
    leader = tree.topology.carried[tree.joint("follow2").mimic.joint]
    with pytest.raises(sd.ScrewdynError, match=f"is present without '{leader}'; let an optional link carry both"):
        tree.c_source("mass_matrix", optional=[leader])


def test_closed_forms_are_the_lagrangian_of_the_coupled_arm():
    # Two rods in a plane; the second turns against the first by −2 times its angle, plus a constant.
    m, L = 1.3, 0.7
    rod = sd.Inertia.rod(m, L, com=(L / 2, 0, 0))
    tree = sd.KinematicTree(gravity=(0, -9.81, 0))
    tree.attach(rod, "base", sd.revolute("z", name="a"), name="upper")
    tree.attach(rod, "upper", sd.revolute("z", mimic=sd.Mimic("a", -2.0, 0.4)), at=(L, 0, 0), name="lower")
    a, w = sp.symbols("a w")
    b = -2 * a + sp.Rational(2, 5)
    angles, centers = (a, a + b), []
    centers.append(sp.Matrix([sp.cos(a), sp.sin(a)]) * L / 2)
    centers.append(2 * centers[0] + sp.Matrix([sp.cos(a + b), sp.sin(a + b)]) * L / 2)
    T = sum(
        m * (c.diff(a) * w).dot(c.diff(a) * w) / 2 + m * L**2 / 12 * (angle.diff(a) * w) ** 2 / 2
        for c, angle in zip(centers, angles, strict=True)
    )
    U = sum(m * 9.81 * c[1] for c in centers)
    at = {a: 0.3, w: -1.2}
    M = T.diff(w, 2)
    assert_allclose(tree.mass_matrix([0.3]), [[float(M.subs(at))]], rtol=1e-13)
    assert_allclose(tree.coriolis_matrix([0.3], [-1.2]), [[float((M.diff(a) * w / 2).subs(at))]], rtol=1e-13)
    assert_allclose(tree.gravity_vector([0.3]), [float(U.diff(a).subs(at))], rtol=1e-13)
    form = tree.symbolic()
    assert form.mass_matrix().free_symbols <= set(form.q)
    assert_allclose(
        form.lambdify("coriolis_matrix")(np.array([0.3]), np.array([-1.2])), [[float((M.diff(a) * w / 2).subs(at))]]
    )


def test_a_run_conserves_energy():
    pair = Pair(2, 2, 2)
    tree = sd.KinematicTree(gravity=pair.coupled.gravity)
    tree.attach(pair.coupled, "base", name="root")
    for name in tree.joints:
        joint = tree.joint(name)
        tree.replace_joint(tree.topology.carried[name], replace(joint, damping=0.0, stiffness=0.0))
    run = sd.simulate(tree, sd.State(tree), 0.5)
    energy = run.energy.kinetic + run.energy.potential
    assert np.ptp(run.energy.kinetic) > 1e-3
    assert_allclose(energy, energy[0], atol=1e-6 * norm(energy))


@pytest.mark.parametrize(("tail", "refused"), [(sd.prismatic, True), (sd.revolute, False)])
def test_a_state_in_which_a_joint_that_follows_would_overflow_is_refused(tail, refused):
    """The coordinate of the follower is a million times that of its leader; only of a slide does M overflow."""
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia(1.0), "base", sd.revolute([0, 0, 1], name="lead"), name="a")
    tree.attach(sd.Inertia(1.0), "a", tail([1, 0, 0], name="tail", mimic=sd.Mimic("lead", 1e6)), name="b")
    if refused:
        with pytest.raises(sd.ShapeError, match="q is 1e\\+150 at 'lead'; results would overflow"):
            tree.mass_matrix([1e150])
    else:
        assert np.isfinite(tree.mass_matrix([1e150])).all()
