"""The energy ledger of a run, and what it has of the events."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Protocol

import numpy as np

from screwdyn.core.types import Array

__all__ = ["Energy", "Event"]


@dataclass(frozen=True, eq=False, repr=False)
class Energy:
    """The energy ledger of a run, J; every entry is (samples,).

    Attributes
    ----------
    kinetic, potential : arrays
        Of the tree as it was at that time; ``potential`` includes gravity and the springs of joints.
    work : array
        Work of the torques up to that time.
    dissipated : array
        Energy dissipated by damping and friction in the joints up to that time.
    impact_loss : array
        Kinetic energy dissipated by changes of the tree, such as grasps, up to that time.
    exchanged : array
        Energy of the payloads grasped up to that time, minus that of the payloads released. Their kinetic energy is
        computed from the payloads alone, so that :attr:`residual` checks the momentum balance.
    external : array
        Work of the external wrenches up to that time.
    """

    kinetic: Array
    potential: Array
    work: Array
    dissipated: Array
    impact_loss: Array
    exchanged: Array
    external: Array

    @property
    def total(self) -> Array:
        """Sum of kinetic and potential energy, J."""
        return self.kinetic + self.potential

    @property
    def residual(self) -> Array:
        """Change of :attr:`total` minus the balance of the other entries, J: the error of the integration."""
        explained = self.work + self.external - self.dissipated - self.impact_loss + self.exchanged
        return np.asarray(self.total - self.total[0] - explained)

    def continued(self, other: Energy) -> Energy:
        """The ledger of this run and of one that continues it."""
        counts = (entry.name for entry in fields(Energy) if entry.name not in ("kinetic", "potential"))
        later = replace(other, **{name: getattr(other, name) + getattr(self, name)[-1] for name in counts})
        pairs = {entry.name: (getattr(self, entry.name), getattr(later, entry.name)) for entry in fields(Energy)}
        return Energy(**{name: np.concatenate(pair) for name, pair in pairs.items()})

    def __repr__(self) -> str:
        total, worst = self.total, np.abs(self.residual).max()
        return f"<{type(self).__name__}: {total[0]:.4g} J to {total[-1]:.4g} J, largest residual {worst:.1g} J>"


class Event(Protocol):
    """What a ledger has of an event."""

    @property
    def t(self) -> float:
        """Time, s."""

    @property
    def verb(self) -> str:
        """What happened, such as ``"grasp"``."""

    @property
    def link(self) -> str:
        """The link that it happened to."""

    @property
    def subject(self) -> str:
        """Name of what it concerns: a joint, a loop, or the link."""
