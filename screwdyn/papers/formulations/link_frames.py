"""The GIM and the MCI by the steps of their source, in link frames, with their operations by row.

`Spatial` follows Bhangale, Saha, Agrawal 2004, section 3.2 and appendix B, `Planar` section 3.2.1. `denoc` has the same
matrices in axes of the base, for trees.

The steps are those of `InLinkFrames`; `Rotation` and `PlanarRotation` have what they do with vectors of link i, in axes
of frame i. A wrench is [n; f], and A_{i+1,i} is [1 0; −a_i × 1 1]. In space, z of frame i is the axis of joint i; a
vector has three entries, a symmetric tensor is (11, 12, 22, 13, 23, 33), a matrix nine by rows. In the plane, f and v
have two entries, and n, ω and tensors one. The counts in docstrings are those of the paper, or ours where it has none.
"""

from __future__ import annotations

import copy
import itertools
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from screwdyn.core import Array, ScrewdynError, UnknownNameError, expressions
from screwdyn.mechanism.structure import Mechanism
from screwdyn.papers.formulations.formulation import JointVector, MatrixFormulation, Row, cross, mapped

__all__ = ["Planar", "Spatial"]

Wrench = tuple[Array, Array]
_NONE = np.zeros(0)


class Tally:
    """A number of which only the operations matter: it counts them by row; a change of sign is no operation."""

    def __init__(self) -> None:
        self._rows: dict[str, list[int]] = {}

    def begin(self, row: str) -> None:
        """Count what follows in this row."""
        self._current = self._rows.setdefault(row, [0, 0])

    def _multiplied(self, _: Any) -> Tally:
        self._current[0] += 1
        return self

    def _added(self, _: Any) -> Tally:
        self._current[1] += 1
        return self

    def __neg__(self) -> Tally:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = _added
    __mul__ = __rmul__ = _multiplied

    @property
    def rows(self) -> Mapping[str, tuple[int, int]]:
        """(Multiplications, additions) by row, and their sum as "total"."""
        found = {row: (M, A) for row, (M, A) in self._rows.items()}
        return found | {"total": (sum(M for M, _ in found.values()), sum(A for _, A in found.values()))}


class Masses(NamedTuple):
    """M_i or M̃_i: tensor and first moment about O_i, a point of link i on its joint; a_i leads from O_i to O_{i+1}.

    For M̃_i, s is δ̃_{i+1} + m̃_{i+1} a_i, the first moment about O_i of the links beyond.
    """

    I: Array
    first: Array
    a: Array
    s: Array = _NONE


class ArmLink(NamedTuple):
    """Link i at a configuration.

    ``turn`` is Q_i, ``carried`` the mass of M̃_i. The lengths a and b, r_i from the centre of mass to O_{i+1} and I_i^c,
    both in frame i + 1, are those of a revolute joint. With a prismatic joint, whose coordinate is b and which slides
    along ``slide`` in frame i of a planar arm, M_i and a_i are constant in frame i: they are ``fixed``.
    """

    turn: Rotation | PlanarRotation
    a: Any
    b: Any
    r: Array
    I: Array
    m: Any
    carried: Any
    slide: Array = _NONE
    fixed: Masses | None = None


# What the steps do in space


def _crossed(a: Array, X: Array) -> Array:
    """a × X, column by column: 18M 9A."""
    return np.column_stack([cross(a, X[k::3]) for k in range(3)]).ravel()


def _swapped(a: Array, b: Array) -> Array:
    """−b × (a × 1) = (a · b) 1 − a bᵀ: 9M 3A."""
    found = -np.outer(a, b)
    x, y, z = -np.diag(found)
    found[range(3), range(3)] = y + z, x + z, x + y
    return found.ravel()


def _congruent(uu: Any, uv: Any, vu: Any, vv: Any, c: Any, s: Any) -> tuple[Any, ...]:
    """R [[uu, uv], [vu, vv]] Rᵀ with R = [[c, −s], [s, c]]: 4M 7A."""
    b = (uu - vv) * s + (uv + vu) * c
    low, off = b * s, b * c
    return uu - low, off - vu, off - uv, vv + low


