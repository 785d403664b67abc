"""The demonstration: an arm picks up a swinging crate in mid-motion and releases it.

The motion is simulated twice with computed-torque control. The model of one controller is the tree, which includes the
crate after the grasp; the model of the other is the robot without the crate.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

from screwdyn.cli.demo.control import ComputedTorque
from screwdyn.cli.demo.report import describe, summary
from screwdyn.cli.demo.task import Task, farthest, plan
from screwdyn.robots import ur5
from screwdyn.simulation.simulate import Run
from screwdyn.tree import KinematicTree

__all__ = ["demo"]

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
    """Run the demonstration, print a report and draw a figure.

    Parameters
    ----------
    urdf : path or None
        Another robot; a UR5 by default.
    to : str or None
        The link that grasps; by default ``tool0`` of the UR5, or the link with the most active joints on its path.
    output : path
        File of the figure.
    film : path or None
        File of a film of the run with the payload model, as for :meth:`Run.animate`.
    progress : bool
        Show progress bars on stderr.
    xacro : bool, optional
        As for :meth:`KinematicTree.from_urdf`.

    Raises
    ------
    ScrewdynError
        If the robot cannot be read, the link is unknown, no joint moves it, the figure or the film cannot be written,
        or Matplotlib is not installed; for the film, the extra ``view``.
    """
    from screwdyn.views import figures
    from screwdyn.views.film import film_path

    output = figures.writable(output)
    if film is not None:
        film = film_path(film)
    if urdf is None:
        task = plan(ur5(), to or "tool0", mass=3.0, ends=(_UR5_START, _UR5_END))
        title = "UR5"
    else:
        robot = KinematicTree.from_urdf(urdf, xacro=xacro)
        task = plan(robot, to or farthest(robot))
        title = urdf.name
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
    from screwdyn.views.plot import plot_comparison

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
    planned = np.array([task.path(t)[0] for t in run.t])
    columns = [task.robot.coordinates.index(name) for name in task.moving]
    trail = task.robot.forward_kinematics(task.to, np.array([state.q[:n] for state in run.states]))[:, :3, 3]
    deviations = task.deviation(run), task.deviation(without_model)
    paths = dict(zip(task.moving, planned[:, columns].T, strict=True))
    return plot_comparison(title, (run, without_model), paths, deviations, snapshots, trail)
