"""Any document gives either a valid tree or a named error; none hangs, nests too deeply or takes much memory."""

import json
import subprocess
import sys
import warnings
from pathlib import Path

import hostile
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import screwdyn as sd
from screwdyn import KinematicTree, ScrewdynError
from screwdyn.cli.scenario import read_scenario

ROOT = Path(__file__).parents[2]
SHAPE = (
    b'<visual><origin xyz="0 0 1" rpy="0 1 0"/><geometry><cylinder radius="1" length="2"/></geometry>'
    b'<material name="red"><color rgba="1 0 0 1"/></material></visual></link>'
)
ARM = (ROOT / "tests/data/urdf/arm.urdf").read_bytes().replace(b"</link>", SHAPE, 1)
SCENARIO = (ROOT / "examples/carry_a_crate.toml").read_bytes()

NAMES = st.sampled_from(["a", "b", "c", "j", "k", "", "a b", "é", "a[w]", "\t", "<&>", "0", "x" * 300])
NUMBERS = st.sampled_from(
    [
        *("0", "1", "-1", "0.5", "1e-3", "1e308", "1e999", "-1e999", "nan", "inf", "Infinity", "1,5", "", "0x10"),
        *("1_0", "١", "9" * 400, "1e-400", "+.5", "--1", "1e", "true", "null"),
    ]
)


def valid(tree):
    """The quantities of a tree that was read are finite, and it can be written and read again."""
    q = tree.neutral()
    for matrix in (tree.mass_matrix(q), tree.gravity_vector(q), tree.coriolis_matrix(q, np.ones(tree.nv))):
        assert not np.isnan(matrix).any()
    assert str(tree)
    assert KinematicTree.from_json(tree.to_json()).coordinates == tree.coordinates


