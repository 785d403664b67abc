"""Motions along which arms are compared: the cycloidal motion of the source, and files."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.interpolate import make_interp_spline

from screwdyn.core.errors import ScrewdynError, ShapeError, UnknownNameError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.tree import KinematicTree

__all__ = ["Trajectory"]

# Samples that a spline of degree 5 needs.
_SPLINE = 6


@dataclass(frozen=True)
class Trajectory:
    """Samples of a motion of an arm.

    Attributes
    ----------
    t : (samples,) array
        Increasing times, s.
    q, qd, qdd : (samples, n) arrays
        Positions, rates and accelerations, in the order of the arm's coordinates.

    Raises
    ------
    ShapeError
        If the shapes do not fit together, an entry is not finite, or the times do not increase.
    """

    t: Array
    q: Array
    qd: Array
    qdd: Array

    def __post_init__(self) -> None:
        for what in ("t", "q", "qd", "qdd"):
            value = np.array(getattr(self, what), dtype=float)
            object.__setattr__(self, what, value)
            if not np.isfinite(value).all():
                raise ShapeError(f"{what} of a trajectory has entries that are not finite")
        shapes = {x.shape for x in (self.q, self.qd, self.qdd)}
        if self.t.ndim != 1 or not self.t.size or shapes != {(len(self.t), self.q.shape[-1])}:
            got = ", ".join(f"{what} {getattr(self, what).shape}" for what in ("t", "q", "qd", "qdd"))
            raise ShapeError(f"a trajectory has t (samples,) and q, qd, qdd (samples, n); got {got}")
        if not (np.diff(self.t) > 0).all():
            raise ShapeError(f"the times of a trajectory must increase; they do not after sample {self._stop()}")

    @classmethod
    def cycloidal(cls, start: ArrayLike, end: ArrayLike, duration: float = 10.0, step: float = 0.01) -> Self:
        """From start to end (n,), at rest at both: q = start + (end − start) (t/T − sin(2πt/T)/2π).

        From 0 to π it is Bhangale Eq. 23. ShapeError if the ends are not vectors of one length.
        """
        start, end = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
        if start.ndim != 1 or start.shape != end.shape:
            raise ShapeError(f"start and end must be vectors of one length; got shapes {start.shape} and {end.shape}")
        if not (duration > 0 and step > 0):
            raise ShapeError(f"duration and step must be positive, s; got {duration!r} and {step!r}")
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

        The columns are ``t``, ``q:<position>``, ``qd:<coordinate>`` and ``qdd:<coordinate>``; others are ignored. If
        there is no column of rates or accelerations of the tree, they are derivatives of a spline of degree 5.

        Raises
        ------
        ScrewdynError
            If the file cannot be read or is not such a table; the message has the line or the missing columns.
        """
        file = os.fspath(path)
        header, rows = _table(file)
        rates = [f"{what}:{name}" for what in ("qd", "qdd") for name in tree.coordinates]
        positions = [f"q:{name}" for name in tree.positions]
        given = any(name in header for name in rates)
        wanted = ["t", *positions, *(rates if given else [])]
        if missing := [name for name in wanted if name not in header]:
            hint = UnknownNameError.hint(missing[0], header)
            raise ScrewdynError(f"{file!r} has no column {', '.join(map(repr, missing))}; {hint}")
        samples = np.array([_numbers(file, header, row, wanted, line) for line, row in rows])
        if not len(samples):
            raise ScrewdynError(f"{file!r} has no samples")
        t, n = samples[:, 0], len(positions)
        try:
            if given:
                return cls(t, *np.split(samples[:, 1:], 3, axis=1))
            if len(t) < _SPLINE:
                raise ScrewdynError(f"at least {_SPLINE} samples are needed for rates; or add columns {rates[0]!r}, …")
            zero = np.zeros((len(t), n))
            cls(t, samples[:, 1:], zero, zero)
            spline = make_interp_spline(t, samples[:, 1:], k=_SPLINE - 1)
            return cls(t, samples[:, 1:], spline(t, 1), spline(t, 2))
        except ScrewdynError as error:
            raise ScrewdynError(f"{file!r}: {error}") from None

    def _stop(self) -> int:
        return int(np.flatnonzero(np.diff(self.t) <= 0)[0])


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
    header = [name.strip() for name in header]
    if twice := [name for k, name in enumerate(header) if name in header[:k]]:
        raise ScrewdynError(f"{file!r} has the column {twice[0]!r} twice")
    return header, rows


def _numbers(file: str, header: Sequence[str], row: Sequence[str], wanted: Sequence[str], line: int) -> list[float]:
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
