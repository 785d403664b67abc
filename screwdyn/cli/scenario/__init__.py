"""Scenarios: simulations that a TOML file describes (docs/files.md)."""

from pathlib import Path

from screwdyn.cli.scenario.reading import read_scenario
from screwdyn.cli.scenario.report import report
from screwdyn.core.errors import ScrewdynError
from screwdyn.simulation.simulate import simulate

__all__ = ["run_scenario"]


def run_scenario(path: Path, folder: Path, progress: bool = False) -> str:
    """Simulate a scenario, write its output files to a folder, and return a summary.

    Raises
    ------
    ScenarioError
        Lists every problem of the file with the keys that lead to it.
    ScrewdynError
        If the simulation fails, or an output file cannot be written.
    """
    scenario = read_scenario(path)
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
    )
    for write, name in ((run.to_csv, scenario.csv), (run.to_npz, scenario.npz)):
        if name is not None:
            write(_writable(folder, name))
    if scenario.figure is not None:
        run.plot().savefig(_writable(folder, scenario.figure))
    return report(run)


def _writable(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.parent.is_dir():
        raise ScrewdynError(f"there is no folder {str(path.parent)!r} for the output {name!r}")
    return path
