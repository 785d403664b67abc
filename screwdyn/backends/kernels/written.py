"""The kernels of the catalogue as C, for any tree: ``python -m screwdyn.backends.kernels.written FILE``.

The recursions are translated to C99 (docs/backends.md describes the dialect). A function is translated once for every
list of kinds of its arguments; annotations are not read. Named tuples become structs that are passed by value, with
their names and those of their fields. Floats become the C type ``real``. Operations keep their order, so that C without
fused products gives the bits that Python gives. Nothing in the file depends on the machine.
"""

import ast
import builtins
import inspect
import math
import sys
import textwrap
import typing
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from screwdyn.backends.c import RESERVED
from screwdyn.backends.kernels import source
from screwdyn.backends.kernels.source import KERNELS, PLACES, STATE, entry_of
from screwdyn.physics import Dimension, charts, link_steps, placement, table

_OPERATORS: dict[type, tuple[str, int]] = {ast.Add: ("+", 4), ast.Sub: ("-", 4), ast.Mult: ("*", 5), ast.Div: ("/", 5)}
_COMPARED: dict[type, str] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
# How strongly expressions bind in C; what is not listed binds like a name.
_CALL, _UNARY, _COMPARISON, _LOGICAL, _CHOICE = 9, 6, 2, 1, 0
_BINDS = {ast.UnaryOp: _UNARY, ast.Compare: _COMPARISON, ast.BoolOp: _LOGICAL, ast.IfExp: _CHOICE}
# Names that mean something in C or in the head of the file.
_RESERVED = RESERVED | {"integer", "real", "words", "ALWAYS", "MAKE"}
# What happens once for each state, which whoever compiles the file may keep apart; all else is part of the kernels.
_APART = (charts.recentre,)
# In place of the translation of a function that has begun.
_OPEN = "", ""


class DialectError(Exception):
    """Source that the translator does not know."""


class CArray(NamedTuple):
    """A pointer and a shape."""

    of: str
    axes: int


class Record(NamedTuple):
    """A named tuple, or a tuple: its name in C, and what is written after the point with the kinds of all."""

    name: str
    members: tuple[tuple[str, Any], ...]


def Reals(n: int) -> Record:
    """A tuple of n reals."""
    return Record(f"Numbers{n}", tuple((f"x{k}", "real") for k in range(n)))


CType = str | CArray | Record
Translated = tuple[str, CType]
_A = TypeVar("_A")
_B = TypeVar("_B")


def _name(kind: CType) -> str:
    """The name of a type in C."""
    if isinstance(kind, CArray):
        return f"{'Array' if kind.of == 'real' else 'Integers'}{kind.axes}"
    return kind.name if isinstance(kind, Record) else kind


def _fields(kind: CArray | Record) -> str:
    """The declarations in a struct."""
    if isinstance(kind, CArray):
        return f"{kind.of} *data; integer shape[{kind.axes}];"
    return " ".join(f"{_name(member)} {field};" for field, member in kind.members)


def _is_plain(kind: CType) -> bool:
    """Whether a value is a tuple of reals."""
    return isinstance(kind, Record) and kind == Reals(len(kind.members))


def _joined(a: CType, b: CType) -> CType:
    """The kind of a value that is either."""
    if a == b:
        return a
    if isinstance(a, str) and isinstance(b, str) and {a, b} <= {"integer", "real", "bool"}:
        return "real" if "real" in (a, b) else "integer"
    raise DialectError(f"{_name(a)} and {_name(b)} for one value")


def _paired(given: Sequence[_A], wanted: Sequence[_B]) -> list[tuple[_A, _B]]:
    """Values with what they are for."""
    if len(given) != len(wanted):
        raise DialectError(f"{len(given)} values for {len(wanted)}")
    return list(zip(given, wanted, strict=True))


def _converted(text: str, kind: CType, wanted: CType, binds: int = _CALL) -> str:
    """Text of a value as a real, if that is wanted and it is none."""
    if wanted == "real" and kind != "real":
        return f"(real){text}" if binds > _UNARY else f"(real)({text})"
    return text


def _numbers_in(text: str, kind: CType) -> list[tuple[str, CType]]:
    """The numbers of a value, in order, and their kinds."""
    if isinstance(kind, str | CArray):
        return [(text, kind)]
    return [x for member, of in kind.members for x in _numbers_in(f"{text}.{member}", of)]


