"""docs/troubleshooting.md has every message of the library, and every error of a heading occurs with its message."""

import ast
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import sympy

import screwdyn as sd
from screwdyn.backends.llvm import machine
from screwdyn.cli.scenario import read_scenario
from screwdyn.simulation import coulomb

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
HEADINGS = re.findall(r"^### (\w+): `(.+)`$", PAGE, re.MULTILINE)
# The first cells of the tables of messages, and what is printed on stderr
OTHERS = [words for row in re.findall(r"^\| (`.*?`) \|", PAGE, re.MULTILINE) for words in re.findall("`([^`]+)`", row)]
PRINTED = re.findall(r"^### `(?:\w+Warning: )?(.+)`$", PAGE, re.MULTILINE)
q, m = np.zeros(2), sympy.Symbol("m")


def arm():
    return sd.robots.two_link()


def tip():
    return arm().links[-1]


def on_a_joint(body, joint):
    tree = sd.KinematicTree()
    tree.attach(body, to="base", joint=joint, name="body")
    return tree


def ball():
    return on_a_joint(sd.Inertia.sphere(1, 0.1), sd.free(name="ball"))


def state_of_before():
    tree = arm()
    before = sd.State(tree)
    tree.attach(sd.Inertia.sphere(1, 0.1), to=tip(), joint=sd.revolute("x"), name="crate")
    tree.release(before, "crate")


def handle_of_before():
    tree = arm()
    handle = tree.attach(sd.Inertia.point(1), to=tip(), name="crate")
    tree.detach(handle)
    tree.attach(sd.Inertia.point(1), to=tip(), name="crate")
    tree.detach(handle)


def locked_twice():
    tree = arm()
    tree.lock(tree.joints[0])
    tree.lock(tree.joints[0])


def four_bar():
    tree = sd.KinematicTree()
    for k, (name, length) in enumerate({"crank": 1.0, "coupler": 1.0, "rocker": 1.0}.items()):
        to, at = (tree.links[-1], (1.0, 0, 0)) if k else ("base", (0, 0, 0))
        tree.attach(sd.Inertia.rod(1, length, com=(0.5, 0, 0)), to=to, joint=sd.revolute("z"), at=at, name=name)
    tree.close("rocker", to="base", joint=sd.revolute("z", point=(1.0, 0, 0)), at=(5.0, 0, 0))
    return tree


def between_walls():
    tree = on_a_joint(sd.Inertia.point(1), sd.prismatic("z"))
    for side in (1, -1):
        tree.touch("body", "base", on=sd.Plane((0, 0, side), 0.1), points=(0, 0, 0), name=f"wall {side}")
    return tree


def jammed():
    tree = on_a_joint(sd.Inertia.box(1.0, (1.0, 1e-9, 1e-9)), sd.planar("y"))
    tree.touch("body", "base", on=sd.Plane(), points=(-0.5, 0, 0), friction=2.0)
    angle = np.arctan(2)
    J = tree.contact_rows(q := [-angle, 0, -0.5 * np.sin(angle)], np.zeros(3)).jacobian[0]
    sd.simulate(tree, sd.State(tree, q, np.linalg.pinv(J) @ [0, -1, 0]), 1.0)


def chatter():
    tree = on_a_joint(sd.Inertia.rod(1, 1, com=(0.5, 0, 0)), sd.revolute("z"))
    sd.simulate(tree, sd.State(tree, [0.1], [0.3]), 100.0, torque=lambda t, state: -20 * np.sign(state.q + state.qd))


def without_llvmlite():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "_missing", ImportError("No module named 'llvmlite'"))
        arm().compile()


def scenario_without_time():
    with TemporaryDirectory() as folder:
        path = Path(folder, "scenario.toml")
        path.write_text('robot = "ur5"\nduration = 0\n', encoding="utf-8")
        read_scenario(path)


