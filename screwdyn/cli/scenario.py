"""Scenarios: simulations that a TOML file describes (docs/files.md)."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from screwdyn import robots
from screwdyn.changes.change import Scheduled
from screwdyn.cli.robot_files import Beside, named_robot
from screwdyn.cli.schedule import Present, called, schedule
from screwdyn.core.errors import ScenarioError, ScrewdynError
from screwdyn.core.types import Array
from screwdyn.io.document import Entry, PlacedProblem, listed, shown
from screwdyn.mechanism.joint import Joint
from screwdyn.physics.state import State
from screwdyn.simulation.equations import SpringStop, Stop, Stops, Torque, joints_of
from screwdyn.simulation.integrators import METHODS
from screwdyn.simulation.simulate import Run, simulate
from screwdyn.tree import KinematicTree
from screwdyn.views.film import film_path

__all__ = ["read_scenario", "run_scenario"]

# Formats of figures that Matplotlib writes without further programs.
FIGURES = (".png", ".svg", ".pdf", ".eps", ".ps", ".jpg", ".jpeg", ".tif", ".tiff", ".webp")
_SUFFIXES = {"csv": (".csv",), "npz": (".npz",), "figure": FIGURES, "film": (".html", ".gif", ".mp4")}
_RECORD = ".screwdyn-outputs.json"
_CONTROLLERS = {
    "none": (),
    "constant": ("torque",),
    "pd": ("target", "stiffness", "damping", "gravity_compensation"),
}


def _constant(torque: Mapping[str, Any]) -> Torque:
    """The same torques at all times, N m or N by coordinate, for the coordinates that the tree has at that time."""

    def function(t: float, state: State) -> dict[str, Any]:
        tree = state.tree
        known = {*state.coordinates, *(name for name in tree.joints if tree.joint(name).nv)}
        return {name: value for name, value in torque.items() if name in known}

    return function


@dataclass(frozen=True)
class _Hold:
    """Proportional-derivative control towards a configuration, τ = K (q_goal ⊖ q) − D q̇ + g(q), on the active joints.

    ⊖ is the difference of positions along the freedoms of a joint. Joints without gains get only g, which includes all
    payloads, and which is added if ``compensate``. The goal has an entry for each position, rad and m, and the gains
    for joints, N m/rad and N m s/rad, or N/m and N s/m.
    """

    goal: Mapping[str, float]
    stiffness: Mapping[str, float]
    damping: Mapping[str, float]
    compensate: bool

    def __call__(self, t: float, state: State) -> dict[str, Array]:
        """Torques by coordinate."""
        tree = state.tree
        assert isinstance(tree, KinematicTree)
        joints = [
            (name, joint.passive) for name in tree.joints for joint in [tree.joint(name)] for _ in range(joint.nv)
        ]
        stiffness, damping = (
            np.array([k.get(name, 0.0) for name, _ in joints]) for k in (self.stiffness, self.damping)
        )
        goal = [self.goal.get(name, x) for name, x in zip(state.positions, state.q.tolist(), strict=True)]
        tau = stiffness * tree.difference(state.q, goal) - damping * state.qd
        if self.compensate:
            tau += tree.gravity_vector(state.q)
        return {name: x for name, x, (_, idle) in zip(tree.coordinates, tau, joints, strict=True) if not idle}


@dataclass(frozen=True)
class _Scenario:
    """A simulation: the arguments of :func:`screwdyn.simulate`, and the names of output files by their kinds."""

    robot: KinematicTree  # at the start
    start: State
    duration: float
    torque: Torque | None
    events: Sequence[Scheduled[Any]]
    options: Mapping[str, Any]  # those that are given, by keyword
    outputs: Mapping[str, str]


def read_scenario(path: Path, xacro: bool = False) -> _Scenario:
    """Read a scenario; files that it names are searched for in its own folder, and xacro is expanded if `xacro`.

    ScenarioError lists every problem with the keys that lead to it, or states why the file cannot be read.
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


