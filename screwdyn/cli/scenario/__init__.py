"""Scenarios: simulations that a TOML file describes (docs/files.md)."""

from pathlib import Path

from screwdyn.cli.scenario.reading import read_scenario
from screwdyn.cli.scenario.report import report
from screwdyn.core.errors import ScrewdynError
from screwdyn.simulation.simulate import simulate
from screwdyn.views.animation import film_path

__all__ = ["run_scenario"]


def run_scenario(path: Path, folder: Path, progress: bool = False, *, xacro: bool = False) -> str:
    """Simulate a scenario, write its output files to a folder, and return a summary.

    Raises
    ------
    ScenarioError
        Lists every problem of the file with the keys that lead to it.
    ScrewdynError
        If the simulation fails, an output file cannot be written, or what a film needs is not installed.
    """
    scenario = read_scenario(path, xacro)
    outputs = {what: _writable(folder, name) for what, name in scenario.outputs.items()}
    if "film" in outputs:
        film_path(outputs["film"])
    tree = scenario.robot.copy()
    run = simulate(
        tree,
        scenario.start,
        scenario.duration,
        scenario.torque,
        scenario.events,
        progress,
        step=scenario.step,
        control_period=scenario.control_period,
        stops=scenario.stops,
        saturate=scenario.saturate,
        method=scenario.method,
    )
    for what, path in outputs.items():
        if what == "figure":
            run.plot().savefig(path)
        elif what == "film":
            run.animate(path, progress=progress)
        else:
            (run.to_csv if what == "csv" else run.to_npz)(path)
    return report(run, scenario.events)


def _writable(folder: Path, name: str) -> Path:
    """The path of an output, whose folder is made if there is none."""
    path = folder / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ScrewdynError(f"cannot make the folder {str(path.parent)!r} of {name!r}: {error.strerror}") from None
    return path
