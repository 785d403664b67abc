"""A robot in C: quantities as source for a controller, and tables for the kernels, which change while they run."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from importlib import resources
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol
from zlib import crc32

import numpy as np

from screwdyn.backends.c import ascii_text, identifier, identifiers, number, statements
from screwdyn.backends.tape.tape import Node, Recorded, Tape
from screwdyn.backends.tape.trace import Scalars, Subject, derivative, scalars
from screwdyn.core import Array, ScrewdynError, TopologyError, UnknownNameError, expressions
from screwdyn.forms.requests import Request, requested, results
from screwdyn.mechanism.topology import check_no_rotor, check_open
from screwdyn.physics import STEPS, JointForces, Model, Robot
from screwdyn.physics.charts import ORIENTATION, ROW, Charts
from screwdyn.physics.quantities import CATALOGUE, Quantity, Result
from screwdyn.physics.recursions.links import FRAMES
from screwdyn.physics.table import ARMATURE, FIRST, MASS, OWN_MASS, OWN_ROWS, PARENT, TURN

# Arguments of the functions, in order.
_ARGUMENTS = {
    "t": "time on the clock of the run, s",
    "q": "positions, rad or m",
    "qd": "rates, rad/s or m/s",
    "qdd": "accelerations, rad/s^2 or m/s^2",
    "tau": "forces of the joints, N m or N",
    "q_ref": "positions of a reference, rad or m",
    "qd_ref": "rates of a reference, rad/s or m/s",
    "qdd_ref": "accelerations of a reference, rad/s^2 or m/s^2",
    "dt": "duration of the step, or since the last call, s",
}
_STRUCT = "values"  # the argument with the values of the robot's symbols
STATE = "state"  # the argument with what a law keeps between calls
# Inputs of a tape that are computed from bits, with their values.
_CARRIED = {"present": "1.0 : 0.0", "absent": "0.0 : 1.0"}
# Quantities to which the weight of the links contributes forces.
_WEIGHED = ("inverse_dynamics", "bias_force", "reference_dynamics")
_MOST_OPTIONAL = 32  # the minimum number of bits of an unsigned long


class Writable(Protocol):
    """A law or an observer of :mod:`screwdyn.control`."""

    def _in_c(self, tree: Robot) -> Written:
        """The request of its function for a tree."""


def c_source(
    tree: Robot,
    functions: Iterable[str | Writable | Sequence[str | Writable]],
    *,
    prefix: str = "",
    optional: Iterable[str] = (),
    real: str = "double",
) -> str:
    """C99 source of some quantities of this tree, for a controller.

    The text is both header and implementation: compile it as it is; to include only its declarations, define
    ``<PREFIX>DECLARATIONS_ONLY`` (without a prefix, ``SCREWDYN_DECLARATIONS_ONLY``) before. It has an include
    guard, and C++ can call the functions. It begins with a comment that lists all positions and freedoms in order
    with their units; the macros ``NQ`` and ``NV`` are their numbers. The functions are ``void`` and take arrays of
    ``double``: those of q, qd, qdd and tau that they need, then the results, matrices row by row. They need only
    ``math.h``, use no heap and keep no state. The numbers of the tree are written with all digits; later changes of
    the tree do not affect the text.

    "derivatives:inverse_dynamics", and likewise for other quantities of trees without closed loops, has the derivatives
    of each result by each argument as results, such as ``tau_by_q``; those by q are along the freedoms, as in
    ``tree.derivatives``. "step:semi_implicit_euler" and "step:rk4" take q, qd, tau and ``double dt`` and return
    ``q_next`` and ``qd_next``, as in :meth:`Compiled.rollout`, with the own forces of the joints. The regressor of a
    link is "reference_regressor:<link>" for qd_ref = qd and qdd_ref = qdd. Columns of links that are
    left out are zeros, also in that of a subtree.

    A law or an observer of :mod:`screwdyn.control` becomes a function with its gains as numbers, such as
    ``computed_torque(q, qd, q_ref, qd_ref, qdd_ref, tau)``: docs/c_controller.md.

    A function has the name of its quantity, followed by the link and the frame if they are given:
    "jacobian:tool0:body" becomes ``jacobian_tool0_body``. Quaternions must have length 1.

    If numbers of the tree contain SymPy symbols, the text declares ``typedef struct { double m; … }
    <prefix>parameters;`` with a member for each symbol, in alphabetical order. Every function takes ``const
    <prefix>parameters *values`` after its inputs and computes expressions such as ``m*L**2`` from the members. A
    member has the name of its symbol, or a similar one if C or C++ does not allow the name; a comment then states
    the symbol.

    Parameters
    ----------
    functions : str, law or observer, or sequence of these or of sequences of these
        Names as for :meth:`operation_count`. A sequence such as ``("mass_matrix", "bias_force")`` becomes one function
        ``mass_matrix_and_bias_force`` with several results, which computes common operations once.
    prefix : str
        Beginning of the names of all functions and, in capitals, of all macros.
    optional : str or sequence of str
        Links, such as a payload, that a running controller can include or leave out. Every function then takes,
        after its inputs and parameters, ``unsigned long carried``, with a bit ``<PREFIX>CARRIES_<LINK>`` for each
        of them. If the bit is 0, the results are those of the tree without the link and all links beyond it. The
        entries of M, C, forces and accelerations for the coordinates of these links are then zero: use the block of
        the other coordinates.
    real : "double" or "float"
        The type of all numbers. In ``float``, torques of a UR5 have errors below 1e-5 N m (docs/c_controller.md).

    Returns
    -------
    str

    Raises
    ------
    ScrewdynError
        If a function is unknown or given twice, or none is given; if the type is neither of the two, or a number of the
        robot exceeds it; if the prefix cannot begin a C name; if an
        optional link is the base, or there are more than 32; if the tree has no coordinates; if two symbols have
        the same name, or an expression contains a function that C does not have; if a joint would be present
        without the joint that it follows; for ``operational_inertia`` with an optional link that has freedoms; for a
        law that drives joints with quaternions, or that has a state and is one of a sequence.
    UnknownNameError
        If a link is not in the tree.
    TopologyError
        If an optional link is the rotor of a joint, with which it is left out.
    SingularAttachmentError
        For ``forward_dynamics``, if a joint feels no inertia in any state.

    Notes
    -----
    If a joint feels no inertia in some states, or without an optional link, ``forward_dynamics`` then returns
    infinity, NaN or arbitrary numbers. The source for tens of freedoms has tens of thousands of statements, which
    take a compiler some time.

    Examples
    --------
    >>> import screwdyn as sd
    >>> text = sd.robots.two_link().c_source(["gravity_vector"])
    >>> print(text[text.rindex("{") : text.rindex("}") + 1])
    {
        const double x0 = q[0];
        const double x1 = q[1];
        const double x25 = 4.9031 * cos(x0 + x1);
        const double x26 = 14.7093 * cos(x0) + x25;
        g[0] = x26;
        g[1] = x25;
    }
    """
    model = tree.model
    groups = [listed(group, "a group of functions") for group in listed(functions, "functions")]
    asked = [tuple(_requested(name, tree) for name in group) for group in groups]
    given: dict[str, Any] = {}
    for group, requests in zip(groups, asked, strict=True):
        if len(set(map(_label, requests))) < len(group) or not group:
            raise ScrewdynError(f"name each function of a group once; got {group!r}")
        if len(group) > 1 and any(_kept(request) for request in requests):
            raise ScrewdynError(f"a law with a state is a function of its own; got {group!r}")
        name = _name(requests)
        if name in given:
            both = " and ".join(repr(", ".join(map(str, x))) for x in (given[name], group))
            raise ScrewdynError(f"{both} have the same name in C, {name}; name each once, or rename a link")
        given[name] = group
    if not groups:
        raise ScrewdynError("name at least one function")
    if not isinstance(prefix, str) or not re.fullmatch(r"([A-Za-z_][A-Za-z0-9_]*)?", prefix):
        raise ScrewdynError(f"a prefix must be the beginning of a C name; got {prefix!r}")
    if not model.nv:
        raise ScrewdynError("the tree has no coordinates, so there is nothing to compute; attach a link by a joint")
    for request in itertools.chain(*asked):
        what = request.entry.places
        if what in ("loops", "contacts") and not getattr(model.topology, what):
            raise ScrewdynError(f"the tree has no {what}, so {request.entry.name} has no entries; leave it out")
    if real not in ("double", "float"):
        raise ScrewdynError(f"real must be 'double' or 'float'; got {real!r}")
    return _Source(model, prefix, listed(optional, "optional links"), real == "float").text(asked)


def listed(names: Any, what: str) -> tuple[Any, ...]:
    """Several names or laws, or a single one, as a tuple."""
    if hasattr(names, "_in_c"):
        return (names,)
    if not isinstance(names, Iterable):
        raise ScrewdynError(f"{what} are given by their names, as strings; got {names!r}")
    return (names,) if isinstance(names, str) else tuple(names)


class _Derivatives(Request):
    """A request of the derivatives of a quantity."""


class Written(Request):
    """A request whose results the recursion of its entry records on a tape, for a :class:`_Source`."""


# Steps of integrators as functions of C.
_NEXT = Result("q_next", ("q",), "rad or m"), Result("qd_next", ("v",), "rad/s or m/s")
_STEP = {
    f"step:{method}": Written(
        Quantity(
            f"step_{method}",
            ("q", "qd", "tau", "dt"),
            partial(lambda method, source, tape: source.step(tape, method), method),
            _NEXT,
            doc=f"State after a step by {method}, with the own forces of the joints",
        )
    )
    for method in STEPS
}


def _requested(name: Any, tree: Robot) -> Request:
    """The request with a given name, of a quantity, its derivatives or a step; or that of a law."""
    if hasattr(name, "_in_c"):
        law: Writable = name
        return law._in_c(tree)
    model = tree.model
    form, _, of = name.partition(":") if isinstance(name, str) else ("", "", "")
    if form in ("derivatives", "step"):
        check_open(model.topology, f"C source of {name!r}")
    if form == "derivatives":
        return _Derivatives(*requested(of, tuple(model.placements)))
    if form == "step" and name not in _STEP:
        raise ScrewdynError(f"a step is one of {', '.join(map(repr, _STEP))}; got {name!r}")
    return _STEP[name] if form == "step" else requested(name, tuple(model.placements))


def _label(request: Request) -> str:
    """A request as a part of a C name."""
    parts = [
        "derivatives" * isinstance(request, _Derivatives),
        request.entry.name,
        request.link and identifier(request.link),
        request.frame,
    ]
    return "_".join(part for part in parts if part)


def _kept(request: Request) -> tuple[Result, ...]:
    """Results that a function keeps for its next call: members of a struct."""
    return tuple(x for x in request.entry.given if x.name.startswith(f"{STATE}->"))


def _name(group: Iterable[Request]) -> str:
    """The name of a function in C, without the prefix."""
    return "_and_".join(map(_label, group))


class _Source:
    """The common data of the functions of one text."""

    def __init__(self, model: Model, prefix: str, optional: tuple[str, ...], single: bool) -> None:
        self.model, self.prefix, self.optional = model, prefix, optional
        self.single, self.code = single, _single if single else str  # what C text becomes
        if optional:
            check_open(model.topology, "C source with optional links")
        for link in optional:
            if model.placements[UnknownNameError.check(link, model.placements)].above is None:
                raise ScrewdynError(f"{link!r} is the base, which cannot be left out")
            check_no_rotor(model.topology, link)
        if len(set(optional)) < len(optional) or len(optional) > _MOST_OPTIONAL:
            raise ScrewdynError(f"name at most {_MOST_OPTIONAL} optional links, each once; got {optional!r}")
        self.needs = self._needs({link: 1 << i for i, link in enumerate(optional)})
        # For each row, and for each freedom.
        self.row_needs = [self.needs[at.link.name] for at in model.placements.values() for _ in at.freedoms]
        self.freedom_needs = [self.row_needs[model.index[name]] for name in model.coordinates]
        self.members: dict[Any, str] = {}
        if symbols := self.model.symbols:
            from screwdyn.backends.closed_form import member_names

            self.members = member_names(symbols, [macro for macro, _ in self.macros()])
        self.before: list[str] = []  # statements at the beginning of the function that is being recorded
        # Arguments of all functions after those of the state, with their declarations.
        self.further = {_STRUCT: f"const {prefix}parameters *{_STRUCT}"} if symbols else {}
        if optional:
            self.further["carried"] = "unsigned long carried"

    def _needs(self, bit: Mapping[str, int]) -> dict[str, int]:
        """Bits that must be set for a link to be present: of the links on its path, and of a rotor's joint."""
        topology = self.model.topology
        driving = {rotor.link.name: link for link, at in topology.attachments.items() for rotor in at.unlocked.rotor}
        needs: dict[str, int] = {}
        for link, at in topology.attachments.items():
            needs[link] = bit.get(link, 0) | needs.get(at.parent or "", 0) | needs.get(driving.get(link, ""), 0)
        for link, at in topology.attachments.items():
            if at.joint.mimic is not None:
                leader = topology.carried[at.joint.mimic.joint]
                if needs[leader] & ~needs[link]:
                    raise ScrewdynError(
                        f"joint {at.name!r} follows {at.joint.mimic.joint!r}, but its link {link!r} is present without "
                        f"{leader!r}; let an optional link carry both"
                    )
        return needs

    # The results

    def results(self, tape: Tape, request: Request) -> list[Scalars]:
        """Results of a request; a freedom that is left out gets an armature of 1, so that it feels inertia."""
        if request.entry.name == "operational_inertia" and any(self.freedom_needs):
            raise ScrewdynError("operational_inertia cannot have optional links with freedoms")
        subject = request.subject(self.model, tape)
        table, extra = self.inertias(tape, subject.table)
        assert subject.places is not None
        # Places of constraints have no inertias.
        links = [*self.model.links(request.entry.places, request.link or "")]
        for place, link in zip(subject.places, links, strict=False):
            place[OWN_MASS:OWN_ROWS] *= present(tape, self.needs[link])
        solves = request.entry.name == "forward_dynamics"
        if solves:
            for name, needs in zip(self.model.coordinates, self.freedom_needs, strict=True):
                if needs:
                    table[self.model.index[name], ARMATURE] += tape.input(("absent", needs))
        subject = subject._replace(table=table)
        weights: list[Scalars] = []
        if self.single and request.entry.name in _WEIGHED:
            # By themselves the largest forces have few roundings; in the recursion they have more in each link.
            weights = results(Request(CATALOGUE["gravity_vector"]), self.model, tape, subject, extra=extra)
            table[-1, :3] = 0.0
        found = results(request, self.model, tape, subject, extra=extra)
        for weight in weights:
            found[0] += weight
        if request.entry.name.endswith("regressor"):  # a link that is left out has no share
            for k, link in enumerate(links):
                found[0][:, 10 * k : 10 * k + 10] *= present(tape, self.needs[link])
        if solves:
            found[0] *= np.array([present(tape, needs) for needs in self.freedom_needs], dtype=object)
        return found

    def named(self, tape: Tape, request: Request) -> list[tuple[Result, Scalars]]:
        """The results of a request, or their derivatives, with their names."""
        entry = request.entry
        made: Any = entry.recursion(self, tape) if isinstance(request, Written) else self.results(tape, request)
        found = list(zip(entry.given, made, strict=True))
        if not isinstance(request, _Derivatives):
            return found
        subject = Subject(self.model.entries.astype(object), self.model.charts)
        return [
            (
                Result(f"{x.name}_by_{by}", (*x.shape, "v"), f"{x.unit} per unit of {by}"),
                derivative(tape, y, by, subject),
            )
            for x, y in found
            for by in entry.arguments
        ]

    def step(self, tape: Tape, method: str) -> tuple[Scalars, Scalars]:
        """q and q̇ after a step; the accelerations are recorded once."""
        from screwdyn.backends.llvm.program import Motion

        subject = Subject(self.model.entries.astype(object), self.model.charts)
        own, forces = Tape(), self.model.joint_forces
        accelerations = self.results(own, Request(CATALOGUE["forward_dynamics"]))
        fields = [x for x in JointForces._fields if x != "where"]
        parameters = {(x, k): float(value) for x in fields for k, value in enumerate(getattr(forces, x)) if value}
        control = {"tau": subject.inputs(tape, "tau")}
        motion = Motion(tape, own, subject, accelerations, parameters, control)
        q, qd = subject.inputs(tape, "q"), subject.inputs(tape, "qd")
        after: tuple[Scalars, Scalars] = STEPS[method](motion, q, qd, tape.input(("dt", 0)))
        return after

    def inertias(self, tape: Tape, table: Scalars) -> tuple[Scalars, Scalars]:
        """The table without optional bodies, whose armatures are 0 if they are left out, and their inertial numbers."""
        table, extra = table.copy(), np.full((len(table), PARENT - MASS), 0.0, dtype=object)
        table[:-1, ARMATURE] *= [present(tape, needs) for needs in self.row_needs]
        placements = self.model.placements.items()
        rows = {self.model.index[at.coordinate] for link, at in placements if self.needs[link]}
        table[[*rows], MASS:PARENT] = 0.0
        for link, at in placements:
            row, needs = self.model.index[at.coordinate], self.needs[link]
            if row in rows:
                into = extra[row] if needs else table[row, MASS:PARENT]
                into += scalars(tape, at.body) * present(tape, needs)
        return table, extra

    # The text

    def text(self, groups: Sequence[tuple[Request, ...]]) -> str:
        upper = self.prefix.upper()
        hidden = f"{upper or 'SCREWDYN_'}DECLARATIONS_ONLY"
        functions = [_Function(self, group) for group in groups]
        declared = [
            "\n".join(f"#define {macro} {value}" for macro, value in self.macros()),
            *([self.struct()] if self.members else []),
            *(function.struct for function in functions if function.kept),
            '#ifdef __cplusplus\nextern "C" {\n#endif',
            *(f"{function.comment}\n{function.signature};" for function in functions),
            "#ifdef __cplusplus\n}\n#endif",
        ]
        defined = [f"{function.signature}\n{{\n{function.body}\n}}" for function in functions]
        # Include guards contain a checksum: another text with the same names must cause an error, not be skipped.
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
        model = self.model
        gravity = [number(float(x)) if expressions.is_number(x) else quoted(str(x)) for x in model.gravity.tolist()]
        lines = [
            "Dynamics of a robot, M(q) qdd + C(q, qd) qd + g(q) = tau; written by screwdyn.",
            "",
            "C99, needs math.h only; no heap, no state of their own: functions may be called from several threads, and",
            "an argument may be both input and output. SI units and radians. Matrices are stored row by row.",
            f"Gravity, in the base frame: ({', '.join(gravity)}) m/s^2.",
            "",
        ]
        rows = [model.index[name] for name in model.coordinates]
        kinds = [model.joints[row].kind for row in rows]
        units = ["rad" if model.entries[row, TURN] else "m" for row in rows]
        named = enumerate(zip(model.coordinates, kinds, units, strict=True))
        listed = [f"  [{i}] {quoted(name)}, {kind}, {unit}" for i, (name, kind, unit) in named]
        if model.charts is None:
            lines += ["Coordinates, in this order:", *listed]
        else:
            lines += ["Positions q, in this order; x, y, z and w are those of a quaternion of length 1, scalar last:"]
            lines += [f"  [{i}] {quoted(name)}" for i, name in enumerate(model.positions)]
            lines += ["", "Freedoms of qd, qdd and tau, in this order; qd are quasi-velocities, qdd their rates:"]
            lines += [f"{line}/s" for line in listed]
        if self.optional:
            macro = f"{self.prefix.upper()}CARRIES_ALL"
            lines += [
                "",
                "Links that can be left out, with all links beyond them; `carried` is the sum of the bits of the links",
                f"that are present ({macro}: all). If a link is left out, the rows and columns of M and C and the",
                "entries of forces and accelerations for its coordinates are zero, and all other entries are those of",
                "the robot without the link. The given values for its coordinates must be finite in any case.",
            ]
            bits = zip(self.bit_names(), self.optional, strict=True)
            lines += [f"  {macro}: {quoted(link)}" for macro, link in bits]
        lines += ["", f"Compile this text as it is; to include it elsewhere, define {hidden} first."]
        return "\n".join(["/*", *(f" * {line}".rstrip() for line in lines), " */"])

    def macros(self) -> list[tuple[str, str]]:
        upper = self.prefix.upper()
        macros = [(f"{upper}NQ", str(self.model.nq)), (f"{upper}NV", str(self.model.nv))]
        macros += [(macro, f"(1ul << {i})") for i, macro in enumerate(self.bit_names())]
        if self.optional:
            macros.append((f"{upper}CARRIES_ALL", f"{hex((1 << len(self.optional)) - 1)}ul"))
        return macros

    def struct(self) -> str:
        """The type of the values of the robot's symbols."""
        lines = ["/* Values of the symbols in the numbers of the robot, in SI units and radians. */"]
        lines += ["typedef struct {"]
        for symbol, member in self.members.items():
            lines.append(
                f"    {self.code('double ')}{member};"
                + (f" /* {quoted(symbol.name)} */" if symbol.name != member else "")
            )
        return "\n".join([*lines, f"}} {self.prefix}parameters;"])

    def bit_names(self) -> list[str]:
        """A macro for each optional link."""
        names = identifiers([link.upper() for link in self.optional], ("ALL",))
        return [f"{self.prefix.upper()}CARRIES_{name}" for name in names]


