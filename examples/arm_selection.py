"""Bhangale, Saha and Agrawal 2004: which arm to choose, RP or PR, RTX or Stanford (docs/arm_selection.md).

All lengths and strokes of the planar arms are 0.8584 m, the length that the paper has for link 2 of the PR arm; the
prismatic joints of RTX and Stanford have a stroke of 1 m. All joints move by the paper's Eq. 23 for the torques of its
Fig. 6 and for the time of inverse dynamics.

    python examples/arm_selection.py --samples 16384
"""

import argparse

import numpy as np

import screwdyn as sd
from screwdyn.papers.selection import Trajectory, compare

A = 0.8584
# What Tables III and V have: multiplications and additions of M (GIM) and C (MCI), time, s.
PAPER = {
    "RP": ("12M 6A", "26M 14A", 0.651),
    "PR": ("21M 6A", "28M 18A", 0.761),
    "RTX": ("142M 138A", "389M 317A", 9.443),
    "Stanford": ("170M 154A", "522M 352A", 11.166),
}
# Closed forms of the workspace: those of the paper, but for PR without the hole, which the paper does not subtract.
HOLE = (2 * np.pi / 3 - np.sqrt(3) / 2) * A**2
WORKSPACE = {
    "RP": 3 * np.pi * A**2,
    "PR": (np.pi + 2) * A**2 - HOLE,
    "RTX": 4 * np.pi * 0.432 * 0.2,
    "Stanford": 4 / 3 * np.pi,
}
PAIRS = {
    "planar": {
        "RP": (sd.robots.planar_rp(A), {"b2": (0, A)}),
        "PR": (sd.robots.planar_pr(A), {"b1": (0, A)}),
    },
    "spatial": {
        "RTX": (sd.robots.rtx(), {"b1": (0, 1)}),
        "Stanford": (sd.robots.stanford(), {"b3": (0, 1)}),
    },
}

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--samples", type=int, default=4096, help="positions that are tried for each workspace")
samples = parser.parse_args().samples
for title, pair in PAIRS.items():
    arms = {name: arm for name, (arm, _) in pair.items()}
    motion = {name: Trajectory.cycloidal(np.zeros(arm.nv), np.full(arm.nv, np.pi)) for name, arm in arms.items()}
    found = compare(arms, motion, limits={name: ranges for name, (_, ranges) in pair.items()}, samples=samples)
    print(found)
    first = PAPER[next(iter(arms))][2]
    for name in arms:
        M, C, seconds = PAPER[name]
        size, exact = found[name].workspace, WORKSPACE[name]
        print(f"{name}: the paper has {M} for M, {C} for C, time {seconds / first:.2f};", end=" ")
        print(f"workspace by closed form {exact:.4f}, by sampling {size.value:.4f} ± {size.error:.4f}")
    found.plot().savefig(f"arm_selection_{title}.png", dpi=75)
    print(f"Figure: arm_selection_{title}.png\n")
