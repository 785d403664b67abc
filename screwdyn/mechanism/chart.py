"""Coordinates of joints whose motions form a group: spherical, free and planar (docs/mathematics.md §7)."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import JointError
from screwdyn.core.types import Array
from screwdyn.screws import screw
from screwdyn.screws.poses import cross, pose_of
from screwdyn.screws.rotations import quaternion_of, quaternion_product, quaternion_rate, rotation_of

__all__ = ["Chart"]

_KINDS = {(4, 0): "spherical", (4, 3): "free", (1, 2): "planar"}


@dataclass(frozen=True, eq=False)
class Chart:
    """Coordinates q = [orientation, position] of a group joint, with T = home · g(q) (docs/mathematics.md §7).

    g(q) rotates about axes through ``center`` and moves ``center`` along axes that do not rotate with the link. The
    quasi-velocities ν = [angular, linear] are the components of the relative twist along the joint's screws, in the
    link's own frame.

    Parameters
    ----------
    orientation : 4 or 1
        Number of coordinates of the orientation: 4 for a quaternion [x, y, z, w] of any length, 1 for an angle about
        the third axis, in radians.
    translations : int
        Number of coordinates of the position, in metres along the first axes.
    axes : (3, 3) array
        The joint's own axes as columns, in the link's frame.
    center : (3,) array
        Point of the link's frame through which all axes of rotation pass, in metres.

    Raises
    ------
    JointError
        Unless (orientation, translations) is (4, 0) (spherical), (4, 3) (free) or (1, 2) (planar).
    """

    orientation: int
    translations: int
    axes: Array
    center: Array

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
    def nq(self) -> int:
        """Number of positions."""
        return self.orientation + self.translations

    @property
    def nv(self) -> int:
        """Number of freedoms."""
        return self.nq - (self.orientation == 4)

    @property
    def neutral(self) -> tuple[float, ...]:
        """The positions of the identity."""
        turn = (0.0, 0.0, 0.0, 1.0) if self.orientation == 4 else (0.0,)
        return turn + (0.0,) * self.translations

    @property
    def screws(self) -> Array:
        """Screws, (6, k): [a; −a×center] for every axis a of rotation, then [0; a] for every axis of translation."""
        turning = self.axes.T if self.orientation == 4 else self.axes.T[2:]
        columns = [np.concatenate([a, cross(self.center, a)]) for a in turning]
        columns += [np.concatenate([np.zeros(3), a]) for a in self.axes.T[: self.translations]]
        return expressions.array(np.transpose(columns))

    @property
    def structure_constants(self) -> tuple[tuple[int, int, int, float], ...]:
        """All (m, k, l, c) with l > k and c ≠ 0 of [S_l, S_k] = Σ_m c S_m, the same for any axes and center."""
        return _structure_constants(self.orientation, self.translations)

    @property
    def freedom_labels(self) -> tuple[str, ...]:
        """Labels of the quasi-velocities: angular, then linear."""
        turns = ("wx", "wy", "wz") if self.orientation == 4 else ("w",)
        return turns + ("vx", "vy", "vz")[: self.translations]

    @property
    def position_labels(self) -> tuple[str, ...]:
        """Labels of the positions: orientation, then translation."""
        turns = ("x", "y", "z", "w") if self.orientation == 4 else ("angle",)
        return turns + ("px", "py", "pz")[: self.translations]

    @property
    def free_symbols(self) -> set[Any]:
        """SymPy symbols that the axes and the center depend on."""
        return expressions.free_symbols([self.axes, self.center])

    def subs(self, values: Mapping[Any, Any]) -> "Chart":
        """The chart with values substituted for symbols."""
        axes, center = (expressions.substituted(a, values) for a in (self.axes, self.center))
        return Chart(self.orientation, self.translations, axes, center)

    # The functions below do not depend on axes and center, except `pose`.

    def pose(self, q: Array) -> Array:
        """g(q), (…, 4, 4), for q (…, nq)."""
        axes = expressions.floats(self.axes, "the axes of a joint")
        center = expressions.floats(self.center, "the center of a joint")
        R = axes @ self._rotation(q) @ axes.T
        return pose_of(R, center - R @ center + q[..., self.orientation :] @ axes[:, : self.translations].T)

    def integrate(self, q: Array, nu: Array) -> Array:
        """The positions of g(q) exp(S ν), (…, nq), with a quaternion of length 1."""
        o, t = self.orientation, self.translations
        if o == 4:
            turn = quaternion_product(q[..., :4], quaternion_of(nu[..., :3]))
            turn /= np.sqrt(np.sum(turn * turn, axis=-1, keepdims=True))
        else:
            turn = q[..., :1] + nu[..., :1]
        travel = self._rotation(q) @ screw.exp(self._twist(nu))[..., :3, 3, None]
        return np.concatenate([turn, q[..., o:] + travel[..., :t, 0]], axis=-1)

    def difference(self, q0: Array, q1: Array) -> Array:
        """The ν, (…, k), of the smallest rotation with g(q0) exp(S ν) = g(q1)."""
        o, t = self.orientation, self.translations
        R0 = self._rotation(q0)
        travel = np.zeros(R0.shape[:-1])
        travel[..., :t] = q1[..., o:] - q0[..., o:]
        R0 = R0.swapaxes(-1, -2)
        V = screw.log(pose_of(R0 @ self._rotation(q1), (R0 @ travel[..., None])[..., 0]))
        return V[..., : 3 + t] if o == 4 else V[..., 2 : 3 + t]

    def rate(self, q: Array, nu: Array) -> Array:
        """dq/dt, (…, nq): ½ q ∘ ω for a quaternion, R(q) v for a position."""
        o, t = self.orientation, self.translations
        turn = quaternion_rate(q[..., :4], nu[..., :3]) if o == 4 else nu[..., :1]
        travel = self._rotation(q) @ self._twist(nu)[..., 3:, None]
        return np.concatenate([turn, travel[..., :t, 0]], axis=-1)

    def _rotation(self, q: Array) -> Array:
        """Orientation in the joint's own axes, (…, 3, 3)."""
        if self.orientation == 4:
            return rotation_of(q[..., :4])
        R = np.zeros((*q.shape[:-1], 3, 3))
        R[..., 0, 0] = R[..., 1, 1] = np.cos(q[..., 0])
        R[..., 1, 0] = np.sin(q[..., 0])
        R[..., 0, 1], R[..., 2, 2] = -R[..., 1, 0], 1.0
        return R

    def _twist(self, nu: Array) -> Array:
        """S ν as a twist about the center in the joint's own axes, (…, 6)."""
        first = 0 if self.orientation == 4 else 2
        V = np.zeros((*nu.shape[:-1], 6))
        V[..., first : 3 + self.translations] = nu
        return V


@functools.cache
def _structure_constants(orientation: int, translations: int) -> tuple[tuple[int, int, int, float], ...]:
    own = Chart(orientation, translations, np.eye(3), np.zeros(3)).screws.T
    brackets = np.einsum("lij,kj->lki", screw.ad(own), own) @ own.T
    return tuple((m, k, l, float(brackets[l, k, m])) for l, k, m in np.argwhere(brackets).tolist() if l > k)
