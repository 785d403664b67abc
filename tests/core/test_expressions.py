"""Expressions instead of numbers: exactness, checks and substitution."""

import functools
import pickle

import numpy as np
import pytest
import sympy as sp
from closed_forms import evaluated

import screwdyn as sd
from screwdyn.backends.closed_form import shortest
from screwdyn.core import expressions

x, y, alpha = sp.symbols("x y alpha")


class TestArrays:
    def test_floats_without_an_expression(self):
        for value in ([1, 2], [sp.Integer(1), 2.5], [sp.Float(0.5), 1]):
            assert expressions.array(value).dtype == np.float64

    def test_objects_with_one(self):
        a = expressions.array([x, 1.0, 0.5, sp.Rational(1, 3), 2.0 * y])
        assert a.dtype == object
        assert a.tolist() == [x, 1, 0.5, sp.Rational(1, 3), 2 * y]

    @pytest.mark.parametrize("value", [[x, "word"], [x, None], [sp.I, 1], ["word"]])
    def test_no_numbers(self, value):
        with pytest.raises((TypeError, ValueError)):
            expressions.array(value)

    def test_infinity_is_a_float(self):
        assert not expressions.is_finite(expressions.array([x, sp.oo]))
        assert not expressions.is_finite(expressions.array([x, sp.nan]))

    def test_floats_refuse_symbols_by_name(self):
        with pytest.raises(sd.UnboundSymbolError, match="the thing still depends on x, y"):
            expressions.floats(np.array([x, y]), "the thing")


class TestBodies:
    def test_kept(self):
        body = sd.Inertia(x, (y, 0, 0), (x, x, x))
        assert (body.mass, body.free_symbols) == (x, {x, y})
        assert body.first_moment.tolist() == [x * y, 0, 0]
        assert body.matrix[0, 0] == x and body.matrix[4, 2] == x * y
        assert "mass=x" in repr(body)
        assert body.failing_condition is None
        assert pickle.loads(pickle.dumps(body)) == body

    @pytest.mark.parametrize(
        "body",
        [
            sd.Inertia.rod(x, y),
            sd.Inertia.box(x, (y, 1, 2)),
            sd.Inertia.cylinder(x, y, 2),
            sd.Inertia.sphere(x, y),
            sd.Inertia.planar(x, (y, 0), x),
        ],
    )
    def test_shapes(self, body):
        numeric = body.subs({x: 2, "y": 0.5})
        assert not numeric.free_symbols and numeric.tensor.dtype == np.float64

    def test_shapes_agree_with_numbers(self):
        assert sd.Inertia.rod(x, y).subs({x: 2, y: 0.5}) == sd.Inertia.rod(2, 0.5)
        np.testing.assert_allclose(
            sd.Inertia.box(x, (y, 1, 2)).subs({x: 2, y: 0.5}).matrix, sd.Inertia.box(2, (0.5, 1, 2)).matrix, rtol=1e-15
        )

    def test_moved_and_welded(self):
        T = sd.screw.exp([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
        body, other = sd.Inertia(x, (y, 0, 1), (x, x, x)), sd.Inertia.sphere(1, 0.1, (0, y, 0))
        values = {x: 2.0, y: 0.3}
        moved = (body.transformed(T) + other).subs(values)
        np.testing.assert_allclose(
            moved.matrix, (body.subs(values).transformed(T) + other.subs(values)).matrix, rtol=1e-13, atol=1e-14
        )

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ((sp.Symbol("m", negative=True),), "not positive"),
            ((-1, (x, 0, 0)), "not positive"),
            ((x, 0, (1, 1, 3)), "triangle"),
            ((x, 0, (-1, x, x)), "negative"),
            ((x, (sp.oo, y, 0)), "finite"),
            ((x, 0, [[1, x, 0], [y, 1, 0], [0, 0, 1]]), "symmetric"),
            ((x, (1, y)), "3-vector"),
        ],
    )
    def test_what_is_invalid_for_all_values_is_refused(self, arguments, words):
        with pytest.raises(sd.InertiaError, match=words):
            sd.Inertia(*arguments)

    def test_substituted_values_are_checked(self):
        tree = sd.KinematicTree()
        tree.attach(sd.Inertia(x, 0, (1, 1, y)), to="base", joint=sd.revolute("z"), name="arm")
        with pytest.raises(sd.InertiaError, match=r"'arm'.*triangle"):
            tree.subs({x: 1, y: 3})
        with pytest.raises(sd.InertiaError, match="not positive"):
            tree.subs({x: 0, y: 1})
        assert sd.Inertia.effective(x, 0, (1, 1, y)).subs({x: 0, y: 3}).mass == 0

    def test_symbols_are_substituted_at_once(self):
        assert sd.Inertia.point(x, (y, 0, 0)).subs({x: y, y: x}) == sd.Inertia.point(y, (x, 0, 0))
        assert expressions.substituted(x * y**2, expressions.bound({"x": y, "y": x + 1}, {x, y})) == y * (x + 1) ** 2
        tree = sd.KinematicTree()
        for name, to, at in (("upper", "base", 0), ("lower", "upper", x)):
            tree.attach(
                sd.Inertia.point(1, (y if at else x, 0, 0)), to=to, at=(at, 0, 0), joint=sd.revolute("y"), name=name
            )
        swapped = tree.subs({x: y, y: x}).subs({x: 0.3, y: 0.5})
        np.testing.assert_array_equal(
            swapped.mass_matrix([0.1, 0.2]), tree.subs({x: 0.5, y: 0.3}).mass_matrix([0.1, 0.2])
        )

    @pytest.mark.parametrize("key", [3, None, x * y, ("x",)])
    def test_values_are_given_by_symbols_or_names(self, key):
        with pytest.raises(sd.ShapeError, match="by symbols or their names"):
            sd.Inertia.point(x).subs({key: 1.0})

    def test_conditions_are_no_numbers(self):
        with pytest.raises(sd.InertiaError, match="mass must be numbers"):
            sd.Inertia(x > 0)

    def test_principal_screws_need_numbers(self):
        with pytest.raises(sd.UnboundSymbolError, match="x"):
            _ = sd.Inertia(1, 0, (x, x, x)).principal_screws


