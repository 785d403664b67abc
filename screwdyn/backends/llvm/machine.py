"""Machine code for this processor: the threads that compile, object files, which are loaded, and their folder on disk.

LLVM is there if llvmlite is installed, which is imported here only.
"""

import functools
import hashlib
import importlib.machinery
import math
import os
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext, suppress
from ctypes import CFUNCTYPE, c_int64, c_void_p
from heapq import heappop, heappush
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from screwdyn.backends.llvm import ir
from screwdyn.core.errors import ScrewdynError

# When what callers last waited for began, and ended, in a row without pauses; the import of LLVM is the first. Seconds.
_began = _ended = time.perf_counter()

llvm: Any
_missing: ImportError | None
try:
    import llvmlite
    from llvmlite import binding
except ImportError as _error:
    llvm, _missing = None, _error
else:
    llvm, _missing = binding, None


# The threads that compile, and the lock that prevents a fork of the process meanwhile

Result = TypeVar("Result")

# Held during compilation and while a result is published: a forked process would inherit locks in the locked state.
_compiling = threading.RLock()
# Guards the two variables below.
_lock = threading.Lock()
_waiting: list[tuple[tuple[int, ...], int, Future[Any], Callable[[], Any]]] = []
_worker: threading.Thread | None = None
_order = count()
# Seconds, until a line says why a caller waits, and between two waits that are not one.
_PATIENCE, _PAUSE = 0.5, 0.1


def announce(line: str) -> None:
    """Write a line on stderr, if there is one that takes it: a file on a full disk does not."""
    if sys.stderr is not None:  # print would write on stdout
        with suppress(OSError, ValueError):
            print(f"screwdyn: {line}", file=sys.stderr, flush=True)


@contextmanager
def announced(line: str) -> Iterator[None]:
    """Announce what the block does if its caller waits for longer than half a second; the thread announces nothing.

    Blocks in a row, as of a derivative that is traced and then compiled, are one wait until something is announced.
    """
    global _began, _ended
    if threading.current_thread() is _worker:
        yield
        return
    now = time.perf_counter()
    if now - _ended > _PAUSE:
        _began = now
    timer = threading.Timer(max(0.0, _began + _PATIENCE - now), announce, [line])
    timer.daemon = True  # the end of the process does not wait for it
    timer.start()
    try:
        yield
    finally:
        _ended = -math.inf if timer.finished.is_set() else time.perf_counter()
        timer.cancel()


def compiling(function: Callable[..., Result]) -> Callable[..., Result]:
    """Decorate a function that compiles: it runs in the thread, and Ctrl-C ends the call but not the compilation.

    The decorated function takes ``line=``, which is announced if its caller waits long.
    """

    @functools.wraps(function)
    def called(*arguments: Any, line: str = "") -> Result:
        if threading.current_thread() is _worker:
            return function(*arguments)
        future = submit((), functools.partial(function, *arguments))
        with announced(line) if line else nullcontext():
            return future.result()

    return called


def compiling_once(function: Callable[..., Result]) -> Callable[..., Result]:
    """Decorate a function that compiles: it is called once for the same arguments, also by several threads."""
    # The inner cache is for a thread that did not find the result in the outer one, and then waited for another thread.
    return functools.cache(compiling(functools.cache(function)))


def submit(size: tuple[int, ...], function: Callable[[], Result]) -> Future[Result]:
    """Call a function in the thread, in the order of ``size``, which is () if its caller waits, then of submission."""
    future: Future[Result] = Future()
    with _lock:
        heappush(_waiting, (size, next(_order), future, function))
    resume()
    return future


def resume() -> None:
    """Start the thread if functions wait and it does not run, as in a forked process."""
    global _worker
    with _lock:
        if _waiting and _worker is None:
            _worker = threading.Thread(target=_work, name="screwdyn-compile")
            _worker.start()


