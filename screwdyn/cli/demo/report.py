"""The results of the demonstration as text."""

from collections.abc import Sequence

import numpy as np

from screwdyn.cli.demo.task import Task
from screwdyn.core.types import Array
from screwdyn.simulation.impact import GraspEvent
from screwdyn.simulation.simulate import Run

__all__ = ["describe", "summary"]


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
    rows = (("with payload model", with_model), ("without", without_model))
    worst = [
        f"  {label:18} {1000 * task.deviation(run).max():8.1f} mm   {_joint_error(task, run)}" for label, run in rows
    ]
    return "\n".join(
        [
            f"{summary(task)}. The robot with the crate:",
            "",
            str(loaded),
            "",
            f"Contribution of {task.crate!r} right after the grasp, over the coordinates on its path (SI units):",
            *_numbered(share.coordinates),
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
    planned = np.array([task.path(t)[0] for t in run.t])
    off = np.abs(np.array([state.q[: task.robot.nv] for state in run.states]) - planned).max(axis=0)
    k = int(off.argmax())
    name = task.robot.coordinates[k]
    slides = task.robot.joint(name).kind == "prismatic"
    return f"{1000 * off[k]:.2g} mm ({name})" if slides else f"{np.degrees(off[k]):.2g}° ({name})"


def _numbered(names: Sequence[str]) -> list[str]:
    lines = ["  "]
    for k, name in enumerate(names, 1):
        if len(lines[-1]) + len(name) > 100:
            lines.append("  ")
        lines[-1] += f"{k} {name}   "
    return [line.rstrip() for line in lines]


def _table(title: str, rows: Array) -> list[str]:
    """Rows of numbers in columns of equal width, with four significant digits for the largest number."""
    largest = float(np.abs(rows).max(initial=0.0))
    digits = int(np.clip(3 - np.floor(np.log10(largest)), 0, 6)) if largest else 3
    # Adding zero replaces -0 by 0.
    lines = ["".join(f"{x:10.{digits}f}" for x in np.round(row, digits) + 0.0) for row in rows]
    return [f"  {title if k == 0 else '':4}{line}" for k, line in enumerate(lines)]
