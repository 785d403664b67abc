"""Mechanisms with closed loops: four-bar, slider-crank and Bricard's, by Lagrange's equation of one freedom."""

import numpy as np
import pytest
import sympy as sp
from c_compiler import load, pointer
from cases import CENTRAL, derivative, norm
from mechanisms import LENGTHS, MASSES, bricard, driven_by_the_crank, four_bar, moving_bricard, slider_crank, swept
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd
from screwdyn.screws.screw import Ad, inverse


@pytest.mark.parametrize("mechanism", [four_bar, slider_crank])
def test_lagrange_by_hand(mechanism):
    """m(y) ÿ + ½ m′(y) ẏ² + U′(y) = τ, with the mass and the potential by differences of assembled configurations."""
    tree, (q, qd) = mechanism()
    assert tree.freedoms(q) == 1
    assert_allclose(tree.gap(q), 0, rtol=0, atol=1e-12)
    assert_allclose(tree.constraint_jacobian(q) @ qd, 0, rtol=0, atol=1e-12)
    at, h, tau = swept(tree, q, "crank"), 1e-2, 1.3
    mass, _ = at(q[0])
    slope = sum(w * (np.array(at(q[0] + k * h)) - at(q[0] - k * h)) / h for k, w in CENTRAL)
    expected = (tau - 0.5 * slope[0] * qd[0] ** 2 - slope[1]) / mass
    qdd = tree.forward_dynamics(q, qd, [tau, 0, 0])
    assert_allclose(qdd[0], expected, rtol=1e-7)
    assert_allclose(tree.constraint_jacobian(q) @ qdd, -tree.constraint_jacobian_dot(q, qd) @ qd, rtol=0, atol=1e-9)
    found = tree.reduced(q, qd, ["crank"])
    assert found.independent == ("crank",)
    assert_allclose([found.M[0, 0], found.C[0, 0], found.g[0]], [mass, slope[0] * qd[0] / 2, slope[1]], rtol=1e-7)
    assert_allclose(found.Z[:, 0] * qd[0], qd, rtol=0, atol=1e-12)
    assert_allclose(found.Z @ qdd[:1] + found.Z_dot @ qd[:1], qdd, rtol=0, atol=1e-10)


def test_four_bar_by_hand():
    """Angles, rates and m(y) by the closure of the triangle between the crank's pin and the rocker's pivot."""
    tree, (q, qd) = four_bar()
    crank, coupler, rocker, ground = LENGTHS

    def angles(y):
        x, z = ground - crank * np.cos(y), -crank * np.sin(y)
        d = np.sqrt(x * x + z * z)
        a = np.arccos((coupler**2 + d * d - rocker**2) / (2 * coupler * d))
        b = np.arccos((rocker**2 + d * d - coupler**2) / (2 * rocker * d))
        base = np.arctan(z / x)
        return np.array([base + a, base + np.pi - b])

    assert_allclose([q[0] + q[1], q[2]], angles(q[0]), rtol=0, atol=1e-12)
    rates = np.imag(angles(q[0] + 1e-30j)) / 1e-30
    assert_allclose([qd[0] + qd[1], qd[2]], rates * qd[0], rtol=0, atol=1e-12)
    c, r = rates
    thick = 0.02**2 / 12
    tensor = [m * (length**2 / 3 + thick) for m, length in zip(MASSES, LENGTHS, strict=False)]
    mass = tensor[0] + tensor[1] * c**2 + tensor[2] * r**2
    mass += MASSES[1] * (crank**2 + crank * coupler * c * np.cos(q[1]))
    assert_allclose(tree.reduced(q, qd, ["crank"]).M, mass, rtol=1e-12)


