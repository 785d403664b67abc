"""Forward dynamics of two UR5 that hold one bar, against Pinocchio's two solvers with loops, called from Python.

python benchmarks/loops.py

``constraintDynamics`` is the proximal solver over the sparse factorisation of the whole system, ``lcaba`` the
articulated bodies with loops. Both iterate to 1e-10. The regularisation of ``lcaba`` is the value that its manual
calls typical; with smaller values its accelerations agree less with the others.
"""

import numpy as np
import pinocchio as pin
from clock import clock, machine, same, side_by_side
from robots import read, robot_file

import screwdyn as sd

FEET = {"left/": (0.0, 0.4, 0.0), "right/": (0.0, -0.4, 0.0)}
BAR, TARGET = sd.Inertia.box(3.0, (0.6, 0.05, 0.05), com=(0.3, 0, 0)), 1.0
# Solver, the call that prepares its data, and the regularisation of the constraints.
SOLVERS = (
    ("constraintDynamics", "pin.initConstraintDynamics(model, data, contacts, found)", 1e-9),
    ("lcaba", "pin.computeJointMinimalOrdering(model, data, contacts)", 1e-6),
)


def tree_at_rest() -> tuple[sd.KinematicTree, np.ndarray]:
    """The arms with the bar, and a configuration in which they hold it."""
    tree = sd.KinematicTree()
    for side, at in FEET.items():
        tree.attach(read("UR5"), to="base", at=at, name="foot", prefix=side)
    tree.attach(BAR, to="left/tool0", name="bar")
    q = np.random.default_rng(7).uniform(-1, 1, 12)
    right, bar = (tree.forward_kinematics(link, q) for link in ("right/tool0", "bar"))
    tree.close("bar", to="right/tool0", at=np.linalg.inv(right) @ bar)
    return tree, q


def peer(at: np.ndarray) -> tuple[pin.Model, pin.RigidConstraintModel]:
    """The arms in Pinocchio with the bar, whose pose in the right hand is given."""
    model = pin.Model()
    for side, foot in FEET.items():
        arm = pin.buildModelFromUrdf(str(robot_file("UR5")))
        for k in range(1, arm.njoints):
            arm.names[k] = side + arm.names[k]
        for frame in arm.frames:
            frame.name = side + frame.name
        model = pin.appendModel(model, arm, 0, pin.SE3(np.eye(3), np.array(foot)))
    left, right = (model.frames[model.getFrameId(f"{side}tool0")] for side in FEET)
    model.appendBodyToJoint(left.parentJoint, pin.Inertia(BAR.mass, BAR.com, BAR.tensor), left.placement)
    ends = left.parentJoint, left.placement, right.parentJoint, right.placement * pin.SE3(at)
    return model, pin.RigidConstraintModel(pin.ContactType.CONTACT_6D, model, *ends, pin.ReferenceFrame.LOCAL)


def compare() -> None:
    """Time both for one state, and check that the accelerations agree."""
    tree, q = tree_at_rest()
    rng = np.random.default_rng(0)
    q, v = tree.project(q, rng.uniform(-1, 1, 12))
    tau = rng.uniform(-20, 20, 12)
    model, contact = peer(tree.loop(tree.loops[0]).home)
    order = [tree.coordinates.index(name) for name in list(model.names)[1:]]
    contacts, found = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    contacts.append(contact)
    found.append(contact.createData())
    scope = {"pin": pin, "tree": tree, "model": model, "contacts": contacts, "found": found}
    scope |= {"q": q, "v": v, "tau": tau, "p": q[order], "u": v[order], "t": tau[order]}
    ours = "tree.forward_dynamics(q, v, tau)"
    for solver, prepare, mu in SOLVERS:
        scope["data"], scope["settings"] = model.createData(), pin.ProximalSettings(1e-10, 1e-10, mu, 20)
        eval(prepare, scope)
        theirs = f"pin.{solver}(model, data, p, u, t, contacts, found, settings)"
        same(eval(ours, scope)[order], eval(theirs, scope))
        a, b, ratio = side_by_side(clock(ours, scope), clock(theirs, scope))
        verdict = "met" if ratio <= TARGET else "not met"
        times = f"screwdyn {1e6 * a:.2f}, pinocchio {1e6 * b:.2f}, ratio {ratio:.2f}"
        print(f"{solver:20s}{times}; target {TARGET}, {verdict}", flush=True)


if __name__ == "__main__":
    print(f"{machine()}, pinocchio {pin.__version__}; microseconds, medians\n")
    compare()
