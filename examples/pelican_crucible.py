"""Laus, Simoni and Martins, "Progressive dynamic analysis of serial robots based on screw theory", section 3.

The pelican arm is modelled link by link. Then it picks up a crucible, which adds a link on a passive joint: the
contribution of this link is new, and the contributions of the arm remain the same to the last bit. The numbers are
printed in the order of the paper with its equation numbers, and each is compared with the paper's closed form. Finally
the arm picks the crucible up in motion and releases it.

    python examples/pelican_crucible.py --output pelican_crucible.png
"""

import argparse
from pathlib import Path

import numpy as np

import screwdyn as sd

# The arm: R. Kelly, V. Santibáñez, A. Loría, "Control of Robot Manipulators in Joint Space". The paper gives no numbers
# for the crucible: 1.5 kg with its contents, centre of mass 8 cm below the hook.
a1, a2, a3 = 0.26, 0.26, 0.16
l1, l2, l3 = 0.0983, 0.0229, 0.08
m1, m2, m3 = 6.5225, 2.0458, 1.5
I1, I2, I3 = 0.1213, 0.0116, 0.006
g = 9.81

q = np.array([0.4, 0.9, -0.5])
qd = np.array([0.7, -1.1, 1.6])
d1, d2, d3 = qd
s1, s2, s3, s12, s23, s123 = np.sin([q[0], q[1], q[2], q[0] + q[1], q[1] + q[2], q.sum()])
c1, c2, c3, c12, c23, c123 = np.cos([q[0], q[1], q[2], q[0] + q[1], q[1] + q[2], q.sum()])


compared = []  # values and their closed forms


def show(name, value, closed_form, equation):
    """Print a value that has a closed form."""
    compared.append((np.asarray(value), closed_form))
    label = f"{name:>7} = "
    rows = np.array2string(np.round(value, 12) + 0.0, precision=5, suppress_small=True, prefix=label)
    print(f"{label}{rows}    Eq. {equation}")


def jacobian(*columns):
    """Jacobian with columns [ω; v] of a planar arm about z, from the x and y components of v."""
    return np.array([[0, 0, 1, x, y, 0] for x, y in columns]).T


def transformation(c, s, first_column, centre):
    """T of Eq. 14 for a planar arm: from twists in the base frame to those in the com frame of a link."""
    (u, v), (x, y) = first_column, centre
    R = np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])
    return np.block([[R, np.zeros((3, 3))], [np.array([[0, 0, u], [0, 0, v], [y, -x, 0]]), R]])


def com_pose(tree, link):
    """Pose of a link's com frame in the base frame."""
    return tree.forward_kinematics(link, q[: tree.nq]) @ sd.screw.pose(np.eye(3), tree.link(link).inertia.com)


def in_base_axes(tree, link):
    """J̄ of Eq. 30: the twist at the centre of mass, in axes of the base."""
    J = tree.jacobian(link, q[: tree.nq])[:, : len(tree.path(link)) - 1]
    return np.kron(np.eye(2), tree.forward_kinematics(link, q[: tree.nq])[:3, :3]) @ J


