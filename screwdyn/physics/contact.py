"""Contacts: gaps, and rows of a normal and two tangents with their rates (docs/mathematics.md §14).

All functions of a state also take batches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from screwdyn.core import Array, ContactError
from screwdyn.mechanism.contact import Contact, Plane, core
from screwdyn.physics.model import Model
from screwdyn.physics.quantities import Quantities
from screwdyn.screws.screw import Ad, ad, inverse, skew_of

_ONE = np.eye(3)


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
        self._cores = [_Core(contact) for contact in self.contacts]
        # Of each point, the contact that it belongs to.
        self.owner = np.repeat(np.arange(len(self.contacts)), [len(contact.points) for contact in self.contacts])

    def gaps(self, q: Array) -> Array:
        """φ of all points, (…, k), m."""
        found = [one.placed(self._pose(one.contact, q))[1] for one in self._cores]
        return np.concatenate([np.zeros((*q.shape[:-1], 0)), *found], axis=-1)

    def rows(self, q: Array, qd: Array) -> ContactRows:
        """The rows of all points."""
        of, batch = self.of, q.shape[:-1]
        found = [tuple(np.zeros((*batch, 0, *shape)) for shape in ((), (3, self.model.nv), (3,), (3,)))]
        relative: dict[tuple[str, str], tuple[Array, Array, Array]] = {}
        for one in self._cores:
            pair = one.contact.link, one.contact.to
            if pair not in relative:
                X = Ad(inverse(of.forward_kinematics(one.contact.to, q)))
                J, J_to = (X @ of.jacobian(name, q, "base") for name in pair)
                J_dot, J_dot_to = (X @ of.jacobian_dot(name, q, qd, "base") for name in pair)
                V = _times(J - J_to, qd)
                relative[pair] = J - J_to, V, _times(J_dot - J_dot_to, qd) - _times(ad(_times(J_to, qd)), V)
            found.append(one.rows(self._pose(one.contact, q), *relative[pair]))
        return ContactRows(*(np.concatenate(parts, axis=len(batch)) for parts in zip(*found, strict=True)))

    def frames(self, q: Array) -> tuple[Array, Array]:
        """The contact points, (k, 3), m, and normals and tangents as rows, (k, 3, 3), in the base frame; no batches."""
        points, axes = [np.zeros((0, 3))], [np.zeros((0, 3, 3))]
        for one in self._cores:
            T = self.of.forward_kinematics(one.contact.to, q)
            c, _, n, _ = one.placed(self._pose(one.contact, q))
            points.append((c - one.contact.radii[:, None] * n) @ T[:3, :3].T + T[:3, 3])
            axes.append(frames(n) @ T[:3, :3].T)
        return np.concatenate(points), np.concatenate(axes)

    def deepest(self, gaps: Array) -> tuple[Contact, float]:
        """The contact with the point that is deepest inside its body in one configuration, and its depth, mm."""
        k = int(np.argmin(gaps))
        return self.contacts[self.owner[k]], -1e3 * float(gaps[k])

    def _pose(self, contact: Contact, q: Array) -> Array:
        """The pose of a contact's link in its other one."""
        of = self.of
        return np.asarray(inverse(of.forward_kinematics(contact.to, q)) @ of.forward_kinematics(contact.link, q))


class _Core:
    """The points of a contact beside its body: all points within a radius of a plane, or of a box in its frame."""

    def __init__(self, contact: Contact) -> None:
        self.contact = contact
        self.half, self.radius = core(contact.on)
        if isinstance(contact.on, Plane):
            self.plane, self.offset = np.array(contact.on.normal), contact.on.offset
            self.axes = frames(self.plane)
        else:
            self.R, self.p = contact.on.pose[:3, :3], contact.on.pose[:3, 3]

    def placed(self, T: Array) -> tuple[Array, Array, Array, Array]:
        """Centres c, (…, k, 3), gaps φ, normals n and ∂n/∂c, (…, k, 3, 3), in the frame of ``to``."""
        c = self.contact.points @ np.swapaxes(T[..., :3, :3], -1, -2) + T[..., None, :3, 3]
        if isinstance(self.contact.on, Plane):
            gaps = c @ self.plane - self.offset - self.contact.radii
            return c, gaps, np.broadcast_to(self.plane, c.shape), np.zeros((*c.shape, 3))
        local = (c - self.p) @ self.R
        over = np.abs(local) - self.half
        beyond = (over > 0) | (self.half == 0)
        # Inside a box, and beyond one face only, that face counts; so a point may reach it, where w = 0.
        face = np.arange(3) == over.argmax(axis=-1)[..., None]
        flat = beyond.sum(axis=-1) <= 1
        w = beyond * over * np.sign(local)
        distance = np.linalg.norm(w, axis=-1)
        divisor = np.where(distance > 0, distance, 1.0)[..., None]
        n = np.where(flat[..., None], face * np.sign(local), w / divisor)
        if not n.any(axis=-1).all():
            raise self._inside()
        signed = np.where(flat, (face * over).sum(axis=-1), distance)
        turn = (beyond[..., None] * _ONE - n[..., :, None] * n[..., None, :]) / divisor[..., None]
        turn[flat] = 0.0
        return c, signed - self.radius - self.contact.radii, n @ self.R.T, self.R @ turn @ self.R.T

    def rows(self, T: Array, J: Array, V: Array, bias: Array) -> tuple[Array, Array, Array, Array]:
        """Gaps, rows, their drift, and rates; from the relative Jacobian, twist and acceleration at q̈ = 0."""
        c, gaps, n, turn = self.placed(T)
        v, across = V[..., None, 3:], -skew_of(V[..., :3])  # x @ across is ω × x
        r = self.contact.radii[:, None]
        x, x_dot = c - r * n, v + c @ across
        if isinstance(self.contact.on, Plane):  # whose normals do not turn
            e = np.broadcast_to(self.axes, (*c.shape, 3))
            turned = np.zeros(c.shape)
        else:
            n_dot, e = _times(turn, x_dot), frames(n)
            x_dot = x_dot - r * n_dot
            # Tangents turn with the normal only: their own turn would multiply a slip, which is zero where it matters.
            tangents = (-(n_dot * e[..., k, :]).sum(axis=-1, keepdims=True) * n for k in (1, 2))
            turned = _times(np.stack([n_dot, *tangents], axis=-2), v + x @ across)
        W = np.concatenate([-e @ skew_of(x), e], axis=-1)
        drift = _times(W, bias[..., None, :]) + _times(e, x_dot @ across) + turned
        return gaps, W @ J[..., None, :, :], drift, _times(W, V[..., None, :])

    def _inside(self) -> ContactError:
        name, link, to = self.contact.name, self.contact.link, self.contact.to
        return ContactError(
            f"at contact {name!r}, a point of {link!r} is in the middle of {self.contact.on!r} of {to!r}, where there "
            f"is no normal; start from a state in which they are apart"
        )


def frames(n: Array) -> Array:
    """Right-handed frames of rows n and two tangents, (…, 3, 3), of unit vectors (…, 3)."""
    t = _ONE[np.abs(n).argmin(axis=-1)]
    t = t - (t * n).sum(axis=-1, keepdims=True) * n
    t = t / np.linalg.norm(t, axis=-1, keepdims=True)
    return np.stack([n, t, _times(skew_of(n), t)], axis=-2)


def _times(A: Array, x: Array) -> Array:
    """A x of matrices and vectors."""
    return np.asarray((A @ x[..., None])[..., 0])
