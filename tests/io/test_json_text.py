"""Trees as JSON: nothing is lost, and every problem of a document is reported with its place."""

import json
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from kinds import EVERY
from numpy.testing import assert_array_equal

import screwdyn as sd
from screwdyn import JSONError, KinematicTree, screw
from screwdyn.mechanism.chart import Chart
from screwdyn.mechanism.joint import Joint, Mimic
from screwdyn.mechanism.link import Attachment, Link, Locked
from screwdyn.mechanism.topology import Topology
from screwdyn.testing import random_tree


def decorated(rng, n):
    """A random tree whose joints have forces and limits, and whose base has a mass."""
    tree = random_tree(rng, n, EVERY)
    root = KinematicTree(sd.Link("floor", sd.Inertia(2.0, (0.1, 0.2, 0.3), (1, 1, 1))), tree.gravity)
    root.attach(tree, to="floor", at=(0.1, -0.2, 1 / 3), name="pedestal")
    a, b, c = rng.uniform(0, 1, 3)
    root.attach(
        sd.Inertia(1.0),
        to="pedestal",
        joint=sd.revolute("y", (a, b, c), damping=a, friction=b, stiffness=c, rest=-a, limits=(-np.inf, b), effort=c),
        name="spring",
    )
    slide = sd.planar((a, b, c), (c, b, a), passive=True, velocity=a, name="slide")
    root.attach(sd.Inertia(1.0), to="spring", joint=slide)
    return root


@given(st.integers(0, 2**32 - 1), st.integers(0, 6))
def test_m_c_and_g_come_back_to_the_last_bit(seed, n):
    rng = np.random.default_rng(seed)
    tree = decorated(rng, n)
    text = tree.to_json()
    twin = KinematicTree.from_json(text)
    q, qd = tree.random_configuration(rng), rng.uniform(-2, 2, tree.nv)
    assert (twin.links, twin.joints) == (tree.links, tree.joints)
    assert (twin.coordinates, twin.positions) == (tree.coordinates, tree.positions)
    assert_array_equal(twin.mass_matrix(q), tree.mass_matrix(q))
    assert_array_equal(twin.coriolis_matrix(q, qd), tree.coriolis_matrix(q, qd))
    assert_array_equal(twin.gravity_vector(q), tree.gravity_vector(q))
    assert_array_equal(twin.joint_force(q, qd), tree.joint_force(q, qd))
    assert_array_equal(twin.actuation_matrix, tree.actuation_matrix)
    for what in ("limits", "effort", "velocity"):
        assert [getattr(twin.joint(x), what) for x in twin.joints] == [
            getattr(tree.joint(x), what) for x in tree.joints
        ]
    assert twin.to_json() == text


@given(st.integers(0, 2**32 - 1))
def test_locked_joints_can_be_unlocked(seed):
    rng = np.random.default_rng(seed)
    tree = decorated(rng, 4)
    state = sd.State(tree, tree.random_configuration(rng))
    for name in ("slide", "spring", "joint3"):
        if tree.joint(name).nv:
            tree.lock(name, at=[state[x] for x in tree.joint(name).position_names(name)])
    twin = KinematicTree.from_json(tree.to_json())
    assert twin.locked == tree.locked
    for name in tree.locked:
        tree.unlock(name)
        twin.unlock(name)
    assert twin.to_json() == tree.to_json()


@pytest.mark.filterwarnings("ignore::screwdyn.ScrewdynWarning")
def test_the_orientation_of_a_lock_comes_back_to_the_last_bit():
    tree = KinematicTree()
    tree.attach(sd.Inertia.box(1, (0.1, 0.2, 0.3)), "base", sd.spherical(name="ball"), name="arm")
    tree.lock("ball", at=[0.187, -0.196, 0.95, 0.156])  # of length 1 but for rounding, also after it is scaled
    twin = KinematicTree.from_json(tree.to_json())
    assert twin.lock_of("ball").q == tree.lock_of("ball").q
    document = json.loads(tree.to_json())
    document["links"][0]["locked"]["q"] = [0, 0, 0, 1.0005]
    assert KinematicTree.from_json(json.dumps(document)).lock_of("ball").q == (0, 0, 0, 1)


