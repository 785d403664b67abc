"""C source of a tree's functions, compiled by the system's compiler and compared with the tree."""

import ctypes
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from c_compiler import load, pointer
from cases import FUNCTIONS, cases, norm
from hypothesis import assume, given

import screwdyn as sd
from screwdyn import (
    Inertia,
    KinematicTree,
    Link,
    Mimic,
    ScrewdynError,
    SingularAttachmentError,
    UnknownLinkError,
    fixed,
    prismatic,
    revolute,
)
from screwdyn.testing import random_inertia, random_pose, random_tree

MATRICES = ("mass_matrix", "coriolis_matrix")
AGREEMENT = 1e-12


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Compile C text and load it."""
    folder = tmp_path_factory.mktemp("c")
    return lambda text: load(text, folder)


def call(function, *inputs, shapes, carried=None):
    """Results of a C function, which must write every entry."""
    outputs = [np.full(shape, np.nan) for shape in shapes]
    bits = [] if carried is None else [ctypes.c_ulong(carried)]
    function.restype = None
    function(*(pointer(np.array(a, dtype=float)) for a in inputs), *bits, *map(pointer, outputs))
    return outputs


def shape(tree, name):
    return (tree.nv,) * (2 if name in MATRICES else 1)


def sizes(tree, q, qd, qdd):
    """The size of the terms of each function's results, to which rounding is relative."""
    M = norm(tree.mass_matrix(q))
    rates = np.abs(qd).sum()
    force = M * (rates**2 + np.abs(qdd).sum()) + 9.81 * tree.mass
    return {
        "mass_matrix": M,
        "coriolis_matrix": M * rates,
        "gravity_vector": force,
        "bias_force": force,
        "inverse_dynamics": force,
        "forward_dynamics": force * norm(np.linalg.inv(tree.mass_matrix(q))),
    }


def state(tree, rng):
    return dict(zip(("q", "qd", "qdd", "tau"), rng.uniform(-2, 2, (4, tree.nv)), strict=True))


def check(library, tree, rng, prefix="", *, carried=None, without=None):
    """All functions at a random state, against the tree without the links that are left out."""
    without = tree if without is None else without
    kept = [tree.coordinates.index(name) for name in without.coordinates]
    at = state(tree, rng)
    scale = sizes(without, *(at[x][kept] for x in ("q", "qd", "qdd")))
    for name, arguments in FUNCTIONS.items():
        inputs = [at[x] for x in arguments]
        (actual,) = call(getattr(library, prefix + name), *inputs, shapes=[shape(tree, name)], carried=carried)
        expected = np.zeros_like(actual)
        expected[np.ix_(*[kept] * expected.ndim)] = getattr(without, name)(*(x[kept] for x in inputs))
        worst = np.abs(actual - expected).max()
        assert worst <= AGREEMENT * scale[name], (name, worst / scale[name])


@pytest.mark.slow
@given(cases(least=1))
def test_random_trees(compiled, case):
    assume(case.tree.nv)
    check(compiled(case.tree.c_source(FUNCTIONS)), case.tree, case.rng)


@pytest.mark.parametrize("name", ["puma560", "stanford", "two_link"])
def test_robots(compiled, name):
    tree = getattr(sd.robots, name)()
    check(compiled(tree.c_source(FUNCTIONS)), tree, np.random.default_rng(0))


def test_functions_of_one_group_share_their_work(compiled):
    tree = sd.robots.puma560()
    group = ("mass_matrix", "coriolis_matrix", "gravity_vector")
    together, apart = tree.c_source([group]), tree.c_source(group)
    assert together.count(" * ") < 0.9 * apart.count(" * ")
    rng = np.random.default_rng(1)
    at = state(tree, rng)
    function = compiled(together).mass_matrix_and_coriolis_matrix_and_gravity_vector
    M, C, g = call(function, at["q"], at["qd"], shapes=[shape(tree, name) for name in group])
    scale = sizes(tree, at["q"], at["qd"], at["qdd"])
    assert np.abs(M - tree.mass_matrix(at["q"])).max() <= AGREEMENT * scale["mass_matrix"]
    assert np.abs(C - tree.coriolis_matrix(at["q"], at["qd"])).max() <= AGREEMENT * scale["coriolis_matrix"]
    assert np.abs(g - tree.gravity_vector(at["q"])).max() <= AGREEMENT * scale["gravity_vector"]


