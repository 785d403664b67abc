"""The motor torques of a UR5 with a payload of uncertain mass, by a Monte Carlo simulation.

There are a million random states and masses. For a payload of given shape, torques are linear in its mass,
τ(m) = τ(0) + m (τ(1 kg) − τ(0)), so two compiled batches, without a payload and with 1 kg, are sufficient.
"""

import time

import numpy as np

import screwdyn as sd

STATES = 1_000_000
# Effort limits of the joints, N m, in ROS-Industrial's ur_description.
PEAK = np.array([150, 150, 150, 28, 28, 28])


def main() -> None:
    rng = np.random.default_rng(0)
    arm = sd.robots.ur5()
    empty = arm.compile()
    box = sd.Inertia.box(1.0, size=(0.1, 0.1, 0.1), com=(0, 0, 0.1))
    with arm.attached(box, to="tool0", name="box"):
        loaded = arm.compile()
    for form in (empty, loaded):
        form.wait()

    start = time.perf_counter()
    # Transposed arrays, coordinate by coordinate: the fastest layout.
    q, qd, qdd = (rng.uniform(-limit, limit, (arm.nv, STATES)).T for limit in (np.pi, 1.0, 2.0))
    mass = rng.normal(3.0, 0.5, STATES)
    drawn = time.perf_counter()
    alone = empty.inverse_dynamics(q, qd, qdd)
    torque = alone + mass[:, None] * (loaded.inverse_dynamics(q, qd, qdd) - alone)
    done = time.perf_counter()

    print(f"{STATES:,} states drawn in {drawn - start:.2f} s, their torques computed in {done - drawn:.2f} s\n")
    print(f"{'joint':22}{'mean |τ|':>10}{'99.9 %':>10}{'peak':>8}   fraction of states beyond the peak")
    size = np.abs(torque)
    for i, name in enumerate(arm.coordinates):
        beyond = np.mean(size[:, i] > PEAK[i])
        print(f"{name:22}{size[:, i].mean():10.2f}{np.quantile(size[:, i], 0.999):10.2f}{PEAK[i]:8.0f}   {beyond:.4%}")

    # Compare some of them with the torques of the arm with this payload attached.
    worst = 0.0
    for k in range(5):
        payload = sd.Inertia.box(mass[k], size=(0.1, 0.1, 0.1), com=(0, 0, 0.1))
        with arm.attached(payload, to="tool0"):
            worst = max(worst, np.abs(arm.inverse_dynamics(q[k], qd[k], qdd[k]) - torque[k]).max())
    print(f"\nlargest difference from the arm with this payload attached: {worst:.1e} N m")


if __name__ == "__main__":
    main()
