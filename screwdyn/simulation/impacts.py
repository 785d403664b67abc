"""Impacts of all contacts that touch, with Coulomb's friction and restitution (docs/mathematics.md §13)."""

from collections.abc import Hashable, Sequence

import numpy as np

from screwdyn.core.types import Array, Flags
from screwdyn.simulation.coulomb import Cone, forces

# Rate at which a contact approaches, relative to the largest rate before the impact, that counts as rounding.
REST = 1e-10
# Coupling of two contacts, relative to their own mobilities, that is rounding.
COUPLED = 1e-12
# Rounds after which the last one is plastic, with all contacts at once.
ELASTIC = 100


def impulses(
    G: Array,
    rates: Array,
    friction: Array,
    restitution: Array,
    pairs: Sequence[Hashable] | None = None,
    terms: Array | None = None,
) -> Array:
    """The impulses Λ of contacts, (3 k,), after which no contact approaches: the rates are then u = rates + G Λ.

    In rounds of two phases. *Compression* is a plastic impact with Coulomb's friction, :func:`.forces`, with normal
    impulses Λ_c. *Restitution* adds the normal impulses e Λ_c, with the smallest e of the contacts that are loaded, and
    of all tangential impulses with |Λ_t| ≤ μ e Λ_c those that leave the least kinetic energy. The energy lost is
    −Λ · (rates + u) / 2 ≥ 0, and at least (1 − e²) / 2 of that of the compression.

    Parameters
    ----------
    G : (3 k, 3 k) array
        J P Jᵀ of the rows n, t, t of each contact, with the mobility P; symmetric.
    rates : (3 k,) array
        u = J ν before the impact, m/s; negative normal rates approach.
    friction, restitution : (k,) arrays
        μ ≥ 0, and e from 0 to 1, of each contact.
    pairs : sequence, optional
        The two bodies of each contact. With them, contacts of one pair act after another, the fastest pair first, as in
        Newton's cradle. By default all contacts act at once that bodies connect.
    terms : (3 k,) array, optional
        Size of the terms of which the rates are sums, |J| |ν|, whose rounding errors redundant rows cannot remove.

    Raises
    ------
    ContactError
        If the impulses of a round are not found.
    """
    k = len(friction)
    u, total, terms = rates.copy(), np.zeros(3 * k), np.abs(rates) if terms is None else terms.copy()
    linked = _coupled(G) if pairs is None else np.array([[one == other for other in pairs] for one in pairs])
    for count in range(ELASTIC + 1):
        if u[::3].min(initial=0.0) >= -REST * terms.max(initial=0.0):
            break
        if count == ELASTIC:
            linked, restitution = np.ones_like(linked), np.zeros(k)
        at = np.flatnonzero(linked[int(np.argmin(u[::3]))])
        rows = (3 * at[:, None] + np.arange(3)).ravel()
        found = _round(G[np.ix_(rows, rows)], u[rows], friction[at], restitution[at], terms[rows])
        total[rows] += found
        u += G[:, rows] @ found
        terms = np.maximum(terms, np.abs(u))
    return total


def _round(G: Array, u: Array, friction: Array, restitution: Array, terms: Array) -> Array:
    """Compression and restitution of contacts that act at once."""
    k = len(friction)
    cones = [Cone(3 * i, (3 * i + 1, 3 * i + 2), mu) for i, mu in enumerate(friction.tolist())]
    compression = forces(G, u, np.zeros(3 * k), np.full(3 * k, np.inf), cones, terms=terms)
    e = restitution[compression[::3] > 0].min(initial=1.0)
    if e == 0:
        return compression
    given = e * compression
    return compression + forces(G, u + G @ compression, given, given, cones, terms=terms)


def _coupled(G: Array) -> Flags:
    """Which contacts an impulse on another one moves, also by way of others, (k, k)."""
    k = len(G) // 3
    size = np.sqrt(np.diagonal(G).reshape(k, 3).sum(axis=1))
    share = np.abs(G).reshape(k, 3, k, 3).max(axis=(1, 3))
    linked = np.asarray((share > COUPLED * np.outer(size, size)) | np.eye(k, dtype=bool))
    for _ in range(k.bit_length()):
        linked = linked @ linked
    return linked