def test_locked_joints_that_follow_others_can_be_unlocked():
    tree = sd.robots.two_link()
    to, body = tree.links[-1], sd.Inertia.box(1, (0.1, 0.2, 0.3))
    tree.attach(body, to, sd.prismatic("x", rotor=sd.Rotor(1e-4, 50), name="left"), name="l")
    tree.attach(body, to, sd.prismatic("x", mimic=sd.Mimic("left", -1.5, 0.1), name="right"), name="r")
    before = tree.copy()
    tree.lock("left", at=0.02)
    twin = KinematicTree.from_json(tree.to_json())
    assert twin.to_json() == tree.to_json()
    assert twin.locked == ("left", "left_rotor", "right")
    twin.unlock("left")
    assert twin.to_json() == before.to_json()


@pytest.mark.parametrize("make", ["pelican", "puma560", "rtx", "stanford", "truc_3r", "two_link", "ur5"])
def test_known_robots_also_with_effective_inertias(make):
    tree = getattr(sd.robots, make)()
    twin = KinematicTree.from_json(tree.to_json())
    assert [twin.link(name).inertia for name in twin.links] == [tree.link(name).inertia for name in tree.links]
    q = np.linspace(0, 1, tree.nv)
    assert_array_equal(twin.mass_matrix(q), tree.mass_matrix(q))


def test_an_effective_inertia_stays_one_without_a_warning():
    tree = KinematicTree()
    with pytest.warns(sd.ScrewdynWarning):
        body = sd.Inertia.effective(0.0, 0, (0, 0.35, 0))
    tree.attach(sd.Link("turret", body), to="base", joint=sd.revolute("y"))
    assert KinematicTree.from_json(tree.to_json()).link("turret").inertia.is_effective
    assert not KinematicTree.from_json(sd.robots.ur5().to_json()).link("wrist_3_link").inertia.is_effective


def test_expressions_and_what_is_assumed_of_symbols():
    L, m = sympy.symbols("L m", positive=True)
    angle, g = sympy.symbols("angle g")
    turned = sympy.Matrix(sympy.rot_axis3(-angle)).row_join(sympy.Matrix([0, L / 3, 0.1 * L + sympy.sqrt(2)]))
    tree = KinematicTree(gravity=(0, 0, -g))
    tree.attach(
        sd.Inertia.rod(m, L, com=(L / 2, 0, 0)),
        to="base",
        joint=sd.revolute("y", damping=0.1 * L**2 + sympy.pi, name="hinge"),
        at=turned.col_join(sympy.Matrix([[0, 0, 0, 1]])).tolist(),
        name="rod",
    )
    text = tree.to_json()
    twin = KinematicTree.from_json(text)
    assert twin.free_symbols == tree.free_symbols
    assert twin.to_json() == text
    assert twin.symbolic().mass_matrix() == tree.symbolic().mass_matrix()
    assert twin.joint("hinge").damping == tree.joint("hinge").damping


def test_shapes_come_back_as_they_are():
    turned = screw.pose([[0.8, -0.6, 0], [0.6, 0.8, 0], [0, 0, 1]], (0.1, 0.2, 1 / 3))
    shapes = [
        sd.Shape.box((0.1, 1 / 3, 0)),
        sd.Shape.cylinder(0.1, 0.2, pose=turned, color=(0.1, 0.2, 0.3, 0.4)),
        sd.Shape.capsule(0.1, 0.2, use="collision"),
        sd.Shape.sphere(1 / 7, color=(0, 0, 1), use="collision"),
        sd.Shape.mesh("/käse/a.stl", (1, -1, 0.001)),
        sd.Shape.mesh("package://arm/link.dae"),
    ]
    tree = KinematicTree(sd.Link("base", None, shapes))
    tree.attach(sd.Inertia(1.0), to="base", joint=sd.revolute(), name="lower", shape=shapes)
    tree.attach(sd.Inertia(1.0), to="lower", joint=sd.revolute(), name="upper")
    tree.lock("lower")
    twin = KinematicTree.from_json(tree.to_json())
    assert twin.to_json() == tree.to_json()
    assert [twin.shapes(link) for link in twin.links] == [tuple(shapes), tuple(shapes), ()]