def manipulator():
    print("3.1 Model of the 2-DoF manipulator\n")
    print("Table 1, standard Denavit-Hartenberg: a link's frame lies at its far end, so its centre of mass at l − a.")
    rows = [
        {"a": a1, "inertia": sd.Inertia.planar(m1, (l1 - a1, 0), I1), "joint": "theta1"},
        {"a": a2, "inertia": sd.Inertia.planar(m2, (l2 - a2, 0), I2), "joint": "theta2"},
    ]
    tree = sd.KinematicTree.from_dh(rows, gravity=(0, -g, 0))
    print(tree)
    print(f"at theta = {q}, rates {qd}\n")

    for i, (link, m, I) in enumerate((("link1", m1, I1), ("link2", m2, I2)), start=1):
        M_bar = tree.link(link).inertia.com_matrix
        # The paper does not state Ix and Iy, which have no influence; here they are those of a lamina.
        show(f"diag M̄_{i}", np.diag(M_bar), [I / 2, I / 2, I, m, m, m], 37)

    x1, y1, x2, y2 = a1 * c1, a1 * s1, a1 * c1 + a2 * c12, a1 * s1 + a2 * s12
    A1 = [[c1, -s1, 0, x1], [s1, c1, 0, y1], [0, 0, 1, 0], [0, 0, 0, 1]]
    A2 = [[c12, -s12, 0, x2], [s12, c12, 0, y2], [0, 0, 1, 0], [0, 0, 0, 1]]
    show("A_1", tree.forward_kinematics("link1", q[:2]), A1, 38)
    show("A_2", tree.forward_kinematics("link2", q[:2]), A2, 39)

    p1, p2 = (l1 * c1, l1 * s1), (x1 + l2 * c12, y1 + l2 * s12)
    show("p_C1", com_pose(tree, "link1")[:3, 3], [*p1, 0], 40)
    show("p_C2", com_pose(tree, "link2")[:3, 3], [*p2, 0], 40)
    T1, T2 = (sd.screw.Ad(sd.screw.inverse(com_pose(tree, link))) for link in ("link1", "link2"))
    show("T_1", T1, transformation(c1, s1, (0, l1), p1), 41)
    show("T_2", T2, transformation(c12, s12, (a1 * s2, l2 + a1 * c2), p2), 42)

    one, two = tree.contributions(q[:2], qd[:2])
    print("\nThe same screws in the base frame, and in axes of the link at its centre of mass:")
    show("J⁰_1", tree.jacobian("link1", q[:2], "base")[:, :1], jacobian((0, 0)), 45)
    show("J⁰_2", tree.jacobian("link2", q[:2], "base"), jacobian((0, 0), (y1, -x1)), 45)
    show("J_1", one.J, jacobian((0, l1)), 46)
    show("J_2", two.J, jacobian((a1 * s2, l2 + a1 * c2), (0, l2)), 46)

    print("\nThe contribution of each link, over the coordinates on its path:")
    m12 = m2 * l2 * (l2 + a1 * c2) + I2
    show("M_1", one.M, [[m1 * l1**2 + I1]], 47)
    show("M_2", two.M, [[m2 * (a1**2 + l2**2 + 2 * a1 * l2 * c2) + I2, m12], [m12, m2 * l2**2 + I2]], 47)
    k = m2 * a1 * l2 * s2
    show("C_1", one.C, [[0]], 48)
    show("C_2", two.C, [[-k * d2, -k * (d1 + d2)], [k * d1, 0]], 48)
    print("Eq. 49 is printed with a second, zero column, which a 6 × 1 Jacobian does not have.")
    show("J̄_1", in_base_axes(tree, "link1"), jacobian((-l1 * s1, l1 * c1)), 49)
    columns = (-y1 - l2 * s12, x1 + l2 * c12), (-l2 * s12, l2 * c12)
    show("J̄_2", in_base_axes(tree, "link2"), jacobian(*columns), 50)
    show("g_1", one.g, [m1 * g * l1 * c1], 51)
    show("g_2", two.g, [m2 * g * (a1 * c1 + l2 * c12), m2 * g * l2 * c12], 52)

    print("\nThe model of the arm, M = M_1 ‡ M_2 and so on:")
    names = tree.coordinates
    show("M", (one.M + two.M).matrix(names), tree.mass_matrix(q[:2]), 32)
    show("C", (one.C + two.C).matrix(names), tree.coriolis_matrix(q[:2], qd[:2]), 32)
    show("g", (one.g + two.g).matrix(names), tree.gravity_vector(q[:2]), 32)
    return tree


def payload(tree):
    print("\n3.2 Payload inclusion\n")
    before = tree.contributions(q[:2], qd[:2])
    crucible = sd.Inertia.planar(m3, (l3 - a3, 0), I3)
    hook = sd.revolute("z", (-a3, 0, 0), passive=True, name="theta3")
    tree.attach(crucible, to="link2", joint=hook, at=(a3, 0, 0), name="crucible")
    print(tree)

    one, two, three = tree.contributions(q, qd)
    names = "J", "J_dot", "M", "C", "g"
    pairs = [(getattr(old, x), getattr(new, x)) for old, new in zip(before, (one, two), strict=True) for x in names]
    unchanged = all(np.array_equal(*pair) for pair in pairs)
    print("J_1, M_1, C_1, g_1, J_2, M_2, C_2, g_2: unchanged to the last bit:", unchanged, end=". New:\n\n")

    x, y = a1 * c1 + a2 * c12, a1 * s1 + a2 * s12
    A3 = [[c123, -s123, 0, x + a3 * c123], [s123, c123, 0, y + a3 * s123], [0, 0, 1, 0], [0, 0, 0, 1]]
    show("A_3", tree.forward_kinematics("crucible", q), A3, 54)
    u, v = a2 * s3 + a1 * s23, l3 + a2 * c3 + a1 * c23
    p3 = x + l3 * c123, y + l3 * s123
    show("p_C3", com_pose(tree, "crucible")[:3, 3], [*p3, 0], 55)
    T3 = sd.screw.Ad(sd.screw.inverse(com_pose(tree, "crucible")))
    show("T_3", T3, transformation(c123, s123, (u, v), p3), "56, where l3 is printed b3")
    show("J_3", three.J, jacobian((u, v), (a2 * s3, l3 + a2 * c3), (0, l3)), 57)

    print("As derived from Eqs. 21 and 57. Printed: another factor m3 on the second square of m_3,11;")
    print("m_3,33 as a copy of m_3,32; m_3,21 and m_3,23 under wrong names.")
    m11 = m3 * (u**2 + v**2) + I3
    m21 = m3 * (a2**2 + l3**2 + a1 * a2 * c2 + 2 * a2 * l3 * c3 + a1 * l3 * c23) + I3
    m22 = m3 * (a2**2 + l3**2 + 2 * a2 * l3 * c3) + I3
    m31, m32, m33 = m3 * l3 * v + I3, m3 * l3 * (l3 + a2 * c3) + I3, m3 * l3**2 + I3
    show("M_3", three.M, [[m11, m21, m31], [m21, m22, m32], [m31, m32, m33]], 58)

    print("As derived from Eqs. 35 and 58. Printed: no a1 in the first term of c_3,12; c_3,22 as a copy of c_3,23.")
    bend, swing, fold = m3 * a1 * (a2 * s2 + l3 * s23), m3 * l3 * u, m3 * a2 * l3 * s3
    C3 = [
        [-bend * d2 - swing * d3, -bend * (d1 + d2) - swing * d3, -swing * (d1 + d2 + d3)],
        [bend * d1 - fold * d3, -fold * d3, -fold * (d1 + d2 + d3)],
        [fold * (d1 + d2) + m3 * l3 * a1 * s23 * d1, fold * (d1 + d2), 0],
    ]
    show("C_3", three.C, C3, 59)
    columns = (-y - l3 * s123, x + l3 * c123), (-a2 * s12 - l3 * s123, a2 * c12 + l3 * c123), (-l3 * s123, l3 * c123)
    show("J̄_3", in_base_axes(tree, "crucible"), jacobian(*columns), 60)
    show("g_3", three.g, m3 * g * np.array([x + l3 * c123, a2 * c12 + l3 * c123, l3 * c123]), 61)

    print("\nThe complete model:")
    names = tree.coordinates
    show("M", (one.M + two.M + three.M).matrix(names), tree.mass_matrix(q), 62)
    show("C", (one.C + two.C + three.C).matrix(names), tree.coriolis_matrix(q, qd), 63)
    show("g", (one.g + two.g + three.g).matrix(names), tree.gravity_vector(q), 64)
    print("Joint 3 is passive: τ = [τ_1 τ_2 0].")
    print(f"largest difference from a closed form: {max(np.abs(np.subtract(*pair)).max() for pair in compared):.0e}")
    return tree.detach("crucible")


