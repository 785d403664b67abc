"""Readers of what is in memory: Denavit-Hartenberg tables, NetworkX graphs and models of Pinocchio."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf, isfinite, pi
from typing import TYPE_CHECKING, Any

import numpy as np

from screwdyn.core import NAME, Array, ArrayLike, errors, expressions, is_name
from screwdyn.io.document import Findings, known_effective, similar, some, unused
from screwdyn.mechanism import Contact, Inertia, Shape, Topology, Use, check_rotors, with_ties
from screwdyn.mechanism.joint import Joint, Mimic, fixed, free, planar, prismatic, revolute, spherical
from screwdyn.mechanism.link import FIXED, Attachment, Link, Locked, Loop
from screwdyn.screws.screw import as_pose, inverse, screw_motion

if TYPE_CHECKING:
    import networkx as nx

# Denavit-Hartenberg tables: the frame of each link is its DH frame, which also has the joint's screw ------------------

_GEOMETRY = ("d", "a", "alpha", "theta")
_JOINT = ("passive", "damping", "friction", "stiffness", "rest", "limits", "effort", "velocity", "armature")
_KEYS = ("type", *_GEOMETRY, "m", "com", "inertia", "name", "joint", *_JOINT)


def from_dh(
    rows: Iterable[Mapping[str, Any]],
    convention: str = "standard",
    *,
    base: str | Link = "base",
    gravity: ArrayLike = (0.0, 0.0, -9.81),
) -> Topology:
    """Read a Denavit-Hartenberg table; parameters, errors and warnings are those of :meth:`KinematicTree.from_dh`."""
    if convention not in ("standard", "modified"):
        raise errors.ScrewdynError(f"unknown DH convention {convention!r}; use 'standard' or 'modified'")
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
        raise errors.ScrewdynError(f"a DH table must be a list of dicts, one for each row; got {rows!r}")
    root = base if isinstance(base, Link) else Link(base)
    attachments, doubtful = [], []
    parent = root.name
    for i, row in enumerate(rows, start=1):
        if not isinstance(row, Mapping):
            raise errors.ScrewdynError(f"DH row {i} must be a dict such as {{'a': 0.4, 'm': 2}}; got {row!r}")
        name = row.get("name", f"link{i}")
        where = f"DH row {i} ({name})"
        for key in row:
            if key not in _KEYS:
                raise errors.ScrewdynError(f"{where}: unknown key {key!r}; {similar(str(key), _KEYS)}")
        try:
            home, axis, point = _frame(row, convention)
            inertia = _inertia(row)
            kind = row.get("type", "R")
            if kind not in ("R", "P"):
                raise errors.JointError(f"unknown type {kind!r}; use 'R' (revolute) or 'P' (prismatic)")
            options = {key: row[key] for key in _JOINT if key in row} | {"name": row.get("joint", f"joint{i}")}
            joint = revolute(axis, point, **options) if kind == "R" else prismatic(axis, **options)
        except errors.ScrewdynError as error:
            raise type(error)(f"{where}: {error}") from None
        if inertia is not None and inertia.failing_condition and inertia is not row.get("inertia"):
            doubtful.append(f"{where}: {inertia.failing_condition}")
        attachments.append(Attachment(Link(name, inertia), parent, joint, home))
        parent = name
    if doubtful:
        message = "no rigid body has these numbers; they are used as they are"
        warnings.warn("\n  ".join([message, *doubtful]), errors.ScrewdynWarning, stacklevel=3)  # of from_dh's caller
    return Topology.rooted(root, gravity).attach(attachments)


def _number(row: Mapping[str, Any], key: str) -> Any:
    x = expressions.read_or_nan(row.get(key, 0.0), expressions.number)
    if expressions.is_number(x) and not isfinite(x):
        raise errors.ShapeError(f"{key} must be a finite number; got {row[key]!r}")
    return x


def _frame(row: Mapping[str, Any], convention: str) -> tuple[Array, Array, Array]:
    """Home pose, and the axis of the joint and a point on it in the link's own frame."""
    d, a, alpha, theta = (_number(row, key) for key in _GEOMETRY)
    (ca, sa), (ct, st) = _cos_sin(alpha), _cos_sin(theta)
    if convention == "standard":
        rows = [[ct, -st * ca, st * sa, a * ct], [st, ct * ca, -ct * sa, a * st], [0.0, sa, ca, d]]
        axis, point = [0.0, sa, ca], [-a, 0.0, 0.0]
    else:
        rows = [[ct, -st, 0.0, a], [ca * st, ca * ct, -sa, -sa * d], [sa * st, sa * ct, ca, ca * d]]
        axis, point = [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]
    home = expressions.array([*rows, [0.0, 0.0, 0.0, 1.0]])
    return home, expressions.array(axis), expressions.array(point)


