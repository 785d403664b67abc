"""The kinematic tree: links and joints, without a state, and functions of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from screwdyn.changes.catalogue import Changes, change_of
from screwdyn.changes.change import Scheduled
from screwdyn.core import ArrayLike, UnboundSymbolError, UnknownNameError, cached_property, expressions
from screwdyn.forms import c_source as in_c
from screwdyn.forms import configurations, requests, search
from screwdyn.forms.closed_loops import ClosedLoops
from screwdyn.forms.contacts import Touching
from screwdyn.forms.numbers import define_methods, one_state
from screwdyn.forms.point import Point
from screwdyn.io.files import Files
from screwdyn.mechanism import Handle, Link, with_ties
from screwdyn.physics import Model, State

if TYPE_CHECKING:
    from screwdyn.backends.closed_form import Derivation
    from screwdyn.forms.compiled import Compiled
    from screwdyn.forms.derivatives import Derivatives, Linearization
    from screwdyn.forms.point import Explanation
    from screwdyn.forms.symbolic import Symbolic
    from screwdyn.views.film import Animation
    from screwdyn.views.web import Viewer


class KinematicTree(Files, configurations.Configurations, ClosedLoops, Touching, Changes):
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

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute that trees have: a misspelt name would change nothing. Derived classes may have others."""
        if name[0] != "_" and type(self) is KinematicTree and not hasattr(KinematicTree, name):
            raise UnknownNameError.of(name, [x for x in dir(KinematicTree) if x[0] != "_"], "attribute of a tree")
        object.__setattr__(self, name, value)  # a third of the time of super()

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
        """A new tree with values (or expressions) substituted for symbols, by which its runs have derivatives.

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
        if others := {*map(str, values)} - {x.name for x in symbols}:
            from screwdyn.forms.symbolic import input_names

            for name in sorted(others & input_names(self.model)):
                raise UnknownNameError(
                    f"{name!r} is the symbol of a coordinate or its rate, which no number of the tree contains; give "
                    f"its value to a closed form: tree.symbolic().subs(form, {{{name!r}: …}})"
                )
        base, gravity = symbolic.link(symbolic.base), symbolic.gravity
        tree = type(self)(base.subs(bound), expressions.substituted(gravity, bound))
        ties = [tie.subs(bound) for tie in symbolic.topology.ties]
        tree._become(with_ties(tree.topology.attach([at.subs(bound) for at in symbolic.topology.attached]), ties))
        tree._bound = symbolic, bound, tree.topology
        return tree

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

    # Functions of a tree, which is their first argument

    operation_count = requests.operation_count
    c_source = in_c.c_source
    to_c_table = in_c.to_c_table
    inverse_kinematics = search.inverse_kinematics
    equilibrium = search.equilibrium
    holding_torque = search.holding_torque
    system_order = configurations.system_order
    screw_system = configurations.screw_system

    def linearize(
        self,
        q: ArrayLike,
        qd: ArrayLike | None = None,
        tau: ArrayLike | None = None,
        independent: Sequence[str] | None = None,
    ) -> Linearization:
        """Matrices A and B of δẋ = A δx + B δu about a state, with damping and springs (docs/mathematics.md §10).

        x = [q; q̇] in the order of ``coordinates``, u = the torques of the active freedoms, and
        M q̈ + C q̇ + g = τ − F_v q̇ − K (q − rest) − F_c sgn q̇. ``A = [[−ad(q̇), 1], [∂q̈/∂q − M⁻¹ K, ∂q̈/∂q̇ − M⁻¹ F_v]]``
        and ``B = [0; M⁻¹ B_a]``, with the exact derivatives of forward dynamics, and the columns of the active
        freedoms. ad(q̇) is zero but for the rotating charts of spherical, free and planar joints. Dry friction acts, but
        is constant in A: it has no derivative where it matters, at rest.

        Parameters
        ----------
        q : (…, nq) array
            rad and m.
        qd : (…, nv) array, optional
            rad/s and m/s; zero by default.
        tau : (…, nv) or (…, number of active freedoms) array, optional
            N m or N. By default those of inverse dynamics at q̈ = 0 in the active freedoms, which hold the tree in the
            state if any torques can; ``rate`` is not zero if none can, as where a passive joint does not hang.
        independent : sequence of str, optional
            With closed loops: the freedoms y of x = [y; ẏ], by default those that determine the others best. The loops
            are closed in the state, and in all neighbouring ones.

        Returns
        -------
        Linearization

        Raises
        ------
        ShapeError, UnboundSymbolError
            As for :class:`~screwdyn.physics.quantities.Quantities`; with closed loops also for a batch of states.
        LoopError, UnknownNameError
            If the independent freedoms do not determine the others, if there is none of that name, or if the motors
            cannot hold closed loops in the state; give ``tau`` then.
        JointError
            If there is a torque on a passive joint.
        SingularAttachmentError
            If a joint feels no inertia.

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
        flat, rates = one_state(model, q=q, qd=np.zeros(model.nv) if qd is None else qd)
        if model.ready is None:
            raise UnboundSymbolError.of(self.free_symbols, "the robot")
        return Point.of(self, flat, rates)

    # To look at

    def show(
        self,
        q: ArrayLike | Mapping[str, ArrayLike] | None = None,
        *,
        show: Sequence[str] = (),
        hide: Sequence[str] = (),
        camera: ArrayLike | None = None,
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
            Any of ``"com"``, the centre of mass; ``"joints"``, the axes of links with shapes too; ``"collision"``, the
            shapes for contacts instead of the visual ones.
        hide : sequence of str
            Links, and any of ``"events"``, ``"grid"``, ``"joints"`` and ``"text"``.
        camera : (3,) or (2, 3) array, optional
            The direction from the robot to the camera, which is as far away as it has to be to see all of it; or the
            position of the camera and the point that it looks at, m in the base frame. By default from above one side.
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
            If the extra ``view`` is not installed, ``show`` has another name, or ``camera`` cannot be one.
        ShapeError, UnknownNameError, UnboundSymbolError
            For the positions, as for :class:`State`, if ``hide`` has another name, and if numbers of the tree contain
            symbols.
        """
        from screwdyn.views.scene import View
        from screwdyn.views.web import Viewer, open_page

        state = State(self, q)
        viewer = Viewer(state.tree, state.q, View(show, hide, camera))
        if browser:
            open_page(viewer)
        return viewer

    def draw(
        self,
        path: str | os.PathLike[str],
        q: ArrayLike | Mapping[str, ArrayLike] | None = None,
        *,
        show: Sequence[str] = (),
        hide: Sequence[str] = (),
        camera: ArrayLike | None = None,
        size: Sequence[int] = (640, 480),
    ) -> Animation:
        """Write a picture of the tree: a page for a browser, ``.html``, which needs no network, or ``.png``.

        Parameters
        ----------
        path : str or Path
        q, show, hide, camera
            As for :meth:`show`.
        size : (2,) of int
            Width and height of a PNG, pixels.

        Returns
        -------
        Animation
            Has the ``path``, and shows itself in a notebook.

        Raises
        ------
        ScrewdynError
            As for :meth:`show`, if the suffix is not that of a format, ``size`` cannot be one, the file cannot be
            written, or what the format needs is not installed: the extra ``view`` for HTML and for meshes, the extra
            ``plot`` for PNG.
        ShapeError, UnknownNameError, UnboundSymbolError
            As for :meth:`show`.
        """
        from screwdyn.views import checked_path
        from screwdyn.views.film import write_film
        from screwdyn.views.scene import View, still

        view = View(show, hide, camera, size)
        out, state = checked_path(path, (".html", ".png")), State(self, q)
        return write_film(still(state.tree, state.q, view), out)

    # Inside

    @cached_property
    def model(self) -> Model:
        """Frozen snapshot of the present revision of the tree."""
        model = self._former = Model(self.topology, self._former)
        return model

    def _check_link(self, model: Model, link: str) -> None:
        self.topology.at(link)
        super()._check_link(model, link)


define_methods(KinematicTree)


def read_change(record: Mapping[str, Any]) -> Scheduled[Any]:
    """A change, such as a :class:`Lock`, as its method ``to_dict`` wrote it.

    Parameters
    ----------
    record : mapping
        ``{"event": "lock", "joint": "elbow", "time": 1.2}``. Links, joints and loops are named; they are looked for
        when the change happens.

    Raises
    ------
    JSONError
        Which lists everything in the record that cannot be read.

    Examples
    --------
    >>> import screwdyn as sd
    >>> event = sd.Close("crate", "left/tool0", joint=sd.spherical(), time=0.5)
    >>> again = sd.read_change(event.to_dict())
    >>> again.link, again.joint.kind, again.time
    ('crate', 'spherical', 0.5)
    """
    return change_of(record, KinematicTree)
