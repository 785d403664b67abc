"""A UR5 in motion takes hold of a crate at rest: what each library does with the model and with the velocities.

python benchmarks/peers.py     needs pin, mujoco, drake, dartpy and roboticstoolbox-python; reports what is absent

The crate is fixed to the wrist. During the impact the joints get no impulse from their motors, so M' q̇' = M q̇ holds for
the arm with its crate (primed) after it and without before. There are two ways. *A new model*: the library changes the
model as its manual describes, and q̇' is what it then has for the velocities. *A weld*: the crate is a free body of the
model from the beginning, or of the world, a weld constraint is switched on, and the simulation goes on without
gravity; no model is changed, so that no M' appears. The table gives

- the part of the momentum that is gained or lost: |M' q̇' − M q̇| / |M q̇|, and for a weld |M' (q̇' − q̇ₑ)| / |M q̇|, where
  the arm with its crate has q̇ₑ after an impact that conserves the momentum and the exact motion for the simulated time;
- the error of M' relative to its largest entry;
- the time from the decision to the last result, M' or the state after the simulated time.

M, M' and the exact motion come from Pinocchio, for all libraries.
"""

import importlib.util
import tempfile
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

import screwdyn as sd

MASS, COM, SIDE = 3.0, np.array([0.0, 0.0, 0.2]), (0.3, 0.2, 0.2)
CRATE = sd.Inertia.box(MASS, size=SIDE, com=COM)
TENSOR = CRATE.tensor
WRIST = "wrist_3_link"
Q, QD = np.array([0.0, -1.2, 1.8, -0.6, 1.57, 0.0]), np.array([0.5, 0.2, -0.3, 0.4, -0.2, 0.1])
URDF = sd.robots.ur5().to_urdf()
STEP = 1e-3  # s, of simulations
REPEATS = 25


class Outcome(NamedTuple):
    """Seconds from the decision to the last result, the new joint velocities, and the new M where there is one."""

    seconds: float
    qd: np.ndarray
    M: np.ndarray | None = None


def with_screwdyn() -> Outcome:
    """One verb changes the tree in place and returns the state after the impact."""
    arm = sd.KinematicTree.from_urdf(URDF)
    state = sd.State(arm, Q, QD)
    arm.mass_matrix(Q)  # it is in use
    start = perf_counter()
    grasp = arm.grasp(state, CRATE, to=WRIST, name="crate", twist="at_rest")
    M = arm.mass_matrix(grasp.state.q)
    return Outcome(perf_counter() - start, grasp.state.qd, M)


def with_pinocchio(solved: bool) -> Outcome:
    """The model is copied, a body is added, and new data are created; two more lines solve for the velocities."""
    model = pin.buildModelFromXML(URDF)
    data, qd = model.createData(), QD
    start = perf_counter()
    copied = loaded(model)
    M = mass_matrix(copied, copied.createData(), Q)
    if solved:
        momentum = mass_matrix(model, data, Q) @ QD
        qd = np.linalg.solve(M, momentum)
    return Outcome(perf_counter() - start, qd, M)


def dart_arm() -> Any:
    """The arm in DART, in motion. A link without ``inertial`` would weigh 1 kg."""
    import dartpy as dart

    arm = dart.utils.DartLoader().parseSkeletonString(URDF, dart.common.Uri(""))
    massive = {link.get("name") for link in ET.fromstring(URDF).iterfind("link") if link.find("inertial") is not None}
    for k in range(arm.getNumBodyNodes()):
        body = arm.getBodyNode(k)
        if body.getName() not in massive:
            body.setInertia(dart.dynamics.Inertia(1e-12, np.zeros(3), 1e-12 * np.eye(3)))
    arm.setPositions(Q)
    arm.setVelocities(QD)
    return arm


def with_dart_move_to() -> Outcome:
    """The crate moves to another parent, with the joint that it stands on, in place."""
    import dartpy as dart

    arm, ground = dart_arm(), dart.dynamics.Skeleton("ground")
    joint, crate = ground.createWeldJointAndBodyNodePair()
    crate.setInertia(dart.dynamics.Inertia(MASS, COM, TENSOR))
    wrist = arm.getBodyNode(WRIST)
    joint.setTransformFromParentBodyNode(wrist.getWorldTransform())
    arm.getMassMatrix()
    start = perf_counter()
    crate.moveTo(wrist)
    joint.setTransformFromParentBodyNode(dart.math.Isometry3())
    M = arm.getMassMatrix()
    return Outcome(perf_counter() - start, arm.getVelocities(), M)


