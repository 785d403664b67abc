"""The shortest of several forms of an expression: as derived, multiplied out, or a sum of sines and cosines.

All forms are rearrangements; there is no search for identities as in ``sympy.simplify``.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

import sympy
from sympy import Expr, cos, sin

from screwdyn.core.expressions import without_rounding

__all__ = ["shortest"]

Angle: TypeAlias = frozenset[tuple[Expr, Expr]]

# Expressions with more terms or operations than this, multiplied out, are not shortened, which would take more than
# tenths of a second; the longest formula of the papers has three quarters of these numbers.
_MANY_TERMS, _LONG = 150, 500


def shortest(expression: Expr, rates: Collection[sympy.Symbol] = ()) -> Expr:
    """The form of an expression with the fewest operations; the expression itself if no other form has fewer.

    Parameters
    ----------
    expression : Expr
        All terms must have the same physical dimension: coefficients that are rounding relative to others are dropped.
    rates : collection of Symbol
        Symbols such as velocities in which the expression is a polynomial. Each coefficient is also shortened
        separately, so that inverse dynamics becomes a sum of mass matrix, Christoffel symbols and gravity.
    """
    if expression.is_Atom:
        return expression
    multiplied = sympy.expand(expression)
    if len(sympy.Add.make_args(multiplied)) > _MANY_TERMS:
        return expression
    (multiplied,) = without_rounding([multiplied])
    coefficients: dict[Expr, list[Expr]] = {}
    for term in sympy.Add.make_args(multiplied):
        coefficient, monomial = term.as_independent(*rates, as_Add=False)
        coefficients.setdefault(monomial, []).append(coefficient)
    if len(coefficients) > 1:
        short = {monomial: _shortest(sympy.Add(*of)) for monomial, of in coefficients.items()}
        collected = sympy.Add(*(monomial * coefficient for monomial, coefficient in short.items()))
        ways = [expression, collected, sympy.factor_terms(collected), _nested(collected)]
        expression = min(ways, key=sympy.count_ops)
    return min(expression, _shortest(multiplied, rates), key=sympy.count_ops)


def _shortest(multiplied: Expr, rates: Collection[sympy.Symbol] = ()) -> Expr:
    """The form with the fewest operations of an expression that is multiplied out."""
    if multiplied.is_Atom or sympy.count_ops(multiplied) > _LONG:
        return multiplied
    within = sympy.factor_terms if multiplied.has(sympy.Float) else sympy.factor
    angles = set().union(rates, *(wave.free_symbols for wave in multiplied.atoms(sin, cos)))
    # Numbers of a robot have no common factors, for which SymPy would search the longest.
    parameters = within is sympy.factor or not multiplied.free_symbols <= angles
    ways = [multiplied]
    for way in dict.fromkeys((multiplied, _waves(multiplied))):
        if way.is_Add and parameters:
            ways += [sympy.factor_terms(way), sympy.factor_terms(_collected(way, within))]
        ways.append(_nested(way))
    return min(ways, key=sympy.count_ops)


def _collected(way: Expr, within: Callable[[Expr], Expr]) -> Expr:
    """A sum, grouped by the power of the first sine or cosine of each term; each coefficient is rewritten ``within``.

    ``sympy.collect`` does the same with any pattern, in ten times the time.
    """
    functions = sorted(way.atoms(sin, cos), key=sympy.default_sort_key)
    groups: dict[Expr, list[Expr]] = {}
    for term in sympy.Add.make_args(way):
        powers = term.as_powers_dict()
        first = next((f ** powers[f] for f in functions if f in powers), sympy.S.One)
        groups.setdefault(first, []).append(term / first)
    return sympy.Add(*(first * within(sympy.Add(*terms)) for first, terms in groups.items()))


def _nested(way: Expr) -> Expr:
    """Horner's scheme for several variables: factor out the most frequent factor, then treat both parts likewise."""
    terms = sympy.Add.make_args(way)
    counts = Counter(factor for term in terms for factor in _factors(term))
    factor = max(counts, key=lambda f: (counts[f], str(f)), default=None)
    if factor is None or counts[factor] < 2:
        return way
    taken = [term for term in terms if factor in _factors(term)]
    rest = [term for term in terms if term not in taken]
    return factor * _nested(sympy.Add(*(term / factor for term in taken))) + _nested(sympy.Add(*rest))


def _factors(term: Expr) -> set[Expr]:
    """Factors of a product that can be factored out, without numbers, denominators and roots."""
    powers = (factor.as_base_exp() for factor in sympy.Mul.make_args(term))
    return {base for base, power in powers if power.is_Integer and power > 0 and not base.is_number}


def _waves(expression: Expr) -> Expr:
    """An expression with products of sines and cosines replaced by sines and cosines of sums of angles.

    cos α cos β = ½ (cos(α+β) + cos(α−β)), and likewise for sines and for more factors. The expression itself if the
    result has more terms.
    """
    terms = sympy.Add.make_args(expression)
    sums: dict[tuple[Expr, bool, Angle], Expr] = {}
    for term in terms:
        coefficient, factors = term.as_coeff_Mul()
        rest: list[Expr] = []
        angles: list[tuple[bool, Mapping[Expr, Expr]]] = []
        for factor in sympy.Mul.make_args(factors):
            base, power = factor.as_base_exp()
            if isinstance(base, sin | cos) and power.is_Integer and power > 0:
                angles += [(isinstance(base, sin), base.args[0].as_coefficients_dict())] * int(power)
            else:
                rest.append(factor)
        others, sines = sympy.Mul(*rest), sum(odd for odd, _ in angles)
        # The product is a mean over all signs of the angles but the first.
        choices = list(itertools.product(*[(1, -1)] * (len(angles) - 1))) if angles else [()]
        coefficient *= sympy.Rational((-1) ** (sines // 2), len(choices))
        for choice in choices:
            signs = (1, *choice)
            total: Counter[Expr] = Counter()
            for sign, (_, angle) in zip(signs, angles, strict=False):
                total.update({x: sign * times for x, times in angle.items()})
            minus = math.prod(sign for sign, (odd, _) in zip(signs, angles, strict=False) if odd)
            first = min((x for x in total if total[x]), key=str, default=None)
            turn = -1 if first is not None and total[first] < 0 else 1
            key = others, sines % 2 == 1, frozenset((x, turn * n) for x, n in total.items() if n)
            sums[key] = sums.get(key, 0) + coefficient * minus * (turn if sines % 2 else 1)
    written = (
        n * others * (sin if odd else cos)(sympy.Add(*(times * x for x, times in angle)))
        for (others, odd, angle), n in sums.items()
    )
    (waves,) = without_rounding([sympy.Add(*written)])
    return waves if len(sympy.Add.make_args(waves)) <= len(terms) else expression
