import socket
import sys
import urllib.request
import webbrowser
from types import SimpleNamespace

import numpy as np
import pytest
import viser
from film import arm, recording, replay

import screwdyn as sd
from screwdyn.views.scene import SceneNode


@pytest.fixture
def opened(monkeypatch):
    """The addresses that a browser would open."""
    urls = []
    monkeypatch.setattr(webbrowser, "open", urls.append)
    return urls


@pytest.fixture(scope="module")
def server_of_arm():
    """The port of a viewer."""
    with arm().show(browser=False) as viewer:
        yield int(viewer.url.rpartition(":")[2])


def drawn(viewer, link):
    return next(
        handle for thing, handle in viewer._drawing.things if isinstance(thing, SceneNode) and thing.name == link
    )


def test_a_viewer_serves_a_page_on_this_machine_only(opened, capsys) -> None:
    tree = arm()
    with tree.show([0.3, -0.2], show=("com",)) as viewer:
        assert viewer.url.startswith("http://127.0.0.1:") and opened == [viewer.url]
        assert capsys.readouterr() == (viewer.url + "\n", "")
        with urllib.request.urlopen(viewer.url, timeout=5) as answer:
            assert b"<title>Viser</title>" in answer.read()
        np.testing.assert_array_equal(viewer.q, [0.3, -0.2])
        T = tree.forward_kinematics("lower", [0.3, -0.2])
        np.testing.assert_allclose(drawn(viewer, "lower").position, T[:3, 3], atol=1e-6)
        assert repr(viewer) == f"<Viewer of 'base': {viewer.url}>"
    assert "closed" in repr(viewer)
    with pytest.raises(OSError):
        urllib.request.urlopen(viewer.url, timeout=1)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("127.0.0.1:{port}", "http://127.0.0.1:{port}", 101),
        ("localhost:{port}", "http://localhost:{port}", 101),
        ("localhost:{port}", "http://localhost:1", 403),
        ("127.0.0.1:{port}", "http://attacker.example", 403),
        ("127.0.0.1:{port}", "http://attacker.example:{port}", 403),
        ("127.0.0.1:{port}", "null", 403),
        ("127.0.0.1:{port}", None, 403),
        # The name of the attacker means this machine by now.
        ("attacker.example:{port}", "http://attacker.example:{port}", 403),
        ("127.0.0.1.attacker.example:{port}", "http://127.0.0.1.attacker.example:{port}", 403),
        ("127.0.0.1:{port}\r\nHost: attacker.example", "http://127.0.0.1:{port}", 403),
        (None, "http://127.0.0.1:{port}", 403),
    ],
)
def test_only_the_page_of_the_viewer_is_answered(server_of_arm, host, origin, status):
    def answer(*lines):
        with socket.create_connection(("127.0.0.1", server_of_arm), timeout=5) as connection:
            connection.sendall("\r\n".join(["GET / HTTP/1.1", *lines, "", ""]).format(port=server_of_arm).encode())
            return int(connection.recv(100).split()[1])

    named = [] if host is None else [f"Host: {host}"]
    upgrade = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"]
    upgrade += [f"Sec-WebSocket-Key: {16 * 'A'}AAAAAA==", "Sec-WebSocket-Protocol: viser-v" + viser.__version__]
    assert answer(*named, *([] if origin is None else [f"Origin: {origin}"]), *upgrade) == status
    assert answer(*named) == (200 if host in ("127.0.0.1:{port}", "localhost:{port}") else 403)


def test_a_server_whose_requests_would_not_be_checked_is_refused(monkeypatch):
    stopped = []
    monkeypatch.setattr(viser, "ViserServer", lambda **_: SimpleNamespace(stop=lambda: stopped.append(True)))
    with pytest.raises(sd.ScrewdynError, match=r"viser .* starts its servers in an unknown way"):
        arm().show(browser=False)
    assert stopped


def test_update_moves_the_robot_and_its_sliders_and_sliders_move_the_robot() -> None:
    tree = arm()
    with tree.show({"elbow": 0.5}, browser=False) as viewer:
        np.testing.assert_array_equal(viewer.q, [0, 0.5])
        viewer.update([1.0, 0.2])
        np.testing.assert_allclose(
            drawn(viewer, "lower").position, tree.forward_kinematics("lower", [1, 0.2])[:3, 3], atol=1e-6
        )
        (_, shoulder), (index, elbow) = viewer._sliders
        assert (shoulder.value, elbow.value) == (1.0, 0.2) and index == 1
        assert shoulder.min == pytest.approx(-np.pi) and "elbow (rad)" in elbow.label
        (moved,) = elbow._impl.update_cb
        moved(SimpleNamespace(client=object(), target=SimpleNamespace(value=-0.7)))
        np.testing.assert_array_equal(viewer.q, [1.0, -0.7])
        for wrong in ([1.0], [1.0, np.nan], np.zeros((3, 2))):
            with pytest.raises(sd.ShapeError):
                viewer.update(wrong)
        with pytest.raises(sd.UnknownNameError, match="'knee'"):
            viewer.update({"knee": 0.1})
        np.testing.assert_array_equal(viewer.q, [1.0, -0.7])
        viewer.update({"elbow": 0.3})
        np.testing.assert_array_equal(viewer.q, [0.0, 0.3])
    with pytest.raises(sd.ScrewdynError, match="this viewer is closed"):
        viewer.update([0, 0])


def test_sliders_are_within_the_limits_of_joints() -> None:
    tree = sd.KinematicTree()
    body = sd.Inertia.box(1.0, (0.1, 0.1, 0.1))
    tree.attach(body, to="base", joint=sd.revolute("z", limits=(-1.0, np.inf), name="turn"), name="a")
    tree.attach(body, to="a", joint=sd.prismatic("z", limits=(0.1, 0.2), name="slide"), name="b")
    tree.attach(body, to="b", joint=sd.spherical(name="ball"), name="c")
    with tree.show({"turn": -2.0, "slide": 0.15}, browser=False) as viewer:
        (_, turn), (_, slide) = viewer._sliders
        assert (turn.min, turn.max) == (-2.0, pytest.approx(np.pi))
        assert (slide.min, slide.max) == (0.1, 0.2) and slide.label == "slide (m)"


def test_a_viewer_shows_itself_in_a_notebook_as_a_page_of_its_own(opened, capsys, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1)))
    tree = arm()
    with tree.show([0.3, -0.2]) as viewer:
        assert not opened and capsys.readouterr().out == ""
        page = viewer._repr_html_().replace("&quot;", '"')
    _, position, _ = replay(recording(page), "/links/lower", 0.0)
    np.testing.assert_allclose(position, tree.forward_kinematics("lower", [0.3, -0.2])[:3, 3], atol=1e-5)


def test_trees_with_symbols_are_refused() -> None:
    import sympy

    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.point(sympy.Symbol("m"), (0.1, 0, 0)), to="base", joint=sd.revolute("z"), name="a")
    with pytest.raises(sd.UnboundSymbolError):
        tree.show(browser=False)
