"""Entries of the catalogue of quantities, and the decorator :func:`quantity` that enters a declaration.

The entries themselves are declared in :mod:`screwdyn.physics.quantities`, from which the filled catalogue is imported.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Concatenate, Literal, NamedTuple, ParamSpec, TypeVar, cast

from screwdyn.physics import couplings

if TYPE_CHECKING:
    from screwdyn.physics.declared import Declared

__all__ = ["CATALOGUE", "Coupled", "Dimension", "Places", "Quantity", "Result", "quantity"]

# A number, or that of "v" freedoms, "q" positions, "L" places (of links or constraints), "k" freedoms on the path to a
# link, "p" on that to its parent.
Dimension = str | int
Places = Literal["one", "subtree", "all", "loops"]
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Result:
    """One array of the results of a quantity.

    Attributes
    ----------
    name : str
        The symbol of docs/mathematics.md, as an identifier.
    shape : tuple of Dimension
    unit : str
        Of the entries, with radians and metres.
    rate_of : str or None
        Name of the result A of the same quantity of which this one is the time derivative, entry by entry. With group
        joints, A D(ν) is added to it (docs/mathematics.md §7).
    acceleration : bool
        Whether it is q̈. With group joints, D(ν) ν is subtracted from it (docs/mathematics.md §7).
    hidden : bool
        Whether it is an intermediate result that is not returned.
    symmetric : bool
        Whether it is a symmetric matrix.
    """

    name: str
    shape: tuple[Dimension, ...]
    unit: str
    rate_of: str | None = None
    acceleration: bool = False
    hidden: bool = False
    symmetric: bool = False

    @property
    def contraction(self) -> Callable[[Any, Any, Any], None] | None:
        """How the result over the rows of a table with couplings is contracted; None if it has no axis of freedoms."""
        if self.shape[-1:] not in (("v",), ("k",)):
            return None
        if len(self.shape) == 1:
            return couplings.contracted_vector
        if self.shape[0] != self.shape[1]:
            return couplings.contracted_columns
        return couplings.contracted_symmetric if self.symmetric else couplings.contracted_matrix


class Coupled(NamedTuple):
    """How a quantity of a tree with couplings follows from others, where its rows alone do not determine it.

    Attributes
    ----------
    quantities : tuple of str
        Their results are contracted and become the first arguments of ``finish``.
    arguments : tuple of str
        Arguments of the state that follow, then the scratch space, the workspace and the results.
    finish : callable
        Returns a status, as recursions do.
    scratch : tuple of shapes
        Arrays of scratch space.
    """

    quantities: tuple[str, ...]
    arguments: tuple[str, ...]
    finish: Callable[..., int]
    scratch: tuple[tuple[Dimension, ...], ...] = ()


@dataclass(frozen=True)
class Quantity:
    """An entry of the catalogue.

    Attributes
    ----------
    name : str
    arguments : tuple of str
        Its arrays of the state, in order: some of "q", "qd", "qdd" and "tau".
    at_rest : tuple of str
        Further arguments of the recursion that are zero for this quantity, such as "qdd" for a bias force.
    parameters : tuple of str
        None, or "link", or "link" and "frame".
    results : tuple of Result
    scratch : tuple of shapes
        Arrays of scratch space of the recursion, in addition to its workspace.
    recursion : callable
        ``(table, *arguments, *at_rest, [places], *scratch, work, *results)``; see ``recursions``.
    base_parameters : bool
        Whether it has the same value with base parameters (``base_parameters``), which do not keep the masses.
    wrenches : "result", "tau" or None
        Whether the forces of external wrenches are subtracted from the result or added to τ.
    places : "one", "subtree", "all", "loops" or None
        The places that the recursion takes: of one link, of that link and all links beyond it, of all links, or of the
        constraints of all loops.
    coupled : Coupled or None
        Only if the results for a tree with couplings are not the contracted results of the recursion.
    signature : inspect.Signature
    doc : str
    """

    name: str
    arguments: tuple[str, ...]
    at_rest: tuple[str, ...]
    parameters: tuple[str, ...]
    results: tuple[Result, ...]
    scratch: tuple[tuple[Dimension, ...], ...]
    recursion: Callable[..., int | None]
    base_parameters: bool
    wrenches: Literal["result", "tau"] | None
    places: Places | None
    coupled: Coupled | None
    signature: inspect.Signature
    doc: str

    @property
    def given(self) -> tuple[Result, ...]:
        """Results that are not hidden."""
        return tuple(result for result in self.results if not result.hidden)

    @property
    def summary(self) -> str:
        """First paragraph of the docstring, as one line."""
        return " ".join(self.doc.split("\n\n")[0].split())


CATALOGUE: dict[str, Quantity] = {}
_STATE = ("q", "qd", "qdd", "tau")


def quantity(
    recursion: Callable[..., int | None],
    *results: Result,
    base_parameters: bool = False,
    at_rest: tuple[str, ...] = (),
    scratch: tuple[tuple[Dimension, ...], ...] = (),
    wrenches: Literal["result", "tau"] | None = None,
    places: Places = "one",
    coupled: Coupled | None = None,
) -> Callable[[Callable[Concatenate[Any, P], R]], Declared[P, R]]:
    """Enter a declaration in the catalogue; the decorated method calls ``_evaluate`` of its object."""

    def enter(declaration: Callable[Concatenate[Any, P], R]) -> Declared[P, R]:
        name, signature = declaration.__name__, inspect.signature(declaration)
        names = tuple(signature.parameters)[1:]
        CATALOGUE[name] = entry = Quantity(
            name=name,
            arguments=tuple(x for x in names if x in _STATE),
            at_rest=at_rest,
            parameters=tuple(x for x in names if x in ("link", "frame")),
            results=results,
            scratch=scratch,
            recursion=recursion,
            base_parameters=base_parameters,
            wrenches=wrenches,
            places=places if "link" in names or places in ("all", "loops") else None,
            coupled=coupled,
            signature=signature,
            doc=inspect.getdoc(declaration) or "",
        )

        @functools.wraps(declaration)
        def ask(form: Any, *args: P.args, **kwargs: P.kwargs) -> R:
            given = signature.bind(form, *args, **kwargs)
            given.apply_defaults()
            _, *named = given.arguments.items()
            result: R = form._evaluate(entry, **dict(named))
            return result

        return cast("Declared[P, R]", ask)

    return enter
