"""The demonstration: an arm picks up a swinging crate in mid-motion and releases it.

The motion is simulated twice with computed-torque control. The model of one controller is the tree, which includes the
crate after the grasp; the model of the other is the robot without the crate.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count, pairwise
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np

from screwdyn.changes.grasp import Grasp, GraspEvent
from screwdyn.changes.release import Release
from screwdyn.core.errors import ScrewdynError
from screwdyn.core.types import Array
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.joint import revolute
from screwdyn.physics.state import State
from screwdyn.robots import ur5
from screwdyn.screws import screw
from screwdyn.simulation.simulate import Run, simulate
from screwdyn.tree import KinematicTree

__all__ = ["demo"]

# Critically damped at 10 rad/s.
STIFFNESS, DAMPING = 100.0, 20.0


@dataclass(frozen=True)
class Path5:
    """A minimum-jerk path q(t) = start + (end − start) s³ (10 − 15 s + 6 s²), s = t / seconds; at rest afterwards."""

    start: Array
    end: Array
    seconds: float

    def __call__(self, t: float) -> tuple[Array, Array, Array]:
        """Position, rate and acceleration at a time in seconds, each (nv,)."""
        s, way = min(max(t / self.seconds, 0.0), 1.0), self.end - self.start
        q = self.start + way * (s**3 * (10 - 15 * s + 6 * s**2))
        qd = way * (30 * s**2 * (1 - s) ** 2 / self.seconds)
        return q, qd, way * (60 * s * (1 - s) * (1 - 2 * s) / self.seconds**2)


@dataclass(frozen=True)
class ComputedTorque:
    """Follow a path by partial feedback linearisation.

    The commanded acceleration of the active joints (a) is v = q̈_path + K_d (q̇_path − q̇) + K_p (q_path − q). The
    acceleration of the passive joints (p) follows from their rows of the equation of motion,
    M_pp q̈_p = f_p − M_pa v − h_p, with h = C q̇ + g and f the joints' own forces. The torques are
    τ_a = M_aa v + M_ap q̈_p + h_a − f_a.
    """

    path: Path5  # of the coordinates of the robot, which come before those of payloads
    model: KinematicTree | None = None  # the controller's; ``None`` for the simulated tree at the current time

    def __call__(self, t: float, state: State) -> dict[str, float]:
        """Torques of the active joints, N m or N, by name."""
        tree = self.model or state.tree
        n = tree.nv
        q, qd = state.q[:n], state.qd[:n]
        target, rate, acceleration = self.path(t)
        own = len(target)
        v = np.zeros(n)
        v[:own] = acceleration + DAMPING * (rate - qd[:own]) + STIFFNESS * (target - q[:own])
        M, h = tree.mass_matrix(q), tree.bias_force(q, qd) - tree.joint_force(q, qd)
        p = np.array(tree.model.passive)
        if p.any():
            v[p] = np.linalg.solve(M[np.ix_(p, p)], -M[np.ix_(p, ~p)] @ v[~p] - h[p])
        tau = M @ v + h
        return {name: float(x) for name, x, idle in zip(tree.coordinates, tau, p, strict=True) if not idle}


# End of the path, grasp and release as fractions of the duration.
PATH, GRASP, RELEASE = 0.8, 0.24, 0.68
# Largest static deflection by the crate's weight with a controller without the payload model, in rad or m.
SAG = 0.1
# Samples of a run.
SAMPLES = 500


@dataclass(frozen=True)
class Task:
    """A path, and a crate that is grasped and released during the motion."""

    robot: KinematicTree  # without the crate
    to: str  # the link that grasps it
    path: Path5
    seconds: float  # length of a run
    grasp: Grasp
    release: Release

    @property
    def crate(self) -> str:
        """Name of the crate."""
        return str(self.grasp.name)

    @property
    def moving(self) -> tuple[str, ...]:
        """Active coordinates between the base and the tool."""
        return tuple(_freedoms(self.robot, self.to))

    @cached_property
    def loaded(self) -> KinematicTree:
        """A copy of the robot with the crate."""
        tree = self.robot.copy()
        self._attach(tree)
        return tree

    def _attach(self, tree: KinematicTree) -> str:
        g = self.grasp
        assert isinstance(g.body, Inertia)
        return tree.attach(g.body, g.to, g.joint, g.at, g.name).name

    def run(self, controller: ComputedTorque, progress: bool) -> Run:
        """Simulate the whole task."""
        tree, events, step = self.robot.copy(), (self.grasp, self.release), self.seconds / SAMPLES
        start = State(tree, self.path.start)
        return simulate(tree, start, self.seconds, controller, events, progress, step=step, rtol=1e-8, atol=1e-9)

    def attach_seconds(self, state: State, repeats: int = 100) -> float:
        """Median time to attach the crate and compute the first M, C and g of the new robot."""
        tree, took = self.robot.copy(), []
        for _ in range(repeats):
            begin = time.perf_counter()
            name = self._attach(tree)
            tree.mass_and_coriolis(state.q, state.qd)
            tree.gravity_vector(state.q)
            took.append(time.perf_counter() - begin)
            tree.detach(name)
        return float(np.median(took))

    def planned(self, run: Run) -> Array:
        """The planned positions at every sample, (samples, n), rad and m."""
        return np.array([self.path(t)[0] for t in run.t])

    def actual(self, run: Run) -> Array:
        """The positions of the robot at every sample, (samples, n), rad and m."""
        return np.array([state.q[: self.robot.nv] for state in run.states])

    def trail(self, q: Array) -> Array:
        """The places of the tool at configurations of the robot, (samples, 3), m."""
        return np.asarray(self.robot.forward_kinematics(self.to, q)[:, :3, 3])

    def deviation(self, run: Run) -> Array:
        """Distance of the tool from its planned position at every sample, (samples,), m."""
        return np.asarray(np.linalg.norm(self.trail(self.actual(run)) - self.trail(self.planned(run)), axis=1))


def plan(
    robot: KinematicTree,
    to: str,
    *,
    seconds: float = 5.0,
    mass: float | None = None,
    ends: tuple[Sequence[float], Sequence[float]] | None = None,
) -> Task:
    """Choose a path within the joints' limits, and a crate that hangs below the tool at the grasp.

    The crate has by default a twentieth of the mass beyond the first joint, kg, or less if its weight would deflect a
    controller without the payload model by more than ``SAG``. The ends of the path, (nv,), are by default the middle
    part of the ranges of the joints between base and link. ScrewdynError if the robot is not fit for it, and
    SingularAttachmentError if a movable joint feels no inertia.
    """
    for name in robot.joints:
        joint = robot.joint(name)
        if joint.nv > 1:
            raise ScrewdynError(f"the demo needs joints of one freedom each; {name!r} is a {joint.kind} joint")
    if not _freedoms(robot, to):
        movable = [link for link in robot.links if _freedoms(robot, link)]
        some = ", ".join(movable[:8]) + ", …" * (len(movable) > 8)
        hint = f"choose one of: {some}" if movable else "the robot has no movable joint, and the demo needs one"
        raise ScrewdynError(f"no joint moves link {to!r}; {hint}")
    start, end = _ends(robot, to) if ends is None else np.array(ends)
    path = Path5(start, end, PATH * seconds)
    robot.forward_dynamics(path.start, np.zeros(robot.nv), np.zeros(robot.nv))
    q, qd, _ = path(GRASP * seconds)
    pose, velocity = robot.forward_kinematics(to, q), robot.jacobian(to, q, "mixed")[3:] @ qd
    up = -robot.gravity / np.linalg.norm(robot.gravity)
    # The axis of the hook is horizontal and perpendicular to the motion, so that the crate swings along the motion.
    across = next(x for d in (velocity, *np.eye(3)) if np.linalg.norm(x := np.cross(up, d)) > 1e-3)
    across = across / np.linalg.norm(across)
    hanging = screw.pose(np.column_stack([across, np.cross(up, across), up]), pose[:3, 3])
    if mass is None:
        held = np.linspace(GRASP, RELEASE, 20) * seconds
        mass = _bearable(robot, to, np.array([path(t)[0] for t in held]), up)
    length = 0.14 * _reach(robot, to)
    side = 0.6 * length
    crate = Inertia.box(mass, (side, side, side), com=(0, 0, -length))
    about = float(crate.origin_tensor[0, 0])
    name, swing = _free("crate", robot), _free("swing", robot)
    # A twentieth of the critical damping.
    damping = 0.1 * float(np.sqrt(about * mass * np.linalg.norm(robot.gravity) * length))
    hook = revolute("x", passive=True, damping=damping, name=swing)
    at, when = screw.inverse(pose) @ hanging, GRASP * seconds
    grasp = Grasp(crate, time=when, to=to, twist="at_rest", joint=hook, at=at, name=name)
    return Task(robot, to, path, seconds, grasp, Release(name, time=RELEASE * seconds))


def _ends(robot: KinematicTree, to: str) -> tuple[Array, Array]:
    """Start and end of the path: the middle half of the range within the limits, and within ±1 rad of its middle."""
    on_path = _freedoms(robot, to)
    start, end = np.zeros(robot.nv), np.zeros(robot.nv)
    for k, name in enumerate(robot.coordinates):
        joint = robot.joint(name)
        reach = 0.2 * _reach(robot, to) if joint.kind == "prismatic" else 1.0
        low, high = joint.limits or (-np.inf, np.inf)
        middle = (low + high) / 2 if np.isfinite([low, high]).all() else float(np.clip(0.0, low, high))
        low, high = max(low, middle - reach), min(high, middle + reach)
        way = 0.5 * (high - low) if name in on_path else 0.0
        start[k], end[k] = (low + high - way) / 2, (low + high + way) / 2
    if (start == end).all():
        raise ScrewdynError(f"the limits of {', '.join(on_path)} leave no range to move link {to!r}; widen them")
    return start, end


def _freedoms(robot: KinematicTree, link: str) -> list[str]:
    """Active coordinates between the base and a link."""
    way = robot.path(link)
    names = [robot.graph.edges[pair]["coordinate"] for pair in pairwise(way)]
    return [name for name in names if name is not None and not robot.joint(name).passive]


def farthest(robot: KinematicTree) -> str:
    """The first link with the largest number of active joints between the base and it."""
    return max(robot.links, key=lambda link: len(_freedoms(robot, link)))


def _reach(robot: KinematicTree, to: str) -> float:
    """Sum of the distances between successive link frames from the base to a link, m; 1 if it is zero."""
    return sum(float(np.linalg.norm(robot.graph.edges[p]["home"][:3, 3])) for p in pairwise(robot.path(to))) or 1.0


def _bearable(robot: KinematicTree, to: str, q: Array, up: Array) -> float:
    """A twentieth of the mass beyond the first joint, or the mass whose weight causes a deflection of ``SAG``, kg.

    q is (s, nv), configurations on the path, and up is the unit vector opposite to gravity.
    """
    first = next(b for a, b in pairwise(robot.path(to)) if robot.graph.edges[a, b]["coordinates"])
    bodies = (robot.link(name).inertia for name in robot.subtree(first))
    moved = sum(body.mass for body in bodies if body is not None)
    weight = np.linalg.norm(robot.gravity) * np.einsum("sij,i->sj", robot.jacobian(to, q, "mixed")[:, 3:], up)
    sag = np.abs(np.linalg.solve(robot.mass_matrix(q), weight[..., None])).max() / STIFFNESS
    return float(0.05 * moved if sag * 0.05 * moved <= SAG else SAG / sag)


def _free(stem: str, robot: KinematicTree) -> str:
    taken = {*robot.links, *robot.joints}
    return next(name for name in chain([stem], (f"{stem}_{k}" for k in count(2))) if name not in taken)


def describe(task: Task, with_model: Run, without_model: Run) -> str:
    """The results of the runs with and without the payload model."""
    robot, loaded, n = task.robot, task.loaded, task.robot.nv
    event = with_model.events[0].event
    assert isinstance(event, GraspEvent)
    after = event.state
    share = loaded.contribution(task.crate, after.q, after.qd)
    others = zip(robot.contributions(after.q[:n], after.qd[:n]), loaded.contributions(after.q, after.qd), strict=False)
    changes = [
        np.abs(np.asarray(a) - np.asarray(b)).max(initial=0.0)
        for one, two in others
        for a, b in ((one.J, two.J), (one.M, two.M), (one.C, two.C), (one.g, two.g))
    ]
    speed = np.linalg.norm(robot.jacobian(task.to, after.q[:n], "mixed")[3:] @ task.path(with_model.events[0].t)[1])
    # A number and its name stay together.
    numbered = "   ".join(f"{k}\0{name}" for k, name in enumerate(share.coordinates, 1))
    rows = (("with payload model", with_model), ("without", without_model))
    worst = [f"  {x:18} {1000 * task.deviation(run).max():8.1f} mm   {_joint_error(task, run)}" for x, run in rows]
    return "\n".join(
        [
            f"{summary(task)}. The robot with the crate:",
            "",
            str(loaded),
            "",
            f"Contribution of {task.crate!r} right after the grasp, over the coordinates on its path (SI units):",
            *(line.replace("\0", " ") for line in wrap(numbered, 104, initial_indent="  ", subsequent_indent="  ")),
            "".join(f"{k:>{16 if k == 1 else 10}}" for k in range(1, len(share.coordinates) + 1)),
            *_table("M_i", np.asarray(share.M)),
            *_table("C_i", np.asarray(share.C)),
            *_table("g_i", np.asarray(share.g)[None]),
            f"The contributions of all other links are unchanged: largest difference {max(changes):g}.",
            f"Attaching it and computing the first M, C and g took {1e6 * task.attach_seconds(after):.0f} µs.",
            "",
            f"The tool moved at {speed:.2f} m/s, the crate was at rest: the grasp lost {event.energy_lost:.3g} J.",
            f"With the payload model, the energy balance closes to {np.abs(with_model.energy.residual).max():.1g} J.",
            "",
            "Largest deviation from the planned path, tool and joints:",
            *worst,
        ]
    )


def summary(task: Task) -> str:
    """The task in one sentence."""
    body = task.loaded.link(task.crate).inertia
    mass = 0.0 if body is None else body.mass
    return (
        f"{task.to} picks up a crate of {mass:.3g} kg on a free hook at {task.grasp.time:.3g} s "
        f"and releases it at {task.release.time:.3g} s"
    )


def _joint_error(task: Task, run: Run) -> str:
    off = np.abs(task.actual(run) - task.planned(run)).max(axis=0)
    k = int(off.argmax())
    name = task.robot.coordinates[k]
    slides = task.robot.joint(name).kind == "prismatic"
    return f"{1000 * off[k]:.2g} mm ({name})" if slides else f"{np.degrees(off[k]):.2g}° ({name})"


def _table(title: str, rows: Array) -> list[str]:
    """Rows of numbers in columns of equal width, with four significant digits for the largest number."""
    largest = float(np.abs(rows).max(initial=0.0))
    digits = int(np.clip(3 - np.floor(np.log10(largest)), 0, 6)) if largest else 3
    # Adding zero replaces -0 by 0.
    lines = ["".join(f"{x:10.{digits}f}" for x in np.round(row, digits) + 0.0) for row in rows]
    return [f"  {title if k == 0 else '':4}{line}" for k, line in enumerate(lines)]


_UR5_START, _UR5_END = (-1.3, -1.0, 1.5, -2.07, -1.57, 0.0), (1.3, -1.6, 1.2, -1.17, -1.57, 0.5)


def demo(
    urdf: Path | None,
    to: str | None,
    output: Path,
    film: Path | None = None,
    *,
    progress: bool,
    xacro: bool | None = None,
) -> None:
    """Run the demonstration with a UR5 or the robot of a URDF, print a report, and draw a figure and perhaps a film.

    The link that grasps is by default ``tool0`` of the UR5, or the one with the most active joints on its path.
    ScrewdynError if it is unknown or no joint moves it, or if a file cannot be read or written.
    """
    from screwdyn.views import figures
    from screwdyn.views.film import film_path

    output = figures.writable(output)
    if film is not None:
        film = film_path(film)
    if urdf is None:
        title, task = "UR5", plan(ur5(), to or "tool0", mass=3.0, ends=(_UR5_START, _UR5_END))
    else:
        robot = KinematicTree.from_urdf(urdf, xacro=xacro)
        title, task = urdf.name, plan(robot, to or farthest(robot))
    runs = []
    for k, (label, model) in enumerate((("with", None), ("without", task.robot.copy()))):
        if progress:
            print(f"run {k + 1} of 2: controller {label} the payload model", file=sys.stderr)
        runs.append(task.run(ComputedTorque(task.path, model), progress))
    print(describe(task, *runs))
    figure = _figure(task, f"{title}: {summary(task)}", *runs)
    figures.save(figure, output)
    print(f"\nFigure: {output.resolve()}")
    if film is not None:
        runs[0].animate(film, show=("com", "momentum"), progress=progress)
        print(f"Film: {film.resolve()}")


def _figure(task: Task, title: str, run: Run, without_model: Run) -> Any:
    from screwdyn.views.figures import plot_comparison

    n, body = task.robot.nv, task.loaded.link(task.crate).inertia
    grasp, release = (happened.t for happened in run.events)
    first, last = int(np.searchsorted(run.t, grasp, "right")) - 1, int(np.searchsorted(run.t, release))
    moments = {"start": 0, f"grasp, {grasp:.2g} s": first, "on the way": (first + last) // 2}
    moments |= {f"release, {release:.2g} s": last, "end": len(run.t) - 1}
    links = task.robot.path(task.to)
    snapshots = []
    for label, k in moments.items():
        q, load = run.states[k].q, None
        arm = np.array([task.robot.forward_kinematics(link, q[:n])[:3, 3] for link in links])
        if len(q) > n and body is not None:
            pose = task.loaded.forward_kinematics(task.crate, q)
            load = np.array([pose[:3, 3], pose[:3, :3] @ body.com + pose[:3, 3]])
        snapshots.append((label, arm, load))
    columns = [task.robot.coordinates.index(name) for name in task.moving]
    planned, trail = task.planned(run), task.trail(task.actual(run))
    deviations = task.deviation(run), task.deviation(without_model)
    paths = dict(zip(task.moving, planned[:, columns].T, strict=True))
    return plot_comparison(title, (run, without_model), paths, deviations, snapshots, trail)