class Rotation(NamedTuple("_Rotation", [("c", Any), ("s", Any), ("ca", Any), ("sa", Any)])):
    """Cosine and sine of θ and α of Q_i = R_z(θ) R_x(α) (Eq. A.1), which turns from frame i + 1 to frame i."""

    omega = np.zeros(3)  # at rest

    def after(self, c: Any, s: Any) -> Self:
        """R_z Q_i with the cosine and sine of a further angle."""
        return self._replace(c=c * self.c - s * self.s, s=c * self.s + s * self.c)

    def end(self, a: Any, b: Any) -> Array:
        """a_i: 2M."""
        return np.array([a * self.c, a * self.s, b])

    def along(self, _: Array, b: Any) -> Array:
        """b e_{i+1} in frame i: 4M."""
        x = b * self.sa
        return np.array([x * self.s, -(x * self.c), b * self.ca])

    def vector(self, r: Array) -> Array:
        """Q r (B.1, with r_y sin α + r_z cos α for the printed difference): 8M 4A."""
        x, y, z = r
        r_c = y * self.ca - z * self.sa
        return np.array([x * self.c - r_c * self.s, x * self.s + r_c * self.c, y * self.sa + z * self.ca])

    def back(self, r: Array) -> Array:
        """Qᵀ r, from frame i to frame i + 1: 8M 4A."""
        x, y, z = r
        r_c = y * self.c - x * self.s
        return np.array([x * self.c + y * self.s, r_c * self.ca + z * self.sa, z * self.ca - r_c * self.sa])

    moment, spin = vector, back  # Q n and Qᵀ ω
    cross = swept = staticmethod(cross)  # a × f and ω × a

    def tensor(self, I: Array) -> Array:
        """Q I Qᵀ: 16M 17A.

        B.2 has these counts for Qᵀ I Q, which turns the other way; here R_x(α) comes first.
        """
        i11, i12, i22, i13, i23, i33 = I
        c, s, ca, sa = self
        b0 = i23 * ca
        b1 = (i22 - i33) * sa + (b0 + b0)
        b2 = i12 * ca - i13 * sa
        b3 = b1 * ca - i23
        b4 = i12 * sa + i13 * ca
        b5 = b1 * sa
        b6 = b2 * c
        b7 = ((i11 - i22) + b5) * s + (b6 + b6)
        b8 = b7 * s
        return np.array([i11 - b8, b7 * c - b2, i22 - b5 + b8, b4 * c - b3 * s, b4 * s + b3 * c, i33 + b5])

    def matrix(self, X: Array) -> Array:
        """Q X Qᵀ of any matrix: 24M 22A."""
        c, s, ca, sa = self
        xx, xy, xz, yx, yy, yz, zx, zy, zz = X
        yy, yz, zy, zz = _congruent(yy, yz, zy, zz, ca, sa)
        xy, xz = xy * ca - xz * sa, xy * sa + xz * ca
        yx, zx = yx * ca - zx * sa, yx * sa + zx * ca
        xx, xy, yx, yy = _congruent(xx, xy, yx, yy, c, s)
        xz, yz = xz * c - yz * s, xz * s + yz * c
        zx, zy = zx * c - zy * s, zx * s + zy * c
        return np.array([xx, xy, xz, yx, yy, yz, zx, zy, zz])

    @staticmethod
    def twice_crossed(d: Array, md: Array) -> Array:
        """−d × (m d × 1) (B.2, with −δ_y d_y in the last entry): 6M 3A."""
        x, y, z = d * md
        return np.array([z + y, -(md[0] * d[1]), z + x, -(md[0] * d[2]), -(md[1] * d[2]), y + x])

    @staticmethod
    def shift(I: Array, first: Array, a: Array, s: Array) -> Array:
        """I − δ × (a × 1) − a × (s × 1) with s = δ + m a, entry by entry: 18M 18A.

        The upper left block of A_{i+1,i}ᵀ M̃_{i+1} A_{i+1,i}: the tensor of M̃_{i+1} about O_i.
        """
        x, y, z = zip(first, a, s, strict=True)

        def off(u: Any, v: Any) -> Any:
            return u[0] * v[1] + u[1] * v[2]

        def on(u: Any, v: Any) -> Any:
            return u[0] * u[1] + v[0] * v[1] + u[1] * u[2] + v[1] * v[2]

        return I + np.array([on(y, z), -off(x, y), on(z, x), -off(x, z), -off(y, z), on(x, y)])

    def column(self, link: ArmLink, body: Masses) -> Wrench:
        """M̃_i p_i = [n; f]: nil."""
        x, y, _ = body.first
        if link.fixed:
            return np.array([y, -x, 0]), np.array([0, 0, link.carried])
        return body.I[3:], np.array([-y, x, 0])

    def element(self, link: ArmLink, wrench: Wrench) -> Any:
        """p_iᵀ [n; f]: nil."""
        return wrench[1][2] if link.fixed else wrench[0][2]

    def convective(self, omega: Array, own: Masses) -> Wrench:
        """The left columns of W_i M_i E_i, ω × I and −ω × (m d × 1): 27M 12A."""
        return _crossed(omega, own.I[[0, 1, 3, 1, 2, 4, 3, 4, 5]]), _swapped(own.first, omega)

    def blocks(self, X: Array, Y: Array) -> Wrench:
        """X_{i+1} and Y_{i+1} in frame i: 48M 44A."""
        return self.matrix(X), self.matrix(Y)

    def joined(self, here: Wrench, beyond: Wrench, body: Masses, a_dot: Array, m: Any) -> Wrench:
        """Both with X + a_i × Y − s × (ȧ_i × 1) and Y − m̃ ȧ_i × 1 of what is beyond: 30M 54A."""
        (X, Y), (X_beyond, Y_beyond) = here, beyond
        X = X + (X_beyond + (_crossed(body.a, Y_beyond) + _swapped(a_dot, body.s)))
        (x, y, z), Y = a_dot * m, Y + Y_beyond
        Y[[1, 2, 3, 5, 6, 7]] += np.array([z, -y, -z, x, y, -x])
        return X, Y

    def columns(self, link: ArmLink, body: Masses, _: Wrench, omega: Array, X: Array, Y: Array) -> tuple[Wrench, Array]:
        """(M̃_j W_j + [X_j 0; Y_j 0]) p_j, and the row p_jᵀ of [X_j; Y_j]; W_j p_j has ω × e = (ω_y, −ω_x, 0)."""
        x, y, z = body.first
        along, across = omega[1], -omega[0]
        crossed = np.array([z * across, -(z * along), y * along - x * across])  # −δ × (ω × e)
        if link.fixed:
            m = link.carried
            return (-crossed, np.array([m * along, m * across, 0])), Y[6:]
        n = body.I[[0, 1, 3]] * along + body.I[[1, 2, 4]] * across
        return (n + X[2::3], crossed + Y[2::3]), X[6:]

    def below(self, link: ArmLink, omega: Array, y: Wrench, u: Array) -> Any:
        """p_iᵀ u + y · W_i p_i: 2M 2A, or 2M 1A for a prismatic joint."""
        n, f = y
        if link.fixed:
            return f[0] * omega[1] - f[1] * omega[0]
        return u[2] + (n[0] * omega[1] - n[1] * omega[0])


