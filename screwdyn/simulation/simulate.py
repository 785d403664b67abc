"""Simulation of a motion from event to event, and its result."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from screwdyn.changes.breaking import Break
from screwdyn.changes.change import Happened, Scheduled, seconds
from screwdyn.changes.grasp import Grasp
from screwdyn.changes.loops import Close
from screwdyn.changes.weld import Weld
from screwdyn.core import Array, ArrayLike, ScrewdynError, TopologyError, UnknownNameError, expressions
from screwdyn.core.errors import StaleHandleError
from screwdyn.forms.closed_loops import exerted_wrench
from screwdyn.mechanism import Handle
from screwdyn.mechanism.plausible import check_period
from screwdyn.mechanism.topology import check_untouched
from screwdyn.physics import Feedback, Frame, Robot, State, check_state, subtree_wrench
from screwdyn.physics.contact import Contacts
from screwdyn.physics.state import check_tree
from screwdyn.simulation import equations
from screwdyn.simulation.bounded import STATES
from screwdyn.simulation.equations import Stops, Torque, Wrenches, guarded
from screwdyn.simulation.hybrid import HybridSimulation, Side, TreeMotion
from screwdyn.simulation.integrators import METHODS, Integrator
from screwdyn.simulation.islands import simulated
from screwdyn.simulation.recording import Recording

if TYPE_CHECKING:
    from screwdyn.simulation.sensitivities import Sensitivities
    from screwdyn.views.film import Animation


# Samples of a run, and calls of a controller, that fit in memory and time.
MOST = 10_000_000


class ContactState(NamedTuple):
    """What the k points of a contact do at one time; vectors are in the base frame.

    Attributes
    ----------
    states : tuple of str
        "open", "idle" (touches without force), "sticks" or "slides", as all closed points without friction do.
    points : (k, 3) array
        Where they are, m.
    normals : (k, 3) array
        Out of the body of ``to``.
    gaps : (k,) array
        m.
    forces : (k, 3) array
        Of ``to`` on ``link``, N.
    slips : (k, 3) array
        Velocities relative to ``to``, m/s.
    """

    states: tuple[str, ...]
    points: Array
    normals: Array
    gaps: Array
    forces: Array
    slips: Array


@dataclass(frozen=True, eq=False, repr=False)
class Run(Recording):
    """A simulated motion; see :func:`simulate`.

    Attributes
    ----------
    motions : tuple of TreeMotion
        The parts of the run between changes of the tree.
    energy : Energy
    events : tuple of Happened
    tree : KinematicTree
        The simulated tree, which the events have changed.

    Notes
    -----
    Histories by name, such as ``run["elbow"]``, are described in :class:`Recording`.
    """

    motions: tuple[TreeMotion, ...]
    events: tuple[Happened, ...]
    tree: Robot
    sensitivities: Sensitivities | None = None

    @property
    def states(self) -> Sequence[State]:
        """The state at each sample; ``state.tree`` is a copy of the tree as it was at that time."""
        return _States(self.motions)

    # At any time

    def at(self, t: float, side: Side = "after") -> State:
        """The state at any time of the run, from the polynomials of the integrator; quaternions have length 1.

        Parameters
        ----------
        t : float
            From the first to the last sample, s.
        side : "after" or "before"
            Which of the two states at the time of an event.

        Raises
        ------
        ScrewdynError
            If the time is outside the run.
        """
        times, owners = self._located(t, side)
        if len(times) != 1:
            raise ScrewdynError(f"t must be one number; got {t!r}")
        motion = self.motions[int(owners[0])]
        q, qd, _ = motion.values(times)
        return State.of(motion.tree, q[0], qd[0], own=False)

    def sensitivity(self, t: float, side: Side = "after") -> Array:
        """Derivatives of the state at a time by the parameters of the run, of ``simulate(…, sensitivities=True)``.

        Parameters
        ----------
        t, side
            As for :meth:`at`.

        Returns
        -------
        (2 nv, p) array
            The rows are the freedoms of the tree at that time, then their rates; the columns are
            ``sensitivities.parameters``. Positions change along the freedoms, as in :meth:`KinematicTree.linearize`.

        Raises
        ------
        ScrewdynError
            If the run was simulated without sensitivities, or the time is outside the run.
        """
        return self._differentiable.at(t, side)

    def gradient(self, cost: Callable[..., float], t: ArrayLike | None = None) -> dict[str, float]:
        """Derivatives of a cost by the parameters of the run, of ``simulate(…, sensitivities=True)``.

        Parameters
        ----------
        cost : callable (state) -> float
            A smooth function of the state at the time ``t``; of several states, ``cost(first, second)``, for several
            times. It is differentiated by central differences, and the states by :meth:`sensitivity`.
        t : float or (k,) array, optional
            Times within the run, s; its end by default. At the time of an event, the state after it.

        Returns
        -------
        dict
            By the names of ``sensitivities.parameters``.

        Raises
        ------
        ScrewdynError
            As for :meth:`sensitivity`, or if the cost is not a finite number.
        """
        derivatives, times = self._differentiable, np.atleast_1d(self.t[-1] if t is None else np.asarray(t, float))
        return derivatives.gradient(cost, times.tolist(), [self.at(x) for x in times.tolist()])

    @property
    def _differentiable(self) -> Sensitivities:
        if self.sensitivities is None:
            raise ScrewdynError("this run has no derivatives; simulate(…, sensitivities=True)")
        return self.sensitivities

    def pose(self, link: str, t: ArrayLike | None = None, side: Side = "after") -> Array:
        """Poses of a link in the base frame, m.

        Parameters
        ----------
        link : str
        t : float or (k,) array, optional
            Times within the run, s; all samples by default.
        side : "after" or "before"
            As for :meth:`at`; without effect on samples, which have both.

        Returns
        -------
        (4, 4), (k, 4, 4) or (samples, 4, 4) array
            NaN while the tree does not have the link.

        Raises
        ------
        UnknownNameError
            If the tree never had the link.
        ScrewdynError
            As for :meth:`at`.
        """
        return self._of_link(link, t, side, (4, 4), lambda tree, q, *_: tree.forward_kinematics(link, q))

    def twist(self, link: str, t: ArrayLike | None = None, side: Side = "after", frame: Frame = "com") -> Array:
        """Twists [ω; v] of a link, (…, 6), rad/s and m/s.

        Frames as for :meth:`KinematicTree.jacobian`; everything else as for :meth:`pose`.
        """
        return self._of_link(link, t, side, (6,), lambda tree, q, qd, *_: tree.link_twist(link, q, qd, frame))

    def acceleration(self, link: str, t: ArrayLike | None = None, side: Side = "after", frame: Frame = "com") -> Array:
        """Time derivatives of :meth:`twist`, entry by entry, (…, 6), rad/s² and m/s².

        At samples they follow from the forces; at other times from the derivatives of the integrator's polynomials,
        which have fewer correct digits.
        """
        return self._of_link(
            link, t, side, (6,), lambda tree, *motion: tree.link_acceleration(link, *motion[:3], frame)
        )

    def wrench(self, link: str, t: ArrayLike | None = None, side: Side = "after", by: str | None = None) -> Array:
        """Wrenches [n; f] on a link and all links beyond it but their weight, (…, 6), in its frame; N m and N.

        The sum of the wrench that its joint exerts on it, of external wrenches on these links, of the forces of their
        contacts, and of the wrenches of closed loops that connect them with others, see :meth:`contact` and
        :meth:`KinematicTree.constraint_wrenches`
        (docs/mathematics.md §11); of the base, the reaction of the ground. It follows from the motion, with
        accelerations as for :meth:`acceleration`, and does not include the inertia of armatures.
        Everything else as for :meth:`pose`.

        With ``by``, what another link exerts on the link itself, by the joint between them and by loops:
        ``run.wrench("foot", by=tree.base)`` is the reaction of the ground on a foot that a loop holds there. That of a
        joint includes external wrenches beyond it. It is zero while nothing connects the links, and NaN where
        redundant loops leave it undetermined; of the forces by which several joints stick beside loops, some that are
        possible count. Between samples, joint forces are interpolated linearly. Raises
        :class:`ScrewdynError` if nothing connects the links at any time.
        """
        if by is None:
            return self._of_link(link, t, side, (6,), lambda tree, *x: subtree_wrench(tree, link, *x[:3]))
        UnknownNameError.check(by, self._links)
        for motion in self.motions:
            check_untouched(motion.tree.topology, "run.wrench(…, by=…)")
        near = {name for motion in self.motions for name in motion.tree.topology.neighbours(link)}
        if near and by not in near:
            raise ScrewdynError(f"nothing connects {link!r} with {by!r}, but with {', '.join(sorted(near))}")

        def exerted(tree: Robot, *motion: Array) -> Array:
            connected = by in tree.topology.neighbours(link)
            return exerted_wrench(tree, link, by, *motion) if connected else np.zeros((len(motion[0]), 6))

        return self._of_link(link, t, side, (6,), exerted)

    def contact(self, name: str, t: float, side: Side = "after") -> ContactState:
        """What the points of a contact do at a time: their states, forces and slips.

        Parameters
        ----------
        name : str
            Of the contact.
        t, side
            As for :meth:`at`.

        Returns
        -------
        ContactState

        Raises
        ------
        UnknownNameError
            If the tree does not have the contact at that time; the message states when it has.
        ScrewdynError
            As for :meth:`at`.

        Notes
        -----
        Forces are computed at the samples, and interpolated linearly between them. Rigid bodies do not determine how
        more than three points of a face share its load: of all possible forces, those of least norm are given, or if
        these are beyond the cone of friction of a point, others that are possible.
        """
        state, owner = self.at(t, side), int(self._located(t, side)[1][0])
        motion = self.motions[owner]
        having = [x.t for x in self.motions if name in x.tree.contacts]
        if having and name not in motion.tree.contacts:
            raise UnknownNameError(
                f"contact {name!r} is in the tree from {having[0][0]:g} to {having[-1][-1]:g} s, not at t = {t:g} s: a "
                f"link that leaves takes its contacts along; Release(…, into_world=True) keeps it"
            )
        motion.tree.contact(name)
        contacts = Contacts(motion.tree, motion.tree.model)
        own = [contact.name == name for contact in contacts.contacts]
        at = np.array(own)[contacts.owner]
        points, axes = (x[at] for x in contacts.frames(state.q))
        rows, found = contacts.rows(state.q, state.qd), motion.contacts(float(t), side)[at]
        in_base = [np.einsum("ki,kij->kj", x, axes) for x in (found[:, 1:], rows.rates[at])]
        states = tuple(STATES[int(x)] for x in found[:, 0])
        return ContactState(states, points, axes[:, 0], rows.gaps[at], *in_base)

    @property
    def _links(self) -> dict[str, None]:
        """The names of all links that a tree of the run has."""
        return dict.fromkeys(name for motion in self.motions for name in motion.tree.links)

    def _of_link(
        self,
        link: str,
        t: ArrayLike | None,
        side: Side,
        shape: tuple[int, ...],
        evaluate: Callable[[Robot, Array, Array, Array, Array], Array],
    ) -> Array:
        """A function of a link's tree, of q, q̇, q̈ and joint forces, at all samples or at given times."""
        trees = [motion.tree for motion in self.motions]
        UnknownNameError.check(link, self._links)
        sizes = [len(motion.t) for motion in self.motions]
        times, owners = (None, np.repeat(np.arange(len(trees)), sizes)) if t is None else self._located(t, side)
        found = np.full((len(owners), *shape), np.nan)
        for k, (motion, tree) in enumerate(zip(self.motions, trees, strict=True)):
            at = owners == k
            if link in tree.links and at.any():
                chosen = None if times is None else times[at]
                found[at] = evaluate(tree, *motion.values(chosen), motion.forces(chosen))
        return found if t is None or np.ndim(t) else found[0]

    def _located(self, t: ArrayLike, side: Side) -> tuple[Array, npt.NDArray[np.intp]]:
        """Times, (k,), and the indices of the motions to which they belong."""
        times = np.atleast_1d(expressions.read_or_nan(t))
        if np.isnan(times).any():
            raise ScrewdynError(f"t must be a number of seconds; got {t!r}")
        if not isinstance(side, str) or side not in ("after", "before"):
            raise ScrewdynError(f"side must be 'after' or 'before'; got {side!r}")
        if times.ndim != 1:
            raise ScrewdynError(f"t must be a number or a one-dimensional array; got shape {times.shape}")
        begin, end = self.t[0], self.t[-1]
        outside = ~((times >= begin) & (times <= end))
        if outside.any():
            raise ScrewdynError(f"the run is from {begin:.9g} s to {end:.9g} s; got t = {times[outside][0]:.9g} s")
        if side == "after":
            return times, np.searchsorted([motion.t[0] for motion in self.motions], times, side="right") - 1
        return times, np.searchsorted([motion.t[-1] for motion in self.motions], times, side="left")

    # To look at

    def animate(
        self,
        path: str | os.PathLike[str],
        *,
        fps: float = 30.0,
        show: Sequence[str] = (),
        hide: Sequence[str] = (),
        camera: ArrayLike | None = None,
        size: Sequence[int] = (640, 480),
        wrenches: Sequence[str] = (),
        progress: bool = False,
    ) -> Animation:
        """Write a film of the run: links, joints as screws, payloads and what happens to them (docs/viewing.md).

        Links are drawn with their visual shapes, or with the box of their inertia and rods between their joints.
        Payloads at rest wait for their grasp; released ones fly on freely, without torques in their joints. Grasps,
        impacts and other events are marked.

        Parameters
        ----------
        path : str or Path
            ``.html`` is a page for a browser, with a time slider, which needs no network; ``.gif`` and ``.mp4`` are
            films, the last one by ffmpeg.
        fps : float
            Frames per second of the run; a GIF has the nearest number for which a frame lasts a whole number of
            hundredths of a second.
        show : sequence of str
            Any of ``"com"``, the centre of mass, and ``"momentum"``, arrows of the linear and the angular momentum
            about it, of the robot with its payloads; ``"contacts"``, arrows of their forces; ``"joints"`` and
            ``"collision"`` as for :meth:`KinematicTree.show`.
        hide, camera
            As for :meth:`KinematicTree.show`. The texts are the time, the events and the names of arrows and loops.
        size : (2,) of int
            Width and height of a GIF or MP4, pixels.
        wrenches : sequence of str
            Links, at whose origins arrows show the force and the moment of :meth:`wrench`.
        progress : bool
            Show a progress bar.

        Returns
        -------
        Animation
            Has the ``path``, and shows itself in a notebook.

        Raises
        ------
        ScrewdynError
            If the suffix is not that of a format, the file cannot be written, ``fps`` is not a number > 0 or makes more
            than 100 000 frames, ``show`` has another name, ``camera`` or ``size`` cannot be one, or what the format
            needs is not installed: the extra ``view`` for HTML and for meshes, the extra ``plot`` for GIF and MP4, and
            ffmpeg for MP4.
        UnknownNameError
            If ``hide`` or ``wrenches`` names no link that the tree ever had.
        """
        from screwdyn.simulation.film import run_scene
        from screwdyn.views.film import film_path, film_rate, write_film
        from screwdyn.views.scene import View

        view = View(show, hide, camera, size, wrenches)
        out, rate = film_path(path), float(fps) if isinstance(fps, Real) else math.nan
        if not 0 < rate < math.inf:
            raise ScrewdynError(f"fps must be a number of frames per second > 0; got {fps!r}")
        return write_film(run_scene(self.motions, self.events, film_rate(out, rate), view), out, progress)

    # Several runs

    def join(self, other: Run) -> Run:
        """The run continued by another one; ``run + other`` is the same.

        The ledger continues: the entries of the other run are counted from the end of this one. The time at which they
        meet appears twice among the samples, as the time of an event does. If both runs have derivatives, so has the
        whole, by the start of this run and all else; gains of one name in both are one parameter.

        Parameters
        ----------
        other : Run
            Begins at the time and in the state in which this run ends, such as
            ``simulate(tree, run.states[-1], …, t0=run.t[-1])``.

        Raises
        ------
        ScrewdynError
            If it does not.
        """
        if not isinstance(other, Run):
            raise ScrewdynError(f"only a Run can continue a Run; got {type(other).__name__}")
        end, begin = self.motions[-1], other.motions[0]
        if abs(other.t[0] - self.t[-1]) > 1e-9 * max(1.0, abs(self.t[-1])):
            raise ScrewdynError(
                f"the first run ends at t = {self.t[-1]:.9g} s, the second begins at t = {other.t[0]:.9g} s; use t0="
            )
        if end.coordinates != begin.coordinates:
            raise ScrewdynError(
                f"the first run ends with ({', '.join(end.coordinates)}), the second begins with "
                f"({', '.join(begin.coordinates)}); let changes of the tree be events of a run"
            )
        for names, x, y in ((end.positions, end.q, begin.q), (end.coordinates, end.qd, begin.qd)):
            apart = np.abs(x[-1] - y[0]) > 1e-9 * (1 + np.abs(x[-1]))
            if apart.any():
                name = names[int(np.argmax(apart))]
                raise ScrewdynError(f"the second run does not begin in the last state of the first: {name!r} differs")
        energy = self.energy.continued(other.energy)
        events, calls = self.events + other.events, self.trial_calls + other.trial_calls
        both = self.sensitivities, other.sensitivities
        joined = None if both[0] is None or both[1] is None else both[0].joined(both[1])
        return Run(self.motions + other.motions, energy, events, other.tree, trial_calls=calls, sensitivities=joined)

    __add__ = join


