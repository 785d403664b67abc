"""Laws and observers as functions of C: their formulas are called with traced scalars. docs/c_controller.md."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from textwrap import wrap
from typing import Any

import numpy as np

from screwdyn.backends.c import number
from screwdyn.backends.tape.tape import Node, Recorded, Tape
from screwdyn.backends.tape.trace import Scalars, scalars, solved, tangent
from screwdyn.core.types import Array
from screwdyn.forms.c_source import STATE, Written, _Source, present
from screwdyn.forms.requests import Request
from screwdyn.mechanism.topology import check_open
from screwdyn.physics.model import Robot
from screwdyn.physics.quantities import CATALOGUE, Quantity, Result


def request(part: Any, tree: Robot, given: Sequence[str], result: Result, *kept: str) -> Written:
    """The function of a law or an observer, recorded by its ``_recorded``, with what it keeps between calls."""
    check_open(tree.topology, f"C source of {type(part).__name__}")
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(part).__name__).lower()
    results = result, *(Result(f"{STATE}->{member}", (), "") for member in kept)

    def record(source: _Source, tape: Tape) -> Any:
        return part._recorded(TracedState(tree, source, tape))

    return Written(Quantity(name, tuple(given), record, results, doc=f"{type(part).__name__} of this robot"))


class TracedState:
    """A state of arguments of a function in C, and its tree, whose quantities are traced."""

    def __init__(self, tree: Robot, source: _Source, tape: Tape) -> None:
        self.tree, self._tree, self._source, self._tape = self, tree, source, tape
        self.single = source.single
        self.q, self.qd = self.inputs("q", tree.nq), self.inputs("qd", tree.nv)
        self.present = np.array([present(tape, needs) for needs in source.freedom_needs], dtype=object)
        self._recorded: dict[Request, tuple[Tape, Scalars]] = {}

    def __getattr__(self, name: str) -> Any:
        return partial(self._quantity, name) if name in CATALOGUE else getattr(self._tree, name)

    def inputs(self, name: str, count: int) -> Scalars:
        """The entries of an argument."""
        return np.array([self._tape.input((name, k)) for k in range(count)], dtype=object)

    def kept(self, member: str, count: int) -> Scalars:
        """What the last call has kept."""
        return self.inputs(f"{STATE}->{member}", count)

    def numbers(self, values: Any) -> Scalars:
        """Numbers of the robot, which may have symbols."""
        return scalars(self._tape, values)

    @property
    def dt(self) -> Recorded:
        """The time since the last call."""
        return self._tape.input(("dt", 0))

    def has(self, link: str) -> Any:
        """1 if a link is present, 0 otherwise."""
        return present(self._tape, self._source.needs[link])

    @property
    def bits(self) -> Scalars:
        """1, and whether each optional link is present."""
        return np.array([1.0, *map(self.has, self._source.optional)], dtype=object)

    def along(self, parts: Iterable[tuple[Array, Array]]) -> tuple[Scalars, Scalars, Recorded]:
        """The rows of a table before and after the present time, and this time, within the table.

        ``parts`` have rows that begin with their time, and which freedoms are present in them. Those of the present
        freedoms serve, at the nearest time; if there are none, the time is NaN.
        """
        rows, search = list[Array](), list[str]()
        for has, part in parts:
            each = [*zip(self._source.freedom_needs, has, strict=True)]
            wanted = dict(each)
            if all(wanted[needs] == x and (needs or x) for needs, x in each):
                asked = [f"(carried & {k:#x}ul) {'=!'[not x]}= {k:#x}ul" for k, x in wanted.items() if k]
                search += [f"if ({' && '.join(asked)})"] if asked else []
                search += [_NEAREST.format(first=len(rows), end=len(rows) + len(part) - 1)]
                rows += [*part]
        width, text = len(rows[0]), ("{" + ", ".join(map(number, row)) + "}" for row in rows)
        table = [line for row in text for line in wrap(f"{row},", 110)]
        self._source.before += [
            f"static const double rows[{len(rows)}][{width}] = {{",
            *(f"    {line}" for line in table),
            "};",
            *("const double *before = rows[0], *after = rows[1];", "double nearest = 0.0, now;", "int row, found = 0;"),
            *(line for part in search for line in part.splitlines()),
            "now = !found ? NAN : t < before[0] ? before[0] : t > after[0] ? after[0] : t;",
        ]
        return self.inputs("before", width), self.inputs("after", width), self._tape.input(("now", 0))

    def joint_force(self, q: Any, qd: Any) -> Array:
        """Own forces of the joints."""
        return self._tree.model.joint_forces.smoothed_force(q, qd)

    def host(self, law: Any) -> Any:
        """A copy of a law for traced scalars."""
        law = copy.copy(law)
        law._arithmetic = law._arithmetic._replace(
            solve=solved, slopes=self._slopes, bounded=bounded, clamped=bounded, sqrt=self._sqrt
        )
        return law

    def _quantity(self, name: str, *given: Any) -> Scalars:
        """A quantity for some arguments, which its tape gets in place of its inputs."""
        entry = CATALOGUE[name]
        link, at = (given[0], given[1:]) if entry.parameters else (None, given)
        asked = Request(entry, link)
        if asked not in self._recorded:
            own = Tape()
            self._recorded[asked] = own, self._source.results(own, asked)[0]
        own, found = self._recorded[asked]
        arguments = dict(zip(entry.arguments, at, strict=True))
        values = {
            node.a: arguments[node.a[0]][node.a[1]] if node.a[0] in arguments else self._tape.input(node.a)
            for node in own.nodes
            if node.op == "input"
        }
        traced = own.evaluate(found.ravel().tolist(), values)
        result: Scalars = np.array(traced, dtype=object).reshape(found.shape)
        if link is None and "qdd" in entry.arguments[-1]:  # M is regular: freedoms that are left out have a mass of 1
            result += (1.0 - self.present) * at[-1]
        return result

    def _slopes(self, force: Callable[[Scalars], Scalars], at: Scalars, value: Scalars, rows: Array) -> Scalars:
        """As ``_slopes`` of laws, by differentiation, which rounds less in ``float``."""
        names = [("slope", int(k)) for k in rows]
        at = at.copy()
        at[rows] = [self._tape.input(name) for name in names]
        found = force(at)[rows].tolist()
        return np.array([tangent(self._tape, found, {name: 1.0}) for name in names], dtype=object)

    def _sqrt(self, x: Any) -> Any:
        """The root of a scalar, whose sign is made a part of it."""
        if not isinstance(x, Recorded):
            return math.sqrt(x)
        zero = self._tape.constant(0.0)
        return Recorded(self._tape, self._tape.position(Node("-", zero.node, x.node))).sqrt() if x.minus else x.sqrt()


# For least squares: what is added to a unit diagonal, in double and in float, and the number of iterations.
_REGULAR, _ITERATIONS = (1e-10, 1e-4), 5
# The rows between which the time is, or to which it is nearest.
_NEAREST = """\
    for (row = {first}; row < {end}; row++) {{
        const double early = rows[row][0] - t, late = t - rows[row + 1][0];
        const double away = early > 0.0 ? early : late > 0.0 ? late : 0.0;
        if (!found || away < nearest) {{
            found = 1;
            nearest = away;
            before = rows[row];
            after = rows[row + 1];
        }}
    }}"""


def positive(x: Any) -> Any:
    """1 if x > 0, 0 otherwise."""
    return x.positive() if isinstance(x, Recorded) else float(x > 0.0)


def chosen(which: Any, one: Any, other: Any) -> Any:
    """The one where a scalar is 1, the other where it is 0; exact."""
    return one * which + other * (1.0 - which)


def least_squares(information: Scalars, b: Scalars, single: bool) -> Scalars:
    """The solution of least norm, with unit diagonal, of a system that may not determine it.

    Iterated regularisation, without branches: what the system determines converges, all else stays near zero.
    """
    diagonal = information.diagonal()
    known = np.array([positive(x) for x in diagonal], dtype=object)
    size = np.array([chosen(yes, x, 1.0).sqrt() for yes, x in zip(known, diagonal, strict=True)], dtype=object)
    unit, b = information / size[:, None] / size, b / size
    regular, x = unit + _REGULAR[single] * np.eye(len(b)), np.zeros(len(b))
    for _ in range(_ITERATIONS):
        x = x + solved(regular, b - unit @ x)
    found: Scalars = x / size
    return found


def bounded(x: Any, lower: Any, upper: Any) -> Any:
    """X within bounds, which may be infinite; NaN stays."""
    if isinstance(x, np.ndarray):
        return np.array([bounded(*each) for each in zip(x, lower, upper, strict=True)], dtype=object)
    for bound, sign in ((upper, 1.0), (lower, -1.0)):
        if np.isfinite(bound):
            x = chosen(positive(sign * (x - bound)), bound, x)
    return x
