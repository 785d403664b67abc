"""What type checkers know of quantities; checked by mypy, not run."""

from typing import assert_type

import numpy as np

import screwdyn as sd
from screwdyn.core.types import Array
from screwdyn.forms.compiled import Rollout

tree = sd.robots.pelican()
fast = tree.compile()
q, M = np.zeros(2), np.zeros((2, 2))

assert_type(tree.mass_matrix(q), Array)
assert_type([tree.jacobian("link2", q, frame=name) for name in ("local", "base")], list[Array])
assert_type(fast.mass_matrix(q), Array)
assert_type(fast.mass_matrix(q, out=M), Array)
assert_type(fast.dynamics(q, q, out=(M, M, q)), tuple[Array, Array, Array])
assert_type(fast.jacobian("link2", q, "body", out=np.zeros((6, 2))), Array)
assert_type(fast.contribution("link2", q, q, out=(M, M, M, M, q)), sd.Contribution)
assert_type(fast.subtree_contribution("link2", q, q), sd.Contribution)
assert_type(fast.rollout(q, q, 2, 1e-3, sd.Feedback(1.0, 0.1), out=(q, q)), Rollout)
assert_type(fast.rollout(q, q, 2, 1e-3, events=[sd.Lock("elbow", time=0.0), (sd.Release("link2"), [1])]), Rollout)

# Each of these is an error: mypy reports an ignored error that is none.
tree.mass_matrix(q, out=M)  # type: ignore[call-arg]
tree.jacobian("link2", q, 1)  # type: ignore[arg-type]
fast.mass_matrix()  # type: ignore[call-overload]
fast.mass_matrix(q, q)  # type: ignore[call-overload]

state = sd.State(tree)
A, B = tree.linearize(q)
assert_type((A, B), tuple[Array, Array])
assert_type(tree.inverse_kinematics("link2", np.eye(4)), Array)
assert_type(sd.identify(tree, "link2", q, q, q, q).inertia, sd.Inertia)
assert_type(tree.release(state, "link2"), sd.ReleaseEvent)
assert_type(tree.lock("elbow", state), sd.LockEvent)
assert_type(tree.replace_joint("link2", sd.fixed(), state), sd.ImpactEvent)
assert_type(tree.move("link2", "base", state=state), sd.ImpactEvent)
assert_type(tree.set_inertia("link2", None, state), sd.Change)
tree.grasp(state, sd.Inertia.point(1.0))  # type: ignore[call-arg]
tree.lock("elbow", state, at=0.1)  # type: ignore[call-overload]
tree.move("link2", "base", start=0.1)  # type: ignore[call-overload]
