"""Closed forms against numeric values on random trees; shared intermediates, cached results, and errors."""

import inspect
import itertools
import re
import subprocess
import sys

import numpy as np
import pytest
import sympy as sp
from cases import FULL_SOAK, close, norm
from closed_forms import evaluated
from kinds import EVERY, GROUPS, SINGLE

import screwdyn as sd
from screwdyn.backends.closed_form import symbol
from screwdyn.forms.symbolic import Symbolic
from screwdyn.physics.quantities import ARGUMENTS, CATALOGUE
from screwdyn.testing import random_inertia, random_pose, random_tree

TOLERANCE = 1e-11


def values(sym, q, qd, *others, **named):
    given = dict(zip(ARGUMENTS, (q, qd, *others), strict=False)) | named
    return {x: v for group, of in given.items() if of is not None for x, v in zip(getattr(sym, group), of, strict=True)}


def state_of(rng, tree):
    return {"q": tree.random_configuration(rng)} | {group: rng.uniform(-2, 2, tree.nv) for group in ARGUMENTS[1:]}


def parts_of(result):
    """All arrays of a result, symbolic or of numbers."""
    if hasattr(result, "J_dot"):
        return [getattr(result, name) for name in ("J", "J_dot", "M", "C", "g")]
    return list(result) if isinstance(result, tuple) else [result]


def agrees(tree, state, name, expand, **parameters):
    """Whether a quantity in closed form has the values of the tree."""
    sym, entry = tree.symbolic(), CATALOGUE[name]
    expected = getattr(tree, name)(**parameters, **{group: state[group] for group in entry.arguments})
    form = getattr(sym, name)(**parameters, expand=expand)
    intermediates, form = ([], form) if expand else form
    if name == "link_poses":
        form = (sp.Matrix.vstack(*form),)
    assert getattr(form, "coordinates", None) == getattr(expected, "coordinates", None)
    at, scale = values(sym, **state), max(norm(np.asarray(x)) for x in parts_of(expected)) + 1
    for actual, numbers in zip(parts_of(form), parts_of(expected), strict=True):
        numbers = np.asarray(numbers)
        close(evaluated((intermediates, actual), at, numbers.shape), numbers, scale, TOLERANCE)


# Of which there is one for every link of the tree that can move in six directions.
SINGULAR = {"operational_inertia"}


# Those of trees without contacts.
NAMES = [name for name, entry in CATALOGUE.items() if entry.places != "contacts"]


def in_turn(names, first, others):
    """Each name with the first case, and in a soak with the others, of which a short one takes one for each name."""
    cases = []
    for k, name in enumerate(names):
        cases.append(pytest.param(name, first[1], id=f"{first[0]}-{name}"))
        chosen = others if FULL_SOAK else [[*others][k % len(others)]]
        cases += [pytest.param(name, others[key], marks=pytest.mark.soak, id=f"{key}-{name}") for key in chosen]
    return cases


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kinds"), in_turn(NAMES, ("all", EVERY), {"one": SINGLE, "groups": GROUPS}))
def test_every_quantity_on_every_joint(name, kinds):
    rng, entry = np.random.default_rng([len(kinds), *name.encode()]), CATALOGUE[name]
    tree = random_tree(rng, 2, kinds)
    if name in SINGULAR:
        tree.attach(random_inertia(rng), to="base", joint=sd.free(name="root"), at=random_pose(rng), name="last")
        tree.attach(
            random_inertia(rng), to="last", joint=sd.revolute("x", name="tip"), at=random_pose(rng), name="tool"
        )
    state = state_of(rng, tree)
    parameters = {}
    if "link" in entry.parameters:
        parameters["link"] = tree.links[-1]
    # A frame comes after all joints: one tree shows it.
    for frame in ("com", "body", "base", "mixed") if "frame" in entry.parameters and kinds is EVERY else (None,):
        given = parameters | ({} if frame is None else {"frame": frame})
        agrees(tree, state, name, False, **given)


