"""The kinds of changes, and the methods of a tree that make them."""

from __future__ import annotations

from typing import Any

from screwdyn.changes.change import Scheduled
from screwdyn.changes.grasp import Grasp, grasp
from screwdyn.changes.lock import Lock, Unlock, lock, unlock
from screwdyn.changes.loops import Close, Open, close, open_
from screwdyn.changes.move import HandOver, ReplaceJoint, move, replace_joint
from screwdyn.changes.release import Release, release
from screwdyn.changes.reroot import Reroot, reroot
from screwdyn.changes.set_inertia import SetInertia, set_inertia
from screwdyn.changes.weld import Unweld, Weld, unweld, weld
from screwdyn.physics.model import Robot

__all__ = ["KINDS", "Changes"]

# Every kind of change by what files call it, in the order in which the documentation lists them.
KINDS: dict[str, type[Scheduled[Any]]] = {
    kind.kind(): kind
    for kind in (Grasp, Release, HandOver, Lock, Unlock, ReplaceJoint, SetInertia, Close, Open, Weld, Unweld, Reroot)
}


class Changes(Robot):
    """Changes of a tree. After an error, the tree is unchanged.

    With a ``state`` of the tree just before the change, positions are continuous, the momenta are projected on the
    freedoms of the changed tree (docs/mathematics.md §6), and the result has the state just after the change. Without a
    state, only the structure changes; :meth:`State.onto` then carries a state over.
    """

    # Functions whose first argument is the tree.
    grasp = grasp
    release = release
    lock = lock
    unlock = unlock
    replace_joint = replace_joint
    set_inertia = set_inertia
    move = move
    close = close
    open = open_
    weld = weld
    unweld = unweld
    reroot = reroot