class _States(Sequence[State]):
    """The states of some motions, which are made when they are asked for."""

    def __init__(self, motions: Sequence[TreeMotion]) -> None:
        self._motions = motions
        self._ends = np.cumsum([len(motion.t) for motion in motions])

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(self[k] for k in range(*index.indices(len(self))))
        k = range(len(self))[index]
        at = int(np.searchsorted(self._ends, k, side="right"))
        motion = self._motions[at]
        k -= int(self._ends[at])
        return State.of(motion.tree, motion.q[k], motion.qd[k], own=False)


def simulate(
    tree: Robot,
    state: State,
    duration: float,
    torque: Torque | None = None,
    events: Sequence[Scheduled[Any]] = (),
    progress: bool | None = None,
    *,
    t0: float = 0.0,
    control_period: float | None = None,
    wrenches: Wrenches | None = None,
    stops: Stops | None = None,
    saturate: bool = False,
    impacts: Literal["at once", "by pairs"] = "at once",
    sensitivities: bool | Sequence[str] = False,
    step: float | None = None,
    rtol: float = 1e-9,
    atol: float = 1e-10,
    method: str = "DOP853",
) -> Run:
    """Integrate M q̈ + C q̇ + g = τ + joint forces + Σ J_iᵀ F_i from event to event (docs/mathematics.md §8).

    Parameters
    ----------
    tree : KinematicTree
        Changed by the events, as by :meth:`KinematicTree.grasp`; restored after an error.
    state : State
        At time ``t0``.
    duration : float
        Seconds, > 0.
    torque : callable (t, state) -> array or mapping from coordinate to torque, optional
        Torques in N m or N, as an array over all freedoms, (nv,), or over the active ones only, in order. A mapping may
        omit coordinates, whose torque is then zero, and may give the torques of a joint of several freedoms together,
        ``{"hip": [x, y, z]}``. ``state.tree`` is a copy of the tree at that time. The torque on a passive joint must be
        zero; below 1e-9 of the largest torque it counts as rounding and is set to zero. By default there are no
        torques. Without ``control_period``, the integrator also calls the function for trial steps, so its results must
        be a continuous function of time and state and must not depend on earlier calls.
    events : sequence of events, such as :class:`Grasp` and :class:`Release`
        Each happens once, at its time or as soon as its condition holds. Events that are due at the same time happen in
        the given order.
    progress : bool, optional
        Show a progress bar. By default, one appears after 10 s on a terminal.
    t0 : float
        Time at the start of the run, s, >= 0. Times in callbacks, events and the result are absolute, so that a run
        can be continued: ``simulate(tree, run.states[-1], …, t0=run.t[-1])``.
    control_period : float, optional
        Seconds between calls of ``torque``, > 0: the function is called at t0, t0 + period, …, once each, and its
        output is held between calls, as a digital controller does. It may keep a memory, such as an integral or an
        observer. An event between two calls does not cause another: the torques of the coordinates that remain are
        held, and those of new coordinates are zero. An event at the time of a call happens first.
    wrenches : callable (t, state) -> mapping from link to (6,) array, optional
        External wrenches [n; f], N m and N, about the origin of the link's frame and in its axes. Called like
        ``torque`` without ``control_period``: also for trial steps.
    stops : "inelastic", SpringStop, or mapping from joint to one of them, optional
        What happens at joint limits, for all joints or for those of the mapping, which may also name joints that
        events bring. At an inelastic stop the coordinate
        comes to rest in an impact, and stays until a force pulls it away. By default the motion continues beyond the
        limits. In each case a :class:`LimitEvent` is reported when a coordinate reaches a limit from inside, or begins
        beyond it; one that begins exactly at a limit reaches it if it goes beyond, be it by rounding.
    saturate : bool
        Clip each torque at the ``effort`` of its joint, as a motor that cannot give more does. The clipped torques act,
        do work, and are those of the run. Joints without an effort are not limited. The effort of a joint that follows
        another one has no influence: the torque is that of the joint that it follows.
    impacts : "at once" or "by pairs"
        Whether all contacts in an impact act at once, or those of one pair of links after another, the fastest first,
        as in Newton's cradle (docs/mathematics.md §13).
    sensitivities : bool or sequence of str
        Whether ``run.sensitivity(t)`` has the derivatives of the states by the start and by the times of events; names
        of links ask for those by their inertias too, ``"torque.kp"`` for those by an attribute ``kp`` of the function
        ``torque``, a number or an array, ``"grasp crate.at"`` for those by an attribute of a change or of its
        condition, ``"grasp crate.when.level"``, and names of symbols for those by what :meth:`KinematicTree.subs` has
        put in their place in this tree, which has not changed since. Functions are differentiated by differences, or
        ``torque`` by its attribute ``derivative``, a function (t, state) -> (nv, 2 nv) array. They must not jump nor
        have a memory.
    step : float, optional
        Seconds between samples, > 0; a thousandth of the duration by default. It is also the largest step of the
        integrator if there are callbacks, dry friction or stops: the integrator can miss changes of a torque or of a
        condition that last less. Contacts are watched at this distance too.
    rtol, atol, method
        As for :func:`scipy.integrate.solve_ivp`. Use ``"Radau"`` or ``"LSODA"`` for stiff joints.

    Returns
    -------
    Run

    Raises
    ------
    StaleHandleError
        If the state does not belong to the present tree.
    ShapeError, UnknownNameError
        If a torque or wrench has a wrong shape or an entry that is not finite, or belongs to an unknown coordinate or
        link.
    JointError
        If there is a torque on a passive joint.
    UnknownNameError
        If a stop belongs to no joint of the tree or of an event.
    StalledError
        If the run would not end, because a torque is discontinuous or because an explicit method meets stiff joints;
        the message states the coordinate and a remedy.
    TopologyError
        If a callback changes the tree, or an event is impossible after those before it, such as a lock of what is
        locked: before the first step if all events have times.
    ContactError
        If a state begins inside the body of a contact, which :meth:`KinematicTree.separate` mends, or a sliding point
        jams; for methods other than RK23, RK45 and DOP853 in a tree with contacts.
    LoopError
        If the state opens a closed loop, or the run cannot pass a singular configuration of loops, which the message
        names; for methods other than RK23, RK45 and DOP853 in a tree with loops.
    ContactError
        If no forces of dry friction and stops were found that satisfy their laws (docs/mathematics.md §13).
    ScrewdynError
        If the duration, step, period, an event, a condition or a stop is invalid, a coordinate begins beyond an
        inelastic stop, or the integration fails.

    Warns
    -----
    ScrewdynWarning
        If ``control_period`` is longer than the run.

    Notes
    -----
    Closed loops stay closed: after each step and in each sample, the state is projected on them in the metric of M
    (docs/mathematics.md §12). In a singular configuration the motion may continue on another branch.

    Dry friction is not smoothed: a joint at rest sticks until the force on it exceeds its friction, and the times at
    which joints begin and cease to slide are located (docs/mathematics.md §8).

    Links push each other where they touch (:meth:`KinematicTree.touch`): impacts are located, points stick or slide by
    Coulomb's law, and a series of bounces ends at its limit time (docs/mathematics.md §13 and §14).

    Errors raised in ``torque``, ``wrenches``, ``when`` or an event are passed to the caller after the tree is restored.
    """
    check_tree(tree, "tree")
    start, duration = seconds("t0", t0), seconds("duration", duration, positive=True)
    end = start + duration
    step = duration / 1000 if step is None else seconds("step", step, positive=True)
    period = None if control_period is None else seconds("control_period", control_period, positive=True)
    for what, size, counted in (("step", step, "samples"), ("control_period", period, "calls")):
        if size is not None and duration / MOST > size:
            raise ScrewdynError(
                f"{what}={size:g} s makes {duration / size:.3g} {counted} in {duration:g} s, more than {MOST:g}; "
                f"choose it larger"
            )
        if size is not None and not end + size > end:
            raise ScrewdynError(
                f"{what}={size:g} s is shorter than the resolution of times at t0 = {start:g} s; choose it, or the "
                f"duration of {duration:g} s, larger"
            )
    for what, tolerance in (("rtol", rtol), ("atol", atol)):
        if not (isinstance(tolerance, float | int | np.floating) and 0 < tolerance < math.inf):
            raise ScrewdynError(f"{what} must be a number > 0; got {tolerance!r}")
    if not isinstance(method, str) or method not in METHODS:
        raise ScrewdynError(f"method must be one of {', '.join(METHODS)}; got {method!r}")
    for what, function in (("torque", torque), ("wrenches", wrenches)):
        if function is not None and not _takes_two(function):
            law = "; rollouts take a Feedback, and control.ComputedTorque is such a function"
            hint = law if isinstance(function, Feedback) else ""
            raise ScrewdynError(f"{what} must be a function of (t, state); got {function!r}{hint}")
    if sensitivities is not False and torque is not None and getattr(torque, "derivative", torque) is None:
        raise ScrewdynError(
            f"torque= is a law with a memory ({getattr(torque, '__name__', type(torque).__name__)}), which has no "
            f"derivatives by the state; leave out sensitivities=, or give a function of the time and the state only"
        )
    for what, flag in (("saturate", saturate), ("progress", progress is not None and progress)):
        if not isinstance(flag, bool | np.bool_):
            raise ScrewdynError(f"{what} must be True or False; got {flag!r}")
    if impacts not in ("at once", "by pairs"):
        raise ScrewdynError(f"impacts must be 'at once' or 'by pairs'; got {impacts!r}")
    for what, given, use in (("saturate", saturate, "clip"), ("control_period", period is not None, "call")):
        if given and torque is None:
            raise ScrewdynError(f"{what} needs a torque to {use}; give torque= or omit it")
    if not isinstance(events, Sequence) or not all(isinstance(event, Scheduled) for event in events):
        raise ScrewdynError(
            f"events must be a list of events with time= or when=, such as Grasp and Release, not pairs with steps as "
            f"for rollouts; got {events!r}"
        )
    for event in events:
        if event.time is None and not event.watched:
            raise ScrewdynError(f"a {type(event).__name__} needs either time= or when= in a run")
        if isinstance(event, Break) and sensitivities is not False:
            raise ScrewdynError(
                f"a Break of {event.loop!r} has no sensitivities, which would need those of its wrench; give an Open "
                f"with time= for those with the loop open from then on"
            )
        if event.time is not None and not start <= event.time <= end:
            span = f"lasts {duration:g} s" if start == 0 else f"is from {start:g} s to {end:g} s"
            raise ScrewdynError(f"the run {span}, but a {type(event).__name__} is set for {event.time:g} s")
    _check_order(tree, events)
    _check_names(tree, events)
    check_state(state, tree)
    if period is not None:
        check_period(period, duration)
    if stops is not None:
        ever = (equations.joints_of(tree), *(event.joints(tree) for event in events))
        equations.check_stops(stops, [named for joints in ever for named in joints.items()])
    with tree.transaction():
        controller = None if torque is None else equations.Controller(guarded(torque, tree), saturate, period, start)
        disturbance = None if wrenches is None else equations.Disturbance(guarded(wrenches, tree))
        integrator = Integrator(method, rtol, atol)
        simulation = HybridSimulation(
            tree, start, end, step, integrator, controller, disturbance, stops, events, impacts == "by pairs"
        )
        ended = simulated(simulation, state, progress) if sensitivities is False else simulation.run(state, progress)
        count, made = controller.calls if controller else 0, None
        if sensitivities is not False:
            from screwdyn.simulation.sensitivities import derivatives_of

            sources = {name: f for name, f in (("torque", torque), ("wrenches", wrenches)) if f is not None}
            called = np.array([start + k * period for k in range(count)] if period else [])
            made = derivatives_of(ended[0], simulation.acting, ended[2], sensitivities, sources, called)
        calls = 0 if period else count
        return Run(*ended, tree, trial_calls=calls, sensitivities=made)


