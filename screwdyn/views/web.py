"""Scenes in a browser: pages that need no network, and windows, whose servers are for this machine only.

viser is imported here only.
"""

from __future__ import annotations

import atexit
import html
import sys
import threading
import webbrowser
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from http import HTTPStatus
from typing import Any

import numpy as np

from screwdyn.core import Array, ArrayLike, ScrewdynError
from screwdyn.physics import Robot, State
from screwdyn.views.scene import Arrow, Color, Part, Scene, SceneNode, View, creased, still

try:
    import rich
    import viser
    from viser.transforms import SO3
    from websockets.asyncio import server as asyncio_server
except ImportError as missing:
    raise ScrewdynError(
        f"a view in a browser needs the extra view ({missing}): pip install 'screwdyn[view]'"
    ) from missing

# Servers are started one after the other.
_SERVING = threading.Lock()
# Quaternions, and positions as fractions of the scene's size, are rounded to multiples of this: files halve.
_GRAIN = 2.0**-20
# The planes beyond which nothing is drawn, and the distance at which the grid fades, as multiples of the scene's size.
_NEAR, _FAR, _FADE = 0.01, 1000.0, 100.0
# For pages with a film: with "#t=2.2" in the address it stands at 2.2 s. The player has no other way in than its field.
_SEEK = """<script>
(() => {
  const last = %s;
  const seek = () => {
    const found = /[#&]t=(\\d+(\\.\\d+)?|\\.\\d+)/.exec(location.hash);
    const field = document.querySelector("input");
    if (found && !field) setTimeout(seek, 20);
    if (!found || !field) return;
    const value = Math.min(Number(found[1]), last);
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(field, value);
    field.dispatchEvent(new Event("input", {bubbles: true}));
  };
  addEventListener("hashchange", seek);
  seek();
})();
</script>"""

# In a window that is taller than wide, as a phone's, the camera sees as far to the sides as in a square one. viser
# reads the address; that of an embedded page, about:srcdoc, cannot be changed.
_TALL = """<script>
if (innerWidth < innerHeight && location.protocol !== "about:") {
  const address = new URL(location), half = Math.atan((%s * innerHeight) / innerWidth);
  address.searchParams.set("initialCameraFov", 2 * half);
  history.replaceState(null, "", address);
}
</script>"""


@contextmanager
def _server() -> Iterator[viser.ViserServer]:
    """A server on a free port of 127.0.0.1 for its own page only, which stops at the end of the block."""
    with _quiet(), _guarded() as guarded:
        found = viser.ViserServer(host="127.0.0.1", port=0, verbose=False)
    try:
        if not guarded:
            raise ScrewdynError(f"viser {viser.__version__} starts its servers in an unknown way; use version 1.1.1")
        yield found
    finally:
        with _quiet():
            found.stop()


@contextmanager
def _guarded() -> Iterator[list[Any]]:
    """Servers that viser starts in the block refuse all requests but those of their own page; yields their handlers."""
    # viser has no option for this; it looks the function ``serve`` up where it is replaced here.
    serve = asyncio_server.serve
    guarded: list[Any] = []

    def checked(handler: Any, *arguments: Any, process_request: Any = None, **options: Any) -> Any:
        if not handler.__module__.startswith("viser."):  # of another thread
            return serve(handler, *arguments, process_request=process_request, **options)

        def process(connection: Any, request: Any) -> Any:
            if not _own(request.headers):
                return connection.respond(HTTPStatus.FORBIDDEN, "This server is for its own page only.\n")
            return process_request and process_request(connection, request)

        guarded.append(handler)
        return serve(handler, *arguments, process_request=process, **options)

    with _SERVING:
        asyncio_server.serve = checked  # type: ignore[misc, assignment]
        try:
            yield guarded
        finally:
            asyncio_server.serve = serve  # type: ignore[misc]


def _own(headers: Any) -> bool:
    """Whether a request is for a name of this machine, and comes from a page of the same address, or from none."""
    # Browsers state the page of every websocket; another name may have come to mean this machine.
    hosts, origins = headers.get_all("Host"), headers.get_all("Origin")
    if len(hosts) != 1 or hosts[0].rpartition(":")[0] not in ("127.0.0.1", "localhost"):
        return False
    return origins == [f"http://{hosts[0]}"] if headers.get_all("Upgrade") or origins else True


@contextmanager
def _quiet() -> Iterator[None]:
    """Without viser's messages about its servers."""
    console = rich.get_console()
    before, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = before


def page(scene: Scene, frames: Iterable[int]) -> str:
    """HTML with a recording of the frames 0, 1, …, which needs no network; ``#t=`` in its address is where it opens."""
    with _server() as host:
        drawing = _Drawing(host, scene)
        recording = host.get_scene_serializer()
        for frame in frames:
            if frame:
                recording.insert_sleep(float(scene.times[frame] - scene.times[frame - 1]))
                drawing.show(frame)
        if len(scene.times) > 1:
            recording.insert_sleep(float(scene.times[-1] - scene.times[-2]))
        text: str = recording.as_html()
    head, body, tail = text.partition("<head>")
    text = head + body + _TALL % np.tan(np.radians(scene.camera.FIELD_OF_VIEW / 2)) + tail
    if len(scene.times) > 1:
        head, body, tail = text.rpartition("</body>")
        text = head + _SEEK % float(scene.times[-1] - scene.times[0]) + body + tail
    return text


