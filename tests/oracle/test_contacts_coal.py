"""Gaps between spheres, capsules and boxes against the distances and normals of coal, which Pinocchio brings."""

import itertools

import coal
import numpy as np
import pytest
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn.physics.contact import Contacts
from screwdyn.testing import random_pose

pytestmark = pytest.mark.oracle

ROUND = 0.02
SHAPES = {
    "sphere": (sd.Shape.sphere(0.2), coal.Sphere(0.2)),
    "capsule": (sd.Shape.capsule(0.1, 0.8), coal.Capsule(0.1, 0.8)),
    "box": (sd.Shape.box((0.4, 0.6, 0.8)), coal.Box(0.4, 0.6, 0.8)),
}


@pytest.mark.parametrize(("one", "other"), [*itertools.product(SHAPES, SHAPES)])
def test_gaps_are_distances(one, other):
    """Of boxes, that of their cores less both radii; the normal is that of the nearest pair of features."""
    rng, tree, radius = np.random.default_rng(1), sd.KinematicTree(), ROUND if one == other == "box" else 0.0
    (ours, theirs), (body, on) = SHAPES[one], SHAPES[other]
    if radius:
        theirs = on = coal.Box(*(x - 2 * radius for x in ours.size))
    tree.attach(sd.Inertia.sphere(1, 0.1), to="base", joint=sd.free(), name="part", shape=ours)
    tree.touch("part", "base", on=body, radius=radius)
    contacts, request = Contacts(tree, tree.model), coal.DistanceRequest(True, True)
    checked = 0
    for _ in range(50):
        T = random_pose(rng)
        T[:3, 3] *= 2.0
        q = tree.integrate(tree.neutral(), sd.screw.log(T))
        T = tree.forward_kinematics("part", q)
        found = coal.DistanceResult()
        distance = coal.distance(
            theirs, coal.Transform3s(T[:3, :3], T[:3, 3]), on, coal.Transform3s.Identity(), request, found
        )
        if distance > 1e-3:
            gaps, k = tree.contact_gaps(q), tree.contact_gaps(q).argmin()
            # coal's own error against 40 digits was up to 5e-11, in some orders of imports, and 0 in others.
            assert_allclose(gaps[k], distance - 2 * radius, rtol=0, atol=1e-10)
            assert_allclose(contacts.frames(q)[1][k, 0], -np.asarray(found.normal), rtol=0, atol=1e-10)
            checked += 1
    assert checked > 20