def test_a_file_and_its_text_are_the_same(tmp_path):
    path = tmp_path / "arm.json"
    text = sd.robots.two_link().to_json()
    path.write_text(text, encoding="utf-8")
    assert KinematicTree.from_json(path).to_json() == KinematicTree.from_json(str(path)).to_json() == text
    assert sum(line.startswith('{"name": ') for line in text.splitlines()) == len(sd.robots.two_link().links) - 1


def test_every_field_of_a_tree_has_a_place_in_the_document():
    """A new field must be written and read, and then be listed here."""
    known = {
        Topology: {"attachments", "carried", "gravity", "revision", "followers", "loops", "contacts"},
        Attachment: {"link", "parent", "joint", "home", "serial", "locked"},
        Link: {"name", "inertia", "shapes"},
        sd.Shape: {"kind", "size", "path", "pose", "color", "use"},
        Joint: {"screws", "passive", "damping", "friction", "stiffness", "rest", "limits", "name", "chart"}
        | {"effort", "velocity", "armature", "mimic", "rotor"},
        Chart: {"orientation", "translations", "axes", "center"},
    }
    assert {cls: {field.name for field in fields(cls)} for cls in known} == known
    assert sd.Inertia.__slots__ == ("_com", "_effective", "_numbers", "_tensor")


def test_every_key_that_is_written_is_described():
    described = (Path(__file__).parents[2] / "docs/files.md").read_text(encoding="utf-8")
    known = (Attachment, Link, sd.Shape, Joint, Chart, Mimic, sd.Rotor, Locked)
    keys = {field for cls in known for field in getattr(cls, "_fields", None) or [x.name for x in fields(cls)]}
    assert sorted(key for key in keys - {"link", "serial"} if f"`{key}`" not in described) == []


# problems -----------------------------------------------------------------------------------------

ROD = {
    "name": "rod",
    "inertia": {"mass": 1.0, "com": [0.5, 0, 0], "tensor": [0, 0, 0, 1 / 12, 0, 1 / 12]},
    "parent": "base",
    "home": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]],
    "joint": {"name": "hinge", "screws": [[0, 1, 0, 0, 0, 0]]},
}


BOX = {"kind": "box", "size": [1, 2, 3]}
ROTOR = {"inertia": 1e-4, "axis": [0, 0, 1], "com": [0, 0, 0], "mass": 0.1, "across": 1e-4}
LOCKED = {"home": ROD["home"], "joint": ROD["joint"], "q": [0.5]}


def document(links=(ROD,), **changes):
    whole = {"format": "screwdyn tree", "version": 1, "gravity": [0, 0, -9.81], "base": {"name": "base"}}
    return json.dumps(whole | {"links": list(links)} | changes)


def problems(text):
    with pytest.raises(JSONError) as caught:
        KinematicTree.from_json(text)
    assert all(str(problem) in str(caught.value) for problem in caught.value.problems)
    return [str(problem) for problem in caught.value.problems]


def test_the_document_of_these_tests_is_valid():
    tree = KinematicTree.from_json(document())
    assert (tree.coordinates, tree.mass_matrix([0.3])[0, 0]) == (("hinge",), pytest.approx(1 / 3))


