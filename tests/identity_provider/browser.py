"""A headless Chromium for logins: tabs that share cookies, login forms, cookies with their attributes.

In: certificates of test servers. Out: windows. Every name below `.test` is 127.0.0.1, all other names but localhost fail.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from console.browser import Browser, Failed, Page
from identity_provider.provider import PASSWORD, USER
from wire.harness.certificates import Pair

DEADLINE = 60.0  # seconds for a navigation on a busy machine
_INTERFACES = "ERR_NETWORK_CHANGED"
_NAMES = "--host-resolver-rules=MAP *.test 127.0.0.1, EXCLUDE 127.0.0.1, EXCLUDE localhost, MAP * ~NOTFOUND"


def start_browser(folder: Path, pairs: Iterable[Pair] = ()) -> Browser:
    """Return a browser, to be entered, that accepts these certificates although it does not know their authority."""
    keys = ",".join(_fingerprint(pair) for pair in pairs)
    return Browser(folder, [_NAMES, f"--ignore-certificate-errors-spki-list={keys}"])


def _fingerprint(pair: Pair) -> str:
    key = x509.load_pem_x509_certificate(pair.certificate).public_key()
    kind = serialization.PublicFormat.SubjectPublicKeyInfo
    digest = hashlib.sha256(key.public_bytes(serialization.Encoding.DER, kind)).digest()
    return base64.b64encode(digest).decode()


class Tab:
    """One tab of a window."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def open(self, url: str) -> None:
        """Start a navigation, and wait until its last page is complete."""
        end = time.monotonic() + DEADLINE
        while True:
            try:
                self._page.go(url)
                break
            except Failed as failed:  # another test on this machine has made a network interface
                if _INTERFACES not in str(failed) or time.monotonic() > end:
                    raise
        self.wait(lambda: self._value("document.readyState") == "complete", url)

    def wait(self, check: Callable[[], Any], what: str) -> Any:
        """Poll a check; a navigation in between is "not yet". Returns its value."""
        end = time.monotonic() + DEADLINE
        while True:
            with contextlib.suppress(Failed):  # the page was replaced
                if value := check():
                    return value
            assert time.monotonic() < end, f"{what}: {self.url}: {self.text[:2000]}"
            time.sleep(0.02)

    def wait_for(self, prefix: str) -> None:
        """Wait until the tab shows a complete page with a URL that begins with this."""
        script = (
            f"location.href.startsWith({json.dumps(prefix)}) && document.readyState == 'complete'"
        )
        self.wait(lambda: self._value(script), prefix)

    def _value(self, expression: str) -> Any:
        return self._page.run(expression)

    @property
    def url(self) -> str:
        """The URL of the page that the tab shows."""
        return str(self._page.run("location.href"))

    @property
    def text(self) -> str:
        """The text of the page."""
        return str(self._page.run("document.body?.innerText ?? ''"))

    def has_form(self) -> bool:
        """Return whether the page asks for a password."""
        return bool(self._page.run("document.querySelector('input[type=password]') !== null"))

    def submit(self, user: str = USER) -> None:
        """Fill in the login form and submit it."""
        values = json.dumps({"username": user, "password": PASSWORD})
        self._page.run(
            f"for (const [name, value] of Object.entries({values}))"
            " document.querySelector(`[name=${name}]`).value = value;"
            "setTimeout(() => document.querySelector('form').requestSubmit()); 0"
        )

    def sign_in(self, url: str, user: str = USER) -> None:
        """Open a URL, sign in where a form asks for it, and wait until the tab is back at the URL's origin."""
        origin = "/".join(url.split("/")[:3]) + "/"
        self.open(url)
        if self.wait(lambda: self.has_form() or self.url.startswith(origin), "a form"):
            if self.has_form():
                self.submit(user)
            self.wait_for(origin)

    def back(self) -> None:
        """Press the back button, and wait until the page before is complete."""
        history = self._page.call("Page.getNavigationHistory")
        entry = history["entries"][history["currentIndex"] - 1]
        self._page.call("Page.navigateToHistoryEntry", entryId=entry["id"])
        self.wait(
            lambda: (
                self._page.call("Page.getNavigationHistory")["currentIndex"]
                == history["currentIndex"] - 1
            ),
            "the entry before",
        )
        self.wait(lambda: self._value("document.readyState") == "complete", "the page before")

    def reload(self) -> None:
        """Reload the page."""
        self._page.run("window.before = true")
        self._page.call("Page.reload")
        self.wait(
            lambda: self._value("!window.before && document.readyState == 'complete'"), "the reload"
        )

    def fetch(self, url: str, **options: Any) -> dict[str, Any]:
        """Call fetch() in the page; returns status, type and headers, or the error."""
        script = (
            f"fetch({json.dumps(url)}, {json.dumps(options)}).then("
            "a => ({status: a.status, type: a.type, url: a.url, headers: Object.fromEntries(a.headers)}),"
            "e => ({error: String(e)}))"
        )
        found: dict[str, Any] = self._page.run(script)
        return found

    def run(self, script: str) -> Any:
        """Evaluate JavaScript in the page."""
        return self._page.run(script)


class Window:
    """Tabs that share cookies and nothing with other windows."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._context = browser.call("Target.createBrowserContext")["browserContextId"]

    def tab(self) -> Tab:
        """Open an empty tab."""
        target = self._browser.call(
            "Target.createTarget", url="about:blank", browserContextId=self._context
        )
        session = self._browser.call(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )
        page = Page(self._browser, session["sessionId"])
        for domain in ("Page", "Runtime"):
            page.call(f"{domain}.enable")
        return Tab(page)

    def cookies(self, prefix: str = "") -> list[dict[str, Any]]:
        """Return cookies with their attributes as the DevTools protocol names them (httpOnly, secure, sameSite, path, domain)."""
        told = self._browser.call("Storage.getCookies", browserContextId=self._context)
        return [one for one in told["cookies"] if one["name"].startswith(prefix)]

    def set_cookie(self, **cookie: Any) -> None:
        """Set a cookie as a server would, with the fields of the DevTools protocol."""
        self._browser.call("Storage.setCookies", browserContextId=self._context, cookies=[cookie])

    def close(self) -> None:
        """Close all tabs and forget all cookies."""
        self._browser.call("Target.disposeBrowserContext", browserContextId=self._context)


@contextlib.contextmanager
def window(browser: Browser) -> Iterator[Window]:
    """Open a window for a while."""
    opened = Window(browser)
    try:
        yield opened
    finally:
        opened.close()