class TestTrees:
    def test_joints(self):
        tilted = sd.revolute((0, sp.sin(alpha), sp.cos(alpha)), point=(x, 0, 0))
        assert tilted.kind == "revolute"
        assert tilted.screw.tolist() == [0, sp.sin(alpha), sp.cos(alpha), 0, -x * sp.cos(alpha), x * sp.sin(alpha)]
        assert sd.helical("z", x).kind == "helical"
        assert sd.prismatic((x, 0, 0)).kind == "prismatic"
        with pytest.raises(sd.JointError, match="damping"):
            sd.revolute("z", damping=x).subs({x: -1})

    def test_an_invalid_value_of_a_joint_is_named(self):
        tree = sd.KinematicTree()
        tree.attach(sd.Inertia.point(1, (1, 0, 0)), to="base", joint=sd.revolute((0, x, y), name="elbow"))
        with pytest.raises(sd.JointError, match=r"joint 'elbow'.*length 0"):
            tree.subs({x: 0, y: 0})

    def test_poses_invalid_for_all_values_are_refused(self):
        tree = sd.KinematicTree()
        for row, entry in ((3, 0.5), (0, 2.0)):
            pose = np.eye(4, dtype=object)
            pose[1, 3], pose[1, 1], pose[row, 0] = x, sp.cos(x), entry
            with pytest.raises(sd.ShapeError):
                tree.attach(sd.Inertia.point(1), to="base", at=pose)
        with pytest.raises(sd.ShapeError, match="gravity"):
            tree.gravity = (x, sp.oo, 0)

    def test_denavit_hartenberg(self):
        rows = [
            {"alpha": alpha, "a": x, "d": y, "m": 1, "com": (x, 0, 0.1)},
            {"theta": alpha, "m": 2, "com": (1, 0, 0)},
        ]
        values = {"alpha": 0.3, "x": 0.4, "y": 0.5}
        numbers = [{key: sp.sympify(v).subs(values) if key != "com" else v for key, v in row.items()} for row in rows]
        numbers[0]["com"] = (0.4, 0, 0.1)
        symbolic, numeric = sd.KinematicTree.from_dh(rows).subs(values), sd.KinematicTree.from_dh(numbers)
        np.testing.assert_allclose(symbolic.model.table, numeric.model.table, rtol=1e-13, atol=1e-15)

    def test_names_of_symbols(self):
        tree = sd.robots.pelican(m1=x, l1=y)
        half = tree.subs({"x": 3})
        assert half.free_symbols == {y}
        assert not half.subs({y: 0.1}).free_symbols
        assert tree.subs({x: 2 * y}).free_symbols == {y}
        with pytest.raises(sd.UnknownLinkError, match="there is no symbol 'z'"):
            tree.subs({"z": 1})


