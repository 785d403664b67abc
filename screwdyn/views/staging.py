"""Scenes of trees that move: from the motions of trees over intervals of time to bodies, arrows and marks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from screwdyn.core.errors import ScrewdynError, ScrewdynWarning, UnknownNameError
from screwdyn.core.types import Array
from screwdyn.mechanism.shape import Shape
from screwdyn.mechanism.topology import Topology
from screwdyn.physics.robot import Robot
from screwdyn.physics.subtree_wrench import subtree_wrench
from screwdyn.views.bodies import equivalent_box, grown_body, joint_point, joint_solids, loop_solids
from screwdyn.views.scene import LOOPS, Arrow, Camera, Flags, Flash, Node, Part, Scene
from screwdyn.views.shapes import shape_solids
from screwdyn.views.triangles import Color, Solid, ball

__all__ = ["SHOWN", "Mark", "Stage", "at_rest", "stage_scene", "still"]

# What show= of an animation may name.
SHOWN = ("com", "momentum")
_ROBOT: tuple[Color, ...] = ((0.42, 0.55, 0.70, 1.0), (0.60, 0.68, 0.76, 1.0))
_PAYLOAD, _WAITING = (0.93, 0.60, 0.10, 1.0), (0.93, 0.60, 0.10, 0.45)
_COM, _LINEAR, _ANGULAR = (0.85, 0.10, 0.10, 1.0), (0.00, 0.55, 0.35, 1.0), (0.50, 0.20, 0.70, 1.0)
_FORCE, _MOMENT = (0.85, 0.35, 0.00, 1.0), (0.75, 0.60, 0.00, 1.0)
# Energy of an impact, J, that is more than rounding.
_LOST = 1e-9
# How long an event is marked, s, and the length of the longest arrow as a fraction of the size of the robot.
_MARK, _LONGEST = 0.6, 0.5
# Joints and rods are drawn as of a robot that is not larger than this multiple of the distance between its joints.
_JOINTS_APART = 8.0
# Shapes that reach farther than this multiple of the size of the robot are not in metres.
_FAR_MESH, _FAR = 30.0, 1000.0


@dataclass(frozen=True)
class Mark:
    """Something that happens to a body.

    Attributes
    ----------
    t : float
        Time, s.
    body : str
        Name of the node that shows it.
    text : str
    energy_lost : float
        J.
    point : (3,) array
        Where on the body, in its frame, m.
    """

    t: float
    body: str
    text: str
    energy_lost: float = 0.0
    point: Array = field(default_factory=lambda: np.zeros(3))


@dataclass(frozen=True, eq=False)
class Stage:
    """A tree that moves over an interval of time.

    Attributes
    ----------
    tree : Robot
    begin, end : float
        s; the end does not belong to the interval, unless it is that of the film.
    values : callable
        Positions, rates and accelerations (k, nq), (k, nv), (k, nv) at times (k,) within the interval.
    links : tuple of str
        Those that are drawn.
    names : mapping from str to str
        The names of nodes that differ from those of their links.
    payloads : frozenset of str
        Links that are drawn in the colour of payloads.
    adrift : frozenset of str
        Links that the camera does not follow, such as released payloads.
    origin : (4, 4) array
        The pose of the tree's base, m.
    waiting : bool
        Whether the tree is drawn pale, as a payload before its grasp, without arrows.
    """

    tree: Robot
    begin: float
    end: float
    values: Callable[[Array], tuple[Array, Array, Array]]
    links: tuple[str, ...]
    names: Mapping[str, str] = field(default_factory=dict)
    payloads: frozenset[str] = frozenset()
    adrift: frozenset[str] = frozenset()
    origin: Array = field(default_factory=lambda: np.eye(4))
    waiting: bool = False

    def node(self, link: str) -> str:
        """The name of the node of a link."""
        return self.names.get(link, link)


def still(tree: Robot, q: Array) -> Stage:
    """A tree at rest at positions q (nq,), rad and m, at time 0."""
    return Stage(tree, 0.0, 0.0, at_rest(tree, q), tree.links)


def at_rest(tree: Robot, q: Array) -> Callable[[Array], tuple[Array, Array, Array]]:
    """The values of a stage in which a tree stays at positions q (nq,), rad and m."""

    def values(times: Array) -> tuple[Array, Array, Array]:
        rates = np.zeros((len(times), tree.nv))
        return np.tile(q, (len(times), 1)), rates, rates

    return values


@dataclass(frozen=True, eq=False)
class _Act:
    """A stage in the frames that show it, with the motion there and the poses (k, links, 4, 4) of all its links."""

    stage: Stage
    frames: Flags
    q: Array
    qd: Array
    qdd: Array
    poses: Array

    def points(self) -> Array:
        """Origins and centres of mass, (k, points, 3), of the links that the camera follows."""
        found = []
        for i, link in enumerate(self.stage.tree.links):
            if link in self.stage.links and link not in self.stage.adrift:
                found.append(self.poses[:, i, :3, 3])
                inertia = self.stage.tree.link(link).inertia
                if inertia is not None:
                    found.append(self.poses[:, i, :3, 3] + self.poses[:, i, :3, :3] @ inertia.com)
        return np.stack(found, axis=1) if found else np.zeros((len(self.q), 0, 3))


def stage_scene(
    stages: Sequence[Stage],
    times: Array,
    marks: Sequence[Mark] = (),
    show: Sequence[str] = (),
    wrenches: Sequence[str] = (),
) -> Scene:
    """The scene of some stages.

    Parameters
    ----------
    stages : sequence of Stage
        The first one is of the robot.
    times : (frames,) array
        In rising order, s.
    marks : sequence of Mark
        What happens.
    show : sequence of str
        Any of ``"com"``, the centre of mass, and ``"momentum"``, linear and angular about it.
    wrenches : sequence of str
        Links, for the wrenches that their joints exert on them.

    Raises
    ------
    ScrewdynError
        If ``show`` has another name.
    UnknownNameError
        If ``wrenches`` names no link of the robot.
    """
    known = (show,) if isinstance(show, str) else tuple(show)
    for name in known:
        if name not in SHOWN:
            raise ScrewdynError(f"show may name {', '.join(map(repr, SHOWN))}; got {name!r}")
    acts = [act for stage in stages if (act := _act(stage, times)) is not None]
    size = _size(acts)
    nodes = _nodes(acts, times, size, min(size, _JOINTS_APART * _apart(acts, size)))
    camera = _camera(acts, nodes, size, stages[0].tree.gravity)
    if "com" in known:
        nodes.append(_com(acts, times, size))
    arrows = [*_momentum(acts, times, size)] if "momentum" in known else []
    for link in (wrenches,) if isinstance(wrenches, str) else wrenches:
        arrows += _wrench(acts, link, times, size)
    flashes = [*_flashes(marks, nodes, times)]

    return Scene(times, tuple(nodes), tuple(arrows), tuple(flashes), camera, size)


def _act(stage: Stage, times: Array) -> _Act | None:
    frames = (times >= stage.begin) & ((times < stage.end) | (stage.end >= times[-1]))
    if not frames.any():
        return None
    q, qd, qdd = stage.values(np.minimum(times[frames], stage.end))
    return _Act(stage, frames, q, qd, qdd, stage.origin @ stage.tree.link_poses(q))


def _nodes(acts: Sequence[_Act], times: Array, robot: float, size: float) -> list[Node]:
    """A node for each link of any act, with parts that differ between acts; sizes of the robot and for joints, m."""
    nodes: dict[str, Node] = {}
    for act in acts:
        topology, stage = act.stage.tree.topology, act.stage
        for i, link in enumerate(stage.tree.links):
            if link not in stage.links:
                continue
            node = nodes.setdefault(stage.node(link), _blank(stage.node(link), len(times)))
            node.poses[act.frames], node.shown[act.frames] = act.poses[:, i], True
            color = _PAYLOAD if link in stage.payloads else _ROBOT[i % 2]
            color = _WAITING if stage.waiting else color
            for what, solids in (
                ("body", _body(topology, link, robot, size, color)),
                ("joint", () if stage.waiting else tuple(joint_solids(topology, link, size))),
            ):
                if solids:
                    _show(node, what, solids, act.frames)
    return [*nodes.values(), *_loops(acts, times, size)]


def _loops(acts: Sequence[_Act], times: Array, size: float) -> list[Node]:
    """A node for each loop of any act, which moves with its link."""
    nodes: dict[str, Node] = {}
    for act in (act for act in acts if not act.stage.waiting):
        stage = act.stage
        for loop in stage.tree.topology.loops.values():
            if loop.link in stage.links and loop.to in stage.links:
                node = nodes.setdefault(loop.name, _blank(loop.name, len(times), LOOPS))
                node.poses[act.frames] = act.poses[:, stage.tree.links.index(loop.link)]
                node.shown |= act.frames
                _show(node, "joint", tuple(loop_solids(loop, size)), act.frames)
    return list(nodes.values())


def _body(topology: Topology, link: str, robot: float, size: float, color: Color) -> tuple[Solid, ...]:
    """The visual shapes of a link; a grown body if it has none, or, with a warning, if they cannot be drawn."""
    shapes = [shape for shape in topology.attachments[link].link.shapes if shape.use == "visual"]
    try:
        if shapes:
            return tuple(solid for shape in shapes for solid in _near(shape, color, robot))
    except ScrewdynError as error:
        warnings.warn(f"link {link!r} is drawn without its shapes: {error}", ScrewdynWarning, stacklevel=2)
    return tuple(grown_body(topology, link, size, color))


def _near(shape: Shape, color: Color, robot: float) -> list[Solid]:
    """The surface of a shape; ScrewdynError if its units look wrong."""
    with np.errstate(over="ignore", invalid="ignore"):
        solids = [*shape_solids(shape, color)]
    reach = max(float(np.abs(solid.vertices).max()) for solid in solids)
    if not reach <= (_FAR_MESH if shape.kind == "mesh" else _FAR) * robot:
        what = f"mesh {shape.path!r}" if shape.kind == "mesh" else shape.kind
        advice = "a mesh in millimetres needs the scale 0.001" if shape.kind == "mesh" else "give metres"
        raise ScrewdynError(
            f"the {what} reaches {reach:.3g} m from the link, and the robot is {robot:.3g} m large: its units look "
            f"wrong; {advice}"
        )
    return solids


def _blank(name: str, frames: int, group: str = "links") -> Node:
    return Node(name, np.tile(np.eye(4), (frames, 1, 1)), np.zeros(frames, dtype=bool), group=group)


def _show(node: Node, what: str, solids: tuple[Solid, ...], frames: Flags) -> None:
    """Show solids in some frames: those of an earlier part if they look the same, or a new part."""
    for part in node.parts:
        if len(part.solids) == len(solids) and all(map(Solid.equals, part.solids, solids)):
            part.shown |= frames
            return
    name = f"{what} {len(node.parts)}" if any(part.name == what for part in node.parts) else what
    node.parts.append(Part(name, solids, frames.copy()))


def _com(acts: Sequence[_Act], times: Array, size: float) -> Node:
    node = _blank("centre of mass", len(times), "marks")
    for act in filter(_is_robot, acts):
        node.poses[act.frames, :3, 3] = act.stage.tree.center_of_mass(act.q)
        node.shown |= act.frames
    node.parts.append(Part("mark", (ball(0.03 * size, np.zeros(3), _COM),), np.ones(len(times), dtype=bool)))
    return node


def _momentum(acts: Sequence[_Act], times: Array, size: float) -> Iterator[Arrow]:
    """Arrows of linear and angular momentum at the centre of mass."""
    h, start, shown = np.zeros((len(times), 6)), np.zeros((len(times), 3)), np.zeros(len(times), dtype=bool)
    for act in filter(_is_robot, acts):
        tree = act.stage.tree
        h[act.frames], start[act.frames] = tree.centroidal_momentum(act.q, act.qd), tree.center_of_mass(act.q)
        shown |= act.frames
    yield from _arrow("linear momentum", "N s", _LINEAR, start, h[:, 3:], shown, size)
    yield from _arrow("angular momentum", "N m s", _ANGULAR, start, h[:, :3], shown, size)


def _wrench(acts: Sequence[_Act], link: str, times: Array, size: float) -> Iterator[Arrow]:
    """Arrows of the force and the moment on a link at its origin."""
    F, start, shown = np.zeros((len(times), 6)), np.zeros((len(times), 3)), np.zeros(len(times), dtype=bool)
    robots = [act for act in acts if _is_robot(act)]
    if not any(link in act.stage.tree.links for act in robots):
        raise UnknownNameError.of(link, dict.fromkeys(name for act in robots for name in act.stage.tree.links))
    for act in robots:
        tree = act.stage.tree
        if link in tree.links:
            T, found = tree.forward_kinematics(link, act.q), subtree_wrench(tree, link, act.q, act.qd, act.qdd)
            F[act.frames] = (T[:, None, :3, :3] @ found.reshape(-1, 2, 3, 1)).reshape(-1, 6)
            start[act.frames] = T[:, :3, 3]
            shown |= act.frames
    yield from _arrow(f"force on {link}", "N", _FORCE, start, F[:, 3:], shown, size)
    yield from _arrow(f"moment on {link}", "N m", _MOMENT, start, F[:, :3], shown, size)


def _arrow(
    name: str, unit: str, color: Color, start: Array, vector: Array, shown: Flags, size: float
) -> Iterator[Arrow]:
    """An arrow whose longest one is half as long as the robot; none if all are zero."""
    length = np.linalg.norm(vector, axis=1)
    longest = float(length.max())
    if longest > 0:
        end = start + vector * (_LONGEST * size / longest)
        yield Arrow(f"{name}, up to {longest:.3g} {unit}", color, start, end, shown & (length > 0.02 * longest))


def _is_robot(act: _Act) -> bool:
    return not act.stage.waiting and act.stage.tree.base in act.stage.links


def _flashes(marks: Sequence[Mark], nodes: Sequence[Node], times: Array) -> Iterator[Flash]:
    """A flash for each mark, until the next one of that body; those in one frame share a flash."""
    known = {node.name: node for node in nodes}
    found: dict[str, dict[int, list[Mark]]] = {}
    for mark in marks:
        first = min(int(np.searchsorted(times, mark.t)), len(times) - 1)
        if mark.body in known and known[mark.body].shown[first]:
            found.setdefault(mark.body, {}).setdefault(first, []).append(mark)
    for body, begins in found.items():
        ends = [*[times[first] for first in begins][1:], np.inf]
        for (first, together), end in zip(begins.items(), ends, strict=True):
            shown = (times >= times[first]) & (times < min(times[first] + _MARK, end))
            impact = any(mark.energy_lost > _LOST for mark in together)
            T = known[body].poses[first]
            yield Flash(", ".join(map(_words, together)), T[:3, :3] @ together[0].point + T[:3, 3], impact, shown)


def _words(mark: Mark) -> str:
    return mark.text + (f": {mark.energy_lost:.3g} J lost" if mark.energy_lost > _LOST else "")


def _size(acts: Sequence[_Act]) -> float:
    """The largest extent of the robot in any frame, m; without one, the longest edge of its bodies, or else 1."""
    spans = [np.ptp(points, axis=1) for act in acts if (points := act.points()).size]
    span = max((float(np.linalg.norm(found, axis=-1).max()) for found in spans), default=0.0)
    return span or max((edge for act in acts for edge in _edges(act.stage.tree.topology)), default=0.0) or 1.0


def _edges(topology: Topology) -> list[float]:
    bodies = (at.link.inertia for at in topology.attachments.values())
    return [float(equivalent_box(body)[0].max()) for body in bodies if body is not None and body.mass > 0]


def _apart(acts: Sequence[_Act], size: float) -> float:
    """The median distance of a joint from that of its parent link, m, of those that are apart; else the size."""
    found = []
    for topology in (act.stage.tree.topology for act in acts):
        for at in topology.attachments.values():
            if at.parent is not None and at.joint.nv:
                own, parents = (at.home @ [*joint_point(at.joint), 1])[:3], topology.attachments[at.parent].joint
                found.append(float(np.linalg.norm(own - joint_point(parents))))
    return float(np.median([distance for distance in found if distance > 0.01 * size] or [size]))


def _camera(acts: Sequence[_Act], nodes: Sequence[Node], size: float, gravity: Array) -> Camera:
    """A view of all frames: across the plane if the points stay in an upright plane, else from above one side."""
    corners = np.concatenate([np.zeros((1, 3)), *(_corners(act, nodes) for act in acts)])
    low, high = corners.min(axis=0), corners.max(axis=0)
    target, radius = (low + high) / 2, 0.5 * float(np.linalg.norm(high - low)) + 0.05 * size
    weight = float(np.linalg.norm(gravity))
    up = -gravity / weight if weight else np.array([0.0, 0.0, 1.0])
    ahead = np.array([1.0, 0.0, 0.0]) if abs(up[0]) < 0.9 else np.array([0.0, 1.0, 0.0])
    ahead = ahead - up * (up @ ahead)
    ahead /= np.linalg.norm(ahead)
    direction = 0.75 * ahead - 0.65 * np.cross(up, ahead) + 0.45 * up
    cloud = np.concatenate([np.zeros((1, 3)), *(act.points().reshape(-1, 3) for act in acts)])
    _, spread, axes = np.linalg.svd(cloud - cloud.mean(axis=0), full_matrices=False)
    if len(spread) == 3 and spread[2] < 0.1 * spread[1] and abs(axes[2] @ up) < 0.1:
        across = axes[2] * (1.0 if axes[2] @ np.array([0.3, -1.0, 0.2]) > 0 else -1.0)
        direction = across + 0.15 * up + 0.25 * np.cross(up, across)
    distance = 0.8 * radius / np.sin(np.radians(Camera.FIELD_OF_VIEW / 2))
    return Camera(target + distance * direction / np.linalg.norm(direction), target, up)


def _corners(act: _Act, nodes: Sequence[Node]) -> Array:
    """Corners of boxes about the links that the camera follows, (k, 3)."""
    found, known = [np.zeros((0, 3))], {node.name: node for node in nodes}
    for link in act.stage.links:
        node = known[act.stage.node(link)]
        if link not in act.stage.adrift and node.parts:
            vertices = np.concatenate([solid.vertices for part in node.parts for solid in part.solids])
            ends = np.stack([vertices.min(axis=0), vertices.max(axis=0)])
            eight = np.stack(np.meshgrid(*ends.T, indexing="ij"), axis=-1).reshape(-1, 3)
            T = act.poses[:, act.stage.tree.links.index(link)]
            found.append((eight @ np.swapaxes(T[:, :3, :3], 1, 2) + T[:, None, :3, 3]).reshape(-1, 3))
    return np.concatenate(found)
