"""Giving a link another inertia."""

from __future__ import annotations

from dataclasses import dataclass
from typing import overload

import numpy as np

from screwdyn.changes.change import Change, Scheduled
from screwdyn.core import expressions
from screwdyn.mechanism import surgery
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.structure import Handle
from screwdyn.physics.model import Robot
from screwdyn.physics.state import State

__all__ = ["SetInertia", "set_inertia"]


@dataclass(frozen=True, eq=False)
class SetInertia(Scheduled[Change]):
    """A link gets another inertia, at a time or on a condition in :func:`simulate`.

    Parameters
    ----------
    link, inertia
        As for :meth:`KinematicTree.set_inertia`.
    time, when
        As for :class:`Grasp`, with the same errors.
    """

    verb = "set inertia of"

    link: str | Handle
    inertia: Inertia | None

    def enact(self, tree: Robot, state: State) -> Change:
        """All rates continue: what is added or removed moves with the link."""
        link = tree.resolve(self.link)
        V = tree.jacobian(link, state.q, "body") @ state.qd
        former = tree.link(link).inertia
        tree.topology = surgery.set_inertia(tree.topology, link, self.inertia)
        new, old = (
            np.zeros((6, 6)) if body is None else expressions.floats(body.matrix, f"the inertia of {link!r}")
            for body in (self.inertia, former)
        )
        with np.errstate(over="ignore", invalid="ignore"):
            brought = 0.5 * (V @ new @ V - V @ old @ V)
        return Change(state=state.onto(tree)[0], link=link, kinetic_energy_brought=float(brought))


@overload
def set_inertia(tree: Robot, link: Handle | str, inertia: Inertia | None, state: None = None) -> None: ...
@overload
def set_inertia(tree: Robot, link: Handle | str, inertia: Inertia | None, state: State) -> Change: ...
def set_inertia(tree: Robot, link: Handle | str, inertia: Inertia | None, state: State | None = None) -> Change | None:
    """Give a link another inertia, in place. Coordinates and handles stay valid.

    Parameters
    ----------
    link : Handle or str
    inertia : Inertia or None
        ``None`` for a massless link.
    state : State, optional
        Of the tree just before. All rates continue: what is added or removed moves with the link.

    Returns
    -------
    Change or None
        With a state: the state just after, and the kinetic energy of what was added minus that of what was
        removed.

    Raises
    ------
    UnknownNameError, InertiaError, TopologyError
        If there is no such link, ``inertia`` is no inertia, or the link is the rotor of a joint.
    StaleHandleError, UnboundSymbolError
        With a state: if it does not belong to the present tree, or ``inertia`` has symbols.
    """
    if state is None:
        tree.topology = surgery.set_inertia(tree.topology, tree.resolve(link), inertia)
        return None
    return SetInertia(link, inertia).happen(tree, state)
