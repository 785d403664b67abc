"""The kinematic tree: links and joints, without a state, and functions of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import ShapeError, UnboundSymbolError, UnknownNameError
from screwdyn.core.types import Array, ArrayLike, cached_property
from screwdyn.forms.closed_loops import ClosedLoops
from screwdyn.forms.configurations import Actuation, Configurations, Links, screw_system, system_order
from screwdyn.forms.equilibrium import equilibrium, holding_torque
from screwdyn.forms.inverse_kinematics import inverse_kinematics
from screwdyn.forms.numbers import Dynamics
from screwdyn.forms.point import Point
from screwdyn.io.files import Files
from screwdyn.mechanism.link import Link
from screwdyn.mechanism.structure import Body, Handle
from screwdyn.mechanism.topology import with_loops
from screwdyn.physics.model import Model
from screwdyn.physics.quantities import Frame
from screwdyn.physics.state import State
from screwdyn.screws.screw_system import ScrewSystem
from screwdyn.simulation.changes import Changes

if TYPE_CHECKING:
    from screwdyn.backends.closed_form import Derivation
    from screwdyn.forms.compiled import Compiled
    from screwdyn.forms.derivatives import Derivatives, Linearization
    from screwdyn.forms.point import Explanation
    from screwdyn.forms.symbolic import Symbolic
    from screwdyn.views.film import Animation
    from screwdyn.views.web import Viewer

__all__ = ["Body", "Handle", "KinematicTree"]


class KinematicTree(Files, Dynamics, Configurations, Actuation, ClosedLoops, Changes):
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

    # Symbols

    @property
    def free_symbols(self) -> set[Any]:
        """SymPy symbols in the numbers of links, joints, home poses and gravity."""
        topology = self.topology
        held: list[Any] = [topology.gravity]
        for at in topology.attachments.values():
            held += [at.link.inertia, at.joint, at.home, *([at.unlocked.joint, at.unlocked.home] if at.locked else [])]
        held += [part for loop in topology.loops.values() for part in (loop.joint, loop.home)]
        return expressions.free_symbols(held)

    def subs(self, values: Mapping[Any, Any]) -> Self:
        """A new tree with values (or expressions) substituted for symbols.

        Parameters
        ----------
        values : mapping
            From SymPy symbols, or their names, to values. Symbols are matched by name, and replaced all at once:
            ``{x: y, y: x}`` exchanges them. Symbols that the tree does not contain are ignored, as in SymPy.

        Returns
        -------
        KinematicTree

        Raises
        ------
        UnknownNameError
            For a string that is not the name of a symbol, and for the symbol of a coordinate, which only closed forms
            contain: see :meth:`screwdyn.forms.symbolic.Symbolic.subs`.
        InertiaError, JointError, ShapeError
            If the resulting numbers are invalid; ShapeError also for another key, or a value that is no number.
        """
        symbolic = self.copy()
        symbols = symbolic.free_symbols
        bound = expressions.bound(values, symbols)
        if not {*map(str, values)} <= {x.name for x in symbols}:
            self._check_no_coordinate(values)
        base, gravity = symbolic.link(symbolic.base), symbolic.gravity
        tree = type(self)(base.subs(bound), expressions.substituted(gravity, bound))
        loops = [loop.subs(bound) for loop in symbolic.topology.loops.values()]
        tree._become(with_loops(tree.topology.attach([at.subs(bound) for at in symbolic.topology.attached]), loops))
        return tree

    def _check_no_coordinate(self, values: Mapping[Any, Any]) -> None:
        """Raise UnknownNameError if values are given to the symbol of a coordinate."""
        from screwdyn.forms.symbolic import input_names

        for name in map(str, values):
            if name in input_names(self.model):
                raise UnknownNameError(
                    f"{name!r} is the symbol of a coordinate or its rate, which no number of the tree contains; give "
                    f"its value to a closed form: tree.symbolic().subs(form, {{{name!r}: …}})"
                )

    def symbolic(self) -> Symbolic:
        """Closed forms of the present tree: its quantities, and each link's contribution, as SymPy matrices.

        Expressions that have been derived before are reused, also after a change of the tree.

        Returns
        -------
        Symbolic
            See :class:`screwdyn.forms.symbolic.Symbolic`. Later changes of the tree do not affect it.

        Examples
        --------
        >>> import screwdyn as sd
        >>> sd.robots.two_link().symbolic().mass_matrix()[1, 1]
        0.333333333333333
        """
        from screwdyn.backends.closed_form import Derivation
        from screwdyn.forms.symbolic import Symbolic

        if self._derivation is None:
            self._derivation = Derivation()
        return Symbolic(self.model, self._derivation)

    # Other forms; later changes of the tree do not affect them

    @cached_property
    def derivatives(self) -> Derivatives:
        """Exact derivatives of the quantities of the present tree, and the regressor of its inertial parameters.

        See :class:`screwdyn.forms.derivatives.Derivatives`. Later changes of the tree do not affect it.

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

        return self.model.derived(Derivatives)

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
        from screwdyn.forms.requests import operation_count

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
            the same name, or an expression contains a function that C does not have; if a joint would be present
            without the joint that it follows; or for ``operational_inertia`` with an optional link that has freedoms.
        UnknownNameError
            If a link is not in the tree.
        TopologyError
            If an optional link is the rotor of a joint, with which it is left out.
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

    def to_c_table(self, name: str = "robot", *, optional: Iterable[str] = ()) -> str:
        """A C header with this tree as a table for the kernels in C, which :func:`screwdyn.c_library` writes.

        A controller takes up and puts down parts of the tree while it runs: ``screwdyn_attach(&robot, &<name>)``
        attaches all links that are not optional, ``screwdyn_attach(&robot, &<name>_<link>)`` an optional link with all
        links beyond it, and ``screwdyn_detach`` removes what was attached last. The functions of ``screwdyn.h`` then
        compute the dynamics of the present tree: docs/c_library.md. The text begins with a comment that lists the rows
        and positions of all joints. ``<NAME>_NQ`` and ``<NAME>_NV`` are the numbers of positions and freedoms without
        the optional links.

        Parameters
        ----------
        name : str
            A name in C, with which the names in the text begin.
        optional : str or sequence of str
            Links that the table of the robot leaves out. If they are the last that were attached to this tree, its
            coordinates have the order of those in C.

        Returns
        -------
        str
            C99, and C++11.

        Raises
        ------
        ScrewdynError
            If ``name`` is no name in C, or an optional link is given twice.
        UnknownNameError
            If an optional link is not in the tree.
        TopologyError
            If a joint follows another one; if an optional link has no joint, or is beyond another one.
        LoopError
            If the tree has closed loops.
        UnboundSymbolError
            If numbers of the tree contain symbols.

        Examples
        --------
        >>> import screwdyn as sd
        >>> print(sd.robots.two_link().to_c_table("arm").splitlines()[-4])
        static const struct screwdyn_part arm = {-1, 2, 2, 0, 0, table_of_arm, where_of_arm, 0, 0};
        """
        from screwdyn.forms.c_source import c_table

        return c_table(self, name, optional)

    def compile(self, threads: int | None = None) -> Compiled:
        """Machine code for the quantities of the present tree.

        A thread compiles in the background, and the process caches the code; until it is ready, the tree's kernels are
        used. A payload that is welded on or hangs on a passive joint changes its inertial numbers without new code;
        other links need new code when an inertial number is first not zero (docs/compiled.md).

        Parameters
        ----------
        threads : int, optional
            Number of threads for large batches; by default the number of processors that the process may use.

        Returns
        -------
        Compiled
            Has a method for every quantity, which takes ``out=``; see :class:`screwdyn.forms.compiled.Compiled`. Later
            changes of the tree do not affect it.

        Raises
        ------
        ScrewdynError
            If llvmlite, the extra ``compile``, is not installed, or ``threads`` is not an integer of at least 1.
        UnboundSymbolError
            If numbers of the tree contain symbols.
        """
        from screwdyn.forms.compiled import Compiled

        return Compiled(self.model, threads)

    # Configurations, and motion near a state

    def inverse_kinematics(
        self,
        link: str,
        pose: ArrayLike,
        q0: ArrayLike | None = None,
        *,
        freedoms: Iterable[str] | None = None,
        tolerance: float = 1e-9,
        searches: int = 20,
    ) -> Array:
        """A configuration within the joint limits in which a link has a pose (4, 4), or a position (3,), (nq,).

        By default the active freedoms move. InverseKinematicsError if there is none, with the nearest configuration and
        its errors. Parameters and errors as for :func:`screwdyn.forms.inverse_kinematics.inverse_kinematics`.

        Examples
        --------
        >>> import numpy as np
        >>> import screwdyn as sd
        >>> arm = sd.robots.ur5()
        >>> pose = arm.forward_kinematics("tool0", [0.3, -1.2, 1.5, -0.4, 1.2, 0.1])
        >>> q = arm.inverse_kinematics("tool0", pose, q0=[0, -1, 1, 0, 1, 0])
        >>> bool(np.allclose(arm.forward_kinematics("tool0", q), pose, rtol=0, atol=1e-9))
        True
        """
        return inverse_kinematics(
            self.copy(), link, pose, q0, freedoms=freedoms, tolerance=tolerance, searches=searches
        )

    def equilibrium(self, q0: ArrayLike, tau: ArrayLike | Mapping[str, ArrayLike] | None = None) -> Array:
        """A configuration at rest, g(q) + K (q − rest) = τ, (nq,) (docs/mathematics.md §8).

        Parameters, result and errors as for :func:`screwdyn.forms.equilibrium.equilibrium`.
        """
        return equilibrium(self.copy(), q0, tau)

    def holding_torque(self, q: ArrayLike) -> Array:
        """The torques that hold a configuration at rest, τ = g(q) + K (q − rest), (nv,), zero for passive freedoms.

        Parameters and errors as for :func:`screwdyn.forms.equilibrium.holding_torque`.
        """
        return holding_torque(self.copy(), q)

    def linearize(
        self,
        q: ArrayLike,
        qd: ArrayLike | None = None,
        tau: ArrayLike | None = None,
        independent: Sequence[str] | None = None,
    ) -> Linearization:
        """Matrices A and B of δẋ = A δx + B δu about a state, with damping and springs (docs/mathematics.md §10).

        x = [q; q̇] in the order of ``coordinates``, u = the torques of the active freedoms. By default the tree is at
        rest, and the torques hold it. Parameters, result and errors as for
        :func:`screwdyn.forms.derivatives.linearize`.

        Examples
        --------
        >>> import numpy as np
        >>> import screwdyn as sd
        >>> tree = sd.KinematicTree()
        >>> joint = sd.revolute("y", damping=0.2, name="hip")
        >>> _ = tree.attach(sd.Inertia.point(2.0, (1, 0, 0)), to="base", joint=joint)
        >>> A, B = tree.linearize([np.pi / 2])  # hanging
        >>> A.round(3) + 0.0
        array([[ 0.  ,  1.  ],
               [-9.81, -0.1 ]])
        >>> B
        array([[0. ],
               [0.5]])
        """
        from screwdyn.forms.derivatives import linearize

        return linearize(self.model, q, qd, tau, independent)

    def explain(self, link: Handle | str, q: ArrayLike | None = None, qd: ArrayLike | None = None) -> Explanation:
        """What one link contributes to M, C and g, and to which joints (docs/mathematics.md §2 and §3).

        Parameters
        ----------
        link : Handle or str
        q, qd : (nq,) and (nv,) arrays, optional
            One state; by default the neutral configuration, at rest.

        Returns
        -------
        Explanation
            Prints itself as a table; its ``plot()`` draws M_i, C_i and g_i over all coordinates as heat maps.

        Raises
        ------
        ShapeError, UnknownNameError, UnboundSymbolError, StaleHandleError
            As for :meth:`contribution`; ShapeError also for more than one state.

        Examples
        --------
        >>> import screwdyn as sd
        >>> print(sd.robots.two_link().explain("link2", [0, 0.5], [0, 1]))
        link2: 1 kg, on link1 by the revolute joint theta2.
        State: q given; qd given.
        <BLANKLINE>
        It contributes to 2 of 2 coordinates, those on its path.
        Each quantity of the link beside the padded sum ‡ over all links:
        <BLANKLINE>
        coordinate    M_jj  M_jj of ‡  (C q̇)_j  (C q̇)_j of ‡    g_j  g_j of ‡  units
        theta1       2.211      2.544   -0.2397        -0.2397  14.11     19.01  kg m², N m
        theta2      0.3333     0.3333         0              0  4.303     4.303  kg m², N m
        <BLANKLINE>
        Kinetic energy: 0.1667 J of 0.1667 J.
        """
        from screwdyn.forms.point import Explanation

        return Explanation(self.copy(), self.resolve(link), q, qd)

    def at(self, q: ArrayLike, qd: ArrayLike | None = None) -> Point:
        """The present tree at one state, which computes every link's terms from its parent's and keeps them.

        Parameters
        ----------
        q : (nq,)
        qd : (nv,), optional
            Zero by default.

        Returns
        -------
        Point
            See :class:`screwdyn.Point`. Later changes of the tree do not affect it.

        Raises
        ------
        ShapeError, UnboundSymbolError
            As for :meth:`contribution`; ShapeError also for more than one state.

        Examples
        --------
        >>> import screwdyn as sd
        >>> point = sd.robots.two_link().at([0, 0.5], [0, 1])
        >>> own = point.contribution("link2")
        >>> caught = point.attach(sd.Inertia.point(1.0, (0.5, 0, 0)), to="link2", name="ball")
        >>> caught.contribution("link2") is own
        True
        >>> caught.contribution("ball").coordinates
        ('theta1', 'theta2')
        """
        model = self.model
        (flat, rates), batch = model.flat(q=q, qd=np.zeros(model.nv) if qd is None else qd)
        if batch:
            raise ShapeError(f"a point is one state; got a batch of shape {batch}")
        if model.ready is None:
            raise UnboundSymbolError.of(self.free_symbols, "the robot")
        return Point.of(self, flat, rates)

    # Over all configurations

    def system_order(self, links: Links = None, *, tol: float = 1e-9) -> int:
        """Order λ ≤ 6 of the screw system of a chain over all configurations (docs/mathematics.md §9).

        The dimension of the space that the joint screws span in the base frame: 3 for a planar or spherical arm, also
        where the screws of one configuration span less. It is that of :meth:`screw_system`, but exists for almost all
        values of symbols even if the system depends on them. Parameters and errors as there.

        Examples
        --------
        >>> import screwdyn as sd
        >>> arm = sd.robots.two_link()
        >>> arm.system_order(), arm.system_order("link1")
        (3, 1)
        """
        return system_order(self.copy(), links, tol)

    def screw_system(self, links: Links = None, frame: Frame = "base", *, tol: float = 1e-9) -> ScrewSystem:
        """The space of the twists of some links over all configurations, in which Jacobians have λ rows.

        docs/mathematics.md §9. Loops are not considered: the configurations are those of the tree. Limits of joints
        have no influence, unless a joint cannot move at all.

        Parameters
        ----------
        links : Handle or str, or iterable of these, optional
            All links by default. A link stands for the chain of joints from the base to it.
        frame : "com", "body", "base" or "mixed"
            As for :meth:`jacobian`. In "base" it is the screw system of the joints. In "com" it is that of the twists
            of ``contribution``, in which the inertia M̄ of a link is constant.
        tol : float
            What is below this fraction of the largest counts as zero. A file whose angles are rounded to 1.5708 needs a
            larger one, such as 1e-4.

        Returns
        -------
        ScrewSystem
            Its ``jacobian`` and ``inertia`` take λ rows of numbers and of closed forms.

        Raises
        ------
        UnknownNameError, StaleHandleError, ShapeError
            If there is no such link, a handle is stale, the frame is unknown, or tol is not between 0 and 1.
        UnboundSymbolError
            If the space depends on the values of symbols.

        Examples
        --------
        >>> import screwdyn as sd
        >>> arm = sd.robots.two_link()
        >>> system = arm.screw_system(frame="com")
        >>> system
        <ScrewSystem of order 3 with components (2, 3, 4)>
        >>> part = arm.contribution("link2", [0.1, 0.2], [0, 0])
        >>> J, M_bar = system.jacobian(part.J), system.inertia(arm.link("link2").inertia.com_matrix)
        >>> J.shape, bool(abs(J.T @ M_bar @ J - part.M.array).max() < 1e-15)
        ((3, 2), True)
        """
        return screw_system(self.copy(), links, frame, tol)

    # To look at

    def show(
        self,
        q: ArrayLike | Mapping[str, ArrayLike] | None = None,
        *,
        show: Sequence[str] = (),
        browser: bool = True,
    ) -> Viewer:
        """Open a window on the present tree in the browser, with sliders for its joints (docs/viewing.md).

        A server on a free port of 127.0.0.1, which no other machine can reach, serves the page; its address is printed.
        In a notebook, the result shows itself instead. Links are drawn as by :meth:`Run.animate`.

        Parameters
        ----------
        q : (nq,) array or mapping from position to number, optional
            Positions, rad and m; those that a mapping omits are neutral, as all are by default.
        show : sequence of str
            ``"com"`` shows the centre of mass.
        browser : bool
            Print the address and open the page; False only serves it.

        Returns
        -------
        Viewer
            ``viewer.update(q)`` moves the robot, ``viewer.url`` is the address, and ``viewer.close()`` ends the server;
            in a script, ``viewer.wait()`` waits for Ctrl-C. Later changes of the tree do not affect it.

        Raises
        ------
        ScrewdynError
            If the extra ``view`` is not installed, or ``show`` has another name.
        ShapeError, UnknownNameError, UnboundSymbolError
            For the positions, as for :class:`State`, and if numbers of the tree contain symbols.
        """
        from screwdyn.views.web import Viewer, open_page

        state = State(self, q)
        viewer = Viewer(state.tree, state.q, show)
        if browser:
            open_page(viewer)
        return viewer

    def draw(
        self,
        path: str | os.PathLike[str],
        q: ArrayLike | Mapping[str, ArrayLike] | None = None,
        *,
        show: Sequence[str] = (),
    ) -> Animation:
        """Write a picture of the tree: a page for a browser, ``.html``, which needs no network, or ``.png``.

        Parameters
        ----------
        path : str or Path
        q, show
            As for :meth:`show`.

        Returns
        -------
        Animation
            Has the ``path``, and shows itself in a notebook.

        Raises
        ------
        ScrewdynError
            If the suffix is not that of a format, the file cannot be written, or what the format needs is not
            installed: the extra ``view`` for HTML and for meshes, the extra ``plot`` for PNG.
        ShapeError, UnknownNameError, UnboundSymbolError
            As for :meth:`show`.
        """
        from screwdyn.views.film import picture_path, write_film
        from screwdyn.views.scene import stage_scene, still

        out, state = picture_path(path), State(self, q)
        return write_film(stage_scene([still(state.tree, state.q)], np.zeros(1), (), show), out)

    # Inside

    @cached_property
    def model(self) -> Model:
        """Frozen snapshot of the present revision of the tree."""
        model = self._former = Model(self.topology, self._former)
        return model

    def _carrier(self, model: Model, link: str) -> tuple[int, Array]:
        self._at(link)
        return super()._carrier(model, link)
