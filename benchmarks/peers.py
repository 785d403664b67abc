"""A UR5 in motion takes hold of a crate at rest: what each library does with the model and with the velocities.

python benchmarks/peers.py     needs pin, mujoco, drake and roboticstoolbox-python; what is absent is reported as absent

The crate is fixed to the wrist. During the impact the joints get no impulse from their motors, so M' q̇' = M q̇ holds for
the arm with its crate (primed) after it and without before. Each library changes its model in the way its manual
describes. The table gives the part of M q̇ that is gained or lost, |M' q̇' − M q̇| / |M q̇|, and the time from the decision
to the new M. M and M' of the check come from Pinocchio, for all libraries.
"""

import importlib.util
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import pinocchio as pin

import screwdyn as sd

MASS, COM, SIDE = 3.0, np.array([0.0, 0.0, 0.2]), (0.3, 0.2, 0.2)
CRATE = sd.Inertia.box(MASS, size=SIDE, com=COM)
TENSOR = CRATE.tensor
WRIST = "wrist_3_link"
Q, QD = np.array([0.0, -1.2, 1.8, -0.6, 1.57, 0.0]), np.array([0.5, 0.2, -0.3, 0.4, -0.2, 0.1])
URDF = sd.robots.ur5().to_urdf()
REPEATS = 25

# Returns the seconds from the decision to the new M, the new M, and the new joint velocities.
Outcome = tuple[float, np.ndarray, np.ndarray]


def with_screwdyn() -> Outcome:
    """One verb changes the tree in place and returns the state after the impact."""
    arm = sd.KinematicTree.from_urdf(URDF)
    state = sd.State(arm, Q, QD)
    arm.mass_matrix(Q)  # it is in use
    start = perf_counter()
    grasp = arm.grasp(state, CRATE, to=WRIST, name="crate", twist="at_rest")
    M = arm.mass_matrix(grasp.state.q)
    return perf_counter() - start, M, grasp.state.qd


def with_pinocchio() -> Outcome:
    """The model is copied, a body is added, and new data are created."""
    model = pin.buildModelFromXML(URDF)
    start = perf_counter()
    copied = model.copy()
    joint = copied.frames[copied.getFrameId(WRIST)].parentJoint
    copied.appendBodyToJoint(joint, pin.Inertia(MASS, COM, TENSOR), pin.SE3.Identity())
    M = pin.crba(copied, copied.createData(), Q)
    seconds = perf_counter() - start
    return seconds, np.triu(M) + np.triu(M, 1).T, QD


def with_mujoco() -> Outcome:
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
    seconds = perf_counter() - start
    return seconds, M, data.qvel.copy()


def with_drake() -> Outcome:
    """A finalized plant takes no body, so that a new plant is built and finalized."""
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant
    from pydrake.multibody.tree import RotationalInertia, SpatialInertia

    inertia = SpatialInertia.MakeFromCentralInertia(MASS, COM, RotationalInertia(*np.diag(TENSOR)))
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
    return perf_counter() - start, M, plant.GetVelocities(context)


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
    return perf_counter() - start, M, QD


LIBRARIES: dict[str, tuple[str, Callable[[], Outcome]]] = {
    "screwdyn": ("screwdyn", with_screwdyn),
    "Pinocchio": ("pinocchio", with_pinocchio),
    "MuJoCo": ("mujoco", with_mujoco),
    "Drake": ("pydrake", with_drake),
    "Robotics Toolbox": ("roboticstoolbox", with_robotics_toolbox),
}


def main() -> None:
    """Print one line for each library."""
    before = pin.buildModelFromXML(URDF)
    momentum = _mass_matrix(before) @ QD
    after = before.copy()
    joint = after.frames[after.getFrameId(WRIST)].parentJoint
    after.appendBodyToJoint(joint, pin.Inertia(MASS, COM, TENSOR), pin.SE3.Identity())
    exact = _mass_matrix(after)
    print(f"{'':18s}{'momentum lost':>15s}{'error of M':>13s}{'ms to new M':>13s}")
    for name, (module, run) in LIBRARIES.items():
        if importlib.util.find_spec(module) is None:
            print(f"{name:18s}  not installed, not measured")
            continue
        outcomes = [run() for _ in range(REPEATS)]
        _, M, qd = outcomes[-1]
        lost = np.linalg.norm(exact @ qd - momentum) / np.linalg.norm(momentum)
        error = np.abs(M - exact).max() / np.abs(exact).max()
        print(f"{name:18s}{lost:15.1e}{error:13.1e}{1e3 * median(o[0] for o in outcomes):13.3f}", flush=True)


def _mass_matrix(model: pin.Model) -> np.ndarray:
    M = pin.crba(model, model.createData(), Q)
    return np.triu(M) + np.triu(M, 1).T


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # those of the other libraries' own files
    main()
