"""Which of several arms to choose: cost of the dynamics, workspace, manipulability and conditioning of M.

The criteria are those of P. P. Bhangale, S. K. Saha, V. P. Agrawal, "A dynamic model based robot arm selection
criterion", Multibody System Dynamics 12, 2004. See docs/arm_selection.md.
"""

from __future__ import annotations

import csv
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from reprlib import repr as cut_repr
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import unquote

import numpy as np
from scipy.interpolate import make_interp_spline

from screwdyn.backends.llvm.machine import processor
from screwdyn.core import Array, ArrayLike, aligned, expressions
from screwdyn.core.errors import ScrewdynError, ShapeError, UnknownNameError, file_errors
from screwdyn.forms.requests import operations_of
from screwdyn.papers.workspace import UNITS, Arm, Estimate, Limits, NoSizeError, Reach
from screwdyn.simulation.simulate import Run
from screwdyn.tree import KinematicTree

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Criteria", "Estimate", "Section", "Selection", "Spread", "Trajectory", "compare"]

_SPLINE = 6  # samples that a spline of degree 5 needs
_MOST_SAMPLES = 10_000_000
_STATES, _TURNS = 4096, 60  # of measurements of time
# Relative errors of times, and over the default number of samples of means and medians, and of largest values.
_TIME, _MEAN, _LARGEST = 0.02, 0.02, 0.1


