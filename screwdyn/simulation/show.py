"""The method of a tree that shows it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from screwdyn.core.types import ArrayLike
from screwdyn.physics.robot import Robot
from screwdyn.physics.state import State

if TYPE_CHECKING:
    from screwdyn.views.animation import Animation
    from screwdyn.views.viewer import Viewer

__all__ = ["Shown"]


class Shown(Robot):
    """A tree that can be looked at."""

    def show(
        self,
        q: ArrayLike | Mapping[str, ArrayLike] | None = None,
        *,
        show: Sequence[str] = (),
        browser: bool = True,
    ) -> Viewer:
        """Open a window on the present tree in the browser, with sliders for its joints (docs/viewing.md).

        A server on a free port of 127.0.0.1, which no other machine can reach, serves the page; its address is printed.
        In a notebook, the result shows itself instead. Links are drawn as by :meth:`Run.animate`.

        Parameters
        ----------
        q : (nq,) array or mapping from position to number, optional
            Positions, rad and m; those that a mapping omits are neutral, as all are by default.
        show : sequence of str
            ``"com"`` shows the centre of mass.
        browser : bool
            Print the address and open the page; False only serves it.

        Returns
        -------
        Viewer
            ``viewer.update(q)`` moves the robot, ``viewer.url`` is the address, and ``viewer.close()`` ends the server;
            in a script, ``viewer.wait()`` waits for Ctrl-C. Later changes of the tree do not affect it.

        Raises
        ------
        ScrewdynError
            If the extra ``view`` is not installed, or ``show`` has another name.
        ShapeError, UnknownNameError, UnboundSymbolError
            For the positions, as for :class:`State`, and if numbers of the tree contain symbols.
        """
        from screwdyn.views.viewer import Viewer, open_page

        state = State(self, q)
        viewer = Viewer(state.tree, state.q, show)
        if browser:
            open_page(viewer)
        return viewer

    def draw(
        self,
        path: str | os.PathLike[str],
        q: ArrayLike | Mapping[str, ArrayLike] | None = None,
        *,
        show: Sequence[str] = (),
    ) -> Animation:
        """Write a picture of the tree: a page for a browser, ``.html``, which needs no network, or ``.png``.

        Parameters
        ----------
        path : str or Path
        q, show
            As for :meth:`show`.

        Returns
        -------
        Animation
            Has the ``path``, and shows itself in a notebook.

        Raises
        ------
        ScrewdynError
            If the suffix is not that of a format, the file cannot be written, or what the format needs is not
            installed: the extra ``view`` for HTML and for meshes, the extra ``plot`` for PNG.
        ShapeError, UnknownNameError, UnboundSymbolError
            As for :meth:`show`.
        """
        from screwdyn.views.animation import picture_path, write_picture
        from screwdyn.views.staging import stage_scene, still

        out, state = picture_path(path), State(self, q)
        return write_picture(stage_scene([still(state.tree, state.q)], np.zeros(1), (), show), out)
