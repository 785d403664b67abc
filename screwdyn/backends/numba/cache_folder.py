"""The cache folder of compiled kernels, which no other user may be able to write to.

Loading a cached kernel executes the code in its file, so a file written by another user would run that user's code.
"""

import atexit
import hashlib
import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path


def cache_folder(base: str | Path, text: bytes) -> Path:
    """The folder for the kernels compiled from a text, created if it is missing.

    Parameters
    ----------
    base : str or Path
        The user's folder for caches. It is created if it is missing, readable by this user only.
    text : bytes
        The source of the kernels; each text has its own folder.

    Returns
    -------
    Path
        ``base/screwdyn/<hash of the text>`` without symbolic links, if :func:`fault` finds none. Otherwise a new folder
        that is removed when this process ends; a line on stderr gives the reason.

    Notes
    -----
    Windows has no user ids and no permission bits, so the folder is not checked there: the access list of the user's
    profile excludes other users, and that of a folder named by ``NUMBA_CACHE_DIR`` or ``XDG_CACHE_HOME`` must do so
    too.
    """
    try:
        folder = Path(base, "screwdyn", hashlib.sha256(text).hexdigest()[:16]).resolve()
        for missing in reversed([p for p in (folder, *folder.parents) if not p.exists()]):
            missing.mkdir(mode=0o700, exist_ok=True)
        reason = fault(folder, os.getuid()) if hasattr(os, "getuid") else ""
        if not reason and not os.access(folder, os.W_OK):
            reason = f"{folder} is not writable"
    except (OSError, RuntimeError) as error:
        reason = str(error)
    if not reason:
        return folder
    print(f"screwdyn: compiled kernels are not kept after this process: {reason}", file=sys.stderr, flush=True)
    private = Path(tempfile.mkdtemp(prefix="screwdyn-"))
    atexit.register(shutil.rmtree, private, ignore_errors=True)
    return private


def fault(folder: Path, user: int) -> str:
    """Why another user could have written to a folder, or could replace it; empty if this is impossible.

    Parameters
    ----------
    folder : Path
        Absolute, without symbolic links.
    user : int
        The id of the user who loads code from it.
    """
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
    if os.lstat(folder).st_mode & 0o077:
        return f"{folder} is open to other users; remove it"
    for inside in folder.rglob("*"):
        entry = os.lstat(inside)
        if stat.S_ISLNK(entry.st_mode) or entry.st_uid != user:
            return f"{inside} was put there by another user; remove {folder}"
    return ""


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
