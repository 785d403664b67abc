"""Small arms for tests of changes, and everything that a change could affect."""

import numpy as np

from screwdyn import Inertia, KinematicTree, Link, prismatic, revolute

BODY = Inertia.sphere(1, 0.1)


def arm():
    """base - upper - lower - tool, and a lamp on the base."""
    tree = KinematicTree()
    tree.attach(Link("upper", BODY), to="base", joint=revolute("z", name="shoulder"))
    tree.attach(Link("lower", BODY), to="upper", joint=revolute("y", name="elbow"), at=(0, 0, 1))
    tree.attach(Link("tool"), to="lower", at=(0, 0, 0.5))
    tree.attach(Link("lamp", Inertia.point(2)), to="base", joint=prismatic("x"), at=(1, 0, 0))
    return tree


def nearly_singular():
    """At about q[2] = 0 the point is on the second axis, and that joint feels no inertia."""
    tree = KinematicTree()
    tree.attach(Link("a", Inertia.box(1, (0.1, 0.1, 0.1))), to="base", joint=revolute((1, 2, 3), (0.1, 0.2, 0.3)))
    tree.attach(Link("b"), to="a", joint=revolute("y"), at=(0.3, 0.7, 0.2))
    tree.attach(Link("c", Inertia.point(2.0)), to="b", joint=prismatic("x"))
    return tree


def fingerprint(tree):
    """All data of a tree: names and their order, bodies, joints, homes, handles, revision, numbers."""
    rng = np.random.default_rng(0)
    q, (qd, qdd) = tree.random_configuration(rng), rng.normal(size=(2, tree.nv))
    nodes = [(name, data["link"], data["serial"]) for name, data in tree.graph.nodes.items()]
    edges = [
        (a, b, data["joint"], data["home"].tobytes(), data["name"], data["coordinate"])
        for a, b, data in tree.graph.edges(data=True)
    ]
    M, C = tree.mass_and_coriolis(q, qd)
    tau = tree.inverse_dynamics(q, qd, qdd)
    numbers = [M, C, tau, tree.gravity_vector(q), tree.momentum(q, qd), tree.gravity]
    return tree.links, tree.joints, tree.coordinates, tree.revision, nodes, edges, [a.tobytes() for a in numbers]
