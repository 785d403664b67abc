"""Positions of a joint: the charts of joints whose motions form a group, and poses (docs/mathematics.md §7)."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from screwdyn.core import Array, JointError, ShapeError, expressions
from screwdyn.screws import screw
from screwdyn.screws.screw import LENGTH_TOLERANCE, cross, motion_of, pose_of, rotation_of

_ABOUT_Z = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])


class _Orientation(NamedTuple):
    """What describes an orientation: neutral coordinates, labels of coordinates and of rates, and axes of the rates."""

    neutral: tuple[float, ...]
    positions: tuple[str, ...]
    freedoms: tuple[str, ...]
    axes: tuple[int, ...]


# By the number of coordinates.
_ORIENTATIONS = {
    4: _Orientation((0.0, 0.0, 0.0, 1.0), ("x", "y", "z", "w"), ("wx", "wy", "wz"), (0, 1, 2)),
    1: _Orientation((0.0,), ("angle",), ("w",), (2,)),
}
_KINDS = {(4, 0): "spherical", (4, 3): "free", (1, 2): "planar"}


@dataclass(frozen=True, eq=False)
class Chart(expressions.Parametric):
    """Coordinates q = [orientation, position] of a group joint, with T = home · g(q) (docs/mathematics.md §7).

    g(q) rotates about axes through ``center`` and moves ``center`` along axes that do not rotate with the link. The
    quasi-velocities ν = [angular, linear] are the components of the relative twist along the joint's screws, in the
    link's own frame. JointError for other numbers of coordinates than those of spherical, free and planar joints.
    """

    orientation: int  # number of coordinates: 4 for a quaternion, scalar last, 1 for an angle about the third axis, rad
    translations: int  # number of coordinates of the position, m along the first axes
    axes: Array  # (3, 3), the joint's own axes as columns, in the link's frame
    center: Array  # (3,), m, in the link's frame

    def __post_init__(self) -> None:
        if (self.orientation, self.translations) not in _KINDS:
            raise JointError(
                f"orientation and translations of a chart must be one of {', '.join(map(str, _KINDS))}; "
                f"got ({self.orientation}, {self.translations})"
            )
        for what in ("axes", "center"):
            copied = expressions.array(getattr(self, what))
            copied.setflags(write=False)
            object.__setattr__(self, what, copied)

    @property
    def kind(self) -> str:
        """``"spherical"``, ``"free"`` or ``"planar"``."""
        return _KINDS[self.orientation, self.translations]

    @property
    def turning(self) -> _Orientation:
        """What follows from the number of coordinates of the orientation."""
        return _ORIENTATIONS[self.orientation]

    @property
    def nq(self) -> int:
        """Number of positions."""
        return self.orientation + self.translations

    @property
    def nv(self) -> int:
        """Number of freedoms."""
        return len(self.turning.axes) + self.translations

    @property
    def neutral(self) -> tuple[float, ...]:
        """The positions of the identity."""
        return self.turning.neutral + (0.0,) * self.translations

    @property
    def screws(self) -> Array:
        """Screws, (6, k): [a; −a×center] for every axis a of rotation, then [0; a] for every axis of translation."""
        columns = [np.concatenate([a, cross(self.center, a)]) for a in self.axes.T[list(self.turning.axes)]]
        columns += [np.concatenate([np.zeros(3), a]) for a in self.axes.T[: self.translations]]
        return expressions.array(np.transpose(columns))

    @property
    def labels(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Labels of the quasi-velocities, angular then linear, and of the positions."""
        t, turning = self.translations, self.turning
        return (*turning.freedoms, *("vx", "vy", "vz")[:t]), (*turning.positions, *("px", "py", "pz")[:t])

    def pose(self, q: Array) -> Array:
        """g(q), (…, 4, 4), for q (…, nq)."""
        axes = expressions.floats(self.axes, "the axes of a joint")
        center = expressions.floats(self.center, "the center of a joint")
        R = axes @ self._rotation(q) @ axes.T
        return pose_of(R, center - R @ center + q[..., self.orientation :] @ axes[:, : self.translations].T)

    def inverse(self, q: Array) -> Array:
        """The positions of g(q)⁻¹, (nq,), for q (nq,)."""
        travel = np.zeros(3)
        travel[: self.translations] = q[self.orientation :]
        # The conjugate of a quaternion, or the opposite angle.
        turn = q[: self.orientation] * (2 * np.array(self.turning.neutral) - 1)
        return np.concatenate([turn, -(self._rotation(q).T @ travel)[: self.translations]])

    def difference(self, q0: Array, q1: Array) -> Array:
        """The ν, (…, k), of the smallest rotation with g(q0) exp(S ν) = g(q1), whatever the axes and the center."""
        o, t = self.orientation, self.translations
        R0 = self._rotation(q0)
        travel = np.zeros(R0.shape[:-1])
        travel[..., :t] = q1[..., o:] - q0[..., o:]
        R0 = R0.swapaxes(-1, -2)
        V = screw.log_of(pose_of(R0 @ self._rotation(q1), (R0 @ travel[..., None])[..., 0]))
        return V[..., self.turning.axes[0] : 3 + t]

    def _rotation(self, q: Array) -> Array:
        """Orientation in the joint's own axes, (…, 3, 3)."""
        if self.orientation == 4:
            return rotation_of(q[..., :4])
        return motion_of(_ABOUT_Z, q[..., 0])[..., :3, :3]


@functools.cache
def structure_constants(orientation: int, translations: int) -> tuple[tuple[int, int, int, float], ...]:
    """All (m, k, l, c) with l > k and c ≠ 0 of [S_l, S_k] = Σ_m c S_m, the same for any axes and center of a chart."""
    own = Chart(orientation, translations, np.eye(3), np.zeros(3)).screws.T
    brackets = np.einsum("lij,kj->lki", screw.ad(own), own) @ own.T
    return tuple((m, k, l, float(brackets[l, k, m])) for l, k, m in np.argwhere(brackets).tolist() if l > k)


def check_lengths(what: str, names: Sequence[str], quaternions: Array) -> None:
    """Raise ShapeError, with the name of the joint, if one of the quaternions (…, k, 4) has not length 1, to 1e-3."""
    squares = np.einsum("...i,...i->...", quaternions, quaternions)
    if (np.abs(squares - 1) < LENGTH_TOLERANCE).all():
        return
    with np.errstate(over="ignore"):  # an infinite length is wrong, too
        length = np.linalg.norm(quaternions, axis=-1)
    wrong = np.argwhere(np.abs(length - 1) > LENGTH_TOLERANCE)
    if wrong.size:
        where = tuple(wrong[0])
        raise ShapeError(
            f"{what} holds a quaternion of length {length[where]:.6g} for joint {names[where[-1]]!r}; divide it by its "
            f"length ([x, y, z, w], scalar last; neutral is [0, 0, 0, 1])"
        )
