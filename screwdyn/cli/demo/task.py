"""The task of the demonstration: a path within the robot's limits, and a crate that the robot can carry."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count, pairwise

import numpy as np

from screwdyn.cli.demo.control import STIFFNESS, ComputedTorque, Path5
from screwdyn.core.errors import ScrewdynError
from screwdyn.core.types import Array
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.joint import revolute
from screwdyn.physics.state import State
from screwdyn.screws import screw
from screwdyn.simulation.events import Grasp, Release
from screwdyn.simulation.simulate import Run, simulate
from screwdyn.tree import KinematicTree

__all__ = ["Task", "farthest", "plan"]

# End of the path, grasp and release as fractions of the duration.
PATH, GRASP, RELEASE = 0.8, 0.24, 0.68
# Largest static deflection by the crate's weight with a controller without the payload model, in rad or m.
SAG = 0.1
# Samples of a run.
SAMPLES = 500


@dataclass(frozen=True)
class Task:
    """A path, and a crate that is grasped and released during the motion.

    Attributes
    ----------
    robot : KinematicTree
        Without the crate.
    to : str
        The link that grasps it.
    path : Path5
    seconds : float
        Length of a run.
    grasp, release
        The two events.
    """

    robot: KinematicTree
    to: str
    path: Path5
    seconds: float
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
        tree = self.robot.copy()
        events = (self.grasp, self.release)
        start, step = State(tree, self.path.start), self.seconds / SAMPLES
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

    def deviation(self, run: Run) -> Array:
        """Distance of the tool from its planned position at every sample, (samples,), m."""
        n = self.robot.nv
        planned = np.array([self.path(t)[0] for t in run.t])
        actual = np.array([state.q[:n] for state in run.states])
        off = self.robot.forward_kinematics(self.to, actual) - self.robot.forward_kinematics(self.to, planned)
        return np.asarray(np.linalg.norm(off[:, :3, 3], axis=1))


def plan(
    robot: KinematicTree,
    to: str,
    *,
    seconds: float = 5.0,
    mass: float | None = None,
    ends: tuple[Sequence[float], Sequence[float]] | None = None,
) -> Task:
    """Choose a path within the joints' limits, and a crate that hangs below the tool at the grasp.

    Parameters
    ----------
    robot : KinematicTree
    to : str
        The link that grasps.
    seconds : float
        Length of the whole task.
    mass : float, optional
        Of the crate, kg. By default a twentieth of the mass beyond the first joint, or less if its weight would deflect
        a controller without the payload model by more than ``SAG``.
    ends : two (nv,) sequences, optional
        Start and end of the path; by default the middle part of the ranges of the joints between base and link.

    Raises
    ------
    UnknownNameError
        If the robot has no such link.
    SingularAttachmentError
        If a movable joint feels no inertia.
    ScrewdynError
        If a joint has several freedoms, no joint moves the link, or the limits leave no range of motion.
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
    grasp = Grasp(
        crate,
        time=GRASP * seconds,
        to=to,
        twist="at_rest",
        joint=revolute("x", passive=True, damping=damping, name=swing),
        at=screw.inverse(pose) @ hanging,
        name=name,
    )
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
    names = chain([stem], (f"{stem}_{k}" for k in count(2)))
    return next(name for name in names if name not in taken)
