"""Draw figures of the pages from what their code computes: ``python docs/figures.py PAGE …``, by default all.

``gallery`` draws the picture of the README from runs of examples.

The tests run these functions after the code of a page, and do not compare pictures.
"""

import os
import re
import runpy
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from timeit import Timer

import matplotlib.pyplot as plt
import numpy as np
import sympy

import screwdyn as sd
from screwdyn.forms.requests import operations_of
from screwdyn.simulation.film import scene_at
from screwdyn.views.picture import Painter
from screwdyn.views.scene import View

DOCS = Path(__file__).parent


def panels(count, **options):
    """A figure with axes side by side, as wide as a page."""
    return plt.subplots(1, count, figsize=(7.2, 2.4), layout="constrained", **options)


def phone(height, rows=1):
    """A figure with axes below each other, whose text is legible on a phone, where it is 360 pixels wide."""
    return plt.subplots(rows, sharex=True, figsize=(5, height), layout="constrained")


def shortest(call):
    """The shortest time of a call, s."""
    timer = Timer(call)
    number = 1 + int(0.002 / timer.timeit(1))
    return min(timer.repeat(9, number)) / number


def moments(drawn, run, times, camera, size):
    """A run at some times, as the viewer draws it, in axes."""
    view = View(hide=("events", "text"), camera=camera, size=size)
    painter = Painter(scene_at(run.motions, run.events, np.array(times), view))
    for k, (axes, t) in enumerate(zip(drawn, times, strict=True)):
        axes.imshow(painter.draw(k))
        axes.set_title(f"{t:g} s", fontsize="medium")
        axes.set_axis_off()


def c_controller(page):
    """Error of an arm with and without the bit of its crate, by the Python twin of the law in C."""
    figure, axes = phone(2.6)
    made = runpy.run_path(str(DOCS.parent / "examples/export_controller.py"))
    bare, law, reference = sd.robots.ur5(), made["LAW"], made["reference"]
    grasp = sd.Grasp(
        made["CRATE"], to="tool0", at=made["GRIP"], twist="co_moving", time=0.5
    )
    events = [grasp, sd.Release("crate", time=1.5)]
    laws = {
        "bit never set": lambda t, state: law(t, sd.State(bare, state.q, state.qd)),
        "bit set by the grasp, cleared by the release": law,
    }
    for name, torque in laws.items():
        arm = sd.robots.ur5()
        start = sd.State(arm, *reference(0.0)[:2])
        run = sd.simulate(arm, start, 2.0, torque, events, step=0.01)
        error = np.degrees(run.q - [reference(t)[0] for t in run.t])
        axes.plot(run.t, np.abs(error).max(axis=1), label=name)
    axes.axvspan(0.5, 1.5, color="0.92", label="crate in the gripper")
    axes.set(xlabel="time, s", ylabel="largest error, °", ylim=(-0.5, 16))
    axes.legend(loc="upper left")
    return figure


def c_library(page):
    """The table of a robot before and after a part is attached, by the text that the page writes."""
    figure, both = phone(4, rows=2)
    lines = page["arm"].to_c_table("ur5", optional=["crate"]).splitlines()
    numbers = [re.findall(r"-?\d+\.\d+(?:e-\d+)?", x) for x in lines if "    {{" in x]
    table = np.array(numbers, float)
    table[6, 24:26] = 5.0, 6.0  # rows of the robot, by screwdyn_attach
    fields, widths = "turn place kind mass moment inertia parent", [9, 3, 2, 1, 3, 6, 3]
    ends = np.cumsum(widths)
    for group in np.split(table, ends[:-1], axis=1):
        group /= np.abs(group).max()
    parts = {"ur5": 6, "ur5_crate": 7}
    for axes, (part, rows) in zip(both, parts.items(), strict=True):
        axes.set_title(f"screwdyn_attach(&robot, &{part})", fontsize="medium")
        axes.imshow(table[:rows], "RdBu", vmin=-1, vmax=1, aspect="auto")
        axes.vlines(ends - 0.5, -0.5, rows - 0.5, "0.5", lw=0.8)
        names = [x.removesuffix("_joint") for x in page["arm"].coordinates]
        axes.set(yticks=range(7), yticklabels=names, ylim=(6.5, -0.5))
    axes.set_xticks(ends - np.divide(widths, 2) - 0.5, fields.split(), rotation=90)
    return figure


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


