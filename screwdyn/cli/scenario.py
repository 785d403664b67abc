"""Scenarios: simulations that a TOML file describes, with a schedule of changes (docs/files.md)."""

from __future__ import annotations

import inspect
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import screwdyn as sd
from screwdyn.changes.catalogue import KINDS, Readers, keys_of, read_fields, readers
from screwdyn.changes.change import Scheduled
from screwdyn.cli.files import named_robot, note_output, output_paths, require_readable
from screwdyn.core.types import Array, aligned
from screwdyn.io.document import Entry, PlacedProblem, listed, shown
from screwdyn.io.json_text import read_part
from screwdyn.io.urdf import Xacro
from screwdyn.mechanism import joint as makers
from screwdyn.simulation.equations import Stop, Stops, Torque, joints_of
from screwdyn.simulation.integrators import METHODS
from screwdyn.simulation.simulate import simulate
from screwdyn.views.film import film_path

# Formats of figures that Matplotlib writes without further programs.
FIGURES = (".png", ".svg", ".pdf", ".eps", ".ps", ".jpg", ".jpeg", ".tif", ".tiff", ".webp")
_SUFFIXES = {"csv": (".csv",), "npz": (".npz",), "figure": FIGURES, "film": (".html", ".gif", ".mp4")}


def _constant(torque: Mapping[str, Any], t: float, state: sd.State) -> dict[str, Any]:
    """The same torques at all times, N m or N by coordinate or joint, as far as the tree has them at that time."""
    tree = state.tree
    known = {*state.coordinates, *(name for name in tree.joints if tree.joint(name).nv)}
    return {name: value for name, value in torque.items() if name in known}


def _held(
    goal: Mapping[str, float],
    stiffness: Mapping[str, float],
    damping: Mapping[str, float],
    compensate: bool,
    t: float,
    state: sd.State,
) -> dict[str, Array]:
    """τ = K (q_goal ⊖ q) − D q̇ + g(q) on the active joints, g if ``compensate``; ⊖ is along the freedoms of joints.

    The goal is by position, rad and m, the gains by joint, N m/rad and N m s/rad, or N/m and N s/m.
    """
    tree: Any = state.tree
    names = [name for name in tree.joints for _ in range(tree.joint(name).nv)]
    K, D = (np.array([gains.get(name, 0.0) for name in names]) for gains in (stiffness, damping))
    end = [goal.get(name, x) for name, x in zip(state.positions, state.q.tolist(), strict=True)]
    tau = K * tree.difference(state.q, end) - D * state.qd
    if compensate:
        tau += tree.gravity_vector(state.q)
    return {name: x for name, x, idle in zip(tree.coordinates, tau, tree.model.passive, strict=True) if not idle}


def read_scenario(path: Path, xacro: Xacro = False) -> _Scenario:
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
    scenario = None if problems else _Scenario(root, path.parent, xacro)
    if scenario is None or problems:
        raise sd.ScenarioError(listed(str(path), problems), problems)
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
# What a grasp must say, because the payload of a file brings neither.
_NEEDED = {"grasp": ("name", "twist")}
# The numbers that may pass a value, and what lists their names in a tree.
_NUMBERS = {"position": "positions", "velocity": "coordinates", "x": "links", "y": "links", "z": "links"}
_SIDES = {"above": 1.0, "below": -1.0}


