"""Scenes in a browser: pages that need no network, and a server for this machine only.

viser is imported here only.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

import numpy as np

from screwdyn.core.errors import ScrewdynError
from screwdyn.core.types import Array
from screwdyn.views.scene import Arrow, Flash, Scene
from screwdyn.views.triangles import ball

try:
    import rich
    import viser
    from viser.transforms import SO3
    from websockets.asyncio import server as asyncio_server
except ImportError as missing:
    raise ScrewdynError(
        f"a view in a browser needs the extra view ({missing}): pip install 'screwdyn[view]'"
    ) from missing

__all__ = ["Drawing", "page", "server"]

_LIGHT, _IMPACT = (1.0, 0.85, 0.2, 0.7), (1.0, 0.35, 0.1, 0.8)
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


@contextmanager
def server() -> Iterator[viser.ViserServer]:
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
    """Servers that viser starts in the block refuse all requests but those of their own page; yields their handlers.

    viser has no option for this; it looks the function ``serve`` up where it is replaced here.
    """
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
    """Whether a request is for a name of this machine, and comes from a page of the same address, or from none.

    Browsers state the page of every websocket. The name keeps pages away whose own name has come to mean this machine.
    """
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
    """HTML with a recording of all frames, which needs no network; ``#t=`` in its address is a time at which it opens.

    Parameters
    ----------
    scene : Scene
    frames : iterable of int
        Counts the frames from 0 on, for example with a progress bar.
    """
    with server() as host:
        drawing = Drawing(host, scene)
        recording = host.get_scene_serializer()
        for frame in frames:
            if frame:
                recording.insert_sleep(float(scene.times[frame] - scene.times[frame - 1]))
                drawing.show(frame)
        if len(scene.times) > 1:
            recording.insert_sleep(float(scene.times[-1] - scene.times[-2]))
        text: str = recording.as_html()
    if len(scene.times) > 1:
        head, body, tail = text.rpartition("</body>")
        text = head + _SEEK % float(scene.times[-1] - scene.times[0]) + body + tail
    return text


class Drawing:
    """A scene on a server.

    Parameters
    ----------
    host : viser.ViserServer
    scene : Scene
        Drawn as in its first frame.
    """

    def __init__(self, host: viser.ViserServer, scene: Scene) -> None:
        self.host, self.scene = host, scene
        camera, api = scene.camera, host.scene
        api.set_up_direction(_floats(camera.up))
        host.initial_camera.position, host.initial_camera.look_at = _floats(camera.position), _floats(camera.target)
        host.initial_camera.up, host.initial_camera.fov = _floats(camera.up), float(np.radians(camera.FIELD_OF_VIEW))
        host.initial_camera.near, host.initial_camera.far = _NEAR * scene.size, _FAR * scene.size
        _grid(api, scene)
        # A power of two, so that multiples have few digits.
        self.grain = _GRAIN * 2.0 ** float(np.floor(np.log2(scene.size)))
        self.nodes, self.parts = [], []
        for node in scene.nodes:
            name = f"/{node.group}/{_path(node.name)}"
            self.nodes.append((node, api.add_frame(name, show_axes=False)))
            for part in node.parts:
                self.parts.append((part, api.add_frame(f"{name}/{part.name}", show_axes=False)))
                for k, solid in enumerate(part.solids):
                    _add(api, f"{name}/{part.name}/{k}", solid)
        self.arrows = [(arrow, _arrow(api, arrow, scene.size)) for arrow in scene.arrows]
        self.flashes = [(flash, *_flash(api, k, flash, scene.size)) for k, flash in enumerate(scene.flashes)]
        self.show(0)

    def show(self, frame: int) -> None:
        """Draw a frame of the scene."""
        with self.host.atomic():
            for node, handle in self.nodes:
                handle.visible = bool(node.shown[frame])
                if node.shown[frame]:
                    _place(handle, node.poses[frame], self.grain)
            for part, handle in self.parts:
                handle.visible = bool(part.shown[frame])
            for arrow, handle in self.arrows:
                handle.visible = bool(arrow.shown[frame])
                if arrow.shown[frame]:
                    handle.points = np.array([[arrow.start[frame], arrow.end[frame]]], dtype=np.float32)
            for flash, *handles in self.flashes:
                for handle in handles:
                    handle.visible = bool(flash.shown[frame])


def _place(handle: Any, T: Array, grain: float) -> None:
    """Set a pose, with its position in multiples of the grain, m."""
    handle.position = np.round(T[:3, 3] / grain) * grain
    handle.wxyz = np.round(SO3.from_matrix(T[:3, :3]).wxyz / _GRAIN) * _GRAIN


def _grid(api: viser.SceneApi, scene: Scene) -> None:
    cell, count = scene.grid
    side = 2 * cell * count
    plane = {0: "yz", 1: "zx", 2: "xy"}[int(np.argmax(np.abs(scene.camera.up)))]
    fade = _FADE * scene.size
    api.add_grid("/grid", side, side, plane=plane, cell_size=cell, section_size=side / 2, fade_distance=fade)


def _add(api: viser.SceneApi, name: str, solid: Any, **more: Any) -> Any:
    *rgb, opacity = solid.color
    return api.add_mesh_simple(
        name,
        solid.vertices.astype(np.float32),
        solid.faces.astype(np.uint32),
        color=tuple(round(255 * x) for x in rgb),
        opacity=None if opacity == 1 else opacity,
        flat_shading=not solid.smooth,
        side="double",
        **more,
    )


def _arrow(api: viser.SceneApi, arrow: Arrow, size: float) -> Any:
    return api.add_arrows(
        f"/arrows/{_path(arrow.name)}",
        np.array([[arrow.start[0], arrow.end[0]]], dtype=np.float32),
        colors=tuple(round(255 * x) for x in arrow.color[:3]),
        shaft_radius=0.008 * size,
        head_radius=0.022 * size,
        head_length=0.06 * size,
    )


def _flash(api: viser.SceneApi, k: int, flash: Flash, size: float) -> tuple[Any, ...]:
    name = f"/events/{k + 1}"
    color = _IMPACT if flash.impact else _LIGHT
    return (
        _add(api, f"{name}/mark", ball(0.05 * size, np.zeros(3), color), position=_floats(flash.position)),
        api.add_label(f"{name}/text", flash.text, position=_floats(flash.position)),
    )


def _floats(x: Array) -> tuple[float, float, float]:
    a, b, c = np.asarray(x, dtype=float).tolist()
    return a, b, c


def _path(name: str) -> str:
    """A name as one part of a path of viser, in which a slash would begin a child."""
    return name.replace("/", "∕")
