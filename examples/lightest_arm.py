"""The lightest arm of three joint modules that carries a payload along a path, of all 13,824 that can be assembled.

A module is a motor of one of four sizes, whose axis is across or along the arm, and a tube of one of three lengths. An
assembly is suitable if it can follow the path, and inverse dynamics with the payload finds no torque and no rate beyond
those of its motors. All assemblies that begin with the same modules share a tree: a copy of it takes less than a
microsecond, and attaching the next module computes the numbers of that module only.

``python lightest_arm.py --lengths 0.3 0.5`` tries other lengths, m.
"""

import argparse
import functools
import itertools
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import screwdyn as sd

Array = npt.NDArray[np.float64]


class Motor(NamedTuple):
    size: str
    mass: float  # kg
    torque: float  # N m
    rate: float  # rad/s


class Module(NamedTuple):
    motor: Motor
    axis: str  # "y" across the arm, "z" along it
    length: float  # m


class Motion(NamedTuple):
    """Several ways along the path with rates and accelerations, (ways, points, 3), and greatest rates, (ways, 3)."""

    q: Array
    qd: Array
    qdd: Array
    fastest: Array


MOTORS = (
    Motor("S", 0.4, 9.0, 6.0),
    Motor("M", 0.9, 28.0, 4.5),
    Motor("L", 1.8, 60.0, 3.5),
    Motor("XL", 3.1, 120.0, 3.0),
)
LENGTHS = (0.25, 0.35, 0.45)
TUBE = 1.2  # kg/m
PAYLOAD = sd.Inertia.box(2.0, size=(0.1, 0.1, 0.1), com=(0, 0, 0.05))
JOINTS = 3
START, END, DURATION, POINTS = np.array([0.4, -0.3, 0.2]), np.array([0.4, 0.3, 0.6]), 1.5, 16


def path() -> tuple[Array, Array, Array]:
    """Positions, velocities and accelerations along the path, (points, 3), at rest at both ends."""
    s = np.linspace(0, 1, POINTS)[:, None]
    way = END - START
    return (
        START + (10 * s**3 - 15 * s**4 + 6 * s**5) * way,
        30 * (s**2 - 2 * s**3 + s**4) / DURATION * way,
        60 * (s - 3 * s**2 + 2 * s**3) / DURATION**2 * way,
    )


@functools.cache
def parts(module: Module, k: int) -> tuple[sd.Link, sd.Joint]:
    """The link and the joint of a module in the k-th place."""
    motor, axis, length = module
    tube = sd.Inertia.rod(TUBE * length, length, axis="z", com=(0, 0, length / 2))
    body = tube + sd.Inertia.cylinder(motor.mass, 0.04, 0.08, axis=axis)
    return sd.Link(f"module{k}", body), sd.revolute(axis, name=f"q{k}")


def extended(tree: sd.KinematicTree, modules: Sequence[Module]) -> sd.KinematicTree:
    """A copy of an arm of all modules but the last, with the last one attached."""
    longer = tree.copy()
    link, joint = parts(modules[-1], len(modules))
    at = (0, 0, modules[-2].length) if len(modules) > 1 else None
    longer.attach(link, to=longer.links[-1], joint=joint, at=at)
    return longer


def motion(arm: sd.KinematicTree) -> Motion | None:
    """The motions in which the payload of an arm follows the path, by Newton's method; None if there is none."""
    x, v, a = path()
    q = np.array(list(itertools.product((-1.5, 0.5), (-1.0, 1.0), (-1.5, 1.5))))
    found = np.zeros((len(q), 0, JOINTS))
    for k in range(POINTS):
        for _ in range(40 if k == 0 else 5):
            J = arm.jacobian("payload", q, "mixed")[:, 3:]
            miss = x[k] - arm.forward_kinematics("payload", q)[:, :3, 3]
            # Damped, so that steps stay short near singular configurations.
            damped = J @ J.swapaxes(1, 2) + 1e-6 * np.eye(3)
            q = q + np.clip((J.swapaxes(1, 2) @ np.linalg.solve(damped, miss[..., None]))[..., 0], -0.5, 0.5)
        reached = np.abs(miss).max(axis=1) < 1e-6
        q = q[reached]
        found = np.concatenate([found[reached], q[:, None]], axis=1)
        if not len(q):
            return None
    q, J = found, arm.jacobian("payload", found, "mixed")[..., 3:, :]
    good = np.linalg.svd(J)[1].min(axis=(1, 2)) > 0.02
    good &= np.abs(np.diff(q, axis=1)).max(axis=(1, 2)) < 0.5
    if not good.any():
        return None
    q, J = q[good], J[good]
    qd = np.linalg.solve(J, np.broadcast_to(v, q.shape)[..., None])[..., 0]
    turning = (arm.jacobian_dot("payload", q, qd, "mixed")[..., 3:, :] @ qd[..., None])[..., 0]
    qdd = np.linalg.solve(J, (a - turning)[..., None])[..., 0]
    return Motion(q, qd, qdd, np.abs(qd).max(axis=1))


