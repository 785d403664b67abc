"""A labelled state of a tree."""

from collections.abc import Sequence

import numpy as np

from ._types import Array, ArrayLike
from .errors import ShapeError, StaleHandleError, UnknownLinkError
from .tree import KinematicTree

__all__ = ["State"]


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

    Examples
    --------
    >>> import screwdyn as sd
    >>> state = sd.State(sd.robots.pelican(), [0.1, 0.2])
    >>> state["elbow"]
    0.2
    """

    __slots__ = ("coordinates", "q", "qd", "tree")

    def __init__(self, tree: KinematicTree, q: ArrayLike | None = None, qd: ArrayLike | None = None) -> None:
        model = tree.model
        zeros = np.zeros(model.nv)
        (flat, flat_qd), batch = model.flat(q=zeros if q is None else q, qd=zeros if qd is None else qd)
        if batch:
            raise ShapeError(f"a State is one configuration; got a batch of shape {batch}")
        self.tree = tree
        self.coordinates = model.coordinates
        self.q: Array = np.array(flat)
        self.qd: Array = np.array(flat_qd)

    def __getitem__(self, coordinate: str) -> float:
        """Position of one coordinate."""
        return float(self.q[self._index(coordinate)])

    def velocity(self, coordinate: str) -> float:
        """Rate of one coordinate."""
        return float(self.qd[self._index(coordinate)])

    def fits(self, tree: KinematicTree) -> None:
        """Make sure that this state is one of the tree as it is now.

        Raises
        ------
        StaleHandleError
            If the tree's coordinates are others than this state's.
        """
        if self.coordinates != tree.coordinates:
            raise StaleHandleError(
                f"this state is over ({', '.join(self.coordinates)}), but the tree now has "
                f"({', '.join(tree.coordinates)}); use the state of the last grasp or release event"
            )

    def without(self, tree: KinematicTree, coordinates: Sequence[str]) -> "State":
        """The same state of a tree that lacks some of the coordinates."""
        keep = [i for i, name in enumerate(self.coordinates) if name not in coordinates]
        return State(tree, self.q[keep], self.qd[keep])

    def _index(self, coordinate: str) -> int:
        if coordinate not in self.coordinates:
            raise UnknownLinkError.of(coordinate, self.coordinates, "coordinate")
        return self.coordinates.index(coordinate)

    def __repr__(self) -> str:
        rows = (f"{c}={x:.4g} ({v:.4g}/s)" for c, x, v in zip(self.coordinates, self.q, self.qd, strict=True))
        return f"State({', '.join(rows)})"
