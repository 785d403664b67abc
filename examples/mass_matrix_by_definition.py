"""The definition of the mass matrix, from `tree.graph` and SciPy's matrix exponential alone.

M_i of every link as Laus, Simoni and Martins define it (Eqs. 9 to 24), and their sum ‡ (section 2.4), for an arm with a
crate on a passive hook. The library builds the robot, and computes only what the result is compared with. Joints whose
positions are quaternions, and joints that follow others, would need a few lines more.

    python examples/mass_matrix_by_definition.py
"""

import networkx as nx
import numpy as np
from scipy.linalg import block_diag, expm

import screwdyn as sd


def S(a):
    """S(a) b = a × b, as in Eq. 14."""
    return np.cross(np.eye(3), a)


def contribution(graph, link, q):
    """The matrix M_i of a link, and the names of its rows."""
    pose, J, names = np.eye(4), np.empty((6, 0)), []
    (base,) = (name for name, degree in graph.in_degree if degree == 0)
    for parent, child in nx.utils.pairwise(nx.shortest_path(graph, base, link)):
        edge = graph.edges[parent, child]
        pose = pose @ edge["home"]
        for name, screw in zip(edge["coordinates"], edge["joint"].screws.T, strict=True):
            z, v = pose[:3, :3] @ screw[:3], pose[:3, :3] @ screw[3:]
            J = np.column_stack([J, [*z, *(S(pose[:3, 3]) @ z + v)]])  # J_i⁰, Eq. 23
            pose = pose @ expm(q[name] * np.block([[S(screw[:3]), screw[3:, None]], [np.zeros((1, 4))]]))
            names.append(name)
    inertia = graph.nodes[link]["link"].inertia
    R, p = pose[:3, :3].T, pose[:3] @ [*inertia.com, 1]  # R_0^i, p_Ci
    T = np.block([[R, np.zeros((3, 3))], [-R @ S(p), R]])  # T_0^Ci, Eq. 14
    M_bar = block_diag(inertia.tensor, inertia.mass * np.eye(3))  # Eq. 9
    return (T @ J).T @ M_bar @ (T @ J), names  # Eqs. 21 and 24


arm = sd.robots.ur5()
crate = sd.Inertia.box(3.0, size=(0.3, 0.2, 0.2), com=(0, -0.3, 0))
arm.attach(crate, to="tool0", joint=sd.universal("x", "z", name="hook", passive=True), name="crate")
q = np.random.default_rng(0).uniform(-np.pi, np.pi, arm.nv)
by_name = dict(zip(arm.coordinates, q, strict=True))
M = np.zeros((arm.nv, arm.nv))
for link in [link for link, body in arm.graph.nodes(data="link") if body.inertia]:
    M_i, names = contribution(arm.graph, link, by_name)
    rows = [arm.coordinates.index(name) for name in names]
    M[np.ix_(rows, rows)] += M_i  # M = M_1 ‡ M_2 ‡ … ‡ M_n
    difference = np.abs(M_i - arm.contribution(link, q, 0 * q).M.matrix(names)).max(initial=0)
    print(f"M_i of {link:<16} {len(names)} × {len(names)}, differs from the library's by {difference:.0e} kg m²")
difference = np.abs(M - arm.mass_matrix(q)).max()
print(f"M, their sum ‡ {'':<8} {arm.nv} × {arm.nv}, differs from the library's by {difference:.0e} kg m²")