@pytest.mark.parametrize(
    ("changes", "place", "words"),
    [
        ({"name": ""}, "links[0].name", "expected a non-blank string"),
        ({"name": "base"}, "links[0].name", "a second link has the name 'base'"),
        ({"parent": "bas"}, "links[0].parent", "did you mean 'base'?"),
        ({"parent": "rod"}, "links[0].parent", "there is no link 'rod' before this one"),
        ({"home": [[1, 0, 0, 0]]}, "links[0].home", "3 rows of 4 numbers"),
        ({"home": [[2, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]}, "links[0].home", "not orthonormal"),
        ({"colour": "red"}, "links[0].colour", "unknown key"),
        ({"inertia": ROD["inertia"] | {"mass": -1}}, "links[0].inertia", "mass -1 kg is not positive"),
        ({"inertia": ROD["inertia"] | {"mass": True}}, "links[0].inertia.mass", "expected a number; got true"),
        ({"inertia": ROD["inertia"] | {"mass": None}}, "links[0].inertia.mass", "expected a number; got null"),
        ({"inertia": ROD["inertia"] | {"com": [0, 0]}}, "links[0].inertia.com", "a list of 3 numbers"),
        ({"inertia": ROD["inertia"] | {"mass": "9**9**9**9"}}, "links[0].inertia.mass", "too large"),
        ({"inertia": ROD["inertia"] | {"mass": "open('x')"}}, "links[0].inertia.mass", "not allowed"),
        ({"shapes": {}}, "links[0].shapes", "expected a list of shapes; got an object"),
        ({"shapes": [3]}, "links[0].shapes[0]", "expected the keys kind, size"),
        ({"shapes": [{"kind": "box"}]}, "links[0].shapes[0]", "the key 'size' is missing"),
        ({"shapes": [BOX | {"kind": "cone"}]}, "links[0].shapes[0].kind", "one of 'box', 'cylinder'"),
        ({"shapes": [BOX | {"size": [1, 2]}]}, "links[0].shapes[0]", "the size of a box is (edge x, edge y, edge z)"),
        ({"shapes": [BOX, BOX | {"size": [1, 2, -3]}]}, "links[0].shapes[1]", "the edge z of a box must be >= 0"),
        ({"shapes": [BOX | {"size": [1, 2, "L"]}]}, "links[0].shapes[0].size[2]", "expected a number; got 'L'"),
        ({"shapes": [BOX | {"path": "a.stl"}]}, "links[0].shapes[0]", "only a mesh has a path"),
        ({"shapes": [BOX | {"kind": "mesh"}]}, "links[0].shapes[0]", "a mesh needs the path"),
        ({"shapes": [BOX | {"pose": [[1, 0, 0, 0]]}]}, "links[0].shapes[0].pose", "3 rows of 4 numbers"),
        ({"shapes": [BOX | {"color": [0, 0, 2, 1]}]}, "links[0].shapes[0]", "each from 0 to 1"),
        ({"shapes": [BOX | {"use": "both"}]}, "links[0].shapes[0].use", "one of 'visual', 'collision'"),
        ({"shapes": [BOX | {"use": None}]}, "links[0].shapes[0].use", "got null"),
        ({"shapes": [BOX | {"colour": 1}]}, "links[0].shapes[0].colour", "did you mean 'color'?"),
        ({"joint": {"screws": [[0, 2, 0, 0, 0, 0]]}}, "links[0].joint", "must be a unit screw"),
        ({"joint": {"screws": []}}, "links[0].joint.screws", "some rows of 6 numbers"),
        ({"joint": ROD["joint"] | {"damping": -1}}, "links[0].joint", "damping must be a finite number >= 0"),
        ({"joint": ROD["joint"] | {"limits": [1]}}, "links[0].joint.limits", "two numbers or null"),
        ({"joint": ROD["joint"] | {"dampling": 1}}, "links[0].joint.dampling", "did you mean 'damping'?"),
        ({"joint": ROD["joint"] | {"passive": 1}}, "links[0].joint.passive", "true or false"),
        ({"joint": ROD["joint"] | {"rotor": ROTOR}}, "links[0].joint.rotor", "the key 'ratio' is missing"),
        ({"joint": {"chart": {"orientation": 3}}}, "links[0].joint.chart", "the key 'center' is missing"),
        ({"locked": {"home": ROD["home"]}}, "links[0].locked", "the key 'joint' is missing"),
        ({"locked": LOCKED}, "links[0].locked", "a locked joint must be fixed"),
        ({"joint": {}, "locked": LOCKED}, "links[0].locked", "the same name"),
        ({"joint": {"name": "hinge"}, "locked": LOCKED | {"q": []}}, "links[0].locked.q", "a list of 1 numbers"),
    ],
)
def test_a_problem_of_a_link_is_reported_with_its_place(changes, place, words):
    found = problems(document([ROD | changes]))
    assert any(problem.startswith(f"{place}: ") and words in problem for problem in found), found


@pytest.mark.parametrize(
    ("number", "words"),
    [
        *((x, "not a finite number") for x in ("NaN", "Infinity", "-Infinity", "1e999", "-" + "9" * 5000)),
        *((x, "larger than 1e+50") for x in ("1e51", "-1e300", "9" * 52, "9" * 310, '"10**60"')),
    ],
)
def test_numbers_that_are_not_finite_or_whose_products_overflow(number, words):
    (problem,) = problems(document().replace("-9.81", number))
    assert problem.startswith("gravity[2]: ")
    assert words in problem


def test_numbers_that_could_not_be_read_again_are_not_written():
    tree = KinematicTree()
    joint = sd.revolute(limits=(-1e300, 1e300), name="j")
    tree.attach(sd.Inertia(1.0), to="base", joint=replace(joint, stiffness=1e60), name="giant")
    with pytest.raises(JSONError, match=r"link 'giant': 1e\+60 is larger than 1e\+50"):
        tree.to_json()
    tree.replace_joint("giant", joint)
    assert KinematicTree.from_json(tree.to_json()).joint("j").limits == (-1e300, 1e300)


def test_all_problems_are_listed_together():
    text = document([ROD | {"parent": "elsewhere"}, {"name": "rod"}, 3], gravity=[0, 0], extra=1)
    found = problems(text)
    assert len(found) == 7
    for place in ("gravity: ", "extra: ", "links[0].parent: ", "links[1]: ", "links[2]: "):
        assert any(problem.startswith(place) for problem in found), (place, found)


def test_repeated_keys_and_names():
    text = document().replace('"parent": "base"', '"parent": "base", "parent": "base"')
    assert problems(text) == ["links[0].parent: the key is given more than once; keep one"]
    twice = problems(document([ROD, ROD]))
    assert "links[1].name: a second link has the name 'rod'; the first is at links[0].name; rename one" in twice
    assert any("a second joint has the name 'hinge'" in problem for problem in twice)
    clash = document([ROD, ROD | {"name": "b", "joint": {"name": "hinge[w]"}}])
    assert KinematicTree.from_json(clash).joints == ("hinge", "hinge[w]")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1, 2]", "expected an object"),
        ("{}", 'the key "format" is not'),
        ('{"format": "screwdyn tree", "version": 2}', "version 2 of the format is not known"),
        ('{"format": "screwdyn tree", "version": true}', "version True"),
        ("{", "line 1, column 2: not valid JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ("nowhere.json", "cannot read the file 'nowhere.json'"),
        ("", "the path is empty"),
        (b"{}", "a bytes is not a JSON"),
        (3, "a int is not a JSON"),
    ],
)
def test_what_is_no_such_document(text, words):
    with pytest.raises(JSONError) as caught:
        KinematicTree.from_json(text)
    assert words in str(caught.value)