def path(t):
    """Reference positions, rates and accelerations of the active joints."""
    middle, width, rate = np.array([-0.9, 1.4]), np.array([0.5, 0.6]), np.array([1.8, 2.7])
    wave = rate * t + (0.0, 1.0)
    return middle + width * np.sin(wave), width * rate * np.cos(wave), -width * rate**2 * np.sin(wave)


def controller(t, state):
    """Computed torques of the active joints; the passive joint, if present, follows from its equation of motion."""
    tree, k = state.tree, 2
    want, rate, acceleration = path(t)
    a = acceleration + 30 * (rate - state.qd[:k]) + 225 * (want - state.q[:k])
    M, h = tree.mass_matrix(state.q), tree.bias_force(state.q, state.qd)
    swing = -np.linalg.solve(M[k:, k:], M[k:, :k] @ a + h[k:])
    tau = M @ np.concatenate([a, swing]) + h
    tau[k:] = 0
    return tau


def motion(tree, crucible):
    print("\nIn motion: the hook grasps the crucible, which hangs at rest, at 1 s and releases it at 4 s.")
    (there, _, _), hanging = path(1.0), -np.pi / 2
    turn = hanging - there.sum()
    at = sd.screw.pose(
        [[np.cos(turn), -np.sin(turn), 0], [np.sin(turn), np.cos(turn), 0], [0, 0, 1]],
        [a3 * np.cos(turn), a3 * np.sin(turn), 0],
    )
    hook = sd.revolute("z", (-a3, 0, 0), passive=True, damping=0.002, name="theta3")
    grasp = sd.Grasp(crucible, to="link2", joint=hook, at=at, twist="at_rest", time=1.0)
    start = sd.State(tree, *path(0.0)[:2])
    run = sd.simulate(tree, start, 5.0, controller, [grasp, sd.Release("crucible", time=4.0)])

    grasped, released = (happened.event for happened in run.events)
    print(f"the impact dissipates {grasped.energy_lost:.3f} J; rates after it {grasped.state.qd.round(4)}")
    print(f"theta3 swings through {np.degrees(np.nanmax(run['theta3']) - np.nanmin(run['theta3'])):.0f}°")
    print(f"kinetic energy of the released crucible: {released.released.kinetic_energy:.3f} J")
    late = run.t > 2
    off = max(abs(run[name] - path(run.t[:, None])[0][:, i])[late].max() for i, name in enumerate(tree.coordinates))
    print(f"from one second after the grasp on, the arm is within {off:.0e} rad of its path")
    print(f"the energy balance closes to {abs(run.energy.residual).max():.0e} J")
    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("pelican_crucible.png"), help="file of the figure")
    output = parser.parse_args().output
    tree = manipulator()
    crucible = payload(tree)
    motion(tree, crucible).plot().savefig(output)
    print(f"figure: {output}")


if __name__ == "__main__":
    main()
