"""The equation of motion of one tree as differential equations of first order."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from screwdyn.core.errors import LoopError, ScrewdynError, ShapeError
from screwdyn.core.types import Array
from screwdyn.forms.limits import Limits
from screwdyn.physics.closure import Closure
from screwdyn.physics.quantities import LARGEST
from screwdyn.physics.robot import Robot
from screwdyn.physics.state import State
from screwdyn.simulation.callbacks import Controller, Disturbance
from screwdyn.simulation.holding import Holding
from screwdyn.simulation.stops import SpringStop, SpringStops, Stops, stop_of

__all__ = ["ENERGIES", "RUNAWAY", "Equations", "Layout"]

# Rate in rad/s or m/s above which a run is stopped, because an unstable controller makes the steps ever smaller.
RUNAWAY = 1e6
# Rate above which callbacks are not asked, rad/s or m/s.
TRIAL = 1e3 * RUNAWAY
# Energies that are integrated with the motion: work of the torques, dissipation in joints, work of the wrenches.
ENERGIES = 3
# Step of finite differences, relative to 1 + |y|.
DIFFERENCE = 1e-6


class Layout:
    """The tree of a motion, and the parts of y = [q; q̇; …].

    Parameters
    ----------
    tree : KinematicTree
        Copied: later changes have no effect.

    Attributes
    ----------
    tree : KinematicTree
        The copy from which values are computed.
    nq, n : int
        Numbers of positions, and of positions and rates.
    """

    def __init__(self, tree: Robot) -> None:
        self.tree = tree.copy()
        self.model = self.tree.model
        self.nq, self.n = self.model.nq, self.model.nq + self.model.nv

    def state(self, y: Array) -> State:
        """A state for callbacks and results, with copied arrays, because a callback may change them."""
        q, qd = self.parts(y)
        return State.unchecked(self.tree, self.model.coordinates, q, qd, self.model.positions)

    def parts(self, y: Array) -> tuple[Array, Array]:
        """Positions, with quaternions scaled to length 1, and rates, from y of shape (…, nq + nv + 3)."""
        q = y[..., : self.nq]
        return self.model.configurations.normalized(q) if self.model.charts else q, y[..., self.nq : self.n]


# Number and distance, rad and m, of configurations with which one is compared that may be singular.
_ASIDE, _FAR = 3, 0.05


class Equations:
    """ẏ = f(t, y) of one tree, with y = [q; q̇; energies], (nq + nv + 3,).

    M q̈ + C q̇ + g = τ + joint forces + Σ J_iᵀ F_i (docs/mathematics.md §8). The energies are the work of the torques,
    the energy dissipated in joints and the work of the external wrenches.

    Parameters
    ----------
    tree : KinematicTree
        Copied: later changes have no effect.
    controller : Controller or None
        The torques; zero by default.
    disturbance : Disturbance or None
        The external wrenches; none by default.
    stops : Stops or None
        At joint limits; none by default.
    y : (nq + nv + 3,) array
        The start.

    Attributes
    ----------
    layout : Layout
    holding : Holding or None
        Dry friction and inelastic stops.
    springs : SpringStops or None
    closure : Closure or None
        The loops of the tree.
    passable : Limits
        Those without an inelastic stop.

    Raises
    ------
    ScrewdynError
        If a position is beyond an inelastic stop.
    LoopError
        If there are loops, and dry friction or inelastic stops.
    """

    def __init__(
        self, tree: Robot, controller: Controller | None, disturbance: Disturbance | None, stops: Stops | None, y: Array
    ) -> None:
        # Without the functions of the user, so that results do not refer to them.
        self.layout = layout = Layout(tree)
        self.tree, self.model, self.nq, self.n = layout.tree, layout.model, layout.nq, layout.n
        own = self.own = layout.model.joint_forces
        self.elastic, self.viscous = bool(own.stiffness.any()), bool(own.damping.any())
        q, qd = layout.parts(y)
        self.passable = Limits.of(tree, lambda joint: stop_of(stops, joint) != "inelastic")
        rigid = Limits.of(tree, lambda joint: stop_of(stops, joint) == "inelastic")
        self.holding = Holding(self.tree, own.friction, rigid) if own.friction.any() or rigid.keys else None
        if self.holding is not None:
            self.holding.check(q)
        loops = layout.model.topology.loops
        self.closure = Closure(self.tree, self.model) if loops else None
        self._ranks = self.closure.ranks(q) if self.closure is not None else {}
        if loops and self.holding is not None:
            raise LoopError(
                f"dry friction and inelastic stops are not available for a tree with closed loops, because they would "
                f"ignore the forces in {', '.join(map(repr, loops))}; use damping and stops=SpringStop(…) instead"
            )
        soft = Limits.of(tree, lambda joint: isinstance(stop_of(stops, joint), SpringStop))
        found = [stop for _, joint, _, _ in soft.keys if isinstance(stop := stop_of(stops, joint), SpringStop)]
        self.springs = SpringStops(soft, found, q, qd) if found else None
        self.controller, self.disturbance = controller, disturbance
        self.none = np.zeros(layout.model.nv)
        # Whether functions of the user are called for trial states.
        self.tried = disturbance is not None or (controller is not None and controller.tried)
        if controller is not None:
            controller.enter(layout.tree)
        if disturbance is not None:
            disturbance.enter(layout.tree)

    def potential(self, q: Array) -> Array:
        """Energy of gravity and of springs, (…), J."""
        energy = np.asarray(self.tree.potential_energy(q) + self.own.spring_energy(q))
        return energy if self.springs is None else energy + self.springs.energy(q)

    def rate(self, t: float, y: Array) -> Array:
        """ẏ, (nq + nv + 3,); see :meth:`write_rate`."""
        rate = np.zeros(len(y))
        self.write_rate(t, y, rate)
        return rate

    def write_rate(self, t: float, y: Array, rate: Array) -> None:
        """Write ẏ to ``rate``, (nq + nv + 3,): NaN for trial states out of range, so that a shorter step is tried."""
        nq, n = self.nq, self.n
        q, qd = y[:nq], y[nq:n]
        if not qd @ qd < (TRIAL if self.tried else LARGEST) ** 2:
            rate[nq:n] = np.nan
            return
        if self.model.charts is None:
            rate[:nq] = qd
        else:
            # The rate of a quaternion is perpendicular to it, so its length stays constant without projection.
            rate[:nq] = self.model.configurations.rate(q, qd)
            q = self.model.configurations.normalized(q)
        tau = None if self.controller is None else self.controller(t, q, qd)
        force = self.forces(t, q, qd, tau, rate[n:])
        try:
            rate[nq:n] = self.accelerations(q, qd, force)
        except ShapeError:  # numbers beyond the range of the recursions
            rate[nq:n] = np.nan

    def jacobian(self, t: float, y: Array) -> Array:
        """∂ẏ/∂y by forward differences, (nq + nv + 3, nq + nv + 3); no rate depends on the energies."""
        here, slopes = self.rate(t, y), np.zeros((len(y), len(y)))
        for k, step in enumerate(DIFFERENCE * (1 + np.abs(y[: self.n]))):
            there = y.copy()
            there[k] += step
            slopes[:, k] = (self.rate(t, there) - here) / step
        return slopes

    @property
    def smooth(self) -> bool:
        """Whether the accelerations are a fixed function of the state: without callbacks, dry friction and stops."""
        called = self.controller is not None or self.disturbance is not None
        return not called and self.holding is None and self.springs is None

    def sample(self, t: float, q: Array, qd: Array) -> tuple[Array, Array]:
        """Torques and accelerations at a time, (nv,)."""
        tau = None if self.controller is None else self.controller(t, q, qd)
        qdd = self.accelerations(q, qd, self.forces(t, q, qd, tau, np.zeros(ENERGIES)))
        return np.zeros(len(qd)) if tau is None else tau, qdd

    def smooth_accelerations(self, q: Array, qd: Array) -> Array:
        """q̈ at any number of states, (…, nv), if the equations are :attr:`smooth`."""
        return np.asarray(self.tree.forward_dynamics(q, qd, self.own.viscous_force(qd) + self.own.spring_force(q)))

    def accelerations(self, q: Array, qd: Array, force: Array) -> Array:
        """q̈, (nv,), for all joint forces but those on freedoms that are held."""
        if self.holding is not None and self.holding.held.size:
            return self.holding.accelerations(q, qd, force)[0]
        return np.asarray(self.tree.forward_dynamics(q, qd, force))

    def forces(self, t: float, q: Array, qd: Array, tau: Array | None, power: Array) -> Array:
        """All joint forces but those that hold freedoms, (nv,), N m or N; their powers are written to ``power``.

        ``tau`` are the torques.
        """
        force = self.none if self.holding is None else self.holding.force
        if self.viscous:
            force = force + self.own.viscous_force(qd)
        if force is not self.none:
            power[1] = -(force @ qd)
        if self.springs is not None:
            push, heat = self.springs.force(q, qd)
            power[1] = heat - force @ qd
            force = force + push
        if self.elastic:
            force = force + self.own.spring_force(q)
        if tau is not None:
            power[0] = tau @ qd
            force = tau if force is self.none else force + tau
        if self.disturbance is not None:
            push = self.disturbance(t, q, qd)
            power[2] = push @ qd
            force = force + push
        return force

    def settle(self, t: float, y: Array) -> None:
        """Decide which freedoms are held, and set their rates in y, which are zero but for rounding."""
        if self.holding is not None:
            q, qd = self.layout.parts(y)
            self.holding.settle(q, qd, self._total(t, q, qd) - self.holding.force)
            y[self.nq + self.holding.held] = 0.0

    def closed(self, y: Array) -> Array:
        """The nearest y, (…, nq + nv + 3), with closed loops; see :meth:`Closure.project`."""
        if self.closure is None:
            return y
        q, qd = self.closure.project(*self.layout.parts(y))
        return np.concatenate([q, qd, y[..., self.n :]], axis=-1)

    def dependent(self, y: Array) -> list[str]:
        """Names of the loops with fewer independent constraints than at the start or nearby, where it is singular."""
        if self.closure is None:
            return []
        q, rng = self.layout.parts(y)[0], np.random.default_rng(0)
        others = [self._ranks]
        for _ in range(_ASIDE):
            aside = self.model.configurations.integrate(q, rng.uniform(-_FAR, _FAR, self.model.nv))
            with suppress(LoopError):
                others.append(self.closure.ranks(self.closure.closed(aside)[0]))
        return [name for name, rank in self.closure.ranks(q).items() if rank < max(other[name] for other in others)]

    def levels(self, t: float, y: Array) -> Array:
        """Numbers that rise through zero when dry friction or a stop changes; see :meth:`change`."""
        q, qd = self.layout.parts(y)
        levels = [] if self.springs is None else [self.springs.levels(q)]
        if self.holding is not None:
            levels.append(self.holding.levels(q, qd, self._total(t, q, qd)))
        return np.concatenate(levels)

    def struck(self, y: Array) -> bool:
        """Whether a freedom at its limit runs against an inelastic stop."""
        return self.holding is not None and bool(self.holding.strikes(*self.layout.parts(y)))

    def change(self, k: int, y: Array) -> None:
        """Set what changes when the level k rises; :meth:`settle` then decides what is held."""
        q, qd = y[: self.nq], y[self.nq : self.n]
        count = 0 if self.springs is None else len(self.springs.pressed)
        if self.springs is not None and k < count:
            self.springs.change(k, q)
        elif self.holding is not None:
            self.holding.change(k - count, q, qd)

    def _total(self, t: float, q: Array, qd: Array) -> Array:
        tau = None if self.controller is None else self.controller(t, q, qd)
        return self.forces(t, q, qd, tau, np.zeros(ENERGIES))

    def check_rates(self, t: float, qd: Array) -> None:
        """Raise an error for rates that only an unstable controller causes.

        Raises
        ------
        ScrewdynError
            The message names the coordinate.
        """
        fast = ~(np.abs(qd) < RUNAWAY)
        if fast.any():
            name = self.model.coordinates[int(np.argmax(fast))]
            raise ScrewdynError(f"{name!r} is faster than {RUNAWAY:g} /s at t = {t:.6g} s; check its torque")
