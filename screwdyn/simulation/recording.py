"""The samples of a run: histories by name, the energy ledger, files, and the ledger in sentences."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from screwdyn.core import NAME, Array, ScrewdynError, Text, UnknownNameError, file_errors, html_table, is_name
from screwdyn.physics.state import no_coordinate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from screwdyn.changes.change import Happened
    from screwdyn.mechanism.joint import Joint


# Version of the layout of files.
LAYOUT = 2
# In a name, what a spreadsheet may take for the end of a cell or a formula, and a shell for a command.
_ACTIVE = re.compile(r"[\x00-\x1f\x7f\"'`,;|=@$&<>\\!%]")
# Residuals relative to the largest energy: below the first they are rounding, below the second those of an integrator.
_ROUNDING, INTEGRATION = 1e-12, 1e-5
# Energies are printed as 0 below these fractions of the largest one, and of the largest one without the constant part
# of the potential energy, which may be of any size.
_ZERO, _ZERO_OF_CHANGES = 1e-12, 1e-6
# Calls of the torque for each sample, on average, of which a text says nothing.
_FEW_CALLS = 4


@dataclass(frozen=True, eq=False, repr=False)
class Energy:
    """The energy ledger of a run, J; every entry is (samples,).

    Attributes
    ----------
    kinetic, potential : arrays
        Of the tree as it was at that time; ``potential`` includes gravity and the springs of joints.
    work : array
        Work of the torques up to that time.
    dissipated : array
        Energy dissipated by damping and friction in the joints up to that time.
    impact_loss : array
        Kinetic energy dissipated by changes of the tree, such as grasps, up to that time.
    exchanged : array
        Energy of the payloads grasped up to that time, minus that of the payloads released. Their kinetic energy is
        computed from the payloads alone, so that :attr:`residual` checks the momentum balance.
    external : array
        Work of the external wrenches up to that time.
    """

    kinetic: Array
    potential: Array
    work: Array
    dissipated: Array
    impact_loss: Array
    exchanged: Array
    external: Array

    @property
    def total(self) -> Array:
        """Sum of kinetic and potential energy, J."""
        return self.kinetic + self.potential

    @property
    def residual(self) -> Array:
        """Change of :attr:`total` minus the balance of the other entries, J: the error of the integration."""
        explained = self.work + self.external - self.dissipated - self.impact_loss + self.exchanged
        return np.asarray(self.total - self.total[0] - explained)

    def continued(self, other: Energy) -> Energy:
        """The ledger of this run and of one that continues it."""
        joined = {}
        for name, entry in vars(self).items():
            later = getattr(other, name) + (0.0 if name in ("kinetic", "potential") else entry[-1])
            joined[name] = np.concatenate([entry, later])
        return Energy(**joined)

    def __repr__(self) -> str:
        total, worst = self.total, np.abs(self.residual).max()
        return f"<{type(self).__name__}: {total[0]:.4g} J to {total[-1]:.4g} J, largest residual {worst:.1g} J>"


class PastEvent(NamedTuple):
    """What a file records of an event, as for :class:`Happened`."""

    t: float
    verb: str
    link: str
    subject: str


class PastJoint(NamedTuple):
    """What a file records of a joint, as for :class:`Joint`."""

    kind: str
    passive: bool
    nq: int
    nv: int
    limits: tuple[float, float] | None = None
    effort: float | None = None
    velocity: float | None = None


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples of the motion of one tree at k times, and the joint of every position and coordinate."""

    positions: tuple[str, ...]
    coordinates: tuple[str, ...]
    # Times, (k,), positions, (k, nq), and the others, (k, nv).
    t: Array
    q: Array
    qd: Array
    qdd: Array
    torque: Array
    joints: Mapping[str, Joint | PastJoint]