class _Scenario:
    """A simulation, read from the table of a file; it is whole if that has no problems.

    The events are tried on a tree, and what those would bring that cannot be is not searched for.
    """

    robot: sd.KinematicTree  # at the start
    start: sd.State
    duration: float
    torque: Torque | None = None
    events: Sequence[Scheduled[Any]] = ()
    options: dict[str, Any]  # of :func:`screwdyn.simulate`, those that are given
    outputs: Mapping[str, str]  # names of files by their kinds

    def __init__(self, root: Entry, folder: Path, xacro: Xacro) -> None:
        self.named_robot = partial(named_robot, folder=folder, xacro=xacro)
        self.of_records = readers(sd.KinematicTree)
        self.failed: list[str] = []  # names, or their beginnings, of events that could not be tried
        others = ("floating_base", "gravity", "start", "controller", "schedule", "output", "stops")
        given = root.table(("robot", "duration"), (*others, *_OPTIONS))

        def read(key: str, by: Callable[[Entry], Any], default: Any = None) -> Any:
            return by(given[key]) if key in given else default

        self.options = {what: by(given[what]) for what, by in _OPTIONS.items() if what in given}
        self.duration, self.outputs = read("duration", _positive), read("output", _outputs, {})
        floating, gravity = bool(read("floating_base", Entry.flag)), read("gravity", lambda x: x.numbers(3))
        if floating and root.value.get("robot") in sd.robots.__all__:
            given["floating_base"].wrong("this is for URDF files")
        robot = read("robot", partial(self.named_robot, floating=floating))
        if robot is None:
            return
        if gravity is not None:
            robot.gravity = gravity
        self.robot, self.tree = robot, robot.copy()
        self.start = read("start", self.state) or sd.State(robot)
        self.events = read("schedule", self.schedule, ())
        brought = (event.joints(robot) for event in self.events)
        self.joints = [named for found in (joints_of(robot), *brought) for named in found.items()]
        if "stops" in given:
            self.options["stops"] = self.stops(given["stops"])
        before = len(root.problems)
        self.torque = read("controller", self.controller)
        if self.torque is None and len(root.problems) == before:
            for what, use in (("saturate", "whose torques can be clipped"), ("control_period", "to be called")):
                if self.options.get(what):
                    given[what].wrong(f"there is no controller {use}", "add [controller] or leave it out")

    def named(self, given: Entry, known: Collection[str], problem: str) -> Iterator[tuple[str, Entry]]:
        """The entries of a table that have known names; others are problems, unless they are doubtful."""
        for name, entry in given.entries().items():
            if name in known:
                yield name, entry
            elif not self.doubtful(name):
                entry.wrong(problem, entry.near(name, known))

    def by_name(self, given: Entry, names: Collection[str]) -> dict[str, Any]:
        """Numbers by name, but those that are doubtful; the entries of a joint may be given together, as a list."""
        counts = Counter(name.rpartition("[")[0] for name in names if "[" in name)
        entries = self.named(given, dict.fromkeys((*names, *counts)), "there is no such coordinate")
        found = {name: x.number() if name in names else x.numbers(counts[name]) for name, x in entries}
        return {name: value for name, value in found.items() if value is not None}

    def state(self, given: Entry) -> sd.State | None:
        """The state at the start."""
        names = {"position": self.robot.positions, "velocity": self.robot.coordinates}
        fields = given.read({}, {what: partial(self.by_name, names=known) for what, known in names.items()})
        return None if fields is None else given.made(sd.State, self.robot, *map(fields.get, names))

    def stops(self, given: Entry) -> Stops | None:
        """The same stop at all limits, or a table of stops by joint, for those that the run may have."""
        if not isinstance(given.value, dict) or "stiffness" in given.value:
            return _stop(given)
        found, limited = {}, {name for name, joint in self.joints if joint.limits is not None}
        for name, entry in self.named(given, dict(self.joints), "there is no such joint"):
            found[name] = _stop(entry)
            if name not in limited:
                entry.wrong("the joint has no limits", "leave it out")
        return {name: stop for name, stop in found.items() if stop is not None}

    def controller(self, given: Entry) -> Torque | None:
        """The controller, which may name all joints that the run may have."""
        robot = self.robot
        # Joints of one freedom that the schedule brings.
        brought = {name: joint for name, joint in self.joints if joint.nv == 1 and name not in robot.positions}
        own = [name for name in robot.joints if robot.joint(name).nv and not robot.joint(name).passive]
        active = [*own, *(name for name, joint in brought.items() if not joint.passive)]

        def gains(given: Entry) -> dict[str, float]:
            """A gain by joint: one number for the robot's own active ones, or numbers for some of all active ones."""
            if isinstance(given.value, dict):
                return {name: _gain(x) for name, x in self.named(given, active, "there is no such active joint")}
            return dict.fromkeys(own, _gain(given))

        target = partial(self.by_name, names=[*robot.positions, *brought])
        kinds: dict[str, dict[str, Callable[[Entry], Any]]] = {
            "none": {},
            "constant": {"torque": self.torques},
            "pd": {"target": target, "stiffness": gains, "damping": gains, "gravity_compensation": Entry.flag},
        }
        kind = given.variant("type", kinds)
        fields = None if kind is None else given.read({"type": Entry.text}, kinds[kind])
        if fields is None or kind == "none":
            return None
        if kind == "constant":
            return partial(_constant, fields.get("torque", {}))
        goals, stiffness, damping = (fields.get(what, {}) for what in ("target", "stiffness", "damping"))
        for name in [name for name in brought if name in goals and name not in stiffness]:
            given.below("target").wrong(f"joint {name!r} has no stiffness", "give stiffness as a table that names it")
        later = {name: goals.pop(name, 0.0) for name in brought}
        held = dict(zip(robot.positions, self.start.q.tolist(), strict=True)) | goals
        goal = given.below("target").made(sd.State, robot, held)
        if goal is None:
            return None
        ends = dict(zip(goal.positions, goal.q.tolist(), strict=True)) | later
        return partial(_held, ends, stiffness, damping, fields.get("gravity_compensation", True))

    def torques(self, given: Entry) -> dict[str, Any]:
        """Torques by coordinate, of joints that are active at some time."""
        freedoms = [(x, name, joint) for name, joint in self.joints for x in joint.freedom_names(name)]
        torque = self.by_name(given, dict.fromkeys(x for x, _, _ in freedoms))
        driven = {label for *labels, joint in freedoms if not joint.passive for label in labels}
        for name in torque:
            if name not in driven:
                given.wrong(f"joint {name!r} is passive", "leave it out")
        return torque

    # The schedule: changes of the robot at times, or as a number passes a value

    def schedule(self, given: Entry) -> list[Scheduled[Any]]:
        """The events, each tried on the tree: in the order of times, or on a condition after the one before."""
        read: Readers = {
            **self.of_records,
            **{what: partial(self.known, what) for what in ("link", "joint", "loop")},
            "payload": self.payload,
            "condition": self.condition,
            float: self.time,
            sd.Joint: _joint,
            sd.Inertia: _inertia,
        }
        found, order = [], 0.0
        for entry in given.items("a list of events, [[schedule]]"):
            own = self.time(Entry(entry.below("time").value, "", []))
            order = order if own is None else own
            found.append((order, entry))
        events = [self.event(entry, read) for _, entry in sorted(found, key=lambda item: item[0])]
        return [event for event in events if event is not None]

    def event(self, given: Entry, read: Readers) -> Scheduled[Any] | None:
        """An event that the robot can make, which it has made then."""
        kind, event = given.variant("event", KINDS), None
        if kind is not None:
            due = kind == "break" or ("time" in given.value) != ("when" in given.value)
            if not due:
                given.wrong("an event has either a time or a condition", "give one of the keys 'time' and 'when'")
            keys = {key: x for key, x in given.value.items() if due or key != "when"}
            table = Entry(keys, given.place, given.problems)
            event = read_fields(table, KINDS[kind], read, ("event", *_NEEDED.get(kind, ())))
            event = event if due else None
        try:
            if event is not None:
                event.restructure(self.tree)
                return event
        except sd.ScrewdynError as error:
            if not any(map(self.doubtful, _names(given.value, "to"))):
                given.wrong(str(error))
        self.fail(given.value)
        return None

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

    def time(self, given: Entry) -> float | None:
        seconds = given.number(what="a number of seconds")
        if seconds is not None and not 0 <= seconds <= (seconds if self.duration is None else self.duration):
            end = "…" if self.duration is None else f"{self.duration:g}"
            return given.wrong(f"the run lasts from 0 to {end} s; got {seconds}")
        return None if seconds is None else float(seconds)

    def payload(self, given: Entry) -> Any:
        """A body, its record, or a robot."""
        if isinstance(given.value, str):
            return self.named_robot(given)
        plain = isinstance(given.value, dict) and given.value.keys().isdisjoint(("effective", "format", "name"))
        return _called(given, _body) if plain else self.of_records["payload"](given)

    def condition(self, given: Entry) -> Callable[[float, sd.State], float | bool] | None:
        """A condition, such as ``{z = "tool0", below = 0.2}``; the tree must have the name that it gives."""
        named = {
            number: partial(self.known, "link" if names == "links" else "coordinate", names=names)
            for number, names in _NUMBERS.items()
        }
        seconds = partial(Entry.number, what="a number of seconds")
        fields = given.read({}, {**named, **dict.fromkeys(_SIDES, Entry.number), "after": seconds})
        if fields is None:
            return None
        numbers, sides = ([key for key in keys if key in fields] for keys in (_NUMBERS, _SIDES))
        for what, found, known in (("number", numbers, _NUMBERS), ("side", sides, _SIDES)):
            if len(found) != 1:
                return given.wrong(f"expected one {what}, of {', '.join(known)}; got {' and '.join(found) or 'none'}")
        (number,), (side,) = numbers, sides
        name, value, after = fields[number], float(fields[side]), float(fields.get("after", 0.0))
        return None if name is None else partial(_passed, number, name, side, value, after)


