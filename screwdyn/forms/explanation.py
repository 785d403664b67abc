"""What one link contributes to the dynamics and to which joints, as a text and as a figure."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from screwdyn.core.errors import ScrewdynError, ShapeError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.mechanism.topology import Topology
from screwdyn.physics.contribution import Contribution
from screwdyn.physics.padded import Padded, padded_sum

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Explanation"]

# Entries below this fraction of the scale of their matrix are rounding.
_ZERO = 1e-12


class Tree(Protocol):
    """The attributes of :class:`screwdyn.KinematicTree` that an explanation needs."""

    @property
    def coordinates(self) -> tuple[str, ...]: ...
    @property
    def nv(self) -> int: ...
    @property
    def topology(self) -> Topology: ...
    @property
    def mass(self) -> float: ...
    @property
    def gravity(self) -> Array: ...
    def neutral(self) -> Array: ...
    def contribution(self, link: str, q: ArrayLike, qd: ArrayLike) -> Contribution: ...
    def contributions(self, q: ArrayLike, qd: ArrayLike) -> list[Contribution]: ...


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

    def __init__(self, tree: Tree, link: str, q: ArrayLike | None, qd: ArrayLike | None) -> None:
        self.link, self.coordinates = link, tuple(tree.coordinates)
        state = tree.neutral() if q is None else q, np.zeros(tree.nv) if qd is None else qd
        self.part: Contribution = tree.contribution(link, *state)  # raises the errors for what is no array of numbers
        self.q, self.qd = (np.array(x, dtype=float) for x in state)
        if self.q.ndim != 1 or self.qd.ndim != 1:
            raise ShapeError(f"explain takes one state; got q of shape {self.q.shape} and qd of {self.qd.shape}")
        parts = tree.contributions(self.q, self.qd) or [self.part]
        self.M, self.C, self.g = (padded_sum(getattr(part, x) for part in parts) for x in ("M", "C", "g"))
        self._given = [("q", q is not None, "neutral"), ("qd", qd is not None, "zero")]
        attachments = tree.topology.attachments.values()
        self._turns = {
            name: bool(np.any(screw[:3] != 0))
            for at in attachments
            for name, screw in zip(at.coordinates, at.joint.screws.T, strict=True)
        }
        self._title = _described(tree.topology, link)
        # Scales of M, C and g: those of C and g follow from inertias, rates and the weight.
        inertia = float(np.abs(np.asarray(self.M)).max(initial=0.0))
        weight = tree.mass * float(np.linalg.norm(tree.gravity))
        length = np.sqrt(inertia / tree.mass) if tree.mass else 0.0
        self._scales = (inertia, inertia * float(np.abs(self.qd).max(initial=0.0)), weight * max(length, 1e-3))

    def __str__(self) -> str:
        names = self.part.coordinates
        given = "; ".join(f"{what} {'given' if has else f'not given: {default}'}" for what, has, default in self._given)
        lines = [f"{self._title}.", f"State: {given}."]
        if not names:
            return "\n".join([*lines, "", "No joint moves it: it contributes to no coordinate."])
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
            units = "kg m², N m" if self._turns[name] else "kg, N"
            cells = [_number(x[k], scale) for _, own, total, scale in columns for x in (own, total)]
            rows.append([name, *cells, units])
        reach = f"It contributes to {len(names)} of {len(self.coordinates)} coordinates, those on its path."
        if others := [name for name in self.coordinates if name not in names]:
            reach += f" Its rows and columns of {_some(others)} are zero."
        lines += [
            "",
            reach,
            "Each quantity of the link beside the padded sum ‡ over all links:",
            "",
            *_table(rows),
        ]
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
        from screwdyn.views.heat_map import HeatMap, plot_heat_maps

        turns = {self._turns[name] for name in self.part.coordinates}
        mixed = "SI units" if len(turns) > 1 else ""
        turning = turns == {True}
        units = (
            mixed or ("kg m²" if turning else "kg"),
            mixed or ("kg m²/s" if turning else "kg/s"),
            "N m, N" if mixed else "N m" if turning else "N",
        )
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


def _some(names: Sequence[str]) -> str:
    return ", ".join(names if len(names) <= 8 else [*names[:7], f"and {len(names) - 7} more"])


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns of text, the first and the last one flush left, numbers flush right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if k in (0, len(row) - 1) else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