@dataclass(frozen=True, eq=False, repr=False)
class Recording:
    """The samples of a run, such as :meth:`from_npz` reads them; a :class:`Run` also has the trees.

    Attributes
    ----------
    motions : tuple of Samples
        The parts of the run between changes of the tree.
    energy : Energy
    events : tuple
        The changes of the tree, with ``t``, ``verb`` and ``link``.
    trial_calls : int
        Calls of a torque without ``control_period``, also for trial steps of the integrator; 0 with a period.

    Notes
    -----
    ``run["elbow"]`` and ``run["hip[x]"]`` are histories of positions. :meth:`velocity` and :meth:`torque` return
    histories of coordinates, such as ``"elbow"`` and ``"hip[wx]"``. Histories are NaN while the tree does not have the
    joint. A joint that turns in one part of the run and slides in another has the histories ``"w (rad)"`` and
    ``"w (m)"``.
    """

    motions: tuple[Samples, ...]
    energy: Energy
    events: tuple[Happened | PastEvent, ...]
    trial_calls: int = field(default=0, kw_only=True)

    @cached_property
    def t(self) -> Array:
        """Times of the samples, (samples,), s. The time of an event appears twice: just before and just after it."""
        return np.concatenate([motion.t for motion in self.motions])

    @property
    def torques(self) -> tuple[Array, ...]:
        """Applied torques, N m or N: for each sample an array over the coordinates of its state."""
        return tuple(tau for motion in self.motions for tau in motion.torque)

    @cached_property
    def coordinates(self) -> tuple[str, ...]:
        """Every coordinate that the tree had at some time."""
        return self._every("coordinates")

    @cached_property
    def positions(self) -> tuple[str, ...]:
        """Every position that the tree had at some time."""
        return self._every("positions")

    @cached_property
    def joints(self) -> Mapping[str, Joint | PastJoint]:
        """The joint of every coordinate and position, with ``kind``, ``passive``, ``nq`` and ``nv``; the last one."""
        return {
            labels.get(name, name): joint
            for motion, labels in zip(self.motions, self._labels, strict=True)
            for name, joint in motion.joints.items()
        }

    @cached_property
    def _labels(self) -> list[dict[str, str]]:
        """For each motion the labels of joints that turn in some motions and slide in others, ``"w (rad)"``."""
        units = [
            {name: "m" if motion.joints[name].kind == "prismatic" else "rad" for name in motion.coordinates}
            for motion in self.motions
        ]
        known: dict[str, str] = {}
        mixed = {name for found in units for name, unit in found.items() if known.setdefault(name, unit) != unit}
        return [{name: f"{name} ({found[name]})" for name in mixed & found.keys()} for found in units]

    def _every(self, names: str) -> tuple[str, ...]:
        """The names of all columns of a table of positions or coordinates."""
        pairs = zip(self.motions, self._labels, strict=True)
        return tuple(dict.fromkeys(labels.get(x, x) for motion, labels in pairs for x in getattr(motion, names)))

    def _table(self, names: str, what: str) -> Array:
        """The rows of all motions below each other; NaN where a motion does not have the column."""
        known, rows = getattr(self, names), []
        for motion, labels in zip(self.motions, self._labels, strict=True):
            table = np.full((len(motion.t), len(known)), np.nan)
            table[:, [known.index(labels.get(x, x)) for x in getattr(motion, names)]] = getattr(motion, what)
            rows.append(table)
        return np.concatenate(rows)

    @cached_property
    def q(self) -> Array:
        """Positions, (samples, positions), in the order of :attr:`positions`; NaN while the tree does not have them."""
        return self._table("positions", "q")

    @cached_property
    def qd(self) -> Array:
        """Rates, (samples, coordinates), in the order of :attr:`coordinates`; NaN while the tree does not have them."""
        return self._table("coordinates", "qd")

    @cached_property
    def qdd(self) -> Array:
        """Accelerations, (samples, coordinates), in the order of :attr:`coordinates`; NaN where there are none."""
        return self._table("coordinates", "qdd")

    @cached_property
    def tau(self) -> Array:
        """Torques, N m or N, (samples, coordinates), at the times of calls the new ones; NaN where there are none."""
        return self._table("coordinates", "torque")

    def __getitem__(self, position: str) -> Array:
        """Values of one position, (samples,), rad, m, or of a quaternion; UnknownNameError if the tree never had it."""
        return self.q[:, self._index(position, self.positions)].copy()

    def velocity(self, coordinate: str) -> Array:
        """Rates of one coordinate, (samples,), rad/s or m/s; UnknownNameError if the tree never had it."""
        return self.qd[:, self._index(coordinate, self.coordinates)].copy()

    def torque(self, coordinate: str) -> Array:
        """Torques applied to one coordinate, (samples,), N m or N; UnknownNameError if the tree never had it."""
        return self.tau[:, self._index(coordinate, self.coordinates)].copy()

    def to_npz(self, path: str | os.PathLike[str]) -> None:
        """Write the samples to a file of NumPy arrays, without pickles; :meth:`from_npz` reads it.

        The file has all samples, the ledger, the times and names of events, and the kinds of the joints, but no trees
        and nothing between the samples. Raises ScrewdynError if the file cannot be written.
        """
        arrays: dict[str, Any] = {"layout": LAYOUT, "motions": len(self.motions), "trial_calls": self.trial_calls}
        for k, motion in enumerate(self.motions):
            arrays |= {f"{k}/{what}": getattr(motion, what) for what in ("t", "q", "qd", "qdd", "torque")}
            joints = motion.joints.values()
            bounds = [(*(x.limits or (None, None)), x.effort, x.velocity) for x in joints]
            arrays |= {
                f"{k}/positions": _names(motion.positions),
                f"{k}/coordinates": _names(motion.coordinates),
                f"{k}/joints/name": _names(motion.joints),
                f"{k}/joints/kind": _names([joint.kind for joint in joints]),
                f"{k}/joints/numbers": np.array([(x.passive, x.nq, x.nv) for x in joints], dtype=int).reshape(-1, 3),
                f"{k}/joints/bounds": np.array(bounds, dtype=float).reshape(-1, 4),  # NaN for None
            }
        arrays |= {f"energy/{name}": x for name, x in vars(self.energy).items()}
        arrays["events/t"] = np.array([event.t for event in self.events], dtype=float)
        for what in ("verb", "link", "subject"):
            arrays[f"events/{what}"] = _names([getattr(event, what) for event in self.events])
        with _opened(path, "wb") as file:
            np.savez(file, **arrays)

    @staticmethod
    def from_npz(path: str | os.PathLike[str]) -> Recording:
        """Read a file of :meth:`to_npz`; raises ScrewdynError if it cannot be read or is not such a file,
        or its entries do not fit together.
        """
        name = str(path)
        try:
            with _opened(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
                arrays = {key: stored[key] for key in stored.files}
        except ScrewdynError:
            raise
        except Exception:  # NumPy and zipfile raise anything, also MemoryError for what a damaged header announces
            raise ScrewdynError(f"{name!r} is not a file of Run.to_npz") from None
        if not np.array_equal(arrays.get("layout", 0), LAYOUT):
            raise ScrewdynError(f"{name!r} is not a file of Run.to_npz of this version (layout {LAYOUT})")
        try:
            if unfit := [key for key, x in arrays.items() if x.dtype.kind == "U" and not all(map(is_name, x.flat))]:
                raise ValueError(f"{unfit[0]!r} has a name that is not {NAME}")
            motions = tuple(_samples(arrays, k) for k in range(int(_numbers(arrays, "motions", ()))))
            calls = int(_numbers(arrays, "trial_calls", ())) if "trial_calls" in arrays else 0
            samples = sum(len(motion.t) for motion in motions)
            if not samples:
                raise ValueError("it has no samples")
            energy = Energy(*(_numbers(arrays, f"energy/{entry.name}", (samples,)) for entry in fields(Energy)))
            columns = (arrays[f"events/{what}"].tolist() for what in PastEvent._fields)
            events = tuple(PastEvent(*row) for row in zip(*columns, strict=True))
        except KeyError as error:
            raise ScrewdynError(f"{name!r} is incomplete: it has no {error.args[0]!r}") from None
        except (TypeError, ValueError) as error:
            raise ScrewdynError(f"the entries of {name!r} do not fit together: {error}") from None
        return Recording(motions, energy, events, trial_calls=calls)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the samples as a table with 17 digits; raises ScrewdynError if the file cannot be written.

        The columns are ``t``, ``q:<position>``, ``qd:<coordinate>``, ``qdd:<coordinate>``, ``tau:<coordinate>`` and
        the entries of :class:`Energy`. Entries are empty while the tree does not have the joint. In names, characters
        that a spreadsheet or a shell may act on are written as in addresses of pages: ``a=b`` as ``a%3Db``.
        """
        columns = self.columns()
        rows = np.column_stack([*columns.values()]).tolist()
        with _opened(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(_ACTIVE.sub(lambda found: f"%{ord(found[0]):02X}", x) for x in columns)
            writer.writerows(["" if x != x else repr(x) for x in row] for row in rows)

    def to_frame(self) -> Any:
        """The columns of :meth:`to_csv` as a pandas.DataFrame with the index ``t``; ScrewdynError without pandas."""
        try:
            from pandas import DataFrame
        except ImportError as missing:
            raise ScrewdynError(f"to_frame needs pandas ({missing}): pip install pandas") from missing
        return DataFrame(self.columns()).set_index("t")

    def columns(self) -> dict[str, Array]:
        """All histories by the names of the columns of :meth:`to_csv`, each (samples,)."""
        columns = {"t": self.t}
        for what in ("q", "qd", "qdd", "tau"):
            names = self.positions if what == "q" else self.coordinates
            columns |= {f"{what}:{name}": x for name, x in zip(names, getattr(self, what).T, strict=True)}
        return columns | vars(self.energy)

    def plot(
        self,
        what: str | Sequence[str] = ("positions", "torques", "energy"),
        *,
        coordinates: str | Sequence[str] | None = None,
        degrees: bool = True,
        ax: Any = None,
    ) -> Figure:
        """Draw joint positions, torques and energy over time (docs/simulation.md).

        Freedoms that turn and freedoms that slide have panels of their own, and so have driven and passive joints. At
        most eight curves of a panel are coloured, those that vary most; the others are grey. A panel of rounding alone
        is left out, unless ``coordinates`` or ``ax`` are given. A joint's limits near its curve are dotted lines, and
        events are marked. Orientations are drawn as rotation vectors: axis times angle.

        Parameters
        ----------
        what : str or sequence of str
            Of "positions", "velocities", "torques" and "energy".
        coordinates : str or sequence of str, optional
            Coordinates, positions or joints to be drawn, without the others. More than eight in a panel are distributed
            over several panels.
        degrees : bool
            Degrees, the default, or radians.
        ax : matplotlib.axes.Axes or sequence of them, optional
            Where to draw: one for each panel; by default a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            A notebook shows it as an image; ``run.plot().savefig("run.png")`` writes it, 1440 pixels wide.

        Raises
        ------
        UnknownNameError
            If the tree never had a coordinate.
        ScrewdynError
            If ``what`` is none of the quantities, there is nothing to draw, the number of axes is not that of the
            panels, or Matplotlib, the extra ``plot``, is not installed.
        """
        from screwdyn.views.figures import plot_run

        return plot_run(self, what, coordinates, degrees, ax)

    def explain(self) -> Text:
        """The energy ledger in sentences: what the robot had, gained and lost, by which events, and the error.

        Returns
        -------
        Text
            A str that an interpreter or a notebook shows as it is printed.

        Examples
        --------
        >>> import screwdyn as sd
        >>> tree = sd.KinematicTree()
        >>> ball = tree.attach(sd.Inertia.point(2.0), to="base", joint=sd.prismatic("z", name="height"), name="ball")
        >>> print(sd.simulate(tree, sd.State(tree, [1.0]), 0.2).explain())  # doctest: +ELLIPSIS
        The run lasts 0.2 s, from t = 0 s to t = 0.2 s.
        <BLANKLINE>
        Energy at the start: 0 J kinetic + 19.62 J potential = 19.62 J.
        Energy at the end:   3.849 J kinetic + 15.77 J potential = 19.62 J.
        The robot keeps its energy: nothing is added or lost.
        <BLANKLINE>
        Nothing is attached, released or changed, and no joint reaches a limit.
        <BLANKLINE>
        Unaccounted for: at most ... of the largest energy in the ledger. This is rounding: the ledger closes.
        """
        t, E = self.t, self.energy
        scale = max(float(np.abs(entry).max()) for entry in vars(E).values())
        changes = vars(E) | {"potential": E.potential - E.potential[0]}
        zero = max(_ZERO * scale, _ZERO_OF_CHANGES * max(float(np.abs(entry).max()) for entry in changes.values()))

        def joules(x: float) -> str:
            return f"{0.0 if abs(x) <= zero else x:.4g} J".replace("-", "−", int(x < 0))

        def account(k: int) -> str:
            sign, size = ("−" if E.potential[k] < -zero else "+"), joules(abs(E.potential[k]))
            return f"{joules(E.kinetic[k])} kinetic {sign} {size} potential = {joules(E.total[k])}."

        lines = [f"The run lasts {t[-1] - t[0]:.6g} s, from t = {t[0]:.6g} s to t = {t[-1]:.6g} s.", ""]
        lines += [f"Energy at the start: {account(0)}", f"Energy at the end:   {account(-1)}"]
        lines += [*_changes(E, joules, zero), ""]
        happened = [*_happened(t, E, self.events, joules)]
        none = "Nothing is attached, released or changed, and no joint reaches a limit."
        lines += ["What happened:", *happened] if happened else [none]
        return Text("\n".join([*lines, "", _unaccounted(E.residual, scale), *_called(self.trial_calls, len(t))]))

    def animate(self, *path: Any, **options: Any) -> Any:
        """Of a :class:`Run`, a film (:meth:`Run.animate`); ScrewdynError for a recording, which has no trees."""
        raise ScrewdynError(
            "a recording has the samples of a run, but not its robot, so it cannot be animated; animate the run itself "
            "before it is saved: simulate(…).animate('run.html')"
        )

    def _index(self, name: str, known: tuple[str, ...]) -> int:
        if not isinstance(name, str) or name not in known:
            units = [x for x in known if isinstance(name, str) and x in (f"{name} (rad)", f"{name} (m)")]
            if units:
                raise UnknownNameError(
                    f"{name!r} is in rad in a part of the run and in m in another one; each has its history: "
                    f"{' and '.join(map(repr, units))}"
                )
            trees = [motion.tree for motion in self.motions if hasattr(motion, "tree")]
            raise no_coordinate(name, known, *(tree.topology for tree in trees))
        return known.index(name)

    def __repr__(self) -> str:
        names = self.coordinates
        some = ", ".join(names if len(names) <= 6 else [*names[:5], "…", names[-1]])
        counts = (len(self.events), "event"), (len(names), "coordinate")
        events, coordinates = (f"{n} {what}{'s' * (n != 1)}" for n, what in counts)
        length = f"{self.t[-1] - self.t[0]:.6g} s, {len(self.t)} samples"
        return f"<{type(self).__name__}: {length}, {events}, {coordinates} ({some})>"

    def _repr_html_(self) -> str:
        """For notebooks."""
        rows = [(f"{event.t:.6g}", f"{event.verb} {event.subject}") for event in self.events]
        return html_table(repr(self)[1:-1], ("t, s", "event"), rows)


def _samples(arrays: dict[str, Any], k: int) -> Samples:
    """The samples of a motion; ValueError unless their shapes fit together."""
    positions, coordinates = (tuple(arrays[f"{k}/{what}"].tolist()) for what in ("positions", "coordinates"))
    t = _numbers(arrays, f"{k}/t", (arrays[f"{k}/t"].size,))
    widths = {"q": len(positions), "qd": len(coordinates), "qdd": len(coordinates), "torque": len(coordinates)}
    rest = {what: _numbers(arrays, f"{k}/{what}", (len(t), width)) for what, width in widths.items()}
    given = _numbers(arrays, f"{k}/joints/bounds", (arrays[f"{k}/joints/name"].size, 4))
    bounds = np.where(np.isnan(given), None, given)
    columns = [arrays[f"{k}/joints/{what}"] for what in ("name", "kind", "numbers")]
    rows = zip(*(column.tolist() for column in (*columns, bounds)), strict=True)
    joints = {
        joint: PastJoint(kind, bool(passive), nq, nv, None if low is None else (low, high), effort, velocity)
        for joint, kind, (passive, nq, nv), (low, high, effort, velocity) in rows
    }
    unknown = {*positions, *coordinates} - joints.keys()
    if unknown:
        raise ValueError(f"there is no joint of {min(unknown)!r}")
    return Samples(positions, coordinates, t, joints=joints, **rest)


def _numbers(arrays: Mapping[str, Any], key: str, shape: tuple[int, ...]) -> Any:
    """An array of numbers of a given shape; ValueError if it is not."""
    x = arrays[key]
    if x.shape != shape or x.dtype.kind not in "fiu":
        raise ValueError(f"{key!r} must be numbers of shape {shape}; got {x.dtype.name} of shape {x.shape}")
    return x


@contextmanager
def _opened(path: str | os.PathLike[str], mode: str, **how: str) -> Iterator[IO[Any]]:
    """An open file; ScrewdynError if it cannot be read or written, or is no path, such as the number of an open one."""
    try:
        name = os.fspath(path)
    except TypeError:
        raise ScrewdynError(f"a file is given by its path, a str or a Path; got {path!r}") from None
    what = "read" if mode == "rb" else "write"
    with file_errors(f"{what} {name!r}"), open(name, mode, **how) as file:  # type: ignore[call-overload]
        yield file


def _names(names: Iterable[str]) -> Any:
    return np.array([*names], dtype=str)


# The ledger in sentences


def _changes(E: Energy, joules: Callable[[float], str], zero: float) -> list[str]:
    """What the energy of the robot gains and loses, and the sum of it."""
    rows: list[tuple[float, str]] = []
    for x, done, taken in (
        (E.work, "work of the motors", "they supply {} and absorb {}"),
        (E.external, "work of external wrenches", "they supply {} and absorb {}"),
        (E.exchanged, "energy of bodies that come or go", "these changes add {} and take {}"),
    ):
        steps = np.diff(x)
        plus, minus = float(steps[steps > 0].sum()), float(-steps[steps < 0].sum())
        if max(plus, minus) > zero:
            both = f" ({taken.format(joules(plus), joules(minus))})" if min(plus, minus) > zero else ""
            rows.append((float(x[-1]), done + both))
    for x, lost in ((E.dissipated, "heat of damping and friction in joints"), (E.impact_loss, "heat of impacts")):
        if np.abs(x).max() > zero:
            rows.append((-float(x[-1]), lost))
    change = float(E.total[-1] - E.total[0])
    if not rows:
        return ["The robot keeps its energy: nothing is added or lost."]
    verb = "gains" if change > zero else "loses" if change < -zero else "neither gains nor loses energy"
    amount = f" {joules(abs(change))}" if abs(change) > zero else ""
    cells = [(f"{'−' if x < 0 else '+'} {joules(abs(x))}", text) for x, text in rows]
    width = max(len(cell) for cell, _ in cells)
    return [f"The robot {verb}{amount}:", *(f"  {cell:{width}}  {text}" for cell, text in cells)]


def _happened(
    times: Array, E: Energy, events: Sequence[Happened | PastEvent], joules: Callable[[float], str]
) -> Iterator[str]:
    """What happened and what it cost, in order of the first time; the same things at several times together."""
    at: dict[float, list[str]] = {}
    for event in events:
        at.setdefault(event.t, []).append(f"{event.verb} {event.subject}")
    same: dict[str, list[float]] = {}
    for t, words in sorted(at.items()):
        same.setdefault(", ".join(dict.fromkeys(words)), []).append(t)
    for what, found in same.items():
        when = f"t = {found[0]:.6g} s"
        if len(found) > 1:
            when = f"{len(found)} times, {when} to {found[-1]:.6g} s"
        lost, brought = (sum(_jump(times, entry, t) for t in found) for entry in (E.impact_loss, E.exchanged))
        parts = []
        if joules(brought) != joules(0.0):
            # A body below the origin of the base has negative potential energy: without it, the robot has more.
            parts.append(f"the robot {'gains' if brought > 0 else 'loses'} {joules(abs(brought))} by it")
        if joules(lost) != joules(0.0):
            parts.append(f"{joules(lost)} are lost in the impact")
        yield f"  {when}: {what}; {', '.join(parts) or 'no energy is lost'}."


def _jump(times: Array, entry: Array, t: float) -> float:
    """The change of an entry of the ledger at a time: between its first and last sample there, if it has samples."""
    first, end = np.searchsorted(times, t, side="left"), np.searchsorted(times, t, side="right")
    return float(entry[end - 1] - entry[first]) if end > first else 0.0


def _called(calls: int, samples: int) -> list[str]:
    """What the calls of a torque without a period cost."""
    if calls <= _FEW_CALLS * samples:
        return []
    return [
        "",
        f"The torque was computed {calls} times, {calls / samples:.0f} times a sample, because the integrator also "
        f"asks for it in trial steps. With control_period= it is computed once a period, and a step ends there: faster "
        f"if the function takes most of the time.",
    ]


def _unaccounted(residual: Array, scale: float) -> str:
    """The largest residual, and what it means."""
    worst = float(np.abs(residual).max())
    if not worst:
        return "Unaccounted for: 0 J. The ledger closes."
    relative = worst / scale
    if relative <= _ROUNDING:
        meaning = "This is rounding: the ledger closes."
    elif relative <= INTEGRATION:
        meaning = "This is the error of the integration, which smaller rtol= and atol= of simulate reduce."
    else:
        meaning = (
            "This is more than an integrator leaves: reduce rtol= and atol= of simulate. If it remains, a torque or "
            "wrench jumps, or is not a function of time and state."
        )
    return f"Unaccounted for: at most {worst:.2g} J, {relative:.2g} of the largest energy in the ledger. {meaning}"
