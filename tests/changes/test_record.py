"""Changes as records: each kind of the catalogue, with all its fields, is written as JSON and read again."""

import json
import tomllib
from contextlib import suppress

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import screwdyn as sd
from screwdyn.changes.catalogue import KINDS, keys_of
from screwdyn.changes.change import Scheduled
from screwdyn.testing import random_inertia, random_pose, random_tree


def values(rng):
    """A value for each role of a field but the condition."""
    tree = random_tree(rng, 3, ("revolute", "universal"))
    rotor = sd.Rotor(2e-6, ratio=30.0, axis="y", mass=0.1, across=1e-5)
    hook = sd.revolute(rng.normal(size=3), passive=True, name="hook", damping=0.2, limits=(-1, np.inf), rotor=rotor)
    return {
        "link": "palm",
        "joint": "elbow",
        "loop": "grip",
        "limit": sd.Bolt(1.0, 2.0),
        "pose": random_pose(rng) if rng.random() < 0.5 else rng.normal(size=3),
        "twist": rng.normal(size=6) if rng.random() < 0.5 else "co_moving",
        "start": [{"hinge": 0.3}, 0.3, np.array([0.1, 0.2]), "hanging"][rng.integers(4)],
        "payload": tree,
        str: "crate",
        bool: True,
        float: rng.uniform(0, 5),
        sd.Joint: hook,
        sd.Inertia: random_inertia(rng),
        sd.Shape: (sd.Shape.box((1, 2, 3), color=(1, 0, 0)), sd.Shape.sphere(0.1, pose=(0, 0, 1))),
        sd.State: sd.State(tree, rng.normal(size=tree.nq), rng.normal(size=tree.nv)),
    }


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_each_kind_with_all_its_fields_is_written_and_read_again(name, seed):
    known = values(np.random.default_rng(seed))
    keys = {key: x for key, x in keys_of(KINDS[name]).items() if key != "when"}
    change = KINDS[name](**{x.field: known[x.role] for x in keys.values()})
    record = change.to_dict()
    assert record.keys() == {"event", *keys}
    assert record["event"] == name
    again = sd.read_change(json.loads(json.dumps(record, allow_nan=False)))
    assert type(again) is KINDS[name]
    assert again.to_dict() == record
    for key, x in keys.items():
        if isinstance(known[x.role], str | bool | float | dict | np.ndarray | tuple):
            np.testing.assert_equal(getattr(again, x.field), getattr(change, x.field), err_msg=key)


def test_what_has_its_default_is_not_written():
    assert sd.Lock("elbow", time=1.2).to_dict() == {"event": "lock", "joint": "elbow", "time": 1.2}
    assert sd.Open("grip").to_dict() == {"event": "open", "loop": "grip"}
    assert sd.SetInertia("palm", None).to_dict() == {"event": "set_inertia", "link": "palm", "inertia": None}
    assert sd.read_change(sd.SetInertia("palm", None).to_dict()).inertia is None
    assert sd.Release("crate", into_world=np.False_).to_dict()["into_world"] is False


def test_payloads_of_all_kinds():
    tree = sd.robots.two_link()
    handle = tree.attach(sd.Inertia(1.0), to="link2", name="bob", joint=sd.spherical())
    free = tree.release(sd.State(tree, qd=[1.0, 2.0, 0.1, 0.2, 0.3]), handle).released
    box = sd.Link("box", sd.Inertia.box(1.0, (1, 2, 3)), sd.Shape.box((1, 2, 3)))
    for body in ("bob", handle, box, free, sd.Inertia(2.0, (0, 0, 1))):
        grasp = sd.Grasp(body, to="link1", twist="at_rest" if isinstance(body, sd.Link | sd.Inertia) else None)
        again = sd.read_change(json.loads(json.dumps(grasp.to_dict())))
        assert again.to_dict() == grasp.to_dict()
    assert sd.Grasp(handle, to="link1").to_dict()["body"] == "bob"
    states = []
    for body in (free, sd.read_change(sd.Grasp(free, to="link1").to_dict()).body):
        twin = tree.copy()
        states.append(twin.grasp(sd.State(twin, qd=[0.3, 0.4]), body, to="link1").state)
    assert_array_equal(states[0].qd, states[1].qd)


