"""The state of a tree, with named entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from screwdyn.core import ScrewdynError, ShapeError, StaleHandleError, UnknownNameError, expressions
from screwdyn.core.types import Array, ArrayLike, html_table
from screwdyn.mechanism import Attachment, Topology
from screwdyn.mechanism.plausible import check_positions
from screwdyn.mechanism.structure import of_structure
from screwdyn.physics.model import Robot


class State:
    """Positions q and rates q̇ of a tree, by name.

    Parameters
    ----------
    tree : KinematicTree
    q : (nq,) array or mapping from position to number, optional
        In the order of ``tree.positions``, rad and m. Positions missing in a mapping, or all if `q` is omitted, are
        neutral. A mapping may also contain the positions of a joint together, ``{"hip": [x, y, z, w]}``. Copied.
    qd : (nv,) array or mapping from coordinate to number, optional
        Rates in the order of ``tree.coordinates``, rad/s and m/s; by default zero. Copied.

    Attributes
    ----------
    tree : KinematicTree
        In the states of a run, a copy of the tree as it was at that time, which each state has for itself.
    topology : Topology
        The structure of the tree when the state was made.

    Raises
    ------
    ShapeError
        If a shape is wrong, an entry is not finite, or the length of a quaternion is not 1.
    UnknownNameError
        If a name in a mapping is not that of a position or coordinate.
    ScrewdynError
        If `tree` is not a KinematicTree.

    Warns
    -----
    ScrewdynWarning
        If an angle is more than a turn beyond the limits of its joint, as in degrees, or a quaternion is (1, 0, 0, 0),
        which is no rotation where the scalar is first.

    Examples
    --------
    >>> import screwdyn as sd
    >>> state = sd.State(sd.robots.pelican(), {"elbow": 0.2})
    >>> state["elbow"]
    0.2
    """

    __slots__ = ("_own", "_tree", "q", "qd", "topology")

    def __init__(
        self,
        tree: Robot,
        q: ArrayLike | Mapping[str, ArrayLike] | None = None,
        qd: ArrayLike | Mapping[str, ArrayLike] | None = None,
    ) -> None:
        model = check_tree(tree, "the first argument of State").model
        if q is None or isinstance(q, Mapping):
            q = _entries(tree, "q", q, model.positions, model.configurations.neutral)
        if qd is None or isinstance(qd, Mapping):
            qd = _entries(tree, "qd", qd, model.coordinates, np.zeros(model.nv))
        (flat, flat_qd), batch = model.flat(q=q, qd=qd)
        if batch:
            raise ShapeError(f"a State is one configuration; got a batch of shape {batch}")
        check_positions(model.topology, flat)
        self._tree, self._own, self.topology = tree, True, model.topology
        self.q, self.qd = flat.copy(), flat_qd.copy()

    @classmethod
    def of(cls, tree: Robot, q: Array, qd: Array, own: bool = True) -> State:
        """A state from valid arrays, without checks; unless ``own``, its tree is a copy, made when it is asked for."""
        state = cls.__new__(cls)
        state._tree, state._own, state.topology = tree, own, tree.topology
        state.q, state.qd = q.copy(), qd.copy()
        return state

    coordinates: tuple[str, ...] = of_structure("coordinates", "topology")
    positions: tuple[str, ...] = of_structure("positions", "topology")

    @property
    def tree(self) -> Robot:
        """The tree of the state."""
        if not self._own:
            self._tree, self._own = self._tree.copy(), True
        return self._tree

    def __getitem__(self, position: str) -> float:
        """One position, such as ``state["hip[x]"]``, rad or m; UnknownNameError if there is no such position."""
        return float(self.q[self._index(position, self.positions)])

    def velocity(self, coordinate: str) -> float:
        """Rate of a coordinate, such as ``state.velocity("hip[wx]")``, rad/s or m/s; UnknownNameError without it."""
        return float(self.qd[self._index(coordinate, self.coordinates)])

    def onto(
        self, tree: Robot, q: Mapping[str, ArrayLike] | None = None, qd: Mapping[str, ArrayLike] | None = None
    ) -> tuple[State, dict[str, dict[str, float]]]:
        """The state of a changed tree with the same values, by name.

        Parameters
        ----------
        tree : KinematicTree
            Such as ``state.tree`` after links have been attached or detached.
        q, qd : mapping from name to number, optional
            Values of positions and coordinates, as for :class:`State`, in place of those of this state.

        Returns
        -------
        State
            Joints that this state does not have are neutral and at rest, unless ``q`` and ``qd`` have their values.
            Joints that were locked start from the positions at which they were locked, and joints that followed
            others from their positions and rates then.
        dict
            The entries that the tree does not have, as in :meth:`to_dict`.

        Raises
        ------
        StaleHandleError
            If a joint of the tree has the name of one of this state but other screws, or has been given another home
            pose or parent since, and ``q`` does not have its positions.
        UnknownNameError, ShapeError
            If a name in ``q`` or ``qd`` is unknown, or a value is invalid.
        """
        model, before = check_tree(tree, "the first argument of onto").model, self.topology
        own, own_rates = dict(zip(self.positions, self.q.tolist(), strict=True)), self.to_dict()["qd"]
        given, rates = by_name(tree, "q", q or {}, model.positions), by_name(tree, "qd", qd or {}, model.coordinates)
        kept: dict[str, float] = {}
        kept_rates: dict[str, float] = {}
        for name, link in tree.topology.carried.items():
            now = tree.topology.attachments[link]
            if name not in before.carried or not now.joint.nv:
                continue
            was, labels = before.carrying(name), now.joint.position_names(name)
            if was.locked is not None and _moves_like(was.unlocked, now):
                kept |= zip(labels, was.locked.q, strict=True)
            elif _moves_like(was, now) and was.joint.mimic is not None:
                leader, *numbers = before.leaders[name]
                ratio, offset = expressions.floats(expressions.array(numbers), "the coupling of joints").tolist()
                kept[name], kept_rates[name] = ratio * own[leader] + offset, ratio * own_rates[leader]
            elif _moves_like(was, now):
                kept |= {label: own[label] for label in labels}
                kept_rates |= {label: own_rates[label] for label in now.coordinates}
            elif was.joint.screws.size and not given.keys() >= {*labels}:
                raise StaleHandleError(
                    f"joint {name!r} of this state is {was.joint.kind}, that of the tree is {now.joint.kind} or has "
                    f"another axis, home pose or parent; give its positions, onto(tree, q={{{name!r}: …}})"
                )
        positions, coordinates = frozenset(model.positions), frozenset(model.coordinates)
        gone = {
            "q": {name: x for name, x in own.items() if name not in positions},
            "qd": {name: x for name, x in own_rates.items() if name not in coordinates},
        }
        return State(tree, kept | given, kept_rates | rates), gone

    def to_dict(self) -> dict[str, dict[str, float]]:
        """All entries by name, ``{"q": {position: number}, "qd": {coordinate: number}}``, such as for JSON."""
        return {
            "q": dict(zip(self.positions, self.q.tolist(), strict=True)),
            "qd": dict(zip(self.coordinates, self.qd.tolist(), strict=True)),
        }

    @classmethod
    def from_dict(cls, tree: Robot, entries: Mapping[str, Mapping[str, ArrayLike]]) -> State:
        """A state of a tree from entries as in :meth:`to_dict`; missing positions are neutral, missing rates zero.

        Raises
        ------
        ScrewdynError
            If ``entries`` has other keys than "q" and "qd", or their values are no mappings.
        UnknownNameError, ShapeError
            As for :class:`State`.
        """
        known = isinstance(entries, Mapping) and entries.keys() <= {"q", "qd"}
        if not known or not all(isinstance(values, Mapping) for values in entries.values()):
            raise ScrewdynError(
                f'entries must be {{"q": {{position: number}}, "qd": {{coordinate: number}}}}; got {entries!r}'
            )
        return cls(tree, entries.get("q"), entries.get("qd"))

    def part(self, tree: Robot) -> State:
        """The state of a tree that has some of the joints, with the same values; UnknownNameError for other joints."""
        check_tree(tree, "the argument of part")
        own, rates = self.to_dict().values()
        try:
            q, qd = [own[name] for name in tree.positions], [rates[name] for name in tree.coordinates]
        except KeyError as missing:
            raise no_coordinate(missing.args[0], own, self.topology) from None
        return State.of(tree, np.array(q, dtype=float), np.array(qd, dtype=float))

    def _index(self, name: str, names: tuple[str, ...]) -> int:
        if not isinstance(name, str) or name not in names:
            raise no_coordinate(name, names, self.topology)
        return names.index(name)

    def __repr__(self) -> str:
        if self.positions == self.coordinates:
            rows = [f"{c}={x:.4g} ({v:.4g}/s)" for c, x, v in zip(self.coordinates, self.q, self.qd, strict=True)]
        else:
            rows = [f"{c}={x:.4g}" for c, x in zip(self.positions, self.q, strict=True)]
            rows += [f"{c}={v:.4g}/s" for c, v in zip(self.coordinates, self.qd, strict=True)]
        return f"State({', '.join(rows)})"

    def _repr_html_(self) -> str:
        """For notebooks."""
        q, qd = self.to_dict().values()
        names = dict.fromkeys((*self.positions, *self.coordinates))
        rows = [(x, *(f"{of[x]:.4g}" if x in of else "" for of in (q, qd))) for x in names]
        return html_table("State, in rad, m and s", ("", "q", "rate"), rows)


def by_name(tree: Robot, what: str, given: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Entries by name, from a mapping that may also contain the entries of a joint together, which are checked."""
    if not isinstance(given, Mapping):
        raise ShapeError(f"{what} must be a mapping from name to number; got {given!r}")
    found: dict[str, Any] = {}
    known = frozenset(names)
    for name, value in given.items():
        if name in known:
            if not isinstance(value, float | int):
                one = tree.model.numbers(f"{what} of {name!r}", value)
                if one.ndim:
                    raise ShapeError(f"{what} of {name!r} must be one number; got {value!r}")
                value = one
            found[name] = float(value)
            continue
        link = tree.topology.carried.get(name)
        entries = [] if link is None else [x for x in tree.topology.attachments[link].labels if x in known]
        if not entries:
            raise no_coordinate(name, names, tree.topology)
        numbers = tree.model.numbers(f"{what} of {name!r}", value)
        if numbers.shape != (len(entries),):
            raise ShapeError(
                f"{what} of {name!r} has shape {numbers.shape}; expected one number for each of: {', '.join(entries)}"
            )
        found |= zip(entries, numbers.tolist(), strict=True)
    return found