def test_bricard():
    """Five pins and a sixth that closes the loop leave one freedom, because one constraint is redundant."""
    tree = bricard()
    q = tree.assemble(np.zeros(5))
    assert_allclose(q, 0, rtol=0, atol=1e-12)
    assert len(tree.gap(q)) == 5
    assert tree.freedoms(q) == 1
    q, qd = tree.project([0.2, 0, 0, 0, 0], [1.5, 0, 0, 0, 0], hold=["bar0"])
    assert tree.freedoms(q) == 1
    assert q[0] == 0.2
    at, h = swept(tree, q, "bar0"), 1e-2
    mass, _ = at(q[0])
    slope = sum(w * (np.array(at(q[0] + k * h)) - at(q[0] - k * h)) / h for k, w in CENTRAL)
    qdd = tree.forward_dynamics(q, qd, [5.0, 0, 0, 0, 0])
    assert_allclose(qdd[0], (5.0 - 0.5 * slope[0] * qd[0] ** 2 - slope[1]) / mass, rtol=1e-6)
    found = tree.constraint_wrenches(q, qd, [5.0, 0, 0, 0, 0])
    assert list(found.undetermined) == ["pin"]
    assert found.undetermined["pin"].shape == (6, 1)


@pytest.mark.parametrize("mechanism", [four_bar, slider_crank])
def test_reactions_replace_the_joint(mechanism):
    """With the loop open and the reactions as external wrenches, the tree has the same accelerations."""
    tree, (q, qd) = mechanism()
    tau = np.array([1.3, -0.2, 0.4])
    (name,) = tree.loops
    loop, found = tree.loop(name), tree.constraint_wrenches(q, qd, tau)
    F = found.wrenches[name]
    T = inverse(tree.forward_kinematics(loop.to, q)) @ tree.forward_kinematics(loop.link, q)
    cut = tree.copy()
    cut.open(name)
    wrenches = {loop.link: F, loop.to: -Ad(inverse(T)).T @ F}
    qdd = tree.forward_dynamics(q, qd, tau)
    assert_allclose(cut.forward_dynamics(q, qd, tau, wrenches=wrenches), qdd, rtol=0, atol=1e-10 * (1 + norm(qdd)))
    assert norm(F) > 1
    assert_allclose(loop.joint.screws.T @ F, 0, rtol=0, atol=1e-10 * norm(F))
    # A planar mechanism leaves a force along z and the moments about x and y to the bearings.
    assert found.undetermined[name].shape == (6, 3)
    assert_allclose(found.undetermined[name][[2, 3, 4]], 0, rtol=0, atol=1e-12)


def test_external_wrenches():
    tree, (q, qd) = four_bar()
    F = np.array([0, 0, 0.7, 1.0, -2.0, 0])
    added = tree.jacobian("rocker", q, "body").T @ F
    tau = np.array([1.0, 0, 0])
    expected = tree.forward_dynamics(q, qd, tau + added)
    assert_allclose(tree.forward_dynamics(q, qd, tau, wrenches={"rocker": F}), expected, rtol=1e-12)


def test_energy_is_conserved_by_the_reactions():
    """The power of gravity and motors is the rate of the kinetic energy."""
    tree, (q, qd) = four_bar()
    qdd = tree.forward_dynamics(q, qd, [1.3, 0, 0])
    M, C, g = tree.dynamics(q, qd)
    assert_allclose(qd @ (M @ qdd + C @ qd + g), 1.3 * qd[0], rtol=1e-12)


def test_assembly_says_why_it_fails():
    tree, (q, _) = four_bar()
    with pytest.raises(sd.errors.LoopError, match=r"loop 'pin' is open by .* mm along"):
        tree.assemble([0.7, -0.2, 1.5], hold=["crank", "coupler", "rocker"])
    with pytest.raises(sd.UnknownNameError, match="crnk"):
        tree.assemble(q, hold=["crnk"])
    with pytest.raises(sd.errors.LoopError, match="leave 1 of 3 freedoms"):
        tree.reduced(q, np.zeros(3), ["crank", "rocker"])
    assert_array_equal(tree.assemble(q), q)


def test_assembly_where_a_constraint_hardly_changes():
    """The pin on the nut moves along its helix, and only at second order towards the axis."""
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.box(1, (0.2, 0.1, 0.1)), to="base", joint=sd.helical("z", 0.3), name="nut")
    at = tree.forward_kinematics("nut", [0.5])
    tree.close("nut", to="base", joint=sd.spherical((0.2, 0.002, 0)), at=at, name="pin")
    for start in (-1.0, 0.0, 1.0, 2.0):
        assert_allclose(tree.assemble([start]), 0.5, atol=1e-10)