def test_one_array_may_be_argument_and_result(compiled):
    tree = random_tree(np.random.default_rng(5), 5, ["revolute"])
    library = compiled(tree.c_source(["inverse_dynamics"]))
    q, qd, qdd = np.random.default_rng(2).normal(size=(3, tree.nv))
    expected = tree.inverse_dynamics(q, qd, qdd)
    library.inverse_dynamics(pointer(q), pointer(qd), pointer(qdd), pointer(q))
    assert np.abs(q - expected).max() <= AGREEMENT * np.abs(expected).max()


def carrier():
    """An arm that carries a welded box, and a lamp on a passive joint from which a second body swings."""
    rng = np.random.default_rng(11)
    tree = random_tree(rng, 3)
    tree.attach(Link("box", random_inertia(rng)), to="link3", joint=fixed(), at=random_pose(rng))
    lamp = revolute((1, 2, 3), passive=True, armature=0.2, name="swing")
    tree.attach(Link("lamp", random_inertia(rng)), to="link2", joint=lamp, at=random_pose(rng))
    tree.attach(Link("bulb", random_inertia(rng)), to="lamp", joint=prismatic("z", armature=0.4), at=random_pose(rng))
    tree.attach(Link("link4", random_inertia(rng)), to="link3", joint=revolute("y", armature=0.3), at=random_pose(rng))
    return tree


def test_what_is_not_carried_is_as_if_never_attached(compiled):
    tree = carrier()
    optional = ("box", "lamp", "bulb")
    library = compiled(tree.c_source(FUNCTIONS, prefix="arm_", optional=optional))
    rng = np.random.default_rng(12)
    for carried in range(8):
        without = tree.copy()
        for i, link in enumerate(optional):
            if not carried >> i & 1 and link in without.links:
                without.detach(link)
        for _ in range(3):
            check(library, tree, rng, "arm_", carried=carried, without=without)


def test_a_hanging_payload_left_out_takes_what_hangs_on_it_along(compiled):
    tree = carrier()
    library = compiled(tree.c_source(FUNCTIONS, optional=["lamp"]))
    without = tree.copy()
    without.detach("lamp")
    check(library, tree, np.random.default_rng(3), carried=0, without=without)
    check(library, tree, np.random.default_rng(3), carried=1)


@pytest.mark.slow
def test_the_tip_of_a_long_chain_may_be_left_out(compiled):
    """Its forward dynamics is by articulated bodies."""
    tree = KinematicTree()
    for k in range(16):
        joint = revolute("xyz"[k % 3], armature=0.1)
        tree.attach(
            Link(f"link{k + 1}", Inertia.box(1.0, (0.1, 0.2, 0.3))), to=tree.links[-1], joint=joint, at=(0, 0, 0.3)
        )
    without = tree.copy()
    without.detach("link16")
    library = compiled(tree.c_source(FUNCTIONS, optional=["link16"]))
    check(library, tree, np.random.default_rng(1), carried=0, without=without)
    check(library, tree, np.random.default_rng(1), carried=1)


@pytest.mark.slow
def test_a_gripper_with_a_mimic_joint_and_a_geared_wheel_may_be_left_out(compiled):
    """A rotor on the arm is left out with the wheel that it drives; fingers that follow each other, together."""
    rng = np.random.default_rng(21)
    tree = random_tree(rng, 3, ("revolute", "prismatic"))
    tree.attach(Link("palm", random_inertia(rng)), to="link3", at=random_pose(rng))
    slide = prismatic("x", armature=0.3, name="left")
    tree.attach(Link("finger1", random_inertia(rng)), to="palm", joint=slide, at=random_pose(rng))
    other = prismatic("x", armature=0.2, mimic=Mimic("left", -0.7, 0.1), name="right")
    tree.attach(Link("finger2", random_inertia(rng)), to="palm", joint=other, at=random_pose(rng))
    motor = sd.Rotor(2e-3, 9.0, (1, 2, 2), (0.1, 0, 0.2), mass=0.4, across=3e-3, carrier="link1")
    drive = revolute("z", rotor=motor, name="drive")
    tree.attach(Link("wheel", random_inertia(rng)), to="link2", joint=drive, at=random_pose(rng))
    optional = ("palm", "wheel")
    library = compiled(tree.c_source(FUNCTIONS, optional=optional))
    for carried in range(4):
        without = tree.copy()
        for i, link in enumerate(optional):
            if not carried >> i & 1:
                without.detach(link)
        for _ in range(2):
            check(library, tree, rng, carried=carried, without=without)
    # The second finger alone may be left out, but not the one that it follows.
    alone = compiled(tree.c_source(FUNCTIONS, optional=["finger2"]))
    without = tree.copy()
    without.detach("finger2")
    check(alone, tree, rng, carried=0, without=without)
    message = "joint 'right' follows 'left', but its link 'finger2' is present without 'finger1'"
    with pytest.raises(ScrewdynError, match=message):
        tree.c_source(FUNCTIONS, optional=["finger1"])


