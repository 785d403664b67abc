"""URDF reader.

All problems of a file are reported together, with their lines. A wrong structure is an error. Doubtful numbers that can
be used in computations cause a warning, or an error if ``strict``.
"""

from __future__ import annotations

import os
import warnings

from screwdyn.core.errors import ScrewdynError, ScrewdynWarning, URDFError
from screwdyn.io.document import Names, Source, known_effective, listed, read_source
from screwdyn.io.meshes import Folders, Meshes
from screwdyn.io.urdf_records import JointRecord, LinkRecord, Model, model_of
from screwdyn.io.urdf_xml import Element, Problem, Report, Unexpanded, parse
from screwdyn.io.xacro_text import expanded
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.joint import GroupOptions, Joint, fixed, free, planar, prismatic, revolute
from screwdyn.mechanism.link import Attachment, Link
from screwdyn.mechanism.topology import Topology, with_loops

__all__ = ["check_urdf", "read_urdf"]


def read_urdf(
    path_or_text: str | os.PathLike[str],
    floating_base: bool = False,
    *,
    strict: bool = False,
    package_dirs: Folders = (),
    xacro: bool | None = None,
) -> Topology:
    """Read the links and joints of a URDF robot; :meth:`KinematicTree.from_urdf` makes a tree from them.

    The root link becomes the tree's base. The other links are attached to their parents depth first and in the order of
    the joints in the file; fixed joints and massless links are kept. The name of a joint is the name of its coordinate,
    or the beginning of the names of its coordinates. As in URDF, the default axis of a joint is x, and rpy angles mean
    Rz(yaw) Ry(pitch) Rx(roll). A floating joint becomes a passive free joint; the axis of a planar joint is the plane's
    normal; neither has limits. Mimic joints follow the joints that they name; those that cannot become independent
    (with a warning). Units are those of URDF: m, kg, rad, s. Elements ``<screwdyn_loop>`` close loops
    (docs/files.md).

    Visual and collision elements become shapes of their links, which keep the colours of materials but not textures.
    Of a mesh only the path is read, which ``Meshes.find`` of ``screwdyn.io.meshes`` looks for. Whatever is wrong with a
    shape is a warning.

    Parameters
    ----------
    path_or_text : str or path
        XML text if it begins with ``<``, otherwise the path of a file.
    floating_base : bool
        Attach the root link to a new base ``world`` by a passive free joint ``base``; ``world_2``, ``base_2``, … if the
        file uses these names.
    strict : bool
        Raise an error instead of a warning, for example for an inertia that no rigid body has or a missing limit.
    package_dirs : path or sequence of paths
        Folders that contain the packages of meshes named ``package://…``, or are packages.
    xacro : bool, optional
        Whether xacro is expanded first, by the package ``xacro`` (extra ``xacro``), which runs the expressions in
        it: expand only files that you trust. By default only files whose names end in ``.xacro`` are.

    Returns
    -------
    Topology
        With gravity (0, 0, -9.81) m/s².

    Raises
    ------
    URDFError
        Lists every problem of the file with its line, or states which file cannot be opened.
    ScrewdynError
        If ``floating_base`` or ``xacro`` is not a bool, or ``package_dirs`` are not paths.

    Warns
    -----
    ScrewdynWarning
        Once per file, listing all its warnings; one of them names all missing meshes.
    """
    if not isinstance(floating_base, bool):
        raise ScrewdynError(f"floating_base must be True or False; got {floating_base!r}")
    title, report, model = _read(path_or_text, package_dirs, xacro)
    problems = _in_order(report)
    if model is None or (strict and problems):
        raise URDFError(listed(title, problems), problems)
    if problems:
        warnings.warn(listed(title, problems), ScrewdynWarning, stacklevel=3)  # of from_urdf's caller
    return _build(model, floating_base)


def check_urdf(
    path_or_text: str | os.PathLike[str], package_dirs: Folders = (), *, xacro: bool | None = None
) -> list[Problem]:
    """All problems of a URDF file, errors and warnings, in the order of their lines.

    Parameters
    ----------
    path_or_text, package_dirs, xacro
        As for :func:`read_urdf`.

    Raises
    ------
    URDFError
        Only if the file cannot be opened.
    """
    return _in_order(_read(path_or_text, package_dirs, xacro)[1])