# What the steps do in the plane


def dot(a: Array, b: Array) -> Any:
    """a · b in the plane: 2M 1A."""
    return a[0] * b[0] + a[1] * b[1]


class PlanarRotation(NamedTuple("_PlanarRotation", [("c", Any), ("s", Any)])):
    """Cosine and sine of the angle of Q_i, which turns from frame i + 1, whose x is along a_i, to frame i."""

    omega = np.zeros(1)  # at rest

    def after(self, c: Any, s: Any) -> Self:
        """As in space."""
        return type(self)(*self.vector(np.array([c, s])))

    def end(self, a: Any, _: Any) -> Array:
        """a_i: 2M."""
        return np.array([a * self.c, a * self.s])

    def along(self, slide: Array, b: Any) -> Array:
        """b e_{i+1} in frame i: 6M 2A."""
        return self.vector(slide * b)

    def vector(self, r: Array) -> Array:
        """Q r: 4M 2A."""
        return np.array([r[0] * self.c - r[1] * self.s, r[0] * self.s + r[1] * self.c])

    def back(self, r: Array) -> Array:
        """Qᵀ r: 4M 2A."""
        return np.array([r[0] * self.c + r[1] * self.s, r[1] * self.c - r[0] * self.s])

    def tensor(self, I: Array) -> Array:
        """What is about e is the same in all frames."""
        return I

    moment = spin = tensor

    def cross(self, a: Array, f: Array) -> Array:
        """The moment e · (a × f): 2M 1A."""
        return np.array([a[0] * f[1] - a[1] * f[0]])

    def swept(self, omega: Array, a: Array) -> Array:
        """The velocity ω e × a: 2M."""
        return np.array([-(omega[0] * a[1]), omega[0] * a[0]])

    def twice_crossed(self, d: Array, md: Array) -> Array:
        """m d², which the paper leaves out: 2M 1A."""
        return np.array([dot(d, md)])

    def shift(self, I: Array, first: Array, a: Array, s: Array) -> Array:
        """I + a · δ + a · s with s = δ + m a, the moment of inertia of M̃_{i+1} about O_i: 4M 4A."""
        return I + dot(a, first) + dot(a, s)

    def column(self, link: ArmLink, body: Masses) -> Wrench:
        """M̃_i p_i = [n; f]: nil, or 4M 1A for a prismatic joint."""
        if link.fixed:
            return self.cross(body.first, link.slide), link.slide * link.carried
        return body.I, np.array([-body.first[1], body.first[0]])

    def element(self, link: ArmLink, wrench: Wrench) -> Any:
        """p_iᵀ [n; f]: nil, or 2M 1A for a prismatic joint."""
        return dot(link.slide, wrench[1]) if link.fixed else wrench[0][0]

    def convective(self, omega: Array, own: Masses) -> Wrench:
        """The left columns of W_i M_i E_i, 0 and −ω m d: 2M."""
        return np.zeros(1), -(own.first * omega[0])

    def blocks(self, X: Array, Y: Array) -> Wrench:
        """X_{i+1} and Y_{i+1} in frame i: 4M 2A."""
        return X, self.vector(Y)

    def joined(self, here: Wrench, beyond: Wrench, body: Masses, a_dot: Array, m: Any) -> Wrench:
        """Both with X + a_i × Y + s · ȧ_i, where X_i has nothing else, and Y + m̃ e × ȧ_i of what is beyond: 6M 8A."""
        X, (x, y) = beyond
        X = X + self.cross(body.a, beyond[1]) + dot(body.s, a_dot)
        return X, here[1] + np.array([x - m * a_dot[1], y + m * a_dot[0]])

    def columns(self, link: ArmLink, body: Masses, m: Wrench, omega: Array, X: Array, Y: Array) -> tuple[Wrench, Array]:
        """As in space, with W_j p_j = 0 of a revolute joint."""
        if not link.fixed:
            return (X, Y), X
        (w,), (x, y) = omega, m[1]
        n, f = np.array([w * dot(body.first, link.slide)]), np.array([-(w * y), w * x])
        return (n, f), np.array([dot(Y, link.slide)])

    def below(self, link: ArmLink, omega: Array, y: Wrench, u: Array) -> Any:
        """As in space: nil, or 3M 1A for a prismatic joint."""
        return omega[0] * self.cross(link.slide, y[1])[0] if link.fixed else u[0]