def test_a_locked_wheel_is_left_out_with_its_rotor(compiled):
    rng = np.random.default_rng(22)
    tree = random_tree(rng, 2, ("revolute",))
    motor = sd.Rotor(2e-3, 9.0, mass=0.4, across=3e-3, carrier="link1")
    drive = revolute("z", rotor=motor, name="drive")
    tree.attach(Link("wheel", random_inertia(rng)), to="link2", joint=drive, at=random_pose(rng))
    tree.lock("drive", at=0.3)
    library = compiled(tree.c_source(FUNCTIONS, optional=["wheel"]))
    without = tree.copy()
    without.detach("wheel")
    check(library, tree, rng, carried=0, without=without)
    check(library, tree, rng, carried=1)


def test_bits_have_names_in_the_text():
    tree = carrier()
    tree.attach(Link("all"), to="link1")
    tree.attach(Link("a b"), to="link1")
    tree.attach(Link("a-b"), to="link1")
    text = tree.c_source(["gravity_vector"], prefix="arm_", optional=["box", "lamp", "all", "a b", "a-b"])
    names = ("CARRIES_BOX", "CARRIES_LAMP", "CARRIES_ALL_2", "CARRIES_A_B_3", "CARRIES_A_B_4")
    for i, name in enumerate(names):
        assert f"#define ARM_{name} (1ul << {i})\n" in text
    assert "#define ARM_CARRIES_ALL 0x1ful\n" in text


@pytest.mark.parametrize("links", [("a_1", "a", "A"), ("all", "all_0"), ("c 1", "c-1", "c_1_0"), ("b", "B", "b_0_0")])
def test_no_two_bits_have_the_same_name(links):
    tree = carrier()
    for link in links:
        tree.attach(Link(link), to="link1")
    text = tree.c_source(["gravity_vector"], optional=links)
    defined = re.findall(r"#define (CARRIES_\w+)", text)
    assert len(set(defined)) == len(defined) == len(links) + 1


def test_declarations_alone_can_be_included(compiled):
    tree = sd.robots.two_link()
    text = tree.c_source(["mass_matrix"], prefix="arm_")
    twice = "#define ARM_DECLARATIONS_ONLY\n" + text + text
    user = "void use(const double *q, double *M);\nvoid use(const double *q, double *M) { arm_mass_matrix(q, M); }\n"
    compiled(twice + "#undef ARM_DECLARATIONS_ONLY\n" + text + user)
    assert "sin(" not in text.split("#include")[0] and "malloc" not in text


def test_a_text_may_be_included_twice_but_not_hide_another(compiled):
    tree = sd.robots.two_link()
    text = tree.c_source(FUNCTIONS)
    check(compiled(text + text), tree, np.random.default_rng(0))
    with pytest.raises(AssertionError, match="redefinition"):
        compiled(text + sd.robots.pelican().c_source(FUNCTIONS))


def test_cpp_sees_c_linkage():
    text = sd.robots.two_link().c_source(FUNCTIONS)
    opened, closed = text.index('extern "C" {'), text.index("#ifdef __cplusplus\n}")
    declared = [text.index(f"void {name}(") for name in FUNCTIONS]
    assert all(opened < at < closed for at in declared)


def test_coordinates_are_listed_in_order_with_units():
    tree = sd.robots.stanford()
    text = tree.c_source(["mass_matrix"])
    at = [text.index(f'[{i}] "{name}", ') for i, name in enumerate(tree.coordinates)]
    assert at == sorted(at)
    assert f"#define NV {tree.nv}\n" in text
    assert '", prismatic, m\n' in text and '", revolute, rad\n' in text


def test_names_that_would_end_a_comment_or_are_not_ascii(compiled):
    tree = KinematicTree()
    body = Inertia(1.0, (0.1, 0.2, 0.3), (0.1, 0.1, 0.1))
    tree.attach(Link("*/ int x; /*", body), to="base", joint=revolute("y"))
    tree.attach(Link("épaule??/\\", body), to="base", joint=revolute("y"))
    tree.attach(Link("//", body), to="base", joint=revolute("x"))
    text = tree.c_source(FUNCTIONS, optional=tree.links[1:])
    check(compiled(text), tree, np.random.default_rng(0), carried=7)


