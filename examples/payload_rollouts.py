"""How far a controlled UR5 misses its goal with a payload of uncertain mass and place, by 10 000 runs side by side.

The controller is linear feedback with the torques that hold the arm at the goal with the expected payload. Mass and
centre of mass of the real payload differ from run to run.
"""

import time

import numpy as np

import screwdyn as sd

RUNS, STEPS, DT = 10_000, 600, 2.5e-3
EXPECTED = sd.Inertia.box(3.0, size=(0.2, 0.2, 0.2), com=(0, 0, 0.1))
START = np.radians([0, -90, 90, -90, -90, 0])
GOAL = np.radians([60, -60, 90, -120, -90, 30])


def main() -> None:
    rng = np.random.default_rng(0)
    arm = sd.robots.ur5()
    arm.attach(sd.Link("crate", EXPECTED), to="tool0")
    fast = arm.compile()
    control = sd.Feedback(
        kp=[1500, 1500, 1000, 150, 150, 50],
        kd=[300, 300, 150, 15, 10, 3],
        q_target=GOAL,
        tau=arm.gravity_vector(GOAL),
    )

    mass = rng.normal(3.0, 0.5, RUNS)
    place = rng.normal((0, 0, 0.1), 0.03, (RUNS, 3))
    crates = [sd.Inertia.box(m, (0.2, 0.2, 0.2), c) for m, c in zip(mass, place, strict=True)]
    start = np.broadcast_to(START, (RUNS, 6)), np.zeros((1, 6))
    fast.rollout(START, np.zeros(6), 1, DT, control, method="rk4", payload={"crate": EXPECTED})  # compiles
    begun = time.perf_counter()
    run = fast.rollout(*start, STEPS, DT, control, method="rk4", payload={"crate": crates}, every=STEPS // 6)
    took = time.perf_counter() - begun
    print(f"{RUNS:,} runs of {STEPS * DT:g} s, {took:.2f} s of computation; {run.failed.sum()} runs failed\n")

    goal = arm.forward_kinematics("tool0", GOAL)[:3, 3]
    away = 1e3 * np.linalg.norm(arm.forward_kinematics("tool0", run.q)[..., :3, 3] - goal, axis=-1)
    print(f"{'time, s':>8}{'median':>10}{'95 %':>10}{'largest':>10}   distance of the tool from the goal, mm")
    for t, miss in zip(run.t, away, strict=True):
        print(f"{t:8.2f}{np.median(miss):10.2f}{np.quantile(miss, 0.95):10.2f}{miss.max():10.2f}")

    causes = np.column_stack([np.ones(RUNS), mass - 3.0, place - (0, 0, 0.1)])
    height = 1e3 * (arm.forward_kinematics("tool0", run.q[-1])[:, 2, 3] - goal[2])
    effect = np.linalg.lstsq(causes, height, rcond=None)[0]
    print(f"\nthe tool sinks by {-effect[1]:.1f} mm for each kilogram more than expected")

    # One of the runs again, alone and with an error-controlled integrator.
    single = sd.robots.ur5()
    single.attach(sd.Link("crate", crates[0]), to="tool0")
    kp, kd = np.array(control.kp), np.array(control.kd)
    again = sd.simulate(
        single,
        sd.State(single, START, np.zeros(6)),
        STEPS * DT,
        torque=lambda t, state: control.tau + kp * (GOAL - state.q) - kd * state.qd,
        step=0.1,
    )
    difference = np.abs(again.states[-1].q - run.q[-1, 0]).max()
    print(f"largest difference from simulate at the end of one run: {difference:.1e} rad")


if __name__ == "__main__":
    main()