@pytest.mark.parametrize(
    ("name", "kind"),
    in_turn(
        [x for x in NAMES if x not in ("forward_dynamics", *SINGULAR)],
        ("planar", "planar"),
        {kind: kind for kind in ("helical", "revolute", "universal")},
    ),
)
def test_every_quantity_written_out(name, kind):
    rng = np.random.default_rng([len(kind), *name.encode()])
    tree = random_tree(rng, 2 if kind in ("revolute", "helical") else 1, (kind,), frames=0)
    parameters = {"link": tree.links[-1]} if "link" in CATALOGUE[name].parameters else {}
    agrees(tree, state_of(rng, tree), name, True, **parameters)


def test_a_ball_by_hand():
    """Euler's equations and the potential of a heavy top."""
    m, h, a, c, g = sp.symbols("m h a c g")
    tree = sd.KinematicTree(gravity=(0, 0, -g))
    tree.attach(sd.Inertia(m, (0, 0, h), (a, a, c)), to="base", joint=sd.spherical(name="top"), name="body")
    sym = tree.symbolic()
    assert [str(x) for x in (*sym.q, *sym.qd)] == ["top_x", "top_y", "top_z", "top_w", "top_wx", "top_wy", "top_wz"]
    A = a + m * h**2
    assert sp.simplify(sym.mass_matrix() - sp.diag(A, A, c)) == sp.zeros(3, 3)
    x, y, z = sym.qd
    moment = sp.Matrix([(c - A) * y * z, (A - c) * x * z, 0])
    assert sp.simplify(sym.coriolis_matrix() * sym.qd - moment) == sp.zeros(3, 1)
    i, j, k, w = sym.q
    height = h * (k**2 + w**2 - i**2 - j**2) / (i**2 + j**2 + k**2 + w**2)
    assert sp.simplify(sym.potential_energy() - m * g * height) == 0


def test_methods_have_the_signatures_of_the_catalogue():
    for name, entry in CATALOGUE.items():
        method = getattr(Symbolic, name)
        assert list(inspect.signature(method).parameters) == ["self", *entry.parameters, "expand"]
        assert method.__name__ == name and method.__doc__
    sym = sd.robots.pelican().symbolic()
    assert sym.jacobian("link1") is sym.jacobian(link="link1", frame="com", expand=True) is sym.jacobian("link1", "COM")
    with pytest.raises(TypeError, match="link"):
        sym.jacobian()
    with pytest.raises(sd.UnknownLinkError, match="link1"):
        sym.jacobian("link")
    with pytest.raises(sd.ShapeError, match="frame must be"):
        sym.jacobian("link1", "here")
    with pytest.raises(sd.SingularAttachmentError, match="six directions"):
        sym.operational_inertia("link1")
    with pytest.raises(sd.InertiaError, match="centre of mass"):
        sd.KinematicTree().symbolic().center_of_mass()


def symbolised(tree):
    """The same tree with a symbol for each of its numbers, and the values of the symbols."""
    held, serial = {}, itertools.count()

    def named(array):
        array = np.asarray(array, dtype=float)
        symbols = [sp.Symbol(f"p{next(serial)}") if x not in (0, 1) else x for x in array.flat]
        held.update({s: x for s, x in zip(symbols, array.flat, strict=True) if isinstance(s, sp.Symbol)})
        return np.array(symbols, dtype=object).reshape(array.shape)

    def symmetric(tensor):
        upper = named(np.array(tensor)[np.triu_indices(3)])
        full = np.empty((3, 3), dtype=object)
        full[np.triu_indices(3)] = upper
        full.T[np.triu_indices(3)] = upper
        return full

    twin = sd.KinematicTree(gravity=named(tree.gravity))
    for name in tree.links[1:]:
        parent, joint = tree.parent(name), tree.joint(next(j for j in tree.joints if carries(tree, j, name)))
        inertia = tree.link(name).inertia
        if inertia is not None:
            inertia = sd.Inertia(named(inertia.mass).item(), named(inertia.com), symmetric(inertia.tensor))
        at = named(tree.graph.edges[parent, name]["home"])
        screw = None if joint.screw is None else named(joint.screw)
        twin.attach(sd.Link(name, inertia), to=parent, joint=sd.Joint(screw, name=joint.name), at=at)
    return twin, held


