"""DeNOC in link frames against DeNOC in the base frame and the library, and its counts against Bhangale's tables."""

import re
from pathlib import Path

import numpy as np
import pytest
import sympy as sp
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn import formulations, robots, screw
from screwdyn.forms.requests import operations_of
from screwdyn.papers.formulations.formulation import cross
from screwdyn.papers.formulations.link_frames import Planar, Rotation, Spatial, Tally
from screwdyn.testing import random_inertia

ARMS = ("R", "P", "RP", "PR", "RRR", "PRR", "RRP", "PPR", "RPRRPR")
PAGE = Path(__file__).parents[3] / "docs/papers/bhangale.md"


def equal(actual, expected):
    assert_allclose(actual, expected, rtol=1e-11, atol=1e-11)


def spatial_arm(kinds, seed=0):
    rng, keys = np.random.default_rng(seed), ("d", "a", "alpha", "theta")
    rows = [dict(zip(keys, rng.uniform(0.2, 1.2, 4), strict=True)) for _ in kinds]
    bodies = [{"type": kind, "inertia": random_inertia(rng)} for kind in kinds]
    return sd.KinematicTree.from_dh([a | b for a, b in zip(rows, bodies, strict=True)], gravity=(1, 2, -9))


def planar_arm(kinds, seed=0):
    """Joints anywhere in the frames of the links, and frames at any angle."""
    rng, to = np.random.default_rng(seed), "base"
    tree = sd.KinematicTree(gravity=(1, -2, 0))
    for i, kind in enumerate(kinds):
        m, *com, I, x, y, angle, toward = rng.uniform(0.2, 1.2, 8)
        s, c = np.sin([angle, toward]), np.cos([angle, toward])
        joint = sd.revolute("z", (x, -y, 0)) if kind == "R" else sd.prismatic((c[1], s[1], 0))
        at = [[c[0], -s[0], 0, x], [s[0], c[0], 0, y], [0, 0, 1, 0], [0, 0, 0, 1]]
        tree.attach(sd.Link(f"link{i}", sd.Inertia.planar(m, com, I)), to=to, joint=joint, at=at)
        to = f"link{i}"
    return tree


@pytest.mark.parametrize("kinds", ARMS)
@pytest.mark.parametrize(("form", "make"), [(Spatial, spatial_arm), (Planar, planar_arm)])
def test_entry_by_entry(form, make, kinds):
    """The GIM is M, and the MCI that of the base frame; of planar arms it is the Christoffel matrix."""
    tree = make(kinds)
    tree.attach(random_inertia(np.random.default_rng(1)), to=tree.links[-1], name="welded")
    q, qd, qdd = np.random.default_rng(2).uniform(-2, 2, (3, tree.nv))
    witness = form(tree)
    equal(witness.GIM(q), tree.mass_matrix(q))
    equal(witness.MCI(q, qd), formulations.denoc(tree).MCI(q, qd))
    if form is Planar:
        equal(witness.MCI(q, qd), tree.coriolis_matrix(q, qd))
    equal(witness.gravity_vector(q), tree.gravity_vector(q))
    equal(witness.inverse_dynamics(q, qd, qdd), tree.inverse_dynamics(q, qd, qdd))


def test_closed_forms():
    """Symbols give the textbook forms of the arm of two rods, and of the arms PR and RP of the paper."""
    a, m, b, theta, v, w = symbols = sp.symbols("a m b theta v w")
    values = dict(zip(symbols, (0.7, 1.3, 0.4, 0.9, -1.1, 1.6), strict=True))

    def same(found, expected):
        difference = sp.Matrix(found) - sp.Matrix(expected)
        assert difference.free_symbols <= {*symbols}
        equal(np.array(difference.subs(values), dtype=float), 0)

    rod = sd.Inertia(m, (-a / 2, 0, 0), (0, m * a**2 / 12, m * a**2 / 12))
    tree = sd.KinematicTree.from_dh([{"a": a, "inertia": rod}, {"a": a, "inertia": rod}])
    M12 = sp.Rational(1, 3) + sp.cos(theta) / 2
    for form in (Spatial, Planar):
        M = m * a**2 * sp.Matrix([[sp.Rational(4, 3) + 2 * M12 - sp.Rational(1, 3), M12], [M12, sp.Rational(1, 3)]])
        same(form(tree).GIM([b, theta]), M)
        swing = m * a**2 * sp.sin(theta) / 2
        same(form(tree).MCI([b, theta], [v, w]) @ [v, w], [-swing * (2 * v * w + w**2), swing * v**2])
    M12 = -m * a * sp.sin(theta) / 2
    same(Planar(robots.planar_pr(a, 1, m)).GIM([b, theta]), [[m + 1, M12], [M12, m * a**2 / 3]])
    rho = b - sp.Rational(1, 2)  # from the joint to the centre of mass of a rod of length 1
    same(Planar(robots.planar_rp(0.0, 1.0, m, 1.0)).MCI([theta, b], [w, v]), m * rho * sp.Matrix([[v, w], [-w, 0]]))


