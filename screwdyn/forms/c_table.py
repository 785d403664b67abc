"""A robot as a table for the kernels in C, and the kernels themselves: a progressive model without Python."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from os import PathLike
from pathlib import Path
from types import MappingProxyType

import numpy as np

from screwdyn.backends.c.names import identifiers
from screwdyn.core.errors import ScrewdynError, TopologyError, UnknownNameError
from screwdyn.core.types import Array
from screwdyn.forms.c_source import listed, quoted
from screwdyn.mechanism.loops import check_open
from screwdyn.physics.charts import ORIENTATION, ROW, Charts
from screwdyn.physics.model import Model
from screwdyn.physics.robot import Robot
from screwdyn.physics.table import FIRST, PARENT

__all__ = ["c_library", "c_table"]

# What follows the name of a robot in names of its table.
_TAKEN = ("base", "NQ", "NV", "TABLE_H")


def c_library(folder: str | PathLike[str]) -> None:
    """Write the kernels as a C library to a folder: ``screwdyn.c`` and ``screwdyn.h``.

    Robots for it are written by :meth:`KinematicTree.to_c_table`. Both files are C99 and C++11, use no heap and need
    ``math.h`` only; they serve any tree without closed loops and without joints that follow others.

    Parameters
    ----------
    folder : path
        An existing folder.

    Raises
    ------
    OSError
        If a file cannot be written.
    """
    from screwdyn.backends.kernels.written import text

    header = resources.files("screwdyn.backends.kernels").joinpath("screwdyn.h").read_text(encoding="utf-8")
    for name, content in {"screwdyn.h": header, "screwdyn.c": text()}.items():
        Path(folder, name).write_text(content, encoding="utf-8")


def c_table(tree: Robot, name: str, optional: Iterable[str]) -> str:
    """See :meth:`screwdyn.KinematicTree.to_c_table`."""
    if not isinstance(name, str) or identifiers([name]) != [name]:
        raise ScrewdynError(f"the name of a table must be a name in C; got {name!r}")
    whole, links = tree.model, listed(optional, "optional links")
    check_open(whole.topology, "a table in C")
    for at in whole.topology.attachments.values():
        if at.joint.mimic is not None:
            raise TopologyError(
                f"a table in C has no joints that follow others, but {at.name!r} follows {at.joint.mimic.joint!r}; "
                f"write c_source, or lock the joint in a copy of the tree"
            )
    beyond = {link: _subtree(whole, link, links) for link in links}
    if len(beyond) < len(links):
        raise ScrewdynError(f"name each optional link once; got {links!r}")
    left_out = {other for subtree in beyond.values() for other in subtree}
    robot = _Part(whole, name, [link for link in whole.placements if link not in left_out])
    parts = [robot]
    for link, suffix in zip(links, identifiers(links, _TAKEN), strict=True):
        parts.append(_Part(whole, f"{name}_{suffix}", beyond[link], robot.number))
    upper = name.upper()
    capacity = {"ROWS": len(robot.table), "GROUPS": len(robot.groups)}
    needed = [
        f"#if SCREWDYN_{what} < {count}\n#error compile all files with -DSCREWDYN_{what}={count} or more\n#endif"
        for what, count in capacity.items()
        if count
    ]
    return "\n\n".join(
        [
            _introduction(parts),
            f'#ifndef {upper}_TABLE_H\n#define {upper}_TABLE_H\n#include "screwdyn.h"',
            *needed,
            f"enum {{ {upper}_NQ = {robot.positions}, {upper}_NV = {len(robot.table)} }};",
            "#define R(x) ((screwdyn_real)(x))",
            f"static const struct screwdyn_row {name}_base = {_row(whole.table[-1])};",
            *(part.text() for part in parts),
            f"#undef R\n#endif /* {upper}_TABLE_H */\n",
        ]
    )


def _subtree(model: Model, link: str, optional: Sequence[str]) -> tuple[str, ...]:
    """An optional link and all links beyond it.

    Raises
    ------
    UnknownNameError
        If the link is not in the tree.
    TopologyError
        If it has no joint, or carries another optional link.
    """
    if link not in model.placements:
        raise UnknownNameError.of(link, model.placements)
    at = model.placements[link]
    if not at.freedoms:
        where = "is the base" if at.above is None else f"is fixed to {at.above!r}"
        raise TopologyError(
            f"optional link {link!r} {where}, so it has no row; add its inertia to the row that carries it, in C"
        )
    links = model.subtree(link)
    for other in optional:
        if other != link and other in links:
            raise TopologyError(f"optional link {other!r} is beyond optional link {link!r}; write one of them")
    return links


class _Part:
    """Rows of the joints of some links, which are attached together, counted from the first one.

    ``carrying`` are the numbers of the rows that may carry them, by row of the table of the model.
    """

    def __init__(
        self, model: Model, name: str, links: Sequence[str], carrying: Mapping[int, int] = MappingProxyType({})
    ) -> None:
        placed = [model.placements[link] for link in links]
        self.name, self.onto, self.positions = name, -1, sum(at.nq for at in placed)
        rows = [model.index[freedom] for at in placed for freedom in at.names]
        self.number = {-1: -1} | {row: k for k, row in enumerate(rows)}
        self.table = model.table[rows]
        for row in self.table:
            parent = int(row[PARENT])
            if parent not in self.number:
                self.onto = carrying[parent]
            row[PARENT], row[FIRST] = self.number.get(parent, -1), self.number[int(row[FIRST])]
        self.where = list(range(len(rows)))
        self.groups: list[list[int]] = []
        self.terms: list[list[float]] = []
        if model.charts is not None:
            self._chart(model.charts, rows)
        self.lines = [
            "",
            f"{name}:" if self.onto < 0 else f"{name}, for row {self.onto}; its coordinates are the last:",
        ]
        position = 0
        for at in placed:
            row = self.number[model.index[at.coordinate]]
            if at.joint is None or not at.names:
                self.lines.append(f"  {quoted(at.link.name)} moves with " + ("the base" if row == -1 else f"row {row}"))
                continue
            self.lines.append(
                f"  {quoted(at.link.name)} by {quoted(at.name or '')} ({at.joint.kind}): "
                f"{_listing('row {}', range(row - len(at.names) + 1, row + 1))}, "
                f"{_listing('q[{}]', range(position, position + at.nq))}"
            )
            position += at.nq

    def _chart(self, charts: Charts, rows: Sequence[int]) -> None:
        """Group joints among the rows."""
        number = self.number
        entries = {row: turns + slides for row, _, turns, slides in charts.groups.tolist()}
        at: dict[int, int] = {}
        position = 0
        for row in rows:
            at[row] = position
            position += entries.get(row, int(charts.where[row] >= 0))
        self.where = [at[row] if charts.where[row] >= 0 else -1 for row in rows]
        self.groups = [[number[g[ROW]], at[g[ROW]], *g[ORIENTATION:]] for g in charts.groups.tolist() if g[ROW] in at]
        self.terms = [[*(number[int(k)] for k in t[:3]), t[3]] for t in charts.terms.tolist() if int(t[0]) in at]

    def text(self) -> str:
        """The definition in C."""
        arrays = {
            "table": ("struct screwdyn_row {}[]", [_row(row) for row in self.table]),
            "where": ("screwdyn_integer {}[]", [", ".join(map(str, self.where))] if self.where else []),
            "group": ("screwdyn_integer {}[][4]", [f"{{{', '.join(map(str, g))}}}" for g in self.groups]),
            "term": ("screwdyn_real {}[][4]", [f"{{{', '.join(map(_real, t))}}}" for t in self.terms]),
        }
        lines, named = [], []
        for suffix, (declared, entries) in arrays.items():
            named.append(f"{suffix}_of_{self.name}" if entries else "0")
            if entries:
                body = ",\n".join(f"    {entry}" for entry in entries)
                lines.append(f"static const {declared.format(named[-1])} = {{\n{body}}};")
        counts = [self.onto, len(self.table), self.positions, len(self.groups), len(self.terms)]
        members = ", ".join([*map(str, counts), *named])
        return "\n".join([*lines, f"static const struct screwdyn_part {self.name} = {{{members}}};"])


def _real(x: float) -> str:
    """C text of a number of either precision."""
    return repr(float(x)) if x == float(np.float32(x)) else f"R({float(x)!r})"


def _row(row: Array) -> str:
    """C text of a row of a table."""
    x = [_real(value) for value in row.tolist()]
    fields = [f"{{{', '.join(x[:9])}}}", f"{{{', '.join(x[9:12])}}}", *x[12:15]]
    fields += [f"{{{', '.join(x[15:18])}}}", f"{{{', '.join(x[18:24])}}}", *x[24:]]
    return f"{{{', '.join(fields)}}}"


def _listing(text: str, numbers: range) -> str:
    """Text with one number or several in a row: row 3; q[0] to q[3]."""
    return " to ".join(text.format(k) for k in sorted({numbers[0], numbers[-1]}))


def _introduction(parts: Sequence[_Part]) -> str:
    """The comment at the beginning, with the coordinates of each part."""
    lines = ["Table of a robot for screwdyn.h; written by screwdyn. SI units and radians."]
    lines += itertools.chain(*(part.lines for part in parts))
    return "\n".join(["/*", *(f" * {line}".rstrip() for line in lines), " */"])