def _outputs(given: Entry) -> dict[str, str]:
    """The names of files by kind; each kind has suffixes of its own, so that the names differ."""
    found = {what: entry.text("the name of a file") or "" for what, entry in given.table((), tuple(_SUFFIXES)).items()}
    for what, name in found.items():
        if name and Path(name).suffix.lower() not in _SUFFIXES[what]:
            given.below(what).wrong(f"the name must end in {', '.join(_SUFFIXES[what])}; got {shown(name)!r}")
    return found


def _stop(given: Entry) -> Stop | None:
    """The word "inelastic", or the numbers of a spring."""
    if given.value == "inelastic":
        return "inelastic"
    if isinstance(given.value, dict):
        spring: sd.SpringStop | None = _called(given, sd.SpringStop)
        return spring
    return given.unexpected("'inelastic', the numbers of a spring, {stiffness = …, damping = …}, or a table of joints")


def _gain(given: Entry) -> float:
    value = given.number()
    if value is not None and value < 0:
        given.wrong(f"a gain must not be negative; got {value}")
    return float(value or 0.0)


def _names(event: Mapping[str, Any], *others: str) -> list[str]:
    """The names that an event brings or changes: of links and joints, and beginnings of names."""
    given = map(event.get, ("name", "prefix", "what", "link", "loop", "joint", *others))
    found = [x.get("name") if isinstance(x, Mapping) else x for x in given]
    return [name for name in found if isinstance(name, str) and name]


