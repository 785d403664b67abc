"""Every quantity of the catalogue as C, for trees with joints of any kind."""

import ctypes
import re

import numpy as np
import pytest
import sympy as sp
from c_compiler import load, pointer
from cases import close, norm
from kinds import GROUPS
from tangents import state_of

import screwdyn as sd
from screwdyn import Inertia, KinematicTree, Link, ScrewdynError, ShapeError, UnknownLinkError
from screwdyn.backends.c import ascii_text, identifier
from screwdyn.physics.quantities import ARGUMENTS, CATALOGUE
from screwdyn.testing import random_inertia, random_pose, random_tree

# Those of trees without loops.
QUANTITIES = {name: entry for name, entry in CATALOGUE.items() if entry.places not in ("loops", "contacts")}


FRAME = "local_world_aligned"


def name_of(entry, link):
    parts = [entry.name, *([link] if "link" in entry.parameters else [])]
    return ":".join([*parts, *([FRAME] if "frame" in entry.parameters else [])])


def function_of(entry, link):
    parts = [entry.name, *([identifier(link)] if "link" in entry.parameters else [])]
    return "_".join([*parts, *(["mixed"] if "frame" in entry.parameters else [])])


def expected(tree, entry, link, state):
    """The results of a quantity by the tree, as arrays over all its freedoms."""
    given = {"link": link} if "link" in entry.parameters else {}
    given |= {x: state[x] for x in entry.arguments}
    given |= {"frame": FRAME} if "frame" in entry.parameters else {}
    found = getattr(tree, entry.name)(**given)
    if entry.name == "contribution":
        return [found.J, found.J_dot, *map(np.asarray, (found.M, found.C, found.g))]
    if entry.name == "subtree_contribution":
        at = [tree.coordinates.index(x) for x in found.coordinates]
        whole = [np.zeros((6, tree.nv)), np.zeros((6, tree.nv))]
        whole[0][:, at], whole[1][:, at] = found.J, found.J_dot
        return [*whole, *(x.matrix(tree.coordinates) for x in (found.M, found.C, found.g))]
    return list(found) if isinstance(found, tuple) else [np.asarray(found)]


def called(function, entry, state, shapes, *bits):
    results = [np.full(shape or (1,), np.nan) for shape in shapes]
    inputs = [pointer(np.ascontiguousarray(state[x])) for x in entry.arguments]
    function(*inputs, *map(ctypes.c_ulong, bits), *map(pointer, results))
    return [x.reshape(shape) for x, shape in zip(results, shapes, strict=True)]


def state(case):
    further = dict(zip(ARGUMENTS[3:], case.rng.uniform(-2, 2, (3, case.tree.nv)), strict=True))
    return {"q": case.q, "qd": case.qd, "qdd": case.qdd, **further}


def compare(library, tree, entry, link, at, tolerance=1e-12):
    wanted = expected(tree, entry, link, at)
    found = called(getattr(library, function_of(entry, link)), entry, at, [x.shape for x in wanted])
    for a, b in zip(found, wanted, strict=True):
        close(a, b, 1 + norm(b) + 100 * tree.mass, tolerance)


@pytest.mark.slow
def test_every_quantity(tmp_path):
    """Of joints of one freedom, a ball joint and a free one; the others are in the next test."""
    rng = np.random.default_rng(0)
    tree = random_tree(rng, 2, ["revolute", "prismatic"])
    tree.attach(Link("hand/1", random_inertia(rng)), to="link2", joint=sd.spherical(), at=random_pose(rng))
    tree.attach(Link("six", random_inertia(rng)), to="hand/1", joint=sd.free(), at=random_pose(rng))
    entries = list(QUANTITIES.values())
    library = load(tree.c_source([name_of(entry, "six") for entry in entries]), tmp_path)
    for _ in range(3):
        at = state(state_of(tree, rng))
        condition = np.linalg.cond(tree.mass_matrix(at["q"]))
        for entry in entries:
            solved = entry.name in ("forward_dynamics", "operational_inertia")
            compare(library, tree, entry, "six", at, 1e-13 * condition if solved else 1e-12)