def carries(tree, joint, link):
    return tree.graph.edges[tree.parent(link), link]["name"] == joint


@pytest.mark.slow
def test_every_number_may_be_a_symbol():
    rng = np.random.default_rng(0)
    for kinds in (("revolute",), ("prismatic", "helical"), ("fixed", "revolute")):
        tree = random_tree(rng, 2, kinds)
        twin, held = symbolised(tree)
        assert twin.free_symbols == set(held)
        again = twin.subs(held)
        assert not again.free_symbols
        np.testing.assert_allclose(again.model.table, tree.model.table, rtol=1e-12, atol=1e-13)
        sym = twin.symbolic()
        assert set(sym.parameters) <= set(held)
        q, qd = rng.uniform(-2, 2, (2, tree.nq))
        at = values(sym, q, qd) | held
        for function, arguments in (("mass_matrix", (q,)), ("coriolis_matrix", (q, qd)), ("gravity_vector", (q,))):
            expected = getattr(tree, function)(*arguments)
            actual = evaluated(getattr(sym, function)(expand=False), at, expected.shape)
            close(actual, expected, norm(expected) + 1, 1e-9)


def test_parameters_may_be_mixed():
    m = sp.Symbol("m", positive=True)
    tree = sd.robots.puma560()
    tree.attach(sd.Inertia.point(m, (0, 0, 0.1)), to="link6", name="load")
    M = tree.symbolic().mass_matrix(expand=False)
    q = np.linspace(-1, 1, 6)
    at = values(tree.symbolic(), q, q) | {m: 2.5}
    expected = tree.subs({"m": 2.5}).mass_matrix(q)
    close(evaluated(M, at, (6, 6)), expected, norm(expected), 1e-12)
    assert tree.symbolic().parameters == (m,)


a, b, k, m = sp.symbols("a b k m")


@pytest.mark.parametrize(
    ("mass", "axis"),
    [
        (m / a, "z"),
        (1 / a, "z"),
        (m / (1 + a), "z"),
        ((a + b) ** k, "z"),
        (sp.sqrt(a**2 + b**2), "z"),
        (m / a**2 + k / a, "z"),
        (m, (a, 1, 0)),
    ],
    ids=str,
)
def test_parameters_may_be_denominators_exponents_and_under_roots(mass, axis):
    held = {a: 0.7, b: 1.3, k: 1.5, m: 2.0}
    tree = sd.KinematicTree(gravity=(0, -9.81, 0))
    for name, to, at in (("t0", "base", None), ("t1", "t0", (1, 0, 0))):
        tree.attach(sd.Inertia.planar(mass, (0.5, 0), 1), to=to, joint=sd.revolute(axis, name=name), at=at, name=name)
    q, qd = np.array([[0.3, -0.8], [0.9, 0.4]])
    sym, numeric = tree.symbolic(), tree.subs(held)
    at = values(sym, q, qd) | held
    for function, arguments in (("mass_matrix", (q,)), ("coriolis_matrix", (q, qd)), ("gravity_vector", (q,))):
        expected = getattr(numeric, function)(*arguments)
        close(evaluated(getattr(sym, function)(), at, expected.shape), expected, norm(expected) + 1, TOLERANCE)


