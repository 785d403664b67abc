"""Dictionaries that grow, of which every former state is kept; properties that are computed once."""

import pickle
import threading

import pytest

import screwdyn as sd
from screwdyn.core import types
from screwdyn.core.types import cached_property, growing


def grown(count):
    """A state after each of so many further entries."""
    states = [{}]
    for k in range(count):
        states.append(growing(states[-1], 1))
        states[-1][f"x{k}"] = k
    return states


def test_each_state_is_a_dictionary_of_its_own(monkeypatch):
    monkeypatch.setattr(types, "_MANY", 3)
    for n, state in enumerate(grown(60)):
        expected = {f"x{k}": k for k in range(n)}
        assert [*state] == [*expected] and [*state.values()] == [*range(n)] and [*state.items()] == [*expected.items()]
        assert len(state) == n and state == expected and state.copy() == expected and type(state.copy()) is dict
        assert f"x{n}" not in state and state.get(f"x{n}") is None and (n == 0 or state[f"x{n - 1}"] == n - 1)
        assert pickle.loads(pickle.dumps(state)) == expected


def test_few_are_a_plain_dictionary_and_many_share_most_entries():
    states = grown(3000)
    assert all(type(state) is dict for state in states[:1000])
    assert sum(type(state) is dict for state in states[1000:]) < 2000 / 25  # one in 2√1000 or more
    assert max(len(state.maps[0]) for state in states[1001:] if type(state) is not dict) < 2 * 3000**0.5
    assert type(growing(states[-1], 500)) is dict


@pytest.mark.parametrize("many", [2, 1000])
def test_trees_change_alike(many, monkeypatch):
    """Also branches of one tree, of which each grows by itself, and former states."""
    monkeypatch.setattr(types, "_MANY", many)
    tree, kept = sd.KinematicTree(), []
    body = sd.Inertia.rod(1.0, 1.0, axis="x", com=(0.5, 0, 0))
    for k in range(12):
        kept.append((tree.copy(), tree.links, tree.coordinates))
        tree.attach(body, to=tree.links[k // 2], joint=sd.revolute("y", name=f"j{k}"), at=(1, 0, 0), name=f"l{k}")
        kept[-1][0].attach(body, to="base", joint=sd.revolute("x"), name="other")
    for k, (branch, links, coordinates) in enumerate(kept):
        assert (branch.links, branch.coordinates) == ((*links, "other"), (*coordinates, "other"))
        assert links == ("base", *(f"l{i}" for i in range(k))) and coordinates == tuple(f"j{i}" for i in range(k))
    with pytest.raises(sd.TopologyError, match="there is a link 'l1' already"):
        tree.attach(body, to="l11", name="l1")
    with tree.attached(body, to="l11", name="crate"):
        assert tree.links[-1] == "crate"
    tree.lock("j3", at=0.2)
    tree.detach("l5")
    twin = sd.KinematicTree.from_json(tree.to_json())
    assert twin.links == tree.links == ("base", *(f"l{k}" for k in (0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11)))
    assert twin.locked == tree.locked == ("j3",)


def test_a_link_attached_to_many_copies_few():
    tree = sd.KinematicTree()
    for k in range(1010):
        before = tree.topology
        tree.attach(sd.Link(f"l{k}"), to=tree.base)
    for entries, former in ((tree.topology.attachments, before.attachments), (tree.topology.carried, before.carried)):
        assert entries.maps[1] is former.maps[1] and len(entries.maps[1]) > 950


class Held:
    """Counts how often a property is computed; waits for an event if it has one."""

    def __init__(self, event=None):
        self.event, self.count = event, 0

    @cached_property
    def value(self):
        """The count."""
        if self.event is not None:
            assert self.event.wait(10)
        self.count += 1
        return self.count


def test_a_value_is_computed_once_and_again_after_it_is_deleted():
    held = Held()
    assert (held.value, held.value, vars(held)["value"]) == (1, 1, 1)
    del held.value
    assert held.value == 2


def test_on_the_class_it_is_the_property():
    assert isinstance(Held.value, cached_property)
    assert Held.value.__doc__ == "The count."


def test_one_object_does_not_wait_for_another():
    slow, quick = Held(threading.Event()), Held()
    thread = threading.Thread(target=lambda: slow.value)
    thread.start()
    assert quick.value == 1
    assert slow.count == 0
    slow.event.set()
    thread.join(10)
    assert slow.value == 1


def test_a_value_that_is_late_is_not_kept_by_an_object_that_has_changed():
    class Changing:
        @cached_property
        def value(self):
            self.__dict__ = {}
            return 1

    changing = Changing()
    assert changing.value == 1
    assert not vars(changing)
