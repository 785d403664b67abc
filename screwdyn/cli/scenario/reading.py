"""The TOML file of a scenario."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from screwdyn import robots
from screwdyn.cli.robot_files import Beside, named_robot
from screwdyn.cli.scenario.control import Hold, constant
from screwdyn.cli.scenario.outputs import FIGURES, FILMS
from screwdyn.cli.scenario.present import Present
from screwdyn.cli.scenario.schedule import schedule
from screwdyn.core.errors import ScenarioError, ScrewdynError
from screwdyn.io.document import Entry, PlacedProblem, listed, shown
from screwdyn.mechanism.joint import Joint
from screwdyn.physics.state import State
from screwdyn.simulation.equations import SpringStop, Stop, Stops, Torque, joints_of
from screwdyn.simulation.events import Scheduled
from screwdyn.simulation.integrators import METHODS
from screwdyn.tree import KinematicTree

__all__ = ["Scenario", "read_scenario"]

_SUFFIXES = {"csv": (".csv",), "npz": (".npz",), "figure": FIGURES, "film": FILMS}


@dataclass(frozen=True)
class Scenario:
    """A simulation: the arguments of :func:`screwdyn.simulate`, and the names of output files.

    Attributes
    ----------
    robot : KinematicTree
        At the start.
    start : State
        Of the robot.
    duration : float
        Seconds.
    torque : callable or None
    events : sequence of events
    step, control_period : float or None
        Seconds.
    stops : "inelastic", SpringStop, mapping from joint to one of them, or None
        At joint limits.
    saturate : bool
        Whether torques are clipped at the efforts of the joints.
    method : str
        Of integration.
    outputs : mapping from "csv", "npz", "figure" and "film" to the name of a file
    """

    robot: KinematicTree
    start: State
    duration: float
    torque: Torque | None = None
    events: Sequence[Scheduled] = ()
    step: float | None = None
    control_period: float | None = None
    stops: Stops | None = None
    saturate: bool = False
    method: str = "DOP853"
    outputs: Mapping[str, str] = field(default_factory=dict)


def read_scenario(path: Path, xacro: bool = False) -> Scenario:
    """Read a scenario; files that it names are searched for in its own folder, and xacro is expanded if `xacro`.

    Raises
    ------
    ScenarioError
        Lists every problem with the keys that lead to it, or states why the file cannot be read.
    """
    problems: list[PlacedProblem] = []
    scenario = _scenario(Entry(_parsed(path), "", problems), Beside(path.parent, xacro))
    if scenario is None or problems:
        raise ScenarioError(listed(str(path), problems), problems)
    return scenario


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise ScenarioError(f"cannot read the file {str(path)!r}: {error.strerror}") from None
    except RecursionError:
        problem = PlacedProblem("", "arrays and tables are nested too deeply")
    except ValueError as error:  # also of numbers with thousands of digits, and of bytes that are not UTF-8
        problem = PlacedProblem("", f"not valid TOML: {error}")
    raise ScenarioError(listed(str(path), [problem]), [problem])


def _scenario(root: Entry, beside: Beside) -> Scenario | None:
    given = root.table(
        ("robot", "duration"),
        (
            "floating_base",
            "gravity",
            "start",
            "controller",
            "control_period",
            "schedule",
            "output",
            "step",
            "stops",
            "saturate",
            "method",
        ),
    )
    times = {what: _positive(given[what]) for what in ("duration", "step", "control_period") if what in given}
    outputs = _outputs(given["output"]) if "output" in given else {}
    method = given["method"].one_of(*METHODS) if "method" in given else Scenario.method
    robot = _robot(given, beside) if "robot" in given else None
    if robot is None:
        return None
    start = _start(given["start"], robot) if "start" in given else State(robot)
    duration = times.get("duration")
    present = Present(robot)
    events = schedule(given["schedule"], present, duration, beside) if "schedule" in given else []
    joints = [named for found in (joints_of(robot), *(x.joints(robot) for x in events)) for named in found.items()]
    stops = _stops(given["stops"], joints, present) if "stops" in given else None
    before = len(root.problems)
    torque = _controller(given["controller"], robot, start, joints, present) if "controller" in given else None
    idle = torque is None and len(root.problems) == before
    saturate = bool(given["saturate"].flag()) if "saturate" in given else False
    if saturate and idle:
        given["saturate"].wrong(
            "there is no controller whose torques can be clipped", "add [controller] or leave it out"
        )
    if "control_period" in times and idle:
        given["control_period"].wrong("there is no controller to be called", "add [controller] or leave it out")
    if root.problems or start is None or duration is None:
        return None
    step, period = times.get("step"), times.get("control_period")
    return Scenario(robot, start, duration, torque, events, step, period, stops, saturate, method, outputs)


def _outputs(given: Entry) -> dict[str, str]:
    """The names of files by kind; each kind has suffixes of its own, so that the names differ."""
    found: dict[str, str] = {}
    for what, entry in given.table((), tuple(_SUFFIXES)).items():
        name = entry.text("the name of a file")
        if name is not None and Path(name).suffix.lower() not in _SUFFIXES[what]:
            entry.wrong(f"the name must end in {', '.join(_SUFFIXES[what])}; got {shown(name)!r}")
        found[what] = name or ""
    return found


def _positive(given: Entry) -> float | None:
    value = given.number(what="a number of seconds > 0")
    if value is not None and value <= 0:
        given.wrong(f"expected a number of seconds > 0; got {value}")
        return None
    return None if value is None else float(value)


def _robot(given: dict[str, Entry], beside: Beside) -> KinematicTree | None:
    floating = given["floating_base"].flag() if "floating_base" in given else False
    gravity = given["gravity"].numbers(3) if "gravity" in given else None
    if floating and given["robot"].value in robots.__all__:
        given["floating_base"].wrong("this is for URDF files")
    robot = named_robot(given["robot"], beside, bool(floating))
    if robot is not None and gravity is not None:
        robot.gravity = gravity
    return robot


def _stops(given: Entry, joints: Sequence[tuple[str, Joint]], present: Present) -> Stops | None:
    """The same stop at all limits, or a table of stops by joint, for those that the run may have."""
    if not isinstance(given.value, dict) or "stiffness" in given.value:
        return _stop(given)
    found = {}
    limited = {name for name, joint in joints if joint.limits is not None}
    for name, entry in given.entries().items():
        stop = _stop(entry)
        if present.doubtful(name):
            continue
        if name not in dict(joints):
            entry.wrong("there is no such joint", entry.near(name, dict(joints)))
        elif name not in limited:
            entry.wrong("the joint has no limits", "leave it out")
        elif stop is not None:
            found[name] = stop
    return found


def _stop(given: Entry) -> Stop | None:
    """The word "inelastic", or the numbers of a spring."""
    if given.value == "inelastic":
        return "inelastic"
    if not isinstance(given.value, dict):
        given.unexpected("'inelastic', the numbers of a spring, {stiffness = …, damping = …}, or a table of joints")
        return None
    fields = given.table(("stiffness",), ("damping",))
    values = {what: entry.number() for what, entry in fields.items()}
    if "stiffness" not in values or None in values.values():
        return None
    try:
        return SpringStop(**values)
    except ScrewdynError as error:
        given.wrong(str(error))
        return None


def _start(given: Entry, robot: KinematicTree) -> State | None:
    before = len(given.problems)
    fields = given.table((), ("position", "velocity"))
    values = {
        what: _by_name(fields[what], names) if what in fields else {}
        for what, names in (("position", robot.positions), ("velocity", robot.coordinates))
    }
    try:
        return State(robot, values["position"], values["velocity"])
    except ScrewdynError as error:
        if len(given.problems) == before:
            given.wrong(str(error))
        return None


def _by_name(given: Entry, names: Sequence[str], present: Present | None = None) -> dict[str, Any]:
    """Numbers by name, but those that are doubtful; the entries of a joint may be given together, as a list."""
    stems = {stem for name in names for stem, bracket, _ in (name.rpartition("["),) if bracket}
    found: dict[str, Any] = {}
    for name, entry in given.entries().items():
        if name in names:
            found[name] = entry.number()
        elif name in stems:
            count = sum(x.rpartition("[")[0] == name for x in names)
            found[name] = entry.numbers(count)
        elif present is None or not present.doubtful(name):
            entry.wrong("there is no such coordinate", entry.near(name, [*names, *stems]))
    return {name: value for name, value in found.items() if value is not None}


_CONTROLLERS = {
    "none": (),
    "constant": ("torque",),
    "pd": ("target", "stiffness", "damping", "gravity_compensation"),
}


def _controller(
    given: Entry, robot: KinematicTree, start: State | None, joints: Sequence[tuple[str, Joint]], present: Present
) -> Torque | None:
    """The controller, which may name all joints that the run may have; ``start`` is None if it is not valid."""
    before = len(given.problems)
    kind = given.variant("type", _CONTROLLERS)
    if kind is None:
        return None
    fields = given.table(("type",), _CONTROLLERS[kind])
    if kind == "none":
        return None
    if kind == "constant":
        return constant(_torque(fields["torque"], joints, present) if "torque" in fields else {})
    # Joints of one freedom that the schedule brings.
    brought = {name: joint for name, joint in joints if joint.nv == 1 and name not in robot.positions}
    target = _by_name(fields["target"], [*robot.positions, *brought], present) if "target" in fields else {}
    wanted = [name for name in brought if name in target]
    later = {name: target.pop(name, 0.0) for name in brought}
    active = [name for name, joint in brought.items() if not joint.passive]
    gains = {
        what: _gains(fields[what], robot, active, present) if what in fields else {}
        for what in ("stiffness", "damping")
    }
    for name in wanted:
        if name not in gains["stiffness"]:
            fields["target"].wrong(f"joint {name!r} has no stiffness", "give stiffness as a table that names it")
    compensate = fields["gravity_compensation"].flag() if "gravity_compensation" in fields else True
    if len(given.problems) > before:
        return None
    begin = State(robot) if start is None else start
    held = dict(zip(begin.positions, begin.q.tolist(), strict=True))
    try:
        goal = State(robot, held | target)
    except ScrewdynError as error:
        fields["target"].wrong(str(error))
        return None
    positions = dict(zip(goal.positions, goal.q.tolist(), strict=True))
    return Hold(positions | later, gains["stiffness"], gains["damping"], bool(compensate))


def _torque(given: Entry, joints: Sequence[tuple[str, Joint]], present: Present) -> dict[str, Any]:
    """Torques by coordinate, of joints that are active at some time."""
    owners = [(label, joint) for name, joint in joints for label in (name, *joint.freedom_names(name)) if joint.nv]
    torque = _by_name(
        given, list(dict.fromkeys(x for name, joint in joints for x in joint.freedom_names(name))), present
    )
    driven = {label for label, joint in owners if not joint.passive}
    for name in torque:
        if name not in driven:
            given.wrong(f"joint {name!r} is passive", "leave it out")
    return torque


def _gains(given: Entry, robot: KinematicTree, later: Sequence[str], present: Present) -> dict[str, float]:
    """A gain by joint: one number for all active ones of the start, or numbers for some, also for later ones."""
    active = [name for name in robot.joints if robot.joint(name).nv and not robot.joint(name).passive]
    if isinstance(given.value, dict):
        found = {}
        for name, entry in given.entries().items():
            if name not in (*active, *later) and not present.doubtful(name):
                entry.wrong("there is no such active joint", entry.near(name, [*active, *later]))
            found[name] = _gain(entry)
        return found
    return dict.fromkeys(active, _gain(given))


def _gain(given: Entry) -> float:
    value = given.number()
    if value is not None and value < 0:
        given.wrong(f"a gain must not be negative; got {value}")
    return 0.0 if value is None else float(value)
