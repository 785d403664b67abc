"""Contacts: gaps, and rows of a normal and two tangents with their rates (docs/mathematics.md §14).

All functions of a state also take batches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from screwdyn.core import Array
from screwdyn.mechanism import Contact
from screwdyn.physics.model import Model
from screwdyn.physics.quantities import Quantities

# Of half an edge, where it ends: there the corners of the other bodies touch, with the same gap.
ENDED = 1e-9


class ContactRows(NamedTuple):
    """The rows of all points of all contacts: the normal, then two tangents.

    Attributes
    ----------
    gaps : (…, k) array
        Distances φ, m; negative inside.
    jacobian : (…, k, 3, nv) array
        J, with the rates u = J q̇ of the point of ``link`` relative to that of ``to``; the first is φ̇.
    drift : (…, k, 3) array
        J̇ q̇, so that u̇ = J q̈ + J̇ q̇, m/s². Those of tangents hold where nothing slips, and where the body is a plane.
    rates : (…, k, 3) array
        u, m/s.
    """

    gaps: Array
    jacobian: Array
    drift: Array
    rates: Array


class Contacts:
    """The contacts of one model, whose quantities are those ``of`` an object; there may be none."""

    def __init__(self, of: Quantities, model: Model) -> None:
        self.of, self.model = of, model
        self.contacts = tuple(model.topology.contacts.values())
        # Of each point, the contact that it belongs to.
        self.owner = np.repeat(np.arange(len(self.contacts)), [len(contact.spots) for contact in self.contacts])
        # Whether edges meet, which only touch where they cross.
        self.edges = any(spot.at.half.any() for x in self.contacts for spot in x.spots)
        # Forces are on ``link``, also at its bodies.
        self._sign = np.array([-1.0 if spot.turned else 1.0 for x in self.contacts for spot in x.spots])[:, None, None]

    def gaps(self, q: Array) -> tuple[Array, Array]:
        """φ of all points, (…, k), m, at least 1 m of edges that do not cross; and how far inside they do, or 1."""
        gaps, points, _ = self.of._of_points("contact_frames", q=q)
        room = points[..., 3]
        if not self.edges:
            return gaps, room
        return np.where(room > ENDED, gaps, np.maximum(gaps, 1.0)), room

    def rows(self, q: Array, qd: Array) -> ContactRows:
        """The rows of all points."""
        return ContactRows(*self.of._of_points("contact_rows", q=q, qd=qd))

    def frames(self, q: Array) -> tuple[Array, Array]:
        """The contact points, (…, k, 3), m, and normals and tangents as rows, (…, k, 3, 3), in the base frame."""
        _, points, axes = self.of._of_points("contact_frames", q=q)
        points = points[..., :3]
        return points, axes.reshape(*points.shape, 3) * self._sign

    def deepest(self, gaps: Array) -> tuple[Contact, float]:
        """The contact with the point that is deepest inside its body in one configuration, and its depth, mm."""
        k = int(np.argmin(gaps))
        return self.contacts[self.owner[k]], -1e3 * float(gaps[k])
