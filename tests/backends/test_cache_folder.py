"""Code is kept only where no other user can write: which folders are refused."""

import errno
import grp
import io
import os
import pwd
import stat
import sys
from pathlib import Path

import pytest

from screwdyn.backends.llvm import machine
from screwdyn.backends.llvm.machine import Refused, announce, checked_folder, fault, user_folder


@pytest.fixture
def base(tmp_path):
    """A folder for caches, which is still missing."""
    return tmp_path / "caches"


def folder_in(base):
    return checked_folder(base / "screwdyn" / "code")


def others_own(monkeypatch, path, user=4711):
    """Make a path belong to another user."""
    lstat = os.lstat

    def changed(p):
        entry = list(lstat(p))
        entry[stat.ST_UID] = user if os.fspath(p) == os.fspath(path) else entry[stat.ST_UID]
        return os.stat_result(entry)

    monkeypatch.setattr(machine.os, "lstat", changed)


def is_refused(base, reason):
    with pytest.raises(Refused) as refused:
        folder_in(base)
    return reason in str(refused.value)


def test_a_new_folder_is_readable_by_the_user_only_and_found_again(base):
    mask = os.umask(0)
    try:
        folder = folder_in(base)
    finally:
        os.umask(mask)
    for made in (base, base / "screwdyn", folder):
        assert made.stat().st_mode & 0o777 == 0o700
    assert folder_in(base) == folder == base / "screwdyn" / "code"


@pytest.mark.parametrize("level", ["base", "screwdyn", "folder"])
@pytest.mark.parametrize("mode", [0o777, 0o757, 0o775])
def test_a_folder_that_others_can_write_to_is_refused(base, monkeypatch, level, mode):
    monkeypatch.setattr(machine, "_only_member", lambda *_: False)
    folder = folder_in(base)
    path = {"base": base, "screwdyn": base / "screwdyn", "folder": folder}[level]
    path.chmod(mode)
    assert is_refused(base, f"can write to {path}")


def test_a_folder_that_others_could_read_was_not_made_here(base):
    folder = folder_in(base)
    folder.chmod(0o755)
    assert is_refused(base, f"{folder} is open to other users")


@pytest.mark.parametrize("level", ["base", "screwdyn", "folder"])
def test_a_folder_of_another_user_is_refused(base, monkeypatch, level):
    folder = folder_in(base)
    path = {"base": base, "screwdyn": base / "screwdyn", "folder": folder}[level]
    others_own(monkeypatch, path)
    assert is_refused(base, f"{path} belongs to another user")


def test_ancestors_may_belong_to_root_but_the_folder_may_not(base, monkeypatch):
    folder, user = folder_in(base), os.getuid() or 4711
    lstat = os.lstat

    def owned(p):
        entry = list(lstat(p))
        entry[stat.ST_UID] = user if p == folder else 0
        return os.stat_result(entry)

    monkeypatch.setattr(machine.os, "lstat", owned)
    assert fault(folder, user) == ""
    assert "belongs to another user" in fault(folder, user + 1)


def test_links_are_followed_once_and_what_they_lead_to_is_checked(base, tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "_only_member", lambda *_: False)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    base.symlink_to(elsewhere)
    folder = folder_in(base)
    assert folder.parent == elsewhere.resolve() / "screwdyn"
    elsewhere.chmod(0o777)
    assert is_refused(base, f"can write to {elsewhere.resolve()}")


def test_a_sticky_ancestor_serves_but_a_sticky_folder_does_not(base):
    base.mkdir()
    base.chmod(0o1777)
    folder = folder_in(base)
    assert folder.parent == base / "screwdyn"
    folder.chmod(0o1777)
    assert is_refused(base, f"other users can write to {folder}")


def test_a_file_in_the_way_and_a_loop_of_links_are_reported(base):
    base.write_text("not a folder")
    assert is_refused(base, str(base))
    base.unlink()
    base.symlink_to(base)
    assert is_refused(base, str(base))


def test_a_group_counts_as_others_unless_it_is_the_users_own(monkeypatch, tmp_path):
    me, gid = os.getuid(), os.getgid()
    name = pwd.getpwuid(me).pw_name

    def group(called, members):
        return grp.struct_group((called, "x", gid, members))

    for members, expected in (
        ((name, []), True),
        ((name, [name]), True),
        ((name, ["eve"]), False),
        (("staff", []), False),
    ):
        monkeypatch.setattr(grp, "getgrgid", lambda _, members=members: group(*members))
        assert machine._only_member(tmp_path, gid, me) == expected
    monkeypatch.setattr(grp, "getgrgid", lambda _: group(name, []))
    monkeypatch.setattr(os, "listxattr", lambda _: ["system.posix_acl_access"], raising=False)
    assert not machine._only_member(tmp_path, gid, me)


def test_without_user_ids_the_folder_is_used_as_it_is(base, monkeypatch):
    monkeypatch.delattr(machine.os, "getuid")
    base.mkdir()
    base.chmod(0o777)
    assert folder_in(base).parent == base / "screwdyn"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "{home}/.cache"),
        ({"XDG_CACHE_HOME": "/x"}, "/x"),
        ({"XDG_CACHE_HOME": "/x", "SCREWDYN_CACHE": "/s"}, "/s"),
        ({"XDG_CACHE_HOME": "/x", "SCREWDYN_CACHE": ""}, "/x"),
        ({"XDG_CACHE_HOME": "/x", "SCREWDYN_CACHE": "off"}, None),
    ],
)
def test_the_users_folder_can_be_moved_or_switched_off(monkeypatch, tmp_path, settings, expected):
    for name in ("SCREWDYN_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert user_folder() == (expected and Path(expected.format(home=tmp_path), "screwdyn"))


def test_a_user_without_a_home_keeps_nothing(monkeypatch):
    for name in ("SCREWDYN_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(machine.os.path, "expanduser", lambda path: path)
    assert user_folder() is None


class FullDisk(io.StringIO):
    def write(self, text):
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("stderr", [FullDisk(), None])
def test_what_cannot_be_announced_stops_nothing(stderr, monkeypatch, capsys):
    """Stderr may be a file on a full disk, or None, as under pythonw."""
    monkeypatch.setattr(sys, "stderr", stderr)
    announce("compiling")
    assert capsys.readouterr().out == ""
