"""Mechanisms with closed loops: four-bar, slider-crank and Bricard's, by Lagrange's equation of one freedom."""

import numpy as np
import pytest
import sympy as sp
from c_compiler import load, pointer
from cases import CENTRAL, norm
from mechanisms import LENGTHS, MASSES, bricard, four_bar, slider_crank, swept
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