class _Function:
    """A function of the text, with the results of a group of requests."""

    def __init__(self, source: _Source, group: tuple[Request, ...]) -> None:
        self.source, self.group, self.tape = source, group, Tape()
        source.before = self.before = list[str]()
        self.inputs = [x for x in _ARGUMENTS if any(x in request.entry.arguments for request in group)]
        found = [(request, result, y) for request in group for result, y in source.named(self.tape, request)]
        names = [result.name for _, result, _ in found]
        # The request is added to a name that would be that of two arguments.
        self.outputs = {
            name if names.count(name) == 1 and name not in self.inputs else f"{_label(request)}_{name}": entry
            for name, entry in zip(names, found, strict=True)
            for request in entry[:1]
        }
        self.kept = {name: self.outputs.pop(name) for request in group for name in [x.name for x in _kept(request)]}

    @property
    def struct(self) -> str:
        """The type of what the function keeps."""
        members = [f"    double {name.partition('->')[2]}[{y.size}];" for name, (_, _, y) in self.kept.items()]
        lines = ["typedef struct {", *members, f"}} {self.source.prefix}{_name(self.group)}_state;"]
        return self.source.code("\n".join(["/* What the function below keeps between calls. */", *lines]))

    @property
    def comment(self) -> str:
        parts, model = [], self.source.model
        for request in self.group:
            names = [f"{name} ({result.unit})" for name, (of, result, _) in self.outputs.items() if of is request]
            notes = [] if request.link is None else [f"link {quoted(request.link)}"]
            notes += [f"frame {FRAMES[request.code]}"] if "frame" in request.entry.parameters else []
            over = model.path(str(request.link)) if any("k" in x.shape for x in request.entry.given) else ()
            notes += [f"over the freedoms {', '.join(str(model.coordinates.index(x)) for x in over)}"] if over else []
            notes += ["derivatives by the arguments"] if isinstance(request, _Derivatives) else []
            what = "; ".join([ascii_text(request.entry.summary), *notes])
            parts.append(f"{', '.join(names)}: {what}.")
        given = [f"{x}: {_ARGUMENTS[x]}" for x in self.inputs]
        given += [f"{STATE}: what the function keeps for its next call, zeros at first"] if self.kept else []
        if self.source.members:
            given.append(f"{_STRUCT}: values of the robot's symbols")
        parts.append("; ".join(given) + ".")
        return "/* " + "\n   ".join(line for part in parts for line in textwrap.wrap(part, 114)) + " */"

    @property
    def signature(self) -> str:
        upper, prefix = self.source.prefix.upper(), self.source.prefix
        sizes = {"q": f"{upper}NQ", "v": f"{upper}NV"}
        arguments = [
            f"double {x}" if x in ("t", "dt") else f"const double {x}[{sizes['q' if x in ('q', 'q_ref') else 'v']}]"
            for x in self.inputs
        ]
        arguments += self.source.further.values()
        arguments += [f"{prefix}{_name(self.group)}_state *{STATE}"] if self.kept else []
        for name, (_, result, y) in self.outputs.items():
            size = [sizes.get(str(d), str(n)) for d, n in zip(result.shape, y.shape, strict=True)]
            arguments.append(f"double {name}[{' * '.join(size or ['1'])}]")
        indented = ",\n    ".join(arguments)
        return f"void {prefix}{_name(self.group)}(\n    {self.source.code(indented)})"

    @property
    def body(self) -> str:
        outputs = {name: y.ravel().tolist() for name, (_, _, y) in (self.outputs | self.kept).items()}
        if self.source.single:
            outputs = _with_exact_angles(self.tape, outputs)
        live = self.tape.live(x for array in outputs.values() for x in array)
        inputs = [self.tape.nodes[at].a for at in live if self.tape.nodes[at].op == "input"]
        numbers = [what for kind, what in inputs if kind == "symbol"]
        lines, text = self.before, dict[Any, str]()
        if numbers:
            from screwdyn.backends.closed_form import computed

            more, text = computed(numbers, self.source.members, _STRUCT)
            lines = lines + more
        lines = lines + statements(self.tape, outputs, lambda name: _read(name, text))
        read = {"carried" if kind in _CARRIED else _STRUCT if kind == "symbol" else kind for kind, _ in inputs}
        read |= {*re.findall(r"\w+", " ".join(self.before))}
        lines += [f"(void){x};" for x in (*self.inputs, *self.source.further) if x not in read]
        return self.source.code("\n".join(f"    {line}" for line in lines))