class TestSmallNumbers:
    """Whether a constant is rounding depends on the other terms, not on its unit."""

    def test_small_bodies_keep_their_inertia(self):
        length, rod = sp.Symbol("L"), sd.Inertia.rod(1e-6, 1e-4)
        tree = sd.KinematicTree()
        body = sd.Inertia(rod.mass, (length / 2, 0, 0), rod.tensor)
        tree.attach(body, to="base", joint=sd.revolute("y"))
        (M,) = tree.symbolic().mass_matrix()
        assert float(M.subs(length, 1e-4)) == pytest.approx(1e-6 * 1e-8 / 3, rel=1e-14)

    def test_rounding_of_what_cancels_is_dropped(self):
        third = 0.1 + 0.2 - 0.3
        assert expressions.tidied([x * third, x, 1e-20 * y, third]) == (0, x, 1e-20 * y, third)
        assert expressions.tidied([1e-20 * x, 1e-20 * x * sp.sin(alpha)]) == (1e-20 * x, 1e-20 * x * sp.sin(alpha))
        assert expressions.tidied([sp.cos(alpha), 1e-17 * sp.sin(alpha)]) == (sp.cos(alpha), 0)


@functools.cache
def frame(axis):
    """Orientation of the working frame of a revolute joint."""
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.sphere(1, 0.1), to="base", joint=sd.revolute(axis, name="a"), name="body")
    return sp.Matrix(3, 3, tree.model.entries[0, :9].tolist())


class TestAxes:
    a, b, c = sp.symbols("a b c")

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "direction",
        [*np.eye(3), *-np.eye(3), (1e-9, 1, 0), (-1, 1e-9, 1e-9), (1e-9, -1e-9, -1), (1e-9, 0, -1), (0.6, -0.64, 0.48)],
    )
    def test_no_direction_of_a_symbolic_axis_is_singular(self, direction):
        values = dict(zip((self.a, self.b, self.c), map(float, direction), strict=True))
        given = sp.sin(self.a), self.b, self.c
        values[self.a] = float(np.arcsin(direction[0]))
        for axis in ((self.a, self.b, self.c), given):
            at = (
                dict(values)
                if axis is given
                else dict(zip((self.a, self.b, self.c), map(float, direction), strict=True))
            )
            R = np.array(frame(axis).subs(at), dtype=float)
            np.testing.assert_allclose(R.T @ R, np.eye(3), rtol=0, atol=3e-16)
            np.testing.assert_allclose(R[:, 2], direction / np.linalg.norm(direction), rtol=0, atol=3e-16)
            assert np.linalg.det(R) > 0

    @pytest.mark.parametrize(
        "axis", [(a, b, 1), (a, 1, c), (1, b, -c), (sp.Symbol("p", positive=True), b, c), (a, 1, 0)]
    )
    def test_a_component_of_known_sign_needs_no_case(self, axis):
        assert not frame(axis).has(sp.Piecewise)

    @pytest.mark.slow
    def test_what_a_symbolic_axis_moves(self):
        tree, to = sd.KinematicTree(), "base"
        for axis in ((self.a, self.b, self.c), "y"):
            body = sd.Inertia(1.5, (0.1, 0.2, 0.3), (0.3, 0.4, 0.5))
            to = tree.attach(body, to=to, joint=sd.revolute(axis, point=(0.1, 0, 0.2))).name
        sym = tree.symbolic()
        form = sym.mass_matrix()
        for direction in np.eye(3)[0], np.eye(3)[2], -np.eye(3)[2], (-0.6, 0.64, -0.48):
            at = dict(zip((self.a, self.b, self.c), map(float, direction), strict=True))
            q = np.array([0.3, -0.7])
            M = evaluated(form, at | dict(zip(sym.q, q, strict=True)), (2, 2))
            np.testing.assert_allclose(M, tree.subs(at).mass_matrix(q), rtol=0, atol=1e-15)


