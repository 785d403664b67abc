"""What the figure of a run shows: curves in panels of one unit each, and what is too small to be more than noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from screwdyn.core.errors import ScrewdynError
from screwdyn.core.types import Array
from screwdyn.screws.groups import rotation_vector_of

__all__ = ["LINES", "NOISE", "QUANTITIES", "Curve", "Panel", "energy_scale", "panels", "sort_of"]

# Largest number of lines of a panel that can be told apart.
LINES = 8
# Variations below this fraction of the physical scale of a quantity are errors of the integration and rounding.
NOISE = 1e-7
QUANTITIES = ("positions", "velocities", "torques", "energy")

# Of quantity and sort of freedom: a name, a label of the axis, and the unit.
_NAMES = {
    ("positions", "turn"): ("angles", "angle", "rad"),
    ("positions", "slide"): ("displacements", "displacement", "m"),
    ("velocities", "turn"): ("angular velocities", "angular velocity", "rad/s"),
    ("velocities", "slide"): ("velocities", "velocity", "m/s"),
    ("torques", "turn"): ("torques", "torque", "N m"),
    ("torques", "slide"): ("forces", "force", "N"),
}


class Joint(Protocol):
    """The attributes of :class:`screwdyn.Joint` that a run records and a figure draws."""

    @property
    def kind(self) -> str: ...
    @property
    def passive(self) -> bool: ...
    @property
    def nq(self) -> int: ...
    @property
    def nv(self) -> int: ...
    @property
    def limits(self) -> Sequence[float] | None: ...
    @property
    def effort(self) -> float | None: ...
    @property
    def velocity(self) -> float | None: ...


class Run(Protocol):
    """The attributes of :class:`screwdyn.Run` that are drawn."""

    @property
    def t(self) -> Array: ...
    @property
    def coordinates(self) -> Sequence[str]: ...
    @property
    def positions(self) -> Sequence[str]: ...
    @property
    def joints(self) -> Mapping[str, Joint]: ...
    @property
    def energy(self) -> Any: ...
    @property
    def events(self) -> Sequence[Any]: ...
    def __getitem__(self, position: str, /) -> Array: ...
    def velocity(self, coordinate: str, /) -> Array: ...
    def torque(self, coordinate: str, /) -> Array: ...


@dataclass(frozen=True, eq=False)
class Curve:
    """The history of one quantity of one freedom.

    Attributes
    ----------
    name, label : str
        The coordinate, and what is drawn: ``"hip[rx]"`` for the rotation vector of ``"hip[wx]"``.
    values : (samples,) array
        In the unit of the panel; NaN while the tree does not have the freedom.
    limits : tuple of float
        Finite limits of the values.
    """

    name: str
    label: str
    values: Array
    limits: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Panel:
    """Curves of one unit.

    Attributes
    ----------
    title, axis : str
        The axis with its unit.
    curves : sequence of Curve
        At most ``LINES``.
    others : sequence of (samples,) arrays
        The curves of the same kind that are drawn in grey.
    factor : float
        Unit of the panel as a multiple of the SI unit.
    scale : float
        Physical scale of the values, in the unit of the panel.
    """

    title: str
    axis: str
    curves: Sequence[Curve]
    others: Sequence[Array]
    factor: float
    scale: float


def panels(run: Run, what: Sequence[str], coordinates: str | Sequence[str] | None, degrees: bool) -> list[Panel]:
    """The panels of some quantities but the energy.

    Freedoms are separated into those that turn and those that slide, and into driven and passive ones. Without a choice
    of coordinates, a panel has the ``LINES`` curves that vary most.

    Parameters
    ----------
    run : Run
    what : sequence of str
        Of ``QUANTITIES``.
    coordinates : str or sequence of str, optional
        Coordinates, positions or joints, of which alone curves are drawn; more than ``LINES`` in a panel are
        distributed over several panels.
    degrees : bool
        Degrees instead of radians.

    Raises
    ------
    UnknownNameError
        If the tree never had a coordinate.
    """
    chosen = None if coordinates is None else _freedoms(run, coordinates)
    groups: dict[tuple[bool, str], list[str]] = {}
    for name in run.coordinates:
        groups.setdefault((run.joints[name].passive, sort_of(run, name)), []).append(name)
    found = []
    positions = _positions(run)
    for quantity in what:
        for (passive, sort), names in sorted(groups.items(), key=lambda group: (group[0][0], group[0][1] != "turn")):
            if quantity == "energy" or (quantity == "torques" and passive):
                continue
            selection = _largest(run, positions, names) if chosen is None else [x for x in names if x in chosen]
            plural, singular, unit = _NAMES[quantity, sort]
            factor = 180 / np.pi if degrees and unit.startswith("rad") else 1.0
            unit = unit.replace("rad", "°") if degrees else unit
            curves = {name: _curve(run, positions, quantity, name, factor) for name in names}
            whose = "motors" if quantity == "torques" else "passive joints" if passive else "driven joints"
            for first in range(0, len(selection), LINES):
                part = selection[first : first + LINES]
                count = f", part {first // LINES + 1}" if len(selection) > LINES else ""
                found.append(
                    Panel(
                        f"{plural} of {whose}{count}",
                        f"{singular} ({unit})",
                        [curves[name] for name in part],
                        [] if chosen is not None else [x.values for name, x in curves.items() if name not in part],
                        factor,
                        factor * _scale(run, quantity),
                    )
                )
    return found


def energy_scale(run: Run) -> float:
    """The largest magnitude of all entries of the ledger, J."""
    return max((_largest_of(x) for x in vars(run.energy).values()), default=0.0)


def sort_of(run: Run, name: str) -> str:
    """The type of a position or a coordinate: "turn", "slide" or "quaternion"."""
    joint = run.joints[name]
    if joint.nv == 1:
        return "slide" if joint.kind == "prismatic" else "turn"
    label = name[name.rindex("[") + 1 : -1]
    if label[0] in "pv":
        return "slide"
    return "quaternion" if joint.nq > joint.nv and len(label) == 1 else "turn"


def _scale(run: Run, quantity: str) -> float:
    """The scale of a quantity in SI units: a radian or a metre, in the time of the run, or the energies."""
    duration = float(run.t[-1] - run.t[0])
    scales: dict[str, Callable[[], float]] = {
        "positions": lambda: 1.0,
        "velocities": lambda: 1.0 / duration if duration else 1.0,
        "torques": lambda: energy_scale(run),
    }
    return scales[quantity]()


def _largest_of(x: Array) -> float:
    """The largest magnitude, without NaN."""
    return float(np.fmax.reduce(np.abs(x), axis=None, initial=0.0))


def _curve(run: Run, positions: Mapping[str, tuple[str, Array]], quantity: str, name: str, factor: float) -> Curve:
    """The curve of a quantity of a freedom."""
    joint = run.joints[name]
    if quantity == "positions":
        label, values = positions[name]
        limits = joint.limits
    else:
        label, values = name, run.velocity(name) if quantity == "velocities" else run.torque(name)
        most = joint.velocity if quantity == "velocities" else joint.effort
        limits = None if most is None else (-most, most)
    return Curve(name, label, factor * values, tuple(factor * x for x in limits or () if np.isfinite(x)))


def _positions(run: Run) -> dict[str, tuple[str, Array]]:
    """For each freedom the label and the values of its position; a quaternion becomes a rotation vector."""
    found = {}
    for name in run.positions:
        if sort_of(run, name) != "quaternion":
            found[_freedom(name, run)] = (name, run[name])
        elif name.endswith("[x]"):
            joint = name.removesuffix("[x]")
            vector = _rotation_vector(np.stack([run[f"{joint}[{component}]"] for component in "xyzw"], axis=-1))
            found |= {f"{joint}[w{axis}]": (f"{joint}[r{axis}]", vector[:, k]) for k, axis in enumerate("xyz")}
    return found


def _rotation_vector(q: Array) -> Array:
    """Rotation vectors, (samples, 3), rad, of quaternions."""
    # q and -q are the same rotation: choose the signs for which the curves are continuous.
    turned = np.sum(q[1:] * q[:-1], axis=-1) < 0
    q[1:] *= np.where(np.cumsum(turned) % 2, -1.0, 1.0)[:, None]
    return np.asarray(rotation_vector_of(q))


def _freedom(position: str, run: Run) -> str:
    """The coordinate of a position that is no component of a quaternion, such as "pin[v]" of "pin[p]"."""
    if position in run.coordinates:
        return position
    stem, _, component = position[:-1].rpartition("[")
    turned = component.startswith("angle")
    return f"{stem}[w{component.removeprefix('angle')}]" if turned else f"{stem}[v{component.removeprefix('p')}]"


def _freedoms(run: Run, names: str | Sequence[str]) -> set[str]:
    """The freedoms of coordinates, positions or joints."""
    if not isinstance(names, str) and not (isinstance(names, Sequence) and names):
        raise ScrewdynError(f"coordinates must be a name or a sequence of names; got {names!r}")
    found: set[str] = set()
    for name in [names] if isinstance(names, str) else names:
        entries = {x for x in run.coordinates if isinstance(name, str) and x.startswith(f"{name}[")}
        if name in run.positions and name not in run.coordinates:
            quaternion = sort_of(run, name) == "quaternion"
            stem = name[: name.rindex("[")]
            entries = {f"{stem}[w{axis}]" for axis in "xyz"} if quaternion else {_freedom(name, run)}
        elif not entries:
            run.velocity(name)  # its error says what is wrong with the name
            entries = {name}
        found |= entries
    return found


def _largest(run: Run, positions: Mapping[str, tuple[str, Array]], names: Sequence[str]) -> list[str]:
    """The freedoms of a group with the largest motions and torques; the same ones in all panels."""
    sizes = np.array(
        [
            [_largest_of(x - np.fmin.reduce(x)), _largest_of(run.torque(name))]
            for name in names
            for x in [positions[name][1]]
        ]
    )
    rank = (sizes / np.maximum(sizes.max(axis=0), np.finfo(float).tiny)).max(axis=1)
    kept = {names[k] for k in np.argsort(-rank, kind="stable")[:LINES]}
    return [name for name in names if name in kept]