@dataclass(frozen=True)
class Trajectory:
    """Samples of a motion of an arm.

    Attributes
    ----------
    t : (samples,) array
        Times, s. They increase, but an instant may occur twice, as that of an event of a run does.
    q, qd, qdd : (samples, n) arrays
        Positions, rates and accelerations, in the order of the arm's coordinates.

    Raises
    ------
    ShapeError
        If the shapes do not fit together, an entry is not a finite number, or the times decrease.
    """

    t: Array
    q: Array
    qd: Array
    qdd: Array

    def __post_init__(self) -> None:
        for what in ("t", "q", "qd", "qdd"):
            value = _numbers(getattr(self, what), f"{what} of a trajectory").copy()
            object.__setattr__(self, what, value)
        shapes = {x.shape for x in (self.q, self.qd, self.qdd)}
        if self.t.ndim != 1 or not self.t.size or self.q.ndim != 2 or shapes != {(len(self.t), self.q.shape[1])}:
            got = ", ".join(f"{what} {getattr(self, what).shape}" for what in ("t", "q", "qd", "qdd"))
            raise ShapeError(f"a trajectory has t (samples,) and q, qd, qdd (samples, n); got {got}")
        if (back := np.diff(self.t) < 0).any():
            raise ShapeError(f"the times of a trajectory must increase; they decrease after sample {back.argmax()}")

    @classmethod
    def of(cls, motion: Any) -> Self:
        """The samples of anything that has t, q, qd and qdd, such as a :class:`screwdyn.Run`; errors as above."""
        return cls(motion.t, motion.q, motion.qd, motion.qdd)

    @classmethod
    def cycloidal(cls, start: ArrayLike, end: ArrayLike, duration: float = 10.0, step: float = 0.01) -> Self:
        """From start to end (n,), at rest at both: q = start + (end − start) (t/T − sin(2πt/T)/2π).

        From 0 to π it is Bhangale Eq. 23. ShapeError if the ends are not vectors of one length, duration and step are
        not positive numbers, s, or there would be more than ten million samples.
        """
        start, end = _numbers(start, "start"), _numbers(end, "end")
        for what, number in (("duration", duration), ("step", step)):
            if _numbers(number, what).ndim:
                raise ShapeError(f"{what} must be one number, s; got {cut_repr(number)}")
        if start.ndim != 1 or start.shape != end.shape:
            raise ShapeError(f"start and end must be vectors of one length; got shapes {start.shape} and {end.shape}")
        if not (duration > 0 and step > 0):
            raise ShapeError(f"duration and step must be positive, s; got {duration!r} and {step!r}")
        if duration / step > _MOST_SAMPLES:
            raise ShapeError(f"a trajectory has at most {_MOST_SAMPLES:,} samples; got {duration!r} s by {step!r} s")
        t = np.linspace(0, duration, max(round(duration / step), 1) + 1)
        w, way = 2 * np.pi / duration, end - start
        a = (w * t)[:, None]
        return cls(
            t,
            start + way * (a - np.sin(a)) / (2 * np.pi),
            way * (1 - np.cos(a)) * w / (2 * np.pi),
            way * np.sin(a) * w**2 / (2 * np.pi),
        )

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str], tree: KinematicTree) -> Self:
        """Read the motion of a tree from a table as :meth:`screwdyn.Run.to_csv` writes it.

        The columns are ``t``, ``q:<position>``, ``qd:<coordinate>`` and ``qdd:<coordinate>``; others are ignored.
        Rates and accelerations in the file are used as they are. Those that it does not have are derivatives of a
        spline of degree 5, which needs increasing times: accelerations of the rates in the file, if there are any.

        Raises
        ------
        ScrewdynError
            If the file cannot be read or is not such a table; the message has the line or the missing columns.
        """
        file = str(expressions.read(path, "path", "be the path of a file", ScrewdynError, os.fspath))
        header, rows = _table(file)
        columns = {"t": ["t"], "q": [f"q:{name}" for name in tree.positions]}
        rates = {what: [f"{what}:{name}" for name in tree.coordinates] for what in ("qd", "qdd")}
        columns |= {what: names for what, names in rates.items() if not {*names}.isdisjoint(header)}
        wanted = [name for names in columns.values() for name in names]
        if missing := [name for name in wanted if name not in header]:
            hint = UnknownNameError.hint(missing[0], header)
            raise ScrewdynError(f"{file!r} has no column {', '.join(map(repr, missing))}; {hint}")
        if not rows:
            raise ScrewdynError(f"{file!r} has no samples")
        found = {
            what: np.array([[_entry(file, line, name, cells[name]) for name in names] for line, cells in rows])
            for what, names in columns.items()
        }
        t, q = found["t"][:, 0], found["q"]
        try:
            given = cls(t, q, found.get("qd", 0 * q), found.get("qdd", 0 * q))
            qd = given.qd if "qd" in found else _derivative(t, q, 1)
            twice = (qd, 1) if "qd" in found else (q, 2)
            return cls(t, q, qd, given.qdd if "qdd" in found else _derivative(t, *twice))
        except ScrewdynError as error:
            raise ScrewdynError(f"{file!r}: {error}") from None


def _derivative(t: Array, values: Array, order: int) -> Array:
    """Of a spline of degree 5 through the values (samples, n)."""
    advice = "or add columns 'qd:…' and 'qdd:…'"
    if len(t) < _SPLINE:
        raise ScrewdynError(f"at least {_SPLINE} samples are needed for rates; {advice}")
    if (same := np.diff(t) == 0).any():
        raise ScrewdynError(f"samples {same.argmax()} and {same.argmax() + 1} have the same time: no rates; {advice}")
    return np.asarray(make_interp_spline(t, values, k=_SPLINE - 1)(t, order))


def _numbers(given: Any, what: str) -> Array:
    found: Array = expressions.read(given, what, "be an array of numbers", by=expressions.real)
    if not np.isfinite(found).all():
        raise ShapeError(f"{what} has entries that are not finite")
    return found