class Translator:
    """C source of functions and of what they need, in the order of definition; DialectError for other source."""

    def __init__(self) -> None:
        self.functions: list[str] = []
        self._types: dict[Any, str] = {}
        self._constants: dict[str, tuple[str, str]] = {}
        self._made: dict[Any, Translated] = {}
        self._names: Counter[str] = Counter()

    def text(self) -> str:
        """The definitions of types, constants and functions."""
        constants = "\n".join(text for _, text in self._constants.values())
        return "\n\n".join(["\n".join(self._types.values()), constants, *self.functions])

    def function(self, f: Any, kinds: tuple[CType, ...]) -> Translated:
        """The name in C, and the kind of the result, of a function for some kinds of arguments."""
        found = self._made.get((f, kinds))
        if found == _OPEN:
            raise DialectError(f"{f.__name__} calls itself")
        if found is None:
            self._made[f, kinds] = _OPEN
            (lines, first), where = inspect.getsourcelines(f), inspect.getsourcefile(f)
            tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
            assert isinstance(tree, ast.FunctionDef)
            name = f"{f.__module__.split('.')[-1]}_{f.__name__}"
            self._names[name] += 1
            name += f"_{self._names[name]}" if self._names[name] > 1 else ""
            body = _Body(self, f.__globals__, tree, kinds, lambda node: f"{where}, line {first + node.lineno - 1}")
            if body.result != "void" and not _leaves(tree.body):
                raise DialectError(f"{where}, line {first}: {f.__name__}: a result on some paths only")
            given = ", ".join(f"{_name(kind)} {a.arg}" for a, kind in _paired(tree.args.args, kinds))
            linkage = "SCREWDYN_APART" if f in _APART else "ALWAYS"
            head = f"static {linkage} {_name(body.result)} {name}({given or 'void'})"
            doc = ast.get_docstring(tree)
            lines = [f"/* {doc.splitlines()[0]} */"] if doc else []
            lines += [head, "{", *body.declarations(len(kinds)), *body.lines, "}"]
            self.functions.append("\n".join(lines))
            found = self._made[f, kinds] = name, body.result
        return found

    def declared(self, kind: CType) -> CType:
        """The kind, whose type is defined in C from now on."""
        if not isinstance(kind, str) and kind not in self._types:
            for _, member in kind.members if isinstance(kind, Record) else ():
                self.declared(member)
            self._types[kind] = f"typedef struct {{ {_fields(kind)} }} {_name(kind)};"
        return kind

    def array(self, of: str, axes: int) -> tuple[str, CType]:
        """The name of the type of an array, and its kind."""
        kind = self.declared(CArray(of, axes))
        return _name(kind), kind

    def constant(self, name: str, value: Any) -> Translated:
        """A global of a module."""
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        text, kind = self.literal(value)
        while name in self._constants and self._constants[name][0] != repr(value):  # 1 is equal to 1.0
            name += "_"
        plain = isinstance(kind, str)
        text = f"#define {name} {text}" if plain else f"static const {_name(kind)} {name} = {text};"
        self._constants[name] = repr(value), text
        return name, kind

    def literal(self, value: Any) -> Translated:
        """A number, or a tuple of numbers as an initialiser."""
        if isinstance(value, tuple):
            parts = [self.literal(x) for x in value]
            kind = self.tuple_kind([kind for _, kind in parts], type(value))
            texts = ", ".join(text for text, _ in parts)
            return f"{{{texts}}}", kind
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise DialectError(f"the constant {value!r}")
        if not abs(value) < 2**63:
            raise DialectError(f"the constant {value!r}, which C does not have")
        if isinstance(value, int):
            return repr(value) if value >= 0 else f"({value!r})", "integer"
        return f"R({value!r})", "real"

    def tuple_kind(self, kinds: Sequence[CType], cls: type = tuple) -> CType:
        """The kind of a tuple with members of given kinds, or of a named tuple."""
        if cls is tuple:
            if set(kinds) <= {"real", "integer"}:
                return self.declared(Reals(len(kinds)))
            name = "_".join(["Of", *map(_name, kinds)])
            return self.declared(Record(name, tuple((f"f{k}", kind) for k, kind in enumerate(kinds))))
        hints, fields = typing.get_type_hints(cls), []
        for field, kind in _paired([*hints], kinds):
            count = len(typing.get_args(hints[field]))
            if count and kind != Reals(count):
                raise DialectError(f"{cls.__name__}.{field} is {_name(kind)}")
            whole = isinstance(kind, CArray | Record) or count or hints[field] is int
            fields.append((field, kind if whole else "real"))
        return self.declared(Record(cls.__name__, tuple(fields)))

    def kind_of(self, annotation: Any) -> CType:
        """The kind of what has an annotation: a number, a tuple of numbers, or a named tuple of all these."""
        if isinstance(annotation, type) and issubclass(annotation, tuple):
            hints = typing.get_type_hints(annotation)
            return self.tuple_kind([self.kind_of(hint) for hint in hints.values()], annotation)
        count = len(typing.get_args(annotation))
        return self.tuple_kind(["real"] * count) if count else "integer" if annotation is int else "real"

    def of_each(self, name: str, kind: CType) -> str:
        """The name of a function that does the same with every number of a value; see ``_OF_EACH``."""
        function, K, (_, given, line) = f"{name}_{_name(kind)}", _name(kind), _OF_EACH[name]
        if function not in self._names:
            self._names[function] = 1
            self.declared(CArray("real", 2))
            lines = [] if "{kind} x" in given else [f"    {K} x;"]
            for k, (x, of) in enumerate(_numbers_in("", kind)):
                at = f"{'(integer)' * (of == 'integer')}A.data[i * A.shape[1] + k + {k}]"
                lines.append(f"    {line.format(x=f'x{x}', y=f'y{x}', at=at)};")
            result = "void" if line.startswith("{at}") else K
            lines += ["    return x;"] if result == K else []
            head = f"static ALWAYS {result} {function}({given.format(kind=K)})"
            self.functions.append("\n".join([head, "{", *lines, "}"]))
        return function


