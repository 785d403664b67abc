"""The shortest form of an expression, and what the search for it may cost."""

import sympy as sp
from sympy import cos, sin

import screwdyn as sd
from screwdyn.backends import closed_form

a, b, m, w = sp.symbols("a b m w", real=True)


def test_terms_are_grouped_as_sympy_groups_them():
    way = sp.expand((2 * m * sin(a) + 3 * w * cos(b)) * (sin(a) + m * cos(a) * cos(b) + w) + m)
    for within in (sp.factor, sp.factor_terms):
        functions = sorted(way.atoms(sin, cos), key=sp.default_sort_key)
        assert closed_form._collected(way, within) == sp.collect(way, functions, within)


def test_common_factors_are_not_searched_among_the_numbers_of_a_robot(monkeypatch):
    """SymPy's search took two thirds of the time of the contributions of the PUMA 560."""
    searches, search = [], sp.factor_terms
    monkeypatch.setattr(sp, "factor_terms", lambda *of: searches.append(of) or search(*of))
    parts = sd.robots.pelican().symbolic().contributions()
    assert len(searches) < 20
    found = sum(sp.count_ops(x) for part in parts for x in (*part.J_dot, *part.M.array, *part.C.array, *part.g.array))
    assert found <= 41  # as many as with the search
