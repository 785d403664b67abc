"""What a reader of another library's model cannot use: errors, and warnings that become errors on request."""

from __future__ import annotations

import warnings

from screwdyn.core.errors import ModelError, ScrewdynWarning
from screwdyn.core.types import Array
from screwdyn.io.effective import known_effective
from screwdyn.mechanism.inertia import Inertia, failing_condition

__all__ = ["Findings"]


class Findings:
    """Errors and warnings of one model, which are reported together.

    Parameters
    ----------
    title : str
        What messages call the model.
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self.errors: list[str] = []
        self.warnings: list[str] = []

    def report(self, strict: bool) -> None:
        """Raise ModelError with all errors (and, if `strict`, all warnings), or issue one ScrewdynWarning."""
        problems = [*self.errors, *(self.warnings if strict else ())]
        if problems:
            raise ModelError("\n  ".join([f"{self.title} cannot be read", *problems]), problems)
        if self.warnings:
            # The caller of KinematicTree.from_…
            message = "\n  ".join([f"{self.title} is read without the following", *self.warnings])
            warnings.warn(message, ScrewdynWarning, stacklevel=4)

    def inertia(self, link: str, mass: float, com: Array, tensor: Array) -> Inertia | None:
        """The inertia of a link, None if it has neither mass nor moments; a warning if no rigid body has it."""
        if mass == 0 and not tensor.any():
            return None
        failing = failing_condition(mass, tensor)
        if failing is None:
            return Inertia(mass, com, tensor)
        self.warnings.append(f"link {link!r}: no rigid body has its inertia, which is used as it is: {failing}")
        return known_effective(mass, com, tensor)