def closed_forms(page):
    """Entries of M as formulas and as numbers; and operations of M, written out and with shared terms."""
    figure, (entries, lengths) = panels(2)
    forms, numbers = page["forms"], page["numbers"]
    angle = np.linspace(-np.pi, np.pi, 101)
    M = forms.lambdify("mass_matrix")
    values = {"L": 0.5, "m": 2.0}
    values = [values[x.name] for x in forms.parameters]
    for (i, j), color in (((0, 0), "C0"), ((0, 1), "C1"), ((1, 1), "C2")):
        curve = [M([0, x], values)[i][j] for x in angle]
        entries.plot(angle, curve, color, label=f"$M_{{{i + 1}{j + 1}}}$")
        dots = numbers.mass_matrix(np.stack([0 * angle, angle], -1)[::10])[:, i, j]
        entries.plot(angle[::10], dots, "o", color=color, ms=3)
    entries.set(xlabel="$q_2$, rad", ylabel="kg m²")
    entries.legend()
    three = page["arm"].copy()
    rod, hinge = three.link("lower").inertia, sd.revolute("y", name="q3")
    three.attach(rod, to="lower", at=(page["L"], 0, 0), joint=hinge, name="last")
    robots = {"two rods": page["arm"], "three": three, "UR5": sd.robots.ur5()}
    written = [sympy.Matrix(x.symbolic().mass_matrix()) for x in robots.values()]
    written = [sum(sympy.count_ops(x) for x in matrix) for matrix in written]
    shared = [sum(x.operation_count("mass_matrix").values()) for x in robots.values()]
    for k, (name, counts) in enumerate(
        {"written out": written, "shared": shared}.items()
    ):
        bars = lengths.bar(np.arange(3) + 0.4 * k - 0.2, counts, 0.36, label=name)
        lengths.bar_label(bars, fontsize="small")
    lengths.set(yscale="log", ylabel="operations of M", ylim=(1, 2e4))
    lengths.set_xticks(range(3), robots)
    lengths.legend(loc="upper left")
    return figure


def compiled(page):
    """Time of inverse dynamics over the number of states in a call."""
    figure, axes = panels(1)
    counts = 4 ** np.arange(7)
    ways = {
        "kernel of the tree, rows": (page["tree"], False),
        "compiled, rows": (page["fast"], False),
        "compiled, side by side": (page["fast"], True),
    }
    rng = np.random.default_rng(0)
    for name, (of, beside) in ways.items():
        times = []
        for count in counts:
            shape = (3, 6, count) if beside else (3, count, 6)
            given = rng.normal(size=shape)
            given = (
                [x.T if beside else x for x in given]
                if count > 1
                else given.reshape(3, 6)
            )
            call = Timer(lambda f=of.inverse_dynamics, x=given: f(*x))
            number = 1 + 500 // count
            times.append(min(call.repeat(5, number)) / number / count)
        axes.loglog(counts, 1e9 * np.array(times), "o-", ms=3, label=name)
    axes.set(xlabel="states in one call", ylabel="ns a state")
    axes.legend(fontsize="small")
    return figure


def contacts(page):
    """Height and distance of the crate, and what the floor pushes it with."""
    figure, (left, right) = panels(2)
    run, name = page["run"], "floor"
    left.plot(run.t, run["crate[pz]"], label="height of its centre")
    left.plot(run.t, run["crate[px]"], label="distance along the floor")
    left.set(xlabel="time, s", ylabel="m")
    times = run.t[::2]
    forces = np.array([run.contact(name, t).forces.sum(axis=0) for t in times])
    right.plot(times, forces[:, 2], label="upward")
    right.plot(times, forces[:, 0], label="friction")
    right.set(xlabel="time, s", ylabel="force of the floor, N")
    for axes in (left, right):
        axes.legend(fontsize="small")
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


def files(page):
    """A crane with its shapes, as the viewer draws it, at rest and aside."""
    figure, places = panels(2)
    camera, size = [(1.1, -2.2, 0.1), (0, 0, -0.6)], (480, 320)
    for axes, angle in zip(places, (0.0, 0.5), strict=True):
        page["crane"].draw("crane.png", [angle], camera=camera, size=size, hide="grid")
        axes.imshow(plt.imread("crane.png"))
        axes.axis("off")
    return figure


def forms(page):
    """Time until the torques of a number of states are known, by each form."""
    figure, axes = phone(3)
    # Code of this robot is never in the cache.
    arm = sd.KinematicTree(gravity=(0, 0, -9.8 - 0.01 * np.random.default_rng().random()))
    arm.attach(sd.robots.ur5(), to="base", prefix="ur5/")
    states = np.random.default_rng(0).normal(size=(3, 6, 10_000))
    one, batch = [x[:, 0].copy() for x in states], [x.T for x in states]

    def compiled_method(name):
        return getattr(arm.compile(threads=1).wait(), name)

    ways = {
        "functions of closed forms": (arm.symbolic().lambdify, one, 1),
        "numbers": (lambda name: getattr(arm, name), one, 1),
        "compiled, in batches": (compiled_method, batch, 10_000),
    }
    count = np.logspace(0, 9)
    for name, (prepare, given, states) in ways.items():
        began = perf_counter()
        call = prepare("inverse_dynamics")
        start = perf_counter() - began
        each = shortest(lambda f=call, x=given: f(*x)) / states
        axes.loglog(count, start + count * each, label=name)
    axes.set(xlabel="states", ylabel="time, s", ylim=(1e-5, 1e6))
    axes.legend()
    return figure