def test_code_of_trees_that_differ_in_their_loops_only():
    tree, (q, qd) = four_bar()
    fast, cut = tree.compile(), tree.copy()
    cut.open("pin")
    tau, out = np.array([1.3, 0, 0]), np.empty(3)
    for other, of in ((cut.compile().wait(), cut), (fast.wait(), tree)):
        expected = of.forward_dynamics(q, qd, tau)
        assert other.forward_dynamics(q, qd, tau, out=out) is out
        assert_allclose(out, expected, rtol=0, atol=1e-12 * norm(expected))
        assert_allclose(other.mass_matrix(q), tree.mass_matrix(q), rtol=1e-12)


def test_every_form_of_the_constraints(tmp_path):
    """C, machine code, the closed form and differences of the default kernels."""
    tree, (q, qd) = four_bar()
    J, J_dot = tree.constraint_jacobian(q), tree.constraint_jacobian_dot(q, qd)
    library = load(tree.c_source(["constraint_jacobian", "constraint_jacobian_dot"]), tmp_path)
    found = np.empty((2, *J.shape))
    library.constraint_jacobian(pointer(q), pointer(found[0]))
    library.constraint_jacobian_dot(pointer(q), pointer(qd), pointer(found[1]))
    assert_allclose(found, [J, J_dot], rtol=0, atol=1e-13)
    fast = tree.compile()
    fast.constraint_jacobian(q), fast.constraint_jacobian_dot(q, qd)
    fast.wait()
    assert_allclose(fast.constraint_jacobian(q), J, rtol=0, atol=1e-13)
    assert_allclose(fast.constraint_jacobian_dot([q, q], qd), [J_dot, J_dot], rtol=0, atol=1e-13)
    along = np.moveaxis(tree.derivatives.constraint_jacobian(q), -1, 0)
    assert_allclose(np.tensordot(qd, along, 1), J_dot, rtol=0, atol=1e-12)
    assert tree.operation_count("constraint_jacobian")["mul"] > 0
    tree.open("pin")
    with pytest.raises(sd.ScrewdynError, match="the tree has no loops"):
        tree.c_source(["constraint_jacobian"])


def test_four_bar_in_symbols():
    """The rows of the forces that the pin exerts on the rocker, along its axes x and y, where the loop is closed."""
    a, b, c, d = sp.symbols("a b c d", positive=True)
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.point(1, (1, 0, 0)), to="base", joint=sd.revolute("z"), name="crank")
    tree.attach(sd.Inertia.point(1, (1, 0, 0)), to="crank", joint=sd.revolute("z"), at=(a, 0, 0), name="coupler")
    tree.attach(sd.Inertia.point(1, (1, 0, 0)), to="base", joint=sd.revolute("z"), at=(d, 0, 0), name="rocker")
    tree.close("rocker", to="coupler", joint=sd.revolute("z", (c, 0, 0)), at=(b - c, 0, 0))
    form = tree.symbolic()
    x, y, z = form.q
    # The pin moves with the crank by a at its end, with the coupler by b, and with the rocker by c.
    along = [[a * sp.sin(x - z) + b * sp.sin(x + y - z), b * sp.sin(x + y - z), 0]]
    along += [[-a * sp.cos(x - z) - b * sp.cos(x + y - z), -b * sp.cos(x + y - z), c]]
    planar = form.constraint_jacobian().extract([2, 3], [0, 1, 2])
    _, (q, _) = four_bar()
    values = dict(zip((x, y, z, a, b, c, d), (*q, *np.array(LENGTHS)), strict=True))
    assert max(abs(v) for v in (planar - sp.Matrix(along)).subs(values)) < 1e-14


