"""Reader of MJCF, the format of MuJoCo, whose package ``mujoco`` (extra ``mjcf``) compiles it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from screwdyn.core.errors import ModelError, ScrewdynError
from screwdyn.core.types import Array
from screwdyn.io.findings import Findings
from screwdyn.io.mjcf_equalities import active_equalities, followers_of, is_loop, loops_of
from screwdyn.io.mjcf_flags import disabled, sleeps
from screwdyn.io.mjcf_shapes import shapes_of_body
from screwdyn.io.mjcf_writer import home_key
from screwdyn.io.names import Names
from screwdyn.io.source import Source, read_source
from screwdyn.mechanism.attachment import Attachment
from screwdyn.mechanism.joint import Joint, Mimic, fixed, free, prismatic, revolute, spherical
from screwdyn.mechanism.link import Link
from screwdyn.mechanism.loops import with_loops
from screwdyn.mechanism.topology import Topology
from screwdyn.screws.poses import pose
from screwdyn.screws.rotations import rotation_of
from screwdyn.screws.screw import screw_motion

if TYPE_CHECKING:
    import mujoco

__all__ = ["read_mjcf"]

FREE, BALL, SLIDE, HINGE = range(4)


def read_mjcf(path_or_text: str | os.PathLike[str] | mujoco.MjModel, *, strict: bool = False) -> Topology:
    """Read the bodies and joints of an MJCF model; :meth:`KinematicTree.from_mjcf` describes it."""
    findings = Findings("the MJCF model")
    topology = _Reader(_compiled(path_or_text), findings).topology()
    findings.report(strict)
    return topology


def _compiled(given: Any) -> Any:
    try:
        import mujoco
    except ModuleNotFoundError:
        raise ScrewdynError("MJCF is read by the package mujoco: pip install 'screwdyn[mjcf]'") from None
    if isinstance(given, mujoco.MjModel):
        return given
    source = read_source(given, "MJCF", "<", ModelError)
    try:
        if source.path is not None:
            return mujoco.MjModel.from_xml_path(str(source.path))
        return mujoco.MjModel.from_xml_string(source.document.decode("utf-8"))
    except ValueError as error:
        raise _refused(source, error) from None


def _refused(source: Source, error: ValueError) -> ModelError:
    message = str(error).strip()
    return ModelError(f"MuJoCo cannot compile {source.title}: {message}", [message])


class _Reader:
    """Makes attachments from the arrays of a compiled model."""

    def __init__(self, model: Any, findings: Findings) -> None:
        self.model, self.findings = model, findings
        self.bodies = _named("body", [model.body(k).name for k in range(model.nbody)])
        self.joints = [model.joint(k).name for k in range(model.njnt)]
        self.links, self.taken = Names(self.bodies), Names(filter(None, self.joints))
        self.off = disabled(model)
        self.stiffness = self.enabled("spring", model.jnt_stiffness)
        self.limited = self.enabled("limit", model.jnt_limited)
        self.damping = self.enabled("damper", model.dof_damping)
        self.friction = self.enabled("frictionloss", model.dof_frictionloss)
        self.numerics = {model.numeric(k).name for k in range(model.nnumeric)}
        self.followers = followers_of(model)

    def enabled(self, flag: str, values: Array) -> Array:
        """Numbers of a model, or zeros if a flag disables what they are for."""
        return np.zeros_like(values) if flag in self.off else values

    def topology(self) -> Topology:
        m = self.model
        gravity = self.enabled("gravity", m.opt.gravity.copy())
        attachments = [at for body in range(1, m.nbody) for at in self.attachments(body)]
        equalities = _named("equality", [m.equality(k).name for k in range(m.neq)])
        taken = Names(name for at in attachments for name in (at.link.name, at.name))
        loops = list(loops_of(m, self.bodies, equalities, taken))
        read = {k for k, *_ in self.followers.values()}
        unread = [k for k in active_equalities(m) if k not in read and not is_loop(m, k)]
        self.note("the equality constraint", [equalities[k] for k in unread])
        self.note_ignored()
        return with_loops(Topology.rooted(self.link(0), gravity).attach(attachments), loops)

    def link(self, body: int) -> Link:
        m, name = self.model, self.bodies[body]
        R = rotation_of(np.roll(m.body_iquat[body], -1))
        inertia = self.findings.inertia(
            name, float(m.body_mass[body]), m.body_ipos[body].copy(), (R * m.body_inertia[body]) @ R.T
        )
        return Link(name, inertia, shapes_of_body(m, body))

    def attachments(self, body: int) -> Iterator[Attachment]:
        """A body and, if it has several joints, massless links between them, which turn and slide in their order."""
        m = self.model
        parent = self.bodies[m.body_parentid[body]]
        first, count = m.body_jntadr[body], m.body_jntnum[body]
        home = pose(rotation_of(np.roll(m.body_quat[body], -1)), m.body_pos[body])
        if count == 0:
            yield Attachment(self.link(body), parent, fixed(self.taken.unused(self.bodies[body])), home)
        for k in range(first, first + count):
            last = k == first + count - 1
            link = self.link(body) if last else Link(self.links.unused(f"{self.bodies[body]}_{self.name(k)}"))
            joint, offset = self.joint(k)
            # MuJoCo has the positions of a free joint from the world.
            from_world = m.jnt_type[k] == FREE and home_key(self.name(k)) not in self.numerics
            yield Attachment(link, parent, joint, np.eye(4) if from_world else home @ offset)
            parent, home = link.name, np.eye(4)

    def name(self, k: int) -> str:
        """The name of a joint, which is made from that of its body if it has none."""
        if not self.joints[k]:
            self.joints[k] = self.taken.unused(self.bodies[self.model.jnt_bodyid[k]])
        return str(self.joints[k])

    def joint(self, k: int) -> tuple[Joint, Array]:
        """A joint, and the motion by which its position 0 differs from MuJoCo's home pose."""
        m, name = self.model, self.name(k)
        kind, at = m.jnt_type[k], m.jnt_dofadr[k]
        point, axis = m.jnt_pos[k].copy(), m.jnt_axis[k].copy()
        friction: dict[str, Any] = {"damping": float(self.damping[at]), "friction": float(self.friction[at])}
        if kind in (FREE, BALL):
            freedoms = slice(at, at + (6 if kind == FREE else 3))
            ignored = {
                "the stiffness": self.stiffness[k],
                "the limit": self.limited[k],
                "the armature": m.dof_armature[freedoms].any(),
            }
            self.findings.warnings += [f"{what} of joint {name!r}" for what, value in ignored.items() if value]
            if kind == FREE:
                return free(passive=True, name=name, **friction), np.eye(4)
            return spherical(point, name=name, **friction), np.eye(4)
        q = m.jnt_qposadr[k]
        options: dict[str, Any] = friction | {"limits": tuple(m.jnt_range[k].tolist()) if self.limited[k] else None}
        options["armature"] = float(m.dof_armature[at])
        if k in self.followers:
            _, leader, ratio, constant = self.followers[k]
            options["mimic"] = Mimic(self.name(leader), ratio, constant)
        if self.stiffness[k]:
            options |= {"stiffness": float(self.stiffness[k]), "rest": float(m.qpos_spring[q])}
        joint = revolute(axis, point, name=name, **options) if kind == HINGE else prismatic(axis, name=name, **options)
        return joint, screw_motion(joint.screws[:, 0], -float(m.qpos0[q]))

    def note_ignored(self) -> None:
        """Warn about everything else that changes the motion."""
        m = self.model
        poly = self.enabled("spring", getattr(m, "jnt_stiffnesspoly", np.zeros(m.njnt)))
        yields = self.stiffness * getattr(m, "jnt_springyield", np.zeros(m.njnt))
        damper = self.enabled("damper", getattr(m, "dof_dampingpoly", np.zeros(m.nv)))
        bent = [self.name(k) for k in range(m.njnt) if np.any(poly[k]) or yields[k] or np.any(damper[m.jnt_dofadr[k]])]
        lifted = self.enabled("gravcomp", m.body_gravcomp)
        held = [self.bodies[k] for k in range(m.nbody) if lifted[k] or m.body_mocapid[k] >= 0]
        actuators = _named("actuator", [m.actuator(k).name for k in range(m.nu)])
        if "actuation" in self.off:  # their inertias and dampers stay
            passive = np.array([getattr(m, f"actuator_{x}", np.zeros(m.nu)) for x in ("armature", "damping")])
            actuators = [name for name, own in zip(actuators, passive.T, strict=True) if own.any()]
        self.note("the nonlinear spring or damper of joint", bent)
        self.note("compensation of gravity or motion capture of body", held)
        self.note("the tendon", _named("tendon", [m.tendon(k).name for k in range(m.ntendon)]))
        self.note("the actuator", actuators)
        self.note("the flexible body", _named("flex", [m.flex(k).name for k in range(m.nflex)]))
        if (m.opt.density or m.opt.viscosity) and "medium" not in self.off:
            self.findings.warnings.append("the forces of the medium (density, viscosity, wind)")
        if sleeps(m):
            self.findings.warnings.append("the flag sleep, which lets MuJoCo hold bodies still that hardly move")

    def note(self, what: str, names: Iterable[str]) -> None:
        listed = list(names)
        if listed:
            some = ", ".join(map(repr, listed[:20])) + ", …" * (len(listed) > 20)
            self.findings.warnings.append(f"{what}{'s' * (len(listed) > 1)} {some}")


def _named(kind: str, names: list[str]) -> list[str]:
    """Names, made from the index where there is none."""
    taken = Names(names)
    return [name or taken.unused(f"{kind}{k}") for k, name in enumerate(names)]