def _table(file: str) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """The names of the columns, and the rows with their lines."""
    try:
        with file_errors(f"read the file {file!r}"), open(file, newline="", encoding="utf-8-sig") as stream:
            reader = csv.reader(stream)
            header = [unquote(name.strip()) for name in next(reader, [])]
            rows = [(reader.line_num, row) for row in reader if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ScrewdynError(f"{file!r} is not a table of comma-separated values: {error}") from None
    if twice := [name for k, name in enumerate(header) if name in header[:k]]:
        raise ScrewdynError(f"{file!r} has the column {twice[0]!r} twice")
    for line, row in rows:
        if len(row) != len(header):
            raise ScrewdynError(f"{file!r}, line {line}: {len(header)} entries were expected; got {len(row)}")
    return header, [(line, dict(zip(header, row, strict=True))) for line, row in rows]


def _entry(file: str, line: int, name: str, cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise ScrewdynError(f"{file!r}, line {line}: {name!r} must be a number; got {cell!r}") from None


def operations(arm: Arm) -> dict[str, dict[str, int]]:
    """Operations as counted by tracing: M, C and τ of the library, M and C by the DeNOC formulation."""
    tree, denoc, n = arm.tree, arm.formulation, arm.tree.nv
    return {
        "M": tree.operation_count("mass_matrix"),
        "C": tree.operation_count("coriolis_matrix"),
        "inverse dynamics": tree.operation_count("inverse_dynamics"),
        "M, DeNOC": operations_of(denoc.mass_matrix, q=n),
        "C, DeNOC": operations_of(denoc.coriolis_matrix, q=n, qd=n),
    }


def time_ratios(arms: Mapping[str, Arm], trajectories: Mapping[str, Trajectory]) -> dict[str, float]:
    """Time of inverse dynamics along the trajectories, for equally many states, relative to the first arm."""
    calls = {name: _call(arm, trajectories[name]) for name, arm in arms.items()}
    least = dict.fromkeys(calls, np.inf)
    for _ in range(_TURNS):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            least[name] = min(least[name], time.perf_counter() - start)
    return {name: float(x / next(iter(least.values()))) for name, x in least.items()}


def _call(arm: Arm, path: Trajectory) -> Callable[[], Array]:
    """Inverse dynamics of 4096 states: the samples of the trajectory, repeated."""
    n = arm.tree.nv
    q, qd, qdd = (np.ascontiguousarray(np.resize(x, (_STATES, n)).T).T for x in (path.q, path.qd, path.qdd))
    if processor() is None:
        return lambda: arm.tree.inverse_dynamics(q, qd, qdd)
    fast = arm.tree.compile(threads=1).wait()
    out = np.empty((n, _STATES)).T
    return lambda: fast.inverse_dynamics(q, qd, qdd, out=out)


class Spread(NamedTuple):
    """The median and the largest of the values of a quantity over the workspace."""

    median: float
    largest: float


class Section(NamedTuple):
    """Manipulability over a planar workspace, or over the section x-z through the middle of a spatial one.

    Attributes
    ----------
    labels : tuple of str
        Names of the axes; one if the tip moves on a line.
    axes : tuple of (m,) arrays
        Coordinates along the axes, m.
    w : (m,) or (m, m) array
        Manipulability at one configuration that reaches the position; NaN out of reach.
    """

    labels: tuple[str, ...]
    axes: tuple[Array, ...]
    w: Array


class Criteria(NamedTuple):
    """What :func:`compare` finds for one arm.

    If the workspace has no size, its dimension is 0, there is no section, and what refers to the workspace is NaN.

    Attributes
    ----------
    tip : str
        The link whose origin works.
    operations : mapping
        Operations by quantity ("M", "C", "inverse dynamics", "M, DeNOC", "C, DeNOC") and operation, as for
        :meth:`screwdyn.KinematicTree.operation_count`.
    time : float
        Time of inverse dynamics along the trajectory, for equally many states, relative to the first arm; of compiled
        code, or without the extra ``compile`` of the default kernel.
    trajectory : Trajectory
    torque : (samples, n) array
        τ = M q̈ + C q̇ + g along the trajectory, N m or N.
    units : tuple of str
        "N m" or "N" for each coordinate.
    coordinates : tuple of str
    dimension : int
        Of the workspace: 1, 2 or 3, or 0 without size.
    workspace : Estimate
        Length, area or volume of the positions of the tip, m, m² or m³, with its standard error.
    manipulability : float
        The greatest w = √det(J Jᵀ) (Bhangale Eq. 21) of the velocity of the tip; J has the rows of the axes of the
        workspace.
    mean_manipulability : float
        The mean of w over the workspace, at one configuration for each position.
    condition : Spread
        Condition number of M over the workspace (2-norm, SI units). It depends on the units if joints turn and slide.
    coupling : Spread
        Condition number of D M D, where D scales the diagonal to 1: it does not depend on units, and is 1 where M is
        diagonal.
    section : Section or None
    missing : tuple of str
        Why criteria are not available.
    """

    tip: str
    operations: Mapping[str, Mapping[str, int]]
    time: float
    trajectory: Trajectory
    torque: Array
    units: tuple[str, ...]
    coordinates: tuple[str, ...]
    dimension: int = 0
    workspace: Estimate = Estimate(math.nan, math.nan)
    manipulability: float = math.nan
    mean_manipulability: float = math.nan
    condition: Spread = Spread(math.nan, math.nan)
    coupling: Spread = Spread(math.nan, math.nan)
    section: Section | None = None
    missing: tuple[str, ...] = ()


def criteria(arm: Arm, trajectory: Trajectory, time: float, samples: int, seed: int) -> Criteria:
    """The criteria of one arm."""
    torque = arm.tree.inverse_dynamics(trajectory.q, trajectory.qd, trajectory.qdd)
    found = Criteria(arm.tip, operations(arm), time, trajectory, torque, arm.units, arm.tree.coordinates)
    try:
        reach = Reach(arm, np.random.default_rng(seed))
        size, q = reach.measure(samples)
    except NoSizeError as error:
        return found._replace(missing=(str(error),))
    M = arm.tree.mass_matrix(q)
    # Scaled to a unit diagonal; rows of freedoms without inertia stay zero.
    diagonal = np.diagonal(M, axis1=-2, axis2=-1)
    d = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1))
    return found._replace(
        dimension=len(reach.low),
        workspace=size,
        manipulability=reach.greatest(reach.manipulability),
        mean_manipulability=float(reach.manipulability(q).mean()),
        condition=_spread(np.linalg.cond(M)),
        coupling=_spread(np.linalg.cond(d[..., :, None] * M * d[..., None, :])),
        section=_section(reach, samples),
    )