def test_a_light_loop_beside_a_heavy_one():
    """Two blocks of a tonne are welded together, and beside them two of five grams: no pair feels the other."""

    def pair(tree, mass, size, name):
        for k in range(2):
            box = sd.Inertia.box(mass, (size, size, size))
            tree.attach(box, to="base", joint=sd.free(), at=(2 * size * k, 0, 0), name=f"{name}{k}")
        tree.close(f"{name}1", to=f"{name}0", at=(2 * size, 0, 0), name=name)
        return tree

    def closing(tree, state):
        tree.open("heavy")
        return tree.close("heavy1", to="heavy0", at=(4, 0, 0), name="heavy", state=state)

    heavy = pair(sd.KinematicTree(), 1e3, 2.0, "heavy")
    both = pair(heavy.copy(), 5e-3, 0.01, "light")
    q, rest, tau, qd = both.neutral(), np.zeros(24), np.eye(24)[0], np.zeros(24)
    qd[:12] = np.arange(12) / 10
    assert both.freedoms(q) == len(both.reduced(q, rest).independent) == 12
    expected = heavy.project(q[:14], qd[:12])[1]
    assert_allclose(both.project(q, qd)[1][:12], expected, rtol=0, atol=1e-13)
    found, alone = both.constraint_wrenches(q, rest, tau), heavy.constraint_wrenches(q[:14], rest[:12], tau[:12])
    assert_allclose(found.wrenches["heavy"], alone.wrenches["heavy"], rtol=0, atol=1e-12)
    lost = closing(heavy, sd.State(heavy, q[:14], qd[:12])).energy_lost
    assert_allclose(closing(both, sd.State(both, q, qd)).energy_lost, lost, rtol=1e-12)


def test_input_that_is_not_one_state():
    tree, (q, qd) = four_bar()
    tau, two = np.zeros(3), np.zeros((2, 3))
    for what in ("q", "qd", "tau"):
        given = {"q": q, "qd": qd, "tau": tau} | {what: two}
        with pytest.raises(sd.ShapeError, match=rf"{what} must be that of one state; got a batch of shape \(2,\)"):
            tree.constraint_wrenches(**given)
        del given["tau"]
        for function in (tree.project, tree.reduced) if what != "tau" else ():
            with pytest.raises(sd.ShapeError, match=f"{what} must be that of one state"):
                function(**given)
    for function in (tree.assemble, tree.freedoms):
        with pytest.raises(sd.ShapeError, match="q must be that of one state"):
            function(two)
    for wrench in ("two hands", np.zeros(5), [np.nan] * 6):
        with pytest.raises(sd.ShapeError, match="the wrench in loop 'pin' must be six finite numbers"):
            tree.squeezing_torque(q, qd, qd, {"pin": wrench})


def test_one_freedom_by_its_name():
    tree, (q, qd) = four_bar()
    assert_array_equal(tree.assemble(q + 0.1, hold="crank"), tree.assemble(q + 0.1, hold=["crank"]))
    assert tree.reduced(q, qd, "crank").independent == ("crank",)


def test_rates_that_the_loops_do_not_allow():
    tree, (q, qd) = four_bar()
    with pytest.raises(sd.LoopError, match="the loops do not allow the rates that are held"):
        tree.project(q, qd + np.array([0, 1, 0]), hold=["crank", "coupler"])
    assert_allclose(tree.project(q, qd, hold=["crank", "coupler"])[1], qd, rtol=0, atol=1e-12)


def two_hands():
    """Two slides along x of 1 and 2 kg; the left one holds a block of 3 kg, which the right one holds as well."""
    tree = sd.KinematicTree(gravity=(0, 0, -9.81))
    for name, mass in (("left", 1.0), ("right", 2.0)):
        tree.attach(sd.Inertia.point(mass), to="base", joint=sd.prismatic("x"), name=name)
    tree.attach(sd.Inertia.point(3.0), to="left", at=(0.5, 0, 0), name="block")
    tree.close("right", to="block", name="hold")
    return tree, tree.assemble([0.0, 0.4])


@pytest.mark.parametrize("mechanism", [four_bar, slider_crank, moving_bricard])
def test_shortest_torques_of_a_motion(mechanism):
    tree, (q, qd) = mechanism()
    given = np.linspace(1.3, -0.4, tree.nv)
    qdd = tree.forward_dynamics(q, qd, given)
    tau = tree.inverse_dynamics(q, qd, qdd)
    assert_allclose(tree.forward_dynamics(q, qd, tau), qdd, rtol=0, atol=1e-10 * norm(qdd))
    assert norm(tau) < norm(given)
    assert_allclose(tau @ (given - tau), 0, rtol=0, atol=1e-11 * norm(given) ** 2)