def _passed(number: str, name: str, side: str, value: float, after: float, t: float, state: sd.State) -> float | bool:
    """How far a position, a rate or a coordinate of an origin is beyond a value; False earlier, or without the name."""
    tree: Any = state.tree
    if t < after or name not in getattr(tree, _NUMBERS[number]):
        return False
    if number in ("position", "velocity"):
        found = state[name] if number == "position" else state.velocity(name)
    else:
        found = tree.forward_kinematics(name, state.q)["xyz".index(number), 3]
    return _SIDES[side] * (float(found) - value)


# Bodies and joints


def _body(
    mass: Any, com: Any = (0.0, 0.0, 0.0), box: Any = None, sphere: Any = None, cylinder: Any = None, tensor: Any = None
) -> sd.Link:
    """A link of any name, whose inertia is also its shape if it is that of a solid."""
    given = {"box": box, "sphere": sphere, "cylinder": cylinder, "tensor": tensor}
    found = {kind: size for kind, size in given.items() if size is not None}
    if len(found) > 1:
        raise sd.ScrewdynError(f"{' and '.join(found)} are given; keep one")
    if not found.keys() - {"tensor"}:
        xx, xy, xz, yy, yz, zz = tensor or [0.0] * 6
        return sd.Link("payload", sd.Inertia(mass, com, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
    ((kind, size),) = found.items()
    sizes = size if kind == "cylinder" else [size]
    inertia = getattr(sd.Inertia, kind)(mass, *sizes, com=com)
    return sd.Link("payload", inertia, (getattr(sd.Shape, kind)(*sizes, pose=com),))


def _inertia(given: Entry) -> sd.Inertia | None:
    """That of a body, or its record."""
    if isinstance(given.value, dict) and "effective" in given.value:
        record: sd.Inertia | None = read_part(sd.Inertia, given)
        return record
    body = _called(given, _body)
    return None if body is None else body.inertia


def _joint(given: Entry) -> sd.Joint | None:
    """A joint by its function and its arguments, or by its record."""
    if isinstance(given.value, dict) and "type" not in given.value and given.value.keys() & {"screws", "chart"}:
        joint: sd.Joint | None = read_part(sd.Joint, given)
    else:
        kind = given.variant("type", makers.KINDS)
        joint = None if kind is None else _called(given, makers.KINDS[kind], "type")
    if joint is not None and joint.mimic is not None:
        return given.wrong("an event cannot bring a joint that follows another one", "leave out 'mimic'")
    return joint


def _called(given: Entry, make: Callable[..., Any], *others: str) -> Any:
    """What a function makes of its arguments, which are the keys of a table besides some others."""
    known = inspect.signature(make).parameters
    read = {name: _READ.get(name, Entry.number) for name in (*others, *known)}
    required = [*others, *(name for name, x in known.items() if x.default is x.empty)]
    values = given.read({name: read.pop(name) for name in required}, read)
    return None if values is None else given.made(make, **{name: values[name] for name in values if name in known})


def _axis(given: Entry) -> Any:
    return given.one_of("x", "y", "z", "-x", "-y", "-z") if isinstance(given.value, str) else given.numbers(3)


def _list_of(count: int) -> Callable[[Entry], Any]:
    return lambda given: given.numbers(count)


# Arguments of joints and of what they contain, and of bodies, that are not one number.
_READ: dict[str, Callable[[Entry], Any]] = {
    **dict.fromkeys(("axis", "axis1", "axis2"), _axis),
    **dict.fromkeys(("point", "com", "box"), _list_of(3)),
    **dict.fromkeys(("limits", "cylinder"), _list_of(2)),
    **dict.fromkeys(("name", "carrier", "joint", "type"), Entry.text),
    "tensor": _list_of(6),
    "passive": Entry.flag,
    "rotor": lambda given: _called(given, sd.Rotor),
    "mimic": lambda given: _called(given, sd.Mimic),
}


def run_scenario(
    path: Path, folder: Path, progress: bool = False, overwrite: bool = False, xacro: Xacro = False
) -> str:
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
    never = [x.verb.removesuffix(" of") for x in events if x not in due]
    lines = [str(run.explain()), *(f"Never: {verb}, whose condition did not hold." for verb in never)]
    for what, names, value in (("Positions", end.positions, end.__getitem__), ("Rates", end.coordinates, end.velocity)):
        lines += ["", f"{what} at the end:", *aligned([("", name, f"{value(name):.6g}") for name in names], right=(2,))]
    return "\n".join(lines)
