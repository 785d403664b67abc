"""Contributions of links, and the padded sum: the rules of section 2.4 of the paper."""

import functools
import operator
from itertools import pairwise

import numpy as np
import pytest
import sympy as sp
from cases import cases, close, norm, total
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from screwdyn import Inertia, KinematicTree, Link, Padded, ShapeError, UnknownLinkError, padded_sum, revolute, robots
from screwdyn.testing import random_inertia, random_pose, random_tree

ROUNDING = 1e-13


@given(cases(least=1))
def test_natural_size_is_the_path_s(case):
    tree, q, qd = case.tree, case.q, case.qd
    for part in tree.contributions(q, qd):
        on_path = {tree.graph.edges[edge]["coordinate"] for edge in pairwise(tree.path(part.link))}
        assert part.coordinates == tuple(c for c in tree.coordinates if c in on_path)
        k = len(part.coordinates)
        assert part.J.shape == part.J_dot.shape == (6, k)
        assert part.M.shape == part.C.shape == (k, k)
        assert part.g.shape == (k,)
        for named, x in zip((part.J, part.J_dot, part.M, part.C, part.g), part.arrays, strict=True):
            assert_array_equal(np.asarray(named), x)
        assert part.M.coordinates == part.C.coordinates == part.g.coordinates == part.coordinates


@given(cases(least=1))
def test_one_link_alone_is_the_same_as_among_all(case):
    tree, q, qd = case.tree, case.q, case.qd
    for part in tree.contributions(q, qd):
        alone = tree.contribution(part.link, q, qd)
        assert alone.link == part.link
        for a, b in zip(alone.arrays, part.arrays, strict=True):
            assert_array_equal(a, b)


@given(cases(least=1))
def test_mass_rate_less_twice_coriolis_is_skew_for_every_link(case):
    """Ṁ_i = J̇ᵀM̄J + JᵀM̄J̇ = C_i + C_iᵀ."""
    tree, q, qd = case.tree, case.q, case.qd
    for part in tree.contributions(q, qd):
        inertia = tree.link(part.link).inertia
        if inertia is not None:
            half = part.J.T @ inertia.com_matrix @ part.J_dot
            C = np.asarray(part.C)
            scale = norm(np.asarray(part.M)) * total(qd)
            close(C + C.T, half + half.T, scale, ROUNDING)


def test_massless_links_contribute_zeros_of_their_size():
    rng = np.random.default_rng(0)
    tree = random_tree(rng, 3, frames=0)
    tree.attach(Link("tool0"), to="link3", at=random_pose(rng))
    q, qd = rng.normal(size=(2, 3))
    part, carrier = tree.contribution("tool0", q, qd), tree.contribution("link3", q, qd)
    assert part.coordinates == carrier.coordinates
    assert not any(np.any(x) for x in part.arrays[2:])
    assert np.any(part.J)


def test_the_base_contributes_nothing():
    tree = KinematicTree(Link("base", Inertia.sphere(1, 1)))
    part = tree.contribution("base", [], [])
    assert part.coordinates == ()
    assert part.M.shape == (0, 0)
    assert tree.contributions([], []) == []


