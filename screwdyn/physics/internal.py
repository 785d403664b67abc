"""Quantities that are no methods: parts from which others follow, and what replaces others in trees with loops."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from screwdyn.physics.catalogue import Coupled, Dimension, Places, Quantity, Result
from screwdyn.physics.quantities import CATALOGUE, CONSTRAINTS, CONSTRAINTS_DOT, QDD, TAU
from screwdyn.physics.recursions import constrained, contributions, joint_space, loops

__all__ = ["INTERNAL", "SOLVING", "WITH_LOOPS"]


def _internal(
    name: str,
    arguments: tuple[str, ...],
    recursion: Callable[..., int | None],
    *results: Result,
    scratch: tuple[tuple[Dimension, ...], ...] = (),
    places: Places | None = None,
    coupled: Coupled | None = None,
) -> Quantity:
    """A quantity that is no method."""
    nothing = inspect.Signature()
    return Quantity(name, arguments, (), (), results, scratch, recursion, False, None, places, coupled, nothing, "")


_GRAM_SCHMIDT = (("L", "L"), ("L", 2))
_INTERNAL = (
    # Joint forces of wrenches on the rows, (…, nv, 6), each in its row's frame; used by ``wrench_torque`` of trees.
    _internal("wrench_torque", ("q", "wrenches"), joint_space.wrench_torque, TAU),
    # What a link has at one state, from what its parent has; see ``forms.point``.
    _internal(
        "link_step",
        ("q", "qd", "onto", "frame_above", "columns_above"),
        contributions.link_step,
        Result("frame", (1, 18), ""),
        Result("columns", ("k", 12), ""),
        *CATALOGUE["contribution"].results,
        places="one",
    ),
    _internal("constraints", ("q", "qd"), loops.constraint_jacobian_dot, CONSTRAINTS, CONSTRAINTS_DOT, places="loops"),
    _internal(
        "constrained_dynamics",
        ("q", "qd", "tau"),
        constrained.forward_dynamics,
        QDD,
        scratch=(("v", "v"), ("v",), ("v",), ("L", "v"), ("L", "v"), *_GRAM_SCHMIDT),
        places="loops",
        coupled=Coupled(
            ("mass_matrix", "bias_force", "constraints"), ("qd", "tau"), constrained.accelerations, _GRAM_SCHMIDT
        ),
    ),
)
INTERNAL = {entry.name: entry for entry in _INTERNAL}

# What computes a quantity of a tree with loops, if the forces in these change it; None if it is not available there.
WITH_LOOPS = {"forward_dynamics": "constrained_dynamics", "inverse_dynamics": None, "operational_inertia": None}

# What needs the inverse of M.
SOLVING = ("forward_dynamics", "operational_inertia")
