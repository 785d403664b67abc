"""
A gymnasium environment
=======================

A crane as an environment for reinforcement learning: one line computes a step. A search by the cross-entropy method
finds a linear policy that brings the load to its place without sway.
"""

import gymnasium as gym
import gymnasium.utils.env_checker
import matplotlib.pyplot as plt
import numpy as np

import screwdyn as sd

crane = sd.KinematicTree()
crane.attach(sd.Inertia.point(20), to="base", joint=sd.prismatic("x", name="trolley"), name="frame")
crane.attach(sd.Inertia.point(50, (0, 0, -4)), to="frame", joint=sd.revolute("y", passive=True), name="load")
fast = crane.compile(threads=1).wait()


class Crane(gym.Env):  # move the trolley to 0, with a force of up to 400 N, 10 times a second
    observation_space, action_space = (gym.spaces.Box(-x, x, (n,), np.float64) for x, n in ((99, 4), (1, 1)))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps, self.x = 0, np.array(options or [self.np_random.uniform(-3, -2), 0, 0, 0])
        return self.x, {}

    def step(self, action):
        tau = [400 * np.clip(action[0], -1, 1), 0.0]
        run = fast.rollout(self.x[None, :2], self.x[None, 2:], 2, 0.05, tau, method="rk4")
        self.steps, self.x = self.steps + 1, np.concatenate([run.q[0], run.qd[0]])
        return self.x, -float(self.x**2 @ (1, 10, 0, 0) + 0.1 * action[0] ** 2), False, self.steps == 80, {}


def episode(policy, start=None):  # states and the sum of rewards; the policy is a row of gains
    env.reset(seed=0, options=start)
    steps = [env.step([-policy @ env.x]) for _ in range(80)]
    return np.array([x for x, *_ in steps]), sum(reward for _, reward, *_ in steps)


env = Crane()
gym.utils.env_checker.check_env(env, skip_render_check=True)

rng, best = np.random.default_rng(0), []
mean, spread = np.zeros(4), np.ones(4)
for _ in range(8):
    policies = sorted(rng.normal(mean, spread, (16, 4)), key=lambda policy: episode(policy)[1])
    mean, spread = np.mean(policies[-4:], axis=0), np.std(policies[-4:], axis=0)
    best.append(episode(policies[-1])[1])
states, total = episode(mean)
print(f"sum of rewards: {best[0]:.0f} in the first generation, {total:.0f} at last")
figure, (learning, chart) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
learning.plot(best, "o-", lw=2)
learning.set(xlabel="generation", ylabel="best sum of rewards")
chart.plot(0.1 * np.arange(1, 81), states[:, 0] - 4 * np.sin(states[:, 1]), lw=2)
chart.set(xlabel="time (s)", ylabel="place of the load (m)", xlim=(0, 8))
plt.show()
