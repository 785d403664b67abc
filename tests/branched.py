"""A branched tree of revolute, prismatic and helical joints with reference values from another engine."""

import json
from pathlib import Path

from screwdyn import Inertia, KinematicTree, helical, prismatic, revolute

ORACLES = Path(__file__).parent / "data" / "oracles"


def branched_rph():
    """The tree, and the file with its states and their values."""
    oracle = json.loads((ORACLES / "branched_rph.json").read_text())
    tree = KinematicTree(gravity=oracle["gravity"])
    make = {"revolute": revolute, "prismatic": prismatic, "helical": helical}
    for link in oracle["links"]:
        pitch = () if link["pitch"] is None else (link["pitch"],)
        tree.attach(
            Inertia(link["m"], link["com"], link["inertia"]),
            to=link["parent"] or "base",
            joint=make[link["kind"]](link["axis"], *pitch, name=link["joint"]),
            at=link["home"],
            name=link["name"],
        )
    return tree, oracle
