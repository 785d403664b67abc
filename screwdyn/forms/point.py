"""The progressive evaluation of a tree at one state: every term from its parent's, kept (docs/mathematics.md §2).

This is the method of Laus et al. as it stands: a link needs what its parent has and nothing else, and ‡ adds what it
contributes. The totals of the tree come from the recursions, which are faster and independent of this. An explanation
shows what one link contributes, as a text and as a figure.
"""

from __future__ import annotations

import base64
import functools
import html
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from screwdyn.backends.kernels.entry import link_step
from screwdyn.core import Array, ArrayLike, ScrewdynError, ShapeError, UnboundSymbolError, aligned, expressions
from screwdyn.mechanism import Attachment, Body, Handle, Joint, Mechanism, Topology, checked_positions
from screwdyn.physics.contribution import Contribution, Padded, padded_sum
from screwdyn.physics.placement import Placement, place
from screwdyn.physics.recursions.links import BODY
from screwdyn.physics.table import COLUMNS, TURN
from screwdyn.screws import screw

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from screwdyn.physics.model import Robot


class _Terms(NamedTuple):
    """What a link has at one state.

    The row that carries it has a pose in the base and a twist, ``frame`` (1, 18), and ``columns`` (k, 12) of J and J̇ in
    its own frame; see ``recursions.links``.
    """

    placement: Placement
    frame: Array
    columns: Array
    contribution: Contribution


@dataclass(slots=True, eq=False)
class _Link:
    """A link at one state, which all points that have it share.

    Its parent is ``above``, and ``follows`` the freedom that its joint follows, or that others follow, with the ratio;
    ``terms`` are None until they are asked for.
    """

    at: Attachment
    above: _Link | None
    q: Array
    qd: Array
    follows: tuple[str, float] | None = None
    terms: _Terms | None = None


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

    def __init__(self, tree: Mechanism, links: dict[str, _Link]) -> None:
        self._tree, self._links = tree, links
        # By name: a sum over the first links, and their number.
        self._sums: dict[str, tuple[Padded, int]] = {}

    @classmethod
    def of(cls, tree: Mechanism, q: Array, qd: Array) -> Point:
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
    def tree(self) -> Mechanism:
        """The tree of this point, as a copy."""
        return self._tree.copy()

    @property
    def q(self) -> Array:
        """Positions of all joints, (nq,), rad and m."""
        return np.concatenate([np.zeros(0), *(x.q for x in self._links.values() if x.at.joint.nv)])

    @property
    def qd(self) -> Array:
        """Rates of all freedoms, (nv,), rad/s and m/s."""
        return np.concatenate([np.zeros(0), *(x.qd for x in self._links.values() if x.at.joint.nv)])

    def pose(self, link: Handle | str) -> Array:
        """Pose of a link in the base frame, (4, 4), m."""
        terms = self._terms(link)
        row, (R, p) = terms.frame[0], terms.placement.pose
        return screw.pose(row[:9].reshape(3, 3), row[9:12]) @ screw.pose(np.reshape(R, (3, 3)), p)

    def twist(self, link: Handle | str) -> Array:
        """Twist [ω; v] of a link in its own frame, (6,), rad/s and m/s."""
        terms = self._terms(link)
        R, p = terms.placement.pose
        return screw.Ad_of(screw.inverse_of(screw.pose(np.reshape(R, (3, 3)), p))) @ terms.frame[0, 12:]

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
        nothing = Padded((), np.zeros((0,) if term == "g" else (0, 0)), 1 if term == "g" else 2)
        total, known = self._sums.get(term, (nothing, 1))
        if term not in self._sums or known < len(self.links):
            total = padded_sum([total, *(getattr(self.contribution(link), term) for link in self.links[known:])])
            total.array.setflags(write=False)
            self._sums[term] = total, len(self.links)
        return total

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
    tree: Mechanism, links: dict[str, _Link], new: Sequence[Attachment], q: ArrayLike | None, qd: ArrayLike | None
) -> None:
    """Add new links with the positions and rates of their joints, neutral and at rest by default; checked."""
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
        for at in new:
            if at.name in topology.leaders:
                leader, *numbers = topology.leaders[at.name]
                ratio, offset = expressions.floats(numbers, "the coupling of joints")
                link, lead = links[at.link.name], links[topology.carried[leader]]
                link.q, link.qd, link.follows = ratio * lead.q + offset, ratio * lead.qd, (leader, ratio)
                lead.follows = leader, 1.0  # one column, also beyond a follower