def _spread(values: Array) -> Spread:
    return Spread(float(np.median(values)), float(values.max()))


def _section(reach: Reach, samples: int) -> Section:
    """Over axes that are x, y or z of the base frame, or have the names of their directions."""
    dimension = len(reach.low)
    kept = [0, 2] if dimension == 3 else [*range(dimension)]
    count = math.ceil(samples ** (1 / len(kept)))
    axes = [np.linspace(reach.low[k], reach.high[k], count) for k in kept]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    x = np.tile((reach.low + reach.high) / 2, (grid[..., 0].size, 1))
    x[:, kept] = grid.reshape(-1, len(kept))
    q, reached = reach.solve(x)
    w = np.full(len(x), np.nan)
    w[reached] = reach.manipulability(q[reached])
    return Section(tuple(map(_name, reach.axes.T[kept])), tuple(axes), w.reshape(grid.shape[:-1]))


def _name(axis: Array) -> str:
    """x, y or z for an axis of the base frame, otherwise its direction."""
    k = int(np.argmax(axis))
    return "xyz"[k] if axis[k] > 1 - 1e-9 else f"along ({', '.join(f'{a:.2g}' for a in axis)})"


# A criterion: its label, min or max, and for each arm its value, the error of the value, and its text. Values are
# distinguished if they differ by more than the sum of their errors.
_Line = tuple[str, Callable[..., Any], list[tuple[float, float, str]]]