class InLinkFrames(MatrixFormulation):
    """The GIM and the MCI of a serial arm by steps in link frames, and the operations of each step."""

    kinds = ("revolute", "prismatic")
    frames: ClassVar[str]
    """What the frames must be, for the error."""
    _row_of_s: ClassVar[str]  # the row of the first moment s, which is a part of step 5(b)
    scope = "Bhangale, section 2, has an open-loop serial robot with one displacement θ_i for each joint"

    def __init__(self, tree: Mechanism) -> None:
        super().__init__(tree)
        name = type(self).__name__
        if wrong := [i for i, row in enumerate(self.rows) if row.parent != i - 1]:
            raise ScrewdynError(f"{name} is for serial arms; {self._links_of(wrong[:1])} begins a branch: {self.scope}")
        if wrong := [i for i, row in enumerate(self.rows) if not self._covers(row)]:
            raise ScrewdynError(f"{name} needs {self.frames}; those of {self._links_of(wrong)} are others")
        masses = [*itertools.accumulate(row.m for row in reversed(self.rows))][::-1]
        self._home = [*self._at_zero(masses)]

    def _links_of(self, rows: Sequence[int]) -> str:
        """Names of the links that these rows move."""
        return ", ".join(repr(next(link for link, (at, _) in self.places.items() if at >= i)) for i in rows)

    def operations(self, matrix: str) -> Mapping[str, tuple[int, int]]:
        """(Multiplications, additions) of the GIM or the MCI by row, and in "total", as the steps are written.

        Every operation of a step counts, also with 0 and 1 and on constants. The values of sines, cosines and composite
        masses, and what is constant because its joint is prismatic, are given. A change of sign is no operation.

        Parameters
        ----------
        matrix : "GIM" or "MCI"

        Raises
        ------
        UnknownNameError
            For another matrix.
        """
        UnknownNameError.check(matrix, ("GIM", "MCI"), "matrix")
        tally, counting, n = Tally(), copy.copy(self), len(self.rows)
        links = mapped(lambda x: x if x is None else np.full_like(x, tally, dtype=object)[()], self._links([0.0] * n))
        vars(counting).update(_begin=tally.begin)
        if matrix == "GIM":
            counting._gim(links)
        else:
            counting._mci(links, [tally] * n)
        return tally.rows

    def GIM(self, theta: JointVector) -> Array:
        """i_ij, (n, n) (Eq. 10)."""
        return self._gim(self._links(theta.tolist())).astype(np.result_type(self._dtype, theta))

    def MCI(self, theta: JointVector, thetad: JointVector) -> Array:
        """c_ij, (n, n) (Eqs. 10 and 12)."""
        found = self._mci(self._links(theta.tolist()), thetad.tolist())
        return found.astype(np.result_type(self._dtype, theta, thetad))

    def _gravity_vector(self, q: Array) -> Array:
        """−p_iᵀ [δ̃_i × g; m̃_i g]: gravity is part of w^E (Eq. 8)."""
        links = self._links(q.tolist())
        found, g = [], self.gravity
        for link, body in zip(links, self._composites(links, self._own_masses(links)), strict=True):
            g = g[: len(body.first)]
            found.append(-link.turn.element(link, (link.turn.cross(body.first, g), g * link.carried)))
            g = link.turn.back(g)
        return np.array(found, dtype=np.result_type(q, self._dtype))

    @abstractmethod
    def _covers(self, row: Row) -> bool:
        """Whether the frames of a row are those of the source."""

    @abstractmethod
    def _at_zero(self, masses: Sequence[Any]) -> Iterator[ArmLink]:
        """The links at q = 0, from the masses of the M̃_i; ``fixed`` is not set."""

    def _links(self, q: Sequence[Any]) -> list[ArmLink]:
        """The links at a configuration."""
        found = []
        for row, link, x in zip(self.rows, self._home, q, strict=True):
            if row.sigma:
                found.append(link._replace(turn=link.turn.after(*expressions.cos_sin(x))))
            else:
                found.append(link._replace(fixed=self._own_mass(link), b=x))
        return found

    def _begin(self, row: str) -> None:
        """Begin a row of the table of operations."""

    # The steps of the GIM: sections 3.2 and 3.2.1

    def _own_mass(self, link: ArmLink) -> Masses:
        """M_i and a_i of a link by steps 1 to 5(a)."""
        turn = link.turn
        self._begin("1")
        a = turn.end(link.a, link.b)
        self._begin("2")
        r = turn.vector(link.r)
        self._begin("3")
        d = a - r
        self._begin("4")
        first = d * link.m
        self._begin("5(a)")
        return Masses(turn.tensor(link.I) + turn.twice_crossed(d, first), first, a)

    def _own_masses(self, links: Sequence[ArmLink]) -> list[Masses]:
        """M_i of all links, with a_i to a point that slides with link i + 1."""
        found = [link.fixed or self._own_mass(link) for link in links]
        for k, (link, after) in enumerate(itertools.pairwise(links)):
            if after.fixed:
                self._begin("1")
                found[k] = found[k]._replace(a=found[k].a + link.turn.along(after.slide, after.b))
        return found

    def _composites(self, links: Sequence[ArmLink], own: Sequence[Masses]) -> list[Masses]:
        """M̃_i of all links: step 5(b). The row "5(b)" has the 18M 18A of the paper."""
        found = [*own]
        for k in reversed(range(len(links) - 1)):
            turn, (I, first, a, _), beyond = links[k].turn, own[k], found[k + 1]
            self._begin("5(b) rotation")
            I_beyond, first_beyond = turn.tensor(beyond.I), turn.vector(beyond.first)
            self._begin(self._row_of_s)
            s = first_beyond + a * links[k + 1].carried
            self._begin("5(b)")
            I_beyond = turn.shift(I_beyond, first_beyond, a, s)
            self._begin("5(b) sum")
            found[k] = Masses(I + I_beyond, first + s, a, s)
        return found

    def _moved(self, link: ArmLink, a: Array, wrench: Wrench) -> Wrench:
        """A_{i+1,i}ᵀ [n; f] in frame i: 22M 14A in space, 6M 4A in the plane."""
        n, f = link.turn.moment(wrench[0]), link.turn.vector(wrench[1])
        return n + link.turn.cross(a, f), f

    def _gim(self, links: Sequence[ArmLink]) -> Array:
        """i_ij: steps 1 to 6 (the last is printed as 7 for the plane)."""
        found = np.full((len(links), len(links)), 0.0, dtype=object)
        at = self._composites(links, self._own_masses(links))
        self._begin("6")
        for i, (link, body) in enumerate(zip(links, at, strict=True)):
            wrench = link.turn.column(link, body)
            found[i, i] = link.carried if link.fixed else body.I[-1]
            for j in reversed(range(i)):
                wrench = self._moved(links[j], at[j].a, wrench)
                found[i, j] = found[j, i] = links[j].turn.element(links[j], wrench)
        return found

    # The MCI: Eqs. 10 and 12. The paper has no steps for it.

    def _velocities(self, links: Sequence[ArmLink], at: Sequence[Masses], rates: Sequence[Any]) -> list[Wrench]:
        """ω_i and ȧ_i = v_{i+1} − v_i in frame i; ȧ_n is not needed."""
        found: list[Wrench] = []
        for k, link in enumerate(links):
            self._begin("ω")
            omega = links[k - 1].turn.spin(found[-1][0]) if k else link.turn.omega
            if not link.fixed:
                omega = np.array([*omega[:-1], omega[-1] + rates[k]])
            a_dot = _NONE
            if k + 1 < len(links):
                self._begin("ȧ")
                a_dot = link.turn.swept(omega, at[k].a)
                if links[k + 1].fixed:
                    a_dot = a_dot + link.turn.along(links[k + 1].slide, rates[k + 1])
            found.append((omega, a_dot))
        return found

    def _mci(self, links: Sequence[ArmLink], rates: Sequence[Any]) -> Array:
        """c_ij (Eq. 10).

        A_{j+1,j}ᵀ H̃_{j+1,j} + M̃'_j is [X_j 0; Y_j 0] with X_i = ω_i × I_i + X + a_i × Y − s × (ȧ_i × 1) and
        Y_i = −ω_i × (m_i d_i × 1) + Y − m̃ ȧ_i × 1, where X, Y and m̃ are those of link i + 1. For i ≤ j,
        (M̃_j W_j + [X_j 0; Y_j 0]) p_j goes to O_i as M̃_i p_i does for the GIM. For i > j the row p_iᵀ of the blocks
        goes to O_j: with y = A_ijᵀ M̃_i p_i, and u that of X_i or Y_i and of Ȧ_ijᵀ M̃_i p_i, it is p_jᵀ u + y · W_j p_j.
        """
        found = np.full((len(links), len(links)), 0.0, dtype=object)
        own = self._own_masses(links)
        at = self._composites(links, own)
        motion = self._velocities(links, at, rates)
        self._begin("W M E")
        blocks = [link.turn.convective(omega, x) for link, x, (omega, _) in zip(links, own, motion, strict=True)]
        for k in reversed(range(len(links) - 1)):
            self._begin("X, Y rotation")
            beyond = links[k].turn.blocks(*blocks[k + 1])
            self._begin("X, Y")
            blocks[k] = links[k].turn.joined(blocks[k], beyond, at[k], motion[k][1], links[k + 1].carried)
        for j, (link, body) in enumerate(zip(links, at, strict=True)):
            self._begin("columns")
            y = link.turn.column(link, body)
            wrench, u = link.turn.columns(link, body, y, motion[j][0], *blocks[j])
            found[j, j] = link.turn.element(link, wrench)
            for i in reversed(range(j)):
                turn, a, (omega, a_dot) = links[i].turn, at[i].a, motion[i]
                self._begin("c_ij, i < j")
                wrench = self._moved(links[i], a, wrench)
                found[i, j] = turn.element(links[i], wrench)
                self._begin("c_ij, i > j")
                y = self._moved(links[i], a, y)
                u = turn.moment(u) + turn.cross(a_dot, y[1])
                found[j, i] = turn.below(links[i], omega, y, u)
        return found

    _mass_matrix, _coriolis_matrix = GIM, MCI


