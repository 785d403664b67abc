"""Functions for other tools return the values of the tree."""

import sys

import numpy as np
import pytest
import sympy as sp
from cases import FUNCTIONS

import screwdyn as sd
from screwdyn.physics.quantities import ARGUMENTS, CATALOGUE
from screwdyn.testing import random_tree

VALUES = dict(a1=0.3, a2=0.25, l1=0.1, l2=0.12, m1=3.0, m2=1.5, I1=0.05, I2=0.02, g=9.81)


def states(rng, n):
    return dict(zip(("q", "qd", "qdd", "tau"), rng.uniform(-2, 2, (4, n)), strict=True))


def parametric():
    tree = sd.robots.pelican(**{name: sp.Symbol(name) for name in VALUES})
    return tree, tree.subs(VALUES)


def agrees(made, numeric, function, state, *parameters):
    given = [state[group] for group in FUNCTIONS[function]]
    expected = getattr(numeric, function)(*given)
    actual = np.asarray(made(*given, *parameters), dtype=float)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-11 * abs(expected).max())


@pytest.mark.slow
@pytest.mark.parametrize("function", FUNCTIONS)
def test_lambdify(function):
    rng = np.random.default_rng(1)
    tree = random_tree(rng, 4)
    agrees(tree.symbolic().lambdify(function), tree, function, states(rng, 4))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_lambdify_with_parameters(function):
    tree, numeric = parametric()
    sym = tree.symbolic()
    parameters = [VALUES[str(x)] for x in sym.parameters]
    agrees(sym.lambdify(function), numeric, function, states(np.random.default_rng(2), 2), parameters)


def test_lambdify_by_other_modules():
    tree = sd.robots.pelican()
    M = tree.symbolic().lambdify("mass_matrix", modules="mpmath")([0.1, 0.2])
    assert M.dtype == object
    np.testing.assert_allclose(M.astype(float), tree.mass_matrix([0.1, 0.2]), rtol=1e-14)


@pytest.mark.parametrize("tool", ["lambdify", pytest.param("jax", marks=pytest.mark.handover)])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_batches(tool, function):
    """Leading axes of states and of parameters are broadcast."""
    if tool == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
    tree, numeric = parametric()
    sym = tree.symbolic()
    made, rng = getattr(sym, tool)(function), np.random.default_rng(8)
    shapes = {"q": (4, 3, 2), "qd": (3, 2), "qdd": (2,), "tau": (3, 2)}
    state = {group: rng.uniform(-2, 2, shape) for group, shape in shapes.items()}
    given = np.array([VALUES[str(x)] for x in sym.parameters])
    agrees(made, numeric, function, state, given)
    masses = [1.0, 2.0, 3.0]
    given = np.where([str(x) == "m2" for x in sym.parameters], np.reshape(masses, (3, 1)), given)
    one = {group: x.reshape(-1, 2)[0] for group, x in state.items()}
    actual = made(*(one[group] for group in FUNCTIONS[function]), given)
    for k, mass in enumerate(masses):
        agrees(lambda *_, k=k: actual[k], tree.subs(VALUES | {"m2": mass}), function, one)


