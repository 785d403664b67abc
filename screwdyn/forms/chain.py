"""The path to one link as a model of its own, in which that link alone has inertia, and how the link moves."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from screwdyn.backends.sympy.closed_form import Derivation
from screwdyn.backends.tape.tape import Scalar
from screwdyn.backends.tape.trace import Scalars, inputs
from screwdyn.core import expressions
from screwdyn.core.errors import UnknownLinkError
from screwdyn.forms.numbers import Frame
from screwdyn.physics import recursions as sweeps
from screwdyn.physics.link_steps import bracket, composed, twist_inward, wrench_inward
from screwdyn.physics.model import Model
from screwdyn.physics.table import MASS, PARENT, WORK
from screwdyn.physics.vectors import Matrix, Vector, add, rotate

__all__ = ["Path", "motion", "path_to"]

_NOTHING = (0.0, 0.0, 0.0)


class Path(NamedTuple):
    """All that a link's contribution depends on.

    Attributes
    ----------
    coordinates : tuple of str
    rows : tuple of rows
        See ``physics.rows``.
    gravity, R, p, com
        Gravity in the base; pose of the link and its centre of mass in the frame of the last row (or of the base).
    """

    coordinates: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    gravity: Vector
    R: Matrix
    p: Vector
    com: Vector

    def table(self, derivation: Derivation) -> Scalars:
        """The rows as scalars."""
        return derivation.table(self.rows, self.gravity)

    def pose_in_base(self, derivation: Derivation) -> tuple[Any, Any]:
        """Pose of the link's frame in the base."""
        R, p = derivation.scalars(self.R), derivation.scalars(self.p)
        if not self.rows:
            return R, p
        T = motion(derivation, self.table(derivation), self.coordinates)[0][-1].tolist()
        return composed(tuple(T[:9]), tuple(T[9:]), R, p)

    def jacobians(self, derivation: Derivation, frame: Frame) -> tuple[Scalars, Scalars]:
        """Twist Jacobian of the link, (6, k), and its entry-by-entry rate; frames as for ``Dynamics.jacobian``."""
        k = len(self.coordinates)
        J, J_dot, work = (np.full((k, m), 0.0, dtype=object) for m in (6, 6, WORK))
        q, qd = (inputs(derivation.tape, group, self.coordinates) for group in ("q", "qd"))
        sweeps.jacobian(self.table(derivation), q, qd, k - 1, 0, work, J, J_dot)
        R, p = derivation.scalars(self.R), derivation.scalars(self.com if frame == "com" else self.p)
        seen = [[(*w, *v) for w, v in (twist_inward(R, p, a, b) for a, b in _twists(A.T))] for A in (J, J_dot)]
        J, J_dot = map(_columns, seen)
        return (J, J_dot) if frame in ("com", "body") or not k else self._turned(derivation, J, J_dot, qd, frame)

    def _turned(
        self, derivation: Derivation, J: Scalars, J_dot: Scalars, qd: Scalars, frame: Frame
    ) -> tuple[Scalars, Scalars]:
        """From the link's frame to the base's or, mixed, to its axes: d/dt Ad(T) = Ad(T) ad(V), of what moves of T."""
        R, p = self.pose_in_base(derivation)
        ((w, v),) = _twists((J @ qd).reshape(6, 1))
        if frame == "mixed":
            p, v = _NOTHING, _NOTHING
        moved: list[tuple[Scalar, ...]] = []
        rates: list[tuple[Scalar, ...]] = []
        for (a, b), (da, db) in zip(_twists(J), _twists(J_dot), strict=True):
            x, y = bracket(w, v, a, b)
            for out, turn, slide in ((moved, a, b), (rates, add(da, x), add(db, y))):
                # Twists move outward as wrenches move inward, with their two parts exchanged.
                slide, turn = wrench_inward(R, p, slide, turn)
                out.append((*turn, *slide))
        return _columns(moved), _columns(rates)


def path_to(model: Model, link: str) -> Path:
    """The path to a link.

    Raises
    ------
    UnknownLinkError
        If the tree has no such link.
    """
    at = model.placements.get(link)
    if at is None:
        raise UnknownLinkError.of(link, model.placements)
    path: list[int] = []
    row = model.index[at.coordinate]
    while row >= 0:
        path.insert(0, row)
        row = int(model.rows[row][PARENT])
    rows = [(*model.rows[row][:MASS], *[0] * (PARENT - MASS), i - 1) for i, row in enumerate(path)]
    if rows:
        rows[-1] = (*rows[-1][:MASS], *at.body, rows[-1][PARENT])
    com: Any = at.p
    if at.link.inertia is not None:
        R, p, c = expressions.alike(at.R, at.p, tuple(at.link.inertia.com.tolist()))
        com = tuple(map(expressions.tidied, add(p, rotate(R, c))))
    names = tuple(model.coordinates[row] for row in path)
    return Path(names, tuple(rows), tuple(model.gravity.tolist()), at.R, at.p, com)


def motion(derivation: Derivation, table: Scalars, coordinates: Sequence[str]) -> tuple[Scalars, Scalars]:
    """Pose of every row in the base (R, p: 12 numbers) and its twist in its own frame."""
    pose, twist, work = (np.full((len(coordinates), k), 0.0, dtype=object) for k in (12, 6, WORK))
    q, qd = (inputs(derivation.tape, group, coordinates) for group in ("q", "qd"))
    sweeps.motion(table, q, qd, 0, work, pose, twist)
    return pose, twist


def _twists(J: Scalars) -> list[tuple[Vector, Vector]]:
    """The columns of a (6, k) array."""
    return [((a, b, c), (x, y, z)) for a, b, c, x, y, z in J.T.tolist()]


def _columns(twists: Sequence[tuple[Scalar, ...]]) -> Scalars:
    return np.array(twists, dtype=object).reshape(-1, 6).T
