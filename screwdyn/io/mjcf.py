"""Reader and writer of MJCF, the format of MuJoCo, whose package ``mujoco`` (extra ``mjcf``) compiles it to be read."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from screwdyn.core import Array, ContactError, ModelError, ScrewdynError, expressions
from screwdyn.io.document import Findings, read_source, some, unused
from screwdyn.io.xml_text import Writer, opening, tag
from screwdyn.mechanism import Attachment, Contact, Link, Loop, Plane, Topology, failing_condition, with_ties
from screwdyn.mechanism.contact import bodies_of
from screwdyn.mechanism.joint import Joint, Mimic, fixed, free, prismatic, revolute, spherical
from screwdyn.mechanism.shape import Kind, Shape
from screwdyn.screws.screw import Ad, inverse, pose, rotation_of, screw_motion

if TYPE_CHECKING:
    import mujoco

# Values of MuJoCo's mjtJoint, mjtGeom, mjtEq and mjtObj.
_FREE, _BALL, _SLIDE, _HINGE = range(4)
_KINDS: Mapping[int, Kind] = {2: "sphere", 3: "capsule", 5: "cylinder", 6: "box", 7: "mesh"}
_CONNECT, _WELD, _JOINT = range(3)
_SITE = 6
# Sizes of shapes as multiples of MuJoCo's, which has half edges and half lengths.
_WHOLE = {"sphere": (1,), "capsule": (1, 2), "cylinder": (1, 2), "box": (2, 2, 2)}
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


def read_mjcf(
    path_or_text: str | os.PathLike[str] | mujoco.MjModel, *, strict: bool = False, contacts: bool = False
) -> Topology:
    """Read the bodies and joints of an MJCF model; :meth:`KinematicTree.from_mjcf` describes it."""
    title = "the MJCF model"
    findings = Findings(ModelError, f"{title} cannot be read", f"{title} is read without the following")
    reader = _Reader(_compiled(path_or_text), findings)
    topology = reader.topology()
    topology = with_ties(topology, reader.contacts(topology)) if contacts else topology
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
        names = [model.joint(k).name for k in range(model.njnt)]
        self.links, self.taken = {*self.bodies}, {*filter(None, names)}
        bodies = [self.bodies[body] for body in model.jnt_bodyid]
        self.joints = [name or unused(body, self.taken) for name, body in zip(names, bodies, strict=True)]
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
        self.note_ignored(unread)
        return with_ties(Topology.rooted(self.link(0), gravity).attach(attachments), loops)

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
        kind, mesh = _KINDS.get(int(m.geom_type[geom])), m.geom_dataid[geom]
        color, material = m.geom_rgba[geom], m.geom_matid[geom]
        if np.array_equal(color, _GREY):
            color = None if material < 0 else m.mat_rgba[material]
        options: dict[str, Any] = {
            "pose": _pose(m.geom_pos[geom], m.geom_quat[geom]),
            "color": None if color is None else np.clip(color, 0, 1),
            "use": "visual" if m.geom_group[geom] < _HIDDEN else "collision",
        }
        if kind is None or (kind == "mesh" and m.mesh_pathadr[mesh] < 0):
            return None
        if kind != "mesh":
            whole = np.array(_WHOLE[kind])
            return Shape(kind, whole * m.geom_size[geom][: len(whole)], **options)
        # MuJoCo moves the vertices into the principal frame of the mesh.
        options["pose"] = options["pose"] @ inverse(_pose(m.mesh_pos[mesh], m.mesh_quat[mesh]))
        path = m.paths[m.mesh_pathadr[mesh] :].split(b"\0")[0].decode("utf-8", "surrogateescape")
        return Shape.mesh(os.path.abspath(path), m.mesh_scale[mesh], **options)

    def contacts(self, topology: Topology) -> list[Contact]:
        """The contacts of geoms that MuJoCo lets touch and whose rows have closed forms; a warning names the others."""
        m, found, names = self.model, list[Contact](), self.named("geom", self.model.ngeom)
        taken = {*topology.attachments, *topology.carried, *topology.loops}
        welded = m.body_weldid[m.geom_bodyid]
        above = m.body_weldid[m.body_parentid[welded]]
        for a, b in itertools.combinations(range(0 if "contact" in self.off else m.ngeom), 2):
            may = (m.geom_contype[a] & m.geom_conaffinity[b]) | (m.geom_contype[b] & m.geom_conaffinity[a])
            related = welded[a] == above[b] != 0 or welded[b] == above[a] != 0 or welded[a] == welded[b]
            first, second = sorted((int(m.geom_bodyid[a]), int(m.geom_bodyid[b])))
            if not may or related or (first << 16) + second in m.exclude_signature:
                continue
            friction = float(m.geom_friction[[a, b], 0].max())
            for at, on in ((a, b), (b, a)):
                link, to = (self.bodies[m.geom_bodyid[geom]] for geom in (at, on))
                shape, body = self.shape(at), self.body_of(on)
                with suppress(ContactError):
                    own = bodies_of(link, [] if shape is None else [shape])
                    name = f"{names[at]}/{names[on]}"
                    found.append(Contact(unused(name, taken), link, to, body, friction, shapes=own))
                    break
            else:
                self.findings.warnings.append(f"the contact of geoms {names[a]!r} and {names[b]!r}")
        return found

    def body_of(self, geom: int) -> Any:
        """A geom as what points may touch."""
        m = self.model
        if m.geom_type[geom] != 0:
            return self.shape(geom)
        T = _pose(m.geom_pos[geom], m.geom_quat[geom])
        return Plane(tuple(T[:3, 2].tolist()), float(T[:3, 2] @ T[:3, 3]))

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
            link = self.link(body) if last else Link(unused(f"{self.bodies[body]}_{self.joints[k]}", self.links))
            joint, offset = self.joint(k)
            # MuJoCo has the positions of a free joint from the world.
            from_world = m.jnt_type[k] == _FREE and _home_key(self.joints[k]) not in self.numerics
            yield Attachment(link, parent, joint, np.eye(4) if from_world else home @ offset)
            parent, home = link.name, np.eye(4)

    def joint(self, k: int) -> tuple[Joint, Array]:
        """A joint, and the motion by which its position 0 differs from MuJoCo's home pose."""
        m, name = self.model, self.joints[k]
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
        if m.jnt_actfrclimited[k]:
            low, high = m.jnt_actfrcrange[k].tolist()
            options["effort"] = high if low == -high else None
            self.findings.warnings += [f"the limits of force of joint {name!r}"] if low != -high else []
        if k in self.followers:
            _, leader, ratio, constant = self.followers[k]
            options["mimic"] = Mimic(self.joints[leader], ratio, constant)
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

    def note_ignored(self, equalities: list[str]) -> None:
        """Warn about equality constraints and everything else that changes the motion."""
        import mujoco

        m = self.model
        poly = self.enabled("spring", getattr(m, "jnt_stiffnesspoly", np.zeros(m.njnt)))
        yields = self.stiffness * getattr(m, "jnt_springyield", np.zeros(m.njnt))
        damper = self.enabled("damper", getattr(m, "dof_dampingpoly", np.zeros(m.nv)))
        bent = [
            self.joints[k] for k in range(m.njnt) if np.any(poly[k]) or yields[k] or np.any(damper[m.jnt_dofadr[k]])
        ]
        lifted = self.enabled("gravcomp", m.body_gravcomp)
        held = [self.bodies[k] for k in range(m.nbody) if lifted[k] or m.body_mocapid[k] >= 0]
        actuators = self.named("actuator", m.nu)
        if "actuation" in self.off:  # their inertias and dampers stay
            passive = np.array([getattr(m, f"actuator_{x}", np.zeros(m.nu)) for x in ("armature", "damping")])
            actuators = [name for name, own in zip(actuators, passive.T, strict=True) if own.any()]
        ignored = {
            "the equality constraint": equalities,
            "the nonlinear spring or damper of joint": bent,
            "compensation of gravity or motion capture of body": held,
            "the tendon": self.named("tendon", m.ntendon),
            "the actuator": actuators,
            "the flexible body": self.named("flex", m.nflex),
        }
        found = {f"{what}{'s' * (len(names) > 1)}": some(map(repr, names), 20) for what, names in ignored.items()}
        self.findings.warnings += [f"{what} {names}" for what, names in found.items() if names]
        if (m.opt.density or m.opt.viscosity) and "medium" not in self.off:
            self.findings.warnings.append("the forces of the medium (density, viscosity, wind)")
        flag = mujoco.mjtEnableBit.__members__.get("mjENBL_SLEEP")  # which earlier versions do not have
        if flag is not None and m.opt.enableflags & int(flag):
            self.findings.warnings.append("the flag sleep, which lets MuJoCo hold bodies still that hardly move")


