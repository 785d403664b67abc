"""The payload study of examples/dask_study.py in one process, by one worker of Dask and by all, in turns.

python benchmarks/workers.py --states 1000000
"""

import argparse
import os
import runpy
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
from clock import machine
from dask.distributed import Client, LocalCluster, as_completed

import screwdyn as sd

EXAMPLE = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "dask_study.py"))


def took(call) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--payloads", type=int, default=16)
    parser.add_argument("--states", type=int, default=1_000_000, help="of each payload")
    parser.add_argument("--turns", type=int, default=5)
    given = parser.parse_args()
    arm, workers = sd.robots.ur5(), os.cpu_count() or 1
    task, payloads = partial(EXAMPLE["study"], arm, states=given.states), range(given.payloads)
    task(0)
    print(f"{machine()}; {given.payloads} payloads of {given.states:,} states\n")

    start = perf_counter()
    cluster = LocalCluster(workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None)
    with cluster, Client(cluster) as client:
        everyone = list(client.scheduler_info()["workers"])
        print(f"start of {workers} workers: {perf_counter() - start:.2f} s")

        def by(who: list[str]) -> None:
            tasks = client.map(task, payloads, workers=who, pure=False)
            for future, _ in as_completed(tasks, with_results=True):
                future.release()

        def one(states: int, who: str):
            return lambda: client.submit(EXAMPLE["study"], arm, 0, states, workers=[who], pure=False).result()

        print(f"first task of a worker, with imports and code from disk: {took(one(0, everyone[0])):.2f} s")
        print(f"a task without states: {1e3 * min(took(one(0, everyone[0])) for _ in range(20)):.1f} ms\n")
        client.run(task, 1)
        ways = {
            "one process, without Dask": lambda: [task(k) for k in payloads],
            "1 worker": lambda: by(everyone[:1]),
            f"{workers} workers": lambda: by(everyone),
        }
        times = np.array([[took(way) for way in ways.values()] for _ in range(given.turns)]).min(axis=0)
    states = given.payloads * given.states
    for way, seconds in zip(ways, times, strict=True):
        print(f"{way:28}{seconds:8.2f} s{1e9 * seconds / states:8.0f} ns for a state{times[0] / seconds:8.2f} times")


if __name__ == "__main__":
    main()
