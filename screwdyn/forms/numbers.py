"""Numeric values of all quantities of a tree, for one state or many.

Input is checked here. A call first passes its arguments to the kernel without conversion, which accepts one contiguous
float64 state. Other arguments are checked, broadcast and flattened before the kernel is called again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from typing import Any, Self

import numpy as np
from numpy import empty  # np.empty takes 15 ns longer

from screwdyn.backends.kernels.entry import Kernels
from screwdyn.backends.kernels.entry import method as in_c
from screwdyn.core import Array, ArrayLike, ShapeError, SingularAttachmentError, cached_property, hand_over, written
from screwdyn.physics.charts import recentre
from screwdyn.physics.closure import Closure
from screwdyn.physics.contribution import SHARES, Contribution, share_of
from screwdyn.physics.model import POSITIONS, Model
from screwdyn.physics.quantities import CATALOGUE, INTERNAL, LARGEST, SOLVING, Method, Quantities, Quantity
from screwdyn.physics.recursions.links import frame_code
from screwdyn.physics.recursions.whole_tree import forward_dynamics
from screwdyn.physics.table import TURN, workspace
from screwdyn.screws.screw import LENGTH_TOLERANCE

# Inertia that a joint feels, relative to what it carries, below whose negative a message does not call it rounding.
_NEGATIVE = 1e-9
# Types of the numbers in lists that are converted without further checks.
_NUMBERS = {float, int}
# Coordinates that a message names at most.
_SHOWN = 6


def require_resisted(entry: Quantity, model: Model) -> None:
    """Raise SingularAttachmentError if a quantity needs the inverse of an M that is singular in every configuration."""
    if entry.name not in SOLVING or not model.unresisted:
        return
    names = [repr(name) for name in model.unresisted]
    what = f"nothing beyond joint {names[0]} resists its motion"
    if len(names) > 1:
        shown = [*names[:_SHOWN], f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else names
        what = f"nothing resists a motion of {', '.join(shown[:-1])} and {shown[-1]} together"
    raise SingularAttachmentError(
        f"{what} in any configuration, so its acceleration is undetermined; give a link that moves an inertia about "
        f"all axes, give a joint an armature, or make one fixed"
    )


def too_large(model: Model, state: Mapping[str, ArrayLike]) -> ShapeError | None:
    """The error for results that are not finite, if an entry of the state is so large that they may overflow."""
    ratio = np.abs(model.ratios).max(initial=1.0)
    for name, value in state.items():
        a = np.abs(np.asarray(value, dtype=float))
        if a.max(initial=0.0) >= LARGEST / ratio:
            names = model.positions if name in POSITIONS else model.coordinates
            where = names[int(np.argmax(a)) % len(names)]  # in a batch too, flat or not
            return ShapeError(f"{name} is {a.max():g} at {where!r}; results would overflow")
    return None


def of_finite(model: Model, function: Callable[[Array, Array], Array], **state: ArrayLike) -> Array:
    """The value of a function of two arrays; ShapeError if an entry of them is so large that it has overflowed."""
    arrays, _ = model.arrays(state)
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            result = function(*map(np.ascontiguousarray, arrays))
        except ShapeError:  # a pose between the results has overflowed
            result = np.full(1, np.nan)
    if not np.isfinite(result).all():
        raise too_large(model, state) or ShapeError("results would overflow")
    return result


def one_state(model: Model, **arrays: ArrayLike) -> list[Array]:
    """Arguments of one state by name, such as ``q=`` or ``tau=``; ShapeError for a batch."""
    for name, given in arrays.items():
        _, batch = model.flat(**{name: given})
        if batch:
            raise ShapeError(f"{name} must be that of one state; got a batch of shape {batch}")
    return list(model.flat(**arrays)[0])


class Dynamics(Quantities):
    """Numeric values of the quantities of a tree, by the default back-end."""

    @cached_property
    def _kernels(self) -> Kernels:
        """The kernels of the model."""
        return Kernels(self.model)

    def joint_force(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """The joints' own forces −damping q̇ − friction sgn q̇ − stiffness (q − rest), (…, nv), N m or N.

        They are added to τ in the equation of motion (docs/mathematics.md §8). sgn q̇ is computed as tanh(q̇ / 1e-3),
        with q̇ in rad/s or m/s, so that a controller may compensate friction without a jump of its torque;
        :func:`simulate` itself integrates sgn q̇, and joints at rest stick. Errors as for
        :class:`~screwdyn.physics.quantities.Quantities`.
        """
        model = self.model
        return of_finite(model, model.joint_forces.smoothed_force, q=q, qd=qd)

    def wrench_torque(self, q: ArrayLike, wrenches: Mapping[str, ArrayLike]) -> Array:
        """Joint forces Σ J_iᵀ F_i of external wrenches F_i, (…, nv), N m or N (docs/mathematics.md §8).

        Parameters
        ----------
        q : (…, nq)
        wrenches : mapping from link name to (…, 6)
            [n; f] about the origin of the link's frame and in its axes, N m and N.

        Raises
        ------
        ShapeError, UnknownNameError, UnboundSymbolError
            As for :class:`~screwdyn.physics.quantities.Quantities`.
        """
        return self._wrench_torque(self._kernels, q, wrenches)

    def contributions(self, q: ArrayLike, qd: ArrayLike) -> list[Contribution]:
        """The contributions of all links but the base, in order of attachment; their padded sum ‡ is the whole model.

        See :meth:`contribution` and docs/mathematics.md §3.
        """
        one = self._frozen()
        return [one.contribution(link, q, qd) for link in [*one.model.placements][1:]]

    def _slipping(self, parts: Array) -> tuple[Callable[..., Any], ...]:
        """``impact`` and ``slip_momentum`` of one state for the parts of rows, while the caller keeps these."""
        kernels = self._kernels
        both, context = (kernels.impact, kernels.slip_momentum), kernels.with_places(parts)
        return tuple([partial(self._one, kernels, kernel, context, "qd") for kernel in both])

    def impulse_response(self, q: Array, impulses: Array) -> Array:
        """The change M⁻¹ p of the rates by impulses p on the freedoms, (nv,), of one state in contiguous arrays.

        Loops are not considered. SingularAttachmentError as for :meth:`forward_dynamics`; ShapeError if it overflows.
        """
        kernels = self._kernels
        jump: Array = self._one(kernels, kernels.impulse_response, kernels.context, "tau", q, impulses)
        return jump

    def _response_holding(self, held: slice) -> Callable[[Array, Array], Array]:
        """:meth:`impulse_response` if some freedoms do not move, whose rows and columns of M and p have no part."""
        kernels = self._kernels
        context, kept = kernels.holding(held)

        def response(q: Array, impulses: Array, kept: object = kept) -> Array:  # which the context has addresses of
            impulses[held] = 0.0
            jump: Array = self._one(kernels, kernels.impulse_response, context, "tau", q, impulses)
            jump[held] = 0.0
            return jump

        return response

    def _closing(self, q: Array, opening: Array) -> tuple[Array, Array]:
        """The rates x, (…, nv), and impulses λ, (…, m), with which closed loops open at given rates, (…, m).

        x is least in the metric of M with J_c x = ``opening``, and λ is the least one with M x = J_cᵀ λ.
        SingularAttachmentError as for :meth:`forward_dynamics`; ShapeError if results overflow.
        """
        kernels, batch = self._kernels, q.shape[:-1]
        given = [np.ascontiguousarray(x) for x in (q, opening)]
        found = empty((*batch, kernels.model.nv)), empty(opening.shape)
        if status := kernels.fill(INTERNAL["closing"], kernels.context, math.prod(batch), given, found):
            raise self._error(kernels, status, None, {"q": q})
        return found

    def _of_points(self, what: str, **state: ArrayLike) -> Sequence[Array]:
        """What an internal quantity gives of the points of contacts; errors as for :meth:`contact_gaps`."""
        kernels, entry = self._kernels, INTERNAL[what]
        found: Sequence[Array] | None = getattr(kernels, what)(kernels.found(entry), *state.values())
        return found or self._results(kernels, entry, None, None, state, None)

    def _holding(self, freedoms: Sequence[int]) -> Numbers:
        """The quantities of the present model with freedoms, by their indices, that do not move: q̈ of them is zero."""
        held = Numbers(self._kernels.model)
        held._kernels = Kernels(held.model, freedoms)
        return held

    # Inside

    def _frozen(self) -> Numbers:
        """The quantities of the present model, even if another thread changes the tree meanwhile."""
        kernels = self._kernels
        frozen = Numbers(kernels.model)
        frozen._kernels = kernels
        return frozen

    def _check_link(self, model: Model, link: str) -> None:
        """Raise UnknownNameError unless there is such a link."""
        model.check_link(link)

    def _one(self, kernels: Kernels, kernel: Callable[..., Any], context: Any, what: str, *state: Array) -> Any:
        """What a kernel without a method gives for one state: q, ``what``, …; errors as by :meth:`forward_dynamics`."""
        found = kernel(context, *state)
        if found is None:  # as for unpickled arrays, whose dtype is another object
            found = kernel(context, *[x.astype(float) for x in state])
        if found is None:
            rest = np.zeros(kernels.model.nv)
            self.forward_dynamics(state[0], rest, rest)
            raise too_large(kernels.model, {"q": state[0], what: state[1]}) or ShapeError("results would overflow")
        return found

    def _wrench_torque(self, kernels: Kernels, q: ArrayLike, wrenches: Mapping[str, ArrayLike]) -> Array:
        """:meth:`wrench_torque` by the kernels of one model."""
        model, J_of = kernels.model, CATALOGUE["jacobian"]
        batch = model.flat(q=q)[1]
        if not isinstance(wrenches, Mapping):
            raise ShapeError(f"wrenches must map names of links to [n; f], {{link: six numbers}}; got {wrenches!r}")
        tau = np.zeros((*batch, model.nv))
        for link, F in wrenches.items():
            self._check_link(model, link)
            F = model.numbers(f"the wrench on {link!r}", F)
            if F.ndim == 0 or F.shape[-1] != 6:
                raise ShapeError(f"the wrench on {link!r} must be (…, 6) numbers [n; f]; got shape {F.shape}")
            if not np.isfinite(F).all():
                raise ShapeError(f"the wrench on {link!r} is {F[~np.isfinite(F)][0]} in an entry; all must be finite")
            try:
                np.broadcast_shapes(tau.shape[:-1], F.shape[:-1])
            except ValueError:
                raise ShapeError(
                    f"the wrench on {link!r} has batch axes {F.shape[:-1]}, which cannot be broadcast with "
                    f"{tau.shape[:-1]}"
                ) from None
            (J,) = Dynamics._results(self, kernels, J_of, link, "body", {"q": q}, None)
            with np.errstate(over="ignore", invalid="ignore"):
                tau = tau + (F[..., None, :] @ J)[..., 0, :]
        if not np.isfinite(tau).all():
            largest = max(float(np.abs(F).max()) for F in wrenches.values())
            raise ShapeError(f"a wrench is {largest:.3g} N m or N in an entry; results would overflow")
        return tau

    def _evaluate(self, entry: Quantity, *values: Any, out: Any = None) -> Any:
        """Check all arguments of a quantity and compute its results, in ``out`` if that is given."""
        kernels = self._kernels
        # The tree may change while arguments are converted: all that follows is of one model.
        model = kernels.model
        link, given, frame, wrenches = entry.split(values)
        state = dict(zip(entry.arguments, given, strict=True))
        require_resisted(entry, model)
        forces = None if wrenches is None else self._wrench_torque(kernels, state["q"], wrenches)
        if entry.places in ("one", "subtree", "bodies"):
            self._check_link(model, link)
        share = share_of(model, entry.name, link) if entry.name in SHARES else None
        arrays, direct = out if out is None or len(entry.given) > 1 else (out,), None
        results: Sequence[Any]
        if model.computed(entry.name) is None:
            own = values if wrenches is None else (*values[:-1], forces)
            results = [getattr(Closure(Numbers(model)), entry.name)(*own)]
        elif forces is not None and entry.wrenches == "result":
            results = [self._results(kernels, entry, link, frame, state, None)[0] - forces]
        else:
            if forces is not None:
                (tau,), batch = model.flat(tau=state["tau"])
                state["tau"] = tau.reshape(*batch, model.nv) + forces
            direct = None if share else arrays
            results = self._results(kernels, entry, link, frame, state, direct)
        if share:
            found = share(*results)
            return found if out is None else Contribution(found.link, found.coordinates, *written(found.arrays, out))
        if out is None:
            return results[0][()] if len(results) == 1 else tuple(results)
        (written if direct is None else hand_over)(results, arrays)
        return out

    def _results(
        self, kernels: Kernels, entry: Quantity, link: Any, frame: Any, state: Mapping[str, ArrayLike], out: Any
    ) -> Sequence[Array]:
        """The results of a quantity for states, which subclasses may write to ``out`` after a check."""
        model = kernels.model
        if entry.name in SOLVING:  # M has an inverse, so that the next call asks no more
            kernels.solve()
        flat, batch = model.flat(**state)
        count = math.prod(batch)
        if "frame" in entry.parameters:
            frame_code(frame)  # raises an error for an unknown frame
        context = kernels.found(entry, link, "body" if frame is None else frame)
        shapes = model.shapes(entry, link or "")
        arrays = [empty(count * math.prod(shape)) for shape in shapes]
        if status := kernels.fill(entry, context, count, flat, arrays):
            raise self._error(kernels, status, link, state)
        return [a.reshape((*batch, *s)) for a, s in zip(arrays, shapes, strict=True)]

    def _felt(self, kernels: Kernels, row: int, q: ArrayLike) -> str:
        """The numbers that forward dynamics compared in the first state in which a row feels no inertia, as text."""
        model, entry = kernels.model, CATALOGUE["forward_dynamics"]
        if kernels.kernel_of(entry) != entry.name:  # it has compared entries of M
            return ""
        (flat,), _ = model.flat(q=q)
        rest = np.zeros(model.nv)
        for one in flat.reshape(-1, model.nq):
            if kernels.fill(entry, kernels.context, 1, [one, rest, rest], [rest.copy()]) == row + 1:
                break
        table, x = model.table, one
        if model.charts is not None:
            table, x = table.copy(), rest.copy()
            recentre(model.table, model.charts.where, model.charts.groups, one, table, x)
        work = workspace(table, lambda *shape: np.zeros(shape))
        forward_dynamics(table, x, rest, rest, work, empty(model.nv))
        D, _, _, felt, mass = work.pivots[row]
        carried, unit = (felt, "kg m^2") if table[row, TURN] else (mass, "kg")
        what = "negative" if -_NEGATIVE * abs(carried) > D else "no more than rounding"
        return f": it feels {D:.2g} of the {carried:.2g} {unit} that it carries, which is {what}"

    def _error(self, kernels: Kernels, status: int, link: str | None, state: Mapping[str, ArrayLike]) -> Exception:
        """The error for a status other than 0."""
        model = kernels.model
        overflow = too_large(model, state)
        if overflow is not None:
            return overflow
        felt = self._felt(kernels, status - 1, state["q"]) if status > 0 and "tau" in state else ""
        length = f"a quaternion in q differs from length 1 by more than {LENGTH_TOLERANCE:g}; normalise it"
        return model.undetermined(status, link, felt) or ShapeError(length)


class Numbers(Dynamics):
    """The quantities of one model."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def model(self) -> Model:
        """The model."""
        return self._model

    def _frozen(self) -> Self:
        return self