class TestShape:
    def test_symbols(self):
        sym = sd.robots.pelican().symbolic()
        assert [str(x) for x in (*sym.q, *sym.qd)] == ["shoulder", "elbow", "shoulder_dot", "elbow_dot"]
        assert [str(x) for x in (*sym.qdd, *sym.tau)] == ["shoulder_ddot", "elbow_ddot", "shoulder_tau", "elbow_tau"]
        assert all(x.is_real for x in sym.q)
        assert (sym.coriolis_matrix() * sym.qd).shape == (2, 1)

    def test_freedoms_of_joints_with_several(self):
        """A freedom such as hip[wx] is a rate itself; hip[x] is a component of a quaternion."""
        given = [("q", "hip[w]"), ("q", "base[px]"), ("q", "pin[angle]"), ("q", "hook[angle2]")]
        assert [str(symbol(*x)) for x in given] == ["hip_w", "base_px", "pin_angle", "hook_angle2"]
        given = [("qd", "hip[wx]"), ("qdd", "hip[wx]"), ("tau", "base[vz]"), ("qd", "hook[w1]"), ("qdd", "pin[v]")]
        assert [str(symbol(*x)) for x in given] == ["hip_wx", "hip_wx_dot", "base_vz_tau", "hook_w1", "pin_v_dot"]
        assert [str(symbol(group, "rail[0]")) for group in ("q", "qd")] == ["rail[0]", "rail[0]_dot"]

    @pytest.mark.parametrize(
        ("group", "name", "text"),
        [
            ("q", "theta1", r"\theta_{1}"),
            ("qd", "theta1", r"\dot{\theta}_{1}"),
            ("qdd", "theta1", r"\ddot{\theta}_{1}"),
            ("tau", "theta1", r"\tau_{\theta_{1}}"),
            ("qd", "elbow", r"\dot{elbow}"),
            ("qdd", "left_knee", r"\ddot{left}_{knee}"),
            ("qd", "hip[wx]", r"hip_{wx}"),
            ("qdd", "hip[wx]", r"\dot{hip}_{wx}"),
        ],
    )
    def test_latex(self, group, name, text):
        x = symbol(group, name)
        assert sp.latex(x) == text
        assert sp.latex(sp.sin(x)) == rf"\sin{{\left({text} \right)}}"

    def test_symbols_are_plain(self):
        assert symbol("qd", "theta1") is sp.Symbol("theta1_dot", real=True)

    def test_intermediates_are_used_more_than_once_and_come_in_order(self):
        sym = sd.robots.puma560().symbolic()
        intermediates, matrices = sym.shared("mass_matrix", "coriolis_matrix", "gravity_vector")
        assert [m.shape for m in matrices] == [(6, 6), (6, 6), (6, 1)]
        known = {*sym.q, *sym.qd}
        for name, expression in intermediates:
            assert expression.free_symbols <= known
            known.add(name)

    def test_intermediates_do_not_take_names_of_the_robot(self):
        """Not even of those that a function does not depend on: M depends neither on x0 nor on x3."""
        tree = sd.KinematicTree(gravity=(0, -sp.Symbol("x3"), 0))
        link = "base"
        for k in range(2):
            point = sd.Inertia.point(sp.Symbol("x2"), (0.3, 0, 0))
            link = tree.attach(point, to=link, joint=sd.revolute("z"), at=(0.4 * k, 0, 0), name=f"x{k}").name
        sym = tree.symbolic()
        taken = {str(x) for x in (*sym.q, *sym.qd, *sym.parameters)}
        for form in (sym.bias_force, sym.mass_matrix):
            intermediates, _ = form(expand=False)
            assert intermediates and taken.isdisjoint(str(name) for name, _ in intermediates)

    def test_contributions_over_intermediates(self):
        arm = sd.robots.puma560()
        sym = arm.symbolic()
        intermediates, part = sym.contribution(arm.links[-1], expand=False)
        q, qd = np.random.default_rng(17).normal(size=(2, 6))
        at = values(sym, q, qd)
        for name, expression in intermediates:
            at[name] = expression.xreplace(at)
        expected = arm.contribution(arm.links[-1], q, qd)
        assert part.coordinates == expected.coordinates
        for name in ("J", "J_dot", "M", "C", "g"):
            numbers = np.asarray(getattr(expected, name))
            close(evaluated(getattr(part, name), at, numbers.shape), numbers, 1 + norm(numbers), TOLERANCE)

    def test_returned_lists_are_copies(self):
        sym = sd.robots.pelican().symbolic()
        intermediates, matrices = sym.shared("mass_matrix")
        expected = list(intermediates), list(matrices)
        intermediates.clear()
        matrices.clear()
        assert sym.shared("mass_matrix") == expected

    def test_names_stand_for_one_thing(self):
        one, other = sp.Symbol("m"), sp.Symbol("m", positive=True)
        tree = sd.KinematicTree()
        tree.attach(sd.Inertia.point(one, (1, 0, 0)), to="base", joint=sd.revolute("z", name="elbow"), name="a")
        assert tree.subs({other: 2}).mass == 2
        with tree.attached(sd.Inertia.point(other, (1, 0, 0)), to="a", name="b"):
            with pytest.raises(sd.ScrewdynError, match="m is the name of two symbols"):
                tree.symbolic()
            assert tree.subs({"m": 2}).mass == 4
            assert tree.subs({one: 2, other: 3}).mass == tree.subs({other: 3, one: 2}).mass == 5
            with pytest.raises(sd.ShapeError, match="m is given several values: 2, 3"):
                tree.subs({one: 2, "m": 3})
        tree.attach(sd.Inertia.point(sp.Symbol("elbow")), to="a", name="b")
        with pytest.raises(sd.ScrewdynError, match="elbow is both a parameter and the symbol of a coordinate"):
            tree.symbolic()

    def test_no_coordinates(self):
        sym = sd.KinematicTree().symbolic()
        assert sym.mass_matrix().shape == (0, 0)
        assert sym.gravity_vector().shape == (0, 1)
        assert sym.kinetic_energy() == 0
        assert sym.contribution("base").J.shape == (6, 0)

    def test_puma_is_small_and_whole(self):
        """For comparison, SymPy's Kane method needs about 108 000 operations for a generic 6R arm."""
        intermediates, matrices = (
            sd.robots.puma560().symbolic().shared("mass_matrix", "coriolis_matrix", "gravity_vector")
        )
        count = sum(sp.count_ops(e) for _, e in intermediates) + sum(sp.count_ops(x) for m in matrices for x in m)
        assert count <= 1100

    def test_small_arms_are_written_shortly(self):
        sym = sd.robots.pelican().symbolic()
        assert str(sym.coriolis_matrix()[0, 0]) == "-0.0121806932*elbow_dot*sin(elbow)"