def embedded(page: str) -> str:
    """A page within another one, as text."""
    frame = 'style="border: 1px solid #ddd; width: 100%; height: min(480px, 90vw);"'
    return f'<iframe srcdoc="{html.escape(page)}" {frame}></iframe>'


class _Drawing:
    """A scene on a server, first as in its first frame."""

    def __init__(self, host: viser.ViserServer, scene: Scene) -> None:
        self.host, self.scene = host, scene
        camera, first, api, size = scene.camera, host.initial_camera, host.scene, scene.size
        api.set_up_direction(camera.up)
        first.position, first.look_at, first.up = camera.position, camera.target, camera.up
        first.fov, first.near, first.far = float(np.radians(camera.FIELD_OF_VIEW)), _NEAR * size, _FAR * size
        cell, count = scene.grid
        side = 2 * cell * count
        plane = {0: "yz", 1: "zx", 2: "xy"}[int(np.argmax(np.abs(camera.up)))]
        lines = {"cell_size": cell, "section_size": side / 2, "fade_distance": _FADE * size}
        api.add_grid("/grid", side, side, plane=plane, visible="grid" not in scene.hidden, **lines)
        # A power of two, so that multiples have few digits.
        self.grain = _GRAIN * 2.0 ** float(np.floor(np.log2(size)))
        self.things: list[tuple[SceneNode | Part | Arrow, Any]] = []
        for node in scene.nodes:
            name = _path(node.group, node.name)
            self.things.append((node, api.add_frame(name, show_axes=False)))
            for part in node.parts:
                self.things.append((part, api.add_frame(f"{name}/{part.name}", show_axes=False)))
                for k, solid in enumerate(part.solids):
                    vertices, faces = creased(solid.vertices, solid.faces)
                    api.add_mesh_simple(
                        f"{name}/{part.name}/{k}",
                        vertices.astype(np.float32),
                        faces.astype(np.uint32),
                        color=_bytes(solid.color),
                        opacity=None if solid.color[3] == 1 else solid.color[3],
                        flat_shading=False,
                        side="double",
                    )
            if node.text and "text" not in scene.hidden:
                api.add_label(f"{name}/text", node.text)
        for arrow in scene.arrows:
            points = np.array([[arrow.start[0], arrow.end[0]]], dtype=np.float32)
            widths = {"shaft_radius": 0.008 * size, "head_radius": 0.022 * size, "head_length": 0.06 * size}
            handle = api.add_arrows(_path("arrows", arrow.name), points, _bytes(arrow.color), **widths)
            self.things.append((arrow, handle))
        self.show(0)

    def show(self, frame: int) -> None:
        """Draw a frame of the scene."""
        with self.host.atomic():
            for thing, handle in self.things:
                handle.visible = bool(thing.shown[frame])
                if thing.shown[frame] and isinstance(thing, SceneNode):
                    T = thing.poses[frame]
                    handle.position = np.round(T[:3, 3] / self.grain) * self.grain
                    handle.wxyz = np.round(SO3.from_matrix(T[:3, :3]).wxyz / _GRAIN) * _GRAIN
                elif thing.shown[frame] and isinstance(thing, Arrow):
                    handle.points = np.array([[thing.start[frame], thing.end[frame]]], dtype=np.float32)


def _bytes(color: Color) -> tuple[int, ...]:
    return tuple(round(255 * x) for x in color[:3])


def _path(group: str, name: str) -> str:
    """The path of viser for a name of a group; a slash in it would begin a child."""
    return f"/{group}/{name.replace('/', '∕')}"


class Viewer(AbstractContextManager["Viewer"]):
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

    def __init__(self, tree: Robot, q: Array, view: View) -> None:
        self._tree, self._view, self.q = tree, view, q
        self._lock, self._closed = threading.Lock(), threading.Event()
        scene = still(tree, q, view)
        self._stack = ExitStack()
        host = self._stack.enter_context(_server())
        self.url = f"http://{host.get_host()}:{host.get_port()}"
        host.gui.configure_theme(show_logo=False, show_share_button=False)
        self._drawing = _Drawing(host, scene)
        self._sliders = self._add_sliders(host.gui, scene.size)
        atexit.register(self.close)

    def update(self, q: ArrayLike | Mapping[str, ArrayLike] | None = None) -> None:
        """Draw the robot at other positions q, rad and m: (nq,), or by name, as for :meth:`KinematicTree.show`.

        Raises
        ------
        ShapeError, UnknownNameError
            As for :class:`State`; the drawing is then unchanged.
        ScrewdynError
            If the viewer is closed.
        """
        if self._closed.is_set():
            raise ScrewdynError("this viewer is closed; open another one with tree.show(q)")
        self._move(State(self._tree, q).q)
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

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        return embedded(page(still(self._tree, self.q, self._view), [0]))

    def __repr__(self) -> str:
        state = "closed" if self._closed.is_set() else self.url
        return f"<{type(self).__name__} of {self._tree.base!r}: {state}>"

    def _move(self, q: Array) -> None:
        scene = still(self._tree, q, self._view)
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
                slider.on_update(partial(self._slid, k))
                found.append((k, slider))
        return found

    def _slid(self, k: int, event: Any) -> None:
        if event.client is not None:  # None: set by update()
            q = self.q.copy()
            q[k] = event.target.value
            self._move(q)


def open_page(viewer: Viewer) -> None:
    """Print the address of a viewer and open it in the browser, unless a notebook shows it."""
    ipython = sys.modules.get("IPython")
    if ipython is None or not hasattr(ipython.get_ipython(), "kernel"):
        print(viewer.url, flush=True)
        webbrowser.open(viewer.url)