def called_like_functions():
    """An arm whose joints and parameters have the names of functions that the generated code calls."""
    tree, to = sd.KinematicTree(gravity=(0, -9.81, 0)), "base"
    for name, mass in (("sin", "array"), ("cos", "sqrt"), ("numpy", "ImmutableDenseMatrix")):
        body = sd.Inertia.planar(1 / sp.Symbol(mass), (0.5, 0), 1)
        to = tree.attach(body, to=to, joint=sd.revolute("z"), at=(1, 0, 0), name=name).name
    held = {"array": 1.5, "sqrt": 0.7, "ImmutableDenseMatrix": 2.0}
    sym = tree.symbolic()
    return sym, tree.subs(held), [held[str(x)] for x in sym.parameters]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_lambdify_whatever_joints_are_called(function):
    sym, numeric, parameters = called_like_functions()
    agrees(sym.lambdify(function), numeric, function, states(np.random.default_rng(6), 3), parameters)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_lambdify_where_parameters_are_called_like_intermediates(function):
    """Also parameters that a function does not depend on, such as moments of inertia for gravity."""
    tree, to = sd.KinematicTree(gravity=(0, -9.81, 0)), "base"
    held = {f"x{k}": 0.5 + k for k in range(3)}
    for k, name in enumerate(held):
        body = sd.Inertia(1.0, (0.3, 0, 0), (sp.Symbol(name), 1, 1 + sp.Symbol(name)))
        to = tree.attach(body, to=to, joint=sd.revolute("zyz"[k], name=f"x{k + 3}"), at=(1, 0, 0), name=name).name
    made = tree.symbolic().lambdify(function)
    agrees(made, tree.subs(held), function, states(np.random.default_rng(7), 3), list(held.values()))


@pytest.mark.parametrize(
    "given",
    [
        (),
        ([0.1, 0.2],),
        ([0.1, 0.2], [0.1]),
        (0.1, 0.2),
        ([0, 0], [0, 0], [0]),
        ([0, 0], {0, 1}),
        (np.zeros((2, 1)), [0, 0]),
        (np.zeros((2, 5)), np.zeros((2, 5))),
    ],
)
def test_lambdify_says_what_it_takes(given):
    made = sd.robots.pelican().symbolic().lambdify("bias_force")
    with pytest.raises(sd.ShapeError, match=r"bias_force takes q of 2, qd of 2 entries, .*; got "):
        made(*given)


def test_an_unknown_function_is_refused():
    with pytest.raises(sd.ScrewdynError, match="mass_matrix"):
        sd.robots.pelican().symbolic().lambdify("mass_matriks")


def test_a_list_of_functions_is_refused():
    with pytest.raises(sd.ScrewdynError, match="no function"):
        sd.robots.pelican().symbolic().lambdify(["mass_matrix"])


