"""Reader of Pinocchio models (needs the package ``pin``, which made the model)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any

import numpy as np

from screwdyn.core.errors import ModelError
from screwdyn.core.types import Array
from screwdyn.io.document import Findings, unused
from screwdyn.mechanism.joint import Joint, Mimic, fixed, free, planar, spherical
from screwdyn.mechanism.link import Attachment, Link
from screwdyn.mechanism.shape import Shape, Use
from screwdyn.mechanism.topology import Topology
from screwdyn.screws.screw import inverse, screw_motion

__all__ = ["read_pinocchio"]

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
        raise ModelError(f"the model must be a pinocchio.Model; got {type(model).__name__}")
    for use, geometry in (("visual", visual), ("collision", collision)):
        if geometry is not None and type(geometry).__name__ != "GeometryModel":
            raise ModelError(f"{use}= must be a pinocchio.GeometryModel; got {type(geometry).__name__}")
    title = f"the Pinocchio model {model.name!r}"
    findings = Findings(ModelError, f"{title} cannot be read", f"{title} is read without the following")
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
        """A joint that follows another one; Pinocchio's screw of it is a multiple of its own, for the rate of that one.

        Pinocchio's model has no damping, friction, armature or limits of such a joint.
        """
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
        """Whether the joint moves as home · exp(Ŝ₁ q₁) … exp(Ŝ_k q_k); if so, its screws say everything about it.

        The q of a mimic joint are ``ratio`` times those of the joint that it follows.
        """
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
