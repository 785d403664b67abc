"""Properties that are computed once for each object."""

import threading

from screwdyn.core.types import cached_property


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