class TestShort:
    """Entries are written with few operations."""

    @staticmethod
    def arm(body, length):
        tree, to = sd.KinematicTree(gravity=(0, -9.81, 0)), "base"
        for k in range(3):
            at = (length(k), 0, 0) if k else None
            to = tree.attach(body(k), to=to, joint=sd.revolute("z", name=f"theta{k + 1}"), at=at).name
        return tree.symbolic()

    @pytest.mark.slow
    def test_inverse_dynamics_is_no_longer_than_its_parts(self):
        m, l, I, a = (sp.symbols(f"{x}1:4") for x in ("m", "l", "I", "a"))
        sym = self.arm(lambda k: sd.Inertia.planar(m[k], (l[k], 0), I[k]), lambda k: a[k])
        parts = sym.mass_matrix() * sym.qdd + sym.coriolis_matrix() * sym.qd + sym.gravity_vector()
        for actual, expected in zip(sym.inverse_dynamics(), parts, strict=True):
            assert sp.count_ops(actual) <= sp.count_ops(expected)
            assert sp.expand_trig(sp.expand(actual - expected)).expand() == 0

    def test_products_of_sines_are_folded(self):
        """Their coefficients cancel but for rounding, as 0.1 · 3 − 0.3 does."""
        sym = self.arm(lambda k: sd.Inertia.planar(1.3 + k, (0.1 + 0.13 * k, 0.02), 0.01), lambda k: 0.31)
        q2, q3 = sym.q[1:, 0]
        waves = {sp.sin(q2), sp.sin(q3), sp.sin(q2 + q3), sp.cos(q2), sp.cos(q3), sp.cos(q2 + q3)}
        assert {sp.Mul(*term.as_coeff_Mul()[1:]) for term in sp.Add.make_args(sym.mass_matrix()[0, 0])} == {1, *waves}


