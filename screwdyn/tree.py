"""The kinematic tree: what a user builds, changes and asks. It knows links and joints, and no state."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.types import Array, ArrayLike
from screwdyn.forms.configurations import Configurations
from screwdyn.forms.numbers import Dynamics
from screwdyn.mechanism.joint import Joint
from screwdyn.mechanism.link import Link
from screwdyn.mechanism.structure import Body, Handle
from screwdyn.mechanism.topology import Topology
from screwdyn.physics.robot import Robot
from screwdyn.simulation import impact
from screwdyn.simulation.impact import GraspEvent, ReleaseEvent, Twist
from screwdyn.simulation.state import State

if TYPE_CHECKING:
    from screwdyn.backends.sympy.closed_form import Derivation
    from screwdyn.forms.compiled import Compiled
    from screwdyn.forms.derivatives import Derivatives
    from screwdyn.forms.symbolic import Symbolic
    from screwdyn.physics.model import Model

__all__ = ["Body", "Handle", "KinematicTree"]


class KinematicTree(Dynamics, Configurations, Robot):
    """Links joined into a tree: a robot with a fixed base.

    Parameters
    ----------
    base : str or Link
        The link that does not move.
    gravity : (3,) array
        Acceleration of gravity in the base frame, m/s².

    Notes
    -----
    Coordinates are named after their joints (or, where a joint has no name, after the link it carries) and stand in
    the order of attachment: attaching adds at the end and renumbers nothing.

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
        # The last snapshot: the next one takes from it what has not changed.
        self._former: Model | None = None

    @classmethod
    def from_urdf(
        cls, path_or_text: str | os.PathLike[str], floating_base: bool = False, *, strict: bool = False
    ) -> KinematicTree:
        """Read a URDF or xacro file, or its text, which begins with ``<``; xacro needs the extra ``xacro``.

        Fixed joints stay links, the root link becomes the base, coordinates are named after the joints.

        Parameters
        ----------
        path_or_text : str or path
        floating_base : bool
            Hang the root link on a new base ``world`` by a passive free joint ``base``, which comes first in q and q̇.
        strict : bool
            Refuse what is otherwise only warned about, such as an inertia that no rigid body has.

        Raises
        ------
        URDFError
            Listing every problem in the file with its line.

        See Also
        --------
        screwdyn.io.urdf.read_urdf : what is read, and how.
        """
        from screwdyn.io.urdf import read_urdf

        return cls._of(read_urdf(path_or_text, floating_base, strict=strict))

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
        """
        from screwdyn.io.dh import from_dh

        return cls._of(from_dh(rows, convention, base=base, gravity=gravity))

    @classmethod
    def _of(cls, topology: Topology) -> KinematicTree:
        """A tree of the links and joints that a reader found."""
        tree = cls()
        tree._become(topology)
        return tree

    @property
    def actuation_matrix(self) -> Array:
        """(nv, number of active freedoms): puts the active torques in their places, zero elsewhere."""
        active = [not at.joint.passive for at in self._attached() for _ in range(at.joint.nv)]
        return np.eye(self.nv)[:, active]

    # Symbols

    @property
    def free_symbols(self) -> set[Any]:
        """SymPy symbols in the numbers of links, joints, poses and gravity."""
        held: list[Any] = [self.gravity]
        for at in self.topology.attachments.values():
            held += [at.link.inertia, at.joint, at.home]
        return expressions.free_symbols(held)

    def subs(self, values: Mapping[Any, Any]) -> Self:
        """A tree of its own with values (or expressions) in the place of symbols.

        Parameters
        ----------
        values : mapping
            From SymPy symbols, or their names, to values. Symbols are matched by name; those that the robot does
            not have are passed over, as SymPy does it.

        Raises
        ------
        UnknownNameError
            For a name that no symbol has.
        InertiaError, JointError, ShapeError
            If no robot has the numbers that result.
        """
        bound = expressions.bound(values, self.free_symbols)
        tree = type(self)(self.link(self.base).subs(bound), expressions.substituted(self.gravity, bound))
        tree._become(tree.topology.attach(at.subs(bound) for at in self._attached()))
        return tree

    def symbolic(self) -> Symbolic:
        """The closed form of the tree as it is now: its functions, and each link's contribution, as SymPy matrices.

        What the tree has derived before is not derived again, also after something has been attached or detached.

        Returns
        -------
        Symbolic
            See :class:`screwdyn.symbolic.Symbolic`. A later change of the tree does not reach it.

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

    # Other forms; a later change of the tree does not reach them

    @cached_property
    def derivatives(self) -> Derivatives:
        """Exact derivatives of the dynamics of the tree as it is now, and the regressor of its inertial parameters.

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
        """How many operations some quantities cost, written out for this tree's numbers.

        Several are counted together: what they share is counted once, and so is an entry that occurs twice in a
        symmetric matrix. Zeros, ones and whatever depends on masses and lengths only are folded, also where these are
        symbols.

        Parameters
        ----------
        *functions : str
            Names of quantities: of any method of the tree that is a function of q, qd, qdd or tau, such as
            "mass_matrix". A quantity of one link is followed by the link, and a frame if it has one:
            "forward_kinematics:tool0", "jacobian:tool0:body".

        Returns
        -------
        dict
            "mul", "add" (with subtractions), "div" and "sincos" (sine and cosine of one angle are two).

        Raises
        ------
        ScrewdynError
            If a quantity is unknown, none is named, or a link is missing.
        UnknownNameError
            If there is no such link.
        SingularAttachmentError
            For ``forward_dynamics``, if a joint carries no inertia whatever the state; for ``operational_inertia``, if
            the link is confined.

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

        One text that is header and implementation at once: compile it as it is; where only its declarations are
        wanted, define ``<PREFIX>DECLARATIONS_ONLY`` (without a prefix, ``SCREWDYN_DECLARATIONS_ONLY``) before it is
        included. Including it twice does no harm, and C++ can call the functions. It begins with a comment that names
        every position and freedom in order with its unit; the macros ``NQ`` and ``NV`` are their numbers. The functions
        are ``void``, take arrays of ``double`` (first q, qd, qdd or tau as far as they are needed, then the results,
        matrices row by row), need ``math.h`` only, use no heap and keep no state. The tree's numbers are written with
        all their digits; a later change of the tree does not reach the text.

        A function has the name of its quantity, followed by the link and the frame where they are named:
        "jacobian:tool0:body" becomes ``jacobian_tool0_body``. Quaternions are expected to have length 1.

        Where numbers of the tree hold SymPy symbols, the text declares ``typedef struct { double m; … }
        <prefix>parameters;`` with a member for each symbol, in alphabetical order. Every function takes ``const
        <prefix>parameters *values`` after its inputs and computes expressions such as ``m*L**2`` from the members. A
        member has the name of its symbol, as far as C and C++ take it; a comment beside it names the symbol otherwise.

        Parameters
        ----------
        functions : str, or sequence of str or of sequences of str
            As for :meth:`operation_count`. A sequence such as ``("mass_matrix", "bias_force")`` becomes one function
            ``mass_matrix_and_bias_force`` with several results, which shares the work between them.
        prefix : str
            Begins the names of all functions and, in capitals, of all macros.
        optional : str or sequence of str
            Links, such as a payload, that a running controller can do without. Every function then takes, after its
            inputs and parameters, ``unsigned long carried``: a bit ``<PREFIX>CARRIES_<LINK>`` for each. What is left
            out is left out with all that hangs on it, and the results are those of the tree without it. Where its own
            coordinates stand, M, C, forces and accelerations are zero: use the block of the other coordinates.

        Raises
        ------
        ScrewdynError
            If a function is unknown, named twice or none is named, the prefix cannot begin a C name, an optional link
            is the base or there are more than 32, the tree has no coordinates, two symbols have one name, or C has no
            function for something in an expression; or for ``operational_inertia`` with an optional link that has
            freedoms of its own.
        UnknownNameError
            If a link is not in the tree.
        SingularAttachmentError
            For ``forward_dynamics``, if a joint carries no inertia whatever the state.

        Notes
        -----
        Where a joint carries no inertia at some state only, or without some optional link, ``forward_dynamics`` gives
        infinity, NaN or numbers without meaning. Tens of freedoms make tens of thousands of statements, which compilers
        take time for.

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

        return c_source(self, functions, prefix, optional)

    def compile(self, threads: int | None = None) -> Compiled:
        """The dynamics of the tree as it is now, as machine code made for its own structure.

        The code is made in the background and kept in the process; meanwhile the result answers by the tree's own
        kernels. A payload that is welded on or hangs on a passive joint changes its inertial numbers without new code;
        elsewhere, code is made anew the first time that a zero among them becomes something else (docs/compiled.md).

        Parameters
        ----------
        threads : int, optional
            How many threads share a large batch; as many as there are processors if not given.

        Returns
        -------
        Compiled
            Answers what a tree does about its dynamics. Functions that are compiled take ``out=``, and
            ``dynamics(q, qd)`` gives M, C and g in one call; see :class:`screwdyn.compiled.Compiled`. A later change
            of the tree does not reach it.
        """
        from screwdyn.forms.compiled import Compiled

        return Compiled(self.model, threads)

    # Grasp and release

    def grasp(
        self,
        state: State,
        body: Body,
        *,
        to: str,
        twist: Twist | None = None,
        joint: Joint | None = None,
        at: ArrayLike | None = None,
        name: str | None = None,
        body_state: State | None = None,
    ) -> GraspEvent:
        """Attach a body while the robot moves, conserving momentum; see :func:`screwdyn.simulation.impact.grasp`."""
        return impact.grasp(self, state, body, to=to, twist=twist, joint=joint, at=at, name=name, body_state=body_state)

    def release(self, state: State, what: Handle | str) -> ReleaseEvent:
        """Detach a payload while the robot moves; see :func:`screwdyn.simulation.impact.release`."""
        return impact.release(self, state, what)

    # Inside

    @cached_property
    def model(self) -> Model:
        """Frozen snapshot of this revision: it goes on answering for the tree as it is now."""
        from screwdyn.physics.model import Model

        model = self._former = Model(self.topology, self._former)
        return model

    def _carrier(self, link: str) -> tuple[int, Array]:
        self._at(link)
        return super()._carrier(link)
