"""What a tree gives besides numbers: derivatives, operation counts, C source, machine code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from screwdyn.forms.numbers import Dynamics
from screwdyn.mechanism.topology import Structure

if TYPE_CHECKING:
    from screwdyn.forms.compiled import Compiled
    from screwdyn.forms.derivatives import Derivatives

__all__ = ["Forms"]


class Forms(Structure, Dynamics):
    """The dynamics of a tree in other forms, each made from one tape of its operations.

    A form belongs to the tree as it was when the form was asked for: a later change does not reach it.
    """

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
