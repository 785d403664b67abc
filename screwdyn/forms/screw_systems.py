"""The screw system of a tree over all configurations (docs/mathematics.md §9)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from screwdyn.core.errors import ShapeError, UnboundSymbolError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.mechanism.structure import Handle
from screwdyn.physics.frames import frame_code
from screwdyn.physics.model import Model
from screwdyn.physics.quantities import Frame
from screwdyn.screws.screw_system import ScrewSystem

if TYPE_CHECKING:
    from screwdyn.forms.symbolic import Symbolic

__all__ = ["Links", "screw_system", "system_order"]

# One link, several, or all.
Links: TypeAlias = Handle | str | Iterable[Handle | str] | None

# A column of a Jacobian is an analytic function with values in a space of six dimensions at most, so that its values at
# six random configurations span all of them, with probability one; twice as many keep them apart.
_CONFIGURATIONS = 12


class Tree(Protocol):
    """The attributes of :class:`screwdyn.KinematicTree` that its screw system needs."""

    @property
    def links(self) -> tuple[str, ...]: ...
    @property
    def model(self) -> Model: ...
    def resolve(self, what: Handle | str) -> str: ...
    def random_configuration(self, rng: np.random.Generator) -> Array: ...
    def jacobian(self, link: str, q: ArrayLike, frame: Frame) -> Array: ...
    def link_poses(self, q: ArrayLike) -> Array: ...
    def symbolic(self) -> Symbolic: ...


def system_order(tree: Tree, links: Links, tol: float) -> int:
    """λ of the joints, for almost all values of symbols."""
    return next(_systems(tree, links, "base", tol)).order


def screw_system(tree: Tree, links: Links, frame: Frame, tol: float) -> ScrewSystem:
    """The system, if symbols do not change it."""
    systems = _systems(tree, links, frame, tol)
    found = next(systems)
    if tree.model.ready is None:
        other = next(systems)
        if found.components != other.components or not np.allclose(found.basis, other.basis, rtol=0, atol=tol):
            raise UnboundSymbolError(
                f"the screw system, of order {found.order}, depends on the symbols of the tree; give values with "
                "tree.subs({...}), or choose frames in which its axes have no symbols"
            )
    return found


def _systems(tree: Tree, links: Links, frame: Frame, tol: float) -> Iterator[ScrewSystem]:
    """The system, again and again for other values of the symbols."""
    frame_code(frame)
    if not (isinstance(tol, float | int) and 0.0 < tol < 1.0):
        raise ShapeError(f"tol must be a number between 0 and 1; got {tol!r}")
    links = tree.links if links is None else links
    links = links if isinstance(links, Iterable) and not isinstance(links, str) else [links]
    names = [tree.resolve(link) for link in links]
    numeric, rng = tree.model.ready is not None, np.random.default_rng(0)
    poses, *jacobians = _functions(tree, names, frame) if numeric else _functions_of_symbols(tree, names, frame)
    symbols = 0 if numeric else len(tree.symbolic().parameters)
    while True:
        q = np.array([tree.random_configuration(rng) for _ in range(_CONFIGURATIONS)])
        values = [rng.uniform(0.3, 1.3, symbols)] if symbols else []
        length = float(np.abs(poses(q, *values)[..., :3, 3]).max(initial=0.0)) or 1.0
        screws = np.zeros((0, 6))
        for jacobian in jacobians:  # R of their QR decomposition spans the same space and has the same singular values
            columns = np.moveaxis(jacobian(q, *values), -1, -2).reshape(-1, 6)
            screws = np.asarray(np.linalg.qr(np.vstack([screws, columns]), mode="r"))
        yield ScrewSystem.of(screws, tol, length)


def _functions(tree: Tree, links: Iterable[str], frame: Frame) -> list[Callable[..., Array]]:
    """The poses of all links, and the Jacobians of some, as functions of configurations."""
    return [tree.link_poses, *(functools.partial(tree.jacobian, link, frame=frame) for link in links)]


def _functions_of_symbols(tree: Tree, links: Iterable[str], frame: Frame) -> list[Callable[..., Array]]:
    """The same as functions of configurations and of the values of the symbols, if there are any."""
    forms = tree.symbolic()
    return [forms.lambdify("link_poses"), *(forms.lambdify("jacobian", link=link, frame=frame) for link in links)]
