"""The pose of a link in the working frame of the freedom that carries it.

The z axis of a working frame is the axis of the joint's screw. Links that are welded together share a row, so fixed
joints and massless frames take no operations.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from screwdyn.core import Array, expressions
from screwdyn.mechanism import Attachment, Inertia, Joint, Link
from screwdyn.mechanism.chart import Chart
from screwdyn.physics import link_steps as steps
from screwdyn.physics.link_steps import Matrix, Pose, RigidInertia, Vector
from screwdyn.physics.table import RENAMING
from screwdyn.screws import screw

NOTHING = (0.0,) * 10
# Rounding of products of two or three entries of a rotation.
_ROUNDING = 1e-15


class Placement(NamedTuple):
    """Constants of an attached link that do not depend on q; expressions if the robot's numbers are."""

    coordinate: str | None  # the freedom whose row carries the link; None if it is welded to the base
    pose: Pose  # of the link in that row's frame
    body: tuple[float, ...]  # mass, first moment and inertia about the origin of the row's frame
    freedoms: tuple[tuple[float, ...], ...]  # home pose, turn and slide, 14 numbers, of every row of the link's joint
    parent: str | None  # the coordinate that carries the parent
    above: str | None  # name of the parent
    link: Link
    joint: Joint | None  # none of the base
    name: str | None  # of the joint
    names: tuple[str, ...]  # of the joint's rows

    @property
    def nq(self) -> int:
        """Number of positions of the joint."""
        return 0 if self.joint is None else self.joint.nq

    @property
    def com(self) -> Vector:
        """Centre of mass in the row's frame; the link's origin if it is massless."""
        inertia = self.link.inertia
        if inertia is None:
            return self.pose.p
        R, p, c = expressions.alike(*self.pose, inertia.entries[0])
        com: Vector = _tidied(steps.add(p, steps.rotate(R, c)))
        return com

    def rows(self, first: int, above: int) -> list[list[Any]]:
        """The rows of the link's joint in a table, the first of which has a given number and parent."""
        rows: list[list[Any]] = []
        joint, last = self.joint, first + len(self.freedoms) - 1
        for row, freedom in enumerate(self.freedoms, first):
            assert joint is not None
            body = self.body if row == last else NOTHING
            rows.append([*freedom, *body, above, row if joint.chart is None else first, joint.armature])
            above = row
        return rows

    def place(self, row: int, frame: int) -> list[Any]:
        """The place of the link on a row with a given number, for the code of a frame; see ``physics.table``."""
        inertia = self.link.inertia
        own = [0.0] * 7 if inertia is None else [inertia.mass, *inertia.entries[1]]
        return [row, frame, *self.pose.R, *self.pose.p, *self.com, *own, len(self.freedoms)]


class JointFrames(NamedTuple):
    """The frames of a joint's rows, as far as they depend on the joint alone."""

    first: Pose  # of the first row's frame in the link's frame at home
    screw: tuple[float, float]  # turn and slide of the first row
    others: tuple[tuple[float, ...], ...]  # home pose, turn and slide of the rows after the first
    link: Pose  # in the last row's frame


def _none(*numbers: Any) -> Any:
    """No result."""
    return None


# ``welded`` and ``mounted`` in machine code, which a back-end provides; None if there are expressions.
weld = mount = _none


def place(at: Attachment, parent: Placement | None) -> Placement:
    """Placement of a link from its attachment and its parent's placement, which is ``None`` for the base."""
    link, joint, name, inertia = at.link, at.joint, at.name, at.link.inertia
    if parent is None:
        home = _pose(at.home)
        return Placement(None, home, _body(inertia, home), (), None, None, link, None, None, ())
    T, row, above, frames = parent.pose, parent.coordinate, parent.link.name, _joint_frames(joint)
    if frames is None:
        found = weld(T, at.home, *((NOTHING,) if inertia is None else (inertia.mass, inertia.entries)))
        if found is None:
            pose = _cleared(_composed(T, _pose(at.home)))
            body = _body(inertia, pose)
        else:
            pose, body = Pose(found[:9], found[9:12]), NOTHING if inertia is None else found[12:]
        return Placement(row, pose, body, (), row, above, link, joint, name, ())
    first = mount(T, at.home, frames.first)
    if first is None:
        exactly = not any(frames.first.p)
        R, p = _cleared(_composed(T, _composed(_pose(at.home), frames.first, exactly), exactly))
        first = *R, *p
    names, body = joint.row_names(name), _body_beyond(joint, inertia)
    freedoms = (*first, *frames.screw), *frames.others
    return Placement(names[-1], frames.link, body, freedoms, row, above, link, joint, name, names)