def test_a_file_that_is_not_utf8(tmp_path):
    path = tmp_path / "arm.json"
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(JSONError, match="not valid UTF-8"):
        KinematicTree.from_json(path)


def test_expressions_that_cannot_be_written_are_listed():
    tree = KinematicTree()
    x = sympy.Symbol("x")
    for name, damping in (("a", sympy.Function("f")(x)), ("b", sympy.Symbol("two words")), ("c", sympy.Symbol("pi"))):
        tree.attach(sd.Inertia(1.0), to="base", joint=sd.revolute(damping=damping, friction=damping), name=name)
    tree.attach(sd.Inertia(sympy.Symbol("x", positive=True)), to="base", name="d")
    tree.attach(sd.Inertia(x), to="base", name="e")
    with pytest.raises(JSONError) as caught:
        tree.to_json()
    assert len(caught.value.problems) == 4
    for words in (
        "link 'a': f cannot be written",
        "'two words' cannot",
        "'pi' cannot",
        "two symbols have the name 'x'",
    ):
        assert words in str(caught.value)


def test_names_have_no_control_characters():
    text = sd.robots.two_link().to_json().replace('"link1"', '"link1\\u001b[2J"', 1)
    with pytest.raises(
        JSONError, match=r"links\[0\]\.name: expected a non-blank string without control characters; got "
    ):
        KinematicTree.from_json(text)
