"""Operation counts: the formulas of the papers, polynomials in the number n of joints, and the tables of the docs."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from numpy.polynomial import Polynomial
from numpy.testing import assert_allclose

ROOT = Path(__file__).parents[3]
n = Polynomial([0, 1])


def equal(rows, *coefficients):
    """The sum of the rows of a table is the polynomial with these coefficients, highest power first."""
    assert_allclose(np.trim_zeros(sum(rows).coef[::-1], "f"), coefficients, rtol=1e-12, atol=1e-9)


def test_fu_table_3_1_is_the_sum_of_its_rows_without_the_products_with_rates():
    """D q̈ and h_ikm q̇_k q̇_m, n² + 2 n³ multiplications, are not in the total."""
    cubic = n * (n + 1) * (n + 2)
    trace = 128 / 3 * cubic
    equal([32 * n * (n - 1), 4 * n * (9 * n - 7), trace, trace * n], 128 / 3, 512 / 3, 844 / 3, 76 / 3, 0)
    rows = [24 * n * (n - 1), n * (51 * n - 45) / 2, n * (n - 1) / 2]
    sums = n * (n - 1) * (n + 1) / 6
    equal([*rows, 65 / 2 * cubic, sums, 65 / 2 * cubic * n, sums * n], 98 / 3, 781 / 6, 637 / 3, 107 / 6, 0)


def test_fu_table_3_1_counts_more_traces_than_the_sums_have():
    """256M for a trace are four products of 4 × 4. h_ikm has n times the traces of D_ik: 336 for 266 if n = 6."""
    for joints in range(1, 13):
        pairs = sum(k * (k + 1) // 2 for k in range(1, joints + 1))
        triples = sum(m * m * (m + 1) // 2 for m in range(1, joints + 1))  # that h_ikm needs
        assert 256 * pairs == round(128 / 3 * joints * (joints + 1) * (joints + 2))
        assert 4 * triples == pairs * (3 * joints + 1)


def test_fu_table_3_4_is_the_sum_of_its_rows():
    equal([9 * n, 9 * n, 27 * n, 15 * n, 3 * n, 9 * (n - 1), 24 * n, 21 * n - 15], 117, -24)
    equal([7 * n, 9 * n, 22 * n, 14 * n, 9 * n - 6, 18 * n, 24 * n - 15], 103, -21)


def test_fu_table_3_5_differs_from_tables_3_1_and_3_4():
    """With 512/3 for 112/3 its first column lacks 35 n² − 31 n of Table 3.1, and 26 n² − 23 n additions."""
    first = Polynomial([0, 76, 844, 512, 128]) / 3 - Polynomial([0, 169, 739, 512, 128]) / 3
    equal([first], 35, -31, 0)
    second = Polynomial([0, 107 / 6, 637 / 3]) - Polynomial([0, 245 / 6, 559 / 3])
    equal([second], 26, -23, 0)


def test_two_coefficients_of_fu_table_3_5_are_misprints():
    """They give no integers: 105/12 n² of generalized d'Alembert for odd n, 112/3 n³ of Lagrange-Euler for n = 1.

    105/2 and 512/3, as in Table 3.1, give integers for every n.
    """

    def whole(denominator, *numerators):
        """Whether the polynomial of n is an integer, for n = 1 … 24."""
        return [sum(x * k**i for i, x in enumerate(numerators)) % denominator == 0 for k in range(1, 25)]

    assert whole(12, 12 * 69, 4 * 268, 105, 2 * 13) == [False, True] * 12
    assert all(whole(6, 6 * 69, 2 * 268, 3 * 105, 13))
    assert not whole(3, 0, 169, 739, 112, 128)[0]
    assert all(whole(3, 0, 169, 739, 512, 128))
    assert all(whole(3, 3 * 45, 146, 3 * 44, 4))  # additions
    assert all(whole(6, 0, 245, 2 * 559, 781, 2 * 98))


def test_bhangale_tables_1_and_2_are_the_sums_of_their_rows():
    """Eqs. 14 and 17, and the numbers that the text gives for n = 2, 3 and 6."""
    pairs = n * (n - 1) / 2
    spatial = [2 * n, 8 * n, 3 * n, 22 * n, 18 * (n - 1), 22 * pairs], [4 * n, 3 * n, 26 * n, 18 * (n - 1), 14 * pairs]
    planar = [2 * n, 4 * n, 2 * n, 7 * (n - 1), 7 * pairs], [2 * n, 2 * n, 7 * (n - 1), 4 * pairs]
    printed = (11, 42, -18), (7, 44, -18), (3.5, 11.5, -7), (2, 9, -7)
    for rows, coefficients in zip([*spatial, *planar], printed, strict=True):
        equal(rows, *coefficients)
    assert [sum(rows)(6) for rows in spatial] == [630, 498]
    assert [sum(rows)(3) for rows in (*spatial, *planar)] == [207, 177, 59, 38]
    MCI = Polynomial([4, 13, 7]), Polynomial([2, 13, 4])  # Eq. 18
    assert [(sum(rows) + c)(2) for rows, c in zip(planar, MCI, strict=True)] == [88, 63]


def test_bhangale_equation_14_lacks_parts_of_the_composite_masses():
    """24M 21A of a rotation by appendix B are more than step 5(b), 18M 18A; with all parts, Eq. 15 is less to n = 11.

    `test_rows_of_table_1` counts the same total.
    """
    M, A = 11 * n**2 + 42 * n - 18, 7 * n**2 + 44 * n - 18
    rotation = 16 + 8, 17 + 4
    assert min(rotation) > 18
    whole = M + (rotation[0] + 3) * (n - 1), A + (rotation[1] + 3 + 9) * (n - 1)
    equal([whole[0]], 11, 69, -45)
    equal([whole[1]], 7, 77, -51)
    assert [x(6) for x in whole] == [765, 663]
    walker_orin = 12 * n**2 + 56 * n - 27  # Eq. 15
    assert [k for k in range(1, 13) if walker_orin(k) < whole[0](k)] == [*range(2, 12)]
    assert all(walker_orin(k) > M(k) for k in range(1, 13))  # as the paper says of Eq. 14


def test_bhangale_equation_16_is_no_number_of_additions():
    """13.5 n² + 55.5 n − 65.5 ends in ½ for every n; the text has 753.5 and 222.5 for n = 6 and 3."""
    additions = Polynomial([-65.5, 55.5, 13.5])
    assert additions(6) == 753.5 and additions(3) == 222.5
    assert all(additions(k) % 1 == 0.5 for k in range(1, 25))


@pytest.fixture(scope="module")
def benchmark():
    return runpy.run_path(str(ROOT / "benchmarks/formulation_counts.py"))


@pytest.mark.slow
@pytest.mark.parametrize("joints", [1, 2])
def test_counts_do_not_depend_on_the_numbers_of_the_arm(benchmark, joints):
    """Numbers that differ by rounding are one: for some arms 1e-16 q̇² remains of ω · (ω × I ω) = 0."""
    assert benchmark["counts"](joints, 1) == benchmark["counts"](joints, 2)


def test_the_tables_of_the_documentation_are_those_of_the_benchmark(benchmark):
    """Rows of one and two joints, and the formulas of the papers for twelve."""
    page = (ROOT / "docs/papers/counts.md").read_text(encoding="utf-8")
    table = {n: benchmark["counts"](n) for n in (1, 2)}
    for title, columns in benchmark["tables"](table):
        lines = "\n".join(benchmark["markdown"](table, title, columns)).strip()
        assert lines in page, "run benchmarks/formulation_counts.py --joints 12, which prints the tables"
    for name in benchmark["PAPERS"]:
        assert "/".join(f"{x:.1f}".removesuffix(".0") for x in benchmark["published"](name, 12)) in page


def test_fu_s_tables_by_row_are_those_of_the_documentation(benchmark):
    page = (ROOT / "docs/papers/counts.md").read_text(encoding="utf-8")
    lines = "\n".join(benchmark["row_tables"](6)).split("\n\n")
    assert len(lines) == 6
    for title_or_table in lines:
        assert title_or_table.strip() in page, "run benchmarks/formulation_counts.py --rows --joints 6"


def test_fu_table_3_4_row_by_row(benchmark):
    """Three rows differ; the counts of vectors by hand: a rotation is 9M 6A, a cross product 6M 3A, a sum 3A."""
    here = {row: np.array(count) for row, _, count in benchmark["newton_euler_rows"]()}
    printed = {row: np.array(count) for row, count, _ in benchmark["newton_euler_rows"]()}
    rotation, product, total = np.array([[9, 6], [6, 3], [0, 3]])
    assert_allclose(here["ω̇"], rotation + np.array([2, 3]))  # z_0 q̈ and ω × z_0 q̇ = (ω_y q̇, −ω_x q̇, 0)
    assert_allclose(here["v̇"], rotation + 3 * product + 2 * total)
    assert_allclose(here["a"], 3 * product + 2 * total)
    assert_allclose(here["f"], rotation + total)
    assert_allclose(here["N"], 2 * rotation + product + total)
    assert_allclose(here["n"], rotation + 2 * product + 4 * total)
    differing = {row: tuple(here[row] - printed[row]) for row in here if (here[row] != printed[row]).any()}
    assert differing == {"ω̇": (2, 0), "v̇": (0, -1), "a": (3, 1)}
    assert tuple(sum(printed.values())) == (117, 103)


def test_fu_table_3_5_for_six_joints():
    """As printed and corrected, beside the counts of this version in the table for six joints."""
    page = (ROOT / "docs/papers/counts.md").read_text(encoding="utf-8")

    def at(*coefficients):
        return round(np.polyval(coefficients, 6))

    additions = at(98 / 3, 781 / 6, 559 / 3, 245 / 6, 0), at(4 / 3, 44, 146 / 3, 45)
    euler = [at(128 / 3, c / 3, 739 / 3, 169 / 3, 0) for c in (112, 512)]
    dalembert = [at(13 / 6, c, 268 / 3, 69) for c in (105 / 12, 105 / 2)]
    for name, label, products, total in (
        ("lagrange_euler", "Lagrange-Euler", euler, additions[0]),
        ("generalized_dalembert", "generalized d'Alembert", dalembert, additions[1]),
    ):
        (row,) = (line for line in page.splitlines() if line.startswith(f"| `{name}` |") and "Fu" in line)
        folded, written = (cell.strip() for cell in row.split("|")[2:4])
        assert f"| {label} | {products[0]}/{total} | {products[1]}/{total} | {folded} | {written} |" in page
    assert f"| Newton-Euler | {132 * 6}/{111 * 6 - 4} |" in page
