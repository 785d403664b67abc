"""Random trees for tests of this library and of programs that use it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from screwdyn.core import Array, JointError
from screwdyn.mechanism import Inertia, Link
from screwdyn.mechanism import joint as makers
from screwdyn.screws import screw
from screwdyn.tree import KinematicTree

__all__ = ["random_inertia", "random_pose", "random_tree"]


def random_tree(
    rng: np.random.Generator,
    n: int,
    joints: Sequence[str] = ("revolute", "prismatic", "helical"),
    *,
    frames: float = 0.2,
) -> KinematicTree:
    """A branched tree with random axes, points, home poses and inertias.

    Parameters
    ----------
    rng : numpy.random.Generator
        The same generator state gives the same tree.
    n : int
        Number of links with a body, ``link1`` … ``link<n>``. Each is attached to an earlier link or frame by a joint
        ``joint1`` … ``joint<n>`` of a kind drawn from ``joints``.
    joints : sequence of kinds
        Of "revolute", "prismatic", "helical", "cylindrical", "universal", "spherical", "planar", "free" and "fixed".
    frames : float
        Probability that a massless frame ``frame<i>`` is attached after ``link<i>``; it may carry later links.

    Returns
    -------
    KinematicTree
        Lengths are tenths of a metre, masses a few kilograms, gravity 9.81 m/s² in any direction.

    Raises
    ------
    JointError
        If a kind of joint is unknown, or none is given.
    """
    kinds = list(joints)
    if not kinds or not set(kinds) <= KINDS.keys():
        raise JointError(f"joints must be some of {', '.join(KINDS)}; got {joints!r}")
    tree = KinematicTree(gravity=9.81 * _direction(rng))
    for i in range(1, n + 1):
        kind = kinds[int(rng.integers(len(kinds)))]
        body, to = Link(f"link{i}", random_inertia(rng)), _any(rng, tree)
        joint = makers.KINDS[kind](name=f"joint{i}", **{what: draw(rng) for what, draw in KINDS[kind].items()})
        tree.attach(body, to=to, joint=joint, at=random_pose(rng))
        if rng.random() < frames:
            tree.attach(Link(f"frame{i}"), to=_any(rng, tree), at=random_pose(rng))
    return tree


def random_inertia(rng: np.random.Generator) -> Inertia:
    """A body drawn by ``rng``, of 0.2 to 3 kg, with its centre of mass within 0.2 m of the origin along each axis.

    Its tensor is tr(P) 1 − P for a positive definite P, the second moments of mass, so that the principal moments
    satisfy the triangle inequality (docs/mathematics.md §5).
    """
    mass = rng.uniform(0.2, 3)
    A = rng.uniform(-0.15, 0.15, (3, 3))
    P = mass * (A @ A.T + 1e-3 * np.eye(3))
    return Inertia(mass, rng.uniform(-0.2, 0.2, 3), np.trace(P) * np.eye(3) - P)


def random_pose(rng: np.random.Generator) -> Array:
    """A pose, (4, 4), drawn by ``rng``: any orientation, and an origin within 0.5 m along each axis."""
    turn = screw.exp(np.concatenate([rng.uniform(0, np.pi) * _direction(rng), np.zeros(3)]))
    return screw.pose(turn[:3, :3], rng.uniform(-0.5, 0.5, 3))


def _any(rng: np.random.Generator, tree: KinematicTree) -> str:
    return tree.links[int(rng.integers(len(tree.links)))]


def _direction(rng: np.random.Generator) -> Array:
    a = rng.normal(size=3)
    return np.asarray(a / np.linalg.norm(a))


def _point(rng: np.random.Generator) -> Array:
    return rng.uniform(-0.3, 0.3, 3)


# What is drawn for each kind of joint, in this order.
_LINE: dict[str, Callable[[np.random.Generator], Any]] = {"axis": _direction, "point": _point}
KINDS: dict[str, dict[str, Callable[[np.random.Generator], Any]]] = {
    "revolute": _LINE,
    "prismatic": {"axis": _direction},
    "helical": {"pitch": lambda rng: float(rng.choice([-1, 1]) * rng.uniform(0.05, 0.4)), **_LINE},
    "cylindrical": _LINE,
    "universal": {"axis1": _direction, "axis2": _direction, "point": _point},
    "spherical": {"point": _point},
    "planar": _LINE,
    "free": {},
    "fixed": {},
}
