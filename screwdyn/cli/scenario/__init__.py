"""Scenarios: simulations that a TOML file describes (docs/files.md)."""

from pathlib import Path

from screwdyn.cli.scenario.outputs import note, targets
from screwdyn.cli.scenario.reading import read_scenario
from screwdyn.cli.scenario.report import report
from screwdyn.simulation.simulate import simulate
from screwdyn.views.film import film_path

__all__ = ["run_scenario"]


def run_scenario(
    path: Path, folder: Path, progress: bool = False, *, overwrite: bool = False, xacro: bool = False
) -> str:
    """Simulate a scenario, write its output files to a folder, and return a summary.

    Files that no scenario has written are replaced only if `overwrite`; xacro is expanded only if `xacro`.

    Raises
    ------
    ScenarioError
        Lists every problem of the file with the keys that lead to it.
    ScrewdynError
        If the simulation fails, an output file cannot be written, or what a film needs is not installed.
    """
    scenario = read_scenario(path, xacro)
    outputs = targets(scenario.outputs, folder, overwrite)
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
        note(path, folder)
    return report(run, scenario.events)