def _entries(
    tree: Robot, what: str, given: Mapping[str, ArrayLike] | None, names: tuple[str, ...], others: Array
) -> ArrayLike:
    """The given entries, by name, among others in the order of the names."""
    if not given:
        return others
    found = by_name(tree, what, given, names)
    return [found.get(name, x) for name, x in zip(names, others.tolist(), strict=True)]


def check_tree(tree: Robot, what: str) -> Robot:
    """The tree; ScrewdynError for anything else."""
    if not isinstance(tree, Robot):
        raise ScrewdynError(f"{what} must be a KinematicTree; got {type(tree).__name__}")
    return tree


def no_coordinate(name: object, known: Iterable[str], *topologies: Topology) -> UnknownNameError:
    """The error for a name that no coordinate has; it states that a joint of that name is locked or follows another."""
    for topology in topologies:
        for joint_name, link in topology.carried.items():
            at = topology.attachments[link]
            if at.locked is not None and (name == joint_name or name in at.labels):
                return UnknownNameError(
                    f"joint {joint_name!r} has no coordinate while it is locked; unlock it first, or omit {name!r}"
                )
        joint = topology.carrying(name).joint if isinstance(name, str) and name in topology.carried else None
        if joint is not None and joint.mimic is not None:
            to = joint.mimic
            return UnknownNameError(
                f"joint {name!r} has no coordinate of its own: it follows {to.joint!r}, and its position is "
                f"{to.ratio} times that of {to.joint!r} plus {to.offset}"
            )
    return UnknownNameError.of(name, known, "coordinate")


