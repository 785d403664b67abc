"""Every quantity of the catalogue against Pinocchio's Python call: default, compiled, and 1000 states per call.

python benchmarks/quantities.py [robot ...]
"""

import sys
from typing import Any

import numpy as np
import pinocchio as pin
from clock import clock, machine, seconds_per_call, side_by_side
from robots import GROUPED, ROBOTS, Pair

from screwdyn.physics.quantities import CATALOGUE, Quantity

LOCAL = "pin.LOCAL"
# The corresponding call of Pinocchio, and its result if the call does not return it. p, u, b are q, v, a in its order.
THEIRS = {
    "mass_matrix": ("pin.crba(model, data, p)", ""),
    "coriolis_matrix": ("pin.computeCoriolisMatrix(model, data, p, u)", ""),
    "mass_and_coriolis": ("pin.crba(model, data, p); pin.computeCoriolisMatrix(model, data, p, u)", "data.M, data.C"),
    "dynamics": (
        "pin.crba(model, data, p); pin.computeCoriolisMatrix(model, data, p, u); "
        "pin.computeGeneralizedGravity(model, data, p)",
        "data.M, data.C, data.g",
    ),
    "gravity_vector": ("pin.computeGeneralizedGravity(model, data, p)", ""),
    "bias_force": ("pin.nonLinearEffects(model, data, p, u)", ""),
    "velocity_product": ("pin.nonLinearEffects(weightless, data, p, u)", ""),
    "inverse_dynamics": ("pin.rnea(model, data, p, u, b)", ""),
    "forward_dynamics": ("pin.aba(model, data, p, u, b)", ""),
    "forward_kinematics": (
        "pin.forwardKinematics(model, data, p); pin.updateFramePlacement(model, data, frame)",
        "data.oMf[frame].homogeneous",
    ),
    "link_poses": ("pin.framesForwardKinematics(model, data, p)", None),
    "link_twist": (
        f"pin.forwardKinematics(model, data, p, u); pin.getFrameVelocity(model, data, frame, {LOCAL})",
        f"pin.getFrameVelocity(model, data, frame, {LOCAL}).vector",
    ),
    "link_acceleration": (
        f"pin.forwardKinematics(model, data, p, u, b); pin.getFrameAcceleration(model, data, frame, {LOCAL})",
        f"pin.getFrameAcceleration(model, data, frame, {LOCAL}).vector",
    ),
    "jacobian": (f"pin.computeFrameJacobian(model, data, p, frame, {LOCAL})", ""),
    "jacobian_dot": (
        "pin.computeJointJacobiansTimeVariation(model, data, p, u); "
        f"pin.getFrameJacobianTimeVariation(model, data, frame, {LOCAL})",
        f"pin.getFrameJacobianTimeVariation(model, data, frame, {LOCAL})",
    ),
    "center_of_mass": ("pin.centerOfMass(model, data, p, False)", "data.com[0]"),
    "center_of_mass_velocity": ("pin.centerOfMass(model, data, p, u, False)", "data.vcom[0]"),
    "center_of_mass_jacobian": ("pin.jacobianCenterOfMass(model, data, p, False)", ""),
    "center_of_mass_bias_acceleration": ("pin.centerOfMass(model, data, p, u, zero, False)", "data.acom[0]"),
    "centroidal_momentum": ("pin.computeCentroidalMomentum(model, data, p, u)", "data.hg.vector"),
    "centroidal_momentum_matrix": ("pin.computeCentroidalMap(model, data, p)", ""),
    "centroidal_momentum_matrix_dot": ("pin.computeCentroidalMapTimeVariation(model, data, p, u)", "data.dAg"),
    "centroidal_momentum_rate": ("pin.computeCentroidalMomentumTimeVariation(model, data, p, u, b)", "data.dhg.vector"),
    # In Pinocchio about the centre of mass, here about the base's origin: times are comparable, results are not.
    "momentum": ("pin.computeCentroidalMomentum(model, data, p, u)", None),
    "kinetic_energy": ("pin.computeKineticEnergy(model, data, p, u)", ""),
    "potential_energy": ("pin.computePotentialEnergy(model, data, p)", None),
    "operational_inertia": (
        f"J = pin.computeFrameJacobian(model, data, p, frame, {LOCAL}); "
        "np.linalg.inv(J @ pin.computeMinverse(model, data, p) @ J.T)",
        None,
    ),
}
BATCH, REPEATS = 1000, 200
CONTRIBUTIONS = ("contribution", "subtree_contribution")
# Pinocchio does not include the mass welded to the base in these quantities.
CENTROIDAL = ("center", "centroidal", "momentum")