def _pose(position: Array, quaternion: Array) -> Array:
    """The pose with a quaternion whose scalar is first."""
    return pose(rotation_of(np.roll(quaternion, -1)), position)


# Writing --------------------------------------------------------------------------------------------------------------

# Names of the world in MuJoCo, and of constraints that are joints of loops.
_WORLD, _CONSTRAINTS = "world", {"spherical": "connect", "fixed": "weld"}
# MuJoCo's mjMINVAL, kg and kg m²: the least mass and moments of a body that moves.
_LEAST = 1e-15
# Kinds of joints beside which a body has no other in MJCF, or which MJCF does not have.
_ALONE = "free", "planar"
# Of the joints of one body, in MuJoCo.
_MOST_FREEDOMS = 6


def _home_key(joint: str) -> str:
    """Name of the custom number that says that q of a free joint is that from the pose of its body in the file."""
    return f"screwdyn_q_from_pose_of_body/{joint}"


def write_mjcf(topology: Topology, name: str = "robot") -> str:
    """The text of a tree; :meth:`KinematicTree.to_mjcf` describes it."""
    writer = _Writer(topology, name)
    lines = [opening("mujoco", model=name), *writer.lines(), "</mujoco>\n"]
    writer.report()
    return "\n".join(lines)


class _Writer(Writer):
    kind, error, what = "MJCF", ModelError, "model"

    def lines(self) -> Iterator[str]:
        self.couplings: list[str] = []
        self.numerics: list[str] = []
        self.children: dict[str, list[Attachment]] = {name: [] for name in self.topology.attachments}
        for at in self.topology.attachments.values():
            if at.parent is not None:
                self.children[at.parent].append(at)
        self.sites: dict[str, list[str]] = {name: [] for name in self.topology.attachments}
        self.names: set[str] = set()
        loops = [line for loop in self.topology.loops.values() for line in self.loop(loop)]
        yield '  <compiler angle="radian" inertiafromgeom="false" autolimits="true"/>'
        yield f"  {tag('option', gravity=self.topology.gravity)}"
        yield from self.bodies()
        for section, lines in (("equality", [*loops, *self.couplings]), ("custom", self.numerics)):
            if lines:
                yield from (f"  <{section}>", *lines, f"  </{section}>")

    def bodies(self) -> Iterator[str]:
        """The lines of the base, which is MuJoCo's world, and of all bodies in it."""
        base = self.topology.attachments[self.topology.base].link
        yield "  <worldbody>"
        yield from self.content(base)
        # A stack, because a chain may be longer than Python's.
        todo: list[Attachment | str] = list(reversed(self.children[base.name]))
        while todo:
            item = todo.pop()
            if isinstance(item, str):
                yield item
                continue
            row = self.row(item)
            yield from self.body(row)
            todo += ["    </body>", *reversed(self.children[row[-1].link.name])]
        yield "  </worldbody>"

    def row(self, first: Attachment) -> list[Attachment]:
        """An attachment and those beyond it whose joints become those of one body: the links between are massless."""
        row = [first]
        while self.is_only_between_joints(row[-1]):
            (at,) = self.children[row[-1].link.name]
            freedoms = sum(part.joint.screws.shape[1] for part in (*row, at))
            if at.joint.kind in _ALONE or freedoms > _MOST_FREEDOMS:
                break
            # MuJoCo has a ball joint after all hinges of its body, and its quaternion in the body's axes.
            turned = not np.array_equal(expressions.floats(at.home)[:3, :3], np.eye(3))
            turns = expressions.floats(at.joint.screws)[:3].any()
            if (turned or turns) and any(part.joint.kind == "spherical" for part in row):
                break
            row.append(at)
        return row if len(row) == 1 or self.is_massive(row[-1]) else [first]

    def is_only_between_joints(self, at: Attachment) -> bool:
        """Whether a link has no other use than to connect its joint to that of the only link on it."""
        link, children = at.link, self.children[at.link.name]
        empty = link.inertia is None and not link.shapes and not self.sites[link.name]
        moves = at.joint.screws.size and at.joint.kind not in _ALONE
        return bool(empty and moves and len(children) == 1 and children[0].joint.screws.size)

    def body(self, row: Sequence[Attachment]) -> Iterator[str]:
        """The lines of a body, on which are the joints of a row of attachments, up to the bodies in it."""
        at = row[-1]
        self.check_name("link", at.link.name)
        if at.link.name == _WORLD:
            self.errors.append(f"link {_WORLD!r} has the name of MuJoCo's world; rename it")
        # From each link to the last one, whose frame MuJoCo has for all joints.
        ahead = [np.eye(4)]
        for part in reversed(row):
            ahead.append(expressions.floats(part.home) @ ahead[-1])
        home, *places = reversed(ahead)
        yield f"    {opening('body', name=at.link.name, **_placed(home))}"
        if at.joint.screws.size and not self.is_massive(at):
            hint = "MuJoCo requires a mass and three moments of what moves"
            self.errors.append(f"link {at.link.name!r} and those fixed to it have no inertia; {hint}")
        for part, place in zip(row, places, strict=True):
            self.note_state(part)
            if part.joint.screws.size:
                self.check_name("joint", part.name)
                yield from self.joint(part, inverse(place))
            if part is not at:
                name, read = part.link.name, f"{at.link.name}_{part.joint.row_names(part.name)[-1]}"
                if name != read:
                    self.warnings.append(f"the name of the massless link {name!r}, which is read as {read!r}")
                if not np.array_equal(place, np.eye(4)):
                    moved = f"the frame of the massless link {name!r}"
                    self.warnings.append(f"{moved}, which becomes that of {at.link.name!r}")
        if at.link.inertia is not None:
            inertia = at.link.inertia.evaluated()
            wrong = failing_condition(inertia.mass, inertia.tensor)
            if wrong is not None:
                refused = f"link {at.link.name!r}: no rigid body has its inertia, which MuJoCo refuses"
                self.errors.append(f"{refused}: {wrong}")
            moments, axes = np.maximum(inertia.principal_moments, 0.0), inertia.principal_axes.T[:2]
            yield f"      {tag('inertial', mass=inertia.mass, pos=inertia.com, xyaxes=axes, diaginertia=moments)}"
        yield from self.content(at.link)

    def content(self, link: Link) -> Iterator[str]:
        """The shapes of a link, and the sites of its loops."""
        yield from self.sites[link.name]
        for shape in link.shapes:
            if shape.kind == "mesh":
                self.warnings.append(f"a mesh of link {link.name!r}")
                continue
            half = np.array(shape.size) / _WHOLE[shape.kind]
            # Visual ones touch nothing; MuJoCo's viewer hides group 3 at first.
            use = {"contype": "0", "conaffinity": "0"} if shape.use == "visual" else {"group": "3"}
            yield f"      {tag('geom', type=shape.kind, size=half, **_placed(shape.pose), rgba=shape.color, **use)}"

    def joint(self, at: Attachment, place: Array) -> Iterator[str]:
        """The lines of a joint, whose own frame has a pose in that of its body."""
        joint, name = at.joint, at.name
        if joint.mimic is not None:
            polynomial = [joint.mimic.offset, joint.mimic.ratio, 0, 0, 0]
            self.couplings.append(f"    {tag('joint', joint1=name, joint2=joint.mimic.joint, polycoef=polynomial)}")
        effort = (joint.effort or 0.0) if joint.kind in ("revolute", "prismatic") else 0.0
        bounded = 0 < effort < inf
        lost = {"effort": joint.effort is not None and not bounded, "velocity": joint.velocity is not None}
        self.warnings += [f"the limit of {what} of joint {name!r}" for what, value in lost.items() if value]
        friction = {"damping": joint.damping, "frictionloss": joint.friction, "armature": joint.armature}
        options: dict[str, object] = {what: x for what, x in friction.items() if x != 0}
        found: list[dict[str, object]] = []
        if joint.kind == "planar":
            self.refuse_group(at)
        elif joint.kind == "free" and at.parent != self.topology.base:
            self.errors.append(f"free joint {name!r} is not on the base, as in MJCF")
        elif joint.kind == "free":
            found.append({"name": name, "type": "free"})
            if not np.array_equal(expressions.floats(at.home), np.eye(4)):
                self.numerics.append(f"    {tag('numeric', name=_home_key(name), data='1')}")
        elif joint.chart is not None:
            found.append({"name": name, "type": "ball", "pos": expressions.floats(joint.chart.center) + place[:3, 3]})
        else:
            if joint.stiffness != 0:
                options |= {"stiffness": joint.stiffness, "springref": joint.rest}
            if bounded:
                options["actuatorfrcrange"] = -effort, effort
            if joint.limits is not None and all(map(isfinite, joint.limits)):
                options["range"] = joint.limits
            elif joint.limits is not None:
                self.warnings.append(f"the limit on one side of joint {name!r}")
            for freedom, kind, axis, point in self.freedoms(at, Ad(place) @ expressions.floats(joint.screws)):
                hinge = kind == "revolute"
                own = {"type": "hinge" if hinge else "slide", "axis": axis, "pos": point if hinge else None}
                found.append({"name": freedom, **own})
        yield from (f"      {tag('joint', **given, **options)}" for given in found)

    def is_massive(self, at: Attachment) -> bool:
        """Whether a link, or one that is welded to it, has a mass and moments."""
        todo = [at]
        while todo:
            part = todo.pop()
            inertia = part.link.inertia
            if inertia is not None and min(float(inertia.mass), *inertia.evaluated().principal_moments) > _LEAST:
                return True
            todo += [child for child in self.children[part.link.name] if not child.joint.screws.size]
        return False

    def loop(self, loop: Loop) -> Iterator[str]:
        """The constraint of a loop between two sites, which are noted for their links."""
        self.check_name("loop", loop.name)
        kind = _CONSTRAINTS.get(loop.joint.kind)
        if kind is None:
            known = " and ".join(_CONSTRAINTS)
            self.errors.append(f"loop {loop.name!r} has a {loop.joint.kind} joint; MJCF has {known} ones only")
            return
        here, home = np.eye(4), expressions.floats(loop.home)
        if loop.joint.chart is not None:
            here[:3, 3] = expressions.floats(loop.joint.chart.center)
        ends = []
        for link, frame in ((loop.link, here), (loop.to, home @ here)):
            ends.append(unused(f"{loop.name}_{link}", self.names))
            self.sites[link].append(f"      {tag('site', name=ends[-1], **_placed(frame))}")
        yield f"    {tag(kind, name=loop.name, site1=ends[0], site2=ends[1])}"


def _placed(T: Array) -> dict[str, Array]:
    """The attributes of a pose."""
    return {"pos": T[:3, 3], "xyaxes": T[:3, :2].T}
