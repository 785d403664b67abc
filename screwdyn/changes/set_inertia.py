"""Giving a link another inertia."""

from __future__ import annotations

from dataclasses import dataclass
from typing import overload

import numpy as np

from screwdyn.changes.change import Change, Scheduled
from screwdyn.core import expressions
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.structure import Handle, Mechanism, Switch
from screwdyn.physics import Robot, State


@dataclass(frozen=True, eq=False, repr=False)
class SetInertia(Scheduled[Change]):
    """A link gets another inertia, at a time or on a condition in :func:`simulate`."""

    verb = "set inertia of"

    link: str | Handle
    inertia: Inertia | None

    def enact(self, tree: Robot, state: State) -> Change:
        """All rates continue: what is added or removed moves with the link."""
        link = tree.resolve(self.link)
        V, former = tree.link_twist(link, state.q, state.qd, "body"), tree.link(link).inertia
        tree.topology = tree.topology.set_inertia(link, self.inertia)
        brought, what = 0.0, f"the inertia of {link!r}"
        with np.errstate(over="ignore", invalid="ignore"):
            for body, half in ((self.inertia, 0.5), (former, -0.5)):
                brought += 0.0 if body is None else half * float(V @ expressions.floats(body.matrix, what) @ V)
        return Change(state=state.onto(tree)[0], link=link, kinetic_energy_brought=brought)

    def switch(self, tree: Mechanism) -> Switch:
        """The link has other inertial numbers."""
        link = tree.resolve(self.link)
        tree.topology.set_inertia(link, self.inertia)
        numbers = np.zeros(10) if self.inertia is None else self.inertia.parameters
        return Switch(link, link, bodies={link: expressions.floats(numbers, f"the inertia of {link!r}")})


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
        tree.topology = tree.topology.set_inertia(tree.resolve(link), inertia)
        return None
    return SetInertia(link, inertia).happen(tree, state)