def test_attaching_changes_no_other_contribution():
    """A payload adds its own M, C and g, and does not change a bit of the other contributions."""
    rng = np.random.default_rng(1)
    tree = random_tree(rng, 6)
    q, qd = rng.normal(size=(2, 6))
    before = tree.contributions(q, qd)
    totals = [padded_sum(getattr(part, name) for part in before) for name in "MCg"]
    tree.attach(random_inertia(rng), to="link6", joint=revolute([1, 2, 3], [0.1, 0, 0]), at=random_pose(rng))
    *after, payload = tree.contributions([*q, 0.3], [*qd, 0.4])
    assert payload.link == "payload"
    for old, new in zip(before, after, strict=True):
        assert old.coordinates == new.coordinates
        for a, b in zip(old.arrays, new.arrays, strict=True):
            assert_array_equal(a, b)
    M, C = tree.mass_and_coriolis([*q, 0.3], [*qd, 0.4])
    g = tree.gravity_vector([*q, 0.3])
    for old, own, new in zip(totals, (payload.M, payload.C, payload.g), (M, C, g), strict=True):
        assert_allclose((old + own).matrix(tree.coordinates), new, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("batch", [(3,), (2, 5), (0,)])
def test_batches_keep_their_axes(batch):
    rng = np.random.default_rng(2)
    tree = random_tree(rng, 3)
    part = tree.contribution("link3", rng.normal(size=(*batch, 3)), rng.normal(size=3))
    k = len(part.coordinates)
    assert part.J.shape == (*batch, 6, k)
    assert part.M.shape == part.C.shape == (*batch, k, k)
    assert part.g.shape == (*batch, k)


def test_contributions_are_compared_by_value():
    tree = robots.pelican()
    one, other = (tree.contribution("link2", [0.1, q2], [0.3, 0.4]) for q2 in (0.2, 0.25))
    assert one == tree.contribution("link2", [0.1, 0.2], [0.3, 0.4])
    assert one != other and one != tree.contribution("link1", [0.1, 0.2], [0.3, 0.4]) and one != 1


NAMES = tuple("abcde")


@st.composite
def terms(draw, order=2, count=3):
    """Terms of integers, so that sums are exact, over any names in any order."""
    found = []
    for _ in range(count):
        names = draw(st.permutations(NAMES))[: draw(st.integers(0, 5))]
        rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        found.append(Padded(names, rng.integers(-9, 10, (len(names),) * order).astype(float), order))
    return found


def test_a_small_matrix_is_padded_with_zeros():
    one = Padded(["q1"], np.array([[1.0]]))
    two = Padded(["q1", "q2"], np.array([[10.0, 20], [30, 40]]))
    assert (one + two).coordinates == ("q1", "q2")
    assert_array_equal(one + two, [[11, 20], [30, 40]])
    assert_array_equal(two + one, [[11, 20], [30, 40]])
    assert_array_equal(Padded(["q1"], np.array([1.0]), 1) + Padded(["q2"], np.array([2.0]), 1), [1, 2])


def test_branches_overlap_only_where_they_share_coordinates():
    left = Padded(["trunk", "left"], np.ones((2, 2)))
    right = Padded(["trunk", "right"], np.ones((2, 2)))
    assert_array_equal((left + right).matrix(["trunk", "left", "right"]), [[2, 1, 1], [1, 1, 0], [1, 0, 1]])


@pytest.mark.parametrize("order", [1, 2])
@given(data=st.data())
def test_the_sum_is_associative_commutative_and_that_of_the_padded_arrays(order, data):
    a, b, c = data.draw(terms(order))
    expected = a.matrix(NAMES) + b.matrix(NAMES) + c.matrix(NAMES)
    for summed in ((a + b) + c, a + (b + c), c + b + a, padded_sum([a, b, c]), padded_sum(iter([b, c, a]))):
        assert_array_equal(summed.matrix(NAMES), expected)
        assert set(summed.coordinates) == {*a.coordinates, *b.coordinates, *c.coordinates}


@pytest.mark.parametrize("order", [1, 2])
def test_many_terms_are_added_in_one_pass_with_the_same_rounding(order, monkeypatch):
    rng = np.random.default_rng(order)
    names = [rng.permutation(NAMES)[: rng.integers(6)] for _ in range(50)]
    many = [Padded(tuple(x), rng.normal(size=(len(x),) * order), order) for x in names]
    pairwise = functools.reduce(operator.add, many)
    monkeypatch.setattr(Padded, "__add__", None)
    total = padded_sum(many)
    assert total.coordinates == pairwise.coordinates
    assert_array_equal(total, pairwise)


def test_terms_whose_batches_do_not_fit_are_refused():
    with pytest.raises(ShapeError, match=r"cannot be broadcast together: \[\(4,\), \(3,\)\]"):
        Padded(["x"], np.ones((4, 1, 1))) + Padded(["x"], np.ones((3, 1, 1)))


@given(terms(count=1))
def test_names_may_be_put_in_another_order_and_back(found):
    (term,) = found
    assert_array_equal(Padded(NAMES, term.matrix(NAMES)).matrix(NAMES), term.matrix(NAMES))
    assert_array_equal(term.matrix(term.coordinates), term)


def test_batches_of_sums_keep_their_axes():
    rng = np.random.default_rng(0)
    a, b = Padded(["x"], rng.normal(size=(4, 3, 1, 1))), Padded(["y", "x"], rng.normal(size=(4, 3, 2, 2)))
    total = a + b
    assert total.shape == (4, 3, 2, 2)
    assert_array_equal(total.array[2, 1], Padded(["x"], a.array[2, 1]) + Padded(["y", "x"], b.array[2, 1]))


def test_terms_are_not_changed():
    a, b = Padded(["x"], np.ones((1, 1))), Padded(["x"], np.ones((1, 1)))
    padded_sum([a, b, b])
    assert_array_equal(a, [[1]])
    assert_array_equal(b, [[1]])
    total = a.matrix(["x", "y"])
    total[...] = 7
    assert_array_equal(a, [[1]])


def test_asarray_gives_the_plain_array():
    a = Padded(["x"], np.array([[2.0]]))
    assert_array_equal(np.asarray(a), [[2]])
    assert np.asarray(a, dtype=np.float32).dtype == np.float32
    copy = np.array(a)
    copy[:] = 5
    assert_array_equal(a, [[2]])
    assert "x" in repr(a)


def test_no_coordinate_is_dropped_silently():
    with pytest.raises(UnknownLinkError, match="no coordinate 'elbow'; did you mean 'elbo'"):
        Padded(["elbow"], np.eye(1)).matrix(["shoulder", "elbo"])


def test_a_sum_of_nothing_and_mixed_sums_are_refused():
    with pytest.raises(ShapeError, match="no terms"):
        padded_sum([])
    with pytest.raises(ShapeError, match="vector and a matrix"):
        Padded(["x"], np.eye(1)) + Padded(["x"], np.ones(1), 1)
    for other in (1.0, np.eye(1)):
        with pytest.raises(TypeError):
            Padded(["x"], np.eye(1)) + other
        with pytest.raises(TypeError):
            other + Padded(["x"], np.eye(1))


@pytest.mark.parametrize(
    ("names", "shape", "order"),
    [(["x"], (2, 2), 2), (["x", "y"], (2,), 2), (["x", "y"], (2, 3), 2), (["x"], (), 1), (["x"], (1, 2), 1)],
)
def test_arrays_must_fit_their_names(names, shape, order):
    with pytest.raises(ShapeError, match=r"an array over x.* needs"):
        Padded(names, np.zeros(shape), order)


def test_a_name_comes_once():
    with pytest.raises(ShapeError, match="'x' is named twice"):
        Padded(["x", "x"], np.zeros((2, 2)))
    for names in (("a", "b", "b"), ["a", "b", "b"]):
        with pytest.raises(ShapeError, match=r"'b' is named twice in \('a', 'b', 'b'\)"):
            Padded(("a",), np.eye(1)).matrix(names)


@pytest.mark.parametrize("terms", [[3], [Padded(["x"], np.eye(1)), 3], [np.eye(1)], [None], "ab"])
def test_only_padded_terms_have_a_padded_sum(terms):
    with pytest.raises(ShapeError, match="the terms of a padded sum must be Padded"):
        padded_sum(terms)


@pytest.mark.parametrize("order", [1, 2])
@given(data=st.data())
def test_differences_multiples_and_sums(order, data):
    a, b, c = data.draw(terms(order))
    A, B, C = (x.matrix(NAMES) for x in (a, b, c))
    for actual, expected in (
        (a - b, A - B),
        (-a, -A),
        (2 * a, 2 * A),
        (a * np.float64(2), 2 * A),
        (np.float64(2) * a, 2 * A),
        (a / 2, A / 2),
        (sum([a, b, c]), A + B + C),
    ):
        assert_array_equal(actual.matrix(NAMES), expected)


@given(terms(), terms(1))
def test_products_go_by_name(matrices, vectors):
    (M, *_), (v, w, _) = matrices, vectors
    assert_array_equal((M @ v).matrix(NAMES), M.matrix(NAMES) @ v.matrix(NAMES))
    assert v @ w == v.matrix(NAMES) @ w.matrix(NAMES)
    numbers = np.arange(float(len(M.coordinates)))
    assert_array_equal(M @ numbers, M.array @ numbers)
    assert_array_equal(numbers @ M, numbers @ M.array)


def test_products_of_batches():
    rng = np.random.default_rng(1)
    M, v = Padded(["x", "y"], rng.normal(size=(4, 2, 2))), rng.normal(size=(4, 2))
    np.testing.assert_allclose(M @ v, (M.array @ v[..., None])[..., 0], rtol=1e-15)
    np.testing.assert_allclose(Padded(["x", "y"], v, 1) @ v, (v * v).sum(-1), rtol=1e-15)


def test_entries_are_found_by_name():
    M, g = Padded(["x", "y"], np.array([[1.0, 2], [3, 4]])), Padded(["x", "y"], np.ones((3, 2)), 1)
    assert (M["x", "y"], M["y", "x"]) == (2, 3)
    assert_array_equal(g["y"], np.ones(3))
    with pytest.raises(UnknownLinkError, match="'z'"):
        M["x", "z"]
    for names in ("x", ("x",), 0, (0, 1), ["x", "y"]):
        with pytest.raises(ShapeError, match="two names"):
            M[names]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda a: a + 1,
        lambda a: 1 + a,
        lambda a: a - np.ones((2, 2)),
        lambda a: np.ones((2, 2)) + a,
        lambda a: a * a,
        lambda a: a * np.ones(2),
        lambda a: a / a,
        lambda a: a @ a,
        lambda a: iter(a),
        lambda a: hash(a),
    ],
)
def test_what_has_no_meaning_is_a_type_error(wrong):
    with pytest.raises(TypeError):
        wrong(Padded(["x", "y"], np.ones((2, 2))))


