"""
Plan when to put a load down
============================

A crane puts a load on a shelf beyond the end of its rail: it swings the load out, and lets it go where it stands still
in the air. Predictive control by sampling (MPPI) plans the forces on the trolley and the step of the release together.
Each rollout releases the load at a step of its own, ``events=[(gone, steps)]``, and moves on without it.
"""

import matplotlib.pyplot as plt
import numpy as np

import screwdyn as sd

RUNS, STEPS, H, RAIL, SHELF = 500, 80, 0.03, 1.0, np.array([1.6, 0.0, -0.8])  # s, m
rng, plan, seen = np.random.default_rng(0), {"forces": np.zeros(STEPS), "release": 60.0}, []
empty = sd.KinematicTree("rail")
empty.attach(sd.Inertia.box(3.0, (0.3, 0.2, 0.1)), "rail", sd.prismatic("x", damping=1.0), name="trolley")
rod = sd.Inertia.rod(0.3, 1.0, com=(0, 0, -0.5))
empty.attach(rod, "trolley", sd.revolute("y", passive=True, damping=0.01), name="rod")
crane = empty.copy()
crane.attach(sd.Inertia.box(2.0, (0.2, 0.2, 0.2)), "rod", at=(0, 0, -1), name="load")
loaded, bare, gone = crane.compile(), empty.compile(), sd.Release("load")
smooth = np.clip(1 - np.abs(np.arange(STEPS)[:, None] / 8 - np.arange(11)), 0, None)  # linear between every 8th step


def control(t, state):
    """The first force of the plan for the next 2.4 s, which is improved in each call."""
    mean, step, carries = np.append(plan["forces"][1:], 0.0), plan["release"] - 1, "load" in state.tree.links
    for _ in range(2):
        forces = np.clip(mean[:, None] + smooth @ rng.normal(0, 8.0, (11, RUNS)), -40, 40)  # N
        steps = np.clip(np.rint(step + rng.normal(0, 2.0, RUNS)).astype(int), 0, STEPS - 1)
        fast, events = (loaded, [(gone, steps)]) if carries else (bare, [])
        run = fast.rollout([state.q], [state.qd], STEPS, H, forces[..., None], events=events, every=1)
        after = np.arange(STEPS + 1)[:, None] > (steps if carries else -1)
        x, cost = run.q[..., 0], H * 2e-4 * (forces**2).sum(0)
        cost += H * (200 * np.clip(np.abs(x) - RAIL, 0, None) + after * (2 * x**2 + 0.3 * (run.qd**2).sum(2))).sum(0)
        if carries:
            q, qd = run.q[steps, range(RUNS)], run.qd[steps, range(RUNS)]  # just before each release
            off, twist = fast.forward_kinematics("load", q)[:, :3, 3] - SHELF, fast.link_twist("load", q, qd)
            cost += 300 * (off**2).sum(1) + 50 * (twist[:, 3:] ** 2).sum(1) + 0.015 * steps
        weight = np.exp((cost.min() - cost) / 0.3)
        mean, step = forces @ weight / weight.sum(), steps @ weight / weight.sum()
    plan.update(forces=mean, release=step)
    seen.extend((run.q[: steps[k] + 1, k], cost[k]) for k in np.argsort(cost)[200::-5] if abs(t - 0.9) < H / 2)
    return {"trolley": mean[0]}


events = [sd.Release("load", when=lambda t, state: plan["release"] < 0.5)]
run = sd.simulate(crane, sd.State(crane), 4.5, control, events, control_period=H)
when, released = run.events[0].t, run.events[0].event.released
off, speed = np.linalg.norm(released.pose[:3, 3] - SHELF), np.linalg.norm(released.twist[3:])
print(f"released after {when:.2f} s, {1e3 * off:.0f} mm from its place on the shelf, at {speed:.2f} m/s")

# %%
# The load's way, and its ways in some rollouts of the plan at 0.9 s, each until its release: dark ones are cheap.
plt.style.use("petroff10")
figure, (view, chart) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", width_ratios=(1.4, 1))
for q, price in seen:
    view.plot(q[:, 0] - np.sin(q[:, 1]), -np.cos(q[:, 1]), lw=0.6, color=plt.cm.magma(min(0.9, price / 60)))
way = run.pose("load", run.t[run.t <= when], side="before")[:, :3, 3]
view.plot(way[:, 0], way[:, 2], lw=2.5, color="C0", label="load")
view.plot([-0.2, RAIL], [0, 0], lw=5, color="0.6", label="rail")
view.plot(*SHELF[[0, 2]], "s", ms=16, mfc="none", color="C1", zorder=3, label="shelf")
view.set(aspect="equal", xlabel="x (m)", ylabel="z (m)")
chart.plot(run.t, np.transpose([run["trolley"], run["rod"]]), label=["trolley (m)", "rod (rad)"])
chart.set(xlabel="time (s)", xlim=(0, 4.5))
figure.legend(loc="outside lower center", ncols=5, frameon=False)
plt.show()