def _scenario(root: Entry, beside: Beside) -> _Scenario | None:
    about_robot = ("floating_base", "gravity", "start")
    about_run = ("controller", "control_period", "schedule", "output", "step", "stops", "saturate", "method")
    given = root.table(("robot", "duration"), (*about_robot, *about_run))
    options: dict[str, Any] = {what: _positive(given[what]) for what in ("step", "control_period") if what in given}
    duration = _positive(given["duration"]) if "duration" in given else None
    outputs = _outputs(given["output"]) if "output" in given else {}
    if "method" in given:
        options["method"] = given["method"].one_of(*METHODS)
    robot = _robot(given, beside) if "robot" in given else None
    if robot is None:
        return None
    start = _start(given["start"], robot) if "start" in given else State(robot)
    present = Present(robot)
    events = schedule(given["schedule"], present, duration, beside) if "schedule" in given else []
    joints = [named for found in (joints_of(robot), *(x.joints(robot) for x in events)) for named in found.items()]
    if "stops" in given:
        options["stops"] = _stops(given["stops"], joints, present)
    before = len(root.problems)
    torque = _controller(given["controller"], robot, start, joints, present) if "controller" in given else None
    idle = torque is None and len(root.problems) == before
    if "saturate" in given:
        options["saturate"] = given["saturate"].flag()
    for what, use in (("saturate", "whose torques can be clipped"), ("control_period", "to be called")):
        if idle and options.get(what):
            given[what].wrong(f"there is no controller {use}", "add [controller] or leave it out")
    if root.problems or start is None or duration is None:
        return None
    return _Scenario(robot, start, duration, torque, events, options, outputs)


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
        return given.wrong(f"expected a number of seconds > 0; got {value}")
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
    for name, entry in _named(given, dict(joints), present, "there is no such joint"):
        stop = _stop(entry)
        if all(joint.limits is None for known, joint in joints if known == name):
            entry.wrong("the joint has no limits", "leave it out")
        elif stop is not None:
            found[name] = stop
    return found


def _named(given: Entry, known: Collection[str], present: Present | None, problem: str) -> Iterator[tuple[str, Entry]]:
    """The entries of a table that have known names; others are problems, unless they are doubtful."""
    for name, entry in given.entries().items():
        if name in known:
            yield name, entry
        elif present is None or not present.doubtful(name):
            entry.wrong(problem, entry.near(name, known))


def _stop(given: Entry) -> Stop | None:
    """The word "inelastic", or the numbers of a spring."""
    if given.value == "inelastic":
        return "inelastic"
    if isinstance(given.value, dict):
        spring: SpringStop | None = called(given, SpringStop)
        return spring
    return given.unexpected("'inelastic', the numbers of a spring, {stiffness = …, damping = …}, or a table of joints")


def _start(given: Entry, robot: KinematicTree) -> State | None:
    before = len(given.problems)
    fields = given.table((), ("position", "velocity"))
    q, qd = (
        _by_name(fields[what], names) if what in fields else {}
        for what, names in (("position", robot.positions), ("velocity", robot.coordinates))
    )
    return given.made(State, robot, q, qd) if len(given.problems) == before else None


def _by_name(given: Entry, names: Sequence[str], present: Present | None = None) -> dict[str, Any]:
    """Numbers by name, but those that are doubtful; the entries of a joint may be given together, as a list."""
    stems = {stem for name in names for stem, bracket, _ in (name.rpartition("["),) if bracket}
    found: dict[str, Any] = {}
    for name, entry in _named(given, [*names, *stems], present, "there is no such coordinate"):
        count = sum(x.rpartition("[")[0] == name for x in names)
        found[name] = entry.number() if name in names else entry.numbers(count)
    return {name: value for name, value in found.items() if value is not None}


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
        return _constant(_torque(fields["torque"], joints, present) if "torque" in fields else {})
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
    goal = fields.get("target", given).made(State, robot, held | target)
    if goal is None:
        return None
    positions = dict(zip(goal.positions, goal.q.tolist(), strict=True))
    return _Hold(positions | later, gains["stiffness"], gains["damping"], bool(compensate))


def _torque(given: Entry, joints: Sequence[tuple[str, Joint]], present: Present) -> dict[str, Any]:
    """Torques by coordinate, of joints that are active at some time."""
    freedoms = [(x, name, joint) for name, joint in joints for x in joint.freedom_names(name)]
    torque = _by_name(given, list(dict.fromkeys(x for x, _, _ in freedoms)), present)
    driven = {label for *labels, joint in freedoms if not joint.passive for label in labels}
    for name in torque:
        if name not in driven:
            given.wrong(f"joint {name!r} is passive", "leave it out")
    return torque


def _gains(given: Entry, robot: KinematicTree, later: Sequence[str], present: Present) -> dict[str, float]:
    """A gain by joint: one number for all active ones of the start, or numbers for some, also for later ones."""
    active = [name for name in robot.joints if robot.joint(name).nv and not robot.joint(name).passive]
    if isinstance(given.value, dict):
        named = _named(given, [*active, *later], present, "there is no such active joint")
        return {name: _gain(entry) for name, entry in named}
    return dict.fromkeys(active, _gain(given))


def _gain(given: Entry) -> float:
    value = given.number()
    if value is not None and value < 0:
        given.wrong(f"a gain must not be negative; got {value}")
    return 0.0 if value is None else float(value)


