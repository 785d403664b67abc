"""Of a few ways to write an expression, the shortest: as derived, multiplied out, or as a sum of waves.

These are rearrangements of what is short enough to be read; none searches for identities as ``sympy.simplify`` does.
"""

from collections import Counter
from collections.abc import Iterator
from functools import reduce

import sympy
from sympy import Expr, cos, sin

__all__ = ["shortest"]

# Operations of an expression beyond which it is left as it is, as derived and when it is multiplied out: tenths of a
# second of work, and a third more than any formula of the papers.
_LONG, _LONG_OUT = 300, 500


def shortest(expression: Expr) -> Expr:
    """The shortest of the ways to write an expression, counted in operations; as it is, if no other is shorter."""
    if expression.is_Atom or sympy.count_ops(expression) > _LONG:
        return expression
    multiplied = sympy.expand(expression)
    if sympy.count_ops(multiplied) > _LONG_OUT:
        return expression
    waves = sympy.expand(_waves(multiplied))
    if sympy.count_ops(waves) > _LONG_OUT:
        waves = multiplied
    within = sympy.factor_terms if expression.has(sympy.Float) else sympy.factor
    ways = [expression]
    for way in dict.fromkeys((multiplied, waves)):
        functions = sorted(way.atoms(sin, cos), key=sympy.default_sort_key)
        ways += [sympy.factor_terms(way), sympy.factor_terms(sympy.collect(way, functions, within))]
        ways.append(_nested(way))
    return min(ways, key=sympy.count_ops)


def _nested(way: Expr) -> Expr:
    """A sum with the factor that most of its terms have taken out of them, and so on within and without."""
    terms = sympy.Add.make_args(way)
    counts = Counter(factor for term in terms for factor in _factors(term))
    factor = max(counts, key=lambda f: (counts[f], str(f)), default=None)
    if factor is None or counts[factor] < 2:
        return way
    taken = [term for term in terms if factor in _factors(term)]
    rest = [term for term in terms if term not in taken]
    return factor * _nested(sympy.Add(*(term / factor for term in taken))) + _nested(sympy.Add(*rest))


def _factors(term: Expr) -> set[Expr]:
    """What a product can be divided by and be the shorter for it: neither numbers nor denominators nor roots."""
    powers = (factor.as_base_exp() for factor in sympy.Mul.make_args(term))
    return {base for base, power in powers if power.is_Integer and power > 0 and not base.is_number}


def _waves(expression: Expr) -> Expr:
    """A sum of products with every product of sines and cosines turned into sines and cosines of sums."""
    terms = []
    for term in sympy.Add.make_args(expression):
        rest, waves = [], []
        for factor in sympy.Mul.make_args(term):
            base, power = factor.as_base_exp()
            if isinstance(base, sin | cos) and power.is_Integer and power > 0:
                waves += [base] * int(power)
            else:
                rest.append(factor)
        terms.append(sympy.Mul(*rest, reduce(_product, waves, sympy.Integer(1))))
    return sympy.Add(*terms)


def _product(waves: Expr, wave: Expr) -> Expr:
    """A sum of waves times one more, as a sum of waves: cos α cos β = ½ (cos(α−β) + cos(α+β)) and its like."""
    return sympy.Add(*(x for term in sympy.Add.make_args(waves) for x in _pair(term, wave)))


def _pair(term: Expr, wave: Expr) -> Iterator[Expr]:
    factor, other = term.as_coeff_Mul()
    if not isinstance(other, sin | cos):
        yield term * wave
        return
    if isinstance(other, cos) and isinstance(wave, sin):
        other, wave = wave, other
    (a,), (b,) = other.args, wave.args
    alike = isinstance(other, type(wave))
    yield factor * (cos if alike else sin)(a - b) / 2
    yield factor * (cos if alike else sin)(a + b) / (-2 if alike and isinstance(wave, sin) else 2)