def test_a_run_of_changes_that_were_read_is_the_same():
    bar = sd.Inertia.box(1.0, (0.1, 0.2, 0.3))
    events = [
        sd.Grasp(bar, to="link2", name="bar", twist="co_moving", joint=sd.revolute("z", passive=True), time=0.1),
        sd.Lock("theta1", time=0.2),
        sd.HandOver("bar", "link1", time=0.3),
        sd.Unlock("theta1", time=0.4),
        sd.Release("bar", into_world=True, time=0.5),
    ]
    twins = [sd.read_change(event.to_dict()) for event in events]
    one, other = sd.robots.two_link(), sd.robots.two_link()
    run = sd.simulate(one, sd.State(one), 0.6, events=events)
    again = sd.simulate(other, sd.State(other), 0.6, events=twins)
    assert_array_equal(again.q, run.q)


def test_what_cannot_be_written_is_refused_by_name():
    for change, words in (
        (sd.Lock("elbow", when=lambda t, state: t - 1), "when= of a Lock is a function"),
        (sd.SetInertia("palm", sd.Inertia(sympy.Symbol("m"))), "inertia= of a SetInertia has symbols, m; give numbers"),
        (sd.Close("a", "b", at=(0, 0, np.nan)), "at= of a Close must be finite numbers"),
        (sd.Close("a", "b", at=(0, 0, sympy.Symbol("h"))), "h"),
    ):
        with pytest.raises(sd.ScrewdynError, match=words):
            change.to_dict()


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ([], "expected the key 'event'"),
        ({"event": "drop"}, "event: expected one of 'grasp', 'release'"),
        ({"event": "lock", "joint": 3}, "joint: expected the name of a joint; got 3"),
        ({"event": "lock", "joints": "a"}, "the key 'joint' is missing"),
        ({"event": "lock", "joint": "a", "at": 1}, "at: unknown key"),
        ({"event": "lock", "joint": "a", "time": -1}, "the time of a Lock must be"),
        ({"event": "lock", "joint": "a", "when": 3}, "when: a condition cannot be read"),
        ({"event": "close", "link": "a", "to": "b", "joint": {"screws": 1}}, "joint.screws: expected"),
        ({"event": "grasp", "body": {"mass": 1}, "to": "a", "twist": [1]}, "twist: expected a list of 6 numbers"),
        ({"event": "grasp", "body": {"format": 1}, "to": "a"}, 'body: the key "format" is not'),
        ({"event": "grasp", "body": {"tree": {}}, "to": "a"}, "body: the key 'pose' is missing"),
        ({"event": "grasp", "body": {"name": "b"}, "to": "a"}, "twist must be 'co_moving', 'at_rest' or six numbers"),
        ({"event": "grasp", "body": "b", "to": "a", "body_state": {"q": {}}}, "is of a payload that is a tree"),
        ({"event": "grasp", "body": "b", "to": "a", "shape": [{"kind": "cone"}]}, "shape[0].kind: expected one of"),
    ],
)
def test_all_problems_of_a_record_are_listed(record, words):
    with pytest.raises(sd.JSONError) as caught:
        sd.read_change(record)
    assert words in str(caught.value)
    assert caught.value.problems


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.sampled_from(["", "at_rest", "z"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["name", "mass", "tree", "format", "q", "kind", "screws"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_record_with_anything_in_it_is_read_or_refused(name, data):
    known = values(np.random.default_rng(0))
    keys = {key: x for key, x in keys_of(KINDS[name]).items() if key != "when"}
    record = KINDS[name](**{x.field: known[x.role] for x in keys.values()}).to_dict()
    record[data.draw(st.sampled_from([*keys, "when", "event"]))] = data.draw(ANYTHING)
    with suppress(sd.JSONError):
        assert isinstance(sd.read_change(record), Scheduled)


def test_a_scenario_takes_the_records_of_changes(tmp_path):
    """TOML has no null, which no record has but that of a massless link."""
    from screwdyn.cli.scenario import read_scenario

    hook = sd.revolute("z", passive=True, name="hook", damping=0.1)
    grasp = sd.Grasp(sd.Inertia.rod(1.0, 0.5), to="link2", name="bar", twist="co_moving", joint=hook, time=0.1)
    lines = [f"{key} = {_toml(value)}" for key, value in grasp.to_dict().items()]
    text = "\n".join(['robot = "two_link"', "duration = 1", "[[schedule]]", *lines])
    assert tomllib.loads(text)["schedule"][0] == grasp.to_dict()
    (tmp_path / "scenario.toml").write_text(text, encoding="utf-8")
    (event,) = read_scenario(tmp_path / "scenario.toml").events
    assert event.joint.damping == 0.1
    assert event.to_dict()["joint"] == grasp.to_dict()["joint"]


def _toml(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(x)}" for key, x in value.items()) + "}"
    return json.dumps(value)