def _cos_sin(angle: Any) -> tuple[Any, Any]:
    """Cosine and sine, exactly 0 or ±1 at multiples of pi/2 (within rounding)."""
    if not expressions.is_expression(angle):
        quarters = round(angle / (pi / 2))
        if abs(angle - quarters * (pi / 2)) <= 1e-15 * max(1, abs(quarters)):
            return ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[quarters % 4]
    return expressions.cos_sin(angle)


def _inertia(row: Mapping[str, Any]) -> Inertia | None:
    tensor = row.get("inertia", 0.0)
    if isinstance(tensor, Inertia):
        extra = [key for key in ("m", "com") if key in row]
        if extra:
            raise errors.ScrewdynError(f"inertia is an Inertia, so {' and '.join(extra)} must not be given too")
        return tensor
    mass = _number(row, "m")
    if expressions.is_number(mass) and mass < 0:
        raise errors.InertiaError(f"the mass is negative ({float(mass):g} kg); give a mass >= 0")
    inertia = known_effective(mass, row.get("com", (0.0, 0.0, 0.0)), tensor)
    return inertia if mass != 0 or inertia.tensor.any() else None


# NetworkX graphs ------------------------------------------------------------------------------------------------------

_RENAMED = (
    "networkx.relabel_nodes renames links only; a prefix renames everything: attach the robot to a tree, "
    "tree.attach(robot, to=…, prefix='left/'), and take tree.graph"
)


def from_graph(graph: nx.DiGraph, gravity: ArrayLike | None = None) -> Topology:
    """Read the links and joints of a directed graph; :meth:`KinematicTree.from_graph` describes it."""
    import networkx as nx

    if not isinstance(graph, nx.DiGraph) or graph.is_multigraph():
        raise errors.TopologyError(
            f"a tree is read from a networkx.DiGraph, whose edges lead from parents to children, such as "
            f"networkx.DiGraph(tree.graph); got {type(graph).__name__}"
        )
    _check_tree(graph)
    position = {name: k for k, name in enumerate(graph)}
    base, *others = nx.lexicographical_topological_sort(graph, position.__getitem__)
    ties = [*_ties(graph, Loop, "loop"), *_ties(graph, Contact, "contact")]
    attachments = [_attachment(graph, name) for name in others]
    carried: dict[str, Attachment] = {}
    for at in attachments:  # two joints have the same name, for example, after a union of graphs of the same robot
        other, link = carried.setdefault(at.name, at), at.link.name
        if other is not at:
            raise errors.TopologyError(
                f"the joints of {other.link.name!r} and {link!r} are both named {at.name!r}. {_RENAMED}; or name one: "
                f"graph.edges[{at.parent!r}, {link!r}]['joint'] = dataclasses.replace(joint, name=…)"
            )
    given = graph.graph if gravity is None else {"gravity": gravity}
    try:
        rooted = Topology.rooted(_link(graph, base), *([given["gravity"]] if "gravity" in given else []))
    except errors.ShapeError as error:
        where = "the attribute 'gravity' of the graph: " if gravity is None else ""
        raise errors.ShapeError(f"{where}{error}") from None
    try:
        topology = with_ties(rooted.attach(attachments), ties)
        check_rotors(topology)
    except (errors.TopologyError, errors.UnknownNameError) as error:
        if any(link is not None and link.name != name for name, link in graph.nodes(data="link")):
            error.add_note(_RENAMED)
        raise
    return topology


def _ties(graph: nx.DiGraph, kind: type[Any], what: str) -> Any:
    """The loops or contacts in an attribute of a graph; TopologyError or UnknownNameError unless they are these."""
    ties: Any = graph.graph.get(f"{what}s", ())
    if not isinstance(ties, tuple | list) or not all(isinstance(tie, kind) for tie in ties):
        raise errors.TopologyError(
            f"the attribute '{what}s' of the graph must be a tuple of {what}s of a tree; got {ties!r}"
        )
    for tie in ties:
        for link in (tie.link, tie.to):
            if link not in graph:
                raise errors.UnknownNameError(
                    f"{what} {tie.name!r} connects {link!r}, which is not in the graph; remove the {what} from "
                    f"graph.graph['{what}s'], or rename its ends there: dataclasses.replace({what}, link=…, to=…)"
                )
    return ties


