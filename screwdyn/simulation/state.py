"""A labelled state of a tree."""

from __future__ import annotations

import numpy as np

from screwdyn.core.errors import ScrewdynError, ShapeError, StaleHandleError, UnknownLinkError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.forms.tree_forms import Forms

__all__ = ["State", "check_state"]


class State:
    """Positions and rates of a tree's coordinates, by name.

    Parameters
    ----------
    tree : KinematicTree
    q : (nq,) array, optional
        Positions in the order of ``tree.coordinates``; zero by default. Copied.
    qd : (nv,) array, optional
        Rates; at rest by default. Copied.

    Attributes
    ----------
    tree : KinematicTree
        In a simulation, the tree as it is now: with the payload while it is held.
    coordinates : tuple of str
        The names at the time this state was made.

    Raises
    ------
    ShapeError
        Wrong shape, or an entry that is not finite.
    ScrewdynError
        If `tree` is no KinematicTree.

    Examples
    --------
    >>> import screwdyn as sd
    >>> state = sd.State(sd.robots.pelican(), [0.1, 0.2])
    >>> state["elbow"]
    0.2
    """

    __slots__ = ("coordinates", "q", "qd", "tree")

    def __init__(self, tree: Forms, q: ArrayLike | None = None, qd: ArrayLike | None = None) -> None:
        if not isinstance(tree, Forms):
            raise ScrewdynError(f"a State(tree, q, qd) is of a KinematicTree; got {type(tree).__name__}")
        model = tree.model
        zeros = np.zeros(model.nv)
        (flat, flat_qd), batch = model.flat(q=zeros if q is None else q, qd=zeros if qd is None else qd)
        if batch:
            raise ShapeError(f"a State is one configuration; got a batch of shape {batch}")
        self._fill(tree, model.coordinates, flat, flat_qd)

    @classmethod
    def unchecked(cls, tree: Forms, coordinates: tuple[str, ...], q: Array, qd: Array) -> State:
        """A state made of the library's own numbers, at a tenth of the time; for inner loops."""
        state = cls.__new__(cls)
        state._fill(tree, coordinates, q, qd)
        return state

    def _fill(self, tree: Forms, coordinates: tuple[str, ...], q: Array, qd: Array) -> None:
        self.tree = tree
        self.coordinates = coordinates
        self.q: Array = q.copy()
        self.qd: Array = qd.copy()

    def __getitem__(self, coordinate: str) -> float:
        """Position of one coordinate."""
        return float(self.q[self._index(coordinate)])

    def velocity(self, coordinate: str) -> float:
        """Rate of one coordinate."""
        return float(self.qd[self._index(coordinate)])

    def part(self, tree: Forms) -> State:
        """The same state of a tree that has only some of the coordinates."""
        names = set(tree.coordinates)
        keep = [i for i, name in enumerate(self.coordinates) if name in names]
        return State(tree, self.q[keep], self.qd[keep])

    def _index(self, coordinate: str) -> int:
        if coordinate not in self.coordinates:
            raise UnknownLinkError.of(coordinate, self.coordinates, "coordinate")
        return self.coordinates.index(coordinate)

    def __repr__(self) -> str:
        rows = (f"{c}={x:.4g} ({v:.4g}/s)" for c, x, v in zip(self.coordinates, self.q, self.qd, strict=True))
        return f"State({', '.join(rows)})"


def check_state(state: State, tree: Forms, whose: str = "tree") -> None:
    """Make sure that a state is one of the tree as it is now.

    Raises
    ------
    ShapeError
        If it is no State at all.
    StaleHandleError
        If the tree's coordinates are others than the state's.
    """
    if not isinstance(state, State):
        raise ShapeError(f"the state of the {whose} must be a State(tree, q, qd); got {type(state).__name__}")
    if state.coordinates != tree.coordinates:
        raise StaleHandleError(
            f"this state is over ({', '.join(state.coordinates)}), but the {whose} now has "
            f"({', '.join(tree.coordinates)}); use the state of the last grasp or release, or make one of the {whose}"
        )