def _read(
    path_or_text: str | os.PathLike[str], package_dirs: Folders, xacro: bool | None
) -> tuple[str, Report, Model | None]:
    """Title for messages, all problems, and the model if there was no error."""
    if not (xacro is None or isinstance(xacro, bool)):
        raise ScrewdynError(f"xacro must be True or False, or None for files named .xacro; got {xacro!r}")
    source = read_source(path_or_text, "URDF", "<", URDFError)
    report, meshes = Report(), Meshes(source.path and source.path.parent, package_dirs)
    expansion = False
    try:
        root = parse(source.document, report, source.encoding, source.skipped_lines)
    except Unexpanded as found:
        if xacro is None:
            xacro = source.path is not None and source.path.suffix.lower() == ".xacro"
        root = (_expand if xacro else _refuse)(source, found, report)
        expansion = root is not None
    model = None if root is None or report.failed else model_of(root, report, meshes)
    if expansion and report.problems:
        message = "this is xacro; lines are those of the URDF that it expands to"
        report.problems.insert(0, Problem(1, "<robot>", message, "see them by: xacro FILE", "warning"))
    return source.title, report, None if report.failed else model


def _refuse(source: Source, found: Unexpanded, report: Report) -> None:
    """Report that a document is xacro, which is not to be expanded."""
    hint = "if you trust it, expand it by xacro=True or --xacro, which runs the Python expressions in it"
    report.add(found.element, f"this is xacro, not URDF{found.where}", hint)


def _expand(source: Source, found: Unexpanded, report: Report) -> Element | None:
    """The root of a xacro document after expansion."""
    try:
        return parse(expanded(source.document, source.encoding, source.path), report, "utf-8")
    except ModuleNotFoundError as error:
        message = f"this is xacro, not URDF{found.where}"
        hint = "pip install 'screwdyn[xacro]', or expand it first: xacro FILE > robot.urdf"
        if error.name != "xacro":
            message, hint = f"xacro cannot expand this: {error}", "install what it asks for"
        report.add(found.element, message, hint)
    except Unexpanded as left:
        report.add(left.element, f"this is still xacro after expansion{left.where}")
    except Exception as error:  # an expression can raise any error
        report.add(found.element, f"xacro cannot expand this: {str(error) or type(error).__name__}")
    return None


def _in_order(report: Report) -> list[Problem]:
    return sorted(report.problems, key=lambda problem: problem.line)


def _build(model: Model, floating_base: bool) -> Topology:
    root, attachments = _link(model.links[model.root]), []
    base = Link(Names([*model.links, *model.loops]).unused("world")) if floating_base else root
    if floating_base:
        names = Names([*model.joints, *model.loops])
        attachments.append(Attachment(root, base.name, free(passive=True, name=names.unused("base"))))
    waiting = list(reversed(model.outgoing.get(model.root, [])))
    while waiting:
        joint = waiting.pop()
        attachments.append(Attachment(_link(model.links[joint.child]), joint.parent, _joint(joint), joint.home))
        waiting.extend(reversed(model.outgoing.get(joint.child, [])))
    return with_loops(Topology.rooted(base).attach(attachments), model.loops.values())


def _link(record: LinkRecord) -> Link:
    m = record.mass
    if m is None:
        return Link(record.name, None, record.shapes)
    make = Inertia if m.physical else known_effective
    return Link(record.name, make(m.mass, m.com, m.tensor), record.shapes)


def _joint(record: JointRecord) -> Joint:
    if record.kind == "fixed":
        return fixed(name=record.name)
    own = GroupOptions(
        passive=record.kind == "floating",
        damping=record.damping,
        friction=record.friction,
        effort=record.effort,
        velocity=record.velocity,
        name=record.name,
    )
    if record.kind == "floating":
        return free(**own)
    if record.kind == "planar":
        return planar(record.axis, **own)
    make = prismatic if record.kind == "prismatic" else revolute
    return make(record.axis, limits=record.limits, mimic=record.mimic, **own)