def _targets(names: Mapping[str, str], folder: Path, overwrite: bool) -> dict[str, Path]:
    """Where outputs are written, after all of them have been checked; their folders are made.

    Scenarios may come from strangers, who choose the names of the files: they stay in their folder, also by symbolic
    links, and replace only files that a scenario has written and that have not changed since, unless `overwrite`. A
    file of the folder has the digests of what was written last.
    """
    root = folder.resolve()
    written = {} if overwrite else _record(root)
    found = {}
    for what, name in names.items():
        path = (root / name).resolve()
        if not path.is_relative_to(root):
            raise ScrewdynError(f"the output {name!r} is outside the folder {str(folder)!r}; give a name inside it")
        if path.exists() and not path.is_file():
            raise ScrewdynError(f"{str(path)!r} exists, and is no file; give another name")
        if path.exists() and not overwrite and written.get(str(path.relative_to(root))) != _digest(path):
            raise ScrewdynError(
                f"{str(path)!r} exists, and is not what a scenario wrote there; remove it, give another --output, or "
                "replace it by --overwrite"
            )
        found[what] = path
    for path in found.values():
        if inside := [str(other) for other in found.values() if path in other.parents]:
            raise ScrewdynError(
                f"the output {str(path)!r} would also be the folder of {inside[0]!r}; rename one of them"
            )
    for path in found.values():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ScrewdynError(f"cannot make the folder {str(path.parent)!r}: {error.strerror}") from None
    return found


def _note(path: Path, folder: Path) -> None:
    """Record that an output has been written."""
    root = folder.resolve()
    record = _record(root) | {str(path.relative_to(root)): _digest(path)}
    try:
        (root / _RECORD).unlink(missing_ok=True)  # never written through a link
        (root / _RECORD).write_text(json.dumps(record, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    except OSError as error:
        raise ScrewdynError(f"cannot write {str(root / _RECORD)!r}: {error.strerror or error}") from None


def _record(root: Path) -> dict[str, str]:
    """Digests by names of files; none if there is no valid record."""
    try:
        found = json.loads((root / _RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise ScrewdynError(f"cannot read {str(path)!r}: {error.strerror or error}") from None


def run_scenario(
    path: Path, folder: Path, progress: bool = False, *, overwrite: bool = False, xacro: bool = False
) -> str:
    """Simulate a scenario, write its output files to a folder, and return a summary.

    Files that no scenario has written are replaced only if `overwrite`; xacro is expanded only if `xacro`.
    """
    scenario = read_scenario(path, xacro)
    outputs = _targets(scenario.outputs, folder, overwrite)
    if "film" in outputs:
        film_path(outputs["film"])
    tree = scenario.robot.copy()
    start, torque, events = scenario.start, scenario.torque, scenario.events
    run = simulate(tree, start, scenario.duration, torque, events, progress, **scenario.options)
    write: dict[str, Callable[[Path], Any]] = {
        "csv": run.to_csv,
        "npz": run.to_npz,
        "figure": lambda path: run.plot().savefig(path),
        "film": lambda path: run.animate(path, progress=progress),
    }
    for what, path in outputs.items():
        write[what](path)
        _note(path, folder)
    return _report(run, events)


def _report(run: Run, scheduled: Sequence[Scheduled[Any]]) -> str:
    """Events, also those whose condition never held, the state at the end, and the energy ledger."""
    energy, end = run.energy, run.states[-1]
    width = max(map(len, (*end.positions, *end.coordinates)), default=0)
    lines = [f"{run.t[-1]:g} s, {len(run.t)} samples, {len(run.events)} events"]
    for happened in run.events:
        event, what = happened.event, happened.verb.removesuffix(" of")
        named = "joint " * (event.concerns == "joint") + repr(event.subject)
        lines.append(f"  {happened.t:g} s: {what} of {named}, {event.energy_lost:.4g} J lost")
    due = [happened.what for happened in run.events]
    lines += [f"  never: {x.verb.removesuffix(' of')}, whose condition did not hold" for x in scheduled if x not in due]
    lines += ["", "at the end:", ""]
    lines += [f"  {name:{width}} {end[name]:12.6g}" for name in end.positions]
    lines += ["", "rates at the end:", ""]
    lines += [f"  {name:{width}} {end.velocity(name):12.6g}" for name in end.coordinates]
    rows = (
        ("kinetic and potential energy", energy.total[-1]),
        ("work of the torques", energy.work[-1]),
        ("dissipated in joints", energy.dissipated[-1]),
        ("dissipated in impacts", energy.impact_loss[-1]),
        ("brought by payloads", energy.exchanged[-1]),
        ("largest residual", np.abs(energy.residual).max()),
    )
    lines += ["", "energy, J:", "", *(f"  {what:29} {value:12.6g}" for what, value in rows)]
    return "\n".join(lines)