# The routines of appendix B


def test_routines_against_matrices():
    rng = np.random.default_rng(3)
    theta, alpha = 0.4, 1.1
    (s, sa), (c, ca) = np.sin([theta, alpha]), np.cos([theta, alpha])
    R = np.array([[c, -s * ca, s * sa], [s, c * ca, -c * sa], [0, sa, ca]])  # Eq. A.1
    turn, X, (r, a) = Rotation(c, s, ca, sa), rng.normal(size=(3, 3)), rng.normal(size=(2, 3))
    I = X + X.T

    def full(tensor):
        i11, i12, i22, i13, i23, i33 = tensor
        return np.array([[i11, i12, i13], [i12, i22, i23], [i13, i23, i33]])

    tensor = I[0, 0], I[0, 1], I[1, 1], I[0, 2], I[1, 2], I[2, 2]
    equal(turn.vector(r), R @ r)
    equal(turn.back(r), R.T @ r)
    equal(full(turn.tensor(tensor)), R @ I @ R.T)
    equal(np.reshape(turn.matrix(X.ravel()), (3, 3)), R @ X @ R.T)
    equal(full(turn.twice_crossed(r, 2 * r)), -2 * screw.skew(r) @ screw.skew(r))
    A, m = np.block([[np.eye(3), np.zeros((3, 3))], [-screw.skew(a), np.eye(3)]]), 1.7
    M = np.block([[I, screw.skew(r)], [-screw.skew(r), m * np.eye(3)]])
    equal(full(turn.shift(tensor, r, a, r + m * a)), (A.T @ M @ A)[:3, :3])


@pytest.mark.parametrize(
    ("routine", "sizes", "expected"),
    [
        (Rotation.vector, (4, 3), (8, 4)),  # B.1
        (Rotation.tensor, (4, 6), (16, 17)),  # B.2
        (Rotation.twice_crossed, (3, 3), (6, 3)),  # B.2
        (Rotation.shift, (6, 3, 3, 3), (18, 18)),  # step 5(b)
        (cross, (3, 3), (6, 3)),
        (Rotation.matrix, (4, 9), (24, 22)),
    ],
)
def test_operations_of_the_routines(routine, sizes, expected):
    """Those of the paper, and of a routine for matrices, which it does not have."""
    tally = Tally()
    tally.begin("row")
    given = [np.full(n, tally) for n in sizes]
    routine(*(Rotation(*x) if n == 4 else x for x, n in zip(given, sizes, strict=True)))
    assert tally.rows["row"] == expected


# Tables I and II


@pytest.mark.parametrize("n", range(1, 7))
def test_rows_of_table_1(n):
    """Row 5(b) of the table is the tensor of A^T M̃ A; what is printed after it, the table leaves out."""
    rows = dict(Spatial(spatial_arm("R" * n)).operations("GIM"))
    pairs = n * (n - 1) // 2
    table = {
        "1": (2 * n, 0),
        "2": (8 * n, 4 * n),
        "3": (0, 3 * n),
        "4": (3 * n, 0),
        "5(a)": (22 * n, 26 * n),
        "5(b)": (18 * (n - 1), 18 * (n - 1)),
        "6": (22 * pairs, 14 * pairs),
    }
    missing = {"5(b) rotation": (24, 21), "5(b) first moment": (3, 3), "5(b) sum": (0, 9)}
    total = rows.pop("total")
    for row, (M, A) in missing.items():
        assert rows.pop(row, (0, 0)) == (M * (n - 1), A * (n - 1))
    assert {row: count for row, count in table.items() if row in rows} == rows
    assert total == (11 * n**2 + 69 * n - 45, 7 * n**2 + 77 * n - 51)
    assert total == (11 * n**2 + 42 * n - 18 + 27 * (n - 1), 7 * n**2 + 44 * n - 18 + 33 * (n - 1))  # Eq. 14


@pytest.mark.parametrize("n", range(1, 7))
def test_rows_of_table_2(n):
    """Rows 5 and 6 differ from the table."""
    rows = dict(Planar(planar_arm("R" * n)).operations("GIM"))
    pairs = n * (n - 1) // 2
    assert [rows[row] for row in "1234"] == [(2 * n, 0), (4 * n, 2 * n), (0, 2 * n), (2 * n, 0)]
    assert rows["5(a)"] == (2 * n, 2 * n)  # the table: nil, without m d²
    parts = [rows.get(f"5(b){part}", (0, 0)) for part in (" rotation", "", " sum")]
    assert parts == [(4 * (n - 1), 2 * (n - 1)), (6 * (n - 1), 6 * (n - 1)), (0, 3 * (n - 1))]  # the table: 7M 7A
    assert rows["6"] == (6 * pairs, 4 * pairs)  # the table: 7M 4A, one by the 1 in A_ij p_j = [1; R a_ij]
    assert rows["total"] == (3 * n**2 + 17 * n - 10, 2 * n**2 + 15 * n - 11)


