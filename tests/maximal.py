"""Impacts in maximal coordinates: every body has six rates, and every joint is a constraint on the rates of two bodies.

Only poses, screws and inertias of a tree are used: no Jacobian, no mass matrix, no rates of its joints.
"""

import numpy as np
from scipy.linalg import null_space

from screwdyn import screw


def joint_screws(joint, q):
    """S, (6, k), with the relative twist S ν in the link's frame, at positions q."""
    screws = joint.screws.copy()
    if joint.chart is None:
        for k in range(joint.nv):
            for S, x in zip(joint.screws.T[k + 1 :], q[k + 1 :], strict=True):
                screws[:, k] = screw.Ad(screw.exp(-S * x)) @ screws[:, k]
    return screws


def twists(tree, q, qd):
    """The twist of every link but the base in its own frame, by name, at rates qd, outward from joint to joint."""
    V, at_q, at_v, rates = {tree.base: np.zeros(6)}, 0, 0, {}
    for name, joint, link in zip(tree.joints, map(tree.joint, tree.joints), tree.links[1:], strict=True):
        follows = joint.mimic
        rates[name] = qd[at_v : at_v + joint.nv] if follows is None else follows.ratio * rates[follows.joint]
        T = screw.inverse(tree.forward_kinematics(link, q)) @ tree.forward_kinematics(tree.parent(link), q)
        S = joint_screws(joint, q[at_q : at_q + joint.nq])
        V[link] = screw.Ad(T) @ V[tree.parent(link)] + S @ rates[name]
        at_q, at_v = at_q + joint.nq, at_v + joint.nv
    del V[tree.base]
    return V


def inertias(tree):
    """The 6 x 6 inertia of every link but the base, by name."""
    bodies = {link: tree.link(link).inertia for link in tree.links[1:]}
    return {link: np.zeros((6, 6)) if body is None else body.matrix for link, body in bodies.items()}


def kinetic_energy(tree, V):
    """Of bodies with twists V by name."""
    return 0.5 * sum(V[link] @ I @ V[link] for link, I in inertias(tree).items())


def impact(tree, q, before, motors=()):
    """Twists after an impact by name, from those before it, for bodies that the joints and loops of a tree now connect.

    ``motors`` are the armature and the rate before the impact of joints of one freedom, by name.
    """
    links, bodies = tree.links[1:], inertias(tree)
    place = {link: slice(6 * k, 6 * k + 6) for k, link in enumerate(links)}
    n = 6 * len(links)
    M, rows, first = np.zeros((n, n)), [], 0
    momentum, rates = np.concatenate([bodies[link] @ before[link] for link in links]), {}
    for name, link, joint in zip(tree.joints, links, map(tree.joint, tree.joints), strict=True):
        M[place[link], place[link]] = bodies[link]
        S = joint_screws(joint, q[first : first + joint.nq])
        N = null_space(S.T) if S.size else np.eye(6)
        first += joint.nq
        relative, parent = np.zeros((6, n)), tree.parent(link)
        relative[:, place[link]] = np.eye(6)
        if parent != tree.base:
            T = screw.inverse(tree.forward_kinematics(link, q)) @ tree.forward_kinematics(parent, q)
            relative[:, place[parent]] -= screw.Ad(T)
        rows.append(N.T @ relative)
        rates[name] = np.linalg.pinv(S) @ relative
        if joint.mimic is not None:
            rows.append(rates[name] - joint.mimic.ratio * rates[joint.mimic.joint])
    for loop in map(tree.loop, tree.loops):
        relative = np.zeros((6, n))
        if loop.link != tree.base:
            relative[:, place[loop.link]] = np.eye(6)
        if loop.to != tree.base:
            T = screw.inverse(tree.forward_kinematics(loop.link, q)) @ tree.forward_kinematics(loop.to, q)
            relative[:, place[loop.to]] -= screw.Ad(T)
        S = loop.joint.screws
        rows.append((null_space(S.T) if S.size else np.eye(6)).T @ relative)
    for name, (armature, rate) in dict(motors).items():
        M += armature * rates[name].T @ rates[name]
        momentum += armature * rate * rates[name][0]
    A = np.concatenate(rows)
    Z = null_space(A, rcond=1e-9)  # constraints of loops may be redundant
    after = Z @ np.linalg.solve(Z.T @ M @ Z, Z.T @ momentum)
    return {link: after[place[link]] for link in links}