# Cached by the identity of the joint, so that a body that is attached again uses them.
@functools.lru_cache(maxsize=1024)
def _joint_frames(joint: Joint) -> JointFrames | None:
    """The frames of a joint's rows; ``None`` for a fixed joint."""
    if joint.chart is not None:
        return _group_frames(joint.chart)
    frames: list[Pose] = []
    screws: list[tuple[float, float]] = []
    for S in joint.screws.T:
        D, d, turn, slide = _screw_frame(S, frames[-1].p if frames else (0.0, 0.0, 0.0))
        frames.append(Pose(D, d))
        screws.append((turn, slide))
    if not frames:
        return None
    link = [Pose(steps.transpose(D), steps.scale(-1, steps.rotate_back(D, d))) for D, d in frames]
    homes = map(_cleared, map(_composed, link, frames[1:]))
    others = tuple((*R, *p, *screw) for (R, p), screw in zip(homes, screws[1:], strict=True))
    return JointFrames(frames[0], screws[0], others, _cleared(link[-1]))


def _group_frames(chart: Chart) -> JointFrames:
    """The frames of a group joint's rows: axes and center of the chart, with the axes renamed from row to row."""
    axes, center = chart.axes, tuple(chart.center.tolist())
    turning = chart.turning.axes
    along = [*turning, *range(chart.translations)]
    screws = [(1.0, 0.0)] * len(turning) + [(0.0, 1.0)] * chart.translations
    # The z axis of a row's frame is the k-th axis of the chart.
    turned: list[Any] = [tuple(np.roll(axes, 2 - k, axis=1).ravel().tolist()) for k in (along[0], along[-1])]
    first, last = (Pose(R, center) for R in turned)
    link = Pose(steps.transpose(last.R), steps.scale(-1, steps.rotate_back(*last)))
    others = tuple((*RENAMING.R, *RENAMING.p, *screw) for screw in screws[1:])
    return JointFrames(first, screws[0], others, _cleared(link))


def _cleared(T: Pose) -> Pose:
    """A pose without rounding that remains after cancellation."""
    return Pose(_tidied(squared(T.R)), _tidied(T.p))


def squared(R: Matrix) -> Any:
    """A rotation without the rounding of right angles, also with expressions."""
    return tuple([exact(x) if type(x) is float else x for x in R])


def exact(x: float) -> float:
    """0, 1 or −1 for what is within rounding of it: the 6e-17 of cos(π/2) would take as many operations as 0.6."""
    if abs(x) <= _ROUNDING:
        return 0.0
    if abs(x - 1.0) <= _ROUNDING:
        return 1.0
    return -1.0 if abs(x + 1.0) <= _ROUNDING else x


def _tidied(entries: Any) -> Any:
    """Constants in which equal terms have been cancelled."""
    if not expressions.possible() or {*map(type, entries)} == {float}:
        return entries
    return expressions.tidied(entries)


@functools.lru_cache(maxsize=1024)
def _body_beyond(joint: Joint, inertia: Inertia | None) -> tuple[float, ...]:
    """The body of a link in the frame of its joint's last row, which does not depend on where the joint is attached."""
    frames = _joint_frames(joint)
    assert frames is not None
    return _body(inertia, frames.link)


def _body(inertia: Inertia | None, T: Pose) -> tuple[float, ...]:
    """Mass, first moment and inertia of a body about the origin of the row's frame, in which its link has pose T."""
    if inertia is None:
        return NOTHING
    R, p, (m,), com, I, zero = expressions.alike(*T, (inertia.mass,), *inertia.entries, (0.0, 0.0, 0.0))
    m, h, I = steps.inertia_to_parent(Pose(R, steps.add(p, steps.rotate(R, com))), RigidInertia(m, zero, I))
    return (m, *_tidied(h), *_tidied(I))