class Spatial(InLinkFrames):
    """The algorithm of Bhangale section 3.2 and appendix B, with their misprints corrected.

    ``GIM`` is `mass_matrix`, ``MCI`` is `coriolis_matrix`, entry by entry those of `denoc`.

    Parameters
    ----------
    tree : KinematicTree
        A serial arm with revolute and prismatic joints, and link frames of Denavit and Hartenberg, as
        :meth:`screwdyn.KinematicTree.from_dh` makes them. What is welded to a link is part of it.

    Raises
    ------
    ScrewdynError
        If the tree has branches, other joints or other frames; the message names them.
    """

    frames = "frames of Denavit and Hartenberg, as KinematicTree.from_dh makes them"
    _row_of_s = "5(b) first moment"

    def _covers(self, row: Row) -> bool:
        R, p = row.home[:3, :3], row.home[:3, 3]
        turned = R[0, 0] * p[1] - R[1, 0] * p[0]
        return _is_none(*row.z[:2], row.z[2] - 1, *row.p, R[2, 0], turned)

    def _at_zero(self, masses: Sequence[Any]) -> Iterator[ArmLink]:
        """From home = R_z(θ) D_z(b) D_x(a) R_x(α)."""
        for row, carried in zip(self.rows, masses, strict=True):
            (c, *_), (s, *_), (_, sa, ca) = row.home[:3, :3].tolist()
            (x, y, b), I = row.home[:3, 3].tolist(), row.I
            tensor = I[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
            yield ArmLink(Rotation(c, s, ca, sa), x * c + y * s, b, -row.com, tensor, row.m, carried)


class Planar(InLinkFrames):
    """The algorithm of Bhangale section 3.2.1, with its misprints corrected; parameters and errors as for `Spatial`.

    ``GIM`` is `mass_matrix`, ``MCI`` is `coriolis_matrix`, which for a planar arm is the Christoffel matrix. The links
    of the tree move in the plane x-y of their frames: joints are revolute about z or slide in the plane.
    """

    frames = "joints about z or along the plane x-y, and frames that turn about z only"
    _row_of_s = "5(b)"

    def _covers(self, row: Row) -> bool:
        upright = _is_none(*row.home[2, :2], row.home[2, 2] - 1)
        return upright and (_is_none(*row.z[:2], row.z[2] - 1) if row.sigma else _is_none(row.z[2]))

    def _at_zero(self, masses: Sequence[Any]) -> Iterator[ArmLink]:
        """With x of frame i + 1 along a_i, at an angle to the tree's frame of link i."""
        starts = [row.p[:2] if row.sigma else row.home[:2, 3] for row in self.rows]
        ends = [*starts[1:], np.zeros(2)]
        before = PlanarRotation(1.0, 0.0)
        for row, start, end, carried in zip(self.rows, starts, ends, masses, strict=True):
            a, along = _polar(end - row.home[:2, :2].T @ (start - row.home[:2, 3]))
            turn = along.after(*before.back(row.home[:2, 0]))
            r, slide = along.back(end - row.com[:2]), before.back(row.z[:2])
            yield ArmLink(turn, a, 0.0, r, row.I[2:, 2], row.m, carried, slide)
            before = along


def _polar(r: Array) -> tuple[Any, PlanarRotation]:
    """A number a and a direction with r = a (cos φ, sin φ); the direction is x if r is along x, or 0."""
    x, y = r.tolist()
    if _is_none(y):
        return x, PlanarRotation(1.0, 0.0)
    a = (x * x + y * y) ** 0.5
    return a, PlanarRotation(x / a, y / a)


def _is_none(*entries: Any) -> bool:
    """Whether all entries are zero but for rounding."""
    return all(expressions.is_zero(x) if expressions.is_expression(x) else abs(x) < 1e-12 for x in entries)
