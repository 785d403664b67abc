"""A short run to film: an arm grasps a crate at rest, swings it, and releases it; the recording in a page."""

import base64
import re
from typing import Any

import msgspec
import numpy as np
import zstandard

import screwdyn as sd
from screwdyn.views.scene import Scene, SceneNode

GRASP, RELEASE, END = 0.2, 0.5, 0.8
CRATE = sd.Inertia.box(1.0, (0.1, 0.2, 0.3), com=(0, -0.2, 0.05))


def arm() -> sd.KinematicTree:
    tree = sd.KinematicTree(gravity=(0, -9.81, 0))
    rod = sd.Inertia.rod(2.0, 0.5, axis="x", com=(0.25, 0, 0))
    tree.attach(rod, to="base", joint=sd.revolute("z", name="shoulder"), name="upper")
    tree.attach(rod, to="upper", joint=sd.revolute("z", name="elbow"), at=(0.5, 0, 0), name="lower")
    return tree


def swing() -> sd.Run:
    """0.8 s; the crate hangs on a passive joint from 0.2 s to 0.5 s."""
    hook = sd.revolute("z", passive=True, name="hook")
    grasp = sd.Grasp(CRATE, to="lower", at=(0.5, 0, 0), joint=hook, name="crate", twist="at_rest", time=GRASP)
    tree = arm()
    state = sd.State(tree, [-0.6, 0.4], [1.0, -0.5])
    return sd.simulate(tree, state, END, lambda t, s: {"shoulder": 8.0}, [grasp, sd.Release("crate", time=RELEASE)])


def node_of(scene: Scene, name: str) -> SceneNode:
    """The node of a link."""
    return next(node for node in scene.nodes if node.name == name)


def texts_of(scene: Scene) -> list[SceneNode]:
    """The nodes that have a text: marks where something happened, over a short time."""
    return [node for node in scene.nodes if node.text]


def recording(page: str) -> Any:
    """The recording in a page of viser, with messages as (time, message); binary parts are left out."""
    found = re.search(r'__VISER_EMBED_DATA__="([^"]*)"', page)
    assert found is not None
    data = base64.b64decode(found[1])
    size = int.from_bytes(data[:8], "little")
    inner = zstandard.ZstdDecompressor().decompress(data[8:], max_output_size=size)
    return msgspec.msgpack.decode(inner[8 : 8 + int.from_bytes(inner[:8], "little")])


def replay(played: Any, node: str, time: float) -> tuple[bool, np.ndarray, np.ndarray]:
    """Whether a node is visible, its position and its quaternion (w, x, y, z), as a player has them at a time."""
    state = {"visible": False, "position": (0, 0, 0), "wxyz": (1, 0, 0, 0)}
    for t, message in played["messages"]:
        if t <= time and message.get("name") == node:
            state.update((key, message[key]) for key in state if key in message)
    return bool(state["visible"]), np.array(state["position"]), np.array(state["wxyz"])
