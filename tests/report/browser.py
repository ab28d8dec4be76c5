"""A real Chromium, driven by chromedriver's HTTP protocol: no package beyond Debian's chromium and chromium-driver."""

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    def __init__(self, port: int, width: int, height: int, *, mobile: bool = False, dark: bool = False) -> None:
        self._root = f"http://127.0.0.1:{port}/session"
        options: dict[str, Any] = {
            "binary": CHROMIUM,
            "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     f"--window-size={width},{height}", *(["--blink-settings=preferredColorScheme=0"] if dark else [])],
        }  # fmt: skip
        if mobile:
            options["mobileEmulation"] = {
                "deviceMetrics": {"width": width, "height": height, "pixelRatio": 2.0, "touch": True}
            }
        capabilities = {
            "alwaysMatch": {
                "goog:chromeOptions": options,
                "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            }
        }
        session = self._call("POST", self._root, {"capabilities": capabilities})
        self._root += f"/{session['sessionId']}"

    def open(self, path: Path) -> None:
        self._call("POST", f"{self._root}/url", {"url": path.resolve().as_uri()})

    def run(self, script: str, *arguments: Any) -> Any:
        return self._call("POST", f"{self._root}/execute/sync", {"script": script, "args": list(arguments)})

    def click(self, css: str) -> None:
        element = self._call("POST", f"{self._root}/element", {"using": "css selector", "value": css})[ELEMENT]
        self._call("POST", f"{self._root}/element/{element}/click", {})

    def log(self, kind: str) -> list[dict[str, Any]]:
        """ "browser": what the console got; "performance": every DevTools event, each request among them."""
        return self._call("POST", f"{self._root}/se/log", {"type": kind})  # type: ignore[no-any-return]

    def devtools(self, command: str, parameters: dict[str, Any]) -> Any:
        return self._call("POST", f"{self._root}/goog/cdp/execute", {"cmd": command, "params": parameters})

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        data = self.devtools("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": whole})["data"]
        path.write_bytes(base64.b64decode(data))

    def print(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.devtools("Page.printToPDF", {})["data"]))

    def close(self) -> None:
        self._call("DELETE", self._root)

    @staticmethod
    def _call(verb: str, url: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=verb)
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(json.load(error)["value"]["message"]) from None


@contextmanager
def browser(width: int, height: int, **how: bool) -> Iterator[Browser]:
    assert DRIVER, "chromedriver is not installed"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    driver = subprocess.Popen(
        [DRIVER, f"--port={port}", "--silent"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(100):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/status", timeout=1).close()
                break
            except OSError:
                time.sleep(0.1)
        window = Browser(port, width, height, **how)
        try:
            yield window
        finally:
            window.close()
    finally:
        driver.terminate()
        driver.wait(10)