def test_constants_keep_all_their_digits(compiled):
    mass = 0.1 + 0.2
    tree = KinematicTree(gravity=(0, 0, -1))
    tree.attach(Link("slide", Inertia(mass)), to="base", joint=prismatic("z"))
    library = compiled(tree.c_source(["mass_matrix", "gravity_vector"]))
    assert call(library.mass_matrix, [0.0], shapes=[(1, 1)])[0][0, 0] == mass
    assert call(library.gravity_vector, [0.0], shapes=[(1,)])[0][0] == mass


def test_the_text_stays_when_the_tree_changes(compiled):
    tree = sd.robots.two_link()
    before = tree.copy()
    text = tree.c_source(FUNCTIONS)
    tree.attach(Link("load", Inertia(1.0)), to=tree.links[-1])
    check(compiled(text), before, np.random.default_rng(0))
    assert tree.c_source(FUNCTIONS) != text
    assert before.c_source(FUNCTIONS) == text


@pytest.mark.parametrize(
    ("functions", "options", "message"),
    [
        (["mass_matrx"], {}, "did you mean 'mass_matrix'"),
        ([], {}, "at least one"),
        (["mass_matrix", "mass_matrix"], {}, "each once"),
        ([("mass_matrix", "mass_matrix")], {}, "once"),
        ([()], {}, "once"),
        (["mass_matrix"], {"prefix": "1st_"}, "C name"),
        (None, {}, "functions are given by their names"),
        ([3], {}, "a group of functions are given by their names"),
        ([[["mass_matrix"]]], {}, "no function"),
        (["mass_matrix"], {"prefix": "a-b"}, "C name"),
        (["mass_matrix"], {"prefix": 3}, "C name"),
        (["mass_matrix"], {"optional": None}, "optional links are given by their names"),
        (["mass_matrix"], {"optional": [["link2"]]}, "no link"),
        (["mass_matrix"], {"optional": ["base"]}, "is the base"),
        (["mass_matrix"], {"optional": ["link2", "link2"]}, "each once"),
    ],
)
def test_refusals(functions, options, message):
    with pytest.raises(ScrewdynError, match=message):
        sd.robots.puma560().c_source(functions, **options)


def test_names_that_are_the_same_in_c_are_refused():
    tree = sd.KinematicTree()
    for name in ("a b", "a_b"):
        tree.attach(Inertia.point(1, (1, 0, 0)), to="base", joint=revolute("z"), name=name)
    with pytest.raises(ScrewdynError, match="'jacobian:a b' and 'jacobian:a_b' have the same name in C, jacobian_a_b"):
        tree.c_source(["jacobian:a b", "jacobian:a_b"])


def test_a_lone_name_is_a_list_of_one():
    tree = sd.robots.puma560()
    listed = tree.c_source(["mass_matrix"], optional=["link6"])
    assert tree.c_source("mass_matrix", optional="link6") == listed


@pytest.mark.parametrize("locked", [False, True])
@pytest.mark.parametrize("link", ["drive_rotor", "drive_rotor_at_rest"])
def test_a_rotor_is_left_out_with_its_joint_only(link, locked):
    tree = sd.robots.two_link()
    drive = revolute("z", rotor=sd.Rotor(1e-3, 9.0), name="drive")
    tree.attach(Inertia.box(1, (0.1, 0.2, 0.3)), to=tree.links[-1], joint=drive, name="wheel")
    if locked:
        tree.lock("drive")
    with pytest.raises(sd.TopologyError, match=f"'{link}' is the rotor of joint 'drive'"):
        tree.c_source(["mass_matrix"], optional=[link])


def test_unknown_optional_link():
    with pytest.raises(UnknownLinkError, match="link2"):
        sd.robots.puma560().c_source(["mass_matrix"], optional=["link22"])


def test_a_joint_that_carries_nothing_has_no_accelerations_to_write_out():
    tree = sd.robots.two_link()
    tree.attach(Link("pin"), to=tree.links[-1], joint=revolute("z"), name="loose")
    assert "mass_matrix" in tree.c_source(["mass_matrix"])
    for write in (lambda: tree.c_source(["forward_dynamics"]), lambda: tree.operation_count("forward_dynamics")):
        with pytest.raises(SingularAttachmentError, match="loose"):
            write()


def test_a_tree_without_coordinates_has_nothing_to_compute():
    with pytest.raises(ScrewdynError, match="no coordinates"):
        KinematicTree().c_source(["mass_matrix"])


