"""Rollouts of steps of fixed length with contacts against MuJoCo's rollout, on two threads each.

A gripper pushes a box along the floor, lifts, carries and sets it down, at 12 points; boxes tumble, slide and rest.

python benchmarks/rollouts_with_contacts.py
"""

import mujoco
import mujoco.rollout
import numpy as np
from clock import clock, machine, side_by_side

import screwdyn as sd

DT, RUNS, THREADS = 2e-3, 256, 2
SIZE, MASS, FRICTION = (0.2, 0.2, 0.1), 1.0, 0.5
CORNERS = [(x, y, -0.05) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]
PADS, ROUND, GRIP = [(0, y, z) for y in (-0.04, 0.04) for z in (-0.02, 0.02)], 0.01, 0.8
FINGERS = {"left": -0.25, "right": 0.25}
KP, KD = [4000.0, 4000.0, 500.0, 500.0], [200.0, 200.0, 30.0, 30.0]
# Steps per second as a multiple of MuJoCo's.
TARGET = 10
MODEL = """<mujoco><option timestep="{dt}" cone="elliptic"><flag eulerdamp="disable"/></option><worldbody>
<geom type="plane" size="9 9 .1" friction="{friction}"/>
<body name="crate" pos="0 0 {height}"><freejoint/>
<geom type="box" size=".1 .1 .05" mass="{mass}" friction="{friction}" contype="3" conaffinity="3"/></body>{bodies}
</worldbody><actuator>{motors}</actuator></mujoco>"""


def crate() -> sd.KinematicTree:
    """A box on a floor."""
    tree = sd.KinematicTree()
    joint = sd.free(passive=True)
    tree.attach(sd.Inertia.box(MASS, SIZE), to="base", joint=joint, name="crate", shape=sd.Shape.box(SIZE))
    return tree


def gripper() -> sd.KinematicTree:
    """The box, and two fingers that slide along x and up."""
    tree, body = crate(), sd.Inertia.box(1.0, (0.1, 0.1, 0.1))
    tree.touch("crate", to="base", on=sd.Plane(), points=CORNERS, friction=FRICTION, name="floor")
    tree.attach(body, to="base", joint=sd.prismatic("x"), name="slide")
    tree.attach(body, to="slide", joint=sd.prismatic("z"), name="lift", at=(0, 0, 0.3))
    for name, x in FINGERS.items():
        finger = sd.Inertia.box(0.2, (0.02, 0.1, 0.1))
        tree.attach(finger, to="lift", joint=sd.prismatic("x"), name=name, at=(x, 0, -0.25))
        on = sd.Shape.box(SIZE)
        tree.touch(name, to="crate", on=on, points=PADS, radius=ROUND, friction=GRIP, name=f"{name} pads")
    return tree


def theirs(held: bool, height: float) -> mujoco.MjModel:
    """The same in MuJoCo."""
    mass, bodies, motors = '<inertial pos="0 0 0" mass="{}" diaginertia="1e-2 1e-2 1e-2"/>', "", ""
    if held:
        for name, x in FINGERS.items():
            pads = "".join(
                f'<geom type="sphere" size="{ROUND}" pos="{a} {b} {c}" friction="{GRIP}" contype="2" conaffinity="2" '
                f'priority="1"/>'
                for a, b, c in PADS
            )
            joint = f'<joint name="{name}" type="slide" axis="1 0 0"/>'
            bodies += f'<body pos="{x} 0 -.25">{joint}{mass.format(0.2)}{pads}</body>'
        bodies = f'<body pos="0 0 .3"><joint name="lift" type="slide" axis="0 0 1"/>{mass.format(1)}{bodies}</body>'
        bodies = f'<body><joint name="slide" type="slide" axis="1 0 0"/>{mass.format(1)}{bodies}</body>'
        for name, kp, kd in zip(("slide", "lift", *FINGERS), KP, KD, strict=True):
            motors += f'<position joint="{name}" kp="{kp}" kv="{kd}"/>'
    numbers = {"dt": DT, "friction": FRICTION, "mass": MASS, "height": height}
    return mujoco.MjModel.from_xml_string(MODEL.format(bodies=bodies, motors=motors, **numbers))


