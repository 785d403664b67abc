"""Every error of docs/troubleshooting.md occurs with the message of its heading."""

import re
from pathlib import Path

import numpy as np
import pytest
import sympy

import screwdyn as sd
from screwdyn.backends.llvm import machine

PAGE = Path(__file__).parents[1] / "docs/troubleshooting.md"
HEADINGS = re.findall(r"^### (\w+): `(.+)`$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
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


def chatter():
    tree = on_a_joint(sd.Inertia.rod(1, 1, com=(0.5, 0, 0)), sd.revolute("z"))
    sd.simulate(tree, sd.State(tree, [0.1], [0.3]), 100.0, torque=lambda t, state: -20 * np.sign(state.q + state.qd))


def without_llvmlite():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "_missing", ImportError("No module named 'llvmlite'"))
        arm().compile()


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
    lambda: on_a_joint(sd.Inertia.point(1), sd.prismatic("z", passive=True)).equilibrium([0]),
    lambda: arm().inverse_kinematics(tip(), [50.0, 0, 0]),
    chatter,
    without_llvmlite,
    lambda: sd.KinematicTree.from_urdf("<robot name='a'><link name='x'/><link name='y'/></robot>"),
    lambda: sd.KinematicTree.from_urdf("nowhere.urdf"),
    lambda: sd.KinematicTree.from_urdf("<robot name='a'><link name='${x}'/></robot>"),
    lambda: sd.KinematicTree.from_json('{"format": "x"}'),
]


def test_every_heading_has_a_cause():
    assert len(CAUSES) == len(HEADINGS) == len(set(HEADINGS))


@pytest.mark.parametrize(("cause", "heading"), list(zip(CAUSES, HEADINGS, strict=False)), ids=[h for _, h in HEADINGS])
def test_an_error_has_the_message_of_its_heading(cause, heading):
    kind, words = heading
    pattern = ".*".join(re.escape(part) for part in words.split("…"))
    with pytest.raises(getattr(sd, kind, None) or getattr(sd.errors, kind), match=re.compile(pattern, re.DOTALL)):
        cause()


def test_every_error_is_on_the_page():
    # Errors of files that other libraries read, and of the command line, list what is wrong in the file.
    elsewhere = {"ScrewdynWarning", "UnknownLinkError", "ModelError", "ScenarioError"}
    assert {kind for kind, _ in HEADINGS} == set(sd.errors.__all__) - elsewhere
