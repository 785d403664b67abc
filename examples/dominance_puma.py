"""Fu, Gonzalez and Lee, "Robotics", section 3.4.1: which parts of the dynamics of a PUMA 560 matter along a trajectory.

The translational and rotational parts of D_ij and h_i are drawn over 31 set points, as in Figs. 3.10 and 3.11. Then
parts are left out for several tolerances, and the torque errors of the simplified models are printed. The trajectory
of the book is not printed there; this one is cycloidal.

    python examples/dominance_puma.py
"""

import argparse

import numpy as np

import screwdyn as sd

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--output", default="dominance_puma.png", help="file of the figure")
options = parser.parse_args()

arm = sd.robots.puma560()
start, end = np.radians([[0, -45, 180, 0, 45, 0], [90, 0, 90, 60, -30, 90]])


def motion(duration):
    """A cycloidal motion of all joints, at 31 set points."""
    return sd.selection.Trajectory.cycloidal(start, end, duration, step=duration / 30)


trajectory = motion(1.0)
parts = sd.formulations.dominance.parts(arm, trajectory)
M = arm.mass_matrix(trajectory.q)
print(f"D_tran + D_rot - M of the library: {np.abs(parts.D_tran + parts.D_rot - M).max():.0e} kg m²")
parts.plot().savefig(options.output, dpi=80)

print("\nTranslational share of D_ij and h_i along the trajectory:")
for name, share in zip(("D", "h"), parts.translational_share(), strict=True):
    print(f"{name} =\n{np.array2string(share, precision=2, suppress_small=True)}")

for tolerance in (0.01, 0.05, 0.1):
    print()
    model = sd.formulations.dominance.simplified(arm, trajectory, tolerance)
    print(model)
    for duration in (0.5, 2.0):
        worst = model.error_along(motion(duration)).relative.max()
        print(f"  largest relative error if the motion takes {duration:g} s: {worst:.1%}")

count = arm.operation_count("inverse_dynamics")
print(f"\nThe exact recursion of the library: {count['mul']}/{count['add']} multiplications/additions")