@pytest.mark.handover
def test_jax_takes_link_and_frame_in_any_way():
    arm, q = sd.robots.pelican(), [0.1, 0.2]
    expected = arm.jacobian(arm.links[-1], q, "body")
    sym, link = arm.symbolic(), arm.links[-1]
    for made in (
        sym.jax("jacobian", link, "body"),
        sym.jax("jacobian", link=link, frame="LOCAL"),
        sym.jax(f"jacobian:{link}", frame="body"),
        sym.jax(f"jacobian:{link}:body"),
    ):
        np.testing.assert_allclose(made(q), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(sym.casadi("jacobian", link, "body")(q), expected, rtol=1e-12, atol=1e-12)
    with pytest.raises(sd.ShapeError, match="frame must be"):
        sym.jax("jacobian", link, "foo")


@pytest.mark.handover
@pytest.mark.parametrize("function", FUNCTIONS)
def test_jax(function):
    import jax

    jax.config.update("jax_enable_x64", True)
    rng = np.random.default_rng(3)
    tree = random_tree(rng, 4)
    agrees(jax.jit(tree.symbolic().jax(function)), tree, function, states(rng, 4))
    tree, numeric = parametric()
    sym = tree.symbolic()
    parameters = np.array([VALUES[str(x)] for x in sym.parameters])
    agrees(jax.jit(sym.jax(function)), numeric, function, states(rng, 2), parameters)


@pytest.mark.handover
def test_jax_whatever_joints_are_called():
    import jax

    jax.config.update("jax_enable_x64", True)
    sym, numeric, parameters = called_like_functions()
    made = jax.jit(sym.jax("bias_force"))
    agrees(made, numeric, "bias_force", states(np.random.default_rng(7), 3), parameters)


@pytest.mark.handover
@pytest.mark.parametrize(
    "shapes",
    [
        ((2,),),
        ((2,), (2,), (9,), (9,)),
        ((3,), (2,), (9,)),
        ((2,), (2,), (7,)),
        ((2,), (2,), ()),
        ((5, 2), (4, 2), (9,)),
    ],
)
def test_jax_refuses_other_arguments(shapes):
    made = parametric()[0].symbolic().jax("bias_force")
    with pytest.raises(sd.ShapeError, match=r"bias_force takes q of 2, qd of 2, parameters of 9 entries, .*; got "):
        made(*map(np.zeros, shapes))


@pytest.mark.handover
def test_jax_differentiates_and_maps():
    import jax

    jax.config.update("jax_enable_x64", True)
    tree = sd.robots.pelican()
    q, qd = np.random.default_rng(4).uniform(-2, 2, (2, 5, 2))
    C = jax.vmap(tree.symbolic().jax("coriolis_matrix"))(q, qd)
    np.testing.assert_allclose(C, tree.coriolis_matrix(q, qd), rtol=1e-12, atol=1e-14)
    D = jax.jacobian(tree.symbolic().jax("mass_matrix"))(q[0])
    M_dot = np.einsum("ijk,k->ij", D, qd[0])
    C = tree.coriolis_matrix(q[0], qd[0])
    np.testing.assert_allclose(M_dot, C + C.T, rtol=1e-12, atol=1e-14)


@pytest.mark.handover
@pytest.mark.parametrize("function", FUNCTIONS)
def test_casadi(function):
    rng = np.random.default_rng(5)
    tree = random_tree(rng, 4)
    first = tree.symbolic().casadi(function)
    agrees(lambda *x: np.squeeze(first(*x).full()), tree, function, states(rng, 4))
    tree, numeric = parametric()
    sym = tree.symbolic()
    parameters = [VALUES[str(x)] for x in sym.parameters]
    made = sym.casadi(function)
    assert made.name_in() == [*FUNCTIONS[function], "parameters"]
    assert made.size_out(0) == (2, 2 if "matrix" in function else 1)
    agrees(lambda *x: np.squeeze(made(*x).full()), numeric, function, states(rng, 2), parameters)


@pytest.mark.handover
@pytest.mark.parametrize("tool", ["lambdify", "jax", "casadi"])
def test_an_axis_of_symbols(tool):
    """Its frame has one case for each sign (screw.frame_along)."""
    import jax

    jax.config.update("jax_enable_x64", True)
    a, b, c = sp.symbols("a b c")
    tree = sd.KinematicTree()
    for to in ("base", "one"):
        body = sd.Inertia(1.5, (0.1, 0.2, 0.3), (0.3, 0.4, 0.5))
        tree.attach(body, to=to, joint=sd.revolute((a, b, c), point=(0.1, 0, 0.2)), name={"base": "one"}.get(to, "two"))
    made = getattr(tree.symbolic(), tool)("mass_matrix")
    made = jax.jit(made) if tool == "jax" else made
    for values in ([0.6, 0.0, 0.8], [0.0, -0.6, -0.8], [1.0, 0.0, 0.0]):
        expected = tree.subs(dict(zip((a, b, c), values, strict=True))).mass_matrix([0.3, -0.7])
        actual = np.asarray(made(np.array([0.3, -0.7]), np.array(values)))
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-14)


@pytest.mark.handover
@pytest.mark.parametrize("mass", [sp.sinc(sp.Symbol("p")), sp.sqrt(sp.Max(sp.Symbol("p"), sp.Symbol("r")))])
@pytest.mark.parametrize("tool", ["jax", "casadi"])
def test_functions_that_only_share_their_name_are_refused(tool, mass):
    """sinc is sin(x)/x in SymPy and sin(πx)/(πx) in JAX; CasADi has neither sinc nor the comparison of Max."""
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.point(mass, (1, 0, 0)), to="base", joint=sd.revolute("z"))
    with pytest.raises(sd.ScrewdynError, match=f"(sinc|Max) in a number of the robot cannot be used in {tool}"):
        getattr(tree.symbolic(), tool)("mass_matrix")([0.1], [0.37, 0.5][: len(mass.free_symbols)])


