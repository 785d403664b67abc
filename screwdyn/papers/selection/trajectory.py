"""Motions along which arms are compared: the cycloidal motion of the source, and files."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from reprlib import repr as cut_repr
from typing import Any, Self
from urllib.parse import unquote

import numpy as np
from scipy.interpolate import make_interp_spline

from screwdyn.core import expressions
from screwdyn.core.errors import ScrewdynError, ShapeError, UnknownNameError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.tree import KinematicTree

__all__ = ["Trajectory"]

# Samples that a spline of degree 5 needs.
_SPLINE = 6
_MOST_SAMPLES = 10_000_000


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
        duration, step = _number(duration, "duration"), _number(step, "step")
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
        try:
            file = str(os.fspath(path))
        except TypeError:
            raise ScrewdynError(f"path must be the path of a file; got {cut_repr(path)}") from None
        header, rows = _table(file)
        columns = {"t": ["t"], "q": [f"q:{name}" for name in tree.positions]}
        for what in ("qd", "qdd"):
            names = [f"{what}:{name}" for name in tree.coordinates]
            if any(name in header for name in names):
                columns[what] = names
        wanted = [name for names in columns.values() for name in names]
        if missing := [name for name in wanted if name not in header]:
            hint = UnknownNameError.hint(missing[0], header)
            raise ScrewdynError(f"{file!r} has no column {', '.join(map(repr, missing))}; {hint}")
        samples = np.array([_entries(file, header, row, wanted, line) for line, row in rows])
        if not len(samples):
            raise ScrewdynError(f"{file!r} has no samples")
        found = {what: samples[:, [wanted.index(name) for name in names]] for what, names in columns.items()}
        t, q = found["t"][:, 0], found["q"]
        try:
            zero = np.zeros_like(q)
            cls(t, q, found.get("qd", zero), found.get("qdd", zero))
            rates, qdd = found.get("qd"), found.get("qdd")
            if qdd is None:
                qdd = _derivative(t, q, 2) if rates is None else _derivative(t, rates, 1)
            return cls(t, q, _derivative(t, q, 1) if rates is None else rates, qdd)
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
    try:
        found = expressions.real(given)
    except (TypeError, ValueError):
        raise ShapeError(f"{what} must be an array of numbers; got {cut_repr(given)}") from None
    if not np.isfinite(found).all():
        raise ShapeError(f"{what} has entries that are not finite")
    return found


def _number(given: Any, what: str) -> float:
    found = _numbers(given, what)
    if found.ndim:
        raise ShapeError(f"{what} must be one number, s; got {cut_repr(given)}")
    return float(found)


def _table(file: str) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The names of the columns, and the rows with their lines."""
    try:
        with open(file, newline="", encoding="utf-8-sig") as stream:
            reader = csv.reader(stream)
            header = next(reader, [])
            rows = [(reader.line_num, row) for row in reader if row]
    except OSError as error:
        raise ScrewdynError(f"cannot read the file {file!r}: {error.strerror or error}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise ScrewdynError(f"{file!r} is not a table of comma-separated values: {error}") from None
    header = [unquote(name.strip()) for name in header]
    if twice := [name for k, name in enumerate(header) if name in header[:k]]:
        raise ScrewdynError(f"{file!r} has the column {twice[0]!r} twice")
    return header, rows


def _entries(file: str, header: Sequence[str], row: Sequence[str], wanted: Sequence[str], line: int) -> list[float]:
    if len(row) != len(header):
        raise ScrewdynError(f"{file!r}, line {line}: {len(header)} entries were expected; got {len(row)}")
    cells = dict(zip(header, row, strict=True))
    found = []
    for name in wanted:
        try:
            found.append(float(cells[name]))
        except ValueError:
            raise ScrewdynError(f"{file!r}, line {line}: {name!r} must be a number; got {cells[name]!r}") from None
    return found