def test_what_is_too_long_to_be_expanded_is_left_as_it_is():
    """Expanded, the product has 4¹² terms."""
    product = sp.Mul(*(sp.Add(*sp.symbols(f"a{k}_:4")) for k in range(12)))
    assert expressions.tidied([product, x]) == (product, x)
    assert expressions.terms_when_expanded(product * (x + y) ** 2 / alpha) == 4**13


def test_what_is_too_long_to_be_read_is_left_as_it_is():
    """Multiplied out, the power has 455 terms."""
    power = sum(sp.symbols("a b c d")) ** 12
    long = sum(sp.Symbol(f"u{k}") * sp.Symbol(f"v{k}") for k in range(200))
    for expression in (power, long):
        assert shortest(expression) is expression


def test_shortest_is_equal_and_no_longer():
    rng = np.random.default_rng(0)
    a, b = sp.symbols("a b", real=True)
    terms = [x * sp.sin(a), y * sp.cos(b), sp.cos(a) * sp.cos(b), sp.sin(a) * sp.sin(b), x**2, sp.cos(a) ** 2]
    for _ in range(10):
        e = sum(int(rng.integers(-2, 3)) * terms[i] * terms[j] for i, j in rng.integers(0, 6, (4, 2)))
        short = shortest(sp.sympify(e))
        assert sp.count_ops(short) <= sp.count_ops(e)
        at = dict(zip((x, y, a, b), rng.uniform(-1, 1, 4), strict=True))
        assert float((short - e).subs(at)) == pytest.approx(0, abs=1e-12)
    assert shortest(sp.sin(a) * sp.cos(b) + sp.cos(a) * sp.sin(b)) == sp.sin(a + b)


@pytest.mark.parametrize(
    "words",
    [
        "1",
        b"1",
        ["1", 2],
        np.array(["1"]),
        np.array(["1", 2], dtype=object),
        [x, "1"],
        None,
        [1, None],
        [1j],
        np.array(1j),
        np.array([1], dtype="M8[s]"),
        np.array([1], dtype="m8[s]"),
        10**400,
        [[1], [1, 2]],
    ],
)
@pytest.mark.parametrize("read", [expressions.array, expressions.real])
def test_words_dates_and_nothing_are_no_numbers(read, words):
    with pytest.raises((TypeError, ValueError)):
        read(words)


def test_real_numbers_are_kept_if_they_are_floats():
    a = np.arange(3.0)
    assert expressions.real(a) is a
    assert expressions.array(a) is not a
    assert expressions.real([True, np.float32(2), sp.Integer(3)]).tolist() == [1, 2, 3]
    with pytest.raises(TypeError):
        expressions.real([x])


def test_a_joint_from_a_symbolic_screw():
    S = sd.revolute((0, sp.sin(alpha), sp.cos(alpha)), point=(x, 0, 0)).screw
    assert sd.Joint(S).screw.tolist() == S.tolist()
    assert sd.Joint([0, 0, 1, x, 0, 0]).free_symbols == {x}
    for wrong in ([0, 0, 2, x, 0, 0], [0, 0, 1, sp.oo, x, 0], [x, 0]):
        with pytest.raises(sd.JointError):
            sd.Joint(wrong)


def test_bodies_of_symbolic_size():
    for body in (
        sd.Inertia.rod(x, y, "y"),
        sd.Inertia.box(x, (y, y, 1)),
        sd.Inertia.cylinder(x, y, 1),
        sd.Inertia.sphere(x, y),
        sd.Inertia.planar(x, (y, 0), y),
        sd.Inertia.from_radii_of_gyration(x, (y, y, y)),
    ):
        assert body.free_symbols == {x, y}
        assert body.subs({x: 2, y: 0.5}).evaluated().mass == 2


@pytest.mark.parametrize("values", [{"m": None}, {sp.Symbol("m"): None}, {"m": "heavy"}, {"m": [1, 2]}, None, 3])
def test_what_is_no_value_is_refused(values):
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.point(sp.Symbol("m"), (1, 0, 0)), to="base", joint=sd.revolute("z"), name="a")
    with pytest.raises(sd.ShapeError, match="value"):
        tree.subs(values)
