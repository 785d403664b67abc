"""Compiled code and kernels on disk, for later processes of this user.

A file is named by a key: a digest of what the code is made from, of this library's source, of the versions of LLVM and
Python and of the processor. It begins with a digest of the key and of its content. Files that are damaged, or that
another user owns or can write to, are ignored: the code is compiled again.
"""

import functools
import hashlib
import importlib.machinery
import os
import stat
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from screwdyn.backends.cache_folder import Refused, announce, checked_folder, user_folder
from screwdyn.backends.llvm.processor import processor

__all__ = ["MOST", "PYTHON", "digest_of", "folder", "key", "read", "write"]

# Bytes of all files; when there are more, the least recently used ones are removed.
MOST = 256_000_000
# Seconds after which reading a file marks it as used again.
_DAY = 86_400
# Names the version and the build of Python, which determine the layout of objects.
PYTHON = importlib.machinery.EXTENSION_SUFFIXES[0]
# Packages whose source determines the code.
_PACKAGES = "core", "screws", "physics", "backends"
# Bytes written by this process since it last looked at the size of the folder; None if it has not looked yet.
_written: int | None = None


def key(*parts: object) -> str:
    """The key of code that is made from values with an exact ``repr``, as text."""
    return hashlib.sha256(repr((_compiler(), *parts)).encode()).hexdigest()


def read(name: str) -> bytes | None:
    """The content of the file of a key; None if there is none that can be used."""
    where = folder()
    if where is None:
        return None
    try:
        path = where / name
        careful = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        with open(path, "rb", opener=lambda path, flags: os.open(path, flags | careful)) as file:
            entry = os.fstat(file.fileno())
            if not _own(entry):
                return None
            whole = file.read()
        if time.time() - entry.st_mtime > _DAY:
            with suppress(OSError):
                os.utime(path)
    except OSError:
        return None
    digest, content = whole[:32], whole[32:]
    return content if digest == _digest(name, content) else None


def write(name: str, content: bytes) -> None:
    """Keep a content under a key; without effect if this is impossible, as on a full disk."""
    where = folder()
    if where is None:
        return
    with suppress(OSError):
        file, temporary = tempfile.mkstemp(dir=where)
        try:
            with open(file, "wb") as opened:
                opened.write(_digest(name, content) + content)
            # Other processes see the old file or the new one, never a part.
            os.replace(temporary, where / name)
        except BaseException:
            os.unlink(temporary)
            raise
        _bound(where, len(content))


def folder() -> Path | None:
    """The folder of the files; None if nothing is kept on disk."""
    return _folder(user_folder())


def digest_of(files: Iterable[str | os.PathLike[str]]) -> str:
    """A digest of the contents of some files in order; empty if there are none, or if one cannot be read."""
    digest, some = hashlib.sha256(), False
    try:
        for file in files:
            with open(file, "rb") as opened:
                digest.update(hashlib.sha256(opened.read()).digest())
            some = True
    except OSError:
        return ""
    return digest.hexdigest() if some else ""


def _digest(name: str, content: bytes) -> bytes:
    return hashlib.sha256(name.encode() + content).digest()


def _own(entry: os.stat_result) -> bool:
    """Whether a file is regular, of this user, and not writable by others."""
    if not stat.S_ISREG(entry.st_mode) or entry.st_size > MOST:
        return False
    return not hasattr(os, "getuid") or (entry.st_uid == os.getuid() and not entry.st_mode & 0o022)


@functools.cache
def _folder(base: Path | None) -> Path | None:
    """The folder of the files; None if nothing is kept on disk. A line on stderr gives the reason for a refusal."""
    if base is None or not _compiler():
        return None
    try:
        return checked_folder(base / "code")
    except Refused as refused:
        announce(f"compiled code is not kept on disk: {refused}")
        return None


@functools.cache
def _compiler() -> str:
    """A digest of what compiles, for which Python and processor; empty without llvmlite or the source."""
    if processor() is None:
        return ""
    root = Path(__file__).parents[2]
    inside = [place for package in _PACKAGES for place in os.walk(root / package)]
    source = digest_of(
        sorted(os.path.join(place, name) for place, _, names in inside for name in names if name.endswith(".py"))
    )
    return source and hashlib.sha256(repr((PYTHON, processor(), source)).encode()).hexdigest()


def _bound(folder: Path, added: int) -> None:
    """Remove the least recently used files if all files together exceed ``MOST``."""
    global _written
    if _written is not None and _written + added < MOST // 16:
        _written += added
        return
    _written = 0
    entries = []
    for entry in os.scandir(folder):
        with suppress(OSError):  # another process has removed it
            found = entry.stat(follow_symlinks=False)
            entries.append((found.st_mtime_ns, found.st_size, entry.path))
    excess = sum(size for _, size, _ in entries) - MOST
    if excess > 0:
        excess += MOST // 8
    for _, size, path in sorted(entries):
        if excess <= 0:
            return
        with suppress(OSError):
            os.unlink(path)
        excess -= size