def _check_tree(graph: nx.DiGraph) -> None:
    """Raise TopologyError with all reasons why the graph is not a tree with edges that point away from its root."""
    import networkx as nx

    problems, unnamed = [], [x for x in graph if not is_name(x)]
    if unnamed:
        problems.append(
            f"the name of a link must be {NAME}, as networkx.relabel_nodes gives it; got {some(map(repr, unnamed))}"
        )
    roots = [name for name, degree in graph.in_degree if degree == 0]
    if len(roots) != 1:
        join = "; join them: graph.add_edge(parent, child, home=…)" if roots else ""
        found = some(map(repr, roots)) or "none"
        problems.append(f"there must be one link without a parent, the base; got {found}{join}")
    for name, degree in graph.in_degree:
        if degree > 1:
            parents = " and ".join(map(repr, graph.predecessors(name)))
            problems.append(f"link {name!r} has several parents: {parents}")
    if not nx.is_directed_acyclic_graph(graph):
        around = " → ".join(repr(edge[0]) for edge in nx.find_cycle(graph))
        problems.append(f"there is a cycle: {around}; close a loop by a joint of its own: tree.close(link, to=…)")
    if problems:
        raise errors.TopologyError("\n  ".join(["the graph is not a tree", *problems]))


def _link(graph: nx.DiGraph, name: str) -> Link:
    data = graph.nodes[name]
    if "contraction" in data:
        lost = some(map(repr, list(data["contraction"])))
        raise errors.TopologyError(
            f"link {name!r} is contracted with {lost}, whose inertia and joint would be lost; keep both links, and fix "
            f"the joint between them: tree.lock(joint)"
        )
    link: Any = data.get("link", Link(name))
    if not isinstance(link, Link):
        raise errors.TopologyError(f"the attribute 'link' of node {name!r} must be a Link; got {type(link).__name__}")
    return link if link.name == name else replace(link, name=name)


def _attachment(graph: nx.DiGraph, name: str) -> Attachment:
    ((parent, _, edge),) = graph.in_edges(name, data=True)
    joint: Any = edge.get("joint", FIXED)
    if not isinstance(joint, Joint):
        kind = type(joint).__name__
        raise errors.TopologyError(f"the attribute 'joint' of edge {parent!r} → {name!r} must be a Joint; got {kind}")
    home = as_pose(edge.get("home"), f"the attribute 'home' of edge {parent!r} → {name!r}")
    locked: Any = edge.get("locked")
    if locked is not None and (joint.screws.size or not isinstance(locked, Locked)):
        raise errors.TopologyError(
            f"the attribute 'locked' of edge {parent!r} → {name!r} must be that of a tree's locked joint"
        )
    return Attachment(_link(graph, name), parent, joint, home, locked=locked)


# Models of Pinocchio, whose package pin made them ---------------------------------------------------------------------

# Joints whose motions are a group; their frames and screws are those of this library.
_GROUPS: dict[str, Callable[..., Joint]] = {
    "JointModelSpherical": spherical,
    "JointModelFreeFlyer": partial(free, passive=True),
    "JointModelPlanar": planar,
}
# Shapes by the names of Coal's classes.
_BODIES: dict[str, Callable[..., Shape]] = {
    "Box": lambda body, **given: Shape.box(2 * body.halfSide, **given),
    "Capsule": lambda body, **given: Shape.capsule(body.radius, 2 * body.halfLength, **given),
    "Cylinder": lambda body, **given: Shape.cylinder(body.radius, 2 * body.halfLength, **given),
    "Sphere": lambda body, **given: Shape.sphere(body.radius, **given),
}
# Rates at which a joint is compared with the product of the motions of its screws.
_PROBE = (0.7, -0.4, 0.3, 0.6, -0.5, 0.2)