def _given(what: str, value: ArrayLike | None, default: list[float]) -> Array:
    """Positions or rates of new links, or those by default."""
    if value is None:
        return np.array(default, dtype=float)
    x = np.array(expressions.read_or_nan(value), ndmin=1)
    if x.shape != (len(default),) or not np.isfinite(x).all():
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


# Entries below this fraction of the scale of their matrix are rounding.
_ZERO = 1e-12


class Explanation:
    """What one link contributes; made by :meth:`KinematicTree.explain`. Later changes of the tree do not affect it.

    ``print(explanation)`` shows a table, and a notebook the table and the figure of :meth:`plot`.

    Attributes
    ----------
    link : str
    coordinates : tuple of str
        Of the whole tree.
    part : Contribution
        M_i, C_i and g_i of the link.
    M, C, g : Padded
        The padded sums ‡ of the contributions of all links.
    q, qd : (nq,) and (nv,) arrays
    """

    def __init__(self, tree: Robot, link: str, q: ArrayLike | None, qd: ArrayLike | None) -> None:
        self.link, self.coordinates = link, tuple(tree.coordinates)
        state = tree.neutral() if q is None else q, np.zeros(tree.nv) if qd is None else qd
        self.part: Contribution = tree.contribution(link, *state)  # raises the errors for what is no array of numbers
        self.q, self.qd = (np.array(x, dtype=float) for x in state)
        if self.q.ndim != 1 or self.qd.ndim != 1:
            raise ShapeError(f"explain takes one state; got q of shape {self.q.shape} and qd of {self.qd.shape}")
        parts = tree.contributions(self.q, self.qd) or [self.part]
        self.M, self.C, self.g = (padded_sum(getattr(part, x) for part in parts) for x in ("M", "C", "g"))
        self._given = [("q", q is not None, "neutral"), ("qd", qd is not None, "zero")]
        table, index = tree.model.table, tree.model.index
        self._turns = {name: bool(table[index[name], TURN]) for name in self.coordinates}
        self._title = _described(tree.topology, link)
        # Scales of M, C and g: those of C and g follow from inertias, rates and the weight.
        inertia = float(np.abs(np.asarray(self.M)).max(initial=0.0))
        weight = tree.mass * float(np.linalg.norm(tree.gravity))
        length = np.sqrt(inertia / tree.mass) if tree.mass else 0.0
        self._scales = (inertia, inertia * float(np.abs(self.qd).max(initial=0.0)), weight * max(length, 1e-3))

    def __str__(self) -> str:
        names = self.part.coordinates
        given = "; ".join(f"{what} {'given' if has else f'not given: {default}'}" for what, has, default in self._given)
        lines = [f"{self._title}.", f"State: {given}.", ""]
        if not names:
            return "\n".join([*lines, "No joint moves it: it contributes to no coordinate."])
        rates = Padded(self.coordinates, self.qd, 1)
        inertia, speed = self._scales[0], float(np.abs(self.qd).max(initial=0.0))
        columns = [
            ("M_jj", *(np.diag(x.matrix(self.coordinates)) for x in (self.part.M, self.M)), inertia),
            ("(C q̇)_j", *((x @ rates).matrix(self.coordinates) for x in (self.part.C, self.C)), inertia * speed**2),
            ("g_j", *(x.matrix(self.coordinates) for x in (self.part.g, self.g)), self._scales[2]),
        ]
        rows = [["coordinate", *(f"{what}{of}" for what, *_ in columns for of in ("", " of ‡")), "units"]]
        for name in names:
            k = self.coordinates.index(name)
            cells = [_number(x[k], scale) for _, own, total, scale in columns for x in (own, total)]
            rows.append([name, *cells, "kg m², N m" if self._turns[name] else "kg, N"])
        reach = f"It contributes to {len(names)} of {len(self.coordinates)} coordinates, those on its path."
        if others := [name for name in self.coordinates if name not in names]:
            shown = others if len(others) <= 8 else [*others[:7], f"and {len(others) - 7} more"]
            reach += f" Its rows and columns of {', '.join(shown)} are zero."
        table = aligned(rows, right=range(1, len(rows[0]) - 1))
        lines += [reach, "Each quantity of the link beside the padded sum ‡ over all links:", "", *table]
        if speed:
            own, total = (float(0.5 * ((x @ rates) @ rates)) for x in (self.part.M, self.M))
            lines += ["", f"Kinetic energy: {own:.4g} J of {total:.4g} J."]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Table and figure, for notebooks; the table alone without Matplotlib."""
        table = f"<pre>{html.escape(str(self))}</pre>"
        try:
            figure: Any = self.plot()
        except ScrewdynError:
            return table
        image, size = figure._repr_png_()
        data = base64.b64encode(image).decode()
        return f'{table}<img alt="M, C and g" width="{size["width"]}" src="data:image/png;base64,{data}">'

    def plot(self, ax: Sequence[Any] | None = None) -> Figure:
        """Draw M_i, C_i and g_i as heat maps over all coordinates of the tree.

        The cells of coordinates that are not on the path of the link are blank; zeros on the path are grey.

        Parameters
        ----------
        ax : three matplotlib.axes.Axes, optional
            By default those of a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            ``tree.explain("crate").plot().savefig("crate.png")`` writes it.

        Raises
        ------
        ScrewdynError
            If no joint of the tree moves, there are not three axes, or the extra ``plot`` is not installed.
        """
        if not self.coordinates:
            raise ScrewdynError(f"there is nothing to draw of {self.link!r}: no joint of the tree moves")
        from screwdyn.views.figures import HeatMap, plot_heat_maps

        turns = {self._turns[name] for name in self.part.coordinates}
        units = ("kg m²", "kg m²/s", "N m") if turns == {True} else ("kg", "kg/s", "N")
        if len(turns) > 1:
            units = ("SI units", "SI units", "N m, N")
        maps = []
        on_path = np.array([name in self.part.coordinates for name in self.coordinates])
        for what, unit, scale in zip("MCg", units, self._scales, strict=True):
            x = getattr(self.part, what)
            values = x.matrix(self.coordinates)
            values[np.abs(values) <= _ZERO * scale] = 0.0
            cells = np.logical_and.outer(on_path, on_path) if x.order == 2 else on_path
            maps.append(HeatMap(f"${what}_i$ ({unit})", values, cells))
        return plot_heat_maps(self._title, self.coordinates, maps, ax)


def _described(topology: Topology, link: str) -> str:
    """A link, its mass, and how it is attached."""
    at = topology.attachments[link]
    mass = "no mass" if at.link.inertia is None else f"{at.link.inertia.mass:.4g} kg"
    if at.parent is None:
        return f"{link}: {mass}, the base"
    joint = at.joint if at.locked is None else at.locked.joint
    kind = f"{'locked ' * (at.locked is not None)}{'passive ' * joint.passive}{joint.kind}"
    named = f" {at.name}" if at.name != link and joint.screws.size else ""
    return f"{link}: {mass}, on {at.parent} by the {kind} joint{named}"


def _number(x: float, scale: float) -> str:
    return "0" if abs(x) <= _ZERO * scale else f"{x:.4g}"
