"""The samples of a run: histories by name, the energy ledger, and files and figures of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from screwdyn.core.errors import ScrewdynError, UnknownNameError
from screwdyn.core.text import Text
from screwdyn.core.types import Array
from screwdyn.mechanism.topology import Topology
from screwdyn.physics.state import no_coordinate
from screwdyn.simulation import explain, run_files
from screwdyn.simulation.ledger import Energy, Event
from screwdyn.simulation.motion import Samples

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from screwdyn.views.animation import Animation
    from screwdyn.views.curves import Joint

__all__ = ["Energy", "Recording"]


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

    Notes
    -----
    ``run["elbow"]`` and ``run["hip[x]"]`` are histories of positions. :meth:`velocity` and :meth:`torque` return
    histories of coordinates, such as ``"elbow"`` and ``"hip[wx]"``. Histories are NaN while the tree does not have the
    joint. A joint that turns in one part of the run and slides in another has the histories ``"w (rad)"`` and
    ``"w (m)"``.
    """

    motions: tuple[Samples, ...]
    energy: Energy
    events: tuple[Event, ...]

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
        return tuple(dict.fromkeys(name for names in self._coordinates for name in names))

    @cached_property
    def positions(self) -> tuple[str, ...]:
        """Every position that the tree had at some time."""
        return tuple(dict.fromkeys(name for names in self._positions for name in names))

    @cached_property
    def joints(self) -> Mapping[str, Joint]:
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

    @cached_property
    def _positions(self) -> list[tuple[str, ...]]:
        """The columns of the positions of each motion."""
        pairs = zip(self.motions, self._labels, strict=True)
        return [tuple(labels.get(name, name) for name in motion.positions) for motion, labels in pairs]

    @cached_property
    def _coordinates(self) -> list[tuple[str, ...]]:
        """The columns of the coordinates of each motion."""
        pairs = zip(self.motions, self._labels, strict=True)
        return [tuple(labels.get(name, name) for name in motion.coordinates) for motion, labels in pairs]

    @cached_property
    def q(self) -> Array:
        """Positions, (samples, positions), in the order of :attr:`positions`; NaN while the tree does not have them."""
        return _table(self.positions, self._positions, [motion.q for motion in self.motions])

    @cached_property
    def qd(self) -> Array:
        """Rates, (samples, coordinates), in the order of :attr:`coordinates`; NaN while the tree does not have them."""
        return _table(self.coordinates, self._coordinates, [motion.qd for motion in self.motions])

    @cached_property
    def qdd(self) -> Array:
        """Accelerations, (samples, coordinates), in the order of :attr:`coordinates`; NaN where there are none."""
        return _table(self.coordinates, self._coordinates, [motion.qdd for motion in self.motions])

    @cached_property
    def tau(self) -> Array:
        """Torques, N m or N, (samples, coordinates); NaN while the tree does not have them.

        With ``control_period`` a sample at the time of a call has the new torques.
        """
        return _table(self.coordinates, self._coordinates, [motion.torque for motion in self.motions])

    def __getitem__(self, position: str) -> Array:
        """Values of one position, (samples,), rad, m or a component of a quaternion.

        Raises UnknownNameError if the tree never had it.
        """
        return self.q[:, self._index(position, self.positions)].copy()

    def velocity(self, coordinate: str) -> Array:
        """Rates of one coordinate, (samples,), rad/s or m/s.

        Raises UnknownNameError if the tree never had it.
        """
        return self.qd[:, self._index(coordinate, self.coordinates)].copy()

    def torque(self, coordinate: str) -> Array:
        """Torques applied to one coordinate, (samples,), N m or N.

        Raises UnknownNameError if the tree never had it.
        """
        return self.tau[:, self._index(coordinate, self.coordinates)].copy()

    def to_npz(self, path: str | os.PathLike[str]) -> None:
        """Write the samples to a file of NumPy arrays, without pickles; :meth:`from_npz` reads it.

        The file has all samples, the ledger, the times and names of events, and the kinds of the joints, but no trees
        and nothing between the samples. Raises ScrewdynError if the file cannot be written.
        """
        run_files.write_npz(self.motions, self.energy, self.events, path)

    @staticmethod
    def from_npz(path: str | os.PathLike[str]) -> Recording:
        """Read a file of :meth:`to_npz`; raises ScrewdynError if it cannot be read or is not such a file,
        or its entries do not fit together.
        """
        return Recording(*run_files.read_npz(path))

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the samples as a table with 17 digits; raises ScrewdynError if the file cannot be written.

        The columns are ``t``, ``q:<position>``, ``qd:<coordinate>``, ``qdd:<coordinate>``, ``tau:<coordinate>`` and
        the entries of :class:`Energy`. Entries are empty while the tree does not have the joint. In names, characters
        that a spreadsheet or a shell may act on are written as in addresses of pages: ``a=b`` as ``a%3Db``.
        """
        run_files.write_csv(self.columns(), path)

    def to_frame(self) -> Any:
        """The columns of :meth:`to_csv` as a pandas.DataFrame with the index ``t``.

        Raises ScrewdynError if pandas is not installed.
        """
        return run_files.frame(self.columns())

    def columns(self) -> dict[str, Array]:
        """All histories by the names of the columns of :meth:`to_csv`, each (samples,)."""
        columns = {"t": self.t}
        for what, names, table in (
            ("q", self.positions, self.q),
            ("qd", self.coordinates, self.qd),
            ("qdd", self.coordinates, self.qdd),
            ("tau", self.coordinates, self.tau),
        ):
            columns |= {f"{what}:{name}": x for name, x in zip(names, table.T, strict=True)}
        return columns | {entry.name: getattr(self.energy, entry.name) for entry in fields(Energy)}

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
        most eight curves of a panel are coloured, those that vary most; the others are grey. Limits of joints near the
        curves are dotted lines, and events are marked. Orientations are drawn as rotation vectors: axis times angle.

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
        from screwdyn.views.plot import plot_run

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
        return explain.ledger(self.t, self.energy, self.events)

    def animate(
        self,
        path: str | os.PathLike[str],
        *,
        fps: float = 30.0,
        show: Sequence[str] = (),
        wrenches: Sequence[str] = (),
        progress: bool = False,
    ) -> Animation:
        """Of a :class:`Run`, a film of the robot; see :meth:`Run.animate`.

        Raises
        ------
        ScrewdynError
            Always: a recording has no trees, so that there is nothing to draw.
        """
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
            raise no_coordinate(name, known, *self._topologies)
        return known.index(name)

    @property
    def _topologies(self) -> tuple[Topology, ...]:
        """Those of the trees of the motions, as far as they are known."""
        return ()

    def __repr__(self) -> str:
        names = self.coordinates
        some = ", ".join(names if len(names) <= 6 else [*names[:5], "…", names[-1]])
        return (
            f"<{type(self).__name__}: {self.t[-1] - self.t[0]:.6g} s, {len(self.t)} samples, "
            f"{len(self.events)} events, {len(names)} coordinates ({some})>"
        )


def _table(names: tuple[str, ...], columns: Sequence[tuple[str, ...]], parts: Sequence[Array]) -> Array:
    """Rows of several arrays with named columns, below each other; NaN where an array does not have the column."""
    rows = []
    for known, x in zip(columns, parts, strict=True):
        table = np.full((len(x), len(names)), np.nan)
        table[:, [names.index(name) for name in known]] = x
        rows.append(table)
    return np.concatenate(rows)