def read_pinocchio(model: Any, *, visual: Any = None, collision: Any = None, strict: bool = False) -> Topology:
    """Read the joints, inertias and frames of a Pinocchio model; :meth:`KinematicTree.from_pinocchio` describes it."""
    kind = f"{type(model).__module__}.{type(model).__name__}"
    if not (kind.startswith("pinocchio.") and kind.endswith(".Model")):
        raise errors.ModelError(f"the model must be a pinocchio.Model; got {type(model).__name__}")
    for use, geometry in (("visual", visual), ("collision", collision)):
        if geometry is not None and type(geometry).__name__ != "GeometryModel":
            raise errors.ModelError(f"{use}= must be a pinocchio.GeometryModel; got {type(geometry).__name__}")
    title = f"the Pinocchio model {model.name!r}"
    findings = Findings(errors.ModelError, f"{title} cannot be read", f"{title} is read without the following")
    base, *others = _Reader(model, findings, {"visual": visual, "collision": collision}).attachments()
    findings.report(strict)
    return Topology.rooted(base.link, np.array(model.gravity.linear)).attach(others)


class _Reader:
    def __init__(self, model: Any, findings: Findings, geometry: Mapping[Use, Any]) -> None:
        import pinocchio as pin

        self.pin, self.model, self.findings, self.geometry = pin, model, findings, geometry
        self.neutral = pin.neutral(model)
        bodies = (pin.FrameType.BODY, pin.FrameType.OP_FRAME)
        self.frames = [frame for frame in model.frames if frame.type in bodies]
        self.links, self.joints = {frame.name for frame in self.frames}, {*model.names}

    def attachments(self) -> list[Attachment]:
        """The base, the link of every joint, then the frames that are welded to these links."""
        m = self.model
        own: dict[int, Any] = {}
        for frame in self.frames:
            if np.array_equal(frame.placement.homogeneous, np.eye(4)):
                own.setdefault(frame.parentJoint, frame)
        names = [own[i].name if i in own else unused(m.names[i], self.links) for i in range(m.njoints)]
        shapes = self.shapes(names)
        found = []
        for i, name in enumerate(names):
            body = m.inertias[i]
            inertia = self.findings.inertia(name, float(body.mass), np.array(body.lever), np.array(body.inertia))
            link = Link(name, inertia, shapes.get(name, ()))
            if i == 0:
                found.append(Attachment(link))
                continue
            joint, home = self.joint(i)
            found.append(Attachment(link, names[m.parents[i]], joint, m.jointPlacements[i].homogeneous @ home))
        for frame in self.frames:
            if frame is not own.get(frame.parentJoint):
                weld = fixed(unused(frame.name, self.joints))
                place = np.array(frame.placement.homogeneous)
                link = Link(frame.name, None, shapes.get(frame.name, ()))
                found.append(Attachment(link, names[frame.parentJoint], weld, place))
        return found

    def shapes(self, carriers: Sequence[str]) -> dict[str, tuple[Shape, ...]]:
        """Shapes by the names of links: of the frames of bodies, or else of the joints' links, the carriers."""
        frames = self.model.frames
        placed = {frame.name: np.array(frame.placement.homogeneous) for frame in self.frames}
        found: dict[str, tuple[Shape, ...]] = {}
        for use, geometry in self.geometry.items():
            for body in () if geometry is None else geometry.geometryObjects:
                frame = frames[body.parentFrame].name if body.parentFrame < len(frames) else ""
                link = frame if frame in placed else carriers[body.parentJoint]
                # Pinocchio's placements are in the frames of joints.
                T = inverse(placed.get(frame, np.eye(4))) @ body.placement.homogeneous
                color = np.clip(body.meshColor, 0, 1) if body.overrideMaterial else None
                make = _BODIES.get(type(body.geometry).__name__)
                if make is not None:
                    shape = make(body.geometry, pose=T, color=color, use=use)
                elif body.meshPath:
                    shape = Shape.mesh(body.meshPath, body.meshScale, pose=T, color=color, use=use)
                else:
                    continue
                found[link] = (*found.get(link, ()), shape)
        return found

    def joint(self, i: int) -> tuple[Joint, Array]:
        """A joint, and the pose of its link in its placement at the neutral position."""
        m = self.model
        name, there = m.names[i], m.joints[i]
        if i in list(m.mimicking_joints):
            return self.follower(i), np.eye(4)
        screws, home = self.screws(i)
        options = self.options(i)
        armature = m.armature[there.idx_v : there.idx_v + there.nv]
        if not self.is_product(i, screws, home):
            make = _GROUPS.get(there.shortname())
            if make is None:
                self.findings.errors.append(f"joint {name!r} is a {there.shortname()}, which is not supported")
                return fixed(name), np.eye(4)
            if armature.any():
                self.findings.warnings.append(f"the armature of joint {name!r}, a {there.shortname()}")
            options.pop("limits", None)
            return make(name=name, **options), np.eye(4)
        if there.nq != there.nv:
            options.pop("limits", None)  # of the cosine and sine of the angle
        return Joint(screws, name=name, armature=self.equal(name, "armature", armature), **options), home

    def follower(self, i: int) -> Joint:
        """A joint that follows another one, without damping, friction, armature or limits, as in Pinocchio."""
        # Pinocchio's screw of it is a multiple of its own, for the rate of the other one.
        m, name = self.model, self.model.names[i]
        leader = m.names[m.mimicked_joints[list(m.mimicking_joints).index(i)]]
        there, (screws, home) = m.joints[i].extract(), self.screws(i)
        if there.scaling and screws.shape[1] == 1:
            own = screws / there.scaling
            placed = np.allclose(home, screw_motion(own[:, 0], there.offset), rtol=0, atol=1e-9)
            if placed and self.is_product(i, own, home, there.scaling):
                return Joint(own, name=name, mimic=Mimic(leader, there.scaling, there.offset))
        self.findings.errors.append(
            f"joint {name!r} mimics {leader!r} with the scaling {there.scaling:g}; supported are mimic joints of one "
            f"freedom that move along a screw, with a scaling that is not 0"
        )
        return fixed(name)

    def screws(self, i: int) -> tuple[Array, Array]:
        """Screws [ω; v] of a joint, (6, k), and the pose of its link in its placement, at the neutral position."""
        there = self.model.joints[i]
        data = there.createData()
        there.calc(data, self.neutral)
        S = np.array(data.S, dtype=float).reshape(6, -1)
        return np.concatenate([S[3:], S[:3]]), np.array(data.M.homogeneous)

    def is_product(self, i: int, screws: Array, home: Array, ratio: float = 1.0) -> bool:
        """Whether the joint moves as home · exp(Ŝ₁ q₁) … exp(Ŝ_k q_k); if so, its screws say everything about it."""
        # The q of a mimic joint are ``ratio`` times those of the joint that it follows.
        m, there = self.model, self.model.joints[i]
        k = screws.shape[1]  # nv of a mimic joint is 0
        v = np.zeros(m.nv)
        v[there.idx_v : there.idx_v + k] = _PROBE[:k]
        data = there.createData()
        there.calc(data, self.pin.integrate(m, self.neutral, v))
        T = home
        for S, q in zip(screws.T, _PROBE, strict=False):
            T = T @ screw_motion(S, ratio * q)
        return bool(np.allclose(T, data.M.homogeneous, rtol=0, atol=1e-9))

    def options(self, i: int) -> dict[str, Any]:
        """What a joint has besides its motion; it must be the same for all its freedoms."""
        m, there = self.model, self.model.joints[i]
        name, v, q = m.names[i], slice(there.idx_v, there.idx_v + there.nv), slice(there.idx_q, there.idx_q + there.nq)
        friction = m.upperDryFrictionLimit if hasattr(m, "upperDryFrictionLimit") else m.friction
        found: dict[str, Any] = {
            "damping": self.equal(name, "damping", m.damping[v]),
            "friction": self.equal(name, "friction", friction[v]),
            "effort": _common(m.effortLimit[v]),
            "velocity": _common(m.velocityLimit[v]),
        }
        low, high = _common(m.lowerPositionLimit[q], -inf), _common(m.upperPositionLimit[q])
        if (low, high) != (None, None):
            found["limits"] = (-inf if low is None else low, inf if high is None else high)
        return found

    def equal(self, name: str, what: str, values: Array) -> float:
        """The value of all freedoms of a joint; notes an error if they differ."""
        if (values != values[0]).any():
            message = f"joint {name!r} has {what} that differs between its freedoms: {values.tolist()}"
            self.findings.errors.append(f"{message}; use one joint for each")
        return float(values[0])


def _common(values: Array, unlimited: float = inf) -> float | None:
    """The value of all entries; None if they differ or are the largest numbers, which mean that there is no limit."""
    value = float(values[0])
    largest = abs(value) >= np.finfo(float).max
    return None if (values != values[0]).any() or largest or value == unlimited or np.isnan(value) else value
