"""The readers and writers as methods of a tree."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

from screwdyn.core.types import ArrayLike
from screwdyn.io.json_text import read_json, write_json
from screwdyn.io.mjcf import read_mjcf, write_mjcf
from screwdyn.io.objects import from_dh, from_graph, read_pinocchio
from screwdyn.io.srdf import read_srdf
from screwdyn.io.urdf import Folders, Xacro, read_urdf, write_urdf
from screwdyn.mechanism import Link, Mechanism, Topology
from screwdyn.physics.state import State

if TYPE_CHECKING:
    import mujoco
    import networkx as nx


class Files(Mechanism):
    """A tree from files, tables and models of other packages, and its text in three formats."""

    @classmethod
    def from_urdf(
        cls,
        path_or_text: str | os.PathLike[str],
        floating_base: bool = False,
        *,
        strict: bool = False,
        package_dirs: Folders = (),
        xacro: Xacro = None,
    ) -> Self:
        """Read a URDF or xacro file, or its text, which begins with ``<``; xacro needs the extra ``xacro``.

        The root link becomes the base. The other links, also massless ones and those behind fixed joints, are attached
        depth first and in the order of the joints in the file. The name of a joint is that of its coordinate, or the
        beginning of the names of its coordinates. As in URDF, the default axis of a joint is x, and rpy angles mean
        Rz(yaw) Ry(pitch) Rx(roll). A floating joint becomes a passive free joint; the axis of a planar joint is the
        plane's normal; neither has limits. Mimic joints follow the joints that they name; those that cannot become
        independent (with a warning). Elements ``<screwdyn_loop>``, as :meth:`to_urdf` writes them, close loops. Units
        are those of URDF: m, kg, rad, s. Gravity is (0, 0, -9.81) m/s².

        Visual and collision elements become :meth:`shapes` of their links, which keep the colours of materials but not
        textures. Files of meshes are looked for but not read. Whatever is wrong with a shape is a warning.

        Parameters
        ----------
        path_or_text : str or path
        floating_base : bool
            Attach the root link to a new base ``world`` by a passive free joint ``base``, which comes first in q and q̇;
            ``world_2``, ``base_2``, … if the file uses these names.
        strict : bool
            Raise an error instead of a warning, for example for an inertia that no rigid body has or a missing limit.
        package_dirs : path or sequence of paths
            Folders that contain the packages of meshes named ``package://…``, or are packages. They are also looked for
            in ``ROS_PACKAGE_PATH``, ``AMENT_PREFIX_PATH`` and the folders above that of the file, also in workspaces.
        xacro : bool or mapping, optional
            Whether xacro is expanded, which runs the Python expressions in it: only for files that you trust. By
            default files whose names end in ``.xacro`` are expanded, other files and texts are not. A mapping has
            values of its ``<xacro:arg>``, ``{"ur_type": "ur5e"}``. Packages of ``$(find …)`` are those of meshes.

        Returns
        -------
        KinematicTree

        Raises
        ------
        URDFError
            The message lists every problem of the file with its line.
        ScrewdynError
            If ``floating_base`` is not a bool, ``xacro`` neither that nor a mapping, or ``package_dirs`` are not paths.

        Warns
        -----
        ScrewdynWarning
            Once, with all doubtful entries of the file and the names of missing meshes.
        """
        return cls._of(read_urdf(path_or_text, floating_base, strict=strict, package_dirs=package_dirs, xacro=xacro))

    def reference_poses(
        self, srdf: str | os.PathLike[str], *, prefix: str = "", strict: bool = False, xacro: Xacro = None
    ) -> dict[str, State]:
        """The named poses of an SRDF file, such as ``"ready"`` and ``"half_sitting"``, as states at rest.

        Each element ``<group_state>`` is a pose; those of the same name in several groups are one. Joints that it does
        not name are neutral; values of fixed, locked and following joints are left out. Those of a
        ``<virtual_joint>``, and of ``root_joint``, are the pose of a floating base, and left out without one.

        Parameters
        ----------
        srdf : str or path
            A file, or its text, which begins with ``<``.
        prefix : str
            Of the names of the joints in the tree, as in ``torso.attach(arm, prefix="left/")``.
        strict : bool
            Raise an error instead of a warning.
        xacro : bool or mapping, optional
            As for :meth:`from_urdf`.

        Returns
        -------
        dict
            From name to :class:`State`.

        Raises
        ------
        URDFError
            The message lists every problem of the file with its line, such as an invalid value; also if the tree has
            none of the joints.

        Warns
        -----
        ScrewdynWarning
            Once, with all joints that the tree does not have. A pose of such joints only is left out.
        """
        found = read_srdf(srdf, self.topology, prefix, strict, xacro)
        return {name: State(self, positions) for name, positions in found.items()}  # type: ignore[arg-type]

    def to_urdf(self, name: str = "robot") -> str:
        """The tree as URDF text, from which :meth:`from_urdf` makes a tree with the same M, C and g within rounding.

        Coordinates keep their names, but not their order: a reader goes through the tree depth first. Links keep their
        names, frames and inertias. Where the axis of a joint does not pass through the origin of its link, or a joint
        has several freedoms, massless links ``<link>_axis`` carry joints of one freedom, named after the freedoms of
        the joint, such as ``pin[w]``; a fixed joint ``<link>_offset`` then connects the link. Free joints become
        floating and planar joints planar. Numbers have all digits. The largest float stands for a missing limit where
        URDF requires one. Shapes become visual and collision elements, with a cylinder and two spheres for a capsule;
        meshes are named by their paths. Loops become elements ``<screwdyn_loop>``, which other readers ignore.

        Parameters
        ----------
        name : str
            Of the robot.

        Returns
        -------
        str

        Raises
        ------
        URDFError
            Lists every joint and name that URDF cannot express: helical and spherical joints of the tree, joints of
            loops without a name of their own, names with characters that XML does not have.
        UnboundSymbolError
            If numbers contain symbols.

        Warns
        -----
        ScrewdynWarning
            Once, with everything that URDF has no place for: another gravity than (0, 0, -9.81) m/s², springs,
            armatures, passive joints other than floating ones, free joints that are not passive, locks, colours of
            collision shapes.
            :meth:`to_json` keeps it.

        Examples
        --------
        >>> import screwdyn as sd
        >>> arm = sd.robots.ur5()
        >>> twin = sd.KinematicTree.from_urdf(arm.to_urdf("ur5"))
        >>> twin.coordinates == arm.coordinates
        True
        """
        return write_urdf(self.topology, name)

    @classmethod
    def from_dh(
        cls,
        rows: Iterable[Mapping[str, Any]],
        convention: str = "standard",
        *,
        base: str | Link = "base",
        gravity: ArrayLike = (0.0, 0.0, -9.81),
    ) -> Self:
        """A serial arm from a Denavit-Hartenberg table; the frame of each link is its DH frame.

        Row i defines the pose of frame i in frame i-1:

        - standard: T = Rz(theta) Dz(d) Dx(a) Rx(alpha), the joint's axis is z of frame i-1 (Fu Eq. 3.2-5);
        - modified: T = Rx(alpha) Dx(a) Rz(theta) Dz(d), the joint's axis is z of frame i.

        The coordinate q is added to theta ("R") or to d ("P"); the table's value is the offset. In the link's own frame
        the axis is (0, sin alpha, cos alpha) through (-a, 0, 0) for standard rows and z through the origin for modified
        ones, so that T(q) = T(0) exp(S^ q) (docs/mathematics.md §1).

        Parameters
        ----------
        rows : iterable of dict
            Every key is optional, and every number may be a SymPy expression. ``type`` "R" (default) or "P"; ``d``,
            ``a`` in m, ``alpha``, ``theta`` in rad (default 0; multiples of pi/2 count as exact); ``m`` in kg, ``com``
            in m and ``inertia`` in kg m² about the com (3x3, three principal moments, or 0), both in the DH frame of
            the link; or an :class:`Inertia` as ``inertia``, without ``m`` and ``com``; ``name`` of the link (default
            "link1", …); ``joint``, the name of the joint and its coordinate (default "joint1", …); ``passive``,
            ``damping``, ``friction``, ``stiffness``, ``rest``, ``limits``, ``effort``, ``velocity``, ``armature`` as
            for :func:`screwdyn.revolute`. Without mass and inertia the link is massless.
        convention : "standard" or "modified"
        base : str or Link
            Name of frame 0, or its link.
        gravity : (3,) array
            In frame 0, m/s².

        Returns
        -------
        KinematicTree

        Raises
        ------
        ScrewdynError
            If the convention or a key of a row is unknown (with similar names), there are no rows, or a row is not a
            dict.
        JointError
            If a type is neither "R" nor "P", or a parameter of a joint is invalid.
        ShapeError
            If ``d``, ``a``, ``alpha``, ``theta`` or ``m`` is not a finite number.
        InertiaError
            If a mass is negative, an entry is NaN, a shape is wrong or a tensor is not symmetric.

        Warns
        -----
        ScrewdynWarning
            Once per table, for rows whose mass and inertia no rigid body has; they are used without change. Objects of
            class :class:`Inertia` are not checked.
        """
        return cls._of(from_dh(rows, convention, base=base, gravity=gravity))

    @classmethod
    def from_json(cls, path_or_text: str | os.PathLike[str]) -> Self:
        """Read a JSON file written by :meth:`to_json`, or its text, which begins with ``{``.

        Parameters
        ----------
        path_or_text : str or path

        Returns
        -------
        KinematicTree

        Raises
        ------
        JSONError
            The message lists every problem of the document with its place.

        Notes
        -----
        docs/files.md describes the format.
        """
        return cls._of(read_json(path_or_text))

    def to_json(self) -> str:
        """The tree as JSON text, from which :meth:`from_json` makes a tree with the same M, C and g to the last bit.

        Numbers have all digits, and expressions are strings such as ``"m*L**2/3"``. Handles and the revision are not
        written.

        Returns
        -------
        str

        Raises
        ------
        JSONError
            If an expression contains a function that is not elementary, or symbols that names do not distinguish.

        Examples
        --------
        >>> import screwdyn as sd
        >>> arm = sd.robots.two_link()
        >>> twin = sd.KinematicTree.from_json(arm.to_json())
        >>> bool((twin.mass_matrix([0.1, 0.2]) == arm.mass_matrix([0.1, 0.2])).all())
        True
        """
        return write_json(self.topology)

    @classmethod
    def from_mjcf(
        cls, path_or_text: str | os.PathLike[str] | mujoco.MjModel, *, strict: bool = False, contacts: bool = False
    ) -> Self:
        """Read a MuJoCo model; needs the package ``mujoco``, the extra ``mjcf``.

        The world becomes the base. Positions are MuJoCo's qpos, but quaternions have their scalar last. A free joint is
        passive, its position is that in the world, and its freedoms are the twist in the body's own frame (MuJoCo's
        linear velocities are in the axes of the world). A body with several joints is carried by massless links
        ``<body>_<joint>``. Names are kept; unnamed bodies are ``body1``, …, and unnamed joints are named after their
        bodies. Inertias are those that MuJoCo has compiled, also from shapes. The equality constraints ``connect`` and
        ``weld`` that are active close loops, as spherical and fixed joints of ``body1`` on ``body2``; MuJoCo's give way
        a little, these do not. An active linear constraint ``joint`` of a hinge or slide on another one makes
        ``joint1`` follow ``joint2`` (:class:`~screwdyn.Mimic`): it has no coordinate then. What the flags of
        ``<option>`` disable (springs, dampers, friction, limits, constraints, gravity) is not there. Contacts are read
        if asked for. Spheres, capsules, cylinders, boxes and meshes in files become :meth:`shapes`: visual if MuJoCo's
        viewer shows their group at first (0 to 2), else collision; planes, height fields, ellipsoids and other meshes
        are left out. A compiled model does not tell ``refpos`` and ``refquat`` of a mesh, which are taken as zero.

        Parameters
        ----------
        path_or_text : str, path or mujoco.MjModel
            A file, its text, which begins with ``<``, or a compiled model.
        strict : bool
            Raise an error instead of a warning.
        contacts : bool
            Whether geoms that MuJoCo lets touch become contacts, see :meth:`touch`, with the larger friction of both,
            without the softness of MuJoCo's: spheres, capsules and boxes on planes and on each other, but boxes on
            boxes, whose edges would need a ``radius``. Others are named in the warning.

        Returns
        -------
        KinematicTree

        Raises
        ------
        ModelError
            If MuJoCo cannot compile the model, or the file cannot be opened.
        ScrewdynError
            If ``mujoco`` is not installed.

        Warns
        -----
        ScrewdynWarning
            Once, with the names of everything that would change the motion and is not read: other equality
            constraints, tendons, actuators, springs, limits and armatures of ball joints, nonlinear springs and
            dampers, compensation of gravity, flexible bodies, forces of the medium.
        """
        return cls._of(read_mjcf(path_or_text, strict=strict, contacts=contacts))

    def to_mjcf(self, name: str = "robot") -> str:
        """The tree as MJCF text, from which :meth:`from_mjcf` makes a tree with the same M, C and g within rounding.

        The base becomes MuJoCo's world. Coordinates keep their names, but not their order: MuJoCo goes through the tree
        depth first. Massless links between joints become several joints of one body, if nothing else needs them: no
        shape, no loop, no second link. Joints that follow others become linear constraints ``joint``, which give way a
        little in MuJoCo. A free joint has its home as the pose of its body: MuJoCo's qpos is then the pose in the
        world, while a custom number makes :meth:`from_mjcf` read q from the home again. Loops with a spherical or fixed
        joint become equality constraints ``connect`` and ``weld`` between sites, which give way a little in MuJoCo.
        There are no actuators. Visual shapes touch nothing; collision shapes are in group 3. ``mujoco`` need not be
        installed.

        Parameters
        ----------
        name : str
            Of the model.

        Returns
        -------
        str

        Raises
        ------
        ModelError
            Lists everything that MJCF cannot express: helical and planar joints, free joints that are not on the base,
            loops with other joints, links that move without an inertia, inertias that no rigid body has, names with
            characters that XML does not have.
        UnboundSymbolError
            If numbers contain symbols.

        Warns
        -----
        ScrewdynWarning
            Once, with everything that MJCF has no place for: limits on one side and of velocity, passive
            joints other than free ones, free joints that are not passive, locks, meshes, names and frames of massless
            links between the joints of a body. :meth:`to_json` keeps it.
        """
        return write_mjcf(self.topology, name)

    @classmethod
    def from_pinocchio(cls, model: Any, *, visual: Any = None, collision: Any = None, strict: bool = False) -> Self:
        """Make a tree of a Pinocchio model.

        Joints keep their names. The link of a joint has the name of the first body frame at the joint, or that of the
        joint; all other body frames and operational frames become massless links, because Pinocchio adds the inertias
        of bodies that are welded together. Positions are Pinocchio's, except that unbounded joints have their angle
        instead of its cosine and sine, free joints (which are passive) have the quaternion first, planar joints the
        angle first, and their freedoms likewise have the angular part first. Mimic joints follow the joints that they
        name; Pinocchio keeps neither their limits nor their damping, friction and armature. ``rotorInertia`` is not
        read: Pinocchio's dynamics uses ``armature`` only.

        Parameters
        ----------
        model : pinocchio.Model
        visual, collision : pinocchio.GeometryModel, optional
            Their boxes, capsules, cylinders, spheres and meshes with a file become :meth:`shapes` of the links; other
            bodies are left out.
        strict : bool
            Raise an error instead of a warning.

        Returns
        -------
        KinematicTree

        Raises
        ------
        ModelError
            If an argument is not a model. Otherwise lists every joint that this library does not have (composite joints
            with spherical, free or planar ones; mimic joints whose scaling is 0 or that have several freedoms), or
            whose freedoms have different damping, friction or armature.

        Warns
        -----
        ScrewdynWarning
            Once, with the spherical, free and planar joints that have an armature, which is not read, and inertias that
            no rigid body has.
        """
        return cls._of(read_pinocchio(model, visual=visual, collision=collision, strict=strict))

    @classmethod
    def from_graph(cls, graph: nx.DiGraph, gravity: ArrayLike | None = None) -> Self:
        """Make a tree of a NetworkX graph such as :attr:`graph`, for example after a change by NetworkX.

        Parameters
        ----------
        graph : networkx.DiGraph
            Its nodes are the names of the links; an edge leads from a parent to a child. A node may have the attribute
            ``link``, a :class:`Link` (by default massless; its own name is ignored), and an edge the attributes
            ``joint``, a :class:`Joint` (by default fixed), ``home``, the pose of the child in the parent while the
            joint is neutral (by default the identity), and ``locked``, as in :attr:`graph`. The graph may have the
            attributes ``loops`` and ``gravity``. Other attributes are ignored, also ``name`` and ``coordinates`` of an
            edge, which follow from its joint. Links are attached in the order of the nodes, parents before children.
        gravity : (3,) array, optional
            In the frame of the link without a parent, which becomes the base, m/s²; by default the attribute of the
            graph, or (0, 0, -9.81) if it has none.

        Returns
        -------
        KinematicTree

        Raises
        ------
        TopologyError
            If the graph is not a tree, an attribute has a wrong type, joints have the same name, or a link is
            contracted with another.
        UnknownNameError
            If a loop connects a link, or a joint follows another one, that is not in the graph.
        ShapeError
            If a ``home`` is not a pose, or gravity is not three finite numbers.

        Examples
        --------
        >>> import networkx as nx
        >>> import screwdyn as sd
        >>> arm = sd.robots.two_link()
        >>> renamed = nx.relabel_nodes(arm.graph, {"base": "floor"})
        >>> print(sd.KinematicTree.from_graph(renamed).base)
        floor
        """
        return cls._of(from_graph(graph, gravity))

    @classmethod
    def _of(cls, topology: Topology) -> Self:
        """A tree with a topology that a reader returned."""
        tree = cls()
        tree._become(topology)
        return tree