def _of_lists(state: Sequence[Any]) -> list[Array] | None:
    """The arrays of a state of which some are lists of numbers; None for any other state."""
    found, lists = [], False
    for x in state:
        if type(x) is list and {*map(type, x)} <= _NUMBERS:
            try:
                x, lists = np.array(x, dtype=np.float64), True
            except OverflowError:  # of an integer
                return None
        elif type(x) is not np.ndarray:
            return None
        found.append(x)
    return found if lists else None


def _method(entry: Quantity) -> Callable[..., Any]:
    """The method of a quantity: its kernel computes one state as it is given or in lists, and ``_evaluate`` others."""
    declared = Method(entry, "KinematicTree")
    name, first, count = entry.name, len(entry.parameters[:1]), len(declared.names)
    last = first + len(entry.arguments)
    framed, pushed, shares = "frame" in entry.parameters, entry.wrenches is not None, name in SHARES

    def method(self: Dynamics, *values: Any, **named: Any) -> Any:
        if named or len(values) != count:
            values = declared.values(values, named)
        if pushed and values[last] is not None:
            return self._evaluate(entry, *values)
        kernels, state = self._kernels, values[first:last]
        try:
            context = kernels.found(entry, values[0] if first else None, values[last] if framed else "body")
        except (KeyError, TypeError):  # for an unknown link or frame, of which the call below tells more
            pass
        else:
            found = getattr(kernels, name)(context, *(_of_lists(state) or state))
            if found is not None:
                return kernels.share_of(name, values[0])(*found) if shares else found
        return self._evaluate(entry, *values)

    return wraps(getattr(Quantities, entry.name))(method)


# For plain arguments, methods call kernels without a frame of Python; for all others, these functions.
_SLOW = {name: _method(entry) for name, entry in CATALOGUE.items()}


def define_methods(owner: type[Any]) -> None:
    """Define the methods of all quantities for a class itself: Python calls these 10 ns faster than inherited ones."""
    for k, (name, slow) in enumerate(_SLOW.items()):
        setattr(owner, name, in_c(owner, k, CATALOGUE[name], slow))


define_methods(Dynamics)
