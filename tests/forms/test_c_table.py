"""The kernels as a C library, and robots for it, compiled by the system's compiler and compared with the tree."""

import os
import re
import runpy
import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import sympy
from c_compiler import WARNINGS
from cases import norm
from kinds import EVERY

import screwdyn as sd
from screwdyn.testing import random_inertia, random_pose, random_tree

EXAMPLE = Path(__file__).parents[2] / "examples" / "hook_in_c.py"
# What docs/c_library.md states for x86-64, in bytes: stack of a call, and code and constants of the example.
STACK, PROGRAM = 1100, 45_000
# All that the library needs of others.
NEEDED = {"sin", "cos", "sqrt", "memcpy", "memset", "memmove", "sinf", "cosf", "sqrtf"}
SIX = "mass_matrix", "coriolis_matrix", "gravity_vector", "dynamics", "inverse_dynamics", "forward_dynamics"
ROWS, GROUPS = 48, 8
LEAN = 8
# Most of the compiler's time is that of inlining, which changes no bit: the attribute becomes empty.
APART = "-Dalways_inline="
HARNESS = """
#include <math.h>
#include <stdio.h>
%(headers)s
static struct screwdyn_robot robot;
static screwdyn_real q[64], qd[64], qdd[64], M[64 * 64], C[64 * 64], g[64];

static void read(screwdyn_real *x, screwdyn_integer n)
{
    double value = 0.0;
    screwdyn_integer i;
    for (i = 0; i < n; i++)
        x[i] = scanf("%%lf", &value) == 1 ? (screwdyn_real)value : (screwdyn_real)0.0;
}

static void show(screwdyn_integer status, const screwdyn_real *x, screwdyn_integer n)
{
    screwdyn_integer i;
    printf("%%d", (int)status);
    for (i = 0; i < n; i++)
        printf(" %%a", (double)x[i]);
    printf("\\n");
}

static void all(void)
{
    const screwdyn_integer n = robot.rows;
    read(q, robot.positions);
    read(qd, n);
    read(qdd, n);
    show(screwdyn_mass_matrix(&robot, q, M), M, n * n);
    show(screwdyn_coriolis_matrix(&robot, q, qd, C), C, n * n);
    show(screwdyn_gravity_vector(&robot, q, g), g, n);
    show(screwdyn_inverse_dynamics(&robot, q, qd, qdd, g), g, n);
    show(screwdyn_forward_dynamics(&robot, q, qd, qdd, g), g, n);
    show(screwdyn_dynamics(&robot, q, qd, M, C, g), g, n);
    show(0, M, n * n);
    show(0, C, n * n);
}

static int equal(const char *a, const char *b)
{
    for (; *a == *b; a++, b++)
        if (!*a)
            return 1;
    return 0;
}

/* The largest scratch space of the six kernels, compared with the bound. */
static void scratch(screwdyn_integer n)
{
    const char *names[] = {"mass_matrix", "coriolis_matrix", "gravity_vector", "dynamics", "inverse_dynamics",
                           "forward_dynamics"};
    screwdyn_integer context[sizeof(struct screwdyn_context) / sizeof(screwdyn_integer)] = {1, n, n};
    screwdyn_integer largest = 0, size;
    const struct screwdyn_kernel *kernel;
    for (kernel = screwdyn_kernels; kernel->name; kernel++)
        for (int k = 0; k < 6; k++)
            if (equal(kernel->name, names[k]) && (size = kernel->scratch(context)) > largest)
                largest = size;
    printf("%%d\\n", (int)(SCREWDYN_SCRATCH(n) * (screwdyn_integer)sizeof(screwdyn_real) - largest));
}

int main(void)
{
    screwdyn_integer n, refused = 0;
    for (n = 1; n <= SCREWDYN_ROWS; n++)
        scratch(n);
%(runs)s
    screwdyn_start(&robot, &t0_base);
    refused += screwdyn_attach(&robot, &t0_last) == SCREWDYN_REFUSED; /* nothing carries it */
    while (robot.rows + t0.rows <= SCREWDYN_ROWS)
        refused -= screwdyn_attach(&robot, &t0) != 0;
    n = robot.rows;
    refused += screwdyn_attach(&robot, &t0) == SCREWDYN_REFUSED; /* no room */
    refused += screwdyn_detach(&robot, n) == SCREWDYN_REFUSED;
    refused += screwdyn_detach(&robot, -1) == SCREWDYN_REFUSED;
    refused -= robot.rows != n;
    screwdyn_start(&robot, &t1_base);
    while (!screwdyn_attach(&robot, &t1))
        continue;
    refused += robot.groups + t1.groups > SCREWDYN_GROUPS;
    refused += screwdyn_detach(&robot, 1) == SCREWDYN_REFUSED; /* within a spherical joint */
    refused += !screwdyn_detach(&robot, 0) && !robot.rows && !robot.positions && !robot.groups && !robot.terms;
    screwdyn_start(&robot, &t0_base);
    refused += screwdyn_attach(&robot, &t0) != 0;
    q[0] = HUGE_VAL;
    refused += screwdyn_gravity_vector(&robot, q, g) == SCREWDYN_WRONG_INPUT;
    printf("%%d\\n", (int)refused);
    return 0;
}
"""
RUN_LEAN = """    screwdyn_start(&robot, &{0}_base);
    if (screwdyn_attach(&robot, &{0}))
        return 1;
    for (n = 0; n < robot.rows; n++)
        q[n] = (screwdyn_real)0.1;
    refused += screwdyn_forward_dynamics(&robot, q, q, q, g) == 7; /* 1 + the row that feels no inertia */"""
