"""Documents that users give as the path of a file or as text."""

import os
from dataclasses import dataclass
from pathlib import Path

from screwdyn.core.errors import ScrewdynError

__all__ = ["Source", "read_source", "shown"]


@dataclass(frozen=True)
class Source:
    """A document.

    Attributes
    ----------
    title : str
        What messages call it.
    document : bytes
    encoding : str or None
        Of the bytes, if it is known.
    skipped_lines : int
        Number of empty lines removed before `document`.
    path : Path or None
        Of the file.
    """

    title: str
    document: bytes
    encoding: str | None = None
    skipped_lines: int = 0
    path: Path | None = None


def read_source(path_or_text: str | os.PathLike[str], kind: str, opening: str, error: type[ScrewdynError]) -> Source:
    """Read a document of a kind such as "URDF"; a string is text if it begins with a character of `opening`.

    Raises
    ------
    error
        If the argument is neither, or the file cannot be read.
    """
    hint = f"give the path of a {kind} file, or its text beginning with {opening[0]!r}"
    if isinstance(path_or_text, str):
        text = path_or_text.lstrip("\ufeff \t\r\n")
        if text.startswith(tuple(opening)):
            skipped = path_or_text[: len(path_or_text) - len(text)]
            return Source(f"the {kind} text", text.encode("utf-8", "replace"), "utf-8", skipped.count("\n"))
        if not text:
            raise error(f"cannot read the file {shown(path_or_text)!r}: the path is empty; {hint}")
    elif not isinstance(path_or_text, os.PathLike):
        decode = "; decode bytes to a str first" if isinstance(path_or_text, bytes) else ""
        raise error(f"a {type(path_or_text).__name__} is not a {kind}: {hint}{decode}")
    path = Path(path_or_text)
    name = shown(str(path_or_text), 200)
    try:
        return Source(name, path.read_bytes(), path=path)
    except (OSError, ValueError) as wrong:
        reason = wrong.strerror if isinstance(wrong, OSError) else str(wrong)
        raise error(f"cannot read the file {name!r}: {reason}; {hint}") from None


def shown(text: str, width: int = 60) -> str:
    """Text for a message, shortened to a width."""
    return text if len(text) <= width else text[: width - 1] + "…"
