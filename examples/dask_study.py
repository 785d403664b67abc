"""What a UR5 may carry: the torques of random payloads in random states, computed by the workers of Dask.

A task draws one payload and its states, and returns histograms. They are added as they arrive, so the number of states
is not limited by memory: ``python dask_study.py --payloads 1000 --states 1000000`` computes 10⁹ states. Needs the extra
``cluster``; docs/scaling.md explains the study.
"""

import argparse
import time
from functools import partial

import numpy as np
from dask.distributed import Client, LocalCluster, as_completed

import screwdyn as sd

# Effort limits of the joints, N m, in ROS-Industrial's ur_description, and the largest mass, kg.
PEAK, HEAVIEST = np.array([150, 150, 150, 28, 28, 28]), 10.0
# Largest angles, rates and accelerations, rad, rad/s and rad/s².
RANGES = np.array([np.pi, 1.5, 3.0])
# Number of states at a time, whose arrays fit into the processor's caches; bins of the loads |τ| / PEAK from 0 to 2.
BLOCK, BINS = 10_000, 1000


def study(arm: sd.KinematicTree, payload: int, states: int) -> tuple[float, np.ndarray]:
    """The mass of a payload, and for each joint the numbers of states by load, (nv, BINS)."""
    # The numbers depend on the payload and not on the worker.
    rng = np.random.default_rng([7, payload])
    mass, com = rng.uniform(0, HEAVIEST), rng.uniform(-0.1, 0.1, 3)
    arm = arm.copy()
    arm.attach(sd.Inertia.box(mass, (0.2, 0.2, 0.2), com=com + np.array([0, 0, 0.1])), to="tool0")
    fast = arm.compile(threads=1).wait()  # one thread, because every processor has a worker
    counts = np.zeros((arm.nv, BINS), dtype=np.int64)
    # Made once, because workers of Dask return freed memory to the system, which makes new arrays slow.
    state, tau, bins = np.empty((3, arm.nv, BLOCK)), np.empty((arm.nv, BLOCK)), np.empty((arm.nv, BLOCK), np.int64)
    for _ in range(states // BLOCK):
        rng.random(out=state)
        state *= 2 * RANGES[:, None, None]
        state -= RANGES[:, None, None]
        fast.inverse_dynamics(*(x.T for x in state), out=tau.T)
        np.abs(tau, out=tau)
        tau *= BINS / 2 / PEAK[:, None]
        np.minimum(tau, BINS - 1, out=bins, casting="unsafe")
        for count, loads in zip(counts, bins, strict=True):
            count += np.bincount(loads, minlength=BINS)
    return mass, counts


def table(total: np.ndarray) -> str:
    """The fraction of states in which a joint is overloaded, by mass; ``total`` has the counts for each kilogram."""
    lines = [f"{'payload, kg':14}{'states':>15}" + "".join(f"{f'joint {k + 1}':>11}" for k in range(total.shape[1]))]
    for kg, counts in enumerate(total):
        states = counts[0].sum()
        overloaded = counts[:, BINS // 2 :].sum(axis=1) / max(states, 1)
        lines.append(f"{kg:3} to {kg + 1:<7}{states:15,}" + "".join(f"{x:11.4%}" for x in overloaded))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--payloads", type=int, default=100)
    parser.add_argument("--states", type=int, default=100_000, help=f"of each payload, a multiple of {BLOCK}")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    arm = sd.robots.ur5()
    total = np.zeros((int(HEAVIEST), arm.nv, BINS), dtype=np.int64)
    # Processes on this machine; Client("tcp://…") uses workers elsewhere.
    cluster = LocalCluster(given.workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None)
    with cluster, Client(cluster) as client:
        start = time.perf_counter()
        tasks = client.map(partial(study, arm, states=given.states), range(given.payloads))
        for _, (mass, counts) in as_completed(tasks, with_results=True):
            total[int(mass)] += counts
        seconds = time.perf_counter() - start
    states = total[:, 0].sum()
    print(f"{states:,} states of {given.payloads} payloads, {given.workers} workers: {seconds:.1f} s", end="")
    print(f", {1e9 * seconds / states:.0f} ns for a state\n\nfraction of states in which a joint is overloaded")
    print(table(total))


if __name__ == "__main__":
    main()
