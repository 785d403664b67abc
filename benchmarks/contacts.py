"""Simulations with contacts, from event to event: processor time, the residual of the ledger and the deepest point.

python benchmarks/contacts.py
"""

from time import process_time

import numpy as np
from clock import machine

import screwdyn as sd

SIZE, MASS = (0.2, 0.2, 0.2), 1.0
CORNERS = [(x, y, -0.1) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]
# Pick, carry and set down: the time of each, s, and the targets of processor time, s.
PICK, PLACE, END = 0.5, 2.5, 3.0
CARRIED, TUMBLED = 2.0, 20.0


def carried() -> sd.Run:
    """A UR5 grasps a crate that stands on four corners, lifts it, carries it, sets it down and lets go."""
    arm, home = sd.robots.ur5(), np.array([0.0, -1.2, 1.6, -2.0, -1.57, 0.0])
    tool, crate = arm.forward_kinematics("tool0", home), sd.Inertia.box(MASS, SIZE)
    at = tool[:3, 3] - [0, 0, 0.1]
    alone, loaded = arm.copy(), arm.copy()
    arm.attach(crate, to="base", joint=sd.free(), at=tuple(at), name="crate")
    arm.touch("crate", to="base", on=sd.Plane(offset=at[2] - 0.1), points=CORNERS, friction=0.5, name="table")
    q = np.r_[home, arm.neutral()[6:]]
    loaded.attach(crate, to="tool0", at=np.linalg.inv(tool) @ arm.forward_kinematics("crate", q), name="crate")

    def goal(t: float) -> np.ndarray:
        """Angles: the shoulder lifts the crate, which the wrist keeps level, and turns."""
        s = np.clip((t - PICK) / (PLACE - PICK), 0, 1)
        turn, lift = s**3 * (10 - 15 * s + 6 * s**2), 20 * (s * (1 - s)) ** 3
        return home + np.array([turn, -lift, 0, lift, 0, 0])

    def torque(t: float, now: sd.State) -> np.ndarray:
        """Computed torque, which knows the load."""
        before, here, after = (goal(t + late) for late in (-1e-3, 0.0, 1e-3))
        wanted = (
            (before - 2 * here + after) * 1e6 + 100 * (here - now.q[:6]) + 20 * ((after - before) * 500 - now.qd[:6])
        )
        model = alone if now.tree.nv > 6 else loaded
        return np.r_[model.inverse_dynamics(now.q[:6], now.qd[:6], wanted), np.zeros(now.tree.nv - 6)]

    events = [sd.Grasp("crate", to="tool0", time=PICK), sd.Release("crate", into_world=True, time=PLACE)]
    return sd.simulate(arm, sd.State(arm, q), END, torque, events=events, control_period=0.01, step=0.01)


def tumbled(count: int) -> sd.Run:
    """Crates that are thrown on the floor, far from each other."""
    rng, tree = np.random.default_rng(1), sd.KinematicTree()
    q, qd = [], []
    for k in range(count):
        crate = sd.Inertia.box(MASS, SIZE)
        tree.attach(crate, to="base", joint=sd.free(), name=f"crate {k}", shape=sd.Shape.box(SIZE))
        tree.touch(f"crate {k}", to="base", on=sd.Plane(), friction=0.4, restitution=0.3)
        turn = rng.normal(size=4)
        q += [*turn / np.linalg.norm(turn), 2.0 * k, 0.0, 0.3]
        qd += [*3 * rng.normal(size=3), *rng.normal(size=3)]
    return sd.simulate(tree, sd.State(tree, q, qd), 1.0, step=0.01)


def main() -> None:
    """All runs."""
    print(machine())
    tumbled(1)  # the first run also loads what others need
    print(f"{'':32s}{'s':>8s}{'events':>8s}{'ledger J':>10s}{'depth m':>10s}")
    for what, runs, target in (
        ("UR5 carries a crate, 3 s", carried, CARRIED),
        ("one crate tumbles, 1 s", lambda: tumbled(1), None),
        ("ten crates tumble, 1 s", lambda: tumbled(10), TUMBLED),
    ):
        begin = process_time()
        run = runs()
        took = process_time() - begin
        gaps = (state.tree.contact_gaps(state.q).min(initial=1.0) for state in run.states)
        depth = max(0.0, -min(gaps))
        residual = np.abs(run.energy.residual).max()
        missed = "  not met" if target is not None and took > target else ""
        print(f"{what:32s}{took:8.2f}{len(run.events):8d}{residual:10.0e}{depth:10.0e}{missed}", flush=True)


if __name__ == "__main__":
    main()
