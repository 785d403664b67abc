"""Everything public either is right for a tree with loops or raises LoopError and changes nothing."""

import numpy as np
import pytest

import screwdyn as sd
from screwdyn.forms.compiled import Compiled
from screwdyn.forms.derivatives import Derivatives
from screwdyn.forms.symbolic import Symbolic
from screwdyn.physics.quantities import CATALOGUE

q = np.array([0.3, -0.4, 0.9])


def with_loop():
    """A crank, a coupler and a rocker, and a pin between the last two that closes where they are in q."""
    tree = sd.KinematicTree(gravity=(0, -9.81, 0))
    body = sd.Inertia.box(1.0, (1, 0.1, 0.1), com=(0.5, 0, 0))
    for name, to, x in (("crank", "base", 0), ("coupler", "crank", 1), ("rocker", "base", 2)):
        tree.attach(body, to=to, joint=sd.revolute("z"), at=(x, 0, 0), name=name)
    away = np.linalg.inv(tree.forward_kinematics("coupler", q)) @ tree.forward_kinematics("rocker", q)
    tree.close("rocker", to="coupler", joint=sd.revolute("z", (1, 0, 0)), at=away, name="pin")
    return tree


# What would ignore the forces in the loops.
REFUSED = {
    "symbolic operational_inertia": lambda tree: tree.symbolic().operational_inertia("rocker"),
    "symbolic inverse_dynamics": lambda tree: tree.symbolic().inverse_dynamics(),
    "Symbolic.shared": lambda tree: tree.symbolic().shared("inverse_dynamics"),
    "Symbolic.lambdify": lambda tree: tree.symbolic().lambdify("inverse_dynamics"),
    "Symbolic.jax": lambda tree: tree.symbolic().jax("inverse_dynamics"),
    "Symbolic.casadi": lambda tree: tree.symbolic().casadi("inverse_dynamics"),
    "operation_count": lambda tree: tree.operation_count("inverse_dynamics"),
    "c_source of τ": lambda tree: tree.c_source(["inverse_dynamics"]),
    "c_source with optional links": lambda tree: tree.c_source(["mass_matrix"], optional=["rocker"]),
    "to_c_table": lambda tree: tree.to_c_table("rocker"),
    "derivatives of τ": lambda tree: tree.derivatives.inverse_dynamics(q, q, q),
    "Derivatives.regressor": lambda tree: tree.derivatives.regressor(q, q, q),
    "sd.identify": lambda tree: sd.identify(tree, "rocker", [q], [q], [q], [q]),
    "sd.identification": lambda tree: sd.identification.base_parameters(tree),
    "sd.formulations": lambda tree: sd.formulations.newton_euler(tree),
    "sd.selection": lambda tree: sd.selection.compare({"a": tree}),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_would_ignore_the_loops_is_refused(what):
    tree = with_loop()
    before = tree.topology
    with pytest.raises(sd.LoopError, match=r"because it would ignore the forces in 'pin'; (open the|use |deriv)"):
        REFUSED[what](tree)
    assert tree.topology is before


# Functions of the tree alone, which loops do not change: the same as for the tree whose loops are open.
UNCHANGED = {
    **{name: None for name, entry in CATALOGUE.items() if not name.startswith("constraint_jacobian")},
    "active": lambda tree: tree.active,
    "impulse_response": lambda tree: tree.impulse_response(q, q),
    "joint_momentum": lambda tree: tree.joint_momentum(q, q),
    "actuation_matrix": lambda tree: tree.actuation_matrix,
    "at": lambda tree: [*tree.at(q, q).contributions(), tree.at(q, q).M],
    "base": lambda tree: tree.base,
    "contributions": lambda tree: tree.contributions(q, q),
    "coordinates": lambda tree: tree.coordinates,
    "difference": lambda tree: tree.difference(q, 2 * q),
    "explain": lambda tree: str(tree.explain("rocker", q)),
    "free_symbols": lambda tree: tree.free_symbols,
    "gravity": lambda tree: tree.gravity,
    "integrate": lambda tree: tree.integrate(q, q),
    "joint": lambda tree: tree.joint("rocker"),
    "joint_force": lambda tree: tree.joint_force(q, q),
    "joints": lambda tree: tree.joints,
    "link": lambda tree: tree.link("rocker"),
    "links": lambda tree: tree.links,
    "lock_of": lambda tree: tree.lock_of("rocker"),
    "locked": lambda tree: tree.locked,
    "mass": lambda tree: tree.mass,
    "neutral": lambda tree: tree.neutral(),
    "nq": lambda tree: tree.nq,
    "nv": lambda tree: tree.nv,
    "parent": lambda tree: tree.parent("coupler"),
    "partition": lambda tree: tree.partition(q, q),
    "passive": lambda tree: tree.passive,
    "joint_of": lambda tree: tree.joint_of("rocker"),
    "link_of": lambda tree: tree.link_of(tree.joint_of("rocker")),
    "path": lambda tree: tree.path("coupler"),
    "position_rate": lambda tree: tree.position_rate(q, q),
    "positions": lambda tree: tree.positions,
    "random_configuration": lambda tree: tree.random_configuration(np.random.default_rng(0)),
    "resolve": lambda tree: tree.resolve("rocker"),
    "screw_system": lambda tree: tree.screw_system().basis,
    "shapes": lambda tree: tree.shapes("rocker"),
    "subtree": lambda tree: tree.subtree("crank"),
    "system_order": lambda tree: tree.system_order("coupler"),
    "wrench_torque": lambda tree: tree.wrench_torque(q, {"rocker": np.arange(6.0)}),
    "Derivatives.mass_matrix_dot": lambda tree: tree.derivatives.mass_matrix_dot(q, q),
    "Derivatives.parameters": lambda tree: tree.derivatives.parameters(),
}
del UNCHANGED["forward_dynamics"], UNCHANGED["inverse_dynamics"], UNCHANGED["operational_inertia"]


def called(tree, name):
    """The value of a function of the catalogue, or why there is none in this configuration."""
    entry = CATALOGUE[name]
    try:
        return getattr(tree, name)(*(["rocker"] if "link" in entry.parameters else []), *[q] * len(entry.arguments))
    except sd.SingularAttachmentError as error:
        return str(error)


@pytest.mark.parametrize("name", UNCHANGED)
def test_what_loops_do_not_change(name):
    tree = with_loop()
    cut = tree.copy()
    cut.open("pin")
    closed, opened = (UNCHANGED[name](x) if UNCHANGED[name] else called(x, name) for x in (tree, cut))
    with np.printoptions(floatmode="unique"):
        assert repr(closed) == repr(opened)


# What knows loops, or carries them along; the tests of the modules compare its results.
OF_LOOPS = {"assemble", "close", "constraint_jacobian", "constraint_jacobian_dot", "constraint_wrenches"}
OF_LOOPS |= {"equilibrium", "holding_torque", "inverse_kinematics", "linearize", "Derivatives.forward_dynamics"}
OF_LOOPS |= {"forward_dynamics", "freedoms", "gap", "grasp", "inverse_dynamics", "lock", "loop", "loops", "move"}
OF_LOOPS |= {"weld", "unweld"}
OF_CONTACTS = {"touch", "part", "contacts", "contact", "contact_gaps", "contact_rows", "separate"}
OF_CONTACTS |= {"contact_jacobian", "contact_drift", "hull"}
OF_LOOPS |= {"open", "operational_inertia", "project", "reduced", "replace_joint", "squeezing_torque"}
OF_LOOPS |= {"Compiled.rollout"}
CARRIED = {"attach", "attached", "copy", "detach", "from_graph", "from_json", "graph", "release", "set_inertia"}
CARRIED |= {"reroot", "without_friction"}
CARRIED |= {"from_mjcf", "from_urdf", "set_shapes", "subs", "to_json", "to_mjcf", "to_urdf", "topology"}
CARRIED |= {"transaction", "unlock"}
# Files without loops, and the objects of other forms, whose functions are in the tables above.
WITHOUT = {"from_dh", "from_pinocchio", "reference_poses"}
OBJECTS = {
    "compile",
    "derivatives",
    "model",
    "revision",
    "symbolic",
    "Compiled.compiled",
    "Compiled.ready",
    "Compiled.wait",
}
# Pictures show links and joints of the tree.
PICTURES = {"draw", "show"}


def public(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


def test_nothing_public_is_forgotten():
    tables = {name.split()[0] for name in REFUSED} | set(UNCHANGED)
    known = tables | OF_LOOPS | OF_CONTACTS | CARRIED | WITHOUT | OBJECTS | PICTURES
    of_trees = public(sd.KinematicTree)
    others = {f"{kind.__name__}.{x}" for kind in (Compiled, Derivatives, Symbolic) for x in public(kind) - of_trees}
    assert of_trees | others <= known


def test_compiled_trees_choose_the_forces_of_motors_with_the_wrenches():
    """Of all torques for the motion under the wrenches the least ones, as of the tree."""
    tree = with_loop()
    wrenches, rest = {"coupler": [0.0, 0, 2, 5, -3, 0]}, np.zeros(3)
    expected = tree.inverse_dynamics(q, rest, rest, wrenches)
    fast = tree.compile().wait()
    out = np.empty(3)
    np.testing.assert_allclose(fast.inverse_dynamics(q, rest, rest, wrenches), expected, rtol=1e-12)
    assert fast.inverse_dynamics(q, rest, rest, wrenches, out=out) is out
    np.testing.assert_allclose(out, expected, rtol=1e-12)
    several = fast.inverse_dynamics(q, rest, rest, {"coupler": np.tile(wrenches["coupler"], (4, 1))})
    np.testing.assert_allclose(several, np.tile(expected, (4, 1)), rtol=1e-12)


def test_a_tree_without_friction_keeps_its_loops():
    tree = with_loop()
    assert tree.without_friction().loops == tree.loops != ()