def targets(steps: int) -> np.ndarray:
    """Positions of slide, lift and both fingers in every step."""
    t = np.arange(steps) * DT

    def ramp(start: float, end: float, by: float) -> np.ndarray:
        return by * np.clip((t - start) / (end - start), 0, 1)

    slide = ramp(0.4, 1.2, 0.2) + ramp(2.0, 2.8, 0.3)
    lift = ramp(1.5, 2.0, 0.2) - ramp(2.8, 3.5, 0.2)
    left = ramp(0, 0.4, 0.13) + ramp(1.2, 1.5, 0.05) - ramp(3.6, 3.9, 0.15)
    right = -ramp(1.2, 1.5, 0.18) + ramp(3.6, 3.9, 0.18)
    return np.stack([slide, lift, left, right], axis=1)


def compare(what: str, ours: tuple, other: tuple, steps: int) -> None:
    """A line of the table."""
    scope = {"fast": ours[0], "given": ours[1], "rollout": mujoco.rollout.rollout, "other": other}
    a = clock("fast.rollout(*given)", scope)
    b = clock("rollout(*other)", scope)
    one, two, ratio = side_by_side(a, b, 5)
    few = len(other[2])
    each, faster = (1e9 * one / (RUNS * steps), 1e9 * two / (few * steps)), RUNS / (few * ratio)
    print(f"{what:40s}{each[0]:10.0f}{each[1]:10.0f}{faster:8.1f}{'' if faster >= TARGET else '  not met'}", flush=True)


def states(model: mujoco.MjModel, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """States of MuJoCo at positions and rates in its own order."""
    data, kind = mujoco.MjData(model), mujoco.mjtState.mjSTATE_FULLPHYSICS
    found = np.empty((len(q), mujoco.mj_stateSize(model, kind)))
    for k in range(len(q)):
        data.qpos[:], data.qvel[:] = q[k], qd[k]
        mujoco.mj_getState(model, data, found[k], kind)
    return found


def main() -> None:
    """All comparisons."""
    rng, few = np.random.default_rng(0), 16
    print(f"{machine()}, mujoco {mujoco.__version__}; {RUNS} runs, {THREADS} threads, steps of {1e3 * DT:g} ms")
    print(f"{'ns per step':40s}{'screwdyn':>10s}{'mujoco':>10s}{'ratio':>8s}")
    tree, steps = gripper(), 2000
    fast, model, wanted = tree.compile(threads=THREADS), theirs(True, 0.05), targets(2000)
    q = np.tile(tree.neutral(), (RUNS, 1))
    q[:, 6] = 0.05
    hold = sd.Feedback(KP, KD, q_target=wanted[:, None])
    ours = fast, (q, np.zeros((RUNS, tree.nv)), steps, DT, hold)
    threads = [mujoco.MjData(model) for _ in range(THREADS)]
    start = states(model, np.tile(model.qpos0, (few, 1)), np.zeros((few, model.nv)))
    other = model, threads, start, np.tile(wanted, (few, 1, 1))
    found = fast.rollout(*ours[1])
    end = mujoco.rollout.rollout(*other)[0][0, -1, 1 : 1 + model.nq]
    print("box at the end:", found.q[0, 4:7].round(4), "mujoco:", end[:3].round(4))
    assert np.abs(found.q[0, 4:7] - end[:3]).max() < 5e-3 and np.abs(found.q[0, :3]).max() < 0.02
    compare("pushed, lifted, carried and set down", ours, other, steps)
    tree = crate()
    tree.touch("crate", to="base", on=sd.Plane(), friction=FRICTION, name="floor")
    fast, model, steps = tree.compile(threads=THREADS), theirs(False, 0.05), 1000
    for what in ("rests", "slides", "tumbles"):
        q, qd = np.tile(tree.neutral(), (RUNS, 1)), np.zeros((RUNS, 6))
        q[:, 6] = 0.05
        if what == "slides":
            qd[:, 3] = rng.uniform(5, 8, RUNS)
        if what == "tumbles":
            q[:, 6], turned = 0.3, rng.normal(size=(RUNS, 4))
            q[:, :4], qd = turned / np.linalg.norm(turned, axis=1, keepdims=True), rng.normal(size=(RUNS, 6))
        their_q, their_qd = q[:few, [4, 5, 6, 3, 0, 1, 2]], qd[:few, [3, 4, 5, 0, 1, 2]]
        threads = [mujoco.MjData(model) for _ in range(THREADS)]
        other = model, threads, states(model, their_q, their_qd), np.zeros((few, steps, 0))
        compare(f"a box that {what}", (fast, (q, qd, steps, DT)), other, steps)


if __name__ == "__main__":
    main()