def _single(code: str) -> str:
    """C text in ``float``: its type, and the suffix of numbers and of the functions of ``math.h``."""
    text = re.sub(r"\b(\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+)", lambda match: f"{_finite(match[1])}f", code)
    return re.sub(r"\b([a-z]\w*)\(", r"\1f(", text.replace("double ", "float "))


def _with_exact_angles(tape: Tape, outputs: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Outputs with sines and cosines of a sum s of positions corrected by what it lacks: sin s + e cos s.

    The last bit of an angle of 5 rad in ``float`` is 5e-7, of which a weight of 40 N m makes 2e-5 N m.
    """
    instead: dict[int, int] = {}
    lacking: dict[int, int | None] = {}  # what sums of positions lack

    def made(*node: Any) -> int:  # without the rules of folding
        return tape.position(Node(*node))

    for at in tape.live(x for array in outputs.values() for x in array):
        op, a, b = tape.nodes[at]
        if op == "constant" or (op == "input" and a[0] == "q"):
            lacking[at] = None
        elif op in "+-" and {a, b} <= lacking.keys():
            # Knuth's sum of two: what is added to a is ±b to rounding.
            added = made("-", at, a)
            error = made(op, made("-", a, made("-", at, added)), made("-" if op == "+" else "+", b, added))
            for sign, before in (("+", lacking[a]), (op, lacking[b])):
                error = error if before is None else made(sign, error, before)
            lacking[at] = error
        elif op in ("sin", "cos") and lacking.get(a) is not None:
            other, sign = ("cos", "+") if op == "sin" else ("sin", "-")
            instead[at] = made(sign, at, made("*", lacking[a], made(other, a)))
        elif op not in ("input", "constant") and not instead.keys().isdisjoint((a, b)):
            instead[at] = made(op, instead.get(a, a), b if b is None else instead.get(b, b))

    def corrected(x: Any) -> Any:
        return Recorded(tape, instead.get(x.node, x.node), x.minus) if isinstance(x, Recorded) else x

    return {name: [*map(corrected, array)] for name, array in outputs.items()}


def _finite(value: str) -> str:
    """A number as it is, or the least one of ``float`` for those below it, which keep divisors from zero."""
    if float(value) > float(np.finfo(np.float32).max):
        raise ScrewdynError(f"{value} exceeds the numbers of float; rescale the model, or write it in double")
    least = float(np.finfo(np.float32).tiny)
    return repr(least) if 0.0 < float(value) < least else value


def present(tape: Tape, needs: int) -> Any:
    """1 if all links with these bits are present, 0 otherwise."""
    return tape.input(("present", needs)) if needs else 1.0


def _read(name: Any, numbers: Mapping[Any, str]) -> str:
    """C text of an input of a tape; ``numbers`` has the text of numbers with symbols."""
    group, i = name
    if group == "symbol":
        return numbers[i]
    if group in _CARRIED:
        return f"(carried & {hex(i)}ul) == {hex(i)}ul ? {_CARRIED[group]}"
    return group if group in ("t", "dt", "now") else f"{group}[{i}]"


def quoted(name: str) -> str:
    """A name in quotes that can be part of a comment."""
    plain = name.encode("unicode_escape").decode("ascii")
    return '"' + plain.replace("*", "\\x2a").replace("?", "\\x3f") + '"'


# What follows the name of a robot in names of its table.
_TAKEN = ("base", "NQ", "NV", "TABLE_H")


def c_library(folder: str | PathLike[str]) -> None:
    """Write the kernels as a C library to a folder: ``screwdyn.c`` and ``screwdyn.h``.

    Robots for it are written by :meth:`KinematicTree.to_c_table`. Both files are C99 and C++11, use no heap and need
    ``math.h`` only; they serve any tree without closed loops and without joints that follow others.

    Parameters
    ----------
    folder : path
        Made if it does not exist, in a folder that exists.

    Raises
    ------
    OSError
        If a file cannot be written.
    """
    from screwdyn.backends.kernels.written import text

    header = resources.files("screwdyn.backends.kernels").joinpath("screwdyn.h").read_text(encoding="utf-8")
    Path(folder).mkdir(exist_ok=True)
    for name, content in {"screwdyn.h": header, "screwdyn.c": text()}.items():
        Path(folder, name).write_text(content, encoding="utf-8")


def to_c_table(tree: Robot, name: str = "robot", *, optional: Iterable[str] = ()) -> str:
    """A C header with this tree as a table for the kernels in C, which :func:`screwdyn.c_library` writes.

    A controller takes up and puts down parts of the tree while it runs: ``screwdyn_attach(&robot, &<name>)``
    attaches all links that are not optional, ``screwdyn_attach(&robot, &<name>_<link>)`` an optional link with all
    links beyond it, and ``screwdyn_detach`` removes what was attached last. The functions of ``screwdyn.h`` then
    compute the dynamics of the present tree: docs/c_library.md. The text begins with a comment that lists the rows
    and positions of all joints. ``<NAME>_NQ`` and ``<NAME>_NV`` are the numbers of positions and freedoms without
    the optional links.

    Parameters
    ----------
    name : str
        A name in C, with which the names in the text begin.
    optional : str or sequence of str
        Links that the table of the robot leaves out. If they are the last that were attached to this tree, its
        coordinates have the order of those in C.

    Returns
    -------
    str
        C99, and C++11.

    Raises
    ------
    ScrewdynError
        If ``name`` is no name in C, or an optional link is given twice.
    UnknownNameError
        If an optional link is not in the tree.
    TopologyError
        If a joint follows another one; if an optional link has no joint, or is beyond another one.
    LoopError
        If the tree has closed loops.
    UnboundSymbolError
        If numbers of the tree contain symbols.

    Examples
    --------
    >>> import screwdyn as sd
    >>> print(sd.robots.two_link().to_c_table("arm").splitlines()[-4])
    static const struct screwdyn_part arm = {-1, 2, 2, 0, 0, table_of_arm, where_of_arm, 0, 0};
    """
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
    lines = ["Table of a robot for screwdyn.h; written by screwdyn. SI units and radians."]
    lines += itertools.chain(*(part.lines for part in parts))
    upper = name.upper()
    capacity = {"ROWS": len(robot.table), "GROUPS": len(robot.groups)}
    needed = [
        f"#if SCREWDYN_{what} < {count}\n#error compile all files with -DSCREWDYN_{what}={count} or more\n#endif"
        for what, count in capacity.items()
        if count
    ]
    return "\n\n".join(
        [
            "\n".join(["/*", *(f" * {line}".rstrip() for line in lines), " */"]),
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
    """An optional link and all links beyond it; TopologyError if it has no joint, or carries another optional link."""
    at = model.placements[UnknownNameError.check(link, model.placements)]
    if not at.freedoms:
        where = "is the base" if at.above is None else f"is fixed to {at.above!r}"
        raise TopologyError(
            f"optional link {link!r} {where}, so it has no row; add its inertia to the row that carries it, in C"
        )
    links = model.topology.subtree(link)
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