def _work() -> None:
    """Call the waiting functions; once the interpreter shuts down, only those whose callers wait."""
    global _worker
    while True:
        with _compiling:
            with _lock:
                if not _waiting or (_waiting[0][0] and not threading.main_thread().is_alive()):
                    _worker = None
                    return
                _, _, future, function = heappop(_waiting)
            try:
                result = function()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)


def _before_fork() -> None:
    _compiling.acquire()
    _lock.acquire()


def _after_fork() -> None:
    _lock.release()
    _compiling.release()


def _in_child() -> None:
    """Forget the thread, which does not exist in a forked process."""
    global _worker
    _worker = None
    _after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)


# LLVM, the processor and object files


class Processor(NamedTuple):
    """The processor of this machine, as LLVM describes it, and the versions of llvmlite and LLVM."""

    compiler: str
    triple: str
    name: str
    features: str
    width: int  # lanes of its widest vectors of float64
    fused: bool  # whether it has a fused multiply-add


@functools.cache
def processor() -> Processor | None:
    """The processor of this machine; None without llvmlite."""
    if llvm is None:
        return None
    has, triple = llvm.get_host_cpu_features(), llvm.get_process_triple()
    width = 8 if has.get("avx512f") and has.get("avx512dq") else 4 if has.get("avx2") else 2
    fused = not triple.startswith(("x86_64", "i686")) or bool(has.get("fma"))
    compiler = f"{llvmlite.__version__} {llvm.llvm_version_info}"
    return Processor(compiler, triple, llvm.get_host_cpu_name(), has.flatten(), width, fused)


def require_compiler() -> None:
    """Raise ScrewdynError without llvmlite."""
    if _missing is not None:
        needed = f"compiled trees need llvmlite ({_missing}): pip install 'screwdyn[compile]'"
        raise ScrewdynError(needed) from _missing


def _target_machine() -> Any:
    here = processor()
    assert here is not None  # without llvmlite nothing is compiled
    target = llvm.Target.from_triple(here.triple)
    # The tape has folded and ordered the operations; LLVM only has to choose instructions and registers.
    return target.create_target_machine(opt=1, cpu=here.name, features=here.features)


@functools.cache
def _emitter() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return _target_machine()


def object_file(text: str) -> bytes:
    """Compile the text of a module to an object file."""
    emitter = _emitter()
    # A separate context, because a context keeps every constant as long as it exists.
    module = llvm.parse_assembly(text, llvm.create_context())
    module.verify()
    return bytes(emitter.emit_object(module))


class Loaded:
    """The functions of some object files as machine code, which is freed with this object; ``nbytes`` are kept."""

    def __init__(self, *code: bytes) -> None:
        _emitter()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
        for part in code:
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(part))
        self._engine.finalize_object()
        self.address: Callable[[str], int] = self._engine.get_function_address
        self.nbytes = sum(map(len, code)) + 64_000  # measured: partly filled pages, and the engine's tables


class Host(NamedTuple):
    """The processor, and the code that all functions of a process share; by default without a compiler."""

    width: int = 1
    fused: bool = False
    sincos: int = 0
    drive: Any = None
    code: Loaded | None = None


@compiling_once
def host() -> Host:
    """The shared code for the widest vectors of this processor."""
    here = processor()
    return Host() if here is None else with_lanes(here.width, here.fused)


def with_lanes(width: int, fused: bool) -> Host:
    """The shared code for vectors of ``width`` lanes: sine and cosine, and the loop over a batch."""
    code = Loaded(_shared(ir.sincos, width), _shared(ir.driver, width))
    drive = CFUNCTYPE(c_int64, c_void_p, c_int64, c_void_p, c_int64, c_void_p, c_void_p, c_int64)
    return Host(width, fused, code.address(ir.SINCOS), drive(code.address(ir.DRIVER)), code)


def _shared(text: Callable[..., str], width: int) -> bytes:
    """The object file of a module that serves all robots, which is kept on disk."""
    name = key(text.__qualname__, width)
    code = read(name)
    if code is None:
        code = object_file(text(width))
        write(name, code)
    return code


