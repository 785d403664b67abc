"""The command ``screwdyn``: demo, simulate, compare, convert, view, info, explain, warm-up, check."""

import argparse
import io
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from screwdyn.cli.files import WRITERS, read_robot, require_readable
from screwdyn.core import ScrewdynError, ScrewdynWarning, UnknownNameError, aligned, file_errors
from screwdyn.io.urdf import check_urdf


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command, by default with the arguments of the process, and return its exit code.

    It is 0 after success, 1 if ``check`` found errors, 2 for wrong usage or invalid input, and 130 if interrupted.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Characters that the encoding does not have, such as ‡ or └, are printed as question marks.
            stream.reconfigure(errors="replace")
    arguments = _parser().parse_args(argv)
    with warnings.catch_warnings():
        warnings.simplefilter("always", ScrewdynWarning)
        warnings.showwarning = lambda message, *_, **__: print(f"screwdyn: warning: {message}", file=sys.stderr)
        try:
            if arguments.xacro_arg:
                arguments.xacro = dict(map(_xacro_argument, arguments.xacro_arg))
            code: int = arguments.run(arguments) or 0
            sys.stdout.flush()
        except OSError as error:
            # Discard buffered output, which Python would try to write again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if isinstance(error, BrokenPipeError):  # the reader closed the pipe, as in `screwdyn info FILE | head`
                return 0
            print(f"screwdyn: {error}", file=sys.stderr)
            return 2
        except ScrewdynError as error:
            print("; ".join([f"screwdyn: {error}", *getattr(error, "__notes__", [])]), file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            print("\nscrewdyn: interrupted", file=sys.stderr)
            return 130
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="screwdyn", description="Dynamics of robots that change while they move.")
    parser.add_argument("--version", action="version", version=f"screwdyn {version('screwdyn')}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(run: Callable[..., int | None], end: str = "") -> Callable[..., Any]:
        """A command with the name and the words of its function; returns how its arguments are added."""
        words = str(run.__doc__)
        short = f"{words[0].lower()}{words[1:]}".rstrip(".")
        name = run.__name__.strip("_").replace("_", "-")
        added = commands.add_parser(name, help=short, description=words, epilog=end)
        added.set_defaults(run=run)
        return added.add_argument

    robot = {"type": Path, "help": ".urdf, .xacro, .json or .xml (MJCF)"}
    floating = {"action": "store_true", "help": "of URDF: attach the root link to the world by a free joint"}
    figure = {"type": Path, "metavar": "FILE", "help": "the figure (default: %(default)s)"}

    add = command(_demo)
    add("--urdf", type=Path, metavar="FILE", help="URDF of another robot (default: a UR5)")
    words = "the link that grasps (default: tool0, or the link with the most joints on its path)"
    add("--to", metavar="LINK", help=words)
    add("--output", default=Path("screwdyn_demo.png"), **figure)
    add("--html", type=Path, metavar="FILE", help="also write a film for a browser (needs the extra view)")

    add = command(_simulate)
    add("file", type=Path, metavar="FILE", help="TOML")
    words = "folder of the output files (default: this one)"
    add("--output", type=Path, default=Path(), metavar="FOLDER", help=words)
    words = "replace files that no scenario has written, or that have changed since"
    add("--overwrite", action="store_true", help=words)

    add = command(_compare)
    add("files", nargs="+", metavar="ROBOT", **robot)
    words = "CSV of a motion with columns t and q:POSITION, as of simulations (default: through the joint limits)"
    add("--path", type=Path, metavar="FILE", help=words)
    add("--tip", metavar="LINK", help="the link that works (default: the last one that most joints move)")
    words = (
        "range of a joint of a robot, named as its file without suffix, rad or m (default: the limits in the file); "
        "may be repeated"
    )
    add("--limits", action="append", default=[], metavar="NAME:POSITION=LOW,HIGH", help=words)
    add("--output", default=Path("screwdyn_compare.png"), **figure)

    add = command(_convert)
    add("source", metavar="IN", **robot)
    add("target", type=Path, metavar="OUT", help=".urdf, .json or .xml (MJCF)")
    add("--floating-base", **floating)

    add = command(_view)
    add("file", metavar="FILE", **robot)
    words = "positions of joints, rad or m, such as elbow=0.5 (default: neutral)"
    add("--q", nargs="+", default=[], metavar="POSITION=VALUE", help=words)
    add("--html", type=Path, metavar="FILE", help="write a page that needs no network, and end")
    add("--floating-base", **floating)

    add = command(_info)
    add("file", metavar="FILE", **robot)
    add("--floating-base", **floating)

    add = command(_explain)
    add("file", metavar="FILE", **robot)
    add("link", metavar="LINK")
    add("--output", type=Path, metavar="FIGURE", help="draw it as heat maps into this file")

    add = command(_warm_up)
    add("file", metavar="FILE", **robot)
    add("--floating-base", **floating)

    add = command(_check, "exit code: 0 no errors (there may be warnings), 1 errors, 2 the file cannot be opened")
    add("file", type=Path, metavar="FILE")

    words = (
        "expand xacro, which runs the Python expressions in it, in any file; without it only in files named .xacro on "
        "the command line"
    )
    for each in commands.choices.values():
        each.add_argument("--xacro", action="store_true", default=None, help=words)
        more = "expand xacro with a value of one of its arguments, such as ur_type:=ur5e; may be repeated"
        each.add_argument("--xacro-arg", action="append", default=[], metavar="NAME:=VALUE", help=more)
    return parser


# The commands, with the words that the help shows


def _demo(given: argparse.Namespace) -> None:
    """An arm picks up a swinging crate in mid-motion; prints a report and draws a figure."""
    from screwdyn.cli.demo import demo

    progress = sys.stderr.isatty()
    demo(given.urdf, given.to, given.output, given.html, xacro=given.xacro, progress=progress)


def _simulate(given: argparse.Namespace) -> None:
    """Simulate a scenario: a robot, a schedule of grasps and releases, a controller (docs/files.md)."""
    from screwdyn.cli.scenario import run_scenario

    progress, options = sys.stderr.isatty(), {"overwrite": given.overwrite, "xacro": given.xacro or False}
    print(run_scenario(given.file, given.output, progress, **options))


def _compare(given: argparse.Namespace) -> None:
    """Compare arms by cost, workspace and manipulability; prints a table and draws a figure (docs/arm_selection.md)."""
    from screwdyn.papers.selection import Trajectory, compare
    from screwdyn.views.figures import save, writable

    output = writable(given.output)
    # Robots are named by the stems of their files or, if these are equal, by whole paths.
    stems = [file.stem for file in given.files]
    names = stems if len({*stems}) == len(stems) else [str(file) for file in given.files]
    if len({*names}) < len(names):
        raise ScrewdynError("a robot is given twice; give different files")
    arms = {name: read_robot(file, xacro=given.xacro) for name, file in zip(names, given.files, strict=True)}
    motions = None if given.path is None else {name: Trajectory.from_csv(given.path, arm) for name, arm in arms.items()}
    tips = None if given.tip is None else dict.fromkeys(arms, given.tip)
    found = compare(arms, motions, limits=_ranges(given.limits, arms), tips=tips)
    save(found.plot(), output)
    print(f"{found}\n\nFigure: {output.resolve()}")


def _ranges(given: Iterable[str], arms: Iterable[str]) -> Mapping[str, dict[str, tuple[float, float]]]:
    """The ranges of "NAME:POSITION=LOW,HIGH" by name and position."""
    ranges: dict[str, dict[str, tuple[float, float]]] = {name: {} for name in arms}
    for text in given:
        place, _, interval = text.rpartition("=")
        # Names may contain colons, as paths may.
        name = next((name for name in ranges if place.startswith(f"{name}:")), None)
        try:
            low, high = map(float, interval.split(","))
        except ValueError:
            raise ScrewdynError(f"--limits is given as NAME:POSITION=LOW,HIGH; got {text!r}") from None
        if name is None:
            raise UnknownNameError.of(place.partition(":")[0], ranges, "robot")
        ranges[name][place.removeprefix(f"{name}:")] = low, high
    return ranges


def _convert(given: argparse.Namespace) -> None:
    """Convert a robot between file formats, which are known by their suffixes."""
    source, target = given.source, given.target
    if target.exists() and source.exists() and target.samefile(source):
        raise ScrewdynError(f"{str(source)!r} is both the source and the target; give another target")
    tree, write = read_robot(source, given.floating_base, given.xacro), WRITERS.get(target.suffix.lower())
    if write is None:
        *others, last = WRITERS
        raise ScrewdynError(f"cannot write {str(target)!r}: its suffix must be {', '.join(others)} or {last}")
    text = write(tree, source.stem)
    with file_errors(f"write the file {str(target)!r}"):
        target.write_text(text, encoding="utf-8")


def _view(given: argparse.Namespace) -> None:
    """Look at a robot in the browser, with sliders for its joints; Ctrl-C ends (docs/viewing.md)."""
    tree, q = read_robot(given.file, given.floating_base, given.xacro), dict(map(_position, given.q))
    if given.html is not None:
        print(f"Page: {tree.draw(given.html, q).path.resolve()}")
        return
    with tree.show(q) as viewer:
        viewer.wait()


def _position(text: str) -> tuple[str, float]:
    name, _, value = text.rpartition("=")
    try:
        number = float(value)
    except ValueError:
        name = ""
    if not name:
        raise ScrewdynError(f"--q must be POSITION=VALUE with a number, such as elbow=0.5; got {text!r}")
    return name, number


def _xacro_argument(text: str) -> tuple[str, str]:
    name, given, value = text.partition(":=")
    if not name or not given:
        raise ScrewdynError(f"--xacro-arg must be NAME:=VALUE, such as ur_type:=ur5e; got {text!r}")
    return name, value


def _info(given: argparse.Namespace) -> None:
    """Links, masses, joints and coordinates of a robot."""
    tree = read_robot(given.file, given.floating_base, given.xacro)
    print(tree)
    print(f"\nbase: {tree.base}\nlinks: {len(tree.links)}\ncoordinates: {tree.nv}")
    if tree.nq != tree.nv:
        print(f"positions: {tree.nq}")
    print(f"mass: {tree.mass:.6g} kg")
    shaped = sum(bool(tree.shapes(link)) for link in tree.links)
    if shaped:
        print(f"links with shapes: {shaped}")
    rows: list[tuple[str, ...]] = [("joint", "kind", "limits", "motor", "damping", "friction")]
    several: list[tuple[str, ...]] = [("joint", "freedoms", "positions")]
    for name, joint in ((name, joint) for name in tree.joints if (joint := tree.joint(name)).nv):
        unit = "m" if joint.kind == "prismatic" else "rad"
        limits = "none" if joint.limits is None else f"{joint.limits[0]:.4g} to {joint.limits[1]:.4g} {unit}"
        motor = "passive" if joint.passive else "active"
        rows.append((name, joint.kind, limits, motor, f"{joint.damping:g}", f"{joint.friction:g}"))
        if joint.nv > 1:
            names = joint.freedom_names(name), joint.position_names(name)
            several.append((name, *(" ".join(x.removeprefix(name) for x in part) for part in names)))
    for table in (rows, several):
        if len(table) > 1:
            print()
            print(*aligned(table), sep="\n")


def _explain(given: argparse.Namespace) -> None:
    """What one link contributes to M, C and g, and to which joints, in the neutral configuration."""
    if given.output is None:
        print(read_robot(given.file, xacro=given.xacro).explain(given.link))
        return
    from screwdyn.views.figures import save, writable

    output, explanation = writable(given.output), read_robot(given.file, xacro=given.xacro).explain(given.link)
    save(explanation.plot(), output)
    print(f"{explanation}\n\nFigure: {output.resolve()}")


def _warm_up(given: argparse.Namespace) -> None:
    """Compile what a first call would wait for: derivatives, rollouts and functions of a robot (docs/compiled.md)."""
    from screwdyn.backends.llvm import machine

    tree, folder = read_robot(given.file, given.floating_base, given.xacro), machine.folder()
    if folder is None:
        raise ScrewdynError("code is not kept on disk; it needs the extra compile, and SCREWDYN_CACHE that is not off")
    q, rest = tree.assemble(tree.neutral()) if tree.loops else tree.neutral(), np.zeros(tree.nv)
    for derivatives in (tree.derivatives.inverse_dynamics, tree.derivatives.forward_dynamics):
        derivatives(q, rest, rest)
    tree.compile().wait().rollout(q, rest, 1, 1e-3, torque=rest)
    print(f"Code of {given.file}: {folder}")


def _check(given: argparse.Namespace) -> int:
    """Every problem of a URDF file, with its line, as file:line: severity: element: message; hint."""
    require_readable(given.file)
    problems = check_urdf(given.file, xacro=given.xacro)
    for p in problems:
        hint = f"; {p.hint}" if p.hint else ""
        print(f"{given.file}:{p.line}: {p.severity}: {p.element}: {p.message}{hint}")
    errors = sum(p.severity == "error" for p in problems)
    counts = {"error": errors, "warning": len(problems) - errors}
    print(f"{given.file}: " + ", ".join(f"{n} {what}" + "s" * (n != 1) for what, n in counts.items()))
    return 1 if errors else 0
