"""The user's folder for compiled code, which no other user may be able to write to.

Loading a file from it executes the code in the file, so a file written by another user would run that user's code.
"""

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

__all__ = ["Refused", "announce", "checked_folder", "fault", "user_folder"]


class Refused(Exception):
    """A folder cannot be used; the message gives the reason."""


def announce(line: str) -> None:
    """Write a line on stderr, if there is one that takes it: a file on a full disk does not."""
    if sys.stderr is not None:  # print would write on stdout
        with suppress(OSError, ValueError):
            print(f"screwdyn: {line}", file=sys.stderr, flush=True)


def user_folder() -> Path | None:
    """The folder ``screwdyn`` in the user's folder for caches; None if nothing is to be kept on disk.

    The user's folder is the first of ``SCREWDYN_CACHE`` and ``XDG_CACHE_HOME`` that is set in the environment, or
    ``~/.cache``. Nothing is kept if ``SCREWDYN_CACHE`` is ``off``, or if the user has no home.
    """
    chosen = os.environ.get("SCREWDYN_CACHE")
    base = os.path.expanduser(chosen or os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    return None if chosen == "off" or base.startswith("~") else Path(base, "screwdyn")


def checked_folder(path: Path) -> Path:
    """A folder in which no other user can have put, or can put, an entry; created if it is missing.

    Parameters
    ----------
    path : Path
        Missing folders are created readable by this user only.

    Returns
    -------
    Path
        The path without symbolic links.

    Raises
    ------
    Refused
        If :func:`fault` finds one, or if the folder cannot be created.

    Notes
    -----
    Windows has no user ids and no permission bits, so the folder is not checked there: the access list of the user's
    profile excludes other users, and that of a folder named by ``SCREWDYN_CACHE`` or ``XDG_CACHE_HOME`` must
    do so too.
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
    """Why another user could put an entry into a folder, or could replace it; empty if this is impossible.

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