def call(entry: Quantity, subject: str, out: bool = False, many: bool = False) -> str:
    """The call of a quantity, for links in the frame "body", with or without ``out``."""
    given = {"tau": "a", "qd": "v", "qdd": "a", "link": "link", "frame": "'body'"}
    names = [x for x in entry.signature.parameters if x not in ("self", "wrenches")]
    arguments = [given.get(x, x) for x in names]
    if many:
        arguments = [x.upper() if x in "qva" else x for x in arguments]
    return f"{subject}.{entry.name}({', '.join(arguments)}{', out=out' if out else ''})"


def rearranged(shape: tuple[Any, ...], theirs: Any, order: list[int]) -> np.ndarray:
    """A result of Pinocchio in the order of screwdyn: angular parts first, columns in the order of its freedoms."""
    x, back = np.asarray(theirs), np.argsort(order)
    for axis, size in enumerate(shape):
        if size == "v":
            x = np.take(x, back, axis)
        elif size == 6:
            x = np.roll(x, 3, axis)
    return x


def check(entry: Quantity, pair: Pair, scope: dict[str, Any]) -> None:
    """Check that both results agree to 1e-9 of the largest entry."""
    statement, where = THEIRS[entry.name]
    fixed_mass = pair.model.inertias[0].mass > 0 and entry.name.startswith(CENTROIDAL)
    if where is None or fixed_mass:
        return
    exec(statement, scope)
    theirs, ours = eval(where or statement, scope), eval(call(entry, "tree"), scope)
    if len(entry.given) == 1:
        theirs, ours = (theirs,), (ours,)
    for result, x, y in zip(entry.given, ours, theirs, strict=True):
        y = rearranged(result.shape, y, pair.order)
        difference = f"{entry.name}: {x} in screwdyn, {y} in Pinocchio"
        assert np.abs(x - y).max() <= 1e-9 * max(1.0, np.abs(y).max()), difference


def compare(name: str) -> None:
    """The table of one robot."""
    rng, pair = np.random.default_rng(0), Pair(name)
    tree, model = pair.tree, pair.model
    link = max(tree.links, key=lambda name: len(tree.path(name)))
    fast = tree.compile(threads=1).wait()
    ours, theirs = pair.states(rng)
    many, _ = pair.states(rng, BATCH)
    weightless = model.copy()
    weightless.gravity = pin.Motion.Zero()
    scope = {"pin": pin, "np": np, "tree": tree, "fast": fast, "link": link, "model": model, "data": pair.data}
    scope |= {"weightless": weightless, "frame": model.getFrameId(link), "zero": np.zeros(tree.nv)}
    scope |= dict(zip("qvapub", [*ours, *theirs], strict=True)) | dict(zip("QVA", many, strict=True))
    print(f"{name}: nq {tree.nq}, nv {tree.nv}; µs per call, and per state for {BATCH} states in one compiled call")
    print(f"  {'':34s}{'default':>10s}{'compiled':>10s}{'Pinocchio':>10s}{'ratio':>8s}{'compiled':>10s}{'batch':>9s}")
    for entry in CATALOGUE.values():
        for batched in (False, True):  # compiled in the background at the first call
            eval(call(entry, "fast", many=batched), scope)
            fast.wait()
        state = eval(call(entry, "fast"), scope)
        scope["out"] = state if entry.results[0].shape else np.array(state)
        default, out = call(entry, "tree"), call(entry, "fast", out=entry.name not in CONTRIBUTIONS)
        batch = clock(call(entry, "fast", many=True), scope)
        each = 1e6 * seconds_per_call(batch, 5) / BATCH
        if entry.name in THEIRS:
            check(entry, pair, scope)
            other = clock(THEIRS[entry.name][0], scope)
            a, b, ratio = side_by_side(clock(default, scope), other, REPEATS)
            c, _, share = side_by_side(clock(out, scope), other, REPEATS)
            verdict = "" if ratio <= 1 and share <= 0.5 else "  not met"
            times = f"{1e6 * a:10.2f}{1e6 * c:10.2f}{1e6 * b:10.2f}{ratio:8.2f}{share:10.3f}"
        else:
            a, c = seconds_per_call(clock(default, scope)), seconds_per_call(clock(out, scope))
            times, verdict = f"{1e6 * a:10.2f}{1e6 * c:10.2f}{'':28s}", ""
        print(f"  {entry.name:34s}{times}{each:9.3f}{verdict}", flush=True)
    every = 1e6 * seconds_per_call(clock("tree.contributions(q, v)", scope))
    print(f"  {'contributions of all links':34s}{every:10.2f}\n", flush=True)


if __name__ == "__main__":
    print(f"{machine()}, pinocchio {pin.__version__}; targets: ratio 1 by default, 0.5 compiled\n")
    for robot in sys.argv[1:] or [*ROBOTS, *GROUPED]:
        compare(robot)