def _composed(T: Pose, X: Pose, exactly: bool = True) -> Pose:
    """The pose T X, also with expressions; if not ``exactly``, with positions cancelled."""
    if expressions.possible():
        R, p, D, d = expressions.alike(*T, *X)
        T, X = Pose(R, p), Pose(D, d)
    found = composed(T, X)
    return found if exactly or {*map(type, found.p)} != {float} else cancelled(found, T.p, X.p)


def composed(T: Pose, X: Pose) -> Pose:
    """The pose T X, exact where T does not turn."""
    a, b, c, d, e, f, g, h, i = T.R
    if a == 1.0 and e == 1.0 and i == 1.0 and b == 0.0 and c == 0.0 and d == 0.0 and f == 0.0 and g == 0.0 and h == 0.0:
        return Pose(X.R, steps.add(T.p, X.p))
    return steps.compose(T, X)


def cancelled(X: Pose, one: Vector, other: Vector) -> Pose:
    """A pose in which a sum of two positions within their rounding is zero.

    A home that is turned about an axis off the origin would leave 1e-17 m of it, which takes operations.
    """
    (x, y, z), (a, b, c), (u, v, w) = X.p, one, other
    size = abs(u) + abs(v) + abs(w)
    x = x if abs(x) > _ROUNDING * (abs(a) + size) else 0.0
    y = y if abs(y) > _ROUNDING * (abs(b) + size) else 0.0
    z = z if abs(z) > _ROUNDING * (abs(c) + size) else 0.0
    return Pose(X.R, (x, y, z))


# What ``place`` does with numbers, in the dialect of kernels


def welded(T: Pose, home: Pose, own: RigidInertia) -> tuple[Pose, RigidInertia]:
    """Pose and body of a link from its home pose in a link of pose T, and its mass, com and tensor about that."""
    X, h = upright(composed(T, home)), (0.0, 0.0, 0.0)
    about = Pose(X.R, steps.add(X.p, steps.rotate(X.R, own.h)))
    return X, steps.inertia_to_parent(about, RigidInertia(own.m, h, own.I))


def mounted(T: Pose, home: Pose, first: Pose) -> Pose:
    """Pose of a joint's first row, whose frame in its link is given, from the link's home pose in a link of pose T."""
    X = composed(home, first)
    if first.p[0] != 0.0 or first.p[1] != 0.0 or first.p[2] != 0.0:
        X = cancelled(X, home.p, first.p)
        return upright(cancelled(composed(T, X), T.p, X.p))
    return upright(composed(T, X))


def upright(X: Pose) -> Pose:
    """A pose without the rounding of right angles."""
    a, b, c, d, e, f, g, h, i = X.R
    return Pose((exact(a), exact(b), exact(c), exact(d), exact(e), exact(f), exact(g), exact(h), exact(i)), X.p)


def _pose(T: Array) -> Pose:
    (a, b, c, x), (d, e, f, y), (g, h, i, z), _ = T.tolist()
    return Pose((a, b, c, d, e, f, g, h, i), (x, y, z))


def _screw_frame(S: Array, origin: Vector) -> tuple[Matrix, Vector, float, float]:
    """Pose of a frame whose z axis is the axis of a unit screw, and the screw's turn and slide there."""
    # The frame of a pure translation has the given origin.
    *w, a, b, c = S.tolist()
    v = (a, b, c)
    turns = any(w)
    D = screw.frame_along(w if turns else v)
    if not turns:
        return D, origin, 0.0, 1.0
    (h,) = expressions.tidied([steps.dot(w, v)])
    if expressions.is_expression(h):
        return D, steps.cross(w, v), 1.0, h
    # A pitch within the rounding of the cross product is zero.
    return D, steps.cross(w, v), 1.0, h if abs(h) > 1e-15 * max(map(abs, v)) else 0.0
