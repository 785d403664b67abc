"""Scenarios: simulations that a TOML file describes, with a schedule of changes (docs/files.md)."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from screwdyn import robots
from screwdyn.changes.catalogue import KINDS, Readers, keys_of, read_fields, readers
from screwdyn.changes.change import Scheduled
from screwdyn.cli.files import Beside, named_robot, note_output, output_paths, require_readable
from screwdyn.core.errors import ScenarioError, ScrewdynError
from screwdyn.core.types import Array
from screwdyn.io.document import Entry, PlacedProblem, listed, shown
from screwdyn.io.json_text import read_part
from screwdyn.mechanism import joint as makers
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.joint import Joint, Mimic, Rotor
from screwdyn.mechanism.link import Link
from screwdyn.mechanism.shape import Shape
from screwdyn.physics.state import State
from screwdyn.simulation.equations import SpringStop, Stop, Stops, Torque, joints_of
from screwdyn.simulation.integrators import METHODS
from screwdyn.simulation.simulate import simulate
from screwdyn.tree import KinematicTree
from screwdyn.views.film import film_path

# Formats of figures that Matplotlib writes without further programs.
FIGURES = (".png", ".svg", ".pdf", ".eps", ".ps", ".jpg", ".jpeg", ".tif", ".tiff", ".webp")
_SUFFIXES = {"csv": (".csv",), "npz": (".npz",), "figure": FIGURES, "film": (".html", ".gif", ".mp4")}
_CONTROLLERS = {
    "none": (),
    "constant": ("torque",),
    "pd": ("target", "stiffness", "damping", "gravity_compensation"),
}


def _constant(torque: Mapping[str, Any], t: float, state: State) -> dict[str, Any]:
    """The same torques at all times, N m or N by coordinate or joint, as far as the tree has them at that time."""
    tree = state.tree
    known = {*state.coordinates, *(name for name in tree.joints if tree.joint(name).nv)}
    return {name: value for name, value in torque.items() if name in known}


@dataclass(frozen=True)
class _Hold:
    """τ = K (q_goal ⊖ q) − D q̇ + g(q) on the active joints, g if ``compensate``; ⊖ is along the freedoms of joints.

    The goal is by position, rad and m, the gains by joint, N m/rad and N m s/rad, or N/m and N s/m.
    """

    goal: Mapping[str, float]
    stiffness: Mapping[str, float]
    damping: Mapping[str, float]
    compensate: bool

    def __call__(self, t: float, state: State) -> dict[str, Array]:
        """Torques by coordinate."""
        tree = state.tree
        assert isinstance(tree, KinematicTree)
        names = [name for name in tree.joints for _ in range(tree.joint(name).nv)]
        K, D = (np.array([gains.get(name, 0.0) for name in names]) for gains in (self.stiffness, self.damping))
        goal = [self.goal.get(name, x) for name, x in zip(state.positions, state.q.tolist(), strict=True)]
        tau = K * tree.difference(state.q, goal) - D * state.qd
        if self.compensate:
            tau += tree.gravity_vector(state.q)
        return {name: x for name, x, idle in zip(tree.coordinates, tau, tree.model.passive, strict=True) if not idle}


class _Scenario(NamedTuple):
    """A simulation: the arguments of :func:`screwdyn.simulate`, and the names of output files by their kinds."""

    robot: KinematicTree  # at the start
    start: State
    duration: float
    torque: Torque | None
    events: Sequence[Scheduled[Any]]
    options: Mapping[str, Any]  # those that are given, by keyword
    outputs: Mapping[str, str]


def read_scenario(path: Path, xacro: bool = False) -> _Scenario:
    """Read a scenario and files that it names, in its own folder; ScenarioError lists every problem with its keys."""
    require_readable(path)
    problems: list[PlacedProblem] = []
    root = Entry(None, "", problems)
    try:
        root.value = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except RecursionError:
        root.wrong("arrays and tables are nested too deeply")
    except ValueError as error:  # also of numbers with thousands of digits, and of bytes that are not UTF-8
        root.wrong(f"not valid TOML: {error}")
    scenario = None if problems else _scenario(root, Beside(path.parent, xacro))
    if scenario is None or problems:
        raise ScenarioError(listed(str(path), problems), problems)
    return scenario


def _positive(given: Entry) -> float | None:
    value = given.number(what="a number of seconds > 0")
    if value is not None and value <= 0:
        return given.wrong(f"expected a number of seconds > 0; got {value}")
    return None if value is None else float(value)


# Options of a run that need nothing else of the scenario.
_OPTIONS: dict[str, Callable[[Entry], Any]] = {
    "step": _positive,
    "control_period": _positive,
    "method": lambda given: given.one_of(*METHODS),
    "saturate": Entry.flag,
}


def _if_given(given: Mapping[str, Entry], key: str, read: Callable[[Entry], Any], default: Any = None) -> Any:
    """What a reader makes of the entry under a key, if there is one."""
    return read(given[key]) if key in given else default


def _scenario(root: Entry, beside: Beside) -> _Scenario | None:
    others = ("floating_base", "gravity", "start", "controller", "schedule", "output", "stops")
    given = root.table(("robot", "duration"), (*others, *_OPTIONS))
    options = {what: read(given[what]) for what, read in _OPTIONS.items() if what in given}
    duration = _if_given(given, "duration", _positive)
    outputs = _if_given(given, "output", _outputs, {})
    floating = bool(_if_given(given, "floating_base", Entry.flag))
    gravity = _if_given(given, "gravity", lambda x: x.numbers(3))
    if floating and root.value.get("robot") in robots.__all__:
        given["floating_base"].wrong("this is for URDF files")
    robot = _if_given(given, "robot", lambda x: named_robot(x, beside, floating))
    if robot is None:
        return None
    if gravity is not None:
        robot.gravity = gravity
    start = _if_given(given, "start", lambda x: _start(x, robot), State(robot))
    present = _Present(robot)
    events = _if_given(given, "schedule", lambda x: _schedule(x, present, duration, beside), [])
    joints = [named for found in (joints_of(robot), *(x.joints(robot) for x in events)) for named in found.items()]
    if "stops" in given:
        options["stops"] = _stops(given["stops"], joints, present)
    before = len(root.problems)
    torque = _if_given(given, "controller", lambda x: _controller(x, robot, start, joints, present))
    if torque is None and len(root.problems) == before:
        for what, use in (("saturate", "whose torques can be clipped"), ("control_period", "to be called")):
            if options.get(what):
                given[what].wrong(f"there is no controller {use}", "add [controller] or leave it out")
    whole = not root.problems and start is not None and duration is not None
    return _Scenario(robot, start, duration, torque, events, options, outputs) if whole else None


def _outputs(given: Entry) -> dict[str, str]:
    """The names of files by kind; each kind has suffixes of its own, so that the names differ."""
    found = {what: entry.text("the name of a file") or "" for what, entry in given.table((), tuple(_SUFFIXES)).items()}
    for what, name in found.items():
        if name and Path(name).suffix.lower() not in _SUFFIXES[what]:
            given.below(what).wrong(f"the name must end in {', '.join(_SUFFIXES[what])}; got {shown(name)!r}")
    return found


def _start(given: Entry, robot: KinematicTree) -> State | None:
    before = len(given.problems)
    fields = given.table((), ("position", "velocity"))
    q = _if_given(fields, "position", lambda x: _by_name(x, robot.positions), {})
    qd = _if_given(fields, "velocity", lambda x: _by_name(x, robot.coordinates), {})
    return given.made(State, robot, q, qd) if len(given.problems) == before else None


def _stops(given: Entry, joints: Sequence[tuple[str, Joint]], present: _Present) -> Stops | None:
    """The same stop at all limits, or a table of stops by joint, for those that the run may have."""
    if not isinstance(given.value, dict) or "stiffness" in given.value:
        return _stop(given)
    found = {}
    for name, entry in _named(given, dict(joints), present, "there is no such joint"):
        stop = _stop(entry)
        if all(joint.limits is None for known, joint in joints if known == name):
            entry.wrong("the joint has no limits", "leave it out")
        elif stop is not None:
            found[name] = stop
    return found


def _stop(given: Entry) -> Stop | None:
    """The word "inelastic", or the numbers of a spring."""
    if given.value == "inelastic":
        return "inelastic"
    if isinstance(given.value, dict):
        spring: SpringStop | None = _called(given, SpringStop)
        return spring
    return given.unexpected("'inelastic', the numbers of a spring, {stiffness = …, damping = …}, or a table of joints")


def _named(given: Entry, known: Collection[str], present: _Present | None, problem: str) -> Iterator[tuple[str, Entry]]:
    """The entries of a table that have known names; others are problems, unless they are doubtful."""
    for name, entry in given.entries().items():
        if name in known:
            yield name, entry
        elif present is None or not present.doubtful(name):
            entry.wrong(problem, entry.near(name, known))


def _by_name(given: Entry, names: Sequence[str], present: _Present | None = None) -> dict[str, Any]:
    """Numbers by name, but those that are doubtful; the entries of a joint may be given together, as a list."""
    counts = {name: 0 for name in names}
    for stem in (name.rpartition("[")[0] for name in names if "[" in name):
        counts[stem] = counts.get(stem, 0) + 1
    found: dict[str, Any] = {}
    for name, entry in _named(given, counts, present, "there is no such coordinate"):
        found[name] = entry.number() if name in names else entry.numbers(counts[name])
    return {name: value for name, value in found.items() if value is not None}


def _controller(
    given: Entry, robot: KinematicTree, start: State | None, joints: Sequence[tuple[str, Joint]], present: _Present
) -> Torque | None:
    """The controller, which may name all joints that the run may have; ``start`` is None if it is not valid."""
    before = len(given.problems)
    kind = given.variant("type", _CONTROLLERS)
    fields = {} if kind is None else given.table(("type",), _CONTROLLERS[kind])
    if kind in (None, "none"):
        return None
    if kind == "constant":
        return partial(_constant, _if_given(fields, "torque", lambda x: _torque(x, joints, present), {}))
    # Joints of one freedom that the schedule brings.
    brought = {name: joint for name, joint in joints if joint.nv == 1 and name not in robot.positions}
    target = _if_given(fields, "target", lambda x: _by_name(x, [*robot.positions, *brought], present), {})
    own = [name for name in robot.joints if robot.joint(name).nv and not robot.joint(name).passive]
    active = [*own, *(name for name, joint in brought.items() if not joint.passive)]
    stiffness, damping = (
        _if_given(fields, what, lambda x: _gains(x, own, active, present), {}) for what in ("stiffness", "damping")
    )
    for name in [name for name in brought if name in target and name not in stiffness]:
        fields["target"].wrong(f"joint {name!r} has no stiffness", "give stiffness as a table that names it")
    compensate = _if_given(fields, "gravity_compensation", Entry.flag, True)
    if len(given.problems) > before:
        return None
    begin = State(robot) if start is None else start
    later = {name: target.pop(name, 0.0) for name in brought}
    held = dict(zip(begin.positions, begin.q.tolist(), strict=True)) | target
    goal = fields.get("target", given).made(State, robot, held)
    if goal is None:
        return None
    return _Hold(dict(zip(goal.positions, goal.q.tolist(), strict=True)) | later, stiffness, damping, compensate)


def _torque(given: Entry, joints: Sequence[tuple[str, Joint]], present: _Present) -> dict[str, Any]:
    """Torques by coordinate, of joints that are active at some time."""
    freedoms = [(x, name, joint) for name, joint in joints for x in joint.freedom_names(name)]
    torque = _by_name(given, list(dict.fromkeys(x for x, _, _ in freedoms)), present)
    driven = {label for *labels, joint in freedoms if not joint.passive for label in labels}
    for name in torque:
        if name not in driven:
            given.wrong(f"joint {name!r} is passive", "leave it out")
    return torque


def _gains(given: Entry, own: Sequence[str], active: Sequence[str], present: _Present) -> dict[str, float]:
    """A gain by joint: one number for the robot's own active ones, or numbers for some of all active ones."""
    if isinstance(given.value, dict):
        return {name: _gain(x) for name, x in _named(given, active, present, "there is no such active joint")}
    return dict.fromkeys(own, _gain(given))


