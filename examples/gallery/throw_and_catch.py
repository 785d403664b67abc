"""
Two pendulums play catch
========================

A double pendulum without motors throws a ball to another one. SciPy chooses how both start to swing and when the ball
is released, so that the palm meets it at its speed. The gradient is exact, through release and catch.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import screwdyn as sd

SHORTLY, CATCH, END, TIP = 0.749, 0.75, 0.85, (0.5, 0, 0)
NAMES = ["qd:left", "qd:left hand", "qd:right", "qd:right hand", "time of hand over ball"]
arm, hand = (sd.Inertia.box(mass, (0.5, 0.05, 0.05), (0.25, 0, 0)) for mass in (2.0, 1.0))
ball, flight = sd.Link("ball", sd.Inertia.sphere(0.15, 0.04)), sd.planar("z", passive=True, name="flight")


def throw(x, **options):
    robot = sd.KinematicTree(gravity=(0, -9.81, 0))
    for side, place in (("left", 0.0), ("right", 2.0)):
        robot.attach(arm, to="base", at=(place, 0, 0), joint=sd.revolute("z"), name=side)
        robot.attach(hand, to=side, at=TIP, joint=sd.revolute("z"), name=f"{side} hand")
        robot.attach(sd.Link(f"{side} palm"), to=f"{side} hand", at=TIP)
    robot.attach(ball, to="left palm")
    fly = sd.HandOver("ball", to="base", joint=flight, time=x[4])
    events = [fly, sd.HandOver("ball", to="right palm", joint=sd.fixed(), time=CATCH)]
    return sd.simulate(robot, sd.State(robot, [-2.2, -0.4, -1.0, -0.4], x[:4]), END, events=events, **options)


def gap(state):  # from the palm to the ball, and its rate
    pose = [state.tree.forward_kinematics(x, state.q) for x in ("ball", "right palm")]
    twist = [state.tree.link_twist(x, state.q, state.qd, "mixed") for x in ("ball", "right palm")]
    return (pose[0] - pose[1])[:2, 3], (twist[0] - twist[1])[3:5]


def cost(before, end):  # after the catch, the ball stays in the hand where it was caught
    return 100 * np.sum(gap(end)[0] ** 2) + np.sum(gap(before)[1] ** 2) + 1e-3 * np.sum(before.qd[:4] ** 2)


def asked(x):  # by the optimizer: the cost and its gradient
    run = throw(x, sensitivities=True)
    gradient = run.gradient(cost, (SHORTLY, END))
    return cost(run.at(SHORTLY), run.at(END)), [gradient[name] for name in NAMES]


guess, times = [5.0, 2.0, -1.0, -1.0, 0.3], np.linspace(0, CATCH, 12)
best = minimize(asked, guess, jac=True, method="L-BFGS-B", bounds=[(0, 8), (-5, 5), (-5, 5), (-9, 9), (0.2, 0.5)])
plt.style.use("petroff10")
figure, charts = plt.subplots(1, 2, figsize=(9, 3.2), sharey=True, layout="constrained")
for chart, title, x in zip(charts, ("guess", f"after {best.nfev} runs"), (guess, best.x), strict=True):
    run = throw(x)
    miss, rate = (np.linalg.norm(y) for y in gap(run.at(CATCH, "before")))
    for side, color in (("left", "C0"), ("right", "C1")):
        joints = np.array([run.pose(x, times)[:, :2, 3] for x in (side, f"{side} hand", f"{side} palm")])
        chart.plot(*joints.transpose(2, 0, 1), "o-", color=color, alpha=0.3)
    chart.plot(*run.pose("ball", np.linspace(0, CATCH, 100))[:, :2, 3].T, color="C2", lw=2)
    chart.set(aspect="equal", xlabel="x (m)", title=f"{title}: misses by {1e3 * miss:.1f} mm, {rate:.2f} m/s")
plt.show()
