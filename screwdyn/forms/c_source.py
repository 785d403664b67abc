"""A tree's functions as C99 source: one text that is header and implementation at once."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from zlib import crc32

import numpy as np

from screwdyn.backends.c.statements import number, statements
from screwdyn.backends.tape.tape import Tape
from screwdyn.backends.tape.trace import FUNCTIONS
from screwdyn.core import expressions
from screwdyn.core.errors import ScrewdynError, UnknownLinkError
from screwdyn.forms.operation_count import known_function, scalar, scalar_table, written_out
from screwdyn.forms.tree_forms import Forms
from screwdyn.physics.table import MASS, PARENT

__all__ = ["c_source"]

# For each function the name of its result in C, the shape of that in coordinates, and what it is.
_RESULTS = {
    "mass_matrix": ("M", 2, "Mass matrix M(q), symmetric: kg m^2, kg m or kg"),
    "coriolis_matrix": ("C", 2, "Coriolis matrix C(q, qd), with dM/dt = C + C^T"),
    "gravity_vector": ("g", 1, "Forces of the joints that hold the robot still, g(q)"),
    "bias_force": ("bias", 1, "C(q, qd) qd + g(q)"),
    "inverse_dynamics": ("force", 1, "Forces of the joints for an acceleration: M qdd + C qd + g"),
    "forward_dynamics": ("acceleration", 1, "Acceleration under forces of the joints: M^-1 (tau - C qd - g)"),
}
_ARGUMENTS = {
    "q": "positions, rad or m",
    "qd": "rates, rad/s or m/s",
    "qdd": "accelerations, rad/s^2 or m/s^2",
    "tau": "forces of the joints, N m or N",
}
_STRUCT = "values"  # the argument that holds the values of the robot's symbols
_MOST_OPTIONAL = 32  # what unsigned long has at least


def c_source(
    tree: Forms, functions: Iterable[str | Sequence[str]], prefix: str = "", optional: Iterable[str] = ()
) -> str:
    """See :meth:`screwdyn.Forms.c_source`."""
    groups = [_listed(group, "a group of functions") for group in _listed(functions, "functions")]
    for group in groups:
        for name in group:
            known_function(name)
        if len(set(group)) < len(group) or not group:
            raise ScrewdynError(f"name each function of a group once; got {group!r}")
    if not groups or len(set(groups)) < len(groups):
        raise ScrewdynError(f"name at least one function to write out, and each once; known: {', '.join(FUNCTIONS)}")
    if not isinstance(prefix, str) or not re.fullmatch(r"([A-Za-z_][A-Za-z0-9_]*)?", prefix):
        raise ScrewdynError(f"a prefix must be the beginning of a C name; got {prefix!r}")
    if not tree.nv:
        raise ScrewdynError("the tree has no coordinates, so there is nothing to compute; attach a link by a joint")
    links = _listed(optional, "optional links")
    for link in links:
        if link not in tree.links:
            raise UnknownLinkError.of(link, tree.links)
    return _Source(tree, prefix, links).text(groups)


def _listed(names: Any, what: str) -> tuple[Any, ...]:
    """Several names, or a single one, as a tuple."""
    if not isinstance(names, Iterable):
        raise ScrewdynError(f"{what} are given by their names, as strings; got {names!r}")
    return (names,) if isinstance(names, str) else tuple(names)


class _Source:
    """What the functions of one text have in common."""

    def __init__(self, tree: Forms, prefix: str, optional: tuple[str, ...]) -> None:
        self.tree, self.prefix, self.optional = tree, prefix, optional
        for link in optional:
            if tree.parent(link) is None:
                raise ScrewdynError(f"{link!r} is the base, which cannot be left out")
        if len(set(optional)) < len(optional) or len(optional) > _MOST_OPTIONAL:
            raise ScrewdynError(f"name at most {_MOST_OPTIONAL} optional links, each once; got {optional!r}")
        bit = {link: 1 << i for i, link in enumerate(optional)}
        # Bits that must be set for a link to be there: its own and those of all that it hangs on.
        self.needs = {link: sum(bit.get(above, 0) for above in tree.path(link)) for link in tree.links}
        model = tree.model
        self.row_needs = [0] * model.nv
        for link, at in model.placements.items():
            if at.freedoms:
                self.row_needs[model.index[at.coordinate]] = self.needs[link]
        self.members: dict[Any, str] = {}
        if model.ready is None:
            from screwdyn.backends.c.parameters import member_names

            symbols = expressions.free_symbols([x for row in model.rows for x in row] + [model.gravity])
            self.members = member_names(sorted(symbols, key=str), [macro for macro, _ in self.macros()])

    # What is computed

    def outputs(self, tape: Tape, function: str) -> list[Any]:
        """A function row by row; a freedom that is left out has an inertia of its own, to divide by."""
        model = self.tree.model
        table = scalar_table(model, tape)
        optional = np.full((model.nv, PARENT - MASS), 0.0, dtype=object)
        for row in {model.index[at.coordinate] for link, at in model.placements.items() if self.needs[link]} - {-1}:
            table[row, MASS:PARENT] = 0.0
            for link, at in model.placements.items():
                if model.index[at.coordinate] != row:
                    continue
                body = np.array([scalar(tape, x) for x in at.body], dtype=object)
                if self.needs[link]:
                    optional[row] += body * self.present(tape, self.needs[link])
                else:
                    table[row, MASS:PARENT] += body
        absent = [tape.input(("absent", needs)) if needs else 0.0 for needs in self.row_needs]
        scalars = written_out(model, tape, table, function, optional, absent)
        if function == "forward_dynamics":
            return [self.present(tape, needs) * x for needs, x in zip(self.row_needs, scalars, strict=True)]
        return scalars

    @staticmethod
    def present(tape: Tape, needs: int) -> Any:
        return tape.input(("present", needs)) if needs else 1.0

    # The text

    def text(self, groups: Sequence[tuple[str, ...]]) -> str:
        upper = self.prefix.upper()
        hidden = f"{upper or 'SCREWDYN_'}DECLARATIONS_ONLY"
        declared = [
            "\n".join(f"#define {macro} {value}" for macro, value in self.macros()),
            *([self.struct()] if self.members else []),
            '#ifdef __cplusplus\nextern "C" {\n#endif',
            *(f"{self.comment(group)}\n{self.signature(group)};" for group in groups),
            "#ifdef __cplusplus\n}\n#endif",
        ]
        defined = [f"{self.signature(group)}\n{{\n{self.body(group)}\n}}" for group in groups]
        # Guards are the text's own: another text with the same names must clash with this one, not vanish behind it.
        own = f"{upper or 'SCREWDYN_'}DYNAMICS_{crc32(''.join(declared + defined).encode()):08X}"
        parts = [
            self.introduction(hidden),
            f"#ifndef {own}_H\n#define {own}_H",
            *declared,
            f"#endif /* {own}_H */",
            f"#if !defined({hidden}) && !defined({own}_C)\n#define {own}_C\n\n#include <math.h>",
            *defined,
            f"#endif /* {own}_C */\n",
        ]
        return "\n\n".join(parts)

    def introduction(self, hidden: str) -> str:
        model = self.tree.model
        lines = [
            "Dynamics of a robot, M(q) qdd + C(q, qd) qd + g(q) = tau; written by screwdyn.",
            "",
            "C99, needs math.h only; no heap, no state: every function may be called from several threads, and an",
            "argument may be both input and output. SI units and radians. Matrices are stored row by row.",
            f"Gravity, in the base frame: ({', '.join(_gravity(x) for x in model.gravity.tolist())}) m/s^2.",
            "",
            "Coordinates, in this order:",
        ]
        joints = [at.joint for at in model.placements.values() if at.freedoms]
        for i, (name, joint) in enumerate(zip(model.coordinates, joints, strict=True)):
            kind = joint.kind if joint is not None else ""
            lines.append(f"  [{i}] {_quoted(name)}, {kind}, {'m' if kind == 'prismatic' else 'rad'}")
        if self.optional:
            macro = f"{self.prefix.upper()}CARRIES_ALL"
            lines += [
                "",
                "Links that may be left out, with all that hangs on them; `carried` is the sum of the bits of those",
                f"that are there ({macro}: all). Left out, they weigh nothing: rows and columns of M and C, entries of",
                "forces and of acceleration that belong to their own coordinates are zero, the rest is as if they had",
                "never been attached. What is given for their coordinates must be finite all the same.",
            ]
            bits = zip(self.bit_names(), self.optional, strict=True)
            lines += [f"  {macro}: {_quoted(link)}" for macro, link in bits]
        lines += ["", f"Compile this text as it is; to include it elsewhere, define {hidden} first."]
        return "\n".join(["/*", *(f" * {line}".rstrip() for line in lines), " */"])

    def macros(self) -> list[tuple[str, str]]:
        upper = self.prefix.upper()
        macros = [(f"{upper}NV", str(self.tree.nv))]
        macros += [(macro, f"(1ul << {i})") for i, macro in enumerate(self.bit_names())]
        if self.optional:
            macros.append((f"{upper}CARRIES_ALL", f"{hex((1 << len(self.optional)) - 1)}ul"))
        return macros

    def struct(self) -> str:
        """The type that holds the values of the robot's symbols."""
        lines = ["/* Values of the symbols that stand in the robot's numbers, in SI units and radians. */"]
        lines += ["typedef struct {"]
        for symbol, member in self.members.items():
            lines.append(f"    double {member};" + (f" /* {_quoted(symbol.name)} */" if symbol.name != member else ""))
        return "\n".join([*lines, f"}} {self.prefix}parameters;"])

    def bit_names(self) -> list[str]:
        """A macro for each optional link; underscores and the bit's number are added where two would be the same."""
        plain = [re.sub(r"[^A-Z0-9]+", "_", link.upper()) for link in self.optional]
        taken, names = {"ALL", *plain}, []
        for i, name in enumerate(plain):
            if name == "ALL" or plain.count(name) > 1:
                while name in taken:
                    name += f"_{i}"
                taken.add(name)
            names.append(f"{self.prefix.upper()}CARRIES_{name}")
        return names

    def comment(self, group: tuple[str, ...]) -> str:
        what = [f"{_RESULTS[name][0]}: {_RESULTS[name][2]}" for name in group]
        given = [f"{x}: {_ARGUMENTS[x]}" for x in self.inputs(group)]
        if self.members:
            given.append(f"{_STRUCT}: what the robot's symbols stand for")
        return "/* " + ".\n   ".join([*what, "; ".join(given)]) + ". */"

    def inputs(self, group: tuple[str, ...]) -> list[str]:
        return [x for x in _ARGUMENTS if any(x in FUNCTIONS[name] for name in group)]

    def signature(self, group: tuple[str, ...]) -> str:
        size = f"{self.prefix.upper()}NV"
        arguments = [f"const double {x}[{size}]" for x in self.inputs(group)]
        if self.members:
            arguments.append(f"const {self.prefix}parameters *{_STRUCT}")
        if self.optional:
            arguments.append("unsigned long carried")
        for name in group:
            result, axes, _ = _RESULTS[name]
            arguments.append(f"double {result}[{' * '.join([size] * axes)}]")
        indented = ",\n    ".join(arguments)
        return f"void {self.prefix}{'_and_'.join(group)}(\n    {indented})"

    def body(self, group: tuple[str, ...]) -> str:
        tape = Tape()
        outputs = {_RESULTS[name][0]: self.outputs(tape, name) for name in group}
        live = tape.live(x for array in outputs.values() for x in array)
        inputs = [tape.nodes[at].a for at in live if tape.nodes[at].op == "input"]
        lines, text = self.computed([what for kind, what in inputs if kind == "symbol"])
        lines += statements(tape, outputs, lambda name: _read(name, text))
        arguments = [*self.inputs(group), *([_STRUCT] if self.members else []), *(["carried"] if self.optional else [])]
        read = {_ARGUMENT_OF.get(kind, kind) for kind, _ in inputs}
        return "\n".join(f"    {line}" for line in [*lines, *(f"(void){x};" for x in arguments if x not in read)])

    def computed(self, numbers: list[Any]) -> tuple[list[str], dict[Any, str]]:
        """Statements that numbers of the robot share, and C for each of them, made of its parameters."""
        if not numbers:
            return [], {}
        from screwdyn.backends.c.parameters import computed

        return computed(numbers, self.members, _STRUCT)


# What inputs of a tape that are no state are computed from.
_ARGUMENT_OF = {"present": "carried", "absent": "carried", "symbol": _STRUCT}


def _read(name: Any, numbers: Mapping[Any, str]) -> str:
    """C for an input of a tape, given that of the numbers that hold symbols."""
    group, i = name
    if group == "symbol":
        return numbers[i]
    if group == "present":
        return f"(carried & {hex(i)}ul) == {hex(i)}ul ? 1.0 : 0.0"
    if group == "absent":
        return f"(carried & {hex(i)}ul) == {hex(i)}ul ? 0.0 : 1.0"
    return f"{group}[{i}]"


def _gravity(x: Any) -> str:
    return number(float(x)) if expressions.is_number(x) else _quoted(str(x))


def _quoted(name: str) -> str:
    """A name for a comment, which it must neither end nor begin."""
    plain = name.encode("unicode_escape").decode("ascii")
    return '"' + plain.replace("*", "\\x2a").replace("?", "\\x3f") + '"'