def suitable(arm: sd.KinematicTree, modules: Sequence[Module], way: Motion) -> bool:
    """Whether in one of the motions no torque and no rate exceeds that of its motor."""
    torque = np.array([module.motor.torque for module in modules])
    rate = np.array([module.motor.rate for module in modules])
    fast = (way.fastest <= rate).all(axis=1)
    return bool((fast & (np.abs(arm.inverse_dynamics(way.q, way.qd, way.qdd)) <= torque).all(axis=(1, 2))).any())


def assemblies(
    choice: Sequence[Module], tree: sd.KinematicTree, modules: tuple[Module, ...] = ()
) -> Iterator[tuple[tuple[Module, ...], sd.KinematicTree]]:
    """All assemblies with their trees; those that begin with the same modules share the tree of the beginning."""
    if len(modules) == JOINTS:
        tree.attach(PAYLOAD, to=tree.links[-1], at=(0, 0, modules[-1].length), name="payload")
        yield modules, tree
        return
    for module in choice:
        longer = (*modules, module)
        yield from assemblies(choice, extended(tree, longer), longer)


def search(choice: Sequence[Module]) -> tuple[tuple[Module, ...] | None, int, int, int]:
    """The lightest suitable assembly, and the numbers of assemblies: all, those that reach the path, suitable ones."""
    ways: dict[tuple[tuple[str, float], ...], Motion | None] = {}
    best, least, counts = None, np.inf, [0, 0, 0]
    for modules, arm in assemblies(choice, sd.KinematicTree()):
        shape = tuple((module.axis, module.length) for module in modules)
        if shape not in ways:  # motions do not depend on the motors
            ways[shape] = motion(arm)
        way = ways[shape]
        fits = way is not None and suitable(arm, modules, way)
        counts = [counts[0] + 1, counts[1] + (way is not None), counts[2] + fits]
        if fits and arm.mass < least:
            best, least = modules, arm.mass
    return best, *counts


def main() -> None:
    parser = argparse.ArgumentParser(description="Find the lightest arm of three joint modules for a path.")
    parser.add_argument("--lengths", type=float, nargs="+", default=LENGTHS, help="lengths of the modules, m")
    lengths = parser.parse_args().lengths
    choice = [Module(*parts) for parts in itertools.product(MOTORS, "yz", lengths)]

    start = time.perf_counter()
    best, count, reaching, fitting = search(choice)
    elapsed = time.perf_counter() - start
    print(f"{len(choice)} modules, {count:,} arms of {JOINTS}; {PAYLOAD.mass} kg from {START} m to {END} m")
    print(f"{reaching:,} follow the path, and in {fitting:,} of these the motors are strong and fast enough")
    print(f"{elapsed:.1f} s, {count / elapsed:,.0f} arms per second\n")
    if best is None:
        print("No arm is suitable; try longer modules.")
        return

    *_, (modules, arm) = ((one, tree) for one, tree in assemblies(best, sd.KinematicTree()) if one == best)
    way = motion(arm)
    torque = np.abs(arm.inverse_dynamics(way.q, way.qd, way.qdd)).max(axis=1)
    limits = np.array([module.motor.torque for module in modules])
    torque = torque[np.argmin((torque / limits).max(axis=1))]
    print(f"lightest: {arm.mass - PAYLOAD.mass:.2f} kg\n{'':10}motor  axis  length   torque    limit")
    for k, (module, found) in enumerate(zip(modules, torque, strict=True), 1):
        motor = module.motor
        print(
            f"module {k:<3}{motor.size:>5}{module.axis:>6}{module.length:7.2f} m{found:7.1f} N m{motor.torque:7.0f} N m"
        )


if __name__ == "__main__":
    main()