class TestExactness:
    def test_exact_numbers_stay_exact(self):
        third = sp.Rational(1, 3)
        tree = sd.KinematicTree(gravity=(0, 0, -10))
        pose = sp.eye(4)
        pose[:3, :3] = sp.rot_axis3(sp.pi / 5).T
        tree.attach(sd.Inertia.point(third, (1, 0, 0)), to="base", joint=sd.revolute("y"), at=pose, name="a")
        g = tree.symbolic().gravity_vector()
        assert g[0] == -sp.Rational(10, 3) * sp.cos(sp.Symbol("a", real=True))
        assert tree.gravity_vector([0.0])[0] == pytest.approx(-10 / 3)
        assert tree.mass_matrix([0.0])[0, 0] == pytest.approx(1 / 3)
        np.testing.assert_allclose(tree.contributions([0.3], [0.1])[0].M.array, [[1 / 3]])
        np.testing.assert_allclose(tree.jacobian("a", [0.3]), tree.contribution("a", [0.3], [0.0]).J)

    def test_floats_stay_floats(self):
        assert sd.robots.two_link(length=0.3).symbolic().gravity_vector().atoms(sp.Float)

    def test_nothing_of_ones_and_zeros_is_left(self):
        sym = sd.robots.pelican(m1=sp.Symbol("m1"), l1=sp.Symbol("l1")).symbolic()
        text = str(sym.mass_matrix()) + str(sym.gravity_vector())
        assert not re.search(r"(?<![\d.])[01]\.0(?!\d)", text)


class TestProgress:
    @pytest.mark.slow
    def test_a_payload_does_not_change_other_contributions(self):
        tree = sd.robots.truc_3r()
        before = tree.symbolic()
        parts, M = before.contributions(), before.mass_matrix(expand=False)
        handle = tree.attach(sd.Inertia.box(1, (0.1, 0.2, 0.3)), to="link3", joint=sd.revolute("x"), name="load")
        after = tree.symbolic()
        assert all(new is old for new, old in zip(after.contributions(), parts, strict=False))
        assert after.contribution("load").coordinates == tree.coordinates
        assert after.coordinates != before.coordinates
        tree.detach(handle)
        again = tree.symbolic()
        assert again.mass_matrix(expand=False)[1] is M[1]
        assert all(new is old for new, old in zip(again.contributions(), parts, strict=True))

    @pytest.mark.slow
    def test_a_payload_costs_less_than_the_whole(self):
        tree = sd.robots.puma560()
        tree.symbolic().contributions(expand=False)
        known = len(tree.symbolic()._derivation.tape.nodes)
        tree.attach(sd.Inertia.box(1, (0.1, 0.2, 0.3)), to="link6", joint=sd.revolute("x"), name="load")
        tree.symbolic().contributions(expand=False)
        new = len(tree.symbolic()._derivation.tape.nodes) - known
        whole = tree.copy().symbolic()
        whole.contributions(expand=False)
        assert new < 0.5 * len(whole._derivation.tape.nodes)

    def test_a_name_may_come_back_for_another_link(self):
        rng = np.random.default_rng(6)
        tree = random_tree(rng, 3)
        for _ in range(2):
            handle = tree.attach(random_inertia(rng), "link3", sd.revolute("y"), random_pose(rng), "new")
            q = rng.uniform(-2, 2, 4)
            sym = tree.symbolic()
            close(evaluated(sym.mass_matrix(), values(sym, q, q), (4, 4)), tree.mass_matrix(q), 1, 1e-11)
            tree.detach(handle)

    def test_the_closed_form_is_of_the_tree_as_it_was(self):
        tree = sd.robots.pelican()
        sym = tree.symbolic()
        tree.attach(sd.Inertia.point(1), to="link2", joint=sd.revolute("z"), name="load")
        assert sym.mass_matrix().shape == (2, 2)
        with pytest.raises(sd.UnknownLinkError, match="load"):
            sym.contribution("load")


