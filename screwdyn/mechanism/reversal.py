"""Joints reversed, so that a link carries its former parent: a part of a tree can then hang on any of its links.

docs/mathematics.md §12.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from screwdyn.core.errors import JointError
from screwdyn.core.types import Array
from screwdyn.mechanism.attachment import Attachment, Locked
from screwdyn.mechanism.joint import Joint
from screwdyn.screws.screw import Ad, inverse

__all__ = ["rerooted", "reversed_joint", "reversed_motion"]


def reversed_joint(joint: Joint, home: Array) -> Joint:
    """The joint by which a link carries its parent, with the same forces and limits; its home is home⁻¹.

    The pose home · g(q) of the link in its parent becomes home⁻¹ · (home g(q)⁻¹ home⁻¹). The screws are −Ad(home) S in
    the opposite order, so that each freedom keeps its position and rate. A chart keeps the order and the sign of its
    axes; its positions are those of g(q)⁻¹.

    Raises
    ------
    JointError
        If a free or planar joint has damping or friction, whose force would be another one.
    """
    if joint.chart is None:
        return replace(joint, screws=-(Ad(home) @ joint.screws)[:, ::-1] + 0.0)
    if joint.chart.translations and (joint.damping != 0 or joint.friction != 0):
        raise JointError(
            f"a {joint.kind} joint with damping or friction cannot be reversed, because these act on velocities of the "
            f"link that it carries; remove them by replace_joint"
        )
    R, p = home[:3, :3], home[:3, 3]
    return replace(joint, chart=replace(joint.chart, axes=R @ joint.chart.axes, center=R @ joint.chart.center + p))


def reversed_motion(joint: Joint, q: Array, rates: Array) -> tuple[Array, Array]:
    """Positions (nq,) and rates (nv,) of the reversed joint in the same state."""
    chart = joint.chart
    if chart is None:
        return q[::-1], rates[::-1]
    neutral = np.array(chart.neutral)
    back = chart.integrate(neutral, chart.difference(q, neutral))
    twist = Ad(chart.pose(q)) @ joint.screws @ rates
    return back, np.asarray(-np.linalg.pinv(joint.screws) @ twist)


def rerooted(attachments: Sequence[Attachment], root: str) -> list[Attachment]:
    """The attachments of a link and all links beyond it in the order in which they hang on one of them, which is first.

    The joints between the two links are reversed. The attachment of the new root is as before.

    Raises
    ------
    JointError
        If one of these joints cannot be reversed.
    """
    at = {one.link.name: one for one in attachments}
    carried = at.pop(root)
    turned = [carried]
    while carried.link.name != attachments[0].link.name:
        parent = at.pop(carried.parent or "")
        turned.append(_carrying(carried, parent))
        carried = parent
    return [*turned, *at.values()]


def _carrying(at: Attachment, parent: Attachment) -> Attachment:
    """The attachment of the parent to the link of an attachment, by the same joint."""
    home, locked = inverse(at.home), at.locked
    try:
        joint = _named(at, at.joint, at.home)
        if locked is not None:
            q, _ = reversed_motion(locked.joint, np.array(locked.q), np.zeros(locked.joint.nv))
            locked = Locked(_named(at, locked.joint, locked.home), inverse(locked.home), tuple(q.tolist()))
    except JointError as error:
        raise JointError(f"joint {at.name!r} of {at.link.name!r}: {error}") from None
    return replace(parent, parent=at.link.name, joint=joint, home=home, locked=locked)


def _named(at: Attachment, joint: Joint, home: Array) -> Joint:
    """A joint of an attachment reversed, with its name; its rotor stays on the same carrier."""
    rotor = joint.rotor
    if rotor is not None:
        rotor = replace(rotor, carrier=rotor.carrier or at.parent)
    return replace(reversed_joint(joint, home), name=at.name, rotor=rotor)
