"""The command ``screwdyn view``: a robot in a browser."""

from collections.abc import Sequence
from pathlib import Path

from screwdyn.core.errors import ScrewdynError
from screwdyn.tree import KinematicTree

__all__ = ["view"]


def view(tree: KinematicTree, positions: Sequence[str], html: Path | None) -> None:
    """Show a robot in the browser until Ctrl-C, or write a page.

    Parameters
    ----------
    tree : KinematicTree
    positions : sequence of str
        ``NAME=VALUE``, rad or m; others are neutral.
    html : path or None
        File of the page; None opens the browser.

    Raises
    ------
    ScrewdynError
        If a position is unknown or no number, the page cannot be written, or the extra ``view`` is not installed.
    """
    q = dict(map(_position, positions))
    if html is not None:
        path = tree.draw(html, q).path
        print(f"Page: {path.resolve()}")
        return
    with tree.show(q) as viewer:
        viewer.wait()


def _position(text: str) -> tuple[str, float]:
    name, _, value = text.rpartition("=")
    try:
        number = float(value)
    except ValueError:
        name = ""
    if not name:
        raise ScrewdynError(f"--q must be POSITION=VALUE with a number, such as elbow=0.5; got {text!r}")
    return name, number
