"""Andrews' squeezing mechanism, a benchmark of solvers for constrained motion."""

import numpy as np

from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.joint import revolute
from screwdyn.tree import KinematicTree

__all__ = ["andrews"]


def andrews() -> KinematicTree:
    """Seven plane bodies in three closed loops, without gravity.

    "Andrews' squeezing mechanism" of F. Mazzia, C. Magherini, "Test Set for Initial Value Problem Solvers", release
    2.4, 2008, after W. Schiehlen, "Multibody Systems Handbook", 1990. The bodies turn about z.

    Returns
    -------
    KinematicTree
        Links "K1" to "K7" and loops "K3-K2", "K4-K2", "K6-K2". The coordinates of the source, β, Θ, γ, Φ, δ, Ω, ε, are
        those of K1, K2, K3, K4, K5, K6 and K7, rad. Of the bodies' inertias, the source gives those about z; the others
        have no influence.

    Notes
    -----
    In the source, the mechanism starts at rest with Θ = 0. A motor drives K1 with 0.033 N m, and a spring of 4530 N/m
    and 0.07785 m pulls the point (0.02, -0.018, 0) of K3 towards (0.014, 0.072, 0).

    Examples
    --------
    >>> import screwdyn as sd
    >>> tree = sd.robots.andrews()
    >>> q = tree.assemble([-0.06, 0, 0.46, 0.49, 0.22, 1.23, -0.22], hold=["K2"])
    >>> print(q[0].round(12), tree.freedoms(q))
    -0.061713890014 1
    """
    bodies = {  # mass, inertia about z, centre of mass; parent and place
        "K1": (0.04325, 2.194e-6, (0.00092, 0), "base", (0, 0)),
        "K2": (0.00365, 4.410e-7, (-0.0115, 0), "K1", (0.007, 0)),
        "K3": (0.02373, 5.255e-6, (0.01043, -0.01874), "base", (-0.03635, 0.03273)),
        "K5": (0.07050, 1.169e-5, (0.02308, -0.00916), "base", (-0.06934, -0.00227)),
        "K4": (0.00706, 5.667e-7, (0, -0.00579), "K5", (0.04, 0)),
        "K7": (0.05498, 1.912e-5, (-0.00449, -0.01228), "base", (-0.06934, -0.00227)),
        "K6": (0.00706, 5.667e-7, (0.00579, 0), "K7", (0, -0.04)),
    }
    tree = KinematicTree(gravity=(0, 0, 0))
    for name, (mass, inertia, com, to, at) in bodies.items():
        body = Inertia(mass, (*com, 0), np.diag([inertia / 2, inertia / 2, inertia]))
        tree.attach(body, to=to, joint=revolute("z"), at=(*at, 0), name=name)
    # Ends of K3, K4 and K6 are on one pin with the end of K2.
    for name, (x, y) in {"K3": (0, -0.035), "K4": (0, -0.02), "K6": (0.02, 0)}.items():
        tree.close(name, to="K2", joint=revolute("z", (x, y, 0)), at=(-0.028 - x, -y, 0))
    return tree
