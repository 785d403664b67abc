"""A tree as rows of joints of one freedom, in the way in which textbooks number the links of an arm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import ScrewdynError
from screwdyn.core.types import Array
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.joint import Joint
from screwdyn.mechanism.joint.screws import kind
from screwdyn.mechanism.loops import check_open
from screwdyn.mechanism.structure import Structure
from screwdyn.screws.poses import skew_of

__all__ = ["Row", "cross", "read"]


class Row(NamedTuple):
    """Joint i and link i, with everything that is welded to the link, in SI units.

    The papers number links from the base to the tip: link i − 1 carries link i. In a tree it is the row ``parent``.

    Attributes
    ----------
    name : str
        Of the freedom of the joint, or of the joint if it follows another one.
    parent : int
        −1 for the base.
    path : tuple of int
        Rows from the base to this one.
    z, p : (3,) arrays
        Direction of the joint's axis, and its point nearest to the origin, in the frame of link i − 1. In frames of
        Denavit and Hartenberg these are (0, 0, 1) and 0.
    sigma, h : float
        While q grows by 1, the link turns by sigma about the axis and slides by h along it: 1 and 0 for a revolute
        joint, 0 and 1 for a prismatic one, 1 and the pitch for a helical one.
    home : (4, 4) array
        Pose of link i in link i − 1 at q = 0.
    m, com, I
        Mass; centre of mass (3,) and inertia tensor about it (3, 3), in the frame of link i.
    damping, friction, armature : float
        Viscous and Coulomb friction of the joint, and what its motor adds to the diagonal of the mass matrix.
    """

    name: str
    parent: int
    path: tuple[int, ...]
    z: Array
    p: Array
    sigma: Any
    h: Any
    home: Array
    m: Any
    com: Array
    I: Array
    damping: Any
    friction: Any
    armature: Any

    def pose(self, q: Any) -> Array:
        """^{i−1}A_i(q): a screw motion about the axis, then home."""
        z, R = self.z, np.eye(3)
        if self.sigma:
            c, s = expressions.cos_sin(q)
            R = R * c + skew_of(z) * s + np.outer(z, z) * (1 - c)
        p = self.p + R @ (self.home[:3, 3] - self.p) + z * (self.h * q)
        return np.vstack([np.column_stack([R @ self.home[:3, :3], p]), [0.0, 0.0, 0.0, 1.0]])


def read(
    tree: Structure, kinds: Sequence[str], name: str, scope: str
) -> tuple[tuple[Row, ...], dict[str, tuple[int, Array]]]:
    """The rows of a tree, and for each link its row and its pose in the frame of that row.

    Bodies on the base have row −1; they do not move.

    Parameters
    ----------
    tree : Structure
    kinds : sequence of str
        Kinds of screws that are accepted, of "revolute", "prismatic" and "helical".
    name, scope : str
        Who reads it, and what the source is about, for the errors.

    Raises
    ------
    LoopError
        If the tree has closed loops.
    ScrewdynError
        If it has other joints; the message names all of them.
    """
    check_open(tree.topology, name, f"open the loops in a copy of the tree first: {scope}")
    edges = {child: edge for _, child, edge in tree.graph.edges(data=True)}
    joints = [(edge["name"], edge["joint"]) for edge in edges.values()]
    refused = [f"{name!r} is {joint.kind}" for name, joint in joints if not _covered(joint, kinds)]
    if refused:
        raise ScrewdynError(f"{name} covers joints with {' and '.join(kinds)} axes; {', '.join(refused)}: {scope}")
    places: dict[str, tuple[int, Array]] = {tree.base: (-1, np.eye(4))}
    rows: list[Row] = []
    bodies: dict[int, Inertia] = {}
    for link in tree.links[1:]:
        edge = edges[link]
        joint, (at, T) = edge["joint"], places[str(tree.parent(link))]
        T = T @ edge["home"]
        for S, freedom in zip(joint.screws.T, joint.row_names(edge["name"]), strict=True):
            rows.append(_row(rows, at, S, T, joint)._replace(name=freedom))
            at, T = len(rows) - 1, np.eye(4)
        places[link] = at, T
        body = tree.link(link).inertia
        if body is not None and at >= 0:
            body = body.transformed(T)
            bodies[at] = bodies[at] + body if at in bodies else body
    for i, body in bodies.items():
        rows[i] = rows[i]._replace(m=body.mass, com=body.com, I=body.tensor)
    return tuple(rows), places


def _covered(joint: Joint, kinds: Sequence[str]) -> bool:
    return joint.chart is None and {kind(S) for S in joint.screws.T} <= {*kinds}


def _row(rows: list[Row], parent: int, S: Array, home: Array, joint: Joint) -> Row:
    """The row of a screw S = [w; v] in the frame of the moved link, which has the pose home in the parent; massless."""
    w = home[:3, :3] @ S[:3]
    v = home[:3, :3] @ S[3:] + cross(home[:3, 3], w)
    turns = any(not expressions.is_zero(x) for x in S[:3])
    z, p, sigma, h = (w, cross(w, v), 1.0, v @ w) if turns else (v, np.zeros(3), 0.0, 1.0)
    z, p, h = _tidied(z), _tidied(p), _tidied(np.array([h]))[0]
    path = (*(rows[parent].path if parent >= 0 else ()), len(rows))
    motor = joint.damping, joint.friction, joint.armature
    return Row("", parent, path, z, p, sigma, h, home, 0.0, np.zeros(3), np.zeros((3, 3)), *motor)


def _tidied(a: Array) -> Array:
    """Without the rounding of entries that are integers, such as 0 and 1."""
    if a.dtype == object:
        return expressions.array(expressions.tidied(a))
    integers = np.round(a)
    return np.where(np.abs(a - integers) < 1e-15, integers, a)


def cross(a: Array, b: Array) -> Array:
    """a × b of two vectors (3,), with the six products of the books; those of matrices would be counted as more."""
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])
