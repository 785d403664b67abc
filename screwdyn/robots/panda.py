"""The Franka Emika Panda."""

from math import pi

from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.link import Link
from screwdyn.tree import KinematicTree

__all__ = ["panda"]

# Mass, centre of mass, and tensor about it (xx, xy, xz, yy, yz, zz), in the frame of the link.
_BODIES = (
    (0.629769, (-0.041018, -0.00014, 0.049974), (0.00315, 8.2904e-7, 0.00015, 0.00388, 8.2299e-6, 0.004285)),
    (4.970684, (0.003875, 0.002081, -0.04762), (0.70337, -0.000139, 0.006772, 0.70661, 0.019169, 0.009117)),
    (0.646926, (-0.003141, -0.02872, 0.003495), (0.007962, -0.003925, 0.010254, 0.02811, 0.000704, 0.025995)),
    (3.228604, (0.027518, 0.039252, -0.066502), (0.037242, -0.004761, -0.011396, 0.036155, -0.012805, 0.01083)),
    (3.587895, (-0.05317, 0.104419, 0.027454), (0.025853, 0.007796, -0.001332, 0.019552, 0.008641, 0.028323)),
    (1.225946, (-0.011953, 0.041065, -0.038437), (0.035549, -0.002117, -0.004037, 0.029474, 0.000229, 0.008627)),
    (1.666555, (0.060149, -0.014117, -0.010517), (0.001964, 0.000109, -0.001158, 0.004354, 0.000341, 0.005433)),
    (0.735522, (0.010517, -0.004252, 0.061597), (0.012516, -0.000428, -0.001196, 0.010027, -0.000741, 0.004815)),
)

# Modified Denavit-Hartenberg parameters a, d and alpha; limits of position, torque and velocity.
_JOINTS = (
    (0.0, 0.333, 0.0, (-2.8973, 2.8973), 87.0, 2.175),
    (0.0, 0.0, -pi / 2, (-1.7628, 1.7628), 87.0, 2.175),
    (0.0, 0.316, pi / 2, (-2.8973, 2.8973), 87.0, 2.175),
    (0.0825, 0.0, pi / 2, (-3.0718, -0.0698), 87.0, 2.175),
    (-0.0825, 0.384, -pi / 2, (-2.8973, 2.8973), 12.0, 2.61),
    (0.0, 0.0, pi / 2, (-0.0175, 3.7525), 12.0, 2.61),
    (0.088, 0.0, pi / 2, (-2.8973, 2.8973), 12.0, 2.61),
)


def panda() -> KinematicTree:
    """Panda arm without its hand.

    z of the base "panda_link0" points up; gravity is 9.81 m/s² downwards. The frames of the links are those of the
    modified Denavit-Hartenberg convention; the massless frame "panda_link8" is the flange. The zero angles, at which
    the arm is stretched upwards, are not within the limits of "panda_joint4".

    Returns
    -------
    KinematicTree
        Links "panda_link0" … "panda_link8"; coordinates "panda_joint1" … "panda_joint7", rad, with limits of position,
        torque (87 and 12 N m) and velocity.

    Notes
    -----
    Frames and limits: Franka's description of the robot, package franka_description of franka_ros. Inertias: C. Gaz,
    M. Cognetti, A. Oliva, P. Robuffo Giordano, A. De Luca, "Dynamic identification of the Franka Emika Panda robot
    with retrieval of feasible parameters using penalty-based optimization", IEEE RA-L 4(4), 2019, with the digits of
    that package. Inertial parameters are identified up to combinations that no motion shows, so that those of a single
    link are not measured. Joints have no friction.
    """
    base, *bodies = (
        Inertia(mass, com, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        for mass, com, (xx, xy, xz, yy, yz, zz) in _BODIES
    )
    rows = []
    for i, ((a, d, alpha, limits, effort, velocity), body) in enumerate(zip(_JOINTS, bodies, strict=True), start=1):
        names = {"name": f"panda_link{i}", "joint": f"panda_joint{i}"}
        geometry = {"a": a, "d": d, "alpha": alpha}
        rows.append(names | geometry | {"inertia": body, "limits": limits, "effort": effort, "velocity": velocity})
    tree = KinematicTree.from_dh(rows, "modified", base=Link("panda_link0", base))
    tree.attach(Link("panda_link8"), to="panda_link7", at=(0, 0, 0.107))
    return tree