class _Body:
    """The statements of one function in C; they are translated again until the kinds of all variables are known."""

    def __init__(
        self,
        to: Translator,
        scope: Mapping[str, Any],
        tree: ast.FunctionDef,
        kinds: tuple[CType, ...],
        place: Callable[[Any], str],
    ) -> None:
        self.to, self._scope, self._place = to, scope, place
        self._variables: dict[str, CType] = dict(_paired([a.arg for a in tree.args.args], kinds))
        self._arguments = set(self._variables)
        for name in self._arguments & _RESERVED:
            raise DialectError(f"{place(tree)}: the argument {name}, which means something else in C")
        self._read = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        self._unread = [f"    (void){a.arg};" for a in tree.args.args if a.arg not in self._read]
        self.result: CType = "void"
        while True:
            before = dict(self._variables), self.result
            self.lines: list[str] = []
            self._temporaries = 0
            self._ended: set[str] = set()  # variables of loops, which end one step further in C
            self._assigned = set(self._arguments)  # names that have a value on every path to a statement
            self._block(tree.body, 1)
            if (self._variables, self.result) == before:
                break

    def declarations(self, arguments: int) -> list[str]:
        """Declarations of the variables other than the arguments."""
        by_kind: dict[str, list[str]] = {}
        for name, kind in list(self._variables.items())[arguments:]:
            by_kind.setdefault(_name(kind), []).append(name)
        return [*(f"    {kind} {', '.join(names)};" for kind, names in by_kind.items()), *self._unread]

    # Statements

    def _block(self, body: Iterable[ast.stmt], depth: int) -> None:
        ended = set(self._ended)
        for node in body:
            try:
                self._statement(node, depth)
            except DialectError as error:
                if ", line " in str(error):
                    raise
                line = ast.unparse(node).splitlines()[0]
                raise DialectError(f"{self._place(node)}: {line}: {error}") from None
        self._ended |= ended  # because a block may not be carried out

    def _do(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def _statement(self, node: ast.stmt, depth: int) -> None:
        match node:
            case ast.Expr(ast.Constant()):
                pass
            case ast.Expr(value):
                self._do(depth, f"{self.of(value)[0]};")
            case ast.Return(None):
                raise DialectError("a return without a value")
            case ast.Return(ast.expr() as value):
                text, kind = self.of(value)
                self.result = kind if self.result == "void" else _joined(self.result, kind)
                self._do(depth, f"return {_converted(text, kind, self.result, _CHOICE)};")
            case ast.Continue():
                self._do(depth, "continue;")
            case ast.If(test, body, orelse):
                self._do(depth, f"if ({self.of(test)[0]}) {{")
                before = set(self._assigned)
                self._block(body, depth + 1)
                first, self._assigned = self._assigned, before
                if orelse:
                    self._do(depth, "} else {")
                    self._block(orelse, depth + 1)
                self._do(depth, "}")
                if _leaves(orelse, ast.Return | ast.Continue):
                    self._assigned = first
                elif not _leaves(body, ast.Return | ast.Continue):
                    self._assigned &= first
            case ast.While(test, body, []):
                self._repeat(f"while ({self.of(test)[0]}) {{", body, depth)
                self.of(test)  # which is evaluated again
            case ast.While():
                raise DialectError("an else of a loop")
            case ast.For(ast.Name(i), ast.Call(ast.Name("range"), given), body, orelse):
                inside = (n for x in body for n in ast.walk(x) if isinstance(n, ast.Name))
                changed = {n.id for n in inside if isinstance(n.ctx, ast.Store)}
                if orelse or changed & {i, *(name for a in given for name in _names_in(a))}:
                    raise DialectError("an else of a loop, or a loop that changes its range")
                if not all(isinstance(getattr(x, "operand", x), ast.Constant) for x in given[2:]):
                    raise DialectError("a range whose step is no number")
                texts = [self.of(a)[0] for a in given]
                start, last, step = (["0", *texts, "1"] if len(texts) == 1 else [*texts, "1"])[:3]
                self._keep(i, "integer")
                sign = ">" if step.startswith("-") else "<"
                self._repeat(f"for ({i} = {start}; {i} {sign} {last}; {i} += {step}) {{", body, depth)
                self._ended.add(i)
            case ast.For():
                raise DialectError("a loop over something else than a range")
            case ast.AugAssign(target, op, value):
                (place, kind), (text, other) = self.of(target), self.of(value)
                sign, _ = self._operator(op)
                if not all(x in ("real", "integer") for x in (kind, other)):
                    raise DialectError(f"{sign}= of a {_name(kind)} and a {_name(other)}")
                result = "real" if sign == "/" else _joined(kind, other)
                if isinstance(target, ast.Name):
                    self._keep(target.id, result)
                elif result != kind:
                    raise DialectError(f"a {_name(result)} for an entry that is {_name(kind)}")
                self._do(depth, f"{place} {sign}= {_converted(text, other, kind, _CHOICE)};")
            case ast.Assign([target], value):
                self._assign(target, value, depth)
            case ast.Assign():
                raise DialectError("a chain of assignments")
            case _:
                raise DialectError(f"a statement {type(node).__name__}")

    def _repeat(self, head: str, body: Sequence[ast.stmt], depth: int) -> None:
        """Write a loop: loops within it may have ended before its statements."""
        self._do(depth, head)
        self._ended |= {ast.unparse(n.target) for x in body for n in ast.walk(x) if isinstance(n, ast.For)}
        before = set(self._assigned)
        self._block(body, depth + 1)
        self._assigned = before  # because there may be no step
        self._do(depth, "}")

    def _assign(self, target: ast.expr, value: ast.expr, depth: int) -> None:
        if not (isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)):
            self._store(target, *self.of(value), depth)
            return
        pairs = _paired(target.elts, value.elts)
        written: set[str] = set()
        clash = False  # a name or array is written before it is read
        for t, v in pairs:
            clash |= bool(written & _names_in(v))
            written |= _names_in(t)
        if not clash:
            for t, v in pairs:
                self._assign(t, v, depth)
            return
        values = [self.of(v) for _, v in pairs]
        kept = [(self._temporary(text, kind, depth), kind) for text, kind in values]
        for (t, _), (text, kind) in zip(pairs, kept, strict=True):
            self._store(t, text, kind, depth)

    def _temporary(self, text: str, kind: CType, depth: int) -> str:
        self._temporaries += 1
        name = f"t{self._temporaries}_"
        self._keep(name, kind)
        self._do(depth, f"{name} = {text};")
        return name

    def _store(self, target: ast.expr, text: str, kind: CType, depth: int) -> None:
        if isinstance(target, ast.Tuple):
            if not isinstance(kind, Record):
                raise DialectError(f"a {_name(kind)} is unpacked")
            whole = text if text.isidentifier() else self._temporary(text, kind, depth)
            for t, (member, of) in _paired(target.elts, kind.members):
                if not (isinstance(t, ast.Name) and t.id not in self._read):
                    self._store(t, f"{whole}.{member}", of, depth)
        elif isinstance(target, ast.Name):
            self._keep(target.id, kind)
            self._do(depth, f"{target.id} = {_converted(text, kind, self._variables[target.id], _CHOICE)};")
        else:
            place, wanted = self.of(target)
            self._do(depth, f"{place} = {_converted(text, kind, wanted, _CHOICE)};")

    def _keep(self, name: str, kind: CType) -> None:
        if name in _RESERVED:
            raise DialectError(f"the name {name}, which means something else in C")
        self._ended.discard(name)
        self._assigned.add(name)
        before = self._variables.get(name, kind)
        self._variables[name] = _joined(before, kind)
        if name in self._arguments and self._variables[name] != before:
            raise DialectError(f"the argument {name} becomes a {_name(kind)}")

    # Expressions: text and kind

    def of(self, node: ast.expr) -> Translated:
        """Text and kind of an expression."""
        match node:
            case ast.Constant(bool(value)):
                return ("true" if value else "false"), "bool"
            case ast.Constant(value):
                return self.to.literal(value)
            case ast.Name(name):
                if name in self._ended:
                    raise DialectError(f"{name} is read after its loop")
                if name in self._assigned:
                    return name, self._variables[name]
                if name in self._variables or name not in self._scope:
                    raise DialectError(f"{name} has no value yet, or on some paths only")
                return self.to.constant(name, self._scope[name])
            case ast.Attribute(value, name) if inspect.ismodule(self.meaning(value)):
                return self.to.constant(name, self.meaning(node))
            case ast.Attribute(value, name):
                text, kind = self.of(value)
                members = dict(kind.members) if isinstance(kind, Record) and not _is_plain(kind) else {}
                if name not in members:
                    raise DialectError(f"an attribute {name} of a {_name(kind)}")
                return f"{text}.{name}", members[name]
            case ast.Subscript(ast.Attribute(array, "shape"), axis):
                return f"{self.of(array)[0]}.shape[{self.of(axis)[0]}]", "integer"
            case ast.Subscript(value, index):
                return self._entry(*self.of(value), index.elts if isinstance(index, ast.Tuple) else [index])
            case ast.Tuple(entries):
                parts = [self.of(x) for x in entries]
                kind = self.to.tuple_kind([kind for _, kind in parts])
                texts = [text for text, _ in parts]
                if _is_plain(kind):
                    texts, _ = self._operands(*((x, _CHOICE) for x in entries), real=True)
                return f"MAKE({_name(kind)}){{{', '.join(texts)}}}", kind
            case ast.BinOp(left, op, right):
                sign, binds = self._operator(op)
                (a, b), kinds = self._operands((left, binds), (right, binds + 1), real=sign == "/")
                return f"{a} {sign} {b}", "real" if sign == "/" else _joined(_joined(*kinds), "integer")
            case ast.UnaryOp(ast.Not(), operand):
                return f"!{self.grouped(operand, _UNARY)}", "bool"
            case ast.UnaryOp(ast.USub(), operand):
                (text,), (kind,) = self._operands((operand, _UNARY))
                return f"-({text})" if text.startswith("-") else f"-{text}", kind
            case ast.UnaryOp(sign):
                raise DialectError(f"the operator {type(sign).__name__}")
            case ast.Compare(left, [by], [right]) if type(by) in _COMPARED:
                (a, b), _ = self._operands((left, 3), (right, 3))
                return f"{a} {_COMPARED[type(by)]} {b}", "bool"
            case ast.Compare():
                raise DialectError("a comparison of other kinds")
            case ast.BoolOp(which, values):
                if any(self.of(v)[1] != "bool" for v in values):
                    raise DialectError("a choice of values by 'and' or 'or'")
                joined = " && " if isinstance(which, ast.And) else " || "
                return joined.join(self.grouped(v, _COMPARISON) for v in values), "bool"
            case ast.IfExp(test, body, orelse):
                (a, b), kinds = self._operands((body, _LOGICAL), (orelse, _CHOICE))
                return f"{self.grouped(test, _LOGICAL)} ? {a} : {b}", _joined(*kinds)
            case ast.Call():
                return self._call(node)
        raise DialectError(f"an expression {type(node).__name__}")

    def grouped(self, node: ast.expr, least: int = _CALL) -> str:
        """Text of an expression, in parentheses if it binds more loosely."""
        return self._operands((node, least))[0][0]

    def _operands(self, *given: tuple[ast.expr, int], real: bool = False) -> tuple[list[str], list[CType]]:
        """The same of some expressions, and their kinds; all as reals if one is, or if that is wanted."""
        # Each is translated once: sums may be long.
        found, texts = [self.of(node) for node, _ in given], []
        kinds = [kind for _, kind in found]
        for (text, kind), (node, least) in zip(found, given, strict=True):
            binds = self._operator(node.op)[1] if isinstance(node, ast.BinOp) else _BINDS.get(type(node), _CALL)
            convert = kind != "real" and (real or "real" in kinds)
            texts.append(_converted(text, kind, "real", binds) if convert else f"({text})" if binds < least else text)
        return texts, kinds

    def _operator(self, op: ast.operator) -> tuple[str, int]:
        if type(op) not in _OPERATORS:
            raise DialectError(f"the operator {type(op).__name__}")
        return _OPERATORS[type(op)]

    def meaning(self, node: ast.expr) -> Any:
        """What a name, or one in a module, stands for outside the function; None if that is unknown."""
        if isinstance(node, ast.Name) and node.id not in self._variables:
            return self._scope.get(node.id, getattr(builtins, node.id, None))
        return getattr(self.meaning(node.value), node.attr, None) if isinstance(node, ast.Attribute) else None

    def _entry(self, text: str, kind: CType, at: Sequence[ast.expr]) -> Translated:
        """An entry of a tuple or an array, or a row of an array."""
        if any(isinstance(x, ast.UnaryOp) for x in at):
            raise DialectError("a negative index")
        places, kinds = self._operands(*((x, _UNARY) for x in at))
        if not all(x in ("integer", "bool") for x in kinds):
            raise DialectError("an index that is no integer")
        if isinstance(kind, Record) and _is_plain(kind):
            if isinstance(at[0], ast.Constant):
                if ast.unparse(at[0]) not in map(str, range(len(kind.members))):
                    raise DialectError(f"an entry {ast.unparse(at[0])} of a {_name(kind)}")
                return f"{text}.x{at[0].value!r}", "real"
            return f"((const real *)&{text})[{places[0]}]", "real"
        if not isinstance(kind, CArray) or len(places) > kind.axes:
            raise DialectError(f"an entry of a {_name(kind)}")
        offset = places[0]
        for axis, place in enumerate(places[1:], 1):
            offset = f"{f'({offset})' if axis > 1 else offset} * {text}.shape[{axis}] + {place}"
        if len(places) == kind.axes:
            return f"{text}.data[{offset}]", kind.of
        rest = [f"{text}.shape[{axis}]" for axis in range(len(places), kind.axes)]
        row = self.to.declared(CArray(kind.of, len(rest)))
        return f"MAKE({_name(row)}){{{text}.data + {' * '.join([f'({offset})', *rest])}, {{{', '.join(rest)}}}}}", row

    def _call(self, node: ast.Call) -> Translated:
        found = self.meaning(node.func)
        if found is None or node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
            raise DialectError("a call of something unknown, or with keywords or stars")
        if found in _KNOWN:
            return _KNOWN[found](self, node.args)
        parts = [self.of(a) for a in node.args]
        if isinstance(found, type):
            kind = self.to.tuple_kind([kind for _, kind in parts], found)
            assert isinstance(kind, Record)
            texts = [_converted(t, k, of, _CHOICE) for (t, k), (_, of) in _paired(parts, kind.members)]
            return f"MAKE({kind.name}){{{', '.join(texts)}}}", kind
        if not inspect.isfunction(found):
            raise DialectError(f"a call of {found!r}")
        return self.called(found, parts)

    def called(self, f: Any, given: Sequence[Translated]) -> Translated:
        """A call of a function of the dialect."""
        name, kind = self.to.function(f, tuple(kind for _, kind in given))
        return f"{name}({', '.join(text for text, _ in given)})", kind