def _gain(given: Entry) -> float:
    value = given.number()
    if value is not None and value < 0:
        given.wrong(f"a gain must not be negative; got {value}")
    return float(value or 0.0)


# The schedule: changes of the robot at times, or as a number passes a value

# What a grasp must say, because the payload of a file brings neither.
_NEEDED = {"grasp": ("name", "twist")}


class _Present:
    """The robot after the events that could be tried, and the names of the others, which are not searched for."""

    def __init__(self, robot: KinematicTree) -> None:
        self.tree = robot.copy()
        self.failed: list[str] = []

    def fail(self, given: Any) -> None:
        """Note the names of an event that could not be tried, given as the value of the file."""
        event = given if isinstance(given, Mapping) else {}
        kind = KINDS.get(str(event.get("event")))
        # What has a name of its own may bring any without it, as a whole tree does without a prefix; all begin with "".
        name = event.get("name")
        named = isinstance(name, str) and name != "" and not isinstance(event.get("body"), str)
        anything = (kind is None or "name" in keys_of(kind)) and not (named or isinstance(event.get("prefix"), str))
        self.failed += [""] if anything else _names(event)

    def doubtful(self, name: str) -> bool:
        """Whether an event that could not be tried may have brought or changed what has this name."""
        return name.startswith(tuple(self.failed))

    def known(self, what: str, given: Entry, names: str = "") -> str | None:
        """A name of a link, joint, loop or coordinate, in the tree's list of these; doubtful names are None too."""
        name, known = given.text(f"the name of a {what}"), getattr(self.tree, names or f"{what}s")
        if name is None or name in known or self.doubtful(name):
            return name if name in known else None
        return given.wrong(f"there is no {what} {name!r} at that time", given.near(name, known))


