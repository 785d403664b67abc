"""A step of an integrator on a tape: the state after it from the state before it.

Inputs besides the state are ("dt", 0), the torques or the entries of a ``Feedback`` by name, ("bodies", k) for the
inertial numbers of some rows, and (field, row) for the parameters of the joints' own forces that are not zero.
"""

from typing import Any, NamedTuple

import numpy as np

from screwdyn.backends.tape.outputs import outputs
from screwdyn.backends.tape.tape import Recorded, Tape
from screwdyn.backends.tape.trace import Scalars, Subject, inputs
from screwdyn.physics import charts as charting
from screwdyn.physics.joint_forces import JointForces
from screwdyn.physics.steps import STEPS, Feedback, Motion
from screwdyn.physics.table import MASS, PARENT

__all__ = ["NUMBERS", "Kind", "step"]

# Inertial numbers of a row.
NUMBERS = PARENT - MASS


class Kind(NamedTuple):
    """What the code of a step depends on besides the structure of the tree.

    Attributes
    ----------
    method : str
        A name in ``steps.STEPS``.
    control : tuple of str
        Groups of inputs that control the joints: none, ("tau",), or the fields of ``Feedback``.
    rows : tuple of int
        Rows whose inertial numbers are inputs.
    forces : tuple of (field, row)
        Parameters of the joints' own forces that are not zero.
    """

    method: str
    control: tuple[str, ...]
    rows: tuple[int, ...]
    forces: tuple[tuple[str, int], ...]


def step(tape: Tape, own: Tape, subject: Subject, kind: Kind) -> list[Scalars]:
    """The positions and the rates after a step, (nq,) and (nv,).

    Parameters
    ----------
    tape : Tape
    own : Tape
        A further tape, on which forward dynamics is recorded once, to be repeated for each state that a step needs.
    subject : Subject
        With inputs on ``own``; their names become inputs on ``tape``.
    kind : Kind

    Raises
    ------
    Undetermined
        If some joint feels no inertia in any state.
    """
    q, qd = (subject.inputs(tape, group) for group in ("q", "qd"))
    return list(STEPS[kind.method](_Motion(tape, own, subject, kind), q, qd, tape.input(("dt", 0))))


class _Motion(Motion):
    """A tree on a tape; parameters as for :func:`step`."""

    def __init__(self, tape: Tape, own: Tape, subject: Subject, kind: Kind) -> None:
        self._tape, self._own, self._charts = tape, own, subject.charts
        n = subject.nv
        # The freedom of each row, and the position of each freedom.
        self._freedoms = [subject.freedom(row) for row in range(len(subject.table) - 1)]
        self._where: Any = slice(None)
        if subject.charts is not None:
            self._where = np.zeros(n, dtype=np.intp)
            self._where[self._freedoms] = subject.charts.where
        table = subject.table.copy()
        if kind.rows:
            bodies = inputs(own, "bodies", range(NUMBERS * len(kind.rows)))
            table[list(kind.rows), MASS:PARENT] = bodies.reshape(-1, NUMBERS)
        (self._acceleration,) = outputs(own, "forward_dynamics", subject._replace(table=table))
        self._forces = self._joint_forces(kind, n)
        control = {
            group: inputs(tape, group, range(subject.nq if group == "q_target" else n)) for group in kind.control
        }
        self._tau = control.get("tau")
        self._feedback = Feedback(**control) if len(control) > 1 else None

    def _joint_forces(self, kind: Kind, n: int) -> Any:
        """The joints' own forces, for traced scalars."""
        numbers = {field: np.full(n, 0.0, dtype=object) for field in JointForces._fields if field != "where"}
        for field, row in kind.forces:
            numbers[field][row] = self._tape.input((field, row))
        forces: Any = JointForces
        return forces(**numbers, where=self._where)

    def acceleration(self, q: Scalars, qd: Scalars) -> Scalars:
        """Forward dynamics with the torques and the joints' own forces."""
        forces = self._forces
        tau = forces.viscous_force(qd) + forces.smoothed_friction(qd) + forces.spring_force(q)
        if self._feedback is not None:
            tau = tau + self._feedback.torque(q, qd, self._where)
        elif self._tau is not None:
            tau = tau + self._tau
        tape, own = self._tape, self._own
        state = {"q": q, "qd": qd, "tau": tau}
        values = {
            node.a: state[node.a[0]][node.a[1]] if node.a[0] in state else tape.input(node.a)
            for node in own.nodes
            if node.op == "input"
        }
        ends = [*self._acceleration, *(x for pair in own.assumed for x in pair)]
        found = own.evaluate(ends, values, Recorded.sin, Recorded.cos)
        n = len(qd)
        tape.assumed += zip(found[n::2], found[n + 1 :: 2], strict=True)
        return np.array(found[:n], dtype=object)

    def rate(self, q: Scalars, qd: Scalars) -> Scalars:
        """The time derivative of the positions."""
        if self._charts is None:
            return qd
        rate = np.full(len(q), 0.0, dtype=object)
        charting.position_rate(self._charts.where, self._charts.groups, q, qd[self._freedoms], rate)
        return rate

    def normalized(self, q: Scalars) -> Scalars:
        """The positions with quaternions of length 1."""
        if self._charts is None:
            return q
        q = q.copy()
        charting.normalize(self._charts.groups, q)
        return q

    def moved(self, q: Scalars, v: Scalars) -> Scalars:
        """The positions reached by moving at v for unit time."""
        if self._charts is None:
            reached: Scalars = q + v
            return reached
        reached = np.full(len(q), 0.0, dtype=object)
        charting.integrate(self._charts.where, self._charts.groups, q, v[self._freedoms], reached)
        return reached
