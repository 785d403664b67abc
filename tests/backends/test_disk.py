"""Code on disk: it is read back only if this user wrote it and nothing has changed; otherwise it is compiled again."""

import multiprocessing
import os
import resource
import shutil
import stat
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from screwdyn.backends.llvm import machine
from screwdyn.backends.llvm import program as native
from screwdyn.backends.llvm.machine import user_folder
from screwdyn.backends.llvm.program import Function
from screwdyn.backends.tape.tape import Tape
from screwdyn.forms import derivatives
from screwdyn.robots import two_link

# As they are before modules are patched; see conftest.py.
ON_DISK = {name: getattr(machine, name) for name in ("folder", "read", "write")}
NAME, CONTENT = machine.key("a function"), bytes(range(97))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of the files, which is still missing."""
    monkeypatch.setenv("SCREWDYN_CACHE", str(tmp_path / "caches"))
    for name, function in ON_DISK.items():
        monkeypatch.setattr(machine, name, function)
    monkeypatch.setattr(machine, "_written", None)
    return tmp_path / "caches" / "screwdyn" / "code"


def test_content_is_read_back_under_its_key_only(folder):
    assert machine.read(NAME) is None
    machine.write(NAME, CONTENT)
    assert machine.read(NAME) == CONTENT
    assert machine.read(machine.key("another function")) is None
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    machine.write(NAME, b"")
    assert machine.read(NAME) == b""


def test_damaged_files_are_ignored(folder):
    machine.write(NAME, CONTENT)
    file = folder / NAME
    whole = file.read_bytes()
    damaged = [whole[:n] for n in range(len(whole))] + [whole + b"\0"]
    damaged += [whole[:k] + bytes([whole[k] ^ 1 << k % 8]) + whole[k + 1 :] for k in range(len(whole))]
    for content in damaged:
        file.write_bytes(content)
        assert machine.read(NAME) is None
    file.write_bytes(whole)
    assert machine.read(NAME) == CONTENT
    # The file of another key, or of another version of the library.
    other = machine.key("another function")
    file.rename(folder / other)
    assert machine.read(other) is None


def link(file):
    file.rename(file.with_name("elsewhere"))
    file.symlink_to(file.with_name("elsewhere"))


def replace(file, make):
    file.unlink()
    make(file)


@pytest.mark.parametrize(
    "attack",
    [
        partial(Path.chmod, mode=0o602),
        partial(Path.chmod, mode=0o620),
        link,
        partial(replace, make=os.mkfifo),
        partial(replace, make=os.mkdir),
        partial(replace, make=lambda file: os.symlink("/dev/zero", file)),
    ],
    ids=["others may write", "group may write", "link", "pipe", "folder", "device"],
)
def test_what_another_user_may_have_put_there_is_ignored(folder, attack):
    machine.write(NAME, CONTENT)
    attack(folder / NAME)
    free = next_descriptor()
    assert machine.read(NAME) is None
    assert next_descriptor() == free


def next_descriptor():
    """The number of the next file that is opened, which shows whether others were closed."""
    file = os.open(os.devnull, os.O_RDONLY)
    os.close(file)
    return file


def test_a_file_of_another_user_is_ignored(folder, monkeypatch):
    machine.write(NAME, CONTENT)
    if os.getuid() == 0:
        os.chown(folder / NAME, 4711, -1)
    else:
        monkeypatch.setattr(machine.os, "getuid", lambda: 4711)
    assert machine.read(NAME) is None


def test_a_folder_that_others_can_write_to_is_not_used(folder, capsys):
    machine.write(NAME, CONTENT)
    machine._folder.cache_clear()
    folder.parent.chmod(0o777)
    assert machine.read(NAME) is None
    machine.write(machine.key("another function"), CONTENT)
    assert len(list(folder.iterdir())) == 1
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert f"not kept on disk: other users can write to {folder.parent}" in printed


def test_a_folder_that_another_user_owns_is_not_used(folder, capsys, monkeypatch):
    machine.write(NAME, CONTENT)
    machine._folder.cache_clear()
    if os.getuid() == 0:
        os.chown(folder, 4711, -1)
    else:
        monkeypatch.setattr(machine.os, "getuid", lambda: 4711)
    assert machine.read(NAME) is None
    assert "belongs to another user" in capsys.readouterr().err


def test_without_a_folder_everything_works(folder, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SCREWDYN_CACHE", str(tmp_path / "file"))
    machine.write(NAME, CONTENT)
    assert machine.read(NAME) is None
    assert "not kept on disk" in capsys.readouterr().err
    monkeypatch.setenv("SCREWDYN_CACHE", "off")
    machine.write(NAME, CONTENT)
    assert machine.read(NAME) is None
    assert capsys.readouterr().err == ""


def test_a_full_disk_and_a_folder_that_cannot_be_written_to_keep_what_they_have(folder, monkeypatch):
    machine.write(NAME, CONTENT)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, hard))
    try:
        machine.write(NAME, CONTENT[::-1])
        machine.write(machine.key("another function"), CONTENT)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert list(folder.iterdir()) == [folder / NAME]
    assert machine.read(NAME) == CONTENT

    def refuse(*_, **__):
        raise PermissionError

    monkeypatch.setattr(machine.tempfile, "mkstemp", refuse)
    machine.write(NAME, CONTENT[::-1])
    assert machine.read(NAME) == CONTENT


def test_the_least_recently_used_files_are_removed(folder, monkeypatch):
    monkeypatch.setattr(machine, "MOST", 10_000)
    names = [machine.key(k) for k in range(12)]
    for k, name in enumerate(names[:9]):
        machine.write(name, bytes(1000))
        os.utime(folder / name, (1e9 + k, 1e9 + k))
    assert machine.read(names[0]) == bytes(1000)  # is used again
    for name in names[9:]:
        machine.write(name, bytes(1000))
    left = {file.name for file in folder.iterdir()}
    assert sum(file.stat().st_size for file in folder.iterdir()) <= 10_000
    assert {names[0], *names[9:]} <= left
    assert names[1] not in left
    assert left >= set(names[5:])


def test_a_file_that_is_too_large_is_not_read(folder, monkeypatch):
    machine.write(NAME, CONTENT)
    monkeypatch.setattr(machine, "MOST", 128)
    assert machine.read(NAME) is None


def rewrite(number):
    """Write and read a few keys many times, and until a content of its own was read; returns what was read."""
    names, found, turn = [machine.key("shared", k) for k in range(3)], set(), 0
    while turn < 100 or (number, 1, 20_000) not in found:
        for name in names:
            machine.write(name, bytes([number]) * 20_000)
            content = machine.read(name)
            found.add(content and (content[0], len(set(content)), len(content)))
        if number == 0 and turn % 10 == 0:
            shutil.rmtree(user_folder(), ignore_errors=True)
            machine._folder.cache_clear()
        turn += 1
    return found


@pytest.mark.slow
def test_processes_that_write_at_once_read_whole_files(folder):
    machine.write(NAME, CONTENT)  # a process that first looks for the folder while it is removed would keep nothing
    with multiprocessing.get_context("fork").Pool(3) as pool:
        found = set().union(*pool.map(rewrite, range(3)))
    assert found - {None} <= {(k, 1, 20_000) for k in range(3)}
    assert len(found - {None}) == 3


def test_code_of_another_version_or_processor_has_another_key(tmp_path, monkeypatch):
    here = machine._compiler.__wrapped__()
    assert here == machine._compiler.__wrapped__()
    root = Path(machine.__file__).parents[2]
    for package in machine._PACKAGES:
        shutil.copytree(root / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    with monkeypatch.context() as patch:
        patch.setattr(machine, "__file__", str(tmp_path / "backends" / "llvm" / "machine.py"))
        assert machine._compiler.__wrapped__() == here
        with open(tmp_path / "physics" / "link_steps.py", "a") as edited:
            edited.write("\n")
        assert machine._compiler.__wrapped__() != here
        for package in machine._PACKAGES:
            shutil.rmtree(tmp_path / package)
        assert machine._compiler.__wrapped__() == ""
    with monkeypatch.context() as patch:
        patch.setattr(machine, "PYTHON", ".cpython-399-x86_64-linux-gnu.so")
        assert machine._compiler.__wrapped__() not in (here, "")
    other = machine.processor()._replace(name="another")
    monkeypatch.setattr(machine, "processor", lambda: other)
    assert machine._compiler.__wrapped__() not in (here, "")


def squared(calls):
    """A function of two numbers, recorded anew."""
    calls.append(1)
    tape = Tape()
    x, y, m = (tape.input(name) for name in (("x", 0), ("x", 1), ("inertia", (0, 0))))
    return native.planned("squared", tape, {"x": 2}, [np.array([m * x * x, 2.5 * m / y, x.sin()], dtype=object)])


def values(program):
    """Results for one state and for a batch, as bytes."""
    function, x = Function(program, np.full((2, 27), 3.0)), np.array([[0.3, -2.0], [0.1, 7.0], [1.5, 3.0]])
    one, many = np.empty(3), np.empty((3, 3))
    assert function.single([x[0]], [one])
    assert function.batch([x], [many])
    assert_array_equal(one, many[0])
    np.testing.assert_allclose(many, np.transpose([3 * x[:, 0] ** 2, 7.5 / x[:, 1], np.sin(x[:, 0])]), rtol=1e-15)
    return many.tobytes()


def test_a_function_is_recorded_again_only_where_its_code_is_missing(folder):
    calls = []

    def made():
        program = native.kept("squared", partial(squared, calls))
        program.compile("single")
        program.compile("batch")
        return values(program)

    first = made()
    assert len(calls) == 1
    assert made() == first
    assert len(calls) == 1
    for file in folder.iterdir():
        file.write_bytes(file.read_bytes()[:-1])
    assert made() == first
    assert len(calls) == 2
    assert made() == first
    assert len(calls) == 2


def test_code_for_batches_is_added_to_that_for_one_state(folder):
    calls = []
    native.kept("squared", partial(squared, calls)).compile("single")
    later = native.kept("squared", partial(squared, calls))
    assert later.single and not later.batch and len(calls) == 1
    later.compile("single")
    later.compile("batch")
    assert len(calls) == 2
    last = native.kept("squared", partial(squared, calls))
    assert last.single and last.batch and len(calls) == 2
    assert values(last) == values(later)


def test_who_waits_long_reads_what_is_compiled_and_where_it_is_kept(folder, monkeypatch, capsys):
    program = native.kept("squared", partial(squared, []))
    program.compile("single")
    compile_now = native.object_file
    monkeypatch.setattr(machine, "_PATIENCE", 0.01)
    monkeypatch.setattr(native, "object_file", lambda text: (time.sleep(0.1), compile_now(text))[1])
    program.compile("single")
    assert capsys.readouterr().err == ""
    program.compile("batch")
    assert capsys.readouterr().err == f"screwdyn: compiling squared of this robot (once; kept in {folder})\n"
    monkeypatch.setenv("SCREWDYN_CACHE", "off")
    native.kept("squared", partial(squared, [])).compile("single")
    assert capsys.readouterr().err == "screwdyn: compiling squared of this robot (not kept on disk)\n"
    monkeypatch.setattr(native, "_A_SECOND", 0.1)
    native.kept("squared", partial(squared, [])).compile("single")
    expected = "screwdyn: compiling squared of this robot, 4 operations, some 40 s of a processor (not kept on disk)\n"
    assert capsys.readouterr().err == expected


def test_what_is_waited_for_in_a_row_is_one_wait(monkeypatch, capsys):
    """A derivative is imported, traced and compiled, and each may take less than half a second."""
    monkeypatch.setattr(machine, "_PATIENCE", 20.0)
    for pause, line in ((0.0, "screwdyn: compiling\n"), (1.0, "")):
        now = time.perf_counter()
        monkeypatch.setattr(machine, "_ended", now - pause)
        monkeypatch.setattr(machine, "_began", now - 20.0)
        with machine.announced("compiling"):
            time.sleep(0.1)
        with machine.announced("what is next"):
            time.sleep(0.01)
        assert capsys.readouterr().err == line


def test_who_waits_long_for_a_derivative_reads_what_is_traced(folder, monkeypatch, capsys):
    """Functions that are too long to be compiled are traced in every process, and take the longest."""
    record = derivatives._recorded
    monkeypatch.setattr(machine, "_PATIENCE", 0.02)
    monkeypatch.setattr(derivatives, "_recorded", lambda *which: (time.sleep(0.1), record(*which))[1])
    two_link(length=0.37).derivatives.gravity_vector([0.1, 0.2])
    line = "screwdyn: tracing the derivatives of gravity_vector of this robot (once in a process)\n"
    assert capsys.readouterr().err.startswith(line)


IN_ANOTHER_PROCESS = """
import numpy as np
from screwdyn.backends.llvm import program as native
from screwdyn.robots import two_link

def refuse(*_):
    raise AssertionError("recorded or compiled again")

native.object_file = native.recorded = native._recorded_steps = refuse
tree, q, qd = two_link(), np.array([0.3, -1.2]), np.array([2.0, 0.5])
tree.gravity = (0.25, 0.5, -9)
fast = tree.compile(threads=1).wait()
C = fast.coriolis_matrix(q, qd)
run = fast.rollout(q, qd, 10, 0.01)
print((C + fast.dynamics(q, qd)[1]).tobytes().hex(), run.q.tobytes().hex())
"""


@pytest.mark.slow
def test_another_process_records_and_compiles_nothing(folder):
    tree, q, qd = two_link(), np.array([0.3, -1.2]), np.array([2.0, 0.5])
    tree.gravity = (0.25, 0.5, -9)
    fast = tree.compile(threads=1).wait()
    C, run = fast.coriolis_matrix(q, qd), fast.rollout(q, qd, 10, 0.01)
    call = [sys.executable, "-c", IN_ANOTHER_PROCESS]
    found = subprocess.run(call, capture_output=True, text=True, check=True).stdout.split()
    assert found == [(C + fast.dynamics(q, qd)[1]).tobytes().hex(), run.q.tobytes().hex()]
