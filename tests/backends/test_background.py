"""The thread that compiles: smaller functions first, one at a time, and none during interpreter shutdown."""

import signal
import threading
import time

import pytest

from screwdyn.backends.llvm import machine


def test_smaller_functions_are_called_first():
    started, gate, order = threading.Event(), threading.Event(), []
    first = machine.submit((5,), lambda: started.set() or gate.wait(10))
    assert started.wait(10)
    futures = [machine.submit((size,), lambda x=x: order.append(x) or x) for size, x in ((3, "b"), (1, "a"), (3, "c"))]
    gate.set()
    assert [future.result(10) for future in futures] == ["b", "a", "c"]
    assert first.result() and order == ["a", "b", "c"]


def test_an_error_is_raised_where_the_result_is_awaited():
    with pytest.raises(ZeroDivisionError):
        machine.submit((1,), lambda: 1 // 0).result(10)
    assert machine.submit((1,), lambda: "next").result(10) == "next"


def test_a_caller_never_waits_for_the_compiler():
    gate = threading.Event()
    busy = machine.submit((1,), machine.compiling(lambda: gate.wait(10)))
    later = machine.submit((1,), lambda: "later")
    machine.resume()
    assert not later.done()
    gate.set()
    assert busy.result(10) and later.result(10) == "later"


def test_two_threads_that_wait_for_the_same_code_get_the_same():
    """Otherwise that of one thread would be freed, while other code calls it."""
    calls, found, gate, busy = [], [], threading.Event(), threading.Event()

    @machine.compiling
    def other():
        busy.set()
        assert gate.wait(10)

    @machine.compiling_once
    def make():
        calls.append(None)
        return object()

    threads = [threading.Thread(target=other), *(threading.Thread(target=lambda: found.append(make())) for _ in "ab")]
    threads[0].start()
    assert busy.wait(10)
    for thread in threads[1:]:
        thread.start()
    for thread in threads[1:]:
        thread.join(0.05)  # until both wait
    gate.set()
    for thread in threads:
        thread.join(10)
    assert found == [make()] * 2 and len(calls) == 1


def test_an_interrupted_call_ends_and_its_compilation_is_completed():
    ended, found = threading.Event(), []

    @machine.compiling_once
    def make():
        # The signal itself, also after the main thread has begun to wait: interrupt_main would not end the wait.
        time.sleep(0.05)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        assert ended.wait(10)
        found.append(object())
        return found[0]

    previous = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            make()
    finally:
        signal.signal(signal.SIGINT, previous)
    ended.set()
    assert make() is found[0] and len(found) == 1


def test_only_a_caller_who_waits_long_reads_what_is_compiled(monkeypatch, capsys):
    monkeypatch.setattr(machine, "_PATIENCE", 0.05)
    slow, fast = machine.compiling(lambda: time.sleep(0.1)), machine.compiling(lambda: None)
    fast(line="compiling the first")
    machine.submit((1,), lambda: slow(line="compiling the second")).result(10)
    assert capsys.readouterr().err == ""
    slow(line="compiling the third")
    assert capsys.readouterr().err == "screwdyn: compiling the third\n"
