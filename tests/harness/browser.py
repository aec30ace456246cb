"""A headless Chromium, driven over the DevTools protocol."""

from __future__ import annotations

import base64
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

from tests.harness.patience import PATIENCE_S
from tests.harness.server_process import start_server

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
)
# between two questions to the page; the page's own events decide how long a wait takes
_LOOK_S = 0.05


class Browser:
    """One page. ``messages``: what its console has said, among it errors and refusals of the content policy.
    ``requests``: the addresses it has asked for.
    """

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        command = [CHROMIUM, *_FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self._process = start_server(command)
        self._number = 0
        self.messages: list[str] = []
        self.requests: list[str] = []
        port, path = self._wait(lambda: _port_of(profile / "DevToolsActivePort"))
        self._socket: ClientConnection = connect(f"ws://127.0.0.1:{port}{path}", max_size=None)
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._page = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if hasattr(self, "_page"):
            message["sessionId"] = self._page
        self._socket.send(json.dumps(message))
        while True:
            answer = json.loads(self._socket.recv(timeout=PATIENCE_S))
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _note(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                self.messages.append(details.get("exception", {}).get("description", details["text"]))
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning"):
                self.messages.append(str([one.get("value") for one in params["args"]]))
            case "Log.entryAdded" if params["entry"]["level"] == "error":
                self.messages.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])

    def open(self, url: str) -> None:
        """Load a page."""
        self.send("Page.navigate", url=url)

    def size(
        self, width: int, height: int, *, scale: float = 1.0, phone: bool = False, dark: bool = False
    ) -> None:
        """Set the size of the window, and the scheme of colours."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=phone,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def ask(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, expression: str) -> None:
        """Wait until an expression is true."""
        self._wait(lambda: self.ask(f"Boolean({expression})"), expression)

    def press(self, key: str) -> None:
        """Press and release a key."""
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.send(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=_CODES[key],
                **text,
            )

    def type(self, text: str) -> None:
        """Insert a text where the focus is."""
        self.send("Input.insertText", text=text)

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Write a picture of the window, or of the whole page."""
        shot = self.send(
            "Page.captureScreenshot",
            format=path.suffix[1:],
            captureBeyondViewport=whole,
            **({"quality": 82} if path.suffix == ".webp" else {}),
        )
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        """End the browser."""
        self._socket.close()
        self._process.terminate()
        self._process.wait()

    def _wait(self, ask: Callable[[], Any], what: str = "the browser") -> Any:
        deadline = time.monotonic() + PATIENCE_S
        while not (value := ask()):
            assert time.monotonic() < deadline, (
                f"never true: {what}; console: {getattr(self, 'messages', None)}"
            )
            time.sleep(_LOOK_S)
        return value


_CODES = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowRight": 39}


def _port_of(path: Path) -> tuple[str, str] | None:
    lines = path.read_text().split("\n") if path.exists() else []
    return (lines[0], lines[1]) if len(lines) > 1 else None
