"""The progressive evaluation of a tree at one state: every term from its parent's, kept (docs/mathematics.md §2).

This is the method of Laus et al. as it stands: a link needs what its parent has and nothing else, and ‡ adds what it
contributes. The totals of the tree come from the recursions, which are faster and independent of this.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from screwdyn.backends.kernels.steps import link_step
from screwdyn.core import expressions
from screwdyn.core.errors import ShapeError, UnboundSymbolError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.mechanism.attachment import Attachment
from screwdyn.mechanism.couplings import leaders
from screwdyn.mechanism.joint import Joint
from screwdyn.mechanism.joint_pose import checked_positions
from screwdyn.mechanism.structure import Body, Handle, Structure
from screwdyn.physics.contribution import Contribution
from screwdyn.physics.frames import BODY
from screwdyn.physics.padded import Padded, padded_sum
from screwdyn.physics.placement import Placement, place
from screwdyn.physics.table import COLUMNS
from screwdyn.screws import screw

__all__ = ["Point"]


class _Terms(NamedTuple):
    """What a link has at one state.

    The row that carries it has a pose in the base and a twist, ``frame`` (1, 18), and ``columns`` (k, 12) of J and J̇ in
    its own frame; see ``recursions.contributions``.
    """

    placement: Placement
    frame: Array
    columns: Array
    contribution: Contribution


class _Link:
    """A link at one state, which all points that have it share.

    Attributes
    ----------
    at : Attachment
    above : _Link or None
        Its parent.
    q, qd : arrays
        Positions and rates of its joint, also if this follows another one.
    follows : (str, float) or None
        The freedom that its joint follows, or that others follow, and the ratio.
    terms : _Terms or None
        None until they are asked for.
    """

    __slots__ = ("above", "at", "follows", "q", "qd", "terms")

    def __init__(self, at: Attachment, above: _Link | None, q: Array, qd: Array) -> None:
        self.at, self.above, self.q, self.qd = at, above, q, qd
        self.follows: tuple[str, float] | None = None
        self.terms: _Terms | None = None


class Point:
    """A tree at one state, which computes each link's terms from its parent's and keeps them; immutable.

    Made by :meth:`screwdyn.KinematicTree.at`. With X = Ad(T)⁻¹ for the pose T of a link in its parent p, S the screws
    of its joint and ν its rates (Laus et al., Eqs. 22-36; docs/mathematics.md §2):

    - J = [X J_p, S] and J̇ = [X J̇_p − ad(S ν) X J_p, 0], both moved to the centre of mass;
    - M_i = Jᵀ M̄ J (Eq. 21), C_i = Jᵀ (M̄ J̇ + B J) (Eq. 35), g_i = −m J_vᵀ Rᵀ g₀ (Eq. 36).

    A column of a joint that follows another one is added to that of its leader, times the ratio. Closed loops change
    no term of any link.

    Attributes
    ----------
    q, qd : (nq,) and (nv,) arrays
        Positions and rates, in the order of ``positions`` and ``coordinates``, in SI units and radians.
    """

    def __init__(self, tree: Structure, links: dict[str, _Link]) -> None:
        self._tree, self._links = tree, links
        # By name: a sum over the first links, and their number.
        self._sums: dict[str, tuple[Padded, int]] = {}

    @classmethod
    def of(cls, tree: Structure, q: Array, qd: Array) -> Point:
        """The point of a copy of a tree without symbols, at positions (nq,) and rates (nv,) that have been checked."""
        tree = tree.copy()
        links: dict[str, _Link] = {}
        _add(tree, links, [*tree.topology.attachments.values()], q, qd)
        return cls(tree, links)

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the nv freedoms."""
        return self._tree.coordinates

    @property
    def positions(self) -> tuple[str, ...]:
        """Names of the nq entries of q."""
        return self._tree.positions

    @property
    def links(self) -> tuple[str, ...]:
        """Names of all links, the base first, in order of attachment."""
        return self._tree.links

    @property
    def tree(self) -> Structure:
        """The tree of this point, as a copy."""
        return self._tree.copy()

    @property
    def q(self) -> Array:
        """Positions of all joints, (nq,), rad and m."""
        return np.concatenate([np.zeros(0), *(x.q for x in self._links.values() if x.at.joint.mimic is None)])

    @property
    def qd(self) -> Array:
        """Rates of all freedoms, (nv,), rad/s and m/s."""
        return np.concatenate([np.zeros(0), *(x.qd for x in self._links.values() if x.at.joint.mimic is None)])

    def pose(self, link: Handle | str) -> Array:
        """Pose of a link in the base frame, (4, 4), m."""
        terms = self._terms(link)
        row, (R, p) = terms.frame[0], terms.placement.pose
        return screw.pose(row[:9].reshape(3, 3), row[9:12]) @ screw.pose(np.reshape(R, (3, 3)), p)

    def twist(self, link: Handle | str) -> Array:
        """Twist [ω; v] of a link in its own frame, (6,), rad/s and m/s."""
        terms = self._terms(link)
        R, p = terms.placement.pose
        return screw.Ad(screw.inverse(screw.pose(np.reshape(R, (3, 3)), p))) @ terms.frame[0, 12:]

    def contribution(self, link: Handle | str) -> Contribution:
        """J_i, J̇_i, M_i, C_i and g_i of a link: one step after its parent's; the same object in every call.

        Raises
        ------
        UnknownNameError, StaleHandleError
            If there is no such link, or the handle is stale.
        """
        return self._terms(link).contribution

    def contributions(self) -> list[Contribution]:
        """The contributions of all links but the base, in order of attachment."""
        return [self.contribution(link) for link in self.links[1:]]

    @property
    def M(self) -> Padded:
        """Mass matrix: the padded sum ‡ of all M_i (Laus, section 2.4), in SI units and radians."""
        return self._sum("M")

    @property
    def C(self) -> Padded:
        """Coriolis matrix: the padded sum ‡ of all C_i, in SI units and radians."""
        return self._sum("C")

    @property
    def g(self) -> Padded:
        """Gravity vector: the padded sum ‡ of all g_i, N m and N."""
        return self._sum("g")

    def attach(
        self,
        body: Body,
        to: str,
        joint: Joint | None = None,
        at: ArrayLike | None = None,
        name: str | None = None,
        *,
        prefix: str = "",
        q: ArrayLike | None = None,
        qd: ArrayLike | None = None,
    ) -> Point:
        """The point of the tree with a further link, whose contribution is all that is new.

        All contributions that this point has computed are the same objects. Neither this point nor the tree that it was
        made from changes. Rates are given, not found: for a payload that is caught in motion take them from
        ``tree.grasp``.

        Parameters
        ----------
        body, to, joint, at, name, prefix
            As for :meth:`screwdyn.KinematicTree.attach`.
        q, qd : arrays, optional
            Positions and rates of all new freedoms, in order; by default neutral, and zero. SI units and radians.

        Returns
        -------
        Point

        Raises
        ------
        ShapeError
            If q or qd have another length, or are not finite.
        UnboundSymbolError
            By terms of the new links, if these contain symbols.
        UnknownNameError, TopologyError
            As for :meth:`screwdyn.KinematicTree.attach`.
        """
        tree, links = self._tree.copy(), self._links.copy()
        tree.attach(body, to, joint, at, name, prefix=prefix)
        attachments = tree.topology.attachments
        _add(tree, links, [attachments[name] for name in tree.links[len(links) :]], q, qd)
        point = Point(tree, links)
        point._sums = self._sums.copy()
        return point

    def detach(self, what: Handle | str) -> Point:
        """The point of the tree without a link and all links beyond it; what it has computed is kept.

        Raises
        ------
        UnknownNameError, StaleHandleError, TopologyError
            As for :meth:`screwdyn.KinematicTree.detach`.
        """
        tree = self._tree.copy()
        tree.detach(what)
        kept = tree.topology.attachments
        return Point(tree, {name: link for name, link in self._links.items() if name in kept})

    def __reduce__(self) -> tuple[object, ...]:
        # A copy computes its terms again: a chain of links that hold their parents may be too deep for pickle.
        return Point.of, (self._tree, self.q, self.qd)

    def __repr__(self) -> str:
        return f"<Point of {len(self.links)} links at {', '.join(self.coordinates) or 'no coordinates'}>"

    # Inside

    def _sum(self, term: str) -> Padded:
        """The sum of a term over all links, from that over the first ones if it is known."""
        links = self.links
        terms, known = [], 1
        if term in self._sums:
            total, known = self._sums[term]
            terms = [total]
        if not terms or known < len(links):
            terms += [getattr(self.contribution(link), term) for link in links[known:]]
            nothing = Padded((), np.zeros((0, 0) if term != "g" else 0), 1 if term == "g" else 2)
            total = padded_sum(terms or [nothing])
            total.array.setflags(write=False)
            self._sums[term] = total, len(links)
        return self._sums[term][0]

    def _terms(self, link: Handle | str) -> _Terms:
        """The terms of a link, after those of the links before it on its path that have not been computed."""
        at: _Link | None = self._links[self._tree.resolve(link)]
        missing = []
        while at is not None and at.terms is None:
            missing.append(at)
            at = at.above
        terms = None if at is None else at.terms
        for at in reversed(missing):
            terms = at.terms = _step(at, terms, self._tree.gravity)
        assert terms is not None
        return terms


