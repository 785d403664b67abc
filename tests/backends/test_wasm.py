"""The kernels as WebAssembly, built by Zig and called from Node by the script of the laboratory (docs/lab)."""

import contextlib
import io
import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import screwdyn as sd
from screwdyn.backends.kernels.source import KERNELS

pytestmark = pytest.mark.wasm
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """What happens to the arm of the laboratory, with a module of all kernels."""
    sys.path.insert(0, str(ROOT / "docs/lab"))
    import laboratory

    node = shutil.which("node")
    assert node, "this test runs the module: install Node (apt-get install nodejs)"
    module = tmp_path_factory.mktemp("wasm") / "kernels.wasm"
    module.write_bytes(laboratory.module(KERNELS))
    command = [node, ROOT / "tests/wasm.mjs", module]
    given = json.dumps(laboratory.robot())
    return json.loads(subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout)


def in_python(seen):
    """The robot that the page writes down as Python, and the digests that this prints."""
    names, printed = {}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(seen["python"], names)
    return names["arm"], printed.getvalue().split()


def equal(found, array):
    return np.array_equal(np.ravel(found), np.ravel(array))


def test_bits_are_those_of_python(story):
    """Of all states whose sines have the same bits here: the C libraries of systems round one in some hundred up."""
    states = story["states"] + [x[when] for x in story["changes"] for when in ("before", "after")]
    same = [
        x
        for x in states
        if x["sines"] == [math.sin(angle) for angle in x["q"]] and x["cosines"] == [math.cos(angle) for angle in x["q"]]
    ]
    assert len(same) > 0.9 * len(states)
    for seen in same:
        arm, digests = in_python(seen)
        q, qd = seen["q"], seen["qd"]
        assert equal(seen["rows"], arm.model.table[:-1])
        assert seen["digests"] == digests
        for name, own in seen["of"].items():
            contribution = arm.contribution(name, q, qd)
            for part in ("J", "J_dot", "M", "C", "g"):
                assert equal(own[part], getattr(contribution, part)), (name, part)
        assert equal(seen["qdd"], arm.forward_dynamics(q, qd, seen["tau"]))
        assert (seen["kinetic"], seen["potential"]) == (arm.kinetic_energy(q, qd), arm.potential_energy(q))
    assert {len(x["q"]) for x in same} == {6, 7, 8, 10}


def test_changes_are_those_of_the_tree(story):
    for change in story["changes"]:
        before, after = change["before"], change["after"]
        arm, _ = in_python(before)
        state = sd.State(arm, before["q"], before["qd"])
        if change["name"] == "hang":
            namespace = {}
            exec(after["python"].partition("arm.attach")[0], namespace)
            joints = {
                7: sd.revolute("x", passive=True),
                8: sd.universal("x", "y", passive=True),
                10: sd.spherical(passive=True),
            }
            n = len(after["q"])
            known = {"joint": joints[n], "start": after["q"][6:], "twist": "co_moving" if n == 7 else "at_rest"}
            event = arm.grasp(state, namespace["load"], to="tool0", name="load", **known)
            np.testing.assert_allclose(arm.gravity_vector(event.state.q)[6:], 0, atol=1e-12)  # it hangs
            assert arm.forward_kinematics("load", event.state.q)[2, 2] < -0.9
        elif change["name"] == "weld":
            event = arm.weld("crate", "tool0", state)
        elif change["name"] == "drop":
            event = arm.release(state, "crate")
        else:
            assert after["qd"] == [*before["qd"], *[0.0] * (len(after["qd"]) - 6)]
            there = in_python(after)[0].link_poses(after["q"])
            np.testing.assert_allclose(there, arm.link_poses(before["q"]), rtol=0, atol=1e-12)
            continue
        np.testing.assert_allclose(after["qd"], event.state.qd, rtol=0, atol=1e-12)
        assert change["lost"] == pytest.approx(event.energy_lost, abs=1e-12)
        assert change["name"] != "weld" or event.energy_lost > 1e-3
    assert [change["name"] for change in story["changes"]] == ["hang", "weld", "unweld", "drop"] * 2 + ["hang"]


def test_a_loop_is_closed_as_by_the_tree(story):
    """An impact that closes it, accelerations within it, and a grasp while it is closed; the hand stays."""
    for change in story["closing"]:
        before, after = change["before"], change["after"]
        arm, _ = in_python(before)
        state = sd.State(arm, before["q"], before["qd"])
        if change["name"] == "close":
            at = arm.forward_kinematics("tool0", state.q)
            event = arm.close("tool0", to=arm.base, joint=sd.spherical(), at=at, state=state)
        elif change["name"] == "hang":
            load = in_python(after)[0].link("crate").inertia
            known = {"joint": sd.universal("x", "y", passive=True), "start": after["q"][6:], "twist": "at_rest"}
            event = arm.grasp(state, load, to="tool0", name="crate", **known)
        else:
            continue
        np.testing.assert_allclose(after["qd"], event.state.qd, rtol=0, atol=1e-10)
        assert change["lost"] == pytest.approx(event.energy_lost, abs=1e-10) and event.energy_lost > 1e-6
    for seen in story["held"]:
        arm, _ = in_python(seen)
        assert arm.freedoms(np.array(seen["q"])) == arm.nv - 3
        found = arm.forward_dynamics(seen["q"], seen["qd"], seen["tau"])
        np.testing.assert_allclose(seen["qdd"], found, rtol=0, atol=1e-9)
    assert {len(seen["q"]) for seen in story["held"]} == {7, 8} and len(story["held"]) > 20
    assert np.abs(story["gap"]).max() < 1e-12
    assert max(abs(seen["unaccounted"]) for seen in story["held"]) < 1e-6


def test_a_swing_is_that_of_simulate(story):
    last, free = story["states"][-1], story["free"]
    arm, _ = in_python(last)
    start = story["changes"][-1]["after"]["t"]
    run = sd.simulate(arm, sd.State(arm, free["q"], free["qd"]), last["t"] - start, rtol=1e-11, atol=1e-12)
    moved = np.abs(np.subtract(last["q"], free["q"])).max()
    assert moved > 0.5
    np.testing.assert_allclose(last["q"], run.states[-1].q, rtol=0, atol=1e-7)
    assert max(abs(x["unaccounted"]) for x in story["states"]) < 1e-6


def test_a_fast_swing_keeps_its_energy_or_says_that_it_cannot(story):
    fast = story["fast"]
    assert np.abs(fast["left"]).max() < 1e-7
    assert "turns at 100000 rad/s, too fast" in fast["message"] and fast["kept"]