def tried(read, document):
    """Read a document; anything but a tree or a named error with a message is passed on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sd.ScrewdynWarning)
        # Products of numbers of any size overflow in NumPy's checks.
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            return read(document)
        except ScrewdynError as error:
            assert str(error).strip()
            return None


def mutated(document):
    """The document after some changes of bytes: replaced, inserted, removed and repeated parts."""
    part = st.tuples(st.integers(0, len(document)), st.integers(0, 40), st.binary(max_size=4), st.integers(0, 3))

    def change(parts):
        text = bytearray(document)
        for at, length, new, sort in parts:
            end = at + length
            text[at:end] = (new, text[at:end] + new, b"", text[at:end] * 2)[sort]
        return bytes(text)

    return st.lists(part, min_size=1, max_size=4).map(change)


# URDF ---------------------------------------------------------------------------------------------


def element(tag, children="", **attributes):
    inside = "".join(f' {key}="{value}"' for key, value in attributes.items())
    return f"<{tag}{inside}>{children}</{tag}>"


TRIPLES = st.lists(NUMBERS, min_size=0, max_size=4).map(" ".join) | st.just("0 0 1")
ORIGINS = st.builds(lambda a, b: element("origin", xyz=a, rpy=b), TRIPLES, TRIPLES)
ENTRIES = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
MOMENTS = st.lists(NUMBERS, min_size=6, max_size=6).map(
    lambda x: element("inertia", **dict(zip(ENTRIES, x, strict=True)))
) | st.just('<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>')
INERTIALS = st.builds(
    lambda *parts: element("inertial", "".join(parts)),
    ORIGINS | st.just(""),
    NUMBERS.map(lambda x: element("mass", value=x)) | st.just(""),
    MOMENTS | st.just(""),
)
BODIES = st.builds(
    lambda tag, size, number, name: element(
        tag, size=size, scale=size, radius=number, length=number, filename=name, rgba=size
    ),
    st.sampled_from(["box", "cylinder", "capsule", "sphere", "mesh", "plane"]),
    TRIPLES,
    NUMBERS,
    NAMES,
)
MATERIALS = st.builds(
    lambda name, inside: element("material", inside, name=name),
    NAMES,
    NUMBERS.map(lambda x: element("color", rgba=f"{x} 0 0 1")) | st.just(""),
)
SHAPES = st.builds(
    lambda tag, *parts: element(tag, "".join(parts)),
    st.sampled_from(["visual", "collision"]),
    ORIGINS | st.just(""),
    BODIES.map(lambda body: element("geometry", body)) | st.just(""),
    MATERIALS | st.just(""),
)
LINKS = st.builds(
    lambda name, *parts: element("link", "".join(parts), name=name),
    NAMES,
    INERTIALS | st.just(""),
    SHAPES | st.just(""),
)
TYPES = st.sampled_from(["revolute", "continuous", "prismatic", "fixed", "floating", "planar", "weld", ""])
JOINTS = st.builds(
    lambda name, kind, parent, child, parts: element(
        "joint", element("parent", link=parent) + element("child", link=child) + "".join(parts), name=name, type=kind
    ),
    NAMES,
    TYPES,
    NAMES,
    NAMES,
    st.lists(
        ORIGINS
        | TRIPLES.map(lambda x: element("axis", xyz=x))
        | st.builds(lambda a, b: element("limit", lower=a, upper=b, effort=b, velocity=a), NUMBERS, NUMBERS)
        | st.builds(lambda a, b: element("dynamics", damping=a, friction=b), NUMBERS, NUMBERS)
        | st.builds(lambda a, b: element("mimic", joint=a, multiplier=b), NAMES, NUMBERS),
        max_size=4,
    ),
)
POINT = element("inertial", '<mass value="1"/>' + element("inertia", **dict.fromkeys(ENTRIES, "0")))
CHAIN = (
    "".join(element("link", POINT, name=name) for name in "abc")
    + '<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>'
    + '<joint name="k" type="continuous"><parent link="b"/><child link="c"/></joint>'
)
ROBOTS = st.builds(
    lambda start, parts: f"<robot>{start}{''.join(parts)}</robot>",
    st.sampled_from(["", CHAIN]),
    st.lists(LINKS | JOINTS | st.sampled_from(["<!-- x -->", "<gazebo><a/></gazebo>", "<link/>", "&amp;"]), max_size=8),
)


@given(ROBOTS)
def test_urdf_by_grammar(text):
    tree = tried(KinematicTree.from_urdf, text)
    if tree is not None:
        valid(tree)


@st.composite
def nearly_sound(draw):
    """A robot whose links form a tree, with a number here and there that is unusual."""
    usual = st.sampled_from(["0", "0.1", "-0.3", "1", "2.5", "1e-3"])
    number = st.sampled_from([usual] * 30 + [NUMBERS]).flatmap(lambda numbers: numbers)

    def triple():
        return " ".join(draw(st.tuples(number, number, number)))

    parts = [element("link", name="0")]
    for k in range(1, draw(st.integers(1, 5))):
        moments = dict.fromkeys(ENTRIES, "0") | {entry: draw(number) for entry in ("ixx", "iyy", "izz")}
        inertial = element("origin", xyz=triple(), rpy=triple()) + element("mass", value=draw(number))
        parts.append(element("link", element("inertial", inertial + element("inertia", **moments)), name=str(k)))
        inside = element("parent", link=str(draw(st.integers(0, k - 1)))) + element("child", link=str(k))
        inside += element("origin", xyz=triple(), rpy=triple()) + element("axis", xyz=triple())
        inside += element("dynamics", damping=draw(number)) + element("limit", lower=draw(number), effort=draw(number))
        parts.append(element("joint", inside, name=f"j{k}", type=draw(TYPES)))
    return f"<robot>{''.join(parts)}</robot>"


@given(nearly_sound())
def test_urdf_that_is_nearly_sound(text):
    tree = tried(KinematicTree.from_urdf, text)
    if tree is not None:
        valid(tree)


@given(mutated(ARM))
def test_urdf_by_byte(document):
    tree = tried(KinematicTree.from_urdf, f"<{document.decode('utf-8', 'replace').lstrip('<')}")
    if tree is not None:
        valid(tree)


@given(st.binary(max_size=200))
def test_urdf_of_any_bytes(tmp_path_factory, document):
    path = tmp_path_factory.mktemp("fuzz") / "robot.urdf"
    path.write_bytes(document)
    assert tried(KinematicTree.from_urdf, path) is None


# JSON ---------------------------------------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["m*L", "9**9**9"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
TWO_LINK = sd.robots.two_link()
TWO_LINK.set_shapes("link2", sd.Shape.mesh("a.stl", 0.5, pose=(0, 0, 1), color=(0, 0, 1), use="collision"))
DOCUMENT = json.loads(TWO_LINK.to_json())


def places(value, path=()):
    """Paths to all values of a document."""
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        yield from places(item, (*path, key))


def value_at(document, path):
    for key in path:
        document = document[key]
    return document


def replaced(value, path, new):
    if not path:
        return new
    copied = value.copy()
    copied[path[0]] = replaced(value[path[0]], path[1:], new)
    return copied


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(list(places(DOCUMENT))), VALUES), min_size=1, max_size=3))
def test_json_with_other_values(changes):
    document = DOCUMENT
    for path, value in changes:
        if path in set(places(document)):
            document = replaced(document, path, value)
    tree = tried(KinematicTree.from_json, "{" + json.dumps(document).lstrip("{"))
    if tree is not None and not tree.free_symbols:
        valid(tree)


# Places of numbers.
LEAVES = [path for path in places(DOCUMENT) if type(value_at(DOCUMENT, path)) is float]


@given(st.lists(st.tuples(st.sampled_from(LEAVES), st.floats(width=16) | st.floats()), min_size=1, max_size=3))
def test_json_with_other_numbers(changes):
    document = DOCUMENT
    for path, value in changes:
        document = replaced(document, path, value)
    tree = tried(KinematicTree.from_json, json.dumps(document))
    if tree is not None:
        valid(tree)


@given(mutated(TWO_LINK.to_json().encode()))
def test_json_by_byte(document):
    tree = tried(KinematicTree.from_json, "{" + document.decode("utf-8", "replace").lstrip("{"))
    if tree is not None and not tree.free_symbols:
        valid(tree)


# TOML ---------------------------------------------------------------------------------------------


@given(mutated(SCENARIO))
def test_toml_by_byte(tmp_path_factory, document):
    path = tmp_path_factory.mktemp("fuzz") / "scenario.toml"
    path.write_bytes(document)
    tried(read_scenario, path)


@pytest.mark.slow
def test_a_hostile_document_is_refused_with_little_time_and_memory():
    done = subprocess.run([sys.executable, hostile.__file__], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr[-2000:]


@pytest.mark.slow
def test_a_chain_longer_than_the_recursion_limit():
    """tests/io/test_fuzz_soak.py reads a chain of 1e5 links."""
    n = sys.getrecursionlimit() + 100
    for tree in read_and_written(n):
        # Σ g x, horizontal and stretched out.
        assert tree.gravity_vector(np.zeros(n))[0] == pytest.approx(-9.81 * (n - 1) * n / 2)


def read_and_written(n):
    """A chain of n links, read from URDF, and the same written and read as JSON and as URDF."""
    moments = 'ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"'
    lines = [
        f'<link name="l{i}"><inertial><mass value="1"/><inertia {moments}/></inertial></link>'
        f'<joint name="j{i}" type="continuous"><origin xyz="1 0 0"/><parent link="{f"l{i - 1}" if i else "base"}"/>'
        f'<child link="l{i}"/><axis xyz="0 1 0"/></joint>'
        for i in range(n)
    ]
    tree = KinematicTree.from_urdf("\n".join(['<robot name="chain"><link name="base"/>', *lines, "</robot>"]))
    trees = tree, KinematicTree.from_json(tree.to_json()), KinematicTree.from_urdf(tree.to_urdf())
    for twin in trees:
        assert (twin.nv, twin.mass, twin.links) == (n, n, tree.links)
        assert len(str(twin)) < 200 * n
        assert len(twin.path(f"l{n - 1}")) == len(twin.subtree("base")) == n + 1
    return trees
