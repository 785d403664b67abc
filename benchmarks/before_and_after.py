"""Two versions of the library in one run, on robots with joints of one freedom.

python benchmarks/before_and_after.py [commit] [robot ...]

The commit (by default the last one before joints of several freedoms) is checked out in a temporary folder. Each
version runs in its own process. They are called in turns, for a millisecond each, so that disturbances affect both.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import process_time
from timeit import Timer
from typing import Any

HERE = Path(__file__).resolve()
BEFORE = "76650ee"
ROBOTS = {"UR5": "ur5_robot.urdf", "Panda": "panda.urdf", "Talos": "talos_reduced.urdf"}
DYNAMICS = {
    "inverse_dynamics": "(q, v, a{})",
    "forward_dynamics": "(q, v, a{})",
    "coriolis_matrix": "(q, v{})",
    "mass_matrix": "(q{})",
    "gravity_vector": "(q{})",
}
CALLS = {
    **{name: f"tree.{name}{arguments.format('')}" for name, arguments in DYNAMICS.items()},
    "forward_kinematics": "tree.forward_kinematics(link, q)",
    "jacobian": "tree.jacobian(link, q)",
    "jacobian_dot": "tree.jacobian_dot(link, q, v)",
    "kinetic_energy": "tree.kinetic_energy(q, v)",
    "potential_energy": "tree.potential_energy(q)",
    "momentum": "tree.momentum(q, v)",
    "contribution": "tree.contribution(link, q, v)",
    "attach, M, C, g, detach": (
        "h = tree.attach(body, to=link, joint=hinge); tree.mass_matrix(q_); tree.coriolis_matrix(q_, v_); "
        "tree.gravity_vector(q_); tree.detach(h)"
    ),
    **{
        f"compiled {name}": f"fast.{name}{arguments.format(', out=out_' + name)}"
        for name, arguments in DYNAMICS.items()
    },
    "1000 x inverse_dynamics": "tree.inverse_dynamics(Q, V, A)",
    "1000 x coriolis_matrix": "tree.coriolis_matrix(Q, V)",
    "compiled 1000 x inverse_dynamics": "fast.inverse_dynamics(Q, V, A, out=R)",
    "compiled 1000 x forward_dynamics": "fast.forward_dynamics(Q, V, A, out=R)",
}


def scope_of(robot: str) -> dict[str, Any]:
    """The variables of the calls."""
    import importlib.metadata
    import warnings

    import numpy as np

    import screwdyn as sd

    files = importlib.metadata.files("example-robot-data") or []
    file = Path(str(next(f.locate() for f in files if f.name == ROBOTS[robot])))
    # Earlier versions ignore <mimic>.
    text = re.sub(r"<mimic\b[^>]*/>", "", file.read_text(encoding="utf-8"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sd.ScrewdynWarning)
        tree = sd.KinematicTree.from_urdf(text)
    rng, n = np.random.default_rng(0), tree.nv
    scope = {"np": np, "tree": tree, "fast": tree.compile(threads=1).wait(), "link": tree.links[-1]}
    scope |= dict(zip("qva", rng.uniform(-1, 1, (3, n)), strict=True))
    scope |= {name.upper(): np.ascontiguousarray(rng.uniform(-1, 1, (1000, n)).T).T for name in "qva"}
    scope |= {"R": np.empty((n, 1000)).T, "body": sd.Inertia.box(1.0, (0.1, 0.2, 0.3)), "hinge": sd.revolute("x")}
    scope |= {"q_": np.append(scope["q"], 0.1), "v_": np.append(scope["v"], 0.1)}
    for name in DYNAMICS:
        scope[f"out_{name}"] = np.empty((n, n) if name.endswith("matrix") else n)
    return scope


def work() -> None:
    """Read robot, call and number of calls from standard input; print the seconds of one call."""
    scopes: dict[str, dict[str, Any]] = {}
    for line in sys.stdin:
        robot, call, number = line.rstrip("\n").split("\t")
        if robot not in scopes:
            scopes[robot] = scope_of(robot)
        print(
            Timer(CALLS[call], timer=process_time, globals=scopes[robot]).timeit(int(number)) / int(number), flush=True
        )


class Version:
    """A process with one version of the library."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(HERE), "--work"],
            env={"PYTHONPATH": str(folder), "PATH": "", "HOME": str(Path.home())},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seconds(self, robot: str, call: str, number: int) -> float:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(robot, call, number, sep="\t", file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())


def compare(robot: str, call: str, before: Version, after: Version, repeats: int = 200) -> None:
    """One line of the table: the shortest times of both, their ratio, and the median ratio of the turns."""
    for version in (before, after):
        version.seconds(robot, call, 1)
    number = max(1, round(1e-3 / min(before.seconds(robot, call, 3) for _ in range(5))))
    pairs = [(before.seconds(robot, call, number), after.seconds(robot, call, number)) for _ in range(repeats)]
    a, b = (min(times) for times in zip(*pairs, strict=True))
    print(f"  {call:34s}{1e6 * a:11.3f}{1e6 * b:11.3f}{b / a:8.2f}{median(y / x for x, y in pairs):9.2f}", flush=True)


def main(commit: str, robots: list[str]) -> None:
    root = HERE.parents[1]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "-C", str(root), "worktree", "add", "-q", "--detach", folder, commit], check=True)
        try:
            before, after = Version(Path(folder)), Version(root)
            print("shortest microseconds per call; ratio after/before of these, and median ratio of 200 turns")
            for robot in robots:
                print(f"{robot}\n  {'':34s}{'before':>11s}{'after':>11s}{'ratio':>8s}{'median':>9s}")
                for call in CALLS:
                    compare(robot, call, before, after)
            for version in (before, after):
                version.process.communicate()
        finally:
            subprocess.run(["git", "-C", str(root), "worktree", "remove", "--force", folder], check=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--work"]:
        work()
    else:
        chosen = sys.argv[1:]
        main(chosen.pop(0) if chosen and chosen[0] not in ROBOTS else BEFORE, chosen or list(ROBOTS))