def with_dart_weld(duration: float) -> Outcome:
    """A weld between two bodies of the world is added to its constraints, without having been declared."""
    import dartpy as dart

    arm, crates = dart_arm(), dart.dynamics.Skeleton("crates")
    joint, crate = crates.createFreeJointAndBodyNodePair()
    crate.setInertia(dart.dynamics.Inertia(MASS, COM, TENSOR))
    wrist = arm.getBodyNode(WRIST)
    joint.setTransform(wrist.getWorldTransform())
    world = dart.simulation.World()
    world.addSkeleton(arm)
    world.addSkeleton(crates)
    world.setGravity(np.zeros(3))
    world.setTimeStep(STEP)
    start = perf_counter()
    world.getConstraintSolver().addConstraint(dart.constraint.WeldJointConstraint(wrist, crate))
    for _ in range(round(duration / STEP)):
        world.step()
    return Outcome(perf_counter() - start, arm.getVelocities())


def drake_crate() -> Any:
    """The inertia of the crate in Drake."""
    from pydrake.multibody.tree import RotationalInertia, SpatialInertia

    return SpatialInertia.MakeFromCentralInertia(MASS, COM, RotationalInertia(*np.diag(TENSOR)))


def with_drake_plant() -> Outcome:
    """A finalized plant takes no body, so that a new plant is built and finalized."""
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant

    inertia = drake_crate()
    finalized = MultibodyPlant(0.0)
    Parser(finalized).AddModelsFromString(URDF, "urdf")
    finalized.Finalize()
    try:
        finalized.AddRigidBody("crate", inertia)
    except RuntimeError:
        pass
    else:
        raise AssertionError("this plant takes bodies after Finalize: change this benchmark")
    start = perf_counter()
    plant = MultibodyPlant(0.0)
    (robot,) = Parser(plant).AddModelsFromString(URDF, "urdf")
    crate = plant.AddRigidBody("crate", robot, inertia)
    plant.WeldFrames(plant.GetFrameByName(WRIST), crate.body_frame())
    plant.Finalize()
    context = plant.CreateDefaultContext()
    plant.SetPositions(context, Q)
    plant.SetVelocities(context, QD)
    M = plant.CalcMassMatrixViaInverseDynamics(context)
    return Outcome(perf_counter() - start, plant.GetVelocities(context), M)


def with_drake_weld(duration: float) -> Outcome:
    """A weld that was declared before ``Finalize`` is switched on."""
    from pydrake.math import RigidTransform
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import DiscreteContactApproximation, MultibodyPlant
    from pydrake.systems.analysis import Simulator

    plant = MultibodyPlant(STEP)
    plant.set_discrete_contact_approximation(DiscreteContactApproximation.kSap)
    (arm,) = Parser(plant).AddModelsFromString(URDF, "urdf")
    crate = plant.AddRigidBody("crate", plant.AddModelInstance("crates"), drake_crate())
    wrist, here = plant.GetBodyByName(WRIST), RigidTransform()
    weld = plant.AddWeldConstraint(wrist, here, crate, here)
    plant.mutable_gravity_field().set_gravity_vector(np.zeros(3))
    plant.Finalize()
    simulator = Simulator(plant)
    context = simulator.get_mutable_context()
    plant.SetPositions(context, arm, Q)
    plant.SetVelocities(context, arm, QD)
    plant.SetFreeBodyPose(context, crate, plant.EvalBodyPoseInWorld(context, wrist))
    plant.SetConstraintActiveStatus(context, weld, False)
    simulator.Initialize()
    start = perf_counter()
    plant.SetConstraintActiveStatus(context, weld, True)
    simulator.AdvanceTo(duration)
    return Outcome(perf_counter() - start, plant.GetVelocities(context, arm))


def with_mujoco_recompile() -> Outcome:
    """The specification is changed and compiled again; the state is kept by ``recompile``."""
    import mujoco

    spec = mujoco.MjSpec.from_string(URDF)
    spec.compiler.balanceinertia = False
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = Q, QD
    start = perf_counter()
    body = spec.body(WRIST).add_body(name="crate", mass=MASS, ipos=COM, inertia=np.diag(TENSOR), explicitinertial=True)
    assert body.name == "crate"
    model, data = spec.recompile(model, data)
    mujoco.mj_forward(model, data)
    M = np.empty((model.nv, model.nv))
    try:
        mujoco.mj_fullM(model, data, M)
    except TypeError:  # before MuJoCo 4
        mujoco.mj_fullM(model, M, data.qM)
    return Outcome(perf_counter() - start, data.qvel.copy(), M)


def with_mujoco_weld(duration: float, time_constant: float) -> Outcome:
    """A weld that was declared in the specification is switched on; it is a stiff spring with a damper."""
    import mujoco

    spec = mujoco.MjSpec.from_string(URDF)
    spec.compiler.balanceinertia = False
    spec.option.gravity, spec.option.timestep = np.zeros(3), STEP
    crate = spec.worldbody.add_body(name="crate", mass=MASS, ipos=COM, inertia=np.diag(TENSOR), explicitinertial=True)
    crate.add_freejoint()
    ends = {"name1": WRIST, "name2": "crate", "objtype": mujoco.mjtObj.mjOBJ_BODY}
    weld = spec.add_equality(type=mujoco.mjtEq.mjEQ_WELD, **ends, active=False)
    weld.data[:] = 0  # anchor, relative position
    weld.data[[6, 10]] = 1  # real part of the relative quaternion, weight of the rotation
    weld.solref = [time_constant, 1]
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos[:6], data.qvel[:6] = Q, QD
    mujoco.mj_kinematics(model, data)
    data.qpos[6:] = [*data.body(WRIST).xpos, *data.body(WRIST).xquat]
    start = perf_counter()
    data.eq_active[0] = 1
    mujoco.mj_step(model, data, round(duration / STEP))
    return Outcome(perf_counter() - start, data.qvel[:6].copy())