def _leaves(body: Sequence[ast.stmt], ways: Any = ast.Return) -> bool:
    """Whether every path through some statements ends in a return, or in one of other ways."""
    last = body[-1] if body else None
    inside = isinstance(last, ast.If) and _leaves(last.body, ways) and _leaves(last.orelse, ways)
    return inside or isinstance(last, ways)


def _names_in(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


# What takes the place of functions: from the body and the arguments to text and kind


def _in_c(text: str, kind: CType, body: "_Body", nodes: Sequence[ast.expr]) -> Translated:
    """A call that is written in C, with the arguments in place of {0}, {1} …"""
    _paired(nodes, range(text.count("{")))
    return text.format(*(body.grouped(node) for node in nodes)), kind


def _condition(body: "_Body", node: ast.expr) -> str:
    """Whether a value is not 0."""
    text, kind = body.of(node)
    return f"({text})" if kind == "bool" else f"({body.grouped(node)} != 0)"


def _sincos(x: float) -> tuple[float, float]:
    """The sine and cosine of an angle, which is 0 in rows of group joints."""
    if x == 0.0:
        return x, 1.0
    return math.sin(x), math.cos(x)


def _beyond(x: float, half: float) -> tuple[float, float]:
    """``link_steps.beyond`` of a number."""
    if half == 0.0:
        return x, 1.0
    if abs(x) > half:
        return x - half * link_steps.sign(x), 1.0
    return 0.0, 0.0


def weld(given: CArray, found: CArray) -> None:
    """``placement.welded`` of a pose, the sixteen entries of a home pose, and the numbers of an inertia."""
    body = table.load(given, 0, link_steps.RigidInertia, 28)
    pose, body = placement.welded(table.load(given, 0, link_steps.Pose), _home(given), body)
    table.store(found, 0, pose)
    table.store(found, 0, body, 12)


def mount(given: CArray, found: CArray) -> None:
    """``placement.mounted`` of a pose, the sixteen entries of a home pose, and the pose of a joint's first row."""
    first = table.load(given, 0, link_steps.Pose, 28)
    table.store(found, 0, placement.mounted(table.load(given, 0, link_steps.Pose), _home(given), first))


def _home(A: Any) -> link_steps.Pose:
    """The pose of which all entries are in columns 12 to 27."""
    R = A[0, 12], A[0, 13], A[0, 14], A[0, 16], A[0, 17], A[0, 18], A[0, 20], A[0, 21], A[0, 22]
    return link_steps.Pose(R, (A[0, 15], A[0, 19], A[0, 23]))


# Functions of numbers for tuples and arrays of them, which only machine code calls: how many they take and return.
OF_NUMBERS = {weld: (38, 22), mount: (40, 12)}

# Functions that do the same with every number of a value x. The index of the value, or of its kind, among their
# arguments; the arguments in C; and what is done with the number {x}, whose place in a row of an array is {at}.
_OF_EACH = {
    "load": (2, "Array2 A, integer i, integer k", "{x} = {at}"),
    "store": (2, "Array2 A, integer i, {kind} x, integer k", "{at} = {x}"),
    "add_to": (2, "Array2 A, integer i, {kind} x, integer k", "{at} += {x}"),
    "add": (0, "{kind} x, {kind} y", "{x} = {x} + {y}"),
    "subtract": (0, "{kind} x, {kind} y", "{x} = {x} - {y}"),
    "scale": (1, "real s, {kind} x", "{x} = s * {x}"),
}


def _of_each(name: str, body: "_Body", nodes: Sequence[ast.expr]) -> Translated:
    """A call of a function that does the same with every number of a value; see ``_OF_EACH``."""
    which = _OF_EACH[name][0]
    kind = body.to.kind_of(body.meaning(nodes[2])) if name == "load" else body.of(nodes[which])[1]
    texts = [body.of(node)[0] for k, node in enumerate(nodes) if name != "load" or k != 2]
    texts += ["0"] if which == len(nodes) - 1 == 2 else []  # the column
    result = "void" if name in ("store", "add_to") else kind
    return f"{body.to.of_each(name, kind)}({', '.join(texts)})", result


# The functions, and the constants, that the dialect knows.
_KNOWN: dict[Any, Callable[["_Body", Sequence[ast.expr]], Translated]] = {
    int: partial(_in_c, "(integer){0}", "integer"),
    bool: lambda body, nodes: (_condition(body, nodes[0]), "bool"),
    abs: partial(_in_c, "absolute({0})", "real"),
    max: partial(_in_c, "greater({0}, {1})", "real"),
    math.sqrt: partial(_in_c, "root({0})", "real"),
    math.sin: partial(_in_c, "sine({0})", "real"),
    math.cos: partial(_in_c, "cosine({0})", "real"),
    link_steps.sincos: lambda body, nodes: body.called(_sincos, [body.of(node) for node in nodes]),
    link_steps.beyond: lambda body, nodes: body.called(_beyond, [body.of(node) for node in nodes]),
    link_steps.exceeds: partial(_in_c, "({0} > {1})", "bool"),
    link_steps.square_root: partial(_in_c, "root({0})", "real"),
    **{f: partial(_of_each, f.__name__) for f in (table.load, table.store, table.add_to)},
    **{f: partial(_of_each, f.__name__) for f in (link_steps.add, link_steps.subtract, link_steps.scale)},
}
_CONSTANTS: dict[str, Translated] = {
    "ROUNDING": ("SCREWDYN_ROUNDING", "real"),
    "PICOMETRE_SQUARED": ("SCREWDYN_LEAST_GYRATION", "real"),
}

# The file


def _shape(dimensions: Sequence[Dimension]) -> str:
    """An extent, or the complement of its place in the context, for each axis."""
    values = [~PLACES[d] if isinstance(d, str) else d for d in dimensions]
    return f"{{{len(values)}, {{{', '.join(map(str, values)) or 0}}}}}"


def text() -> str:
    """The C file."""
    to, rows = Translator(), []
    for name in KERNELS:
        entry = entry_of(name)
        to.functions.append(source.write_kernel(to, name))
        inputs, outputs = (
            [_shape(d) for d in x] for x in ([STATE[x] for x in entry.arguments], [r.shape for r in entry.given])
        )
        numbers = f"{len(inputs)}, {len(outputs)}, {{{', '.join(inputs)}}}, {{{', '.join(outputs)}}}"
        rows.append(f'    {{"{name}", screwdyn_run_{name}, screwdyn_scratch_{name}, {numbers}}},')
    rows.append('    {"play", screwdyn_play, 0, 0, 0, {{0, {0}}}, {{0, {0}}}},')
    for f, sizes in OF_NUMBERS.items():
        called, _ = to.function(f, (CArray("real", 2), CArray("real", 2)))
        given, found = (f"MAKE(Array2){{(real *)arrays[{k}], {{1, {n}}}}}" for k, n in enumerate(sizes))
        head = f"SCREWDYN_API integer screwdyn_{f.__name__}(words context, words arrays, integer at)"
        to.functions.append(
            f"{head}\n{{\n    (void)context, (void)at;\n    {called}({given}, {found});\n    return 0;\n}}"
        )
        shapes = ", ".join(f"{{{{1, {{{n}}}}}}}" for n in sizes)
        rows.append(f'    {{"{f.__name__}", screwdyn_{f.__name__}, 0, 1, 1, {shapes}}},')
    last = "    {0, 0, 0, 0, 0, {{0, {0}}}, {{0, {0}}}},"
    kernels = "\n".join(["const struct screwdyn_kernel screwdyn_kernels[] = {", *rows, last, "};"])
    head = Path(__file__).with_name("head.c").read_text(encoding="utf-8")
    return "\n".join([head, to.text(), "", kernels, ""])


def main(arguments: Sequence[str]) -> None:
    """Write the C file to a path."""
    Path(arguments[0]).write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    from screwdyn.backends.kernels import written  # whose name is part of names in C

    written.main(sys.argv[1:])
