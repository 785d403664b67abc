"""The kinematic tree: links and joints, without a state, and functions of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from screwdyn.core import expressions
from screwdyn.core.cached import cached_property
from screwdyn.core.types import Array, ArrayLike
from screwdyn.forms.actuation import Actuation
from screwdyn.forms.configurations import Configurations
from screwdyn.forms.numbers import Dynamics
from screwdyn.mechanism.link import Link
from screwdyn.mechanism.structure import Body, Handle
from screwdyn.mechanism.topology import Topology
from screwdyn.physics.model import Model
from screwdyn.simulation.changes import Changes
from screwdyn.simulation.equilibrium import equilibrium

if TYPE_CHECKING:
    import mujoco
    import networkx as nx

    from screwdyn.backends.sympy.closed_form import Derivation
    from screwdyn.forms.compiled import Compiled
    from screwdyn.forms.derivatives import Derivatives
    from screwdyn.forms.symbolic import Symbolic

__all__ = ["Body", "Handle", "KinematicTree"]


class KinematicTree(Dynamics, Configurations, Actuation, Changes):
    """A tree of links connected by joints, with a fixed base.

    Parameters
    ----------
    base : str or Link
        The link that does not move.
    gravity : (3,) array
        Acceleration of gravity in the base frame, m/s².

    Raises
    ------
    TopologyError, ShapeError
        If ``base`` is an empty name, or gravity is not three finite numbers.

    Notes
    -----
    Coordinates are named after their joints (or, if a joint has no name, after the link it carries) and are in the
    order of attachment: new coordinates come last, and the others keep their indices.

    Shapes, units and errors that all quantities, such as :meth:`mass_matrix`, have in common are described in
    :class:`screwdyn.physics.quantities.Quantities`.

    Examples
    --------
    >>> import screwdyn as sd
    >>> tree = sd.KinematicTree()
    >>> handle = tree.attach(sd.Inertia.rod(2.0, 1.0, com=(0.5, 0, 0)), to="base", joint=sd.revolute("y"), name="rod")
    >>> print(tree)
    base
    └─ rod [revolute] 2 kg
    >>> tree.gravity_vector([0.0])
    array([-9.81])
    """

    def __init__(self, base: str | Link = "base", gravity: ArrayLike = (0, 0, -9.81)) -> None:
        super().__init__(base, gravity)
        self._derivation: Derivation | None = None
        # The previous model: the next one copies what has not changed.
        self._former: Model | None = None

    @classmethod
    def from_urdf(
        cls, path_or_text: str | os.PathLike[str], floating_base: bool = False, *, strict: bool = False
    ) -> KinematicTree:
        """Read a URDF or xacro file, or its text, which begins with ``<``; xacro needs the extra ``xacro``.

        Links behind fixed joints are kept as links, the root link becomes the base, and coordinates are named after the
        joints.

        Parameters
        ----------
        path_or_text : str or path
        floating_base : bool
            Attach the root link to a new base ``world`` by a passive free joint ``base``, which comes first in q and q̇.
        strict : bool
            Raise an error instead of a warning, for example for an inertia that no rigid body has.

        Returns
        -------
        KinematicTree

        Raises
        ------
        URDFError
            The message lists every problem of the file with its line.
        ScrewdynError
            If ``floating_base`` is not a bool.

        Warns
        -----
        ScrewdynWarning
            Once, with all doubtful entries of the file.

        See Also
        --------
        screwdyn.io.urdf.read_urdf : describes how each element is read.
        """
        from screwdyn.io.urdf import read_urdf

        return cls._of(read_urdf(path_or_text, floating_base, strict=strict))

    def to_urdf(self, name: str = "robot") -> str:
        """The tree as URDF text, from which :meth:`from_urdf` makes a tree with the same M, C and g within rounding.

        Coordinates keep their names, but not their order: a reader goes through the tree depth first. Links keep their
        names, frames and inertias. Where the axis of a joint does not pass through the origin of its link, or a joint
        has several freedoms, massless links ``<link>_axis`` carry joints of one freedom, named after the freedoms of
        the joint, such as ``pin[w]``; a fixed joint ``<link>_offset`` then connects the link. Free joints become
        floating and planar joints planar. Numbers have all digits. The largest float stands for a missing limit where
        URDF requires one.

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
            Lists every joint and name that URDF cannot express: helical and spherical joints, names with characters
            that XML does not have.
        UnboundSymbolError
            If numbers contain symbols.

        Warns
        -----
        ScrewdynWarning
            Once, with everything that URDF has no place for: another gravity than (0, 0, -9.81) m/s², springs, passive
            joints other than floating ones, free joints that are not passive, locks. :meth:`to_json` keeps it.

        Examples
        --------
        >>> import screwdyn as sd
        >>> arm = sd.robots.ur5()
        >>> twin = sd.KinematicTree.from_urdf(arm.to_urdf("ur5"))
        >>> twin.coordinates == arm.coordinates
        True
        """
        from screwdyn.io.urdf_writer import write_urdf

        return write_urdf(self.topology, name)

    @classmethod
    def from_dh(
        cls,
        rows: Iterable[Mapping[str, Any]],
        convention: str = "standard",
        *,
        base: str | Link = "base",
        gravity: ArrayLike = (0.0, 0.0, -9.81),
    ) -> KinematicTree:
        """A serial arm from a Denavit-Hartenberg table.

        Parameters
        ----------
        rows, convention, base
            Parameters, warnings and errors as for :func:`screwdyn.io.dh.from_dh`.
        gravity : (3,) array
            In frame 0, m/s².

        Returns
        -------
        KinematicTree
        """
        from screwdyn.io.dh import from_dh

        return cls._of(from_dh(rows, convention, base=base, gravity=gravity))

    @classmethod
    def from_json(cls, path_or_text: str | os.PathLike[str]) -> KinematicTree:
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

        See Also
        --------
        screwdyn.io.json_reader : describes the format.
        """
        from screwdyn.io.json_reader import read_json

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
        from screwdyn.io.json_writer import write_json

        return write_json(self.topology)

    @classmethod
    def from_mjcf(cls, path_or_text: str | os.PathLike[str] | mujoco.MjModel, *, strict: bool = False) -> KinematicTree:
        """Read a MuJoCo model; needs the package ``mujoco``, the extra ``mjcf``.

        The world becomes the base. Positions are MuJoCo's qpos, but quaternions have their scalar last. A free joint is
        passive, its position is that in the world, and its freedoms are the twist in the body's own frame (MuJoCo's
        linear velocities are in the axes of the world). A body with several joints is carried by massless links
        ``<body>_<joint>``. Names are kept; unnamed bodies are ``body1``, …, and unnamed joints are named after their
        bodies. Inertias are those that MuJoCo has compiled, also from shapes. Contacts are not read.

        Parameters
        ----------
        path_or_text : str, path or mujoco.MjModel
            A file, its text, which begins with ``<``, or a compiled model.
        strict : bool
            Raise an error instead of a warning.

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
            Once, with the names of everything that would change the motion and is not read: armatures, equality
            constraints, tendons, actuators, springs and limits of ball joints, nonlinear springs and dampers,
            compensation of gravity, flexible bodies, forces of the medium.
        """
        from screwdyn.io.mjcf import read_mjcf

        return cls._of(read_mjcf(path_or_text, strict=strict))

    @classmethod
    def from_pinocchio(cls, model: Any, *, strict: bool = False) -> KinematicTree:
        """Make a tree of a Pinocchio model.

        Joints keep their names. The link of a joint has the name of the first body frame at the joint, or that of the
        joint; all other body frames and operational frames become massless links, because Pinocchio adds the inertias
        of bodies that are welded together. Positions are Pinocchio's, except that unbounded joints have their angle
        instead of its cosine and sine, free joints (which are passive) have the quaternion first, planar joints the
        angle first, and their freedoms likewise have the angular part first.

        Parameters
        ----------
        model : pinocchio.Model
        strict : bool
            Raise an error instead of a warning.

        Returns
        -------
        KinematicTree

        Raises
        ------
        ModelError
            Lists every joint that this library does not have (mimic joints; composite joints with spherical, free or
            planar ones), or whose freedoms have different damping or friction.

        Warns
        -----
        ScrewdynWarning
            Once, with all joints that have an armature, which is not read, and inertias that no rigid body has.
        """
        from screwdyn.io.pinocchio import read_pinocchio

        return cls._of(read_pinocchio(model, strict=strict))

    @classmethod
    def from_graph(cls, graph: nx.DiGraph, gravity: ArrayLike = (0.0, 0.0, -9.81)) -> KinematicTree:
        """Make a tree of a NetworkX graph such as :attr:`graph`, for example after a change by NetworkX.

        Parameters
        ----------
        graph : networkx.DiGraph
            Its nodes are the names of the links; an edge leads from a parent to a child. A node may have the attribute
            ``link``, a :class:`Link` (by default massless; its own name is ignored), and an edge the attributes
            ``joint``, a :class:`Joint` (by default fixed), ``home``, the pose of the child in the parent while the
            joint is neutral (by default the identity), and ``locked``, as in :attr:`graph`. Other attributes are
            ignored. Links are attached in the order of the nodes, parents before children.
        gravity : (3,) array
            In the frame of the link without a parent, which becomes the base, m/s².

        Returns
        -------
        KinematicTree

        Raises
        ------
        TopologyError
            If the graph is not a tree, or an attribute has a wrong type.
        ShapeError
            If a ``home`` is not a pose, or gravity is not three finite numbers.

        Examples
        --------
        >>> import networkx as nx
        >>> import screwdyn as sd
        >>> arm = sd.robots.two_link()
        >>> renamed = nx.relabel_nodes(arm.graph, {"base": "floor"})
        >>> print(sd.KinematicTree.from_graph(renamed, arm.gravity).base)
        floor
        """
        from screwdyn.io.graph import from_graph

        return cls._of(from_graph(graph, gravity))

    @classmethod
    def _of(cls, topology: Topology) -> KinematicTree:
        """A tree with a topology that a reader returned."""
        tree = cls()
        tree._become(topology)
        return tree

    # Symbols

    @property
    def free_symbols(self) -> set[Any]:
        """SymPy symbols in the numbers of links, joints, home poses and gravity."""
        topology = self.topology
        held: list[Any] = [topology.gravity]
        for at in topology.attachments.values():
            held += [at.link.inertia, at.joint, at.home, *([at.unlocked.joint, at.unlocked.home] if at.locked else [])]
        return expressions.free_symbols(held)

    def subs(self, values: Mapping[Any, Any]) -> Self:
        """A new tree with values (or expressions) substituted for symbols.

        Parameters
        ----------
        values : mapping
            From SymPy symbols, or their names, to values. Symbols are matched by name. Symbols that the tree does not
            contain are ignored, as in SymPy.

        Returns
        -------
        KinematicTree

        Raises
        ------
        UnknownNameError
            For a string that is not the name of a symbol.
        InertiaError, JointError, ShapeError
            If the resulting numbers are invalid.
        """
        symbolic = self.copy()
        bound = expressions.bound(values, symbolic.free_symbols)
        base, gravity = symbolic.link(symbolic.base), symbolic.gravity
        tree = type(self)(base.subs(bound), expressions.substituted(gravity, bound))
        tree._become(tree.topology.attach(at.subs(bound) for at in symbolic._attached()))
        return tree

    def symbolic(self) -> Symbolic:
        """Closed forms of the present tree: its quantities, and each link's contribution, as SymPy matrices.

        Expressions that have been derived before are reused, also after a change of the tree.

        Returns
        -------
        Symbolic
            See :class:`screwdyn.symbolic.Symbolic`. Later changes of the tree do not affect it.

        Examples
        --------
        >>> import screwdyn as sd
        >>> sd.robots.two_link().symbolic().mass_matrix()[1, 1]
        0.333333333333333
        """
        from screwdyn.backends.sympy.closed_form import Derivation
        from screwdyn.forms.symbolic import Symbolic

        if self._derivation is None:
            self._derivation = Derivation()
        return Symbolic(self.model, self._derivation)

    # Other forms; later changes of the tree do not affect them

    @cached_property
    def derivatives(self) -> Derivatives:
        """Exact derivatives of the quantities of the present tree, and the regressor of its inertial parameters.

        See :class:`screwdyn.derivatives.Derivatives`. Later changes of the tree do not affect it.

        Examples
        --------
        >>> import numpy as np
        >>> import screwdyn as sd
        >>> arm = sd.robots.two_link()
        >>> by_q, by_qd, by_qdd = arm.derivatives.inverse_dynamics(*np.zeros((3, 2)))
        >>> bool(np.allclose(by_qdd, arm.mass_matrix(np.zeros(2))))
        True
        """
        from screwdyn.forms.derivatives import Derivatives

        return Derivatives(self.model)

    def operation_count(self, *functions: str) -> dict[str, int]:
        """Number of operations of some quantities written out for this tree.

        Several quantities are counted together: common operations are counted once, and so is an entry that occurs
        twice in a symmetric matrix. Operations with zeros and ones and operations on constants of the robot, also if
        these are symbols, are not counted.

        Parameters
        ----------
        *functions : str
            Names of quantities, which are the methods of the tree that are functions of q, qd, qdd or tau, such as
            "mass_matrix". The name of a quantity of one link is followed by the link and, if it has one, the frame:
            "forward_kinematics:tool0", "jacobian:tool0:body".

        Returns
        -------
        dict
            "mul", "add" (with subtractions), "div" and "sincos" (sine and cosine of one angle are two).

        Raises
        ------
        ScrewdynError
            If a quantity is unknown, no quantity is given, or a link is missing.
        UnknownNameError
            If there is no such link.
        SingularAttachmentError
            For ``forward_dynamics``, if a joint feels no inertia in any state; for ``operational_inertia``, if the link
            cannot move in all six directions in any state.

        Examples
        --------
        >>> import screwdyn as sd
        >>> sd.robots.two_link().operation_count("mass_matrix")
        {'mul': 1, 'add': 2, 'div': 0, 'sincos': 1}
        """
        from screwdyn.forms.operation_count import operation_count

        return operation_count(self.model, functions)

    def c_source(
        self, functions: Iterable[str | Sequence[str]], *, prefix: str = "", optional: Iterable[str] = ()
    ) -> str:
        """C99 source of some quantities of this tree, for a controller.

        The text is both header and implementation: compile it as it is; to include only its declarations, define
        ``<PREFIX>DECLARATIONS_ONLY`` (without a prefix, ``SCREWDYN_DECLARATIONS_ONLY``) before. It has an include
        guard, and C++ can call the functions. It begins with a comment that lists all positions and freedoms in order
        with their units; the macros ``NQ`` and ``NV`` are their numbers. The functions are ``void`` and take arrays of
        ``double``: those of q, qd, qdd and tau that they need, then the results, matrices row by row. They need only
        ``math.h``, use no heap and keep no state. The numbers of the tree are written with all digits; later changes of
        the tree do not affect the text.

        A function has the name of its quantity, followed by the link and the frame if they are given:
        "jacobian:tool0:body" becomes ``jacobian_tool0_body``. Quaternions must have length 1.

        If numbers of the tree contain SymPy symbols, the text declares ``typedef struct { double m; … }
        <prefix>parameters;`` with a member for each symbol, in alphabetical order. Every function takes ``const
        <prefix>parameters *values`` after its inputs and computes expressions such as ``m*L**2`` from the members. A
        member has the name of its symbol, or a similar one if C or C++ does not allow the name; a comment then states
        the symbol.

        Parameters
        ----------
        functions : str, or sequence of str or of sequences of str
            As for :meth:`operation_count`. A sequence such as ``("mass_matrix", "bias_force")`` becomes one function
            ``mass_matrix_and_bias_force`` with several results, which computes common operations once.
        prefix : str
            Beginning of the names of all functions and, in capitals, of all macros.
        optional : str or sequence of str
            Links, such as a payload, that a running controller can include or leave out. Every function then takes,
            after its inputs and parameters, ``unsigned long carried``, with a bit ``<PREFIX>CARRIES_<LINK>`` for each
            of them. If the bit is 0, the results are those of the tree without the link and all links beyond it. The
            entries of M, C, forces and accelerations for the coordinates of these links are then zero: use the block of
            the other coordinates.

        Returns
        -------
        str

        Raises
        ------
        ScrewdynError
            If a function is unknown or given twice, or none is given; if the prefix cannot begin a C name; if an
            optional link is the base, or there are more than 32; if the tree has no coordinates; if two symbols have
            the same name, or an expression contains a function that C does not have; or for ``operational_inertia``
            with an optional link that has freedoms.
        UnknownNameError
            If a link is not in the tree.
        SingularAttachmentError
            For ``forward_dynamics``, if a joint feels no inertia in any state.

        Notes
        -----
        If a joint feels no inertia in some states, or without an optional link, ``forward_dynamics`` then returns
        infinity, NaN or arbitrary numbers. The source for tens of freedoms has tens of thousands of statements, which
        take a compiler some time.

        Examples
        --------
        >>> import screwdyn as sd
        >>> text = sd.robots.two_link().c_source(["gravity_vector"])
        >>> print(text[text.rindex("{") : text.rindex("}") + 1])
        {
            const double x0 = q[0];
            const double x1 = q[1];
            const double x25 = 4.9031 * cos(x0 + x1);
            const double x26 = 14.7093 * cos(x0) + x25;
            g[0] = x26;
            g[1] = x25;
        }
        """
        from screwdyn.forms.c_source import c_source

        return c_source(self.copy(), functions, prefix, optional)

    def compile(self, threads: int | None = None) -> Compiled:
        """Machine code for the quantities of the present tree.

        A thread compiles in the background, and the process caches the code; until it is ready, the tree's kernels are
        used. A payload that is welded on or hangs on a passive joint changes its inertial numbers without new code;
        other links need new code when an inertial number is first not zero (docs/compiled.md).

        Parameters
        ----------
        threads : int, optional
            Number of threads for large batches; by default the number of processors.

        Returns
        -------
        Compiled
            Has a method for every quantity, which takes ``out=``; see :class:`screwdyn.compiled.Compiled`. Later
            changes of the tree do not affect it.

        Raises
        ------
        ScrewdynError
            If ``threads`` is not an integer of at least 1.
        UnboundSymbolError
            If numbers of the tree contain symbols.
        """
        from screwdyn.forms.compiled import Compiled

        return Compiled(self.model, threads)

    # Equilibria

    def equilibrium(self, q0: ArrayLike, tau: ArrayLike | Mapping[str, ArrayLike] | None = None) -> Array:
        """A configuration at rest, g(q) + K (q − rest) = τ, (nq,) (docs/mathematics.md §8).

        Parameters, result and errors as for :func:`screwdyn.simulation.equilibrium.equilibrium`.
        """
        return equilibrium(self.copy(), q0, tau)

    # Inside

    @cached_property
    def model(self) -> Model:
        """Frozen snapshot of the present revision of the tree."""
        model = self._former = Model(self.topology, self._former)
        return model

    def _carrier(self, model: Model, link: str) -> tuple[int, Array]:
        self._at(link)
        return super()._carrier(model, link)
