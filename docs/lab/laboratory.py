"""The laboratory: one page with the kernels as WebAssembly, the rows of a robot, and what draws both.

``python docs/lab/laboratory.py PAGE`` writes it. It needs a compiler for WebAssembly, ``pip install ziglang``.
"""

import base64
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import screwdyn as sd
from screwdyn.backends.kernels import written
from screwdyn.physics.placement import Placement
from screwdyn.physics.recursions.links import BODY
from screwdyn.views.scene import Solid, still

HERE = Path(__file__).parent
PARTS = {"STYLE": "lab.css", "SCRIPT": "lab.mjs"}
# What the page calls.
KERNELS = (
    *("dynamics", "forward_dynamics", "contribution", "link_poses", "link_twist"),
    *("kinetic_energy", "potential_energy", "impact", "slip_momentum"),
    *("constraint_jacobian", "closing", "constrained_dynamics"),
)
FUNCTIONS = ("play", "weld", "mount")
# Sines and cosines of quadruple precision, once rounded: those of other libraries differ from them least often.
EXACT = """#include <math.h>
#define sin(x) ((double)sinl(x))
#define cos(x) ((double)cosl(x))
#include "kernels.c"
"""
FLAGS = "-target wasm32-wasi -std=c99 -O2 -s -ffp-contract=off -fvisibility=default -mexec-model=reactor"
# The robot, and how a load may hang on its hand, in Python.
ARM, HAND, START = "sd.robots.ur5()", "tool0", [0.4, -1.7, 1.5, -1.37, -1.57, 0.0]
JOINTS = {
    "hook": 'sd.universal("x", "y", passive=True, name="hook")',
    "pin": 'sd.revolute("x", passive=True, name="hook")',
    "ball": 'sd.spherical(passive=True, name="hook")',
    "weld": "sd.fixed()",
}


def can_compile() -> bool:
    """Whether the compiler is installed."""
    return find_spec("ziglang") is not None


def module(kernels: Iterable[str] = KERNELS) -> bytes:
    """A WebAssembly module that exports kernels and ``malloc``."""
    names = [f"screwdyn_{kind}_{name}" for name in kernels for kind in ("run", "scratch")]
    names += ["malloc", *(f"screwdyn_{name}" for name in FUNCTIONS)]
    with tempfile.TemporaryDirectory() as folder:
        written.main([str(Path(folder, "kernels.c"))])
        source, built = Path(folder, "exact.c"), Path(folder, "kernels.wasm")
        source.write_text(EXACT)
        command = [
            sys.executable,
            "-m",
            "ziglang",
            "cc",
            *FLAGS.split(),
            f"-I{Path(written.__file__).parent}",
        ]
        subprocess.run(
            [*command, *(f"-Wl,--export={x}" for x in names), source, "-o", built, "-lm"],
            check=True,
        )
        return built.read_bytes()


def robot() -> dict[str, Any]:
    """The rows, places and surfaces of the robot, and the rows of the joints on which a load may hang."""
    arm = eval(ARM)
    model = arm.model
    *rows, base = model.table.tolist()
    scene = still(arm, np.array(START))
    camera = scene.camera
    return {
        "python": ARM,
        "rows": rows,
        "base": base,
        "links": [{"name": name, "place": model.place(name, BODY)} for name in arm.links],
        "coordinates": arm.coordinates,
        "hand": HAND,
        "q": START,
        "joints": {name: joint(python) for name, python in JOINTS.items()},
        "surfaces": {
            node.name: [surface(solid) for part in node.parts for solid in part.solids]
            for node in scene.nodes
        },
        "camera": {
            "position": camera.position.tolist(),
            "target": camera.target.tolist(),
        },
        "version": sd.__version__,
    }


def surface(solid: Solid) -> dict[str, Any]:
    """A surface to a tenth of a millimetre."""
    vertices, faces = (
        solid.vertices.round(4).ravel().tolist(),
        solid.faces.ravel().tolist(),
    )
    return {"color": solid.color, "vertices": vertices, "faces": faces}


def joint(python: str) -> dict[str, Any]:
    """The rows of a joint on a link, without those of the body that it carries, and the terms of a ball's chart."""
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.point(1.0), to=tree.base, joint=eval(python), name="load")
    at: Placement = tree.model.placements["load"]
    link = [*at.pose.R, *at.pose.p]
    return {
        "python": python,
        "names": tree.coordinates,
        "rows": [*map(list, at.freedoms)],
        "terms": tree.model.charts.terms.tolist() if tree.nq > tree.nv else [],
        "link": link,
    }


def page() -> str:
    """The page."""
    data = json.dumps(
        robot() | {"module": base64.b64encode(module()).decode()}, separators=(",", ":")
    )
    parts = {"DATA": data} | {
        name: (HERE / file).read_text(encoding="utf-8") for name, file in PARTS.items()
    }
    text = (HERE / "lab.html").read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace(f"[{name}]", part.replace("</", r"<\/"))
    return text


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
