"""The demonstration: an arm picks up a swinging crate in mid-motion and lets it go again.

The same motion is run twice under computed torque: by a controller that asks the tree for its model, and so is told
of the crate the moment it is grasped, and by one that goes on with the model of the empty robot.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from screwdyn import robots
from screwdyn.cli.demo.control import ComputedTorque
from screwdyn.cli.demo.report import describe, summary
from screwdyn.cli.demo.task import Task, farthest, plan
from screwdyn.simulation.result import Run
from screwdyn.tree import KinematicTree

if TYPE_CHECKING:
    from screwdyn.views.plot import Comparison

__all__ = ["demo"]

_UR5_START, _UR5_END = (-1.3, -1.0, 1.5, -2.07, -1.57, 0.0), (1.3, -1.6, 1.2, -1.17, -1.57, 0.5)


def demo(urdf: Path | None, to: str | None, output: Path, progress: bool) -> None:
    """Run the demonstration, print what it shows and draw it.

    Parameters
    ----------
    urdf : path or None
        The user's own robot; a UR5 by default.
    to : str or None
        The link that grasps; ``tool0`` of the UR5, or the link with the most moving joints below it.
    output : path
        Where to draw.
    progress : bool
        Show progress bars on stderr.

    Raises
    ------
    ScrewdynError
        A robot that cannot be read or has nothing to move; an unknown link; a place that cannot be written to;
        matplotlib is missing.
    """
    from screwdyn.views import plot

    output = plot.writable(output)
    if urdf is None:
        task = plan(robots.ur5(), to or "tool0", mass=3.0, ends=(_UR5_START, _UR5_END))
        title = "UR5"
    else:
        robot = KinematicTree.from_urdf(urdf)
        task = plan(robot, to or farthest(robot))
        title = urdf.name
    runs = []
    for k, (label, believed) in enumerate((("told of the crate", None), ("not told", task.robot.copy()))):
        if progress:
            print(f"run {k + 1} of 2: the controller is {label}", file=sys.stderr)
        runs.append(task.run(ComputedTorque(task.path, believed), progress))
    print(describe(task, *runs))
    figure = plot.plot_comparison(_comparison(task, f"{title}: {summary(task)}", *runs))
    plot.save(figure, output)
    print(f"\nFigure: {output.resolve()}")


def _comparison(task: Task, title: str, told: Run, not_told: Run) -> "Comparison":
    from screwdyn.views.plot import Comparison, Snapshot

    n, body = task.robot.nv, task.loaded.link(task.crate).inertia
    grasped, let_go = (happened.t for happened in told.events)
    first, last = int(np.searchsorted(told.t, grasped, "right")) - 1, int(np.searchsorted(told.t, let_go))
    moments = {"start": 0, f"grasp, {grasped:.2g} s": first, "on the way": (first + last) // 2}
    moments |= {f"let go, {let_go:.2g} s": last, "end": len(told.t) - 1}
    links = task.robot.path(task.to)
    snapshots = []
    for label, k in moments.items():
        q, load = told.states[k].q, None
        arm = np.array([task.robot.forward_kinematics(link, q[:n])[:3, 3] for link in links])
        if len(q) > n and body is not None:
            pose = task.loaded.forward_kinematics(task.crate, q)
            load = np.array([pose[:3, 3], pose[:3, :3] @ body.com + pose[:3, 3]])
        snapshots.append(Snapshot(label, arm, load))
    planned = np.array([task.path(t)[0] for t in told.t])
    place = {name: planned[:, k] for k, name in enumerate(task.robot.coordinates)}
    trail = task.robot.forward_kinematics(task.to, np.array([state.q[:n] for state in told.states]))[:, :3, 3]
    return Comparison(
        title,
        told,
        not_told,
        {name: place[name] for name in task.moving},
        task.strayed(told),
        task.strayed(not_told),
        snapshots,
        trail,
    )