def test_motor_of_a_four_bar_by_lagrange():
    """τ = m ÿ + ½ m′ ẏ² + U′ with m(y) and U(y) by differences of assembled configurations."""
    tree, (q, qd) = driven_by_the_crank()
    at, h, wanted = swept(tree, q, "crank"), 1e-2, -3.0
    mass, _ = at(q[0])
    slope = sum(w * (np.array(at(q[0] + k * h)) - at(q[0] - k * h)) / h for k, w in CENTRAL)
    found = tree.reduced(q, qd, ["crank"])
    qdd = found.Z @ [wanted] + found.Z_dot @ qd[:1]
    expected = mass * wanted + 0.5 * slope[0] * qd[0] ** 2 + slope[1]
    assert_allclose(tree.inverse_dynamics(q, qd, qdd), [expected, 0, 0], rtol=1e-7)


def test_two_hands_press_on_a_block():
    """By hand: m a = τ ± the chosen force, and without a choice the forces of both hands are equal."""
    tree, q = two_hands()
    zero, qdd = np.zeros(2), np.full(2, 0.7)
    assert_allclose(tree.inverse_dynamics(q, zero, qdd), [2.1, 2.1], rtol=1e-12)
    # The block pushes the right hand outwards by 5 N, so the left motor gives 5 N more and the right one 5 N less.
    pressed = {"hold": [0, 0, 0, 5.0, 0, 0]}
    assert_allclose(tree.squeezing_torque(q, zero, qdd, pressed), [4 * 0.7 + 5, 2 * 0.7 - 5], rtol=1e-12)
    wrench = tree.constraint_wrenches(q, zero, [4 * 0.7 + 5, 2 * 0.7 - 5]).wrenches["hold"]
    assert_allclose(wrench[3], 5.0, rtol=1e-12)
    pushed = tree.squeezing_torque(q, zero, qdd, pressed, wrenches={"block": [0, 0, 0, 1.0, 0, 0]})
    assert_allclose(pushed, [4 * 0.7 + 5 - 1, 2 * 0.7 - 5], rtol=1e-12)


def test_without_loops_nothing_is_squeezed():
    arm, q = sd.robots.two_link(), np.array([0.3, -0.7])
    assert_allclose(arm.squeezing_torque(q, q, q, {}), arm.inverse_dynamics(q, q, q), rtol=1e-12)


def test_batches_and_external_wrenches():
    tree, (q, qd) = four_bar()
    qdd = tree.forward_dynamics(q, qd, [1.3, 0, 0])
    F = np.array([[0, 0, 0.7, 1.0, -2.0, 0], np.zeros(6)])
    found = tree.inverse_dynamics(q, qd, [qdd, qdd], wrenches={"rocker": F})
    assert_array_equal(found[1], tree.inverse_dynamics(q, qd, qdd))
    again = tree.forward_dynamics(q, qd, found[0], wrenches={"rocker": F[0]})
    assert_allclose(again, qdd, rtol=0, atol=1e-10 * norm(qdd))
    assert_array_equal(tree.compile().inverse_dynamics([q, q], qd, qdd)[0], found[1])


def test_accelerations_that_open_a_loop():
    tree, (q, qd) = four_bar()
    qdd = tree.forward_dynamics(q, qd, [1.3, 0, 0])
    with pytest.raises(sd.LoopError, match="these accelerations open 'pin'"):
        tree.inverse_dynamics(q, qd, qdd + np.eye(3)[0])


def test_accelerations_that_motors_cannot_give():
    tree, (q, qd) = driven_by_the_crank(motor=False)
    free = tree.forward_dynamics(q, qd, np.zeros(3))
    assert_array_equal(tree.inverse_dynamics(q, qd, free), 0)
    driven = tree.forward_dynamics(q, qd, [1.0, 0, 0])
    with pytest.raises(
        sd.LoopError, match=r"the motors \(none\) cannot give these accelerations: the passive joints 'crank'"
    ):
        tree.inverse_dynamics(q, qd, driven)


@pytest.mark.parametrize(
    ("squeeze", "error", "message"),
    [
        ({"pin": [0, 0, 1.0, 0, 0, 0]}, sd.LoopError, "revolute joint of loop 'pin' yields to the wrench"),
        ({"pim": [0.0] * 6}, sd.UnknownNameError, "'pim'.*'pin'"),
        ({"pin": [0.0] * 5}, sd.ShapeError, "must be six finite numbers"),
        ([0.0] * 6, sd.ShapeError, "squeeze must map names of loops"),
    ],
)
def test_wrong_wrenches(squeeze, error, message):
    tree, (q, qd) = four_bar()
    with pytest.raises(error, match=message):
        tree.squeezing_torque(q, qd, np.zeros(3), squeeze)


