"""Carrying a floating tree by another of its links: the same motion in other coordinates (docs/mathematics.md §6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import overload

from screwdyn.changes.change import Change, Scheduled
from screwdyn.changes.move import rehung
from screwdyn.core.errors import JointError, TopologyError
from screwdyn.mechanism.structure import Handle
from screwdyn.physics import Robot, State


@dataclass(frozen=True, eq=False, repr=False)
class Reroot(Scheduled[Change]):
    """The free joint of a floating tree carries another link, at a time or on a condition in :func:`simulate`."""

    verb = "reroot"

    link: str | Handle

    def enact(self, tree: Robot, state: State) -> Change:
        """All links keep their poses and twists, so nothing is lost."""
        link = tree.resolve(self.link)
        root, name = _floating(tree, link)
        after = rehung(tree, state, root, link, tree.topology.reroot(root, link))
        # Of the two quaternions of the orientation, that on the same side as before: the way back ends where it began.
        if after[f"{name}[w]"] * state[f"{name}[w]"] < 0:
            first = after.positions.index(f"{name}[x]")
            after.q[first : first + 4] *= -1
        return Change(state=after, link=link)


@overload
def reroot(tree: Robot, link: Handle | str, state: None = None) -> None: ...
@overload
def reroot(tree: Robot, link: Handle | str, state: State) -> Change: ...
def reroot(tree: Robot, link: Handle | str, state: State | None = None) -> Change | None:
    """Let the free joint of a floating tree carry another link: the same motion in other coordinates.

    The joint keeps its name, its home pose and whether it is passive; its coordinates are now those of ``link``. The
    joints between are reversed as in :meth:`release`: each keeps its name, positions and rates, in the opposite order
    if there are several; a spherical, free or planar joint has those of the opposite motion. All links keep their
    poses and twists, handles stay valid, and loops stay closed.

    The links beyond the joint keep their places in the order of the tree. There the links between come first, outward
    from ``link``, and all others follow as before. Rerooting at the former link restores the tree; the links between
    are then the first beyond that one, if they were not before.

    Parameters
    ----------
    link : Handle or str
        At or beyond a free joint; of several on the path from the base, the first counts.
    state : State, optional
        Of the tree just before.

    Returns
    -------
    Change or None
        With a state: the state just after. There is no impulse, and no energy is lost.

    Raises
    ------
    UnknownNameError, StaleHandleError, TopologyError
        If there is no such link, the handle or the state is stale, or a free joint does not carry the link: there is
        none on its path, it is locked, or a rotor is on the path.
    JointError
        If the free joint has damping or friction, or a free or planar joint between, which cannot be reversed with it.
    UnboundSymbolError
        If a joint between has symbols.

    Examples
    --------
    >>> import screwdyn as sd
    >>> robot = sd.KinematicTree("ground")
    >>> body = sd.Inertia.box(1.0, (0.1, 0.1, 0.5), com=(0, 0, 0.25))
    >>> _ = robot.attach(body, to="ground", joint=sd.free(name="float", passive=True), name="left")
    >>> _ = robot.attach(body, to="left", joint=sd.revolute("y", name="hip"), at=(0, 0, 0.5), name="right")
    >>> event = robot.reroot("right", sd.State(robot, {"hip": 0.3}, {"hip": 1.0}))
    >>> print(robot)
    ground
    └─ right [passive free float] 1 kg
       └─ left [revolute hip] 1 kg
    >>> event.state.velocity("hip"), event.state.velocity("float[wy]")
    (1.0, 1.0)
    """
    if state is not None:
        return Reroot(link).happen(tree, state)
    name = tree.resolve(link)
    tree.topology = tree.topology.reroot(_floating(tree, name)[0], name)
    return None


def _floating(tree: Robot, link: str) -> tuple[str, str]:
    """The link that the free joint on the path to a link carries, and the name of the joint; errors as for reroot."""
    path = [tree.topology.attachments[name] for name in tree.path(link)[1:]]
    free = next((at for at in path if at.joint.kind == "free"), None)
    if free is None:
        held = " → ".join(f"{at.name!r} ({'locked ' * bool(at.locked)}{at.unlocked.joint.kind})" for at in path[:3])
        raise TopologyError(
            f"{link!r} is not beyond a free joint, whose other links it could carry; "
            f"it hangs on the base by {held or 'nothing, because it is the base'}"
        )
    if free.joint.damping != 0 or free.joint.friction != 0:
        raise JointError(
            f"free joint {free.name!r} has damping or friction, which act on velocities of {free.link.name!r}, so it "
            f"cannot carry {link!r} instead; remove them by replace_joint"
        )
    return free.link.name, free.name