CAUSES = [
    lambda: arm().jacobian("tool", q),
    lambda: arm().jacobian(q, tip()),
    lambda: arm().gravity_vector(np.zeros(3)),
    lambda: arm().gravity_vector([np.nan, 0]),
    lambda: ball().mass_matrix(np.zeros(7)),
    lambda: sd.simulate(ball(), sd.State(ball()), 1, torque=lambda t, state: np.zeros(3)),
    lambda: (tree := arm()).grasp(sd.State(tree), sd.Inertia.point(1), to=tip()),
    lambda: arm().attach(sd.Inertia.point(1), to=tip(), name=tip()),
    lambda: (tree := arm()).move(tree.links[1], to=tree.links[2]),
    locked_twice,
    state_of_before,
    handle_of_before,
    lambda: on_a_joint(sd.Inertia.point(m, (1, 0, 0)), sd.revolute("y")).mass_matrix([0]),
    lambda: on_a_joint(sd.Inertia.point(sympy.Symbol("elbow_dot")), sd.revolute("y", name="elbow")).symbolic(),
    lambda: on_a_joint(sd.Inertia(m, 0, [sympy.Symbol("m", positive=True)] * 3), sd.revolute("y")).symbolic(),
    lambda: arm().subs({sympy.Symbol("theta2"): 0.5}),
    lambda: sd.Inertia(1.0, (0, 0, 0), np.diag([1, 0.1, 0.1])),
    lambda: sd.Inertia.box(-1, (1, 1, 1)),
    lambda: sd.revolute((0, 0, 0)),
    lambda: on_a_joint(sd.Inertia.point(1), sd.revolute("x")).forward_dynamics([0], [0], [0]),
    lambda: on_a_joint(sd.Inertia.rod(1, 1, (1, 1, 1), (1, 0, 0)), sd.spherical((2, 1, 1))).forward_dynamics(
        [0.6, 0, 0, 0.8], np.zeros(3), np.zeros(3)
    ),
    lambda: arm().operational_inertia(tip(), q),
    lambda: sd.formulations.newton_euler(four_bar()),
    lambda: four_bar().assemble([0.3, 0.2, 0.1]),
    lambda: sd.simulate(tree := four_bar(), sd.State(tree), 1.0),
    lambda: between_walls().equilibrium([0]),
    lambda: sd.simulate(tree := between_walls(), sd.State(tree, [0]), 1.0),
    jammed,
    lambda: between_walls().separate([0]),
    lambda: on_a_joint(sd.Inertia.point(1), sd.prismatic("z", passive=True)).equilibrium([0]),
    lambda: arm().inverse_kinematics(tip(), [50.0, 0, 0]),
    lambda: coulomb.forces(-np.eye(1), -np.ones(1), np.zeros(1), np.full(1, np.inf)),
    chatter,
    without_llvmlite,
    lambda: sd.KinematicTree.from_urdf("<robot name='a'><link name='x'/><link name='y'/></robot>"),
    lambda: sd.KinematicTree.from_urdf("nowhere.urdf"),
    lambda: sd.KinematicTree.from_urdf("<robot name='a'><link name='${x}'/></robot>"),
    lambda: sd.KinematicTree.from_json('{"format": "x"}'),
    lambda: sd.KinematicTree.from_pinocchio("arm"),
    scenario_without_time,
]


def pattern(words):
    """Matches messages of these words, in which an ellipsis stands for anything, also for a name in quotes."""
    return re.compile(".*".join(map(re.escape, words.replace("'…'", "…").split("…"))), re.DOTALL)


def template(node):
    """A message as it is in the source, with an ellipsis for what is filled in; None if it is made elsewhere."""
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def messages():
    """The messages of all errors and warnings that the library makes, with their places."""
    kinds = {*sd.errors.__all__, "NoSizeError", "TimeoutError", "warn"}
    for path in sorted((ROOT / "screwdyn").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and node.args and ast.unparse(node.func).rpartition(".")[2] in kinds:
                words = template(node.args[0])
                # With fewer letters, as in "…: …", it has the words of another place.
                if words and len(re.findall("[a-z]", words)) > 3:
                    yield words, f"{path.relative_to(ROOT)}:{node.lineno}"


def test_every_heading_has_a_cause():
    assert len(CAUSES) == len(HEADINGS) == len(set(HEADINGS))


@pytest.mark.slow
@pytest.mark.parametrize(("cause", "heading"), list(zip(CAUSES, HEADINGS, strict=False)), ids=[h for _, h in HEADINGS])
def test_an_error_has_the_message_of_its_heading(cause, heading):
    kind, words = heading
    with pytest.raises(getattr(sd, kind, None) or getattr(sd.errors, kind), match=pattern(words)):
        cause()


@pytest.mark.slow
def test_the_page_has_every_message_and_no_other():
    found = dict(messages())
    assert len(found) > 400
    known = [pattern(words) for words in (*(words for _, words in HEADINGS), *PRINTED, *OTHERS)]
    lacking = {place: words for words, place in found.items() if not any(each.match(words) for each in known)}
    assert lacking == {}, "give it a heading, or a line in the table of its section, in docs/troubleshooting.md"
    assert [words for words in OTHERS if not any(map(pattern(words).match, found))] == []


def test_every_error_is_on_the_page():
    assert {kind for kind, _ in HEADINGS} == {*sd.errors.__all__} - {"ScrewdynWarning", "UnknownLinkError"}