def formulations(page):
    """Operations of inverse dynamics by each formulation and by the library."""
    figure, axes = phone(2.6)
    arm = page["arm"]
    counts = {"tree": arm.operation_count("inverse_dynamics")}
    for name in page["formulations"].__all__:
        witness = getattr(page["formulations"], name)(arm)
        counts[name] = operations_of(witness.inverse_dynamics, q=6, qd=6, qdd=6)
    counts = {name: x["mul"] + x["add"] for name, x in counts.items()}
    names = sorted(counts, key=counts.get, reverse=True)
    colors = ["C1" if name == "tree" else "C0" for name in names]
    bars = axes.barh(names, [counts[name] for name in names], color=colors)
    axes.bar_label(bars, padding=3)
    axes.set(xlabel="multiplications and additions of τ", xlim=(0, 7000))
    return figure


def humanoids(page):
    """The robot in three moments; what a foot presses with, and where."""
    figure, axes = plt.subplot_mosaic(
        "aabbcc;dddeee", figsize=(7.2, 5.0), layout="constrained", height_ratios=(1.3, 1)
    )
    times = (0.0, 1.0, 2.0)
    moments([axes[k] for k in "abc"], page["run"], times, (1, -0.6, 0.2), (480, 520))
    left, right = axes["d"], axes["e"]
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


def scaling(page):
    """What threads and workers divide of the time of a state, at best."""
    figure, axes = phone(2.6)
    fast, rng = sd.robots.ur5().compile(threads=1).wait(), np.random.default_rng(0)
    state, tau = np.empty((3, 6, 10_000)), np.empty((6, 10_000))
    given, out, loads = [x.T for x in state], tau.T, np.empty(tau.shape, int)

    def histograms():
        np.minimum(np.abs(tau), 999, out=loads, casting="unsafe")
        return [np.bincount(joint, minlength=1000) for joint in loads]

    parts = {  # and by how many threads and workers they are shared
        "random states": (lambda: rng.random(out=state), (1, 1, 8)),
        "torques": (lambda: fast.inverse_dynamics(*given, out=out), (1, 8, 8)),
        "histograms": (histograms, (1, 1, 8)),
    }
    left = np.zeros(3)
    for name, (part, shared) in parts.items():
        width = 1e9 * shortest(part) / 10_000 / np.array(shared)
        axes.barh(["1 process", "8 threads", "8 workers"], width, left=left, label=name)
        left += width
    axes.set(xlabel="ns a state", ylim=(2.5, -0.5))
    axes.legend()
    return figure


def of_run(*panels):
    """A figure of the run of a page."""
    return lambda page: page["run"].plot(panels)


def start(page):
    """The arm with the crate, and after its release."""
    figure, both = panels(2)
    moments(
        both, page["run"], (0.3, 0.9), [(1.5, -0.5, 0.5), (0.15, 0.1, 0.2)], (720, 480)
    )
    return figure


FIGURES = {
    "c_controller": c_controller,
    "c_library": c_library,
    "changes": changes,
    "closed_forms": closed_forms,
    "closed_loops": closed_loops,
    "compiled": compiled,
    "contacts": contacts,
    "control": control,
    "configurations": of_run("positions", "torques"),
    "derivatives": derivatives,
    "files": files,
    "forms": forms,
    "formulations": formulations,
    "handover": of_run("positions", "torques"),
    "humanoids": humanoids,
    "identification": identification,
    "passive_joints": of_run("positions", "energy"),
    "predictive_control": of_run("positions", "torques"),
    "rollouts": rollouts,
    "scaling": scaling,
    "start": start,
}

# Figures without the name of their page: formulations.png is in papers/counts.md.
FILES = {"formulations": "formulations_puma"}

# For the picture of the gallery: examples, times, s, directions of the camera, and sizes of panels, one row each.
GALLERY = (
    ("two_arms_hand_over", (1.2, 2.75, 4.3), (0.1, -1, 0.3), (560, 290)),
    ("stewart_platform", (0.05, 4.0), (0.6, -1, 0.4), (560, 380)),
    ("two_arms_carry_a_bar", (2.0,), (0.4, -1, 0.2), (560, 380)),
)


def gallery():
    """Moments of examples as the viewer draws them, (pixels, pixels, 3)."""
    rows = {}
    for name, times, camera, size in GALLERY:
        path = DOCS.parent / f"examples/gallery/{name}.py"
        run = runpy.run_path(str(path))["run"]
        view = View(hide=("events", "text"), camera=camera, size=size)
        for t in times:
            scene = scene_at(run.motions, run.events, np.array([t]), view)
            rows.setdefault(size, []).append(Painter(scene).draw(0))
    return np.concatenate([np.concatenate(row, axis=1) for row in rows.values()])


if __name__ == "__main__":
    sys.path.insert(0, str(DOCS.parent / "tests"))
    from test_docs import python_blocks

    plt.style.use("petroff10")
    for name in sys.argv[1:] or [*FIGURES, "gallery"]:
        with TemporaryDirectory() as folder:
            os.chdir(folder)
            if name == "gallery":
                plt.imsave(DOCS / "gallery.png", gallery())
                continue
            names = {}
            for block, _ in python_blocks(DOCS / f"{name}.md"):
                exec(compile(block, name, "exec"), names)
            FIGURES[name](names).savefig(
                DOCS / f"{FILES.get(name, name)}.png",
                dpi=160,
                metadata={"Software": None},
            )
            plt.close("all")