RUN = """    screwdyn_start(&robot, &{0}_base);
    if (screwdyn_attach(&robot, &{0}) || screwdyn_attach(&robot, &{0}_last))
        return 1;
    all();
    if (screwdyn_detach(&robot, {0}.rows))
        return 1;
    all();"""


def compiler(variable, usual):
    command = shlex.split(os.environ.get(variable, usual))
    assert shutil.which(command[0]), f"this test compiles what it tests: install {usual}, or set {variable}"
    return command


def trees():
    """Trees of one kind of joint and of all, each with an optional last link and bodies beyond it."""
    rng = np.random.default_rng(9)
    for kinds in (("revolute",), ("spherical",), ("planar",), ("free",), ("universal", "helical"), EVERY, EVERY, EVERY):
        tree = random_tree(rng, 4, kinds)
        links = [link for link in tree.links if tree.parent(link)]
        last = sd.KinematicTree(sd.Link("last", random_inertia(rng)))
        last.attach(sd.Link("further", random_inertia(rng)), to="last", joint=sd.spherical(name="ball"), at=[0, 0.1, 0])
        last.attach(sd.Link("beyond", random_inertia(rng)), to="further", at=[0.2, 0, 0])
        tree.attach(last, to=links[-1], joint=sd.revolute((1, 2, 3), name="hook"), at=[0.1, 0, 0])
        yield tree


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The trees, their states in single precision, and a folder with a program for them."""
    folder, found = tmp_path_factory.mktemp("library") / "made", []
    with pytest.raises(OSError):
        sd.c_library(folder / "deeper")
    sd.c_library(folder)
    rng = np.random.default_rng(10)
    for tree in trees():
        name = f"t{len(found) // 2}"
        Path(folder, f"{name}.h").write_text(tree.to_c_table(name, optional="last"))
        for one in (tree, tree.copy()):
            if one is not tree:
                one.detach("last")
            state = one.integrate(one.neutral(), rng.uniform(-1, 1, one.nv)), *rng.uniform(-1, 1, (2, one.nv))
            found.append((one, [x.astype(np.float32).astype(float) for x in state]))
    # Point masses where the axes of two joints meet, off which rounding moves them.
    for k, tilt in enumerate(rng.uniform(-1, 1, (LEAN, 3))):
        lean, meet = sd.robots.ur5(), np.array([0, 0, 0.3])
        lean.attach(sd.Link("frame"), to="tool0", joint=sd.revolute("z"), at=random_pose(rng))
        joint = sd.revolute(tilt, point=meet + 0.3 * tilt, armature=1.0)
        lean.attach(sd.Inertia.point(1.0, meet), to="frame", joint=joint)
        with pytest.raises(sd.SingularAttachmentError):
            lean.forward_dynamics(*np.full((3, 8), 0.1))
        Path(folder, f"lean{k}.h").write_text(lean.to_c_table(f"lean{k}"))
    names = [f"t{k}" for k in range(len(found) // 2)]
    lean_names = [f"lean{k}" for k in range(LEAN)]
    includes = "\n".join(f'#include "{name}.h"' for name in names + lean_names)
    runs = "\n".join([*map(RUN.format, names), *map(RUN_LEAN.format, lean_names)])
    Path(folder, "main.c").write_text(HARNESS % {"headers": includes, "runs": runs})
    return found, folder


def run(written, *command):
    """For each tree and state the results of the program; the space that is left for n rows; and what it refuses."""
    found, folder = written
    given = "\n".join(" ".join(map(repr, np.concatenate(state).tolist())) for _, state in found)
    flags = (
        f"{WARNINGS} {APART} -O0 -ffp-contract=off -I{folder} -DSCREWDYN_ROWS={ROWS} -DSCREWDYN_GROUPS={GROUPS}".split()
    )
    made = folder / str(len(list(folder.iterdir())))
    made.mkdir()
    sources = [folder / name for name in ("main.c", "screwdyn.c")]
    done = subprocess.run([*command, *flags, "-c", *sources], capture_output=True, text=True, cwd=made)
    assert done.returncode == 0 and not done.stderr, done.stderr
    symbols = subprocess.run(["nm", made / "screwdyn.o"], capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r" U (\w+)", symbols)) - {"_GLOBAL_OFFSET_TABLE_"} <= NEEDED  # no heap
    assert set(re.findall(r" [dDbB] (\w+)", symbols)) <= {"screwdyn_kernels"}  # no global that changes
    subprocess.run([command[0], "main.o", "screwdyn.o", "-o", "program", "-lm"], check=True, cwd=made)
    done = subprocess.run([made / "program"], input=given, capture_output=True, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    room, results, refused = lines[:ROWS], lines[ROWS:-1], int(lines[-1][0])
    assert refused == LEAN + 8
    assert {status for status, *_ in results} == {"0"}
    numbers = [np.array([float.fromhex(x) for x in line]) for _, *line in results]
    return [numbers[k : k + 8] for k in range(0, len(numbers), 8)], [int(n) for (n,) in room]


def expected(tree, state):
    q, qd, qdd = state
    M, C, g = tree.dynamics(q, qd)
    separate = tree.mass_matrix(q), tree.coriolis_matrix(q, qd), tree.gravity_vector(q)
    found = *separate, tree.inverse_dynamics(q, qd, qdd), tree.forward_dynamics(q, qd, qdd), g, M, C
    return [x.ravel() for x in found]


@pytest.mark.soak
def test_as_cpp_the_library_has_the_bits_of_the_tree_and_its_scratch_space_is_the_stated_one(written):
    found, room = run(written, *compiler("CXX", "c++"), "-std=c++11", "-xc++")
    assert len(found) == len(written[0]) == 16
    for (tree, state), results in zip(written[0], found, strict=True):
        for x, y in zip(results, expected(tree, state), strict=True):
            assert x.tobytes() == y.tobytes()
    assert room == [0] * ROWS  # never too small, and no larger than the coriolis matrix needs


@pytest.mark.soak
def test_in_single_precision_it_agrees_to_a_hundred_thousandth(written):
    found, room = run(written, *compiler("CC", "cc"), "-std=c99", "-DSCREWDYN_FLOAT")
    assert room == [0] * ROWS
    for (tree, (q, qd, qdd)), results in zip(written[0], found, strict=True):
        M, C, g, tau, acceleration, *shared = expected(tree, (q, qd, qdd))
        mass, rate = norm(M), np.abs(qd).sum()
        # Gravity acts as an acceleration of the base, the rates by their products.
        force = norm(g) + mass * (rate**2 + np.abs(qdd).sum()) + 9.81 * tree.mass
        bounds = [mass, mass * rate, force, force, None, force, mass, mass * rate]
        for x, y, bound in zip(results, [M, C, g, tau, None, *shared], bounds, strict=True):
            if y is not None:
                assert np.abs(x - y).max() < 1e-5 * bound
        # Forward dynamics by what is left of the equation of motion, which does not grow with M's condition number.
        left = M.reshape(tree.nv, tree.nv) @ (results[4] - acceleration)
        assert np.abs(left).max() < 1e-5 * (force + mass * np.abs(acceleration).sum())


def run_example(folder, monkeypatch, capsys, *options):
    """Run the example with further options of the compiler, and compare its numbers with those of Python."""
    monkeypatch.setenv("CC", shlex.join([*compiler("CC", "cc"), *WARNINGS.split(), *options]))
    monkeypatch.setattr("sys.argv", [str(EXAMPLE), str(folder)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert not ended.value.code
    shown = capsys.readouterr().out
    assert "1254 numbers of the C program, 0 of which differ" in shown and "7 freedoms" in shown


@pytest.mark.soak
def test_the_example_has_the_bits_of_python_and_no_kernel_that_it_does_not_call(tmp_path, monkeypatch, capsys):
    run_example(tmp_path, monkeypatch, capsys, APART)
    symbols = subprocess.run(["nm", tmp_path / "hook"], capture_output=True, text=True, check=True).stdout
    kernels = {name.removeprefix("screwdyn_run_") for name in re.findall(r"screwdyn_run_\w+", symbols)}
    assert kernels == {"dynamics", "inverse_dynamics", "forward_dynamics"}  # the linker leaves out the others


@pytest.mark.soak
def test_the_example_has_no_heap_and_a_bound_of_stack_and_size(tmp_path, monkeypatch, capsys):
    """Inlined as for users, but only the six kernels, as the others take the compiler most of its time."""

    def six(folder, written=sd.c_library):
        written(folder)
        path = Path(folder, "screwdyn.c")
        text, _, table = path.read_text().partition("const struct screwdyn_kernel screwdyn_kernels[] = {")
        assert table.endswith("};\n")
        others = rf"SCREWDYN_API (integer screwdyn_(?!(run|scratch)_({'|'.join(SIX)})\()\w+\()"
        path.write_text(re.sub(others, r"static \1", text))

    monkeypatch.setattr(sd, "c_library", six)
    run_example(tmp_path, monkeypatch, capsys, "-Wno-unused-function", "-fstack-usage")
    usage = [line.split("\t") for path in tmp_path.glob("*.su") for line in path.read_text().splitlines()]
    used = {where.rpartition(":")[2]: (int(size), kind) for where, size, kind in usage}
    assert {kind for _, kind in used.values()} == {"static"}  # no arrays of a size that is known while it runs
    calling = max(size for name, (size, _) in used.items() if name.partition(".")[0] == "screwdyn_run")
    assert calling + max(used[f"screwdyn_run_{name}"][0] for name in SIX) <= STACK
    sections = subprocess.run(["size", tmp_path / "hook"], capture_output=True, text=True, check=True).stdout
    assert int(sections.splitlines()[1].split()[0]) < PROGRAM


def hooked(joint=None):
    arm = sd.robots.two_link()
    end = arm.links[-1]
    arm.attach(sd.Link("crate", sd.Inertia.point(1.0)), to=end, joint=joint or sd.revolute("x", name="hook"))
    return arm, end


def test_what_a_table_cannot_hold_is_refused_by_name():
    arm, end = hooked()
    for wrong in ("no name", "2arm", "double", "", 3):
        with pytest.raises(sd.ScrewdynError, match=re.escape(f"must be a name in C; got {wrong!r}")):
            arm.to_c_table(wrong)
    with pytest.raises(sd.UnknownNameError, match="'box'"):
        arm.to_c_table(optional=["box"])
    with pytest.raises(sd.ScrewdynError, match="each optional link once"):
        arm.to_c_table(optional=["crate", "crate"])
    with pytest.raises(sd.TopologyError, match=f"'crate' is beyond optional link {end!r}"):
        arm.to_c_table(optional=[end, "crate"])
    with pytest.raises(sd.TopologyError, match=r"optional link 'base' is the base"):
        arm.to_c_table(optional="base")
    welded, end = hooked(sd.fixed())
    with pytest.raises(sd.TopologyError, match=f"'crate' is fixed to {end!r}, so it has no row"):
        welded.to_c_table(optional="crate")
    following, _ = hooked(sd.revolute("x", name="gear", mimic=sd.Mimic(arm.coordinates[0])))
    with pytest.raises(sd.TopologyError, match=f"'gear' follows '{arm.coordinates[0]}'"):
        following.to_c_table()
    arm.close("crate", to="base", joint=sd.spherical(), name="ring")
    with pytest.raises(sd.LoopError, match="'ring'"):
        arm.to_c_table()
    symbolic, _ = hooked()
    symbolic.set_inertia("crate", sd.Inertia.point(sympy.Symbol("mass")))
    with pytest.raises(sd.UnboundSymbolError, match="mass"):
        symbolic.to_c_table()


def test_a_tree_without_joints_is_a_part_without_rows():
    text = sd.KinematicTree().to_c_table()
    assert "static const struct screwdyn_part robot = {-1, 0, 0, 0, 0, 0, 0, 0, 0};" in text
    assert "ROBOT_NV = 0" in text and "#error" not in text


def test_names_of_links_do_not_clash_with_those_of_a_table():
    tree = sd.KinematicTree()
    links = ["base ", "table", "NV", "crate", "crate_table", "crate table"]
    for link in links:
        tree.attach(sd.Link(link, sd.Inertia.point(1.0, (1, 0, 0))), to="base", joint=sd.revolute("z"))
    defined = re.findall(r"(\w+)(?:\[\])* =", tree.to_c_table("R", optional=links))
    assert len(defined) == 2 + 1 + 1 + 3 * len(links) == len(set(defined))
