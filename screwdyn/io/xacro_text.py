"""Xacro in, URDF out: macros and expressions are expanded by the package ``xacro`` (needs the extra ``xacro``)."""

import io
from pathlib import Path

__all__ = ["expanded"]


def expanded(document: bytes, encoding: str | None, path: Path | None) -> bytes:
    """The URDF that a xacro document stands for, as the command ``xacro`` writes it.

    Parameters
    ----------
    document : bytes
        The XML.
    encoding : str or None
        Overrides the document's own declaration.
    path : Path or None
        Of the file it was read from; included files are looked for beside it, or else in the working directory.

    Raises
    ------
    ModuleNotFoundError
        If xacro is not installed.
    Exception
        Whatever an expression of the document raises, or xacro about the document.
    """
    import xacro

    xacro.init_stacks(None if path is None else str(path))
    tree = xacro.parse(io.BytesIO(document) if encoding is None else document.decode(encoding))
    xacro.process_doc(tree, verbosity=0)
    text: str = tree.toprettyxml(indent="  ")
    return text.encode("utf-8")
