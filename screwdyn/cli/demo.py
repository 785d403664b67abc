"""The demonstration: an arm picks up a swinging crate in mid-motion and releases it.

The motion is simulated twice with computed-torque control. The model of one controller is the tree, which includes the
crate after the grasp; the model of the other is the robot without the crate.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import screwdyn as sd
from screwdyn.core.types import Array
from screwdyn.io.document import some, unused
from screwdyn.io.urdf import Xacro

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
    """Follow a path by partial feedback linearisation: q̈_a = q̈_path + K_d (q̇_path − q̇) + K_p (q_path − q).

    The passive joints follow from their rows, M_pp q̈_p = f_p − M_pa q̈_a − h_p with h = C q̇ + g and own forces f.
    """

    path: Path5  # of the coordinates of the robot, which come before those of payloads
    model: sd.KinematicTree | None = None  # the controller's; ``None`` for the simulated tree at the current time

    def __call__(self, t: float, state: sd.State) -> dict[str, float]:
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


# Length of a run, and times of the end of the path, the grasp and the release, s.
SECONDS, PATH, GRASP, RELEASE = 5.0, 4.0, 1.2, 3.4
# Largest static deflection by the crate's weight with a controller without the payload model, in rad or m.
SAG = 0.1
# Samples of a run.
SAMPLES = 500


@dataclass(frozen=True)
class Task:
    """A path, and a crate that is grasped and released during the motion."""

    robot: sd.KinematicTree  # without the crate
    to: str  # the link that grasps it
    crate: str  # its name
    body: sd.Inertia
    path: Path5
    grasp: sd.Grasp
    release: sd.Release

    @cached_property
    def loaded(self) -> sd.KinematicTree:
        """A copy of the robot with the crate."""
        tree = self.robot.copy()
        self.grasp.restructure(tree)
        return tree

    def run(self, controller: ComputedTorque, progress: bool) -> sd.Run:
        """Simulate the whole task."""
        tree, events, step = self.robot.copy(), (self.grasp, self.release), SECONDS / SAMPLES
        start = sd.State(tree, self.path.start)
        return sd.simulate(tree, start, SECONDS, controller, events, progress, step=step, rtol=1e-8, atol=1e-9)

    def attach_seconds(self, state: sd.State, repeats: int = 100) -> float:
        """Median time to attach the crate and compute the first M, C and g of the new robot."""
        tree, took = self.robot.copy(), []
        for _ in range(repeats):
            begin = time.perf_counter()
            self.grasp.restructure(tree)
            tree.mass_and_coriolis(state.q, state.qd)
            tree.gravity_vector(state.q)
            took.append(time.perf_counter() - begin)
            tree.detach(self.crate)
        return float(np.median(took))

    def planned(self, run: sd.Run) -> Array:
        """The planned positions at every sample, (samples, n), rad and m."""
        return np.array([self.path(t)[0] for t in run.t])

    def trail(self, q: Array) -> Array:
        """The places of the tool at configurations of the robot, (samples, 3), m."""
        return np.asarray(self.robot.forward_kinematics(self.to, q)[:, :3, 3])

    def deviation(self, run: sd.Run) -> Array:
        """Distance of the tool from its planned position at every sample, (samples,), m."""
        off = self.trail(run.q[:, : self.robot.nv]) - self.trail(self.planned(run))
        return np.asarray(np.linalg.norm(off, axis=1))

    def __str__(self) -> str:
        return (
            f"{self.to} picks up a crate of {self.body.mass:.3g} kg on a free hook at {self.grasp.time:.3g} s "
            f"and releases it at {self.release.time:.3g} s"
        )


def plan(
    robot: sd.KinematicTree,
    to: str,
    *,
    mass: float | None = None,
    ends: tuple[Sequence[float], Sequence[float]] | None = None,
) -> Task:
    """Choose a path within the joints' limits, and a crate that hangs below the tool at the grasp.

    The mass, kg, and the ends of the path, (nv,), are chosen if they are not given. ScrewdynError if the robot is not
    fit for it, and SingularAttachmentError if a movable joint feels no inertia.
    """
    for name in robot.joints:
        joint = robot.joint(name)
        if joint.nv > 1:
            raise sd.ScrewdynError(f"the demo needs joints of one freedom each; {name!r} is a {joint.kind} joint")
    if not _freedoms(robot, to):
        movable = [link for link in robot.links if _freedoms(robot, link)]
        none = "the robot has no movable joint, and the demo needs one"
        hint = f"choose one of: {some(movable)}" if movable else none
        raise sd.ScrewdynError(f"no joint moves link {to!r}; {hint}")
    start, end = _ends(robot, to) if ends is None else np.array(ends)
    path = Path5(start, end, PATH)
    robot.forward_dynamics(path.start, np.zeros(robot.nv), np.zeros(robot.nv))
    q, qd, _ = path(GRASP)
    pose, velocity = robot.forward_kinematics(to, q), robot.jacobian(to, q, "mixed")[3:] @ qd
    g = float(np.linalg.norm(robot.gravity))
    up = -robot.gravity / g
    # The axis of the hook is horizontal and perpendicular to the motion, so that the crate swings along the motion.
    across = next(x for d in (velocity, *np.eye(3)) if np.linalg.norm(x := np.cross(up, d)) > 1e-3)
    across = across / np.linalg.norm(across)
    hanging = sd.screw.pose(np.column_stack([across, np.cross(up, across), up]), pose[:3, 3])
    if mass is None:
        mass = _bearable(robot, to, np.array([path(t)[0] for t in np.linspace(GRASP, RELEASE, 20)]), up)
    length = 0.14 * _reach(robot, to)
    crate = sd.Inertia.box(mass, (0.6 * length,) * 3, com=(0, 0, -length))
    name, swing = (unused(stem, {*robot.links, *robot.joints}) for stem in ("crate", "swing"))
    # A twentieth of the critical damping.
    damping = 0.1 * float(np.sqrt(crate.origin_tensor[0, 0] * mass * g * length))
    hook = sd.revolute("x", passive=True, damping=damping, name=swing)
    at = sd.screw.inverse(pose) @ hanging
    grasp = sd.Grasp(crate, to=to, twist="at_rest", joint=hook, at=at, name=name, time=GRASP)
    return Task(robot, to, name, crate, path, grasp, sd.Release(name, time=RELEASE))


def _ends(robot: sd.KinematicTree, to: str) -> tuple[Array, Array]:
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
        raise sd.ScrewdynError(f"the limits of {', '.join(on_path)} leave no range to move link {to!r}; widen them")
    return start, end


def _freedoms(robot: sd.KinematicTree, link: str) -> list[str]:
    """Active coordinates between the base and a link."""
    names = [robot.graph.edges[pair]["coordinate"] for pair in pairwise(robot.path(link))]
    return [name for name in names if name is not None and not robot.joint(name).passive]


def farthest(robot: sd.KinematicTree) -> str:
    """The first link with the largest number of active joints between the base and it."""
    return max(robot.links, key=lambda link: len(_freedoms(robot, link)))


def _reach(robot: sd.KinematicTree, to: str) -> float:
    """Sum of the distances between successive link frames from the base to a link, m; 1 if it is zero."""
    return sum(float(np.linalg.norm(robot.graph.edges[p]["home"][:3, 3])) for p in pairwise(robot.path(to))) or 1.0


def _bearable(robot: sd.KinematicTree, to: str, q: Array, up: Array) -> float:
    """A twentieth of the mass beyond the first joint, kg, or what causes a deflection ``SAG`` on a path (s, nv)."""
    first = next(b for a, b in pairwise(robot.path(to)) if robot.graph.edges[a, b]["coordinates"])
    bodies = (robot.link(name).inertia for name in robot.subtree(first))
    moved = sum(body.mass for body in bodies if body is not None)
    weight = np.linalg.norm(robot.gravity) * np.einsum("sij,i->sj", robot.jacobian(to, q, "mixed")[:, 3:], up)
    sag = np.abs(np.linalg.solve(robot.mass_matrix(q), weight[..., None])).max() / STIFFNESS
    return float(0.05 * moved if sag * 0.05 * moved <= SAG else SAG / sag)


def describe(task: Task, with_model: sd.Run, without_model: sd.Run) -> str:
    """The results of the runs with and without the payload model."""
    robot, loaded, n, happened = task.robot, task.loaded, task.robot.nv, with_model.events[0]
    after, lost = happened.event.state, happened.event.energy_lost
    q, qd = after.q, after.qd
    others = zip(robot.contributions(q[:n], qd[:n]), loaded.contributions(q, qd), strict=False)
    parts = [[np.asarray(getattr(x, what)) for x in both] for both in others for what in "JMCg"]
    change = max(np.abs(a - b).max(initial=0.0) for a, b in parts)
    speed = np.linalg.norm(robot.jacobian(task.to, q[:n], "mixed")[3:] @ task.path(happened.t)[1])
    worst = []
    for label, run in (("with payload model", with_model), ("without", without_model)):
        off = np.abs(run.q[:, :n] - task.planned(run)).max(axis=0)
        k = int(off.argmax())
        slides = robot.joint(name := robot.coordinates[k]).kind == "prismatic"
        size = f"{1000 * off[k]:.2g} mm" if slides else f"{np.degrees(off[k]):.2g}°"
        worst.append(f"  {label:18} {1000 * task.deviation(run).max():8.1f} mm   {size} ({name})")
    return "\n".join(
        [
            f"{task}. The robot with the crate:",
            "",
            str(loaded),
            "",
            "Right after the grasp:",
            "",
            str(loaded.explain(task.crate, q, qd)),
            "",
            f"The contributions of all other links are unchanged: largest difference {change:g}.",
            f"Attaching it and computing the first M, C and g took {1e6 * task.attach_seconds(after):.0f} µs.",
            "",
            f"The tool moved at {speed:.2f} m/s, the crate was at rest: the grasp lost {lost:.3g} J.",
            f"With the payload model, the energy balance closes to {np.abs(with_model.energy.residual).max():.1g} J.",
            "",
            "Largest deviation from the planned path, tool and joints:",
            *worst,
        ]
    )


_UR5_ENDS = (-1.3, -1.0, 1.5, -2.07, -1.57, 0.0), (1.3, -1.6, 1.2, -1.17, -1.57, 0.5)


def demo(
    urdf: Path | None,
    to: str | None,
    output: Path,
    film: Path | None = None,
    *,
    progress: bool,
    xacro: Xacro = None,
) -> None:
    """Run the demonstration with a UR5 or the robot of a URDF, print a report, and draw a figure and perhaps a film."""
    from screwdyn.views import figures
    from screwdyn.views.film import film_path

    output = figures.writable(output)
    if film is not None:
        film = film_path(film)
    if urdf is None:
        title, task = "UR5", plan(sd.robots.ur5(), to or "tool0", mass=3.0, ends=_UR5_ENDS)
    else:
        robot = sd.KinematicTree.from_urdf(urdf, xacro=xacro)
        title, task = urdf.name, plan(robot, to or farthest(robot))
    runs = []
    for k, (label, model) in enumerate((("with", None), ("without", task.robot.copy()))):
        if progress:
            print(f"run {k + 1} of 2: controller {label} the payload model", file=sys.stderr)
        runs.append(task.run(ComputedTorque(task.path, model), progress))
    print(describe(task, *runs))
    figures.save(_figure(task, f"{title}: {task}", *runs), output)
    print(f"\nFigure: {output.resolve()}")
    if film is not None:
        runs[0].animate(film, show=("com", "momentum"), progress=progress)
        print(f"Film: {film.resolve()}")


def _figure(task: Task, title: str, run: sd.Run, without_model: sd.Run) -> Any:
    from screwdyn.simulation.film import scene_at
    from screwdyn.views.figures import plot_comparison
    from screwdyn.views.picture import Painter
    from screwdyn.views.scene import View

    grasp, release = (happened.t for happened in run.events)
    times = {"start": 0.0, f"grasp, {grasp:.2g} s": grasp, "on the way": (grasp + release) / 2}
    times["after the release"] = release + 0.2
    # From the same side, each time as near as the robot of that moment allows.
    view = View(hide=("events", "text"), camera=(1, -0.35, 0.35), size=(400, 400))
    scenes = {label: scene_at(run.motions, run.events, np.array([t]), view) for label, t in times.items()}
    pictures = {label: Painter(scene).draw(0) for label, scene in scenes.items()}
    return plot_comparison(title, pictures, (run, without_model), (task.deviation(run), task.deviation(without_model)))