def _lines(arms: Mapping[str, Criteria]) -> Iterator[_Line]:
    """The criteria; numbers with three digits, which are also what is compared."""
    first, *_ = arms.values()
    for what in first.operations:
        cells = []
        for count in (c.operations[what] for c in arms.values()):
            named = [f"{n} {'sin/cos' if key == 'sincos' else key}" for key, n in count.items() if n]
            cells.append((float(sum(count.values())), 0.0, ", ".join(named) or "none"))
        yield f"{what}: operations", min, cells

    def line(label: str, best: Callable[..., Any], error: float, value: Callable[[Criteria], float]) -> _Line:
        shown = [float(f"{value(c):.3g}") for c in arms.values()]
        return label, best, [(x, error * x, f"{x:.3g}") for x in shown]

    yield line(f"time of inverse dynamics / {next(iter(arms))}", min, _TIME, lambda c: c.time)
    sizes = [(c.workspace, UNITS.get(c.dimension)) for c in arms.values()]
    yield "workspace", max, [(*size, f"{size.value:.4g} ± {size.error:.1g} {unit}") for size, unit in sizes]
    yield line("manipulability, largest", max, 0.0, lambda c: c.manipulability)
    yield line("manipulability, mean", max, _MEAN, lambda c: c.mean_manipulability)
    yield line("condition of M, median", min, _MEAN, lambda c: c.condition.median)
    yield line("condition of M, largest", min, _LARGEST, lambda c: c.condition.largest)
    yield line("coupling of M, median", min, _MEAN, lambda c: c.coupling.median)
    yield line("coupling of M, largest", min, _LARGEST, lambda c: c.coupling.largest)


@dataclass(frozen=True, repr=False)
class Selection:
    """The criteria of several arms. Its text is a table, in which * marks the best values of a line.

    Fewer operations, less time, condition numbers near 1, a larger workspace and a larger manipulability are better.
    Workspaces and manipulabilities of different dimensions are not compared. Values are distinguished only if they
    differ by more than their errors. What an arm does not have is "n/a", with the reason below the table.

    Attributes
    ----------
    arms : mapping from name to Criteria
    """

    arms: Mapping[str, Criteria]

    def __getitem__(self, name: str) -> Criteria:
        """The criteria of one arm. UnknownNameError if there is none of this name."""
        UnknownNameError.check(name, self.arms, "arm")
        return self.arms[name]

    def __repr__(self) -> str:
        arms = self.arms
        # Lengths, areas and volumes cannot be compared.
        alike = len({c.dimension for c in arms.values() if c.dimension}) == 1
        rows: list[tuple[str, ...]] = [("", *arms)]
        for label, best, cells in _lines(arms):
            known = [(value, error) for value, error, _ in cells if not math.isnan(value)]
            first, error = best(known, default=(math.nan, 0.0))
            equal = [abs(value - first) <= error + own for value, own, _ in cells]
            marked = (alike or best is min) and sum(equal) < len(known)
            marks = [" *" * (marked and mark) for mark in equal]
            texts = ["n/a" if math.isnan(x) else text + mark for (x, _, text), mark in zip(cells, marks, strict=True)]
            rows.append((label, *texts))
        missing = (f"n/a of {name!r}: {reason}" for name, c in arms.items() for reason in c.missing)
        return "\n".join([*aligned(rows), *missing])

    def plot(self) -> Figure:
        """Draw the criteria, sections of the workspaces coloured by manipulability, and the torques.

        Returns
        -------
        matplotlib.figure.Figure
            ``selection.plot().savefig("arms.png")`` writes it.

        Raises
        ------
        ScrewdynError
            If Matplotlib, the extra ``plot``, is not installed.
        """
        from screwdyn.papers.figure import plot_selection

        return plot_selection(self.arms)