def _add(
    tree: Structure, links: dict[str, _Link], new: Sequence[Attachment], q: ArrayLike | None, qd: ArrayLike | None
) -> None:
    """Add new links with the positions and rates of their joints, neutral and at rest by default.

    Raises
    ------
    ShapeError
        If these have another length, or are not finite.
    """
    positions = _given("q", q, [x for at in new for x in at.joint.neutral])
    rates = _given("qd", qd, [0.0] * sum([at.joint.nv for at in new]))
    i = j = 0
    for at in new:
        joint = at.joint
        own, i, j = (positions[i : i + joint.nq], rates[j : j + joint.nv]), i + joint.nq, j + joint.nv
        links[at.link.name] = link = _Link(at, links.get(at.parent or ""), *own)
        if joint.chart is not None and q is not None:
            link.q = checked_positions(at.name, joint, link.q)
    if any([at.joint.mimic is not None for at in new]):
        topology = tree.topology
        found = leaders({at.name: at.joint for at in topology.attached})
        for at in new:
            if at.name in found:
                leader, *numbers = found[at.name]
                ratio, offset = expressions.floats(numbers, "the coupling of joints")
                link, lead = links[at.link.name], links[topology.carried[leader]]
                link.q, link.qd, link.follows = ratio * lead.q + offset, ratio * lead.qd, (leader, ratio)
                lead.follows = leader, 1.0  # one column, also beyond a follower