def test_accelerations_that_are_rounding():
    """Forward dynamics leaves them at rest in balance, and in a structure that cannot move."""
    tree, (q, _) = driven_by_the_crank()
    rest, rounding = np.zeros(3), np.full(3, 1e-14)
    assert_allclose(tree.inverse_dynamics(q, rest, rounding), tree.holding_torque(q), rtol=1e-9)
    tree.close("coupler", to="base", at=tree.forward_kinematics("coupler", q), name="clamp")
    assert tree.freedoms(q) == 0
    assert_array_equal(tree.inverse_dynamics(q, rest, rounding), 0)


INERTIA, HANDS = np.array([0.2, 0.3, 0.4]), (1.5, 2.5)


def two_free_hands():
    """Two bodies that fly freely, of which the second is welded to the first at (0.3, 0, 0)."""
    tree = sd.KinematicTree()
    for name, mass in zip(("left", "right"), HANDS, strict=True):
        tree.attach(sd.Inertia(mass, 0, np.diag(INERTIA)), to="base", joint=sd.free(), name=name)
    tree.close("right", to="left", at=(0.3, 0, 0), name="hold")
    return tree, tree.assemble(tree.neutral())


@pytest.mark.slow
def test_of_two_welded_bodies():
    """Together they are one rigid body, whose spatial inertia at its centre of mass is block-diagonal."""
    tree, q = two_free_hands()
    mass, at = sum(HANDS), 0.3 * HANDS[1] / sum(HANDS)
    beyond = HANDS[0] * at**2 + HANDS[1] * (0.3 - at) ** 2
    expected = np.diag([*(2 * INERTIA + [0, beyond, beyond]), mass, mass, mass])
    shift = np.eye(6)
    shift[3:, :3] = -np.array([[0, 0, 0], [0, 0, -at], [0, at, 0]])  # velocity at (at, 0, 0) from that at the origin
    expected = shift.T @ expected @ shift
    found = tree.operational_inertia("left", q, "body")
    assert_allclose(found, expected, rtol=0, atol=1e-12)
    fast = tree.compile().wait()
    assert_array_equal(fast.operational_inertia("left", [q, q], "body"), [found, found])
    assert tree.operational_inertia("left", np.empty((0, tree.nq))).shape == (0, 6, 6)


def test_confined():
    tree, (q, _) = four_bar()
    with pytest.raises(sd.errors.SingularAttachmentError, match="'rocker' cannot move in all six directions"):
        tree.operational_inertia("rocker", q)
    with pytest.raises(sd.UnknownNameError, match="rockr"):
        tree.operational_inertia("rockr", q)
    with pytest.raises(sd.ShapeError):
        tree.operational_inertia("rocker", q[:2])


@pytest.mark.parametrize("mechanism", [four_bar, slider_crank])
def test_along_all_directions(mechanism):
    """Also along those that open the loops."""
    tree, (q, qd) = mechanism()
    tau = np.array([1.3, -0.4, 0.7])
    found = tree.derivatives.forward_dynamics(q, qd, tau)
    functions = (
        lambda x: tree.forward_dynamics(x, qd, tau),
        lambda x: tree.forward_dynamics(q, x, tau),
        lambda x: tree.forward_dynamics(q, qd, x),
    )
    for exact, f, at in zip(found, functions, (q, qd, tau), strict=True):
        expected = np.stack([derivative(f, at, along) for along in np.eye(3)], axis=-1)
        assert_allclose(exact, expected, rtol=0, atol=1e-9 * norm(expected))


def test_batches_and_out():
    tree, (q, qd) = four_bar()
    tau = np.array([1.3, -0.4, 0.7])
    one = tree.derivatives.forward_dynamics(q, qd, tau)
    out = tuple(np.empty((2, 3, 3)) for _ in range(3))
    found = tree.derivatives.forward_dynamics([q, q], qd, tau, out=out)
    for single, batch, array in zip(one, found, out, strict=True):
        assert batch is array
        assert_array_equal(batch[0], batch[1])
        assert_allclose(batch[0], single, rtol=0, atol=1e-13 * norm(single))
