"""Values of SymPy expressions for tests of closed forms, in a tenth of the time of ``lambdify``."""

import math
import operator

import numpy as np
import sympy as sp
from sympy.functions.elementary.piecewise import ExprCondPair

OPERATIONS = {
    sp.Add: lambda *terms: math.fsum(terms),
    sp.Mul: lambda *factors: math.prod(factors),
    sp.Pow: pow,
    sp.sin: math.sin,
    sp.cos: math.cos,
    sp.Piecewise: lambda *cases: next(value for value, holds in cases if holds),
    ExprCondPair: lambda value, holds: (value, holds),
    sp.GreaterThan: operator.ge,
}


def evaluated(form, at, shape=()):
    """Numbers of an expression, a matrix, or a matrix over intermediates, where symbols have the values ``at``."""
    intermediates, matrix = form if isinstance(form, tuple) else ([], form)
    matrix = getattr(matrix, "array", matrix)
    known = {sp.true: True, **at}
    for name, expression in intermediates:
        known[name] = _number(expression, known)
    entries = list(matrix) if isinstance(matrix, sp.MatrixBase) else [matrix]
    return np.array([_number(entry, known) for entry in entries], dtype=float).reshape(shape)


def _number(expression, known):
    """The value of an expression; values of its parts are cached."""
    if expression not in known:
        parts = [_number(x, known) for x in expression.args]
        known[expression] = OPERATIONS[expression.func](*parts) if parts else float(expression)
    return known[expression]
