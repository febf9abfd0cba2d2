"""A headless Chromium of one's own, driven through its DevTools protocol."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

START = 60.0  # seconds: a browser's first start on a busy machine
DEADLINE = 30.0
#: A browser beside a sanitizer's runtime does not start.
_ALONE = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
_UNTIL = """new Promise((done, fail) => {
  const end = performance.now() + %d;
  const look = () => {
    let value;
    try { value = (%s); } catch (error) { value = false; }
    if (value) done(value);
    else if (performance.now() > end) fail(new Error('not within the deadline: ' + %s));
    else setTimeout(look, 10);
  };
  look();
})"""


class Failed(AssertionError):
    """The page threw, or did not come to what was awaited."""


class Browser:
    """Use as a context manager. `options` are of the command line."""

    def __init__(self, folder: Path, options: Sequence[str] = ()) -> None:
        self._folder = folder
        self._options = options
        self._log = folder / "chromium.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: ClientConnection | None = None
        self._open = contextlib.ExitStack()
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Browser:
        program = shutil.which("chromium") or shutil.which("chromium-browser")
        assert program, "no chromium: `make test` installs it"
        command = [program, "--headless=new", "--remote-debugging-port=0", "--no-first-run"]
        command += [f"--user-data-dir={self._folder}/profile", "--disable-gpu", "--disable-sync"]
        command += ["--disable-background-networking", "--disable-component-update"]
        command += ["--disable-dev-shm-usage", "--hide-scrollbars", "--no-proxy-server"]
        command += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"]
        if os.geteuid() == 0:
            command.append("--no-sandbox")
        # A file: a pipe that nobody reads any more would hold the browser up once it is full.
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                [*command, *self._options, "about:blank"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=_ALONE | {"HOME": str(self._folder)},
            )
        try:
            address = self._read_address()
            # No pings: they draw from `random`, in a thread, while other tests generate what must be repeatable.
            opened = connect(
                address,
                max_size=64 * 2**20,
                open_timeout=START,
                compression=None,
                ping_interval=None,
            )
            self._socket = self._open.enter_context(opened)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _read_address(self) -> str:
        assert self._process is not None
        end = time.monotonic() + START
        while self._process.poll() is None and time.monotonic() < end:
            said = self._log.read_text("utf-8", "replace")
            if found := re.search(r"^DevTools listening on (\S+)\n", said, re.M):
                return found[1]
            time.sleep(0.02)
        raise Failed("chromium does not listen:\n" + self._log.read_text("utf-8", "replace"))

    def __exit__(self, *_: object) -> None:
        self._open.close()
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)  # its own session: nobody else's
            self._process.wait(20)

    def call(self, method: str, session: str = "", **params: Any) -> Any:
        """Send a command; returns its result. Events that come before it are kept."""
        assert self._socket is not None
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        self._socket.send(json.dumps(message))
        while True:
            told = json.loads(self._socket.recv(DEADLINE + 10))
            if told.get("id") == self._number:
                if "error" in told:
                    raise Failed(f"{method}: {told['error']['message']}")
                return told["result"]
            self.events.append(told)

    @contextlib.contextmanager
    def page(
        self,
        url: str = "about:blank",
        *,
        width: int = 1440,
        height: int = 900,
        theme: str = "light",
    ) -> Iterator[Page]:
        """Open a page in a context of its own: no storage is shared."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)
        session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        page = Page(self, session["sessionId"])
        try:
            for domain in ("Page", "Runtime", "Log", "Network"):
                page.call(f"{domain}.enable")
            page.resize(width, height)
            page.call(
                "Emulation.setEmulatedMedia",
                features=[
                    {"name": "prefers-color-scheme", "value": theme},
                    {"name": "prefers-reduced-motion", "value": "reduce"},
                ],
            )
            if url != "about:blank":
                page.go(url)
            yield page
        finally:
            self.call("Target.disposeBrowserContext", browserContextId=context)


class Page:
    """One page."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session
        self.expected: list[str] = []  # parts of complaints that are no failure

    def call(self, method: str, **params: Any) -> Any:
        """Send a command to this page."""
        return self._browser.call(method, self._session, **params)

    def go(self, url: str) -> None:
        """Load a URL; the page may not be ready when this returns."""
        told = self.call("Page.navigate", url=url)
        if told.get("errorText"):
            raise Failed(f"{url}: {told['errorText']}")

    def resize(self, width: int, height: int) -> None:
        """Set the size of what is seen."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def run(self, expression: str) -> Any:
        """Evaluate JavaScript; a promise is awaited."""
        told = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in told:
            details = told["exceptionDetails"]
            text = details.get("exception", {}).get("description") or details["text"]
            raise Failed(f"{text}\n{expression}")
        return told["result"].get("value")

    def until(self, condition: str, deadline: float = DEADLINE) -> Any:
        """Wait until an expression is true in the page; returns its value."""
        return self.run(_UNTIL % (deadline * 1000, condition, json.dumps(condition)))

    def click(self, selector: str) -> None:
        """Click the middle of an element with the mouse, as soon as it is there."""
        found = json.dumps(selector)
        self.until(f"document.querySelector({found})?.getClientRects().length")
        box = self.run(
            f"(() => {{ const e = document.querySelector({found});"
            " e.scrollIntoView({block: 'nearest'}); const b = e.getBoundingClientRect();"
            " return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=box[0],
                y=box[1],
                button="left",
                clickCount=1,
            )

    def write(self, selector: str, text: str) -> None:
        """Put text in place of what a field has, as if it were typed."""
        found = json.dumps(selector)
        # What is on a page that is not shown yet takes no focus.
        self.until(
            f"document.querySelector({found})?.focus(),"
            f" document.activeElement === document.querySelector({found})"
        )
        self.run("document.activeElement.select()")
        self.call("Input.insertText", text=text)

    def press(self, key: str) -> None:
        """Press a key."""
        text = {"Enter": "\r", " ": " "}.get(key, "")
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, **more)

    def text(self, selector: str) -> str:
        """Return the text of an element, as it is seen; "" without one."""
        return str(self.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def photograph(self, path: Path) -> None:
        """Save what is seen as PNG."""
        told = self.call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(told["data"]))

    def events(self, method: str) -> list[dict[str, Any]]:
        """Return the parameters of events of this page so far."""
        self.run("0")  # what has happened is told before the answer
        return [
            one["params"]
            for one in self._browser.events
            if one.get("sessionId") == self._session and one["method"] == method
        ]

    def complaints(self) -> list[str]:
        """Return what the browser has found wrong: errors of scripts, refusals of the policy, failed loads."""
        logged = [one["entry"] for one in self.events("Log.entryAdded")]
        thrown = self.events("Runtime.exceptionThrown")
        found = [
            *(f"{one['level']}: {one['text']} {one.get('url', '')}" for one in logged),
            *(str(one["exceptionDetails"]) for one in thrown),
        ]
        return [one for one in found if not any(part in one for part in self.expected)]
