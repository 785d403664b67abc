"""Time of changes of a moving robot, against a copy of a Pinocchio model with a payload and one momentum balance.

python benchmarks/grasping.py
"""

import numpy as np
import pinocchio as pin
from clock import Timed, clock, machine, seconds_per_call, side_by_side
from robots import Pair, balls

import screwdyn as sd

LOAD, AT = sd.Inertia.box(3.0, (0.1, 0.2, 0.3), com=(0.02, 0.01, 0.1)), np.array([0.0, 0.0, 0.1])


class Peer:
    """A grasp of a payload at rest with Pinocchio: copy, append, two mass matrices, one solve.

    Attributes
    ----------
    model : pinocchio.Model
    q, v : arrays
        Just before.
    ball : bool
        Whether the payload hangs on a passive ball joint; else it is held rigidly.
    """

    def __init__(self, model: pin.Model, q: np.ndarray, v: np.ndarray, ball: bool) -> None:
        self.model, self.q, self.v, self.ball = model, q, v, ball
        self.data, self.last = model.createData(), model.njoints - 1
        self.body = pin.Inertia(LOAD.mass, LOAD.com, LOAD.tensor)

    def rates(self) -> np.ndarray:
        """The rates just after."""
        model, place = self.model.copy(), pin.SE3(np.eye(3), AT)
        q, n = self.q, self.model.nv
        if self.ball:
            joint = model.addJoint(self.last, pin.JointModelSpherical(), place, "load")
            model.appendBodyToJoint(joint, self.body, pin.SE3.Identity())
            q = np.append(q, [0.0, 0.0, 0.0, 1.0])
        else:
            model.appendBodyToJoint(self.last, self.body, place)
        before, after = pin.crba(self.model, self.data, self.q), pin.crba(model, model.createData(), q)
        momentum = np.zeros(model.nv)
        momentum[:n] = (np.triu(before) + np.triu(before, 1).T) @ self.v
        return np.linalg.solve(np.triu(after) + np.triu(after, 1).T, momentum)


def of(call: object) -> Timed:
    """A timer of a call."""
    return clock("call()", {"call": call})


def changes(tree: sd.KinematicTree, state: sd.State, tip: str) -> dict[str, object]:
    """A call for each change, on a copy of the tree, which takes 0.2 us."""
    ball, plane, middle = sd.spherical(passive=True), sd.planar("z"), tree.joints[len(tree.joints) // 2]
    held = tree.copy()
    after = held.grasp(state, LOAD, to=tip, at=AT, twist="at_rest", name="load").state
    hung = {"to": tip, "at": AT, "twist": "at_rest", "name": "load"}
    return {
        "grasp, rigid": lambda: tree.copy().grasp(state, LOAD, **hung),
        "grasp, ball": lambda: tree.copy().grasp(state, LOAD, joint=ball, **hung),
        "release": lambda: held.copy().release(after, "load"),
        "lock": lambda: tree.copy().lock(middle, state),
        "close": lambda: tree.copy().close(tip, to=tree.base, joint=plane, state=state),
    }


if __name__ == "__main__":
    print(f"{machine()}, pinocchio {pin.__version__}; microseconds, medians\n")
    print(f"{'':16s}{'screwdyn':>11s}{'pinocchio':>11s}{'ratio':>8s}")
    arm, theirs = Pair("UR5"), {"UR5": None, "30 freedoms": balls(10)}
    for name, made in theirs.items():
        rng = np.random.default_rng(0)
        tree, model = (arm.tree, arm.model) if made is None else made
        q, v = tree.integrate(tree.neutral(), rng.normal(size=tree.nv)), rng.normal(size=tree.nv)
        tip = tree.links[-1] if made else "ee_link"
        if not made:
            tip = next(link for link in reversed(tree.links) if tree.parent(link) and tree.model.path(link))
        state = sd.State(tree, q, v)
        tree.jacobian(tip, q, "body")  # as in a controller, the robot has been in use
        print(name)
        for what, call in changes(tree, state, tip).items():
            if what.startswith("grasp"):
                peer = Peer(model, q, v, ball=what.endswith("ball"))
                a, b, ratio = side_by_side(of(call), of(peer.rates))
                print(f"  {what:14s}{1e6 * a:11.1f}{1e6 * b:11.1f}{ratio:8.2f}", flush=True)
            else:
                print(f"  {what:14s}{1e6 * seconds_per_call(of(call)):11.1f}", flush=True)
