"""Effective inertias without a warning, which the reader issues."""

from __future__ import annotations

import warnings

from screwdyn.core.errors import ScrewdynWarning
from screwdyn.core.types import ArrayLike
from screwdyn.mechanism.inertia import Inertia

__all__ = ["known_effective"]


def known_effective(mass: float, com: ArrayLike, tensor: ArrayLike) -> Inertia:
    """Effective inertia without a warning; the caller reports it with the line or row.

    Parameters and errors as for :meth:`screwdyn.Inertia.effective`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ScrewdynWarning)
        return Inertia.effective(mass, com, tensor)