@pytest.mark.slow
def test_the_exported_controller_follows_its_reference(tmp_path):
    """The example: C and Python agree in closed loop, and the bit of the payload matters."""
    example = Path(__file__).parents[2] / "examples" / "export_controller.py"
    done = subprocess.run([sys.executable, example, tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    difference, error, unaware = (float(x) for x in re.findall(r": (?:C )?([0-9.e-]+) rad", done.stdout))
    assert difference < 1e-9 and error < 1e-9 and unaware > 1e-3
    assert (tmp_path / "ur5_control.c").read_text().count("void ur5_computed_torque(") == 2


def test_constants_that_have_overflown_are_refused():
    tree = KinematicTree()
    tree.attach(Inertia.point(1.0, (1, 0, 0)), to="base", joint=revolute("z"), name="a")
    tree.attach(Inertia.point(1.0, (1, 0, 0)), to="a", joint=revolute("y", mimic=Mimic("a", 1e200)), name="b")
    with pytest.raises(ScrewdynError, match="a constant of the robot is inf, which is not finite"):
        tree.c_source(["mass_matrix"])


@pytest.mark.parametrize("carried", [0, 1])
@pytest.mark.parametrize("language", ["c", "cpp"])
def test_single_precision_of_a_ur5(tmp_path, language, carried):
    arm = sd.robots.ur5()
    arm.attach(Inertia.box(3.0, (0.2, 0.15, 0.1), com=(0, 0, 0.1)), to="tool0", name="crate")
    text = arm.c_source(["inverse_dynamics", "reference_regressor:crate"], optional=["crate"], real="float")
    assert not re.search(r"\bdouble\b|\d\.\d+(e-?\d+)?[^\df.e]|\b(sin|cos)\(", text[text.index("#include <math.h>") :])
    library, rng = load(text, tmp_path, language), np.random.default_rng(0)
    library.inverse_dynamics.restype = None
    states = rng.uniform(-1, 1, (3, 1000, 6)).astype(np.float32)
    states[0] *= np.float32(3.14)
    found = np.full((1000, 6), np.nan, dtype=np.float32)
    for *state, tau in zip(*states, found, strict=True):
        library.inverse_dynamics(*map(pointer, state), ctypes.c_ulong(carried), pointer(tau))
    if not carried:
        arm.detach("crate")
    error = np.abs(found - arm.inverse_dynamics(*states.astype(float)))
    assert error.max() < 2e-5  # of up to 80 N m, of which the last bit of float is 8e-6
    assert np.sqrt(np.mean(error**2)) < 2e-6


@pytest.mark.parametrize(("fused", "bare", "loaded"), [(False, 1e-5, 2e-5), (True, 8e-6, 1.8e-5)])
def test_single_precision_of_a_ur5_in_many_states(tmp_path, fused, bare, loaded):
    """In all of its limits; torques are up to 66 N m, and 94 N m with the crate, whose last bit is 7.6e-6 N m."""
    processor = Path("/proc/cpuinfo")
    if fused and not (processor.exists() and "fma" in processor.read_text().split()):
        pytest.skip("the processor has no fused multiply-add")
    arm, n = sd.robots.ur5(), 100_000
    arm.attach(Inertia.box(3.0, (0.2, 0.15, 0.1), com=(0, 0, 0.1)), to="tool0", name="crate")
    text = arm.c_source(["inverse_dynamics"], optional=["crate"], real="float")
    signature = "void many(int n, const float *q, const float *qd, const float *qdd, unsigned long on, float *tau)"
    loop = "for (int i = 0; i < 6 * n; i += 6) inverse_dynamics(q + i, qd + i, qdd + i, on, tau + i);"
    options = "-mfma -ffp-contract=fast" if fused else ""
    library = load(f"{text}\n{signature};\n{signature}\n{{\n{loop}\n}}\n", tmp_path, options=options)
    states = np.random.default_rng(5).uniform(-1, 1, (3, n, 6)).astype(np.float32)
    states[0] *= np.float32(2 * np.pi)
    states[1] *= 2
    for carried, most in ((1, loaded), (0, bare)):
        found = np.full((n, 6), np.nan, dtype=np.float32)
        library.many(n, *map(pointer, states), ctypes.c_ulong(carried), pointer(found))
        error = np.abs(found - arm.inverse_dynamics(*states.astype(float)))
        assert error.max() < most and np.sqrt(np.mean(error**2)) < 1.3e-6
        if carried:
            arm.detach("crate")


def test_the_type_of_numbers_is_one_of_two():
    with pytest.raises(ScrewdynError, match="real must be 'double' or 'float'; got 'half'"):
        sd.robots.two_link().c_source(["mass_matrix"], real="half")
    heavy = KinematicTree()
    heavy.attach(Inertia.point(1e39, (1, 0, 0)), to="base", joint=revolute("z"))
    with pytest.raises(ScrewdynError, match="exceeds the numbers of float; rescale"):
        heavy.c_source(["mass_matrix"], real="float")
