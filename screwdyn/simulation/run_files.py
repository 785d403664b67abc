"""Files of runs: NumPy arrays, tables of text, and frames of pandas."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np

from screwdyn.core.errors import ScrewdynError
from screwdyn.core.text import NAME, is_name
from screwdyn.core.types import Array
from screwdyn.simulation.ledger import Energy, Event
from screwdyn.simulation.motion import Samples

__all__ = ["PastEvent", "PastJoint", "frame", "read_npz", "write_csv", "write_npz"]

# Version of the layout of files.
LAYOUT = 2
_SAMPLES = ("t", "q", "qd", "qdd", "torque")
# In a name, what a spreadsheet may take for the end of a cell or a formula, and a shell for a command.
_ACTIVE = re.compile(r"[\x00-\x1f\x7f\"'`,;|=@$&<>\\!%]")


class PastEvent(NamedTuple):
    """An event of a run that was read from a file.

    Attributes
    ----------
    t : float
        Time, s.
    verb : str
        What happened, such as ``"grasp"``.
    link : str
        Name of the link that it concerns.
    subject : str
        Name of what it concerns, for figures and texts.
    """

    t: float
    verb: str
    link: str
    subject: str


class PastJoint(NamedTuple):
    """What a file records of a joint.

    Attributes
    ----------
    kind : str
        As for :class:`Joint`.
    passive : bool
    nq, nv : int
    limits : (float, float) or None
    effort, velocity : float or None
    """

    kind: str
    passive: bool
    nq: int
    nv: int
    limits: tuple[float, float] | None = None
    effort: float | None = None
    velocity: float | None = None


def write_npz(
    motions: Sequence[Samples], energy: Energy, events: Sequence[Event], path: str | os.PathLike[str]
) -> None:
    """See :meth:`Run.to_npz`."""
    arrays: dict[str, Any] = {"layout": LAYOUT, "motions": len(motions)}
    for k, motion in enumerate(motions):
        arrays |= {f"{k}/{what}": getattr(motion, what) for what in _SAMPLES}
        joints = motion.joints.values()
        arrays |= {
            f"{k}/positions": _names(motion.positions),
            f"{k}/coordinates": _names(motion.coordinates),
            f"{k}/joints/name": _names(motion.joints),
            f"{k}/joints/kind": _names([joint.kind for joint in joints]),
            f"{k}/joints/numbers": np.array([(x.passive, x.nq, x.nv) for x in joints], dtype=int).reshape(-1, 3),
            f"{k}/joints/bounds": np.array([_bounds(joint) for joint in joints], dtype=float).reshape(-1, 4),
        }
    arrays |= {f"energy/{name}": x for name, x in vars(energy).items()}
    arrays |= {
        "events/t": np.array([event.t for event in events], dtype=float),
        "events/verb": _names([event.verb for event in events]),
        "events/link": _names([event.link for event in events]),
        "events/subject": _names([event.subject for event in events]),
    }
    name = _path(path)
    try:
        with open(name, "wb") as file:
            np.savez(file, **arrays)
    except OSError as error:
        raise ScrewdynError(f"cannot write {name!r}: {error.strerror or error}") from None


def read_npz(path: str | os.PathLike[str]) -> tuple[tuple[Samples, ...], Energy, tuple[PastEvent, ...]]:
    """The motions, the ledger and the events of a file; see :meth:`Run.from_npz`."""
    name = _path(path)
    try:
        with open(name, "rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {key: stored[key] for key in stored.files}
    except OSError as error:
        raise ScrewdynError(f"cannot read {name!r}: {error.strerror or error}") from None
    except Exception:  # NumPy and zipfile raise anything, also MemoryError for an array that a damaged header announces
        raise ScrewdynError(f"{name!r} is not a file of Run.to_npz") from None
    if not np.array_equal(arrays.get("layout", 0), LAYOUT):
        raise ScrewdynError(f"{name!r} is not a file of Run.to_npz of this version (layout {LAYOUT})")
    try:
        if unfit := [key for key, x in arrays.items() if x.dtype.kind == "U" and not all(map(is_name, x.flat))]:
            raise ValueError(f"{unfit[0]!r} has a name that is not {NAME}")
        motions = tuple(_samples(arrays, k) for k in range(int(_numbers(arrays, "motions", ()))))
        samples = sum(len(motion.t) for motion in motions)
        if not samples:
            raise ValueError("it has no samples")
        energy = Energy(*(_numbers(arrays, f"energy/{entry.name}", (samples,)) for entry in fields(Energy)))
        # Older files have neither subjects of events nor bounds of joints.
        arrays.setdefault("events/subject", arrays["events/link"])
        columns = (arrays[f"events/{what}"].tolist() for what in PastEvent._fields)
        events = tuple(PastEvent(*row) for row in zip(*columns, strict=True))
    except KeyError as error:
        raise ScrewdynError(f"{name!r} is incomplete: it has no {error.args[0]!r}") from None
    except (TypeError, ValueError) as error:
        raise ScrewdynError(f"the entries of {name!r} do not fit together: {error}") from None
    return motions, energy, events


def _samples(arrays: dict[str, Any], k: int) -> Samples:
    """The samples of a motion; ValueError unless their shapes fit together."""
    positions, coordinates = (tuple(arrays[f"{k}/{what}"].tolist()) for what in ("positions", "coordinates"))
    t = _numbers(arrays, f"{k}/t", (arrays[f"{k}/t"].size,))
    widths = {"q": len(positions), "qd": len(coordinates), "qdd": len(coordinates), "torque": len(coordinates)}
    rest = {what: _numbers(arrays, f"{k}/{what}", (len(t), width)) for what, width in widths.items()}
    count = arrays[f"{k}/joints/name"].size
    arrays.setdefault(f"{k}/joints/bounds", np.full((count, 4), np.nan))
    _numbers(arrays, f"{k}/joints/bounds", (count, 4))
    rows = zip(*(arrays[f"{k}/joints/{what}"].tolist() for what in ("name", "kind", "numbers", "bounds")), strict=True)
    joints = {
        joint: PastJoint(
            kind,
            bool(passive),
            nq,
            nv,
            None if np.isnan(low) else (low, high),
            *(None if np.isnan(most) else most for most in bounds),
        )
        for joint, kind, (passive, nq, nv), (low, high, *bounds) in rows
    }
    unknown = {*positions, *coordinates} - joints.keys()
    if unknown:
        raise ValueError(f"there is no joint of {min(unknown)!r}")
    return Samples(positions, coordinates, t, joints=joints, **rest)


def _bounds(joint: Any) -> list[Any]:
    """Limits, effort and velocity of a joint; NaN where it has none."""
    values = [*(joint.limits or (None, None)), joint.effort, joint.velocity]
    return [np.nan if x is None else x for x in values]


def _numbers(arrays: Mapping[str, Any], key: str, shape: tuple[int, ...]) -> Any:
    """An array of numbers of a given shape; ValueError if it is not."""
    x = arrays[key]
    if x.shape != shape or x.dtype.kind not in "fiu":
        raise ValueError(f"{key!r} must be numbers of shape {shape}; got {x.dtype.name} of shape {x.shape}")
    return x


def write_csv(columns: Mapping[str, Array], path: str | os.PathLike[str]) -> None:
    """See :meth:`Run.to_csv`."""
    rows, path = np.column_stack([*columns.values()]).tolist(), _path(path)
    try:
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(_ACTIVE.sub(lambda found: f"%{ord(found[0]):02X}", name) for name in columns)
            writer.writerows(["" if x != x else repr(x) for x in row] for row in rows)
    except OSError as error:
        raise ScrewdynError(f"cannot write {path!r}: {error.strerror or error}") from None


def frame(columns: Mapping[str, Array]) -> Any:
    """See :meth:`Run.to_frame`."""
    try:
        from pandas import DataFrame
    except ImportError as missing:
        raise ScrewdynError(f"to_frame needs pandas ({missing}): pip install pandas") from missing
    return DataFrame(dict(columns)).set_index("t")


def _path(path: str | os.PathLike[str]) -> str:
    """The path of a file; ScrewdynError for anything else, such as the number of an open file."""
    try:
        return os.fspath(path)
    except TypeError:
        raise ScrewdynError(f"a file is given by its path, a str or a Path; got {path!r}") from None


def _names(names: Iterable[str]) -> Any:
    return np.array([*names], dtype=str)
