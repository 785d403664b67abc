"""What there is to see of a robot that moves: bodies, their poses over the frames of a film, arrows and marks.

A scene is data, which :mod:`screwdyn.views.web` draws.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from screwdyn.core.types import Array
from screwdyn.views.triangles import Color, Solid

__all__ = ["LOOPS", "Arrow", "Camera", "Flash", "Node", "Part", "Scene"]

Flags = npt.NDArray[np.bool_]
# The group of the nodes of joints that close loops.
LOOPS = "loops"


@dataclass(eq=False)
class Part:
    """Solids that appear and disappear together.

    Attributes
    ----------
    name : str
        Unique within its node.
    solids : tuple of Solid
    shown : (frames,) array of bool
    """

    name: str
    solids: tuple[Solid, ...]
    shown: Flags


@dataclass(eq=False)
class Node:
    """A moving frame with its parts.

    Attributes
    ----------
    name : str
        Of the link, or of what it shows.
    poses : (frames, 4, 4) array
        In the base frame of the robot, m; the identity while it is not shown.
    shown : (frames,) array of bool
    parts : list of Part
    group : str
        Names are unique within their group.
    """

    name: str
    poses: Array
    shown: Flags
    parts: list[Part] = field(default_factory=list)
    group: str = "links"


@dataclass(frozen=True, eq=False)
class Arrow:
    """A vector over the frames.

    Attributes
    ----------
    name : str
        With the magnitude of the longest arrow.
    color : Color
    start, end : (frames, 3) arrays
        In the base frame, m.
    shown : (frames,) array of bool
    """

    name: str
    color: Color
    start: Array
    end: Array
    shown: Flags


@dataclass(frozen=True, eq=False)
class Flash:
    """A mark where something happened, over a short time.

    Attributes
    ----------
    text : str
    position : (3,) array
        In the base frame, m.
    impact : bool
        Whether energy was lost.
    shown : (frames,) array of bool
    """

    text: str
    position: Array
    impact: bool
    shown: Flags


@dataclass(frozen=True, eq=False)
class Camera:
    """A point of view.

    Attributes
    ----------
    position, target, up : (3,) arrays
        In the base frame, m; ``up`` is a unit vector opposite to gravity.
    """

    # Vertical, degrees.
    FIELD_OF_VIEW: ClassVar[float] = 40.0

    position: Array
    target: Array
    up: Array


@dataclass(frozen=True, eq=False)
class Scene:
    """All there is to see.

    Attributes
    ----------
    times : (frames,) array
        s.
    nodes : tuple of Node
    arrows : tuple of Arrow
    flashes : tuple of Flash
    camera : Camera
    size : float
        Of the robot, m.
    """

    times: Array
    nodes: tuple[Node, ...]
    arrows: tuple[Arrow, ...]
    flashes: tuple[Flash, ...]
    camera: Camera
    size: float

    @property
    def grid(self) -> tuple[float, int]:
        """Of a horizontal grid about the origin: edge of a cell, m, and cells from the origin to each side.

        The edge is 1, 2 or 5 times a power of ten.
        """
        power = 10.0 ** float(np.floor(np.log10(self.size / 3)))
        cell = max([power, *(k * power for k in (2, 5) if k * power <= self.size / 3)])
        return cell, int(np.ceil(1.5 * self.size / cell))

    def node(self, name: str) -> Node:
        """The node of a link."""
        return next(node for node in self.nodes if node.name == name)

    def legend(self, frame: int) -> list[tuple[str, Color]]:
        """Names and colours of the arrows of all frames, and of the loops that are shown in one."""
        loops = [node for node in self.nodes if node.group == LOOPS and node.shown[frame]]
        named = [(f"loop {node.name}", node.parts[0].solids[0].color) for node in loops]
        return [(arrow.name, arrow.color) for arrow in self.arrows] + named

    def visible(self, frame: int) -> Iterator[tuple[Array, Solid]]:
        """The pose and the surface of every solid that is shown in a frame."""
        for node in self.nodes:
            if node.shown[frame]:
                for part in node.parts:
                    if part.shown[frame]:
                        yield from ((node.poses[frame], solid) for solid in part.solids)