@pytest.mark.slow
def test_optional_links_of_every_quantity(tmp_path):
    """A link that is left out has no mass, also in the centre of mass and if it is welded to the base."""
    rng = np.random.default_rng(7)
    tree = random_tree(rng, 3, GROUPS)
    tree.attach(Link("ballast", random_inertia(rng)), to="base", at=random_pose(rng))
    tree.attach(Link("box", random_inertia(rng)), to="link3", at=random_pose(rng))
    tree.attach(Link("ball", random_inertia(rng)), to="link2", joint=sd.spherical(passive=True), at=random_pose(rng))
    optional = ("ballast", "box", "ball")
    entries = [entry for name, entry in QUANTITIES.items() if name not in ("operational_inertia", "link_poses")]
    text = tree.c_source([name_of(entry, "link1") for entry in entries], optional=optional)
    library = load(text, tmp_path)
    for carried in range(8):
        without = tree.copy()
        for i, link in enumerate(optional):
            if not carried >> i & 1:
                without.detach(link)
        at = state(state_of(tree, rng))
        there = {x: y[: without.nq if x == "q" else without.nv] for x, y in at.items()}
        for entry in entries:
            wanted = expected(without, entry, "link1", there)
            if entry.places == "bodies":
                left = iter(np.split(wanted[0], wanted[0].shape[1] // 10, axis=1))
                columns = [
                    next(left) if x in without.links else np.zeros((without.nv, 10)) for x in tree.subtree("link1")
                ]
                wanted = [np.hstack(columns)]
            padding = [[(0, tree.nv - without.nv if d == "v" else 0) for d in r.shape] for r in entry.given]
            wanted = [np.pad(x, pad) if pad else x for x, pad in zip(wanted, padding, strict=True)]
            function = getattr(library, function_of(entry, "link1"))
            for a, b in zip(called(function, entry, at, [x.shape for x in wanted], carried), wanted, strict=True):
                close(a, b, 1 + norm(b) + 100 * tree.mass, 1e-10 if entry.name == "forward_dynamics" else 1e-12)


def test_the_regressor_of_a_link_that_is_left_out_is_zero(tmp_path):
    tree, entry = sd.robots.two_link(), CATALOGUE["reference_regressor"]
    tree.attach(random_inertia(np.random.default_rng(8)), to="link2", name="box")
    at = dict(zip(entry.arguments, np.random.default_rng(9).normal(size=(4, 2)), strict=True))
    function = load(tree.c_source(["reference_regressor:box"], optional=["box"]), tmp_path).reference_regressor_box
    assert not called(function, entry, at, [(2, 10)], 0)[0].any()
    close(called(function, entry, at, [(2, 10)], 1)[0], tree.reference_regressor("box", *at.values()), 1, 1e-12)


def test_symbols_in_places_and_in_the_base(tmp_path):
    """Poses of massless frames, and bodies that do not move, contain symbols that only some quantities need."""
    a, m = sp.symbols("a m")
    tree = KinematicTree()
    tree.attach(Inertia(2.0, (0.1, 0, 0), (0.1, 0.1, 0.1)), to="base", joint=sd.revolute("y"), name="arm")
    tree.attach(Link("tool"), to="arm", at=(a, 0, a**2))
    tree.attach(Link("foot", Inertia.point(m)), to="base", at=(0, 0, -a))
    text = tree.c_source(["mass_matrix", "forward_kinematics:tool", "center_of_mass"])
    assert "typedef struct {\n    double a;\n    double m;\n} parameters;" in text
    library, bound, q = load(text, tmp_path), tree.subs({a: 0.5, m: 3.0}), np.array([0.7])
    given = (ctypes.c_double * 2)(0.5, 3.0)
    for name, wanted in (
        ("mass_matrix", bound.mass_matrix(q)),
        ("forward_kinematics_tool", bound.forward_kinematics("tool", q)),
        ("center_of_mass", bound.center_of_mass(q)),
    ):
        out = np.full(wanted.shape, np.nan)
        getattr(library, name)(pointer(q), given, pointer(out))
        close(out, wanted, 1 + norm(wanted), 1e-14)


def test_arguments_of_a_function_have_names_of_their_own(tmp_path):
    """τ and q̈ are results of one and arguments of the other; J stands for two Jacobians."""
    tree = sd.robots.two_link()
    group = ("inverse_dynamics", "forward_dynamics", "jacobian:link2", "center_of_mass_jacobian")
    text = tree.c_source([group])
    names = re.findall(r"double (\w+)\[", text[text.index("void ") : text.index(");")])
    assert names == [
        *("q", "qd", "qdd", "tau", "inverse_dynamics_tau", "forward_dynamics_qdd"),
        *("jacobian_link2_J", "center_of_mass_jacobian_J"),
    ]
    load(text, tmp_path)


def test_what_the_text_says_of_c_with_quasi_velocities():
    tree = KinematicTree()
    tree.attach(Inertia(1.0, (0, 0, 1), (1, 1, 1)), to="base", joint=sd.spherical(), name="ball")
    text = " ".join(tree.c_source("coriolis_matrix").replace("*", " ").split())
    assert "qd are quasi-velocities, qdd their rates" in text
    assert "of the Christoffel symbols of M, or with quasi-velocities of its Levi-Civita connection" in text


def test_what_the_text_says_of_positions_and_freedoms():
    tree = KinematicTree()
    tree.attach(Inertia(1.0, (0, 0, 0), (1, 1, 1)), to="base", joint=sd.planar(), name="cart")
    tree.attach(Inertia(1.0, (0, 0, 1), (1, 1, 1)), to="cart", joint=sd.spherical(), name="ball")
    text = tree.c_source(["gravity_vector", "jacobian:ball:LOCAL"])
    assert "#define NQ 7\n#define NV 6\n" in text
    assert "Positions q" in text and '[3] "ball[x]"\n' in text and '[6] "ball[w]"\n' in text
    assert '[1] "cart[vx]", planar, m/s\n' in text and '[5] "ball[wz]", spherical, rad/s\n' in text
    assert "    const double q[NQ],\n    double g[NV]);" in text
    assert 'link "ball"; frame body' in " ".join(text.split())
    assert text.isascii()


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("jacobian", ScrewdynError, "write 'jacobian:<link>'"),
        ("mass_matrix:link1", ScrewdynError, "a quantity of the whole tree"),
        ("jacobian:link7", UnknownLinkError, "link7"),
        ("jacobian:link1:sideways", ShapeError, "frame must be .*'sideways'"),
        ("forward_kinematics:link1:body", ScrewdynError, "write 'forward_kinematics:link1'"),
        ("jacobans:link1", ScrewdynError, "did you mean 'jacobian'"),
    ],
)
def test_refusals(name, error, message):
    for ask in (sd.robots.two_link().c_source, sd.robots.two_link().operation_count):
        with pytest.raises(error, match=message):
            ask(name)


