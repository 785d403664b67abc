"""Two UR5 on one torso: one takes a crate from the world in motion, hands it over, and the other one throws it.

Every change is an event of one simulation. The printed balance is that of the energy: what the impacts dissipate is
the only loss.

    python examples/two_arms_pass_a_crate.py
"""

import numpy as np

import screwdyn as sd

CRATE = sd.Inertia.box(2.0, (0.15, 0.15, 0.15))
SIDES = {"left/": 0.35, "right/": -0.35}


def torso_with_two_arms() -> sd.KinematicTree:
    tree = sd.KinematicTree("torso")
    for side, y in SIDES.items():
        tree.attach(sd.robots.ur5(), to="torso", at=(0, y, 0), prefix=side)
    return tree


def main() -> None:
    tree = torso_with_two_arms()
    arms = tree.coordinates
    pose = {"shoulder_lift_joint": -1.2, "elbow_joint": 1.5, "wrist_1_joint": -1.9, "wrist_2_joint": -1.6}
    start = {side + joint: angle for side in SIDES for joint, angle in pose.items()}
    # The crate flies past the left hand.
    hand = tree.forward_kinematics("left/tool0", sd.State(tree, start).q)
    tree.attach(CRATE, to="torso", joint=sd.free(passive=True), name="crate")
    position = np.array([*hand[:3, 3] + [0.1, 0.0, -0.05]])
    start |= {f"crate[p{axis}]": x for axis, x in zip("xyz", position, strict=True)}
    state = sd.State(tree, start, {"crate[vy]": -0.5, "crate[vz]": 1.0, "left/elbow_joint": 0.3})
    held = {name: state[name] for name in arms}

    def hold(t: float, now: sd.State) -> dict[str, float]:
        """Springs and dampers hold both arms where they started."""
        return {
            name: 300 * (held[name] - now[name]) - 30 * now.velocity(name) for name in arms if name in now.positions
        }

    events = [
        sd.Grasp("crate", to="left/tool0", joint=sd.spherical(passive=True, name="hook"), time=0.1),
        sd.Lock("left/elbow_joint", time=0.2),
        sd.HandOver("crate", to="right/tool0", joint=sd.fixed(), time=0.4),
        sd.Unlock("left/elbow_joint", time=0.5),
        sd.Release("crate", into_world=True, time=0.6),
    ]
    run = sd.simulate(tree, state, 0.8, torque=hold, events=events, step=0.01, rtol=1e-8, atol=1e-9)

    print("   t (s)  change                        energy lost (J)")
    for happened in run.events:
        print(f"{happened.t:8.2f}  {f'{happened.verb} {happened.link}':28} {happened.event.energy_lost:10.4f}")
    energy = run.energy
    print(f"\ntotal energy {energy.total[0]:.3f} J at the start, {energy.total[-1]:.3f} J at the end;")
    print(f"the motors did {energy.work[-1]:.3f} J of work, the impacts dissipated {energy.impact_loss[-1]:.3f} J;")
    print(f"unaccounted for: {np.abs(energy.residual).max():.0e} J")
    print(f"the crate ends at height {run['crate[pz]'][-1]:.3f} m and falls")


if __name__ == "__main__":
    main()
