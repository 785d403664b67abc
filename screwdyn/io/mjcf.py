"""Reader of MJCF, the format of MuJoCo, whose package ``mujoco`` (extra ``mjcf``) compiles it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from screwdyn.core.errors import ModelError, ScrewdynError
from screwdyn.core.types import Array
from screwdyn.io.document import Findings, read_source, some, unused
from screwdyn.io.xml_writer import home_key
from screwdyn.mechanism.joint import Joint, Mimic, fixed, free, prismatic, revolute, spherical
from screwdyn.mechanism.link import Attachment, Link, Loop
from screwdyn.mechanism.shape import Shape
from screwdyn.mechanism.topology import Topology, with_loops
from screwdyn.screws.groups import rotation_of
from screwdyn.screws.screw import inverse, pose, screw_motion

if TYPE_CHECKING:
    import mujoco

__all__ = ["read_mjcf"]

# Values of MuJoCo's mjtJoint, mjtGeom, mjtEq and mjtObj.
_FREE, _BALL, _SLIDE, _HINGE = range(4)
_SPHERE, _CAPSULE, _CYLINDER, _BOX, _MESH = 2, 3, 5, 6, 7
_CONNECT, _WELD, _JOINT = range(3)
_SITE = 6
# MuJoCo's viewer shows the groups below this one unless told otherwise.
_HIDDEN = 3
# MuJoCo's colour of geoms that have none.
_GREY = 0.5, 0.5, 0.5, 1.0
# Flags that disable what others do, too: MuJoCo skips all passive forces if there are neither springs nor dampers.
# "passive" is that of MuJoCo before it had "spring" and "damper".
_IMPLIED = (
    ({"constraint"}, {"equality", "frictionloss", "limit"}),
    ({"passive"}, {"spring", "damper"}),
    ({"spring", "damper"}, {"medium", "gravcomp"}),
    ({"gravity"}, {"gravcomp"}),
)


def read_mjcf(path_or_text: str | os.PathLike[str] | mujoco.MjModel, *, strict: bool = False) -> Topology:
    """Read the bodies and joints of an MJCF model; :meth:`KinematicTree.from_mjcf` describes it."""
    title = "the MJCF model"
    findings = Findings(ModelError, f"{title} cannot be read", f"{title} is read without the following")
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
        message = str(error).strip()
        raise ModelError(f"MuJoCo cannot compile {source.title}: {message}", [message]) from None


def _disabled(model: Any) -> set[str]:
    """What the flags of a model disable: their names in MJCF, and "medium" and "gravcomp"."""
    import mujoco

    flags = mujoco.mjtDisableBit.__members__.items()  # their values depend on the version
    found = {name.removeprefix("mjDSBL_").lower() for name, bit in flags if model.opt.disableflags & int(bit)}
    for given, implied in _IMPLIED:
        found |= implied if found >= given else set()
    return found


class _Reader:
    """Makes attachments, shapes and loops from the arrays of a compiled model."""

    def __init__(self, model: Any, findings: Findings) -> None:
        self.model, self.findings = model, findings
        self.bodies = self.named("body", model.nbody)
        self.joints = [model.joint(k).name for k in range(model.njnt)]
        self.links, self.taken = {*self.bodies}, {*filter(None, self.joints)}
        self.off = _disabled(model)
        self.stiffness = self.enabled("spring", model.jnt_stiffness)
        self.limited = self.enabled("limit", model.jnt_limited)
        self.damping = self.enabled("damper", model.dof_damping)
        self.friction = self.enabled("frictionloss", model.dof_frictionloss)
        self.numerics = {model.numeric(k).name for k in range(model.nnumeric)}
        self.equalities = np.flatnonzero(self.enabled("equality", model.eq_active0)).tolist()
        self.followers = self.followers_by_joint()

    def enabled(self, flag: str, values: Array) -> Array:
        """Numbers of a model, or zeros if a flag disables what they are for."""
        return np.zeros_like(values) if flag in self.off else values

    def named(self, kind: str, count: int) -> list[str]:
        """Names of all things of a kind, made from the index where there is none."""
        names = [getattr(self.model, kind)(k).name for k in range(count)]
        taken = {*names}
        return [name or unused(f"{kind}{k}", taken) for k, name in enumerate(names)]

    def topology(self) -> Topology:
        m = self.model
        gravity = self.enabled("gravity", m.opt.gravity.copy())
        attachments = [at for body in range(1, m.nbody) for at in self.attachments(body)]
        names = self.named("equality", m.neq)
        taken = {name for at in attachments for name in (at.link.name, at.name)}
        read = {k for k, *_ in self.followers.values()}
        loops, unread = [], []
        for k in self.equalities:
            loop = self.loop(k, names[k], taken)
            if loop is not None:
                loops.append(loop)
            elif k not in read:
                unread.append(names[k])
        self.note("the equality constraint", unread)
        self.note_ignored()
        return with_loops(Topology.rooted(self.link(0), gravity).attach(attachments), loops)

    def link(self, body: int) -> Link:
        m, name = self.model, self.bodies[body]
        R = rotation_of(np.roll(m.body_iquat[body], -1))
        inertia = self.findings.inertia(
            name, float(m.body_mass[body]), m.body_ipos[body].copy(), (R * m.body_inertia[body]) @ R.T
        )
        first = m.body_geomadr[body]
        shapes = [self.shape(geom) for geom in range(first, first + m.body_geomnum[body])]
        return Link(name, inertia, tuple(shape for shape in shapes if shape is not None))

    def shape(self, geom: int) -> Shape | None:
        """A geom; None for planes, height fields, ellipsoids and meshes that are not in a file."""
        m = self.model
        kind, size, mesh = m.geom_type[geom], m.geom_size[geom], m.geom_dataid[geom]
        color, material = m.geom_rgba[geom], m.geom_matid[geom]
        if np.array_equal(color, _GREY):
            color = None if material < 0 else m.mat_rgba[material]
        options: dict[str, Any] = {
            "pose": _pose(m.geom_pos[geom], m.geom_quat[geom]),
            "color": None if color is None else np.clip(color, 0, 1),
            "use": "visual" if m.geom_group[geom] < _HIDDEN else "collision",
        }
        if kind == _SPHERE:
            return Shape.sphere(size[0], **options)
        if kind == _BOX:
            return Shape.box(2 * size, **options)
        if kind in (_CAPSULE, _CYLINDER):
            make = Shape.capsule if kind == _CAPSULE else Shape.cylinder
            return make(size[0], 2 * size[1], **options)
        if kind != _MESH or m.mesh_pathadr[mesh] < 0:
            return None
        # MuJoCo moves the vertices into the principal frame of the mesh.
        options["pose"] = options["pose"] @ inverse(_pose(m.mesh_pos[mesh], m.mesh_quat[mesh]))
        path = m.paths[m.mesh_pathadr[mesh] :].split(b"\0")[0].decode("utf-8", "surrogateescape")
        return Shape.mesh(os.path.abspath(path), m.mesh_scale[mesh], **options)

    def attachments(self, body: int) -> Iterator[Attachment]:
        """A body and, if it has several joints, massless links between them, which turn and slide in their order."""
        m = self.model
        parent = self.bodies[m.body_parentid[body]]
        first, count = m.body_jntadr[body], m.body_jntnum[body]
        home = _pose(m.body_pos[body], m.body_quat[body])
        if count == 0:
            yield Attachment(self.link(body), parent, fixed(unused(self.bodies[body], self.taken)), home)
        for k in range(first, first + count):
            last = k == first + count - 1
            link = self.link(body) if last else Link(unused(f"{self.bodies[body]}_{self.name(k)}", self.links))
            joint, offset = self.joint(k)
            # MuJoCo has the positions of a free joint from the world.
            from_world = m.jnt_type[k] == _FREE and home_key(self.name(k)) not in self.numerics
            yield Attachment(link, parent, joint, np.eye(4) if from_world else home @ offset)
            parent, home = link.name, np.eye(4)

    def name(self, k: int) -> str:
        """The name of a joint, which is made from that of its body if it has none."""
        if not self.joints[k]:
            self.joints[k] = unused(self.bodies[self.model.jnt_bodyid[k]], self.taken)
        return str(self.joints[k])

    def joint(self, k: int) -> tuple[Joint, Array]:
        """A joint, and the motion by which its position 0 differs from MuJoCo's home pose."""
        m, name = self.model, self.name(k)
        kind, at = m.jnt_type[k], m.jnt_dofadr[k]
        point, axis = m.jnt_pos[k].copy(), m.jnt_axis[k].copy()
        options: dict[str, Any] = {
            "name": name,
            "damping": float(self.damping[at]),
            "friction": float(self.friction[at]),
        }
        if kind in (_FREE, _BALL):
            freedoms = slice(at, at + (6 if kind == _FREE else 3))
            ignored = {
                "the stiffness": self.stiffness[k],
                "the limit": self.limited[k],
                "the armature": m.dof_armature[freedoms].any(),
            }
            self.findings.warnings += [f"{what} of joint {name!r}" for what, value in ignored.items() if value]
            return free(passive=True, **options) if kind == _FREE else spherical(point, **options), np.eye(4)
        q = m.jnt_qposadr[k]
        options |= {"limits": tuple(m.jnt_range[k].tolist()) if self.limited[k] else None}
        options["armature"] = float(m.dof_armature[at])
        if k in self.followers:
            _, leader, ratio, constant = self.followers[k]
            options["mimic"] = Mimic(self.name(leader), ratio, constant)
        if self.stiffness[k]:
            options |= {"stiffness": float(self.stiffness[k]), "rest": float(m.qpos_spring[q])}
        joint = revolute(axis, point, **options) if kind == _HINGE else prismatic(axis, **options)
        return joint, screw_motion(joint.screws[:, 0], -float(m.qpos0[q]))

    def followers_by_joint(self) -> dict[int, tuple[int, int, float, float]]:
        """The first active linear constraint of each joint, its leader, ratio and offset: q = ratio q_leader + offset.

        MuJoCo has q₁ − ref₁ = a₀ + a₁ (q₂ − ref₂) + a₂ (q₂ − ref₂)² + …. What would close a circle is left out.
        """
        m = self.model
        found: dict[int, tuple[int, int, float, float]] = {}
        for k in self.equalities:
            joint, leader = int(m.eq_obj1id[k]), int(m.eq_obj2id[k])
            if m.eq_type[k] != _JOINT or leader < 0 or m.eq_data[k, 2:5].any() or joint in found:
                continue
            passed = leader
            while passed in found:
                passed = found[passed][1]
            if passed != joint and {int(m.jnt_type[joint]), int(m.jnt_type[leader])} <= {_SLIDE, _HINGE}:
                constant, ratio = m.eq_data[k, :2].tolist()
                one, other = (float(m.qpos0[m.jnt_qposadr[x]]) for x in (joint, leader))
                found[joint] = k, leader, ratio, constant + one - ratio * other
        return found

    def loop(self, k: int, name: str, taken: set[str]) -> Loop | None:
        """A connect or weld constraint between two bodies, as a spherical or fixed joint of body1 on body2."""
        m, data, kind = self.model, self.model.eq_data[k], self.model.eq_type[k]
        if kind not in (_CONNECT, _WELD):
            return None
        ends = bodies = int(m.eq_obj1id[k]), int(m.eq_obj2id[k])
        # The frames in body1 and body2 that coincide; of a connect constraint, only their origins do.
        if m.eq_objtype[k] == _SITE:
            bodies = m.site_bodyid[[*ends]]
            frame, there = (_pose(m.site_pos[s], m.site_quat[s]) for s in ends)
        elif kind == _CONNECT:
            frame, there = pose(np.eye(3), data[:3]), pose(np.eye(3), data[3:6])
        else:
            frame, there = _pose(data[3:6], data[6:10]), pose(np.eye(3), data[:3])
        if bodies[0] == bodies[1]:
            return None
        if kind == _CONNECT or data[10] == 0:  # without torques, a weld holds the anchors only
            joint, home = spherical(frame[:3, 3]), pose(np.eye(3), there[:3, 3] - frame[:3, 3])
        else:
            joint, home = fixed(), there @ inverse(frame)
        return Loop(unused(name, taken), self.bodies[bodies[0]], self.bodies[bodies[1]], joint, home)

    def note_ignored(self) -> None:
        """Warn about everything else that changes the motion."""
        import mujoco

        m = self.model
        poly = self.enabled("spring", getattr(m, "jnt_stiffnesspoly", np.zeros(m.njnt)))
        yields = self.stiffness * getattr(m, "jnt_springyield", np.zeros(m.njnt))
        damper = self.enabled("damper", getattr(m, "dof_dampingpoly", np.zeros(m.nv)))
        bent = [self.name(k) for k in range(m.njnt) if np.any(poly[k]) or yields[k] or np.any(damper[m.jnt_dofadr[k]])]
        lifted = self.enabled("gravcomp", m.body_gravcomp)
        held = [self.bodies[k] for k in range(m.nbody) if lifted[k] or m.body_mocapid[k] >= 0]
        actuators = self.named("actuator", m.nu)
        if "actuation" in self.off:  # their inertias and dampers stay
            passive = np.array([getattr(m, f"actuator_{x}", np.zeros(m.nu)) for x in ("armature", "damping")])
            actuators = [name for name, own in zip(actuators, passive.T, strict=True) if own.any()]
        self.note("the nonlinear spring or damper of joint", bent)
        self.note("compensation of gravity or motion capture of body", held)
        self.note("the tendon", self.named("tendon", m.ntendon))
        self.note("the actuator", actuators)
        self.note("the flexible body", self.named("flex", m.nflex))
        if (m.opt.density or m.opt.viscosity) and "medium" not in self.off:
            self.findings.warnings.append("the forces of the medium (density, viscosity, wind)")
        flag = mujoco.mjtEnableBit.__members__.get("mjENBL_SLEEP")  # which earlier versions do not have
        if flag is not None and m.opt.enableflags & int(flag):
            self.findings.warnings.append("the flag sleep, which lets MuJoCo hold bodies still that hardly move")

    def note(self, what: str, names: list[str]) -> None:
        if names:
            self.findings.warnings.append(f"{what}{'s' * (len(names) > 1)} {some(map(repr, names), 20)}")


def _pose(position: Array, quaternion: Array) -> Array:
    """The pose with a quaternion whose scalar is first."""
    return pose(rotation_of(np.roll(quaternion, -1)), position)
