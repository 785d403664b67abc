"""
A crate on a passive hook, from table to table
==============================================

A crane takes a crate from a table, carries it on a hook that swings freely, sets it down and lets go. It accelerates
for exactly one period of the swing, and brakes for one, so that nothing sways in between. The largest angle, the
period, an elliptic integral, and the heat of the landing have closed forms. The ledger closes.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import ellipk

import screwdyn as sd

g, TROLLEY, MAST, HOOK, CRATE, LENGTH, H, a, up, LANDING = 9.81, 10.0, 2.0, 0.5, 5.0, 1.0, 0.3, 2.5, 2.0, 0.2
crane = sd.KinematicTree()
crane.attach(sd.Inertia.box(TROLLEY, (0.3, 0.2, 0.1)), "base", sd.prismatic("x", name="x"), (0, 0, H + 1.4), "trolley")
crane.attach(sd.Inertia.box(MAST, (0.05, 0.05, 0.3)), "trolley", sd.prismatic("z", name="z"), (0, 0, -0.4), "mast")
rod = sd.Inertia.rod(HOOK, LENGTH, "z", (0, 0, -LENGTH / 2))
crane.attach(rod, to="mast", joint=sd.revolute("y", passive=True, name="sway"), name="hook")
crane.attach(sd.Inertia.box(CRATE, (0.4, 0.3, H)), "base", sd.planar("y", passive=True), (0, 0, H / 2), "crate")
feet = [(x, 0, -H / 2) for x in (-0.2, 0.2)]
crane.touch("crate", to="base", on=sd.Plane(), points=feet, friction=0.5, name="table")
# Of hook and crate about the pin of the hook; the swing about arctan(a / g), and its period.
middle = LENGTH + H / 2
moment = HOOK * LENGTH / 2 + CRATE * middle
inertia = HOOK * LENGTH**2 / 3 + CRATE * (middle**2 + (0.4**2 + H**2) / 12)
tilt = np.arctan(a / g)
period = 4 * ellipk(np.sin(tilt / 2) ** 2) * np.sqrt(inertia / (moment * np.hypot(g, a)))
slower, rise = LANDING / up, 0.5  # s
lower = np.sqrt(slower**2 / 2 + rise**2 / 4) - slower
times = np.cumsum([0.2, rise, period, 0.5, period, lower + slower, lower, 0.3])
lift, go, coast, brake, down, soft, land, leave = times


def torque(t, now):
    push = a * ((go <= t < coast) - float(brake <= t < down))
    sway, rate = -now.q[now.positions.index("sway")], -now.qd[now.coordinates.index("sway")]
    turn = -moment / inertia * (g * np.sin(sway) + push * np.cos(sway))
    swings = moment * (turn * np.cos(sway) - rate**2 * np.sin(sway))
    climb = up * np.select([t < lift, t < lift + rise / 2, t < go, t < down, t < soft, t < land], [0, 1, -1, 0, -1, 1])
    held = MAST + HOOK + CRATE * (lift <= t < land)
    force = {"x": (TROLLEY + MAST + HOOK + CRATE) * push + swings * (lift <= t < leave), "z": held * (g + climb)}
    return {name: force[name] for name in force if name in now.coordinates}


events = [sd.Close("crate", "hook", name="grip", time=0.1), sd.Open("grip", time=leave)]
events += [sd.Lock("z", time=go), sd.Unlock("z", time=down)]
run = sd.simulate(crane, sd.State(crane), leave + 0.3, torque, events, step=0.02)
heat = 0.5 * (MAST + HOOK + CRATE) * LANDING**2
print(f"largest sway {np.degrees(run['sway'].max()):.3f}°, closed form {np.degrees(2 * tilt):.3f}°")
print(f"lost at the landing {run.energy.impact_loss[-1]:.6f} J, closed form {heat:.6f} J")
print(f"residual of the ledger {abs(run.energy.residual).max():.0e} J")

plt.style.use("petroff10")
figure, (way, force) = plt.subplots(2, 1, figsize=(10, 6), layout="constrained", height_ratios=(1.6, 1))
corners = np.array([(x, 0, z, 1) for x, z in ((-0.2, -1), (0.2, -1), (0.2, 1), (-0.2, 1))]) * [1, 0, H / 2, 1]
for at in (0.0, go, go + 0.5 * period, coast, brake + 0.5 * period, down, leave):
    pin = run.pose("hook", at)[[0, 2], 3]
    way.fill(*(run.pose("crate", at) @ corners.T)[[0, 2]], color=plt.cm.viridis(at / leave), alpha=0.7)
    way.plot(*np.array([pin, run.pose("hook", at)[[0, 2]] @ [0, 0, -LENGTH, 1]]).T, "o-", color="0.3", ms=3)
way.axhline(0, color="0.4")
way.set(aspect="equal", xlabel="x (m)", ylabel="z (m)")
force.plot(run.t, [run.contact("table", x).forces[:, 2].sum() for x in run.t], label="the table pushes (N)")
force.plot(run.t, np.degrees(run["sway"]), label="sway (°)")
force.set(xlabel="time (s)")
force.legend(frameon=False)
plt.show()