def _given(what: str, value: ArrayLike | None, default: list[float]) -> Array:
    """Positions or rates of new links, or those by default."""
    if value is None:
        return np.array(default, dtype=float)
    try:
        x = np.atleast_1d(np.array(expressions.real(value)))
    except (TypeError, ValueError):
        x = None
    if x is None or x.shape != (len(default),) or not np.isfinite(x).all():
        raise ShapeError(f"{what} of the new links must be {len(default)} finite numbers; got {value!r}")
    return x


# The row of the base, which no joint carries.
_FRAME, _COLUMNS = np.array([[1.0, 0, 0, 0, 1, 0, 0, 0, 1, *[0.0] * 9]]), np.zeros((0, 12))
_REST = [0.0] * (COLUMNS - 3)


@functools.lru_cache(maxsize=1024)
def _new_columns(first: int, number: int) -> Array:
    """Columns of J for the rows of a joint that follows no other one, with ratios."""
    return np.array([(first + i, 1.0) for i in range(number)]).reshape(number, 2)


def _step(link: _Link, above: _Terms | None, gravity: Array) -> _Terms:
    """The terms of a link from its parent's."""
    at, joint = link.at, link.at.joint
    frame, columns = _FRAME, _COLUMNS
    coordinates: tuple[str, ...] = ()
    if above is not None:
        frame, columns, coordinates = above.frame, above.columns, above.contribution.coordinates
    if link.follows is None:
        onto = _new_columns(len(coordinates), joint.nv)
        coordinates += at.coordinates
    else:
        leader, ratio = link.follows
        coordinates += () if leader in coordinates else (leader,)
        onto = np.array([[coordinates.index(leader), ratio]])
    placement = place(at, above and above.placement)
    rows = placement.rows(0, -1)
    given = [*itertools.chain(*rows, gravity.tolist(), _REST, placement.place(0, BODY))]
    try:
        numbers = np.array(given, dtype=float)
    except TypeError:
        raise UnboundSymbolError.of(expressions.free_symbols(given), f"link {at.link.name!r}") from None
    group = None if joint.chart is None else (joint.chart.orientation, joint.chart.translations)
    state = link.q, link.qd, onto, frame, columns
    found = link_step(numbers, len(rows), group, len(coordinates), state)
    if found is None:
        raise ShapeError(f"positions or rates on the path to link {at.link.name!r} are so large that terms overflow")
    frame, columns, *own = found
    for array in own:  # which many points share
        array.setflags(write=False)
    return _Terms(placement, frame, columns, Contribution(at.link.name, coordinates, *own))
