"""Bodies, and the inertia of point masses as a sum."""

import numpy as np
from hypothesis import strategies as st

from screwdyn.mechanism.inertia import Inertia
from screwdyn.screws.screw import exp

coordinate = st.floats(-2.0, 2.0, allow_subnormal=False)
vectors = st.tuples(coordinate, coordinate, coordinate).map(np.array)
lengths = st.floats(0.05, 2.0)
masses = st.floats(0.1, 20.0)
poses = st.tuples(*[st.floats(-3.0, 3.0, allow_subnormal=False)] * 6).map(lambda V: exp(np.array(V)))
bodies = st.builds(
    lambda m, size, com, T: Inertia.box(m, size, com).transformed(T),
    masses,
    st.tuples(lengths, lengths, lengths),
    vectors,
    poses,
)
SHAPES = [
    Inertia.point(2.0, (1.0, -2.0, 3.0)),
    Inertia.rod(2.0, 0.6, "y", (0.1, 0.2, 0.3)),
    Inertia.rod(2.0, 0.6, (1.0, 2.0, -1.0), (4.0, 5.0, 6.0)),
    Inertia.box(2.0, (0.1, 0.2, 0.3), (1.0, 0.0, -1.0)),
    Inertia.cylinder(2.0, 0.1, 0.4, (1.0, 1.0, 1.0), (0.3, 0.0, 0.0)),
    Inertia.sphere(2.0, 0.3, (0.0, 0.0, 9.0)),
    Inertia.planar(2.0, (0.3, 0.1), 0.05),
]


def close(a, b, tol=1e-13):
    np.testing.assert_allclose(a, b, rtol=tol, atol=tol)


def of_points(m, r):
    """6x6 inertia of point masses, straight from the kinetic energy of each."""
    total = np.zeros((6, 6))
    for mi, (x, y, z) in zip(m, r, strict=True):
        velocity = np.array([[0, z, -y, 1, 0, 0], [-z, 0, x, 0, 1, 0], [y, -x, 0, 0, 0, 1]])  # of a point at r
        total += mi * velocity.T @ velocity
    return total