def test_a_link_may_be_called_like_a_frame():
    tree = sd.robots.two_link()
    tree.attach(Link("tool:body"), to="link2", at=(1, 0, 0))
    tree.attach(Link("tool"), to="link2")
    text = tree.c_source(["jacobian:tool:body", "jacobian:tool:body:body", "jacobian:tool:base"])
    assert 'link "tool:body"; frame com' in " ".join(text.split())
    assert 'link "tool:body"; frame body' in " ".join(text.split())
    assert 'link "tool"; frame base' in " ".join(text.split())


def test_operational_inertia_needs_the_freedoms_it_was_written_for():
    tree = sd.robots.puma560()
    with pytest.raises(ScrewdynError, match="operational_inertia cannot have optional links"):
        tree.c_source(["operational_inertia:link6"], optional=["link6"])


@pytest.mark.slow
def test_every_quantity_can_be_counted():
    tree = random_tree(np.random.default_rng(2), 3, ["free"])
    for entry in QUANTITIES.values():
        cost = tree.operation_count(name_of(entry, "link3"))
        assert cost["mul"] > 0 and cost["sincos"] == 0
    assert tree.operation_count("jacobian:link3:body") == tree.operation_count("jacobian:link3:local")


def test_summaries_are_plain_ascii():
    for entry in CATALOGUE.values():
        text = ascii_text(entry.summary)
        assert text.isascii() and "\\" not in text and ":meth:" not in text and not text.endswith((".", ",")), text