# Compiled code on disk, for later processes of this user. A file is named by a key: a digest of what the code is made
# from, of this library's source, of the versions of LLVM and Python and of the processor. It begins with a digest of
# the key and of its content. Files that are damaged, or that another user owns or can write to, are ignored. Loading a
# file executes the code in it, so no other user may be able to write to the folder.

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
            if not stat.S_ISREG(entry.st_mode) or entry.st_size > MOST:
                return None
            if hasattr(os, "getuid") and (entry.st_uid != os.getuid() or entry.st_mode & 0o022):
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


def _digest(name: str, content: bytes) -> bytes:
    return hashlib.sha256(name.encode() + content).digest()


@functools.cache
def _compiler() -> str:
    """A digest of what compiles, for which Python and processor; empty without llvmlite or the source."""
    if processor() is None:
        return ""
    root, source = Path(__file__).parents[2], hashlib.sha256()
    try:
        files = sorted(str(file) for package in _PACKAGES for file in (root / package).rglob("*.py"))
        for file in files:
            source.update(hashlib.sha256(Path(file).read_bytes()).digest())
    except OSError:
        return ""
    made_by = PYTHON, processor(), source.hexdigest()
    return hashlib.sha256(repr(made_by).encode()).hexdigest() if files else ""


def folder() -> Path | None:
    """The folder of the files; None if nothing is kept on disk."""
    return _folder(user_folder())


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


class Refused(Exception):
    """A folder cannot be used; the message gives the reason."""


def user_folder() -> Path | None:
    """The folder for caches, by SCREWDYN_CACHE, XDG_CACHE_HOME or home; None if nothing is to be kept on disk."""
    chosen = os.environ.get("SCREWDYN_CACHE")
    base = os.path.expanduser(chosen or os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    return None if chosen == "off" or base.startswith("~") else Path(base, "screwdyn")


def checked_folder(path: Path) -> Path:
    """A folder, without symbolic links, in which no other user can have put, or can put, an entry; Refused otherwise.

    Missing folders are created readable by this user only. Windows has no user ids and no permission bits, so the
    folder is not checked there: the access list of the user's profile excludes other users, and that of a folder named
    by ``SCREWDYN_CACHE`` or ``XDG_CACHE_HOME`` must do so too.
    """
    try:
        folder = path.resolve()
        for missing in reversed([p for p in (folder, *folder.parents) if not p.exists()]):
            missing.mkdir(mode=0o700, exist_ok=True)
        reason = fault(folder, os.getuid()) if hasattr(os, "getuid") else ""
    except (OSError, RuntimeError) as error:
        reason = str(error)
    if reason:
        raise Refused(reason)
    return folder


def fault(folder: Path, user: int) -> str:
    """Why another user could put an entry into a folder, or could replace it; empty if this is impossible."""
    for path in (folder, *folder.parents):
        entry = os.lstat(path)
        if stat.S_ISLNK(entry.st_mode):
            return f"{path} was replaced by a symbolic link"
        if entry.st_uid not in ((user,) if path == folder else (user, 0)):
            return f"{path} belongs to another user"
        if entry.st_mode & stat.S_ISVTX and path != folder:
            continue  # as in /tmp, only the owner of an entry can rename it, and the owner is checked
        if entry.st_mode & stat.S_IWOTH:
            return f"other users can write to {path}; chmod o-w {path}"
        if entry.st_mode & stat.S_IWGRP and not _only_member(path, entry.st_gid, user):
            return f"its group can write to {path}; chmod g-w {path}"
    return f"{folder} is open to other users; remove it" if os.lstat(folder).st_mode & 0o077 else ""


def _only_member(path: Path, group: int, user: int) -> bool:
    """Whether the group has no other member and the path has no access list."""
    import grp
    import pwd

    try:
        members, name = grp.getgrgid(group), pwd.getpwuid(user).pw_name
    except KeyError:
        return False
    listed = hasattr(os, "listxattr") and "system.posix_acl_access" in os.listxattr(path)
    return members.gr_name == name and set(members.gr_mem) <= {name} and not listed
