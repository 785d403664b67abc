"""The value of a joint: its screws and the numbers of its own forces and limits.

A joint is k unit screws S₁ … S_k in the frame of the link that it carries (docs/mathematics.md §1 and §7). The pose of
the link in its parent is ``home · exp(Ŝ₁ q₁) … exp(Ŝ_k q_k)``, or ``home · g(q)`` with g in the group that the screws
generate; a :class:`Chart` is the coordinates of such a group. Computations do not depend on the kind of a joint.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import inf
from typing import Any

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import JointError
from screwdyn.core.text import NAME, is_name
from screwdyn.core.types import Array
from screwdyn.mechanism.chart import Chart
from screwdyn.mechanism.joint.mimic import Mimic
from screwdyn.mechanism.joint.rotor import Rotor
from screwdyn.mechanism.joint.screws import (
    check_independent,
    interval,
    kind,
    magnitude,
    meet,
    number,
    parallel,
    unit_screws,
)

__all__ = ["Joint"]


@dataclass(frozen=True, eq=False)
class Joint:
    """The motion of a link relative to its parent; made by :func:`revolute`, :func:`spherical`, :func:`free`, ….

    docs/mathematics.md §1 and §7.

    Parameters
    ----------
    screws : (6,) or (6, k) array, or None
        Unit screws [ω; v] in the carried link's own frame, one for each freedom, copied; ``None`` for a fixed joint.
    passive : bool
        Whether the joint has no motor. A torque on a passive joint is an error in a simulation.
    damping, friction, stiffness, rest : float
        Parameters of the joint's own force −damping q̇ − friction sgn q̇ − stiffness (q − rest), the same for each
        freedom, in N m and rad for a rotation, in N and m for a translation (docs/mathematics.md §8). Simulated joints
        stick while the load is below the friction. These numbers and the screws may be SymPy expressions.
    limits : (float, float) or None
        Lower and upper position, rad or m. Simulations report when they are reached, and enforce them with ``stops``.
    name : str or None
        Name of the joint, after which its freedoms and positions are named; ``None`` for the name of the link that it
        carries.
    chart : Chart or None
        The coordinates of a joint whose motions form a group; the screws are then the chart's. Such a joint has
        neither stiffness nor limits nor an armature.
    effort, velocity : float or None
        Largest magnitudes of the motor's force and of the rate, the same for each freedom; N m or N, rad/s or m/s. The
        dynamics does not enforce them; simulations clip torques at the effort with ``saturate=True``.
    armature : float
        Inertia of the motor as the joint feels it, ratio² times that of the rotor, the same for each freedom; kg m² or
        kg; maybe a SymPy expression. It is added to the diagonal of M and has neither weight nor gyroscopic moments,
        unlike ``rotor``.
    mimic : Mimic or None
        The joint that this one follows, q = ratio · q_joint + offset. It then has one screw and no freedom of its own.
    rotor : Rotor or None
        The rotor of the motor of a joint of one freedom. ``attach`` adds it as a link ``<joint>_rotor``.

    Raises
    ------
    JointError
        If a screw is not six numbers or not of unit length; screws are linearly dependent in every configuration;
        damping, friction, stiffness or armature is negative or not finite; the lower limit exceeds the upper one;
        effort or velocity is negative; a joint with a chart has a spring, limits or an armature; the name is empty;
        `passive` is not a bool; a joint that follows another one is passive or has several screws; or a joint with a
        rotor has not one freedom.
    """

    screws: Array
    passive: bool = False
    damping: float = 0.0
    friction: float = 0.0
    stiffness: float = 0.0
    rest: float = 0.0
    limits: Sequence[float] | None = None
    name: str | None = None
    chart: Chart | None = None
    effort: float | None = field(default=None, kw_only=True)
    velocity: float | None = field(default=None, kw_only=True)
    armature: float = field(default=0.0, kw_only=True)
    mimic: Mimic | None = field(default=None, kw_only=True)
    rotor: Rotor | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        for what, least in (("damping", 0.0), ("friction", 0.0), ("stiffness", 0.0), ("rest", -inf), ("armature", 0.0)):
            object.__setattr__(self, what, number(what, getattr(self, what), least))
        object.__setattr__(self, "limits", interval(self.limits))
        for what in ("effort", "velocity"):
            object.__setattr__(self, what, magnitude(what, getattr(self, what)))
        if self.name is not None and not is_name(self.name):
            raise JointError(f"a joint's name must be {NAME}; got {self.name!r}")
        if not isinstance(self.passive, bool | np.bool_):
            raise JointError(f"passive must be True or False; got {self.passive!r}")
        object.__setattr__(self, "passive", bool(self.passive))
        if self.chart is not None:
            if self.stiffness != 0 or self.rest != 0 or self.limits is not None or self.armature != 0:
                raise JointError(f"a {self.chart.kind} joint takes no stiffness, rest, limits or armature")
            object.__setattr__(self, "screws", self.chart.screws)
        object.__setattr__(self, "screws", unit_screws(self.screws))
        if self.mimic is not None:
            if not isinstance(self.mimic, Mimic):
                raise JointError(f"mimic must be a Mimic, such as Mimic('finger', -1.0); got {self.mimic!r}")
            if self.passive or self.chart is not None or self.screws.shape[1] != 1:
                raise JointError(
                    f"a joint that follows another one has one screw and is not passive; got a "
                    f"{'passive ' * self.passive}{self.kind} joint"
                )
        if self.rotor is not None:
            if not isinstance(self.rotor, Rotor):
                raise JointError(f"rotor must be a Rotor, such as Rotor(1e-4, ratio=100); got {self.rotor!r}")
            if self.nv != 1:
                raise JointError(f"only a joint of one freedom has a rotor; got a {self.kind} joint with {self.nv}")
        if self.chart is None and self.nv > 1:
            check_independent(self.screws)

    @functools.cached_property
    def nv(self) -> int:
        """Number of freedoms: that of the screws; 0 if the joint follows another one."""
        return 0 if self.mimic is not None else int(self.screws.shape[1])

    @functools.cached_property
    def nq(self) -> int:
        """Number of positions: that of the freedoms, or that of the chart."""
        return self.nv if self.chart is None else self.chart.nq

    @property
    def neutral(self) -> tuple[float, ...]:
        """The positions at which the link is at its home pose."""
        return (0.0,) * self.nv if self.chart is None else self.chart.neutral

    @property
    def screw(self) -> Array | None:
        """(6,): the only screw of a joint of one freedom; ``None`` for a fixed joint.

        Raises
        ------
        JointError
            If there are several.
        """
        if self.nv > 1:
            raise JointError(f"a {self.kind} joint has {self.nv} screws; see its `screws`")
        return self.screws[:, 0] if self.screws.shape[1] else None

    @property
    def kind(self) -> str:
        """Name of the kind, derived from the screws: ``"revolute"``, ``"spherical"``, ``"fixed"``, ….

        The kind of other joints is a list of the kinds of their screws, such as ``"prismatic-prismatic"``.
        """
        if self.chart is not None:
            return self.chart.kind
        kinds = [kind(S) for S in self.screws.T]
        if kinds == ["revolute", "revolute"] and meet(*self.screws.T):
            return "universal"
        if kinds == ["revolute", "prismatic"] and parallel(*self.screws.T):
            return "cylindrical"
        return "-".join(kinds) or "fixed"

    def freedom_names(self, name: str) -> tuple[str, ...]:
        """Names of the freedoms of a joint with a given name: ``hip[wx]``, …; that name if there is one freedom."""
        if self.nv < 2:
            return (name,) * self.nv
        labels = self._numbered("w", "v") if self.chart is None else self.chart.freedom_labels
        return _names(name, labels)

    def row_names(self, name: str) -> tuple[str, ...]:
        """A name for each screw of a joint with a given name: its freedoms, or that name if it follows another one."""
        return self.freedom_names(name) if self.mimic is None else (name,)

    def position_names(self, name: str) -> tuple[str, ...]:
        """Names of the positions of a joint with a given name: ``hip[x]``, …; that name if there is one freedom."""
        if self.nv < 2:
            return (name,) * self.nv
        labels = self._numbered("angle", "p") if self.chart is None else self.chart.position_labels
        return _names(name, labels)

    def _numbered(self, turn: str, slide: str) -> tuple[str, ...]:
        """A label for each screw, numbered if several screws have the same label."""
        sorts = [turn if S[:3].any() else slide for S in self.screws.T]
        return tuple(s if sorts.count(s) == 1 else f"{s}{sorts[: i + 1].count(s)}" for i, s in enumerate(sorts))

    def prefixed(self, prefix: str) -> Joint:
        """The joint with a prefix before its name, if it has a name."""
        return replace(self, name=prefix + self.name) if prefix and self.name is not None else self

    def moves_like(self, other: Joint) -> bool:
        """Whether positions and rates mean the same for both joints: their screws and charts are equal."""
        if self is other:
            return True
        charts = [joint.chart for joint in (self, other) if joint.chart is not None]
        return (
            np.array_equal(self.screws, other.screws)
            and len(charts) != 1
            and (not charts or np.array_equal(charts[0].axes, charts[1].axes))
        )

    def inside(self, prefix: str) -> Joint:
        """The joint in a tree with a prefix before all names, also before those that it refers to."""
        joint = self.prefixed(prefix)
        if prefix and joint.mimic is not None:
            joint = replace(joint, mimic=joint.mimic.prefixed(prefix))
        if prefix and joint.rotor is not None:
            joint = replace(joint, rotor=joint.rotor.prefixed(prefix))
        return joint

    @property
    def free_symbols(self) -> set[Any]:
        """SymPy symbols that the joint's numbers depend on."""
        return expressions.free_symbols(getattr(self, field.name) for field in fields(self))

    def subs(self, values: Mapping[Any, Any]) -> Joint:
        """The joint with values substituted for symbols; JointError if a value is invalid."""
        values = expressions.bound(values, self.free_symbols)
        numbers = {
            what: expressions.substituted(getattr(self, what), values)
            for what in ("screws", "damping", "friction", "stiffness", "rest", "armature")
        }
        chart = None if self.chart is None else self.chart.subs(values)
        mimic = None if self.mimic is None else self.mimic.subs(values)
        rotor = None if self.rotor is None else self.rotor.subs(values)
        return replace(self, chart=chart, mimic=mimic, rotor=rotor, **numbers)


def _names(name: str, labels: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{name}[{label}]" for label in labels)