def _names(event: Mapping[str, Any], *others: str) -> list[str]:
    """The names that an event brings or changes: of links and joints, and beginnings of names."""
    joint = event.get("joint")
    inner = [joint.get("name")] if isinstance(joint, Mapping) else [joint]
    found = [*(event.get(key) for key in ("name", "prefix", "what", "link", "loop", *others)), *inner]
    return [name for name in found if isinstance(name, str) and name]


def _schedule(given: Entry, present: _Present, duration: float | None, beside: Beside) -> list[Scheduled[Any]]:
    """The events of a list, each tried on the robot: in the order of times, or on a condition after the one before."""

    def time(given: Entry) -> float | None:
        seconds = given.number(what="a number of seconds")
        if seconds is not None and not 0 <= seconds <= (seconds if duration is None else duration):
            end = "…" if duration is None else f"{duration:g}"
            return given.wrong(f"the run lasts from 0 to {end} s; got {seconds}")
        return None if seconds is None else float(seconds)

    def payload(given: Entry) -> Any:
        if isinstance(given.value, dict) and given.value.keys().isdisjoint(("effective", "format", "name")):
            return _called(given, _body)
        return named_robot(given, beside) if isinstance(given.value, str) else of_records["payload"](given)

    of_records = readers(KinematicTree)
    read: Readers = {
        **of_records,
        **{what: partial(present.known, what) for what in ("link", "joint", "loop")},
        "payload": payload,
        "condition": lambda given: _condition(given, present),
        float: time,
        Joint: _joint,
        Inertia: _inertia,
    }
    found, order = [], 0.0
    for entry in given.items("a list of events, [[schedule]]"):
        own = time(Entry(entry.below("time").value, "", []))
        order = order if own is None else own
        found.append((order, entry))
    events = [_event(entry, present, read) for _, entry in sorted(found, key=lambda item: item[0])]
    return [event for event in events if event is not None]