def check_state(state: State, tree: Robot, whose: str = "tree") -> None:
    """Check that a state belongs to the present tree, as :func:`check_current` does, and its numbers; ShapeError."""
    check_current(state, tree, whose)
    _, batch = tree.model.flat(q=state.q, qd=state.qd)
    if batch:
        raise ShapeError(f"a State is one configuration; got a batch of shape {batch}")


def check_current(state: State, tree: Robot, whose: str = "tree") -> None:
    """Check a state: StaleHandleError for one over other coordinates, or if a joint of the tree now moves otherwise."""
    if not isinstance(state, State):
        raise ShapeError(f"the state of the {whose} must be a State(tree, q, qd); got {type(state).__name__}")
    if state.topology is tree.topology:
        return
    if state.coordinates != tree.coordinates:
        raise StaleHandleError(
            f"this state is over ({', '.join(state.coordinates)}), but the {whose} now has "
            f"({', '.join(tree.coordinates)}); use the state of the last grasp or release, or make one of the {whose} "
            f"with state.onto()"
        )
    for name, joint in ((name, tree.joint(name)) for name in tree.joints):
        was = state.topology.carried.get(name)
        now = tree.topology.carrying(name)
        if joint.nv and (was is None or not _moves_like(state.topology.attachments[was], now)):
            raise StaleHandleError(
                f"joint {name!r} of the {whose} has other screws, another home pose or another parent than when this "
                f"state was made; use the state of the last change, or make one of the {whose} with state.onto()"
            )


def _moves_like(was: Attachment, now: Attachment) -> bool:
    """Whether positions and rates of a joint mean the same: a move or an exchange of it in motion changes its home."""
    stays = was.serial != now.serial or (was.parent == now.parent and np.array_equal(was.home, now.home))
    return stays and was.joint.moves_like(now.joint)
