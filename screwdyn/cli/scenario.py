"""Scenarios: simulations that a TOML file describes (docs/files.md)."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from screwdyn import robots
from screwdyn.changes.change import Scheduled
from screwdyn.cli.files import Beside, named_robot, note_output, output_paths, require_readable
from screwdyn.cli.schedule import Present, called, schedule
from screwdyn.core.errors import ScenarioError
from screwdyn.core.types import Array
from screwdyn.io.document import Entry, PlacedProblem, listed, shown
from screwdyn.mechanism.joint import Joint
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
    robot = _robot(given, beside) if "robot" in given else None
    if robot is None:
        return None
    start = _if_given(given, "start", lambda x: _start(x, robot), State(robot))
    present = Present(robot)
    events = _if_given(given, "schedule", lambda x: schedule(x, present, duration, beside), [])
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


def _robot(given: Mapping[str, Entry], beside: Beside) -> KinematicTree | None:
    floating = _if_given(given, "floating_base", Entry.flag, False)
    gravity = _if_given(given, "gravity", lambda x: x.numbers(3))
    if floating and given["robot"].value in robots.__all__:
        given["floating_base"].wrong("this is for URDF files")
    robot = named_robot(given["robot"], beside, bool(floating))
    if robot is not None and gravity is not None:
        robot.gravity = gravity
    return robot


def _start(given: Entry, robot: KinematicTree) -> State | None:
    before = len(given.problems)
    fields = given.table((), ("position", "velocity"))
    q = _if_given(fields, "position", lambda x: _by_name(x, robot.positions), {})
    qd = _if_given(fields, "velocity", lambda x: _by_name(x, robot.coordinates), {})
    return given.made(State, robot, q, qd) if len(given.problems) == before else None


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


def _stop(given: Entry) -> Stop | None:
    """The word "inelastic", or the numbers of a spring."""
    if given.value == "inelastic":
        return "inelastic"
    if isinstance(given.value, dict):
        spring: SpringStop | None = called(given, SpringStop)
        return spring
    return given.unexpected("'inelastic', the numbers of a spring, {stiffness = …, damping = …}, or a table of joints")


def _named(given: Entry, known: Collection[str], present: Present | None, problem: str) -> Iterator[tuple[str, Entry]]:
    """The entries of a table that have known names; others are problems, unless they are doubtful."""
    for name, entry in given.entries().items():
        if name in known:
            yield name, entry
        elif present is None or not present.doubtful(name):
            entry.wrong(problem, entry.near(name, known))


def _by_name(given: Entry, names: Sequence[str], present: Present | None = None) -> dict[str, Any]:
    """Numbers by name, but those that are doubtful; the entries of a joint may be given together, as a list."""
    counts = {name: 0 for name in names}
    for stem in (name.rpartition("[")[0] for name in names if "[" in name):
        counts[stem] = counts.get(stem, 0) + 1
    found: dict[str, Any] = {}
    for name, entry in _named(given, counts, present, "there is no such coordinate"):
        found[name] = entry.number() if name in names else entry.numbers(counts[name])
    return {name: value for name, value in found.items() if value is not None}


def _controller(
    given: Entry, robot: KinematicTree, start: State | None, joints: Sequence[tuple[str, Joint]], present: Present
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
    for name in target.keys() & brought.keys() - stiffness.keys():
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


def _torque(given: Entry, joints: Sequence[tuple[str, Joint]], present: Present) -> dict[str, Any]:
    """Torques by coordinate, of joints that are active at some time."""
    freedoms = [(x, name, joint) for name, joint in joints for x in joint.freedom_names(name)]
    torque = _by_name(given, list(dict.fromkeys(x for x, _, _ in freedoms)), present)
    driven = {label for *labels, joint in freedoms if not joint.passive for label in labels}
    for name in torque:
        if name not in driven:
            given.wrong(f"joint {name!r} is passive", "leave it out")
    return torque


def _gains(given: Entry, own: Sequence[str], active: Sequence[str], present: Present) -> dict[str, float]:
    """A gain by joint: one number for the robot's own active ones, or numbers for some of all active ones."""
    if isinstance(given.value, dict):
        return {name: _gain(x) for name, x in _named(given, active, present, "there is no such active joint")}
    return dict.fromkeys(own, _gain(given))


def _gain(given: Entry) -> float:
    value = given.number()
    if value is not None and value < 0:
        given.wrong(f"a gain must not be negative; got {value}")
    return float(value or 0.0)


def run_scenario(
    path: Path, folder: Path, progress: bool = False, *, overwrite: bool = False, xacro: bool = False
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