def compare(
    arms: Mapping[str, KinematicTree],
    trajectories: Mapping[str, Trajectory | Run] | None = None,
    *,
    limits: Mapping[str, Limits] | None = None,
    tips: Mapping[str, str] | None = None,
    samples: int = 4096,
    seed: int = 0,
) -> Selection:
    """Compare arms by the cost of their dynamics, their workspaces, their manipulability and the conditioning of M.

    Parameters
    ----------
    arms : mapping from name to KinematicTree
        Arms or trees whose joints are revolute, prismatic, helical, universal, cylindrical or fixed.
    trajectories : mapping from name of an arm to Trajectory or Run, optional
        By default each joint moves through its range by Bhangale Eq. 23, in 10 s.
    limits : mapping from name of an arm to mapping from position to (low, high), optional
        Ranges of joints, rad or m; by default the limits of the joints of the tree. Joints that only turn may have
        none: their range is a full turn.
    tips : mapping from name of an arm to link, optional
        The link whose origin works; by default the last one with the most freedoms on its path.
    samples : int
        Positions that are tried for the workspace, in quasi-random order, and again for its section.
    seed : int
        Of the random shifts of the samples: equal seeds give equal results, except for the time.

    Returns
    -------
    Selection

    Raises
    ------
    ScrewdynError
        If an argument is not of the type above, there is no arm, a range is empty or not finite, or an arm has joints
        of other kinds or a joint that can slide without end.
    UnknownNameError
        For a name that is not that of an arm, position or link.
    ShapeError
        If a trajectory does not have the coordinates of its arm.
    UnboundSymbolError
        If numbers of an arm contain symbols.

    Examples
    --------
    >>> import screwdyn as sd
    >>> arms = {"RTX": sd.robots.rtx(), "Stanford": sd.robots.stanford()}
    >>> ranges = {"RTX": {"b1": (0, 1)}, "Stanford": {"b3": (0, 1)}}
    >>> found = sd.selection.compare(arms, limits=ranges, samples=256)
    >>> print(f"{found['RTX'].manipulability:.4f} m³")  # a2 a3
    0.0864 m³
    """
    given = {} if trajectories is None else trajectories
    ranges = {} if limits is None else limits
    ends = {} if tips is None else tips
    for what, mapping, kinds in (
        ("arms", arms, (KinematicTree,)),
        ("trajectories", given, (Trajectory, Run)),
        ("limits", ranges, (Mapping,)),
        ("tips", ends, (str,)),
    ):
        expected = " or ".join(kind.__name__ for kind in kinds)
        if not isinstance(mapping, Mapping):
            raise ScrewdynError(f"{what} must be a mapping from name of an arm to {expected}; got {cut_repr(mapping)}")
        for name, value in mapping.items():
            if not isinstance(value, kinds):
                raise ScrewdynError(f"{what}[{name!r}] must be a {expected}; got {cut_repr(value)}")
    for what, number, least in (("samples", samples, 1), ("seed", seed, 0)):
        if not isinstance(number, int | np.integer) or number < least:
            raise ScrewdynError(f"{what} must be an integer, at least {least}; got {number!r}")
    if not arms:
        raise ScrewdynError("give at least one arm to compare")
    for name in (*given, *ranges, *ends):
        UnknownNameError.check(name, arms, "arm")
    read = {name: Arm.of(name, tree, ends.get(name), ranges.get(name, {})) for name, tree in arms.items()}
    paths = {
        name: Trajectory.of(given[name]) if name in given else Trajectory.cycloidal(arm.low, arm.high)
        for name, arm in read.items()
    }
    for name, path in paths.items():
        if path.q.shape[1] != len(names := arms[name].coordinates):
            raise ShapeError(f"the trajectory of {name!r} has {path.q.shape[1]} coordinates; expected {list(names)}")
    ratios = time_ratios(read, paths)
    return Selection({name: criteria(arm, paths[name], ratios[name], samples, seed) for name, arm in read.items()})