TOOLS = [
    "lambdify",
    pytest.param("jax", marks=pytest.mark.handover),
    pytest.param("casadi", marks=pytest.mark.handover),
]


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("name", [name for name in CATALOGUE if name != "operational_inertia"])
def test_every_quantity(tool, name):
    """On a spherical joint, a cylindrical joint and a link with parameters; quantities of links in a frame."""
    if tool == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
    m = sp.Symbol("m")
    tree = sd.KinematicTree(gravity=(0, 1, -9.81))
    body = sd.Inertia(m, (0.1, 0.2, 0.3), (0.3, 0.4, 0.5))
    tree.attach(body, to="base", joint=sd.spherical((0.1, 0, 0), name="ball"), at=(0, 0.2, 0), name="one")
    tree.attach(sd.Inertia.sphere(1, 0.1), to="one", joint=sd.revolute("y"), at=(0.3, 0, 0), name="two")
    tree.attach(sd.Link("flange"), to="two", at=(0, 0, 0.1))
    rng, entry, numeric = np.random.default_rng(11), CATALOGUE[name], tree.subs({m: 1.7})
    state = {group: rng.uniform(-1, 1, 4) for group in ARGUMENTS[1:]} | {"q": tree.random_configuration(rng)}
    parameters = {"link": "flange"} if "link" in entry.parameters else {}
    parameters |= {"frame": "mixed"} if "frame" in entry.parameters else {}
    given = {group: state[group] for group in entry.arguments}
    expected = getattr(numeric, name)(**parameters, **given)
    if hasattr(expected, "J_dot"):
        expected = tuple(getattr(expected, part) for part in ("J", "J_dot", "M", "C", "g"))
    actual = getattr(tree.symbolic(), tool)(name, **parameters)(*given.values(), [1.7])
    pairs = zip(actual, expected, strict=True) if isinstance(expected, tuple) else [(actual, expected)]
    for one, other in pairs:
        one, other = np.asarray(one, dtype=float), np.asarray(other)
        assert one.shape == other.shape or tool == "casadi"
        np.testing.assert_allclose(one.reshape(other.shape), other, rtol=1e-11, atol=1e-11)


def test_lengths_of_positions_and_rates_differ():
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.sphere(1, 0.1), to="base", joint=sd.spherical(name="ball"))
    with pytest.raises(sd.ShapeError, match="takes q of 4, qd of 3 entries"):
        tree.symbolic().lambdify("bias_force")([0, 0, 0, 1], [0, 0, 0, 1])


def test_a_quaternion_of_zeros_is_named():
    """Also in a batch, and where the module computes with other numbers; symbols have no length to check."""
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.sphere(1, 0.1), to="base", joint=sd.spherical(name="ball"))
    sym = tree.symbolic()
    for modules in ("numpy", "mpmath", "math"):
        made = sym.lambdify("mass_matrix", modules)
        with pytest.raises(sd.ShapeError, match="q holds a quaternion of length 0 for joint 'ball'"):
            made([0, 0, 0, 0])
    with pytest.raises(sd.ShapeError, match="q holds a quaternion of length 2 for joint 'ball'"):
        sym.lambdify("mass_matrix")([[0, 0, 0, 1], [0, 0, 2, 0]])
    made = sym.lambdify("forward_kinematics", "sympy", link="payload")
    x = sp.Symbol("x")
    assert made([x, 0, 0, 1]).shape == made(sp.Matrix([x, 0, 0, 1])).shape == (4, 4)


@pytest.mark.parametrize(("tool", "extra"), [("jax", "JAX"), ("casadi", "CasADi")])
def test_an_extra_that_is_missing_is_named(tool, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, tool, None)
    with pytest.raises(sd.ScrewdynError, match=f"functions for {extra} need it .*pip install 'screwdyn.{tool}.'"):
        getattr(sd.robots.pelican().symbolic(), tool)("mass_matrix")
