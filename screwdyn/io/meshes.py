"""Where the files of meshes are: ``package://`` and ``file://`` names, and paths relative to a robot's file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from screwdyn.core.errors import ScrewdynError

__all__ = ["Folders", "Meshes"]

Folders = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

_PACKAGES = ("package://", "model://")


class Meshes:
    """The files of the meshes that a robot's file names. Only their existence is looked at.

    Parameters
    ----------
    folder : Path or None
        Of the robot's file; None for a text.
    package_dirs : path or sequence of paths
        Folders that contain packages, or are packages.

    Raises
    ------
    ScrewdynError
        If ``package_dirs`` are not paths.
    """

    def __init__(self, folder: Path | None = None, package_dirs: Folders = ()) -> None:
        given: list[Any] = [package_dirs]
        if isinstance(package_dirs, Iterable) and not isinstance(package_dirs, str | os.PathLike):
            given = list(package_dirs)
        wrong = [x for x in given if not isinstance(x, str | os.PathLike)]
        if wrong:
            raise ScrewdynError(f"package_dirs are paths of folders; got {wrong[0]!r}")
        self.given = [Path(x) for x in given]
        self.folder = None if folder is None else Path(os.path.abspath(folder))
        self._roots: dict[str, list[Path]] = {}

    def find(self, name: str) -> str | None:
        """The path of the file that a name stands for, or None if there is no such file.

        - ``package://arm/link.stl``: the package ``arm`` in ``package_dirs``, in the folders of ``ROS_PACKAGE_PATH``
          and ``AMENT_PREFIX_PATH`` (there in ``share``), or in a folder above that of the robot's file. Last, the name
          of the package is left out: a copy of it may have a folder with another name.
        - ``file://…`` and absolute paths: this file.
        - Other names: relative to the folder of the robot's file (of a text, to the present folder), or to one of
          ``package_dirs``.
        """
        package = next((scheme for scheme in _PACKAGES if name.startswith(scheme)), None)
        if package is not None:
            stem, _, inside = name[len(package) :].lstrip("/").partition("/")
            candidates = [root / inside for root in self._roots_of(stem)]
        else:
            plain = name.removeprefix("file://")
            candidates = [folder / plain for folder in (self.folder or Path.cwd(), *self.given)]
        for path in map(str, candidates):
            found = next((x for x in (path, unquote(path)) if os.path.isfile(x)), None)
            if found is not None:
                return os.path.abspath(found)
        return None

    def _roots_of(self, package: str) -> list[Path]:
        """Folders that a package may be."""
        if package not in self._roots:
            folders = [*self.given, *self._listed, *self._above]
            inside = [folder / package for folder in folders]
            itself = [folder for folder in folders if folder.name == package]
            self._roots[package] = [root for root in (*inside, *itself) if os.path.isdir(root)] + self._above
        return self._roots[package]

    @cached_property
    def _listed(self) -> list[Path]:
        ros, ament = (os.environ.get(name, "").split(os.pathsep) for name in ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH"))
        return [*(Path(x) for x in ros if x), *(Path(x) / "share" for x in ament if x)]

    @cached_property
    def _above(self) -> list[Path]:
        return [] if self.folder is None else [self.folder, *self.folder.parents]