class TestRefusals:
    def test_numbers_of_a_robot_with_symbols(self):
        m, length = sp.symbols("mass length")
        tree = sd.robots.pelican(m1=m, l1=length)
        q = [0.0, 0.0]
        calls = [
            lambda: tree.mass_matrix(q),
            lambda: tree.coriolis_matrix(q, q),
            lambda: tree.gravity_vector(q),
            lambda: tree.inverse_dynamics(q, q, q),
            lambda: tree.forward_dynamics(q, q, q),
            lambda: tree.contributions(q, q),
            lambda: tree.contribution("link1", q, q),
            lambda: tree.kinetic_energy(q, q),
            lambda: tree.potential_energy(q),
            lambda: tree.momentum(q, q),
            lambda: tree.jacobian("link1", q),
            lambda: tree.forward_kinematics("link2", q),
            lambda: sd.simulate(tree, sd.State(tree), 0.1),
        ]
        for call in calls:
            with pytest.raises(sd.UnboundSymbolError, match=r"length.*subs"):
                call()
        assert str(tree).count("mass kg") == 1

    def test_a_joints_own_force(self):
        tree = sd.KinematicTree()
        joint = sd.revolute("z", damping=sp.Symbol("b"))
        tree.attach(sd.Inertia.point(1, (1, 0, 0)), to="base", joint=joint, name="a")
        assert tree.mass_matrix([0.0]) == pytest.approx(1)
        with pytest.raises(sd.UnboundSymbolError, match="b;"):
            tree.joint_force([0.0], [1.0])
        assert tree.subs({"b": 2}).joint_force([0.0], [1.0]) == pytest.approx(-2)

    def test_a_parameter_that_is_a_coordinate(self):
        tree = sd.robots.pelican(m1=sp.Symbol("elbow", real=True))
        with pytest.raises(sd.ScrewdynError, match="elbow is both"):
            tree.symbolic()

    @pytest.mark.parametrize("suffix", ["dot", "ddot", "tau"])
    def test_a_coordinate_that_is_called_like_a_rate(self, suffix):
        tree = sd.KinematicTree()
        for name, to in (("a", "base"), (f"a_{suffix}", "a")):
            tree.attach(sd.Inertia.point(1, (1, 0, 0)), to=to, joint=sd.revolute("z", name=name), name=name)
        with pytest.raises(sd.ScrewdynError, match=f"a_{suffix} is the symbol of two inputs"):
            tree.symbolic()

    def test_a_joint_without_inertia(self):
        tree = sd.robots.pelican(m1=sp.Symbol("m1"))
        tree.attach(sd.Link("tool"), to="link2", joint=sd.revolute("z"))
        with pytest.raises(sd.SingularAttachmentError, match="tool"):
            tree.symbolic().forward_dynamics()
        point = sd.KinematicTree()
        point.attach(sd.Inertia.point(sp.Symbol("m")), to="base", joint=sd.revolute(name="pin"))
        with pytest.raises(sd.SingularAttachmentError, match="pin"):
            point.symbolic().forward_dynamics()

    def test_unknown_names(self):
        sym = sd.robots.pelican().symbolic()
        with pytest.raises(sd.UnknownLinkError, match="link1"):
            sym.contribution("link7")
        with pytest.raises(sd.ShapeError, match="'com'"):
            sym.jacobian("link1", "tool")
        with pytest.raises(sd.ScrewdynError, match="mass_matrix"):
            sym.shared("mass")