def _event(given: Entry, present: _Present, read: Readers) -> Scheduled[Any] | None:
    """An event that the robot can make, which it has made then."""
    kind, event = given.variant("event", KINDS), None
    if kind is not None:
        table, due = given, ("time" in given.value) != ("when" in given.value)
        if not due:
            given.wrong("an event has either a time or a condition", "give one of the keys 'time' and 'when'")
            table = Entry({key: x for key, x in given.value.items() if key != "when"}, given.place, given.problems)
        event = read_fields(table, KINDS[kind], read, ("event", *_NEEDED.get(kind, ())))
        event = event if due else None
    try:
        if event is not None:
            event.restructure(present.tree)
            return event
    except ScrewdynError as error:
        if not any(map(present.doubtful, _names(given.value, "to"))):
            given.wrong(str(error))
    present.fail(given.value)
    return None


def _body(
    mass: Any, com: Any = (0.0, 0.0, 0.0), box: Any = None, sphere: Any = None, cylinder: Any = None, tensor: Any = None
) -> Link:
    """A link of any name, whose inertia is also its shape if it is that of a solid."""
    given = {"box": box, "sphere": sphere, "cylinder": cylinder, "tensor": tensor}
    found = {kind: size for kind, size in given.items() if size is not None}
    if len(found) > 1:
        raise ScrewdynError(f"{' and '.join(found)} are given; keep one")
    if not found.keys() - {"tensor"}:
        xx, xy, xz, yy, yz, zz = tensor or [0.0] * 6
        return Link("payload", Inertia(mass, com, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
    ((kind, size),) = found.items()
    sizes = size if kind == "cylinder" else [size]
    inertia = getattr(Inertia, kind)(mass, *sizes, com=com)
    return Link("payload", inertia, (getattr(Shape, kind)(*sizes, pose=com),))


def _inertia(given: Entry) -> Inertia | None:
    """That of a body, or its record."""
    if isinstance(given.value, dict) and "effective" in given.value:
        record: Inertia | None = read_part(Inertia, given)
        return record
    body = _called(given, _body)
    return None if body is None else body.inertia


def _joint(given: Entry) -> Joint | None:
    """A joint by its function and its arguments, or by its record."""
    if isinstance(given.value, dict) and "type" not in given.value and given.value.keys() & {"screws", "chart"}:
        joint: Joint | None = read_part(Joint, given)
    else:
        kind = given.variant("type", makers.KINDS)
        joint = None if kind is None else _called(given, makers.KINDS[kind], "type")
    if joint is not None and joint.mimic is not None:
        return given.wrong("an event cannot bring a joint that follows another one", "leave out 'mimic'")
    return joint


def _called(given: Entry, make: Callable[..., Any], *others: str) -> Any:
    """What a function makes of its arguments, which are the keys of a table besides some others."""
    known = inspect.signature(make).parameters
    required = tuple(name for name, x in known.items() if x.default is x.empty)
    fields = given.table((*others, *required), tuple(name for name in known if name not in required))
    values = {name: _READ.get(name, Entry.number)(entry) for name, entry in fields.items() if name in known}
    whole = None not in values.values() and {*required} <= values.keys()
    return given.made(make, **values) if whole else None


def _axis(given: Entry) -> Any:
    if isinstance(given.value, str):
        return given.one_of("x", "y", "z", "-x", "-y", "-z")
    return given.numbers(3)


# Arguments of joints and of what they contain, and of bodies, that are not one number.
_READ: dict[str, Callable[[Entry], Any]] = {
    "axis": _axis,
    "axis1": _axis,
    "axis2": _axis,
    "point": lambda given: given.numbers(3),
    "limits": lambda given: given.numbers(2),
    "passive": Entry.flag,
    "name": Entry.text,
    "rotor": lambda given: _called(given, Rotor),
    "com": lambda given: given.numbers(3),
    "box": lambda given: given.numbers(3),
    "cylinder": lambda given: given.numbers(2),
    "tensor": lambda given: given.numbers(6),
    "carrier": Entry.text,
    "mimic": lambda given: _called(given, Mimic),
    "joint": Entry.text,
}


# The numbers that may pass a value, and what lists their names in a tree.
_NUMBERS = {"position": "positions", "velocity": "coordinates", "x": "links", "y": "links", "z": "links"}
_SIDES = {"above": 1.0, "below": -1.0}


def _passed(number: str, name: str, side: str, value: float, after: float, t: float, state: State) -> float | bool:
    """How far a position, a rate or a coordinate of an origin is beyond a value; False earlier, or without the name."""
    tree: Any = state.tree
    if t < after or name not in getattr(tree, _NUMBERS[number]):
        return False
    if number in ("position", "velocity"):
        found = state[name] if number == "position" else state.velocity(name)
    else:
        found = tree.forward_kinematics(name, state.q)["xyz".index(number), 3]
    return _SIDES[side] * (float(found) - value)


def _condition(given: Entry, present: _Present) -> Callable[[float, State], float | bool] | None:
    """A condition, such as ``{z = "tool0", below = 0.2}``; the robot must have the name that it gives."""
    before = len(given.problems)
    fields = given.table((), (*_NUMBERS, *_SIDES, "after"))
    numbers, sides = ([key for key in keys if key in fields] for keys in (_NUMBERS, _SIDES))
    for what, found, known in (("number", numbers, _NUMBERS), ("side", sides, _SIDES)):
        if isinstance(given.value, dict) and len(found) != 1:
            given.wrong(f"expected one {what}, of {', '.join(known)}; got {' and '.join(found) or 'none'}")
    if len(given.problems) > before:
        return None
    (number,), (side,) = numbers, sides
    what = "coordinate" if number in ("position", "velocity") else "link"
    present.known(what, fields[number], _NUMBERS[number])
    value = fields[side].number()
    after = fields["after"].number(what="a number of seconds") if "after" in fields else 0.0
    if len(given.problems) > before:
        return None
    return partial(_passed, number, fields[number].value, side, float(value), float(after))


def run_scenario(path: Path, folder: Path, progress: bool = False, overwrite: bool = False, xacro: bool = False) -> str:
    """Simulate a scenario, write its output files to a folder, and return a summary."""
    scenario = read_scenario(path, xacro)
    outputs = output_paths(scenario.outputs, folder, overwrite)
    if "film" in outputs:
        film_path(outputs["film"])
    start, torque, events = scenario.start, scenario.torque, scenario.events
    run = simulate(scenario.robot.copy(), start, scenario.duration, torque, events, progress, **scenario.options)
    write: dict[str, Callable[[Path], Any]] = {
        "csv": run.to_csv,
        "npz": run.to_npz,
        "figure": lambda path: run.plot().savefig(path),
        "film": lambda path: run.animate(path, progress=progress),
    }
    for what, target in outputs.items():
        write[what](target)
        note_output(target, folder)
    due, end = [happened.what for happened in run.events], run.states[-1]
    width = max(map(len, (*end.positions, *end.coordinates)), default=0)
    never = [x.verb.removesuffix(" of") for x in events if x not in due]
    return "\n".join(
        [
            str(run.explain()),
            *(f"Never: {verb}, whose condition did not hold." for verb in never),
            "",
            "Positions at the end:",
            *(f"  {name:{width}} {end[name]:12.6g}" for name in end.positions),
            "",
            "Rates at the end:",
            *(f"  {name:{width}} {end.velocity(name):12.6g}" for name in end.coordinates),
        ]
    )
