"""Drive a headless Chromium through its DevTools protocol on two pipes; nothing to install but the browser."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WAIT_S = 30.0


def _high_pipe() -> tuple[int, int]:
    """Return the ends of a pipe, neither of them descriptor 3 or 4, which the browser's own take."""
    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return high[0], high[1]


class Browser:
    """A browser without a network, with one page.

    Attributes:
      requests: addresses that the page requested, besides the page itself.
      complaints: console messages, exceptions and entries of the browser's log (blocked by the policy, ...).
    """

    def __init__(self, folder: Path) -> None:
        assert PROGRAM is not None
        to_browser, self._write = _high_pipe()
        self._read, from_browser = _high_pipe()
        command = [
            PROGRAM, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
            "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
            "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={folder}", "about:blank",
        ]  # fmt: skip
        # The browser reads its descriptor 3 and writes to 4.
        shell = ["bash", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "bash", *command]
        self._process = subprocess.Popen(
            shell, pass_fds=(to_browser, from_browser), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer, self._id, self._session = b"", 0, None
        self._frame: str | None = None
        self._events: list[dict[str, Any]] = []
        self.requests: list[str] = []
        self.complaints: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._session = None
            self.call("Browser.close")
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        self._id += 1
        message = {"id": self._id, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            got = self._next()
            if got.get("id") == self._id:
                assert "error" not in got, f"{method}: {got.get('error')}"
                result: dict[str, Any] = got["result"]
                return result

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + WAIT_S
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, end - time.monotonic()))
            data = os.read(self._read, 1 << 16) if ready else b""
            if not data:
                raise TimeoutError("the browser does not answer")
            self._buffer += data
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, method: str, given: dict[str, Any]) -> None:
        self._events.append({"method": method})
        if method == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(given["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(str(given["args"]))
        elif method == "Target.attachedToTarget" and given["targetInfo"]["type"] == "iframe":
            self._frame = given["sessionId"]
        elif method == "Log.entryAdded":
            self.complaints.append(given["entry"]["text"])

    def open(self, path: Path, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Open a file and wait until it is loaded."""
        self.resize(width, height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self._events.clear()
        self.call("Page.navigate", url=path.absolute().as_uri())
        while not any(e["method"] == "Page.loadEventFired" for e in self._events):
            self._next()
        self.requests = [
            url for url in self.requests if url != path.absolute().as_uri() and url != "about:blank"
        ]

    def resize(self, width: int, height: int) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def value(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def value_in_frame(self, expression: str) -> Any:
        """Return the value of an expression in the page's frame, which has a process of its own."""
        page, self._frame = self._session, None
        self.call("Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=False, flatten=True)
        try:
            while self._frame is None:
                self._next()
            self._session = self._frame
            return self.value(expression)
        finally:
            self._session = page
            self.call("Target.setAutoAttach", autoAttach=False, waitForDebuggerOnStart=False, flatten=True)

    def click(self, selector: str) -> None:
        """Click with the mouse in the middle of an element."""
        x, y = self.value(
            f"(() => {{const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center'}});"
            " const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]})()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str, text: str = "") -> None:
        code = {"Tab": 9, "Enter": 13, "ArrowRight": 39, "ArrowLeft": 37}.get(key, ord(key[0]))
        text = text or ("\r" if key == "Enter" else key if len(key) == 1 else "")
        more = {"text": text} if text else {}
        self.call(
            "Input.dispatchKeyEvent", type="keyDown", key=key, code=key, windowsVirtualKeyCode=code, **more
        )
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, windowsVirtualKeyCode=code)

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))
