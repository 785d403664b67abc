"""A window on a robot: a page in the browser that follows calls of ``update`` and has sliders for the joints."""

from __future__ import annotations

import atexit
import sys
import threading
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, Self

import numpy as np

from screwdyn.core.errors import ScrewdynError, ShapeError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.physics.robot import Robot
from screwdyn.views.animation import embedded
from screwdyn.views.scene import Scene
from screwdyn.views.staging import stage_scene, still
from screwdyn.views.web import Drawing, page, server

__all__ = ["Viewer", "in_notebook", "open_page"]


def in_notebook() -> bool:
    """Whether the process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


class Viewer:
    """A robot in a browser of this machine; made by :meth:`KinematicTree.show`.

    Attributes
    ----------
    url : str
        Address of the page, on 127.0.0.1.
    q : (nq,) array
        The configuration that is drawn.

    Notes
    -----
    A viewer is also a context manager, which closes it. In a notebook it shows the configuration at that time as a page
    of its own, without a server.
    """

    def __init__(self, tree: Robot, q: Array, show: Sequence[str]) -> None:
        self._tree, self._show, self.q = tree, show, q
        self._lock, self._closed = threading.Lock(), threading.Event()
        scene = self._scene(q)
        self._stack = ExitStack()
        host = self._stack.enter_context(server())
        self.url = f"http://{host.get_host()}:{host.get_port()}"
        host.gui.configure_theme(show_logo=False, show_share_button=False)
        self._drawing = Drawing(host, scene)
        self._sliders = [*self._add_sliders(host.gui, scene.size)]
        atexit.register(self.close)

    def update(self, q: ArrayLike) -> None:
        """Draw the robot at other positions q (nq,), rad and m.

        Raises
        ------
        ShapeError
            If the shape is wrong or a number is not finite; the drawing is then unchanged.
        ScrewdynError
            If the viewer is closed.
        """
        if self._closed.is_set():
            raise ScrewdynError("this viewer is closed; open another one with tree.show(q)")
        (flat,), batch = self._tree.model.flat(q=q)
        if batch:
            raise ShapeError(f"a viewer draws one configuration; got a batch of shape {batch}")
        self._move(np.array(flat).reshape(self._tree.nq))
        for k, slider in self._sliders:
            slider.value = float(self.q[k])

    def wait(self) -> None:
        """Wait until the viewer is closed, or for Ctrl-C; a script that ends here would close its window at once."""
        while not self._closed.wait(0.2):
            pass

    def close(self) -> None:
        """Stop the server; the page in the browser stays as it is."""
        if not self._closed.is_set():
            self._closed.set()
            atexit.unregister(self.close)
            self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        return embedded(page(self._scene(self.q), [0]))

    def __repr__(self) -> str:
        state = "closed" if self._closed.is_set() else self.url
        return f"<{type(self).__name__} of {self._tree.base!r}: {state}>"

    def _scene(self, q: Array) -> Scene:
        return stage_scene([still(self._tree, q)], np.zeros(1), (), self._show)

    def _move(self, q: Array) -> None:
        scene = self._scene(q)
        with self._lock:
            for node, moved in zip(self._drawing.scene.nodes, scene.nodes, strict=True):
                node.poses[:] = moved.poses
            self._drawing.show(0)
            self.q = q

    def _add_sliders(self, gui: Any, size: float) -> list[tuple[int, Any]]:
        """A slider for each position of a joint of one freedom, by its index in q."""
        found = []
        for k, name in enumerate(self._tree.positions):
            if name not in self._tree.joints:
                continue
            joint = self._tree.joint(name)
            slides = joint.kind == "prismatic"
            widest = size if slides else np.pi
            low, high = joint.limits or (-np.inf, np.inf)
            low = min(low if np.isfinite(low) else -widest, float(self.q[k]))
            high = max(high if np.isfinite(high) else widest, float(self.q[k]))
            if high > low:
                step = (high - low) / 1000
                slider = gui.add_slider(f"{name} ({'m' if slides else 'rad'})", low, high, step, float(self.q[k]))
                slider.on_update(self._slid(k))
                found.append((k, slider))
        return found

    def _slid(self, k: int) -> Callable[[Any], None]:
        def moved(event: Any) -> None:
            if event.client is not None:  # None: set by update()
                q = self.q.copy()
                q[k] = event.target.value
                self._move(q)

        return moved


def open_page(viewer: Viewer) -> None:
    """Print the address of a viewer and open it in the browser, unless a notebook shows it."""
    if not in_notebook():
        print(viewer.url, flush=True)
        webbrowser.open(viewer.url)
