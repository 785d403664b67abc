"""Many runs of fixed step side by side against MuJoCo's mj_step, on one thread each: a UR5 without contacts.

python benchmarks/rollouts.py
"""

import mujoco
import numpy as np
from clock import clock, machine, side_by_side

import screwdyn as sd

RUNS, STEPS, DT = 10_000, 100, 1e-3
INTEGRATORS = {"semi_implicit_euler": "Euler", "rk4": "RK4"}
# Steps per second as a multiple of MuJoCo's.
TARGET = 50


def numbers(values: np.ndarray) -> str:
    return " ".join(repr(float(x)) for x in np.ravel(values))


def bodies(tree: sd.KinematicTree, name: str) -> str:
    """The bodies that a link carries, and its own inertia."""
    inertia, text = tree.link(name).inertia, ""
    if inertia is not None:
        six = inertia.tensor[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        text = f'<inertial pos="{numbers(inertia.com)}" mass="{inertia.mass}" fullinertia="{numbers(six)}"/>'
    for child in tree.graph.successors(name):
        edge = tree.graph.edges[name, child]
        turn = np.empty(4)
        mujoco.mju_mat2Quat(turn, np.ravel(edge["home"][:3, :3]))
        text += f'<body name="{child}" pos="{numbers(edge["home"][:3, 3])}" quat="{numbers(turn)}">'
        if edge["joint"].screw is not None:
            axis, point = sd.screw.axis(edge["joint"].screw)
            text += f'<joint axis="{numbers(axis)}" pos="{numbers(point)}"/>'
        text += bodies(tree, child) + "</body>"
    return text


def model(tree: sd.KinematicTree, integrator: str) -> mujoco.MjModel:
    """The same arm in MuJoCo, with everything switched off that an arm without contacts does not need."""
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><compiler angle="radian" balanceinertia="false"/>
        <option gravity="{numbers(tree.gravity)}" timestep="{DT}" integrator="{integrator}">
        <flag contact="disable" constraint="disable" eulerdamp="disable"/></option>
        <worldbody>{bodies(tree, tree.base)}</worldbody></mujoco>"""
    )


def compare(method: str) -> None:
    """The table of one integrator."""
    rng = np.random.default_rng(0)
    tree = sd.robots.ur5()
    tree.attach(sd.Link("crate", sd.Inertia.box(2.0, (0.2, 0.2, 0.2))), to="tool0", at=(0, 0, 0.1))
    theirs = model(tree, INTEGRATORS[method])
    data, fast = mujoco.MjData(theirs), tree.compile(threads=1)
    q, qd = rng.normal(size=(2, RUNS, tree.nv))
    gains = {"kp": rng.uniform(50, 100, (RUNS, 6)), "kd": rng.uniform(1, 5, (RUNS, 6))}
    found = fast.rollout(q, qd, STEPS, DT, method=method)
    for k in range(20):
        data.qpos[:], data.qvel[:] = q[k], qd[k]
        mujoco.mj_step(theirs, data, STEPS)
        for ours, other in ((found.q[k], data.qpos), (found.qd[k], data.qvel)):
            assert np.abs(ours - other).max() <= 1e-9 * (1 + np.abs(other).max())
    scope = {
        "fast": fast,
        "given": (q, qd, STEPS, DT),
        "options": {"method": method, "out": (np.empty_like(q), np.empty_like(qd))},
        "constant": rng.normal(size=(RUNS, 6)),
        "varying": rng.normal(size=(STEPS, RUNS, 6)),
        "feedback": sd.Feedback(**gains),
        "function": lambda t, q, qd: -qd,
        "crates": {"crate": np.outer(rng.uniform(0.5, 3, RUNS), sd.Inertia.box(1.0, (0.2, 0.2, 0.2)).parameters)},
        "samples": {"method": method, "every": 1},
    }
    calls = {
        "no torque": "fast.rollout(*given, **options)",
        "a torque of each run": "fast.rollout(*given, constant, **options)",
        "a torque of each run and step": "fast.rollout(*given, varying, **options)",
        "feedback, gains of each run": "fast.rollout(*given, feedback, **options)",
        "a Python function": "fast.rollout(*given, function, **options)",
        "a payload of each run": "fast.rollout(*given, payload=crates, **options)",
        "no torque, all states recorded": "fast.rollout(*given, **samples)",
    }
    state = {"mujoco": mujoco, "model": theirs, "data": data, "q": q[0], "qd": qd[0]}
    one = clock(f"data.qpos[:] = q; data.qvel[:] = qd; mujoco.mj_step(model, data, {STEPS})", state)
    print(f"{method}\n  {'ns per step':32s}{'screwdyn':>10s}{'mujoco':>10s}{'ratio':>8s}")
    for what, call in calls.items():
        a, b, ratio = side_by_side(clock(call, scope), one, 20)
        times = 1e9 * a / (RUNS * STEPS), 1e9 * b / STEPS
        faster = RUNS / ratio
        print(
            f"  {what:32s}{times[0]:10.1f}{times[1]:10.0f}{faster:8.0f}{'' if faster >= TARGET else '  not met'}",
            flush=True,
        )


def compare_changes(joint: sd.Joint | None) -> None:
    """A table of runs that grasp and release a payload, which MuJoCo's model has all the time."""
    rng, crate = np.random.default_rng(0), sd.Inertia.box(2.0, (0.2, 0.2, 0.2), com=(0.0, 0.0, 0.3))
    tree = sd.robots.ur5()
    grasp = sd.Grasp(crate, to="tool0", joint=joint, at=(0, 0, 0.1), name="crate", twist="at_rest")
    release, loaded = sd.Release("crate"), tree.copy()
    grasp.restructure(loaded)
    theirs, fast, carrying = model(loaded, "Euler"), tree.compile(threads=1), loaded.compile(threads=1)
    data = mujoco.MjData(theirs)
    q, qd = rng.normal(size=(2, RUNS, tree.nv))
    grasped, released = rng.integers(0, 40, RUNS), rng.integers(60, STEPS, RUNS)
    found = fast.rollout(q, qd, STEPS, DT, events=[(grasp, grasped), (release, released)])
    worst = 0.0
    for k in range(RUNS):  # each run alone, with a tree that is changed
        one, state, before = tree.copy(), sd.State(tree, q[k], qd[k]), 0
        for change, step in ((grasp, grasped[k]), (release, released[k]), (None, STEPS)):
            if step > before:
                form = carrying if "crate" in one.links else fast
                end = form.rollout(state.q, state.qd, int(step - before), DT)
                state, before = sd.State(one, end.q, end.qd), step
            state = change.happen(one, state).state if change else state
        ours = np.concatenate([found.q[k, :6], found.qd[k, :6]])
        expected = np.concatenate([state.q, state.qd])
        worst = max(worst, np.abs(ours - expected).max() / (1 + np.abs(expected).max()))
    assert worst < 1e-10
    scope = {"fast": fast, "given": (q, qd, STEPS, DT)}
    scope |= {"common": [(grasp, 30), (release, 70)], "own": [(grasp, grasped), (release, released)]}
    calls = {
        "no changes": "fast.rollout(*given)",
        "a grasp and a release": "fast.rollout(*given, events=common)",
        "at steps of each run": "fast.rollout(*given, events=own)",
    }
    one = clock(f"mujoco.mj_step(model, data, {STEPS})", {"mujoco": mujoco, "model": theirs, "data": data})
    print(f"payload {'welded' if joint is None else 'on a passive hook'}: {worst:.1e} from {RUNS} runs alone")
    print(f"  {'':32s}{'ns per step':>12s}{'mujoco':>10s}{'ratio':>8s}{'10^6 steps/s':>14s}")
    for what, call in calls.items():
        a, b, ratio = side_by_side(clock(call, scope), one, 10)
        times = 1e9 * a / (RUNS * STEPS), 1e9 * b / STEPS
        print(f"  {what:32s}{times[0]:12.1f}{times[1]:10.0f}{RUNS / ratio:8.0f}{1e3 / times[0]:14.1f}", flush=True)


if __name__ == "__main__":
    print(f"{machine()}, mujoco {mujoco.__version__}; {RUNS} runs of {STEPS} steps, target: {TARGET}\n")
    for name in INTEGRATORS:
        compare(name)
    for joint in (None, sd.revolute("x", passive=True)):
        compare_changes(joint)
