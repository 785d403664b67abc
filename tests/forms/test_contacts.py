"""Configurations in which links are apart, and what is refused for trees with contacts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd

CORNERS = [(x, y, z) for x in (0.2, -0.2) for y in (0.15, -0.15) for z in (0.1, -0.1)]


def crate(height=0.1):
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.box(3.0, (0.4, 0.3, 0.2)), to="base", joint=sd.free(), name="crate")
    tree.touch("crate", to="base", on=sd.Plane(), points=CORNERS, friction=0.4, name="floor")
    q = tree.neutral()
    q[6] = height
    return tree, q


def test_separate_lifts_a_crate_as_little_as_possible():
    tree, q = crate(0.07)
    assert_allclose(tree.separate(q), [0, 0, 0, 1, 0, 0, 0.1], atol=1e-12)
    tilted = tree.integrate(q, [0.2, 0.1, 0.3, 0, 0, 0])
    apart = tree.separate(tilted)
    assert tree.contact_gaps(apart).min() >= -1e-12
    assert tree.contact_gaps(apart).min() < 1e-9
    assert_array_equal(tree.separate(apart), apart)


def test_separate_keeps_loops_closed():
    tree, _ = crate()
    tree.attach(sd.Inertia.box(1.5, (0.1, 0.1, 0.1)), to="base", joint=sd.prismatic("z"), at=(0, 0, 0.4), name="hoist")
    q = tree.neutral()
    q[6], q[7] = 0.08, -0.02
    tree.close("crate", to="hoist", at=(0, 0, -0.3), name="grip")
    apart = tree.separate(q)
    assert_allclose(apart, [0, 0, 0, 1, 0, 0, 0.1, 0], atol=1e-10)


def test_the_hull_of_a_mesh_touches_a_plane(tmp_path):
    """A crate of triangles, with a knob within its faces, scaled and moved, falls on its corners."""
    corners = np.array([*CORNERS, (0, 0, 0.1), (0.2, 0, 0)])
    faces = [
        (0, 1, 2),
        (1, 2, 3),
        (4, 5, 6),
        (5, 6, 7),
        (0, 1, 4),
        (1, 4, 5),
        (2, 3, 6),
        (3, 6, 7),
        (0, 2, 8),
        (1, 3, 9),
    ]
    path = tmp_path / "crate.obj"
    lines = [f"v {x} {y} {z}" for x, y, z in corners] + [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in faces]
    path.write_text("\n".join(lines))
    tree = sd.KinematicTree()
    shapes = [sd.Shape.mesh(path, 2.0, pose=(0, 0, 0.2)), sd.Shape.sphere(9.0)]
    tree.attach(sd.Inertia.box(3.0, (0.8, 0.6, 0.4)), to="base", joint=sd.free(), name="crate", shape=shapes)
    found = tree.hull("crate")
    assert_allclose(sorted(map(tuple, found)), sorted(map(tuple, 2 * np.array(CORNERS) + (0, 0, 0.2))), atol=1e-12)
    tree.touch("crate", to="base", on=sd.Plane(), points=found)
    assert_allclose(tree.contact_gaps(tree.neutral()).min(), 0, atol=1e-12)
    tree.attach(sd.Inertia.sphere(1, 1), to="base", name="ball", shape=sd.Shape.sphere(1.0))
    flat = tmp_path / "flat.obj"
    flat.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3")
    tree.attach(sd.Inertia.sphere(1, 1), to="base", name="leaf", shape=sd.Shape.mesh(flat))
    for link in ("ball", "leaf"):
        with pytest.raises(sd.ContactError, match=f"link '{link}' has no mesh with a volume; give points="):
            tree.hull(link)
    with pytest.raises(
        sd.ContactError, match=r"link 'leaf' has Shape.mesh.*, which is no sphere, .*tree.hull\('leaf'\)"
    ):
        tree.touch("leaf", to="base", on=sd.Plane())


def test_two_walls_that_are_too_near():
    tree, q = crate()
    tree.touch("crate", to="base", on=sd.Plane((0, 0, -1), -0.15), points=CORNERS, name="ceiling")
    with pytest.raises(sd.ContactError, match=r"'crate' is .* mm inside 'base' at contact '(floor|ceiling)'; start"):
        tree.separate(q)


REFUSED = {
    "linearize": lambda tree, q: tree.linearize(q),
    "equilibrium": lambda tree, q: tree.equilibrium(q),
    "holding_torque": lambda tree, q: tree.holding_torque(q),
    "forward_dynamics in this form": lambda tree, q: tree.symbolic().forward_dynamics(),
    "C": lambda tree, q: tree.c_source(["forward_dynamics"]),
    "LQR": lambda tree, q: sd.control.LQR(tree, q, np.eye(12), np.eye(6)),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_would_ignore_contacts_is_refused(what):
    tree, q = crate()
    before = tree.topology
    with pytest.raises(sd.ContactError, match=r"not available for a tree with contacts.*'floor'; remove .*tree.part"):
        REFUSED[what](tree, q)
    assert tree.topology is before


def test_quantities_of_the_tree_do_not_change():
    tree, q = crate()
    without = tree.copy()
    without.part("floor")
    assert_array_equal(tree.mass_matrix(q), without.mass_matrix(q))
    assert_array_equal(tree.symbolic().mass_matrix(), without.symbolic().mass_matrix())
    assert_array_equal(tree.forward_dynamics(q, np.zeros(6), np.zeros(6)), [0, 0, 0, 0, 0, -9.81])
