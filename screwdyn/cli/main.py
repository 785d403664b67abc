"""The command ``screwdyn``: demo, simulate, compare, convert, view, info, explain, check."""

import argparse
import io
import os
import sys
import warnings
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from screwdyn.cli.robot_files import read_robot, require_readable, write_robot
from screwdyn.core.errors import ScrewdynError, ScrewdynWarning
from screwdyn.io.urdf import check_urdf

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; those of the process by default.

    Returns
    -------
    int
        Exit code: 0 success, 1 ``check`` found errors, 2 wrong usage or invalid input, 130 interrupted.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Characters that the encoding does not have, such as ‡ or └, are printed as question marks.
            stream.reconfigure(errors="replace")
    arguments = _parser().parse_args(argv)
    with warnings.catch_warnings():
        warnings.simplefilter("always", ScrewdynWarning)
        warnings.showwarning = _say
        try:
            code: int = arguments.run(arguments)
            sys.stdout.flush()
        except OSError as error:
            # Discard buffered output, which Python would try to write again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if isinstance(error, BrokenPipeError):  # the reader closed the pipe, as in `screwdyn info FILE | head`
                return 0
            print(f"screwdyn: {error}", file=sys.stderr)
            return 2
        except ScrewdynError as error:
            # The notes state the event and its time.
            print("; ".join([f"screwdyn: {error}", *getattr(error, "__notes__", [])]), file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            print("\nscrewdyn: interrupted", file=sys.stderr)
            return 130
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="screwdyn", description="Dynamics of robots that are reconfigured while they move."
    )
    parser.add_argument("--version", action="version", version=f"screwdyn {version('screwdyn')}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    words = "an arm picks up a swinging crate in mid-motion; prints a report and draws a figure"
    demo = commands.add_parser("demo", help=words, description=f"Demonstration: {words}.")
    demo.add_argument("--urdf", type=Path, metavar="FILE", help="URDF of another robot (default: a UR5)")
    demo.add_argument(
        "--to",
        metavar="LINK",
        help="the link that grasps (default: tool0, or the link with the most joints on its path)",
    )
    demo.add_argument(
        "--output",
        type=Path,
        default=Path("screwdyn_demo.png"),
        metavar="FILE",
        help="the figure (default: %(default)s)",
    )
    demo.add_argument(
        "--html", type=Path, metavar="FILE", help="also write a film for a browser (needs the extra view)"
    )
    demo.set_defaults(run=_demo)

    words = "simulate a scenario: a robot, a schedule of grasps and releases, a controller"
    scenario = commands.add_parser("simulate", help=words, description=f"{words.capitalize()} (docs/files.md).")
    scenario.add_argument("file", type=Path, metavar="FILE", help="TOML")
    scenario.add_argument(
        "--output", type=Path, default=Path(), metavar="FOLDER", help="folder of the output files (default: this one)"
    )
    scenario.add_argument(
        "--overwrite",
        action="store_true",
        help="replace files that no scenario has written, or that have changed since",
    )
    scenario.set_defaults(run=_simulate)

    words = "compare arms by cost of their dynamics, workspace and manipulability; prints a table and draws a figure"
    compare = commands.add_parser("compare", help=words, description=f"{words.capitalize()} (docs/arm_selection.md).")
    compare.add_argument("files", type=Path, nargs="+", metavar="ROBOT", help=".urdf, .xacro, .json or .xml (MJCF)")
    compare.add_argument(
        "--path",
        type=Path,
        metavar="FILE",
        help="CSV of a motion with columns t and q:POSITION, as of simulations (default: through the joint limits)",
    )
    compare.add_argument(
        "--tip", metavar="LINK", help="the link that works (default: the last one that most joints move)"
    )
    compare.add_argument(
        "--limits",
        action="append",
        default=[],
        metavar="NAME:POSITION=LOW,HIGH",
        help="range of a joint of a robot, named as its file without suffix, rad or m (default: the limits in the file)"
        "; may be repeated",
    )
    compare.add_argument(
        "--output",
        type=Path,
        default=Path("screwdyn_compare.png"),
        metavar="FILE",
        help="the figure (default: %(default)s)",
    )
    compare.set_defaults(run=_compare)

    words = "convert a robot between file formats, which are known by their suffixes"
    convert = commands.add_parser("convert", help=words, description=f"{words.capitalize()}.")
    convert.add_argument("source", type=Path, metavar="IN", help=".urdf, .xacro, .json or .xml (MJCF)")
    convert.add_argument("target", type=Path, metavar="OUT", help=".urdf, .json or .xml (MJCF)")
    convert.add_argument("--floating-base", action="store_true", help="of URDF: attach the root link by a free joint")
    convert.set_defaults(run=_convert)

    words = "look at a robot in the browser, with sliders for its joints; Ctrl-C ends"
    view = commands.add_parser("view", help=words, description=f"{words.capitalize()} (docs/viewing.md).")
    view.add_argument("file", type=Path, metavar="FILE", help=".urdf, .xacro, .json or .xml (MJCF)")
    view.add_argument(
        "--q",
        nargs="+",
        default=[],
        metavar="POSITION=VALUE",
        help="positions of joints, rad or m, such as elbow=0.5 (default: neutral)",
    )
    view.add_argument("--html", type=Path, metavar="FILE", help="write a page that needs no network, and end")
    view.add_argument("--floating-base", action="store_true", help="of URDF: attach the root link by a free joint")
    view.set_defaults(run=_view)

    words = "links, masses, joints and coordinates of a robot"
    info = commands.add_parser("info", help=words, description=f"Show {words}.")
    info.add_argument("file", type=Path, metavar="FILE", help=".urdf, .xacro, .json or .xml (MJCF)")
    info.add_argument("--floating-base", action="store_true", help="attach the root link to the world by a free joint")
    info.set_defaults(run=_info)

    words = "what one link contributes to M, C and g, and to which joints, in the neutral configuration"
    explain = commands.add_parser("explain", help=words, description=f"Show {words}.")
    explain.add_argument("file", type=Path, metavar="FILE", help=".urdf, .xacro, .json or .xml (MJCF)")
    explain.add_argument("link", metavar="LINK")
    explain.add_argument("--output", type=Path, metavar="FIGURE", help="draw it as heat maps into this file")
    explain.set_defaults(run=_explain)

    words = "every problem of a URDF file, with its line"
    check = commands.add_parser(
        "check",
        help=words,
        description=f"List {words}, as file:line: severity: element: message; hint.",
        epilog="exit code: 0 no errors (there may be warnings), 1 errors, 2 the file cannot be opened",
    )
    check.add_argument("file", type=Path, metavar="FILE")
    check.set_defaults(run=_check)
    for command in (demo, scenario, compare, convert, view, info, explain, check):
        command.add_argument(
            "--xacro",
            action="store_true",
            default=None,
            help="expand xacro, which runs the Python expressions in it, in any file; without it only in files named "
            ".xacro on the command line",
        )
    return parser


def _demo(arguments: argparse.Namespace) -> int:
    from screwdyn.cli.demo import demo

    demo(
        arguments.urdf,
        arguments.to,
        arguments.output,
        arguments.html,
        xacro=arguments.xacro,
        progress=sys.stderr.isatty(),
    )
    return 0


def _simulate(arguments: argparse.Namespace) -> int:
    from screwdyn.cli.scenario import run_scenario

    progress, options = sys.stderr.isatty(), {"overwrite": arguments.overwrite, "xacro": bool(arguments.xacro)}
    print(run_scenario(arguments.file, arguments.output, progress, **options))
    return 0


def _compare(arguments: argparse.Namespace) -> int:
    from screwdyn.cli.compare import compare_files

    print(
        compare_files(
            arguments.files, arguments.path, arguments.tip, arguments.limits, arguments.output, arguments.xacro
        )
    )
    return 0


def _convert(arguments: argparse.Namespace) -> int:
    source, target = arguments.source, arguments.target
    if target.exists() and source.exists() and target.samefile(source):
        raise ScrewdynError(f"{str(source)!r} is both the source and the target; give another target")
    write_robot(read_robot(source, arguments.floating_base, arguments.xacro), target, source.stem)
    return 0


def _view(arguments: argparse.Namespace) -> int:
    from screwdyn.cli.view import view

    view(read_robot(arguments.file, arguments.floating_base, arguments.xacro), arguments.q, arguments.html)
    return 0


def _info(arguments: argparse.Namespace) -> int:
    tree = read_robot(arguments.file, arguments.floating_base, arguments.xacro)
    print(tree)
    print(f"\nbase: {tree.base}\nlinks: {len(tree.links)}\ncoordinates: {tree.nv}")
    if tree.nq != tree.nv:
        print(f"positions: {tree.nq}")
    print(f"mass: {tree.mass:.6g} kg")
    shaped = sum(bool(tree.shapes(link)) for link in tree.links)
    if shaped:
        print(f"links with shapes: {shaped}")
    joints = {name: joint for name in tree.joints if (joint := tree.joint(name)).nv}
    rows: list[tuple[str, ...]] = [("joint", "kind", "limits", "motor", "damping", "friction")]
    for name, joint in joints.items():
        unit = "m" if joint.kind == "prismatic" else "rad"
        limits = "none" if joint.limits is None else f"{joint.limits[0]:.4g} to {joint.limits[1]:.4g} {unit}"
        motor = "passive" if joint.passive else "active"
        rows.append((name, joint.kind, limits, motor, f"{joint.damping:g}", f"{joint.friction:g}"))
    _print_table(rows)
    rows = [("joint", "freedoms", "positions")]
    for name, joint in joints.items():
        if joint.nv > 1:
            names = joint.freedom_names(name), joint.position_names(name)
            rows.append((name, *(" ".join(x.removeprefix(name) for x in part) for part in names)))
    _print_table(rows)
    return 0


def _explain(arguments: argparse.Namespace) -> int:
    if arguments.output is not None:
        from screwdyn.views import figures

        output = figures.writable(arguments.output)
    explanation = read_robot(arguments.file, xacro=arguments.xacro).explain(arguments.link)
    print(explanation)
    if arguments.output is not None:
        figures.save(explanation.plot(), output)
        print(f"\nFigure: {output.resolve()}")
    return 0


def _print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print an empty line and columns of text, or nothing if there is only the heading."""
    if len(rows) > 1:
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        print()
        for row in rows:
            print("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def _check(arguments: argparse.Namespace) -> int:
    require_readable(arguments.file)
    problems = check_urdf(arguments.file, xacro=arguments.xacro)
    for p in problems:
        hint = f"; {p.hint}" if p.hint else ""
        print(f"{arguments.file}:{p.line}: {p.severity}: {p.element}: {p.message}{hint}")
    errors = sum(p.severity == "error" for p in problems)
    print(f"{arguments.file}: {_count(errors, 'error')}, {_count(len(problems) - errors, 'warning')}")
    return 1 if errors else 0


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _say(message: Warning | str, *_: object, **__: object) -> None:
    print(f"screwdyn: warning: {message}", file=sys.stderr)