@pytest.mark.parametrize("n", range(1, 6))
def test_totals_of_the_mci(n):
    """Eq. 18 has 7 n² multiplications too; Eq. 16 has 14 n², half of what the pairs take here."""
    pairs = n * (n - 1) // 2
    planar, spatial = Planar(planar_arm("R" * n)).operations("MCI"), Spatial(spatial_arm("R" * n)).operations("MCI")
    assert planar["total"] == (7 * n**2 + 27 * n - 22, 5 * n**2 + 23 * n - 21)
    if n > 1:
        assert spatial["total"] == (30 * n**2 + 179 * n - 137, 20 * n**2 + 192 * n - 156)
    for rows, each in (
        (spatial, {"ȧ": (6, 3), "X, Y rotation": (48, 44), "X, Y": (30, 54), "W M E": (27, 12), "columns": (10, 10)}),
        (planar, {"ȧ": (2, 0), "X, Y rotation": (4, 2), "X, Y": (6, 8), "W M E": (2, 0), "columns": (0, 0)}),
    ):
        for row, (M, A) in each.items():
            times = n if row in ("W M E", "columns") else n - 1
            assert rows.get(row, (0, 0)) == (M * times, A * times)
    pair = {"c_ij, i < j": ((22, 14), (6, 4)), "c_ij, i > j": ((38, 26), (8, 6))}
    for row, expected in pair.items():
        for rows, (M, A) in zip((spatial, planar), expected, strict=True):
            assert rows.get(row, (0, 0)) == (M * pairs, A * pairs)
    assert spatial["ω"] == (8 * (n - 1), n + 4 * (n - 1)) and planar["ω"] == (0, n)


# The arms of Tables III and V

FORMS = {"RTX": (Spatial, robots.rtx), "Stanford": (Spatial, robots.stanford)}
FORMS |= {"RP": (Planar, robots.planar_rp), "PR": (Planar, robots.planar_pr)}


@pytest.mark.parametrize("name", FORMS)
def test_the_counts_of_the_arms_beside_the_paper(name):
    """The table of docs/papers/bhangale.md; its last columns leave out operations with zeros and on constants."""
    form, make = FORMS[name]
    witness = form(make())
    n = len(witness.rows)
    found = []
    for matrix, states in (("GIM", {"q": n}), ("MCI", {"q": n, "qd": n})):
        M, A = witness.operations(matrix)["total"]
        folded = operations_of(getattr(witness, matrix), **states)
        found += [f"{M}/{A}", f"{folded['mul']}/{folded['add']}"]
    (row,) = re.findall(rf"^\| {name} \|(.*)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    cells = [cell.strip() for cell in row.split("|")]
    assert cells[1:3] + cells[4:] == found


@pytest.mark.parametrize(("name", "expected"), [("RTX", (172, 144)), ("Stanford", (176, 147))])
def test_without_the_parts_that_table_1_lacks(name, expected):
    form, make = FORMS[name]
    rows = form(make()).operations("GIM")
    kept = [count for row, count in rows.items() if row != "total" and not row.startswith("5(b) ")]
    assert tuple(np.sum(kept, axis=0)) == expected


def test_12m_6a_are_the_vectors_of_one_revolute_link():
    """What Table III has for RP: rows 1 to 4 of one revolute link, and one rotation of a vector."""
    rows = Planar(robots.planar_pr()).operations("GIM")
    parts = [rows[row] for row in ("1", "2", "3", "4", "5(b) rotation")]
    assert (sum(M for M, _ in parts), sum(A for _, A in parts)) == (12, 6)


# What is refused


def test_arms_that_are_not_covered_are_named():
    branched = spatial_arm("RR")
    branched.attach(sd.Link("hand"), to="link1", joint=sd.revolute(name="wrist"))
    modified = sd.KinematicTree.from_dh([{"alpha": 0.3}, {"alpha": 0.4, "joint": "elbow"}], "modified")
    screwed = spatial_arm("RR")
    screwed.attach(sd.Link("nut"), to="link2", joint=sd.helical("z", 0.1, name="thread"))
    for form, tree, message in (
        (Spatial, branched, "Spatial is for serial arms; 'hand' begins a branch: Bhangale, section 2"),
        (Spatial, modified, "as KinematicTree.from_dh makes them; those of 'link1', 'link2' are others"),
        (Spatial, screwed, "Spatial covers joints with revolute and prismatic axes; 'thread' is helical"),
        (Planar, robots.stanford(), "needs joints about z .* those of 'link1', 'link2', 'link3' are others"),
    ):
        with pytest.raises(sd.ScrewdynError, match=message):
            form(tree)


def test_wrong_arguments():
    witness = Spatial(robots.rtx())
    with pytest.raises(sd.UnknownNameError, match="did you mean 'MCI'"):
        witness.operations("MCL")
    for call in (witness.GIM, Planar(robots.planar_rp()).GIM):
        with pytest.raises(sd.ShapeError, match=r"^theta "):
            call([1.0, np.nan, 2.0])
