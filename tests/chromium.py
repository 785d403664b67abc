"""A headless Chromium on DevTools' pipe: pages, what they request, and screenshots."""

import base64
import io
import itertools
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np

NAMES = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str | None:
    """The command of a Chromium on this machine, if there is one."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Page:
    """One page of a browser."""

    def __init__(self, process: subprocess.Popen[bytes], write: int, read: int) -> None:
        self.process, self.write, self.read = process, write, read
        self.ids, self.buffer, self.session = itertools.count(1), b"", None
        self.requests: list[str] = []
        self.errors: list[str] = []
        (target,) = (x for x in self.call("Target.getTargets")["targetInfos"] if x["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Network", "Page", "Runtime"):
            self.call(f"{domain}.enable")
        # Workers are held until their requests are recorded too.
        self.call("Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=True, flatten=True)

    def _send(self, method: str, session: str | None, **parameters: Any) -> int:
        number = next(self.ids)
        message = {"id": number, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        os.write(self.write, json.dumps(message).encode() + b"\0")
        return number

    def call(self, method: str, **parameters: Any) -> Any:
        number = self._send(method, self.session, **parameters)
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self._note(answer)

    def _next(self) -> Any:
        while b"\0" not in self.buffer:
            part = os.read(self.read, 1 << 20)
            assert part, "the browser ended"
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def _note(self, message: Any) -> None:
        method, what = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(what["request"]["url"])
        elif method == "Network.webSocketCreated":
            self.requests.append(what["url"])
        elif method == "Target.attachedToTarget":
            self._send("Network.enable", what["sessionId"])
            self._send("Runtime.runIfWaitingForDebugger", what["sessionId"])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(what["exceptionDetails"]["exception"].get("description", "?"))

    def fresh(self) -> None:
        """Begin anew: an empty page as large as the window, and no requests and errors."""
        for reset in ("Emulation.clearDeviceMetricsOverride", "Emulation.setEmulatedMedia"):
            self.call(reset)
        self.open("about:blank")
        self.wait_for("location.href === 'about:blank' && document.readyState === 'complete'")
        self.requests.clear()
        self.errors.clear()

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)

    def evaluate(self, expression: str) -> Any:
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        return result["result"].get("value")

    def wait_for(self, expression: str, seconds: float = 30.0) -> None:
        end = time.monotonic() + seconds
        while not self.evaluate(expression):
            assert time.monotonic() < end, f"in vain for {seconds} s: {expression}; {self.errors}"
            time.sleep(0.05)

    def picture(self) -> Any:
        """The pixels of the page, (height, width, 3), 0 to 1."""
        png = self.call("Page.captureScreenshot", format="png")["data"]
        return matplotlib.image.imread(io.BytesIO(base64.b64decode(png)))[..., :3]

    def still_picture(self, shows: Callable[[Any], bool], seconds: float = 60.0) -> Any:
        """The picture as soon as it shows something and no longer changes; drawing may take seconds to begin."""
        end, before = time.monotonic() + seconds, self.picture()
        while True:
            time.sleep(0.2)
            after = self.picture()
            if np.array_equal(before, after) and shows(after):
                return after
            assert time.monotonic() < end, f"the picture still changes, or shows something else, after {seconds} s"
            before = after

    def seek(self, seconds: float) -> None:
        """Put viser's player at a time, where it stops."""
        self.evaluate(
            """(value => {
                const field = document.querySelector('input');
                Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(field, value);
                field.dispatchEvent(new Event('input', {bubbles: true}));
            })"""
            + f"('{seconds}')"
        )

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)


@contextmanager
def browser(folder: Path, width: int = 500, height: int = 500) -> Iterator[Page]:
    """A browser without a network, with a profile of its own."""
    command = chromium()
    assert command is not None, "no chromium: apt-get install chromium"
    to_browser, from_browser = os.pipe(), os.pipe()
    flags = [
        "--headless=new", "--no-sandbox", "--disable-gpu", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
        "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--hide-scrollbars", "--disable-dev-shm-usage",
        f"--window-size={width},{height}", f"--user-data-dir={folder}", "--remote-debugging-pipe", "about:blank",
    ]  # fmt: skip
    read, write = to_browser[0], from_browser[1]

    def pipes() -> None:  # the browser reads from 3 and writes to 4
        a, b = os.dup(read), os.dup(write)
        os.dup2(a, 3)
        os.dup2(b, 4)

    with open(folder / "log", "wb") as log:
        process = subprocess.Popen([command, *flags], stdout=log, stderr=log, preexec_fn=pipes, close_fds=False)
    os.close(read)
    os.close(write)
    try:
        yield Page(process, to_browser[1], from_browser[0])
    finally:
        os.close(to_browser[1])
        os.close(from_browser[0])
        process.terminate()
        process.wait(10)