def test_a_vector_of_another_length_is_refused():
    with pytest.raises(ShapeError, match=r"x, y has 2 entries .* got shape \(3,\)"):
        Padded(["x", "y"], np.ones((2, 2))) @ np.ones(3)


def test_equality_goes_by_name():
    a, b = Padded(["x", "y"], np.array([[1.0, 2], [3, 4]])), Padded(["y", "x"], np.array([[4.0, 3], [2, 1]]))
    assert a == b
    assert a != 2 * a and a != Padded(["x", "z"], a.array) and a != Padded(["x", "y"], np.ones(2), 1) and a != 1


class TestClosedForms:
    """‡ on matrices of SymPy: the same laws, entry by entry."""

    a, b, c, x, y = sp.symbols("a b c x y")

    def two(self, order):
        """A closed form over elbow, and one over wrist and elbow."""
        a, b, c = self.a, self.b, self.c
        if order == 1:
            return Padded(["elbow"], sp.Matrix([a]), 1), Padded(["wrist", "elbow"], sp.Matrix([b, c]), 1)
        return Padded(["elbow"], sp.Matrix([[a]])), Padded(["wrist", "elbow"], sp.Matrix([[b, c], [0, a * b]]))

    def test_sums_differences_and_multiples(self):
        (u, v), (M, N) = self.two(1), self.two(2)
        a, b, c = self.a, self.b, self.c
        assert (u + v).coordinates == (M + N).coordinates == ("elbow", "wrist")
        assert (u + v).array == sp.ImmutableMatrix([a + c, b])
        assert padded_sum([M, N]).array == sp.ImmutableMatrix([[a + a * b, 0], [c, b]])
        assert (M - N).array == sp.ImmutableMatrix([[a - a * b, 0], [-c, -b]])
        for multiple in (2 * c * N, N * c * 2, c * (N + N), N / (1 / (2 * c))):
            assert multiple.array == sp.ImmutableMatrix(2 * c * sp.Matrix([[b, c], [0, a * b]]))
        assert sum([u, v]) == u + v == v + u != u
        assert (u + v).shape == (2,) and "elbow, wrist" in repr(u + v)

    def test_order_and_padding(self):
        u, N = self.two(1)[0], self.two(2)[1]
        assert u.matrix(["wrist", "elbow"]) == sp.ImmutableMatrix([0, self.a])
        assert N.matrix(["x", "elbow", "wrist"]) == sp.ImmutableMatrix(
            [[0, 0, 0], [0, self.a * self.b, 0], [0, self.c, self.b]]
        )
        assert N["wrist", "elbow"] == self.c and u["elbow"] == self.a
        assert u["elbow"].subs(self.a, 2) == 2  # an expression, not an array
        assert np.asarray(u).shape == (1,)
        with pytest.raises(UnknownLinkError, match="no coordinate 'wirst'; did you mean 'wrist'"):
            N["wirst", "wrist"]
        with pytest.raises(ShapeError, match=r"got \(0, 1\); for integer indices use \.array"):
            N[0, 1]

    def test_products(self):
        (u, v), N = self.two(1), self.two(2)[1]
        a, b, c, x, y = self.a, self.b, self.c, self.x, self.y
        for rates in (sp.Matrix([x, y]), [x, y], Padded(["elbow", "wrist"], sp.Matrix([y, x]), 1)):
            assert (N @ rates).array == sp.ImmutableMatrix([b * x + c * y, a * b * y])
            assert v @ rates == b * x + c * y
        assert sp.Matrix([x, y]) @ v == b * x + c * y
        assert (sp.Matrix([x, y]) @ N).array == sp.ImmutableMatrix([b * x, c * x + a * b * y])
        assert (N @ np.array([1, 0])).array == sp.ImmutableMatrix([b, 0])
        assert u @ u == a**2

    def test_with_numbers(self):
        M, numbers = self.two(2)[0], Padded(["wrist", "elbow"], np.eye(2, dtype=int))
        assert (numbers + M).array == sp.ImmutableMatrix([[1, 0], [0, 1 + self.a]])
        assert (self.a * numbers).array == sp.ImmutableMatrix([[self.a, 0], [0, self.a]])
        assert isinstance(numbers.array, np.ndarray)

    def test_what_does_not_fit(self):
        (u, _), (M, _) = self.two(1), self.two(2)
        with pytest.raises(ShapeError, match=r"an array over x, y needs 2 trailing axes of 2; got shape \(1, 1\)"):
            Padded(["x", "y"], M.array)
        with pytest.raises(ShapeError, match="a closed form has no batch axes"):
            M + Padded(["x"], np.ones((3, 1, 1)))
        with pytest.raises(ShapeError, match="vector and a matrix"):
            u + M
        for other in (sp.eye(1), sp.ones(1, 1).as_immutable(), self.a):
            with pytest.raises(TypeError):
                M + other
            with pytest.raises(TypeError):
                other + M
