"""A tape as C99 statements: a sequence of ``const double``; all inputs are read before any output is written.

A result that is used once is inlined into the expression that uses it, with parentheses that keep the order of
operations of the tape, so that the compiled code rounds in the same way.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence

from screwdyn.backends.tape.tape import Recorded, Scalar, Tape
from screwdyn.core.errors import ScrewdynError

__all__ = ["number", "statements"]

_LONGEST = 44  # largest number of characters of an inlined expression; keeps lines below 120
_STRENGTH = {"+": 1, "-": 1, "*": 2, "/": 2}


def number(value: float) -> str:
    """C text of a double, with all its digits.

    Raises
    ------
    ScrewdynError
        If it is not finite.
    """
    if not math.isfinite(value):
        raise ScrewdynError(f"a constant of the robot is {value}, which is not finite; rescale the model")
    return repr(float(value))


def statements(tape: Tape, outputs: Mapping[str, Sequence[Scalar]], read: Callable[[Hashable], str]) -> list[str]:
    """C statements that compute some arrays.

    Parameters
    ----------
    tape : Tape
    outputs : mapping
        For each output array of doubles, its scalars.
    read : callable
        Returns the C expression for the name of an input of the tape.

    Returns
    -------
    list of str
        Statements without indentation. All inputs are read first and all outputs written last, so an output may alias
        an input.
    """
    scalars = [x for array in outputs.values() for x in array]
    live = tape.live(scalars)
    # Outputs are not inlined: no argument may be read after the first output is written.
    uses = dict.fromkeys(live, 0)
    for at in live:
        for operand in tape.nodes[at].operands:
            uses[operand] += 1
    written = {x.node for x in scalars if isinstance(x, Recorded)}
    text: dict[int, tuple[str, int]] = {}
    inputs, lines = [], []
    for at in live:
        op, a, b = tape.nodes[at]
        if op == "constant":
            text[at] = number(a), 3
            continue
        if op == "input":
            inputs.append(f"const double x{at} = {read(a)};")
            text[at] = f"x{at}", 3
            continue
        if b is None:
            expression, strength = f"{op}({text[a][0]})", 3
        else:
            strength = _STRENGTH[op]
            expression = f"{_operand(text[a], strength)} {op} {_operand(text[b], strength + 1)}"
        if uses[at] == 1 and at not in written and len(expression) <= _LONGEST:
            text[at] = expression, strength
        else:
            lines.append(f"const double x{at} = {expression};")
            text[at] = f"x{at}", 3
    for name, array in outputs.items():
        for i, x in enumerate(array):
            value = ("-" if x.minus else "") + text[x.node][0] if isinstance(x, Recorded) else number(x)
            lines.append(f"{name}[{i}] = {value};")
    return inputs + lines


def _operand(text: tuple[str, int], strength: int) -> str:
    """An operand, in parentheses if its operation has lower precedence than the enclosing one."""
    expression, own = text
    return expression if own >= strength else f"({expression})"