class TestSubs:
    def test_symbols_are_matched_by_name(self):
        """A plain symbol has other assumptions than that of a coordinate, so that SymPy's ``subs`` changes nothing."""
        arm = sd.robots.pelican()
        forms, elbow, q, qd = arm.symbolic(), sp.Symbol("elbow"), [0.2, 0.5], [0.3, -0.4]
        for values in ({elbow: 0.5}, {"elbow": 0.5}, {forms.q[1]: 0.5}):
            np.testing.assert_allclose(
                np.array(forms.subs(forms.mass_matrix(), values), dtype=float), arm.mass_matrix(q), rtol=1e-12
            )
        names = dict(zip(("shoulder", "elbow", "shoulder_dot", "elbow_dot"), [*q, *qd], strict=True))
        link = arm.links[-1]
        found, expected = forms.subs(forms.contribution(link), names), arm.contribution(link, q, qd)
        for name in ("M", "C", "g"):
            np.testing.assert_allclose(
                np.asarray(getattr(found, name), dtype=float),
                np.asarray(getattr(expected, name)),
                rtol=1e-12,
                atol=1e-15,
            )
        intermediates, M = forms.subs(forms.mass_matrix(expand=False), names)
        for name, expression in reversed(intermediates):
            M = M.xreplace({name: expression})
        np.testing.assert_allclose(np.array(M, dtype=float), arm.mass_matrix(q), rtol=1e-12)

    def test_all_are_replaced_at_once_and_nothing_else_changes(self):
        forms = sd.robots.pelican().symbolic()
        one, other = forms.qd
        C = forms.coriolis_matrix()
        swapped = forms.subs(C, {one: other, other: one})
        assert swapped == C.subs({one: other, other: one}, simultaneous=True) != C
        assert forms.subs(C, {}) == C

    @pytest.mark.parametrize("key", ["elbwo", sp.Symbol("elbwo")])
    def test_unknown_symbols_are_refused(self, key):
        forms = sd.robots.pelican().symbolic()
        with pytest.raises(sd.UnknownNameError, match="no symbol 'elbwo'; did you mean 'elbow'"):
            forms.subs(forms.mass_matrix(), {key: 1})
        with pytest.raises(sd.ShapeError, match="the value of elbow must be a number or an expression"):
            forms.subs(forms.mass_matrix(), {"elbow": "x"})

    def test_what_would_change_nothing_or_give_no_number_is_refused(self):
        forms = sd.robots.pelican().symbolic()
        M, plain = forms.mass_matrix(), {name: sp.Symbol(name) for name in ("shoulder", "elbow")}
        for form in (np.array(M), {"M": M}, "elbow"):
            with pytest.raises(sd.ShapeError, match="an expression or a matrix of SymPy, not to"):
                forms.subs(form, {"elbow": 1})
        with pytest.raises(sd.ShapeError, match="elbow is given several values: 1, 2"):
            forms.subs(M, {"elbow": 1, plain["elbow"]: 2})
        with pytest.raises(sd.ShapeError, match="the value of elbow is not a number"):
            forms.subs(M, {"elbow": np.nan})
        # Symbols in values are matched by name too.
        assert forms.subs(M, {"elbow": plain["shoulder"]}).free_symbols == {forms.q[0]}

    def test_a_tree_has_no_symbols_of_coordinates(self):
        arm = sd.robots.pelican()
        with pytest.raises(sd.UnknownNameError, match="'elbow_dot' is the symbol of a coordinate or its rate"):
            arm.subs({sp.Symbol("elbow_dot"): 1})
        assert arm.subs({sp.Symbol("other"): 1}).mass == arm.mass


def test_sympy_is_not_imported_before_it_is_needed():
    code = "import sys, screwdyn; screwdyn.robots.puma560().model; assert 'sympy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_closed_form_takes_no_state():
    form = sd.robots.two_link().symbolic()
    for state in ([0, 0], np.zeros(2)):
        with pytest.raises(sd.ScrewdynError, match="takes no state"):
            form.mass_matrix(state)
    with pytest.raises(sd.UnknownLinkError, match="given by its name"):
        form.jacobian(np.zeros(2))
