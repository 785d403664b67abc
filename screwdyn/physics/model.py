"""A frozen snapshot of a tree, with the table of numbers that the recursions read; and the base class of trees."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self, TypeVar, cast

import numpy as np

from screwdyn.core import Array, ArrayLike, Flags, Indices, cached_property, errors, expressions
from screwdyn.mechanism import Attachment, Joint, Mechanism, Topology
from screwdyn.mechanism.structure import of_structure
from screwdyn.physics import table as layout
from screwdyn.physics.charts import ORIENTATION, POSITION, Charts, ConfigurationSpace, charts_of
from screwdyn.physics.couplings import COLUMN, RATIO
from screwdyn.physics.joint_forces import JointForces
from screwdyn.physics.placement import NOTHING, Placement, place
from screwdyn.physics.quantities import Places, Quantities, Quantity, computed
from screwdyn.physics.recursions.links import BODY
from screwdyn.physics.reductions import unresisted
from screwdyn.screws import screw

T = TypeVar("T")

# Arguments with an entry for each position; all others have one for each freedom.
POSITIONS = ("q", "q0", "q1")
_FLOAT64 = np.dtype(np.float64)
# The table of a tree without joints, whose base has no inertia.
_BARE = np.zeros((1, layout.COLUMNS))
_BARE[0, layout.FIRST] = -1.0


class Model:
    """The numbers of one revision of a tree, and their names; immutable.

    What is as in a ``former`` model, of an earlier revision, is copied; the result has the same bits without it.
    """

    entries: Array  # of the table, (n + 1, 27): floats, or objects if there are expressions
    placements: dict[str, Placement]  # of the links
    index: dict[str | None, int]  # rows by their names: those of the freedoms, or of joints that follow others
    charts: Charts | None  # how positions enter the rows, unless they are the coordinates of the rows
    nq: int  # number of positions
    nv: int  # number of freedoms

    def __init__(self, topology: Topology, former: Self | None = None) -> None:
        self.topology, self.coupled = topology, topology.coupled
        self.nodes = tuple(topology.attachments.values())
        self._derived: dict[Callable[[Model], Any], Any] = {}
        if former is None or former.entries.dtype.hasobject:
            self._make(former, 0)
        else:
            self._make(former, [*map(operator.is_, self.nodes, former.nodes), False].index(False))
        self.nv = topology.nv if self.coupled else len(self.index) - 1

    gravity: Array = of_structure("gravity", "topology")
    revision: int = of_structure("revision", "topology")
    coordinates: tuple[str, ...] = of_structure("coordinates", "topology")
    positions: tuple[str, ...] = of_structure("positions", "topology")

    def _make(self, former: Self | None, common: int) -> None:
        """Make all rows but those of the first ``common`` links, which a former model without expressions has alike."""
        self.placements, self.index, self.nq, self.charts = {}, {None: -1}, 0, None
        kept = former if common else None
        lighter: set[str | None] = set()  # freedoms that carry other bodies than before
        gone = []  # the last one first
        if kept is not None:
            self.placements, self.index, self.nq = kept.placements.copy(), kept.index.copy(), kept.nq
            for _ in kept.nodes[common:]:
                at = self.placements.popitem()[1]
                gone.append(at)
                if at.freedoms:
                    self.nq -= at.nq
                    for _ in at.names:
                        self.index.popitem()
                elif at.body is not NOTHING:
                    lighter.add(at.coordinate)
            lighter &= self.index.keys()
        n, position = len(self.index) - 1, self.nq
        again = [at for at in self.placements.values() if at.coordinate in lighter] if lighter else []
        new = [self._place(node, former) for node in self.nodes[common:]]
        # The last rows are as before but for their numbers, and those of their parents.
        alike = [*map(operator.is_, reversed(new), gone), False].index(False) if gone else 0
        rows: list[Any] = []
        parents: list[int] = []
        for k, at in enumerate(new, alike - len(new)):
            if at.freedoms:
                row, above = len(self.index) - 1, self.index[at.parent]
                if k < 0:
                    rows += at.rows(row, above)
                else:
                    parents += above, *range(row, row + len(at.names) - 1)
                for name in at.names:
                    self.index[name] = len(self.index) - 1
                self.nq += at.nq
        end = n + len(rows)
        welded = [at for at in (*again, *new) if not at.freedoms and at.body is not NOTHING]
        kind: Any = np.float64
        if expressions.possible():
            given = self.gravity, rows, *[at.body for at in welded]
            kind = object if any([np.array(numbers).dtype.hasobject for numbers in given]) else np.float64
        if kept is not None and kind is object:
            return self._make(former, 0)
        before = _BARE if kept is None else kept.entries
        entries = np.concatenate([before[:n], *([rows] if rows else ()), before[-1 - len(parents) :]], dtype=kind)
        if parents:
            entries[end:-1, layout.PARENT] = parents
            entries[end:-1, layout.FIRST] += len(entries) - len(before)
        if kept is None or self.gravity is not kept.gravity:
            entries[-1, :3] = self.gravity
        for coordinate in lighter:
            entries[self.index[coordinate], layout.MASS : layout.PARENT] = 0.0
        for at in again:
            if at.freedoms:
                entries[self.index[at.coordinate], layout.MASS : layout.PARENT] = at.body
        for at in welded:
            if self.index[at.coordinate] < end:
                body = entries[self.index[at.coordinate], layout.MASS : layout.PARENT]
                body += at.body  # in place: the row need not be written again
        entries.setflags(write=False)
        self.entries = entries
        if kept is None or kept.coupled or self.coupled:
            self.charts = charts_of(None, 0, 0, tuple(self.placements.values()), self.coupled)
        elif rows or kept.charts is not None:
            self.charts = charts_of(kept.charts, n, position, new, coupled=False)
        if not self.coupled and kind is np.float64:
            self.__dict__["table"] = entries  # without the lock of a cached property
        return None

    def _place(self, node: Attachment, former: Self | None) -> Placement:
        """Placement of a link, from the former model if that has it; also stored in the placements."""
        name, above = node.link.name, node.parent or ""
        parent = self.placements.get(above)
        at = None
        if former is not None and former.topology.attachments.get(name) is node:
            carrier = former.placements.get(above)
            # A link whose joint or carrier has been replaced in place moves the links beyond it to other frames.
            if carrier is parent or (carrier and parent and carrier[:2] == parent[:2]):
                at = former.placements[name]
        if at is None:
            at = place(node, parent)
        self.placements[name] = at
        return at

    @cached_property
    def table(self) -> Array:
        """All rows, and the row of the base, in floats (``physics.table``); UnboundSymbolError if there are symbols."""
        if self.charts is not None:
            expressions.floats(self.charts.couplings, "the coupling of joints")
        if not self.entries.dtype.hasobject:
            return self.entries
        table = expressions.floats(self.entries, "the robot")
        table.setflags(write=False)
        return table

    @cached_property
    def ready(self) -> Array | None:
        """The table if it contains numbers only; None if there are expressions."""
        try:
            return self.table
        except errors.UnboundSymbolError:
            return None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of revision {self.revision}: {self.nv} coordinates>"

    def __reduce__(self) -> tuple[object, ...]:
        # A copy computes its numbers again: compiled functions cannot be pickled.
        return Model, (self.topology,)

    @property
    def symbols(self) -> list[Any]:
        """The symbols in the numbers, sorted by name."""
        placed = [x for link in self.placements for x in self.place(link, BODY)]
        coupled = [] if self.charts is None else [self.charts.couplings]
        return sorted(expressions.free_symbols([*self.entries.flat, *placed, *coupled]), key=str)

    @cached_property
    def joints(self) -> tuple[Joint, ...]:
        """The joint of every row."""
        return tuple([at.joint for at in self.topology.attached for _ in at.joint.screws.T])

    @cached_property
    def configurations(self) -> ConfigurationSpace:
        """The positions and rates of all joints."""
        return ConfigurationSpace({at.name: at.joint for at in self.topology.attached})

    @cached_property
    def movers(self) -> tuple[Joint, ...]:
        """The joint of every freedom."""
        return tuple([joint for joint in self.joints if joint.nv])

    @cached_property
    def passive(self) -> tuple[bool, ...]:
        """Whether each freedom belongs to a passive joint."""
        return tuple([joint.passive for joint in self.movers])

    @cached_property
    def efforts(self) -> Array:
        """The largest torque of each freedom, (nv,), N m or N; infinite without a bound."""
        return np.array([np.inf if joint.effort is None else joint.effort for joint in self.movers])

    @cached_property
    def loaded(self) -> Flags:
        """Rows that may carry a payload, (n,): with welded bodies, a passive joint, or a point mass at an end."""
        loaded = np.array([joint.passive for joint in self.joints], dtype=bool)
        carriers = {self.index[at.parent] for at in self.placements.values() if at.freedoms}
        for at in self.placements.values():
            row, inertia = self.index[at.coordinate], at.link.inertia
            if row >= 0 and inertia is not None:
                loaded[row] |= not at.freedoms or (row not in carriers and not inertia.tensor.any())
        return loaded

    @cached_property
    def columns(self) -> Indices:
        """The freedom that each row follows, (n,): its own one unless its joint follows another joint."""
        charts = self.charts
        return charts.couplings[:, COLUMN].astype(np.intp) if charts and charts.coupled else np.arange(self.nv)

    @cached_property
    def ratios(self) -> Array:
        """The rate of each row relative to that of the freedom that it follows, (n,): the entries of W."""
        charts = self.charts
        return expressions.floats(charts.couplings[:, RATIO]) if charts and charts.coupled else np.ones(self.nv)

    def of_rows(self, qd: Array) -> Array:
        """W q̇, (n,): the rates of the rows."""
        return np.asarray(self.ratios * qd[self.columns])

    def wound(self, q: Array) -> Array:
        """A copy of q, (…, nq), with the angles that no joint follows within ±π; poses are the same to rounding."""
        turns = np.flatnonzero((self.table[:-1, layout.TURN] != 0) & (self.table[:-1, layout.SLIDE] == 0))
        if self.charts is not None:
            groups = self.charts.groups
            turns = np.append(self.charts.where[turns], groups[groups[:, ORIENTATION] == 1, POSITION])
            turns = turns[(turns >= 0) & (not self.coupled)]
        q = q.copy()
        q[..., turns] = np.arctan2(np.sin(q[..., turns]), np.cos(q[..., turns]))
        return q

    @property
    def lean(self) -> bool:
        """Whether M may be singular in every configuration: if a link that a joint moves is lean."""
        return any([at.link.lean for at in self.placements.values() if at.freedoms])

    @cached_property
    def unresisted(self) -> tuple[str, ...]:
        """The coordinates of a motion that no inertia resists in any configuration; none of most trees."""
        return unresisted(self) if self.lean else ()

    @cached_property
    def weight_bound(self) -> float:
        """√m |g|, N/√kg, with the mass m of all bodies that move.

        No weight exceeds it along a motion z with zᵀ M z = 1, by the inequality of Cauchy and Schwarz.
        """
        return float(np.sqrt(self.table[:-1, layout.MASS].sum()) * np.linalg.norm(self.table[-1, :3]))

    @cached_property
    def joint_forces(self) -> JointForces:
        """Damping, friction and springs of the joints."""
        return JointForces.of(self.joints, self.charts)

    def over_all(self, forces: Array) -> Array:
        """Forces of all freedoms, (…, nv), from those of the active ones or a number for each; others are unchanged."""
        if forces.shape[-1:] == (self.nv,):
            return forces
        active = np.flatnonzero(~np.array(self.passive, dtype=bool))
        if forces.ndim and forces.shape[-1] != len(active):
            return forces
        everywhere = np.zeros((*forces.shape[:-1], self.nv))
        everywhere[..., active] = forces
        return everywhere

    def torques(self, tau: ArrayLike) -> Array:
        """Forces of all freedoms, (…, nv), from those of all or of the active ones; JointError for passive ones."""
        forces, passive = self.numbers("tau", tau), np.array(self.passive, dtype=bool)
        (flat,), batch = self.flat(tau=self.over_all(forces) if forces.ndim else forces)
        forces = flat.reshape(*batch, self.nv)
        if (wrong := np.argwhere((forces != 0) & passive)).size:
            where = tuple(wrong[0])
            raise errors.JointError(
                f"joint {self.coordinates[where[-1]]!r} is passive, but the force on it is {forces[where]:g}; give 0"
            )
        return forces

    def chart_rotation(self, qd: Array) -> Array:
        """ad(ν), (…, nv, nv), with [S ν, S x] = S ad(ν) x in group joints; zero for others (docs/mathematics.md §7)."""
        result = np.zeros((*qd.shape, self.nv))
        if self.charts is None:
            return result
        for *rows, c in self.charts.terms:
            i, j, n = self.columns[np.array(rows, dtype=np.intp)]
            result[..., i, j] += c * qd[..., n]
            result[..., i, n] -= c * qd[..., j]
        return result

    def computed(self, quantity: str) -> str | None:
        """See :func:`~screwdyn.physics.quantities.computed`."""
        return computed(quantity, bool(self.topology.loops))

    def undetermined(self, status: int, link: str | None, felt: str = "") -> Exception | None:
        """The error for the status of a recursion, with numbers that a joint ``felt``; None for invalid input."""
        if status > 0:
            name = self.coordinates[status - 1]
            return errors.SingularAttachmentError(
                f"nothing beyond joint {name!r} resists its motion{felt}, so its acceleration is undetermined; "
                f"give a link that it carries an inertia, or make the joint fixed"
            )
        if status == layout.MASSLESS:
            return errors.InertiaError(
                "no link of the tree has a mass, so there is no centre of mass; give one an inertia"
            )
        if status == layout.CONFINED:
            return errors.SingularAttachmentError(
                f"link {link!r} cannot move in all six directions in this configuration, so J M⁻¹ Jᵀ has no inverse; "
                f"its operational-space inertia is undefined"
            )
        if status <= layout.NO_NORMAL:
            contact = self.topology.touching[layout.NO_NORMAL - status]
            return errors.ContactError(
                f"at contact {contact.name!r}, a point of {contact.link!r} is in the middle of {contact.on!r} of "
                f"{contact.to!r}, where there is no normal; start from a state in which they are apart"
            )
        return None

    def derived(self, kind: Callable[[Model], T]) -> T:
        """The object of a kind that is made of this model, such as its derivatives; made once."""
        return cast(T, self._derived.get(kind) or self._derived.setdefault(kind, kind(self)))

    def path(self, link: str) -> tuple[str, ...]:
        """Names of the coordinates that move a link, in order: of the joints on its path, or which these follow."""
        rows = layout.path_of(self.entries, self.index[self.placements[link].coordinate])
        columns = {*self.columns[rows].tolist()} if self.coupled else rows
        return tuple([self.coordinates[column] for column in sorted(columns)])

    def links(self, which: Places | None, link: str = "") -> Iterable[str]:
        """The links whose places a recursion takes; see :attr:`~screwdyn.physics.quantities.Quantity.places`."""
        if which is None or which in ("loops", "contacts"):
            return ()
        if which == "all":
            return self.placements
        if which == "one":
            return (link,)
        links = self.topology.subtree(link)
        return links if which == "subtree" or self.topology.attachments[link].parent is not None else links[1:]

    def shapes(self, entry: Quantity, link: str = "") -> list[tuple[int, ...]]:
        """Shapes of the results of a quantity for one state."""
        sizes = {"v": self.nv, "q": self.nq}
        if entry.places in ("loops", "contacts"):
            sizes["L"] = len(self.constraints if entry.places == "loops" else self.points)
        elif entry.places in ("bodies", "all"):
            sizes["L"] = len([*self.links(entry.places, link)])
            sizes["10L"] = 10 * sizes["L"]
        if any("k" in result.shape for result in entry.given):
            sizes["k"] = len(self.path(link))
        return [tuple(sizes[d] if isinstance(d, str) else d for d in result.shape) for result in entry.given]

    def places(self, which: Places | None, link: str = "", frame: int = BODY) -> Array:
        """Places that a recursion takes, (places, 25), for the code of a frame; see ``physics.table``."""
        rows = self.rows_of_places(which, link, frame)
        try:
            return np.array(rows, dtype=np.float64).reshape(-1, layout.PLACE)
        except TypeError:  # expressions
            return expressions.floats(np.array(rows, dtype=object), "the place of a link")

    def rows_of_places(self, which: Places | None, link: str, frame: int) -> list[list[Any]]:
        """The rows of :meth:`places`, which may contain expressions."""
        if which in ("loops", "contacts"):
            return self.constraints if which == "loops" else self.points
        return [self.place(name, frame) for name in self.links(which, link)]

    @cached_property
    def constraints(self) -> list[list[Any]]:
        """A place for each wrench that the joints of the loops transmit, in the frame of the row of its link."""
        rows = []
        for loop in self.topology.loops.values():
            at, to = self.placements[loop.link], self.placements[loop.to]
            R, (n, f) = np.reshape(at.pose.R, (3, 3)), loop.wrenches.reshape(2, 3, -1)
            force = R @ f
            for wrench in np.concatenate([R @ n + screw.skew_of(np.array(at.pose.p)) @ force, force]).T:
                place = [self.index[at.coordinate], self.index[to.coordinate], *expressions.tidied(wrench)]
                rows.append([*place, *[0.0] * (layout.PLACE - len(place))])
        return rows

    @cached_property
    def points(self) -> list[list[Any]]:
        """A place for each point of all contacts."""
        rows = []
        for contact in self.topology.contacts.values():
            for spot in contact.spots:
                at, to = (self.placements[link] for link in (contact.link, contact.to)[:: -1 if spot.turned else 1])
                R, T = (np.reshape(x.pose.R, (3, 3)) for x in (at, to))
                (own, length, radius), core = spot.at, spot.on
                place = [*(R @ own[:3, 3] + np.array(at.pose.p)), radius]
                place += [*(T @ core.pose[:3, :3]).flat, *(T @ core.pose[:3, 3] + np.array(to.pose.p)), *core.half]
                place += [core.radius, *(R @ own[:3, 2] * max(0.0, length[2]))]
                rows.append([self.index[at.coordinate], self.index[to.coordinate], *expressions.tidied(place)])
        return rows

    def place(self, link: str, frame: int) -> list[Any]:
        """The place of a link, which may contain expressions."""
        at = self.placements[link]
        return at.place(self.index[at.coordinate], frame)

    def check_link(self, link: object) -> None:
        """Raise UnknownNameError unless there is such a link."""
        if not isinstance(link, str):
            raise errors.UnknownNameError.of(link, self.placements)
        if link not in self.placements:
            raise errors.UnknownNameError(
                f"this model, of revision {self.revision} of the tree, has no link {link!r}; use a new one for links "
                f"attached later; {errors.UnknownNameError.hint(link, self.placements)}"
            )

    @staticmethod
    def numbers(what: str, value: ArrayLike) -> Array:
        """A float64 array of real numbers; ShapeError, with the name of the argument, for anything else."""
        if isinstance(value, np.ma.MaskedArray):
            raise errors.ShapeError(f"{what} is a masked array; give a plain one, such as {what}.filled(0.0)")
        try:
            return expressions.real(value)
        except (TypeError, ValueError, OverflowError):
            hint = f"; give its .{'q' if what in POSITIONS else 'qd'}" if hasattr(value, "qd") else ""
            if isinstance(value, Mapping):
                order = "positions" if what in POSITIONS else "coordinates"
                hint = f"; give an array, whose entries have the order of .{order}, in place of a mapping"
            raise errors.ShapeError(f"{what} must be an array of real numbers; got {value!r}{hint}") from None

    def arrays(self, named: Mapping[str, ArrayLike], checked: bool = True) -> tuple[list[Array], tuple[int, ...]]:
        """Broadcast arrays over positions or freedoms, with ``checked`` entries, and the batch shape, or ShapeError."""
        arrays = []
        for what, value in named.items():
            a = value if type(value) is np.ndarray and value.dtype is _FLOAT64 else self.numbers(what, value)
            names, size = ("positions", self.nq) if what in POSITIONS else ("coordinates", self.nv)
            if a.ndim == 0 or a.shape[-1] != size:
                raise errors.ShapeError(
                    f"{what} has shape {a.shape}; expected (…, {size}), one entry for each of: "
                    f"{', '.join(getattr(self, names)) or 'no coordinates'}"
                )
            arrays.append(a)
            if not checked:
                continue
            finite = np.isfinite(a)
            if np.count_nonzero(finite) < a.size:
                where = tuple(np.argwhere(~finite)[0])
                raise errors.ShapeError(
                    f"{what} is {a[where]} at {getattr(self, names)[where[-1]]!r}; every entry must be finite"
                )
            if self.charts is not None and what in POSITIONS:
                self.configurations.check(what, a)
        batch = arrays[0].shape[:-1]
        if any(a.shape[:-1] != batch for a in arrays):
            try:
                batch = np.broadcast_shapes(*(a.shape[:-1] for a in arrays))
            except ValueError:
                shapes = ", ".join(f"{what} {a.shape}" for what, a in zip(named, arrays, strict=True))
                raise errors.ShapeError(f"the batch axes cannot be broadcast together: {shapes}") from None
            arrays = [np.broadcast_to(a, (*batch, a.shape[-1])) for a in arrays]
        return arrays, batch

    def flat(self, **named: ArrayLike) -> tuple[list[Array], tuple[int, ...]]:
        """Arrays as by :meth:`arrays`, flattened and contiguous; and the batch shape."""
        arrays, batch = self.arrays(named)
        # ``np.require`` would take 2 µs to find that an array is as kernels need it.
        return [(a if a.flags.carray else np.require(a, requirements=["C", "W", "A"])).ravel() for a in arrays], batch


class Robot(Mechanism, Quantities):
    """The part of :class:`screwdyn.KinematicTree` that simulation and code generation use; it defines the methods."""

    neutral: Callable[[], Array]
    random_configuration: Callable[[np.random.Generator], Array]
    contributions: Callable[[ArrayLike, ArrayLike], list[Any]]
    symbolic: Callable[[], Any]
    joint_force: Callable[[ArrayLike, ArrayLike], Array]
    wrench_torque: Callable[[ArrayLike, Mapping[str, ArrayLike]], Array]
    # The tree in which ``subs`` has replaced symbols, their values, and what it has become.
    _bound: tuple[Robot, dict[Any, Any], Topology] | None = None
    # Passes of changes, of one state in contiguous arrays; see ``changes.law`` and ``forms.numbers``.
    _slipping: Callable[[Array], tuple[Callable[..., Any], ...]]
    _response_holding: Callable[[slice], Callable[[Array, Array], Array]]

    @property
    @abstractmethod
    def active(self) -> tuple[str, ...]:
        """The freedoms that have motors."""