def with_robotics_toolbox() -> Outcome:
    """``payload`` adds a point mass to the last link."""
    import roboticstoolbox as rtb

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ur5.urdf"
        file.write_text(URDF)
        arm = rtb.Robot.URDF(str(file))
    start = perf_counter()
    arm.payload(MASS, COM)
    M = np.asarray(arm.inertia(Q))
    return Outcome(perf_counter() - start, QD, M)


# Name, module, simulated milliseconds, and what is measured.
WAYS: list[tuple[str, str, int, Callable[..., Outcome]]] = [
    ("screwdyn, grasp", "screwdyn", 0, with_screwdyn),
    ("Pinocchio, copied model and a solve", "pinocchio", 0, partial(with_pinocchio, True)),
    ("Pinocchio, copied model", "pinocchio", 0, partial(with_pinocchio, False)),
    ("MuJoCo, recompile", "mujoco", 0, with_mujoco_recompile),
    ("Drake, a new plant", "pydrake", 0, with_drake_plant),
    ("DART, moveTo", "dartpy", 0, with_dart_move_to),
    ("Robotics Toolbox, payload", "roboticstoolbox", 0, with_robotics_toolbox),
    ("Drake, weld", "pydrake", 2, with_drake_weld),
    ("DART, weld", "dartpy", 2, with_dart_weld),
    *(
        (f"MuJoCo, weld, solref {time_constant}", "mujoco", ms, partial(with_mujoco_weld, time_constant=time_constant))
        for time_constant in (0.02, 0.002)
        for ms in (2, 20)
    ),
]


def main() -> None:
    """Print one line for each way."""
    model = pin.buildModelFromXML(URDF)
    momentum = mass_matrix(model, model.createData(), Q) @ QD
    arm = loaded(model)
    exact = mass_matrix(arm, arm.createData(), Q)
    print(f"{'':38s}{'simulated, ms':>14s}{'momentum lost':>15s}{'error of M':>12s}{'ms':>9s}")
    for name, module, ms, run in WAYS:
        if importlib.util.find_spec(module) is None:
            print(f"{name:38s}  not installed, not measured")
            continue
        outcomes = [run(ms / 1e3) if ms else run() for _ in range(REPEATS)]
        qd, M = outcomes[-1].qd, outcomes[-1].M
        lost = exact @ qd - momentum
        if ms:
            q, conserved = motion(arm, np.linalg.solve(exact, momentum), ms / 1e3)
            lost = mass_matrix(arm, arm.createData(), q) @ (qd - conserved)
        error = "" if M is None else f"{np.abs(M - exact).max() / np.abs(exact).max():.1e}"
        seconds = median(outcome.seconds for outcome in outcomes)
        ratio = np.linalg.norm(lost) / np.linalg.norm(momentum)
        print(f"{name:38s}{ms:14d}{ratio:15.1e}{error:>12s}{1e3 * seconds:9.3f}", flush=True)


def loaded(model: pin.Model) -> pin.Model:
    """A copy of the arm with the crate on its wrist."""
    copied = model.copy()
    joint = copied.frames[copied.getFrameId(WRIST)].parentJoint
    copied.appendBodyToJoint(joint, pin.Inertia(MASS, COM, TENSOR), pin.SE3.Identity())
    return copied


def mass_matrix(model: pin.Model, data: pin.Data, q: np.ndarray) -> np.ndarray:
    """The whole matrix, also where Pinocchio computes its upper triangle."""
    M = pin.crba(model, data, q)
    return np.triu(M) + np.triu(M, 1).T


def motion(model: pin.Model, qd: np.ndarray, duration: float) -> tuple[np.ndarray, np.ndarray]:
    """State after the motion from Q without gravity and torques, by 200 steps of Runge and Kutta."""
    weightless = model.copy()
    weightless.gravity = pin.Motion.Zero()
    data, n, h = weightless.createData(), model.nv, duration / 200

    def rate(x: np.ndarray) -> np.ndarray:
        return np.concatenate([x[n:], pin.aba(weightless, data, x[:n], x[n:], np.zeros(n))])

    x = np.concatenate([Q, qd])
    for _ in range(200):
        a = rate(x)
        b = rate(x + h / 2 * a)
        c = rate(x + h / 2 * b)
        x = x + h / 6 * (a + 2 * b + 2 * c + rate(x + h * c))
    return x[:n], x[n:]


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # those of the other libraries' own files
    main()