def _takes_two(function: Any) -> bool:
    """Whether something can be called with a time and a state, as far as its signature tells."""
    try:
        inspect.signature(function).bind(0.0, None)
    except TypeError:
        return False
    except ValueError:  # some functions in C have no signature
        pass
    return True


def _check_order(tree: Robot, events: Sequence[Scheduled[Any]]) -> None:
    """Raise the error of an event that is impossible after those before it, if all have times and need no state."""
    if any(event.watched or not type(event).__module__.startswith("screwdyn.") for event in events):
        return
    trial = tree.copy()
    for event in sorted(events, key=lambda event: event.time or 0.0):
        try:
            event.restructure(trial)
        except (TopologyError, UnknownNameError, StaleHandleError) as error:
            event.placed(error)
            raise
        except (ValueError, TypeError, AttributeError):  # of an argument of another type, or for want of a state
            return


def _check_names(tree: Robot, events: Sequence[Scheduled[Any]]) -> None:
    """UnknownNameError for what an event names and the run never has, unless classes of the user may bring it."""
    ever = {"link": {*tree.links}, "joint": {*equations.joints_of(tree)}, "loop": {*tree.loops}}
    for event in events:
        if not type(event).__module__.startswith("screwdyn."):
            return
        ever["joint"].update(event.joints(tree))
        if isinstance(event, Grasp) and not isinstance(event.body, Handle | str):
            alone = event.brings(tree)
            if alone is None:
                return
            ever["link"].update(alone.links)
            ever["loop"].update(alone.loops)
            if event.name is None:  # of an inertia, "payload", or the next one that is free
                several = range(2, 2 + len(tree.links) + len(events))
                ever["link"].update(f"{alone.links[1]}_{k}" for k in several)
    closed = [getattr(event, "name", None) for event in events if isinstance(event, Close | Weld)]
    ever["loop"].update(name for name in closed if isinstance(name, str))
    # A joint without a name has that of its link; of what a loop holds when it is released, that of the loop.
    ever["joint"] |= ever["link"] | ever["loop"]
    if None in closed:
        del ever["loop"], ever["joint"]
    for event in events:
        event.check_names(ever)
