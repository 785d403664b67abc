"""Mechanisms with closed loops, and what one freedom of theirs feels, by assembly alone."""

import numpy as np

import screwdyn as sd

LENGTHS, MASSES = (1.0, 2.5, 2.0, 2.2), (1.0, 2.5, 2.0)
# Radius, m, and angles of the feet and of the balls of a Stewart platform, degrees.
PLATFORM = (1.0, (-10, 10, 110, 130, 230, 250)), (0.6, (20, 40, 140, 160, 260, 280))


def bar(mass, length):
    return sd.Inertia.box(mass, (length, 0.02, 0.02), com=(length / 2, 0, 0))


def four_bar():
    """Crank, coupler and rocker in the plane x y, with ground pivots at 0 and (2.2, 0, 0)."""
    crank, coupler, rocker, ground = LENGTHS
    tree = sd.KinematicTree(gravity=(0, -9.81, 0))
    tree.attach(bar(MASSES[0], crank), to="base", joint=sd.revolute("z"), name="crank")
    tree.attach(bar(MASSES[1], coupler), to="crank", joint=sd.revolute("z"), at=(crank, 0, 0), name="coupler")
    tree.attach(bar(MASSES[2], rocker), to="base", joint=sd.revolute("z"), at=(ground, 0, 0), name="rocker")
    pin = sd.revolute("z", (rocker, 0, 0))
    tree.close("rocker", to="coupler", joint=pin, at=(coupler - rocker, 0, 0), name="pin")
    return tree, tree.project([0.7, -0.2, 1.5], [2.0, 0, 0], hold=["crank"])


def slider_crank():
    """Crank 0.5 m and rod 1.2 m; the piston slides along x."""
    tree = sd.KinematicTree(gravity=(0, -9.81, 0))
    tree.attach(bar(1.0, 0.5), to="base", joint=sd.revolute("z"), name="crank")
    tree.attach(bar(2.0, 1.2), to="crank", joint=sd.revolute("z"), at=(0.5, 0, 0), name="rod")
    tree.attach(sd.Inertia.box(3.0, (0.1, 0.1, 0.1)), to="base", joint=sd.prismatic("x"), name="piston")
    tree.close("piston", to="rod", joint=sd.revolute("z"), at=(1.2, 0, 0), name="gudgeon")
    return tree, tree.project([0.8, -1.1, 1.5], [3.0, 0, 0], hold=["crank"])


def door():
    """A leaf in a frame that also turns, on two hinges about one axis, of which one closes a loop."""
    tree, axis = sd.KinematicTree(), np.array([0.3, 0.4, np.sqrt(0.75)])
    body = sd.Inertia.box(3, (1, 0.1, 2), com=(0.5, 0, 0))
    tree.attach(body, to="base", joint=sd.revolute("z"), at=(0.1, 0.2, 0.3), name="frame")
    tree.attach(body, to="frame", joint=sd.revolute(axis, (0.1, 0.2, 0.3)), at=(0.3, 0.1, 0.7), name="leaf")
    above = sd.revolute(axis, np.array([0.1, 0.2, 0.3]) + 0.7 * axis)
    tree.close("leaf", to="frame", joint=above, at=(0.3, 0.1, 0.7), name="hinge")
    return tree, (np.array([0.4, -0.7]), np.array([1.1, 0.3]))


def stewart_platform():
    """Six legs between feet and balls: universal joints on the ground, motors along the legs, balls at the platform."""
    feet, balls = ([r * np.array([np.cos(a), np.sin(a), 0]) for a in np.radians(angles)] for r, angles in PLATFORM)
    tree = sd.KinematicTree()
    for k, foot in enumerate(feet):
        pin, motor = sd.universal("x", "y", passive=True), sd.prismatic("z", limits=(0.3, 2.0))
        tree.attach(sd.Inertia.sphere(2, 0.1), to="base", joint=pin, at=foot, name=f"tube{k}")
        tree.attach(sd.Inertia.sphere(1, 0.1), to=f"tube{k}", joint=motor, name=f"rod{k}")
    body, ball = sd.Inertia.box(5, (1, 1, 0.1)), sd.spherical(balls[0], passive=True)
    tree.attach(body, to="rod0", joint=ball, at=-balls[0], name="platform")
    for k in range(1, 6):
        tree.close(f"rod{k}", to="platform", joint=sd.spherical(), at=balls[k])
    return tree, feet, balls


def bricard():
    """Bricard's mechanism: six bars along edges of a cube, with a pin at each end that is normal to both bars."""
    edges = [np.array(e, dtype=float) for e in ((1, 0, 0), (0, -1, 0), (0, 0, 1), (-1, 0, 0), (0, 1, 0), (0, 0, -1))]
    tree, last = sd.KinematicTree(gravity=(0, -9.81, 1.0)), "base"
    for k in range(5):
        body = sd.Inertia.box(1.0 + k, np.abs(edges[k]) + 0.1, com=edges[k] / 2)
        joint = sd.revolute(np.cross(edges[k - 1], edges[k]))
        last = tree.attach(body, to=last, joint=joint, at=edges[k - 1] if k else None, name=f"bar{k}").name
    # The sixth bar is the base, whose frame is at its end.
    pin = sd.revolute(np.cross(edges[4], edges[5]), -edges[5])
    tree.close("base", to=last, joint=pin, at=edges[4] + edges[5], name="pin")
    return tree


def swept(tree, q, first):
    """The mass m(y) and the potential U(y) of the mechanism whose first coordinate is y, by assembly alone."""

    def at(y):
        x = tree.assemble([y, *q[1:]], hold=[first])
        h = 1e-5
        up, down = (tree.assemble([y + s, *x[1:]], hold=[first]) for s in (h, -h))
        qd = (up - down) / (2 * h)
        return 2 * float(tree.kinetic_energy(x, qd)), float(tree.potential_energy(x))

    return at


def moving_bricard():
    tree = bricard()
    return tree, tree.project([0.2, 0, 0, 0, 0], [1.5, 0, 0, 0, 0], hold=["bar0"])


def driven_by_the_crank(motor=True):
    """The four-bar with a motor at the crank only, or with none."""
    tree = sd.KinematicTree(gravity=(0, -9.81, 0))
    tree.attach(bar(1.0, 1.0), to="base", joint=sd.revolute("z", passive=not motor), name="crank")
    tree.attach(bar(2.5, 2.5), to="crank", joint=sd.revolute("z", passive=True), at=(1, 0, 0), name="coupler")
    tree.attach(bar(2.0, 2.0), to="base", joint=sd.revolute("z", passive=True), at=(2.2, 0, 0), name="rocker")
    tree.close("rocker", to="coupler", joint=sd.revolute("z", (2, 0, 0)), at=(0.5, 0, 0), name="pin")
    return tree, tree.project([0.7, -0.2, 1.5], [2.0, 0, 0], hold=["crank"])
