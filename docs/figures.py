"""Draw figures of the pages from what their code computes: ``python docs/figures.py PAGE …``, by default all.

The tests run these functions after the code of a page, and do not compare pictures.
"""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np

DOCS = Path(__file__).parent


def panels(count, **options):
    """A figure with axes side by side, as wide as a page."""
    return plt.subplots(1, count, figsize=(7.2, 2.4), layout="constrained", **options)


def changes(page):
    """Rates of the joints around a grasp and a lock."""
    figure, axes = panels(1)
    before, grasped, locked = page["moving"], page["grasp"].state, page["locked"].state
    names = [name for name in before.coordinates if name.startswith("left/")]
    names += [name for name in grasped.coordinates if name not in before.coordinates]
    for k, (label, state) in enumerate(
        (("before", before), ("after the grasp", grasped), ("after the lock", locked))
    ):
        rates = [
            state.velocity(name) if name in state.coordinates else np.nan
            for name in names
        ]
        axes.bar(np.arange(len(names)) + 0.27 * (k - 1), rates, 0.25, label=label)
    labels = [
        name.removeprefix("left/").removesuffix("_joint").replace("_", "\n")
        for name in names
    ]
    axes.set_xticks(range(len(names)), labels, fontsize="small")
    axes.set_ylabel("rad/s")
    axes.legend()
    return figure


def closed_loops(page):
    """The four-bar in three positions, and the curve of the centre of its coupler."""
    figure, axes = panels(1)
    linkage, q, curve = page["linkage"], page["q"], []
    for k, angle in enumerate(np.linspace(0.7, 0.7 + 2 * np.pi, 121)):
        q = linkage.assemble([angle, *q[1:]], hold=["crank"])
        ends = {
            name: [
                (linkage.forward_kinematics(name, q) @ (x, 0, 0, 1))[:2]
                for x in (0, length)
            ]
            for name, length in (("crank", 1.0), ("coupler", 2.5), ("rocker", 2.0))
        }
        curve.append(np.mean(ends["coupler"], axis=0))
        if k in (0, 12, 24):
            for color, (name, bar) in enumerate(ends.items()):
                style = {
                    "color": f"C{color}",
                    "lw": 4,
                    "alpha": 1 - k / 36,
                    "solid_capstyle": "round",
                }
                axes.plot(*np.transpose(bar), label=None if k else name, **style)
    axes.plot(*np.transpose(curve), "k:", lw=1, label="centre of the coupler")
    axes.set(aspect="equal", xlabel="m", ylabel="m")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def control(page):
    """Errors of the joints while a load is learned."""
    figure, axes = panels(1)
    run = page["run"]
    axes.plot(run.t, run.q - page["tracked"], label=run.positions)
    axes.set(xlabel="time, s", ylabel="error, rad")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small")
    return figure


def derivatives(page):
    """Error of difference quotients over their step."""
    figure, axes = panels(1)
    steps = np.logspace(-12, -1, 100)
    axes.loglog(
        steps, [np.abs(page["difference"](h) - page["by_q"]).max() for h in steps]
    )
    axes.set(xlabel="step of the difference quotient, rad", ylabel="error, N m/rad")
    return figure


def identification(page):
    """The confidence region of two parameters, and their true values."""
    figure, axes = panels(1)
    found, load = page["found"], page["load"]
    axes.plot(*np.transpose(page["border"]), label="95 % confidence region")
    axes.plot(found["m"], found["cz"], "o", color="C0", label="estimate")
    axes.plot(load.mass, load.com[2], "kx", label="true values")
    axes.set(xlabel="mass, kg", ylabel="height of its centre, m")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def humanoids(page):
    """What a foot presses with, and where."""
    figure, (left, right) = panels(2)
    t, push, center = (page[name][::10] for name in ("t", "push", "center"))
    left.plot(t, push)
    left.set(xlabel="time, s", ylabel="vertical force, N", ylim=(0, None))
    right.axhspan(-0.08, 0.16, color="0.92", label="sole")
    right.plot(t, center)
    right.set(xlabel="time, s", ylabel="centre of pressure, m")
    right.legend()
    return figure


def rollouts(page):
    """Joints of all runs at the recorded times."""
    figure, axes = panels(2)
    run, masses = page["run"], [crate.mass for crate in page["crates"]]
    t = 0.01 * np.arange(len(run.q))
    for name, ax in zip(("shoulder_lift_joint", "wrist_1_joint"), axes, strict=True):
        q = run.q[:, ::20, page["arm"].coordinates.index(name)]
        for k, mass in enumerate(masses[::20]):
            ax.plot(t, q[:, k], lw=0.7, color=plt.cm.viridis((mass - 0.5) / 3.5))
        ax.set(xlabel="time, s", ylabel="rad", title=name)
    colors = plt.cm.ScalarMappable(plt.Normalize(0.5, 4), "viridis")
    figure.colorbar(colors, ax=axes, label="payload, kg")
    return figure


def of_run(*panels):
    """A figure of the run of a page."""
    return lambda page: page["run"].plot(panels)


FIGURES = {
    "changes": changes,
    "closed_loops": closed_loops,
    "control": control,
    "configurations": of_run("positions", "torques"),
    "derivatives": derivatives,
    "handover": of_run("positions", "torques"),
    "humanoids": humanoids,
    "identification": identification,
    "passive_joints": of_run("positions", "energy"),
    "predictive_control": of_run("positions", "torques"),
    "rollouts": rollouts,
}

if __name__ == "__main__":
    sys.path.insert(0, str(DOCS.parent / "tests"))
    from test_docs import python_blocks

    plt.style.use("petroff10")
    for name in sys.argv[1:] or FIGURES:
        with TemporaryDirectory() as folder:
            os.chdir(folder)
            names = {}
            for block, _ in python_blocks(DOCS / f"{name}.md"):
                exec(compile(block, name, "exec"), names)
            FIGURES[name](names).savefig(
                DOCS / f"{name}.png", dpi=100, metadata={"Software": None}
            )
            plt.close("all")
