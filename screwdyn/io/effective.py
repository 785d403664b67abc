"""Numbers that belong to no rigid body, used with open eyes."""

from __future__ import annotations

import warnings

from screwdyn.core.errors import ScrewdynWarning
from screwdyn.core.types import ArrayLike
from screwdyn.mechanism.inertia import Inertia

__all__ = ["known_effective"]


def known_effective(mass: float, com: ArrayLike, tensor: ArrayLike) -> Inertia:
    """Effective inertia about which the caller says itself what is to be said, and where.

    Parameters and errors as for :meth:`screwdyn.Inertia.effective`, whose warning knows no line or row.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ScrewdynWarning)
        return Inertia.effective(mass, com, tensor)
