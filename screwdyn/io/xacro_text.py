"""Expansion of xacro to URDF by the package ``xacro`` (needs the extra ``xacro``)."""

import io
from pathlib import Path

__all__ = ["expanded"]


def expanded(document: bytes, encoding: str | None, path: Path | None) -> bytes:
    """The URDF that a xacro document expands to, as written by the command ``xacro``.

    Parameters
    ----------
    document : bytes
        The XML.
    encoding : str or None
        Overrides the document's own declaration.
    path : Path or None
        Of the file of the document; included files are searched in its folder, or else in the working directory.

    Raises
    ------
    ModuleNotFoundError
        If xacro is not installed.
    Exception
        Any error of an expression of the document, or of xacro.
    """
    import xacro

    xacro.init_stacks(None if path is None else str(path))
    tree = xacro.parse(io.BytesIO(document) if encoding is None else document.decode(encoding))
    xacro.process_doc(tree, verbosity=0)
    text: str = tree.toprettyxml(indent="  ")
    return text.encode("utf-8")
